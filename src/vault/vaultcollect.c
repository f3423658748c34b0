/*
 * vaultcollect.c - takes one moment of a repository (vaultcollect.h). It changes nothing.
 *
 *   1  the newest generation and edition, and those that somebody holds by name: their directories are locked against
 *      removal, and their files are opened. The generation first, because it holds its edition
 *   2  named streams are read
 *   3  the store's state is held
 *   4  the logs of the journal and what else is small are opened or read; named streams once more
 *   5  if there is another generation or edition by now, or the generation's snapshot is not in the state: again
 *
 * The place of a named stream refers to a snapshot. What was read before the state was held has its snapshot in it; of
 * what was read afterwards, only "finished" is sure to fit. A stream that is new between the two is left for next time.
 */
#include "vault/vaultcollect.h"
#include "base/error.h"
#include "base/hash.h"
#include "index/index.h"
#include "os/clock.h"
#include "os/path.h"
#include "os/series.h"
#include "stream/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ATTEMPTS_MAX = 20,  /* every one but the last meets a publication */
    MISFITS_MAX = 3,    /* a snapshot that is still not there does not come any more */
    SMALL_BYTES = 4096, /* files up to here are read at once */
    STREAM_BYTES = 3 * 8192,
    SHELF_DIGITS = 16,
};
#define FRESH_MS 500

/* ---- files --------------------------------------------------------------------------------------------------- */

static void release_file(struct wb_collected_file *file)
{
    wb_file_close(&file->file);
    wb_buf_release(&file->bytes);
    wb_free(file->name);
}

static int read_into(const struct wb_file *file, uint64_t len, struct wb_buf *bytes_out)
{
    if (wb_buf_reserve(bytes_out, (size_t)len + 1) < 0)
        return WB_E_NOMEM;
    int err = wb_file_read_exact(file, 0, bytes_out->ptr, (size_t)len);
    bytes_out->len = err == 0 ? (size_t)len : 0;
    return err;
}

/* Opens a file; reads it if it is small, and of a log the head. The head first: it says how long the log is at least.
 */
static int take_file(const char *path, struct wb_collected_file *file)
{
    uint64_t size = 0;
    /* The stamp before the bytes: if they change in between, the file differs from its stamp next time. */
    int err = wb_folder_stamp(path, &file->stamp) ? wb_file_open(path, WB_FILE_READ, &file->file) : WB_E_NOTFOUND;

    if (err == 0)
        err = wb_file_size(&file->file, &size);
    if (err == 0 && file->grows)
        err = read_into(&file->file, size < WB_COLLECT_LOG_HEAD ? size : WB_COLLECT_LOG_HEAD, &file->bytes);
    if (err == 0 && file->grows && size >= WB_COLLECT_LOG_HEAD)
        err = wb_file_size(&file->file, &size);
    file->size = size;
    file->whole = file->grows ? size <= WB_COLLECT_LOG_HEAD : size <= SMALL_BYTES;
    if (err == 0 && file->whole && !file->grows)
        err = read_into(&file->file, size, &file->bytes);
    if (file->whole)
        wb_file_close(&file->file);
    return err;
}

/* Adds DIR/entry as folder/entry. WB_E_NOTFOUND if it has gone. */
static int add_file(struct wb_collected *collected, const char *dir, const char *folder, const char *entry, bool grows)
{
    struct wb_collected_file file = {.file = WB_FILE_INIT, .grows = grows, .name = wb_path_join(folder, entry)};
    char *path = wb_path_join(dir, entry);
    int err = file.name && path ? take_file(path, &file) : WB_E_NOMEM;

    if (err == 0)
        err = wb_vec_push(&collected->files, file);
    if (err < 0)
        release_file(&file);
    wb_free(path);
    return err;
}

int wb_collected_read(const struct wb_collected_file *file, uint64_t offset, size_t len, void *bytes_out)
{
    if (offset + len <= file->bytes.len) {
        memcpy(bytes_out, file->bytes.ptr + offset, len);
        return 0;
    }
    WB_CHECK(!file->whole);
    return wb_file_read_exact(&file->file, offset, bytes_out, len);
}

/* ---- folders ------------------------------------------------------------------------------------------------- */

/* Files of a directory that are taken: those whose names are of a kind. */
struct folder {
    struct wb_collected *collected;
    const char *dir, *name; /* on disk, and in the copy */
    bool (*takes)(const char *entry);
    bool grows;
};

