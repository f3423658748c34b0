/*
 * page.h - the door of page: the page record, and from bytes on the wire to it.
 *
 * A struct wb_page borrows all its text: whoever filled it says which buffer
 * must stay alive. Enough is kept to write a faithful WARC record again.
 */
#ifndef WB_PAGE_PAGE_H
#define WB_PAGE_PAGE_H

#include "base/buf.h"
#include "url/url.h"

#define WB_MD5_BYTES 16
#define WB_SHA1_BYTES 20

/* No body longer than this is kept whole unless a command says otherwise. */
#define WB_PAGE_MAX_BYTES (48u << 20)

enum wb_page_kind {
    WB_PAGE_RESPONSE = 1, /* came over HTTP: has a status line and headers */
    WB_PAGE_RESOURCE = 2, /* a file or a WARC resource: status 200, no headers */
};

struct wb_page {
    struct wb_pageid id;
    struct wb_slice url;     /* as fetched, in WHATWG's serialisation */
    struct wb_slice key;     /* the normal form; id is its hash */
    struct wb_slice head;    /* status line and headers as received, each with its line end; no blank line */
    struct wb_slice type;    /* media type, lower case, no parameters; empty: unknown */
    struct wb_slice charset; /* lower case; empty: unknown */
    struct wb_slice body;    /* as received, transfer and content coding undone */
    int64_t time_ms;         /* when it was fetched */
    uint64_t body_bytes;     /* body.len; known even where only facts were asked for */
    uint32_t epoch;          /* set by the store */
    uint32_t lifetime;       /* allowed lifetime in days, 0: for ever (WebBase, section 3.2) */
    uint32_t lifetime_count; /* days left of it */
    uint16_t status;
    uint8_t kind;            /* enum wb_page_kind */
    bool truncated;          /* body was cut short, by the fetcher's limits or by ours */
    bool digested;           /* md5 and sha1 are those of body */
    bool has_payload_sha1;   /* the archive gave a payload digest that is not sha1 of body (it was coded) */
    uint8_t md5[WB_MD5_BYTES];
    uint8_t sha1[WB_SHA1_BYTES];
    uint8_t payload_sha1[WB_SHA1_BYTES];
};

/* Computes md5 and sha1 of the body, unless it is digested already. */
void wb_page_digest(struct wb_page *page);

/*
 * The same for many pages: about 2.5 times as fast as one by one if there are eight or more of
 * similar length, and never slower. Takes no memory from the heap and may be called by several
 * threads, for different pages.
 */
void wb_page_digest_many(struct wb_page *const *pages, size_t count);

/* Both digests of each message, in its place of the two arrays; the same promises. */
void wb_digest_many(const struct wb_slice *messages, size_t count, uint8_t (*md5s_out)[WB_MD5_BYTES], uint8_t (*sha1s_out)[WB_SHA1_BYTES]);

/* One-shot digests of other things. */
void wb_md5(struct wb_slice message, uint8_t digest_out[WB_MD5_BYTES]);
void wb_sha1(const void *bytes, size_t len, uint8_t digest_out[WB_SHA1_BYTES]);

/* ---- the record on disk (docs/formats/record.md) -------------------------------- */

/* A record starts with this much that no compressor can shrink; a store keeps it apart from the rest. */
#define WB_RECORD_DIGEST_BYTES (WB_MD5_BYTES + WB_SHA1_BYTES)

/* Appends the record of a page, digested or not. */
int wb_page_encode(const struct wb_page *page, struct wb_buf *record_out);

/*
 * Computes the digests of records that were encoded without them, in their place;
 * body_bytes is each page's. A store lets another thread than the one that took
 * the pages do this, and many at once, which is several times faster than one by
 * one. Records that have their digests are left alone.
 */
struct wb_record_digest {
    char *record;
    size_t record_bytes, body_bytes;
};
int wb_page_record_digest(const struct wb_record_digest *records, size_t count);

