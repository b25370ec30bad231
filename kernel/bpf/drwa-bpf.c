// SPDX-License-Identifier: GPL-2.0-only
/* drwa-bpf: DRWA's BPF programs on a Linux machine, no reboot and no patch
 *
 * Everything lies pinned in one folder of the BPF file system, and nowhere else:
 * links, which attach the programs for as long as they exist, and maps. A folder
 * of another name becomes that one at the very end, and lambda is written then, so
 * that an attach which does not come to its end leaves nothing. Even one that is
 * killed leaves no more than programs that do nothing, until the next command.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <mntent.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/types.h>
#include <linux/magic.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
#define static_assert	_Static_assert
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#include "drwa.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE	71
#endif

#define BPFFS	"/sys/fs/bpf"
#define PINS	BPFFS "/drwa"

enum exit_code { FAILED = 1, WRONG = 2, CANNOT = 77 };

static const char usage[] =
"Usage: drwa-bpf attach --interface NAME [--lambda NUMBER] [--queue NUMBER]\n"
"       drwa-bpf set --interface NAME --lambda NUMBER [--queue NUMBER]\n"
"       drwa-bpf status [--json]\n"
"       drwa-bpf detach\n"
"\n"
"Keeps the queue of a cellular link short: moves the receive window of each TCP\n"
"connection that is opened from now on and whose data comes over the interface.\n"
"\n"
"  --interface NAME  such as wwan0\n"
"  --lambda NUMBER   what may be in flight, in bandwidth-delay products: 1.00 to\n"
"                    10.00, or 0 for off; 1.25 unless given\n"
"  --queue NUMBER    interfaces with the same number, 1 to 2147483647, wait in the\n"
"                    same queue (a VPN over wwan0); 0, the default: none other\n"
"  --cgroup FOLDER   sockets of the processes below this cgroup; all unless given\n"
"  --object FILE     the programs; " DRWA_OBJECT "\n"
"                    unless given\n"
"  --json            machine-readable\n"
"\n"
"attach governs one interface more when others are attached already. Needs root.\n"
"Ends with 0 when done, 1 when something failed, 2 for wrong options, and 77 when\n"
"this machine cannot.\n";

__attribute__((noreturn, format(printf, 2, 3)))
static void die(enum exit_code code, const char *format, ...)
{
	va_list args;

	fputs("drwa-bpf: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(code);
}

struct options {
	const char *interface;
	const char *cgroup;
	const char *object;
	u32 ifindex;
	u32 lambda;
	u32 queue;
	bool lambda_given;
	bool queue_given;
	bool json;
};

/* "1.25", or "0"; in hundredths */
static u32 parse_lambda(const char *text)
{
	char *end;
	double value = strtod(text, &end);
	long hundredths = (long)(value * 100 + 0.5);

	if (end == text || *end || (hundredths && (hundredths < DRWA_LAMBDA_MIN ||
						   hundredths > DRWA_LAMBDA_MAX)) || value < 0)
		die(WRONG, "--lambda '%s': give 1.00 to 10.00, or 0 for off", text);
	return hundredths;
}

static u32 parse_queue(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || text[0] == '-' || value > 0x7fffffff)
		die(WRONG, "--queue '%s': give 0 to 2147483647", text);
	return value;
}

/* A kernel with the series has a knob for each interface. */
static void refuse_second_governor(const char *interface)
{
	char path[128];
	int lambda = 0;
	FILE *knob;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/tcp_drwa_lambda", interface);
	knob = fopen(path, "r");
	if (!knob)
		return;
	if (fscanf(knob, "%d", &lambda) != 1)
		lambda = 0;
	fclose(knob);
	if (lambda)
		die(FAILED, "this kernel governs %s itself: write 0 to %s first, or leave it be",
		    interface, path);
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level != LIBBPF_WARN || !getenv("DRWA_VERBOSE"))
		return 0;
	return vfprintf(stderr, format, args);
}

