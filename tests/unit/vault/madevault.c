/* madevault.c - see madevault.h. */
#include "madevault.h"
#include "os/random.h"
#include "store/store_state.h"
#include "vault/vaultrows.h"

void vault_url(const char *dir, char url_out[DIR_MAX + 8])
{
    snprintf(url_out, DIR_MAX + 8, "file://%s", dir);
}

uint8_t made_vault_journal_byte(size_t at)
{
    return (uint8_t)(at * 2654435761u >> 24);
}

void made_vault_put(struct made_vault *made, enum wb_vault_kind kind, struct wb_slice contents,
                    struct wb_vault_object *object)
{
    struct wb_buf bytes = WB_BUF_INIT;
    char name[WB_OBJECT_NAME_MAX];

    object->run = made->run;
    object->count = ++made->count;
    must_ok(wb_vault_object_pack(kind, contents, chance_one_in(made->chance, 2), &bytes, object));
    wb_vault_object_name(kind == WB_VAULT_SHIPMENT ? WB_VAULT_SHIPMENTS : WB_VAULT_OBJECTS, object, name);
    must_ok(wb_object_put(made->store, name, wb_buf_slice(&bytes)));
    wb_buf_release(&bytes);
}

/* ---- files ----------------------------------------------------------------------------------------------- */

static struct wb_vault_file *add_file(struct made_vault *made, enum wb_vault_file_kind kind, const char *path)
{
    struct wb_vault_file *file = wb_vec_add(&made->shipment.files);
    struct wb_slice copy;

    must(file != NULL);
    must_ok(wb_arena_copy(&made->shipment.arena, wb_slice(path, strlen(path) + 1), &copy));
    *file = (struct wb_vault_file){++made->shipment.next_file, kind, copy.ptr, made->shipment.number, WB_VAULT_ALIVE};
    return file;
}

static void add_piece(struct made_vault *made, uint64_t offset, struct wb_slice bytes, bool run)
{
    struct wb_vault_piece piece = {.file = made->shipment.next_file,
                                   .len = (uint32_t)bytes.len,
                                   .offset = offset,
                                   .born = made->shipment.number,
                                   .died = WB_VAULT_ALIVE,
                                   .run = run};

    must(bytes.len > 0);
    if (bytes.len <= WB_VAULT_INLINE_MAX && chance_one_in(made->chance, 2))
        must_ok(wb_arena_copy(&made->shipment.arena, bytes, &piece.bytes));
    else
        made_vault_put(made, WB_VAULT_BYTES, bytes, &piece.object);
    must_ok(wb_vec_push(&made->shipment.pieces, piece));
}

void made_vault_file(struct made_vault *made, enum wb_vault_file_kind kind, const char *path, struct wb_slice bytes)
{
    add_file(made, kind, path);
    for (size_t at = 0; at < bytes.len;) {
        size_t len = 1 + (size_t)chance_below(made->chance, made->piece_bytes);
        len = len < bytes.len - at ? len : bytes.len - at;
        add_piece(made, at, wb_slice(bytes.ptr + at, len), false);
        at += len;
    }
}

struct filler {
    struct made_vault *made;
    struct wb_store_state *state;
};

static int fill_small(void *context, const char *name, struct wb_slice bytes)
{
    made_vault_file(((struct filler *)context)->made, WB_VAULT_SMALL, name, bytes);
    return 0;
}

static int fill_file(void *context, const struct wb_store_state_file *file)
{
    struct filler *filler = context;
    char *bytes = malloc(file->bytes + 1);

    must(bytes != NULL);
    must_ok(wb_store_state_read(filler->state, file->name, 0, file->bytes, bytes));
    made_vault_file(filler->made, WB_VAULT_PAGES, file->name, wb_slice(bytes, file->bytes));
    free(bytes);
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

/* A row, and in which run its value becomes true. */
struct true_row {
    unsigned table, run;
    char *key, *value; /* value: NULL if it is gone in the end */
    size_t key_len, value_len;
};
struct true_rows {
    struct made_vault *made;
    WB_VEC(struct true_row) rows;
};

static char *copy_of(struct wb_slice bytes)
{
    char *copy = malloc(bytes.len + 1);

    must(copy != NULL);
    memcpy(copy, bytes.ptr, bytes.len);
    return copy;
}

static int keep_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    struct true_rows *rows = context;
    unsigned run = (unsigned)chance_below(rows->made->chance, rows->made->runs);
    struct true_row row = {table, run, copy_of(key), copy_of(value), key.len, value.len};

    must_ok(wb_vec_push(&rows->rows, row));
    return 0;
}

/* Some rows that were there for a while: each behind a true one, with a byte more. */
static void invent_rows(struct true_rows *rows)
{
    size_t count = rows->rows.count;

    for (size_t i = 0; i < count && rows->made->runs > 1; i++) {
        const struct true_row *row = &rows->rows.items[i];
        if (row->table != 0 || !chance_one_in(rows->made->chance, 4))
            continue;
        struct true_row invented = {row->table, rows->made->runs - 1, malloc(row->key_len + 1),
                                    NULL,       row->key_len + 1,     0};
        must(invented.key != NULL);
        memcpy(invented.key, row->key, row->key_len);
        invented.key[row->key_len] = 'x';
        must_ok(wb_vec_push(&rows->rows, invented));
    }
}

static int compare_true_rows(const void *a, const void *b)
{
    const struct true_row *x = a, *y = b;

    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    return wb_slice_compare(wb_slice(x->key, x->key_len), wb_slice(y->key, y->key_len));
}

