/*
 * warc.h - the door of warc: web archives in and out.
 *
 * Reading: .warc and .arc, plain, gzip'd (a member per record or whole) or
 * zstd'd (with or without a dictionary frame), told apart by content. A damaged
 * unit costs one error with its file offset; the reader then finds the next
 * record. A record that is cut off, or whose length is wrong, is given as far as it goes. Memory is bounded by the limits given.
 *
 * Writing: WARC 1.1, plain, one gzip member or one zstd frame per record.
 */
#ifndef WB_WARC_WARC_H
#define WB_WARC_WARC_H

#include "base/buf.h"
#include "page/page.h"

/* ---- reading ------------------------------------------------------------------- */

enum wb_warc_type {
    WB_WARC_UNKNOWN,
    WB_WARC_WARCINFO,
    WB_WARC_RESPONSE,
    WB_WARC_RESOURCE,
    WB_WARC_REQUEST,
    WB_WARC_METADATA,
    WB_WARC_REVISIT,
    WB_WARC_CONVERSION,
    WB_WARC_CONTINUATION,
    WB_WARC_ARC_VERSION, /* the version block of an ARC file */
    WB_WARC_ARC,         /* an ARC record: read like a response */
};

struct wb_warc_record {
    enum wb_warc_type type;
    uint64_t offset;         /* in the file as it lies on disk, at the start of the unit that holds the record's start */
    struct wb_slice header;  /* the WARC header lines (without version line), or the ARC header line */
    struct wb_slice uri;     /* target URI, without <>; as written */
    struct wb_slice content_type;
    struct wb_slice block;   /* at most the limit */
    uint64_t block_bytes;    /* its length; more than block.len if the limit or the end of the file cut it */
    int64_t time_ms;
    bool has_time;
    bool truncated;          /* WARC-Truncated is there, or the record lies among damage and cannot be known to be whole */
    bool cut;                /* the block was longer than the limit; the rest was skipped */
    const char *problem;     /* in words, if this is what could be kept of a record that is cut off or ends in the wrong place; else "" */
};

struct wb_warc_reader;

/* block_max: the most bytes of a record's block that are kept in memory. */
int wb_warc_open(const char *path, size_t block_max, struct wb_warc_reader **reader_out);

/*
 * The next record; its slices are valid until the next call. Returns 1 with a
 * record, 0 at the end of the file, or an error: WB_E_CORRUPT for damage at
 * wb_warc_error_offset(), after which reading can go on with the next call;
 * anything else is final.
 */
int wb_warc_next(struct wb_warc_reader *reader, struct wb_warc_record *record_out);
uint64_t wb_warc_error_offset(const struct wb_warc_reader *reader);

/* Bytes of the file read so far, and its size: for progress. */
void wb_warc_progress(const struct wb_warc_reader *reader, uint64_t *done_out, uint64_t *size_out);
void wb_warc_close(struct wb_warc_reader *reader);

/* A header of the record by name (any case), trimmed; false where there is none. */
bool wb_warc_header(const struct wb_warc_record *record, const char *name, struct wb_slice *value_out);

/* The memory a page from wb_warc_page() lives in; reused from record to record. */
struct wb_warc_mem {
    struct wb_url url;
    struct wb_buf key, text, body;
};
#define WB_WARC_MEM_INIT ((struct wb_warc_mem){.url = {.href = {NULL, 0, 0}}})
void wb_warc_mem_release(struct wb_warc_mem *mem);

/*
 * A response, resource or ARC record as a page, not digested. The page borrows
 * from the record and from mem (cleared first). problem_out says what was wrong
 * with the payload in words ("gzip payload is damaged"), or is empty. WB_E_PROTO
 * where it cannot be a page (no target URI, not a URL, or a record that is cut off before its page begins).
 */
int wb_warc_page(const struct wb_warc_record *record, size_t body_max, struct wb_warc_mem *mem, struct wb_page *page_out,
                 const char **problem_out);

/* What a revisit record says. Slices borrow from the record. */
struct wb_warc_revisit {
    bool not_modified;          /* profile server-not-modified; otherwise identical-payload-digest */
    bool known_profile;
    bool has_sha1;              /* WARC-Payload-Digest is a sha1, base32 or base16 */
    uint8_t sha1[WB_SHA1_BYTES];
    struct wb_slice refers_uri; /* WARC-Refers-To-Target-URI, or empty */
    int64_t refers_time_ms;     /* WARC-Refers-To-Date; 0: none */
};
void wb_warc_revisit(const struct wb_warc_record *record, struct wb_warc_revisit *revisit_out);

/* ---- writing -------------------------------------------------------------------------- */

enum wb_warc_coding { WB_WARC_PLAIN, WB_WARC_GZIP, WB_WARC_ZSTD };

/* By the name's ending: .warc, .warc.gz, .warc.zst. WB_E_INVALID naming the file for anything else. */
int wb_warc_coding_of_name(const char *path, enum wb_warc_coding *coding_out);

/* Writes bytes to wherever the archive goes; 0 or a negative code. */
typedef int (*wb_warc_sink)(void *context, const void *bytes, size_t len);

struct wb_warc_writer;
int wb_warc_writer_new(enum wb_warc_coding coding, wb_warc_sink sink, void *context, struct wb_warc_writer **writer_out);

/* The warcinfo record; file_name may be NULL. */
int wb_warc_write_info(struct wb_warc_writer *writer, const char *file_name, int64_t now_ms);

/* A page as a response or resource record. headers that no longer describe the body go under X-Crawl-*. */
int wb_warc_write_page(struct wb_warc_writer *writer, const struct wb_page *page);
void wb_warc_writer_free(struct wb_warc_writer *writer);

#endif
