/*
 * warcreader.c - reads the records of an archive, one after another.
 *
 * A record is complete if its block and its trailer are there and, when it ends together
 * with its unit, the unit's checksum was right. If only the length or the end of a record is
 * wrong, the part that is there is delivered together with a message (warcsalvage.c).
 * Anything else is one error with the offset of the unit; the next call continues where
 * resync.c finds the next record.
 *
 * If a unit that holds several records is damaged, any of them may be the damaged one. They
 * are delivered marked as truncated, unless their own digest proves them right.
 *
 * Memory: the block up to block_max, the header up to WB_WARC_HEAD_MAX, and the source's
 * windows. It never interprets a block: warcpage.c does.
 */
#include "warc/warcreader.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "warc/resync.h"
#include "warc/warchead.h"

#include <inttypes.h>

#define ARC_PEEK 4096

/* ---- opening --------------------------------------------------------------------------- */

int wb_warc_open_input(struct wb_warcinput *input, size_t block_max, struct wb_warc_reader **reader_out)
{
    *reader_out = NULL;
    struct wb_warc_reader *r = wb_alloc_zero(1, sizeof *r);
    if (!r) {
        wb_warcinput_close(input);
        return WB_E_NOMEM;
    }
    r->magic = WB_WARC_READER_MAGIC;
    r->block_max = block_max;
    r->unit_offset = UINT64_MAX; /* no unit yet */
    int err = wb_source_init(&r->source, input, block_max + WB_WARC_HEAD_MAX);
    if (err < 0) {
        wb_warc_close(r);
        return err;
    }
    *reader_out = r;
    return 0;
}

int wb_warc_open_file(struct wb_file *file, size_t block_max, struct wb_warc_reader **reader_out)
{
    struct wb_warcinput *input = NULL;

    *reader_out = NULL;
    int err = wb_warcinput_open_file(file, &input);
    return err < 0 ? err : wb_warc_open_input(input, block_max, reader_out);
}

int wb_warc_open(const char *path, size_t block_max, struct wb_warc_reader **reader_out)
{
    struct wb_file file = WB_FILE_INIT;

    *reader_out = NULL;
    if (wb_path_kind(path) == WB_PATH_DIR)
        return wb_fail(WB_E_INVALID, "%s is a directory, not a web archive", path);
    int err = wb_file_open(path, WB_FILE_READ, &file);
    return err < 0 ? err : wb_warc_open_file(&file, block_max, reader_out);
}

void wb_warc_close(struct wb_warc_reader *reader)
{
    if (!reader)
        return;
    WB_CHECK(reader->magic == WB_WARC_READER_MAGIC);
    reader->magic = 0;
    wb_source_release(&reader->source);
    wb_free(reader);
}

uint64_t wb_warc_error_offset(const struct wb_warc_reader *reader)
{
    return reader->error_offset;
}

void wb_warc_progress(const struct wb_warc_reader *reader, uint64_t *done_out, uint64_t *size_out)
{
    const struct wb_source *s = &reader->source;

    *size_out = s->size;
    *done_out = s->kind == WB_SOURCE_PLAIN ? wb_source_offset(s) : s->in_offset + s->in_pos;
    if (*done_out > *size_out)
        *done_out = *size_out;
}

/* ---- one record ---------------------------------------------------------------------------- */

static int fail_record(struct wb_warc_reader *r, const char *what)
{
    return wb_fail(WB_E_CORRUPT, "%s, offset %" PRIu64 ": %s", r->source.input->name, r->offset, what);
}

static int fail_broken(struct wb_warc_reader *r, enum wb_warc_broken broken)
{
    r->broken = broken;
    return fail_record(r, wb_warc_broken_words(broken));
}

int wb_warc_reader_skip_line_ends(struct wb_source *s)
{
    for (;;) {
        struct wb_slice bytes = wb_source_bytes(s);
        size_t n = 0;
        while (n < bytes.len && (bytes.ptr[n] == '\r' || bytes.ptr[n] == '\n'))
            n++;
        wb_source_take(s, n);
        if (n < bytes.len || !s->unit_open)
            return 0;
        int err = wb_source_fill(s, 1);
        if (err < 0)
            return err;
    }
}

