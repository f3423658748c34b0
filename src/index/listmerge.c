/*
 * listmerge.c - cuts the terms into ranges, merges each range in a thread, and puts the results together in order.
 *
 * A range never separates two keys that differ in their last byte only. Which ranges there are does not show in the
 * files: room postings puts them together so that the bytes depend on the lists alone.
 *
 * A page has its postings in one run, or in the last generation; the texts of links to it may be in another run. So one
 * document can come from two inputs: then its frequencies are added, and the positions of anchors come last.
 */
#include "index/listmerge.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/posting.h"
#include "index/postingsource.h"

#include <stdlib.h>

enum {
    RANGE_MAX = 8 << 20, /* bytes of runs and old lists that one range covers, roughly; less if memory is short */
    RANGE_MIN = 64 << 10,
    RANGES_AHEAD = 2, /* finished ranges per thread that may wait for their turn */
    THREADS_MAX = 64,
};

/* Bytes of input that begin at a key. */
struct weight {
    struct wb_slice key; /* without its last byte, so that E and S stay together */
    uint64_t bytes;
};

struct range {
    struct wb_slice from, to; /* keys; to.ptr is NULL in the last one */
    struct wb_postings_part part;
    bool done;
};

struct merging {
    struct wb_build *build;
    struct range *ranges;
    size_t count, taken, written;
    unsigned threads;
    uint64_t range_bytes;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct wb_error_copy error;
};

/* ---- ranges ------------------------------------------------------------------------------------ */

struct weights {
    struct wb_arena keys;
    WB_VEC(struct weight) items;
};

static int add_weight(struct weights *weights, struct wb_slice key, uint64_t bytes)
{
    struct wb_slice copy;

    WB_CHECK(key.len >= WB_TERM_TAIL);
    int err = wb_arena_copy(&weights->keys, wb_slice(key.ptr, key.len - 1), &copy);

    return err < 0 ? err : wb_vec_push(&weights->items, (struct weight){copy, bytes});
}

/* The dictionary of the last generation in portions of about a quarter of a range. */
static int weigh_old(const struct merging *merging, struct weights *weights)
{
    const struct wb_build *build = merging->build;
    struct wb_terms *terms = NULL;
    struct wb_term term;
    struct wb_slice key;
    uint64_t bytes = 0;
    int more, err = build->carry.old ? wb_terms_open(build->carry.old->postings, &terms) : 0;

    while (err == 0 && terms && (more = wb_terms_next(terms, &key, &term)) != 0) {
        err = more < 0 ? more : 0;
        bytes += 16 + term.list_bytes + term.positions_bytes;
        if (err == 0 && bytes >= merging->range_bytes / 4) {
            err = add_weight(weights, key, bytes);
            bytes = 0;
        }
    }
    wb_terms_close(terms);
    return err;
}

static int by_key(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;

    return wb_slice_compare(x->key, y->key);
}

static int cut_ranges(struct merging *merging, struct weights *weights)
{
    const struct wb_build *build = merging->build;
    uint64_t bytes = 0;
    int err = weigh_old(merging, weights);

    for (size_t i = 0; err == 0 && i < build->runs.count; i++) {
        const struct wb_run *run = build->runs.items[i];
        for (size_t j = 0; err == 0 && j < run->places.count; j++)
            err = add_weight(weights, run->places.items[j].key,
                             (j + 1 < run->places.count ? run->places.items[j + 1].offset : run->bytes) -
                                 run->places.items[j].offset);
    }
    merging->ranges = err == 0 ? wb_alloc_zero(weights->items.count + 1, sizeof *merging->ranges) : NULL;
    if (!merging->ranges)
        return err < 0 ? err : WB_E_NOMEM;
    if (weights->items.count)
        qsort(weights->items.items, weights->items.count, sizeof *weights->items.items, by_key);
    merging->ranges[0].from = WB_SLICE_EMPTY;
    merging->count = 1;
    for (size_t i = 0; i < weights->items.count; i++) {
        const struct weight *weight = &weights->items.items[i];
        if (bytes >= merging->range_bytes &&
            wb_slice_compare(weight->key, merging->ranges[merging->count - 1].from) > 0) {
            WB_CHECK(merging->count <= weights->items.count);
            merging->ranges[merging->count - 1].to = weight->key;
            merging->ranges[merging->count++].from = weight->key;
            bytes = 0;
        }
        bytes += weight->bytes;
    }
    merging->ranges[merging->count - 1].to = (struct wb_slice){NULL, 0};
    return 0;
}

