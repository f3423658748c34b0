/*
 * repository.c - opens, and if need be creates, the repository that an import writes to. It writes no page and no row.
 */
#include "ingest/repository.h"
#include "os/stop.h"

static int ensure_exists(const char *dir)
{
    struct wb_store_options defaults = {0};

    if (wb_store_exists(dir))
        return 0;
    int err = wb_store_create(dir, &defaults);
    /* Another import may have created it in the meantime. */
    return err < 0 && wb_store_exists(dir) ? 0 : err;
}

int wb_repository_open_store(const char *dir, struct wb_store **store_out)
{
    *store_out = NULL;
    int err = ensure_exists(dir);
    return err < 0 ? err : wb_store_open(dir, WB_STORE_WRITE, store_out);
}

static bool go_on(void *context, const char *step, uint64_t done, uint64_t total)
{
    (void)context, (void)step, (void)done, (void)total;
    return !wb_stop_requested();
}

int wb_repository_open_webdb(const char *dir, size_t memory_bytes, int64_t now_ms, struct wb_webdb_writer **writer_out)
{
    struct wb_webdb_options options = {.memory_bytes = memory_bytes, .progress = go_on, .now_ms = now_ms};

    *writer_out = NULL;
    int err = ensure_exists(dir);
    return err < 0 ? err : wb_webdb_writer_open(dir, &options, writer_out);
}
