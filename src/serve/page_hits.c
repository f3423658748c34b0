/*
 * page_hits.c - how a result of a search looks: the title, which opens the stored copy; where the page is, as people
 * read URLs; a snippet; and below, when it was fetched, its language if the reader may not know it, and links to what
 * else there is. What is folded under it is in a <details>, which needs no script.
 */
#include "serve/page_hits.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/utf8.h"
#include "words/words.h"

enum { TITLE_BYTES_MAX = 200, PART_BYTES_MAX = 40, PARTS_MAX = 6, NAMES_MAX = 4 };

/* ---- URLs as people read them ---------------------------------------------------------------------- */

/* What would make a URL or a title look like something else: controls, marks that change the direction. */
static bool is_odd(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp <= 0xa0) || cp == 0xad || (cp >= 0x200b && cp <= 0x200f) ||
           (cp >= 0x2028 && cp <= 0x202f) || (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || cp >= 0xe0000;
}

/* Whether bytes are text without anything odd. */
static bool is_plain(struct wb_slice text)
{
    for (size_t at = 0; at < text.len;) {
        size_t n = wb_utf8_length(text.ptr + at, text.len - at);
        if (n == 0 || is_odd(wb_utf8_decode(text.ptr + at, n)))
            return false;
        at += n;
    }
    return true;
}

/* As much of a text as fits into so many bytes, cut between characters. */
static struct wb_slice cut_text(struct wb_slice text, size_t max)
{
    size_t end = text.len < max ? text.len : max;

    while (end > 0 && end < text.len && ((unsigned char)text.ptr[end] & 0xc0) == 0x80)
        end--;
    return wb_slice(text.ptr, end);
}

/* A part of a path, unescaped if that is text; long ones are cut. */
static void add_part(struct wb_htmlpen *h, struct wb_slice part)
{
    struct wb_buf plain = WB_BUF_INIT;

    for (size_t i = 0; h->err == 0 && i < part.len; i++) {
        int high = part.ptr[i] == '%' && i + 2 < part.len ? wb_hex_digit(part.ptr[i + 1]) : -1;
        int low = high >= 0 ? wb_hex_digit(part.ptr[i + 2]) : -1;
        h->err = wb_buf_append_char(&plain, low >= 0 ? (char)(high * 16 + low) : part.ptr[i]);
        i += low >= 0 ? 2 : 0;
    }
    struct wb_slice text = is_plain(wb_buf_slice(&plain)) ? wb_buf_slice(&plain) : part;
    struct wb_slice shown = cut_text(text, PART_BYTES_MAX);
    wb_htmlpen_put(h, "{}{}", wb_htmlpen_text(shown), wb_htmlpen_str(shown.len < text.len ? "\xE2\x80\xA6" : ""));
    wb_buf_release(&plain);
}

/* The next part of a path, without the slashes around it. */
static bool next_part(struct wb_slice *rest, struct wb_slice *part_out)
{
    while (rest->len && *rest->ptr == '/')
        *rest = wb_slice(rest->ptr + 1, rest->len - 1);
    size_t n = 0;
    while (n < rest->len && rest->ptr[n] != '/' && rest->ptr[n] != '?')
        n++;
    if (n == 0 && rest->len) /* the query, as one part */
        n = rest->len;
    *part_out = wb_slice(rest->ptr, n);
    *rest = wb_slice(rest->ptr + n, rest->len - n);
    return n > 0;
}

/* "example.org › guide › intro.html": the host, and the parts of the path, of which some in the middle are left out. */
void wb_page_place(struct wb_htmlpen *h, struct wb_slice url)
{
    WB_CHECK(h->magic == WB_HTMLPEN_MAGIC);
    const char *scheme = wb_htmlpen_is_web_url(url) ? memmem(url.ptr, url.len, "://", 3) : NULL;
    struct wb_slice rest = scheme ? wb_slice(scheme + 3, (size_t)(url.ptr + url.len - scheme) - 3) : url, part;
    size_t count = 0, number = 0;

    next_part(&rest, &part);
    wb_htmlpen_put(h, "<bdi class=\"place\" title=\"{}\"><b>{}</b>", wb_htmlpen_text(url), wb_htmlpen_text(part));
    for (struct wb_slice all = rest; next_part(&all, &part);)
        count++;
    while (h->err == 0 && next_part(&rest, &part)) {
        bool left_out = count > PARTS_MAX && number > 0 && number + PARTS_MAX - 2 < count;
        if (!left_out || number == 1)
            wb_htmlpen_raw(h, " \xE2\x80\xBA ");
        if (!left_out)
            add_part(h, part);
        else if (number == 1)
            wb_htmlpen_raw(h, "\xE2\x80\xA6");
        number++;
    }
    wb_htmlpen_raw(h, "</bdi>");
}

