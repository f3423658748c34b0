/*
 * bucket.h - bucket files: pages in fixed buckets, in the order of their ids. For the organisation hash.
 *
 *   pages/00000001.3.bkt    the buckets of file 1, in its third revision
 *   pages/00000001.3.dw     its double-write file
 *
 *   +--------+----------+----------+- -  -+----------+--------+--------+- -
 *   | header | bucket 0 | bucket 1 |       | bucket n | extent | extent |
 *   +--------+----------+----------+- -  -+----------+--------+--------+- -
 *     4 KiB    64 KiB each                             of any length; appended, never changed
 *
 * A bucket has the pages of one range of ids; the ranges of all buckets are equally long. So the bucket of a page
 * follows from its id, and a page is found by reading one bucket. A bucket holds an *image*:
 *
 *   +------+-----------+-----------------------+
 *   | head | directory | a block (block.h)     |   if it is longer than a bucket, the rest is in an extent
 *   +------+-----------+-----------------------+
 *
 * The directory has the *versions* that are stored here, and a copy of what the catalog knows about the latest version
 * of each page. Large pages, and what does not fit into one block, are in extents of their own, which are blocks, too.
 *
 * Buckets are changed in place. A *sweep* changes any number of them, in the order of the file: first all new images go
 * to the double-write file, and only when they are on disk to their buckets. So a bucket that was being written when
 * the power failed is torn, but then its image is in the double-write file (bucket_sweep.c).
 *
 * Each image has the *stamp* of the sweep that wrote it. Stamps increase, and the catalog knows the last one that was
 * committed. So an image with a greater stamp belongs to a commit that is not finished, or that failed.
 *
 *   bucket.c        the file: its names, its header, its seal
 *   bucket_image.c  images as bytes, and reading them
 *   bucket_sweep.c  the double-write file
 *   bucket_draft.c  makes new images from old ones and from records
 *   bucket_kept.c   keeps what is left of damaged images
 *   bucket_aside.c  copies buckets aside for those who carry a file elsewhere
 *
 * Nothing here touches the catalog. docs/formats/buckets.md is the reference for the bytes,
 * docs/design/0042-hash-buckets.md has the reasons.
 */
#ifndef WB_PAGEFILE_BUCKET_H
#define WB_PAGEFILE_BUCKET_H

#include "block/block.h"
#include "place/place.h"
#include "catalog/catalog.h"
#include "pagefile/segment.h"

enum {
    WB_BUCKET_FILE_MAGIC = 0x5742424b,
    WB_BUCKET_FILE_HEADER_BYTES = 4096, /* header and seal; the rest is zero */
    WB_BUCKET_HEAD_BYTES = 96,
    WB_BUCKET_VERSION_BYTES = 64,
    WB_BUCKET_PAGE_BYTES = 96,
    WB_BUCKET_BYTES_MIN = 1 << 10,
    WB_BUCKET_BYTES_MAX = 16 << 20,
    WB_BUCKET_BYTES = 64 << 10,        /* usual */
    WB_BUCKET_LARGE_BYTES = 256 << 10, /* a record of this length has an extent of its own, usually */
    WB_BUCKET_BLOCK_RAW_MAX = 4 << 20, /* records of more bytes than this are not compressed into one block, ... */
    WB_BUCKET_BLOCK_PAGES_MAX = 4096,  /* ... and not more than this many */
};

#define WB_BUCKET_COUNT_MAX ((uint64_t)1 << 32)
#define WB_BUCKET_EXTENT_MAX ((uint64_t)1 << 48) /* no file is longer */

/* A bucket file that is open. */
struct wb_bucket_file {
    uint32_t magic; /* 0 if it is closed */
    struct wb_node_file file;
    struct wb_node_file doubles; /* the double-write file; not open if there is none */
    bool write;                  /* they are open for writing */
    bool headless;               /* its header is damaged; what it said was found out */
    uint32_t number, revision;
    struct wb_catalog_range range; /* of all ids in it */
    uint32_t bucket_bytes;
    uint64_t count; /* of buckets */
    uint64_t key;   /* every image of this file has it, so that one of another file is noticed */
};

