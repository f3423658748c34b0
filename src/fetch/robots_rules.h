/*
 * robots_rules.h - the rules that concern us, sorted so that the one that decides about a URL is found quickly. Used by
 * robots.c only.
 */
#ifndef WB_FETCH_ROBOTS_RULES_H
#define WB_FETCH_ROBOTS_RULES_H

#include "base/buf.h"

/* The rest of a longer line is ignored. */
#define WB_ROBOTS_LINE_MAX 16663

/* A rule as it is written in the file. */
struct wb_robots_line {
    struct wb_slice text;  /* the line without its comment, trimmed; at most WB_ROBOTS_LINE_MAX bytes */
    struct wb_slice value; /* a part of text, not empty */
    uint32_t number;       /* of the line, from 1 */
    bool allow;
};

struct wb_robots_rules;

int wb_robots_rules_build(const struct wb_robots_line *lines, size_t count, struct wb_robots_rules **rules_out);
void wb_robots_rules_free(struct wb_robots_rules *rules);

/* Finds the rule that decides about a URL. False if none matches. *text_out borrows from rules. */
bool wb_robots_rules_find(const struct wb_robots_rules *rules, struct wb_slice url, bool *allow_out,
                          uint32_t *line_out, struct wb_slice *text_out);

/* Bytes of memory that they take. For wb_robots_bytes() of fetch_probe.h. */
size_t wb_robots_rules_bytes(const struct wb_robots_rules *rules);

#endif
