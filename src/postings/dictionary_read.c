/*
 * dictionary_read.c - finds terms in the dictionary and walks through it; see dictionary.h.
 *
 * Nothing is read before the piece of the file that holds it has matched its checksum, and even then every length is
 * checked.
 */
#include "postings/dictionary.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"

static int damaged(const struct wb_postings *set)
{
    return wb_fail(WB_E_CORRUPT, "%s is damaged: its terms make no sense", set->dictionary.path);
}

int wb_dictionary_check(struct wb_postings *set)
{
    const struct wb_blob *blob = &set->dictionary;
    const char *foot = blob->data + blob->bytes - DICTIONARY_FOOT_BYTES;

    if (blob->bytes < DICTIONARY_FOOT_BYTES)
        return damaged(set);
    int err = wb_blob_check(blob, blob->bytes - DICTIONARY_FOOT_BYTES, DICTIONARY_FOOT_BYTES);
    if (err < 0)
        return err;
    set->terms = wb_get64(foot + 8);
    set->pages = wb_get64(foot + 16);
    set->top_at = wb_get64(foot + 24);
    uint64_t room = blob->bytes - DICTIONARY_FOOT_BYTES;
    unsigned format = wb_mark_format(foot, DICTIONARY_FOOT_MAGIC);
    if (format > 1)
        return wb_fail_format(blob->path, format, 1);
    if (format != 1 || set->top_at > room || set->pages > (room - set->top_at) / 12)
        return damaged(set);
    if (wb_get64(foot + 32) != set->lists.bytes || wb_get64(foot + 40) != set->positions.bytes)
        return wb_fail(WB_E_CORRUPT, "%s does not belong to its lists: their sizes differ", blob->path);
    return 0;
}

/* ---- the top --------------------------------------------------------------------------------------- */

/* The key of a page. Returns false if it makes no sense. */
static bool page_key(const struct wb_postings *set, uint64_t page, struct wb_slice *key_out)
{
    WB_CHECK(page < set->pages);
    const char *ends = set->dictionary.data + set->top_at + 8 * set->pages, *keys = ends + 4 * set->pages;
    const char *foot = set->dictionary.data + set->dictionary.bytes - DICTIONARY_FOOT_BYTES;
    uint64_t start = page ? wb_get32(ends + 4 * (page - 1)) : 0, end = wb_get32(ends + 4 * page);

    if (start > end || end > (uint64_t)(foot - keys))
        return false;
    *key_out = wb_slice(keys + start, (size_t)(end - start));
    return true;
}

/* The last page whose key is not greater than this one; 0 if there is none. */
static int find_page(const struct wb_postings *set, struct wb_slice key, uint64_t *page_out)
{
    uint64_t low = 0, high = set->pages;
    int err = wb_blob_check(&set->dictionary, set->top_at, set->dictionary.bytes - set->top_at);

    *page_out = 0;
    if (err < 0)
        return err;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        struct wb_slice found;
        if (!page_key(set, middle, &found))
            return damaged(set);
        if (wb_slice_compare(found, key) <= 0)
            low = middle;
        else
            high = middle;
    }
    *page_out = low;
    return 0;
}

/* ---- walking ------------------------------------------------------------------------------------------ */

struct wb_terms {
    struct wb_postings *set;
    uint64_t page;                  /* the number of the current page */
    const char *start, *end;        /* its bytes; NULL: none is loaded yet */
    const char *p;                  /* the next term */
    uint32_t restarts;              /* restart points of the page */
    uint32_t restart;               /* the number of the next restart point */
    uint64_t list_at, positions_at; /* where the next list and positions are */
    char key[WB_TERM_MAX];
    size_t key_len;
    struct wb_term term; /* the last one that is not an alias */
    bool has_term;       /* whether there is such a one in this page */
    bool stay;           /* wb_terms_next() returns the current term once more */
};

int wb_terms_open(struct wb_postings *set, struct wb_terms **terms_out)
{
    struct wb_terms *terms = wb_alloc_zero(1, sizeof *terms);

    *terms_out = terms;
    if (!terms)
        return WB_E_NOMEM;
    terms->set = set;
    return 0;
}

void wb_terms_close(struct wb_terms *terms)
{
    wb_free(terms);
}

/* Loads a page and moves before its first term. */
static int load_page(struct wb_terms *terms, uint64_t page)
{
    const struct wb_postings *set = terms->set;
    const struct wb_blob *blob = &set->dictionary;
    uint64_t start, end;
    int err;

    WB_CHECK(page < set->pages);
    err = wb_blob_check(blob, set->top_at, 8 * set->pages);
    if (err < 0)
        return err;
    start = wb_get64(blob->data + set->top_at + 8 * page);
    end = page + 1 < set->pages ? wb_get64(blob->data + set->top_at + 8 * (page + 1)) : set->top_at;
    if (start > end || end > set->top_at || end - start < DICTIONARY_PAGE_HEAD)
        return damaged(set);
    err = wb_blob_check(blob, start, end - start);
    if (err < 0)
        return err;
    terms->page = page;
    terms->start = blob->data + start;
    terms->end = blob->data + end;
    terms->restarts = wb_get32(terms->start);
    if (terms->restarts == 0 || terms->restarts > (end - start - DICTIONARY_PAGE_HEAD) / 4)
        return damaged(set);
    terms->p = terms->start + DICTIONARY_PAGE_HEAD + 4 * (size_t)terms->restarts;
    terms->list_at = wb_get64(terms->p - 16);
    terms->positions_at = wb_get64(terms->p - 8);
    terms->restart = 0;
    terms->key_len = 0;
    terms->has_term = terms->stay = false;
    return 0;
}

