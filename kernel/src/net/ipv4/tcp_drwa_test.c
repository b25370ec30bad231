// SPDX-License-Identifier: GPL-2.0-only
/* DRWA: KUnit suite of the binding to sockets and interfaces */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/dst.h>
#include <net/tcp.h>
#include <net/tcp_drwa.h>

#include "tcp_drwa_compat.h"

/* Declares dev_change_name() since 5.18; sparse lacks __has_include(). */
#ifdef __CHECKER__
#include "../core/dev.h"
#elif __has_include("../core/dev.h")
#include "../core/dev.h"
#endif

#define TEST_MSS		1448U
#define TEST_LAMBDA		150
#define TEST_SECOND_US		1000000U

static netdev_tx_t test_dev_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

/* What the interface counts itself */
struct test_dev {
	u64 rx_bytes;
	u64 rx_packets;
	u64 tx_bytes;
	u64 tx_packets;
};

static u64 *test_rx_bytes(struct net_device *dev)
{
	struct test_dev *priv = netdev_priv(dev);

	return &priv->rx_bytes;
}

static void test_ping(struct net_device *dev, u32 packets)
{
	struct test_dev *priv = netdev_priv(dev);

	priv->rx_packets += packets;
	priv->rx_bytes += packets * 98;
}

static void test_send(struct net_device *dev, u32 packets, u32 bytes)
{
	struct test_dev *priv = netdev_priv(dev);

	priv->tx_packets += packets;
	priv->tx_bytes += packets * bytes;
}

static void test_dev_stats(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	const struct test_dev *priv = netdev_priv(dev);

	stats->rx_bytes = READ_ONCE(priv->rx_bytes);
	stats->rx_packets = READ_ONCE(priv->rx_packets);
	stats->tx_bytes = READ_ONCE(priv->tx_bytes);
	stats->tx_packets = READ_ONCE(priv->tx_packets);
}

static const struct net_device_ops test_dev_ops = {
	.ndo_start_xmit = test_dev_xmit,
	.ndo_get_stats64 = test_dev_stats,
};

static struct net_device *test_dev_new(struct kunit *test)
{
	struct net_device *dev;

	dev = alloc_netdev(sizeof(struct test_dev), "drwatest%d", NET_NAME_UNKNOWN, ether_setup);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	dev->netdev_ops = &test_dev_ops;
	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	return dev;
}

static void test_dev_free(struct net_device *dev)
{
	if (dev->reg_state == NETREG_REGISTERED)
		unregister_netdev(dev);
	free_netdev(dev);
}

/* Each test of the binding has an interface of its own, off. */
static int tcp_drwa_test_init(struct kunit *test)
{
	test->priv = test_dev_new(test);
	return 0;
}

static void tcp_drwa_test_exit(struct kunit *test)
{
	if (test->priv)
		test_dev_free(test->priv);
}

/* Stays while the interface does, and no test looks on after that; NULL where nothing
 * was ever set.
 */
static struct tcp_drwa_dev *test_state(struct net_device *dev)
{
	struct tcp_drwa_dev *state;

	rcu_read_lock();
	state = tcp_drwa_dev_get(dev_net(dev), dev->ifindex);
	rcu_read_unlock();
	return state;
}

static int test_access(struct net_device *dev, enum tcp_drwa_file file, int write,
		       char *buf, size_t size)
{
	struct ctl_table *table = &tcp_drwa_files_of(dev)->table[file];
	loff_t pos = 0;

	return table->proc_handler(table, write, buf, &size, &pos);
}

static int test_write_to(struct net_device *dev, enum tcp_drwa_file file,
			 const char *value)
{
	char buf[32];

	strscpy(buf, value, sizeof(buf));
	return test_access(dev, file, 1, buf, strlen(buf));
}

/* What one reads from the file */
static int test_value(struct net_device *dev, enum tcp_drwa_file file)
{
	char buf[32] = "";
	int value;

	if (test_access(dev, file, 0, buf, sizeof(buf) - 1) || kstrtoint(buf, 10, &value))
		return -1;
	return value;
}

static int test_write(struct net_device *dev, const char *value)
{
	return test_write_to(dev, TCP_DRWA_LAMBDA, value);
}

static int test_write_queue(struct net_device *dev, const char *value)
{
	return test_write_to(dev, TCP_DRWA_QUEUE, value);
}

static int test_lambda(struct net_device *dev)
{
	return test_value(dev, TCP_DRWA_LAMBDA);
}

/* Stays as long as no interface leaves it. */
static struct tcp_drwa_queue *test_queue(struct net_device *dev)
{
	return rcu_dereference_protected(test_state(dev)->queue, true);
}

static int test_queue_id(struct net_device *dev)
{
	return test_value(dev, TCP_DRWA_QUEUE);
}

static int test_queue_users(const struct tcp_drwa_queue *queue)
{
	const struct list_head *at;
	int users = 0;

	list_for_each(at, &queue->devs)
		users++;
	return users;
}

/* Are the hooks on, once what is late with turning them off has done it? */
static bool test_hooks_on(void)
{
	static_key_deferred_flush(&tcp_drwa_enabled);
	return static_key_enabled(&tcp_drwa_enabled.key);
}

