// SPDX-License-Identifier: GPL-2.0-only
/* drwa-bpf: DRWA's tc programs on a Linux machine, no reboot and no patch
 *
 * Programs and maps lie pinned in one folder of the BPF file system, for all interfaces.
 * A folder of another name becomes that one when it is whole. Commands that change
 * something wait for each other. An interface is first
 * entered with lambda 0, then it gets its programs, then its lambda: an attach that does
 * not come to its end leaves nothing that does anything, and the next command finds it.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <getopt.h>
#include <linux/magic.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
#define static_assert	_Static_assert
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#include "drwa.h"

#define VERSION	"1.0"

#define BPFFS	"/sys/fs/bpf"
#define PINS	BPFFS "/drwa"
#define UNFINISHED	BPFFS "/drwa-unfinished"

#define ETHERNET_BYTES	14
#define FILTER_HANDLE	1

/* A client's connection of which nothing came for that long may have been taken by hardware,
 * which forwards without telling, some of them after the first packets.
 */
#define SILENT_US	5000000

enum exit_code { DONE = 0, FAILED = 1, WRONG = 2, CANNOT = 77 };

static const char usage[] =
"Usage: drwa-bpf attach --interface NAME [--lambda NUMBER] [--queue NUMBER] [--aqm HOW]\n"
"                       [--clients HOW]\n"
"       drwa-bpf set --interface NAME [--lambda NUMBER] [--queue NUMBER] [--aqm HOW]\n"
"                    [--clients HOW]\n"
"       drwa-bpf status [--interface NAME] [--json]\n"
"       drwa-bpf detach [--interface NAME]\n"
"       drwa-bpf watch --interface PATTERN [--lambda NUMBER] [--queue NUMBER]\n"
"                      [--aqm HOW [--probe ADDRESS]] [--clients HOW]\n"
"\n"
"Keeps the queue of a cellular link short: lowers the receive window in the TCP headers\n"
"that go out over the interface, of this machine's connections and of those that it\n"
"forwards. Governed is what is opened from now on.\n"
"\n"
"  -i, --interface NAME  such as wwan0; of watch a pattern, such as 'ww*'\n"
"  -l, --lambda NUMBER   what may be in flight, in bandwidth-delay products: 1.00 to\n"
"                        10.00, or 0 for off; 1.25 unless given\n"
"  -q, --queue NUMBER    interfaces with the same number, 1 to 2147483647, wait in the\n"
"                        same queue (a VPN over wwan0); 0, the default: none other\n"
"  -a, --aqm HOW         on: drop some of what comes over UDP at more than 250 kb/s, so\n"
"                        that QUIC keeps a short queue, too; tunnels: of VPNs as well;\n"
"                        off, the default. The delay is that of TCP beside it\n"
"  -e, --probe ADDRESS   whom to send four ICMP echoes a second, while such UDP comes and\n"
"                        no TCP; without it, UDP alone keeps its queue. Of watch\n"
"  -c, --clients HOW     off: only this machine's own connections, not those that it\n"
"                        forwards; on, the default: all\n"
"  -p, --priority NUMBER attach as filters, of that priority, 1 to 65535; lower ones run\n"
"                        first. Unless given: to the interface itself, ahead of all\n"
"                        filters, or before Linux 6.6 as filters of priority 1\n"
"  -o, --object FILE     the programs; " DRWA_OBJECT "\n"
"                        unless given\n"
"  -j, --json            machine-readable\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"watch attaches to what there is and what appears, and detaches when it ends. Needs root.\n"
"Ends with 0 when done, 1 when something failed, 2 for wrong options, and 77 when this\n"
"machine cannot.\n";

/* What an attach of watch's that is tried again cannot do was told before. */
static bool is_told;

__attribute__((noreturn, format(printf, 2, 3)))
static void die(enum exit_code code, const char *format, ...)
{
	va_list args;

	if (is_told)
		exit(code);
	fputs("drwa-bpf: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(code);
}

struct options {
	const char *interface;
	const char *object;
	u32 ifindex;
	u32 lambda;
	u32 queue;
	u32 priority;
	u32 echo;
	u8 aqm;
	u8 local;
	struct sockaddr_in6 probe;
	bool lambda_given;
	bool queue_given;
	bool aqm_given;
	bool clients_given;
	bool keeps_pins;
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

/* By enum drwa_aqm */
static const char *const aqm_names[] = { "off", "on", "tunnels" };

static u8 parse_aqm(const char *text)
{
	for (u8 i = DRWA_AQM_OFF; i <= DRWA_AQM_TUNNELS; i++)
		if (!strcmp(text, aqm_names[i]))
			return i;
	die(WRONG, "--aqm '%s': give on, tunnels or off", text);
}

static u8 parse_clients(const char *text)
{
	if (!strcmp(text, "on"))
		return 0;
	if (!strcmp(text, "off"))
		return 1;
	die(WRONG, "--clients '%s': give on or off", text);
}

/* An address of either family, in the room of the longer one */
static void parse_address(const char *text, struct sockaddr_in6 *address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
		v4->sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &address->sin6_addr) == 1)
		address->sin6_family = AF_INET6;
	else
		die(WRONG, "--probe '%s': give an IPv4 or IPv6 address", text);
}

/* Nobody who is not on the path may tell a delay. */
static u32 echo_id(void)
{
	u32 id = 0;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		die(CANNOT, "no random number: %s", strerror(errno));
	return id | 1;
}

static u32 parse_number(const char *option, const char *text, u32 least, u32 most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || text[0] == '-' || value < least || value > most)
		die(WRONG, "--%s '%s': give %u to %u", option, text, least, most);
	return value;
}

/* A kernel with the series has a knob for each interface. Two laws that share a queue take
 * each other for rivals.
 */
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

static int say(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_DEBUG || !getenv("DRWA_VERBOSE"))
		return 0;
	return vfprintf(stderr, format, args);
}

static void need_root(void)
{
	if (geteuid())
		die(CANNOT, "run it as root");
}

/* As a command by ip netns exec has: what it mounts ends with it, and so do pins. Where the first
 * process may not be looked at, as in some containers, whoever called it tells.
 */
static bool has_own_mounts(void)
{
	struct stat ours, theirs;
	char caller[32];

	snprintf(caller, sizeof(caller), "/proc/%d/ns/mnt", getppid());
	return !stat("/proc/self/ns/mnt", &ours) &&
	       (!stat("/proc/1/ns/mnt", &theirs) || !stat(caller, &theirs)) &&
	       ours.st_ino != theirs.st_ino;
}

static void need_bpffs(void)
{
	struct statfs fs;

	if (!statfs(BPFFS, &fs) && fs.f_type == BPF_FS_MAGIC)
		return;
	if (has_own_mounts())
		die(CANNOT, "%s is no BPF file system here, and what is mounted now ends with this "
		    "command: in place of ip netns exec NAME, use nsenter --net=/run/netns/NAME",
		    BPFFS);
	if (mount("bpf", BPFFS, "bpf", 0, "mode=0700"))
		die(CANNOT, "%s is no BPF file system and cannot be mounted: %s", BPFFS,
		    strerror(errno));
}

/* Takes a folder of pins away. */
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

