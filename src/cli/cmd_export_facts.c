/*
 * cmd_export_facts.c - webbase export --facts: writes what the index knows about pages to a SQLite database, to CSV or
 * to JSON lines. factrows.c has the rows, factpen.c the formats.
 */
#include "cli/cmd_export_facts.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/factrows.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/select_args.h"
#include "os/stop.h"
#include "words/words.h"

#include <inttypes.h>
#include <stdio.h>

struct facts_export {
    const char *path;
    enum wb_factformat format;
    struct wb_selection selection;
    uint8_t language;
    struct wb_searcher *searcher;
    uint64_t *bits; /* the pages that match the query */
    struct wb_factrows rows;
    struct wb_factpen pen;
    struct wb_progress progress;
};

static int step(void *context, uint64_t done, uint64_t total)
{
    struct facts_export *e = context;
    char text[80];

    if (wb_stop_requested())
        return wb_fail(WB_E_STOPPED, "stopped by a signal; %s was not written", e->path);
    if (wb_progress_due(&e->progress)) {
        snprintf(text, sizeof text, "export: looked at %" PRIu64 " of %" PRIu64 " pages, wrote %" PRIu64, done, total,
                 e->rows.pages);
        wb_progress_show(&e->progress, text);
    }
    return 0;
}

static int read_options(struct facts_export *e, const struct wb_options *options)
{
    int err = wb_factformat_of_name(e->path, &e->format);

    if (err == WB_E_INVALID)
        return wb_options_usage("%s", wb_error_message());
    if (err == 0)
        err = wb_select_args(options, &e->selection);
    if (err == 0 && e->selection.lang.len)
        e->language = wb_language_number(e->selection.lang);
    return err;
}

static int find_pages(struct facts_export *e)
{
    struct wb_slice query = e->selection.query.len ? e->selection.query : (struct wb_slice){NULL, 0};
    bool any_status = e->selection.status_max != 0;
    size_t bad_at;

    return wb_search_pages(e->searcher, query, any_status, &e->bits, &bad_at);
}

static int write_file(struct facts_export *e, const struct wb_options *options)
{
    struct wb_factrows_selection selection = {.pages = &e->selection, .language = e->language};
    int err = find_pages(e);

    selection.bits = e->bits;
    if (err == 0)
        err = wb_factrows_init(&e->rows, e->searcher);
    if (err == 0)
        err = wb_factpen_open(&e->pen, e->path, e->format, wb_options_flag(options, "force"), e->rows.columns.items,
                              e->rows.columns.count);
    wb_progress_init(&e->progress, "export");
    if (err == 0)
        err = wb_factrows_write(&e->rows, &selection, &e->pen, step, e);
    wb_progress_clear();
    return err < 0 ? err : wb_factpen_finish(&e->pen);
}

static int show(const struct facts_export *e, const struct wb_options *options)
{
    struct wb_json j;

    if (!options->json && e->format != WB_FACTS_SQLITE)
        return wb_output_printf("wrote the facts of %" PRIu64 " page%s to %s\n", e->rows.pages,
                                wb_output_plural(e->rows.pages), e->path);
    if (!options->json)
        return wb_output_printf("wrote the facts of %" PRIu64 " page%s and %" PRIu64 " link%s to %s\n", e->rows.pages,
                                wb_output_plural(e->rows.pages), e->rows.links, wb_output_plural(e->rows.links),
                                e->path);
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "records", e->rows.pages);
    wb_json_field_u64(&j, "pages", e->rows.pages);
    wb_json_field_u64(&j, "links", e->rows.links);
    return wb_output_object_end(&j);
}

int wb_cmd_export_facts(const struct wb_options *options)
{
    struct facts_export e = {.path = wb_options_text(options, "facts"),
                             .selection = WB_SELECTION_INIT,
                             .pen = WB_FACTPEN_INIT};
    int err = read_options(&e, options);

    if (err == 0)
        err = wb_searcher_open(options->dir, &e.searcher);
    if (err == 0)
        err = write_file(&e, options);
    wb_factpen_close(&e.pen);
    wb_factrows_release(&e.rows);
    wb_free(e.bits);
    wb_searcher_close(e.searcher);
    wb_selection_release(&e.selection);
    return err < 0 ? err : show(&e, options);
}
