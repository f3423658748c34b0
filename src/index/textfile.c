/*
 * textfile.c - writes and reads the file of kept texts, which textfile.h draws.
 *
 * Parts are compressed one by one, with a dictionary that all share, so that a result costs the decoding of a few
 * kilobytes, wherever it is. A file may come from a bad disk: after its checksums, every length is checked as well.
 */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_createDDict_byReference: the dictionary stays in the mapping */
#include "index/textfile.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "index/index.h"
#include "os/nameless.h"

#include <zstd.h>

#define FOOT_MAGIC "WBTEXT1\n"

enum {
    FOOT_BYTES = 64,
    GROUP = 64, /* pages whose records share one offset */
    LEVEL = 3,
};
_Static_assert(sizeof FOOT_MAGIC == 8 + 1, "the foot starts with 8 letters");

static uint64_t groups_of(uint64_t pages)
{
    return (pages + GROUP - 1) / GROUP;
}

static uint64_t directory_bytes(uint64_t pages)
{
    return groups_of(pages) * 8 + pages * 4;
}

/* Bytes of the part that begins at `at`. */
static size_t part_bytes(uint64_t at, uint64_t end)
{
    size_t most = at == 0 ? WB_TEXT_FIRST_BYTES : WB_TEXT_PART_BYTES;

    WB_CHECK(at < end);
    return end - at < most ? (size_t)(end - at) : most;
}

/* ---- writing ----------------------------------------------------------------------------------- */

enum { TEXTFILE_WRITER_MAGIC = 0x57425457 }; /* "WBTW" */

struct wb_textfile_writer {
    uint32_t magic;
    struct wb_blob_writer *blob;
    ZSTD_CCtx *zstd;
    ZSTD_CDict *coder; /* NULL: there is no dictionary */
    struct wb_text_dictionary dictionary;
    struct wb_buf record, parts;
    uint64_t pages, added;
    uint32_t *lengths; /* of the records, by page */
};

static void free_writer(struct wb_textfile_writer *writer)
{
    WB_CHECK(writer->magic == TEXTFILE_WRITER_MAGIC);
    writer->magic = 0;
    if (writer->lengths)
        wb_nameless_unmap(writer->lengths, (writer->pages + 1) * sizeof *writer->lengths);
    ZSTD_freeCCtx(writer->zstd);
    ZSTD_freeCDict(writer->coder);
    wb_buf_release(&writer->record);
    wb_buf_release(&writer->parts);
    wb_free(writer);
}

static int open_coder(struct wb_textfile_writer *writer)
{
    struct wb_slice dictionary = writer->dictionary.bytes;

    writer->zstd = ZSTD_createCCtx();
    if (!writer->zstd)
        return WB_E_NOMEM;
    WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, LEVEL)));
    WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_dictIDFlag, 0)));
    WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1)));
    if (dictionary.len == 0)
        return 0;
    writer->coder = ZSTD_createCDict(dictionary.ptr, dictionary.len, LEVEL);
    if (writer->coder)
        WB_CHECK(!ZSTD_isError(ZSTD_CCtx_refCDict(writer->zstd, writer->coder)));
    return writer->coder ? 0 : WB_E_NOMEM;
}

int wb_textfile_create(const char *path, const char *dir, uint64_t pages, const struct wb_text_dictionary *dictionary,
                       struct wb_textfile_writer **writer_out)
{
    struct wb_textfile_writer *writer = wb_alloc_zero(1, sizeof *writer);
    void *lengths = NULL;

    *writer_out = NULL;
    WB_CHECK(dictionary->bytes.len <= WB_TEXT_DICTIONARY_MAX);
    WB_CHECK(dictionary->samples.len <= WB_TEXT_SAMPLES_MAX * WB_PAGEID_BYTES);
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = TEXTFILE_WRITER_MAGIC;
    writer->pages = pages;
    writer->dictionary = *dictionary;
    int err = open_coder(writer);
    if (err == 0)
        err = wb_nameless_map(dir, (pages + 1) * sizeof *writer->lengths, &lengths);
    writer->lengths = lengths;
    if (err == 0)
        err = wb_blob_create(path, WB_TEXTS_KIND, &writer->blob);
    if (err < 0) {
        free_writer(writer);
        return err;
    }
    *writer_out = writer;
    return 0;
}