/* Waits for other commands, and takes away what those that were killed have left. */
static void begin_changes(void)
{
	int fd = open(BPFFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* For as long as this process lives */
	if (fd < 0 || flock(fd, LOCK_EX))
		die(FAILED, "cannot lock %s: %s", BPFFS, strerror(errno));
	unpin(UNFINISHED);
}

/* Maps, and how long their values are in this version */
static const struct {
	const char *name;
	u32 size;
} maps[] = {
	{ "drwa_netns", sizeof(u64) },
	{ "drwa_devs", sizeof(struct drwa_dev) },
	{ "drwa_queues", sizeof(struct drwa_queue) },
	{ "drwa_counts", sizeof(struct drwa_counts) },
	{ "drwa_flows", sizeof(struct drwa_flow) },
	{ "drwa_udp", sizeof(struct drwa_udp) },
};

#define MAPS	(sizeof(maps) / sizeof(*maps))

static int get_pin(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", PINS, name);
	return bpf_obj_get(path);
}

/* Can this version read what is pinned, if anything is? */
static bool are_ours(void)
{
	struct bpf_map_info info = { 0 };
	bool ours = true;
	u32 size;
	size_t i;
	int fd;

	if (access(PINS, F_OK))
		return true;
	for (i = 0; i < MAPS && ours; i++) {
		fd = get_pin(maps[i].name);
		size = sizeof(info);
		ours = fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) &&
		       info.value_size == maps[i].size;
		if (fd >= 0)
			close(fd);
	}
	return ours;
}

static int open_pin(const char *name)
{
	static bool known;
	int fd;

	if (!known && !are_ours())
		die(FAILED, "programs of another version are attached: drwa-bpf detach");
	known = true;
	fd = get_pin(name);
	if (fd < 0 && errno == ENOENT)
		die(FAILED, "nothing is attached: drwa-bpf attach --interface NAME");
	if (fd < 0)
		die(FAILED, "%s/%s: %s", PINS, name, strerror(errno));
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

struct devs {
	int map;
	int n;
	u32 ifindex[DRWA_DEVS];
	struct drwa_dev dev[DRWA_DEVS];
};

/* Those that are there; interfaces that are gone are forgotten. */
static void read_devs(struct devs *devs)
{
	u32 keys[DRWA_DEVS];
	char name[IF_NAMESIZE];
	int i, n;

	devs->n = 0;
	devs->map = open_pin("drwa_devs");
	n = keys_of(devs->map, keys, sizeof(*keys), DRWA_DEVS);
	for (i = 0; i < n; i++) {
		if (!if_indextoname(keys[i], name)) {
			bpf_map_delete_elem(devs->map, &keys[i]);
			continue;
		}
		if (bpf_map_lookup_elem(devs->map, &keys[i], &devs->dev[devs->n]))
			continue;
		devs->ifindex[devs->n++] = keys[i];
	}
}

static struct drwa_dev *find_dev(struct devs *devs, u32 ifindex)
{
	int i;

	for (i = 0; i < devs->n; i++)
		if (devs->ifindex[i] == ifindex)
			return &devs->dev[i];
	return NULL;
}

static void write_dev(const struct devs *devs, u32 ifindex, const struct drwa_dev *dev)
{
	if (bpf_map_update_elem(devs->map, &ifindex, dev, BPF_ANY))
		die(FAILED, "cannot write to the map: %s",
		    errno == E2BIG ? "too many interfaces are governed" : strerror(errno));
}

static void clear(const char *map, u32 slot, const void *zeroes)
{
	int fd = open_pin(map);

	bpf_map_update_elem(fd, &slot, zeroes, BPF_ANY);
	close(fd);
}

/* What passed while filters were away was not seen: the programs take no offer from before
 * for the last one.
 */
static void begin_anew(u32 slot)
{
	int fd = open_pin("drwa_counts");
	struct drwa_counts counts;

	if (!bpf_map_lookup_elem(fd, &slot, &counts)) {
		/* Programs of before look at this one. */
		counts.began_us = 0;
		counts.joined = 0;
		bpf_map_update_elem(fd, &slot, &counts, BPF_ANY);
	}
	close(fd);
}

/* A place that no interface counts in */
static u32 free_slot(const struct devs *devs)
{
	static const struct drwa_counts counts;
	u32 slot;
	int i;

	for (slot = 0; slot < DRWA_DEVS; slot++) {
		for (i = 0; i < devs->n; i++)
			if (devs->dev[i].slot == slot)
				break;
		if (i < devs->n)
			continue;
		clear("drwa_counts", slot, &counts);
		return slot;
	}
	die(FAILED, "too many interfaces are governed");
}

/* Is another interface in that queue? */
static bool is_anothers(const struct devs *devs, u32 ifindex, u32 queue)
{
	int i;

	for (i = 0; i < devs->n; i++)
		if (devs->dev[i].queue == queue && devs->ifindex[i] != ifindex)
			return true;
	return false;
}

/* Interfaces of one number are in the queue of the one that was first. One that leaves them
 * leaves the queue to them, also if it was the first.
 */
static void choose_queue(struct devs *devs, u32 ifindex, struct drwa_dev *dev, u32 number)
{
	static const struct drwa_queue empty;
	u32 queue = 0;
	int i;

	dev->number = number;
	for (i = 0; number && i < devs->n; i++) {
		if (devs->dev[i].number == number && devs->ifindex[i] != ifindex) {
			dev->queue = devs->dev[i].queue;
			return;
		}
	}
	if (find_dev(devs, ifindex) && !is_anothers(devs, ifindex, dev->queue))
		return;
	/* There are as many as interfaces. */
	while (is_anothers(devs, ifindex, queue))
		queue++;
	clear("drwa_queues", queue, &empty);
	dev->queue = queue;
}

static u64 netns(void)
{
	struct stat st;

	if (stat("/proc/self/ns/net", &st))
		die(CANNOT, "cannot tell the network name space: %s", strerror(errno));
	return st.st_ino;
}

/* Interfaces have numbers in one network name space. Its map is the same in all versions. */
static bool in_same_netns(void)
{
	u64 attached;
	u32 zero = 0;
	int fd = get_pin("drwa_netns");
	bool same = fd < 0 || bpf_map_lookup_elem(fd, &zero, &attached) || attached == netns();

	if (fd >= 0)
		close(fd);
	return same;
}

static void same_netns(void)
{
	if (!in_same_netns())
		die(FAILED, "the programs are attached in another network name space");
}

/* Length of the header ahead of IP's */
static u32 link_bytes(const char *interface)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request))
		die(FAILED, "%s: %s", interface, strerror(errno));
	close(fd);
	switch (request.ifr_hwaddr.sa_family) {
	case ARPHRD_ETHER:
		return ETHERNET_BYTES;
	case ARPHRD_NONE:
	case ARPHRD_RAWIP:
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
		return 0;
	default:
		die(CANNOT, "%s: packets of its kind (ARPHRD %u) cannot be read", interface,
		    request.ifr_hwaddr.sa_family);
	}
}

/* --- Programs at an interface: of its own list since Linux 6.6 (tcx), or of filters --- */

