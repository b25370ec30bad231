// SPDX-License-Identifier: GPL-2.0-only
/* DRWA as a module: binding of the law to a kernel that nobody may patch
 *
 * Where a tree has Android's vendor hooks, these do:
 *
 *	android_vh_tcp_state_change	a connection's handshake is over: an entry for it
 *	android_vh_tcp_rcv_rtt_update	a segment came: its sample. android15-6.6 has no
 *					such hook: that of the last one before an answer
 *	android_vh_tcp_select_window	a segment is sent: rounds, and the window
 *	android_vh_sk_free		the entry goes
 *
 * Elsewhere, tracepoints, found by name:
 *
 *	inet_sock_set_state	a connection's handshake is over: an entry for it
 *	tcp_probe		a segment came: its sample, and rounds
 *	tcp_rcv_space_adjust	data was copied to the application: a window that was full
 *	tcp_destroy_sock	the entry goes
 *
 * They have no say when a window is chosen: it is set through window_clamp and
 * rcv_ssthresh, ahead of each answer, because the kernel's own tuning raises both.
 *
 * What the series keeps in struct tcp_sock is in a table here, by the socket's
 * address. All that changes an entry runs with the socket locked. There are @sockets
 * of them at most, and each goes before its socket's memory does.
 *
 * The knobs and counters are those of the series, from its own files.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

/* For get_unaligned_be32(), whose own header has moved */
#include <linux/etherdevice.h>
#include <linux/hashtable.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <net/tcp.h>
#include <trace/events/sock.h>
#include <trace/events/tcp.h>

/* A module has one init function. */
#undef late_initcall
#undef late_initcall_sync
#define late_initcall(init)	static initcall_t init##_type __initdata __maybe_unused = init
#define late_initcall_sync(init)	late_initcall(init)

/* A GKI lets no module use deferred keys. Behind a probe, a count is as quick. */
static atomic_t drwa_governed;
#undef DEFINE_STATIC_KEY_DEFERRED_FALSE
#define DEFINE_STATIC_KEY_DEFERRED_FALSE(...)
#undef static_branch_deferred_inc
#define static_branch_deferred_inc(...)		atomic_inc(&drwa_governed)
#undef static_branch_slow_dec_deferred
#define static_branch_slow_dec_deferred(...)	atomic_dec(&drwa_governed)

#include "tcp_drwa_core.c"
#include "tcp_drwa_sysctl.c"
#include "tcp_drwa_proc.c"

#ifdef DRWA_VENDOR_HOOKS
#include <trace/hooks/net.h>
#define DRWA_AT_HOOKS		true
#else
#define DRWA_AT_HOOKS		false
#endif

#define DRWA_SOCKETS_MAX	65536

/* Bytes of data; with less, tcp_event_data_recv() does not let the window grow. */
#define DRWA_GROWS_WITH		128

static unsigned int drwa_sockets = 4096;
module_param_named(sockets, drwa_sockets, uint, 0444);
MODULE_PARM_DESC(sockets, "connections at a time, 1 to 65536; others are not governed");

/**
 * struct drwa_sock - a governed connection
 * @node:	in drwa_table
 * @sk:		its socket
 * @drwa:	the law's state
 * @tsecr:	echo of the last sample, which one RTT has just once; without timestamps,
 *		when a window began to come
 * @rcv_nxt:	next byte expected when the last segment was sent, 0: never
 * @clamp:	what window_clamp and rcv_ssthresh were set to, 0: nothing
 * @set:	what rcv_ssthresh was set to
 * @ssthresh:	what it would be without us
 * @own:	what window_clamp would be without us
 * @rcu:	frees it
 */
struct drwa_sock {
	struct hlist_node node;
	struct sock *sk;
	struct drwa drwa;
	u32 tsecr;
	u32 rcv_nxt;
	u32 clamp;
	u32 set;
	u32 ssthresh;
	u32 own;
	struct rcu_head rcu;
};

/* Two cache lines */
static_assert(sizeof(struct drwa_sock) <= 128);

static DEFINE_HASHTABLE(drwa_table, 10);
/* Serialises changes of the table; look-ups are under RCU. */
static DEFINE_SPINLOCK(drwa_table_lock);
static unsigned int drwa_entries;
static struct kmem_cache *drwa_cache __read_mostly;
static bool drwa_closing;

static struct drwa_sock *drwa_find(const struct sock *sk)
{
	struct drwa_sock *s;

	hash_for_each_possible_rcu(drwa_table, s, node, (unsigned long)sk,
				   lockdep_sock_is_held(sk)) {
		if (s->sk == sk)
			return s;
	}
	return NULL;
}

