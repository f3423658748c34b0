/* watch_fetches.c - which of the latest fetches somebody wants to see. */
#include "base/check.h"
#include "base/error.h"
#include "serve/watch.h"

#include <string.h>

enum { FETCHES = 100, FETCHES_MAX = 1000 };

struct fetch_walk {
    const struct wb_watch_filter *filter;
    wb_recent_each each;
    void *context;
    size_t left;
};

static bool has_text(struct wb_slice text, struct wb_slice part)
{
    return part.len == 0 || memmem(text.ptr, text.len, part.ptr, part.len) != NULL;
}

/* The host of a URL, with its port. */
static struct wb_slice host_of(struct wb_slice url)
{
    const char *mark = memmem(url.ptr, url.len, "://", 3);
    size_t at = mark ? (size_t)(mark + 3 - url.ptr) : 0, end = at;

    while (end < url.len && url.ptr[end] != '/' && url.ptr[end] != '?')
        end++;
    return wb_slice(url.ptr + at, end - at);
}

static bool passes(const struct wb_watch_filter *f, const struct wb_recent_fetch *fetch)
{
    struct wb_slice prefix = WB_SLICE_LIT("error:");
    bool failed = wb_slice_starts(fetch->result, prefix);

    if (f->class && fetch->status / 100 != f->class)
        return false;
    if (f->failed && !failed)
        return false;
    if (f->error.len &&
        !(failed && wb_slice_equal(wb_slice(fetch->result.ptr + prefix.len, fetch->result.len - prefix.len), f->error)))
        return false;
    if (f->site.len && !wb_slice_equal_nocase(host_of(fetch->url), f->site))
        return false;
    return has_text(fetch->url, f->text) || has_text(fetch->result, f->text) || has_text(fetch->reason, f->text);
}

static int see_fetch(void *context, const struct wb_recent_fetch *fetch)
{
    struct fetch_walk *walk = context;

    if (walk->left == 0)
        return 1;
    if (!passes(walk->filter, fetch))
        return 0;
    int err = walk->each(walk->context, fetch);
    return err < 0 ? err : --walk->left == 0;
}

int wb_watch_filter_read(struct wb_call *call, struct wb_watch_filter *filter_out)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    struct wb_slice status = wb_call_param(call, "status"), error = wb_call_param(call, "error");
    uint64_t max;

    *filter_out = (struct wb_watch_filter){
        .text = wb_call_param(call, "q"), .site = wb_call_param(call, "site"), .status = status, .error = error};
    int err = wb_call_number(call, "after", 0, UINT64_MAX - 1, &filter_out->after);
    if (err == 0)
        err = wb_call_number(call, "limit", FETCHES, FETCHES_MAX, &max);
    if (err < 0)
        return err;
    filter_out->max = (size_t)max;
    if (status.len) {
        if (status.len != 3 || status.ptr[0] < '1' || status.ptr[0] > '5' || memcmp(status.ptr + 1, "xx", 2) != 0)
            return wb_fail(WB_E_INVALID, "status=%.*s is not 1xx, 2xx, 3xx, 4xx or 5xx", WB_SLICE_ARG(status));
        filter_out->class = (unsigned)(status.ptr[0] - '0');
    }
    filter_out->failed = wb_slice_equal(error, WB_SLICE_LIT("any"));
    if (filter_out->failed)
        filter_out->error = WB_SLICE_EMPTY;
    return 0;
}

int wb_watch_fetches_read(const struct wb_server *server, const struct wb_watch_filter *filter, wb_recent_each each,
                          void *context, uint64_t *newest_out)
{
    struct fetch_walk walk = {.filter = filter, .each = each, .context = context, .left = filter->max};

    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    WB_CHECK(filter->max <= FETCHES_MAX);
    int err = wb_recent_read(server->options->dir, filter->after, see_fetch, &walk, newest_out);
    return err < 0 ? err : 0;
}
