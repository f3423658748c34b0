/*
 * httpd_source.c - replies whose body is made piece by piece.
 *
 *   ask -> (a worker runs next()) -> done -> outbox -> ask when most of it has left
 *                                     |-> later -> ask when the time has come, or somebody calls wb_http_wake()
 *
 * So a client that does not read costs one piece, and what the kernel holds; no worker waits for it.
 */
#include "httpd/httpd_conn.h"

#define LOW_BYTES 16384u /* ask for more when this little is left, or a quarter of the last piece */
#define KEPT_BYTES 65536u
#define WAIT_MS 1000u

/* Runs in a worker. The source is closed here if it has ended, because nobody else may be using it. */
static void run_next(struct wb_httpd_job *job, void *worker)
{
    struct wb_httpd_conn *c = WB_CONTAINER_OF(job, struct wb_httpd_conn, job);
    const struct wb_http_source *source = c->reply.source;

    c->wakes = c->httpd->wakes; /* before next() looks whether there is something */
    c->wait_ms = WAIT_MS;
    c->result = source->next(c->reply.source_context, worker, &c->piece, &c->wait_ms);
    if (c->result < 0 || c->result == WB_HTTP_END) {
        source->close(c->reply.source_context);
        c->ended = true;
    }
}

/* Runs in a worker. */
static void run_close(struct wb_httpd_job *job, void *worker)
{
    struct wb_httpd_conn *c = WB_CONTAINER_OF(job, struct wb_httpd_conn, job);

    (void)worker;
    c->reply.source->close(c->reply.source_context);
    c->ended = true;
}

void wb_httpd_source_ask(struct wb_httpd_conn *c)
{
    size_t low = c->piece_bytes / 4 > LOW_BYTES ? c->piece_bytes / 4 : LOW_BYTES;

    WB_CHECK(c->source_open && c->state == WB_CONN_SEND);
    if (c->busy || c->is_later || c->out.count > 1 || c->out.unsent > low)
        return;
    /* The memory of the piece that was sent last is used again. */
    struct wb_httpd_piece *spare = &c->out.pieces[c->out.count];
    if (c->piece.cap == 0)
        c->piece = wb_buf_take(&spare->bytes);
    wb_buf_clear(&c->piece);
    c->job.run = run_next;
    c->busy = wb_httpd_crew_add(&c->httpd->crew, &c->job, WB_JOB_PIECE);
    WB_CHECK(c->busy);
}

/* Frames a piece and puts it into the outbox. */
static int add_piece(struct wb_httpd_conn *c, bool last)
{
    struct wb_httpd_piece *piece = wb_httpd_outbox_add(&c->out);
    bool chunked = c->framing == WB_FRAMING_CHUNKED;

    if (chunked && c->piece.len > 0) {
        if (wb_buf_printf(&piece->lead, "%zx\r\n", c->piece.len) < 0) {
            wb_httpd_outbox_undo(&c->out);
            return WB_E_NOMEM;
        }
        piece->tail = last ? "\r\n0\r\n\r\n" : "\r\n";
    } else if (chunked) {
        piece->tail = "0\r\n\r\n";
    }
    wb_buf_release(&piece->bytes);
    piece->bytes = wb_buf_take(&c->piece);
    c->piece_bytes = piece->bytes.len;
    wb_httpd_outbox_added(&c->out);
    return 0;
}

void wb_httpd_source_ended(struct wb_httpd_conn *c)
{
    c->ended = false;
    c->source_open = false;
    c->httpd->sources -= c->source_counted;
    c->source_counted = false;
}

static void say_later(struct wb_httpd_conn *c)
{
    if (c->piece.cap > KEPT_BYTES)
        wb_buf_release(&c->piece);
    if (c->httpd->stop_at_ms) {
        wb_httpd_conn_cut(c, false);
        return;
    }
    int64_t now = wb_httpd_now_ms();
    c->is_later = true;
    c->later_at_ms = c->wakes != c->httpd->wakes ? now : now + c->wait_ms;
    if (c->idle_since_ms == 0)
        c->idle_since_ms = now;
    wb_list_append(&c->httpd->later, &c->in_later);
}

void wb_httpd_source_done(struct wb_httpd_conn *c)
{
    bool last = c->result == WB_HTTP_END, some = c->piece.len > 0;

    WB_CHECK(c->state == WB_CONN_SEND && c->source_open == (c->result >= 0 && !last));
    if (c->result < 0)
        c->broken = true;
    else if ((some || last) && add_piece(c, last) < 0) {
        wb_httpd_conn_cut(c, false);
        return;
    }
    if (some)
        c->idle_since_ms = 0;
    if (c->result == WB_HTTP_LATER)
        say_later(c);
    if (c->state == WB_CONN_SEND)
        wb_httpd_exchange_pump(c);
}

void wb_httpd_source_close(struct wb_httpd_conn *c)
{
    WB_CHECK(c->source_open && !c->busy);
    c->job.run = run_close;
    c->busy = wb_httpd_crew_add(&c->httpd->crew, &c->job, WB_JOB_PIECE);
    WB_CHECK(c->busy);
}

void wb_httpd_source_forget_later(struct wb_httpd_conn *c)
{
    if (!c->is_later)
        return;
    c->is_later = false;
    wb_list_remove(&c->httpd->later, &c->in_later);
}

void wb_httpd_source_wake_all(struct wb_httpd *httpd)
{
    for (struct wb_list_node *node = httpd->later.first, *next; node; node = next) {
        struct wb_httpd_conn *c = WB_CONTAINER_OF(node, struct wb_httpd_conn, in_later);
        next = node->next;
        wb_httpd_source_forget_later(c);
        wb_httpd_exchange_pump(c);
    }
}
