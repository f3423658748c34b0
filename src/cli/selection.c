/* selection.c - reads the options that select pages, and decides whether a page is selected. */
#include "cli/selection.h"
#include "base/error.h"
#include "os/path.h"

#include <stdlib.h>

#define SITES_BYTES_MAX ((size_t)64 << 20)

int wb_selection_host(const char *option, const char *text, struct wb_buf *host_out)
{
    struct wb_buf input = WB_BUF_INIT, key = WB_BUF_INIT;
    struct wb_url url = WB_URL_INIT;

    int err = wb_buf_printf(&input, "http://%s/", text);
    if (err == 0 && strpbrk(text, "/?#@\\"))
        err = wb_options_usage("--%s takes a host, not '%s'", option, text);
    if (err == 0 && wb_url_parse(wb_buf_slice(&input), NULL, &url) < 0)
        err = wb_options_usage("--%s takes a host, not '%s'", option, text);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        err = wb_buf_append_slice(host_out, wb_key_site(wb_buf_slice(&key)));
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&input);
    return err;
}

static int lower_text(const char *text, struct wb_buf *out)
{
    int err = 0;

    for (; err == 0 && *text; text++)
        err = wb_buf_append_char(out, wb_ascii_lower(*text));
    return err;
}

/* ---- sites ------------------------------------------------------------------------------------- */

static int add_site(struct wb_selection *selection, const char *option, const char *text)
{
    struct wb_buf host = WB_BUF_INIT;
    struct wb_slice site = WB_SLICE_EMPTY;
    int err = wb_selection_host(option, text, &host);

    if (err == 0)
        err = wb_arena_copy(&selection->texts, wb_buf_slice(&host), &site);
    if (err == 0)
        err = wb_vec_push(&selection->sites, site);
    wb_buf_release(&host);
    return err;
}

/* Reads a file of hosts, one per line. */
static int add_sites_of_file(struct wb_selection *selection, const char *path)
{
    struct wb_buf bytes = WB_BUF_INIT, line = WB_BUF_INIT;
    int err = wb_path_read(path, SITES_BYTES_MAX, &bytes);

    for (size_t at = 0; err == 0 && at < bytes.len;) {
        const char *end = memchr(bytes.ptr + at, '\n', bytes.len - at);
        size_t len = end ? (size_t)(end - (bytes.ptr + at)) : bytes.len - at;
        struct wb_slice host = wb_slice_trim(wb_slice(bytes.ptr + at, len));
        wb_buf_clear(&line);
        err = wb_buf_append_slice(&line, host);
        if (err == 0)
            err = wb_buf_terminate(&line);
        if (err == 0 && host.len)
            err = add_site(selection, "sites", line.ptr);
        at += len + 1;
    }
    wb_buf_release(&line);
    wb_buf_release(&bytes);
    return err;
}

static int compare_sites(const void *a, const void *b)
{
    const struct wb_slice *x = a, *y = b;

    return wb_slice_compare(*x, *y);
}

