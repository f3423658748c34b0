/*
 * selection.c - reads the conditions that select pages, and decides whether a page is selected. lang and query are only
 * kept here: who has an extractor or an index answers them.
 */
#include "base/date.h"
#include "base/error.h"
#include "os/path.h"
#include "stream/stream.h"
#include "words/words.h"

#include <stdlib.h>

#define SITES_BYTES_MAX ((size_t)64 << 20)

/* ---- hosts --------------------------------------------------------------------------------------- */

int wb_selection_host(const char *option, struct wb_slice text, struct wb_buf *host_out)
{
    struct wb_buf input = WB_BUF_INIT, key = WB_BUF_INIT;
    struct wb_url url = WB_URL_INIT;
    bool host = text.len > 0;

    for (size_t i = 0; i < text.len; i++)
        host = host && !strchr("/?#@\\", text.ptr[i]);
    int err = wb_buf_printf(&input, "http://%.*s/", WB_SLICE_ARG(text));
    if (err == 0 && (!host || wb_url_parse(wb_buf_slice(&input), NULL, &url) < 0))
        err = wb_fail(WB_E_INVALID, "%s takes a host, not '%.*s'", option, WB_SLICE_ARG(text));
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        err = wb_buf_append_slice(host_out, wb_key_site(wb_buf_slice(&key)));
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&input);
    return err;
}

static int compare_slices(const void *a, const void *b)
{
    const struct wb_slice *x = a, *y = b;

    return wb_slice_compare(*x, *y);
}

/* Adds a host to the sites or to the suffixes. */
static int add_host(struct wb_selection *selection, const char *option, struct wb_slice text, bool suffix)
{
    struct wb_buf host = WB_BUF_INIT;
    struct wb_slice copy = WB_SLICE_EMPTY;
    int err = wb_selection_host(option, text, &host);

    if (err == 0)
        err = wb_arena_copy(&selection->texts, wb_buf_slice(&host), &copy);
    if (err == 0 && suffix)
        err = wb_vec_push(&selection->suffixes, copy);
    else if (err == 0)
        err = wb_vec_push(&selection->sites, copy);
    wb_buf_release(&host);
    return err;
}

/* Puts hosts in order, each once, so that equal selections are equal byte by byte. */
static void sort_hosts(struct wb_slice *items, size_t *count)
{
    size_t kept = 0;

    if (*count > 1)
        qsort(items, *count, sizeof *items, compare_slices);
    for (size_t i = 0; i < *count; i++)
        if (kept == 0 || !wb_slice_equal(items[kept - 1], items[i]))
            items[kept++] = items[i];
    *count = kept;
}

/* Reads a file of hosts, one per line. */
static int add_sites_of_file(struct wb_selection *selection, struct wb_slice path)
{
    struct wb_buf bytes = WB_BUF_INIT, name = WB_BUF_INIT;
    struct wb_slice line;
    size_t before = selection->sites.count;
    int err = wb_buf_append_slice(&name, path);

    if (err == 0)
        err = wb_buf_terminate(&name);
    if (err == 0)
        err = wb_path_read(name.ptr, SITES_BYTES_MAX, &bytes);
    struct wb_slice rest = wb_buf_slice(&bytes);
    while (err == 0 && wb_slice_next_line(&rest, &line)) {
        struct wb_slice host = wb_slice_trim(line);
        if (host.len)
            err = add_host(selection, name.ptr, host, false);
    }
    if (err == 0 && selection->sites.count == before)
        err = wb_fail(WB_E_INVALID, "%s has no hosts", name.ptr);
    wb_buf_release(&name);
    wb_buf_release(&bytes);
    return err;
}

/* ---- reading ------------------------------------------------------------------------------------- */

/* A status is written as 404, or by its class as 4xx. */
static int set_status(struct wb_selection *selection, struct wb_slice text)
{
    bool digits = text.len == 3 && text.ptr[0] >= '1' && text.ptr[0] <= '9';
    unsigned first = digits ? (unsigned)(text.ptr[0] - '0') * 100 : 0;

    if (digits && wb_ascii_lower(text.ptr[1]) == 'x' && wb_ascii_lower(text.ptr[2]) == 'x') {
        selection->status_min = first;
        selection->status_max = first + 99;
        return 0;
    }
    if (!digits || !wb_ascii_is_digit(text.ptr[1]) || !wb_ascii_is_digit(text.ptr[2]))
        return wb_fail(WB_E_INVALID, "status takes a status such as 404 or 4xx, not '%.*s'", WB_SLICE_ARG(text));
    first += (unsigned)(text.ptr[1] - '0') * 10 + (unsigned)(text.ptr[2] - '0');
    selection->status_min = selection->status_max = first;
    return 0;
}

