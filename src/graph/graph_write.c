/*
 * graph_write.c - writes a graph file.
 *
 * The codes have to be known before the first list can be written, so the first lists are kept as a sample. When there
 * are enough of them, or the graph ends, the sample decides on the codes and is written; later lists are written chunk
 * by chunk.
 */
#include "graph/graph_encode.h"
#include "graph/graph_file.h"

enum {
    WRITER_MAGIC = 0x57424757, /* "WBGW" */
    SAMPLE_ARCS = 4 << 20,
    SAMPLE_NODES = 2 << 20,
    GUESS_ARCS = 256 << 10, /* of the sample, that decide how references are chosen */
    GUESS_ROUNDS = 2,
};

struct wb_graph_writer {
    uint32_t magic;
    struct wb_blob_writer *blob;
    struct graph_model *model;
    bool learned;                     /* the codes are fixed */
    WB_VEC(uint32_t) sample, lengths; /* lists until then, and how many successors each has */
    WB_VEC(uint8_t) backs;            /* the references that were chosen for them */
    struct graph_gather chunk;
    struct wb_buf bytes; /* of one chunk */
    struct wb_buf entries, groups;
    uint64_t nodes, arcs, longest, chunks;
    uint64_t beyond;            /* more than the highest number in any list */
    struct wb_error_copy error; /* the first error; code 0 if there was none */
};

static void free_writer(struct wb_graph_writer *writer)
{
    WB_CHECK(writer->magic == WRITER_MAGIC);
    writer->magic = 0;
    wb_blob_abandon(writer->blob);
    wb_free(writer->model);
    wb_vec_release(&writer->sample);
    wb_vec_release(&writer->lengths);
    wb_vec_release(&writer->backs);
    wb_graph_gather_release(&writer->chunk);
    wb_buf_release(&writer->bytes);
    wb_buf_release(&writer->entries);
    wb_buf_release(&writer->groups);
    wb_free(writer);
}

int wb_graph_create(const char *path, struct wb_graph_writer **writer_out)
{
    struct wb_graph_writer *writer = wb_alloc_zero(1, sizeof *writer);

    *writer_out = NULL;
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = WRITER_MAGIC;
    writer->model = wb_alloc(sizeof *writer->model);
    int err = writer->model ? wb_blob_create(path, GRAPH_KIND, &writer->blob) : WB_E_NOMEM;
    if (err < 0) {
        free_writer(writer);
        return err;
    }
    wb_graph_model_guess(writer->model);
    *writer_out = writer;
    return 0;
}

/* ---- chunks ------------------------------------------------------------------------------------ */

/* The next chunk begins at node `first`. */
static void empty_chunk(struct graph_gather *chunk, uint32_t first)
{
    wb_vec_clear(&chunk->arcs);
    chunk->nodes = 0;
    chunk->first = first;
}

static int write_directory(struct wb_graph_writer *writer)
{
    char group[GRAPH_GROUP_BYTES] = {0}, entry[2 * WB_VARINT_MAX];
    int err = 0;

    if (writer->chunks % GRAPH_GROUP_CHUNKS == 0) {
        wb_put32(group, writer->chunk.first);
        wb_put64(group + 8, writer->entries.len);
        wb_put64(group + 16, wb_blob_tell(writer->blob));
        err = wb_buf_append(&writer->groups, group, sizeof group);
    }
    size_t len = wb_put_varint(entry, writer->chunk.nodes - 1);
    len += wb_put_varint(entry + len, writer->bytes.len);
    return err < 0 ? err : wb_buf_append(&writer->entries, entry, len);
}

static int write_chunk(struct wb_graph_writer *writer)
{
    struct graph_gather *chunk = &writer->chunk;

    WB_CHECK(writer->learned);
    if (chunk->nodes == 0)
        return 0;
    if (writer->backs.count)
        memcpy(chunk->back, writer->backs.items + chunk->first, chunk->nodes);
    else
        wb_graph_chunk_choose(chunk, writer->model);
    wb_buf_clear(&writer->bytes);
    int err = wb_graph_chunk_encode(chunk, writer->model, &writer->bytes);
    if (err == 0)
        err = write_directory(writer);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->bytes.ptr, writer->bytes.len);
    writer->chunks++;
    empty_chunk(chunk, chunk->first + chunk->nodes);
    return err;
}

static int count_chunk(struct wb_graph_writer *writer)
{
    struct graph_gather *chunk = &writer->chunk;

    wb_graph_chunk_choose(chunk, writer->model);
    memcpy(writer->backs.items + chunk->first, chunk->back, chunk->nodes);
    int err = wb_graph_chunk_count(chunk, writer->model);
    empty_chunk(chunk, chunk->first + chunk->nodes);
    return err;
}

/* Puts the first lists of the sample into chunks, and calls take() for each chunk. */
static int walk_sample(struct wb_graph_writer *writer, uint64_t arcs, int (*take)(struct wb_graph_writer *writer))
{
    size_t at = 0;
    int err = 0;

    empty_chunk(&writer->chunk, 0);
    for (size_t i = 0; i < writer->lengths.count && at <= arcs && err == 0; i++) {
        size_t count = writer->lengths.items[i];
        if (!wb_graph_gather_fits(&writer->chunk, count))
            err = take(writer);
        if (err == 0)
            err = wb_graph_gather_add(&writer->chunk, count ? writer->sample.items + at : NULL, count);
        at += count;
    }
    return err < 0 || writer->chunk.nodes == 0 ? err : take(writer);
}