static void need_root(void)
{
	if (geteuid())
		die(CANNOT, "run it as root");
}

static void need_kernel(void)
{
	if (libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_CGROUP_SKB, NULL) != 1 ||
	    libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_CGROUP_SOCKOPT, NULL) != 1 ||
	    libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SOCK_OPS, NULL) != 1)
		die(CANNOT, "this kernel has no CONFIG_CGROUP_BPF");
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_SOCK_OPS, BPF_FUNC_load_hdr_opt, NULL) != 1 ||
	    libbpf_probe_bpf_helper(BPF_PROG_TYPE_SOCK_OPS, BPF_FUNC_get_netns_cookie, NULL) != 1)
		die(CANNOT, "this kernel is too old: 6.1 and later will do");
}

/* Where cgroup v2 is mounted: of several places the first */
static const char *cgroup_root(void)
{
	static char root[256];
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *each;

	while (mounts && (each = getmntent(mounts))) {
		if (!strcmp(each->mnt_type, "cgroup2")) {
			snprintf(root, sizeof(root), "%s", each->mnt_dir);
			break;
		}
	}
	if (mounts)
		endmntent(mounts);
	if (!*root)
		die(CANNOT, "no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup");
	return root;
}

static void need_bpffs(void)
{
	struct statfs fs;

	if (!statfs(BPFFS, &fs) && fs.f_type == BPF_FS_MAGIC)
		return;
	if (mount("bpf", BPFFS, "bpf", 0, "mode=0700"))
		die(CANNOT, "%s is no BPF file system and cannot be mounted: %s", BPFFS,
		    strerror(errno));
}

/* Takes a folder of pins away, and so ends what they hold. */
static void unpin(const char *folder)
{
	struct dirent *each;
	DIR *dir = opendir(folder);
	char path[512];

	if (!dir)
		return;
	while ((each = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, each->d_name);
		if (each->d_name[0] != '.')
			unlink(path);
	}
	closedir(dir);
	rmdir(folder);
}

/* What attaches that were killed have left */
static void unpin_unfinished(void)
{
	struct dirent *each;
	DIR *dir = opendir(BPFFS);
	char path[512];

	if (!dir)
		return;
	while ((each = readdir(dir))) {
		long pid = strncmp(each->d_name, "drwa-", 5) ? 0 : atol(each->d_name + 5);

		if (pid <= 0 || !kill(pid, 0))
			continue;
		snprintf(path, sizeof(path), "%s/%s", BPFFS, each->d_name);
		unpin(path);
	}
	closedir(dir);
}

static int open_map(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", PINS, name);
	fd = bpf_obj_get(path);
	if (fd < 0 && errno == ENOENT)
		die(FAILED, "nothing is attached: drwa-bpf attach --interface NAME");
	if (fd < 0)
		die(FAILED, "%s: %s", path, strerror(errno));
	return fd;
}

/* The keys of a map, at most @room of them. All are read before one is written, as an
 * entry that is written comes to the beginning of its chain: a walk that goes on from
 * there may never end. What others write meanwhile may be there twice.
 */
static int keys_of(int map, void *keys, size_t size, int room)
{
	char *next = keys;
	int n;

	for (n = 0; n < room; n++, next += size)
		if (bpf_map_get_next_key(map, n ? next - size : NULL, next))
			break;
	return n;
}

/* Interfaces that are gone are forgotten. Connections whose interface is not known
 * yet are of the one with the largest lambda.
 */
static void tidy_devs(int devs)
{
	struct drwa_dev dev, unknown = { 0 };
	u32 keys[DRWA_DEVS], zero = 0;
	char name[IF_NAMESIZE];
	int n = keys_of(devs, keys, sizeof(*keys), DRWA_DEVS);

	while (n--) {
		if (!keys[n] || bpf_map_lookup_elem(devs, &keys[n], &dev))
			continue;
		if (!if_indextoname(keys[n], name))
			bpf_map_delete_elem(devs, &keys[n]);
		else if (dev.lambda > unknown.lambda)
			unknown.lambda = dev.lambda;
	}
	if (bpf_map_update_elem(devs, &zero, &unknown, BPF_ANY))
		die(FAILED, "cannot write to the map: %s", strerror(errno));
}

