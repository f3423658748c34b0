/*
 * httpd_exchange.c - a request and its reply: head, admission, body, the handler, sending, and what becomes of the
 * connection afterwards. One request at a time: a client that sends the next one early gets its answers in order.
 */
#include "httpd/httpd_conn.h"
#include "os/clock.h"

#define BODY_STEP_BYTES 16384u /* a body gets a second more for each of these */
#define BODY_STEP_MS 1000
#define RETRY_SECONDS "1"

/* ---- replies ------------------------------------------------------------------------------------ */

/* The time of day as fields have it, formatted once per second. */
static const char *date_now(struct wb_httpd *httpd)
{
    int64_t now_ms = wb_clock_wall_ms();

    if (now_ms / 1000 != httpd->date_second && wb_date_format_http(now_ms, httpd->date))
        httpd->date_second = now_ms / 1000;
    return httpd->date;
}

/* Begins to send the reply. */
static void send_now(struct wb_httpd_conn *c)
{
    struct wb_httpd *httpd = c->httpd;

    c->state = WB_CONN_SEND;
    c->answered = true;
    c->framing = wb_httpd_reply_framing(&c->reply, &c->head);
    c->keep = c->keep && !c->reply.close && c->framing != WB_FRAMING_CLOSE && httpd->stop_at_ms == 0;
    c->stall_at_ms = wb_httpd_now_ms() + httpd->limits.stall_ms;
    struct wb_httpd_piece *piece = wb_httpd_outbox_add(&c->out);
    if (wb_httpd_reply_head(&c->reply, &c->head, date_now(httpd), c->keep, &piece->lead) < 0) {
        wb_httpd_outbox_undo(&c->out);
        wb_httpd_conn_cut(c, false);
        return;
    }
    if (c->framing == WB_FRAMING_LENGTH) {
        wb_buf_release(&piece->bytes);
        piece->bytes = wb_buf_take(&c->reply.body);
        c->held_bytes = piece->bytes.len;
        httpd->held_bytes += c->held_bytes;
    }
    wb_httpd_outbox_added(&c->out);
    wb_httpd_exchange_pump(c);
}

/* Makes the reply an error of the server's own. */
static void reply_error(struct wb_httpd_conn *c, unsigned status, const char *why)
{
    wb_http_reply_error(&c->reply, status, "%s", why);
    if (status == 405)
        wb_http_reply_field(&c->reply, "Allow", WB_SLICE_LIT("GET, HEAD, POST"));
    if (status == 503)
        wb_http_reply_field(&c->reply, "Retry-After", WB_SLICE_LIT(RETRY_SECONDS));
}

/* The reply is known. */
static void send_reply(struct wb_httpd_conn *c)
{
    if (c->reply.delay_ms == 0 || c->httpd->stop_at_ms) {
        send_now(c);
        return;
    }
    c->state = WB_CONN_HOLD;
    wb_httpd_conn_set_deadline(c, wb_httpd_now_ms() + c->reply.delay_ms);
}

void wb_httpd_exchange_release(struct wb_httpd_conn *c)
{
    WB_CHECK(c->state == WB_CONN_HOLD && !c->busy);
    send_now(c);
}

static void describe_client(struct wb_httpd_conn *c)
{
    c->head.request.peer = wb_slice_str(c->peer_text);
    c->head.request.loopback = c->loopback;
    c->head.request.tls = c->wire.ssl != NULL;
    c->head.request.also = c->also;
}

void wb_httpd_exchange_refuse(struct wb_httpd_conn *c, unsigned status, const char *why)
{
    if (c->state == WB_CONN_HEAD)
        wb_httpd_conn_stop_waiting(c);
    if (c->began_ns == 0)
        c->began_ns = wb_clock_mono_ns();
    describe_client(c);
    reply_error(c, status, why);
    c->keep = false;
    send_reply(c);
}

void wb_httpd_exchange_clear(struct wb_httpd_conn *c)
{
    struct wb_httpd *httpd = c->httpd;

    if (c->answered && httpd->app.served)
        httpd->app.served(httpd->app.context, &c->head.request, c->reply.status, c->reply_bytes,
                          (uint64_t)(wb_clock_mono_ns() - c->began_ns) / 1000);
    if (c->under_way)
        httpd->requests--;
    httpd->body_bytes -= c->body.bytes.len;
    httpd->held_bytes -= c->held_bytes;
    c->held_bytes = 0;
    wb_httpd_body_release(&c->body);
    wb_httpd_head_clear(&c->head);
    wb_httpd_reply_release(&c->reply);
    c->under_way = c->answered = c->broken = false;
    c->reply_bytes = 0;
}

