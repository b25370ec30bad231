// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hostile sender for tcp_drwa.sh: it speaks TCP over a packet socket, just
 * enough of it to serve a download, and lies as it is told.
 *
 *	tcp_drwa_peer PEER DEVICE CLIENT ADDRESS SECONDS LIE
 *
 * PEER and CLIENT are processes, which stand for their name spaces. PEER's has
 * DEVICE without an address, so that its kernel leaves ADDRESS to this program.
 * At the end it prints what the client, a plain socket, took in and the most
 * memory that it ever held:
 *
 *	received=8200000 rcvbuf_max=366592 rmem_max=180000
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sock_diag.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_drwa_common.h"

#ifndef SO_MEMINFO
#define SO_MEMINFO	55
#endif

enum {
	PORT = 5002,
	MSS = 1448,
	TICK_US = 1000,
	/* Silence after which everything unacknowledged is sent again */
	RESEND_US = 300000,
	/* In flight at most, whatever window is offered */
	MAX_FLIGHT = 2 << 20,
	MAX_SEGMENTS = 400,
	/* All that is sent where the client closes */
	BEFORE_FIN = 100 * MSS,
	FIN_US = 500000,
	CHUNK = 256 << 10,
};

static const char * const lies[] = {
	"nothing", "tsecr_small", "tsecr_large", "tsecr_zero", "tsecr_wrap",
	"tsecr_random", "tsval_constant", "tsval_backwards", "tsval_jumps",
	"bursts", "tiny", "overrun", "holes", "unread", "fin_with_ack", NULL
};

enum lie {
	NOTHING, TSECR_SMALL, TSECR_LARGE, TSECR_ZERO, TSECR_WRAP,
	TSECR_RANDOM, TSVAL_CONSTANT, TSVAL_BACKWARDS, TSVAL_JUMPS,
	BURSTS, TINY, OVERRUN, HOLES, UNREAD, FIN_WITH_ACK
};

struct segment {
	struct iphdr ip;
	struct tcphdr tcp;
	uint8_t options[20];
	uint8_t data[MSS];
};

/* Wraps as a signed number soon. */
#define FIRST_SEQ	0x7ffffff0U

static enum lie lie;
static int wire, client;
static struct sockaddr_ll link_to;
static in_addr_t own, other;

/* The peer's connection */
static uint16_t other_port;
static uint32_t snd_una, snd_nxt, rcv_nxt, window, other_ts;
static unsigned int wscale;
static uint64_t progress_us;
static bool connected, closing, closed;

static char chunk[CHUNK];
static uint64_t received;
static uint32_t rcvbuf_max, rmem_max;