/* BPF_TCX_INGRESS and BPF_TCX_EGRESS, which headers from before 6.6 do not have */
#define TCX_INGRESS	((enum bpf_attach_type)46)
#define TCX_EGRESS	((enum bpf_attach_type)47)

/* As many as the kernel takes (BPF_MPROG_MAX) */
#define TCX_PROGRAMS	64

static const struct {
	const char *program;
	const char *name;
	enum bpf_attach_type tcx;
	enum bpf_tc_attach_point at;
	u32 parent;
} hooks[] = {
	{ "drwa_ingress", "ingress", TCX_INGRESS, BPF_TC_INGRESS,
	  TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS) },
	{ "drwa_egress", "egress", TCX_EGRESS, BPF_TC_EGRESS,
	  TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS) },
};

#define HOOKS	(sizeof(hooks) / sizeof(*hooks))

/* Of an interface's list. Return: how many, -1: this kernel has none. */
static int tcx_programs(u32 ifindex, size_t hook, u32 ids[TCX_PROGRAMS])
{
	u32 n = TCX_PROGRAMS;

	if (!bpf_prog_query(ifindex, hooks[hook].tcx, 0, NULL, ids, &n))
		return n;
	/* As the first 6.6 says that it is empty */
	return errno == ENOENT ? 0 : -1;
}

static bool program_info(int fd, struct bpf_prog_info *info)
{
	u32 size = sizeof(*info);

	memset(info, 0, size);
	return !bpf_obj_get_info_by_fd(fd, info, &size);
}

/* The program of a hook's filter, 0: there is none of ours' priority and handle */
static u32 filter_program(u32 ifindex, size_t hook, u32 priority)
{
	LIBBPF_OPTS(bpf_tc_hook, at, .ifindex = ifindex, .attach_point = hooks[hook].at);
	LIBBPF_OPTS(bpf_tc_opts, filter, .handle = FILTER_HANDLE, .priority = priority);

	return bpf_tc_query(&at, &filter) ? 0 : filter.prog_id;
}

/* 0: none */
static u32 pinned_program(size_t hook)
{
	struct bpf_prog_info info;
	int fd = get_pin(hooks[hook].program);
	bool known = fd >= 0 && program_info(fd, &info);

	if (fd >= 0)
		close(fd);
	return known ? info.id : 0;
}

/* Is it ours, of an earlier attach maybe? Names came with 4.15. */
static bool is_ours(u32 program, size_t hook)
{
	struct bpf_prog_info info;
	int fd;
	bool ours;

	if (!program)
		return false;
	if (program == pinned_program(hook))
		return true;
	fd = bpf_prog_get_fd_by_id(program);
	ours = fd >= 0 && program_info(fd, &info) && !strcmp(info.name, hooks[hook].program);
	if (fd >= 0)
		close(fd);
	return ours;
}

static bool is_in_list(u32 ifindex, size_t hook)
{
	int i, n;
	u32 ids[TCX_PROGRAMS], program = pinned_program(hook);

	n = tcx_programs(ifindex, hook, ids);
	for (i = 0; i < n; i++)
		if (ids[i] == program)
			return true;
	return false;
}

static bool is_attached(u32 ifindex, const struct drwa_dev *dev)
{
	u32 program;
	size_t i;

	for (i = 0; i < HOOKS; i++) {
		program = pinned_program(i);
		if (!program || (dev->priority ?
				 filter_program(ifindex, i, dev->priority) != program :
				 !is_in_list(ifindex, i)))
			return false;
	}
	return true;
}

/* Those of an earlier attach as well */
static void remove_from_list(u32 ifindex, size_t hook)
{
	u32 ids[TCX_PROGRAMS];
	int i, fd, n = tcx_programs(ifindex, hook, ids);

	for (i = 0; i < n; i++) {
		if (!is_ours(ids[i], hook))
			continue;
		fd = bpf_prog_get_fd_by_id(ids[i]);
		if (fd < 0)
			continue;
		bpf_prog_detach2(fd, ifindex, hooks[hook].tcx);
		close(fd);
	}
}

static int add_to_list(u32 ifindex, size_t hook)
{
	int fd, failed = 0;

	if (is_in_list(ifindex, hook))
		return 0;
	remove_from_list(ifindex, hook);
	fd = open_pin(hooks[hook].program);
	if (bpf_prog_attach(fd, ifindex, hooks[hook].tcx, 0))
		failed = -errno;
	close(fd);
	return failed;
}

static int add_filter(u32 ifindex, size_t hook, u32 priority)
{
	LIBBPF_OPTS(bpf_tc_hook, at, .ifindex = ifindex, .attach_point = hooks[hook].at);
	LIBBPF_OPTS(bpf_tc_opts, filter, .handle = FILTER_HANDLE, .priority = priority);
	int failed;

	if (is_ours(filter_program(ifindex, hook, priority), hook))
		filter.flags = BPF_TC_F_REPLACE;
	filter.prog_fd = open_pin(hooks[hook].program);
	failed = bpf_tc_attach(&at, &filter);
	close(filter.prog_fd);
	return failed;
}

static void remove_filter(u32 ifindex, size_t hook, u32 priority)
{
	LIBBPF_OPTS(bpf_tc_hook, at, .ifindex = ifindex, .attach_point = hooks[hook].at);
	LIBBPF_OPTS(bpf_tc_opts, filter, .handle = FILTER_HANDLE, .priority = priority);

	if (is_ours(filter_program(ifindex, hook, priority), hook))
		bpf_tc_detach(&at, &filter);
}

struct filters_request {
	struct nlmsghdr head;
	struct tcmsg tc;
};

