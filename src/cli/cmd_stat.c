/*
 * cmd_stat.c - webbase stat: counts of the whole repository, and what the cycle is doing. It only reads, and it works
 * while other commands are running. Parts that do not exist yet, such as webdb, are left out.
 */
#include "answer/answer.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"

#include <inttypes.h>

static int write_json(const struct wb_answer_stat *stat)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    wb_answer_stat(&j, stat, true);
    return wb_output_object_end(&j);
}

static int write_words(const char *dir, const struct wb_store_stat *stat)
{
    char history[WB_STORE_HISTORY_TEXT_MAX], design[WB_DESIGN_TEXT_MAX];

    wb_store_history_format(&stat->history, history);
    wb_design_format(&stat->design, design);
    int err = wb_output_printf("repository    %s (%s, nodes %" PRIu64 ")\n"
                               "pages         %" PRIu64 "\n"
                               "versions      %" PRIu64 " with %" PRIu64 " captures (history %s)\n"
                               "sites         %" PRIu64 "\n"
                               "bytes_pages   %" PRIu64 "\n"
                               "bytes_stored  %" PRIu64,
                               dir, design, stat->nodes, stat->pages, stat->versions, stat->captures,
                               history, stat->sites, stat->bytes_pages, stat->bytes_stored);

    if (err == 0 && stat->bytes_stored && stat->bytes_pages)
        err = wb_output_printf(" (pages %.1fx)", (double)stat->bytes_pages / (double)stat->bytes_stored);
    if (err == 0)
        err = wb_output_printf("\nbytes_dead    %" PRIu64 "\n"
                               "segments      %" PRIu64 "\n"
                               "epoch         %" PRIu64 "\n"
                               "snapshot      %" PRIu32,
                               stat->bytes_dead, stat->files, stat->epoch, stat->snapshot);
    if (err == 0 && stat->snapshot)
        err = wb_output_printf(" (%" PRIu64 " can be read)", stat->snapshots);
    if (err == 0)
        err = wb_output_write("\n", 1);
    if (err == 0 && stat->pages_waiting)
        err = wb_output_printf("waiting       %" PRIu64 " pages; 'webbase transfer' makes them visible\n",
                               stat->pages_waiting);
    if (err == 0 && stat->revisits)
        err = wb_output_printf("revisits      %" PRIu64 " whose original is not here\n", stat->revisits);
    return err;
}

static int say_cycle(const struct wb_cycle_status *c)
{
    char time[WB_DATE_TEXT_MAX] = "";
    bool resting = c->step == WB_CYCLE_REST;

    wb_date_format(resting ? c->next_ms : c->step_ms, time);
    int err = wb_output_printf("cycle         %" PRIu64 ": %" PRIu64 " listed, %" PRIu64 " asked for, %" PRIu64
                               " stored, %" PRIu64 " unchanged, %" PRIu64 " gone, %" PRIu64 " errors, %" PRIu64
                               " expunged\n",
                               c->cycle, c->listed, c->fetched, c->stored, c->unchanged, c->gone, c->errors,
                               c->expunged);
    if (err == 0 && resting && c->running)
        err = wb_output_printf("              rests until %s\n", time);
    else if (err == 0 && resting)
        err = wb_output_printf("              complete; no run is at work\n");
    else if (err == 0)
        err = wb_output_printf("              %s since %s%s\n", wb_cycle_step_word(c->step), time,
                               c->running ? "" : "; no run is at work, and the next one continues there");
    if (err == 0 && c->last_error[0])
        err = wb_output_printf("              failed with: ");
    if (err == 0 && c->last_error[0])
        err = wb_output_text(wb_slice_str(c->last_error));
    return err == 0 && c->last_error[0] ? wb_output_write("\n", 1) : err;
}

static int say_line(const char *before, const char *text, const char *after)
{
    int err = wb_output_printf("%s", before);

    if (err == 0)
        err = wb_output_text(wb_slice_str(text));
    return err < 0 ? err : wb_output_printf("%s\n", after);
}

static int say_backup(const struct wb_vault_status *s)
{
    char time[WB_DATE_TEXT_MAX] = "";
    int err = say_line("backup        ", s->url, s->following ? " (backup --follow is running)" : "");

    if (err == 0 && !s->safe_ms)
        err = wb_output_printf("              nothing is safe yet\n");
    if (err == 0 && s->safe_ms) {
        wb_date_format(s->safe_ms, time);
        err = wb_output_printf("              safe: %" PRIu64 " pages, the state of %s", s->safe_pages, time);
        wb_date_format(s->since_ms, time);
        if (err == 0)
            err = wb_output_printf("; backed up since %s\n", time);
    }
    if (err == 0 && s->unsafe_since_ms) {
        wb_date_format(s->unsafe_since_ms, time);
        err = wb_output_printf("              not safe: what has changed since %s, %" PRIu64 " bytes\n", time,
                               s->bytes_waiting);
    }
    if (err == 0 && s->error[0]) {
        wb_date_format(s->error_ms, time);
        err = wb_output_printf("              failed at %s: ", time);
        if (err == 0)
            err = say_line("", s->error, "");
    }
    return err;
}

static int say_facts(const struct wb_answer_stat *facts)
{
    int err = 0;

    if (facts->has_webdb)
        err = wb_output_printf("webdb         %" PRIu64 " known, %" PRIu64 " fetched, %" PRIu64
                               " links (edition %" PRIu32 ")\n",
                               facts->webdb.pages, facts->webdb.fetched, facts->webdb.links, facts->webdb.edition);
    if (err == 0 && facts->index.generation)
        err = wb_output_printf("index         %" PRIu64 " pages, %" PRIu64 " URLs, %" PRIu64 " links, %" PRIu64
                               " terms, %.1f MB (generation %" PRIu32 ", snapshot %" PRIu32 ")\n",
                               facts->index.pages, facts->index.urls, facts->index.arcs, facts->index.terms,
                               (double)facts->index.bytes / 1e6, facts->index.generation, facts->index.snapshot);
    if (err == 0 && facts->unmerged)
        err = wb_output_printf("unmerged      %" PRIu64 " bytes of the journal: 'webbase update' merges them\n",
                               facts->unmerged);
    if (err == 0 && facts->has_dispenser && facts->dispenser.len)
        err = wb_output_printf("dispenser     %.*s\n", WB_SLICE_ARG(wb_buf_slice(&facts->dispenser)));
    if (err == 0 && facts->has_cycle)
        err = say_cycle(&facts->cycle);
    for (size_t i = 0; i < facts->backups.count && err == 0; i++)
        err = say_backup(&facts->backups.items[i].status);
    return err;
}

int wb_cmd_stat(const struct wb_options *options)
{
    struct wb_store *store = NULL;
    struct wb_answer_stat stat = {.has_webdb = false};

    int err = wb_store_open(options->dir, WB_STORE_READ, &store);
    if (err == 0)
        err = wb_answer_stat_read(options->dir, store, &stat);
    if (err == 0)
        err = options->json ? write_json(&stat) : write_words(options->dir, &stat.store);
    if (err == 0 && !options->json)
        err = say_facts(&stat);
    wb_answer_stat_release(&stat);
    wb_store_close(store);
    return err;
}
