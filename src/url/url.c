/*
 * url.c - the URL standard's basic URL parser. It reads the scheme and decides how the rest is read, with or without
 * a base. authority.c, host.c and tail.c read the parts.
 *
 *   input -> trimmed, cleaned -> scheme? -+-> file        "file:..."
 *                                         +-> relative    special, same scheme as base; or no scheme
 *                                         +-> authority   "http:...", "any://..."
 *                                         +-> path        "any:/..."
 *                                         +-> opaque      "any:..."
 *
 * The standard's states are functions here, each of which reads its part of the input once. "Validation errors", after
 * which the standard goes on, are not reported.
 */
#include "url/reader.h"
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "url/host.h"
#include "url/idna.h"

/* ---- preparing the input ---------------------------------------------------------- */

static struct wb_slice trim_controls(struct wb_slice s)
{
    while (s.len > 0 && (uint8_t)s.ptr[0] <= ' ') {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (uint8_t)s.ptr[s.len - 1] <= ' ')
        s.len--;
    return s;
}

/* Writes s without tabs and line ends, and as well-formed UTF-8 (at most 3 * s.len bytes). */
static size_t clean_text(struct wb_slice s, char *out)
{
    char *start = out;

    for (size_t i = 0; i < s.len;) {
        size_t n = wb_utf8_length(s.ptr + i, s.len - i);
        if (n == 0) {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
            n = 1;
        } else if (n > 1 || !wb_byte_is(s.ptr[i], WB_BYTE_UNCLEAN)) {
            memcpy(out, s.ptr + i, n);
            out += n;
        }
        i += n;
    }
    return (size_t)(out - start);
}

/*
 * Makes room in href for all that may be written, and behind that for the cleaned input if it has to be cleaned. Sets
 * r->at, r->end and r->out.
 */
static int prepare_reader(struct wb_reader *r, struct wb_slice input, size_t *room_out)
{
    struct wb_buf *href = &r->url->href;
    unsigned seen = 0;

    input = trim_controls(input);
    for (size_t i = 0; i < input.len; i++)
        seen |= wb_byte_class[(uint8_t)input.ptr[i]] | (input.ptr[i] == '%' ? 1u << 16 : 0);
    bool clean = !(seen & WB_BYTE_UNCLEAN);
    size_t len = clean || wb_utf8_valid(input) ? input.len : 3 * input.len;
    size_t room = 3 * len + WB_READER_SLACK;
    if (r->base)
        room += r->base->href.len;
    if (!clean || seen & 1u << 16)
        room += WB_IDNA_MAX_BYTES;
    int err = wb_buf_reserve(href, room + (clean ? 0 : len));
    if (err < 0)
        return err;
    if (!clean)
        input = wb_slice(href->ptr + room, clean_text(input, href->ptr + room));
    r->at = input.ptr;
    r->end = input.ptr + input.len;
    r->out = href->ptr;
    *room_out = room;
    return 0;
}

/* ---- schemes ---------------------------------------------------------------------- */

/* Reads a scheme and its ':' and writes both. Returns false if the input does not begin with a scheme. */
static bool read_scheme(struct wb_reader *r)
{
    const char *p = r->at;
    char *out = r->out;

    if (p == r->end || !wb_ascii_is_letter(*p))
        return false;
    for (; p < r->end && wb_byte_is(*p, WB_BYTE_SCHEME); p++)
        *out++ = wb_ascii_lower(*p);
    if (p == r->end || *p != ':')
        return false;
    r->url->scheme_end = (uint32_t)(out - r->url->href.ptr);
    *out++ = ':';
    r->at = p + 1;
    r->out = out;
    return true;
}

static bool is_special(struct wb_slice scheme)
{
    switch (scheme.len) {
    case 2:
        return memcmp(scheme.ptr, "ws", 2) == 0;
    case 3:
        return memcmp(scheme.ptr, "wss", 3) == 0 || memcmp(scheme.ptr, "ftp", 3) == 0;
    case 4:
        return memcmp(scheme.ptr, "http", 4) == 0 || memcmp(scheme.ptr, "file", 4) == 0;
    case 5:
        return memcmp(scheme.ptr, "https", 5) == 0;
    default:
        return false;
    }
}

