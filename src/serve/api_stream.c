/*
 * api_stream.c - GET /api/stream: whole collections over HTTP, piece by piece, as the client takes them.
 *
 *   GET  /api/stream?format=jsonl&suffix=edu&...     the options of `webbase stream` by their names
 *   POST /api/stream/acknowledge?name=&token=        what a client of a named stream has got for good
 *
 * A complete stream ends its chunked body properly, one that is cut short does not. The field WebBase-Token is the
 * token of the beginning, so that a client can resume even if it got nothing. format=wire is for webbase itself: blocks
 * as they are on disk.
 */
#include "base/error.h"
#include "base/mem.h"
#include "serve/server.h"

#include <pthread.h>
#include <stdio.h>

enum { PIECE = 256 << 10 };

struct stream_reply {
    struct wb_server *server;
    struct wb_stream *stream;
    struct wb_stream_pen *pen; /* NULL: wire */
    bool damaged;              /* something could not be read: the body must not end as if it were complete */
    struct stream_reply *next; /* of those that have a name */
    char name[WB_STORE_NAME_MAX + 1];
};

/* ---- streams with a name ------------------------------------------------------------------------- */

/* Those that are open, so that an acknowledgement finds its stream. */
static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_reply *named_list;

static void add_named(struct stream_reply *r)
{
    pthread_mutex_lock(&named_lock);
    r->next = named_list;
    named_list = r;
    pthread_mutex_unlock(&named_lock);
}

static void remove_named(struct stream_reply *r)
{
    pthread_mutex_lock(&named_lock);
    for (struct stream_reply **at = &named_list; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    pthread_mutex_unlock(&named_lock);
}

void wb_handle_acknowledge(struct wb_call *call)
{
    struct wb_slice name, token;
    struct wb_json j;
    bool found = false;

    int err = wb_call_required(call, "name", &name);
    if (err == 0)
        err = wb_call_required(call, "token", &token);
    pthread_mutex_lock(&named_lock);
    for (struct stream_reply *r = named_list; r && err == 0 && !found; r = r->next)
        if (r->server == call->server && wb_slice_equal(name, wb_slice_str(r->name))) {
            found = true;
            err = wb_stream_acknowledge_token(r->stream, token);
        }
    pthread_mutex_unlock(&named_lock);
    if (err == 0 && !found)
        err = wb_stream_named_acknowledge(call->server->streams, name, token);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    wb_call_json(call, &j);
    wb_json_field_bool(&j, "ok", true);
    wb_call_json_end(call, &j, 0);
}

/* ---- pieces -------------------------------------------------------------------------------------- */

static int next_records(struct stream_reply *r, struct wb_buf *out)
{
    struct wb_stream_record record;
    int got = 1;

    while (got > 0 && out->len < PIECE) {
        got = wb_stream_next(r->stream, &record);
        if (got == WB_E_CORRUPT) {
            r->damaged = true;
            got = 1;
        } else if (got > 0) {
            int err = wb_stream_pen_write(r->pen, &record, out);
            got = err < 0 ? err : 1;
        }
    }
    return got;
}

static int next_piece(void *source, void *worker, struct wb_buf *out, unsigned *wait_ms_out)
{
    struct stream_reply *r = source;

    (void)worker;
    (void)wait_ms_out;
    wb_stream_keep(r->stream);
    int got = r->pen ? next_records(r, out) : wb_stream_next_wire(r->stream, out);
    if (got == 0 && r->damaged)
        return wb_fail(WB_E_CORRUPT, "a damaged place was left out of a stream");
    return got < 0 ? got : got > 0 ? WB_HTTP_MORE : WB_HTTP_END;
}

static void close_stream(void *source)
{
    struct stream_reply *r = source;

    if (r->name[0])
        remove_named(r);
    wb_stream_close(r->stream);
    wb_stream_pen_free(r->pen);
    wb_free(r);
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

static int add_fields(struct wb_call *call, struct stream_reply *r, const char *type)
{
    struct wb_stream_info info;
    struct wb_buf token = WB_BUF_INIT;
    char number[24];

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

static int open_stream(struct wb_call *call, struct stream_reply *r)
{
    struct wb_slice text = wb_http_param(call->request, "format");
    bool wire = wb_slice_equal(text, WB_SLICE_LIT("wire")), tokens;
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;
    enum wb_stream_format format = WB_STREAM_JSONL;

    int err = text.ptr && !wire ? wb_stream_format_parse(text, &format) : 0;
    if (err == 0)
        err = read_spec(call->request, &spec, &tokens);
    if (err == 0 && !wire)
        err = wb_stream_pen_new(format, tokens, &r->pen);
    if (err == 0) {
        spec.facts = !wire && !wb_stream_format_bodies(format);
        spec.docids = wire;
        err = wb_stream_open(call->server->streams, &spec, true, &r->stream);
    }
    if (err == 0 && spec.name.len) {
        snprintf(r->name, sizeof r->name, "%.*s", WB_SLICE_ARG(spec.name));
        add_named(r);
    }
    if (err == 0)
        err = add_fields(call, r, wire ? "application/x-webbase-stream" : wb_stream_format_type(format));
    wb_stream_spec_release(&spec);
    return err;
}

void wb_handle_stream(struct wb_call *call)
{
    struct stream_reply *r = wb_alloc_zero(1, sizeof(*r));
    int err = r ? 0 : WB_E_NOMEM;

    if (err == 0) {
        r->server = call->server;
        err = open_stream(call, r);
    }
    if (err < 0) {
        wb_call_fail(call, err);
        if (r)
            close_stream(r);
        return;
    }
    call->reply->source = &stream_source;
    call->reply->source_context = r;
}
