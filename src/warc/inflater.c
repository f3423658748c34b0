/* inflater.c - inflates bytes of a file, and goes back to earlier ones with the help of saved states. */
#include "warc/inflater.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <string.h>
#include <zlib.h>

#define INPUT_BYTES ((size_t)64 << 10)
#define KEPT_BYTES ((size_t)1 << 20) /* so many of the newest bytes are always kept... */
#define ROOM_BYTES (2 * KEPT_BYTES)  /* ...in a buffer of this size */
#define MARKS_MAX 128u               /* each takes about 48 KB */
#define WORK_FACTOR 16u              /* so many times the whole may be inflated, plus an allowance for small ones */
#define WORK_FLOOR ((uint64_t)64 << 20)

/* The decoder between two bytes: everything that is needed to continue there. */
struct inflater_mark {
    uint64_t in, out; /* bytes that were consumed; bytes that have come out */
    z_stream z;
};

struct wb_inflater {
    const struct wb_file *file;
    uint64_t at, packed, size;
    z_stream z;
    bool ready;       /* z is initialised */
    uint64_t in, out; /* bytes read from the file; bytes that have come out */
    uint64_t work;    /* bytes that have come out, those before a step back included */
    uint8_t *input;
    uint8_t *room; /* ends with the newest bytes: out - room_len up to out */
    size_t room_len;
    struct inflater_mark *marks[MARKS_MAX]; /* in order; each stays where it is, because zlib's state points to it */
    unsigned mark_count;
    uint64_t mark_every;
};

int wb_inflater_new(const struct wb_file *file, uint64_t at, uint64_t packed, uint64_t size, uint64_t mark_bytes,
                    struct wb_inflater **inflater_out)
{
    *inflater_out = NULL;
    struct wb_inflater *f = wb_alloc_zero(1, sizeof *f);
    if (!f)
        return WB_E_NOMEM;
    *f = (struct wb_inflater){.file = file, .at = at, .packed = packed, .size = size, .mark_every = mark_bytes};
    f->z = (z_stream){.zalloc = wb_alloc_hook, .zfree = wb_free_hook};
    f->input = wb_alloc(INPUT_BYTES);
    f->room = wb_alloc(ROOM_BYTES);
    f->ready = f->input && f->room && inflateInit2(&f->z, -15) == Z_OK;
    if (!f->ready) {
        wb_inflater_free(f);
        return wb_fail_nomem();
    }
    *inflater_out = f;
    return 0;
}

static void free_mark(struct inflater_mark *mark)
{
    inflateEnd(&mark->z);
    wb_free(mark);
}

void wb_inflater_free(struct wb_inflater *inflater)
{
    if (!inflater)
        return;
    if (inflater->ready)
        inflateEnd(&inflater->z);
    for (unsigned i = 0; i < inflater->mark_count; i++)
        free_mark(inflater->marks[i]);
    wb_free(inflater->input);
    wb_free(inflater->room);
    wb_free(inflater);
}

/* ---- marks --------------------------------------------------------------------------------- */

/* Keeps every second mark. */
static void thin_marks(struct wb_inflater *f)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < f->mark_count; i++) {
        if (i % 2 == 0)
            free_mark(f->marks[i]);
        else
            f->marks[kept++] = f->marks[i];
    }
    f->mark_count = kept;
    f->mark_every *= 2;
}

/* Saves the state if the last mark is far enough behind. */
static int save_mark(struct wb_inflater *f)
{
    uint64_t last = f->mark_count ? f->marks[f->mark_count - 1]->out : 0;

    if (f->out < last + f->mark_every)
        return 0;
    if (f->mark_count == MARKS_MAX)
        thin_marks(f);
    struct inflater_mark *mark = wb_alloc_zero(1, sizeof *mark);
    if (!mark || inflateCopy(&mark->z, &f->z) != Z_OK) {
        wb_free(mark);
        return wb_fail_nomem();
    }
    mark->in = f->in - f->z.avail_in;
    mark->out = f->out;
    f->marks[f->mark_count++] = mark;
    return 0;
}

