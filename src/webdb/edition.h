/*
 * edition.h - the directory of an edition: the names of its files, and how the newest one is found.
 *
 *   webdb/00000003/       an edition: a directory of a series (os/series.h)
 *
 * publish.c makes a new edition the newest one; manifest.h is the file that says what an edition contains.
 */
#ifndef WB_WEBDB_EDITION_H
#define WB_WEBDB_EDITION_H

#include "os/series.h"
#include "table/table.h"
#include "webdb/manifest.h"

#define WB_WEBDB_DIR "webdb"

/* The files of an edition, and the four letters that each table and column carries as its kind. */

/* SURT -> row (pagerow.h). The rank of a row is its page number. Rows of mere targets are included. */
#define WB_PAGES_FILE "pages.wbt"
#define WB_PAGES_KIND "PURL"

/* struct wb_content, sorted by (md5, page). */
#define WB_CONTENTS_FILE "contents.wbc"
#define WB_CONTENTS_KIND "PMD5"

/* Content number -> the page numbers that it links to (linklist.h). */
#define WB_OUTLINKS_FILE "outlinks.wbt"
#define WB_OUTLINKS_KIND "LMD5"

/* Page number -> the content numbers that link to it (linklist.h). */
#define WB_INLINKS_FILE "inlinks.wbt"
#define WB_INLINKS_KIND "LURL"

/* By page number: how many links lead to the page, uint32_t little-endian; UINT32_MAX means that many or more. */
#define WB_DEGREES_FILE "degrees.wbc"
#define WB_DEGREES_KIND "INDG"

/* Site as a SURT, "org,example:8080)" -> sums over its pages (sitesum.h). */
#define WB_SITES_FILE "sites.wbt"
#define WB_SITES_KIND "SITE"

/* By page number: the page that this one is a near duplicate of, uint32_t little-endian; UINT32_MAX means none. */
#define WB_NEAR_FILE "near.wbc"
#define WB_NEAR_KIND "NEAR"

/* Hash of a site's name (wb_edit_site), 8 bytes big-endian -> its robots.txt (rulesrow.h). */
#define WB_RULES_FILE "rules.wbt"
#define WB_RULES_KIND "RULE"

/* By page number: one byte, enum wb_webdb_kind. */
#define WB_KINDS_FILE "kinds.wbc"
#define WB_KINDS_KIND "KIND"

/* struct wb_stored_id, sorted by id: the pages that the store has. */
#define WB_IDS_FILE "ids.wbc"
#define WB_IDS_KIND "PGID"

_Static_assert(sizeof WB_PAGES_KIND == 5 && sizeof WB_CONTENTS_KIND == 5, "a kind has four letters");
_Static_assert(sizeof WB_OUTLINKS_KIND == 5 && sizeof WB_INLINKS_KIND == 5, "a kind has four letters");
_Static_assert(sizeof WB_DEGREES_KIND == 5 && sizeof WB_SITES_KIND == 5, "a kind has four letters");
_Static_assert(sizeof WB_NEAR_KIND == 5 && sizeof WB_RULES_KIND == 5, "a kind has four letters");
_Static_assert(sizeof WB_KINDS_KIND == 5 && sizeof WB_IDS_KIND == 5, "a kind has four letters");

/* An entry of pages by MD5. The number of a content is the rank of its first entry. */
struct wb_content {
    uint8_t md5[WB_MD5_BYTES];
    uint8_t page[8]; /* page number, big-endian, so that entries sort as their bytes do */
};
_Static_assert(sizeof(struct wb_content) == 24, "an entry as it is on disk, without padding");

/* An entry of pages by id: the id as bytes (wb_pageid_put) and the page number, big-endian. */
struct wb_stored_id {
    uint8_t id[16];
    uint8_t page[4];
};
_Static_assert(sizeof(struct wb_stored_id) == 20, "an entry as it is on disk, without padding");

/*
 * Finds the number of a content by its MD5: the rank of its first entry. Every entry that the search looks at is
 * compared with its checksum first, so WB_E_NOTFOUND can be trusted; it sets no message. WB_E_CORRUPT. It also finds
 * the rank of an entry of pages by id: MD5s and ids both have 16 bytes that are spread evenly.
 */
int wb_contents_find(const struct wb_column *contents, const uint8_t md5[WB_MD5_BYTES], uint64_t *number_out);

/* What is known about a URL before its row is decoded: enum wb_webdb_kind. */
unsigned wb_edition_kind(const struct wb_webdb_page *page);

/* The number of the newest edition of a repository; 0 if there is none. */
int wb_edition_newest(const char *dir, uint32_t *number_out);

/* Reads the manifest of the newest edition. An empty manifest (edition 0) if there is none. */
int wb_edition_newest_manifest(const char *dir, struct wb_manifest *manifest_out);

/* "DIR/webdb/00000003", from the heap; NULL when out of memory. */
char *wb_edition_path(const char *dir, uint32_t number);

/* Holds an edition as long as the file is open: wb_series_share(). */
int wb_edition_share(const char *dir, uint32_t number, struct wb_file *lock_out);

#endif
