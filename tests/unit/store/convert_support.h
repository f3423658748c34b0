/* convert_support.h - repositories of all designs for the tests of conversions, and comparing them. */
#ifndef WB_TESTS_CONVERT_SUPPORT_H
#define WB_TESTS_CONVERT_SUPPORT_H

#include "model_compare.h"
#include "move/move.h"

enum { NODE_MAX = 3, DESIGNS = 9, CONVERT_SITES = 5, CONVERT_NUMBERS = 9 }; /* sites, and pages of each */

struct convert_design {
    const char *design;
    size_t nodes, update_nodes;
};
extern const struct convert_design designs[DESIGNS];
extern const struct wb_move_convert_sink quiet;

struct wb_store_options options_of(size_t i);
/* Something happens to a page; the first can also set or lift a bar, which is a commit. */
void change_something(struct wb_store *store, uint64_t *chance, int64_t time_ms);
void change_page(struct wb_store *store, uint64_t *chance, int64_t time_ms);
/* Writes for a while; in a batch design everything but the last part is transferred. */
void fill(struct wb_store *store, uint64_t *chance, bool batch, int64_t start_ms);
void make_source(const char *dir, size_t design, uint64_t *chance);
void convert(const char *from, const char *to, size_t design);
/* A hash of the names and bytes of all files below a directory. */
uint64_t hash_tree(const char *dir);
/* Everything that can be asked. */
void compare_stores(struct wb_store *a, struct wb_store *b);
void compare_dirs(const char *a, const char *b);
/* The same things happen to both; afterwards they must still be alike. */
void go_on(const char *a, bool a_batch, const char *b, bool b_batch, uint64_t chance);

#endif
