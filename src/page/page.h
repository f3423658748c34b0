/*
 * page.h - the door of page: the page record, and how the bytes of an HTTP response become one.
 *
 *   message -> wb_http_split() -> head, body -> wb_payload_decode() -> struct wb_page
 *                                                -> wb_page_digest() -> wb_page_encode()
 *
 * A struct wb_page borrows all its text: the function that fills one says which buffer must stay
 * alive. It has everything that is needed to write a faithful WARC record of the page. What is
 * in a page (text, links, facts) is the question of extract.
 */
#ifndef WB_PAGE_PAGE_H
#define WB_PAGE_PAGE_H

#include "base/buf.h"
#include "page/pagefacts.h"
#include "url/url.h"

#define WB_MD5_BYTES 16
#define WB_SHA1_BYTES 20

/* A longer body is cut off, unless a command sets another limit. */
#define WB_PAGE_MAX_BYTES (48u << 20)

enum wb_page_kind {
    WB_PAGE_RESPONSE = 1, /* came over HTTP: has a status line and headers */
    WB_PAGE_RESOURCE = 2, /* a file or a WARC resource: status 200, no headers */
};

struct wb_page {
    struct wb_pageid id;
    struct wb_slice url;     /* as fetched, serialised according to WHATWG */
    struct wb_slice key;     /* the normal form of the URL; id is its hash */
    struct wb_slice head;    /* status line and headers as received, with line ends but without the blank line */
    struct wb_slice type;    /* media type in lower case, without parameters; empty if unknown */
    struct wb_slice charset; /* as the server says, in lower case; empty if unknown */
    struct wb_slice body;    /* as received, but with transfer and content codings removed */
    int64_t time_ms;         /* when it was fetched */
    uint64_t body_bytes;     /* body.len; set even if the body itself was not asked for */
    uint64_t epoch;          /* in which this version arrived; set by the store */
    uint32_t lifetime;       /* allowed lifetime in days, 0: unlimited (WebBase, section 3.2) */
    uint32_t lifetime_count; /* how many of these days are left */
    uint16_t status;
    uint8_t kind;            /* enum wb_page_kind */
    bool truncated;          /* the body was cut short, by another crawler or by our own limit */
    bool digested;           /* md5 and sha1 have been computed */
    bool has_payload_sha1;   /* the archive gave a digest of the payload as it was coded, which sha1 is not */
    uint8_t md5[WB_MD5_BYTES];
    uint8_t sha1[WB_SHA1_BYTES];
    uint8_t payload_sha1[WB_SHA1_BYTES];
};

/* Computes md5 and sha1 of the body, unless that has been done. */
void wb_page_digest(struct wb_page *page);

/*
 * The same for many pages: about 2.5 times as fast as one by one if there are eight or more of
 * similar length, and never slower. Allocates nothing. Several threads may call it at the same
 * time for different pages.
 */
void wb_page_digest_many(struct wb_page *const *pages, size_t count);

/* Digests of anything else. */
void wb_md5(struct wb_slice message, uint8_t digest_out[WB_MD5_BYTES]);
void wb_sha1(const void *bytes, size_t len, uint8_t digest_out[WB_SHA1_BYTES]);

/* ---- the record on disk (docs/formats/record.md) -------------------------------- */

/*
 * A record starts with its two digests, which no compressor can shrink; a store keeps them apart
 * from the rest.
 */
#define WB_RECORD_DIGEST_BYTES (WB_MD5_BYTES + WB_SHA1_BYTES)

/* Appends the record of a page, whether it has its digests or not. */
int wb_page_encode(const struct wb_page *page, struct wb_buf *record_out);

/*
 * Computes the digests of records that were encoded without them and puts them into the records;
 * body_bytes is the length of the page's body. A store does this for many records at once, which
 * is several times faster than one by one, and in another thread than the one that takes pages.
 * Records that have their digests already are left alone.
 */
struct wb_record_digest {
    char *record;
    size_t record_bytes, body_bytes;
};
int wb_page_record_digest(const struct wb_record_digest *records, size_t count);

/* Reads a record; the page borrows from bytes. WB_E_CORRUPT if it is not a valid record, WB_E_NEWER. */
int wb_page_decode(struct wb_slice bytes, struct wb_page *page_out);

/*
 * Reads a record without its body, whose length must be body_bytes. digests: the beginning of the record
 * (WB_RECORD_DIGEST_BYTES); head: what is between them and the body.
 */
int wb_page_decode_head(const char *digests, struct wb_slice head, uint64_t body_bytes, struct wb_page *page_out);

/* ---- HTTP messages, as stored in archives ------------------------------------------ */

