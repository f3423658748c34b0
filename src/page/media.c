/*
 * media.c - media types: what Content-Type says, and what the name of a file suggests.
 *
 * It never looks at the bytes of a page: extract/sniff.c does.
 */
#include "page/page.h"

/* No meaningful type or charset is longer. */
#define NAME_MAX_BYTES 127

static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$&-^_.+%*'`|~", c));
}

static bool is_tokens(struct wb_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_token(s.ptr[i]))
            return false;
    return s.len > 0 && s.len <= NAME_MAX_BYTES;
}

static bool is_type(struct wb_slice s)
{
    const char *slash = s.len ? memchr(s.ptr, '/', s.len) : NULL;

    if (!slash)
        return false;
    size_t at = (size_t)(slash - s.ptr);
    return is_tokens(wb_slice(s.ptr, at)) && is_tokens(wb_slice(slash + 1, s.len - at - 1));
}

/* Removes the text up to and including the next `mark` from *rest, and returns it without the mark. */
static struct wb_slice cut_at(struct wb_slice *rest, char mark)
{
    const char *at = rest->len ? memchr(rest->ptr, mark, rest->len) : NULL;
    size_t len = at ? (size_t)(at - rest->ptr) : rest->len;
    struct wb_slice first = wb_slice(rest->ptr, len);

    size_t past = at ? len + 1 : len;
    *rest = wb_slice(rest->ptr + past, rest->len - past);
    return first;
}

/* Finds the first charset parameter and removes its quotes. */
static struct wb_slice charset_of(struct wb_slice parameters)
{
    while (parameters.len > 0) {
        struct wb_slice value = cut_at(&parameters, ';');
        struct wb_slice name = wb_slice_trim(cut_at(&value, '='));
        value = wb_slice_trim(value);
        if (!wb_slice_equal_nocase(name, WB_SLICE_LIT("charset")))
            continue;
        while (value.len > 0 && strchr("\"'", value.ptr[0]) && value.ptr[0])
            value = wb_slice(value.ptr + 1, value.len - 1);
        while (value.len > 0 && strchr("\"'", value.ptr[value.len - 1]) && value.ptr[value.len - 1])
            value.len--;
        if (is_tokens(value))
            return value;
    }
    return WB_SLICE_EMPTY;
}

static struct wb_slice append_lower(struct wb_buf *mem, struct wb_slice s)
{
    if (s.len == 0)
        return WB_SLICE_EMPTY;
    char *to = mem->ptr + mem->len;
    for (size_t i = 0; i < s.len; i++)
        to[i] = wb_ascii_lower(s.ptr[i]);
    mem->len += s.len;
    return wb_slice(to, s.len);
}

int wb_media_type_parse(struct wb_slice value, struct wb_buf *mem, struct wb_slice *type_out,
                        struct wb_slice *charset_out)
{
    struct wb_slice rest = value;

    *type_out = *charset_out = WB_SLICE_EMPTY;
    struct wb_slice type = wb_slice_trim(cut_at(&rest, ';'));
    struct wb_slice charset = charset_of(rest);
    if (!is_type(type))
        type = WB_SLICE_EMPTY;
    int err = wb_buf_reserve(mem, type.len + charset.len); /* for both: growing later would move the first one */
    if (err < 0)
        return err;
    *type_out = append_lower(mem, type);
    *charset_out = append_lower(mem, charset);
    return 0;
}

/* ---- names ---------------------------------------------------------------------------- */

static const struct {
    const char *ending, *type;
} endings[] = {
    {"html", "text/html"},
    {"htm", "text/html"},
    {"xhtml", "application/xhtml+xml"},
    {"xht", "application/xhtml+xml"},
    {"css", "text/css"},
    {"js", "text/javascript"},
    {"mjs", "text/javascript"},
    {"json", "application/json"},
    {"map", "application/json"},
    {"xml", "application/xml"},
    {"xsl", "application/xml"},
    {"rss", "application/rss+xml"},
    {"atom", "application/atom+xml"},
    {"txt", "text/plain"},
    {"text", "text/plain"},
    {"md", "text/markdown"},
    {"csv", "text/csv"},
    {"tsv", "text/tab-separated-values"},
    {"c", "text/x-c"},
    {"h", "text/x-c"},
    {"py", "text/x-python"},
    {"pdf", "application/pdf"},
    {"ps", "application/postscript"},
    {"rtf", "application/rtf"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"svg", "image/svg+xml"},
    {"webp", "image/webp"},
    {"avif", "image/avif"},
    {"ico", "image/vnd.microsoft.icon"},
    {"bmp", "image/bmp"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"mp3", "audio/mpeg"},
    {"ogg", "audio/ogg"},
    {"wav", "audio/wav"},
    {"flac", "audio/flac"},
    {"mp4", "video/mp4"},
    {"webm", "video/webm"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"ttf", "font/ttf"},
    {"otf", "font/otf"},
    {"zip", "application/zip"},
    {"gz", "application/gzip"},
    {"tar", "application/x-tar"},
    {"bz2", "application/x-bzip2"},
    {"xz", "application/x-xz"},
    {"zst", "application/zstd"},
    {"jar", "application/java-archive"},
    {"wasm", "application/wasm"},
    {"epub", "application/epub+zip"},
    {"doc", "application/msword"},
    {"xls", "application/vnd.ms-excel"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
};

struct wb_slice wb_media_type_of_name(struct wb_slice name)
{
    size_t at = name.len;

    while (at > 0 && name.ptr[at - 1] != '.' && name.ptr[at - 1] != '/')
        at--;
    bool dot = at > 0 && name.ptr[at - 1] == '.';
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (wb_slice_equal_nocase(wb_slice(name.ptr + at, name.len - at), wb_slice_str(endings[i].ending)))
            return wb_slice_str(endings[i].type);
    return WB_SLICE_LIT("application/octet-stream");
}
