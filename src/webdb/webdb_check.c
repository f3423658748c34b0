/*
 * webdb_check.c - reads all of the newest edition and reports what is wrong with it.
 *
 * First each file is checked by itself: checksums, order, counts. If all files are intact, the tables are compared with
 * each other and with the manifest. Sets are compared by sums of hashes, so memory is bounded whatever their size. If
 * the tables disagree although their checksums are right, they were written that way: by a bug in the merge, or by
 * somebody else. The check never repairs anything.
 */
#include "webdb/webdb_check.h"
#include "os/path.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    REPORTED_MAX = 20, /* problems per file */
    MESSAGE_MAX = 512,
    AGAIN = 1,         /* the edition was replaced while we looked: check its successor */
};

static const struct {
    const char *name, *kind;
    size_t record_bytes; /* of a column; 0 for a table */
} files[WB_CHECKED_FILES] = {
    [WB_CHECKED_MANIFEST] = {WB_MANIFEST_FILE, NULL, 0},
    [WB_CHECKED_PAGES] = {WB_PAGES_FILE, WB_PAGES_KIND, 0},
    [WB_CHECKED_CONTENTS] = {WB_CONTENTS_FILE, WB_CONTENTS_KIND, sizeof(struct wb_content)},
    [WB_CHECKED_OUTLINKS] = {WB_OUTLINKS_FILE, WB_OUTLINKS_KIND, 0},
    [WB_CHECKED_INLINKS] = {WB_INLINKS_FILE, WB_INLINKS_KIND, 0},
    [WB_CHECKED_DEGREES] = {WB_DEGREES_FILE, WB_DEGREES_KIND, sizeof(uint32_t)},
    [WB_CHECKED_SITES] = {WB_SITES_FILE, WB_SITES_KIND, 0},
    [WB_CHECKED_NEAR] = {WB_NEAR_FILE, WB_NEAR_KIND, sizeof(uint32_t)},
    [WB_CHECKED_RULES] = {WB_RULES_FILE, WB_RULES_KIND, 0},
    [WB_CHECKED_KINDS] = {WB_KINDS_FILE, WB_KINDS_KIND, 1},
    [WB_CHECKED_IDS] = {WB_IDS_FILE, WB_IDS_KIND, sizeof(struct wb_stored_id)},
};

_Static_assert(sizeof files / sizeof *files == WB_CHECKED_FILES, "one row per file");
_Static_assert(WB_CHECKED_MANIFEST == 0, "the manifest is read first: it says which format the others have");

/* What is true as long as a check runs. */
static void check_state(const struct wb_webdb_check *check)
{
    WB_CHECK(check->dir != NULL);
    WB_CHECK(check->number > 0);
    WB_CHECK(check->found != NULL);
}

/* ---- reporting ---------------------------------------------------------------------------------- */

/* Reports a problem at an offset of a file. If a file has many problems, only the first ones are reported. */
static void report_at(struct wb_webdb_check *check, enum wb_webdb_checked file, uint64_t offset, const char *message)
{
    char name[64];

    check_state(check);
    WB_CHECK(file < WB_CHECKED_FILES);
    WB_CHECK(message != NULL);
    if (check->problems[file]++ > REPORTED_MAX)
        return;
    int len = snprintf(name, sizeof name, WB_WEBDB_DIR "/%08u/%s", check->number, files[file].name);
    WB_CHECK(len > 0);
    WB_CHECK((size_t)len < sizeof name);
    bool enough = check->problems[file] > REPORTED_MAX;
    check->found(check->context, name, offset, enough ? "there are more problems, which are not listed" : message);
}

void wb_webdb_check_report(struct wb_webdb_check *check, enum wb_webdb_checked file, const char *format, ...)
{
    char message[MESSAGE_MAX];
    va_list args;

    check_state(check);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    report_at(check, file, 0, message);
}

bool wb_webdb_check_report_error(struct wb_webdb_check *check, enum wb_webdb_checked file, int err)
{
    check_state(check);
    WB_CHECK(file < WB_CHECKED_FILES);
    if (err != WB_E_CORRUPT && err != WB_E_NEWER)
        return false;
    wb_webdb_check_report(check, file, "%s", wb_error_message());
    return true;
}

