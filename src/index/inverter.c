/*
 * inverter.c - documents in, a sorted run out.
 *
 *   terms     every exact word and every stem that the current documents have, with its key; found through a hash table
 *   slots     of the document that is being added: one for each of its terms, with its frequencies
 *   places    of that document: each occurrence of an exact word; those of one slot are linked
 *   forward   finished documents, one after the other: varint term, varint length, posting bytes (posting.h), ...
 *
 * An exact term remembers its stem in the language in which it was last stemmed. So for a word that has been seen
 * before, one lookup suffices, and the stem costs an addition per document. The flush sorts the terms by their keys
 * and the documents by their docids, and then deals the postings out: no comparison is ever made for a posting.
 */
#include "index/inverter.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "index/run.h"

#include <stdlib.h>

enum {
    NONE = UINT32_MAX,
    MEMORY_MIN = 1 << 20,
    POSTING_MAX = 1 + WB_FIELDS * WB_VARINT_MAX, /* without its positions */
};

struct term {
    struct wb_slice key; /* in the arena */
    uint32_t document;   /* the serial number of the last document that has it */
    uint32_t slot;       /* and its slot there */
    uint32_t stem;       /* of an exact term: the term of its stem; NONE if not known yet */
    uint32_t language;   /* in this language */
    uint32_t postings;   /* of this buffer */
};

struct term_entry {
    uint64_t hash;
    uint32_t term;
};

struct doc_slot {
    uint32_t term, stem;  /* stem: NONE if it has none, or if this is the slot of a stem */
    uint32_t first, last; /* of its places; NONE if there are none */
    uint32_t numbers[WB_FIELDS];
};

struct place {
    uint32_t next, position;
    uint8_t field;
};

/* A finished document. */
struct document {
    uint32_t docid;
    size_t begin, end; /* in forward */
};

/* Where a posting is, for the flush. */
struct dealt {
    uint32_t docid;
    uint32_t length;
    const char *bytes;
};

enum { INVERTER_MAGIC = 0x5742494e }; /* "WBIN" */

struct wb_inverter {
    uint32_t magic;
    size_t memory_bytes;
    uint64_t seed;
    struct wb_arena keys;
    size_t key_bytes;
    WB_MAP(struct term_entry) table;
    WB_VEC(struct term) terms;
    WB_VEC(struct doc_slot) slots;
    WB_VEC(struct place) places;
    WB_VEC(struct document) documents;
    struct wb_buf forward, posting;
    uint64_t postings;
    uint32_t serial; /* of the current document */
    uint32_t docid;
    uint32_t language;
    uint32_t stemless; /* the slot whose stem wb_inverter_stem() is to say */
    bool open;         /* a document has begun */
};

int wb_inverter_new(size_t memory_bytes, struct wb_inverter **inverter_out)
{
    struct wb_inverter *inverter = wb_alloc_zero(1, sizeof *inverter);

    *inverter_out = inverter;
    if (!inverter)
        return WB_E_NOMEM;
    inverter->magic = INVERTER_MAGIC;
    inverter->memory_bytes = memory_bytes > MEMORY_MIN ? memory_bytes : MEMORY_MIN;
    /* Strangers choose the words. Any number that they do not know will do. */
    inverter->seed = wb_hash64(&inverter, sizeof inverter) ^ (uintptr_t)&memory_bytes;
    inverter->table.map.seed = inverter->seed;
    return 0;
}

void wb_inverter_free(struct wb_inverter *inverter)
{
    if (!inverter)
        return;
    WB_CHECK(inverter->magic == INVERTER_MAGIC);
    inverter->magic = 0;
    wb_arena_release(&inverter->keys);
    wb_map_release(&inverter->table);
    wb_vec_release(&inverter->terms);
    wb_vec_release(&inverter->slots);
    wb_vec_release(&inverter->places);
    wb_vec_release(&inverter->documents);
    wb_buf_release(&inverter->forward);
    wb_buf_release(&inverter->posting);
    wb_free(inverter);
}

