/*
 * difference.c - compares two texts word by word, or line by line if that would take too long.
 *
 *   text --split--> tokens --intern--> numbers --Myers--> marks (removed, added) --collect--> runs
 *
 * The work is bounded (WORK_MAX), and so is the number of tokens: the last token takes the rest of the text. Nothing
 * here knows where the texts come from.
 */
#include "replay/difference.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

#define TOKENS_MAX ((size_t)1 << 19)
#define WORK_MAX ((uint64_t)32 << 20) /* steps of the comparison of words; lines get as many again */

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

/* A text as tokens: token i ends at ends[i], and equal tokens have equal numbers. */
struct difference_side {
    struct wb_slice text;
    uint32_t *ends, *numbers;
    bool *changed;
    size_t count;
};

static struct wb_slice token_of(const struct difference_side *side, size_t i)
{
    size_t from = i ? side->ends[i - 1] : 0;

    return wb_slice(side->text.ptr + from, side->ends[i] - from);
}

bool wb_difference_is_wide(const char *p, const char *end)
{
    return (uint8_t)*p >= 0xe3 && (uint8_t)*p <= 0xe9 && end - p >= 3;
}

/* Returns where the word at p ends, with the white space behind it. */
static const char *end_of_word(const char *p, const char *end)
{
    if (wb_difference_is_wide(p, end)) {
        p += 3;
    } else {
        while (p < end && !wb_ascii_is_space(*p) && !wb_difference_is_wide(p, end))
            p++;
    }
    while (p < end && wb_ascii_is_space(*p))
        p++;
    return p;
}

static const char *end_of_line(const char *p, const char *end)
{
    const char *newline = memchr(p, '\n', (size_t)(end - p));

    return newline ? newline + 1 : end;
}

static int split(struct difference_side *side, bool lines)
{
    const char *p = side->text.ptr, *end = p + side->text.len;
    size_t cap = 0;

    side->count = 0;
    while (p < end) {
        p = side->count + 1 == TOKENS_MAX ? end : lines ? end_of_line(p, end) : end_of_word(p, end);
        if (wb_grow(&side->ends, &cap, side->count + 1) < 0)
            return WB_E_NOMEM;
        side->ends[side->count++] = (uint32_t)(p - side->text.ptr);
    }
    side->numbers = wb_alloc_zero(side->count + 1, sizeof *side->numbers);
    side->changed = wb_alloc_zero(side->count + 1, sizeof *side->changed);
    return side->numbers && side->changed ? 0 : WB_E_NOMEM;
}

static void release_side(struct difference_side *side)
{
    wb_free(side->ends);
    wb_free(side->numbers);
    wb_free(side->changed);
    side->ends = side->numbers = NULL;
    side->changed = NULL;
    side->count = 0;
}

/* Gives equal tokens of both sides the same number, the place of the first of them among all tokens. */
static int intern(struct difference_side sides[2])
{
    size_t total = sides[0].count + sides[1].count, slots = 16;

    while (slots < 2 * total)
        slots *= 2;
    uint32_t *table = wb_alloc_zero(slots, sizeof *table); /* 1 + the place of a token; 0 if the slot is free */
    if (!table)
        return WB_E_NOMEM;
    for (size_t n = 0; n < total; n++) {
        struct difference_side *side = &sides[n >= sides[0].count];
        size_t i = n >= sides[0].count ? n - sides[0].count : n;
        struct wb_slice token = token_of(side, i);
        size_t at = (size_t)wb_hash64(token.ptr, token.len) & (slots - 1);
        for (; table[at]; at = (at + 1) & (slots - 1)) {
            size_t k = table[at] - 1;
            struct wb_slice other =
                k < sides[0].count ? token_of(&sides[0], k) : token_of(&sides[1], k - sides[0].count);
            if (wb_slice_equal(token, other))
                break;
        }
        if (!table[at])
            table[at] = (uint32_t)n + 1;
        side->numbers[i] = table[at];
    }
    wb_free(table);
    return 0;
}

/* ---- Myers's algorithm ---------------------------------------------------------------------------------------- */

/*
 * Paths through the grid of old tokens (x) and new tokens (y). On diagonal k = x - y, forward[k] is how far a path from
 * the beginning has come, backward[k] how far one from the end. Both arrays have room for all diagonals and one
 * more at either end, and point to diagonal 0.
 */