static struct tcp_sock *test_sock(struct kunit *test, const struct net_device *dev)
{
	struct tcp_sock *tp;
	struct sock *sk;

	tp = kunit_kzalloc(test, sizeof(*tp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tp);
	sk = (struct sock *)tp;
	sock_net_set(sk, &init_net);
	sk->sk_family = AF_INET;
	sk->sk_protocol = IPPROTO_TCP;
	sk->sk_state = TCP_ESTABLISHED;
	tcp_drwa_rx_ifindex(sk) = dev ? dev->ifindex : 0;
	WRITE_ONCE(sk->sk_rcvbuf, 131072);
#ifdef TCP_DEFAULT_SCALING_RATIO
	tp->scaling_ratio = TCP_DEFAULT_SCALING_RATIO;
#endif
	tp->window_clamp = tcp_win_from_space(sk, sk->sk_rcvbuf);
	tp->advmss = TEST_MSS;
	tp->rx_opt.rcv_wscale = 9;
	tp->rx_opt.tstamp_ok = 1;
	tp->rx_opt.saw_tstamp = 1;
	tcp_drwa_init(tp);
	return tp;
}

/* A round trip's data over a link of 10 Mb/s and 100 ms comes; returns its RTT, us. */
static u32 test_sock_arrive(struct tcp_sock *tp, u32 *cwnd)
{
	u32 window = tcp_drwa_cap(tp, *cwnd), rtt_us;

	*cwnd = min(2 * *cwnd, 500000U);
	rtt_us = max(100000U, window * 1000 / 1250);
	tp->tcp_mstamp += rtt_us;
	tp->rcv_nxt += min(window, 125 * (rtt_us / 100));
	tp->rx_opt.rcv_tsval = div_u64(tp->tcp_mstamp - rtt_us, 1000);
	return rtt_us;
}

/* The same, in eight parts: all at once would be a radio that serves in bursts. */
static void test_sock_round(struct tcp_sock *tp, u32 *cwnd)
{
	u32 i, rtt_us, came, before = tp->rcv_nxt;
	struct sock *sk = (struct sock *)tp;
	u64 begun_us = tp->tcp_mstamp;

	rtt_us = test_sock_arrive(tp, cwnd);
	came = tp->rcv_nxt - before;
	for (i = 1; i <= 8; i++) {
		tp->tcp_mstamp = begun_us + rtt_us / 8 * i;
		tp->rcv_nxt = before + came / 8 * i;
		if (i == 8)
			tcp_drwa_rtt_sample(sk, rtt_us);
		tcp_drwa_data_recv(sk, before + came / 8 * (i - 1));
	}
}

/* Slow start into it, as the socket's hooks see it */
static void test_sock_run(struct tcp_sock *tp, u32 seconds)
{
	u64 end_us = tp->tcp_mstamp + (u64)seconds * TEST_SECOND_US;
	u32 cwnd = 10 * TEST_MSS;

	while (tp->tcp_mstamp < end_us)
		test_sock_round(tp, &cwnd);
}

static unsigned long test_counted(struct net_device *dev, int item)
{
	struct tcp_drwa_dev *state = test_state(dev);

	return state ? tcp_drwa_counted(state, item) : 0;
}

static void tcp_drwa_knob_values(struct kunit *test)
{
	static const char * const good[] = { "100", "150", "1000", "250\n", "0" };
	static const char * const bad[] = {
		"-1", "1", "50", "99", "1001", "2147483647", "4294967446",
		"99999999999", "text", "1.5",
	};
	struct net_device *dev = test->priv;
	int i, lambda;

	KUNIT_EXPECT_EQ(test, test_lambda(dev), 0);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		KUNIT_EXPECT_EQ(test, test_write(dev, good[i]), 0);
		KUNIT_ASSERT_EQ(test, kstrtoint(good[i], 10, &lambda), 0);
		KUNIT_EXPECT_EQ(test, test_lambda(dev), lambda);
	}
	KUNIT_EXPECT_EQ(test, test_write(dev, "150"), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, test_write(dev, bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, test_lambda(dev), 150);
	}
}

/* The hooks are on while an interface is, and no longer. */
static void tcp_drwa_knob_counts(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);

	KUNIT_EXPECT_FALSE(test, test_hooks_on());
	KUNIT_EXPECT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_EXPECT_EQ(test, test_write(dev, "200"), 0);
	KUNIT_EXPECT_EQ(test, test_write(other, "300"), 0);
	KUNIT_EXPECT_TRUE(test, test_hooks_on());
	KUNIT_EXPECT_EQ(test, test_write(dev, "0"), 0);
	KUNIT_EXPECT_EQ(test, test_write(dev, "0"), 0);
	KUNIT_EXPECT_TRUE(test, test_hooks_on());
	/* Goes with the interface, though not at any rate that one may write it */
	test_dev_free(other);
	if (IS_ENABLED(CONFIG_JUMP_LABEL))
		KUNIT_EXPECT_TRUE(test, static_key_enabled(&tcp_drwa_enabled.key));
	KUNIT_EXPECT_FALSE(test, test_hooks_on());
}

