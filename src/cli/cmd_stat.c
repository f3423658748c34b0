/*
 * cmd_stat.c - webbase stat: counts of the whole repository, and what the cycle is doing. It only reads, and it works
 * while other commands are running. Parts that do not exist yet, such as webdb, are left out.
 */
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/cycle_show.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cycle/cycle.h"
#include "store/store.h"

#include <inttypes.h>

/* What is known besides the numbers of the store. */
struct stat_facts {
    bool has_webdb, has_cycle;
    struct wb_webdb_count webdb;
    struct wb_index_info index;
    uint64_t unmerged;       /* bytes of the journal */
    struct wb_cycle_status cycle;
    bool has_dispenser;
    struct wb_buf dispenser; /* its URL; empty: the repository's own */
};

/* Asks every other part of the repository. A part that does not exist yet is not an error. */
static int read_facts(const char *dir, struct stat_facts *facts)
{
    struct wb_webdb *webdb = NULL;

    *facts = (struct stat_facts){.has_webdb = false};
    int err = wb_webdb_open(dir, &webdb);
    facts->has_webdb = err == 0;
    if (err == 0)
        wb_webdb_count(webdb, &facts->webdb);
    wb_webdb_close(webdb);
    if (err == 0 || err == WB_E_NOTFOUND)
        err = wb_webdb_unmerged(dir, &facts->unmerged);
    if (err < 0)
        return err;
    err = wb_index_newest(dir, &facts->index);
    if (err < 0)
        return err;
    err = wb_cycle_status(dir, &facts->cycle);
    facts->has_cycle = err == 0;
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    /* Only the owner of the repository may read its URL, which can contain a password. */
    err = wb_crawl_dispenser(dir, &facts->dispenser, &facts->has_dispenser);
    if (err < 0)
        facts->has_dispenser = false;
    return err == WB_E_NOMEM ? err : 0;
}

static void write_facts(struct wb_json *j, const struct stat_facts *facts)
{
    if (facts->has_webdb) {
        wb_json_key(j, "webdb");
        wb_json_object(j);
        wb_json_field_u64(j, "known", facts->webdb.pages);
        wb_json_field_u64(j, "fetched", facts->webdb.fetched);
        wb_json_field_u64(j, "links", facts->webdb.links);
        wb_json_field_u64(j, "bytes", facts->webdb.bytes);
        wb_json_object_end(j);
    }
    if (facts->index.generation) {
        wb_json_key(j, "index");
        wb_json_object(j);
        wb_json_field_u64(j, "generation", facts->index.generation);
        wb_json_field_u64(j, "snapshot", facts->index.snapshot);
        wb_json_field_u64(j, "edition", facts->index.edition);
        wb_output_field_time(j, "time", facts->index.time_ms);
        wb_json_field_u64(j, "pages", facts->index.pages);
        wb_json_field_u64(j, "urls", facts->index.urls);
        wb_json_field_u64(j, "links", facts->index.arcs);
        wb_json_field_u64(j, "terms", facts->index.terms);
        wb_json_field_u64(j, "bytes", facts->index.bytes);
        wb_json_object_end(j);
    }
    wb_json_field_u64(j, "unmerged_bytes", facts->unmerged);
    if (facts->has_cycle) {
        wb_json_key(j, "cycle");
        wb_json_object(j);
        wb_cycle_show_status(j, &facts->cycle);
        wb_json_object_end(j);
    }
}

static int write_json(const struct wb_store_stat *stat, const struct stat_facts *facts)
{
    char history[WB_STORE_HISTORY_TEXT_MAX];
    struct wb_json j;

    wb_store_history_format(&stat->history, history);
    wb_output_object_begin(&j, NULL);
    wb_json_field_u64(&j, "pages", stat->pages);
    wb_json_field_u64(&j, "versions", stat->versions);
    wb_json_field_u64(&j, "captures", stat->captures);
    wb_json_field_u64(&j, "sites", stat->sites);
    wb_json_field_u64(&j, "bytes_pages", stat->bytes_pages);
    wb_json_field_u64(&j, "bytes_stored", stat->bytes_stored);
    wb_json_field_u64(&j, "bytes_dead", stat->bytes_dead);
    wb_json_field_u64(&j, "segments", stat->files);
    wb_json_field_str(&j, "organisation", stat->organisation);
    wb_json_field_str(&j, "update", stat->update);
    wb_json_field_str(&j, "history", history);
    wb_json_field_u64(&j, "epoch", stat->epoch);
    wb_json_field_u64(&j, "snapshot", stat->snapshot);
    wb_json_field_u64(&j, "snapshots", stat->snapshots);
    wb_json_field_u64(&j, "edition", facts->has_webdb ? facts->webdb.edition : 0);
    wb_json_field_u64(&j, "generation", facts->index.generation);
    wb_json_field_u64(&j, "revisits", stat->revisits);
    wb_json_key(&j, "dispenser");
    if (facts->has_dispenser)
        wb_json_slice(&j, facts->dispenser.len ? wb_buf_slice(&facts->dispenser) : WB_SLICE_LIT("sqlite"));
    else
        wb_json_null(&j);
    write_facts(&j, facts);
    return wb_output_object_end(&j);
}

static int write_words(const char *dir, const struct wb_store_stat *stat)
{
    char history[WB_STORE_HISTORY_TEXT_MAX];

    wb_store_history_format(&stat->history, history);
    int err = wb_output_printf("repository    %s (%s, %s)\n"
                               "pages         %" PRIu64 "\n"
                               "versions      %" PRIu64 " with %" PRIu64 " captures (history %s)\n"
                               "sites         %" PRIu64 "\n"
                               "bytes_pages   %" PRIu64 "\n"
                               "bytes_stored  %" PRIu64,
                               dir, stat->organisation, stat->update, stat->pages, stat->versions, stat->captures,
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

static int say_facts(const struct stat_facts *facts)
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
    return err == 0 && facts->has_cycle ? say_cycle(&facts->cycle) : err;
}

int wb_cmd_stat(const struct wb_options *options)
{
    struct wb_store *store = NULL;
    struct wb_store_stat stat;
    struct stat_facts facts = {.has_webdb = false};

    int err = wb_store_open(options->dir, WB_STORE_READ, &store);
    if (err == 0)
        err = wb_store_stat(store, &stat);
    if (err == 0)
        err = read_facts(options->dir, &facts);
    if (err == 0)
        err = options->json ? write_json(&stat, &facts) : write_words(options->dir, &stat);
    if (err == 0 && !options->json)
        err = say_facts(&facts);
    wb_buf_release(&facts.dispenser);
    wb_store_close(store);
    return err;
}
