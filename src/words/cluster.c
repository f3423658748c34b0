/*
 * cluster.c - reads words that are joined by punctuation, and decides whether they are a compound.
 *
 *   cluster   [prefix] part { joiner part } [suffix]
 *   prefix    "." "@" "#" behind a blank, a bracket or a quote, and before a letter; or up to three "_"
 *   joiner    one of . - & : :: or up to three "_"; or + ++ #, alone or before one of those
 *   suffix    + ++ # or up to three "_", if no letter follows
 *   part      letters, digits and marks (part.c); "'s" and the like belong to the part before it
 *
 * Blanks never occur in a cluster, and nothing outside the blanks around it matters, so a query that has the same
 * characters gives the same words. Parts joined by hyphens only, without any digit, are no compound: as a sequence,
 * "e-mail" also finds "e mail", and the index does not need to know every pair of words that was ever joined.
 */
#include "base/check.h"
#include "base/utf8.h"
#include "words/wordscan.h"

struct cluster {
    char *text; /* the compound */
    size_t len;
    size_t begin;
    unsigned parts;
    bool fits;    /* it can be a compound */
    bool affix;   /* it has a prefix or suffix */
    bool hyphens; /* all joiners are hyphens */
    bool digit;
};

static void put(struct cluster *c, const char *bytes, size_t len)
{
    if (c->len + len > WB_COMPOUND_BYTES_MAX)
        c->fits = false;
    if (!c->fits)
        return;
    memcpy(c->text + c->len, bytes, len);
    c->len += len;
}

static char byte_at(struct wb_slice text, size_t at)
{
    return at < text.len ? text.ptr[at] : 0;
}

/* How often c is repeated at `at`; 0 if more than max times. */
static size_t run_of(struct wb_slice text, size_t at, char c, size_t max)
{
    size_t n = 0;

    while (n <= max && byte_at(text, at + n) == c)
        n++;
    return n <= max ? n : 0;
}

static bool is_letter(struct wb_slice text, size_t at)
{
    size_t len;
    uint32_t cp;

    return wb_words_class_at(text, at, &len, &cp) == WB_FOLD_LETTER;
}

static bool is_digit(struct wb_slice text, size_t at)
{
    size_t len;
    uint32_t cp;

    wb_words_class_at(text, at, &len, &cp);
    return wb_fold_of(cp) & WB_FOLD_DIGIT;
}

/* ---- prefix, joiner, suffix ---------------------------------------------------------------------------------- */

/* The class of the character before `at`. */
static enum wb_fold_class class_before(struct wb_slice text, size_t at)
{
    size_t len, from = at - 1;
    uint32_t cp;

    while (from > 0 && at - from < 4 && ((uint8_t)text.ptr[from] & 0xc0) == 0x80)
        from--;
    enum wb_fold_class class = wb_words_class_at(text, from, &len, &cp);
    return from + len == at ? class : WB_FOLD_SEPARATOR;
}

/* True if a prefix may begin at `at`: at the beginning of the text, or behind a blank, a bracket or a quote. */
static bool may_begin(struct wb_slice text, size_t at)
{
    if (at == 0)
        return true;
    uint8_t c = (uint8_t)text.ptr[at - 1];
    if (c >= 0x80)
        return class_before(text, at) == WB_FOLD_SEPARATOR;
    return c <= ' ' || strchr("([{<>\"'`,;=|/", c);
}

/* The length of the prefix that ends at `at`, where a part begins; 0 if there is none. */
static size_t prefix_before(const struct wb_words *w, size_t at)
{
    size_t underscores = 0;

    if (at == w->taken)
        return 0;
    switch (w->text.ptr[at - 1]) {
    case '.':
    case '@':
    case '#':
        return may_begin(w->text, at - 1) && !is_digit(w->text, at);
    case '_':
        while (underscores <= 3 && underscores < at - w->taken && w->text.ptr[at - 1 - underscores] == '_')
            underscores++;
        return underscores <= 3 ? underscores : 0;
    default:
        return 0;
    }
}

/* The length of a hyphen at `at`, or 0. */
static size_t hyphen_at(struct wb_slice text, size_t at)
{
    if (byte_at(text, at) == '-')
        return 1;
    /* U+2010, and U+2011, which does not break */
    return text.len - at >= 3 && memcmp(text.ptr + at, "\xe2\x80", 2) == 0 &&
                   (text.ptr[at + 2] == '\x90' || text.ptr[at + 2] == '\x91')
               ? 3
               : 0;
}

/* The length of + ++ or # at `at`, or 0. */
static size_t symbol_at(struct wb_slice text, size_t at)
{
    return byte_at(text, at) == '#' ? run_of(text, at, '#', 1) : run_of(text, at, '+', 2);
}

#define JOINER_MAX 8

/* Reads what joins the part before `at` to a part behind it. Returns its length in the text; 0 if nothing does. */
static size_t read_joiner(struct wb_slice text, size_t at, char joiner[JOINER_MAX], size_t *len_out)
{
    size_t symbol = symbol_at(text, at), more = 0, from = at + symbol, kept = 0;
    char c = byte_at(text, from);

    if (symbol)
        memcpy(joiner, text.ptr + at, symbol);
    if (c == '.' || c == '&')
        more = kept = 1;
    else if (c == ':' || c == '_')
        more = kept = run_of(text, from, c, c == ':' ? 2 : 3);
    else if ((more = hyphen_at(text, from)) > 0)
        kept = 1;
    if (kept)
        memset(joiner + symbol, more == 3 && c != '_' ? '-' : c, kept);
    *len_out = symbol + kept;
    return *len_out && is_letter(text, from + more) ? symbol + more : 0;
}