bool wb_inverter_full(const struct wb_inverter *inverter)
{
    WB_CHECK(inverter->magic == INVERTER_MAGIC);
    return inverter->forward.len + inverter->key_bytes +
               inverter->terms.count * (sizeof(struct term) + 2 * sizeof(struct term_entry)) +
               inverter->postings * sizeof(struct dealt) >=
           inverter->memory_bytes;
}

bool wb_inverter_empty(const struct wb_inverter *inverter)
{
    WB_CHECK(inverter->magic == INVERTER_MAGIC);
    return inverter->documents.count == 0;
}

/* ---- a document -------------------------------------------------------------------------------- */

void wb_inverter_begin(struct wb_inverter *inverter, uint32_t docid, unsigned language)
{
    WB_CHECK(inverter->magic == INVERTER_MAGIC && !inverter->open);
    WB_CHECK(inverter->serial < NONE);
    inverter->open = true;
    inverter->serial++;
    inverter->docid = docid;
    inverter->language = language;
    wb_vec_clear(&inverter->slots);
    wb_vec_clear(&inverter->places);
}

static int add_term(struct wb_inverter *inverter, struct wb_slice text, char space, uint64_t hash, uint32_t *term_out)
{
    char *key = wb_arena_take(&inverter->keys, text.len + WB_TERM_TAIL);
    struct term_entry *entry = key ? wb_map_add(&inverter->table, hash) : NULL;

    if (!entry)
        return WB_E_NOMEM;
    memcpy(key, text.ptr, text.len);
    key[text.len] = '\0';
    key[text.len + 1] = space;
    entry->term = *term_out = (uint32_t)inverter->terms.count;
    inverter->key_bytes += text.len + WB_TERM_TAIL;
    return wb_vec_push(&inverter->terms, (struct term){.key = wb_slice(key, text.len + WB_TERM_TAIL), .stem = NONE});
}

static int find_term(struct wb_inverter *inverter, struct wb_slice text, char space, uint32_t *term_out)
{
    uint64_t hash = wb_hash64_seeded(text.ptr, text.len, inverter->seed + (uint64_t)space);
    struct term_entry *entry = NULL;

    while ((entry = wb_map_next(&inverter->table, hash, entry))) {
        struct wb_slice key = inverter->terms.items[entry->term].key;
        if (key.len == text.len + WB_TERM_TAIL && key.ptr[key.len - 1] == space &&
            memcmp(key.ptr, text.ptr, text.len) == 0) {
            *term_out = entry->term;
            return 0;
        }
    }
    return add_term(inverter, text, space, hash, term_out);
}

/* The slot of a term in the current document. */
static int slot_of(struct wb_inverter *inverter, uint32_t term, struct doc_slot **slot_out)
{
    struct term *t = &inverter->terms.items[term];

    if (t->document != inverter->serial) {
        t->document = inverter->serial;
        t->slot = (uint32_t)inverter->slots.count;
        int err =
            wb_vec_push(&inverter->slots, (struct doc_slot){.term = term, .stem = NONE, .first = NONE, .last = NONE});
        if (err < 0)
            return err;
    }
    *slot_out = &inverter->slots.items[t->slot];
    return 0;
}

int wb_inverter_add(struct wb_inverter *inverter, struct wb_slice exact, bool stemmed, enum wb_field field,
                    uint32_t position)
{
    uint32_t term, at = (uint32_t)inverter->places.count;
    struct doc_slot *slot;

    WB_CHECK(inverter->open);
    WB_CHECK(field < WB_FIELDS);
    int err = find_term(inverter, exact, WB_TERM_EXACT, &term);
    if (err == 0)
        err = slot_of(inverter, term, &slot);
    if (err == 0)
        err = wb_vec_push(&inverter->places, (struct place){NONE, position, (uint8_t)field});
    if (err < 0)
        return err;
    bool first = slot->first == NONE;
    if (first)
        slot->first = at;
    else
        inverter->places.items[slot->last].next = at;
    slot->last = at;
    slot->numbers[field]++;
    if (!first || !stemmed)
        return 0;
    const struct term *t = &inverter->terms.items[term];
    inverter->stemless = t->slot;
    slot->stem = t->language == inverter->language ? t->stem : NONE;
    return slot->stem == NONE;
}

