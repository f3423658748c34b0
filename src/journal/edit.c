/*
 * edit.c - turns one record of the journal into bytes and back. It never touches a file.
 *
 * The head, 40 bytes, numbers little-endian:
 *
 *   0        4          8      9      12         16            24       32      40
 *   +--------+----------+------+------+----------+-------------+--------+-------+--------- -  -
 *   | length | checksum | kind | zero | prev.log | prev.offset | site   | time  | payload
 *   +--------+----------+------+------+----------+-------------+--------+-------+--------- -  -
 *
 *   length    of the whole record, in bytes
 *   checksum  wb_hash32 of everything after it, xor wb_edit_salt() of the writer and the record's offset
 *   prev      the place of the site's previous record; both zero if there is none
 *   time      in milliseconds since 1970 UTC
 *
 * The payload, where v is a varint, z a zigzag varint, and s a varint length followed by that many bytes:
 *
 *   PAGE      1 byte outcome, 1 byte flags (1: content), v status, depth, hops, lifetime, took, bytes
 *             if flag 1 is set: 16 bytes md5, 8 bytes simhash, 8 bytes title_hash
 *             s url, type, reason, etag, modified, location, then LINKS
 *   RULES     v status, z expires, s reason, s text
 *   others    v count (SEEDS: depth), z until, s text, then LINKS
 *   LINKS     v number of links, v number of links left out, then the links, up to the end of the record
 *   a link    1 byte: bits 0-3 tag (15: the tag is in the next byte), 4-5 flags, 6: z modified follows,
 *             7: s anchor follows
 *             v number of bytes that its URL shares with the URL of the link before it (the first link: with the page's
 *             own URL, or the text of the record), s the rest of its URL
 *
 * A record is valid if and only if its length and checksum are right, its kind and outcome are known, all numbers fit
 * their members of struct wb_edit, a depth is what wb_depth_code() writes, and its parts end exactly where the record
 * ends.
 */
#include "journal/edit.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/hash.h"

enum {
    CHECK_AT = 4,
    KIND_AT = 8,
    PREV_LOG_AT = 12,
    PREV_OFFSET_AT = 16,
    SITE_AT = 24,
    TIME_AT = 32,

    PAGE_CONTENT = 1,                            /* a flag: digests of the content follow */
    PAGE_CONTENT_BYTES = WB_MD5_BYTES + 16,
    PAGE_FIXED_MAX = 2 + PAGE_CONTENT_BYTES + 14 * WB_VARINT_MAX, /* of a page, without its texts and links */

    VALIDATOR_MAX = 1024,
    ANCHOR_MAX = 255,
    LINK_TAG = 15,
    LINK_FLAGS_SHIFT = 4,
    LINK_FLAGS = 3,
    LINK_MODIFIED = 1 << 6,
    LINK_ANCHOR = 1 << 7,
    LINK_FIXED_MAX = 2 + 4 * WB_VARINT_MAX, /* of a link, without the bytes of its anchor and URL */
    LINK_BYTES_MIN = 3,
};

_Static_assert(CHECK_AT == 4 && KIND_AT == CHECK_AT + 4, "the checksum covers everything after itself");
_Static_assert(PREV_LOG_AT == KIND_AT + 4 && PREV_OFFSET_AT == PREV_LOG_AT + 4, "kind and zeros fill four bytes");
_Static_assert(SITE_AT == PREV_OFFSET_AT + 8 && TIME_AT == SITE_AT + 8, "prev, site and time follow each other");
_Static_assert(TIME_AT + 8 == WB_EDIT_HEAD_BYTES, "the time ends the head");
_Static_assert((WB_PAGELINK_FOLLOW | WB_PAGELINK_NOFOLLOW) == LINK_FLAGS, "the flags of a link have two bits");
_Static_assert((LINK_TAG | LINK_FLAGS << LINK_FLAGS_SHIFT | LINK_MODIFIED | LINK_ANCHOR) == 0xff,
               "a link starts with one byte, of which all bits are used");
