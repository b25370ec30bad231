/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DRWA, Dynamic Receive Window Adjustment: hooks of the TCP receive path
 *
 * All are one patched branch while no interface has a tcp_drwa_lambda.
 */
#ifndef _NET_TCP_DRWA_H
#define _NET_TCP_DRWA_H

#include <linux/jump_label.h>
#include <linux/sysctl.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>

#ifdef CONFIG_TCP_DRWA

/*
 * Bound of a governed socket's receive buffer, in place of tcp_rmem[2]. It
 * holds 100 Mb/s at an RTT of 600 ms and gives a window scale of 9, which
 * rounds the window to 512 bytes.
 */
#define TCP_DRWA_RMEM_MAX	(16 << 20)

DECLARE_STATIC_KEY_FALSE(tcp_drwa_enabled);

/**
 * struct tcp_drwa_dev - one interface
 * @lambda:	its knob, hundredths, 0: off
 * @link:	what its connections share
 * @header:	its sysctl file
 * @table:	the file's table; the second entry ends it before 6.11
 * @rcu:	for kfree_rcu()
 */
struct tcp_drwa_dev {
	int lambda;
	struct drwa_link link;
	struct ctl_table_header *header;
	struct ctl_table table[2];
	struct rcu_head rcu;
};

struct tcp_drwa_dev *tcp_drwa_dev_get(struct net *net, int ifindex);
u32 tcp_drwa_sk_lambda(const struct sock *sk);
void __tcp_drwa_rtt_sample(struct sock *sk, u32 rtt_us);
void __tcp_drwa_connected(struct sock *sk);
void __tcp_drwa_space_adjust(struct sock *sk);
void __tcp_drwa_capped(const struct sock *sk);

/* A receive RTT sample, us; with timestamps where the peer sends them. */
static inline void tcp_drwa_rtt_sample(struct sock *sk, u32 rtt_us)
{
	if (static_branch_unlikely(&tcp_drwa_enabled))
		__tcp_drwa_rtt_sample(sk, rtt_us);
}

/* The peer's SYN ACK was taken in; the SYN's RTT is in srtt_us. */
static inline void tcp_drwa_connected(struct sock *sk)
{
	if (static_branch_unlikely(&tcp_drwa_enabled))
		__tcp_drwa_connected(sk);
}

/* Data was copied to user space; tcp_mstamp is fresh. */
static inline void tcp_drwa_space_adjust(struct sock *sk)
{
	if (static_branch_unlikely(&tcp_drwa_enabled))
		__tcp_drwa_space_adjust(sk);
}

/* The window to offer where the kernel would offer @wnd bytes. */
static inline u32 tcp_drwa_cap(const struct tcp_sock *tp, u32 wnd)
{
	if (static_branch_unlikely(&tcp_drwa_enabled) && tp->drwa.wnd)
		return min(wnd, tp->drwa.wnd);
	return wnd;
}

/* tcp_drwa_cap() for the segment that is about to be sent */
static inline u32 tcp_drwa_offer(const struct sock *sk, u32 wnd)
{
	u32 capped = tcp_drwa_cap(tcp_sk(sk), wnd);

	if (static_branch_unlikely(&tcp_drwa_enabled) && capped < wnd)
		__tcp_drwa_capped(sk);
	return capped;
}

/* Limit of the receive buffer, bytes: tcp_rmem[2] unless governed */
static inline int tcp_drwa_rmem_max(const struct sock *sk)
{
	int rmem_max = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);

	if (static_branch_unlikely(&tcp_drwa_enabled) && tcp_sk(sk)->drwa.lambda)
		return max(rmem_max, TCP_DRWA_RMEM_MAX);
	return rmem_max;
}

/*
 * The same at the SYN, which chooses the window scale. Connections that a
 * listener accepts keep the scale that tcp_rmem[2] gives: their SYN ACK may be
 * made again from a cookie, without a route at hand.
 */
static inline int tcp_drwa_syn_rmem_max(const struct sock *sk)
{
	int rmem_max = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);

	if (static_branch_unlikely(&tcp_drwa_enabled) && tcp_drwa_sk_lambda(sk))
		return max(rmem_max, TCP_DRWA_RMEM_MAX);
	return rmem_max;
}

static inline void tcp_drwa_init(struct tcp_sock *tp)
{
	drwa_reset(&tp->drwa, DRWA_LAW_DELAY);
}

#else /* CONFIG_TCP_DRWA */

static inline void tcp_drwa_rtt_sample(struct sock *sk, u32 rtt_us)
{
}

static inline void tcp_drwa_connected(struct sock *sk)
{
}

static inline void tcp_drwa_space_adjust(struct sock *sk)
{
}

static inline u32 tcp_drwa_cap(const struct tcp_sock *tp, u32 wnd)
{
	return wnd;
}

static inline u32 tcp_drwa_offer(const struct sock *sk, u32 wnd)
{
	return wnd;
}

static inline int tcp_drwa_rmem_max(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);
}

static inline int tcp_drwa_syn_rmem_max(const struct sock *sk)
{
	return tcp_drwa_rmem_max(sk);
}

static inline void tcp_drwa_init(struct tcp_sock *tp)
{
}

#endif /* CONFIG_TCP_DRWA */

#endif /* _NET_TCP_DRWA_H */
