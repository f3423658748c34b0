/*
 * linkwork.c - reads every link once, in the order of targets, and makes of it:
 *
 *   in.wbg     the pages that link to each docid. The edition has the targets in the order of numbers; pages come first
 *              in the order of docids, so the lists of other URLs wait in a temporary file
 *   anchors    the texts of the links to each docid -> words -> runs
 *   out.wbg    the same graph the other way round
 *
 * Only links that a reader could follow count (<a>, not <img>); otherwise the style sheets of a site would be its most
 * important pages. A link counts if its source is a page of the snapshot, or a vertex of a graph that was loaded.
 */
#include "index/linkwork.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/anchorset.h"
#include "index/docwords.h"
#include "os/mapping.h"
#include "os/nameless.h"

#include <stdlib.h>

enum {
    PROGRESS_EVERY = 8192,
    INVERTER_BYTES = 64 << 20,
    LATER_BYTES = 1 << 20,
};

struct linkwork {
    struct wb_build *build;
    struct wb_graph_writer *in;
    uint32_t next; /* the docid whose list comes next in the graph */
    struct wb_docwords worker;
    struct wb_anchorset anchors;
    WB_VEC(uint32_t) sources; /* of the current target */
    uint64_t target;          /* its number */
    const uint8_t *kinds;     /* by number: enum wb_webdb_kind */
    struct wb_file later;     /* lists of URLs that are not pages: varint docid, varint count, varint gaps */
    uint64_t later_bytes;
    struct wb_buf buffer;
};

/* ---- lists ------------------------------------------------------------------------------------- */

static int add_list(struct linkwork *work, uint32_t docid, const uint32_t *list, size_t count)
{
    int err = 0;

    WB_CHECK(docid >= work->next && docid < work->build->roster.url_count);
    while (err == 0 && work->next < docid) {
        err = wb_graph_add(work->in, NULL, 0);
        work->next++;
    }
    work->next++;
    return err < 0 ? err : wb_graph_add(work->in, list, count);
}

static int write_later(struct linkwork *work)
{
    int err = wb_file_write_at(&work->later, work->later_bytes, work->buffer.ptr, work->buffer.len);

    work->later_bytes += work->buffer.len;
    wb_buf_clear(&work->buffer);
    return err;
}

static int keep_for_later(struct linkwork *work, uint32_t docid)
{
    WB_CHECK(docid >= work->build->roster.known); /* lists of pages need not wait */
    int err = wb_buf_reserve(&work->buffer, work->buffer.len + (work->sources.count + 2) * WB_VARINT_MAX);
    if (err < 0)
        return err;
    char *p = work->buffer.ptr + work->buffer.len;
    p += wb_put_varint(p, docid);
    p += wb_put_varint(p, work->sources.count);
    for (size_t i = 0; i < work->sources.count; i++)
        p += wb_put_varint(p, work->sources.items[i] - (i ? work->sources.items[i - 1] : 0));
    work->buffer.len = (size_t)(p - work->buffer.ptr);
    return work->buffer.len >= LATER_BYTES ? write_later(work) : 0;
}

/* Adds the lists that had to wait. The temporary file is ours alone. */
static int add_later(struct linkwork *work)
{
    void *map = NULL;
    int err = work->buffer.len ? write_later(work) : 0;

    if (err == 0 && work->later_bytes)
        err = wb_mapping_open(&work->later, work->later_bytes, &map);
    const char *p = map, *end = p + (map ? work->later_bytes : 0);
    while (err == 0 && p < end) {
        uint64_t docid, count, gap, last = 0;
        bool ok = wb_get_varint(&p, end, &docid) && wb_get_varint(&p, end, &count);
        WB_CHECK(ok);
        wb_vec_clear(&work->sources);
        for (uint64_t i = 0; err == 0 && i < count; i++) {
            ok = wb_get_varint(&p, end, &gap);
            WB_CHECK(ok);
            err = wb_vec_push(&work->sources, (uint32_t)(last += gap));
        }
        if (err == 0)
            err = add_list(work, (uint32_t)docid, work->sources.items, work->sources.count);
    }
    if (map)
        wb_mapping_close(map, work->later_bytes);
    while (err == 0 && work->next < work->build->roster.url_count) {
        err = wb_graph_add(work->in, NULL, 0);
        work->next++;
    }
    return err;
}

/* ---- targets ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int flush_anchors(struct linkwork *work)
{
    struct wb_run_writer writer;
    int err = wb_inverter_empty(work->worker.inverter) ? 0 : wb_build_run(work->build, &writer);

    if (err < 0 || wb_inverter_empty(work->worker.inverter))
        return err;
    err = wb_inverter_flush(work->worker.inverter, &writer);
    int finished = wb_run_finish(&writer);
    return err < 0 ? err : finished;
}

/* Indexes the texts of the links to a URL, unless the last generation has the same ones. */
static int index_anchors(struct linkwork *work, uint32_t docid)
{
    struct wb_build *build = work->build;
    uint64_t hash = wb_anchorset_finish(&work->anchors);

    build->anchors[docid] = hash;
    if (!wb_carry_anchors_changed(&build->carry, docid, hash) || hash == 0)
        return 0;
    int err = wb_docwords_anchors(&work->worker, docid, work->anchors.anchors.items, work->anchors.anchors.count);
    return err == 0 && wb_inverter_full(work->worker.inverter) ? flush_anchors(work) : err;
}

