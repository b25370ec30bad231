/* SPDX-License-Identifier: GPL-2.0-only */
/* Types of the law and of the BPF UAPI, in a BPF object */
#ifndef _DRWA_BPF_TYPES_H
#define _DRWA_BPF_TYPES_H

typedef unsigned char __u8, u8;
typedef unsigned short __u16, u16;
typedef unsigned int __u32, u32;
typedef unsigned long long __u64, u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32, s32;
typedef long long __s64, s64;
typedef __u16 __be16;
typedef __u32 __be32, __wsum;
typedef __u64 __be64;

#define __aligned_u64	__u64 __attribute__((aligned(8)))

#define bool	_Bool
#define true	1
#define false	0

#endif
