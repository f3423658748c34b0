/*
 * cmd_get.c - webbase get: prints one page - its body, its headers, or both as a WARC record - or, with --json, what is
 * known about it:
 *
 *   {"url":"http://example.org/","key":"example.org/","id":"938cf2ad...","time":"2026-11-15T21:29:57.555Z",...}
 */
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "store/store.h"
#include "warc/warc.h"

static int write_facts(const struct wb_page *page)
{
    char id[WB_PAGEID_HEX + 1], time[WB_DATE_TEXT_MAX], md5[2 * WB_MD5_BYTES + 1], sha1[2 * WB_SHA1_BYTES + 1];
    struct wb_json j;

    wb_pageid_hex(page->id, id);
    wb_date_format(page->time_ms, time);
    wb_hex_encode(page->md5, WB_MD5_BYTES, md5);
    wb_hex_encode(page->sha1, WB_SHA1_BYTES, sha1);
    wb_output_object_begin(&j, NULL);
    wb_json_field_slice(&j, "url", page->url);
    wb_json_field_slice(&j, "key", page->key);
    wb_json_field_str(&j, "id", id);
    wb_json_field_str(&j, "time", time);
    wb_json_field_u64(&j, "status", page->status);
    wb_output_field_text(&j, "type", page->type);
    wb_output_field_text(&j, "charset", page->charset);
    wb_json_field_u64(&j, "length", page->body.len);
    wb_json_field_str(&j, "md5", md5);
    wb_json_field_str(&j, "sha1", sha1);
    wb_json_field_bool(&j, "truncated", page->truncated);
    wb_json_field_u64(&j, "epoch", page->epoch);
    return wb_output_object_end(&j);
}

static int write_bytes(void *context, const void *bytes, size_t len)
{
    (void)context;
    return wb_output_write(bytes, len);
}

static int write_record(const struct wb_page *page)
{
    struct wb_warc_writer *writer = NULL;

    int err = wb_warc_writer_new(WB_WARC_PLAIN, write_bytes, NULL, &writer);
    if (err == 0)
        err = wb_warc_write_page(writer, page);
    wb_warc_writer_free(writer);
    return err;
}

static int show_page(const struct wb_options *options, const struct wb_page *page)
{
    if (options->json)
        return write_facts(page);
    if (wb_options_flag(options, "headers"))
        return wb_output_write(page->head.ptr, page->head.len);
    if (wb_options_flag(options, "record"))
        return write_record(page);
    return wb_output_write(page->body.ptr, page->body.len);
}

/* There is no such page. A revisit of it may have been seen, whose original was never stored. */
static int fail_unknown(struct wb_store *store, struct wb_pageid id, const struct wb_options *options)
{
    struct wb_store_revisit revisit;
    char time[WB_DATE_TEXT_MAX];

    int err = wb_store_get_revisit(store, id, &revisit);
    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_NOTFOUND, "%s: no such page in %s", options->args[0], options->dir);
    if (err < 0)
        return err;
    wb_date_format(revisit.time_ms, time);
    return wb_fail(WB_E_NOTFOUND, "%s: no such page in %s; only a revisit at %s was seen, not its original",
                   options->args[0], options->dir, time);
}

/* Reads 32 hexadecimal digits as a page id, anything else as a URL. A URL has a scheme, so none looks like an id. */
static int read_id(const char *what, struct wb_pageid *id_out)
{
    uint8_t bytes[WB_PAGEID_BYTES];
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;
    int err;

    *id_out = (struct wb_pageid){0, 0};
    if (wb_hex_decode(wb_slice_str(what), bytes, sizeof bytes)) {
        *id_out = wb_pageid_get(bytes);
        return 0;
    }
    err = wb_url_parse(wb_slice_str(what), NULL, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        *id_out = wb_pageid_of_key(wb_buf_slice(&key));
    wb_buf_release(&key);
    wb_url_release(&url);
    return err;
}

int wb_cmd_get(const struct wb_options *options)
{
    struct wb_store *store = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pageid id;
    struct wb_page page;
    int err;

    if (wb_options_flag(options, "body") + wb_options_flag(options, "headers") + wb_options_flag(options, "record") > 1)
        return wb_options_usage("get: --body, --headers and --record exclude each other");
    err = read_id(options->args[0], &id);
    if (err == 0)
        err = wb_store_open(options->dir, WB_STORE_READ, &store);
    if (err < 0)
        goto done;
    err = wb_store_get(store, id, &page, &mem);
    if (err == WB_E_NOTFOUND)
        err = fail_unknown(store, id, options);
    else if (err == 0)
        err = show_page(options, &page);
done:
    wb_buf_release(&mem);
    wb_store_close(store);
    return err;
}
