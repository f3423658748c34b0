/*
 * writer.h - a writer of the web database: edits on their way into sorters, then a merge in six stages.
 *
 *   writer.c          begin and end; the lock
 *   writer_edits.c    the calls that add edits; URLs get ids
 *   writer_journal.c  what the journal says, as edits
 *   salvage.c         rows of a damaged edition, as edits
 *   merge_pages.c     1 pages by URL   <- page edits              -> page numbers; edits of contents
 *   merge_contents.c  2 pages by MD5   <- edits of contents       -> content numbers
 *   merge_outlinks.c  3 links by MD5   <- link edits              -> links by target
 *   merge_inlinks.c   4 links by URL   <- links by target         -> numbers of links
 *   merge_near.c      5 near duplicates <- fingerprints of stage 1
 *   merge_rules.c     6 robots.txt     <- records of rules
 *   publish.c         the rename, and what is removed after it
 *
 * While edits are collected a URL that links lead to has an id, in order of appearance; stage 1 finds out its number.
 */
#ifndef WB_WEBDB_WRITER_H
#define WB_WEBDB_WRITER_H

#include "base/mem.h"
#include "webdb/edition.h"
#include "webdb/pagefold.h"

#define WB_NO_NUMBER UINT32_MAX  /* in maps: there is none (any more) */
#define WB_NUMBERS_MAX (UINT32_MAX - 1)

/* A URL that links lead to. The hash is of its text; other spellings of it have other ids, which come to the same number. */
struct wb_url_slot {
    uint64_t hash;      /* 0: free */
    uint32_t id;
    uint16_t depth;     /* as told so far; UINT16_MAX: not told */
    uint8_t known;      /* told to be heard of, when removals was this; 0: not */
    bool wanted;        /* told to be wanted */
};

/* Numbers by number, in a file without a name. */
struct wb_number_map {
    uint32_t *numbers;
    uint64_t count;
};

struct wb_webdb_writer {
    char *dir, *root, *fresh;       /* the repository, its webdb, the edition being written (NULL: not yet) */
    struct wb_webdb_options options;
    struct wb_file lock;
    uint32_t newest;                /* number of the newest edition; 0: there is none */
    uint32_t old_number;            /* of the one that is merged; 0: none is */
    struct wb_manifest old, next;
    bool moved;                     /* more of the journal was read */
    struct wb_sorter *page_edits;   /* SURT, 0, time -> pageedit */
    struct wb_sorter *link_edits;   /* MD5 -> group of links (writer_edits.c) */
    struct wb_url_slot *slots;
    size_t slot_count, slots_used;
    uint8_t removals;                  /* from 1: counts where removals of pages follow on tellings; what was told before counts no more */
    bool told;                         /* something was, since the last removal */
    uint32_t next_id;
    struct wb_webdb_merge stat;
    struct wb_url url;
    struct wb_buf key, surt, value;
    struct wb_buf group;               /* links of group_md5 that wait */
    uint8_t group_md5[WB_EDIT_MD5_BYTES];
    /* of the merge */
    struct wb_page_stage *page_stage;  /* stage 1 while it is under way */
    bool pages_merged;                 /* stage 1 is over */
    struct wb_number_map id_numbers;   /* id -> page number */
    struct wb_number_map page_numbers; /* old page number -> new */
    struct wb_number_map content_numbers; /* old content number -> new */
    struct wb_sorter *content_edits;   /* MD5, page number -> add or remove */
    struct wb_sorter *target_edits;    /* page number, content number -> link */
    struct wb_column contents;         /* the new pages by MD5 */
    uint64_t outlinks;                 /* links that stage 3 wrote */
    uint64_t content_edit_count;       /* page edits that may bring a content */
    struct wb_near_entry *prints;      /* fingerprints of pages with content, by page number, in a file without a name */
    uint64_t print_count, print_cap;
    struct wb_sorter *rules_edits;     /* site, time -> rulesrow; NULL: there are none */
    uint64_t rules_count;              /* of them */
};

/* A page's fingerprint on its way to stage 5. */
struct wb_near_entry {
    uint64_t simhash;
    uint32_t page, zero;
};

enum { WB_CONTENT_ADD = 'a', WB_CONTENT_REMOVE = 'r' };

/* ---- writer_edits.c -------------------------------------------------------------------------- */

/* An edit of a page into the sorter; edit->url is its URL. WB_E_INVALID where that is none. */
int wb_writer_page_edit(struct wb_webdb_writer *writer, struct wb_pageedit *edit);