/* The entry of a socket over a governed interface, or NULL; the socket is locked. */
static struct drwa_sock *drwa_get(struct sock *sk)
{
	struct drwa_sock *s = drwa_find(sk);
	struct tcp_drwa_dev *dev;

	if (s)
		return s;
	dev = tcp_drwa_dev_of(sk, tcp_drwa_rx_ifindex(sk));
	if (!dev || !READ_ONCE(dev->lambda) || READ_ONCE(drwa_closing) ||
	    READ_ONCE(drwa_entries) >= drwa_sockets)
		return NULL;
	s = kmem_cache_zalloc(drwa_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!s)
		return NULL;
	s->sk = sk;
	spin_lock_bh(&drwa_table_lock);
	hash_add_rcu(drwa_table, &s->node, (unsigned long)sk);
	WRITE_ONCE(drwa_entries, drwa_entries + 1);
	spin_unlock_bh(&drwa_table_lock);
	return s;
}

static void drwa_free(struct rcu_head *rcu)
{
	kmem_cache_free(drwa_cache, container_of(rcu, struct drwa_sock, rcu));
}

static void drwa_put(struct drwa_sock *s)
{
	spin_lock_bh(&drwa_table_lock);
	hash_del_rcu(&s->node);
	WRITE_ONCE(drwa_entries, drwa_entries - 1);
	spin_unlock_bh(&drwa_table_lock);
	call_rcu(&s->rcu, drwa_free);
}

static void drwa_forget_sock(const struct sock *sk)
{
	struct drwa_sock *s;

	rcu_read_lock();
	s = drwa_find(sk);
	if (s)
		drwa_put(s);
	rcu_read_unlock();
}

static u32 drwa_tick_us(const struct tcp_sock *tp)
{
	/* Since 6.7 a route may ask for ticks of 1 us. */
#ifdef TCP_DRWA_USEC_TS
	if (tp->tcp_usec_ts)
		return 1;
#endif
	return USEC_PER_SEC / TCP_TS_HZ;
}

/* The application's, or the kernel's, which is what the buffer has room for or a segment
 * less. 0 is ours; see drwa_is_full().
 */
static void drwa_find_own(const struct sock *sk, struct drwa_sock *s)
{
	u32 clamp = READ_ONCE(tcp_sk(sk)->window_clamp);

	if (clamp && clamp != s->clamp)
		s->own = clamp;
}

static int drwa_rmem_max(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);
}

/* As the series does: the kernel's limits, where what was offered keeps its room. */
static void drwa_shrink_rcvbuf(struct sock *sk, struct drwa_sock *s)
{
	int rmem_max = drwa_rmem_max(sk);
	u64 needed;

	if (sk->sk_rcvbuf <= rmem_max || (sk->sk_userlocks & SOCK_RCVBUF_LOCK))
		return;
	s->own = min_t(u32, s->own, tcp_win_from_space(sk, rmem_max));
	s->ssthresh = min(s->ssthresh, s->own);
	needed = tcp_drwa_space_from_win(sk, tcp_receive_window(tcp_sk(sk)));
	needed = max_t(u64, needed + atomic_read(&sk->sk_rmem_alloc), rmem_max);
	WRITE_ONCE(sk->sk_rcvbuf, min_t(u64, needed, sk->sk_rcvbuf));
}

static void drwa_let_go(struct sock *sk, struct drwa_sock *s)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!s->clamp)
		return;
	drwa_find_own(sk, s);
	s->clamp = 0;
	s->ssthresh = max(tp->rcv_ssthresh, s->ssthresh);
	drwa_shrink_rcvbuf(sk, s);
	WRITE_ONCE(tp->window_clamp, s->own);
	tp->rcv_ssthresh = s->ssthresh;
}

/* A window_clamp of 0 closes the window, as __tcp_select_window() does where less than
 * 1/16 of the buffer is free: of the whole one, and not of what a lower clamp leaves.
 * Only as long as there is more to read, which tells a tracepoint when there is room.
 */
static bool drwa_is_full(const struct sock *sk, u32 coming)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return !DRWA_AT_HOOKS && tp->copied_seq != tp->rcv_nxt &&
	       tcp_space(sk) - (int)coming < tcp_full_space(sk) / 16;
}

/* How far rcv_ssthresh would grow yet without us, with so much more in the buffer */
static int drwa_ssthresh_room(const struct sock *sk, const struct drwa_sock *s, u32 coming)
{
	return min_t(int, s->own, tcp_space(sk) - (int)coming) - (int)s->ssthresh;
}

/* The kernel offers rcv_ssthresh at most, which grows up to window_clamp; a hook sees to
 * that itself. @coming is room in the buffer that a segment is about to take.
 */
