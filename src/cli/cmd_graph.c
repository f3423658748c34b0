/*
 * cmd_graph.c - webbase graph: a bare link graph, for people with a graph but no pages. It is kept as one file in the
 * repository, DIR/graph/links, which an import replaces as a whole.
 *
 *   graph/links       the graph (docs/formats/linkgraph.md)
 *   graph/links.new   the next one, while it is written
 *   graph/lock        held by an import
 */
#include "base/error.h"
#include "base/mem.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "graph/graph.h"
#include "os/file.h"
#include "os/path.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static double bits_per_link(const struct wb_graph_stat *stat)
{
    return stat->arcs ? 8 * (double)stat->bytes / (double)stat->arcs : 0;
}

/* ---- import ------------------------------------------------------------------------------------ */

/* Where the parts are. Texts are owned. */
struct graph_paths {
    char *dir, *links, *fresh, *lock;
};

static int name_paths(const char *repository, struct graph_paths *paths_out)
{
    struct graph_paths p = {.dir = wb_path_join(repository, "graph")};

    p.links = p.dir ? wb_path_join(p.dir, "links") : NULL;
    p.fresh = p.dir ? wb_path_join(p.dir, "links.new") : NULL;
    p.lock = p.dir ? wb_path_join(p.dir, "lock") : NULL;
    *paths_out = p;
    return p.links && p.fresh && p.lock ? 0 : WB_E_NOMEM;
}

static void release_paths(struct graph_paths *p)
{
    wb_free(p->dir);
    wb_free(p->links);
    wb_free(p->fresh);
    wb_free(p->lock);
}

static bool show_progress(void *context, uint64_t done, uint64_t total, uint64_t nodes)
{
    wb_progress_update(context, done, total, nodes);
    return !wb_stop_requested();
}

static int show_import(const struct wb_options *options, const struct wb_graph_stat *stat, uint64_t repeated)
{
    struct wb_json j;

    if (options->json) {
        wb_output_object_begin(&j, "done");
        wb_json_field_u64(&j, "nodes", stat->nodes);
        wb_json_field_u64(&j, "arcs", stat->arcs);
        wb_json_field_u64(&j, "repeated", repeated);
        wb_json_field_u64(&j, "bytes", stat->bytes);
        return wb_output_object_end(&j);
    }
    int err = wb_output_printf("%" PRIu64 " node%s and %" PRIu64 " arc%s in %" PRIu64 " bytes", stat->nodes,
                               wb_output_plural(stat->nodes), stat->arcs, wb_output_plural(stat->arcs), stat->bytes);
    if (err == 0 && repeated)
        err = wb_output_printf("; %" PRIu64 " repeated successor%s left out", repeated, wb_output_plural(repeated));
    return err < 0 ? err : wb_output_write("\n", 1);
}

/* Reads the text into a new file, and puts that in the place of the old one. */
static int replace_graph(const struct graph_paths *paths, const char *text_path, struct wb_graph_stat *stat_out,
                         uint64_t *repeated_out)
{
    struct wb_progress progress;
    struct wb_graph_text_options reading = {.go_on = show_progress, .context = &progress};

    wb_progress_init(&progress, "read");
    int err = wb_graph_read_text(text_path, &reading, paths->fresh, stat_out, repeated_out);
    wb_progress_clear();
    if (err == 0)
        err = wb_path_rename(paths->fresh, paths->links);
    return err < 0 ? err : wb_path_sync_dir(paths->dir);
}

static int create_repository(const char *dir)
{
    if (wb_store_exists(dir))
        return 0;
    int err = wb_store_create(dir, NULL);
    /* Another command may have created it in the meantime. */
    return err < 0 && wb_store_exists(dir) ? 0 : err;
}

static int import_graph(const struct wb_options *options)
{
    struct graph_paths paths;
    struct wb_file lock = WB_FILE_INIT;
    struct wb_graph_stat stat;
    uint64_t repeated = 0;
    int err = name_paths(options->dir, &paths);

    if (err == 0)
        err = create_repository(options->dir);
    if (err == 0)
        err = wb_path_mkdirs(paths.dir);
    if (err == 0)
        err = wb_file_open(paths.lock, WB_FILE_WRITE | WB_FILE_CREATE, &lock);
    if (err == 0)
        err = wb_file_lock(&lock, false);
    if (err == WB_E_BUSY)
        err = wb_fail(WB_E_BUSY, "%s: another import of a graph is at work", paths.dir);
    if (err == 0)
        err = replace_graph(&paths, options->args[1], &stat, &repeated);
    if (err == 0)
        err = show_import(options, &stat, repeated);
    wb_file_close(&lock);
    release_paths(&paths);
    return err;
}

/* ---- stat and rank ----------------------------------------------------------------------------- */

static int open_graph(const struct wb_options *options, struct wb_graph **graph_out)
{
    struct graph_paths paths;
    int err = name_paths(options->dir, &paths);

    *graph_out = NULL;
    if (err == 0)
        err = wb_store_require(options->dir);
    if (err == 0)
        err = wb_graph_open(paths.links, graph_out);
    if (err == WB_E_NOTFOUND && wb_store_exists(options->dir))
        err = wb_fail(err, "there is no graph in %s yet: 'webbase graph import' brings one in", options->dir);
    release_paths(&paths);
    return err;
}

