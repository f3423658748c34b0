/*
 * vaultshipment.c - writes and reads the contents of shipments. docs/formats/vault.md draws them. What is decoded is in
 * order and in range; whether it fits what came before is found out when it is applied (vaultmanifest.c).
 */
#include "base/error.h"
#include "base/fields.h"
#include "vault/vaultmanifest.h"

enum {
    FULL = 1, /* flags of a shipment */
    RUN = 1,  /* flags of a piece */
    INLINE = 2,
    HEAD_BYTES = 1 + WB_VAULT_ID_BYTES + WB_VAULT_OBJECT_REFERENCE + 8 * WB_VARINT_MAX,
    POINT_BYTES = 1 + 12 + 4 * WB_VARINT_MAX,
    FILE_BYTES = 1 + 4 * WB_VARINT_MAX + WB_VAULT_PATH_MAX,
    PIECE_BYTES = 1 + 6 * WB_VARINT_MAX + WB_VAULT_INLINE_MAX + WB_VAULT_OBJECT_REFERENCE,
    GARBAGE_BYTES = 13,
    /* More than any vault needs. They bound the memory that hostile bytes can take. */
    POINTS_MAX = 1 << 17,
    FILES_MAX = 1 << 20,
    PIECES_MAX = 1 << 21,
    GARBAGE_MAX = 1 << 21,
};
#define OFFSET_MAX (UINT64_C(1) << 56) /* of a file */

/* ---- writing ------------------------------------------------------------------------------------------------- */

static char *room(struct wb_buf *contents, size_t bytes)
{
    return wb_buf_reserve(contents, bytes) < 0 ? NULL : contents->ptr + contents->len;
}

static void wrote(struct wb_buf *contents, const char *end)
{
    contents->len = (size_t)(end - contents->ptr);
}

static char *put_lifetime(char *p, uint64_t born, uint64_t died)
{
    WB_CHECK(born < died);
    p = wb_fields_put(p, born);
    return wb_fields_put(p, died == WB_VAULT_ALIVE ? 0 : died - born);
}

static char *put_name(char *p, const struct wb_vault_object *object)
{
    wb_put64(p, object->run);
    wb_put32(p + 8, object->count);
    return p + 12;
}

static int put_points(const struct wb_vault_shipment *shipment, struct wb_buf *contents)
{
    const struct wb_vault_points *points = &shipment->points;

    for (size_t i = 0; i < points->count; i++) {
        const struct wb_vault_point *point = &points->items[i];
        bool self = i + 1 == points->count;
        char *p = room(contents, POINT_BYTES);
        if (!p)
            return WB_E_NOMEM;
        WB_CHECK(i == 0 || point->number > point[-1].number);
        p = wb_fields_put(p, point->number);
        p = wb_fields_put_time(p, point->time_ms, 0);
        p = wb_fields_put(p, point->pages);
        p = wb_fields_put(p, point->bytes);
        wrote(contents, self ? p : put_name(p, &point->shipment));
    }
    return 0;
}

static int put_files(const struct wb_vault_shipment *shipment, struct wb_buf *contents)
{
    for (size_t i = 0; i < shipment->files.count; i++) {
        const struct wb_vault_file *file = &shipment->files.items[i];
        char *p = room(contents, FILE_BYTES);
        if (!p)
            return WB_E_NOMEM;
        WB_CHECK(i == 0 || file->id > file[-1].id);
        WB_CHECK(wb_vault_path_fits(wb_slice_str(file->path), file->kind));
        p = wb_fields_put(p, file->id);
        *p++ = (char)file->kind;
        p = put_lifetime(p, file->born, file->died);
        wrote(contents, wb_fields_put_text(p, wb_slice_str(file->path)));
    }
    return 0;
}

