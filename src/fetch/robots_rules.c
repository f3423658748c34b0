/*
 * robots_rules.c - the rules that concern us, and which of them decides about a URL.
 *
 * A pattern consists of its *head*, up to the first '*', and the rest. Rules are sorted by head. All rules with the
 * same head are a *run*: those without a star first, and the longest first, so that the first one that matches is the
 * best of its kind. Each run knows its parent, the run whose head is the longest proper prefix of its own:
 *
 *   head     rules                                  parent
 *   /        Disallow: /, Disallow: /(star).pdf$    none
 *   /a       Allow: /a, Allow: /a(star)b            /
 *   /a/b     Disallow: /a/b                         /a
 *   /c       Disallow: /c$                          /
 *
 * To check a path, a binary search finds the last run that does not sort after it. All heads that the path starts
 * with are among that run and its ancestors: one search and a few steps, however many rules there are. If a run has
 * many rules with stars, these are sorted by a group of letters that a path must contain to match, and only those
 * whose groups are in the path are tried. A check is bounded whatever the rules: once WORK_MAX is used up, every
 * Disallow counts as matched.
 *
 * It never reads lines or groups (robots.c does), and knows nothing about agents.
 */
#include "fetch/robots_rules.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "fetch/robots_path.h"

#include <stdlib.h>

#define NO_RUN UINT32_MAX
#define WORK_MAX (1u << 20) /* bytes that rules with stars may look at in one check */
#define GRAM_BITS 32768u    /* size of the set of letter groups of a path */
#define STARS_MANY 32u      /* if a run has fewer rules with stars, all are tried */

struct robots_rule {
    uint32_t text_at, pattern_at; /* in text */
    uint32_t line;
    uint16_t text_len, pattern_len, head_len;
    uint16_t octets;   /* length of the match: the longest wins */
    uint16_t grams[2]; /* letter groups of its longest part after a star; a path must contain them to match */
    bool allow, anchored, star;
};

struct rule_run {
    uint32_t first; /* rule; the run ends where the next begins */
    uint32_t stars; /* the first of its rules with a star */
    uint32_t parent;
};

struct wb_robots_rules {
    struct wb_buf text;
    struct robots_rule *rules;
    struct rule_run *runs; /* sorted by head */
    uint32_t rule_count, run_count;
};

_Static_assert(3 * WB_ROBOTS_LINE_MAX <= UINT16_MAX, "an escaped pattern's length fits");

static struct wb_slice head_of(const struct wb_robots_rules *rules, const struct robots_rule *rule)
{
    return wb_slice(rules->text.ptr + rule->pattern_at, rule->head_len);
}

static struct wb_slice rest_of(const struct wb_robots_rules *rules, const struct robots_rule *rule)
{
    return wb_slice(rules->text.ptr + rule->pattern_at + rule->head_len, (size_t)(rule->pattern_len - rule->head_len));
}

/* ---- letter groups: a path that lacks one of a rule's cannot match it ---------------------- */

/* The number of the bit that stands for a group of up to 3 letters. */
static uint16_t gram_of(const char *p, size_t len)
{
    uint32_t v = (uint32_t)len;

    for (size_t i = 0; i < len; i++)
        v = v << 8 | (unsigned char)p[i];
    return (uint16_t)((v * 2654435761u) >> 16 & (GRAM_BITS - 1));
}

static void set_grams(struct wb_robots_rules *rules, struct robots_rule *rule)
{
    struct wb_slice rest = rest_of(rules, rule), longest = WB_SLICE_EMPTY;

    for (size_t i = 0, from = 0; i <= rest.len; i++)
        if (i == rest.len || rest.ptr[i] == '*') {
            if (i - from > longest.len)
                longest = wb_slice(rest.ptr + from, i - from);
            from = i + 1;
        }
    size_t len = longest.len < 3 ? longest.len : 3;
    rule->grams[0] = gram_of(longest.ptr, len);
    rule->grams[1] = gram_of(longest.ptr + longest.len - len, len);
}

#define GRAM_WORDS (GRAM_BITS / 64)

