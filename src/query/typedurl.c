/*
 * typedurl.c - a query that is nothing but the URL of a page, as people paste or type it: with or without scheme and
 * www., in any spelling that means the same. It finds that page, before everything that has its words.
 *
 *   https://www.Example.org/a%7Eb/#top      http%3A%2F%2Fexample.org%2F      <http://example.org/>
 *   www.example.org/a~b/                    example.org
 *
 * What has no scheme may also be a word such as node.js. So nothing is changed but this: if the generation knows the
 * page, it is the first result. The language stays as it is, and "quotes" make words of anything.
 */
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "query/searcher.h"
#include "url/url.h"

enum { TYPED_BYTES_MAX = 8192 };

static bool contains(struct wb_slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* ---- is it a URL? -------------------------------------------------------------------------------- */

/* "http://..."; also schemes of other kinds, but not fields of the language. */
static bool has_scheme(struct wb_slice text)
{
    size_t n = 0;

    while (n < text.len && (wb_ascii_is_letter(text.ptr[n]) ||
                            (n > 0 && (wb_ascii_is_digit(text.ptr[n]) || strchr("+-.", text.ptr[n])))))
        n++;
    return n > 0 && text.len - n >= 3 && memcmp(text.ptr + n, "://", 3) == 0;
}

/* "example.org/...", "127.0.0.1:8080", "[::1]/", "localhost:80/": what comes before the path looks like a host. */
static bool begins_with_host(struct wb_searcher *searcher, struct wb_slice text)
{
    size_t n = 0, colon = SIZE_MAX;
    bool dot = false, port = false;

    for (; n < text.len && !strchr("/?#", text.ptr[n]); n++) {
        if (strchr("\"'()<>*|\\^`{}", text.ptr[n]))
            return false;
        if (text.ptr[n] == ':' && colon == SIZE_MAX)
            colon = n;
        dot |= text.ptr[n] == '.';
    }
    if (n == 0 || text.ptr[0] == '-' || text.ptr[0] == '.')
        return false;
    if (text.ptr[0] == '[')
        return true;
    if (colon != SIZE_MAX) {
        const struct wb_index_column *column;
        struct wb_slice name = wb_slice(text.ptr, colon);
        if (wb_ask_is_field(name) || wb_index_column(searcher->index, name, &column) == 0)
            return false;
        port = colon + 1 < n;
        for (size_t i = colon + 1; i < n; i++)
            port &= wb_ascii_is_digit(text.ptr[i]);
    }
    return dot || port;
}

/* What is between < and >, and the text of a URL that was escaped as a whole. */
static int plain_text(struct wb_slice query, struct wb_buf *text_out)
{
    struct wb_slice text = wb_slice_trim(query);
    static const char escaped[] = "%3A%2F%2F";
    int err = 0;

    if (text.len > 2 && text.ptr[0] == '<' && text.ptr[text.len - 1] == '>')
        text = wb_slice_trim(wb_slice(text.ptr + 1, text.len - 2));
    bool whole = false;
    for (size_t i = 0; !has_scheme(text) && i + sizeof escaped - 1 <= text.len && !whole; i++)
        whole = wb_slice_starts_nocase(wb_slice(text.ptr + i, text.len - i), wb_slice_str(escaped));
    for (size_t i = 0; err == 0 && i < text.len; i++) {
        int high = whole && text.ptr[i] == '%' && i + 2 < text.len ? wb_hex_digit(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? wb_hex_digit(text.ptr[i + 2]) : -1;
        err = wb_buf_append_char(text_out, low >= 0 ? (char)(high * 16 + low) : text.ptr[i]);
        i += low >= 0 ? 2 : 0;
    }
    return err;
}

/* ---- which page? --------------------------------------------------------------------------------- */

struct typed_search {
    struct wb_searcher *searcher;
    uint32_t docid; /* the best so far: a page with content, rather than a URL that is only known */
};

/* Looks for the page of a key. */
static int try_key(struct typed_search *search, struct wb_slice key)
{
    struct wb_searcher *searcher = search->searcher;
    uint32_t docid = 0;

    WB_CHECK(searcher->bars_read);
    int err = wb_searcher_find(searcher, key, &docid);
    if (err == WB_E_NOTFOUND || (err == 0 && wb_searcher_barred(searcher, docid)))
        return 0;
    if (err == 0 && (search->docid == WB_DOCID_NONE || (search->docid >= searcher->pages && docid < searcher->pages)))
        search->docid = docid;
    return err;
}

/* Also with a slash before the query, or without. */
static int try_slash(struct typed_search *search, struct wb_slice key)
{
    const char *mark = memchr(key.ptr, '?', key.len);
    struct wb_buf other = WB_BUF_INIT;
    int err = try_key(search, key);

    if (err < 0 || !mark)
        return err;
    size_t at = (size_t)(mark - key.ptr);
    WB_CHECK(at > 0); /* the host is before it */
    bool slash = key.ptr[at - 1] == '/';
    err = wb_buf_append(&other, key.ptr, slash ? at - 1 : at);
    if (err == 0 && !slash)
        err = wb_buf_append_char(&other, '/');
    if (err == 0)
        err = wb_buf_append(&other, mark, key.len - at);
    if (err == 0)
        err = try_key(search, wb_buf_slice(&other));
    wb_buf_release(&other);
    return err;
}

/* Escapes in a path that mean the same as the character but make another key: as in wiki/Foo_%28bar%29. */
static int rewrite_escapes(struct wb_slice key, bool decode, struct wb_buf *out)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < key.len; i++) {
        char c = key.ptr[i];
        int high = c == '%' && i + 2 < key.len ? wb_hex_digit(key.ptr[i + 1]) : -1;
        int low = high >= 0 ? wb_hex_digit(key.ptr[i + 2]) : -1;
        char plain = low >= 0 ? (char)(high * 16 + low) : '\0';
        if (c == '?')
            return wb_buf_append(out, key.ptr + i, key.len - i);
        if (decode && plain && strchr("!$'()*+,;:@&=", plain)) {
            err = wb_buf_append_char(out, plain);
            i += 2;
        } else if (!decode && strchr("!'()*,", c)) {
            err = wb_buf_printf(out, "%%%02X", (unsigned char)c);
        } else {
            err = wb_buf_append_char(out, c);
        }
    }
    return err;
}

