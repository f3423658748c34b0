/*
 * cmd_webdb_graph.c - webbase webdb import and export: graphs and rows, into webdb and out of it.
 *
 * Reads the options, lets graph_*.c or webdb_load.c do the work and says what came of it.
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/cmd_webdb_graph.h"
#include "cli/graph.h"
#include "cli/output.h"
#include "cli/webdb_load.h"

#include <inttypes.h>

static size_t memory_of(const struct wb_options *options)
{
    uint64_t bytes = wb_options_number(options, "memory", WB_GRAPH_MEMORY);

    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

/* ---- export -------------------------------------------------------------------------------------- */

static int show_export(const struct wb_options *options, const struct wb_graph_export *graph)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    if (!options->json) {
        int err = wb_output_printf("%" PRIu64 " vert%s and %" PRIu64 " edge%s", graph->vertex_count, graph->vertex_count == 1 ? "ex" : "ices",
                                   graph->edge_count, wb_plural(graph->edge_count));
        if (err == 0 && graph->loose)
            err = wb_output_printf("; %" PRIu64 " link%s to what is no page left out", graph->loose, wb_plural(graph->loose));
        return err < 0 ? err : wb_output_write("\n", 1);
    }
    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, "vertices", graph->vertex_count);
    wb_json_field_u64(&j, "edges", graph->edge_count);
    wb_json_field_u64(&j, "loose", graph->loose);
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

int wb_cmd_webdb_export(const struct wb_options *options)
{
    struct wb_graph_export graph = {.dir = options->dir, .vertices = wb_options_text(options, "vertices"),
                                    .edges = wb_options_text(options, "edges"), .hosts = wb_options_flag(options, "hosts"),
                                    .force = wb_options_flag(options, "force"), .memory_bytes = memory_of(options)};

    if (!graph.vertices || !graph.edges)
        return wb_usage("webdb export: needs --vertices and --edges, the files to write");
    int err = wb_graph_export(&graph);
    return err < 0 ? err : show_export(options, &graph);
}

/* ---- import -------------------------------------------------------------------------------------- */

/* What both kinds of import come to. */
struct taken {
    const char *first, *second;         /* what was read: "vertices", "edges" */
    uint64_t first_count, second_count;
    uint64_t bad_lines, loose, known;
    const struct wb_webdb_merge *merge;
};

static int show_words(const struct taken *t)
{
    int err = wb_output_printf("%" PRIu64 " %s and %" PRIu64 " %s read: %" PRIu64 " page%s and %" PRIu64 " link%s are new", t->first_count, t->first,
                               t->second_count, t->second, t->merge->pages_added, wb_plural(t->merge->pages_added), t->merge->links_added,
                               wb_plural(t->merge->links_added));

    if (err == 0 && t->known)
        err = wb_output_printf("; %" PRIu64 " page%s had a content and kept it", t->known, wb_plural(t->known));
    if (err == 0 && t->loose)
        err = wb_output_printf("; %" PRIu64 " %s without their source or target left out", t->loose, t->second);
    if (err == 0 && t->bad_lines)
        err = wb_output_printf("; %" PRIu64 " bad line%s", t->bad_lines, wb_plural(t->bad_lines));
    return err < 0 ? err : wb_output_write("\n", 1);
}

static int show_import(const struct wb_options *options, const struct taken *t)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    if (!options->json)
        return show_words(t);
    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, t->first, t->first_count);
    wb_json_field_u64(&j, t->second, t->second_count);
    wb_json_field_u64(&j, "known", t->known);
    wb_json_field_u64(&j, "loose", t->loose);
    wb_json_field_u64(&j, "bad_lines", t->bad_lines);
    wb_json_field_u64(&j, "pages_added", t->merge->pages_added);
    wb_json_field_u64(&j, "links_added", t->merge->links_added);
    wb_json_field_u64(&j, "generation", t->merge->generation);
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

static int import_graph(const struct wb_options *options)
{
    struct wb_graph_import graph = {.dir = options->dir, .vertices = wb_options_text(options, "vertices"),
                                    .edges = wb_options_text(options, "edges"), .memory_bytes = memory_of(options)};
    int err = wb_graph_import(&graph);
    struct taken taken = {.first = "vertices", .second = "edges", .first_count = graph.vertex_count, .second_count = graph.edge_count,
                          .bad_lines = graph.bad_lines, .loose = graph.loose, .known = graph.known, .merge = &graph.merge};

    if (err == 0)
        err = show_import(options, &taken);
    return err < 0 ? err : graph.unfinished > 0;
}

static int import_rows(const struct wb_options *options)
{
    struct wb_webdb_load load = {.dir = options->dir, .pages = wb_options_text(options, "pages"), .links = wb_options_text(options, "links"),
                                 .memory_bytes = memory_of(options)};
    int err = wb_webdb_load(&load);
    struct taken taken = {.first = "pages", .second = "links", .first_count = load.page_count, .second_count = load.link_count,
                          .bad_lines = load.bad_lines, .loose = load.merge.links_without_source, .merge = &load.merge};

    if (err == 0)
        err = show_import(options, &taken);
    return err < 0 ? err : load.unfinished > 0;
}

int wb_cmd_webdb_import(const struct wb_options *options)
{
    bool graph = wb_options_text(options, "vertices") || wb_options_text(options, "edges");
    bool rows = wb_options_text(options, "pages") || wb_options_text(options, "links");

    if (graph == rows)
        return wb_usage("webdb import: needs --vertices and --edges, or --pages and --links");
    if (graph && !wb_options_text(options, "vertices"))
        return wb_usage("webdb import: --edges mean nothing without --vertices");
    return graph ? import_graph(options) : import_rows(options);
}