/* The filters at a hook, as the kernel tells the first of them. Return: bytes, -1: none. */
static ssize_t ask_filters(u32 ifindex, size_t hook, void *answer, size_t room)
{
	struct filters_request request = {
		.head.nlmsg_len = sizeof(request),
		.head.nlmsg_type = RTM_GETTFILTER,
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.tc.tcm_ifindex = ifindex,
		.tc.tcm_parent = hooks[hook].parent,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t bytes = -1;

	if (fd < 0)
		return -1;
	if (send(fd, &request, sizeof(request), 0) == sizeof(request))
		bytes = recv(fd, answer, room, 0);
	close(fd);
	return bytes;
}

/* Are there filters at a hook? Also if it cannot be told. */
static bool has_filters(u32 ifindex, size_t hook)
{
	struct nlmsghdr answer[8192 / sizeof(struct nlmsghdr)];
	ssize_t bytes = ask_filters(ifindex, hook, answer, sizeof(answer));

	return bytes < (ssize_t)sizeof(*answer) || answer->nlmsg_type != NLMSG_DONE;
}

/* Ours, of any priority */
static void remove_filters(u32 ifindex, size_t hook)
{
	struct nlmsghdr answer[8192 / sizeof(struct nlmsghdr)], *head = answer;
	ssize_t bytes = ask_filters(ifindex, hook, answer, sizeof(answer));
	const struct tcmsg *tc;

	for (; bytes > 0 && NLMSG_OK(head, bytes); head = NLMSG_NEXT(head, bytes)) {
		tc = NLMSG_DATA(head);
		if (head->nlmsg_type == RTM_NEWTFILTER)
			remove_filter(ifindex, hook, TC_H_MAJ(tc->tcm_info) >> 16);
	}
}

/* With the qdisc of filters, if that was made for them and nobody else uses it */
static void remove_programs(u32 ifindex, const struct drwa_dev *dev)
{
	LIBBPF_OPTS(bpf_tc_hook, both, .ifindex = ifindex,
		    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	bool used = !dev->clsact;
	size_t i;

	/* Egress first: alone, it would write windows that nobody renews. */
	for (i = HOOKS; i--;) {
		if (dev->priority)
			remove_filter(ifindex, i, dev->priority);
		else
			remove_from_list(ifindex, i);
	}
	for (i = 0; i < HOOKS && !used; i++)
		used = has_filters(ifindex, i);
	if (!used)
		bpf_tc_hook_destroy(&both);
}

/* With lambda 0 first: what is left, should this not come to its end, does nothing. */
static void forget(const struct devs *devs, u32 ifindex, const struct drwa_dev *dev)
{
	struct drwa_dev off = *dev;

	off.lambda = 0;
	bpf_map_update_elem(devs->map, &ifindex, &off, BPF_EXIST);
	remove_programs(ifindex, dev);
	bpf_map_delete_elem(devs->map, &ifindex);
}

/* Of a name that the next command takes away, if this one does not come that far */
static void unpin_all(void)
{
	if (!rename(PINS, UNFINISHED))
		unpin(UNFINISHED);
}

/* Pins that nobody is attached by may be of programs of before. */
static void unpin_unused(void)
{
	u32 keys[DRWA_DEVS];
	int i, n, map = get_pin("drwa_devs");
	char name[IF_NAMESIZE];
	bool used = !in_same_netns();

	n = map < 0 || used ? 0 : keys_of(map, keys, sizeof(*keys), DRWA_DEVS);
	for (i = 0; i < n; i++) {
		if (if_indextoname(keys[i], name))
			used = true;
		else
			bpf_map_delete_elem(map, &keys[i]);
	}
	if (map >= 0)
		close(map);
	if (!used)
		unpin_all();
}

__attribute__((noreturn))
static void fail_attach(struct devs *devs, const struct options *o, const struct drwa_dev *dev,
			size_t hook, int error)
{
	u32 program = dev->priority ? filter_program(o->ifindex, hook, dev->priority) : 0;

	forget(devs, o->ifindex, dev);
	read_devs(devs);
	if (!devs->n)
		unpin_all();
	if (dev->priority && (error == -EEXIST || error == -EINVAL))
		die(FAILED, "another filter has priority %u at %s's %s (program %u): give another "
		    "--priority; lower ones run first", dev->priority, o->interface,
		    hooks[hook].name, program);
	die(error == -EOPNOTSUPP || error == -ENOENT ? CANNOT : FAILED,
	    "cannot attach to %s's %s: %s", o->interface, hooks[hook].name, strerror(-error));
}

static void make_qdisc(struct devs *devs, const struct options *o, struct drwa_dev *dev)
{
	LIBBPF_OPTS(bpf_tc_hook, both, .ifindex = o->ifindex,
		    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	int failed = bpf_tc_hook_create(&both);

	if (!failed)
		dev->clsact = 1;
	else if (failed != -EEXIST)
		fail_attach(devs, o, dev, 0, failed);
}

static void add_programs(struct devs *devs, const struct options *o, struct drwa_dev *dev)
{
	int failed;
	size_t i;

	if (dev->priority)
		make_qdisc(devs, o, dev);
	write_dev(devs, o->ifindex, dev);
	begin_anew(dev->slot);
	for (i = 0; i < HOOKS; i++) {
		failed = dev->priority ? add_filter(o->ifindex, i, dev->priority) :
					 add_to_list(o->ifindex, i);
		if (failed)
			fail_attach(devs, o, dev, i, failed);
	}
}

/* 0: none, as the interface has a list, which the kernel runs in half the time. */
static u16 priority_at(const struct options *o)
{
	u32 ids[TCX_PROGRAMS];

	return o->priority || tcx_programs(o->ifindex, 0, ids) >= 0 ? o->priority : 1;
}

/* An interface that is governed and has the packets of @name's, too. @link: lower_ or upper_ */
static bool find_stacked(const char *name, const char *link, struct devs *devs,
			 char found[IF_NAMESIZE])
{
	size_t length = strlen(link);
	struct dirent *each;
	char path[64];
	bool any = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	dir = opendir(path);
	while (dir && !any && (each = readdir(dir))) {
		if (strncmp(each->d_name, link, length))
			continue;
		snprintf(found, IF_NAMESIZE, "%s", each->d_name + length);
		any = find_dev(devs, if_nametoindex(found)) ||
		      find_stacked(each->d_name + length, link, devs, found);
	}
	if (dir)
		closedir(dir);
	return any;
}

/* Twice the same packets: each program would take the other one's window for what TCP offers. */
static void refuse_stacked(const struct options *o, struct devs *devs)
{
	char found[IF_NAMESIZE];

	if (find_stacked(o->interface, "lower_", devs, found) ||
	    find_stacked(o->interface, "upper_", devs, found))
		die(FAILED, "%s has the packets of %s, which is governed: to govern it in place of "
		    "that, first drwa-bpf detach --interface %s", o->interface, found, found);
}

/* --- Commands --- */

static void clean_up(void)
{
	unpin(UNFINISHED);
}

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

/* What asks an attach to end waits for the next step of it. */
static void hold_signals(sigset_t *held)
{
	size_t i;

	sigemptyset(held);
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaddset(held, ends[i]);
	sigprocmask(SIG_BLOCK, held, NULL);
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

static void load(const char *path)
{
	LIBBPF_OPTS(bpf_object_open_opts, how,
		    .kernel_log_level = getenv("DRWA_VERBOSE") ? 4 : 0);
	struct bpf_program *program;
	struct bpf_object *object;
	u64 ours = netns();
	u32 zero = 0;

	atexit(clean_up);
	if (mkdir(UNFINISHED, 0700))
		die(FAILED, "%s: %s", UNFINISHED, strerror(errno));
	object = bpf_object__open_file(path, &how);
	if (!object)
		die(FAILED, "%s: %s: run make -C kernel/bpf install, or name the programs by --object",
		    path, strerror(errno));
	/* libbpf knows these sections' names in some versions only. */
	bpf_object__for_each_program(program, object) {
		bpf_program__set_type(program, BPF_PROG_TYPE_SCHED_CLS);
		/* Linux before 4.17 knows none, and no later one needs it. */
		bpf_program__set_expected_attach_type(program, 0);
	}
	if (bpf_object__load(object))
		die(CANNOT, "this kernel does not take the programs (%s); DRWA_VERBOSE=1 tells why",
		    strerror(errno));
	end_if_asked();
	if (bpf_object__pin_maps(object, UNFINISHED) ||
	    bpf_object__pin_programs(object, UNFINISHED))
		die(FAILED, "cannot pin below %s: %s", BPFFS, strerror(errno));
	if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "drwa_netns"), &zero,
				&ours, BPF_ANY))
		die(FAILED, "cannot write to the map: %s", strerror(errno));
	end_if_asked();
	if (rename(UNFINISHED, PINS))
		die(FAILED, "%s: %s", PINS, strerror(errno));
	bpf_object__close(object);
}

static void choose_traffic(struct drwa_dev *dev, const struct options *o)
{
	if (o->aqm_given)
		dev->aqm = o->aqm;
	if (o->clients_given)
		dev->local = o->local;
}

static int attach(const struct options *o)
{
	struct drwa_dev *known, dev = { .priority = priority_at(o) };
	static struct devs devs;
	sigset_t held;

	refuse_second_governor(o->interface);
	dev.l2 = link_bytes(o->interface);
	need_bpffs();
	begin_changes();
	hold_signals(&held);
	if (!o->keeps_pins)
		unpin_unused();
	if (access(PINS, F_OK))
		load(o->object);
	else
		same_netns();
	read_devs(&devs);
	known = find_dev(&devs, o->ifindex);
	if (known && known->priority != dev.priority) {
		forget(&devs, o->ifindex, known);
		read_devs(&devs);
		known = NULL;
	}
	if (!known)
		refuse_stacked(o, &devs);
	if (known) {
		known->l2 = dev.l2;
		dev = *known;
	} else {
		dev.slot = free_slot(&devs);
	}
	if (!known || o->queue_given)
		choose_queue(&devs, o->ifindex, &dev, o->queue);
	choose_traffic(&dev, o);
	/* An attach beside watch leaves it its echoes. */
	if (o->echo)
		dev.echo = o->echo;
	if (!known || !is_attached(o->ifindex, &dev))
		add_programs(&devs, o, &dev);
	dev.lambda = o->lambda;
	write_dev(&devs, o->ifindex, &dev);
	return DONE;
}

static struct drwa_dev *need_dev(struct devs *devs, const struct options *o)
{
	struct drwa_dev *dev;

	read_devs(devs);
	dev = find_dev(devs, o->ifindex);
	if (!dev)
		die(FAILED, "%s is not governed: drwa-bpf attach --interface %s", o->interface,
		    o->interface);
	return dev;
}

static int set(const struct options *o)
{
	static struct devs devs;
	struct drwa_dev *dev;
	sigset_t held;

	if (!o->lambda_given && !o->queue_given && !o->aqm_given && !o->clients_given)
		die(WRONG, "set needs --lambda, --queue, --aqm or --clients");
	if (o->lambda_given && o->lambda)
		refuse_second_governor(o->interface);
	begin_changes();
	hold_signals(&held);
	same_netns();
	dev = need_dev(&devs, o);
	if (o->lambda_given)
		dev->lambda = o->lambda;
	if (o->queue_given)
		choose_queue(&devs, o->ifindex, dev, o->queue);
	choose_traffic(dev, o);
	write_dev(&devs, o->ifindex, dev);
	return DONE;
}

/* By their names, where no pins tell, or those of another version */
static void remove_all(void)
{
	struct if_nameindex *all = if_nameindex(), *each;
	size_t i;

	for (each = all; each && each->if_index; each++) {
		for (i = HOOKS; i--;) {
			remove_from_list(each->if_index, i);
			remove_filters(each->if_index, i);
		}
	}
	if (all)
		if_freenameindex(all);
	unpin_all();
}

static int detach(const struct options *o)
{
	static struct devs devs;
	sigset_t held;
	int i;

	begin_changes();
	hold_signals(&held);
	same_netns();
	if (!o->interface && (access(PINS, F_OK) || !are_ours())) {
		remove_all();
		return DONE;
	}
	if (o->interface) {
		forget(&devs, o->ifindex, need_dev(&devs, o));
		read_devs(&devs);
	} else {
		read_devs(&devs);
		for (i = 0; i < devs.n; i++)
			forget(&devs, devs.ifindex[i], &devs.dev[i]);
		devs.n = 0;
	}
	if (!devs.n)
		unpin_all();
	return DONE;
}

/* --- Status --- */

static double ms(u32 us)
{
	return us / 1e3;
}

static u32 now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

static u32 queue_us(const struct drwa *d)
{
	return d->rtt_us > d->path_us ? d->rtt_us - d->path_us : 0;
}

static void print_end(char *text, size_t size, const u32 *address, u16 port)
{
	bool v4 = !address[1] && !address[2] && !address[3];
	char name[INET6_ADDRSTRLEN];

	inet_ntop(v4 ? AF_INET : AF_INET6, address, name, sizeof(name));
	snprintf(text, size, v4 ? "%s:%u" : "[%s]:%u", name, ntohs(port));
}

static void print_bins(const char *name, const __u64 *bins)
{
	printf(", \"%s\": [", name);
	for (int i = 0; i < DRWA_BINS; i++)
		printf("%s%llu", i ? ", " : "", bins[i]);
	putchar(']');
}

/* In JSON. A name may have all but spaces, ':' and '/'. */
static void print_quoted(const char *name)
{
	putchar('"');
	for (; *name; name++)
		if (*name == '"' || *name == '\\' || (u8)*name < ' ')
			printf("\\u%04x", *name);
		else
			putchar(*name);
	putchar('"');
}

/* What UDP is judged by, unless it is older than a second */
static void print_delay(const struct drwa_dev *dev, const char *before, const char *none)
{
	int fd = open_pin("drwa_queues");
	struct drwa_queue queue;

	if (!bpf_map_lookup_elem(fd, &dev->queue, &queue) && queue.delay_set_us &&
	    now_us() - queue.delay_set_us < DRWA_SECOND_US)
		printf("%s%.1f", before, queue.delay_us / 1000.);
	else
		printf("%s%s", before, none);
	close(fd);
}

static void print_dev(u32 ifindex, const struct drwa_dev *dev, const struct drwa_counts *c,
		      bool json, const char *comma)
{
	char name[IF_NAMESIZE] = "(gone)";
	bool attached = is_attached(ifindex, dev);

	if_indextoname(ifindex, name);
	if (!json) {
		printf("%-16s %6.2f %6u %8llu %9llu %9llu %12llu %12llu %10llu %10llu%s\n", name,
		       dev->lambda / 100., dev->number, c->flows, c->rounds, c->capped, c->came,
		       c->not_tcp, c->unknown, c->mptcp + c->is_signed + c->clients,
		       attached ? "" : "  no programs: attach again");
		if (!dev->aqm)
			return;
		printf("%-16s aqm %s: %llu flows held, %llu packets dropped; left alone: "
		       "%llu that do not react, %llu of tunnels", "", aqm_names[dev->aqm],
		       c->udp_flows, c->udp_dropped, c->udp_deaf, c->udp_tunnels);
		print_delay(dev, "; queue in ms: ", "not known");
		putchar('\n');
		return;
	}
	printf("%s{\"interface\": ", comma);
	print_quoted(name);
	printf(", \"ifindex\": %u, \"attached\": %s, \"lambda\": %.2f, "
	       "\"queue\": %u, \"priority\": %u, \"flows\": %llu, \"rounds\": %llu, "
	       "\"capped\": %llu, \"came_bytes\": %llu, \"ungoverned_bytes\": {\"not_tcp\": %llu, "
	       "\"unknown\": %llu, \"mptcp\": %llu, \"signed\": %llu, \"clients\": %llu}, "
	       "\"clients\": \"%s\", \"aqm\": \"%s\", \"udp\": {\"flows\": %llu, "
	       "\"dropped\": %llu, \"deaf\": %llu, \"tunnels\": %llu}",
	       ifindex, attached ? "true" : "false", dev->lambda / 100., dev->number,
	       dev->priority, c->flows, c->rounds, c->capped, c->came, c->not_tcp, c->unknown,
	       c->mptcp, c->is_signed, c->clients, dev->local ? "off" : "on", aqm_names[dev->aqm],
	       c->udp_flows, c->udp_dropped, c->udp_deaf, c->udp_tunnels);
	print_delay(dev, ", \"delay_ms\": ", "null");
	print_bins("delay_us_log2", c->delay_us);
	print_bins("rtt_us_log2", c->rtt_us);
	putchar('}');
}

static void print_devs(const struct devs *devs, const struct options *o)
{
	int i, fd = open_pin("drwa_counts");
	const char *comma = "";

	if (!o->json)
		printf("%-16s %6s %6s %8s %9s %9s %12s %12s %10s %10s\n", "interface", "lambda",
		       "queue", "flows", "rounds", "capped", "bytes came", "no TCP", "unknown",
		       "aside");
	for (i = 0; i < devs->n; i++) {
		struct drwa_counts counts;

		if (o->interface && devs->ifindex[i] != o->ifindex)
			continue;
		if (bpf_map_lookup_elem(fd, &devs->dev[i].slot, &counts))
			continue;
		print_dev(devs->ifindex[i], &devs->dev[i], &counts, o->json, comma);
		comma = ", ";
	}
	close(fd);
}

/* Why it is not governed, or how it is */
static const char *state_of(const struct drwa_flow *f, const struct drwa_dev *dev)
{
	static const char *const phases[] = { "start", "hold", "drain" };

	if (!f->answered)
		return "handshake";
	if (f->aside == DRWA_MPTCP)
		return "aside: MPTCP";
	if (f->aside == DRWA_SIGNED)
		return "aside: signed";
	if (f->aside)
		return "aside: unread options";
	if (!dev || !dev->lambda)
		return "off";
	if (f->forwarded && dev->local)
		return "aside: client";
	if (f->forwarded && now_us() - f->came_us > SILENT_US)
		return "silent: idle, or offloaded";
	if (!f->d.rtt_us)
		return "no sample yet";
	if (f->d.rival)
		return "beside a rival";
	return f->d.phase < 3 ? phases[f->d.phase] : "?";
}

static bool is_over(const struct drwa_flow *f)
{
	return (f->fin_came & DRWA_RST) || (f->fin_came && f->fin_sent);
}

static void print_flows(struct devs *devs, const struct options *o)
{
	u64 *keys = calloc(DRWA_FLOWS, sizeof(*keys));
	int i, n, flows = open_pin("drwa_flows");
	const char *comma = "";

	if (!keys)
		die(FAILED, "out of memory");
	n = keys_of(flows, keys, sizeof(*keys), DRWA_FLOWS);
	if (!o->json)
		printf("\n%-46s %-7s %10s %12s %9s %9s  %s\n", "connection", "ends", "rate Mb/s",
		       "window bytes", "queue ms", "RTT ms", "state");
	for (i = 0; i < n; i++) {
		char remote[64], local[64];
		struct drwa_flow f;
		const char *state;

		if (bpf_map_lookup_elem(flows, &keys[i], &f) || is_over(&f) ||
		    (o->interface && f.ifindex != o->ifindex))
			continue;
		state = state_of(&f, find_dev(devs, f.ifindex));
		print_end(remote, sizeof(remote), f.key.remote, f.key.remote_port);
		print_end(local, sizeof(local), f.key.local, f.key.local_port);
		if (o->json)
			printf("%s{\"remote\": \"%s\", \"local\": \"%s\", \"ifindex\": %u, "
			       "\"forwarded\": %s, \"timestamps\": %s, \"scale\": %u, "
			       "\"rate_mbps\": %.3f, \"window_bytes\": %u, \"queue_ms\": %.3f, "
			       "\"rtt_ms\": %.3f, \"lan_rtt_ms\": %.3f, \"state\": \"%s\"}",
			       comma, remote, local, f.ifindex, f.forwarded ? "true" : "false",
			       f.ts ? "true" : "false", f.scale, f.d.rate * 8 / 1048576., f.d.wnd,
			       ms(queue_us(&f.d)), ms(f.d.rtt_us), ms(f.lan_us), state);
		else
			printf("%-46s %-7s %10.2f %12u %9.1f %9.1f  %s\n", remote,
			       f.forwarded ? "client" : "here", f.d.rate * 8 / 1048576., f.d.wnd,
			       ms(queue_us(&f.d)), ms(f.d.rtt_us), state);
		comma = ", ";
	}
	close(flows);
	free(keys);
}

/* The kernel counts runs and their time while kernel.bpf_stats_enabled is 1. */
static void print_programs(void)
{
	struct bpf_prog_info info;
	const char *comma = "";
	size_t i;
	int fd;

	for (i = 0; i < HOOKS; i++) {
		fd = open_pin(hooks[i].program);
		if (program_info(fd, &info)) {
			printf("%s{\"program\": \"%s\", \"verified_instructions\": %u, "
			       "\"jited_bytes\": %u, \"runs\": %llu, \"run_ns\": %llu}",
			       comma, hooks[i].program, info.verified_insns, info.jited_prog_len,
			       info.run_cnt, info.run_time_ns);
			comma = ", ";
		}
		close(fd);
	}
}

static int status(const struct options *o)
{
	static struct devs devs;

	same_netns();
	if (o->interface)
		need_dev(&devs, o);
	else
		read_devs(&devs);
	if (o->json)
		printf("{\"interfaces\": [");
	print_devs(&devs, o);
	if (o->json)
		printf("], \"connections\": [");
	print_flows(&devs, o);
	if (o->json) {
		printf("], \"programs\": [");
		print_programs();
		puts("]}");
	}
	return DONE;
}

/* --- Watch --- */

static int in_child(int (*command)(const struct options *), const struct options *o)
{
	int how = FAILED;
	sigset_t none;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return FAILED;
	if (!pid) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		exit(command(o));
	}
	if (waitpid(pid, &how, 0) != pid || !WIFEXITED(how))
		return FAILED;
	return WEXITSTATUS(how);
}

