/*
 * generation.c - finds the directory of a generation, and writes and reads its manifest.
 *
 * The manifest is text, one "name value" per line, so that people can read it too:
 *
 *   webbase generation 1          the format
 *   generation 7                  then the numbers of struct wb_index_info
 *   ...
 *   history newest                the policy that versions were counted by
 *   language en                   one line for each language of a page, in the order of their numbers
 *   column quality numbers        one line for each column of a user; or "words", or "rank"
 *   checksum 0123456789abcdef     XXH3 of everything before this line
 */
#include "index/generation.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "index/whereabouts.h"
#include "os/path.h"
#include "words/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADLINE "webbase generation "
#define CHECKSUM "checksum "

enum {
    SEALED_MAX = 1 << 20, /* of a text with a checksum */
    NUMBERS = 13,
};

const struct wb_fact_kind wb_fact_kinds[WB_FACTS] = {
    [WB_FACT_ID] = {"id", "GFID", 16},
    [WB_FACT_LENGTH] = {"length", "GFLE", 1},
    [WB_FACT_SITE] = {"site", "GFSI", 4},
    [WB_FACT_DEPTH] = {"depth", "GFDE", 2},
    [WB_FACT_INLINKS] = {"inlinks", "GFIN", 4},
    [WB_FACT_RANK] = {"rank", "GFRA", 8},
    [WB_FACT_HOSTRANK] = {"hostrank", "GFHR", 8},
    [WB_FACT_STATIC] = {"static", "GFST", 4},
    [WB_FACT_ANCHORS] = {"anchors", "GFAN", 8},
    [WB_FACT_KEYORDER] = {"keyorder", "GFKO", 4},
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
    [WB_FACT_TITLE] = {"title", "GFTT", 4},
    [WB_FACT_ALTERNATE] = {"alternate", "GFAL", 4},
};

void wb_generation_holder(uint32_t generation, char name_out[WB_STORE_NAME_MAX + 1])
{
    WB_CHECK(generation > 0);
    snprintf(name_out, WB_STORE_NAME_MAX + 1, WB_GENERATION_HOLDER "%" PRIu32, generation);
}

/* ---- texts with a checksum --------------------------------------------------------------------- */

int wb_sealed_write(const char *path, const char *headline, uint64_t format, struct wb_slice lines)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_buf_printf(&text, "%s%" PRIu64 "\n", headline, format);

    WB_CHECK(lines.len == 0 || lines.ptr[lines.len - 1] == '\n');
    if (err == 0)
        err = wb_buf_append_slice(&text, lines);
    if (err == 0)
        err = wb_buf_printf(&text, CHECKSUM "%016" PRIx64 "\n", wb_hash64(text.ptr, text.len));
    if (err == 0)
        err = wb_path_replace(path, wb_buf_slice(&text));
    wb_buf_release(&text);
    return err;
}

/* Finds what is between the headline and the checksum, and compares both. */
static int unseal(const char *path, struct wb_slice text, const char *headline, uint64_t format,
                  struct wb_slice *lines_out)
{
    size_t tail = strlen(CHECKSUM) + 16 + 1, head = strlen(headline);
    uint8_t sum[8];
    uint64_t hash = 0, written = 0;

    if (text.len < head + tail || memcmp(text.ptr, headline, head) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: its first line is another one", path);
    const char *end = text.ptr + text.len - tail;
    if (memcmp(end, CHECKSUM, strlen(CHECKSUM)) != 0 || end[tail - 1] != '\n' ||
        !wb_hex_decode(wb_slice(end + strlen(CHECKSUM), 16), sum, sizeof sum))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: there is no checksum at its end", path);
    for (int i = 0; i < 8; i++)
        hash = hash << 8 | sum[i];
    if (hash != wb_hash64(text.ptr, text.len - tail))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: the checksum does not match", path);
    const char *line = memchr(text.ptr, '\n', text.len);
    if (line >= end || !wb_slice_to_u64(wb_slice(text.ptr + head, (size_t)(line - text.ptr) - head), &written))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: its first line has no number", path);
    if (written != format)
        return wb_fail_format(path, written, format);
    *lines_out = wb_slice(line + 1, (size_t)(end - line) - 1);
    return 0;
}

static int each_line(struct wb_slice text, wb_sealed_line each, void *context)
{
    int err = 0;

    for (size_t line = 0; err == 0 && text.len; line++) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : 0;
        const char *blank = len ? memchr(text.ptr, ' ', len) : NULL;
        if (!blank)
            return WB_E_CORRUPT;
        size_t name = (size_t)(blank - text.ptr);
        err = each(context, line, wb_slice(text.ptr, name), wb_slice(blank + 1, len - name - 1));
        text = wb_slice(end + 1, text.len - len - 1);
    }
    return err;
}

int wb_sealed_read(const char *path, const char *headline, uint64_t format, wb_sealed_line each, void *context)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_slice lines = WB_SLICE_EMPTY;
    int err = wb_path_read(path, SEALED_MAX, &text);

    if (err == WB_E_LIMIT)
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: it is too long", path);
    if (err == 0)
        err = unseal(path, wb_buf_slice(&text), headline, format, &lines);
    if (err == 0) {
        err = each_line(lines, each, context);
        if (err == WB_E_CORRUPT)
            err = wb_fail(WB_E_CORRUPT, "%s is damaged: a line has no meaning", path);
    }
    wb_buf_release(&text);
    return err;
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
    {"rules", offsetof(struct wb_index_info, rules), true},
    {"bytes", offsetof(struct wb_index_info, bytes), true},
    {"damaged", offsetof(struct wb_index_info, damaged), true},
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

    WB_CHECK(number->wide || value <= UINT32_MAX);
    if (number->wide)
        memcpy((char *)info + number->at, &value, sizeof value);
    else
        memcpy((char *)info + number->at, &narrow, sizeof narrow);
}