/* Moves to the first byte of the next record: 1, or 0 at the end of the file. */
static int begin_record(struct wb_warc_reader *r)
{
    struct wb_source *s = &r->source;

    for (;;) {
        r->offset = s->unit_offset;
        int err = wb_warc_reader_skip_line_ends(s);
        if (err < 0)
            return err;
        if (wb_source_bytes(s).len > 0)
            break;
        err = wb_source_next(s);
        if (err <= 0) {
            r->offset = s->unit_offset;
            return err;
        }
    }
    r->offset = wb_source_offset(s);
    r->unit_records = r->unit_offset == s->unit_offset ? r->unit_records + 1 : 0;
    r->unit_offset = s->unit_offset;
    int err = wb_source_fill(s, WB_WARC_HEAD_PEEK);
    if (err < 0)
        return err;
    struct wb_slice bytes = wb_source_bytes(s);
    bool warc = wb_warc_head_starts(bytes, false);
    if (!warc && !wb_warc_head_starts(bytes, wb_warc_reader_may_be_arc(r)))
        return fail_record(r, "no record starts here");
    if (!r->recognised)
        r->arc = !warc;
    r->recognised |= warc;
    return 1;
}

/* Returns 1 if a record starts at `at`. ARC headers are vague: there, the whole header must be valid. */
static int record_starts(struct wb_warc_reader *r, size_t at)
{
    struct wb_source *s = &r->source;
    struct wb_warc_head head;

    int err = wb_source_fill(s, at + (r->arc ? ARC_PEEK : WB_WARC_HEAD_PEEK));
    if (err < 0)
        return err;
    struct wb_slice bytes = wb_source_after(s, at);
    if (!wb_warc_head_starts(bytes, r->arc))
        return 0;
    const char *lf = r->arc ? memchr(bytes.ptr, '\n', bytes.len) : NULL;
    return !r->arc || (lf && !wb_warc_head_parse(wb_slice(bytes.ptr, (size_t)(lf + 1 - bytes.ptr)), &head));
}

/* Makes at least `want` bytes of the record visible, from as many units as that takes. */
static int need(struct wb_warc_reader *r, size_t want)
{
    struct wb_source *s = &r->source;

    for (;;) {
        int err = wb_source_fill(s, want);
        if (err < 0)
            return err;
        size_t have = wb_source_bytes(s).len;
        if (have >= want)
            return 0;
        err = wb_source_next(s);
        if (err < 0)
            return err;
        if (err == 0)
            return fail_broken(r, WB_WARC_BROKEN_FILE_ENDS);
        err = record_starts(r, have);
        if (err < 0)
            return err;
        if (err > 0)
            return fail_broken(r, WB_WARC_BROKEN_NEXT_STARTS);
    }
}

/* Reads and parses the header; it is *len_out bytes long. */
static int read_head(struct wb_warc_reader *r, struct wb_warc_head *head_out, size_t *len_out)
{
    struct wb_source *s = &r->source;
    size_t scanned = 0, have = 0;

    *len_out = 0;
    for (;;) {
        struct wb_slice bytes = wb_source_bytes(s);
        have = bytes.len < WB_WARC_HEAD_MAX ? bytes.len : WB_WARC_HEAD_MAX;
        int found = wb_warc_head_end(wb_slice(bytes.ptr, have), false, &scanned, len_out);
        if (found < 0)
            return fail_record(r, "another record starts inside the header");
        if (found > 0)
            break;
        if (have == WB_WARC_HEAD_MAX)
            return fail_record(r, "the header does not end");
        int err = need(r, have + 1);
        if (err < 0)
            return err;
    }
    const char *wrong = wb_warc_head_parse(wb_slice(wb_source_bytes(s).ptr, *len_out), head_out);
    if (wrong)
        return fail_record(r, wrong);
    r->recognised = true;
    return 0;
}

/* In a plain file, says whether the block can end `length` bytes behind the header: an enum wb_warc_trailer. */
static int block_ends_at(struct wb_warc_reader *r, size_t head_len, uint64_t length)
{
    struct wb_source *s = &r->source;
    uint64_t start = r->offset + head_len;
    char peek[WB_WARC_HEAD_PEEK];
    size_t got = 0, trailer;

    if (length > s->size || start > s->size - length)
        return 0;
    int err = wb_warcinput_read_at(s->input, start + length, peek, sizeof peek, &got);
    if (err < 0)
        return err;
    return (int)wb_warc_head_trailer(wb_slice(peek, got), got < sizeof peek, r->arc, &trailer);
}

