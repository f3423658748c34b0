/*
 * import_archive.c - the source that reads web archives: WARC and ARC files, and those inside WACZ files.
 *
 * Response, resource and ARC records become pages, and revisit records become revisits; records of other types are only
 * counted. It never resolves a revisit: that takes the repository, which belongs to the other thread.
 */
#include "base/error.h"
#include "base/mem.h"
#include "ingest/import_time.h"
#include "os/file.h"
#include "os/path.h"
#include "warc/warc.h"

#include <stdio.h>

/* A record's block may be this much longer than the body: headers, and the overhead of codings. */
#define BLOCK_EXTRA ((size_t)1 << 20)

struct archive {
    const char *path;      /* for messages: the file, or the file and the entry in it */
    size_t body_max;
    struct wb_import_queue *queue;
    struct wb_warc_reader *reader;
    struct wb_warc_mem mem;
    struct wb_import_time time; /* for records without a date */
    uint64_t records;      /* read since the last item that was pushed */
    uint64_t records_file; /* read from this file */
    bool reported;         /* the current record could not become a page, and that was reported */
    uint64_t bytes_before; /* how many bytes of all files come before those of the reader... */
    uint64_t bytes_here;   /* ...and how many the archive has; 0: as many as the reader says */
    uint64_t failures;     /* entries of a WACZ that could not be read to their end */
};

/* How many records the next item accounts for. */
static uint64_t take_records(struct archive *a)
{
    uint64_t n = a->records;

    a->records = 0;
    return n;
}

static int push_error(struct archive *a, uint64_t offset, const char *message, bool fatal)
{
    return wb_import_source_push_error(a->queue, a->path, offset, message, fatal, take_records(a));
}

/* Pushes the page of a record, and reports what had to be corrected in it. */
static int take_page(struct archive *a, const struct wb_warc_record *record)
{
    struct wb_page page;
    const char *problem = "";
    char guess[WB_IMPORT_SOURCE_MESSAGE_MAX];

    int err = wb_warc_page(record, a->body_max, &a->mem, &page, &problem);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0) {
        a->reported = true;
        return push_error(a, record->offset, wb_error_message(), false);
    }
    bool guessed = wb_import_time_set(&a->time, record, &page, guess);
    err = wb_import_source_push_page(a->queue, &page, &a->mem.body, take_records(a));
    if (err == 0 && guessed)
        err = push_error(a, record->offset, guess, false);
    if (err == 0 && *problem && !*record->problem)
        err = push_error(a, record->offset, problem, false);
    return err;
}

/* Which page a revisit refers to. If it names no URL, or an invalid one, elsewhere is false. */
static int read_original(struct archive *a, const struct wb_warc_revisit *revisit,
                         struct wb_import_original *original_out)
{
    struct wb_warc_mem *mem = &a->mem;

