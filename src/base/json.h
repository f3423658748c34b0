/*
 * json.h - writes JSON into a buffer, one value after another. Commas are put
 * where they belong; bytes that are not UTF-8 become U+FFFD, so what comes out
 * is always JSON. Memory that runs out is remembered and told at the end.
 */
#ifndef WB_BASE_JSON_H
#define WB_BASE_JSON_H

#include "base/buf.h"

struct wb_json {
    struct wb_buf *buf;
    bool comma; /* the next value is preceded by one */
    int err;
};

void wb_json_init(struct wb_json *j, struct wb_buf *buf);
void wb_json_object(struct wb_json *j);
void wb_json_object_end(struct wb_json *j);
void wb_json_array(struct wb_json *j);
void wb_json_array_end(struct wb_json *j);
void wb_json_key(struct wb_json *j, const char *key);
void wb_json_slice(struct wb_json *j, struct wb_slice s);
void wb_json_str(struct wb_json *j, const char *text);
void wb_json_u64(struct wb_json *j, uint64_t v);
void wb_json_i64(struct wb_json *j, int64_t v);
/* Six digits; what is no number becomes null. */
void wb_json_double(struct wb_json *j, double v);
void wb_json_bool(struct wb_json *j, bool v);
void wb_json_null(struct wb_json *j);

/* "key": value in one call, inside an object. */
void wb_json_field_str(struct wb_json *j, const char *key, const char *text);
void wb_json_field_slice(struct wb_json *j, const char *key, struct wb_slice s);
void wb_json_field_u64(struct wb_json *j, const char *key, uint64_t v);
void wb_json_field_i64(struct wb_json *j, const char *key, int64_t v);
void wb_json_field_double(struct wb_json *j, const char *key, double v);
void wb_json_field_bool(struct wb_json *j, const char *key, bool v);

/* Ends a line; returns 0 or what went wrong since init. */
int wb_json_line(struct wb_json *j);

#endif