static void drwa_clamp(struct sock *sk, struct drwa_sock *s, u32 coming)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 wnd = s->drwa.wnd;

	if (!wnd) {
		drwa_let_go(sk, s);
		return;
	}
	drwa_find_own(sk, s);
	wnd = min(wnd, s->own);
	/* The kernel lowers it where memory is short, and raises it itself where it has
	 * room below window_clamp.
	 */
	if (!s->clamp || tp->rcv_ssthresh < s->set)
		s->ssthresh = tp->rcv_ssthresh;
	else
		s->ssthresh += tp->rcv_ssthresh - s->set;
	WRITE_ONCE(tp->window_clamp, drwa_is_full(sk, coming) ? 0 : wnd);
	tp->rcv_ssthresh = DRWA_AT_HOOKS ? s->ssthresh : min(s->ssthresh, wnd);
	s->set = tp->rcv_ssthresh;
	s->clamp = wnd;
}

/* Nothing is governed, and nothing that was has to be let go. */
static bool drwa_idle(void)
{
	return !atomic_read(&drwa_governed) && !READ_ONCE(drwa_entries);
}

/* Without the sender's clock, @rtt_us is the time in which a window came. A sender that
 * stops sending timestamps is a new one.
 */
static void drwa_sample_at(struct sock *sk, struct drwa_sock *s, u32 now_us, u32 rtt_us,
			   u32 owd_us, bool clock)
{
	struct tcp_drwa_dev *dev;

	if (s->drwa.rtt_us && (clock || !s->drwa.clock)) {
		drwa_sample(&s->drwa, rtt_us, owd_us);
		return;
	}
	dev = tcp_drwa_dev_of(sk, tcp_drwa_rx_ifindex(sk));
	if (!dev || !READ_ONCE(dev->lambda))
		return;
	drwa_reset(&s->drwa, DRWA_LAW_DELAY);
	tcp_drwa_dev_start(dev, &s->drwa, now_us, tcp_sk(sk)->rcv_nxt, rtt_us, owd_us, clock);
}

static u32 drwa_owd_us(const struct tcp_sock *tp, u32 now_us, u32 tsval)
{
	return now_us - tsval * drwa_tick_us(tp);
}

/* tcp_init_buffer_space(), which comes after an active open's last change of state, keeps
 * a segment's room where it finds the whole buffer offered, and it finds our clamp.
 */
static void drwa_reserve_segment(const struct sock *sk, struct drwa_sock *s)
{
	u32 full = tcp_full_space(sk), advmss = tcp_sk(sk)->advmss;

	if (READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_app_win) && s->own > 2 * advmss &&
	    s->own + advmss > full)
		s->own = max(2 * advmss, full - advmss);
}

/* The handshake met no queue of its own connection: the best base there is. */
static void drwa_connected(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 now_us = tcp_clock_us();
	struct drwa_sock *s;

	/* One that was disconnected is another connection now. */
	if (READ_ONCE(drwa_entries))
		drwa_forget_sock(sk);
	if (!tp->srtt_us)
		return;
	rcu_read_lock();
	s = drwa_get(sk);
	if (s)
		drwa_sample_at(sk, s, now_us, tp->srtt_us >> 3,
			       drwa_owd_us(tp, now_us, tp->rx_opt.rcv_tsval),
			       tp->rx_opt.saw_tstamp);
	if (s && s->drwa.wnd) {
		/* A SYN's header says no more, whatever the buffer has room for. */
		tp->rcv_wnd = min_t(u32, tp->rcv_wnd, U16_MAX);
		drwa_clamp(sk, s, 0);
		drwa_reserve_segment(sk, s);
		/* Which lowers rcv_ssthresh to our clamp, too; that is no lack of memory. */
		s->set = min(s->set, s->clamp);
		tp->rcv_ssthresh = s->set;
	}
	rcu_read_unlock();
}

/* As the series does: tcp_rcv_space_adjust() counts what is copied in the least RTT,
 * which is less than comes in a round where the law wants a queue.
 */
static void drwa_grow_rcvbuf(struct sock *sk, struct drwa_sock *s, u32 received)
{
	int room, rcvbuf, rmem_max = drwa_rmem_max(sk);
	u32 clamp, wnd = s->drwa.wnd;

	if (!wnd || !READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_moderate_rcvbuf))
		return;
	/* An application's clamp is below what the buffer has room for (TCP_WINDOW_CLAMP),
	 * and the kernel's by a segment at most.
	 */
	drwa_find_own(sk, s);
	room = tcp_win_from_space(sk, min(sk->sk_rcvbuf, rmem_max));
	if ((int)s->own < room - tcp_sk(sk)->advmss)
		return;
	rcvbuf = min_t(u64, tcp_drwa_rcvbuf(sk, min(received, wnd)),
		       tcp_drwa_rcvbuf_max(sk, wnd, rmem_max));
	clamp = tcp_win_from_space(sk, rcvbuf);
	if (rcvbuf > sk->sk_rcvbuf)
		WRITE_ONCE(sk->sk_rcvbuf, rcvbuf);
	if (clamp > s->own)
		WRITE_ONCE(tcp_sk(sk)->window_clamp, clamp);
}

