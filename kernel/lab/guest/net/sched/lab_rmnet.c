// SPDX-License-Identifier: GPL-2.0-only
/* The interface of a modem with several bearers, as Qualcomm's driver has it
 *
 *	ip link add rmnet0 address ADDRESS-OF-rmnet_ipa0 type labrmnet
 *
 * over rmnet_ipa0, whose lablink has a modem that tells (lab_dfc.c). A packet's skb->mark
 * is its bearer, which has two transmit queues: TCP's ACKs take the second one, which goes
 * on when the first is stopped, as while data flows both ways
 * (qmi_rmnet_get_queue_sa(), dfc_bearer_flow_ctl() of datarmnet).
 *
 * Until the parameter shared_ms has passed since it was set up, all bearers share the first
 * one's queues, as those do that the driver has given no queue yet.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <net/rtnetlink.h>

#include "lab_modem.h"

struct lab_rmnet {
	struct net_device *lower;
	unsigned long	open_jiffies;
};

static unsigned int lab_rmnet_shared_ms;
module_param_named(shared_ms, lab_rmnet_shared_ms, uint, 0644);

u32 lab_rmnet_bearer(const struct sk_buff *skb)
{
	return min_t(u32, skb->mark, LAB_BEARERS - 1);
}

/* The first queue of a bearer's two */
u32 lab_rmnet_queue(struct net_device *dev, u32 bearer)
{
	const struct lab_rmnet *priv = netdev_priv(dev);
	unsigned long part = priv->open_jiffies + msecs_to_jiffies(READ_ONCE(lab_rmnet_shared_ms));

	return time_before(jiffies, part) ? 0 : bearer;
}

/* Without data, and no SYN, FIN or RST: the lab's are IPv4. */
static bool lab_rmnet_is_ack(const struct sk_buff *skb)
{
	int offset = skb_network_offset(skb);
	const struct tcphdr *th;
	const struct iphdr *ip;
	struct tcphdr tcp;
	struct iphdr ip4;

	if (skb->protocol != htons(ETH_P_IP))
		return false;
	ip = skb_header_pointer(skb, offset, sizeof(ip4), &ip4);
	if (!ip || ip->protocol != IPPROTO_TCP)
		return false;
	offset += ip->ihl * 4;
	th = skb_header_pointer(skb, offset, sizeof(tcp), &tcp);
	return th && th->ack && !th->syn && !th->fin && !th->rst &&
	       skb->len == offset + th->doff * 4;
}

static u16 lab_rmnet_select_queue(struct net_device *dev, struct sk_buff *skb,
				  struct net_device *sb_dev)
{
	u32 queue = lab_rmnet_queue(dev, lab_rmnet_bearer(skb));

	return queue + (lab_rmnet_is_ack(skb) ? LAB_RMNET_ACKS : 0);
}

static netdev_tx_t lab_rmnet_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct lab_rmnet *priv = netdev_priv(dev);
	u32 bearer = lab_rmnet_bearer(skb);

	lab_dfc_check(dev, bearer, skb->len - skb_network_offset(skb));
	skb->dev = priv->lower;
	dev_queue_xmit(skb);
	return NETDEV_TX_OK;
}

static rx_handler_result_t lab_rmnet_receive(struct sk_buff **pskb)
{
	struct sk_buff *skb = skb_share_check(*pskb, GFP_ATOMIC);

	if (!skb)
		return RX_HANDLER_CONSUMED;
	*pskb = skb;
	skb->dev = rcu_dereference(skb->dev->rx_handler_data);
	return RX_HANDLER_ANOTHER;
}

static int lab_rmnet_open(struct net_device *dev)
{
	struct lab_rmnet *priv = netdev_priv(dev);
	struct net_device *lower = __dev_get_by_name(dev_net(dev), "rmnet_ipa0");
	int err;

	if (!lower)
		return -ENODEV;
	err = netdev_rx_handler_register(lower, lab_rmnet_receive, dev);
	if (err)
		return err;
	priv->lower = lower;
	priv->open_jiffies = jiffies;
	dev_hold(lower);
	lab_dfc_drive(dev);
	netif_tx_start_all_queues(dev);
	return 0;
}

static int lab_rmnet_stop(struct net_device *dev)
{
	struct lab_rmnet *priv = netdev_priv(dev);

	netif_tx_stop_all_queues(dev);
	lab_dfc_drive(NULL);
	synchronize_net();
	netdev_rx_handler_unregister(priv->lower);
	dev_put(priv->lower);
	return 0;
}

static const struct net_device_ops lab_rmnet_ops = {
	.ndo_open		= lab_rmnet_open,
	.ndo_stop		= lab_rmnet_stop,
	.ndo_start_xmit		= lab_rmnet_xmit,
	.ndo_select_queue	= lab_rmnet_select_queue,
};

static void lab_rmnet_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &lab_rmnet_ops;
	dev->needs_free_netdev = true;
}

static unsigned int lab_rmnet_queues(void)
{
	return LAB_RMNET_QUEUES;
}

static struct rtnl_link_ops lab_rmnet_link_ops __read_mostly = {
	.kind			= "labrmnet",
	.priv_size		= sizeof(struct lab_rmnet),
	.setup			= lab_rmnet_setup,
	.get_num_tx_queues	= lab_rmnet_queues,
};

static int __init lab_rmnet_init(void)
{
	return rtnl_link_register(&lab_rmnet_link_ops);
}

module_init(lab_rmnet_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Interface of a modem with several bearers, for the DRWA network lab");
