/*
 * index_read.c - opens a generation and answers questions about single documents.
 *
 * Opening maps files and reads little: a search must not wait for what it does not need. Each column is checked
 * as a whole when it is first asked for, the lists and graphs piece by piece when they are read, and webdb is opened
 * only for URLs.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/generation.h"
#include "index/prints.h"
#include "index/usercolumn.h"
#include "index/whereabouts.h"
#include "os/path.h"
#include "store/store.h"

#include <stdio.h>

enum { LOOKS_MAX = 16 }; /* how often we look for a generation that is not replaced while we open it */

static int open_table(const struct wb_index *index, const char *name, const char *kind, struct wb_table **table_out,
                      struct wb_cursor **cursor_out)
{
    char *path = wb_path_join(index->path, name);
    int err = path ? wb_table_open(path, kind, table_out) : WB_E_NOMEM;

    if (err == 0)
        err = wb_cursor_open(*table_out, cursor_out);
    wb_free(path);
    return err;
}

static int open_graph(const struct wb_index *index, const char *name, struct wb_graph **graph_out)
{
    struct wb_graph_stat stat;
    char *path = wb_path_join(index->path, name);
    int err = path ? wb_graph_open(path, graph_out) : WB_E_NOMEM;

    if (err == 0)
        wb_graph_stat(*graph_out, &stat);
    if (err == 0 && stat.nodes != index->docmap.urls)
        err = wb_fail(WB_E_CORRUPT, "%s has another number of URLs than its generation", path);
    wb_free(path);
    return err;
}

static int open_urls(struct wb_index *index)
{
    char *path = wb_path_join(index->path, WB_URLS_FILE);
    int err = path ? wb_urlfile_open(path, &index->urls) : WB_E_NOMEM;

    if (err == 0 && index->urls.count != index->docmap.urls)
        err = wb_fail(WB_E_CORRUPT, "%s has another number of URLs than its generation", path);
    wb_free(path);
    return err;
}

static int open_files(struct wb_index *index)
{
    const struct wb_index_info *info = &index->manifest.info;
    char *path = wb_path_join(index->path, WB_DOCMAP_FILE);
    const void *lengths = NULL;
    int err = path ? wb_docmap_open(path, &index->docmap) : WB_E_NOMEM;

    if (err == 0 && (index->docmap.pages != info->pages || index->docmap.urls != info->urls))
        err = wb_fail(WB_E_CORRUPT, "%s belongs to another generation", path);
    wb_free(path);
    if (err == 0)
        err = wb_index_fact(index, WB_FACT_LENGTH, &lengths);
    if (err == 0)
        err = wb_postings_open(index->path, lengths, (uint32_t)info->urls, &index->postings);
    if (err == 0)
        err = open_graph(index, WB_OUT_FILE, &index->out);
    if (err == 0)
        err = open_graph(index, WB_IN_FILE, &index->in);
    if (err == 0)
        err = open_table(index, WB_TITLES_FILE, WB_TITLES_KIND, &index->titles, &index->title_cursor);
    if (err == 0)
        err = open_table(index, WB_SITES_TABLE_FILE, WB_SITES_TABLE_KIND, &index->sites, &index->site_cursor);
    if (err == 0)
        err = open_table(index, WB_TYPES_FILE, WB_TYPES_KIND, &index->types, &index->type_cursor);
    if (err == 0)
        err = open_urls(index);
    return err;
}