int wb_inverter_stem(struct wb_inverter *inverter, struct wb_slice stem)
{
    WB_CHECK(inverter->open && inverter->stemless < inverter->slots.count);
    struct doc_slot *slot = &inverter->slots.items[inverter->stemless];
    uint32_t found;
    int err = find_term(inverter, stem, WB_TERM_STEM, &found);
    if (err < 0)
        return err;
    slot->stem = found;
    inverter->terms.items[slot->term].stem = found;
    inverter->terms.items[slot->term].language = inverter->language;
    return 0;
}

/* Adds the frequencies of exact words to their stems. */
static int add_stems(struct wb_inverter *inverter)
{
    size_t exact = inverter->slots.count;

    for (size_t i = 0; i < exact; i++) {
        struct doc_slot *stem;
        if (inverter->slots.items[i].stem == NONE)
            continue;
        int err = slot_of(inverter, inverter->slots.items[i].stem, &stem);
        if (err < 0)
            return err;
        for (int f = 0; f < WB_FIELDS; f++)
            stem->numbers[f] += inverter->slots.items[i].numbers[f];
    }
    return 0;
}

static char *put_places(const struct wb_inverter *inverter, const struct doc_slot *slot, char *p)
{
    uint32_t last = 0;
    enum wb_space space = WB_SPACES;

    for (uint32_t at = slot->first; at != NONE; at = inverter->places.items[at].next) {
        const struct place *place = &inverter->places.items[at];
        if (wb_space_of_field(place->field) != space)
            last = 0;
        WB_CHECK(place->position >= last);
        space = wb_space_of_field(place->field);
        p += wb_put_varint(p, place->position - last);
        last = place->position;
    }
    return p;
}

static int put_slot(struct wb_inverter *inverter, const struct doc_slot *slot)
{
    unsigned mask = 0;
    size_t places = 0;

    for (int f = 0; f < WB_FIELDS; f++) {
        mask |= slot->numbers[f] ? 1u << f : 0;
        places += slot->first == NONE ? 0 : slot->numbers[f];
    }
    wb_buf_clear(&inverter->posting);
    int err = wb_buf_reserve(&inverter->posting, POSTING_MAX + places * WB_VARINT_MAX);
    if (err < 0)
        return err;
    char *begin = inverter->posting.ptr, *p = begin, head[2 * WB_VARINT_MAX];
    *p++ = (char)mask;
    for (int f = 0; f < WB_FIELDS; f++)
        if (slot->numbers[f])
            p += wb_put_varint(p, slot->numbers[f]);
    p = put_places(inverter, slot, p);
    size_t len = wb_put_varint(head, slot->term);
    len += wb_put_varint(head + len, (uint64_t)(p - begin));
    err = wb_buf_append(&inverter->forward, head, len);
    inverter->terms.items[slot->term].postings++;
    inverter->postings++;
    return err < 0 ? err : wb_buf_append(&inverter->forward, begin, (size_t)(p - begin));
}

int wb_inverter_end(struct wb_inverter *inverter)
{
    struct document document = {.docid = inverter->docid, .begin = inverter->forward.len};

    WB_CHECK(inverter->open);
    int err = add_stems(inverter);
    inverter->open = false;
    for (size_t i = 0; err == 0 && i < inverter->slots.count; i++)
        err = put_slot(inverter, &inverter->slots.items[i]);
    document.end = inverter->forward.len;
    return err < 0 ? err : wb_vec_push(&inverter->documents, document);
}

/* ---- flushing ---------------------------------------------------------------------------------- */

static int by_docid(const void *a, const void *b)
{
    const struct document *x = a, *y = b;

    return x->docid < y->docid ? -1 : x->docid > y->docid;
}

