/*
 * series.c - finds, names, holds, publishes and removes the directories of a series.
 *
 * The name of a directory is its number in decimal, with zeros in front up to eight digits.
 */
#include "os/series.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/bytelock.h"
#include "os/path.h"
#include "os/random.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEW_PREFIX "new-"
#define OLD_PREFIX "old-"
#define HOLD_PREFIX "hold-"

enum {
    NAME_MAX_BYTES = 32,
    LOOKS_MAX = 16, /* how often a root is listed before we believe that it has no directory */
};

_Static_assert(NAME_MAX_BYTES > sizeof OLD_PREFIX + 10, "a prefix and the digits of any number fit");
_Static_assert(LOOKS_MAX > 1, "a directory may be replaced between two looks");

static void format_name(const char *prefix, uint32_t number, char name_out[NAME_MAX_BYTES])
{
    int len = snprintf(name_out, NAME_MAX_BYTES, "%s%08u", prefix, number);

    WB_CHECK(len >= 8);
    WB_CHECK(len < NAME_MAX_BYTES);
}

/* The number of a directory, from its name; 0 if the name is not one of these. */
static uint32_t number_of(const char *name)
{
    WB_CHECK(name != NULL);
    uint32_t number = (uint32_t)strtoull(name, NULL, 10);
    char canonical[NAME_MAX_BYTES];

    format_name("", number, canonical);
    return strcmp(canonical, name) == 0 ? number : 0;
}

typedef int (*each_number)(void *context, uint32_t number);

struct numbers {
    each_number each;
    void *context;
};

static int each_entry(void *context, const struct wb_path_entry *entry)
{
    const struct numbers *numbers = context;
    uint32_t number = number_of(entry->name);

    WB_CHECK(numbers->each != NULL);
    return number && entry->kind == WB_PATH_DIR ? numbers->each(numbers->context, number) : 0;
}

/* Calls each() for every directory, in any order. */
static int each_directory(const char *root, each_number each, void *context)
{
    WB_CHECK(each != NULL);
    struct numbers numbers = {each, context};

    WB_CHECK(root != NULL);
    return wb_path_kind(root) == WB_PATH_NONE ? 0 : wb_path_each(root, each_entry, &numbers);
}

static int note_newest(void *context, uint32_t number)
{
    uint32_t *newest = context;

    WB_CHECK(newest != NULL);
    WB_CHECK(number > 0);
    if (number > *newest)
        *newest = number;
    return 0;
}

int wb_series_newest(const char *root, uint32_t *number_out)
{
    int err = 0;

    WB_CHECK(root != NULL);
    *number_out = 0;
    /*
     * Once there is a directory there always is one. But readdir() is not atomic: it can miss the new directory and
     * then find the old one already removed. So if we see none, we look again.
     */
    for (int look = 0; look < LOOKS_MAX && err == 0 && *number_out == 0 && wb_path_kind(root) != WB_PATH_NONE; look++)
        err = each_directory(root, note_newest, number_out);
    return err;
}

char *wb_series_path(const char *root, uint32_t number)
{
    char name[NAME_MAX_BYTES];

    WB_CHECK(root != NULL);
    WB_CHECK(number > 0);
    format_name("", number, name);
    return wb_path_join(root, name);
}

static int remove_file(void *context, const struct wb_path_entry *entry)
{
    char *path = wb_path_join(context, entry->name);

    WB_CHECK(strchr(entry->name, '/') == NULL); /* only files of this directory are removed */
    if (!path)
        return WB_E_NOMEM;
    int err = wb_path_unlink(path);
    wb_free(path);
    return err;
}

int wb_series_remove(const char *path)
{
    WB_CHECK(path != NULL);
    WB_CHECK(path[0] != 0);
    if (wb_path_kind(path) == WB_PATH_NONE)
        return 0;
    int err = wb_path_each(path, remove_file, (void *)(uintptr_t)path);
    if (err == 0 && rmdir(path) != 0 && errno != ENOENT)
        err = wb_fail_errno("cannot remove the directory %s", path);
    return err;
}

/* ---- holding --------------------------------------------------------------------------------- */

