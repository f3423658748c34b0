/*
 * push.c - announcements: people and content providers report pages that are new, changed or gone (WebBase Components,
 * section 4.5). They are appended to the journal; the next update marks the pages, and the next cycle fetches them
 * first.
 *
 *   https://example.org/news        new or changed, also as "new URL" or "changed URL"
 *   gone https://example.org/old    deleted: the page is fetched, and removed if it is really gone
 *   # comment
 *
 * or one JSON object, as IndexNow sends it: {"urlList": [...]} or {"changed": [...], "gone": [...]}. Anything that is
 * not an http or https URL is refused; the rest is taken. It never believes that a page is gone without fetching it.
 */
#include "base/error.h"
#include "base/mem.h"
#include "cycle/cycle.h"
#include "os/clock.h"
#include "os/path.h"
#include "store/store.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

enum {
    BYTES_MAX = 256 << 20,
    WARNINGS_MAX = 10,
    READ_BYTES = 1 << 16,
};

struct push {
    const char *file;
    const struct wb_cycle_sink *sink;
    struct wb_journal_writer *log;
    int64_t now_ms;
    struct wb_url url;
    struct wb_push_stat *stat;
};

/* ---- reading ------------------------------------------------------------------------------------------ */

static int read_standard_input(struct wb_buf *text_out)
{
    for (;;) {
        int err = wb_buf_reserve(text_out, READ_BYTES);
        if (err < 0)
            return err;
        ssize_t n = read(STDIN_FILENO, text_out->ptr + text_out->len, READ_BYTES);
        if (n < 0)
            return wb_fail_errno("cannot read standard input");
        if (n == 0)
            return 0;
        text_out->len += (size_t)n;
        if (text_out->len > BYTES_MAX)
            return wb_fail(WB_E_LIMIT, "standard input: more than %d bytes of announcements", BYTES_MAX);
    }
}

/* place: where the announcement is in its file, such as "line 7". */
static void refuse(struct push *p, const char *place, uint64_t number, struct wb_slice text)
{
    char message[512];

    if (p->stat->refused++ >= WARNINGS_MAX || !p->sink->warn)
        return;
    if (text.len > 200)
        text.len = 200;
    snprintf(message, sizeof message, "%s: %s %" PRIu64 " is no URL of http or https: %.*s", p->file, place, number,
             WB_SLICE_ARG(text));
    p->sink->warn(p->sink->context, message);
}

/* The URL without its fragment. */
static struct wb_slice plain_href(const struct wb_url *url)
{
    struct wb_slice href = wb_url_href(url);

    if (url->has_fragment)
        href.len = url->fragment_at - 1;
    return href;
}

static int announce(struct push *p, struct wb_slice text, enum wb_push what, const char *place, uint64_t number)
{
    struct wb_edit edit = {.kind = WB_EDIT_PUSH, .time_ms = p->now_ms, .count = what};
    struct wb_edit_place at;

    int err = wb_url_parse(text, NULL, &p->url);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0 || !wb_url_is_http(&p->url) || wb_url_host(&p->url).len == 0) {
        refuse(p, place, number, text);
        return 0;
    }
    edit.text = plain_href(&p->url);
    p->stat->changed += what == WB_PUSH_CHANGED;
    p->stat->gone += what == WB_PUSH_GONE;
    return wb_journal_writer_append(p->log, &edit, &at);
}

/* ---- lines ---------------------------------------------------------------------------------------------- */

/* Takes the word and the blanks after it off a line, if more follows. */
static bool take_word(struct wb_slice *line, struct wb_slice word)
{
    if (line->len <= word.len || !wb_slice_starts(*line, word) ||
        (line->ptr[word.len] != ' ' && line->ptr[word.len] != '\t'))
        return false;
    *line = wb_slice_trim(wb_slice(line->ptr + word.len, line->len - word.len));
    return true;
}

