/* spec.c - reads what is asked for by name, turns it into bytes and back, and compares it (spec.h). */
#include "stream/spec.h"
#include "base/date.h"
#include "base/error.h"
#include "base/fields.h"

#include <inttypes.h>
#include <stdio.h>

/* The things that a token stands for: if they are asked for again, they must be the same. */
enum wb_spec_given {
    GIVEN_SITE = 1 << 0,
    GIVEN_SUFFIX = 1 << 1,
    GIVEN_SINCE = 1 << 2,
    GIVEN_UNTIL = 1 << 3,
    GIVEN_TYPE = 1 << 4,
    GIVEN_LANG = 1 << 5,
    GIVEN_STATUS = 1 << 6,
    GIVEN_QUERY = 1 << 7,
    GIVEN_ORDER = 1 << 8,
    GIVEN_LIMIT = 1 << 9,
    GIVEN_PARTITION = 1 << 10,
    GIVEN_LATEST = 1 << 11,
    GIVEN_VERSIONS = 1 << 12,
};

#define PARTS_MAX 1000000

static const char *const order_names[] = {
    [WB_STREAM_STORED] = "stored", [WB_STREAM_URL] = "url",           [WB_STREAM_RANK] = "rank",
    [WB_STREAM_DATE] = "date",     [WB_STREAM_MODIFIED] = "modified",
};
#define CRAWL_ORDER "crawl" /* the WebBase paper's word for the order in which pages were fetched: "date" */
#define ORDERS (sizeof order_names / sizeof *order_names)

/* ---- reading by name ----------------------------------------------------------------------------- */

static int set_order(struct wb_stream_spec *spec, struct wb_slice value)
{
    bool reverse = value.len && value.ptr[0] == '-';
    struct wb_slice name = reverse ? wb_slice(value.ptr + 1, value.len - 1) : value;

    if (wb_slice_equal(name, WB_SLICE_LIT(CRAWL_ORDER)))
        name = wb_slice_str(order_names[WB_STREAM_DATE]);
    for (size_t i = 0; i < ORDERS; i++)
        if (wb_slice_equal(name, wb_slice_str(order_names[i]))) {
            spec->order = (enum wb_stream_order)i;
            spec->reverse = reverse;
            return 0;
        }
    return wb_fail(WB_E_INVALID,
                   "order takes stored, url, rank, date, crawl or modified, or one of them after a '-', not '%.*s'",
                   WB_SLICE_ARG(value));
}

static int set_limit(struct wb_stream_spec *spec, struct wb_slice value)
{
    if (wb_slice_to_u64(value, &spec->limit) && spec->limit > 0)
        return 0;
    return wb_fail(WB_E_INVALID, "limit takes a number of at least 1, not '%.*s'", WB_SLICE_ARG(value));
}

static int set_partition(struct wb_stream_spec *spec, struct wb_slice value)
{
    const char *slash = memchr(value.ptr, '/', value.len);
    size_t at = slash ? (size_t)(slash - value.ptr) : 0;
    uint64_t part = 0, parts = 0;

    if (!slash || !wb_slice_to_u64(wb_slice(value.ptr, at), &part) ||
        !wb_slice_to_u64(wb_slice(slash + 1, value.len - at - 1), &parts) || part < 1 || part > parts ||
        parts > PARTS_MAX)
        return wb_fail(WB_E_INVALID, "partition takes I/N, such as 2/3, where I counts from 1 to N, not '%.*s'",
                       WB_SLICE_ARG(value));
    spec->part = (uint32_t)part;
    spec->parts = (uint32_t)parts;
    return 0;
}

static int set_flag(const char *name, struct wb_slice value, bool *flag)
{
    *flag = value.len == 0 || wb_slice_equal(value, WB_SLICE_LIT("1"));
    if (*flag || wb_slice_equal(value, WB_SLICE_LIT("0")))
        return 0;
    return wb_fail(WB_E_INVALID, "%s takes 1 or 0, not '%.*s'", name, WB_SLICE_ARG(value));
}

static int set_latest(struct wb_stream_spec *spec, struct wb_slice value)
{
    bool latest;
    int err = set_flag("latest", value, &latest);

    if (err == 0 && latest)
        spec->state = WB_STREAM_LATEST;
    return err;
}

static int set_name(struct wb_stream_spec *spec, const char *name, struct wb_slice value, struct wb_slice *out)
{
    int err = wb_store_name_check(value);

    if (err < 0)
        return wb_fail(WB_E_INVALID,
                       "%s: a stream's name is 1 to %d letters, digits, '.', '_' or '-', and not a "
                       "number, unlike '%.*s'",
                       name, WB_STORE_NAME_MAX, WB_SLICE_ARG(value));
    return wb_arena_copy(&spec->selection.texts, value, out);
}

