/*
 * sniff.c - determines the media type of bytes, in the spirit of the MIME sniffing standard: first by
 * patterns at the beginning, then by whether they look binary.
 *
 * It looks only at the beginning, a bounded number of bytes, and never overrules a given type: that
 * is extract.c's decision, which asks for the root element to find feeds that are served as HTML.
 */
#include "extract/module.h"

#define LOOK_MAX 4096
#define BINARY_LOOK 1445

static const struct {
    const char *start, *type;
    size_t len;
} magics[] = {
#define MAGIC(start, type) {start, type, sizeof(start) - 1}
    MAGIC("%PDF-", "application/pdf"), MAGIC("%!PS-Adobe-", "application/postscript"),
    MAGIC("\x89PNG\r\n\x1a\n", "image/png"), MAGIC("GIF87a", "image/gif"), MAGIC("GIF89a", "image/gif"),
    MAGIC("\xff\xd8\xff", "image/jpeg"), MAGIC("\x1f\x8b\x08", "application/gzip"),
    MAGIC("PK\x03\x04", "application/zip"), MAGIC("\x28\xb5\x2f\xfd", "application/zstd"),
    MAGIC("OggS\0", "application/ogg"), MAGIC("wOFF", "font/woff"), MAGIC("wOF2", "font/woff2"),
    MAGIC("\0asm", "application/wasm"), MAGIC("Rar!\x1a\x07", "application/octet-stream"),
    MAGIC("\xfe\xff", "text/plain"), MAGIC("\xff\xfe", "text/plain"),
#undef MAGIC
};

static const char *const html_names[] = {
    "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br", "p",
    "meta", "link", "base", "ul", "ol", "h2", "h3", "img", "span", "center", "main", "nav", "header", "section",
    "article", "form", "frameset", "noscript", "pre", "i", "hr",
};

static struct wb_slice behind(struct wb_slice s, size_t n)
{
    return wb_slice(s.ptr + n, s.len - n);
}

static struct wb_slice skip_blanks(struct wb_slice s)
{
    while (s.len > 0 && wb_ascii_is_space(*s.ptr))
        s = behind(s, 1);
    return s;
}

static struct wb_slice skip_bom(struct wb_slice s)
{
    return wb_slice_starts(s, WB_SLICE_LIT("\xef\xbb\xbf")) ? behind(s, 3) : s;
}

/* Returns what follows the next `mark`; empty if there is none. */
static struct wb_slice skip_past(struct wb_slice s, struct wb_slice mark)
{
    const char *at = memmem(s.ptr, s.len, mark.ptr, mark.len);

    return at ? behind(s, (size_t)(at - s.ptr) + mark.len) : WB_SLICE_EMPTY;
}

static struct wb_slice name_at(struct wb_slice s)
{
    size_t len = 0;

    while (len < s.len && !wb_ascii_is_space(s.ptr[len]) && s.ptr[len] != '>' && s.ptr[len] != '/')
        len++;
    return wb_slice(s.ptr, len);
}

struct wb_slice wb_sniff_root(struct wb_slice bytes)
{
    struct wb_slice s = skip_bom(bytes);

    if (s.len > LOOK_MAX)
        s.len = LOOK_MAX;
    for (;;) {
        s = skip_blanks(s);
        if (wb_slice_starts(s, WB_SLICE_LIT("<!--")))
            s = skip_past(s, WB_SLICE_LIT("-->"));
        else if (wb_slice_starts(s, WB_SLICE_LIT("<?")))
            s = skip_past(s, WB_SLICE_LIT("?>"));
        else if (wb_slice_starts(s, WB_SLICE_LIT("<!")))
            s = skip_past(s, WB_SLICE_LIT(">"));
        else
            break;
    }
    return s.len > 1 && *s.ptr == '<' ? name_at(behind(s, 1)) : WB_SLICE_EMPTY;
}

bool wb_sniff_is_feed(struct wb_slice root)
{
    static const char *const roots[] = {"rss", "feed", "rdf:RDF", "urlset", "sitemapindex"};

    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (wb_slice_equal(root, wb_slice_str(roots[i])))
            return true;
    return false;
}

static bool is_html(struct wb_slice s)
{
    if (wb_slice_starts(s, WB_SLICE_LIT("<!--")) || wb_slice_starts_nocase(s, WB_SLICE_LIT("<!doctype html")))
        return true;
    if (s.len < 2 || *s.ptr != '<')
        return false;
    struct wb_slice name = name_at(behind(s, 1));
    for (size_t i = 0; i < sizeof html_names / sizeof *html_names; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(html_names[i])))
            return true;
    return false;
}

/* True if there are control characters that no text contains, as the MIME sniffing standard defines them. */
static bool is_binary(struct wb_slice s)
{
    for (size_t i = 0; i < s.len && i < BINARY_LOOK; i++) {
        uint8_t c = (uint8_t)s.ptr[i];
        if (c <= 0x08 || c == 0x0b || (c >= 0x0e && c <= 0x1a) || (c >= 0x1c && c <= 0x1f))
            return true;
    }
    return false;
}

struct wb_slice wb_sniff_type(struct wb_slice bytes)
{
    struct wb_slice s = skip_blanks(skip_bom(bytes)), root = wb_sniff_root(bytes);

    if (wb_sniff_is_feed(root))
        return WB_SLICE_LIT("application/xml");
    if (wb_slice_starts(s, WB_SLICE_LIT("<?xml")))
        return wb_slice_equal_nocase(root, WB_SLICE_LIT("html")) ? WB_SLICE_LIT("text/html")
                                                                 : WB_SLICE_LIT("application/xml");
    if (is_html(s))
        return WB_SLICE_LIT("text/html");
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (wb_slice_starts(bytes, wb_slice(magics[i].start, magics[i].len)))
            return wb_slice_str(magics[i].type);
    return is_binary(bytes) ? WB_SLICE_LIT("application/octet-stream") : WB_SLICE_LIT("text/plain");
}
