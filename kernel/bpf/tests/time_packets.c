// SPDX-License-Identifier: GPL-2.0-only
/* What a packet costs in the tc programs, by BPF_PROG_TEST_RUN
 *
 * time_packets OBJECT...
 *
 * Of each object, ns for a packet of each kind on a connection that is governed, beyond
 * those of a program that does nothing; and of a program that does one thing alone, which
 * nearly every packet needs. The least of many runs, which a busy machine does not change;
 * windows are not lowered, and of what is sent no timestamp is new. Where the clock counts
 * instructions (lab cost), that is their number.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packets.h"

#define PAYLOAD		1400
#define REPEAT		2000
#define TIMES		50

#define LOCAL		0x0a000001
#define REMOTE		0xc0000201

enum { SYN = 2, ACK = 16, TCP = 6, UDP = 17 };

struct packet {
	u8	bytes[PACKET_MAX];
	u32	n;
};

static struct packet make(bool out, u8 protocol, u8 flags, u32 seq, u32 ack, u32 payload)
{
	static const u8 syn[] = { 2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1, 1, 3, 3, 7 };
	static const u8 other[] = { 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1 };
	u32 options = flags & SYN ? sizeof(syn) : sizeof(other), bytes = 40 + options + payload;
	struct packet p = { .n = ETHERNET + bytes };
	u8 *ip = p.bytes + ETHERNET, *tcp = ip + 20;

	put16(p.bytes + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 2, bytes);
	ip[8] = 64;
	ip[9] = protocol;
	put32(ip + 12, out ? LOCAL : REMOTE);
	put32(ip + 16, out ? REMOTE : LOCAL);
	put16(tcp, out ? 40000 : 443);
	put16(tcp + 2, out ? 443 : 40000);
	put32(tcp + 4, seq);
	put32(tcp + 8, ack);
	tcp[12] = (20 + options) / 4 << 4;
	tcp[13] = flags;
	put16(tcp + 14, 512);
	memcpy(tcp + 20, flags & SYN ? syn : other, options);
	return p;
}

static u32 run(int fd, const struct packet *p, int repeat)
{
	u8 after[PACKET_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, how, .data_in = p->bytes, .data_size_in = p->n,
		    .data_out = after, .data_size_out = sizeof(after), .repeat = repeat);

	if (bpf_prog_test_run_opts(fd, &how)) {
		perror("BPF_PROG_TEST_RUN");
		exit(2);
	}
	return how.duration;
}

static u32 least(int fd, struct packet p)
{
	u32 ns, found = ~0U;
	int i;

	for (i = 0; i < TIMES; i++) {
		ns = run(fd, &p, REPEAT);
		if (ns < found)
			found = ns;
	}
	return found;
}

/* Instructions, of which one of a 64 bit constant takes two places */
#define MOVE(to, value)						\
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value) }
#define STACK(to, at)						\
	{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = BPF_REG_10 },	\
	{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = -(at) }
#define LONG(to, kind, value)					\
	{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = (to), .src_reg = (kind),		\
	  .imm = (u32)(value) }, { .imm = (u64)(value) >> 32 }
#define STORE(size, from, at)					\
	{ .code = BPF_STX | BPF_MEM | (size), .dst_reg = BPF_REG_10, .src_reg = (from),		\
	  .off = -(at) }
#define CALL(helper)	{ .code = BPF_JMP | BPF_CALL, .imm = (helper) }
#define END		{ .code = BPF_JMP | BPF_EXIT }
#define LOOK_UP(map, size, key)					\
	LONG(BPF_REG_1, 0, key), STORE(size, BPF_REG_1, 8), LONG(BPF_REG_1, BPF_PSEUDO_MAP_FD, map), \
	STACK(BPF_REG_2, 8), CALL(BPF_FUNC_map_lookup_elem), MOVE(BPF_REG_0, -1), END
#define CODE_MAX	16

/* What drwa.bpf.c reads at once of IPv4's and TCP's headers */
#define HEADERS		52

