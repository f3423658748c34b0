/*
 * completions.c - finds the heaviest texts in which a word begins like this.
 *
 * The starts are in order, so those that fit are a range [first, end), found by binary search. The heaviest of a range
 * is found by the maxima in at most 126 steps for each level; it parts the range into two, whose heaviest ones come
 * next. So the best k of n take about k * 250 * log64(n) steps, whatever was typed.
 *
 * Checksums are compared before bytes are read. Nevertheless, every number is checked against the file: a file that was
 * made wrongly gives WB_E_CORRUPT.
 */
#include "index/completions.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"

enum { FAN = 64, LEVELS_MAX = 11, RANGES_MAX = 2 * WB_COMPLETION_TRIES_MAX + 2 };

/* ---- the file ------------------------------------------------------------------------------------------ */

static int damaged(const struct wb_completions *c)
{
    return wb_fail(WB_E_CORRUPT, "%s is damaged: its numbers do not fit each other", c->blob.path);
}

/* How many maxima a level has; the starts are level 0. */
static uint64_t level_count(uint64_t starts, unsigned level)
{
    for (unsigned i = 0; i < level; i++)
        starts = (starts + FAN - 1) / FAN;
    return starts;
}

static uint64_t maxima_bytes(uint64_t starts)
{
    uint64_t bytes = 0;

    for (uint64_t count = starts; count > FAN;) {
        count = (count + FAN - 1) / FAN;
        bytes += 2 * count;
    }
    return bytes;
}

int wb_completions_check(struct wb_completions *c)
{
    uint64_t bytes = c->blob.bytes, at = bytes - WB_COMPLETION_FOOT_BYTES;

    if (bytes < WB_COMPLETION_FOOT_BYTES)
        return damaged(c);
    int err = wb_blob_check(&c->blob, at, WB_COMPLETION_FOOT_BYTES);
    if (err < 0)
        return err;
    const char *foot = c->blob.data + at;
    c->text_bytes = wb_get64(foot + 8);
    c->texts = wb_get64(foot + 16);
    c->starts = wb_get64(foot + 24);
    bytes -= WB_COMPLETION_FOOT_BYTES;
    unsigned format = wb_mark_format(foot, WB_COMPLETION_MAGIC);
    if (format > 1)
        return wb_fail_format(c->blob.path, format, 1);
    if (format != 1 || c->text_bytes > bytes || c->starts > (bytes - c->text_bytes) / WB_COMPLETION_START_BYTES ||
        bytes - c->text_bytes != c->starts * WB_COMPLETION_START_BYTES + maxima_bytes(c->starts) ||
        c->texts > c->text_bytes / WB_COMPLETION_HEAD_BYTES)
        return damaged(c);
    return 0;
}

int wb_completions_open(const char *path, struct wb_completions *c)
{
    *c = (struct wb_completions){.blob = WB_BLOB_INIT};
    int err = wb_blob_open(path, WB_COMPLETIONS_KIND, &c->blob);

    if (err == 0)
        err = wb_completions_check(c);
    if (err < 0)
        wb_completions_close(c);
    return err;
}

void wb_completions_close(struct wb_completions *c)
{
    wb_blob_close(&c->blob);
    c->blob = WB_BLOB_INIT;
}

/* ---- records ------------------------------------------------------------------------------------------- */

struct start {
    uint64_t text;
    uint8_t at;
    uint16_t weight;
};

/* A text as the file has it. */
struct record {
    struct wb_completion completion;
    struct wb_slice folded;
    uint64_t bytes; /* of the record */
};

static int read_start(const struct wb_completions *c, uint64_t number, struct start *start_out)
{
    uint64_t offset = c->text_bytes + number * WB_COMPLETION_START_BYTES;
    int err = number < c->starts ? wb_blob_check(&c->blob, offset, WB_COMPLETION_START_BYTES) : damaged(c);

    if (err < 0)
        return err;
    uint64_t bits = wb_get64(c->blob.data + offset);
    *start_out = (struct start){bits & 0xffffffffff, (uint8_t)(bits >> 40), (uint16_t)(bits >> 48)};
    return 0;
}

