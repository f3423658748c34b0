/*
 * bucket.c - bucket files as a whole: their names, the header, the seal, and which bucket has which ids.
 *
 * Offset and, in brackets, bytes. Numbers are little-endian, checksums XXH3 with 64 bits.
 *
 *   header  0 "WBBF" (4)  4 format, 1 (2)  6 zero (2)  8 number (4)  12 revision (4)  16 repository id (16)
 *           32 prefix of the range (8)  40 its bits (4)  44 bytes of a bucket (4)  48 number of buckets (8)
 *           56 its gaps (128)  184 checksum of bytes 0 to 183 (8)  192 zero (320)
 *   seal    512 "WBSL" (4)  516 zero (4)  520 commit (8)  528 position of the seal, 512 (8)
 *           536 checksum of bytes 512 to 535 (8)  544 zero (3552)
 *   buckets 4096 on; see bucket_image.c
 */
#include "pagefile/bucket.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdio.h>
#include <unistd.h>

enum {
    FILE_FORMAT = 1,
    HEADER_BYTES = 192,
    HEADER_CHECK_AT = 184,
    SEAL_AT = 512,
    SEAL_BYTES = 32,
    SEAL_CHECK_AT = 24,
    CLAIM_TRIES = 100, /* with growing pauses: about ten seconds */
    CLAIM_PAUSE_US = 50,
    CLAIM_DOUBLINGS = 11,
    LOOK_AT_BUCKETS = 4, /* for an image of the file, if its header is damaged */
};

/* ---- names -------------------------------------------------------------------------------------------- */

void wb_bucket_name(uint32_t number, uint32_t revision, char name_out[WB_SEGMENT_NAME_MAX])
{
    WB_CHECK(revision > 0);
    snprintf(name_out, WB_SEGMENT_NAME_MAX, WB_SEGMENT_DIR "/%08u.%u.bkt", number, revision);
}

void wb_bucket_doubles_name(uint32_t number, uint32_t revision, char name_out[WB_SEGMENT_NAME_MAX])
{
    WB_CHECK(revision > 0);
    snprintf(name_out, WB_SEGMENT_NAME_MAX, WB_SEGMENT_DIR "/%08u.%u.dw", number, revision);
}

bool wb_bucket_name_parse(const char *name, uint32_t *number_out, uint32_t *revision_out, bool *doubles_out)
{
    char canonical[WB_SEGMENT_NAME_MAX];
    unsigned number = 0, revision = 0;

    *number_out = *revision_out = 0;
    *doubles_out = false;
    if (sscanf(name, "%8u.%u.", &number, &revision) != 2 || number == 0 || revision == 0)
        return false;
    wb_bucket_name(number, revision, canonical); /* refuses everything that we do not write */
    if (strcmp(canonical + sizeof WB_SEGMENT_DIR, name) != 0) {
        wb_bucket_doubles_name(number, revision, canonical);
        if (strcmp(canonical + sizeof WB_SEGMENT_DIR, name) != 0)
            return false;
        *doubles_out = true;
    }
    *number_out = number;
    *revision_out = revision;
    return true;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

void wb_bucket_file_close(struct wb_bucket_file *file)
{
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC || file->magic == 0);
    wb_node_file_close(&file->file);
    wb_node_file_close(&file->doubles);
    *file = WB_BUCKET_FILE_INIT;
}

/* Before the next attempt to get what somebody else has claimed. */
static void pause_before(unsigned attempt)
{
    usleep((useconds_t)CLAIM_PAUSE_US << (attempt < CLAIM_DOUBLINGS ? attempt : CLAIM_DOUBLINGS));
}

/* Claims a file. Others claim it only for a moment: waits for these. */
static int claim_one(struct wb_node_file *file)
{
    int err = wb_node_file_claim(file);

    for (unsigned i = 0; i < CLAIM_TRIES && err == WB_E_BUSY; i++) {
        pause_before(i);
        err = wb_node_file_claim(file);
    }
    return err == WB_E_NOTFOUND ? wb_fail(WB_E_CORRUPT, "%s was removed", file->path) : err;
}

