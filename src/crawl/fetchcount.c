/*
 * fetchcount.c - a budget that outlives kill -9.
 *
 *   fetches-12   of run 12: a byte for each request for a page; its size is their number
 *
 * The byte is written before the request is sent, at the place that is the request's number, so that processes need no lock,
 * and one that dies in between has used up its number and asked for nothing. It is not synced: power loss may give back some.
 * The file is locked by the crawl and all its processes, so that the count of one that was killed stands still when it is read.
 */
#include "crawl/fetchcount.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { WAIT_MS = 15 * 1000, NAP_MS = 50 }; /* processes of a parent that was killed end within a moment */

#define PREFIX "fetches-"

struct sweep {
    const char *dir, *name;
};

static int remove_other(void *context, const struct wb_dir_entry *entry)
{
    const struct sweep *s = context;

    if (entry->kind != WB_PATH_FILE || strncmp(entry->name, PREFIX, sizeof PREFIX - 1) != 0 || strcmp(entry->name, s->name) == 0)
        return 0;
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(s->dir, entry->name);
    int err = path ? wb_file_open(path, WB_FILE_WRITE, &file) : WB_E_NOMEM;
    if (err == 0)
        err = wb_file_lock(&file, false);
    if (err == 0)
        err = wb_path_unlink(path);
    wb_file_close(&file);
    wb_free(path);
    return err == WB_E_BUSY || err == WB_E_NOTFOUND ? 0 : err;
}

static int lock_count(const struct wb_file *file, int64_t run)
{
    int err = wb_file_lock(file, false);

    for (int waited = 0; err == WB_E_BUSY && waited < WAIT_MS; waited += NAP_MS) {
        nanosleep(&(struct timespec){0, NAP_MS * 1000000L}, NULL);
        err = wb_file_lock(file, false);
    }
    return err == WB_E_BUSY ? wb_fail(WB_E_BUSY, "another crawl of the same list (run %" PRId64 ") is at work", run) : err;
}

int wb_fetchcount_open(const char *dir, int64_t run, struct wb_file *file_out, uint64_t *count_out)
{
    char name[64];
    struct sweep sweep = {dir, name};

    *file_out = WB_FILE_INIT;
    *count_out = 0;
    snprintf(name, sizeof name, PREFIX "%" PRId64, run);
    char *path = wb_path_join(dir, name);
    int err = path ? wb_dir_each(dir, remove_other, &sweep) : WB_E_NOMEM;
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, file_out);
    if (err == 0)
        err = lock_count(file_out, run);
    if (err == 0)
        err = wb_file_size(file_out, count_out);
    wb_free(path);
    return err;
}

int wb_fetchcount_note(const struct wb_file *file, uint64_t number)
{
    return wb_file_write_at(file, number, "+", 1);
}
