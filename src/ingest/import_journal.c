/*
 * import_journal.c - tells the journal of imported pages, as a crawl does of fetched ones.
 *
 * Extracting a page costs more than everything else an import does with it, so a few threads do it, each with an
 * extractor of its own; they take turns at the log. The order of records within a list is therefore not that of the
 * archive: their times count. A record's chain is empty (prev is nowhere): no crawl goes on from it.
 *
 * It never touches the store. A page that cannot be understood costs nothing but its links.
 */
#include "ingest/import_journal.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/pool.h"
#include "journal/journal.h"

enum {
    THREADS_MAX = 8,            /* reading is not faster than these */
    JOB_PAGES = 64,
    JOB_BYTES = 256 << 10,
    EXTRACT_BYTES = 16 << 20,   /* of a body: what a crawl keeps of a page unless told otherwise */
};

/* What a thread needs for a page. */
struct reader {
    struct reader *next_free;
    struct wb_edit_batch batch;
    struct wb_pagefacts facts;
    struct wb_url base, target;
};

/* Some neighbours of a list. */
struct job {
    struct round *round;
    struct wb_import_item *first;
    size_t count;
};

/* A list on its way. */
struct round {
    struct wb_import_journal *journal;
    struct round *next;
    struct wb_import_item *list;
    size_t pending; /* jobs */
    struct job jobs[];
};

struct wb_import_journal {
    char *dir;
    struct wb_slice robots_token; /* borrowed */
    struct wb_journal_writer *log; /* NULL: nothing was told yet */
    pthread_mutex_t mutex;        /* of log, readers, failed and every round's pending */
    pthread_cond_t done;          /* a round is */
    struct wb_pool *pool;
    struct reader *readers, *free_readers;
    unsigned reader_count;
    struct round *rounds, **rounds_tail; /* lists on their way, oldest first */
    struct wb_error_copy failed;  /* of a job, the first; code 0: none */
};

/* ---- one page ------------------------------------------------------------------------------------- */

