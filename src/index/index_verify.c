/*
 * index_verify.c - checks everything in the active generation: each file by itself, and then whether they agree.
 *
 * Problems name a file by its path within the repository, or by its full path if the index is elsewhere. A file that is
 * damaged is left out when files are compared, so that one flipped byte is one problem and not twenty.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/columnfile.h"
#include "index/generation.h"
#include "index/prints.h"
#include "index/whereabouts.h"
#include "os/path.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ANY_COUNT UINT64_MAX /* of records: it is checked later */

enum {
    REPORTED_MAX = 20, /* problems per file */
    MESSAGE_BYTES = 512,
    AGAIN = 1, /* the generation was replaced while we read it */
};

#define RANK_TOLERANCE 1e-6 /* of a sum of ranks, which are rounded and whose iteration ends when little changes */

struct index_check {
    const char *dir;
    struct wb_whereabouts where;
    uint32_t number;
    char *path;
    struct wb_generation_manifest manifest;
    bool manifest_ok, lengths_ok;
    wb_webdb_found found;
    void *context;
    const char *file; /* that is being checked */
    uint64_t problems, of_file;
};

static void report_at(struct index_check *check, uint64_t offset, const char *message)
{
    char name[4096];

    WB_CHECK(check->file != NULL);
    check->problems++;
    if (check->of_file++ > REPORTED_MAX)
        return;
    if (!check->path)
        snprintf(name, sizeof name, WB_INDEX_DIR "/%s", check->file);
    else if (wb_whereabouts_at_home(&check->where, check->where.root))
        snprintf(name, sizeof name, WB_INDEX_DIR "/%08u/%s", check->number, check->file);
    else
        snprintf(name, sizeof name, "%s/%s", check->path, check->file);
    check->found(check->context, name, offset,
                 check->of_file > REPORTED_MAX ? "there are more problems, which are not listed" : message);
}

__attribute__((format(printf, 2, 3))) static void report(struct index_check *check, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    report_at(check, 0, message);
}

static void on_found(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)file;
    report_at(context, offset, message);
}

/* Postings have three files, and say which of them it is. */
static void on_postings_found(void *context, const char *file, uint64_t offset, const char *message)
{
    struct index_check *check = context;
    const char *slash = strrchr(file, '/');

    check->file = slash ? slash + 1 : file;
    report_at(check, offset, message);
}

/* Damage becomes a problem, and other errors end the check. */
static int judge_error(struct index_check *check, int err)
{
    WB_CHECK(err <= 0); /* AGAIN is for us to say */
    if (err == WB_E_NOTFOUND && wb_path_kind(check->path) != WB_PATH_DIR)
        return AGAIN;
    if (err == WB_E_NOTFOUND)
        report(check, "the file is missing");
    else if (err == WB_E_CORRUPT || err == WB_E_NEWER)
        report(check, "%s", wb_error_message());
    else
        return err;
    return 0;
}

/* Problems are those of this file from now on. */
static void turn_to(struct index_check *check, const char *name)
{
    check->file = name;
    check->of_file = 0;
}

/* The same; returns its path, from the heap. */
static char *begin_file(struct index_check *check, const char *name)
{
    WB_CHECK(check->path);
    turn_to(check, name);
    return wb_path_join(check->path, name);
}

static void expect_count(struct index_check *check, uint64_t records, uint64_t wanted)
{
    if (check->of_file == 0 && check->manifest_ok && records != wanted)
        report(check, "there are %llu records; the generation has %llu", (unsigned long long)records,
               (unsigned long long)wanted);
}

/* ---- each file by itself ----------------------------------------------------------------------- */

static int check_table(struct index_check *check, const char *name, const char *kind, uint64_t *records_out)
{
    char *path = begin_file(check, name);
    int err = path ? wb_table_verify(path, kind, on_found, check, records_out) : WB_E_NOMEM;

    wb_free(path);
    return judge_error(check, err);
}

