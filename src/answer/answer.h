/*
 * answer.h - the door of answer: what the command line and the server have in common. Both are asked for pages,
 * snapshots, hits and counts; here is what the words of a question mean, and how an answer looks as JSON, so that
 * `get --json` and /api/page can never differ. Nothing here prints.
 *
 * Functions that write JSON add fields to the object that the caller has begun.
 */
#ifndef WB_ANSWER_ANSWER_H
#define WB_ANSWER_ANSWER_H

#include "base/json.h"
#include "cycle/cycle.h"
#include "query/query.h"
#include "store/store.h"
#include "vault/vault.h"

/* ---- which page is meant (which.c) --------------------------------------------------------------- */

/*
 * Reads 32 hexadecimal digits as a page id, anything else as a URL, which need not have a scheme. WB_E_PROTO names the
 * text if it is neither.
 */
int wb_which_page(struct wb_slice text, struct wb_pageid *id_out);

/* The whole URL of a text that may have no scheme; replaces the content of href_out. WB_E_PROTO names the text. */
int wb_which_url(struct wb_slice text, struct wb_buf *href_out);

/* Finds a snapshot by its number or name. WB_E_NOTFOUND, which names it, also if it was dropped or has expired. */
int wb_which_snapshot(struct wb_store *store, struct wb_slice text, uint32_t *number_out);

/*
 * Why a version was not found: fails with WB_E_NOTFOUND and a message that says what there is instead. name: the page
 * as it was asked for; snapshot: the one that was asked for, or ptr NULL; where: the repository.
 */
int wb_which_missing(struct wb_store *store, struct wb_pageid id, struct wb_slice name, struct wb_slice snapshot,
                     const char *where);

/* ---- pages and snapshots (answer_page.c) --------------------------------------------------------- */

/* url, key, id, time, status, type, charset, length, md5, sha1, truncated, epoch. */
void wb_answer_page(struct wb_json *j, const struct wb_page *page);

/* url, version, time, last_seen, captures, status, type, length, md5, sha1. page: NULL if it cannot be read. */
void wb_answer_version(struct wb_json *j, struct wb_slice url, size_t number, const struct wb_store_version *version,
                       const struct wb_page *page);

/* snapshot, name, epoch, time, pages, expires, held_by. */
void wb_answer_snapshot(struct wb_json *j, const struct wb_store_snapshot *snapshot);

/* "person", "generation 7" or "stream NAME". */
#define WB_ANSWER_HOLDER_MAX (WB_STORE_NAME_MAX + 16)
const char *wb_answer_holder(const struct wb_store_holder *holder, char text_out[WB_ANSWER_HOLDER_MAX]);

/* ---- searches (answer_search.c) ------------------------------------------------------------------ */

/* Adds a facet by its name: site, type, lang or status. WB_E_INVALID names the text. */
int wb_answer_facet(struct wb_slice name, unsigned *facets_inout);
const char *wb_answer_facet_name(enum wb_facet facet);

/* Reads a sort key, which may be a column of this generation. WB_E_INVALID names the text. */
int wb_answer_sort(struct wb_searcher *searcher, struct wb_slice text, struct wb_ask_sort *sort_out);

/* rank, url, title, score, snippet, time, lang; with fold also folded, with explain also parts. */
void wb_answer_hit(struct wb_json *j, const struct wb_search_options *search, const struct wb_hit *hit, uint64_t rank);

/*
 * total, exact, ms; with fold also hits_total and hits_exact; and as far as they were asked for or there are any: cut,
 * facets, suggestion, plan.
 */
void wb_answer_results(struct wb_json *j, const struct wb_search_options *search, const struct wb_results *results,
                       double ms);

/*
 * node, dir, role, organisation, state, why, capacity, used, free, fragmentation, pages, requests. places: with dir,
 * and with why if it is down, which name directories of the machine.
 */
void wb_answer_node(struct wb_json *j, const struct wb_store_node *node, bool places);

/* ---- vaults (answer_backup.c) -------------------------------------------------------------------- */

/* A vault of the repository, as it was when somebody last shipped to it, or looked whether there is something new. */
struct wb_answer_backup {
    struct wb_vault_status status; /* its texts are the two below */
    char *url, *error;
};
struct wb_answer_backups WB_VEC_OF(struct wb_answer_backup);

/* Oldest first. None is not an error. Release them even if this fails. */
int wb_answer_backups_read(const char *dir, struct wb_answer_backups *backups_out);
void wb_answer_backups_release(struct wb_answer_backups *backups);

/* "s3" or "file". */
const char *wb_answer_backup_kind(const struct wb_answer_backup *backup);

/* Whether nothing has succeeded since the last error. */
bool wb_answer_backup_fails(const struct wb_answer_backup *backup);

/*
 * url, kind, since, safe, pages, unsafe_since, bytes_waiting, following, failing, error, error_time. places: with url
 * and error, which name directories, buckets and machines; otherwise they are null.
 */
void wb_answer_backup(struct wb_json *j, const struct wb_answer_backup *backup, bool places);

/* ---- the repository (answer_stat.c) -------------------------------------------------------------- */

/* Everything that `stat` shows. */
struct wb_answer_stat {
    struct wb_store_stat store;
    bool has_webdb, has_cycle;
    struct wb_webdb_count webdb;
    struct wb_index_info index;
    uint64_t unmerged; /* bytes of the journal */
    struct wb_cycle_status cycle;
    struct wb_modules modules;
    bool has_dispenser;
    struct wb_buf dispenser; /* its URL, which may contain a password; empty: the repository's own */
    struct wb_answer_backups backups;
};

/* Asks every part of the repository. A part that does not exist yet is not an error. Release it even if this fails. */
int wb_answer_stat_read(const char *dir, struct wb_store *store, struct wb_answer_stat *stat_out);
void wb_answer_stat_release(struct wb_answer_stat *stat);

/*
 * pages, versions, ..., objects for webdb, index and cycle, a list of backups. secrets: with the URLs of the dispenser
 * and of vaults.
 */
void wb_answer_stat(struct wb_json *j, const struct wb_answer_stat *stat, bool secrets);

/* The state and the counts of a cycle. */
void wb_answer_cycle(struct wb_json *j, const struct wb_cycle_status *status);

#endif