static int set_stream(struct wb_stream_spec *spec, const char *name, struct wb_slice value)
{
    if (strcmp(name, "order") == 0)
        return set_order(spec, value);
    if (strcmp(name, "limit") == 0)
        return set_limit(spec, value);
    if (strcmp(name, "partition") == 0)
        return set_partition(spec, value);
    if (strcmp(name, "latest") == 0)
        return set_latest(spec, value);
    if (strcmp(name, "versions") == 0)
        return set_flag(name, value, &spec->versions);
    if (strcmp(name, "resume") == 0)
        return wb_arena_copy(&spec->selection.texts, value, &spec->resume);
    if (strcmp(name, "name") == 0)
        return set_name(spec, name, value, &spec->name);
    if (strcmp(name, "join") == 0)
        return set_name(spec, name, value, &spec->join);
    if (strcmp(name, "snapshot") != 0)
        return wb_fail(WB_E_NOTFOUND, "there is no parameter '%s'", name);
    if (value.len == 0)
        return wb_fail(WB_E_INVALID, "snapshot takes the number or the name of a snapshot");
    spec->state = WB_STREAM_SNAPSHOT;
    return wb_arena_copy(&spec->selection.texts, value, &spec->snapshot);
}

/* The bit of a name; 0 if a token does not stand for it. */
static unsigned given_bit(const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } bits[] = {
        {"site", GIVEN_SITE},         {"sites", GIVEN_SITE},          {"suffix", GIVEN_SUFFIX},
        {"since", GIVEN_SINCE},       {"until", GIVEN_UNTIL},         {"type", GIVEN_TYPE},
        {"lang", GIVEN_LANG},         {"status", GIVEN_STATUS},       {"query", GIVEN_QUERY},
        {"order", GIVEN_ORDER},       {"limit", GIVEN_LIMIT},         {"latest", GIVEN_LATEST},
        {"versions", GIVEN_VERSIONS}, {"partition", GIVEN_PARTITION},
    };

    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (strcmp(name, bits[i].name) == 0)
            return bits[i].bit;
    return 0;
}

int wb_stream_spec_set(struct wb_stream_spec *spec, const char *name, struct wb_slice value, bool files)
{
    int err = wb_selection_set(&spec->selection, name, value, files);

    if (err == WB_E_NOTFOUND && given_bit(name) != GIVEN_SITE) /* a file of sites may be missing too */
        err = set_stream(spec, name, value);
    if (err == 0)
        spec->given |= given_bit(name);
    return err;
}

void wb_stream_spec_release(struct wb_stream_spec *spec)
{
    wb_selection_release(&spec->selection);
    *spec = WB_STREAM_SPEC_INIT;
}

int wb_spec_check(const struct wb_stream_spec *spec)
{
    if (spec->given & GIVEN_LATEST && spec->state == WB_STREAM_SNAPSHOT)
        return wb_fail(WB_E_INVALID, "latest and snapshot exclude each other");
    if (spec->versions && spec->state == WB_STREAM_SNAPSHOT)
        return wb_fail(WB_E_INVALID, "versions and snapshot exclude each other: a snapshot has one version of a page");
    if (spec->name.len && spec->resume.len)
        return wb_fail(WB_E_INVALID, "name and resume exclude each other: the repository knows the place of a "
                                     "named stream");
    if (spec->join.len)
        return wb_fail(WB_E_INVALID, "join needs a server: workers share a stream that one process deals out");
    return 0;
}

/* ---- bytes --------------------------------------------------------------------------------------- */

enum { FLAG_VERSIONS = 1, FLAG_REVERSE = 2, FLAG_SINCE = 4, FLAG_UNTIL = 8 };

static int put_number(struct wb_buf *out, uint64_t v)
{
    int err = wb_buf_reserve(out, WB_VARINT_MAX);

    if (err == 0)
        out->len += wb_put_varint(out->ptr + out->len, v);
    return err;
}

static int put_text(struct wb_buf *out, struct wb_slice text)
{
    int err = put_number(out, text.len);

    return err == 0 ? wb_buf_append_slice(out, text) : err;
}

static int put_texts(struct wb_buf *out, const struct wb_slice *items, size_t count)
{
    int err = put_number(out, count);

    for (size_t i = 0; err == 0 && i < count; i++)
        err = put_text(out, items[i]);
    return err;
}

