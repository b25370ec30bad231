// SPDX-License-Identifier: GPL-2.0-only
/* A modem that tells how much it takes, and its driver, as Qualcomm's DFC has them
 *
 * The modem's words are grants, in bytes: what it takes beyond what it has. The driver
 * counts them down, asks when 4/5 of one are used, and sends nothing without one
 * (dfc_qmi_burst_check() and dfc_qmap_send_query() of datarmnet). Who has no grant is
 * given one when an eighth of the modem's memory is free, as a modem that tells nothing
 * wakes its host's queue. A query takes half of @late_ns on its way, and so does its
 * answer. An answer that leaves less than a fifth, beside the bytes on their way, brings
 * no further query: nobody else would ask, so the driver gives itself a grant when it has
 * heard nothing for 50 ms (dfc_update_fc_map(), qmi_rmnet_watchdog_fn()). What the driver
 * hears it tells the tracepoints of lab_dfc_trace.h, the adjusted form of answers alone
 * (dfc_adjust_grant()); anybody may ask by rmnet_qmap_send(). All of that is of a bearer.
 *
 * The host's qdisc stands before the modem itself, and has one bearer; or before lab_rmnet.c,
 * whose transmit queues are stopped and woken.
 *
 * With the parameter queries=0 nobody asks, and the modem itself tells then, as over QMI.
 */
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <net/pkt_sched.h>

#include "drwa_up_dfc.h"
#include "lab_modem.h"

#define CREATE_TRACE_POINTS
#include "lab_dfc_trace.h"

#define LAB_DFC_MUX	1
#define LAB_DFC_BEARER	5	/* and those that follow */
#define LAB_DFC_FIRST	10240	/* bytes, DEFAULT_GRANT of older drivers */
#define LAB_DFC_SCALE	5	/* qmi_rmnet_scale_factor */
#define LAB_DFC_CALL	20480	/* bytes, DEFAULT_CALL_GRANT */
#define LAB_DFC_STALL_NS (50 * NSEC_PER_MSEC)	/* WATCHDOG_EXPIRE_JF */
#define LAB_DFC_WORDS	64	/* on their way */
#define LAB_DFC_QUERY	12	/* QMAP_DFC_QUERY */
#define LAB_DFC_ANSWER	0xffff	/* in place of a sequence number */

struct lab_dfc_word {
	u64	at_ns;		/* when the modem says it, or the driver hears it */
	u32	bearer;
	u32	grant;
	u32	received;	/* bytes, since the word before */
	u16	seq;
	bool	said;
};

struct lab_dfc_bearer {
	u32	grant;		/* the driver's, bytes */
	u32	threshold;
	u32	in_flight;	/* sent, and not told of */
	bool	starved;	/* the driver has none, and the modem owes it */
	u64	stalled_ns;	/* when the driver stops to wait; 0: it does not */

	u32	received;	/* the modem's, since its last word */
	u16	seq;
};

struct lab_dfc {
	struct qdisc_watchdog watchdog;
	struct Qdisc	*sch;
	struct lab_modem *modem;
	u64		late_ns;
	u32		hidden;		/* bytes that no grant tells of */
	struct lab_dfc_bearer bearer[LAB_BEARERS];

	unsigned int	head, tail;
	struct lab_dfc_word word[LAB_DFC_WORDS];
};

static bool lab_dfc_queries = true;
module_param_named(queries, lab_dfc_queries, bool, 0644);

/* The lab has one phone, and at most one interface above its modem's. */
static struct lab_dfc *lab_dfc_only;
static struct net_device *lab_dfc_device;

/* The qdisc is run when the next word is due. */
static void lab_dfc_wait(struct lab_dfc *dfc)
{
	u64 next_ns = U64_MAX;
	unsigned int i;

	for (i = 0; i < LAB_BEARERS; i++)
		if (dfc->bearer[i].stalled_ns)
			next_ns = min(next_ns, dfc->bearer[i].stalled_ns);
	for (i = dfc->head; i != dfc->tail; i++)
		next_ns = min(next_ns, dfc->word[i % LAB_DFC_WORDS].at_ns);
	if (next_ns != U64_MAX)
		qdisc_watchdog_schedule_ns(&dfc->watchdog, next_ns);
}

/* Said in half of the time that it takes, and heard in the other half */
static void lab_dfc_tell(struct lab_dfc *dfc, u32 bearer, u16 seq)
{
	u64 now = ktime_get_ns();

	if (dfc->tail - dfc->head == LAB_DFC_WORDS)
		return;
	dfc->word[dfc->tail++ % LAB_DFC_WORDS] = (struct lab_dfc_word){
		.at_ns = now + dfc->late_ns / 2, .bearer = bearer, .seq = seq,
	};
	lab_dfc_wait(dfc);
}

