/*
 * api_control.c - what an operator tells the repository. Every call needs the operator's token.
 *
 *   GET  /api/token                              {"ok":true}: it is the operator's token
 *   POST /api/control/pause                      {}                          orders to the running crawl: the answer is
 *   POST /api/control/resume                     {}                          {"crawls":[what each crawl answers]}
 *   POST /api/control/stop                       {"site":"example.org"}
 *   POST /api/control/delay                      {"site":"example.org","delay":2.5}       seconds
 *   POST /api/expunge                            {"what":"URL or HOST","allow":false}
 *                                                {"pages":1,"known":0,"bytes":2345,"left":0}
 *
 * What was asked for and what came of it is noted in the operators' log (orders.h), whether it worked or not.
 *
 * 404: no crawl is running, or none has that site; nothing is barred that could be allowed again.
 */
#include "base/check.h"
#include "base/error.h"
#include "os/clock.h"
#include "serve/orders.h"
#include "serve/server.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DELAY_MAX_S (30.0 * 86400)

/* An empty body is an empty object. */
static int read_body(struct wb_call *call, json_t **body_out)
{
    struct wb_slice text = wb_slice_trim(call->request->body);
    json_error_t why;

    *body_out = text.len ? json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &why) : json_object();
    if (!*body_out)
        return wb_fail(WB_E_INVALID, "the body is not JSON: %s", text.len ? why.text : "out of memory");
    return json_is_object(*body_out) ? 0 : wb_fail(WB_E_INVALID, "the body is not a JSON object");
}

static int read_text(const json_t *body, const char *name, const char **text_out)
{
    const json_t *value = json_object_get(body, name);

    *text_out = json_string_value(value);
    if (!*text_out || !**text_out)
        return wb_fail(WB_E_INVALID, "the body needs \"%s\", a text", name);
    return 0;
}

static int read_delay(const json_t *body, int64_t *delay_ms_out)
{
    const json_t *value = json_object_get(body, "delay");
    double seconds = json_number_value(value);

    *delay_ms_out = 0;
    if (!json_is_number(value) || !(seconds >= 0 && seconds <= DELAY_MAX_S))
        return wb_fail(WB_E_INVALID, "the body needs \"delay\", a number of seconds up to %.0f", DELAY_MAX_S);
    *delay_ms_out = (int64_t)llround(seconds * 1000);
    return 0;
}

/*
 * Notes an order. If the log cannot be written, the order itself has been carried out nevertheless, and its answer is
 * what counts.
 */
static void note(struct wb_call *call, const char *what, const char *subject, int err, const char *said)
{
    struct wb_error_copy failed;
    struct wb_order order = {.time_ms = wb_clock_wall_ms(),
                             .what = wb_slice_str(what),
                             .subject = wb_slice_str(subject ? subject : ""),
                             .ok = err == 0};

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(what[0]);
    wb_error_save(err, &failed); /* noting must not change the message for the caller */
    const char *message = err == 0 ? said : wb_error_message();
    order.said = wb_slice_str(message[0] ? message : wb_error_words(err));
    (void)wb_orders_note(call->server->options->dir, &order);
    if (err < 0)
        (void)wb_error_restore(&failed);
}

/* ---- orders to a crawl ------------------------------------------------------------------------------------------- */

/* The verb is the last part of the path. */
static int read_command(struct wb_call *call, const json_t *body, struct wb_control_command *command_out)
{
    static const enum wb_control_verb verbs[] = {WB_CONTROL_PAUSE, WB_CONTROL_RESUME, WB_CONTROL_STOP,
                                                 WB_CONTROL_DELAY};
    size_t skip = sizeof "/api/control/" - 1;
    WB_CHECK(call->request->path.len >= skip);
    struct wb_slice word = wb_slice(call->request->path.ptr + skip, call->request->path.len - skip);
    int err = 0;

    *command_out = (struct wb_control_command){0};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (wb_slice_equal(word, wb_slice_str(wb_control_verb_word(verbs[i]))))
            command_out->verb = verbs[i];
    if (!command_out->verb)
        return wb_fail(WB_E_NOTFOUND, "there is no order '%.*s'; there are pause, resume, stop and delay",
                       WB_SLICE_ARG(word));
    if (command_out->verb == WB_CONTROL_STOP || command_out->verb == WB_CONTROL_DELAY)
        err = read_text(body, "site", &command_out->site);
    if (err == 0 && command_out->verb == WB_CONTROL_DELAY)
        err = read_delay(body, &command_out->delay_ms);
    return err;
}

