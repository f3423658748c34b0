/* vaultplan.c - finds out what has to be shipped (vaultplan.h). It reads small files only, and puts nothing. */
#include "vault/vaultplan.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Pieces of one file that follow each other become one, if they are more than MERGE_COUNT and together smaller. */
enum { MERGE_COUNT = 8, MERGE_BYTES = 8 << 20 };

/* ---- what there is now --------------------------------------------------------------------------------------- */

static int add_source(struct wb_vault_plan *plan, const struct wb_vault_source *source)
{
    if (!wb_vault_path_fits(wb_slice_str(source->name), source->kind))
        return wb_fail(WB_E_INVALID,
                       "%s cannot be part of a backup: its name has other characters than letters, digits, "
                       "'.', '_' and '-', or is too long",
                       source->name);
    return wb_vec_push(&plan->sources, *source);
}

static char *keep_name(struct wb_vault_plan *plan, const char *name)
{
    char *copy = wb_strdup(name);

    if (copy && wb_vec_push(&plan->names, copy) < 0) {
        wb_free(copy);
        copy = NULL;
    }
    return copy;
}

static int add_small(void *context, const char *name, struct wb_slice bytes)
{
    struct wb_vault_plan *plan = context;
    struct wb_buf copy = WB_BUF_INIT;
    struct wb_vault_source source = {.kind = WB_VAULT_SMALL, .name = keep_name(plan, name), .size = bytes.len};
    int err = source.name ? wb_buf_append_slice(&copy, bytes) : WB_E_NOMEM;

    if (err == 0)
        err = wb_vec_push(&plan->smalls, copy);
    if (err < 0) {
        wb_buf_release(&copy);
        return err;
    }
    source.bytes = wb_buf_slice(&copy);
    return add_source(plan, &source);
}

static int add_pages(void *context, const struct wb_store_state_file *file)
{
    struct wb_vault_plan *plan = context;
    struct wb_vault_source source = {
        .kind = WB_VAULT_PAGES, .name = keep_name(plan, file->name), .size = file->bytes, .in_place = file->in_place};

    return source.name ? add_source(plan, &source) : WB_E_NOMEM;
}

static bool has_stamp(const struct wb_vault_plan *plan, const struct wb_vault_stamps *known,
                      const struct wb_collected_file *file)
{
    const struct wb_vault_stamp *stamp = plan->trusted ? wb_vault_stamps_find(known, file->name) : NULL;

    return stamp && stamp->size == file->size && wb_folder_stamp_equal(&stamp->stamp, &file->stamp);
}

static int add_others(struct wb_vault_plan *plan, const struct wb_vault_stamps *known)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < plan->moment->files.count; i++) {
        const struct wb_collected_file *file = &plan->moment->files.items[i];
        struct wb_vault_source source = {
            .kind = WB_VAULT_OTHER, .name = file->name, .size = file->size, .grows = file->grows, .collected = file};
        if (!file->whole && !file->grows) {
            struct wb_vault_stamp stamp = {wb_strdup(file->name), file->size, file->stamp};
            source.unchanged = has_stamp(plan, known, file);
            err = stamp.name ? wb_vec_push(&plan->stamps, stamp) : WB_E_NOMEM;
            if (err < 0)
                wb_free(stamp.name);
        }
        if (err == 0)
            err = add_source(plan, &source);
    }
    return err;
}

static int compare_sources(const void *a, const void *b)
{
    return strcmp(((const struct wb_vault_source *)a)->name, ((const struct wb_vault_source *)b)->name);
}

static int list_sources(struct wb_vault_plan *plan, const struct wb_vault_stamps *known)
{
    int err = wb_store_state_each_small(plan->moment->state, add_small, plan);

    if (err == 0)
        err = wb_store_state_each_file(plan->moment->state, add_pages, plan);
    if (err == 0)
        err = add_others(plan, known);
    if (err == 0 && plan->sources.count)
        qsort(plan->sources.items, plan->sources.count, sizeof *plan->sources.items, compare_sources);
    return err;
}

/* ---- what changes -------------------------------------------------------------------------------------------- */

static int end_piece(struct wb_vault_plan *plan, const struct wb_vault_piece *piece)
{
    struct wb_vault_piece dead = *piece;

    dead.died = plan->number;
    return wb_vec_push(&plan->change.pieces, dead);
}

static int end_file(struct wb_vault_plan *plan, const struct wb_vault_file *file)
{
    struct wb_vault_file dead = *file;

    dead.died = plan->number;
    return wb_vec_push(&plan->change.files, dead);
}