int wb_textfile_add_record(struct wb_textfile_writer *writer, struct wb_slice record)
{
    WB_CHECK(writer->magic == TEXTFILE_WRITER_MAGIC && writer->added < writer->pages);
    WB_CHECK(record.len <= WB_TEXT_RECORD_MAX);
    writer->lengths[writer->added++] = (uint32_t)record.len;
    return wb_blob_append(writer->blob, record.ptr, record.len);
}

/* Compresses one part behind the others, and notes its length. */
static int add_part(struct wb_textfile_writer *writer, struct wb_slice part)
{
    char length[WB_VARINT_MAX];
    size_t bound = ZSTD_compressBound(part.len);
    int err = wb_buf_reserve(&writer->parts, bound);

    if (err < 0)
        return err;
    size_t bytes = ZSTD_compress2(writer->zstd, writer->parts.ptr + writer->parts.len, bound, part.ptr, part.len);
    if (ZSTD_isError(bytes))
        return wb_fail(WB_E_NOMEM, "zstd: %s", ZSTD_getErrorName(bytes));
    writer->parts.len += bytes;
    return wb_buf_append(&writer->record, length, wb_put_varint(length, bytes));
}

int wb_textfile_add(struct wb_textfile_writer *writer, struct wb_slice kept)
{
    char length[WB_VARINT_MAX];
    int err = 0;

    WB_CHECK(writer->magic == TEXTFILE_WRITER_MAGIC);
    WB_CHECK(kept.len <= WB_KEPT_MAX);
    wb_buf_clear(&writer->record);
    wb_buf_clear(&writer->parts);
    if (kept.len)
        err = wb_buf_append(&writer->record, length, wb_put_varint(length, kept.len));
    for (size_t at = 0; err == 0 && at < kept.len; at += part_bytes(at, kept.len))
        err = add_part(writer, wb_slice(kept.ptr + at, part_bytes(at, kept.len)));
    if (err == 0)
        err = wb_buf_append_slice(&writer->record, wb_buf_slice(&writer->parts));
    return err < 0 ? err : wb_textfile_add_record(writer, wb_buf_slice(&writer->record));
}

static int write_directory(struct wb_textfile_writer *writer)
{
    uint64_t at = 0;
    char bytes[8];
    int err = 0;

    for (uint64_t page = 0; err == 0 && page < writer->pages; page++) {
        wb_put64(bytes, at);
        if (page % GROUP == 0)
            err = wb_blob_append(writer->blob, bytes, 8);
        at += writer->lengths[page];
    }
    for (uint64_t page = 0; err == 0 && page < writer->pages; page++) {
        wb_put32(bytes, writer->lengths[page]);
        err = wb_blob_append(writer->blob, bytes, 4);
    }
    return err;
}

int wb_textfile_finish(struct wb_textfile_writer *writer)
{
    char foot[FOOT_BYTES] = {0};

    WB_CHECK(writer->added == writer->pages);
    memcpy(foot, FOOT_MAGIC, 8);
    wb_put64(foot + 8, writer->pages);
    wb_put64(foot + 16, wb_blob_tell(writer->blob));
    wb_put64(foot + 24, writer->dictionary.bytes.len);
    wb_put64(foot + 32, writer->dictionary.pages);
    wb_put64(foot + 40, writer->dictionary.samples.len / WB_PAGEID_BYTES);
    int err = write_directory(writer);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->dictionary.bytes.ptr, writer->dictionary.bytes.len);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->dictionary.samples.ptr, writer->dictionary.samples.len);
    if (err == 0)
        err = wb_blob_append(writer->blob, foot, sizeof foot);
    if (err < 0)
        wb_blob_abandon(writer->blob);
    else
        err = wb_blob_finish(writer->blob, NULL);
    free_writer(writer);
    return err;
}

void wb_textfile_abandon(struct wb_textfile_writer *writer)
{
    if (!writer)
        return;
    wb_blob_abandon(writer->blob);
    free_writer(writer);
}

/* ---- reading ----------------------------------------------------------------------------------- */

static int damaged(const struct wb_textfile *file)
{
    return wb_fail(WB_E_CORRUPT, "%s is not a file of kept texts", file->blob.path);
}