/* The list of an interface (tcx) tells nobody when programs leave it. */
#define LOOK_MS		10000

/* What could not be attached to may be later; to try it is an event as well. */
#define RETRY_MS	60000

/* What watch has attached to, and what it could not; of a place that is free, ifindex is 0 */
struct watched {
	u32 ifindex[DRWA_DEVS];
	int n;
	struct failure {
		u32 ifindex;
		u64 again_ms;
	} failures[DRWA_DEVS];
};

static u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/* Until then */
static int left_ms(u64 then_ms)
{
	u64 now = now_ms();

	return then_ms > now ? then_ms - now : 0;
}

static struct failure *find_failure(struct watched *w, u32 ifindex)
{
	int i;

	for (i = 0; i < DRWA_DEVS; i++)
		if (w->failures[i].ifindex == ifindex)
			return &w->failures[i];
	return NULL;
}

static int is_watched(const struct watched *w, u32 ifindex)
{
	int i;

	for (i = 0; i < w->n; i++)
		if (w->ifindex[i] == ifindex)
			return i;
	return -1;
}

/* With its filters, and read as its packets are now */
static bool is_governed(const struct if_nameindex *each)
{
	static struct devs devs;
	struct drwa_dev *dev;
	bool governed;

	if (access(PINS, F_OK))
		return false;
	read_devs(&devs);
	dev = find_dev(&devs, each->if_index);
	governed = dev && is_attached(each->if_index, dev) && dev->l2 == link_bytes(each->if_name);
	close(devs.map);
	return governed;
}

