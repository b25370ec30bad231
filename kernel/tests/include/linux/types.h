/* SPDX-License-Identifier: GPL-2.0-only */
/* What net/ipv4/tcp_drwa_core.c needs of the kernel, in user space */
#ifndef _DRWA_TEST_TYPES_H
#define _DRWA_TEST_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8, __u8;
typedef uint16_t u16, __u16;
typedef uint32_t u32, __u32;
typedef uint64_t u64, __u64;
typedef int32_t s32;
typedef int64_t s64;

#endif