static int read_text(const struct wb_completions *c, uint64_t offset, struct record *record_out)
{
    if (offset > c->text_bytes || c->text_bytes - offset < WB_COMPLETION_HEAD_BYTES)
        return damaged(c);
    int err = wb_blob_check(&c->blob, offset, WB_COMPLETION_HEAD_BYTES);
    if (err < 0)
        return err;
    const char *p = c->blob.data + offset;
    size_t folded = (uint8_t)p[9], shown = (uint8_t)p[10];
    if (folded == 0 || c->text_bytes - offset - WB_COMPLETION_HEAD_BYTES < folded + shown)
        return damaged(c);
    err = wb_blob_check(&c->blob, offset, WB_COMPLETION_HEAD_BYTES + folded + shown);
    const char *text = p + WB_COMPLETION_HEAD_BYTES;
    *record_out = (struct record){
        .folded = wb_slice(text, folded), .bytes = WB_COMPLETION_HEAD_BYTES + folded + shown};
    record_out->completion = (struct wb_completion){
        .text = shown ? wb_slice(text + folded, shown) : wb_slice(text, folded),
        .folded = wb_slice(text, folded),
        .docid = wb_get32(p),
        .pages = wb_get32(p + 4),
        .is_word = p[8] & 1,
    };
    return err;
}

/* The text from the start on. */
static int read_suffix(const struct wb_completions *c, uint64_t number, struct wb_slice *suffix_out)
{
    struct start start = {0, 0, 0};
    struct record record;
    int err = read_start(c, number, &start);

    if (err == 0)
        err = read_text(c, start.text, &record);
    if (err == 0 && start.at >= record.folded.len)
        err = damaged(c);
    if (err == 0)
        *suffix_out = wb_slice(record.folded.ptr + start.at, record.folded.len - start.at);
    return err;
}