int wb_generation_open(const char *dir, const char *root, uint32_t number, struct wb_index **index_out)
{
    struct wb_index *index = wb_alloc_zero(1, sizeof *index);
    char *manifest = NULL;
    int err = WB_E_NOMEM;

    WB_CHECK(number > 0);
    *index_out = NULL;
    if (!index)
        return WB_E_NOMEM;
    index->magic = WB_INDEX_MAGIC;
    index->lock = WB_FILE_INIT;
    pthread_mutex_init(&index->mutex, NULL);
    index->dir = wb_strdup(dir);
    index->path = wb_series_path(root, number);
    manifest = index->path ? wb_path_join(index->path, WB_GENERATION_MANIFEST) : NULL;
    if (index->dir && manifest)
        err = wb_series_share(root, number, &index->lock);
    if (err == 0)
        err = wb_generation_read(manifest, &index->manifest);
    if (err == 0 && index->manifest.info.generation != number)
        err = wb_fail(WB_E_CORRUPT, "%s belongs to another generation", manifest);
    if (err == 0)
        err = open_files(index);
    if (err == 0)
        err = wb_usercolumns_open(index);
    wb_free(manifest);
    if (err < 0)
        wb_index_close(index);
    else
        *index_out = index;
    return err;
}

/*
 * Calls use() with the active generation. If it vanishes meanwhile, there is a newer one, or it is in another
 * directory: so we look again. WB_E_NOTFOUND if there is none.
 */
typedef int (*use_generation)(void *context, const char *dir, const char *root, uint32_t number);

static int no_generation(const char *dir, const struct wb_whereabouts *where)
{
    if (!wb_whereabouts_at_home(where, where->root) && wb_path_kind(where->root) != WB_PATH_DIR)
        return wb_fail(WB_E_NOTFOUND, "%s, where the index of this repository is, is missing", where->root);
    int err = wb_store_require(dir);
    return err < 0 ? err : wb_fail(WB_E_NOTFOUND, "%s has no index yet; 'webbase index' builds one", dir);
}

static int with_newest(const char *dir, use_generation use, void *context)
{
    struct wb_whereabouts where = {.root = NULL};
    char *before = NULL;
    uint32_t number = 0, number_before = 0;
    int err = WB_E_NOTFOUND;
    bool again = true;

    for (int look = 0; look < LOOKS_MAX && again; look++) {
        err = wb_whereabouts_read(dir, &where);
        if (err == 0)
            err = wb_series_newest(where.root, &number);
        again = false;
        if (err == 0 && number == 0) {
            err = no_generation(dir, &where);
        } else if (err == 0 && before && number == number_before && strcmp(where.root, before) == 0) {
            err = wb_fail(WB_E_CORRUPT, "%s: a file of generation %u is missing", where.root, number);
        } else if (err == 0) {
            err = use(context, dir, where.root, number);
            again = err == WB_E_NOTFOUND;
        }
        wb_free(before);
        before = where.root;
        where.root = NULL;
        number_before = number;
        wb_whereabouts_release(&where);
    }
    wb_free(before);
    return err;
}

static int use_all(void *context, const char *dir, const char *root, uint32_t number)
{
    return wb_generation_open(dir, root, number, context);
}

int wb_index_open(const char *dir, struct wb_index **index_out)
{
    *index_out = NULL;
    return with_newest(dir, use_all, index_out);
}

static int use_manifest(void *context, const char *dir, const char *root, uint32_t number)
{
    struct wb_generation_manifest manifest = {.language_count = 0};
    char *path = wb_series_path(root, number), *file = path ? wb_path_join(path, WB_GENERATION_MANIFEST) : NULL;
    int err = file ? wb_generation_read(file, &manifest) : WB_E_NOMEM;

    (void)dir;
    *(struct wb_index_info *)context = manifest.info;
    wb_generation_release(&manifest);
    wb_free(file);
    wb_free(path);
    return err;
}

int wb_index_newest(const char *dir, struct wb_index_info *info_out)
{
    *info_out = (struct wb_index_info){.generation = 0};
    int err = with_newest(dir, use_manifest, info_out);
    return err == WB_E_NOTFOUND ? 0 : err;
}

