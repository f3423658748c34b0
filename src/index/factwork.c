/* factwork.c - columns and titles: from the roster, from contents, from links, and from the last generation. */
#include "index/factwork.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "index/docwords.h"
#include "index/rankwork.h"

#include <stdio.h>

/* ---- carrying ---------------------------------------------------------------------------------- */

/* The facts of contents in the last generation. */
struct old_facts {
    const int64_t *published, *modified;
    const uint32_t *words;
    const uint8_t *lang, *length;
};

static int get_old(struct wb_index *old, struct old_facts *facts_out)
{
    const void *published = NULL, *modified = NULL, *words = NULL, *lang = NULL, *length = NULL;
    int err = wb_index_fact(old, WB_FACT_PUBLISHED, &published);

    if (err == 0)
        err = wb_index_fact(old, WB_FACT_MODIFIED, &modified);
    if (err == 0)
        err = wb_index_fact(old, WB_FACT_WORDS, &words);
    if (err == 0)
        err = wb_index_fact(old, WB_FACT_LANG, &lang);
    if (err == 0)
        err = wb_index_fact(old, WB_FACT_LENGTH, &length);
    *facts_out = (struct old_facts){published, modified, words, lang, length};
    return err;
}

int wb_factwork_carry(struct wb_build *build)
{
    const struct wb_carry *carry = &build->carry;
    struct old_facts old = {.lang = NULL};
    int err = carry->old ? get_old(carry->old, &old) : 0;

    for (uint64_t docid = build->roster.known; docid < build->roster.url_count; docid++)
        build->lengths[docid] = wb_length_byte(wb_docwords_length(0, 0));
    if (err < 0 || !carry->old)
        return err;
    for (uint32_t docid = 0; docid < build->roster.known; docid++) {
        uint32_t from = carry->from[docid];
        if (wb_carry_is_fresh(carry, docid))
            continue;
        WB_CHECK(from < carry->old->docmap.pages); /* a page that is not fresh was a page */
        build->contents[docid] =
            (struct wb_content_fact){old.published[from], old.modified[from], old.words[from], old.lang[from]};
        build->lengths[docid] = old.length[from];
    }
    return 0;
}

/* ---- columns ----------------------------------------------------------------------------------- */

/* A fact of any URL, as its column has it. */
static void put_url_value(const struct wb_build *build, enum wb_fact fact, uint32_t docid,
                          const struct wb_roster_url *url, char *p)
{
    WB_CHECK(docid < build->roster.url_count && url->site < build->roster.site_count);
    switch ((int)fact) {
    case WB_FACT_ID:
        wb_pageid_put(url->id, p);
        break;
    case WB_FACT_LENGTH:
        *p = (char)build->lengths[docid];
        break;
    case WB_FACT_SITE:
        wb_put32(p, url->site);
        break;
    case WB_FACT_DEPTH:
        wb_put16(p, url->depth);
        break;
    case WB_FACT_INLINKS:
        wb_put32(p, build->inlinks[docid]);
        break;
    case WB_FACT_RANK:
        memcpy(p, &build->ranks[docid], sizeof(double));
        break;
    case WB_FACT_HOSTRANK:
        memcpy(p, &build->site_ranks[url->site], sizeof(double));
        break;
    case WB_FACT_STATIC:
        wb_put32(p, wb_static_score(build->ranks[docid], build->roster.url_count));
        break;
    case WB_FACT_ANCHORS:
        wb_put64(p, build->anchors[docid]);
        break;
    default:
        WB_CHECK(false);
    }
}

/* A fact of a page. */
static void put_page_value(const struct wb_build *build, enum wb_fact fact, uint32_t docid,
                           const struct wb_roster_url *url, char *p)
{
    WB_CHECK(url->page < build->roster.page_count);
    const struct wb_roster_page *page = &build->roster.pages[url->page];
    const struct wb_content_fact *content = &build->contents[docid];

    WB_CHECK(page->docid == docid);
    switch ((int)fact) {
    case WB_FACT_OUTLINKS:
        wb_put32(p, build->outlinks[docid]);
        break;
    case WB_FACT_TIME:
        wb_put64(p, (uint64_t)page->time_ms);
        break;
    case WB_FACT_CHANGED:
        wb_put64(p, (uint64_t)url->changed_ms);
        break;
    case WB_FACT_PUBLISHED:
        wb_put64(p, (uint64_t)content->published_ms);
        break;
    case WB_FACT_MODIFIED:
        wb_put64(p, (uint64_t)content->modified_ms);
        break;
    case WB_FACT_SIZE:
        wb_put64(p, page->bytes);
        break;
    case WB_FACT_WORDS:
        wb_put32(p, content->words);
        break;
    case WB_FACT_STATUS:
        wb_put16(p, page->status);
        break;
    case WB_FACT_TYPE:
        wb_put32(p, page->type);
        break;
    case WB_FACT_LANG:
        *p = (char)content->lang;
        break;
    case WB_FACT_SIMHASH:
        wb_put64(p, url->simhash);
        break;
    case WB_FACT_NEAR:
        wb_put32(p, wb_docmap_docid(&build->roster.docmap, url->near));
        break;
    case WB_FACT_VERSIONS:
        wb_put32(p, page->versions);
        break;
    case WB_FACT_ALTERNATE:
        wb_put32(p, build->alternates[docid]);
        break;
    default:
        WB_CHECK(false);
    }
}

