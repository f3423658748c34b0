/*
 * bench_webdb.h - a database of pages and links, ours or another, as bench_webdb measures it.
 *
 * All of them keep the paper's four tables (pages by URL, pages by MD5, links by MD5, links by URL) and get the same
 * edits in the same order: a page, then its links. A page that exists is replaced. If no page has its old content any
 * more, the links of that content are removed. When finish has returned, the edits are durable and can be read at full
 * speed.
 */
#ifndef WB_BENCH_BENCH_WEBDB_H
#define WB_BENCH_BENCH_WEBDB_H

#include "bench.h"
#include "bench_graph.h"

struct webdb_sum {
    bool check;             /* whether to compute mix, which costs time */
    uint64_t rows, mix;     /* mix: the sum of link_mix() over all links, which does not depend on their order */
};

/* Returns a hash of what must come back for a link. */
uint64_t link_mix(const struct wb_webdb_link *link);

/* Appends the facts of a page as the other databases keep them: the same facts as our rows have, in as few bytes. */
int pack_page(const struct wb_webdb_page *page, struct wb_buf *row_out);

struct webdb_setting {
    const char *dir;
    size_t memory_bytes;
    unsigned threads;
    bool build; /* this is the initial database, whose building is not measured: any way will do */
};

struct webdb_peer {
    const char *name, *settings;
    bool from_journal; /* finish reads the edits from the journal; add_page and add_link are not called */
    bool by_md5; /* it is built with the pages in order of MD5, which is much faster */
    int (*open)(const struct webdb_setting *setting, void **state_out); /* for writing */
    int (*add_page)(void *state, const struct wb_webdb_page *page);
    int (*add_link)(void *state, const struct wb_webdb_link *link);
    int (*finish)(void *state);
    void (*close)(void *state);

    int (*open_read)(const struct webdb_setting *setting, void **state_out);
    int (*get_page)(void *state, struct wb_slice url); /* WB_E_NOTFOUND if there is none */
    int (*links_to)(void *state, struct wb_slice url, uint64_t limit, struct webdb_sum *sum);
    int (*links_from)(void *state, const uint8_t md5[WB_MD5_BYTES], struct webdb_sum *sum);
    int (*links)(void *state, struct webdb_sum *sum); /* all links */
    int (*sizes)(void *state, uint64_t *pages_out, uint64_t *link_bytes_out); /* 0 if unknown */
    void (*close_read)(void *state);
};

extern const struct webdb_peer webdb_ours, webdb_journal, webdb_none;
extern const struct webdb_peer webdb_rocksdb, webdb_rocksdb_bulk, webdb_sqlite;

/* Reads the newest edition by number, as an index does, and prints one line per measurement: bench_numbers.c. */
int run_numbers(const struct webdb_setting *setting);

/* Writes the edits into the journal of a repository, as crawls do. */
int webdb_write_journal(const char *dir, const struct graph *graph, uint32_t edits);

#endif
