/*
 * cmd_similar.c - webbase similar: pages like a page, by their words and by who links to them.
 *
 *   0.83  https://example.org/b
 *   {"url":"https://example.org/b","score":0.83}
 */
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/options.h"
#include "cli/output.h"
#include "query/query.h"

#include <string.h>

enum { LIMIT_DEFAULT = 20, LIMIT_MAX = 10000 };

static int write_json(struct wb_slice url, double score)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    wb_json_field_slice(&j, "url", url);
    wb_json_field_double(&j, "score", score);
    return wb_output_object_queue(&j);
}

static int write_words(struct wb_slice url, double score)
{
    int err = wb_output_printf("%.3f  ", score);

    if (err == 0)
        err = wb_output_text(url);
    return err < 0 ? err : wb_output_printf("\n");
}

static unsigned kinds_of(const struct wb_options *options)
{
    const char *by = wb_options_text(options, "by");

    return !by || strcmp(by, "both") == 0 ? 0 : strcmp(by, "words") == 0 ? 1 : 2;
}

int wb_cmd_similar(const struct wb_options *options)
{
    uint64_t limit = wb_options_number(options, "limit", LIMIT_DEFAULT);
    struct wb_searcher *searcher = NULL;
    struct wb_similar_page *pages;
    struct wb_slice url;
    uint32_t docid = 0;
    size_t count = 0;

    limit = limit < LIMIT_MAX ? limit : LIMIT_MAX;
    pages = wb_alloc_zero(limit + 1, sizeof *pages);
    int err = pages ? wb_searcher_open(options->dir, &searcher) : WB_E_NOMEM;
    struct wb_index *index = err == 0 ? wb_searcher_index(searcher) : NULL;
    if (err == 0)
        err = wb_searcher_find(searcher, wb_slice_str(options->args[0]), &docid);
    if (err == WB_E_NOTFOUND && index)
        err = wb_fail(WB_E_NOTFOUND, "%s is not in the index", options->args[0]);
    if (err == 0)
        err = wb_similar(searcher, docid, kinds_of(options), limit, pages, &count);
    for (size_t i = 0; err == 0 && i < count; i++) {
        err = wb_index_url(index, pages[i].docid, &url);
        if (err == 0)
            err = options->json ? write_json(url, pages[i].score) : write_words(url, pages[i].score);
    }
    wb_searcher_close(searcher);
    wb_free(pages);
    return err;
}