void wb_index_close(struct wb_index *index)
{
    if (!index)
        return;
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    index->magic = 0;
    wb_usercolumns_close(index);
    wb_cursor_close(index->title_cursor);
    wb_cursor_close(index->site_cursor);
    wb_cursor_close(index->type_cursor);
    wb_table_close(index->titles);
    wb_table_close(index->sites);
    wb_table_close(index->types);
    wb_graph_close(index->in);
    wb_graph_close(index->out);
    wb_postings_close(index->postings);
    for (int fact = 0; fact < WB_FACTS; fact++)
        wb_column_close(&index->facts[fact]);
    wb_column_close(&index->prints);
    if (index->completions_open)
        wb_completions_close(&index->completions);
    wb_textfile_close(&index->texts);
    wb_urlfile_close(&index->urls);
    wb_docmap_close(&index->docmap);
    wb_webdb_close(index->webdb);
    wb_generation_release(&index->manifest);
    wb_buf_release(&index->text);
    wb_file_close(&index->lock);
    pthread_mutex_destroy(&index->mutex);
    wb_free(index->path);
    wb_free(index->dir);
    wb_free(index);
}

/* ---- the parts --------------------------------------------------------------------------------- */

const struct wb_index_info *wb_index_info(const struct wb_index *index)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    return &index->manifest.info;
}

struct wb_postings *wb_index_postings(struct wb_index *index)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    return index->postings;
}

const struct wb_graph *wb_index_links_out(const struct wb_index *index)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    return index->out;
}

const struct wb_graph *wb_index_links_in(const struct wb_index *index)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    return index->in;
}

uint64_t wb_index_order(const struct wb_index *index, uint32_t docid)
{
    WB_CHECK(docid < index->docmap.urls);
    return wb_docmap_number(&index->docmap, docid);
}

uint32_t wb_index_docid(const struct wb_index *index, uint64_t number)
{
    WB_CHECK(number < index->docmap.urls);
    return wb_docmap_docid(&index->docmap, number);
}

const uint8_t *wb_index_languages(const struct wb_index *index, size_t *count_out)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    *count_out = index->manifest.language_count;
    return index->manifest.languages;
}

static int open_fact(struct wb_index *index, enum wb_fact fact)
{
    const struct wb_fact_kind *kind = &wb_fact_kinds[fact];
    struct wb_column *column = &index->facts[fact];
    uint64_t count = wb_fact_is_of_pages(fact) ? index->docmap.pages : index->docmap.urls;
    char name[64];

    WB_CHECK(!index->fact_open[fact]);
    snprintf(name, sizeof name, "%s.wbc", kind->name);
    char *path = wb_path_join(index->path, name);
    int err = path ? wb_column_open(path, kind->kind, kind->bytes, column) : WB_E_NOMEM;
    if (err == 0 && column->count != count)
        err = wb_fail(WB_E_CORRUPT, "%s has %llu values instead of %llu", path, (unsigned long long)column->count,
                      (unsigned long long)count);
    if (err == 0)
        err = wb_column_check(column, 0, count);
    wb_free(path);
    index->fact_open[fact] = err == 0;
    if (err < 0)
        wb_column_close(column);
    return err;
}

int wb_index_fact(struct wb_index *index, enum wb_fact fact, const void **values_out)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC && fact < WB_FACTS);
    pthread_mutex_lock(&index->mutex);
    int err = index->fact_open[fact] ? 0 : open_fact(index, fact);
    pthread_mutex_unlock(&index->mutex);
    *values_out = err < 0 ? NULL : index->facts[fact].records;
    return err;
}

static int open_prints(struct wb_index *index)
{
    WB_CHECK(!index->prints_open);
    char *path = wb_path_join(index->path, WB_PRINTS_FILE);
    int err = path ? wb_column_open(path, WB_PRINTS_KIND, WB_PRINT_BYTES, &index->prints) : WB_E_NOMEM;

    if (err == 0)
        err = wb_column_check(&index->prints, 0, index->prints.count);
    wb_free(path);
    index->prints_open = err == 0;
    if (err < 0)
        wb_column_close(&index->prints);
    return err;
}

int wb_generation_prints(struct wb_index *index)
{
    pthread_mutex_lock(&index->mutex);
    int err = index->prints_open ? 0 : open_prints(index);
    pthread_mutex_unlock(&index->mutex);
    return err;
}

