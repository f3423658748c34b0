/*
 * tail.c - what follows the authority: path, query, fragment.
 *
 * A path is written as "/segment/segment": the standard's list with a slash before each item. So a ".." just cuts at
 * the last slash. Each byte is written once and cut once at most, so the work is linear. About the scheme this file
 * only knows whether it is special, and whether it is "file".
 */
#include "url/reader.h"

/*
 * If the input begins with a segment "." or "..", in any spelling with %2e, returns its length and sets *dots_out to
 * 1 or 2. Otherwise returns 0.
 */
static size_t measure_dots(const struct wb_reader *r, int *dots_out)
{
    const char *p = r->at;
    int dots = 0;

    *dots_out = 0;
    while (p < r->end && dots < 3) {
        if (*p == '.')
            p++;
        else if (wb_escape_value(p, r->end) == '.')
            p += 3;
        else
            break;
        dots++;
    }
    if (dots == 0 || dots == 3)
        return 0;
    if (p < r->end && !wb_byte_is(*p, WB_BYTE_SEGMENT_END) && !(*p == '\\' && r->url->special))
        return 0;
    *dots_out = dots;
    return (size_t)(p - r->at);
}

static void write_segment(struct wb_reader *r)
{
    const char *p = r->at, *end = r->end;
    char *out = r->out;
    bool special = r->url->special;

    *out++ = '/';
    for (; p < end; p++) {
        char c = *p;
        if (!wb_byte_is(c, WB_BYTE_PATH | WB_BYTE_SEGMENT_END) && c != '\\')
            *out++ = c;
        else if (wb_byte_is(c, WB_BYTE_SEGMENT_END) || (c == '\\' && special))
            break;
        else if (c == '\\')
            *out++ = c;
        else
            out = wb_escape_byte(out, c);
    }
    r->at = p;
    r->out = out;
}

void wb_tail_shorten(struct wb_reader *r)
{
    char *path = r->url->href.ptr + r->url->path_at;

    /* The path of a file URL keeps its drive, which was normalised to "C:". */
    if (r->file && r->out - path == 3 && wb_ascii_is_letter(path[1]) && path[2] == ':')
        return;
    if (r->out > path) {
        do
            r->out--;
        while (*r->out != '/');
    }
}

static void write_path(struct wb_reader *r)
{
    char *path = r->url->href.ptr + r->url->path_at;

    for (;;) {
        int dots = 0;
        if (r->at < r->end && (*r->at == '.' || *r->at == '%'))
            r->at += measure_dots(r, &dots);
        if (dots == 0) {
            bool first = r->out == path;
            write_segment(r);
            if (r->file && first && r->out - path == 3 && wb_reader_drive_letter(path + 1, r->out))
                path[2] = ':';
        } else if (dots == 2) {
            wb_tail_shorten(r);
        }
        if (!wb_reader_slash(r)) {
            if (dots > 0)
                *r->out++ = '/';
            break;
        }
        r->at++;
    }
}

void wb_tail_read_query(struct wb_reader *r)
{
    struct wb_url *url = r->url;

    if (r->at < r->end && *r->at == '?') {
        const char *from = ++r->at;
        const char *hash = memchr(from, '#', (size_t)(r->end - from));
        r->at = hash ? hash : r->end;
        *r->out++ = '?';
        url->has_query = true;
        url->query_at = wb_reader_mark(r);
        r->out = wb_escape_text(r->out, wb_slice(from, (size_t)(r->at - from)),
                                url->special ? WB_BYTE_SPECIAL_QUERY : WB_BYTE_QUERY);
        url->query_end = wb_reader_mark(r);
    } else if (!url->has_query) {
        url->query_at = url->query_end = wb_reader_mark(r);
    }
    if (r->at < r->end) {
        r->at++;
        *r->out++ = '#';
        url->has_fragment = true;
        url->fragment_at = wb_reader_mark(r);
        r->out = wb_escape_text(r->out, wb_slice(r->at, (size_t)(r->end - r->at)), WB_BYTE_FRAGMENT);
        r->at = r->end;
    } else {
        url->fragment_at = wb_reader_mark(r);
    }
}

void wb_tail_read(struct wb_reader *r)
{
    struct wb_url *url = r->url;

    write_path(r);
    char *path = url->href.ptr + url->path_at;
    if (!url->has_host && r->out - path >= 2 && path[0] == '/' && path[1] == '/') {
        /* Without a "/." in front, the path would be taken for an authority when the URL is parsed again. */
        memmove(path + 2, path, (size_t)(r->out - path));
        memcpy(path, "/.", 2);
        url->path_at += 2;
        r->out += 2;
    }
    url->path_end = wb_reader_mark(r);
    wb_tail_read_query(r);
}

void wb_tail_read_opaque(struct wb_reader *r)
{
    struct wb_url *url = r->url;
    const char *p = r->at;

    url->opaque_path = true;
    url->path_at = wb_reader_mark(r);
    for (; p < r->end && *p != '?' && *p != '#'; p++) {
        /* A space at the very end of the path is escaped: it would be trimmed if query and fragment were removed. */
        bool last_blank = *p == ' ' && p + 1 < r->end && (p[1] == '?' || p[1] == '#');
        if (last_blank || wb_byte_is(*p, WB_BYTE_C0))
            r->out = wb_escape_byte(r->out, *p);
        else
            *r->out++ = *p;
    }
    r->at = p;
    url->path_end = wb_reader_mark(r);
    wb_tail_read_query(r);
}