int wb_bucket_file_claim(struct wb_bucket_file *file)
{
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    WB_CHECK(file->write);
    int err = claim_one(&file->file);
    if (err < 0 || !file->doubles.node)
        return err;
    err = claim_one(&file->doubles);
    if (err < 0)
        wb_node_file_release(&file->file);
    return err;
}

void wb_bucket_file_release(struct wb_bucket_file *file)
{
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    if (file->doubles.node)
        wb_node_file_release(&file->doubles);
    wb_node_file_release(&file->file);
}

int wb_bucket_file_remove(struct wb_node *node, uint32_t number, uint32_t revision)
{
    char name[WB_SEGMENT_NAME_MAX];

    WB_CHECK(number > 0);
    WB_CHECK(revision > 0);
    wb_bucket_doubles_name(number, revision, name);
    int err = wb_node_remove(node, name);
    wb_bucket_name(number, revision, name);
    return err < 0 ? err : wb_node_remove(node, name);
}

void wb_bucket_file_discard(struct wb_bucket_file *file)
{
    struct wb_error_copy why;

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    wb_error_save(0, &why); /* it is called after an error, whose message must stay */
    if (file->doubles.node)
        wb_node_file_remove(&file->doubles);
    if (file->file.node)
        wb_node_file_remove(&file->file);
    wb_error_restore(&why);
    wb_bucket_file_close(file);
}

/* What every image has: an image of another file, or of an earlier revision, has another key. */
static uint64_t key_of(const char header[HEADER_BYTES])
{
    return wb_hash64(header, HEADER_CHECK_AT);
}

static void put_header(char to[WB_BUCKET_FILE_HEADER_BYTES], const uint8_t *repo_id,
                       const struct wb_bucket_shape *shape)
{
    WB_CHECK(shape->number > 0);
    WB_CHECK(shape->revision > 0);
    memset(to, 0, WB_BUCKET_FILE_HEADER_BYTES);
    memcpy(to, "WBBF", 4);
    wb_put16(to + 4, FILE_FORMAT);
    wb_put32(to + 8, shape->number);
    wb_put32(to + 12, shape->revision);
    memcpy(to + 16, repo_id, 16);
    wb_put64(to + 32, shape->range.prefix);
    wb_put32(to + 40, shape->range.bits);
    wb_put32(to + 44, shape->bucket_bytes);
    wb_put64(to + 48, shape->count);
    wb_cells_write(&shape->range.gaps, to + 56);
    wb_put64(to + HEADER_CHECK_AT, wb_hash64(to, HEADER_CHECK_AT));
}

/* Takes what the header says about the buckets. */
static void take_shape(const char header[HEADER_BYTES], struct wb_bucket_file *file)
{
    file->range = (struct wb_catalog_range){.prefix = wb_get64(header + 32), .bits = wb_get32(header + 40)};
    wb_cells_read(header + 56, &file->range.gaps);
    file->bucket_bytes = wb_get32(header + 44);
    file->count = wb_get64(header + 48);
    file->key = key_of(header);
}

/* Removes what a crash left under these names. Somebody who looks through the node may have claimed it for a moment. */
static int clear_names(struct wb_node *node, const struct wb_bucket_shape *shape)
{
    int err = wb_bucket_file_remove(node, shape->number, shape->revision);

    for (unsigned i = 0; i < CLAIM_TRIES && err == WB_E_BUSY; i++) {
        pause_before(i);
        err = wb_bucket_file_remove(node, shape->number, shape->revision);
    }
    return err;
}

int wb_bucket_file_create(struct wb_node *node, const uint8_t *repo_id, const struct wb_bucket_shape *shape,
                          struct wb_bucket_file *file_out)
{
    char header[WB_BUCKET_FILE_HEADER_BYTES], name[WB_SEGMENT_NAME_MAX];

