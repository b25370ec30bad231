// SPDX-License-Identifier: GPL-2.0-only
/* Random and hostile packets through the tc programs, by BPF_PROG_TEST_RUN
 *
 * fuzz_packets OBJECT SEED COUNT
 *
 * Of each packet: it is let through, as long as it was, and no byte of it is another one
 * but for the window and the checksum of a TCP segment that is sent. The window is lower
 * then, the checksum tells the same of the rest, and no right edge moves back, by a
 * reader of packets of its own. Off, nothing is learned. Now and then the filters are
 * away: what then comes first of a connection is the first that is known of its offers,
 * and is not changed. UDP is dropped where that was asked for alone, if no tunnel's, and of
 * a flow that has brought more than four seconds of 250 kb/s; and it is, in a queue that is
 * known, though another CPU's clock was ahead. Now and then a flow's place is another one's
 * of the same digest: it is not governed then. Ends with 1, and the packet, where that is not
 * so.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "packets.h"

#define CONNECTIONS	48
#define KNOWN		1048576	/* a power of two */
#define DATAGRAMS	32
#define DATAGRAM_PORT	20000	/* for 994 generations below that of WireGuard */
#define GENERATION	65536	/* packets, after which flows of UDP begin anew */
#define UDP_FREE	131072	/* bytes of a flow that are never dropped */
#define ECHO_ID		0x12345678
#define TC_ACT_SHOT	2

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };
enum { IN, OUT };

/* What the programs may know of a connection by the packets that it had */
struct known {
	struct drwa_key	key;
	u32	opened_seq;
	u32	edge;
	u8	scale;
	u8	scales;
	u8	used;
	u8	open;
	u8	passive;
	u8	answered;
	u8	aside;	/* not to be touched */
	u32	attached;	/* when it last sent, and when something last came */
	u32	came;
};

/* As this reads it */
struct seen {
	struct drwa_key	key;
	size_t	at;	/* of the TCP header */
	size_t	end;
	u32	seq;
	u32	ack;
	u32	window;
	u8	flags;
	u8	scale;
	u8	scales;
	u8	signed_;
	u8	mptcp;
	u8	unread;
};

/* One that packets are made for */
struct connection {
	bool	v6;
	u8	n;
	u8	scale;
	u8	kind;		/* 0: opened here, 1: by the other end, 2: not seen */
	bool	ts;
	u32	ours;
	u32	theirs;
	u32	acked;
	u32	tsval;
};

/* A flow of UDP; its addresses have its number, and its kind is that modulo 4. */
enum { QUIC, WIREGUARD, OPENVPN, IPSEC };

struct datagrams {
	u32	sent;
	u64	bytes;
	bool	lost;	/* its place, to another flow of that digest */
};

static struct known table[KNOWN];
static struct datagrams datagrams[DATAGRAMS];
static struct connection connections[CONNECTIONS];
static u64 state;
static u64 rewritten, governed_acks, dropped;
static u32 attached;	/* how often the filters were */
static u32 generation;

static u32 draw(void)
{
	u64 z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z >> 32;
}

static u32 below(u32 n)
{
	return draw() % n;
}

static u32 get16(const u8 *at)
{
	return at[0] << 8 | at[1];
}

static u32 get32(const u8 *at)
{
	return get16(at) << 16 | get16(at + 2);
}

/* One's complement sum, with one form of 0 */
static u32 sum(u32 from, const u8 *at, size_t n)
{
	u64 total = from;
	size_t i;

	for (i = 0; i + 1 < n; i += 2)
		total += get16(at + i);
	if (n & 1)
		total += at[n - 1] << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return total == 0xffff ? 0 : total;
}

/* --- Reading --- */

static void read_options(struct seen *s, const u8 *at, const u8 *end)
{
	int i;

	for (i = 0; at + 1 < end; i++) {
		/* The programs read that many, and must not touch what may be signed. */
		if (i == 12) {
			s->unread = 1;
			return;
		}
		if (at[0] == 0)
			return;
		if (at[0] == 3 && at + 2 < end + 8) {
			s->scales = 1;
			s->scale = at[2] < 14 ? at[2] : 14;
		}
		s->signed_ |= at[0] == 19 || at[0] == 29;
		s->mptcp |= at[0] == 30;
		at += at[0] == 1 ? 1 : at[1];
	}
}

