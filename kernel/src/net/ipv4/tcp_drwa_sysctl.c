// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: the knobs net.ipv4.conf.<interface>.tcp_drwa_lambda, _queue and _rivals
 *
 * Three files for each interface, for IPv4 and IPv6 alike. The first is the target
 * in hundredths of a bandwidth-delay product, 100..1000, or 0 for off. The second
 * tells where packets wait for the interface, such as in a base station: all
 * interfaces of a name space with the same number share one queue, and what
 * their connections learn of it. 0 is a queue of its own. The third one, 0, says
 * that traffic that nobody governs is no rival there.
 *
 * The table is registered from a netdevice notifier beside devinet's own, because
 * a new IPV4_DEVCONF entry would change a structure that module ABIs freeze. An
 * interface without the files is not governed. All else of an interface begins
 * when one of them is first given another value than it had.
 */
#include <linux/if_arp.h>
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

/* Serialises the knobs' values with the count in tcp_drwa_enabled, and with the queues,
 * their interfaces and the count of their bytes.
 */
static DEFINE_MUTEX(tcp_drwa_lock);
static LIST_HEAD(tcp_drwa_queues);
static unsigned int tcp_drwa_net_id __read_mostly;

struct tcp_drwa_net {
	struct xarray files;	/* struct tcp_drwa_files by ifindex */
	struct xarray devs;	/* struct tcp_drwa_dev by ifindex */
	struct xarray queues;	/* struct tcp_drwa_queue by id, but for 0 */
};

/**
 * tcp_drwa_files_of() - knobs of an interface
 * @netdev:	interface that cannot go meanwhile
 *
 * Return: NULL where it has none.
 */
struct tcp_drwa_files *tcp_drwa_files_of(const struct net_device *netdev)
{
	struct tcp_drwa_net *dn = net_generic(dev_net(netdev), tcp_drwa_net_id);

	return xa_load(&dn->files, netdev->ifindex);
}

/**
 * tcp_drwa_dev_get() - state of an interface
 * @net:	name space
 * @ifindex:	interface; may be gone
 *
 * Return: valid until the end of the caller's RCU read side; NULL where nothing was
 * ever set.
 */
struct tcp_drwa_dev *tcp_drwa_dev_get(struct net *net, int ifindex)
{
	struct tcp_drwa_net *dn = net_generic(net, tcp_drwa_net_id);

	return xa_load(&dn->devs, ifindex);
}

/**
 * tcp_drwa_dev_find() - first interface from a number on whose knobs were turned
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

/* Does it run over another interface, which counts its packets, too? What is a modem's
 * has a parent, or a driver that makes it unasked, or another type.
 */
static bool tcp_drwa_is_tunnel(const struct net_device *netdev)
{
	if (netdev->dev.parent || !netdev->rtnl_link_ops)
		return false;
	switch (netdev->type) {
	case ARPHRD_NONE:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return true;
	default:
		return false;
	}
}

/* Of TCP over IPv6 with timestamps, in Ethernet. What is no more than that, ACKs and
 * pings, fills no queue, whatever part it is of a slow link's bytes.
 */
#define TCP_DRWA_HEADER_BYTES	86

/* Bytes beyond headers */
struct tcp_drwa_bytes {
	u64 came;
	u64 sent;
};

/* Such bytes since @last, which is brought up to date */
static u64 tcp_drwa_since(struct tcp_drwa_traffic *last, u64 bytes, u64 packets)
{
	u64 headers = (packets - last->packets) * TCP_DRWA_HEADER_BYTES;
	u64 all = bytes > last->bytes ? bytes - last->bytes : 0;

	*last = (struct tcp_drwa_traffic){ .bytes = bytes, .packets = packets };
	return all > headers ? all - headers : 0;
}

/* What went through an interface since it was last asked. It has its statistics until
 * after it left the list, which the caller's lock keeps it in.
 */
static void tcp_drwa_dev_add(struct tcp_drwa_dev *dev, struct tcp_drwa_bytes *sum)
{
	struct rtnl_link_stats64 stats;
	u64 came, sent;

	rcu_read_lock();
	dev_get_stats(dev->netdev, &stats);
	rcu_read_unlock();
	came = tcp_drwa_since(&dev->rx, stats.rx_bytes, stats.rx_packets);
	sent = tcp_drwa_since(&dev->tx, stats.tx_bytes, stats.tx_packets);
	if (dev->counted) {
		sum->came += came;
		sum->sent += sent;
	}
	dev->counted = true;
}

