/*
 * import_journal.c - writes imported pages to the journal, as a crawl writes fetched ones.
 *
 *   list of items -> jobs, a few neighbouring items each -> pool of threads -> batches -> log, one thread at a time
 *
 * Extracting a page costs more than everything else that an import does with it, so several threads do it, each with
 * its own extractor. The records of a list therefore reach the log in any order; readers go by the time in each record.
 * The records belong to no site's chain (prev is nowhere), because no crawl will resume from them.
 *
 * This file never touches the store. If a page cannot be understood, only its links are missing.
 */
#include "ingest/import_journal.h"
#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/pool.h"
#include "extract/extract.h"
#include "journal/journal.h"
#include "os/limits.h"

enum {
    THREADS_MAX = 8,            /* more would wait for the source, which cannot read faster */
    JOB_PAGES = 64,
    JOB_BYTES = 256 << 10,
    EXTRACT_BYTES = 16 << 20,   /* how much of a body is looked at: as much as a crawl keeps by default */
};

/* What a thread needs to describe pages. It is borrowed for a job. */
struct page_scribe {
    struct page_scribe *next_free;
    struct wb_edit_batch batch;
    struct wb_factfinder finder;
    struct wb_url base, target; /* work space for redirects */
};

/* Neighbouring items of a list, for one thread. */
struct page_job {
    struct pending_list *pending;
    struct wb_import_item *first;
    size_t count;
};

/* A list that was begun and not taken back yet. */
struct pending_list {
    struct wb_list_node node; /* in the journal's lists */
    struct wb_import_journal *journal;
    struct wb_import_item *list;
    size_t jobs_left;
    struct page_job jobs[];
};

enum { IMPORT_JOURNAL_MAGIC = 0x5742494a }; /* "WBIJ" */

struct wb_import_journal {
    uint32_t magic;
    char *dir;
    struct wb_journal_writer *log; /* NULL: nothing was written yet */
    pthread_mutex_t mutex;        /* guards log, free_scribes, failed, and jobs_left of every list */
    pthread_cond_t done;          /* a list has no jobs left */
    struct wb_pool *pool;
    struct page_scribe *scribes, *free_scribes;
    unsigned scribe_count;
    struct wb_list lists;         /* struct pending_list, oldest first; only the caller's thread uses it */
    struct wb_error_copy failed;  /* the first error of a job; code 0: none failed */
};

/* ---- one page ---------------------------------------------------------------------------------- */

/* Appends what a thread has gathered to the log, as one record. */
static int append_batch(struct wb_import_journal *journal, struct page_scribe *scribe)
{
    struct wb_edit_place place;
    struct wb_edit edit;
    int err = wb_edit_batch_pack(&scribe->batch, &edit);

    if (err < 0 || edit.kind != WB_EDIT_BATCH)
        return err;
    pthread_mutex_lock(&journal->mutex);
    if (!journal->log)
        err = wb_journal_writer_open(journal->dir, 0, &journal->log);
    if (err == 0)
        err = wb_journal_writer_append(journal->log, &edit, &place);
    pthread_mutex_unlock(&journal->mutex);
    return err;
}

/* Fills in the outcome, which follows from the status and the head, and the facts of a page that has content. */
static int describe_outcome(struct page_scribe *scribe, const struct wb_page *page, unsigned wants,
                            struct wb_edit_page *edit)
{
    struct wb_page seen = *page;
    struct wb_extract extract;
    struct wb_pagefacts facts;

    if (page->status / 100 == 2) {
        if (seen.body.len > EXTRACT_BYTES)
            seen.body.len = EXTRACT_BYTES;
        edit->outcome = page->truncated ? WB_OUTCOME_TRUNCATED : WB_OUTCOME_STORED;
        struct wb_slice us = wb_http_agent_token(WB_SLICE_LIT(WB_HTTP_AGENT));
        int err = wb_factfinder_read(&scribe->finder, &seen, us, wants, &facts, &extract);
        if (err == 0)
            wb_edit_page_describe(edit, &seen, &facts);
        return err;
    }
    if (page->status == 404 || page->status == 410) {
        edit->outcome = WB_OUTCOME_GONE;
        return 0;
    }
    edit->outcome = WB_OUTCOME_ERROR;
    edit->reason = WB_SLICE_LIT("status");
    if (!wb_http_status_redirects(page->status))
        return 0;
    int err = wb_http_location(page->head, page->url, &scribe->base, &scribe->target, &edit->location);
    if (err == 0) {
        edit->outcome = WB_OUTCOME_REDIRECT;
        edit->reason = WB_SLICE_EMPTY;
    } else if (err == WB_E_PROTO) {
        edit->reason = WB_SLICE_LIT("location");
        err = 0;
    }
    return err;
}

