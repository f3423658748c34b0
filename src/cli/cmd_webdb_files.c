/*
 * cmd_webdb_files.c - webbase webdb import and export: reads the options, lets ingest load or write graphs and rows,
 * and shows the result.
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/cmd_webdb_files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "ingest/ingest.h"

#include <inttypes.h>

static size_t memory_of(const struct wb_options *options)
{
    uint64_t bytes = wb_options_size(options, "memory", WB_INGEST_MEMORY_BYTES);

    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

/* ---- export ------------------------------------------------------------------------------------ */

static int show_export(const struct wb_options *options, const struct wb_graph_export *graph)
{
    struct wb_json j;

    if (!options->json) {
        int err = wb_output_printf("%" PRIu64 " vert%s and %" PRIu64 " edge%s", graph->vertices,
                                   graph->vertices == 1 ? "ex" : "ices", graph->edges, wb_output_plural(graph->edges));
        if (err == 0 && graph->loose)
            err = wb_output_printf("; %" PRIu64 " link%s left out, because the target is not a known page",
                                   graph->loose, wb_output_plural(graph->loose));
        return err < 0 ? err : wb_output_write("\n", 1);
    }
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "vertices", graph->vertices);
    wb_json_field_u64(&j, "edges", graph->edges);
    wb_json_field_u64(&j, "loose", graph->loose);
    return wb_output_object_end(&j);
}

int wb_cmd_webdb_export(const struct wb_options *options)
{
    struct wb_graph_export_options o = {
        .dir = options->dir,
        .vertices = wb_options_text(options, "vertices"),
        .edges = wb_options_text(options, "edges"),
        .hosts = wb_options_flag(options, "hosts"),
        .force = wb_options_flag(options, "force"),
        .memory_bytes = memory_of(options),
    };
    struct wb_graph_export graph;

    if (!o.vertices || !o.edges)
        return wb_options_usage("webdb export: needs --vertices and --edges, the files to write");
    int err = wb_graph_export(&o, &graph);
    return err < 0 ? err : show_export(options, &graph);
}

/* ---- import ------------------------------------------------------------------------------------ */

static int show_error(void *context, const struct wb_ingest_error *error)
{
    (void)context;
    return wb_report_ingest(error);
}

/* The files are read one after the other; each has a progress line. */
struct load_show {
    const char *file;
    struct wb_progress progress;
};

static void show_progress(void *context, const struct wb_ingest_progress *progress)
{
    struct load_show *show = context;

    if (show->file != progress->file)
        wb_progress_init(&show->progress, "read");
    show->file = progress->file;
    wb_progress_update(&show->progress, progress->bytes_done, progress->bytes_total, progress->count);
}

/* Both kinds of import come to the same counts, of vertices and edges or of pages and links. */
static int write_words(const struct wb_ingest_load *t, const char *pages, const char *links)
{
    int err = wb_output_printf("%" PRIu64 " %s and %" PRIu64 " %s read: %" PRIu64 " page%s and %" PRIu64
                               " link%s are new", t->pages, pages, t->links, links, t->merge.pages_added,
                               wb_output_plural(t->merge.pages_added), t->merge.links_added,
                               wb_output_plural(t->merge.links_added));

    if (err == 0 && t->known)
        err = wb_output_printf("; %" PRIu64 " page%s had a content and kept it", t->known, wb_output_plural(t->known));
    if (err == 0 && t->loose)
        err = wb_output_printf("; %" PRIu64 " %s left out, because the source or target is unknown", t->loose, links);
    if (err == 0 && t->bad_lines)
        err = wb_output_printf("; %" PRIu64 " bad line%s", t->bad_lines, wb_output_plural(t->bad_lines));
    return err < 0 ? err : wb_output_write("\n", 1);
}

static int write_json(const struct wb_ingest_load *t, const char *pages, const char *links)
{
    struct wb_json j;

    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, pages, t->pages);
    wb_json_field_u64(&j, links, t->links);
    wb_json_field_u64(&j, "known", t->known);
    wb_json_field_u64(&j, "loose", t->loose);
    wb_json_field_u64(&j, "bad_lines", t->bad_lines);
    wb_json_field_u64(&j, "pages_added", t->merge.pages_added);
    wb_json_field_u64(&j, "links_added", t->merge.links_added);
    wb_json_field_u64(&j, "edition", t->merge.edition);
    return wb_output_object_end(&j);
}

int wb_cmd_webdb_import(const struct wb_options *options)
{
    struct wb_graph_import_options graph = {.dir = options->dir, .vertices = wb_options_text(options, "vertices"),
                                            .edges = wb_options_text(options,
                                                                     "edges"), .memory_bytes = memory_of(options)};
    struct wb_rows_import_options rows = {.dir = options->dir, .pages = wb_options_text(options, "pages"),
                                          .links = wb_options_text(options,
                                                                   "links"), .memory_bytes = memory_of(options)};
    bool is_graph = graph.vertices || graph.edges, is_rows = rows.pages || rows.links;
    struct load_show show = {.file = NULL};
    struct wb_ingest_sink sink = {.context = &show, .error = show_error, .progress = show_progress};
    struct wb_ingest_load loaded;

    if (is_graph == is_rows)
        return wb_options_usage("webdb import: needs --vertices and --edges, or --pages and --links");
    if (is_graph && !graph.vertices)
        return wb_options_usage("webdb import: --edges needs --vertices");
    int err = is_graph ? wb_graph_import(&graph, &sink, &loaded) : wb_rows_import(&rows, &sink, &loaded);
    wb_progress_clear();
    if (err == 0)
        err = (options->json ? write_json : write_words)(&loaded, is_graph ? "vertices" : "pages",
                                                         is_graph ? "edges" : "links");
    return err < 0 ? err : loaded.unfinished > 0;
}