static int set_time(const char *name, struct wb_slice text, int64_t *time_ms)
{
    if (wb_date_parse(text, time_ms))
        return 0;
    return wb_fail(WB_E_INVALID, "%s takes a time such as 2026-01-31 or 2026-01-31T12:00:00Z, not '%.*s'", name,
                   WB_SLICE_ARG(text));
}

static int set_type(struct wb_selection *selection, struct wb_slice text)
{
    char *copy = wb_arena_take(&selection->texts, text.len + 1);

    if (!copy)
        return WB_E_NOMEM;
    for (size_t i = 0; i < text.len; i++)
        copy[i] = wb_ascii_lower(text.ptr[i]);
    selection->type = wb_slice(copy, text.len);
    return 0;
}

/* The code is kept as wb_language_code() writes it, so that "DE" and "de" are the same selection. */
static int set_lang(struct wb_selection *selection, struct wb_slice text)
{
    uint8_t number = wb_language_number(text);

    if (number == 0)
        return wb_fail(WB_E_INVALID, "lang takes the code of a language, such as de, not '%.*s'", WB_SLICE_ARG(text));
    selection->lang = wb_slice_str(wb_language_code(number));
    return 0;
}

static int set_host(struct wb_selection *selection, const char *name, struct wb_slice value)
{
    bool suffix = strcmp(name, "suffix") == 0;

    if (suffix && value.len && value.ptr[0] == '.')
        value = wb_slice(value.ptr + 1, value.len - 1);
    int err = add_host(selection, name, value, suffix);
    if (suffix)
        sort_hosts(selection->suffixes.items, &selection->suffixes.count);
    else
        sort_hosts(selection->sites.items, &selection->sites.count);
    return err;
}

int wb_selection_set(struct wb_selection *selection, const char *name, struct wb_slice value, bool files)
{
    if (strcmp(name, "sites") == 0 && !files)
        return wb_fail(WB_E_INVALID, "sites names a file of this machine; give each site with 'site' instead");
    if (strcmp(name, "sites") == 0) {
        int err = add_sites_of_file(selection, value);
        sort_hosts(selection->sites.items, &selection->sites.count);
        return err;
    }
    if (strcmp(name, "site") == 0 || strcmp(name, "suffix") == 0)
        return set_host(selection, name, value);
    if (strcmp(name, "since") == 0)
        return set_time(name, value, &selection->since_ms);
    if (strcmp(name, "until") == 0)
        return set_time(name, value, &selection->until_ms);
    if (strcmp(name, "type") == 0)
        return set_type(selection, value);
    if (strcmp(name, "lang") == 0)
        return set_lang(selection, value);
    if (strcmp(name, "status") == 0)
        return set_status(selection, value);
    if (strcmp(name, "query") == 0)
        return wb_arena_copy(&selection->texts, value, &selection->query);
    return wb_fail(WB_E_NOTFOUND, "there is no selection by '%s'", name);
}

void wb_selection_release(struct wb_selection *selection)
{
    wb_vec_release(&selection->sites);
    wb_vec_release(&selection->suffixes);
    wb_arena_release(&selection->texts);
    *selection = WB_SELECTION_INIT;
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

    if (selection->sites.count &&
        !bsearch(&site, selection->sites.items, selection->sites.count, sizeof *selection->sites.items, compare_slices))
        return false;
    for (size_t i = 0; i < selection->suffixes.count; i++)
        if (suffix_matches(host_of_site(site), selection->suffixes.items[i]))
            return true;
    return selection->suffixes.count == 0;
}

bool wb_selection_has_time(const struct wb_selection *selection, int64_t time_ms)
{
    return time_ms >= selection->since_ms && time_ms < selection->until_ms;
}

bool wb_selection_has_type(const struct wb_selection *selection, struct wb_slice type)
{
    return selection->type.len == 0 || type_matches(type, selection->type);
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