/* Counts the lines of an HTTP head that ends every line with LF alone; 0 if the block has no such head. */
static uint64_t count_bare_lines(struct wb_slice block)
{
    struct wb_http_head http;
    uint64_t lines = 1; /* the blank line */

    if (wb_http_split(block, &http) < 0 || http.body.len == 0 || memchr(http.raw.ptr, '\r', http.raw.len))
        return 0;
    for (size_t i = 0; i < http.raw.len; i++)
        lines += http.raw.ptr[i] == '\n';
    return lines;
}

/*
 * In a plain file we can check where the block should end before reading the block. A false
 * length then costs nothing, and a file full of such records is still read in linear time.
 *
 * Some ARC files had their line ends converted from CRLF to LF after the lengths were
 * written. Each line of the HTTP head is then one byte shorter than the length says, and
 * *length is corrected.
 */
static int check_plain_end(struct wb_warc_reader *r, size_t head_len, uint64_t *length)
{
    struct wb_source *s = &r->source;
    size_t have = wb_source_bytes(s).len - head_len;

    if (!r->arc && have >= *length)
        return 0;
    int good = block_ends_at(r, head_len, *length);
    if (good < 0 || good == WB_WARC_TRAILER_SURE)
        return good < 0 ? good : 0;
    uint64_t lines = r->arc ? count_bare_lines(wb_source_after(s, head_len)) : 0;
    int better = lines > 0 && lines < *length ? block_ends_at(r, head_len, *length - lines) : 0;
    if (better == WB_WARC_TRAILER_SURE)
        *length -= lines;
    if (better < 0 || better == WB_WARC_TRAILER_SURE || good == WB_WARC_TRAILER_DOUBTFUL)
        return better < 0 ? better : 0;
    if (*length > s->size || r->offset + head_len > s->size - *length)
        return fail_broken(r, WB_WARC_BROKEN_FILE_ENDS);
    return fail_broken(r, WB_WARC_BROKEN_WRONG_END);
}

/* Reads the block: keeps what fits into block_max behind the header and skips the rest. May correct e->length. */
static int read_block(struct wb_warc_reader *r, struct wb_warc_extent *e)
{
    struct wb_source *s = &r->source;
    int err = s->kind == WB_SOURCE_PLAIN ? check_plain_end(r, e->head, &e->length) : 0;

    e->keep = e->length < r->block_max ? (size_t)e->length : r->block_max;
    if (err == 0)
        err = need(r, e->head + e->keep);
    while (err == 0 && e->dropped < e->length - e->keep) {
        uint64_t cut;
        err = wb_source_cut(s, e->head + e->keep, e->length - e->keep - e->dropped, &cut);
        e->dropped += cut;
        if (err == 0 && e->dropped < e->length - e->keep)
            err = need(r, e->head + e->keep + 1);
    }
    return err;
}

/* Reads the line ends that close the record, and checks that the unit is intact. */
static int read_trailer(struct wb_warc_reader *r, struct wb_warc_extent *e)
{
    struct wb_source *s = &r->source;
    size_t at = e->head + e->keep, len;

    int err = wb_source_fill(s, at + WB_WARC_HEAD_PEEK);
    if (err < 0)
        return err;
    struct wb_slice rest = wb_source_after(s, at);
    enum wb_warc_trailer trailer =
        wb_warc_head_trailer(rest, rest.len < WB_WARC_HEAD_PEEK && !s->unit_open, r->arc, &len);
    if (trailer == WB_WARC_TRAILER_NONE)
        return fail_broken(r, WB_WARC_BROKEN_WRONG_END);
    /* If this is the last record of its unit, asking for one more byte makes the decoder check the checksum. */
    err = wb_source_fill(s, at + len + 1);
    if (err == 0 && s->unit_open)
        err = wb_source_judge(s);
    if (err == 0 && s->suspect)
        err = wb_source_fill(s, at + len + WB_WARC_HEAD_PEEK);
    if (err < 0)
        return err;
    /* If no record follows in a damaged unit, this record was alone in it: it is the damaged one. */
    if (s->suspect && !wb_warc_head_starts(wb_source_after(s, at + len), r->arc))
        return wb_source_damage(s, "damaged data behind the record");
    e->sure = trailer == WB_WARC_TRAILER_SURE && !s->suspect;
    e->taken = at + len;
    return 0;
}