/* The title as one line without anything odd. A page without one is called what its URL ends with. */
static void add_title(struct wb_htmlpen *h, struct wb_slice title, struct wb_slice url)
{
    struct wb_slice shown = cut_text(wb_slice_trim(title), TITLE_BYTES_MAX);
    struct wb_buf plain = WB_BUF_INIT;

    for (size_t at = 0; h->err == 0 && at < shown.len;) {
        size_t n = wb_utf8_length(shown.ptr + at, shown.len - at);
        bool odd = n == 0 || is_odd(wb_utf8_decode(shown.ptr + at, n));
        h->err = odd ? wb_buf_append_char(&plain, ' ') : wb_buf_append(&plain, shown.ptr + at, n);
        at += n ? n : 1;
    }
    if (wb_slice_trim(wb_buf_slice(&plain)).len)
        wb_htmlpen_put(h, "{}{}", wb_htmlpen_text(wb_slice_trim(wb_buf_slice(&plain))),
                       wb_htmlpen_str(shown.len < title.len ? "\xE2\x80\xA6" : ""));
    else
        wb_htmlpen_put(h, "{}", wb_htmlpen_text(cut_text(url, TITLE_BYTES_MAX)));
    wb_buf_release(&plain);
}

/* ---- languages ------------------------------------------------------------------------------------- */

/* Whether the browser says that the reader reads this language. English, if it says nothing. */
static bool reader_knows(struct wb_slice accepted, const char *language)
{
    size_t len = strlen(language);

    if (accepted.len == 0)
        return strcmp(language, "en") == 0;
    for (size_t at = 0; at < accepted.len;) {
        struct wb_slice rest = wb_slice_trim(wb_slice(accepted.ptr + at, accepted.len - at));
        if (rest.len >= len && wb_slice_starts_nocase(rest, wb_slice(language, len)) &&
            (rest.len == len || strchr("-,; ", rest.ptr[len])))
            return true;
        const char *comma = memchr(accepted.ptr + at, ',', accepted.len - at);
        at = comma ? (size_t)(comma - accepted.ptr) + 1 : accepted.len;
    }
    return false;
}

static void add_language(struct wb_htmlpen *h, const char *language)
{
    char name[WB_LANGUAGE_NAME_MAX];

    wb_language_name(language, name);
    wb_htmlpen_put(h, "<span lang=\"{}\">{}</span>", wb_htmlpen_str(language), wb_htmlpen_str(name));
}

/* ---- hits ------------------------------------------------------------------------------------------ */

/* Marks text as being in a language. */
static void add_lang(struct wb_htmlpen *h, const char *language)
{
    if (*language)
        wb_htmlpen_put(h, " lang=\"{}\"", wb_htmlpen_str(language));
}

static void add_day(struct wb_htmlpen *h, int64_t time_ms)
{
    char text[WB_DATE_TEXT_MAX];

    wb_date_format(time_ms, text);
    wb_htmlpen_put(h, "<time datetime=\"{}\" title=\"{} {} UTC\">{}</time>", wb_htmlpen_str(text),
                   wb_htmlpen_text(wb_slice(text, 10)), wb_htmlpen_text(wb_slice(text + 11, 8)),
                   wb_htmlpen_text(wb_slice(text, 10)));
}

/* The stored copy; what was never fetched has only facts. */
static void add_title_link(struct wb_htmlpen *h, struct wb_slice url, struct wb_slice title, int64_t time_ms,
                           const char *language)
{
    bool web = wb_htmlpen_is_web_url(url);

    if (web && time_ms)
        wb_htmlpen_put(h, "<a href=\"/web/{}/{}\"", wb_htmlpen_digits(time_ms), wb_htmlpen_text(url));
    else if (web)
        wb_htmlpen_put(h, "<a href=\"/page?url={}\"", wb_htmlpen_param(url));
    else
        wb_htmlpen_raw(h, "<span");
    if (title.len)
        add_lang(h, language);
    wb_htmlpen_raw(h, ">");
    add_title(h, title, url);
    wb_htmlpen_raw(h, web ? "</a>" : "</span>");
}

static const char *count_word(size_t count)
{
    return count == 1 ? "near duplicate" : "near duplicates";
}

