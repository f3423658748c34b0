/*
 * block_bytes.h - offsets of the fields in a block's header and directory entries.
 *
 * Shared by block.c, which reads blocks and draws this layout, and block_build.c, which
 * writes them. The fuzzer of blocks uses it too. Nothing else should.
 */
#ifndef WB_STORE_BLOCK_BYTES_H
#define WB_STORE_BLOCK_BYTES_H

#define BLOCK_MAGIC "WBBK"

enum {
    BLOCK_FORMAT = 1,
    LEAD_RAW_MAX = 1 << 20, /* a header that claims a longer lead is not valid */
};

enum {
    HEAD_FORMAT_AT = 4,
    HEAD_COUNT_AT = 6,
    HEAD_LEAD_COUNT_AT = 8,
    HEAD_LEAD_STORED_AT = 12,
    HEAD_LEAD_RAW_AT = 16,
    HEAD_LEAD_CHECK_AT = 20,
    HEAD_BYTES_AT = 24,
    HEAD_LOGICAL_AT = 32,
    HEAD_COMMIT_AT = 40,
    HEAD_SITE_AT = 48,
    HEAD_DIRECTORY_CHECK_AT = 56,
    HEAD_CHECK_AT = 72,
};

enum {
    ENTRY_SLOT_AT = 16,
    ENTRY_FLAGS_AT = 18,
    ENTRY_RAW_AT = 20,
    ENTRY_STORED_AT = 24,
    ENTRY_CHECK_AT = 28,
    ENTRY_DIGESTS_AT = 32,
};

_Static_assert(sizeof BLOCK_MAGIC - 1 == HEAD_FORMAT_AT, "the format follows the magic");
_Static_assert(HEAD_LEAD_STORED_AT % 4 == 0 && HEAD_BYTES_AT % 8 == 0, "fields are aligned");
_Static_assert(HEAD_DIRECTORY_CHECK_AT + 16 == HEAD_CHECK_AT, "eight zero bytes lie between the two checksums");
_Static_assert(HEAD_CHECK_AT + 8 == WB_BLOCK_HEADER_BYTES, "the checksum ends the header");
_Static_assert(WB_PAGEID_BYTES == ENTRY_SLOT_AT, "an entry starts with the page id");
_Static_assert(ENTRY_DIGESTS_AT + WB_RECORD_DIGEST_BYTES == WB_BLOCK_ENTRY_BYTES, "the digests end the entry");
_Static_assert(WB_BLOCK_PAGES_MAX <= UINT16_MAX, "counts and slots have two bytes");
_Static_assert(WB_BLOCK_LEAD_MIN + WB_BLOCK_LEAD_PAGE_MAX <= LEAD_RAW_MAX, "a lead that we build is one that we read");

#endif