/* xorshift32, of Marsaglia's "Xorshift RNGs" (2003); the same in every run */
static uint32_t random32(void)
{
	static uint32_t state = 20121114;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static uint32_t tsecr(void)
{
	static const uint32_t wraps[] = { 0x7fffffff, 0x80000000, 0xffffffff, 1 };

	switch (lie) {
	case TSECR_SMALL:
	case UNREAD:
		return other_ts - 60000;
	case TSECR_LARGE:
		return other_ts + 60000;
	case TSECR_ZERO:
		return 0;
	case TSECR_WRAP:
		return other_ts + wraps[random32() % 4];
	case TSECR_RANDOM:
		return random32();
	default:
		return other_ts;
	}
}

static uint32_t tsval(void)
{
	static uint32_t sent;
	uint32_t now_ms = now_us() / 1000;

	switch (lie) {
	case TSVAL_CONSTANT:
		return 12345;
	case TSVAL_BACKWARDS:
		return now_ms - 3 * sent++;
	case TSVAL_JUMPS:
		return sent++ << 30;
	default:
		return now_ms;
	}
}

static uint32_t sum(const void *data, size_t len, uint32_t start)
{
	const uint8_t *byte = data;
	size_t i;

	for (i = 0; i < len; i++)
		start += i % 2 ? byte[i] : byte[i] << 8;
	return start;
}

static uint16_t folded(uint32_t total)
{
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return htons(~total);
}

static void put_timestamps(uint8_t *options, uint32_t echo)
{
	uint32_t words[] = { htonl(tsval()), htonl(echo) };

	options[0] = TCPOPT_NOP;
	options[1] = TCPOPT_NOP;
	options[2] = TCPOPT_TIMESTAMP;
	options[3] = TCPOLEN_TIMESTAMP;
	memcpy(options + 4, words, sizeof(words));
}

static void transmit(uint32_t seq, bool syn, size_t len)
{
	static const uint8_t syn_options[] = {
		TCPOPT_MAXSEG, TCPOLEN_MAXSEG, 0x05, 0xb4,
		TCPOPT_NOP, TCPOPT_WINDOW, TCPOLEN_WINDOW, 7,
	};
	size_t options = 12 + (syn ? sizeof(syn_options) : 0);
	size_t tcp_len = sizeof(struct tcphdr) + options + len;
	struct segment s = {
		.ip = {
			.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_TCP,
			.tot_len = htons(sizeof(s.ip) + tcp_len),
			.saddr = own, .daddr = other,
		},
		.tcp = {
			.source = htons(PORT), .dest = other_port,
			.seq = htonl(seq), .ack_seq = htonl(rcv_nxt),
			.doff = (sizeof(struct tcphdr) + options) / 4,
			.syn = syn, .fin = closing, .ack = 1, .window = htons(65535),
		},
	};
	uint32_t pseudo;

	/* The handshake is honest, or there would be no connection. */
	put_timestamps(s.options, syn ? other_ts : tsecr());
	if (syn)
		memcpy(s.options + 12, syn_options, sizeof(syn_options));
	s.ip.check = folded(sum(&s.ip, sizeof(s.ip), 0));
	pseudo = sum(&s.ip.saddr, 8, IPPROTO_TCP + tcp_len);
	/* Data, all zero, follows the options at once and adds nothing. */
	s.tcp.check = folded(sum(&s.tcp, tcp_len - len, pseudo));
	/* A full device queue drops it, as the network may. */
	(void)!sendto(wire, &s, sizeof(s.ip) + tcp_len, 0, (void *)&link_to, sizeof(link_to));
}

static void parse_options(const uint8_t *option, size_t len)
{
	uint32_t word;

	while (len > 1 && *option != TCPOPT_EOL) {
		size_t size = *option == TCPOPT_NOP ? 1 : option[1];

		if (!size || size > len)
			return;
		if (*option == TCPOPT_WINDOW)
			wscale = option[2];
		if (*option == TCPOPT_TIMESTAMP) {
			memcpy(&word, option + 2, sizeof(word));
			other_ts = ntohl(word);
		}
		option += size;
		len -= size;
	}
}

static void take(const struct segment *s, size_t len)
{
	uint32_t ack = ntohl(s->tcp.ack_seq);

	if (len < sizeof(s->ip) + sizeof(s->tcp) || s->ip.protocol != IPPROTO_TCP ||
	    s->ip.daddr != own || s->tcp.dest != htons(PORT))
		return;
	parse_options(s->options, s->tcp.doff * 4 - sizeof(s->tcp));
	if (s->tcp.syn) {
		other = s->ip.saddr;
		other_port = s->tcp.source;
		rcv_nxt = ntohl(s->tcp.seq) + 1;
		snd_una = FIRST_SEQ;
		snd_nxt = snd_una + 1;
		transmit(snd_una, true, 0);
		return;
	}
	if (s->tcp.rst)
		return;
	/* One segment answers it, and ends the orphan. */
	if (s->tcp.fin) {
		rcv_nxt = ntohl(s->tcp.seq) + 1;
		snd_nxt += !closing;
		closing = true;
		transmit(snd_nxt - 1, false, 0);
	}
	closed = closing && ack == snd_nxt;
	window = ntohs(s->tcp.window) << wscale;
	if ((int32_t)(ack - snd_una) > 0) {
		connected = true;
		snd_una = ack;
		if ((int32_t)(snd_nxt - snd_una) < 0)
			snd_nxt = snd_una;
		progress_us = now_us();
	}
}

static void read_wire(void)
{
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	struct segment s;
	ssize_t n;

	while ((n = recvfrom(wire, &s, sizeof(s), 0, (void *)&from, &len)) > 0) {
		if (from.sll_pkttype == PACKET_OUTGOING)
			continue;
		link_to.sll_halen = from.sll_halen;
		memcpy(link_to.sll_addr, from.sll_addr, sizeof(link_to.sll_addr));
		take(&s, n);
	}
}

static void send_data(void)
{
	uint32_t size = lie == TINY ? 1 : MSS;
	uint32_t limit = MAX_FLIGHT;
	uint64_t now = now_us();

	if (!connected)
		return;
	if (lie != OVERRUN && lie != UNREAD && window < limit)
		limit = window;
	if (size * MAX_SEGMENTS < limit)
		limit = size * MAX_SEGMENTS;
	if (lie == FIN_WITH_ACK && FIRST_SEQ + BEFORE_FIN - snd_una < limit)
		limit = FIRST_SEQ + BEFORE_FIN - snd_una;
	if (now - progress_us > RESEND_US) {
		snd_nxt = snd_una;
		progress_us = now;
	}
	/* All at the beginning of each half second, then silence */
	if (lie == BURSTS && now % 500000 > 5000)
		return;
	while (snd_nxt + size - snd_una <= limit) {
		if (lie != HOLES || random32() % 2 || snd_nxt == snd_una)
			transmit(snd_nxt, false, size);
		snd_nxt += size;
	}
}

static void read_client(void)
{
	uint32_t mem[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(mem);
	ssize_t n;

	if (!getsockopt(client, SOL_SOCKET, SO_MEMINFO, mem, &len)) {
		if (mem[SK_MEMINFO_RCVBUF] > rcvbuf_max)
			rcvbuf_max = mem[SK_MEMINFO_RCVBUF];
		if (mem[SK_MEMINFO_RMEM_ALLOC] > rmem_max)
			rmem_max = mem[SK_MEMINFO_RMEM_ALLOC];
	}
	/* A stalled application, too, keeps no more than its buffer. */
	if (lie == UNREAD)
		return;
	while ((n = recv(client, chunk, CHUNK, 0)) > 0)
		received += n;
	if (n < 0 && errno != EAGAIN)
		err(1, "client");
}

static void open_wire(const char *device)
{
	link_to = (struct sockaddr_ll){
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = if_nametoindex(device),
	};
	wire = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_IP));
	if (wire < 0 || bind(wire, (void *)&link_to, sizeof(link_to)))
		err(1, "%s", device);
}

