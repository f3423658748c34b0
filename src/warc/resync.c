/*
 * resync.c - after damage, finds the place where the next record starts.
 *
 *   the unit is damaged        search the file for the next unit that starts with a record
 *   the record is malformed    if the unit holds several records (a plain file does), search
 *                              the unit for the next header; otherwise continue with the next
 *                              unit that starts with a record
 *
 * A member that holds a single record is never searched inside: what looks like a header
 * there is part of some page. The search is linear: no byte of a rejected header can start
 * another one (warchead.c), and the number of bytes decoded in vain is bounded (source.c).
 */
#include "warc/resync.h"

#include "base/check.h"
#include "base/error.h"
#include "warc/warchead.h"

/* Finds the first "WARC/", in any case, at or after `from`; bytes.len if there is none. Reads each byte about once. */
static size_t find_version(struct wb_slice bytes, size_t from)
{
    /* Boyer-Moore-Horspool: how far the pattern can move when this byte is under its '/'. */
    static const unsigned char shift[256] = {['W'] = 4, ['A'] = 3, ['R'] = 2, ['C'] = 1,
                                             ['w'] = 4, ['a'] = 3, ['r'] = 2, ['c'] = 1};
    size_t at = from;

    while (bytes.len >= 5 && at <= bytes.len - 5) {
        unsigned char last = (unsigned char)bytes.ptr[at + 4];
        if (last == '/' && wb_slice_equal_nocase(wb_slice(bytes.ptr + at, 4), WB_SLICE_LIT("WARC")))
            return at;
        at += shift[last] ? shift[last] : 5;
    }
    return bytes.len;
}

/* Returns 1 if a complete, valid header starts at `at`. Decodes more of the unit if it needs to. */
static int judge_header(struct wb_warc_reader *r, size_t at)
{
    struct wb_source *s = &r->source;
    struct wb_warc_head head;
    size_t scanned = 0, end = 0;

    int err = wb_source_fill(s, at + WB_WARC_HEAD_PEEK);
    if (err < 0 || !wb_warc_head_is_line(wb_source_after(s, at), wb_warc_reader_may_be_arc(r)))
        return err;
    for (;;) {
        struct wb_slice bytes = wb_source_after(s, at);
        size_t have = bytes.len < WB_WARC_HEAD_MAX ? bytes.len : WB_WARC_HEAD_MAX;
        int found = wb_warc_head_end(wb_slice(bytes.ptr, have), true, &scanned, &end);
        if (found != 0)
            return found > 0 && !wb_warc_head_parse(wb_slice(bytes.ptr, end), &head);
        if (have == WB_WARC_HEAD_MAX || !s->unit_open)
            return 0;
        err = wb_source_fill(s, at + have + 1);
        if (err < 0)
            return err;
    }
}

/*
 * The same for an ARC header, which is at the start of the line or, if garbage precedes it
 * there, at the first "http" in the line.
 */
static int judge_arc_line(struct wb_warc_reader *r, size_t *at, size_t line_end)
{
    struct wb_slice line = wb_source_after(&r->source, *at);

    line.len = line_end - *at;
    if (wb_warc_head_is_line(line, true))
        return judge_header(r, *at);
    const char *http = memmem(line.ptr, line.len, "http", 4);
    if (!http)
        return 0;
    size_t inside = *at + (size_t)(http - line.ptr);
    int found = judge_header(r, inside);
    if (found > 0)
        *at = inside;
    return found;
}

/* Searches the bytes in memory up to `end`: 1 with scan->at at a header, or 0 with scan->at where to continue. */
static int scan_versions(struct wb_warc_reader *r, struct wb_resync *scan, size_t end)
{
    for (;;) {
        struct wb_slice bytes = wb_source_bytes(&r->source);
        size_t hit = find_version(wb_slice(bytes.ptr, end), scan->at);
        if (hit == end) {
            /* The last four bytes may be the beginning of "WARC/". */
            size_t rest = end > 4 ? end - 4 : 0;
            scan->at = rest > scan->at ? rest : scan->at;
            return 0;
        }
        scan->at = hit;
        int found = judge_header(r, hit);
        if (found != 0)
            return found;
        scan->at = hit + 1;
    }
}

/* Drops the bytes that were searched and need not be kept, then decodes more. */
static int scan_further(struct wb_source *s, struct wb_resync *scan)
{
    uint64_t cut = 0;

    if (scan->at > scan->keep) {
        size_t n = scan->at - scan->keep;
        if (scan->keep == 0) {
            wb_source_take(s, n);
            cut = n;
        } else {
            int err = wb_source_cut(s, scan->keep, n, &cut);
            if (err < 0)
                return err;
        }
        WB_CHECK(cut == n);
        scan->at -= n;
        scan->dropped += n;
    }
    return wb_source_fill(s, wb_source_bytes(s).len + 1);
}

