// SPDX-License-Identifier: GPL-2.0-only
/* Given packets through the tc programs, by BPF_PROG_TEST_RUN, and what is known then
 *
 * exchanges OBJECT
 *
 * A line for each case: its name and a number, as test_tc.py has them.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "packets.h"

enum { SYN = 2, ACK = 16, TCP = 6 };

#define OURS	1000
#define THEIRS	5000
#define PAYLOAD	600
#define SHORT	500
#define RTT_MS	500
#define ROUND_MS	(RTT_MS + 50)

struct packet {
	u8	bytes[PACKET_MAX];
	u32	n;
};

/* Each case has a connection of its own, and what came on it. */
static u16 port = 40000;
static u32 came;
static int ingress, egress;

static void next_connection(void)
{
	port++;
	came = 0;
}

static struct packet make(bool out, const void *payload, u32 n)
{
	struct packet p = { .n = ETHERNET + 20 + n };
	u8 *ip = p.bytes + ETHERNET;

	put16(p.bytes + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 2, 20 + n);
	ip[8] = 64;
	ip[9] = TCP;
	put32(ip + 12, out ? 0x0a000001 : 0xc0000201);
	put32(ip + 16, out ? 0xc0000201 : 0x0a000001);
	memcpy(ip + 20, payload, n);
	put16(ip + 20, out ? port : 3000);
	put16(ip + 22, out ? 3000 : port);
	return p;
}

static void run(bool out, const struct packet *p)
{
	u8 after[PACKET_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, how, .data_in = p->bytes, .data_size_in = p->n,
		    .data_out = after, .data_size_out = sizeof(after), .repeat = 1);

	if (bpf_prog_test_run_opts(out ? egress : ingress, &how)) {
		perror("BPF_PROG_TEST_RUN");
		exit(2);
	}
}

/* With timestamps, and with @payload bytes of data */
static void segment_that_echoes(bool out, u8 flags, u32 tsval, u32 tsecr, u32 payload)
{
	u8 tcp[32 + PAYLOAD] = { [12] = 32 / 4 << 4, [13] = flags, [20] = 1, 1, 8, 10 };
	bool syn = flags & SYN;
	struct packet p;

	put32(tcp + 4, (out ? OURS : THEIRS + came) + !syn);
	if (flags & ACK) {
		put32(tcp + 8, (out ? THEIRS + came : OURS) + 1);
		put32(tcp + 28, tsecr);
	}
	put16(tcp + 14, 0xffff);
	put32(tcp + 24, tsval);
	p = make(out, tcp, 32 + payload);
	run(out, &p);
	came += payload;
}

static void segment(bool out, u8 flags, u32 tsval, u32 payload)
{
	segment_that_echoes(out, flags, tsval, 1, payload);
}

static u64 digest_of_port(void)
{
	const struct drwa_key key = {
		.remote = { htonl(0xc0000201) },
		.local = { htonl(0x0a000001) },
		.remote_port = htons(3000),
		.local_port = htons(port),
	};

	return drwa_digest(&key);
}

/* What is known of the connection at @port */
static struct drwa_flow known(int flows)
{
	u64 digest = digest_of_port();
	struct drwa_flow f;

	if (bpf_map_lookup_elem(flows, &digest, &f) || !f.answered) {
		fputs("no connection\n", stderr);
		exit(2);
	}
	return f;
}

static u32 handshake_us(int flows, bool passive, int times)
{
	next_connection();
	while (times--) {
		segment(true, passive ? SYN | ACK : SYN, 1, 0);
		usleep(2000);
	}
	segment(false, passive ? ACK : SYN | ACK, 777, 0);
	return known(flows).d.rtt_us;
}

/* A connection of RTT_MS, and nothing known of its queue */
static void connect_after_rtt(int queues)
{
	static const struct drwa_queue none;
	u32 place = 0;

	next_connection();
	bpf_map_update_elem(queues, &place, &none, BPF_ANY);
	segment(true, SYN, 1, 0);
	usleep(RTT_MS * 1000);
	segment(false, SYN | ACK, 777, 0);
}

static u32 delay_us(int queues)
{
	struct drwa_queue queue;
	u32 place = 0;

	bpf_map_lookup_elem(queues, &place, &queue);
	return queue.delay_us;
}

/* What a first segment tells of UDP's queue that comes @waits_ms after a handshake of RTT_MS, by a
 * clock that counted @ticks meanwhile
 */
