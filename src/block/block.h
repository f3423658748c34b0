/*
 * block.h - a block of pages as bytes: building one, checking one, reading pages from it,
 * leaving pages out of it and adding older versions to it.
 *
 * Neighbouring pages, mostly of one site, are stored together in a block, because they
 * have a lot of text in common. A block consists of *frames*, which are compressed one by
 * one. A frame holds one page or several small ones. It may have a *base*: another frame
 * of the block whose decompressed bytes are its dictionary.
 *
 *   +--------+-----------+------------+---------+---------+---------+- -
 *   | header | directory | lead       | frame 0 | frame 2 | history |
 *   +--------+-----------+------------+---------+---------+---------+- -
 *     80 B                 = frame 1 <--- base ---'  '-- base --'
 *
 * The frame without base that most others are based on is called the *lead*: a run of
 * pages from the middle of the block, 32 KiB or a little more. Older versions of a page
 * are in frames of their own, *history*, based on the frame that has the page. There is
 * nothing deeper: lead <- frame <- history.
 *
 * This has three consequences. Reading one page costs decompressing the lead and one
 * frame, and an older version one frame more, however large the block is. An old version
 * costs little more than what makes it different. And a dead page is removed by leaving out
 * its frame, or by compressing that frame again without it (wb_block_rewrite).
 *
 * Each record is stored in three parts. Its digests are uncompressed in the directory:
 * random bytes in the middle of text would cost zstd twice their size. A frame has first
 * the *heads* of all its records, which is everything before the body, and then the
 * *bodies*. So the facts about pages are read without decompressing their bodies.
 *
 * Segments are made of blocks (segment.h). block.c draws the bytes; docs/formats/segment.md is
 * the reference for them, and docs/design/0001-blocks.md has the measurements behind the sizes
 * chosen here.
 *
 * Nothing in this interface touches a file. A builder or reader belongs to one thread.
 */
#ifndef WB_STORE_BLOCK_H
#define WB_STORE_BLOCK_H

#include "base/buf.h"
#include "base/vec.h"
#include "page/page.h"
#include "url/url.h"

enum {
    WB_BLOCK_HEADER_BYTES = 80,
    WB_BLOCK_PAGES_MAX = 16384,         /* entries of a directory, older versions included */
    WB_BLOCK_PAGES_FULL = 4096,         /* a block is closed when it has this many pages, ... */
    WB_BLOCK_RAW_TARGET = 1 << 20,      /* ... or when its records reach this many bytes */
    WB_BLOCK_LEAD_MIN = 32 << 10,       /* the lead is closed when it reaches this many bytes */
    WB_BLOCK_LEAD_PAGE_MAX = 256 << 10, /* a page larger than this is never part of the lead */
    WB_BLOCK_FRAME_RAW = 32 << 10,      /* any other frame is closed when it reaches this many bytes, ... */
    WB_BLOCK_HISTORY_RAW = 1 << 20,     /* ... and a frame of older versions when it reaches this many */
    WB_BLOCK_DEPTH_MAX = 3,             /* frames that must be decompressed to read one */
};

/* The header of a block. */
struct wb_block_head {
    uint32_t count; /* entries in the directory */
    uint32_t frame_count;
    uint32_t lead; /* the frame that is stored first */
    uint32_t directory_bytes;
    uint32_t next_slot;       /* slots from here on have never been used */
    uint64_t bytes;           /* of the whole block, header included */
    uint64_t logical;         /* the block's name in its segment: its logical offset (segment.h) */
    uint64_t commit;          /* the last commit of the catalog when the block was written */
    uint64_t site;            /* hash of the site if all pages belong to one, otherwise 0 */
    uint64_t directory_check; /* checksum of the directory */
};

enum wb_block_entry_flags {
    WB_BLOCK_ENTRY_DEAD = 1, /* the page is dead, but its bytes are still there, because the frame is needed */
    WB_BLOCK_ENTRY_OLD = 2,  /* when the block was written, it was not the latest version of its page */
};

/* One entry of the directory: one page. */
struct wb_block_entry {
    struct wb_pageid id;
    uint16_t slot;  /* the page's number in the block, which never changes */
    uint16_t flags; /* enum wb_block_entry_flags */
    uint32_t frame;
    uint32_t head_bytes, body_bytes;
    uint32_t head_at, body_at; /* where they start in the decompressed frame */
    const char *digests;       /* WB_RECORD_DIGEST_BYTES, borrowed from the directory */
};

