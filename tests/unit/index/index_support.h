/*
 * index_support.h - what the tests of index share: a small random web in a repository, changes to it, builds, and the
 * bytes of a generation.
 *
 * The model knows of every URL whether it has a page, and from which seeds its body is made; so a test can compare what
 * a generation says with what it must say.
 */
#ifndef WB_TESTS_INDEX_SUPPORT_H
#define WB_TESTS_INDEX_SUPPORT_H

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
#include "base/buf.h"
#include "base/date.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "cycle/cycle.h"
#include "index/generation.h"
#include "index/whereabouts.h"
#include "os/path.h"

/* ---- the web ------------------------------------------------------------------------------------- */

enum { WEB_URLS = 160, WEB_LINKS = 12 };

struct web_url {
    char url[96];
    bool page, barred;
    uint16_t status;
    uint64_t content, anchors; /* seeds of the body */
};

struct web {
    char dir[96];
    uint64_t chance;
    int64_t now_ms;
    struct web_url urls[WEB_URLS];
    size_t pages;
    unsigned body_words; /* of a part of a page, at most */
    unsigned vocabulary;
    bool no_takedowns; /* of pages; otherwise they vanish from snapshots too */
};

static inline void web_init(struct web *web, const char *dir, uint64_t seed)
{
    static const char *const hosts[] = {"example.org", "www.example.org", "other.example.com:8080", "a.test"};

    *web = (struct web){.chance = seed, .now_ms = 1700000000000, .body_words = 60, .vocabulary = 500};
    snprintf(web->dir, sizeof web->dir, "%s", dir);
    for (size_t i = 0; i < WEB_URLS; i++)
        snprintf(web->urls[i].url, sizeof web->urls[i].url, "http://%s/%s/page%03zu%s", hosts[i % COUNT(hosts)],
                 i % 3 ? "docs" : "library/networks", i, i % 7 ? ".html" : "?id=3.11.7");
    ok(wb_store_create(dir, NULL));
}

static inline void web_word(uint64_t *chance, unsigned vocabulary, struct wb_buf *out)
{
    static const char *const special[] = {"networks",
                                          "networking",
                                          "network",
                                          "running",
                                          "C++",
                                          "std::vector",
                                          "3.11.7",
                                          "na\xc3\xafve",
                                          "AT&amp;T",
                                          "Gro\xc3\x9f",
                                          "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"};

    if (chance_one_in(chance, 6)) {
        ok(wb_buf_append_str(out, special[chance_below(chance, COUNT(special))]));
    } else {
        /* Few words are frequent, and most are rare. */
        uint64_t word = chance_below(chance, 1 + chance_below(chance, vocabulary));
        ok(wb_buf_printf(out, "word%llu", (unsigned long long)word));
    }
    ok(wb_buf_append_str(out, " "));
}

static inline void web_words(uint64_t *chance, unsigned vocabulary, size_t count, struct wb_buf *out)
{
    for (size_t i = 0; i < count; i++)
        web_word(chance, vocabulary, out);
}

/* The URLs to which the content links, each once; the same for all pages with this content. */
static inline size_t web_targets(uint64_t content, size_t targets_out[WEB_LINKS])
{
    uint64_t chance = content ^ 0x6c696e6b;
    size_t wanted = chance_below(&chance, WEB_LINKS + 1), count = 0;

    while (count < wanted) {
        size_t target = chance_below(&chance, chance_one_in(&chance, 2) ? WEB_URLS : 16), i = 0;
        while (i < count && targets_out[i] != target)
            i++;
        if (i == count)
            targets_out[count++] = target;
        else
            wanted--;
    }
    return count;
}

static inline void web_title(uint64_t content, struct wb_buf *out)
{
    uint64_t chance = content ^ 0x7469746c;

    ok(wb_buf_printf(out, "title%llu of ", (unsigned long long)(content % 1000)));
    web_words(&chance, 500, chance_below(&chance, 5), out);
    while (out->len && out->ptr[out->len - 1] == ' ')
        out->len--;
}