#define WB_BUCKET_FILE_INIT ((struct wb_bucket_file){0})

/* The names of the two files, relative to the node: "pages/00000001.3.bkt" and "pages/00000001.3.dw". */
void wb_bucket_name(uint32_t number, uint32_t revision, char name_out[WB_SEGMENT_NAME_MAX]);
void wb_bucket_doubles_name(uint32_t number, uint32_t revision, char name_out[WB_SEGMENT_NAME_MAX]);

/* Parses a name without its directory; false if it is not that of a bucket file or of a double-write file. */
bool wb_bucket_name_parse(const char *name, uint32_t *number_out, uint32_t *revision_out, bool *doubles_out);

/* What a new file is to be. */
struct wb_bucket_shape {
    uint32_t number, revision;
    struct wb_catalog_range range;
    uint32_t bucket_bytes;
    uint64_t count;
};

/*
 * Creates both files, without images, and claims them; replaces what a crash left. The caller must be the only one who
 * makes this revision: he has the transaction of the catalog.
 */
int wb_bucket_file_create(struct wb_node *node, const uint8_t *repo_id, const struct wb_bucket_shape *shape,
                          struct wb_bucket_file *file_out);

/*
 * Opens the files of a row and checks the header. What a damaged header said is known from the row, except for the size
 * of buckets: it is the one with which there are images of this file. WB_E_CORRUPT, also if the first is missing.
 */
int wb_bucket_file_open(struct wb_node *node, const uint8_t *repo_id, const struct wb_catalog_segment *row, bool write,
                        struct wb_bucket_file *file_out);

/* Writes the header of a file that is open without one. */
int wb_bucket_file_repair(struct wb_bucket_file *file, const uint8_t *repo_id);

/* The header as it was when the file was made: without a seal, and intact. */
void wb_bucket_file_header(const struct wb_bucket_file *file, const uint8_t *repo_id,
                           char header_out[WB_BUCKET_FILE_HEADER_BYTES]);

/* Also ends the claim. */
void wb_bucket_file_close(struct wb_bucket_file *file);

/*
 * Claims both files, which a writer must have done before it writes to them. One that changes buckets has the
 * transaction of the catalog, so that others claim them only for a moment: it waits for these. WB_E_BUSY after seconds.
 */
int wb_bucket_file_claim(struct wb_bucket_file *file);
void wb_bucket_file_release(struct wb_bucket_file *file);

/* Removes both files of a revision, the second one first. WB_E_BUSY: somebody writes to them. */
int wb_bucket_file_remove(struct wb_node *node, uint32_t number, uint32_t revision);

/* Removes the names of files that the caller has created or claimed, and closes them. */
void wb_bucket_file_discard(struct wb_bucket_file *file);

/*
 * The bucket of an id, or of the next id of the file if that one is in a gap of its range. There must be one. And the
 * greatest id.hi that comes before the next bucket, or the greatest one in the file.
 */
uint64_t wb_bucket_of(const struct wb_bucket_file *file, struct wb_pageid id);
uint64_t wb_bucket_edge(const struct wb_bucket_file *file, uint64_t number);
static inline uint64_t wb_bucket_at(const struct wb_bucket_file *file, uint64_t number)
{
    return WB_BUCKET_FILE_HEADER_BYTES + number * file->bucket_bytes;
}

/* Where the extents begin. */
static inline uint64_t wb_bucket_extents_at(const struct wb_bucket_file *file)
{
    return wb_bucket_at(file, file->count);
}

/* The seal says which commit the catalog had reached when a writer left (segment.h). Writing it needs the claim. */
int wb_bucket_write_seal(const struct wb_bucket_file *file, uint64_t commit);
bool wb_bucket_read_seal(const struct wb_bucket_file *file, uint64_t *commit_out);

