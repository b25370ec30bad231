/* SPDX-License-Identifier: GPL-2.0-only */
/* The tracepoints of Qualcomm's driver that the gate hears, with its names and types */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dfc

#if !defined(LAB_DFC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LAB_DFC_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(dfc_flow_ind,

	TP_PROTO(int src, int idx, u8 mux_id, u8 bearer_id, u32 grant, u16 seq_num,
		 u8 ack_req, u32 ancillary),

	TP_ARGS(src, idx, mux_id, bearer_id, grant, seq_num, ack_req, ancillary),

	TP_STRUCT__entry(
		__field(u8, mux_id)
		__field(u8, bearer_id)
		__field(u32, grant)
		__field(u16, seq_num)
	),

	TP_fast_assign(
		__entry->mux_id = mux_id;
		__entry->bearer_id = bearer_id;
		__entry->grant = grant;
		__entry->seq_num = seq_num;
	),

	TP_printk("mid=%u bid=%u grant=%u seq=%u", __entry->mux_id, __entry->bearer_id,
		  __entry->grant, __entry->seq_num)
);

TRACE_EVENT(dfc_flow_check,

	TP_PROTO(const char *name, u8 bearer_id, unsigned int len, u32 mark, u32 grant),

	TP_ARGS(name, bearer_id, len, mark, grant),

	TP_STRUCT__entry(
		__field(u8, bearer_id)
		__field(unsigned int, len)
		__field(u32, mark)
		__field(u32, grant)
	),

	TP_fast_assign(
		__entry->bearer_id = bearer_id;
		__entry->len = len;
		__entry->mark = mark;
		__entry->grant = grant;
	),

	TP_printk("bearer_id=%u skb_len=%u mark=%u current_grant=%u", __entry->bearer_id,
		  __entry->len, __entry->mark, __entry->grant)
);

TRACE_EVENT(dfc_adjust_grant,

	TP_PROTO(u8 mux_id, u8 bearer_id, u32 grant, u32 rx_bytes, u32 inflight,
		 u32 a_grant),

	TP_ARGS(mux_id, bearer_id, grant, rx_bytes, inflight, a_grant),

	TP_STRUCT__entry(
		__field(u8, mux_id)
		__field(u8, bearer_id)
		__field(u32, grant)
		__field(u32, rx_bytes)
		__field(u32, inflight)
		__field(u32, a_grant)
	),

	TP_fast_assign(
		__entry->mux_id = mux_id;
		__entry->bearer_id = bearer_id;
		__entry->grant = grant;
		__entry->rx_bytes = rx_bytes;
		__entry->inflight = inflight;
		__entry->a_grant = a_grant;
	),

	TP_printk("mid=%u bid=%u grant=%u rx=%u inflight=%u adjusted_grant=%u",
		  __entry->mux_id, __entry->bearer_id, __entry->grant,
		  __entry->rx_bytes, __entry->inflight, __entry->a_grant)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../../net/sched
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE lab_dfc_trace
#include <trace/define_trace.h>
