/*
 * replay_marks.c - which words of two versions of a page differ, as places in the bytes of each, and the markup that
 * shows them when the page is rewritten.
 *
 *   page --collect--> text of its visible words, and where each is --difference.c--> runs --place--> marks of each side
 *
 *   old: The <del>old</del> text.       new: The <ins>new</ins> text, <ins>and more</ins>.
 *
 * Only text between tags is marked, never a tag, and only where an element may stand: not in titles, style sheets, form
 * fields, svg or math. So the page has the same tags in the same order, with complete marks between them. A mark ends
 * where a tag begins. Where one side has nothing, a thin bar shows the place.
 */
#include "base/check.h"
#include "base/error.h"
#include "replay/replayer.h"

/* Between blocks of text stands a word of its own, so that the last word of a block equals the same word elsewhere. */
#define BLOCK_END "\001\n"

/* ---- words ------------------------------------------------------------------------------------------------------ */

/* A part of a text token without white space. Parts in different tokens may be one word: o<b>n</b>e. */
struct marks_part {
    uint32_t at;       /* where it begins in the text */
    uint32_t from, to; /* where it is in the document */
    bool apart;        /* a tag is in front of it: no mark goes on over it */
};

struct marks_side {
    struct wb_buf text;
    WB_VEC(struct marks_part) parts;
    struct wb_slice bytes; /* the document */
    const char *charset;
    struct wb_buf memory, utf8, plain;
    bool blank;         /* white space or the end of a block came since the last part... */
    bool block;         /* ...the latter */
    bool apart;         /* a tag came since the last part */
    bool cut;           /* there is more than is compared */
    enum wb_tag hidden; /* the element whose text is not shown as such, and how many of its kind are open */
    unsigned depth;
};

static void release_side(struct marks_side *side)
{
    wb_buf_release(&side->text);
    wb_buf_release(&side->memory);
    wb_buf_release(&side->utf8);
    wb_buf_release(&side->plain);
    wb_vec_release(&side->parts);
}

/* The part as text: in UTF-8, without entities. */
static int decode(struct marks_side *side, struct wb_slice raw, unsigned how, struct wb_slice *text_out)
{
    int err = wb_tagwalk_utf8(side->charset, raw, &side->utf8, text_out);

    if (err < 0 || !how)
        return err;
    err = wb_buf_reserve(&side->plain, WB_DECODED_MAX(text_out->len));
    if (err < 0)
        return err;
    *text_out = wb_slice(side->plain.ptr, wb_token_decode(*text_out, how, side->plain.ptr));
    return 0;
}

static int add_part(struct marks_side *side, struct wb_slice raw, unsigned how)
{
    struct wb_slice text;
    int err = decode(side, raw, how, &text);

    if (side->parts.count >= WB_REPLAY_PARTS_MAX || side->text.len + text.len > WB_REPLAY_MARKED_MAX) {
        side->cut = true;
        return err;
    }
    if (err == 0 && side->blank && side->text.len)
        err = wb_buf_append_char(&side->text, ' ');
    if (err == 0 && side->block && side->text.len)
        err = wb_buf_append_str(&side->text, BLOCK_END);
    if (err == 0)
        err = wb_vec_push(&side->parts, (struct marks_part){
                                            .at = (uint32_t)side->text.len,
                                            .from = (uint32_t)(raw.ptr - side->bytes.ptr),
                                            .to = (uint32_t)(raw.ptr + raw.len - side->bytes.ptr),
                                            .apart = side->apart,
                                        });
    if (err == 0)
        err = wb_buf_append_slice(&side->text, text);
    side->blank = side->block = side->apart = false;
    return err;
}

/* Where a part that begins at p ends. A character of Chinese or Japanese is one; only UTF-8 has it in these bytes. */
static const char *end_of_part(const struct marks_side *side, const char *p, const char *end)
{
    bool utf8 = strcmp(side->charset, "utf-8") == 0;
    const char *from = p;

    for (; p < end && !wb_ascii_is_space(*p); p++)
        if (utf8 && wb_difference_is_wide(p, end))
            return p == from ? p + 3 : p;
    return p;
}

static int add_text(struct marks_side *side, const struct wb_tokenizer *t)
{
    const char *p = t->text.ptr, *end = p + t->text.len;
    int err = 0;

    while (p < end && err == 0) {
        if (wb_ascii_is_space(*p)) {
            side->blank = true;
            p++;
            continue;
        }
        const char *part_end = end_of_part(side, p, end);
        err = add_part(side, wb_slice(p, (size_t)(part_end - p)), t->how);
        p = part_end;
    }
    return err;
}

/* Elements whose text cannot be marked: it is no markup, is not shown, or is shown by something that ignores marks. */
static bool hides(enum wb_tag tag)
{
    return tag == WB_TAG_SELECT_ || tag == WB_TAG_TEMPLATE_ || wb_tag_facts[tag].flags & WB_TAG_SILENT ||
           wb_tag_facts[tag].mode != WB_MODE_DATA;
}