struct gram_set {
    bool filled;
    uint64_t bits[GRAM_WORDS];
};

static void fill_grams(struct gram_set *set, struct wb_slice path)
{
    memset(set->bits, 0, sizeof set->bits);
    for (size_t i = 0; i < path.len; i++)
        for (size_t len = 0; len <= 3 && len <= path.len - i; len++) {
            uint16_t gram = gram_of(path.ptr + i, len);
            set->bits[gram / 64] |= (uint64_t)1 << gram % 64;
        }
    set->filled = true;
}

static bool has_gram(const struct gram_set *set, uint16_t gram)
{
    return set->bits[gram / 64] >> gram % 64 & 1;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Adds the rule of one line: its text, and its pattern unless that is a part of the text. */
static int add_rule(struct wb_robots_rules *rules, const struct wb_robots_line *line)
{
    struct robots_rule *rule = &rules->rules[rules->rule_count];
    struct wb_slice value = line->value;
    bool same;

    *rule = (struct robots_rule){.line = line->number, .allow = line->allow};
    rule->text_at = (uint32_t)rules->text.len;
    rule->text_len = (uint16_t)line->text.len;
    rule->octets = (uint16_t)wb_robots_path_octets(value);
    int err = wb_buf_append_slice(&rules->text, line->text);
    if (err < 0)
        return err;
    if (value.ptr[value.len - 1] == '$') {
        rule->anchored = true;
        rule->octets = (uint16_t)(rule->octets - 2); /* it was counted as an escape */
        value.len--;
    }
    rule->pattern_at = (uint32_t)rules->text.len;
    err = wb_robots_path_write(value, true, line->allow ? WB_ROBOTS_LITERAL : WB_ROBOTS_FOLDED, &rules->text, &same);
    if (err < 0)
        return err;
    rule->pattern_len = (uint16_t)(rules->text.len - rule->pattern_at);
    if (wb_slice_equal(wb_slice(rules->text.ptr + rule->pattern_at, rule->pattern_len), value)) {
        rules->text.len = rule->pattern_at;
        rule->pattern_at = (uint32_t)(rule->text_at + (size_t)(value.ptr - line->text.ptr));
    }
    const char *pattern = rules->text.ptr + rule->pattern_at;
    while (!rule->anchored && rule->pattern_len && pattern[rule->pattern_len - 1] == '*')
        rule->pattern_len--;
    const char *star = rule->pattern_len ? memchr(pattern, '*', rule->pattern_len) : NULL;
    rule->star = star != NULL;
    rule->head_len = star ? (uint16_t)(star - pattern) : rule->pattern_len;
    rules->rule_count++;
    return 0;
}

/* "Allow: /dir/index.html" allows "/dir/", too, as in Google's parser. */
static void add_index_rule(struct wb_robots_rules *rules)
{
    const struct robots_rule *rule = &rules->rules[rules->rule_count - 1];
    struct wb_slice pattern = wb_slice(rules->text.ptr + rule->pattern_at, rule->pattern_len);
    const char *slash = pattern.len ? memrchr(pattern.ptr, '/', pattern.len) : NULL;

    if (!rule->allow || !slash || !wb_slice_starts(wb_slice(slash, (size_t)(pattern.ptr + pattern.len - slash)),
                                                   WB_SLICE_LIT("/index.htm")))
        return;
    struct robots_rule *dir = &rules->rules[rules->rule_count++];
    *dir = *rule;
    dir->pattern_len = (uint16_t)(slash + 1 - pattern.ptr);
    dir->octets = (uint16_t)(wb_robots_path_octets(wb_slice(pattern.ptr, dir->pattern_len)) + 1);
    dir->anchored = true;
    dir->star = dir->head_len < dir->pattern_len;
    if (!dir->star)
        dir->head_len = dir->pattern_len;
}

/* The longest first; if equally long, Allow first; then the first in the file. */
static int compare_ranks(const struct robots_rule *a, const struct robots_rule *b)
{
    if (a->octets != b->octets)
        return a->octets > b->octets ? -1 : 1;
    if (a->allow != b->allow)
        return a->allow ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static int compare_rules(const void *left, const void *right, void *context)
{
    const struct wb_robots_rules *rules = context;
    const struct robots_rule *a = left, *b = right;
    int order = wb_slice_compare(head_of(rules, a), head_of(rules, b));

    if (order == 0 && a->star != b->star)
        order = a->star ? 1 : -1;
    return order ? order : compare_ranks(a, b);
}

static int compare_grams(const void *left, const void *right)
{
    const struct robots_rule *a = left, *b = right;

    if (a->grams[0] != b->grams[0])
        return a->grams[0] < b->grams[0] ? -1 : 1;
    return compare_ranks(a, b);
}

static bool same_rule(const struct wb_robots_rules *rules, const struct robots_rule *a, const struct robots_rule *b)
{
    return a->allow == b->allow && a->anchored == b->anchored && a->star == b->star && a->octets == b->octets &&
           wb_slice_equal(head_of(rules, a), head_of(rules, b)) && wb_slice_equal(rest_of(rules, a), rest_of(rules, b));
}

/* Keeps the first of several neighbouring rules that say the same. */
static void drop_repeated(struct wb_robots_rules *rules)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < rules->rule_count; i++)
        if (kept == 0 || !same_rule(rules, &rules->rules[kept - 1], &rules->rules[i]))
            rules->rules[kept++] = rules->rules[i];
    rules->rule_count = kept;
}