static int check_column(struct index_check *check, const char *name, const char *kind, size_t bytes, uint64_t wanted)
{
    uint64_t records = 0;
    char *path = begin_file(check, name);
    int err = path ? wb_column_verify(path, kind, bytes, on_found, check, &records) : WB_E_NOMEM;

    wb_free(path);
    err = judge_error(check, err);
    if (err == 0 && wanted != ANY_COUNT)
        expect_count(check, records, wanted);
    return err;
}

static int check_docmap(struct index_check *check)
{
    struct wb_docmap map = {.urls = 0};
    uint64_t bytes;
    char *path = begin_file(check, WB_DOCMAP_FILE);
    int err = path ? wb_blob_verify(path, WB_DOCMAP_KIND, on_found, check, &bytes) : WB_E_NOMEM;

    if (err == 0 && check->of_file == 0)
        err = wb_docmap_open(path, &map);
    if (err == 0) {
        expect_count(check, map.urls, check->manifest.info.urls);
        expect_count(check, map.pages, check->manifest.info.pages);
    }
    wb_docmap_close(&map);
    wb_free(path);
    return judge_error(check, err);
}

static int check_graph(struct index_check *check, const char *name)
{
    struct wb_graph_stat stat;
    struct wb_graph *graph = NULL;
    char *path = begin_file(check, name);
    int err = path ? wb_graph_open(path, &graph) : WB_E_NOMEM;

    if (err == 0)
        err = wb_graph_verify(graph);
    if (err == 0) {
        wb_graph_stat(graph, &stat);
        expect_count(check, stat.nodes, check->manifest.info.urls);
        expect_count(check, stat.arcs, check->manifest.info.arcs);
    }
    wb_graph_close(graph);
    wb_free(path);
    return judge_error(check, err);
}

static int check_completions(struct index_check *check)
{
    struct wb_completions completions = {.texts = 0};
    uint64_t bytes, at = 0;
    char *path = begin_file(check, WB_COMPLETIONS_FILE);
    int err = path ? wb_blob_verify(path, WB_COMPLETIONS_KIND, on_found, check, &bytes) : WB_E_NOMEM;

    if (err == 0 && check->of_file == 0) {
        err = wb_completions_open(path, &completions);
        uint64_t pages = check->manifest_ok ? check->manifest.info.pages : UINT32_MAX;
        const char *wrong = err == 0 ? wb_completions_verify(&completions, pages, &at) : NULL;
        if (wrong)
            report_at(check, at, wrong);
        if (err == 0)
            wb_completions_close(&completions);
    }
    wb_free(path);
    return judge_error(check, err);
}

static int check_texts(struct index_check *check)
{
    struct wb_textfile texts = {.pages = 0};
    uint64_t bytes;
    char *path = begin_file(check, WB_TEXTS_FILE);
    int err = path ? wb_blob_verify(path, WB_TEXTS_KIND, on_found, check, &bytes) : WB_E_NOMEM;

    if (err == 0 && check->of_file == 0) {
        err = wb_textfile_open(path, &texts);
        if (err == 0)
            err = wb_textfile_verify(&texts);
        if (err == 0)
            expect_count(check, texts.pages, check->manifest.info.pages);
    }
    wb_textfile_close(&texts);
    wb_free(path);
    return judge_error(check, err);
}

static int check_urls(struct index_check *check)
{
    struct wb_urlfile urls = {.count = 0};
    struct wb_buf url = WB_BUF_INIT;
    uint64_t bytes;
    char *path = begin_file(check, WB_URLS_FILE);
    int err = path ? wb_blob_verify(path, WB_URLS_KIND, on_found, check, &bytes) : WB_E_NOMEM;

    if (err == 0 && check->of_file == 0) {
        err = wb_urlfile_open(path, &urls);
        for (uint64_t number = 0; err == 0 && number < urls.count; number++)
            err = wb_urlfile_get(&urls, number, &url);
        if (err == 0)
            expect_count(check, urls.count, check->manifest.info.urls);
    }
    wb_urlfile_close(&urls);
    wb_buf_release(&url);
    wb_free(path);
    return judge_error(check, err);
}

