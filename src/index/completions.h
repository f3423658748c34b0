/*
 * completions.h - what a query that is being typed may become: titles of pages, and words, found by how any of their
 * words begins. Readers are asked while somebody types, so the best of very many are found without looking at all.
 *
 *   completions.wbb    a blob of kind GCMP:
 *
 *     texts      one record for each text, in the order of their folded forms:
 *                docid (4): of the most important page with this title; WB_DOCID_NONE: it is only a word
 *                pages (4): how many pages have it as their title or a part of it; of a word, how many have it
 *                flags (1): bit 0: it is a word of pages
 *                folded bytes (1), shown bytes (1; 0: it is shown as it is folded), folded, shown
 *     starts     one record of 8 bytes for each word of a text that can be found by it, at most STARTS_MAX of a text:
 *                bits 0-39 the offset of its text, 40-47 where in the folded form the word begins, 48-63 the weight.
 *                In the order of what the folded form is from there on, and then of the offset
 *     maxima     2 bytes: the greatest weight of 64 starts; then the same of 64 of these, and so on, until there is one
 *                level of at most 64
 *     foot       48 bytes: "WBCMPL01", bytes of texts (8), texts (8), starts (8), 16 bytes 0
 *
 * All numbers are little-endian. A text is folded as words are (room words): "Über C++" is "uber c". The words are
 * parted by one blank, apart from scripts without blanks.
 */
#ifndef WB_INDEX_COMPLETIONS_H
#define WB_INDEX_COMPLETIONS_H

#include "base/buf.h"
#include "index/index.h"
#include "table/table.h"
#include "words/words.h"

#define WB_COMPLETIONS_FILE "completions.wbb"
#define WB_COMPLETIONS_KIND "GCMP"
#define WB_COMPLETION_START_BYTES 8
#define WB_COMPLETION_HEAD_BYTES 11 /* of a text */
#define WB_COMPLETION_FOOT_BYTES 48
#define WB_COMPLETION_MAGIC "WBCMPL01"

/* ---- the file (completions.c) ----------------------------------------------------------------------- */

struct wb_completions {
    struct wb_blob blob;
    uint64_t text_bytes, texts, starts;
};

int wb_completions_open(const char *path, struct wb_completions *completions_out);
void wb_completions_close(struct wb_completions *completions);

/* A test seam, for the fuzzer: the part of opening that checks that the numbers in the foot fit the file. */
int wb_completions_check(struct wb_completions *completions);

/*
 * Calls each() for texts in which a word begins like this, the one with the greatest weight first, each text once,
 * until it returns something else than 0 or WB_COMPLETION_TRIES_MAX were tried. Returns an error, or what each()
 * returned.
 */
#define WB_COMPLETION_TRIES_MAX 200
int wb_completions_find(const struct wb_completions *completions, struct wb_slice folded, wb_index_each_completion each,
                        void *context);

/* Reads all of it. Returns what is wrong, and where; NULL: nothing is. pages: docids of pages are less. */
const char *wb_completions_verify(const struct wb_completions *completions, uint64_t pages, uint64_t *at_out);

/* ---- writing (completionwrite.c) -------------------------------------------------------------------- */

struct wb_completions_writer;

int wb_completions_create(const char *path, const char *temp_dir, struct wb_completions_writer **writer_out);

/*
 * Texts come in ascending order of their folded forms, each once. The weights: of its beginning, and of the beginnings
 * of its other words.
 */
int wb_completions_add(struct wb_completions_writer *writer, const struct wb_completion *completion, uint16_t first,
                       uint16_t other);

/* Writes the rest, syncs and closes. Frees the writer even if it fails. */
int wb_completions_finish(struct wb_completions_writer *writer);
void wb_completions_abandon(struct wb_completions_writer *writer);

/* ---- building (completionwork.c) -------------------------------------------------------------------- */

struct wb_build;

/* Writes the file, once titles, ranks and the dictionary are complete. */
int wb_completionwork(struct wb_build *build);

#endif