/* A long word with a "+" or "#" behind it is not a name such as c++. */
#define SYMBOL_PART_MAX 16

static size_t suffix_at(struct wb_slice text, size_t at, const struct wb_wordbuf *part)
{
    size_t symbol = part->len <= SYMBOL_PART_MAX ? symbol_at(text, at) : 0;

    if (!symbol)
        symbol = run_of(text, at, '_', 3);
    return symbol && !is_letter(text, at + symbol) ? symbol : 0;
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

static size_t apostrophe_at(struct wb_slice text, size_t at)
{
    size_t left = text.len - at;

    if (byte_at(text, at) == '\'')
        return 1;
    if (left >= 3 && memcmp(text.ptr + at, "\xe2\x80\x99", 3) == 0) /* U+2019, as typeset */
        return 3;
    return left >= 2 && memcmp(text.ptr + at, "\xca\xbc", 2) == 0 ? 2 : 0; /* U+02BC */
}

/* Adds "'s", "'t" and the like to a part. Returns where they end; `at` if there is nothing of the kind. */
static size_t read_contraction(struct wb_slice text, size_t at, struct wb_wordbuf *part)
{
    static const char *const endings[] = {"'s", "'t", "'d", "'m", "'ll", "'re", "'ve"};
    size_t from = at + apostrophe_at(text, at);

    for (size_t i = 0; from > at && i < sizeof endings / sizeof *endings; i++) {
        struct wb_slice ending = wb_slice_str(endings[i]), letters = wb_slice(ending.ptr + 1, ending.len - 1);
        if (!wb_slice_starts_nocase(wb_slice(text.ptr + from, text.len - from), letters) ||
            is_letter(text, from + letters.len))
            continue;
        wb_part_append(part, ending);
        return from + letters.len;
    }
    return at;
}

static size_t read_part(struct wb_words *w, struct cluster *c, size_t at, bool *ended)
{
    struct wb_wordbuf *part = &w->parts[c->parts++];
    size_t begin = at, end = wb_part_read(w->text, at, part);

    at = c->parts == 1 && !c->affix ? read_contraction(w->text, end, part) : end;
    *ended = at > end;
    w->queue[c->parts] = (struct wb_word){.exact = wb_slice(part->bytes, part->len),
                                          .begin = begin,
                                          .end = at,
                                          .position = w->position++,
                                          .kind = WB_WORD_PLAIN};
    put(c, part->bytes, part->len);
    c->digit |= part->digit;
    return at;
}

/* Puts the compound before its parts, if the cluster is one. */
static void queue_compound(struct wb_words *w, const struct cluster *c, size_t end)
{
    bool joined = c->parts > 1 || c->affix, dull = !c->affix && c->hyphens && !c->digit;

    WB_CHECK(c->parts > 0 && c->parts <= WB_CLUSTER_PARTS);
    w->queued = 1 + c->parts;
    w->given = 1;
    if (!c->fits || !joined || dull || c->parts > WB_COMPOUND_PARTS_MAX)
        return;
    w->queue[0] = (struct wb_word){.exact = wb_slice(c->text, c->len),
                                   .begin = c->begin,
                                   .end = end,
                                   .position = w->queue[1].position,
                                   .kind = WB_WORD_COMPOUND,
                                   .parts = (uint8_t)c->parts};
    w->given = 0;
}

static void read_cluster(struct wb_words *w, size_t at, bool chained)
{
    struct cluster c = {.text = w->compound, .fits = !chained && w->url != WB_WORDS_URL_REST, .hyphens = true};
    size_t prefix = prefix_before(w, at);
    bool ended = false;

    c.begin = at - prefix;
    c.affix = prefix > 0;
    put(&c, w->text.ptr + c.begin, prefix);
    while (!ended) {
        char joiner[JOINER_MAX];
        size_t kept;
        at = read_part(w, &c, at, &ended);
        size_t len = ended ? 0 : read_joiner(w->text, at, joiner, &kept);
        if (len && c.parts == WB_CLUSTER_PARTS) {
            w->chained = true; /* what follows belongs to a chain that is too long */
            at += len;
            break;
        }
        if (len) {
            put(&c, joiner, kept);
            c.hyphens &= kept == 1 && joiner[0] == '-';
            at += len;
            continue;
        }
        size_t suffix = ended ? 0 : suffix_at(w->text, at, &w->parts[c.parts - 1]);
        put(&c, w->text.ptr + at, suffix);
        c.affix |= suffix > 0;
        at += suffix;
        ended = true;
    }
    queue_compound(w, &c, at);
    w->at = w->taken = at;
    if (wb_slice_starts(wb_slice(w->text.ptr + at, w->text.len - at), WB_SLICE_LIT("://")))
        w->url = WB_WORDS_URL_HOST;
    else if (w->url == WB_WORDS_URL_HOST)
        w->url = WB_WORDS_URL_REST;
}

bool wb_words_scan(struct wb_words *w)
{
    size_t at = w->at, len;
    uint32_t cp;
    bool chained = w->chained;

    w->chained = false;
    for (;; at += len, chained = false) {
        enum wb_fold_class class = wb_words_class_at(w->text, at, &len, &cp);
        if (len == 0) {
            w->at = at;
            return false;
        }
        if (class == WB_FOLD_LETTER) {
            read_cluster(w, at, chained);
            return true;
        }
        if (class == WB_FOLD_GRAM || class == WB_FOLD_GRAM_MARK) {
            wb_words_begin_run(w, at);
            return true;
        }
        if ((cp > 0 && cp <= ' ') || cp == '<' || cp == '>' || cp == '"')
            w->url = WB_WORDS_URL_NONE;
    }
}
