// SPDX-License-Identifier: GPL-2.0-only
/* Lets time pass for a program that polls
 *
 * In a guest, time stands still while a program runs. libev, which ngtcp2's programs use,
 * polls without a wait until the time of a timer is over that is due just now: for ever.
 */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <unistd.h>

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
	int n = epoll_pwait(fd, events, most, timeout_ms, NULL);

	if (n == 0 && timeout_ms == 0)
		usleep(1);
	return n;
}
