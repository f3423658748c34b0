/*
 * sink.c - takes what modules find: text, links, and copies of whatever must stay valid.
 *
 * It enforces the limits of extract.h and resolves URLs, and knows no format. Resolving takes more
 * time than anything else about a link, and pages repeat their links. A small cache therefore
 * remembers what the hrefs of this page were resolved to, without their fragments, which are
 * appended again.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "extract/module.h"

/* ---- text ------------------------------------------------------------------------------- */

int wb_sink_room(struct wb_extractor *x, size_t max)
{
    size_t cap = max < WB_EXTRACT_TEXT_MAX ? max : WB_EXTRACT_TEXT_MAX;

    WB_CHECK(x->out && x->text.len == 0); /* a page is being read, and no text came before */
    wb_buf_clear(&x->text_memory);
    int err = wb_buf_reserve(&x->text_memory, cap + WB_COLLAPSE_SLACK);
    if (err < 0)
        return err;
    x->text = (struct wb_collapse){x->text_memory.ptr, 0, cap, 0, false};
    return 0;
}

void wb_sink_text(struct wb_extractor *x, struct wb_slice utf8)
{
    if (x->text.ptr)
        wb_collapse_append(&x->text, utf8, 0, utf8.ptr + utf8.len);
}

void wb_sink_break(struct wb_extractor *x)
{
    wb_collapse_gap(&x->text, '\n');
}

/* ---- copies ------------------------------------------------------------------------------ */

int wb_sink_keep(struct wb_extractor *x, struct wb_slice s, struct wb_slice *kept_out)
{
    return wb_arena_copy(&x->arena, s, kept_out);
}

int wb_sink_keep_raw_words(struct wb_extractor *x, struct wb_slice raw, unsigned how, size_t max,
                           struct wb_slice *kept_out)
{
    size_t cap = raw.len > SIZE_MAX / 4 ? max : 3 * raw.len; /* a NUL may become U+FFFD, which has three bytes */

    *kept_out = WB_SLICE_EMPTY;
    cap = cap < max ? cap : max;
    char *at = wb_arena_take(&x->arena, cap + WB_COLLAPSE_SLACK);
    if (!at)
        return WB_E_NOMEM;
    struct wb_collapse words = {at, 0, cap, 0, false};
    wb_collapse_append(&words, raw, how, raw.ptr + raw.len);
    wb_arena_untake(&x->arena, cap + WB_COLLAPSE_SLACK - words.len);
    *kept_out = wb_slice(at, words.len);
    return 0;
}

int wb_sink_keep_words(struct wb_extractor *x, struct wb_slice s, size_t max, struct wb_slice *kept_out)
{
    return wb_sink_keep_raw_words(x, s, 0, max, kept_out);
}

/* ---- URLs -------------------------------------------------------------------------------- */

/* Resolves an href with the URL parser and copies the result; empty if it is not a URL. */
static int parse_href(struct wb_extractor *x, struct wb_slice href, struct wb_slice *url_out)
{
    int err = wb_url_parse(href, x->base.href.len ? &x->base : NULL, &x->resolved);

    *url_out = WB_SLICE_EMPTY;
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    return wb_arena_copy(&x->arena, wb_url_href(&x->resolved), url_out);
}

/* True if the URL parser would leave the fragment unchanged. */
static bool plain_fragment(struct wb_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c <= ' ' || c == 0x7f || c == '"' || c == '<' || c == '>' || c == '`')
            return false;
    }
    return true;
}

/*
 * True if resolving the part before the '#' and appending the fragment gives the same as resolving
 * the whole. It does not if there are blanks before the '#', which would be trimmed, or if the base
 * has an opaque path, against which only fragments can be resolved.
 */
static bool can_split(const struct wb_extractor *x, struct wb_slice head, struct wb_slice fragment)
{
    return fragment.len < 4096 && head.len > 0 && head.len < 4096 && (uint8_t)head.ptr[head.len - 1] > ' ' &&
           !x->base.opaque_path && plain_fragment(fragment);
}

