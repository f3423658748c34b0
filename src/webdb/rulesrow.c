/*
 * rulesrow.c - a robots.txt as a row of the table of rules.
 *
 *   0 when it was read, ms (8)   8 until when it holds, ms (8)   16 status (2)   18 its text, to the end
 *
 * Numbers are little-endian. A row is valid if and only if the first time is positive and before the second, the status
 * is 200 to 499 but not 429, the text is at most a MiB, and it is empty unless the status is 2xx.
 */
#include "webdb/rulesrow.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"

enum { HEAD_BYTES = 18 };
_Static_assert(HEAD_BYTES == 8 + 8 + 2, "the head as drawn above");
_Static_assert(WB_RULES_TEXT_MAX == 1 << 20, "a text is at most a MiB, as said above");

bool wb_rulesrow_fits(const struct wb_webdb_rules *rules)
{
    bool answered = rules->status >= 200 && rules->status <= 499 && rules->status != 429;
    bool holds = rules->time_ms > 0 && rules->expires_ms > rules->time_ms;

    return answered && holds && rules->text.len <= WB_RULES_TEXT_MAX &&
           (rules->text.len == 0 || rules->status <= 299);
}

int wb_rulesrow_encode(const struct wb_webdb_rules *rules, struct wb_buf *row_out)
{
    char head[HEAD_BYTES];

    WB_CHECK(rules->text.len == 0 || rules->text.ptr != NULL);
    WB_CHECK(wb_rulesrow_fits(rules));
    wb_put64(head, (uint64_t)rules->time_ms);
    wb_put64(head + 8, (uint64_t)rules->expires_ms);
    wb_put16(head + 16, rules->status);
    int err = wb_buf_append(row_out, head, sizeof head);
    WB_CHECK(row_out->len >= HEAD_BYTES || err < 0);
    return err < 0 ? err : wb_buf_append_slice(row_out, rules->text);
}

int wb_rulesrow_decode(struct wb_slice row, struct wb_webdb_rules *rules_out)
{
    WB_CHECK(row.ptr != NULL);
    *rules_out = (struct wb_webdb_rules){0};
    if (row.len >= HEAD_BYTES) {
        *rules_out = (struct wb_webdb_rules){.time_ms = (int64_t)wb_get64(row.ptr),
                                             .expires_ms = (int64_t)wb_get64(row.ptr + 8),
                                             .status = wb_get16(row.ptr + 16),
                                             .text = wb_slice(row.ptr + HEAD_BYTES, row.len - HEAD_BYTES)};
        if (wb_rulesrow_fits(rules_out))
            return 0;
    }
    *rules_out = (struct wb_webdb_rules){0};
    return wb_fail(WB_E_CORRUPT, "the row of a robots.txt is damaged");
}
