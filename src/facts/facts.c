/* facts.c - one table from its beginning to its end: factrows.c has the rows, factpen.c the formats. */
#include "facts/facts.h"
#include "base/error.h"
#include "base/mem.h"
#include "facts/factrows.h"
#include "words/words.h"

int wb_facts_format_of_name(const char *path, enum wb_facts_format *format_out)
{
    static const char *const endings[] = {[WB_FACTS_CSV] = ".csv",
                                          [WB_FACTS_JSONL] = ".jsonl",
                                          [WB_FACTS_SQLITE] = ".sqlite",
                                          [WB_FACTS_PARQUET] = ".parquet"};
    struct wb_slice name = wb_slice_str(path);

    for (int i = 0; i < (int)(sizeof endings / sizeof *endings); i++)
        if (wb_slice_ends(name, wb_slice_str(endings[i]))) {
            *format_out = (enum wb_facts_format)i;
            return 0;
        }
    return wb_fail(WB_E_INVALID, "%s: the name must end in .sqlite, .parquet, .csv or .jsonl", path);
}

/* The pages that match the query, or all. */
static int find_pages(struct wb_searcher *searcher, const struct wb_selection *selection, uint64_t **bits_out)
{
    struct wb_slice query = selection->query.len ? selection->query : (struct wb_slice){NULL, 0};
    bool any_status = selection->status_max != 0;
    size_t bad_at;

    return wb_search_pages(searcher, query, any_status, bits_out, &bad_at);
}

static int write_rows(struct wb_factrows *rows, const struct wb_facts_options *options, const uint64_t *bits)
{
    const struct wb_selection *selection = options->selection;
    struct wb_factrows_selection wanted = {.bits = bits, .pages = selection};
    struct wb_factpen pen = WB_FACTPEN_INIT;

    if (selection->lang.len)
        wanted.language = wb_language_number(selection->lang);
    int err = wb_factpen_open(&pen, options, rows->columns.items, rows->columns.count);
    if (err == 0)
        err = wb_factrows_write(rows, &wanted, &pen, options);
    if (err == 0)
        err = wb_factpen_finish(&pen);
    wb_factpen_close(&pen);
    return err;
}

int wb_facts_write(const char *dir, const struct wb_facts_options *options, struct wb_facts_counts *counts_out)
{
    struct wb_searcher *searcher = NULL;
    struct wb_factrows rows = {0};
    uint64_t *bits = NULL;
    int err = wb_searcher_open(dir, &searcher);

    if (err == 0)
        err = find_pages(searcher, options->selection, &bits);
    if (err == 0)
        err = wb_factrows_init(&rows, searcher);
    if (err == 0)
        err = write_rows(&rows, options, bits);
    *counts_out = rows.counts;
    wb_factrows_release(&rows);
    wb_free(bits);
    wb_searcher_close(searcher);
    return err;
}
