/*
 * textwork.c - gathers what is kept of pages, and writes it in the order of docids.
 *
 * Pages come in the order of the disk, so their texts wait in a temporary file. What is kept of a page that has not
 * changed is copied from the last generation as it is there, compressed; its bytes are compared with the checksums of
 * that file before, and get those of the new one.
 *
 * That takes the same dictionary. So a dictionary stays from one generation to the next, until there are GROWTH times
 * as many pages as it was made for, or one of the pages that it was made of is gone: then a new one is made, and all
 * texts are compressed again. This is why this file, unlike all others, may have other bytes than one from scratch; it
 * never has other texts.
 */
#include "index/textwork.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/build.h"
#include "index/textfile.h"
#include "os/nameless.h"

#include <zdict.h>

enum {
    BUFFER_BYTES = 1 << 20,
    SAMPLES = WB_TEXT_SAMPLES_MAX, /* pages that a dictionary is made of, at most */
    SAMPLE_BYTES = 2 << 10,        /* of each, at most */
    SHARE = 4,                     /* a dictionary has at most this part of the bytes that it was made of... */
    SAMPLES_MIN_BYTES = 128 << 10, /* ...and is not made of less than this */
    GROWTH = 4,
};

/* ---- gathering ----------------------------------------------------------------------------------- */

int wb_textwork_begin(struct wb_build *build)
{
    struct wb_textwork *work = &build->texts;
    void *places = NULL;

    WB_CHECK(!work->places);
    int err = wb_nameless_open(build->root, &work->file);
    work->pages = build->roster.known;
    if (err == 0)
        err = wb_nameless_map(build->root, (work->pages + 1) * sizeof *work->places, &places);
    work->places = places;
    return err;
}

void wb_textwork_release(struct wb_textwork *work)
{
    if (work->places)
        wb_nameless_unmap(work->places, (work->pages + 1) * sizeof *work->places);
    wb_buf_release(&work->buffer);
    wb_file_close(&work->file);
    *work = (struct wb_textwork){.file = WB_FILE_INIT};
}

static int flush(struct wb_textwork *work)
{
    int err = wb_file_write_at(&work->file, work->written, work->buffer.ptr, work->buffer.len);

    work->written += work->buffer.len;
    wb_buf_clear(&work->buffer);
    return err;
}

int wb_textwork_add(struct wb_build *build, uint32_t docid, struct wb_slice kept)
{
    struct wb_textwork *work = &build->texts;

    WB_CHECK(docid < work->pages);
    WB_CHECK(kept.len > 0 && kept.len <= WB_KEPT_MAX);
    WB_CHECK(work->places[docid].bytes == 0); /* each page is read once */
    int err = work->buffer.len + kept.len > BUFFER_BYTES && work->buffer.len ? flush(work) : 0;
    work->places[docid] = (struct wb_textplace){work->written + work->buffer.len, kept.len};
    return err < 0 ? err : wb_buf_append_slice(&work->buffer, kept);
}

/* ---- texts of the new generation --------------------------------------------------------------- */

/* What writing takes. */
struct text_source {
    struct wb_build *build;
    struct wb_text_decoder decoder;
    struct wb_buf memory;
    bool copied; /* records of the last generation are taken as they are */
};

static bool is_carried(const struct wb_build *build, uint32_t docid)
{
    return build->carry.old && !wb_carry_is_fresh(&build->carry, docid);
}

/* What is kept of a page, from wherever it is. Empty: nothing. */
static int find_kept(struct text_source *source, uint32_t docid, struct wb_slice *kept_out)
{
    struct wb_build *build = source->build;
    int more = 1, err = 0;

    WB_CHECK(docid < build->texts.pages && build->texts.buffer.len == 0); /* everything was flushed */
    *kept_out = WB_SLICE_EMPTY;
    if (is_carried(build, docid)) {
        err = wb_text_decoder_begin(&source->decoder, &build->carry.old->texts, build->carry.from[docid]);
        while (err == 0 && more > 0)
            more = wb_text_decoder_more(&source->decoder);
        *kept_out = wb_buf_slice(&source->decoder.kept);
        return err < 0 ? err : more;
    }
    const struct wb_textplace *place = &build->texts.places[docid];
    WB_CHECK(place->offset + place->bytes <= build->texts.written);
    wb_buf_clear(&source->memory);
    err = wb_buf_reserve(&source->memory, place->bytes + 1);
    if (err == 0)
        err = wb_file_read_exact(&build->texts.file, place->offset, source->memory.ptr, place->bytes);
    *kept_out = wb_slice(source->memory.ptr, err == 0 ? place->bytes : 0);
    return err;
}

/* ---- the dictionary ------------------------------------------------------------------------------ */

/* A dictionary that is being made. */
struct made_dictionary {
    struct wb_buf samples, ids, bytes;
    size_t sizes[SAMPLES];
    unsigned count;
};

static void release_made(struct made_dictionary *made)
{
    wb_buf_release(&made->samples);
    wb_buf_release(&made->ids);
    wb_buf_release(&made->bytes);
}

