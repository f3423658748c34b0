/*
 * feed.c - reads feeds: RSS 0.9 to 2.0, RSS in RDF, Atom 0.3 and 1.0.
 *
 *   rss      channel  item    link, guid, pubDate, title, description
 *   RDF               item    link, dc:date, ...         beside the channel, not in it
 *   feed              entry   link href rel, updated, published, title, summary, content
 *
 * The parent of an element decides what the element is: a field of the feed, an entry, or a field of
 * an entry; deeper elements belong to their field. The names of a few levels are remembered, so that
 * an element without an end tag is closed by the next end tag that fits. It never expands or follows
 * anything, and takes only the text of markup inside descriptions.
 */
#include "extract/xmlpage.h"

#include "base/error.h"

#define LEVELS_MAX 32
#define BASES_MAX 1000u      /* how many changes of xml:base are followed, and how long one may be */
#define BASE_BYTES_MAX 2048u
#define TITLE_BYTES_MAX 4096u
#define FACT_BYTES_MAX 1024u

enum role { ROLE_FEED, ROLE_ENTRY, ROLE_FIELD, ROLE_DEEP };
enum feed_field {
    FIELD_OTHER,
    FIELD_LINK,
    FIELD_GUID,
    FIELD_TITLE,
    FIELD_DESCRIPTION,
    FIELD_UPDATED,
    FIELD_PUBLISHED,
    FIELD_LANGUAGE,
};

struct feed_level {
    struct wb_slice prefix, name;
    enum role role;
    bool rebased;
    struct wb_slice base_before;  /* the base outside it, if it is rebased */
};

struct feed_entry {
    size_t first;                 /* the number of its first link */
    bool has_page;                /* one of its links is the page it is about */
    struct wb_slice page;         /* a guid or rdf:about, which is used if there is no such link */
    struct wb_slice title;
    int64_t updated_ms, published_ms;
};

struct feed_reader {
    struct wb_extractor *x;
    struct feed_level levels[LEVELS_MAX];
    unsigned depth, beyond;       /* beyond: how many open elements are too deep to be remembered */
    enum feed_field field;        /* which field is open... */
    unsigned field_depth;         /* ...and at which depth; 0 if none is */
    bool guid_is_page;
    struct wb_xml_text text;
    struct wb_buf mem;
    struct feed_entry entry;
    struct wb_slice base;         /* the present base; empty as long as it is the document's */
    unsigned bases;
};

/* The names of fields. Those with `any` come from other vocabularies and are accepted with any prefix. */
static const struct {
    const char *name;
    enum feed_field field;
    bool any;
} fields[] = {
    {"link", FIELD_LINK, false}, {"guid", FIELD_GUID, false}, {"title", FIELD_TITLE, false},
    {"description", FIELD_DESCRIPTION, false}, {"summary", FIELD_DESCRIPTION, false},
    {"subtitle", FIELD_DESCRIPTION, false}, {"tagline", FIELD_DESCRIPTION, false},
    {"content", FIELD_DESCRIPTION, false}, {"encoded", FIELD_DESCRIPTION, true}, {"updated", FIELD_UPDATED, false},
    {"modified", FIELD_UPDATED, true}, {"lastBuildDate", FIELD_UPDATED, false}, {"pubDate", FIELD_PUBLISHED, false},
    {"published", FIELD_PUBLISHED, false}, {"issued", FIELD_PUBLISHED, true}, {"created", FIELD_PUBLISHED, true},
    {"date", FIELD_PUBLISHED, true}, {"language", FIELD_LANGUAGE, false},
};

bool wb_feed_is_root(const struct wb_xml_token *root)
{
    static const char *const vocabularies[] = {"purl.org/rss/", "netscape.com/rdf/"};
    struct wb_slice a = root->attributes;

    if (wb_xml_is(root, "rss") || wb_xml_is(root, "feed"))
        return true;
    for (size_t i = 0; i < 2 && wb_xml_is(root, "RDF"); i++)
        if (memmem(a.ptr, a.len, vocabularies[i], strlen(vocabularies[i])))
            return true;
    return false;
}

