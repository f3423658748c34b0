/*
 * wantedtypes.c - which media types a crawl stores (--types), and which pages are worth a request for that.
 *
 * A page of another type is not stored. It is still asked for if it is read for its links, as HTML is; and so is one
 * whose name says nothing, because only the answer tells what it is.
 */
#include "crawl/crawl.h"

/* Characters of a type or subtype (RFC 6838, 4.2). */
static bool is_name(struct wb_slice text)
{
    static const char marks[] = "!#$&-^_.+";

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        if (!plain && !(c && strchr(marks, c)))
            return false;
    }
    return text.len > 0;
}

static bool is_any(struct wb_slice text)
{
    return wb_slice_equal(text, WB_SLICE_LIT("*"));
}

/* Splits "image/png" at its slash. False if it has none. */
static bool split_type(struct wb_slice type, struct wb_slice *main_out, struct wb_slice *sub_out)
{
    const char *slash = type.len ? memchr(type.ptr, '/', type.len) : NULL;

    *main_out = *sub_out = WB_SLICE_EMPTY;
    if (!slash)
        return false;
    size_t at = (size_t)(slash - type.ptr);
    *main_out = wb_slice(type.ptr, at);
    *sub_out = wb_slice(slash + 1, type.len - at - 1);
    return true;
}

bool wb_crawl_type_is_sound(struct wb_slice type)
{
    struct wb_slice main, sub;

    if (!split_type(type, &main, &sub))
        return false;
    return is_any(main) ? is_any(sub) : is_name(main) && (is_any(sub) || is_name(sub));
}

static bool matches(struct wb_slice wanted, struct wb_slice type)
{
    struct wb_slice main, sub, type_main, type_sub;

    if (!split_type(wanted, &main, &sub) || !split_type(type, &type_main, &type_sub))
        return false;
    return (is_any(main) || wb_slice_equal_nocase(main, type_main)) &&
           (is_any(sub) || wb_slice_equal_nocase(sub, type_sub));
}

bool wb_crawl_types_have(const struct wb_crawl_types *types, struct wb_slice type)
{
    for (size_t i = 0; i < types->count; i++) {
        struct wb_slice rest = wb_slice_str(types->items[i]);
        for (;;) {
            const char *comma = rest.len ? memchr(rest.ptr, ',', rest.len) : NULL;
            struct wb_slice wanted = wb_slice(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
            if (matches(wanted, type))
                return true;
            if (!comma)
                break;
            rest = wb_slice(comma + 1, rest.len - wanted.len - 1);
        }
    }
    return types->count == 0;
}

/* HTML and XML, in which pages and feeds come. */
static bool has_links(struct wb_slice type)
{
    return wb_slice_equal(type, WB_SLICE_LIT("text/html")) || wb_slice_ends(type, WB_SLICE_LIT("/xml")) ||
           (wb_slice_starts(type, WB_SLICE_LIT("application/")) && wb_slice_ends(type, WB_SLICE_LIT("+xml")));
}

bool wb_crawl_types_promise(const struct wb_crawl_types *types, struct wb_slice path)
{
    if (types->count == 0)
        return true;
    const char *query = path.len ? memchr(path.ptr, '?', path.len) : NULL;
    struct wb_slice type = wb_media_type_of_name(query ? wb_slice(path.ptr, (size_t)(query - path.ptr)) : path);
    bool silent = wb_slice_equal(type, WB_SLICE_LIT("application/octet-stream"));

    return silent || has_links(type) || wb_crawl_types_have(types, type);
}
