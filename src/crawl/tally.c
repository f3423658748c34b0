/*
 * tally.c - the memory that the processes of a crawl share, and the count of requests that outlives it.
 *
 *   fetches-12   for run 12: one byte for each request for a page, so the size of the file is their number
 *
 * The byte is written before the request is sent, at the offset that is the request's number. So processes need no
 * lock, and a process that dies in between has used up its number and asked for nothing. The file is not synced:
 * power loss may give some requests back. The crawl and all its processes hold a lock on the file, so nobody reads
 * the count of a killed crawl before its last process has ended.
 */
#include "crawl/tally.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define FETCHES_PREFIX "fetches-"

enum { LOCK_WAIT_MS = 15 * 1000, LOCK_NAP_MS = 50 }; /* the processes of a killed parent end within a moment */

const char *wb_crawl_error_word(int error)
{
    static const char *const words[] = {
#define WB_CRAWL_ERROR_WORD(name, word) [name - WB_CRAWL_FIRST] = word,
        WB_CRAWL_ERRORS(WB_CRAWL_ERROR_WORD)
#undef WB_CRAWL_ERROR_WORD
    };

    WB_CHECK(error >= 0 && error < WB_CRAWL_ERROR_COUNT);
    return error <= WB_CRAWL_FIRST ? wb_fetch_error_word((enum wb_fetch_error)error) : words[error - WB_CRAWL_FIRST];
}

struct wb_tally *wb_tally_new(void)
{
    void *memory = mmap(NULL, sizeof(struct wb_tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        wb_fail_nomem();
        return NULL;
    }
    return memory;
}

void wb_tally_free(struct wb_tally *tally)
{
    if (tally)
        munmap(tally, sizeof *tally);
}

uint64_t wb_tally_subject(struct wb_slice url)
{
    return wb_hash64(url.ptr, url.len) | 1;
}

void wb_tally_blame(struct wb_tally *tally, uint64_t subject)
{
    unsigned count = atomic_load(&tally->bad_count);

    WB_CHECK(count <= WB_TALLY_BAD_MAX);
    if (count == WB_TALLY_BAD_MAX || wb_tally_is_bad(tally, subject))
        return;
    atomic_store(&tally->bad[count], subject);
    atomic_store(&tally->bad_count, count + 1);
}

bool wb_tally_is_bad(const struct wb_tally *tally, uint64_t subject)
{
    unsigned count = atomic_load(&tally->bad_count);

    WB_CHECK(count <= WB_TALLY_BAD_MAX);
    for (unsigned i = 0; i < count; i++)
        if (atomic_load(&tally->bad[i]) == subject)
            return true;
    return false;
}

/* ---- requests of a fetch list's run ------------------------------------------------------------------------------ */

/* The counts of other runs that are to be removed. */
struct sweep {
    const char *dir, *name;
};

static int remove_other(void *context, const struct wb_path_entry *entry)
{
    const struct sweep *s = context;

    if (entry->kind != WB_PATH_FILE || strcmp(entry->name, s->name) == 0 ||
        strncmp(entry->name, FETCHES_PREFIX, sizeof FETCHES_PREFIX - 1) != 0)
        return 0;
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(s->dir, entry->name);
    int err = path ? wb_file_open(path, WB_FILE_WRITE, &file) : WB_E_NOMEM;
    if (err == 0)
        err = wb_file_lock(&file, false);
    /* Another crawl may have removed the file before us. Then a new file may have this name, and must stay. */
    if (err == 0 && !wb_file_unlinked(&file))
        err = wb_path_unlink(path);
    wb_file_close(&file);
    wb_free(path);
    return err == WB_E_BUSY || err == WB_E_NOTFOUND ? 0 : err;
}

static int lock_count(const struct wb_file *file, int64_t run)
{
    int err = wb_file_lock(file, false);

    for (int waited = 0; err == WB_E_BUSY && waited < LOCK_WAIT_MS; waited += LOCK_NAP_MS) {
        nanosleep(&(struct timespec){0, LOCK_NAP_MS * 1000000L}, NULL);
        err = wb_file_lock(file, false);
    }
    if (err == WB_E_BUSY)
        return wb_fail(WB_E_BUSY, "another crawl of the same list (run %" PRId64 ") is at work", run);
    return err;
}

/* Returns 1 if the crawl of another list removed the file before we had locked it: it must be created again. */
static int open_count(const char *path, int64_t run, struct wb_file *file_out)
{
    int err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, file_out);

