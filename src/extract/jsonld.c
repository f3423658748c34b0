/*
 * jsonld.c - reads dates, author and type from JSON-LD. It never builds a tree.
 *
 * It makes one pass, depth first. While an object is read, the properties we know are collected; when
 * it ends, each of them replaces what a lower-ranked object said. Everything else is skipped. A script
 * that is not well-formed up to its end gives nothing at all, except that raw control characters in
 * strings and commas before a closing bracket, which are common mistakes, are tolerated.
 */
#include "extract/jsonld.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/utf8.h"

#define TYPE_MAX 64
#define DATE_MAX 64
#define NAME_MAX 256
#define AUTHORS_MAX 8
#define PEOPLE_MAX 16

/* A string as written, between its quotes. */
struct text {
    struct wb_slice raw;
    bool escaped;
};

struct authors {
    struct text names[AUTHORS_MAX];
    struct text ids[AUTHORS_MAX]; /* the ids of authors who are named elsewhere */
    size_t name_count, id_count;
};

/* What one object says. */
struct jsonld_item {
    struct text type, id, name, published, modified;
    struct authors authors;
};

/* A property, and the rank of the object that it comes from. */
struct fact {
    struct text text;
    uint8_t rank; /* 0: none */
};

struct jsonld_reader {
    const char *at, *end;
    unsigned depth;
    bool bad;
    struct fact type, published, modified;
    struct authors authors;
    uint8_t authors_rank;
    struct text people[PEOPLE_MAX][2]; /* id and name */
    size_t people_count;
};

/* ---- JSON -------------------------------------------------------------------------------- */

