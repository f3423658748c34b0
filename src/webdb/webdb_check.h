/*
 * webdb_check.h - a check of an edition, shared by the files that look at its tables.
 *
 *   webdb_check.c        each file by itself, then the manifest
 *   webdb_check_pages.c  pages by URL, pages by MD5, sites and robots.txt
 *   webdb_check_links.c  both tables of links, and the numbers of links
 */
#ifndef WB_WEBDB_WEBDB_CHECK_H
#define WB_WEBDB_WEBDB_CHECK_H

#include "webdb/webdb_read.h"

#include <inttypes.h>

/* The files of an edition. */
enum wb_webdb_checked {
    WB_CHECKED_MANIFEST,
    WB_CHECKED_PAGES,
    WB_CHECKED_CONTENTS,
    WB_CHECKED_OUTLINKS,
    WB_CHECKED_INLINKS,
    WB_CHECKED_DEGREES,
    WB_CHECKED_SITES,
    WB_CHECKED_NEAR,
    WB_CHECKED_RULES,
    WB_CHECKED_KINDS,
    WB_CHECKED_IDS,
    WB_CHECKED_FILES,
};

/*
 * A set of hashes, without its members: two equal sets have the same count and sum, in whatever order they were added.
 * So two tables can be compared in constant memory.
 */
struct wb_webdb_check_set {
    uint64_t count, sum;
};

struct wb_webdb_check {
    const char *dir;
    uint32_t number;             /* of the edition */
    wb_webdb_found found;
    void *context;
    uint64_t problems[WB_CHECKED_FILES]; /* how many problems each file has */
    struct wb_webdb *webdb;      /* NULL while the files are checked one by one */
    struct wb_webdb_count seen;  /* what we have counted, to be compared with the manifest */
};

/* Reports a problem. If a file has many problems, only the first ones are reported. */
void wb_webdb_check_report(struct wb_webdb_check *check, enum wb_webdb_checked file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* If err means that the file is damaged, reports it and returns true: the check can go on. */
bool wb_webdb_check_report_error(struct wb_webdb_check *check, enum wb_webdb_checked file, int err);

static inline void wb_webdb_check_set_add(struct wb_webdb_check_set *set, uint64_t hash)
{
    WB_CHECK(set->count > 0 || set->sum == 0); /* a set without members has no sum */
    set->count++;
    set->sum += hash;
}

static inline bool wb_webdb_check_set_equal(const struct wb_webdb_check_set *a, const struct wb_webdb_check_set *b)
{
    return a->count == b->count && a->sum == b->sum;
}

/* The parts of the check. They report problems; an error means that the check cannot go on. */
int wb_webdb_check_pages(struct wb_webdb_check *check);
int wb_webdb_check_links(struct wb_webdb_check *check);
int wb_webdb_check_rules(struct wb_webdb_check *check);

#endif