/* Makes the runs of rules with the same head, and finds their parents. */
static int make_runs(struct wb_robots_rules *rules)
{
    uint32_t open = NO_RUN; /* the run before, and through its parents all that may be above the next */

    rules->runs = wb_alloc(((size_t)rules->rule_count + 1) * sizeof *rules->runs);
    if (!rules->runs)
        return WB_E_NOMEM;
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        struct wb_slice head = head_of(rules, &rules->rules[i]);
        if (open == NO_RUN || !wb_slice_equal(head, head_of(rules, &rules->rules[rules->runs[open].first]))) {
            while (open != NO_RUN && !wb_slice_starts(head, head_of(rules, &rules->rules[rules->runs[open].first])))
                open = rules->runs[open].parent;
            rules->runs[rules->run_count] = (struct rule_run){i, i, open};
            open = rules->run_count++;
        }
        if (!rules->rules[i].star)
            rules->runs[open].stars = i + 1;
    }
    rules->runs[rules->run_count] = (struct rule_run){rules->rule_count, rules->rule_count, NO_RUN};
    return 0;
}

static bool has_many_stars(const struct rule_run *run)
{
    return run[1].first - run->stars >= STARS_MANY;
}

static void sort_stars(struct wb_robots_rules *rules)
{
    for (uint32_t i = 0; i < rules->run_count; i++) {
        struct rule_run *run = &rules->runs[i];
        if (has_many_stars(run))
            qsort(&rules->rules[run->stars], run[1].first - run->stars, sizeof *rules->rules, compare_grams);
    }
}

/* Gives back memory that was reserved for an array but is not used. It does not matter if that fails. */
static void shrink(void **array, size_t bytes)
{
    void *smaller = *array && bytes ? wb_realloc(*array, bytes) : NULL;

    if (smaller)
        *array = smaller;
}

static void shrink_all(struct wb_robots_rules *rules)
{
    void *array = rules->rules, *runs = rules->runs;

    wb_buf_trim(&rules->text, 0);
    shrink(&array, rules->rule_count * sizeof *rules->rules);
    shrink(&runs, ((size_t)rules->run_count + 1) * sizeof *rules->runs);
    rules->rules = array;
    rules->runs = runs;
}

