/*
 * source.c - a window over an archive file, and the decompressed bytes made from it.
 *
 * Knows about units and bytes, and never looks at what the bytes mean: the reader says what
 * the start of a record looks like. Whatever the file claims, memory is bounded by what the
 * reader asks to have at once plus the two windows here.
 */
#include "warc/source.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <inttypes.h>

#define IN_WINDOW ((size_t)1 << 20)
#define PLAIN_READ ((size_t)512 << 10)

/* How many bytes may be decoded in vain: a multiple of the file's size, plus an allowance for small files. */
#define WORK_FACTOR 16u
#define WORK_FLOOR ((uint64_t)64 << 20)

static const char GZIP_MAGIC[] = {'\x1f', '\x8b', '\x08'};
static const char ZSTD_MAGIC[] = {'\x28', '\xb5', '\x2f', '\xfd'};

static bool is_zstd(struct wb_slice first)
{
    bool skippable =
        first.len >= 4 && (first.ptr[0] & '\xf0') == '\x50' && memcmp(first.ptr + 1, "\x2a\x4d\x18", 3) == 0;

    return skippable || wb_slice_starts(first, wb_slice(ZSTD_MAGIC, sizeof ZSTD_MAGIC));
}

static bool kind_of_content(struct wb_slice first, enum wb_source_kind *kind_out)
{
    struct wb_slice text = wb_slice_trim(first);

    *kind_out = WB_SOURCE_PLAIN;
    if (wb_slice_starts(first, wb_slice(GZIP_MAGIC, sizeof GZIP_MAGIC)))
        *kind_out = WB_SOURCE_GZIP;
    else if (is_zstd(first))
        *kind_out = WB_SOURCE_ZSTD;
    else
        return wb_slice_starts_nocase(text, WB_SLICE_LIT("WARC/")) || wb_slice_starts(text, WB_SLICE_LIT("filedesc:"));
    return true;
}

static bool kind_of_name(struct wb_slice name, enum wb_source_kind *kind_out)
{
    *kind_out = WB_SOURCE_PLAIN;
    if (wb_slice_ends_nocase(name, WB_SLICE_LIT(".gz")))
        *kind_out = WB_SOURCE_GZIP;
    else if (wb_slice_ends_nocase(name, WB_SLICE_LIT(".zst")))
        *kind_out = WB_SOURCE_ZSTD;
    else
        return wb_slice_ends_nocase(name, WB_SLICE_LIT(".warc")) || wb_slice_ends_nocase(name, WB_SLICE_LIT(".arc"));
    return true;
}

int wb_source_init(struct wb_source *s, struct wb_warcinput *input, size_t keep_max)
{
    char first[32];
    size_t got = 0;
    int err;

    *s = (struct wb_source){.input = input, .size = input->size, .out_max = keep_max + PLAIN_READ};
    err = wb_warcinput_read_at(s->input, 0, first, sizeof first, &got);
    if (err < 0)
        return err;
    s->by_content = kind_of_content(wb_slice(first, got), &s->kind);
    if (!s->by_content && !kind_of_name(wb_slice_str(s->input->name), &s->kind))
        return wb_fail(WB_E_PROTO, "%s is not a web archive", s->input->name);
    s->unit_open = s->kind == WB_SOURCE_PLAIN;
    return 0;
}

void wb_source_release(struct wb_source *s)
{
    wb_gunzip_free(s->gunzip);
    wb_unzstd_free(s->unzstd);
    wb_free(s->in);
    wb_free(s->out);
    wb_warcinput_close(s->input);
    *s = (struct wb_source){.input = NULL};
}

/* ---- the two windows ------------------------------------------------------------ */

bool wb_source_input_ends(const struct wb_source *s)
{
    return s->in_offset + s->in_len >= s->size;
}

static uint64_t input_offset(const struct wb_source *s)
{
    return s->in_offset + s->in_pos;
}

int wb_source_input(struct wb_source *s, size_t want)
{
    size_t got = 0;

    WB_CHECK(s->in_pos <= s->in_len && s->in_len <= s->in_cap);
    if (s->in_len - s->in_pos >= want || wb_source_input_ends(s))
        return 0;
    if (s->in_pos > 0) {
        s->in_len -= s->in_pos;
        memmove(s->in, s->in + s->in_pos, s->in_len);
        s->in_offset += s->in_pos;
        s->in_pos = 0;
    }
    size_t cap = want > IN_WINDOW ? want : IN_WINDOW;
    if (s->in_cap < cap) { /* not wb_grow(): the whole window is read each time, so it is only as large as needed */
        char *grown = wb_realloc(s->in, cap);
        if (!grown)
            return WB_E_NOMEM;
        s->in = grown;
        s->in_cap = cap;
    }
    int err = wb_warcinput_read_at(s->input, s->in_offset + s->in_len, s->in + s->in_len, s->in_cap - s->in_len, &got);
    if (err < 0)
        return err;
    s->in_len += got;
    if (s->in_len < s->in_cap)
        s->size = s->in_offset + s->in_len; /* the file has been cut short or has grown since it was opened */
    return 0;
}

