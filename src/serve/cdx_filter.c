/*
 * cdx_filter.c - filters of the CDX API. Regular expressions are ICU's, with limits on time and memory: they come from
 * clients.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "serve/cdx_server.h"

#include <unicode/uregex.h>
#include <unicode/ustring.h>

enum { PATTERN_MAX = 1000, VALUE_MAX = 4000, TIME_LIMIT = 20, STACK_BYTES = 1 << 20 };

struct cdx_regex {
    URegularExpression *icu;
    UChar value[VALUE_MAX];
};

static int compile(struct cdx_filter *filter)
{
    WB_CHECK(filter->kind == CDX_REGEX);
    WB_CHECK(!filter->regex);
    UChar pattern[PATTERN_MAX];
    UErrorCode status = U_ZERO_ERROR;
    UParseError where;
    int32_t len = 0;

    u_strFromUTF8WithSub(pattern, PATTERN_MAX, &len, filter->text.ptr, (int32_t)filter->text.len, 0xfffd, NULL,
                         &status);
    if (U_FAILURE(status) || filter->text.len > PATTERN_MAX)
        return wb_fail(WB_E_INVALID, "filter: the expression is longer than %d characters", PATTERN_MAX);
    filter->regex = wb_alloc_zero(1, sizeof *filter->regex);
    if (!filter->regex)
        return WB_E_NOMEM;
    filter->regex->icu = uregex_open(pattern, len, 0, &where, &status);
    if (U_SUCCESS(status))
        uregex_setTimeLimit(filter->regex->icu, TIME_LIMIT, &status);
    if (U_SUCCESS(status))
        uregex_setStackLimit(filter->regex->icu, STACK_BYTES, &status);
    if (U_FAILURE(status))
        return wb_fail(WB_E_INVALID, "filter: %.*s is not a regular expression (%s)", WB_SLICE_ARG(filter->text),
                       u_errorName(status));
    return 0;
}

int cdx_filter_read(struct wb_slice text, bool ia, struct cdx_filter *filter_out)
{
    struct wb_slice rest = text;
    const char *colon;

    *filter_out = (struct cdx_filter){.kind = ia ? CDX_REGEX : CDX_CONTAINS, .whole = ia};
    if (rest.len && rest.ptr[0] == '!') {
        filter_out->not = true;
        rest = wb_slice(rest.ptr + 1, rest.len - 1);
    }
    if (rest.len && (rest.ptr[0] == '=' || rest.ptr[0] == '~')) {
        filter_out->kind = rest.ptr[0] == '=' ? CDX_EQUALS : CDX_REGEX;
        rest = wb_slice(rest.ptr + 1, rest.len - 1);
    }
    colon = rest.len ? memchr(rest.ptr, ':', rest.len) : NULL;
    struct wb_slice name = colon ? wb_slice(rest.ptr, (size_t)(colon - rest.ptr)) : WB_SLICE_EMPTY;
    if (name.len && !cdx_field_find(name, &filter_out->field))
        return cdx_field_unknown("filter", name);
    if (!name.len)
        return wb_fail(WB_E_INVALID,
                       "filter=%.*s: write [!][=|~]FIELD:TEXT, with FIELD one of urlkey, timestamp, url, "
                       "mime, status, digest, length, redirect",
                       WB_SLICE_ARG(text));
    filter_out->text = wb_slice(colon + 1, (size_t)(rest.ptr + rest.len - colon - 1));
    return filter_out->kind == CDX_REGEX ? compile(filter_out) : 0;
}

void cdx_filter_release(struct cdx_filter *filter)
{
    if (filter->regex)
        uregex_close(filter->regex->icu);
    wb_free(filter->regex);
    filter->regex = NULL;
}

static int regex_matches(const struct cdx_filter *filter, struct wb_slice value)
{
    struct cdx_regex *regex = filter->regex;
    UErrorCode status = U_ZERO_ERROR;
    int32_t len = 0;

    u_strFromUTF8WithSub(regex->value, VALUE_MAX, &len, value.ptr ? value.ptr : "", (int32_t)value.len, 0xfffd, NULL,
                         &status);
    if (U_FAILURE(status))
        return 0; /* a value that is too long for any filter */
    uregex_setText(regex->icu, regex->value, len, &status);
    UBool found = filter->whole ? uregex_matches(regex->icu, 0, &status) : uregex_lookingAt(regex->icu, 0, &status);
    if (status == U_REGEX_TIME_OUT || status == U_REGEX_STACK_OVERFLOW)
        return wb_fail(WB_E_LIMIT, "filter: the expression %.*s takes too long", WB_SLICE_ARG(filter->text));
    return U_SUCCESS(status) && found;
}

int cdx_filter_matches(const struct cdx_filter *filter, struct wb_slice value)
{
    int found;

    WB_CHECK((filter->kind == CDX_REGEX) == (filter->regex != NULL));
    WB_CHECK(filter->field < CDX_FIELDS);
    if (filter->kind == CDX_REGEX)
        found = regex_matches(filter, value);
    else if (filter->kind == CDX_EQUALS)
        found = wb_slice_equal(value, filter->text);
    else
        found =
            filter->text.len == 0 || (value.len && memmem(value.ptr, value.len, filter->text.ptr, filter->text.len));
    return found < 0 ? found : found != filter->not ;
}