static void drwa_end_round(struct sock *sk, struct drwa_sock *s, struct tcp_drwa_dev *dev,
			   u32 now_us, u32 rcv_nxt)
{
	u32 received = rcv_nxt - s->drwa.round_seq;
	struct tcp_sock *tp = tcp_sk(sk);

	if (!dev || !tcp_drwa_dev_round(dev, &s->drwa, now_us, rcv_nxt, tp->advmss)) {
		drwa_reset(&s->drwa, DRWA_LAW_DELAY);
		return;
	}
	s->drwa.wnd = ALIGN(s->drwa.wnd, 1U << tp->rx_opt.rcv_wscale);
	drwa_grow_rcvbuf(sk, s, received);
}

/* RTT of a segment that is being received, as the peer's echo has it, us */
static u32 __maybe_unused drwa_rtt_us(const struct tcp_sock *tp, u64 now_us, u32 tsecr)
{
	u32 tick_us = drwa_tick_us(tp);

	return ((u32)div_u64(now_us, tick_us) - tsecr) * tick_us;
}

/* Each probe has its tracepoint's type, or the build fails: where the kernel checks
 * indirect calls (kCFI), it would not survive another one. They are attached in the
 * table's order, so first comes what sees an entry's socket go.
 */
struct drwa_probe {
	const char *name;
	void *probe;
	struct tracepoint *tp;
	bool attached;
};

#ifdef DRWA_VENDOR_HOOKS
static void drwa_state_changed(void *data, struct sock *sk,
			       enum tcp_state_change_reason reason, int now)
{
	if (reason == TCP_STATE_CHANGE_REASON_NORMAL && now == TCP_ESTABLISHED && !drwa_idle())
		drwa_connected(sk);
}

#ifdef DRWA_RTT_HOOK
static void drwa_measured(void *data, struct tcp_sock *tp, u32 rtt_us, int by_window)
{
	struct sock *sk = (struct sock *)tp;
	u32 now_us = tcp_clock_us();
	struct tcp_drwa_dev *dev;
	struct drwa_sock *s;

	if ((by_window && tp->rx_opt.saw_tstamp) || drwa_idle())
		return;
	rcu_read_lock();
	s = drwa_get(sk);
	if (s) {
		drwa_sample_at(sk, s, now_us, rtt_us,
			       drwa_owd_us(tp, now_us, tp->rx_opt.rcv_tsval), !by_window);
		dev = tcp_drwa_dev_of(sk, tcp_drwa_rx_ifindex(sk));
		if (dev)
			drwa_heard(tcp_drwa_link(dev), now_us);
	}
	rcu_read_unlock();
}

static void drwa_measure(struct sock *sk, struct drwa_sock *s, u64 now_us) { }
#else
/* Since the last answer, has a window come? tcp_rcv_rtt_measure() tells when it began. */
static void drwa_measure_window(struct sock *sk, struct drwa_sock *s, u32 now_us)
{
	u32 begun_us = tcp_sk(sk)->rcv_rtt_est.time, last_us = s->tsecr;

	if (begun_us == last_us)
		return;
	s->tsecr = begun_us;
	if (last_us)
		drwa_sample_at(sk, s, now_us, begun_us - last_us, 0, false);
}

/* The last segment that came, if it came just now: an answer may have waited. */
static void drwa_measure(struct sock *sk, struct drwa_sock *s, u64 now_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us, tsecr = tp->rx_opt.rcv_tsecr;

	if (!tp->rx_opt.saw_tstamp) {
		drwa_measure_window(sk, s, now_us);
		return;
	}
	if (tsecr == s->tsecr || inet_csk(sk)->icsk_ack.lrcvtime != tcp_jiffies32)
		return;
	s->tsecr = tsecr;
	if (tp->rcv_nxt - s->rcv_nxt < inet_csk(sk)->icsk_ack.rcv_mss)
		return;
	rtt_us = drwa_rtt_us(tp, now_us, tsecr);
	if ((s32)rtt_us > 0)
		drwa_sample_at(sk, s, now_us, rtt_us,
			       drwa_owd_us(tp, now_us, tp->rx_opt.rcv_tsval), true);
}
#endif /* DRWA_RTT_HOOK */