static bool is_file(const struct wb_url *url)
{
    return url->special && url->scheme_end == 4 && url->href.ptr[0] == 'f';
}

/* ---- parts copied from the base ----------------------------------------------------- */

/* Copies everything before the path. */
static void copy_authority(struct wb_reader *r)
{
    const struct wb_url *base = r->base;
    struct wb_buf href = r->url->href;

    *r->url = *base;
    r->url->href = href;
    r->url->has_query = r->url->has_fragment = r->url->opaque_path = false;
    r->out = href.ptr;
    wb_reader_put(r, base->href.ptr, base->port_end);
    r->url->path_at = wb_reader_mark(r);
}

static void copy_path(struct wb_reader *r)
{
    const struct wb_url *base = r->base;

    r->url->path_at = wb_reader_mark(r);
    wb_reader_put(r, base->href.ptr + base->path_at, base->path_end - base->path_at);
    r->url->path_end = wb_reader_mark(r);
}

/* Copies the path together with the "/." that some paths have in front of them. */
static void copy_whole_path(struct wb_reader *r)
{
    uint32_t prefix = r->base->path_at - r->base->port_end;

    wb_reader_put(r, r->base->href.ptr + r->base->port_end, prefix);
    copy_path(r);
}

static void copy_query(struct wb_reader *r)
{
    const struct wb_url *base = r->base;

    if (!base->has_query)
        return;
    *r->out++ = '?';
    r->url->has_query = true;
    r->url->query_at = wb_reader_mark(r);
    wb_reader_put(r, base->href.ptr + base->query_at, base->query_end - base->query_at);
    r->url->query_end = wb_reader_mark(r);
}

/* If the rest of the input is only a query or a fragment, or empty, copies what is missing. False: there is a path. */
static bool read_same_page(struct wb_reader *r)
{
    if (r->at < r->end && *r->at != '?' && *r->at != '#')
        return false;
    copy_whole_path(r);
    if (r->at == r->end || *r->at == '#')
        copy_query(r);
    wb_tail_read_query(r);
    return true;
}

/* ---- the states --------------------------------------------------------------------- */

static int read_authority(struct wb_reader *r)
{
    struct wb_url *url = r->url;

    wb_reader_put(r, "//", 2);
    int err = wb_authority_read(r);
    if (err < 0)
        return err;
    url->path_at = url->path_end = wb_reader_mark(r);
    if (wb_reader_slash(r))
        r->at++;
    else if (!url->special) {
        wb_tail_read_query(r);
        return 0;
    }
    wb_tail_read(r);
    return 0;
}

static int read_special_authority(struct wb_reader *r)
{
    while (wb_reader_slash(r))
        r->at++;
    return read_authority(r);
}

static int read_relative(struct wb_reader *r)
{
    r->url->special = r->base->special;
    if (wb_reader_slash(r)) {
        r->at++;
        if (wb_reader_slash(r)) {
            r->at++;
            r->url->scheme_end = r->base->scheme_end;
            r->out = r->url->href.ptr;
            wb_reader_put(r, r->base->href.ptr, r->base->scheme_end + 1);
            return r->url->special ? read_special_authority(r) : read_authority(r);
        }
        copy_authority(r);
    } else {
        copy_authority(r);
        if (read_same_page(r))
            return 0;
        copy_path(r);
        wb_tail_shorten(r);
    }
    wb_tail_read(r);
    return 0;
}

/* What the standard calls "starts with a Windows drive letter". */
static bool starts_with_drive(const struct wb_reader *r)
{
    const char *p = r->at;

    return wb_reader_drive_letter(p, r->end) &&
           (r->end - p == 2 || wb_byte_is(p[2], WB_BYTE_SEGMENT_END) || p[2] == '\\');
}

