/*
 * postings.h - the door of postings: which documents contain a term, how often, in which fields, and where.
 *
 *   dictionary   all terms in order; for each the number of its documents and where its list is
 *   list         the postings of one term in order of docids; postlist: a position in a list, for reading
 *   positions    where in each document the term occurs; a list may have none
 *   writer       makes the lists of a range of terms in memory; several threads can each make a range
 *   output       puts such ranges one after the other into the files of a directory
 *
 * docs/formats/postings.md and docs/formats/dictionary.md describe the bytes, docs/design/0025-postings.md the reasons.
 *
 * A docid is a number below `docs`. A posting is a docid with the frequency of the term in each field. This room does
 * not know what a word is, or how a term's key is made up, except for one thing: if two neighbouring keys differ only
 * in their last byte and their lists have the same documents and frequencies, the second shares the bytes of the first.
 *
 * The bytes of all files depend only on the keys, postings and lengths, not on how they were cut into blocks, ranges
 * or calls.
 *
 * Functions return 0 or a negative error code, unless their comment says otherwise. Damage is WB_E_CORRUPT with the
 * name of the file.
 */
#ifndef WB_POSTINGS_POSTINGS_H
#define WB_POSTINGS_POSTINGS_H

#include "base/buf.h"
#include "table/table.h"

/* ---- fields, weights and lengths ----------------------------------------------------------------- */

/* The parts of a page. Formats on disk depend on the order. */
enum wb_field {
    WB_FIELD_TITLE,
    WB_FIELD_HEADING,
    WB_FIELD_MAIN,  /* main text */
    WB_FIELD_OTHER, /* boilerplate */
    WB_FIELD_URL,
    WB_FIELD_ANCHOR,
    WB_FIELDS
};

/* Positions are counted from 0 in each of these. The words of MAIN and OTHER share one. */
enum wb_space { WB_SPACE_TITLE, WB_SPACE_HEADING, WB_SPACE_BODY, WB_SPACE_URL, WB_SPACE_ANCHOR, WB_SPACES };

static inline enum wb_space wb_space_of_field(enum wb_field field)
{
    return field <= WB_FIELD_MAIN ? (enum wb_space)field : (enum wb_space)(field - 1);
}

#define WB_WEIGHT_MAX 65535u

/* What one occurrence in a field counts, in quarters. */
extern const uint8_t wb_field_weight[WB_FIELDS];

/*
 * The weighted frequency of a posting, in quarters, at most WB_WEIGHT_MAX: 4 for each occurrence in MAIN, 1 in OTHER,
 * 8 in HEADING, 32 in TITLE, 6 in URL; anchors count 8 * (1 + floor(log2(frequency))).
 */
static inline uint32_t wb_posting_weight(const uint32_t frequency[WB_FIELDS])
{
    uint64_t weight = 0;

    for (int field = 0; field < WB_FIELD_ANCHOR; field++)
        weight += (uint64_t)wb_field_weight[field] * frequency[field];
    if (frequency[WB_FIELD_ANCHOR])
        weight += wb_field_weight[WB_FIELD_ANCHOR] * (32u - (unsigned)__builtin_clz(frequency[WB_FIELD_ANCHOR]));
    return weight < WB_WEIGHT_MAX ? (uint32_t)weight : WB_WEIGHT_MAX;
}

/*
 * The length of a page in words as one byte: exact up to 24, then 8 steps per doubling. wb_length_of_byte() is the
 * smallest length with that byte. The greatest length that a byte can express stands for everything beyond.
 */
uint8_t wb_length_byte(uint64_t words);
uint64_t wb_length_of_byte(uint8_t byte);

/* ---- scores ---------------------------------------------------------------------------------------- */

#define WB_SCORE_ONE (1u << 20) /* 1.0 as a score: scores are fixed-point numbers */

/*
 * What a query needs to score the postings of one term. x = weight of the posting * inverse[length byte of the page];
 * score = unit - unit / (1 + x), rounded. This form never decreases when the weight grows or the length shrinks, not
 * even by rounding, so that a bound is a bound.
 */
struct wb_scorer {
    float unit;         /* the score for an infinite frequency: idf * (k1 + 1) * WB_SCORE_ONE; less than 2^30 */
    float inverse[256]; /* 1 / (4 * k1 * (1 - b + b * what the length counts)), never increasing; weights.c */
};

/* Fills in a scorer: BM25 with these parameters. boost multiplies the idf. */
void wb_scorer_init(struct wb_scorer *scorer, double idf, double k1, double b, double average_length, double boost);

/* ln(1 + (docs - df + 0.5) / (df + 0.5)) */
double wb_idf(uint64_t docs, uint64_t df);

