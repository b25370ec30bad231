// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lab's init: one process that plays the server, the phone's applications
 * and the observer.
 *
 * The kernel parameter lab_out=DIR reaches it as an environment variable: the
 * host folder with spec ("key value..." lines written by drwalab/guest.py) and
 * setup.sh, where the results go too.
 *
 * It prepares the file systems, lets setup.sh build the network (namespaces
 * server, router and phone), opens its sockets in those namespaces and serves
 * all of them from one epoll loop, so that no scheduling decision can come
 * between two events of the same virtual instant. Results are lines in
 * the file raw: a letter that names the record, then numbers; times are
 * microseconds since the flows started.
 *
 *   b rtt_us				idle probe: the base RTT
 *   t t0_us				CLOCK_MONOTONIC when the flows started
 *   p sent_us rtt_us number		answered probe
 *   l sent_us number			probe without an answer, at the end
 *   y number up_us			time of an answered probe's way up
 *   s t_us flow received_bytes snd_wnd snd_cwnd	one sample of a download
 *   n t_us neighbour received_bytes	one sample of a neighbour
 *   c neighbour sent arrived received	packets of a call or a game, at the end: those that
 *				the server sent, the radio brought, the phone's application got
 *   q t_us backlog_bytes		downlink queue
 *   m t_us byte_ns max_bytes		the modem: bytes in it, summed over time, and the most
 *   f flow port			port of the end that opened a download
 *   o start_us fct_us bytes		fetched object
 *   w count				objects still being fetched, at the end
 *   v start_us fct_us bytes		segment of a burst reader
 *   x t_us upload received_bytes	one sample of an upload
 *   u upload received_bytes lost	at the end, with its retransmits, or QUIC's losses
 *   r flow retransmits reads		at the end
 *   d packets bytes drops		downlink queue, at the end
 *   end				the run is complete
 *
 * The console gets a line "at seconds" for every second of the run. The files
 * kmsg and, under a kernel that has it, kmemleak tell how the kernel fared.
 *
 * Without spec it runs script.sh instead, for tests that bring all else.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "autorate.h"
#include "quic.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef TCP_CONGESTION
#define TCP_CONGESTION 13
#endif

enum {
	PORT_BULK = 5001,
	PORT_OBJECT,
	PORT_UPLOAD,
	PORT_PROBE,		/* known to lablink */
	PORT_NEIGHBOUR = 5100,	/* of the first one */
	PORT_QUIC_UPLOAD = 5200,
};

enum {
	MAX_FLOWS = 256,
	MAX_SIZES = 32,
	MAX_EVENTS = 64,
	MAX_NEIGHBOURS = 8,
	MAX_UPLOADS = 64,
	MAX_PROBES = 1 << 20,
	CHUNK = 256 << 10,
	BASE_PROBES = 3,
	SNAPLEN = 160,
	FREQUENCY_HZ = 1000000,
};

/* Attributes of net/sched/sch_lablink.c */
enum {
	LINK_RATE_BPS = 1, LINK_TRACE, LINK_LIMIT, LINK_START, LINK_PAD,
	LINK_REORDER, LINK_ACK_THIN, LINK_PROMOTION, LINK_IDLE, LINK_OUTAGE,
	LINK_HAND_OVER, LINK_CLOCK, LINK_CLOCK_PPM, LINK_CLOCK_TICK, LINK_CLOCK_STEP,
	LINK_NO_STAMPS, LINK_LIE, LINK_LIE_PORT, LINK_FIRMWARE, LINK_GRANT, LINK_REPORT,
	LINK_DRX_CYCLE, LINK_DRX_ON, LINK_DRX_AWAKE, LINK_SYN_SCALE, LINK_STRIP_STAMPS,
	LINK_TOLD, LINK_HIDDEN,
};

/* Of net/sched/lab_modem.h, as the link's xstats */
struct modem_stats {
	uint64_t byte_ns;
	uint32_t bytes, max_bytes;
};

enum { LABGATE_RATE = 3 };	/* of net/sched/sch_labgate.c, bytes per second */

/* The phone's qdisc, as lablink's only child; tc grafts another one into it. */
enum { LINK_HANDLE = 1 << 16, LINK_CHILD = LINK_HANDLE | 1, GATE_HANDLE = 2 << 16 };

/* That of the gates of mq's queues 1, 2, ... */
enum { GATES_HANDLE = 0x10 << 16 };

enum { CLOCK_FROM_SERVER = 1, CLOCK_TO_SERVER };

enum kind {
	LISTEN_BULK, LISTEN_OBJECT, LISTEN_UPLOAD,
	BULK_SENDER, BULK_READER,
	OBJECT_SERVER, OBJECT_CLIENT,
	UPLOAD_SENDER, UPLOAD_READER,
	PROBE_CLIENT, PROBE_ECHO,
	LISTEN_NEIGHBOUR, LIAR_SENDER, QUIC_SENDER, QUIC_READER, PIPE_READER,
	PACED_SENDER, PACED_READER, PACED_TAP,
	TAP, TIMER,
};

/*
 * Downloads beside those that are measured. Of TCP, the phone's application
 * chose the buffer, so that nothing governs the window; the liar is governed,
 * slow, and lablink gives it a clock that claims a queue. A stream is governed,
 * and its server paces it. A program is a real stack's server, and a client.
 */
enum neighbour_kind {
	NEIGHBOUR_TCP, NEIGHBOUR_QUIC, NEIGHBOUR_LIAR, NEIGHBOUR_STREAM,
	NEIGHBOUR_PROGRAM,	/* whose client writes what it gets into a pipe */
	NEIGHBOUR_CALL, NEIGHBOUR_GAME,
};

/* Over UDP, packets of a size, evenly spaced, whatever becomes of them: with IPv4's headers
 * 100 and 250 kb/s.
 */
static const struct {
	int bytes, period_us;
} paced[] = {
	[NEIGHBOUR_CALL] = { 222, 20000 },
	[NEIGHBOUR_GAME] = { 484, 16384 },
};

static bool is_paced(enum neighbour_kind kind)
{
	return kind == NEIGHBOUR_CALL || kind == NEIGHBOUR_GAME;
}

/* The kernel doubles it, to what stock's auto-tuning can reach. */
enum { NEIGHBOUR_RCVBUF = 8 << 20 };

enum { STREAM_BYTES = 62500 };	/* a second */

/* 20 kb/s of data */
enum { LIAR_BYTES = 100, LIAR_PERIOD_US = 40000 };

/* What the phone's application does with a bulk download. */
enum reader {
	READER_FAST,
	READER_SLOW,	/* rate: bit/s */
	READER_PAUSE,	/* at, for: us */
	READER_BURST,	/* period: us, segment: bytes */
	READER_SMALL,	/* bytes of a call */
	READER_EVERY,	/* period: us */
	READER_LOWAT,	/* bytes that it sleeps for */
};

struct neighbour;
struct transfer;

struct conn {
	enum kind kind;
	int fd;
	struct neighbour *neighbour;
	struct transfer *transfer;
	uint64_t received, reads;
	uint64_t left;		/* object: bytes still to send or to receive */
	uint64_t size;		/* object: bytes to ask for */
	int64_t began_us;
	int64_t next_us;	/* reader: when it acts again */
	bool asked;
	uint8_t request[8];
	unsigned int request_len;
	FILE *pcap;
};

/* Bulk data from one end to the other; the server's end of QUIC is not connected. */
struct transfer {
	struct conn reader, sender;
	bool upload;
	int64_t next_us;		/* when its sender acts by the clock */
	struct quic quic;
	struct quic_ack ack;
	uint64_t unacked;
	int64_t ack_us;			/* when those are acknowledged at the latest */
	int64_t short_us;		/* when a short packet is sent */
	struct sockaddr_storage peer;
	socklen_t peer_len;
};

struct neighbour {
	enum neighbour_kind kind;
	char cc[16];
	int64_t start_us, end_us;	/* since the flows started */
	struct transfer transfer;
	uint64_t arrived;	/* of a call or a game: packets that the radio brought */
	pid_t client;		/* of a program */
	bool started, ended;
};

struct link_spec {
	const char *ns, *dev;
	uint64_t rate_bps;
	uint32_t limit, reorder_ppm, ack_thin, clock;
	uint32_t firmware;	/* bytes that the modem holds, 0: there is none */
	int64_t grant_us, report_us;
	int64_t told_us;	/* that the modem takes to tell, 0: it does not */
	uint32_t hidden;	/* bytes that it does not tell of */
	int64_t outage_us, hand_over_us;
	char trace[512];
	bool set;
	int stats_fd, ifindex;
};

/* A qdisc that tc does not know, with u32 attributes; below mq, if there are several bearers. */
struct gate_spec {
	char kind[16];
	int attrs;
	struct {
		int type;
		uint32_t value;
	} attr[4];
};

struct request_at {
	int64_t at_us;
	uint64_t size;
};

struct event {
	int64_t at_us;
	struct link_spec *link;
	uint64_t rate_bps;
	int64_t outage_us;
	int32_t clock_step_ms;
	int stamps;		/* 0: none from now on, 1: again, -1: no such event */
	/* Of the phone's applications: a download starts over a device, or the newest ends, or
	 * the probes go over another device.
	 */
	bool download, hangup, probe;
	char device[IFNAMSIZ];
	char command[1024];
};

