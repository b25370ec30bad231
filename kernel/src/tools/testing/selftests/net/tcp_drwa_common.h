/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs of tcp_drwa.sh share */
#ifndef _TCP_DRWA_COMMON_H
#define _TCP_DRWA_COMMON_H

#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

/* Enters the network name space of @process. */
static void enter(const char *process)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/ns/net", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		err(1, "%s", path);
	close(fd);
}

#endif
