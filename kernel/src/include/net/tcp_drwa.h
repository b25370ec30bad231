/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DRWA, Dynamic Receive Window Adjustment: hooks of the TCP receive path
 *
 * All are one patched branch while no interface has a tcp_drwa_lambda.
 */
#ifndef _NET_TCP_DRWA_H
#define _NET_TCP_DRWA_H

#include <linux/jump_label_ratelimit.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/sysctl.h>
#include <linux/tcp.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

/*
 * Bound of what a governed socket's receive buffer takes beyond tcp_rmem[2]. It
 * holds 100 Mb/s at an RTT of 600 ms and gives a window scale of 9, which
 * rounds the window to 512 bytes.
 */
#define TCP_DRWA_RMEM_MAX	(16 << 20)

/* Bins of a histogram. The first one counts less than 1024 us, a tick of TSval,
 * each other one twice as far, and the last one, from 4.2 s on, all the rest.
 */
#define TCP_DRWA_BINS		14
#define TCP_DRWA_BIN_SHIFT	10

enum tcp_drwa_count {
	TCP_DRWA_SOCKETS,	/* connections that came under control */
	TCP_DRWA_ROUNDS,	/* rounds of the law */
	TCP_DRWA_CAPPED,	/* segments that offered less for it */
	TCP_DRWA_DELAY_US,	/* rounds by queueing delay */
	TCP_DRWA_RTT_US = TCP_DRWA_DELAY_US + TCP_DRWA_BINS, /* by RTT without */
	TCP_DRWA_COUNTS = TCP_DRWA_RTT_US + TCP_DRWA_BINS,
};

struct tcp_drwa_stats {
	unsigned long count[TCP_DRWA_COUNTS];
};

/**
 * struct tcp_drwa_queue - a queue at the other end of one interface or more
 * @link:	what the connections that wait in it share
 * @id:		name of the queue in its name space, 0: of one interface alone
 * @due_us:	when a connection last asked for a count of its bytes
 * @due_rtt_us:	RTT of that connection, 0: counted
 * @came:	bytes that came through it so far; wraps
 * @sent:	those that were sent
 * @devs:	its interfaces
 * @node:	in the list of all queues
 * @rcu:	for kfree_rcu()
 */
struct tcp_drwa_queue {
	struct drwa_link link;
	int id;
	u32 due_us;
	u32 due_rtt_us;
	u32 came;
	u32 sent;
	struct list_head devs;
	struct list_head node;
	struct rcu_head rcu;
};

/**
 * struct tcp_drwa_traffic - one way of an interface, by its statistics
 * @bytes:	with link layer headers, where it has them
 * @packets:	of these
 */
struct tcp_drwa_traffic {
	u64 bytes;
	u64 packets;
};

/**
 * struct tcp_drwa_dev - an interface with a knob that was turned
 * @lambda:	target in hundredths, 0: off
 * @epoch:	how often it was switched on
 * @rivals:	whether traffic that nobody governs may be a rival's
 * @counted:	whether @rx and @tx are known
 * @rx:		what had come when the queue's bytes were last counted
 * @tx:		what had gone up by then
 * @queue:	where its packets wait
 * @node:	in the list of the queue's interfaces
 * @stats:	what was counted since then
 * @netdev:	interface; outlives the RCU read sides that find this
 * @rcu:	frees it
 */
struct tcp_drwa_dev {
	int lambda;
	u8 epoch;
	bool rivals;
	bool counted;
	struct tcp_drwa_traffic rx;
	struct tcp_drwa_traffic tx;
	struct tcp_drwa_queue __rcu *queue;
	struct list_head node;
	struct tcp_drwa_stats __percpu *stats;
	struct net_device *netdev;
	struct rcu_head rcu;
};

enum tcp_drwa_file {
	TCP_DRWA_LAMBDA,
	TCP_DRWA_QUEUE,
	TCP_DRWA_RIVALS,
	TCP_DRWA_FILES,
};

/**
 * struct tcp_drwa_files - the knobs of an interface, which is all there is of most
 * @netdev:	interface
 * @dev:	what is set and counted, NULL: nothing ever was
 * @header:	its sysctl files
 * @table:	the files' table; the last entry ends it before 6.11
 */
struct tcp_drwa_files {
	struct net_device *netdev;
	struct tcp_drwa_dev *dev;
	struct ctl_table_header *header;
	struct ctl_table table[TCP_DRWA_FILES + 1];
};

extern struct static_key_false_deferred tcp_drwa_enabled;
extern struct work_struct tcp_drwa_counting;

struct tcp_drwa_files *tcp_drwa_files_of(const struct net_device *netdev);
struct tcp_drwa_dev *tcp_drwa_dev_get(struct net *net, int ifindex);
struct tcp_drwa_dev *tcp_drwa_dev_find(struct net *net, unsigned long *ifindex);
unsigned long tcp_drwa_counted(const struct tcp_drwa_dev *dev, int item);
struct tcp_drwa_dev *tcp_drwa_dev_of(const struct sock *sk, int ifindex);
void tcp_drwa_dev_start(struct tcp_drwa_dev *dev, struct drwa *d, u32 now_us,
			u32 rcv_nxt, u32 rtt_us, u32 owd_us, bool clock);
