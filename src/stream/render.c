/*
 * render.c - records as JSON lines, WARC, text or URLs. A pen appends to the caller's buffer and keeps nothing between
 * records, except that the first record of an archive follows a warcinfo record.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "os/clock.h"
#include "stream/memo.h"
#include "stream/stream_own.h"
#include "warc/warc.h"
#include "words/words.h"

static const struct stream_format {
    const char *name, *type;
    bool archive;
    enum wb_warc_coding coding;
} formats[WB_STREAM_FORMATS] = {
    [WB_STREAM_JSONL] = {"jsonl", "application/x-ndjson", false, WB_WARC_PLAIN},
    [WB_STREAM_WARC] = {"warc", "application/warc", true, WB_WARC_PLAIN},
    [WB_STREAM_WARC_GZ] = {"warc.gz", "application/warc+gzip", true, WB_WARC_GZIP},
    [WB_STREAM_WARC_ZST] = {"warc.zst", "application/warc+zstd", true, WB_WARC_ZSTD},
    [WB_STREAM_TEXT] = {"text", "application/warc", true, WB_WARC_PLAIN},
    [WB_STREAM_URLS] = {"urls", "text/plain; charset=utf-8", false, WB_WARC_PLAIN},
};

#define PEN_MAGIC 0x5742504eu

struct wb_stream_pen {
    uint32_t magic; /* PEN_MAGIC from new to free */
    enum wb_stream_format format;
    bool tokens;
    bool begun;                     /* a record was written, and before it the warcinfo record of an archive */
    struct wb_extractor *extractor; /* NULL: not needed */
    struct wb_warc_writer *writer;  /* NULL: not needed */
    struct wb_buf *out;             /* where the writer appends to */
    struct wb_buf scratch;          /* a text that is made for memos */
    struct wb_buf public;           /* the URL of such a page, without a password */
};

int wb_stream_format_parse(struct wb_slice text, enum wb_stream_format *format_out)
{
    for (unsigned i = 0; i < WB_STREAM_FORMATS; i++)
        if (wb_slice_equal(text, wb_slice_str(formats[i].name))) {
            *format_out = (enum wb_stream_format)i;
            return 0;
        }
    return wb_fail(WB_E_INVALID, "format takes jsonl, warc, warc.gz, warc.zst, text or urls, not '%.*s'",
                   WB_SLICE_ARG(text));
}

const char *wb_stream_format_type(enum wb_stream_format format)
{
    WB_CHECK(format < WB_STREAM_FORMATS);
    return formats[format].type;
}

bool wb_stream_format_bodies(enum wb_stream_format format)
{
    WB_CHECK(format < WB_STREAM_FORMATS);
    return format != WB_STREAM_URLS;
}

/* ---- pens ---------------------------------------------------------------------------------------- */

static int append_to_out(void *context, const void *bytes, size_t len)
{
    struct wb_stream_pen *pen = context;

    WB_CHECK(pen->magic == PEN_MAGIC && pen->out);
    return wb_buf_append(pen->out, bytes, len);
}

int wb_stream_pen_new(enum wb_stream_format format, bool tokens, struct wb_stream_pen **pen_out)
{
    WB_CHECK(format < WB_STREAM_FORMATS);
    struct wb_stream_pen *pen = wb_alloc_zero(1, sizeof *pen);
    int err = pen ? 0 : WB_E_NOMEM;

    *pen_out = NULL;
    if (err < 0)
        return err;
    pen->magic = PEN_MAGIC;
    pen->format = format;
    pen->tokens = tokens;
    if (format == WB_STREAM_JSONL || format == WB_STREAM_TEXT)
        err = wb_extractor_new(&pen->extractor);
    if (err == 0 && formats[format].archive)
        err = wb_warc_writer_new(formats[format].coding, append_to_out, pen, &pen->writer);
    if (err < 0) {
        wb_stream_pen_free(pen);
        return err;
    }
    *pen_out = pen;
    return 0;
}

void wb_stream_pen_free(struct wb_stream_pen *pen)
{
    if (!pen)
        return;
    WB_CHECK(pen->magic == PEN_MAGIC);
    wb_extractor_free(pen->extractor);
    wb_warc_writer_free(pen->writer);
    wb_buf_release(&pen->scratch);
    wb_buf_release(&pen->public);
    pen->magic = 0;
    wb_free(pen);
}