/* Gets the decoded value of an attribute; valid until the next page. */
static int attribute_text(struct feed_reader *r, const struct wb_xml_token *token, const char *prefix, const char *name,
                          struct wb_slice *value_out)
{
    if (!wb_xml_attribute(token, prefix, name, value_out) || value_out->len > WB_URL_MAX_BYTES)
        *value_out = WB_SLICE_EMPTY;
    if (value_out->len == 0 || !memchr(value_out->ptr, '&', value_out->len))
        return 0;
    wb_buf_clear(&r->mem);
    int err = wb_xml_decode(*value_out, &r->mem);
    return err < 0 ? err : wb_sink_keep(r->x, wb_buf_slice(&r->mem), value_out);
}

static bool in_entry(const struct feed_reader *r)
{
    for (unsigned i = 0; i < r->depth; i++)
        if (r->levels[i].role == ROLE_ENTRY)
            return true;
    return false;
}

static bool is_http(struct wb_slice s)
{
    return wb_slice_starts_nocase(s, WB_SLICE_LIT("http://")) || wb_slice_starts_nocase(s, WB_SLICE_LIT("https://"));
}

/* ---- links ------------------------------------------------------------------------------------- */

static int take_link(struct feed_reader *r, struct wb_slice href, struct wb_slice rel)
{
    bool page = rel.len == 0 || wb_slice_equal_nocase(rel, WB_SLICE_LIT("alternate"));
    bool entry = page && in_entry(r);
    struct wb_extract_link link = {
        .tag = entry ? WB_EXTRACT_LINK_FEED : WB_EXTRACT_LINK_LINK, .href = href, .rel = rel};

    link.url = link.anchor = WB_SLICE_EMPTY;
    link.rels = page && rel.len ? WB_EXTRACT_REL_ALTERNATE : 0;
    if (wb_xml_trim(href).len == 0)
        return 0;
    r->entry.has_page = r->entry.has_page || entry;
    return wb_sink_link(r->x, &link, NULL);
}

/* Gets the collected text in a form that is valid until the next page. */
static int keep_text(struct feed_reader *r, struct wb_slice *text_out)
{
    *text_out = wb_xml_text_get(&r->text);
    return r->text.copied ? wb_sink_keep(r->x, *text_out, text_out) : 0;
}

/* Sets time and title of the entry's links; they may have come after the links. */
static int end_entry(struct feed_reader *r)
{
    struct wb_extractor *x = r->x;
    int err = 0;

    if (!r->entry.has_page && is_http(r->entry.page))
        err = take_link(r, r->entry.page, WB_SLICE_EMPTY);
    for (size_t i = r->entry.first; i < x->link_count; i++)
        if (x->links[i].tag == WB_EXTRACT_LINK_FEED) {
            x->links[i].modified_ms = r->entry.updated_ms ? r->entry.updated_ms : r->entry.published_ms;
            x->links[i].anchor = r->entry.title;
        }
    return err;
}

/* ---- text ---------------------------------------------------------------------------------------- */

/* True if the tag at p does not separate words. */
static bool is_inline(const char *p, const char *end)
{
    static const char *const names[] = {"a",    "b",     "i",   "u",   "s",    "em",  "strong", "span",
                                        "code", "small", "sub", "sup", "font", "img", "abbr"};
    size_t len = 0;

    if (p < end && *p == '/')
        p++;
    while (p + len < end &&
           ((p[len] >= 'a' && p[len] <= 'z') || (p[len] >= 'A' && p[len] <= 'Z') || (p[len] >= '0' && p[len] <= '9')))
        len++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wb_slice_equal_nocase(wb_slice(p, len), wb_slice_str(names[i])))
            return true;
    return false;
}