static int begin_file(struct wb_vault_plan *plan, enum wb_vault_file_kind kind, const char *name, uint32_t *id_out)
{
    struct wb_vault_file file = {.id = plan->change.next_file,
                                 .kind = kind,
                                 .path = keep_name(plan, name),
                                 .born = plan->number,
                                 .died = WB_VAULT_ALIVE};

    *id_out = file.id;
    if (!file.path)
        return WB_E_NOMEM;
    if (plan->change.next_file == UINT32_MAX)
        return wb_fail(WB_E_LIMIT, "the vault has had too many files: begin a new one at another URL");
    plan->change.next_file++;
    return wb_vec_push(&plan->change.files, file);
}

static int add_task(struct wb_vault_plan *plan, const struct wb_vault_task *task)
{
    struct wb_vault_task *copy = wb_alloc(sizeof *copy);
    int err = copy ? wb_vec_push(&plan->tasks, copy) : WB_E_NOMEM;

    if (err < 0) {
        wb_free(copy);
        return err;
    }
    *copy = *task;
    plan->bytes += task->len;
    return 0;
}

/* A few bytes, which go into the shipment itself. */
static int plan_inline(struct wb_vault_plan *plan, const struct wb_vault_source *source, uint32_t file, uint64_t offset,
                       uint32_t len, const struct wb_vault_piece *was)
{
    struct wb_vault_piece piece = {
        .file = file, .len = len, .offset = offset, .born = plan->number, .died = WB_VAULT_ALIVE};
    char bytes[WB_VAULT_INLINE_MAX];
    int err = 0;

    if (source->collected)
        err = wb_collected_read(source->collected, offset, len, bytes);
    else
        memcpy(bytes, source->bytes.ptr + offset, len);
    if (err < 0 || (was && wb_slice_equal(was->bytes, wb_slice(bytes, len))))
        return err;
    err = was ? end_piece(plan, was) : 0;
    if (err == 0)
        err = wb_arena_copy(&plan->change.arena, wb_slice(bytes, len), &piece.bytes);
    return err < 0 ? err : wb_vec_push(&plan->change.pieces, piece);
}

/* A range of a file, which is not longer than an object. */
static int plan_piece(struct wb_vault_plan *plan, const struct wb_vault_source *source, uint32_t file, uint64_t offset,
                      uint64_t len, const struct wb_vault_piece *was)
{
    struct wb_vault_task task = {
        .source = source, .name = source->name, .file = file, .offset = offset, .len = (uint32_t)len, .was = was};

    WB_CHECK(len > 0 && len <= WB_VAULT_CONTENTS_MAX);
    WB_CHECK(!was || (was->offset == offset && was->len == len));
    if (len <= WB_VAULT_INLINE_MAX && source->kind != WB_VAULT_PAGES)
        return plan_inline(plan, source, file, offset, (uint32_t)len, was);
    return add_task(plan, &task);
}

/* The same for one of any length. The head of a log is a piece of its own. */
static int plan_range(struct wb_vault_plan *plan, const struct wb_vault_source *source, uint32_t file, uint64_t from,
                      uint64_t to)
{
    int err = 0;

    while (err == 0 && from < to) {
        uint64_t len = to - from < WB_VAULT_CHUNK ? to - from : WB_VAULT_CHUNK;
        if (source->grows && from == 0 && len > WB_COLLECT_LOG_HEAD)
            len = WB_COLLECT_LOG_HEAD;
        err = plan_piece(plan, source, file, from, len, NULL);
        from += len;
    }
    return err;
}

/* ---- files that the vault has -------------------------------------------------------------------------------------
 */

/* Compares every piece with what is there now. */
static int compare_file(struct wb_vault_plan *plan, const struct wb_vault_source *source,
                        const struct wb_vault_state_file *old)
{
    uint64_t at = 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < old->count; i++) {
        const struct wb_vault_piece *piece = plan->old.pieces.items[old->first + i];
        if (piece->offset + piece->len > source->size) {
            err = end_piece(plan, piece);
            continue;
        }
        err = plan_piece(plan, source, old->file->id, piece->offset, piece->len, piece);
        at = piece->offset + piece->len;
    }
    return err < 0 ? err : plan_range(plan, source, old->file->id, at, source->size);
}

/* Pieces of a file, to be shipped again as one. */
struct group {
    size_t first, count;
    uint64_t offset, bytes;
};

