/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between kernel lines, told by the tree and not by its version:
 * stable and vendor trees take such changes at any time.
 */
#ifndef _TCP_DRWA_COMPAT_H
#define _TCP_DRWA_COMPAT_H

#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

/* 6.6 made the call a macro around one that takes the table's size. */
#ifndef register_net_sysctl
static inline struct ctl_table_header *
register_net_sysctl_sz(struct net *net, const char *path,
		       struct ctl_table *table, size_t size)
{
	return register_net_sysctl(net, path, table);
}
#endif

/* The table that a handler gets. 6.11 made it const. */
#define TCP_DRWA_CTL_TABLE_IS_CONST					\
	__same_type(proc_handler, int(const struct ctl_table *, int,	\
				      void *, size_t *, loff_t *))
#define TCP_DRWA_CTL_TABLE						\
	typeof(*__builtin_choose_expr(TCP_DRWA_CTL_TABLE_IS_CONST,	\
				      (const struct ctl_table *)NULL,	\
				      (struct ctl_table *)NULL))

/* Buffer that holds a window. 6.6 measures the overhead; before that, the lines'
 * own auto-tuning estimates it from the segments' size.
 */
static inline u64 tcp_drwa_space_from_win(const struct sock *sk, int win)
{
#ifdef TCP_RMEM_TO_WIN_SCALE
	return tcp_space_from_win(sk, win);
#else
	const struct tcp_sock *tp = tcp_sk(sk);
	int rcvmem = SKB_TRUESIZE(tp->advmss + MAX_TCP_HEADER);

	while (tcp_win_from_space(sk, rcvmem) < tp->advmss)
		rcvmem += 128;
	return div_u64((u64)win * rcvmem, tp->advmss);
#endif
}

/* 5.17 moved it from inet_sock; the Makefile of an older line says so. */
#ifdef TCP_DRWA_INET_RX_IFINDEX
#define tcp_drwa_rx_ifindex(sk)	(inet_sk(sk)->rx_dst_ifindex)
#else
#define tcp_drwa_rx_ifindex(sk)	((sk)->sk_rx_dst_ifindex)
#endif

#endif /* _TCP_DRWA_COMPAT_H */
