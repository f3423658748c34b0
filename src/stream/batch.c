/* batch.c - copies a parcel into memory and decompresses its pages (batch.h). It knows nothing about who uses them. */
#include "stream/batch.h"
#include "base/check.h"
#include "base/mem.h"

/* ---- batches ------------------------------------------------------------------------------------- */

void wb_batch_unref(struct wb_batch *batch)
{
    if (!batch)
        return;
    WB_CHECK(batch->magic == WB_BATCH_MAGIC && batch->refs > 0);
    if (--batch->refs > 0)
        return;
    for (size_t i = 0; i < WB_BATCH_DEPTHS; i++) {
        WB_CHECK(!batch->busy[i]);
        wb_batch_pages_unref(batch->pages[i]);
    }
    wb_buf_release(&batch->bytes);
    wb_free(batch->list);
    batch->magic = 0;
    wb_free(batch);
}

int wb_batch_new(const struct wb_store_parcel *parcel, bool borrow, struct wb_batch **batch_out)
{
    WB_CHECK(parcel->count > 0);
    struct wb_batch *batch = wb_alloc_zero(1, sizeof *batch);

    *batch_out = NULL;
    if (!batch)
        return WB_E_NOMEM;
    batch->magic = WB_BATCH_MAGIC;
    batch->refs = 1;
    if (borrow) {
        batch->parcel = *parcel;
        *batch_out = batch;
        return 0;
    }
    batch->list = wb_alloc(parcel->count * sizeof *batch->list);
    int err = batch->list ? wb_buf_append_slice(&batch->bytes, parcel->bytes) : WB_E_NOMEM;
    if (err < 0) {
        wb_batch_unref(batch);
        return err;
    }
    memcpy(batch->list, parcel->pages, parcel->count * sizeof *batch->list);
    batch->parcel = (struct wb_store_parcel){wb_buf_slice(&batch->bytes), batch->list, parcel->count};
    *batch_out = batch;
    return 0;
}

int wb_batch_new_damage(int code, struct wb_batch **batch_out)
{
    struct wb_error_copy damage;

    WB_CHECK(code < 0);
    wb_error_save(code, &damage);
    *batch_out = wb_alloc_zero(1, sizeof **batch_out);
    if (!*batch_out)
        return WB_E_NOMEM;
    (*batch_out)->magic = WB_BATCH_MAGIC;
    (*batch_out)->refs = 1;
    (*batch_out)->damage = damage;
    return 0;
}

size_t wb_batch_bytes(const struct wb_batch *batch)
{
    WB_CHECK(batch->magic == WB_BATCH_MAGIC);
    return sizeof *batch + batch->bytes.cap + batch->parcel.count * sizeof *batch->list;
}

/* ---- pages --------------------------------------------------------------------------------------- */

void wb_batch_pages_unref(struct wb_batch_pages *pages)
{
    if (!pages)
        return;
    WB_CHECK(pages->refs > 0);
    if (--pages->refs > 0)
        return;
    wb_memo_set_free(pages->memos);
    wb_arena_release(&pages->texts);
    wb_free(pages->pages);
    wb_free(pages->entries);
    wb_free(pages);
}

/* Copies all texts of a page, which the unpacker is about to overwrite. */
static int keep_page(struct wb_batch_pages *pages, const struct wb_page *page, uint32_t entry)
{
    struct wb_page *copy = &pages->pages[pages->count];
    struct wb_slice *texts[] = {&copy->url, &copy->key, &copy->head, &copy->type, &copy->charset, &copy->body};
    int err = 0;

    WB_CHECK(pages->count <= entry); /* there is room for as many pages as there are entries */
    *copy = *page;
    for (size_t i = 0; err == 0 && i < sizeof texts / sizeof *texts; i++) {
        pages->bytes += texts[i]->len;
        err = wb_arena_copy(&pages->texts, *texts[i], texts[i]);
    }
    pages->entries[pages->count] = entry;
    pages->count += err == 0;
    return err;
}

/* Remembers a page that cannot be read. */
static void note_damage(struct wb_batch_pages *pages, int code)
{
    WB_CHECK(code < 0);
    pages->damaged++;
    wb_error_save(code, &pages->why);
}

int wb_batch_unpack(const struct wb_batch *batch, enum wb_batch_depth depth, struct wb_store_unpacker *unpacker,
                    struct wb_batch_pages **pages_out)
{
    WB_CHECK(batch->magic == WB_BATCH_MAGIC && batch->refs > 0);
    struct wb_batch_pages *pages = wb_alloc_zero(1, sizeof *pages);
    size_t count = batch->parcel.count;
    struct wb_page page;

    WB_CHECK(count > 0);
    *pages_out = NULL;
    if (!pages)
        return WB_E_NOMEM;
    pages->refs = 1;
    pages->pages = wb_alloc_zero(count, sizeof *pages->pages);
    pages->entries = wb_alloc_zero(count, sizeof *pages->entries);
    pages->bytes = sizeof *pages + count * (sizeof *pages->pages + sizeof *pages->entries);
    int err = pages->pages && pages->entries ? wb_store_unpacker_open(unpacker, &batch->parcel) : WB_E_NOMEM;
    if (err == WB_E_CORRUPT) { /* all of it */
        note_damage(pages, err);
        count = 0;
        err = 0;
    }
    for (uint32_t i = 0; i < count && err == 0; i++) {
        err = (depth == WB_BATCH_FACTS ? wb_store_unpacker_facts : wb_store_unpacker_page)(unpacker, i, &page);
        if (err == 0)
            err = keep_page(pages, &page, i);
        if (err == WB_E_CORRUPT) {
            note_damage(pages, err);
            err = 0;
        }
    }
    if (err == 0)
        err = wb_memo_set_new(pages->pages, pages->count, pages->bytes, &pages->memos);
    if (err < 0) {
        wb_batch_pages_unref(pages);
        return err;
    }
    *pages_out = pages;
    return 0;
}