/*
 * Finds the end of the line that starts at `from`: behind its LF or, if the unit ends first
 * or the line is too long for a header, at the end of the bytes in memory. Returns false if
 * more bytes are needed.
 */
static bool find_line_end(struct wb_source *s, size_t from, size_t *end_out)
{
    struct wb_slice bytes = wb_source_bytes(s);
    const char *lf = bytes.len > from ? memchr(bytes.ptr + from, '\n', bytes.len - from) : NULL;

    *end_out = lf ? (size_t)(lf + 1 - bytes.ptr) : bytes.len;
    return lf || !s->unit_open || bytes.len - from >= WB_WARC_HEAD_MAX;
}

/*
 * Searches one line of a file that may be ARC. ARC headers are vague, so one is expected
 * only once per line; a WARC version may be anywhere in the line.
 */
static int scan_line(struct wb_warc_reader *r, struct wb_resync *scan)
{
    struct wb_source *s = &r->source;
    size_t end;

    while (!find_line_end(s, scan->at, &end)) {
        int err = scan_further(s, scan);
        if (err < 0)
            return err;
    }
    size_t at = scan->at;
    int found = scan->line_start ? judge_arc_line(r, &at, end) : 0;
    if (found != 0) {
        scan->at = at;
        return found;
    }
    found = scan_versions(r, scan, end);
    if (found != 0)
        return found;
    struct wb_slice bytes = wb_source_bytes(s);
    scan->line_start = bytes.len >= end && end > 0 && bytes.ptr[end - 1] == '\n';
    scan->at = scan->line_start || !s->unit_open ? end : scan->at;
    return 0;
}

int wb_resync_scan(struct wb_warc_reader *r, struct wb_resync *scan, uint64_t limit)
{
    struct wb_source *s = &r->source;

    for (;;) {
        int found = wb_warc_reader_may_be_arc(r) ? scan_line(r, scan) : scan_versions(r, scan, wb_source_bytes(s).len);
        if (found != 0)
            return found;
        if (scan->dropped + scan->at >= limit)
            return 0;
        if (scan->at + 4 < wb_source_bytes(s).len)
            continue;
        if (!s->unit_open) {
            scan->at = wb_source_bytes(s).len; /* the remaining bytes are too few for a header */
            return 0;
        }
        found = scan_further(s, scan);
        if (found < 0)
            return found;
    }
}

/*
 * Finds the next header in the newest unit, after the first byte: 1, or 0 at the unit's end.
 * The version is searched for anywhere, not only at the start of a line, because damage may
 * have removed the line end before it.
 */
static int find_inside(struct wb_warc_reader *r)
{
    struct wb_source *s = &r->source;
    struct wb_resync scan = {.at = 1};

    int err = wb_source_fill(s, WB_WARC_HEAD_PEEK);
    if (err < 0)
        return err;
    if (wb_source_bytes(s).len == 0)
        return 0;
    int found = wb_resync_scan(r, &scan, UINT64_MAX);
    if (found >= 0)
        wb_source_take(s, scan.at);
    return found;
}

/* Skips to the start of the newest unit or, if the reader is already inside that unit, to its end. */
static int leave_units(struct wb_source *s)
{
    uint64_t cut;

    if (s->unit_at > s->mark && s->kind != WB_SOURCE_PLAIN) {
        wb_source_take(s, s->unit_at - s->mark);
        return 0;
    }
    return wb_source_cut(s, 0, UINT64_MAX, &cut);
}

/* Finds the next unit that starts with a record. */
static int find_unit(struct wb_warc_reader *r)
{
    struct wb_source *s = &r->source;

    for (;;) {
        int err = s->damaged ? 0 : leave_units(s);
        if (err == 0 && !s->damaged && !s->unit_open && wb_source_bytes(s).len == 0) {
            err = wb_source_next(s);
            if (err == 0)
                return 0;
        }
        if (err >= 0 && !s->damaged)
            err = wb_warc_reader_skip_line_ends(s);
        if (err >= 0 && !s->damaged)
            err = wb_source_fill(s, WB_WARC_HEAD_PEEK);
        if (err < 0 && err != WB_E_CORRUPT)
            return err;
        if (s->damaged)
            return wb_source_search(s, wb_warc_head_starts, wb_warc_reader_may_be_arc(r));
        if (wb_warc_head_starts(wb_source_bytes(s), wb_warc_reader_may_be_arc(r)))
            return 1;
    }
}

int wb_resync_find(struct wb_warc_reader *r)
{
    struct wb_source *s = &r->source;

    WB_CHECK(r->magic == WB_WARC_READER_MAGIC && r->taken == 0); /* the last record has been given back */
    if (wb_warc_reader_holds_several(r) && !s->damaged && s->unit_at <= s->mark) {
        int found = find_inside(r);
        if (found != 0 && found != WB_E_CORRUPT)
            return found;
        if (s->kind == WB_SOURCE_PLAIN)
            return found;
    }
    return find_unit(r);
}