/* What a thread has gathered goes to the log as one record. */
static int append_batch(struct wb_import_journal *journal, struct reader *reader)
{
    struct wb_edit_place place;
    struct wb_edit edit;
    int err = wb_edit_batch_pack(&reader->batch, &edit);

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

/* Status and head decide what came of a page; only one that came has content. */
static int describe(const struct wb_import_journal *journal, struct reader *reader, const struct wb_page *page, unsigned wants,
                    struct wb_edit_page *edit)
{
    struct wb_page seen = *page;
    struct wb_extract extract;

    if (page->status / 100 == 2) {
        if (seen.body.len > EXTRACT_BYTES)
            seen.body.len = EXTRACT_BYTES;
        edit->outcome = page->truncated ? WB_OUTCOME_TRUNCATED : WB_OUTCOME_STORED;
        return wb_pagefacts_read(&reader->facts, &seen, journal->robots_token, wants, edit, &extract);
    }
    if (page->status == 404 || page->status == 410) {
        edit->outcome = WB_OUTCOME_GONE;
        return 0;
    }
    edit->outcome = WB_OUTCOME_ERROR;
    edit->reason = WB_SLICE_LIT("status");
    if (!wb_http_status_redirects(page->status))
        return 0;
    int err = wb_pagefacts_location(page->head, page->url, &reader->base, &reader->target, &edit->location);
    if (err == 0) {
        edit->outcome = WB_OUTCOME_REDIRECT;
        edit->reason = WB_SLICE_EMPTY;
    } else if (err == WB_E_PROTO) {
        edit->reason = WB_SLICE_LIT("location");
        err = 0;
    }
    return err;
}

static int tell_page(struct wb_import_journal *journal, struct reader *reader, const struct wb_page *page, unsigned wants,
                     enum wb_edit_outcome known)
{
    struct wb_edit edit = {.kind = WB_EDIT_PAGE, .site = wb_edit_site(wb_key_site(page->key)), .time_ms = page->time_ms,
                           .prev = WB_EDIT_NOWHERE};

    if (!wb_slice_starts(page->url, WB_SLICE_LIT("http:")) && !wb_slice_starts(page->url, WB_SLICE_LIT("https:")))
        return 0;
    edit.page = (struct wb_edit_page){.url = page->url, .status = page->status, .lifetime = page->lifetime, .bytes = page->body_bytes};
    int err = describe(journal, reader, page, wants, &edit.page);
    if (err < 0)
        return err;
    if (known && edit.page.has_content)
        edit.page.outcome = (uint8_t)known;
    err = wb_edit_batch_add(&reader->batch, &edit);
    return err == 0 && reader->batch.records.len > WB_EDIT_BATCH_BYTES ? append_batch(journal, reader) : err;
}

/* ---- threads ---------------------------------------------------------------------------------------- */

static struct reader *borrow_reader(struct wb_import_journal *journal)
{
    pthread_mutex_lock(&journal->mutex);
    struct reader *reader = journal->free_readers;
    WB_CHECK(reader); /* there are as many as threads, and one for the writer's */
    journal->free_readers = reader->next_free;
    pthread_mutex_unlock(&journal->mutex);
    return reader;
}

static void return_reader(struct wb_import_journal *journal, struct reader *reader)
{
    pthread_mutex_lock(&journal->mutex);
    reader->next_free = journal->free_readers;
    journal->free_readers = reader;
    pthread_mutex_unlock(&journal->mutex);
}

static void end_job(struct round *round, int err)
{
    struct wb_import_journal *journal = round->journal;

    pthread_mutex_lock(&journal->mutex);
    if (err < 0 && journal->failed.code == 0)
        wb_error_save(err, &journal->failed);
    WB_CHECK(round->pending > 0);
    if (--round->pending == 0)
        pthread_cond_signal(&journal->done);
    pthread_mutex_unlock(&journal->mutex);
}

static void run_job(void *context)
{
    struct job *job = context;
    struct wb_import_journal *journal = job->round->journal;
    struct reader *reader = borrow_reader(journal);
    struct wb_import_item *item = job->first;
    struct wb_page *pages[JOB_PAGES];
    size_t count = 0;
    int err = 0;

    for (size_t i = 0; i < job->count; i++, item = item->next)
        if (item->kind == WB_IMPORT_PAGE && !item->barred)
            pages[count++] = &item->page;
    wb_page_digest_many(pages, count);
    for (size_t i = 0; err == 0 && i < count; i++)
        err = tell_page(journal, reader, pages[i], WB_WANT_LINKS, 0);
    if (err == 0)
        err = append_batch(journal, reader);
    return_reader(journal, reader);
    end_job(job->round, err);
}

/* How many jobs a list is; with a round, they are put there. */
static size_t cut_into_jobs(struct wb_import_item *list, struct round *round)
{
    struct wb_import_item *first = list;
    size_t jobs = 0, count = 0, bytes = 0;

    for (struct wb_import_item *item = list; item; item = item->next) {
        count++;
        bytes += item->bytes;
        if (count < JOB_PAGES && bytes < JOB_BYTES && item->next)
            continue;
        if (round)
            round->jobs[jobs] = (struct job){round, first, count};
        jobs++;
        first = item->next;
        count = bytes = 0;
    }
    return jobs;
}

int wb_import_journal_begin(struct wb_import_journal *journal, struct wb_import_item *list)
{
    size_t count = cut_into_jobs(list, NULL);
    struct round *round = wb_alloc(sizeof *round + count * sizeof *round->jobs);
    int err = 0;

    if (!round)
        return WB_E_NOMEM;
    *round = (struct round){.journal = journal, .list = list, .pending = count};
    cut_into_jobs(list, round);
    *journal->rounds_tail = round;
    journal->rounds_tail = &round->next;
    for (size_t i = 0; i < count; i++) {
        if (err == 0)
            err = wb_pool_submit(journal->pool, run_job, &round->jobs[i]);
        if (err < 0)
            end_job(round, err);
    }
    return 0; /* what failed is told with the list */
}

int wb_import_journal_take(struct wb_import_journal *journal, bool wait, struct wb_import_item **list_out)
{
    struct round *round = journal->rounds;

    *list_out = NULL;
    if (!round)
        return 0;
    pthread_mutex_lock(&journal->mutex);
    while (round->pending && wait)
        pthread_cond_wait(&journal->done, &journal->mutex);
    bool done = round->pending == 0;
    int err = done && journal->failed.code < 0 ? wb_error_restore(&journal->failed) : 0;
    pthread_mutex_unlock(&journal->mutex);
    if (!done)
        return 0;
    journal->rounds = round->next;
    if (!journal->rounds)
        journal->rounds_tail = &journal->rounds;
    *list_out = round->list;
    wb_free(round);
    return err;
}

bool wb_import_journal_busy(const struct wb_import_journal *journal)
{
    return journal->rounds != NULL;
}

int wb_import_journal_revisit(struct wb_import_journal *journal, const struct wb_page *page, enum wb_edit_outcome outcome)
{
    struct reader *reader = borrow_reader(journal);
    int err = tell_page(journal, reader, page, 0, outcome);

    if (err == 0)
        err = append_batch(journal, reader);
    return_reader(journal, reader);
    return err;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

int wb_import_journal_sync(struct wb_import_journal *journal)
{
    pthread_mutex_lock(&journal->mutex);
    int err = journal->log ? wb_journal_writer_sync(journal->log) : 0;
    pthread_mutex_unlock(&journal->mutex);
    return err;
}

int wb_import_journal_finish(struct wb_import_journal *journal)
{
    WB_CHECK(!journal->rounds);
    return journal->log ? wb_journal_writer_finish(journal->log) : 0;
}

/* One for each thread, and one for the writer's revisits. */
static int make_readers(struct wb_import_journal *journal, unsigned count)
{
    journal->readers = wb_alloc_zero(count, sizeof *journal->readers);
    if (!journal->readers)
        return WB_E_NOMEM;
    for (; journal->reader_count < count; journal->reader_count++) {
        struct reader *reader = &journal->readers[journal->reader_count];
        *reader = (struct reader){.facts = WB_PAGEFACTS_INIT, .base = WB_URL_INIT, .target = WB_URL_INIT};
        int err = wb_pagefacts_init(&reader->facts);
        if (err < 0)
            return err;
        reader->next_free = journal->free_readers;
        journal->free_readers = reader;
    }
    return 0;
}

int wb_import_journal_open(const char *dir, struct wb_slice robots_token, unsigned threads,
                           struct wb_import_journal **journal_out)
{
    struct wb_import_journal *journal = wb_alloc_zero(1, sizeof *journal);

    *journal_out = NULL;
    if (!journal)
        return WB_E_NOMEM;
    if (threads == 0)
        threads = wb_cpu_count();
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    pthread_mutex_init(&journal->mutex, NULL);
    pthread_cond_init(&journal->done, NULL);
    journal->rounds_tail = &journal->rounds;
    journal->dir = wb_strdup(dir);
    journal->robots_token = robots_token;
    int err = journal->dir ? make_readers(journal, threads + 1) : WB_E_NOMEM;
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
    WB_CHECK(!journal->rounds);
    wb_pool_free(journal->pool);
    wb_journal_writer_close(journal->log);
    for (unsigned i = 0; i < journal->reader_count; i++) {
        wb_edit_batch_release(&journal->readers[i].batch);
        wb_pagefacts_release(&journal->readers[i].facts);
        wb_url_release(&journal->readers[i].base);
        wb_url_release(&journal->readers[i].target);
    }
    wb_free(journal->readers);
    wb_free(journal->dir);
    pthread_cond_destroy(&journal->done);
    pthread_mutex_destroy(&journal->mutex);
    wb_free(journal);
}