static bool read_packet(struct seen *s, const u8 *packet, size_t n, int way)
{
	const u8 *ip = packet + ETHERNET;
	size_t header, bytes;

	memset(s, 0, sizeof(*s));
	if (get16(packet + 12) == 0x0800) {
		if (n < ETHERNET + 20 || ip[9] != 6 || (get16(ip + 6) & 0x3fff))
			return false;
		header = (ip[0] & 15) * 4;
		bytes = get16(ip + 2) ? get16(ip + 2) : n - ETHERNET;
		if (bytes < header)
			return false;
		bytes -= header;
		memcpy(way == OUT ? s->key.remote : s->key.local, ip + 16, 4);
		memcpy(way == OUT ? s->key.local : s->key.remote, ip + 12, 4);
	} else if (get16(packet + 12) == 0x86dd) {
		if (n < ETHERNET + 40 || ip[6] != 6)
			return false;
		header = 40;
		bytes = get16(ip + 4) ? get16(ip + 4) : n - ETHERNET - 40;
		memcpy(way == OUT ? s->key.remote : s->key.local, ip + 24, 16);
		memcpy(way == OUT ? s->key.local : s->key.remote, ip + 8, 16);
	} else {
		return false;
	}
	s->at = ETHERNET + header;
	s->end = s->at + bytes;
	if (s->end > n || s->at + 20 > n || bytes < 20)
		return false;
	packet += s->at;
	header = (packet[12] >> 4) * 4;
	if (header < 20 || header > bytes)
		return false;
	memcpy(way == OUT ? &s->key.local_port : &s->key.remote_port, packet, 2);
	memcpy(way == OUT ? &s->key.remote_port : &s->key.local_port, packet + 2, 2);
	s->seq = get32(packet + 4);
	s->ack = get32(packet + 8);
	s->flags = packet[13];
	s->window = get16(packet + 14);
	read_options(s, packet + 20, packet + header);
	return true;
}

/* --- What is known --- */

static struct known *find(const struct drwa_key *key)
{
	const u8 *bytes = (const u8 *)key;
	u32 hash = 2166136261u;
	struct known *k;
	size_t i;

