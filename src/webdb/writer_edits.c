/*
 * writer_edits.c - the calls that add edits to a writer.
 *
 * They only record what is wanted. Nothing is looked up in the old edition, so nothing depends on it before the merge.
 *
 * A URL that many links lead to is parsed and sorted only once. A hash table finds its text again, and the links carry
 * its id. When the table is full it is emptied. The same URL then gets a second id, which costs some work and changes
 * nothing.
 *
 *   group of links, a value of link_edits: for each link
 *     id (varint)  condition + 1, or 0 (varint)  tag (1)  flags (1)  length of the anchor (varint)  anchor
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "webdb/spelling.h"

enum {
    GROUP_BYTES = 256 << 10, /* a group that has grown to this size is given to the sorter */
    ANCHOR_MAX = 255,
};

/* What is true whenever an edit is added. */
static void check_collecting(const struct wb_webdb_writer *writer)
{
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    WB_CHECK(writer->urls != NULL);
    WB_CHECK(writer->urls_used < writer->urls_cap);
    WB_CHECK(writer->page_edits != NULL);
    WB_CHECK(writer->link_edits != NULL);
    WB_CHECK(writer->next_id <= WB_NUMBERS_MAX);
}

static void clear_urls(struct wb_webdb_writer *writer)
{
    WB_CHECK(writer->urls != NULL);
    memset(writer->urls, 0, writer->urls_cap * sizeof *writer->urls);
    writer->urls_used = 0;
}

/*
 * KNOWN edits for the same URL are added once, because a second one changes nothing; unless the page is removed in
 * between. So after a removal, everything has to be added again. Counting the removals invalidates all entries of the
 * table at once; consecutive removals count as one.
 */
static void note_removal(struct wb_webdb_writer *writer)
{
    WB_CHECK(writer->removals > 0);
    WB_CHECK(writer->state == WB_WRITER_COLLECTING);
    if (!writer->told)
        return;
    writer->told = false;
    if (++writer->removals == 0) { /* the counter has overflowed: old entries would look new */
        clear_urls(writer);
        writer->removals = 1;
    }
}

static bool may_bring_content(enum wb_pageedit_kind kind)
{
    return kind == WB_PAGEEDIT_VISIT || kind == WB_PAGEEDIT_ADD || kind == WB_PAGEEDIT_ADD_SCORE ||
           kind == WB_PAGEEDIT_ADD_ABSENT;
}

int wb_writer_add_page_edit(struct wb_webdb_writer *writer, struct wb_pageedit *edit)
{
    char suffix[WB_PAGEEDIT_SUFFIX] = {0};

    check_collecting(writer);
    WB_CHECK(edit->kind >= WB_PAGEEDIT_TARGET);
    WB_CHECK(edit->id == WB_PAGEEDIT_NO_ID || edit->id < writer->next_id);
    int err = wb_spelling_surt(edit->url, &writer->url, &writer->key, &writer->surt);
    if (err < 0)
        return err;
    wb_put64_be(suffix + 1, (uint64_t)edit->time_ms);
    err = wb_buf_append(&writer->surt, suffix, sizeof suffix);
    wb_buf_clear(&writer->value);
    if (err == 0) {
        edit->surt = edit->row.surt = wb_slice(writer->surt.ptr, writer->surt.len - WB_PAGEEDIT_SUFFIX);
        err = wb_pageedit_encode(edit, &writer->value);
    }
    if (err == 0)
        err = wb_sorter_add(writer->page_edits, wb_buf_slice(&writer->surt), wb_buf_slice(&writer->value));
    if (err == 0 && edit->kind == WB_PAGEEDIT_EXPUNGE)
        note_removal(writer);
    writer->stat.page_edits += err == 0;
    writer->content_edit_count += may_bring_content(edit->kind);
    return err;
}

/* ---- ids of URLs ------------------------------------------------------------------------------- */

/* The entry of a URL in the hash table; a new one, with NO_ID, if there was none. */
static struct wb_writer_url *find_url(struct wb_webdb_writer *writer, struct wb_slice url)
{
    uint64_t hi, lo;

