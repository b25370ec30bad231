// SPDX-License-Identifier: GPL-2.0-only
#include <linux/math64.h>
#include <net/pkt_sched.h>

#include "lab_modem.h"

/* A report, and its grant, are at this instant of a packet. */
static u64 *lab_modem_granted(const struct sk_buff *skb)
{
	return (u64 *)qdisc_skb_cb(skb)->data;
}

void lab_modem_init(struct lab_modem *modem, u32 limit, u64 grant_ns, u64 report_ns)
{
	int i;

	memset(modem, 0, sizeof(*modem));
	for (i = 0; i < LAB_BEARERS; i++)
		__skb_queue_head_init(&modem->fifo[i]);
	modem->limit = limit;
	modem->grant_ns = grant_ns;
	modem->report_ns = report_ns;
}

void lab_modem_reset(struct lab_modem *modem)
{
	int i;

	for (i = 0; i < LAB_BEARERS; i++) {
		__skb_queue_purge(&modem->fifo[i]);
		modem->held[i] = 0;
	}
	modem->bytes = 0;
	modem->stopped = false;
}

bool lab_modem_takes(struct lab_modem *modem)
{
	if (lab_dfc_drives(modem))
		return true;
	if (modem->bytes >= modem->limit)
		modem->stopped = true;
	else if (modem->bytes <= modem->limit - modem->limit / 8)
		modem->stopped = false;
	return !modem->stopped && lab_dfc_takes(modem);
}

static void lab_modem_count(struct lab_modem *modem, u64 now)
{
	modem->byte_ns += modem->bytes * (now - modem->changed_ns);
	modem->changed_ns = now;
}

void lab_modem_put(struct lab_modem *modem, struct sk_buff *skb, u64 now)
{
	u32 bearer = lab_dfc_bearer(modem, skb);
	u64 granted = 0;

	if (!modem->bytes) {
		modem->reported_ns = now;
		granted = now + modem->grant_ns;
	} else if (modem->report_ns) {
		if (now > modem->reported_ns)
			modem->reported_ns += modem->report_ns *
				DIV64_U64_ROUND_UP(now - modem->reported_ns, modem->report_ns);
		granted = modem->reported_ns + modem->grant_ns;
	}
	skb_orphan(skb);
	*lab_modem_granted(skb) = granted;
	lab_modem_count(modem, now);
	modem->bytes += qdisc_pkt_len(skb);
	modem->held[bearer] += qdisc_pkt_len(skb);
	modem->max_bytes = max(modem->max_bytes, modem->bytes);
	__skb_queue_tail(&modem->fifo[bearer], skb);
	lab_dfc_put(modem, bearer, qdisc_pkt_len(skb));
}

/* The packet that crosses next. */
struct sk_buff *lab_modem_peek(struct lab_modem *modem)
{
	if (!modem->bytes)
		return NULL;
	/* Its turn stays until it has crossed, whatever comes meanwhile. */
	while (skb_queue_empty(&modem->fifo[modem->turn]) || modem->credit[modem->turn] <= 0) {
		if (skb_queue_empty(&modem->fifo[modem->turn]))
			modem->credit[modem->turn] = 0;
		modem->turn = (modem->turn + 1) % LAB_BEARERS;
		modem->credit[modem->turn] += LAB_QUANTUM;
	}
	return skb_peek(&modem->fifo[modem->turn]);
}

/* When this packet may cross at the earliest, ns. */
u64 lab_modem_granted_ns(const struct sk_buff *skb)
{
	return *lab_modem_granted(skb);
}

struct sk_buff *lab_modem_get(struct lab_modem *modem, u64 now)
{
	u32 bearer = modem->turn;
	struct sk_buff *skb = __skb_dequeue(&modem->fifo[bearer]);

	if (!skb)
		return NULL;
	modem->credit[bearer] -= qdisc_pkt_len(skb);
	lab_modem_count(modem, now);
	modem->bytes -= qdisc_pkt_len(skb);
	modem->held[bearer] -= qdisc_pkt_len(skb);
	modem->crossed += qdisc_pkt_len(skb);
	lab_dfc_left(modem, bearer);
	return skb;
}

struct lab_modem_xstats lab_modem_stats(struct lab_modem *modem, u64 now)
{
	lab_modem_count(modem, now);
	return (struct lab_modem_xstats) {
		.byte_ns = modem->byte_ns,
		.bytes = modem->bytes,
		.max_bytes = modem->max_bytes,
	};
}