/* Also with such escapes, or without. */
static int try_escapes(struct typed_search *search, struct wb_slice key)
{
    WB_CHECK(key.len > 0);
    int err = try_slash(search, key);
    for (int decode = 1; err == 0 && decode >= 0; decode--) {
        struct wb_buf other = WB_BUF_INIT;
        err = rewrite_escapes(key, decode, &other);
        if (err == 0 && !wb_slice_equal(wb_buf_slice(&other), key))
            err = try_slash(search, wb_buf_slice(&other));
        wb_buf_release(&other);
    }
    return err;
}

/* Also with www., or without. Keys of http and https have no scheme. */
static int try_www(struct typed_search *search, struct wb_slice key)
{
    struct wb_slice www = WB_SLICE_LIT("www.");
    struct wb_buf other = WB_BUF_INIT;
    int err = try_escapes(search, key);

    if (err < 0 || contains(wb_slice(key.ptr, key.len < 32 ? key.len : 32), "://"))
        return err;
    if (wb_slice_starts(key, www)) {
        struct wb_slice rest = wb_slice(key.ptr + www.len, key.len - www.len);
        bool host = rest.len && !strchr(":/?", rest.ptr[0]); /* not so in "www..?a" */
        return host ? try_escapes(search, rest) : 0;
    }
    err = wb_buf_append_slice(&other, www);
    if (err == 0)
        err = wb_buf_append_slice(&other, key);
    if (err == 0)
        err = try_escapes(search, wb_buf_slice(&other));
    wb_buf_release(&other);
    return err;
}

/* "example.org./a": the dot stands for the root of the DNS. */
static void drop_root(struct wb_buf *key)
{
    size_t n = 0;

    while (n < key->len && !strchr(":/?", key->ptr[n]))
        n++;
    if (n > 1 && key->ptr[n - 1] == '.') {
        memmove(key->ptr + n - 1, key->ptr + n, key->len - n);
        key->len--;
    }
}

/* A text that is not a URL after all finds nothing. */
static int try_text(struct typed_search *search, const char *scheme, struct wb_slice text)
{
    struct wb_buf href = WB_BUF_INIT, key = WB_BUF_INIT;
    struct wb_url url = WB_URL_INIT;
    int err = wb_buf_append_str(&href, scheme);

    if (err == 0)
        err = wb_buf_append_slice(&href, text);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&href), NULL, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    drop_root(&key);
    if (err == 0 && key.len)
        err = try_www(search, wb_buf_slice(&key));
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&href);
    return err == WB_E_INVALID || err == WB_E_PROTO || err == WB_E_LIMIT ? 0 : err;
}

int wb_search_url(struct wb_searcher *searcher, struct wb_slice query, uint32_t *docid_out)
{
    struct typed_search search = {searcher, WB_DOCID_NONE};
    struct wb_buf text = WB_BUF_INIT;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = query.len > TYPED_BYTES_MAX ? 0 : plain_text(query, &text);
    struct wb_slice typed = wb_buf_slice(&text);
    *docid_out = WB_DOCID_NONE;
    /* Behind a scheme, a blank is part of the URL, and the end of a line is where a mail program has cut it. */
    const char *white = has_scheme(typed) ? " \t\n\r" : "";
    for (size_t i = 0; i < typed.len; i++) {
        unsigned char c = (unsigned char)typed.ptr[i];
        if ((c <= ' ' && (c == 0 || !strchr(white, c))) || c == '"' || c == 0x7f)
            typed.len = 0;
    }
    if (err == 0 && typed.len)
        err = wb_searcher_refresh(searcher);
    if (err == 0 && has_scheme(typed)) {
        err = try_text(&search, "", typed);
    } else if (err == 0 && typed.len > 2 && memcmp(typed.ptr, "//", 2) == 0) {
        err = try_text(&search, "http:", typed);
    } else if (err == 0 && typed.len && begins_with_host(searcher, typed)) {
        err = try_text(&search, "http://", typed);
        if (err == 0)
            err = try_text(&search, "https://", typed); /* another port may be the usual one */
    }
    wb_buf_release(&text);
    *docid_out = err == 0 ? search.docid : WB_DOCID_NONE;
    return err < 0 ? err : search.docid == WB_DOCID_NONE ? WB_E_NOTFOUND : 0;
}