/* Writes the text of the HTML in a description, without its tags. */
static void put_markup(struct wb_extractor *x, struct wb_slice html)
{
    const char *p = html.ptr, *end = p + html.len, *from = p;
    bool no_close = false; /* there is no further '>' */

    for (; p < end; p++) {
        char utf8[WB_ENTITY_UTF8_MAX];
        size_t len = 0, taken = *p == '&' ? wb_entity_read(p, end, false, utf8, &len) : 0;
        const char *close = NULL;

        if (*p == '<' && !no_close && end - p > 1 &&
            (p[1] == '/' || p[1] == '!' || (wb_ascii_lower(p[1]) >= 'a' && wb_ascii_lower(p[1]) <= 'z'))) {
            close = memchr(p, '>', (size_t)(end - p));
            no_close = !close;
        }
        if (!taken && !close)
            continue;
        wb_sink_text(x, wb_slice(from, (size_t)(p - from)));
        if (taken)
            wb_sink_text(x, wb_slice(utf8, len));
        else if (!is_inline(p + 1, close))
            wb_sink_break(x);
        p = close ? close : p + taken - 1;
        from = p + 1;
    }
    wb_sink_text(x, wb_slice(from, (size_t)(end - from)));
}

static int put_text(struct feed_reader *r, const struct wb_xml_token *token)
{
    struct wb_slice text = token->text;
    int err = 0;

    if (r->field != FIELD_TITLE && r->field != FIELD_DESCRIPTION)
        return 0;
    if (token->coded) {
        wb_buf_clear(&r->mem);
        err = wb_xml_decode(text, &r->mem);
        text = wb_buf_slice(&r->mem);
    }
    if (err == 0 && r->field == FIELD_DESCRIPTION)
        put_markup(r->x, text);
    else if (err == 0)
        wb_sink_text(r->x, text);
    return err;
}

static int read_text(struct feed_reader *r, const struct wb_xml_token *token)
{
    size_t max = r->field == FIELD_LINK || r->field == FIELD_GUID ? WB_URL_MAX_BYTES : TITLE_BYTES_MAX;

    if (!r->field_depth)
        return 0;
    int err = wb_xml_text_add(&r->text, token, max);
    return err < 0 || !(r->x->input->wants & WB_EXTRACT_TEXT) ? err : put_text(r, token);
}

/* ---- fields -------------------------------------------------------------------------------------- */

/* Which field an element is: by its name, with the prefix of its parent or, for some names, any prefix. */
static enum feed_field field_of(const struct wb_xml_token *token, const struct feed_level *parent)
{
    bool own = wb_slice_equal(token->prefix, parent->prefix);

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if ((own || fields[i].any) && wb_xml_is(token, fields[i].name))
            return fields[i].field;
    return FIELD_OTHER;
}

/* Opens a field. Links of Atom are in attributes, in whatever kind of feed they occur. */
static int open_field(struct feed_reader *r, const struct wb_xml_token *token, const struct feed_level *parent)
{
    struct wb_slice href, rel;
    int err = 0;

    r->field = field_of(token, parent);
    r->field_depth = r->depth;
    wb_xml_text_clear(&r->text);
    wb_sink_break(r->x);
    if (wb_xml_is(token, "link") && wb_xml_attribute(token, "", "href", &href)) {
        r->field = FIELD_OTHER;
        err = attribute_text(r, token, "", "href", &href);
        if (err == 0)
            err = attribute_text(r, token, "", "rel", &rel);
        return err < 0 ? err : take_link(r, href, rel);
    }
    if (r->field == FIELD_GUID)
        r->guid_is_page = !wb_xml_attribute(token, "", "isPermaLink", &rel) ||
                          wb_slice_equal_nocase(rel, WB_SLICE_LIT("true"));
    return 0;
}

