/*
 * cmd_get.c - webbase get: prints one version of a page - its body, its headers, or both as a WARC record - or, with
 * --json, what is known about it:
 *
 *   {"url":"http://example.org/","key":"example.org/","id":"938cf2ad...","time":"2026-11-15T21:29:57.555Z",...}
 */
#include "answer/answer.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "warc/warc.h"

static int write_facts(const struct wb_page *page)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    wb_answer_page(&j, page);
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
    return wb_which_snapshot(store, wb_slice_str(snapshot), &when_out->snapshot);
}

int wb_cmd_get(const struct wb_options *options)
{
    const char *snapshot = wb_options_text(options, "snapshot");
    struct wb_store *store = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_store_when when;
    struct wb_pageid id;
    struct wb_page page;
    int err;

    if (wb_options_flag(options, "body") + wb_options_flag(options, "headers") + wb_options_flag(options, "record") > 1)
        return wb_options_usage("get: --body, --headers and --record exclude each other");
    if (wb_options_text(options, "at") && snapshot)
        return wb_options_usage("get: --at and --snapshot exclude each other");
    err = wb_which_page(wb_slice_str(options->args[0]), &id);
    if (err == 0)
        err = wb_store_open(options->dir, WB_STORE_READ, &store);
    if (err == 0)
        err = read_when(store, options, &when);
    if (err < 0)
        goto done;
    err = wb_store_get_when(store, id, &when, &page, &mem);
    if (err == WB_E_NOTFOUND)
        err = wb_which_missing(store, id, wb_slice_str(options->args[0]),
                               wb_slice(snapshot, snapshot ? strlen(snapshot) : 0), options->dir);
    else if (err == 0)
        err = show_page(options, &page);
done:
    wb_buf_release(&mem);
    wb_store_close(store);
    return err;
}
