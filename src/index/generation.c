/*
 * generation.c - finds the directory of a generation, and writes and reads its manifest.
 *
 * The manifest is text, one "name value" per line, so that people can read it too:
 *
 *   webbase generation 1          the version of the format
 *   generation 7                  then the numbers of struct wb_index_info
 *   ...
 *   language en                   one line for each language of a page, in the order of their numbers
 *   column quality numbers        one line for each column of a user; or "words"
 *   checksum 0123456789abcdef     XXH3 of everything before this line
 */
#include "index/generation.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"
#include "words/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADLINE "webbase generation "
#define CHECKSUM "checksum "

enum {
    MANIFEST_MAX = 1 << 20,
    WHERE_MAX = 1 << 16,
    NUMBERS = 11,
};

const struct wb_fact_kind wb_fact_kinds[WB_FACTS] = {
    [WB_FACT_ID] = {"id", "GFID", 16},
    [WB_FACT_LENGTH] = {"length", "GFLE", 1},
    [WB_FACT_SITE] = {"site", "GFSI", 4},
    [WB_FACT_DEPTH] = {"depth", "GFDE", 2},
    [WB_FACT_INLINKS] = {"inlinks", "GFIN", 4},
    [WB_FACT_RANK] = {"rank", "GFRA", 8},
    [WB_FACT_STATIC] = {"static", "GFST", 4},
    [WB_FACT_ANCHORS] = {"anchors", "GFAN", 8},
    [WB_FACT_OUTLINKS] = {"outlinks", "GFOU", 4},
    [WB_FACT_TIME] = {"time", "GFTI", 8},
    [WB_FACT_CHANGED] = {"changed", "GFCH", 8},
    [WB_FACT_PUBLISHED] = {"published", "GFPU", 8},
    [WB_FACT_MODIFIED] = {"modified", "GFMO", 8},
    [WB_FACT_SIZE] = {"size", "GFSZ", 8},
    [WB_FACT_WORDS] = {"words", "GFWO", 4},
    [WB_FACT_STATUS] = {"status", "GFSU", 2},
    [WB_FACT_TYPE] = {"type", "GFTY", 4},
    [WB_FACT_LANG] = {"lang", "GFLA", 1},
    [WB_FACT_SIMHASH] = {"simhash", "GFSH", 8},
    [WB_FACT_NEAR] = {"near", "GFNE", 4},
    [WB_FACT_VERSIONS] = {"versions", "GFVE", 4},
};

/* ---- where ------------------------------------------------------------------------------------- */

int wb_generation_root(const char *dir, char **root_out)
{
    struct wb_buf text = WB_BUF_INIT;
    char *here = wb_path_join(dir, WB_INDEX_DIR), *where = here ? wb_path_join(here, WB_INDEX_WHERE) : NULL;
    int err = where ? 0 : WB_E_NOMEM;

    *root_out = NULL;
    if (err == 0 && wb_path_kind(where) == WB_PATH_FILE)
        err = wb_path_read(where, WHERE_MAX, &text);
    if (err == 0 && text.len == 0) {
        *root_out = here;
        here = NULL;
    } else if (err == 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        if (!end || end == text.ptr || text.ptr[0] != '/' || memchr(text.ptr, '\0', text.len))
            err = wb_fail(WB_E_CORRUPT, "%s does not name a directory", where);
        else
            err = (*root_out = wb_strndup(text.ptr, (size_t)(end - text.ptr))) ? 0 : WB_E_NOMEM;
    }
    wb_buf_release(&text);
    wb_free(where);
    wb_free(here);
    return err;
}

void wb_generation_holder(uint32_t generation, char name_out[WB_STORE_NAME_MAX + 1])
{
    snprintf(name_out, WB_STORE_NAME_MAX + 1, WB_GENERATION_HOLDER "%" PRIu32, generation);
}

/* ---- the manifest ------------------------------------------------------------------------------ */

/* A number of the manifest: its name, and where it is in struct wb_index_info. */
struct info_number {
    const char *name;
    size_t at;
    bool wide; /* 64 bits; otherwise 32 */
};

static const struct info_number numbers[NUMBERS] = {
    {"generation", offsetof(struct wb_index_info, generation), false},
    {"snapshot", offsetof(struct wb_index_info, snapshot), false},
    {"epoch", offsetof(struct wb_index_info, epoch), true},
    {"edition", offsetof(struct wb_index_info, edition), false},
    {"time", offsetof(struct wb_index_info, time_ms), true},
    {"pages", offsetof(struct wb_index_info, pages), true},
    {"urls", offsetof(struct wb_index_info, urls), true},
    {"words", offsetof(struct wb_index_info, words), true},
    {"arcs", offsetof(struct wb_index_info, arcs), true},
    {"terms", offsetof(struct wb_index_info, terms), true},
    {"bytes", offsetof(struct wb_index_info, bytes), true},
};

static uint64_t get_number(const struct wb_index_info *info, const struct info_number *number)
{
    uint64_t wide;
    uint32_t narrow;

    memcpy(&wide, (const char *)info + number->at, number->wide ? sizeof wide : sizeof narrow);
    memcpy(&narrow, (const char *)info + number->at, sizeof narrow);
    return number->wide ? wide : narrow;
}

