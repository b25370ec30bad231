// SPDX-License-Identifier: GPL-2.0-only
/* The programs of drwa.bpf.c in the form that the loader of com.android.tethering takes
 *
 * No program has to load: a kernel that refuses one leaves DRWA idle. A map that cannot
 * be made stops the boot since Android 15, so there is none below 5.15, which is the first
 * of Android's kernels whose bpf_setsockopt() knows TCP_WINDOW_CLAMP.
 */
#include <linux/types.h>
#include <bpf_helpers.h>

/* Of these, each release's header has others. */
#undef READ_ONCE
#undef WRITE_ONCE

#define DRWA_HELPER(result, name, ...)	\
	static result (*call_ ## name)(__VA_ARGS__) = (void *)BPF_FUNC_ ## name

DRWA_HELPER(long, skb_load_bytes, const void *skb, u32 offset, void *to, u32 len);
DRWA_HELPER(struct bpf_sock *, sk_fullsock, struct bpf_sock *sk);
DRWA_HELPER(struct bpf_tcp_sock *, tcp_sock, struct bpf_sock *sk);
DRWA_HELPER(long, load_hdr_opt, struct bpf_sock_ops *ops, void *opt, u32 len, u64 flags);
DRWA_HELPER(long, sock_ops_cb_flags_set, struct bpf_sock_ops *ops, int flags);
DRWA_HELPER(long, getsockopt, void *ops, int level, int name, void *val, int len);
DRWA_HELPER(long, setsockopt, void *ops, int level, int name, void *val, int len);

#define bpf_skb_load_bytes		call_skb_load_bytes
#define bpf_sk_fullsock			call_sk_fullsock
/* There is a structure of this name, too. */
#define bpf_tcp_sock(sk)		call_tcp_sock(sk)
#define bpf_load_hdr_opt		call_load_hdr_opt
#define bpf_sock_ops_cb_flags_set	call_sock_ops_cb_flags_set
#define bpf_getsockopt			call_getsockopt
#define bpf_setsockopt			call_setsockopt

#define bpf_map_lookup_elem	bpf_map_lookup_elem_unsafe
#define bpf_map_update_elem	bpf_map_update_elem_unsafe
#define bpf_map_delete_elem	bpf_map_delete_elem_unsafe

#define bpf_htons(x)	__builtin_bswap16(x)
#define bpf_htonl(x)	__builtin_bswap32(x)
#define bpf_ntohl(x)	__builtin_bswap32(x)

/* The system server has this group; netd is root without the right to pass over modes. */
#define DRWA_MODE_drwa_devs	0060
#define DRWA_MODE_drwa_queues	0040
#define DRWA_MODE_drwa_stats	0040
#define DRWA_MODE_drwa_socks	0040
#define DRWA_MODE_drwa_none	0000
#define DRWA_MODE_drwa_attached	0640

/* The macros of the releases differ in their arguments, the structure does not. */
#define DRWA_LABELLED_MAP(name, kind, id, what, entries, label)	\
	const struct bpf_map_def SECTION("maps") name = {		\
		.type = BPF_MAP_TYPE_ ## kind,				\
		.key_size = sizeof(id),					\
		.value_size = sizeof(what),				\
		.max_entries = entries,					\
		.uid = AID_ROOT,					\
		.gid = AID_NET_BW_ACCT,					\
		.mode = DRWA_MODE_ ## name,				\
		.bpfloader_min_ver = BPFLOADER_MIN_VER,			\
		.bpfloader_max_ver = BPFLOADER_MAX_VER,			\
		.min_kver = KVER_5_15.kver,				\
		.max_kver = KVER_INF.kver,				\
		.selinux_context = label,				\
	};								\
	BPF_ANNOTATE_KV_PAIR(name, id, what)

#define DRWA_MAP(name, kind, id, what, entries)	\
	DRWA_LABELLED_MAP(name, kind, id, what, entries, "")

/* What follows a $ is not in the name that it is pinned by. It has to be beyond the first
 * 15 characters, which the kernel gets as a name, and refuses a $ in.
 */
#define DRWA_HOOK_drwa_ingress		"cgroupskb/ingress/drwa"
#define DRWA_HOOK_drwa_sockops		"sockops/drwa/rounds$6_1"
#define DRWA_HOOK_drwa_sockops_5_15	"sockops/drwa/rounds$5_15"
#define DRWA_HOOK_drwa_setsockopt	"setsockopt/drwa"
#define DRWA_HOOK_drwa_release		"cgroupsockrelease/drwa"

#define DRWA_SINCE_drwa_ingress		KVER_5_15
#define DRWA_SINCE_drwa_sockops		KVER(6, 1, 0)
#define DRWA_SINCE_drwa_sockops_5_15	KVER_5_15
#define DRWA_SINCE_drwa_setsockopt	KVER_5_15
#define DRWA_SINCE_drwa_release		KVER_5_15

#define DRWA_PROG_BEFORE(name, before)						\
	DEFINE_BPF_PROG_EXT(DRWA_HOOK_ ## name, AID_ROOT, AID_ROOT, name,	\
			    DRWA_SINCE_ ## name, before, BPFLOADER_MIN_VER,	\
			    BPFLOADER_MAX_VER, OPTIONAL, "", "", LOAD_ON_ENG,	\
			    LOAD_ON_USER, LOAD_ON_USERDEBUG)
#define DRWA_PROG(name, hook)	DRWA_PROG_BEFORE(name, KVER_INF)

/* 1 once all programs are attached, which netd says, and the policy asks */
DRWA_LABELLED_MAP(drwa_attached, ARRAY, u32, u32, 1, "fs_bpf_netd_shared");

#include "drwa.bpf.c"

DRWA_PROG_BEFORE(drwa_sockops_5_15, KVER(6, 1, 0))(struct bpf_sock_ops *ops)
{
	return sockops(ops, false);
}
