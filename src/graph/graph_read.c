/*
 * graph_read.c - opens a graph file, and finds the chunk of a node. graph_cursor.c decodes.
 */
#include "base/format.h"
#include "graph/graph_cursor.h"

static int damaged(const struct wb_graph *graph, const char *what)
{
    return wb_fail(WB_E_CORRUPT, "%s: %s", graph->name, what);
}

/* Compares bytes of the file with their checksums before they are used. */
static int check_range(const struct wb_graph *graph, uint64_t offset, uint64_t length)
{
    return graph->blob.data ? wb_blob_check(&graph->blob, offset, length) : 0;
}

/* The parts must fill the file exactly. Returns the offset of the codes. */
static int read_foot(struct wb_graph *graph, uint64_t size, uint64_t *codes_at_out, uint64_t *codes_bytes_out)
{
    if (size < GRAPH_FOOT_BYTES)
        return damaged(graph, "the graph has no foot");
    const char *foot = graph->data + size - GRAPH_FOOT_BYTES;
    uint64_t left = size - GRAPH_FOOT_BYTES;
    int err = check_range(graph, left, GRAPH_FOOT_BYTES);
    if (err < 0)
        return err;
    if (wb_get32(foot) != GRAPH_FORMAT)
        return wb_fail_format(graph->name, wb_get32(foot), GRAPH_FORMAT);
    graph->nodes = wb_get64(foot + 8);
    graph->arcs = wb_get64(foot + 16);
    graph->chunk_bytes = wb_get64(foot + 24);
    graph->entry_bytes = wb_get64(foot + 32);
    graph->group_count = wb_get64(foot + 40);
    *codes_bytes_out = wb_get64(foot + 48);
    graph->longest = wb_get64(foot + 56);
    bool fits = graph->chunk_bytes <= left;
    left -= fits ? graph->chunk_bytes : 0;
    fits = fits && graph->entry_bytes <= left;
    left -= fits ? graph->entry_bytes : 0;
    fits = fits && graph->group_count <= left / GRAPH_GROUP_BYTES;
    left -= fits ? graph->group_count * GRAPH_GROUP_BYTES : 0;
    /* A chunk has at least two bytes of entries, and so many nodes; so memory is in proportion to the file. */
    if (!fits || left != *codes_bytes_out || graph->nodes > WB_GRAPH_NODES_MAX ||
        graph->nodes > graph->entry_bytes / 2 * GRAPH_CHUNK_NODES || graph->longest > graph->nodes ||
        graph->longest > graph->arcs || (graph->nodes > 0) != (graph->group_count > 0))
        return damaged(graph, "the foot of the graph does not match the file");
    *codes_at_out = size - GRAPH_FOOT_BYTES - left;
    return 0;
}

static int open_parts(struct wb_graph *graph, uint64_t size)
{
    uint64_t codes_at = 0, codes_bytes = 0, directory;
    int err = read_foot(graph, size, &codes_at, &codes_bytes);

    if (err < 0)
        return err;
    directory = codes_at - graph->chunk_bytes;
    err = check_range(graph, graph->chunk_bytes, directory + codes_bytes);
    if (err < 0)
        return err;
    graph->codes = wb_alloc(sizeof *graph->codes);
    if (!graph->codes)
        return WB_E_NOMEM;
    return wb_graph_codes_read(wb_slice(graph->data + codes_at, (size_t)codes_bytes), graph->name, graph->codes);
}

int wb_graph_open_bytes(struct wb_slice bytes, const char *name, struct wb_graph **graph_out)
{
    struct wb_graph *graph = wb_alloc_zero(1, sizeof *graph);

    *graph_out = NULL;
    if (!graph)
        return WB_E_NOMEM;
    *graph = (struct wb_graph){.blob = WB_BLOB_INIT, .data = bytes.ptr, .name = name, .file_bytes = bytes.len};
    int err = open_parts(graph, bytes.len);
    if (err < 0)
        wb_graph_close(graph);
    else
        *graph_out = graph;
    return err;
}

int wb_graph_open(const char *path, struct wb_graph **graph_out)
{
    struct wb_graph *graph = wb_alloc_zero(1, sizeof *graph);

    *graph_out = NULL;
    if (!graph)
        return WB_E_NOMEM;
    graph->blob = WB_BLOB_INIT;
    int err = wb_blob_open(path, GRAPH_KIND, &graph->blob);
    if (err == 0) {
        graph->data = graph->blob.data;
        graph->name = graph->blob.path;
        graph->file_bytes = graph->blob.map_bytes;
        err = open_parts(graph, graph->blob.bytes);
    }
    if (err < 0)
        wb_graph_close(graph);
    else
        *graph_out = graph;
    return err;
}