/* As tcp_grow_window() has it for what came since the last segment was sent; it has no
 * room to grow below a clamp of ours. While rcv_ssthresh grows, each segment is
 * acknowledged at once.
 */
static void drwa_grow_ssthresh(struct sock *sk, struct drwa_sock *s)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	int room = drwa_ssthresh_room(sk, s, 0);
	u32 came = tp->rcv_nxt - s->rcv_nxt;

	if (!s->clamp || s->ssthresh < s->clamp || room <= 0 || came < DRWA_GROWS_WITH)
		return;
	s->ssthresh += min_t(u32, room, 2 * max_t(u32, tp->advmss, came));
	s->set = s->ssthresh;
	tp->rcv_ssthresh = s->ssthresh;
	/* The segment that is being sent takes one. */
	icsk->icsk_ack.quick = max_t(u8, icsk->icsk_ack.quick, 2);
}

/* Is the round over? An answer that waited, for a second segment or for the reader, tells of
 * no arrival: nobody knows any more when it was.
 */
static bool drwa_is_due(const struct sock *sk, const struct drwa_sock *s,
			struct tcp_drwa_dev *dev, u32 now_us, u32 bytes)
{
	if (!s->drwa.rtt_us || (sk->sk_shutdown & RCV_SHUTDOWN))
		return false;
	if (!dev)
		return true;
	if (inet_csk(sk)->icsk_ack.lrcvtime == tcp_jiffies32)
		return tcp_drwa_dev_due(dev, &s->drwa, now_us, bytes);
	drwa_credit(tcp_drwa_link(dev), bytes);
	return drwa_due(&s->drwa, tcp_drwa_link(dev), now_us);
}

/* Ahead of the rule that the right edge never moves back, which is the kernel's */
static void drwa_select_window(void *data, struct sock *sk, u32 *window)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now_us = tcp_clock_us();
	struct tcp_drwa_dev *dev;
	struct drwa_sock *s;
	u32 least, bytes;

	if (drwa_idle())
		return;
	rcu_read_lock();
	s = drwa_get(sk);
	if (!s)
		goto unlock;
	dev = tcp_drwa_dev_of(sk, tcp_drwa_rx_ifindex(sk));
	if (s->rcv_nxt != tp->rcv_nxt) {
		drwa_measure(sk, s, now_us);
		drwa_grow_ssthresh(sk, s);
		bytes = s->rcv_nxt ? tp->rcv_nxt - s->rcv_nxt : 0;
		s->rcv_nxt = tp->rcv_nxt;
		/* Behind a hole, data comes that is not counted yet. */
		if (drwa_is_due(sk, s, dev, now_us, bytes))
			drwa_end_round(sk, s, dev, now_us, tp->rcv_nxt);
	}
	/* For the kernel's own questions, whether reading has made room for an offer */
	drwa_clamp(sk, s, 0);
	least = ALIGN(tcp_receive_window(tp), 1U << tp->rx_opt.rcv_wscale);
	least = max(least, s->drwa.wnd);
	if (s->drwa.wnd && *window > least) {
		*window = least;
		if (dev)
			this_cpu_inc(dev->stats->count[TCP_DRWA_CAPPED]);
	}
unlock:
	rcu_read_unlock();
}

static void drwa_freed(void *data, struct sock *sk)
{
	if (READ_ONCE(drwa_entries))
		drwa_forget_sock(sk);
}

#define DRWA_PROBE(hook, probe)	{ #hook, probe, &__tracepoint_##hook }
static struct drwa_probe drwa_probes[] = {
	DRWA_PROBE(android_vh_sk_free, drwa_freed),
	DRWA_PROBE(android_vh_tcp_state_change, drwa_state_changed),
#ifdef DRWA_RTT_HOOK
	DRWA_PROBE(android_vh_tcp_rcv_rtt_update, drwa_measured),
#endif
	DRWA_PROBE(android_vh_tcp_select_window, drwa_select_window),
};

static void __maybe_unused drwa_check_types(void)
{
	check_trace_callback_type_android_vh_sk_free(drwa_freed);
	check_trace_callback_type_android_vh_tcp_state_change(drwa_state_changed);
#ifdef DRWA_RTT_HOOK
	check_trace_callback_type_android_vh_tcp_rcv_rtt_update(drwa_measured);
#endif
	check_trace_callback_type_android_vh_tcp_select_window(drwa_select_window);
}

static void drwa_find_tracepoints(void) { }
#else /* DRWA_VENDOR_HOOKS */
static void drwa_state_changed(void *data, const struct sock *csk, const int before,
			       const int now)
{
	if (now == TCP_ESTABLISHED && csk->sk_protocol == IPPROTO_TCP && !drwa_idle())
		drwa_connected((struct sock *)csk);
}