static struct {
	int64_t duration_us, probe_us, sample_us, read_us, flow_gap_us, think_us;
	int64_t promotion_us, idle_us;
	int64_t drx_cycle_us, drx_on_us, drx_awake_us;
	enum reader reader;
	uint64_t reader_number[2];
	int flows, sizes, requests, events;
	uint64_t size[MAX_SIZES];
	struct request_at *request;
	struct event event[MAX_EVENTS];
	struct link_spec down, up, second;
	struct gate_spec gate;
	int bearers;		/* uploads take them in turn */
	uint64_t autorate_bps;	/* what its user takes the uplink for, 0: none */
	bool opaque_probes;
	struct neighbour neighbour[MAX_NEIGHBOURS];
	int neighbours;
	int32_t lie_ms;		/* of a liar, or of the server of uploads */
	int32_t clock_ppm;
	uint32_t clock_tick_us;
	char second_device[IFNAMSIZ];
	bool gro;
	int rcvbuf, window_clamp, mss;
	int syn_scale;		/* of the window, in place of the phone's; -1: its own */
	bool strip_stamps;	/* from SYNs */
	unsigned int pace_bytes;	/* per second, of each of the server's connections */
	char cc[32], phone_cc[32], child[512], phone_child[512], at_end[512];
	struct transfer upload[MAX_UPLOADS];
	int uploads;
	bool quic_uploads, short_uploads, lying_uploads;
	bool ipv6, keep_alive, push, pcap, trace, fastopen, mptcp, accepted;
	bool client, client_half;	/* of the phone's hotspot, which downloads end on */
	bool on_demand;		/* downloads start with events */
} spec = {
	.probe_us = 50000, .sample_us = 100000, .read_us = 10000,
	.down = { .ns = "router", .dev = "cell0" },
	.up = { .ns = "phone", .dev = "rmnet0" },
	.second = { .ns = "router", .dev = "ap0" },
	.clock_tick_us = 1000,
	.syn_scale = -1,
	.cc = "cubic",
	.phone_cc = "cubic",
};

static FILE *raw;
static int ep, timer_fd;
static int64_t timer_us = -1;	/* what it is set to, until it has expired */
static int64_t t0_us;
static struct conn readers[MAX_FLOWS], senders[MAX_FLOWS];
static struct conn probe;
/* Its two ends; what the server sends unasked goes out of the second. */
static struct conn *kept_alive, *serves;
static int next_flow, next_event, next_size, next_request, unfinished;
static int64_t next_probe_us, next_sample_us, next_object_us;
static int64_t last_load_us;
static bool loaded;		/* since then */
static uint32_t probes_sent;
/* INT64_MAX once it is answered */
static int64_t probe_sent_us[MAX_PROBES];
/* When it came to the server, whose clock is the phone's */
static int64_t probe_there_us[MAX_PROBES];
static char chunk[CHUNK];

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("agent: ");
	vprintf(fmt, ap);
	printf(": %s\n", strerror(errno));
	va_end(ap);
	fflush(NULL);
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * FREQUENCY_HZ + ts.tv_nsec / 1000;
}

static void enter(const char *ns)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("namespace %s", ns);
	close(fd);
}

static void shell(const char *command)
{
	int status = system(command);

	if (status) {
		errno = 0;
		die("command failed (status %d): %s", status, command);
	}
}

static void watch(struct conn *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev))
		die("epoll");
}

/* Addresses: 10.0.1.1 / fd00:1::1 server, 10.0.2.2 / fd00:2::2 phone. */
static socklen_t address_of(const char *ns, struct sockaddr_storage *ss, int port)
{
	bool phone = !strcmp(ns, "phone");

	memset(ss, 0, sizeof(*ss));
	if (spec.ipv6) {
		struct sockaddr_in6 *a = (void *)ss;

		a->sin6_family = AF_INET6;
		a->sin6_port = htons(port);
		inet_pton(AF_INET6, phone ? "fd00:2::2" : "fd00:1::1", &a->sin6_addr);
		return sizeof(*a);
	} else {
		struct sockaddr_in *a = (void *)ss;

		a->sin_family = AF_INET;
		a->sin_port = htons(port);
		inet_pton(AF_INET, phone ? "10.0.2.2" : "10.0.1.1", &a->sin_addr);
		return sizeof(*a);
	}
}

static bool is_udp(enum kind kind)
{
	return kind == PROBE_CLIENT || kind == PROBE_ECHO || kind == QUIC_SENDER ||
	       kind == QUIC_READER || kind == PACED_SENDER || kind == PACED_READER;
}

static bool is_bulk(enum kind kind)
{
	return kind == LISTEN_BULK || kind == BULK_SENDER || kind == BULK_READER;
}

static int new_socket(enum kind kind)
{
	int fd = socket(spec.ipv6 ? AF_INET6 : AF_INET,
			(is_udp(kind) ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC,
			spec.mptcp && is_bulk(kind) ? IPPROTO_MPTCP : 0);

	if (fd < 0)
		die("socket");
	return fd;
}

static void set_option(int fd, int level, int option, int value)
{
	if (value && setsockopt(fd, level, option, &value, sizeof(value)))
		die("socket option %d of level %d", option, level);
}

/* What an application on the phone can ask for. */
static void set_reader_options(int fd)
{
	/* As SO_RCVBUF, without the limit of net.core.rmem_max. */
	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, spec.rcvbuf);
	set_option(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, spec.window_clamp);
	set_option(fd, IPPROTO_TCP, TCP_MAXSEG, spec.mss);
	if (spec.reader == READER_LOWAT)
		set_option(fd, SOL_SOCKET, SO_RCVLOWAT, spec.reader_number[0]);
}

static void set_cc(int fd, const char *cc)
{
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc)))
		die("congestion control %s", cc);
}

static void serve_with(struct conn *c, const char *ns, enum kind kind, int port, const char *cc)
{
	struct sockaddr_storage ss;
	int one = 1;

	enter(ns);
	c->kind = kind;
	c->fd = new_socket(kind);
	setsockopt(c->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(c->fd, (void *)&ss, address_of(ns, &ss, port)))
		die("bind %d", port);
	if (kind == LISTEN_BULK && spec.accepted)
		set_reader_options(c->fd);
	else if (!is_udp(kind))
		set_cc(c->fd, cc);
	if (!is_udp(kind) && listen(c->fd, MAX_FLOWS))
		die("listen %d", port);
	watch(c, EPOLLIN);
}

static void serve(const char *ns, enum kind kind, int port)
{
	struct conn *c = calloc(1, sizeof(*c));

	serve_with(c, ns, kind, port, spec.cc);
	/* What it accepts inherits it. */
	if (!strcmp(ns, "server") && !is_udp(kind))
		set_option(c->fd, SOL_SOCKET, SO_MAX_PACING_RATE, spec.pace_bytes);
}

static int local_port(int fd, bool peer)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (peer ? getpeername(fd, (void *)&ss, &len) :
		   getsockname(fd, (void *)&ss, &len))
		return -1;
	/* The port stands at the same place in both families. */
	return ntohs(((struct sockaddr_in *)&ss)->sin_port);
}

/* As Android binds the sockets of an application to a network. */
static void bind_to_device(int fd, const char *device)
{
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device)))
		die("binding to %s", device);
}

/* Whether this download, or fetch, is of an application on the hotspot's client. */
static bool is_clients(const struct conn *c, enum kind kind)
{
	if (!spec.client || (kind != BULK_READER && kind != OBJECT_CLIENT))
		return false;
	return !spec.client_half || (kind == BULK_READER && (c - readers) % 2);
}

/* @device: or NULL, for what the routes say. */
static void connect_over(const char *device, struct conn *c, enum kind kind, int port,
			 uint32_t events)
{
	bool phone = kind != BULK_SENDER;
	struct sockaddr_storage ss;
	socklen_t len = address_of(phone ? "server" : "phone", &ss, port);

	enter(!phone ? "server" : is_clients(c, kind) ? "client" : "phone");
	c->kind = kind;
	c->fd = new_socket(kind);
	if (device)
		bind_to_device(c->fd, device);
	if (kind == UPLOAD_SENDER)
		set_cc(c->fd, spec.phone_cc);
	if (spec.bearers && c->transfer && c->transfer->upload)
		set_option(c->fd, SOL_SOCKET, SO_MARK, (c->transfer - spec.upload) % spec.bearers);
	if (kind == BULK_SENDER) {
		set_cc(c->fd, spec.cc);
		set_option(c->fd, SOL_SOCKET, SO_MAX_PACING_RATE, spec.pace_bytes);
	}
	if (kind == BULK_READER)
		set_reader_options(c->fd);
	if (c->neighbour && c->neighbour->kind == NEIGHBOUR_TCP)
		set_option(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, NEIGHBOUR_RCVBUF);
	if (kind == BULK_READER || kind == OBJECT_CLIENT)
		set_option(c->fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, spec.fastopen);
	if (connect(c->fd, (void *)&ss, len) && errno != EINPROGRESS)
		die("connect to port %d", port);
	watch(c, events);
}

static void connect_to(struct conn *c, enum kind kind, int port, uint32_t events)
{
	connect_over(NULL, c, kind, port, events);
}

/* The server's end of the upload that this connection is of. */
static struct conn *upload_reader_of(int fd)
{
	int port = local_port(fd, true), i;

	for (i = 0; i < spec.uploads; i++)
		if (local_port(spec.upload[i].sender.fd, false) == port)
			return &spec.upload[i].reader;
	errno = ENOENT;
	die("upload from port %d", port);
}