static int put_pieces(const struct wb_vault_shipment *shipment, struct wb_buf *contents)
{
    for (size_t i = 0; i < shipment->pieces.count; i++) {
        const struct wb_vault_piece *piece = &shipment->pieces.items[i];
        bool in_shipment = piece->bytes.len > 0;
        char *p = room(contents, PIECE_BYTES);
        if (!p)
            return WB_E_NOMEM;
        WB_CHECK(piece->len > 0 && piece->bytes.len <= WB_VAULT_INLINE_MAX);
        WB_CHECK(in_shipment ? piece->bytes.len == piece->len : wb_vault_object_is_one(&piece->object));
        *p++ = (char)((piece->run ? RUN : 0) | (in_shipment ? INLINE : 0));
        p = wb_fields_put(p, piece->file);
        p = wb_fields_put(p, piece->offset);
        p = put_lifetime(p, piece->born, piece->died);
        p = wb_fields_put(p, piece->len);
        if (in_shipment) {
            memcpy(p, piece->bytes.ptr, piece->bytes.len);
            p += piece->bytes.len;
        } else {
            p = wb_vault_object_put(p, &piece->object);
        }
        wrote(contents, p);
    }
    return 0;
}

static int put_garbage(const struct wb_vault_shipment *shipment, struct wb_buf *contents)
{
    for (size_t i = 0; i < shipment->garbage.count; i++) {
        char *p = room(contents, GARBAGE_BYTES);
        if (!p)
            return WB_E_NOMEM;
        *p++ = shipment->garbage.items[i].shipment;
        wrote(contents, put_name(p, &shipment->garbage.items[i].object));
    }
    return 0;
}

static int put_head(const struct wb_vault_shipment *shipment, struct wb_buf *contents)
{
    char *p = room(contents, HEAD_BYTES);

    if (!p)
        return WB_E_NOMEM;
    *p++ = shipment->full ? FULL : 0;
    memcpy(p, shipment->repository, WB_VAULT_ID_BYTES);
    p = wb_fields_put(p + WB_VAULT_ID_BYTES, shipment->number);
    if (!shipment->full)
        p = wb_vault_object_put(p, &shipment->previous);
    p = wb_fields_put(p, shipment->takedowns);
    p = wb_fields_put(p, shipment->next_file);
    p = wb_fields_put(p, shipment->points.count);
    p = wb_fields_put(p, shipment->ended.count);
    p = wb_fields_put(p, shipment->files.count);
    p = wb_fields_put(p, shipment->pieces.count);
    p = wb_fields_put(p, shipment->garbage.count);
    wrote(contents, p);
    return 0;
}

