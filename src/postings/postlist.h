/*
 * postlist.h - the private part of a postlist, for the files of this room that read lists.
 *
 * Lazily: a block's docids are decoded when the postlist arrives in it; its codes when the first weight is asked for;
 * its frequencies when the first of them, or positions, are; packs of gaps one by one.
 */
#ifndef WB_POSTINGS_POSTLIST_H
#define WB_POSTINGS_POSTLIST_H

#include "postings/listformat.h"
#include "base/error.h"

enum { POSTLIST_MAGIC = 0x57425052 }; /* "WBPR" */

/* What has been decoded of the current block, besides docids. */
enum wb_postlist_have { HAVE_CODES = 1, HAVE_WEIGHTS = 2, HAVE_EXTRA = 4 };

struct wb_postlist_own {
    uint32_t magic;
    struct wb_postings *set;
    struct wb_term term;
    const char *path; /* of the file that holds the list, for messages */

    /* The list. */
    uint32_t blocks;
    const uint8_t *list, *list_end;                         /* its bytes */
    const uint8_t *whole, *lasts, *ends, *impacts, *groups; /* skip data; NULL if there is only one block */
    const uint8_t *data;                                    /* the first block */
    uint32_t bound_block;                                   /* where the search for bounds went on last time */

    /* The block that is decoded. */
    const uint8_t *codes_at, *block_end; /* its codes; its end */
    const uint8_t *extra_at;             /* its extra bytes; valid with HAVE_CODES */
    unsigned have;
    uint32_t codes[WB_BLOCK_POSTINGS];
    float weights[WB_BLOCK_POSTINGS];
    uint16_t extra_of[WB_BLOCK_POSTINGS + 1]; /* where the extra bytes of each posting are, from extra_at on */
    uint64_t before[WB_BLOCK_POSTINGS + 1];   /* occurrences in the block before each posting */

    /* Its positions. */
    bool positions_ready; /* whether the members below are set */
    const uint8_t *packs, *packs_end;
    const uint8_t *checkpoints; /* NULL if there is only one block */
    unsigned before_width, start_width;
    uint64_t pack; /* the number of a pack, and where it is */
    const uint8_t *pack_at;
    uint32_t pack_block;   /* the block from whose start that pack was reached; UINT32_MAX: none */
    uint64_t block_before; /* gaps before the first one of that block */
    uint64_t cached;       /* the number of the pack in `gaps`; UINT64_MAX if none is */
    uint32_t gaps[BITPACK_MAX + WB_POSITIONS_STEP]; /* with room to read too many */
    uint32_t *positions; /* of one posting */
    size_t positions_cap;

    struct wb_error_copy error; /* valid if the postlist has an error; here, because it need not be cleared */
};

/* Ends the reading: keeps the error and moves to the end. Returns the code. */
int wb_postlist_fail(struct wb_postlist *list, int err);

/* The same for damage. */
int wb_postlist_damaged(struct wb_postlist *list, const char *what);

static inline uint32_t wb_postlist_last(const struct wb_postlist_own *own, uint32_t block)
{
    return wb_get32(own->lasts + 4 * (size_t)block);
}

/* How many postings a block has. */
static inline uint32_t wb_postlist_block_count(const struct wb_postlist *list, uint32_t block)
{
    return block + 1 < list->own->blocks ? WB_BLOCK_POSTINGS : list->df - WB_BLOCK_POSTINGS * block;
}

/* The bytes of a block, its lowest possible docid, and the last one (docs - 1 at most, if there is only one block). */
struct wb_postlist_span {
    const uint8_t *start, *end;
    uint32_t lowest, last;
};

/* Finds a block and checks its bytes against their checksums. */
int wb_postlist_span(struct wb_postlist *list, uint32_t block, struct wb_postlist_span *span_out);

/* Decodes the docids of a block. list->at and list->docid are not changed. */
int wb_postlist_load(struct wb_postlist *list, uint32_t block);

/* The first block whose last docid is not less than this one; own->blocks if there is none. near: where to start. */
uint32_t wb_postlist_find(const struct wb_postlist *list, uint32_t docid, uint32_t near);

/* The number of the first posting of the block that is not less than this docid; count if there is none. */
uint32_t wb_postlist_within(const struct wb_postlist *list, uint32_t docid);

/* Make sure that the codes or weights of the block are decoded. */
int wb_postlist_need_codes(struct wb_postlist *list);
int wb_postlist_need_weights(struct wb_postlist *list);

/*
 * The bytes of a list of one block behind its docids, and those of its packs if positions are wanted (otherwise empty).
 * They were checked against their checksums.
 */
int wb_postlist_bytes(struct wb_postlist *list, bool positions, struct wb_slice *rest_out, struct wb_slice *packs_out);

#endif