/* Reads a record; the page borrows from bytes. WB_E_CORRUPT where it is not one. */
int wb_page_decode(struct wb_slice bytes, struct wb_page *page_out);

/* The same of a record whose digests (WB_RECORD_DIGEST_BYTES) lie apart from the rest. */
int wb_page_decode_parts(const char *digests, struct wb_slice rest, struct wb_page *page_out);

/* ---- HTTP messages, as stored in archives ------------------------------------------ */

struct wb_http_head {
    struct wb_slice raw;      /* status line and headers with line ends, without the blank line */
    uint16_t status;
    struct wb_slice body;     /* what follows the blank line */
};

/* Splits a response at its blank line (CRLF or LF). WB_E_PROTO where there is no status line. */
int wb_http_split(struct wb_slice message, struct wb_http_head *head_out);

/* Walks the header lines of a head: *at starts as 0; false at the end. Folded lines come joined by a line end inside value. */
bool wb_http_header_next(struct wb_slice head, size_t *at, struct wb_slice *name_out, struct wb_slice *value_out);

/* The same over header lines that no status line precedes, as WARC has. */
bool wb_http_field_next(struct wb_slice lines, size_t *at, struct wb_slice *name_out, struct wb_slice *value_out);

/* The first header of that name (any case), trimmed; false where there is none. */
bool wb_http_header(struct wb_slice head, const char *name, struct wb_slice *value_out);

/* What we call ourselves unless a command says otherwise. */
#define WB_HTTP_AGENT "webbase/" WB_VERSION

/* The product token of a User-Agent, a part of it: up to the first '/' or blank. robots.txt and X-Robots-Tag name agents by it. */
struct wb_slice wb_http_agent_token(struct wb_slice agent);

/* 301, 302, 303, 307 and 308: statuses whose Location is followed. */
bool wb_http_status_redirects(uint16_t status);

/* The three forms of HTTP dates (RFC 9110, 5.6.7), leniently. */
bool wb_http_date_parse(struct wb_slice text, int64_t *time_ms_out);

/* Retry-After: seconds or a date; the moment it means, counted from now_ms. */
bool wb_http_retry_after(struct wb_slice value, int64_t now_ms, int64_t *time_ms_out);

/*
 * "text/HTML; charset=UTF-8" -> "text/html" and "utf-8", appended in lower case
 * to mem, which must outlive the slices. Nonsense gives empty slices.
 */
int wb_media_type_parse(struct wb_slice value, struct wb_buf *mem, struct wb_slice *type_out, struct wb_slice *charset_out);

/* The media type of a file by its name's ending; "application/octet-stream" where unknown. Static text. */
struct wb_slice wb_media_type_of_name(struct wb_slice name);

/* ---- payload codings ------------------------------------------------------------------ */

struct wb_payload_result {
    bool cut;      /* the limit was reached: more would have come */
    bool damaged;  /* the coding broke off or is wrong in the middle: what came before is kept */
    bool changed;  /* something was decoded; false: body_out is empty and the input is the body */
    bool coded;    /* head names codings, all of them known: a body that is not changed is not what head says */
};

/*
 * Undoes Transfer-Encoding: chunked and Content-Encoding (gzip, x-gzip, deflate
 * both ways, br, zstd, several in a row) of body as head describes them, into
 * body_out, at most limit bytes. Archives often keep headers that are no longer
 * true: a body that does not start like the coding it claims is taken as not
 * coded, and so is one whose Content-Encoding is not the name of a coding ("none", "utf-8"). Bounded in time and memory whatever the input. Only WB_E_NOMEM is an error.
 */
int wb_payload_decode(struct wb_slice head, struct wb_slice body, size_t limit, struct wb_buf *body_out, struct wb_payload_result *decoded_out);

/*
 * Undoes gzip alone, whatever a head says: appends at most limit bytes of what coded holds to out,
 * which must be empty. decoded_out->changed is false if coded does not start like gzip. Only
 * WB_E_NOMEM is an error.
 */
int wb_unpack_gzip(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out);

#endif