static inline void web_body(const struct web *web, const struct web_url *url, struct wb_buf *out)
{
    static const char *const texts[] = {
        "Das ist ein deutscher Text, und er handelt von den H\xc3\xa4usern der Stadt, die nicht sehr gro\xc3\x9f sind.",
        "Ceci est un texte qui parle des maisons de la ville, et elles ne sont pas tr\xc3\xa8s grandes pour nous.",
        "This is a text in English that speaks about the houses of the town, and they are not very large at all."};
    uint64_t chance = url->content, anchors = url->anchors;
    size_t targets[WEB_LINKS], links = web_targets(url->content, targets);

    ok(wb_buf_append_str(out, "<html><head><title>"));
    web_title(url->content, out);
    ok(wb_buf_append_str(out, "</title></head><body><nav><ul><li>home</li><li>about us</li></ul></nav>"));
    if (chance_one_in(&chance, 3))
        ok(wb_buf_printf(out, "<p>%s</p>", texts[chance_below(&chance, COUNT(texts))]));
    for (size_t part = chance_below(&chance, 4) + 1; part > 0; part--) {
        ok(wb_buf_append_str(out, "<h2>"));
        web_words(&chance, web->vocabulary, chance_below(&chance, 6), out);
        ok(wb_buf_append_str(out, "</h2><p>"));
        web_words(&chance, web->vocabulary, chance_below(&chance, web->body_words), out);
        ok(wb_buf_append_str(out, "</p>"));
    }
    for (size_t i = 0; i < links; i++) {
        ok(wb_buf_printf(out, "<p><a href=\"%s\">", web->urls[targets[i]].url));
        /* Most links to a URL have one of two texts. */
        if (chance_one_in(&anchors, 3))
            web_words(&anchors, web->vocabulary, chance_below(&anchors, 4), out);
        else
            ok(wb_buf_printf(out, "link%u to %zu", (unsigned)chance_below(&anchors, 2), targets[i]));
        ok(wb_buf_append_str(out, "</a></p>"));
    }
    ok(wb_buf_append_str(out, "</body></html>"));
}

static inline void web_put(struct web *web, struct wb_store *store, const struct web_url *url)
{
    struct wb_url parsed = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, body = WB_BUF_INIT;

    ok(wb_url_parse(wb_slice_str(url->url), NULL, &parsed));
    ok(wb_url_key(&parsed, &key));
    web_body(web, url, &body);
    struct wb_page page = {.url = wb_url_href(&parsed),
                           .key = wb_buf_slice(&key),
                           .id = wb_pageid_of_key(wb_buf_slice(&key)),
                           .head = WB_SLICE_LIT("HTTP/1.1 200 OK\r\n"),
                           .type = url->content % 9 ? WB_SLICE_LIT("text/html") : WB_SLICE_LIT("application/xhtml+xml"),
                           .charset = WB_SLICE_LIT("utf-8"),
                           .body = wb_buf_slice(&body),
                           .body_bytes = body.len,
                           .time_ms = web->now_ms += 60000,
                           .status = url->status,
                           .kind = WB_PAGE_RESPONSE};
    ok(wb_store_put(store, &page, NULL));
    wb_url_release(&parsed);
    wb_buf_release(&key);
    wb_buf_release(&body);
}

static inline struct wb_pageid web_id(const struct web_url *url, struct wb_buf *site)
{
    struct wb_url parsed = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    ok(wb_url_parse(wb_slice_str(url->url), NULL, &parsed));
    ok(wb_url_key(&parsed, &key));
    ok(wb_buf_append_slice(site, wb_key_site(wb_buf_slice(&key))));
    struct wb_pageid id = wb_pageid_of_key(wb_buf_slice(&key));
    wb_buf_release(&key);
    wb_url_release(&parsed);
    return id;
}

