/* robots_rules.h - private to crawl: the rules that concern us, in an order in which the one that decides is found quickly. */
#ifndef WB_FETCH_ROBOTS_RULES_H
#define WB_FETCH_ROBOTS_RULES_H

#include "base/buf.h"

/* No line of a robots.txt is longer; the rest of it is not read. */
#define WB_ROBOTS_LINE_MAX 16663

/* A rule as it is in the file. */
struct wb_robots_line {
    struct wb_slice text;  /* the line without comment, trimmed; at most WB_ROBOTS_LINE_MAX bytes */
    struct wb_slice value; /* a part of text, not empty */
    uint32_t number;       /* of the line, from 1 */
    bool allow;
};

struct wb_robots_rules;

int wb_robots_rules_build(const struct wb_robots_line *lines, size_t count, struct wb_robots_rules **rules_out);
void wb_robots_rules_free(struct wb_robots_rules *rules);

/* The rule that decides about a URL; false where none matches. text_out borrows from rules. */
bool wb_robots_rules_find(const struct wb_robots_rules *rules, struct wb_slice url, bool *allow_out, uint32_t *line_out, struct wb_slice *text_out);

size_t wb_robots_rules_bytes(const struct wb_robots_rules *rules);

#endif
