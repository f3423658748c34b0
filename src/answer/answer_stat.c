/* answer_stat.c - counts of the whole repository, from all its parts, and as JSON. */
#include "answer/answer.h"
#include "base/error.h"

/* Asks every other part of the repository. A part that does not exist yet is not an error. */
static int read_facts(const char *dir, struct wb_answer_stat *facts)
{
    struct wb_webdb *webdb = NULL;

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
    err = wb_modules_read(dir, &facts->modules);
    if (err < 0)
        return err;
    /* Only the owner of the repository may read its URL, which can contain a password. */
    err = wb_crawl_dispenser(dir, &facts->dispenser, &facts->has_dispenser);
    if (err < 0)
        facts->has_dispenser = false;
    return err == WB_E_NOMEM ? err : wb_answer_backups_read(dir, &facts->backups);
}

int wb_answer_stat_read(const char *dir, struct wb_store *store, struct wb_answer_stat *stat_out)
{
    *stat_out = (struct wb_answer_stat){.has_webdb = false};
    int err = wb_store_stat(store, &stat_out->store);
    return err < 0 ? err : read_facts(dir, stat_out);
}

void wb_answer_stat_release(struct wb_answer_stat *stat)
{
    wb_buf_release(&stat->dispenser);
    wb_modules_release(&stat->modules);
    wb_answer_backups_release(&stat->backups);
}

void wb_answer_cycle(struct wb_json *j, const struct wb_cycle_status *status)
{
    wb_json_field_u64(j, "cycle", status->cycle);
    wb_json_field_bool(j, "running", status->running);
    wb_json_field_str(j, "step", wb_cycle_step_word(status->step));
    wb_json_field_time(j, "began", status->began_ms);
    wb_json_field_time(j, "step_began", status->step_ms);
    wb_json_field_time(j, "next", status->step == WB_CYCLE_REST ? status->next_ms : 0);
    wb_json_field_i64(j, "run", status->run);
    wb_json_field_u64(j, "budget", status->budget);
    wb_json_field_u64(j, "listed", status->listed);
    wb_json_field_u64(j, "fetched", status->fetched);
    wb_json_field_u64(j, "stored", status->stored);
    wb_json_field_u64(j, "unchanged", status->unchanged);
    wb_json_field_u64(j, "gone", status->gone);
    wb_json_field_u64(j, "errors", status->errors);
    wb_json_field_u64(j, "expunged", status->expunged);
    wb_json_field_double(j, "theta", status->theta);
    wb_json_field_text(j, "error", wb_slice_str(status->last_error));
}

/* Pages that crawls gave to a module are read again for the index, so the larger number is that of pages. */
static void write_modules(struct wb_json *j, const struct wb_modules *modules)
{
    wb_json_key(j, "modules");
    wb_json_array(j);
    for (size_t i = 0; i < modules->items.count; i++) {
        const struct wb_module_entry *e = &modules->items.items[i];
        bool index = e->index_pages > e->pages;
        wb_json_object(j);
        wb_json_field_str(j, "name", e->module.name);
        wb_json_field_str(j, "types", e->module.types);
        wb_json_field_u64(j, "pages", index ? e->index_pages : e->pages);
        wb_json_field_u64(j, "errors", index ? e->index_errors : e->errors);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
}

static void write_backups(struct wb_json *j, const struct wb_answer_backups *backups, bool places)
{
    wb_json_key(j, "backup");
    wb_json_array(j);
    for (size_t i = 0; i < backups->count; i++) {
        wb_json_object(j);
        wb_answer_backup(j, &backups->items[i], places);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
}

static void write_facts(struct wb_json *j, const struct wb_answer_stat *facts)
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
        wb_json_field_time(j, "time", facts->index.time_ms);
        wb_json_field_u64(j, "pages", facts->index.pages);
        wb_json_field_u64(j, "urls", facts->index.urls);
        wb_json_field_u64(j, "links", facts->index.arcs);
        wb_json_field_u64(j, "terms", facts->index.terms);
        wb_json_field_u64(j, "bytes", facts->index.bytes);
        wb_json_object_end(j);
    }
    wb_json_field_u64(j, "unmerged_bytes", facts->unmerged);
    write_modules(j, &facts->modules);
    if (facts->has_cycle) {
        wb_json_key(j, "cycle");
        wb_json_object(j);
        wb_answer_cycle(j, &facts->cycle);
        wb_json_object_end(j);
    }
}