/* True if the block matches the digest in its header. */
static bool has_right_digest(const struct wb_warc_record *record)
{
    uint8_t want[WB_SHA1_BYTES], have[WB_SHA1_BYTES];
    struct wb_slice value;

    if (record->cut || !wb_warc_header(record, "WARC-Block-Digest", &value) || !wb_warc_head_sha1(value, want))
        return false;
    wb_sha1(record->block.ptr, record->block.len, have);
    return memcmp(want, have, sizeof want) == 0;
}

static struct wb_slice part(struct wb_slice record, struct wb_warc_span span)
{
    return span.len ? wb_slice(record.ptr + span.at, span.len) : WB_SLICE_EMPTY;
}

static int read_record(struct wb_warc_reader *r, struct wb_warc_record *record_out)
{
    struct wb_warc_extent e = {.problem = ""};
    struct wb_warc_head head;
    int err = read_head(r, &head, &e.head);

    if (err < 0)
        return err;
    e.length = head.length;
    err = read_block(r, &e);
    if (err == 0)
        err = read_trailer(r, &e);
    if (err == WB_E_CORRUPT)
        err = wb_warc_salvage_block(r, &e);
    if (err < 0)
        return err;
    struct wb_slice bytes = wb_source_bytes(&r->source);
    WB_CHECK(e.head + e.keep <= e.taken && e.taken <= bytes.len && e.keep <= r->block_max);
    r->taken = e.taken;
    *record_out = (struct wb_warc_record){
        .type = head.type,
        .offset = r->offset,
        .header = part(bytes, head.lines),
        .uri = part(bytes, head.uri),
        .content_type = part(bytes, head.content_type),
        .block = wb_slice(bytes.ptr + e.head, e.keep),
        .block_bytes = e.length,
        .time_ms = head.time_ms,
        .has_time = head.has_time,
        .truncated = head.truncated,
        .cut = e.keep < e.length && e.keep == r->block_max,
        .problem = e.problem,
    };
    if (!e.sure && !has_right_digest(record_out))
        record_out->truncated = true;
    return 1;
}

/* ---- whole files ---------------------------------------------------------------------------- */

/*
 * Called if no record has been seen yet. If none follows either, this is not an archive,
 * unless its first bytes showed a known compression and it is that which failed.
 */
static int judge_file(struct wb_warc_reader *r)
{
    struct wb_error_copy damage;
    bool broken = r->source.damaged && r->source.by_content;

    wb_error_save(WB_E_CORRUPT, &damage);
    int found = wb_resync_find(r);
    if (found < 0)
        return found;
    r->lost = false;
    if (found == 0 && !broken)
        return wb_fail(WB_E_PROTO, "%s is not a web archive", r->source.input->name);
    return wb_error_restore(&damage);
}

int wb_warc_next(struct wb_warc_reader *reader, struct wb_warc_record *record_out)
{
    struct wb_warc_reader *r = reader;
    int err = 1;

    WB_CHECK(r->magic == WB_WARC_READER_MAGIC);
    *record_out = (struct wb_warc_record){.type = WB_WARC_UNKNOWN};
    if (r->final < 0)
        return wb_fail(r->final, "%s cannot be read any further", r->source.input->name);
    wb_source_take(&r->source, r->taken);
    r->taken = 0;
    r->broken = WB_WARC_BROKEN_NOT;
    if (r->lost)
        err = wb_resync_find(r);
    r->lost = false;
    if (err > 0)
        err = begin_record(r);
    if (err > 0)
        err = read_record(r, record_out);
    if (err == WB_E_CORRUPT) {
        r->error_offset = r->source.damaged ? r->source.unit_offset : r->offset;
        r->lost = true;
        if (!r->recognised)
            err = judge_file(r);
    }
    if (err < 0 && err != WB_E_CORRUPT)
        r->final = err;
    return err;
}

bool wb_warc_header(const struct wb_warc_record *record, const char *name, struct wb_slice *value_out)
{
    struct wb_slice want = wb_slice_str(name), found;
    size_t at = 0;

    *value_out = WB_SLICE_EMPTY;
    if (record->type == WB_WARC_ARC || record->type == WB_WARC_ARC_VERSION)
        return false;
    while (wb_http_field_next(record->header, &at, &found, value_out))
        if (wb_slice_equal_nocase(found, want))
            return true;
    *value_out = WB_SLICE_EMPTY;
    return false;
}