static int read_sites(struct wb_selection *selection, const struct wb_options *options)
{
    size_t count;
    const char *const *list = wb_options_list(options, "site", &count);
    const char *file = wb_options_text(options, "sites");
    int err = 0;

    for (size_t i = 0; err == 0 && i < count; i++)
        err = add_site(selection, "site", list[i]);
    if (err == 0 && file)
        err = add_sites_of_file(selection, file);
    if (err == 0 && file && selection->sites.count == 0)
        err = wb_fail(WB_E_INVALID, "%s has no hosts", file);
    if (selection->sites.count)
        qsort(selection->sites.items, selection->sites.count, sizeof *selection->sites.items, compare_sites);
    return err;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* A status is written as 404, or by its class as 4xx. */
static int read_status(struct wb_selection *selection, const char *text)
{
    bool digits = strlen(text) == 3 && text[0] >= '1' && text[0] <= '9';
    unsigned first = digits ? (unsigned)(text[0] - '0') * 100 : 0;

    if (digits && wb_ascii_lower(text[1]) == 'x' && wb_ascii_lower(text[2]) == 'x') {
        selection->status_min = first;
        selection->status_max = first + 99;
        return 0;
    }
    if (!digits || !wb_ascii_is_digit(text[1]) || !wb_ascii_is_digit(text[2]))
        return wb_options_usage("--status takes a status such as 404 or 4xx, not '%s'", text);
    selection->status_min = selection->status_max = first + (unsigned)(text[1] - '0') * 10 + (unsigned)(text[2] - '0');
    return 0;
}

int wb_selection_init(struct wb_selection *selection, const struct wb_options *options)
{
    const char *suffix = wb_options_text(options, "suffix");
    const char *type = wb_options_text(options, "type");
    const char *status = wb_options_text(options, "status");

    *selection = (struct wb_selection){.since_ms = wb_options_time(options, "since", INT64_MIN),
                                       .until_ms = wb_options_time(options, "until", INT64_MAX)};
    int err = read_sites(selection, options);
    if (err == 0 && suffix)
        err = wb_selection_host("suffix", suffix[0] == '.' ? suffix + 1 : suffix, &selection->suffix);
    if (err == 0 && type)
        err = lower_text(type, &selection->type);
    if (err == 0 && status)
        err = read_status(selection, status);
    return err;
}

void wb_selection_release(struct wb_selection *selection)
{
    wb_vec_release(&selection->sites);
    wb_arena_release(&selection->texts);
    wb_buf_release(&selection->suffix);
    wb_buf_release(&selection->type);
}

/* ---- deciding ---------------------------------------------------------------------------------- */

/* The site without its port. The colons of an IPv6 address are inside brackets. */
static struct wb_slice host_of_site(struct wb_slice site)
{
    for (size_t i = site.len; i > 0; i--) {
        if (site.ptr[i - 1] == ']')
            break;
        if (site.ptr[i - 1] == ':')
            return wb_slice(site.ptr, i - 1);
    }
    return site;
}

/* Whole labels must match: "ample.org" is not a suffix of "example.org". */
static bool suffix_matches(struct wb_slice host, struct wb_slice suffix)
{
    if (host.len < suffix.len || memcmp(host.ptr + host.len - suffix.len, suffix.ptr, suffix.len) != 0)
        return false;
    return host.len == suffix.len || host.ptr[host.len - suffix.len - 1] == '.';
}

static bool type_matches(struct wb_slice type, struct wb_slice wanted)
{
    if (wb_slice_equal(wanted, WB_SLICE_LIT("html")))
        return wb_slice_equal(type, WB_SLICE_LIT("text/html")) ||
               wb_slice_equal(type, WB_SLICE_LIT("application/xhtml+xml"));
    return wb_slice_equal(type, wanted);
}

bool wb_selection_has_site(const struct wb_selection *selection, struct wb_slice key)
{
    struct wb_slice site = wb_key_site(key);

    if (selection->sites.count && !bsearch(&site, selection->sites.items, selection->sites.count,
                                           sizeof *selection->sites.items, compare_sites))
        return false;
    return selection->suffix.len == 0 || suffix_matches(host_of_site(site), wb_buf_slice(&selection->suffix));
}

bool wb_selection_has_time(const struct wb_selection *selection, int64_t time_ms)
{
    return time_ms >= selection->since_ms && time_ms < selection->until_ms;
}

bool wb_selection_has_type(const struct wb_selection *selection, struct wb_slice type)
{
    return selection->type.len == 0 || type_matches(type, wb_buf_slice(&selection->type));
}

bool wb_selection_has_status(const struct wb_selection *selection, unsigned status)
{
    return selection->status_max == 0 || (status >= selection->status_min && status <= selection->status_max);
}

struct wb_slice wb_selection_only_site(const struct wb_selection *selection)
{
    return selection->sites.count == 1 ? selection->sites.items[0] : WB_SLICE_EMPTY;
}

bool wb_selection_matches(const struct wb_selection *selection, const struct wb_page *page)
{
    return wb_selection_has_time(selection, page->time_ms) && wb_selection_has_site(selection, page->key) &&
           wb_selection_has_type(selection, page->type) && wb_selection_has_status(selection, page->status);
}
