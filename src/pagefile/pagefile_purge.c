/*
 * pagefile_purge.c - deletes files that were replaced, once no reader needs them any more.
 */
#include "base/check.h"
#include "pagefile/pagefile_files.h"

/* A transaction that deletes replaced files. If there are more than fit here, the next purge deletes the rest. */
struct purge_work {
    struct wb_pagefile *files;
    struct wb_catalog_txn txn;
    uint64_t oldest; /* the oldest state that a reader holds */
    struct {
        uint32_t number, revision, node;
    } list[256];
    size_t count;
};

static int add_purgeable(void *context, uint32_t number, uint32_t revision, uint32_t node, uint64_t txn_id)
{
    struct purge_work *p = context;
    struct wb_node *reach;

    WB_CHECK(number > 0);
    WB_CHECK(p->count <= sizeof p->list / sizeof p->list[0]);
    if (txn_id > p->oldest || p->count == sizeof p->list / sizeof p->list[0])
        return 0;
    /* What is on a node that is out of reach is deleted when it is back; what was on one that was removed is gone. */
    if (!wb_nodes_has(p->files->nodes, node) || wb_nodes_find_to_write(p->files->nodes, node, &reach) == 0) {
        p->list[p->count].number = number;
        p->list[p->count].node = node;
        p->list[p->count++].revision = revision;
    }
    return 0;
}

static int delete_file(struct wb_pagefile *files, uint32_t number, uint32_t revision, uint32_t node_number)
{
    struct wb_node *node;

    WB_CHECK(number > 0);
    if (!wb_nodes_has(files->nodes, node_number))
        return 0;
    int err = wb_nodes_find(files->nodes, node_number, &node);
    if (err < 0)
        return err;
    return files->kind->remove(node, number, revision);
}

/* The file goes first, then its row: if we die in between, the next purge finds the file already gone. */
static int delete_retired(struct purge_work *p)
{
    int err = 0;

    WB_CHECK(p->count > 0);
    WB_CHECK(p->txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < p->count && err == 0; i++) {
        err = delete_file(p->files, p->list[i].number, p->list[i].revision, p->list[i].node);
        /* It is deleted when the node can be used again, and when nobody has claimed the file any more. */
        if (err == WB_E_BUSY || wb_nodes_failed(p->files->nodes, err))
            err = 0;
        else if (err == 0)
            err = wb_catalog_retired_delete(&p->txn, p->list[i].number, p->list[i].revision);
    }
    return err;
}

struct retired_count {
    struct wb_pagefile *files;
    uint64_t rows;
};

static int count_retired(void *context)
{
    struct retired_count *c = context;

    WB_CHECK(c->files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(c->files->reader->kind >= WB_CATALOG_TXN_AWAKE);
    c->rows = wb_catalog_count(c->files->reader, WB_CATALOG_RETIRED);
    return 0;
}

static int purge_files(struct purge_work *p)
{
    WB_CHECK(p->files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(p->count == 0);
    /* Starting a write transaction makes the newest state durable. So files that this state does not need may go. */
    int err = wb_catalog_txn_write(p->files->catalog, &p->txn);

    /* Ask inside the transaction: readers that start from now on see a state that does not need the retired files. */
    if (err == 0)
        err = wb_catalog_oldest_reader(p->files->catalog, &p->oldest);
    if (err == 0)
        err = wb_catalog_retired_each(&p->txn, add_purgeable, p);
    if (err == 0 && p->count)
        err = delete_retired(p);
    if (err == 0 && p->count)
        err = wb_catalog_txn_commit(&p->txn);
    wb_catalog_txn_abort(&p->txn);
    return err;
}

int wb_pagefile_purge(struct wb_pagefile *files)
{
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(files->write);

    struct purge_work p = {.files = files};
    struct retired_count count = {.files = files};
    int err = wb_pagefile_read(files, count_retired, &count);

    return err < 0 || count.rows == 0 ? err : purge_files(&p);
}