int wb_robots_rules_build(const struct wb_robots_line *lines, size_t count, struct wb_robots_rules **rules_out)
{
    struct wb_robots_rules *rules = wb_alloc_zero(1, sizeof *rules);
    int err = 0;

    *rules_out = NULL;
    if (!rules)
        return WB_E_NOMEM;
    rules->rules = wb_alloc((2 * count + 1) * sizeof *rules->rules);
    if (!rules->rules) {
        err = WB_E_NOMEM;
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        WB_CHECK(lines[i].value.len > 0 && lines[i].text.len <= WB_ROBOTS_LINE_MAX);
        err = add_rule(rules, &lines[i]);
        if (err < 0)
            goto done;
        add_index_rule(rules);
    }
    for (uint32_t i = 0; i < rules->rule_count; i++)
        if (rules->rules[i].star)
            set_grams(rules, &rules->rules[i]);
    qsort_r(rules->rules, rules->rule_count, sizeof *rules->rules, compare_rules, rules);
    drop_repeated(rules);
    err = make_runs(rules);
    if (err < 0)
        goto done;
    sort_stars(rules);
    shrink_all(rules);
    *rules_out = rules;
    rules = NULL;
done:
    wb_robots_rules_free(rules);
    return err;
}

void wb_robots_rules_free(struct wb_robots_rules *rules)
{
    if (!rules)
        return;
    wb_buf_release(&rules->text);
    wb_free(rules->rules);
    wb_free(rules->runs);
    wb_free(rules);
}

size_t wb_robots_rules_bytes(const struct wb_robots_rules *rules)
{
    return sizeof *rules + rules->text.cap + rules->rule_count * sizeof *rules->rules +
           ((size_t)rules->run_count + 1) * sizeof *rules->runs;
}

/* ---- finding --------------------------------------------------------------------------------- */

struct rule_search {
    const struct wb_robots_rules *rules;
    struct wb_slice path;
    bool want_allow, want_disallow; /* which rules are compared with this spelling of the path */
    const struct robots_rule *best;        /* so far */
    uint64_t work;
    struct gram_set grams;
};

/*
 * Finds the parts between stars one after another, each as early as possible. The last part of an anchored pattern
 * must be at the end.
 */
static bool match_rest(struct rule_search *s, const struct robots_rule *rule, struct wb_slice text)
{
    struct wb_slice rest = rest_of(s->rules, rule);

    while (rest.len) {
        rest.ptr++;
        rest.len--;
        const char *star = rest.len ? memchr(rest.ptr, '*', rest.len) : NULL;
        struct wb_slice part = wb_slice(rest.ptr, star ? (size_t)(star - rest.ptr) : rest.len);

        if (!star && rule->anchored)
            return text.len >= part.len && memcmp(text.ptr + text.len - part.len, part.ptr, part.len) == 0;
        s->work += text.len + text.len * part.len / 8 + 1;
        const char *found = part.len ? memmem(text.ptr, text.len, part.ptr, part.len) : text.ptr;
        if (!found)
            return false;
        text.len -= (size_t)(found - text.ptr) + part.len;
        text.ptr = found + part.len;
        rest.ptr += part.len;
        rest.len -= part.len;
    }
    return true;
}

/* True if the path has the rule's letter groups, or if those of the path were not collected. */
static bool has_grams(const struct rule_search *s, const struct robots_rule *rule)
{
    return !rule->star || !s->grams.filled || (has_gram(&s->grams, rule->grams[0]) &&
                                               has_gram(&s->grams, rule->grams[1]));
}

/* Matches the part after the head, which has matched. */
static bool match_rule(struct rule_search *s, const struct robots_rule *rule)
{
    struct wb_slice text = wb_slice(s->path.ptr + rule->head_len, s->path.len - rule->head_len);

    if (!rule->star)
        return !rule->anchored || text.len == 0;
    return s->work > WORK_MAX ? !rule->allow : match_rest(s, rule, text);
}

/* Tries rules from the best one on, until one matches or the rest cannot beat what was found before. */
static void search_rules(struct rule_search *s, const struct robots_rule *rule, const struct robots_rule *end)
{
    for (; rule < end && (!s->best || compare_ranks(rule, s->best) < 0); rule++) {
        s->work++;
        if ((rule->allow ? s->want_allow : s->want_disallow) && has_grams(s, rule) && match_rule(s, rule)) {
            s->best = rule;
            return;
        }
    }
}

/* The first of the rules, sorted by letter group, whose group is not before this one. */
static const struct robots_rule *find_gram(const struct robots_rule *rule, const struct robots_rule *end, unsigned gram)
{
    while (rule < end) {
        const struct robots_rule *middle = rule + (end - rule) / 2;
        if (middle->grams[0] < gram)
            rule = middle + 1;
        else
            end = middle;
    }
    return rule;
}

