/* SPDX-License-Identifier: GPL-2.0-only */
/* DRWA on the uplink: who tells the gates what the modem takes, and is asked by them */
#ifndef _DRWA_UP_DFC_H
#define _DRWA_UP_DFC_H

#include <linux/types.h>

struct sk_buff;

/* The driver's */
int rmnet_qmap_send(struct sk_buff *skb, u8 ch, bool flush);

void drwa_up_grant(u8 mux_id, u8 bearer_id, u32 grant, bool adjusted);
void drwa_up_set_query(void (*query)(u8 mux_id, u8 bearer_id));

#endif /* _DRWA_UP_DFC_H */
