/*
 * writer_edits.c - the calls that add edits to a writer. They only note what is wanted: nothing is looked up, so nothing
 * depends on what the database holds until the merge.
 *
 * A URL that many links lead to is parsed and sorted once: its text is found again by its hash and the links carry its id. When
 * the table of them is full it is begun anew; the same URL then has another id, which costs some work and changes nothing.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "webdb/pagerow.h"

enum {
    GROUP_BYTES = 256 << 10, /* of one record of the sorter, about */
    ANCHOR_MAX = 255,
};

static void clear_slots(struct wb_webdb_writer *writer)
{
    memset(writer->slots, 0, writer->slot_count * sizeof *writer->slots);
    writer->slots_used = 0;
}

/* A page that is removed may be heard of again afterwards: what was told before must be told anew. */
static void note_removal(struct wb_webdb_writer *writer)
{
    if (!writer->told)
        return;
    writer->told = false;
    if (++writer->removals == 0) {
        clear_slots(writer);
        writer->removals = 1;
    }
}

int wb_writer_page_edit(struct wb_webdb_writer *writer, struct wb_pageedit *edit)
{
    char suffix[WB_PAGEEDIT_SUFFIX] = {0};
    int err = wb_webdb_surt(edit->url, &writer->url, &writer->key, &writer->surt);

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
    if (err == 0 && (edit->kind == WB_PAGEEDIT_DELETE || edit->kind == WB_PAGEEDIT_EXPUNGE))
        note_removal(writer);
    writer->stat.page_edits += err == 0;
    writer->content_edit_count += edit->kind == WB_PAGEEDIT_VISIT || edit->kind == WB_PAGEEDIT_ADD || edit->kind == WB_PAGEEDIT_ADD_SCORE ||
                                  edit->kind == WB_PAGEEDIT_ADD_ABSENT;
    return err;
}

/* ---- ids of URLs ------------------------------------------------------------------------------- */

static struct wb_url_slot *find_slot(struct wb_webdb_writer *writer, struct wb_slice url)
{
    uint64_t hi, lo;

    wb_hash128(url.ptr, url.len, &hi, &lo);
    lo |= 1;
    for (size_t i = (size_t)hi;; i++) {
        struct wb_url_slot *slot = &writer->slots[i & (writer->slot_count - 1)];
        if (slot->hash == lo)
            return slot;
        if (slot->hash != 0)
            continue;
        if (writer->slots_used >= writer->slot_count / 4 * 3) {
            clear_slots(writer);
            slot = &writer->slots[(size_t)hi & (writer->slot_count - 1)];
        }
        writer->slots_used++;
        *slot = (struct wb_url_slot){.hash = lo, .id = WB_PAGEEDIT_NO_ID, .depth = UINT16_MAX};
        return slot;
    }
}

