/* hypertext.h - writes pages as HTML: head, navigation, main text with links, aside, footer. */
#ifndef WB_SIM_HYPERTEXT_H
#define WB_SIM_HYPERTEXT_H

#include "sim/plan.h"

/*
 * Writes the HTML of a page at a moment, in UTF-8. charset is what its meta element declares;
 * NULL omits the element. rest is what followed its address, for kinds that go on below it.
 */
void wb_hypertext_page(const struct wb_world *world, const struct wb_plan *plan, const struct wb_world_moment *now,
                    const char *charset, struct wb_slice rest, struct wb_pen *pen);

/* Writes a short page with a message. */
void wb_hypertext_message(const char *title, const char *text, struct wb_pen *pen);

#endif
