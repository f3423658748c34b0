/*
 * push.c - pushes: people and content providers report pages that are new, changed or gone, or send whole pages
 * (WebBase Components, section 4.5). Announcements are appended to the journal; the next update marks the pages, and
 * the next cycle fetches them first. Whole pages are stored as an import would store them. pushlist.c reads both.
 *
 * It never believes that a page is gone without fetching it.
 */
#include "base/error.h"
#include "cycle/cycle.h"
#include "ingest/ingest.h"
#include "os/clock.h"
#include "os/path.h"
#include "store/store.h"

#include <stdio.h>
#include <unistd.h>

enum {
    BYTES_MAX = 256 << 20,
    READ_BYTES = 1 << 16,
};

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

static int announce(const char *dir, const struct wb_push_list *list, int64_t now_ms, struct wb_push_stat *stat)
{
    struct wb_journal_writer *log = NULL;
    struct wb_edit_place at;

    int err = wb_journal_writer_open(dir, 0, &log);
    for (size_t i = 0; err == 0 && i < list->urls.count; i++) {
        const struct wb_push_url *url = &list->urls.items[i];
        struct wb_edit edit = {.kind = WB_EDIT_PUSH, .time_ms = now_ms, .count = url->what, .text = url->url};
        stat->changed += url->what == WB_PUSH_CHANGED;
        stat->gone += url->what == WB_PUSH_GONE;
        err = wb_journal_writer_append(log, &edit, &at);
    }
    /* If this fails, some URLs may have been announced; announcing them again does no harm. */
    if (err == 0)
        err = wb_journal_writer_finish(log);
    wb_journal_writer_close(log);
    return err;
}

static int store_pages(const char *dir, const struct wb_push_list *list, struct wb_push_stat *stat)
{
    struct wb_import import;

    int err = wb_import_pages(dir, list->pages.items, list->pages.count, &import);
    stat->stored = import.pages;
    stat->unchanged = import.captures + import.older;
    stat->barred = import.barred;
    return err;
}

int wb_push_apply(const char *dir, const struct wb_push_list *list, struct wb_push_stat *stat_out)
{
    int err = 0;

    *stat_out = (struct wb_push_stat){.refused = list->refused, .pages = list->pages.count};
    if (!wb_store_exists(dir))
        return wb_fail(WB_E_NOTFOUND, "there is no repository at %s", dir);
    if (list->pages.count)
        err = store_pages(dir, list, stat_out);
    if (err == 0 && list->urls.count)
        err = announce(dir, list, wb_clock_wall_ms(), stat_out);
    return err;
}

int wb_push(const char *dir, const char *file, const struct wb_cycle_sink *sink, struct wb_push_stat *stat_out)
{
    bool standard = strcmp(file, "-") == 0;
    struct wb_push_reading reading = {.name = standard ? "standard input" : file,
                                      .provider = "operator",
                                      .now_ms = wb_clock_wall_ms(),
                                      .warn = sink ? sink->warn : NULL,
                                      .context = sink ? sink->context : NULL};
    struct wb_push_list list = {.refused = 0};
    struct wb_buf text = WB_BUF_INIT;

    *stat_out = (struct wb_push_stat){0};
    if (!wb_store_exists(dir))
        return wb_fail(WB_E_NOTFOUND, "there is no repository at %s", dir);
    int err = standard ? read_standard_input(&text) : wb_path_read(file, BYTES_MAX, &text);
    if (err == 0)
        err = wb_push_list_read(wb_buf_slice(&text), &reading, &list);
    if (err == 0)
        err = wb_push_apply(dir, &list, stat_out);
    wb_push_list_release(&list);
    wb_buf_release(&text);
    return err;
}
