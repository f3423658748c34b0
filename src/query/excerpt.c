/*
 * excerpt.c - decides which part of a page a snippet is made of: pages may have megabytes, and a list of results has
 * ten of them.
 *
 *   the first 8 KB, if all wanted words are in its main text, one of them in prose, and there is enough text
 *   the first 32 KB, if any of them is, and the others are not further on
 *   what is around a place further on that looks like a wanted word: a few such places
 *   the whole page, if it is not long or its bytes may spell the words in a way that was not looked for
 *   its beginning
 *
 * A place is looked for in the bytes of the page, which is much faster than extracting its text. That may find too much
 * (attributes, parts of scripts), so the text around it is extracted, and must have the word.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "query/present.h"

#include <string.h>

enum {
    FIRST_BYTES = 8 << 10,
    PART_BYTES = 32 << 10,
    WHOLE_BYTES = 128 << 10, /* a page that is not longer is read from end to end if nothing else helps */
    BEFORE_BYTES = 2 << 10,  /* of what is around a place */
    AFTER_BYTES = 4 << 10,
    SCRIPT_BYTES = 64 << 10, /* how far back the beginning of a script is looked for */
    ENOUGH_BYTES = 160,      /* a shorter snippet says too little if the page has more */
    TRIES = 8,
    TRIES_MORE = 3,         /* if what the first part has may do... */
    MORE_BYTES = 96 << 10,  /* ...and then not further on than this */
    NEEDLE_MAX = 32,
    WANTED_MAX = 16, /* words that are looked for */
};

/* ---- what to look for ---------------------------------------------------------------------------- */

/* How words of the page that match a wanted one begin: in lower case, capitalised, and in capitals. */
struct needle {
    char texts[3][NEEDLE_MAX];
    size_t len;
};

static size_t common_length(struct wb_slice a, struct wb_slice b)
{
    size_t len = 0;

    while (len < a.len && len < b.len && a.ptr[len] == b.ptr[len])
        len++;
    return len;
}

/* False: the words may be spelt in ways that cannot be looked for. */
static bool make_needle(const struct wb_wanted *wanted, struct needle *needle)
{
    struct wb_slice text = wanted->exact;

    for (size_t i = 0; !wanted->prefix && i < wanted->stem_count; i++) {
        struct wb_slice stem = wanted->stems[i];
        stem.len -= stem.len > 3; /* "happi" is the stem of "happy" */
        text.len = text.len ? common_length(text, stem) : 0;
        text = text.len || wanted->exact.len || i > 0 ? text : stem;
    }
    needle->len = text.len < NEEDLE_MAX ? text.len : NEEDLE_MAX;
    for (size_t i = 0; i < needle->len; i++) {
        char c = text.ptr[i];
        if (!wb_ascii_is_letter(c) && !wb_ascii_is_digit(c))
            return false;
        char upper = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        needle->texts[0][i] = c;
        needle->texts[1][i] = i == 0 ? upper : c;
        needle->texts[2][i] = upper;
    }
    return needle->len >= 2;
}

/* The first place at or after `from` where a word begins like this; the length of the body if there is none. */
static size_t find_needle(struct wb_slice body, size_t from, const struct needle *needle)
{
    size_t best = body.len;

    for (size_t i = 0; i < sizeof needle->texts / sizeof *needle->texts; i++)
        for (size_t at = from; at < best;) {
            const char *found = memmem(body.ptr + at, best - at, needle->texts[i], needle->len);
            if (!found)
                break;
            at = (size_t)(found - body.ptr);
            char before = at ? body.ptr[at - 1] : ' ';
            if (!wb_ascii_is_letter(before) && !wb_ascii_is_digit(before))
                best = at;
            at++;
        }
    return best;
}

/* ---- what is around a place ------------------------------------------------------------------------ */

static bool is_html(const struct wb_page *page)
{
    return wb_slice_equal(page->type, WB_SLICE_LIT("text/html")) ||
           wb_slice_equal(page->type, WB_SLICE_LIT("application/xhtml+xml"));
}

/* Whether an element or comment of this kind begins before the end of the bytes and does not end in them. */
static bool is_open(struct wb_slice bytes, struct wb_slice begin, struct wb_slice end)
{
    const char *at = bytes.ptr, *stop = bytes.ptr + bytes.len;

    while ((at = memmem(at, (size_t)(stop - at), begin.ptr, begin.len))) {
        at = memmem(at, (size_t)(stop - at), end.ptr, end.len);
        if (!at)
            return true;
    }
    return false;
}

