/*
 * block_bytes.h - offsets of the fields in a block's header and directory.
 *
 * Shared by block.c, which reads blocks and draws this layout, and block_build.c, which
 * writes them. The tests and the fuzzer of blocks use it too. Nothing else should.
 */
#ifndef WB_STORE_BLOCK_BYTES_H
#define WB_STORE_BLOCK_BYTES_H

#include "block/block.h"

#define BLOCK_MAGIC "WBBK"

enum {
    BLOCK_FORMAT = 1,
    BLOCK_NO_BASE = 0xffff,
    BLOCK_SLOTS_MAX = 0xffff,
};

/* The header. */
enum {
    HEAD_FORMAT_AT = 4,
    HEAD_COUNT_AT = 6,
    HEAD_FRAMES_AT = 8,
    HEAD_LEAD_AT = 10,
    HEAD_DIRECTORY_BYTES_AT = 12,
    HEAD_NEXT_SLOT_AT = 16,
    HEAD_ZERO_AT = 20,
    HEAD_BYTES_AT = 24,
    HEAD_LOGICAL_AT = 32,
    HEAD_COMMIT_AT = 40,
    HEAD_SITE_AT = 48,
    HEAD_DIRECTORY_CHECK_AT = 56,
    HEAD_CHECK_AT = 72,
};

/* A row of the table of frames. */
enum {
    FRAME_STORED_AT = 0,
    FRAME_RAW_AT = 4,
    FRAME_CHECK_AT = 8,
    FRAME_HEADS_AT = 12,
    FRAME_BASE_AT = 16,
    FRAME_COUNT_AT = 18,
    FRAME_ROW_BYTES = 20,
};

/* The first byte of an entry. */
enum {
    ENTRY_DEAD = 1,
    ENTRY_SAME_PAGE = 2, /* no id follows: it is that of the entry before */
    ENTRY_SLOT = 4,      /* the slot follows; otherwise it is the next one */
    ENTRY_OLD = 8,       /* it was not the latest version of its page when the block was written */
    ENTRY_FLAGS_KNOWN = 15,
};

_Static_assert(sizeof BLOCK_MAGIC - 1 == HEAD_FORMAT_AT, "the format follows the magic");
_Static_assert(HEAD_DIRECTORY_BYTES_AT % 4 == 0 && HEAD_BYTES_AT % 8 == 0, "fields are aligned");
_Static_assert(HEAD_DIRECTORY_CHECK_AT + 16 == HEAD_CHECK_AT, "eight zero bytes lie between the two checksums");
_Static_assert(HEAD_CHECK_AT + 8 == WB_BLOCK_HEADER_BYTES, "the checksum ends the header");
_Static_assert((int)FRAME_COUNT_AT + 2 == (int)FRAME_ROW_BYTES, "the number of entries ends a row");
_Static_assert((int)WB_BLOCK_PAGES_MAX < (int)BLOCK_NO_BASE, "numbers of entries, frames and slots have two bytes");
_Static_assert((int)WB_BLOCK_PAGES_FULL <= (int)WB_BLOCK_PAGES_MAX, "a block that is full is valid");

#endif
