/*
 * replay_url.c - from a URL in a page to the place in the archive that it names.
 *
 *   href --resolve--> absolute URL --prefix, time--> /web/20260102030405/https://example.org/x
 *
 * URLs that are not fetched from a server (#part, data:, mailto:) stay as they are; scripts and invalid URLs become
 * harmless. It knows nothing about HTML or CSS.
 */
#include "base/check.h"
#include "base/error.h"
#include "replay/replayer.h"

#define TIME_DIGITS 14

/* True for the schemes whose URLs lead into the archive: those with which something is fetched from a server. */
static bool is_archived(const struct wb_url *url)
{
    return url->special;
}

static bool is_script(struct wb_slice scheme)
{
    return wb_slice_equal(scheme, WB_SLICE_LIT("javascript")) || wb_slice_equal(scheme, WB_SLICE_LIT("vbscript"));
}

#define SCHEME_MAX 16

/* The scheme of an absolute URL in lower case, cut off; empty if the URL is relative. */
static struct wb_slice scheme_of(struct wb_slice href, char scheme_out[SCHEME_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < href.len; i++) {
        char c = wb_ascii_lower(href.ptr[i]);
        if (c == '\t' || c == '\n' || c == '\r') /* browsers ignore these */
            continue;
        if (c == ':')
            return wb_slice(scheme_out, len);
        if (!(wb_ascii_is_letter(c) || (len > 0 && (wb_ascii_is_digit(c) || c == '+' || c == '-' || c == '.'))))
            break;
        if (len < SCHEME_MAX)
            scheme_out[len++] = c;
    }
    return WB_SLICE_EMPTY;
}

/* True for an absolute URL that stays as it is. It need not be parsed: pictures in data: are longer than any URL. */
static bool is_kept_scheme(struct wb_slice scheme, bool scripts)
{
    static const char *const special[] = {"http", "https", "ftp", "file", "ws", "wss"};

    if (scheme.len == 0)
        return false;
    if (scripts && wb_slice_equal(scheme, WB_SLICE_LIT("file")))
        return true; /* browsers refuse it to pages of the web, in the same words as when the page was live */
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (wb_slice_equal(scheme, wb_slice_str(special[i])))
            return false;
    return scripts || !is_script(scheme);
}

static struct wb_slice without_fragment(struct wb_slice url)
{
    const char *mark = url.len ? memchr(url.ptr, '#', url.len) : NULL;

    return mark ? wb_slice(url.ptr, (size_t)(mark - url.ptr)) : url;
}

/* Checks what the caller chose. The prefix is written into attributes and style sheets as it is. */
static int check_place(struct wb_slice time, struct wb_slice prefix)
{
    for (size_t i = 0; i < time.len; i++)
        if (!wb_ascii_is_digit(time.ptr[i]))
            return wb_fail(WB_E_INVALID, "'%.*s' is not a time of 14 digits", WB_SLICE_ARG(time));
    if (time.len != TIME_DIGITS)
        return wb_fail(WB_E_INVALID, "'%.*s' is not a time of 14 digits", WB_SLICE_ARG(time));
    for (size_t i = 0; i < prefix.len; i++) {
        char c = prefix.ptr[i];
        if (!wb_ascii_is_letter(c) && !wb_ascii_is_digit(c) && (c == '\0' || !strchr("/:.-_~[]", c)))
            return wb_fail(WB_E_INVALID, "'%.*s' is not a prefix for replay", WB_SLICE_ARG(prefix));
    }
    return 0;
}

int wb_replayer_begin_urls(struct wb_replayer *r, const struct wb_replay_page *page, struct wb_slice base)
{
    int err = check_place(page->time, r->options->origins ? WB_SLICE_EMPTY : r->options->prefix);

    if (err < 0)
        return err;
    r->time = page->time;
    r->base_differs = false;
    r->growth_left = WB_REPLAY_GROWTH_MAX(page->body.len);
    r->work_left = WB_REPLAY_WORK_MAX(page->body.len);
    err = wb_url_parse(page->url, NULL, &r->resolved);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        wb_buf_clear(&r->resolved.href);
    if (base.len == 0)
        base = wb_url_href(&r->resolved);
    r->base_differs = !wb_slice_equal(without_fragment(base), without_fragment(wb_url_href(&r->resolved)));
    err = wb_url_parse(base, NULL, &r->base);
    if (err < 0)
        wb_buf_clear(&r->base.href); /* without a base, only absolute URLs can be resolved */
    return err == WB_E_NOMEM ? err : 0;
}

static int put_place(struct wb_slice prefix, struct wb_slice time, bool framed, struct wb_slice url, struct wb_buf *out)
{
    int err = wb_buf_append_slice(out, prefix);

    if (err == 0)
        err = wb_buf_append_slice(out, time);
    if (err == 0)
        err = wb_buf_append_str(out, framed ? "mp_/" : "/");
    return err < 0 ? err : wb_buf_append_slice(out, url);
}

/* Whether a reference has neither a scheme nor a host. */
static bool is_relative(struct wb_slice href)
{
    char scheme[SCHEME_MAX];
    unsigned slashes = 0;

    for (size_t i = 0; i < href.len && slashes < 2; i++) {
        char c = href.ptr[i];
        if (c == '/' || c == '\\')
            slashes++;
        else if (c != '\t' && c != '\n' && c != '\r') /* browsers ignore these */
            break;
    }
    return slashes < 2 && scheme_of(href, scheme).len == 0;
}

/* How many bytes a URL needs, with the backslashes that a style sheet wants before some characters. */
static size_t cost_of(struct wb_slice url)
{
    size_t cost = url.len;

    for (size_t i = 0; i < url.len; i++)
        cost += strchr("\"'()\\", url.ptr[i]) != NULL;
    return cost;
}

