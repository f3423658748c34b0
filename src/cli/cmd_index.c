/*
 * cmd_index.c - webbase index: lets the cycle build the next generation, and shows what it has become.
 *
 *   generation 3: 1500 pages (20 of them read), 4200 URLs, 310022 words, 18 MB in 2.1 s
 *   {"event":"done","generation":3,"snapshot":5,...}
 *   nothing new: generation 3 has everything, 1500 pages and 4200 URLs
 *   {"event":"unchanged","generation":3}     and then what `done` says about generation 3
 */
#include "base/error.h"
#include "base/json.h"
#include "base/vec.h"
#include "cli/cycle_show.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cycle/cycle.h"
#include "os/stop.h"
#include "query/query.h"

#include <inttypes.h>
#include <string.h>

static int write_json(const struct wb_index_result *result)
{
    const struct wb_index_info *info = &result->info;
    struct wb_json j;
    int err = 0;

    if (result->unchanged) {
        wb_output_object_begin(&j, "unchanged");
        wb_json_field_u64(&j, "generation", info->generation);
        err = wb_output_object_end(&j);
    }
    if (err < 0)
        return err;
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "generation", info->generation);
    wb_json_field_u64(&j, "snapshot", info->snapshot);
    wb_json_field_u64(&j, "edition", info->edition);
    wb_json_field_u64(&j, "pages", info->pages);
    wb_json_field_u64(&j, "urls", info->urls);
    wb_json_field_u64(&j, "links", info->arcs);
    wb_json_field_u64(&j, "terms", info->terms);
    wb_json_field_u64(&j, "words", info->words);
    wb_json_field_u64(&j, "read", result->read);
    wb_json_field_u64(&j, "bytes_read", result->html_bytes);
    wb_json_field_u64(&j, "unknown", result->unknown);
    wb_json_field_u64(&j, "damaged", result->damaged);
    wb_json_field_u64(&j, "bytes", info->bytes);
    wb_json_field_u64(&j, "bytes_dictionary", result->postings.dictionary_bytes);
    wb_json_field_u64(&j, "bytes_lists", result->postings.lists_bytes);
    wb_json_field_u64(&j, "bytes_positions", result->postings.positions_bytes);
    wb_json_field_u64(&j, "runs", result->runs);
    wb_json_field_double(&j, "seconds_pages", result->scan_s);
    wb_json_field_double(&j, "seconds_links", result->links_s);
    wb_json_field_double(&j, "seconds_lists", result->merge_s);
    wb_json_field_double(&j, "seconds", result->total_s);
    return wb_output_object_end(&j);
}

static int write_words(const struct wb_index_result *result)
{
    const struct wb_index_info *info = &result->info;

    if (result->unchanged)
        return wb_output_printf("nothing new: generation %" PRIu32 " has everything, %" PRIu64 " page%s and %" PRIu64
                                " URL%s\n",
                                info->generation, info->pages, wb_output_plural(info->pages), info->urls,
                                wb_output_plural(info->urls));
    return wb_output_printf("generation %" PRIu32 ": %" PRIu64 " page%s (%" PRIu64 " read), %" PRIu64 " URL%s, %" PRIu64
                            " link%s, %" PRIu64 " terms; %.1f MB in %.1f s\n",
                            info->generation, info->pages, wb_output_plural(info->pages), result->read, info->urls,
                            wb_output_plural(info->urls), info->arcs, wb_output_plural(info->arcs), info->terms,
                            (double)info->bytes / 1e6, result->total_s);
}

struct column_sources WB_VEC_OF(struct wb_index_column_source);

/* Reads the values of --column or --rank: NAME=FILE, or NAME= to remove it. */
static int read_columns(const struct wb_options *options, const char *option, struct column_sources *columns)
{
    size_t count;
    const char *const *list = wb_options_list(options, option, &count);
    int err = 0;

    for (size_t i = 0; err == 0 && i < count; i++) {
        const char *equals = strchr(list[i], '=');
        if (!equals)
            return wb_fail(WB_E_INVALID, "--%s %s: write NAME=FILE", option, list[i]);
        struct wb_index_column_source column = {.name = wb_slice(list[i], (size_t)(equals - list[i])),
                                                .path = equals[1] ? equals + 1 : NULL,
                                                .rank = option[0] == 'r'};
        /* A column that is to be removed may be older than the meaning that its name has now. */
        err = column.path ? wb_ask_check_column(column.name) : 0;
        for (size_t j = 0; err == 0 && j < columns->count; j++)
            if (wb_slice_equal(columns->items[j].name, column.name))
                err = wb_fail(WB_E_INVALID, "--%s %.*s is given twice", option, WB_SLICE_ARG(column.name));
        if (err == 0)
            err = wb_vec_push(columns, column);
    }
    return err;
}

int wb_cmd_index(const struct wb_options *options)
{
    struct wb_update_options update = {.dir = options->dir,
                                       .dispenser = wb_options_text(options, "dispenser"),
                                       .memory_bytes = wb_options_size(options, "memory", 0)};
    struct wb_index_options index = {.index_dir = wb_options_text(options, "index-dir"),
                                     .from_scratch = wb_options_flag(options, "from-scratch"),
                                     .if_changed = !wb_options_flag(options, "force")};
    struct column_sources columns = WB_VEC_INIT;
    struct wb_index_result result;
    struct wb_cycle_show show;
    int err = read_columns(options, "column", &columns);

    if (err == 0)
        err = read_columns(options, "rank", &columns);

    struct wb_cycle_sink sink = wb_cycle_show_init(&show, "index");
    wb_stop_on_signals();
    index.columns = columns.items;
    index.column_count = columns.count;
    if (err == 0)
        err = wb_cycle_index(&update, &index, &sink, &result);
    wb_cycle_show_end(&show);
    if (err == 0)
        err = options->json ? write_json(&result) : write_words(&result);
    if (err == 0 && result.damaged)
        err = wb_fail(WB_E_CORRUPT, "what is in %" PRIu64 " damaged place%s is not in the index; 'webbase verify' "
                      "shows all damage", result.damaged, wb_output_plural(result.damaged));
    wb_vec_release(&columns);
    return err;
}