/* Moves the window to a file offset; its bytes are kept if they cover that offset. */
static void move_input(struct wb_source *s, uint64_t offset)
{
    if (offset >= s->in_offset && offset <= s->in_offset + s->in_len) {
        s->in_pos = (size_t)(offset - s->in_offset);
    } else {
        s->in_offset = offset;
        s->in_pos = s->in_len = 0;
    }
}

int wb_source_room(struct wb_source *s, size_t more)
{
    WB_CHECK(s->mark <= s->out_len && s->out_len <= s->out_cap);
    if (s->out_cap - s->out_len >= more)
        return 0;
    if (s->mark > 0) {
        s->out_len -= s->mark;
        memmove(s->out, s->out + s->mark, s->out_len);
        s->unit_at = s->unit_at > s->mark ? s->unit_at - s->mark : 0;
        s->mark = 0;
    }
    if (s->out_cap - s->out_len >= more)
        return 0;
    /* Growing by half makes appending linear; beyond the limit, which wb_grow() lacks, only as far as needed. */
    size_t want = s->out_len + more;
    size_t cap = s->out_cap + s->out_cap / 2;
    if (cap > s->out_max)
        cap = s->out_max;
    if (cap < want)
        cap = want;
    char *grown = wb_realloc(s->out, cap);
    if (!grown)
        return WB_E_NOMEM;
    s->out = grown;
    s->out_cap = cap;
    return 0;
}

/* ---- reading ------------------------------------------------------------------------ */

static int read_plain(struct wb_source *s)
{
    uint64_t left = s->size > s->in_offset ? s->size - s->in_offset : 0;
    size_t want = left < PLAIN_READ ? (size_t)left : PLAIN_READ;
    size_t got = 0;

    if (want == 0) {
        s->unit_open = false;
        return 0;
    }
    int err = wb_source_room(s, want);
    if (err < 0)
        return err;
    err = wb_warcinput_read_at(s->input, s->in_offset, s->out + s->out_len, want, &got);
    if (err < 0)
        return err;
    s->out_len += got;
    s->in_offset += got;
    if (got < want || left == want)
        s->unit_open = false;
    return 0;
}

static int read_more(struct wb_source *s)
{
    WB_CHECK(s->unit_open && !s->damaged);
    if (s->kind == WB_SOURCE_PLAIN)
        return read_plain(s);
    return s->kind == WB_SOURCE_GZIP ? wb_gunzip_more(s) : wb_unzstd_more(s);
}

int wb_source_fill(struct wb_source *s, size_t want)
{
    while (s->out_len - s->mark < want && s->unit_open) {
        int err = read_more(s);
        if (err < 0)
            return err;
    }
    return 0;
}

void wb_source_take(struct wb_source *s, size_t n)
{
    WB_CHECK(n <= s->out_len - s->mark);
    s->mark += n;
}

int wb_source_cut(struct wb_source *s, size_t at, uint64_t n, uint64_t *cut_out)
{
    *cut_out = 0;
    for (;;) {
        size_t from = s->mark + at;
        WB_CHECK(from <= s->out_len);
        size_t have = s->out_len - from;
        size_t drop = have < n - *cut_out ? have : (size_t)(n - *cut_out);
        if (drop > 0)
            memmove(s->out + from, s->out + from + drop, have - drop);
        s->out_len -= drop;
        *cut_out += drop;
        if (s->unit_at > from)
            s->unit_at = s->unit_at - from > drop ? s->unit_at - drop : from;
        if (*cut_out == n || !s->unit_open)
            return 0;
        if (s->kind == WB_SOURCE_PLAIN) {
            uint64_t left = s->size > s->in_offset ? s->size - s->in_offset : 0;
            uint64_t jump = n - *cut_out < left ? n - *cut_out : left;
            s->in_offset += jump;
            *cut_out += jump;
            s->unit_open = s->in_offset < s->size;
            return 0;
        }
        int err = read_more(s);
        if (err < 0)
            return err;
    }
}

uint64_t wb_source_offset(const struct wb_source *s)
{
    return s->kind == WB_SOURCE_PLAIN ? s->in_offset - (s->out_len - s->mark) : s->unit_offset;
}

int wb_source_cut_off(struct wb_source *s)
{
    s->cut_off = true;
    return wb_source_damage(s, "the file ends in the middle of the compressed data");
}

