// SPDX-License-Identifier: GPL-2.0-only
/* The programs of drwa.bpf.c in the forms that Android's loaders take
 *
 * The system server attaches them, as it does those of 464xlat, or netd. No program has to
 * load: a kernel that refuses one leaves DRWA idle.
 *
 * The module's loaders pin them in one place. Until Android 16 QPR1 it is what the loader
 * has for the object, and an object that names one ends the boot. Since 16 QPR2 the object
 * has to.
 */
#include <linux/types.h>

#ifdef ENABLE_LIBBPF	/* Soong's libbpf_prog, for the platform's loader after Android 16. */

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* The pins are named by the functions. Behind "tc/", libbpf would say where it attaches
 * them, for which older kernels have no field.
 */
#define DRWA_PROG(name)	SEC("tc") int schedcls_ ## name ## _drwa

#else

/* What the releases' headers ask for: the first loader that takes the object, that of
 * Android 13, in the words of 15 to 16 QPR2 and of 17; and how the pins' names begin.
 */
#define BPFLOADER_MIN_VER	BPFLOADER_MAINLINE_T_VERSION
#define NETBPFLOAD_MINAPI_VER	NETBPFLOAD_T_VER
#define BPF_OBJ_NAME		"drwa"
#define DEFAULT_BPF_PIN_SUBDIR	"net_shared"
#include <bpf_helpers.h>

/* Of these, each release's header has others. */
#undef READ_ONCE
#undef WRITE_ONCE

#define DRWA_HELPER(result, name, ...)	\
	static result (*call_ ## name)(__VA_ARGS__) = (void *)BPF_FUNC_ ## name

DRWA_HELPER(long, skb_load_bytes, const void *skb, u32 offset, void *to, u32 len);
DRWA_HELPER(long, skb_store_bytes, void *skb, u32 offset, const void *from, u32 len, u64 flags);
DRWA_HELPER(long, l4_csum_replace, void *skb, u32 offset, u64 from, u64 to, u64 flags);

#define bpf_skb_load_bytes	call_skb_load_bytes
#define bpf_skb_store_bytes	call_skb_store_bytes
#define bpf_l4_csum_replace	call_l4_csum_replace

#define bpf_map_lookup_elem	bpf_map_lookup_elem_unsafe
#define bpf_map_update_elem	bpf_map_update_elem_unsafe
#define bpf_map_delete_elem	bpf_map_delete_elem_unsafe

#define bpf_htons(x)	__builtin_bswap16(x)
#define bpf_htonl(x)	__builtin_bswap32(x)
#define bpf_ntohs(x)	__builtin_bswap16(x)
#define bpf_ntohl(x)	__builtin_bswap32(x)

/* The system server writes all but the connections. */
#ifdef BPF_PROG_TYPE_schedcls	/* The header of Android 16 QPR2 and later. */

#define DRWA_MAP(name, kind, id, what, entries)				\
	DEFINE_BPF_MAP_GRW(name, kind, id, what, entries, AID_SYSTEM)

/* libbpf, by which that loader takes the others, knows no optional program: the object is. */
#define DRWA_PROG(name)								\
	DEFINE_BPF_PROG_KVER(schedcls, name ## _drwa, , AID_SYSTEM, 4_14)

#else

/* Android 14 has no such name. */
#ifndef BPFLOADER_MAINLINE_T_VERSION
#define BPFLOADER_MAINLINE_T_VERSION	BPFLOADER_T_VERSION
#endif

/* The macro of 14, in which that is no number yet, takes no array that is written. */
#define DRWA_MAP(name, kind, id, what, entries)				\
	const struct bpf_map_def SECTION("maps") name = {		\
		.type = BPF_MAP_TYPE_ ## kind,				\
		.key_size = sizeof(id),					\
		.value_size = sizeof(what),				\
		.max_entries = entries,					\
		.uid = AID_ROOT,					\
		.gid = AID_SYSTEM,					\
		.mode = 0660,						\
		.bpfloader_min_ver = BPFLOADER_MIN_VER,			\
		.bpfloader_max_ver = BPFLOADER_MAX_VER,			\
		.min_kver = KVER_4_14.kver,				\
		.max_kver = KVER_INF.kver,				\
	};								\
	BPF_ANNOTATE_KV_PAIR(name, id, what)

#define DRWA_PROG(name)								\
	DEFINE_OPTIONAL_BPF_PROG_KVER("schedcls/" #name "_drwa", AID_ROOT,	\
				      AID_SYSTEM, drwa_ ## name, KVER_4_14)

#endif
#endif

#include "drwa.bpf.c"
