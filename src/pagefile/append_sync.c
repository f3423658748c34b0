/*
 * append_sync.c - syncs the segments that a writer has appended to (append_sync.h). Files of several nodes, each of
 * which may be a disk of its own, and many files of one are synced at the same time. A large commit changes its catalog
 * meanwhile: only the catalog's commit itself must come after the sync.
 */
#include "pagefile/append_sync.h"
#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

enum {
    THREADS_MAX = 16,
    SYNC_ONE_BY_ONE = 4, /* so many files of one node are synced one after the other */
};

static void sync_file(void *context)
{
    struct wb_append_sync_job *job = context;
    int err = wb_node_file_sync(job->file);

    if (err < 0)
        wb_error_save(err, &job->error);
}

static int compare_turns(const void *a, const void *b)
{
    const struct wb_append_sync_job *x = a, *y = b;

    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Puts the files of all nodes in turn, so that there is something to do for each of them from the first moment. */
static void take_turns(struct wb_append_sync_job *jobs, size_t count)
{
    WB_CHECK(count > 0);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            jobs[i].turn += jobs[k].node == jobs[i].node;
    qsort(jobs, count, sizeof *jobs, compare_turns);
}

int wb_append_sync_begin(struct wb_pagefile *files, bool more, struct wb_append_sync *sync_out)
{
    struct wb_pagefile_writer *writer = files->writer;
    int err = 0;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(writer->flight == NULL);
    *sync_out = (struct wb_append_sync){.jobs = wb_alloc_zero(writer->tails.count + 1, sizeof *sync_out->jobs)};
    if (!sync_out->jobs)
        return WB_E_NOMEM;
    for (size_t i = 0; i < writer->tails.count; i++)
        if (writer->tails.items[i].bytes > writer->tails.items[i].bytes_committed)
            sync_out->jobs[sync_out->count++] = (struct wb_append_sync_job){
                .file = &writer->tails.items[i].segment.file, .node = writer->tails.items[i].bin.node};
    size_t count = sync_out->count;
    bool together = count > SYNC_ONE_BY_ONE || (count > 1 && files->nodes->items.count > 1);
    if (together)
        take_turns(sync_out->jobs, count);
    if (together && !writer->sync_pool)
        err = wb_pool_new(THREADS_MAX, &writer->sync_pool);
    sync_out->pool = together ? writer->sync_pool : more ? writer->pool : NULL; /* the workers have nothing to do now */
    for (size_t i = 0; i < count && err == 0; i++)
        err = sync_out->pool ? wb_pool_submit(sync_out->pool, sync_file, &sync_out->jobs[i])
                             : wb_node_file_sync(sync_out->jobs[i].file);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        (void)wb_append_sync_end(files, sync_out);
        return wb_error_restore(&why);
    }
    return 0;
}

int wb_append_sync_end(struct wb_pagefile *files, struct wb_append_sync *sync)
{
    int err = 0;

    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(sync->jobs || sync->count == 0);
    if (sync->pool)
        wb_pool_wait(sync->pool);
    for (size_t i = 0; i < sync->count && err == 0; i++)
        if (sync->jobs[i].error.code < 0)
            err = wb_error_restore(&sync->jobs[i].error);
    wb_free(sync->jobs);
    *sync = (struct wb_append_sync){0};
    return err;
}
