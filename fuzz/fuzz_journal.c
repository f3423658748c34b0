/*
 * fuzz_journal.c - arbitrary bytes as the journal, the spool and batches.
 *
 * The first byte says what the rest is:
 *   0 kind and payload of one record, whose head and checksum are corrected
 *   1 the records of a log that has not ended, unchanged        2 the same, each with its checksum corrected
 *   3 the same in a log that has ended                          4 the records of a spool, corrected
 *   5 number, length and zstd frame of a batch                  6 the records of a batch, packed
 * A fuzzer cannot guess checksums and would never reach the code behind them; therefore they
 * are corrected in 0, 2, 3 and 4.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "crawl/spool.h"
#include "journal/edit.h"
#include "journal/edit_batch.h"
#include "journal/journal_file.h"
#include "os/file.h"
#include "os/path.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

enum { LINKS_MAX = 4096, STEPS_MAX = 4096, SPOOL_HEAD_BYTES = 64, SPOOL_RECORD_HEAD_BYTES = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- one record -------------------------------------------------------------------------------- */

struct walked {
    struct wb_pagelink links[LINKS_MAX];
    char *texts[LINKS_MAX]; /* of the URLs */
    size_t count;
    bool whole;
};

static void walk_links(const struct wb_edit *edit, struct walked *walked)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pagelink link;
    size_t at = 0, last = 0;
    int more;

    walked->count = 0;
    while ((more = wb_edit_links_next(edit, &at, &mem, &link)) == 1 && walked->count < LINKS_MAX) {
        WB_CHECK(at > last && at <= edit->packed_links.len && link.url.len <= WB_URL_MAX_BYTES &&
                 link.anchor.len <= 255);
        last = at;
        walked->texts[walked->count] = wb_strndup(link.url.ptr, link.url.len);
        WB_CHECK(walked->texts[walked->count]);
        link.url.ptr = walked->texts[walked->count];
        walked->links[walked->count++] = link;
    }
    WB_CHECK(more >= 0 || more == WB_E_CORRUPT);
    walked->whole = more == 0;
    wb_buf_release(&mem);
}

static void check_same_links(const struct wb_edit *edit, const struct walked *walked)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pagelink link;
    size_t at = 0;

    for (size_t i = 0; i < walked->count; i++) {
        const struct wb_pagelink *expected = &walked->links[i];
        WB_CHECK(wb_edit_links_next(edit, &at, &mem, &link) == 1);
        WB_CHECK(wb_slice_equal(link.url, expected->url) && link.tag == expected->tag &&
                 link.flags == expected->flags && link.modified_ms == expected->modified_ms);
        WB_CHECK(wb_slice_equal(link.anchor, expected->anchor));
    }
    WB_CHECK(wb_edit_links_next(edit, &at, &mem, &link) == 0);
    wb_buf_release(&mem);
}

static void check_same(const struct wb_edit *a, const struct wb_edit *b)
{
    const struct wb_edit_page *p = &a->page, *q = &b->page;

    WB_CHECK(a->kind == b->kind && a->site == b->site && a->time_ms == b->time_ms && a->prev.log == b->prev.log &&
             a->prev.offset == b->prev.offset && a->until_ms == b->until_ms && a->count == b->count &&
             a->depth.links == b->depth.links && a->depth.need == b->depth.need);
    WB_CHECK(a->kind == WB_EDIT_PAGE || a->kind == WB_EDIT_RULES || wb_slice_equal(a->text, b->text));
    if (a->kind == WB_EDIT_RULES)
        WB_CHECK(wb_slice_equal(a->rules.text, b->rules.text) && wb_slice_equal(a->rules.reason, b->rules.reason) &&
                 a->rules.status == b->rules.status && a->rules.expires_ms == b->rules.expires_ms);
    if (a->kind == WB_EDIT_PAGE)
        WB_CHECK(wb_slice_equal(p->url, q->url) && wb_slice_equal(p->type, q->type) &&
                 wb_slice_equal(p->reason, q->reason) && wb_slice_equal(p->etag, q->etag) &&
                 wb_slice_equal(p->modified, q->modified) && wb_slice_equal(p->location, q->location) &&
                 p->outcome == q->outcome && p->status == q->status && p->depth.links == q->depth.links &&
                 p->depth.need == q->depth.need && p->hops == q->hops &&
                 p->lifetime == q->lifetime && p->took_ms == q->took_ms && p->bytes == q->bytes &&
                 p->has_content == q->has_content && memcmp(p->md5, q->md5, sizeof p->md5) == 0 &&
                 p->simhash == q->simhash && p->title_hash == q->title_hash);
}

/* A record that can be read can be written, and then reads as the same record. */
static void try_edit(const struct wb_edit *edit)
{
    static struct walked walked;
    struct wb_buf record = WB_BUF_INIT;
    struct wb_edit copy = *edit, again;

    walk_links(edit, &walked);
    copy.links = copy.page.links = walked.links;
    copy.link_count = copy.page.link_count = walked.count;
    if (walked.whole) {
        WB_CHECK(wb_edit_encode(&copy, 1, &record) == 0);
        WB_CHECK(wb_edit_is_intact(wb_buf_slice(&record), 1));
        WB_CHECK(wb_edit_decode(wb_buf_slice(&record), &again) == 0);
        check_same(edit, &again);
        if (edit->kind != WB_EDIT_RULES)
            check_same_links(&again, &walked);
    }
    for (size_t i = 0; i < walked.count; i++)
        wb_free(walked.texts[i]);
    wb_buf_release(&record);
}