struct wb_http_head {
    struct wb_slice raw;      /* status line and headers with line ends, but without the blank line */
    uint16_t status;          /* never 0 */
    struct wb_slice body;     /* everything after the blank line */
};

/*
 * Splits a response at its blank line (CRLF or LF). WB_E_PROTO if it has no status line: "HTTP/" or "ICY ", and
 * whatever follows. A status that is not a number of three digits from 100 on counts as 200. Interim answers before
 * the real one are dropped.
 */
int wb_http_split(struct wb_slice message, struct wb_http_head *head_out);

/*
 * Walks the headers of a head: set *at to 0 first; returns false at the end. If a header is folded
 * into several lines, its value contains their line ends.
 */
bool wb_http_header_next(struct wb_slice head, size_t *at, struct wb_slice *name_out, struct wb_slice *value_out);

/* The same for header lines without a status line before them, as in WARC. */
bool wb_http_field_next(struct wb_slice lines, size_t *at, struct wb_slice *name_out, struct wb_slice *value_out);

/* Finds the first header with this name (in any case) and trims its value; false if there is none. */
bool wb_http_header(struct wb_slice head, const char *name, struct wb_slice *value_out);

/* The User-Agent that we send unless a command sets another. */
#define WB_HTTP_AGENT "webbase/" WB_VERSION

/*
 * The product token of a User-Agent: the part before the first '/' or blank. robots.txt and
 * X-Robots-Tag refer to agents by it.
 */
struct wb_slice wb_http_agent_token(struct wb_slice agent);

/* True for the statuses whose Location is followed: 301, 302, 303, 307 and 308. */
bool wb_http_status_redirects(uint16_t status);

/*
 * Finds the target of a redirect in its response head, resolved against url and without its fragment. WB_E_PROTO if
 * there is no http or https URL. *location_out borrows from url_out; base is working memory.
 */
int wb_http_location(struct wb_slice head, struct wb_slice url, struct wb_url *base, struct wb_url *url_out,
                     struct wb_slice *location_out);

/* Parses any of the three forms of HTTP dates (RFC 9110, 5.6.7), leniently. */
bool wb_http_date_parse(struct wb_slice text, int64_t *time_ms_out);

/*
 * When the content was last changed, according to the Last-Modified header of a response that was fetched at
 * fetched_ms; 0 if that says nothing. What cannot be true does not count: a time before 1990, or after the fetch or the
 * Date of the response. Nor does a time that is that Date (or the fetch, without a Date) to the second: then the server
 * made the page for this request.
 */
int64_t wb_http_modified(struct wb_slice head, int64_t fetched_ms);

/* Parses Retry-After, which is a date or a number of seconds from now_ms, into a moment. */
bool wb_http_retry_after(struct wb_slice value, int64_t now_ms, int64_t *time_ms_out);

/*
 * Splits "text/HTML; charset=UTF-8" into "text/html" and "utf-8", which are appended to mem in
 * lower case; mem must outlive the slices. An invalid value gives empty slices.
 */
int wb_media_type_parse(struct wb_slice value, struct wb_buf *mem, struct wb_slice *type_out,
                        struct wb_slice *charset_out);

/* The media type of a file, by the ending of its name; "application/octet-stream" if unknown. Static text. */
struct wb_slice wb_media_type_of_name(struct wb_slice name);

/* ---- payload codings ------------------------------------------------------------------ */

/* How decoding a payload went. */
struct wb_payload_result {
    bool cut;      /* the limit was reached, and there was more */
    bool damaged;  /* the coded data is cut off or wrong in the middle; what came before that is kept */
    bool changed;  /* something was decoded; if false, body_out is empty and the input is the body */
    bool coded;    /* the head names codings, all of them known; if not also changed, the head is wrong */
};

/*
 * Removes the codings that the head describes from the body: Transfer-Encoding chunked, and
 * Content-Encoding gzip, x-gzip, deflate (with or without zlib's wrapper), br and zstd, also
 * several of them. Writes at most `limit` bytes to body_out.
 *
 * Archives often keep headers that are no longer true. A body that does not start like the coding
 * it claims is therefore taken as not coded, and so is one whose Content-Encoding is not the name
 * of a coding ("none", "utf-8"). Bounded in time and memory for any input; fails only with
 * WB_E_NOMEM.
 */
int wb_payload_decode(struct wb_slice head, struct wb_slice body, size_t limit, struct wb_buf *body_out,
                      struct wb_payload_result *decoded_out);

/*
 * Decompresses gzip, without looking at a head: appends at most `limit` bytes to out, which must be
 * empty. decoded_out->changed is false if the input does not start like gzip. Fails only with
 * WB_E_NOMEM.
 */
int wb_unpack_gzip(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out);

#endif
