// SPDX-License-Identifier: GPL-2.0-only
/* The programs of drwa.bpf.c in the form that the loader of com.android.tethering takes
 *
 * The system server attaches them, as it does those of 464xlat. No program has to load: a
 * kernel that refuses one leaves DRWA idle.
 */
#include <linux/types.h>
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

/* The system server writes all but the connections. The macros of the releases differ in
 * their arguments, the structure does not.
 */
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
	DEFINE_BPF_PROG_EXT("schedcls/" #name "/drwa", AID_ROOT, AID_SYSTEM,	\
			    drwa_ ## name, KVER_4_14, KVER_INF,			\
			    BPFLOADER_MIN_VER, BPFLOADER_MAX_VER, OPTIONAL, "",	\
			    "", LOAD_ON_ENG, LOAD_ON_USER, LOAD_ON_USERDEBUG)

#include "drwa.bpf.c"