static void try_record(const char *bytes, size_t size)
{
    struct wb_buf record = WB_BUF_INIT;
    struct wb_edit edit;
    char head[WB_EDIT_HEAD_BYTES] = {0};

    if (size < 1)
        return;
    wb_put32(head, (uint32_t)(sizeof head + size - 1));
    head[8] = bytes[0];
    WB_CHECK(wb_buf_append(&record, head, sizeof head) == 0 && wb_buf_append(&record, bytes + 1, size - 1) == 0);
    /* A copy of the exact size, so that a sanitizer notices a read past its end. */
    char *exact = malloc(record.len);
    WB_CHECK(exact);
    memcpy(exact, record.ptr, record.len);
    if (wb_edit_decode(wb_slice(exact, record.len), &edit) == 0)
        try_edit(&edit);
    free(exact);
    wb_buf_release(&record);
}

/* ---- a temporary folder --------------------------------------------------------------------------- */

static char dir[256]; /* in TMPDIR, which should be in memory: recovery calls fsync */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_dir(void)
{
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_dir(void)
{
    static bool made;
    char path[sizeof dir + 16];
    const char *folder = getenv("TMPDIR");

    if (made)
        return;
    made = true;
    snprintf(dir, sizeof dir, "%s/webbase-fuzz-XXXXXX", folder ? folder : "/tmp");
    WB_CHECK(mkdtemp(dir));
    atexit(remove_dir);
    snprintf(path, sizeof path, "%s/" WB_JOURNAL_DIR, dir);
    WB_CHECK(wb_path_mkdirs(path) == 0);
    snprintf(path, sizeof path, "%s/spool", dir);
    WB_CHECK(wb_path_mkdirs(path) == 0);
}

/* ---- a log ----------------------------------------------------------------------------------------- */

static void mend_records(char *bytes, size_t size, uint64_t writer)
{
    for (size_t at = 0; size - at >= WB_EDIT_HEAD_BYTES;) {
        size_t length = wb_edit_length(bytes + at);
        if (length == 0 || length > size - at)
            return;
        wb_put32(bytes + at + 4,
                 wb_hash32(bytes + at + 8, length - 8) ^ wb_edit_salt(writer, WB_JOURNAL_FILE_HEAD_BYTES + at));
        at += length;
    }
}

static int take_orphan(void *context, const struct wb_edit *last, struct wb_edit_place place)
{
    size_t *sites = context;

    WB_CHECK(place.log == 1 && place.offset >= WB_JOURNAL_FILE_HEAD_BYTES);
    try_edit(last);
    ++*sites;
    return 0;
}

static void ignore_found(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    (void)context;
    (void)problem;
    WB_CHECK(file && message && offset < UINT32_MAX);
}

static size_t read_log(void)
{
    struct wb_edit_place at = WB_EDIT_NOWHERE, last = at, *chain;
    struct wb_journal_reader *reader;
    struct wb_edit edit;
    size_t records = 0, steps = 0, count;
    int more;

    WB_CHECK(wb_journal_reader_open(dir, &reader) == 0);
    while ((more = wb_journal_reader_next(reader, &at, &edit)) != 0 && ++steps < STEPS_MAX) {
        WB_CHECK(more == 1 || more == WB_E_CORRUPT);
        WB_CHECK(at.log > last.log || at.offset > last.offset); /* the walk must always move forward */
        last = at;
        if (more == 1) {
            records++;
            try_edit(&edit);
            int err = wb_journal_reader_chain(reader, at, records % 2, &chain, &count);
            WB_CHECK(err == WB_E_CORRUPT || err == WB_E_NOTFOUND || (err == 0 && count > 0 && count <= steps));
            wb_free(chain);
            WB_CHECK(wb_journal_reader_get(reader, at, &edit) == 0);
        }
    }
    wb_journal_reader_close(reader);
    return records;
}

static void try_log(char *bytes, size_t size, bool mend, bool ended)
{
    struct wb_journal_file file;
    char journal[sizeof dir + 16], path[sizeof dir + 32];
    uint64_t counted;
    size_t sites = 0;

    make_dir();
    snprintf(journal, sizeof journal, "%s/" WB_JOURNAL_DIR, dir);
    snprintf(path, sizeof path, "%s/00000001.wbe", journal);
    WB_CHECK(wb_path_unlink(path) == 0);
    WB_CHECK(wb_journal_file_create(journal, 0x0123456789abcdef, 0, &file) == 0);
    if (mend)
        mend_records(bytes, size, file.writer);
    WB_CHECK(wb_file_write_at(&file.file, WB_JOURNAL_FILE_HEAD_BYTES, bytes, size) == 0);
    if (ended)
        WB_CHECK(wb_journal_file_finish(&file, WB_JOURNAL_FILE_HEAD_BYTES + size) == 0);
    wb_journal_file_close(&file);
    size_t records = read_log();
    WB_CHECK(wb_journal_verify(dir, ignore_found, NULL, &counted) == 0);
    WB_CHECK(counted == records || records >= STEPS_MAX - 1);
    WB_CHECK(wb_journal_recover(dir, take_orphan, &sites) == 0);
    WB_CHECK(sites <= counted && (!ended || sites == 0));
    /* A recovered log has ended, and its records are the same. */
    WB_CHECK(wb_journal_recover(dir, take_orphan, &sites) == 0 && sites <= counted);
    WB_CHECK(read_log() == records);
}

/* ---- a spool ---------------------------------------------------------------------------------------- */

static int take_item(void *context, const struct wb_spool_item *item)
{
    size_t *pages = context;

    WB_CHECK(item->owner[0] && item->end == (!item->page && item->line.len == 0));
    if (item->page) {
        WB_CHECK(item->page->body.len == item->page->body_bytes);
        ++*pages;
    }
    return 0;
}

static void try_spool(char *bytes, size_t size)
{
    char path[sizeof dir + 16], head[SPOOL_HEAD_BYTES] = {0};
    struct wb_file file;
    uint64_t round = 6, told;
    size_t pages = 0;

    make_dir();
    for (size_t at = 0; size - at >= SPOOL_RECORD_HEAD_BYTES;) {
        char *record = bytes + at, *rest = record + SPOOL_RECORD_HEAD_BYTES;
        uint64_t left = size - at - SPOOL_RECORD_HEAD_BYTES, length = wb_get64(record + 8);
        uint64_t line = wb_get64(record + 16) % 256; /* otherwise most inputs would have no line that fits */
        if (length > left || line > left - length)
            break;
        wb_put64(record + 16, line);
        wb_put64(record, round);
        wb_put64(record + 24, wb_hash64(record, 24) ^ wb_hash64(rest, (size_t)(length + line)));
        at += SPOOL_RECORD_HEAD_BYTES + (size_t)(length + line);
    }
    memcpy(head, "WBSP", 4);
    head[4] = 1;
    wb_put64(head + 8, wb_hash64(head, 8));
    wb_put64(head + 16, round);
    wb_put64(head + 24, wb_hash64(head + 16, 8));
    snprintf(path, sizeof path, "%s/spool/fuzz", dir);
    WB_CHECK(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE, &file) == 0);
    WB_CHECK(wb_file_write_at(&file, 0, head, sizeof head) == 0 &&
             wb_file_write_at(&file, sizeof head, bytes, size) == 0);
    wb_file_close(&file);
    int err = wb_spool_recover(dir, take_item, &pages, &told);
    WB_CHECK(err == 0 ? told == pages : err == WB_E_NEWER); /* a page record of another format */
    WB_CHECK((wb_path_kind(path) == WB_PATH_NONE) == (err == 0));
    WB_CHECK(err == 0 || wb_path_unlink(path) == 0);
}