static void accept_all(struct conn *l)
{
	int fd, i;

	while ((fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *c;

		if (l->kind == LISTEN_BULK) {
			int port = local_port(fd, true);

			for (i = 0; i < next_flow; i++)
				if (local_port((spec.accepted ? senders : readers)[i].fd,
					       false) == port)
					break;
			if (i == next_flow) {
				close(fd);
				continue;
			}
			if (spec.accepted) {
				readers[i].kind = BULK_READER;
				readers[i].fd = fd;
				watch(&readers[i], EPOLLIN);
				continue;
			}
			c = &senders[i];
			c->kind = spec.reader == READER_BURST ? OBJECT_SERVER : BULK_SENDER;
			c->fd = fd;
			watch(c, EPOLLIN | EPOLLOUT | EPOLLET);
		} else if (l->kind == LISTEN_NEIGHBOUR) {
			c = &l->neighbour->transfer.sender;
			c->kind = l->neighbour->kind == NEIGHBOUR_LIAR ? LIAR_SENDER : BULK_SENDER;
			c->fd = fd;
			watch(c, EPOLLIN | EPOLLOUT | EPOLLET);
		} else if (l->kind == LISTEN_UPLOAD) {
			c = upload_reader_of(fd);
			c->kind = UPLOAD_READER;
			c->fd = fd;
			watch(c, EPOLLIN);
		} else {
			c = calloc(1, sizeof(*c));
			c->kind = OBJECT_SERVER;
			c->fd = fd;
			watch(c, EPOLLIN | EPOLLOUT | EPOLLET);
		}
	}
}

static void send_bulk(struct conn *c)
{
	while (send(c->fd, chunk, CHUNK, MSG_NOSIGNAL) > 0)
		;
}

static uint64_t drain_by(struct conn *c, size_t piece)
{
	uint64_t sum = 0;
	ssize_t n;

	/* Nothing follows what is short, and a call that says so costs as much as one that reads. */
	do {
		n = read(c->fd, chunk, piece);
		if (n <= 0)
			break;
		sum += n;
		c->reads++;
	} while ((size_t)n == piece);
	c->received += sum;
	loaded |= sum > 0;
	return n == 0 ? UINT64_MAX : sum;
}

static uint64_t drain(struct conn *c)
{
	return drain_by(c, CHUNK);
}

static void serve_object(struct conn *c)
{
	ssize_t n;

	for (;;) {
		if (c->left) {
			n = send(c->fd, chunk, c->left < CHUNK ? c->left : CHUNK,
				 MSG_NOSIGNAL);
			if (n <= 0)
				return;
			c->left -= n;
			continue;
		}
		n = recv(c->fd, c->request + c->request_len,
			 sizeof(c->request) - c->request_len, 0);
		if (n == 0) {
			if (serves == c)
				serves = NULL;
			close(c->fd);
			free(c);
			return;
		}
		if (n < 0)
			return;
		c->request_len += n;
		if (c->request_len == sizeof(c->request)) {
			uint64_t be;

			memcpy(&be, c->request, sizeof(be));
			c->left = be64toh(be);
			c->request_len = 0;
			serves = c;
		}
	}
}

static void record_fetch(char kind, const struct conn *c, int64_t now)
{
	fprintf(raw, "%c %lld %lld %llu\n", kind, (long long)(c->began_us - t0_us),
		(long long)(now - c->began_us), (unsigned long long)c->size);
}

static void ask_object(struct conn *c)
{
	uint64_t be = htobe64(c->size);

	if (!c->asked && send(c->fd, &be, sizeof(be), MSG_NOSIGNAL) == sizeof(be))
		c->asked = true;
}

static void expect_object(struct conn *c, uint64_t size, int64_t now)
{
	c->size = size;
	c->left = size;
	c->began_us = now;
}

static void ask_for(struct conn *c, uint64_t size, int64_t now)
{
	expect_object(c, size, now);
	c->asked = false;
	if (c->fd)
		ask_object(c);
}

/* Over the connection that was kept alive, if any. */
static void fetch_object(uint64_t size, int64_t now)
{
	struct conn *c = kept_alive;

	if (!c)
		c = calloc(1, sizeof(*c));
	kept_alive = NULL;
	unfinished++;
	if (spec.push && c->fd) {
		/* Its first segment answers an ACK of long ago. */
		expect_object(c, size, now);
		serves->left = size;
		serve_object(serves);
		return;
	}
	ask_for(c, size, now);
	if (!c->fd)
		connect_to(c, OBJECT_CLIENT, PORT_OBJECT, EPOLLIN | EPOLLOUT | EPOLLET);
}

static void read_object(struct conn *c, uint32_t events)
{
	uint64_t got;
	int64_t now;

	if (events & EPOLLOUT)
		ask_object(c);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	got = drain(c);
	if (got == UINT64_MAX || (events & EPOLLERR)) {
		errno = ECONNRESET;
		die("object connection");
	}
	if (!got)
		return;
	c->left -= got;
	if (c->left)
		return;
	now = now_us();
	record_fetch('o', c, now);
	unfinished--;
	if (spec.sizes)
		next_object_us = now + spec.think_us;
	if (spec.keep_alive) {
		kept_alive = c;
	} else {
		close(c->fd);
		free(c);
	}
}

static void watch_reader(struct conn *c, bool reads)
{
	struct epoll_event ev = { .events = reads ? EPOLLIN : 0, .data.ptr = c };

	if (epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev))
		die("epoll");
}

static void next_segment(struct conn *c, int64_t now)
{
	c->next_us = now + spec.reader_number[0];
	ask_for(c, spec.reader_number[1], now);
}

static void read_segments(struct conn *c, uint32_t events)
{
	int64_t now = now_us();

	if (events & EPOLLOUT)
		ask_object(c);
	while (c->left) {
		ssize_t n = recv(c->fd, chunk, c->left < CHUNK ? c->left : CHUNK, 0);

		if (n <= 0)
			return;
		c->received += n;
		c->reads++;
		c->left -= n;
		loaded = true;
		if (c->left)
			continue;
		record_fetch('v', c, now);
		if (c->next_us == INT64_MAX)
			next_segment(c, now);
	}
}

static void read_bulk(struct conn *c, uint32_t events)
{
	if (spec.reader == READER_BURST)
		read_segments(c, events);
	else if (events & EPOLLIN)
		drain_by(c, spec.reader == READER_SMALL ? spec.reader_number[0] : CHUNK);
}

/* What a reader does by the clock. */
static void reader_acts(struct conn *c, int64_t now)
{
	switch (spec.reader) {
	case READER_SLOW: {
		size_t due = spec.reader_number[0] * spec.read_us / 8 / FREQUENCY_HZ;
		ssize_t n;

		while (due && (n = recv(c->fd, chunk, due < CHUNK ? due : CHUNK, 0)) > 0) {
			c->received += n;
			c->reads++;
			due -= n;
		}
		c->next_us += spec.read_us;
		break;
	}
	case READER_EVERY:
		drain(c);
		c->next_us += spec.reader_number[0];
		break;
	case READER_PAUSE: {
		int64_t end_us = t0_us + spec.reader_number[0] + spec.reader_number[1];

		watch_reader(c, now >= end_us);
		c->next_us = now < end_us ? end_us : INT64_MAX;
		break;
	}
	case READER_BURST:
		/* Or as soon as the present one, which is late, is complete. */
		if (c->left)
			c->next_us = INT64_MAX;
		else
			next_segment(c, now);
		break;
	default:
		break;
	}
}

static int liar_port(void)
{
	int i;

	if (spec.lying_uploads)
		return PORT_UPLOAD;
	for (i = 0; i < spec.neighbours; i++)
		if (spec.neighbour[i].kind == NEIGHBOUR_LIAR)
			return PORT_NEIGHBOUR + i;
	return 0;
}

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* From one end of a transfer to the other. */
static ssize_t quic_put(struct conn *c, const void *data, size_t len)
{
	struct transfer *t = c->transfer;

	if (t->upload == (c == &t->sender))
		return send(c->fd, data, len, 0);
	return sendto(c->fd, data, len, 0, (void *)&t->peer, t->peer_len);
}

static ssize_t quic_get(struct conn *c, void *data, size_t len)
{
	struct transfer *t = c->transfer;

	if (t->upload == (c == &t->sender))
		return recv(c->fd, data, len, 0);
	t->peer_len = sizeof(t->peer);
	return recvfrom(c->fd, data, len, 0, (void *)&t->peer, &t->peer_len);
}

static void quic_send(struct transfer *t, int64_t now)
{
	struct quic_packet p = { 0 };

	t->quic.blocked = false;
	while (quic_may_send(&t->quic)) {
		p.number = t->quic.next;
		p.sent_us = now;
		/* The phone's own queue is full; epoll tells when it is not. */
		if (quic_put(&t->sender, &p, sizeof(p)) < 0) {
			t->quic.blocked = true;
			break;
		}
		t->quic.next++;
	}
	t->next_us = quic_timeout_us(&t->quic);
}

/* A connection that also downloads tells between its data what came. RFC 9002, 2: that is not
 * in flight; but it tells which data is to come before it.
 */
static void quic_send_short(struct transfer *t, int64_t now)
{
	struct quic_packet p = { .number = t->quic.next, .sent_us = now };

	quic_put(&t->sender, &p, QUIC_SHORT);
	t->short_us = now + QUIC_SHORT_US;
}

static void read_quic_acks(struct conn *c)
{
	struct transfer *t = c->transfer;
	int64_t now = now_us();
	struct quic_ack ack;

	while (quic_get(c, &ack, sizeof(ack)) == sizeof(ack)) {
		if (!t->quic.cwnd)
			quic_start(&t->quic, now);
		quic_acked(&t->quic, &ack, now);
	}
	if (t->quic.cwnd && !(c->neighbour && c->neighbour->ended))
		quic_send(t, now);
}

static void acknowledge(struct transfer *t)
{
	t->unacked = 0;
	t->ack_us = INT64_MAX;
	quic_put(&t->reader, &t->ack, sizeof(t->ack));
}

/* Every second packet is acknowledged, and what shows a loss at once; RFC 9000, 13.2.1: of an
 * upload, a single one within 25 ms.
 */
static void read_quic(struct conn *c)
{
	struct transfer *t = c->transfer;
	struct quic_packet p;
	ssize_t len;

	while ((len = quic_get(c, &p, sizeof(p))) >= QUIC_SHORT) {
		bool gap = p.number != t->ack.highest, data = len != QUIC_SHORT;

		c->received += len;
		t->ack.received += data;
		if (p.number + data > t->ack.highest) {
			t->ack.highest = p.number + data;
			t->ack.sent_us = p.sent_us;
		}
		if (!data)
			continue;
		if (++t->unacked >= 2 || gap)
			acknowledge(t);
		else if (t->upload)
			t->ack_us = now_us() + QUIC_ACK_DELAY_US;
	}
}

static void start_upload(int number, int64_t now)
{
	struct transfer *t = &spec.upload[number];

	if (!spec.quic_uploads) {
		connect_to(&t->sender, UPLOAD_SENDER, PORT_UPLOAD, EPOLLOUT | EPOLLET);
		return;
	}
	connect_to(&t->sender, QUIC_SENDER, PORT_QUIC_UPLOAD + number,
		   EPOLLIN | EPOLLOUT | EPOLLET);
	quic_start(&t->quic, now);
	quic_send(t, now);
	if (spec.short_uploads)
		t->short_us = now + QUIC_SHORT_US;
}