static void set_dev(int devs, const struct options *o)
{
	struct drwa_dev dev = { 0 };

	tidy_devs(devs);
	bpf_map_lookup_elem(devs, &o->ifindex, &dev);
	dev.lambda = o->lambda;
	if (o->queue_given)
		dev.queue = o->queue;
	if (bpf_map_update_elem(devs, &o->ifindex, &dev, BPF_ANY))
		die(FAILED, "cannot govern %s: %s", o->interface,
		    errno == E2BIG ? "too many interfaces are" : strerror(errno));
	tidy_devs(devs);
}

static u64 netns_cookie(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	u64 cookie = 0;
	socklen_t size = sizeof(cookie);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size))
		die(CANNOT, "this kernel does not number its network name spaces");
	close(fd);
	return cookie;
}

/* Interfaces have numbers in one network name space. */
static void same_netns(void)
{
	u64 attached, own = netns_cookie();
	u32 zero = 0;

	if (bpf_map_lookup_elem(open_map("drwa_netns"), &zero, &attached))
		die(FAILED, "cannot read the map: %s", strerror(errno));
	if (attached != own)
		die(FAILED, "the programs are attached for another network name space");
}

static char unfinished[64];

static void clean_up(void)
{
	if (*unfinished)
		unpin(unfinished);
}

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

/* What asks an attach to end waits for the next step of it: a handler might find
 * malloc() at work, and opendir() needs it.
 */
static void hold_signals(void)
{
	sigset_t held;
	size_t i;

	sigemptyset(&held);
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaddset(&held, ends[i]);
	sigprocmask(SIG_BLOCK, &held, NULL);
}

static void end_if_asked(void)
{
	sigset_t pending;
	size_t i;

	sigpending(&pending);
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (sigismember(&pending, ends[i]))
			exit(128 + ends[i]);
}

static void attach_programs(const struct options *o, const char *folder)
{
	const char *cgroup = o->cgroup ? o->cgroup : cgroup_root();
	struct bpf_object *object;
	struct bpf_program *program;
	u64 cookie = netns_cookie();
	struct bpf_link *link;
	char path[512];
	u32 zero = 0;
	int fd;

	fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		die(WRONG, "--cgroup '%s': %s", cgroup, strerror(errno));
	object = bpf_object__open(o->object);
	if (!object)
		die(FAILED, "%s: %s", o->object, strerror(errno));
	if (bpf_object__load(object))
		die(CANNOT, "this kernel does not take the programs (%s); DRWA_VERBOSE=1 tells why",
		    strerror(errno));
	end_if_asked();
	if (bpf_object__pin_maps(object, folder))
		die(FAILED, "cannot pin below %s: %s", BPFFS, strerror(errno));
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "drwa_netns"), &zero,
				&cookie, BPF_ANY))
		die(FAILED, "cannot write to the map: %s", strerror(errno));
	bpf_object__for_each_program(program, object) {
		end_if_asked();
		link = bpf_program__attach_cgroup(program, fd);
		if (!link)
			die(FAILED, "cannot attach to %s: %s", cgroup, strerror(errno));
		snprintf(path, sizeof(path), "%s/%s", folder, bpf_program__name(program));
		if (bpf_link__pin(link, path))
			die(FAILED, "cannot pin below %s: %s", BPFFS, strerror(errno));
	}
	close(fd);
}