    *original_out = (struct wb_import_original){
        .known_profile = revisit->known_profile,
        .not_modified = revisit->not_modified,
        .has_sha1 = revisit->has_sha1,
        .time_ms = revisit->refers_time_ms,
    };
    memcpy(original_out->sha1, revisit->sha1, sizeof original_out->sha1);
    if (revisit->refers_uri.len == 0)
        return 0;
    int err = wb_url_parse(revisit->refers_uri, NULL, &mem->url);
    if (err == 0)
        err = wb_url_key(&mem->url, &mem->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    original_out->id = wb_pageid_of_key(wb_buf_slice(&mem->key));
    original_out->elsewhere = true;
    return 0;
}

/* The names of the page that was revisited. */
static int read_names(struct archive *a, const struct wb_warc_record *record, struct wb_page *page)
{
    if (record->uri.len == 0)
        return wb_fail(WB_E_PROTO, "a revisit record without a target URI");
    int err = wb_url_parse(record->uri, NULL, &a->mem.url);
    if (err == 0)
        err = wb_url_key(&a->mem.url, &a->mem.key);
    if (err < 0)
        return err;
    page->url = wb_url_href(&a->mem.url);
    page->key = wb_buf_slice(&a->mem.key);
    page->id = wb_pageid_of_key(page->key);
    return 0;
}

/* A revisit may have its own HTTP head, which names the media type. */
static int read_head(struct archive *a, const struct wb_warc_record *record, struct wb_page *page)
{
    struct wb_http_head head;
    struct wb_slice type;

    if (record->block.len == 0 || wb_http_split(record->block, &head) < 0)
        return 0;
    page->head = head.raw;
    page->status = head.status;
    wb_buf_clear(&a->mem.text);
    if (!wb_http_header(head.raw, "Content-Type", &type))
        return 0;
    return wb_media_type_parse(type, &a->mem.text, &page->type, &page->charset);
}

static int take_revisit(struct archive *a, const struct wb_warc_record *record)
{
    struct wb_warc_revisit revisit;
    struct wb_import_original original;
    char guess[WB_IMPORT_SOURCE_MESSAGE_MAX];
    struct wb_page page = {.url = WB_SLICE_EMPTY, .head = WB_SLICE_EMPTY, .type = WB_SLICE_EMPTY,
                           .charset = WB_SLICE_EMPTY,
                           .body = WB_SLICE_EMPTY, .kind = WB_PAGE_RESPONSE};

    wb_warc_revisit(record, &revisit);
    int err = read_original(a, &revisit, &original);
    if (err == 0)
        err = read_names(a, record, &page);
    if (err == 0)
        err = read_head(a, record, &page);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        return push_error(a, record->offset, wb_error_message(), false);
    if (!original.elsewhere || wb_pageid_equal(original.id, page.id)) {
        original.id = page.id;
        original.elsewhere = false;
    }
    bool guessed = wb_import_time_set(&a->time, record, &page, guess);
    err = wb_import_source_push_revisit(a->queue, &page, &original, take_records(a));
    return err == 0 && guessed ? push_error(a, record->offset, guess, false) : err;
}

/* Takes a record by its type. Those that are only counted are a good moment to look whether to stop. */
static int take_by_type(struct archive *a, const struct wb_warc_record *record)
{
    switch (record->type) {
    case WB_WARC_RESPONSE:
    case WB_WARC_RESOURCE:
    case WB_WARC_ARC:
        return take_page(a, record);
    case WB_WARC_REVISIT:
        return take_revisit(a, record);
    default:
        return atomic_load(&a->queue->stopped) ? WB_E_STOPPED : 0;
    }
}

static int take_record(struct archive *a, const struct wb_warc_record *record)
{
    a->records++;
    a->records_file++;
    a->reported = false;
    wb_import_time_note(&a->time, record);
    int err = take_by_type(a, record);
    if (err == 0 && *record->problem && !a->reported)
        err = push_error(a, record->offset, record->problem, false);
    return err;
}

static void show_progress(struct archive *a)
{
    uint64_t done, size;

    wb_warc_progress(a->reader, &done, &size);
    /* The reader counts the bytes of a deflated entry as they are when inflated. */
    if (a->bytes_here && size)
        done = (uint64_t)((double)done / (double)size * (double)a->bytes_here);
    atomic_store_explicit(&a->queue->bytes_done, a->bytes_before + done, memory_order_relaxed);
}

static int push_failure(struct archive *a, uint64_t offset, const char *message)
{
    a->failures++;
    return push_error(a, offset, message, true);
}

/* Reads records until the end of the archive. Damaged ones are reported and skipped. */
static int read_records(struct archive *a)
{
    struct wb_warc_record record;
    uint64_t damaged = 0;

    for (;;) {
        int got = wb_warc_next(a->reader, &record), err = 0;
        show_progress(a);
        if (got == 0)
            break;
        if (got > 0)
            err = take_record(a, &record);
        else if (got == WB_E_NOMEM)
            err = got;
        else if (got == WB_E_CORRUPT)
            err = push_error(a, wb_warc_error_offset(a->reader), wb_error_message(), false);
        else
            return push_failure(a, wb_warc_error_offset(a->reader), wb_error_message());
        if (err < 0)
            return err;
        damaged += got < 0;
    }
    if (damaged && a->records_file == 0)
        return push_failure(a, 0, "not an archive: there is no record in it");
    return 0;
}

/* ---- WACZ ---------------------------------------------------------------------------------- */

/* Reads an entry, if it is an archive, and compares it with its checksums, if it has some. */
static int read_entry(struct archive *a, struct wb_wacz *wacz, size_t i, const struct wb_wacz_entry *entry)
{
    int err = 0;

    a->records_file = 0;
    a->time = (struct wb_import_time){0};
    if (entry->archive)
        err = wb_wacz_open_archive(wacz, i, a->body_max + BLOCK_EXTRA, &a->reader);
    if (err < 0)
        return err == WB_E_NOMEM ? err : push_failure(a, 0, wb_error_message());
    if (entry->archive)
        err = read_records(a);
    wb_warc_close(a->reader);
    a->reader = NULL;
    if (err < 0)
        return err;
    err = wb_wacz_check(wacz, i);
    return err < 0 && err != WB_E_NOMEM ? push_failure(a, 0, wb_error_message()) : err;
}

/* A WACZ without datapackage.json is incomplete, but its archives are whole. */
static int read_package(struct archive *a, struct wb_wacz *wacz)
{
    int err = wb_wacz_read_package(wacz);

    if (err == 0 || err == WB_E_NOMEM)
        return err;
    return err == WB_E_NOTFOUND ? push_error(a, 0, wb_error_message(), false) : push_failure(a, 0, wb_error_message());
}

static int read_entries(struct archive *a, struct wb_wacz *wacz)
{
    uint64_t before = a->bytes_before;
    struct wb_wacz_entry entry;

    int err = read_package(a, wacz);
    for (size_t i = 0; err == 0 && wb_wacz_entry(wacz, i, &entry); i++) {
        a->path = entry.name;
        a->bytes_before = before + entry.offset;
        a->bytes_here = entry.bytes;
        err = atomic_load(&a->queue->stopped) ? WB_E_STOPPED : read_entry(a, wacz, i, &entry);
    }
    a->bytes_before = before;
    a->bytes_here = 0;
    return err;
}

static int read_wacz(struct archive *a)
{
    struct wb_wacz *wacz = NULL;
    const char *path = a->path;

    int err = wb_wacz_open(path, &wacz);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        return push_failure(a, 0, wb_error_message());
    err = read_entries(a, wacz);
    a->path = path;
    wb_wacz_close(wacz);
    return err;
}

/* ---- files --------------------------------------------------------------------------------- */

static int read_warc(struct archive *a)
{
    a->records_file = 0;
    a->time = (struct wb_import_time){0};
    int err = wb_warc_open(a->path, a->body_max + BLOCK_EXTRA, &a->reader);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        return push_failure(a, 0, wb_error_message());
    err = read_records(a);
    wb_warc_close(a->reader);
    a->reader = NULL;
    return err;
}

static uint64_t file_bytes(const char *path)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t size = 0;

