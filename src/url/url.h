/*
 * url.h - the door of url: how WebBase reads and names URLs.
 *
 *   input --parse--> href (WHATWG) --normalise--> key --XXH3--> page id
 *                                                  |--> site      "example.com:8080"
 *                                                  +--> SURT      "com,example:8080)/path"
 *
 * Two URLs are the same page if they have the same normal form, the *key*. The page id, the site and the SURT are all
 * computed from the key. docs/design/0002-urls.md says what the normal form leaves out, and why.
 *
 *   struct wb_url url = WB_URL_INIT;
 *   struct wb_buf key = WB_BUF_INIT;
 *   int err = wb_url_parse(WB_SLICE_LIT("http://EXAMPLE.com/a/../b/#top"), NULL, &url);   // http://example.com/b/#top
 *   if (err == 0)
 *       err = wb_url_key(&url, &key);                                                     // example.com/b
 *   if (err == 0)
 *       id = wb_pageid_of_key(wb_buf_slice(&key));
 *   wb_buf_release(&key);
 *   wb_url_release(&url);
 */
#ifndef WB_URL_URL_H
#define WB_URL_URL_H

#include "base/buf.h"
#include "url/depth.h"

/* Longer URLs are refused (WB_E_LIMIT): nothing that comes from the web may be of unlimited size. */
#define WB_URL_MAX_BYTES (64u << 10)

/*
 * A parsed URL: its serialisation, and where in it each part is. Reuse the struct for many URLs: parsing into one that
 * holds an earlier URL keeps its memory and seldom allocates.
 */
struct wb_url {
    struct wb_buf href;     /* the whole serialisation */
    uint32_t scheme_end;    /* "https" is href[0, scheme_end); then ':' */
    uint32_t username_at, username_end;
    uint32_t password_at, password_end;
    uint32_t host_at, host_end;   /* an IPv6 address is in brackets */
    uint32_t port_at, port_end;   /* empty if there is none, or if it is the default of the scheme */
    uint32_t path_at, path_end;
    uint32_t query_at, query_end; /* without '?' */
    uint32_t fragment_at;         /* without '#', up to the end */
    bool has_host;          /* "file:///x" has an empty one, "mailto:x" has none */
    bool has_query;         /* "http://h/?" has an empty one, "http://h/" has none */
    bool has_fragment;
    bool opaque_path;       /* "mailto:x", "data:..." */
    bool special;           /* http, https, ws, wss, ftp, file */
};

#define WB_URL_INIT ((struct wb_url){.href = {NULL, 0, 0}})

/*
 * Parses a URL as the WHATWG URL standard says, relative to base unless that is NULL. The input is UTF-8; bytes that
 * are not count as U+FFFD. WB_E_PROTO if the standard says failure, WB_E_LIMIT if it is too long; the message quotes
 * the input. base and url_out must not be the same.
 */
int wb_url_parse(struct wb_slice input, const struct wb_url *base, struct wb_url *url_out);
void wb_url_release(struct wb_url *url);

/*
 * The same for a URL as people write it, with or without a scheme: "example.org", "example.org:8080/a". WB_E_PROTO,
 * with a message that quotes the text, if it is neither a URL nor begins with a host. Without a scheme, it is http.
 */
int wb_url_parse_typed(struct wb_slice text, struct wb_url *url_out);

/* The parts of a URL, borrowed from it. A part that is missing is empty. */
struct wb_slice wb_url_href(const struct wb_url *url);
struct wb_slice wb_url_scheme(const struct wb_url *url);   /* without ':' */
struct wb_slice wb_url_host(const struct wb_url *url);
struct wb_slice wb_url_port(const struct wb_url *url);
struct wb_slice wb_url_path(const struct wb_url *url);
struct wb_slice wb_url_query(const struct wb_url *url);    /* without '?' */
bool wb_url_is_http(const struct wb_url *url);             /* http or https */

/*
 * *public_out becomes the URL as readers may see it: without a user and a password ("http://user:pass@host/"). It is
 * the argument itself, or in memory_out, whose content is replaced. The argument may be any text.
 */
int wb_url_public(struct wb_slice url, struct wb_buf *memory_out, struct wb_slice *public_out);

/* ---- keys, sites and SURTs: the slices that these return are parts of their argument -------------------------- */

/* Replaces the content of key_out by the URL's normal form. WB_E_LIMIT if that is longer than WB_URL_MAX_BYTES. */
int wb_url_key(const struct wb_url *url, struct wb_buf *key_out);

/* The site of a key: its host, and its port unless that is the default. Empty if it has no host. */
struct wb_slice wb_key_site(struct wb_slice key);

/*
 * Replaces the content of surt_out by the SURT of a key (sort-friendly URI reordering transform): the labels of the
 * host are reversed, so that sorting puts all pages of a site, and all sites of a domain, next to each other.
 */
int wb_surt_of_key(struct wb_slice key, struct wb_buf *surt_out);

/* The way back: replaces the content of key_out by the key that has this SURT. WB_E_INVALID if there is none. */
int wb_surt_to_key(struct wb_slice surt, struct wb_buf *key_out);

/* The part of a SURT that names its site: "com,example:8080)". The whole SURT if it has no host. */
struct wb_slice wb_surt_site(struct wb_slice surt);

/*
 * Replaces the content of urlkey_out by the key under which indexes of web archives (CDX) have a page: the SURT of pywb
 * and the Wayback Machine, in which "www." and upper case do not matter and arguments are sorted. Several pages may
 * have one key; all spellings of a page have the same. Keys without a host are their own; what is behind WB_URLKEY_MAX
 * bytes is cut off.
 */
#define WB_URLKEY_MAX (64u << 10)
int wb_urlkey_of_key(struct wb_slice key, struct wb_buf *urlkey_out);

/* The same of a URL. Text that is not a URL is its own key. */
int wb_urlkey_of_url(struct wb_slice url, struct wb_buf *urlkey_out);

/* The registrable domain of a site, such as "example.co.uk". The host itself for addresses and "localhost". */
struct wb_slice wb_site_domain(struct wb_slice site);

/* ---- page id ---------------------------------------------------------------- */

#define WB_PAGEID_BYTES 16
#define WB_PAGEID_HEX 32

/* The id of a page: XXH3-128 of its key. The bits of hi choose node, bucket and hashed-log. */
struct wb_pageid {
    uint64_t hi, lo;
};

struct wb_pageid wb_pageid_of_key(struct wb_slice key);
void wb_pageid_hex(struct wb_pageid id, char text_out[WB_PAGEID_HEX + 1]);

/* An id as bytes. Big-endian: memcmp() sorts the bytes in the order of wb_pageid_compare(). */
void wb_pageid_put(struct wb_pageid id, void *bytes_out);
struct wb_pageid wb_pageid_get(const void *bytes);

static inline bool wb_pageid_equal(struct wb_pageid a, struct wb_pageid b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

static inline int wb_pageid_compare(struct wb_pageid a, struct wb_pageid b)
{
    if (a.hi != b.hi)
        return a.hi < b.hi ? -1 : 1;
    return a.lo < b.lo ? -1 : a.lo > b.lo;
}

#endif