int wb_spec_encode(const struct wb_stream_spec *spec, struct wb_buf *out)
{
    const struct wb_selection *s = &spec->selection;
    unsigned flags = (spec->versions ? FLAG_VERSIONS : 0) | (spec->reverse ? FLAG_REVERSE : 0) |
                     (s->since_ms != INT64_MIN ? FLAG_SINCE : 0) | (s->until_ms != INT64_MAX ? FLAG_UNTIL : 0);
    uint64_t numbers[] = {flags,       spec->order, spec->state,   spec->part,
                          spec->parts, spec->limit, s->status_min, s->status_max};
    int err = 0;

    for (size_t i = 0; err == 0 && i < sizeof numbers / sizeof *numbers; i++)
        err = put_number(out, numbers[i]);
    if (err == 0 && flags & FLAG_SINCE)
        err = put_number(out, wb_zigzag((uint64_t)s->since_ms));
    if (err == 0 && flags & FLAG_UNTIL)
        err = put_number(out, wb_zigzag((uint64_t)s->until_ms));
    if (err == 0)
        err = put_text(out, s->type);
    if (err == 0)
        err = put_text(out, s->lang);
    if (err == 0)
        err = put_text(out, s->query);
    if (err == 0)
        err = put_texts(out, s->sites.items, s->sites.count);
    return err == 0 ? put_texts(out, s->suffixes.items, s->suffixes.count) : err;
}

static int take_text(struct wb_fields *fields, struct wb_arena *arena, struct wb_slice *out)
{
    return wb_arena_copy(arena, wb_fields_take_text(fields), out);
}

#define take_texts(fields, arena, vec, err)                                                                            \
    for (uint64_t left_ = wb_fields_take(fields, UINT32_MAX); (err) == 0 && (fields)->ok && left_ > 0; left_--) {      \
        struct wb_slice text_ = WB_SLICE_EMPTY;                                                                        \
        (err) = take_text(fields, arena, &text_);                                                                      \
        if ((err) == 0 && (fields)->ok)                                                                                \
            (err) = wb_vec_push(vec, text_);                                                                           \
    }

int wb_spec_decode(struct wb_slice bytes, struct wb_stream_spec *spec_out)
{
    struct wb_fields fields = wb_fields_of(bytes);
    struct wb_selection *s = &spec_out->selection;
    int err = 0;

    *spec_out = WB_STREAM_SPEC_INIT;
    unsigned flags = (unsigned)wb_fields_take(&fields, FLAG_VERSIONS | FLAG_REVERSE | FLAG_SINCE | FLAG_UNTIL);
    spec_out->versions = flags & FLAG_VERSIONS;
    spec_out->reverse = flags & FLAG_REVERSE;
    spec_out->order = (enum wb_stream_order)wb_fields_take(&fields, ORDERS - 1);
    spec_out->state = (enum wb_stream_state)wb_fields_take(&fields, WB_STREAM_SNAPSHOT);
    spec_out->part = (uint32_t)wb_fields_take(&fields, PARTS_MAX);
    spec_out->parts = (uint32_t)wb_fields_take(&fields, PARTS_MAX);
    spec_out->limit = wb_fields_take(&fields, UINT64_MAX);
    s->status_min = (unsigned)wb_fields_take(&fields, 999);
    s->status_max = (unsigned)wb_fields_take(&fields, 999);
    if (flags & FLAG_SINCE)
        s->since_ms = (int64_t)wb_unzigzag(wb_fields_take(&fields, UINT64_MAX));
    if (flags & FLAG_UNTIL)
        s->until_ms = (int64_t)wb_unzigzag(wb_fields_take(&fields, UINT64_MAX));
    err = take_text(&fields, &s->texts, &s->type);
    if (err == 0)
        err = take_text(&fields, &s->texts, &s->lang);
    if (err == 0)
        err = take_text(&fields, &s->texts, &s->query);
    take_texts(&fields, &s->texts, &s->sites, err);
    take_texts(&fields, &s->texts, &s->suffixes, err);
    if (err < 0)
        return err;
    bool parts = spec_out->parts ? spec_out->part >= 1 && spec_out->part <= spec_out->parts : spec_out->part == 0;
    return fields.ok && fields.at == fields.end && parts ? 0 : wb_fail(WB_E_CORRUPT, "the selection is damaged");
}

/* ---- comparing ----------------------------------------------------------------------------------- */

static bool same_texts(const struct wb_slice *a, size_t a_count, const struct wb_slice *b, size_t b_count)
{
    for (size_t i = 0; i < a_count && i < b_count; i++)
        if (!wb_slice_equal(a[i], b[i]))
            return false;
    return a_count == b_count;
}

