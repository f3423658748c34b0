/*
 * sentences.c - where a passage of a text begins and ends: with sentences if they are near, otherwise with words.
 *
 * A sentence begins with a block (behind '\n'), or behind ". ", "! " or "? " if no small letter follows, or behind a
 * full stop of a script that has no blanks. That takes some abbreviations for ends of sentences; nothing depends on it
 * but how a snippet looks.
 */
#include "base/check.h"
#include "query/matches.h"

enum {
    BACK_BYTES = 120,  /* how far before its first match a passage may begin to begin with a sentence */
    WORDS_BYTES = 60,  /* otherwise, where a word begins at most so far before it */
    SHORT_BYTES = 120, /* a passage is not cut off at the end of a sentence if it is shorter */
    OVER_BYTES = 40,   /* how much longer than asked for a passage may be to end with a sentence or a word */
    LONG_WORD = 30,    /* how much shorter, to end with a word */
    WHOLE_BYTES = 60,  /* what is as long does not need a heading behind it */
};

/* Ends of sentences that are not ASCII. Blanks follow only those of Arabic, Urdu and Hindi. */
static const struct {
    const char *text;
    bool blank;
} stops[] = {{"。", false}, {"！", false}, {"？", false}, {"؟", true}, {"۔", true}, {"।", true}};

/* Whether one of these ends at this place. */
static bool stops_at(struct wb_slice text, size_t at, bool blank)
{
    struct wb_slice before = wb_slice(text.ptr, at);

    if (at == 0 || (unsigned char)text.ptr[at - 1] < 0x80)
        return false;
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (stops[i].blank == blank && wb_slice_ends(before, wb_slice_str(stops[i].text)))
            return true;
    return false;
}

/* Whether a block ends here, or a part of the text behind which something is left out. */
static bool is_edge(char c)
{
    return c == '\n' || c == WB_KEPT_GAP;
}

static bool is_inside(struct wb_slice text, size_t at)
{
    return at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80;
}

bool wb_text_begins(struct wb_slice text, size_t at)
{
    WB_CHECK(at <= text.len);
    while (at > 0 && at < text.len && text.ptr[at - 1] == ' ' && text.ptr[at] == ' ')
        at--;
    if (at == 0 || is_edge(text.ptr[at - 1]) || (at < text.len && is_edge(text.ptr[at])))
        return true;
    if (stops_at(text, at, false) || (text.ptr[at - 1] == ' ' && stops_at(text, at - 1, true)))
        return true;
    if (text.ptr[at - 1] != ' ' || (at < text.len && text.ptr[at] >= 'a' && text.ptr[at] <= 'z'))
        return false;
    at--;
    while (at > 1 && memchr("\"')]", text.ptr[at - 1], 4))
        at--;
    return at > 0 && memchr(".!?:", text.ptr[at - 1], 4);
}

bool wb_text_ends(struct wb_slice text, size_t at)
{
    WB_CHECK(at <= text.len);
    if (at == text.len || is_edge(text.ptr[at]) || (at && is_edge(text.ptr[at - 1])))
        return true;
    return wb_text_begins(text, text.ptr[at] == ' ' ? at + 1 : at);
}

struct wb_text_range wb_text_block(struct wb_slice text, size_t at)
{
    const char *end = at < text.len ? memchr(text.ptr + at, '\n', text.len - at) : NULL;
    size_t begin = at < text.len ? at : text.len;

    while (begin > 0 && text.ptr[begin - 1] != '\n')
        begin--;
    return (struct wb_text_range){begin, end ? (size_t)(end - text.ptr) : text.len};
}

static size_t find_begin(struct wb_slice text, size_t low, size_t first)
{
    WB_CHECK(low <= first && first <= text.len);
    size_t back = first - low > BACK_BYTES ? first - BACK_BYTES : low;

    for (size_t at = first; at > back; at--)
        if (at < text.len && text.ptr[at] != '\n' && wb_text_begins(text, at))
            return at;
    if (back == low)
        return low;
    for (size_t at = first - WORDS_BYTES; at < first; at++)
        if (text.ptr[at - 1] == ' ')
            return at;
    for (size_t at = first - WORDS_BYTES; at > back; at--)
        if (text.ptr[at - 1] == ' ')
            return at;
    size_t at = first - WORDS_BYTES;
    while (at < first && is_inside(text, at))
        at++;
    return at;
}

/* Leaves out short blocks at the end, headings and the like, if the passage is long enough without them. */
static size_t without_headings(struct wb_slice text, size_t begin, size_t least, size_t end)
{
    size_t from = begin + WHOLE_BYTES > least ? begin + WHOLE_BYTES : least;

    WB_CHECK(least <= end && end <= text.len);
    while (end > from) {
        const char *last = memrchr(text.ptr + from, '\n', end - from);
        size_t at = last ? (size_t)(last - text.ptr) : end;
        if (!last || wb_matches_prose(wb_slice(text.ptr + at, end - at)))
            break;
        end = at;
    }
    return end;
}

/* Where it may end with a sentence, and if not, with a word. `least`: what must be in it. */
static size_t find_end(struct wb_slice text, size_t begin, size_t least, size_t want, size_t high)
{
    WB_CHECK(begin <= least && least <= want && want <= high && high <= text.len);
    size_t most = high - begin > want - begin + OVER_BYTES ? want + OVER_BYTES : high;
    size_t shortest = begin + SHORT_BYTES > least ? begin + SHORT_BYTES : least;

    if (most == high)
        return high;
    for (size_t at = most; at >= shortest && at > begin; at--)
        if (text.ptr[at] == '\n' || (text.ptr[at] == ' ' && wb_text_ends(text, at)) || stops_at(text, at, false))
            return at;
    for (size_t at = want; at + LONG_WORD > want && at > least; at--)
        if (text.ptr[at] == ' ')
            return at;
    for (size_t at = want > least ? want : least; at <= most; at++)
        if (text.ptr[at] == ' ')
            return at;
    size_t at = want > least ? want : least;
    while (at > least && is_inside(text, at))
        at--;
    return at;
}

struct wb_text_range wb_text_passage(struct wb_slice text, struct wb_text_range within, size_t first, size_t last,
                                     size_t want)
{
    WB_CHECK(within.begin <= first && first <= within.end && last <= within.end && within.end <= text.len);
    while (within.end > last && wb_ascii_is_space(text.ptr[within.end - 1]))
        within.end--;
    size_t begin = find_begin(text, within.begin, first);
    while (begin < first && wb_ascii_is_space(text.ptr[begin]))
        begin++;
    want = want < within.end ? want : within.end;
    want = want > last ? want : last;
    size_t end = find_end(text, begin, last, want, within.end);
    return (struct wb_text_range){begin, without_headings(text, begin, last, end)};
}
