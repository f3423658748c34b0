/*
 * htmltag.c - finds an element by its name. It never decides what is done with an element: html.c
 * does.
 */
#include "markup/htmltag.h"
#include "base/check.h"

_Static_assert(WB_TAG_H6_ == WB_TAG_H1_ + 5, "headings are in order");

#define BLOCK WB_TAG_BLOCK
#define CELL WB_TAG_CELL
#define TRACKED WB_TAG_TRACKED
#define BOILER WB_TAG_BOILER
#define MAIN WB_TAG_MAIN
#define BREAKOUT WB_TAG_BREAKOUT
#define SILENT WB_TAG_SILENT
#define SPECIAL WB_TAG_SPECIAL

const struct wb_tag_facts wb_tag_facts[WB_TAG_COUNT] = {
    {"", 0, WB_MODE_DATA},
#define WB_TAG_ROW(id, name, flags, mode) {name, flags, WB_MODE_##mode},
    WB_TAGS(WB_TAG_ROW)
#undef WB_TAG_ROW
};

#define WORD_BYTES 8

static inline size_t slot_of(uint64_t word)
{
    return (size_t)(word * 0x9e3779b97f4a7c15u >> 55) % WB_TAG_SLOTS;
}

/* The first eight bytes of a name in lower case; a shorter name is padded with zeros. */
static uint64_t word_of(struct wb_slice name)
{
    char bytes[WORD_BYTES] = {0};
    uint64_t word;

    for (size_t i = 0; i < name.len && i < WORD_BYTES; i++)
        bytes[i] = wb_ascii_lower(name.ptr[i]);
    memcpy(&word, bytes, sizeof word);
    return word;
}

void wb_tag_index_init(struct wb_tag_index *index)
{
    memset(index, 0, sizeof *index);
    for (unsigned tag = WB_TAG_OTHER + 1; tag < WB_TAG_COUNT; tag++) {
        struct wb_slice name = wb_slice_str(wb_tag_facts[tag].name);
        uint64_t word = word_of(name);
        size_t at = slot_of(word);
        while (index->slots[at].tag) {
            WB_CHECK(index->slots[at].word != word);
            at = (at + 1) % WB_TAG_SLOTS;
        }
        index->slots[at].word = word;
        index->slots[at].len = (uint8_t)name.len;
        index->slots[at].tag = (uint8_t)tag;
    }
}

/* The same as word_of(), for a name that is in lower case already. */
static inline uint64_t load_word(struct wb_slice name, const char *end)
{
    uint64_t word;

    if (end - name.ptr < WORD_BYTES)
        return word_of(name);
    memcpy(&word, name.ptr, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return name.len >= WORD_BYTES ? word : word & (((uint64_t)1 << 8 * name.len) - 1);
#else
    return word_of(name);
#endif
}

enum wb_tag wb_tag_find(const struct wb_tag_index *index, const struct wb_tokenizer *t)
{
    struct wb_slice name = t->text;
    uint64_t word = t->how ? word_of(name) : load_word(name, t->end);
    size_t at = slot_of(word);

    while (index->slots[at].tag && index->slots[at].word != word)
        at = (at + 1) % WB_TAG_SLOTS;
    enum wb_tag tag = index->slots[at].tag;
    if (tag == WB_TAG_OTHER || index->slots[at].len != name.len)
        return WB_TAG_OTHER;
    if (name.len > WORD_BYTES && !wb_slice_equal_nocase(name, wb_slice(wb_tag_facts[tag].name, name.len)))
        return WB_TAG_OTHER;
    return tag;
}
