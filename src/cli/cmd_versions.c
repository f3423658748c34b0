/*
 * cmd_versions.c - webbase versions: lists the versions of a page that can be read, oldest first.
 *
 *   {"url":"http://example.org/","version":1,"time":"2026-11-15T21:29:57.555Z","last_seen":...,"captures":3,...}
 *
 * The store knows when a version was seen without reading it; type and digests are in the page itself. Another process
 * may change the page between these two steps, so the rows are printed only if they fit together.
 */
#include "answer/answer.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"

#include <inttypes.h>

#define TRIES 100

struct version_list {
    const struct wb_options *options;
    struct wb_store *store;
    struct wb_pageid id;
    struct wb_store_timeline timeline;
    struct wb_buf rows;
    struct wb_buf mem;    /* of the page that was read last */
    struct wb_buf damage; /* messages about versions that cannot be read, one a line */
};

/* page: NULL if it cannot be read. */
static int add_json(struct version_list *list, size_t i, const struct wb_page *page)
{
    struct wb_json j;

    wb_json_init(&j, &list->rows);
    wb_json_object(&j);
    wb_answer_version(&j, wb_slice_str(list->options->args[0]), i + 1, &list->timeline.versions[i], page);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

static int add_words(struct version_list *list, size_t i, const struct wb_page *page)
{
    const struct wb_store_version *v = &list->timeline.versions[i];
    struct wb_slice type = page ? page->type : WB_SLICE_LIT("(damaged)");
    char first[WB_DATE_TEXT_MAX], last[WB_DATE_TEXT_MAX];
    int err = 0;

    wb_date_format(v->time_ms, first);
    wb_date_format(v->last_ms, last);
    if (i == 0)
        err = wb_buf_printf(&list->rows, "version  %-24s  %-24s  captures  status      length  type\n", "first seen",
                            "last seen");
    if (err == 0)
        err = wb_buf_printf(&list->rows, "%7zu  %-24s  %-24s  %8zu  %6u  %10" PRIu64 "  ", i + 1, first, last,
                            v->captures, v->status, v->body_bytes);
    size_t at = list->rows.len;
    if (err == 0)
        err = wb_buf_append_slice(&list->rows, type);
    if (err == 0)
        wb_output_clean(list->rows.ptr + at, list->rows.len - at);
    return err < 0 ? err : wb_buf_append_char(&list->rows, '\n');
}

/* Returns 1 if the row was added, 0 if the page has changed meanwhile. */
static int add_row(struct version_list *list, size_t i)
{
    struct wb_page page;
    const struct wb_page *shown = &page;

    int got = wb_store_get_version(list->store, list->id, &list->timeline.versions[i], &page, &list->mem);
    if (got == WB_E_CORRUPT) {
        shown = NULL;
        got = wb_buf_printf(&list->damage, "%s\n", wb_error_message()); /* a message is one line */
        got = got < 0 ? got : 1;
    }
    if (got <= 0)
        return got;
    int err = list->options->json ? add_json(list, i, shown) : add_words(list, i, shown);
    return err < 0 ? err : 1;
}

/* Returns 1 if the list is complete, 0 if the page has changed meanwhile. */
static int read_rows(struct version_list *list)
{
    char time[WB_DATE_TEXT_MAX];
    int got = 1;

    wb_buf_clear(&list->rows);
    wb_buf_clear(&list->damage);
    wb_store_timeline_release(&list->timeline);
    int err = wb_store_timeline(list->store, list->id, &list->timeline);
    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_NOTFOUND, "%s: no such page in %s", list->options->args[0], list->options->dir);
    if (err < 0)
        return err;
    for (size_t i = 0; got > 0 && i < list->timeline.count; i++)
        got = add_row(list, i);
    if (got <= 0 || list->timeline.gone_ms == 0 || list->options->json)
        return got;
    wb_date_format(list->timeline.gone_ms, time);
    err = wb_buf_printf(&list->rows, "gone since %s\n", time);
    return err < 0 ? err : 1;
}

/* Returns the exit status. */
static int report_damage(const struct version_list *list)
{
    struct wb_slice rest = wb_buf_slice(&list->damage);

    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = (size_t)(end - rest.ptr);
        wb_report("%s: %.*s", list->options->args[0], (int)len, rest.ptr);
        rest = wb_slice(end + 1, rest.len - len - 1);
    }
    return list->damage.len > 0;
}

static int show_list(struct version_list *list)
{
    int got = 0;

    for (int i = 0; got == 0 && i < TRIES; i++)
        got = read_rows(list);
    if (got == 0)
        return wb_fail(WB_E_BUSY, "%s: changes faster than its versions can be read", list->options->args[0]);
    int err = got < 0 ? got : wb_output_write(list->rows.ptr, list->rows.len);
    if (err == 0)
        err = wb_output_flush();
    return err < 0 ? err : report_damage(list);
}

int wb_cmd_versions(const struct wb_options *options)
{
    struct version_list list = {.options = options};

    int err = wb_which_page(wb_slice_str(options->args[0]), &list.id);
    if (err == 0)
        err = wb_store_open(options->dir, WB_STORE_READ, &list.store);
    if (err == 0)
        err = show_list(&list);
    wb_store_timeline_release(&list.timeline);
    wb_buf_release(&list.rows);
    wb_buf_release(&list.mem);
    wb_buf_release(&list.damage);
    wb_store_close(list.store);
    return err;
}