int wb_textfile_check(struct wb_textfile *file)
{
    const struct wb_blob *blob = &file->blob;

    if (blob->bytes < FOOT_BYTES)
        return damaged(file);
    const char *foot = blob->data + blob->bytes - FOOT_BYTES;
    int err = wb_blob_check(blob, blob->bytes - FOOT_BYTES, FOOT_BYTES);
    if (err < 0)
        return err;
    uint64_t pages = wb_get64(foot + 8), records = wb_get64(foot + 16), bytes = wb_get64(foot + 24),
             samples = wb_get64(foot + 40);
    unsigned format = wb_mark_format(foot, FOOT_MAGIC);
    if (format > 1)
        return wb_fail_format(blob->path, format, 1);
    /* Each is small enough, or known to be inside, so that the sum is not cut. */
    if (format != 1 || pages >= WB_DOCID_NONE || records > blob->bytes || bytes > WB_TEXT_DICTIONARY_MAX ||
        samples > WB_TEXT_SAMPLES_MAX ||
        records + directory_bytes(pages) + bytes + samples * WB_PAGEID_BYTES + FOOT_BYTES != blob->bytes)
        return damaged(file);
    file->pages = pages;
    file->record_bytes = records;
    file->offsets = blob->data + records;
    file->lengths = file->offsets + groups_of(pages) * 8;
    file->dictionary.bytes = wb_slice(file->lengths + pages * 4, bytes);
    file->dictionary.samples = wb_slice(foot - samples * WB_PAGEID_BYTES, samples * WB_PAGEID_BYTES);
    file->dictionary.pages = wb_get64(foot + 32);
    err = wb_blob_check(blob, records + directory_bytes(pages), bytes + samples * WB_PAGEID_BYTES);
    if (err < 0 || bytes == 0)
        return err;
    file->decoder = ZSTD_createDDict_byReference(file->dictionary.bytes.ptr, bytes);
    return file->decoder ? 0 : wb_fail(WB_E_CORRUPT, "%s: its dictionary is not one of zstd", blob->path);
}

int wb_textfile_open(const char *path, struct wb_textfile *file_out)
{
    *file_out = (struct wb_textfile){.pages = 0};
    int err = wb_blob_open(path, WB_TEXTS_KIND, &file_out->blob);

    if (err == 0)
        err = wb_textfile_check(file_out);
    if (err < 0)
        wb_textfile_close(file_out);
    return err;
}

void wb_textfile_close(struct wb_textfile *file)
{
    ZSTD_freeDDict(file->decoder);
    wb_blob_close(&file->blob);
    *file = (struct wb_textfile){.pages = 0};
}

static int check_directory(const struct wb_textfile *file, const char *from, uint64_t bytes)
{
    return wb_blob_check(&file->blob, (uint64_t)(from - file->blob.data), bytes);
}

/* Where the record of a page is. */
static int find_record(const struct wb_textfile *file, uint32_t docid, uint64_t *at_out, uint64_t *len_out)
{
    WB_CHECK(docid < file->pages);
    const char *offset = file->offsets + (uint64_t)docid / GROUP * 8, *lengths;
    uint32_t in_group = docid % GROUP;

    lengths = file->lengths + (uint64_t)(docid - in_group) * 4;
    int err = check_directory(file, offset, 8);
    if (err == 0)
        err = check_directory(file, lengths, (in_group + 1) * 4);
    if (err < 0)
        return err;
    uint64_t at = wb_get64(offset), len = wb_get32(lengths + (size_t)in_group * 4);
    for (uint32_t i = 0; i < in_group && at <= file->record_bytes; i++)
        at += wb_get32(lengths + (size_t)i * 4);
    if (len > WB_TEXT_RECORD_MAX || at > file->record_bytes || len > file->record_bytes - at)
        return wb_fail(WB_E_CORRUPT, "%s: the text of page %u lies outside", file->blob.path, docid);
    *at_out = at;
    *len_out = len;
    return 0;
}

int wb_textfile_record(const struct wb_textfile *file, uint32_t docid, struct wb_slice *record_out)
{
    uint64_t at = 0, len = 0;
    int err = find_record(file, docid, &at, &len);

    if (err == 0)
        err = wb_blob_check(&file->blob, at, len);
    *record_out = err == 0 ? wb_slice(file->blob.data + at, len) : WB_SLICE_EMPTY;
    return err;
}

/* ---- decoding ---------------------------------------------------------------------------------- */

int wb_text_decoder_init(struct wb_text_decoder *decoder)
{
    *decoder = (struct wb_text_decoder){.context = ZSTD_createDCtx()};
    return decoder->context ? 0 : WB_E_NOMEM;
}

void wb_text_decoder_release(struct wb_text_decoder *decoder)
{
    ZSTD_freeDCtx(decoder->context);
    wb_buf_release(&decoder->kept);
    *decoder = (struct wb_text_decoder){.context = NULL};
}

