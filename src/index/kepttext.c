/* kepttext.c - chooses what is kept of the text of a page, and finds its parts again. */
#include "index/kepttext.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "index/index.h"

enum { WHOLE_WORDS_BYTES = 64 }; /* how far back a text that is cut off may end to end with a word */

/* "Installing¶" is a heading with a link to itself. */
static struct wb_slice heading_text(struct wb_slice text)
{
    text = wb_slice_trim(text);
    while (wb_slice_ends(text, WB_SLICE_LIT("¶")) || wb_slice_ends(text, WB_SLICE_LIT("#")))
        text = wb_slice_trim(wb_slice(text.ptr, text.len - (text.ptr[text.len - 1] == '#' ? 1 : strlen("¶"))));
    return text;
}

static bool repeats_title(const struct wb_extract *extract, const struct wb_extract_span *span)
{
    WB_CHECK(span->begin <= span->end && span->end <= extract->text.len);
    struct wb_slice heading = heading_text(wb_slice(extract->text.ptr + span->begin, span->end - span->begin));

    return span->flags & WB_EXTRACT_SPAN_HEADING && heading.len && extract->title.len &&
           memmem(extract->title.ptr, extract->title.len, heading.ptr, heading.len);
}

/* Bytes of a text, at most max, that end with a word if one ends nearby, and never inside a character. */
static size_t whole_words(struct wb_slice text, size_t max)
{
    if (text.len <= max)
        return text.len;
    for (size_t len = max; len > 0 && max - len < WHOLE_WORDS_BYTES; len--)
        if (wb_ascii_is_space(text.ptr[len]))
            return len;
    while (max > 0 && ((unsigned char)text.ptr[max] & 0xc0) == 0x80)
        max--;
    return max;
}

/* The parts of the text that are kept. */
static int add_spans(const struct wb_extract *extract, uint32_t wanted, struct wb_buf *kept, unsigned *flags)
{
    size_t begin = kept->len, end = 0;
    int err = 0;

    WB_CHECK(begin <= WB_KEPT_MAX - WB_KEPT_TEXT_MAX); /* so much is left for the text */

    for (size_t i = 0; err == 0 && i < extract->span_count; i++) {
        const struct wb_extract_span *span = &extract->spans[i];
        struct wb_slice text = wb_slice(extract->text.ptr + span->begin, span->end - span->begin);
        if ((wanted && !(span->flags & wanted)) || repeats_title(extract, span))
            continue;
        if (kept->len > begin && span->begin != end)
            err = wb_buf_append_char(kept, WB_KEPT_GAP);
        size_t room = begin + WB_KEPT_TEXT_MAX > kept->len ? begin + WB_KEPT_TEXT_MAX - kept->len : 0;
        if (text.len > room) {
            *flags |= WB_KEPT_CUT;
            return err < 0 ? err : wb_buf_append(kept, text.ptr, whole_words(text, room));
        }
        if (err == 0)
            err = wb_buf_append_slice(kept, text);
        end = span->end;
    }
    return err;
}

int wb_kept_text_make(const struct wb_extract *extract, struct wb_buf *kept)
{
    struct wb_slice title = wb_slice(extract->title.ptr, whole_words(extract->title, WB_KEPT_TITLE_MAX));
    unsigned flags = strcmp(extract->module, "html") == 0 ? 0 : WB_KEPT_LINES;
    char head[1 + 10];
    bool has_main = false;

    for (size_t i = 0; i < extract->span_count; i++)
        has_main = has_main || extract->spans[i].flags & WB_EXTRACT_SPAN_MAIN;
    wb_buf_clear(kept);
    int err = wb_buf_append(kept, head, 1 + wb_put_varint(head + 1, title.len));
    if (err == 0)
        err = wb_buf_append_slice(kept, title);
    if (err == 0)
        err = add_spans(extract, has_main ? WB_EXTRACT_SPAN_MAIN : 0, kept, &flags);
    if (err == 0)
        kept->ptr[0] = (char)flags;
    WB_CHECK(err < 0 || kept->len <= WB_KEPT_MAX);
    return err;
}

bool wb_kept_text_split(struct wb_slice kept, unsigned *flags_out, struct wb_slice *title_out,
                        struct wb_slice *text_out)
{
    const char *p = kept.ptr + 1, *end = kept.ptr + kept.len;
    uint64_t title = 0;

    *flags_out = 0;
    *title_out = *text_out = WB_SLICE_EMPTY;
    if (kept.len < 2 || (unsigned char)kept.ptr[0] & ~(unsigned)(WB_KEPT_LINES | WB_KEPT_CUT) ||
        !wb_get_varint(&p, end, &title) || title > WB_KEPT_TITLE_MAX || title > (size_t)(end - p))
        return false;
    *flags_out = (unsigned char)kept.ptr[0];
    *title_out = wb_slice(p, title);
    *text_out = wb_slice(p + title, (size_t)(end - p) - title);
    return true;
}
