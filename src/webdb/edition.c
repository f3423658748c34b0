/*
 * edition.c - finds, names and removes the directories of editions.
 *
 * The name of a directory is the number of the edition in decimal, with zeros in front up to eight digits. This file
 * never opens a table, and it never creates an edition: publish.c does that.
 */
#include "webdb/edition.h"
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

static int note_newest(void *context, const struct wb_path_entry *entry)
{
    uint32_t *newest = context, number = (uint32_t)strtoull(entry->name, NULL, 10);
    char canonical[NAME_MAX_BYTES];

    WB_CHECK(newest != NULL);
    format_name(number, canonical);
    if (entry->kind == WB_PATH_DIR && strcmp(canonical, entry->name) == 0 && number > *newest)
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