static int attach(const struct options *o)
{
	refuse_second_governor(o->interface);
	need_kernel();
	need_bpffs();
	unpin_unfinished();
	if (!access(PINS, F_OK)) {
		same_netns();
		set_dev(open_map("drwa_devs"), o);
		return 0;
	}
	snprintf(unfinished, sizeof(unfinished), "%s-%d", PINS, getpid());
	hold_signals();
	atexit(clean_up);
	if (mkdir(unfinished, 0700))
		die(FAILED, "%s: %s", unfinished, strerror(errno));
	attach_programs(o, unfinished);
	end_if_asked();
	if (rename(unfinished, PINS))
		die(FAILED, "%s: %s", PINS, strerror(errno));
	snprintf(unfinished, sizeof(unfinished), "%s", PINS);
	set_dev(open_map("drwa_devs"), o);
	*unfinished = 0;
	return 0;
}

static int set(const struct options *o)
{
	if (!o->lambda_given)
		die(WRONG, "set needs --lambda");
	if (o->lambda)
		refuse_second_governor(o->interface);
	same_netns();
	set_dev(open_map("drwa_devs"), o);
	return 0;
}

/* Connections that still have a clamp of ours, room for DRWA_SOCKS of them */
static int clamped(int socks, struct drwa_sock *found)
{
	u64 keys[DRWA_SOCKS];
	int i, n = 0, count = keys_of(socks, keys, sizeof(*keys), DRWA_SOCKS);

	for (i = 0; i < count; i++)
		if (!bpf_map_lookup_elem(socks, &keys[i], &found[n]) && found[n].clamp)
			n++;
	return n;
}

static bool is_one_of(int fd, const struct drwa_sock *found, int n)
{
	struct sockaddr_in6 us = { 0 }, them = { 0 };
	socklen_t size = sizeof(us), their_size = sizeof(them);
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&them;
	const void *address = &them.sin6_addr;
	size_t length = sizeof(them.sin6_addr);

	if (getsockname(fd, (struct sockaddr *)&us, &size) ||
	    getpeername(fd, (struct sockaddr *)&them, &their_size))
		return false;
	if (them.sin6_family == AF_INET) {
		address = &v4->sin_addr;
		length = sizeof(v4->sin_addr);
	}
	while (n--) {
		/* Ports are at the same place in both families. */
		if (found[n].family == them.sin6_family &&
		    found[n].local_port == ntohs(us.sin6_port) &&
		    found[n].remote_port >> 16 == them.sin6_port &&
		    !memcmp(found[n].remote, address, length))
			return true;
	}
	return false;
}

static void let_go_of_process(long pid, const struct drwa_sock *found, int n)
{
	int fd, none = DRWA_NO_CLAMP, process = syscall(SYS_pidfd_open, pid, 0);
	struct dirent *each;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
	dir = opendir(path);
	while (process >= 0 && dir && (each = readdir(dir))) {
		char target[16] = "";

		if (readlinkat(dirfd(dir), each->d_name, target, sizeof(target) - 1) < 0 ||
		    strncmp(target, "socket:", 7))
			continue;
		fd = syscall(SYS_pidfd_getfd, process, atoi(each->d_name), 0);
		if (fd < 0)
			continue;
		if (is_one_of(fd, found, n))
			setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &none, sizeof(none));
		close(fd);
	}
	if (dir)
		closedir(dir);
	if (process >= 0)
		close(process);
}

/* A connection is let go with the segment that it sends after its round. One that is
 * silent is let go through its owner's file, or it would keep its clamp for good.
 */
static void let_go(int socks)
{
	struct drwa_sock *found = calloc(DRWA_SOCKS, sizeof(*found));
	struct dirent *each;
	int n, i;
	DIR *dir;

	if (!found)
		die(FAILED, "out of memory");
	for (i = 0; (n = clamped(socks, found)) && i < 20; i++)
		usleep(50000);
	dir = n ? opendir("/proc") : NULL;
	while (dir && (each = readdir(dir))) {
		long pid = atol(each->d_name);

		if (pid > 0)
			let_go_of_process(pid, found, n);
	}
	if (dir)
		closedir(dir);
	free(found);
}

