/*
 * seeds.h - the seed list: URLs from the command line and from a file.
 *
 *   # a comment
 *   class small delay=20 priority=-10 budget=1000
 *   class news fetches=500 delay=2 min=10m max=1d
 *   https://example.org/
 *   https://tiny.example/  class=small
 *   https://other.example/  delay=2.5 budget=500 priority=5
 *
 * What a line says of a URL holds for its whole site. The class `small` is known without being
 * told: 20 seconds, after the others (WebBase Components, sections 2.1.1.1 and 2.1.2). What only a class
 * can have: fetches of a cycle for all its sites together, and the least and most time between two visits to a page.
 */
#ifndef WB_CRAWL_SEEDS_H
#define WB_CRAWL_SEEDS_H

#include "crawl/dispenser.h"

struct wb_seed_list {
    struct wb_site_plan *plans; /* one a URL; their text is in mem */
    struct wb_seed *seeds;
    size_t count, cap;
    char **mem;
    size_t mem_count, mem_cap;
    struct wb_seed_class *classes;      /* what they mean for the plan of a site */
    struct wb_site_class *site_classes; /* the same ones, for refreshing */
    size_t class_count;
};

typedef void (*wb_seeds_warn)(void *context, const char *message);

/* A URL of the command line; without a scheme https is meant. WB_E_INVALID naming it. */
int wb_seeds_add(struct wb_seed_list *list, struct wb_slice url);

/* A file ("-": standard input). Lines that make no sense are warned of and left out; WB_E_IO, WB_E_NOTFOUND. */
int wb_seeds_read(struct wb_seed_list *list, const char *path, wb_seeds_warn warn, void *context);

/* One line of such a file. */
int wb_seeds_line(struct wb_seed_list *list, struct wb_slice line);
void wb_seeds_release(struct wb_seed_list *list);

#endif
