/* warcinput.c - reads the bytes of an archive from a file or from an entry of a ZIP file. */
#include "warc/warcinput.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "warc/inflater.h"

#include <libdeflate.h>

#define SUM_BYTES ((size_t)256 << 10)

int wb_warcinput_open_file(struct wb_file *file, struct wb_warcinput **input_out)
{
    *input_out = NULL;
    struct wb_warcinput *input = wb_alloc_zero(1, sizeof *input);
    if (!input) {
        wb_file_close(file);
        return WB_E_NOMEM;
    }
    input->file = *file;
    *file = WB_FILE_INIT;
    input->name = wb_strdup(input->file.path);
    int err = input->name ? wb_file_size(&input->file, &input->size) : WB_E_NOMEM;
    if (err < 0) {
        wb_warcinput_close(input);
        return err;
    }
    wb_file_sequential(&input->file);
    *input_out = input;
    return 0;
}

int wb_warcinput_open_entry(const struct wb_file *file, const struct wb_zipdir_entry *entry, struct wb_warcsum *sum,
                            struct wb_warcinput **input_out)
{
    struct wb_buf name = WB_BUF_INIT;
    uint64_t data;

    *input_out = NULL;
    int err = wb_zipdir_data(file, entry, &data);
    if (err < 0)
        return err;
    struct wb_warcinput *input = wb_alloc_zero(1, sizeof *input);
    if (!input)
        return WB_E_NOMEM;
    *input = (struct wb_warcinput){.file = *file, .entry = true, .base = data, .size = entry->size, .sum = sum};
    err = wb_buf_printf(&name, "%s:%.*s", file->path, WB_SLICE_ARG(entry->name));
    if (err == 0)
        err = wb_buf_terminate(&name);
    if (err == 0) {
        input->name = wb_buf_take(&name).ptr;
        if (entry->method == WB_ZIPDIR_DEFLATED)
            err = wb_inflater_new(&input->file, data, entry->packed, entry->size, WB_INFLATER_MARK_BYTES,
                                  &input->inflater);
    }
    wb_buf_release(&name);
    if (err < 0) {
        wb_warcinput_close(input);
        return err;
    }
    *input_out = input;
    return 0;
}

void wb_warcinput_close(struct wb_warcinput *input)
{
    if (!input)
        return;
    wb_inflater_free(input->inflater);
    if (!input->entry)
        wb_file_close(&input->file);
    wb_free(input->name);
    wb_free(input);
}

/* Digests the bytes that continue what was digested before. */
static int add_to_sum(struct wb_warcsum *sum, uint64_t offset, const char *bytes, size_t len)
{
    if (offset > sum->done || offset + len <= sum->done)
        return 0;
    size_t skip = (size_t)(sum->done - offset);
    sum->crc = libdeflate_crc32(sum->crc, bytes + skip, len - skip);
    sum->done = offset + len;
    return sum->digest && !EVP_DigestUpdate(sum->digest, bytes + skip, len - skip) ? wb_fail_nomem() : 0;
}

/* An entry lies inside a file that was not cut off when it was opened. */
static int read_stored(struct wb_warcinput *input, uint64_t offset, void *bytes_out, size_t len)
{
    int err = wb_file_read_exact(&input->file, input->base + offset, bytes_out, len);

    return err == WB_E_CORRUPT ? wb_fail(WB_E_IO, "%s became shorter while it was read", input->name) : err;
}

/* Damage of the compressed data ends the archive. */
static int read_deflated(struct wb_warcinput *input, uint64_t offset, void *bytes_out, size_t len, size_t *got_out)
{
    int err = wb_inflater_read_at(input->inflater, input->name, offset, bytes_out, len, got_out);

    if (err != WB_E_CORRUPT)
        return err;
    input->damaged = true;
    input->size = offset + *got_out;
    return 0;
}

int wb_warcinput_read_at(struct wb_warcinput *input, uint64_t offset, void *bytes_out, size_t len, size_t *got_out)
{
    int err = 0;

    *got_out = 0;
    if (!input->entry)
        return wb_file_read_at(&input->file, offset, bytes_out, len, got_out);
    uint64_t left = input->size > offset ? input->size - offset : 0;
    len = left < len ? (size_t)left : len;
    if (len == 0)
        return 0;
    if (input->inflater)
        err = read_deflated(input, offset, bytes_out, len, got_out);
    else
        err = read_stored(input, offset, bytes_out, len);
    if (err == 0 && !input->inflater)
        *got_out = len;
    return err == 0 && input->sum ? add_to_sum(input->sum, offset, bytes_out, *got_out) : err;
}

int wb_warcinput_finish_sum(struct wb_warcinput *input)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int err = wb_buf_reserve(&bytes, SUM_BYTES);

    WB_CHECK(input->entry && input->sum);
    while (err == 0 && input->sum->done < input->size) {
        size_t got = 0;
        err = wb_warcinput_read_at(input, input->sum->done, bytes.ptr, SUM_BYTES, &got);
    }
    wb_buf_release(&bytes);
    if (err == 0 && input->damaged)
        err = wb_fail(WB_E_CORRUPT, "%s cannot be inflated to its end: its compressed data is damaged", input->name);
    return err;
}