/* ---- one range --------------------------------------------------------------------------------- */

/* The inputs of one thread. */
struct inputs {
    size_t runs;
    struct wb_run_cursor *cursors;
    struct wb_postingsource *sources; /* one for each run, and one for the last generation */
    size_t *taking;                   /* the inputs that have the current term */
    struct wb_terms *terms;           /* of the last generation; NULL if there is none */
    struct wb_slice old_key;          /* its current term; NULL at the end */
    struct wb_term old_term;
    struct wb_postings_writer *writer;
    WB_VEC(uint32_t) gaps;
};

static void close_inputs(struct inputs *in)
{
    for (size_t i = 0; in->sources && i <= in->runs; i++)
        wb_postingsource_release(&in->sources[i]);
    wb_terms_close(in->terms);
    wb_postings_writer_free(in->writer);
    wb_vec_release(&in->gaps);
    wb_free(in->cursors);
    wb_free(in->sources);
    wb_free(in->taking);
}

static int open_inputs(const struct wb_build *build, struct inputs *in)
{
    *in = (struct inputs){.runs = build->runs.count};
    in->cursors = wb_alloc_zero(in->runs + 1, sizeof *in->cursors);
    in->sources = wb_alloc_zero(in->runs + 1, sizeof *in->sources);
    in->taking = wb_alloc_zero(in->runs + 1, sizeof *in->taking);
    if (!in->cursors || !in->sources || !in->taking)
        return WB_E_NOMEM;
    int err = wb_postings_writer_new(build->lengths, (uint32_t)build->roster.url_count, &in->writer);
    return err == 0 && build->carry.old ? wb_terms_open(build->carry.old->postings, &in->terms) : err;
}

static int next_old_term(struct inputs *in)
{
    int more = in->terms ? wb_terms_next(in->terms, &in->old_key, &in->old_term) : 0;

    if (more <= 0)
        in->old_key = (struct wb_slice){NULL, 0};
    return more < 0 ? more : 0;
}

static int seek_inputs(const struct wb_build *build, struct inputs *in, struct wb_slice from)
{
    int err = in->terms ? wb_terms_seek(in->terms, from) : 0;

    for (size_t i = 0; i < in->runs; i++)
        wb_run_seek(build->runs.items[i], from, &in->cursors[i]);
    return err < 0 ? err : next_old_term(in);
}

/* The least key of all inputs; NULL at the end. */
static struct wb_slice least_key(const struct inputs *in)
{
    struct wb_slice least = in->old_key;

    for (size_t i = 0; i < in->runs; i++) {
        struct wb_slice key = in->cursors[i].key;
        if (key.len && (!least.ptr || wb_slice_compare(key, least) < 0))
            least = key;
    }
    return least;
}

/* Adds two postings of one document: the one with anchors, which has nothing else, comes second. */
static int add_both(struct inputs *in, const struct wb_posting *a, const struct wb_posting *b)
{
    const struct wb_posting *anchors = a->frequency[WB_FIELD_ANCHOR] ? a : b, *page = anchors == a ? b : a;
    struct wb_posting sum = *page;

    WB_CHECK(a->docid == b->docid);
    if (page->frequency[WB_FIELD_ANCHOR])
        return wb_fail(WB_E_CORRUPT, "document %u has the texts of its links twice", page->docid);
    int err = wb_vec_reserve(&in->gaps, page->gap_count + anchors->gap_count + 1);
    if (err < 0)
        return err;
    if (page->gap_count)
        memcpy(in->gaps.items, page->gaps, page->gap_count * sizeof *in->gaps.items);
    if (anchors->gap_count)
        memcpy(in->gaps.items + page->gap_count, anchors->gaps, anchors->gap_count * sizeof *in->gaps.items);
    for (int field = 0; field < WB_FIELDS; field++)
        sum.frequency[field] += anchors->frequency[field];
    sum.gaps = in->gaps.items;
    sum.gap_count += anchors->gap_count;
    return wb_postings_add(in->writer, &sum);
}