/* ---- batches ------------------------------------------------------------------------------------- */

static void try_batch(const char *bytes, size_t len, bool pack)
{
    struct wb_edit_batch_reader unpacked = {.at = 0};
    struct wb_edit edit, batch = {.kind = WB_EDIT_BATCH};
    struct wb_buf packed = WB_BUF_INIT;
    unsigned given = 0;

    if (len < 4)
        return;
    batch.count = (uint8_t)bytes[0];
    batch.until_ms = pack ? (int64_t)len - 4 : wb_get16(bytes + 2);
    batch.text = wb_slice(bytes + 4, len - 4);
    if (pack) {
        size_t bound = ZSTD_compressBound(len - 4);
        WB_CHECK(wb_buf_reserve(&packed, bound) == 0);
        packed.len = ZSTD_compress(packed.ptr, bound, bytes + 4, len - 4, 1);
        WB_CHECK(!ZSTD_isError(packed.len));
        batch.text = wb_buf_slice(&packed);
    }
    int got = wb_edit_batch_reader_start(&batch, &unpacked);
    WB_CHECK(got == 0 || got == WB_E_CORRUPT);
    while ((got = wb_edit_batch_reader_next(&unpacked, &edit)) == 1)
        WB_CHECK(++given <= batch.count && edit.kind != WB_EDIT_BATCH && edit.prev.log == 0);
    WB_CHECK(got == 0 || got == WB_E_CORRUPT);
    wb_edit_batch_reader_release(&unpacked);
    wb_buf_release(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    size_t len = size - 1;
    char *bytes = wb_alloc(len ? len : 1);
    WB_CHECK(bytes);
    memcpy(bytes, data + 1, len);
    switch (data[0] % 7) {
    case 0:
        try_record(bytes, len);
        break;
    case 4:
        try_spool(bytes, len);
        break;
    case 5:
    case 6:
        try_batch(bytes, len, data[0] % 7 == 6);
        break;
    default:
        try_log(bytes, len, data[0] % 7 >= 2, data[0] % 7 == 3);
    }
    wb_free(bytes);
    return 0;
}