/* Pictures and the like stand between words although no white space does. */
static bool is_shown_between(enum wb_tag tag)
{
    return tag == WB_TAG_IMG_ || tag == WB_TAG_EMBED_ || tag == WB_TAG_OBJECT_ || tag == WB_TAG_VIDEO_ ||
           tag == WB_TAG_AUDIO_;
}

static void pass_tag(struct marks_side *side, const struct wb_tokenizer *t, enum wb_tag tag, bool foreign)
{
    bool start = t->kind == WB_TOKEN_START;

    side->apart = true;
    if (wb_tag_facts[tag].flags & (WB_TAG_BLOCK | WB_TAG_CELL))
        side->blank = side->block = true;
    if (foreign || is_shown_between(tag) || hides(tag))
        side->blank = true;
    if (foreign)
        return;
    if (start && side->hidden == WB_TAG_OTHER && hides(tag)) {
        side->hidden = tag;
        side->depth = 1;
    } else if (side->hidden == tag && start) {
        side->depth += tag == WB_TAG_TEMPLATE_; /* the only one of them that can contain another one */
    } else if (side->hidden == tag && tag != WB_TAG_OTHER && --side->depth == 0) {
        side->hidden = WB_TAG_OTHER;
    }
}

static int collect(struct wb_replayer *r, const struct wb_replay_page *page, struct marks_side *side)
{
    struct wb_tagwalk *walk = r->levels[0].walk;
    const struct wb_tokenizer *t;
    struct wb_slice bytes;
    bool xml;
    int err = wb_replayer_markup(r, page, &side->memory, &bytes, &side->charset, &xml);

    side->bytes = bytes;
    side->hidden = WB_TAG_OTHER;
    if (err < 0 || !bytes.ptr || bytes.len > UINT32_MAX)
        return err;
    if (wb_slice_starts(bytes, WB_SLICE_LIT("\xef\xbb\xbf")))
        bytes = wb_slice(bytes.ptr + 3, bytes.len - 3);
    wb_tagwalk_begin(walk, bytes, xml);
    while (err == 0 && !side->cut && (t = wb_tagwalk_next(walk))->kind != WB_TOKEN_NONE) {
        bool foreign = wb_tagwalk_is_foreign(walk);
        if (t->kind == WB_TOKEN_START || t->kind == WB_TOKEN_END)
            pass_tag(side, t, wb_tag_find(&r->tags, t), foreign);
        else if (t->kind == WB_TOKEN_TEXT && !foreign && side->hidden == WB_TAG_OTHER && t->how & WB_DECODE_ENTITIES)
            err = add_text(side, t);
        else
            side->apart = true;
    }
    /* The last word has a blank behind it as all others have, so that it equals them. */
    return err < 0 ? err : wb_buf_append_char(&side->text, ' ');
}

/* ---- marks ------------------------------------------------------------------------------------------------------ */

/* A side while its parts are gone through together with the runs. */
struct marks_cursor {
    const struct marks_side *side;
    size_t part; /* the next one... */
    size_t text; /* ...and up to here runs have covered the text */
    struct wb_replay_marks *out;
};

/* The parts of the next `len` bytes of the text; *first_out is the first one. Ends of blocks are no parts. */
static size_t take_parts(struct marks_cursor *c, size_t len, size_t *first_out)
{
    size_t first = c->part;

    c->text += len;
    while (c->part < c->side->parts.count && c->side->parts.items[c->part].at < c->text)
        c->part++;
    *first_out = first;
    return c->part - first;
}

static int add_mark(struct marks_cursor *c, uint32_t from, uint32_t to, uint32_t change)
{
    struct wb_replay_marks *out = c->out;

    if (out->count >= WB_REPLAY_MARKS_MAX) {
        out->cut = true;
        return 0;
    }
    out->changes = change;
    return wb_vec_push(out, (struct wb_replay_mark){from, to, change});
}

/* Marks parts; neighbours with nothing but white space between them get one mark. */
static int mark_parts(struct marks_cursor *c, size_t first, size_t count, uint32_t change)
{
    const struct marks_part *parts = c->side->parts.items;
    int err = 0;

    for (size_t i = first, end; i < first + count && err == 0; i = end) {
        for (end = i + 1; end < first + count && !parts[end].apart; end++)
            ;
        err = add_mark(c, parts[i].from, parts[end - 1].to, change);
    }
    return err;
}

/* Where the other side has something that this one has not. */
static int mark_place(struct marks_cursor *c, uint32_t change)
{
    const struct marks_side *side = c->side;
    uint32_t at;

    if (side->parts.count == 0)
        return 0;
    at = c->part < side->parts.count ? side->parts.items[c->part].from : side->parts.items[c->part - 1].to;
    return add_mark(c, at, at, change);
}

