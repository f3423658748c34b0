/* wacz.c - opens WACZ files, and compares their entries with the hashes in datapackage.json. */
#include "warc/wacz.h"

#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "warc/warcreader.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#define WACZ_MAGIC 0x57425743u
#define PACKAGE "datapackage.json"
#define PACKAGE_DIGEST "datapackage-digest.json"
#define PACKAGE_MAX ((uint64_t)4 << 20) /* as a tree in memory, JSON takes up to forty times its size */

/* An entry, and what is expected of it. */
struct wacz_part {
    char *name;
    bool archive;
    bool listed; /* datapackage.json has a line about it */
    bool has_bytes;
    uint64_t bytes;     /* its size, as datapackage.json says */
    const EVP_MD *kind; /* of the hash; NULL: there is none that we know */
    uint8_t hash[EVP_MAX_MD_SIZE];
    struct wb_warcsum sum;
};

struct wb_wacz {
    uint32_t magic; /* WACZ_MAGIC from open to close */
    struct wb_file file;
    struct wb_zipdir dir;
    struct wacz_part *parts;  /* one per entry of dir, in the same order */
    WB_VEC(uint32_t) by_name; /* the entries in the order of their names */
};

bool wb_wacz_is(const char *path)
{
    struct wb_file file = WB_FILE_INIT;
    char first[4];
    bool zip = false;

    if (wb_slice_ends_nocase(wb_slice_str(path), WB_SLICE_LIT(".wacz")))
        return true;
    if (wb_path_kind(path) != WB_PATH_FILE || wb_file_open(path, WB_FILE_READ, &file) < 0)
        return false;
    if (wb_file_read_exact(&file, 0, first, sizeof first) == 0)
        zip = memcmp(first, "PK\3\4", 4) == 0 || memcmp(first, "PK\5\6", 4) == 0;
    wb_file_close(&file);
    return zip;
}

/* ---- opening ------------------------------------------------------------------------------- */

static bool is_archive(struct wb_slice name)
{
    static const struct wb_slice endings[] = {
        {".warc", 5}, {".warc.gz", 8}, {".warc.zst", 9}, {".arc", 4}, {".arc.gz", 7},
    };

    if (!wb_slice_starts(name, WB_SLICE_LIT("archive/")))
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (wb_slice_ends_nocase(name, endings[i]))
            return true;
    return false;
}

static int compare_by_name(const void *a, const void *b, void *context)
{
    const struct wb_wacz *wacz = context;
    const uint32_t *x = a, *y = b;

    return wb_slice_compare(wacz->dir.entries.items[*x].name, wacz->dir.entries.items[*y].name);
}

/* The entry with this name; the number of entries if there is none. */
static size_t find_entry(const struct wb_wacz *wacz, struct wb_slice name)
{
    size_t low = 0, high = wacz->by_name.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = wb_slice_compare(wacz->dir.entries.items[wacz->by_name.items[middle]].name, name);
        if (order == 0)
            return wacz->by_name.items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return wacz->dir.entries.count;
}

static int make_parts(struct wb_wacz *wacz)
{
    size_t count = wacz->dir.entries.count, archives = 0;
    struct wb_buf name = WB_BUF_INIT;

    wacz->parts = wb_alloc_zero(count + 1, sizeof *wacz->parts);
    int err = wacz->parts ? wb_vec_reserve(&wacz->by_name, count + 1) : WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < count; i++) {
        struct wb_slice entry = wacz->dir.entries.items[i].name;
        err = wb_buf_printf(&name, "%s:%.*s", wacz->file.path, WB_SLICE_ARG(entry));
        if (err == 0)
            err = wb_buf_terminate(&name);
        if (err < 0)
            break;
        wacz->parts[i].name = wb_buf_take(&name).ptr;
        wacz->parts[i].archive = is_archive(entry);
        archives += wacz->parts[i].archive;
        wacz->by_name.items[wacz->by_name.count++] = (uint32_t)i;
    }
    wb_buf_release(&name);
    if (err < 0)
        return err;
    qsort_r(wacz->by_name.items, wacz->by_name.count, sizeof *wacz->by_name.items, compare_by_name, wacz);
    return archives ? 0 : wb_fail(WB_E_PROTO, "%s is not a WACZ file: it has no archive/*.warc.gz", wacz->file.path);
}