_Static_assert(WB_PAGELINK_TAG_SITEMAP < LINK_TAG, "the journal's own tag takes no second byte");
_Static_assert(WB_EDIT_VISIT == 1 && WB_EDIT_BATCH == 12, "kinds are numbers on disk: append new ones, never renumber");
_Static_assert(WB_OUTCOME_STORED == 1 && WB_OUTCOME_ROBOTS == 9, "outcomes are numbers on disk too");

uint64_t wb_edit_site(struct wb_slice name)
{
    return wb_hash64(name.ptr, name.len);
}

/* A validator as received. One that is absurdly long is left out, not cut: half a validator is a wrong one. */
static struct wb_slice validator(struct wb_slice head, const char *name)
{
    struct wb_slice value;

    return wb_http_header(head, name, &value) && value.len <= VALIDATOR_MAX ? value : WB_SLICE_EMPTY;
}

void wb_edit_page_describe(struct wb_edit_page *edit, const struct wb_page *page, const struct wb_pagefacts *facts)
{
    WB_CHECK(page->digested);
    WB_CHECK(page->url.len > 0);
    edit->links = facts->links;
    edit->link_count = facts->link_count;
    edit->has_content = true;
    memcpy(edit->md5, page->md5, WB_MD5_BYTES);
    edit->simhash = facts->simhash;
    edit->title_hash = facts->title_hash;
    edit->type = page->type;
    edit->etag = validator(page->head, "etag");
    edit->modified = validator(page->head, "last-modified");
}

static bool kind_is_known(unsigned kind)
{
    return kind >= WB_EDIT_VISIT && kind <= WB_EDIT_BATCH;
}