static int ask_governed(const struct options *o)
{
	const struct if_nameindex each = {
		.if_index = o->ifindex,
		.if_name = (char *)o->interface,
	};

	return !is_governed(&each);
}

static u16 checksum(const u16 *words, size_t n)
{
	u32 sum = 0;

	while (n--)
		sum += *words++;
	sum = (sum >> 16) + (sum & 0xffff);
	return ~(sum + (sum >> 16));
}

/* One echo out of that interface. One that cannot be sent is one that is lost. */
static void send_echo(const struct options *o, const char *interface)
{
	static const u32 nothing[8] = { -1, -1, -1, -1, -1, -1, -1, -1 };
	bool v4 = o->probe.sin6_family == AF_INET;
	static bool complained;
	static u16 number;
	struct {
		u8 kind, code;
		u16 sum, id, number;
		struct drwa_echo echo;
	} packet = {
		.kind = v4 ? 8 : 128,
		.id = getpid(),
		.number = htons(number++),
		.echo = { .id = o->echo, .sent_us = htonl(now_us()) },
	};
	int fd = socket(o->probe.sin6_family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);

	if (fd < 0) {
		if (!complained)
			fprintf(stderr, "drwa-bpf: no echoes for --probe: %s\n", strerror(errno));
		complained = true;
		return;
	}
	/* The programs see the answers, nobody else wants them. */
	setsockopt(fd, v4 ? SOL_RAW : IPPROTO_ICMPV6, 1, nothing, v4 ? 4 : sizeof(nothing));
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, strlen(interface) + 1);
	if (v4)
		packet.sum = checksum((const u16 *)&packet, sizeof(packet) / 2);
	sendto(fd, &packet, sizeof(packet), 0, (const struct sockaddr *)&o->probe,
	       v4 ? sizeof(struct sockaddr_in) : sizeof(o->probe));
	close(fd);
}

