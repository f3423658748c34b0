/*
 * import_pages.c - imports of pages that the caller has in memory: pushes. They go the way of all imports (sift,
 * journal, store, commit), so that takedowns, history and webdb apply to them too. It reads no file.
 *
 * The journal stays open from one import to the next, because each writer has a log of its own, and a log for each push
 * would be too many. The store does not, so that an idle server keeps nothing locked.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "ingest/importer.h"
#include "ingest/ingest.h"

struct wb_page_import {
    char *dir;
    struct wb_import_journal *journal;
};

static void free_list(struct wb_import_item *list)
{
    while (list) {
        struct wb_import_item *next = list->next;
        wb_import_item_free(list);
        list = next;
    }
}

/* The items borrow the pages, because they are freed before the caller gets these back. */
static int make_list(const struct wb_page *pages, size_t count, struct wb_import_item **list_out)
{
    *list_out = NULL;
    for (size_t i = count; i-- > 0;) {
        struct wb_import_item *item = wb_import_item_new(WB_IMPORT_PAGE, 0);
        if (!item)
            return WB_E_NOMEM;
        item->page = pages[i];
        item->records = 1;
        item->next = *list_out;
        *list_out = item;
    }
    return 0;
}

static int journal_pages(struct wb_importer *importer, struct wb_import_item *list)
{
    struct wb_import_item *same;

    int err = wb_importer_sift(importer, list);
    if (err == 0)
        err = wb_import_journal_begin(importer->journal, list);
    if (err < 0)
        return err;
    err = wb_import_journal_take(importer->journal, true, &same);
    WB_CHECK(same == list); /* it was the only one */
    return err;
}

static int import_list(struct wb_importer *importer, struct wb_import_item *list)
{
    int err = journal_pages(importer, list);

    for (struct wb_import_item *item = list; err == 0 && item; item = item->next)
        err = wb_importer_take(importer, item);
    if (err == 0)
        err = wb_importer_commit(importer);
    if (err == 0 && importer->uncommitted)
        err = wb_importer_commit(importer);
    return err;
}

int wb_page_import_add(struct wb_page_import *import, const struct wb_page *pages, size_t count,
                       struct wb_import *counts_out)
{
    struct wb_importer importer = WB_IMPORTER_INIT;
    struct wb_import_item *list;

    WB_CHECK(count > 0);
    *counts_out = (struct wb_import){.files = 0};
    int err = make_list(pages, count, &list);
    if (err == 0)
        err = wb_store_open(import->dir, WB_STORE_WRITE, &importer.store);
    if (err == 0)
        err = wb_importer_begin(&importer);
    importer.journal = import->journal;
    if (err == 0)
        err = import_list(&importer, list);
    wb_importer_count(&importer, counts_out);
    free_list(list);
    importer.journal = NULL; /* it stays open */
    wb_importer_release(&importer);
    return err;
}

int wb_page_import_open(const char *dir, struct wb_page_import **import_out)
{
    struct wb_page_import *import = wb_alloc_zero(1, sizeof *import);

    *import_out = NULL;
    if (!import)
        return WB_E_NOMEM;
    import->dir = wb_strdup(dir);
    int err = import->dir ? wb_import_journal_open(dir, 1, &import->journal) : WB_E_NOMEM;
    if (err < 0) {
        wb_page_import_close(import);
        return err;
    }
    *import_out = import;
    return 0;
}

int wb_page_import_finish(struct wb_page_import *import)
{
    return wb_import_journal_finish(import->journal);
}

void wb_page_import_close(struct wb_page_import *import)
{
    if (!import)
        return;
    wb_import_journal_close(import->journal);
    wb_free(import->dir);
    wb_free(import);
}
