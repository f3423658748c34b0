/*
 * edition.c - finds, names, holds and removes the directories of editions; and finds contents and ids in them.
 *
 * The name of a directory is the number of the edition in decimal, with zeros in front up to eight digits. This file
 * never opens a table, and it never creates an edition: publish.c does that.
 *
 * An edition that is not the newest exists as long as it is held:
 *   by an open handle   a shared lock on the byte of its number in webdb/lock. It ends with the process
 *   by a name           an empty file hold-NAME in its directory. It stays until it is released
 *
 * A writer takes the byte exclusively, looks for names, and renames the directory in one step. Whoever wants to hold
 * the edition takes the shared lock first and looks for the directory afterwards. So an edition is either held or gone,
 * whatever dies in between.
 */
#include "webdb/edition.h"
#include "base/bytes.h"
#include "os/bytelock.h"
#include "os/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    NAME_MAX_BYTES = 32,
    LOOKS_MAX = 16, /* how often a directory is listed before we believe that it has no edition */
};

_Static_assert(NAME_MAX_BYTES > 10, "the digits of any number fit, and a zero after them");
_Static_assert(LOOKS_MAX > 1, "an edition may be replaced between two looks");

static void format_name(uint32_t number, char name_out[NAME_MAX_BYTES])
{
    int len = snprintf(name_out, NAME_MAX_BYTES, "%08u", number);

    WB_CHECK(len >= 8);
    WB_CHECK(len < NAME_MAX_BYTES);
}

uint32_t wb_edition_number(const char *name)
{
    uint32_t number = (uint32_t)strtoull(name, NULL, 10);
    char canonical[NAME_MAX_BYTES];

    WB_CHECK(name != NULL);
    format_name(number, canonical);
    return strcmp(canonical, name) == 0 ? number : 0;
}

static int note_newest(void *context, const struct wb_path_entry *entry)
{
    uint32_t *newest = context, number = wb_edition_number(entry->name);

    WB_CHECK(entry->name != NULL);
    WB_CHECK(newest != NULL);
    if (entry->kind == WB_PATH_DIR && number > *newest)
        *newest = number;
    return 0;
}

int wb_edition_newest(const char *dir, uint32_t *number_out)
{
    char *path = wb_path_join(dir, WB_WEBDB_DIR);
    int err = 0;

    WB_CHECK(dir != NULL);
    *number_out = 0;
    if (!path)
        return WB_E_NOMEM;
    /*
     * Once there is an edition there always is one. But readdir() is not atomic: it can miss the new directory and then
     * find the old one already removed. So if we see none, we look again.
     */
    for (int look = 0; look < LOOKS_MAX && err == 0 && *number_out == 0 && wb_path_kind(path) != WB_PATH_NONE; look++)
        err = wb_path_each(path, note_newest, number_out);
    wb_free(path);
    return err;
}

int wb_edition_newest_manifest(const char *dir, struct wb_manifest *manifest_out)
{
    WB_CHECK(dir != NULL);
    *manifest_out = (struct wb_manifest){.rows = 0};
    for (;;) {
        uint32_t number, newer;
        int err = wb_edition_newest(dir, &number);
        if (err < 0 || !number)
            return err;
        WB_CHECK(manifest_out->logs.items == NULL); /* a failed read has left nothing */
        char *edition = wb_edition_path(dir, number);
        char *path = edition ? wb_path_join(edition, WB_MANIFEST_FILE) : NULL;
        err = path ? wb_manifest_read(path, manifest_out) : WB_E_NOMEM;
        wb_free(path);
        wb_free(edition);
        /* If an update replaced the edition while we looked, read its successor. */
        if (err != WB_E_NOTFOUND || wb_edition_newest(dir, &newer) < 0 || newer == number)
            return err;
    }
}

unsigned wb_edition_kind(const struct wb_webdb_page *page)
{
    bool loaded = page->flags & WB_PAGE_LOADED;

    if (page->flags & WB_PAGE_TARGET)
        return WB_IS_TARGET;
    return WB_IS_PAGE | (page->has_content && !loaded ? WB_IS_STORED : 0) | (loaded ? WB_IS_LOADED : 0);
}

char *wb_edition_path(const char *dir, uint32_t number)
{
    char name[NAME_MAX_BYTES + sizeof WB_WEBDB_DIR] = WB_WEBDB_DIR "/";

    WB_CHECK(dir != NULL);
    WB_CHECK(number > 0);
    format_name(number, name + sizeof WB_WEBDB_DIR);
    return wb_path_join(dir, name);
}

static int remove_entry(void *context, const struct wb_path_entry *entry)
{
    char *path = wb_path_join(context, entry->name);

    WB_CHECK(context != NULL);
    WB_CHECK(strchr(entry->name, '/') == NULL); /* only files of this directory are removed */
    if (!path)
        return WB_E_NOMEM;
    int err = wb_path_unlink(path);
    wb_free(path);
    return err;
}

