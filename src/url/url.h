/*
 * url.h - the door of url: how WebBase reads and names URLs.
 *
 *   input --parse--> href (WHATWG)  --key--> normal form --XXH3--> page id
 *                                      |--> site        "example.com:8080"
 *                                      +--> SURT        "com,example:8080)/path"
 *
 * The normal form ("key") names the page; everything else about its name is a
 * function of the key. See docs/design for what the normal form drops and why.
 */
#ifndef WB_URL_URL_H
#define WB_URL_URL_H

#include "base/buf.h"

/* No URL longer than this is taken; everything from the web is bounded. */
#define WB_URL_MAX_BYTES (64u << 10)

/*
 * A parsed URL: its serialisation and where the parts lie in it. The memory can
 * be reused: parsing into a struct that holds an earlier URL frees nothing and
 * seldom allocates.
 */
struct wb_url {
    struct wb_buf href;     /* the whole serialisation */
    uint32_t scheme_end;    /* "https" is href[0, scheme_end); then ':' */
    uint32_t username_at, username_end;
    uint32_t password_at, password_end;
    uint32_t host_at, host_end;   /* of an IPv6 address with its brackets */
    uint32_t port_at, port_end;   /* empty where it is the scheme's default or there is none */
    uint32_t path_at, path_end;
    uint32_t query_at, query_end; /* without '?' */
    uint32_t fragment_at;         /* without '#', up to the end */
    bool has_host;          /* "file:///x" has one and it is empty; "mailto:x" has none */
    bool has_query;         /* "http://h/?" has one and it is empty */
    bool has_fragment;
    bool opaque_path;       /* "mailto:x", "data:..." */
    bool special;           /* http, https, ws, wss, ftp, file */
};

#define WB_URL_INIT ((struct wb_url){.href = {NULL, 0, 0}})

/*
 * Parses as the WHATWG URL standard says, input being UTF-8 (bytes that are not
 * are taken as U+FFFD). base may be NULL. WB_E_PROTO with a message naming the
 * input where the standard says failure. base and url_out must differ.
 */
int wb_url_parse(struct wb_slice input, const struct wb_url *base, struct wb_url *url_out);
void wb_url_release(struct wb_url *url);

struct wb_slice wb_url_href(const struct wb_url *url);
struct wb_slice wb_url_scheme(const struct wb_url *url);   /* without ':' */
struct wb_slice wb_url_host(const struct wb_url *url);
struct wb_slice wb_url_port(const struct wb_url *url);
struct wb_slice wb_url_path(const struct wb_url *url);
struct wb_slice wb_url_query(const struct wb_url *url);    /* without '?' */
bool wb_url_is_http(const struct wb_url *url);             /* http or https */

/* The normal form, appended to key_out after clearing it. WB_E_LIMIT where it is longer than WB_URL_MAX_BYTES. */
int wb_url_key(const struct wb_url *url, struct wb_buf *key_out);

/* The site of a key: its host with a port that is not the default, a part of key. Empty where there is no host. */
struct wb_slice wb_key_site(struct wb_slice key);

/* The SURT of a key: its host's labels reversed, so that sorting gathers sites and domains. */
int wb_key_surt(struct wb_slice key, struct wb_buf *surt_out);

/* The key of a SURT, put into key_out after clearing it. WB_E_INVALID where no key has this SURT. */
int wb_surt_key(struct wb_slice surt, struct wb_buf *key_out);

/* What the SURTs of all pages of a site begin with, and no others: "com,example:8080)", a part of surt; the whole where it has no host. */
struct wb_slice wb_surt_site(struct wb_slice surt);

/* The registrable domain of a site ("example.co.uk"), a part of site; the whole host where there is none (an address, "localhost"). */
struct wb_slice wb_site_domain(struct wb_slice site);

/* ---- page id ---------------------------------------------------------------- */

#define WB_PAGEID_BYTES 16
#define WB_PAGEID_HEX 32

/* XXH3-128 of the key; hi holds the bits that choose node, bucket and hashed-log. */
struct wb_pageid {
    uint64_t hi, lo;
};

struct wb_pageid wb_pageid_of_key(struct wb_slice key);
void wb_pageid_hex(struct wb_pageid id, char text_out[WB_PAGEID_HEX + 1]);

/* Big-endian, so that ids sort as their bytes do. */
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