static int detach(void)
{
	struct drwa_dev off = { 0 };
	u32 keys[DRWA_DEVS];
	int devs, n;

	unpin_unfinished();
	devs = open_map("drwa_devs");
	n = keys_of(devs, keys, sizeof(*keys), DRWA_DEVS);
	while (n--)
		bpf_map_update_elem(devs, &keys[n], &off, BPF_EXIST);
	let_go(open_map("drwa_socks"));
	/* Of a name that the next command takes away, if this one does not come that far */
	snprintf(unfinished, sizeof(unfinished), "%s-%d", PINS, getpid());
	if (rename(PINS, unfinished))
		die(FAILED, "%s: %s", PINS, strerror(errno));
	unpin(unfinished);
	return 0;
}

static double ms(u32 us)
{
	return us / 1e3;
}

static u32 queue_us(const struct drwa *d)
{
	return d->rtt_us > d->path_us ? d->rtt_us - d->path_us : 0;
}

static void print_remote(const struct drwa_sock *s, char *text, size_t size)
{
	char address[INET6_ADDRSTRLEN];
	bool v4 = s->family == AF_INET;

	inet_ntop(s->family, s->remote, address, sizeof(address));
	snprintf(text, size, v4 ? "%s:%u" : "[%s]:%u", address, ntohs(s->remote_port >> 16));
}

static void print_bins(const char *name, const __u64 *bins)
{
	printf(", \"%s\": [", name);
	for (int i = 0; i < DRWA_BINS; i++)
		printf("%s%llu", i ? ", " : "", bins[i]);
	putchar(']');
}

static void print_devs(bool json)
{
	int devs = open_map("drwa_devs"), stats = open_map("drwa_stats");
	u32 keys[DRWA_DEVS];
	int i, n = keys_of(devs, keys, sizeof(*keys), DRWA_DEVS);
	const char *comma = "";

	if (!json)
		printf("%-16s %6s %6s %10s %10s\n", "interface", "lambda", "queue", "sockets",
		       "rounds");
	for (i = 0; i < n; i++) {
		char name[IF_NAMESIZE] = "(gone)";
		struct drwa_stats count = { 0 };
		u32 key = keys[i];
		struct drwa_dev dev;

		if (!key || bpf_map_lookup_elem(devs, &key, &dev))
			continue;
		if_indextoname(key, name);
		bpf_map_lookup_elem(stats, &key, &count);
		if (!json) {
			printf("%-16s %6.2f %6u %10llu %10llu\n", name, dev.lambda / 100.,
			       dev.queue, count.sockets, count.rounds);
			continue;
		}
		printf("%s{\"interface\": \"%s\", \"ifindex\": %u, \"lambda\": %.2f, \"queue\": %u, "
		       "\"sockets\": %llu, \"rounds\": %llu, \"clamps\": %llu, \"refused\": %llu",
		       comma, name, key, dev.lambda / 100., dev.queue, count.sockets,
		       count.rounds, count.clamps, count.refused);
		print_bins("delay_us_log2", count.delay_us);
		print_bins("rtt_us_log2", count.rtt_us);
		putchar('}');
		comma = ", ";
	}
}

static void print_socks(bool json)
{
	int socks = open_map("drwa_socks");
	u64 keys[DRWA_SOCKS];
	int i, n = keys_of(socks, keys, sizeof(*keys), DRWA_SOCKS);
	const char *comma = "";

	if (!json)
		printf("\n%-48s %10s %12s %9s %9s\n", "connection", "rate Mb/s", "window bytes",
		       "queue ms", "RTT ms");
	for (i = 0; i < n; i++) {
		struct drwa_sock s;
		char remote[64];

		if (bpf_map_lookup_elem(socks, &keys[i], &s) || !s.d.rtt_us)
			continue;
		print_remote(&s, remote, sizeof(remote));
		printf(json ? "%s{\"remote\": \"%s\", \"local_port\": %u, \"rate_mbps\": %.3f, "
			      "\"window_bytes\": %u, \"queue_ms\": %.3f, \"rtt_ms\": %.3f}" :
			      "%s%-41s %6u %10.2f %12u %9.1f %9.1f\n",
		       comma, remote, s.local_port, s.d.rate * 8 / 1048576., s.d.wnd,
		       ms(queue_us(&s.d)), ms(s.d.rtt_us));
		if (json)
			comma = ", ";
	}
}

