/*
 * pageedit.c - edits of pages as bytes, while they are being sorted.
 *
 *   lead     1 byte: kind in the low 4 bits, HAS_ID, and how the URL is spelled
 *   id       varint, with HAS_ID
 *   URL      text, if the SURT (the key of the sorter) does not give it; never for ADD..., whose row has it
 *   KNOWN            varint: depth * 4 + hint * 2 + wanted; with hint, the time of the change relative to the edit's
 *   PUSH, EXPUNGE    varint: which
 *   VISIT            outcome, a word of bits, and the fields that the bits announce
 *   ADD...           the row (pagerow.c)
 *
 * These bytes do not outlive a merge, so they have no version. They are checked all the same when they are read,
 * because temporary files can be damaged too.
 */
#include "webdb/pageedit.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fields.h"
#include "webdb/pagerow.h"
#include "webdb/spelling.h"

enum lead_bits {
    LEAD_KIND = 15,
    LEAD_HAS_ID = 1 << 4,
    LEAD_SPELLING_SHIFT = 5,
};

_Static_assert((int)WB_PAGEEDIT_ADD_ABSENT <= (int)LEAD_KIND, "a kind fits into the lead");
_Static_assert((int)WB_SPELLING_TEXT << (int)LEAD_SPELLING_SHIFT == 128, "a lead is one byte");
_Static_assert((int)LEAD_HAS_ID == LEAD_KIND + 1, "this bit follows the kind");
_Static_assert((int)LEAD_HAS_ID << 1 == 1 << LEAD_SPELLING_SHIFT, "and the spelling follows this bit");
_Static_assert(WB_PAGEEDIT_TARGET > 0, "a lead of zero is not an edit");
_Static_assert(WB_PAGEEDIT_SUFFIX == 1 + 8, "a zero and a time follow the SURT in the key");

enum known_bits { KNOWN_WANTED = 1, KNOWN_HINT = 2, KNOWN_DEPTH_SHIFT = 2 };

enum visit_bits {
    VISIT_CONTENT = 1 << 0,
    VISIT_STATUS = 1 << 1,
    VISIT_DEPTH = 1 << 2,
    VISIT_BYTES = 1 << 3,
    VISIT_LIFETIME = 1 << 4,
    VISIT_TYPE = 1 << 5,
    VISIT_TOOK = 1 << 6,
    VISIT_ETAG = 1 << 7,
    VISIT_MODIFIED = 1 << 8,
    VISIT_LOCATION = 1 << 9,
    VISIT_REASON = 1 << 10,
    VISIT_HOPS = 1 << 11,
    VISIT_BITS = (1 << 12) - 1,
};
_Static_assert(VISIT_HOPS << 1 == VISIT_BITS + 1, "every bit of a visit has a meaning");

enum {
    CONTENT_BYTES = WB_MD5_BYTES + 16,
    FIXED_MAX = 20 * WB_VARINT_MAX + CONTENT_BYTES,
};
_Static_assert((int)VISIT_BITS == 2 * VISIT_HOPS - 1, "VISIT_BITS has all bits up to the last one");
_Static_assert((KNOWN_WANTED | KNOWN_HINT) == (1 << KNOWN_DEPTH_SHIFT) - 1, "the depth follows the two bits");

/* Whether the value of such an edit ends with a row. */
static bool holds_row(unsigned kind)
{
    return kind == WB_PAGEEDIT_ADD || kind == WB_PAGEEDIT_ADD_SCORE || kind == WB_PAGEEDIT_ADD_ABSENT;
}

