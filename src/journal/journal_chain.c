/*
 * journal_chain.c - follows the chain of one site from its last record back to the start of a visit, or as far as it
 * goes.
 *
 *   log 9     ....... a2 .......... a4 .. a5      one site that two processes crawled in turn:
 *   log 12    .. a1 ........ a3 .........         last = a5, prev of a5 = a4, of a4 = a3, and so on
 *
 * Only the heads and checksums of records are read here: the caller reads the records that it needs. The chain comes
 * from disk, so it may be damaged: one that leads forwards, to itself or in a circle gives WB_E_CORRUPT and never an
 * endless walk.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/edit.h"
#include "journal/journal_reader.h"

/* A log that the chain has left, and the lowest offset at which it did so. */
struct left_log {
    uint64_t hash; /* the number of the log */
    uint64_t lowest;
};

/* A walk along one chain, from the last record back. */
struct chain_walk {
    struct wb_journal_reader *reader;
    uint64_t site;                       /* the site that all records must be of */
    WB_MAP(struct left_log) left;
    WB_VEC(struct wb_edit_place) places; /* the newest first */
};

static void release_walk(struct chain_walk *walk)
{
    wb_map_release(&walk->left);
    wb_vec_release(&walk->places);
}

static int remember_leaving(struct chain_walk *walk, struct wb_edit_place place)
{
    struct left_log *left = wb_map_next(&walk->left, place.log, NULL);

    WB_CHECK(place.log != 0);
    WB_CHECK(place.offset >= WB_JOURNAL_FILE_HEAD_BYTES);
    if (!left)
        left = wb_map_add(&walk->left, place.log);
    if (!left)
        return WB_E_NOMEM;
    WB_CHECK(left->lowest == 0 || place.offset < left->lowest); /* check_step() made sure of that */
    left->lowest = place.offset;
    return 0;
}

/*
 * Checks the step from a record to its predecessor. Logs only grow, so an intact chain returns to a log only before the
 * place where it left it. Without this rule a damaged chain could go round in circles.
 */
static int check_step(struct chain_walk *walk, const struct wb_journal_file *file, struct wb_edit_place from,
                      struct wb_edit_place to)
{
    WB_CHECK(from.log == file->number);
    WB_CHECK(from.offset >= WB_JOURNAL_FILE_HEAD_BYTES);
    WB_CHECK(to.log != 0);
    if (to.log == from.log)
        return 0; /* wb_journal_check_prev() has checked it */
    int err = remember_leaving(walk, from);
    if (err < 0)
        return err;
    const struct left_log *left = wb_map_next(&walk->left, to.log, NULL);
    if (left && to.offset >= left->lowest)
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu leads back to where its chain came from", file->file.path,
                       (unsigned long long)from.offset);
    return 0;
}

/* Reads the head of one record of the chain. The first one determines the site. */
static int walk_one(struct chain_walk *walk, struct wb_edit_place at, struct wb_edit *edit_out)
{
    const struct wb_journal_file *file;
    struct wb_slice record;
    int err = wb_journal_reader_find(walk->reader, at, &file, &record);

    WB_CHECK(at.log != 0);
    if (err < 0)
        return err;
    WB_CHECK(file->number == at.log);
    WB_CHECK(record.len >= WB_EDIT_HEAD_BYTES);
    if (!wb_edit_decode_head(record.ptr, edit_out))
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu is of an unknown kind", file->file.path,
                       (unsigned long long)at.offset);
    if (walk->places.count && edit_out->site != walk->site)
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu is not of the same site as its chain", file->file.path,
                       (unsigned long long)at.offset);
    walk->site = edit_out->site;
    err = wb_journal_check_prev(file, at.offset, edit_out);
    WB_CHECK(err < 0 || edit_out->prev.log != at.log || edit_out->prev.offset < at.offset);
    if (err == 0 && edit_out->prev.log)
        err = check_step(walk, file, at, edit_out->prev);
    return err;
}

static void reverse_places(struct wb_edit_place *places, size_t count)
{
    WB_CHECK(places || count == 0);
    for (size_t i = 0; i < count / 2; i++) {
        struct wb_edit_place held = places[i];
        places[i] = places[count - 1 - i];
        places[count - 1 - i] = held;
    }
}

static int walk_back(struct chain_walk *walk, struct wb_edit_place last, bool whole)
{
    struct wb_edit_place at = last;
    struct wb_edit edit;

    WB_CHECK(walk->places.count == 0);
    while (at.log) {
        int err = walk_one(walk, at, &edit);
        if (err == WB_E_NOTFOUND && whole && walk->places.count > 0)
            return 0; /* older logs are removed once webdb has merged them */
        if (err == 0)
            err = wb_vec_push(&walk->places, at);
        if (err < 0)
            return err;
        if (edit.kind == WB_EDIT_VISIT && !whole)
            return 0;
        WB_CHECK(walk->places.items[walk->places.count - 1].log == at.log);
        at = edit.prev;
    }
    return 0;
}

int wb_journal_reader_chain(struct wb_journal_reader *reader, struct wb_edit_place last, bool whole,
                            struct wb_edit_place **places_out, size_t *count_out)
{
    struct chain_walk walk = {.reader = reader, .left = WB_MAP_INIT(0), .places = WB_VEC_INIT};

    *places_out = NULL;
    *count_out = 0;
    WB_CHECK(last.log != 0 || last.offset == 0);
    int err = walk_back(&walk, last, whole);
    if (err == 0) {
        WB_CHECK(walk.places.count > 0 || last.log == 0);
        reverse_places(walk.places.items, walk.places.count);
        WB_CHECK(last.log == 0 || walk.places.items[walk.places.count - 1].log == last.log);
        *places_out = walk.places.items;
        *count_out = walk.places.count;
        walk.places.items = NULL; /* now the caller's */
    }
    release_walk(&walk);
    return err;
}