static int check_facts(struct index_check *check)
{
    const struct wb_index_info *info = &check->manifest.info;
    int err = 0;

    for (int fact = 0; err == 0 && fact < WB_FACTS; fact++) {
        const struct wb_fact_kind *kind = &wb_fact_kinds[fact];
        char name[64];
        snprintf(name, sizeof name, "%s.wbc", kind->name);
        err = check_column(check, name, kind->kind, kind->bytes,
                           wb_fact_is_of_pages((enum wb_fact)fact) ? info->pages : info->urls);
        if (fact == WB_FACT_LENGTH)
            check->lengths_ok = err == 0 && check->of_file == 0;
    }
    return err;
}

/* A missing file is a problem, and without it the others cannot be understood. */
static int find_postings(struct index_check *check, bool *all_out)
{
    static const char *const names[] = {"dictionary", "lists", "positions"};
    int err = 0;

    *all_out = true;
    for (size_t i = 0; err == 0 && i < sizeof names / sizeof *names; i++) {
        char *path = begin_file(check, names[i]);
        bool there = path && wb_path_kind(path) == WB_PATH_FILE;
        err = !path ? WB_E_NOMEM : there ? 0 : judge_error(check, WB_E_NOTFOUND);
        *all_out = *all_out && there;
        wb_free(path);
    }
    return err;
}

/* The lists are compared with the lengths of their documents, so these come first. */
static int check_postings(struct index_check *check)
{
    struct wb_column lengths = WB_COLUMN_INIT;
    uint64_t terms = 0, before = check->problems;
    bool all = false;
    int found = find_postings(check, &all);

    if (found != 0 || !all)
        return found;
    char *path = begin_file(check, "length.wbc");
    int err = path ? wb_column_open(path, wb_fact_kinds[WB_FACT_LENGTH].kind, 1, &lengths) : WB_E_NOMEM;

    wb_free(path);
    if (err == 0)
        err = wb_postings_verify(check->path, (const uint8_t *)lengths.records, (uint32_t)lengths.count,
                                 on_postings_found, check, &terms);
    wb_column_close(&lengths);
    err = judge_error(check, err);
    turn_to(check, "dictionary");
    if (err == 0 && check->problems == before)
        expect_count(check, terms, check->manifest.info.terms);
    return err;
}

static int check_usercolumn(struct index_check *check, const struct wb_manifest_column *column)
{
    char values[WB_STORE_NAME_MAX + 32], by_docid[sizeof values], words[sizeof values];
    uint64_t records;

    snprintf(values, sizeof values, "column-%s.%s", column->name, WB_COLUMNFILE_END);
    snprintf(by_docid, sizeof by_docid, "column-%s.wbc", column->name);
    snprintf(words, sizeof words, "column-%s.wbt", column->name);
    int err = check_table(check, values, column->rank ? WB_COLUMNFILE_SEEDS_KIND : WB_COLUMNFILE_KIND, &records);
    if (err == 0)
        err = check_column(check, by_docid, column->words ? WB_COLUMNFILE_CODES_KIND : WB_COLUMNFILE_NUMBERS_KIND,
                           column->words ? sizeof(uint32_t) : sizeof(double), check->manifest.info.urls);
    if (err == 0 && column->words)
        err = check_table(check, words, WB_COLUMNFILE_WORDS_KIND, &records);
    return err;
}

static int check_files(struct index_check *check)
{
    const struct wb_index_info *info = &check->manifest.info;
    uint64_t records = 0;
    int err = check_docmap(check);

    if (err == 0)
        err = check_facts(check);
    if (err == 0)
        err = check_column(check, WB_PRINTS_FILE, WB_PRINTS_KIND, WB_PRINT_BYTES, ANY_COUNT);
    if (err == 0 && check->lengths_ok)
        err = check_postings(check);
    if (err == 0)
        err = check_graph(check, WB_OUT_FILE);
    if (err == 0)
        err = check_graph(check, WB_IN_FILE);
    if (err == 0)
        err = check_table(check, WB_TITLES_FILE, WB_TITLES_KIND, &records);
    if (err == 0)
        expect_count(check, records, info->pages);
    if (err == 0)
        err = check_texts(check);
    if (err == 0)
        err = check_urls(check);
    if (err == 0)
        err = check_table(check, WB_SITES_TABLE_FILE, WB_SITES_TABLE_KIND, &records);
    if (err == 0)
        err = check_table(check, WB_TYPES_FILE, WB_TYPES_KIND, &records);
    if (err == 0)
        err = check_completions(check);
    for (size_t i = 0; err == 0 && i < check->manifest.columns.count; i++)
        err = check_usercolumn(check, &check->manifest.columns.items[i]);
    return err;
}