static void tcp_drwa_knob_none(struct kunit *test)
{
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, (void *)tcp_drwa_dev_get(&init_net, LOOPBACK_IFINDEX),
			    NULL);
	KUNIT_EXPECT_PTR_EQ(test, (void *)tcp_drwa_dev_get(&init_net, INT_MAX), NULL);
	KUNIT_EXPECT_PTR_EQ(test, (void *)tcp_drwa_dev_get(&init_net, -1), NULL);
	rcu_read_unlock();
}

static int test_rename(struct net_device *dev, const char *name)
{
	char newname[IFNAMSIZ] = "";
	int err;

	strscpy(newname, name, sizeof(newname));
	rtnl_lock();
	err = dev_change_name(dev, newname);
	rtnl_unlock();
	return err;
}

static void tcp_drwa_knob_renamed(struct kunit *test)
{
	struct net_device *dev = test->priv;
	bool refused;

	KUNIT_ASSERT_EQ(test, test_write(dev, "200"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_EQ(test, test_rename(dev, "drwaother"), 0);
	KUNIT_EXPECT_EQ(test, test_lambda(dev), 200);
	KUNIT_EXPECT_PTR_NE(test, (void *)tcp_drwa_files_of(dev)->header, NULL);
	KUNIT_EXPECT_EQ(test, test_queue_id(dev), 7);
	/* Refused, or without files, for sysctl gives it a meaning: then it is off. */
	refused = test_rename(dev, "all");
	KUNIT_EXPECT_EQ(test, test_hooks_on(), refused);
	KUNIT_EXPECT_EQ(test, test_rename(dev, "drwathird"), 0);
	KUNIT_ASSERT_PTR_NE(test, (void *)tcp_drwa_files_of(dev), NULL);
	KUNIT_EXPECT_PTR_NE(test, (void *)tcp_drwa_files_of(dev)->header, NULL);
	KUNIT_EXPECT_EQ(test, test_lambda(dev), refused ? 200 : 0);
}

static void tcp_drwa_knob_unregistered(struct kunit *test)
{
	struct net_device *dev = test->priv;
	int ifindex = dev->ifindex;

	KUNIT_ASSERT_EQ(test, test_write(dev, "200"), 0);
	unregister_netdev(dev);
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, (void *)tcp_drwa_dev_get(&init_net, ifindex), NULL);
	rcu_read_unlock();
	KUNIT_EXPECT_FALSE(test, test_hooks_on());
}

#ifdef CONFIG_NET_NS
static void tcp_drwa_knob_moved(struct kunit *test)
{
	struct net_device *dev = test->priv;
	struct net *net;
	int err;

	net = copy_net_ns(CLONE_NEWNET, &init_user_ns, &init_net);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, net);
	KUNIT_EXPECT_EQ(test, test_write(dev, "200"), 0);
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
	rtnl_lock();
	err = dev_change_net_namespace(dev, net, NULL);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, err, 0);
	if (!err) {
		KUNIT_EXPECT_EQ(test, test_lambda(dev), 0);
		KUNIT_EXPECT_EQ(test, test_queue_id(dev), 0);
		KUNIT_EXPECT_FALSE(test, test_hooks_on());
		/* Set when the name space goes */
		KUNIT_EXPECT_EQ(test, test_write(dev, "300"), 0);
		KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
		unregister_netdev(dev);
		KUNIT_EXPECT_FALSE(test, test_hooks_on());
	}
	put_net(net);
}
#endif

static void tcp_drwa_queue_values(struct kunit *test)
{
	static const char * const good[] = { "0", "1", "100", "2147483647", "7\n" };
	static const char * const bad[] = {
		"-1", "2147483648", "4294967303", "99999999999", "text", "1.5",
	};
	struct net_device *dev = test->priv;
	int i, id;

	KUNIT_EXPECT_EQ(test, test_queue_id(dev), 0);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		KUNIT_EXPECT_EQ(test, test_write_queue(dev, good[i]), 0);
		KUNIT_ASSERT_EQ(test, kstrtoint(good[i], 10, &id), 0);
		KUNIT_EXPECT_EQ(test, test_queue_id(dev), id);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, test_write_queue(dev, bad[i]), -EINVAL);
		KUNIT_EXPECT_EQ(test, test_queue_id(dev), 7);
	}
}

/* Those with a number share a queue, and it is there as long as one of them. */
static void tcp_drwa_queue_shared(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_drwa_queue *seven;

	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_ASSERT_EQ(test, test_write(other, "150"), 0);
	KUNIT_EXPECT_PTR_NE(test, test_queue(dev), test_queue(other));
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_EQ(test, test_write_queue(other, "8"), 0);
	KUNIT_EXPECT_PTR_NE(test, test_queue(dev), test_queue(other));
	KUNIT_EXPECT_EQ(test, test_write_queue(other, "7"), 0);
	seven = test_queue(dev);
	KUNIT_EXPECT_PTR_EQ(test, test_queue(other), seven);
	KUNIT_EXPECT_EQ(test, test_queue_users(seven), 2);
	/* The same once more is no second user. */
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_EQ(test, test_queue_users(seven), 2);
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "0"), 0);
	KUNIT_EXPECT_PTR_NE(test, test_queue(dev), seven);
	KUNIT_EXPECT_EQ(test, test_queue_users(seven), 1);
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_PTR_EQ(test, test_queue(dev), seven);
	test_dev_free(other);
	KUNIT_EXPECT_PTR_EQ(test, test_queue(dev), seven);
	KUNIT_EXPECT_EQ(test, test_queue_users(seven), 1);
}