/* The id of a URL that a link leads to; told as heard of with what `known` says, or as a mere target where that is NULL. */
int wb_writer_target(struct wb_webdb_writer *writer, struct wb_slice url, const struct wb_pageedit *known, uint32_t *id_out);

/* A link to the URL of an id, from a content. Links of one content that follow one another share a record of the sorter. */
struct wb_grouped_link {
    uint32_t id;
    uint32_t condition; /* counts only where this id came to a number; WB_PAGEEDIT_NO_ID: always */
    uint8_t tag, flags;
    struct wb_slice anchor;
};
int wb_writer_link(struct wb_webdb_writer *writer, const uint8_t md5[WB_EDIT_MD5_BYTES], uint32_t condition, const struct wb_grouped_link *link);

/* Hands the links that were collected to the sorter. */
int wb_writer_group_flush(struct wb_webdb_writer *writer);

/* Walks a group: *at starts as 0. 1, 0 at the end, WB_E_CORRUPT. */
int wb_group_next(struct wb_slice group, size_t *at, struct wb_grouped_link *link_out);

/* ---- the merge ---------------------------------------------------------------------------------- */

/*
 * Stage 1 stops at each page whose due time the caller sets (wb_webdb_writer_next): begin, then next until it returns 0.
 * close gives up what a stage that did not come to its end holds.
 */
int wb_merge_pages_begin(struct wb_webdb_writer *writer);
int wb_merge_pages_next(struct wb_webdb_writer *writer, struct wb_webdb_page **page_out, const struct wb_webdb_site **site_out);
void wb_merge_pages_close(struct wb_webdb_writer *writer);
int wb_merge_contents(struct wb_webdb_writer *writer);
int wb_merge_outlinks(struct wb_webdb_writer *writer);
int wb_merge_inlinks(struct wb_webdb_writer *writer);
int wb_merge_near(struct wb_webdb_writer *writer);
int wb_merge_rules(struct wb_webdb_writer *writer);

/* Room for the fingerprints of all pages; stage 1 adds them in order of page. */
int wb_near_open(struct wb_webdb_writer *writer);
int wb_near_add(struct wb_webdb_writer *writer, const struct wb_webdb_page *page, uint64_t number);
void wb_near_close(struct wb_webdb_writer *writer);

/* A robots.txt that was read, by the hash of its site's name. Ones that tell nothing, or no longer hold, are left out. */
int wb_writer_rules(struct wb_webdb_writer *writer, uint64_t site, const struct wb_webdb_rules *rules);

int wb_number_map_open(struct wb_webdb_writer *writer, uint64_t count, struct wb_number_map *map_out);
void wb_number_map_close(struct wb_number_map *map);

/*
 * A sorter with so many eighths of the writer's memory. While edits come: 3 pages, 3 links, 1 URLs' ids; then 1 contents instead of
 * the ids; then 3 targets instead of the pages.
 */
int wb_writer_sorter(struct wb_webdb_writer *writer, unsigned eighths, struct wb_sorter **sorter_out);

/* Opens a table of the old edition with a cursor; both NULL where there is none. */
int wb_writer_old_table(struct wb_webdb_writer *writer, const char *name, const char *kind, struct wb_table **table_out,
                        struct wb_cursor **cursor_out);

/* Maps a column of the old edition; its checksums are looked at here, so that damage is not handed on. Empty where there is none. */
int wb_writer_old_column(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t record_bytes, struct wb_column *column_out);
int wb_writer_new_table(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t block_bytes, struct wb_table_writer **table_out);

/* Path of a file of the edition being written, and of the old one; from the heap. */
char *wb_writer_new_path(const struct wb_webdb_writer *writer, const char *name);
char *wb_writer_old_path(const struct wb_webdb_writer *writer, const char *name);

/* Tells how far a stage is; WB_E_STOPPED where it is to end. Cheap: asks every few thousand calls. */
int wb_writer_progress(struct wb_webdb_writer *writer, const char *step, uint64_t done, uint64_t total);

/* ---- publish.c -------------------------------------------------------------------------------------- */

/* Removes what dead writers left: editions that were not finished, and old ones that were not removed. */
int wb_publish_clean(struct wb_webdb_writer *writer);

/* A directory for the new edition. */
int wb_publish_begin(struct wb_webdb_writer *writer);
int wb_publish(struct wb_webdb_writer *writer);

/* Only the manifest, where the journal held nothing that changes a table. */
int wb_publish_manifest(struct wb_webdb_writer *writer);

#endif