bool tcp_drwa_dev_due(struct tcp_drwa_dev *dev, const struct drwa *d, u32 now_us,
		      u32 bytes);
bool tcp_drwa_dev_round(struct tcp_drwa_dev *dev, struct drwa *d, u32 now_us,
			u32 rcv_nxt, u32 mss);
u64 tcp_drwa_rcvbuf(const struct sock *sk, u32 window);
int tcp_drwa_rcvbuf_max(const struct sock *sk, u32 wnd, int rmem_max);

#ifdef CONFIG_TCP_DRWA

u32 tcp_drwa_sk_lambda(const struct sock *sk);
void __tcp_drwa_rtt_sample(struct sock *sk, u32 rtt_us);
void __tcp_drwa_connected(struct sock *sk);
void __tcp_drwa_data_recv(struct sock *sk, u32 seq);
u32 __tcp_drwa_offer(const struct sock *sk, u32 wnd);
int __tcp_drwa_rmem_max(const struct sock *sk, int rmem_max);

/* Is any interface governed? For up to a second longer, since whoever owns a
 * name space may write the knob at any rate, and each change patches the code.
 */
static __always_inline bool tcp_drwa_on(void)
{
	return static_branch_unlikely(&tcp_drwa_enabled.key);
}

/* A receive RTT sample, us: by timestamps where the peer sends them, or else the time
 * that a window's worth of data took.
 */
static inline void tcp_drwa_rtt_sample(struct sock *sk, u32 rtt_us)
{
	if (tcp_drwa_on())
		__tcp_drwa_rtt_sample(sk, rtt_us);
}

/* The handshake is over, no data came yet; its RTT is in srtt_us. */
static inline void tcp_drwa_connected(struct sock *sk)
{
	if (tcp_drwa_on())
		__tcp_drwa_connected(sk);
}

/* Data from @seq on came, with all behind it that had waited; tcp_mstamp is fresh. */
static inline void tcp_drwa_data_recv(struct sock *sk, u32 seq)
{
	if (tcp_drwa_on())
		__tcp_drwa_data_recv(sk, seq);
}

/* The window to offer where the kernel would offer @wnd bytes. */
static inline u32 tcp_drwa_cap(const struct tcp_sock *tp, u32 wnd)
{
	if (tcp_drwa_on() && tp->drwa.wnd)
		return min(wnd, tp->drwa.wnd);
	return wnd;
}

/* tcp_drwa_cap() for the segment that is about to be sent: as far as it may be,
 * for what was offered stays offered
 */
static inline u32 tcp_drwa_offer(const struct sock *sk, u32 wnd)
{
	if (tcp_drwa_cap(tcp_sk(sk), wnd) < wnd)
		return __tcp_drwa_offer(sk, wnd);
	return wnd;
}

/* Limit of a buffer that the kernel tunes, bytes: tcp_rmem[2] unless governed */
static inline int tcp_drwa_rmem_max(const struct sock *sk)
{
	int rmem_max = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);

	if (tcp_drwa_on() && tcp_sk(sk)->drwa.wnd)
		return __tcp_drwa_rmem_max(sk, rmem_max);
	return rmem_max;
}

/*
 * The same at the SYN, which chooses the window scale. Connections that a
 * listener accepts keep the scale that tcp_rmem[2] gives: their SYN ACK may be
 * made again from a cookie, without a route at hand.
 */
static inline int tcp_drwa_syn_rmem_max(const struct sock *sk)
{
	int rmem_max = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);

	if (tcp_drwa_on() && tcp_drwa_sk_lambda(sk))
		return max(rmem_max, TCP_DRWA_RMEM_MAX);
	return rmem_max;
}

static inline void tcp_drwa_init(struct tcp_sock *tp)
{
	drwa_reset(&tp->drwa, DRWA_LAW_DELAY);
}

#else /* CONFIG_TCP_DRWA */

static inline void tcp_drwa_rtt_sample(struct sock *sk, u32 rtt_us)
{
}

static inline void tcp_drwa_connected(struct sock *sk)
{
}

static inline void tcp_drwa_data_recv(struct sock *sk, u32 seq)
{
}

static inline u32 tcp_drwa_cap(const struct tcp_sock *tp, u32 wnd)
{
	return wnd;
}

static inline u32 tcp_drwa_offer(const struct sock *sk, u32 wnd)
{
	return wnd;
}

static inline int tcp_drwa_rmem_max(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);
}

static inline int tcp_drwa_syn_rmem_max(const struct sock *sk)
{
	return tcp_drwa_rmem_max(sk);
}

static inline void tcp_drwa_init(struct tcp_sock *tp)
{
}

#endif /* CONFIG_TCP_DRWA */

#endif /* _NET_TCP_DRWA_H */