    WB_CHECK(shape->count > 0 && shape->count <= WB_BUCKET_COUNT_MAX);
    WB_CHECK(shape->bucket_bytes >= WB_BUCKET_BYTES_MIN && shape->bucket_bytes <= WB_BUCKET_BYTES_MAX);
    WB_CHECK(wb_catalog_range_is_valid(&shape->range));
    *file_out = (struct wb_bucket_file){
        .magic = WB_BUCKET_FILE_MAGIC, .write = true, .number = shape->number, .revision = shape->revision};
    put_header(header, repo_id, shape);
    take_shape(header, file_out);
    int err = clear_names(node, shape);
    wb_bucket_name(shape->number, shape->revision, name);
    if (err == 0)
        err = wb_node_file_create(node, name, &file_out->file);
    if (err == 0)
        err = wb_node_file_write_at(&file_out->file, 0, header, sizeof header);
    if (err == 0)
        err = wb_node_file_truncate(&file_out->file, wb_bucket_extents_at(file_out));
    wb_bucket_doubles_name(shape->number, shape->revision, name);
    if (err == 0)
        err = wb_node_file_create(node, name, &file_out->doubles);
    if (err == 0)
        err = wb_bucket_swept_clear(file_out);
    if (err < 0)
        wb_bucket_file_discard(file_out);
    return err;
}

/* Whether one of the first buckets has an image of this file. */
static bool has_image(const struct wb_bucket_file *file)
{
    char head[WB_BUCKET_HEAD_BYTES];
    struct wb_bucket ignored;
    uint64_t bytes;

    WB_CHECK(file->count > 0);
    for (uint64_t i = 0; i < file->count && i < LOOK_AT_BUCKETS; i++)
        if (wb_node_file_read_exact(&file->file, wb_bucket_at(file, i), head, sizeof head) == 0 &&
            !wb_bucket_head_check(file, i, head, &ignored, &bytes))
            return true;
    return false;
}

/* Finds out what a damaged header said. The key of the images is a checksum of all of it. */
static bool do_without_header(const uint8_t *repo_id, const struct wb_catalog_segment *row, struct wb_bucket_file *file)
{
    char header[WB_BUCKET_FILE_HEADER_BYTES];

    WB_CHECK(!file->headless);
    for (uint32_t bytes = WB_BUCKET_BYTES_MIN; bytes <= WB_BUCKET_BYTES_MAX && !file->headless; bytes *= 2) {
        struct wb_bucket_shape shape = {row->number, row->revision, row->range, bytes, row->map_count};
        put_header(header, repo_id, &shape);
        take_shape(header, file);
        file->headless = has_image(file);
    }
    return file->headless;
}

int wb_bucket_file_repair(struct wb_bucket_file *file, const uint8_t *repo_id)
{
    struct wb_bucket_shape shape = {file->number, file->revision, file->range, file->bucket_bytes, file->count};
    char header[WB_BUCKET_FILE_HEADER_BYTES];

    WB_CHECK(file->headless);
    put_header(header, repo_id, &shape);
    WB_CHECK(key_of(header) == file->key);
    int err = wb_bucket_file_claim(file);
    if (err < 0)
        return err;
    err = wb_node_file_write_at(&file->file, 0, header, HEADER_BYTES);
    if (err == 0)
        err = wb_node_file_sync(&file->file);
    wb_bucket_file_release(file);
    file->headless = err < 0;
    return err;
}

void wb_bucket_file_header(const struct wb_bucket_file *file, const uint8_t *repo_id,
                           char header_out[WB_BUCKET_FILE_HEADER_BYTES])
{
    struct wb_bucket_shape shape = {file->number, file->revision, file->range, file->bucket_bytes, file->count};

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    put_header(header_out, repo_id, &shape);
    WB_CHECK(key_of(header_out) == file->key);
}

/* Reads the header, which must be that of the row's file. */
static int check_header(const uint8_t *repo_id, const struct wb_catalog_segment *row, struct wb_bucket_file *file)
{
    char header[WB_BUCKET_FILE_HEADER_BYTES], expected[WB_BUCKET_FILE_HEADER_BYTES];
    int err = wb_node_file_read_exact(&file->file, 0, header, HEADER_BYTES);

    WB_CHECK(row->number > 0);
    if (err < 0)
        return err;
    if (memcmp(header, "WBBF", 4) == 0 && wb_get16(header + 4) != FILE_FORMAT &&
        wb_get64(header + HEADER_CHECK_AT) == wb_hash64(header, HEADER_CHECK_AT))
        return wb_fail_format(file->file.path, wb_get16(header + 4), FILE_FORMAT);
    take_shape(header, file);
    struct wb_bucket_shape shape = {row->number, row->revision, row->range, file->bucket_bytes, row->map_count};
    put_header(expected, repo_id, &shape);
    bool right = memcmp(header, expected, HEADER_BYTES) == 0 && file->bucket_bytes >= WB_BUCKET_BYTES_MIN &&
                 file->bucket_bytes <= WB_BUCKET_BYTES_MAX;
    if (row->map_count > WB_BUCKET_COUNT_MAX || (!right && !do_without_header(repo_id, row, file)))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: its header is not that of bucket file %u, revision %u",
                       file->file.path, row->number, row->revision);
    return 0;
}