void wb_answer_stat(struct wb_json *j, const struct wb_answer_stat *stat, bool secrets)
{
    const struct wb_store_stat *store = &stat->store;
    char history[WB_STORE_HISTORY_TEXT_MAX], design[WB_DESIGN_TEXT_MAX];

    wb_store_history_format(&store->history, history);
    wb_design_format(&store->design, design);
    wb_json_field_u64(j, "pages", store->pages);
    wb_json_field_u64(j, "versions", store->versions);
    wb_json_field_u64(j, "captures", store->captures);
    wb_json_field_u64(j, "sites", store->sites);
    wb_json_field_u64(j, "bytes_pages", store->bytes_pages);
    wb_json_field_u64(j, "bytes_stored", store->bytes_stored);
    wb_json_field_u64(j, "bytes_dead", store->bytes_dead);
    wb_json_field_u64(j, "segments", store->files);
    wb_json_field_str(j, "design", design);
    wb_json_field_str(j, "organisation", wb_organisation_word(store->design.read.organisation));
    wb_json_field_str(j, "update", store->design.batch ? "batch" : "incremental");
    wb_json_field_u64(j, "nodes", store->nodes);
    wb_json_field_u64(j, "waiting", store->design.batch ? store->pages_waiting : 0);
    if (store->design.batch)
        wb_json_field_u64(j, "pages_waiting", store->pages_waiting);
    wb_json_field_str(j, "history", history);
    wb_json_field_u64(j, "epoch", store->epoch);
    wb_json_field_u64(j, "snapshot", store->snapshot);
    wb_json_field_u64(j, "snapshots", store->snapshots);
    wb_json_field_u64(j, "edition", stat->has_webdb ? stat->webdb.edition : 0);
    wb_json_field_u64(j, "generation", stat->index.generation);
    wb_json_field_u64(j, "revisits", store->revisits);
    wb_json_key(j, "dispenser");
    if (stat->has_dispenser && (secrets || stat->dispenser.len == 0))
        wb_json_slice(j, stat->dispenser.len ? wb_buf_slice(&stat->dispenser) : WB_SLICE_LIT("sqlite"));
    else
        wb_json_null(j);
    write_backups(j, &stat->backups, secrets);
    write_facts(j, stat);
}

/* ---- nodes ----------------------------------------------------------------------------------------- */

void wb_answer_node(struct wb_json *j, const struct wb_store_node *node, bool places)
{
    wb_json_field_u64(j, "node", node->number);
    if (places)
        wb_json_field_text(j, "dir", wb_slice_str(node->dir));
    wb_json_field_str(j, "role", wb_store_node_role_word(node->role));
    wb_json_field_str(j, "organisation", wb_organisation_word(node->organisation));
    wb_json_field_str(j, "state", wb_store_node_state_word(node->state));
    if (places && node->state == WB_STORE_NODE_DOWN)
        wb_json_field_text(j, "why", wb_slice_str(node->why));
    if (node->arriving || node->leaving)
        wb_json_field_str(j, "moving", node->leaving ? "leaving" : "arriving");
    wb_json_field_u64(j, "capacity", node->capacity);
    wb_json_field_u64(j, "used", node->used);
    wb_json_field_u64(j, "free", node->free);
    wb_json_field_double(j, "fragmentation", node->fragmentation);
    wb_json_field_u64(j, "pages", node->pages);
    wb_json_key(j, "requests");
    wb_json_object(j);
    wb_json_field_u64(j, "get", node->gets);
    wb_json_field_u64(j, "put", node->puts);
    wb_json_field_u64(j, "stream", node->streams);
    wb_json_object_end(j);
}