static inline uint32_t wb_score(const struct wb_scorer *scorer, uint32_t weight, uint8_t length_byte)
{
    float x = (float)weight * scorer->inverse[length_byte];

    return (uint32_t)(int32_t)(scorer->unit - scorer->unit / (1.0f + x) + 0.5f);
}

/* ---- terms ----------------------------------------------------------------------------------------- */

#define WB_TERM_MAX 1024u       /* bytes of a key */
#define WB_DOCID_END UINT32_MAX /* no document has this docid */

/* What the dictionary knows about a term. It borrows from the open set. */
struct wb_term {
    uint32_t df;    /* how many documents contain it; never 0 */
    uint64_t total; /* how often it occurs in all of them */
    bool positions; /* whether the list has positions */
    uint64_t list_at, list_bytes;
    uint64_t positions_at, positions_bytes;
    struct wb_slice inlined; /* a short list: its bytes; ptr is NULL if the list is in the files of lists */
};

/* An open set of files. Any number of threads may share it. */
struct wb_postings {
    struct wb_blob dictionary, lists, positions;
    const uint8_t *lengths; /* of all documents, one byte each, by docid; the caller's */
    uint32_t docs;
    uint64_t terms;
    uint64_t pages, top_at; /* of the dictionary: see dictionary.h */
};

/*
 * Opens the files "dictionary", "lists" and "positions" of a directory; costs no more than mapping them. lengths has
 * docs bytes and must stay valid. The set stays readable if its files are unlinked.
 */
int wb_postings_open(const char *dir, const uint8_t *lengths, uint32_t docs, struct wb_postings **set_out);
void wb_postings_close(struct wb_postings *set);

/* Finds a term by its key. Returns 1 if there is one, 0 if not. */
int wb_postings_find(struct wb_postings *set, struct wb_slice key, struct wb_term *term_out);

/* A walk through the dictionary. Belongs to one thread. */
struct wb_terms;

int wb_terms_open(struct wb_postings *set, struct wb_terms **terms_out);
void wb_terms_close(struct wb_terms *terms);

/* Moves to just before the first key that is not less than this one. A new walk is before the first key. */
int wb_terms_seek(struct wb_terms *terms, struct wb_slice key);

/* Returns 1 and the next term, or 0 at the end. The key is valid until the next call. */
int wb_terms_next(struct wb_terms *terms, struct wb_slice *key_out, struct wb_term *term_out);

/*
 * Reads everything and checks everything: checksums, order of keys, every list and its positions. Returns 0 even if it
 * found problems. *terms_out is the number of intact terms.
 */
int wb_postings_verify(const char *dir, const uint8_t *lengths, uint32_t docs, wb_table_found found, void *context,
                       uint64_t *terms_out);

/* ---- reading a list ---------------------------------------------------------------------------------- */

#define WB_BLOCK_POSTINGS 128  /* postings of a block */
#define WB_POSTLIST_PADDING 16 /* docids that can be read behind the last one of a block */

/*
 * A position in a list: at a posting, or at the end (docid is WB_DOCID_END). Belongs to one thread.
 *
 * Functions that return a docid return WB_DOCID_END after an error as well; wb_postlist_error() tells the difference.
 * The members up to `block` may be read by inline functions here; all others are private to the room.
 */
struct wb_postlist {
    uint32_t docid; /* of the current posting */
    uint32_t df;    /* not beside `at`: the compiler would store docid and at together, which is slow */
    uint32_t at;    /* the number of the current posting in the block */
    uint32_t count; /* postings of the block that is decoded */
    int error;      /* the first error; 0 if there was none */
    uint32_t block; /* number of the block that is decoded */
    uint32_t docids[WB_BLOCK_POSTINGS + WB_POSTLIST_PADDING]; /* of the block; after the last one: WB_DOCID_END */
    struct wb_postlist_own *own;
};

/* The new postlist is at the first posting. */
int wb_postlist_open(struct wb_postings *set, const struct wb_term *term, struct wb_postlist **list_out);
void wb_postlist_close(struct wb_postlist *list);

/* 0, or the error that has ended the reading; the message of the thread is set again. */
int wb_postlist_error(const struct wb_postlist *list);

/* Decodes the next block, and moves to its first posting. For wb_postlist_next(). */
uint32_t wb_postlist_next_block(struct wb_postlist *list);

/* Moves to the next posting and returns its docid. */
static inline uint32_t wb_postlist_next(struct wb_postlist *list)
{
    if (list->at + 1 < list->count)
        return list->docid = list->docids[++list->at];
    return wb_postlist_next_block(list);
}

/* Moves to the first posting whose docid is at least this one, forwards or backwards, and returns its docid. */
uint32_t wb_postlist_seek(struct wb_postlist *list, uint32_t docid);

/* ---- the current posting; not at the end */