bool wb_replayer_grow(struct wb_replayer *r, size_t before, size_t after)
{
    size_t growth = after > before ? after - before : 0;

    if (growth > r->growth_left)
        return false;
    r->growth_left -= growth;
    return true;
}

/*
 * True for a reference that a browser resolves as we would, without leaving the archive: no scheme, host, absolute path
 * or "..", and no character that browsers treat in a special way.
 */
static bool is_plainly_relative(struct wb_slice href)
{
    for (size_t i = 0; i < href.len; i++) {
        char c = href.ptr[i];
        if (!wb_ascii_is_letter(c) && !wb_ascii_is_digit(c) && (c == '\0' || !strchr("._~-/?=&+,;", c)))
            return false;
        if (c == '.' && i + 1 < href.len && href.ptr[i + 1] == '.')
            return false;
    }
    return href.len > 0 && *href.ptr != '/';
}

/*
 * What becomes of a URL for which there is no room: it stays if the browser resolves it to the same place, and
 * otherwise leads nowhere. Neither makes the page longer than before.
 */
static int put_short(struct wb_replayer *r, struct wb_slice href, enum wb_replay_place place, struct wb_buf *out,
                     bool *kept_out)
{
    *kept_out = href.len == 0 || (r->options->in_place && !r->base_differs && is_plainly_relative(href));
    if (*kept_out)
        return 0;
    r->result->urls_dropped++;
    return place == WB_REPLAY_PLACE_LINK ? wb_buf_append_char(out, '#') : 0;
}

/* Writes something that leads nowhere. */
static int put_nothing(struct wb_replayer *r, struct wb_slice href, const char *text, struct wb_buf *out)
{
    r->result->urls_dropped++;
    return wb_replayer_grow(r, href.len, strlen(text)) ? wb_buf_append_str(out, text) : 0;
}

/* Writes the address that a URL has on the origin of its site. Not all sites have one. */
static int put_on_origin(struct wb_replayer *r, struct wb_slice href, enum wb_replay_place place, struct wb_buf *out,
                         bool *kept_out)
{
    size_t before = out->len;
    int err = wb_replay_origin_address(r->options->origins, r->time, &r->resolved, out);

    if (err < 0)
        return err == WB_E_NOMEM ? err : put_nothing(r, href, "about:invalid", out);
    if (!wb_replayer_grow(r, href.len, cost_of(wb_slice(out->ptr + before, out->len - before)))) {
        out->len = before;
        return put_short(r, href, place, out, kept_out);
    }
    r->result->urls++;
    return 0;
}

/* Writes the absolute URL that href means, behind the place of the archive if it is archived. */
static int put_resolved(struct wb_replayer *r, struct wb_slice href, enum wb_replay_place place, struct wb_buf *out,
                        bool *kept_out)
{
    struct wb_slice url = wb_url_href(&r->resolved);
    bool archived = is_archived(&r->resolved);

    if (archived && r->options->origins)
        return put_on_origin(r, href, place, out, kept_out);
    size_t cost = cost_of(url) + (archived ? r->options->prefix.len + r->time.len + sizeof "mp_" : 0);

    if (!wb_replayer_grow(r, href.len, cost))
        return put_short(r, href, place, out, kept_out);
    if (!archived)
        return wb_buf_append_slice(out, url);
    r->result->urls++;
    return put_place(r->options->prefix, r->time, false, url, out);
}

int wb_replayer_url(struct wb_replayer *r, struct wb_slice href, enum wb_replay_place place, struct wb_buf *out,
                    bool *kept_out)
{
    bool own = place == WB_REPLAY_PLACE_PART || !r->base_differs;
    char scheme[SCHEME_MAX];

    /* An empty one loads nothing; only for links it means the base. */
    *kept_out = href.len == 0 && place != WB_REPLAY_PLACE_LINK;
    href = wb_href_trim(href);
    if (*kept_out || (own && (href.len == 0 || *href.ptr == '#'))) {
        *kept_out = true;
        return 0;
    }
    bool scripts = r->options->origins != NULL, as_live = scripts && r->options->in_place;
    *kept_out = is_kept_scheme(scheme_of(href, scheme), scripts) || (as_live && is_relative(href));
    if (*kept_out)
        return 0;
    size_t work = href.len + r->base.href.len;
    if (work > r->work_left)
        return put_short(r, href, place, out, kept_out);
    r->work_left -= work;
    int err = wb_url_parse(href, r->base.href.len ? &r->base : NULL, &r->resolved);
    if (err < 0)
        return err == WB_E_NOMEM ? err : put_nothing(r, href, "about:invalid", out);
    if (is_script(wb_url_scheme(&r->resolved)) && !scripts)
        return put_nothing(r, href, place == WB_REPLAY_PLACE_LINK ? "#" : "about:blank", out);
    return put_resolved(r, href, place, out, kept_out);
}

int wb_replay_location(const struct wb_replay_page *page, struct wb_slice prefix, bool outermost, struct wb_slice href,
                       struct wb_buf *out)
{
    struct wb_url base = WB_URL_INIT, url = WB_URL_INIT;
    int err = check_place(page->time, prefix);

    if (err == 0)
        err = wb_url_parse(page->url, NULL, &base);
    if (err == 0)
        err = wb_url_parse(href, &base, &url);
    if (err == 0 && !is_archived(&url))
        err = wb_fail(WB_E_PROTO, "'%.*s' does not lead to a page", WB_SLICE_ARG(href));
    if (err == 0)
        err = put_place(prefix, page->time, outermost, wb_url_href(&url), out);
    wb_url_release(&base);
    wb_url_release(&url);
    return err;
}