/* The run whose next document is the first of all, and another one that has the same; NULL if there is none. */
static struct wb_postingsource *first_run(struct inputs *in, size_t taking, struct wb_postingsource **second_out)
{
    struct wb_postingsource *first = NULL;

    *second_out = NULL;
    for (size_t i = 0; i < taking; i++) {
        struct wb_postingsource *source = &in->sources[in->taking[i]];
        if (source->posting.docid == WB_DOCID_NONE)
            continue;
        if (!first || source->posting.docid < first->posting.docid) {
            first = source;
            *second_out = NULL;
        } else if (source->posting.docid == first->posting.docid) {
            *second_out = source;
        }
    }
    return first;
}

/* Merges the postings of the runs that have the current term, and those of the last generation; old may be NULL. */
static int merge_postings(struct inputs *in, size_t taking, struct wb_postingsource *old)
{
    WB_CHECK((taking > 0 || old) && taking <= in->runs + 1);
    for (;;) {
        struct wb_postingsource *second, *first = first_run(in, taking, &second);
        int both = old ? wb_postingsource_pass(old, first ? first->posting.docid : WB_DOCID_NONE, in->writer) : 0;
        if (both < 0 || !first)
            return both;
        int err = both > 0 ? wb_postingsource_take(old) : 0;
        if (err == 0 && both > 0 && second)
            err = wb_fail(WB_E_CORRUPT, "document %u comes from three places", first->posting.docid);
        if (err == 0)
            err = both > 0 ? add_both(in, &first->posting, &old->posting)
                  : second ? add_both(in, &first->posting, &second->posting)
                           : wb_postings_add(in->writer, &first->posting);
        if (err == 0 && second)
            err = wb_postingsource_next(second);
        if (err == 0)
            err = wb_postingsource_next(first);
        if (err < 0)
            return err;
    }
}

static int merge_term(const struct wb_build *build, struct inputs *in, struct wb_slice key)
{
    size_t taking = 0;
    struct wb_postingsource *old = &in->sources[in->runs];

    WB_CHECK(key.len >= WB_TERM_TAIL);
    bool exact = key.ptr[key.len - 1] == WB_TERM_EXACT;
    int err = wb_postings_begin(in->writer, key, exact);
    for (size_t i = 0; err == 0 && i < in->runs; i++)
        if (in->cursors[i].key.len && wb_slice_equal(in->cursors[i].key, key)) {
            err = wb_postingsource_run(&in->sources[i], &in->cursors[i]);
            in->taking[taking++] = i;
        }
    if (!in->old_key.ptr || !wb_slice_equal(in->old_key, key))
        old = NULL;
    if (err == 0 && old)
        err = wb_postingsource_old(old, &build->carry, &in->old_term, exact);
    /* Most terms are in a few documents only, none of which has changed. */
    int copied = err == 0 && old && taking == 0 ? wb_postingsource_copy(old, in->writer) : 0;
    if (copied < 0)
        err = copied;
    if (err == 0 && !copied)
        err = merge_postings(in, taking, old);
    if (err == 0)
        err = wb_postings_end(in->writer);
    /* Only now: the key may be that of a cursor. */
    for (size_t i = 0; err == 0 && i < taking; i++)
        wb_run_next(&in->cursors[in->taking[i]]);
    return err == 0 && old ? next_old_term(in) : err;
}

static int merge_range(const struct wb_build *build, struct inputs *in, struct range *range)
{
    struct wb_slice key;

    WB_CHECK(!range->done);
    WB_CHECK(!range->to.ptr || wb_slice_compare(range->from, range->to) < 0);
    int err = seek_inputs(build, in, range->from);

    while (err == 0 && (key = least_key(in)).ptr && (!range->to.ptr || wb_slice_compare(key, range->to) < 0))
        err = merge_term(build, in, key);
    return err < 0 ? err : wb_postings_take(in->writer, &range->part);
}

/* ---- all ranges -------------------------------------------------------------------------------- */

/* The next range to merge; NULL if there is none. Waits if too many are ahead of the writing. */
static struct range *take_range(struct merging *merging)
{
    struct range *range = NULL;

