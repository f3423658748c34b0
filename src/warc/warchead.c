/*
 * warchead.c - finds and parses the header of an archive record.
 *
 *   WARC  version line, named fields, blank line; lines end in CRLF or LF
 *   ARC   URL IP-address date type length LF     (the URL may contain blanks, the type may be empty)
 *
 * It only looks at the bytes it is given and never asks for more. A version line inside a
 * header is never read as a field. This keeps the search for the next record linear: no byte
 * of a rejected header can be the start of another one, so no byte is examined twice.
 */
#include "warc/warchead.h"

#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"
#include "warc/warcdate.h"

/* ---- where records start and end ---------------------------------------------------- */

/* Some writers have the version in lower case. */
static bool starts_warc(struct wb_slice bytes)
{
    return bytes.len >= 8 && wb_slice_starts_nocase(bytes, WB_SLICE_LIT("WARC/")) &&
           wb_ascii_is_digit(bytes.ptr[5]) && bytes.ptr[6] == '.' && wb_ascii_is_digit(bytes.ptr[7]);
}

/* An ARC record starts with a URL: a scheme and ':'. */
static bool starts_arc(struct wb_slice bytes)
{
    size_t i = 0;

    if (bytes.len == 0 || !wb_ascii_is_letter(bytes.ptr[0]))
        return false;
    while (i < bytes.len && i < 16 &&
           (wb_ascii_is_letter(bytes.ptr[i]) || wb_ascii_is_digit(bytes.ptr[i]) || strchr("+-.", bytes.ptr[i])))
        i++;
    return i < bytes.len && bytes.ptr[i] == ':';
}

bool wb_warc_head_starts(struct wb_slice bytes, bool arc)
{
    struct wb_slice text = bytes;

    while (text.len > 0 && (text.ptr[0] == '\r' || text.ptr[0] == '\n')) {
        text.ptr++;
        text.len--;
    }
    return starts_warc(text) || (arc && starts_arc(text));
}

/* True if the line ends in a version, such as "WARC/1.1". */
static bool ends_version(struct wb_slice line)
{
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line.len >= 8 && starts_warc(wb_slice(line.ptr + line.len - 8, 8));
}

bool wb_warc_head_is_line(struct wb_slice bytes, bool arc)
{
    const char *lf = bytes.len ? memchr(bytes.ptr, '\n', bytes.len < 10 ? bytes.len : 10) : NULL;

    if (starts_warc(bytes))
        return lf && ends_version(wb_slice(bytes.ptr, (size_t)(lf - bytes.ptr)));
    return arc && starts_arc(bytes);
}

enum wb_warc_trailer wb_warc_head_trailer(struct wb_slice bytes, bool ends, bool arc, size_t *len_out)
{
    size_t at = 0;
    int line_ends = 0;

    *len_out = 0;
    while (line_ends < 2) {
        if (at < bytes.len && bytes.ptr[at] == '\n')
            at += 1;
        else if (at + 1 < bytes.len && bytes.ptr[at] == '\r' && bytes.ptr[at + 1] == '\n')
            at += 2;
        else
            break;
        line_ends++;
    }
    struct wb_slice rest = wb_slice(bytes.ptr + at, bytes.len - at);
    *len_out = at;
    /* LF, CRLF, CRLF: the claimed length is one too short, and the LF is the last byte of the block. */
    if (!arc && line_ends == 2 && at == 3 && bytes.ptr[0] == '\n' && wb_slice_starts(rest, WB_SLICE_LIT("\r\n")))
        return WB_WARC_TRAILER_NONE;
    if (ends && (rest.len == 0 || (rest.len == 1 && rest.ptr[0] == '\r')))
        return WB_WARC_TRAILER_SURE;
    if (!arc)
        return line_ends == 2 || starts_warc(rest) ? WB_WARC_TRAILER_SURE : WB_WARC_TRAILER_NONE;
    if (starts_arc(rest) || (rest.len > 0 && (rest.ptr[0] == '\n' || rest.ptr[0] == '\r')))
        return WB_WARC_TRAILER_SURE;
    return line_ends > 0 ? WB_WARC_TRAILER_DOUBTFUL : WB_WARC_TRAILER_NONE;
}

