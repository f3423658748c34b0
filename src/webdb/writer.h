/*
 * writer.h - a writer of the web database: it collects edits in sorters, then merges them in six stages.
 *
 *   writer.c          opening and closing, the lock, what the stages share
 *   writer_edits.c    the calls that add edits; ids for URLs
 *   writer_journal.c  turns the records of the journal into edits
 *   salvage.c         turns the rows of a damaged edition into edits
 *
 *   merge_pages.c     1  pages by URL     <- page edits                -> page numbers, content edits, id edits
 *   merge_contents.c  2  pages by MD5     <- content edits             -> content numbers
 *                        pages by id      <- id edits
 *   merge_outlinks.c  3  links by MD5     <- link edits                -> links by target
 *   merge_inlinks.c   4  links by URL     <- links by target           -> numbers of links
 *   merge_near.c      5  near duplicates  <- fingerprints of stage 1
 *   merge_rules.c     6  robots.txt       <- records of rules
 *   publish.c         the rename that makes the new edition the newest one
 *
 * While edits are collected, a URL that links lead to has an id, given in the order of appearance. Stage 1 finds the
 * page number that each id stands for.
 *
 * Life of a writer:
 *   COLLECTING  edits are added
 *   MERGING     stage 1 has begun: nothing can be added any more
 *   PUBLISHED   the new edition is the newest one
 */
#ifndef WB_WEBDB_WRITER_H
#define WB_WEBDB_WRITER_H

#include "base/mem.h"
#include "webdb/edition.h"
#include "webdb/numbermap.h"
#include "webdb/pagefold.h"

enum { WB_WRITER_MAGIC = 0x57425757 }; /* "WBWW" */

enum wb_writer_state { WB_WRITER_COLLECTING = 1, WB_WRITER_MERGING, WB_WRITER_PUBLISHED };

/*
 * A URL that links lead to, in a hash table of the writer. It is found by the hash of its text. Other spellings of the
 * same URL get other ids, for which stage 1 finds the same page number.
 */
struct wb_writer_url {
    uint64_t hash;      /* 0: the slot is free */
    uint32_t id;
    uint16_t depth;     /* the lowest depth that a KNOWN edit was added with; UINT16_MAX if there was none */
    uint8_t known;      /* the value of writer->removals when a KNOWN edit was last added for it; 0 if there was none */
    bool wanted;        /* a KNOWN edit said that it is wanted */
};

struct wb_webdb_writer {
    uint32_t magic;
    enum wb_writer_state state;
    char *dir, *root;               /* the repository; its webdb directory */
    char *fresh;                    /* directory of the edition being written; NULL before and after that */
    struct wb_webdb_options options;
    const struct wb_file *lock; /* options.lock, or &own_lock */
    struct wb_file own_lock;
    uint32_t newest;                /* number of the newest edition; 0 if there is none */
    uint32_t old_number;            /* number of the edition that edits are merged into; 0 if they start from nothing */
    struct wb_manifest old, next;
    bool journal_moved;             /* more of the journal was read than the old edition contains */
    struct wb_webdb_merge stat;

    /* Edits. */
    struct wb_sorter *page_edits;   /* SURT, 0, time -> pageedit */
    struct wb_sorter *link_edits;   /* MD5 -> a group of links (writer_edits.c) */
    struct wb_sorter *rules_edits;  /* site, time -> rulesrow; NULL if there are none */
    uint64_t rules_count;           /* how many of them */
    uint64_t content_edit_count;    /* page edits that may bring a content */
    struct wb_writer_url *urls;     /* the hash table; urls_cap is a power of two */
    size_t urls_cap, urls_used;
    uint32_t next_id;
    uint8_t removals;               /* counts groups of removals, from 1: see note_removal() */
    bool told;                      /* a KNOWN edit was added since the last removal */
    struct wb_buf group;            /* links of group_md5 that are not in the sorter yet */
    uint8_t group_md5[WB_MD5_BYTES];
    struct wb_url url;              /* this and the next three: reused memory */
    struct wb_buf key, surt, value;

    /* What one stage of the merge leaves for the next ones. */
    struct wb_merge_pages *page_stage;  /* stage 1 while it is under way */
    bool pages_merged;                  /* stage 1 is done */
    struct wb_numbermap id_numbers;      /* id -> page number */
    struct wb_numbermap page_numbers;    /* old page number -> new one */
    struct wb_numbermap content_numbers; /* old content number -> new one */
    struct wb_sorter *content_edits;    /* MD5, page number -> enum wb_content_edit */
    struct wb_sorter *id_edits;         /* page id -> enum wb_content_edit, page number */
    struct wb_sorter *target_edits;     /* page number, content number -> link */
    struct wb_column contents;          /* the new pages by MD5 */
    uint64_t outlinks;                  /* links that stage 3 wrote */
    struct wb_merge_near_entry *prints; /* fingerprints of pages, by page number, in a mapped file without a name */
    uint64_t print_count, print_cap;
};

/* The fingerprint of a page, from stage 1 to stage 5. */
struct wb_merge_near_entry {
    uint64_t simhash;
    uint32_t page, zero;
};

_Static_assert(sizeof(struct wb_merge_near_entry) == 16, "two words, as they are mapped");

/* What stage 1 tells stage 2 about a content of a page, or about a page that the store has. */
enum wb_content_edit { WB_CONTENT_ADD = 'a', WB_CONTENT_REMOVE = 'r' };