/* ---- images (bucket_image.c) -------------------------------------------------------------------- */

/* A version that is stored in a bucket. Its id and its place in the catalog are its name, and never change. */
struct wb_bucket_version {
    struct wb_pageid id;
    struct wb_catalog_place place;
    uint16_t block_slot;   /* its slot in the block */
    uint32_t stored_bytes; /* as its entry in the catalog says */
    uint64_t dead;         /* the stamp of the commit since which nobody needs it; 0: alive */
    uint64_t extent_at;    /* where its block is in the file; 0: it is the bucket's own ... */
    uint64_t extent_bytes; /* ... otherwise its length */
};

/* The copy of an entry of the catalog. */
struct wb_bucket_page {
    struct wb_pageid id;
    struct wb_catalog_entry entry;
};

struct wb_bucket_versions WB_VEC_OF(struct wb_bucket_version); /* sorted by id and place */
struct wb_bucket_pages WB_VEC_OF(struct wb_bucket_page);       /* sorted by id */

/* A bucket in memory. All bytes zero: valid and empty. */
struct wb_bucket {
    uint64_t number, stamp;
    uint64_t overflow_at, overflow_bytes; /* the extent that has the rest of the image */
    struct wb_bucket_versions versions;
    struct wb_bucket_pages pages;
    struct wb_buf image;
    size_t block_at;             /* where the block starts in the image; its end: there is none */
    struct wb_block_index index; /* of the block; borrows from the image */
};

void wb_bucket_release(struct wb_bucket *bucket);

/*
 * Reads a bucket and checks it completely, except for the frames of its block: those are checked when they are read.
 * One read, or two if the image is longer than a bucket. If the bucket is torn, it is read again, and then from the
 * double-write file. WB_E_CORRUPT names the file and the offset.
 */
int wb_bucket_read(const struct wb_bucket_file *file, uint64_t number, struct wb_bucket *bucket);

/* The same without looking elsewhere if the bucket is damaged; also checks that what follows the image is zero. */
int wb_bucket_read_strictly(const struct wb_bucket_file *file, uint64_t number, struct wb_bucket *bucket);

/*
 * The bytes of a bucket as they are, and its stamp; 0 if the part of its image that is in the bucket is not intact. The
 * second reads only as much as that takes, and believes the head.
 */
int wb_bucket_read_raw(const struct wb_bucket_file *file, uint64_t number, char *bytes_out, uint64_t *stamp_out);
int wb_bucket_read_stamp(const struct wb_bucket_file *file, uint64_t number, uint64_t *stamp_out);

/* The order of versions in a bucket. */
int wb_bucket_version_compare(const struct wb_bucket_version *version, struct wb_pageid id,
                              const struct wb_catalog_place *place);

/* Finds a version by its name; or the copy of a page's entry. */
bool wb_bucket_find(const struct wb_bucket *bucket, struct wb_pageid id, const struct wb_catalog_place *place,
                    size_t *at_out);
bool wb_bucket_find_page(const struct wb_bucket *bucket, struct wb_pageid id, struct wb_catalog_entry *entry_out);

/* Reads records, from any number of buckets and files. */
struct wb_bucket_reader {
    struct wb_block_reader *zstd;
    const struct wb_bucket *bucket; /* whose block zstd has open; NULL: none */
    struct wb_buf extent;           /* the last one that was read ... */
    uint64_t extent_at;             /* ... and where it is; 0: none */
    uint64_t extent_key;            /* ... in which file */
    struct wb_block_index index;    /* of that extent */
};
int wb_bucket_reader_init(struct wb_bucket_reader *reader);
void wb_bucket_reader_release(struct wb_bucket_reader *reader);

/* The bucket is about to be changed, or to be read again. */
void wb_bucket_reader_forget(struct wb_bucket_reader *reader);

/* The record of a version; replaces what record_out held. Checks that the block has this page there. */
int wb_bucket_read_record(struct wb_bucket_reader *reader, const struct wb_bucket_file *file,
                          const struct wb_bucket *bucket, size_t at, struct wb_buf *record_out);

