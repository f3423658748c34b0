/* block_bytes.h - where the fields of a block lie; private to the two files that read and build blocks. */
#ifndef WB_STORE_BLOCK_BYTES_H
#define WB_STORE_BLOCK_BYTES_H

#define BLOCK_MAGIC "WBBK"

enum {
    BLOCK_FORMAT = 1,
    LEAD_RAW_MAX = 1 << 20,
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

_Static_assert(HEAD_CHECK_AT + 8 == WB_BLOCK_HEADER_BYTES, "the checksum ends the header");
_Static_assert(ENTRY_DIGESTS_AT + WB_RECORD_DIGEST_BYTES == WB_BLOCK_ENTRY_BYTES, "the digests end the entry");

#endif
