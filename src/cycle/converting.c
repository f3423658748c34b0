/*
 * converting.c - carries what is known about pages over to a copy of a repository, when it is converted: the newest
 * edition of webdb and the journal. Indexes, streams and the state of crawls stay behind; `index` builds its own.
 *
 * An edition says how far each log of the journal was merged into it, and an update removes the logs that it has merged
 * in full. So edition and journal belong together: if an update has made another edition in the meantime, both are
 * copied once more. Logs that are being written are copied as far as they go, which looks like those of a writer that
 * died. Pages are copied afterwards, so that every page that the journal mentions is there; if pages arrive in
 * between, the next update of the copy adopts them.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/cycle.h"
#include "move/move.h"
#include "os/folder.h"
#include "os/path.h"
#include "os/series.h"

#define JOURNAL_DIR "journal"
#define WEBDB_DIR "webdb"

enum { TRIES = 10 };

/* Files that are copied from one directory to another. */
struct carry_files {
    const char *from, *to;
};

static int copy_file(void *context, const struct wb_path_entry *entry)
{
    const struct carry_files *files = context;
    char *from = wb_path_join(files->from, entry->name), *to = wb_path_join(files->to, entry->name);
    int err = from && to ? 0 : WB_E_NOMEM;

    /* What holds an edition of the source is not known here. */
    bool wanted = entry->kind == WB_PATH_FILE && strncmp(entry->name, "hold-", 5) != 0;
    if (err == 0 && wanted)
        err = wb_path_copy(from, to);
    wb_free(from);
    wb_free(to);
    return err;
}

static int copy_files(const char *from, const char *to)
{
    struct carry_files files = {from, to};

    return wb_path_each(from, copy_file, &files);
}

static int remove_file(void *context, const struct wb_path_entry *entry)
{
    char *path = wb_path_join(context, entry->name);
    int err = path ? wb_path_unlink(path) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

/* The logs of the journal, instead of those that an earlier attempt has copied. */
static int carry_journal(const char *from, const char *to)
{
    WB_CHECK(strcmp(from, to) != 0); /* what is in `to` is removed */
    char *there = wb_path_join(from, JOURNAL_DIR), *here = wb_path_join(to, JOURNAL_DIR);
    int err = there && here ? 0 : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(there) == WB_PATH_DIR) {
        err = wb_path_mkdirs(here);
        if (err == 0)
            err = wb_path_each(here, remove_file, here);
        if (err == 0)
            err = copy_files(there, here);
        if (err == 0)
            err = wb_path_sync_dir(here);
    }
    wb_free(there);
    wb_free(here);
    return err;
}

/* Copies an edition, and the journal that belongs to it. Returns 1 if there is another edition now. */
static int carry_edition(const char *from, const char *to, const char *there, const char *here, uint32_t edition)
{
    struct wb_file lock = WB_FILE_INIT, shared = WB_FILE_INIT;
    WB_CHECK(edition > 0);
    char *source = wb_series_path(there, edition), *fresh = NULL;
    bool renamed;
    uint32_t newest;
    int err = source ? wb_series_share(there, edition, &shared) : WB_E_NOMEM;

    if (err == 0)
        err = wb_series_lock(here, &lock);
    if (err == 0)
        err = wb_series_begin(here, &fresh);
    if (err == 0)
        err = copy_files(source, fresh);
    if (err == 0)
        err = carry_journal(from, to);
    int looked = wb_series_newest(there, &newest);
    bool other = looked == 0 && newest != edition;
    if (err == 0)
        err = looked;
    if (err == 0 && !other)
        err = wb_series_publish(here, fresh, edition, &renamed);
    else if (fresh)
        (void)wb_series_remove(fresh);
    wb_file_close(&lock);
    wb_file_close(&shared);
    wb_free(source);
    wb_free(fresh);
    return other ? 1 : err;
}

static int carry(void *context, const char *from, const char *to)
{
    char *there = wb_path_join(from, WEBDB_DIR), *here = wb_path_join(to, WEBDB_DIR);
    int err = there && here ? 1 : WB_E_NOMEM;

    (void)context;
    for (unsigned i = 0; i < TRIES && err > 0; i++) {
        uint32_t edition, newest = 0;
        err = wb_series_newest(there, &edition);
        if (err == 0 && edition)
            err = carry_edition(from, to, there, here, edition);
        else if (err == 0)
            err = carry_journal(from, to);
        if (!edition && wb_series_newest(there, &newest) == 0 && newest)
            err = 1;
    }
    if (err > 0)
        err = wb_fail(WB_E_BUSY, "%s is updated all the time: try again later", from);
    wb_free(there);
    wb_free(here);
    return err;
}

#define CONVERT_MAGIC 0x57424356u

/* Passes on what the store says. */
struct convert_context {
    uint32_t magic;         /* CONVERT_MAGIC while wb_convert() is at work */
    const struct wb_cycle_sink *sink;
    wb_convert_lost lost;
    const char *from;
    struct wb_webdb *webdb; /* of the source; NULL: not opened yet, or there is none */
    bool asked;             /* it was opened, or that has failed */
    struct wb_buf url;
};

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    const struct convert_context *c = context;
    const struct wb_cycle_sink *sink = c->sink;

    WB_CHECK(c->magic == CONVERT_MAGIC);
    return !sink->progress || sink->progress(sink->context, "convert", done, total);
}

/* Finds the URL of a page whose record cannot be read. If that fails, it is not known. */
static void find_url(struct convert_context *c, struct wb_pageid id)
{
    uint32_t number = WB_WEBDB_NO_NUMBER;

    WB_CHECK(!c->webdb || c->asked);
    wb_buf_clear(&c->url);
    if (!c->asked && wb_webdb_open(c->from, &c->webdb) < 0)
        c->webdb = NULL;
    c->asked = true;
    if (!c->webdb || wb_webdb_numbers_of_ids(c->webdb, &id, 1, &number) < 0 || number == WB_WEBDB_NO_NUMBER)
        return;
    if (wb_webdb_page_url(c->webdb, number, &c->url) < 0)
        wb_buf_clear(&c->url);
}

static void on_lost(void *context, const struct wb_move_lost *lost)
{
    struct convert_context *c = context;

    WB_CHECK(c->magic == CONVERT_MAGIC);
    find_url(c, lost->id);
    if (c->lost)
        c->lost(c->sink->context, wb_buf_slice(&c->url), lost);
}

int wb_convert(const char *from, const char *to, const struct wb_store_options *options,
               const struct wb_cycle_sink *sink, wb_convert_lost lost, struct wb_move_convert_counts *counts_out)
{
    WB_CHECK(sink != NULL);
    struct convert_context context = {.magic = CONVERT_MAGIC, .sink = sink, .lost = lost, .from = from};
    struct wb_move_convert_sink store_sink = {
        .progress = on_progress, .rest = carry, .lost = on_lost, .context = &context};

    int err = wb_move_convert(from, to, options, &store_sink, counts_out);
    wb_webdb_close(context.webdb);
    wb_buf_release(&context.url);
    return err;
}
