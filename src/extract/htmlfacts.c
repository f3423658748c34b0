/*
 * htmlfacts.c - reads what a page says about itself: title, description, robots, dates, author, type,
 * language. It never judges whether that is true.
 */
#include "extract/html.h"
#include "base/date.h"
#include "base/error.h"
#include "extract/jsonld.h"

#define TITLE_MAX 4096
#define DESCRIPTION_MAX 8192
#define ROBOTS_MAX 4096
#define AUTHOR_MAX 1024
#define TYPE_MAX 64
#define JSONLD_SCRIPTS_MAX 64

int wb_html_title(struct wb_html *h)
{
    h->has_title = true;
    h->in_title = false;
    return wb_sink_keep_raw_words(h->x, h->t.text, h->t.how, TITLE_MAX, &h->x->out->title);
}

/* ---- dates ------------------------------------------------------------------------------- */

/* The names under which a date may be given. A source with a higher rank replaces one with a lower rank. */
static const struct {
    const char *name;
    bool modified;
    uint8_t rank;
} date_names[] = {
    {"article:published_time", false, 10}, {"datepublished", false, 8}, {"dcterms.issued", false, 7},
    {"dcterms.created", false, 6}, {"dc.date.issued", false, 6}, {"dc.date.created", false, 6},
    {"dcterms.date", false, 5}, {"dc.date", false, 5}, {"date", false, 4}, {"article:modified_time", true, 10},
    {"datemodified", true, 8}, {"dcterms.modified", true, 7}, {"dc.date.modified", true, 6},
    {"og:updated_time", true, 5}, {"last-modified", true, 4},
};
#define JSONLD_RANK 9
#define TIME_RANK 1

static bool read_date(struct wb_slice text, int64_t *time_ms_out)
{
    text = wb_slice_trim(text);
    return text.len > 0 && text.len < 64 && (wb_date_parse(text, time_ms_out) || wb_http_date_parse(text, time_ms_out));
}

/* Takes a date, unless a source of the same or a higher rank gave one before. */
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

/* Takes the date of a <time datetime>; its itemprop, if it has one, says which date it is. */
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

/* ---- author and type --------------------------------------------------------------------- */

/* A value of higher rank replaces the one before. Addresses of profiles are not names. */
static int take_words(struct wb_html *h, uint8_t rank, uint8_t *had, struct wb_slice text, size_t max,
                      struct wb_slice *fact)
{
    text = wb_slice_trim(text);
    if (rank <= *had || text.len == 0 || wb_slice_starts_nocase(text, WB_SLICE_LIT("http://")) ||
        wb_slice_starts_nocase(text, WB_SLICE_LIT("https://")))
        return 0;
    *had = rank;
    return wb_sink_keep_words(h->x, text, max, fact);
}

static int take_author(struct wb_html *h, uint8_t rank, struct wb_slice text)
{
    return take_words(h, rank, &h->author_rank, text, AUTHOR_MAX, &h->x->out->author);
}

static int take_type(struct wb_html *h, uint8_t rank, struct wb_slice text)
{
    return take_words(h, rank, &h->type_rank, text, TYPE_MAX, &h->x->out->type);
}

/* Takes authors and types from meta tags; the best source comes first. */
static int take_named_words(struct wb_html *h, struct wb_slice name, struct wb_slice content)
{
    static const char *const authors[] = {"author", "dcterms.creator", "dc.creator", "article:author",
                                          "parsely-author"};

    for (size_t i = 0; i < sizeof authors / sizeof *authors; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(authors[i])))
            return take_author(h, (uint8_t)(JSONLD_RANK - 1 - i), content);
    return wb_slice_equal_nocase(name, WB_SLICE_LIT("og:type")) ? take_type(h, TIME_RANK, content) : 0;
}

/* ---- JSON-LD ----------------------------------------------------------------------------- */

void wb_html_script(struct wb_html *h)
{
    const struct wb_token_attr *type = h->t.attr_count ? wb_tokenizer_attr(&h->t, WB_SLICE_LIT("type")) : NULL;

    if (type && wb_slice_starts_nocase(wb_slice_trim(type->value), WB_SLICE_LIT("application/ld+json")))
        h->in_jsonld = h->jsonld_count++ < JSONLD_SCRIPTS_MAX;
}

int wb_html_jsonld(struct wb_html *h)
{
    struct wb_jsonld facts;

    int err = wb_jsonld_read(&h->x->arena, h->t.text, &facts);
    if (err < 0)
        return err;
    take_date(h, false, JSONLD_RANK, facts.published);
    take_date(h, true, JSONLD_RANK, facts.modified);
    err = take_author(h, JSONLD_RANK, facts.author);
    return err < 0 ? err : take_type(h, JSONLD_RANK, facts.type);
}

/* ---- meta -------------------------------------------------------------------------------- */

/* Takes <meta name=robots>; several are joined by ", ". */
static int take_robots(struct wb_html *h, struct wb_slice content)
{
    struct wb_extract *out = h->x->out;

    out->robots_flags |= wb_robotstag_parse(content, WB_SLICE_EMPTY);
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

/* Takes <meta name>, <meta property> or <meta itemprop>. */
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
    return take_named_words(h, name, content);
}

/* Takes <meta http-equiv>: a refresh, the language, or a date. */
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