int wb_wacz_open(const char *path, struct wb_wacz **wacz_out)
{
    *wacz_out = NULL;
    if (wb_path_kind(path) == WB_PATH_DIR)
        return wb_fail(WB_E_INVALID, "%s is a directory, not a web archive", path);
    struct wb_wacz *wacz = wb_alloc_zero(1, sizeof *wacz);
    if (!wacz)
        return WB_E_NOMEM;
    *wacz = (struct wb_wacz){.magic = WACZ_MAGIC, .file = WB_FILE_INIT};
    int err = wb_file_open(path, WB_FILE_READ, &wacz->file);
    if (err == 0)
        err = wb_zipdir_read(&wacz->dir, &wacz->file);
    if (err == 0)
        err = make_parts(wacz);
    if (err < 0) {
        wb_wacz_close(wacz);
        return err;
    }
    *wacz_out = wacz;
    return 0;
}

void wb_wacz_close(struct wb_wacz *wacz)
{
    if (!wacz)
        return;
    WB_CHECK(wacz->magic == WACZ_MAGIC);
    wacz->magic = 0;
    for (size_t i = 0; wacz->parts && i < wacz->dir.entries.count; i++) {
        wb_free(wacz->parts[i].name);
        EVP_MD_CTX_free(wacz->parts[i].sum.digest);
    }
    wb_free(wacz->parts);
    wb_vec_release(&wacz->by_name);
    wb_zipdir_release(&wacz->dir);
    wb_file_close(&wacz->file);
    wb_free(wacz);
}

bool wb_wacz_entry(const struct wb_wacz *wacz, size_t i, struct wb_wacz_entry *entry_out)
{
    WB_CHECK(wacz->magic == WACZ_MAGIC);
    *entry_out = (struct wb_wacz_entry){.name = NULL};
    if (i >= wacz->dir.entries.count)
        return false;
    const struct wb_zipdir_entry *e = &wacz->dir.entries.items[i];
    *entry_out = (struct wb_wacz_entry){
        .name = wacz->parts[i].name, .archive = wacz->parts[i].archive, .offset = e->offset, .bytes = e->packed};
    return true;
}

/* Opens the bytes of an entry. From its first byte on, they are digested. */
static int open_input(struct wb_wacz *wacz, size_t i, struct wb_warcinput **input_out)
{
    struct wacz_part *part = &wacz->parts[i];

    *input_out = NULL;
    WB_CHECK(i < wacz->dir.entries.count);
    if (part->kind && !part->sum.digest) {
        part->sum = (struct wb_warcsum){.digest = EVP_MD_CTX_new()};
        if (!part->sum.digest || !EVP_DigestInit_ex(part->sum.digest, part->kind, NULL))
            return wb_fail_nomem();
    }
    return wb_warcinput_open_entry(&wacz->file, &wacz->dir.entries.items[i], &part->sum, input_out);
}

int wb_wacz_open_archive(struct wb_wacz *wacz, size_t i, size_t block_max, struct wb_warc_reader **reader_out)
{
    struct wb_warcinput *input = NULL;

    WB_CHECK(wacz->magic == WACZ_MAGIC);
    *reader_out = NULL;
    int err = open_input(wacz, i, &input);
    return err < 0 ? err : wb_warc_open_input(input, block_max, reader_out);
}

/* ---- datapackage.json ---------------------------------------------------------------------- */

/* Reads an entry that is JSON. *json_out must be released with json_decref(). */
static int read_json(struct wb_wacz *wacz, size_t i, json_t **json_out)
{
    struct wb_warcinput *input = NULL;
    struct wb_buf text = WB_BUF_INIT;
    uint64_t size = wacz->dir.entries.items[i].size;
    size_t got = 0;

    *json_out = NULL;
    if (size > PACKAGE_MAX)
        return wb_fail(WB_E_PROTO, "%s is larger than a list of files can be", wacz->parts[i].name);
    int err = open_input(wacz, i, &input);
    if (err == 0)
        err = wb_buf_reserve(&text, (size_t)size + 1);
    if (err == 0)
        err = wb_warcinput_read_at(input, 0, text.ptr, (size_t)size, &got);
    if (err == 0)
        *json_out = json_loadb(text.ptr, got, 0, NULL);
    if (err == 0 && !json_is_object(*json_out))
        err = wb_fail(WB_E_PROTO, "%s is not a JSON object", wacz->parts[i].name);
    wb_buf_release(&text);
    wb_warcinput_close(input);
    return err;
}

