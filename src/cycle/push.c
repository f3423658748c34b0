/*
 * push.c - pushes: people and content providers report pages that are new, changed or gone, or send whole pages
 * (WebBase Components, section 4.5). Announcements are appended to the journal; the next update marks the pages, and
 * the next cycle fetches them first. Whole pages are stored as an import would store them. pushlist.c reads both.
 *
 * It never believes that a page is gone without fetching it.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/cycle.h"
#include "ingest/ingest.h"
#include "os/clock.h"
#include "os/path.h"
#include "store/store.h"

#include <pthread.h>
#include <unistd.h>

enum {
    BYTES_MAX = 256 << 20,
    READ_BYTES = 1 << 16,
};

/* ---- the pusher ---------------------------------------------------------------------------------- */

#define PUSHER_MAGIC 0x57425055u

/*
 * It keeps its logs of the journal open, because each writer makes a log of its own: a busy provider would make
 * thousands of them between two updates. An update reads logs that are being written, too.
 */
struct wb_pusher {
    uint32_t magic;                /* PUSHER_MAGIC from open to close */
    char *dir;
    pthread_mutex_t mutex;         /* one push at a time */
    bool pushing;                  /* somebody has the mutex */
    struct wb_journal_writer *log; /* of announcements; NULL until there are any */
    struct wb_page_import *import; /* NULL until there are pages */
};

/* What has failed is opened again for the next push. */
static void close_log(struct wb_pusher *pusher)
{
    wb_journal_writer_close(pusher->log);
    pusher->log = NULL;
}

static void close_import(struct wb_pusher *pusher)
{
    wb_page_import_close(pusher->import);
    pusher->import = NULL;
}

static int announce(struct wb_pusher *pusher, const struct wb_push_list *list, struct wb_push_stat *stat)
{
    WB_CHECK(pusher->pushing);
    int64_t now_ms = wb_clock_wall_ms();
    struct wb_edit_place at;

    int err = pusher->log ? 0 : wb_journal_writer_open(pusher->dir, 0, &pusher->log);
    for (size_t i = 0; err == 0 && i < list->urls.count; i++) {
        const struct wb_push_url *url = &list->urls.items[i];
        WB_CHECK(url->what == WB_PUSH_CHANGED || url->what == WB_PUSH_GONE);
        struct wb_edit edit = {.kind = WB_EDIT_PUSH, .time_ms = now_ms, .count = url->what, .text = url->url};
        stat->changed += url->what == WB_PUSH_CHANGED;
        stat->gone += url->what == WB_PUSH_GONE;
        err = wb_journal_writer_append(pusher->log, &edit, &at);
    }
    /* If this fails, some URLs may have been announced; announcing them again does no harm. */
    if (err == 0)
        err = wb_journal_writer_sync(pusher->log);
    if (err < 0)
        close_log(pusher);
    return err;
}

static int store_pages(struct wb_pusher *pusher, const struct wb_push_list *list, struct wb_push_stat *stat)
{
    struct wb_import counts = {.files = 0};

    WB_CHECK(pusher->pushing);
    int err = pusher->import ? 0 : wb_page_import_open(pusher->dir, &pusher->import);
    if (err == 0)
        err = wb_page_import_add(pusher->import, list->pages.items, list->pages.count, &counts);
    if (err < 0)
        close_import(pusher);
    stat->stored = counts.pages;
    stat->unchanged = counts.captures + counts.older;
    stat->barred = counts.barred;
    return err;
}

int wb_pusher_apply(struct wb_pusher *pusher, const struct wb_push_list *list, struct wb_push_stat *stat_out)
{
    int err = 0;

    WB_CHECK(pusher->magic == PUSHER_MAGIC);
    *stat_out = (struct wb_push_stat){.refused = list->refused, .pages = list->pages.count};
    pthread_mutex_lock(&pusher->mutex);
    WB_CHECK(!pusher->pushing);
    pusher->pushing = true;
    if (list->pages.count)
        err = store_pages(pusher, list, stat_out);
    if (err == 0 && list->urls.count)
        err = announce(pusher, list, stat_out);
    pusher->pushing = false;
    pthread_mutex_unlock(&pusher->mutex);
    return err;
}

int wb_pusher_open(const char *dir, struct wb_pusher **pusher_out)
{
    *pusher_out = NULL;
    int err = wb_store_require(dir);
    if (err < 0)
        return err;
    struct wb_pusher *pusher = wb_alloc_zero(1, sizeof *pusher);
    if (!pusher)
        return WB_E_NOMEM;
    pusher->magic = PUSHER_MAGIC;
    pthread_mutex_init(&pusher->mutex, NULL);
    pusher->dir = wb_strdup(dir);
    if (!pusher->dir) {
        wb_pusher_close(pusher);
        return WB_E_NOMEM;
    }
    *pusher_out = pusher;
    return 0;
}

int wb_pusher_finish(struct wb_pusher *pusher)
{
    WB_CHECK(pusher->magic == PUSHER_MAGIC && !pusher->pushing);
    int err = pusher->import ? wb_page_import_finish(pusher->import) : 0;

    return err == 0 && pusher->log ? wb_journal_writer_finish(pusher->log) : err;
}

void wb_pusher_close(struct wb_pusher *pusher)
{
    if (!pusher)
        return;
    WB_CHECK(pusher->magic == PUSHER_MAGIC && !pusher->pushing);
    close_log(pusher);
    close_import(pusher);
    pthread_mutex_destroy(&pusher->mutex);
    pusher->magic = 0;
    wb_free(pusher->dir);
    wb_free(pusher);
}

/* ---- files --------------------------------------------------------------------------------------- */

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

int wb_push(const char *dir, const char *file, const struct wb_cycle_sink *sink, struct wb_push_stat *stat_out)
{
    bool standard = strcmp(file, "-") == 0;
    struct wb_push_reading reading = {.name = standard ? "standard input" : file,
                                      .provider = "operator",
                                      .now_ms = wb_clock_wall_ms(),
                                      .warn = sink ? sink->warn : NULL,
                                      .context = sink ? sink->context : NULL};
    struct wb_push_list list = {.refused = 0};
    struct wb_pusher *pusher = NULL;
    struct wb_buf text = WB_BUF_INIT;

    *stat_out = (struct wb_push_stat){0};
    int err = wb_pusher_open(dir, &pusher);
    if (err == 0)
        err = standard ? read_standard_input(&text) : wb_path_read(file, BYTES_MAX, &text);
    if (err == 0)
        err = wb_push_list_read(wb_buf_slice(&text), &reading, &list);
    if (err == 0)
        err = wb_pusher_apply(pusher, &list, stat_out);
    if (err == 0)
        err = wb_pusher_finish(pusher);
    wb_pusher_close(pusher);
    wb_push_list_release(&list);
    wb_buf_release(&text);
    return err;
}
