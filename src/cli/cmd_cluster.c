/*
 * cmd_cluster.c - webbase cluster: makes a cluster of machines, and shows one.
 *
 *   made a cluster in the PostgreSQL server at db:5432, database web: 64 shards, 1 copy, lease 5 s, store s3://b/web
 *   {"event":"done","database":"...","store":"s3://b/web","shards":64,"copies":1,"lease_ms":5000,"history":"newest"}
 *
 *   ! The machine b is down and still has 3 shards; nobody has taken them yet.
 *   machine  address     state  weight  shards   pages  lease
 *   a        10.0.0.1:8  up          1      32  120000  4.6 s
 *   {"machines":[{...}],"shards":[{...}],"generation":0,"problems":["..."]}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "object/object.h"
#include "registry/registry.h"
#include "sql/sql.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

enum { SHARDS = 64, COPIES = 1, LEASE_MS = 5000 };

/* ---- init ------------------------------------------------------------------------------------------------------ */

static int read_settings(const struct wb_options *options, struct wb_registry_cluster *settings_out)
{
    struct wb_registry_cluster *s = settings_out;
    const char *store = wb_options_text(options, "store"), *policy = wb_options_text(options, "history");
    uint64_t shards = wb_options_number(options, "shards", SHARDS),
             copies = wb_options_number(options, "copies", COPIES);
    int64_t lease_ms = wb_options_duration(options, "lease", LEASE_MS);
    struct wb_store_history history = {.value = 0};

    *s = (struct wb_registry_cluster){.shards = shards > UINT32_MAX ? 0 : (unsigned)shards,
                                      .copies = copies > UINT32_MAX ? 0 : (unsigned)copies,
                                      .lease_ms = lease_ms > UINT32_MAX ? UINT32_MAX : (unsigned)lease_ms};
    if (!store)
        return wb_options_usage("cluster: init needs --store with the URL of an object store");
    if (wb_object_url_check(store) < 0)
        return wb_options_usage("%s", wb_error_message());
    if (strlen(store) >= sizeof s->store)
        return wb_options_usage("cluster: the URL of the store is longer than %zu bytes", sizeof s->store - 1);
    if (policy && wb_store_history_parse(wb_slice_str(policy), &history) < 0)
        return wb_options_usage("--history: %s", wb_error_message());
    snprintf(s->store, sizeof s->store, "%s", store);
    wb_store_history_format(&history, s->history);
    return wb_registry_cluster_check(s) < 0 ? wb_options_usage("cluster: %s", wb_error_message()) : 0;
}

static int init(const struct wb_options *options)
{
    struct wb_registry_cluster s;
    struct wb_registry *registry = NULL;
    struct wb_json j;
    int err = read_settings(options, &s);

    if (err == 0)
        err = wb_registry_init(options->dir, &s);
    if (err == 0)
        err = wb_registry_open(options->dir, &registry);
    if (err < 0)
        return err;
    if (!options->json) {
        err = wb_output_printf("made a cluster in %s: %u shard%s, %u cop%s, lease %g s, store %s\n",
                               wb_registry_where(registry), s.shards, wb_output_plural(s.shards), s.copies,
                               s.copies == 1 ? "y" : "ies", s.lease_ms / 1000.0, s.store);
    } else {
        wb_output_object_begin(&j, "done");
        wb_json_field_str(&j, "database", wb_registry_where(registry));
        wb_json_field_str(&j, "store", s.store);
        wb_json_field_u64(&j, "shards", s.shards);
        wb_json_field_u64(&j, "copies", s.copies);
        wb_json_field_u64(&j, "lease_ms", s.lease_ms);
        wb_json_field_str(&j, "history", s.history);
        err = wb_output_object_end(&j);
    }
    wb_registry_close(registry);
    return err;
}

/* ---- status as JSON ---------------------------------------------------------------------------------------------- */

