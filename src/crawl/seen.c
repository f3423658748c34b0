/*
 * seen.c - a set of fingerprints of page ids.
 *
 * A slot is 0 (free), or the upper 63 bits of a page id's lower half with the mark in bit 0. A search begins at the
 * slot that a random multiplier gives, and goes on to the next ones. The multiplier is random because page ids are a
 * hash that anybody can compute: a site must not be able to name pages that all belong into the same slot.
 *
 * This is not a table of base/map.h, because a slot is 8 bytes (an entry there is at least 16 with its mark) and
 * because large sets are in a mapped file: a million known URLs take 16 MB of it.
 */
#include "crawl/seen.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/nameless.h"
#include "os/random.h"

enum {
    CAP_MIN = 8,
    HEAP_BYTES_MAX = 64 << 10, /* a larger set is mapped */
    MARK = 1,
};

static uint64_t fingerprint(struct wb_pageid id)
{
    uint64_t print = id.lo & ~(uint64_t)MARK;

    return print ? print : 2; /* 0 is a free slot */
}

/* The slot that has the fingerprint, or the free one where it belongs. */
static uint64_t *find_slot(const struct wb_seen *seen, uint64_t print)
{
    WB_CHECK(seen->count < seen->cap); /* there is a free slot, so every search ends */
    uint64_t spread = print * seen->spread;
    /* Multiplied twice: rows of evenly spaced fingerprints would stay rows after one multiplication. */
    size_t i = (size_t)((spread ^ spread >> 32) * seen->spread >> (64 - __builtin_ctzll(seen->cap)));

    while (seen->slots[i] && (seen->slots[i] & ~(uint64_t)MARK) != print)
        i = (i + 1) & (seen->cap - 1);
    return &seen->slots[i];
}

static int allocate_slots(struct wb_seen *seen, const char *dir, size_t cap)
{
    void *memory = NULL;
    int err = 0;

    *seen = (struct wb_seen){.cap = cap, .mapped = cap * sizeof *seen->slots > HEAP_BYTES_MAX};
    if (seen->mapped)
        err = wb_nameless_map(dir, cap * sizeof *seen->slots, &memory);
    else if (!(memory = wb_alloc_zero(cap, sizeof *seen->slots)))
        err = WB_E_NOMEM;
    seen->slots = memory;
    return err;
}

static int grow(struct wb_seen *seen, const char *dir)
{
    struct wb_seen grown;
    int err;

    if (seen->cap > SIZE_MAX / 32)
        return wb_fail_nomem();
    err = allocate_slots(&grown, dir, seen->cap ? 2 * seen->cap : CAP_MIN);
    if (err < 0)
        return err;
    grown.spread = seen->spread;
    if (grown.spread == 0) {
        wb_random_bytes(&grown.spread, sizeof grown.spread);
        grown.spread |= 1;
    }
    for (size_t i = 0; i < seen->cap; i++)
        if (seen->slots[i])
            *find_slot(&grown, seen->slots[i] & ~(uint64_t)MARK) = seen->slots[i];
    grown.count = seen->count;
    wb_seen_release(seen);
    *seen = grown;
    return 0;
}

int wb_seen_add(struct wb_seen *seen, const char *dir, struct wb_pageid id)
{
    uint64_t print = fingerprint(id), *slot;

    if (seen->cap && *find_slot(seen, print))
        return 0;
    if (4 * (seen->count + 1) > 3 * seen->cap) {
        int err = grow(seen, dir);
        if (err < 0)
            return err;
    }
    slot = find_slot(seen, print);
    WB_CHECK(*slot == 0);
    *slot = print;
    seen->count++;
    return 1;
}

bool wb_seen_has(const struct wb_seen *seen, struct wb_pageid id)
{
    return seen->cap && *find_slot(seen, fingerprint(id));
}

bool wb_seen_marked(const struct wb_seen *seen, struct wb_pageid id)
{
    return seen->cap && *find_slot(seen, fingerprint(id)) & MARK;
}

void wb_seen_mark(struct wb_seen *seen, struct wb_pageid id, bool mark)
{
    uint64_t *slot = seen->cap ? find_slot(seen, fingerprint(id)) : NULL;

    if (slot && *slot)
        *slot = mark ? *slot | MARK : *slot & ~(uint64_t)MARK;
}

void wb_seen_release(struct wb_seen *seen)
{
    if (seen->mapped)
        wb_nameless_unmap(seen->slots, seen->cap * sizeof *seen->slots);
    else
        wb_free(seen->slots);
    *seen = WB_SEEN_INIT;
}

size_t wb_seen_bytes(const struct wb_seen *seen)
{
    return seen->cap * sizeof *seen->slots;
}