static void lab_dfc_say(struct lab_dfc *dfc, struct lab_dfc_word *word, u64 now)
{
	struct lab_dfc_bearer *b = &dfc->bearer[word->bearer];
	u32 bytes = dfc->modem->held[word->bearer];

	bytes -= min(bytes, dfc->hidden);
	word->said = true;
	word->at_ns = now + dfc->late_ns - dfc->late_ns / 2;
	word->grant = dfc->modem->limit - min(bytes, dfc->modem->limit);
	word->received = b->received;
	b->received = 0;
	if (!word->grant)
		b->starved = true;
}

/* Whoever waits for a grant goes on. */
static void lab_dfc_wake(const struct lab_dfc *dfc, u32 bearer)
{
	struct net_device *dev = READ_ONCE(lab_dfc_device);

	if (dev && dfc->bearer[bearer].grant)
		netif_tx_wake_queue(netdev_get_tx_queue(dev, lab_rmnet_queue(dev, bearer)));
}

static void lab_dfc_hear(struct lab_dfc *dfc, const struct lab_dfc_word *word, u64 now)
{
	struct lab_dfc_bearer *b = &dfc->bearer[word->bearer];
	u8 id = LAB_DFC_BEARER + word->bearer;
	bool answer = word->seq == LAB_DFC_ANSWER;

	b->in_flight -= answer ? min(b->in_flight, word->received) : b->in_flight;
	b->grant = word->grant - min(word->grant, b->in_flight);
	if (answer && b->grant < word->grant / LAB_DFC_SCALE) {
		b->threshold = b->grant;
		if (!b->stalled_ns)
			b->stalled_ns = now + LAB_DFC_STALL_NS;
	} else {
		b->threshold = b->grant / LAB_DFC_SCALE;
		b->stalled_ns = 0;
	}
	trace_dfc_flow_ind(1, 0, LAB_DFC_MUX, id, word->grant, word->seq, 0, 0);
	if (answer)
		trace_dfc_adjust_grant(LAB_DFC_MUX, id, word->grant, word->received,
				       b->in_flight, b->grant);
	lab_dfc_wake(dfc, word->bearer);
}

/* It has waited for too long. */
static void lab_dfc_go_on(struct lab_dfc *dfc, u32 bearer)
{
	struct lab_dfc_bearer *b = &dfc->bearer[bearer];

	b->stalled_ns = 0;
	b->in_flight = 0;
	if (!b->grant)
		b->grant = LAB_DFC_CALL;
	b->threshold = b->grant / LAB_DFC_SCALE;
	lab_dfc_wake(dfc, bearer);
}

/**
 * lab_dfc_run() - says and hears what is due
 * @modem:	the modem
 * @now:	ns
 */
void lab_dfc_run(struct lab_modem *modem, u64 now)
{
	struct lab_dfc *dfc = modem->dfc;
	struct lab_dfc_word *word;
	unsigned int i;

	if (!dfc)
		return;
	for (i = dfc->head; i != dfc->tail; i++) {
		word = &dfc->word[i % LAB_DFC_WORDS];
		if (!word->said && word->at_ns <= now)
			lab_dfc_say(dfc, word, now);
	}
	for (; dfc->head != dfc->tail; dfc->head++) {
		word = &dfc->word[dfc->head % LAB_DFC_WORDS];
		if (!word->said || word->at_ns > now)
			break;
		lab_dfc_hear(dfc, word, now);
	}
	for (i = 0; i < LAB_BEARERS; i++)
		if (dfc->bearer[i].stalled_ns && dfc->bearer[i].stalled_ns <= now)
			lab_dfc_go_on(dfc, i);
	lab_dfc_wait(dfc);
}

bool lab_dfc_takes(const struct lab_modem *modem)
{
	return !modem->dfc || modem->dfc->bearer[0].grant;
}

/* Does an interface above stop by itself? */
bool lab_dfc_drives(const struct lab_modem *modem)
{
	return modem->dfc && READ_ONCE(lab_dfc_device);
}

u32 lab_dfc_bearer(const struct lab_modem *modem, const struct sk_buff *skb)
{
	return lab_dfc_drives(modem) ? lab_rmnet_bearer(skb) : 0;
}

/* The driver hands a packet over. */
static void lab_dfc_sent(struct lab_dfc *dfc, u32 bearer, u32 len)
{
	struct lab_dfc_bearer *b = &dfc->bearer[bearer];
	u32 before = b->grant;

	b->grant -= min(b->grant, len);
	b->in_flight += len;
	if (before > b->threshold && b->grant <= b->threshold)
		lab_dfc_tell(dfc, bearer, lab_dfc_queries ? LAB_DFC_ANSWER : ++b->seq);
}