static void open_client(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = own,
	};

	client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (client < 0 || (connect(client, (void *)&to, sizeof(to)) && errno != EINPROGRESS))
		err(1, "connect");
}

/* With nothing unread, or it would reset the connection */
static void close_client(void)
{
	uint64_t end_us = now_us() + FIN_US;

	read_client();
	close(client);
	while (!closed && now_us() < end_us) {
		struct pollfd fd = { .fd = wire, .events = POLLIN };

		if (poll(&fd, 1, TICK_US / 1000) < 0)
			err(1, "poll");
		read_wire();
	}
	if (!closed)
		errx(1, "the orphan has not answered");
}

int main(int argc, char *argv[])
{
	uint64_t end_us;

	if (argc != 7)
		errx(2, "usage: PEER DEVICE CLIENT ADDRESS SECONDS LIE");
	while (lies[lie] && strcmp(lies[lie], argv[6]))
		lie++;
	own = inet_addr(argv[4]);
	if (!lies[lie] || own == INADDR_NONE)
		errx(2, "%s, %s: no such address or lie", argv[4], argv[6]);
	enter(argv[1]);
	open_wire(argv[2]);
	enter(argv[3]);
	open_client();

	end_us = now_us() + atof(argv[5]) * 1e6;
	while (now_us() < end_us) {
		struct pollfd fds[] = {
			{ .fd = wire, .events = POLLIN },
			{ .fd = lie == UNREAD ? -1 : client, .events = POLLIN },
		};

		if (poll(fds, 2, TICK_US / 1000) < 0)
			err(1, "poll");
		read_wire();
		if (connected)
			read_client();
		send_data();
	}
	if (!connected)
		errx(1, "no connection");
	if (lie == FIN_WITH_ACK)
		close_client();
	printf("received=%llu rcvbuf_max=%u rmem_max=%u\n", (unsigned long long)received,
	       rcvbuf_max, rmem_max);
	return 0;
}
