/* columnfile.c - reads the files of users, line by line; every line is checked. */
#include "index/columnfile.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/path.h"
#include "table/table.h"
#include "url/url.h"

enum {
    READ_BYTES = 1 << 20,
    LINE_MAX_BYTES = 256 << 10,
    WORD_MAX_BYTES = 1024,
    SORT_BYTES = 64 << 20,
};

struct importing {
    const char *file, *column;
    bool seeds; /* a file of seeds; otherwise of values */
    struct wb_sorter *sorter;
    uint64_t line;
    bool started, words;
    struct wb_url url;
    struct wb_buf key, seed;
};

static int bad_line(const struct importing *in, const char *what)
{
    return wb_fail(WB_E_INVALID, "%s %s: %s, line %llu: %s", in->seeds ? "rank" : "column", in->column, in->file,
                   (unsigned long long)in->line, what);
}

static int add_value(struct importing *in, struct wb_slice value)
{
    char id[WB_PAGEID_BYTES], number_bytes[8];
    double number = 0;

    WB_CHECK(!in->seeds);
    bool is_number = wb_slice_to_double(value, &number);
    if (!in->started)
        in->words = !is_number;
    in->started = true;
    if (!in->words && !is_number)
        return bad_line(in, "the value is not a number, but the first one is");
    if (value.len > WORD_MAX_BYTES)
        return bad_line(in, "the value is too long");
    memcpy(number_bytes, &number, sizeof number);
    wb_pageid_put(wb_pageid_of_key(wb_buf_slice(&in->key)), id);
    return wb_sorter_add(in->sorter, wb_slice(id, sizeof id), in->words ? value : wb_slice(number_bytes, 8));
}

/* Parses a URL and makes its key. */
static int read_url(struct importing *in, struct wb_slice url)
{
    int err = wb_url_parse(url, NULL, &in->url);

    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        return bad_line(in, in->seeds ? "this is neither a URL nor a host" : "this is not a URL");
    return wb_url_key(&in->url, &in->key);
}

static int read_value(struct importing *in, struct wb_slice line)
{
    const char *tab = memchr(line.ptr, '\t', line.len);
    if (!tab)
        return bad_line(in, "there is no tab between URL and value");
    struct wb_slice url = wb_slice_trim(wb_slice(line.ptr, (size_t)(tab - line.ptr)));
    struct wb_slice value = wb_slice_trim(wb_slice(tab + 1, line.len - (size_t)(tab - line.ptr) - 1));
    if (value.len == 0)
        return bad_line(in, "there is no value");
    int err = read_url(in, url);
    return err < 0 ? err : add_value(in, value);
}

static bool has_scheme(struct wb_slice text)
{
    for (size_t i = 0; i + 3 <= text.len; i++)
        if (memcmp(text.ptr + i, "://", 3) == 0)
            return true;
    return false;
}

/* Whether a line without a scheme can only be a host: "example.org:8080". */
static bool is_host(struct wb_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("/?#@\\", text.ptr[i])) /* also a zero byte */
            return false;
    return true;
}

/* Parses what a line names, with http:// before it unless it has a scheme. A host becomes the URL of its first page. */
static int read_place(struct importing *in, struct wb_slice text, bool host)
{
    bool scheme = has_scheme(text);

    wb_buf_clear(&in->seed);
    int err = scheme ? 0 : wb_buf_append_str(&in->seed, "http://");
    if (err == 0)
        err = wb_buf_append_slice(&in->seed, text);
    if (err == 0 && host)
        err = wb_buf_append_char(&in->seed, '/');
    if (err == 0)
        err = read_url(in, wb_buf_slice(&in->seed));
    /* "mailto:someone@example.org" would name a user of a host. */
    if (err == 0 && (!wb_url_is_http(&in->url) || (!scheme && in->url.username_at < in->url.username_end)))
        err = bad_line(in, "this is not an http or https URL");
    return err;
}

static int read_seed(struct importing *in, struct wb_slice line)
{
    struct wb_slice text = wb_slice_trim(line);

    WB_CHECK(in->seeds);
    bool host = !has_scheme(text) && is_host(text);
    if (text.len == 0 || text.ptr[0] == '#')
        return 0;
    int err = read_place(in, text, host);
    if (err < 0)
        return err;
    struct wb_slice key = host ? wb_key_site(wb_buf_slice(&in->key)) : wb_buf_slice(&in->key);
    wb_buf_clear(&in->seed);
    err = wb_buf_append_char(&in->seed, host ? WB_COLUMNFILE_SEED_HOST : WB_COLUMNFILE_SEED_URL);
    if (err == 0)
        err = wb_buf_append_slice(&in->seed, key);
    in->started = true;
    return err < 0 ? err
                   : wb_sorter_add(in->sorter, wb_buf_slice(&in->seed), host ? WB_SLICE_EMPTY : wb_url_href(&in->url));
}