int wb_series_share(const char *root, uint32_t number, struct wb_file *lock_out)
{
    WB_CHECK(root != NULL);
    char *path = wb_path_join(root, WB_SERIES_LOCK);
    int err = path ? wb_file_open(path, WB_FILE_READ, lock_out) : WB_E_NOMEM;

    WB_CHECK(number > 0);
    wb_free(path);
    if (err < 0)
        *lock_out = WB_FILE_INIT;
    if (err == WB_E_NOTFOUND)
        return 0;
    if (err == 0)
        err = wb_bytelock_share(lock_out, number);
    if (err < 0)
        wb_file_close(lock_out);
    return err;
}

/* The name in "hold-NAME"; NULL if the file is not a hold. */
static const char *holder_of(const struct wb_path_entry *entry)
{
    bool hold = entry->kind == WB_PATH_FILE && strncmp(entry->name, HOLD_PREFIX, strlen(HOLD_PREFIX)) == 0;

    return hold ? entry->name + strlen(HOLD_PREFIX) : NULL;
}

/* A name becomes part of the name of a file. */
static int check_holder(const char *holder)
{
    WB_CHECK(holder != NULL);
    size_t len = strlen(holder);

    for (size_t i = 0; i < len; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", holder[i]))
            len = 0;
    if (len == 0 || len > WB_HOLDER_MAX)
        return wb_fail(WB_E_INVALID,
                       "'%.100s' cannot be the name of a holder: use 1 to %d letters, digits, '.', '_', '-'", holder,
                       WB_HOLDER_MAX);
    return 0;
}

static char *hold_path(const char *path, const char *holder)
{
    char name[sizeof HOLD_PREFIX + WB_HOLDER_MAX];
    int len = snprintf(name, sizeof name, HOLD_PREFIX "%s", holder);

    WB_CHECK(len > 0);
    WB_CHECK((size_t)len < sizeof name);
    return wb_path_join(path, name);
}

/* Makes the file of a hold. The caller has locked the directory, so it is not removed meanwhile. */
static int make_hold(const char *path, const char *holder)
{
    WB_CHECK(path != NULL);
    struct wb_file file = WB_FILE_INIT;
    char *hold = hold_path(path, holder);
    int err = hold ? wb_file_open(hold, WB_FILE_WRITE | WB_FILE_CREATE, &file) : WB_E_NOMEM;

    if (err == 0)
        err = wb_file_sync(&file);
    wb_file_close(&file);
    wb_free(hold);
    return err < 0 ? err : wb_path_sync_dir(path);
}

int wb_series_hold(const char *root, uint32_t number, const char *holder)
{
    struct wb_file lock = WB_FILE_INIT;
    int err = check_holder(holder);

    WB_CHECK(root != NULL);
    WB_CHECK(number > 0);
    if (err < 0)
        return err;
    char *path = wb_series_path(root, number);
    err = path ? wb_series_share(root, number, &lock) : WB_E_NOMEM;
    if (err == 0)
        err = wb_path_kind(path) == WB_PATH_DIR ? make_hold(path, holder) : WB_E_NOTFOUND;
    wb_file_close(&lock);
    wb_free(path);
    return err;
}

int wb_series_release(const char *root, uint32_t number, const char *holder)
{
    int err = check_holder(holder);

    WB_CHECK(root != NULL);
    WB_CHECK(number > 0);
    if (err < 0)
        return err;
    char *path = wb_series_path(root, number), *hold = path ? hold_path(path, holder) : NULL;
    if (!hold)
        err = WB_E_NOMEM;
    else if (wb_path_kind(hold) != WB_PATH_FILE)
        err = WB_E_NOTFOUND;
    if (err == 0)
        err = wb_path_unlink(hold);
    if (err == 0)
        err = wb_path_sync_dir(path);
    /* A writer may remove what nobody holds any more at once, and the hold with it. */
    if (err == WB_E_IO && wb_path_kind(path) == WB_PATH_NONE)
        err = 0;
    wb_free(hold);
    wb_free(path);
    return err;
}

/* The context of list_holds_of() and list_hold(). */
struct hold_list {
    const char *root;
    uint32_t number;
    wb_series_held each;
    void *context;
};

static int list_hold(void *context, const struct wb_path_entry *entry)
{
    const struct hold_list *list = context;
    const char *holder = holder_of(entry);

    WB_CHECK(list->number > 0);
    return holder ? list->each(list->context, list->number, holder, entry->mtime_ms) : 0;
}

static int list_holds_of(void *context, uint32_t number)
{
    struct hold_list *list = context;
    char *path = wb_series_path(list->root, number);

    WB_CHECK(list->each != NULL);
    list->number = number;
    int err = path ? wb_path_each(path, list_hold, list) : WB_E_NOMEM;
    /* If the directory was removed while we looked, nobody held it. */
    if (err < 0 && path && wb_path_kind(path) == WB_PATH_NONE)
        err = 0;
    wb_free(path);
    return err;
}

int wb_series_holds(const char *root, wb_series_held each, void *context)
{
    WB_CHECK(root != NULL);
    WB_CHECK(each != NULL);
    struct hold_list list = {.root = root, .each = each, .context = context};

    return each_directory(root, list_holds_of, &list);
}

/* ---- writing --------------------------------------------------------------------------------- */

int wb_series_lock(const char *root, struct wb_file *lock_out)
{
    WB_CHECK(root != NULL);
    *lock_out = WB_FILE_INIT;
    int err = wb_path_mkdirs(root);
    return err < 0 ? err : wb_file_open_locked(root, WB_SERIES_LOCK, lock_out);
}

int wb_series_begin(const char *root, char **path_out)
{
    char name[NAME_MAX_BYTES];
    uint64_t chance = 0;

    WB_CHECK(root != NULL);
    wb_random_bytes(&chance, sizeof chance);
    snprintf(name, sizeof name, NEW_PREFIX "%016" PRIx64, chance);
    *path_out = wb_path_join(root, name);
    int err = *path_out ? wb_path_mkdirs(*path_out) : WB_E_NOMEM;
    if (err < 0) {
        wb_free(*path_out);
        *path_out = NULL;
    }
    return err;
}

int wb_series_publish(const char *root, const char *fresh, uint32_t number, bool *renamed_out)
{
    WB_CHECK(fresh != NULL);
    char *path = wb_series_path(root, number);
    int err = path ? wb_path_sync_dir(fresh) : WB_E_NOMEM;

    if (err == 0)
        err = wb_path_rename(fresh, path);
    wb_free(path);
    *renamed_out = err == 0;
    return err < 0 ? err : wb_path_sync_dir(root);
}

static int note_hold(void *context, const struct wb_path_entry *entry)
{
    bool *held = context;

    WB_CHECK(held != NULL);
    *held = *held || holder_of(entry);
    return 0;
}

/* What wb_series_clean() is doing. */
struct series_sweep {
    const char *root;
    const struct wb_file *lock;
    uint32_t keep; /* directories from this number on are kept */
    bool retired;  /* at least one has got another name */
};

/* Gives an old directory that nobody holds another name. Then nobody finds it any more. */
static int retire(void *context, uint32_t number)
{
    WB_CHECK(number > 0);
    struct series_sweep *sweep = context;
    char name[NAME_MAX_BYTES];
    int locked = number < sweep->keep ? wb_bytelock_try(sweep->lock, number) : 0;

    if (locked <= 0)
        return locked;
    format_name(OLD_PREFIX, number, name);
    char *path = wb_series_path(sweep->root, number), *retired = wb_path_join(sweep->root, name);
    bool held = false;
    int err = path && retired ? wb_path_each(path, note_hold, &held) : WB_E_NOMEM;
    if (err == 0 && !held)
        err = wb_path_rename(path, retired);
    sweep->retired = sweep->retired || (err == 0 && !held);
    wb_bytelock_release(sweep->lock, number);
    wb_free(path);
    wb_free(retired);
    return err;
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static int remove_leftover(void *context, const struct wb_path_entry *entry)
{
    const struct series_sweep *sweep = context;

    WB_CHECK(sweep->lock->fd >= 0); /* so what is unfinished belongs to writers that have died */
    if (entry->kind != WB_PATH_DIR || !(has_prefix(entry->name, NEW_PREFIX) || has_prefix(entry->name, OLD_PREFIX)))
        return 0;
    char *path = wb_path_join(sweep->root, entry->name);
    int err = path ? wb_series_remove(path) : WB_E_NOMEM;
    wb_free(path);
    return err;
}

int wb_series_clean(const char *root, uint32_t keep, const struct wb_file *lock)
{
    WB_CHECK(root != NULL);
    struct series_sweep sweep = {.root = root, .lock = lock, .keep = keep};

    WB_CHECK(lock->fd >= 0);
    int err = each_directory(root, retire, &sweep);
    /* A directory under its own name never lacks a file, not even after a power loss. */
    if (err == 0 && sweep.retired)
        err = wb_path_sync_dir(root);
    return err < 0 ? err : wb_path_each(root, remove_leftover, &sweep);
}
