/*
 * block.h - a block of pages as bytes: building, checking, taking pages out.
 *
 * A block holds pages that are neighbours, mostly of one site. A run of pages in its
 * middle (the lead, 64 KiB or a little more) is compressed together; each
 * other page is a zstd frame of its own with the lead as its dictionary. So one
 * page costs the lead and itself to read, however large the block is, and a page
 * that died is dropped by leaving its frame out: nothing is compressed again.
 * A record's digests are kept in the directory, because as noise among text they
 * cost zstd twice their size.
 *
 *   +--------+-----------+------------+---------+---------+- -
 *   | header | directory | lead frame | frame   | frame   |
 *   +--------+-----------+------------+---------+---------+- -
 *     80       68 a page   pages 9..12  page 0    page 1
 *
 * docs/formats/segment.md gives the bytes; docs/design/0001-blocks.md the
 * measurements behind the sizes.
 */
#ifndef WB_STORE_BLOCK_H
#define WB_STORE_BLOCK_H

#include "base/buf.h"
#include "page/page.h"
#include "url/url.h"

enum {
    WB_BLOCK_HEADER_BYTES = 80,
    WB_BLOCK_ENTRY_BYTES = 68,
    WB_BLOCK_PAGES_MAX = 4096,
    WB_BLOCK_RAW_TARGET = 1 << 20, /* a block is closed when its records reach this */
    WB_BLOCK_LEAD_MIN = 64 << 10,  /* the lead is closed when it reaches this */
    WB_BLOCK_LEAD_PAGE_MAX = 256 << 10, /* a larger page is never in the lead */
};

struct wb_block_head {
    uint32_t count;      /* directory entries */
    uint32_t lead_count; /* how many of them, from the first with WB_BLOCK_ENTRY_LEAD, are in the lead */
    uint32_t lead_stored_bytes, lead_raw_bytes, lead_check;
    uint64_t bytes;      /* the whole block */
    uint64_t logical;    /* where the block stands in its segment's logical order; its name */
    uint64_t commit;     /* the catalog's last commit when the block was written */
    uint64_t site;       /* hash of the site where all pages are of one, else 0 */
    uint64_t directory_check;
};

enum wb_block_entry_flags {
    WB_BLOCK_ENTRY_LEAD = 1, /* the record is in the lead; stored is 0 */
    WB_BLOCK_ENTRY_DEAD = 2, /* gone; only its bytes in the lead are still needed */
};

struct wb_block_entry {
    struct wb_pageid id;
    uint16_t slot;  /* the page's number in the block, for ever */
    uint16_t flags;
    uint32_t raw_bytes;    /* of the record without its digests */
    uint32_t stored_bytes, check;
    const char *digests; /* WB_RECORD_DIGEST_BYTES, borrowed from the directory */
};

/* ---- building --------------------------------------------------------------- */

struct wb_block_builder; /* compression contexts; one per thread */
int wb_block_builder_new(struct wb_block_builder **builder_out);
void wb_block_builder_free(struct wb_block_builder *builder);

struct wb_block_page {
    struct wb_pageid id;
    struct wb_slice record;
    uint64_t site;   /* hash */
    uint32_t stored_bytes; /* set: the bytes that leaving the page out would give back (0 in the lead) */
    uint16_t slot;   /* taken where slots_given, else set to the position */
};

/* Appends one block of 1 to WB_BLOCK_PAGES_MAX pages; logical and commit are stamped later. */
int wb_block_build(struct wb_block_builder *builder, struct wb_block_page *pages, size_t count, bool slots_given,
                   struct wb_buf *block_out);

/* Sets what is known only when the block is placed, and the header's checksum. */
void wb_block_stamp(char *block, uint64_t logical, uint64_t commit);

/* ---- reading ------------------------------------------------------------------ */

/* Reads and checks a header. WB_E_CORRUPT with a message (without file name) where it is not one. */
int wb_block_head_read(const char *bytes, struct wb_block_head *head_out);

/* Bytes of header and directory. */
static inline size_t wb_block_directory_end(const struct wb_block_head *head)
{
    return WB_BLOCK_HEADER_BYTES + (size_t)head->count * WB_BLOCK_ENTRY_BYTES;
}

/* Checks the directory (count entries after the header) as a whole: checksum, and that its lengths fill the block. */
int wb_block_directory_check(const struct wb_block_head *head, const char *directory);
struct wb_block_entry wb_block_entry_read(const char *directory, size_t index);

/* The index of the entry with that slot; false where there is none. Entries are in order of slot. */
bool wb_block_find_slot(const struct wb_block_head *head, const char *directory, uint16_t slot, size_t *index_out);

/* Where the frame of entry `index` begins, counted from the block's start. */
uint64_t wb_block_frame_at(const struct wb_block_head *head, const char *directory, size_t index);

/* Where the record of a lead entry begins in the decompressed lead. */
size_t wb_block_lead_at(const char *directory, size_t index);

struct wb_block_reader; /* a decompression context */
int wb_block_reader_new(struct wb_block_reader **reader_out);
void wb_block_reader_free(struct wb_block_reader *reader);

/* The decompressed lead: lead_raw_bytes bytes into lead_out (replacing what it held). */
int wb_block_read_lead(struct wb_block_reader *reader, const struct wb_block_head *head, const char *frame, struct wb_buf *lead_out);

/* The record of an entry in the lead, which begins at lead_at in it. */
int wb_block_lead_record(const struct wb_block_entry *entry, struct wb_slice lead, size_t lead_at, struct wb_buf *record_out);

/* The same record as text alone, without its digests: nothing is copied. */
static inline struct wb_slice wb_block_lead_text(const struct wb_block_entry *entry, struct wb_slice lead, size_t lead_at)
{
    return wb_slice(lead.ptr + lead_at, entry->raw_bytes);
}

/* The text of an entry that is not in the lead. */
int wb_block_read_text(struct wb_block_reader *reader, const struct wb_block_entry *entry, const char *frame,
                       struct wb_slice lead, struct wb_buf *text_out);

/* The record of an entry that is not in the lead; lead may be empty where the block has none. */
int wb_block_read_frame(struct wb_block_reader *reader, const struct wb_block_entry *entry, const char *frame,
                        struct wb_slice lead, struct wb_buf *record_out);

/* ---- thinning out --------------------------------------------------------------- */

/*
 * Copies a whole, checked block without the entries marked dead, frames as they
 * are. Dead pages of the lead stay as bytes (the other frames need them) unless
 * nothing else lives, which gives an empty block_out.
 */
int wb_block_thin(const struct wb_block_head *head, const char *block, const bool *dead, struct wb_buf *block_out);

#endif
