/*
 * webdb_check.c - reads everything of the newest edition and says what is wrong with it.
 *
 * First each file by itself: checksums, order, counts. Where all are whole, whether they agree: wb_check_pages, wb_check_links, and
 * the manifest's counts. Sets are compared by sums of hashes, so memory is bounded whatever the size. What does not
 * agree behind right checksums was written so: a mistake of the merge, or of whoever made the files. It never mends anything.
 */
#include "webdb/webdb_check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

#include <stdarg.h>
#include <stdio.h>

enum { TOLD_MAX = 20, MESSAGE_MAX = 512, AGAIN = 1 };

static const struct {
    const char *name, *kind;
    size_t record_bytes; /* of a column; 0: a table */
} files[WB_CHECK_FILES] = {
    [WB_CHECK_MANIFEST] = {WB_MANIFEST_FILE, NULL, 0},
    [WB_CHECK_PAGES] = {WB_PAGES_FILE, WB_PAGES_KIND, 0},
    [WB_CHECK_CONTENTS] = {WB_CONTENTS_FILE, WB_CONTENTS_KIND, sizeof(struct wb_content)},
    [WB_CHECK_OUTLINKS] = {WB_OUTLINKS_FILE, WB_OUTLINKS_KIND, 0},
    [WB_CHECK_INLINKS] = {WB_INLINKS_FILE, WB_INLINKS_KIND, 0},
    [WB_CHECK_DEGREES] = {WB_DEGREES_FILE, WB_DEGREES_KIND, sizeof(uint32_t)},
    [WB_CHECK_SITES] = {WB_SITES_FILE, WB_SITES_KIND, 0},
    [WB_CHECK_NEAR] = {WB_NEAR_FILE, WB_NEAR_KIND, sizeof(uint32_t)},
    [WB_CHECK_RULES] = {WB_RULES_FILE, WB_RULES_KIND, 0},
};

/* ---- telling -------------------------------------------------------------------------------------------- */

void wb_check_tell(struct wb_check *check, enum wb_check_file file, uint64_t offset, const char *format, ...)
{
    char name[64], message[MESSAGE_MAX];
    va_list args;

    if (check->told[file]++ > TOLD_MAX)
        return;
    snprintf(name, sizeof name, WB_WEBDB_DIR "/%08u/%s", check->number, files[file].name);
    if (check->told[file] > TOLD_MAX) {
        check->found(check->context, name, offset, "and more, which is not told");
        return;
    }
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    check->found(check->context, name, offset, message);
}

bool wb_check_told(struct wb_check *check, enum wb_check_file file, int err)
{
    if (err != WB_E_CORRUPT && err != WB_E_NEWER)
        return false;
    wb_check_tell(check, file, 0, "%s", wb_error_message());
    return true;
}

static bool any_told(const struct wb_check *check)
{
    uint64_t all = 0;

    for (int file = 0; file < WB_CHECK_FILES; file++)
        all += check->told[file];
    return all > 0;
}

/* ---- each file by itself ----------------------------------------------------------------------------------- */

struct verifying {
    struct wb_check *check;
    enum wb_check_file file;
};

static void note_found(void *context, const char *path, uint64_t offset, const char *message)
{
    const struct verifying *verifying = context;

    (void)path; /* the name within the repository is told instead */
    wb_check_tell(verifying->check, verifying->file, offset, "%s", message);
}

/* A file that is not there is a problem, unless the whole edition was replaced meanwhile: AGAIN. */
static int missing(struct wb_check *check, enum wb_check_file file)
{
    uint32_t newest;
    int err = wb_edition_newest(check->dir, &newest);

    if (err < 0)
        return err;
    if (newest != check->number)
        return AGAIN;
    wb_check_tell(check, file, 0, "the file is not there");
    return 0;
}

static int verify_file(struct wb_check *check, const char *edition, enum wb_check_file file, struct wb_manifest *manifest, uint64_t *records_out)
{
    struct verifying verifying = {check, file};
    char *path = wb_path_join(edition, files[file].name);
    int err;

    *records_out = 0;
    if (!path)
        return WB_E_NOMEM;
    if (file == WB_CHECK_MANIFEST)
        err = wb_manifest_read(path, manifest);
    else if (files[file].record_bytes)
        err = wb_column_verify(path, files[file].kind, files[file].record_bytes, note_found, &verifying, records_out);
    else
        err = wb_table_verify(path, files[file].kind, note_found, &verifying, records_out);
    wb_free(path);
    if (err == WB_E_NOTFOUND)
        return missing(check, file);
    return wb_check_told(check, file, err) ? 0 : err;
}

