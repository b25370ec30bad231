// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: Dynamic Receive Window Adjustment, binding of the law to TCP sockets
 *
 * A governed socket keeps a target window of its own, applied where a segment
 * chooses the window it offers (tcp_select_window()), ahead of the rule that
 * the right edge never moves back (RFC 9293, 3.8.6.2.1): a lower target takes
 * effect as data arrives, even where tcp_shrink_window allows more. sk_rcvbuf,
 * rcv_ssthresh and window_clamp stay what the rest of TCP makes of them, except
 * that a buffer that the kernel tunes grows with what comes, and as far beyond
 * tcp_rmem[2] as the target needs. Whoever is let go has the kernel's limits again.
 *
 * Sockets whose application set SO_RCVBUF and MPTCP subflows, whose window belongs
 * to the connection, stand aside. Whoever has no target, for whatever reason, has
 * the kernel's limits.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/static_key.h>
#include <net/mptcp.h>
#include <net/tcp.h>
#include <net/tcp_drwa.h>
#include <uapi/linux/rtnetlink.h>

#include "tcp_drwa_compat.h"

#define CREATE_TRACE_POINTS
#include <trace/events/tcp_drwa.h>

static bool tcp_drwa_classic __read_mostly;
module_param_named(classic, tcp_drwa_classic, bool, 0644);
MODULE_PARM_DESC(classic, "follow Algorithm 1 of the paper, for reproduction");

static enum drwa_law tcp_drwa_law(void)
{
	return READ_ONCE(tcp_drwa_classic) ? DRWA_LAW_CLASSIC : DRWA_LAW_DELAY;
}

/* Interface that governs the socket, under RCU */
static struct tcp_drwa_dev *tcp_drwa_sk_dev(const struct sock *sk)
{
	return tcp_drwa_dev_of(sk, tcp_drwa_rx_ifindex(sk));
}

/**
 * tcp_drwa_sk_lambda() - lambda that governs a socket
 * @sk:		full socket
 *
 * Return: hundredths; 0 where the interface or the socket stands aside.
 */
u32 tcp_drwa_sk_lambda(const struct sock *sk)
{
	struct tcp_drwa_dev *dev;
	u32 lambda;

	rcu_read_lock();
	dev = tcp_drwa_sk_dev(sk);
	lambda = dev ? READ_ONCE(dev->lambda) : 0;
	rcu_read_unlock();
	return lambda;
}

/* One-way delay of the segment just parsed, us, with the clocks' offset. */
static u32 tcp_drwa_owd_us(const struct tcp_sock *tp)
{
	u32 tick_us = USEC_PER_SEC / TCP_TS_HZ;

	/* Since 6.7 a route may ask for ticks of 1 us. */
#ifdef TCP_DRWA_USEC_TS
	if (tp->tcp_usec_ts)
		tick_us = 1;
#endif
	return (u32)tp->tcp_mstamp - tp->rx_opt.rcv_tsval * tick_us;
}

/* What the header cannot carry would be rounded up at every segment. */
static void tcp_drwa_align(struct tcp_sock *tp)
{
	tp->drwa.wnd = ALIGN(tp->drwa.wnd, 1U << tp->rx_opt.rcv_wscale);
}

/* From a first RTT sample on, the last segment's; dev is under RCU. */
static void tcp_drwa_begin(struct sock *sk, struct tcp_drwa_dev *dev, u32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct drwa *d = &tp->drwa;

	drwa_reset(d, tcp_drwa_law());
	tcp_drwa_dev_start(dev, d, tp->tcp_mstamp, tp->rcv_nxt, rtt_us,
			   tcp_drwa_owd_us(tp), tp->rx_opt.saw_tstamp);
	tcp_drwa_align(tp);
}

void __tcp_drwa_rtt_sample(struct sock *sk, u32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct drwa *d = &tp->drwa;
	struct tcp_drwa_dev *dev;

	/* A peer that stops sending timestamps is a new one. */
	if (d->rtt_us && (tp->rx_opt.saw_tstamp || !d->clock)) {
		drwa_sample(d, rtt_us, tcp_drwa_owd_us(tp));
		return;
	}
	rcu_read_lock();
	dev = tcp_drwa_sk_dev(sk);
	if (dev && READ_ONCE(dev->lambda))
		tcp_drwa_begin(sk, dev, rtt_us);
	rcu_read_unlock();
}

/* The handshake met no queue of its own connection: the best base there is. */
void __tcp_drwa_connected(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	__tcp_drwa_rtt_sample(sk, tp->srtt_us >> 3);
	/* A SYN's header says no more, whatever the buffer has room for. */
	if (tp->drwa.rtt_us)
		tp->rcv_wnd = min_t(u32, tp->rcv_wnd, U16_MAX);
}

