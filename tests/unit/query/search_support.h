/*
 * search_support.h - a small web whose every word and link is known, in a repository that was imported and indexed as
 * any other; and a plain evaluation of queries over it, to compare with.
 */
#ifndef WB_TESTS_SEARCH_SUPPORT_H
#define WB_TESTS_SEARCH_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "../removetree.h"
#include "../seeded.h"
#include "../smallmemory.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/cycle.h"
#include "ingest/ingest.h"
#include "os/path.h"
#include "query/query.h"

enum { DOCS = 6000, FAR = 40, HOSTS = 12, VOCABULARY = 300, FIELD_WORDS = 80, DOC_LINKS = 5 };

/* A text: numbers of words; a word that no query has is SEPARATOR. */
enum { SEPARATOR = 0xffff };
struct text {
    uint16_t words[FIELD_WORDS];
    size_t count;
};

struct doc {
    char url[64];
    uint16_t host;
    bool missing; /* its status is 404 */
    bool far;     /* never fetched */
    struct text title, heading, body;
    struct text anchors[DOCS < 64 ? DOCS : 64]; /* of links to it; only pages with few in-links are linked to */
    size_t anchor_count;
    uint32_t links[DOC_LINKS]; /* numbers of documents */
    size_t link_count;
    uint32_t inlinks;
    uint32_t copy_of; /* the page that it is an exact copy of; its own number if of no page */
    double quality;   /* of a column; below 0: none */
    uint32_t docid;
};

struct web {
    char dir[96], root[MEMORY_DIR_MAX], column[96];
    char vocabulary[VOCABULARY][12];
    struct doc *docs; /* DOCS pages and FAR others */
    struct wb_searcher *searcher;
    uint64_t chance;
};

static inline const char *host_name(uint16_t host)
{
    static const char *const names[HOSTS] = {"n0.alder.edu",   "n1.alder.edu",   "alder.edu",     "n3.birch.edu",
                                             "n4.birch.org",   "birch.org",      "n6.cedar.org",  "n7.cedar.net",
                                             "n8.dogwood.net", "n9.dogwood.edu", "n10.alder.net", "far.example"};

    return names[host];
}

/* Frequent words are much more frequent than rare ones. */
static inline uint16_t pick_word(struct web *web)
{
    double u = chance_unit(&web->chance);

    return (uint16_t)(u * u * u * VOCABULARY);
}

static inline void pick_text(struct web *web, struct text *text, size_t low, size_t high)
{
    size_t count = low + chance_below(&web->chance, high - low + 1);

    for (size_t i = 0; i < count; i++)
        text->words[text->count++] = pick_word(web);
}

static inline void add_words(struct wb_buf *out, const struct web *web, const struct text *text)
{
    for (size_t i = 0; i < text->count; i++)
        ok(wb_buf_printf(out, "%s%s", i ? " " : "",
                         text->words[i] == SEPARATOR ? "zzgap00" : web->vocabulary[text->words[i]]));
}

static inline void make_links(struct web *web, struct doc *doc, uint32_t number, struct wb_buf *html)
{
    size_t count = doc->missing || doc->copy_of != number ? 0 : chance_below(&web->chance, DOC_LINKS);

    for (size_t i = 0; i < count; i++) {
        uint32_t to = (uint32_t)(chance_one_in(&web->chance, 4) ? DOCS + chance_below(&web->chance, FAR)
                                                                : chance_below(&web->chance, DOCS));
        bool again = to == number || web->docs[to].anchor_count == 64 || doc->body.count + 4 > FIELD_WORDS;
        for (size_t k = 0; k < doc->link_count; k++)
            again |= doc->links[k] == to;
        if (again)
            continue;
        struct text *anchor = &web->docs[to].anchors[web->docs[to].anchor_count++];
        pick_text(web, anchor, 1, 2);
        doc->links[doc->link_count++] = to;
        web->docs[to].inlinks++;
        ok(wb_buf_printf(html, "<a href=\"http://%s\">", web->docs[to].url));
        add_words(html, web, anchor);
        ok(wb_buf_append_str(html, "</a> zzgap00 "));
        for (size_t k = 0; k < anchor->count; k++)
            doc->body.words[doc->body.count++] = anchor->words[k];
        doc->body.words[doc->body.count++] = SEPARATOR;
    }
}

/* Some pages are copies of the one before. */
static inline void pick_words(struct web *web, uint32_t number)
{
    struct doc *doc = &web->docs[number], *before = number ? doc - 1 : doc;

    doc->copy_of = number;
    if (number % 16 == 5 && before->link_count == 0 && !before->missing) {
        doc->title = before->title;
        doc->heading = before->heading;
        doc->body = before->body;
        doc->copy_of = number - 1;
        return;
    }
    pick_text(web, &doc->title, 1, 4);
    pick_text(web, &doc->heading, 1, 3);
    pick_text(web, &doc->body, 8, 50);
    doc->body.words[doc->body.count++] = SEPARATOR;
    doc->missing = chance_one_in(&web->chance, 20);
}