/* Numbers of one file are places in another; nothing more can be compared where they are not. */
static void compare_sizes(struct wb_check *check, const struct wb_manifest *manifest, const uint64_t records[WB_CHECK_FILES])
{
    if (records[WB_CHECK_PAGES] != manifest->rows)
        wb_check_tell(check, WB_CHECK_PAGES, 0, "%llu rows, the manifest says %llu", (unsigned long long)records[WB_CHECK_PAGES],
                      (unsigned long long)manifest->rows);
    if (manifest->version >= 2 && records[WB_CHECK_NEAR] != records[WB_CHECK_PAGES])
        wb_check_tell(check, WB_CHECK_NEAR, 0, "%llu entries for %llu rows of pages", (unsigned long long)records[WB_CHECK_NEAR],
                      (unsigned long long)records[WB_CHECK_PAGES]);
    if (records[WB_CHECK_DEGREES] != records[WB_CHECK_PAGES])
        wb_check_tell(check, WB_CHECK_DEGREES, 0, "%llu entries for %llu rows of pages", (unsigned long long)records[WB_CHECK_DEGREES],
                      (unsigned long long)records[WB_CHECK_PAGES]);
    if (records[WB_CHECK_CONTENTS] > records[WB_CHECK_PAGES])
        wb_check_tell(check, WB_CHECK_CONTENTS, 0, "%llu entries for %llu rows of pages", (unsigned long long)records[WB_CHECK_CONTENTS],
                      (unsigned long long)records[WB_CHECK_PAGES]);
}

static int verify_files(struct wb_check *check, struct wb_webdb_count *count_out)
{
    char *edition = wb_edition_path(check->dir, check->number);
    struct wb_manifest manifest = {.rows = 0};
    uint64_t records[WB_CHECK_FILES] = {0};
    int err = edition ? 0 : WB_E_NOMEM;

    for (int file = 0; err == 0 && file < (manifest.version == 1 ? WB_CHECK_NEAR : WB_CHECK_FILES); file++)
        err = verify_file(check, edition, (enum wb_check_file)file, &manifest, &records[file]);
    if (err == 0 && !any_told(check))
        compare_sizes(check, &manifest, records);
    *count_out = manifest.count;
    wb_manifest_release(&manifest);
    wb_free(edition);
    return err;
}

/* ---- the manifest -------------------------------------------------------------------------------------------- */

static void compare_count(struct wb_check *check, const char *what, uint64_t seen, uint64_t told)
{
    if (seen != told)
        wb_check_tell(check, WB_CHECK_MANIFEST, 0, "%llu %s, and there are %llu", (unsigned long long)told, what, (unsigned long long)seen);
}

static void measure(struct wb_check *check)
{
    const struct wb_webdb *webdb = check->webdb;
    struct wb_table_stat pages, outlinks, inlinks, sites, rules = {0};

    wb_table_stat(webdb->pages, &pages);
    wb_table_stat(webdb->outlinks, &outlinks);
    wb_table_stat(webdb->inlinks, &inlinks);
    wb_table_stat(webdb->sites, &sites);
    if (webdb->rules)
        wb_table_stat(webdb->rules, &rules);
    check->seen.link_bytes = outlinks.bytes + inlinks.bytes;
    check->seen.bytes = check->seen.link_bytes + pages.bytes + sites.bytes + rules.bytes + webdb->contents.map_bytes + webdb->degrees.map_bytes +
                        webdb->near.map_bytes;
}

static void compare_manifest(struct wb_check *check)
{
    const struct wb_webdb_count *told = &check->webdb->manifest.count, *seen = &check->seen;

    measure(check);
    if (told->edition != check->number)
        wb_check_tell(check, WB_CHECK_MANIFEST, 0, "it is that of edition %u", told->edition);
    compare_count(check, "pages", seen->pages, told->pages);
    compare_count(check, "fetched pages", seen->fetched, told->fetched);
    compare_count(check, "contents", seen->contents, told->contents);
    compare_count(check, "links", seen->links, told->links);
    compare_count(check, "sites", seen->sites, told->sites);
    compare_count(check, "bytes", seen->bytes, told->bytes);
    compare_count(check, "bytes of links", seen->link_bytes, told->link_bytes);
}

/* ---- all together ----------------------------------------------------------------------------------------------- */

/* AGAIN: the edition went away before its files were open. */
static int check_edition(struct wb_check *check, struct wb_webdb_count *count_out)
{
    int err = verify_files(check, count_out);

    if (err != 0 || any_told(check))
        return err;
    err = wb_webdb_open_number(check->dir, check->number, &check->webdb);
    if (err == WB_E_NOTFOUND)
        return missing(check, WB_CHECK_MANIFEST);
    if (err == 0)
        err = wb_check_pages(check);
    if (err == 0)
        err = wb_check_links(check);
    if (err == 0)
        err = wb_check_rules(check);
    if (err == 0)
        compare_manifest(check);
    wb_webdb_close(check->webdb);
    check->webdb = NULL;
    return err;
}

int wb_webdb_check(const char *dir, wb_webdb_found found, void *context, struct wb_webdb_count *count_out)
{
    struct wb_check check;
    int err;

    do {
        *count_out = (struct wb_webdb_count){.edition = 0};
        check = (struct wb_check){.dir = dir, .found = found, .context = context};
        err = wb_edition_newest(dir, &check.number);
        if (err < 0 || check.number == 0)
            return err;
        err = check_edition(&check, count_out);
    } while (err == AGAIN);
    return err;
}
