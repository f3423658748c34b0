/*
 * generation.h - the files of a generation, and how one is found and published.
 *
 *   webdb/lock            held by the writer
 *   webdb/00000003/       the newest one counts; a reader that opened an older one keeps it
 *   webdb/new-XXXXXXXX/   being written; removed by the next writer where its own died
 */
#ifndef WB_WEBDB_GENERATION_H
#define WB_WEBDB_GENERATION_H

#include "os/file.h"
#include "table/table.h"
#include "webdb/webdb.h"

#define WB_WEBDB_DIR "webdb"

/* Name, kind. */
#define WB_PAGES_FILE "pages.wbt"       /* SURT -> row (pagerow.h); rank = page number; rows that are mere targets included */
#define WB_PAGES_KIND "PURL"
#define WB_CONTENTS_FILE "contents.wbc" /* struct wb_content, by (md5, page) */
#define WB_CONTENTS_KIND "PMD5"
#define WB_OUTLINKS_FILE "outlinks.wbt" /* content number -> page numbers (linklist.h) */
#define WB_OUTLINKS_KIND "LMD5"
#define WB_INLINKS_FILE "inlinks.wbt"   /* page number -> content numbers (linklist.h) */
#define WB_INLINKS_KIND "LURL"
#define WB_DEGREES_FILE "degrees.wbc"   /* links to each page, uint32_t little-endian (UINT32_MAX: as many or more), by page number */
#define WB_DEGREES_KIND "INDG"
#define WB_SITES_FILE "sites.wbt"       /* site as a SURT, "org,example:8080)" -> sums (sitesum.h) */
#define WB_SITES_KIND "SITE"
#define WB_NEAR_FILE "near.wbc"         /* number of the page that each page is a near duplicate of, uint32_t little-endian (UINT32_MAX: none), by page number */
#define WB_NEAR_KIND "NEAR"
#define WB_RULES_FILE "rules.wbt"       /* hash of a site's name (wb_edit_site), big-endian -> robots.txt (rulesrow.h) */
#define WB_RULES_KIND "RULE"
#define WB_MANIFEST_FILE "manifest"

/* Generations of version 1 have neither near.wbc nor rules.wbt; they are read as if both were empty, and the next update writes version 2. */
#define WB_WEBDB_VERSION 2

/* An entry of pages by MD5. A content's number is the rank of its first entry. */
struct wb_content {
    uint8_t md5[WB_EDIT_MD5_BYTES];
    uint8_t page[8]; /* number, big-endian: entries sort as their bytes do */
};

/* How far a log is in the generation. */
struct wb_merged {
    uint32_t log;
    uint64_t last; /* offset of the last record that is; 0: none of it */
    uint64_t end;  /* where that record ends */
};

struct wb_manifest {
    uint32_t version;            /* of the generation's files */
    struct wb_webdb_count count; /* bytes and link_bytes are of the files */
    uint64_t rows;               /* in pages by URL, targets included */
    struct wb_merged *merged;    /* by log */
    size_t merged_count;
};

int wb_manifest_write(const char *path, const struct wb_manifest *manifest);
int wb_manifest_read(const char *path, struct wb_manifest *manifest_out);
void wb_manifest_release(struct wb_manifest *manifest);

/* Number of the newest generation of a repository; 0: there is none. */
int wb_generation_newest(const char *dir, uint32_t *number_out);

/* "DIR/webdb/00000003", from the heap. */
char *wb_generation_path(const char *dir, uint32_t number);

/* Removes a directory with the files in it. */
int wb_generation_remove(const char *path);

#endif