/* Takes the text of a field of an entry. */
static int end_entry_field(struct feed_reader *r, struct wb_slice text)
{
    struct feed_entry *entry = &r->entry;
    struct wb_slice kept;
    int64_t ms;
    int err = 0;

    switch (r->field) {
    case FIELD_TITLE:
        return entry->title.len ? 0 : wb_sink_keep_words(r->x, text, WB_EXTRACT_ANCHOR_MAX, &entry->title);
    case FIELD_GUID:
        err = keep_text(r, &kept);
        if (err == 0 && r->guid_is_page)
            entry->page = kept;
        return err;
    case FIELD_UPDATED:
        entry->updated_ms = wb_xml_date(text, &ms) ? ms : entry->updated_ms;
        return 0;
    case FIELD_PUBLISHED:
        entry->published_ms = wb_xml_date(text, &ms) ? ms : entry->published_ms;
        return 0;
    default:
        return 0;
    }
}

/* Takes the text of a field of the feed itself; the first title, description and language count. */
static int end_feed_field(struct feed_reader *r, struct wb_slice text)
{
    struct wb_extract *out = r->x->out;
    int64_t ms;

    switch (r->field) {
    case FIELD_TITLE:
        return out->title.len ? 0 : wb_sink_keep_words(r->x, text, FACT_BYTES_MAX, &out->title);
    case FIELD_DESCRIPTION:
        return out->description.len ? 0 : wb_sink_keep_words(r->x, text, FACT_BYTES_MAX, &out->description);
    case FIELD_LANGUAGE:
        return out->lang.len ? 0 : wb_sink_keep_words(r->x, text, FACT_BYTES_MAX, &out->lang);
    case FIELD_UPDATED:
        out->modified_ms = wb_xml_date(text, &ms) ? ms : out->modified_ms;
        return 0;
    case FIELD_PUBLISHED:
        out->published_ms = wb_xml_date(text, &ms) ? ms : out->published_ms;
        return 0;
    default:
        return 0;
    }
}

static int end_field(struct feed_reader *r)
{
    struct wb_slice text = wb_xml_text_get(&r->text), href;
    int err = 0;

    if (r->field == FIELD_LINK && text.len && text.len <= WB_URL_MAX_BYTES) {
        err = keep_text(r, &href);
        if (err == 0)
            err = take_link(r, href, WB_SLICE_EMPTY);
    } else if (text.len) {
        err = in_entry(r) ? end_entry_field(r, text) : end_feed_field(r, text);
    }
    r->field_depth = 0;
    r->field = FIELD_OTHER;
    wb_xml_text_clear(&r->text);
    wb_sink_break(r->x);
    return err;
}

/* ---- elements -------------------------------------------------------------------------------------- */

/* Follows xml:base; close_level() restores the base that was in force outside the element. */
static int change_base(struct feed_reader *r, const struct wb_xml_token *token, struct feed_level *level)
{
    struct wb_slice href, url;

    if (r->bases == BASES_MAX || !wb_xml_attribute(token, "xml", "base", &href))
        return 0;
    r->bases++;
    int err = attribute_text(r, token, "xml", "base", &href);
    if (err == 0 && r->base.len == 0)
        err = wb_sink_keep(r->x, wb_url_href(&r->x->base), &r->base);
    if (err == 0)
        err = wb_sink_resolve(r->x, href, &url);
    if (err < 0 || url.len == 0 || url.len > BASE_BYTES_MAX)
        return err;
    level->rebased = true;
    level->base_before = r->base;
    r->base = url;
    return wb_sink_base(r->x, url);
}

static int begin_entry(struct feed_reader *r, const struct wb_xml_token *token)
{
    r->entry = (struct feed_entry){.first = r->x->link_count, .page = WB_SLICE_EMPTY, .title = WB_SLICE_EMPTY};
    return attribute_text(r, token, "rdf", "about", &r->entry.page);
}

static int close_level(struct feed_reader *r)
{
    struct feed_level *level = &r->levels[r->depth - 1];
    int err = r->field_depth == r->depth ? end_field(r) : 0;

    if (err == 0 && level->role == ROLE_ENTRY)
        err = end_entry(r);
    if (err == 0 && level->rebased && level->base_before.len) {
        r->base = level->base_before;
        err = wb_sink_base(r->x, r->base);
    }
    r->depth--;
    return err;
}