static void skip_blanks(struct jsonld_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* Skips blanks and then the character c; false if something else comes next. */
static bool take(struct jsonld_reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool is_next(struct jsonld_reader *r, char c)
{
    skip_blanks(r);
    return r->at < r->end && *r->at == c;
}

/* Reads a string, without decoding it. */
static struct text read_string(struct jsonld_reader *r)
{
    struct text text = {WB_SLICE_EMPTY, false};

    if (!take(r, '"')) {
        r->bad = true;
        return text;
    }
    const char *from = r->at;
    while (r->at < r->end && *r->at != '"') {
        bool escape = *r->at == '\\' && r->end - r->at > 1;
        text.escaped |= escape;
        r->at += escape ? 2 : 1;
    }
    text.raw = wb_slice(from, (size_t)(r->at - from));
    r->bad |= r->at == r->end;
    r->at += r->at < r->end;
    return text;
}

/* Skips a number or a word such as true. */
static void skip_word(struct jsonld_reader *r)
{
    const char *from = r->at;

    while (r->at < r->end && ((*r->at >= '0' && *r->at <= '9') || (*r->at >= 'a' && *r->at <= 'z') ||
                              (*r->at >= 'A' && *r->at <= 'Z') || *r->at == '-' || *r->at == '+' || *r->at == '.'))
        r->at++;
    r->bad |= r->at == from;
}

/* Moves to the next member of an object or value of an array; false if there is none. */
static bool next_of(struct jsonld_reader *r, char close, bool *first)
{
    if (r->bad || take(r, close))
        return false;
    if (!*first && !take(r, ',')) {
        r->bad = true;
        return false;
    }
    *first = false;
    if (take(r, close))
        return false;
    skip_blanks(r);
    r->bad |= r->at == r->end;
    return !r->bad;
}

static bool enter(struct jsonld_reader *r)
{
    r->bad |= ++r->depth > WB_JSONLD_DEPTH_MAX;
    r->at++;
    return !r->bad;
}

static struct text read_key(struct jsonld_reader *r)
{
    struct text key = read_string(r);

    r->bad |= !take(r, ':');
    return key;
}

/* Skips a value of any kind. */
static void skip_value(struct jsonld_reader *r)
{
    bool first = true, object = is_next(r, '{');

    if (is_next(r, '"')) {
        read_string(r);
    } else if (object || is_next(r, '[')) {
        if (!enter(r))
            return;
        while (next_of(r, object ? '}' : ']', &first)) {
            if (object)
                read_key(r);
            skip_value(r);
        }
        r->depth--;
    } else {
        skip_word(r);
    }
}

/* ---- properties -------------------------------------------------------------------------- */

static bool is_key(struct text key, const char *name)
{
    return !key.escaped && wb_slice_equal(key.raw, wb_slice_str(name));
}

/* Reads the first string of a value, which may be a string or an array of strings. */
static void read_text(struct jsonld_reader *r, struct text *text_out)
{
    bool first = true;

    if (is_next(r, '"')) {
        struct text text = read_string(r);
        if (text_out->raw.len == 0)
            *text_out = text;
    } else if (is_next(r, '[')) {
        if (!enter(r))
            return;
        while (next_of(r, ']', &first)) {
            if (is_next(r, '"'))
                read_text(r, text_out);
            else
                skip_value(r);
        }
        r->depth--;
    } else {
        skip_value(r);
    }
}

/* Reads authors: a string, an object with a name, or an array of these. */
static void read_authors(struct jsonld_reader *r, struct authors *authors)
{
    struct text name = {WB_SLICE_EMPTY, false}, id = name;
    bool first = true, object = is_next(r, '{');

    if (is_next(r, '"')) {
        name = read_string(r);
    } else if (object || is_next(r, '[')) {
        if (!enter(r))
            return;
        while (next_of(r, object ? '}' : ']', &first)) {
            struct text key = object ? read_key(r) : id;
            if (!object)
                read_authors(r, authors);
            else if (is_key(key, "name"))
                read_text(r, &name);
            else if (is_key(key, "@id"))
                read_text(r, &id);
            else
                skip_value(r);
        }
        r->depth--;
    } else {
        skip_word(r);
    }
    if (name.raw.len && authors->name_count < AUTHORS_MAX)
        authors->names[authors->name_count++] = name;
    else if (name.raw.len == 0 && id.raw.len && authors->id_count < AUTHORS_MAX)
        authors->ids[authors->id_count++] = id;
}

/* ---- objects ----------------------------------------------------------------------------- */

static bool ends_in(struct wb_slice s, const char *end)
{
    return wb_slice_ends(s, wb_slice_str(end));
}

/* Ranks an object by its type: how much it says about the page; 0 if it is about something else. */
static uint8_t rank_of(struct wb_slice type)
{
    static const char *const others[] = {"Organization",          "Person",   "WebSite", "ImageObject", "Comment",
                                         "BreadcrumbList",        "ListItem", "Rating",  "Review",      "SearchAction",
                                         "SiteNavigationElement", "Place",    "Brand",   "Offer"};

    if (type.len == 0)
        return 1;
    if (ends_in(type, "Article") || ends_in(type, "Posting") || ends_in(type, "Report"))
        return 3;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_in(type, others[i]))
            return 0;
    return 2;
}

/* Keeps a property, unless an object of the same or a higher rank had it. */
static void take_fact(struct fact *fact, struct text text, uint8_t rank)
{
    if (text.raw.len && rank > fact->rank)
        *fact = (struct fact){text, rank};
}

/* Takes the properties of an object that has been read completely. */
static void take_item(struct jsonld_reader *r, const struct jsonld_item *item)
{
    uint8_t rank = rank_of(item->type.raw);

    if (item->id.raw.len && item->name.raw.len && r->people_count < PEOPLE_MAX) {
        r->people[r->people_count][0] = item->id;
        r->people[r->people_count++][1] = item->name;
    }
    take_fact(&r->type, item->type, rank);
    take_fact(&r->published, item->published, rank);
    take_fact(&r->modified, item->modified, rank);
    if (item->authors.name_count + item->authors.id_count > 0 && rank > r->authors_rank) {
        r->authors = item->authors;
        r->authors_rank = rank;
    }
}

static void read_items(struct jsonld_reader *r);

/* Reads one member of an object. */
static void read_member(struct jsonld_reader *r, struct jsonld_item *item)
{
    struct text key = read_key(r);

    if (is_key(key, "@type"))
        read_text(r, &item->type);
    else if (is_key(key, "@id"))
        read_text(r, &item->id);
    else if (is_key(key, "name"))
        read_text(r, &item->name);
    else if (is_key(key, "datePublished"))
        read_text(r, &item->published);
    else if (is_key(key, "dateModified"))
        read_text(r, &item->modified);
    else if (is_key(key, "author"))
        read_authors(r, &item->authors);
    else if (is_key(key, "@graph") || is_key(key, "mainEntity") || is_key(key, "mainEntityOfPage"))
        read_items(r);
    else
        skip_value(r);
}

/* Reads an object that may be about the page, or an array of them. */
static void read_items(struct jsonld_reader *r)
{
    bool first = true, object = is_next(r, '{');
    struct jsonld_item item = {.type = {WB_SLICE_EMPTY, false}};

    if (!object && !is_next(r, '[')) {
        skip_value(r);
        return;
    }
    item.id = item.name = item.published = item.modified = item.type;
    if (!enter(r))
        return;
    while (next_of(r, object ? '}' : ']', &first)) {
        if (object)
            read_member(r, &item);
        else
            read_items(r);
    }
    r->depth--;
    if (object && !r->bad)
        take_item(r, &item);
}

/* ---- text -------------------------------------------------------------------------------- */

/* Reads the four hexadecimal digits at p; false if they are not there. */
static bool read_unit(const char *p, const char *end, uint32_t *unit_out)
{
    *unit_out = 0;
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        int digit = wb_hex_digit(p[i]);
        if (digit < 0)
            return false;
        *unit_out = *unit_out << 4 | (uint32_t)digit;
    }
    return true;
}

