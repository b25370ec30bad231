// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: the knobs net.ipv4.conf.<interface>.tcp_drwa_lambda and tcp_drwa_queue
 *
 * Two files for each interface, for IPv4 and IPv6 alike. The first is the target
 * in hundredths of a bandwidth-delay product, 100..1000, or 0 for off. The other
 * tells where packets wait for the interface, such as in a base station: all
 * interfaces of a name space with the same number share one queue, and what
 * their connections learn of it. 0 is a queue of its own.
 *
 * The table is registered from a netdevice notifier beside devinet's own, because
 * a new IPV4_DEVCONF entry would change a structure that module ABIs freeze. An
 * interface without the files is not governed.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/xarray.h>
#include <net/ip.h>
#include <net/mptcp.h>
#include <net/netns/generic.h>
#include <net/tcp_drwa.h>

#include "tcp_drwa_compat.h"

/* As with TCP's other keys that any name space may turn */
DEFINE_STATIC_KEY_DEFERRED_FALSE(tcp_drwa_enabled, HZ);

/* Serialises the knobs' values with the count in tcp_drwa_enabled and with the
 * queues and their users.
 */
static DEFINE_MUTEX(tcp_drwa_lock);
static unsigned int tcp_drwa_net_id __read_mostly;

struct tcp_drwa_net {
	struct xarray devs;	/* struct tcp_drwa_dev by ifindex */
	struct xarray queues;	/* struct tcp_drwa_queue by id, but for 0 */
};

/**
 * tcp_drwa_dev_get() - state of an interface
 * @net:	name space
 * @ifindex:	interface; may be gone
 *
 * Return: valid until the end of the caller's RCU read side, or NULL.
 */
struct tcp_drwa_dev *tcp_drwa_dev_get(struct net *net, int ifindex)
{
	struct tcp_drwa_net *dn = net_generic(net, tcp_drwa_net_id);

	return xa_load(&dn->devs, ifindex);
}

/**
 * tcp_drwa_dev_find() - first interface from a number on
 * @net:	name space
 * @ifindex:	number, which becomes that of the interface
 *
 * Return: as tcp_drwa_dev_get()
 */
struct tcp_drwa_dev *tcp_drwa_dev_find(struct net *net, unsigned long *ifindex)
{
	struct tcp_drwa_net *dn = net_generic(net, tcp_drwa_net_id);

	return xa_find(&dn->devs, ifindex, INT_MAX, XA_PRESENT);
}

/**
 * tcp_drwa_counted() - a counter of an interface
 * @dev:	interface
 * @item:	enum tcp_drwa_count, or a bin from one on
 */
unsigned long tcp_drwa_counted(const struct tcp_drwa_dev *dev, int item)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->stats, cpu)->count[item]);
	return sum;
}

/**
 * tcp_drwa_dev_of() - interface that governs a socket
 * @sk:		full socket
 * @ifindex:	interface that data last came from; 0: none yet, then it is the one
 *		that the cached route leaves by
 *
 * Return: valid until the end of the caller's RCU read side; NULL where there is
 * none, or the socket stands aside.
 */