static int show_stat(const struct wb_options *options)
{
    struct wb_graph_stat stat;
    struct wb_graph *graph;
    struct wb_json j;
    int err = open_graph(options, &graph);

    if (err < 0)
        return err;
    wb_graph_stat(graph, &stat);
    wb_graph_close(graph);
    if (!options->json)
        return wb_output_printf("nodes          %" PRIu64 "\narcs           %" PRIu64 "\nlongest list   %" PRIu64
                                "\nbytes          %" PRIu64 "\nbits per link  %.3f\n",
                                stat.nodes, stat.arcs, stat.longest, stat.bytes, bits_per_link(&stat));
    wb_output_object_begin(&j, NULL);
    wb_json_field_u64(&j, "nodes", stat.nodes);
    wb_json_field_u64(&j, "arcs", stat.arcs);
    wb_json_field_double(&j, "bits_per_link", bits_per_link(&stat));
    wb_json_field_u64(&j, "bytes", stat.bytes);
    wb_json_field_u64(&j, "longest", stat.longest);
    return wb_output_object_end(&j);
}

static bool go_on(void *context)
{
    (void)context;
    return !wb_stop_requested();
}

/* Reads the nodes of --from. */
static int read_seeds(const struct wb_options *options, const struct wb_graph_stat *stat, uint32_t **seeds_out,
                      size_t *count_out)
{
    const char *const *texts = wb_options_list(options, "from", count_out);
    uint32_t *seeds = *count_out ? wb_alloc(*count_out * sizeof *seeds) : NULL;

    *seeds_out = seeds;
    if (*count_out && !seeds)
        return WB_E_NOMEM;
    for (size_t i = 0; i < *count_out; i++) {
        size_t digits = strspn(texts[i], "0123456789");
        uint64_t node = digits <= 10 ? strtoull(texts[i], NULL, 10) : UINT64_MAX;
        if (digits == 0 || texts[i][digits] || node >= stat->nodes)
            return wb_fail(WB_E_INVALID, "--from %s: the graph has no such node", texts[i]);
        seeds[i] = (uint32_t)node;
    }
    return 0;
}

/* 17 digits give every value back exactly. */
static int write_ranks(const struct wb_options *options, const double *ranks, uint64_t count)
{
    int err = 0;

    for (uint64_t i = 0; i < count && err == 0; i++)
        err = options->json ? wb_output_printf("{\"node\":%" PRIu64 ",\"rank\":%.17g}\n", i, ranks[i])
                            : wb_output_printf("%.17g\n", ranks[i]);
    return err;
}

static int show_ranks(const struct wb_options *options)
{
    struct wb_graph_rank_options ranking = {.go_on = go_on};
    struct wb_graph_stat stat;
    struct wb_graph *graph;
    uint32_t *seeds = NULL;
    double *ranks = NULL;
    int err = open_graph(options, &graph);

    if (err < 0)
        return err;
    wb_graph_stat(graph, &stat);
    uint64_t memory = wb_options_number(options, "memory", 0), threads = wb_options_number(options, "threads", 0);
    ranking.memory_bytes = memory < SIZE_MAX ? (size_t)memory : SIZE_MAX;
    ranking.threads = threads < UINT32_MAX ? (unsigned)threads : UINT32_MAX;
    err = read_seeds(options, &stat, &seeds, &ranking.seed_count);
    ranking.seeds = seeds;
    if (err == 0) {
        ranks = wb_alloc((stat.nodes + 1) * sizeof *ranks);
        err = ranks ? wb_graph_rank(graph, &ranking, ranks, NULL) : WB_E_NOMEM;
    }
    if (err == 0)
        err = write_ranks(options, ranks, stat.nodes);
    wb_free(ranks);
    wb_free(seeds);
    wb_graph_close(graph);
    return err;
}

/* ---- actions ----------------------------------------------------------------------------------- */

static const struct graph_action {
    const char *name;
    size_t args;  /* arguments behind the name */
    bool options; /* takes the options of rank */
    int (*run)(const struct wb_options *options);
} graph_actions[] = {
    {"import", 1, false, import_graph},
    {"stat", 0, false, show_stat},
    {"rank", 0, true, show_ranks},
};

int wb_cmd_graph(const struct wb_options *options)
{
    const struct graph_action *action = NULL;

    for (size_t i = 0; i < sizeof graph_actions / sizeof *graph_actions; i++)
        if (strcmp(options->args[0], graph_actions[i].name) == 0)
            action = &graph_actions[i];
    if (!action)
        return wb_options_usage("graph: unknown action '%s'", options->args[0]);
    if (options->arg_count - 1 < action->args)
        return wb_options_usage("graph %s: an argument is missing", action->name);
    if (options->arg_count - 1 > action->args)
        return wb_options_usage("graph %s: does not take '%s'", action->name, options->args[1 + action->args]);
    for (size_t i = 0; options->command->options[i].name && !action->options; i++)
        if (options->values[i])
            return wb_options_usage("graph %s: does not take --%s", action->name, options->command->options[i].name);
    wb_stop_on_signals();
    return action->run(options);
}