static int take_entry(void *context, const struct wb_path_entry *entry)
{
    const struct folder *folder = context;

    if (entry->kind != WB_PATH_FILE || !folder->takes(entry->name))
        return 0;
    int err = add_file(folder->collected, folder->dir, folder->name, entry->name, folder->grows);
    return err == WB_E_NOTFOUND ? 0 : err; /* it went meanwhile; whether that matters is found out at the end */
}

static int take_folder(struct wb_collected *collected, const char *dir, const char *name, bool (*takes)(const char *),
                       bool grows)
{
    struct folder folder = {collected, dir, name, takes, grows};
    int err = wb_path_kind(dir) == WB_PATH_DIR ? wb_path_each(dir, take_entry, &folder) : 0;

    return err == WB_E_NOTFOUND ? 0 : err;
}

static bool takes_all(const char *entry)
{
    (void)entry;
    return true;
}

static bool takes_lock(const char *entry)
{
    return strcmp(entry, WB_SERIES_LOCK) == 0;
}

static bool takes_log(const char *entry)
{
    size_t digits = strspn(entry, "0123456789");

    return digits >= 8 && strcmp(entry + digits, ".wbe") == 0;
}

static bool takes_links(const char *entry)
{
    return strcmp(entry, "links") == 0;
}

static bool takes_shelf(const char *entry)
{
    return strlen(entry) == SHELF_DIGITS && strspn(entry, "0123456789abcdef") == SHELF_DIGITS;
}

static bool takes_stream(const char *entry)
{
    return wb_slice_ends(wb_slice_str(entry), WB_SLICE_LIT(".stream"));
}

static int take_under(struct wb_collected *collected, const char *dir, const char *name, bool (*takes)(const char *),
                      bool grows)
{
    char *path = wb_path_join(dir, name);
    int err = path ? take_folder(collected, path, name, takes, grows) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

/* ---- editions and generations -------------------------------------------------------------------------------- */

struct wb_held_numbers WB_VEC_OF(uint32_t);

static int note_number(void *context, uint32_t number, const char *holder, int64_t since_ms)
{
    struct wb_held_numbers *numbers = context;

    (void)holder;
    (void)since_ms;
    for (size_t i = 0; i < numbers->count; i++)
        if (numbers->items[i] == number)
            return 0;
    return wb_vec_push(numbers, number);
}

/* Takes a directory of a series, which stays as long as its lock. */
static int take_state(struct wb_collected *collected, const char *root, const char *folder, uint32_t number)
{
    struct wb_file lock = WB_FILE_INIT;
    char name[32], *path = wb_series_path(root, number);
    int err = path ? wb_series_share(root, number, &lock) : WB_E_NOMEM;

    if (err == 0 && lock.fd >= 0) {
        err = wb_vec_push(&collected->locks, lock);
        if (err < 0)
            wb_file_close(&lock);
    }
    snprintf(name, sizeof name, "%s/%08" PRIu32, folder, number);
    if (err == 0)
        err = take_folder(collected, path, name, takes_all, false);
    wb_free(path);
    return err;
}

static int take_series(struct wb_collected *collected, const char *root, const char *folder, uint32_t newest)
{
    struct wb_held_numbers numbers = WB_VEC_INIT;
    int err = newest ? wb_vec_push(&numbers, newest) : 0;

    if (err == 0 && wb_path_kind(root) == WB_PATH_DIR)
        err = wb_series_holds(root, note_number, &numbers);
    for (size_t i = 0; err == 0 && i < numbers.count; i++)
        err = take_state(collected, root, folder, numbers.items[i]);
    wb_vec_release(&numbers);
    return err;
}

/* Where the two series are. */
struct roots {
    char *webdb, *index;
};

static int find_roots(const char *dir, struct roots *roots)
{
    int err = wb_index_root(dir, &roots->index);

    roots->webdb = wb_path_join(dir, "webdb");
    return err < 0 ? err : roots->webdb ? 0 : WB_E_NOMEM;
}

static void release_roots(struct roots *roots)
{
    wb_free(roots->webdb);
    wb_free(roots->index);
}

static int find_newest(const struct roots *roots, uint32_t *generation_out, uint32_t *edition_out)
{
    int err = wb_series_newest(roots->index, generation_out);

    return err < 0 ? err : wb_series_newest(roots->webdb, edition_out);
}

/* ---- named streams ------------------------------------------------------------------------------------------- */

static bool is_stream(const struct wb_collected_file *file)
{
    return wb_slice_starts(wb_slice_str(file->name), WB_SLICE_LIT("streams/names/"));
}

/* Reads a stream's file until two readings agree, or what came last. The file has several slots, so any of them is
 * usable. */
static int reread_stream(const char *path, struct wb_collected_file *file)
{
    struct wb_buf again = WB_BUF_INIT;
    int err = 0;

    for (int i = 0; err == 0 && i < ATTEMPTS_MAX; i++) {
        wb_buf_clear(&again);
        err = wb_path_read(path, STREAM_BYTES, &again);
        bool same = err == 0 && wb_slice_equal(wb_buf_slice(&again), wb_buf_slice(&file->bytes));
        if (err == 0) {
            struct wb_buf swap = file->bytes;
            file->bytes = again;
            again = swap;
        }
        if (same)
            break;
    }
    wb_buf_release(&again);
    return err;
}

static int add_stream(void *context, const struct wb_path_entry *entry)
{
    const struct folder *folder = context;
    struct wb_collected_file file = {.file = WB_FILE_INIT, .whole = true};

    if (entry->kind != WB_PATH_FILE || !takes_stream(entry->name))
        return 0;
    char *path = wb_path_join(folder->dir, entry->name);
    file.name = wb_path_join(folder->name, entry->name);
    int err = path && file.name ? reread_stream(path, &file) : WB_E_NOMEM;
    file.size = file.bytes.len;
    if (err == 0)
        err = wb_vec_push(&folder->collected->files, file);
    if (err < 0)
        release_file(&file);
    wb_free(path);
    return err == WB_E_NOTFOUND || err == WB_E_LIMIT ? 0 : err;
}

static int take_streams(struct wb_collected *collected, const char *dir)
{
    char *path = wb_path_join(dir, "streams/names");
    struct folder folder = {collected, path, "streams/names", takes_stream, false};
    int err = path ? (wb_path_kind(path) == WB_PATH_DIR ? wb_path_each(path, add_stream, &folder) : 0) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

/* Streams that have ended since they were read. */
static int note_ended(struct wb_collected *collected, const char *dir)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < collected->files.count; i++) {
        struct wb_collected_file *file = &collected->files.items[i];
        if (!is_stream(file))
            continue;
        char *path = wb_path_join(dir, file->name);
        err = !path ? WB_E_NOMEM : wb_stream_named_has_ended(path) ? reread_stream(path, file) : 0;
        err = err == WB_E_NOTFOUND ? 0 : err;
        file->size = file->bytes.len;
        wb_free(path);
    }
    return err;
}