/* The same of a queue; what came through a tunnel came through something else before. */
static struct tcp_drwa_bytes tcp_drwa_queue_bytes(struct tcp_drwa_queue *queue)
{
	struct tcp_drwa_bytes links = {}, tunnels = {};
	struct tcp_drwa_dev *dev;
	bool linked = false;

	list_for_each_entry(dev, &queue->devs, node) {
		if (tcp_drwa_is_tunnel(dev->netdev)) {
			tcp_drwa_dev_add(dev, &tunnels);
		} else {
			tcp_drwa_dev_add(dev, &links);
			linked = true;
		}
	}
	return linked ? links : tunnels;
}

/* May any traffic there be a rival's? */
static bool tcp_drwa_has_rivals(const struct tcp_drwa_queue *queue)
{
	const struct tcp_drwa_dev *dev;

	list_for_each_entry(dev, &queue->devs, node) {
		if (!dev->rivals)
			return false;
	}
	return true;
}

static void tcp_drwa_count_queue(struct tcp_drwa_queue *queue)
{
	struct drwa d = { .rtt_us = xchg(&queue->due_rtt_us, 0) };
	u32 now_us = READ_ONCE(queue->due_us);
	struct tcp_drwa_bytes bytes;

	/* The round that asked may not have known of the last count. */
	if (!d.rtt_us || !drwa_count_due(&d, &queue->link, now_us))
		return;
	bytes = tcp_drwa_queue_bytes(queue);
	queue->came += tcp_drwa_has_rivals(queue) ? bytes.came :
						    READ_ONCE(queue->link.governed);
	queue->sent += bytes.sent;
	drwa_count(&queue->link, now_us, d.rtt_us, queue->came, queue->sent);
}

static void tcp_drwa_count(struct work_struct *work)
{
	struct tcp_drwa_queue *queue;

	mutex_lock(&tcp_drwa_lock);
	list_for_each_entry(queue, &tcp_drwa_queues, node)
		tcp_drwa_count_queue(queue);
	mutex_unlock(&tcp_drwa_lock);
}

/* Statistics of some interfaces cannot be had where packets are received. */
DECLARE_WORK(tcp_drwa_counting, tcp_drwa_count);

static void tcp_drwa_count_soon(struct tcp_drwa_dev *dev, const struct drwa *d, u32 now_us)
{
	struct tcp_drwa_queue *queue = rcu_dereference(dev->queue);

	if (d->law != DRWA_LAW_DELAY || !drwa_count_due(d, &queue->link, now_us))
		return;
	WRITE_ONCE(queue->due_us, now_us);
	/* Pairs with xchg() in tcp_drwa_count_queue(), which reads due_us after it. */
	smp_store_release(&queue->due_rtt_us, d->rtt_us);
	schedule_work(&tcp_drwa_counting);
}

static int tcp_drwa_bin(u32 us)
{
	return min(fls(us >> TCP_DRWA_BIN_SHIFT), TCP_DRWA_BINS - 1);
}

/* Counts a round, and what it saw if it had an RTT. */
static void tcp_drwa_count_round(const struct tcp_drwa_dev *dev,
				 const struct drwa *d, bool sampled)
{
	u32 delay_us = d->rtt_us > d->path_us ? d->rtt_us - d->path_us : 0;

	this_cpu_inc(dev->stats->count[TCP_DRWA_ROUNDS]);
	if (!sampled)
		return;
	this_cpu_inc(dev->stats->count[TCP_DRWA_DELAY_US + tcp_drwa_bin(delay_us)]);
	this_cpu_inc(dev->stats->count[TCP_DRWA_RTT_US + tcp_drwa_bin(d->path_us)]);
}

/**
 * tcp_drwa_dev_start() - take a connection's first RTT sample
 * @dev:	interface that it came from, under RCU
 * @d:		connection, just reset
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @rtt_us:	as for drwa_start()
 * @owd_us:	as for drwa_start()
 * @clock:	as for drwa_start()
 */
void tcp_drwa_dev_start(struct tcp_drwa_dev *dev, struct drwa *d, u32 now_us,
			u32 rcv_nxt, u32 rtt_us, u32 owd_us, bool clock)
{
	drwa_start(d, now_us, rcv_nxt, rtt_us, owd_us, clock);
	d->epoch = READ_ONCE(dev->epoch);
}