struct tcp_drwa_dev *tcp_drwa_dev_of(const struct sock *sk, int ifindex)
{
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

static struct drwa_link *tcp_drwa_link(const struct tcp_drwa_dev *dev)
{
	return &rcu_dereference(dev->queue)->link;
}

/* Bytes that came through the queue, whosever they are. Of interfaces that are
 * stacked, the lowest has what the others have unpacked, and so the most.
 */
static u32 tcp_drwa_came(const struct tcp_drwa_dev *of)
{
	struct net *net = dev_net(of->netdev);
	struct rtnl_link_stats64 stats;
	unsigned long ifindex = 0;
	struct tcp_drwa_dev *dev;
	u64 most = 0;

	for (; (dev = tcp_drwa_dev_find(net, &ifindex)); ifindex++) {
		if (rcu_access_pointer(dev->queue) == rcu_access_pointer(of->queue))
			most = max(most, (u64)dev_get_stats(dev->netdev, &stats)->rx_bytes);
	}
	return most;
}

static int tcp_drwa_bin(u32 us)
{
	return min(fls(us >> TCP_DRWA_BIN_SHIFT), TCP_DRWA_BINS - 1);
}

/* Counts a round, and what it saw if it had an RTT. */
static void tcp_drwa_count_round(const struct tcp_drwa_dev *dev,
				 const struct drwa *d, bool sampled)
{
	u32 delay_us = d->rtt_us > d->rtt_min_us ? d->rtt_us - d->rtt_min_us : 0;

	this_cpu_inc(dev->stats->count[TCP_DRWA_ROUNDS]);
	if (!sampled)
		return;
	this_cpu_inc(dev->stats->count[TCP_DRWA_DELAY_US + tcp_drwa_bin(delay_us)]);
	this_cpu_inc(dev->stats->count[TCP_DRWA_RTT_US + tcp_drwa_bin(d->rtt_min_us)]);
}

/**
 * tcp_drwa_dev_start() - take a connection's first RTT sample
 * @dev:	interface that it came from, under RCU
 * @d:		connection, just reset
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @rtt_us:	as for drwa_start()
 * @owd_us:	as for drwa_start()
 */
void tcp_drwa_dev_start(struct tcp_drwa_dev *dev, struct drwa *d, u32 now_us,
			u32 rcv_nxt, u32 rtt_us, u32 owd_us)
{
	drwa_start(d, tcp_drwa_link(dev), now_us, rcv_nxt, rtt_us, owd_us);
}

/**
 * tcp_drwa_dev_round() - end a round of a connection and count it
 * @dev:	interface that governs it, under RCU
 * @d:		connection; drwa_due() was true
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @mss:	segment size, bytes
 *
 * Return: false if lambda is 0; nothing happened then.
 */
bool tcp_drwa_dev_round(struct tcp_drwa_dev *dev, struct drwa *d, u32 now_us,
			u32 rcv_nxt, u32 mss)
{
	struct drwa_link *link = tcp_drwa_link(dev);
	u32 lambda = READ_ONCE(dev->lambda), came = 0;
	bool sampled = d->samples;

	if (!lambda)
		return false;
	if (!d->lambda)
		this_cpu_inc(dev->stats->count[TCP_DRWA_SOCKETS]);
	d->lambda = lambda;
	if (drwa_count_due(link, now_us))
		came = tcp_drwa_came(dev);
	drwa_round(d, link, now_us, rcv_nxt, mss, came);
	tcp_drwa_count_round(dev, d, sampled);
	return true;
}

/**
 * tcp_drwa_quick_acks() - acknowledge each segment of the next round, if they are few
 * @sk:		socket
 * @dev:	interface that governs it, under RCU
 * @d:		the law's state of it
 */
void tcp_drwa_quick_acks(struct sock *sk, struct tcp_drwa_dev *dev, const struct drwa *d)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (drwa_few(d, tcp_drwa_link(dev), tcp_sk(sk)->advmss))
		icsk->icsk_ack.quick = TCP_MAX_QUICKACKS;
}

/**
 * tcp_drwa_rcvbuf() - buffer for a window
 * @sk:		socket
 * @window:	bytes
 *
 * Return: room for twice that, so that what waits behind a lost segment leaves
 * room for as much, and some cushion, as tcp_rcv_space_adjust() has it.
 */
u64 tcp_drwa_rcvbuf(const struct sock *sk, u32 window)
{
	window = min_t(u32, window, TCP_DRWA_RMEM_MAX / 2);
	return tcp_drwa_space_from_win(sk, 2 * window + 16 * tcp_sk(sk)->advmss);
}

/**
 * tcp_drwa_rcvbuf_max() - how far the buffer of a governed socket may grow
 * @sk:		socket
 * @wnd:	its target, 0: none yet
 * @rmem_max:	tcp_rmem[2]
 *
 * An application that pauses leaves the buffer full. What it does not leave to
 * other connections is bounded as without DRWA, or by what the link needs.
 */
int tcp_drwa_rcvbuf_max(const struct sock *sk, u32 wnd, int rmem_max)
{
	u64 bound = TCP_DRWA_RMEM_MAX;

	if (!READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_moderate_rcvbuf))
		return rmem_max;
	if (wnd)
		bound = min_t(u64, bound, tcp_drwa_rcvbuf(sk, wnd));
	return max_t(int, rmem_max, bound);
}

static void tcp_drwa_set_lambda(struct tcp_drwa_dev *dev, int lambda)
{
	mutex_lock(&tcp_drwa_lock);
	if (!dev->lambda && lambda)
		static_branch_deferred_inc(&tcp_drwa_enabled);
	else if (dev->lambda && !lambda)
		static_branch_slow_dec_deferred(&tcp_drwa_enabled);
	WRITE_ONCE(dev->lambda, lambda);
	mutex_unlock(&tcp_drwa_lock);
}

static struct tcp_drwa_queue *tcp_drwa_queue_get(struct tcp_drwa_net *dn, int id)
{
	struct tcp_drwa_queue *queue = id ? xa_load(&dn->queues, id) : NULL;
	int err;