/* Decodes the escape sequence at p, a backslash and at least one more byte; returns its length. */
static size_t read_escape(const char *p, const char *end, uint32_t *cp_out)
{
    static const char letters[] = "bfnrt", means[] = "\b\f\n\r\t";
    const char *letter = p[1] ? strchr(letters, p[1]) : NULL;
    uint32_t unit, low;

    *cp_out = letter ? (uint8_t)means[letter - letters] : (uint8_t)p[1];
    if (p[1] != 'u' || !read_unit(p + 2, end, &unit))
        return 2;
    *cp_out = unit;
    bool high = *cp_out >= 0xd800 && *cp_out < 0xdc00;
    if (high && end - p >= 12 && p[6] == '\\' && p[7] == 'u' && read_unit(p + 8, end, &low) && low >= 0xdc00 &&
        low < 0xe000) {
        *cp_out = 0x10000 + ((*cp_out - 0xd800) << 10) + (low - 0xdc00);
        return 12;
    }
    if (*cp_out >= 0xd800 && *cp_out < 0xe000)
        *cp_out = 0xfffd;
    return 6;
}

/* Decodes a string into `at`, at most max bytes; returns the length. */
static size_t decode_text(struct text text, char *at, size_t max)
{
    const char *p = text.raw.ptr, *end = p + text.raw.len;
    size_t n = 0;

    while (p < end) {
        char bytes[4] = {*p};
        size_t len = wb_utf8_length(p, (size_t)(end - p)), taken = len ? len : 1;
        if (*p == '\\' && end - p > 1 && (uint8_t)p[1] < 0x80) {
            uint32_t cp;
            taken = read_escape(p, end, &cp);
            len = wb_utf8_encode(cp, bytes);
        } else {
            memcpy(bytes, p, len);
        }
        if (n + len > max)
            break;
        memcpy(at + n, bytes, len);
        n += len;
        p += taken;
    }
    return n;
}

