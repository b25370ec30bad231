// SPDX-License-Identifier: GPL-2.0-only
/* tc's part for the qdisc drwa_up, which iproute2 loads when it meets the name:
 *
 *	gcc -O2 -shared -fPIC -I../../src/include/uapi -o q_drwa_up.so q_drwa_up.c
 *	TC_LIB_DIR=$PWD tc qdisc add dev rmnet_data0 root drwa_up target 10ms
 *
 * iproute2 installs no headers for it; what follows is of its tc_util.h and
 * libnetlink.h, 5.x and 6.x.
 */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/drwa_up.h>

#define MAX_MESSAGE	1024

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(struct qdisc_util *qu, struct rtattr *opt, __u32 index,
			 _Bool *has);
};

int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr(struct rtattr *tb[], int max, struct rtattr *rta, int len);
int get_time(unsigned int *time_us, const char *text);

static int explain(void)
{
	fprintf(stderr,
		"Usage: ... drwa_up [ target TIME ] [ mux ID ]\n"
		"  TIME  what may wait in the modem's own queue, %u to %u us; 10ms unless told\n"
		"  ID    mux_id of the modem's interface, as `ip -d link` shows it, whose grants\n"
		"        are heard; 0: none\n",
		DRWA_UP_TARGET_MIN_US, DRWA_UP_TARGET_MAX_US);
	return -1;
}

static int parse(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
		 const char *dev)
{
	unsigned int target_us = 0, mux = 0;
	_Bool with_mux = 0;
	struct rtattr *nest;
	char *end;

	(void)qu;
	(void)dev;
	for (; argc > 0; argc -= 2, argv += 2) {
		if (argc < 2)
			return explain();
		if (!strcmp(argv[0], "mux")) {
			mux = strtoul(argv[1], &end, 0);
			if (*end || mux > 255) {
				fprintf(stderr, "drwa_up: mux \"%s\" is not from 0 to 255\n", argv[1]);
				return -1;
			}
			with_mux = 1;
			continue;
		}
		if (strcmp(argv[0], "target"))
			return explain();
		if (get_time(&target_us, argv[1]) || target_us < DRWA_UP_TARGET_MIN_US ||
		    target_us > DRWA_UP_TARGET_MAX_US) {
			fprintf(stderr, "drwa_up: target \"%s\" is not from %u to %u us\n",
				argv[1], DRWA_UP_TARGET_MIN_US, DRWA_UP_TARGET_MAX_US);
			return -1;
		}
	}
	nest = addattr_nest(n, MAX_MESSAGE, TCA_OPTIONS);
	if (target_us)
		addattr_l(n, MAX_MESSAGE, TCA_DRWA_UP_TARGET, &target_us, sizeof(target_us));
	if (with_mux)
		addattr_l(n, MAX_MESSAGE, TCA_DRWA_UP_MUX, &mux, sizeof(mux));
	addattr_nest_end(n, nest);
	return 0;
}

static int print(struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_DRWA_UP_MAX + 1] = {};
	unsigned int target_us, mux;

	(void)qu;
	if (!opt)
		return 0;
	parse_rtattr(tb, TCA_DRWA_UP_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));
	if (tb[TCA_DRWA_UP_TARGET] && RTA_PAYLOAD(tb[TCA_DRWA_UP_TARGET]) >= sizeof(target_us)) {
		memcpy(&target_us, RTA_DATA(tb[TCA_DRWA_UP_TARGET]), sizeof(target_us));
		fprintf(f, "target %.1fms ", target_us / 1000.0);
	}
	if (tb[TCA_DRWA_UP_MUX] && RTA_PAYLOAD(tb[TCA_DRWA_UP_MUX]) >= sizeof(mux)) {
		memcpy(&mux, RTA_DATA(tb[TCA_DRWA_UP_MUX]), sizeof(mux));
		if (mux)
			fprintf(f, "mux %u ", mux);
	}
	return 0;
}

static int print_statistics(struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	static const char *const phase[] = { "start", "hold", "drain", "open" };
	struct tc_drwa_up_xstats st = {};
	size_t len;

	(void)qu;
	if (!xstats)
		return 0;
	len = RTA_PAYLOAD(xstats);
	memcpy(&st, RTA_DATA(xstats), len < sizeof(st) ? len : sizeof(st));
	fprintf(f, "  %s rate %.2fMbit window %uB in flight %uB delay %.1fms rtt %.1fms\n",
		phase[st.phase & 3], st.rate * 8 / 1e6, st.window_bytes, st.in_flight_bytes,
		st.delay_us / 1e3, st.age_us / 1e3);
	fprintf(f, "  marks %u answers %u shorts %u drains %u jumps %u opened %u%s",
		st.marks, st.answers, st.shorts, st.drains, st.jumps, st.opened,
		st.told ? " told" : "");
	return 0;
}

struct qdisc_util drwa_up_qdisc_util = {
	.id		= "drwa_up",
	.parse_qopt	= parse,
	.print_qopt	= print,
	.print_xstats	= print_statistics,
};
