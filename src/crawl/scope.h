/*
 * scope.h - which sites a crawl may enter: those of its seeds, those in the registrable domains of its seeds, or any.
 * The parent fills it before it forks workers; links.c asks it.
 *
 * A crawl of one class (--class) stays within that class, too: wb_scope_has() then also wants the site to be of it.
 *
 *   init -> add, limit, classed ... -> seal -> has, in_class ... -> release
 */
#ifndef WB_CRAWL_SCOPE_H
#define WB_CRAWL_SCOPE_H

#include "base/vec.h"
#include "crawl/crawl.h"

struct wb_scope_names WB_VEC_OF(char *);

struct wb_scope {
    enum wb_scope_kind kind;
    bool sealed;
    struct wb_scope_names names; /* of sites or domains; sorted once it is sealed. Empty for WB_SCOPE_ANY */
    const char *class_name;      /* NULL: sites of any class */
    struct wb_scope_names classed; /* the sites of the class; of the class "default": those of all other classes */
};

void wb_scope_init(struct wb_scope *scope, enum wb_scope_kind kind);
void wb_scope_release(struct wb_scope *scope);

/* Adds the site of a seed. */
int wb_scope_add(struct wb_scope *scope, struct wb_slice site);

/* From now on only sites of this class are inside, which is decided by wb_scope_classed(). */
void wb_scope_limit(struct wb_scope *scope, const char *class_name);

/* Tells the class of a site; empty: it has none. */
int wb_scope_classed(struct wb_scope *scope, struct wb_slice site, struct wb_slice class_name);

/* After the last wb_scope_add(), before the first wb_scope_has(). */
void wb_scope_seal(struct wb_scope *scope);
bool wb_scope_has(const struct wb_scope *scope, struct wb_slice site);

/* Whether the site is of the class that the scope is limited to, whatever else is in scope. */
bool wb_scope_in_class(const struct wb_scope *scope, struct wb_slice site);

#endif
