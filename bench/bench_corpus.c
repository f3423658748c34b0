/*
 * bench_corpus.c - reads the pages that bench/corpus has made, on which the benchmarks run.
 *
 * The archive is mapped and touched once, so that measurements neither read it from the
 * disk nor count it as memory of the store that is measured. It never writes.
 */
#include "bench.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/path.h"

#include <stdio.h>
#include <sys/mman.h>

static int map_archive(const char *dir, struct corpus *c)
{
    char *path = wb_path_join(dir, "pages.warc");
    struct wb_file file = WB_FILE_INIT;
    uint64_t size = 0;
    void *map = MAP_FAILED;
    int err = path ? wb_file_open(path, WB_FILE_READ, &file) : WB_E_NOMEM;

    if (err < 0)
        goto done;
    err = wb_file_size(&file, &size);
    if (err < 0)
        goto done;
    map = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, file.fd, 0);
    if (map == MAP_FAILED) {
        err = wb_fail_errno("%s: cannot be mapped", path);
        goto done;
    }
    c->map = map;
    c->map_bytes = size;
done:
    wb_file_close(&file);
    wb_free(path);
    return err;
}

/* Returns the next field of a line, up to a tab or line end, and moves *at past it. */
static struct wb_slice next_field(struct wb_slice text, size_t *at)
{
    size_t from = *at, to = from;

    while (to < text.len && text.ptr[to] != '\t' && text.ptr[to] != '\n')
        to++;
    *at = to < text.len ? to + 1 : to;
    return wb_slice(text.ptr + from, to - from);
}

static int read_line(struct corpus *c, struct wb_slice text, size_t *at, struct wb_url *url, struct wb_buf *key,
                     struct wb_page *page_out)
{
    struct wb_slice fields[5];
    uint64_t numbers[4];
    int err;

    for (int i = 0; i < 5; i++)
        fields[i] = next_field(text, at);
    for (int i = 0; i < 4; i++)
        if (!wb_slice_to_u64(fields[i + 1], &numbers[i]))
            return wb_fail(WB_E_CORRUPT, "pages.tsv: no number in the line of %.*s", WB_SLICE_ARG(fields[0]));
    if (numbers[1] < 2 || numbers[0] + numbers[1] + numbers[2] > c->map_bytes)
        return wb_fail(WB_E_CORRUPT, "pages.tsv: %.*s lies outside of pages.warc", WB_SLICE_ARG(fields[0]));
    err = wb_url_parse(fields[0], NULL, url);
    if (err == 0)
        err = wb_url_key(url, key);
    if (err < 0)
        return err;
    *page_out = (struct wb_page){
        .id = wb_pageid_of_key(wb_buf_slice(key)),
        .url = fields[0],
        .key = wb_slice(NULL, key->len),
        .head = wb_slice(c->map + numbers[0], numbers[1] - 2),
        .type = WB_SLICE_LIT("text/html"),
        .charset = WB_SLICE_LIT("utf-8"),
        .body = wb_slice(c->map + numbers[0] + numbers[1], numbers[2]),
        .body_bytes = numbers[2],
        .time_ms = (int64_t)numbers[3],
        .status = 200,
        .kind = WB_PAGE_RESPONSE,
    };
    c->bytes += page_out->head.len + page_out->body.len;
    return wb_buf_append(&c->keys, key->ptr, key->len);
}

static int read_list(const char *dir, struct corpus *c)
{
    char *path = wb_path_join(dir, "pages.tsv");
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;
    size_t at = 0, lines = 0;
    int err = path ? wb_path_read(path, (size_t)1 << 30, &c->text) : WB_E_NOMEM;

    if (err < 0)
        goto done;
    for (size_t i = 0; i < c->text.len; i++)
        lines += c->text.ptr[i] == '\n';
    c->pages = wb_alloc_zero(lines + 1, sizeof(*c->pages));
    if (!c->pages) {
        err = WB_E_NOMEM;
        goto done;
    }
    while (err == 0 && c->count < lines)
        err = read_line(c, wb_buf_slice(&c->text), &at, &url, &key, &c->pages[c->count++]);
    /* The keys moved while their buffer grew. It is complete now, so pages can point into it. */
    for (size_t i = 0, from = 0; i < c->count; from += c->pages[i++].key.len)
        c->pages[i].key.ptr = c->keys.ptr + from;
done:
    wb_buf_release(&key);
    wb_url_release(&url);
    wb_free(path);
    return err;
}

int corpus_load(const char *dir, struct corpus *corpus_out)
{
    int err;

    *corpus_out = CORPUS_INIT;
    err = map_archive(dir, corpus_out);
    if (err == 0)
        err = read_list(dir, corpus_out);
    if (err < 0)
        corpus_release(corpus_out);
    return err;
}

void corpus_release(struct corpus *corpus)
{
    if (corpus->map)
        munmap((void *)(uintptr_t)corpus->map, corpus->map_bytes);
    wb_buf_release(&corpus->text);
    wb_buf_release(&corpus->keys);
    wb_free(corpus->pages);
    *corpus = CORPUS_INIT;
}

void corpus_shuffle(struct corpus *corpus, uint64_t seed)
{
    for (size_t i = corpus->count; i > 1; i--) {
        size_t j = bench_random(&seed) % i;
        struct wb_page page = corpus->pages[j];

        corpus->pages[j] = corpus->pages[i - 1];
        corpus->pages[i - 1] = page;
    }
}

int corpus_variant(const struct wb_page *page, uint32_t version, bool new_url, struct wb_buf *mem,
                   struct wb_page *page_out)
{
    char mark[64], query[32];
    int mark_len = snprintf(mark, sizeof(mark), "<!-- version %u -->\n", version);
    int query_len = new_url ? snprintf(query, sizeof(query), "?v=%u", version) : 0;
    size_t extra = (size_t)query_len, body_at, url_at;
    int err = 0;

    *page_out = *page;
    wb_buf_clear(mem);
    err = wb_buf_reserve(mem, page->key.len + page->url.len + 2 * extra + (size_t)mark_len + page->body.len);
    if (err < 0)
        return err;
    wb_buf_append_slice(mem, page->key);
    wb_buf_append(mem, query, extra);
    url_at = mem->len;
    wb_buf_append_slice(mem, page->url);
    wb_buf_append(mem, query, extra);
    body_at = mem->len;
    /* Change the middle, so that neither the start nor the end of the page shows that it is a copy. */
    wb_buf_append(mem, page->body.ptr, page->body.len / 2);
    wb_buf_append(mem, mark, (size_t)mark_len);
    wb_buf_append(mem, page->body.ptr + page->body.len / 2, page->body.len - page->body.len / 2);
    page_out->key = wb_slice(mem->ptr, url_at);
    page_out->url = wb_slice(mem->ptr + url_at, body_at - url_at);
    page_out->body = wb_slice(mem->ptr + body_at, mem->len - body_at);
    page_out->body_bytes = page_out->body.len;
    page_out->id = wb_pageid_of_key(page_out->key);
    page_out->time_ms = page->time_ms + (int64_t)version * 3600000;
    return 0;
}

uint64_t page_mix(struct wb_slice key, struct wb_slice head, struct wb_slice body)
{
    return wb_hash64(key.ptr, key.len) ^ wb_hash64(head.ptr, head.len) * 3 ^ wb_hash64(body.ptr, body.len) * 7;
}