static bool test_queue_is_used(struct net_device *dev)
{
	return memchr_inv(&test_queue(dev)->link, 0, sizeof(struct drwa_link));
}

/* A connection takes its interface's queue, and the new one from its next round. */
static void tcp_drwa_queue_followed(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, dev);

	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(other, "7"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_TRUE(test, test_queue_is_used(other));
	KUNIT_EXPECT_EQ(test, test_write_queue(dev, "8"), 0);
	KUNIT_EXPECT_FALSE(test, test_queue_is_used(dev));
	test_sock_run(tp, 10);
	KUNIT_EXPECT_TRUE(test, test_queue_is_used(dev));
	test_dev_free(other);
}

static void tcp_drwa_off_is_absent(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	int rmem_max = init_net.ipv4.sysctl_tcp_rmem[2];

	tp->drwa.wnd = 5000;
	tp->drwa.lambda = TEST_LAMBDA;
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 100000), 100000U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 100000), 100000U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	KUNIT_EXPECT_EQ(test, tcp_drwa_syn_rmem_max(sk), rmem_max);
	tcp_drwa_rtt_sample(sk, 1000);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 0U);
}

static void tcp_drwa_caps(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 100000), 100000U);
	tp->drwa.wnd = 5000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 100000), 5000U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 4000), 4000U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 0), 0U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 4000), 4000U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_CAPPED), 0UL);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 6000), 5000U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_CAPPED), 1UL);
}

/* What was offered stays offered, also where the kernel may shrink windows. */
static void tcp_drwa_keeps_right_edge(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	tp->drwa.wnd = 5120;
	tp->rcv_wnd = 51200;
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 100000), 51200U);
	/* In whole units of 512 bytes, upwards */
	tp->rcv_nxt = 1000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 100000), 50688U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_CAPPED), 2UL);
	/* What stock would offer less, it may. */
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 50688), 50688U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 20480), 20480U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 0), 0U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_CAPPED), 2UL);
	tp->rcv_nxt = 60000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_offer(sk, 100000), 5120U);
}

static void tcp_drwa_rmem_limits(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	int rmem_max = init_net.ipv4.sysctl_tcp_rmem[2];

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	KUNIT_EXPECT_EQ(test, tcp_drwa_syn_rmem_max(sk), TCP_DRWA_RMEM_MAX);
	/* Without a window, nothing is needed. */
	tp->drwa.lambda = TEST_LAMBDA;
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	/* With one, as far as that needs */
	tp->drwa.wnd = 5 << 19;
	KUNIT_EXPECT_GT(test, tcp_drwa_rmem_max(sk), 2 * (5 << 19));
	KUNIT_EXPECT_LT(test, tcp_drwa_rmem_max(sk), TCP_DRWA_RMEM_MAX);
	tp->drwa.wnd = 10000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	tp->drwa.wnd = U32_MAX / 2;
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), TCP_DRWA_RMEM_MAX);
	KUNIT_EXPECT_EQ(test, tcp_drwa_rcvbuf_max(sk, 0, rmem_max), rmem_max);
	/* Not where buffers shall stay as they are */
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_moderate_rcvbuf, 0);
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_moderate_rcvbuf, 1);
	/* Nor beyond an application's clamp */
	tp->window_clamp = 30000;
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), rmem_max);
	tp->window_clamp = tcp_win_from_space(sk, sk->sk_rcvbuf) - TEST_MSS;
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), TCP_DRWA_RMEM_MAX);
	/* A limit that is higher already stays. */
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_rmem[2], 2 * TCP_DRWA_RMEM_MAX);
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), 2 * TCP_DRWA_RMEM_MAX);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_rmem[2], rmem_max);
}

static void tcp_drwa_which_interface(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, NULL);
	struct sock *sk = (struct sock *)tp;
	struct dst_entry *dst;

	dst = kunit_kzalloc(test, sizeof(*dst), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dst);
	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_ASSERT_EQ(test, test_write(other, "300"), 0);

	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 0U);
	/* Before any data the route counts, afterwards where data comes from. */
	dst->dev = other;
	RCU_INIT_POINTER(sk->sk_dst_cache, dst);
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 300U);
	tcp_drwa_rx_ifindex(sk) = dev->ifindex;
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 150U);
	RCU_INIT_POINTER(sk->sk_dst_cache, NULL);
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 150U);
	tcp_drwa_rx_ifindex(sk) = other->ifindex;
	test_dev_free(other);
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 0U);
}

