/*
 * block.h - a block of pages as bytes: building one, checking one, reading pages from it.
 *
 * Neighbouring pages, mostly of one site, are stored together in a block, because they
 * have a lot of text in common. A run of pages from the middle of the block, the *lead*
 * (64 KiB or a little more), is compressed as one zstd frame. Every other page is a
 * frame of its own that uses the decompressed lead as its dictionary:
 *
 *   +--------+-----------+------------+---------+---------+- -
 *   | header | directory | lead frame | frame   | frame   |
 *   +--------+-----------+------------+---------+---------+- -
 *     80       68 a page   pages 9-12   page 0    page 1
 *
 * This has two consequences. Reading one page costs decompressing the lead and that
 * page, however large the block is. And a dead page is removed by leaving out its frame,
 * without compressing anything again (wb_block_thin).
 *
 * The digests at the start of each page record are kept uncompressed in the directory:
 * random bytes in the middle of text would cost zstd twice their size. What is
 * compressed is the rest of the record, called its *text* below.
 *
 * Segments are made of blocks (segment.h), and log_flush.c and log_compact.c build them.
 * block.c draws the bytes; docs/formats/segment.md is the reference for them, and
 * docs/design/0001-blocks.md has the measurements behind the sizes chosen here.
 *
 * Nothing in this interface touches a file. A builder or reader belongs to one thread.
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
    WB_BLOCK_RAW_TARGET = 1 << 20,      /* a block is closed when its records reach this many bytes */
    WB_BLOCK_LEAD_MIN = 64 << 10,       /* the lead is closed when it reaches this many bytes */
    WB_BLOCK_LEAD_PAGE_MAX = 256 << 10, /* a page larger than this is never part of the lead */
};

/* The header of a block. */
struct wb_block_head {
    uint32_t count;             /* entries in the directory */
    uint32_t lead_count;        /* how many of them have WB_BLOCK_ENTRY_LEAD; they are consecutive */
    uint32_t lead_stored_bytes; /* the lead as stored, compressed */
    uint32_t lead_raw_bytes;    /* the lead decompressed */
    uint32_t lead_check;        /* checksum of the stored lead */
    uint64_t bytes;             /* of the whole block, header included */
    uint64_t logical;           /* the block's name in its segment: its logical offset (segment.h) */
    uint64_t commit;            /* the last commit of the catalog when the block was written */
    uint64_t site;              /* hash of the site if all pages belong to one, otherwise 0 */
    uint64_t directory_check;   /* checksum of the directory */
};

enum wb_block_entry_flags {
    WB_BLOCK_ENTRY_LEAD = 1, /* the page is in the lead and has no frame of its own */
    WB_BLOCK_ENTRY_DEAD = 2, /* the page is dead, but its bytes are still needed as part of the lead */
};

/* One entry of the directory: one page. */
struct wb_block_entry {
    struct wb_pageid id;
    uint16_t slot;         /* the page's number in the block, which never changes */
    uint16_t flags;        /* enum wb_block_entry_flags */
    uint32_t raw_bytes;    /* length of the record's text, decompressed */
    uint32_t stored_bytes; /* length of its frame; 0 in the lead */
    uint32_t check;        /* checksum of its frame; 0 in the lead */
    const char *digests;   /* WB_RECORD_DIGEST_BYTES, borrowed from the directory */
};

/* ---- building --------------------------------------------------------------- */

/* Holds the compression contexts; can be used for any number of blocks. */
struct wb_block_builder;
int wb_block_builder_new(struct wb_block_builder **builder_out);
void wb_block_builder_free(struct wb_block_builder *builder);

/* A page to be stored in a block. */
struct wb_block_page {
    struct wb_pageid id;
    struct wb_slice record;
    uint64_t site;         /* hash of its site */
    uint32_t stored_bytes; /* output: the bytes that removing the page later would free (0 in the lead) */
    uint16_t slot;         /* input if slots_given is set; otherwise output: the position in the block */
};

/*
 * Appends a block of 1 to WB_BLOCK_PAGES_MAX pages to block_out. On error block_out is
 * unchanged. The caller stamps the block when it knows where the block will be stored.
 */
int wb_block_build(struct wb_block_builder *builder, struct wb_block_page *pages, size_t count, bool slots_given,
                   struct wb_buf *block_out);

/* Fills in the logical offset and the commit number, and computes the header's checksum. */
void wb_block_stamp(char *block, uint64_t logical, uint64_t commit);

/* ---- reading ------------------------------------------------------------------ */

/* Reads and checks a header of WB_BLOCK_HEADER_BYTES. WB_E_CORRUPT, WB_E_NEWER; the message does not name the file. */
int wb_block_head_read(const char *bytes, struct wb_block_head *head_out);

/* Length of header and directory together: where the lead starts. */
static inline size_t wb_block_directory_end(const struct wb_block_head *head)
{
    return WB_BLOCK_HEADER_BYTES + (size_t)head->count * WB_BLOCK_ENTRY_BYTES;
}

/* Checks the directory that follows the header: its checksum, its order, and that its lengths add up to the block's. */
int wb_block_directory_check(const struct wb_block_head *head, const char *directory);

/* Reads entry number index of a directory that was checked. */
struct wb_block_entry wb_block_entry_read(const char *directory, size_t index);

/* Finds the entry of a slot; false if there is none. Entries are sorted by slot. */
bool wb_block_find_slot(const struct wb_block_head *head, const char *directory, uint16_t slot, size_t *index_out);

/* Where the frame of entry `index` starts, counted from the start of the block. */
uint64_t wb_block_frame_at(const struct wb_block_head *head, const char *directory, size_t index);

/* Where the text of entry `index`, which must be in the lead, starts in the decompressed lead. */
size_t wb_block_lead_at(const char *directory, size_t index);

/* Holds the decompression context. */
struct wb_block_reader;
int wb_block_reader_new(struct wb_block_reader **reader_out);
void wb_block_reader_free(struct wb_block_reader *reader);

/* Checks and decompresses the lead; replaces what lead_out held. */
int wb_block_read_lead(struct wb_block_reader *reader, const struct wb_block_head *head, const char *frame,
                       struct wb_buf *lead_out);

/* A record, digests and text, of an entry in the lead. lead_at is from wb_block_lead_at(). */
int wb_block_lead_record(const struct wb_block_entry *entry, struct wb_slice lead, size_t lead_at,
                         struct wb_buf *record_out);

/* Only the text of the same record, without copying it. */
static inline struct wb_slice wb_block_lead_text(const struct wb_block_entry *entry, struct wb_slice lead,
                                                 size_t lead_at)
{
    return wb_slice(lead.ptr + lead_at, entry->raw_bytes);
}

/* Only the text of a record that has a frame of its own. lead is empty if the block has none. */
int wb_block_read_text(struct wb_block_reader *reader, const struct wb_block_entry *entry, const char *frame,
                       struct wb_slice lead, struct wb_buf *text_out);

/* The whole record of an entry that has a frame of its own. */
int wb_block_read_frame(struct wb_block_reader *reader, const struct wb_block_entry *entry, const char *frame,
                        struct wb_slice lead, struct wb_buf *record_out);

/* ---- thinning ------------------------------------------------------------------- */

/*
 * Appends a copy of a checked block to block_out, without the pages marked in dead (one
 * flag for each entry of the directory). Frames are copied as they are. Dead pages in the
 * lead keep their bytes, because other frames need them, and are flagged as dead. If no
 * page is alive, nothing is appended.
 */
int wb_block_thin(const struct wb_block_head *head, const char *block, const bool *dead, struct wb_buf *block_out);

#endif
