// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: /proc/net/tcp_drwa, what it does on each interface
 *
 * One line for each interface whose knobs were turned, in order of their numbers:
 *
 *	NAME lambda=125 queue=7 sockets=3 rounds=812 capped=10321
 *	delay_us=512,100,... rtt_us=0,0,... rivals=1
 *
 * that is, after the name, keys with the knobs' values and with what was counted
 * since they were first turned (enum tcp_drwa_count). delay_us counts the rounds by
 * their queueing delay, rtt_us by their RTT without it, in TCP_DRWA_BINS bins.
 * Readers ignore keys that they do not know; new ones go to the end.
 */
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>
#include <net/tcp_drwa.h>

static void *tcp_drwa_seq_find(struct seq_file *seq, loff_t *pos)
{
	unsigned long ifindex = *pos;
	void *dev = tcp_drwa_dev_find(seq_file_net(seq), &ifindex);

	*pos = ifindex;
	return dev;
}

static void *tcp_drwa_seq_start(struct seq_file *seq, loff_t *pos)
	__acquires(RCU)
{
	rcu_read_lock();
	return tcp_drwa_seq_find(seq, pos);
}

static void *tcp_drwa_seq_next(struct seq_file *seq, void *v, loff_t *pos)
{
	++*pos;
	return tcp_drwa_seq_find(seq, pos);
}

static void tcp_drwa_seq_stop(struct seq_file *seq, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static void tcp_drwa_seq_bins(struct seq_file *seq, const struct tcp_drwa_dev *dev,
			      const char *key, int first)
{
	int i;

	for (i = 0; i < TCP_DRWA_BINS; i++)
		seq_printf(seq, "%s%lu", i ? "," : key,
			   tcp_drwa_counted(dev, first + i));
}

static int tcp_drwa_seq_show(struct seq_file *seq, void *v)
{
	const struct tcp_drwa_dev *dev = v;

	seq_printf(seq, "%s lambda=%d queue=%d sockets=%lu rounds=%lu capped=%lu",
		   dev->netdev->name, READ_ONCE(dev->lambda),
		   rcu_dereference(dev->queue)->id,
		   tcp_drwa_counted(dev, TCP_DRWA_SOCKETS),
		   tcp_drwa_counted(dev, TCP_DRWA_ROUNDS),
		   tcp_drwa_counted(dev, TCP_DRWA_CAPPED));
	tcp_drwa_seq_bins(seq, dev, " delay_us=", TCP_DRWA_DELAY_US);
	tcp_drwa_seq_bins(seq, dev, " rtt_us=", TCP_DRWA_RTT_US);
	seq_printf(seq, " rivals=%d\n", READ_ONCE(dev->rivals));
	return 0;
}

static const struct seq_operations tcp_drwa_seq_ops = {
	.start	= tcp_drwa_seq_start,
	.next	= tcp_drwa_seq_next,
	.stop	= tcp_drwa_seq_stop,
	.show	= tcp_drwa_seq_show,
};

static int __net_init tcp_drwa_proc_net_init(struct net *net)
{
	if (!proc_create_net("tcp_drwa", 0444, net->proc_net, &tcp_drwa_seq_ops,
			     sizeof(struct seq_net_private)))
		return -ENOMEM;
	return 0;
}

static void __net_exit tcp_drwa_proc_net_exit(struct net *net)
{
	remove_proc_entry("tcp_drwa", net->proc_net);
}

static struct pernet_operations tcp_drwa_proc_net_ops = {
	.init	= tcp_drwa_proc_net_init,
	.exit	= tcp_drwa_proc_net_exit,
};

static int __init tcp_drwa_proc_init(void)
{
	return register_pernet_subsys(&tcp_drwa_proc_net_ops);
}

/* After tcp_drwa_sysctl.c, whose interfaces it shows */
late_initcall_sync(tcp_drwa_proc_init);
