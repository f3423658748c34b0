/*
 * orders.c - the operators' log: lines with checksums, appended under a lock.
 *
 *   0123456789abcdef {"time":"2026-01-02T03:04:05.678Z","what":"stop","subject":"example.org","ok":true,"said":"..."}
 *
 * A line is valid if and only if it begins with the XXH3 (64 bits, hexadecimal, lower case) of what follows the blank,
 * and that is an object with these members. A process that is killed while it appends leaves a line without its end;
 * the next one begins with a line end of its own, so that only the torn line is lost.
 */
#include "serve/orders.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/file.h"
#include "os/path.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#define ORDERS_FILE "control/orders"
#define ORDERS_OLD "control/orders.old"

enum {
    FILE_MAX = 1 << 20,
    CHECK_CHARS = 16,
    WHAT_MAX = 32,
    SUBJECT_MAX = 2048,
    SAID_MAX = 1024,
};

static struct wb_slice cut(struct wb_slice text, size_t max)
{
    return wb_slice(text.ptr, text.len < max ? text.len : max);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static int encode(const struct wb_order *order, struct wb_buf *line)
{
    struct wb_buf object = WB_BUF_INIT;
    struct wb_json j;

    wb_json_init(&j, &object);
    wb_json_object(&j);
    wb_json_field_time(&j, "time", order->time_ms);
    wb_json_field_slice(&j, "what", cut(order->what, WHAT_MAX));
    wb_json_field_slice(&j, "subject", cut(order->subject, SUBJECT_MAX));
    wb_json_field_bool(&j, "ok", order->ok);
    wb_json_field_slice(&j, "said", cut(order->said, SAID_MAX));
    wb_json_object_end(&j);
    int err = wb_json_line(&j); /* with its line end */
    if (err == 0)
        err = wb_buf_printf(line, "%016" PRIx64 " ", wb_hash64(object.ptr, object.len - 1));
    if (err == 0)
        err = wb_buf_append_slice(line, wb_buf_slice(&object));
    wb_buf_release(&object);
    return err;
}

/* Moves a text of the object to mem. */
static bool take_text(const json_t *object, const char *name, struct wb_buf *mem, size_t *at, size_t *len)
{
    const json_t *value = json_object_get(object, name);

    *at = mem->len;
    *len = json_string_length(value);
    return json_is_string(value) && wb_buf_append(mem, json_string_value(value), *len) == 0;
}

bool wb_orders_decode(struct wb_slice line, struct wb_buf *mem, struct wb_order *order_out)
{
    char check[CHECK_CHARS + 1];
    size_t at[4], len[4];

    *order_out = (struct wb_order){.ok = false};
    wb_buf_clear(mem);
    if (line.len <= CHECK_CHARS + 1 || line.ptr[CHECK_CHARS] != ' ')
        return false;
    struct wb_slice object = wb_slice(line.ptr + CHECK_CHARS + 1, line.len - CHECK_CHARS - 1);
    snprintf(check, sizeof check, "%016" PRIx64, wb_hash64(object.ptr, object.len));
    json_t *json = memcmp(line.ptr, check, CHECK_CHARS) == 0 ? json_loadb(object.ptr, object.len, 0, NULL) : NULL;
    bool whole = json && take_text(json, "time", mem, &at[0], &len[0]) &&
                 take_text(json, "what", mem, &at[1], &len[1]) && take_text(json, "subject", mem, &at[2], &len[2]) &&
                 take_text(json, "said", mem, &at[3], &len[3]) && json_is_boolean(json_object_get(json, "ok"));
    order_out->ok = json_is_true(json_object_get(json, "ok"));
    json_decref(json);
    if (!whole || !wb_date_parse(wb_slice(mem->ptr + at[0], len[0]), &order_out->time_ms))
        return false;
    order_out->what = wb_slice(mem->ptr + at[1], len[1]);
    order_out->subject = wb_slice(mem->ptr + at[2], len[2]);
    order_out->said = wb_slice(mem->ptr + at[3], len[3]);
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Whether the file ends in the middle of a line. */
static bool is_torn(const struct wb_file *file, uint64_t size)
{
    char last;
    size_t got;

    return size > 0 && wb_file_read_at(file, size - 1, &last, 1, &got) == 0 && got == 1 && last != '\n';
}

static int append(const struct wb_file *file, struct wb_slice line)
{
    struct wb_buf text = WB_BUF_INIT;
    uint64_t size;
    int err = wb_file_size(file, &size);

    if (err == 0 && is_torn(file, size))
        err = wb_buf_append_char(&text, '\n');
    if (err == 0)
        err = wb_buf_append_slice(&text, line);
    if (err == 0)
        err = wb_file_write_at(file, size, text.ptr, text.len);
    if (err == 0)
        err = wb_file_sync(file);
    wb_buf_release(&text);
    return err;
}

/* Opens the file and takes its lock. A full one is put aside first; then another one must be made: returns 1. */
static int open_locked(const char *path, const char *old, struct wb_file *file_out)
{
    uint64_t size;
    int err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_PRIVATE, file_out);

    if (err == 0)
        err = wb_file_lock(file_out, true);
    if (err == 0 && wb_file_unlinked(file_out))
        err = 1;
    if (err == 0)
        err = wb_file_size(file_out, &size);
    if (err == 0 && size >= FILE_MAX)
        err = (err = wb_path_rename(path, old)) < 0 ? err : 1;
    if (err != 0)
        wb_file_close(file_out);
    return err;
}

int wb_orders_note(const char *dir, const struct wb_order *order)
{
    WB_CHECK(order->what.len > 0);
    struct wb_file file = WB_FILE_INIT;
    struct wb_buf line = WB_BUF_INIT;
    char *folder = wb_path_join(dir, "control"), *path = wb_path_join(dir, ORDERS_FILE);
    char *old = wb_path_join(dir, ORDERS_OLD);
    int err = folder && path && old ? encode(order, &line) : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(folder) == WB_PATH_NONE)
        err = wb_path_mkdirs(folder);
    if (err == 0)
        while ((err = open_locked(path, old, &file)) > 0)
            ;
    if (err == 0)
        err = append(&file, wb_buf_slice(&line));
    wb_file_close(&file);
    wb_buf_release(&line);
    wb_free(folder);
    wb_free(path);
    wb_free(old);
    return err;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int read_file(const char *dir, const char *name, struct wb_buf *text)
{
    char *path = wb_path_join(dir, name);
    int err = path ? wb_path_read(path, FILE_MAX + (64 << 10), text) : WB_E_NOMEM;

    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* The last line of *text, which is taken off. */
static bool take_last(struct wb_slice *text, struct wb_slice *line_out)
{
    while (text->len && text->ptr[text->len - 1] == '\n')
        text->len--;
    if (!text->len)
        return false;
    const char *before = memrchr(text->ptr, '\n', text->len);
    size_t start = before ? (size_t)(before + 1 - text->ptr) : 0;
    *line_out = wb_slice(text->ptr + start, text->len - start);
    text->len = start;
    return true;
}

int wb_orders_read(const char *dir, size_t max, int (*each)(void *context, const struct wb_order *order), void *context)
{
    static const char *const files[] = {ORDERS_FILE, ORDERS_OLD};
    struct wb_buf text = WB_BUF_INIT, mem = WB_BUF_INIT;
    int err = 0;

    for (size_t f = 0; f < sizeof files / sizeof *files && err == 0 && max; f++) {
        struct wb_slice rest, line;
        struct wb_order order;
        err = read_file(dir, files[f], &text);
        rest = wb_buf_slice(&text);
        while (err == 0 && max && take_last(&rest, &line))
            if (wb_orders_decode(line, &mem, &order)) {
                err = each(context, &order);
                max--;
            }
        wb_buf_release(&text);
    }
    wb_buf_release(&mem);
    return err;
}

int wb_orders_verify(const char *dir,
                     void (*found)(void *context, bool problem, const char *file, uint64_t offset, const char *message),
                     void *context)
{
    static const char *const files[] = {ORDERS_OLD, ORDERS_FILE};
    struct wb_buf text = WB_BUF_INIT, mem = WB_BUF_INIT;
    int err = 0;

    for (size_t f = 0; f < sizeof files / sizeof *files && err == 0; f++) {
        struct wb_slice rest, line;
        struct wb_order order;
        err = read_file(dir, files[f], &text);
        rest = wb_buf_slice(&text);
        while (err == 0 && wb_slice_next_line(&rest, &line)) {
            uint64_t at = (uint64_t)(line.ptr - text.ptr);
            bool torn = line.len && line.ptr[line.len - 1] != '}';
            if (line.len && !wb_orders_decode(line, &mem, &order))
                found(context, !torn, files[f], at,
                      torn ? "a line is not whole: its server was killed meanwhile"
                           : "a line is damaged, and is left out");
        }
        wb_buf_release(&text);
    }
    wb_buf_release(&mem);
    return err;
}