void wb_graph_close(struct wb_graph *graph)
{
    if (!graph)
        return;
    if (graph->blob.data)
        wb_blob_close(&graph->blob);
    wb_free(graph->codes);
    wb_free(graph);
}

void wb_graph_stat(const struct wb_graph *graph, struct wb_graph_stat *stat_out)
{
    *stat_out = (struct wb_graph_stat){
        .nodes = graph->nodes, .arcs = graph->arcs, .bytes = graph->file_bytes, .longest = graph->longest};
}

/* ---- chunks ------------------------------------------------------------------------------------ */

static const char *group_at(const struct wb_graph *graph, uint64_t n)
{
    return graph->data + graph->chunk_bytes + graph->entry_bytes + n * GRAPH_GROUP_BYTES;
}

/* The last group that begins at or before the node. */
static uint64_t group_of_node(const struct wb_graph *graph, uint32_t node)
{
    uint64_t low = 0, high = graph->group_count;

    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (wb_get32(group_at(graph, middle)) <= node)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Reads the entry at place->entry, whose chunk begins at place->first and place->offset. */
static int read_entry(const struct wb_graph *graph, struct graph_place *place)
{
    const char *entries = graph->data + graph->chunk_bytes;
    const char *p = entries + place->entry, *end = entries + graph->entry_bytes;
    uint64_t nodes, bytes;

    if (!wb_get_varint(&p, end, &nodes) || !wb_get_varint(&p, end, &bytes) || nodes >= GRAPH_CHUNK_NODES ||
        nodes + 1 > graph->nodes - place->first || bytes > graph->chunk_bytes - place->offset)
        return damaged(graph, "the directory of the graph is damaged");
    place->nodes = (unsigned)nodes + 1;
    place->bytes = bytes;
    place->entry = (uint64_t)(p - entries);
    return 0;
}

int wb_graph_place_next(const struct wb_graph *graph, struct graph_place *place)
{
    place->first += place->nodes;
    place->offset += place->bytes;
    place->nodes = 0;
    place->bytes = 0;
    if (place->first >= graph->nodes)
        return damaged(graph, "the directory of the graph is damaged");
    int err = read_entry(graph, place);
    return err < 0 ? err : check_range(graph, place->offset, place->bytes);
}

int wb_graph_place_find(const struct wb_graph *graph, uint32_t node, struct graph_place *place_out)
{
    const char *group = group_at(graph, group_of_node(graph, node));
    struct graph_place place = {.first = wb_get32(group), .entry = wb_get64(group + 8), .offset = wb_get64(group + 16)};

    *place_out = (struct graph_place){0};
    if (place.first > node || place.entry > graph->entry_bytes || place.offset > graph->chunk_bytes)
        return damaged(graph, "the directory of the graph is damaged");
    for (unsigned i = 0; i < GRAPH_GROUP_CHUNKS; i++) {
        int err = read_entry(graph, &place);
        if (err < 0)
            return err;
        if (node - place.first < place.nodes) {
            *place_out = place;
            return check_range(graph, place.offset, place.bytes);
        }
        place.first += place.nodes;
        place.offset += place.bytes;
        if (place.first >= graph->nodes)
            break;
    }
    return damaged(graph, "the directory of the graph is damaged");
}

int wb_graph_directory_check(const struct wb_graph *graph)
{
    struct graph_place place = {0};
    uint64_t chunk = 0;
    int err = 0;

    for (; err == 0 && place.first + place.nodes < graph->nodes; chunk++) {
        uint64_t entry = place.entry;
        err = wb_graph_place_next(graph, &place);
        if (err < 0 || chunk % GRAPH_GROUP_CHUNKS != 0)
            continue;
        const char *group = group_at(graph, chunk / GRAPH_GROUP_CHUNKS);
        if (chunk / GRAPH_GROUP_CHUNKS >= graph->group_count || wb_get32(group) != place.first ||
            wb_get32(group + 4) != 0 || wb_get64(group + 8) != entry || wb_get64(group + 16) != place.offset)
            err = damaged(graph, "the directory of the graph is damaged");
    }
    if (err == 0 && (place.entry != graph->entry_bytes || place.offset + place.bytes != graph->chunk_bytes ||
                     graph->group_count != (chunk + GRAPH_GROUP_CHUNKS - 1) / GRAPH_GROUP_CHUNKS))
        err = damaged(graph, "the directory of the graph does not match its lists");
    return err;
}