static inline bool wb_writer_is(const struct wb_webdb_writer *writer, enum wb_writer_state state)
{
    return writer->magic == WB_WRITER_MAGIC && writer->state == state;
}

/* ---- writer_edits.c -------------------------------------------------------------------------- */

/* Adds an edit of the page at edit->url. WB_E_INVALID if that is not an http or https URL. */
int wb_writer_add_page_edit(struct wb_webdb_writer *writer, struct wb_pageedit *edit);

/*
 * Finds the id of a URL that a link leads to. If webdb has not been told about the URL yet, this adds the edit `known`
 * for it; with known NULL, an edit that only makes sure that it has a row.
 */
int wb_writer_add_target(struct wb_webdb_writer *writer, struct wb_slice url, const struct wb_pageedit *known,
                         uint32_t *id_out);

/* A link from a content to the URL of an id. */
struct wb_writer_link {
    uint32_t id;
    uint32_t condition; /* the link counts only if this id gets a page number; WB_PAGEEDIT_NO_ID: always */
    uint8_t tag, flags;
    struct wb_slice anchor;
};

/* Consecutive links of the same content are collected into one record of the sorter, a group. */
int wb_writer_add_link(struct wb_webdb_writer *writer, const uint8_t md5[WB_MD5_BYTES], uint32_t condition,
                       const struct wb_writer_link *link);

/* Gives the links that were collected to the sorter. */
int wb_writer_flush_links(struct wb_webdb_writer *writer);

/* Reads the links of a group; *at starts as 0. Returns 1, 0 at the end, or WB_E_CORRUPT. */
int wb_writer_link_next(struct wb_slice group, size_t *at, struct wb_writer_link *link_out);

/* ---- what the stages share: writer.c ------------------------------------------------------------- */

/*
 * Opens a sorter with this many eighths of the writer's memory. While edits are collected: 3 for pages, 3 for links, 1
 * for the table of URLs. In stage 1 the content edits get 1 instead of the URLs, and the id edits get 1; then the links
 * by target get 3 instead of the pages.
 */
int wb_writer_open_sorter(struct wb_webdb_writer *writer, unsigned eighths, struct wb_sorter **sorter_out);

/* Opens a table of the old edition and a cursor over it. Both are NULL if there is no old edition. */
int wb_writer_open_old_table(struct wb_webdb_writer *writer, const char *name, const char *kind,
                             struct wb_table **table_out, struct wb_cursor **cursor_out);

/*
 * Opens a column of the old edition and verifies all of it, so that damage is not carried into the new one. The column
 * is empty if there is no old edition.
 */
int wb_writer_open_old_column(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t record_bytes,
                              struct wb_column *column_out);

/* Create a table or a column of the new edition. */
int wb_writer_create_table(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t block_bytes,
                           struct wb_table_writer **table_out);
int wb_writer_create_column(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t record_bytes,
                            struct wb_column_writer **column_out);

/* The path of a file of the new edition, or of the old one; from the heap, NULL when out of memory. */
char *wb_writer_new_path(const struct wb_webdb_writer *writer, const char *name);
char *wb_writer_old_path(const struct wb_webdb_writer *writer, const char *name);

/* Reports progress every few thousand calls. WB_E_STOPPED if the caller of the writer wants to stop. */
int wb_writer_progress(struct wb_webdb_writer *writer, const char *step, uint64_t done, uint64_t total);

/* ---- the stages ------------------------------------------------------------------------------ */

/*
 * Stage 1 pauses at each page whose next due time the caller sets (see wb_webdb_writer_next): call open, then next
 * until it returns 0. If next fails, or is not called to the end, close releases the stage.
 */
int wb_merge_pages_open(struct wb_webdb_writer *writer);
int wb_merge_pages_next(struct wb_webdb_writer *writer, struct wb_webdb_page **page_out,
                        const struct wb_webdb_site **site_out);
void wb_merge_pages_close(struct wb_webdb_writer *writer);

int wb_merge_contents(struct wb_webdb_writer *writer);
int wb_merge_ids(struct wb_webdb_writer *writer);
int wb_merge_outlinks(struct wb_webdb_writer *writer);
int wb_merge_inlinks(struct wb_webdb_writer *writer);

int wb_merge_near(struct wb_webdb_writer *writer);

/* Makes room for the fingerprints of all pages. Stage 1 then adds them in the order of page numbers. */
int wb_merge_near_open(struct wb_webdb_writer *writer);
int wb_merge_near_add(struct wb_webdb_writer *writer, const struct wb_webdb_page *page, uint64_t number);
void wb_merge_near_close(struct wb_webdb_writer *writer);

int wb_merge_rules(struct wb_webdb_writer *writer);

/* Adds a robots.txt. site: hash of the site's name. One that says nothing, or has expired, is ignored. */
int wb_merge_rules_add(struct wb_webdb_writer *writer, uint64_t site, const struct wb_webdb_rules *rules);

/* ---- publish.c ------------------------------------------------------------------------------- */

/* Removes what dead writers have left: unfinished editions, and old ones. */
int wb_publish_clean(struct wb_webdb_writer *writer);

/* Makes the directory of the new edition. */
int wb_publish_begin(struct wb_webdb_writer *writer);

/* Writes the manifest and makes the new edition the newest one. */
int wb_publish(struct wb_webdb_writer *writer);

/*
 * Replaces only the manifest of the old edition: the journal had new records, but none that changes a table; or another
 * epoch of the store was seen.
 */
int wb_publish_manifest(struct wb_webdb_writer *writer);

#endif