/* Does what is due, and returns when that is so again. */
static int64_t upload_acts(struct transfer *t, int64_t now)
{
	if (!spec.quic_uploads)
		return INT64_MAX;
	if (now >= t->next_us) {
		quic_timed_out(&t->quic, now);
		quic_send(t, now);
	}
	if (now >= t->ack_us)
		acknowledge(t);
	if (now >= t->short_us)
		quic_send_short(t, now);
	return earliest(t->short_us, earliest(t->next_us, t->ack_us));
}

/* setup.sh has made the pipe, and started the server. */
static void start_program(struct neighbour *n)
{
	struct conn *c = &n->transfer.reader;
	int number = n - spec.neighbour;
	char path[32];

	c->kind = PIPE_READER;
	snprintf(path, sizeof(path), "/run/neighbour-%d", number);
	/* Open for writing, too: it has no end when one client leaves it to the next. */
	c->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (c->fd < 0)
		die("%s", path);
	watch(c, EPOLLIN);
	n->client = fork();
	if (n->client < 0)
		die("fork");
	if (n->client == 0) {
		snprintf(path, sizeof(path), "neighbour-%d.sh", number);
		setsid();
		enter(spec.client && !spec.client_half ? "client" : "phone");
		execl("/bin/sh", "sh", "-e", path, NULL);
		_exit(127);
	}
}

/* The first packet tells where the phone, or its NAT, is. */
static void meet_phone(struct conn *c)
{
	struct transfer *t = &c->neighbour->transfer;

	t->peer_len = sizeof(t->peer);
	if (recvfrom(c->fd, chunk, CHUNK, 0, (void *)&t->peer, &t->peer_len) > 0 &&
	    !connect(c->fd, (void *)&t->peer, t->peer_len))
		t->next_us = now_us();
}

static void send_paced(struct neighbour *n)
{
	if (send(n->transfer.sender.fd, chunk, paced[n->kind].bytes, 0) > 0)
		n->transfer.sender.reads++;
	n->transfer.next_us += paced[n->kind].period_us;
}

static void start_neighbour(struct neighbour *n, int64_t now)
{
	int port = PORT_NEIGHBOUR + (n - spec.neighbour);

	n->started = true;
	if (n->kind == NEIGHBOUR_PROGRAM) {
		start_program(n);
	} else if (is_paced(n->kind)) {
		connect_over(NULL, &n->transfer.reader, PACED_READER, port, EPOLLIN);
		send(n->transfer.reader.fd, chunk, 1, 0);
	} else if (n->kind == NEIGHBOUR_QUIC) {
		connect_over(NULL, &n->transfer.reader, QUIC_READER, port, EPOLLIN);
		send(n->transfer.reader.fd, &n->transfer.ack, sizeof(n->transfer.ack), 0);
	} else {
		/* All that it does is to read. */
		connect_over(NULL, &n->transfer.reader, UPLOAD_READER, port, EPOLLIN);
		if (n->kind == NEIGHBOUR_LIAR)
			n->transfer.next_us = now + LIAR_PERIOD_US;
	}
}

static void end_neighbour(struct neighbour *n)
{
	n->ended = true;
	n->transfer.next_us = INT64_MAX;
	/* The last of its packets are still under way. */
	if (is_paced(n->kind))
		return;
	if (n->client > 0)
		kill(-n->client, SIGKILL);
	close(n->transfer.reader.fd);
	n->transfer.reader.fd = -1;
	if (n->kind != NEIGHBOUR_QUIC && n->transfer.sender.fd > 0) {
		close(n->transfer.sender.fd);
		n->transfer.sender.fd = -1;
	}
}

/* Does what is due, and returns when that is so again. */
static int64_t neighbour_acts(struct neighbour *n, int64_t now)
{
	if (!n->started && now >= t0_us + n->start_us)
		start_neighbour(n, now);
	if (!n->ended && now >= t0_us + n->end_us)
		end_neighbour(n);
	if (n->ended)
		return INT64_MAX;
	if (!n->started)
		return t0_us + n->start_us;
	if (now >= n->transfer.next_us && n->kind == NEIGHBOUR_LIAR) {
		if (n->transfer.sender.fd > 0)
			send(n->transfer.sender.fd, chunk, LIAR_BYTES, MSG_NOSIGNAL);
		n->transfer.next_us = now + LIAR_PERIOD_US;
	} else if (now >= n->transfer.next_us && is_paced(n->kind)) {
		send_paced(n);
	} else if (now >= n->transfer.next_us && n->kind == NEIGHBOUR_QUIC) {
		quic_timed_out(&n->transfer.quic, now);
		quic_send(&n->transfer, now);
	}
	return n->transfer.next_us < t0_us + n->end_us ? n->transfer.next_us :
							 t0_us + n->end_us;
}

static void turn_autorate(uint32_t probe, int64_t rtt_us, int64_t now);

struct probe_msg {
	int64_t sent_us;
	uint32_t seq;
	char pad[44];		/* 56 bytes, as ping sends */
};

static void send_probe(void)
{
	struct probe_msg m = { .sent_us = now_us(), .seq = probes_sent };

	if (probes_sent == MAX_PROBES) {
		errno = E2BIG;
		die("probes");
	}
	if (send(probe.fd, &m, sizeof(m), 0) == sizeof(m))
		probe_sent_us[probes_sent++] = m.sent_us;
}

/* Both ways, so that nothing of a probe can be found in its answer. */
static void disguise(void *data, size_t len)
{
	unsigned char *p = data;

	while (spec.opaque_probes && len--)
		*p++ ^= 0xa5;
}

static int64_t read_probes(void)
{
	struct probe_msg m;
	int64_t rtt = -1;

	while (recv(probe.fd, &m, sizeof(m), 0) == sizeof(m)) {
		disguise(&m, sizeof(m));
		rtt = now_us() - m.sent_us;
		/* Not those that measured the base RTT, nor a duplicate. */
		if (!t0_us || m.sent_us < t0_us || probe_sent_us[m.seq] != m.sent_us)
			continue;
		probe_sent_us[m.seq] = INT64_MAX;
		fprintf(raw, "p %lld %lld %u\n", (long long)(m.sent_us - t0_us),
			(long long)rtt, m.seq);
		fprintf(raw, "y %u %lld\n", m.seq,
			(long long)(probe_there_us[m.seq] - m.sent_us));
		if (spec.autorate_bps)
			turn_autorate(m.seq, rtt, m.sent_us + rtt);
	}
	return rtt;
}

static void echo_probes(struct conn *c)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	ssize_t n;

	while ((n = recvfrom(c->fd, chunk, CHUNK, 0, (void *)&from, &len)) > 0) {
		struct probe_msg m;

		memcpy(&m, chunk, sizeof(m));
		if (m.seq < MAX_PROBES && !probe_there_us[m.seq])
			probe_there_us[m.seq] = now_us();
		disguise(chunk, n);
		sendto(c->fd, chunk, n, 0, (void *)&from, len);
		len = sizeof(from);
	}
}

struct request {
	struct nlmsghdr nlh;
	struct tcmsg tcm;
	char attrs[2048];
	struct rtattr *options;
	int fd;
};

static void put_attr(struct request *r, int type, const void *data, size_t len)
{
	struct rtattr *a = (void *)((char *)r + NLMSG_ALIGN(r->nlh.nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	r->nlh.nlmsg_len = NLMSG_ALIGN(r->nlh.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static int netlink_in(const char *ns)
{
	int fd;

	enter(ns);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		die("netlink");
	return fd;
}

/* A qdisc on this link's device; its options follow, then ask(). */
static void begin_request(struct request *r, const struct link_spec *l, const char *kind,
			  uint32_t parent, uint32_t handle, int flags)
{
	memset(r, 0, sizeof(*r));
	r->nlh.nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg));
	r->nlh.nlmsg_type = RTM_NEWQDISC;
	r->nlh.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	r->tcm.tcm_family = AF_UNSPEC;
	r->tcm.tcm_parent = parent;
	r->tcm.tcm_handle = handle;
	r->fd = netlink_in(l->ns);
	r->tcm.tcm_ifindex = if_nametoindex(l->dev);
	put_attr(r, TCA_KIND, kind, strlen(kind) + 1);
	r->options = (void *)((char *)r + NLMSG_ALIGN(r->nlh.nlmsg_len));
	put_attr(r, TCA_OPTIONS, "", 0);
}

static void ask(struct request *r, const struct link_spec *l, const char *kind)
{
	char answer[4096];
	struct nlmsghdr *nlh = (void *)answer;

	r->options->rta_len = (char *)r + r->nlh.nlmsg_len - (char *)r->options;
	if (send(r->fd, &r->nlh, r->nlh.nlmsg_len, 0) < 0 ||
	    recv(r->fd, answer, sizeof(answer), 0) < 0)
		die("%s on %s", kind, l->dev);
	if (nlh->nlmsg_type == NLMSG_ERROR &&
	    ((struct nlmsgerr *)NLMSG_DATA(nlh))->error) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(nlh))->error;
		if (errno == ENOENT)
			die("this kernel has no qdisc %s", kind);
		die("%s on %s", kind, l->dev);
	}
	close(r->fd);
}

static void link_request(const struct link_spec *l, int flags,
			 void (*put)(struct request *r, const struct link_spec *l))
{
	struct request r;

	begin_request(&r, l, "lablink", TC_H_ROOT, LINK_HANDLE, flags);
	put(&r, l);
	ask(&r, l, "lablink");
}

static void put_u64(struct request *r, int type, uint64_t value)
{
	put_attr(r, type, &value, sizeof(value));
}

static void put_u32(struct request *r, int type, uint32_t value)
{
	put_attr(r, type, &value, sizeof(value));
}

static void put_rate(struct request *r, const struct link_spec *l)
{
	put_u64(r, LINK_RATE_BPS, l->rate_bps);
}

/* Of the event at hand. */
static int32_t clock_step_ms;
static bool no_stamps;

static void put_outage(struct request *r, const struct link_spec *l)
{
	put_u64(r, LINK_OUTAGE, l->outage_us * 1000);
}

static void put_clock_step(struct request *r, const struct link_spec *l)
{
	(void)l;
	put_u32(r, LINK_CLOCK_STEP, clock_step_ms);
}

static void put_stamps(struct request *r, const struct link_spec *l)
{
	(void)l;
	put_u32(r, LINK_NO_STAMPS, no_stamps);
}