/* One frame, with a run of consecutive entries. */
struct wb_block_frame {
    uint64_t at; /* where it starts, counted from the start of the block */
    uint32_t stored_bytes, raw_bytes;
    uint32_t check;        /* checksum of the stored bytes */
    uint32_t heads_stored; /* the heads are decompressed from this many stored bytes */
    uint32_t heads_raw;    /* length of all heads */
    uint32_t first, count; /* its entries */
    int32_t base;          /* the frame that is its dictionary, or -1 */
};

/* Header and directory of a block, checked and taken apart. All bytes zero: valid and empty. */
struct wb_block_index {
    struct wb_block_head head;
    WB_VEC(struct wb_block_entry) entries; /* frame by frame; those of a frame are sorted by slot */
    WB_VEC(struct wb_block_frame) frames;
    bool sorted; /* all entries are sorted by slot */
};

/* ---- building --------------------------------------------------------------- */

/* Holds the compression contexts; can be used for any number of blocks. */
struct wb_block_builder;
int wb_block_builder_new(struct wb_block_builder **builder_out);
void wb_block_builder_free(struct wb_block_builder *builder);

/* From now on compresses fast rather than well: for blocks that are not stored. */
void wb_block_builder_hurry(struct wb_block_builder *builder);

/* A page to be stored in a block. */
struct wb_block_page {
    struct wb_pageid id;
    struct wb_slice record;
    uint64_t site;         /* hash of its site */
    uint32_t newest;       /* 0; or this is an older version of page number newest - 1 (see the functions below) */
    uint32_t stored_bytes; /* output: the bytes that removing the page later would free (0 in the lead) */
    uint16_t slot;         /* output: the page's number in the block */
};

/*
 * Appends a block of 1 to WB_BLOCK_PAGES_MAX pages to block_out. On error block_out is
 * unchanged. The caller stamps the block when it knows where the block will be stored.
 *
 * If newest is n > 0, the page is an older version of pages[n - 1], whose own newest is
 * 0. Older versions of one page are stored together in the order in which they are given,
 * which should be the newest first, after all pages that are not older versions.
 */
int wb_block_build(struct wb_block_builder *builder, struct wb_block_page *pages, size_t count,
                   struct wb_buf *block_out);

/* Fills in the logical offset and the commit number, and computes the header's checksum. */
void wb_block_stamp(char *block, uint64_t logical, uint64_t commit);

/* ---- reading ------------------------------------------------------------------ */

/* Reads and checks a header of WB_BLOCK_HEADER_BYTES. WB_E_CORRUPT, WB_E_NEWER; the message does not name the file. */
int wb_block_head_read(const char *bytes, struct wb_block_head *head_out);

/* Length of header and directory together: where the lead starts. */
static inline size_t wb_block_directory_end(const struct wb_block_head *head)
{
    return WB_BLOCK_HEADER_BYTES + (size_t)head->directory_bytes;
}

/*
 * Checks the directory, which follows the header, and takes it apart: its checksum, its
 * order, the bases, and that its lengths add up to the block's. Replaces what index held;
 * its entries borrow their digests from directory. WB_E_CORRUPT, WB_E_NOMEM.
 */
int wb_block_index_read(const struct wb_block_head *head, const char *directory, struct wb_block_index *index);
void wb_block_index_release(struct wb_block_index *index);

/* Whether the stored bytes of a frame are as they were written; block is the whole block. */
bool wb_block_frame_is_sound(const struct wb_block_index *index, const char *block, uint32_t frame);

/* What is wrong with the frames of a block. */
struct wb_block_damage {
    uint32_t frames; /* that are needed, but are not as they were written */
    uint32_t pages;  /* that cannot be read because of that */
    uint64_t at;     /* the first of these frames, counted from the start of the block */
};

/*
 * Compares all frames with their checksums that are needed to read pages. dead: a flag for each entry whose page does
 * not count; NULL: all count. wb_block_index_read() has checked header and directory, so everything in a block that is
 * copied has been checked then. Returns 1 if all is sound, 0 if not, or WB_E_NOMEM.
 */
