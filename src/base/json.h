/*
 * json.h - writes JSON into a buffer, one value after another. For everything that the program prints or logs as JSON.
 *
 *   struct wb_json j;
 *   wb_json_init(&j, &buf);
 *   wb_json_object(&j);
 *   wb_json_field_str(&j, "event", "fetched");
 *   wb_json_field_u64(&j, "bytes", bytes);
 *   wb_json_object_end(&j);
 *   err = wb_json_line(&j);               // {"event":"fetched","bytes":1234}
 *
 * The writer puts the commas, and replaces bytes that are not UTF-8 by U+FFFD, so that the output is always JSON. If
 * memory runs out, it writes nothing more, and wb_json_line() reports it.
 */
#ifndef WB_BASE_JSON_H
#define WB_BASE_JSON_H

#include "base/buf.h"

struct wb_json {
    struct wb_buf *buf;
    bool comma; /* a comma must precede the next value */
    int err;    /* 0, or WB_E_NOMEM */
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

/* With six significant digits. Infinity and NaN become null, because JSON does not have them. */
void wb_json_double(struct wb_json *j, double v);

/* With as many digits as it takes to read the same number again. */
void wb_json_double_exact(struct wb_json *j, double v);
void wb_json_bool(struct wb_json *j, bool v);
void wb_json_null(struct wb_json *j);

/* Key and value in one call, inside an object. */
void wb_json_field_str(struct wb_json *j, const char *key, const char *text);
void wb_json_field_slice(struct wb_json *j, const char *key, struct wb_slice s);
void wb_json_field_u64(struct wb_json *j, const char *key, uint64_t v);
void wb_json_field_i64(struct wb_json *j, const char *key, int64_t v);
void wb_json_field_double(struct wb_json *j, const char *key, double v);
void wb_json_field_bool(struct wb_json *j, const char *key, bool v);

/* A time in RFC 3339; null if time_ms is 0, which means that the time is unknown. */
void wb_json_field_time(struct wb_json *j, const char *key, int64_t time_ms);

/* A text; null if it is empty. */
void wb_json_field_text(struct wb_json *j, const char *key, struct wb_slice text);

/* Ends the line. Returns 0, or the first error since wb_json_init(). */
int wb_json_line(struct wb_json *j);

#endif
