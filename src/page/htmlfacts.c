/*
 * htmlfacts.c - what a page says of itself: title, description, robots, dates,
 * language. Nothing is believed or compared here, only read.
 */
#include "page/html.h"
#include "base/date.h"
#include "base/error.h"

#define TITLE_MAX 4096
#define DESCRIPTION_MAX 8192
#define ROBOTS_MAX 4096

int wb_html_title(struct wb_html *h)
{
    h->has_title = true;
    h->in_title = false;
    return wb_sink_keep_raw_words(h->x, h->t.text, h->t.how, TITLE_MAX, &h->x->out->title);
}

/* ---- dates ------------------------------------------------------------------------------- */

/* Where a date may stand, the best source first: a higher rank replaces a lower one. */
static const struct {
    const char *name;
    bool modified;
    uint8_t rank;
} date_names[] = {
    {"article:published_time", false, 9}, {"datepublished", false, 8}, {"dcterms.issued", false, 7}, {"dcterms.created", false, 6},
    {"dc.date.issued", false, 6}, {"dc.date.created", false, 6}, {"dcterms.date", false, 5}, {"dc.date", false, 5}, {"date", false, 4},
    {"article:modified_time", true, 9}, {"datemodified", true, 8}, {"dcterms.modified", true, 7}, {"dc.date.modified", true, 6},
    {"og:updated_time", true, 5}, {"last-modified", true, 4},
};
#define TIME_RANK 1

static bool read_date(struct wb_slice text, int64_t *time_ms_out)
{
    text = wb_slice_trim(text);
    return text.len > 0 && text.len < 64 && (wb_date_parse(text, time_ms_out) || wb_http_date_parse(text, time_ms_out));
}

static void take_date(struct wb_html *h, bool modified, uint8_t rank, struct wb_slice text)
{
    uint8_t *had = modified ? &h->modified_rank : &h->published_rank;
    int64_t time_ms = 0;

    if (rank <= *had || !read_date(text, &time_ms))
        return;
    *had = rank;
    *(modified ? &h->x->out->modified_ms : &h->x->out->published_ms) = time_ms;
}

static void take_named_date(struct wb_html *h, struct wb_slice name, struct wb_slice text)
{
    for (size_t i = 0; i < sizeof date_names / sizeof *date_names; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(date_names[i].name)))
            take_date(h, date_names[i].modified, date_names[i].rank, text);
}

/* <time datetime> and, with a name, itemprop. */
int wb_html_time(struct wb_html *h)
{
    struct wb_slice when, name;
    bool found;

    int err = wb_html_value(h, WB_SLICE_LIT("datetime"), &found, &when);
    if (err < 0 || !found)
        return err;
    err = wb_html_value(h, WB_SLICE_LIT("itemprop"), &found, &name);
    if (err < 0)
        return err;
    if (found)
        take_named_date(h, wb_slice_trim(name), when);
    else
        take_date(h, false, TIME_RANK, when);
    return 0;
}

/* ---- meta -------------------------------------------------------------------------------- */

/* Several are joined by ", ". */
static int take_robots(struct wb_html *h, struct wb_slice content)
{
    struct wb_extract *out = h->x->out;

    out->robots_flags |= wb_robots_directives(content, WB_SLICE_EMPTY);
    content = wb_slice_trim(content);
    if (content.len == 0 || out->robots.len + content.len > ROBOTS_MAX)
        return 0;
    if (out->robots.len == 0) {
        out->robots = content;
        return 0;
    }
    char *at = wb_arena_take(&h->x->arena, out->robots.len + 2 + content.len);
    if (!at)
        return WB_E_NOMEM;
    memcpy(at, out->robots.ptr, out->robots.len);
    memcpy(at + out->robots.len, ", ", 2);
    memcpy(at + out->robots.len + 2, content.ptr, content.len);
    out->robots = wb_slice(at, out->robots.len + 2 + content.len);
    return 0;
}

static int take_named(struct wb_html *h, struct wb_slice name, struct wb_slice content)
{
    bool open_graph = wb_slice_equal_nocase(name, WB_SLICE_LIT("og:description"));

    if (wb_slice_equal_nocase(name, WB_SLICE_LIT("robots")))
        return take_robots(h, content);
    if (open_graph || wb_slice_equal_nocase(name, WB_SLICE_LIT("description"))) {
        if (h->has_description || (open_graph && h->x->out->description.len))
            return 0;
        h->has_description = !open_graph;
        return wb_sink_keep_words(h->x, content, DESCRIPTION_MAX, &h->x->out->description);
    }
    take_named_date(h, name, content);
    return 0;
}

static int take_equiv(struct wb_html *h, struct wb_slice equiv, struct wb_slice content)
{
    if (wb_slice_equal_nocase(equiv, WB_SLICE_LIT("refresh")))
        return wb_html_refresh(h, content);
    if (wb_slice_equal_nocase(equiv, WB_SLICE_LIT("content-language"))) {
        if (h->x->out->lang.len == 0)
            h->x->out->lang = wb_slice_trim(content);
        return 0;
    }
    take_named_date(h, equiv, content);
    return 0;
}

int wb_html_meta(struct wb_html *h)
{
    static const char *const names[] = {"name", "property", "itemprop"};
    struct wb_slice content, name;
    bool found;

    int err = wb_html_value(h, WB_SLICE_LIT("content"), &found, &content);
    if (err < 0 || !found)
        return err;
    err = wb_html_value(h, WB_SLICE_LIT("http-equiv"), &found, &name);
    if (err == 0 && found)
        err = take_equiv(h, wb_slice_trim(name), content);
    for (size_t i = 0; err == 0 && i < sizeof names / sizeof *names; i++) {
        err = wb_html_value(h, wb_slice_str(names[i]), &found, &name);
        if (err == 0 && found)
            err = take_named(h, wb_slice_trim(name), content);
    }
    return err;
}

/* ---- language ---------------------------------------------------------------------------- */

int wb_html_lang(struct wb_html *h)
{
    struct wb_slice lang;
    bool found;

    int err = wb_html_value(h, WB_SLICE_LIT("lang"), &found, &lang);
    if (err == 0 && (!found || lang.len == 0))
        err = wb_html_value(h, WB_SLICE_LIT("xml:lang"), &found, &lang);
    if (err == 0 && found && lang.len > 0 && !h->has_lang) {
        h->has_lang = true;
        h->x->out->lang = wb_slice_trim(lang);
    }
    return err;
}
