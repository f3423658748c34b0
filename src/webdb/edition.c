/*
 * edition.c - the editions of a repository as a series of directories (os/series.h); finds contents and ids in them.
 *
 * This file never opens a table, and it never creates an edition: publish.c does that.
 */
#include "webdb/edition.h"
#include "base/bytes.h"
#include "os/path.h"

/* "DIR/webdb", the root of the series, from the heap; NULL when out of memory. */
static char *root_of(const char *dir)
{
    WB_CHECK(dir != NULL);
    return wb_path_join(dir, WB_WEBDB_DIR);
}

int wb_edition_newest(const char *dir, uint32_t *number_out)
{
    char *root = root_of(dir);
    int err = root ? wb_series_newest(root, number_out) : WB_E_NOMEM;

    WB_CHECK(err == 0 || err < 0);
    wb_free(root);
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
    WB_CHECK(number > 0);
    char *root = root_of(dir), *path = root ? wb_series_path(root, number) : NULL;

    wb_free(root);
    return path;
}

/* ---- holding --------------------------------------------------------------------------------- */

int wb_edition_share(const char *dir, uint32_t number, struct wb_file *lock_out)
{
    WB_CHECK(number > 0);
    char *root = root_of(dir);
    int err = root ? wb_series_share(root, number, lock_out) : WB_E_NOMEM;

    wb_free(root);
    return err;
}

int wb_webdb_hold(const char *dir, uint32_t edition, const char *holder)
{
    char *root = root_of(dir);
    int err = root ? 0 : WB_E_NOMEM;

    WB_CHECK(holder != NULL);
    if (err == 0 && edition == 0)
        err = wb_fail(WB_E_INVALID, "editions are numbered from 1");
    if (err == 0)
        err = wb_series_hold(root, edition, holder);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(err, "%s has no edition %u of the web database", dir, edition);
    wb_free(root);
    return err;
}

int wb_webdb_release(const char *dir, uint32_t edition, const char *holder)
{
    char *root = root_of(dir);
    int err = root ? 0 : WB_E_NOMEM;

    WB_CHECK(holder != NULL);
    if (err == 0)
        err = edition ? wb_series_release(root, edition, holder) : WB_E_NOTFOUND;
    if (err == WB_E_NOTFOUND)
        err = wb_fail(err, "%s does not hold edition %u of the web database in %s", holder, edition, dir);
    wb_free(root);
    return err;
}

int wb_webdb_holds(const char *dir, wb_webdb_held each, void *context)
{
    WB_CHECK(each != NULL);
    char *root = root_of(dir);
    int err = root ? wb_series_holds(root, each, context) : WB_E_NOMEM;

    wb_free(root);
    return err;
}

/* ---- contents and ids ------------------------------------------------------------------------ */

/*
 * Entries are sorted by their first 16 bytes, and digests are spread evenly, so interpolation usually needs only a few
 * steps. But the author of the contents can make them uneven; even a thousand copies of one page do. So every other
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
