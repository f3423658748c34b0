/*
 * api_stream.c - GET /api/stream: whole collections over HTTP, piece by piece, as the client takes them.
 *
 *   GET  /api/stream?format=jsonl&suffix=edu&...     the options of `webbase stream` by their names
 *   GET  /api/stream?join=NAME&...                   a part of a stream that several workers share
 *   POST /api/stream/acknowledge?name=&token=        what a client of a named stream has got for good
 *   POST /api/stream/acknowledge?join=&worker=&position=             these parameters may also be a form in the body
 *
 * A complete stream ends its chunked body properly, one that is cut short does not. The field WebBase-Token is the
 * token of the beginning, so that a client can resume even if it got nothing. format=wire is for webbase itself: blocks
 * as they are on disk.
 *
 * While a transfer of a batch design is under way, no scan can begin. A new stream is then refused (503, Retry-After).
 * One that is under way and needs another scan waits without a thread, and is cut if that takes long.
 */
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/locked.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/random.h"
#include "serve/server.h"

#include <pthread.h>
#include <stdio.h>

enum { PIECE = 256 << 10, LATER_MS = 500, TRANSFER_MS = 10000, WORKER_BYTES = 8, DAMAGES_AT_ONCE = 64 };

#define STREAM_REPLY_MAGIC 0x57425359u

struct stream_reply {
    uint32_t magic;                   /* STREAM_REPLY_MAGIC until it is closed */
    struct wb_server *server;
    struct wb_stream *stream;         /* or... */
    struct wb_deal_worker *worker;    /* ...a part of one that others share */
    pthread_mutex_t lock;             /* of the worker: acknowledgements come from other threads */
    struct wb_stream_pen *pen;        /* NULL: wire */
    int64_t waits_since_ns;           /* for a transfer; 0: it does not wait */
    bool damaged;                     /* something could not be read: the body must not end as if it were complete */
    struct wb_error_copy late;        /* what ends the body behind the piece before */
    struct stream_reply *next;        /* of those that can be acknowledged */
    char name[WB_STORE_NAME_MAX + 1]; /* empty: it cannot */
    char id[2 * WORKER_BYTES + 1];    /* the worker's */
};

/* ---- acknowledging ------------------------------------------------------------------------------- */

/* Streams that are open, so that an acknowledgement finds its own. */
static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_reply *named_list;

static void add_named(struct stream_reply *r)
{
    WB_CHECK(r->magic == STREAM_REPLY_MAGIC);
    WB_CHECK(r->name[0]);
    WB_CHECK(!r->next);
    pthread_mutex_lock(&named_lock);
    r->next = named_list;
    named_list = r;
    pthread_mutex_unlock(&named_lock);
}

static void remove_named(struct stream_reply *r)
{
    WB_CHECK(r->magic == STREAM_REPLY_MAGIC);
    WB_CHECK(r->name[0]);
    pthread_mutex_lock(&named_lock);
    struct stream_reply **at = &named_list;
    while (*at && *at != r)
        at = &(*at)->next;
    WB_CHECK(*at == r);
    *at = r->next;
    pthread_mutex_unlock(&named_lock);
}

struct acknowledgement {
    enum wb_stream_who who;
    struct wb_slice what; /* a token, or a position */
};

/* Calls act() for the open stream of a name, and of a worker if there are several. Returns 1 if there was one. */
static int with_named(struct wb_server *server, struct wb_slice name, struct wb_slice id,
                      int (*act)(struct stream_reply *r, const struct acknowledgement *a),
                      const struct acknowledgement *a)
{
    int found = 0;

    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    pthread_mutex_lock(&named_lock);
    for (struct stream_reply *r = named_list; r && !found; r = r->next)
        if (r->server == server && wb_slice_equal(name, wb_slice_str(r->name)) &&
            wb_slice_equal(id, wb_slice_str(r->id))) {
            int err = act(r, a);
            found = err < 0 ? err : 1;
        }
    pthread_mutex_unlock(&named_lock);
    return found;
}

static int acknowledge_token(struct stream_reply *r, const struct acknowledgement *a)
{
    WB_CHECK(wb_is_locked(&named_lock)); /* so it is not closed meanwhile */
    WB_CHECK(r->magic == STREAM_REPLY_MAGIC);
    WB_CHECK(r->stream && !r->worker);
    return wb_stream_acknowledge_token(r->stream, a->who, a->what);
}

