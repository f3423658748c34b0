/*
 * reader.h - one parse under way. Private to url.
 *
 * The parts of a URL are written to href in their final order, straight from the
 * input. Before the first byte is written there is room for the worst case:
 *
 *   3 x input (every byte escaped) + base + WB_READER_SLACK ("://", an address, "/.")
 *     + WB_HOST_MAX_BYTES where the host may go through IDNA
 *
 * so nothing below checks for room; wb_url_parse() checks the sum afterwards.
 */
#ifndef WB_URL_READER_H
#define WB_URL_READER_H

#include "url/escape.h"
#include "url/url.h"

#define WB_READER_SLACK 128

struct wb_reader {
    const char *at, *end;      /* what is left of the input: UTF-8 without tabs and line ends */
    const struct wb_url *base; /* or NULL */
    struct wb_url *url;        /* its parts are set as they are written */
    char *out;                 /* the next byte of href */
    bool file;                 /* the scheme is file */
    const char *why;           /* set with WB_E_PROTO and WB_E_LIMIT: what is wrong, in words */
};

static inline uint32_t wb_reader_mark(const struct wb_reader *r)
{
    return (uint32_t)(r->out - r->url->href.ptr);
}

static inline void wb_reader_put(struct wb_reader *r, const char *bytes, size_t len)
{
    memcpy(r->out, bytes, len);
    r->out += len;
}

static inline int wb_reader_fail(struct wb_reader *r, int code, const char *why)
{
    r->why = why;
    return code;
}

/* In special URLs a backslash is a slash. */
static inline bool wb_reader_slash(const struct wb_reader *r)
{
    return r->at < r->end && (*r->at == '/' || (*r->at == '\\' && r->url->special));
}

/* authority.c: reads "user:password@host:port", writes it after "//". */
int wb_authority_read(struct wb_reader *r);

/* The URL has no host: all parts of an authority are empty and lie here. */
void wb_authority_none(struct wb_reader *r);

/* The authority consists of this host alone (of a file URL). */
void wb_authority_host(struct wb_reader *r, struct wb_slice host);

/* tail.c: the path, to which segments already written from base belong; then query and fragment. */
void wb_tail_read(struct wb_reader *r);

/* The same where the path is opaque. */
void wb_tail_read_opaque(struct wb_reader *r);

/* Query and fragment alone, after a path that is complete. */
void wb_tail_read_query(struct wb_reader *r);

/* Drops the last segment of the path written so far. */
void wb_tail_shorten(struct wb_reader *r);

/* The standard's "Windows drive letter" at p, whatever follows it. */
static inline bool wb_drive_letter(const char *p, const char *end)
{
    return end - p >= 2 && wb_byte_alpha(p[0]) && (p[1] == ':' || p[1] == '|');
}

#endif
