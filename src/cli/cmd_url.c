/*
 * cmd_url.c - webbase url: shows how a URL is read. It never opens a repository.
 *
 *   {"input":"HTTP://Example.org/a/../b","href":"http://example.org/b","key":"example.org/b","id":"6d638607...",...}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "url/url.h"

struct url_reader {
    const struct wb_url *base; /* NULL: URLs are absolute */
    bool json;
    bool failed;               /* one of them was not a URL */
    struct wb_url url;         /* the current one */
    struct wb_buf key, surt;
};

static void write_names(struct url_reader *r, struct wb_slice input, struct wb_json *j)
{
    struct wb_slice key = wb_buf_slice(&r->key);
    struct wb_slice site = wb_key_site(key);
    char id[WB_PAGEID_HEX + 1];

    wb_pageid_hex(wb_pageid_of_key(key), id);
    wb_json_field_slice(j, "input", input);
    wb_json_field_slice(j, "href", wb_url_href(&r->url));
    wb_json_field_slice(j, "key", key);
    wb_json_field_str(j, "id", id);
    wb_json_field_slice(j, "site", site);
    wb_json_field_slice(j, "surt", wb_buf_slice(&r->surt));
    wb_json_field_slice(j, "domain", wb_site_domain(site));
}

static int show_names(struct url_reader *r)
{
    struct wb_slice key = wb_buf_slice(&r->key);
    struct wb_slice site = wb_key_site(key), domain = wb_site_domain(site);
    char id[WB_PAGEID_HEX + 1];

    wb_pageid_hex(wb_pageid_of_key(key), id);
    return wb_output_printf("%.*s\n  key     %.*s\n  id      %s\n  site    %.*s\n  surt    %.*s\n  domain  %.*s\n",
                            WB_SLICE_ARG(wb_url_href(&r->url)), WB_SLICE_ARG(key), id, WB_SLICE_ARG(site),
                            WB_SLICE_ARG(wb_buf_slice(&r->surt)), WB_SLICE_ARG(domain));
}

static int show_error(struct url_reader *r, struct wb_slice input, struct wb_json *j)
{
    r->failed = true;
    if (r->json) {
        wb_json_field_slice(j, "input", input);
        wb_json_field_str(j, "error", wb_error_message());
        return 0;
    }
    int err = wb_output_text(input);
    if (err == 0)
        err = wb_output_write("\n  error   ", 11);
    if (err == 0)
        err = wb_output_text(wb_slice_str(wb_error_message()));
    return err < 0 ? err : wb_output_write("\n", 1);
}

static int read_url(struct url_reader *r, struct wb_slice input)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    int err = wb_url_parse(input, r->base, &r->url);
    if (err == 0)
        err = wb_url_key(&r->url, &r->key);
    if (err == 0)
        err = wb_surt_of_key(wb_buf_slice(&r->key), &r->surt);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        err = show_error(r, input, &j);
    else if (r->json)
        write_names(r, input, &j);
    else
        err = show_names(r);
    return err < 0 || !r->json ? err : wb_output_object_queue(&j);
}

static int read_lines(struct url_reader *r)
{
    struct wb_buf line = WB_BUF_INIT;
    int err = 0;

    while (err == 0 && wb_input_line(&line, WB_URL_MAX_BYTES, &err))
        err = read_url(r, wb_buf_slice(&line));
    wb_buf_release(&line);
    return err;
}

int wb_cmd_url(const struct wb_options *options)
{
    struct url_reader r = {.json = options->json, .url = WB_URL_INIT};
    struct wb_url base = WB_URL_INIT;
    const char *base_text = wb_options_text(options, "base");
    int err = 0;

    if (base_text) {
        err = wb_url_parse(wb_slice_str(base_text), NULL, &base);
        if (err < 0)
            goto done;
        r.base = &base;
    }
    for (size_t i = 0; err == 0 && i < options->arg_count; i++) {
        const char *text = options->args[i];
        err = strcmp(text, "-") == 0 ? read_lines(&r) : read_url(&r, wb_slice_str(text));
    }
done:
    wb_url_release(&base);
    wb_url_release(&r.url);
    wb_buf_release(&r.key);
    wb_buf_release(&r.surt);
    return err < 0 ? err : r.failed;
}
