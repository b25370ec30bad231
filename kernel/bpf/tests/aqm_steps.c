// SPDX-License-Identifier: GPL-2.0-only
/* drwa_aqm.h, one packet a line
 *
 * aqm_steps < STEPS: each line has the time in us, the queueing delay in us, the target in
 * us and the packet's bytes. Of each packet: 1 if the flow is bulk, 1 if it is dropped, and
 * 1 if the flow is found deaf, 2 if drops are in vain. As the programs do, judges bulk alone.
 */
#include <stdio.h>

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "drwa_aqm.h"

int main(void)
{
	static struct drwa_udp u;
	u32 now_us, q_us, target_us, bytes;

	while (scanf("%u %u %u %u", &now_us, &q_us, &target_us, &bytes) == 4) {
		int found = 0;
		bool drop = false, bulk = aqm_is_bulk(&u, now_us, bytes);

		if (bulk) {
			if (aqm_is_deaf(&u, now_us, bytes))
				found = 1;
			else if (aqm_in_vain(&u, now_us, q_us, bytes))
				found = 2;
			drop = aqm_codel(&u, now_us, q_us, target_us);
			if (drop)
				aqm_dropped(&u, q_us);
		}
		printf("%d %d %d\n", bulk, drop, found);
	}
	return 0;
}