/* The first start that is not below the prefix; or, with `behind`, that is above everything that begins so. */
static int find_bound(const struct wb_completions *c, struct wb_slice prefix, bool behind, uint64_t *number_out)
{
    uint64_t first = 0, end = c->starts;

    while (first < end) {
        uint64_t middle = first + (end - first) / 2;
        struct wb_slice suffix = WB_SLICE_EMPTY;
        int err = read_suffix(c, middle, &suffix);
        if (err < 0)
            return err;
        bool fits = wb_slice_starts(suffix, prefix);
        if (fits ? behind : wb_slice_compare(suffix, prefix) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    *number_out = first;
    return 0;
}

/* ---- the heaviest ---------------------------------------------------------------------------------------- */

struct heavy_range {
    uint64_t first, end, best; /* best: the number of the heaviest start in it */
    uint16_t weight;
};

struct finding {
    const struct wb_completions *c;
    const char *levels[LEVELS_MAX]; /* the maxima of each level, from 1 on */
    struct heavy_range ranges[RANGES_MAX]; /* a heap, the heaviest first */
    size_t count;
    uint64_t seen[WB_COMPLETION_TRIES_MAX]; /* texts */
    size_t seen_count;
};

static uint16_t weight_at(const struct finding *f, unsigned level, uint64_t number)
{
    return level ? wb_get16(f->levels[level] + 2 * number)
                 : wb_get16(f->c->blob.data + f->c->text_bytes + number * WB_COMPLETION_START_BYTES + 6);
}

/* Looks at [first, end) of a level for something heavier than *best. */
static void look_at(const struct finding *f, unsigned level, uint64_t first, uint64_t end, unsigned *level_inout,
                    uint64_t *best, int *weight)
{
    for (; first < end; first++) {
        int own = weight_at(f, level, first);
        if (own > *weight) {
            *weight = own;
            *best = first;
            *level_inout = level;
        }
    }
}

/* Finds the heaviest start of a range: the edges on each level, then down from the heaviest. Of equals, the first. */
static void find_heaviest(const struct finding *f, struct heavy_range *range)
{
    uint64_t first = range->first, end = range->end, best = first, top = f->c->starts;
    unsigned level = 0, at_level = 0;
    int weight = -1;

    WB_CHECK(first < end && end <= top);
    for (; first < end; level++) {
        WB_CHECK(level < LEVELS_MAX);
        bool last = top <= FAN;
        uint64_t low = (first + FAN - 1) / FAN, high = end / FAN;
        if (last || low >= high) {
            look_at(f, level, first, end, &at_level, &best, &weight);
            break;
        }
        look_at(f, level, first, low * FAN, &at_level, &best, &weight);
        look_at(f, level, high * FAN, end, &at_level, &best, &weight);
        first = low;
        end = high;
        top = (top + FAN - 1) / FAN;
    }
    while (at_level > 0) {
        uint64_t from = best * FAN, to = from + FAN, all = level_count(f->c->starts, at_level - 1);
        weight = -1;
        best = from;
        look_at(f, at_level - 1, from, to < all ? to : all, &at_level, &best, &weight);
        if (weight < 0)
            break;
    }
    range->best = best;
    range->weight = (uint16_t)(weight < 0 ? 0 : weight);
}

static bool heavier(const struct heavy_range *a, const struct heavy_range *b)
{
    return a->weight != b->weight ? a->weight > b->weight : a->best < b->best;
}

static void push(struct finding *f, uint64_t first, uint64_t end)
{
    struct heavy_range range = {first, end, first, 0};
    size_t at = f->count;

    if (first >= end || f->count == RANGES_MAX)
        return;
    find_heaviest(f, &range);
    for (; at && heavier(&range, &f->ranges[(at - 1) / 2]); at = (at - 1) / 2)
        f->ranges[at] = f->ranges[(at - 1) / 2];
    f->ranges[at] = range;
    f->count++;
}

static struct heavy_range pop(struct finding *f)
{
    WB_CHECK(f->count > 0);
    struct heavy_range first = f->ranges[0], last = f->ranges[--f->count];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < f->count; at = child) {
        if (child + 1 < f->count && heavier(&f->ranges[child + 1], &f->ranges[child]))
            child++;
        if (!heavier(&f->ranges[child], &last))
            break;
        f->ranges[at] = f->ranges[child];
    }
    f->ranges[at] = last;
    return first;
}

/* Where the levels are; all their bytes and those of the starts of a range are checked before they are read. */
static int open_levels(struct finding *f, uint64_t first, uint64_t end)
{
    const struct wb_completions *c = f->c;
    uint64_t offset = c->text_bytes + c->starts * WB_COMPLETION_START_BYTES;

    WB_CHECK(first <= end && end <= c->starts);
    int err = wb_blob_check(&c->blob, c->text_bytes + first * WB_COMPLETION_START_BYTES,
                            (end - first) * WB_COMPLETION_START_BYTES);
    if (err == 0)
        err = wb_blob_check(&c->blob, offset, maxima_bytes(c->starts));
    for (unsigned level = 1; level < LEVELS_MAX; level++) {
        f->levels[level] = c->blob.data + offset;
        offset += level_count(c->starts, level - 1) > FAN ? 2 * level_count(c->starts, level) : 0;
    }
    return err;
}

/* Passes a text on, unless it was. */
static int pass_on(struct finding *f, uint64_t number, wb_index_each_completion each, void *context)
{
    struct start start = {0, 0, 0};
    struct record record;

    WB_CHECK(f->seen_count < WB_COMPLETION_TRIES_MAX);
    int err = read_start(f->c, number, &start);
    for (size_t i = 0; err == 0 && i < f->seen_count; i++)
        if (f->seen[i] == start.text)
            return 0;
    f->seen[f->seen_count++] = start.text;
    if (err == 0)
        err = read_text(f->c, start.text, &record);
    return err < 0 ? err : each(context, &record.completion);
}

int wb_completions_find(const struct wb_completions *c, struct wb_slice folded, wb_index_each_completion each,
                        void *context)
{
    struct finding f = {.c = c};
    uint64_t first = 0, end = 0;
    int err = folded.len ? find_bound(c, folded, false, &first) : 0;

    if (err == 0 && folded.len)
        err = find_bound(c, folded, true, &end);
    if (err < 0 || first >= end)
        return err;
    err = open_levels(&f, first, end);
    if (err < 0)
        return err;
    push(&f, first, end);
    for (unsigned tries = 0; err == 0 && f.count && tries < WB_COMPLETION_TRIES_MAX; tries++) {
        struct heavy_range range = pop(&f);
        err = pass_on(&f, range.best, each, context);
        push(&f, range.first, range.best);
        push(&f, range.best + 1, range.end);
    }
    return err;
}

/* ---- verifying --------------------------------------------------------------------------------------------- */

/* By how many of its words a text can be found. */
static unsigned count_starts(struct wb_slice folded)
{
    unsigned count = 1;

    for (size_t i = 1; i < folded.len; i++)
        count += folded.ptr[i - 1] == ' ';
    return count < WB_COMPLETION_STARTS_MAX ? count : WB_COMPLETION_STARTS_MAX;
}

static const char *verify_texts(const struct wb_completions *c, uint64_t pages, uint64_t *at_out)
{
    struct wb_slice last = WB_SLICE_EMPTY;
    uint64_t count = 0, starts = 0;

    for (*at_out = 0; *at_out < c->text_bytes; count++) {
        struct record record;
        if (read_text(c, *at_out, &record) < 0)
            return "a text is cut";
        if (count && wb_slice_compare(last, record.folded) >= 0)
            return "a text is out of order";
        if (record.completion.docid != WB_DOCID_NONE ? record.completion.docid >= pages : !record.completion.is_word)
            return "a text belongs to a page that does not exist";
        last = record.folded;
        starts += count_starts(record.folded);
        *at_out += record.bytes;
    }
    return count != c->texts    ? "there is another number of texts than it says"
           : starts != c->starts ? "there is another number of starts than words"
                                 : NULL;
}

static const char *verify_starts(const struct wb_completions *c, uint64_t *at_out)
{
    struct wb_slice last = WB_SLICE_EMPTY, suffix = WB_SLICE_EMPTY;
    struct start start = {0, 0, 0};

    for (uint64_t i = 0; i < c->starts; i++) {
        *at_out = c->text_bytes + i * WB_COMPLETION_START_BYTES;
        if (read_start(c, i, &start) < 0 || read_suffix(c, i, &suffix) < 0 || (start.at && suffix.ptr[-1] != ' '))
            return "a start is not that of a word";
        if (i && wb_slice_compare(last, suffix) > 0)
            return "a start is out of order";
        last = suffix;
    }
    return NULL;
}

static const char *verify_maxima(const struct wb_completions *c, uint64_t *at_out)
{
    struct finding f = {.c = c};
    uint64_t count = c->starts;

    if (open_levels(&f, 0, c->starts) < 0)
        return "the checksum does not match";
    for (unsigned level = 1; count > FAN; level++) {
        uint64_t below = count;
        count = (count + FAN - 1) / FAN;
        for (uint64_t i = 0; i < count; i++) {
            unsigned at_level = 0;
            uint64_t best = 0;
            int weight = -1;
            look_at(&f, level - 1, i * FAN, (i + 1) * FAN < below ? (i + 1) * FAN : below, &at_level, &best, &weight);
            *at_out = (uint64_t)(f.levels[level] - c->blob.data) + 2 * i;
            if (weight != weight_at(&f, level, i))
                return "a greatest weight is another one";
        }
    }
    return NULL;
}

const char *wb_completions_verify(const struct wb_completions *c, uint64_t pages, uint64_t *at_out)
{
    const char *wrong = verify_texts(c, pages, at_out);

    if (!wrong)
        wrong = verify_starts(c, at_out);
    return wrong ? wrong : verify_maxima(c, at_out);
}