/* ---- the moment ---------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct wb_collected_file *)a)->name, ((const struct wb_collected_file *)b)->name);
}

void wb_collected_release(struct wb_collected *collected)
{
    wb_store_state_let_go(collected->state);
    for (size_t i = 0; i < collected->files.count; i++)
        release_file(&collected->files.items[i]);
    for (size_t i = 0; i < collected->locks.count; i++)
        wb_file_close(&collected->locks.items[i]);
    wb_vec_release(&collected->files);
    wb_vec_release(&collected->locks);
    collected->state = NULL;
}

/* What has to be read before the store's state is held. */
static int take_before(struct wb_collected *collected, const char *dir, const struct roots *roots)
{
    int err = find_newest(roots, &collected->generation, &collected->edition);

    if (err == 0)
        err = take_series(collected, roots->index, "index", collected->generation);
    if (err == 0)
        err = take_series(collected, roots->webdb, "webdb", collected->edition);
    return err < 0 ? err : take_streams(collected, dir);
}

static int take_after(struct wb_collected *collected, const char *dir)
{
    int err = take_under(collected, dir, "journal", takes_log, true);

    if (err == 0)
        err = take_under(collected, dir, "webdb", takes_lock, false);
    if (err == 0)
        err = take_under(collected, dir, "index", takes_lock, false);
    if (err == 0)
        err = take_under(collected, dir, "graph", takes_links, false);
    if (err == 0)
        err = take_under(collected, dir, "streams/shelf", takes_shelf, false);
    return err < 0 ? err : note_ended(collected, dir);
}

