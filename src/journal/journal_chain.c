/*
 * journal_chain.c - the records of one site, from the last one back.
 *
 * Only heads are looked at (and checksums): the caller reads what it needs of the places it gets.
 * A chain that leads forward, to itself or in a circle is damage and ends the walk; it is never followed twice.
 */
#include "base/error.h"
#include "base/mem.h"
#include "journal/journal_reader.h"
#include "journal/edit.h"

/*
 * Where a chain has been. Logs only grow, so a chain that is sound comes back to a log only before the place
 * where it left it; one that does not would be endless.
 */
struct trail {
    struct wb_edit_place *lowest; /* of each log that was left, by number */
    size_t count, cap;
};

static size_t find_log(const struct trail *trail, uint32_t log)
{
    size_t low = 0, high = trail->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (trail->lowest[middle].log < log)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int reserve_places(struct wb_edit_place **places, size_t *cap, size_t count)
{
    if (count < *cap)
        return 0;
    size_t grown = *cap ? 2 * *cap : 64;
    struct wb_edit_place *moved = wb_realloc(*places, grown * sizeof *moved);
    if (!moved)
        return WB_E_NOMEM;
    *places = moved;
    *cap = grown;
    return 0;
}

static int remember_leaving(struct trail *trail, struct wb_edit_place place)
{
    size_t i = find_log(trail, place.log);

    if (i < trail->count && trail->lowest[i].log == place.log) {
        trail->lowest[i] = place;
        return 0;
    }
    int err = reserve_places(&trail->lowest, &trail->cap, trail->count);
    if (err < 0)
        return err;
    memmove(trail->lowest + i + 1, trail->lowest + i, (trail->count - i) * sizeof *trail->lowest);
    trail->lowest[i] = place;
    trail->count++;
    return 0;
}

static int follow_prev(struct trail *trail, const struct wb_journal_file *file, struct wb_edit_place from, struct wb_edit_place to)
{
    int err = 0;

    if (to.log == from.log)
        return 0; /* wb_journal_check_prev has seen to it */
    err = remember_leaving(trail, from);
    if (err < 0)
        return err;
    size_t i = find_log(trail, to.log);
    if (i < trail->count && trail->lowest[i].log == to.log && to.offset >= trail->lowest[i].offset)
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu leads back to where its chain came from", file->file.path,
                       (unsigned long long)from.offset);
    return 0;
}

static void reverse_places(struct wb_edit_place *places, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct wb_edit_place held = places[i];
        places[i] = places[count - 1 - i];
        places[count - 1 - i] = held;
    }
}

/* Reads one record of a chain; the first one says of which site the chain is. */
static int walk_one(struct wb_journal_reader *reader, struct wb_edit_place at, bool first, uint64_t *site_inout, struct trail *trail,
                    struct wb_edit *edit_out)
{
    const struct wb_journal_file *file;
    struct wb_slice record;
    int err = wb_journal_reader_find(reader, at, &file, &record);

    if (err < 0)
        return err;
    if (!wb_edit_decode_head(record.ptr, edit_out))
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu is of no kind", file->file.path, (unsigned long long)at.offset);
    if (!first && edit_out->site != *site_inout)
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu is of another site than its chain", file->file.path,
                       (unsigned long long)at.offset);
    *site_inout = edit_out->site;
    err = wb_journal_check_prev(file, at.offset, edit_out);
    if (err == 0 && edit_out->prev.log)
        err = follow_prev(trail, file, at, edit_out->prev);
    return err;
}

int wb_journal_reader_chain(struct wb_journal_reader *reader, struct wb_edit_place last, bool whole, struct wb_edit_place **places_out,
                         size_t *count_out)
{
    struct wb_edit_place *places = NULL, at = last;
    struct trail trail = {NULL, 0, 0};
    size_t count = 0, cap = 0;
    uint64_t site = 0;
    int err = 0;

    *places_out = NULL;
    *count_out = 0;
    while (at.log) {
        struct wb_edit edit;
        err = walk_one(reader, at, count == 0, &site, &trail, &edit);
        if (err == WB_E_NOTFOUND && whole && count > 0) {
            err = 0; /* older logs go once they were merged */
            break;
        }
        if (err == 0)
            err = reserve_places(&places, &cap, count);
        if (err < 0)
            goto done;
        places[count++] = at;
        if (edit.kind == WB_EDIT_VISIT && !whole)
            break;
        at = edit.prev;
    }
    reverse_places(places, count);
    *places_out = places;
    *count_out = count;
    places = NULL;
done:
    wb_free(places);
    wb_free(trail.lowest);
    return err;
}
