/* markup.h - pages as HTML: head, navigation, main text with links, what is at the side, footer. */
#ifndef WB_SIM_MARKUP_H
#define WB_SIM_MARKUP_H

#include "sim/plan.h"

/*
 * The HTML of a page at a moment, UTF-8. charset: what its meta element says, NULL:
 * none; rest: what followed its address, for kinds that go on below it.
 */
void wb_markup_page(const struct wb_world *world, const struct wb_plan *plan, const struct wb_moment *now, const char *charset,
                    struct wb_slice rest, struct wb_pen *pen);

/* A short page that says what is the matter. */
void wb_markup_message(const char *title, const char *text, struct wb_pen *pen);

#endif
