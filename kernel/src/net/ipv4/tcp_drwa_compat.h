/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between kernel lines, told by the tree and not by its version:
 * stable and vendor trees take such changes at any time.
 */
#ifndef _TCP_DRWA_COMPAT_H
#define _TCP_DRWA_COMPAT_H

#include <linux/sysctl.h>

/* 6.6 made the call a macro around the one that takes the table's size. */
#ifdef register_net_sysctl
#define tcp_drwa_register_sysctl(net, path, table) \
	register_net_sysctl_sz(net, path, table, 1)
#else
#define tcp_drwa_register_sysctl(net, path, table) \
	register_net_sysctl(net, path, table)
#endif

/* 6.11 made the handlers' tables const; net/ipv4/Makefile looks. */
#ifdef TCP_DRWA_SYSCTL_CONST
#define TCP_DRWA_CTL_TABLE	const struct ctl_table
#else
#define TCP_DRWA_CTL_TABLE	struct ctl_table
#endif

/* 5.17 moved it from inet_sock; net/ipv4/Makefile of an older line says so. */
#ifdef TCP_DRWA_INET_RX_IFINDEX
#define tcp_drwa_rx_ifindex(sk)	(inet_sk(sk)->rx_dst_ifindex)
#else
#define tcp_drwa_rx_ifindex(sk)	((sk)->sk_rx_dst_ifindex)
#endif

#endif /* _TCP_DRWA_COMPAT_H */