/* ---- JSON lines ---------------------------------------------------------------------------------- */

bool wb_stream_is_link(const struct wb_extract_link *link)
{
    return wb_extract_leads_on(link->tag) && (wb_slice_starts(link->url, WB_SLICE_LIT("http:")) ||
                                              wb_slice_starts(link->url, WB_SLICE_LIT("https:")));
}

static void add_links(struct wb_json *j, const struct wb_extract *extract)
{
    struct wb_buf memory = WB_BUF_INIT;

    wb_json_key(j, "links");
    wb_json_array(j);
    for (size_t i = 0; i < extract->link_count; i++) {
        const struct wb_extract_link *link = &extract->links[i];
        if (!wb_stream_is_link(link))
            continue;
        const char *hash = memchr(link->url.ptr, '#', link->url.len);
        struct wb_slice url = hash ? wb_slice(link->url.ptr, (size_t)(hash - link->url.ptr)) : link->url;
        if (wb_url_public(url, &memory, &url) < 0)
            j->err = WB_E_NOMEM;
        wb_json_object(j);
        wb_json_field_slice(j, "url", url);
        wb_json_field_slice(j, "anchor", wb_slice_trim(link->anchor));
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
    wb_buf_release(&memory);
}

static int write_json(const struct wb_stream_record *record, const struct wb_extract *extract, struct wb_buf *out)
{
    char time[WB_DATE_TEXT_MAX], id[WB_PAGEID_HEX + 1];
    uint8_t language = wb_stream_language(extract);
    struct wb_json j;

    wb_date_format(record->page.time_ms, time);
    wb_pageid_hex(record->page.id, id);
    wb_json_init(&j, out);
    wb_json_object(&j);
    wb_json_field_slice(&j, "url", record->page.url);
    wb_json_field_str(&j, "id", id);
    wb_json_field_str(&j, "time", time);
    wb_json_field_u64(&j, "status", record->page.status);
    wb_json_field_text(&j, "type", record->page.type);
    wb_json_field_text(&j, "lang", language ? wb_slice_str(wb_language_code(language)) : WB_SLICE_EMPTY);
    wb_json_field_text(&j, "title", extract->title);
    wb_json_field_slice(&j, "text", extract->text);
    add_links(&j, extract);
    wb_extract_json_facts(&j, extract);
    if (record->revisit)
        wb_json_field_bool(&j, "revisit", true);
    wb_json_field_slice(&j, "token", record->token);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

/* ---- records ------------------------------------------------------------------------------------- */

static int write_urls(const struct wb_stream_pen *pen, const struct wb_stream_record *record, struct wb_buf *out)
{
    int err = wb_buf_append_slice(out, record->page.url);

    if (err == 0 && pen->tokens)
        err = wb_buf_append_char(out, '\t');
    if (err == 0 && pen->tokens)
        err = wb_buf_append_slice(out, record->token);
    return err == 0 ? wb_buf_append_char(out, '\n') : err;
}

static int write_archive(struct wb_stream_pen *pen, const struct wb_stream_record *record,
                         const struct wb_extract *extract)
{
    int err = 0;

    WB_CHECK(pen->writer);
    wb_warc_writer_extra(pen->writer, "WebBase-Token", WB_SLICE_EMPTY);
    if (!pen->begun)
        err = wb_warc_write_info(pen->writer, NULL, wb_clock_wall_ms());
    wb_warc_writer_extra(pen->writer, "WebBase-Token", record->token);
    if (err < 0)
        return err;
    if (extract)
        return wb_warc_write_text(pen->writer, &record->page, extract->text);
    if (!record->revisit)
        return wb_warc_write_page(pen->writer, &record->page);
    struct wb_page page = record->page;
    wb_page_digest(&page);
    return wb_warc_write_revisit(pen->writer, &page, record->original_ms);
}

static int extract_page(struct wb_stream_pen *pen, const struct wb_page *page, struct wb_extract *extract_out)
{
    WB_CHECK(pen->extractor);
    unsigned wants = WB_EXTRACT_TEXT | (pen->format == WB_STREAM_JSONL ? WB_EXTRACT_LINKS | WB_EXTRACT_LANGUAGE : 0u);
    struct wb_extract_input input = {page->url, page->type, page->charset, page->body, wants};

    return wb_extract(pen->extractor, &input, extract_out);
}

/* ---- what streams that share a scan need only once -------------------------------------------------- */

#define JSON_AFTER_TOKEN "\"}\n"

/* Makes in pen->scratch what memos keep: the line up to the token, which needs no escapes, or the page's text. */
static int make_text(struct wb_stream_pen *pen, const struct wb_page *page)
{
    struct wb_stream_record record = {.page = *page, .docid = WB_DOCID_NONE};
    struct wb_extract extract;
    int err = wb_url_public(page->url, &pen->public, &record.page.url);

    if (err == 0)
        err = extract_page(pen, &record.page, &extract);

    wb_buf_clear(&pen->scratch);
    if (err == 0 && pen->format == WB_STREAM_TEXT)
        return wb_buf_append_slice(&pen->scratch, extract.text);
    if (err == 0)
        err = write_json(&record, &extract, &pen->scratch);
    if (err == 0) {
        WB_CHECK(wb_slice_ends(wb_buf_slice(&pen->scratch), WB_SLICE_LIT(JSON_AFTER_TOKEN)));
        pen->scratch.len -= strlen(JSON_AFTER_TOKEN);
    }
    return err;
}

/* Makes the text of a memo that this pen has claimed. */
static int fill_memo(struct wb_stream_pen *pen, struct wb_stream_memo *memo, enum wb_memo_kind kind,
                     const struct wb_page *page)
{
    int err = make_text(pen, page);

    wb_memo_put(memo, kind, err < 0 ? WB_SLICE_EMPTY : wb_buf_slice(&pen->scratch));
    return err;
}

/* Finds the text of a page in its memo, or makes it. While somebody else makes it, this pen makes later ones. */
static int find_text(struct wb_stream_pen *pen, const struct wb_stream_record *record, struct wb_slice *text_out)
{
    enum wb_memo_kind kind = pen->format == WB_STREAM_TEXT ? WB_MEMO_TEXT : WB_MEMO_JSON;
    enum wb_memo_got got;

    while ((got = wb_memo_take(record->memo, kind, text_out)) == WB_MEMO_BUSY) {
        const struct wb_page *page;
        struct wb_stream_memo *later = wb_memo_ahead(record->memo, kind, &page);
        if (!later)
            wb_memo_wait(record->memo, kind);
        else if (fill_memo(pen, later, kind, page) < 0)
            wb_memo_wait(record->memo, kind); /* the stream that needs the later page reports what is wrong with it */
    }
    if (got == WB_MEMO_THERE)
        return 0;
    int err = fill_memo(pen, record->memo, kind, &record->page);
    *text_out = wb_buf_slice(&pen->scratch);
    return err;
}

static int write_shared(struct wb_stream_pen *pen, const struct wb_stream_record *record, struct wb_buf *out)
{
    struct wb_slice text;
    int err = find_text(pen, record, &text);

    if (err < 0)
        return err;
    if (pen->format == WB_STREAM_TEXT)
        return write_archive(pen, record, &(struct wb_extract){.text = text});
    err = wb_buf_append_slice(out, text);
    if (err == 0)
        err = wb_buf_append_slice(out, record->token);
    return err == 0 ? wb_buf_append_str(out, JSON_AFTER_TOKEN) : err;
}

int wb_stream_pen_write(struct wb_stream_pen *pen, const struct wb_stream_record *original, struct wb_buf *out)
{
    WB_CHECK(pen->magic == PEN_MAGIC);
    struct wb_stream_record public = *original, *record = &public;
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_extract extract;
    size_t before = out->len;
    bool shared = record->memo && pen->extractor && !record->revisit;
    int err = wb_url_public(original->page.url, &memory, &public.page.url);

    pen->out = out;
    if (err < 0)
        shared = false;
    else if (shared)
        err = write_shared(pen, record, out);
    else if (pen->extractor)
        err = extract_page(pen, &record->page, &extract);
    if (err == 0 && !shared && pen->writer)
        err = write_archive(pen, record, pen->extractor ? &extract : NULL);
    else if (err == 0 && !shared)
        err = pen->extractor ? write_json(record, &extract, out) : write_urls(pen, record, out);
    if (err < 0)
        out->len = before; /* a record is whole, or it is not there */
    else
        pen->begun = true;
    wb_buf_release(&memory);
    return err;
}
