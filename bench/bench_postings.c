/*
 * bench_postings.c - how large posting lists are and how fast they are read. Prints one JSON line per measurement.
 *
 *   bench_postings speed DIR [WHAT]         made-up lists of several densities; files go to DIR; perhaps only WHAT
 *   bench_postings corpus CORPUS DIR [STEP] the words of every STEP-th page of a corpus; files go to DIR
 *
 * The corpus is cut into words in the simplest way: ASCII letters and digits, lower case, a few endings taken off for
 * stems. There are no headings and no anchors. It shows what lists take, not what a real index takes.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "bench.h"
#include "extract/extract.h"
#include "os/path.h"
#include "postings/postings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int err)
{
    if (err < 0) {
        fprintf(stderr, "bench_postings: %s\n", wb_error_message());
        exit(1);
    }
}

/* ---- speed ----------------------------------------------------------------------------------------- */

enum { SPEED_DOCS = 4 << 20, WINDOW = 4096, ROUNDS = 9 };

static void write_made_up(const char *dir, const unsigned *spreads, size_t count, const uint8_t *lengths)
{
    struct wb_postings_writer *writer;
    struct wb_postings_output *output;
    struct wb_postings_part part;
    uint64_t random = 12345;
    uint32_t gaps[64];

    must(wb_postings_create(dir, &output));
    must(wb_postings_writer_new(lengths, SPEED_DOCS, &writer));
    for (size_t i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "list%03zu", i);
        must(wb_postings_begin(writer, wb_slice_str(key), true));
        uint64_t docid = 0;
        for (;;) {
            struct wb_posting posting = {.gaps = gaps};
            docid += 1 + (spreads[i] > 1 ? bench_random(&random) % (2 * spreads[i] - 1) : 0);
            if (docid >= SPEED_DOCS)
                break;
            posting.docid = (uint32_t)docid;
            uint64_t r = bench_random(&random) >> 20;
            posting.frequency[WB_FIELD_MAIN] = 1 + (uint32_t)(r % 8 < 5 ? 0 : r / 8 % 6);
            posting.frequency[WB_FIELD_OTHER] = r / 64 % 4 == 0;
            posting.gap_count = posting.frequency[WB_FIELD_MAIN] + posting.frequency[WB_FIELD_OTHER];
            for (size_t k = 0; k < posting.gap_count; k++)
                gaps[k] = (uint32_t)(bench_random(&random) >> 20) % 200;
            must(wb_postings_add(writer, &posting));
        }
        must(wb_postings_end(writer));
    }
    must(wb_postings_take(writer, &part));
    must(wb_postings_append(output, &part));
    must(wb_postings_finish(output, NULL));
    wb_postings_part_release(&part);
    wb_postings_writer_free(writer);
}

static uint64_t run_walk(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    uint64_t mix = 0;

    (void)scorer;
    for (uint32_t docid = wb_postlist_seek(list, 0); docid != WB_DOCID_END; docid = wb_postlist_next(list))
        mix += docid;
    return mix;
}

/* Docids and weights of whole blocks, which is the least that scoring needs. */
static uint64_t run_blocks(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    uint64_t mix = 0;

    (void)scorer;
    wb_postlist_seek(list, 0);
    do
        mix += wb_postlist_weight(list);
    while (wb_postlist_next_block(list) != WB_DOCID_END);
    return mix;
}

static uint64_t run_fill(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    uint64_t bits[WINDOW / 64] = {0};

    (void)scorer;
    for (uint32_t docid = wb_postlist_seek(list, 0); docid != WB_DOCID_END;)
        docid = wb_postlist_fill(list, docid / WINDOW * WINDOW, WINDOW, NULL, bits);
    return bits[0];
}

static uint64_t run_sum(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    static uint32_t sums[WINDOW];

    for (uint32_t docid = wb_postlist_seek(list, 0); docid != WB_DOCID_END;)
        docid = wb_postlist_sum(list, docid / WINDOW * WINDOW, WINDOW, scorer, sums, NULL);
    return sums[0];
}

static uint64_t run_bounds(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    uint64_t mix = 0;

    for (uint32_t base = 0; base < SPEED_DOCS; base += WINDOW)
        mix += wb_postlist_bound_range(list, scorer, base, base + WINDOW - 1);
    return mix;
}