/*
 * Fixes the codes and writes the sample. The codes depend on the choice of references, and that on the codes; a part of
 * the sample, gone through a few times, gives codes that are good enough to choose by.
 */
static int learn(struct wb_graph_writer *writer, bool whole)
{
    int err = wb_vec_reserve(&writer->backs, writer->lengths.count);

    WB_CHECK(!writer->learned);
    for (int round = 0; round < GUESS_ROUNDS && err == 0; round++) {
        err = walk_sample(writer, GUESS_ARCS, count_chunk);
        wb_graph_model_build(writer->model, false);
        wb_graph_model_learn(writer->model);
    }
    if (err == 0)
        err = walk_sample(writer, UINT64_MAX, count_chunk);
    if (err < 0)
        return err;
    wb_graph_model_build(writer->model, whole);
    writer->learned = true;
    writer->backs.count = writer->lengths.count;
    err = walk_sample(writer, UINT64_MAX, write_chunk);
    wb_vec_release(&writer->sample);
    wb_vec_release(&writer->lengths);
    wb_vec_release(&writer->backs);
    return err;
}

/* ---- lists ------------------------------------------------------------------------------------- */

static int add_to_sample(struct wb_graph_writer *writer, const uint32_t *list, size_t count)
{
    int err = wb_vec_reserve(&writer->sample, writer->sample.count + count);

    if (err == 0)
        err = wb_vec_push(&writer->lengths, (uint32_t)count);
    if (err < 0)
        return err;
    if (count)
        memcpy(writer->sample.items + writer->sample.count, list, count * sizeof *list);
    writer->sample.count += count;
    if (writer->sample.count >= SAMPLE_ARCS || writer->lengths.count >= SAMPLE_NODES)
        return learn(writer, false);
    return 0;
}

static int add_list(struct wb_graph_writer *writer, const uint32_t *list, size_t count)
{
    int err = 0;

    if (writer->nodes >= WB_GRAPH_NODES_MAX)
        return wb_fail(WB_E_LIMIT, "a graph has at most %u nodes", WB_GRAPH_NODES_MAX);
    for (size_t i = 1; i < count; i++)
        if (list[i] <= list[i - 1])
            return wb_fail(WB_E_INVALID, "the successors of node %llu are not in ascending order",
                           (unsigned long long)writer->nodes);
    if (count && list[count - 1] >= writer->beyond)
        writer->beyond = (uint64_t)list[count - 1] + 1;
    writer->nodes++;
    writer->arcs += count;
    if (count > writer->longest)
        writer->longest = count;
    if (!writer->learned)
        return add_to_sample(writer, list, count);
    if (!wb_graph_gather_fits(&writer->chunk, count))
        err = write_chunk(writer);
    return err < 0 ? err : wb_graph_gather_add(&writer->chunk, list, count);
}

int wb_graph_add(struct wb_graph_writer *writer, const uint32_t *successors, size_t count)
{
    WB_CHECK(writer->magic == WRITER_MAGIC);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    int err = add_list(writer, successors, count);
    if (err < 0)
        wb_error_save(err, &writer->error);
    return err;
}

/* ---- the end ----------------------------------------------------------------------------------- */

static int write_end(struct wb_graph_writer *writer)
{
    char foot[GRAPH_FOOT_BYTES] = {0};
    uint64_t chunk_bytes = wb_blob_tell(writer->blob);

    wb_buf_clear(&writer->bytes);
    int err = wb_graph_model_write(writer->model, &writer->bytes);
    if (err < 0)
        return err;
    wb_put32(foot, GRAPH_FORMAT);
    wb_put64(foot + 8, writer->nodes);
    wb_put64(foot + 16, writer->arcs);
    wb_put64(foot + 24, chunk_bytes);
    wb_put64(foot + 32, writer->entries.len);
    wb_put64(foot + 40, writer->groups.len / GRAPH_GROUP_BYTES);
    wb_put64(foot + 48, writer->bytes.len);
    wb_put64(foot + 56, writer->longest);
    err = wb_blob_append(writer->blob, writer->entries.ptr, writer->entries.len);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->groups.ptr, writer->groups.len);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->bytes.ptr, writer->bytes.len);
    return err < 0 ? err : wb_blob_append(writer->blob, foot, sizeof foot);
}

int wb_graph_finish(struct wb_graph_writer *writer, struct wb_graph_stat *stat_out)
{
    WB_CHECK(writer->magic == WRITER_MAGIC);
    struct wb_graph_stat stat = {.nodes = writer->nodes, .arcs = writer->arcs, .longest = writer->longest};
    int err = writer->error.code ? wb_error_restore(&writer->error) : 0;

    if (err == 0 && writer->beyond > writer->nodes)
        err = wb_fail(WB_E_INVALID, "there is an arc to node %llu, but the graph has only %llu nodes",
                      (unsigned long long)(writer->beyond - 1), (unsigned long long)writer->nodes);
    if (err == 0 && !writer->learned)
        err = learn(writer, true);
    if (err == 0)
        err = write_chunk(writer);
    if (err == 0)
        err = write_end(writer);
    if (err == 0) {
        err = wb_blob_finish(writer->blob, &stat.bytes);
        writer->blob = NULL;
    }
    free_writer(writer);
    if (stat_out)
        *stat_out = err == 0 ? stat : (struct wb_graph_stat){0};
    return err;
}

void wb_graph_abandon(struct wb_graph_writer *writer)
{
    if (writer)
        free_writer(writer);
}