static bool has_problems(const struct wb_webdb_check *check)
{
    uint64_t all = 0;

    check_state(check);
    for (int file = 0; file < WB_CHECKED_FILES; file++)
        all += check->problems[file];
    return all > 0;
}

/* ---- each file by itself --------------------------------------------------------------------- */

/* The context of note_found(). */
struct file_check {
    struct wb_webdb_check *check;
    enum wb_webdb_checked file;
};

static void note_found(void *context, const char *path, uint64_t offset, const char *message)
{
    const struct file_check *in = context;

    WB_CHECK(in->file != WB_CHECKED_MANIFEST); /* only tables and columns report this way */
    (void)path; /* problems name the file by its path within the repository */
    report_at(in->check, in->file, offset, message);
}

/* A missing file is a problem, unless the whole edition was replaced meanwhile: then returns AGAIN. */
static int missing(struct wb_webdb_check *check, enum wb_webdb_checked file)
{
    uint32_t newest;
    int err = wb_edition_newest(check->dir, &newest);

    check_state(check);
    if (err < 0)
        return err;
    if (newest != check->number)
        return AGAIN;
    wb_webdb_check_report(check, file, "the file is missing");
    return 0;
}

static int verify_file(struct wb_webdb_check *check, const char *edition, enum wb_webdb_checked file,
                       struct wb_manifest *manifest, uint64_t *records_out)
{
    WB_CHECK(file < WB_CHECKED_FILES);
    struct file_check in = {check, file};
    char *path = wb_path_join(edition, files[file].name);
    int err;

    *records_out = 0;
    check_state(check);
    WB_CHECK(file == WB_CHECKED_MANIFEST || files[file].kind != NULL);
    if (!path)
        return WB_E_NOMEM;
    if (file == WB_CHECKED_MANIFEST)
        err = wb_manifest_read(path, manifest);
    else if (files[file].record_bytes)
        err = wb_column_verify(path, files[file].kind, files[file].record_bytes, note_found, &in, records_out);
    else
        err = wb_table_verify(path, files[file].kind, note_found, &in, records_out);
    wb_free(path);
    if (err == WB_E_NOTFOUND)
        return missing(check, file);
    return wb_webdb_check_report_error(check, file, err) ? 0 : err;
}

static void compare_size(struct wb_webdb_check *check, enum wb_webdb_checked file, uint64_t records, uint64_t rows)
{
    check_state(check);
    WB_CHECK(file != WB_CHECKED_MANIFEST);
    if (records != rows)
        wb_webdb_check_report(check, file, "%" PRIu64 " entries for %" PRIu64 " rows of pages", records, rows);
}

/* The numbers in one file are positions in another: if the sizes do not fit, nothing more can be compared. */
static void compare_sizes(struct wb_webdb_check *check, const struct wb_manifest *manifest,
                          const uint64_t records[WB_CHECKED_FILES])
{
    uint64_t rows = records[WB_CHECKED_PAGES], contents = records[WB_CHECKED_CONTENTS], ids = records[WB_CHECKED_IDS];

    WB_CHECK(!has_problems(check));
    if (rows != manifest->rows)
        wb_webdb_check_report(check, WB_CHECKED_PAGES, "%" PRIu64 " rows, but the manifest says %" PRIu64, rows,
                              manifest->rows);
    compare_size(check, WB_CHECKED_NEAR, records[WB_CHECKED_NEAR], rows);
    compare_size(check, WB_CHECKED_KINDS, records[WB_CHECKED_KINDS], rows);
    compare_size(check, WB_CHECKED_DEGREES, records[WB_CHECKED_DEGREES], rows);
    compare_size(check, WB_CHECKED_CONTENTS, contents, contents > rows ? rows : contents); /* at most one per row */
    compare_size(check, WB_CHECKED_IDS, ids, ids > rows ? rows : ids);
}

static int verify_files(struct wb_webdb_check *check, struct wb_webdb_count *count_out)
{
    char *edition = wb_edition_path(check->dir, check->number);
    struct wb_manifest manifest = {.rows = 0};
    uint64_t records[WB_CHECKED_FILES] = {0};
    int err = edition ? 0 : WB_E_NOMEM;

    check_state(check);
    WB_CHECK(check->webdb == NULL);
    for (int file = 0; err == 0 && file < WB_CHECKED_FILES; file++)
        err = verify_file(check, edition, (enum wb_webdb_checked)file, &manifest, &records[file]);
    if (err == 0 && !has_problems(check))
        compare_sizes(check, &manifest, records);
    *count_out = manifest.count;
    wb_manifest_release(&manifest);
    wb_free(edition);
    return err;
}

