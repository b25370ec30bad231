// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traffic of tcp_drwa.sh: downloads between two network name spaces, and the
 * round-trip times that others have beside them.
 *
 *	tcp_drwa [OPTION]... SERVER CLIENT ADDRESS SECONDS [COMMAND SECONDS]...
 *
 * SERVER and CLIENT are processes, which stand for their name spaces. This one
 * has the sockets of both, so that neither waits for the other to be started.
 * At the end of each time it prints a line,
 *
 *	goodput_kbps=9300 rtt_us=61000 rtt_p95_us=64000 wnd=91648 wnd_max=97280 rcvbuf=366592
 *
 * with the window as the server sees it and the buffer of the client, both of
 * the first download. Then it runs the next command and goes on.
 *
 *	-n N	downloads at a time, 1 unless told, 0 for none
 *	-b N	SO_RCVBUF of the client
 *	-w N	TCP_WINDOW_CLAMP of the client
 *	-m N	TCP_MAXSEG of the client
 *	-e N	ms from one time that the client reads to the next, 0 for as it comes
 *	-l N	SO_RCVLOWAT of the client
 *	-f	TCP fast open
 *	-M	MPTCP
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_drwa_common.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif

enum {
	PORT = 5001,
	MAX_FLOWS = 64,
	MAX_PROBES = 1 << 16,
	PROBE_US = 20000,
	CHUNK = 256 << 10,
};

static struct {
	int flows, rcvbuf, clamp, mss, every_ms, lowat;
	bool fastopen, mptcp;
} opt = { .flows = 1 };

static struct sockaddr_storage address;
static socklen_t address_len;
static int listener, echo, probe, served;
static int servers[MAX_FLOWS], clients[MAX_FLOWS];
static char chunk[CHUNK];

/* Of the present time span */
static uint64_t received;
static uint32_t rtts_us[MAX_PROBES], rtts, wnd, wnd_max;

static int new_socket(int type, int protocol)
{
	int fd = socket(address.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		err(1, "socket");
	return fd;
}

static void set(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		err(1, "option %d", name);
}

static int tcp_socket(void)
{
	return new_socket(SOCK_STREAM, opt.mptcp ? IPPROTO_MPTCP : IPPROTO_TCP);
}

static void parse_address(const char *text)
{
	struct sockaddr_in *v4 = (void *)&address;
	struct sockaddr_in6 *v6 = (void *)&address;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(PORT);
		address_len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(PORT);
		address_len = sizeof(*v6);
	} else {
		errno = EINVAL;
		err(1, "%s", text);
	}
}

static void serve(void)
{
	listener = tcp_socket();
	set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!opt.mptcp)
		set(listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 131072);
	if (opt.fastopen)
		set(listener, IPPROTO_TCP, TCP_FASTOPEN, MAX_FLOWS);
	echo = new_socket(SOCK_DGRAM, 0);
	if (bind(listener, (void *)&address, address_len) ||
	    bind(echo, (void *)&address, address_len) || listen(listener, MAX_FLOWS))
		err(1, "server");
}

static int download(void)
{
	int fd = tcp_socket();
	int failed;

	if (opt.rcvbuf)
		set(fd, SOL_SOCKET, SO_RCVBUF, opt.rcvbuf);
	if (opt.clamp)
		set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, opt.clamp);
	if (opt.mss)
		set(fd, IPPROTO_TCP, TCP_MAXSEG, opt.mss);
	if (opt.lowat)
		set(fd, SOL_SOCKET, SO_RCVLOWAT, opt.lowat);
	if (opt.fastopen)
		failed = sendto(fd, "", 1, MSG_FASTOPEN, (void *)&address, address_len) < 0;
	else
		failed = connect(fd, (void *)&address, address_len);
	if (failed && errno != EINPROGRESS)
		err(1, "connect");
	return fd;
}

static void send_probe(void)
{
	uint64_t sent_us = now_us();

	/* While the interface is down there is nowhere to send to. */
	(void)!send(probe, &sent_us, sizeof(sent_us), 0);
}

static void read_probes(void)
{
	uint64_t sent_us;

	while (recv(probe, &sent_us, sizeof(sent_us), 0) == sizeof(sent_us))
		if (rtts < MAX_PROBES)
			rtts_us[rtts++] = now_us() - sent_us;
}

static void echo_probes(void)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	uint64_t sent_us;

	while (recvfrom(echo, &sent_us, sizeof(sent_us), 0, (void *)&from, &len) > 0)
		(void)!sendto(echo, &sent_us, sizeof(sent_us), 0, (void *)&from, len);
}

static void read_window(void)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (!served || getsockopt(servers[0], IPPROTO_TCP, TCP_INFO, &info, &len))
		return;
	wnd = info.tcpi_snd_wnd;
	if (wnd > wnd_max)
		wnd_max = wnd;
}