/* Resolves an href without a fragment, through the cache. */
static int resolve_head(struct wb_extractor *x, struct wb_slice head, struct wb_slice *url_out)
{
    uint64_t hash = wb_hash64(head.ptr, head.len);
    struct wb_sink_resolved *slot = &x->slots[hash % WB_SINK_SLOTS];

    if (slot->page == x->page && slot->hash == hash && wb_slice_equal(slot->head, head)) {
        *url_out = slot->url;
        return 0;
    }
    int err = parse_href(x, head, url_out);
    if (err == 0)
        *slot = (struct wb_sink_resolved){hash, x->page, head, *url_out};
    return err;
}

static int append_fragment(struct wb_extractor *x, struct wb_slice url, struct wb_slice fragment,
                           struct wb_slice *url_out)
{
    char *at = wb_arena_take(&x->arena, url.len + fragment.len);

    if (!at)
        return WB_E_NOMEM;
    memcpy(at, url.ptr, url.len);
    memcpy(at + url.len, fragment.ptr, fragment.len);
    *url_out = wb_slice(at, url.len + fragment.len);
    return 0;
}

int wb_sink_resolve(struct wb_extractor *x, struct wb_slice href, struct wb_slice *url_out)
{
    struct wb_slice url;

    *url_out = WB_SLICE_EMPTY;
    href = wb_href_trim(href);
    const char *mark = href.len ? memchr(href.ptr, '#', href.len) : NULL;
    if (!mark)
        return resolve_head(x, href, url_out);
    struct wb_slice head = wb_slice(href.ptr, (size_t)(mark - href.ptr)),
                    fragment = wb_slice(mark, href.len - head.len);
    if (!can_split(x, head, fragment))
        return parse_href(x, href, url_out);
    int err = resolve_head(x, head, &url);
    if (err < 0 || url.len == 0)
        return err;
    return url.len + fragment.len > WB_URL_MAX_BYTES ? 0 : append_fragment(x, url, fragment, url_out);
}

int wb_sink_base(struct wb_extractor *x, struct wb_slice href)
{
    struct wb_slice url;

    int err = parse_href(x, wb_href_trim(href), &url);
    if (err < 0 || url.len == 0)
        return err;
    err = wb_url_parse(url, NULL, &x->base);
    WB_CHECK(err == 0 || err == WB_E_NOMEM);
    if (err < 0)
        return err;
    x->out->base = url;
    x->page++; /* forget what was resolved against the old base */
    return 0;
}

/* ---- facts ------------------------------------------------------------------------------- */

enum { FACT_NAME_MAX = 64, FACT_VALUE_MAX = 4096 };

int wb_sink_fact(struct wb_extractor *x, struct wb_slice name, struct wb_slice value)
{
    size_t at = 0;

    WB_CHECK(x->out);
    if (name.len == 0 || name.len > FACT_NAME_MAX || value.len == 0 || value.len > FACT_VALUE_MAX)
        return 0;
    while (at < x->fact_count && !wb_slice_equal(x->facts[at].name, name))
        at++;
    if (at == WB_EXTRACT_FACTS_MAX)
        return 0;
    if (at < x->fact_count) {
        x->facts[at].value = value;
        return 0;
    }
    int err = wb_sink_keep(x, name, &x->facts[at].name);
    x->facts[at].value = value;
    x->fact_count += err == 0;
    return err;
}

int64_t wb_sink_time(int64_t time_ms)
{
    char text[WB_DATE_HTTP_BYTES];

    return wb_date_format_http(time_ms, text) ? time_ms : 0;
}

/* ---- links ------------------------------------------------------------------------------- */

int wb_sink_link(struct wb_extractor *x, const struct wb_extract_link *link, size_t *link_out)
{
    struct wb_slice url;

    if (link_out)
        *link_out = SIZE_MAX;
    if (!(x->input->wants & WB_EXTRACT_LINKS))
        return 0;
    if (x->link_count == WB_EXTRACT_LINKS_MAX || x->url_bytes > WB_SINK_URL_BYTES_MAX) {
        x->out->links_left_out++;
        return 0;
    }
    int err = wb_grow(&x->links, &x->link_cap, x->link_count + 1);
    if (err == 0)
        err = wb_sink_resolve(x, link->href, &url);
    if (err < 0)
        return err;
    x->url_bytes += wb_sink_cost(x, url);
    struct wb_extract_link *kept = &x->links[x->link_count];
    *kept = *link;
    kept->href = wb_href_trim(link->href);
    kept->url = url;
    if (link_out)
        *link_out = x->link_count;
    x->link_count++;
    return 0;
}
