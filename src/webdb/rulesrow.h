/* rulesrow.h - private to webdb: a robots.txt as a row of the table of rules. rulesrow.c has the bytes. */
#ifndef WB_WEBDB_RULESROW_H
#define WB_WEBDB_RULESROW_H

#include "webdb/webdb.h"

#define WB_RULES_TEXT_MAX (1u << 20) /* more than any crawler keeps of one */

/* Whether it is worth remembering: an answer that says what the rules are, for a time. */
bool wb_rulesrow_fits(const struct wb_webdb_rules *rules);

/* Appends. It must fit. */
int wb_rulesrow_encode(const struct wb_webdb_rules *rules, struct wb_buf *row_out);

/* text borrows from row. WB_E_CORRUPT. */
int wb_rulesrow_decode(struct wb_slice row, struct wb_webdb_rules *rules_out);

#endif
