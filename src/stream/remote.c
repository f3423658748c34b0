/*
 * remote.c - a stream of a server, delivered to a sink in this process.
 *
 *   GET /api/stream?format=wire&...  --->  frames  --->  wire reader  --->  records  --->  sink
 *   POST /api/stream/acknowledge     <---  now and then, for streams with a name and for workers that share one
 *
 * The sink runs inside libcurl's callback. While it takes its time, nothing is read from the connection, so the server
 * waits too. A connection that breaks is opened again, with the token of the last record that the sink took; so
 * nothing is lost and nothing comes twice. Of a stream with a name, the server knows the place: we acknowledge what we
 * have and ask for the name again.
 *
 * libcurl does the HTTP; what comes through it is hostile until the wire reader has checked it.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "stream/stream.h"
#include "stream/wire.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    PATIENCE_MS = 5 * 60 * 1000,
    ACKNOWLEDGE_EVERY = 250, /* records; a server lets at most 1000 be unacknowledged */
    ACKNOWLEDGE_MS = 500,
    FIRST_PAUSE_MS = 100,
    LONGEST_PAUSE_MS = 5000,
    ERROR_MAX = 4096, /* bytes of an error's body that are read */
    WORKER_MAX = 64,
};

#define REMOTE_MAGIC 0x57425254u

struct remote {
    uint32_t magic; /* REMOTE_MAGIC while wb_remote_stream() is at work */
    const struct wb_remote_options *options;
    CURL *curl, *acknowledger;
    struct wb_wire_reader *reader;
    struct wb_buf *token; /* after the last record that the sink took; empty: none yet */
    struct wb_stream_info info;
    struct wb_buf refusal;         /* body of an answer that is not 200 */
    char worker[WORKER_MAX];       /* the server's name for us, if the stream is shared */
    uint64_t unacknowledged, last; /* last: position of the last record */
    int64_t acknowledged_ns, heard_ns;
    unsigned retry_ms; /* how long the server asks us to wait; 0: it does not say */
    int result; /* of the sink or the reader; WB_SINK_ENOUGH */
    bool ended; /* the end frame has arrived */
    bool stopped;
};

static bool is_remembered(const struct remote *r)
{
    return r->options->spec->name.len || r->options->spec->join.len;
}

/* ---- addresses ----------------------------------------------------------------------------------- */

static int append_param(struct remote *r, struct wb_buf *url, const char *name, struct wb_slice value)
{
    char *escaped = curl_easy_escape(r->curl, value.ptr, (int)value.len);
    int err = escaped ? wb_buf_printf(url, "&%s=%s", name, escaped) : WB_E_NOMEM;

    curl_free(escaped);
    return err;
}

struct param_context {
    struct remote *remote;
    struct wb_buf *url;
};

static int append_each(void *context, const char *name, struct wb_slice value)
{
    struct param_context *c = context;

    return append_param(c->remote, c->url, name, value);
}

static int append_base(const struct remote *r, const char *path, struct wb_buf *url)
{
    struct wb_slice base = wb_slice_str(r->options->url);

    while (base.len && base.ptr[base.len - 1] == '/')
        base.len--;
    int err = wb_buf_append_slice(url, base);
    return err < 0 ? err : wb_buf_append_str(url, path);
}

/* What is asked for: from the beginning the whole spec, later only the token, which has it. */
static int stream_url(struct remote *r, struct wb_buf *url)
{
    struct param_context context = {r, url};
    int err = append_base(r, "/api/stream?format=wire", url);

    if (err == 0 && r->token->len && !is_remembered(r))
        return append_param(r, url, "resume", wb_buf_slice(r->token));
    return err < 0 ? err : wb_stream_spec_each(r->options->spec, append_each, &context);
}

static int acknowledge_url(struct remote *r, struct wb_buf *url)
{
    WB_CHECK(is_remembered(r));
    const struct wb_stream_spec *spec = r->options->spec;
    char position[24];
    int err = append_base(r, "/api/stream/acknowledge?", url);

    snprintf(position, sizeof position, "%" PRIu64, r->last);
    if (err == 0 && spec->join.len) {
        err = append_param(r, url, "join", spec->join);
        if (err == 0)
            err = append_param(r, url, "worker", wb_slice_str(r->worker));
        return err < 0 ? err : append_param(r, url, "position", wb_slice_str(position));
    }
    if (err == 0)
        err = append_param(r, url, "name", spec->name);
    return err < 0 ? err : append_param(r, url, "token", wb_buf_slice(r->token));
}