static uint32_t count_max(unsigned kind)
{
    WB_CHECK(kind == WB_PAGEEDIT_PUSH || kind == WB_PAGEEDIT_EXPUNGE);
    return kind == WB_PAGEEDIT_PUSH ? WB_PUSH_GONE : WB_EXPUNGE_EVICTED;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The bits of the fields that are not zero or empty. */
static unsigned visit_word(const struct wb_edit_page *visit)
{
    unsigned word = 0;

    word |= visit->has_content ? VISIT_CONTENT : 0u;
    word |= visit->status ? VISIT_STATUS : 0u;
    word |= visit->depth.links ? VISIT_DEPTH : 0u;
    word |= visit->bytes ? VISIT_BYTES : 0u;
    word |= visit->lifetime ? VISIT_LIFETIME : 0u;
    word |= visit->type.len ? VISIT_TYPE : 0u;
    word |= visit->took_ms ? VISIT_TOOK : 0u;
    word |= visit->etag.len ? VISIT_ETAG : 0u;
    word |= visit->modified.len ? VISIT_MODIFIED : 0u;
    word |= visit->location.len ? VISIT_LOCATION : 0u;
    word |= visit->reason.len ? VISIT_REASON : 0u;
    word |= visit->hops ? VISIT_HOPS : 0u;
    WB_CHECK((word & ~(unsigned)VISIT_BITS) == 0);
    return word;
}

static char *put_visit(char *p, const struct wb_edit_page *visit)
{
    unsigned word = visit_word(visit);

    WB_CHECK(visit->outcome >= WB_OUTCOME_STORED);
    WB_CHECK(visit->outcome <= WB_OUTCOME_ROBOTS);
    WB_CHECK(visit->depth.need == 0); /* webdb counts links only */
    *p++ = (char)visit->outcome;
    p = wb_fields_put(p, word);
    if (word & VISIT_CONTENT) {
        memcpy(p, visit->md5, WB_MD5_BYTES);
        wb_put64(p + WB_MD5_BYTES, visit->simhash);
        wb_put64(p + WB_MD5_BYTES + 8, visit->title_hash);
        p += CONTENT_BYTES;
    }
    if (word & VISIT_STATUS)
        p = wb_fields_put(p, visit->status);
    if (word & VISIT_DEPTH)
        p = wb_fields_put(p, visit->depth.links);
    if (word & VISIT_BYTES)
        p = wb_fields_put(p, visit->bytes);
    if (word & VISIT_LIFETIME)
        p = wb_fields_put(p, visit->lifetime);
    if (word & VISIT_TYPE)
        p = wb_fields_put_text(p, visit->type);
    if (word & VISIT_TOOK)
        p = wb_fields_put(p, visit->took_ms);
    if (word & VISIT_ETAG)
        p = wb_fields_put_text(p, visit->etag);
    if (word & VISIT_MODIFIED)
        p = wb_fields_put_text(p, visit->modified);
    if (word & VISIT_LOCATION)
        p = wb_fields_put_text(p, visit->location);
    if (word & VISIT_REASON)
        p = wb_fields_put_text(p, visit->reason);
    if (word & VISIT_HOPS)
        *p++ = (char)visit->hops;
    return p;
}

static char *put_known(char *p, const struct wb_pageedit *edit)
{
    unsigned bits = (edit->hint_ms ? KNOWN_HINT : 0u) | (edit->wanted ? KNOWN_WANTED : 0u);

    WB_CHECK(edit->kind == WB_PAGEEDIT_KNOWN);
    p = wb_fields_put(p, (uint64_t)edit->depth << KNOWN_DEPTH_SHIFT | bits);
    return edit->hint_ms ? wb_fields_put_time(p, edit->hint_ms, edit->time_ms) : p;
}

int wb_pageedit_encode(const struct wb_pageedit *edit, struct wb_buf *value_out)
{
    const struct wb_edit_page *visit = &edit->visit;
    size_t begin = value_out->len, text = edit->url.len;
    bool row = holds_row(edit->kind);

    WB_CHECK(edit->kind >= WB_PAGEEDIT_TARGET);
    WB_CHECK(edit->kind <= WB_PAGEEDIT_ADD_ABSENT);
    WB_CHECK(row || edit->url.ptr != NULL);
    WB_CHECK(value_out->len <= value_out->cap);
    if (edit->kind == WB_PAGEEDIT_VISIT)
        text += visit->type.len + visit->etag.len + visit->modified.len + visit->location.len + visit->reason.len;
    int err = wb_buf_reserve(value_out, FIXED_MAX + text);
    if (err < 0)
        return err;
    unsigned spelling = row ? 0 : wb_spelling_of(edit->surt, edit->url);
    WB_CHECK(spelling <= WB_SPELLING_TEXT); /* TEXT never comes with another bit */
    char *p = value_out->ptr + begin;
    unsigned has_id = edit->id != WB_PAGEEDIT_NO_ID ? LEAD_HAS_ID : 0u;
    *p++ = (char)((unsigned)edit->kind | has_id | spelling << LEAD_SPELLING_SHIFT);
    if (edit->id != WB_PAGEEDIT_NO_ID)
        p = wb_fields_put(p, edit->id);
    if (spelling & WB_SPELLING_TEXT)
        p = wb_fields_put_text(p, edit->url);
    if (edit->kind == WB_PAGEEDIT_KNOWN) {
        p = put_known(p, edit);
    } else if (edit->kind == WB_PAGEEDIT_VISIT) {
        p = put_visit(p, visit);
    } else if (edit->kind == WB_PAGEEDIT_PUSH || edit->kind == WB_PAGEEDIT_EXPUNGE) {
        WB_CHECK(edit->count >= 1);
        WB_CHECK(edit->count <= count_max(edit->kind));
        p = wb_fields_put(p, edit->count);
    }
    value_out->len = (size_t)(p - value_out->ptr);
    WB_CHECK(value_out->len <= begin + FIXED_MAX + text); /* it fits into what was reserved */
    if (row)
        err = wb_pagerow_encode(&edit->row, value_out);
    if (err < 0)
        value_out->len = begin;
    WB_CHECK(err < 0 || value_out->len > begin);
    return err;
}

/* ---- reading ------------------------------------------------------------------------------- */

static void take_visit(struct wb_fields *r, struct wb_edit_page *visit)
{
    const char *p = wb_fields_take_bytes(r, 1);

    WB_CHECK(!visit->has_content);
    visit->outcome = p ? (uint8_t)*p : 0;
    r->ok = r->ok && visit->outcome >= WB_OUTCOME_STORED && visit->outcome <= WB_OUTCOME_ROBOTS;
    unsigned word = (unsigned)wb_fields_take(r, VISIT_BITS);
    if (word & VISIT_CONTENT && (p = wb_fields_take_bytes(r, CONTENT_BYTES))) {
        visit->has_content = true;
        memcpy(visit->md5, p, WB_MD5_BYTES);
        visit->simhash = wb_get64(p + WB_MD5_BYTES);
        visit->title_hash = wb_get64(p + WB_MD5_BYTES + 8);
    }
    if (word & VISIT_STATUS)
        visit->status = (uint16_t)wb_fields_take(r, UINT16_MAX);
    if (word & VISIT_DEPTH)
        visit->depth.links = (uint16_t)wb_fields_take(r, UINT16_MAX);
    if (word & VISIT_BYTES)
        visit->bytes = wb_fields_take(r, UINT64_MAX);
    if (word & VISIT_LIFETIME)
        visit->lifetime = (uint32_t)wb_fields_take(r, UINT32_MAX);
    if (word & VISIT_TYPE)
        visit->type = wb_fields_take_text(r);
    if (word & VISIT_TOOK)
        visit->took_ms = (uint32_t)wb_fields_take(r, UINT32_MAX);
    if (word & VISIT_ETAG)
        visit->etag = wb_fields_take_text(r);
    if (word & VISIT_MODIFIED)
        visit->modified = wb_fields_take_text(r);
    if (word & VISIT_LOCATION)
        visit->location = wb_fields_take_text(r);
    if (word & VISIT_REASON)
        visit->reason = wb_fields_take_text(r);
    if (word & VISIT_HOPS) {
        p = wb_fields_take_bytes(r, 1);
        visit->hops = p ? (uint8_t)*p : 0;
    }
    WB_CHECK(!r->ok || visit->outcome >= WB_OUTCOME_STORED);
    WB_CHECK(!r->ok || visit->outcome <= WB_OUTCOME_ROBOTS);
}

static void take_known(struct wb_fields *r, struct wb_pageedit *edit)
{
    uint64_t lead = wb_fields_take(r, (uint64_t)UINT16_MAX << KNOWN_DEPTH_SHIFT | KNOWN_HINT | KNOWN_WANTED);

    WB_CHECK(edit->kind == WB_PAGEEDIT_KNOWN);
    WB_CHECK(edit->hint_ms == 0);
    edit->wanted = lead & KNOWN_WANTED;
    edit->depth = (uint16_t)(lead >> KNOWN_DEPTH_SHIFT);
    if (lead & KNOWN_HINT)
        edit->hint_ms = wb_fields_take_time(r, edit->time_ms);
}

static void empty_edit(struct wb_pageedit *edit, struct wb_slice surt, int64_t time_ms)
{
    memset(edit, 0, sizeof *edit);
    edit->surt = surt;
    edit->time_ms = time_ms;
    edit->id = WB_PAGEEDIT_NO_ID;
    edit->url = WB_SLICE_EMPTY;
    edit->visit.url = edit->visit.type = edit->visit.reason = WB_SLICE_EMPTY;
    edit->visit.etag = edit->visit.modified = edit->visit.location = WB_SLICE_EMPTY;
    edit->row.url = edit->row.surt = edit->row.etag = WB_SLICE_EMPTY;
    edit->row.modified = edit->row.type = edit->row.location = WB_SLICE_EMPTY;
}

/* Reads everything after the URL. */
static int take_body(struct wb_fields *r, struct wb_buf *mem, struct wb_pageedit *edit)
{
    WB_CHECK(edit->kind >= WB_PAGEEDIT_TARGET);
    WB_CHECK(edit->kind <= WB_PAGEEDIT_ADD_ABSENT);
    WB_CHECK(r->at <= r->end);
    if (holds_row(edit->kind)) {
        int err = wb_pagerow_decode(edit->surt, wb_slice(r->at, (size_t)(r->end - r->at)), mem, &edit->row);
        r->at = r->end;
        edit->url = edit->row.url;
        return err;
    }
    if (edit->kind == WB_PAGEEDIT_KNOWN) {
        take_known(r, edit);
    } else if (edit->kind == WB_PAGEEDIT_VISIT) {
        take_visit(r, &edit->visit);
        edit->visit.url = edit->url;
    } else if (edit->kind == WB_PAGEEDIT_PUSH || edit->kind == WB_PAGEEDIT_EXPUNGE) {
        edit->count = (uint32_t)wb_fields_take(r, count_max(edit->kind));
        r->ok = r->ok && edit->count >= 1;
    }
    return 0;
}

int wb_pageedit_decode(struct wb_slice surt, int64_t time_ms, struct wb_slice value, struct wb_buf *mem,
                       struct wb_pageedit *edit_out)
{
    struct wb_fields r = wb_fields_of(value);
    int err = WB_E_CORRUPT;

    WB_CHECK(value.ptr != NULL);
    WB_CHECK(mem != NULL);
    empty_edit(edit_out, surt, time_ms);
    wb_buf_clear(mem);
    const char *p = wb_fields_take_bytes(&r, 1);
    unsigned lead = p ? (uint8_t)*p : 0, spelling = lead >> LEAD_SPELLING_SHIFT, kind = lead & LEAD_KIND;
    if (kind < WB_PAGEEDIT_TARGET || kind > WB_PAGEEDIT_ADD_ABSENT)
        goto done;
    if ((holds_row(kind) && spelling) || spelling > WB_SPELLING_TEXT)
        goto done;
    edit_out->kind = (enum wb_pageedit_kind)kind;
    if (lead & LEAD_HAS_ID)
        edit_out->id = (uint32_t)wb_fields_take(&r, WB_PAGEEDIT_NO_ID - 1);
    if (spelling & WB_SPELLING_TEXT) {
        edit_out->url = wb_fields_take_text(&r);
    } else if (!holds_row(kind)) {
        if ((err = wb_spelling_url(surt, spelling, 0, mem)) < 0)
            goto done;
        edit_out->url = wb_buf_slice(mem);
    }
    err = take_body(&r, mem, edit_out);
    if (err == 0 && (!r.ok || r.at != r.end))
        err = WB_E_CORRUPT;
done:
    if (err == 0) {
        WB_CHECK(edit_out->url.ptr != NULL);
        WB_CHECK(edit_out->time_ms == time_ms);
        return 0;
    }
    empty_edit(edit_out, surt, time_ms);
    if (err != WB_E_CORRUPT)
        return err;
    return wb_fail(err, "%.*s: an edit of a page is damaged", surt.len > 160 ? 160 : (int)surt.len, surt.ptr);
}