static int read_file_host(struct wb_reader *r)
{
    const char *end = r->at;

    while (end < r->end && !wb_byte_is(*end, WB_BYTE_SEGMENT_END) && *end != '\\')
        end++;
    struct wb_slice host = wb_slice(r->at, (size_t)(end - r->at));
    if (host.len == 0 || (host.len == 2 && wb_reader_drive_letter(host.ptr, end))) {
        wb_authority_host(r, WB_SLICE_EMPTY);
    } else {
        char *from = r->out;
        int err = wb_host_read(r, host);
        if (err < 0)
            return err;
        struct wb_slice written = wb_slice(from, (size_t)(r->out - from));
        if (wb_slice_equal(written, WB_SLICE_LIT("localhost")))
            written = WB_SLICE_EMPTY;
        r->out = from;
        wb_authority_host(r, written);
        r->at = end;
    }
    r->url->path_at = wb_reader_mark(r);
    if (wb_reader_slash(r))
        r->at++;
    wb_tail_read(r);
    return 0;
}

/* Reads what follows "file:". base is a file URL or NULL. */
static int read_file(struct wb_reader *r, const struct wb_url *base)
{
    struct wb_slice host = base ? wb_url_host(base) : WB_SLICE_EMPTY;

    r->file = true;
    wb_reader_put(r, "//", 2);
    bool slash = wb_reader_slash(r);
    if (slash) {
        r->at++;
        if (wb_reader_slash(r)) {
            r->at++;
            return read_file_host(r);
        }
    }
    wb_authority_host(r, host);
    r->url->path_at = wb_reader_mark(r);
    if (base && !slash && read_same_page(r))
        return 0;
    if (base && !starts_with_drive(r)) {
        struct wb_slice path = wb_url_path(base);
        bool drive = path.len >= 3 && wb_ascii_is_letter(path.ptr[1]) && path.ptr[2] == ':' &&
                     (path.len == 3 || path.ptr[3] == '/');
        if (!slash) {
            copy_path(r);
            wb_tail_shorten(r);
        } else if (drive) {
            wb_reader_put(r, path.ptr, 3);
        }
    }
    wb_tail_read(r);
    return 0;
}

static int read_without_scheme(struct wb_reader *r)
{
    const struct wb_url *base = r->base;

    if (!base)
        return wb_reader_fail(r, WB_E_PROTO, "it is relative and there is no base");
    if (base->opaque_path) {
        if (r->at == r->end || *r->at != '#')
            return wb_reader_fail(r, WB_E_PROTO, "it is relative and its base has an opaque path");
        copy_authority(r);
        r->url->opaque_path = true;
        read_same_page(r);
        return 0;
    }
    if (!is_file(base))
        return read_relative(r);
    wb_reader_put(r, "file:", 5);
    r->url->scheme_end = 4;
    r->url->special = true;
    return read_file(r, base);
}

static int read_url(struct wb_reader *r)
{
    struct wb_url *url = r->url;
    const struct wb_url *base = r->base;

    if (!read_scheme(r))
        return read_without_scheme(r);
    struct wb_slice scheme = wb_slice(url->href.ptr, url->scheme_end);
    bool same = base && wb_slice_equal(scheme, wb_url_scheme(base));
    url->special = is_special(scheme);
    if (is_file(url))
        return read_file(r, same ? base : NULL);
    if (url->special)
        return same ? read_relative(r) : read_special_authority(r);
    if (!wb_reader_slash(r)) {
        wb_authority_none(r);
        wb_tail_read_opaque(r);
        return 0;
    }
    r->at++;
    if (wb_reader_slash(r)) {
        r->at++;
        return read_authority(r);
    }
    wb_authority_none(r);
    url->path_at = wb_reader_mark(r);
    wb_tail_read(r);
    return 0;
}

/* ---- the door ----------------------------------------------------------------------- */

static void empty_url(struct wb_url *url)
{
    struct wb_buf href = url->href;

    *url = WB_URL_INIT;
    url->href = href;
    url->href.len = 0;
}

/* The message quotes the input, cut if it is long, and without control characters that a terminal would obey. */
static int fail_url(int code, struct wb_slice input, const char *why)
{
    char shown[161];
    size_t len = input.len < sizeof shown - 1 ? input.len : sizeof shown - 1;

    for (size_t i = 0; i < len; i++)
        shown[i] = (uint8_t)input.ptr[i] < ' ' || input.ptr[i] == 0x7f ? '?' : input.ptr[i];
    shown[len] = '\0';
    return wb_fail(code, "not a URL: '%s%s': %s", shown, len < input.len ? "..." : "", why);
}

