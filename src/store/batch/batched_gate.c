/*
 * batched_gate.c - keeps a transfer and scans apart, across processes, by locks on two bytes of the file transfer.gate:
 *
 *   byte 0   a transfer has it exclusively all the time; a scan takes it, shared, for the moment in which it enters
 *   byte 1   a scan has it, shared, until it ends; a transfer waits until it can have it exclusively
 *
 * A process that has a scan under way may begin more of them even if a transfer waits: otherwise a reader that needs
 * several scans at once and the transfer would wait for each other.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/bytelock.h"
#include "os/clock.h"
#include "os/path.h"
#include "os/stop.h"
#include "store/batch/batched.h"

#include <pthread.h>
#include <time.h>

enum { GATE_INTENT = 0, GATE_SCANS = 1, PAUSE_MS = 5 };

/* The scans of this process that have entered a gate, by its path. */
struct gate_entry {
    struct gate_entry *next;
    char *path;
};
static struct gate_entry *entries;
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;

static void wait_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
}

int wb_batched_gate_create(const char *dir)
{
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(dir, WB_BATCHED_GATE_NAME);
    int err = path ? wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file) : WB_E_NOMEM;

    if (err == 0)
        err = wb_file_sync(&file);
    wb_file_close(&file);
    wb_free(path);
    return err;
}

static bool has_entered(const char *path)
{
    WB_CHECK(path != NULL);
    for (const struct gate_entry *e = entries; e; e = e->next)
        if (strcmp(e->path, path) == 0)
            return true;
    return false;
}

static int refuse(const char *dir)
{
    return wb_fail(WB_E_BUSY, "a transfer is under way in %s: try again when it is done", dir);
}

/* Tries to enter; returns 1, 0 if a transfer is under way, or an error. The caller has the lock of the entries. */
static int try_to_enter(struct wb_batched_gate *gate, struct gate_entry *entry)
{
    bool inside = has_entered(entry->path);
    int got = inside ? 1 : wb_bytelock_try_share(&gate->file, GATE_INTENT);

    WB_CHECK(gate->file.fd >= 0);
    if (got <= 0)
        return got;
    got = wb_bytelock_try_share(&gate->file, GATE_SCANS);
    if (!inside)
        wb_bytelock_release(&gate->file, GATE_INTENT);
    if (got <= 0)
        return got;
    entry->next = entries;
    entries = entry;
    return 1;
}

int wb_batched_gate_enter(const char *dir, bool at_once, struct wb_batched_gate *gate_out)
{
    struct gate_entry *entry = wb_alloc_zero(1, sizeof *entry);
    char *path = wb_path_join(dir, WB_BATCHED_GATE_NAME);
    int got = entry && path ? 0 : WB_E_NOMEM;

    *gate_out = WB_BATCHED_GATE_INIT;
    if (got == 0)
        got = wb_file_open(path, WB_FILE_READ, &gate_out->file);
    if (got == WB_E_NOTFOUND) /* the repository was copied without it */
        got = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &gate_out->file);
    if (got == 0)
        got = (entry->path = wb_path_real(path)) ? 0 : WB_E_NOMEM;
    while (got == 0) {
        pthread_mutex_lock(&entries_lock);
        got = try_to_enter(gate_out, entry);
        pthread_mutex_unlock(&entries_lock);
        if (got == 0 && at_once)
            got = refuse(dir);
        if (got == 0 && wb_stop_requested())
            got = wb_fail(WB_E_STOPPED, "stopped while a transfer is under way");
        if (got == 0)
            wait_a_moment();
    }
    wb_free(path);
    if (got > 0) {
        gate_out->entered = entry->path;
        return 0;
    }
    if (entry)
        wb_free(entry->path);
    wb_free(entry);
    wb_file_close(&gate_out->file);
    return got;
}

int wb_batched_gate_look(const char *dir)
{
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(dir, WB_BATCHED_GATE_NAME);
    int err = path ? wb_file_open(path, WB_FILE_READ, &file) : WB_E_NOMEM;

    if (err == 0) {
        int got = wb_bytelock_try_share(&file, GATE_INTENT);
        err = got < 0 ? got : got == 0 ? refuse(dir) : 0;
    }
    wb_file_close(&file);
    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err; /* the repository was copied without it */
}

int wb_batched_gate_shut(const char *dir, struct wb_batched_gate *gate_out)
{
    char *path = wb_path_join(dir, WB_BATCHED_GATE_NAME);
    int err = path ? 0 : WB_E_NOMEM, got = 0;

    *gate_out = WB_BATCHED_GATE_INIT;
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &gate_out->file);
    wb_free(path);
    /* Scans that are entering have the byte for a moment. Another transfer has it for long: that is how we know. */
    for (int tries = 0; err == 0 && got == 0 && tries < 100; tries++) {
        got = wb_bytelock_try(&gate_out->file, GATE_INTENT);
        err = got < 0 ? got : 0;
        if (got == 0)
            wait_a_moment();
    }
    if (err == 0 && got == 0)
        err = wb_fail(WB_E_BUSY, "%s: another transfer is under way", dir);
    if (err < 0)
        wb_file_close(&gate_out->file);
    WB_CHECK((err == 0) == (gate_out->file.fd >= 0));
    return err;
}

int wb_batched_gate_clear(struct wb_batched_gate *gate, wb_store_progress progress, void *context)
{
    int got;

    WB_CHECK(gate->file.fd >= 0);
    WB_CHECK(!gate->entered);
    while ((got = wb_bytelock_try(&gate->file, GATE_SCANS)) == 0) {
        if (progress && !progress(context, 0, 0))
            return wb_fail(WB_E_STOPPED, "stopped while scans were under way; nothing was transferred");
        wait_a_moment();
    }
    return got < 0 ? got : 0;
}

void wb_batched_gate_leave(struct wb_batched_gate *gate)
{
    struct gate_entry **at = &entries;

    pthread_mutex_lock(&entries_lock);
    while (gate->entered && *at && (*at)->path != gate->entered)
        at = &(*at)->next;
    struct gate_entry *entry = gate->entered ? *at : NULL;
    WB_CHECK(!gate->entered || entry);
    if (entry)
        *at = entry->next;
    wb_file_close(&gate->file); /* which gives up the locks; before another scan relies on them */
    pthread_mutex_unlock(&entries_lock);
    wb_free(gate->entered);
    wb_free(entry);
    gate->entered = NULL;
}
