/*
 * cmd_extract.c - webbase extract: shows what extract finds in a page, which is a file or standard input. It never
 * opens a repository and never fetches anything.
 */
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"
#include "extract/extract.h"
#include "os/path.h"

#include <inttypes.h>
#include <stdio.h>

struct page_reader {
    struct wb_extractor *extractor;
    struct wb_extract_input input; /* of the current file */
    bool json;
    bool typed;                    /* --type was given, so the type is not each file's own */
    struct wb_buf body;
};

/* ---- JSON ---------------------------------------------------------------------------------- */

static void write_links(struct wb_json *j, const struct wb_extract *e)
{
    wb_json_key(j, "links");
    wb_json_array(j);
    for (size_t i = 0; i < e->link_count; i++) {
        const struct wb_extract_link *link = &e->links[i];
        wb_json_object(j);
        wb_json_field_str(j, "tag", wb_extract_tag_name(link->tag));
        wb_json_field_slice(j, "href", link->href);
        wb_json_field_slice(j, "url", link->url);
        wb_json_field_slice(j, "anchor", link->anchor);
        wb_json_field_slice(j, "rel", link->rel);
        if (link->modified_ms)
            wb_json_field_time(j, "modified", link->modified_ms);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
}

static int write_page(const char *file, const struct wb_extract *e)
{
    struct wb_json j;
    char simhash[17];

    snprintf(simhash, sizeof simhash, "%016" PRIx64, e->simhash);
    wb_output_object_begin(&j, NULL);
    wb_json_field_str(&j, "file", file);
    wb_json_field_str(&j, "module", e->module);
    wb_json_field_str(&j, "charset", e->charset);
    wb_json_field_slice(&j, "title", e->title);
    wb_json_field_slice(&j, "description", e->description);
    wb_json_field_slice(&j, "lang", e->lang);
    wb_json_field_str(&j, "language", e->language);
    wb_json_field_slice(&j, "canonical", e->canonical);
    wb_json_field_slice(&j, "base", e->base);
    wb_json_field_slice(&j, "robots", e->robots);
    wb_json_field_time(&j, "published", e->published_ms);
    wb_json_field_time(&j, "modified", e->modified_ms);
    wb_json_field_slice(&j, "author", e->author);
    wb_json_field_slice(&j, "type", e->type);
    wb_json_field_str(&j, "simhash", simhash);
    wb_json_field_bool(&j, "sitemap", e->sitemap);
    wb_json_field_bool(&j, "feed", e->feed);
    wb_json_field_bool(&j, "text_cut", e->text_cut);
    wb_json_field_u64(&j, "links_left_out", e->links_left_out);
    if (*e->module_error)
        wb_json_field_str(&j, "module_error", e->module_error);
    wb_extract_json_facts(&j, e);
    write_links(&j, e);
    wb_json_field_slice(&j, "text", e->text);
    wb_json_field_slice(&j, "main_text", e->main_text);
    return wb_output_object_end(&j);
}

/* ---- words --------------------------------------------------------------------------------- */

static int show_fact(const char *name, struct wb_slice value)
{
    int err = value.len ? wb_output_printf("%-12s", name) : 0;

    if (err == 0 && value.len)
        err = wb_output_text(value);
    return err == 0 && value.len ? wb_output_write("\n", 1) : err;
}

static int show_time(const char *name, int64_t time_ms)
{
    char text[WB_DATE_TEXT_MAX] = "";

    if (time_ms)
        wb_date_format(time_ms, text);
    return show_fact(name, wb_slice_str(text));
}

static int show_links(const struct wb_extract *e)
{
    int err = wb_output_printf("\n%zu link%s\n", e->link_count, wb_output_plural(e->link_count));

    for (size_t i = 0; err == 0 && i < e->link_count; i++) {
        const struct wb_extract_link *link = &e->links[i];
        err = wb_output_printf("  %-8s", wb_extract_tag_name(link->tag));
        if (err == 0)
            err = wb_output_text(link->url.len ? link->url : link->href);
        if (err == 0 && link->url.len == 0 && e->base.len)
            err = wb_output_printf("  (not a URL)");
        if (err == 0 && link->rel.len)
            err = wb_output_printf("  rel ");
        if (err == 0 && link->rel.len)
            err = wb_output_text(link->rel);
        if (err == 0 && link->anchor.len)
            err = wb_output_write("  ", 2);
        if (err == 0)
            err = wb_output_text(link->anchor);
        if (err == 0)
            err = wb_output_write("\n", 1);
    }
    return err;
}

/* Each block of the text is one line; control characters, which could steer a terminal, are replaced. */
static int show_text(const char *name, struct wb_slice text)
{
    int err = wb_output_printf("\n%s\n", name);

    while (err == 0 && text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        err = wb_output_write("  ", 2);
        if (err == 0)
            err = wb_output_text(wb_slice(text.ptr, len));
        if (err == 0)
            err = wb_output_write("\n", 1);
        len += end ? 1 : 0;
        text = wb_slice(text.ptr + len, text.len - len);
    }
    return err;
}

static int show_page(const char *file, const struct wb_extract *e)
{
    const struct {
        const char *name;
        struct wb_slice value;
    } facts[] = {
        {"file", wb_slice_str(file)},
        {"module", wb_slice_str(*e->module ? e->module : "none: pages of this type have no text")},
        {"charset", wb_slice_str(e->charset)},
        {"title", e->title},
        {"description", e->description},
        {"lang", e->lang},
        {"language", wb_slice_str(e->language)},
        {"canonical", e->canonical},
        {"base", e->base},
        {"robots", e->robots},
        {"author", e->author},
        {"type", e->type},
    };
    char simhash[17];
    int err = 0;

    for (size_t i = 0; err == 0 && i < sizeof facts / sizeof *facts; i++)
        err = show_fact(facts[i].name, facts[i].value);
    if (err == 0)
        err = show_time("published", e->published_ms);
    if (err == 0)
        err = show_time("modified", e->modified_ms);
    snprintf(simhash, sizeof simhash, "%016" PRIx64, e->simhash);
    if (err == 0)
        err = show_fact("simhash", wb_slice_str(simhash));
    if (err == 0 && (e->sitemap || e->feed))
        err = show_fact("is", e->sitemap ? WB_SLICE_LIT("a sitemap") : WB_SLICE_LIT("a feed"));
    if (err == 0)
        err = show_links(e);
    if (err == 0)
        err = show_text("main text", e->main_text);
    if (err == 0 && !wb_slice_equal(e->text, e->main_text))
        err = show_text("all text", e->text);
    return err < 0 ? err : wb_output_write("\n", 1);
}

/* ---- files --------------------------------------------------------------------------------- */

static int read_stdin(struct wb_buf *body)
{
    int err = wb_input_all(body, WB_PAGE_MAX_BYTES + 1);

    if (err == 0 && body->len > WB_PAGE_MAX_BYTES)
        err = wb_fail(WB_E_LIMIT, "standard input: longer than %u bytes", WB_PAGE_MAX_BYTES);
    return err;
}

/* The type by the name of the file; empty if the name says nothing, and then extract looks at the bytes. */
static struct wb_slice type_of_name(const char *file)
{
    struct wb_slice type = wb_media_type_of_name(wb_slice_str(file));

    return wb_slice_equal(type, WB_SLICE_LIT("application/octet-stream")) ? WB_SLICE_EMPTY : type;
}

static int extract_file(struct page_reader *r, const char *file)
{
    bool is_stdin = strcmp(file, "-") == 0;
    struct wb_extract extract;

    wb_buf_release(&r->body);
    int err = is_stdin ? read_stdin(&r->body) : wb_path_read(file, WB_PAGE_MAX_BYTES, &r->body);
    if (err < 0)
        return err;
    r->input.body = wb_buf_slice(&r->body);
    if (!r->typed)
        r->input.type = is_stdin ? WB_SLICE_EMPTY : type_of_name(file);
    err = wb_extract(r->extractor, &r->input, &extract);
    if (err < 0)
        return err;
    return r->json ? write_page(file, &extract) : show_page(file, &extract);
}

/* Goes on after a file that cannot be read; returns 1 if there was one. */
static int extract_files(struct page_reader *r, const struct wb_options *options)
{
    int failed = 0;

    for (size_t i = 0; i < options->arg_count; i++) {
        int err = extract_file(r, options->args[i]);
        if (err == WB_E_NOMEM || (err < 0 && (wb_output_gone() || options->arg_count == 1)))
            return err;
        if (err < 0) {
            wb_report("%s", wb_error_message());
            failed = 1;
        }
    }
    return failed;
}

int wb_cmd_extract(const struct wb_options *options)
{
    const char *url = wb_options_text(options, "url"), *type = wb_options_text(options, "type");
    const char *charset = wb_options_text(options, "charset");
    struct page_reader r = {.json = options->json, .typed = type};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice typed_charset = WB_SLICE_EMPTY;

    r.input = (struct wb_extract_input){url ? wb_slice_str(url) : WB_SLICE_EMPTY, WB_SLICE_EMPTY, WB_SLICE_EMPTY,
                                        WB_SLICE_EMPTY, WB_EXTRACT_ALL};
    int err = wb_extractor_new(&r.extractor);
    if (err == 0 && type)
        err = wb_media_type_parse(wb_slice_str(type), &mem, &r.input.type, &typed_charset);
    if (err == 0 && type && r.input.type.len == 0)
        err = wb_options_usage("--type takes a media type such as text/html, not '%s'", type);
    if (err < 0)
        goto done;
    r.input.charset = charset ? wb_slice_str(charset) : typed_charset;
    err = extract_files(&r, options);
done:
    wb_extractor_free(r.extractor);
    wb_buf_release(&r.body);
    wb_buf_release(&mem);
    return err;
}