static int make_program(const struct bpf_insn *code)
{
	size_t n = 0;

	while (code[n++].code != (BPF_JMP | BPF_EXIT))
		;
	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, NULL, "GPL", code, n, NULL);
}

static int nothing(void)
{
	const struct bpf_insn code[] = { MOVE(BPF_REG_0, -1), END };

	return make_program(code);
}

/* @key: of the connection that is governed */
static void time_parts(struct bpf_object *object, const struct drwa_key *key, struct packet p,
		       u32 none)
{
	int devs = bpf_object__find_map_fd_by_name(object, "drwa_devs");
	int counts = bpf_object__find_map_fd_by_name(object, "drwa_counts");
	int flows = bpf_object__find_map_fd_by_name(object, "drwa_flows");
	const struct {
		const char	*what;
		struct bpf_insn	code[CODE_MAX];
	} parts[] = {
		{ "interface", { LOOK_UP(devs, BPF_W, LOOPBACK) } },
		{ "array", { LOOK_UP(counts, BPF_W, 0) } },
		{ "headers", { MOVE(BPF_REG_2, ETHERNET), STACK(BPF_REG_3, HEADERS + 4),
			       MOVE(BPF_REG_4, HEADERS), CALL(BPF_FUNC_skb_load_bytes),
			       MOVE(BPF_REG_0, -1), END } },
		{ "flow", { LOOK_UP(flows, BPF_DW, drwa_digest(key)) } },
		{ "clock", { CALL(BPF_FUNC_ktime_get_ns), MOVE(BPF_REG_0, -1), END } },
	};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		printf("%s %s %u", i ? "," : "parts:", parts[i].what,
		       least(make_program(parts[i].code), p) - none);
	putchar('\n');
}

static int time_object(const char *path)
{
	const struct drwa_key key = {
		.remote = { htonl(REMOTE) }, .remote_port = htons(443),
		.local = { htonl(LOCAL) }, .local_port = htons(40000),
	};
	struct drwa_dev dev = { .l2 = ETHERNET, .lambda = 125 };
	struct packet syn = make(true, TCP, SYN, 1000, 0, 0);
	struct packet answer = make(false, TCP, SYN | ACK, 5000, 1001, 0);
	struct packet ack = make(true, TCP, ACK, 1001, 5001, 0);
	struct bpf_object *object = load(path);
	u32 loopback = LOOPBACK, none;
	int in, out, devs;

	if (!object)
		return 2;
	in = program(object, "drwa_ingress");
	out = program(object, "drwa_egress");
	devs = bpf_object__find_map_fd_by_name(object, "drwa_devs");
	bpf_map_update_elem(devs, &loopback, &dev, BPF_ANY);
	run(out, &syn, 1);
	run(in, &answer, 1);
	run(out, &ack, 1);
	none = least(nothing(), ack);
	printf("%s: data in %u, ACK out %u, ACK in %u, data out %u, UDP in %u", path,
	       least(in, make(false, TCP, ACK, 5001, 1001, PAYLOAD)) - none, least(out, ack) - none,
	       least(in, make(false, TCP, ACK, 5001 + PAYLOAD, 1001, 0)) - none,
	       least(out, make(true, TCP, ACK, 1001, 5001, PAYLOAD)) - none,
	       least(in, make(false, UDP, 0, 0, 0, PAYLOAD)) - none);
	dev.aqm = DRWA_AQM_ON;
	bpf_map_update_elem(devs, &loopback, &dev, BPF_ANY);
	printf(", held in %u\n", least(in, make(false, UDP, 0, 0, 0, PAYLOAD)) - none);
	time_parts(object, &key, ack, none);
	bpf_object__close(object);
	return 0;
}

int main(int argc, char **argv)
{
	int i, failed = argc < 2 ? 2 : 0;

	if (failed)
		fputs("Usage: time_packets OBJECT...\n", stderr);
	for (i = 1; i < argc && !failed; i++)
		failed = time_object(argv[i]);
	return failed;
}