struct difference_search {
    const uint32_t *a, *b;
    bool *removed, *added;
    ptrdiff_t *forward, *backward;
    uint64_t work_left;
};

/* A part of the grid. */
struct difference_box {
    ptrdiff_t a_from, a_to, b_from, b_to;
};

/* The diagonals that a search has reached. */
struct difference_reach {
    ptrdiff_t least, most;
};

/* Lets the paths reach one more diagonal at either end, or one less where the box ends. */
static void widen(struct difference_reach *reach, ptrdiff_t *far, ptrdiff_t least, ptrdiff_t most, ptrdiff_t unreached)
{
    if (reach->least > least)
        far[--reach->least - 1] = unreached;
    else
        reach->least++;
    if (reach->most < most)
        far[++reach->most + 1] = unreached;
    else
        reach->most--;
}

static bool is_within(const struct difference_reach *reach, ptrdiff_t k)
{
    return reach->least <= k && k <= reach->most;
}

/* Extends the path on diagonal k from the beginning; returns the new x. */
static ptrdiff_t go_forward(struct difference_search *s, const struct difference_box *box, ptrdiff_t k)
{
    ptrdiff_t *far = s->forward, x = far[k - 1] < far[k + 1] ? far[k + 1] : far[k - 1] + 1, from = x;

    while (x < box->a_to && x - k < box->b_to && s->a[x] == s->b[x - k])
        x++;
    s->work_left -= (uint64_t)(x - from) + 1 < s->work_left ? (uint64_t)(x - from) + 1 : s->work_left;
    return far[k] = x;
}

static ptrdiff_t go_backward(struct difference_search *s, const struct difference_box *box, ptrdiff_t k)
{
    ptrdiff_t *far = s->backward, x = far[k - 1] < far[k + 1] ? far[k - 1] : far[k + 1] - 1, from = x;

    while (x > box->a_from && x - k > box->b_from && s->a[x - 1] == s->b[x - k - 1])
        x--;
    s->work_left -= (uint64_t)(from - x) + 1 < s->work_left ? (uint64_t)(from - x) + 1 : s->work_left;
    return far[k] = x;
}

/* Finds a point on a shortest path, where the paths from both ends meet; false if the work is used up first. */
static bool find_middle(struct difference_search *s, const struct difference_box *box, ptrdiff_t *x_out,
                        ptrdiff_t *y_out)
{
    ptrdiff_t least = box->a_from - box->b_to, most = box->a_to - box->b_from;
    ptrdiff_t start = box->a_from - box->b_from, goal = box->a_to - box->b_to;
    struct difference_reach front = {start, start}, back = {goal, goal};
    bool odd = (start - goal) & 1;

    s->forward[start] = box->a_from;
    s->backward[goal] = box->a_to;
    while (s->work_left > 0) {
        widen(&front, s->forward, least, most, -1);
        for (ptrdiff_t k = front.most; k >= front.least; k -= 2) {
            ptrdiff_t x = go_forward(s, box, k);
            if (odd && is_within(&back, k) && s->backward[k] <= x) {
                *x_out = x;
                *y_out = x - k;
                return true;
            }
        }
        widen(&back, s->backward, least, most, PTRDIFF_MAX / 2);
        for (ptrdiff_t k = back.most; k >= back.least; k -= 2) {
            ptrdiff_t x = go_backward(s, box, k);
            if (!odd && is_within(&front, k) && x <= s->forward[k]) {
                *x_out = x;
                *y_out = x - k;
                return true;
            }
        }
    }
    return false;
}

/*
 * Marks what differs in a box, which is divided at a point of the shortest path: each part has half of the differences,
 * so the recursion is not deep. When the work is used up, all that is left in a box counts as different.
 */