/* The whole key of a term at a restart point, and the address behind it; false if it makes no sense. */
static bool restart_key(const struct wb_terms *terms, uint32_t restart, struct wb_slice *key_out)
{
    WB_CHECK(restart < terms->restarts);
    uint32_t at = wb_get32(terms->start + 4 + 4 * (size_t)restart);
    const char *p = terms->start + at;
    uint64_t len;

    if (at < DICTIONARY_PAGE_HEAD + 4 * (size_t)terms->restarts || at >= (size_t)(terms->end - terms->start) ||
        !wb_get_varint(&p, terms->end, &len) || len == 0 || len > WB_TERM_MAX || len > (size_t)(terms->end - p))
        return false;
    *key_out = wb_slice(p, (size_t)len);
    return true;
}

/* Reads the key of the next term. */
static bool read_key(struct wb_terms *terms)
{
    uint64_t shared, fresh, list_at, positions_at;
    struct wb_slice key;

    if (terms->restart < terms->restarts &&
        terms->p == terms->start + wb_get32(terms->start + 4 + 4 * (size_t)terms->restart)) {
        const char *bases = terms->start + 4 + 4 * (size_t)terms->restarts;
        if (!restart_key(terms, terms->restart++, &key))
            return false;
        terms->p = key.ptr + key.len;
        if (!wb_get_varint(&terms->p, terms->end, &list_at) || !wb_get_varint(&terms->p, terms->end, &positions_at))
            return false;
        terms->list_at = wb_get64(bases) + list_at;
        terms->positions_at = wb_get64(bases + 8) + positions_at;
        memcpy(terms->key, key.ptr, key.len);
        terms->key_len = key.len;
        return true;
    }
    if (!wb_get_varint(&terms->p, terms->end, &shared) || !wb_get_varint(&terms->p, terms->end, &fresh) ||
        shared > terms->key_len || fresh > WB_TERM_MAX - shared || fresh > (size_t)(terms->end - terms->p))
        return false;
    memcpy(terms->key + shared, terms->p, (size_t)fresh);
    terms->key_len = (size_t)(shared + fresh);
    terms->p += fresh;
    return true;
}

/* Reads the next term of the page. Returns 1, 0 at the end of the page, or an error. */
static int read_term(struct wb_terms *terms)
{
    if (terms->p >= terms->end)
        return 0;
    if (!read_key(terms))
        return damaged(terms->set);
    switch (wb_entry_get(&terms->p, terms->end, &terms->term)) {
    case ENTRY_ALIAS: /* of the list, but not of its positions */
        terms->term.positions = false;
        terms->term.positions_bytes = 0;
        return terms->has_term ? 1 : damaged(terms->set);
    case ENTRY_LIST:
        terms->term.list_at = terms->list_at;
        terms->term.positions_at = terms->positions_at;
        terms->list_at += terms->term.list_bytes;
        terms->positions_at += terms->term.positions_bytes;
        /* fall through */
    case ENTRY_INLINED:
        terms->has_term = true;
        return 1;
    default:
        return damaged(terms->set);
    }
}

/* Moves to the last restart point of the page whose key is not greater than this one. */
static int seek_restart(struct wb_terms *terms, struct wb_slice key)
{
    uint32_t low = 0, high = terms->restarts;
    struct wb_slice found;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (!restart_key(terms, middle, &found))
            return damaged(terms->set);
        if (wb_slice_compare(found, key) <= 0)
            low = middle;
        else
            high = middle;
    }
    if (!restart_key(terms, low, &found))
        return damaged(terms->set);
    terms->p = terms->start + wb_get32(terms->start + 4 + 4 * (size_t)low);
    terms->restart = low;
    terms->key_len = 0;
    terms->has_term = false;
    return 0;
}

int wb_terms_seek(struct wb_terms *terms, struct wb_slice key)
{
    uint64_t page;
    int err, more = 0;

    terms->start = NULL;
    terms->stay = false;
    if (terms->set->pages == 0)
        return 0;
    err = find_page(terms->set, key, &page);
    if (err == 0)
        err = load_page(terms, page);
    if (err == 0)
        err = seek_restart(terms, key);
    while (err == 0 && (more = read_term(terms)) == 1)
        if (wb_slice_compare(wb_slice(terms->key, terms->key_len), key) >= 0) {
            terms->stay = true;
            break;
        }
    if (err == 0 && more < 0)
        err = more;
    if (err < 0)
        terms->start = NULL;
    return err;
}

int wb_terms_next(struct wb_terms *terms, struct wb_slice *key_out, struct wb_term *term_out)
{
    int more = terms->stay;

    terms->stay = false;
    if (!more && terms->start)
        more = read_term(terms);
    while (more == 0) { /* at the end of a page, or before the first one */
        uint64_t page = terms->start ? terms->page + 1 : 0;
        if (page >= terms->set->pages)
            return 0;
        more = load_page(terms, page);
        if (more == 0)
            more = read_term(terms);
        if (more == 0)
            more = damaged(terms->set); /* a page has at least one term */
    }
    if (more < 0)
        return more;
    *key_out = wb_slice(terms->key, terms->key_len);
    *term_out = terms->term;
    return 1;
}

int wb_postings_find(struct wb_postings *set, struct wb_slice key, struct wb_term *term_out)
{
    struct wb_terms terms;
    int err;

    *term_out = (struct wb_term){0};
    if (key.len == 0 || key.len > WB_TERM_MAX)
        return 0;
    terms.set = set;
    err = wb_terms_seek(&terms, key);
    if (err < 0)
        return err;
    if (!terms.stay || !wb_slice_equal(wb_slice(terms.key, terms.key_len), key))
        return 0;
    *term_out = terms.term;
    return 1;
}