int wb_warc_head_end(struct wb_slice bytes, bool strict, size_t *scanned, size_t *end_out)
{
    bool arc = !starts_warc(bytes);

    *end_out = 0;
    while (*scanned < bytes.len) {
        const char *line = bytes.ptr + *scanned;
        size_t left = bytes.len - *scanned;
        const char *lf = memchr(line, '\n', left);
        if (!lf)
            return 0;
        size_t len = (size_t)(lf - line);
        bool blank = len == 0 || (len == 1 && line[0] == '\r');
        if (*scanned > 0 && (starts_warc(wb_slice(line, left)) || (strict && ends_version(wb_slice(line, len)))))
            return WB_E_CORRUPT; /* no message: searches call this for every candidate, and formatting takes time */
        *scanned += len + 1;
        if (blank || arc) {
            *end_out = *scanned;
            return 1;
        }
    }
    return 0;
}

/* ---- WARC ------------------------------------------------------------------------------ */

static const struct {
    struct wb_slice name;
    enum wb_warc_type type;
} types[] = {
    {{"response", 8}, WB_WARC_RESPONSE}, {{"request", 7}, WB_WARC_REQUEST},         {{"metadata", 8}, WB_WARC_METADATA},
    {{"revisit", 7}, WB_WARC_REVISIT},   {{"resource", 8}, WB_WARC_RESOURCE},       {{"warcinfo", 8}, WB_WARC_WARCINFO},
    {{"conversion", 10}, WB_WARC_CONVERSION}, {{"continuation", 12}, WB_WARC_CONTINUATION},
};

static enum wb_warc_type type_of(struct wb_slice value)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (wb_slice_equal_nocase(value, types[i].name))
            return types[i].type;
    return WB_WARC_UNKNOWN;
}

static struct wb_warc_span span_of(struct wb_slice whole, struct wb_slice part)
{
    return (struct wb_warc_span){(size_t)(part.ptr - whole.ptr), part.len};
}

struct wb_slice wb_warc_head_bare_uri(struct wb_slice uri)
{
    if (uri.len >= 2 && uri.ptr[0] == '<' && uri.ptr[uri.len - 1] == '>')
        uri = wb_slice(uri.ptr + 1, uri.len - 2);
    return wb_slice_trim(uri);
}

/* Which mandatory fields a WARC header had, and whether its length is unusable. */
struct fields_seen {
    bool has_length, bad_length, has_type;
};

static bool named(struct wb_slice name, const char *want, size_t len)
{
    return name.len == len && wb_slice_equal_nocase(name, wb_slice(want, len));
}

#define NAMED(name, text) named((name), (text), sizeof(text) - 1)

static void read_field(struct wb_slice bytes, struct wb_slice name, struct wb_slice value, struct wb_warc_head *head,
                       struct fields_seen *seen)
{
    if (NAMED(name, "WARC-Type")) {
        head->type = type_of(value);
        seen->has_type = true;
    } else if (NAMED(name, "Content-Length")) {
        /* If a header gives two different lengths, neither can be trusted. */
        uint64_t length;
        bool good = wb_slice_to_u64(value, &length);
        seen->bad_length |= !good || (seen->has_length && head->length != length);
        seen->has_length = true;
        head->length = length;
    } else if (NAMED(name, "WARC-Target-URI")) {
        head->uri = span_of(bytes, wb_warc_head_bare_uri(value));
    } else if (NAMED(name, "WARC-Date")) {
        head->has_time = wb_warc_date_parse(value, &head->time_ms);
    } else if (NAMED(name, "Content-Type")) {
        head->content_type = span_of(bytes, value);
    } else if (NAMED(name, "WARC-Truncated")) {
        head->truncated = true;
    }
}

