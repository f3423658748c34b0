/* cmd_stat.c - webbase stat: counts of the whole repository. */
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "store/store.h"

#include <inttypes.h>

static int write_json(const struct wb_store_stat *stat)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_u64(&j, "pages", stat->pages);
    wb_json_field_u64(&j, "sites", stat->sites);
    wb_json_field_u64(&j, "bytes_pages", stat->bytes_pages);
    wb_json_field_u64(&j, "bytes_stored", stat->bytes_stored);
    wb_json_field_u64(&j, "bytes_dead", stat->bytes_dead);
    wb_json_field_u64(&j, "segments", stat->segments);
    wb_json_field_str(&j, "organisation", stat->organisation);
    wb_json_field_str(&j, "update", stat->update);
    wb_json_field_u64(&j, "epoch", stat->epoch);
    wb_json_field_u64(&j, "generation", stat->generation);
    wb_json_field_u64(&j, "pages_old", stat->pages_old);
    wb_json_field_u64(&j, "revisits", stat->revisits);
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

static int write_words(const char *dir, const struct wb_store_stat *stat)
{
    int err = wb_output_printf("repository    %s (%s, %s)\n"
                               "pages         %" PRIu64 "\n"
                               "sites         %" PRIu64 "\n"
                               "bytes_pages   %" PRIu64 "\n"
                               "bytes_stored  %" PRIu64,
                               dir, stat->organisation, stat->update, stat->pages, stat->sites, stat->bytes_pages,
                               stat->bytes_stored);

    if (err == 0 && stat->bytes_stored && stat->bytes_pages)
        err = wb_output_printf(" (pages %.1fx)", (double)stat->bytes_pages / (double)stat->bytes_stored);
    if (err == 0)
        err = wb_output_printf("\nbytes_dead    %" PRIu64 "\n"
                               "segments      %" PRIu64 "\n"
                               "epoch         %" PRIu32 "\n"
                               "generation    %" PRIu32 "\n",
                               stat->bytes_dead, stat->segments, stat->epoch, stat->generation);
    if (err == 0 && stat->pages_old)
        err = wb_output_printf("pages_old     %" PRIu64 " kept for the generation\n", stat->pages_old);
    if (err == 0 && stat->revisits)
        err = wb_output_printf("revisits      %" PRIu64 " whose original is not here\n", stat->revisits);
    return err;
}

int wb_cmd_stat(const struct wb_options *options)
{
    struct wb_store *store = NULL;
    struct wb_store_stat stat;

    int err = wb_store_open(options->dir, WB_STORE_READ, &store);
    if (err == 0)
        err = wb_store_stat(store, &stat);
    if (err == 0)
        err = options->json ? write_json(&stat) : write_words(options->dir, &stat);
    wb_store_close(store);
    return err;
}