static void put_link(struct request *r, const struct link_spec *l)
{
	put_rate(r, l);
	put_u32(r, LINK_LIMIT, l->limit);
	put_u64(r, LINK_START, t0_us * 1000);
	if (l->trace[0])
		put_attr(r, LINK_TRACE, l->trace, strlen(l->trace) + 1);
	if (l->reorder_ppm)
		put_u32(r, LINK_REORDER, l->reorder_ppm);
	if (l->ack_thin)
		put_u32(r, LINK_ACK_THIN, l->ack_thin);
	if (l->hand_over_us)
		put_u64(r, LINK_HAND_OVER, l->hand_over_us * 1000);
	if (l->clock) {
		put_u32(r, LINK_CLOCK, l->clock);
		put_u32(r, LINK_CLOCK_PPM, spec.clock_ppm);
		put_u32(r, LINK_CLOCK_TICK, spec.clock_tick_us);
	}
	if (l->clock == CLOCK_FROM_SERVER && liar_port()) {
		put_u32(r, LINK_LIE, spec.lie_ms);
		put_u32(r, LINK_LIE_PORT, liar_port());
	}
	if (l->firmware) {
		put_u32(r, LINK_FIRMWARE, l->firmware);
		put_u64(r, LINK_GRANT, l->grant_us * 1000);
		put_u64(r, LINK_REPORT, l->report_us * 1000);
		if (l->told_us) {
			put_u64(r, LINK_TOLD, l->told_us * 1000);
			put_u32(r, LINK_HIDDEN, l->hidden);
		}
	}
	if (spec.promotion_us && l != &spec.second) {
		put_u64(r, LINK_PROMOTION, spec.promotion_us * 1000);
		put_u64(r, LINK_IDLE, spec.idle_us * 1000);
	}
	if (spec.syn_scale >= 0 && l == &spec.up)
		put_u32(r, LINK_SYN_SCALE, spec.syn_scale);
	if (spec.strip_stamps)
		put_attr(r, LINK_STRIP_STAMPS, "", 0);
	if (spec.drx_awake_us && l == &spec.down) {
		put_u64(r, LINK_DRX_CYCLE, spec.drx_cycle_us * 1000);
		put_u64(r, LINK_DRX_ON, spec.drx_on_us * 1000);
	}
	if (spec.drx_awake_us && l != &spec.second)
		put_u64(r, LINK_DRX_AWAKE, spec.drx_awake_us * 1000);
}

static void create_link(const struct link_spec *l)
{
	link_request(l, NLM_F_CREATE | NLM_F_REPLACE, put_link);
}

/* A gate without options has none, not even empty ones. */
static void create_gate(const struct link_spec *l, uint32_t parent, uint32_t handle)
{
	const struct gate_spec *g = &spec.gate;
	struct request r;
	int i;

	begin_request(&r, l, g->kind, parent, handle, NLM_F_CREATE | NLM_F_REPLACE);
	for (i = 0; i < g->attrs; i++)
		put_u32(&r, g->attr[i].type, g->attr[i].value);
	if (!g->attrs)
		r.nlh.nlmsg_len = (char *)r.options - (char *)&r;
	ask(&r, l, g->kind);
}

static void create_gates(void)
{
	static const struct link_spec above = { .ns = "phone", .dev = "rmnet0" };
	int queue;

	if (!spec.bearers)
		create_gate(&spec.up, LINK_CHILD, GATE_HANDLE);
	/* Those for data, and as many for ACKs */
	for (queue = 1; queue <= 2 * spec.bearers; queue++)
		create_gate(&above, LINK_HANDLE | queue, GATES_HANDLE + (queue << 16));
}

struct queue_stats {
	struct tc_stats tc;
	struct modem_stats modem;
};

static void copy_stats(void *to, size_t size, struct rtattr *a)
{
	memcpy(to, RTA_DATA(a), size < RTA_PAYLOAD(a) ? size : RTA_PAYLOAD(a));
}

/* Of the link itself, or of the gate in front of its modem. */
static struct queue_stats stats_below(struct link_spec *l, uint32_t parent, uint32_t handle)
{
	struct {
		struct nlmsghdr nlh;
		struct tcmsg tcm;
	} r = {
		.nlh.nlmsg_len = sizeof(r),
		.nlh.nlmsg_type = RTM_GETQDISC,
		/* Without echo the answer goes to the group alone. */
		.nlh.nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO,
		.tcm.tcm_parent = parent,
		.tcm.tcm_handle = handle,
	};
	struct queue_stats st = { 0 };
	char answer[8192];
	ssize_t n;

	if (!l->ifindex) {
		l->stats_fd = netlink_in(l->ns);
		l->ifindex = if_nametoindex(l->dev);
	}
	r.tcm.tcm_ifindex = l->ifindex;
	if (send(l->stats_fd, &r, sizeof(r), 0) < 0 ||
	    (n = recv(l->stats_fd, answer, sizeof(answer), 0)) < 0)
		die("queue statistics");
	{
		struct nlmsghdr *nlh = (void *)answer;
		struct rtattr *a = TCA_RTA(NLMSG_DATA(nlh));
		int left = TCA_PAYLOAD(nlh);

		if (nlh->nlmsg_type != RTM_NEWQDISC) {
			errno = EPROTO;
			die("queue statistics");
		}
		for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
			if (a->rta_type == TCA_STATS)
				copy_stats(&st.tc, sizeof(st.tc), a);
			if (a->rta_type == TCA_XSTATS)
				copy_stats(&st.modem, sizeof(st.modem), a);
		}
	}
	return st;
}

static struct queue_stats stats_of(struct link_spec *l)
{
	return stats_below(l, TC_H_ROOT, LINK_HANDLE);
}

static struct autorate autorate;
static uint64_t autorate_sent;
static int64_t autorate_look_us;

static void set_autorate(int flags)
{
	struct request r;

	begin_request(&r, &spec.up, "labgate", LINK_CHILD, GATE_HANDLE, flags);
	put_u32(&r, LABGATE_RATE, autorate.rate_bps / 8);
	ask(&r, &spec.up, "labgate");
}

static void start_autorate(void)
{
	autorate_start(&autorate, spec.autorate_bps, t0_us);
	autorate_look_us = t0_us + AUTORATE_LOOK_US;
	set_autorate(NLM_F_CREATE | NLM_F_REPLACE);
}

static void turn_autorate(uint32_t probe, int64_t rtt_us, int64_t now)
{
	double before = autorate.rate_bps;

	autorate_answered(&autorate, probe, rtt_us, now);
	if (autorate.rate_bps != before)
		set_autorate(0);
}

/* What left the phone's qdisc, as an interface counts it. */
static int64_t look_at_autorate(int64_t now)
{
	uint64_t sent;

	if (now < autorate_look_us)
		return autorate_look_us;
	sent = stats_below(&spec.up, LINK_CHILD, GATE_HANDLE).tc.bytes;
	autorate_achieved(&autorate, (sent - autorate_sent) * 8e6 / AUTORATE_LOOK_US);
	autorate_sent = sent;
	autorate_look_us += AUTORATE_LOOK_US;
	return autorate_look_us;
}

static void sample_modem(int64_t at_us)
{
	struct modem_stats st = stats_of(&spec.up).modem;

	fprintf(raw, "m %lld %llu %u\n", (long long)at_us, (unsigned long long)st.byte_ns,
		st.max_bytes);
}

static void get_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	if (fd > 0)
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

static void sample(int64_t now)
{
	struct tcp_info info;
	int i;

	for (i = 0; i < spec.flows; i++) {
		get_info(senders[i].fd, &info);
		fprintf(raw, "s %lld %d %llu %u %u\n", (long long)(now - t0_us), i,
			(unsigned long long)readers[i].received,
			info.tcpi_snd_wnd, info.tcpi_snd_cwnd);
	}
	for (i = 0; i < spec.neighbours; i++)
		fprintf(raw, "n %lld %d %llu\n", (long long)(now - t0_us), i,
			(unsigned long long)spec.neighbour[i].transfer.reader.received);
	for (i = 0; i < spec.uploads; i++)
		fprintf(raw, "x %lld %d %llu\n", (long long)(now - t0_us), i,
			(unsigned long long)spec.upload[i].reader.received);
	if (spec.down.set)
		fprintf(raw, "q %lld %u\n", (long long)(now - t0_us),
			stats_of(&spec.down).tc.backlog);
	if (spec.up.firmware)
		sample_modem(now - t0_us);
	if ((now - t0_us) % FREQUENCY_HZ == 0) {
		printf("at %lld\n", (long long)(now - t0_us) / FREQUENCY_HZ);
		fflush(stdout);
	}
}

static bool has_paced(void)
{
	int i;

	for (i = 0; i < spec.neighbours; i++)
		if (is_paced(spec.neighbour[i].kind))
			return true;
	return false;
}

static size_t ip_header_bytes(void)
{
	return spec.ipv6 ? sizeof(struct ip6_hdr) : sizeof(struct iphdr);
}

static void open_tap(const char *ns, const char *dev)
{
	static const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, sigfigs, snaplen, linktype;
	} header = { 0xa1b23c4d, 2, 4, 0, 0, SNAPLEN, 1 };
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct conn *c = calloc(1, sizeof(*c));
	int size = 64 << 20, one = 1;
	char path[64];

	enter(ns);
	c->kind = TAP;
	c->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
	ll.sll_ifindex = if_nametoindex(dev);
	if (c->fd < 0 || bind(c->fd, (void *)&ll, sizeof(ll)) ||
	    setsockopt(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)))
		die("capture on %s", dev);
	snprintf(path, sizeof(path), "%s.pcap", ns);
	c->pcap = fopen(path, "w");
	if (!c->pcap)
		die("%s", path);
	fwrite(&header, sizeof(header), 1, c->pcap);
	watch(c, EPOLLIN);
}

/* Counts calls' and games' packets as the radio brings them, before a program at the interface
 * sees them. All else is filtered: TCP does not coalesce a segment that was cloned.
 */