/* Appends it to records_out, for a reader of all records of a bucket; head: only digests and head
 * (wb_block_read_head). */
int wb_bucket_append_record(struct wb_bucket_reader *reader, const struct wb_bucket_file *file,
                            const struct wb_bucket *bucket, size_t at, bool head, struct wb_buf *records_out);

/* Composes "FILE is damaged: bucket N at offset X: WHY" and returns WB_E_CORRUPT. */
int wb_bucket_corrupt(const struct wb_bucket_file *file, uint64_t number, const char *why);

/* Makes the bytes of bucket->image from everything else in it and the block. bucket->block_at and index are not set. */
int wb_bucket_encode(const struct wb_bucket_file *file, struct wb_slice block, struct wb_bucket *bucket);

/* Checks the bytes of a whole image and takes it apart. Returns NULL, or what is wrong. */
const char *wb_bucket_decode(const struct wb_bucket_file *file, uint64_t number, struct wb_bucket *bucket,
                             int *err_out);

/* Whether the head of an image is intact and has another format: WB_E_NEWER, which names the bucket; otherwise 0. */
int wb_bucket_head_format(const struct wb_bucket_file *file, uint64_t number, const char *bytes);

/* The head of an image: whether it is one of this bucket, and its lengths. Returns NULL, or what is wrong. */
const char *wb_bucket_head_check(const struct wb_bucket_file *file, uint64_t number, const char *bytes,
                                 struct wb_bucket *bucket, uint64_t *image_bytes_out);

/* ---- damaged bytes (bucket_kept.c) -------------------------------------------------------------------- */

/* Where damaged bytes were. */
struct wb_bucket_origin {
    uint64_t key;    /* of the file */
    uint64_t bucket; /* that they belonged to */
    uint64_t at;     /* their offset */
};

/*
 * The bytes of a bucket as they are, and those of its rest if its head says where that is. Replaces what bytes_out has.
 * WB_E_NEWER: the bucket is not damaged, but this program cannot read it.
 */
int wb_bucket_read_bytes(const struct wb_bucket_file *file, uint64_t number, struct wb_buf *bytes_out);

/* The same of an extent: as much of it as there is, but at least as much as wb_bucket_keep() takes. */
int wb_bucket_extent_read_bytes(const struct wb_bucket_file *file, uint64_t at, uint64_t bytes,
                                struct wb_buf *bytes_out);

/* Writes them to a new extent at *end, which moves on. *bytes_out is its length. */
int wb_bucket_keep(const struct wb_bucket_file *file, const struct wb_bucket_origin *origin, struct wb_slice bytes,
                   uint64_t *end, uint64_t *bytes_out);

/* Whether an extent is one of these; and the error for reading a page from it. */
bool wb_bucket_kept_is(struct wb_slice extent);
int wb_bucket_kept_error(struct wb_slice extent);

/* ---- sweeps (bucket_sweep.c) ---------------------------------------------------------------------- */

/* What the double-write file says about the last sweep. */
struct wb_bucket_swept {
    uint64_t stamp;           /* 0: there was none in this revision */
    uint64_t end;             /* where its extents end */
    WB_VEC(uint64_t) buckets; /* that it changed, in ascending order */
};

/*
 * Reads it. If the sweep was committed, its buckets are not listed: a sweep that was interrupted after it may have
 * overwritten them, before it changed any bucket. WB_E_CORRUPT if the file is not there or damaged.
 */
int wb_bucket_swept_read(const struct wb_bucket_file *file, uint64_t committed, struct wb_bucket_swept *swept_out);
void wb_bucket_swept_release(struct wb_bucket_swept *swept);

/* The image of one bucket, from the last sweep. WB_E_NOTFOUND, WB_E_CORRUPT. */
int wb_bucket_swept_image(const struct wb_bucket_file *file, uint64_t number, char *image_out);