int wb_block_check(const struct wb_block_index *index, const char *block, const bool *dead,
                   struct wb_block_damage *damage_out);

/* Whether a frame is the base of another one. */
bool wb_block_is_base(const struct wb_block_index *index, uint32_t frame);

/* Finds the entry of a slot; false if there is none. */
bool wb_block_find_slot(const struct wb_block_index *index, uint16_t slot, size_t *at_out);

/* Holds the decompression context, and the frames that were decompressed last. */
struct wb_block_reader;
int wb_block_reader_new(struct wb_block_reader **reader_out);
void wb_block_reader_free(struct wb_block_reader *reader);

/* Provides `size` stored bytes that start `at` bytes after the start of the block; valid until the next call. */
typedef int (*wb_block_fetch)(void *context, uint64_t at, size_t size, const char **bytes_out);

/*
 * Starts reading a block, whose index must stay as it is while it is read. lead is the
 * decompressed lead if the caller has it, otherwise empty. Pages may be read in any order;
 * read in the order of the index, each frame that is no base is decompressed once.
 */
void wb_block_reader_open(struct wb_block_reader *reader, const struct wb_block_index *index, wb_block_fetch fetch,
                          void *context, struct wb_slice lead);

/* The same for a block that is in memory as a whole. */
void wb_block_reader_open_bytes(struct wb_block_reader *reader, const struct wb_block_index *index, const char *block);

/* The page of entry `at`; it borrows from the reader until the next call. Its id is not checked. */
int wb_block_read_page(struct wb_block_reader *reader, size_t at, struct wb_page *page_out);

/* The same without the body, which is not decompressed. body_bytes is set. */
int wb_block_read_facts(struct wb_block_reader *reader, size_t at, struct wb_page *page_out);

/*
 * The whole record of entry `at`; replaces what record_out held. Of its frame, only what is
 * before the end of the page is decompressed, unless more of the frame is wanted later.
 */
int wb_block_read_record(struct wb_block_reader *reader, size_t at, struct wb_buf *record_out);

/*
 * Appends the record of entry `at` without its body to head_out: digests and head, for wb_page_decode_head(). The body
 * is not decompressed. On error head_out is unchanged.
 */
int wb_block_read_head(struct wb_block_reader *reader, size_t at, struct wb_buf *head_out);

/* Appends the whole record of entry `at` to records_out; reads its frame as a whole. On error that is unchanged. */
int wb_block_append_record(struct wb_block_reader *reader, size_t at, struct wb_buf *records_out);

/* A frame, decompressed; valid until the next call. */
int wb_block_read_frame(struct wb_block_reader *reader, uint32_t frame, struct wb_slice *raw_out);

/* ---- leaving pages out and adding older versions ---------------------------------- */

/* What wb_block_rewrite() is to change, and what it did. */
struct wb_block_change {
    const bool *dead;            /* a flag for each entry: the page is not wanted any more */
    const bool *old;             /* the same: it is not the latest version; NULL: as the old block says */
    bool scrub;                  /* no byte of a dead page may stay */
    struct wb_block_page *extra; /* pages to be added, under new slots */
    size_t extra_count;
    uint32_t kept_dead; /* output: dead pages whose bytes are still there */
    uint32_t lost;      /* output: pages that could not be read and were replaced by "lost" records */
};

/*
 * Appends a copy of a block to block_out without its dead pages and with the extra pages.
 * If newest is n > 0 in one of those, it is an older version of the page of entry n - 1.
 * If no page is left, nothing is appended.
 *
 * Frames are copied as they are if possible. One of which at least half is dead is
 * compressed again, unless others are based on it, or all such frames together would
 * free less than a quarter of the block. Versions that are not the latest count as dead
 * in this: they stay, but move to frames of their own behind the others, so that a reader that
 * wants only the latest does not decompress them. Other dead pages keep their bytes and are
 * flagged, except if scrub is set: then everything is compressed again that contains
 * a dead page or is based on such a frame. If a page cannot be read then, it becomes a
 * record without content.
 *
 * WB_E_CORRUPT if a base cannot be read and the change is impossible without it. On error block_out is unchanged.
 */
int wb_block_rewrite(struct wb_block_builder *builder, struct wb_block_reader *reader,
                     const struct wb_block_index *index, const char *block, struct wb_block_change *change,
                     struct wb_buf *block_out);

#endif