/* ---- whether they agree ------------------------------------------------------------------------ */

static uint32_t number_at(const void *values, uint64_t i)
{
    return ((const uint32_t *)values)[i];
}

/* Compares a column with the lengths of the lists of a graph. */
static int check_degrees(struct index_check *check, struct wb_index *index, const struct wb_graph *graph,
                         enum wb_fact fact)
{
    uint64_t count = wb_fact_is_of_pages(fact) ? index->docmap.pages : index->docmap.urls, wrong = 0;
    struct wb_graph_cursor *cursor = NULL;
    const uint32_t *list;
    const void *values;
    uint32_t node;
    size_t degree;
    int more, err = wb_index_fact(index, fact, &values);

    if (err == 0)
        err = wb_graph_cursor_open(graph, &cursor);
    while (err == 0 && (more = wb_graph_next(cursor, &node, &list, &degree)) != 0) {
        err = more < 0 ? more : 0;
        wrong += err == 0 && node < count && number_at(values, node) != degree;
    }
    wb_graph_cursor_close(cursor);
    if (err == 0 && wrong)
        report(check, "%llu documents have another number of links than the graph", (unsigned long long)wrong);
    return err;
}

/* Whether all values of a column are numbers below a limit. */
static int check_below(struct index_check *check, struct wb_index *index, enum wb_fact fact, uint64_t limit)
{
    uint64_t count = wb_fact_is_of_pages(fact) ? index->docmap.pages : index->docmap.urls, wrong = 0;
    const void *values;
    int err = wb_index_fact(index, fact, &values);

    for (uint64_t i = 0; err == 0 && i < count; i++)
        wrong += number_at(values, i) >= limit;
    if (wrong)
        report(check, "%llu values name something that does not exist", (unsigned long long)wrong);
    return err;
}

/* Whether every docid has one place in the order of URL keys. */
static int check_order(struct index_check *check, struct wb_index *index)
{
    uint64_t count = index->docmap.urls, wrong = 0;
    uint64_t *seen = wb_alloc_zero(count / 64 + 1, sizeof *seen);
    const void *values;
    int err = seen ? wb_index_fact(index, WB_FACT_KEYORDER, &values) : WB_E_NOMEM;

    for (uint64_t i = 0; err == 0 && i < count; i++) {
        uint64_t docid = number_at(values, i);
        wrong += docid >= count || seen[docid / 64] >> docid % 64 & 1;
        if (docid < count)
            seen[docid / 64] |= UINT64_C(1) << docid % 64;
    }
    if (wrong)
        report(check, "%llu URLs have no place in the order of keys", (unsigned long long)wrong);
    wb_free(seen);
    return err;
}

/* Whether values are ranks: each is at least 0, and all together are 1. */
static void check_ranks(struct index_check *check, const double *values, uint64_t count)
{
    double sum = 0;
    bool good = true;

    for (uint64_t i = 0; i < count; i++) {
        good = good && values[i] >= 0; /* also if it is not a number */
        sum += values[i];
    }
    if (count && (!good || fabs(sum - 1) > RANK_TOLERANCE))
        report(check, "the ranks do not add up to 1");
}

static int check_rank(struct index_check *check, struct wb_index *index)
{
    const void *values;
    int err = wb_index_fact(index, WB_FACT_RANK, &values);

    if (err == 0)
        check_ranks(check, values, index->docmap.urls);
    return err;
}

