/*
 * textfile.h - the kept texts of a generation as a file: texts.wbb, a blob of kind "TEXT".
 *
 *   data        records | directory | dictionary | samples | foot
 *
 *   record      what is kept of a page (kepttext.h), in parts, each of which is a zstd frame: the first of 4 KiB, the
 *               others of 8 KiB. Bytes before compression (varint), compressed bytes of each part (varints), the parts.
 *               A page that could not be read has an empty one
 *   directory   for each 64 pages: where the first of their records is (8). For each page: bytes of its record (4)
 *   dictionary  of zstd, for all parts; empty: there is none
 *   samples     the ids of the pages whose texts the dictionary was made of (16 each)
 *   foot, 64    0 "WBTEXT1\n"  8 pages (8)  16 bytes of all records (8)  24 bytes of the dictionary (8)
 *               32 pages that there were when the dictionary was made (8)  40 samples (8)  48 zero (16)
 *
 * Records are in the order of docids. Every part has the checksum that zstd gives a frame, so that readers need not
 * compare 64 KiB with the checksum of the blob for each text. Between the lengths of a record and its parts, nothing
 * else fits together, so a change in them is noticed, too.
 */
#ifndef WB_INDEX_TEXTFILE_H
#define WB_INDEX_TEXTFILE_H

#include "index/kepttext.h"
#include "table/table.h"

#define WB_TEXTS_FILE "texts.wbb"
#define WB_TEXTS_KIND "TEXT"
#define WB_TEXT_FIRST_BYTES (4u << 10)
#define WB_TEXT_PART_BYTES (8u << 10)
#define WB_TEXT_RECORD_MAX (WB_KEPT_MAX + (WB_KEPT_MAX / WB_TEXT_PART_BYTES + 3) * 128)
#define WB_TEXT_DICTIONARY_MAX (110u << 10)
#define WB_TEXT_SAMPLES_MAX 512u

/* What the parts of all records are compressed with. */
struct wb_text_dictionary {
    struct wb_slice bytes;   /* empty: nothing */
    struct wb_slice samples; /* ids of the pages that it was made of: parts of their texts are in it */
    uint64_t pages;          /* that there were when it was made; 0: there is none */
};

/* ---- writing ----------------------------------------------------------------------------------- */

/* Life: create, add one record for each page, then finish or abandon. */
struct wb_textfile_writer;

/* dir: for a temporary file. The dictionary must stay valid until the end. */
int wb_textfile_create(const char *path, const char *dir, uint64_t pages, const struct wb_text_dictionary *dictionary,
                       struct wb_textfile_writer **writer_out);

/* Compresses what is kept of the next page. Empty: nothing is. */
int wb_textfile_add(struct wb_textfile_writer *writer, struct wb_slice kept);

/* The next page has this record of a file with the same dictionary. */
int wb_textfile_add_record(struct wb_textfile_writer *writer, struct wb_slice record);

int wb_textfile_finish(struct wb_textfile_writer *writer);
void wb_textfile_abandon(struct wb_textfile_writer *writer);

/* ---- reading ----------------------------------------------------------------------------------- */

/* An open file. Any number of threads may share it. All zero is a closed one. */
struct wb_textfile {
    struct wb_blob blob;
    uint64_t pages, record_bytes;
    const char *offsets, *lengths;        /* inside the mapping, not checked yet */
    struct wb_text_dictionary dictionary; /* checked */
    struct ZSTD_DDict_s *decoder;         /* NULL: there is no dictionary */
};

/* Checks the foot and the dictionary. WB_E_CORRUPT names the file. */
int wb_textfile_open(const char *path, struct wb_textfile *file_out);
void wb_textfile_close(struct wb_textfile *file);

/* A test seam, for the fuzzer: the same for data that is mapped already, so that file->blob is set. */
int wb_textfile_check(struct wb_textfile *file);

/* The record of a page, compared with the checksums of the blob. */
int wb_textfile_record(const struct wb_textfile *file, uint32_t docid, struct wb_slice *record_out);

/* ---- decoding ---------------------------------------------------------------------------------- */

/* Working memory of one thread. */
struct wb_text_decoder {
    struct ZSTD_DCtx_s *context;
    struct wb_buf kept;             /* what has been decoded of the current record */
    struct wb_slice lengths, parts; /* of the record: what has not been decoded yet */
    uint64_t kept_bytes;            /* of all parts together */
    const struct wb_textfile *file;
    uint32_t docid;
};

int wb_text_decoder_init(struct wb_text_decoder *decoder);
void wb_text_decoder_release(struct wb_text_decoder *decoder);

/* Decodes the first part of a record into decoder->kept. WB_E_CORRUPT names the file and the page. */
int wb_text_decoder_begin(struct wb_text_decoder *decoder, const struct wb_textfile *file, uint32_t docid);

/* Appends the next part. Returns 1, 0 if there is none left, or an error. Bytes may move. */
int wb_text_decoder_more(struct wb_text_decoder *decoder);

/* Reads the whole file: 0 if it is sound; WB_E_CORRUPT names the first page that is not. */
int wb_textfile_verify(const struct wb_textfile *file);

#endif
