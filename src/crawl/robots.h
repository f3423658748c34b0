/*
 * robots.h - how a robots.txt is read (RFC 9309).
 *
 * Parsing keeps only what concerns one agent: the rules of its groups merged, or
 * of the "*" groups where none names it. The longest match in octets wins, Allow wins ties.
 */
#ifndef WB_CRAWL_ROBOTS_H
#define WB_CRAWL_ROBOTS_H

#include "base/buf.h"

#define WB_ROBOTS_BYTES_MAX (512u << 10) /* of a robots.txt; the rest is not read */

struct wb_robots;

/* The product token of a User-Agent, a part of it: up to the first '/' or blank. */
struct wb_slice wb_robots_token(struct wb_slice agent);

/* agent: a product token ("webbase"), or a whole User-Agent of which the token is taken: up to the first '/' or blank. */
int wb_robots_parse(struct wb_slice text, struct wb_slice agent, struct wb_robots **robots_out);
void wb_robots_free(struct wb_robots *robots);

struct wb_robots_verdict {
    bool allowed;
    uint32_t line;         /* of the rule that decides, from 1; 0: none does */
    struct wb_slice rule;  /* its text as written, trimmed: "Disallow: /private"; borrowed from robots */
};

/* url: absolute, or a path with its query. */
void wb_robots_check(const struct wb_robots *robots, struct wb_slice url, struct wb_robots_verdict *verdict_out);

/* Crawl-delay of our groups in ms; -1: none. */
int64_t wb_robots_delay_ms(const struct wb_robots *robots);

/* Sitemap lines, as written; false past the last. */
bool wb_robots_sitemap(const struct wb_robots *robots, size_t i, struct wb_slice *url_out);

/* Bytes of memory that it takes. */
size_t wb_robots_bytes(const struct wb_robots *robots);

#endif
