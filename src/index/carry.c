/*
 * carry.c - matches the URLs of two generations by their page ids.
 *
 * Nothing else connects them: numbers and docids move, and a URL may have become a page or ceased to be one.
 */
#include "index/carry.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/build.h"
#include "index/idtable.h"
#include "os/nameless.h"

/* What is kept of an old document that is `docid` now. */
static enum wb_keep judge(const struct wb_build *build, const struct wb_index *old, uint32_t old_docid,
                          const struct wb_roster_url *url)
{
    bool was_page = old_docid < old->manifest.info.pages, is_page = url->page != WB_DOCID_NONE;

    WB_CHECK(old_docid < old->manifest.info.urls);
    WB_CHECK(!is_page || url->page < build->roster.page_count);
    if (!was_page && !is_page)
        return WB_KEEP_ALL;
    if (!was_page || !is_page)
        return WB_KEEP_NOTHING;
    return build->roster.pages[url->page].epoch > old->manifest.info.epoch ? WB_KEEP_NOTHING : WB_KEEP_ALL;
}

static void match(const struct wb_build *build, const struct wb_idtable *table, struct wb_carry *carry)
{
    const struct wb_roster *roster = &build->roster;

    for (uint64_t number = 0; number < roster->url_count; number++) {
        const struct wb_roster_url *url = &roster->urls[number];
        uint32_t from = wb_idtable_find(table, url->id), docid = wb_docmap_docid(&roster->docmap, number);
        WB_CHECK(docid < carry->new_urls);
        carry->from[docid] = from;
        if (from == WB_DOCID_NONE)
            continue;
        carry->keep[from] = (uint8_t)judge(build, carry->old, from, url);
        carry->docid[from] = carry->keep[from] == WB_KEEP_NOTHING ? WB_DOCID_NONE : docid;
    }
}

static int map_array(struct wb_build *build, uint64_t count, size_t bytes, void *pointer_out)
{
    void *memory = NULL;
    int err = wb_nameless_map(build->root, (count + 1) * bytes, &memory);

    memcpy(pointer_out, &memory, sizeof memory);
    return err;
}

int wb_carry_make(struct wb_build *build, struct wb_index *old, struct wb_carry *carry)
{
    struct wb_idtable table = {.slots = NULL};
    const void *ids = NULL;

    *carry = (struct wb_carry){.old = old};
    if (!old)
        return 0;
    carry->old_urls = old->manifest.info.urls;
    carry->new_urls = build->roster.url_count;
    WB_CHECK(old->docmap.urls == carry->old_urls); /* or it could not be opened */
    int err = wb_index_fact(old, WB_FACT_ID, &ids);
    if (err == 0)
        err = wb_idtable_open(build->root, ids, carry->old_urls, &table);
    if (err == 0)
        err = map_array(build, carry->old_urls, sizeof *carry->docid, &carry->docid);
    if (err == 0)
        err = map_array(build, carry->old_urls, sizeof *carry->keep, &carry->keep);
    if (err == 0)
        err = map_array(build, carry->new_urls, sizeof *carry->from, &carry->from);
    for (uint64_t docid = 0; err == 0 && docid < carry->old_urls; docid++) {
        carry->docid[docid] = WB_DOCID_NONE;
        carry->keep[docid] = WB_KEEP_NOTHING;
    }
    if (err == 0)
        match(build, &table, carry);
    wb_idtable_close(&table);
    return err;
}

void wb_carry_release(struct wb_carry *carry)
{
    if (carry->docid)
        wb_nameless_unmap(carry->docid, (carry->old_urls + 1) * sizeof *carry->docid);
    if (carry->keep)
        wb_nameless_unmap(carry->keep, (carry->old_urls + 1) * sizeof *carry->keep);
    if (carry->from)
        wb_nameless_unmap(carry->from, (carry->new_urls + 1) * sizeof *carry->from);
    wb_index_close(carry->old);
    *carry = (struct wb_carry){.old = NULL};
}

bool wb_carry_anchors_changed(struct wb_carry *carry, uint32_t docid, uint64_t hash)
{
    const void *values = NULL;

    if (wb_carry_is_fresh(carry, docid))
        return true;
    uint32_t from = carry->from[docid];
    /* The column was checked when the last generation was opened for this build. */
    int err = wb_index_fact(carry->old, WB_FACT_ANCHORS, &values);
    WB_CHECK(err == 0);
    if (((const uint64_t *)values)[from] == hash)
        return false;
    carry->keep[from] = WB_KEEP_NO_ANCHOR;
    return true;
}

void wb_carry_drop_anchors(struct wb_carry *carry, const uint64_t *anchors)
{
    for (uint64_t docid = 0; carry->old && docid < carry->new_urls; docid++)
        if (anchors[docid] == 0)
            wb_carry_anchors_changed(carry, (uint32_t)docid, 0);
}
