/*
 * officepart.c - reads one part of a document: text, links and facts from XML.
 *
 * A part is loaded whole, within the limits of office.h; zipdir refuses entries that overlap or expand too far.
 */
#include "base/error.h"
#include "extract/office.h"

#include <stdlib.h>

enum { FACT_BYTES_MAX = 1024 };

/* ---- parts ----------------------------------------------------------------------------------------- */

static const struct wb_zipdir_entry *find_entry(const struct wb_office *o, struct wb_slice name)
{
    for (size_t i = 0; i < o->dir.entries.count; i++)
        if (wb_slice_equal(o->dir.entries.items[i].name, name))
            return &o->dir.entries.items[i];
    return NULL;
}

bool wb_office_has(const struct wb_office *o, const char *name)
{
    return find_entry(o, wb_slice_str(name)) != NULL;
}

int wb_office_load(struct wb_office *o, struct wb_slice name)
{
    const struct wb_zipdir_entry *entry = find_entry(o, name);

    wb_buf_clear(&o->part);
    if (!entry)
        return 0;
    if (o->parts == WB_OFFICE_PARTS_MAX || entry->size > WB_OFFICE_BYTES_MAX - o->bytes) {
        o->x->out->module_error = "failed";
        return 0;
    }
    o->parts++;
    o->bytes += (size_t)entry->size;
    int err = wb_zipdir_load(&o->file, entry, WB_OFFICE_PART_MAX, &o->part);
    if (err < 0 && err != WB_E_NOMEM)
        o->x->out->module_error = "failed";
    return err == WB_E_NOMEM ? err : err == 0;
}

/* ---- names ----------------------------------------------------------------------------------------- */

static bool is_one_of(const struct wb_xml_token *token, const char *const *names)
{
    for (; names && *names; names++)
        if (wb_xml_is(token, *names))
            return true;
    return false;
}

int wb_office_attribute(struct wb_office *o, const struct wb_xml_token *token, const char *prefix, const char *name,
                        struct wb_slice *value_out)
{
    struct wb_slice raw;

    *value_out = WB_SLICE_EMPTY;
    if (!wb_xml_attribute(token, prefix, name, &raw))
        return 0;
    wb_buf_clear(&o->decoded);
    int err = wb_xml_decode(raw, &o->decoded);
    return err < 0 ? err : wb_sink_keep(o->x, wb_buf_slice(&o->decoded), value_out);
}

static int compare_names(const void *a, const void *b)
{
    const struct wb_office_name *x = a, *y = b;

    return wb_slice_compare(x->id, y->id);
}

int wb_office_read_names(struct wb_office *o, const char *element, const char *id, const char *target, const char *only,
                         const char *value, struct wb_office_names *names_out)
{
    struct wb_xml_token token;
    struct wb_slice has;
    struct wb_xml xml;
    int err = 0;

    wb_vec_clear(names_out);
    wb_xml_init(&xml, wb_buf_slice(&o->part));
    while (err == 0 && wb_xml_next(&xml, &token)) {
        struct wb_office_name name;
        if (token.kind != WB_XML_OPEN || !wb_xml_is(&token, element))
            continue;
        if (only && (!wb_xml_attribute(&token, "", only, &has) || !wb_slice_equal_nocase(has, wb_slice_str(value))))
            continue;
        err = wb_office_attribute(o, &token, "", id, &name.id);
        if (err == 0)
            err = wb_office_attribute(o, &token, "", target, &name.target);
        if (err == 0 && name.id.len && name.target.len)
            err = wb_vec_push(names_out, name);
    }
    if (names_out->count)
        qsort(names_out->items, names_out->count, sizeof *names_out->items, compare_names);
    return err;
}

const struct wb_office_name *wb_office_find_name(const struct wb_office_names *names, struct wb_slice id)
{
    struct wb_office_name key = {id, WB_SLICE_EMPTY};

    return names->count ? bsearch(&key, names->items, names->count, sizeof key, compare_names) : NULL;
}

/* ---- text and links ---------------------------------------------------------------------------------- */

/* Only what leads out of the document is a link of the page. */
static bool leads_out(struct wb_slice href)
{
    return wb_slice_starts_nocase(href, WB_SLICE_LIT("http:")) || wb_slice_starts_nocase(href, WB_SLICE_LIT("https:"));
}

static int begin_link(struct wb_office *o, struct wb_slice href, const char *end)
{
    if (!leads_out(href))
        return 0;
    o->link.href = href;
    o->link.end = end;
    o->link.begin = o->x->text.len;
    return 0;
}

static int end_link(struct wb_office *o)
{
    struct wb_extract_link link = {.tag = WB_EXTRACT_LINK_A, .href = o->link.href, .rel = WB_SLICE_EMPTY};
    size_t end = o->x->text.len;
    struct wb_slice text =
        o->x->text.ptr ? wb_slice(o->x->text.ptr + o->link.begin, end - o->link.begin) : WB_SLICE_EMPTY;

    o->link.href = WB_SLICE_EMPTY;
    int err = wb_sink_keep_words(o->x, text, WB_EXTRACT_ANCHOR_MAX, &link.anchor);
    return err < 0 ? err : wb_sink_link(o->x, &link, NULL);
}