/* ---- acknowledging ------------------------------------------------------------------------------- */

static size_t drop_bytes(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return size * count;
}

/* Tells the server what has arrived. If that fails, it is tried again later: then more may come twice, nothing is lost.
 */
static int send_acknowledgement(struct remote *r)
{
    struct wb_buf url = WB_BUF_INIT;
    long status = 0;

    r->acknowledged_ns = wb_clock_mono_ns();
    int err = acknowledge_url(r, &url);
    if (err == 0)
        err = wb_buf_terminate(&url);
    if (err == 0) {
        curl_easy_setopt(r->acknowledger, CURLOPT_URL, url.ptr);
        if (curl_easy_perform(r->acknowledger) == CURLE_OK)
            curl_easy_getinfo(r->acknowledger, CURLINFO_RESPONSE_CODE, &status);
        if (status == 200)
            r->unacknowledged = 0;
    }
    wb_buf_release(&url);
    return err;
}

/* The same for a sink that may still have records on the way. */
static int acknowledge(struct remote *r)
{
    int err = r->options->sink->kind.flush(r->options->sink);

    return err != 0 ? err : send_acknowledgement(r);
}

static bool acknowledgement_is_due(const struct remote *r)
{
    if (!is_remembered(r) || r->unacknowledged == 0)
        return false;
    return r->unacknowledged >= ACKNOWLEDGE_EVERY ||
           wb_clock_mono_ns() - r->acknowledged_ns > (int64_t)ACKNOWLEDGE_MS * 1000000;
}

/* ---- what arrives -------------------------------------------------------------------------------- */

static int take(struct remote *r, const struct wb_stream_record *record)
{
    int result = r->options->sink->kind.record(r->options->sink, record);

    if (result < 0)
        return result;
    wb_buf_clear(r->token);
    int err = wb_buf_append_slice(r->token, record->token);
    r->last = record->position;
    r->unacknowledged++;
    r->info.delivered++;
    if (err == 0 && result == 0 && acknowledgement_is_due(r))
        err = acknowledge(r);
    return err != 0 ? err : result;
}

/* Takes all records that have arrived as a whole. */
static int take_all(struct remote *r)
{
    struct wb_stream_record record;
    int got = 1, result = 0;

    while (got > 0 && result == 0 && !r->ended) {
        got = wb_wire_reader_next(r->reader, &record);
        if (got == WB_WIRE_RECORD)
            result = take(r, &record);
        else if (got == WB_WIRE_END)
            r->ended = true;
        else if (got == WB_WIRE_DAMAGE)
            r->info.damaged++;
    }
    return got < 0 ? got : result;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct remote *r = context;
    size_t len = size * count;
    long status = 0;

    WB_CHECK(r->magic == REMOTE_MAGIC);
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    r->heard_ns = wb_clock_mono_ns();
    if (status != 200) {
        if (r->refusal.len + len <= ERROR_MAX && wb_buf_append(&r->refusal, bytes, len) < 0)
            return 0;
        return len;
    }
    r->result = wb_wire_reader_feed(r->reader, wb_slice(bytes, len));
    if (r->result == 0)
        r->result = take_all(r);
    return r->result == 0 ? len : 0;
}

/* The value of a field, if the line is that of this field. name has its colon. */
static bool is_field(struct wb_slice line, const char *name, struct wb_slice *value_out)
{
    size_t len = strlen(name);

    if (line.len <= len || strncasecmp(line.ptr, name, len) != 0)
        return false;
    *value_out = wb_slice_trim(wb_slice(line.ptr + len, line.len - len));
    return true;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct remote *r = context;
    struct wb_slice line = wb_slice(bytes, size * count), value;
    uint64_t seconds;

    WB_CHECK(r->magic == REMOTE_MAGIC);
    if (is_field(line, "webbase-worker:", &value) && value.len < WORKER_MAX)
        snprintf(r->worker, sizeof r->worker, "%.*s", WB_SLICE_ARG(value));
    if (is_field(line, "webbase-warning:", &value) && r->options->warn) {
        char text[WB_ERROR_MESSAGE_MAX];
        snprintf(text, sizeof text, "%.*s", WB_SLICE_ARG(value));
        r->options->warn(r->options->context, text);
    }
    if (is_field(line, "retry-after:", &value) && wb_slice_to_u64(value, &seconds))
        r->retry_ms = seconds < LONGEST_PAUSE_MS / 1000 ? (unsigned)seconds * 1000 : LONGEST_PAUSE_MS;
    return size * count;
}