/* The modem has got it. */
void lab_dfc_put(struct lab_modem *modem, u32 bearer, u32 len)
{
	struct lab_dfc *dfc = modem->dfc;

	if (!dfc)
		return;
	dfc->bearer[bearer].received += len;
	if (!lab_dfc_drives(modem))
		lab_dfc_sent(dfc, bearer, len);
}

/* The modem has sent one. */
void lab_dfc_left(struct lab_modem *modem, u32 bearer)
{
	struct lab_dfc *dfc = modem->dfc;
	struct lab_dfc_bearer *b;

	if (!dfc)
		return;
	b = &dfc->bearer[bearer];
	if (!b->starved || modem->held[bearer] > modem->limit - modem->limit / 8)
		return;
	b->starved = false;
	lab_dfc_tell(dfc, bearer, ++b->seq);
}

/**
 * lab_dfc_drive() - an interface above the modem's
 * @dev:	its transmit queues are stopped and woken from now on; NULL: the modem's host is
 */
void lab_dfc_drive(struct net_device *dev)
{
	WRITE_ONCE(lab_dfc_device, dev);
}

/**
 * lab_dfc_check() - that interface sends a packet, which its bearer's grant counts
 * @dev:	it
 * @bearer:	the packet's
 * @len:	its length, bytes
 *
 * A bearer without a grant has its queue stopped, but ACKs go on.
 */
void lab_dfc_check(struct net_device *dev, u32 bearer, u32 len)
{
	struct lab_dfc *dfc;
	struct Qdisc *root;

	rcu_read_lock();
	dfc = READ_ONCE(lab_dfc_only);
	if (dfc) {
		root = qdisc_root_sleeping(dfc->sch);
		spin_lock_bh(qdisc_lock(root));
		trace_dfc_flow_check(dev->name, LAB_DFC_BEARER + bearer, len, bearer,
				     dfc->bearer[bearer].grant);
		lab_dfc_sent(dfc, bearer, len);
		if (!dfc->bearer[bearer].grant)
			netif_tx_stop_queue(netdev_get_tx_queue(dev,
								lab_rmnet_queue(dev, bearer)));
		spin_unlock_bh(qdisc_lock(root));
	}
	rcu_read_unlock();
}

/**
 * rmnet_qmap_send() - a command for the modem
 * @skb:	QMAP's; of these, the lab's modem knows the query for grants
 * @ch:		channel
 * @flush:	ignored
 *
 * Return: 0.
 */
int rmnet_qmap_send(struct sk_buff *skb, u8 ch, bool flush)
{
	struct lab_dfc *dfc;
	struct Qdisc *root;
	u32 bearer;

	rcu_read_lock();
	dfc = READ_ONCE(lab_dfc_only);
	if (dfc && lab_dfc_queries && skb->len >= 20 && skb->data[1] == LAB_DFC_MUX &&
	    skb->data[4] == LAB_DFC_QUERY) {
		bearer = skb->data[14] - LAB_DFC_BEARER;
		root = qdisc_root_sleeping(dfc->sch);
		spin_lock_bh(qdisc_lock(root));
		if (bearer < LAB_BEARERS)
			lab_dfc_tell(dfc, bearer, LAB_DFC_ANSWER);
		spin_unlock_bh(qdisc_lock(root));
	}
	rcu_read_unlock();
	consume_skb(skb);
	return 0;
}
EXPORT_SYMBOL(rmnet_qmap_send);

int lab_dfc_init(struct lab_modem *modem, struct Qdisc *sch, u64 late_ns, u32 hidden)
{
	struct lab_dfc *dfc = kzalloc(sizeof(*dfc), GFP_KERNEL);
	int i;

	if (!dfc)
		return -ENOMEM;
	dfc->sch = sch;
	dfc->modem = modem;
	dfc->late_ns = late_ns;
	dfc->hidden = hidden;
	for (i = 0; i < LAB_BEARERS; i++) {
		dfc->bearer[i].grant = LAB_DFC_FIRST;
		dfc->bearer[i].threshold = LAB_DFC_FIRST / LAB_DFC_SCALE;
	}
	qdisc_watchdog_init(&dfc->watchdog, sch);
	modem->dfc = dfc;
	WRITE_ONCE(lab_dfc_only, dfc);
	return 0;
}

void lab_dfc_destroy(struct lab_modem *modem)
{
	if (!modem->dfc)
		return;
	WRITE_ONCE(lab_dfc_only, NULL);
	synchronize_net();
	qdisc_watchdog_cancel(&modem->dfc->watchdog);
	kfree(modem->dfc);
	modem->dfc = NULL;
}