static int end_group(struct wb_vault_plan *plan, const struct wb_vault_source *source,
                     const struct wb_vault_state_file *old, const struct group *group, uint64_t to)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < group->count; i++)
        err = end_piece(plan, plan->old.pieces.items[old->first + group->first + i]);
    return err < 0 ? err : plan_range(plan, source, old->file->id, group->offset, to);
}

/* What is behind the old bytes. With a full shipment, small pieces are put together; the last ones with what is new. */
static int append_file(struct wb_vault_plan *plan, const struct wb_vault_source *source,
                       const struct wb_vault_state_file *old)
{
    struct group group = {.count = 0};
    int err = 0;

    for (size_t i = 0; plan->full && err == 0 && i < old->count; i++) {
        const struct wb_vault_piece *piece = plan->old.pieces.items[old->first + i];
        if (source->grows && i == 0)
            continue; /* the head of a log */
        if (group.count && group.bytes + piece->len >= MERGE_BYTES) {
            if (group.count > MERGE_COUNT)
                err = end_group(plan, source, old, &group, group.offset + group.bytes);
            group.count = 0;
        }
        if (group.count == 0)
            group = (struct group){.first = i, .offset = piece->offset};
        group.count++;
        group.bytes += piece->len;
    }
    if (err == 0 && group.count > MERGE_COUNT)
        return end_group(plan, source, old, &group, source->size);
    return err < 0 ? err : plan_range(plan, source, old->file->id, old->bytes, source->size);
}

static int plan_log(struct wb_vault_plan *plan, const struct wb_vault_source *source,
                    const struct wb_vault_state_file *old)
{
    const struct wb_vault_piece *head = old->count ? plan->old.pieces.items[old->first] : NULL;

    if (!plan->trusted || !head || head->len != WB_COLLECT_LOG_HEAD || source->size < old->bytes)
        return compare_file(plan, source, old);
    int err = plan_piece(plan, source, old->file->id, 0, WB_COLLECT_LOG_HEAD, head);
    return err < 0 ? err : append_file(plan, source, old);
}

/* ---- files that change in place ------------------------------------------------------------------------------ */

struct in_place {
    struct wb_vault_plan *plan;
    const struct wb_vault_source *source;
    const struct wb_vault_state_file *old;
    size_t at;        /* the next old piece */
    uint64_t covered; /* by what stays and what is new */
    bool gap;
};

/* Old pieces up to an offset: they stay if they follow each other and end there. */
static void pass_old(struct in_place *in_place, uint64_t to)
{
    const struct wb_vault_state_file *old = in_place->old;

    for (; in_place->at < old->count; in_place->at++) {
        const struct wb_vault_piece *piece = in_place->plan->old.pieces.items[old->first + in_place->at];
        if (piece->offset >= to)
            break;
        in_place->gap = in_place->gap || piece->offset != in_place->covered || piece->offset + piece->len > to;
        in_place->covered = piece->offset + piece->len;
    }
    in_place->gap = in_place->gap || in_place->covered != to;
}

/* A changed range that is not longer than a chunk. Old pieces in it die, unless one is exactly there. */
static int change_chunk(struct in_place *in_place, uint64_t offset, uint64_t len)
{
    struct wb_vault_plan *plan = in_place->plan;
    const struct wb_vault_piece *was = NULL;
    int err = 0;

    pass_old(in_place, offset);
    for (; err == 0 && in_place->at < in_place->old->count; in_place->at++) {
        const struct wb_vault_piece *piece = plan->old.pieces.items[in_place->old->first + in_place->at];
        if (piece->offset >= offset + len)
            break;
        if (piece->offset == offset && piece->len == len)
            was = piece;
        else
            err = end_piece(plan, piece);
    }
    in_place->covered = offset + len;
    return err < 0 ? err : plan_piece(plan, in_place->source, in_place->old->file->id, offset, len, was);
}

static int change_range(void *context, uint64_t offset, uint64_t len)
{
    struct in_place *in_place = context;
    int err = 0;

    while (err == 0 && len > 0) {
        uint64_t chunk = len < WB_VAULT_CHUNK ? len : WB_VAULT_CHUNK;
        err = change_chunk(in_place, offset, chunk);
        offset += chunk;
        len -= chunk;
    }
    return err;
}

