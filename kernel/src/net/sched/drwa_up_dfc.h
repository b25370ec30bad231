/* SPDX-License-Identifier: GPL-2.0-only */
/* DRWA on the uplink: who tells the gates what the modem takes, and is asked by them */
#ifndef _DRWA_UP_DFC_H
#define _DRWA_UP_DFC_H

#include <linux/types.h>

struct sk_buff;

/* The driver's */
int rmnet_qmap_send(struct sk_buff *skb, u8 ch, bool flush);

/* A driver's word of a grant: unasked, or an answer, as it is or less what is on its way */
enum drwa_up_word_kind {
	DRWA_UP_UNASKED,
	DRWA_UP_ANSWER,
	DRWA_UP_ADJUSTED,
};

void drwa_up_grant(u8 mux_id, u8 bearer_id, u32 grant, enum drwa_up_word_kind kind);
void drwa_up_sent(const char *name, u8 bearer_id, u32 len);
void drwa_up_set_query(void (*query)(u8 mux_id, u8 bearer_id));

#endif /* _DRWA_UP_DFC_H */
