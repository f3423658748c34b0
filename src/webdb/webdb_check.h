/* webdb_check.h - a check of an edition on its way, shared by the parts that look at its tables. */
#ifndef WB_WEBDB_WEBDB_CHECK_H
#define WB_WEBDB_WEBDB_CHECK_H

#include "webdb/webdb_read.h"

enum wb_check_file {
    WB_CHECK_MANIFEST,
    WB_CHECK_PAGES,
    WB_CHECK_CONTENTS,
    WB_CHECK_OUTLINKS,
    WB_CHECK_INLINKS,
    WB_CHECK_DEGREES,
    WB_CHECK_SITES,
    WB_CHECK_NEAR,
    WB_CHECK_RULES,
    WB_CHECK_FILES,
};

/* A set of things as seen from one side: equal sets have equal counts and sums, in whatever order they come. */
struct wb_check_set {
    uint64_t count, sum;
};

struct wb_check {
    const char *dir;
    uint32_t number;             /* of the edition */
    wb_webdb_found found;
    void *context;
    uint64_t told[WB_CHECK_FILES]; /* problems of each file */
    struct wb_webdb *webdb;
    struct wb_webdb_count seen;  /* counted, to be compared with the manifest */
};

/* Tells of a problem; of many in one file only the first. */
void wb_check_tell(struct wb_check *check, enum wb_check_file file, uint64_t offset, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Whether an error is a problem to be told of (then it was), after which the check goes on. */
bool wb_check_told(struct wb_check *check, enum wb_check_file file, int err);

static inline void wb_check_set_add(struct wb_check_set *set, uint64_t hash)
{
    set->count++;
    set->sum += hash;
}

static inline bool wb_check_set_equal(const struct wb_check_set *a, const struct wb_check_set *b)
{
    return a->count == b->count && a->sum == b->sum;
}

/* Rows, contents and sites; then lists and degrees. Only errors that keep the check from going on are returned. */
int wb_check_pages(struct wb_check *check);
int wb_check_links(struct wb_check *check);
int wb_check_rules(struct wb_check *check);

#endif