/* The texts of pages at equal distances. */
static int gather_samples(struct text_source *source, struct made_dictionary *made)
{
    struct wb_build *build = source->build;
    uint64_t pages = build->roster.known, step = pages / SAMPLES + 1;
    char id[WB_PAGEID_BYTES];
    int err = 0;

    for (uint64_t docid = 0; err == 0 && docid < pages; docid += step) {
        struct wb_slice kept;
        err = find_kept(source, (uint32_t)docid, &kept);
        size_t len = kept.len < SAMPLE_BYTES ? kept.len : SAMPLE_BYTES;
        if (err < 0 || len == 0)
            continue;
        WB_CHECK(made->count < SAMPLES);
        made->sizes[made->count++] = len;
        wb_pageid_put(build->roster.urls[wb_docmap_number(&build->roster.docmap, (uint32_t)docid)].id, id);
        err = wb_buf_append(&made->ids, id, sizeof id);
        if (err == 0)
            err = wb_buf_append(&made->samples, kept.ptr, len);
    }
    return err;
}

/* Few pages, or pages that have nothing in common, have no dictionary. */
static int make_dictionary(struct text_source *source, struct made_dictionary *made)
{
    int err = gather_samples(source, made);
    size_t max = made->samples.len / SHARE, bytes = 0;

    max = max < WB_TEXT_DICTIONARY_MAX ? max : WB_TEXT_DICTIONARY_MAX;
    if (err == 0 && made->samples.len >= SAMPLES_MIN_BYTES) {
        err = wb_buf_reserve(&made->bytes, max);
        if (err == 0)
            bytes = ZDICT_trainFromBuffer(made->bytes.ptr, max, made->samples.ptr, made->sizes, made->count);
    }
    made->bytes.len = ZDICT_isError(bytes) ? 0 : bytes;
    return err;
}

/* Whether the dictionary of the last generation stays. Parts of the texts that it was made of are in it. */
static bool dictionary_stays(const struct wb_build *build, const struct wb_text_dictionary *dictionary)
{
    WB_CHECK(dictionary->samples.len % WB_PAGEID_BYTES == 0);
    if (dictionary->bytes.len == 0 || build->roster.known / GROWTH >= dictionary->pages)
        return false;
    for (size_t at = 0; at < dictionary->samples.len; at += WB_PAGEID_BYTES) {
        const struct wb_roster_page *page = wb_roster_find(&build->roster, wb_pageid_get(dictionary->samples.ptr + at));
        if (!page || page->docid == WB_DOCID_NONE)
            return false;
    }
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static int write_texts(struct text_source *source, struct wb_textfile_writer *writer)
{
    struct wb_build *build = source->build;
    int err = 0;

    for (uint32_t docid = 0; err == 0 && docid < build->roster.known; docid++) {
        struct wb_slice bytes;
        if (source->copied && is_carried(build, docid)) {
            WB_CHECK(build->carry.from[docid] < build->carry.old->texts.pages);
            err = wb_textfile_record(&build->carry.old->texts, build->carry.from[docid], &bytes);
            if (err == 0)
                err = wb_textfile_add_record(writer, bytes);
            continue;
        }
        err = find_kept(source, docid, &bytes);
        if (err == 0)
            err = wb_textfile_add(writer, bytes);
    }
    return err;
}

static int write_file(struct text_source *source, const char *path, const struct wb_text_dictionary *dictionary)
{
    struct wb_textfile_writer *writer = NULL;
    struct wb_build *build = source->build;
    int err = wb_textfile_create(path, build->root, build->roster.known, dictionary, &writer);

    if (err == 0)
        err = write_texts(source, writer);
    if (err < 0) {
        wb_textfile_abandon(writer);
        return err;
    }
    return wb_textfile_finish(writer);
}

/* The dictionary of the new generation, and whether records of the last one go with it. */
static int choose_dictionary(struct text_source *source, struct made_dictionary *made,
                             struct wb_text_dictionary *dictionary)
{
    struct wb_build *build = source->build;
    const struct wb_text_dictionary *old = build->carry.old ? &build->carry.old->texts.dictionary : NULL;

    *dictionary = (struct wb_text_dictionary){.bytes = WB_SLICE_EMPTY, .samples = WB_SLICE_EMPTY};
    source->copied = old && dictionary_stays(build, old);
    if (source->copied) {
        *dictionary = *old;
        return 0;
    }
    int err = make_dictionary(source, made);
    if (err == 0 && made->bytes.len)
        *dictionary =
            (struct wb_text_dictionary){wb_buf_slice(&made->bytes), wb_buf_slice(&made->ids), build->roster.known};
    source->copied = old && old->bytes.len == 0 && dictionary->bytes.len == 0;
    return err;
}

int wb_textwork_write(struct wb_build *build)
{
    struct text_source source = {.build = build};
    struct made_dictionary *made = wb_alloc_zero(1, sizeof *made);
    struct wb_text_dictionary dictionary;
    char *path = wb_build_path(build, WB_TEXTS_FILE);
    int err = path && made ? wb_text_decoder_init(&source.decoder) : WB_E_NOMEM;

    if (err == 0)
        err = flush(&build->texts);
    if (err == 0)
        err = choose_dictionary(&source, made, &dictionary);
    if (err == 0)
        err = write_file(&source, path, &dictionary);
    if (made)
        release_made(made);
    wb_text_decoder_release(&source.decoder);
    wb_buf_release(&source.memory);
    wb_free(made);
    wb_free(path);
    return err;
}
