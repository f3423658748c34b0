/*
 * robotstag.c - parses the robots directives of a page: <meta name=robots> and X-Robots-Tag.
 *
 *   noindex, nofollow                      for every agent
 *   otherbot: noindex, nofollow            for otherbot, up to the next name of an agent
 *   unavailable_after: 25 Jun 2010, max-image-preview:large      directives with values, not agents
 *
 * Directives are cumulative: what one of several headers forbids is forbidden. It never looks at
 * robots.txt: that is fetch's.
 */
#include "extract/module.h"

/* The directives that we know. */
static const struct {
    const char *name;
    unsigned flags;
} directives[] = {
    {"noindex", WB_ROBOTSTAG_NOINDEX},
    {"nofollow", WB_ROBOTSTAG_NOFOLLOW},
    {"none", WB_ROBOTSTAG_NOINDEX | WB_ROBOTSTAG_NOFOLLOW},
    {"noarchive", WB_ROBOTSTAG_NOARCHIVE},
    {"nocache", WB_ROBOTSTAG_NOARCHIVE},
    {"nosnippet", WB_ROBOTSTAG_NOSNIPPET},
};

/* Other directives, which are not names of agents even if a colon follows them. */
static const char *const valued[] = {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview",
                                     "all",               "index",       "follow",            "noimageindex",
                                     "notranslate",       "indexifembedded", "noodp",         "noydir"};

/* The flags of a directive; 0 if it means nothing to us. */
static unsigned directive_flags(struct wb_slice word)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if (wb_slice_equal_nocase(word, wb_slice_str(directives[i].name)))
            return directives[i].flags;
    return 0;
}

static bool is_valued(struct wb_slice name)
{
    for (size_t i = 0; i < sizeof valued / sizeof *valued; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(valued[i])))
            return true;
    return false;
}

/*
 * True for the product token of an agent, as in robots.txt. The part of a date before its colon is
 * not one: it starts with a digit or contains blanks.
 */
static bool is_agent(struct wb_slice name)
{
    if (wb_slice_equal(name, WB_SLICE_LIT("*")))
        return true;
    if (name.len == 0 || (name.ptr[0] >= '0' && name.ptr[0] <= '9'))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = wb_ascii_lower(name.ptr[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-_./", c))))
            return false;
    }
    return directive_flags(name) == 0 && !is_valued(name);
}

/* Reads directives that are separated by blanks, because many pages forget the commas. */
static unsigned words_flags(struct wb_slice part)
{
    unsigned flags = 0;

    for (size_t i = 0; i < part.len;) {
        size_t start = i;
        while (i < part.len && !wb_ascii_is_space(part.ptr[i]) && part.ptr[i] != ';')
            i++;
        flags |= directive_flags(wb_slice(part.ptr + start, i - start));
        i++;
    }
    return flags;
}

/* Reads "name: value". A snippet of at most 0 letters means no snippet. */
static unsigned valued_flags(struct wb_slice name, struct wb_slice value)
{
    if (wb_slice_equal_nocase(name, WB_SLICE_LIT("max-snippet")) && wb_slice_equal(value, WB_SLICE_LIT("0")))
        return WB_ROBOTSTAG_NOSNIPPET;
    return directive_flags(name);
}

unsigned wb_robotstag_parse(struct wb_slice value, struct wb_slice agent)
{
    unsigned flags = 0;
    bool ours = true;

    for (size_t at = 0; at < value.len;) {
        const char *comma = memchr(value.ptr + at, ',', value.len - at);
        size_t end = comma ? (size_t)(comma - value.ptr) : value.len;
        struct wb_slice part = wb_slice_trim(wb_slice(value.ptr + at, end - at));
        const char *colon = memchr(part.ptr, ':', part.len);
        at = end + 1;
        if (colon) {
            struct wb_slice name = wb_slice_trim(wb_slice(part.ptr, (size_t)(colon - part.ptr)));
            struct wb_slice rest = wb_slice_trim(wb_slice(colon + 1, part.len - (size_t)(colon + 1 - part.ptr)));
            if (!is_agent(name)) {
                flags |= ours ? valued_flags(name, rest) : 0;
                continue;
            }
            ours = wb_slice_equal(name, WB_SLICE_LIT("*")) || (agent.len && wb_slice_equal_nocase(name, agent));
            part = rest;
            /* A directive with a value may follow: "bot: max-snippet: 0". */
            colon = memchr(part.ptr, ':', part.len);
            if (colon && ours)
                flags |= valued_flags(wb_slice_trim(wb_slice(part.ptr, (size_t)(colon - part.ptr))),
                                      wb_slice_trim(wb_slice(colon + 1, part.len - (size_t)(colon + 1 - part.ptr))));
        }
        if (ours)
            flags |= words_flags(part);
    }
    return flags;
}

unsigned wb_robotstag_of_head(struct wb_slice head, struct wb_slice agent)
{
    struct wb_slice name, value;
    unsigned flags = 0;
    size_t at = 0;

    while (wb_http_header_next(head, &at, &name, &value))
        if (wb_slice_equal_nocase(name, WB_SLICE_LIT("x-robots-tag")))
            flags |= wb_robotstag_parse(value, agent);
    return flags;
}