	if (queue) {
		queue->users++;
		return queue;
	}
	queue = kzalloc(sizeof(*queue), GFP_KERNEL);
	if (!queue)
		return ERR_PTR(-ENOMEM);
	queue->id = id;
	queue->users = 1;
	err = id ? xa_insert(&dn->queues, id, queue, GFP_KERNEL) : 0;
	if (err) {
		kfree(queue);
		return ERR_PTR(err);
	}
	return queue;
}

static void tcp_drwa_queue_put(struct tcp_drwa_net *dn, struct tcp_drwa_queue *queue)
{
	if (!queue || --queue->users)
		return;
	if (queue->id)
		xa_erase(&dn->queues, queue->id);
	kfree_rcu(queue, rcu);
}

/* Connections see it when their round ends. */
static int tcp_drwa_set_queue(struct net *net, struct tcp_drwa_dev *dev, int id)
{
	struct tcp_drwa_net *dn = net_generic(net, tcp_drwa_net_id);
	struct tcp_drwa_queue *old, *queue;
	int err = 0;

	mutex_lock(&tcp_drwa_lock);
	old = rcu_dereference_protected(dev->queue, lockdep_is_held(&tcp_drwa_lock));
	if (old && old->id == id)
		goto unlock;
	queue = tcp_drwa_queue_get(dn, id);
	if (IS_ERR(queue)) {
		err = PTR_ERR(queue);
		goto unlock;
	}
	rcu_assign_pointer(dev->queue, queue);
	tcp_drwa_queue_put(dn, old);
unlock:
	mutex_unlock(&tcp_drwa_lock);
	return err;
}

/* Reads or writes one of the files; @value is what it holds, and then what was
 * written.
 */
static int tcp_drwa_dointvec(int *value, int write, void *buffer, size_t *lenp,
			     loff_t *ppos)
{
	struct ctl_table tmp = {
		.data = value,
		.maxlen = sizeof(*value),
	};

	return proc_dointvec(&tmp, write, buffer, lenp, ppos);
}

static int tcp_drwa_lambda_handler(TCP_DRWA_CTL_TABLE *ctl, int write,
				   void *buffer, size_t *lenp, loff_t *ppos)
{
	struct tcp_drwa_dev *dev = ctl->extra1;
	int lambda = READ_ONCE(dev->lambda);
	int ret;

	ret = tcp_drwa_dointvec(&lambda, write, buffer, lenp, ppos);
	if (ret || !write)
		return ret;
	if (lambda && (lambda < DRWA_LAMBDA_MIN || lambda > DRWA_LAMBDA_MAX))
		return -EINVAL;
	tcp_drwa_set_lambda(dev, lambda);
	return 0;
}

static int tcp_drwa_queue_handler(TCP_DRWA_CTL_TABLE *ctl, int write,
				  void *buffer, size_t *lenp, loff_t *ppos)
{
	struct tcp_drwa_dev *dev = ctl->extra1;
	int id, ret;

	rcu_read_lock();
	id = rcu_dereference(dev->queue)->id;
	rcu_read_unlock();
	ret = tcp_drwa_dointvec(&id, write, buffer, lenp, ppos);
	if (ret || !write)
		return ret;
	if (id < 0)
		return -EINVAL;
	return tcp_drwa_set_queue(dev_net(dev->netdev), dev, id);
}

static int tcp_drwa_register(struct tcp_drwa_dev *dev)
{
	char path[sizeof("net/ipv4/conf/") + IFNAMSIZ];

	snprintf(path, sizeof(path), "net/ipv4/conf/%s", dev->netdev->name);
	dev->table[0] = (struct ctl_table){
		.procname	= "tcp_drwa_lambda",
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= tcp_drwa_lambda_handler,
		.extra1		= dev,
	};
	dev->table[1] = (struct ctl_table){
		.procname	= "tcp_drwa_queue",
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= tcp_drwa_queue_handler,
		.extra1		= dev,
	};
	dev->header = register_net_sysctl_sz(dev_net(dev->netdev), path, dev->table,
					     ARRAY_SIZE(dev->table) - 1);
	return dev->header ? 0 : -ENOMEM;
}

static void tcp_drwa_unregister(struct tcp_drwa_dev *dev)
{
	if (dev->header)
		unregister_net_sysctl_table(dev->header);
	dev->header = NULL;
}

