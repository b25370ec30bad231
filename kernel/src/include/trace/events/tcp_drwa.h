/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tcp_drwa

#if !defined(_TRACE_TCP_DRWA_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_TCP_DRWA_H

#include <linux/tcp.h>
#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>

#ifndef _TCP_DRWA_TRACE_ADDR
#define _TCP_DRWA_TRACE_ADDR

/* Both families in 16 bytes: an IPv4 address is v4-mapped. */
static inline void tcp_drwa_trace_addr(const struct sock *sk, u8 *saddr,
				       u8 *daddr)
{
	struct in6_addr src, dst;

	ipv6_addr_set_v4mapped(inet_sk(sk)->inet_saddr, &src);
	ipv6_addr_set_v4mapped(inet_sk(sk)->inet_daddr, &dst);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		src = inet6_sk(sk)->saddr;
		dst = sk->sk_v6_daddr;
	}
#endif
	memcpy(saddr, &src, sizeof(src));
	memcpy(daddr, &dst, sizeof(dst));
}

#endif

/* One round of a governed connection */
TRACE_EVENT(tcp_drwa_round,
	    TP_PROTO(const struct sock *sk),
	    TP_ARGS(sk),
	    TP_STRUCT__entry(__field(u16, family)
			     __field(u16, sport)
			     __field(u16, dport)
			     __field(u16, lambda)
			     __array(u8, saddr, 16)
			     __array(u8, daddr, 16)
			     __field(u32, rtt_us)
			     __field(u32, path_us)
			     __field(u32, cwnd)
			     __field(u32, rwnd)
			     __field(u8, phase)),
	    TP_fast_assign(__entry->family = sk->sk_family;
			   __entry->sport = ntohs(inet_sk(sk)->inet_sport);
			   __entry->dport = ntohs(inet_sk(sk)->inet_dport);
			   tcp_drwa_trace_addr(sk, __entry->saddr, __entry->daddr);
			   __entry->rtt_us = tcp_sk(sk)->drwa.rtt_us;
			   __entry->path_us = tcp_sk(sk)->drwa.path_us;
			   __entry->cwnd = drwa_cwndest(&tcp_sk(sk)->drwa);
			   __entry->rwnd = tcp_sk(sk)->drwa.wnd;
			   __entry->lambda = tcp_sk(sk)->drwa.lambda;
			   __entry->phase = tcp_sk(sk)->drwa.phase;),
	    TP_printk("family=%s saddr=%pI6c daddr=%pI6c sport=%u dport=%u rtt_us=%u path_us=%u cwnd=%u rwnd=%u lambda=%u phase=%u",
		      __entry->family == AF_INET6 ? "AF_INET6" : "AF_INET",
		      __entry->saddr, __entry->daddr,
		      __entry->sport, __entry->dport,
		      __entry->rtt_us, __entry->path_us,
		      __entry->cwnd, __entry->rwnd,
		      __entry->lambda, __entry->phase)
);

#endif /* _TRACE_TCP_DRWA_H */

#include <trace/define_trace.h>
