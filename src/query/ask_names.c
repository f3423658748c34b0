/*
 * ask_names.c - the names of fields, user columns and sort keys. One table says what the language has.
 */
#include "query/ask_own.h"
#include "base/check.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>

static const struct wb_ask_name names[] = {
    {"title", WB_ASK_TITLE, WB_ASK_CLASS_TEXT, false},
    {"heading", WB_ASK_HEADING, WB_ASK_CLASS_TEXT, false},
    {"url", WB_ASK_URL, WB_ASK_CLASS_TEXT, true},
    {"anchor", WB_ASK_ANCHOR, WB_ASK_CLASS_TEXT, false},
    {"site", WB_ASK_SITE, WB_ASK_CLASS_VALUE, false},
    {"suffix", WB_ASK_SUFFIX, WB_ASK_CLASS_VALUE, false},
    {"link", WB_ASK_LINK, WB_ASK_CLASS_VALUE, false},
    {"linkfrom", WB_ASK_LINKFROM, WB_ASK_CLASS_VALUE, false},
    {"related", WB_ASK_RELATED, WB_ASK_CLASS_VALUE, false},
    {"type", WB_ASK_TYPE, WB_ASK_CLASS_VALUE, false},
    {"lang", WB_ASK_LANG, WB_ASK_CLASS_VALUE, false},
    {"dup", WB_ASK_DUP, WB_ASK_CLASS_DUP, false},
    {"status", WB_ASK_STATUS, WB_ASK_CLASS_WHOLE, false},
    {"inlinks", WB_ASK_INLINKS, WB_ASK_CLASS_WHOLE, true},
    {"outlinks", WB_ASK_OUTLINKS, WB_ASK_CLASS_WHOLE, true},
    {"size", WB_ASK_SIZE, WB_ASK_CLASS_WHOLE, true},
    {"depth", WB_ASK_DEPTH, WB_ASK_CLASS_WHOLE, true},
    {"versions", WB_ASK_VERSIONS, WB_ASK_CLASS_WHOLE, true},
    {"after", WB_ASK_FETCHED, WB_ASK_CLASS_AFTER, false},
    {"before", WB_ASK_FETCHED, WB_ASK_CLASS_BEFORE, false},
    {"changed", WB_ASK_CHANGED, WB_ASK_CLASS_DATE, true},
    {"published", WB_ASK_PUBLISHED, WB_ASK_CLASS_DATE, true},
    {"modified", WB_ASK_MODIFIED, WB_ASK_CLASS_DATE, true},
    {"rank", WB_ASK_RANK, WB_ASK_CLASS_NUMBER, true},
    {"hostrank", WB_ASK_HOSTRANK, WB_ASK_CLASS_NUMBER, true},
};
#define NAMES (sizeof names / sizeof *names)

/* Names that are not fields, but would be ambiguous as sort keys or in the output of `export --facts`. */
static const char *const reserved[] = {"score", "date", "id", "time", "length"};

const struct wb_ask_name *wb_ask_find_name(struct wb_slice name)
{
    for (size_t i = 0; i < NAMES; i++)
        if (wb_slice_equal(name, wb_slice_str(names[i].name)))
            return &names[i];
    return NULL;
}

bool wb_ask_is_field(struct wb_slice name)
{
    return wb_ask_find_name(name) != NULL;
}

const char *wb_ask_field_name(enum wb_ask_field field)
{
    WB_CHECK(field <= WB_ASK_COLUMN);
    for (size_t i = 0; i < NAMES; i++)
        if (names[i].field == field)
            return names[i].name;
    return "";
}

/* Tables in SQLite do not distinguish "Title" from "title", so neither may two names here. */
static bool is_taken(struct wb_slice name)
{
    for (size_t i = 0; i < NAMES; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(names[i].name)))
            return true;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(reserved[i])))
            return true;
    return false;
}

int wb_ask_check_column(struct wb_slice name)
{
    if (name.len == 0)
        return wb_fail(WB_E_INVALID, "a column needs a name");
    if (name.len > WB_ASK_COLUMN_BYTES_MAX)
        return wb_fail(WB_E_INVALID, "the column name %.*s... is longer than %d bytes", 32, name.ptr,
                       WB_ASK_COLUMN_BYTES_MAX);
    bool good = wb_ascii_is_letter(name.ptr[0]);
    for (size_t i = 1; i < name.len; i++) {
        char c = name.ptr[i];
        good = good && (wb_ascii_is_letter(c) || wb_ascii_is_digit(c) || c == '_' || c == '-');
    }
    if (!good)
        return wb_fail(WB_E_INVALID,
                       "'%.*s' cannot be the name of a column: use letters, digits, _ and -, and begin with a letter",
                       WB_SLICE_ARG(name));
    if (is_taken(name))
        return wb_fail(WB_E_INVALID, "'%.*s' cannot be the name of a column: it has a meaning already",
                       WB_SLICE_ARG(name));
    return 0;
}

int wb_ask_sort_parse(struct wb_slice text, const struct wb_ask_options *options, struct wb_ask_sort *sort_out)
{
    struct wb_slice key = text;

    *sort_out = (struct wb_ask_sort){.field = WB_ASK_ANY, .column = WB_SLICE_EMPTY};
    if (key.len && key.ptr[0] == '-') {
        key = wb_slice(key.ptr + 1, key.len - 1);
        sort_out->reverse = true;
    }
    const struct wb_ask_name *name = wb_ask_find_name(key);
    if (wb_slice_equal(key, WB_SLICE_LIT("score")))
        return 0;
    if (wb_slice_equal(key, WB_SLICE_LIT("date"))) {
        sort_out->field = WB_ASK_FETCHED;
        return 0;
    }
    if (name && name->sorts) {
        sort_out->field = name->field;
        return 0;
    }
    if (!name && options && options->has_column && options->has_column(options->context, key)) {
        sort_out->field = WB_ASK_COLUMN;
        sort_out->column = key;
        return 0;
    }
    sort_out->reverse = false;
    return wb_fail(
        WB_E_INVALID,
        "results cannot be sorted by '%.*s': use score, rank, hostrank, date, url, published, modified, changed, "
        "size, inlinks, outlinks, depth, versions or a user column",
        WB_SLICE_ARG(text));
}
