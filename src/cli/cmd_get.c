/*
 * cmd_get.c - webbase get: prints one version of a page - its body, its headers, or both as a WARC record - or, with
 * --json, what is known about it:
 *
 *   {"url":"http://example.org/","key":"example.org/","id":"938cf2ad...","time":"2026-11-15T21:29:57.555Z",...}
 */
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/which.h"
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

/* There is no version of this page. A revisit of it may have been seen, whose original was never stored. */
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

/* The version that was asked for does not exist. Says what does. */
static int fail_missing(struct wb_store *store, struct wb_pageid id, const struct wb_options *options)
{
    const char *page = options->args[0], *snapshot = wb_options_text(options, "snapshot");
    struct wb_store_timeline timeline = {0};
    char time[WB_DATE_TEXT_MAX];

    int err = wb_store_timeline(store, id, &timeline);
    int64_t gone_ms = timeline.gone_ms;
    wb_store_timeline_release(&timeline);
    if (err == WB_E_NOTFOUND)
        return fail_unknown(store, id, options);
    if (err < 0)
        return err;
    if (snapshot)
        return wb_fail(WB_E_NOTFOUND, "%s: not in snapshot %s; 'webbase versions' shows when the page was seen", page,
                       snapshot);
    if (gone_ms == 0)
        return wb_fail(WB_E_NOTFOUND, "%s: no longer in %s, but snapshots have it: see 'webbase versions'", page,
                       options->dir);
    wb_date_format(gone_ms, time);
    return wb_fail(WB_E_NOTFOUND, "%s: gone since %s; 'webbase versions' shows its past, and get --at reads it", page,
                   time);
}

/* Which version the options mean. */
static int read_when(struct wb_store *store, const struct wb_options *options, struct wb_store_when *when_out)
{
    const char *snapshot = wb_options_text(options, "snapshot");

    *when_out = (struct wb_store_when){.kind = WB_STORE_WHEN_LATEST};
    if (wb_options_text(options, "at")) {
        when_out->kind = WB_STORE_WHEN_TIME;
        when_out->time_ms = wb_options_time(options, "at", 0);
    }
    if (!snapshot)
        return 0;
    when_out->kind = WB_STORE_WHEN_SNAPSHOT;
    return wb_which_snapshot(store, snapshot, &when_out->snapshot);
}

int wb_cmd_get(const struct wb_options *options)
{
    struct wb_store *store = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_store_when when;
    struct wb_pageid id;
    struct wb_page page;
    int err;

    if (wb_options_flag(options, "body") + wb_options_flag(options, "headers") + wb_options_flag(options, "record") > 1)
        return wb_options_usage("get: --body, --headers and --record exclude each other");
    if (wb_options_text(options, "at") && wb_options_text(options, "snapshot"))
        return wb_options_usage("get: --at and --snapshot exclude each other");
    err = wb_which_page(options->args[0], &id);
    if (err == 0)
        err = wb_store_open(options->dir, WB_STORE_READ, &store);
    if (err == 0)
        err = read_when(store, options, &when);
    if (err < 0)
        goto done;
    err = wb_store_get_when(store, id, &when, &page, &mem);
    if (err == WB_E_NOTFOUND)
        err = fail_missing(store, id, options);
    else if (err == 0)
        err = show_page(options, &page);
done:
    wb_buf_release(&mem);
    wb_store_close(store);
    return err;
}