static int open_texts(struct wb_index *index)
{
    WB_CHECK(!index->texts_open);
    char *path = wb_path_join(index->path, WB_TEXTS_FILE);
    int err = path ? wb_textfile_open(path, &index->texts) : WB_E_NOMEM;

    if (err == WB_E_NOTFOUND) /* the generation is locked, so it is still there */
        err = wb_fail(WB_E_CORRUPT, "%s is missing", path);
    if (err == 0 && index->texts.pages != index->docmap.pages)
        err = wb_fail(WB_E_CORRUPT, "%s has another number of pages than its generation", path);
    wb_free(path);
    index->texts_open = err == 0;
    if (err < 0)
        wb_textfile_close(&index->texts);
    return err;
}

int wb_generation_texts(struct wb_index *index)
{
    pthread_mutex_lock(&index->mutex);
    int err = index->texts_open ? 0 : open_texts(index);
    pthread_mutex_unlock(&index->mutex);
    return err;
}

struct near_page {
    uint64_t pages;
    wb_index_each_near each;
    void *context;
};

static int each_near(void *context, uint32_t docid, unsigned distance)
{
    const struct near_page *near = context;

    if (docid >= near->pages)
        return wb_fail(WB_E_CORRUPT, "a fingerprint belongs to a page that does not exist; build the index again");
    return near->each(near->context, docid, distance);
}

int wb_index_near(struct wb_index *index, uint64_t print, unsigned bits, wb_index_each_near each, void *context)
{
    struct near_page near = {index->docmap.pages, each, context};

    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    int err = wb_generation_prints(index);
    return err < 0 ? err : wb_prints_near(index->prints.records, index->prints.count, print, bits, each_near, &near);
}

/* ---- completions ------------------------------------------------------------------------------- */

static int open_completions(struct wb_index *index)
{
    WB_CHECK(!index->completions_open);
    char *path = wb_path_join(index->path, WB_COMPLETIONS_FILE);
    int err = path ? wb_completions_open(path, &index->completions) : WB_E_NOMEM;

    wb_free(path);
    index->completions_open = err == 0;
    return err;
}

int wb_generation_completions(struct wb_index *index)
{
    pthread_mutex_lock(&index->mutex);
    int err = index->completions_open ? 0 : open_completions(index);
    pthread_mutex_unlock(&index->mutex);
    return err;
}

int wb_index_complete(struct wb_index *index, struct wb_slice folded, wb_index_each_completion each, void *context)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    int err = wb_generation_completions(index);
    return err < 0 ? err : wb_completions_find(&index->completions, folded, each, context);
}

/* ---- documents --------------------------------------------------------------------------------- */

int wb_generation_webdb(struct wb_index *index, struct wb_webdb **webdb_out)
{
    struct wb_webdb_count count;
    int err = 0;

    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    if (!index->webdb) {
        err = wb_webdb_open_edition(index->dir, index->manifest.info.edition, &index->webdb);
        if (err == 0)
            wb_webdb_count(index->webdb, &count);
        if (err == 0 && count.urls != index->docmap.urls) {
            err = wb_fail(WB_E_CORRUPT, "%s: edition %u of the web database has another number of URLs", index->path,
                          index->manifest.info.edition);
            wb_webdb_close(index->webdb);
            index->webdb = NULL;
        }
    }
    *webdb_out = index->webdb;
    return err;
}

int wb_index_print(struct wb_index *index, uint32_t docid, uint64_t *print_out)
{
    struct wb_webdb_page page;
    struct wb_webdb *webdb;
    const void *prints;

    WB_CHECK(docid < index->docmap.urls);
    *print_out = 0;
    if (docid < index->docmap.pages) {
        int err = wb_index_fact(index, WB_FACT_SIMHASH, &prints);
        *print_out = err == 0 ? ((const uint64_t *)prints)[docid] : 0;
        return err;
    }
    int err = wb_generation_webdb(index, &webdb);
    if (err == 0)
        err = wb_webdb_get_number(webdb, wb_index_order(index, docid), &page);
    *print_out = err == 0 && page.has_content ? page.simhash : 0;
    return err;
}