static bool outcome_is_known(unsigned outcome)
{
    return outcome >= WB_OUTCOME_STORED && outcome <= WB_OUTCOME_ROBOTS;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Everything below writes into room that was reserved; this takes over what was written there. */
static void take_written(struct wb_buf *out, const char *end)
{
    WB_CHECK(end >= out->ptr + out->len);
    WB_CHECK(end <= out->ptr + out->cap);
    out->len = (size_t)(end - out->ptr);
}

/* How many bytes two URLs have in common at their start. Compares eight at a time. */
static size_t shared_bytes(struct wb_slice a, struct wb_slice b)
{
    size_t max = a.len < b.len ? a.len : b.len, n = 0;

    while (n + 8 <= max) {
        uint64_t differ = wb_get64(a.ptr + n) ^ wb_get64(b.ptr + n);
        if (differ)
            return n + (size_t)__builtin_ctzll(differ) / 8;
        n += 8;
    }
    while (n < max && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

/* Cuts a long anchor, between characters of UTF-8 and not inside one. */
static struct wb_slice cut_anchor(struct wb_slice anchor)
{
    if (anchor.len > ANCHOR_MAX) {
        size_t len = ANCHOR_MAX;
        while (len > ANCHOR_MAX - 4 && ((uint8_t)anchor.ptr[len] & 0xc0) == 0x80)
            len--;
        anchor.len = len;
        WB_CHECK(len > 0);
        WB_CHECK(len <= ANCHOR_MAX);
    }
    return anchor;
}

static char *put_link(char *p, const struct wb_pagelink *link, size_t shared, struct wb_slice anchor)
{
    uint8_t lead = (uint8_t)((link->tag < LINK_TAG ? link->tag : LINK_TAG) | link->flags << LINK_FLAGS_SHIFT |
                             (link->modified_ms ? LINK_MODIFIED : 0) | (anchor.len ? LINK_ANCHOR : 0));

    *p++ = (char)lead;
    if (link->tag >= LINK_TAG)
        *p++ = (char)link->tag;
    if (link->modified_ms)
        p = wb_fields_put_signed(p, link->modified_ms);
    if (anchor.len)
        p = wb_fields_put_text(p, anchor);
    p = wb_fields_put(p, shared);
    return wb_fields_put_text(p, wb_slice(link->url.ptr + shared, link->url.len - shared));
}

/*
 * Writes the links that fit. `before` is the URL that the first one shares bytes with. *kept_out: how many were
 * written.
 */
static int put_each_link(const struct wb_pagelink *links, size_t count, struct wb_slice before, struct wb_buf *out,
                         size_t *kept_out)
{
    size_t start = out->len, kept = 0;

    *kept_out = 0;
    for (size_t i = 0; i < count; i++) {
        const struct wb_pagelink *link = &links[i];
        WB_CHECK(link->flags <= LINK_FLAGS);
        if (link->url.len > WB_URL_MAX_BYTES)
            continue;
        struct wb_slice anchor = cut_anchor(link->anchor);
        size_t shared = shared_bytes(before, link->url), need = LINK_FIXED_MAX + anchor.len + link->url.len - shared;
        if (out->len - start + need > WB_EDIT_LINKS_BYTES_MAX)
            break;
        int err = out->cap - out->len < need ? wb_buf_reserve(out, need) : 0;
        if (err < 0)
            return err;
        out->len = (size_t)(put_link(out->ptr + out->len, link, shared, anchor) - out->ptr);
        before = link->url;
        kept++;
    }
    WB_CHECK(out->len - start <= WB_EDIT_LINKS_BYTES_MAX);
    WB_CHECK(kept <= count);
    WB_CHECK(out->len <= out->cap);
    *kept_out = kept;
    return 0;
}

static int put_links(const struct wb_pagelink *links, size_t count, struct wb_slice before, struct wb_buf *out)
{
    size_t counts_at = out->len, kept, start;
    char counts[2 * WB_VARINT_MAX];
    int err = wb_buf_reserve(out, sizeof counts);

    WB_CHECK(links || count == 0);
    if (err < 0)
        return err;
    /* Nearly always all links are kept. So write the counts for that case first, and correct them if it was not. */
    take_written(out, wb_fields_put(wb_fields_put(out->ptr + out->len, count), 0));
    start = out->len;
    err = put_each_link(links, count, before, out, &kept);
    if (err < 0 || kept == count)
        return err;
    size_t packed = out->len - start;
    size_t head = (size_t)(wb_fields_put(wb_fields_put(counts, kept), count - kept) - counts);
    err = wb_buf_reserve(out, sizeof counts);
    if (err < 0)
        return err;
    WB_CHECK(head <= sizeof counts);
    WB_CHECK(counts_at + head + packed <= out->cap);
    memmove(out->ptr + counts_at + head, out->ptr + start, packed);
    memcpy(out->ptr + counts_at, counts, head);
    out->len = counts_at + head + packed;
    return 0;
}

static int put_page(const struct wb_edit_page *page, struct wb_buf *out)
{
    size_t text = page->url.len + page->type.len + page->reason.len + page->etag.len + page->modified.len +
                  page->location.len;
    int err = wb_buf_reserve(out, PAGE_FIXED_MAX + text);

    WB_CHECK(outcome_is_known(page->outcome));
    if (err < 0)
        return err;
    char *p = out->ptr + out->len;
    *p++ = (char)page->outcome;
    *p++ = page->has_content ? PAGE_CONTENT : 0;
    p = wb_fields_put(p, page->status);
    p = wb_fields_put(p, wb_depth_code(page->depth));
    p = wb_fields_put(p, page->hops);
    p = wb_fields_put(p, page->lifetime);
    p = wb_fields_put(p, page->took_ms);
    p = wb_fields_put(p, page->bytes);
    if (page->has_content) {
        memcpy(p, page->md5, WB_MD5_BYTES);
        wb_put64(p + WB_MD5_BYTES, page->simhash);
        wb_put64(p + WB_MD5_BYTES + 8, page->title_hash);
        p += PAGE_CONTENT_BYTES;
    }
    p = wb_fields_put_text(p, page->url);
    p = wb_fields_put_text(p, page->type);
    p = wb_fields_put_text(p, page->reason);
    p = wb_fields_put_text(p, page->etag);
    p = wb_fields_put_text(p, page->modified);
    p = wb_fields_put_text(p, page->location);
    take_written(out, p);
    return put_links(page->links, page->link_count, page->url, out);
}

static int put_rules(const struct wb_edit_rules *rules, struct wb_buf *out)
{
    int err = wb_buf_reserve(out, 4 * WB_VARINT_MAX + rules->reason.len + rules->text.len);

    WB_CHECK(rules->text.len == 0 || rules->text.ptr);
    if (err < 0)
        return err;
    char *p = wb_fields_put(out->ptr + out->len, rules->status);
    p = wb_fields_put_signed(p, rules->expires_ms);
    p = wb_fields_put_text(p, rules->reason);
    p = wb_fields_put_text(p, rules->text);
    take_written(out, p);
    return 0;
}

/* The payload of all kinds but PAGE and RULES. */
static int put_plain(const struct wb_edit *edit, struct wb_buf *out)
{
    int err = wb_buf_reserve(out, 3 * WB_VARINT_MAX + edit->text.len);

    WB_CHECK(edit->kind != WB_EDIT_PAGE);
    WB_CHECK(edit->kind != WB_EDIT_RULES);
    if (err < 0)
        return err;
    uint32_t count = edit->kind == WB_EDIT_SEEDS ? wb_depth_code(edit->depth) : edit->count;
    char *p = wb_fields_put(out->ptr + out->len, count);
    p = wb_fields_put_signed(p, edit->until_ms);
    p = wb_fields_put_text(p, edit->text);
    take_written(out, p);
    return put_links(edit->links, edit->link_count, edit->text, out);
}

/* Writes the head in front of a payload that is complete, because the checksum covers the payload. */
static void put_head(char *record, size_t bytes, const struct wb_edit *edit, uint32_t salt)
{
    WB_CHECK(bytes >= WB_EDIT_HEAD_BYTES);
    WB_CHECK(bytes <= WB_EDIT_BYTES_MAX);
    memset(record, 0, WB_EDIT_HEAD_BYTES);
    wb_put32(record, (uint32_t)bytes);
    record[KIND_AT] = (char)edit->kind;
    wb_put32(record + PREV_LOG_AT, edit->prev.log);
    wb_put64(record + PREV_OFFSET_AT, edit->prev.offset);
    wb_put64(record + SITE_AT, edit->site);
    wb_put64(record + TIME_AT, (uint64_t)edit->time_ms);
    wb_put32(record + CHECK_AT, wb_hash32(record + KIND_AT, bytes - KIND_AT) ^ salt);
}

int wb_edit_encode(const struct wb_edit *edit, uint32_t salt, struct wb_buf *record_out)
{
    size_t start = record_out->len, bytes;
    int err = wb_buf_reserve(record_out, WB_EDIT_HEAD_BYTES);

    WB_CHECK(kind_is_known(edit->kind));
    WB_CHECK(edit->prev.log != 0 || edit->prev.offset == 0);
    if (err < 0)
        return err;
    record_out->len += WB_EDIT_HEAD_BYTES;
    if (edit->kind == WB_EDIT_PAGE)
        err = put_page(&edit->page, record_out);
    else if (edit->kind == WB_EDIT_RULES)
        err = put_rules(&edit->rules, record_out);
    else
        err = put_plain(edit, record_out);
    bytes = record_out->len - start;
    if (err == 0 && bytes > WB_EDIT_BYTES_MAX)
        err = wb_fail(WB_E_LIMIT, "a record of %zu bytes is too long for the journal", bytes);
    if (err < 0) {
        record_out->len = start;
        return err;
    }
    put_head(record_out->ptr + start, bytes, edit, salt);
    WB_CHECK(wb_edit_length(record_out->ptr + start) == bytes);
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Only notes where the links are: many readers do not need them. wb_edit_links_next() decodes them. */
static size_t take_links(struct wb_fields *c, struct wb_edit *edit)
{
    uint64_t count = wb_fields_take(c, WB_EDIT_BYTES_MAX);

    edit->links_left_out = (size_t)wb_fields_take(c, SIZE_MAX);
    WB_CHECK(c->at <= c->end);
    edit->packed_links = wb_slice(c->at, (size_t)(c->end - c->at));
    c->ok = c->ok && count <= edit->packed_links.len / LINK_BYTES_MIN;
    c->at = c->end;
    return (size_t)count;
}

static struct wb_depth take_depth(struct wb_fields *c)
{
    uint64_t code = wb_fields_take(c, UINT16_MAX);

    c->ok = c->ok && wb_depth_is_code(code);
    return wb_depth_of_code(code);
}

static void take_page(struct wb_fields *c, struct wb_edit *edit)
{
    struct wb_edit_page *page = &edit->page;
    uint8_t flags;

    page->outcome = wb_fields_take_byte(c);
    flags = wb_fields_take_byte(c);
    c->ok = c->ok && outcome_is_known(page->outcome) && flags <= PAGE_CONTENT;
    page->status = (uint16_t)wb_fields_take(c, UINT16_MAX);
    page->depth = take_depth(c);
    page->hops = (uint8_t)wb_fields_take(c, UINT8_MAX);
    page->lifetime = (uint32_t)wb_fields_take(c, UINT32_MAX);
    page->took_ms = (uint32_t)wb_fields_take(c, UINT32_MAX);
    page->bytes = wb_fields_take(c, UINT64_MAX);
    page->has_content = flags & PAGE_CONTENT;
    if (page->has_content) {
        const char *content = wb_fields_take_bytes(c, PAGE_CONTENT_BYTES);
        if (c->ok) {
            memcpy(page->md5, content, WB_MD5_BYTES);
            page->simhash = wb_get64(content + WB_MD5_BYTES);
            page->title_hash = wb_get64(content + WB_MD5_BYTES + 8);
        }
    }
    page->url = wb_fields_take_text(c);
    page->type = wb_fields_take_text(c);
    page->reason = wb_fields_take_text(c);
    page->etag = wb_fields_take_text(c);
    page->modified = wb_fields_take_text(c);
    page->location = wb_fields_take_text(c);
    page->link_count = take_links(c, edit);
}

static void take_rules(struct wb_fields *c, struct wb_edit_rules *rules)
{
    rules->status = (uint16_t)wb_fields_take(c, UINT16_MAX);
    rules->expires_ms = wb_fields_take_signed(c);
    rules->reason = wb_fields_take_text(c);
    rules->text = wb_fields_take_text(c);
}

static void take_plain(struct wb_fields *c, struct wb_edit *edit)
{
    if (edit->kind == WB_EDIT_SEEDS)
        edit->depth = take_depth(c);
    else
        edit->count = (uint32_t)wb_fields_take(c, UINT32_MAX);
    edit->until_ms = wb_fields_take_signed(c);
    edit->text = wb_fields_take_text(c);
    edit->link_count = take_links(c, edit);
}

bool wb_edit_is_intact(struct wb_slice record, uint32_t salt)
{
    return record.len >= WB_EDIT_HEAD_BYTES && wb_get32(record.ptr) == record.len &&
           wb_get32(record.ptr + CHECK_AT) == (wb_hash32(record.ptr + KIND_AT, record.len - KIND_AT) ^ salt);
}

bool wb_edit_decode_head(const char *head, struct wb_edit *edit_out)
{
    unsigned kind = (uint8_t)head[KIND_AT];

    *edit_out = (struct wb_edit){.packed_links = WB_SLICE_EMPTY, .text = WB_SLICE_EMPTY};
    if (!kind_is_known(kind) || head[KIND_AT + 1] || head[KIND_AT + 2] || head[KIND_AT + 3])
        return false;
    edit_out->kind = (enum wb_edit_kind)kind;
    edit_out->prev = (struct wb_edit_place){wb_get32(head + PREV_LOG_AT), wb_get64(head + PREV_OFFSET_AT)};
    edit_out->site = wb_get64(head + SITE_AT);
    edit_out->time_ms = (int64_t)wb_get64(head + TIME_AT);
    return edit_out->prev.log != 0 || edit_out->prev.offset == 0;
}

int wb_edit_decode(struct wb_slice record, struct wb_edit *edit_out)
{
    struct wb_fields c = {record.ptr + WB_EDIT_HEAD_BYTES, record.ptr + record.len, true};

    WB_CHECK(record.len >= WB_EDIT_HEAD_BYTES);
    WB_CHECK(record.len <= WB_EDIT_BYTES_MAX);
    c.ok = wb_edit_decode_head(record.ptr, edit_out);
    if (c.ok && edit_out->kind == WB_EDIT_PAGE)
        take_page(&c, edit_out);
    else if (c.ok && edit_out->kind == WB_EDIT_RULES)
        take_rules(&c, &edit_out->rules);
    else if (c.ok)
        take_plain(&c, edit_out);
    if (!c.ok || c.at != c.end)
        return wb_fail(WB_E_CORRUPT, "the parts of a journal record do not add up to its length");
    WB_CHECK(kind_is_known(edit_out->kind));
    WB_CHECK(!edit_out->links);
    WB_CHECK(!edit_out->page.links);
    return 0;
}

int wb_edit_links_next(const struct wb_edit *edit, size_t *at, struct wb_buf *mem, struct wb_pagelink *link_out)
{
    struct wb_slice packed = edit->packed_links;
    struct wb_fields c = {packed.ptr + *at, packed.ptr + packed.len, true};
    int err = 0;

    *link_out = (struct wb_pagelink){.url = WB_SLICE_EMPTY, .anchor = WB_SLICE_EMPTY};
    WB_CHECK(*at <= packed.len);
    WB_CHECK(!edit->links); /* a record that was read */
    if (*at == packed.len)
        return 0;
    if (*at == 0) {
        wb_buf_clear(mem);
        err = wb_buf_append_slice(mem, edit->kind == WB_EDIT_PAGE ? edit->page.url : edit->text);
        if (err < 0)
            return err;
    }
    uint8_t lead = wb_fields_take_byte(&c);
    link_out->tag = (lead & LINK_TAG) == LINK_TAG ? wb_fields_take_byte(&c) : lead & LINK_TAG;
    link_out->flags = lead >> LINK_FLAGS_SHIFT & LINK_FLAGS;
    if (lead & LINK_MODIFIED)
        link_out->modified_ms = wb_fields_take_signed(&c);
    if (lead & LINK_ANCHOR)
        link_out->anchor = wb_fields_take_text(&c);
    uint64_t shared = wb_fields_take(&c, mem->len);
    struct wb_slice rest = wb_fields_take_text(&c);
    /* The writer never writes a longer link. Without this bound, links that share bytes could grow without end. */
    if (!c.ok || shared + rest.len > WB_URL_MAX_BYTES || link_out->anchor.len > ANCHOR_MAX)
        return wb_fail(WB_E_CORRUPT, "a journal record has a damaged link at byte %zu of %zu", *at, packed.len);
    mem->len = (size_t)shared;
    err = wb_buf_append_slice(mem, rest);
    if (err < 0)
        return err;
    link_out->url = wb_buf_slice(mem);
    WB_CHECK(c.at > packed.ptr + *at); /* so that a walk over links always ends */
    *at = (size_t)(c.at - packed.ptr);
    return 1;
}