static bool is_visible(struct wb_slice body, size_t at)
{
    size_t back = at < SCRIPT_BYTES ? at : SCRIPT_BYTES;
    struct wb_slice bytes = wb_slice(body.ptr + at - back, back);

    return !is_open(bytes, WB_SLICE_LIT("<script"), WB_SLICE_LIT("</script")) &&
           !is_open(bytes, WB_SLICE_LIT("<style"), WB_SLICE_LIT("</style")) &&
           !is_open(bytes, WB_SLICE_LIT("<!--"), WB_SLICE_LIT("-->"));
}

/*
 * Makes *part what is around a place, from the beginning of a tag on. What the page says about its encoding is not in
 * there, so false is returned unless the bytes speak for themselves.
 */
static bool cut_part(const struct wb_page *page, size_t at, struct wb_page *part)
{
    struct wb_slice body = page->body;
    size_t begin = at > BEFORE_BYTES ? at - BEFORE_BYTES : 0,
           end = body.len - at > AFTER_BYTES ? at + AFTER_BYTES : body.len;
    const char *tag = memchr(body.ptr + begin, is_html(page) ? '<' : '\n', at - begin);

    WB_CHECK(begin <= at && at <= end);
    begin = tag ? (size_t)(tag - body.ptr) : begin;
    while (begin < at && ((unsigned char)body.ptr[begin] & 0xc0) == 0x80)
        begin++;
    while (end > at && end < body.len && ((unsigned char)body.ptr[end] & 0xc0) == 0x80)
        end--;
    *part = *page;
    part->body = wb_slice(body.ptr + begin, end - begin);
    part->charset = WB_SLICE_LIT("utf-8");
    return wb_utf8_valid(part->body);
}

/* ---- snippets -------------------------------------------------------------------------------------- */

static int make(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
                struct wb_buf *html_out, struct wb_snippet_found *found_out)
{
    wb_buf_clear(html_out);
    return wb_snippet(snippeter, page, wish, html_out, found_out);
}

/* What has been made so far of parts that lie further on. */
struct further {
    struct wb_buf rest; /* the first snippet whose words are not in prose; empty: none */
    unsigned tries, tries_max;
    bool unsure; /* the words may be spelt in ways that were not looked for */
};

/* One place. Returns 1 if it has wanted words in its prose. What it has elsewhere is kept for want of better. */
static int try_place(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
                     size_t at, struct further *f, struct wb_buf *html_out)
{
    struct wb_snippet_found found = {{0}};
    struct wb_page part;

    f->unsure = !cut_part(page, at, &part);
    if (f->unsure || !is_visible(page->body, at))
        return 0;
    int err = make(snippeter, &part, wish, html_out, &found);
    if (err == 0 && !found.in[0] && (found.in[1] || found.in[2]) && f->rest.len == 0)
        err = wb_buf_append_slice(&f->rest, wb_buf_slice(html_out));
    return err < 0 ? err : found.in[0] != 0;
}

/* Tries places behind the first part. Returns 1 if one of them was good, 0 if none was. */
static int try_places(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
                      struct further *f, struct wb_buf *html_out)
{
    int got = 0;

    for (size_t i = 0; got == 0 && i < wish->count && i < WANTED_MAX && !f->unsure; i++) {
        struct needle needle;
        size_t at = PART_BYTES;
        f->unsure = !make_needle(&wish->wanted[i], &needle);
        for (unsigned own = 0; got == 0 && !f->unsure && own < TRIES / 2 && f->tries < f->tries_max; own++) {
            f->tries++;
            at = find_needle(page->body, at, &needle);
            if (at == page->body.len)
                break;
            got = try_place(snippeter, page, wish, at, f, html_out);
            at += AFTER_BYTES;
            at = at < page->body.len ? at : page->body.len;
        }
    }
    return got;
}

/* Returns 1 if what lies further on is shown, 0 if nothing is worth it, 2 if the whole page is needed, or an error. */
static int look_further(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
                        unsigned tries, struct wb_buf *html_out)
{
    bool text = is_html(page) || wb_slice_equal(page->type, WB_SLICE_LIT("text/plain"));
    struct further f = {.tries_max = tries, .unsure = !text};
    int got = try_places(snippeter, page, wish, &f, html_out);

    if (got == 0 && f.unsure) {
        got = 2;
    } else if (got == 0 && f.rest.len && tries == TRIES) {
        wb_buf_clear(html_out);
        got = wb_buf_append_slice(html_out, wb_buf_slice(&f.rest));
        got = got < 0 ? got : 1;
    }
    wb_buf_release(&f.rest);
    return got;
}

/*
 * The first part lacks words that may be further on in a page that is not long: what is around the first of them is
 * shown instead, if that has no fewer words.
 */