    if (err == 0)
        err = lock_count(file_out, run);
    if (err == 0 && wb_file_unlinked(file_out)) {
        wb_file_close(file_out);
        return 1;
    }
    return err;
}

int wb_tally_open_fetches(const char *dir, int64_t run, struct wb_file *file_out, uint64_t *count_out)
{
    char name[64];
    struct sweep sweep = {dir, name};

    WB_CHECK(run > 0);
    *file_out = WB_FILE_INIT;
    *count_out = 0;
    snprintf(name, sizeof name, FETCHES_PREFIX "%" PRId64, run);
    char *path = wb_path_join(dir, name);
    int err = path ? wb_path_each(dir, remove_other, &sweep) : WB_E_NOMEM;
    if (err == 0)
        do
            err = open_count(path, run, file_out);
        while (err == 1);
    if (err == 0)
        err = wb_file_size(file_out, count_out);
    wb_free(path);
    return err;
}

int wb_tally_count_fetch(struct wb_tally *tally, uint64_t max, const struct wb_file *file)
{
    unsigned long long number = atomic_load(&tally->fetches);

    do {
        if (max && number >= max)
            return 0;
    } while (!atomic_compare_exchange_weak(&tally->fetches, &number, number + 1));
    int err = file->fd >= 0 ? wb_file_write_at(file, number, "+", 1) : 0;
    return err < 0 ? err : 1;
}

/* ---- orders of an operator --------------------------------------------------------------------------------------- */

const struct wb_tally_order *wb_tally_order_find(const struct wb_tally_orders *orders, uint64_t site)
{
    unsigned count = atomic_load(&orders->count);

    WB_CHECK(count <= WB_TALLY_ORDERS_MAX);
    for (unsigned i = 0; i < count; i++)
        if (atomic_load(&orders->items[i].site) == site)
            return &orders->items[i];
    return NULL;
}

/* The order of a site, which is added if it has none. NULL: the list is full. */
static struct wb_tally_order *find_or_add(struct wb_tally_orders *orders, uint64_t site)
{
    unsigned count = atomic_load(&orders->count);

    WB_CHECK(count <= WB_TALLY_ORDERS_MAX);
    for (unsigned i = 0; i < count; i++)
        if (atomic_load(&orders->items[i].site) == site)
            return &orders->items[i];
    if (count == WB_TALLY_ORDERS_MAX) {
        wb_fail(WB_E_LIMIT, "more than %d sites have been stopped or slowed down in this crawl", WB_TALLY_ORDERS_MAX);
        return NULL;
    }
    atomic_store(&orders->items[count].site, site);
    atomic_store(&orders->count, count + 1);
    return &orders->items[count];
}

int wb_tally_order_stop(struct wb_tally_orders *orders, uint64_t site)
{
    struct wb_tally_order *order = find_or_add(orders, site);

    if (!order)
        return WB_E_LIMIT;
    atomic_store(&order->stopped, true);
    atomic_fetch_add(&orders->changes, 1);
    return 0;
}

int wb_tally_order_delay(struct wb_tally_orders *orders, uint64_t site, int64_t delay_ms)
{
    WB_CHECK(delay_ms >= 0);
    struct wb_tally_order *order = find_or_add(orders, site);

    if (!order)
        return WB_E_LIMIT;
    atomic_store(&order->delay_ms, delay_ms);
    atomic_fetch_add(&orders->changes, 1);
    return 0;
}