int wb_edition_remove(const char *path)
{
    WB_CHECK(path != NULL);
    WB_CHECK(path[0] != 0);
    if (wb_path_kind(path) == WB_PATH_NONE)
        return 0;
    int err = wb_path_each(path, remove_entry, (void *)(uintptr_t)path);
    if (err == 0 && rmdir(path) != 0 && errno != ENOENT)
        err = wb_fail_errno("cannot remove the directory %s", path);
    return err;
}

/* ---- holding --------------------------------------------------------------------------------- */

#define HOLD_PREFIX "hold-"

int wb_edition_share(const char *dir, uint32_t number, struct wb_file *lock_out)
{
    char *path = wb_path_join(dir, WB_WEBDB_DIR "/" WB_WEBDB_LOCK);
    int err = path ? wb_file_open(path, WB_FILE_READ, lock_out) : WB_E_NOMEM;

    WB_CHECK(dir != NULL);
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

    WB_CHECK(entry->name != NULL);
    return hold ? entry->name + strlen(HOLD_PREFIX) : NULL;
}

static int note_hold(void *context, const struct wb_path_entry *entry)
{
    bool *held = context;

    WB_CHECK(entry->name != NULL);
    WB_CHECK(held != NULL);
    *held = *held || holder_of(entry);
    return 0;
}

int wb_edition_retire(const char *dir, uint32_t number, const struct wb_file *lock)
{
    char name[NAME_MAX_BYTES + sizeof WB_WEBDB_DIR WB_RETIRED_PREFIX] = WB_WEBDB_DIR "/" WB_RETIRED_PREFIX;
    int locked = wb_bytelock_try(lock, number);

    WB_CHECK(number > 0);
    WB_CHECK(lock->fd >= 0);
    if (locked <= 0)
        return locked;
    format_name(number, name + strlen(name));
    char *path = wb_edition_path(dir, number), *retired = wb_path_join(dir, name);
    bool held = false;
    int err = path && retired ? wb_path_each(path, note_hold, &held) : WB_E_NOMEM;
    if (err == 0 && !held)
        err = wb_path_rename(path, retired);
    wb_bytelock_release(lock, number);
    wb_free(path);
    wb_free(retired);
    return err < 0 ? err : !held;
}

/* A name becomes part of the name of a file. */
static int check_holder(const char *holder)
{
    size_t len = strlen(holder);

    WB_CHECK(holder != NULL);
    for (size_t i = 0; i < len; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", holder[i]))
            len = 0;
    if (len == 0 || len > WB_HOLDER_MAX)
        return wb_fail(WB_E_INVALID,
                       "'%.100s' cannot be the name of a holder: use 1 to %d letters, digits, '.', '_', '-'", holder,
                       WB_HOLDER_MAX);
    return 0;
}

static char *hold_path(const char *edition, const char *holder)
{
    char name[sizeof HOLD_PREFIX + WB_HOLDER_MAX];
    int len = snprintf(name, sizeof name, HOLD_PREFIX "%s", holder);

    WB_CHECK(len > 0);
    WB_CHECK((size_t)len < sizeof name);
    return wb_path_join(edition, name);
}

static int edition_gone(const char *dir, uint32_t number)
{
    WB_CHECK(dir != NULL);
    WB_CHECK(number > 0);
    return wb_fail(WB_E_NOTFOUND, "%s has no edition %u of the web database", dir, number);
}

/* Makes the file of a hold. The caller has locked the edition, so it is not removed meanwhile. */
static int make_hold(const char *edition, const char *holder)
{
    struct wb_file file = WB_FILE_INIT;
    char *path = hold_path(edition, holder);
    int err = path ? wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file) : WB_E_NOMEM;

    WB_CHECK(holder != NULL);
    WB_CHECK(edition != NULL);
    if (err == 0)
        err = wb_file_sync(&file);
    wb_file_close(&file);
    wb_free(path);
    return err < 0 ? err : wb_path_sync_dir(edition);
}

int wb_webdb_hold(const char *dir, uint32_t edition, const char *holder)
{
    struct wb_file lock = WB_FILE_INIT;
    char *path = NULL;
    int err = check_holder(holder);

    WB_CHECK(holder != NULL);
    WB_CHECK(dir != NULL);
    if (err == 0 && edition == 0)
        err = wb_fail(WB_E_INVALID, "editions are numbered from 1");
    if (err < 0)
        return err;
    path = wb_edition_path(dir, edition);
    err = path ? wb_edition_share(dir, edition, &lock) : WB_E_NOMEM;
    if (err == 0)
        err = wb_path_kind(path) == WB_PATH_DIR ? make_hold(path, holder) : edition_gone(dir, edition);
    wb_file_close(&lock);
    wb_free(path);
    return err;
}