static bool go_on(struct remote *r, const char *trouble)
{
    const struct wb_remote_options *o = r->options;

    r->stopped = r->stopped || (o->progress && !o->progress(o->context, &r->info, trouble));
    return !r->stopped;
}

/* Called by libcurl now and then, also while nothing arrives. */
static int on_turn(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct remote *r = context;

    WB_CHECK(r->magic == REMOTE_MAGIC);
    (void)a, (void)b, (void)c, (void)d;
    if (r->result == 0 && acknowledgement_is_due(r))
        r->result = acknowledge(r);
    return r->result != 0 || !go_on(r, NULL);
}

/* ---- connections --------------------------------------------------------------------------------- */

/* An answer that will not change: what the server says is the message. */
static int refuse(const struct remote *r, long status)
{
    json_error_t error;
    json_t *body = json_loadb(r->refusal.ptr ? r->refusal.ptr : "", r->refusal.len, 0, &error);
    const char *text = json_string_value(json_object_get(body, "error"));
    int err = wb_fail(status == 404 || status == 410 ? WB_E_NOTFOUND : WB_E_INVALID, "%s: %s (%ld)", r->options->url,
                      text ? text : "the server refused the stream", status);

    json_decref(body);
    return err;
}

static bool may_pass(long status)
{
    return status == 0 || status == 200 || status == 408 || status == 409 || status == 429 || status >= 500;
}

/* One connection. 1: the stream is complete or was ended by the sink; 0: it broke; or an error. */
static int connect_once(struct remote *r, char trouble[CURL_ERROR_SIZE])
{
    struct wb_buf url = WB_BUF_INIT;
    long status = 0;

    wb_buf_clear(&r->refusal);
    wb_wire_reader_reset(r->reader);
    r->ended = false;
    r->retry_ms = 0;
    trouble[0] = '\0';
    int err = stream_url(r, &url);
    if (err == 0)
        err = wb_buf_terminate(&url);
    if (err == 0) {
        curl_easy_setopt(r->curl, CURLOPT_URL, url.ptr);
        curl_easy_setopt(r->curl, CURLOPT_ERRORBUFFER, trouble);
        CURLcode code = curl_easy_perform(r->curl);
        curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
        if (!trouble[0])
            snprintf(trouble, CURL_ERROR_SIZE, "%s", code ? curl_easy_strerror(code) : "the connection ended early");
        if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_PEER_FAILED_VERIFICATION)
            err = wb_fail(WB_E_INVALID, "%s: %s", r->options->url, trouble);
    }
    wb_buf_release(&url);
    if (err < 0 || r->result < 0)
        return err < 0 ? err : r->result;
    if (r->stopped)
        return wb_fail(WB_E_STOPPED, "stopped by a signal");
    if (!may_pass(status))
        return refuse(r, status);
    if (status != 200 && status != 0)
        snprintf(trouble, CURL_ERROR_SIZE, "the server answers %ld", status);
    return r->ended || r->result == WB_SINK_ENOUGH;
}

/* Waits before the next try. False: stop. */
static bool wait_a_moment(struct remote *r, unsigned ms, const char *trouble)
{
    for (unsigned waited = 0; waited < ms && !r->stopped; waited += FIRST_PAUSE_MS) {
        if (!go_on(r, trouble))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = FIRST_PAUSE_MS * 1000000L}, NULL);
    }
    return !r->stopped;
}