/**
 * tcp_drwa_dev_due() - data of a connection arrived: is its round over?
 * @dev:	interface that it came from, under RCU
 * @d:		connection
 * @now_us:	local clock, us
 * @bytes:	of that data, which is new
 */
bool tcp_drwa_dev_due(struct tcp_drwa_dev *dev, const struct drwa *d, u32 now_us,
		      u32 bytes)
{
	struct drwa_link *link = tcp_drwa_link(dev);

	drwa_credit(link, bytes);
	drwa_heard(link, now_us);
	return drwa_due(d, link, now_us);
}

/**
 * tcp_drwa_dev_round() - end a round of a connection and count it
 * @dev:	interface that governs it, under RCU
 * @d:		connection; drwa_due() was true
 * @now_us:	local clock, us
 * @rcv_nxt:	next byte expected
 * @mss:	segment size, bytes
 *
 * Return: false if lambda is 0, or was since the connection began; nothing happened
 * then. Nobody may have seen it, for hooks are patched out.
 */
bool tcp_drwa_dev_round(struct tcp_drwa_dev *dev, struct drwa *d, u32 now_us,
			u32 rcv_nxt, u32 mss)
{
	u32 lambda = READ_ONCE(dev->lambda);
	bool sampled = d->samples;

	if (!lambda || d->epoch != READ_ONCE(dev->epoch))
		return false;
	if (!d->lambda)
		this_cpu_inc(dev->stats->count[TCP_DRWA_SOCKETS]);
	d->lambda = lambda;
	drwa_round(d, tcp_drwa_link(dev), now_us, rcv_nxt, mss);
	tcp_drwa_count_soon(dev, d, now_us);
	tcp_drwa_count_round(dev, d, sampled);
	return true;
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
 * tcp_drwa_rcvbuf_max() - how far the buffer of a socket may grow
 * @sk:		socket
 * @wnd:	its target, 0: none
 * @rmem_max:	tcp_rmem[2]
 *
 * An application that pauses leaves the buffer full. What it does not leave to
 * other connections is bounded as without DRWA, or by what the link needs.
 */
int tcp_drwa_rcvbuf_max(const struct sock *sk, u32 wnd, int rmem_max)
{
	if (!wnd || !READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_moderate_rcvbuf))
		return rmem_max;
	return max_t(int, rmem_max, min_t(u64, tcp_drwa_rcvbuf(sk, wnd), TCP_DRWA_RMEM_MAX));
}

static struct tcp_drwa_queue *tcp_drwa_queue_get(struct tcp_drwa_net *dn, int id)
{
	struct tcp_drwa_queue *queue = id ? xa_load(&dn->queues, id) : NULL;
	int err;

	if (queue)
		return queue;
	queue = kzalloc(sizeof(*queue), GFP_KERNEL);
	if (!queue)
		return ERR_PTR(-ENOMEM);
	queue->id = id;
	INIT_LIST_HEAD(&queue->devs);
	err = id ? xa_insert(&dn->queues, id, queue, GFP_KERNEL) : 0;
	if (err) {
		kfree(queue);
		return ERR_PTR(err);
	}
	list_add(&queue->node, &tcp_drwa_queues);
	return queue;
}

static struct tcp_drwa_queue *tcp_drwa_queue_of(const struct tcp_drwa_dev *dev)
{
	return rcu_dereference_protected(dev->queue, lockdep_is_held(&tcp_drwa_lock));
}

/* What it brought before is no part of another queue's count. */
static void tcp_drwa_join(struct tcp_drwa_dev *dev, struct tcp_drwa_queue *queue)
{
	rcu_assign_pointer(dev->queue, queue);
	list_add(&dev->node, &queue->devs);
	dev->counted = false;
	if (!tcp_drwa_has_rivals(queue))
		WRITE_ONCE(queue->link.others, 0);
}

/* Free it behind its last interface, in which nobody may find it from then on. */
static void tcp_drwa_queue_put(struct tcp_drwa_net *dn, struct tcp_drwa_queue *queue)
{
	if (!list_empty(&queue->devs))
		return;
	if (queue->id)
		xa_erase(&dn->queues, queue->id);
	list_del(&queue->node);
	kfree_rcu(queue, rcu);
}

static void tcp_drwa_leave(struct tcp_drwa_net *dn, struct tcp_drwa_dev *dev)
{
	list_del(&dev->node);
	tcp_drwa_queue_put(dn, tcp_drwa_queue_of(dev));
}