static int add_values(const struct wb_build *build, enum wb_fact fact, bool pages, struct wb_column_writer *writer)
{
    const struct wb_roster *roster = &build->roster;
    uint32_t docid = pages ? 0 : (uint32_t)roster->known;
    char value[16];
    int err = 0;

    for (uint64_t number = 0; err == 0 && number < roster->url_count; number++) {
        const struct wb_roster_url *url = &roster->urls[number];
        if ((url->page != WB_DOCID_NONE) != pages)
            continue;
        if (wb_fact_is_of_pages(fact))
            put_page_value(build, fact, docid++, url, value);
        else
            put_url_value(build, fact, docid++, url, value);
        err = wb_column_add(writer, value);
    }
    WB_CHECK(err < 0 || docid == (pages ? roster->known : roster->url_count));
    return err;
}

/* The docids in the order of URL keys, which the roster has collected. */
static int add_keyorder(struct wb_build *build, struct wb_column_writer *writer)
{
    struct wb_table_record record;
    uint64_t count = 0;
    char value[4];
    int err = wb_sorter_sort(build->urlkeys), more = 0;

    while (err == 0 && (more = wb_sorter_next(build->urlkeys, &record)) > 0) {
        WB_CHECK(record.key.len > 4);
        uint32_t number = wb_get32_be(record.key.ptr + record.key.len - 4);
        WB_CHECK(count < build->roster.url_count);
        wb_put32(value, wb_docmap_docid(&build->roster.docmap, number));
        err = wb_column_add(writer, value);
        count++;
    }
    WB_CHECK(err < 0 || more < 0 || count == build->roster.url_count);
    return err < 0 ? err : more;
}

static int create_column(struct wb_build *build, enum wb_fact fact, struct wb_column_writer **writer_out)
{
    const struct wb_fact_kind *kind = &wb_fact_kinds[fact];
    char name[64];

    snprintf(name, sizeof name, "%s.wbc", kind->name);
    char *path = wb_build_path(build, name);
    int err = path ? wb_column_create(path, kind->kind, kind->bytes, writer_out) : WB_E_NOMEM;
    wb_free(path);
    return err;
}

static int write_column(struct wb_build *build, enum wb_fact fact)
{
    struct wb_column_writer *writer = NULL;
    int err = create_column(build, fact, &writer);
    bool order = fact == WB_FACT_KEYORDER;
    if (err == 0)
        err = order ? add_keyorder(build, writer) : add_values(build, fact, true, writer);
    if (err == 0 && !order && !wb_fact_is_of_pages(fact))
        err = add_values(build, fact, false, writer);
    if (err < 0) {
        wb_column_abandon(writer);
        return err;
    }
    return wb_column_finish(writer, NULL);
}

int wb_factwork_columns(struct wb_build *build)
{
    int err = 0;

    for (int fact = 0; err == 0 && fact < WB_FACTS; fact++) {
        err = fact == WB_FACT_TITLE ? 0 : write_column(build, (enum wb_fact)fact); /* written with the titles */
        if (err == 0)
            err = wb_build_progress(build, "writing columns", (uint64_t)fact, WB_FACTS);
    }
    return err;
}

/* ---- titles ------------------------------------------------------------------------------------ */

/* The title of a page that was read comes out of the sorter, in the order of docids; others from the last generation.
 */
static int add_titles(struct wb_build *build, struct wb_table_writer *table, struct wb_column_writer *hashes)
{
    struct wb_table_record fresh = {.key = {NULL, 0}};
    int err = wb_sorter_sort(build->titles), more = err < 0 ? err : wb_sorter_next(build->titles, &fresh);

    for (uint32_t docid = 0; more >= 0 && err == 0 && docid < build->roster.known; docid++) {
        struct wb_slice title = WB_SLICE_EMPTY;
        char key[4], hash[4];
        WB_CHECK(more == 0 || fresh.key.len == sizeof key);
        bool is_fresh = more > 0 && wb_get32_be(fresh.key.ptr) == docid;
        wb_put32_be(key, docid);
        if (is_fresh)
            title = fresh.value;
        else if (!wb_carry_is_fresh(&build->carry, docid))
            err = wb_index_title(build->carry.old, build->carry.from[docid], &title);
        if (err == 0)
            err = wb_table_add(table, wb_slice(key, sizeof key), title);
        wb_put32(hash, title.len ? (uint32_t)wb_hash64(title.ptr, title.len) : 0);
        if (err == 0)
            err = wb_column_add(hashes, hash);
        if (is_fresh && err == 0)
            more = wb_sorter_next(build->titles, &fresh);
    }
    return err < 0 ? err : more < 0 ? more : 0;
}

int wb_factwork_titles(struct wb_build *build)
{
    struct wb_table_options options = {.kind = WB_TITLES_KIND};
    struct wb_table_writer *table = NULL;
    struct wb_column_writer *hashes = NULL;
    char *path = wb_build_path(build, WB_TITLES_FILE);
    int err = path ? wb_table_create(path, &options, &table) : WB_E_NOMEM;

    if (err == 0)
        err = create_column(build, WB_FACT_TITLE, &hashes);
    if (err == 0)
        err = add_titles(build, table, hashes);
    wb_free(path);
    if (err < 0) {
        wb_table_abandon(table);
        wb_column_abandon(hashes);
        return err;
    }
    err = wb_table_finish(table, NULL);
    if (err < 0) {
        wb_column_abandon(hashes);
        return err;
    }
    return wb_column_finish(hashes, NULL);
}
