// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: Dynamic Receive Window Adjustment, binding of the law to TCP sockets
 *
 * A governed socket keeps a target window of its own, applied where a segment
 * chooses the window it offers (tcp_select_window()), ahead of the rule that
 * the right edge never moves back (RFC 9293, 3.8.6.2.1): a lower target takes
 * effect as data arrives. sk_rcvbuf, rcv_ssthresh and window_clamp stay what
 * the rest of TCP makes of them, except that the buffer may grow beyond
 * tcp_rmem[2], up to TCP_DRWA_RMEM_MAX.
 *
 * Sockets whose application set SO_RCVBUF, and MPTCP subflows, whose window
 * belongs to the connection, stand aside.
 */
#include <linux/module.h>
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

/* Interface that governs the socket, under RCU: the one that data last came
 * from; before any data, the one that the cached route leaves by.
 */
static struct tcp_drwa_dev *tcp_drwa_sk_dev(const struct sock *sk)
{
	int ifindex = tcp_drwa_rx_ifindex(sk);
	const struct dst_entry *dst;

	if ((sk->sk_userlocks & SOCK_RCVBUF_LOCK) || sk_is_mptcp(sk))
		return NULL;
	if (!ifindex) {
		dst = rcu_dereference(sk->sk_dst_cache);
		if (dst)
			ifindex = dst->dev->ifindex;
	}
	return ifindex ? tcp_drwa_dev_get(sock_net(sk), ifindex) : NULL;
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
#ifdef RTAX_FEATURE_TCP_USEC_TS
	if (tp->tcp_usec_ts)
		tick_us = 1;
#endif
	return (u32)tp->tcp_mstamp - tp->rx_opt.rcv_tsval * tick_us;
}

static enum drwa_law tcp_drwa_law(void)
{
	return READ_ONCE(tcp_drwa_classic) ? DRWA_LAW_CLASSIC : DRWA_LAW_DELAY;
}

void __tcp_drwa_rtt_sample(struct sock *sk, u32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct drwa *d = &tp->drwa;
	struct tcp_drwa_dev *dev;
	u32 owd_us;

	/* Without the sender's clock a first burst would pass for a queue. */
	if (!tp->rx_opt.tstamp_ok && tcp_drwa_law() == DRWA_LAW_DELAY)
		return;
	owd_us = tp->rx_opt.saw_tstamp ? tcp_drwa_owd_us(tp) : 0;
	if (d->rtt_us) {
		drwa_sample(d, rtt_us, owd_us);
		return;
	}
	drwa_reset(d, tcp_drwa_law());
	rcu_read_lock();
	dev = tcp_drwa_sk_dev(sk);
	if (dev)
		drwa_start(d, &dev->link, tp->tcp_mstamp, tp->rcv_nxt, rtt_us,
			   owd_us);
	rcu_read_unlock();
}

/* The SYN ACK met no queue of its own connection: the best base there is. */
void __tcp_drwa_connected(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->rx_opt.saw_tstamp)
		__tcp_drwa_rtt_sample(sk, tp->srtt_us >> 3);
}

/* The window bounds what is in flight. The buffer is there for what loss
 * recovery holds back and an application that pauses leaves unread; stock's is
 * as large as the queue that it fills made it.
 */
static void tcp_drwa_grow_rcvbuf(struct sock *sk)
{
	int rcvbuf = tcp_drwa_rmem_max(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tp->drwa.wnd || rcvbuf <= sk->sk_rcvbuf)
		return;
	/* A clamp below the buffer's is the application's (TCP_WINDOW_CLAMP). */
	if (tp->window_clamp < tcp_win_from_space(sk, sk->sk_rcvbuf))
		return;
	WRITE_ONCE(sk->sk_rcvbuf, rcvbuf);
	WRITE_ONCE(tp->window_clamp, tcp_win_from_space(sk, rcvbuf));
}

void __tcp_drwa_space_adjust(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct drwa *d = &tp->drwa;
	struct tcp_drwa_dev *dev;
	u32 lambda;

	if (!drwa_due(d, tp->tcp_mstamp))
		return;
	rcu_read_lock();
	dev = tcp_drwa_sk_dev(sk);
	lambda = dev ? READ_ONCE(dev->lambda) : 0;
	if (!lambda || d->law != tcp_drwa_law()) {
		drwa_reset(d, tcp_drwa_law());
		goto unlock;
	}
	if (!d->lambda)
		NET_INC_STATS(sock_net(sk), LINUX_MIB_TCPDRWASOCKETS);
	d->lambda = lambda;
	drwa_round(d, &dev->link, tp->tcp_mstamp, tp->rcv_nxt, tp->advmss);
	/* What the header cannot carry would be rounded up at every segment. */
	if (d->wnd)
		d->wnd = ALIGN(d->wnd, 1U << tp->rx_opt.rcv_wscale);
	tcp_drwa_grow_rcvbuf(sk);
	NET_INC_STATS(sock_net(sk), LINUX_MIB_TCPDRWAROUNDS);
	trace_tcp_drwa_round(sk);
unlock:
	rcu_read_unlock();
}

void __tcp_drwa_capped(const struct sock *sk)
{
	NET_INC_STATS(sock_net(sk), LINUX_MIB_TCPDRWACAPPED);
}