/* Gives a URL a page, or its page another content. */
static inline void web_write(struct web *web, struct wb_store *store, struct web_url *url)
{
    const struct web_url *other = &web->urls[chance_below(&web->chance, WEB_URLS)];

    if (url->barred)
        return;
    if (other->page && chance_one_in(&web->chance, 5)) {
        url->content = other->content;
        url->anchors = other->anchors;
    } else {
        url->content = chance_next(&web->chance);
        url->anchors = chance_next(&web->chance);
    }
    url->status = chance_one_in(&web->chance, 8) ? 404 : 200;
    url->page = true;
    web_put(web, store, url);
}

static inline void web_change(struct web *web, struct wb_store *store, struct web_url *url)
{
    struct wb_buf site = WB_BUF_INIT;

    switch (url->page ? chance_below(&web->chance, 6) : 0) {
    case 1: /* only the texts of its links */
        url->anchors = chance_next(&web->chance);
        web_put(web, store, url);
        break;
    case 2: /* seen again, with the same content */
        web_put(web, store, url);
        break;
    case 3: {
        struct wb_pageid id = web_id(url, &site);
        ok(wb_store_remove(store, id, wb_buf_slice(&site), web->now_ms += 60000, false));
        url->page = false;
        break;
    }
    default:
        web_write(web, store, url);
    }
    wb_buf_release(&site);
}

/* Changes so many URLs, and takes one down now and then. */
static inline void web_changes(struct web *web, size_t count)
{
    struct wb_store *store = NULL;
    struct wb_store_commit_counts counts = {0};

    ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
    for (size_t i = 0; i < count; i++) {
        web_change(web, store, &web->urls[chance_below(&web->chance, WEB_URLS)]);
        if (chance_one_in(&web->chance, 10))
            ok(wb_store_commit(store, &counts));
    }
    ok(wb_store_commit(store, &counts));
    wb_store_close(store);
    if (!web->no_takedowns && chance_one_in(&web->chance, 3)) {
        struct wb_update_options options = {.dir = web->dir, .memory_bytes = SMALL_MEMORY};
        struct wb_cycle_sink sink = {.progress = NULL};
        struct wb_expunge_stat stat;
        struct web_url *url = &web->urls[chance_below(&web->chance, WEB_URLS)];
        ok(wb_expunge(&options, url->url, false, &sink, NULL, NULL, &stat));
        url->page = false;
        url->barred = true;
    }
}

/* Writes about two thirds of the pages; the others are never fetched. */
static inline void web_fill(struct web *web)
{
    struct wb_store *store = NULL;
    struct wb_store_commit_counts counts = {0};

    ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
    for (size_t i = 0; i < WEB_URLS; i++)
        if (!chance_one_in(&web->chance, 3))
            web_write(web, store, &web->urls[i]);
    ok(wb_store_commit(store, &counts));
    wb_store_close(store);
}

/* ---- building ------------------------------------------------------------------------------------ */

/* Merges what is unmerged. Returns the edition. */
static inline uint32_t web_update(const struct web *web)
{
    struct wb_update_options options = {.dir = web->dir, .memory_bytes = SMALL_MEMORY, .threads = 1};
    struct wb_cycle_sink sink = {.progress = NULL};
    struct wb_webdb_merge merge;

    ok(wb_update(&options, &sink, &merge, NULL));
    return merge.edition;
}

struct warnings {
    unsigned count;
    char last[1024];
};

static inline void note_warning(void *context, const char *message)
{
    struct warnings *warnings = context;

    warnings->count++;
    snprintf(warnings->last, sizeof warnings->last, "%s", message);
}

static inline struct wb_index_options build_options(const struct web *web, uint32_t edition, struct warnings *warnings)
{
    *warnings = (struct warnings){.count = 0};
    return (struct wb_index_options){.dir = web->dir,
                                     .edition = edition,
                                     .threads = 2,
                                     .memory_bytes = SMALL_MEMORY,
                                     .warn = note_warning,
                                     .context = warnings};
}

/* Updates and builds, which must work without a warning. */
static inline struct wb_index_result web_build(const struct web *web)
{
    struct warnings warnings;
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    struct wb_index_result result;

    ok(wb_index_build(&options, &result));
    if (warnings.count)
        fail_msg("a build warns: %s", warnings.last);
    return result;
}