/* A sweep in progress. */
struct wb_bucket_sweep {
    struct wb_bucket_file *file;
    uint64_t stamp;
    uint64_t end; /* of the extents */
    uint64_t end_before;
    WB_VEC(uint64_t) buckets;
    struct wb_buf bytes;
};

/* The caller has claimed the file. */
void wb_bucket_sweep_begin(struct wb_bucket_sweep *sweep, struct wb_bucket_file *file, uint64_t stamp, uint64_t end);
void wb_bucket_sweep_release(struct wb_bucket_sweep *sweep);

/* Adds the next bucket; its image is what counts. The rest of a long image goes to its extent at once. */
int wb_bucket_sweep_add(struct wb_bucket_sweep *sweep, const struct wb_bucket *bucket);

/* Makes it all durable: the double-write file and extents, then the buckets themselves. */
int wb_bucket_sweep_end(struct wb_bucket_sweep *sweep);

/* All bytes of an empty double-write file. */
void wb_bucket_doubles_header(const struct wb_bucket_file *file, char bytes_out[WB_BUCKET_FILE_HEADER_BYTES]);

/* Writes an empty double-write file. */
int wb_bucket_swept_clear(const struct wb_bucket_file *file);

/* ---- new images (bucket_draft.c) -------------------------------------------------------------------- */

/* A record to be stored. */
struct wb_bucket_item {
    struct wb_bucket_version version; /* block_slot and extent_at are set when it is stored */
    struct wb_slice record;           /* empty: it has an extent already, and keeps it */
    uint64_t site;                    /* hash of its site; 0: not known */
    bool old;                         /* not the latest version of its page */
};

/* A block that goes to an extent. */
struct wb_bucket_piece {
    size_t first, count; /* its items, in draft->order */
    size_t at, bytes;    /* in draft->extents */
};

/* Makes images. Can be used for any number of them. */
struct wb_bucket_draft {
    size_t large_bytes; /* a record of this length has an extent of its own */
    struct wb_bucket_file *file;
    uint64_t *end; /* where the next extent goes */
    struct wb_block_builder *builder;
    struct wb_block_reader *zstd;
    struct wb_bucket bucket; /* the result */
    struct wb_buf block;     /* its own block */
    struct wb_buf extents;   /* blocks for extents, one after the other ... */
    WB_VEC(struct wb_bucket_piece) pieces;
    WB_VEC(struct wb_bucket_item) items;   /* to be stored; in any order */
    WB_VEC(struct wb_bucket_item *) order; /* those of the own block, then those of the pieces */
    WB_VEC(struct wb_block_page) pages;
    WB_VEC(bool) dead;
};
int wb_bucket_draft_init(struct wb_bucket_draft *draft, size_t large_bytes);
void wb_bucket_draft_release(struct wb_bucket_draft *draft);

/* Starts a new image. The caller then adds pages to draft->bucket.pages, and items. */
void wb_bucket_draft_begin(struct wb_bucket_draft *draft, struct wb_bucket_file *file, uint64_t *end, uint64_t number,
                           uint64_t stamp);

/* Makes the image of the items alone. */
int wb_bucket_draft_build(struct wb_bucket_draft *draft);

/*
 * The two halves of it. The first compresses, and touches no file and nothing outside the draft and the builder, so
 * that another thread can do it; the draft needs no builder of its own then. The second writes extents, and makes the
 * image.
 */
int wb_bucket_draft_compress(struct wb_bucket_draft *draft, struct wb_block_builder *builder);
int wb_bucket_draft_store(struct wb_bucket_draft *draft);

/*
 * Makes the image of an old bucket: without the versions for which drop[i] is set, and with the items. Frames of its
 * block are copied as they are. dead_bytes_out: bytes of extents that are not used any more.
 */
int wb_bucket_draft_change(struct wb_bucket_draft *draft, const struct wb_bucket *old, const bool *drop,
                           uint64_t *dead_bytes_out);

#endif