/* The timestamps of a segment; they are parsed later on, if ever. */
static bool drwa_timestamps(const struct tcphdr *th, u32 *tsval, u32 *tsecr)
{
	const u8 *at = (const u8 *)(th + 1), *end = (const u8 *)th + th->doff * 4;

	while (at + TCPOLEN_TIMESTAMP <= end && *at != TCPOPT_EOL) {
		if (*at == TCPOPT_NOP) {
			at++;
			continue;
		}
		if (*at == TCPOPT_TIMESTAMP && at[1] == TCPOLEN_TIMESTAMP) {
			*tsval = get_unaligned_be32(at + 2);
			*tsecr = get_unaligned_be32(at + 6);
			return true;
		}
		if (at[1] < 2)
			return false;
		at += at[1];
	}
	return false;
}

/* As tcp_rcv_rtt_measure_ts() has it */
static void drwa_measure(struct sock *sk, struct drwa_sock *s, u64 now_us, u32 tsval,
			 u32 tsecr, u32 len)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us;

	if (tsecr == s->tsecr)
		return;
	s->tsecr = tsecr;
	if (len < inet_csk(sk)->icsk_ack.rcv_mss)
		return;
	rtt_us = drwa_rtt_us(tp, now_us, tsecr - tp->tsoffset);
	if ((s32)rtt_us > 0)
		drwa_sample_at(sk, s, now_us, rtt_us, drwa_owd_us(tp, now_us, tsval), true);
}

/* As tcp_rcv_rtt_measure() has it, of what there will be with the segment */
static void drwa_measure_window(struct sock *sk, struct drwa_sock *s, u32 now_us, u32 rcv_nxt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us = now_us - (u32)tp->rcv_rtt_est.time;

	if (tp->rcv_rtt_est.time && !before(rcv_nxt, tp->rcv_rtt_est.seq))
		drwa_sample_at(sk, s, now_us, max(rtt_us, 1U), 0, false);
}

/* The next byte expected, once the kernel has taken what comes up to @end_seq, and with it
 * what had waited behind.
 */
static u32 drwa_next(const struct tcp_sock *tp, u32 end_seq)
{
	const struct tcp_sack_block *sack = tp->selective_acks;
	int i;

	for (i = 0; i < tp->rx_opt.num_sacks; i++) {
		if (!after(sack[i].start_seq, end_seq) && after(sack[i].end_seq, end_seq)) {
			end_seq = sack[i].end_seq;
			i = -1;
		}
	}
	return end_seq;
}

/* A round ends with the segment whose bytes are the next ones, before the kernel takes it:
 * one that it drops comes again, with the same bytes.
 */
static void drwa_learn(struct sock *sk, struct drwa_sock *s, const struct sk_buff *skb, u32 len)
{
	u32 seq = TCP_SKB_CB(skb)->seq, end_seq = TCP_SKB_CB(skb)->end_seq;
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 tsval, tsecr, rcv_nxt;
	u64 now_us = tcp_clock_us();
	struct tcp_drwa_dev *dev;
	bool clock;

	/* The kernel has still to look whether it is in the window, and new. */
	if (before(end_seq, tp->rcv_wup) || after(seq, tp->rcv_nxt + tcp_receive_window(tp)))
		return;
	clock = tp->rx_opt.tstamp_ok && drwa_timestamps(tcp_hdr(skb), &tsval, &tsecr);
	if (clock && (s32)(tsval - tp->rx_opt.ts_recent) >= 0)
		drwa_measure(sk, s, now_us, tsval, tsecr, len);
	/* Behind a hole, data comes that is not counted yet; with a FIN, nothing comes behind. */
	if (after(seq, tp->rcv_nxt) || !after(end_seq, tp->rcv_nxt) ||
	    !tcp_receive_window(tp) || (TCP_SKB_CB(skb)->tcp_flags & TCPHDR_FIN))
		return;
	if (!clock)
		drwa_measure_window(sk, s, now_us, end_seq);
	dev = tcp_drwa_dev_of(sk, tcp_drwa_rx_ifindex(sk));
	rcv_nxt = drwa_next(tp, end_seq);
	if (!s->drwa.rtt_us ||
	    (dev && !tcp_drwa_dev_due(dev, &s->drwa, now_us, rcv_nxt - tp->rcv_nxt)))
		return;
	if (!before(rcv_nxt, s->drwa.round_seq))
		drwa_end_round(sk, s, dev, now_us, rcv_nxt);
}

/* As tcp_grow_window() has it, which has little or no room to grow below a clamp of ours:
 * while rcv_ssthresh grows, each segment is acknowledged at once.
 */