static int connect_until_done(struct remote *r)
{
    int64_t patience_ns = (r->options->patience_ms ? r->options->patience_ms : PATIENCE_MS) * 1000000;
    char trouble[CURL_ERROR_SIZE];
    unsigned pause = FIRST_PAUSE_MS;

    r->heard_ns = wb_clock_mono_ns();
    for (;;) {
        int64_t heard = r->heard_ns;
        int done = connect_once(r, trouble);
        if (done != 0)
            return done < 0 ? done : 0;
        /* At the first try nobody has answered yet: a wrong address should not make people wait for minutes. */
        if (wb_clock_mono_ns() - r->heard_ns > patience_ns ||
            (r->info.delivered == 0 && r->token->len == 0 && pause > 1000))
            return wb_fail(WB_E_IO, "%s: %s", r->options->url, trouble);
        pause = r->heard_ns != heard ? FIRST_PAUSE_MS : pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
        if (!wait_a_moment(r, pause > r->retry_ms ? pause : r->retry_ms, trouble))
            return wb_fail(WB_E_STOPPED, "stopped by a signal");
        if (is_remembered(r) && r->unacknowledged) {
            int err = acknowledge(r);
            if (err < 0)
                return err;
        }
    }
}

static int set_up(struct remote *r, struct curl_slist **fields_out)
{
    const char *protocols = "http,https";

    r->curl = curl_easy_init();
    r->acknowledger = curl_easy_init();
    if (!r->curl || !r->acknowledger)
        return wb_fail_nomem();
    CURL *both[] = {r->curl, r->acknowledger};
    if (r->options->token) {
        struct wb_buf field = WB_BUF_INIT;
        int err = wb_buf_printf(&field, "Authorization: Bearer %s", r->options->token);
        if (err == 0)
            err = wb_buf_terminate(&field);
        *fields_out = err == 0 ? curl_slist_append(NULL, field.ptr) : NULL;
        wb_buf_release(&field);
        if (!*fields_out)
            return wb_fail_nomem();
    }
    for (size_t i = 0; i < 2; i++) {
        curl_easy_setopt(both[i], CURLOPT_PROTOCOLS_STR, protocols);
        curl_easy_setopt(both[i], CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(both[i], CURLOPT_USERAGENT, WB_HTTP_AGENT);
        curl_easy_setopt(both[i], CURLOPT_HTTPHEADER, *fields_out);
        curl_easy_setopt(both[i], CURLOPT_CONNECTTIMEOUT_MS, 10000L);
        curl_easy_setopt(both[i], CURLOPT_TCP_KEEPALIVE, 1L);
        if (r->options->ca_file && (curl_easy_setopt(both[i], CURLOPT_CAINFO, r->options->ca_file) != CURLE_OK ||
                                    curl_easy_setopt(both[i], CURLOPT_CAPATH, NULL) != CURLE_OK))
            return wb_fail_nomem();
    }
    curl_easy_setopt(r->acknowledger, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(r->acknowledger, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(r->acknowledger, CURLOPT_WRITEFUNCTION, drop_bytes);
    curl_easy_setopt(r->curl, CURLOPT_BUFFERSIZE, 512L << 10);
    curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(r->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(r->curl, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(r->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(r->curl, CURLOPT_XFERINFOFUNCTION, on_turn);
    curl_easy_setopt(r->curl, CURLOPT_XFERINFODATA, r);
    return 0;
}

int wb_remote_stream(const struct wb_remote_options *options, struct wb_stream_info *info_out, struct wb_buf *token_out)
{
    struct remote r = {.magic = REMOTE_MAGIC, .options = options, .token = token_out};
    struct curl_slist *fields = NULL;

    wb_buf_clear(token_out);
    int err = wb_wire_reader_new(&r.reader);
    if (err == 0 && options->spec->resume.len)
        err = wb_buf_append_slice(token_out, options->spec->resume);
    if (err == 0)
        err = set_up(&r, &fields);
    if (err == 0)
        err = options->sink->kind.begin(options->sink, &r.info);
    if (err == 0)
        err = connect_until_done(&r);
    if (err == 0)
        err = options->sink->kind.flush(options->sink);
    if (err >= 0)
        err = options->sink->kind.end(options->sink);
    if (err == 0 && is_remembered(&r) && r.unacknowledged)
        err = send_acknowledgement(&r);
    curl_easy_cleanup(r.curl);
    curl_easy_cleanup(r.acknowledger);
    curl_slist_free_all(fields);
    wb_wire_reader_free(r.reader);
    wb_buf_release(&r.refusal);
    *info_out = r.info;
    return err;
}
