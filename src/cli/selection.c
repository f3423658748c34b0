/* selection.c - reads the options that select pages, and decides whether a page is selected. */
#include "cli/selection.h"
#include "base/error.h"

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

int wb_selection_init(struct wb_selection *selection, const struct wb_options *options)
{
    const char *site = wb_options_text(options, "site");
    const char *suffix = wb_options_text(options, "suffix");
    const char *type = wb_options_text(options, "type");
    int err = 0;

    *selection = (struct wb_selection){.since_ms = wb_options_time(options, "since", INT64_MIN),
                                       .until_ms = wb_options_time(options, "until", INT64_MAX)};
    if (site)
        err = wb_selection_host("site", site, &selection->site);
    if (err == 0 && suffix)
        err = wb_selection_host("suffix", suffix[0] == '.' ? suffix + 1 : suffix, &selection->suffix);
    if (err == 0 && type)
        err = lower_text(type, &selection->type);
    return err;
}

void wb_selection_release(struct wb_selection *selection)
{
    wb_buf_release(&selection->site);
    wb_buf_release(&selection->suffix);
    wb_buf_release(&selection->type);
}

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

    if (selection->site.len && !wb_slice_equal(site, wb_buf_slice(&selection->site)))
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

bool wb_selection_matches(const struct wb_selection *selection, const struct wb_page *page)
{
    return wb_selection_has_time(selection, page->time_ms) && wb_selection_has_site(selection, page->key) &&
           wb_selection_has_type(selection, page->type);
}