static int new_id(struct wb_webdb_writer *writer, uint32_t *id_out)
{
    if (writer->next_id >= WB_NUMBERS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: more than %u URLs in one merge", writer->root, WB_NUMBERS_MAX);
    *id_out = writer->next_id++;
    return 0;
}

int wb_writer_target(struct wb_webdb_writer *writer, struct wb_slice url, const struct wb_pageedit *known, uint32_t *id_out)
{
    struct wb_url_slot *slot = find_slot(writer, url);
    bool first = slot->id == WB_PAGEEDIT_NO_ID;
    struct wb_pageedit edit = {.kind = WB_PAGEEDIT_TARGET, .time_ms = writer->options.now_ms};

    *id_out = slot->id;
    bool again = slot->known == writer->removals;
    if (!first && (!known || (again && known->depth >= slot->depth && (slot->wanted || !known->wanted))))
        return 0;
    if (known)
        edit = *known;
    edit.url = url;
    edit.id = WB_PAGEEDIT_NO_ID;
    int err = first ? new_id(writer, &edit.id) : 0;
    if (err == 0)
        err = wb_writer_page_edit(writer, &edit);
    if (err < 0) {
        if (first) {
            /* What is no URL is none the next time either, but it need not have a slot: links of that kind are few. */
            slot->hash = 0;
            writer->slots_used--;
        }
        return err;
    }
    if (first)
        *id_out = slot->id = edit.id;
    if (known) {
        slot->known = writer->removals;
        slot->wanted = (again && slot->wanted) || known->wanted;
        slot->depth = again && slot->depth < known->depth ? slot->depth : known->depth;
        writer->told = true;
    }
    return 0;
}

/* ---- groups of links ----------------------------------------------------------------------------- */

int wb_writer_group_flush(struct wb_webdb_writer *writer)
{
    int err = 0;

    if (writer->group.len)
        err = wb_sorter_add(writer->link_edits, wb_slice((const char *)writer->group_md5, WB_EDIT_MD5_BYTES), wb_buf_slice(&writer->group));
    wb_buf_clear(&writer->group);
    return err;
}

int wb_writer_link(struct wb_webdb_writer *writer, const uint8_t md5[WB_EDIT_MD5_BYTES], uint32_t condition, const struct wb_grouped_link *link)
{
    char head[4 * WB_VARINT_MAX];
    size_t n = 0, anchor = link->anchor.len < ANCHOR_MAX ? link->anchor.len : ANCHOR_MAX;
    int err = 0;

    if (writer->group.len > GROUP_BYTES || memcmp(writer->group_md5, md5, WB_EDIT_MD5_BYTES) != 0) {
        err = wb_writer_group_flush(writer);
        memcpy(writer->group_md5, md5, WB_EDIT_MD5_BYTES);
    }
    n += wb_put_varint(head + n, link->id);
    n += wb_put_varint(head + n, condition == WB_PAGEEDIT_NO_ID ? 0 : (uint64_t)condition + 1);
    head[n++] = (char)link->tag;
    head[n++] = (char)link->flags;
    n += wb_put_varint(head + n, anchor);
    if (err == 0)
        err = wb_buf_append(&writer->group, head, n);
    if (err == 0)
        err = wb_buf_append(&writer->group, link->anchor.ptr, anchor);
    writer->stat.link_edits += err == 0;
    return err;
}

int wb_group_next(struct wb_slice group, size_t *at, struct wb_grouped_link *link_out)
{
    const char *p = group.ptr + *at, *end = group.ptr + group.len;
    uint64_t id, condition, len;

    if (p == end)
        return 0;
    if (!wb_get_varint(&p, end, &id) || !wb_get_varint(&p, end, &condition) || end - p < 3)
        return wb_fail(WB_E_CORRUPT, "a group of links does not add up");
    link_out->id = (uint32_t)id;
    link_out->condition = condition ? (uint32_t)(condition - 1) : WB_PAGEEDIT_NO_ID;
    link_out->tag = (uint8_t)*p++;
    link_out->flags = (uint8_t)*p++;
    if (!wb_get_varint(&p, end, &len) || len > (uint64_t)(end - p))
        return wb_fail(WB_E_CORRUPT, "a group of links does not add up");
    link_out->anchor = wb_slice(p, (size_t)len);
    *at = (size_t)(p + len - group.ptr);
    return 1;
}

/* ---- the paper's calls ------------------------------------------------------------------------------ */

static int add_row(struct wb_webdb_writer *writer, enum wb_pageedit_kind kind, const struct wb_webdb_page *page, uint32_t id)
{
    struct wb_pageedit edit = {.kind = kind, .time_ms = writer->options.now_ms, .id = id, .url = page->url, .row = *page};

    return wb_writer_page_edit(writer, &edit);
}

static int add_link(struct wb_webdb_writer *writer, uint32_t condition, const struct wb_webdb_link *link)
{
    struct wb_grouped_link grouped = {.tag = link->tag, .flags = link->flags, .anchor = link->anchor};
    int err = wb_writer_target(writer, link->to, NULL, &grouped.id);

    return err < 0 ? err : wb_writer_link(writer, link->from_md5, condition, &grouped);
}

int wb_webdb_add_page(struct wb_webdb_writer *writer, const struct wb_webdb_page *page)
{
    return add_row(writer, WB_PAGEEDIT_ADD, page, WB_PAGEEDIT_NO_ID);
}

int wb_webdb_add_page_with_score(struct wb_webdb_writer *writer, const struct wb_webdb_page *page)
{
    struct wb_webdb_page scored = *page;

    scored.flags |= WB_PAGE_SCORED;
    return add_row(writer, WB_PAGEEDIT_ADD_SCORE, &scored, WB_PAGEEDIT_NO_ID);
}

int wb_webdb_add_page_if_not_present(struct wb_webdb_writer *writer, const struct wb_webdb_page *page, const struct wb_webdb_link *link)
{
    uint32_t condition = WB_PAGEEDIT_NO_ID;
    int err = link ? new_id(writer, &condition) : 0;

    if (err == 0)
        err = add_row(writer, WB_PAGEEDIT_ADD_ABSENT, page, condition);
    return err < 0 || !link ? err : add_link(writer, condition, link);
}

int wb_webdb_delete_page(struct wb_webdb_writer *writer, struct wb_slice url)
{
    struct wb_pageedit edit = {.kind = WB_PAGEEDIT_DELETE, .time_ms = writer->options.now_ms, .id = WB_PAGEEDIT_NO_ID, .url = url};

    return wb_writer_page_edit(writer, &edit);
}

int wb_webdb_add_link(struct wb_webdb_writer *writer, const struct wb_webdb_link *link)
{
    return add_link(writer, WB_PAGEEDIT_NO_ID, link);
}