static int by_key(const void *a, const void *b)
{
    const struct term *const *x = a, *const *y = b;

    return wb_slice_compare((*x)->key, (*y)->key);
}

/* Deals the postings of all documents, which are in the order of docids, out to their terms: at[term] is the next. */
static void deal(const struct wb_inverter *inverter, uint64_t *at, struct dealt *dealt)
{
    const char *forward = inverter->forward.ptr;

    for (size_t i = 0; i < inverter->documents.count; i++) {
        const struct document *document = &inverter->documents.items[i];
        const char *p = forward + document->begin, *end = forward + document->end;
        while (p < end) {
            uint64_t term, length;
            bool ok = wb_get_varint(&p, end, &term) && wb_get_varint(&p, end, &length);
            WB_CHECK(ok && term < inverter->terms.count && length <= (uint64_t)(end - p));
            dealt[at[term]++] = (struct dealt){document->docid, (uint32_t)length, p};
            p += length;
        }
    }
}

static int write_term(struct wb_run_writer *run, const struct term *term, const struct dealt *dealt)
{
    uint64_t bytes = 0;
    uint32_t last = 0;
    char gap[WB_VARINT_MAX], *room;

    for (uint32_t i = 0; i < term->postings; i++) {
        WB_CHECK(i == 0 || dealt[i].docid > last);
        bytes += wb_put_varint(gap, dealt[i].docid - last) + dealt[i].length;
        last = dealt[i].docid;
    }
    int err = wb_run_term(run, term->key, term->postings, bytes);
    last = 0;
    for (uint32_t i = 0; err == 0 && i < term->postings; i++) {
        err = wb_run_room(run, WB_VARINT_MAX + dealt[i].length, &room);
        if (err < 0)
            return err;
        size_t len = wb_put_varint(room, dealt[i].docid - last);
        memcpy(room + len, dealt[i].bytes, dealt[i].length);
        wb_run_took(run, len + dealt[i].length);
        last = dealt[i].docid;
    }
    return err;
}

static void start_again(struct wb_inverter *inverter)
{
    wb_arena_clear(&inverter->keys);
    wb_map_clear(&inverter->table);
    wb_vec_clear(&inverter->terms);
    wb_vec_clear(&inverter->documents);
    wb_buf_clear(&inverter->forward);
    inverter->key_bytes = 0;
    inverter->postings = 0;
    inverter->serial = 0;
}

int wb_inverter_flush(struct wb_inverter *inverter, struct wb_run_writer *run)
{
    size_t terms = inverter->terms.count;

    WB_CHECK(inverter->magic == INVERTER_MAGIC && !inverter->open);
    const struct term **sorted = wb_alloc_zero(terms + 1, sizeof *sorted);
    uint64_t *at = wb_alloc_zero(terms + 1, sizeof *at);
    struct dealt *dealt = wb_alloc_zero(inverter->postings + 1, sizeof *dealt);
    int err = sorted && at && dealt ? 0 : WB_E_NOMEM;
    uint64_t total = 0;
    if (err < 0)
        goto done;
    for (size_t i = 0; i < terms; i++) {
        sorted[i] = &inverter->terms.items[i];
        at[i] = total;
        total += inverter->terms.items[i].postings;
    }
    WB_CHECK(total == inverter->postings);
    if (inverter->documents.count)
        qsort(inverter->documents.items, inverter->documents.count, sizeof *inverter->documents.items, by_docid);
    qsort(sorted, terms, sizeof *sorted, by_key);
    deal(inverter, at, dealt);
    for (size_t i = 0; err == 0 && i < terms; i++) {
        size_t term = (size_t)(sorted[i] - inverter->terms.items);
        err = write_term(run, sorted[i], dealt + at[term] - sorted[i]->postings);
    }
    start_again(inverter);
done:
    wb_free(sorted);
    wb_free(at);
    wb_free(dealt);
    return err;
}