static void set_number(struct wb_index_info *info, const struct info_number *number, uint64_t value)
{
    uint32_t narrow = (uint32_t)value;

    if (number->wide)
        memcpy((char *)info + number->at, &value, sizeof value);
    else
        memcpy((char *)info + number->at, &narrow, sizeof narrow);
}

int wb_generation_write(const char *path, const struct wb_generation_manifest *manifest)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_buf_printf(&text, HEADLINE "%d\n", WB_GENERATION_VERSION);

    for (size_t i = 0; err == 0 && i < NUMBERS; i++)
        err = wb_buf_printf(&text, "%s %" PRIu64 "\n", numbers[i].name, get_number(&manifest->info, &numbers[i]));
    for (size_t i = 0; err == 0 && i < manifest->language_count; i++)
        err = wb_buf_printf(&text, "language %s\n", wb_language_code(manifest->languages[i]));
    for (size_t i = 0; err == 0 && i < manifest->columns.count; i++)
        err = wb_buf_printf(&text, "column %s %s\n", manifest->columns.items[i].name,
                            manifest->columns.items[i].words ? "words" : "numbers");
    if (err == 0)
        err = wb_buf_printf(&text, CHECKSUM "%016" PRIx64 "\n", wb_hash64(text.ptr, text.len));
    if (err == 0)
        err = wb_path_replace(path, wb_buf_slice(&text));
    wb_buf_release(&text);
    return err;
}

static bool read_line(struct wb_generation_manifest *manifest, size_t line, struct wb_slice name, struct wb_slice value)
{
    if (line < NUMBERS) {
        uint64_t number = 0;
        if (!wb_slice_equal(name, wb_slice_str(numbers[line].name)) || !wb_slice_to_u64(value, &number) ||
            (!numbers[line].wide && number > UINT32_MAX))
            return false;
        set_number(&manifest->info, &numbers[line], number);
        return true;
    }
    if (wb_slice_equal(name, WB_SLICE_LIT("language")) && manifest->language_count < sizeof manifest->languages) {
        manifest->languages[manifest->language_count++] = wb_language_number(value);
        return true;
    }
    const char *blank = memchr(value.ptr, ' ', value.len);
    struct wb_manifest_column column = {.words = false};
    if (!wb_slice_equal(name, WB_SLICE_LIT("column")) || !blank || blank - value.ptr > WB_STORE_NAME_MAX)
        return false;
    memcpy(column.name, value.ptr, (size_t)(blank - value.ptr));
    column.words =
        wb_slice_equal(wb_slice(blank + 1, (size_t)(value.ptr + value.len - blank) - 1), WB_SLICE_LIT("words"));
    return wb_vec_push(&manifest->columns, column) == 0;
}

/* Reads what is between the headline and the checksum. */
static bool read_lines(struct wb_generation_manifest *manifest, struct wb_slice text)
{
    size_t line = 0;

    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        const char *blank = memchr(text.ptr, ' ', len);
        if (!end || !blank)
            return false;
        size_t name = (size_t)(blank - text.ptr);
        if (!read_line(manifest, line++, wb_slice(text.ptr, name), wb_slice(blank + 1, len - name - 1)))
            return false;
        text = wb_slice(end + 1, text.len - len - 1);
    }
    return line >= NUMBERS;
}

static int decode(const char *path, struct wb_slice text, struct wb_generation_manifest *manifest)
{
    size_t tail = strlen(CHECKSUM) + 16 + 1, head = strlen(HEADLINE);
    uint8_t sum[8];
    uint64_t hash = 0;

    if (text.len < head + tail || memcmp(text.ptr, HEADLINE, head) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is not the manifest of a generation", path);
    const char *end = text.ptr + text.len - tail;
    if (memcmp(end, CHECKSUM, strlen(CHECKSUM)) != 0 ||
        !wb_hex_decode(wb_slice(end + strlen(CHECKSUM), 16), sum, sizeof sum))
        return wb_fail(WB_E_CORRUPT, "%s has no checksum", path);
    for (int i = 0; i < 8; i++)
        hash = hash << 8 | sum[i];
    if (hash != wb_hash64(text.ptr, text.len - tail))
        return wb_fail(WB_E_CORRUPT, "%s: the checksum does not match", path);
    const char *line = memchr(text.ptr, '\n', text.len);
    uint64_t version = 0;
    if (!wb_slice_to_u64(wb_slice(text.ptr + head, (size_t)(line - text.ptr) - head), &version))
        return wb_fail(WB_E_CORRUPT, "%s has no version", path);
    if (version > WB_GENERATION_VERSION)
        return wb_fail(WB_E_NEWER, "%s: a newer program has made this generation", path);
    if (!read_lines(manifest, wb_slice(line + 1, (size_t)(end - line) - 1)))
        return wb_fail(WB_E_CORRUPT, "%s is not the manifest of a generation", path);
    return 0;
}

int wb_generation_read(const char *path, struct wb_generation_manifest *manifest_out)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_path_read(path, MANIFEST_MAX, &text);

    *manifest_out = (struct wb_generation_manifest){.language_count = 0};
    if (err == 0)
        err = decode(path, wb_buf_slice(&text), manifest_out);
    wb_buf_release(&text);
    if (err < 0)
        wb_generation_release(manifest_out);
    return err;
}

void wb_generation_release(struct wb_generation_manifest *manifest)
{
    wb_vec_release(&manifest->columns);
    *manifest = (struct wb_generation_manifest){.language_count = 0};
}