static int acknowledge_position(struct stream_reply *r, const struct acknowledgement *a)
{
    uint64_t position;

    WB_CHECK(wb_is_locked(&named_lock)); /* so it is not closed meanwhile */
    WB_CHECK(r->magic == STREAM_REPLY_MAGIC);
    WB_CHECK(r->worker && !r->stream);
    if (!wb_slice_to_u64(a->what, &position))
        return wb_fail(WB_E_INVALID, "position=%.*s is not a number", WB_SLICE_ARG(a->what));
    pthread_mutex_lock(&r->lock);
    int err = wb_deal_acknowledge(r->worker, position);
    pthread_mutex_unlock(&r->lock);
    return err;
}

/* Of one worker. If it is not there any more, its records went to others. */
static int acknowledge_join(struct wb_call *call, struct wb_slice name)
{
    struct wb_slice id, position;

    int err = wb_call_required(call, "worker", &id);
    if (err == 0)
        err = wb_call_required(call, "position", &position);
    if (err < 0)
        return err;
    struct acknowledgement a = {wb_access_who(call->server, call->request), position};
    int found = with_named(call->server, name, id, acknowledge_position, &a);
    if (found == 0)
        return wb_fail(WB_E_NOTFOUND, "the stream %.*s has no worker %.*s", WB_SLICE_ARG(name), WB_SLICE_ARG(id));
    wb_http_wake(call->server->httpd); /* others may wait for this */
    return found < 0 ? found : 0;
}

static int acknowledge_name(struct wb_call *call)
{
    struct wb_slice name, token;

    int err = wb_call_required(call, "name", &name);
    if (err == 0)
        err = wb_call_required(call, "token", &token);
    if (err < 0)
        return err;
    struct acknowledgement a = {wb_access_who(call->server, call->request), token};
    int found = with_named(call->server, name, WB_SLICE_LIT(""), acknowledge_token, &a);
    return found < 0 ? found : found > 0 ? 0 : wb_stream_named_acknowledge(call->server->streams, a.who, name, token);
}

void wb_handle_acknowledge(struct wb_call *call)
{
    struct wb_slice join = {NULL, 0};
    struct wb_json j;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_call_form(call);
    if (err == 0)
        join = wb_call_param(call, "join");
    if (err == 0)
        err = join.ptr ? acknowledge_join(call, join) : acknowledge_name(call);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    wb_call_json(call, &j);
    wb_json_field_bool(&j, "ok", true);
    wb_call_json_end(call, &j, 0);
}

/* ---- pieces -------------------------------------------------------------------------------------- */

static int next_record(struct stream_reply *r, struct wb_stream_record *record)
{
    WB_CHECK(!r->stream != !r->worker);
    return r->worker ? wb_deal_next(r->worker, record) : wb_stream_next(r->stream, record);
}

static int next_records(struct stream_reply *r, struct wb_buf *out)
{
    struct wb_stream_record record;
    unsigned damages = 0;
    int got = 1;

    WB_CHECK(r->pen);
    WB_CHECK(wb_is_locked(&r->lock));
    while (got == 1 && out->len < PIECE) {
        got = next_record(r, &record);
        if (got == WB_E_CORRUPT) {
            r->damaged = true;
            got = ++damages == DAMAGES_AT_ONCE ? WB_STREAM_AGAIN : 1;
        } else if (got == 1) {
            int err = wb_stream_pen_write(r->pen, &record, out);
            got = err < 0 ? err : 1;
        }
    }
    return got == WB_DEAL_LATER && out->len ? 1 : got;
}

static int next_wire(struct stream_reply *r, struct wb_buf *out)
{
    WB_CHECK(!r->pen);
    WB_CHECK(wb_is_locked(&r->lock));
    int got = r->worker ? wb_deal_next_wire(r->worker, out) : wb_stream_next_wire(r->stream, out);

    return got == WB_DEAL_LATER && out->len ? 1 : got;
}

