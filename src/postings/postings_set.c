/*
 * postings_set.c - opens the three files of a set, and verifies everything in them.
 */
#include "postings/dictionary.h"
#include "postings/postlist.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"

static int open_blob(const char *dir, const char *name, const char *kind, struct wb_blob *blob_out)
{
    char *path = wb_path_join(dir, name);
    int err = path ? wb_blob_open(path, kind, blob_out) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

int wb_postings_open(const char *dir, const uint8_t *lengths, uint32_t docs, struct wb_postings **set_out)
{
    struct wb_postings *set = wb_alloc_zero(1, sizeof *set);
    int err = set ? open_blob(dir, "dictionary", DICTIONARY_KIND, &set->dictionary) : WB_E_NOMEM;

    *set_out = NULL;
    if (err == 0)
        err = open_blob(dir, "lists", LISTS_KIND, &set->lists);
    if (err == 0)
        err = open_blob(dir, "positions", POSITIONS_KIND, &set->positions);
    if (err == 0) {
        set->lengths = lengths;
        set->docs = docs;
        err = wb_dictionary_check(set);
    }
    if (err < 0) {
        wb_postings_close(set);
        return err;
    }
    *set_out = set;
    return 0;
}

void wb_postings_close(struct wb_postings *set)
{
    if (!set)
        return;
    wb_blob_close(&set->dictionary);
    wb_blob_close(&set->lists);
    wb_blob_close(&set->positions);
    wb_free(set);
}

/* ---- verifying ------------------------------------------------------------------------------------- */

struct postings_verification {
    struct wb_postings *set;
    wb_table_found found;
    void *context;
    struct wb_posting_block block;
    struct wb_buf last_key;
    uint64_t problems;
};

static void report(struct postings_verification *check, const char *file, uint64_t offset, const char *message)
{
    check->problems++;
    check->found(check->context, file, offset, message);
}

static void count_and_report(void *context, const char *file, uint64_t offset, const char *message)
{
    report(context, file, offset, message);
}

/* Whether the impacts of a block, its group and the list bound all postings of the block. */
static bool impacts_are_right(const struct wb_postlist *list, const struct wb_posting_block *block)
{
    const struct wb_postlist_own *own = list->own;

    for (uint32_t i = 0; own->blocks > 1 && i < block->count; i++) {
        uint32_t weight = wb_code_weight(block->code[i]);
        uint8_t length = own->set->lengths[block->docid[i]];
        if (!wb_impacts_cover(own->whole, weight, length) ||
            !wb_impacts_cover(own->impacts + IMPACTS_BYTES * (size_t)list->block, weight, length))
            return false;
        if (own->blocks > LIST_GROUP &&
            !wb_impacts_cover(own->groups + IMPACTS_BYTES * (size_t)(list->block / LIST_GROUP), weight, length))
            return false;
    }
    return true;
}

/* Reads a whole list. Returns an error if it is damaged. */
static int verify_list(struct postings_verification *check, struct wb_postlist *list)
{
    const struct wb_term *term = &list->own->term;
    uint64_t total = 0;
    int more;

    for (uint32_t number = 0; (more = wb_postlist_read(list, number, &check->block)) == 1; number++) {
        for (uint32_t i = 0; i < check->block.count; i++)
            total += check->block.occurrences[i];
        if (!impacts_are_right(list, &check->block))
            return wb_postlist_damaged(list, "the impacts");
    }
    if (more == 0 && total != term->total)
        return wb_postlist_damaged(list, "the numbers");
    return more;
}

static int verify_term(struct postings_verification *check, struct wb_slice key, const struct wb_term *term)
{
    struct wb_postlist *list = NULL;
    int err = 0;

    if (wb_slice_compare(wb_buf_slice(&check->last_key), key) >= 0)
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: its terms are not in order", check->set->dictionary.path);
    wb_buf_clear(&check->last_key);
    if (err == 0)
        err = wb_buf_append_slice(&check->last_key, key);
    if (err == 0)
        err = wb_postlist_open(check->set, term, &list);
    if (err == 0)
        err = verify_list(check, list);
    wb_postlist_close(list);
    return err;
}

static int verify_terms(struct postings_verification *check, uint64_t *terms_out)
{
    struct wb_terms *terms = NULL;
    struct wb_slice key;
    struct wb_term term;
    uint64_t seen = 0;
    int err = wb_terms_open(check->set, &terms), more = 0;

    while (err == 0 && (more = wb_terms_next(terms, &key, &term)) == 1) {
        seen++;
        err = verify_term(check, key, &term);
        if (err == 0)
            ++*terms_out;
        if (err == WB_E_CORRUPT) {
            report(check, check->set->dictionary.path, 0, wb_error_message());
            err = 0;
        }
    }
    if (err == 0 && more == WB_E_CORRUPT)
        report(check, check->set->dictionary.path, 0, wb_error_message());
    else if (err == 0 && more < 0)
        err = more;
    else if (err == 0 && seen != check->set->terms)
        report(check, check->set->dictionary.path, 0, "the number of terms is wrong");
    wb_terms_close(terms);
    return err;
}

int wb_postings_verify(const char *dir, const uint8_t *lengths, uint32_t docs, wb_table_found found, void *context,
                       uint64_t *terms_out)
{
    WB_CHECK(found != NULL);
    static const char *const files[][2] = {
        {"dictionary", DICTIONARY_KIND}, {"lists", LISTS_KIND}, {"positions", POSITIONS_KIND}};
    struct postings_verification check = {.found = found, .context = context, .block = WB_POSTING_BLOCK_INIT};
    int err = 0;

    *terms_out = 0;
    for (size_t i = 0; err == 0 && i < sizeof files / sizeof *files; i++) {
        char *path = wb_path_join(dir, files[i][0]);
        uint64_t bytes;
        err = path ? wb_blob_verify(path, files[i][1], count_and_report, &check, &bytes) : WB_E_NOMEM;
        wb_free(path);
    }
    if (err == 0)
        err = wb_postings_open(dir, lengths, docs, &check.set);
    if (err == 0)
        err = verify_terms(&check, terms_out);
    if (err == WB_E_CORRUPT || err == WB_E_NEWER) {
        /* What cannot even be opened was reported above, unless only its contents make no sense. */
        if (check.problems == 0)
            report(&check, dir, 0, wb_error_message());
        err = 0;
    }
    wb_postings_close(check.set);
    wb_posting_block_release(&check.block);
    wb_buf_release(&check.last_key);
    return err;
}
