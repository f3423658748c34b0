/*
 * inverter.h - turns documents into postings by term, in memory.
 *
 *   begin(document) -> add(word) ... -> end        for each document, in any order
 *   flush                                          when it is full: everything as one sorted run (run.h)
 *
 * A document is kept as a list of (term, posting bytes) until the flush, which puts the postings of each term in
 * the order of docids. So pages may come in the order of the disk. Memory is bounded by the setting, as long as the
 * caller flushes when wb_inverter_full() says so; one document may exceed it by its own size.
 */
#ifndef WB_INDEX_INVERTER_H
#define WB_INDEX_INVERTER_H

#include "base/buf.h"
#include "index/posting.h"

struct wb_inverter;
struct wb_run_writer;

int wb_inverter_new(size_t memory_bytes, struct wb_inverter **inverter_out);
void wb_inverter_free(struct wb_inverter *inverter);

/* language: a small number by which words are stemmed. The same exact word and language always have the same stem. */
void wb_inverter_begin(struct wb_inverter *inverter, uint32_t docid, unsigned language);

/*
 * Adds a word. Fields come in the order of their numbers, except that MAIN and OTHER may alternate; the positions of a
 * space ascend. stemmed is false for words that have no stem (compounds, bigrams). Returns 1 if the stem of the word is
 * not known yet: the caller must pass it to wb_inverter_stem() then, before it adds another word. 0: it is known.
 */
int wb_inverter_add(struct wb_inverter *inverter, struct wb_slice exact, bool stemmed, enum wb_field field,
                    uint32_t position);
int wb_inverter_stem(struct wb_inverter *inverter, struct wb_slice stem);
int wb_inverter_end(struct wb_inverter *inverter);

bool wb_inverter_full(const struct wb_inverter *inverter);
bool wb_inverter_empty(const struct wb_inverter *inverter);

/* Writes everything as a run, in the order of terms and docids, and starts again with nothing. */
int wb_inverter_flush(struct wb_inverter *inverter, struct wb_run_writer *run);

#endif