static void tcp_drwa_stands_aside(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 150U);
	sk->sk_userlocks = SOCK_RCVBUF_LOCK;
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 0U);
	KUNIT_EXPECT_EQ(test, tcp_drwa_syn_rmem_max(sk),
			init_net.ipv4.sysctl_tcp_rmem[2]);
	test_sock_run(tp, 5);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
	sk->sk_userlocks = SOCK_SNDBUF_LOCK;
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 150U);
#ifdef CONFIG_MPTCP
	tp->is_mptcp = 1;
	KUNIT_EXPECT_EQ(test, tcp_drwa_sk_lambda(sk), 0U);
	test_sock_run(tp, 5);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
#endif
}

static void tcp_drwa_governs(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	unsigned long rounds, told[2] = {};
	int i;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 20);
	KUNIT_EXPECT_EQ(test, (int)tp->drwa.lambda, 150);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd % 512, 0U);
	/* Stays near lambda bandwidth-delay products of 125000 bytes */
	KUNIT_EXPECT_GE(test, tp->drwa.wnd, 90000U);
	KUNIT_EXPECT_LE(test, tp->drwa.wnd, 230000U);
	/* A window twice, and its overhead; far from what there is */
	KUNIT_EXPECT_GE(test, sk->sk_rcvbuf, 180000);
	KUNIT_EXPECT_LE(test, sk->sk_rcvbuf, 4 << 20);
	rounds = test_counted(test->priv, TCP_DRWA_ROUNDS);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_SOCKETS), 1UL);
	KUNIT_EXPECT_GT(test, rounds, 50UL);
	for (i = 0; i < TCP_DRWA_BINS; i++) {
		told[0] += test_counted(test->priv, TCP_DRWA_DELAY_US + i);
		told[1] += test_counted(test->priv, TCP_DRWA_RTT_US + i);
	}
	KUNIT_EXPECT_EQ(test, told[0], told[1]);
	KUNIT_EXPECT_LE(test, told[0], rounds);
	/* 2^16 <= 100000 us < 2^17 */
	KUNIT_EXPECT_GT(test, test_counted(test->priv, TCP_DRWA_RTT_US + 7), rounds / 2);
}

/* What was learned before lambda was 0 is of another time, whether anything came then. */
static void tcp_drwa_begins_anew_when_on_again(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 5);
	KUNIT_ASSERT_EQ(test, test_write(test->priv, "200"), 0);
	test_sock_run(tp, 5);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_SOCKETS), 1UL);
	KUNIT_ASSERT_EQ(test, test_write(test->priv, "0"), 0);
	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 5);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_SOCKETS), 2UL);
}

static void tcp_drwa_buffers_untouched(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;
	int rcvbuf = sk->sk_rcvbuf;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_moderate_rcvbuf, 0);
	test_sock_run(tp, 20);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_moderate_rcvbuf, 1);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvbuf, rcvbuf);
}

/* Beside one that is governed, an interface that is not costs nothing. */
static void tcp_drwa_off_beside_others(struct kunit *test)
{
	struct net_device *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(other, "150"), 0);
	tcp_drwa_rtt_sample(sk, 100000);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 0U);
	test_sock_run(tp, 5);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, test_counted(test->priv, TCP_DRWA_ROUNDS), 0UL);
	test_dev_free(other);
}

static void tcp_drwa_handshake(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct net_device *other = test_dev_new(test);
	struct sock *sk = (struct sock *)tp;

	tp->rcv_wnd = 3 << 20;
	tp->srtt_us = 40000 << 3;
	KUNIT_ASSERT_EQ(test, test_write(other, "150"), 0);
	tcp_drwa_connected(sk);
	KUNIT_EXPECT_EQ(test, tp->rcv_wnd, 3U << 20);
	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	/* The window of a SYN has no scale. */
	tcp_drwa_connected(sk);
	KUNIT_EXPECT_EQ(test, tp->rcv_wnd, 65535U);
	KUNIT_EXPECT_TRUE(test, tp->drwa.clock);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 40000U);
	test_dev_free(other);
}

/* Without timestamps RTTs stand in for one-way delays, from the handshake on. */
static void tcp_drwa_no_clock(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct sock *sk = (struct sock *)tp;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	tp->rx_opt.tstamp_ok = 0;
	tp->rx_opt.saw_tstamp = 0;
	tp->srtt_us = 100000 << 3;
	tcp_drwa_connected(sk);
	KUNIT_EXPECT_FALSE(test, tp->drwa.clock);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 100000U);
	test_sock_run(tp, 20);
	KUNIT_EXPECT_FALSE(test, tp->drwa.clock);
	KUNIT_EXPECT_GE(test, tp->drwa.wnd, 90000U);
	KUNIT_EXPECT_LE(test, tp->drwa.wnd, 230000U);
}

/* The peer sends no timestamps any more: all begins anew, without its clock. */
static void tcp_drwa_clock_goes(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_TRUE(test, tp->drwa.clock);
	tp->rx_opt.saw_tstamp = 0;
	tcp_drwa_rtt_sample((struct sock *)tp, 150000);
	KUNIT_EXPECT_FALSE(test, tp->drwa.clock);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 150000U);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_FALSE(test, tp->drwa.clock);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	/* What it sends later is no clock that was there from the beginning. */
	tp->rx_opt.saw_tstamp = 1;
	test_sock_run(tp, 10);
	KUNIT_EXPECT_FALSE(test, tp->drwa.clock);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
}