/* Everything has been sent. */
static void end_reply(struct wb_httpd_conn *c)
{
    bool broken = c->broken, keep = c->keep && !broken && c->httpd->stop_at_ms == 0;

    WB_CHECK(c->out.unsent == 0 && !c->source_open && !c->busy);
    if (broken && c->framing == WB_FRAMING_CLOSE) {
        wb_httpd_conn_cut(c, true);
        return;
    }
    wb_httpd_exchange_clear(c);
    if (keep)
        wb_httpd_conn_wait(c);
    else
        wb_httpd_conn_finish(c);
}

/* The earliest of: the client takes nothing, the source is to be asked again, the client is probably gone. */
static void set_send_deadline(struct wb_httpd_conn *c)
{
    int64_t at_ms = c->out.unsent > 0 ? c->stall_at_ms : WB_HTTPD_NEVER;

    if (c->is_later && c->later_at_ms < at_ms)
        at_ms = c->later_at_ms;
    if (c->is_later && c->eof && c->idle_since_ms + WB_HTTPD_HALF_CLOSED_MS < at_ms)
        at_ms = c->idle_since_ms + WB_HTTPD_HALF_CLOSED_MS;
    wb_httpd_conn_set_deadline(c, at_ms);
}

void wb_httpd_exchange_pump(struct wb_httpd_conn *c)
{
    uint64_t sent;
    int result = wb_httpd_outbox_send(&c->out, &c->wire, &sent);

    c->reply_bytes += sent;
    if (sent > 0)
        c->stall_at_ms = wb_httpd_now_ms() + c->httpd->limits.stall_ms;
    if (result == WB_WIRE_BROKEN) {
        wb_httpd_conn_cut(c, false);
        return;
    }
    wb_httpd_conn_want_write(c, result == WB_WIRE_WANTS_WRITE);
    if (c->state != WB_CONN_SEND)
        return; /* it was "100 Continue" */
    if (c->source_open)
        wb_httpd_source_ask(c);
    else if (c->out.unsent == 0) {
        end_reply(c);
        return;
    }
    set_send_deadline(c);
}

/* ---- the handler ------------------------------------------------------------------------------------ */

/* Runs in a worker. */
static void run_handler(struct wb_httpd_job *job, void *worker)
{
    struct wb_httpd_conn *c = WB_CONTAINER_OF(job, struct wb_httpd_conn, job);
    const struct wb_httpd_app *app = &c->httpd->app;

    app->handle(app->context, worker, &c->head.request, &c->reply);
    c->source_open = c->reply.source != NULL;
    if (c->source_open && wb_httpd_reply_framing(&c->reply, &c->head) == WB_FRAMING_NONE) {
        c->reply.source->close(c->reply.source_context); /* HEAD: only the fields are wanted */
        c->source_open = false;
    }
}

static void dispatch(struct wb_httpd_conn *c)
{
    const struct wb_httpd *httpd = c->httpd;

    c->head.request.body = wb_buf_slice(&c->body.bytes);
    c->state = WB_CONN_WORK;
    bool slow = httpd->app.is_slow && httpd->app.is_slow(httpd->app.context, &c->head.request);
    wb_httpd_conn_set_deadline(c, slow ? wb_httpd_now_ms() + httpd->limits.turn_ms : WB_HTTPD_NEVER);
    c->job.run = run_handler;
    c->busy = (!slow || httpd->held_bytes <= httpd->limits.held_bytes) &&
              wb_httpd_crew_add(&c->httpd->crew, &c->job, slow ? WB_JOB_SLOW : WB_JOB_QUICK);
    if (!c->busy) {
        reply_error(c, 503, "the server is busy");
        send_reply(c);
    }
}

void wb_httpd_exchange_give_up(struct wb_httpd_conn *c)
{
    if (!c->busy || !wb_httpd_crew_cancel(&c->httpd->crew, &c->job))
        return; /* it is being answered */
    c->busy = false;
    reply_error(c, 503, "the server is busy with other requests that take long; try again");
    send_reply(c);
}

void wb_httpd_exchange_done(struct wb_httpd_conn *c)
{
    WB_CHECK(c->busy);
    c->busy = false;
    if (c->ended)
        wb_httpd_source_ended(c);
    if (c->state == WB_CONN_GONE) {
        c->answered = true;
        wb_httpd_conn_bury(c);
        return;
    }
    if (c->state == WB_CONN_WORK) {
        c->httpd->sources += c->source_open;
        c->source_counted = c->source_open;
        c->piece_bytes = 0;
        c->idle_since_ms = 0;
        if (c->source_open)
            wb_httpd_conn_resume(c);
        send_reply(c);
    } else {
        wb_httpd_source_done(c);
    }
    wb_httpd_exchange_advance(c);
}

/* ---- bodies -------------------------------------------------------------------------------------- */

static void set_body_deadline(struct wb_httpd_conn *c)
{
    int64_t steps = (int64_t)(c->body.bytes.len / BODY_STEP_BYTES);

    wb_httpd_conn_set_deadline(c, c->began_ns / 1000000 + c->httpd->limits.body_ms + steps * BODY_STEP_MS);
}