static const char *column_word(const struct wb_manifest_column *column)
{
    WB_CHECK(!(column->words && column->rank)); /* a rank is a number */
    if (column->fact)
        return column->words ? "fact-words" : "fact-numbers";
    return column->words ? "words" : column->rank ? "rank" : "numbers";
}

int wb_generation_write(const char *path, const struct wb_generation_manifest *manifest)
{
    char history[WB_STORE_HISTORY_TEXT_MAX];
    struct wb_buf lines = WB_BUF_INIT;
    int err = 0;

    WB_CHECK(manifest->info.bytes > 0); /* or readers take it for damaged */
    WB_CHECK(manifest->info.generation > 0);
    WB_CHECK(manifest->info.pages <= manifest->info.urls);
    for (size_t i = 0; err == 0 && i < NUMBERS; i++)
        err = wb_buf_printf(&lines, "%s %" PRIu64 "\n", numbers[i].name, get_number(&manifest->info, &numbers[i]));
    wb_store_history_format(&manifest->history, history);
    if (err == 0)
        err = wb_buf_printf(&lines, "history %s\n", history);
    for (size_t i = 0; err == 0 && i < manifest->language_count; i++)
        err = wb_buf_printf(&lines, "language %s\n", wb_language_code(manifest->languages[i]));
    for (size_t i = 0; err == 0 && i < manifest->columns.count; i++)
        err = wb_buf_printf(&lines, "column %s %s\n", manifest->columns.items[i].name,
                            column_word(&manifest->columns.items[i]));
    if (err == 0)
        err = wb_sealed_write(path, HEADLINE, WB_GENERATION_FORMAT, wb_buf_slice(&lines));
    wb_buf_release(&lines);
    return err;
}

static int read_column(struct wb_generation_manifest *manifest, struct wb_slice value)
{
    struct wb_manifest_column column = {.words = false};
    const char *blank = memchr(value.ptr, ' ', value.len);
    size_t len = blank ? (size_t)(blank - value.ptr) : 0;

    /* The name becomes that of a file. */
    if (len == 0 || wb_store_name_check(wb_slice(value.ptr, len)) < 0)
        return WB_E_CORRUPT;
    memcpy(column.name, value.ptr, len);
    struct wb_slice word = wb_slice(blank + 1, value.len - len - 1);
    column.fact = wb_slice_starts(word, WB_SLICE_LIT("fact-"));
    column.words = wb_slice_equal(word, WB_SLICE_LIT("words")) || wb_slice_equal(word, WB_SLICE_LIT("fact-words"));
    column.rank = wb_slice_equal(word, WB_SLICE_LIT("rank"));
    if (!wb_slice_equal(word, wb_slice_str(column_word(&column))))
        return WB_E_CORRUPT;
    return wb_vec_push(&manifest->columns, column);
}

static int read_line(void *context, size_t line, struct wb_slice name, struct wb_slice value)
{
    struct wb_generation_manifest *manifest = context;
    uint64_t number = 0;

    if (line < NUMBERS) {
        if (!wb_slice_equal(name, wb_slice_str(numbers[line].name)) || !wb_slice_to_u64(value, &number) ||
            (!numbers[line].wide && number > UINT32_MAX))
            return WB_E_CORRUPT;
        set_number(&manifest->info, &numbers[line], number);
        return 0;
    }
    if (line == NUMBERS)
        return wb_slice_equal(name, WB_SLICE_LIT("history")) && wb_store_history_parse(value, &manifest->history) == 0
                   ? 0
                   : WB_E_CORRUPT;
    if (wb_slice_equal(name, WB_SLICE_LIT("column")))
        return read_column(manifest, value);
    if (!wb_slice_equal(name, WB_SLICE_LIT("language")) || manifest->language_count >= sizeof manifest->languages)
        return WB_E_CORRUPT;
    manifest->languages[manifest->language_count++] = wb_language_number(value);
    return 0;
}

int wb_generation_read(const char *path, struct wb_generation_manifest *manifest_out)
{
    const struct wb_index_info *info = &manifest_out->info;

    *manifest_out = (struct wb_generation_manifest){.language_count = 0};
    int err = wb_sealed_read(path, HEADLINE, WB_GENERATION_FORMAT, read_line, manifest_out);
    if (err == WB_E_NEWER) {
        char why[WB_ERROR_MESSAGE_MAX];
        strcpy(why, wb_error_message());
        err = wb_fail(err, "%s. 'webbase index' makes a new generation", why);
    }
    /* A manifest without its last number has none of them: a generation has at least one URL. */
    if (err == 0 && (info->bytes == 0 || info->pages > info->urls || info->urls >= WB_DOCID_NONE))
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: its numbers do not fit together", path);
    if (err < 0)
        wb_generation_release(manifest_out);
    return err;
}

void wb_generation_release(struct wb_generation_manifest *manifest)
{
    wb_vec_release(&manifest->columns);
    *manifest = (struct wb_generation_manifest){.language_count = 0};
}