static void read_all(int fd)
{
	ssize_t n;

	while ((n = recv(fd, chunk, CHUNK, 0)) > 0)
		received += n;
	if (!n || (n < 0 && errno != EAGAIN))
		err(1, "download");
}

static void transfer(uint64_t until_us)
{
	static uint64_t next_probe_us, next_read_us;
	struct pollfd fds[3 + 2 * MAX_FLOWS];
	uint64_t now = now_us();
	int i, n, wait_ms, reads;

	while (now < until_us) {
		if (now >= next_probe_us) {
			send_probe();
			read_window();
			next_probe_us = now + PROBE_US;
		}
		reads = opt.every_ms ? 0 : POLLIN;
		if (opt.every_ms && now >= next_read_us) {
			for (i = 0; i < opt.flows; i++)
				read_all(clients[i]);
			next_read_us = now + opt.every_ms * 1000;
		}
		n = 0;
		fds[n++] = (struct pollfd){ .fd = listener, .events = POLLIN };
		fds[n++] = (struct pollfd){ .fd = echo, .events = POLLIN };
		fds[n++] = (struct pollfd){ .fd = probe, .events = POLLIN };
		for (i = 0; i < opt.flows; i++)
			fds[n++] = (struct pollfd){ .fd = clients[i], .events = reads };
		for (i = 0; i < served; i++)
			fds[n++] = (struct pollfd){ .fd = servers[i], .events = POLLOUT };
		wait_ms = (next_probe_us - now + 999) / 1000;
		if (poll(fds, n, wait_ms) < 0)
			err(1, "poll");
		if (fds[1].revents)
			echo_probes();
		if (fds[2].revents)
			read_probes();
		for (i = 3; i < 3 + opt.flows; i++)
			if (fds[i].revents & reads)
				read_all(fds[i].fd);
		for (; i < n; i++)
			while (fds[i].revents && send(fds[i].fd, chunk, CHUNK, MSG_NOSIGNAL) > 0)
				;
		if (fds[0].revents && served < MAX_FLOWS) {
			servers[served] = accept4(listener, NULL, NULL,
						  SOCK_NONBLOCK | SOCK_CLOEXEC);
			if (servers[served] >= 0)
				served++;
		}
		now = now_us();
	}
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(uint64_t elapsed_us)
{
	socklen_t len = sizeof(int);
	int rcvbuf = 0;

	if (opt.flows)
		getsockopt(clients[0], SOL_SOCKET, SO_RCVBUF, &rcvbuf, &len);
	qsort(rtts_us, rtts, sizeof(*rtts_us), by_size);
	printf("goodput_kbps=%llu rtt_us=%u rtt_p95_us=%u wnd=%u wnd_max=%u rcvbuf=%d\n",
	       (unsigned long long)(received * 8000 / elapsed_us),
	       rtts ? rtts_us[rtts / 2] : 0, rtts ? rtts_us[rtts * 95 / 100] : 0,
	       wnd, wnd_max, rcvbuf);
	fflush(stdout);
	received = 0;
	rtts = 0;
	wnd_max = 0;
}

int main(int argc, char *argv[])
{
	uint64_t start_us;
	int i, c;

	while ((c = getopt(argc, argv, "n:b:w:m:e:l:fM")) != -1) {
		switch (c) {
		case 'n':
			opt.flows = atoi(optarg);
			break;
		case 'b':
			opt.rcvbuf = atoi(optarg);
			break;
		case 'w':
			opt.clamp = atoi(optarg);
			break;
		case 'm':
			opt.mss = atoi(optarg);
			break;
		case 'e':
			opt.every_ms = atoi(optarg);
			break;
		case 'l':
			opt.lowat = atoi(optarg);
			break;
		case 'f':
			opt.fastopen = true;
			break;
		case 'M':
			opt.mptcp = true;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind < 4 || opt.flows < 0 || opt.flows > MAX_FLOWS)
		errx(2, "usage: [OPTION]... SERVER CLIENT ADDRESS SECONDS [COMMAND SECONDS]...");
	argv += optind;
	parse_address(argv[2]);
	enter(argv[0]);
	serve();
	enter(argv[1]);
	probe = new_socket(SOCK_DGRAM, 0);
	if (connect(probe, (void *)&address, address_len))
		err(1, "probe");
	for (i = 0; i < opt.flows; i++)
		clients[i] = download();

	for (argv += 3;; argv += 2) {
		start_us = now_us();
		transfer(start_us + atof(argv[0]) * 1e6);
		report(now_us() - start_us);
		if (!argv[1] || !argv[2])
			return 0;
		if (system(argv[1]))
			err(1, "%s", argv[1]);
	}
}
