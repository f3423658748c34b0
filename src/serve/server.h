/*
 * server.h - what the files of serve share: the server, its workers, a call, and the table of routes.
 *
 *   httpd --- request ---> wb_route_find() --- access ---> handler(call) --- reply ---> httpd
 *
 * To add a call: write a handler, declare it at the end of this header, give it a row in routes.c, a line in
 * docs/http.md and a path in openapi.json. tests/e2e/serve.py checks that all of them agree.
 */
#ifndef WB_SERVE_SERVER_H
#define WB_SERVE_SERVER_H

#include "answer/answer.h"
#include "base/json.h"
#include "serve/serve.h"
#include "stream/stream.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WB_SERVE_TOKEN_MAX = 128 };

#define WB_SERVER_MAGIC 0x57425356u
#define WB_SERVE_WORKER_MAGIC 0x57425357u
#define WB_CALL_MAGIC 0x5742434cu

/* Shared by all threads. */
struct wb_server {
    uint32_t magic; /* WB_SERVER_MAGIC while wb_serve() is at work */
    const struct wb_serve_options *options;
    struct wb_httpd *httpd;
    struct wb_stream_home *streams;
    struct wb_metrics *metrics;
    struct wb_watch *watch;
    struct wb_push_gate *push_gate;
    struct wb_guesses *guesses;
    struct wb_pusher *pusher;
    struct wb_dash *dash;
    struct wb_replay_door *door; /* the second address; NULL: there is none */
    char token[WB_SERVE_TOKEN_MAX + 1]; /* of the operator */
    bool reading_is_open;               /* no token is needed for reading */
    _Atomic uint32_t generation;        /* the newest, as far as known */
    _Atomic uint32_t opened;            /* the newest that a worker has opened: nobody needs an older one any more */
    _Atomic int64_t looked_ns;          /* when that was looked up */
    struct wb_text_cache *texts;        /* of the searchers of all workers */
    int64_t began_ms;
};

/* Of one thread. */
struct wb_serve_worker {
    uint32_t magic;   /* WB_SERVE_WORKER_MAGIC from open to close */
    pthread_t thread; /* the only one that may use it */
    struct wb_server *server;
    struct wb_store *store;
    struct wb_searcher *searcher; /* NULL: none is open */
    uint32_t generation;          /* that the searcher reads */
    struct wb_extractor *extractor;
    struct wb_replayer *replayer;
    struct wb_patience *patience;
};

/* What a handler has begun, which it must end before it returns. */
enum wb_call_body {
    WB_CALL_NOTHING,
    WB_CALL_JSON,  /* wb_call_json() */
    WB_CALL_PAGE,  /* wb_page_begin() */
    WB_CALL_ENDED, /* either was ended, or the reply is an error */
};

/* One request while it is answered. */
struct wb_call {
    uint32_t magic; /* WB_CALL_MAGIC while it is answered */
    enum wb_call_body body;
    struct wb_server *server;
    struct wb_serve_worker *worker;
    const struct wb_http_request *request;
    struct wb_http_reply *reply;
    bool parts; /* set by a handler: clients may ask for parts of the body (delivery.h) */
    struct wb_http_form *form; /* the body, if wb_call_form() has read it */
};

/* ---- routes (routes.c) --------------------------------------------------------------------------- */

enum wb_access {
    WB_ACCESS_ANYONE,   /* health */
    WB_ACCESS_READER,   /* open on loopback or with --public, otherwise any token */
    WB_ACCESS_WATCHER,  /* reading what is the operator's: the token, also as a password */
    WB_ACCESS_PROVIDER, /* a provider's token, or the operator's */
    WB_ACCESS_OPERATOR,
};

struct wb_route {
    const char *path;
    bool prefix;      /* everything that begins like this */
    unsigned methods; /* bit i: enum wb_http_method i. GET includes HEAD */
    enum wb_access access;
    uint64_t body_max;
    bool people; /* a page for people: errors are shown as HTML too */
    bool slow;   /* it reads whole pages or long lists: only some of the workers do that at once */
    void (*handle)(struct wb_call *call);
    const char *params; /* that it knows, with blanks between them; NULL: none. openapi.json has the same ones */
};

/* The route of a request; NULL: there is none. */
const struct wb_route *wb_route_find(struct wb_slice path);

/* The number of the route of a path, for counters; SIZE_MAX: there is none. And its path. */
size_t wb_route_number(struct wb_slice path);
size_t wb_route_count(void);
const char *wb_route_path(size_t number);