/* What the kernel made of a program, which its pinned link names */
static bool program_info(const char *link_name, struct bpf_prog_info *info)
{
	struct bpf_link_info link = { 0 };
	u32 link_size = sizeof(link), size = sizeof(*info);
	int link_fd, fd, failed;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", PINS, link_name);
	link_fd = bpf_obj_get(path);
	if (link_fd < 0)
		return false;
	failed = bpf_obj_get_info_by_fd(link_fd, &link, &link_size);
	close(link_fd);
	if (failed || link.type != BPF_LINK_TYPE_CGROUP)
		return false;
	fd = bpf_prog_get_fd_by_id(link.prog_id);
	if (fd < 0)
		return false;
	memset(info, 0, sizeof(*info));
	failed = bpf_obj_get_info_by_fd(fd, info, &size);
	close(fd);
	return !failed;
}

/* The kernel counts runs and their time while kernel.bpf_stats_enabled is 1. */
static void print_programs(void)
{
	static const char *const names[] = {
		"drwa_ingress", "drwa_sockops", "drwa_setsockopt", "drwa_release",
	};
	struct bpf_prog_info info;
	const char *comma = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!program_info(names[i], &info))
			continue;
		printf("%s{\"program\": \"%s\", \"verified_instructions\": %u, "
		       "\"jited_bytes\": %u, \"runs\": %llu, \"run_ns\": %llu}",
		       comma, names[i], info.verified_insns, info.jited_prog_len,
		       info.run_cnt, info.run_time_ns);
		comma = ", ";
	}
}

static int status(bool json)
{
	if (json)
		printf("{\"interfaces\": [");
	print_devs(json);
	if (json)
		printf("], \"connections\": [");
	print_socks(json);
	if (json) {
		printf("], \"programs\": [");
		print_programs();
		puts("]}");
	}
	return 0;
}

static const struct option long_options[] = {
	{ "interface", required_argument, NULL, 'i' },
	{ "lambda", required_argument, NULL, 'l' },
	{ "queue", required_argument, NULL, 'q' },
	{ "cgroup", required_argument, NULL, 'c' },
	{ "object", required_argument, NULL, 'o' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 }
};

int main(int argc, char **argv)
{
	struct options o = { .object = DRWA_OBJECT, .lambda = 125 };
	const char *verb;
	int option;

	libbpf_set_print(quiet);
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case 'i':
			o.interface = optarg;
			break;
		case 'l':
			o.lambda = parse_lambda(optarg);
			o.lambda_given = true;
			break;
		case 'q':
			o.queue = parse_queue(optarg);
			o.queue_given = true;
			break;
		case 'c':
			o.cgroup = optarg;
			break;
		case 'o':
			o.object = optarg;
			break;
		case 'j':
			o.json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return WRONG;
		}
	}
	verb = optind < argc ? argv[optind] : "";
	if (argc - optind != 1 || (strcmp(verb, "attach") && strcmp(verb, "set") &&
				   strcmp(verb, "status") && strcmp(verb, "detach"))) {
		fputs(usage, stderr);
		return WRONG;
	}
	if (!strcmp(verb, "attach") || !strcmp(verb, "set")) {
		if (!o.interface)
			die(WRONG, "%s needs --interface", verb);
		o.ifindex = if_nametoindex(o.interface);
		if (!o.ifindex)
			die(WRONG, "--interface '%s': there is none", o.interface);
	}
	need_root();
	if (!strcmp(verb, "attach"))
		return attach(&o);
	if (!strcmp(verb, "set"))
		return set(&o);
	if (!strcmp(verb, "status"))
		return status(o.json);
	return detach();
}
