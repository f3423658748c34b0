/*
 * scope.h - which sites a crawl may enter: those of its seeds, those in the registrable domains of its seeds, or any.
 * The parent fills it before it forks workers; links.c asks it.
 *
 *   init -> add ... add -> seal -> has ... has -> release
 */
#ifndef WB_CRAWL_SCOPE_H
#define WB_CRAWL_SCOPE_H

#include "base/vec.h"
#include "crawl/crawl.h"

struct wb_scope {
    enum wb_scope_kind kind;
    bool sealed;
    WB_VEC(char *) names; /* of sites or domains; sorted once it is sealed. Empty for WB_SCOPE_ANY */
};

void wb_scope_init(struct wb_scope *scope, enum wb_scope_kind kind);
void wb_scope_release(struct wb_scope *scope);

/* Adds the site of a seed. */
int wb_scope_add(struct wb_scope *scope, struct wb_slice site);

/* After the last wb_scope_add(), before the first wb_scope_has(). */
void wb_scope_seal(struct wb_scope *scope);
bool wb_scope_has(const struct wb_scope *scope, struct wb_slice site);

#endif