int wb_webdb_release(const char *dir, uint32_t edition, const char *holder)
{
    char *path = NULL, *hold = NULL;
    int err = check_holder(holder);

    WB_CHECK(holder != NULL);
    WB_CHECK(dir != NULL);
    if (err < 0)
        return err;
    path = edition ? wb_edition_path(dir, edition) : NULL;
    hold = path ? hold_path(path, holder) : NULL;
    if (edition && !hold)
        err = WB_E_NOMEM;
    else if (!edition || wb_path_kind(hold) != WB_PATH_FILE)
        err = wb_fail(WB_E_NOTFOUND, "%s does not hold edition %u of the web database in %s", holder, edition, dir);
    if (err == 0)
        err = wb_path_unlink(hold);
    if (err == 0)
        err = wb_path_sync_dir(path);
    wb_free(hold);
    wb_free(path);
    return err;
}

/* The context of list_edition() and list_hold(). */
struct hold_list {
    const char *dir;
    uint32_t edition;
    wb_webdb_held each;
    void *context;
};

static int list_hold(void *context, const struct wb_path_entry *entry)
{
    const struct hold_list *list = context;
    const char *holder = holder_of(entry);

    WB_CHECK(list->each != NULL);
    WB_CHECK(list->edition > 0);
    return holder ? list->each(list->context, list->edition, holder, entry->mtime_ms) : 0;
}

static int list_edition(void *context, const struct wb_path_entry *entry)
{
    struct hold_list *list = context;

    WB_CHECK(list->dir != NULL);
    WB_CHECK(list->each != NULL);
    list->edition = wb_edition_number(entry->name);
    if (!list->edition || entry->kind != WB_PATH_DIR)
        return 0;
    char *path = wb_edition_path(list->dir, list->edition);
    int err = path ? wb_path_each(path, list_hold, list) : WB_E_NOMEM;
    /* If the edition was removed while we looked, nobody held it. */
    if (err < 0 && path && wb_path_kind(path) == WB_PATH_NONE)
        err = 0;
    wb_free(path);
    return err;
}

int wb_webdb_holds(const char *dir, wb_webdb_held each, void *context)
{
    struct hold_list list = {.dir = dir, .each = each, .context = context};
    char *root = wb_path_join(dir, WB_WEBDB_DIR);
    int err = 0;

    WB_CHECK(dir != NULL);
    WB_CHECK(each != NULL);
    if (!root)
        return WB_E_NOMEM;
    if (wb_path_kind(root) != WB_PATH_NONE)
        err = wb_path_each(root, list_edition, &list);
    wb_free(root);
    return err;
}

/* ---- contents and ids ------------------------------------------------------------------------ */

/*
 * Entries are sorted by their first 16 bytes, and digests are spread evenly, so interpolation usually needs only a few
 * steps. But whoever chooses the contents can make them uneven; even a thousand copies of one page do. So every other
 * step halves the range, and the worst case is twice a binary search.
 */
static const uint8_t *md5_at(const struct wb_column *contents, uint64_t number)
{
    WB_CHECK(number < contents->count);
    return wb_column_at(contents, number); /* an entry starts with its MD5 or id */
}

/*
 * The place in [low, high) where a digest that starts with `wanted` should be. The digests there start with least to
 * most.
 */
static uint64_t guess_place(uint64_t low, uint64_t high, uint64_t least, uint64_t most, uint64_t wanted)
{
    WB_CHECK(low < high);
    if (wanted <= least || most <= least)
        return low;
    if (wanted >= most)
        return high - 1;
    return low + (uint64_t)((unsigned __int128)(wanted - least) * (high - low) / (most - least));
}

int wb_contents_find(const struct wb_column *contents, const uint8_t md5[WB_MD5_BYTES], uint64_t *number_out)
{
    uint64_t low = 0, high = contents->count; /* the first entry that is not less than md5 is in [low, high] */
    uint64_t least = 0, most = UINT64_MAX, wanted = wb_get64_be(md5);

    WB_CHECK(contents->record_bytes == sizeof(struct wb_content) ||
             contents->record_bytes == sizeof(struct wb_stored_id) || contents->count == 0);
    *number_out = 0;
    for (bool halve = false; low < high; halve = !halve) {
        uint64_t at = halve ? low + (high - low) / 2 : guess_place(low, high, least, most, wanted);
        WB_CHECK(at >= low);
        WB_CHECK(at < high);
        int err = wb_column_check(contents, at, 1);
        if (err < 0)
            return err;
        const uint8_t *found = md5_at(contents, at);
        if (memcmp(found, md5, WB_MD5_BYTES) < 0) {
            low = at + 1;
            least = wb_get64_be(found);
        } else {
            high = at;
            most = wb_get64_be(found);
        }
    }
    if (low == contents->count || memcmp(md5_at(contents, low), md5, WB_MD5_BYTES) != 0)
        return WB_E_NOTFOUND;
    WB_CHECK(low == 0 || memcmp(md5_at(contents, low - 1), md5, WB_MD5_BYTES) != 0); /* it is the first one */
    *number_out = low;
    return 0;
}