static void search_run(struct rule_search *s, const struct rule_run *run)
{
    const struct robots_rule *rules = s->rules->rules, *stars = rules + run->stars, *end = rules + run[1].first;

    search_rules(s, rules + run->first, stars);
    if (!has_many_stars(run)) {
        search_rules(s, stars, end);
        return;
    }
    if (!s->grams.filled)
        fill_grams(&s->grams, s->path);
    for (unsigned i = 0; i < GRAM_WORDS; i++)
        for (uint64_t bits = s->grams.bits[i]; bits; bits &= bits - 1) {
            unsigned gram = 64 * i + (unsigned)__builtin_ctzll(bits);
            const struct robots_rule *from = find_gram(stars, end, gram);
            if (from < end && from->grams[0] == gram)
                search_rules(s, from, find_gram(from, end, gram + 1));
        }
}

static size_t common_prefix(struct wb_slice a, struct wb_slice b)
{
    size_t n = 0, len = a.len < b.len ? a.len : b.len;

    while (n < len && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

static void search_path(struct rule_search *s, struct wb_slice path)
{
    const struct wb_robots_rules *rules = s->rules;
    uint32_t low = 0, high = rules->run_count;

    s->path = path;
    s->grams.filled = false;
    while (low < high) { /* runs before low are not behind the path */
        uint32_t middle = low + (high - low) / 2;
        if (wb_slice_compare(head_of(rules, &rules->rules[rules->runs[middle].first]), path) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return;
    uint32_t run = low - 1;
    size_t common = common_prefix(path, head_of(rules, &rules->rules[rules->runs[run].first]));
    for (; run != NO_RUN; run = rules->runs[run].parent)
        if (rules->rules[rules->runs[run].first].head_len <= common)
            search_run(s, &rules->runs[run]);
}

/* If the two spellings of the path differ, each is compared with the rules that it is meant for. */
static int search_url(struct rule_search *s, struct wb_slice url, struct wb_buf *literal, struct wb_buf *folded)
{
    struct wb_slice path = wb_robots_path_of(url);
    bool same = true;
    int err = path.ptr[0] == '/' ? 0 : wb_buf_append_char(literal, '/');

    if (err == 0)
        err = wb_robots_path_write(path, false, WB_ROBOTS_LITERAL, literal, &same);
    if (err < 0)
        return err;
    s->want_allow = true;
    s->want_disallow = same;
    search_path(s, wb_buf_slice(literal));
    if (same)
        return 0;
    err = path.ptr[0] == '/' ? 0 : wb_buf_append_char(folded, '/');
    if (err == 0)
        err = wb_robots_path_write(path, false, WB_ROBOTS_FOLDED, folded, &same);
    if (err < 0)
        return err;
    s->want_allow = false;
    s->want_disallow = true;
    search_path(s, wb_buf_slice(folded));
    return 0;
}

bool wb_robots_rules_find(const struct wb_robots_rules *rules, struct wb_slice url, bool *allow_out, uint32_t *line_out,
                          struct wb_slice *text_out)
{
    struct wb_buf literal = WB_BUF_INIT, folded = WB_BUF_INIT;
    struct rule_search s; /* its set of letter groups is cleared when it is used */

    s.rules = rules;
    s.best = NULL;
    s.work = 0;
    *allow_out = true;
    *line_out = 0;
    *text_out = WB_SLICE_EMPTY;
    if (rules->rule_count == 0)
        return false;
    int err = search_url(&s, url, &literal, &folded);
    wb_buf_release(&literal);
    wb_buf_release(&folded);
    if (err < 0) { /* out of memory: better not fetch than fetch what is forbidden */
        *allow_out = false;
        return true;
    }
    if (!s.best)
        return false;
    *allow_out = s.best->allow;
    *line_out = s.best->line;
    *text_out = wb_slice(rules->text.ptr + s.best->text_at, s.best->text_len);
    return true;
}
