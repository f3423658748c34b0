/* scope.h - which sites a crawl may enter: those of its seeds, their domains, or any. */
#ifndef WB_CRAWL_SCOPE_H
#define WB_CRAWL_SCOPE_H

#include "crawl/crawl.h"

struct wb_scope {
    enum wb_scope_kind scope;
    char **names;   /* sites or domains, sorted once sealed */
    size_t count, cap;
};

void wb_scope_init(struct wb_scope *set, enum wb_scope_kind scope);

/* The site of a seed. */
int wb_scope_add(struct wb_scope *set, struct wb_slice site);

/* After the last add, before the first question. */
void wb_scope_seal(struct wb_scope *set);
bool wb_scope_has(const struct wb_scope *set, struct wb_slice site);
void wb_scope_release(struct wb_scope *set);

#endif
