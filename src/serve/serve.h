/*
 * serve.h - the door of serve: `webbase serve`. HTTP for programs and for people: search, pages, links, CDX, replay,
 * streams, pushes, metrics, and the web pages that show all this.
 *
 * The room httpd has the connections; here is what is answered. Every request reads one generation of the index; the
 * next one is picked up without a restart. What fails, fails for its own request only. docs/http.md lists every call,
 * docs/design/0034-serve.md has the reasons.
 */
#ifndef WB_SERVE_SERVE_H
#define WB_SERVE_SERVE_H

#include "base/slice.h"
#include "httpd/httpd.h"
#include "replay/replay.h"

#define WB_SERVE_MEMORY_BYTES UINT64_C(256000000)

/* A provider of content, who may push pages and announcements of its own sites. */
struct wb_serve_provider {
    struct wb_slice token;
    struct wb_slice host; /* the host and its subdomains, in normal form; without a port: all ports */
};

struct wb_serve_options {
    const char *dir;               /* the repository */
    struct wb_slice listen;        /* "127.0.0.1:8080" */
    const char *certificate, *key; /* PEM files; NULL: plain HTTP */
    struct wb_slice token;         /* of the operator; empty: the one in DIR/token, which is made if there is none */
    const struct wb_slice *hosts;  /* under which the server answers, besides its addresses: NAME or NAME:PORT... */
    size_t host_count;             /* ...in lower case and ASCII */
    bool open;                     /* reading needs no token even if others than this machine can connect */
    const struct wb_serve_provider *providers;
    size_t provider_count;
    struct wb_slice replay_listen; /* a second address, where each stored site has an origin; empty: there is none */
    struct wb_replay_base replay_base; /* under which name it is reached; name empty: localhost */
    uint64_t memory_bytes; /* that all caches together keep (base/kept.h), beyond mapped files; 0: the usual bound */
    unsigned query_ms;   /* a query that takes longer answers with what it has; 0: 2 s */
    unsigned workers;    /* 0: as httpd chooses */
    struct wb_httpd_limits limits;
    void (*ready)(void *context, const char *url); /* called when requests are accepted; may be NULL */
    void (*replay_ready)(void *context, const char *url); /* the same for the second address */
    const char *const *run;         /* arguments of a process that runs the cycle beside the server; NULL: none */
    void (*say)(void *context, const char *message); /* what happens to that process; only needed if there is one */
    void *context;                  /* of both */
};

/*
 * Checks the files that servers keep in the repository. found is called for each problem, and, with problem false, for
 * what is only worth a note.
 */
int wb_serve_verify(const char *dir,
                    void (*found)(void *context, bool problem, const char *file, uint64_t offset,
                                  const char *message),
                    void *context);

/* Serves until a stop is requested (os/stop.h). */
int wb_serve(const struct wb_serve_options *options);

#endif