static uint64_t run_positions(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    struct wb_positions positions;
    uint64_t mix = 0;

    (void)scorer;
    for (uint32_t docid = wb_postlist_seek(list, 0); docid != WB_DOCID_END; docid = wb_postlist_next(list)) {
        must(wb_postlist_positions(list, &positions));
        mix += positions.count[WB_SPACE_BODY];
    }
    return mix;
}

static uint64_t run_seek(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    uint64_t mix = 0;

    (void)scorer;
    for (uint32_t docid = wb_postlist_seek(list, 0); docid != WB_DOCID_END;
         docid = wb_postlist_seek(list, docid + 1000))
        mix += docid;
    return mix;
}

/* Adds all postings of a block. */
static int add_block(struct wb_postings_writer *writer, const struct wb_posting_block *block)
{
    size_t gap_at = 0;

    return wb_postings_add_range(writer, block, 0, block->count, &gap_at);
}

/* Reads all blocks, gives them other docids and writes them again, as a merge does. */
static uint64_t run_rewrite(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    static struct wb_postings_writer *writer;
    static struct wb_posting_block block;
    static uint8_t *lengths;
    struct wb_postings_part part;
    int more = 0;

    (void)scorer;
    if (!writer) {
        lengths = wb_alloc_zero(SPEED_DOCS + 1, 1);
        WB_CHECK(lengths != NULL);
        must(wb_postings_writer_new(lengths, SPEED_DOCS + 1, &writer));
    }
    must(wb_postings_take(writer, &part));
    wb_postings_part_release(&part);
    static unsigned number;
    char key[16];
    snprintf(key, sizeof key, "%08u", number++);
    must(wb_postings_begin(writer, wb_slice_str(key), true));
    for (uint32_t n = 0; (more = wb_postlist_read(list, n, &block)) == 1; n++) {
        for (uint32_t i = 0; i < block.count; i++)
            block.docid[i]++;
        must(add_block(writer, &block));
    }
    must(more);
    must(wb_postings_end(writer));
    return wb_postings_writer_bytes(writer);
}

static const struct {
    const char *name;
    uint64_t (*run)(struct wb_postlist *list, const struct wb_scorer *scorer);
} runs[] = {
    {"walk", run_walk},     {"docids and weights", run_blocks}, {"fill", run_fill}, {"sum", run_sum},
    {"bounds", run_bounds}, {"positions", run_positions},       {"seek", run_seek}, {"rewrite", run_rewrite},
};

static void bench_speed(const char *dir, const char *only)
{
    static const unsigned spreads[] = {1, 2, 3, 5, 10, 30, 100, 1000};
    const size_t lists = sizeof spreads / sizeof *spreads;
    uint8_t *lengths = wb_alloc_zero(SPEED_DOCS, 1);
    uint64_t random = 999, mix = 0;
    struct wb_postings *set;
    struct wb_scorer scorer;

    WB_CHECK(lengths != NULL);
    for (size_t i = 0; i < SPEED_DOCS; i++)
        lengths[i] = (uint8_t)(60 + (bench_random(&random) >> 20) % 40);
    must(wb_path_mkdirs(dir));
    write_made_up(dir, spreads, lists, lengths);
    must(wb_postings_open(dir, lengths, SPEED_DOCS, &set));
    wb_scorer_init(&scorer, 3, 1.2, 0.75, 400, 1);
    for (size_t i = 0; i < lists; i++)
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            char key[16];
            struct wb_term term;
            struct wb_postlist *list;
            double best = 1e9;
            if (only && strcmp(only, runs[r].name) != 0)
                continue;
            snprintf(key, sizeof key, "list%03zu", i);
            must(wb_postings_find(set, wb_slice_str(key), &term));
            must(wb_postlist_open(set, &term, &list));
            for (int round = 0; round < ROUNDS; round++) {
                double start = bench_cpu_seconds();
                mix += runs[r].run(list, &scorer);
                double took = bench_cpu_seconds() - start;
                best = took < best ? took : best;
            }
            must(wb_postlist_error(list));
            printf("{\"spread\": %u, \"what\": \"%s\", \"postings\": %u, \"positions\": %llu, "
                   "\"ns_per_posting\": %.3f, \"list_bits\": %.2f, \"position_bits\": %.2f}\n",
                   spreads[i], runs[r].name, term.df, (unsigned long long)term.total, best * 1e9 / term.df,
                   8.0 * (double)term.list_bytes / term.df, 8.0 * (double)term.positions_bytes / (double)term.total);
            wb_postlist_close(list);
        }
    fprintf(stderr, "%llu\n", (unsigned long long)mix);
    wb_postings_close(set);
    wb_free(lengths);
}

