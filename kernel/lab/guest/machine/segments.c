// SPDX-License-Identifier: GPL-2.0-only
/* What a segment costs: the time that the CPU is busy with a stream of given rate.
 *
 *	segments SERVER PHONE ADDRESS down|up
 *
 * SERVER and PHONE are processes, which stand for their name spaces. Prints how many
 * segments with data the receiver got in ten seconds, and the busy time in ns; where the
 * clock counts instructions, that is their number.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/tcp.h>

#include "tcp_drwa_common.h"

enum {
	PORT = 5003,
	RATE_BYTES_PER_S = 2500000,
	WARM_US = 4000000,
	SPAN_US = 10000000,
	CHUNK = 64 << 10,
};

static int tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	return fd;
}

/* All time that the CPU slept, of the tick's own count */
static uint64_t idle_ns(void)
{
	FILE *file = fopen("/proc/timer_list", "r");
	unsigned long long ns = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " .idle_sleeptime : %llu", &ns) == 1)
			break;
	if (!ns)
		errx(1, "/proc/timer_list tells no idle_sleeptime");
	fclose(file);
	return ns;
}

static uint32_t data_segments(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		err(1, "TCP_INFO");
	return info.tcpi_data_segs_in;
}

static void stream(int from, int to, uint64_t until_us)
{
	static char chunk[CHUNK];
	struct pollfd fds[] = { { from, POLLOUT, 0 }, { to, POLLIN, 0 } };

	while (now_us() < until_us) {
		if (poll(fds, 2, 100) < 0)
			err(1, "poll");
		if (fds[0].revents)
			(void)!send(from, chunk, CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (fds[1].revents)
			(void)!recv(to, chunk, CHUNK, MSG_DONTWAIT);
	}
}

int main(int argc, char *argv[])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int listener, phone, server, from, to, low = 32768, one = 1;
	unsigned int rate = RATE_BYTES_PER_S;
	uint64_t start_us, idle;
	uint32_t segments;

	if (argc != 5 || !inet_pton(AF_INET, argv[3], &address.sin_addr))
		errx(2, "usage: SERVER PHONE ADDRESS down|up");
	enter(argv[1]);
	listener = tcp_socket();
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 1))
		err(1, "server");
	enter(argv[2]);
	phone = tcp_socket();
	if (connect(phone, (void *)&address, sizeof(address)))
		err(1, "connect");
	server = accept(listener, NULL, NULL);
	from = strcmp(argv[4], "up") ? server : phone;
	to = from == server ? phone : server;
	/* Paced, so that the stream is the same whatever governs it */
	if (setsockopt(from, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) ||
	    setsockopt(from, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &low, sizeof(low)))
		err(1, "sender");
	stream(from, to, now_us() + WARM_US);
	segments = data_segments(to);
	idle = idle_ns();
	start_us = now_us();
	stream(from, to, start_us + SPAN_US);
	idle = idle_ns() - idle;
	printf("%u %llu\n", data_segments(to) - segments,
	       (unsigned long long)((now_us() - start_us) * 1000 - idle));
	return 0;
}