static unsigned differences(const struct wb_stream_spec *a, const struct wb_stream_spec *b)
{
    const struct wb_selection *x = &a->selection, *y = &b->selection;

    return (same_texts(x->sites.items, x->sites.count, y->sites.items, y->sites.count) ? 0 : GIVEN_SITE) |
           (same_texts(x->suffixes.items, x->suffixes.count, y->suffixes.items, y->suffixes.count) ? 0 : GIVEN_SUFFIX) |
           (x->since_ms == y->since_ms ? 0 : GIVEN_SINCE) | (x->until_ms == y->until_ms ? 0 : GIVEN_UNTIL) |
           (wb_slice_equal(x->type, y->type) ? 0 : GIVEN_TYPE) | (wb_slice_equal(x->lang, y->lang) ? 0 : GIVEN_LANG) |
           (x->status_min == y->status_min && x->status_max == y->status_max ? 0 : GIVEN_STATUS) |
           (wb_slice_equal(x->query, y->query) ? 0 : GIVEN_QUERY) |
           (a->order == b->order && a->reverse == b->reverse ? 0 : GIVEN_ORDER) |
           (a->limit == b->limit ? 0 : GIVEN_LIMIT) |
           (a->part == b->part && a->parts == b->parts ? 0 : GIVEN_PARTITION) |
           ((a->state == WB_STREAM_LATEST) == (b->state == WB_STREAM_LATEST) ? 0 : GIVEN_LATEST) |
           (a->versions == b->versions ? 0 : GIVEN_VERSIONS);
}

int wb_spec_agree(const struct wb_stream_spec *asked, const struct wb_stream_spec *known, const char *what)
{
    static const char *const names[] = {"site",  "suffix", "since", "until",     "type",   "lang",    "status",
                                        "query", "order",  "limit", "partition", "latest", "versions"};
    unsigned wrong = differences(asked, known) & asked->given;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wrong >> i & 1)
            return wb_fail(WB_E_INVALID,
                           "%s stands for a stream with another '%s'; leave that out, or start a new "
                           "stream",
                           what, names[i]);
    return 0;
}

/* ---- and back to names --------------------------------------------------------------------------- */

struct name_walk {
    int (*each)(void *context, const char *name, struct wb_slice value);
    void *context;
    int err;
};

static void tell(struct name_walk *walk, const char *name, struct wb_slice value)
{
    if (walk->err == 0)
        walk->err = walk->each(walk->context, name, value);
}

static void tell_time(struct name_walk *walk, const char *name, int64_t time_ms)
{
    char text[WB_DATE_TEXT_MAX];

    if (time_ms == INT64_MIN || time_ms == INT64_MAX)
        return;
    wb_date_format(time_ms, text);
    tell(walk, name, wb_slice_str(text));
}

static void tell_selection(struct name_walk *walk, const struct wb_selection *s)
{
    char status[32];

    for (size_t i = 0; i < s->sites.count; i++)
        tell(walk, "site", s->sites.items[i]);
    for (size_t i = 0; i < s->suffixes.count; i++)
        tell(walk, "suffix", s->suffixes.items[i]);
    tell_time(walk, "since", s->since_ms);
    tell_time(walk, "until", s->until_ms);
    if (s->type.len)
        tell(walk, "type", s->type);
    if (s->lang.len)
        tell(walk, "lang", s->lang);
    if (s->query.len)
        tell(walk, "query", s->query);
    if (s->status_min == s->status_max)
        snprintf(status, sizeof status, "%u", s->status_min);
    else
        snprintf(status, sizeof status, "%uxx", s->status_min / 100);
    if (s->status_max)
        tell(walk, "status", wb_slice_str(status));
}

static void tell_stream(struct name_walk *walk, const struct wb_stream_spec *spec)
{
    char text[64];

    snprintf(text, sizeof text, "%s%s", spec->reverse ? "-" : "", order_names[spec->order]);
    if (spec->given & GIVEN_ORDER)
        tell(walk, "order", wb_slice_str(text));
    snprintf(text, sizeof text, "%" PRIu64, spec->limit);
    if (spec->limit)
        tell(walk, "limit", wb_slice_str(text));
    snprintf(text, sizeof text, "%" PRIu32 "/%" PRIu32, spec->part, spec->parts);
    if (spec->parts)
        tell(walk, "partition", wb_slice_str(text));
    if (spec->state == WB_STREAM_LATEST)
        tell(walk, "latest", WB_SLICE_LIT("1"));
    if (spec->state == WB_STREAM_SNAPSHOT)
        tell(walk, "snapshot", spec->snapshot);
    if (spec->versions)
        tell(walk, "versions", WB_SLICE_LIT("1"));
    if (spec->resume.len)
        tell(walk, "resume", spec->resume);
    if (spec->name.len)
        tell(walk, "name", spec->name);
    if (spec->join.len)
        tell(walk, "join", spec->join);
}

int wb_stream_spec_each(const struct wb_stream_spec *spec,
                        int (*each)(void *context, const char *name, struct wb_slice value), void *context)
{
    struct name_walk walk = {each, context, 0};

    tell_selection(&walk, &spec->selection);
    tell_stream(&walk, spec);
    return walk.err;
}
