/* state_support.c - see state_support.h. */
#include "state_support.h"
#include "os/file.h"
#include "os/path.h"

enum { CHUNK = 1 << 20 };

/* ---- all at once ---------------------------------------------------------------------------------------------- */

struct carrier {
    struct wb_store_state *state;
    struct wb_store_loader *loader;
    const char *to;
    size_t part;
    struct wb_file file;
    char *bytes;
};

static int carry_small(void *context, const char *name, struct wb_slice bytes)
{
    const struct carrier *c = context;

    return wb_store_loader_small(c->loader, name, bytes);
}

static int carry_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    const struct carrier *c = context;

    must(value.ptr != NULL);
    return wb_store_loader_row(c->loader, c->part, table, key, value);
}

/* Opens a file to be written in a directory, and makes the directories above it. */
static int open_in(const char *dir, const char *name, struct wb_file *file)
{
    char path[DIR_MAX];

    path_in(dir, name, path);
    *strrchr(path, '/') = '\0';
    int err = wb_path_mkdirs(path);
    path_in(dir, name, path);
    return err < 0 ? err : wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, file);
}

static int carry_range(struct carrier *c, const char *name, uint64_t offset, uint64_t len)
{
    int err = 0;

    for (uint64_t at = 0; at < len && err == 0; at += CHUNK) {
        size_t part = len - at < CHUNK ? (size_t)(len - at) : CHUNK;
        err = wb_store_state_read(c->state, name, offset + at, part, c->bytes);
        if (err == 0)
            err = wb_file_write_at(&c->file, offset + at, c->bytes, part);
    }
    return err;
}

static int carry_file(void *context, const struct wb_store_state_file *file)
{
    struct carrier *c = context;
    int err = open_in(c->to, file->name, &c->file);

    if (err == 0)
        err = carry_range(c, file->name, 0, file->bytes);
    if (err == 0)
        err = wb_file_sync(&c->file);
    wb_file_close(&c->file);
    return err;
}

int carry_try(struct wb_store_state *state, const char *to)
{
    struct carrier c = {.state = state, .to = to, .file = WB_FILE_INIT, .bytes = malloc(CHUNK)};
    struct wb_store_state_facts facts;
    int err = wb_store_loader_open(to, &c.loader);

    must(c.bytes != NULL);
    wb_store_state_facts(state, &facts);
    if (err == 0)
        err = wb_store_state_each_small(state, carry_small, &c);
    for (; err == 0 && c.part < facts.parts; c.part++)
        err = wb_store_state_rows(state, c.part, carry_row, &c);
    if (err == 0)
        err = wb_store_state_each_file(state, carry_file, &c);
    if (err == 0)
        err = wb_store_loader_finish(c.loader);
    wb_store_loader_close(c.loader);
    free(c.bytes);
    return err;
}

void carry(struct wb_store_state *state, const char *to)
{
    must_ok(carry_try(state, to));
}

/* ---- rows on a shelf ------------------------------------------------------------------------------------------ */

static int compare_shelf_row(const struct shelf_row *row, unsigned table, struct wb_slice key)
{
    return row->table != table ? (row->table < table ? -1 : 1) : wb_slice_compare(wb_buf_slice(&row->key), key);
}