/* A rank whose seeds are not known has no values at all. */
static int check_personal(struct index_check *check, struct wb_index *index, const struct wb_manifest_column *name)
{
    const struct wb_index_column *column = NULL;
    char file[WB_STORE_NAME_MAX + 32];
    uint64_t none = 0;
    int err = wb_index_column(index, wb_slice_str(name->name), &column);

    snprintf(file, sizeof file, "column-%s.wbc", name->name);
    turn_to(check, file);
    for (uint64_t i = 0; err == 0 && i < index->docmap.urls; i++)
        none += isnan(column->numbers[i]) != 0;
    if (err == 0 && none < index->docmap.urls)
        check_ranks(check, column->numbers, index->docmap.urls);
    turn_to(check, WB_GENERATION_MANIFEST); /* file is gone when we return */
    return err;
}

/* All URLs of a site have the same host rank, and those of all sites add up to 1. Numbers of sites were checked. */
static int check_hostrank(struct index_check *check, struct wb_index *index, uint64_t sites)
{
    const void *values = NULL, *numbers = NULL;
    uint64_t wrong = 0;
    int err = wb_index_fact(index, WB_FACT_HOSTRANK, &values);

    if (err == 0)
        err = wb_index_fact(index, WB_FACT_SITE, &numbers);
    double *ranks = err == 0 ? wb_alloc((sites + 1) * sizeof *ranks) : NULL;
    if (err < 0 || !ranks)
        return err < 0 ? err : WB_E_NOMEM;
    for (uint64_t i = 0; i < sites; i++)
        ranks[i] = -1;
    for (uint64_t i = 0; i < index->docmap.urls; i++) {
        double *rank = &ranks[number_at(numbers, i)], value = ((const double *)values)[i];
        wrong += *rank >= 0 && *rank != value;
        *rank = value;
    }
    if (wrong)
        report(check, "%llu URLs have another host rank than their site", (unsigned long long)wrong);
    else
        check_ranks(check, ranks, sites);
    wb_free(ranks);
    return 0;
}

static int check_words(struct index_check *check, struct wb_index *index)
{
    const void *values;
    uint64_t words = 0;
    int err = wb_index_fact(index, WB_FACT_WORDS, &values);

    for (uint64_t i = 0; err == 0 && i < index->docmap.pages; i++)
        words += number_at(values, i);
    if (err == 0 && words != index->manifest.info.words)
        report(check, "there are %llu words; the manifest says %llu", (unsigned long long)words,
               (unsigned long long)index->manifest.info.words);
    return err;
}

/* Whether the snapshot and the edition are there. */
static int check_holds(struct index_check *check, struct wb_index *index)
{
    struct wb_store_snapshot snapshot = {.number = 0};
    struct wb_store *store = NULL;
    struct wb_webdb *webdb;
    char number[16];

    snprintf(number, sizeof number, "%u", index->manifest.info.snapshot);
    int err = wb_store_open(check->dir, WB_STORE_READ, &store);
    if (err == 0)
        err = wb_store_snapshot_find(store, wb_slice_str(number), &snapshot);
    if (err == WB_E_NOTFOUND) {
        report(check, "its snapshot %s is gone", number);
        err = 0;
    }
    wb_store_snapshot_release(&snapshot);
    wb_store_close(store);
    if (err == 0)
        err = wb_generation_webdb(index, &webdb);
    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT) {
        report(check, "edition %u of the web database cannot be opened: %s", index->manifest.info.edition,
               wb_error_message());
        err = 0;
    }
    return err;
}

static int check_prints(struct index_check *check, struct wb_index *index)
{
    struct wb_column column = WB_COLUMN_INIT;
    const void *prints = NULL;
    uint64_t record = 0;
    char *path = wb_path_join(check->path, WB_PRINTS_FILE);
    int err = path ? wb_index_fact(index, WB_FACT_SIMHASH, &prints) : WB_E_NOMEM;

    if (err == 0)
        err = wb_column_open(path, WB_PRINTS_KIND, WB_PRINT_BYTES, &column);
    const char *wrong = err == 0
                            ? wb_prints_check(column.records, column.count, prints, index->docmap.pages, &record)
                            : NULL;
    if (wrong)
        report(check, "record %llu: %s", (unsigned long long)record, wrong);
    wb_column_close(&column);
    wb_free(path);
    return err;
}