static void open_paced_tap(void)
{
	struct sock_filter udp_of_neighbours[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SKF_AD_OFF + SKF_AD_PROTOCOL),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, spec.ipv6 ? ETH_P_IPV6 : ETH_P_IP, 0, 6),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, spec.ipv6 ? offsetof(struct ip6_hdr, ip6_nxt) :
			 offsetof(struct iphdr, protocol)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 4),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ip_header_bytes()),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, PORT_NEIGHBOUR, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, PORT_NEIGHBOUR + MAX_NEIGHBOURS, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = {
		sizeof(udp_of_neighbours) / sizeof(*udp_of_neighbours), udp_of_neighbours
	};
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct conn *c = calloc(1, sizeof(*c));

	enter("phone");
	c->kind = PACED_TAP;
	c->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ll.sll_ifindex = if_nametoindex("rmnet0");
	if (c->fd < 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    bind(c->fd, (void *)&ll, sizeof(ll)))
		die("counting calls on rmnet0");
	watch(c, EPOLLIN);
}

static void read_paced_tap(struct conn *c)
{
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	uint16_t port;

	while (recvfrom(c->fd, chunk, CHUNK, 0, (void *)&from, &len) > 0) {
		memcpy(&port, chunk + ip_header_bytes(), sizeof(port));
		if (from.sll_pkttype != PACKET_OUTGOING)
			spec.neighbour[ntohs(port) - PORT_NEIGHBOUR].arrived++;
	}
}

static void read_tap(struct conn *c)
{
	char control[128];
	struct iovec iov = { chunk, CHUNK };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	for (;;) {
		struct { uint32_t sec, nsec, caplen, len; } h;
		struct timespec ts = { 0 };
		struct cmsghdr *cm;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		n = recvmsg(c->fd, &msg, 0);
		if (n < 0)
			return;
		for (cm = CMSG_FIRSTHDR(&msg); cm; cm = CMSG_NXTHDR(&msg, cm))
			if (cm->cmsg_level == SOL_SOCKET && cm->cmsg_type == SO_TIMESTAMPNS)
				memcpy(&ts, CMSG_DATA(cm), sizeof(ts));
		h.sec = ts.tv_sec;
		h.nsec = ts.tv_nsec;
		h.len = n;
		h.caplen = n < SNAPLEN ? n : SNAPLEN;
		fwrite(&h, sizeof(h), 1, c->pcap);
		fwrite(chunk, h.caplen, 1, c->pcap);
	}
}

static void handle(struct conn *c, uint32_t events)
{
	switch (c->kind) {
	case LISTEN_BULK:
	case LISTEN_OBJECT:
	case LISTEN_UPLOAD:
	case LISTEN_NEIGHBOUR:
		accept_all(c);
		break;
	case BULK_SENDER:
	case UPLOAD_SENDER:
		send_bulk(c);
		break;
	case BULK_READER:
		read_bulk(c, events);
		break;
	case UPLOAD_READER:
	case PIPE_READER:
	case PACED_READER:
		drain(c);
		break;
	case PACED_SENDER:
		meet_phone(c);
		break;
	case OBJECT_SERVER:
		serve_object(c);
		break;
	case OBJECT_CLIENT:
		read_object(c, events);
		break;
	case PROBE_CLIENT:
		read_probes();
		break;
	case PROBE_ECHO:
		echo_probes(c);
		break;
	case QUIC_SENDER:
		read_quic_acks(c);
		break;
	case QUIC_READER:
		read_quic(c);
		break;
	case LIAR_SENDER:
		break;
	case PACED_TAP:
		read_paced_tap(c);
		break;
	case TAP:
		read_tap(c);
		break;
	case TIMER: {
		uint64_t expirations;

		if (read(c->fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
			die("timer");
		timer_us = -1;
		break;
	}
	}
}

/* Does this leave what comes next, and when, as it was? */
static bool plain_read(const struct conn *c)
{
	return c->kind == BULK_READER && spec.reader == READER_FAST && !spec.promotion_us;
}

/* Waits for sockets until @until_us, or until something happened that may change that. */
static void serve_until(int64_t until_us)
{
	struct itimerspec its = {
		.it_value.tv_sec = until_us / FREQUENCY_HZ,
		.it_value.tv_nsec = until_us % FREQUENCY_HZ * 1000,
	};
	struct epoll_event ev[64];
	bool plain;
	int i, n;

	if (until_us != timer_us)
		timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
	timer_us = until_us;
	do {
		n = epoll_wait(ep, ev, 64, -1);
		plain = n > 0;
		for (i = 0; i < n; i++) {
			plain &= plain_read(ev[i].data.ptr);
			handle(ev[i].data.ptr, ev[i].events);
		}
	} while (plain);
}

static void measure_base(void)
{
	int64_t rtt;
	int i;

	for (i = 0; i < BASE_PROBES; i++) {
		struct epoll_event ev;
		int64_t give_up = now_us() + 10 * FREQUENCY_HZ;

		send_probe();
		for (rtt = -1; rtt < 0;) {
			int n = epoll_wait(ep, &ev, 1, 1000);

			if (!n)		/* lost, where the spec has loss */
				send_probe();
			if (n == 1 && ((struct conn *)ev.data.ptr)->kind == PROBE_CLIENT)
				rtt = read_probes();
			else if (n == 1)
				handle(ev.data.ptr, ev.events);
			if (rtt < 0 && now_us() > give_up) {
				errno = ETIMEDOUT;
				die("no answer to a probe on the idle link");
			}
		}
		/* The first one waits for address resolution. */
		if (i)
			fprintf(raw, "b %lld\n", (long long)rtt);
	}
	probes_sent = 0;
	memset(probe_there_us, 0, sizeof(probe_there_us));
}

static int64_t flow_start_us(void)
{
	if (spec.on_demand)
		return INT64_MAX;
	return t0_us + next_flow * spec.flow_gap_us;
}

/* Those that read by the clock alone sleep whatever comes. */
static uint32_t reader_events(void)
{
	switch (spec.reader) {
	case READER_SLOW:
	case READER_EVERY:
		return 0;
	case READER_BURST:
		return EPOLLIN | EPOLLOUT | EPOLLET;
	default:
		return EPOLLIN;
	}
}

static void start_flow(const char *device)
{
	int i = next_flow;
	struct conn *c = &readers[i], *opener = spec.accepted ? &senders[i] : c;
	int64_t start_us = spec.on_demand ? now_us() : flow_start_us();
	int64_t pause_us = t0_us + spec.reader_number[0];

	next_flow++;
	c->next_us = INT64_MAX;
	if (spec.reader == READER_SLOW || spec.reader == READER_EVERY)
		c->next_us = start_us;
	else if (spec.reader == READER_PAUSE)
		c->next_us = start_us > pause_us ? start_us : pause_us;
	else if (spec.reader == READER_BURST)
		next_segment(c, start_us);
	if (spec.accepted)
		connect_to(opener, BULK_SENDER, PORT_BULK, EPOLLOUT | EPOLLET);
	else
		connect_over(device, c, BULK_READER, PORT_BULK, reader_events());
	/* The SYN of a fast open needs data to carry. */
	if (spec.fastopen && !c->size && send(c->fd, chunk, 1, MSG_NOSIGNAL) < 0)
		die("fast open");
	fprintf(raw, "f %d %d\n", i, local_port(opener->fd, false));
}

/* What the application had not read is lost, as when a network goes. */
static void hang_up(void)
{
	struct conn *c = &readers[next_flow - 1];

	if (!next_flow || c->fd < 0) {
		errno = EINVAL;
		die("no download to end");
	}
	close(c->fd);
	c->fd = -1;
}

static void run_event(struct event *e)
{
	if (e->clock_step_ms) {
		clock_step_ms = e->clock_step_ms;
		link_request(&spec.down, 0, put_clock_step);
	} else if (e->stamps >= 0) {
		no_stamps = !e->stamps;
		link_request(&spec.down, 0, put_stamps);
	} else if (e->outage_us) {
		spec.down.outage_us = e->outage_us;
		spec.up.outage_us = e->outage_us;
		link_request(&spec.down, 0, put_outage);
		link_request(&spec.up, 0, put_outage);
	} else if (e->link) {
		e->link->rate_bps = e->rate_bps;
		link_request(e->link, 0, put_rate);
	} else if (e->download) {
		start_flow(e->device);
	} else if (e->hangup) {
		hang_up();
	} else if (e->probe) {
		close(probe.fd);
		connect_over(e->device, &probe, PROBE_CLIENT, PORT_PROBE, EPOLLIN);
	} else {
		shell(e->command);
	}
}

static void run(void)
{
	int64_t end_us = t0_us + spec.duration_us;
	int i;

	for (i = 0; i < spec.uploads; i++)
		start_upload(i, now_us());
	next_probe_us = t0_us;
	next_sample_us = t0_us + spec.sample_us;
	if (spec.up.firmware)
		sample_modem(0);
	next_object_us = spec.sizes ? t0_us : INT64_MAX;

	for (;;) {
		int64_t now = now_us();
		int64_t wake = end_us;

		if (loaded)
			last_load_us = now;
		loaded = false;
		for (i = 0; i < spec.neighbours; i++)
			wake = earliest(wake, neighbour_acts(&spec.neighbour[i], now));
		for (i = 0; i < spec.uploads; i++)
			wake = earliest(wake, upload_acts(&spec.upload[i], now));
		if (spec.autorate_bps)
			wake = earliest(wake, look_at_autorate(now));
		while (next_flow < spec.flows && now >= flow_start_us())
			start_flow(next_flow % 2 && spec.second_device[0] ? spec.second_device :
									   NULL);
		for (i = 0; i < next_flow; i++)
			while (now >= readers[i].next_us)
				reader_acts(&readers[i], now);
		while (next_event < spec.events &&
		       now >= t0_us + spec.event[next_event].at_us)
			run_event(&spec.event[next_event++]);
		if (now >= next_sample_us) {
			sample(next_sample_us);
			next_sample_us += spec.sample_us;
		}
		if (now >= end_us)
			return;
		if (now >= next_probe_us) {
			/* Probes may not keep a radio awake that the load lets sleep. */
			if (!spec.promotion_us || now < last_load_us + 4 * spec.probe_us)
				send_probe();
			next_probe_us += spec.probe_us;
		}
		if (now >= next_object_us) {
			next_object_us = INT64_MAX;
			fetch_object(spec.size[next_size++ % spec.sizes], now);
		}
		while (next_request < spec.requests &&
		       now >= t0_us + spec.request[next_request].at_us)
			fetch_object(spec.request[next_request++].size, now);

		wake = earliest(wake, earliest(next_sample_us, next_probe_us));
		wake = earliest(wake, next_object_us);
		for (i = 0; i < next_flow; i++)
			wake = earliest(wake, readers[i].next_us);
		if (next_flow < spec.flows)
			wake = earliest(wake, flow_start_us());
		if (next_request < spec.requests)
			wake = earliest(wake, t0_us + spec.request[next_request].at_us);
		if (next_event < spec.events)
			wake = earliest(wake, t0_us + spec.event[next_event].at_us);
		serve_until(wake);
	}
}

static void copy_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t n;

	if (!in || !out)
		die("copy %s to %s", from, to);
	while ((n = fread(chunk, 1, CHUNK, in)))
		fwrite(chunk, 1, n, out);
	fclose(in);
	fclose(out);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("%s", path);
	close(fd);
}

/* What the kernel has to say, whatever its importance, and what it lost. */
static void keep_log(void)
{
	enum { READ_ALL = 3, SIZE_BUFFER = 10 };
	static const char leaks[] = "/sys/kernel/debug/kmemleak";
	int size = klogctl(SIZE_BUFFER, NULL, 0);
	char *text = calloc(1, size);
	FILE *out = fopen("kmsg", "w");

	size = klogctl(READ_ALL, text, size);
	if (!out || size < 0)
		die("kernel log");
	fwrite(text, 1, size, out);
	fclose(out);
	free(text);

	if (mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL) || access(leaks, F_OK))
		return;
	/* It reports what is older than 5 s, and in the second scan what moved in the first. */
	sleep(6);
	write_file(leaks, "scan");
	write_file(leaks, "scan");
	copy_file(leaks, "kmemleak");
}

