/* tree_support.c - see tree_support.h. */
#include "tree_support.h"

char dir[DIR_MAX], path[DIR_MAX];

int make_dir(void **state)
{
    (void)state;
    test_dir(dir);
    path_in(dir, "tree", path);
    return 0;
}

static struct wb_slice key_of(const struct twin_row *row)
{
    return wb_slice(row->key, row->key_len);
}

/* Finds the first row whose key is not smaller. */
static size_t place_of(const struct twin_table *table, struct wb_slice key)
{
    size_t from = 0, to = table->count;

    while (from < to) {
        size_t middle = (from + to) / 2;
        if (wb_tree_key_compare(key_of(&table->rows[middle]), key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

const struct twin_row *twin_get(const struct twin_table *table, struct wb_slice key)
{
    size_t at = place_of(table, key);

    return at < table->count && wb_slice_equal(key_of(&table->rows[at]), key) ? &table->rows[at] : NULL;
}

void twin_put(struct twin_table *table, struct wb_slice key, struct wb_slice value)
{
    size_t at = place_of(table, key);

    if (!twin_get(table, key)) {
        if (table->count == table->cap) {
            table->cap = table->cap ? table->cap * 2 : 64;
            table->rows = realloc(table->rows, table->cap * sizeof *table->rows);
            must(table->rows != NULL);
        }
        memmove(&table->rows[at + 1], &table->rows[at], (table->count - at) * sizeof *table->rows);
        table->count++;
    }
    struct twin_row *row = &table->rows[at];
    memcpy(row->key, key.ptr, row->key_len = key.len);
    memcpy(row->value, value.ptr, row->value_len = value.len);
}

bool twin_delete(struct twin_table *table, struct wb_slice key)
{
    size_t at = place_of(table, key);

    if (!twin_get(table, key))
        return false;
    table->count--;
    memmove(&table->rows[at], &table->rows[at + 1], (table->count - at) * sizeof *table->rows);
    return true;
}

void twin_copy(const struct twin_tree *from, struct twin_tree *to)
{
    for (size_t i = 0; i < WB_TREE_TABLES_MAX; i++) {
        const struct twin_table *source = &from->tables[i];
        struct twin_table *table = &to->tables[i];
        if (table->cap < source->count) {
            table->cap = source->cap;
            table->rows = realloc(table->rows, table->cap * sizeof *table->rows);
            must(table->rows != NULL);
        }
        table->count = source->count;
        if (source->count)
            memcpy(table->rows, source->rows, source->count * sizeof *source->rows);
    }
}

void twin_release(struct twin_tree *twin)
{
    for (size_t i = 0; i < WB_TREE_TABLES_MAX; i++)
        free(twin->tables[i].rows);
    *twin = (struct twin_tree){0};
}

struct wb_slice random_key(uint64_t *chance, uint64_t keys, bool ids, char room[WB_TREE_KEY_MAX])
{
    uint64_t content = chance_below(chance, keys);

    if (ids) {
        for (size_t i = 0; i < 16; i += 8)
            wb_put64(room + i, chance_next(&content));
        return wb_slice(room, 16);
    }
    size_t len =
        chance_one_in(&content, 10) ? WB_TREE_KEY_MAX - chance_below(&content, 5) : 1 + chance_below(&content, 30);
    memset(room, 'a', len);
    for (size_t i = 0; i < 3; i++)
        room[chance_below(&content, len)] = (char)('a' + chance_below(&content, 4));
    return wb_slice(room, len);
}

struct wb_slice random_value(uint64_t *chance, char room[WB_TREE_VALUE_MAX])
{
    size_t len = chance_one_in(chance, 30) ? WB_TREE_VALUE_MAX - chance_below(chance, 10) : chance_below(chance, 60);

    for (size_t i = 0; i < len; i++)
        room[i] = (char)chance_next(chance);
    return wb_slice(room, len);
}

struct comparison {
    const struct twin_table *table;
    size_t at;
};

static int compare_row(void *context, struct wb_slice key, struct wb_slice value)
{
    struct comparison *c = context;

    must(c->at < c->table->count);
    const struct twin_row *row = &c->table->rows[c->at++];
    must(wb_slice_equal(key, key_of(row)) && wb_slice_equal(value, wb_slice(row->value, row->value_len)));
    return 0;
}

void compare_tables(struct wb_tree *tree, const struct wb_tree_state *state, const struct twin_tree *twin,
                    unsigned tables)
{
    for (unsigned i = 0; i < tables; i++) {
        struct comparison c = {&twin->tables[i], 0};
        must_ok(wb_tree_each(tree, state, i, compare_row, &c));
        must(c.at == c.table->count && state->roots[i].rows == c.at);
    }
}

struct findings {
    unsigned problems, notes;
    bool print;
};

static void note_finding(void *context, bool problem, uint64_t offset, const char *message)
{
    struct findings *f = context;

    if (problem && f->print)
        fprintf(stderr, "at %llu: %s\n", (unsigned long long)offset, message);
    f->problems += problem;
    f->notes += !problem;
}

unsigned check_tree(struct wb_tree *tree, const struct wb_tree_state *state)
{
    struct findings f = {.print = true};

    must_ok(wb_tree_check(tree, state, note_finding, &f));
    must(f.problems == 0);
    return f.notes;
}

unsigned count_problems(struct wb_tree *tree, const struct wb_tree_state *state)
{
    struct findings f = {0};

    must_ok(wb_tree_check(tree, state, note_finding, &f));
    return f.problems;
}
