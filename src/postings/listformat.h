/*
 * listformat.h - how the blocks of a list, and of its positions, are put together.
 *
 * A list of n postings has b = ceil(n / 128) blocks. All but the last have 128 postings.
 *
 *   list, b = 1    the block
 *   list, b > 1    impacts of the whole list (16)
 *                  for each block: its last docid (4)
 *                  for each block: where it ends, counted from the start of the first block (4)
 *                  for each block: its impacts (16)
 *                  if b > 32, for each group of 32 blocks: its impacts (16)
 *                  the blocks
 *
 * The gaps of all postings of a list follow each other as one sequence. It is cut into packs (bitpack.h) of 128 gaps;
 * the last one may have fewer.
 *
 *   positions, b = 1   the packs
 *   positions, b > 1   widths w and v in bytes (1 each)
 *                      for each block: how many gaps come before its first one (w)
 *                      for each block: where the pack that holds its first gap starts, counted from the first pack (v)
 *                      the packs
 *
 * A list is inlined into the dictionary if it has at most 8 postings, and its list and positions together at most 64
 * bytes: the list, and then the positions.
 *
 * Entry of a term, in the dictionary and between writer and output (varints):
 *
 *   df * 8 + positions * 4 + kind      positions: 1 if there are positions; kind: 0 inlined, 1 in the files, 2 alias
 *   kind 0    total - df, number of bytes, bytes
 *   kind 1    total - df, bytes of the list, bytes of the positions if there are positions
 *   kind 2    nothing; df and positions are 0. The term has the list of the term before it
 *
 * Lists and positions follow each other in the order of the terms without gaps, so that no offset is stored here.
 */
#ifndef WB_POSTINGS_LISTFORMAT_H
#define WB_POSTINGS_LISTFORMAT_H

#include "base/bytes.h"
#include "postings/impacts.h"
#include "postings/listblock.h"

enum {
    LIST_GROUP = 32, /* blocks of a group */
    LIST_INLINE_POSTINGS = 8,
    LIST_INLINE_BYTES = 64,
    LIST_SKIP_BYTES = 4 + 4 + IMPACTS_BYTES, /* per block, before the blocks */
};

enum wb_entry_kind { ENTRY_INLINED = 0, ENTRY_LIST = 1, ENTRY_ALIAS = 2 };

static inline uint32_t wb_list_blocks(uint32_t df)
{
    return df / WB_BLOCK_POSTINGS + (df % WB_BLOCK_POSTINGS != 0);
}

static inline uint32_t wb_list_groups(uint32_t blocks)
{
    return blocks > LIST_GROUP ? blocks / LIST_GROUP + (blocks % LIST_GROUP != 0) : 0;
}

/* How many bytes precede the first block of a list with so many blocks. */
static inline uint64_t wb_list_head_bytes(uint32_t blocks)
{
    if (blocks <= 1)
        return 0;
    return IMPACTS_BYTES + (uint64_t)blocks * LIST_SKIP_BYTES + (uint64_t)wb_list_groups(blocks) * IMPACTS_BYTES;
}

/* A number of `width` bytes, 1 to 8, little-endian. */
static inline uint64_t wb_get_width(const uint8_t *p, unsigned width)
{
    uint64_t v = 0;

    for (unsigned i = width; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* How many bytes a number needs; 1 for 0. */
static inline unsigned wb_width_of(uint64_t v)
{
    unsigned width = 1;

    for (; v > 0xff; v >>= 8)
        width++;
    return width;
}

#endif