	for (i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	hash ^= hash >> 16;
	for (i = 0; i < KNOWN; i++) {
		k = &table[(hash + i) & (KNOWN - 1)];
		if (!k->used || !memcmp(&k->key, key, sizeof(*key)))
			return k;
	}
	return NULL;
}

static void note_open(const struct seen *s)
{
	struct known *k = find(&s->key);

	if (!k) {
		fputs("too many connections for this table\n", stderr);
		exit(2);
	}
	*k = (struct known){
		.key = s->key,
		.used = 1,
		.open = 1,
		.attached = attached,
		.came = attached,
		.opened_seq = s->seq,
		.scale = s->scale,
		.scales = s->scales,
		.edge = s->window,
		.aside = s->signed_ || s->unread ? 2 : s->mptcp,
	};
	if (s->flags & ACK) {
		k->passive = 1;
		k->edge += s->ack;
	}
}

static void note_answer(struct known *k, const struct seen *s)
{
	bool syn = s->flags & SYN;

	if (k->answered || (s->flags & (ACK | RST)) != ACK || syn == k->passive ||
	    s->ack - k->opened_seq - 1 > 0xffff)
		return;
	k->answered = 1;
	if (!syn)
		return;
	if (!k->scales || !s->scales)
		k->scale = 0;
	if (s->signed_ || s->unread)
		k->aside = 2;
	else if (k->aside < 2)
		k->aside = s->mptcp;
	k->edge += s->seq + 1;
}

/* --- Making --- */

static size_t put_options(u8 *at, const struct connection *c, u32 tsecr, bool syn)
{
	size_t n = 0;

	if (syn) {
		memcpy(at, "\x02\x04", 2);
		put16(at + 2, below(8) ? 1460 : draw());
		memcpy(at + 4, "\x04\x02\x01\x03\x03", 5);
		at[9] = c->scale;
		n = 10;
		if (!below(40)) {
			memcpy(at + n, "\x1e\x0c\x01\x00\x12\x34\x56\x78\x9a\xbc\xde\xf0", 12);
			n += 12;
		}
		if (!below(40)) {
			at[n] = below(2) ? 19 : 29;
			at[n + 1] = 10;
			n += 10;
		}
	}
	if (c->ts && n + 10 <= 38) {
		if (!syn) {
			at[n++] = 1;
			at[n++] = 1;
		}
		memcpy(at + n, "\x08\x0a", 2);
		put32(at + n + 2, c->tsval);
		put32(at + n + 6, tsecr);
		n += 10;
	}
	while (n & 3)
		at[n++] = 1;
	return n;
}

/* A packet of a connection; its sums are right. */
static size_t build(u8 *packet, const struct connection *c, int way, u8 flags, u32 seq, u32 ack,
		    u32 window, size_t payload, u32 tsecr)
{
	size_t ip = c->v6 ? 40 : 20, header, tcp_bytes, i;
	u8 *at = packet + ETHERNET, *tcp = at + ip;
	u8 local[16] = { 10, 0, 0, c->n }, remote[16] = { 192, 0, 2, c->n };

	memset(packet, 0, PACKET_MAX);
	put16(packet + 12, c->v6 ? 0x86dd : 0x0800);
	header = 20 + put_options(tcp + 20, c, tsecr, flags & SYN);
	tcp_bytes = header + payload;
	if (c->v6) {
		local[15] = 1;
		remote[15] = 2;
		at[0] = 0x60;
		put16(at + 4, tcp_bytes);
		at[6] = 6;
		at[7] = 64;
		memcpy(at + 8, way == OUT ? local : remote, 16);
		memcpy(at + 24, way == OUT ? remote : local, 16);
	} else {
		at[0] = 0x45;
		put16(at + 2, ip + tcp_bytes);
		at[8] = 64;
		at[9] = 6;
		memcpy(at + 12, way == OUT ? local : remote, 4);
		memcpy(at + 16, way == OUT ? remote : local, 4);
	}
	put16(tcp, way == OUT ? 40000 + c->n : 443);
	put16(tcp + 2, way == OUT ? 443 : 40000 + c->n);
	put32(tcp + 4, seq);
	put32(tcp + 8, ack);
	tcp[12] = header / 4 << 4;
	tcp[13] = flags;
	put16(tcp + 14, window);
	for (i = 0; i < payload; i++)
		tcp[header + i] = i;
	i = sum(6 + tcp_bytes, at + (c->v6 ? 8 : 12), c->v6 ? 32 : 8);
	put16(tcp + 16, ~sum(i, tcp, tcp_bytes));
	return ETHERNET + ip + tcp_bytes;
}

static void renew(struct connection *c, int n)
{
	*c = (struct connection){
		.v6 = below(2),
		.n = n,
		.scale = below(16),
		.kind = below(8) < 6 ? 0 : 1 + below(2),
		.ts = below(4),
		.ours = draw(),
		.theirs = draw(),
		.tsval = draw(),
	};
	c->acked = c->theirs + 1;
}

/* Mostly what is next, of a connection that may just have begun */
static size_t next_packet(u8 *packet, int *way)
{
	int n = below(CONNECTIONS);
	struct connection *c = &connections[n];
	u32 what = below(100), payload = below(3) ? 1200 : below(1300), window = draw() & 0xffff;

	c->tsval += below(3);
	if (what < 2) {
		renew(c, n);
		if (c->kind == 2)
			what = 20;
	}
	if (what < 2) {
		*way = OUT;
		return build(packet, c, OUT, c->kind ? SYN | ACK : SYN, c->ours,
			     c->kind ? c->theirs + 1 : 0, window, 0, 0);
	}
	if (what < 8) {
		*way = IN;
		return build(packet, c, IN, c->kind ? ACK : SYN | ACK,
			     c->theirs + (c->kind ? 1 : 0), c->ours + 1, window, 0, c->tsval);
	}
	if (what < 50) {
		*way = IN;
		c->theirs += below(50) ? 0 : below(4000);
		n = build(packet, c, IN, ACK | (below(200) ? 0 : draw()), c->theirs + 1,
			  c->ours + 1, window, payload, c->tsval - below(3));
		c->theirs += payload;
		return n;
	}
	*way = OUT;
	if (below(3))
		c->acked = c->theirs + 1;
	else if (!below(20))
		c->acked -= below(3000);
	else if (!below(500))
		c->acked = draw();
	return build(packet, c, OUT, ACK | (below(300) ? 0 : draw()), c->ours + 1, c->acked, window,
		     below(4) ? 0 : payload, draw());
}

/* What comes over IP that is not TCP: @kind of it, with @n bytes */
static size_t build_other(u8 *packet, bool v6, u8 host, u8 kind, size_t n)
{
	u8 *at = packet + ETHERNET, local[16] = { 10, 0, 1, host }, remote[16] = { 192, 0, 3, host };
	size_t ip = v6 ? 40 : 20;

	memset(packet, 0, PACKET_MAX);
	put16(packet + 12, v6 ? 0x86dd : 0x0800);
	if (v6) {
		at[0] = 0x60;
		put16(at + 4, n);
		at[6] = kind;
		at[7] = 64;
		memcpy(at + 8, remote, 16);
		memcpy(at + 24, local, 16);
	} else {
		at[0] = 0x45;
		put16(at + 2, ip + n);
		at[8] = 64;
		at[9] = kind;
		memcpy(at + 12, remote, 4);
		memcpy(at + 16, local, 4);
	}
	return ip;
}

/* What the program says when it comes to know something, or another CPU just before */
static u32 clock_us(void)
{
	struct timespec clock;

	clock_gettime(CLOCK_MONOTONIC, &clock);
	return clock.tv_sec * 1000000ULL + clock.tv_nsec / 1000;
}

/* An answer to an echo, with the owner's number or a sooner one, which is not @known */
static size_t build_echo(u8 *packet, bool *known)
{
	bool v6 = below(2);
	struct drwa_echo echo = { .id = below(8) ? ECHO_ID : draw() };
	u8 *at = packet + ETHERNET;

	*known = echo.id == ECHO_ID;
	echo.sent_us = htonl(clock_us() - (*known ? 20000 : 1000) - below(8000));
	at += build_other(packet, v6, 1, v6 ? 58 : 1, 16);
	at[0] = v6 ? 129 : 0;
	memcpy(at + 8, &echo, sizeof(echo));
	return at + 16 - packet;
}

/* The first packet of OpenVPN's server, as it is, under tls-auth or under tls-crypt, and its
 * length: src/openvpn/ssl_pkt.c and tls_crypt.h there.
 */
static size_t put_openvpn(u8 *at)
{
	static const u8 ack[] = { 1, 0, 0, 0, 0 };
	u32 how = below(3);
	size_t n = 1 + 8, i;

	at[0] = 0x40;
	if (how == 1)
		n += 20 + 8;
	if (how == 2)
		n += 8 + 32;
	for (i = 1; i < n + 17; i++)
		at[i] = draw();
	if (how == 2) {
		put32(at + 9, 1);
	} else {
		memcpy(at + n, ack, sizeof(ack));
		put32(at + n + 13, 0);
	}
	return n + 17;
}

/* The first that is seen of what is no tunnel: QUIC's long header, or DTLS, or, where it began
 * before, a short header of QUIC, whose first byte may be OpenVPN's
 */
static void put_quic(u8 *at, size_t n)
{
	static const u8 dtls[] = { 0x16, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0 };
	u32 how = below(4);
	size_t i;

	for (i = 0; i < n; i++)
		at[i] = draw();
	at[0] = how ? 0x40 | (how > 1 ? at[0] & 7 : 0) : at[0] | 0xc0;
	if (how == 3)
		memcpy(at, dtls, sizeof(dtls));
}

static size_t next_datagram(u8 *packet, u32 *flow)
{
	static const u16 ports[] = { 443, 443, 443, 4500 };
	u32 n = below(DATAGRAMS), kind = n % 4, payload = below(8) ? 1200 : 20 + below(1200);
	struct datagrams *d = &datagrams[n];
	u8 hello[128], *at = packet + ETHERNET;

	/* The hello that it is known by */
	if (kind == OPENVPN && !d->sent)
		payload = put_openvpn(hello);
	if (kind == QUIC && !d->sent)
		payload = 20 + below(100);
	at += build_other(packet, n & 4, n, 17, 8 + payload);
	put16(at, ports[kind]);
	put16(at + 2, DATAGRAM_PORT + generation * DATAGRAMS + n);
	put16(at + 4, 8 + payload);
	at[8] = kind == WIREGUARD ? 4 : 0x40 | (draw() & 0x3f);
	if (kind != WIREGUARD)
		put16(at + 9, draw() | 1);
	if (kind == OPENVPN && !d->sent)
		memcpy(at + 8, hello, payload);
	if (kind == QUIC && !d->sent)
		put_quic(at + 8, payload);
	d->sent++;
	d->bytes += at + 8 + payload - packet - ETHERNET;
	*flow = n;
	return at + 8 + payload - packet;
}

/* Bytes of its headers change, or its length does. */
static size_t mangle(u8 *packet, size_t n)
{
	u32 times = 1 + below(4);

	while (times--) {
		switch (below(8)) {
		case 3:	/* a fragment */
			packet[ETHERNET + 6] ^= 0x20;
			break;
		case 0:
			n = ETHERNET + below(n - ETHERNET + 1);
			break;
		case 1:
			packet[12 + below(2)] ^= 1 << below(8);
			break;
		case 2:
			packet[ETHERNET] = draw();
			break;
		default:
			packet[ETHERNET + below(100)] = draw();
		}
	}
	return n;
}

static bool is_syn(const u8 *packet)
{
	size_t ip = get16(packet + 12) == 0x86dd ? 40 : 20;

	return packet[ETHERNET + ip + 13] & SYN;
}

/* Options of every kind and length, in a header of any */
static void mangle_options(u8 *packet, size_t n)
{
	static const u8 kinds[] = { 0, 1, 2, 3, 4, 5, 8, 19, 28, 29, 30, 34 };
	size_t ip = get16(packet + 12) == 0x86dd ? 40 : 20;
	u8 *tcp = packet + ETHERNET + ip, *at;
	int words = 5 + below(11);

	if (n < ETHERNET + ip + 60)
		return;
	tcp[12] = words << 4;
	/* So many that a signature behind them is not read */
	if (!below(is_syn(packet) ? 2 : 4)) {
		memset(tcp + 20, 1, 40);
		return;
	}
	for (at = tcp + 20; at < tcp + words * 4; at += 1 + below(4)) {
		at[0] = kinds[below(sizeof(kinds))];
		at[1] = below(4) ? 2 + below(9) : draw();
	}
}

/* --- The judge --- */

static void fail(const char *what, u64 run, const u8 *before, const u8 *after, size_t n)
{
	size_t i;

	printf("packet %llu: %s\n", (unsigned long long)run, what);
	for (i = 0; i < n; i++)
		printf("%02x%s", before[i], before[i] == after[i] ? "" : "!");
	putchar('\n');
	for (i = 0; i < n; i++)
		if (before[i] != after[i])
			printf("byte %zu became %02x\n", i, after[i]);
	exit(1);
}

/* Is the window of what was sent as it has to be? */
static const char *judge(const struct seen *s, struct known *k, const u8 *before, const u8 *after,
			 bool on)
{
	u32 window = get16(after + s->at + 14), edge, own;
	size_t n = s->end - s->at;

	if (window != s->window) {
		if (!on)
			return "changed, though nothing is governed";
		if (!k || !(k->answered || k->passive) || (s->flags & (SYN | RST)) ||
		    !(s->flags & ACK))
			return "changed, and its scale cannot be known";
		if (k->aside)
			return "changed, and it is not ours to change";
		if (window > s->window)
			return "the window became larger";
		if (sum(0, before + s->at, n) != sum(0, after + s->at, n))
			return "the checksum tells another thing";
		rewritten++;
	}
	if (!k || k->aside || !(k->answered || k->passive) || !(s->flags & ACK) ||
	    (s->flags & (SYN | RST)))
		return NULL;
	governed_acks++;
	/* What is acknowledged beyond that was offered where nobody saw it. */
	if (k->attached != attached || (s32)(s->ack - k->edge) > 0) {
		if (window != s->window)
			return "changed, and what was offered is not known";
		k->attached = attached;
		k->edge = s->ack;
	}
	edge = s->ack + (window << k->scale);
	own = s->ack + (s->window << k->scale);
	/* Acknowledged as nobody would: far from what was offered */
	if (k->edge - s->ack + (1u << 30) < 1u << 31 &&
	    (s32)(edge - own) < 0 && (s32)(edge - k->edge) < 0)
		return "a right edge moved back";
	if ((s32)((window << k->scale) - (k->edge - s->ack)) > 0)
		k->edge = edge;
	return NULL;
}

static int map(struct bpf_object *object, const char *name)
{
	return bpf_object__find_map_fd_by_name(object, name);
}

/* A target that the law might have had, of any size */
static void force_window(int flows, const struct drwa_key *key)
{
	u64 digest = drwa_digest(key);
	struct drwa_flow f;

	if (bpf_map_lookup_elem(flows, &digest, &f))
		return;
	f.d.wnd = draw() >> below(32);
	bpf_map_update_elem(flows, &digest, &f, BPF_EXIST);
}

/* Another one of that digest has the entry. */
static void force_stranger(int flows, const struct drwa_key *key)
{
	u64 digest = drwa_digest(key);
	struct known *k = find(key);
	struct drwa_flow f;

	if (!k || !k->open || bpf_map_lookup_elem(flows, &digest, &f))
		return;
	f.key.addresses[below(4)] ^= 1ULL << below(64);
	bpf_map_update_elem(flows, &digest, &f, BPF_EXIST);
	k->open = 0;
}

/* What the law knows of a connection goes when something comes while it is off. */
static bool forgot(int flows, const struct known *k)
{
	u64 digest = drwa_digest(&k->key);
	struct drwa_flow f;

	return !k->answered || k->aside || bpf_map_lookup_elem(flows, &digest, &f) || !f.d.rtt_us;
}

/* So does what it knew before the filters were away. */
static bool anew(int flows, struct known *k)
{
	u64 digest = drwa_digest(&k->key);
	struct drwa_flow f;

	if (!k->answered || k->came == attached)
		return true;
	k->came = attached;
	return bpf_map_lookup_elem(flows, &digest, &f) || !f.d.wnd ||
	       (f.d.wnd >= 0xffff && f.d.wnd < 0xffff + (1u << (f.scale & 15)));
}

static u32 ahead_us(void)
{
	return clock_us() + below(2) * below(500000);
}

static u64 datagrams_digest(const u8 *packet)
{
	bool v6 = get16(packet + 12) == 0x86dd;
	const u8 *ip = packet + ETHERNET, *udp = ip + (v6 ? 40 : 20);
	struct drwa_key key = {};

	memcpy(key.remote, ip + (v6 ? 8 : 12), v6 ? 16 : 4);
	memcpy(key.local, ip + (v6 ? 24 : 16), v6 ? 16 : 4);
	memcpy(&key.remote_port, udp, 2);
	memcpy(&key.local_port, udp + 2, 2);
	return drwa_digest(&key);
}

/* A queue, above the target in any case, above that beside TCP, or an outage's */
enum { NONE, LONG, BESIDE, OUTAGE };

/* A queue, and a flow that is about to lose a packet, as if no time had passed since its
 * first one: its law reads a clock of its own. @before: bytes that it has brought
 */
static int force_drop(struct bpf_object *object, const u8 *packet, u64 before)
{
	u64 digest = datagrams_digest(packet);
	int kind = LONG + below(OUTAGE);
	u32 slot = 0, now_us = clock_us();
	struct drwa_queue queue;
	struct drwa_udp u;

	if (bpf_map_lookup_elem(map(object, "drwa_udp"), &digest, &u) ||
	    bpf_map_lookup_elem(map(object, "drwa_queues"), &slot, &queue))
		return NONE;
	u.dropping = 1;
	u.above_us = (now_us - 1000) | 1;
	u.next_us = now_us - 1000;
	u.since = 255;
	u.state = DRWA_UDP_SEEN;
	u.level = before < UDP_FREE + 1 ? before : UDP_FREE + 1;
	u.level_us = now_us;
	queue.delay_us = kind == LONG ? 10000000 : kind == BESIDE ? 90000 : 220000;
	queue.delay_set_us = ahead_us();
	queue.link.target_set_us = ahead_us();
	queue.link.heard_us = now_us;
	queue.silent_us = kind == OUTAGE ? 200000 : 0;
	queue.silent_end_us = ahead_us();
	bpf_map_update_elem(map(object, "drwa_udp"), &digest, &u, BPF_EXIST);
	bpf_map_update_elem(map(object, "drwa_queues"), &slot, &queue, BPF_EXIST);
	return kind;
}

static void lose_place(struct bpf_object *object, const u8 *packet, struct datagrams *d)
{
	u64 digest = datagrams_digest(packet);
	struct drwa_udp u;

	if (bpf_map_lookup_elem(map(object, "drwa_udp"), &digest, &u))
		return;
	u.key.ports ^= 1;
	bpf_map_update_elem(map(object, "drwa_udp"), &digest, &u, BPF_EXIST);
	d->lost = !d->lost;
}

static bool is_tunnel(struct bpf_object *object, const u8 *packet)
{
	u64 digest = datagrams_digest(packet);
	struct drwa_udp u;

	return !bpf_map_lookup_elem(map(object, "drwa_udp"), &digest, &u) && u.tunnel;
}

/* Was all there that a drop takes, and nothing between that takes time? */
static bool was_due(struct bpf_object *object, const u8 *packet)
{
	u64 digest = datagrams_digest(packet);
	struct drwa_queue queue;
	struct drwa_udp u;
	u32 slot = 0;

	return !bpf_map_lookup_elem(map(object, "drwa_udp"), &digest, &u) &&
	       !bpf_map_lookup_elem(map(object, "drwa_queues"), &slot, &queue) &&
	       u.state == DRWA_UDP_JUDGED && u.level > UDP_FREE && !queue.silent_us;
}

/* A flow whose clock tells UDP's queue from a base below the law's, while UDP comes */
static bool force_base(struct bpf_object *object, u64 digest, u32 *owd_us)
{
	struct drwa_queue queue;
	struct drwa_flow f;
	u32 slot = 0;

	if (bpf_map_lookup_elem(map(object, "drwa_flows"), &digest, &f) ||
	    bpf_map_lookup_elem(map(object, "drwa_queues"), &slot, &queue))
		return false;
	f.owd_us = f.d.base_us - 1000;
	queue.udp_us = ahead_us();
	bpf_map_update_elem(map(object, "drwa_flows"), &digest, &f, BPF_EXIST);
	bpf_map_update_elem(map(object, "drwa_queues"), &slot, &queue, BPF_EXIST);
	*owd_us = f.owd_us;
	return true;
}

static bool base_rose(struct bpf_object *object, u64 digest, u32 owd_us)
{
	struct drwa_flow f;

	return !bpf_map_lookup_elem(map(object, "drwa_flows"), &digest, &f) &&
	       (s32)(f.owd_us - owd_us) > 0;
}

/* What echoes told */
static u32 echo_us(struct bpf_object *object)
{
	struct drwa_queue queue;
	u32 slot = 0;

	return bpf_map_lookup_elem(map(object, "drwa_queues"), &slot, &queue) ? 0 : queue.echo_us;
}

static void run_other(struct bpf_object *object, int fd, u64 n, u8 *packet,
		      const struct drwa_dev *dev)
{
	u32 flow = DATAGRAMS, told_us = echo_us(object);
	bool known = true, asked = dev->lambda && dev->aqm;
	int queue = NONE;
	size_t bytes = below(4) ? next_datagram(packet, &flow) : build_echo(packet, &known);
	u8 after[PACKET_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, how, .data_in = packet, .data_size_in = bytes,
		    .data_out = after, .data_size_out = sizeof(after), .repeat = 1);

	if (flow < DATAGRAMS && !below(datagrams[flow].lost ? 8 : 512))
		lose_place(object, packet, &datagrams[flow]);
	if (flow < DATAGRAMS && below(2))
		queue = force_drop(object, packet, datagrams[flow].bytes - (bytes - ETHERNET));
	if (bpf_prog_test_run_opts(fd, &how)) {
		perror("BPF_PROG_TEST_RUN");
		exit(2);
	}
	if (memcmp(packet, after, bytes))
		fail("UDP changed", n, packet, after, bytes);
	if ((!known || !dev->echo || !asked) && flow == DATAGRAMS &&
	    echo_us(object) != told_us)
		fail("an echo was believed that nobody sent", n, packet, after, bytes);
	if (flow < DATAGRAMS && flow % 4 == QUIC && is_tunnel(object, packet))
		fail("taken for a tunnel", n, packet, after, bytes);
	if (how.retval == 0xffffffff) {
		if (asked && (queue == LONG || queue == BESIDE) && flow % 4 == QUIC &&
		    !datagrams[flow].lost && was_due(object, packet))
			fail("let through, with a queue", n, packet, after, bytes);
		return;
	}
	if (how.retval != TC_ACT_SHOT || !asked || flow == DATAGRAMS)
		fail("not let through", n, packet, after, bytes);
	if (flow % 4 != QUIC && dev->aqm != DRWA_AQM_TUNNELS)
		fail("a tunnel's packet was dropped", n, packet, after, bytes);
	if (datagrams[flow].lost)
		fail("dropped for another flow", n, packet, after, bytes);
	if (datagrams[flow].bytes <= UDP_FREE)
		fail("a call's packet was dropped", n, packet, after, bytes);
	if (queue == OUTAGE)
		fail("dropped for an outage", n, packet, after, bytes);
	dropped++;
}

static void run(int fd, int flows, u64 n, int way, u8 *packet, size_t bytes, bool on)
{
	u8 after[PACKET_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, how, .data_in = packet, .data_size_in = bytes,
		    .data_out = after, .data_size_out = sizeof(after), .repeat = 1);
	struct seen s;
	bool read;
	const char *wrong = NULL;
	struct known *k;
	size_t i;

	if (bpf_prog_test_run_opts(fd, &how)) {
		/* Of a packet that has no room for what it says it is, the kernel makes none. */
		if (errno == EINVAL)
			return;
		perror("BPF_PROG_TEST_RUN");
		exit(2);
	}
	read = read_packet(&s, packet, bytes, way);
	k = read ? find(&s.key) : NULL;
	if (k && !k->open)
		k = NULL;
	if (how.retval != 0xffffffff)
		fail("not let through", n, packet, after, bytes);
	if (how.data_size_out != bytes)
		fail("another length", n, packet, after, bytes);
	for (i = 0; i < bytes; i++)
		if (packet[i] != after[i] &&
		    (way == IN || !read || i < s.at + 14 || i >= s.at + 18))
			fail("changed elsewhere", n, packet, after, bytes);
	if (!read)
		return;
	if (way == IN) {
		if (k)
			note_answer(k, &s);
		if (k && !anew(flows, k))
			fail("the law remembers what was before the filters were away", n, packet,
			     after, bytes);
		if (k && !on && !forgot(flows, k))
			fail("the law remembers, though nothing is governed", n, packet, after,
			     bytes);
		return;
	}
	wrong = judge(&s, k, packet, after, on);
	if (wrong)
		fail(wrong, n, packet, after, bytes);
	if ((s.flags & SYN) && !(s.flags & (FIN | RST)))
		note_open(&s);
	else if (k && (s.flags & (SYN | RST)) == RST)
		k->open = 0;
}

int main(int argc, char **argv)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct drwa_dev dev = { .l2 = ETHERNET, .lambda = 125 };
	struct bpf_object *object;
	u32 loopback = LOOPBACK;
	u8 packet[PACKET_MAX];
	const struct drwa_counts none = {};
	int fds[2], devs, flows, counts, way, i;
	u32 slot = 0, away = 0, owd_us;
	bool forced;
	struct seen s;
	u64 n, count;
	size_t bytes;