/* A transfer is under way: sends what there is, or asks again later, for a while. got: the error, WB_E_BUSY. */
static int wait_for_transfer(struct stream_reply *r, const struct wb_buf *out, int got)
{
    WB_CHECK(got == WB_E_BUSY);
    int64_t now = wb_clock_mono_ns();

    if (out->len)
        return WB_HTTP_MORE;
    if (r->waits_since_ns == 0)
        r->waits_since_ns = now;
    WB_CHECK(r->waits_since_ns <= now);
    return now - r->waits_since_ns < (int64_t)TRANSFER_MS * 1000000 ? WB_HTTP_LATER : got;
}

static int next_piece(void *source, void *worker, struct wb_buf *out, unsigned *wait_ms_out)
{
    struct stream_reply *r = source;

    WB_CHECK(r->magic == STREAM_REPLY_MAGIC);
    WB_CHECK(!r->stream != !r->worker);
    WB_CHECK(out->len == 0);
    WB_CHECK(((const struct wb_serve_worker *)worker)->magic == WB_SERVE_WORKER_MAGIC);
    if (r->late.code < 0)
        return wb_error_restore(&r->late);
    if (r->stream)
        wb_stream_keep(r->stream);
    pthread_mutex_lock(&r->lock);
    int got = r->pen ? next_records(r, out) : next_wire(r, out);
    pthread_mutex_unlock(&r->lock);
    *wait_ms_out = LATER_MS;
    if (got == WB_E_BUSY && r->stream && wb_stream_waits(r->stream))
        return wait_for_transfer(r, out, got);
    r->waits_since_ns = 0;
    if (got == 0 && r->damaged)
        got = wb_fail(WB_E_CORRUPT, "a damaged place was left out of a stream");
    if (got < 0 && out->len) { /* an error would throw away what is in this piece, so it comes with the next one */
        wb_error_save(got, &r->late);
        return WB_HTTP_MORE;
    }
    return got < 0 ? got : got == WB_DEAL_LATER ? WB_HTTP_LATER : got > 0 ? WB_HTTP_MORE : WB_HTTP_END;
}

static void close_stream(void *source)
{
    struct stream_reply *r = source;
    struct wb_httpd *httpd = r->server->httpd;
    bool shared = r->worker != NULL;

    WB_CHECK(r->magic == STREAM_REPLY_MAGIC);
    if (r->name[0])
        remove_named(r);
    wb_stream_close(r->stream);
    wb_deal_leave(r->worker);
    wb_stream_pen_free(r->pen);
    pthread_mutex_destroy(&r->lock);
    r->magic = 0;
    wb_free(r);
    if (shared)
        wb_http_wake(httpd); /* what it had goes to others */
}

static const struct wb_http_source stream_source = {next_piece, close_stream};

/* ---- beginning ----------------------------------------------------------------------------------- */

static int read_spec(const struct wb_http_request *request, struct wb_stream_spec *spec, bool *tokens_out)
{
    struct wb_buf name = WB_BUF_INIT;
    int err = 0;

    *tokens_out = false;
    for (size_t i = 0; i < request->param_count && err == 0; i++) {
        const struct wb_http_field *param = &request->params[i];
        if (wb_slice_equal(param->name, WB_SLICE_LIT("format")))
            continue;
        if (wb_slice_equal(param->name, WB_SLICE_LIT("tokens"))) {
            *tokens_out = wb_slice_equal(param->value, WB_SLICE_LIT("1"));
            continue;
        }
        wb_buf_clear(&name);
        err = wb_buf_append_slice(&name, param->name);
        if (err == 0)
            err = wb_buf_terminate(&name);
        if (err == 0)
            err = wb_stream_spec_set(spec, name.ptr, param->value, false);
        if (err == WB_E_NOTFOUND)
            err = wb_fail(WB_E_INVALID, "there is no parameter %.*s", WB_SLICE_ARG(param->name));
    }
    wb_buf_release(&name);
    return err;
}

/* What the client should know before it takes the records: that some come a second time. */
static int add_warning(struct wb_call *call, struct stream_reply *r)
{
    char text[WB_ERROR_MESSAGE_MAX];

    if (!(r->worker ? wb_deal_warning(r->worker, text) : wb_stream_warning(r->stream, text)))
        return 0;
    return wb_http_reply_field(call->reply, "WebBase-Warning", wb_slice_str(text));
}

static int add_worker_fields(struct wb_call *call, struct stream_reply *r, const char *type)
{
    WB_CHECK(r->worker);
    WB_CHECK(r->id[0]);
    int err = wb_http_reply_field(call->reply, "Content-Type", wb_slice_str(type));

    return err < 0 ? err : wb_http_reply_field(call->reply, "WebBase-Worker", wb_slice_str(r->id));
}

