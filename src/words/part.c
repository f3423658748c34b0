/*
 * part.c - reads letters, digits and marks, and folds them.
 *
 * It reads as far as the letters go, but keeps no more than WB_WORD_BYTES_MAX bytes and WB_WORD_CHARS_MAX characters.
 */
#include "base/check.h"
#include "base/utf8.h"
#include "words/wordscan.h"

enum wb_fold_class wb_words_class_at(struct wb_slice text, size_t at, size_t *len_out, uint32_t *cp_out)
{
    *cp_out = 0;
    *len_out = at < text.len;
    if (at >= text.len)
        return WB_FOLD_SEPARATOR;
    uint8_t c = (uint8_t)text.ptr[at];
    if (c < 0x80) {
        *cp_out = c;
        return wb_fold_ascii[c] ? WB_FOLD_LETTER : WB_FOLD_SEPARATOR;
    }
    size_t len = wb_utf8_length(text.ptr + at, text.len - at);
    if (len == 0)
        return WB_FOLD_SEPARATOR;
    *len_out = len;
    *cp_out = wb_utf8_decode(text.ptr + at, len);
    return wb_fold_class_of(wb_fold_of(*cp_out));
}

static void put(struct wb_wordbuf *part, uint32_t cp)
{
    char bytes[4];
    size_t len = wb_utf8_encode(cp, bytes);

    if (part->full || part->chars == WB_WORD_CHARS_MAX || part->len + len > WB_WORD_BYTES_MAX) {
        part->full = true;
        return;
    }
    memcpy(part->bytes + part->len, bytes, len);
    part->len += len;
    part->chars++;
    part->digit |= cp < 0x80 && wb_ascii_is_digit((char)cp);
}

/* Puts what a character is folded to. */
static void put_folded(struct wb_wordbuf *part, uint32_t cp, uint32_t entry)
{
    uint32_t several[WB_FOLD_SEVERAL_MAX];

    if (entry & WB_FOLD_PAIR) {
        put(part, entry & 0x7f);
        put(part, entry >> 7 & 0x7f);
    } else if (entry & WB_FOLD_SEVERAL) {
        size_t count = wb_fold_several(cp, several);
        for (size_t i = 0; i < count; i++)
            put(part, several[i]);
    } else {
        put(part, wb_fold_code(entry));
    }
}

/* Adds a mark to the last character, if the two form another one. False if they do not. */
static bool compose(struct wb_wordbuf *part, uint32_t mark)
{
    size_t last = part->len;

    if (part->full || part->len == 0)
        return part->full;
    while (last > 0 && ((uint8_t)part->bytes[--last] & 0xc0) == 0x80)
        ;
    uint32_t both = wb_fold_compose(wb_utf8_decode(part->bytes + last, part->len - last), mark);
    if (!both)
        return false;
    part->len = last;
    part->chars--;
    put_folded(part, both, wb_fold_of(both));
    return true;
}

/* Puts a character beyond ASCII. False if it is not part of a word. */
static bool put_wide(struct wb_wordbuf *part, uint32_t cp)
{
    uint32_t entry = wb_fold_of(cp);

    switch (wb_fold_class_of(entry)) {
    case WB_FOLD_LETTER:
        if (!(entry & WB_FOLD_COMPOSES) || !compose(part, wb_fold_code(entry)))
            put_folded(part, cp, entry);
        return true;
    case WB_FOLD_ACCENT:
        /* With an ASCII letter it forms an accented one, which is folded to that letter again. */
        if (part->len && (uint8_t)part->bytes[part->len - 1] >= 0x80)
            compose(part, cp);
        return true;
    case WB_FOLD_NOTHING:
        return true;
    default:
        return false;
    }
}

static void finish(struct wb_wordbuf *part)
{
    WB_CHECK(part->len <= WB_WORD_BYTES_MAX);
    memset(part->bytes + part->len, 0, 16);
}

size_t wb_part_read(struct wb_slice text, size_t at, struct wb_wordbuf *part)
{
    part->len = 0;
    part->chars = 0;
    part->full = part->digit = false;
    while (at < text.len) {
        const char *p = text.ptr + at;
        uint8_t c = (uint8_t)*p, folded = wb_fold_ascii[c];
        if (folded) {
            if (part->chars < WB_WORD_CHARS_MAX && part->len < WB_WORD_BYTES_MAX && !part->full) {
                part->bytes[part->len++] = (char)folded;
                part->chars++;
                part->digit |= folded <= '9';
            } else {
                part->full = true;
            }
            at++;
            continue;
        }
        if (c < 0x80)
            break;
        size_t len = wb_utf8_length(p, text.len - at);
        if (len == 0 || !put_wide(part, wb_utf8_decode(p, len)))
            break;
        at += len;
    }
    finish(part);
    return at;
}

void wb_part_append(struct wb_wordbuf *part, struct wb_slice bytes)
{
    if (part->full || part->len + bytes.len > WB_WORD_BYTES_MAX || part->chars + bytes.len > WB_WORD_CHARS_MAX)
        return;
    memcpy(part->bytes + part->len, bytes.ptr, bytes.len);
    part->len += bytes.len;
    part->chars += (unsigned)bytes.len;
    finish(part);
}