static int bad_record(struct wb_text_decoder *decoder)
{
    decoder->lengths = decoder->parts = WB_SLICE_EMPTY;
    decoder->kept_bytes = decoder->kept.len = 0;
    return wb_fail(WB_E_CORRUPT, "%s: the text of page %u is damaged", decoder->file->blob.path, decoder->docid);
}

int wb_text_decoder_begin(struct wb_text_decoder *decoder, const struct wb_textfile *file, uint32_t docid)
{
    uint64_t at = 0, len = 0, bytes = 0;

    decoder->file = file;
    decoder->docid = docid;
    decoder->kept_bytes = 0;
    decoder->lengths = decoder->parts = WB_SLICE_EMPTY;
    wb_buf_clear(&decoder->kept);
    /* Not its checksum in the blob: that is one of 64 KiB, and each part has its own. */
    int err = find_record(file, docid, &at, &len);
    if (err < 0 || len == 0)
        return err;
    const char *p = file->blob.data + at, *end = p + len;
    if (!wb_get_varint(&p, end, &decoder->kept_bytes) || decoder->kept_bytes == 0 || decoder->kept_bytes > WB_KEPT_MAX)
        return bad_record(decoder);
    decoder->lengths.ptr = p;
    for (uint64_t part = 0; part < decoder->kept_bytes; part += part_bytes(part, decoder->kept_bytes))
        if (!wb_get_varint(&p, end, &bytes))
            return bad_record(decoder);
    decoder->lengths.len = (size_t)(p - decoder->lengths.ptr);
    decoder->parts = wb_slice(p, (size_t)(end - p));
    err = wb_text_decoder_more(decoder);
    return err < 0 ? err : 0;
}

int wb_text_decoder_more(struct wb_text_decoder *decoder)
{
    WB_CHECK(decoder->kept.len <= decoder->kept_bytes);
    const char *p = decoder->lengths.ptr;
    uint64_t bytes = 0, left = decoder->kept_bytes - decoder->kept.len;
    if (left == 0)
        return 0;
    size_t part = part_bytes(decoder->kept.len, decoder->kept_bytes);
    if (!wb_get_varint(&p, decoder->lengths.ptr + decoder->lengths.len, &bytes) || bytes > decoder->parts.len ||
        (left == part && bytes != decoder->parts.len))
        return bad_record(decoder);
    int err = wb_buf_reserve(&decoder->kept, part);
    if (err < 0)
        return err;
    char *to = decoder->kept.ptr + decoder->kept.len;
    size_t got = decoder->file->decoder ? ZSTD_decompress_usingDDict(decoder->context, to, part, decoder->parts.ptr,
                                                                     bytes, decoder->file->decoder)
                                        : ZSTD_decompressDCtx(decoder->context, to, part, decoder->parts.ptr, bytes);
    if (ZSTD_isError(got) || got != part)
        return bad_record(decoder);
    decoder->kept.len += part;
    decoder->lengths = wb_slice(p, (size_t)(decoder->lengths.ptr + decoder->lengths.len - p));
    decoder->parts = wb_slice(decoder->parts.ptr + bytes, decoder->parts.len - bytes);
    return 1;
}

/* The offset of a group must be where the records before it end. */
static int check_offset(const struct wb_textfile *file, uint64_t page, uint64_t at)
{
    const char *offset = file->offsets + page / GROUP * 8;
    int err = page % GROUP == 0 ? check_directory(file, offset, 8) : 0;

    return err == 0 && page % GROUP == 0 && wb_get64(offset) != at ? damaged(file) : err;
}

int wb_textfile_verify(const struct wb_textfile *file)
{
    struct wb_text_decoder decoder;
    struct wb_slice record, title, text;
    uint64_t at = 0;
    unsigned flags;
    int err = wb_text_decoder_init(&decoder);

    for (uint64_t page = 0; err == 0 && page < file->pages; page++) {
        int more = 1;
        err = check_offset(file, page, at);
        if (err == 0)
            err = wb_textfile_record(file, (uint32_t)page, &record);
        at += record.len;
        if (err == 0)
            err = wb_text_decoder_begin(&decoder, file, (uint32_t)page);
        while (err == 0 && more > 0)
            more = wb_text_decoder_more(&decoder);
        err = err < 0 ? err : more;
        if (err == 0 && record.len && !wb_kept_text_split(wb_buf_slice(&decoder.kept), &flags, &title, &text))
            err = bad_record(&decoder);
    }
    if (err == 0 && at != file->record_bytes)
        err = damaged(file);
    wb_text_decoder_release(&decoder);
    return err;
}
