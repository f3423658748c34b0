/*
 * shared_repository.h - a repository that several processes of a test use. The test itself never has it
 * open, because a child must not inherit a store.
 */
#ifndef WB_TESTS_STORE_SHARED_REPOSITORY_H
#define WB_TESTS_STORE_SHARED_REPOSITORY_H

#include "store_support.h"
#include "move/move.h"

#include <dirent.h>

static char dir[DIR_MAX];

static inline int create(void *context)
{
    (void)context;
    create_store(dir);
    return 0;
}

static inline void new_repository(void)
{
    test_dir(dir);
    must(run_child(create, NULL) == 0);
}

static inline int check_sound(void *context)
{
    (void)context;
    verify_clean(dir);
    wb_store_close(open_store(dir, WB_STORE_WRITE));
    must(verify_clean(dir).notes == 0);
    return 0;
}

static inline int compact_once(void *context)
{
    const bool *expect_work = context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_move_compact_counts compact;

    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compact));
    must(!*expect_work || compact.files > 0 || test_design().read.organisation == WB_ORGANISATION_HASH);
    wb_store_close(store);
    return 0;
}

static inline unsigned count_files(void)
{
    char pages[DIR_MAX];
    unsigned count = 0;

    path_in(dir, WB_SEGMENT_DIR, pages);
    DIR *d = opendir(pages);
    must(d != NULL);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        count += entry->d_name[0] != '.' && !strstr(entry->d_name, ".dw"); /* which belongs to a file of buckets */
    closedir(d);
    return count;
}

#endif