static u32 told_us(int queues, u32 waits_ms, u32 ticks)
{
	connect_after_rtt(queues);
	usleep(waits_ms * 1000);
	segment(false, ACK, 777 + ticks, PAYLOAD);
	return delay_us(queues);
}

/* Likewise a second one, after a round of ROUND_MS without a queue: it answers what was sent then */
static u32 told_later_us(int queues, u32 waits_ms, u32 ticks)
{
	connect_after_rtt(queues);
	usleep(ROUND_MS * 1000);
	segment(false, ACK, 777 + ROUND_MS, PAYLOAD);
	segment(true, ACK, 101, 0);
	usleep(waits_ms * 1000);
	segment_that_echoes(false, ACK, 777 + ROUND_MS + ticks, 101, PAYLOAD);
	return delay_us(queues);
}

static u32 clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000u + now.tv_nsec / 1000;
}

/* By how much the RTT of an echoed timestamp is less than it can have been, at least and at most */
static void shorter_us(int flows, s32 *least, s32 *most)
{
	u32 begun_us, sent_us, came_us, end_us, rtt_us;

	next_connection();
	segment(true, SYN, 1, 0);
	usleep(100000);
	segment(false, SYN | ACK, 777, 0);
	begun_us = clock_us();
	segment(true, ACK, 101, 0);
	sent_us = clock_us();
	usleep(20000);
	came_us = clock_us();
	segment_that_echoes(false, ACK, 797, 101, PAYLOAD);
	end_us = clock_us();
	rtt_us = known(flows).d.rtt_us;
	*least = came_us - sent_us - rtt_us;
	*most = end_us - begun_us - rtt_us;
}

/* The connection ends on a client, and its full segment is known, which is below the default of
 * RFC 9293, 3.7.1.
 */
static void make_client(int flows)
{
	u64 digest = digest_of_port();
	struct drwa_flow f;

	for (int n = 0; n < 2; n++) {
		segment(false, ACK, 778, SHORT);
		segment(true, ACK, 3, 0);
	}
	f = known(flows);
	f.forwarded = 1;
	bpf_map_update_elem(flows, &digest, &f, BPF_ANY);
}

/* What an ACK is taken to wait, or a client to be away, that comes 20 ms after so many segments */
static u32 awaited_us(int flows, bool client, int segments)
{
	next_connection();
	segment(true, SYN, 1, 0);
	segment(false, SYN | ACK, 777, 0);
	segment(true, ACK, 2, 0);
	if (client)
		make_client(flows);
	while (segments--)
		segment(false, ACK, 779, client ? SHORT : PAYLOAD);
	usleep(20000);
	segment(true, ACK, 23, 0);
	return known(flows).lan_us;
}

int main(int argc, char **argv)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	const struct drwa_dev dev = { .l2 = ETHERNET, .lambda = 125, .aqm = DRWA_AQM_ON };
	struct bpf_object *object;
	u32 loopback = LOOPBACK;
	s32 least_us, most_us;
	int flows, queues;

	if (argc != 2) {
		fputs("Usage: exchanges OBJECT\n", stderr);
		return 2;
	}
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	object = load(argv[1]);
	if (!object)
		return 2;
	ingress = program(object, "drwa_ingress");
	egress = program(object, "drwa_egress");
	flows = bpf_object__find_map_fd_by_name(object, "drwa_flows");
	queues = bpf_object__find_map_fd_by_name(object, "drwa_queues");
	bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "drwa_devs"), &loopback, &dev,
			    BPF_ANY);
	for (int passive = 0; passive < 2; passive++)
		for (int times = 1; times < 4; times++)
			printf("%s %d: %u\n", passive ? "SYN ACK" : "SYN", times,
			       handshake_us(flows, passive, times));
	shorter_us(flows, &least_us, &most_us);
	printf("shorter at least: %d\nshorter at most: %d\n", least_us, most_us);
	printf("ACK of two: %u\nACK of five: %u\n", awaited_us(flows, false, 2),
	       awaited_us(flows, false, 5));
	printf("ACK of one: %u\nACK of one in two: %u\n", awaited_us(flows, true, 1),
	       awaited_us(flows, true, 2));
	printf("queue: %u\n", told_us(queues, 200, 175));
	printf("ticks of 4 ms: %u\n", told_us(queues, 1200, 300));
	printf("queue that grows: %u\n", told_later_us(queues, 1200, 500));
	return 0;
}
