// SPDX-License-Identifier: GPL-2.0-only
/* DRWA on the uplink: Qualcomm's modems tell how much they take
 *
 * Their driver (datarmnet's core/dfc_*.c; drivers/soc/qcom/dfc_*.c before 5.10) hears
 * of grants, in bytes by bearer: free space in the modem, by the public sources. The
 * gates (sch_drwa_up.c) are told of them.
 *
 *	dfc_flow_ind		grant of a bearer, unasked or answered
 *	dfc_adjust_grant	an answer's, less what is on its way to the modem
 *	dfc_flow_check		a packet's bearer
 *
 * are tracepoints, which are found by name: of a kernel, or of a module that comes and
 * goes.
 *
 * The driver asks for a new grant when 4/5 of one are used. A gate that is shut cannot
 * wait for that, and asks by itself, if rmnet_qmap_send() is there: DFC over QMAP, from
 * 5.10 on; before, what sends is static. It does so once the driver has had an answer: where
 * DFC is over QMI, the function is there as well, and would use a channel that is not. Who
 * loads this module before rmnet_core has no such queries.
 *
 * A module of its own, for lists of a GKI's symbols that lack the notifier for modules
 * with tracepoints take the gate without it.
 */
#include <linux/compiler.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <linux/tracepoint.h>

#include "drwa_up_dfc.h"

#define UP_QMAP_QUERY	12
#define UP_QMAP_CONTROL	0x80

/* rmnet_qmap_send()'s channel for commands; those for data count from 0. */
#define UP_QMAP_CHANNEL	255

/* What answers have in place of a sequence number */
#define UP_ANSWER_SEQ	0xffff

/* A command of QMAP's, as core/dfc_qmap.c sends it */
struct drwa_up_query {
	u8	control;
	u8	mux;
	__be16	len;		/* of what follows */
	u8	command;
	u8	type;		/* 0: request */
	u16	reserved;
	__be32	transaction;
	u8	version;
	u8	reserved2;
	u8	bearer;
	u8	reserved3;
	u32	reserved4;
} __packed;

/* Resolved if the driver is there first. Code that takes a weak symbol's address has
 * relocations by the GOT where clang makes it for arm64, which its loader of modules refuses:
 * data has none.
 */
#pragma weak rmnet_qmap_send
static int (*drwa_up_send)(struct sk_buff *skb, u8 ch, bool flush) = rmnet_qmap_send;

static void drwa_up_query(u8 mux_id, u8 bearer_id)
{
	struct drwa_up_query *query;
	struct sk_buff *skb = alloc_skb(sizeof(*query), GFP_KERNEL);

	if (!skb)
		return;
	skb->protocol = htons(ETH_P_MAP);
	query = skb_put_zero(skb, sizeof(*query));
	query->control = UP_QMAP_CONTROL;
	query->mux = mux_id;
	query->len = htons(sizeof(*query) - offsetof(struct drwa_up_query, command));
	query->command = UP_QMAP_QUERY;
	query->version = 1;
	query->bearer = bearer_id;
	/* rmnet_ctl_send_client() compares its client before it takes that by itself. */
	rcu_read_lock();
	READ_ONCE(drwa_up_send)(skb, UP_QMAP_CHANNEL, false);
	rcu_read_unlock();
}

/* Their types are the driver's: a kernel with CFI compares them. */
static void drwa_up_flow_ind(void *data, int src, int idx, u8 mux_id, u8 bearer_id,
			     u32 grant, u16 seq_num, u8 ack_req, u32 ancillary)
{
	drwa_up_grant(mux_id, bearer_id, grant,
		      seq_num == UP_ANSWER_SEQ ? DRWA_UP_ANSWER : DRWA_UP_UNASKED);
}

static void drwa_up_adjust_grant(void *data, u8 mux_id, u8 bearer_id, u32 grant,
				 u32 rx_bytes, u32 inflight, u32 a_grant)
{
	drwa_up_grant(mux_id, bearer_id, a_grant, DRWA_UP_ADJUSTED);
}

static void drwa_up_flow_check(void *data, const char *name, u8 bearer_id, unsigned int len,
			       u32 mark, u32 grant)
{
	drwa_up_sent(name, bearer_id, len);
}

static const struct {
	const char	*name;
	void		*probe;
	bool		asked;	/* drivers that cannot be asked have it with other types */
} drwa_up_probes[] = {
	{ "dfc_flow_ind", drwa_up_flow_ind },
	{ "dfc_adjust_grant", drwa_up_adjust_grant },
	{ "dfc_flow_check", drwa_up_flow_check, true },
};

static void drwa_up_probe(struct tracepoint *tp, void *leave)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(drwa_up_probes); i++) {
		if (strcmp(tp->name, drwa_up_probes[i].name) ||
		    (drwa_up_probes[i].asked && !READ_ONCE(drwa_up_send)))
			continue;
		if (leave)
			tracepoint_probe_unregister(tp, drwa_up_probes[i].probe, NULL);
		else if (tracepoint_probe_register(tp, drwa_up_probes[i].probe, NULL))
			pr_warn("drwa_up_dfc: %s cannot be heard\n", tp->name);
	}
}

#ifdef CONFIG_MODULES
static int drwa_up_module_event(struct notifier_block *block, unsigned long action,
				void *data)
{
	struct tp_module *from = data;
	int i;

	if (action != MODULE_STATE_COMING && action != MODULE_STATE_GOING)
		return NOTIFY_OK;
	for (i = 0; i < from->mod->num_tracepoints; i++)
		drwa_up_probe(tracepoint_ptr_deref(&from->mod->tracepoints_ptrs[i]),
			      action == MODULE_STATE_GOING ? block : NULL);
	return NOTIFY_OK;
}

static struct notifier_block drwa_up_modules = {
	.notifier_call	= drwa_up_module_event,
};

static int drwa_up_hear_modules(void)
{
	return register_tracepoint_module_notifier(&drwa_up_modules);
}

static void drwa_up_leave_modules(void)
{
	unregister_tracepoint_module_notifier(&drwa_up_modules);
}
#else
static int drwa_up_hear_modules(void)
{
	return 0;
}

static void drwa_up_leave_modules(void)
{
}
#endif

static int __init drwa_up_dfc_init(void)
{
	int err;

	for_each_kernel_tracepoint(drwa_up_probe, NULL);
	err = drwa_up_hear_modules();
	if (err) {
		for_each_kernel_tracepoint(drwa_up_probe, drwa_up_probe);
		tracepoint_synchronize_unregister();
		return err;
	}
	if (READ_ONCE(drwa_up_send))
		drwa_up_set_query(drwa_up_query);
	return 0;
}

static void __exit drwa_up_dfc_exit(void)
{
	drwa_up_set_query(NULL);
	drwa_up_leave_modules();
	for_each_kernel_tracepoint(drwa_up_probe, drwa_up_probe);
	tracepoint_synchronize_unregister();
}

module_init(drwa_up_dfc_init);
module_exit(drwa_up_dfc_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("DRWA on the uplink: what Qualcomm's modems tell");