/* A test seam. The weighted frequency: wb_posting_weight() of the frequencies. */
uint32_t wb_postlist_weight(struct wb_postlist *list);

uint32_t wb_postlist_score(struct wb_postlist *list, const struct wb_scorer *scorer);
int wb_postlist_frequencies(struct wb_postlist *list, uint32_t frequency_out[WB_FIELDS]);

/* The positions of one posting by space, ascending. They belong to the postlist and are valid until it moves. */
struct wb_positions {
    const uint32_t *at[WB_SPACES];
    uint32_t count[WB_SPACES];
};

/* WB_E_INVALID if the list has no positions. */
int wb_postlist_positions(struct wb_postlist *list, struct wb_positions *positions_out);

/*
 * The same in two steps, so that only what is needed is read: first how many positions there are in each space, then
 * those in one of them, of which there is at least one. Behind them, `filler` follows up to a multiple of
 * WB_POSITIONS_STEP; these numbers can be read, too. They are valid until more is read of the postlist.
 */
enum { WB_POSITIONS_STEP = 8 };
int wb_postlist_counts(struct wb_postlist *list, uint32_t count_out[WB_SPACES]);
int wb_postlist_positions_in(struct wb_postlist *list, const uint32_t count[WB_SPACES], enum wb_space space,
                             uint32_t filler, const uint32_t **positions_out);

/* ---- bounds: these neither move the postlist nor decode blocks */

/* A test seam. No posting of the list scores more than this. */
uint32_t wb_postlist_bound(struct wb_postlist *list, const struct wb_scorer *scorer);

/* No posting whose docid is at least first and at most last scores more than this; 0 if there can be none. */
uint32_t wb_postlist_bound_range(struct wb_postlist *list, const struct wb_scorer *scorer, uint32_t first,
                                 uint32_t last);

/*
 * The last docid of the block in which a posting with this docid would be: bounds do not change before it.
 * WB_DOCID_END if it is beyond the last posting.
 */
uint32_t wb_postlist_block_last(struct wb_postlist *list, uint32_t docid);

/* ---- windows: the documents base, base + 1, ... base + size - 1; base and size are multiples of 64 */

/*
 * Sets the bits of the documents in the window: bit i of word w is document base + 64 * w + i. Bits that are set stay
 * set. If only some documents are of interest, their bits are set in `wanted`: of other documents, some bits are not
 * set then. Otherwise it is NULL. Leaves the postlist at the first posting beyond the window and returns its docid.
 */
uint32_t wb_postlist_fill(struct wb_postlist *list, uint32_t base, uint32_t size, const uint64_t *wanted,
                          uint64_t *bits);

/*
 * Adds the score of each document in the window to sums[docid - base]; also sets its bit, unless bits is NULL. Leaves
 * the postlist at the first posting beyond the window and returns its docid.
 */
uint32_t wb_postlist_sum(struct wb_postlist *list, uint32_t base, uint32_t size, const struct wb_scorer *scorer,
                         uint32_t *sums, uint64_t *bits);

/*
 * Adds the score of each document of the window whose bit is set. Otherwise the same; bits are not changed. Cheaper
 * than wb_postlist_sum() if few bits are set. Unless found is NULL, sets the bits there of the documents that have
 * both: their bit and a posting.
 */
uint32_t wb_postlist_sum_masked(struct wb_postlist *list, uint32_t base, uint32_t size, const struct wb_scorer *scorer,
                                uint32_t *sums, const uint64_t *bits, uint64_t *found);

/* ---- whole blocks, for merging ------------------------------------------------------------------------- */

#define WB_POSTING_EXTRA_MAX (1 + 5 * WB_FIELDS) /* bytes of frequencies that one posting can need */

/*
 * Up to WB_BLOCK_POSTINGS postings, decoded as far as a merge needs it. Reuse one for many blocks. What `code` and
 * `extra` mean is the business of this room; wb_posting_block_get() translates.
 */
struct wb_posting_block {
    uint32_t count;
    uint32_t docid[WB_BLOCK_POSTINGS];
    uint32_t code[WB_BLOCK_POSTINGS];
    uint32_t occurrences[WB_BLOCK_POSTINGS];  /* sum of the frequencies; as many gaps, if the list has positions */
    uint16_t extra_at[WB_BLOCK_POSTINGS + 1]; /* the extra bytes of posting i: from extra_at[i] to extra_at[i + 1] */
    uint8_t extra[WB_BLOCK_POSTINGS * WB_POSTING_EXTRA_MAX];
    uint32_t *gaps;   /* of all postings, one after the other; see struct wb_posting */
    size_t gap_count; /* the sum of occurrences, or 0 */
    size_t gap_cap;
};

#define WB_POSTING_BLOCK_INIT ((struct wb_posting_block){.count = 0})

void wb_posting_block_release(struct wb_posting_block *block);

