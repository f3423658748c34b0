/*
 * importer.c - puts what was read into the repository. It reads no input file, and leaves revisits to import_revisit.c.
 *
 * Every capture of a page is put, whatever its time and whatever the store has: the store finds its place among the
 * versions, and counts what became of it.
 */
#include "ingest/importer.h"
#include "base/check.h"
#include "base/error.h"
#include "ingest/import_itself.h"
#include "ingest/import_revisit.h"

int wb_importer_begin(struct wb_importer *importer)
{
    struct wb_store_history history = {0};
    struct wb_store_stat stat;
    int err = wb_store_stat(importer->store, &stat);

    importer->waiting = err == 0 && stat.revisits > 0;
    if (err == 0)
        err = wb_store_history(importer->store, &history);
    importer->newest_only = err == 0 && history.keep == WB_STORE_KEEP_NEWEST;
    return err;
}

int wb_importer_sift(struct wb_importer *importer, struct wb_import_item *list)
{
    for (struct wb_import_item *item = list; item; item = item->next) {
        if (item->kind != WB_IMPORT_PAGE && item->kind != WB_IMPORT_REVISIT)
            continue;
        int barred = wb_store_barred(importer->store, item->page.id, wb_key_site(item->page.key));
        if (barred < 0)
            return barred;
        item->barred = barred > 0;
    }
    return 0;
}

static int take_page(struct wb_importer *importer, const struct wb_import_item *item)
{
    WB_CHECK(!importer->journal || item->page.digested); /* it went through the journal first */
    enum wb_store_outcome put = WB_STORE_PUT_NEW;
    int err = wb_import_itself_yields(importer, &item->page);
    if (err != 0) {
        importer->commit.older += err > 0;
        return err < 0 ? err : 0;
    }
    importer->uncommitted++;
    err = wb_store_put(importer->store, &item->page, &put);
    if (err == 0 && (put == WB_STORE_PUT_PAST || put == WB_STORE_PUT_OLDER || put == WB_STORE_PUT_KNOWN))
        err = wb_import_itself_gives_way(importer, &item->page);
    return err == 0 && importer->waiting ? wb_import_revisit_feed(importer, &item->page) : err;
}

int wb_importer_take(struct wb_importer *importer, const struct wb_import_item *item)
{
    WB_CHECK(importer->store);
    importer->records += item->records;
    if (item->barred) {
        importer->barred++;
        importer->revisits += item->kind == WB_IMPORT_REVISIT;
        return 0;
    }
    switch (item->kind) {
    case WB_IMPORT_PAGE:
        return take_page(importer, item);
    case WB_IMPORT_REVISIT:
        return wb_import_revisit_take(importer, item);
    case WB_IMPORT_ERROR:
        importer->errors++;
        importer->unreadable += item->fatal;
        return 0;
    case WB_IMPORT_FILE:
        importer->files++;
        return 0;
    }
    return 0;
}

int wb_importer_commit(struct wb_importer *importer)
{
    int err = importer->journal ? wb_import_journal_sync(importer->journal) : 0;

    if (err == 0)
        err = wb_store_commit(importer->store, &importer->commit);
    if (err < 0)
        return err;
    importer->uncommitted = 0;
    return wb_import_revisit_retry(importer);
}

int wb_importer_finish(struct wb_importer *importer)
{
    return importer->journal ? wb_import_journal_finish(importer->journal) : 0;
}

uint64_t wb_importer_pages(const struct wb_importer *importer)
{
    return importer->commit.added + importer->commit.replaced + importer->commit.past;
}

void wb_importer_count(const struct wb_importer *importer, struct wb_import *import_out)
{
    *import_out = (struct wb_import){
        .files = importer->files,
        .records = importer->records,
        .pages = wb_importer_pages(importer),
        .replaced = importer->commit.replaced,
        .captures = importer->commit.captures,
        .older = importer->commit.older,
        .revisits = importer->revisits,
        .barred = importer->barred + importer->commit.barred,
        .errors = importer->errors,
        .unreadable = importer->unreadable,
        .damaged = importer->commit.damaged,
    };
}

void wb_importer_release(struct wb_importer *importer)
{
    wb_buf_release(&importer->body);
    wb_vec_release(&importer->matching);
    wb_vec_release(&importer->not_found);
    wb_arena_release(&importer->matching_text);
    wb_arena_release(&importer->not_found_text);
    wb_url_release(&importer->url);
    wb_buf_release(&importer->key);
    wb_import_journal_close(importer->journal);
    wb_store_close(importer->store);
    *importer = WB_IMPORTER_INIT;
}