static int end_target(struct linkwork *work)
{
    struct wb_build *build = work->build;
    uint32_t docid = wb_docmap_docid(&build->roster.docmap, work->target);
    size_t count = work->sources.count;
    int err = 0;

    WB_CHECK(docid < build->roster.url_count);
    if (count)
        qsort(work->sources.items, count, sizeof *work->sources.items, by_value);
    build->inlinks[docid] = (uint32_t)count;
    build->result->info.arcs += count;
    if (count && docid < build->roster.known)
        err = add_list(work, docid, work->sources.items, count);
    else if (count)
        err = keep_for_later(work, docid);
    if (err == 0)
        err = index_anchors(work, docid);
    wb_vec_clear(&work->sources);
    wb_anchorset_clear(&work->anchors);
    return err;
}

static int add_portion(struct linkwork *work, const struct wb_webdb_portion *portion)
{
    const struct wb_roster *roster = &work->build->roster;
    int err = 0;

    for (size_t i = 0; err == 0 && i < portion->count; i++) {
        uint32_t source = portion->ends[i];
        bool counts = wb_docmap_is_page(&roster->docmap, source) || work->kinds[source] & WB_IS_LOADED;
        if (!counts || !(portion->texts[i].flags & WB_PAGELINK_FOLLOW))
            continue;
        uint32_t docid = wb_docmap_docid(&roster->docmap, source);
        err = wb_vec_push(&work->sources, docid);
        if (err == 0)
            err = wb_anchorset_add(&work->anchors, portion->texts[i].anchor);
    }
    return err;
}

static int read_links(struct linkwork *work)
{
    struct wb_build *build = work->build;
    struct wb_webdb_arcs_options options = {.texts = true, .temp_dir = build->root};
    struct wb_webdb_portion portion;
    struct wb_webdb_arcs *arcs = NULL;
    uint64_t targets = 0;
    int more = 0, err = wb_webdb_arcs(build->webdb, WB_ARCS_IN, &options, &arcs);

    while (err == 0 && (more = wb_webdb_arcs_next(arcs, &portion)) != 0) {
        if (more < 0) {
            err = more;
            break;
        }
        if (targets && portion.number != work->target)
            err = end_target(work);
        targets += targets == 0 || portion.number != work->target;
        work->target = portion.number;
        if (err == 0)
            err = add_portion(work, &portion);
        if (err == 0 && targets % PROGRESS_EVERY == 0)
            err = wb_build_progress(build, "links", portion.number, build->roster.url_count);
    }
    if (err == 0 && targets)
        err = end_target(work);
    wb_webdb_arcs_close(arcs);
    return err;
}

/* ---- graphs ------------------------------------------------------------------------------------ */

static int write_in(struct wb_build *build, const char *path)
{
    struct linkwork work = {.build = build, .later = WB_FILE_INIT};
    size_t memory = build->memory_bytes / 4 < INVERTER_BYTES ? build->memory_bytes / 4 : INVERTER_BYTES;
    int err = wb_docwords_init(&work.worker, memory);

    if (err == 0)
        err = wb_webdb_kinds(build->webdb, 0, build->roster.url_count, &work.kinds);
    if (err == 0)
        err = wb_nameless_open(build->root, &work.later);
    if (err == 0)
        err = wb_graph_create(path, &work.in);
    if (err == 0)
        err = read_links(&work);
    if (err == 0)
        err = flush_anchors(&work);
    if (err == 0)
        err = add_later(&work);
    if (err == 0) {
        err = wb_graph_finish(work.in, NULL);
        work.in = NULL;
    }
    wb_graph_abandon(work.in);
    wb_file_close(&work.later);
    wb_buf_release(&work.buffer);
    wb_vec_release(&work.sources);
    wb_anchorset_release(&work.anchors);
    wb_docwords_release(&work.worker);
    return err;
}

int wb_linkwork(struct wb_build *build)
{
    struct wb_graph_derive_options derive = {.dir = build->root, .memory_bytes = build->memory_bytes};
    char *in_path = wb_build_path(build, WB_IN_FILE), *out_path = wb_build_path(build, WB_OUT_FILE);
    struct wb_graph *in = NULL;
    int err = in_path && out_path ? write_in(build, in_path) : WB_E_NOMEM;

    if (err == 0)
        err = wb_graph_open(in_path, &in);
    if (err == 0)
        err = wb_graph_transpose(in, &derive, out_path, NULL);
    wb_graph_close(in);
    wb_free(in_path);
    wb_free(out_path);
    return err;
}
