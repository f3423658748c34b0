/*
 * resync.c - the way on after damage: where does the next record start?
 *
 *   the unit is damaged        at the next unit in the file that starts with a record
 *   the record is malformed    at the next header inside the unit, where the unit holds
 *                              several records (a plain file is such a unit);
 *                              else at the next unit that starts with a record
 *
 * A member that holds one record is not searched inside: what looks like a header
 * there is a part of some page. Looking is linear: no byte of a header that was
 * judged and refused can start another one (head.c), and what the source decodes
 * in vain is bounded (source.c).
 */
#include "warc/resync.h"

#include "base/error.h"
#include "warc/head.h"

/* True where a whole header that can be read lies at the first byte. More bytes of the unit are read for it. */
static int judge_header(struct wb_warc_reader *r)
{
    struct wb_source *s = &r->source;
    struct wb_head head;
    size_t scanned = 0, end = 0;

    int err = wb_source_fill(s, WB_HEAD_PEEK);
    if (err < 0 || !wb_head_is_line(wb_source_bytes(s), wb_reader_may_be_arc(r)))
        return err;
    for (;;) {
        struct wb_slice bytes = wb_source_bytes(s);
        size_t have = bytes.len < WB_HEAD_MAX ? bytes.len : WB_HEAD_MAX;
        int found = wb_head_end(wb_slice(bytes.ptr, have), true, &scanned, &end);
        if (found != 0)
            return found > 0 && !wb_head_parse(wb_slice(bytes.ptr, end), &head);
        if (have == WB_HEAD_MAX || !s->unit_open)
            return 0;
        err = wb_source_fill(s, have + 1);
        if (err < 0)
            return err;
    }
}

/* What is in memory holds no start of a record: drops it but for what may be the start of "WARC/", and reads on. */
static int pass_over(struct wb_source *s, size_t *from)
{
    size_t have = wb_source_bytes(s).len;
    size_t n = have > 4 ? have - 4 : 0;

    wb_source_take(s, n);
    *from = *from > n ? *from - n : 0;
    return wb_source_fill(s, have - n + 1);
}

/* The same of an ARC header, at the start of a line or, where garbage runs into it, at the first "http" in the line. */
static int judge_arc_line(struct wb_warc_reader *r, size_t line)
{
    struct wb_source *s = &r->source;
    bool arc = wb_head_is_line(wb_source_bytes(s), true);
    int found = arc ? judge_header(r) : 0;

    if (found != 0 || arc)
        return found;
    struct wb_slice bytes = wb_source_bytes(s);
    const char *http = line <= bytes.len ? memmem(bytes.ptr, line, "http", 4) : NULL;
    if (!http)
        return 0;
    wb_source_take(s, (size_t)(http - bytes.ptr));
    return judge_header(r);
}

/*
 * The next header in the newest unit, behind the first byte: 1, or 0 at the unit's
 * end. Damage may have eaten the line end before a version line, so that one is
 * looked for anywhere; ARC's headers, which are vague, once a line.
 */
static int find_inside(struct wb_warc_reader *r)
{
    struct wb_source *s = &r->source;
    bool line_start = false;
    size_t from = 1;
    int found = wb_source_fill(s, WB_HEAD_PEEK);

    while (found == 0) {
        struct wb_slice bytes = wb_source_bytes(s);
        const char *lf = memchr(bytes.ptr, '\n', bytes.len);
        size_t line = lf ? (size_t)(lf + 1 - bytes.ptr) : bytes.len;
        const char *hit = line > from ? memmem(bytes.ptr + from, line - from, "WARC/", 5) : NULL;
        if (line_start && wb_reader_may_be_arc(r) && !hit) {
            line_start = false;
            found = judge_arc_line(r, line);
            continue;
        }
        line_start = !hit && lf;
        if (hit) {
            wb_source_take(s, (size_t)(hit - bytes.ptr));
            from = 1;
            found = judge_header(r);
        } else if (lf) {
            wb_source_take(s, line);
            from = 0;
            found = wb_source_fill(s, WB_HEAD_PEEK);
        } else if (s->unit_open) {
            found = pass_over(s, &from);
        } else {
            wb_source_take(s, bytes.len);
            return 0;
        }
    }
    return found;
}

/* Takes everything up to the newest unit's start; where that is gone, everything up to its end. */
static int leave_units(struct wb_source *s)
{
    uint64_t cut;

    if (s->unit_at > s->mark && s->kind != WB_SOURCE_PLAIN) {
        wb_source_take(s, s->unit_at - s->mark);
        return 0;
    }
    return wb_source_cut(s, 0, UINT64_MAX, &cut);
}

/* The next unit that starts with a record. */
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
            err = wb_reader_skip_line_ends(s);
        if (err >= 0 && !s->damaged)
            err = wb_source_fill(s, WB_HEAD_PEEK);
        if (err < 0 && err != WB_E_CORRUPT)
            return err;
        if (s->damaged)
            return wb_source_search(s, wb_head_starts, wb_reader_may_be_arc(r));
        if (wb_head_starts(wb_source_bytes(s), wb_reader_may_be_arc(r)))
            return 1;
    }
}

int wb_resync_find(struct wb_warc_reader *r)
{
    struct wb_source *s = &r->source;
    bool inside = s->kind == WB_SOURCE_PLAIN || r->unit_records > 0 || s->unit_offset == 0;

    if (inside && !s->damaged && s->unit_at <= s->mark) {
        int found = find_inside(r);
        if (found != 0 && found != WB_E_CORRUPT)
            return found;
        if (s->kind == WB_SOURCE_PLAIN)
            return found;
    }
    return find_unit(r);
}