static void tcp_drwa_free(struct rcu_head *rcu)
{
	struct tcp_drwa_dev *dev = container_of(rcu, struct tcp_drwa_dev, rcu);

	free_percpu(dev->stats);
	kfree(dev);
}

static void tcp_drwa_remove(struct net_device *netdev)
{
	struct tcp_drwa_net *dn = net_generic(dev_net(netdev), tcp_drwa_net_id);
	struct tcp_drwa_dev *dev = xa_erase(&dn->devs, netdev->ifindex);

	if (!dev)
		return;
	/* Waits for writers; none can come after it. */
	tcp_drwa_unregister(dev);
	tcp_drwa_set_lambda(dev, 0);
	mutex_lock(&tcp_drwa_lock);
	tcp_drwa_queue_put(dn, rcu_dereference_protected(dev->queue, true));
	mutex_unlock(&tcp_drwa_lock);
	call_rcu(&dev->rcu, tcp_drwa_free);
}

static int tcp_drwa_add(struct net_device *netdev)
{
	struct tcp_drwa_net *dn = net_generic(dev_net(netdev), tcp_drwa_net_id);
	struct tcp_drwa_dev *dev;
	int err;

	/* devinet gives no directory to names that sysctl gives a meaning. */
	if ((netdev->flags & IFF_LOOPBACK) || !sysctl_dev_name_is_allowed(netdev->name))
		return 0;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->netdev = netdev;
	dev->stats = alloc_percpu(struct tcp_drwa_stats);
	err = dev->stats ? tcp_drwa_set_queue(dev_net(netdev), dev, 0) : -ENOMEM;
	if (!err)
		err = xa_insert(&dn->devs, netdev->ifindex, dev, GFP_KERNEL);
	if (err) {
		kfree(rcu_dereference_protected(dev->queue, true));
		tcp_drwa_free(&dev->rcu);
		return err;
	}
	err = tcp_drwa_register(dev);
	if (err)
		tcp_drwa_remove(netdev);
	return err;
}

static int tcp_drwa_rename(struct net_device *netdev)
{
	struct tcp_drwa_dev *dev = tcp_drwa_dev_get(dev_net(netdev), netdev->ifindex);
	int err = 0;

	if (!dev)
		return tcp_drwa_add(netdev);
	tcp_drwa_unregister(dev);
	if (sysctl_dev_name_is_allowed(netdev->name))
		err = tcp_drwa_register(dev);
	/* What nobody could turn off any more is off. */
	if (!dev->header)
		tcp_drwa_remove(netdev);
	return err;
}

static int tcp_drwa_netdev_event(struct notifier_block *nb, unsigned long event,
				 void *ptr)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(ptr);
	int err = 0;

	switch (event) {
	case NETDEV_REGISTER:
		err = tcp_drwa_add(netdev);
		break;
	case NETDEV_UNREGISTER:
		tcp_drwa_remove(netdev);
		break;
	case NETDEV_CHANGENAME:
		err = tcp_drwa_rename(netdev);
		break;
	}
	/* An interface without the knobs works; it is only never governed. */
	if (err)
		netdev_warn(netdev, "no tcp_drwa_lambda: error %d\n", err);
	return NOTIFY_DONE;
}

static struct notifier_block tcp_drwa_netdev_notifier = {
	.notifier_call = tcp_drwa_netdev_event,
};

static int __net_init tcp_drwa_net_init(struct net *net)
{
	struct tcp_drwa_net *dn = net_generic(net, tcp_drwa_net_id);

	xa_init(&dn->devs);
	xa_init(&dn->queues);
	return 0;
}

static void __net_exit tcp_drwa_net_exit(struct net *net)
{
	struct tcp_drwa_net *dn = net_generic(net, tcp_drwa_net_id);

	/* The interfaces went before. */
	WARN_ON_ONCE(!xa_empty(&dn->devs) || !xa_empty(&dn->queues));
	xa_destroy(&dn->devs);
	xa_destroy(&dn->queues);
}

static struct pernet_operations tcp_drwa_net_ops = {
	.init	= tcp_drwa_net_init,
	.exit	= tcp_drwa_net_exit,
	.id	= &tcp_drwa_net_id,
	.size	= sizeof(struct tcp_drwa_net),
};

static int __init tcp_drwa_sysctl_init(void)
{
	int err;

	err = register_pernet_subsys(&tcp_drwa_net_ops);
	if (err)
		return err;
	err = register_netdevice_notifier(&tcp_drwa_netdev_notifier);
	if (err)
		unregister_pernet_subsys(&tcp_drwa_net_ops);
	return err;
}
late_initcall(tcp_drwa_sysctl_init);
