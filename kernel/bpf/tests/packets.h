/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets for BPF_PROG_TEST_RUN of the tc programs, and the programs */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
#define static_assert	_Static_assert
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#include "drwa.h"

#define ETHERNET	14
#define PACKET_MAX	1600
#define LOOPBACK	1	/* the interface of a test run */

static void put16(u8 *at, u32 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void put32(u8 *at, u32 value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

/* NULL after a complaint of libbpf's */
static struct bpf_object *load(const char *path)
{
	struct bpf_object *object = bpf_object__open(path);
	struct bpf_program *each;

	if (!object)
		return NULL;
	bpf_object__for_each_program(each, object)
		bpf_program__set_type(each, BPF_PROG_TYPE_SCHED_CLS);
	return bpf_object__load(object) ? NULL : object;
}

static int program(struct bpf_object *object, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(object, name));
}
