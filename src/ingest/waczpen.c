/*
 * waczpen.c - writes WACZ 1.1.1 files in one pass.
 *
 *   record -> archive/data.warc.gz, data-2.warc.gz, ...
 *          -> "c" line of the index ---> sorter -> indexes/index.cdx.gz, index.idx
 *          -> "p" line of a page ------>        -> pages/pages.jsonl
 *   hashes of all of these -> datapackage.json -> datapackage-digest.json
 *
 * The index is compressed in blocks (ZipNum), each a gzip member of LINES_PER_BLOCK lines or a few more. index.idx has
 * one line for each block, so that a reader that has only a slow connection fetches two small pieces to find a capture.
 */
#include "ingest/waczpen.h"

#include "base/check.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "extract/extract.h"
#include "table/table.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <openssl/evp.h>
#include <stdio.h>

#define WACZPEN_MAGIC 0x5742575au
#define WACZ_VERSION "1.1.1"
#define LINES_PER_BLOCK 1024 /* as py-wacz */
#define LINES_PER_BLOCK_MAX 8192
#define GZIP_LEVEL 6
#define GZIP_EXTRA 64 /* what a member adds to its lines, if they cannot be compressed at all */
#define NAME_BYTES 40
#define HASH_TEXT_MAX (8 + 2 * WB_SHA256_BYTES)
#define TEXT_MAX ((size_t)16 << 10) /* of a page in the list: readers keep the whole list in memory */

/* How much of a list that has texts ReplayWeb.page reads for its search (see write_pages()). */
#define SEARCHED_BYTES (UINT64_C(1) << 20)

/* The first byte of a key in the sorter: all lines of the index come before those of the pages. */
#define INDEX_LINE 'c'
#define PAGE_LINE 'p'

struct wb_waczpen {
    uint32_t magic; /* WACZPEN_MAGIC from open to close */
    struct wb_waczpen_options options;
    struct wb_zipwriter *zip;
    struct wb_warc_writer *writer;
    struct wb_sorter *sorter;
    struct wb_extractor *extractor;
    struct libdeflate_compressor *gzip;
    unsigned archives;                /* begun so far */
    char archive[NAME_BYTES];         /* the name of the current one in the index */
    uint64_t record_at;               /* where the next record of it begins */
    uint64_t index_bytes, page_bytes; /* in the sorter */
    struct wb_buf urlkey, key, line, packed, summary;
    struct wb_buf bound;         /* no block of the index begins up to here */
    struct wb_table_record next; /* the line that the sorter returned last; key.ptr is NULL at the end */
};

/* ---- archives ------------------------------------------------------------------------------ */

static int write_archive(void *context, const void *bytes, size_t len)
{
    struct wb_waczpen *pen = context;

    return wb_zipwriter_write(pen->zip, bytes, len);
}

static int begin_archive(struct wb_waczpen *pen)
{
    char path[sizeof "archive/" + NAME_BYTES];

    if (++pen->archives == 1)
        snprintf(pen->archive, sizeof pen->archive, "data.warc.gz");
    else
        snprintf(pen->archive, sizeof pen->archive, "data-%u.warc.gz", pen->archives);
    snprintf(path, sizeof path, "archive/%s", pen->archive);
    /* The last record may exceed the limit, by less than 2 GiB. */
    int err = wb_zipwriter_begin(pen->zip, path, pen->options.archive_bytes + (UINT64_C(2) << 30));
    if (err == 0)
        err = wb_warc_write_info(pen->writer, pen->archive, pen->options.now_ms);
    if (err == 0)
        pen->record_at = wb_zipwriter_bytes(pen->zip);
    return err;
}

/*
 * Adds a line to the sorter, whose key is what the line is sorted by: a line of the index as a whole, because readers
 * search the bytes; a line of a page by its key and time.
 */
static int add_line(struct wb_waczpen *pen, char kind, int64_t time_ms)
{
    char time[WB_CDX_TIME_MAX];

    wb_cdx_time(time_ms, time);
    wb_buf_clear(&pen->key);
    int err = wb_buf_append_char(&pen->key, kind);
    if (err == 0)
        err = wb_buf_append_slice(&pen->key, wb_buf_slice(kind == INDEX_LINE ? &pen->line : &pen->urlkey));
    if (err == 0 && kind == PAGE_LINE)
        err = wb_buf_printf(&pen->key, " %s", time);
    if (pen->key.len > WB_TABLE_KEY_MAX)
        pen->key.len = WB_TABLE_KEY_MAX;
    if (err == 0)
        err = wb_sorter_add(pen->sorter, wb_buf_slice(&pen->key), wb_buf_slice(&pen->line));
    *(kind == INDEX_LINE ? &pen->index_bytes : &pen->page_bytes) += pen->line.len;
    return err;
}