/* wants: WB_EXTRACT_LINKS or 0. known: the outcome, if the bytes of the page were seen before; otherwise 0. */
static int describe_page(struct wb_import_journal *journal, struct page_scribe *scribe, const struct wb_page *page,
                         unsigned wants,
                         enum wb_edit_outcome known)
{
    struct wb_edit edit = {.kind = WB_EDIT_PAGE, .site = wb_edit_site(wb_key_site(page->key)), .time_ms = page->time_ms,
                           .prev = WB_EDIT_NOWHERE};

    if (!wb_slice_starts(page->url, WB_SLICE_LIT("http:")) && !wb_slice_starts(page->url, WB_SLICE_LIT("https:")))
        return 0;
    edit.page = (struct wb_edit_page){.url = page->url, .status = page->status, .lifetime = page->lifetime,
                                      .bytes = page->body_bytes};
    int err = describe_outcome(scribe, page, wants, &edit.page);
    if (err < 0)
        return err;
    if (known && edit.page.has_content)
        edit.page.outcome = (uint8_t)known;
    err = wb_edit_batch_add(&scribe->batch, &edit);
    return err == 0 && scribe->batch.records.len > WB_EDIT_BATCH_BYTES ? append_batch(journal, scribe) : err;
}

/* ---- threads ----------------------------------------------------------------------------------- */

static struct page_scribe *borrow_scribe(struct wb_import_journal *journal)
{
    pthread_mutex_lock(&journal->mutex);
    struct page_scribe *scribe = journal->free_scribes;
    WB_CHECK(scribe); /* each thread of the pool has one, and so does the caller's */
    journal->free_scribes = scribe->next_free;
    pthread_mutex_unlock(&journal->mutex);
    return scribe;
}

static void return_scribe(struct wb_import_journal *journal, struct page_scribe *scribe)
{
    pthread_mutex_lock(&journal->mutex);
    scribe->next_free = journal->free_scribes;
    journal->free_scribes = scribe;
    pthread_mutex_unlock(&journal->mutex);
}

static void end_job(struct pending_list *pending, int err)
{
    struct wb_import_journal *journal = pending->journal;

    pthread_mutex_lock(&journal->mutex);
    if (err < 0 && journal->failed.code == 0)
        wb_error_save(err, &journal->failed);
    WB_CHECK(pending->jobs_left > 0);
    if (--pending->jobs_left == 0)
        pthread_cond_signal(&journal->done);
    pthread_mutex_unlock(&journal->mutex);
}

static void run_job(void *context)
{
    struct page_job *job = context;
    struct wb_import_journal *journal = job->pending->journal;
    struct page_scribe *scribe = borrow_scribe(journal);
    struct wb_import_item *item = job->first;
    struct wb_page *pages[JOB_PAGES];
    size_t count = 0;
    int err = 0;

    for (size_t i = 0; i < job->count; i++, item = item->next)
        if (item->kind == WB_IMPORT_PAGE && !item->barred)
            pages[count++] = &item->page;
    wb_page_digest_many(pages, count);
    for (size_t i = 0; err == 0 && i < count; i++)
        err = describe_page(journal, scribe, pages[i], WB_EXTRACT_LINKS, 0);
    if (err == 0)
        err = append_batch(journal, scribe);
    return_scribe(journal, scribe);
    end_job(job->pending, err);
}

/* Counts the jobs of a list; unless pending is NULL, also puts them there. */
static size_t cut_into_jobs(struct wb_import_item *list, struct pending_list *pending)
{
    struct wb_import_item *first = list;
    size_t jobs = 0, count = 0, bytes = 0;

    for (struct wb_import_item *item = list; item; item = item->next) {
        count++;
        bytes += item->bytes;
        if (count < JOB_PAGES && bytes < JOB_BYTES && item->next)
            continue;
        if (pending)
            pending->jobs[jobs] = (struct page_job){pending, first, count};
        jobs++;
        first = item->next;
        count = bytes = 0;
    }
    return jobs;
}

int wb_import_journal_begin(struct wb_import_journal *journal, struct wb_import_item *list)
{
    WB_CHECK(journal->magic == IMPORT_JOURNAL_MAGIC && list);
    size_t count = cut_into_jobs(list, NULL);
    struct pending_list *pending = wb_alloc(sizeof *pending + count * sizeof *pending->jobs);
    int err = 0;

    if (!pending)
        return WB_E_NOMEM;
    *pending = (struct pending_list){.journal = journal, .list = list, .jobs_left = count};
    size_t cut = cut_into_jobs(list, pending);
    WB_CHECK(cut == count);
    wb_list_append(&journal->lists, &pending->node);
    for (size_t i = 0; i < count; i++) {
        if (err == 0)
            err = wb_pool_submit(journal->pool, run_job, &pending->jobs[i]);
        if (err < 0)
            end_job(pending, err);
    }
    return 0; /* taking the list back returns the error of a job */
}