size_t wb_httpd_exchange_feed(struct wb_httpd_conn *c, struct wb_slice bytes)
{
    struct wb_httpd *httpd = c->httpd;
    size_t before = c->body.bytes.len, used;
    const char *why;
    unsigned status = wb_httpd_body_feed(&c->body, bytes, &used, &why);

    httpd->body_bytes += c->body.bytes.len - before;
    if (status >= 400)
        wb_httpd_exchange_refuse(c, status, why);
    else if (httpd->body_bytes > httpd->limits.body_bytes)
        wb_httpd_exchange_refuse(c, 503, "the server is receiving too much at once");
    else if (status == WB_HTTPD_COMPLETE)
        dispatch(c);
    else
        set_body_deadline(c);
    return used;
}

/* The client waits for a word before it sends the body. */
static void send_continue(struct wb_httpd_conn *c)
{
    struct wb_httpd_piece *piece = wb_httpd_outbox_add(&c->out);

    if (wb_buf_append_str(&piece->lead, "HTTP/1.1 100 Continue\r\n\r\n") < 0) {
        wb_httpd_outbox_undo(&c->out);
        wb_httpd_conn_cut(c, false);
        return;
    }
    wb_httpd_outbox_added(&c->out);
    wb_httpd_exchange_pump(c);
    c->reply_bytes = 0;
}

static void begin_body(struct wb_httpd_conn *c, uint64_t body_max)
{
    const char *why;
    unsigned status = wb_httpd_body_begin(&c->body, &c->head, body_max, &why);

    if (status) {
        wb_httpd_exchange_refuse(c, status, why);
        return;
    }
    if (!c->head.chunked && c->head.length == 0) {
        dispatch(c);
        return;
    }
    c->state = WB_CONN_BODY;
    set_body_deadline(c);
    if (c->head.expect_continue && c->in_at == c->in.len)
        send_continue(c);
}

/* ---- heads --------------------------------------------------------------------------------------- */

/* Asks the app whether the request may go on. */
static void admit_request(struct wb_httpd_conn *c)
{
    struct wb_httpd *httpd = c->httpd;
    uint64_t body_max = 0;

    describe_client(c);
    c->keep = c->head.keep_alive;
    if (httpd->app.admit(httpd->app.context, &c->head.request, &body_max, &c->reply) == 0) {
        begin_body(c, body_max);
        return;
    }
    if (c->head.chunked || c->head.length > 0)
        c->keep = false; /* the body is not read, so nobody knows where the next request begins */
    send_reply(c);
}

/* False if the head has not arrived completely. */
static bool take_head(struct wb_httpd_conn *c)
{
    struct wb_httpd *httpd = c->httpd;
    struct wb_slice bytes = wb_slice(wb_buf_slice(&c->in).ptr + c->in_at, c->in.len - c->in_at);
    const char *why = "";
    unsigned status = bytes.len ? wb_httpd_head_find(&c->scan, bytes, &httpd->limits, &why) : WB_HTTPD_INCOMPLETE;

    if (status == WB_HTTPD_INCOMPLETE) {
        if (c->eof) {
            wb_httpd_conn_cut(c, false);
        } else if (bytes.len > 0 && c->began_ns == 0) {
            c->began_ns = wb_clock_mono_ns();
            wb_httpd_conn_set_deadline(c, wb_httpd_now_ms() + httpd->limits.head_ms);
        }
        return false;
    }
    struct wb_httpd_scan scan = c->scan;
    c->scan = (struct wb_httpd_scan){0};
    if (status == WB_HTTPD_COMPLETE) {
        wb_buf_clear(&c->head_bytes);
        if (wb_buf_append(&c->head_bytes, bytes.ptr + scan.start, scan.at - scan.start) < 0) {
            wb_httpd_conn_cut(c, false);
            return false;
        }
        c->in_at += scan.at;
        c->began_ns = wb_clock_mono_ns();
        status = wb_httpd_head_parse(&c->head, wb_buf_slice(&c->head_bytes), &why);
    }
    if (status) {
        wb_httpd_exchange_refuse(c, status, why);
        return true;
    }
    wb_httpd_conn_stop_waiting(c);
    c->state = WB_CONN_BODY;
    c->under_way = true;
    httpd->requests++;
    admit_request(c);
    return true;
}

void wb_httpd_exchange_advance(struct wb_httpd_conn *c)
{
    for (;;) {
        if (c->state == WB_CONN_HEAD && take_head(c))
            continue;
        if (c->state != WB_CONN_BODY)
            return;
        if (c->in_at < c->in.len) {
            c->in_at += wb_httpd_exchange_feed(c, wb_slice(c->in.ptr + c->in_at, c->in.len - c->in_at));
            continue;
        }
        if (c->eof)
            wb_httpd_conn_cut(c, false);
        return;
    }
}