/* Finds the first row that is not before this one. */
static size_t find_row(const struct shelf_rows *rows, unsigned table, struct wb_slice key)
{
    size_t low = 0, high = rows->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_shelf_row(&rows->items[middle], table, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop_row(struct shelf_rows *rows, size_t at)
{
    wb_buf_release(&rows->items[at].key);
    wb_buf_release(&rows->items[at].value);
    memmove(&rows->items[at], &rows->items[at + 1], (--rows->count - at) * sizeof *rows->items);
}

struct shelving {
    struct shelf *shelf;
    struct shelf_rows *rows;
    bool changes; /* rows come as changes */
    unsigned table;
    struct wb_buf key; /* of the last one */
};

static int shelve_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    struct shelving *s = context;
    size_t at = find_row(s->rows, table, key);
    bool known = at < s->rows->count && compare_shelf_row(&s->rows->items[at], table, key) == 0;

    must(s->key.len == 0 || table > s->table ||
         (table == s->table && wb_slice_compare(wb_buf_slice(&s->key), key) < 0));
    s->table = table;
    wb_buf_clear(&s->key);
    must_ok(wb_buf_append_slice(&s->key, key));
    s->shelf->rows_got++;
    must(s->changes || (value.ptr && !known));
    if (!value.ptr) { /* of a node, only what a copy does not see may have changed */
        must(known);
        drop_row(s->rows, at);
        return 0;
    }
    if (!known) {
        must_ok(wb_grow(&s->rows->items, &s->rows->cap, s->rows->count + 1));
        memmove(&s->rows->items[at + 1], &s->rows->items[at], (s->rows->count++ - at) * sizeof *s->rows->items);
        s->rows->items[at] = (struct shelf_row){.table = table};
        must_ok(wb_buf_append_slice(&s->rows->items[at].key, key));
    }
    wb_buf_clear(&s->rows->items[at].value);
    return wb_buf_append_slice(&s->rows->items[at].value, value);
}

static void clear_rows(struct shelf_rows *rows)
{
    while (rows->count)
        drop_row(rows, rows->count - 1);
}

static void add_rows(struct shelf *shelf, struct wb_store_state *state, size_t part)
{
    struct shelving s = {.shelf = shelf, .rows = &shelf->rows[part], .changes = true};
    int err = shelf->mark.len ? wb_store_state_rows_since_mark(state, part, wb_buf_slice(&shelf->mark), shelve_row, &s)
                              : WB_E_NOTFOUND;

    wb_buf_clear(&s.key);
    if (err == WB_E_NOTFOUND) {
        clear_rows(s.rows);
        s.changes = false;
        err = wb_store_state_rows(state, part, shelve_row, &s);
    }
    must_ok(err);
    wb_buf_release(&s.key);
}

/* ---- files on a shelf ----------------------------------------------------------------------------------------- */

struct filing {
    struct carrier carrier;
    struct shelf *shelf;
    const char *name;
    bool load; /* from the shelf to a new repository */
};

static int file_range(void *context, uint64_t offset, uint64_t len)
{
    struct filing *f = context;

    must(len > 0 && len <= (64u << 20));
    f->shelf->bytes_got += len;
    return carry_range(&f->carrier, f->name, offset, len);
}

/* What is on the shelf of a file that grows must be what the state has there. */
static void compare_prefix(struct filing *f, uint64_t len)
{
    char *bytes = malloc(len + 1), *was = malloc(len + 1);

    must(bytes && was);
    must_ok(wb_store_state_read(f->carrier.state, f->name, 0, len, bytes));
    must_ok(wb_file_read_exact(&f->carrier.file, 0, was, len));
    must(memcmp(bytes, was, len) == 0);
    free(bytes);
    free(was);
}

static int file_file(void *context, const struct wb_store_state_file *file)
{
    struct filing *f = context;
    uint64_t was;

    f->name = file->name;
    must_ok(open_in(f->shelf->dir, file->name, &f->carrier.file));
    must_ok(wb_file_size(&f->carrier.file, &was));
    if (file->in_place && was) {
        must_ok(wb_store_state_each_changed(f->carrier.state, file->name, file_range, f));
    } else {
        must(was <= file->bytes);
        compare_prefix(f, was);
        if (was < file->bytes)
            must_ok(file_range(f, was, file->bytes - was));
    }
    if (!file->in_place || !was) /* of others, what was carried before cannot be read any more */
        compare_prefix(f, file->bytes);
    wb_file_close(&f->carrier.file);
    return 0;
}

void shelf_init(struct shelf *shelf)
{
    *shelf = (struct shelf){.parts = 0};
    test_dir(shelf->dir);
}

void shelf_release(struct shelf *shelf)
{
    for (size_t i = 0; i < SHELF_PARTS; i++) {
        clear_rows(&shelf->rows[i]);
        wb_free(shelf->rows[i].items);
    }
    wb_buf_release(&shelf->mark);
    wb_buf_release(&shelf->stamps);
    remove_tree(shelf->dir);
}

struct wb_store_state *shelf_hold(struct shelf *shelf, const char *from)
{
    struct wb_store_state *state;

    must_ok(wb_store_state_hold(from, shelf->stamps.len ? &shelf->stamps : NULL, &state));
    return state;
}

void shelf_add(struct shelf *shelf, struct wb_store_state *state, const char *from, bool mark)
{
    struct filing f = {.carrier = {.state = state, .file = WB_FILE_INIT, .bytes = malloc(CHUNK)}, .shelf = shelf};
    struct wb_store_state_facts facts;
    struct wb_buf marked = WB_BUF_INIT;

    must(f.carrier.bytes != NULL);
    wb_store_state_facts(state, &facts);
    shelf->parts = facts.parts;
    shelf->rows_got = shelf->bytes_got = 0;
    for (size_t i = 0; i < facts.parts; i++)
        add_rows(shelf, state, i);
    must_ok(wb_store_state_each_file(state, file_file, &f));
    free(f.carrier.bytes);
    must_ok(wb_store_state_stamps(state, &shelf->stamps));
    if (mark)
        must_ok(wb_store_state_mark(state, &marked));
    if (shelf->mark.len)
        must_ok(wb_store_unmark(from, wb_buf_slice(&shelf->mark)));
    wb_buf_release(&shelf->mark);
    shelf->mark = marked;
}

static int load_file(void *context, const struct wb_store_state_file *file)
{
    struct filing *f = context;
    char from[DIR_MAX], to[DIR_MAX];

    path_in(f->shelf->dir, file->name, from);
    path_in(f->carrier.to, file->name, to);
    must_ok(open_in(f->carrier.to, file->name, &f->carrier.file));
    wb_file_close(&f->carrier.file);
    must_ok(wb_path_unlink(to));
    return wb_path_copy(from, to);
}

void shelf_load(struct shelf *shelf, struct wb_store_state *state, const char *to)
{
    struct filing f = {.carrier = {.state = state, .to = to, .file = WB_FILE_INIT}, .shelf = shelf};

    must_ok(wb_store_loader_open(to, &f.carrier.loader));
    must_ok(wb_store_state_each_file(state, load_file, &f));
    must_ok(wb_store_state_each_small(state, carry_small, &f.carrier));
    for (size_t part = 0; part < shelf->parts; part++)
        for (size_t i = 0; i < shelf->rows[part].count; i++) {
            const struct shelf_row *row = &shelf->rows[part].items[i];
            must_ok(wb_store_loader_row(f.carrier.loader, part, row->table, wb_buf_slice(&row->key),
                                        wb_buf_slice(&row->value)));
        }
    must_ok(wb_store_loader_finish(f.carrier.loader));
    wb_store_loader_close(f.carrier.loader);
}