static int answer_control(struct wb_call *call, const struct wb_buf *lines)
{
    struct wb_slice rest = wb_buf_slice(lines), line;
    bool comma = false;
    struct wb_json j;
    int err = 0;

    wb_call_json(call, &j);
    wb_json_key(&j, "crawls");
    wb_json_array(&j);
    while (err == 0 && wb_slice_next_line(&rest, &line)) {
        err = comma ? wb_buf_append_char(j.buf, ',') : 0;
        if (err == 0)
            err = wb_buf_append_slice(j.buf, line);
        comma = true;
    }
    wb_json_array_end(&j);
    wb_call_json_end(call, &j, err);
    return err;
}

static void describe(const struct wb_control_command *command, char *text, size_t size)
{
    if (command->verb == WB_CONTROL_DELAY)
        snprintf(text, size, "at least %g s between two requests", (double)command->delay_ms / 1000);
    else
        snprintf(text, size, "%s",
                 command->verb == WB_CONTROL_PAUSE    ? "the crawl begins no requests"
                 : command->verb == WB_CONTROL_RESUME ? "the crawl goes on"
                                                      : "nothing more is requested from it");
}

void wb_handle_control(struct wb_call *call)
{
    struct wb_buf answer = WB_BUF_INIT;
    struct wb_control_command command = {0};
    char said[80] = "";
    json_t *body = NULL;

    WB_CHECK(wb_call_is_fresh(call));
    int err = read_body(call, &body);
    if (err == 0)
        err = read_command(call, body, &command);
    if (err == 0)
        err = wb_control_send(call->server->options->dir, &command, &answer);
    if (command.verb) {
        describe(&command, said, sizeof said);
        note(call, wb_control_verb_word(command.verb), command.site, err, said);
    }
    if (err == 0)
        err = answer_control(call, &answer);
    if (err < 0)
        wb_call_fail(call, err);
    json_decref(body);
    wb_buf_release(&answer);
}

/* ---- takedown ---------------------------------------------------------------------------------------------------- */

void wb_handle_expunge(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_update_options options = {.dir = call->server->options->dir};
    struct wb_expunge_stat stat = {0};
    const char *what = NULL;
    json_t *body = NULL;
    struct wb_json j;
    char said[120];

    int err = read_body(call, &body);
    if (err == 0)
        err = read_text(body, "what", &what);
    bool allow = json_is_true(json_object_get(body, "allow"));
    if (err == 0)
        err = wb_expunge(&options, what, allow, NULL, NULL, NULL, &stat);
    snprintf(said, sizeof said,
             allow ? "it may be fetched again" : "%" PRIu64 " stored and %" PRIu64 " known pages removed", stat.pages,
             stat.known);
    if (what)
        note(call, allow ? "allow" : "expunge", what, err, said);
    if (err == 0) {
        wb_call_json(call, &j);
        wb_json_field_u64(&j, "pages", stat.pages);
        wb_json_field_u64(&j, "known", stat.known);
        wb_json_field_u64(&j, "bytes", stat.bytes);
        wb_json_field_u64(&j, "left", stat.left);
        wb_call_json_end(call, &j, 0);
    } else {
        wb_call_fail(call, err);
    }
    json_decref(body);
}

/* ---- the token --------------------------------------------------------------------------------------------------- */

/* A client that gets here has it. */
void wb_handle_token(struct wb_call *call)
{
    struct wb_json j;

    WB_CHECK(wb_call_is_fresh(call));
    wb_call_json(call, &j);
    wb_json_field_bool(&j, "ok", true);
    wb_call_json_end(call, &j, 0);
}
