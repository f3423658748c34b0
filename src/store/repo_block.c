/*
 * repo_block.c - puts whole blocks: their pages become ops whose records are placed already (repo_block.h).
 */
#include "store/repo_block.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/mapping.h"
#include "store/repo_ops.h"

int wb_repo_expect_blocks(struct wb_repo *repo, const struct wb_append_expected *expected)
{
    struct wb_repo_writer *writer = repo->writer;
    int err = wb_ops_reserve(writer, expected->pages);

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    if (err < 0)
        return err;
    wb_mapping_large(writer->ops.items, (writer->ops.count + expected->pages) * sizeof *writer->ops.items);
    return wb_append_expect(&repo->files, expected);
}

/* What the entry says is in an op like that of a page that was put. There is room for it. */
static int add_op(struct wb_repo *repo, const struct wb_repo_block_page *page, size_t put)
{
    uint32_t site;
    int err = wb_repo_site_index(repo->writer, page->site, &site);

    WB_CHECK(page->entry.content != 0);
    WB_CHECK(page->site.len > 0);
    if (err < 0)
        return err;
    struct wb_op *op = wb_op_new(repo);
    op->kind = WB_OP_PUT;
    op->id = page->id;
    op->site = site;
    op->put = (uint32_t)put + 1;
    op->time_ms = page->entry.time_ms;
    op->content = page->entry.content;
    op->entry = page->entry;
    op->has_lifetime = true;
    op->differs = page->differs;
    return 0;
}

int wb_repo_put_block(struct wb_repo *repo, struct wb_slice block, const struct wb_repo_block_page *pages, size_t count)
{
    struct wb_repo_writer *writer = repo->writer;
    size_t first = writer->files.puts.count;
    int err = wb_ops_reserve(writer, count);

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    struct wb_append_page *parts = err == 0 ? wb_alloc(count * sizeof *parts) : NULL;
    if (!parts)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        parts[i] = (struct wb_append_page){
            .id = pages[i].id, .slot = pages[i].slot, .stored_bytes = pages[i].entry.stored_bytes};
        memcpy(parts[i].sha1, pages[i].sha1, sizeof parts[i].sha1);
    }
    int got = wb_append_whole(&repo->files, block, parts, count);
    wb_free(parts);
    for (size_t i = 0; i < count && got > 0; i++) {
        err = add_op(repo, &pages[i], first + i);
        if (err < 0)
            return wb_writer_remember_failure(&writer->files, err);
    }
    return got;
}
