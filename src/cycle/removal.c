/*
 * removal.c - the two halves of every removal: the store and the journal. It never decides which page is removed, nor
 * which half comes first.
 */
#include "cycle/removal.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"

enum {
    COMMIT_PAGES = 10000,
    EXPIRED_BYTES = 4 << 20,
    SITE_IDS = 65536, /* pages of a site that are listed at a time */
};

int wb_removal_open(const char *dir, bool everywhere, struct wb_removal *removal_out)
{
    *removal_out = (struct wb_removal){.magic = WB_REMOVAL_MAGIC, .dir = dir, .now_ms = wb_clock_wall_ms(),
                                       .everywhere = everywhere, .reason = WB_EXPUNGE_EXPIRED, .url = WB_URL_INIT};
    return wb_store_open(dir, WB_STORE_WRITE, &removal_out->store);
}

int wb_removal_id(struct wb_removal *removal, struct wb_slice url, struct wb_pageid *id_out)
{
    WB_CHECK(removal->magic == WB_REMOVAL_MAGIC);
    *id_out = (struct wb_pageid){0, 0};
    int err = wb_url_parse(url, NULL, &removal->url);
    if (err == 0)
        err = wb_url_key(&removal->url, &removal->key);
    if (err == 0)
        *id_out = wb_pageid_of_key(wb_buf_slice(&removal->key));
    return err;
}

int wb_removal_read(struct wb_removal *removal, struct wb_pageid id, struct wb_page *page_out)
{
    WB_CHECK(removal->magic == WB_REMOVAL_MAGIC && removal->store);
    struct wb_store_when now = {.kind = WB_STORE_WHEN_TIME, .time_ms = INT64_MAX};
    int err = wb_store_get(removal->store, id, page_out, &removal->mem);

    return err == WB_E_NOTFOUND ? wb_store_get_when(removal->store, id, &now, page_out, &removal->mem) : err;
}

int wb_removal_store(struct wb_removal *removal, struct wb_pageid id, struct wb_slice site, int64_t gone_ms)
{
    WB_CHECK(removal->magic == WB_REMOVAL_MAGIC && removal->store);
    int err = wb_store_remove(removal->store, id, site, gone_ms, removal->everywhere);

    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    if (++removal->uncommitted >= COMMIT_PAGES)
        err = wb_removal_commit(removal);
    return err < 0 ? err : 1;
}

int wb_removal_expired(struct wb_removal *removal, struct wb_slice url)
{
    WB_CHECK(removal->magic == WB_REMOVAL_MAGIC && !removal->everywhere);
    int err = wb_buf_append_slice(&removal->expired, url);

    if (err == 0)
        err = wb_buf_append_char(&removal->expired, '\n');
    return err == 0 && removal->expired.len >= EXPIRED_BYTES ? wb_removal_commit(removal) : err;
}

static int note_expired(struct wb_removal *removal)
{
    WB_CHECK(removal->uncommitted == 0); /* or a crash could leave them stored and forgotten */
    struct wb_slice rest = wb_buf_slice(&removal->expired), url;
    int err = 0;

    while (err == 0 && wb_slice_next_line(&rest, &url))
        err = wb_removal_note(removal, url, removal->reason);
    wb_buf_clear(&removal->expired);
    return err;
}

int wb_removal_commit(struct wb_removal *removal)
{
    WB_CHECK(removal->magic == WB_REMOVAL_MAGIC && removal->store);
    struct wb_store_commit_counts counts = {0};
    int err = removal->uncommitted ? wb_store_commit(removal->store, &counts) : 0;

    if (err < 0)
        return err;
    removal->uncommitted = 0;
    return note_expired(removal);
}

/* Returns the number of pages that one pass removed, or an error. */
static int64_t remove_listed(struct wb_removal *removal, struct wb_slice site, struct wb_pageid *ids,
                             int (*each)(void *context, struct wb_pageid id), void *context)
{
    size_t count = 0;
    int64_t removed = 0;
    int err = wb_store_list_site(removal->store, site, ids, SITE_IDS, &count);

    for (size_t i = 0; err == 0 && i < count; i++) {
        int got = each(context, ids[i]);
        removed += got > 0;
        err = got < 0 ? got : 0;
    }
    if (err == 0)
        err = wb_removal_commit(removal);
    return err < 0 ? err : removed;
}

int wb_removal_each_of_site(struct wb_removal *removal, struct wb_slice site,
                            int (*each)(void *context, struct wb_pageid id), void *context)
{
    WB_CHECK(removal->magic == WB_REMOVAL_MAGIC && removal->everywhere);
    struct wb_pageid *ids = wb_alloc_zero(SITE_IDS, sizeof *ids);
    int64_t removed = ids ? 1 : WB_E_NOMEM;

    while (removed > 0)
        removed = remove_listed(removal, site, ids, each, context);
    wb_free(ids);
    return (int)removed;
}

int wb_removal_note(struct wb_removal *removal, struct wb_slice url, enum wb_expunge what)
{
    struct wb_edit edit = {.kind = WB_EDIT_EXPUNGE, .time_ms = removal->now_ms, .text = url, .count = what};
    struct wb_edit_place place;

    WB_CHECK(removal->magic == WB_REMOVAL_MAGIC);
    int err = removal->log ? 0 : wb_journal_writer_open(removal->dir, 0, &removal->log);
    return err < 0 ? err : wb_journal_writer_append(removal->log, &edit, &place);
}

int wb_removal_noted(struct wb_removal *removal)
{
    WB_CHECK(removal->magic == WB_REMOVAL_MAGIC);
    WB_CHECK(removal->uncommitted == 0 && removal->expired.len == 0);
    if (!removal->log)
        return 0;
    int err = wb_journal_writer_finish(removal->log);
    wb_journal_writer_close(removal->log);
    removal->log = NULL;
    return err;
}

void wb_removal_close(struct wb_removal *removal)
{
    wb_journal_writer_close(removal->log);
    wb_store_close(removal->store);
    wb_url_release(&removal->url);
    wb_buf_release(&removal->key);
    wb_buf_release(&removal->mem);
    wb_buf_release(&removal->expired);
    *removal = (struct wb_removal){.dir = NULL};
}