/* ---- the bytes of a generation --------------------------------------------------------------------- */

enum { FILES_MAX = 64 };

struct genfile {
    char name[96];
    uint64_t bytes, hash;
};

struct genfiles {
    char path[256];
    struct genfile files[FILES_MAX];
    size_t count;
};

/* What is kept of the pages of a file, as one hash: the bytes depend on its dictionary too. */
static inline void hash_texts(const char *path, struct genfile *file)
{
    struct wb_textfile texts;
    struct wb_text_decoder decoder;

    ok(wb_textfile_open(path, &texts));
    ok(wb_text_decoder_init(&decoder));
    file->bytes = file->hash = 0;
    for (uint32_t page = 0; page < texts.pages; page++) {
        int more = 1;
        ok(wb_text_decoder_begin(&decoder, &texts, page));
        while (more > 0)
            more = wb_text_decoder_more(&decoder);
        ok(more);
        file->bytes += decoder.kept.len;
        file->hash = wb_hash64_seeded(decoder.kept.ptr, decoder.kept.len, file->hash);
    }
    wb_text_decoder_release(&decoder);
    wb_textfile_close(&texts);
}

static inline int note_genfile(void *context, const struct wb_path_entry *entry)
{
    struct genfiles *all = context;
    struct wb_buf bytes = WB_BUF_INIT;
    char *path = wb_path_join(all->path, entry->name);

    assert_true(all->count < FILES_MAX);
    ok(wb_path_read(path, SIZE_MAX / 2, &bytes));
    struct genfile *file = &all->files[all->count++];
    snprintf(file->name, sizeof file->name, "%s", entry->name);
    file->bytes = bytes.len;
    file->hash = wb_hash64(bytes.ptr, bytes.len);
    if (strcmp(entry->name, WB_TEXTS_FILE) == 0)
        hash_texts(path, file);
    wb_buf_release(&bytes);
    wb_free(path);
    return 0;
}

/* The files of the active generation, in the order of their names. */
static inline void read_genfiles(const char *dir, struct genfiles *all)
{
    struct wb_whereabouts where;
    uint32_t number;

    ok(wb_whereabouts_read(dir, &where));
    ok(wb_series_newest(where.root, &number));
    assert_true(number > 0);
    char *path = wb_series_path(where.root, number);
    *all = (struct genfiles){.count = 0};
    snprintf(all->path, sizeof all->path, "%s", path);
    ok(wb_path_each(path, note_genfile, all));
    wb_free(path);
    wb_whereabouts_release(&where);
}

/* All files but the manifest, which has numbers and the time. Of the kept texts, what they are. */
static inline void same_genfiles(const struct genfiles *a, const struct genfiles *b, const char *what)
{
    assert_int_equal(a->count, b->count);
    assert_true(a->count > WB_FACTS + 6);
    for (size_t i = 0; i < a->count; i++) {
        assert_string_equal(a->files[i].name, b->files[i].name);
        if (strcmp(a->files[i].name, WB_GENERATION_MANIFEST) == 0)
            continue;
        if (a->files[i].hash != b->files[i].hash || a->files[i].bytes != b->files[i].bytes)
            fail_msg("%s: %s differs: %llu bytes in %s, %llu in %s", what, a->files[i].name,
                     (unsigned long long)a->files[i].bytes, a->path, (unsigned long long)b->files[i].bytes, b->path);
    }
}

/* ---- problems ------------------------------------------------------------------------------------ */

struct problems {
    unsigned count;
    char file[512], message[1024]; /* of the first one */
};

static inline void note_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    struct problems *problems = context;

    (void)offset;
    if (problems->count++ == 0) {
        snprintf(problems->file, sizeof problems->file, "%s", file);
        snprintf(problems->message, sizeof problems->message, "%s", message);
    }
}

static inline void verify_sound(const char *dir)
{
    struct problems problems = {.count = 0};

    ok(wb_index_verify(dir, note_problem, &problems));
    if (problems.count)
        fail_msg("verify finds %s: %s", problems.file, problems.message);
}

#endif