/* An opening tag may begin a link, with a URL of its own or with the id of one. */
static int open_tag(struct wb_office *o, const struct wb_office_words *words, const struct wb_xml_token *token)
{
    struct wb_slice value;
    int err = 0;

    if (words->link_name) {
        if (!wb_xml_is(token, words->link) || token->empty)
            return 0;
        err = wb_office_attribute(o, token, words->link_prefix, words->link_name, &value);
        return err < 0 ? err : begin_link(o, value, words->link);
    }
    bool run = wb_xml_is(token, "hlinkClick"); /* inside the properties of a run, whose text follows */
    if (!run && !wb_xml_is(token, "hyperlink"))
        return 0;
    err = wb_office_attribute(o, token, "r", "id", &value);
    const struct wb_office_name *name = err == 0 ? wb_office_find_name(&o->links, value) : NULL;
    if (!name)
        return err;
    err = begin_link(o, name->target, run ? "r" : "hyperlink");
    return err == 0 && !run && token->empty && o->link.href.len ? end_link(o) : err; /* a cell of a table */
}

static int put_text(struct wb_office *o, const struct wb_xml_token *token)
{
    struct wb_slice text = token->text;
    int err = 0;

    if (token->coded) {
        wb_buf_clear(&o->decoded);
        err = wb_xml_decode(text, &o->decoded);
        text = wb_buf_slice(&o->decoded);
    }
    if (err == 0)
        wb_sink_text(o->x, text);
    return err;
}

static int read_tag(struct wb_office *o, const struct wb_office_words *words, const struct wb_xml_token *token)
{
    bool block = words->blocks ? is_one_of(token, words->blocks) : !is_one_of(token, words->inside);
    int err = 0;

    if (is_one_of(token, words->gaps))
        wb_sink_text(o->x, WB_SLICE_LIT(" "));
    else if (block)
        wb_sink_break(o->x);
    if (token->kind == WB_XML_CLOSE && o->link.href.len && wb_xml_is(token, o->link.end))
        err = end_link(o);
    if (err == 0 && token->kind == WB_XML_OPEN)
        err = open_tag(o, words, token);
    return err;
}

int wb_office_read_text(struct wb_office *o, const struct wb_office_words *words)
{
    const char *skipping = NULL;
    struct wb_xml_token token;
    struct wb_xml xml;
    bool in_text = false;
    int err = 0;

    o->link.href = WB_SLICE_EMPTY;
    wb_xml_init(&xml, wb_buf_slice(&o->part));
    while (err == 0 && wb_xml_next(&xml, &token)) {
        if (skipping) {
            if (token.kind == WB_XML_CLOSE && wb_xml_is(&token, skipping))
                skipping = NULL;
            continue;
        }
        if (token.kind == WB_XML_TEXT) {
            if (in_text || !words->text)
                err = put_text(o, &token);
            continue;
        }
        for (const char *const *s = words->skipped; *s && token.kind == WB_XML_OPEN && !token.empty; s++)
            skipping = wb_xml_is(&token, *s) ? *s : skipping;
        if (words->text && wb_xml_is(&token, words->text))
            in_text = token.kind == WB_XML_OPEN && !token.empty;
        err = read_tag(o, words, &token);
    }
    wb_sink_break(o->x);
    return err;
}

/* ---- facts --------------------------------------------------------------------------------------------- */

static int keep_words(struct wb_office *o, const struct wb_xml_text *text, struct wb_slice *fact_out)
{
    return fact_out->len ? 0 : wb_sink_keep_words(o->x, wb_xml_text_get(text), FACT_BYTES_MAX, fact_out);
}

/* What an element of the properties says, by its name, which Dublin Core gave to all the formats. */
static int take_fact(struct wb_office *o, const struct wb_xml_token *token, const struct wb_xml_text *text,
                     bool date_published)
{
    struct wb_extract *out = o->x->out;
    int64_t time_ms = 0;

    if (wb_xml_is(token, "title"))
        return keep_words(o, text, &out->title);
    if (wb_xml_is(token, "description"))
        return keep_words(o, text, &out->description);
    if (wb_xml_is(token, "creator"))
        return keep_words(o, text, &out->author);
    if (wb_xml_is(token, "language"))
        return keep_words(o, text, &out->lang);
    bool date = wb_xml_is(token, "date");
    if (!date && !wb_xml_is(token, "created") && !wb_xml_is(token, "creation-date") && !wb_xml_is(token, "modified"))
        return 0;
    if (!wb_xml_date(wb_xml_text_get(text), &time_ms))
        return 0;
    bool modified = wb_xml_is(token, "modified") || (date && !date_published);
    int64_t *to = modified ? &out->modified_ms : &out->published_ms;
    *to = *to ? *to : wb_sink_time(time_ms);
    return 0;
}

int wb_office_read_facts(struct wb_office *o, bool date_published)
{
    struct wb_xml_text text = WB_XML_TEXT_INIT;
    struct wb_slice property = WB_SLICE_EMPTY;
    struct wb_xml_token token;
    struct wb_xml xml;
    int64_t time_ms;
    int err = 0;

    wb_xml_init(&xml, wb_buf_slice(&o->part));
    while (err == 0 && wb_xml_next(&xml, &token)) {
        if (token.kind == WB_XML_TEXT) {
            err = wb_xml_text_add(&text, &token, FACT_BYTES_MAX);
            continue;
        }
        if (token.kind == WB_XML_CLOSE)
            err = take_fact(o, &token, &text, date_published);
        /* EPUB 3: <meta property="dcterms:modified">2020-01-01T00:00:00Z</meta> */
        if (token.kind == WB_XML_CLOSE && wb_slice_equal(property, WB_SLICE_LIT("dcterms:modified")) &&
            wb_xml_date(wb_xml_text_get(&text), &time_ms))
            o->x->out->modified_ms = wb_sink_time(time_ms);
        property = WB_SLICE_EMPTY;
        if (token.kind == WB_XML_OPEN && wb_xml_is(&token, "meta"))
            wb_xml_attribute(&token, "", "property", &property);
        wb_xml_text_clear(&text);
    }
    wb_xml_text_release(&text);
    return err;
}
