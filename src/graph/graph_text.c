/*
 * graph_text.c - reads a graph from text: a line with the number of nodes, then one line of successors for each node.
 *
 *   3          three nodes
 *   1 2        node 0 links to 1 and 2
 *              node 1 links to none
 *   0 2        node 2 links to 0 and to itself
 */
#include "base/check.h"
#include "base/error.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "graph/graph_bytes.h"
#include "os/path.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMPACT_MIN = 1 << 16 }; /* successors of a line before repeated ones are looked for */

struct text_reader {
    struct graph_bytes bytes;
    const char *path;
    struct wb_graph_writer *writer;
    uint64_t line; /* the current one, from 1 */
    bool begun;    /* the line has bytes */
    bool in_number;
    uint64_t number;
    unsigned numbers;      /* of the first line */
    uint64_t nodes;        /* as the first line says */
    WB_VEC(uint32_t) list; /* successors in the current line */
    size_t compact_at;     /* how many successors there are before repeated ones are dropped again */
    bool sorted;           /* they are strictly ascending so far */
    uint64_t given;        /* how many the line has, with repeated ones */
    uint64_t repeated;     /* that were dropped, in all lines */
};

static int bad_line(const struct text_reader *r, const char *words)
{
    return wb_fail(WB_E_PROTO, "%s, line %llu: %s", r->path, (unsigned long long)r->line, words);
}

/* ---- successors -------------------------------------------------------------------------------- */

static int compare_nodes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorts the successors and drops repeated ones. */
static void sort_list(struct text_reader *r)
{
    size_t kept = 0;

    if (r->sorted)
        return;
    qsort(r->list.items, r->list.count, sizeof *r->list.items, compare_nodes);
    for (size_t i = 0; i < r->list.count; i++)
        if (kept == 0 || r->list.items[i] != r->list.items[kept - 1])
            r->list.items[kept++] = r->list.items[i];
    r->list.count = kept;
    r->sorted = true;
}

static int add_successor(struct text_reader *r)
{
    if (r->number >= r->nodes) {
        char words[96];
        snprintf(words, sizeof words, "there is no node %llu; the graph has %llu nodes", (unsigned long long)r->number,
                 (unsigned long long)r->nodes);
        return bad_line(r, words);
    }
    uint32_t node = (uint32_t)r->number;
    if (r->list.count && node <= r->list.items[r->list.count - 1])
        r->sorted = false;
    r->given++;
    int err = wb_vec_push(&r->list, node);
    if (err == 0 && r->list.count >= r->compact_at) {
        sort_list(r); /* a line may repeat numbers without end; memory follows the different ones */
        r->compact_at = 2 * r->list.count > COMPACT_MIN ? 2 * r->list.count : COMPACT_MIN;
    }
    return err;
}

/* ---- lines ------------------------------------------------------------------------------------- */

static int take_number(struct text_reader *r)
{
    r->in_number = false;
    if (r->line > 1)
        return add_successor(r);
    if (r->numbers++ > 0)
        return bad_line(r, "the first line must be the number of nodes alone");
    if (r->number > WB_GRAPH_NODES_MAX)
        return bad_line(r, "a graph has at most 4294967295 nodes");
    r->nodes = r->number;
    return 0;
}

static int end_line(struct text_reader *r)
{
    int err = r->in_number ? take_number(r) : 0;

    if (err < 0)
        return err;
    if (r->line == 1 && r->numbers == 0)
        return bad_line(r, "the first line must be the number of nodes");
    if (r->line > 1) {
        sort_list(r);
        r->repeated += r->given - r->list.count;
        err = wb_graph_add(r->writer, r->list.items, r->list.count);
    }
    wb_vec_clear(&r->list);
    r->compact_at = COMPACT_MIN;
    r->sorted = true;
    r->given = 0;
    r->begun = false;
    r->line++;
    return err;
}

static int bad_byte(const struct text_reader *r, unsigned char c)
{
    char words[64];

    if (c > ' ' && c < 0x7f)
        snprintf(words, sizeof words, "'%c' is not part of a number", c);
    else
        snprintf(words, sizeof words, "the byte 0x%02x is not part of a number", c);
    return bad_line(r, words);
}

static int take_byte(struct text_reader *r, char c)
{
    if (r->line > 1 && r->line - 2 >= r->nodes && !r->begun)
        return bad_line(r, "the graph has more lines than nodes");
    r->begun = true;
    if (c >= '0' && c <= '9') {
        r->number = (r->in_number ? r->number * 10 : 0) + (uint64_t)(c - '0');
        r->in_number = true;
        /* Far beyond any node, and far from an overflow. */
        return r->number > UINT64_MAX / 100 ? bad_line(r, "the number is too large") : 0;
    }
    if (c == '\n')
        return end_line(r);
    if (c != ' ' && c != '\t' && c != '\r')
        return bad_byte(r, (unsigned char)c);
    return r->in_number ? take_number(r) : 0;
}

/* ---- files ------------------------------------------------------------------------------------- */

static int read_lines(struct text_reader *r, const struct wb_graph_text_options *options)
{
    struct wb_slice text;
    int err = 0;

    for (;;) {
        err = wb_graph_bytes_next(&r->bytes, &text);
        if (err < 0 || text.len == 0)
            break;
        for (size_t i = 0; i < text.len && err == 0; i++)
            err = take_byte(r, text.ptr[i]);
        if (err == 0 && options->go_on && !options->go_on(options->context, r->bytes.done, r->bytes.size, r->line))
            err = wb_fail(WB_E_STOPPED, "stopped while reading %s", r->path);
        if (err < 0)
            break;
    }
    if (err == 0 && (r->begun || r->line == 1))
        err = end_line(r); /* the last line need not end with a newline */
    if (err == 0 && r->line - 2 < r->nodes)
        err =
            wb_fail(WB_E_PROTO, "%s ends after line %llu: it has %llu nodes, but only the successors of %llu", r->path,
                    (unsigned long long)(r->line - 1), (unsigned long long)r->nodes, (unsigned long long)(r->line - 2));
    return err;
}

int wb_graph_read_text(const char *text_path, const struct wb_graph_text_options *options, const char *path,
                       struct wb_graph_stat *stat_out, uint64_t *repeated_out)
{
    struct text_reader r = {.path = text_path, .line = 1, .compact_at = COMPACT_MIN, .sorted = true};
    struct wb_error_copy error;

    *stat_out = (struct wb_graph_stat){0};
    int err = wb_graph_bytes_open(text_path, &r.bytes);
    if (err == 0)
        err = wb_graph_create(path, &r.writer);
    if (err == 0)
        err = read_lines(&r, options);
    if (err == 0) {
        err = wb_graph_finish(r.writer, stat_out);
        r.writer = NULL;
    }
    wb_graph_abandon(r.writer);
    if (err < 0) {
        wb_error_save(err, &error);
        wb_path_unlink(path);
        err = wb_error_restore(&error);
    }
    wb_graph_bytes_close(&r.bytes);
    wb_vec_release(&r.list);
    if (repeated_out)
        *repeated_out = r.repeated;
    return err;
}