/* The first segment after a minute's pause ends all that was learned, and begins anew. */
static void tcp_drwa_begins_anew_after_a_pause(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	u32 cwnd = 10 * TEST_MSS;

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_GT(test, tp->drwa.wnd, 100000U);
	tp->tcp_mstamp += 61 * TEST_SECOND_US;
	test_sock_round(tp, &cwnd);
	KUNIT_EXPECT_GT(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_LE(test, tp->drwa.wnd, 65536U);
	/* The RTT was the last one that was known, which a queue may have been in. */
	test_sock_round(tp, &cwnd);
	KUNIT_EXPECT_EQ(test, tp->drwa.rtt_us, 100000U);
}

/* Whoever was governed has stock's limits, and room for what it was offered. */
static void tcp_drwa_limits_come_back(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	int rmem_max = init_net.ipv4.sysctl_tcp_rmem[2];
	struct net_device *other = test_dev_new(test);
	struct sock *sk = (struct sock *)tp;
	u32 stock;

	WRITE_ONCE(init_net.ipv4.sysctl_tcp_rmem[2], 131072);
	stock = tcp_win_from_space(sk, 131072);
	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	/* Keeps the hooks on */
	KUNIT_ASSERT_EQ(test, test_write(other, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_GT(test, sk->sk_rcvbuf, 131072);
	KUNIT_EXPECT_GT(test, tp->window_clamp, stock);
	tp->rcv_wup = tp->rcv_nxt;
	tp->rcv_wnd = 100000;
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "0"), 0);
	test_sock_run(tp, 1);
	KUNIT_EXPECT_EQ(test, tcp_drwa_rmem_max(sk), 131072);
	KUNIT_EXPECT_EQ(test, tp->window_clamp, stock);
	/* Some of what was offered has come. */
	KUNIT_EXPECT_GE(test, sk->sk_rcvbuf, 131072);
	KUNIT_EXPECT_LE(test, sk->sk_rcvbuf, (int)tcp_drwa_space_from_win(sk, 100000));
	/* And on again: that clamp is not the application's. */
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_GT(test, tp->window_clamp, stock);
	/* Also where the law has no target just then */
	tp->drwa.wnd = 0;
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "0"), 0);
	test_sock_run(tp, 1);
	KUNIT_EXPECT_EQ(test, tp->window_clamp, stock);
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	/* A buffer that the application sets meanwhile is its own. */
	sk->sk_userlocks = SOCK_RCVBUF_LOCK;
	WRITE_ONCE(sk->sk_rcvbuf, 400000);
	test_sock_run(tp, 1);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvbuf, 400000);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_rmem[2], rmem_max);
	test_dev_free(other);
}

/* The part of all that came that was nobody's governed, in 255ths */
static int test_part(struct net_device *dev)
{
	return READ_ONCE(test_queue(dev)->link.others);
}

/* A round of a connection over @dev, while @parts times of what comes to it come over
 * @over, @dev or another interface; then as test_part()
 */
static int test_others_round(struct tcp_sock *tp, struct net_device *dev,
			     struct net_device *over, u32 parts, u32 *cwnd)
{
	u32 rtt_us, came, before = tp->rcv_nxt;
	struct sock *sk = (struct sock *)tp;

	rtt_us = test_sock_arrive(tp, cwnd);
	came = tp->rcv_nxt - before;
	*test_rx_bytes(dev) += came;
	*test_rx_bytes(over) += parts * came;
	tcp_drwa_rtt_sample(sk, rtt_us);
	tcp_drwa_data_recv(sk, before);
	flush_work(&tcp_drwa_counting);
	return test_part(dev);
}

static int test_others(struct tcp_sock *tp, struct net_device *dev, struct net_device *over,
		       u32 parts)
{
	u32 cwnd = 10 * TEST_MSS;
	int i, part = 0;

	for (i = 0; i < 60; i++)
		part = test_others_round(tp, dev, over, parts, &cwnd);
	return part;
}

/* The most of any round after @other joined the queue */
static int test_others_joining(struct tcp_sock *tp, struct net_device *dev,
			       struct net_device *other)
{
	u32 cwnd = 10 * TEST_MSS;
	int i, most = 0;

	test_others(tp, dev, dev, 0);
	*test_rx_bytes(other) = 1U << 30;
	if (test_write_queue(other, "7"))
		return -1;
	for (i = 0; i < 60; i++)
		most = max(most, test_others_round(tp, dev, other, 0, &cwnd));
	return most;
}

/* Bytes of all interfaces of a queue count, and those of before it was one do not. */
static void tcp_drwa_counts(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, dev);
	int most;

	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_EXPECT_LE(test, test_others(tp, dev, dev, 0), 16);
	/* Of one interface */
	KUNIT_EXPECT_GE(test, test_others(tp, dev, dev, 1), 110);
	KUNIT_EXPECT_LE(test, test_part(dev), 145);
	/* Of another queue's */
	KUNIT_ASSERT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_LE(test, test_others(tp, dev, other, 1), 16);
	most = test_others_joining(tp, dev, other);
	KUNIT_EXPECT_GE(test, most, 0);
	KUNIT_EXPECT_LE(test, most, 16);
	KUNIT_EXPECT_GE(test, test_others(tp, dev, other, 1), 110);
	KUNIT_EXPECT_LE(test, test_part(dev), 145);
	test_dev_free(other);
	KUNIT_EXPECT_LE(test, test_others(tp, dev, dev, 0), 16);
}