static int add_fields(struct wb_call *call, struct stream_reply *r, const char *type)
{
    struct wb_stream_info info;
    struct wb_buf token = WB_BUF_INIT;
    char number[24];

    WB_CHECK(r->stream && !r->worker);
    wb_stream_info(r->stream, &info);
    snprintf(number, sizeof number, "%u", info.snapshot);
    int err = wb_http_reply_field(call->reply, "Content-Type", wb_slice_str(type));
    if (err == 0)
        err = wb_http_reply_field(call->reply, "WebBase-Snapshot", wb_slice_str(number));
    if (err == 0)
        err = wb_stream_token(r->stream, &token);
    if (err == 0)
        err = wb_http_reply_field(call->reply, "WebBase-Token", wb_buf_slice(&token));
    wb_buf_release(&token);
    return err;
}

/* What would change something is not for requests that a page of another site has caused. */
static int check_stranger(const struct wb_stream_spec *spec)
{
    if (spec->who != WB_STREAM_STRANGER ||
        (!spec->name.len && !spec->join.len && !spec->versions && spec->state != WB_STREAM_LATEST))
        return 0;
    return wb_fail(WB_E_DENIED, "a page of another site has caused this request: it can read a stream, but not with "
                                "name, join, latest or versions, which change something");
}

/* Begins to deliver, or joins those who do. */
static int open_spec(struct wb_call *call, struct stream_reply *r, const struct wb_stream_spec *spec)
{
    WB_CHECK(!r->stream && !r->worker);
    WB_CHECK(!r->name[0]);
    struct wb_slice name = spec->join.len ? spec->join : spec->name;
    uint8_t id[WORKER_BYTES];
    int err;

    if (spec->join.len && spec->name.len)
        return wb_fail(WB_E_INVALID, "name and join exclude each other");
    err = check_stranger(spec);
    if (err < 0)
        return err;
    if (spec->join.len) {
        err = wb_deal_join(call->server->streams, spec, &r->worker);
        wb_random_bytes(id, sizeof id);
        wb_hex_encode(id, sizeof id, r->id);
    } else {
        err = wb_stream_open(call->server->streams, spec, true, &r->stream);
    }
    if (err == 0 && name.len) {
        snprintf(r->name, sizeof r->name, "%.*s", WB_SLICE_ARG(name));
        add_named(r);
    }
    return err;
}

static int open_stream(struct wb_call *call, struct stream_reply *r)
{
    WB_CHECK(!r->pen);
    WB_CHECK(!r->stream && !r->worker);
    struct wb_slice text = wb_http_param(call->request, "format");
    bool wire = wb_slice_equal(text, WB_SLICE_LIT("wire")), tokens;
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;
    enum wb_stream_format format = WB_STREAM_JSONL;

    int err = text.ptr && !wire ? wb_stream_format_parse(text, &format) : 0;
    const char *type = wire ? WB_STREAM_WIRE_TYPE : wb_stream_format_type(format);
    if (err == 0)
        err = read_spec(call->request, &spec, &tokens);
    if (err == 0 && !wire)
        err = wb_stream_pen_new(format, tokens, &r->pen);
    if (err == 0) {
        spec.who = wb_access_who(call->server, call->request);
        spec.facts = !wire && !wb_stream_format_bodies(format);
        spec.docids = wire;
        err = open_spec(call, r, &spec);
    }
    if (err == 0)
        err = r->worker ? add_worker_fields(call, r, type) : add_fields(call, r, type);
    if (err == 0)
        err = add_warning(call, r);
    wb_stream_spec_release(&spec);
    return err;
}

void wb_handle_stream(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct stream_reply *r = wb_alloc_zero(1, sizeof(*r));

    if (!r) {
        wb_call_fail(call, WB_E_NOMEM);
        return;
    }
    r->magic = STREAM_REPLY_MAGIC;
    r->server = call->server;
    pthread_mutex_init(&r->lock, NULL);
    int err = open_stream(call, r);
    if (err < 0) {
        wb_call_fail(call, err);
        close_stream(r);
        return;
    }
    WB_CHECK(!call->reply->source);
    call->reply->source = &stream_source;
    call->reply->source_context = r;
}
