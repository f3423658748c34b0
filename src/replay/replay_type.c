/*
 * replay_type.c - as what a page is shown that came without a media type.
 *
 * Browsers would look at its bytes, but may not (X-Content-Type-Options: nosniff), so this does it for them: the rules
 * of the WHATWG standard "MIME Sniffing" for unknown types, section 7.1, without those that need the whole file. A
 * stated type stays, whatever the bytes are: otherwise text or an image of strangers could become a page with scripts.
 */
#include "base/bytes.h"
#include "replay/replay.h"

#define LOOK_MAX 1445u /* the standard's "resource header" */

/* These tags make HTML of what begins with them, in any case, and after white space. */
static const char *const tags[] = {
    "!DOCTYPE HTML", "HTML",  "HEAD", "SCRIPT", "IFRAME", "H1", "DIV", "FONT", "TABLE", "A",
    "STYLE",         "TITLE", "B",    "BODY",   "BR",     "P",  "!--"};

/* Bytes at the beginning; '.' in a mask stands for any byte, '=' for this one. */
static const struct {
    const char *bytes, *mask, *type;
} patterns[] = {
    {"%PDF-", "=====", "application/pdf"},
    {"%!PS-Adobe-", "===========", "application/postscript"},
    {"\xfe\xff..", "==..", "text/plain"},
    {"\xff\xfe..", "==..", "text/plain"},
    {"\xef\xbb\xbf.", "===.", "text/plain"},
    {"\0\0\1\0", "====", "image/x-icon"},
    {"\0\0\2\0", "====", "image/x-icon"},
    {"BM", "==", "image/bmp"},
    {"GIF87a", "======", "image/gif"},
    {"GIF89a", "======", "image/gif"},
    {"RIFF....WEBPVP", "====....======", "image/webp"},
    {"\x89PNG\r\n\x1a\n", "========", "image/png"},
    {"\xff\xd8\xff", "===", "image/jpeg"},
    {"FORM....AIFF", "====....====", "audio/aiff"},
    {"ID3", "===", "audio/mpeg"},
    {"OggS\0", "=====", "application/ogg"},
    {"MThd\0\0\0\6", "========", "audio/midi"},
    {"RIFF....AVI ", "====....====", "video/avi"},
    {"RIFF....WAVE", "====....====", "audio/wave"},
    {"\x1f\x8b\x08", "===", "application/x-gzip"},
    {"PK\3\4", "====", "application/zip"},
    {"Rar \x1a\7\0", "=======", "application/x-rar-compressed"},
};

static bool fits(struct wb_slice bytes, const char *want, const char *mask)
{
    size_t len = strlen(mask);

    if (bytes.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (mask[i] == '=' && bytes.ptr[i] != want[i])
            return false;
    return true;
}

/* A file of boxes, of which the first one says that it is MP4. */
static bool is_mp4(struct wb_slice bytes)
{
    if (!fits(bytes, "....ftyp....", "....====...."))
        return false;
    size_t box = wb_get32_be(bytes.ptr);
    if (box > bytes.len || box % 4)
        return false;
    for (size_t at = 8; at + 4 <= box; at += at == 8 ? 8 : 4) /* the main brand, its version, further brands */
        if (memcmp(bytes.ptr + at, "mp4", 3) == 0)
            return true;
    return false;
}

/* EBML, the head of which says near its beginning that it is WebM. */
static bool is_webm(struct wb_slice bytes)
{
    size_t len = bytes.len < 48 ? bytes.len : 48;

    return fits(bytes, "\x1a\x45\xdf\xa3", "====") && memmem(bytes.ptr, len, "webm", 4);
}

/* A tag counts only if it ends there: "<a>" and "<a ", but not "<address". */
static bool is_html(struct wb_slice text)
{
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        size_t len = strlen(tags[i]);
        bool begins = text.len > len + 1 && text.ptr[0] == '<' &&
                      wb_slice_equal_nocase(wb_slice(text.ptr + 1, len), wb_slice(tags[i], len));
        if (begins && (text.ptr[len + 1] == ' ' || text.ptr[len + 1] == '>'))
            return true;
    }
    return false;
}

static bool is_binary(struct wb_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = (uint8_t)bytes.ptr[i];
        if (c <= 0x08 || c == 0x0b || (c >= 0x0e && c <= 0x1a) || (c >= 0x1c && c <= 0x1f))
            return true;
    }
    return false;
}

static bool is_unknown(struct wb_slice type)
{
    return type.len == 0 || wb_slice_equal(type, WB_SLICE_LIT("unknown/unknown")) ||
           wb_slice_equal(type, WB_SLICE_LIT("application/unknown")) || wb_slice_equal(type, WB_SLICE_LIT("*/*"));
}

struct wb_slice wb_replay_type(struct wb_slice type, struct wb_slice body)
{
    struct wb_slice look = wb_slice(body.ptr, body.len < LOOK_MAX ? body.len : LOOK_MAX), text = look;

    if (!is_unknown(type))
        return type;
    while (text.len && memchr("\t\n\f\r ", *text.ptr, 5))
        text = wb_slice(text.ptr + 1, text.len - 1);
    if (is_html(text))
        return WB_SLICE_LIT("text/html");
    if (wb_slice_starts(text, WB_SLICE_LIT("<?xml")))
        return WB_SLICE_LIT("text/xml");
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (fits(look, patterns[i].bytes, patterns[i].mask))
            return wb_slice_str(patterns[i].type);
    if (is_mp4(look))
        return WB_SLICE_LIT("video/mp4");
    if (is_webm(look))
        return WB_SLICE_LIT("video/webm");
    return is_binary(look) ? WB_SLICE_LIT("application/octet-stream") : WB_SLICE_LIT("text/plain");
}
