/* rulesrow.h - a robots.txt as a row of the table of rules. rulesrow.c draws the bytes. */
#ifndef WB_WEBDB_RULESROW_H
#define WB_WEBDB_RULESROW_H

#include "webdb/webdb.h"

#define WB_RULES_TEXT_MAX (1u << 20) /* more than a crawler keeps of one */

/* Whether it is worth keeping: the answer says what the rules are, and until when they hold. */
bool wb_rulesrow_fits(const struct wb_webdb_rules *rules);

/* Appends the row. The rules must be worth keeping: see wb_rulesrow_fits(). */
int wb_rulesrow_encode(const struct wb_webdb_rules *rules, struct wb_buf *row_out);

/* The text borrows from row. WB_E_CORRUPT. */
int wb_rulesrow_decode(struct wb_slice row, struct wb_webdb_rules *rules_out);

#endif