static int add_index_line(struct wb_waczpen *pen, const struct wb_page *page, bool revisit, const char *digest)
{
    struct wb_cdx cdx = {
        .urlkey = wb_buf_slice(&pen->urlkey),
        .time_ms = page->time_ms,
        .url = page->url,
        .mime = revisit              ? WB_SLICE_LIT("warc/revisit")
                : page->type.len > 0 ? page->type
                                     : WB_SLICE_LIT("unk"), /* pywb's word for a type that is unknown */
        .status = revisit ? 0 : page->status,
        .digest = wb_slice_str(digest),
        .redirect = WB_SLICE_EMPTY,
        .filename = wb_slice_str(pen->archive),
        .length = wb_zipwriter_bytes(pen->zip) - pen->record_at,
        .offset = pen->record_at,
    };

    wb_buf_clear(&pen->line);
    int err = wb_cdx_append_json(&cdx, &pen->line);
    return err < 0 ? err : add_line(pen, INDEX_LINE, page->time_ms);
}

/* ---- pages --------------------------------------------------------------------------------- */

/* Whether somebody who browses the archive would start from this record. */
static bool is_listed(const struct wb_page *page)
{
    return page->status >= 200 && page->status < 300 &&
           (wb_slice_equal(page->type, WB_SLICE_LIT("text/html")) ||
            wb_slice_equal(page->type, WB_SLICE_LIT("application/xhtml+xml")));
}

/* What readers search: the main text, or all text of a page that has none. A long one is cut, between two words. */
static struct wb_slice searched_text(const struct wb_extract *extract)
{
    struct wb_slice text = extract->main_text.len > 0 ? extract->main_text : extract->text;

    if (text.len <= TEXT_MAX)
        return text;
    size_t len = TEXT_MAX;
    while (len > 0 && text.ptr[len] != ' ' && text.ptr[len] != '\n')
        len--;
    if (len < TEXT_MAX / 2) /* some languages have no blanks */
        len = TEXT_MAX;
    while (((uint8_t)text.ptr[len] & 0xc0) == 0x80)
        len--;
    return wb_slice(text.ptr, len);
}

static int add_page_line(struct wb_waczpen *pen, const struct wb_page *page)
{
    struct wb_extract_input input = {.url = page->url, .type = page->type, .charset = page->charset,
                                     .body = page->body, .wants = WB_EXTRACT_TEXT};
    char id[WB_PAGEID_HEX + 32], time[WB_DATE_TEXT_MAX];
    struct wb_extract extract;
    struct wb_json j;

    int err = wb_extract(pen->extractor, &input, &extract);
    if (err < 0)
        return err;
    wb_pageid_hex(page->id, id);
    snprintf(id + WB_PAGEID_HEX, sizeof id - WB_PAGEID_HEX, "-%" PRId64, page->time_ms); /* versions share it */
    wb_date_format(page->time_ms, time);
    wb_buf_clear(&pen->line);
    wb_json_init(&j, &pen->line);
    wb_json_object(&j);
    wb_json_field_str(&j, "id", id);
    wb_json_field_slice(&j, "url", page->url);
    wb_json_field_str(&j, "ts", time);
    if (extract.title.len)
        wb_json_field_slice(&j, "title", extract.title);
    struct wb_slice text = searched_text(&extract);
    if (text.len)
        wb_json_field_slice(&j, "text", text);
    wb_json_object_end(&j);
    err = wb_json_line(&j);
    return err < 0 ? err : add_line(pen, PAGE_LINE, page->time_ms);
}

/* Called by the WARC writer after each record. */
static int take_record(void *context, const struct wb_page *page, bool revisit, const char *digest)
{
    struct wb_waczpen *pen = context;

    WB_CHECK(pen->magic == WACZPEN_MAGIC);
    int err = wb_urlkey_of_url(page->url, &pen->urlkey);
    if (err == 0)
        err = add_index_line(pen, page, revisit, digest);
    if (err == 0 && !revisit && is_listed(page))
        err = add_page_line(pen, page);
    pen->record_at = wb_zipwriter_bytes(pen->zip);
    if (err < 0 || pen->record_at < pen->options.archive_bytes)
        return err;
    err = wb_zipwriter_end(pen->zip);
    return err < 0 ? err : begin_archive(pen);
}