static void __attribute__((noreturn)) power_off(void)
{
	keep_log();
	fprintf(raw, "end\n");
	fclose(raw);
	fflush(NULL);
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void finish(void)
{
	struct tcp_info info;
	int i;

	for (i = 0; i < spec.flows; i++) {
		get_info(senders[i].fd, &info);
		fprintf(raw, "r %d %u %llu\n", i, info.tcpi_total_retrans,
			(unsigned long long)readers[i].reads);
	}
	for (i = 0; i < (int)probes_sent; i++)
		if (probe_sent_us[i] != INT64_MAX)
			fprintf(raw, "l %lld %d\n", (long long)(probe_sent_us[i] - t0_us), i);
	for (i = 0; i < spec.uploads; i++) {
		struct transfer *t = &spec.upload[i];

		get_info(spec.quic_uploads ? -1 : t->sender.fd, &info);
		fprintf(raw, "u %d %llu %llu\n", i, (unsigned long long)t->reader.received,
			spec.quic_uploads ?
			(unsigned long long)(t->quic.highest - t->quic.received) :
			(unsigned long long)info.tcpi_total_retrans);
	}
	for (i = 0; i < spec.neighbours; i++) {
		struct transfer *t = &spec.neighbour[i].transfer;

		if (is_paced(spec.neighbour[i].kind))
			fprintf(raw, "c %d %llu %llu %llu\n", i,
				(unsigned long long)t->sender.reads,
				(unsigned long long)spec.neighbour[i].arrived,
				(unsigned long long)t->reader.reads);
	}
	fprintf(raw, "w %d\n", unfinished);
	if (spec.down.set) {
		struct tc_stats st = stats_of(&spec.down).tc;

		fprintf(raw, "d %u %llu %u\n", st.packets, (unsigned long long)st.bytes,
			st.drops);
	}
	enter("phone");
	copy_file("/proc/self/net/netstat", "netstat");
	if (!access("/proc/self/net/tcp_drwa", F_OK))
		copy_file("/proc/self/net/tcp_drwa", "tcp_drwa");
	if (spec.at_end[0])
		shell(spec.at_end);
	if (spec.trace) {
		write_file("/sys/kernel/tracing/tracing_on", "0");
		copy_file("/sys/kernel/tracing/trace", "trace");
	}
}

static void parse_link(struct link_spec *l, const char *rest)
{
	if (sscanf(rest, "%llu %u %511s", (unsigned long long *)&l->rate_bps, &l->limit,
		   l->trace) < 2) {
		errno = EINVAL;
		die("link %s", rest);
	}
	l->set = true;
}

/* kind, then type=value of u32 attributes */
static void parse_gate(char *rest)
{
	struct gate_spec *g = &spec.gate;
	char *word = strtok(rest, " ");

	if (word)
		snprintf(g->kind, sizeof(g->kind), "%s", word);
	while (word && (word = strtok(NULL, " "))) {
		if (g->attrs == 4 || sscanf(word, "%d=%u", &g->attr[g->attrs].type,
					    &g->attr[g->attrs].value) != 2) {
			errno = EINVAL;
			die("gate %s", word);
		}
		g->attrs++;
	}
}

/* bytes; grant, report and word in us; bytes that are not told of */
static void parse_modem(const char *rest)
{
	if (sscanf(rest, "%u %lld %lld %lld %u", &spec.up.firmware,
		   (long long *)&spec.up.grant_us, (long long *)&spec.up.report_us,
		   (long long *)&spec.up.told_us, &spec.up.hidden) != 5) {
		errno = EINVAL;
		die("modem %s", rest);
	}
}

/* cycle, on-duration and inactivity timer in us */
static void parse_drx(const char *rest)
{
	if (sscanf(rest, "%lld %lld %lld", (long long *)&spec.drx_cycle_us,
		   (long long *)&spec.drx_on_us, (long long *)&spec.drx_awake_us) != 3) {
		errno = EINVAL;
		die("drx %s", rest);
	}
}

static void parse_reader(const char *rest)
{
	static const char *const names[] = {
		"fast", "slow", "pause", "burst", "small", "every", "lowat"
	};
	char name[16];
	size_t i;

	if (sscanf(rest, "%15s %llu %llu", name, (unsigned long long *)&spec.reader_number[0],
		   (unsigned long long *)&spec.reader_number[1]) < 1)
		name[0] = '\0';
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i])) {
			spec.reader = i;
			return;
		}
	errno = EINVAL;
	die("reader %s", rest);
}

static void parse_request(const char *rest)
{
	struct request_at *r;

	spec.request = realloc(spec.request, (spec.requests + 1) * sizeof(*r));
	if (!spec.request)
		die("request");
	r = &spec.request[spec.requests++];
	if (sscanf(rest, "%lld %llu", (long long *)&r->at_us,
		   (unsigned long long *)&r->size) != 2) {
		errno = EINVAL;
		die("request %s", rest);
	}
}

static void join_ends(struct transfer *t)
{
	t->next_us = INT64_MAX;
	t->ack_us = INT64_MAX;
	t->short_us = INT64_MAX;
	t->reader.transfer = t;
	t->sender.transfer = t;
}

/* number, kind */
static void parse_uploads(const char *rest)
{
	char kind[16];
	int i;

	if (sscanf(rest, "%d %15s", &spec.uploads, kind) != 2 || spec.uploads > MAX_UPLOADS) {
		errno = EINVAL;
		die("uploads %s", rest);
	}
	spec.short_uploads = !strcmp(kind, "quic-duplex");
	spec.quic_uploads = spec.short_uploads || !strcmp(kind, "quic");
	for (i = 0; i < spec.uploads; i++) {
		spec.upload[i].upload = true;
		join_ends(&spec.upload[i]);
	}
}

/* kind, congestion control of a TCP one, start and length in us */
static void parse_neighbour(const char *rest)
{
	static const char *const kinds[] = { "tcp", "quic", "liar", "stream", "program",
					     "call", "game" };
	struct neighbour *n = &spec.neighbour[spec.neighbours];
	long long start_us, length_us;
	char kind[16];
	size_t i;

	if (spec.neighbours == MAX_NEIGHBOURS ||
	    sscanf(rest, "%15s %15s %lld %lld", kind, n->cc, &start_us, &length_us) != 4) {
		errno = EINVAL;
		die("neighbour %s", rest);
	}
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i]))
			n->kind = i;
	n->start_us = start_us;
	n->end_us = start_us + length_us;
	join_ends(&n->transfer);
	n->transfer.reader.neighbour = n;
	n->transfer.sender.neighbour = n;
	spec.neighbours++;
}

static void parse_event(char *rest)
{
	struct event *e = &spec.event[spec.events];
	char *kind;
	int used;

	if (spec.events == MAX_EVENTS ||
	    sscanf(rest, "%lld %n", (long long *)&e->at_us, &used) != 1) {
		errno = EINVAL;
		die("event %s", rest);
	}
	kind = rest + used;
	e->stamps = -1;
	if (!strncmp(kind, "clock ", 6)) {
		e->clock_step_ms = atoi(kind + 6);
	} else if (!strncmp(kind, "timestamps ", 11)) {
		e->stamps = atoi(kind + 11);
	} else if (!strncmp(kind, "outage ", 7)) {
		e->outage_us = atoll(kind + 7);
	} else if (!strncmp(kind, "down ", 5) || !strncmp(kind, "up ", 3)) {
		e->link = kind[0] == 'd' ? &spec.down : &spec.up;
		e->rate_bps = strtoull(strchr(kind, ' ') + 1, NULL, 10);
	} else if (sscanf(kind, "download %15s", e->device) == 1) {
		e->download = true;
		spec.on_demand = true;
		spec.flows++;
	} else if (!strcmp(kind, "hangup")) {
		e->hangup = true;
	} else if (sscanf(kind, "probe %15s", e->device) == 1) {
		e->probe = true;
	} else {
		snprintf(e->command, sizeof(e->command), "%s", kind);
	}
	spec.events++;
}