static void tcp_drwa_dev_free(struct rcu_head *rcu)
{
	struct tcp_drwa_dev *dev = container_of(rcu, struct tcp_drwa_dev, rcu);

	free_percpu(dev->stats);
	kfree(dev);
}

static struct tcp_drwa_dev *tcp_drwa_dev_new(struct tcp_drwa_net *dn,
					     struct net_device *netdev)
{
	struct tcp_drwa_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	struct tcp_drwa_queue *queue;

	if (!dev)
		return NULL;
	dev->netdev = netdev;
	dev->rivals = true;
	dev->stats = alloc_percpu(struct tcp_drwa_stats);
	queue = dev->stats ? tcp_drwa_queue_get(dn, 0) : ERR_PTR(-ENOMEM);
	if (IS_ERR(queue))
		goto free;
	tcp_drwa_join(dev, queue);
	if (!xa_err(xa_store(&dn->devs, netdev->ifindex, dev, GFP_KERNEL)))
		return dev;
	tcp_drwa_leave(dn, dev);
free:
	tcp_drwa_dev_free(&dev->rcu);
	return NULL;
}

static int tcp_drwa_set_lambda(struct tcp_drwa_net *dn, struct tcp_drwa_dev *dev, int lambda)
{
	if (!dev->lambda && lambda) {
		WRITE_ONCE(dev->epoch, dev->epoch + 1);
		static_branch_deferred_inc(&tcp_drwa_enabled);
	} else if (dev->lambda && !lambda) {
		static_branch_slow_dec_deferred(&tcp_drwa_enabled);
	}
	WRITE_ONCE(dev->lambda, lambda);
	return 0;
}

/* Connections see it when their round ends. */
static int tcp_drwa_set_queue(struct tcp_drwa_net *dn, struct tcp_drwa_dev *dev, int id)
{
	struct tcp_drwa_queue *left = tcp_drwa_queue_of(dev), *queue = tcp_drwa_queue_get(dn, id);

	if (IS_ERR(queue))
		return PTR_ERR(queue);
	list_del(&dev->node);
	tcp_drwa_join(dev, queue);
	tcp_drwa_queue_put(dn, left);
	return 0;
}

static int tcp_drwa_set_rivals(struct tcp_drwa_net *dn, struct tcp_drwa_dev *dev, int rivals)
{
	WRITE_ONCE(dev->rivals, rivals);
	if (!rivals)
		WRITE_ONCE(tcp_drwa_queue_of(dev)->link.others, 0);
	return 0;
}

/* A file's value where nothing was ever set */
static int tcp_drwa_default(enum tcp_drwa_file file)
{
	return file == TCP_DRWA_RIVALS;
}

static int tcp_drwa_value(const struct tcp_drwa_dev *dev, enum tcp_drwa_file file)
{
	switch (file) {
	case TCP_DRWA_LAMBDA:
		return dev->lambda;
	case TCP_DRWA_QUEUE:
		return tcp_drwa_queue_of(dev)->id;
	default:
		return dev->rivals;
	}
}

static bool tcp_drwa_allows(enum tcp_drwa_file file, int value)
{
	switch (file) {
	case TCP_DRWA_LAMBDA:
		return !value || (value >= DRWA_LAMBDA_MIN && value <= DRWA_LAMBDA_MAX);
	case TCP_DRWA_QUEUE:
		return value >= 0;
	default:
		return value == 0 || value == 1;
	}
}

static int tcp_drwa_set(struct tcp_drwa_files *files, enum tcp_drwa_file file, int value)
{
	static int (*const set[])(struct tcp_drwa_net *dn, struct tcp_drwa_dev *dev, int) = {
		[TCP_DRWA_LAMBDA] = tcp_drwa_set_lambda,
		[TCP_DRWA_QUEUE] = tcp_drwa_set_queue,
		[TCP_DRWA_RIVALS] = tcp_drwa_set_rivals,
	};
	struct tcp_drwa_net *dn = net_generic(dev_net(files->netdev), tcp_drwa_net_id);

	if (!files->dev)
		files->dev = tcp_drwa_dev_new(dn, files->netdev);
	return files->dev ? set[file](dn, files->dev, value) : -ENOMEM;
}

