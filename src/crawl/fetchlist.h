/*
 * fetchlist.h - the part of crawl's door through which others decide what is fetched next.
 *
 * A list is a run of the dispenser: sites with the URLs that are to be asked for, in order. A site that is listed begins a visit
 * that asks for these, and for what new links lead to that webdb has never heard of; nothing else. What an earlier
 * visit left undone is given up: webdb knows of it.
 */
#ifndef WB_CRAWL_FETCHLIST_H
#define WB_CRAWL_FETCHLIST_H

#include "base/buf.h"
#include "dispenser/dispenser.h"
#include "journal/journal.h"

enum wb_listed_state {
    WB_LISTED_UNKNOWN,  /* no crawl was ever told of this site: out of scope */
    WB_LISTED_OPEN,     /* its visit is not over, or never began */
    WB_LISTED_DONE,     /* its last visit is over */
    WB_LISTED_AWAY,     /* waits or was refused: what is there cannot be verified now */
    WB_LISTED_ALIAS,    /* another name of a site that is crawled */
};

struct wb_listed_site {
    enum wb_listed_state state;
    int64_t next_ms;         /* not to be contacted before */
    size_t class_at;         /* into the list's classes; SIZE_MAX: none */
};

struct wb_fetchlist;

/* Reads what the dispenser (NULL: the repository's own) knows of all sites. seeds_file (NULL: none) is taken in first, for its classes and sites. */
int wb_fetchlist_open(const char *dir, const char *dispenser, const char *seeds_file, void (*warn)(void *context, const char *message), void *context,
                      struct wb_fetchlist **list_out);
void wb_fetchlist_close(struct wb_fetchlist *list);

const struct wb_site_class *wb_fetchlist_classes(const struct wb_fetchlist *list, size_t *count_out);
void wb_fetchlist_site(const struct wb_fetchlist *list, struct wb_slice site, struct wb_listed_site *site_out);

/* Whether a registrable domain has a site that a crawl was told of. */
bool wb_fetchlist_domain(const struct wb_fetchlist *list, struct wb_slice domain);

/* Appends a URL to the list; those of one site one after the other, the most urgent first. */
int wb_fetchlist_add(struct wb_fetchlist *list, struct wb_slice url, uint16_t depth);

/*
 * Makes it a run, in one transaction; 0 where nothing was added. Doing the same again before it was crawled changes nothing but the run's number.
 * Sites of the seeds file that no visit ever reached, and of which the list says nothing, join with the seeds of the file.
 */
int wb_fetchlist_commit(struct wb_fetchlist *list, int64_t *run_out, struct wb_dispenser_list_stat *stat_out);

/* Numbers of the journal's logs that unfinished visits still need, ascending, as an array of uint32_t. */
int wb_crawl_logs(const char *dir, const char *dispenser, struct wb_journal_needs *needs_out);

#endif