int wb_vault_shipment_encode(const struct wb_vault_shipment *shipment, struct wb_buf *contents_out)
{
    wb_buf_clear(contents_out);
    WB_CHECK(shipment->points.count > 0);
    WB_CHECK(shipment->points.items[shipment->points.count - 1].number == shipment->number);
    WB_CHECK(shipment->full ? shipment->ended.count == 0 : shipment->points.count == 1);
    if (shipment->files.count > FILES_MAX || shipment->pieces.count > PIECES_MAX ||
        shipment->points.count > POINTS_MAX || shipment->garbage.count > GARBAGE_MAX)
        return wb_fail(WB_E_LIMIT, "the repository has too many files for a vault");
    int err = put_head(shipment, contents_out);
    if (err == 0)
        err = put_points(shipment, contents_out);
    for (size_t i = 0; err == 0 && i < shipment->ended.count; i++) {
        char *p = room(contents_out, WB_VARINT_MAX);
        if (!p)
            return WB_E_NOMEM;
        wrote(contents_out, wb_fields_put(p, shipment->ended.items[i]));
    }
    if (err == 0)
        err = put_files(shipment, contents_out);
    if (err == 0)
        err = put_pieces(shipment, contents_out);
    if (err == 0)
        err = put_garbage(shipment, contents_out);
    if (err == 0 && contents_out->len > WB_VAULT_CONTENTS_MAX)
        err = wb_fail(WB_E_LIMIT, "the repository has too many files for a vault");
    return err;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

/* How many of each there are. */
struct counts {
    size_t points, ended, files, pieces, garbage;
};

static void take_lifetime(struct wb_fields *fields, uint64_t newest, uint64_t *born_out, uint64_t *died_out)
{
    uint64_t lived;

    *born_out = wb_fields_take(fields, newest);
    lived = wb_fields_take(fields, newest - *born_out);
    *died_out = lived ? *born_out + lived : WB_VAULT_ALIVE;
    fields->ok = fields->ok && *born_out > 0;
}

static struct wb_vault_object take_name(struct wb_fields *fields)
{
    const char *p = wb_fields_take_bytes(fields, 12);
    struct wb_vault_object object = {.run = 0};

    if (p)
        object = (struct wb_vault_object){.run = wb_get64(p), .count = wb_get32(p + 8)};
    fields->ok = fields->ok && object.count > 0;
    return object;
}

static void take_head(struct wb_fields *fields, struct wb_vault_shipment *shipment, struct counts *counts)
{
    uint8_t flags = wb_fields_take_byte(fields);
    const char *id = wb_fields_take_bytes(fields, WB_VAULT_ID_BYTES);

    fields->ok = fields->ok && flags <= FULL;
    shipment->full = flags & FULL;
    if (id)
        memcpy(shipment->repository, id, WB_VAULT_ID_BYTES);
    shipment->number = wb_fields_take(fields, UINT64_MAX - 1);
    if (!shipment->full) {
        const char *p = wb_fields_take_bytes(fields, WB_VAULT_OBJECT_REFERENCE);
        fields->ok = p && wb_vault_object_take(p, &shipment->previous);
    }
    shipment->takedowns = wb_fields_take(fields, UINT64_MAX);
    shipment->next_file = (uint32_t)wb_fields_take(fields, UINT32_MAX);
    counts->points = (size_t)wb_fields_take(fields, shipment->full ? POINTS_MAX : 1);
    counts->ended = (size_t)wb_fields_take(fields, shipment->full ? 0 : POINTS_MAX);
    counts->files = (size_t)wb_fields_take(fields, FILES_MAX);
    counts->pieces = (size_t)wb_fields_take(fields, PIECES_MAX);
    counts->garbage = (size_t)wb_fields_take(fields, GARBAGE_MAX);
    fields->ok = fields->ok && shipment->number > 0 && counts->points > 0;
}

static int take_points(struct wb_fields *fields, const struct wb_vault_object *self, size_t count,
                       struct wb_vault_shipment *shipment)
{
    uint64_t last = 0;

    for (size_t i = 0; fields->ok && i < count; i++) {
        struct wb_vault_point point = {.number = wb_fields_take(fields, shipment->number)};
        point.time_ms = wb_fields_take_time(fields, 0);
        point.pages = wb_fields_take(fields, UINT64_MAX);
        point.bytes = wb_fields_take(fields, UINT64_MAX);
        point.shipment =
            i + 1 < count ? take_name(fields) : (struct wb_vault_object){self->run, self->count, 0, {0, 0}};
        fields->ok = fields->ok && point.number > last;
        last = point.number;
        if (wb_vec_push(&shipment->points, point) < 0)
            return WB_E_NOMEM;
    }
    fields->ok = fields->ok && last == shipment->number;
    return 0;
}

static int take_ended(struct wb_fields *fields, size_t count, struct wb_vault_shipment *shipment)
{
    uint64_t last = 0;

    for (size_t i = 0; fields->ok && i < count; i++) {
        uint64_t number = wb_fields_take(fields, shipment->number - 1);
        fields->ok = fields->ok && number > last;
        last = number;
        if (wb_vec_push(&shipment->ended, number) < 0)
            return WB_E_NOMEM;
    }
    return 0;
}

static int take_files(struct wb_fields *fields, size_t count, struct wb_vault_shipment *shipment)
{
    for (size_t i = 0; fields->ok && i < count; i++) {
        struct wb_vault_file file = {.id = (uint32_t)wb_fields_take(fields, UINT32_MAX)};
        unsigned kind = wb_fields_take_byte(fields);
        file.kind = (enum wb_vault_file_kind)kind;
        take_lifetime(fields, shipment->number, &file.born, &file.died);
        struct wb_slice path = wb_fields_take_text(fields);
        fields->ok = fields->ok && kind >= WB_VAULT_PAGES && kind <= WB_VAULT_ROWS && file.id < shipment->next_file &&
                     wb_vault_path_fits(path, file.kind) && (i == 0 || file.id > shipment->files.items[i - 1].id);
        if (!fields->ok)
            return 0;
        char *memory = wb_arena_take(&shipment->arena, path.len + 1);
        if (!memory)
            return WB_E_NOMEM;
        memcpy(memory, path.ptr, path.len);
        memory[path.len] = '\0';
        file.path = memory;
        if (wb_vec_push(&shipment->files, file) < 0)
            return WB_E_NOMEM;
    }
    return 0;
}

static bool in_order(const struct wb_vault_piece *a, const struct wb_vault_piece *b)
{
    if (a->file != b->file)
        return a->file < b->file;
    return a->offset != b->offset ? a->offset < b->offset : a->born < b->born;
}

static int take_piece(struct wb_fields *fields, struct wb_vault_shipment *shipment)
{
    unsigned flags = wb_fields_take_byte(fields);
    struct wb_vault_piece piece = {.file = (uint32_t)wb_fields_take(fields, UINT32_MAX)};

    piece.run = flags & RUN;
    piece.offset = wb_fields_take(fields, OFFSET_MAX);
    take_lifetime(fields, shipment->number, &piece.born, &piece.died);
    piece.len = (uint32_t)wb_fields_take(fields, flags & INLINE ? WB_VAULT_INLINE_MAX : WB_VAULT_CONTENTS_MAX);
    fields->ok = fields->ok && flags <= (RUN | INLINE) && piece.len > 0 && piece.file < shipment->next_file;
    if (flags & INLINE) {
        struct wb_slice bytes = wb_fields_take_slice(fields, piece.len);
        if (fields->ok && wb_arena_copy(&shipment->arena, bytes, &piece.bytes) < 0)
            return WB_E_NOMEM;
    } else {
        const char *p = wb_fields_take_bytes(fields, WB_VAULT_OBJECT_REFERENCE);
        fields->ok = p && wb_vault_object_take(p, &piece.object);
    }
    size_t count = shipment->pieces.count;
    fields->ok = fields->ok && (count == 0 || in_order(&shipment->pieces.items[count - 1], &piece));
    return fields->ok ? wb_vec_push(&shipment->pieces, piece) : 0;
}

static int take_rest(struct wb_fields *fields, const struct counts *counts, struct wb_vault_shipment *shipment)
{
    int err = take_ended(fields, counts->ended, shipment);

    if (err == 0)
        err = take_files(fields, counts->files, shipment);
    for (size_t i = 0; err == 0 && fields->ok && i < counts->pieces; i++)
        err = take_piece(fields, shipment);
    for (size_t i = 0; err == 0 && fields->ok && i < counts->garbage; i++) {
        unsigned folder = wb_fields_take_byte(fields);
        struct wb_vault_garbage garbage = {.shipment = folder == 1, .object = take_name(fields)};
        fields->ok = fields->ok && folder <= 1;
        err = wb_vec_push(&shipment->garbage, garbage);
    }
    return err;
}

int wb_vault_shipment_decode(const char *name, const struct wb_vault_object *self, struct wb_slice contents,
                             struct wb_vault_shipment *shipment_out)
{
    struct wb_fields fields = wb_fields_of(contents);
    struct counts counts = {.points = 0};

    memset(shipment_out, 0, sizeof *shipment_out);
    take_head(&fields, shipment_out, &counts);
    int err = take_points(&fields, self, counts.points, shipment_out);
    if (err == 0)
        err = take_rest(&fields, &counts, shipment_out);
    if (err == 0 && (!fields.ok || fields.at != fields.end))
        err = wb_fail(WB_E_CORRUPT, "%s: the shipment is malformed", name);
    if (err < 0)
        wb_vault_shipment_release(shipment_out);
    return err;
}

void wb_vault_shipment_release(struct wb_vault_shipment *shipment)
{
    wb_vec_release(&shipment->points);
    wb_vec_release(&shipment->ended);
    wb_vec_release(&shipment->files);
    wb_vec_release(&shipment->pieces);
    wb_vec_release(&shipment->garbage);
    wb_arena_release(&shipment->arena);
}