/* old: without a piece if the vault does not have the file. */
static int plan_in_place(struct wb_vault_plan *plan, const struct wb_vault_source *source,
                         const struct wb_vault_state_file *old)
{
    struct in_place in_place = {.plan = plan, .source = source, .old = old};
    int err = wb_store_state_each_changed(plan->moment->state, source->name, change_range, &in_place);

    if (err == 0 && in_place.covered < source->size)
        pass_old(&in_place, source->size);
    for (; err == 0 && in_place.at < old->count; in_place.at++) /* behind the end of the file */
        err = end_piece(plan, plan->old.pieces.items[old->first + in_place.at]);
    if (err == 0 && (in_place.gap || in_place.covered != source->size))
        err = wb_fail(WB_E_BUSY, "%s is not in the vault as it was carried last: all of it has to be carried again",
                      source->name);
    return err;
}

/* ---- all files -----------------------------------------------------------------------------------------------------
 */

static int plan_source(struct wb_vault_plan *plan, const struct wb_vault_source *source,
                       const struct wb_vault_state_file *old)
{
    if (!old) {
        struct wb_vault_file file = {.kind = source->kind};
        struct wb_vault_state_file none = {.file = &file};
        int err = begin_file(plan, source->kind, source->name, &file.id);
        if (err == 0 && source->in_place)
            return plan_in_place(plan, source, &none);
        return err < 0 ? err : plan_range(plan, source, file.id, 0, source->size);
    }
    if (source->unchanged && old->bytes == source->size)
        return 0;
    if (source->in_place)
        return plan_in_place(plan, source, old);
    if (source->grows)
        return plan_log(plan, source, old);
    if (source->kind == WB_VAULT_PAGES && plan->trusted && source->size >= old->bytes)
        return append_file(plan, source, old);
    return compare_file(plan, source, old);
}

static int compare_old(const void *a, const void *b)
{
    const struct wb_vault_state_file *const *x = a, *const *y = b;

    return strcmp((*x)->file->path, (*y)->file->path);
}

/* Walks through both lists of files, which are in the order of names. */
static int match_files(struct wb_vault_plan *plan, const struct wb_vault_state_file **old, size_t count)
{
    size_t at = 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < plan->sources.count; i++) {
        const struct wb_vault_source *source = &plan->sources.items[i];
        WB_CHECK(i == 0 || strcmp(source[-1].name, source->name) < 0);
        while (err == 0 && at < count && strcmp(old[at]->file->path, source->name) < 0)
            err = end_file(plan, old[at++]->file);
        if (err < 0)
            break;
        bool there = at < count && strcmp(old[at]->file->path, source->name) == 0;
        bool fits = there && old[at]->file->kind == source->kind;
        if (there && !fits)
            err = end_file(plan, old[at]->file);
        if (err == 0)
            err = plan_source(plan, source, fits ? old[at] : NULL);
        at += there;
    }
    while (err == 0 && at < count)
        err = end_file(plan, old[at++]->file);
    return err;
}

int wb_vault_plan_files(struct wb_vault_plan *plan, const struct wb_vault_stamps *known)
{
    WB_VEC(const struct wb_vault_state_file *) old = WB_VEC_INIT;
    int err = 0;

    plan->change.number = plan->number;
    plan->change.next_file = plan->manifest->next_file;
    WB_CHECK(plan->number > plan->manifest->number);
    if (plan->manifest->number)
        err = wb_vault_contents_at(plan->manifest, "the vault", plan->manifest->number, &plan->old);
    for (size_t i = 0; err == 0 && i < plan->old.files.count; i++)
        if (plan->old.files.items[i].file->kind != WB_VAULT_ROWS)
            err = wb_vec_push(&old, &plan->old.files.items[i]);
    if (err == 0)
        err = list_sources(plan, known);
    if (err == 0 && old.count)
        qsort(old.items, old.count, sizeof *old.items, compare_old);
    if (err == 0)
        err = match_files(plan, old.items, old.count);
    wb_vec_release(&old);
    return err;
}

/* ---- rows ----------------------------------------------------------------------------------------------------------
 */

static const struct wb_vault_state_file *find_rows(const struct wb_vault_plan *plan, size_t part, char name_out[8])
{
    snprintf(name_out, 8, "rows/%zu", part % 10);
    for (size_t i = 0; i < plan->old.files.count; i++) {
        const struct wb_vault_file *file = plan->old.files.items[i].file;
        if (file->kind == WB_VAULT_ROWS && strcmp(file->path, name_out) == 0)
            return &plan->old.files.items[i];
    }
    return NULL;
}