/* A change: what stands between two equal parts. */
static int mark_change(struct marks_cursor cursors[2], const size_t first[2], const size_t count[2], uint32_t *changes)
{
    int err = 0;

    if (count[0] == 0 && count[1] == 0)
        return 0;
    ++*changes;
    for (int i = 0; i < 2 && err == 0; i++)
        err = count[i] ? mark_parts(&cursors[i], first[i], count[i], *changes) : mark_place(&cursors[i], *changes);
    return err;
}

static int place(const struct wb_difference *d, struct marks_cursor cursors[2], uint32_t *changes_out)
{
    int err = 0;

    *changes_out = 0;
    for (size_t i = 0; i < d->count && err == 0;) {
        size_t first[2] = {cursors[0].part, cursors[1].part}, count[2] = {0, 0}, unused;
        for (; i < d->count && d->items[i].kind != WB_DIFFERENCE_SAME; i++) {
            int side = d->items[i].kind == WB_DIFFERENCE_ADDED;
            count[side] += take_parts(&cursors[side], d->items[i].text.len, &unused);
        }
        err = mark_change(cursors, first, count, changes_out);
        for (; i < d->count && d->items[i].kind == WB_DIFFERENCE_SAME; i++)
            for (int side = 0; side < 2; side++)
                take_parts(&cursors[side], d->items[i].text.len, &unused);
    }
    return err;
}

int wb_replay_compare(struct wb_replayer *r, const struct wb_replay_page *old, const struct wb_replay_page *new,
                      struct wb_replay_marks *old_out, struct wb_replay_marks *new_out, uint32_t *changes_out)
{
    struct marks_side sides[2] = {{.charset = "utf-8"}, {.charset = "utf-8"}};
    struct wb_difference difference = WB_DIFFERENCE_INIT;
    struct marks_cursor cursors[2] = {{.side = &sides[0], .out = old_out}, {.side = &sides[1], .out = new_out}};

    WB_CHECK(r->magic == WB_REPLAYER_MAGIC && !r->result);
    *changes_out = 0;
    *old_out = (struct wb_replay_marks){0};
    *new_out = (struct wb_replay_marks){.added = true};
    int err = collect(r, old, &sides[0]);
    if (err == 0)
        err = collect(r, new, &sides[1]);
    if (err == 0)
        err = wb_difference_of(wb_buf_slice(&sides[0].text), wb_buf_slice(&sides[1].text), &difference);
    if (err == 0)
        err = place(&difference, cursors, changes_out);
    for (int i = 0; i < 2; i++)
        cursors[i].out->cut = cursors[i].out->cut || sides[i].cut;
    wb_difference_release(&difference);
    release_side(&sides[0]);
    release_side(&sides[1]);
    return err;
}

void wb_replay_marks_release(struct wb_replay_marks *marks)
{
    wb_vec_release(marks);
}

/* ---- markup ----------------------------------------------------------------------------------------------------- */

#define MARK_STYLE "border-radius:2px!important;box-shadow:none!important;opacity:1!important;text-indent:0!important;"
#define OLD_STYLE                                                                                                      \
    "background:#ffd9d6!important;color:#5c0a0a!important;outline:1px dashed #b3261e!important;"                       \
    "text-decoration:line-through!important;" MARK_STYLE
#define NEW_STYLE                                                                                                      \
    "background:#c9f2cf!important;color:#06330f!important;outline:1px solid #1a6b3c!important;"                        \
    "text-decoration:none!important;" MARK_STYLE
#define PLACE_STYLE "border-left:3px solid #8a6d00!important;margin:0 2px!important;display:inline!important"

/* Writes the marks that are in a text of the document, and the text between them. Nothing is written into tags. */
int wb_replayer_marks(struct wb_replay_level *level, struct wb_slice text)
{
    const struct wb_replay_marks *marks = level->marks;
    size_t begin = (size_t)(text.ptr - level->bytes.ptr), end = begin + text.len;
    const char *tag = marks->added ? "ins" : "del";
    int err = 0;

    for (; err == 0 && level->mark < marks->count && marks->items[level->mark].to <= end; level->mark++) {
        const struct wb_replay_mark *mark = &marks->items[level->mark];
        bool first = level->mark == 0 || mark[-1].change != mark->change;
        if (mark->from < begin || mark->to < mark->from || level->bytes.ptr + mark->from < level->copied)
            continue; /* not of this page */
        err = wb_replayer_copy(level, level->bytes.ptr + mark->from);
        if (err == 0)
            err = wb_buf_printf(level->out, "<%s", tag);
        if (err == 0 && first)
            err = wb_buf_printf(level->out, " id=\"" WB_REPLAY_CHANGE_ID "%u\"", mark->change);
        if (err == 0)
            err = wb_buf_printf(level->out, " style=\"%s\">",
                                mark->from == mark->to ? PLACE_STYLE
                                : marks->added         ? NEW_STYLE
                                                       : OLD_STYLE);
        if (err == 0)
            err = wb_replayer_copy(level, level->bytes.ptr + mark->to);
        if (err == 0)
            err = wb_buf_printf(level->out, "</%s>", tag);
    }
    return err;
}
