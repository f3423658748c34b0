/*
 * store_support.h - what the tests of store share: temporary directories, puts of pages made from numbers (madepage.h),
 * and comparisons.
 */
#ifndef WB_TESTS_STORE_SUPPORT_H
#define WB_TESTS_STORE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "../children.h"
#include "../madepage.h"
#include "../must.h"
#include "../removetree.h"
#include "../rounds.h"
#include "../seeded.h"
#include "base/error.h"
#include "store/repo.h"
#include "store/store.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define DIR_MAX 256

/* ---- directories ------------------------------------------------------------------ */

/* Makes a new empty directory, which is removed at the end of the program. */
void test_dir(char dir_out[DIR_MAX]);
void path_in(const char *dir, const char *name, char path_out[DIR_MAX]);

/* Copies a repository to a directory that does not exist yet. */
void copy_repository(const char *from, const char *to);

/* The file of a segment, on its node. */
void segment_path(const char *dir, const struct wb_catalog_segment *row, char path_out[DIR_MAX]);

/* The size of a file; changes one byte of it and returns what it was. */
uint64_t file_bytes(const char *path);
uint8_t flip_byte(const char *path, uint64_t at, uint8_t mask);

/* ---- pages -------------------------------------------------------------------------- */

/* Makes the page and puts it. */
int put_spec(struct wb_store *store, const struct spec *spec);
int put_spec_as(struct wb_store *store, const struct spec *spec, enum wb_store_outcome *outcome_out);
/* The page is gone since spec->time_ms. */
int remove_spec(struct wb_store *store, const struct spec *spec, bool everywhere);

/* Bars the page or its site, or lifts the bar if allow is set. */
int bar_spec(struct wb_store *store, const struct spec *spec, enum wb_store_bar_kind kind, bool allow);
bool spec_barred(struct wb_store *store, const struct spec *spec);

/* How many segment files contain the page's body. It must be random (variant 5), so that zstd stores it as it is. */
unsigned files_with(const char *dir, const struct spec *spec);

/* Fields of a page that some comparisons leave out. */
enum {
    WITHOUT_EPOCH = 1,
    WITHOUT_LIFETIME = 2, /* only the latest version has one of its own */
    WITHOUT_TIME = 4,     /* further captures change the time of a version */
};

/* A hash of every field that a store returns, except those of the mask. */
uint64_t page_hash(const struct wb_page *page, unsigned without);

/* Whether get returns exactly the page of the spec; prints what it returned instead. */
bool holds_spec(struct wb_store *store, const struct spec *spec);

/* ---- scans ------------------------------------------------------------------------------ */

struct seen {
    struct wb_pageid id;
    uint64_t hash;
    int64_t time_ms;
    uint64_t epoch;
    uint32_t lifetime_count;
};
struct sights {
    struct seen *list;
    size_t count, cap;
};

/* Reads up to max pages of a scan. Returns false at its end. The mask is that of page_hash(). */
bool scan_some(struct wb_store_scan *scan, size_t max, unsigned without, struct sights *sights);

/* Adds a page that was seen. */
void see(struct sights *sights, const struct wb_page *page, unsigned without);

/* Reads the rest of a scan and closes it; or all of one. */
void drain_scan(struct wb_store_scan *scan, unsigned without, struct sights *sights);
void scan_all(struct wb_store *store, const struct wb_store_scan_options *options, unsigned without,
              struct sights *sights);

/* Sorts both lists. Fails if a page was seen twice, by only one of them, or differently. */
void compare_sights(const char *what, struct sights *found, struct sights *expected);

/* The same, but pages of the third list (which may be NULL) may be missing in the first. */
void compare_sights_except(const char *what, struct sights *found, struct sights *expected,
                           const struct sights *may_miss);
void sights_release(struct sights *sights);

/* ---- the whole ----------------------------------------------------------------------------- */

/* The design of the repositories that tests create: the default, or the one that WEBBASE_TEST_DESIGN names. */
struct wb_design test_design(void);

/* How many nodes they have: 1, or what WEBBASE_TEST_NODES says. */
unsigned test_nodes(void);

void create_store(const char *dir);
void create_store_as(const char *dir, struct wb_store_history history);
struct wb_store *open_store(const char *dir, enum wb_store_mode mode);
void commit_store(struct wb_store *store);

/* Seals a snapshot without a name that a person holds forever. Returns its number. */
uint32_t seal_store(struct wb_store *store);

/* Verifies the repository. Prints problems, and fails if there are any. */
struct wb_store_verify_counts verify_clean(const char *dir);

/* The same without failing. */
struct wb_store_verify_counts verify_count(const char *dir, bool print);

/* ---- sizes --------------------------------------------------------------------------------------- */

/* Sizes with which a few small pages fill blocks, groups and segments. */
void use_small_sizes(uint64_t segment_bytes);
void use_usual_sizes(void);

#endif