static void drwa_grow_ssthresh(struct sock *sk, struct drwa_sock *s,
			       const struct sk_buff *skb, u32 len, u32 coming)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 growth = 2 * max_t(u32, tp->advmss, len);
	bool larger = (skb_shinfo(skb)->gso_size ?: len) > icsk->icsk_ack.rcv_mss;
	u32 kernels = s->clamp - min(s->clamp, tp->rcv_ssthresh);
	int room = drwa_ssthresh_room(sk, s, coming);
	u32 paused_us = tcp_clock_us() - tp->tcp_mstamp;

	if (kernels >= growth || len < DRWA_GROWS_WITH ||
	    !after(TCP_SKB_CB(skb)->end_seq, tp->rcv_nxt) || (room <= 0 && !larger))
		return;
	/* With the first segment of its size the kernel sets window_clamp anew, and after a
	 * pause it raises icsk_ack.quick first: it grows what it finds lowered.
	 */
	if (larger || paused_us > icsk->icsk_rto * (USEC_PER_SEC / HZ)) {
		tp->rcv_ssthresh -= min(growth, tp->rcv_ssthresh);
		s->set = tp->rcv_ssthresh;
		return;
	}
	growth = min_t(u32, room, growth);
	s->ssthresh += growth - min(growth, kernels);
	icsk->icsk_ack.quick |= 1;
}

/* As __tcp_ack_snd_check() has it, which waits for a second segment and until the window
 * is not below what was offered: a window that is lowered is, and only ours.
 */
static void drwa_acknowledge(struct sock *sk, const struct drwa_sock *s, u32 len, u32 coming)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (tp->rcv_wnd > s->clamp && tp->window_clamp &&
	    tp->rcv_nxt + len - tp->rcv_wup > icsk->icsk_ack.rcv_mss &&
	    min_t(int, s->ssthresh, tcp_space(sk) - (int)coming) >= (int)tp->rcv_wnd)
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
}

/* Room that the buffer has less with a segment; tcp_try_coalesce() frees the head of what
 * joins the one before.
 */
static u32 drwa_room_for(const struct sock *sk, const struct sk_buff *skb, u32 header)
{
	const struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);
	u32 truesize = skb->truesize;

	if (tail && skb_headlen(skb) == header &&
	    skb_shinfo(tail)->nr_frags + skb_shinfo(skb)->nr_frags <= MAX_SKB_FRAGS)
		truesize -= SKB_TRUESIZE(skb_end_offset(skb));
	return tcp_win_from_space(sk, truesize);
}

static void drwa_came(void *data, struct sock *sk, struct sk_buff *skb)
{
	const struct tcphdr *th = tcp_hdr(skb);
	u32 len = skb->len - th->doff * 4, coming = 0;
	struct drwa_sock *s;
	bool next;

	if (drwa_idle() || (s32)len <= 0)
		return;
	rcu_read_lock();
	s = drwa_get(sk);
	if (s) {
		next = TCP_SKB_CB(skb)->seq == tcp_sk(sk)->rcv_nxt;
		if (next)
			coming = drwa_room_for(sk, skb, th->doff * 4);
		drwa_learn(sk, s, skb, len);
		drwa_clamp(sk, s, coming);
		if (s->clamp)
			drwa_grow_ssthresh(sk, s, skb, len, coming);
		if (s->clamp && next)
			drwa_acknowledge(sk, s, len, coming);
	}
	rcu_read_unlock();
}

/* A window that drwa_is_full() closed may open again. */
static void drwa_copied(void *data, struct sock *sk)
{
	struct drwa_sock *s;

	if (drwa_idle() || tcp_sk(sk)->window_clamp)
		return;
	rcu_read_lock();
	s = drwa_find(sk);
	if (s)
		drwa_clamp(sk, s, 0);
	rcu_read_unlock();
}

static void drwa_destroyed(void *data, struct sock *sk)
{
	drwa_forget_sock(sk);
}

static struct drwa_probe drwa_probes[] = {
	{ "tcp_destroy_sock", drwa_destroyed },
	{ "inet_sock_set_state", drwa_state_changed },
	{ "tcp_probe", drwa_came },
	{ "tcp_rcv_space_adjust", drwa_copied },
};

static void __maybe_unused drwa_check_types(void)
{
	check_trace_callback_type_inet_sock_set_state(drwa_state_changed);
	check_trace_callback_type_tcp_probe(drwa_came);
	check_trace_callback_type_tcp_rcv_space_adjust(drwa_copied);
	check_trace_callback_type_tcp_destroy_sock(drwa_destroyed);
}

