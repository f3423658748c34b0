/* pageset.c - all stored pages that match a query, as a set: for those who want every page rather than the best. */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "query/results.h"

/* Drops what is not a page from the last words of the set. */
static void keep_pages(const struct wb_searcher *searcher, uint64_t *bits)
{
    size_t first = searcher->pages / 64;

    WB_CHECK(first < searcher->bit_words);
    bits[first] &= (1ull << searcher->pages % 64) - 1;
    for (size_t i = first + 1; i < searcher->bit_words; i++)
        bits[i] = 0;
}

static int match(struct wb_searcher *searcher, struct wb_slice query, bool any_status, uint64_t *bits,
                 size_t *bad_at_out)
{
    struct wb_search_options options = {.query = query};
    struct wb_gather gather = {.bits = bits};
    struct wb_qplan plan = {.err = 0};
    struct wb_arena arena = {0};
    struct wb_ask ask = {.bad_at = 0};
    int err = wb_searcher_parse(searcher, query, &arena, &ask);

    *bad_at_out = ask.bad_at;
    if (err == 0)
        err = wb_qplan_make(searcher, &options, &arena, &ask, WB_DOCID_NONE, &plan);
    plan.with_status |= any_status;
    if (err == 0)
        err = wb_gather_all(&plan, &gather);
    if (err == 0)
        err = wb_qplan_error(&plan);
    wb_gather_release(&gather);
    wb_qplan_release(&plan);
    wb_arena_release(&arena);
    return err;
}

int wb_search_pages(struct wb_searcher *searcher, struct wb_slice query, bool any_status, uint64_t **bits_out,
                    size_t *bad_at_out)
{
    uint64_t *bits = NULL;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = wb_searcher_refresh(searcher);
    *bits_out = NULL;
    *bad_at_out = 0;
    if (err == 0) {
        bits = wb_alloc_zero(searcher->bit_words, sizeof *bits);
        err = bits ? 0 : WB_E_NOMEM;
    }
    if (err == 0 && query.ptr)
        err = match(searcher, query, any_status, bits, bad_at_out);
    else if (err == 0)
        memcpy(bits, searcher->allowed, searcher->bit_words * sizeof *bits);
    if (err < 0) {
        wb_free(bits);
        return err;
    }
    keep_pages(searcher, bits);
    *bits_out = bits;
    return 0;
}