    pthread_mutex_lock(&merging->mutex);
    while (merging->error.code == 0 && merging->taken < merging->count &&
           merging->taken >= merging->written + (size_t)merging->threads * RANGES_AHEAD)
        pthread_cond_wait(&merging->changed, &merging->mutex);
    WB_CHECK(merging->written <= merging->taken);
    WB_CHECK(merging->taken <= merging->count);
    if (merging->error.code == 0 && merging->taken < merging->count)
        range = &merging->ranges[merging->taken++];
    pthread_mutex_unlock(&merging->mutex);
    return range;
}

static void end_range(struct merging *merging, struct range *range, int err)
{
    pthread_mutex_lock(&merging->mutex);
    WB_CHECK(!range || !range->done);
    if (range)
        range->done = true;
    if (err < 0 && merging->error.code == 0)
        wb_error_save(err, &merging->error);
    pthread_cond_broadcast(&merging->changed);
    pthread_mutex_unlock(&merging->mutex);
}

static void *merge_thread(void *context)
{
    struct merging *merging = context;
    struct inputs in;
    struct range *range;
    int err = open_inputs(merging->build, &in);

    if (err < 0)
        end_range(merging, NULL, err);
    while (err == 0 && (range = take_range(merging))) {
        err = merge_range(merging->build, &in, range);
        end_range(merging, range, err);
    }
    close_inputs(&in);
    return NULL;
}

/* Appends the ranges in their order, as they are finished. */
static int write_ranges(struct merging *merging, struct wb_postings_output *output)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < merging->count; i++) {
        pthread_mutex_lock(&merging->mutex);
        while (!merging->ranges[i].done && merging->error.code == 0)
            pthread_cond_wait(&merging->changed, &merging->mutex);
        err = merging->error.code;
        pthread_mutex_unlock(&merging->mutex);
        if (err == 0)
            err = wb_postings_append(output, &merging->ranges[i].part);
        if (err == 0)
            err = wb_build_progress(merging->build, "writing lists", i + 1, merging->count);
        wb_postings_part_release(&merging->ranges[i].part);
        pthread_mutex_lock(&merging->mutex);
        merging->written += err == 0; /* after an error, this range may not even have been taken */
        if (err < 0 && merging->error.code == 0)
            wb_error_save(err, &merging->error);
        pthread_cond_broadcast(&merging->changed);
        pthread_mutex_unlock(&merging->mutex);
    }
    return err;
}

static int merge_all(struct merging *merging, struct wb_postings_output *output)
{
    pthread_t threads[THREADS_MAX];
    unsigned started = 0;

    WB_CHECK(merging->threads > 0 && merging->threads <= THREADS_MAX);
    while (started < merging->threads && pthread_create(&threads[started], NULL, merge_thread, merging) == 0)
        started++;
    if (started == 0)
        return wb_fail(WB_E_LIMIT, "cannot start a thread");
    write_ranges(merging, output);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < merging->count; i++)
        wb_postings_part_release(&merging->ranges[i].part);
    return merging->error.code < 0 ? wb_error_restore(&merging->error) : 0;
}

int wb_listmerge(struct wb_build *build)
{
    struct merging merging = {.build = build, .threads = build->threads < THREADS_MAX ? build->threads : THREADS_MAX};
    struct weights weights = {.items = WB_VEC_INIT};
    struct wb_postings_output *output = NULL;

    /* Each thread has one range under work, and others wait for their turn to be written. */
    merging.range_bytes = build->memory_bytes / ((uint64_t)merging.threads * (RANGES_AHEAD + 1) * 2);
    merging.range_bytes = merging.range_bytes < RANGE_MAX ? merging.range_bytes : RANGE_MAX;
    merging.range_bytes = merging.range_bytes > RANGE_MIN ? merging.range_bytes : RANGE_MIN;
    int err = cut_ranges(&merging, &weights);
    build->result->ranges = merging.count;
    pthread_mutex_init(&merging.mutex, NULL);
    pthread_cond_init(&merging.changed, NULL);
    if (err == 0)
        err = wb_postings_create(build->path, &output);
    if (err == 0)
        err = merge_all(&merging, output);
    if (err == 0) {
        err = wb_postings_finish(output, &build->result->postings);
        output = NULL;
    }
    wb_postings_abandon(output);
    pthread_cond_destroy(&merging.changed);
    pthread_mutex_destroy(&merging.mutex);
    wb_free(merging.ranges);
    wb_arena_release(&weights.keys);
    wb_vec_release(&weights.items);
    return err;
}
