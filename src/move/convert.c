/*
 * convert.c - a conversion as a whole (convert.h). What its directory may be, and how it is marked while it is
 * unfinished, is in store/unfinished.h.
 */
#include "move/convert.h"
#include "base/check.h"
#include "base/mem.h"
#include "move/move.h"
#include "place/place.h"
#include "os/clock.h"
#include "os/folder.h"
#include "os/path.h"
#include "os/random.h"
#include "store/batch/batched.h"
#include "store/inside.h"
#include "move/mover.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the copy ------------------------------------------------------------------------------------------------ */

int wb_convert_progress(struct wb_convert *convert, uint64_t more)
{
    const struct wb_move_convert_sink *sink = convert->sink;

    convert->done += more;
    if (!sink->progress || sink->progress(sink->context, convert->done, convert->total))
        return 0;
    return wb_fail(WB_E_STOPPED, "stopped");
}

/* The two things that only a batch design has. */
static int remove_update_part(const char *dir)
{
    char *update = wb_path_join(dir, WB_BATCHED_UPDATE_DIR), *gate = wb_path_join(dir, WB_BATCHED_GATE_NAME);
    int err = update && gate ? wb_folder_remove_all(update) : WB_E_NOMEM;

    if (err == 0)
        err = wb_path_unlink(gate);
    wb_free(update);
    wb_free(gate);
    return err;
}

/* Everything but the superblock. */
static int copy_all(struct wb_convert *convert, const char *from, const char *to,
                    const struct wb_superblock *superblock, struct wb_store_options *options)
{
    struct wb_convert_source source = {0};
    struct wb_superblock made = *superblock;
    struct wb_store *store = NULL;
    struct wb_error_copy why;
    int err = wb_convert_source_open(from, &source);
    /* What waits in the source passes through update nodes that exist only for this. */
    bool transfer = err == 0 && source.superblock.design.batch && !made.design.batch;

    if (transfer)
        made.design = (struct wb_design){.batch = true, .read = made.design.read};
    const struct wb_organisation *organisation = wb_organisation_find(&made.design);
    options->design = made.design;
    options->history = source.summary.history;
    if (err == 0)
        err = organisation->create(to, &made, options);
    if (err == 0)
        err = organisation->open(to, &made, WB_STORE_WRITE, &store);
    if (err == 0)
        err = wb_convert_parts(convert, &source, store, transfer);
    if (err < 0)
        wb_error_save(err, &why);
    wb_store_close(store);
    wb_convert_source_close(&source);
    if (err < 0)
        return wb_error_restore(&why);
    return transfer ? remove_update_part(to) : 0;
}

/* The same while no transfer of the source can begin, if it is of a batch design. */
static int copy_behind_gate(struct wb_convert *convert, const char *from, const char *to,
                            const struct wb_superblock *superblock, struct wb_store_options *options)
{
    const struct wb_move_convert_sink *sink = convert->sink;
    struct wb_batched_gate gate = WB_BATCHED_GATE_INIT;
    struct wb_superblock source;
    int err = wb_superblock_read(from, &source);

    if (err == 0 && source.design.batch)
        err = wb_batched_gate_enter(from, false, &gate);
    if (err == 0 && sink->rest)
        err = sink->rest(sink->context, from, to);
    if (err == 0)
        err = copy_all(convert, from, to, superblock, options);
    if (source.design.batch)
        wb_batched_gate_leave(&gate);
    return err;
}

/* From an empty directory, which is locked, to a repository. */
static int make_copy(struct wb_convert *convert, const char *from, const char *to, struct wb_store_options *options)
{
    struct wb_superblock superblock = {.design = options->design, .created_ms = wb_clock_wall_ms()};

    wb_random_bytes(superblock.id, sizeof superblock.id);
    int err = wb_unfinished_mark(to, superblock.id, options);
    if (err == 0) {
        err = copy_behind_gate(convert, from, to, &superblock, options);
        if (err == 0)
            err = wb_superblock_write(to, &superblock);
        if (err < 0) {
            char why[WB_ERROR_MESSAGE_MAX];
            snprintf(why, sizeof why, "%s", err == WB_E_STOPPED ? "stopped" : wb_error_message());
            err = wb_fail(err, "%s; %s is unfinished: run convert again, or delete it", why, to);
        }
    }
    return err < 0 ? err : wb_unfinished_end(to);
}

int wb_move_convert(const char *from, const char *to, const struct wb_store_options *options,
                    const struct wb_move_convert_sink *sink, struct wb_move_convert_counts *counts_out)
{
    struct wb_convert convert = {.sink = sink};
    struct wb_store_options made = *options;
    struct wb_superblock source;
    struct wb_file lock = WB_FILE_INIT;
    bool unfinished = false;
    int err = wb_superblock_read(from, &source);

    *counts_out = (struct wb_move_convert_counts){0};
    if (err == 0)
        err = wb_unfinished_check(to, &unfinished);
    if (err == 0 && !unfinished)
        err = wb_nodes_check(to, options); /* before anything is made */
    if (err == 0)
        err = wb_convert_source_check(from);
    if (err == 0)
        err = wb_unfinished_lock(to, &lock);
    if (err == 0)
        err = wb_unfinished_check(to, &unfinished); /* another process may have been faster */
    if (err == 0 && unfinished)
        err = wb_unfinished_clear(to);
    if (err == 0 && unfinished)
        err = wb_nodes_check(to, options);
    if (err == 0)
        err = make_copy(&convert, from, to, &made);
    wb_file_close(&lock);
    wb_vec_release(&convert.lost_sites);
    if (err == 0)
        *counts_out = convert.counts;
    return err;
}