int wb_bucket_file_open(struct wb_node *node, const uint8_t *repo_id, const struct wb_catalog_segment *row, bool write,
                        struct wb_bucket_file *file_out)
{
    char name[WB_SEGMENT_NAME_MAX];

    *file_out = WB_BUCKET_FILE_INIT;
    if (row->revision == 0 || row->map_count == 0)
        return wb_fail(WB_E_CORRUPT, "file %u of %s is not one of buckets", row->number, wb_node_label(node));
    file_out->magic = WB_BUCKET_FILE_MAGIC;
    file_out->write = write;
    file_out->number = row->number;
    file_out->revision = row->revision;
    wb_bucket_name(row->number, row->revision, name);
    int err = wb_node_file_open(node, name, write, &file_out->file);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_CORRUPT, "%s/%s is missing", wb_node_label(node), name);
    if (err == 0)
        err = check_header(repo_id, row, file_out);
    /* Without the second file all is well, as long as no bucket is torn. */
    wb_bucket_doubles_name(row->number, row->revision, name);
    if (err == 0) {
        err = wb_node_file_open(node, name, write, &file_out->doubles);
        err = err == WB_E_NOTFOUND ? 0 : err;
    }
    if (err < 0)
        wb_bucket_file_close(file_out);
    WB_CHECK(err < 0 || file_out->count > 0);
    return err;
}

/* ---- ids ---------------------------------------------------------------------------------------------------- */

uint64_t wb_bucket_of(const struct wb_bucket_file *file, struct wb_pageid id)
{
    unsigned __int128 before = wb_catalog_range_before(&file->range, id.hi), size = wb_catalog_range_size(&file->range);

    WB_CHECK(file->count > 0);
    WB_CHECK(before < size);
    return (uint64_t)(before * file->count / size);
}

uint64_t wb_bucket_edge(const struct wb_bucket_file *file, uint64_t number)
{
    WB_CHECK(number < file->count);
    /* How many come before the first one of the next bucket. */
    unsigned __int128 size = wb_catalog_range_size(&file->range);
    unsigned __int128 next = ((number + 1) * size + file->count - 1) / file->count;
    return next < size ? wb_catalog_range_at(&file->range, (uint64_t)next) - 1 : wb_catalog_range_last(&file->range);
}

/* ---- the seal ------------------------------------------------------------------------------------------------ */

static void put_seal(char to[SEAL_BYTES], uint64_t commit)
{
    memset(to, 0, SEAL_BYTES);
    memcpy(to, "WBSL", 4);
    wb_put64(to + 8, commit);
    wb_put64(to + 16, SEAL_AT);
    wb_put64(to + SEAL_CHECK_AT, wb_hash64(to, SEAL_CHECK_AT));
}

int wb_bucket_write_seal(const struct wb_bucket_file *file, uint64_t commit)
{
    char seal[SEAL_BYTES];

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    put_seal(seal, commit);
    int err = wb_node_file_write_at(&file->file, SEAL_AT, seal, sizeof seal);
    return err < 0 ? err : wb_node_file_sync(&file->file);
}

bool wb_bucket_read_seal(const struct wb_bucket_file *file, uint64_t *commit_out)
{
    char seal[SEAL_BYTES], expected[SEAL_BYTES];

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    *commit_out = 0;
    if (wb_node_file_read_exact(&file->file, SEAL_AT, seal, sizeof seal) < 0)
        return false;
    uint64_t commit = wb_get64(seal + 8);
    put_seal(expected, commit);
    if (memcmp(seal, expected, sizeof seal) != 0)
        return false;
    *commit_out = commit;
    return true;
}