/* Compares columns whose values are numbers of something, or ranks, with what they are about. */
static int check_values(struct index_check *check, struct wb_index *index)
{
    struct wb_table_stat types, sites;
    uint64_t before = check->problems;
    int err;

    wb_table_stat(index->types, &types);
    wb_table_stat(index->sites, &sites);
    turn_to(check, "near.wbc");
    err = check_below(check, index, WB_FACT_NEAR, index->docmap.urls);
    turn_to(check, "alternate.wbc");
    if (err == 0)
        err = check_below(check, index, WB_FACT_ALTERNATE, index->docmap.pages);
    turn_to(check, "type.wbc");
    if (err == 0)
        err = check_below(check, index, WB_FACT_TYPE, types.records);
    turn_to(check, "site.wbc");
    if (err == 0)
        err = check_below(check, index, WB_FACT_SITE, sites.records);
    turn_to(check, "keyorder.wbc");
    if (err == 0)
        err = check_order(check, index);
    turn_to(check, "rank.wbc");
    if (err == 0)
        err = check_rank(check, index);
    turn_to(check, "hostrank.wbc");
    if (err == 0 && check->problems == before)
        err = check_hostrank(check, index, sites.records);
    for (size_t i = 0; err == 0 && i < index->manifest.columns.count; i++)
        if (index->manifest.columns.items[i].rank)
            err = check_personal(check, index, &index->manifest.columns.items[i]);
    turn_to(check, WB_PRINTS_FILE);
    if (err == 0)
        err = check_prints(check, index);
    turn_to(check, "words.wbc");
    return err < 0 ? err : check_words(check, index);
}

static int check_agreement(struct index_check *check)
{
    struct wb_index *index = NULL;

    WB_CHECK(check->problems == 0 && check->manifest_ok); /* each file is good by itself */
    int err = wb_generation_open(check->dir, check->where.root, check->number, &index);
    turn_to(check, WB_GENERATION_MANIFEST);
    if (err == 0)
        err = check_holds(check, index);
    turn_to(check, "outlinks.wbc");
    if (err == 0)
        err = check_degrees(check, index, index->out, WB_FACT_OUTLINKS);
    turn_to(check, "inlinks.wbc");
    if (err == 0)
        err = check_degrees(check, index, index->in, WB_FACT_INLINKS);
    if (err == 0)
        err = check_values(check, index);
    wb_index_close(index);
    return judge_error(check, err);
}

/* ---- all of it --------------------------------------------------------------------------------- */

static int check_generation(struct index_check *check)
{
    struct wb_file lock = WB_FILE_INIT;

    WB_CHECK(check->number > 0);
    int err = wb_series_share(check->where.root, check->number, &lock);
    char *path = err == 0 ? begin_file(check, WB_GENERATION_MANIFEST) : NULL;

    if (err == 0)
        err = path ? wb_generation_read(path, &check->manifest) : WB_E_NOMEM;
    check->manifest_ok = err == 0;
    if (err == 0 && check->manifest.info.generation != check->number)
        report(check, "it is the manifest of generation %u", check->manifest.info.generation);
    err = path ? judge_error(check, err) : err;
    wb_free(path);
    if (err == 0)
        err = check_files(check);
    if (err == 0 && check->problems == 0)
        err = check_agreement(check);
    wb_file_close(&lock);
    return err;
}

int wb_index_verify(const char *dir, wb_webdb_found found, void *context)
{
    struct index_check check = {.dir = dir, .found = found, .context = context};
    int err;

    do {
        turn_to(&check, WB_INDEX_WHERE);
        check.number = 0;
        err = wb_whereabouts_read(dir, &check.where);
        if (err == WB_E_CORRUPT || err == WB_E_NEWER)
            err = judge_error(&check, err);
        else if (err == 0)
            err = wb_series_newest(check.where.root, &check.number);
        if (err == 0 && check.number) {
            check.path = wb_series_path(check.where.root, check.number);
            err = check.path ? check_generation(&check) : WB_E_NOMEM;
        }
        wb_generation_release(&check.manifest);
        wb_whereabouts_release(&check.where);
        wb_free(check.path);
        check.path = NULL;
    } while (err == AGAIN && check.problems == 0);
    return err < 0 ? err : 0;
}