static int tcp_drwa_handler(TCP_DRWA_CTL_TABLE *ctl, int write, void *buffer,
			    size_t *lenp, loff_t *ppos)
{
	struct tcp_drwa_files *files = ctl->extra1;
	enum tcp_drwa_file file = ctl - files->table;
	int old, value, ret;
	struct ctl_table tmp = {
		.data = &value,
		.maxlen = sizeof(value),
	};

	mutex_lock(&tcp_drwa_lock);
	old = files->dev ? tcp_drwa_value(files->dev, file) : tcp_drwa_default(file);
	value = old;
	ret = proc_dointvec(&tmp, write, buffer, lenp, ppos);
	if (!ret && write && !tcp_drwa_allows(file, value))
		ret = -EINVAL;
	if (!ret && value != old)
		ret = tcp_drwa_set(files, file, value);
	mutex_unlock(&tcp_drwa_lock);
	return ret;
}

static int tcp_drwa_register(struct tcp_drwa_files *files)
{
	static const char * const names[] = {
		[TCP_DRWA_LAMBDA] = "tcp_drwa_lambda",
		[TCP_DRWA_QUEUE] = "tcp_drwa_queue",
		[TCP_DRWA_RIVALS] = "tcp_drwa_rivals",
	};
	char path[sizeof("net/ipv4/conf/") + IFNAMSIZ];
	int i;

	snprintf(path, sizeof(path), "net/ipv4/conf/%s", files->netdev->name);
	for (i = 0; i < TCP_DRWA_FILES; i++) {
		files->table[i] = (struct ctl_table){
			.procname	= names[i],
			.maxlen		= sizeof(int),
			.mode		= 0644,
			.proc_handler	= tcp_drwa_handler,
			.extra1		= files,
		};
	}
	files->header = register_net_sysctl_sz(dev_net(files->netdev), path, files->table,
					       TCP_DRWA_FILES);
	return files->header ? 0 : -ENOMEM;
}

static void tcp_drwa_unregister(struct tcp_drwa_files *files)
{
	if (files->header)
		unregister_net_sysctl_table(files->header);
	files->header = NULL;
}

static void tcp_drwa_remove(struct net_device *netdev)
{
	struct tcp_drwa_net *dn = net_generic(dev_net(netdev), tcp_drwa_net_id);
	struct tcp_drwa_files *files = xa_erase(&dn->files, netdev->ifindex);

	if (!files)
		return;
	/* Waits for writers; none can come after it. */
	tcp_drwa_unregister(files);
	if (files->dev) {
		mutex_lock(&tcp_drwa_lock);
		xa_erase(&dn->devs, netdev->ifindex);
		tcp_drwa_set_lambda(dn, files->dev, 0);
		tcp_drwa_leave(dn, files->dev);
		mutex_unlock(&tcp_drwa_lock);
		call_rcu(&files->dev->rcu, tcp_drwa_dev_free);
	}
	kfree(files);
}

static int tcp_drwa_add(struct net_device *netdev)
{
	struct tcp_drwa_net *dn = net_generic(dev_net(netdev), tcp_drwa_net_id);
	struct tcp_drwa_files *files;
	int err;

	/* devinet gives no directory to names that sysctl gives a meaning. */
	if ((netdev->flags & IFF_LOOPBACK) || !sysctl_dev_name_is_allowed(netdev->name))
		return 0;
	files = kzalloc(sizeof(*files), GFP_KERNEL);
	if (!files)
		return -ENOMEM;
	files->netdev = netdev;
	err = xa_insert(&dn->files, netdev->ifindex, files, GFP_KERNEL);
	if (err) {
		kfree(files);
		return err;
	}
	err = tcp_drwa_register(files);
	if (err)
		tcp_drwa_remove(netdev);
	return err;
}

static int tcp_drwa_rename(struct net_device *netdev)
{
	struct tcp_drwa_files *files = tcp_drwa_files_of(netdev);
	int err = 0;

	if (!files)
		return tcp_drwa_add(netdev);
	tcp_drwa_unregister(files);
	if (sysctl_dev_name_is_allowed(netdev->name))
		err = tcp_drwa_register(files);
	/* What nobody could turn off any more is off. */
	if (!files->header)
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

	xa_init(&dn->files);
	xa_init(&dn->devs);
	xa_init(&dn->queues);
	return 0;
}

static void __net_exit tcp_drwa_net_exit(struct net *net)
{
	struct tcp_drwa_net *dn = net_generic(net, tcp_drwa_net_id);

	/* The interfaces went before. */
	WARN_ON_ONCE(!xa_empty(&dn->files) || !xa_empty(&dn->devs) ||
		     !xa_empty(&dn->queues));
	xa_destroy(&dn->files);
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
