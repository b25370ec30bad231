// SPDX-License-Identifier: GPL-2.0-only
/* What a segment costs: the time that the CPU is busy with a stream of given rate.
 *
 *	segments SERVER PHONE ADDRESS down|up|udp
 *
 * SERVER and PHONE are processes, which stand for their name spaces. Prints how many
 * segments with data the receiver got in ten seconds, of udp how many datagrams of a
 * download, and the busy time in ns; where the clock counts instructions, that is their
 * number.
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
	DATAGRAM = 1200,
};

static int new_socket(int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

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

static uint32_t datagrams(int from, int to, uint64_t until_us)
{
	static char datagram[DATAGRAM];
	uint64_t now, next_us = now_us();
	uint32_t received = 0;

	while ((now = now_us()) < until_us) {
		if (now >= next_us) {
			(void)!send(from, datagram, DATAGRAM, MSG_DONTWAIT);
			next_us += DATAGRAM * 1000000ULL / RATE_BYTES_PER_S;
		} else {
			usleep(next_us - now);
		}
		while (recv(to, datagram, DATAGRAM, MSG_DONTWAIT) > 0)
			received++;
	}
	return received;
}

/* A download over UDP, from the server's address to a port of the phone's */
static int measure_datagrams(const char *server, const char *phone, struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	uint64_t start_us, idle;
	uint32_t received;
	int from, to;

	enter(server);
	from = new_socket(SOCK_DGRAM);
	if (bind(from, (void *)address, size))
		err(1, "server");
	enter(phone);
	to = new_socket(SOCK_DGRAM);
	if (connect(to, (void *)address, size) || getsockname(to, (void *)address, &size) ||
	    connect(from, (void *)address, size))
		err(1, "connect");
	datagrams(from, to, now_us() + WARM_US);
	idle = idle_ns();
	start_us = now_us();
	received = datagrams(from, to, start_us + SPAN_US);
	idle = idle_ns() - idle;
	printf("%u %llu\n", received, (unsigned long long)((now_us() - start_us) * 1000 - idle));
	return 0;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int listener, phone, server, from, to, low = 32768, one = 1;
	unsigned int rate = RATE_BYTES_PER_S;
	uint64_t start_us, idle;
	uint32_t segments;

	if (argc != 5 || !inet_pton(AF_INET, argv[3], &address.sin_addr))
		errx(2, "usage: SERVER PHONE ADDRESS down|up|udp");
	if (!strcmp(argv[4], "udp"))
		return measure_datagrams(argv[1], argv[2], &address);
	enter(argv[1]);
	listener = new_socket(SOCK_STREAM);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 1))
		err(1, "server");
	enter(argv[2]);
	phone = new_socket(SOCK_STREAM);
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
