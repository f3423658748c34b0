/*
 * warc.h - the door of warc: reads and writes web archives.
 *
 * Reading (wb_warc_open, wb_warc_next, wb_warc_close) accepts .warc and .arc files that are plain,
 * compressed with gzip (one member per record, or one for the whole file) or compressed with zstd
 * (with or without a dictionary frame). The content decides which of these a file is; its name
 * counts only if the content says nothing. Damage costs one error that names the file offset; the
 * next call continues with the next record that can be found. A record that is cut off, or whose
 * length is wrong, is returned as far as it goes. Memory is bounded by the limits given.
 *
 * Writing (wb_warc_writer_new, wb_warc_write_page, wb_warc_write_revisit) produces WARC 1.1: plain,
 * or with one gzip member or one zstd frame per record (docs/formats/warc.md).
 *
 * cdx.h writes lines of indexes, and zipwriter.h writes ZIP files; a WACZ (docs/formats/wacz.md) is made of both.
 *
 * Used by the import, `get`, `export` and `stream`.
 */
#ifndef WB_WARC_WARC_H
#define WB_WARC_WARC_H

#include "base/buf.h"
#include "page/page.h"
#include "warc/cdx.h"
#include "warc/wacz.h"
#include "warc/zipwriter.h"

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

/* One record of an archive. All slices borrow from the reader. */
struct wb_warc_record {
    enum wb_warc_type type;
    uint64_t offset;         /* file offset (compressed, if it is) of the unit in which the record starts */
    struct wb_slice header;  /* the WARC header lines (without the version line), or the ARC header line */
    struct wb_slice uri;     /* the target URI as written, but without <> */
    struct wb_slice content_type;
    struct wb_slice block;   /* the record's content, cut at block_max */
    uint64_t block_bytes;    /* its full length; more than block.len if the limit or the end of the file cut it */
    int64_t time_ms;
    bool has_time;
    bool truncated;          /* has WARC-Truncated, or is surrounded by damage and may therefore be incomplete */
    bool cut;                /* the block was longer than block_max; the rest was skipped */
    const char *problem;     /* what is wrong with a record that was only partly recovered; "" if nothing is */
};

struct wb_warc_reader;

/* Opens an archive. block_max: how many bytes of a record's block are kept in memory at most. */
int wb_warc_open(const char *path, size_t block_max, struct wb_warc_reader **reader_out);

/*
 * Reads the next record; its slices are valid until the next call. Returns 1 with a
 * record, 0 at the end of the file, or an error. After WB_E_CORRUPT (damage at
 * wb_warc_error_offset()) the caller may call again to continue behind the damage.
 * Any other error is final.
 */
int wb_warc_next(struct wb_warc_reader *reader, struct wb_warc_record *record_out);
uint64_t wb_warc_error_offset(const struct wb_warc_reader *reader);

/* For progress reports: how many bytes of the file have been read, and how many it has. */
void wb_warc_progress(const struct wb_warc_reader *reader, uint64_t *done_out, uint64_t *size_out);
void wb_warc_close(struct wb_warc_reader *reader);

/* The memory that a page from wb_warc_page() borrows from; reused from record to record. */
struct wb_warc_mem {
    struct wb_url url;
    struct wb_buf key, text, body;
};
#define WB_WARC_MEM_INIT ((struct wb_warc_mem){.url = {.href = {NULL, 0, 0}}})
void wb_warc_mem_release(struct wb_warc_mem *mem);

/*
 * Makes a page (without digests) of a response, resource or ARC record. The page borrows
 * from the record and from mem, whose earlier content is cleared. *problem_out says what
 * was wrong with the payload ("the payload is longer than the limit"), or is empty.
 * Returns WB_E_PROTO if the record cannot be a page: it has no target URI or an invalid
 * one, or it is cut off before its page begins.
 */
int wb_warc_page(const struct wb_warc_record *record, size_t body_max, struct wb_warc_mem *mem,
                 struct wb_page *page_out, const char **problem_out);

/* What a revisit record says: "the same bytes as an earlier capture". Slices borrow from the record. */
struct wb_warc_revisit {
    bool not_modified;          /* profile server-not-modified; otherwise identical-payload-digest */
    bool known_profile;
    bool has_sha1;              /* WARC-Payload-Digest is a SHA-1, in base32 or base16 */
    uint8_t sha1[WB_SHA1_BYTES];
    struct wb_slice refers_uri; /* WARC-Refers-To-Target-URI, or empty */
    int64_t refers_time_ms;     /* WARC-Refers-To-Date; 0 if there is none */
};
void wb_warc_revisit(const struct wb_warc_record *record, struct wb_warc_revisit *revisit_out);

/* ---- writing -------------------------------------------------------------------------- */

enum wb_warc_coding { WB_WARC_PLAIN, WB_WARC_GZIP, WB_WARC_ZSTD };

/* Chooses the coding by file name: .warc, .warc.gz or .warc.zst. Any other name gives WB_E_INVALID. */
int wb_warc_coding_of_name(const char *path, enum wb_warc_coding *coding_out);

/* Receives the bytes of the archive in order; returns 0 or a negative code, which ends the writing. */
typedef int (*wb_warc_sink)(void *context, const void *bytes, size_t len);

struct wb_warc_writer;
int wb_warc_writer_new(enum wb_warc_coding coding, wb_warc_sink sink, void *context,
                       struct wb_warc_writer **writer_out);

/*
 * Adds a header field to the records that are written from now on. The name and the value are borrowed; an empty value
 * ends it.
 */
void wb_warc_writer_extra(struct wb_warc_writer *writer, const char *name, struct wb_slice value);

/* Writes the warcinfo record that an archive starts with; file_name may be NULL. */
int wb_warc_write_info(struct wb_warc_writer *writer, const char *file_name, int64_t now_ms);

/*
 * Writes a page as a response or resource record. HTTP headers that no longer describe the
 * body, because its codings were removed, are renamed to X-Crawl-* (xcrawl.h).
 */
int wb_warc_write_page(struct wb_warc_writer *writer, const struct wb_page *page);

/*
 * Writes a revisit record: at page->time_ms the page had the bytes that the record with the same
 * URL and the date original_ms contains. Uses only the page's URL and SHA-1, which must have been
 * computed, and its time. The block is empty, because nobody knows the headers of that response.
 */
int wb_warc_write_revisit(struct wb_warc_writer *writer, const struct wb_page *page, int64_t original_ms);

/* Writes the text of a page as a conversion record of type text/plain, as WET files have them. */
int wb_warc_write_text(struct wb_warc_writer *writer, const struct wb_page *page, struct wb_slice text);
/*
 * Called after each page and revisit, when the sink has all bytes of the record: for an index of what is written.
 * digest is the WARC-Payload-Digest, "sha1:" and base32. May write to the same writer. A negative result is returned to
 * the writer of the record.
 */
typedef int (*wb_warc_listener)(void *context, const struct wb_page *page, bool revisit, const char *digest);
void wb_warc_writer_listen(struct wb_warc_writer *writer, wb_warc_listener listener, void *context);
void wb_warc_writer_free(struct wb_warc_writer *writer);

#endif
