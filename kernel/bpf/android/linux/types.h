/* SPDX-License-Identifier: GPL-2.0-only */
/* Types of the law beside bionic's, which the BPF UAPI has */
#ifndef _DRWA_ANDROID_TYPES_H
#define _DRWA_ANDROID_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#endif
