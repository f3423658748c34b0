/*
 * reader.h - the state of one parse. Private to url: url.c drives it, authority.c, host.c and tail.c read the parts.
 *
 * The parts are read from the input and written to href at once, in their final order. Before the first byte is written
 * href has room for the worst case:
 *
 *   3 x input (every byte escaped) + base + WB_READER_SLACK ("://", an address, "/.")
 *     + WB_IDNA_MAX_BYTES if the host may go through IDNA
 *
 * So none of these functions checks for room. wb_url_parse() checks at the end that the room was enough.
 */
#ifndef WB_URL_READER_H
#define WB_URL_READER_H

#include "url/escape.h"
#include "url/url.h"

#define WB_READER_SLACK 128

struct wb_reader {
    const char *at, *end;      /* the rest of the input: UTF-8 without tabs and line ends */
    const struct wb_url *base; /* or NULL */
    struct wb_url *url;        /* the result; each part is set when it is written */
    char *out;                 /* where the next byte of href goes */
    bool file;                 /* the scheme is file */
    const char *why;           /* set with WB_E_PROTO and WB_E_LIMIT: what is wrong, for the message */
};

/* The offset of the next byte in href. */
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

/* Returns true if a slash comes next. In special URLs a backslash counts as one. */
static inline bool wb_reader_slash(const struct wb_reader *r)
{
    return r->at < r->end && (*r->at == '/' || (*r->at == '\\' && r->url->special));
}

/* authority.c: reads "user:password@host:port", and writes it behind the "//". */
int wb_authority_read(struct wb_reader *r);

/* The URL has no host: all parts of the authority are empty, and are here. */
void wb_authority_none(struct wb_reader *r);

/* The authority is just this host, which is already in its final form (for file URLs). */
void wb_authority_host(struct wb_reader *r, struct wb_slice host);

/* tail.c: reads the path, then query and fragment. Segments that were copied from base before belong to the path. */
void wb_tail_read(struct wb_reader *r);

/* The same for an opaque path ("mailto:x"). */
void wb_tail_read_opaque(struct wb_reader *r);

/* Reads only query and fragment: the path has been written. */
void wb_tail_read_query(struct wb_reader *r);

/* Removes the last segment of the path that was written so far. */
void wb_tail_shorten(struct wb_reader *r);

/* Returns true if there is a "Windows drive letter" (as the standard calls it) at p, whatever follows it. */
static inline bool wb_reader_drive_letter(const char *p, const char *end)
{
    return end - p >= 2 && wb_ascii_is_letter(p[0]) && (p[1] == ':' || p[1] == '|');
}

#endif