static bool is_entry(const struct wb_xml_token *token)
{
    return wb_xml_is(token, "item") || wb_xml_is(token, "entry");
}

static bool has_markup(enum feed_field field)
{
    return field == FIELD_OTHER || field == FIELD_TITLE || field == FIELD_DESCRIPTION;
}

/* What an element is, given its parent (NULL for the root). */
static enum role role_below(const struct feed_level *parent, const struct wb_xml_token *token)
{
    if (!parent)
        return ROLE_FEED;
    if (parent->role == ROLE_FEED && is_entry(token))
        return ROLE_ENTRY;
    if (parent->role == ROLE_FEED && wb_xml_is(token, "channel"))
        return ROLE_FEED;
    return parent->role == ROLE_FEED || parent->role == ROLE_ENTRY ? ROLE_FIELD : ROLE_DEEP;
}

static int read_close(struct feed_reader *r, const struct wb_xml_token *token)
{
    unsigned depth = r->depth;
    int err = 0;

    if (r->beyond) {
        r->beyond--;
        return 0;
    }
    while (depth && !(wb_slice_equal(r->levels[depth - 1].name, token->name) &&
                      wb_slice_equal(r->levels[depth - 1].prefix, token->prefix)))
        depth--;
    while (err == 0 && depth && r->depth >= depth)
        err = close_level(r);
    return err;
}

static int read_open(struct feed_reader *r, const struct wb_xml_token *token)
{
    int err = 0;

    while (err == 0 && r->field_depth && !has_markup(r->field))
        err = close_level(r); /* its end tag is missing */
    while (err == 0 && is_entry(token) && r->depth && r->levels[r->depth - 1].role == ROLE_ENTRY)
        err = close_level(r); /* the same here, because entries do not nest */
    if (err < 0)
        return err;
    if (r->depth == LEVELS_MAX) {
        r->beyond += !token->empty;
        return 0;
    }
    const struct feed_level *parent = r->depth ? &r->levels[r->depth - 1] : NULL;
    struct feed_level *level = &r->levels[r->depth++];
    *level = (struct feed_level){.prefix = token->prefix,
                                 .name = token->name,
                                 .role = role_below(parent, token),
                                 .base_before = WB_SLICE_EMPTY};
    if (level->role != ROLE_DEEP)
        err = change_base(r, token, level);
    if (err == 0 && level->role == ROLE_ENTRY)
        err = begin_entry(r, token);
    else if (err == 0 && level->role == ROLE_FIELD)
        err = open_field(r, token, parent);
    else if (err == 0 && level->role == ROLE_FEED && r->x->out->lang.len == 0)
        err = attribute_text(r, token, "xml", "lang", &r->x->out->lang);
    else if (err == 0 && r->field == FIELD_DESCRIPTION)
        wb_sink_break(r->x);
    return err == 0 && token->empty ? close_level(r) : err;
}

int wb_feed_read(struct wb_extractor *x)
{
    struct feed_reader r = {.x = x, .text = WB_XML_TEXT_INIT, .base = WB_SLICE_EMPTY};
    struct wb_xml_token token;
    struct wb_xml xml;
    int err = x->input->wants & WB_EXTRACT_TEXT ? wb_sink_room(x, WB_ENTITY_GROWN(x->utf8.len)) : 0;

    x->out->feed = true;
    r.entry.page = r.entry.title = WB_SLICE_EMPTY;
    wb_xml_init(&xml, x->utf8);
    while (err == 0 && wb_xml_next(&xml, &token)) {
        if (token.kind == WB_XML_TEXT)
            err = read_text(&r, &token);
        else if (token.kind == WB_XML_OPEN)
            err = read_open(&r, &token);
        else
            err = read_close(&r, &token);
    }
    while (err == 0 && r.depth)
        err = close_level(&r);
    wb_xml_text_release(&r.text);
    wb_buf_release(&r.mem);
    return err;
}