    WB_CHECK(writer->urls_used < writer->urls_cap); /* there is a free slot, so the loop ends */
    WB_CHECK((writer->urls_cap & (writer->urls_cap - 1)) == 0);
    wb_hash128(url.ptr, url.len, &hi, &lo);
    lo |= 1;
    for (size_t i = (size_t)hi;; i++) {
        struct wb_writer_url *slot = &writer->urls[i & (writer->urls_cap - 1)];
        if (slot->hash == lo)
            return slot;
        if (slot->hash != 0)
            continue;
        if (writer->urls_used >= writer->urls_cap / 4 * 3) {
            clear_urls(writer);
            slot = &writer->urls[(size_t)hi & (writer->urls_cap - 1)];
        }
        writer->urls_used++;
        *slot = (struct wb_writer_url){.hash = lo, .id = WB_PAGEEDIT_NO_ID, .depth = UINT16_MAX};
        return slot;
    }
}

static int new_id(struct wb_webdb_writer *writer, uint32_t *id_out)
{
    if (writer->next_id >= WB_NUMBERS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: there are more than %u URLs to merge at once", writer->root, WB_NUMBERS_MAX);
    *id_out = writer->next_id++;
    WB_CHECK(*id_out != WB_PAGEEDIT_NO_ID);
    return 0;
}

/* Whether the edit `known` says nothing that has not been said already. */
static bool is_told(const struct wb_webdb_writer *writer, const struct wb_writer_url *slot,
                    const struct wb_pageedit *known)
{
    WB_CHECK(known->kind == WB_PAGEEDIT_KNOWN);
    WB_CHECK(slot->known <= writer->removals);
    return slot->known == writer->removals && known->depth >= slot->depth && (slot->wanted || !known->wanted);
}

static void note_told(struct wb_webdb_writer *writer, struct wb_writer_url *slot, const struct wb_pageedit *known)
{
    bool again = slot->known == writer->removals;

    WB_CHECK(slot->id != WB_PAGEEDIT_NO_ID);
    WB_CHECK(known->kind == WB_PAGEEDIT_KNOWN);
    slot->known = writer->removals;
    slot->wanted = (again && slot->wanted) || known->wanted;
    slot->depth = again && slot->depth < known->depth ? slot->depth : known->depth;
    writer->told = true;
}

int wb_writer_add_target(struct wb_webdb_writer *writer, struct wb_slice url, const struct wb_pageedit *known,
                         uint32_t *id_out)
{
    struct wb_writer_url *slot = find_url(writer, url);
    bool first = slot->id == WB_PAGEEDIT_NO_ID;
    struct wb_pageedit edit = {.kind = WB_PAGEEDIT_TARGET, .time_ms = writer->options.now_ms};

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    *id_out = slot->id;
    WB_CHECK(!known || known->kind == WB_PAGEEDIT_KNOWN);
    if (!first && (!known || is_told(writer, slot, known)))
        return 0;
    if (known)
        edit = *known;
    edit.url = url;
    edit.id = WB_PAGEEDIT_NO_ID;
    int err = first ? new_id(writer, &edit.id) : 0;
    if (err == 0)
        err = wb_writer_add_page_edit(writer, &edit);
    if (err < 0) {
        if (first) { /* the URL may be invalid: then it needs no entry, because few links are like that */
            slot->hash = 0;
            writer->urls_used--;
        }
        return err;
    }
    if (first)
        *id_out = slot->id = edit.id;
    if (known)
        note_told(writer, slot, known);
    WB_CHECK(*id_out < writer->next_id);
    return 0;
}

/* ---- groups of links ----------------------------------------------------------------------------- */

int wb_writer_flush_links(struct wb_webdb_writer *writer)
{
    struct wb_slice md5 = wb_slice((const char *)writer->group_md5, WB_MD5_BYTES);
    int err = 0;

    check_collecting(writer);
    if (writer->group.len)
        err = wb_sorter_add(writer->link_edits, md5, wb_buf_slice(&writer->group));
    wb_buf_clear(&writer->group);
    return err;
}

int wb_writer_add_link(struct wb_webdb_writer *writer, const uint8_t md5[WB_MD5_BYTES], uint32_t condition,
                       const struct wb_writer_link *link)
{
    char head[4 * WB_VARINT_MAX];
    size_t n = 0, anchor = link->anchor.len < ANCHOR_MAX ? link->anchor.len : ANCHOR_MAX;
    int err = 0;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    WB_CHECK(link->id < writer->next_id);
    WB_CHECK(condition == WB_PAGEEDIT_NO_ID || condition < writer->next_id);
    if (writer->group.len > GROUP_BYTES || memcmp(writer->group_md5, md5, WB_MD5_BYTES) != 0) {
        err = wb_writer_flush_links(writer);
        memcpy(writer->group_md5, md5, WB_MD5_BYTES);
    }
    n += wb_put_varint(head + n, link->id);
    n += wb_put_varint(head + n, condition == WB_PAGEEDIT_NO_ID ? 0 : (uint64_t)condition + 1);
    head[n++] = (char)link->tag;
    head[n++] = (char)link->flags;
    n += wb_put_varint(head + n, anchor);
    WB_CHECK(n <= sizeof head);
    if (err == 0)
        err = wb_buf_append(&writer->group, head, n);
    if (err == 0)
        err = wb_buf_append(&writer->group, link->anchor.ptr, anchor);
    writer->stat.link_edits += err == 0;
    return err;
}

int wb_writer_link_next(struct wb_slice group, size_t *at, struct wb_writer_link *link_out)
{
    const char *p = group.ptr + *at, *end = group.ptr + group.len;
    uint64_t id, condition, len;

    WB_CHECK(group.ptr != NULL);
    if (p == end)
        return 0;
    WB_CHECK(*at < group.len);
    if (!wb_get_varint(&p, end, &id) || !wb_get_varint(&p, end, &condition) || end - p < 3)
        return wb_fail(WB_E_CORRUPT, "a group of links is damaged");
    link_out->id = (uint32_t)id;
    link_out->condition = condition ? (uint32_t)(condition - 1) : WB_PAGEEDIT_NO_ID;
    link_out->tag = (uint8_t)*p++;
    link_out->flags = (uint8_t)*p++;
    if (!wb_get_varint(&p, end, &len) || len > (uint64_t)(end - p))
        return wb_fail(WB_E_CORRUPT, "a group of links is damaged");
    link_out->anchor = wb_slice(p, (size_t)len);
    *at = (size_t)(p + len - group.ptr);
    WB_CHECK(*at <= group.len);
    return 1;
}

/* ---- the calls of the paper's WebDBWriter ---------------------------------------------------- */

static int add_row(struct wb_webdb_writer *writer, enum wb_pageedit_kind kind, const struct wb_webdb_page *page,
                   uint32_t id)
{
    struct wb_pageedit edit = {.kind = kind, .time_ms = writer->options.now_ms, .id = id, .url = page->url,
                               .row = *page};

    WB_CHECK(page->url.ptr != NULL);
    WB_CHECK(kind == WB_PAGEEDIT_ADD || kind == WB_PAGEEDIT_ADD_SCORE || kind == WB_PAGEEDIT_ADD_ABSENT);
    return wb_writer_add_page_edit(writer, &edit);
}

static int add_link(struct wb_webdb_writer *writer, uint32_t condition, const struct wb_webdb_link *link)
{
    struct wb_writer_link grouped = {.tag = link->tag, .flags = link->flags, .anchor = link->anchor};
    int err = wb_writer_add_target(writer, link->to, NULL, &grouped.id);

    WB_CHECK(link->to.ptr != NULL);
    return err < 0 ? err : wb_writer_add_link(writer, link->from_md5, condition, &grouped);
}

int wb_webdb_add_page(struct wb_webdb_writer *writer, const struct wb_webdb_page *page)
{
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    return add_row(writer, WB_PAGEEDIT_ADD, page, WB_PAGEEDIT_NO_ID);
}

int wb_webdb_add_page_with_score(struct wb_webdb_writer *writer, const struct wb_webdb_page *page)
{
    struct wb_webdb_page scored = *page;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    scored.flags |= WB_PAGE_SCORED;
    return add_row(writer, WB_PAGEEDIT_ADD_SCORE, &scored, WB_PAGEEDIT_NO_ID);
}

int wb_webdb_add_page_if_not_present(struct wb_webdb_writer *writer, const struct wb_webdb_page *page,
                                     const struct wb_webdb_link *link)
{
    uint32_t condition = WB_PAGEEDIT_NO_ID;
    int err = link ? new_id(writer, &condition) : 0;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    if (err == 0)
        err = add_row(writer, WB_PAGEEDIT_ADD_ABSENT, page, condition);
    return err < 0 || !link ? err : add_link(writer, condition, link);
}

int wb_webdb_add_link(struct wb_webdb_writer *writer, const struct wb_webdb_link *link)
{
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    return add_link(writer, WB_PAGEEDIT_NO_ID, link);
}