/* The rows of a run: true ones of this run, and false ones that a later run corrects. */
static void write_run(struct true_rows *rows, unsigned run, uint64_t *offset)
{
    struct wb_vault_rows_writer writer = {.bytes = WB_BUF_INIT};
    bool first = true;

    for (size_t i = 0; i <= rows->rows.count; i++) {
        const struct true_row *row = i < rows->rows.count ? &rows->rows.items[i] : NULL;
        if (writer.bytes.len && (!row || writer.bytes.len >= rows->made->piece_bytes)) {
            add_piece(rows->made, *offset, wb_buf_slice(&writer.bytes), first);
            *offset += writer.bytes.len;
            wb_vault_rows_clear(&writer);
            first = false;
        }
        if (!row || run > row->run || (run < row->run && !chance_one_in(rows->made->chance, 3)))
            continue;
        struct wb_vault_row out = {.table = row->table, .key = wb_slice(row->key, row->key_len)};
        if (run == row->run)
            out.value = row->value ? wb_slice(row->value, row->value_len) : wb_slice(NULL, 0);
        else
            out.value = chance_one_in(rows->made->chance, 3) ? wb_slice(NULL, 0) : WB_SLICE_LIT("not true any more");
        must_ok(wb_vault_rows_add(&writer, &out));
    }
    wb_vault_rows_release(&writer);
}

static void fill_rows(struct made_vault *made, struct wb_store_state *state, size_t part)
{
    struct true_rows rows = {.made = made};
    uint64_t offset = 0;

    add_file(made, WB_VAULT_ROWS, part ? "rows/1" : "rows/0");
    must_ok(wb_store_state_rows(state, part, keep_row, &rows));
    invent_rows(&rows);
    qsort(rows.rows.items, rows.rows.count, sizeof *rows.rows.items, compare_true_rows);
    for (unsigned run = 0; run < made->runs; run++)
        write_run(&rows, run, &offset);
    for (size_t i = 0; i < rows.rows.count; i++) {
        free(rows.rows.items[i].key);
        free(rows.rows.items[i].value);
    }
    wb_vec_release(&rows.rows);
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

static void fill_others(struct made_vault *made)
{
    char *journal = malloc(MADE_VAULT_JOURNAL_BYTES);

    must(journal != NULL);
    for (size_t i = 0; i < MADE_VAULT_JOURNAL_BYTES; i++)
        journal[i] = (char)made_vault_journal_byte(i);
    made_vault_file(made, WB_VAULT_OTHER, MADE_VAULT_JOURNAL, wb_slice(journal, MADE_VAULT_JOURNAL_BYTES));
    made_vault_file(made, WB_VAULT_OTHER, MADE_VAULT_EMPTY, WB_SLICE_EMPTY);
    free(journal);
}

void made_vault_fill(struct made_vault *made, const char *repo, const char *dir, uint64_t *chance)
{
    struct filler filler = {.made = made};
    struct wb_store_state_facts facts;
    char url[DIR_MAX + 8];

    vault_url(dir, url);
    memset(made, 0, sizeof *made);
    wb_random_bytes(&made->run, sizeof made->run);
    made->chance = chance;
    made->piece_bytes = 500 + (size_t)chance_below(chance, 30000);
    made->runs = 1 + (unsigned)chance_below(chance, 12);
    made->shipment.full = true;
    made->shipment.number = 7;
    memset(made->shipment.repository, 0xab, WB_VAULT_ID_BYTES);
    must_ok(wb_object_open(url, NULL, &made->store));
    must_ok(wb_store_state_hold(repo, NULL, &filler.state));
    wb_store_state_facts(filler.state, &facts);
    must_ok(wb_store_state_each_small(filler.state, fill_small, &filler));
    for (size_t part = 0; part < facts.parts; part++)
        fill_rows(made, filler.state, part);
    must_ok(wb_store_state_each_file(filler.state, fill_file, &filler));
    fill_others(made);
    wb_store_state_let_go(filler.state);
    made->head.point = (struct wb_vault_point){.number = 7, .time_ms = 1700000000000, .pages = facts.pages};
}

void made_vault_finish(struct made_vault *made)
{
    struct wb_buf contents = WB_BUF_INIT, bytes = WB_BUF_INIT;
    struct wb_vault_object head;

    made->shipment.next_file++;
    must_ok(wb_vec_push(&made->shipment.points, made->head.point));
    must_ok(wb_vault_shipment_encode(&made->shipment, &contents));
    made_vault_put(made, WB_VAULT_SHIPMENT, wb_buf_slice(&contents), &made->head.shipment);
    memset(made->head.repository, 0xab, WB_VAULT_ID_BYTES);
    made->head.term = 1;
    must_ok(wb_vault_head_encode(&made->head, &contents));
    must_ok(wb_vault_object_pack(WB_VAULT_HEAD, wb_buf_slice(&contents), false, &bytes, &head));
    must_ok(wb_object_put(made->store, WB_VAULT_HEAD_NAME, wb_buf_slice(&bytes)));
    wb_buf_release(&contents);
    wb_buf_release(&bytes);
    wb_vault_shipment_release(&made->shipment);
    wb_object_close(made->store);
}

void make_vault(const char *repo, const char *dir, uint64_t *chance)
{
    struct made_vault made;

    made_vault_fill(&made, repo, dir, chance);
    made_vault_finish(&made);
}
