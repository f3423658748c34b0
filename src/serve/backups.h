/* backups.h - private to serve: what is shown of the repository's vaults, wherever something of them is shown. */
#ifndef WB_SERVE_BACKUPS_H
#define WB_SERVE_BACKUPS_H

#include "answer/answer.h"
#include "serve/htmlpen.h"

/* Gauges for GET /metrics. now_ms: to which ages are counted. */
int wb_backups_metrics(const struct wb_answer_backups *backups, int64_t now_ms, struct wb_buf *out);

/* A section of the dashboard. dash.js decides again whether it is shown, and keeps its rows current. */
void wb_backups_section(struct wb_htmlpen *h, const struct wb_answer_backups *backups);

/* Appends a sentence if a backup fails; it does not name places, which strangers are not told. */
int wb_backups_problem(const struct wb_answer_backups *backups, struct wb_buf *out);

#endif