/* "+ 3 more: 2 near duplicates, also in Deutsch" */
static void add_summary(struct wb_htmlpen *h, const struct wb_hit *hit)
{
    const char *names[NAMES_MAX];
    size_t alike = 0, others = 0, languages = 0;

    for (size_t i = 0; i < hit->folded_count; i++) {
        const struct wb_folded *folded = &hit->folded[i];
        size_t known = 0;
        alike += folded->why != WB_FOLD_LANGUAGE;
        if (folded->why != WB_FOLD_LANGUAGE)
            continue;
        while (known < languages && strcmp(names[known], folded->language) != 0)
            known++;
        if (known == languages && languages < NAMES_MAX)
            names[languages++] = folded->language;
        else
            others += known == languages;
    }
    wb_htmlpen_put(h, "<summary>+ {} more: ", wb_htmlpen_number(hit->folded_count));
    if (alike)
        wb_htmlpen_put(h, "{} {}{}", wb_htmlpen_number(alike), wb_htmlpen_str(count_word(alike)),
                       wb_htmlpen_str(languages ? ", " : ""));
    for (size_t i = 0; i < languages; i++) {
        wb_htmlpen_raw(h, i ? ", " : "also in ");
        add_language(h, names[i]);
    }
    wb_htmlpen_raw(h, others ? ", \xE2\x80\xA6</summary>\n" : "</summary>\n");
}

static void add_folded(struct wb_htmlpen *h, const struct wb_hit *hit)
{
    wb_htmlpen_raw(h, "<details class=\"folded\">\n");
    add_summary(h, hit);
    wb_htmlpen_raw(h, "<ul>\n");
    for (size_t i = 0; i < hit->folded_count; i++) {
        const struct wb_folded *folded = &hit->folded[i];
        wb_htmlpen_raw(h, "<li>");
        add_title_link(h, folded->url, folded->title, folded->time_ms, folded->language);
        wb_htmlpen_raw(h, " ");
        wb_page_place(h, folded->url);
        if (folded->why == WB_FOLD_LANGUAGE) {
            wb_htmlpen_raw(h, " <span class=\"mark\">");
            add_language(h, folded->language);
            wb_htmlpen_raw(h, "</span>");
        }
        wb_htmlpen_raw(h, "</li>\n");
    }
    wb_htmlpen_raw(h, "</ul>\n</details>\n");
}

/* What there is besides the copy. The live page is not ours: it does not learn who has sent the reader. */
static void add_ways(struct wb_htmlpen *h, const struct wb_hit *hit)
{
    if (!wb_htmlpen_is_web_url(hit->url))
        return;
    wb_htmlpen_put(h, " \xC2\xB7 <a href=\"/page?url={}\">facts</a>", wb_htmlpen_param(hit->url));
    if (hit->time_ms)
        wb_htmlpen_put(h, " \xC2\xB7 <a href=\"/page?url={}#similar\">similar</a>", wb_htmlpen_param(hit->url));
    wb_htmlpen_put(h,
                   " \xC2\xB7 <a href=\"{}\" rel=\"noopener noreferrer nofollow\">live web"
                   "<span aria-hidden=\"true\">&#160;\xE2\x86\x97</span></a>",
                   wb_htmlpen_text(hit->url));
}

void wb_page_hit(struct wb_htmlpen *h, const struct wb_hit *hit, struct wb_slice accepted)
{
    WB_CHECK(h->magic == WB_HTMLPEN_MAGIC);
    wb_htmlpen_raw(h, "<li class=\"hit\">\n<h2>");
    add_title_link(h, hit->url, hit->title, hit->time_ms, hit->language);
    wb_htmlpen_raw(h, "</h2>\n<p class=\"address\">");
    wb_page_place(h, hit->url);
    wb_htmlpen_raw(h, "</p>\n");
    if (hit->snippet.ptr) {
        wb_htmlpen_raw(h, "<p class=\"snippet\"");
        add_lang(h, hit->language);
        wb_htmlpen_put(h, ">{}</p>\n", wb_htmlpen_markup(hit->snippet));
    }
    wb_htmlpen_raw(h, "<p class=\"about\">");
    if (hit->time_ms)
        add_day(h, hit->time_ms);
    else
        wb_htmlpen_raw(h, "never fetched");
    if (*hit->language && !reader_knows(accepted, hit->language)) {
        wb_htmlpen_raw(h, " \xC2\xB7 ");
        add_language(h, hit->language);
    }
    add_ways(h, hit);
    wb_htmlpen_raw(h, "</p>\n");
    if (hit->folded_count)
        add_folded(h, hit);
    wb_htmlpen_raw(h, "</li>\n");
}