	if (argc != 4) {
		fputs("Usage: fuzz_packets OBJECT SEED COUNT\n", stderr);
		return 2;
	}
	state = strtoull(argv[2], NULL, 10);
	count = strtoull(argv[3], NULL, 10);
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	object = load(argv[1]);
	if (!object)
		return 2;
	fds[IN] = program(object, "drwa_ingress");
	fds[OUT] = program(object, "drwa_egress");
	devs = map(object, "drwa_devs");
	flows = map(object, "drwa_flows");
	counts = map(object, "drwa_counts");
	for (i = 0; i < CONNECTIONS; i++)
		renew(&connections[i], i);
	for (n = 0; n < count; n++) {
		if (!(n % 4096)) {
			dev.lambda = below(4) ? 100 + below(901) : 0;
			dev.aqm = below(DRWA_AQM_TUNNELS + 1);
			/* Nothing here is forwarded. */
			dev.local = below(2);
			/* A tunnel is known by its beginning. */
			if (!(n % GENERATION)) {
				dev.lambda = 125;
				dev.aqm = DRWA_AQM_ON;
				memset(datagrams, 0, sizeof(datagrams));
				generation++;
			}
			dev.echo = below(2) ? ECHO_ID : 0;
			bpf_map_update_elem(devs, &loopback, &dev, BPF_ANY);
			if (!below(4))
				away = 1 + below(256);
		}
		if (!away && !below(4)) {
			run_other(object, fds[IN], n, packet, &dev);
			continue;
		}
		bytes = next_packet(packet, &way);
		if (away) {
			if (--away)
				continue;
			bpf_map_update_elem(counts, &slot, &none, BPF_ANY);
			attached++;
		}
		/* Those of a SYN decide for the connection. */
		if (!below(is_syn(packet) ? 4 : 16))
			mangle_options(packet, bytes);
		else if (!below(8))
			bytes = mangle(packet, bytes);
		if (!below(4) && read_packet(&s, packet, bytes, way))
			force_window(flows, &s.key);
		if (!below(1024) && read_packet(&s, packet, bytes, way))
			force_stranger(flows, &s.key);
		forced = way == IN && !below(4) && read_packet(&s, packet, bytes, way) &&
			 force_base(object, drwa_digest(&s.key), &owd_us);
		run(fds[way], flows, n, way, packet, bytes, dev.lambda);
		if (forced && base_rose(object, drwa_digest(&s.key), owd_us))
			fail("the base of UDP's queue rose while UDP came", n, packet, packet,
			     bytes);
	}
	printf("%llu packets, %llu sent on connections that are governed, %llu windows lowered, "
	       "%llu dropped\n", (unsigned long long)count, (unsigned long long)governed_acks,
	       (unsigned long long)rewritten, (unsigned long long)dropped);
	return 0;
}