/* The number of marks at or before the offset: the last of them is the nearest. */
static unsigned marks_before(const struct wb_inflater *f, uint64_t offset)
{
    unsigned i = f->mark_count;

    while (i > 0 && f->marks[i - 1]->out > offset)
        i--;
    return i;
}

/* Continues from the last mark at or before the offset, or from the start. */
static int go_to_mark(struct wb_inflater *f, uint64_t offset)
{
    unsigned i = marks_before(f, offset);

    if (i > 0) {
        inflateEnd(&f->z);
        f->ready = inflateCopy(&f->z, &f->marks[i - 1]->z) == Z_OK;
        if (!f->ready)
            return wb_fail_nomem();
    } else if (inflateReset(&f->z) != Z_OK) {
        return wb_fail_nomem();
    }
    f->in = i > 0 ? f->marks[i - 1]->in : 0;
    f->out = i > 0 ? f->marks[i - 1]->out : 0;
    f->z.avail_in = 0;
    f->room_len = 0;
    return 0;
}

/* ---- inflating ----------------------------------------------------------------------------- */

static int refill(struct wb_inflater *f)
{
    uint64_t left = f->packed - f->in;
    size_t want = left < INPUT_BYTES ? (size_t)left : INPUT_BYTES;

    int err = wb_file_read_exact(f->file, f->at + f->in, f->input, want);
    if (err < 0)
        return err;
    f->in += want;
    f->z.next_in = f->input;
    f->z.avail_in = (unsigned)want;
    return 0;
}

/* Lets some more bytes come out. */
static int inflate_more(struct wb_inflater *f, const char *name)
{
    uint64_t left = f->size - f->out;

    WB_CHECK(left > 0);
    if (f->work > WORK_FLOOR + WORK_FACTOR * f->size)
        return wb_fail(WB_E_LIMIT, "%s is too damaged to be read any further", name);
    if (f->room_len > ROOM_BYTES - INPUT_BYTES) {
        memmove(f->room, f->room + f->room_len - KEPT_BYTES, KEPT_BYTES);
        f->room_len = KEPT_BYTES;
    }
    size_t free_bytes = ROOM_BYTES - f->room_len;
    size_t want = left < free_bytes ? (size_t)left : free_bytes;
    int err = f->z.avail_in == 0 && f->in < f->packed ? refill(f) : 0;
    if (err < 0)
        return err;
    f->z.next_out = f->room + f->room_len;
    f->z.avail_out = (unsigned)want;
    int result = inflate(&f->z, Z_NO_FLUSH);
    size_t made = want - f->z.avail_out;
    f->room_len += made;
    f->out += made;
    f->work += made;
    if (result == Z_MEM_ERROR)
        return wb_fail_nomem();
    /* What comes out before the damage is good. The next call finds the damage again. */
    if (made == 0 && (result != Z_OK || (f->z.avail_in == 0 && f->in == f->packed)))
        return wb_fail(WB_E_CORRUPT, "%s cannot be inflated any further", name);
    return result == Z_OK ? save_mark(f) : 0;
}

int wb_inflater_read_at(struct wb_inflater *inflater, const char *name, uint64_t offset, void *bytes_out, size_t len,
                        size_t *got_out)
{
    struct wb_inflater *f = inflater;
    char *to = bytes_out;
    int err = f->ready ? 0 : wb_fail_nomem();

    WB_CHECK(offset <= f->size && len <= f->size - offset);
    while (err == 0 && len > 0) {
        uint64_t first = f->out - f->room_len;
        unsigned marks = offset >= f->out ? marks_before(f, offset) : 0;
        if (offset < first || (marks && f->marks[marks - 1]->out > f->out)) {
            err = go_to_mark(f, offset);
        } else if (offset >= f->out) {
            err = inflate_more(f, name);
        } else {
            size_t have = (size_t)(f->out - offset);
            size_t take = have < len ? have : len;
            memcpy(to, f->room + (size_t)(offset - first), take);
            to += take;
            offset += take;
            len -= take;
        }
    }
    *got_out = (size_t)(to - (char *)bytes_out);
    return err;
}