/* ---- life ---------------------------------------------------------------------------------- */

int wb_waczpen_open(const struct wb_waczpen_options *options, struct wb_waczpen **pen_out)
{
    struct wb_sorter_options sorting = {.dir = options->temporary_dir, .memory_bytes = options->memory_bytes};

    *pen_out = NULL;
    struct wb_waczpen *pen = wb_alloc_zero(1, sizeof *pen);
    if (!pen)
        return WB_E_NOMEM;
    pen->magic = WACZPEN_MAGIC;
    pen->options = *options;
    pen->gzip = libdeflate_alloc_compressor(GZIP_LEVEL);
    int err = pen->gzip ? wb_sorter_open(&sorting, &pen->sorter) : wb_fail_nomem();
    if (err == 0)
        err = wb_extractor_new(&pen->extractor);
    if (err == 0)
        err = wb_zipwriter_new(options->sink, options->context, options->now_ms, &pen->zip);
    if (err == 0)
        err = wb_warc_writer_new(WB_WARC_GZIP, write_archive, pen, &pen->writer);
    if (err == 0)
        err = begin_archive(pen);
    if (err < 0) {
        wb_waczpen_close(pen);
        return err;
    }
    wb_warc_writer_listen(pen->writer, take_record, pen);
    *pen_out = pen;
    return 0;
}

struct wb_warc_writer *wb_waczpen_writer(struct wb_waczpen *pen)
{
    WB_CHECK(pen->magic == WACZPEN_MAGIC);
    return pen->writer;
}

unsigned wb_waczpen_archives(const struct wb_waczpen *pen)
{
    WB_CHECK(pen->magic == WACZPEN_MAGIC);
    return pen->archives;
}

void wb_waczpen_close(struct wb_waczpen *pen)
{
    if (!pen)
        return;
    WB_CHECK(pen->magic == WACZPEN_MAGIC);
    pen->magic = 0;
    wb_warc_writer_free(pen->writer);
    wb_zipwriter_free(pen->zip);
    wb_sorter_close(pen->sorter);
    wb_extractor_free(pen->extractor);
    if (pen->gzip)
        libdeflate_free_compressor(pen->gzip);
    wb_buf_release(&pen->urlkey);
    wb_buf_release(&pen->key);
    wb_buf_release(&pen->line);
    wb_buf_release(&pen->packed);
    wb_buf_release(&pen->summary);
    wb_buf_release(&pen->bound);
    wb_free(pen);
}

/* ---- what follows the archives ------------------------------------------------------------- */

/* Moves to the next line of the sorter. */
static int advance(struct wb_waczpen *pen)
{
    int got = wb_sorter_next(pen->sorter, &pen->next);

    if (got == 0)
        pen->next.key = wb_slice(NULL, 0);
    return got < 0 ? got : 0;
}

static bool next_is(const struct wb_waczpen *pen, char kind)
{
    return pen->next.key.ptr && pen->next.key.ptr[0] == kind;
}

static void hash_text(const uint8_t sha256[WB_SHA256_BYTES], char text_out[HASH_TEXT_MAX])
{
    memcpy(text_out, "sha256:", 7);
    wb_hex_encode(sha256, WB_SHA256_BYTES, text_out + 7);
}

/* Writes the lines in pen->line as one gzip member, and a line about it to the summary. */
static int end_block(struct wb_waczpen *pen)
{
    uint8_t sha256[WB_SHA256_BYTES];
    char hash[HASH_TEXT_MAX];
    struct wb_json j;
    uint64_t offset = wb_zipwriter_bytes(pen->zip);

    wb_buf_clear(&pen->packed);
    int err = wb_buf_reserve(&pen->packed, libdeflate_gzip_compress_bound(pen->gzip, pen->line.len));
    if (err < 0)
        return err;
    pen->packed.len =
        libdeflate_gzip_compress(pen->gzip, pen->line.ptr, pen->line.len, pen->packed.ptr, pen->packed.cap);
    WB_CHECK(pen->packed.len > 0);
    if (!EVP_Digest(pen->packed.ptr, pen->packed.len, sha256, NULL, EVP_sha256(), NULL))
        return wb_fail_nomem();
    hash_text(sha256, hash);
    err = wb_buf_printf(&pen->summary, "%.*s ", WB_SLICE_ARG(wb_buf_slice(&pen->key)));
    if (err < 0)
        return err;
    wb_json_init(&j, &pen->summary);
    wb_json_object(&j);
    wb_json_field_u64(&j, "offset", offset);
    wb_json_field_u64(&j, "length", pen->packed.len);
    wb_json_field_str(&j, "digest", hash);
    wb_json_object_end(&j);
    err = wb_json_line(&j);
    return err < 0 ? err : wb_zipwriter_write(pen->zip, pen->packed.ptr, pen->packed.len);
}