/* Reads the whole list from its start, block by block. Returns 1, or 0 at the end. number counts from 0. */
int wb_postlist_read(struct wb_postlist *list, uint32_t number, struct wb_posting_block *block_out);

enum wb_keep { WB_KEEP_ALL, WB_KEEP_NOTHING, WB_KEEP_NO_ANCHOR };

/* Keeps what keep[i] says of each posting i. A posting that has only anchors disappears with them. */
void wb_posting_block_filter(struct wb_posting_block *block, const uint8_t keep[WB_BLOCK_POSTINGS]);

/*
 * One posting. Positions are given as gaps: in each space, in the order of the spaces, the first position and then the
 * difference of each to the one before. There are as many as the sum of the frequencies, or none.
 */
struct wb_posting {
    uint32_t docid;
    uint32_t frequency[WB_FIELDS];
    const uint32_t *gaps;
    size_t gap_count;
};

/* Posting i of a block. It borrows from the block. WB_E_CORRUPT (without a name) if the block was not well formed. */
int wb_posting_block_get(const struct wb_posting_block *block, uint32_t i, struct wb_posting *posting_out);

/* ---- writing ------------------------------------------------------------------------------------------- */

/*
 * Makes lists in memory, for terms in ascending order:
 *
 *   wb_postings_begin() -> wb_postings_add(), wb_postings_add_range() ... -> wb_postings_end()
 *
 * After an error, every further call returns that first error.
 */
struct wb_postings_writer;

/* lengths: as for wb_postings_open(); must stay valid. */
int wb_postings_writer_new(const uint8_t *lengths, uint32_t docs, struct wb_postings_writer **writer_out);
void wb_postings_writer_free(struct wb_postings_writer *writer);

/* Begins the list of a term. Keys must be strictly ascending, have 1 to WB_TERM_MAX bytes: WB_E_INVALID otherwise. */
int wb_postings_begin(struct wb_postings_writer *writer, struct wb_slice key, bool positions);

/* Docids must be strictly ascending and below docs, and some frequency must not be 0: WB_E_INVALID otherwise. */
int wb_postings_add(struct wb_postings_writer *writer, const struct wb_posting *posting);

/*
 * Adds all of a list of at most WB_BLOCK_POSTINGS, with these docids instead of its own. Nothing else may be added to
 * the term. Frequencies and positions are copied without looking at them.
 */
int wb_postings_add_list(struct wb_postings_writer *writer, struct wb_postlist *list, const uint32_t *docids);

/*
 * The same for many postings: those from number `from` to the one before `to` of a block that was read, and perhaps
 * filtered and given other docids. *gap_at is how many gaps of the block belong
 * to postings before `from`; it becomes the number of those before `to`.
 */
int wb_postings_add_range(struct wb_postings_writer *writer, const struct wb_posting_block *block, uint32_t from,
                          uint32_t to, size_t *gap_at);

/* Ends the list. A list without postings leaves no trace. */
int wb_postings_end(struct wb_postings_writer *writer);

/* The lists of a range of terms, as bytes. */
struct wb_postings_part {
    struct wb_buf entries, lists, positions;
    uint64_t terms;
};

#define WB_POSTINGS_PART_INIT ((struct wb_postings_part){.terms = 0})

/* A test seam, for benchmarks. How many bytes the lists that were ended so far take. */
size_t wb_postings_writer_bytes(const struct wb_postings_writer *writer);

/* Moves what was made so far out of the writer, which can go on with further terms. */
int wb_postings_take(struct wb_postings_writer *writer, struct wb_postings_part *part_out);
void wb_postings_part_release(struct wb_postings_part *part);

/* ---- the files ----------------------------------------------------------------------------------------- */

struct wb_postings_output;

struct wb_postings_stat {
    uint64_t terms, aliases, inlined;                        /* aliases: terms that share the list of the term before */
    uint64_t postings;                                       /* without those of aliases */
    uint64_t dictionary_bytes, lists_bytes, positions_bytes; /* sizes of the files */
};

/* Creates the three files in a directory that exists. */
int wb_postings_create(const char *dir, struct wb_postings_output **output_out);

/*
 * Appends a range. Its first key must be greater than the last one before: WB_E_INVALID otherwise. It is also
 * WB_E_INVALID if these two keys differ only in their last byte: such terms may share a list, so they must be in one
 * range.
 */
int wb_postings_append(struct wb_postings_output *output, const struct wb_postings_part *part);

/* Syncs and closes the files; frees the output even if it fails. stat_out may be NULL. */
int wb_postings_finish(struct wb_postings_output *output, struct wb_postings_stat *stat_out);

/* Closes the unfinished files and frees the output. NULL is allowed. */
void wb_postings_abandon(struct wb_postings_output *output);

#endif