/* Whether all of it is of one moment. misfit_out: it is, but for a snapshot that the generation needs. */
static int agrees(struct wb_collected *collected, const char *dir, const struct roots *roots, bool *agrees_out,
                  bool *misfit_out)
{
    uint32_t generation, edition;
    struct wb_index_info info;
    int err = find_newest(roots, &generation, &edition);

    *agrees_out = err == 0 && generation == collected->generation && edition == collected->edition;
    *misfit_out = false;
    if (err < 0 || !*agrees_out || !generation ||
        wb_index_newest(dir, &info) < 0) /* an index that is damaged goes as it is */
        return err;
    *agrees_out = info.generation == generation;
    *misfit_out = *agrees_out && !wb_store_state_has_snapshot(collected->state, info.snapshot);
    return 0;
}

static int try_once(struct wb_collected *collected, const char *dir, const struct roots *roots,
                    const struct wb_buf *since)
{
    int err = take_before(collected, dir, roots);

    if (err == 0)
        err = wb_store_state_hold(dir, since, &collected->state);
    collected->time_ms = wb_clock_wall_ms();
    if (err == 0)
        err = take_after(collected, dir);
    return err;
}

int wb_collect(const char *dir, const struct wb_buf *since, struct wb_collected *collected_out)
{
    bool fits = false, misfit = false;
    struct roots roots = {0};
    int misfits = 0, err = 0;

    memset(collected_out, 0, sizeof *collected_out);
    for (int i = 0; err == 0 && !fits && i < ATTEMPTS_MAX; i++) {
        wb_collected_release(collected_out);
        release_roots(&roots);
        roots = (struct roots){0};
        err = find_roots(dir, &roots);
        if (err == 0)
            err = try_once(collected_out, dir, &roots, since);
        if (err == 0)
            err = agrees(collected_out, dir, &roots, &fits, &misfit);
        misfits += misfit;
        fits = fits && (!misfit || misfits == MISFITS_MAX);
    }
    release_roots(&roots);
    if (err == 0 && !fits)
        err = wb_fail(WB_E_BUSY, "%s: new editions or generations appear too fast for a backup", dir);
    if (err == 0 && collected_out->files.count)
        qsort(collected_out->files.items, collected_out->files.count, sizeof *collected_out->files.items,
              compare_names);
    if (err == 0)
        wb_store_state_facts(collected_out->state, &collected_out->facts);
    return err;
}

/* ---- looking ------------------------------------------------------------------------------------------------- */

struct look {
    uint64_t hash;
    int64_t newest_ms;
    bool (*takes)(const char *entry); /* NULL: everything */
};

static void add_look(struct look *look, const void *bytes, size_t len)
{
    look->hash = wb_hash64_seeded(bytes, len, look->hash);
}

static int look_entry(void *context, const struct wb_path_entry *entry)
{
    struct look *look = context;
    uint64_t facts[2] = {entry->size, (uint64_t)entry->mtime_ms};

    if (look->takes && !look->takes(entry->name))
        return 0;
    add_look(look, entry->name, strlen(entry->name));
    add_look(look, facts, sizeof facts);
    look->newest_ms = entry->mtime_ms > look->newest_ms ? entry->mtime_ms : look->newest_ms;
    return 0;
}

static bool takes_catalog(const char *entry)
{
    return strcmp(entry, "catalog.wbt") == 0 || strcmp(entry, "webbase.repo") == 0;
}

int wb_collect_look(const char *dir, uint64_t *look_out, bool *fresh_out)
{
    static const struct {
        const char *folder;
        bool (*takes)(const char *entry);
    } places[] = {
        {"", takes_catalog}, {"update", takes_catalog}, {"journal", takes_log},          {"webdb", NULL},
        {"index", NULL},     {"graph", takes_links},    {"streams/names", takes_stream}, {"streams/shelf", takes_shelf},
    };
    struct look look = {.hash = 0};
    int err = 0;

    for (size_t i = 0; err == 0 && i < sizeof places / sizeof *places; i++) {
        char *path = wb_path_join(dir, places[i].folder);
        look.takes = places[i].takes;
        err = !path ? WB_E_NOMEM : wb_path_kind(path) == WB_PATH_DIR ? wb_path_each(path, look_entry, &look) : 0;
        wb_free(path);
    }
    *look_out = look.hash;
    *fresh_out = look.newest_ms + FRESH_MS > wb_clock_wall_ms();
    return err == WB_E_NOTFOUND ? 0 : err;
}