/* Pings are no rival, however many bytes they are on a slow link. */
static void tcp_drwa_counts_no_pings(struct kunit *test)
{
	struct net_device *dev = test->priv;
	struct tcp_sock *tp = test_sock(test, dev);
	u32 before, cwnd = 10 * TEST_MSS;
	int i, most = 0;

	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	for (i = 0; i < 60; i++) {
		before = tp->rcv_nxt;
		most = max(most, test_others_round(tp, dev, dev, 0, &cwnd));
		test_ping(dev, (tp->rcv_nxt - before) / 98);
	}
	KUNIT_EXPECT_LE(test, most, 48);
}

/* What the phone sends beyond ACKs is an upload, over any interface of the queue. */
static void tcp_drwa_counts_uploads(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, dev);
	u32 cwnd = 10 * TEST_MSS;
	int i, acks = 0, upload = 0;

	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(other, "7"), 0);
	for (i = 0; i < 60; i++) {
		test_send(other, cwnd / TEST_MSS, 86);
		test_others_round(tp, dev, dev, 0, &cwnd);
		acks += test_queue(dev)->link.upload;
	}
	KUNIT_EXPECT_EQ(test, acks, 0);
	for (i = 0; i < 60; i++) {
		test_send(other, cwnd / TEST_MSS / 8, 1514);
		test_others_round(tp, dev, dev, 0, &cwnd);
		upload += test_queue(dev)->link.upload;
	}
	KUNIT_EXPECT_GE(test, upload, 30);
	test_dev_free(other);
}

static const struct rtnl_link_ops test_tunnel_ops = {
	.kind = "drwatest",
};

static void test_make_tunnel(struct net_device *dev, bool tunnel)
{
	dev->type = tunnel ? ARPHRD_NONE : ARPHRD_ETHER;
	dev->rtnl_link_ops = tunnel ? &test_tunnel_ops : NULL;
}

/* What comes through a tunnel came through its link before. */
static void tcp_drwa_counts_tunnels_once(struct kunit *test)
{
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, dev);

	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(other, "7"), 0);
	test_make_tunnel(other, true);
	KUNIT_EXPECT_LE(test, test_others(tp, dev, other, 1), 16);
	/* The connection's interface may be the tunnel. */
	test_make_tunnel(dev, true);
	test_make_tunnel(other, false);
	KUNIT_EXPECT_LE(test, test_others(tp, dev, other, 1), 16);
	KUNIT_EXPECT_GE(test, test_others(tp, dev, other, 2), 110);
	/* With nothing below it in the queue, it counts itself. */
	KUNIT_ASSERT_EQ(test, test_write_queue(other, "0"), 0);
	KUNIT_EXPECT_GE(test, test_others(tp, dev, dev, 1), 110);
	KUNIT_EXPECT_LE(test, test_part(dev), 145);
	test_make_tunnel(dev, false);
	test_dev_free(other);
}

static void tcp_drwa_rivals(struct kunit *test)
{
	static const char * const bad[] = { "-1", "2", "text" };
	struct net_device *dev = test->priv, *other = test_dev_new(test);
	struct tcp_sock *tp = test_sock(test, dev);
	int i;

	KUNIT_EXPECT_EQ(test, test_value(dev, TCP_DRWA_RIVALS), 1);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, test_write_to(dev, TCP_DRWA_RIVALS, bad[i]), -EINVAL);
	KUNIT_ASSERT_EQ(test, test_write(dev, "150"), 0);
	KUNIT_EXPECT_GE(test, test_others(tp, dev, dev, 1), 110);
	/* At once, and for good */
	KUNIT_EXPECT_EQ(test, test_write_to(dev, TCP_DRWA_RIVALS, "0"), 0);
	KUNIT_EXPECT_EQ(test, test_value(dev, TCP_DRWA_RIVALS), 0);
	KUNIT_EXPECT_EQ(test, test_part(dev), 0);
	KUNIT_EXPECT_EQ(test, test_others(tp, dev, dev, 1), 0);
	/* For all interfaces of its queue */
	KUNIT_EXPECT_EQ(test, test_write_to(dev, TCP_DRWA_RIVALS, "1"), 0);
	KUNIT_EXPECT_GE(test, test_others(tp, dev, dev, 1), 110);
	KUNIT_EXPECT_EQ(test, test_write_to(other, TCP_DRWA_RIVALS, "0"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(other, "7"), 0);
	KUNIT_ASSERT_EQ(test, test_write_queue(dev, "7"), 0);
	KUNIT_EXPECT_EQ(test, test_others(tp, dev, dev, 1), 0);
	test_dev_free(other);
}