static const char *parse_warc(struct wb_slice bytes, struct wb_warc_head *head)
{
    const char *lf = memchr(bytes.ptr, '\n', bytes.len);
    struct fields_seen seen = {false, false, false};
    struct wb_slice name, value;
    size_t at = 0;

    if (!lf)
        return "there is only a version line";
    size_t start = (size_t)(lf + 1 - bytes.ptr);
    size_t end = bytes.len;
    end -= end > start && bytes.ptr[end - 1] == '\n';
    end -= end > start && bytes.ptr[end - 1] == '\r';
    head->lines = (struct wb_warc_span){start, end - start};
    while (wb_http_field_next(wb_slice(bytes.ptr + start, end - start), &at, &name, &value))
        read_field(bytes, name, value, head, &seen);
    if (!seen.has_length)
        return "the record has no Content-Length";
    if (seen.bad_length)
        return "the record's Content-Length is not a number";
    if (!seen.has_type)
        return "the record has no WARC-Type";
    return NULL;
}

/* ---- ARC --------------------------------------------------------------------------------- */

/* Removes the last word from *line; false if there is none, or if it is the only one. */
static bool last_word(struct wb_slice *line, struct wb_slice *word_out)
{
    size_t end = line->len, at;

    while (end > 0 && line->ptr[end - 1] == ' ')
        end--;
    at = end;
    while (at > 0 && line->ptr[at - 1] != ' ')
        at--;
    *word_out = wb_slice(line->ptr + at, end - at);
    line->len = at;
    return at > 0 && end > at;
}

/* An ARC date has 14 digits (12 in the oldest files); some files append further digits. */
static bool parse_arc_date(struct wb_slice text, int64_t *time_ms_out)
{
    if (wb_date_parse_digits(text, time_ms_out))
        return true;
    return text.len > 14 && wb_slice_to_u64(text, &(uint64_t){0}) &&
           wb_date_parse_digits(wb_slice(text.ptr, 14), time_ms_out);
}

static const char *parse_arc(struct wb_slice bytes, struct wb_warc_head *head)
{
    struct wb_slice line = wb_slice_trim(bytes);
    struct wb_slice length, type, date, address;
    int64_t time_ms;

    head->lines = span_of(bytes, line);
    if (!last_word(&line, &length) || !last_word(&line, &type))
        return "not an ARC header";
    struct wb_slice before = line;
    if (!last_word(&line, &date))
        return "not an ARC header";
    if (!parse_arc_date(date, &time_ms) && type.len >= 12 && parse_arc_date(type, &time_ms)) {
        /* The type is missing: the word we took for the type is the date. */
        date = type;
        type = WB_SLICE_EMPTY;
        line = before;
    }
    if (!last_word(&line, &address))
        return "not an ARC header";
    if (!wb_slice_to_u64(length, &head->length))
        return "the ARC record's length is not a number";
    struct wb_slice url = wb_slice_trim(line);
    if (!starts_arc(url))
        return "not an ARC header";
    head->has_time = parse_arc_date(date, &head->time_ms);
    /* Digits that form no valid date leave the record without a time. Without digits, this is not an ARC header. */
    if (!head->has_time && (date.len < 8 || !wb_slice_to_u64(date, &(uint64_t){0})))
        return "the ARC record's date is not a date";
    head->uri = span_of(bytes, url);
    if (type.len > 0)
        head->content_type = span_of(bytes, type);
    head->type = wb_slice_starts_nocase(url, WB_SLICE_LIT("filedesc:")) ? WB_WARC_ARC_VERSION : WB_WARC_ARC;
    return NULL;
}

bool wb_warc_head_sha1(struct wb_slice value, uint8_t sha1_out[WB_SHA1_BYTES])
{
    struct wb_slice prefix = WB_SLICE_LIT("sha1:");

    memset(sha1_out, 0, WB_SHA1_BYTES);
    if (!wb_slice_starts_nocase(value, prefix))
        return false;
    struct wb_slice digits = wb_slice(value.ptr + prefix.len, value.len - prefix.len);
    return wb_base32_decode(digits, sha1_out, WB_SHA1_BYTES) || wb_hex_decode(digits, sha1_out, WB_SHA1_BYTES);
}

const char *wb_warc_head_parse(struct wb_slice bytes, struct wb_warc_head *head_out)
{
    *head_out = (struct wb_warc_head){.type = WB_WARC_UNKNOWN};
    return starts_warc(bytes) ? parse_warc(bytes, head_out) : parse_arc(bytes, head_out);
}