/* ---- the words of a corpus ---------------------------------------------------------------------------- */

struct occurrence {
    uint32_t term, docid, field, position;
};

struct inversion {
    WB_VEC(struct occurrence) all;
    WB_VEC(struct wb_slice) terms;
    WB_VEC(uint32_t) stems; /* of each term, the number of its stem */
    uint32_t *table;        /* open addressing: number of a term plus 1 */
    size_t slots;
    uint8_t *lengths;
};

/* The number of a word, which is new perhaps. */
static uint32_t number_of(struct inversion *in, struct wb_slice word)
{
    size_t at = (size_t)wb_hash64(word.ptr, word.len) & (in->slots - 1);

    for (; in->table[at]; at = (at + 1) & (in->slots - 1))
        if (wb_slice_equal(in->terms.items[in->table[at] - 1], word))
            return in->table[at] - 1;
    char *copy = wb_strndup(word.ptr, word.len);
    WB_CHECK(copy != NULL);
    must(wb_vec_push(&in->terms, wb_slice(copy, word.len)));
    WB_CHECK(in->terms.count < in->slots / 2);
    in->table[at] = (uint32_t)in->terms.count;
    return (uint32_t)in->terms.count - 1;
}

/* Adds the words of a text; returns the position after the last one. */
static uint32_t add_words(struct inversion *in, struct wb_slice text, uint32_t docid, enum wb_field field, uint32_t at)
{
    char word[64];
    size_t len = 0;

    for (size_t i = 0; i <= text.len; i++) {
        char c = i < text.len ? wb_ascii_lower(text.ptr[i]) : ' ';
        bool in_word = wb_ascii_is_letter(c) || wb_ascii_is_digit(c) || (unsigned char)c >= 0x80;
        if (in_word && len < sizeof word)
            word[len++] = c;
        if (in_word || len == 0)
            continue;
        struct occurrence occurrence = {number_of(in, wb_slice(word, len)), docid, field, at++};
        must(wb_vec_push(&in->all, occurrence));
        len = 0;
    }
    return at;
}

/* Lines of the text that are also the next line of the main text are main text. */
static void add_page(struct inversion *in, const struct wb_extract *extract, struct wb_slice url, uint32_t docid)
{
    struct wb_slice rest = extract->text, main_rest = extract->main_text, line, main_line;
    uint32_t at = 0, main_words = 0;
    bool more_main = wb_slice_next_line(&main_rest, &main_line);

    add_words(in, extract->title, docid, WB_FIELD_TITLE, 0);
    while (wb_slice_next_line(&rest, &line)) {
        bool is_main = more_main && wb_slice_equal(line, main_line);
        uint32_t next = add_words(in, line, docid, is_main ? WB_FIELD_MAIN : WB_FIELD_OTHER, at);
        main_words += is_main ? next - at : 0;
        at = next;
        if (is_main)
            more_main = wb_slice_next_line(&main_rest, &main_line);
    }
    add_words(in, url, docid, WB_FIELD_URL, 0);
    in->lengths[docid] = wb_length_byte(main_words + (at - main_words) / 4);
}

static struct wb_slice crude_stem(struct wb_slice word)
{
    static const char *const endings[] = {"ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "ly"};

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (word.len >= strlen(endings[i]) + 3 && wb_slice_ends(word, wb_slice_str(endings[i])))
            return wb_slice(word.ptr, word.len - strlen(endings[i]));
    return word;
}

/* Sorts by term; keeps the order of occurrences of one term. starts has one more number than there are terms. */
static struct occurrence *sort_by_term(const struct inversion *in, bool stems, size_t **starts_out)
{
    size_t terms = in->terms.count, *starts = wb_alloc_zero(terms + 2, sizeof *starts);
    struct occurrence *sorted = wb_alloc(in->all.count * sizeof *sorted);

