/*
 * postings_output.c - puts ranges of terms one after the other into the three files of a set.
 */
#include "postings/dictionary.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

enum { POSTINGS_OUTPUT_MAGIC = 0x5742504f }; /* "WBPO" */

struct wb_postings_output {
    uint32_t magic;
    struct wb_dictionary_writer *dictionary;
    struct wb_blob_writer *lists, *positions;
    struct wb_error_copy error; /* the first error; code 0 if there was none */
};

void wb_postings_abandon(struct wb_postings_output *output)
{
    if (!output)
        return;
    WB_CHECK(output->magic == POSTINGS_OUTPUT_MAGIC);
    output->magic = 0;
    wb_dictionary_abandon(output->dictionary);
    wb_blob_abandon(output->lists);
    wb_blob_abandon(output->positions);
    wb_free(output);
}

int wb_postings_create(const char *dir, struct wb_postings_output **output_out)
{
    struct wb_postings_output *output = wb_alloc_zero(1, sizeof *output);
    char *dictionary = wb_path_join(dir, "dictionary"), *lists = wb_path_join(dir, "lists");
    char *positions = wb_path_join(dir, "positions");
    int err = output && dictionary && lists && positions ? 0 : WB_E_NOMEM;

    if (output)
        output->magic = POSTINGS_OUTPUT_MAGIC;
    if (err == 0)
        err = wb_dictionary_create(dictionary, &output->dictionary);
    if (err == 0)
        err = wb_blob_create(lists, LISTS_KIND, &output->lists);
    if (err == 0)
        err = wb_blob_create(positions, POSITIONS_KIND, &output->positions);
    wb_free(dictionary);
    wb_free(lists);
    wb_free(positions);
    if (err < 0) {
        wb_postings_abandon(output);
        output = NULL;
    }
    *output_out = output;
    return err;
}

int wb_postings_append(struct wb_postings_output *output, const struct wb_postings_part *part)
{
    int err;

    WB_CHECK(output->magic == POSTINGS_OUTPUT_MAGIC);
    if (output->error.code)
        return wb_error_restore(&output->error);
    err = wb_dictionary_append(output->dictionary, part);
    if (err == 0)
        err = wb_blob_append(output->lists, part->lists.ptr, part->lists.len);
    if (err == 0)
        err = wb_blob_append(output->positions, part->positions.ptr, part->positions.len);
    if (err < 0)
        wb_error_save(err, &output->error);
    return err;
}

int wb_postings_finish(struct wb_postings_output *output, struct wb_postings_stat *stat_out)
{
    struct wb_postings_stat stat = {0};
    int err;

    WB_CHECK(output->magic == POSTINGS_OUTPUT_MAGIC);
    err = output->error.code ? wb_error_restore(&output->error) : 0;
    /* Each of these frees its writer even if it fails. */
    if (err == 0) {
        err = wb_dictionary_finish(output->dictionary, &stat);
        output->dictionary = NULL;
    }
    if (err == 0) {
        err = wb_blob_finish(output->lists, &stat.lists_bytes);
        output->lists = NULL;
    }
    if (err == 0) {
        err = wb_blob_finish(output->positions, &stat.positions_bytes);
        output->positions = NULL;
    }
    if (stat_out)
        *stat_out = stat;
    wb_postings_abandon(output);
    return err;
}