static int look_for_missing(struct wb_snippeter *snippeter, const struct wb_page *page,
                            const struct wb_snippet_wish *wish, uint64_t found, struct wb_buf *html_inout)
{
    struct wb_buf html = WB_BUF_INIT;
    struct wb_snippet_found there = {{0}};
    struct wb_page part;
    struct wb_slice body = page->body;
    int err = 0;

    body.len = body.len < MORE_BYTES ? body.len : MORE_BYTES;
    size_t at = body.len;
    for (size_t i = 0; i < wish->count && i < WANTED_MAX && at == body.len; i++) {
        struct needle needle;
        if (!(found >> i & 1) && make_needle(&wish->wanted[i], &needle))
            at = find_needle(body, PART_BYTES, &needle);
    }
    if (at < body.len && cut_part(page, at, &part) && is_visible(page->body, at))
        err = make(snippeter, &part, wish, &html, &there);
    if (err == 0 && there.in[0] & ~found && __builtin_popcountll(there.in[0]) >= __builtin_popcountll(found)) {
        wb_buf_clear(html_inout);
        err = wb_buf_append_slice(html_inout, wb_buf_slice(&html));
    }
    wb_buf_release(&html);
    return err;
}

/* The words that the page may have; and how many of its first bytes have them all, PART_BYTES if these do not. */
static size_t find_words(const struct wb_page *page, const struct wb_snippet_wish *wish, uint64_t *may_out)
{
    struct wb_slice body = page->body;
    size_t most = 0;

    body.len = body.len < PART_BYTES ? body.len : PART_BYTES;
    *may_out = 0;
    for (size_t i = 0; i < wish->count && i < WANTED_MAX; i++) {
        struct needle needle;
        size_t at = make_needle(&wish->wanted[i], &needle) ? find_needle(body, 0, &needle) : 0;
        if (at == page->body.len)
            continue;
        *may_out |= UINT64_C(1) << i;
        most = at > most ? at : most;
    }
    return most;
}

/* A length not much below `size` at which no word is cut. */
static size_t whole_words(struct wb_slice body, size_t size)
{
    for (size_t len = size; len + NEEDLE_MAX > size; len--)
        if (wb_ascii_is_space(body.ptr[len]) || body.ptr[len] == '<')
            return len;
    return size;
}

/*
 * Makes a snippet of the first `size` bytes. Returns 1 if it is good, 0 if a larger part may give a better one; then
 * *any_out says whether its main text has any wanted word.
 */
static int make_first(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
                      uint64_t may, size_t size, bool *any_out, struct wb_buf *html_out)
{
    struct wb_snippet_found found = {{0}};
    struct wb_page part = *page;

    if (part.body.len > size)
        part.body.len = whole_words(part.body, size);
    int err = make(snippeter, &part, wish, html_out, &found);
    *any_out = err == 0 && (found.in[0] | found.in[1]);
    if (err < 0)
        return err;
    /* Some pages begin with kilobytes of head and menus, and hardly any text. */
    bool long_enough = html_out->len >= ENOUGH_BYTES, all = (may & ~(found.in[0] | found.in[1] | found.in[3])) == 0;
    if (part.body.len == page->body.len || (found.in[0] && all && long_enough))
        return 1;
    if (size == FIRST_BYTES || !found.in[0] || !(long_enough || page->body.len > WHOLE_BYTES))
        return 0;
    if (page->body.len <= WHOLE_BYTES && !all)
        err = look_for_missing(snippeter, page, wish, found.in[0] | found.in[1] | found.in[3], html_out);
    return err < 0 ? err : 1;
}

/* The first part was not good: looks further, and if nothing is better, at the whole page or back at the first part. */
static int make_other(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
                      bool any, struct wb_buf *html_inout)
{
    struct wb_buf first = *html_inout;
    struct wb_snippet_found found;
    struct wb_page part = *page;

    *html_inout = WB_BUF_INIT;
    if (any && part.body.len > MORE_BYTES)
        part.body.len = MORE_BYTES;
    int got = look_further(snippeter, &part, wish, any ? TRIES_MORE : TRIES, html_inout);
    if (got >= 0 && got != 1 && any) {
        wb_buf_release(html_inout);
        *html_inout = first;
        return 0;
    }
    wb_buf_release(&first);
    if (got == 1 || got < 0)
        return got < 0 ? got : 0;
    if (got == 0 && page->body.len > WHOLE_BYTES)
        part.body.len = PART_BYTES;
    return make(snippeter, &part, wish, html_inout, &found);
}

int wb_excerpt(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
               struct wb_buf *html_out)
{
    uint64_t may;
    bool any;
    int got = 0;

    if (find_words(page, wish, &may) < FIRST_BYTES || page->body.len <= FIRST_BYTES)
        got = make_first(snippeter, page, wish, may, FIRST_BYTES, &any, html_out);
    if (got == 0)
        got = make_first(snippeter, page, wish, may, PART_BYTES, &any, html_out);
    if (got == 0)
        got = make_other(snippeter, page, wish, any, html_out);
    return got < 0 ? got : 0;
}