    WB_CHECK(starts && sorted);
    for (size_t i = 0; i < in->all.count; i++)
        starts[(stems ? in->stems.items[in->all.items[i].term] : in->all.items[i].term) + 2]++;
    for (size_t t = 2; t < terms + 2; t++)
        starts[t] += starts[t - 1];
    for (size_t i = 0; i < in->all.count; i++)
        sorted[starts[(stems ? in->stems.items[in->all.items[i].term] : in->all.items[i].term) + 1]++] =
            in->all.items[i];
    *starts_out = starts;
    return sorted;
}

/* Turns positions, grouped by space and ascending in each, into gaps, in place. */
static void positions_to_gaps(const uint32_t frequency[WB_FIELDS], uint32_t *positions)
{
    size_t count[WB_SPACES] = {0};

    for (int f = 0; f < WB_FIELDS; f++)
        count[wb_space_of_field((enum wb_field)f)] += frequency[f];
    for (int space = 0; space < WB_SPACES; positions += count[space++])
        for (size_t i = count[space]; i-- > 1;)
            positions[i] -= positions[i - 1];
}

static void write_list(struct wb_postings_writer *writer, struct wb_slice text, bool stem,
                       const struct occurrence *from, const struct occurrence *to)
{
    WB_VEC(uint32_t) positions = WB_VEC_INIT;
    char key[80];

    memcpy(key, text.ptr, text.len);
    key[text.len] = 0;
    key[text.len + 1] = stem ? 'S' : 'E';
    must(wb_postings_begin(writer, wb_slice(key, text.len + 2), !stem));
    while (from < to) {
        struct wb_posting posting = {.docid = from->docid};
        wb_vec_clear(&positions);
        for (; from < to && from->docid == posting.docid; from++) {
            posting.frequency[from->field]++;
            if (!stem)
                must(wb_vec_push(&positions, from->position));
        }
        if (!stem)
            positions_to_gaps(posting.frequency, positions.items);
        posting.gaps = positions.items;
        posting.gap_count = positions.count;
        must(wb_postings_add(writer, &posting));
    }
    must(wb_postings_end(writer));
    wb_vec_release(&positions);
}

static const struct wb_slice *sorting_terms;

static int compare_terms(const void *x, const void *y)
{
    return wb_slice_compare(sorting_terms[*(const uint32_t *)x], sorting_terms[*(const uint32_t *)y]);
}

static void write_inversion(struct inversion *in, uint32_t docs, const char *dir, struct wb_postings_stat *stat)
{
    size_t *starts[2], terms = in->terms.count;
    struct occurrence *sorted[2] = {sort_by_term(in, false, &starts[0]), sort_by_term(in, true, &starts[1])};
    uint32_t *order = wb_alloc(terms * sizeof *order);
    struct wb_postings_writer *writer;
    struct wb_postings_output *output;
    struct wb_postings_part part;

    WB_CHECK(order != NULL);
    for (uint32_t t = 0; t < terms; t++)
        order[t] = t;
    sorting_terms = in->terms.items;
    qsort(order, terms, sizeof *order, compare_terms);
    must(wb_path_mkdirs(dir));
    must(wb_postings_create(dir, &output));
    must(wb_postings_writer_new(in->lengths, docs, &writer));
    double start = bench_cpu_seconds();
    for (size_t i = 0; i < terms; i++)
        for (int s = 0; s < 2; s++)
            write_list(writer, in->terms.items[order[i]], s, sorted[s] + starts[s][order[i]],
                       sorted[s] + starts[s][order[i] + 1]);
    must(wb_postings_take(writer, &part));
    must(wb_postings_append(output, &part));
    must(wb_postings_finish(output, stat));
    fprintf(stderr, "written in %.2f s\n", bench_cpu_seconds() - start);
    wb_postings_part_release(&part);
    wb_postings_writer_free(writer);
}

/* Reads all lists and writes them again, as the merge of an old generation does. */
static void rewrite_all(const char *dir, const struct inversion *in, uint32_t docs)
{
    struct wb_postings *set;
    struct wb_terms *terms;
    struct wb_postings_writer *writer;
    struct wb_postings_part part;
    struct wb_posting_block block = WB_POSTING_BLOCK_INIT;
    struct wb_slice key;
    struct wb_term term;
    uint64_t postings = 0, positions = 0;

    must(wb_postings_open(dir, in->lengths, docs, &set));
    must(wb_terms_open(set, &terms));
    must(wb_postings_writer_new(in->lengths, docs, &writer));
    double start = bench_cpu_seconds();
    while (wb_terms_next(terms, &key, &term) == 1) {
        struct wb_postlist *list;
        must(wb_postlist_open(set, &term, &list));
        must(wb_postings_begin(writer, key, term.positions));
        for (uint32_t n = 0; wb_postlist_read(list, n, &block) == 1; n++)
            must(add_block(writer, &block));
        must(wb_postings_end(writer));
        must(wb_postlist_error(list));
        wb_postlist_close(list);
        postings += term.df;
        positions += term.positions ? term.total : 0;
    }
    must(wb_postings_take(writer, &part));
    fprintf(stderr, "%llu postings and %llu positions written again in %.2f s\n", (unsigned long long)postings,
            (unsigned long long)positions, bench_cpu_seconds() - start);
    wb_postings_part_release(&part);
    wb_postings_writer_free(writer);
    wb_posting_block_release(&block);
    wb_terms_close(terms);
    wb_postings_close(set);
}

static void print_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)context;
    fprintf(stderr, "%s: %llu: %s\n", file, (unsigned long long)offset, message);
    exit(1);
}

