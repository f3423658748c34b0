/*
 * completionwrite.c - writes a file of completions (completions.h). Texts come in the order of their folded forms and
 * are written at once; the words by which they can be found are sorted first.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/completions.h"

enum { SORT_MEMORY = 32 << 20 };
#define OFFSET_MAX UINT64_C(0xffffffffff)

enum { COMPLETIONS_WRITER_MAGIC = 0x57424357 }; /* "WBCW" */

struct wb_completions_writer {
    uint32_t magic;
    struct wb_blob_writer *blob;
    struct wb_sorter *starts; /* what follows the beginning of a word, a zero byte, the offset -> where, weight */
    uint64_t text_count, text_bytes, start_count;
    char last[WB_COMPLETION_TEXT_MAX]; /* the folded form that was added last */
    size_t last_len;
};

int wb_completions_create(const char *path, const char *temp_dir, struct wb_completions_writer **writer_out)
{
    struct wb_sorter_options sort = {.dir = temp_dir, .memory_bytes = SORT_MEMORY};
    struct wb_completions_writer *writer = wb_alloc_zero(1, sizeof *writer);
    int err = writer ? wb_sorter_open(&sort, &writer->starts) : WB_E_NOMEM;

    if (writer)
        writer->magic = COMPLETIONS_WRITER_MAGIC;
    if (err == 0)
        err = wb_blob_create(path, WB_COMPLETIONS_KIND, &writer->blob);
    if (err < 0) {
        wb_completions_abandon(writer);
        writer = NULL;
    }
    *writer_out = writer;
    return err;
}

void wb_completions_abandon(struct wb_completions_writer *writer)
{
    if (!writer)
        return;
    WB_CHECK(writer->magic == COMPLETIONS_WRITER_MAGIC);
    writer->magic = 0;
    wb_blob_abandon(writer->blob);
    wb_sorter_close(writer->starts);
    wb_free(writer);
}

/* ---- texts ------------------------------------------------------------------------------------------------------ */

static int add_starts(struct wb_completions_writer *writer, struct wb_slice folded, uint16_t first, uint16_t other)
{
    char key[WB_COMPLETION_TEXT_MAX + 9], value[3];
    unsigned count = 0;
    int err = 0;

    for (size_t at = 0; err == 0 && at < folded.len && count < WB_COMPLETION_STARTS_MAX; at++) {
        size_t length = folded.len - at;
        if (at && folded.ptr[at - 1] != ' ')
            continue;
        memcpy(key, folded.ptr + at, length);
        key[length] = '\0';
        wb_put64_be(key + length + 1, writer->text_bytes);
        value[0] = (char)at;
        wb_put16(value + 1, at == 0 ? first : other);
        err = wb_sorter_add(writer->starts, wb_slice(key, length + 9), wb_slice(value, sizeof value));
        count++;
    }
    return err;
}

int wb_completions_add(struct wb_completions_writer *writer, const struct wb_completion *completion, uint16_t first,
                       uint16_t other)
{
    struct wb_slice folded = completion->folded;
    struct wb_slice shown = wb_slice_equal(folded, completion->text) ? WB_SLICE_EMPTY : completion->text;
    char head[WB_COMPLETION_HEAD_BYTES];

    WB_CHECK(writer->magic == COMPLETIONS_WRITER_MAGIC);
    WB_CHECK(folded.len > 0 && folded.len <= WB_COMPLETION_TEXT_MAX && shown.len <= WB_COMPLETION_TEXT_MAX);
    WB_CHECK(wb_slice_compare(wb_slice(writer->last, writer->last_len), folded) < 0);
    memcpy(writer->last, folded.ptr, folded.len);
    writer->last_len = folded.len;
    if (writer->text_bytes > OFFSET_MAX) /* a thousand million titles: the others are not offered */
        return 0;
    wb_put32(head, completion->docid);
    wb_put32(head + 4, completion->pages);
    head[8] = completion->is_word;
    head[9] = (char)folded.len;
    head[10] = (char)shown.len;
    int err = add_starts(writer, folded, first, other);
    if (err == 0)
        err = wb_blob_append(writer->blob, head, sizeof head);
    if (err == 0)
        err = wb_blob_append(writer->blob, folded.ptr, folded.len);
    if (err == 0 && shown.len)
        err = wb_blob_append(writer->blob, shown.ptr, shown.len);
    writer->text_bytes = wb_blob_tell(writer->blob);
    writer->text_count++;
    return err;
}

/* ---- starts and maxima ----------------------------------------------------------------------------------------- */

/* Adds a weight to a level; the greatest of 64 is its last value. */
static int add_weight(struct wb_buf *level, uint64_t number, uint16_t weight)
{
    char bytes[2];

    wb_put16(bytes, weight);
    if (number % 64 == 0)
        return wb_buf_append(level, bytes, sizeof bytes);
    WB_CHECK(level->len == 2 * (number / 64 + 1));
    char *last = level->ptr + level->len - 2;
    if (wb_get16(last) < weight)
        memcpy(last, bytes, sizeof bytes);
    return 0;
}

/* Writes the levels, from that of the starts up. */
static int write_maxima(struct wb_completions_writer *writer, struct wb_buf *level)
{
    struct wb_buf next = WB_BUF_INIT;
    uint64_t below = writer->start_count;
    int err = 0;

    while (err == 0 && below > 64) {
        err = wb_blob_append(writer->blob, level->ptr, level->len);
        below = level->len / 2;
        wb_buf_clear(&next);
        for (uint64_t i = 0; err == 0 && i < below; i++)
            err = add_weight(&next, i, wb_get16(level->ptr + 2 * i));
        struct wb_buf swap = *level;
        *level = next;
        next = swap;
    }
    wb_buf_release(&next);
    return err;
}

static int write_starts(struct wb_completions_writer *writer)
{
    struct wb_buf level = WB_BUF_INIT;
    struct wb_table_record record;
    char bytes[WB_COMPLETION_START_BYTES];
    int more = 0, err = wb_sorter_sort(writer->starts);

    while (err == 0 && (more = wb_sorter_next(writer->starts, &record)) > 0) {
        WB_CHECK(record.key.len > 8 && record.value.len == 3);
        uint64_t offset = wb_get64_be(record.key.ptr + record.key.len - 8);
        uint64_t at = (uint8_t)record.value.ptr[0];
        uint16_t weight = wb_get16(record.value.ptr + 1);
        wb_put64(bytes, offset | at << 40 | (uint64_t)weight << 48);
        err = wb_blob_append(writer->blob, bytes, sizeof bytes);
        if (err == 0)
            err = add_weight(&level, writer->start_count++, weight);
    }
    if (err == 0 && more == 0)
        err = write_maxima(writer, &level);
    wb_buf_release(&level);
    return err < 0 ? err : more;
}

int wb_completions_finish(struct wb_completions_writer *writer)
{
    char foot[WB_COMPLETION_FOOT_BYTES] = WB_COMPLETION_MAGIC;

    WB_CHECK(writer->magic == COMPLETIONS_WRITER_MAGIC);
    int err = write_starts(writer);
    wb_put64(foot + 8, writer->text_bytes);
    wb_put64(foot + 16, writer->text_count);
    wb_put64(foot + 24, writer->start_count);
    if (err == 0)
        err = wb_blob_append(writer->blob, foot, sizeof foot);
    if (err == 0) {
        err = wb_blob_finish(writer->blob, NULL);
        writer->blob = NULL;
    }
    wb_completions_abandon(writer);
    return err;
}