/*
 * wabac.js looks for a URL that ends in a slash under a key with that slash, which ours (pywb's) do not have, and reads
 * the last block that does not begin behind it. So no block begins between the two keys: this raises pen->bound to the
 * second one if a line is about such a URL.
 */
static int raise_bound(struct wb_waczpen *pen, struct wb_slice line)
{
    const char *blank = memchr(line.ptr, ' ', line.len), *url = memmem(line.ptr, line.len, "{\"url\":\"", 8);
    const char *end = url ? memchr(url + 8, '"', (size_t)(line.ptr + line.len - url) - 8) : NULL;
    struct wb_slice key = wb_slice(line.ptr, (size_t)(blank - line.ptr));

    if (!end || end[-1] != '/' || key.ptr[key.len - 1] == '/' || memchr(url, '?', (size_t)(end - url)))
        return 0;
    wb_buf_clear(&pen->key);
    int err = wb_buf_append_slice(&pen->key, key);
    if (err == 0)
        err = wb_buf_append_str(&pen->key, "/ 9999");
    if (err < 0 || wb_slice_compare(wb_buf_slice(&pen->key), wb_buf_slice(&pen->bound)) <= 0)
        return err;
    wb_buf_clear(&pen->bound);
    return wb_buf_append_slice(&pen->bound, wb_buf_slice(&pen->key));
}

static bool block_goes_on(const struct wb_waczpen *pen, unsigned lines)
{
    if (!next_is(pen, INDEX_LINE) || lines >= LINES_PER_BLOCK_MAX)
        return false;
    return lines < LINES_PER_BLOCK || wb_slice_compare(pen->next.value, wb_buf_slice(&pen->bound)) <= 0;
}

/* Writes the next block of the index. pen->key becomes what its first line begins with: urlkey and time. */
static int write_block(struct wb_waczpen *pen)
{
    struct wb_slice first = pen->next.value;
    const char *json = memmem(first.ptr, first.len, " {", 2);
    int err = 0;

    WB_CHECK(json); /* cdx.c made this line, and no field before the object contains a blank */
    wb_buf_clear(&pen->line);
    wb_buf_clear(&pen->bound);
    size_t head = (size_t)(json - first.ptr);
    for (unsigned n = 0; err == 0 && block_goes_on(pen, n); n++) {
        err = raise_bound(pen, pen->next.value);
        if (err == 0)
            err = wb_buf_append_slice(&pen->line, pen->next.value);
        if (err == 0)
            err = advance(pen);
    }
    wb_buf_clear(&pen->key);
    if (err == 0)
        err = wb_buf_append(&pen->key, pen->line.ptr, head);
    return err < 0 ? err : end_block(pen);
}

static int write_index(struct wb_waczpen *pen)
{
    wb_buf_clear(&pen->summary);
    int err = wb_buf_append_str(&pen->summary, "!meta 0 {\"format\":\"cdxj-gzip-1.0\",\"filename\":\"index.cdx.gz\"}"
                                               "\n");
    uint64_t at_most = pen->index_bytes + pen->index_bytes / 8 + GZIP_EXTRA;

    if (err == 0)
        err = wb_zipwriter_begin(pen->zip, "indexes/index.cdx.gz", at_most);
    while (err == 0 && next_is(pen, INDEX_LINE))
        err = write_block(pen);
    if (err == 0)
        err = wb_zipwriter_end(pen->zip);
    if (err == 0)
        err = wb_zipwriter_begin(pen->zip, "indexes/index.idx", pen->summary.len);
    if (err == 0)
        err = wb_zipwriter_write(pen->zip, pen->summary.ptr, pen->summary.len);
    return err < 0 ? err : wb_zipwriter_end(pen->zip);
}

/*
 * If the head says "hasText", ReplayWeb.page reads the first MiB of the list for its search, and finds nothing at all
 * if that ends inside a line. Otherwise it searches what it has loaded already in order to show the list, which is all
 * of it, with the texts. So the head of a longer list does not say so.
 */