static void bench_lists_of_corpus(const char *corpus_dir, const char *dir, size_t step)
{
    struct corpus corpus = CORPUS_INIT;
    struct inversion in = {.slots = (size_t)1 << 24};
    struct wb_extractor *extractor;
    struct wb_postings_stat stat;
    uint64_t html = 0;
    uint32_t docs = 0;

    must(corpus_load(corpus_dir, &corpus));
    must(wb_extractor_new(&extractor));
    in.table = wb_alloc_zero(in.slots, sizeof *in.table);
    in.lengths = wb_alloc_zero(corpus.count, 1);
    WB_CHECK(in.table && in.lengths);
    for (size_t i = 0; i < corpus.count; i += step, docs++) {
        const struct wb_page *page = &corpus.pages[i];
        struct wb_extract_input input = {page->url, WB_SLICE_LIT("text/html"), WB_SLICE_EMPTY, page->body,
                                         WB_EXTRACT_TEXT};
        struct wb_extract extract;
        must(wb_extract(extractor, &input, &extract));
        add_page(&in, &extract, page->url, docs);
        html += page->body.len;
    }
    for (size_t t = 0, terms = in.terms.count; t < terms; t++) {
        uint32_t stem = number_of(&in, crude_stem(in.terms.items[t]));
        must(wb_vec_push(&in.stems, stem));
    }
    write_inversion(&in, docs, dir, &stat);
    double start = bench_cpu_seconds();
    uint64_t intact;
    must(wb_postings_verify(dir, in.lengths, docs, print_problem, NULL, &intact));
    fprintf(stderr, "%llu terms verified in %.2f s\n", (unsigned long long)intact, bench_cpu_seconds() - start);
    rewrite_all(dir, &in, docs);
    printf("{\"html\": %llu, \"pages\": %u, \"words\": %zu, \"terms\": %llu, \"aliases\": %llu, \"inlined\": %llu, "
           "\"postings\": %llu, \"dictionary\": %llu, \"lists\": %llu, \"positions\": %llu, \"without_positions\": "
           "%.4f, \"all\": %.4f}\n",
           (unsigned long long)html, docs, in.all.count, (unsigned long long)stat.terms,
           (unsigned long long)stat.aliases, (unsigned long long)stat.inlined, (unsigned long long)stat.postings,
           (unsigned long long)stat.dictionary_bytes, (unsigned long long)stat.lists_bytes,
           (unsigned long long)stat.positions_bytes, (double)(stat.dictionary_bytes + stat.lists_bytes) / (double)html,
           (double)(stat.dictionary_bytes + stat.lists_bytes + stat.positions_bytes) / (double)html);
}

int main(int argc, char **argv)
{
    if ((argc == 3 || argc == 4) && strcmp(argv[1], "speed") == 0) {
        bench_speed(argv[2], argc == 4 ? argv[3] : NULL);
    } else if ((argc == 4 || argc == 5) && strcmp(argv[1], "corpus") == 0) {
        long step = argc == 5 ? strtol(argv[4], NULL, 10) : 1;
        bench_lists_of_corpus(argv[2], argv[3], step > 0 ? (size_t)step : 1);
    } else {
        fprintf(stderr, "usage: bench_postings speed DIR [WHAT] | corpus CORPUS DIR [STEP]\n");
        return 1;
    }
    return 0;
}
