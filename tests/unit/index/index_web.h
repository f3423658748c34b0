/* index_web.h - for tests with one web in one directory: how each of them begins and ends. */
#ifndef WB_TESTS_INDEX_WEB_H
#define WB_TESTS_INDEX_WEB_H

#include "../unsynced.h"
#include "index_support.h"

static char test_dir[MEMORY_DIR_MAX];
static struct web *web;

/* Makes the directory and an empty web in it. */
static inline void make_web(void)
{
    char dir[MEMORY_DIR_MAX + 2];

    assert_int_equal(make_memory_dir("index", test_dir), 0);
    snprintf(dir, sizeof dir, "%s/r", test_dir);
    web = wb_alloc(sizeof *web);
    assert_non_null(web);
    web_init(web, dir, test_seed());
}

/* A web with pages, of which none is taken down. */
static inline int set_up_web(void **state)
{
    (void)state;
    make_web();
    web->no_takedowns = true;
    web_fill(web);
    return 0;
}

/* The same with a generation, and with the empty directories a and b. */
static inline int set_up_generation(void **state)
{
    char path[MEMORY_DIR_MAX + 2];

    set_up_web(state);
    for (char name = 'a'; name <= 'b'; name++) {
        snprintf(path, sizeof path, "%s/%c", test_dir, name);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    web_build(web);
    return 0;
}

static inline int tear_down_web(void **state)
{
    (void)state;
    wb_free(web);
    return remove_tree(test_dir);
}

#endif
