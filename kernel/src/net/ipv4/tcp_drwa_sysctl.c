// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: the knob net.ipv4.conf.<interface>.tcp_drwa_lambda
 *
 * One file for each interface, for IPv4 and IPv6 alike: the target in
 * hundredths of a bandwidth-delay product, 100..1000, or 0 for off. Its table
 * is registered from a netdevice notifier beside devinet's own, because a new
 * IPV4_DEVCONF entry would change a structure that module ABIs freeze.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/xarray.h>
#include <net/ip.h>
#include <net/netns/generic.h>
#include <net/tcp_drwa.h>

#include "tcp_drwa_compat.h"

DEFINE_STATIC_KEY_FALSE(tcp_drwa_enabled);

/* Serialises the knobs' values with the count in tcp_drwa_enabled. */
static DEFINE_MUTEX(tcp_drwa_lock);
static unsigned int tcp_drwa_net_id __read_mostly;

struct tcp_drwa_net {
	struct xarray devs;	/* struct tcp_drwa_dev by ifindex */
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

static void tcp_drwa_set_lambda(struct tcp_drwa_dev *dev, int lambda)
{
	mutex_lock(&tcp_drwa_lock);
	if (!dev->lambda && lambda)
		static_branch_inc(&tcp_drwa_enabled);
	else if (dev->lambda && !lambda)
		static_branch_dec(&tcp_drwa_enabled);
	WRITE_ONCE(dev->lambda, lambda);
	mutex_unlock(&tcp_drwa_lock);
}

static int tcp_drwa_lambda_handler(TCP_DRWA_CTL_TABLE *ctl, int write,
				   void *buffer, size_t *lenp, loff_t *ppos)
{
	struct tcp_drwa_dev *dev = ctl->extra1;
	int lambda = READ_ONCE(dev->lambda);
	struct ctl_table tmp = {
		.data = &lambda,
		.maxlen = sizeof(lambda),
	};
	int ret;

	ret = proc_dointvec(&tmp, write, buffer, lenp, ppos);
	if (ret || !write)
		return ret;
	if (lambda && (lambda < DRWA_LAMBDA_MIN || lambda > DRWA_LAMBDA_MAX))
		return -EINVAL;
	tcp_drwa_set_lambda(dev, lambda);
	return 0;
}

static int tcp_drwa_register(struct net *net, struct tcp_drwa_dev *dev,
			     const char *name)
{
	char path[sizeof("net/ipv4/conf/") + IFNAMSIZ];

	snprintf(path, sizeof(path), "net/ipv4/conf/%s", name);
	dev->table[0] = (struct ctl_table){
		.procname	= "tcp_drwa_lambda",
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= tcp_drwa_lambda_handler,
		.extra1		= dev,
	};
	dev->header = tcp_drwa_register_sysctl(net, path, dev->table);
	return dev->header ? 0 : -ENOMEM;
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
	err = xa_insert(&dn->devs, netdev->ifindex, dev, GFP_KERNEL);
	if (err)
		goto free;
	err = tcp_drwa_register(dev_net(netdev), dev, netdev->name);
	if (err)
		goto erase;
	return 0;

erase:
	xa_erase(&dn->devs, netdev->ifindex);
free:
	kfree_rcu(dev, rcu);
	return err;
}

static void tcp_drwa_remove(struct net_device *netdev)
{
	struct tcp_drwa_net *dn = net_generic(dev_net(netdev), tcp_drwa_net_id);
	struct tcp_drwa_dev *dev = xa_erase(&dn->devs, netdev->ifindex);

	if (!dev)
		return;
	/* Waits for writers; none can come after it. */
	if (dev->header)
		unregister_net_sysctl_table(dev->header);
	tcp_drwa_set_lambda(dev, 0);
	kfree_rcu(dev, rcu);
}

static int tcp_drwa_rename(struct net_device *netdev)
{
	struct tcp_drwa_net *dn = net_generic(dev_net(netdev), tcp_drwa_net_id);
	struct tcp_drwa_dev *dev = xa_load(&dn->devs, netdev->ifindex);

	if (!dev)
		return tcp_drwa_add(netdev);
	if (dev->header)
		unregister_net_sysctl_table(dev->header);
	dev->header = NULL;
	if (!sysctl_dev_name_is_allowed(netdev->name))
		return 0;
	return tcp_drwa_register(dev_net(netdev), dev, netdev->name);
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
	/* An interface without the knob works; it is only never governed. */
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
	return 0;
}

static void __net_exit tcp_drwa_net_exit(struct net *net)
{
	struct tcp_drwa_net *dn = net_generic(net, tcp_drwa_net_id);

	/* The interfaces went before. */
	WARN_ON_ONCE(!xa_empty(&dn->devs));
	xa_destroy(&dn->devs);
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
