/* page_charts.h - private to serve: the charts of the dashboard, as pictures and as tables. */
#ifndef WB_SERVE_PAGE_CHARTS_H
#define WB_SERVE_PAGE_CHARTS_H

#include "serve/dash_past.h"
#include "serve/htmlpen.h"

/*
 * All charts of a stretch of the past, with the choice of ranges above them. dash.js takes the pictures' places with
 * charts that move, of the same lines; the tables stay.
 */
void wb_page_charts(struct wb_htmlpen *h, const struct wb_dash_past *past, const struct wb_dash_past_choice *choice);

/* A number of a unit (dash.h) as short text; a dash if it is NaN. Returns text_out. */
enum { WB_PAGE_NUMBER_MAX = 32 };
const char *wb_page_number(double value, const char *unit, char text_out[WB_PAGE_NUMBER_MAX]);

#endif