/* What is off costs its files: nothing else is there until one is turned. */
static void tcp_drwa_knob_costs(struct kunit *test)
{
	static const struct {
		enum tcp_drwa_file file;
		const char *same, *other;
	} files[] = {
		{ TCP_DRWA_LAMBDA, "0", "150" },
		{ TCP_DRWA_QUEUE, "0", "7" },
		{ TCP_DRWA_RIVALS, "1", "0" },
	};
	struct net_device *dev;
	int i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		dev = test_dev_new(test);
		KUNIT_EXPECT_GE(test, test_value(dev, files[i].file), 0);
		KUNIT_EXPECT_EQ(test, test_write_to(dev, files[i].file, files[i].same), 0);
		KUNIT_EXPECT_EQ(test, test_write_to(dev, files[i].file, "-5"), -EINVAL);
		KUNIT_EXPECT_PTR_EQ(test, (void *)test_state(dev), NULL);
		KUNIT_EXPECT_EQ(test, test_write_to(dev, files[i].file, files[i].other), 0);
		KUNIT_EXPECT_PTR_NE(test, (void *)test_state(dev), NULL);
		KUNIT_EXPECT_EQ(test, test_write_to(dev, files[i].file, files[i].same), 0);
		KUNIT_EXPECT_PTR_NE(test, (void *)test_state(dev), NULL);
		test_dev_free(dev);
	}
}

static void tcp_drwa_switched_off(struct kunit *test)
{
	struct tcp_sock *tp = test_sock(test, test->priv);
	struct net_device *other = test_dev_new(test);

	KUNIT_ASSERT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	/* One of two: at the end of the round */
	KUNIT_EXPECT_EQ(test, test_write(other, "150"), 0);
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "0"), 0);
	test_sock_run(tp, 1);
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 250000), 250000U);
	KUNIT_EXPECT_EQ(test, (int)tp->drwa.lambda, 0);
	/* And on again */
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	/* The last one: at once, when the hooks go */
	KUNIT_EXPECT_EQ(test, test_write(other, "0"), 0);
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "0"), 0);
	KUNIT_EXPECT_FALSE(test, test_hooks_on());
	KUNIT_EXPECT_EQ(test, tcp_drwa_cap(tp, 250000), 250000U);
	/* The interface goes in a flow. */
	KUNIT_EXPECT_EQ(test, test_write(other, "150"), 0);
	KUNIT_EXPECT_EQ(test, test_write(test->priv, "150"), 0);
	test_sock_run(tp, 10);
	KUNIT_EXPECT_NE(test, tp->drwa.wnd, 0U);
	unregister_netdev(test->priv);
	test_sock_run(tp, 1);
	KUNIT_EXPECT_EQ(test, tp->drwa.wnd, 0U);
	test_dev_free(other);
}

static struct kunit_case tcp_drwa_cases[] = {
	KUNIT_CASE(tcp_drwa_knob_values),
	KUNIT_CASE(tcp_drwa_knob_counts),
	KUNIT_CASE(tcp_drwa_knob_none),
	KUNIT_CASE(tcp_drwa_knob_costs),
	KUNIT_CASE(tcp_drwa_knob_renamed),
	KUNIT_CASE(tcp_drwa_knob_unregistered),
#ifdef CONFIG_NET_NS
	KUNIT_CASE(tcp_drwa_knob_moved),
#endif
	KUNIT_CASE(tcp_drwa_queue_values),
	KUNIT_CASE(tcp_drwa_queue_shared),
	KUNIT_CASE(tcp_drwa_queue_followed),
	KUNIT_CASE(tcp_drwa_off_is_absent),
	KUNIT_CASE(tcp_drwa_off_beside_others),
	KUNIT_CASE(tcp_drwa_caps),
	KUNIT_CASE(tcp_drwa_keeps_right_edge),
	KUNIT_CASE(tcp_drwa_rmem_limits),
	KUNIT_CASE(tcp_drwa_which_interface),
	KUNIT_CASE(tcp_drwa_stands_aside),
	KUNIT_CASE(tcp_drwa_governs),
	KUNIT_CASE(tcp_drwa_begins_anew_when_on_again),
	KUNIT_CASE(tcp_drwa_buffers_untouched),
	KUNIT_CASE(tcp_drwa_handshake),
	KUNIT_CASE(tcp_drwa_no_clock),
	KUNIT_CASE(tcp_drwa_clock_goes),
	KUNIT_CASE(tcp_drwa_begins_anew_after_a_pause),
	KUNIT_CASE(tcp_drwa_limits_come_back),
	KUNIT_CASE(tcp_drwa_counts),
	KUNIT_CASE(tcp_drwa_counts_no_pings),
	KUNIT_CASE(tcp_drwa_counts_uploads),
	KUNIT_CASE(tcp_drwa_counts_tunnels_once),
	KUNIT_CASE(tcp_drwa_rivals),
	KUNIT_CASE(tcp_drwa_switched_off),
	{}
};

static struct kunit_suite tcp_drwa_suite = {
	.name = "tcp_drwa",
	.init = tcp_drwa_test_init,
	.exit = tcp_drwa_test_exit,
	.test_cases = tcp_drwa_cases,
};

kunit_test_suite(tcp_drwa_suite);