int wb_source_damage(struct wb_source *s, const char *what)
{
    s->damaged = true;
    s->unit_open = false;
    if (input_offset(s) > s->unit_offset)
        s->work += input_offset(s) - s->unit_offset;
    return wb_fail(WB_E_CORRUPT, "%s, offset %" PRIu64 ": %s", s->input->name, s->unit_offset, what);
}

int wb_source_next(struct wb_source *s)
{
    bool gzip = s->kind == WB_SOURCE_GZIP;
    int err;

    WB_CHECK(!s->unit_open && !s->damaged);
    if (s->kind == WB_SOURCE_PLAIN)
        return 0;
    if (s->mark == s->out_len)
        s->mark = s->out_len = 0; /* memory that is used again is still in the processor's cache */
    err = gzip ? 0 : wb_unzstd_skip(s);
    if (err < 0)
        return err;
    err = wb_source_input(s, IN_WINDOW / 8);
    if (err < 0 || s->in_pos == s->in_len)
        return err;
    s->unit_offset = input_offset(s);
    s->unit_at = s->out_len;
    s->judged = s->suspect = false;
    struct wb_slice magic = gzip ? wb_slice(GZIP_MAGIC, sizeof GZIP_MAGIC) : wb_slice(ZSTD_MAGIC, sizeof ZSTD_MAGIC);
    if (!wb_slice_starts(wb_slice(s->in + s->in_pos, s->in_len - s->in_pos), magic))
        return wb_source_damage(s, gzip ? "no gzip member starts here" : "no zstd frame starts here");
    s->unit_open = true;
    err = gzip ? wb_gunzip_start(s) : wb_unzstd_start(s);
    return err < 0 ? err : 1;
}

int wb_source_judge(struct wb_source *s)
{
    struct wb_source twin = {.input = s->input, .size = s->size, .kind = s->kind, .out_max = WB_SOURCE_STEP};
    uint64_t cut;
    int err;

    if (s->judged || s->kind == WB_SOURCE_PLAIN || wb_unzstd_has_dictionary(s->unzstd))
        return 0;
    s->judged = true;
    twin.in_offset = twin.unit_offset = s->unit_offset;
    twin.unit_open = true;
    err = wb_source_input(&twin, IN_WINDOW);
    if (err == 0)
        err = s->kind == WB_SOURCE_GZIP ? wb_gunzip_stream(&twin) : wb_unzstd_start(&twin);
    if (err == 0)
        err = wb_source_cut(&twin, 0, UINT64_MAX, &cut);
    if (err == WB_E_CORRUPT) {
        s->suspect = !twin.cut_off;
        s->work += twin.work;
        err = 0;
    }
    twin.input = NULL; /* it still belongs to s: the twin must not close it */
    wb_source_release(&twin);
    return err;
}

/* ---- searching ------------------------------------------------------------------------ */

/* Moves in_pos forward to the next occurrence of magic: 1, or 0 at the end of the file. */
static int find_magic(struct wb_source *s, struct wb_slice magic)
{
    for (;;) {
        int err = wb_source_input(s, magic.len);
        if (err < 0)
            return err;
        size_t have = s->in_len - s->in_pos;
        if (have < magic.len) {
            s->in_pos = s->in_len;
            return 0;
        }
        const char *from = s->in + s->in_pos;
        const char *hit = memmem(from, have, magic.ptr, magic.len);
        if (hit) {
            s->in_pos += (size_t)(hit - from);
            return 1;
        }
        s->in_pos = s->in_len - (magic.len - 1); /* the window may end in the middle of the magic */
    }
}

int wb_source_search(struct wb_source *s, bool (*starts)(struct wb_slice bytes, bool arc), bool arc)
{
    bool gzip = s->kind == WB_SOURCE_GZIP;
    struct wb_slice magic = gzip ? wb_slice(GZIP_MAGIC, sizeof GZIP_MAGIC) : wb_slice(ZSTD_MAGIC, sizeof ZSTD_MAGIC);
    char bytes[WB_SOURCE_TRIAL];

    WB_CHECK(s->kind != WB_SOURCE_PLAIN);
    s->mark = s->out_len = s->unit_at = 0;
    s->unit_open = s->damaged = s->cut_off = false;
    move_input(s, s->unit_offset + 1);
    for (;;) {
        size_t len = 0;
        int found = find_magic(s, magic);
        if (found <= 0)
            return found;
        if (s->work > WORK_FLOOR + WORK_FACTOR * s->size) {
            move_input(s, s->size);
            return 0;
        }
        int err = gzip ? wb_gunzip_trial(s, bytes, &len) : wb_unzstd_trial(s, bytes, &len);
        if (err < 0)
            return err;
        if (starts(wb_slice(bytes, len), arc))
            return 1;
        s->in_pos++;
    }
}
