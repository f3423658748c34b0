/*
 * slots.h - private to stream: the file that remembers the place of a named stream, as bytes: slots, of which the
 * newest one that is whole counts. named.c decides when which one is written.
 *
 *   slots 0 and 1   written in turns and synced: while one of them is written, the other one is whole
 *   slot 2          written in between without syncing
 */
#ifndef WB_STREAM_SLOTS_H
#define WB_STREAM_SLOTS_H

#include "stream/token.h"

enum { WB_SLOT_BYTES = 8192, WB_SLOT_QUICK = 2 };

/* What a file says. */
struct wb_slots {
    bool valid, finished;
    uint64_t sequence;
    unsigned synced_slot;     /* 0 or 1: the newest of the two that are synced... */
    uint64_t synced_sequence; /* ...and its sequence */
    bool damaged;             /* a slot is damaged ... */
    uint64_t damaged_at;      /* ... here ... */
    uint64_t lost;            /* ... and this was its sequence, as far as that is known; or UINT64_MAX */
    bool torn;                /* a slot was being written when the power failed ... */
    uint64_t torn_at;         /* ... which is this one */
    int64_t saved_ms;
    size_t token_bytes;
    char token[WB_TOKEN_TEXT_MAX];
};

/* Reads a file; slots_out->valid is false if no slot is whole. WB_E_NOTFOUND, WB_E_NEWER. */
int wb_slots_read(const char *path, struct wb_slots *slots_out);

/* Whether the newest place that was saved is damaged, so that the one before counts. */
bool wb_slots_set_back(const struct wb_slots *slots);

/* What is saved next must have a greater sequence than this. */
uint64_t wb_slots_newest(const struct wb_slots *slots);

/* The bytes of a slot; the token is at most WB_TOKEN_TEXT_MAX bytes. */
void wb_slots_fill(uint64_t sequence, struct wb_slice token, bool finished, char slot_out[WB_SLOT_BYTES]);

#endif