    if (wb_path_kind(path) != WB_PATH_FILE || wb_file_open(path, WB_FILE_READ, &file) < 0)
        return 0;
    if (wb_file_size(&file, &size) < 0)
        size = 0;
    wb_file_close(&file);
    return size;
}

/* Damage is looked at more than once, and after a node was lost everything is read again: no pipe allows that. */
static int refuse_pipe(struct archive *a)
{
    char message[WB_ERROR_MESSAGE_MAX];

    snprintf(message, sizeof message, "%s is a pipe or a device: save it as a file, and import that", a->path);
    return push_failure(a, 0, message);
}

static int read_file(struct archive *a)
{
    a->failures = 0;
    if (wb_path_kind(a->path) == WB_PATH_OTHER)
        return refuse_pipe(a);
    int err = wb_wacz_is(a->path) ? read_wacz(a) : read_warc(a);
    a->bytes_before += file_bytes(a->path);
    return err == 0 && a->failures == 0 ? wb_import_source_push_file(a->queue, take_records(a)) : err;
}

int wb_import_archive_read(const struct wb_import_source *source, struct wb_import_queue *queue)
{
    struct archive a = {.body_max = source->body_max, .queue = queue, .mem = WB_WARC_MEM_INIT};
    uint64_t total = 0;
    int err = 0;

    for (size_t i = 0; i < source->file_count; i++)
        total += file_bytes(source->files[i]);
    atomic_store(&queue->bytes_total, total);
    for (size_t i = 0; err == 0 && i < source->file_count; i++) {
        a.path = source->files[i];
        err = read_file(&a);
    }
    wb_warc_mem_release(&a.mem);
    return err;
}