/* Does UDP come that is judged, and nothing that tells how long it waited? */
static bool wants_echo(int devs, int queues, u32 ifindex)
{
	struct drwa_queue queue;
	struct drwa_dev dev;
	u32 now;

	if (bpf_map_lookup_elem(devs, &ifindex, &dev) || !dev.lambda ||
	    bpf_map_lookup_elem(queues, &dev.queue, &queue) || !queue.udp_us)
		return false;
	/* Only now, or a packet that comes meanwhile is ahead. */
	now = now_us();
	return now - queue.udp_us < DRWA_SECOND_US &&
	       (now - queue.delay_set_us >= DRWA_ECHO_US || !queue.delay_of);
}

static void probe(const struct watched *w, const struct options *o)
{
	int devs = bpf_obj_get(PINS "/drwa_devs"), queues = bpf_obj_get(PINS "/drwa_queues");
	char name[IF_NAMESIZE];

	for (int i = 0; i < w->n; i++)
		if (wants_echo(devs, queues, w->ifindex[i]) &&
		    if_indextoname(w->ifindex[i], name))
			send_echo(o, name);
	close(devs);
	close(queues);
}

static int tidy(const struct options *o)
{
	(void)o;
	begin_changes();
	unpin_unused();
	return DONE;
}

static void take_up(struct watched *w, const struct options *o, const struct if_nameindex *each)
{
	struct failure *failure = find_failure(w, each->if_index);
	struct options one = *o;
	int i = is_watched(w, each->if_index);
	bool done;

	if (failure && left_ms(failure->again_ms))
		return;
	one.interface = each->if_name;
	one.ifindex = each->if_index;
	/* Of connections that outlive an interface */
	one.keeps_pins = true;
	if (i >= 0 && in_child(ask_governed, &one) == DONE)
		return;
	if (i < 0 && w->n == DRWA_DEVS)
		return;
	is_told = failure;
	done = in_child(attach, &one) == DONE;
	is_told = false;
	if (!failure && !done)
		failure = find_failure(w, 0);
	if (failure) {
		failure->ifindex = done ? 0 : each->if_index;
		failure->again_ms = now_ms() + RETRY_MS;
	}
	if (!done)
		return;
	printf("%s is governed\n", each->if_name);
	if (i < 0)
		w->ifindex[w->n++] = each->if_index;
}

static void let_go(struct watched *w, const struct options *o, int i)
{
	struct options one = *o;
	char name[IF_NAMESIZE];

	one.ifindex = w->ifindex[i];
	one.interface = if_indextoname(one.ifindex, name);
	if (one.interface && in_child(detach, &one) == DONE)
		printf("%s is let go\n", name);
	w->ifindex[i] = w->ifindex[--w->n];
}

static void look_around(struct watched *w, const struct options *o)
{
	struct if_nameindex *all = if_nameindex(), *each;
	char name[IF_NAMESIZE];
	int i;

	/* One that was renamed is the pattern's no more; one that is gone has no name. */
	for (i = w->n - 1; i >= 0; i--)
		if (!if_indextoname(w->ifindex[i], name) || fnmatch(o->interface, name, 0))
			let_go(w, o, i);
	for (each = all; each && each->if_index; each++)
		if (!fnmatch(o->interface, each->if_name, 0))
			take_up(w, o, each);
	if (all)
		if_freenameindex(all);
	fflush(stdout);
}

/* Interfaces, their filters and qdiscs: whoever changes those may have taken ours. */
static int open_monitor(void)
{
	const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_TC,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&groups, sizeof(groups)))
		die(CANNOT, "cannot follow the interfaces: %s", strerror(errno));
	return fd;
}

/* What they say is looked up; some may have been lost. An interface that changed is tried again.
 *
 * Return: was there anything?
 */
static bool listen_to(int monitor, struct watched *w)
{
	struct nlmsghdr message[16384 / sizeof(struct nlmsghdr)], *head;
	const struct ifinfomsg *link;
	struct failure *failure;
	bool any = false;
	ssize_t bytes;

	while ((bytes = recv(monitor, message, sizeof(message), 0)) > 0 || errno == ENOBUFS) {
		any = true;
		errno = 0;
		for (head = message; bytes > 0 && NLMSG_OK(head, bytes);
		     head = NLMSG_NEXT(head, bytes)) {
			link = NLMSG_DATA(head);
			failure = find_failure(w, link->ifi_index);
			if (failure && (head->nlmsg_type == RTM_NEWLINK ||
					head->nlmsg_type == RTM_DELLINK))
				failure->ifindex = 0;
		}
	}
	return any;
}

