/*
 * importer.c - puts what was read into the repository. It reads no input file.
 *
 * A revisit record says "the same bytes as before" about a page, its original:
 *
 *   the original is in the store, under the same URL  -> its time moves forward
 *   ... under another URL                             -> it is stored under the revisit's URL as well
 *   it is not there, or is not the one that is meant  -> the revisit is kept as a fact, without a body
 *
 * The store shows a writer its own uncommitted pages, so an original from earlier in the same archive is found.
 */
#include "ingest/importer.h"
#include "base/check.h"
#include "base/error.h"

static bool same_second(int64_t a_ms, int64_t b_ms)
{
    return a_ms / 1000 == b_ms / 1000;
}

/*
 * Whether page is the original that the revisit means. If the record has a digest, the digest decides; otherwise the
 * URL and the date that it names do.
 */
static bool is_original(const struct wb_page *page, const struct wb_import_original *original)
{
    if (original->has_sha1)
        return memcmp(page->sha1, original->sha1, WB_SHA1_BYTES) == 0 ||
               (page->has_payload_sha1 && memcmp(page->payload_sha1, original->sha1, WB_SHA1_BYTES) == 0);
    return original->not_modified || (original->time_ms && same_second(page->time_ms, original->time_ms));
}

/* Returns 1 with the original in *page_out, which borrows from the importer, or 0 if it is not in the store. */
static int find_original(struct wb_importer *importer, const struct wb_import_item *item, struct wb_page *page_out)
{
    const struct wb_import_original *original = &item->original;

    int err = wb_store_get(importer->store, original->id, page_out, &importer->body);
    if (err == 0 && is_original(page_out, original))
        return 1;
    if (err < 0 && err != WB_E_NOTFOUND && err != WB_E_CORRUPT)
        return err;
    /* A matching digest is proof enough, even if the page is not where the record points. */
    if (!original->elsewhere || !original->has_sha1)
        return 0;
    err = wb_store_get(importer->store, item->page.id, page_out, &importer->body);
    if (err == 0)
        return is_original(page_out, original);
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

/* Turns the original into a page of the revisit's URL, with the revisit's own head unless that is the head of a 304. */
static void make_copy(const struct wb_import_item *item, struct wb_page *page)
{
    page->id = item->page.id;
    page->url = item->page.url;
    page->key = item->page.key;
    if (item->page.head.len && !item->original.not_modified) {
        page->kind = WB_PAGE_RESPONSE;
        page->head = item->page.head;
        page->status = item->page.status;
        if (item->page.type.len) {
            page->type = item->page.type;
            page->charset = item->page.charset;
        }
    }
}

/* The original is not here: all we know is that the page was seen at this time. */
static int keep_fact(struct wb_importer *importer, const struct wb_import_item *item)
{
    struct wb_store_revisit fact = {.time_ms = item->page.time_ms, .has_sha1 = item->original.has_sha1};

    memcpy(fact.sha1, item->original.sha1, sizeof fact.sha1);
    return wb_store_put_revisit(importer->store, item->page.id, wb_key_site(item->page.key), &fact);
}

static int take_revisit(struct wb_importer *importer, const struct wb_import_item *item)
{
    enum wb_store_outcome put = WB_STORE_PUT_REPLACED;
    struct wb_page page;
    int err;

    importer->revisits++;
    /* A record with an unknown profile must not be interpreted (ISO 28500, 6.7). */
    if (!item->original.known_profile)
        return 0;
    importer->uncommitted++;
    int found = find_original(importer, item, &page);
    if (found < 0)
        return found;
    if (found == 0)
        return keep_fact(importer, item);
    bool copy = !wb_pageid_equal(page.id, item->page.id);
    page.time_ms = item->page.time_ms;
    if (copy) {
        make_copy(item, &page);
        err = wb_store_put(importer->store, &page, &put);
    } else {
        err = wb_store_touch(importer->store, page.id, page.time_ms);
        if (err == WB_E_NOTFOUND) /* another process removed it since we found it */
            return keep_fact(importer, item);
    }
    if (err == 0 && importer->journal && put != WB_STORE_PUT_BARRED)
        err = wb_import_journal_revisit(importer->journal, &page, copy ? WB_OUTCOME_DUPLICATE : WB_OUTCOME_UNCHANGED);
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
        WB_CHECK(!importer->journal || item->page.digested); /* it went through the journal first */
        importer->uncommitted++;
        return wb_store_put(importer->store, &item->page, NULL);
    case WB_IMPORT_REVISIT:
        return take_revisit(importer, item);
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
    if (err == 0)
        importer->uncommitted = 0;
    return err;
}

int wb_importer_finish(struct wb_importer *importer)
{
    return importer->journal ? wb_import_journal_finish(importer->journal) : 0;
}

uint64_t wb_importer_pages(const struct wb_importer *importer)
{
    return importer->commit.added + importer->commit.replaced;
}

uint64_t wb_importer_barred(const struct wb_importer *importer)
{
    return importer->barred + importer->commit.barred;
}

void wb_importer_release(struct wb_importer *importer)
{
    wb_buf_release(&importer->body);
    wb_import_journal_close(importer->journal);
    wb_store_close(importer->store);
    *importer = WB_IMPORTER_INIT;
}