/* The parts of a URL are in the order in which the struct names them, and all of them are within href. */
static void check_order(const struct wb_url *u)
{
    WB_CHECK(u->scheme_end < u->username_at && u->username_at <= u->username_end && u->username_end <= u->password_at);
    WB_CHECK(u->password_at <= u->password_end && u->password_end <= u->host_at && u->host_at <= u->host_end);
    WB_CHECK(u->host_end <= u->port_at && u->port_at <= u->port_end && u->port_end <= u->path_at);
    WB_CHECK(u->path_at <= u->path_end && u->path_end <= u->href.len);
    WB_CHECK(!u->has_query || (u->path_end < u->query_at && u->query_at <= u->query_end));
    WB_CHECK(!u->has_fragment || (u->path_end < u->fragment_at && u->fragment_at <= u->href.len));
}

int wb_url_parse(struct wb_slice input, const struct wb_url *base, struct wb_url *url_out)
{
    struct wb_reader r = {.base = base, .url = url_out};
    size_t room = 0;

    WB_CHECK(base != url_out && (!base || base->href.len > 0));
    empty_url(url_out);
    if (input.len > WB_URL_MAX_BYTES)
        return fail_url(WB_E_LIMIT, input, "it is too long");
    int err = prepare_reader(&r, input, &room);
    if (err < 0)
        return err;
    err = read_url(&r);
    if (err < 0) {
        empty_url(url_out);
        return r.why ? fail_url(err, input, r.why) : err;
    }
    url_out->href.len = wb_reader_mark(&r);
    WB_CHECK(url_out->href.len <= room);
    if (url_out->href.len > WB_URL_MAX_BYTES) {
        empty_url(url_out);
        return fail_url(WB_E_LIMIT, input, "it is too long when written out");
    }
    check_order(url_out);
    return 0;
}

void wb_url_release(struct wb_url *url)
{
    wb_buf_release(&url->href);
    *url = WB_URL_INIT;
}

static struct wb_slice part(const struct wb_url *url, uint32_t at, uint32_t end)
{
    return at < end ? wb_slice(url->href.ptr + at, end - at) : WB_SLICE_EMPTY;
}

struct wb_slice wb_url_href(const struct wb_url *url)
{
    return wb_buf_slice(&url->href);
}

struct wb_slice wb_url_scheme(const struct wb_url *url)
{
    return part(url, 0, url->scheme_end);
}

struct wb_slice wb_url_host(const struct wb_url *url)
{
    return part(url, url->host_at, url->host_end);
}

struct wb_slice wb_url_port(const struct wb_url *url)
{
    return part(url, url->port_at, url->port_end);
}

struct wb_slice wb_url_path(const struct wb_url *url)
{
    return part(url, url->path_at, url->path_end);
}

struct wb_slice wb_url_query(const struct wb_url *url)
{
    return part(url, url->query_at, url->query_end);
}

bool wb_url_is_http(const struct wb_url *url)
{
    /* http and https are the only special schemes that begin with 'h'. */
    return url->special && url->href.ptr[0] == 'h';
}

int wb_url_public(struct wb_slice url, struct wb_buf *memory_out, struct wb_slice *public_out)
{
    const char *slashes = url.len ? memmem(url.ptr, url.len, "//", 2) : NULL, *at = NULL;

    *public_out = url;
    if (!slashes || (slashes > url.ptr && slashes[-1] != ':'))
        return 0;
    for (const char *p = slashes + 2; p < url.ptr + url.len && *p != '/' && *p != '?' && *p != '#'; p++)
        if (*p == '@')
            at = p;
    if (!at)
        return 0;
    wb_buf_clear(memory_out);
    int err = wb_buf_append(memory_out, url.ptr, (size_t)(slashes + 2 - url.ptr));
    if (err == 0)
        err = wb_buf_append(memory_out, at + 1, (size_t)(url.ptr + url.len - at - 1));
    *public_out = wb_buf_slice(memory_out);
    return err;
}