/* Gets a string as UTF-8, at most max bytes: part of the script if possible, otherwise a copy. */
static int keep_text(struct wb_arena *arena, struct text text, size_t max, struct wb_slice *kept_out)
{
    *kept_out = text.raw;
    if (!text.escaped && text.raw.len <= max)
        return 0;
    char *at = wb_arena_take(arena, max);
    if (!at)
        return WB_E_NOMEM;
    size_t len = decode_text(text, at, max);
    wb_arena_untake(arena, max - len);
    *kept_out = wb_slice(at, len);
    return 0;
}

/* Finds the names of authors who are only given by their ids. */
static void find_people(struct jsonld_reader *r)
{
    struct authors *authors = &r->authors;

    for (size_t i = 0; i < authors->id_count; i++)
        for (size_t k = 0; k < r->people_count && authors->name_count < AUTHORS_MAX; k++)
            if (wb_slice_equal(authors->ids[i].raw, r->people[k][0].raw)) {
                authors->names[authors->name_count++] = r->people[k][1];
                break;
            }
}

/* Joins the names of the authors. */
static int keep_authors(struct wb_arena *arena, const struct authors *authors, struct wb_slice *kept_out)
{
    size_t room = AUTHORS_MAX * (NAME_MAX + 2), n = 0;

    *kept_out = WB_SLICE_EMPTY;
    if (authors->name_count == 0)
        return 0;
    char *at = wb_arena_take(arena, room);
    if (!at)
        return WB_E_NOMEM;
    for (size_t i = 0; i < authors->name_count; i++) {
        if (n > 0) {
            memcpy(at + n, ", ", 2);
            n += 2;
        }
        n += decode_text(authors->names[i], at + n, NAME_MAX);
    }
    wb_arena_untake(arena, room - n);
    *kept_out = wb_slice(at, n);
    return 0;
}

/* Removes the comment that old browsers and XHTML needed around a script. */
static struct wb_slice strip_wrapping(struct wb_slice s)
{
    static const char *const starts[] = {"<!--",         "//<![CDATA[", "/*<![CDATA[*/",
                                         "// <![CDATA[", "<![CDATA[",   "/* <![CDATA[ */"};

    s = wb_slice_trim(s);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (wb_slice_starts(s, wb_slice_str(starts[i])))
            return wb_slice_trim(wb_slice(s.ptr + strlen(starts[i]), s.len - strlen(starts[i])));
    return s;
}

/* The last part of a type: "Article" for "https://schema.org/Article" and "schema:Article". */
static struct wb_slice last_part(struct wb_slice type)
{
    size_t from = type.len;

    while (from > 0 && !strchr("/#:", type.ptr[from - 1]))
        from--;
    return wb_slice(type.ptr + from, type.len - from);
}

int wb_jsonld_read(struct wb_arena *arena, struct wb_slice text, struct wb_jsonld *facts_out)
{
    struct jsonld_reader r = {.bad = false};

    *facts_out = (struct wb_jsonld){WB_SLICE_EMPTY, WB_SLICE_EMPTY, WB_SLICE_EMPTY, WB_SLICE_EMPTY};
    text = strip_wrapping(text);
    if (text.len > WB_JSONLD_MAX_BYTES)
        return 0;
    r.at = text.ptr;
    r.end = text.ptr + text.len;
    r.type.text.raw = r.published.text.raw = r.modified.text.raw = WB_SLICE_EMPTY;
    read_items(&r);
    if (r.bad)
        return 0;
    find_people(&r);
    int err = keep_text(arena, r.type.text, TYPE_MAX, &facts_out->type);
    facts_out->type = last_part(facts_out->type);
    if (err == 0)
        err = keep_text(arena, r.published.text, DATE_MAX, &facts_out->published);
    if (err == 0)
        err = keep_text(arena, r.modified.text, DATE_MAX, &facts_out->modified);
    return err < 0 ? err : keep_authors(arena, &r.authors, &facts_out->author);
}