int wb_index_find(struct wb_index *index, struct wb_slice url, uint32_t *docid_out)
{
    struct wb_webdb *webdb;
    uint64_t number;
    int err = wb_generation_webdb(index, &webdb);

    if (err == 0)
        err = wb_webdb_number(webdb, url, &number);
    WB_CHECK(err < 0 || number < index->docmap.urls); /* the edition has as many URLs as we */
    if (err == 0)
        *docid_out = wb_docmap_docid(&index->docmap, number);
    return err;
}

int wb_index_find_id(struct wb_index *index, struct wb_pageid id, uint32_t *docid_out)
{
    struct wb_webdb *webdb;
    uint32_t number = WB_WEBDB_NO_NUMBER;
    int err = wb_generation_webdb(index, &webdb);

    if (err == 0)
        err = wb_webdb_numbers_of_ids(webdb, &id, 1, &number);
    if (err == 0 && number == WB_WEBDB_NO_NUMBER)
        return WB_E_NOTFOUND;
    if (err == 0)
        *docid_out = wb_docmap_docid(&index->docmap, number);
    return err;
}

int wb_index_url(struct wb_index *index, uint32_t docid, struct wb_slice *url_out)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC && docid < index->docmap.urls);
    int err = wb_urlfile_get(&index->urls, wb_docmap_number(&index->docmap, docid), &index->text);
    *url_out = err == 0 ? wb_buf_slice(&index->text) : WB_SLICE_EMPTY;
    return err;
}

int wb_index_title(struct wb_index *index, uint32_t docid, struct wb_slice *title_out)
{
    struct wb_table_record record;

    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    *title_out = WB_SLICE_EMPTY;
    if (docid >= index->docmap.pages)
        return 0;
    int err = wb_cursor_get_number(index->title_cursor, docid, &record);
    if (err == 0)
        *title_out = record.value;
    return err;
}

/* ---- kept texts ---------------------------------------------------------------------------------- */

enum { TEXT_READER_MAGIC = 0x57425452 }; /* "WBTR" */

struct wb_text_reader {
    uint32_t magic;
    struct wb_text_decoder decoder;
};

int wb_text_reader_new(struct wb_text_reader **reader_out)
{
    struct wb_text_reader *reader = wb_alloc_zero(1, sizeof *reader);
    int err = reader ? wb_text_decoder_init(&reader->decoder) : WB_E_NOMEM;

    if (reader)
        reader->magic = TEXT_READER_MAGIC;
    if (err < 0) {
        wb_text_reader_free(reader);
        reader = NULL;
    }
    *reader_out = reader;
    return err;
}

void wb_text_reader_free(struct wb_text_reader *reader)
{
    if (!reader)
        return;
    WB_CHECK(reader->magic == TEXT_READER_MAGIC);
    reader->magic = 0;
    wb_text_decoder_release(&reader->decoder);
    wb_free(reader);
}

/* Finds the parts of what has been decoded, which may have moved. */
static int split_text(const struct wb_text_decoder *decoder, struct wb_index_text *text_out)
{
    unsigned flags;

    *text_out = (struct wb_index_text){.lines = false};
    if (decoder->kept.len == 0)
        return 0;
    if (!wb_kept_text_split(wb_buf_slice(&decoder->kept), &flags, &text_out->title, &text_out->text))
        return wb_fail(WB_E_CORRUPT, "%s: the text of page %u makes no sense", decoder->file->blob.path,
                       decoder->docid);
    text_out->lines = flags & WB_KEPT_LINES;
    text_out->cut = flags & WB_KEPT_CUT;
    return 0;
}