int wb_import_journal_take(struct wb_import_journal *journal, bool wait, struct wb_import_item **list_out)
{
    WB_CHECK(journal->magic == IMPORT_JOURNAL_MAGIC);
    *list_out = NULL;
    if (!journal->lists.first)
        return 0;
    struct pending_list *pending = WB_CONTAINER_OF(journal->lists.first, struct pending_list, node);
    pthread_mutex_lock(&journal->mutex);
    while (pending->jobs_left && wait)
        pthread_cond_wait(&journal->done, &journal->mutex);
    bool done = pending->jobs_left == 0;
    int err = done && journal->failed.code < 0 ? wb_error_restore(&journal->failed) : 0;
    pthread_mutex_unlock(&journal->mutex);
    if (!done)
        return 0;
    wb_list_remove(&journal->lists, &pending->node);
    *list_out = pending->list;
    wb_free(pending);
    return err;
}

bool wb_import_journal_busy(const struct wb_import_journal *journal)
{
    return journal->lists.first != NULL;
}

int wb_import_journal_revisit(struct wb_import_journal *journal, const struct wb_page *page,
                              enum wb_edit_outcome outcome)
{
    struct page_scribe *scribe = borrow_scribe(journal);
    int err = describe_page(journal, scribe, page, 0, outcome);

    if (err == 0)
        err = append_batch(journal, scribe);
    return_scribe(journal, scribe);
    return err;
}

/* ---- the whole --------------------------------------------------------------------------------- */

int wb_import_journal_sync(struct wb_import_journal *journal)
{
    pthread_mutex_lock(&journal->mutex);
    int err = journal->log ? wb_journal_writer_sync(journal->log) : 0;
    pthread_mutex_unlock(&journal->mutex);
    return err;
}

int wb_import_journal_finish(struct wb_import_journal *journal)
{
    WB_CHECK(journal->magic == IMPORT_JOURNAL_MAGIC && !journal->lists.first);
    return journal->log ? wb_journal_writer_finish(journal->log) : 0;
}

/* One for each thread of the pool, and one for the revisits of the caller's thread. */
static int make_scribes(struct wb_import_journal *journal, unsigned count)
{
    journal->scribes = wb_alloc_zero(count, sizeof *journal->scribes);
    if (!journal->scribes)
        return WB_E_NOMEM;
    for (; journal->scribe_count < count; journal->scribe_count++) {
        struct page_scribe *scribe = &journal->scribes[journal->scribe_count];
        *scribe = (struct page_scribe){.finder = WB_FACTFINDER_INIT, .base = WB_URL_INIT, .target = WB_URL_INIT};
        int err = wb_factfinder_init(&scribe->finder);
        if (err < 0)
            return err;
        scribe->next_free = journal->free_scribes;
        journal->free_scribes = scribe;
    }
    return 0;
}

void wb_import_journal_limit_links(struct wb_import_journal *journal, size_t max)
{
    WB_CHECK(journal->magic == IMPORT_JOURNAL_MAGIC);
    for (unsigned i = 0; i < journal->scribe_count; i++)
        journal->scribes[i].finder.links_max = max;
}

int wb_import_journal_open(const char *dir, unsigned threads, struct wb_import_journal **journal_out)
{
    struct wb_import_journal *journal = wb_alloc_zero(1, sizeof *journal);

    *journal_out = NULL;
    if (!journal)
        return WB_E_NOMEM;
    if (threads == 0)
        threads = wb_limits_processors();
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    journal->magic = IMPORT_JOURNAL_MAGIC;
    pthread_mutex_init(&journal->mutex, NULL);
    pthread_cond_init(&journal->done, NULL);
    journal->dir = wb_strdup(dir);
    int err = journal->dir ? make_scribes(journal, threads + 1) : WB_E_NOMEM;
    if (err == 0)
        err = wb_pool_new(threads, &journal->pool);
    if (err < 0) {
        wb_import_journal_close(journal);
        return err;
    }
    *journal_out = journal;
    return 0;
}

void wb_import_journal_close(struct wb_import_journal *journal)
{
    if (!journal)
        return;
    WB_CHECK(journal->magic == IMPORT_JOURNAL_MAGIC && !journal->lists.first);
    journal->magic = 0;
    wb_pool_free(journal->pool);
    wb_journal_writer_close(journal->log);
    for (unsigned i = 0; i < journal->scribe_count; i++) {
        wb_edit_batch_release(&journal->scribes[i].batch);
        wb_factfinder_release(&journal->scribes[i].finder);
        wb_url_release(&journal->scribes[i].base);
        wb_url_release(&journal->scribes[i].target);
    }
    wb_free(journal->scribes);
    wb_free(journal->dir);
    pthread_cond_destroy(&journal->done);
    pthread_mutex_destroy(&journal->mutex);
    wb_free(journal);
}