static void parse_spec(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[2048];

	if (!f)
		die("%s", path);
	while (fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (value)
			*value++ = '\0';
		else
			value = "";
		if (!strcmp(line, "duration_us"))
			spec.duration_us = atoll(value);
		else if (!strcmp(line, "flows"))
			spec.flows = atoi(value);
		else if (!strcmp(line, "cc"))
			snprintf(spec.cc, sizeof(spec.cc), "%s", value);
		else if (!strcmp(line, "phone_cc"))
			snprintf(spec.phone_cc, sizeof(spec.phone_cc), "%s", value);
		else if (!strcmp(line, "modem"))
			parse_modem(value);
		else if (!strcmp(line, "gate"))
			parse_gate(value);
		else if (!strcmp(line, "autorate"))
			spec.autorate_bps = strtoull(value, NULL, 10);
		else if (!strcmp(line, "opaque_probes"))
			spec.opaque_probes = true;
		else if (!strcmp(line, "phone_child"))
			snprintf(spec.phone_child, sizeof(spec.phone_child), "%s", value);
		else if (!strcmp(line, "pace_bytes"))
			spec.pace_bytes = strtoul(value, NULL, 10);
		else if (!strcmp(line, "object") && spec.sizes < MAX_SIZES)
			spec.size[spec.sizes++] = strtoull(value, NULL, 10);
		else if (!strcmp(line, "request"))
			parse_request(value);
		else if (!strcmp(line, "flow_gap_us"))
			spec.flow_gap_us = atoll(value);
		else if (!strcmp(line, "probe_us"))
			spec.probe_us = atoll(value);
		else if (!strcmp(line, "think_us"))
			spec.think_us = atoll(value);
		else if (!strcmp(line, "keep_alive"))
			spec.keep_alive = true;
		else if (!strcmp(line, "push"))
			spec.push = true;
		else if (!strcmp(line, "uploads"))
			parse_uploads(value);
		else if (!strcmp(line, "ipv6"))
			spec.ipv6 = true;
		else if (!strcmp(line, "pcap"))
			spec.pcap = true;
		else if (!strcmp(line, "reorder_ppm"))
			spec.down.reorder_ppm = atoi(value);
		else if (!strcmp(line, "ack_thin"))
			spec.up.ack_thin = atoi(value);
		else if (!strcmp(line, "down_ack_thin"))
			spec.down.ack_thin = atoi(value);
		else if (!strcmp(line, "promotion_us"))
			spec.promotion_us = atoll(value);
		else if (!strcmp(line, "idle_us"))
			spec.idle_us = atoll(value);
		else if (!strcmp(line, "drx"))
			parse_drx(value);
		else if (!strcmp(line, "reader"))
			parse_reader(value);
		else if (!strcmp(line, "down"))
			parse_link(&spec.down, value);
		else if (!strcmp(line, "up"))
			parse_link(&spec.up, value);
		else if (!strcmp(line, "second"))
			parse_link(&spec.second, value);
		else if (!strcmp(line, "second_device"))
			snprintf(spec.second_device, sizeof(spec.second_device), "%s", value);
		else if (!strcmp(line, "behind_modem")) {
			spec.up.ns = "modem";
			spec.up.dev = "air0";
		} else if (!strcmp(line, "bearers")) {
			spec.bearers = atoi(value);
			spec.up.dev = "rmnet_ipa0";
		} else if (!strcmp(line, "neighbour"))
			parse_neighbour(value);
		else if (!strcmp(line, "lie_ms"))
			spec.lie_ms = atoi(value);
		else if (!strcmp(line, "upload_lie_ms")) {
			spec.lie_ms = atoi(value);
			spec.lying_uploads = true;
		} else if (!strcmp(line, "clock_ppm"))
			spec.clock_ppm = atoi(value);
		else if (!strcmp(line, "clock_tick_us"))
			spec.clock_tick_us = atoi(value);
		else if (!strcmp(line, "clocks")) {
			spec.down.clock = CLOCK_FROM_SERVER;
			spec.up.clock = CLOCK_TO_SERVER;
		} else if (!strcmp(line, "gro_us")) {
			spec.gro = true;
			spec.down.hand_over_us = atoll(value);
		}
		else if (!strcmp(line, "rcvbuf"))
			spec.rcvbuf = atoi(value);
		else if (!strcmp(line, "window_clamp"))
			spec.window_clamp = atoi(value);
		else if (!strcmp(line, "mss"))
			spec.mss = atoi(value);
		else if (!strcmp(line, "syn_scale"))
			spec.syn_scale = atoi(value);
		else if (!strcmp(line, "strip_stamps"))
			spec.strip_stamps = true;
		else if (!strcmp(line, "fastopen"))
			spec.fastopen = true;
		else if (!strcmp(line, "mptcp"))
			spec.mptcp = true;
		else if (!strcmp(line, "accepted"))
			spec.accepted = true;
		else if (!strcmp(line, "at_end"))
			snprintf(spec.at_end, sizeof(spec.at_end), "%s", value);
		else if (!strcmp(line, "client")) {
			spec.client = true;
			spec.client_half = !strcmp(value, "half");
		} else if (!strcmp(line, "child"))
			snprintf(spec.child, sizeof(spec.child), "%s", value);
		else if (!strcmp(line, "event"))
			parse_event(value);
		else {
			errno = EINVAL;
			die("spec key %s", line);
		}
	}
	fclose(f);
	if (spec.flows > MAX_FLOWS) {
		errno = E2BIG;
		die("flows");
	}
}

/*
 * All of the host's files stay visible, read-only, wherever the lab, its cache
 * and its tests are. The guest's own is /run alone: its TMPDIR, the names of
 * its namespaces, and the results folder, which becomes the working folder. Of
 * the host's /run, only the users' part is in sight.
 */
static void mount_all(const char *out)
{
	int users = open("/run/user", O_PATH | O_CLOEXEC);
	char path[32];

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	if (mount("tmpfs", "/run", "tmpfs", 0, NULL))
		die("tmpfs");
	if (users >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", users);
		if (mkdir("/run/user", 0755) || mount(path, "/run/user", NULL, MS_BIND, NULL))
			die("/run/user");
		close(users);
	}
	if (mkdir("/run/lab", 0755) || mount("none", "/run/lab", "hostfs", 0, out) ||
	    chdir("/run/lab"))
		die("results folder %s", out);
	setenv("TMPDIR", "/run", 1);
}

static void start_trace(void)
{
	static const char round[] =
		"/sys/kernel/tracing/events/tcp_drwa/tcp_drwa_round/enable";

	if (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) || access(round, F_OK))
		return;
	write_file("/sys/kernel/tracing/trace_clock", "mono");
	write_file("/sys/kernel/tracing/buffer_size_kb", "32768");
	write_file(round, "1");
	spec.trace = true;
}

static void offload(const char *ns, const char *dev, uint32_t command, bool on)
{
	struct ethtool_value value = { .cmd = command, .data = on };
	struct ifreq request = { .ifr_data = (void *)&value };
	int fd;

	enter(ns);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", dev);
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &request))
		die("offload of %s", dev);
	close(fd);
}

static void serve_neighbours(void)
{
	int i;

	for (i = 0; i < spec.neighbours; i++) {
		struct neighbour *n = &spec.neighbour[i];
		enum kind kind = n->kind == NEIGHBOUR_QUIC ? QUIC_SENDER :
				 is_paced(n->kind) ? PACED_SENDER : LISTEN_NEIGHBOUR;
		struct conn *c;

		if (n->kind == NEIGHBOUR_PROGRAM)
			continue;
		c = kind == LISTEN_NEIGHBOUR ? calloc(1, sizeof(*c)) : &n->transfer.sender;
		c->neighbour = n;
		serve_with(c, "server", kind, PORT_NEIGHBOUR + i,
			   n->kind == NEIGHBOUR_TCP ? n->cc : spec.cc);
		if (n->kind == NEIGHBOUR_STREAM)
			set_option(c->fd, SOL_SOCKET, SO_MAX_PACING_RATE, STREAM_BYTES);
	}
}

static void serve_uploads(void)
{
	int i;

	for (i = 0; i < spec.uploads && spec.quic_uploads; i++)
		serve_with(&spec.upload[i].reader, "server", QUIC_READER, PORT_QUIC_UPLOAD + i,
			   spec.cc);
}

int main(void)
{
	struct conn timer = { .kind = TIMER };
	const char *out = getenv("lab_out");

	if (!out) {
		printf("agent: init of a lab guest, needs lab_out=DIR; run kernel/lab/lab\n");
		return 2;
	}
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	mount_all(out);
	raw = fopen("raw", "w");
	if (!raw)
		die("results");
	if (access("spec", F_OK)) {
		shell("/bin/sh -e script.sh");
		power_off();
	}
	parse_spec("spec");
	shell("/bin/sh -e setup.sh");

	ep = epoll_create1(EPOLL_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	timer.fd = timer_fd;
	serve(spec.accepted ? "phone" : "server", LISTEN_BULK, PORT_BULK);
	serve("server", LISTEN_OBJECT, PORT_OBJECT);
	serve("server", LISTEN_UPLOAD, PORT_UPLOAD);
	serve("server", PROBE_ECHO, PORT_PROBE);
	serve_neighbours();
	serve_uploads();
	if (spec.gro) {
		/* Packets of a device that could send large ones itself pass by GRO. */
		offload("router", "cell0", ETHTOOL_STSO, false);
		offload("phone", "rmnet0", ETHTOOL_SGRO, true);
	}
	connect_to(&probe, PROBE_CLIENT, PORT_PROBE, EPOLLIN);
	measure_base();

	/* A whole second, so that traces of different runs line up. */
	t0_us = (now_us() / FREQUENCY_HZ + 2) * FREQUENCY_HZ;
	if (spec.down.set)
		create_link(&spec.down);
	if (spec.up.set)
		create_link(&spec.up);
	if (spec.second.set)
		create_link(&spec.second);
	if (spec.gate.kind[0])
		create_gates();
	if (spec.autorate_bps)
		start_autorate();
	if (spec.child[0])
		shell(spec.child);
	if (spec.phone_child[0])
		shell(spec.phone_child);
	if (spec.pcap) {
		open_tap("server", "srv0");
		open_tap("phone", "rmnet0");
	}
	if (has_paced())
		open_paced_tap();
	start_trace();
	watch(&timer, EPOLLIN);
	while (now_us() < t0_us)
		serve_until(t0_us);
	fprintf(raw, "t %lld\n", (long long)t0_us);
	run();
	finish();
	power_off();
}