static void drwa_match(struct tracepoint *tp, void *data)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(drwa_probes); i++) {
		if (!strcmp(tp->name, drwa_probes[i].name))
			drwa_probes[i].tp = tp;
	}
}

static void drwa_find_tracepoints(void)
{
	for_each_kernel_tracepoint(drwa_match, NULL);
}
#endif /* DRWA_VENDOR_HOOKS */

static void drwa_detach(void)
{
	struct drwa_probe *p;

	for (p = drwa_probes; p < drwa_probes + ARRAY_SIZE(drwa_probes); p++) {
		if (p->attached)
			tracepoint_probe_unregister(p->tp, p->probe, NULL);
	}
	tracepoint_synchronize_unregister();
	/* Nobody asks for another count. */
	cancel_work_sync(&tcp_drwa_counting);
}

static int drwa_attach(void)
{
	struct drwa_probe *p;
	int err;

	drwa_find_tracepoints();
	for (p = drwa_probes; p < drwa_probes + ARRAY_SIZE(drwa_probes); p++) {
		if (p->tp)
			continue;
		pr_err("this kernel has no tracepoint %s\n", p->name);
		return -EOPNOTSUPP;
	}
	for (p = drwa_probes; p < drwa_probes + ARRAY_SIZE(drwa_probes); p++) {
		err = tracepoint_probe_register(p->tp, p->probe, NULL);
		if (err) {
			pr_err("cannot attach to %s: error %d\n", p->name, err);
			drwa_detach();
			return err;
		}
		p->attached = true;
	}
	return 0;
}

/* One socket that is still in the table, held, or NULL. As long as the probes are there,
 * an entry's socket is not freed.
 */
static struct sock *drwa_hold_one(void)
{
	struct sock *sk = NULL;
	struct drwa_sock *s;
	int bucket;

	rcu_read_lock();
	hash_for_each_rcu(drwa_table, bucket, s, node) {
		if (refcount_inc_not_zero(&s->sk->sk_refcnt)) {
			sk = s->sk;
			break;
		}
	}
	rcu_read_unlock();
	return sk;
}

static void drwa_let_all_go(void)
{
	struct drwa_sock *s;
	struct sock *sk;

	WRITE_ONCE(drwa_closing, true);
	tracepoint_synchronize_unregister();
	while ((sk = drwa_hold_one())) {
		lock_sock(sk);
		rcu_read_lock();
		s = drwa_find(sk);
		if (s) {
			drwa_let_go(sk, s);
			drwa_put(s);
		}
		rcu_read_unlock();
		release_sock(sk);
		sock_put(sk);
		cond_resched();
	}
}

/* Interfaces go with the notifier. */
static void drwa_remove_knobs(void)
{
	unregister_netdevice_notifier(&tcp_drwa_netdev_notifier);
	unregister_pernet_subsys(&tcp_drwa_net_ops);
}

static int __init drwa_init(void)
{
	int err;

	if (IS_ENABLED(CONFIG_TCP_DRWA)) {
		pr_err("this kernel has the patch series: it needs no module\n");
		return -EEXIST;
	}
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		pr_err("probes would sleep where PREEMPT_RT may not: take the patch series\n");
		return -EOPNOTSUPP;
	}
	if (!drwa_sockets || drwa_sockets > DRWA_SOCKETS_MAX) {
		pr_err("sockets=%u: give 1 to %d\n", drwa_sockets, DRWA_SOCKETS_MAX);
		return -EINVAL;
	}
	drwa_cache = KMEM_CACHE(drwa_sock, 0);
	if (!drwa_cache)
		return -ENOMEM;
	err = tcp_drwa_sysctl_init();
	if (err)
		goto destroy_cache;
	err = tcp_drwa_proc_init();
	if (err)
		goto remove_knobs;
	err = drwa_attach();
	if (err)
		goto remove_proc;
	return 0;
remove_proc:
	unregister_pernet_subsys(&tcp_drwa_proc_net_ops);
remove_knobs:
	drwa_remove_knobs();
destroy_cache:
	kmem_cache_destroy(drwa_cache);
	return err;
}

/* Sockets that had no reference any more, but were not freed yet */
static void drwa_put_all(void)
{
	struct hlist_node *next;
	struct drwa_sock *s;
	int bucket;

	hash_for_each_safe(drwa_table, bucket, next, s, node)
		drwa_put(s);
}

static void __exit drwa_exit(void)
{
	drwa_let_all_go();
	drwa_detach();
	drwa_put_all();
	unregister_pernet_subsys(&tcp_drwa_proc_net_ops);
	drwa_remove_knobs();
	rcu_barrier();
	kmem_cache_destroy(drwa_cache);
}

module_init(drwa_init);
module_exit(drwa_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP Dynamic Receive Window Adjustment");