/* A clamp of the application's (TCP_WINDOW_CLAMP) is below what the buffer has
 * room for, and the kernel's by a segment at most. See tcp_drwa_let_go(), too.
 */
static bool tcp_drwa_is_clamped(const struct sock *sk, int rmem_max)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	int room = tcp_win_from_space(sk, min(sk->sk_rcvbuf, rmem_max));

	return (int)tp->window_clamp < room - tp->advmss;
}

int __tcp_drwa_rmem_max(const struct sock *sk, int rmem_max)
{
	if (tcp_drwa_is_clamped(sk, rmem_max))
		return rmem_max;
	return tcp_drwa_rcvbuf_max(sk, tcp_sk(sk)->drwa.wnd, rmem_max);
}

/* tcp_rcv_space_adjust() counts what is copied in the least RTT, which is less
 * than comes in a round where the law wants a queue.
 */
static void tcp_drwa_grow_rcvbuf(struct sock *sk, u32 received)
{
	int rmem_max = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);
	struct tcp_sock *tp = tcp_sk(sk);
	int rcvbuf, clamp;

	if (!tp->drwa.wnd || !READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_moderate_rcvbuf) ||
	    tcp_drwa_is_clamped(sk, rmem_max))
		return;
	rcvbuf = min_t(u64, tcp_drwa_rcvbuf(sk, min(received, tp->drwa.wnd)),
		       __tcp_drwa_rmem_max(sk, rmem_max));
	clamp = tcp_win_from_space(sk, rcvbuf);
	if (rcvbuf > sk->sk_rcvbuf)
		WRITE_ONCE(sk->sk_rcvbuf, rcvbuf);
	if (clamp > (int)tp->window_clamp)
		WRITE_ONCE(tp->window_clamp, clamp);
}

/* Who is not governed any more has the kernel's limits. What was offered keeps its
 * room, beyond them, but no more of it is offered.
 */
static void tcp_drwa_let_go(struct sock *sk)
{
	int rmem_max = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 needed;
	u32 clamp;

	if (sk->sk_rcvbuf > rmem_max &&
	    !(sk->sk_userlocks & SOCK_RCVBUF_LOCK)) {
		clamp = tcp_win_from_space(sk, rmem_max);
		WRITE_ONCE(tp->window_clamp, min(tp->window_clamp, clamp));
		tp->rcv_ssthresh = min(tp->rcv_ssthresh, tp->window_clamp);
		needed = tcp_drwa_space_from_win(sk, tcp_receive_window(tp));
		needed = max_t(u64, needed + atomic_read(&sk->sk_rmem_alloc), rmem_max);
		WRITE_ONCE(sk->sk_rcvbuf, min_t(u64, needed, sk->sk_rcvbuf));
	}
	drwa_reset(&tp->drwa, tcp_drwa_law());
}

void __tcp_drwa_data_recv(struct sock *sk, u32 seq)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct drwa *d = &tp->drwa;
	struct tcp_drwa_dev *dev;
	u32 received, rtt_us;

	if (!d->rtt_us)
		return;
	received = tp->rcv_nxt - d->round_seq;
	rtt_us = d->law == DRWA_LAW_DELAY && d->samples ? d->least_us : d->rtt_us;
	rcu_read_lock();
	dev = tcp_drwa_sk_dev(sk);
	if (dev && !tcp_drwa_dev_due(dev, d, tp->tcp_mstamp, tp->rcv_nxt - seq))
		goto unlock;
	if (dev && d->law == tcp_drwa_law() &&
	    tcp_drwa_dev_round(dev, d, tp->tcp_mstamp, tp->rcv_nxt, tp->advmss)) {
		/* A minute of silence ended: what comes now is as a first flight. */
		if (!d->rtt_us)
			tcp_drwa_begin(sk, dev, rtt_us);
		tcp_drwa_align(tp);
		tcp_drwa_grow_rcvbuf(sk, received);
		trace_tcp_drwa_round(sk);
	} else {
		tcp_drwa_let_go(sk);
	}
unlock:
	rcu_read_unlock();
}

/**
 * __tcp_drwa_offer() - the window of a segment that the target is below
 * @sk:		socket
 * @wnd:	what the kernel would offer
 *
 * Return: the target, but nothing less than what was offered before.
 */
u32 __tcp_drwa_offer(const struct sock *sk, u32 wnd)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_drwa_dev *dev;
	u32 least;

	least = ALIGN(tcp_receive_window(tp), 1U << tp->rx_opt.rcv_wscale);
	if (wnd <= least)
		return wnd;
	rcu_read_lock();
	dev = tcp_drwa_sk_dev(sk);
	if (dev)
		this_cpu_inc(dev->stats->count[TCP_DRWA_CAPPED]);
	rcu_read_unlock();
	return max(least, tp->drwa.wnd);
}