static int write_pages(struct wb_waczpen *pen)
{
    static const char head[] = "{\"format\":\"json-pages-1.0\",\"id\":\"pages\",\"title\":\"All Pages\"";
    static const char with_text[] = ",\"hasText\":true}\n", without[] = "}\n";
    uint64_t at_most = pen->page_bytes + sizeof head + sizeof with_text;
    const char *end = at_most <= SEARCHED_BYTES ? with_text : without;

    int err = wb_zipwriter_begin_deflated(pen->zip, "pages/pages.jsonl", at_most);
    if (err == 0)
        err = wb_zipwriter_write(pen->zip, head, sizeof head - 1);
    if (err == 0)
        err = wb_zipwriter_write(pen->zip, end, strlen(end));
    while (err == 0 && next_is(pen, PAGE_LINE)) {
        err = wb_zipwriter_write(pen->zip, pen->next.value.ptr, pen->next.value.len);
        if (err == 0)
            err = advance(pen);
    }
    return err < 0 ? err : wb_zipwriter_end(pen->zip);
}

static int write_file(struct wb_waczpen *pen, const char *name, const struct wb_buf *bytes)
{
    int err = wb_zipwriter_begin(pen->zip, name, bytes->len);

    if (err == 0)
        err = wb_zipwriter_write(pen->zip, bytes->ptr, bytes->len);
    return err < 0 ? err : wb_zipwriter_end(pen->zip);
}

static int write_package(struct wb_waczpen *pen)
{
    const struct wb_zipwriter_entry *entry;
    char created[WB_DATE_TEXT_MAX], hash[HASH_TEXT_MAX];
    struct wb_json j;

    wb_date_format(pen->options.now_ms, created);
    wb_buf_clear(&pen->line);
    wb_json_init(&j, &pen->line);
    wb_json_object(&j);
    wb_json_field_str(&j, "profile", "data-package");
    wb_json_field_str(&j, "wacz_version", WACZ_VERSION);
    wb_json_field_str(&j, "created", created);
    wb_json_field_str(&j, "software", "WebBase " WB_VERSION);
    wb_json_key(&j, "resources");
    wb_json_array(&j);
    for (size_t i = 0; (entry = wb_zipwriter_entry(pen->zip, i)); i++) {
        const char *slash = strrchr(entry->name, '/');
        hash_text(entry->sha256, hash);
        wb_json_object(&j);
        wb_json_field_str(&j, "name", slash ? slash + 1 : entry->name);
        wb_json_field_str(&j, "path", entry->name);
        wb_json_field_str(&j, "hash", hash);
        wb_json_field_u64(&j, "bytes", entry->bytes);
        wb_json_object_end(&j);
    }
    wb_json_array_end(&j);
    wb_json_object_end(&j);
    int err = wb_json_line(&j);
    return err < 0 ? err : write_file(pen, "datapackage.json", &pen->line);
}

/* Writes the hash of the package, which was written last. */
static int write_package_digest(struct wb_waczpen *pen)
{
    const struct wb_zipwriter_entry *entry = NULL, *next;
    char hash[HASH_TEXT_MAX];
    struct wb_json j;

    for (size_t i = 0; (next = wb_zipwriter_entry(pen->zip, i)); i++)
        entry = next;
    WB_CHECK(entry && strcmp(entry->name, "datapackage.json") == 0);
    hash_text(entry->sha256, hash);
    wb_buf_clear(&pen->line);
    wb_json_init(&j, &pen->line);
    wb_json_object(&j);
    wb_json_field_str(&j, "path", entry->name);
    wb_json_field_str(&j, "hash", hash);
    wb_json_object_end(&j);
    int err = wb_json_line(&j);
    return err < 0 ? err : write_file(pen, "datapackage-digest.json", &pen->line);
}

int wb_waczpen_finish(struct wb_waczpen *pen)
{
    WB_CHECK(pen->magic == WACZPEN_MAGIC);
    int err = wb_zipwriter_end(pen->zip);
    if (err == 0)
        err = wb_sorter_sort(pen->sorter);
    if (err == 0)
        err = advance(pen);
    if (err == 0)
        err = write_index(pen);
    if (err == 0)
        err = write_pages(pen);
    if (err == 0)
        err = write_package(pen);
    if (err == 0)
        err = write_package_digest(pen);
    return err < 0 ? err : wb_zipwriter_finish(pen->zip);
}