/* Decides about a request by its head: 0, or 1 and the reply is the refusal. */
int wb_route_admit(struct wb_server *server, const struct wb_http_request *head, uint64_t *body_max_out,
                   struct wb_http_reply *reply);

/* Whether somebody tries tokens too fast; then the reply is the refusal. Otherwise the answer may be held back. */
bool wb_route_is_guessing(struct wb_server *server, const struct wb_http_request *head, struct wb_http_reply *reply);

/* Whether a request that was admitted may take long. */
bool wb_route_is_slow(const struct wb_http_request *request);

/* Makes the reply an error: a page if people read it, otherwise JSON. route: NULL if there is none. */
void wb_route_fail(const struct wb_route *route, const struct wb_http_request *request, struct wb_http_reply *reply,
                   unsigned status, const char *message);

/* ---- access (access.c) --------------------------------------------------------------------------- */

/* Reads the operator's token, or makes one. */
int wb_access_init(struct wb_server *server);

/* 0, or 401 or 403. */
unsigned wb_access_check(const struct wb_server *server, const struct wb_http_request *request, enum wb_access access);

/*
 * Whether the request has a token, or a password; if so, *right_out says whether it is one of ours, whatever it is good
 * for.
 */
bool wb_access_has_token(const struct wb_server *server, const struct wb_http_request *request, bool *right_out);

/* As what a request may ask for streams: with a token as an owner, without as a reader. */
enum wb_stream_who wb_access_who(const struct wb_server *server, const struct wb_http_request *request);

/* The provider whose token the request has; NULL: none. operator_out: it has the operator's. */
const struct wb_serve_provider *wb_access_provider(const struct wb_server *server,
                                                   const struct wb_http_request *request, bool *operator_out);

/* ---- names (own_names.c) ------------------------------------------------------------------------- */

/* Whether the request is for this server. If not, *foreign_out is the host that it is for. */
bool wb_own_names_has(const struct wb_server *server, const struct wb_http_request *request,
                      struct wb_slice *foreign_out);

/* Whether the request may change something: no page of another site has caused it. See also wb_access_who(). */
bool wb_own_names_trust(const struct wb_server *server, const struct wb_http_request *request);

/* ---- calls (call.c) ------------------------------------------------------------------------------ */

/* Whether a handler may begin: nothing was answered yet, and this is the thread of its worker. For assertions. */
bool wb_call_is_fresh(const struct wb_call *call);

/* Makes the reply an error by the code of a failed function, with its message. */
void wb_call_fail(struct wb_call *call, int err);

/* The searcher of this thread on the newest generation. WB_E_BUSY if there is no index yet. */
int wb_call_searcher(struct wb_call *call, struct wb_searcher **searcher_out);

/* Reads the body as a form, whose parameters are then found as those of the query are. WB_E_INVALID. */
int wb_call_form(struct wb_call *call);

/* Parameters. ptr NULL: there is none. WB_E_INVALID with a message that names the parameter. */
struct wb_slice wb_call_param(struct wb_call *call, const char *name);
int wb_call_required(struct wb_call *call, const char *name, struct wb_slice *value_out);
int wb_call_number(struct wb_call *call, const char *name, uint64_t fallback, uint64_t max, uint64_t *value_out);
int wb_call_flag(struct wb_call *call, const char *name, bool *value_out); /* 1, true, 0, false */

/* The body of the reply as one JSON object: begin, add fields, end. */
void wb_call_json(struct wb_call *call, struct wb_json *j);
void wb_call_json_end(struct wb_call *call, struct wb_json *j, int err);

/* Appends a text as the value of a parameter in a URL. */
int wb_call_escape(struct wb_slice text, struct wb_buf *out);

/* Sets the content type. */
void wb_call_type(struct wb_call *call, const char *type);

/* Reads the options of a search from the parameters (api_search.c). */
int wb_call_search(struct wb_call *call, struct wb_searcher *searcher, struct wb_search_options *search_out);

/* ---- workers (serve_worker.c) -------------------------------------------------------------------- */

int wb_serve_worker_open(void *server, void **worker_out);
void wb_serve_worker_close(void *server, void *worker);

/* Lets go of a generation that was replaced. */
void wb_serve_worker_rest(void *server, void *worker);

/* ---- patience (patience.c) ----------------------------------------------------------------------- */

/* One thread looks at the clock for all workers, so that searches need not. */
int wb_watch_new(unsigned query_ms, struct wb_watch **watch_out);
void wb_watch_free(struct wb_watch *watch);