void wb_vault_plan_look(const struct wb_vault_plan *plan, size_t part, struct wb_vault_rows_look *look_out)
{
    char name[8];
    const struct wb_vault_state_file *file = find_rows(plan, part, name);

    *look_out = (struct wb_vault_rows_look){.any = file != NULL};
    if (!file)
        return;
    look_out->born = file->file->born;
    for (size_t i = 0; i < file->count; i++) {
        const struct wb_vault_piece *piece = plan->old.pieces.items[file->first + i];
        look_out->runs += piece->run;
        if (look_out->runs <= 1)
            look_out->base_bytes += piece->object.stored;
        else
            look_out->more_bytes += piece->object.stored;
    }
}

int wb_vault_plan_rows(struct wb_vault_plan *plan, size_t part, bool base, uint64_t since, uint32_t *file_out,
                       uint64_t *offset_out)
{
    char name[8];
    const struct wb_vault_state_file *file = find_rows(plan, part, name);
    int err = 0;

    *offset_out = 0;
    if (base) {
        err = file ? end_file(plan, file->file) : 0;
        return err < 0 ? err : begin_file(plan, WB_VAULT_ROWS, name, file_out);
    }
    WB_CHECK(file && file->file->born <= since);
    *file_out = file->file->id;
    for (size_t i = 0; err == 0 && i < file->count; i++) {
        const struct wb_vault_piece *piece = plan->old.pieces.items[file->first + i];
        if (piece->born > since)
            err = end_piece(plan, piece);
        else
            *offset_out = piece->offset + piece->len;
    }
    return err;
}

int wb_vault_plan_add_rows(struct wb_vault_plan *plan, const char *name, uint32_t file, uint64_t offset, bool run,
                           struct wb_buf *rows, struct wb_vault_task **task_out)
{
    struct wb_vault_task task = {.name = name, .file = file, .offset = offset, .len = (uint32_t)rows->len, .run = run};
    int err;

    WB_CHECK(rows->len > 0 && rows->len <= WB_VAULT_CONTENTS_MAX);
    err = add_task(plan, &task);
    if (err < 0)
        return err;
    *task_out = plan->tasks.items[plan->tasks.count - 1];
    (*task_out)->rows = wb_buf_take(rows);
    return 0;
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

static int compare_files(const void *a, const void *b)
{
    uint32_t x = ((const struct wb_vault_file *)a)->id, y = ((const struct wb_vault_file *)b)->id;

    return x < y ? -1 : x > y;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct wb_vault_piece *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->born < y->born ? -1 : x->born > y->born;
}

int wb_vault_plan_end(struct wb_vault_plan *plan)
{
    struct wb_vault_shipment *change = &plan->change;
    int err = 0;

    for (size_t i = 0; err == 0 && i < plan->tasks.count; i++) {
        const struct wb_vault_task *task = plan->tasks.items[i];
        struct wb_vault_piece piece = {.file = task->file,
                                       .len = task->len,
                                       .offset = task->offset,
                                       .born = plan->number,
                                       .died = WB_VAULT_ALIVE,
                                       .run = task->run,
                                       .object = task->object};
        if (task->same)
            continue;
        WB_CHECK(wb_vault_object_is_one(&task->object));
        err = task->was ? end_piece(plan, task->was) : 0;
        if (err == 0)
            err = wb_vec_push(&change->pieces, piece);
    }
    if (change->files.count)
        qsort(change->files.items, change->files.count, sizeof *change->files.items, compare_files);
    if (change->pieces.count)
        qsort(change->pieces.items, change->pieces.count, sizeof *change->pieces.items, compare_pieces);
    return err;
}

bool wb_vault_plan_has_news(const struct wb_vault_plan *plan)
{
    return plan->change.files.count > 0 || plan->change.pieces.count > 0;
}

void wb_vault_plan_release(struct wb_vault_plan *plan)
{
    for (size_t i = 0; i < plan->tasks.count; i++) {
        wb_buf_release(&plan->tasks.items[i]->rows);
        wb_free(plan->tasks.items[i]);
    }
    for (size_t i = 0; i < plan->smalls.count; i++)
        wb_buf_release(&plan->smalls.items[i]);
    for (size_t i = 0; i < plan->names.count; i++)
        wb_free(plan->names.items[i]);
    wb_vec_release(&plan->tasks);
    wb_vec_release(&plan->smalls);
    wb_vec_release(&plan->names);
    wb_vec_release(&plan->sources);
    wb_vault_contents_release(&plan->old);
    wb_vault_shipment_release(&plan->change);
    wb_vault_stamps_release(&plan->stamps);
}