static void add_machines(struct wb_json *j, const struct wb_registry_view *view)
{
    wb_json_key(j, "machines");
    wb_json_array(j);
    for (size_t i = 0; i < view->machines.count; i++) {
        const struct wb_registry_machine *m = &view->machines.items[i];
        wb_json_object(j);
        wb_json_field_str(j, "name", m->name);
        wb_json_field_str(j, "address", m->address);
        wb_json_field_str(j, "state", wb_registry_state_word(wb_registry_state(m)));
        wb_json_field_u64(j, "weight", m->weight);
        wb_json_field_u64(j, "shards", m->shards);
        wb_json_field_u64(j, "pages", m->pages);
        wb_json_field_i64(j, "lease_ms", m->lease_ms);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
}

static void add_shards(struct wb_json *j, const struct wb_registry_view *view)
{
    size_t at = 0;

    wb_json_key(j, "shards");
    wb_json_array(j);
    for (size_t i = 0; i < view->shards.count; i++) {
        const struct wb_registry_shard *s = &view->shards.items[i];
        wb_json_object(j);
        wb_json_field_u64(j, "shard", s->shard);
        wb_json_key(j, "holder");
        if (s->holder[0])
            wb_json_str(j, s->holder);
        else
            wb_json_null(j);
        wb_json_field_i64(j, "term", s->term);
        wb_json_key(j, "copies");
        wb_json_array(j);
        for (; at < view->copies.count && view->copies.items[at].shard <= s->shard; at++)
            if (view->copies.items[at].shard == s->shard)
                wb_json_str(j, view->copies.items[at].machine);
        wb_json_array_end(j);
        wb_json_field_u64(j, "pages", s->pages);
        wb_json_field_i64(j, "safe_ms", s->unsafe_ms);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
}

static int add_problem(void *context, const char *sentence)
{
    wb_json_str(context, sentence);
    return 0;
}

static int show_json(const struct wb_registry_view *view)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    add_machines(&j, view);
    add_shards(&j, view);
    wb_json_field_u64(&j, "generation", view->cluster.generation);
    wb_json_key(&j, "problems");
    wb_json_array(&j);
    wb_registry_problems(view, add_problem, &j);
    wb_json_array_end(&j);
    return wb_output_object_end(&j);
}

/* ---- status for people ---------------------------------------------------------------------------------------------
 */

static int print_problem(void *context, const char *sentence)
{
    (void)context;
    return wb_output_printf("! %s\n", sentence);
}

struct sums {
    uint64_t pages, bytes;
    unsigned held;
    int64_t unsafe_ms;
};

static struct sums sum_up(const struct wb_registry_view *view)
{
    struct sums sums = {.pages = 0};

    for (size_t i = 0; i < view->shards.count; i++) {
        const struct wb_registry_shard *s = &view->shards.items[i];
        sums.pages += s->pages;
        sums.bytes += s->bytes;
        sums.held += s->holder[0] != '\0';
        sums.unsafe_ms = s->unsafe_ms > sums.unsafe_ms ? s->unsafe_ms : sums.unsafe_ms;
    }
    return sums;
}

static int print_machines(const struct wb_registry_view *view)
{
    int name = 7, address = 7, err = 0;

    for (size_t i = 0; i < view->machines.count; i++) {
        int n = (int)strlen(view->machines.items[i].name), a = (int)strlen(view->machines.items[i].address);
        name = n > name ? n : name;
        address = a > address ? a : address;
    }
    if (view->machines.count)
        err = wb_output_printf("%-*s  %-*s  state     weight  shards       pages    lease\n", name, "machine", address,
                               "address");
    for (size_t i = 0; i < view->machines.count && err == 0; i++) {
        const struct wb_registry_machine *m = &view->machines.items[i];
        err = wb_output_printf("%-*s  %-*s  %-8s  %6u  %6u  %10" PRIu64 "  %5.1f s%s\n", name, m->name, address,
                               m->address, wb_registry_state_word(wb_registry_state(m)), m->weight, m->shards, m->pages,
                               (double)m->lease_ms / 1000, m->search_only ? "  search only" : "");
    }
    return err;
}

static int show_words(const struct wb_registry *registry, const struct wb_registry_view *view)
{
    struct sums sums = sum_up(view);
    int err = wb_registry_problems(view, print_problem, NULL);

    if (err == 0)
        err = print_machines(view);
    if (err == 0)
        err = wb_output_printf("%zu shards, %u with a holder; %" PRIu64 " pages, %" PRIu64 " bytes; store %s\n",
                               view->shards.count, sums.held, sums.pages, sums.bytes, view->cluster.store);
    if (err == 0 && sums.unsafe_ms)
        err = wb_output_printf("the oldest thing that is not safe has waited for %.1f s\n",
                               (double)sums.unsafe_ms / 1000);
    return err < 0 ? err : wb_output_printf("the registry is in %s\n", wb_registry_where(registry));
}

static int status(const struct wb_options *options)
{
    struct wb_registry_view view = WB_REGISTRY_VIEW_INIT;
    struct wb_registry *registry = NULL;
    int err = wb_registry_open(options->dir, &registry);

    if (err == 0)
        err = wb_registry_look(registry, &view);
    if (err == 0)
        err = options->json ? show_json(&view) : show_words(registry, &view);
    wb_registry_view_release(&view);
    wb_registry_close(registry);
    return err;
}

/* ---- the command
 * ----------------------------------------------------------------------------------------------------- */

static const char *const init_options[] = {"store", "shards", "copies", "lease", "history"};

int wb_cmd_cluster(const struct wb_options *options)
{
    const char *word = options->args[0];
    bool is_init = strcmp(word, "init") == 0;

    if (!is_init && strcmp(word, "status") != 0)
        return wb_options_usage("cluster: '%s' is not one of init and status", word);
    if (wb_sql_url_kind(wb_slice_str(options->dir)) == WB_SQL_URL_NONE)
        return wb_options_usage("cluster: it needs -r with the URL of a database, postgres://USER@HOST:PORT/NAME or "
                                "sqlite:///FILE");
    for (size_t i = 0; i < sizeof init_options / sizeof *init_options && !is_init; i++)
        if (wb_options_text(options, init_options[i]))
            return wb_options_usage("cluster: --%s is for init", init_options[i]);
    return is_init ? init(options) : status(options);
}
