/* tree_support.h - a simple sorted list of rows, to compare a tree with: both must contain the same. */
#ifndef WB_TESTS_TREE_SUPPORT_H
#define WB_TESTS_TREE_SUPPORT_H

#include "../store/store_support.h"
#include "tree/tree_own.h"

/* A directory for the tests of a program, and the path of a tree in it that make_dir(), the set-up, does not create. */
extern char dir[DIR_MAX], path[DIR_MAX];
int make_dir(void **state);

struct twin_row {
    char key[WB_TREE_KEY_MAX], value[WB_TREE_VALUE_MAX];
    size_t key_len, value_len;
};

struct twin_table {
    struct twin_row *rows; /* sorted */
    size_t count, cap;
};

struct twin_tree {
    struct twin_table tables[WB_TREE_TABLES_MAX];
};

void twin_put(struct twin_table *table, struct wb_slice key, struct wb_slice value);
bool twin_delete(struct twin_table *table, struct wb_slice key);
const struct twin_row *twin_get(const struct twin_table *table, struct wb_slice key);
void twin_copy(const struct twin_tree *from, struct twin_tree *to);
void twin_release(struct twin_tree *twin);

/* A key like a page id, or one of up to WB_TREE_KEY_MAX bytes that has long beginnings in common with others. */
struct wb_slice random_key(uint64_t *chance, uint64_t keys, bool ids, char room[WB_TREE_KEY_MAX]);
struct wb_slice random_value(uint64_t *chance, char room[WB_TREE_VALUE_MAX]);

/* Fails unless a state contains exactly what the twin has. */
void compare_tables(struct wb_tree *tree, const struct wb_tree_state *state, const struct twin_tree *twin,
                    unsigned tables);

/* Fails if a check finds a problem. Returns the number of notes. */
unsigned check_tree(struct wb_tree *tree, const struct wb_tree_state *state);

/* Returns the number of problems, without failing. */
unsigned count_problems(struct wb_tree *tree, const struct wb_tree_state *state);

#endif