int wb_index_text(struct wb_index *index, struct wb_text_reader *reader, uint32_t docid,
                  struct wb_index_text *text_out)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC && reader->magic == TEXT_READER_MAGIC);
    *text_out = (struct wb_index_text){.lines = false};
    if (docid >= index->docmap.pages)
        return 0;
    int err = wb_generation_texts(index);
    if (err == 0)
        err = wb_text_decoder_begin(&reader->decoder, &index->texts, docid);
    return err < 0 ? err : split_text(&reader->decoder, text_out);
}

int wb_index_text_more(struct wb_text_reader *reader, struct wb_index_text *text_inout)
{
    WB_CHECK(reader->magic == TEXT_READER_MAGIC);
    int more = wb_text_decoder_more(&reader->decoder);
    int err = more > 0 ? split_text(&reader->decoder, text_inout) : 0;

    return err < 0 ? err : more;
}

/* ---- names ------------------------------------------------------------------------------------- */

int wb_index_type(struct wb_index *index, uint32_t type, struct wb_slice *name_out)
{
    struct wb_table_record record;

    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    int err = wb_cursor_get_number(index->type_cursor, type, &record);
    *name_out = err == 0 ? record.key : WB_SLICE_EMPTY;
    return err;
}

int wb_index_site(struct wb_index *index, uint32_t site, struct wb_slice *name_out)
{
    struct wb_table_record record;
    struct wb_buf surt = WB_BUF_INIT;

    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    int err = wb_cursor_get_number(index->site_cursor, site, &record);
    /* "org,example)/" is the SURT of the first page of the site. */
    if (err == 0)
        err = wb_buf_append_slice(&surt, record.key);
    if (err == 0)
        err = wb_buf_append_char(&surt, '/');
    if (err == 0)
        err = wb_surt_to_key(wb_buf_slice(&surt), &index->text);
    /* What has no host is its own site. */
    if (err == WB_E_INVALID) {
        wb_buf_clear(&index->text);
        err = wb_buf_append_slice(&index->text, record.key);
    }
    while (err == 0 && index->text.len && index->text.ptr[index->text.len - 1] == '/')
        index->text.len--;
    wb_buf_release(&surt);
    *name_out = err == 0 ? wb_buf_slice(&index->text) : WB_SLICE_EMPTY;
    return err;
}

/* Whether the links of a URL count: it is a page of the snapshot, or a vertex of a graph that was loaded. */
static bool is_source(const struct wb_index *index, const uint8_t *kinds, uint64_t number)
{
    return wb_docmap_is_page(&index->docmap, number) || kinds[number] & WB_IS_LOADED;
}

int wb_index_links(struct wb_index *index, uint32_t docid, enum wb_webdb_direction direction, wb_index_each_link each,
                   void *context)
{
    struct wb_webdb_arcs_options options = {.texts = true};
    struct wb_webdb_portion portion;
    struct wb_webdb_arcs *arcs = NULL;
    struct wb_webdb *webdb;
    const uint8_t *kinds = NULL;

    WB_CHECK(index->magic == WB_INDEX_MAGIC && docid < index->docmap.urls);
    int more, err = wb_generation_webdb(index, &webdb);
    if (err == 0)
        err = wb_webdb_kinds(webdb, 0, index->docmap.urls, &kinds);
    if (err == 0 && direction == WB_ARCS_OUT && !is_source(index, kinds, wb_docmap_number(&index->docmap, docid)))
        return 0;
    if (err == 0)
        err = wb_webdb_arcs_of(webdb, wb_docmap_number(&index->docmap, docid), direction, &options, &arcs);
    while (err == 0 && (more = wb_webdb_arcs_next(arcs, &portion)) != 0) {
        err = more < 0 ? more : 0;
        for (size_t i = 0; err == 0 && i < portion.count; i++)
            if ((portion.texts[i].flags & WB_PAGELINK_FOLLOW) &&
                (direction == WB_ARCS_OUT || is_source(index, kinds, portion.ends[i])))
                err = each(context, wb_docmap_docid(&index->docmap, portion.ends[i]), portion.texts[i].anchor);
    }
    wb_webdb_arcs_close(arcs);
    return err;
}