/* A worker joins before its first search, and leaves at its end. */
int wb_patience_join(struct wb_watch *watch, struct wb_patience **patience_out);
void wb_patience_leave(struct wb_watch *watch, struct wb_patience *patience);

/* Begins the time of a query, and ends it. The flag becomes true when the time is up. */
const _Atomic bool *wb_patience_begin(struct wb_serve_worker *worker);
void wb_patience_end(struct wb_serve_worker *worker);

/* ---- metrics (metrics.c) ------------------------------------------------------------------------- */

int wb_metrics_new(struct wb_metrics **metrics_out);
void wb_metrics_free(struct wb_metrics *metrics);
void wb_metrics_count(struct wb_metrics *metrics, const struct wb_http_request *request, unsigned status,
                      uint64_t bytes, uint64_t microseconds);

/* All requests since the start, and those that were answered with a status from 500. */
void wb_metrics_sum(const struct wb_metrics *metrics, uint64_t *requests_out, uint64_t *failed_out);

/* ---- pushes (api_push.c) ------------------------------------------------------------------------- */

int wb_push_gate_new(size_t provider_count, struct wb_push_gate **gate_out);
void wb_push_gate_free(struct wb_push_gate *gate);

/* Counts a push of the token in the head. False if there were too many; then the reply is the refusal. */
bool wb_push_gate_open(struct wb_server *server, const struct wb_http_request *head, struct wb_http_reply *reply);

/* ---- handlers ------------------------------------------------------------------------------------ */

void wb_handle_search(struct wb_call *call); /* api_search.c */
void wb_handle_complete(struct wb_call *call); /* api_complete.c */
void wb_handle_page(struct wb_call *call);   /* api_page.c */
void wb_handle_versions(struct wb_call *call);
void wb_handle_calendar(struct wb_call *call); /* api_calendar.c */
void wb_handle_listing(struct wb_call *call);  /* api_listing.c */
void wb_handle_embedded(struct wb_call *call); /* api_embedded.c */
void wb_handle_links(struct wb_call *call); /* api_links.c */
void wb_handle_similar(struct wb_call *call);
void wb_handle_stat(struct wb_call *call); /* api_stat.c */
void wb_handle_snapshots(struct wb_call *call);
void wb_handle_health(struct wb_call *call);
void wb_handle_metrics(struct wb_call *call); /* metrics.c */
void wb_handle_stream(struct wb_call *call);  /* api_stream.c */
void wb_handle_acknowledge(struct wb_call *call);
void wb_handle_push(struct wb_call *call);    /* api_push.c */
void wb_handle_cdx(struct wb_call *call);     /* api_cdx.c */
void wb_handle_replay(struct wb_call *call);  /* web_replay.c */
void wb_handle_timemap(struct wb_call *call); /* memento.c */
void wb_handle_openapi(struct wb_call *call); /* assets.c */
void wb_handle_asset(struct wb_call *call);
void wb_handle_icon(struct wb_call *call);
void wb_handle_opensearch(struct wb_call *call);  /* assets.c */
void wb_handle_robots(struct wb_call *call);
void wb_handle_control(struct wb_call *call);     /* api_control.c */
void wb_handle_expunge(struct wb_call *call);
void wb_handle_token(struct wb_call *call);
void wb_handle_dash_data(struct wb_call *call);   /* api_dash.c */
void wb_handle_history(struct wb_call *call);     /* api_history.c */
void wb_handle_sites(struct wb_call *call);       /* api_watch.c */
void wb_handle_fetches(struct wb_call *call);
void wb_handle_orders(struct wb_call *call);
void wb_handle_sites_page(struct wb_call *call);  /* page_watch.c */
void wb_handle_fetches_page(struct wb_call *call);
void wb_handle_orders_page(struct wb_call *call);
void wb_handle_search_page(struct wb_call *call); /* page_search.c */
void wb_handle_page_view(struct wb_call *call);   /* page_view.c */
void wb_handle_bar(struct wb_call *call);           /* stage_bar.c */
void wb_handle_calendar_page(struct wb_call *call); /* page_calendar.c */
void wb_handle_compare(struct wb_call *call);       /* page_compare.c */
void wb_handle_compare_frame(struct wb_call *call);
void wb_handle_files_page(struct wb_call *call);    /* page_files.c */
void wb_handle_listing_page(struct wb_call *call);  /* page_listing.c */
void wb_handle_site_page(struct wb_call *call);   /* page_site.c */
void wb_handle_dash_page(struct wb_call *call);   /* page_dash.c */

#endif