static int push_line(struct push *p, struct wb_slice line, uint64_t number)
{
    enum wb_push what = WB_PUSH_CHANGED;

    line = wb_slice_trim(line);
    if (line.len == 0 || line.ptr[0] == '#')
        return 0;
    if (take_word(&line, WB_SLICE_LIT("gone")))
        what = WB_PUSH_GONE;
    else if (!take_word(&line, WB_SLICE_LIT("changed")))
        take_word(&line, WB_SLICE_LIT("new"));
    return announce(p, line, what, "line", number);
}

static int push_lines(struct push *p, struct wb_slice text)
{
    uint64_t number = 0;
    int err = 0;

    while (err == 0 && text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        err = push_line(p, wb_slice(text.ptr, len), ++number);
        len += end != NULL;
        text = wb_slice(text.ptr + len, text.len - len);
    }
    return err;
}

/* ---- JSON ----------------------------------------------------------------------------------------------- */

static int push_list(struct push *p, const json_t *list, const char *name, enum wb_push what)
{
    const json_t *entry;
    size_t i;
    int err = 0;

    json_array_foreach(list, i, entry) {
        if (json_is_string(entry))
            err = announce(p, wb_slice(json_string_value(entry), json_string_length(entry)), what, name, i + 1);
        else
            refuse(p, name, i + 1, WB_SLICE_LIT("not a text"));
        if (err < 0)
            break;
    }
    return err;
}

#define LISTS 3
static const struct {
    const char *name;
    enum wb_push what;
} lists[LISTS] = {{"urlList", WB_PUSH_CHANGED}, {"changed", WB_PUSH_CHANGED}, {"gone", WB_PUSH_GONE}};

/* Checks everything before anything is announced. */
static int check_lists(const struct push *p, const json_t *root)
{
    bool some = false;

    for (size_t i = 0; i < LISTS; i++) {
        const json_t *list = json_object_get(root, lists[i].name);
        if (list && !json_is_array(list))
            return wb_fail(WB_E_INVALID, "%s: \"%s\" is no list", p->file, lists[i].name);
        some = some || list;
    }
    return some ? 0 : wb_fail(WB_E_INVALID, "%s: no \"urlList\", \"changed\" or \"gone\" in the object", p->file);
}

static int push_json(struct push *p, struct wb_slice text)
{
    json_error_t error;
    json_t *root = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, &error);

    if (!root)
        return wb_fail(WB_E_PROTO, "%s:%d: no JSON: %s", p->file, error.line, error.text);
    int err = check_lists(p, root);
    for (size_t i = 0; err == 0 && i < LISTS; i++)
        err = push_list(p, json_object_get(root, lists[i].name), lists[i].name, lists[i].what);
    json_decref(root);
    return err;
}

static int push_text(struct push *p, struct wb_slice text)
{
    if (wb_slice_starts(text, WB_SLICE_LIT("\xef\xbb\xbf")))
        text = wb_slice(text.ptr + 3, text.len - 3);
    struct wb_slice trimmed = wb_slice_trim(text);
    return trimmed.len && trimmed.ptr[0] == '{' ? push_json(p, trimmed) : push_lines(p, text);
}

int wb_push(const char *dir, const char *file, const struct wb_cycle_sink *sink, struct wb_push_stat *stat_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    bool standard = strcmp(file, "-") == 0;
    struct push p = {.file = standard ? "standard input" : file,
                     .sink = sink ? sink : &quiet,
                     .now_ms = wb_clock_wall_ms(),
                     .url = WB_URL_INIT,
                     .stat = stat_out};
    struct wb_buf text = WB_BUF_INIT;
    int err = 0;

    *stat_out = (struct wb_push_stat){0};
    if (!wb_store_exists(dir))
        return wb_fail(WB_E_NOTFOUND, "there is no repository at %s", dir);
    err = standard ? read_standard_input(&text) : wb_path_read(file, BYTES_MAX, &text);
    if (err == 0)
        err = wb_journal_writer_open(dir, 0, &p.log);
    if (err == 0)
        err = push_text(&p, wb_buf_slice(&text));
    /* If this fails, some URLs may have been announced; announcing them again does no harm. */
    if (err == 0)
        err = wb_journal_writer_finish(p.log);
    wb_journal_writer_close(p.log);
    wb_url_release(&p.url);
    wb_buf_release(&text);
    return err;
}