static int read_line(struct importing *in, struct wb_slice line)
{
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    in->line++;
    if (line.len == 0)
        return 0;
    return in->seeds ? read_seed(in, line) : read_value(in, line);
}

/* Reads all lines of the open file. */
static int read_lines(struct importing *in, const struct wb_file *file)
{
    struct wb_buf bytes = WB_BUF_INIT;
    uint64_t offset = 0;
    size_t got = 1;
    int err = wb_buf_reserve(&bytes, READ_BYTES + LINE_MAX_BYTES);

    while (err == 0 && got) {
        WB_CHECK(bytes.len <= LINE_MAX_BYTES); /* the rest of the buffer is for what is read */
        err = wb_file_read_at(file, offset, bytes.ptr + bytes.len, READ_BYTES, &got);
        if (err < 0)
            break;
        offset += got;
        bytes.len += got;
        WB_CHECK(bytes.len <= bytes.cap);
        struct wb_slice rest = wb_buf_slice(&bytes);
        const char *end;
        while (err == 0 && (end = memchr(rest.ptr, '\n', rest.len))) {
            err = read_line(in, wb_slice(rest.ptr, (size_t)(end - rest.ptr)));
            rest = wb_slice(end + 1, rest.len - (size_t)(end + 1 - rest.ptr));
        }
        if (err == 0 && rest.len > LINE_MAX_BYTES)
            err = bad_line(in, "the line after this one is too long");
        memmove(bytes.ptr, rest.ptr, rest.len);
        bytes.len = rest.len;
    }
    if (err == 0 && bytes.len)
        err = read_line(in, wb_buf_slice(&bytes));
    wb_buf_release(&bytes);
    return err;
}

/* Writes the table. Records with the same key come in the order of their lines. */
static int write_table(struct importing *in, const struct wb_table_options *options, const char *path)
{
    struct wb_table_writer *table = NULL;
    struct wb_table_record record;
    struct wb_buf key = WB_BUF_INIT, value = WB_BUF_INIT;
    int more = 0, err = wb_table_create(path, options, &table);

    if (err == 0)
        err = wb_sorter_sort(in->sorter);
    while (err == 0 && (more = wb_sorter_next(in->sorter, &record)) > 0) {
        if (key.len && !wb_slice_equal(record.key, wb_buf_slice(&key)))
            err = wb_table_add(table, wb_buf_slice(&key), wb_buf_slice(&value));
        wb_buf_clear(&key);
        wb_buf_clear(&value);
        if (err == 0)
            err = wb_buf_append_slice(&key, record.key);
        if (err == 0)
            err = wb_buf_append_slice(&value, record.value);
    }
    if (err == 0 && more == 0 && key.len)
        err = wb_table_add(table, wb_buf_slice(&key), wb_buf_slice(&value));
    wb_buf_release(&key);
    wb_buf_release(&value);
    err = err < 0 ? err : more < 0 ? more : 0;
    if (err < 0) {
        wb_table_abandon(table);
        return err;
    }
    return wb_table_finish(table, NULL);
}

static int import_file(struct importing *in, const char *temp_dir, const struct wb_table_options *options,
                       const char *path)
{
    struct wb_sorter_options sort = {.dir = temp_dir, .memory_bytes = SORT_BYTES};
    struct wb_file open = WB_FILE_INIT;

    WB_CHECK(!in->sorter && !in->started);
    int err = wb_file_open(in->file, WB_FILE_READ, &open);
    if (err == 0)
        err = wb_sorter_open(&sort, &in->sorter);
    if (err == 0)
        err = read_lines(in, &open);
    if (err == 0)
        err = write_table(in, options, path);
    wb_sorter_close(in->sorter);
    wb_url_release(&in->url);
    wb_buf_release(&in->key);
    wb_buf_release(&in->seed);
    wb_file_close(&open);
    return err;
}

int wb_columnfile_import(const char *file, const char *column, const char *temp_dir, const char *path, bool *words_out)
{
    struct wb_table_options options = {.kind = WB_COLUMNFILE_KIND};
    struct importing in = {.file = file, .column = column};
    int err = import_file(&in, temp_dir, &options, path);

    *words_out = in.words;
    return err;
}

int wb_columnfile_import_seeds(const char *file, const char *column, const char *temp_dir, const char *path)
{
    struct wb_table_options options = {.kind = WB_COLUMNFILE_SEEDS_KIND};
    struct importing in = {.file = file, .column = column, .seeds = true};
    int err = import_file(&in, temp_dir, &options, path);

    return err == 0 && !in.started ? wb_fail(WB_E_INVALID, "rank %s: %s has no seed", column, file) : err;
}