static inline void make_page(struct web *web, uint32_t number, FILE *warc)
{
    struct doc *doc = &web->docs[number];
    struct wb_buf html = WB_BUF_INIT, http = WB_BUF_INIT;

    pick_words(web, number);
    ok(wb_buf_append_str(&html, "<!DOCTYPE html><html><head><title>"));
    add_words(&html, web, &doc->title);
    ok(wb_buf_append_str(&html, "</title></head><body><h1>"));
    add_words(&html, web, &doc->heading);
    ok(wb_buf_append_str(&html, "</h1><p>"));
    add_words(&html, web, &doc->body);
    ok(wb_buf_append_str(&html, "</p><p>"));
    make_links(web, doc, number, &html);
    ok(wb_buf_append_str(&html, "</p></body></html>"));
    ok(wb_buf_printf(&http, "HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\n\r\n",
                     doc->missing ? "404 Not Found" : "200 OK", html.len));
    ok(wb_buf_append_slice(&http, wb_buf_slice(&html)));
    fprintf(
        warc,
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://%s\r\nWARC-Date: 2026-01-%02uT%02u:%02u:%02uZ\r\n"
        "WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-%012u>\r\n"
        "Content-Type: application/http; msgtype=response\r\nContent-Length: %zu\r\n\r\n",
        doc->url, 1 + number / 3600 % 28, number / 3600 % 24, number / 60 % 60, number % 60, number, http.len);
    fwrite(http.ptr, 1, http.len, warc);
    fputs("\r\n\r\n", warc);
    wb_buf_release(&html);
    wb_buf_release(&http);
}

static inline void make_words(struct web *web)
{
    static const char consonants[] = "bdfgklmnprtvz", vowels[] = "aeiou";

    for (size_t i = 0; i < VOCABULARY; i++)
        snprintf(web->vocabulary[i], sizeof web->vocabulary[i], "%c%c%c%c%03zu",
                 consonants[chance_below(&web->chance, 13)], vowels[chance_below(&web->chance, 5)],
                 consonants[chance_below(&web->chance, 13)], vowels[chance_below(&web->chance, 5)], i);
}

static inline void import_web(struct web *web, const char *path)
{
    const char *files[] = {path};
    struct wb_import_options import = {.dir = web->dir, .files = files, .file_count = 1, .body_max = WB_PAGE_MAX_BYTES};
    struct wb_ingest_sink sink = {.context = NULL};
    struct wb_cycle_sink cycle = {.context = NULL};
    struct wb_import result;
    struct wb_update_options update = {.dir = web->dir, .memory_bytes = SMALL_MEMORY};
    struct wb_index_column_source column = {WB_SLICE_LIT("quality"), web->column, false};
    struct wb_index_options index = {.memory_bytes = SMALL_MEMORY, .columns = &column, .column_count = 1};
    struct wb_index_result built;

    ok(wb_import(&import, &sink, &result));
    assert_int_equal(result.errors, 0);
    assert_int_equal(result.pages, DOCS);
    ok(wb_cycle_index(&update, &index, &cycle, &built));
    assert_int_equal(built.info.pages, DOCS);
}

/* Values for two thirds of all URLs, with many equal ones. */
static inline void make_column(struct web *web)
{
    snprintf(web->column, sizeof web->column, "%s/quality.tsv", web->root);
    FILE *file = fopen(web->column, "wb");
    assert_non_null(file);
    for (uint32_t i = 0; i < DOCS + FAR; i++) {
        web->docs[i].quality = i % 3 ? (double)chance_below(&web->chance, 40) / 8 : -1;
        if (web->docs[i].quality >= 0)
            fprintf(file, "http://%s\t%g\n", web->docs[i].url, web->docs[i].quality);
    }
    fclose(file);
}

static inline int set_up_web(void **state)
{
    struct web *web = wb_alloc_zero(1, sizeof *web);
    char warc[96];

    web->chance = test_seed();
    web->docs = wb_alloc_zero(DOCS + FAR, sizeof *web->docs);
    if (make_memory_dir("search", web->root) < 0)
        return -1;
    snprintf(web->dir, sizeof web->dir, "%s/r", web->root);
    snprintf(warc, sizeof warc, "%s/pages.warc", web->root);
    make_words(web);
    for (uint32_t i = 0; i < DOCS + FAR; i++) {
        struct doc *doc = &web->docs[i];
        doc->far = i >= DOCS;
        doc->host = doc->far ? HOSTS - 1 : (uint16_t)chance_below(&web->chance, HOSTS - 1);
        snprintf(doc->url, sizeof doc->url, "%s/p/x%05u", host_name(doc->host), i);
    }
    FILE *file = fopen(warc, "wb");
    if (!file)
        return -1;
    for (uint32_t i = 0; i < DOCS; i++)
        make_page(web, i, file);
    fclose(file);
    make_column(web);
    ok(wb_store_create(web->dir, NULL));
    import_web(web, warc);
    ok(wb_searcher_open(web->dir, &web->searcher));
    for (uint32_t i = 0; i < DOCS + FAR; i++) {
        char url[80];
        snprintf(url, sizeof url, "http://%s", web->docs[i].url);
        int err = wb_index_find(wb_searcher_index(web->searcher), wb_slice_str(url), &web->docs[i].docid);
        if (err == WB_E_NOTFOUND && web->docs[i].inlinks == 0 && web->docs[i].far)
            web->docs[i].docid = WB_DOCID_NONE;
        else
            ok(err);
    }
    *state = web;
    return 0;
}

static inline int tear_down_web(void **state)
{
    struct web *web = *state;

    wb_searcher_close(web->searcher);
    remove_tree(web->root);
    wb_free(web->docs);
    wb_free(web);
    return 0;
}

#endif
