/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LAB_QUIC_H
#define LAB_QUIC_H

#include <stdbool.h>
#include <stdint.h>

/* 1350 bytes of payload, as Chromium's QUIC sends on most paths. */
enum { QUIC_PAYLOAD = 1350 };

/* A frame of ACK (RFC 9000, 19.3); several in any RTT */
enum { QUIC_SHORT = 40, QUIC_SHORT_US = 5000 };

/* RFC 9000, 18.2: the default of max_ack_delay. */
enum { QUIC_ACK_DELAY_US = 25000 };

/*
 * The sender of a transfer over UDP that is like QUIC: it numbers its packets,
 * learns from acknowledgements what has arrived, and controls its congestion
 * window by loss alone. What is lost is not sent again, since nobody reads it.
 */
struct quic {
	uint64_t next;		/* number of the next packet */
	uint64_t highest;	/* one more than the highest that arrived */
	uint64_t received;
	uint64_t flight_from;	/* what is older is no longer in flight */
	uint64_t recovery_until;
	double cwnd, ssthresh, reno, w_max;	/* packets */
	double k_s;
	int64_t epoch_us, srtt_us, progress_us;
	bool blocked;		/* by the host, so that the window says nothing */
};

/* The first message of the receiver has neither, and asks for data. */
struct quic_ack {
	uint64_t highest, received;
	int64_t sent_us;	/* of the packet with the highest number */
};

struct quic_packet {
	uint64_t number;
	int64_t sent_us;
	char pad[QUIC_PAYLOAD - 16];
};

void quic_start(struct quic *q, int64_t now_us);
void quic_acked(struct quic *q, const struct quic_ack *ack, int64_t now_us);
bool quic_may_send(const struct quic *q);
/* When the silence has lasted too long, and what to do then. */
int64_t quic_timeout_us(const struct quic *q);
void quic_timed_out(struct quic *q, int64_t now_us);

#endif