/* ---- the manifest ---------------------------------------------------------------------------- */

static void compare_count(struct wb_webdb_check *check, const char *what, uint64_t seen, uint64_t stated)
{
    check_state(check);
    WB_CHECK(what != NULL);
    if (seen != stated)
        wb_webdb_check_report(check, WB_CHECKED_MANIFEST, "it says %" PRIu64 " %s, but there are %" PRIu64, stated,
                              what, seen);
}

/* Counts the bytes of all files. */
static void measure(struct wb_webdb_check *check)
{
    const struct wb_webdb *webdb = check->webdb;
    struct wb_table_stat pages, outlinks, inlinks, sites, rules;

    check_state(check);
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(check->seen.bytes == 0);
    wb_table_stat(webdb->pages, &pages);
    wb_table_stat(webdb->outlinks, &outlinks);
    wb_table_stat(webdb->inlinks, &inlinks);
    wb_table_stat(webdb->sites, &sites);
    wb_table_stat(webdb->rules, &rules);
    check->seen.link_bytes = outlinks.bytes + inlinks.bytes;
    check->seen.bytes = check->seen.link_bytes + pages.bytes + sites.bytes + rules.bytes + webdb->contents.map_bytes +
                        webdb->degrees.map_bytes + webdb->near.map_bytes + webdb->kinds.map_bytes +
                        webdb->ids.map_bytes;
}

static void compare_manifest(struct wb_webdb_check *check)
{
    const struct wb_webdb_count *stated = &check->webdb->manifest.count, *seen = &check->seen;

    check_state(check);
    WB_CHECK(check->webdb != NULL);
    measure(check);
    if (stated->edition != check->number)
        wb_webdb_check_report(check, WB_CHECKED_MANIFEST, "it belongs to edition %u", stated->edition);
    compare_count(check, "pages", seen->pages, stated->pages);
    compare_count(check, "fetched pages", seen->fetched, stated->fetched);
    compare_count(check, "contents", seen->contents, stated->contents);
    compare_count(check, "links", seen->links, stated->links);
    compare_count(check, "sites", seen->sites, stated->sites);
    compare_count(check, "bytes", seen->bytes, stated->bytes);
    compare_count(check, "bytes of links", seen->link_bytes, stated->link_bytes);
}

/* ---- all together ---------------------------------------------------------------------------- */

/* Returns AGAIN if the edition was replaced before its files were open. */
static int check_edition(struct wb_webdb_check *check, struct wb_webdb_count *count_out)
{
    check_state(check);
    WB_CHECK(check->webdb == NULL);
    int err = verify_files(check, count_out);

    if (err != 0 || has_problems(check))
        return err;
    err = wb_webdb_open_edition(check->dir, check->number, &check->webdb);
    if (err == WB_E_NOTFOUND)
        return missing(check, WB_CHECKED_MANIFEST);
    if (err == 0)
        err = wb_webdb_check_pages(check);
    if (err == 0)
        err = wb_webdb_check_links(check);
    if (err == 0)
        err = wb_webdb_check_rules(check);
    if (err == 0)
        compare_manifest(check);
    wb_webdb_close(check->webdb);
    check->webdb = NULL;
    return err;
}

int wb_webdb_check(const char *dir, wb_webdb_found found, void *context, struct wb_webdb_count *count_out)
{
    struct wb_webdb_check check;
    int err;

    WB_CHECK(dir != NULL);
    WB_CHECK(found != NULL);
    WB_CHECK(count_out != NULL);
    do {
        *count_out = (struct wb_webdb_count){.edition = 0};
        check = (struct wb_webdb_check){.dir = dir, .found = found, .context = context};
        err = wb_edition_newest(dir, &check.number);
        if (err < 0 || check.number == 0)
            return err;
        err = check_edition(&check, count_out);
    } while (err == AGAIN);
    return err;
}