static void compare(struct difference_search *s, struct difference_box box)
{
    ptrdiff_t x = 0, y = 0;

    while (box.a_from < box.a_to && box.b_from < box.b_to && s->a[box.a_from] == s->b[box.b_from])
        box.a_from++, box.b_from++;
    while (box.a_from < box.a_to && box.b_from < box.b_to && s->a[box.a_to - 1] == s->b[box.b_to - 1])
        box.a_to--, box.b_to--;
    if (box.a_from < box.a_to && box.b_from < box.b_to && find_middle(s, &box, &x, &y)) {
        compare(s, (struct difference_box){box.a_from, x, box.b_from, y});
        compare(s, (struct difference_box){x, box.a_to, y, box.b_to});
        return;
    }
    for (x = box.a_from; x < box.a_to; x++)
        s->removed[x] = true;
    for (y = box.b_from; y < box.b_to; y++)
        s->added[y] = true;
}

/* Marks what differs between the sides; *complete_out is false if the work was used up. */
static int search(struct difference_side sides[2], bool *complete_out)
{
    ptrdiff_t n = (ptrdiff_t)sides[0].count, m = (ptrdiff_t)sides[1].count;
    ptrdiff_t *far = wb_alloc((size_t)(n + m + 3) * 2 * sizeof *far);

    if (!far)
        return WB_E_NOMEM;
    struct difference_search s = {sides[0].numbers, sides[1].numbers,        sides[0].changed, sides[1].changed,
                                  far + m + 1,      far + n + m + 3 + m + 1, WORK_MAX};
    compare(&s, (struct difference_box){0, n, 0, m});
    *complete_out = s.work_left > 0;
    wb_free(far);
    return 0;
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

/* Appends the tokens from `from` to `to` of a side as a run. */
static int add_run(struct wb_difference *runs, enum wb_difference_kind kind, const struct difference_side *side,
                   size_t from, size_t to)
{
    if (from == to)
        return 0;
    size_t begin = from ? side->ends[from - 1] : 0;
    return wb_vec_push(runs,
                       (struct wb_difference_run){kind, wb_slice(side->text.ptr + begin, side->ends[to - 1] - begin)});
}

static int collect(const struct difference_side sides[2], struct wb_difference *runs)
{
    const struct difference_side *a = &sides[0], *b = &sides[1];
    size_t x = 0, y = 0;
    int err = 0;

    while (err == 0 && (x < a->count || y < b->count)) {
        size_t x0 = x, y0 = y;
        while (x < a->count && a->changed[x])
            x++;
        while (y < b->count && b->changed[y])
            y++;
        err = add_run(runs, WB_DIFFERENCE_REMOVED, a, x0, x);
        if (err == 0)
            err = add_run(runs, WB_DIFFERENCE_ADDED, b, y0, y);
        x0 = x;
        while (x < a->count && !a->changed[x] && y < b->count && !b->changed[y]) {
            WB_CHECK(a->numbers[x] == b->numbers[y]);
            x++;
            y++;
        }
        if (err == 0)
            err = add_run(runs, WB_DIFFERENCE_SAME, a, x0, x);
    }
    return err;
}

static int compare_tokens(struct difference_side sides[2], bool lines, bool *complete_out)
{
    int err = split(&sides[0], lines);

    if (err == 0)
        err = split(&sides[1], lines);
    if (err == 0)
        err = intern(sides);
    return err < 0 ? err : search(sides, complete_out);
}

int wb_difference_of(struct wb_slice old_text, struct wb_slice new_text, struct wb_difference *difference_out)
{
    struct difference_side sides[2] = {{old_text, NULL, NULL, NULL, 0}, {new_text, NULL, NULL, NULL, 0}};
    bool complete = false;

    *difference_out = (struct wb_difference)WB_DIFFERENCE_INIT;
    if (old_text.len > WB_DIFFERENCE_BYTES_MAX || new_text.len > WB_DIFFERENCE_BYTES_MAX)
        return wb_fail(WB_E_LIMIT, "a text of more than %u bytes is not compared", WB_DIFFERENCE_BYTES_MAX);
    int err = compare_tokens(sides, false, &complete);
    if (err == 0 && !complete) {
        release_side(&sides[0]);
        release_side(&sides[1]);
        err = compare_tokens(sides, true, &complete);
    }
    if (err == 0)
        err = collect(sides, difference_out);
    if (err < 0)
        wb_difference_release(difference_out);
    release_side(&sides[0]);
    release_side(&sides[1]);
    return err;
}

void wb_difference_release(struct wb_difference *difference)
{
    wb_vec_release(difference);
}