/* Takes over what is said about an entry: {"hash":"sha256:...","bytes":N}. A hash of another kind is passed over. */
static void expect_part(struct wacz_part *part, const json_t *said)
{
    const struct {
        struct wb_slice prefix;
        const EVP_MD *kind;
    } kinds[] = {{WB_SLICE_LIT("sha256:"), EVP_sha256()},
                 {WB_SLICE_LIT("sha512:"), EVP_sha512()},
                 {WB_SLICE_LIT("md5:"), EVP_md5()}};
    const char *text = json_string_value(json_object_get(said, "hash"));
    const json_t *bytes = json_object_get(said, "bytes");

    part->listed = true;
    part->has_bytes = json_is_integer(bytes);
    part->bytes = part->has_bytes ? (uint64_t)json_integer_value(bytes) : 0;
    for (size_t i = 0; text && i < sizeof kinds / sizeof *kinds; i++) {
        struct wb_slice hash = wb_slice_str(text);
        if (!wb_slice_starts(hash, kinds[i].prefix))
            continue;
        hash = wb_slice(hash.ptr + kinds[i].prefix.len, hash.len - kinds[i].prefix.len);
        memset(part->hash, 0, sizeof part->hash); /* a hash that is not hexadecimal matches nothing */
        (void)wb_hex_decode(hash, part->hash, (size_t)EVP_MD_get_size(kinds[i].kind));
        part->kind = kinds[i].kind;
    }
}

/* datapackage-digest.json has the hash of datapackage.json. */
static int read_digest(struct wb_wacz *wacz, size_t package)
{
    size_t i = find_entry(wacz, WB_SLICE_LIT(PACKAGE_DIGEST));
    json_t *json = NULL;

    if (i == wacz->dir.entries.count)
        return 0;
    int err = read_json(wacz, i, &json);
    if (err == 0)
        expect_part(&wacz->parts[package], json);
    json_decref(json);
    return err;
}

static int expect_all(struct wb_wacz *wacz, const json_t *resources, const char *name)
{
    size_t missing = 0;
    const char *first = NULL;

    if (!json_is_array(resources))
        return wb_fail(WB_E_PROTO, "%s has no list of resources", name);
    for (size_t i = 0; i < json_array_size(resources); i++) {
        const json_t *resource = json_array_get(resources, i);
        const char *path = json_string_value(json_object_get(resource, "path"));
        size_t at = path ? find_entry(wacz, wb_slice_str(path)) : wacz->dir.entries.count;
        if (at < wacz->dir.entries.count && wacz->parts[at].sum.done == 0)
            expect_part(&wacz->parts[at], resource);
        else if (at == wacz->dir.entries.count && missing++ == 0)
            first = path ? path : "one without a path";
    }
    if (missing)
        return wb_fail(WB_E_CORRUPT, "%s: entries are missing, %zu in all, such as %.200s", name, missing, first);
    return 0;
}

int wb_wacz_read_package(struct wb_wacz *wacz)
{
    WB_CHECK(wacz->magic == WACZ_MAGIC);
    size_t i = find_entry(wacz, WB_SLICE_LIT(PACKAGE));
    json_t *json = NULL;

    if (i == wacz->dir.entries.count)
        return wb_fail(WB_E_NOTFOUND, "%s has no " PACKAGE ", so its entries cannot be compared with their hashes",
                       wacz->file.path);
    int err = read_digest(wacz, i);
    if (err == 0)
        err = read_json(wacz, i, &json);
    if (err == 0)
        err = expect_all(wacz, json_object_get(json, "resources"), wacz->parts[i].name);
    json_decref(json);
    return err;
}

/* ---- checking ------------------------------------------------------------------------------ */

static int compare_sum(const struct wb_wacz *wacz, size_t i)
{
    const struct wb_zipdir_entry *entry = &wacz->dir.entries.items[i];
    struct wacz_part *part = &wacz->parts[i];
    uint8_t hash[EVP_MAX_MD_SIZE];

    if (part->sum.crc != entry->crc)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: its CRC is wrong", part->name);
    if (part->has_bytes && part->bytes != entry->size)
        return wb_fail(WB_E_CORRUPT, "%s has %" PRIu64 " bytes, but " PACKAGE " says %" PRIu64, part->name, entry->size,
                       part->bytes);
    if (!part->kind)
        return 0;
    int done = EVP_DigestFinal_ex(part->sum.digest, hash, NULL), bytes = EVP_MD_get_size(part->kind);
    EVP_MD_CTX_free(part->sum.digest); /* there may be many entries */
    part->sum.digest = NULL;
    part->kind = NULL;
    if (!done)
        return wb_fail_nomem();
    if (memcmp(hash, part->hash, (size_t)bytes) != 0)
        return wb_fail(WB_E_CORRUPT, "%s has another hash than the one in " PACKAGE, part->name);
    return 0;
}

int wb_wacz_check(struct wb_wacz *wacz, size_t i)
{
    struct wb_warcinput *input = NULL;

    WB_CHECK(wacz->magic == WACZ_MAGIC && i < wacz->dir.entries.count);
    if (!wacz->parts[i].archive && !wacz->parts[i].listed)
        return 0;
    int err = open_input(wacz, i, &input);
    if (err == 0)
        err = wb_warcinput_finish_sum(input);
    wb_warcinput_close(input);
    return err < 0 ? err : compare_sum(wacz, i);
}