static int watch(const struct options *o)
{
	struct pollfd wait[2] = { { .events = POLLIN }, { .events = POLLIN } };
	u64 look_ms = now_ms() + LOOK_MS, probe_ms = now_ms();
	static struct watched w;
	int patience_ms;
	sigset_t held;

	wait[0].fd = open_monitor();
	hold_signals(&held);
	wait[1].fd = signalfd(-1, &held, SFD_CLOEXEC);
	if (wait[1].fd < 0)
		die(FAILED, "cannot wait for signals: %s", strerror(errno));
	in_child(tidy, o);
	look_around(&w, o);
	do {
		patience_ms = left_ms(o->echo && probe_ms < look_ms ? probe_ms : look_ms);
		if (poll(wait, 2, patience_ms) < 0 && errno != EINTR)
			die(FAILED, "cannot wait: %s", strerror(errno));
		if (!wait[1].revents && (listen_to(wait[0].fd, &w) || !left_ms(look_ms))) {
			look_around(&w, o);
			look_ms = now_ms() + LOOK_MS;
		}
		if (o->echo && !left_ms(probe_ms)) {
			probe(&w, o);
			probe_ms = now_ms() + DRWA_ECHO_US / 1000;
		}
	} while (!wait[1].revents);
	while (w.n)
		let_go(&w, o, w.n - 1);
	in_child(tidy, o);
	return DONE;
}

static const struct option long_options[] = {
	{ "interface", required_argument, NULL, 'i' },
	{ "lambda", required_argument, NULL, 'l' },
	{ "queue", required_argument, NULL, 'q' },
	{ "aqm", required_argument, NULL, 'a' },
	{ "clients", required_argument, NULL, 'c' },
	{ "probe", required_argument, NULL, 'e' },
	{ "priority", required_argument, NULL, 'p' },
	{ "object", required_argument, NULL, 'o' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 }
};

static const struct {
	const char *name;
	int (*run)(const struct options *o);
	bool needs_interface;
} commands[] = {
	{ "attach", attach, true },
	{ "set", set, true },
	{ "status", status, false },
	{ "detach", detach, false },
	{ "watch", watch, true },
};

#define COMMANDS	(sizeof(commands) / sizeof(*commands))

/* Is one word the other with at most @edits letters more, less or changed? */
static bool is_near(const char *one, const char *other, int edits)
{
	for (; *one && *one == *other; one++)
		other++;
	if (!*one && !*other)
		return true;
	if (!edits)
		return false;
	return (*one && is_near(one + 1, other, edits - 1)) ||
	       (*other && is_near(one, other + 1, edits - 1)) ||
	       (*one && *other && is_near(one + 1, other + 1, edits - 1));
}

#define EDITS	2

/* The names that a mistyped word is nearest to */
struct guess {
	const char *word;
	const char *names[2];
	int edits;
};

static void try_name(struct guess *guess, const char *name)
{
	int length = strlen(name), edits;

	/* Half of a short name is any word. */
	for (edits = 1; edits <= EDITS && edits <= length / 2; edits++)
		if (is_near(guess->word, name, edits) ||
		    (*guess->word && !strncmp(guess->word, name, strlen(guess->word))))
			break;
	if (edits > EDITS || edits > length / 2)
		return;
	if (!guess->edits || edits < guess->edits)
		*guess = (struct guess) { guess->word, { name }, edits };
	else if (edits == guess->edits && !guess->names[1])
		guess->names[1] = name;
}

/* Ends with what was meant, if that can be told. */
static void propose(const char *given, const struct guess *guess, const char *dashes)
{
	const char *second = guess->names[1];

	if (guess->names[0])
		die(WRONG, "'%s' is unknown: did you mean %s%s%s%s%s?", given, dashes,
		    guess->names[0], second ? " or " : "", second ? dashes : "",
		    second ? second : "");
}

static void propose_command(const char *verb)
{
	struct guess guess = { .word = verb };
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		try_name(&guess, commands[i].name);
	propose(verb, &guess, "");
}

/* The colon leaves messages to us. */
#define SHORT_OPTIONS	":i:l:q:a:c:e:p:o:jhV"

__attribute__((noreturn))
static void refuse_option(const char *given)
{
	char word[32];
	struct guess guess = { .word = word };
	const struct option *each;

	/* In the middle of -jxh, the argument is not told. */
	if (optopt && (optopt == ':' || !strchr(SHORT_OPTIONS, optopt)))
		die(WRONG, "'-%c' is unknown; see --help", optopt);
	/* --json=1, which takes no value, is near to itself. */
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(given + 2, "="), given + 2);
	for (each = long_options; each->name; each++)
		try_name(&guess, each->name);
	propose(given, &guess, "--");
	die(WRONG, "'%s' is unknown; see --help", given);
}

static void parse_options(int argc, char **argv, struct options *o)
{
	int option;

	while ((option = getopt_long(argc, argv, SHORT_OPTIONS, long_options, NULL)) != -1) {
		switch (option) {
		case 'i':
			o->interface = optarg;
			break;
		case 'l':
			o->lambda = parse_lambda(optarg);
			o->lambda_given = true;
			break;
		case 'q':
			o->queue = parse_number("queue", optarg, 0, 0x7fffffff);
			o->queue_given = true;
			break;
		case 'a':
			o->aqm = parse_aqm(optarg);
			o->aqm_given = true;
			break;
		case 'c':
			o->local = parse_clients(optarg);
			o->clients_given = true;
			break;
		case 'e':
			parse_address(optarg, &o->probe);
			o->echo = echo_id();
			break;
		case 'p':
			o->priority = parse_number("priority", optarg, 1, 0xffff);
			break;
		case 'o':
			o->object = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(DONE);
		case 'V':
			puts("drwa-bpf " VERSION);
			exit(DONE);
		case ':':
			die(WRONG, "'%s' lacks its value", argv[optind - 1]);
		default:
			refuse_option(argv[optind - 1]);
		}
	}
}

int main(int argc, char **argv)
{
	struct options o = { .object = DRWA_OBJECT, .lambda = 125 };
	const char *verb;
	size_t i;

	libbpf_set_print(say);
	parse_options(argc, argv, &o);
	if (optind == argc) {
		fputs(usage, stderr);
		return WRONG;
	}
	verb = argv[optind];
	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(verb, commands[i].name))
			break;
	if (i == COMMANDS)
		propose_command(verb);
	if (i == COMMANDS || argc - optind > 1)
		die(WRONG, "'%s' is no command, or follows one, which takes options alone, as "
		    "attach --interface wwan0; see --help",
		    i == COMMANDS ? verb : argv[argc - 1]);
	if (o.echo && (commands[i].run != watch || !o.aqm))
		die(WRONG, "--probe concerns watch, with --aqm on or tunnels");
	if (commands[i].needs_interface && !o.interface)
		die(WRONG, "%s needs --interface", verb);
	if (o.interface && commands[i].run != watch) {
		o.ifindex = if_nametoindex(o.interface);
		if (!o.ifindex)
			die(WRONG, "--interface '%s': there is none", o.interface);
	}
	need_root();
	return commands[i].run(&o);
}
