/*
 * settle.c - moves segments to where the table of nodes says. A segment whose ids all belong to one node is moved
 * as a whole; otherwise it is divided. What the table says is compared with the rows of the segments, so it does not
 * matter what an earlier attempt had done.
 *
 * A segment that a writer appends to is left for the next round: writers let go of it with their next commit, when they
 * see that the table has changed.
 */
#include "base/check.h"
#include "move/rebalance.h"

int wb_settling_report(struct wb_settling *s)
{
    WB_CHECK(s->repo->magic == WB_REPO_MAGIC);
    if (s->done > s->total)
        s->total = s->done;
    if (s->progress && !s->progress(s->context, s->done, s->total))
        return wb_fail(WB_E_STOPPED, "the pages were not all moved: repeat the command to go on");
    return 0;
}

/* ---- where a segment belongs ------------------------------------------------------------------------------ */

static bool is_within(const struct wb_catalog_range *inner, const struct wb_catalog_range *outer)
{
    return outer->bits <= inner->bits && (inner->prefix & wb_catalog_range_mask(outer)) == outer->prefix;
}

/* Joins halves of one range that go to the same node. */
static size_t join_children(struct wb_split_child *children, size_t count)
{
    WB_CHECK(count <= WB_SPLIT_CHILDREN_MAX);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (children[i].node == children[k].node && wb_ranges_are_halves(&children[i].range, &children[k].range)) {
                wb_ranges_widen(&children[i].range);
                children[k] = children[--count];
                i = 0; /* the whole may be a half of something itself */
                k = (size_t)-1;
            }
    return count;
}

/* Uniform distribution: the node that takes what is moved away from another one. */
static uint32_t choose_home(const struct wb_nodes *nodes, const struct wb_catalog_segment *row)
{
    uint32_t best = row->node;
    size_t count = nodes->items.count, first = row->number;

    WB_CHECK(row->number > 0);
    for (size_t i = 0; i < count; i++)
        if (nodes->items.items[i].row.number == row->node && !nodes->items.items[i].row.leaving)
            return row->node;
    for (size_t i = 0; i < count; i++) { /* one after the other, by the number of the segment */
        const struct wb_known_node *node = &nodes->items.items[(first + i) % count];
        if (!node->row.leaving && !node->down && !node->full)
            return node->row.number;
        if (!node->row.leaving)
            best = node->row.number;
    }
    return best;
}

size_t wb_settle_plan(const struct wb_nodes *nodes, const struct wb_catalog_segment *row,
                      struct wb_split_child children[WB_SPLIT_CHILDREN_MAX])
{
    size_t count = 0;

    children[0] = (struct wb_split_child){row->range, row->node};
    if (nodes->items.count == 0)
        return 1;
    if (nodes->distribution == WB_DISTRIBUTION_UNIFORM) {
        children[0].node = choose_home(nodes, row);
        return 1;
    }
    for (size_t i = 0; i < nodes->items.count; i++) {
        const struct wb_catalog_node *node = &nodes->items.items[i].row;
        for (uint32_t k = 0; k < node->range_count; k++) {
            const struct wb_catalog_range *range = &node->ranges[k];
            bool inside = is_within(range, &row->range);
            if (!inside && !is_within(&row->range, range))
                continue;
            if (count == WB_SPLIT_CHILDREN_MAX) { /* too many: halve it first */
                struct wb_catalog_range half = {row->range.prefix, row->range.bits + 1};
                children[0] = (struct wb_split_child){half, row->node};
                half.prefix |= (uint64_t)1 << (64 - half.bits);
                children[1] = (struct wb_split_child){half, row->node};
                return 2;
            }
            children[count++] = (struct wb_split_child){inside ? *range : row->range, node->number};
        }
    }
    if (count == 0) /* the table is wrong: nobody takes these ids. What is stored stays where it is. */
        return 1;
    return join_children(children, count);
}

/* ---- one round ------------------------------------------------------------------------------------------------ */

/* Whether a node is being removed. */
static bool is_leaving(const struct wb_nodes *nodes, uint32_t number)
{
    for (size_t i = 0; i < nodes->items.count; i++)
        if (nodes->items.items[i].row.number == number)
            return nodes->items.items[i].row.leaving;
    return false;
}

void wb_settling_damage(struct wb_settling *s)
{
    WB_CHECK(s->repo->magic == WB_REPO_MAGIC);
    if (s->damage.code == 0)
        wb_error_save(WB_E_CORRUPT, &s->damage);
}

/* Moves or divides a segment. Damage keeps it where it is, unless that node is leaving. */
static int settle_segment(struct wb_settling *s, const struct wb_catalog_segment *row,
                          const struct wb_split_child *children, size_t count)
{
    bool leaving = is_leaving(&s->repo->nodes, row->node);
    int err = count > 1 ? wb_split(s->repo, row->number, children, count)
                        : wb_compact_move(s->repo, row->number, children[0].node, leaving);

    WB_CHECK(count > 0);
    WB_CHECK(row->number > 0);
    if (err == WB_E_CORRUPT && count > 1 && leaving)
        err = wb_compact_move(s->repo, row->number, children[0].node, true);
    if (err == 1) {
        wb_settling_damage(s);
        s->carried++;
        err = 0;
    }
    if (err == WB_E_BUSY) {
        s->busy++;
        return 0;
    }
    if (err == WB_E_CORRUPT) {
        wb_settling_damage(s);
        s->stuck++;
        return 0;
    }
    s->moved += err == 0;
    s->done += row->bytes;
    if (err == 0)
        err = wb_repo_purge(s->repo); /* so that a full disk gets room */
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_settle_segments(struct wb_settling *s)
{
    struct wb_split_child children[WB_SPLIT_CHILDREN_MAX];
    struct wb_repo_overview o = {0};
    uint64_t left = 0;
    int err = wb_repo_overview(s->repo, &o);

    WB_CHECK(s->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(s->moved == 0 && s->busy == 0);
    for (int pass = 0; pass < 2 && err == 0; pass++) {
        for (size_t i = 0; i < o.rows.count && err == 0; i++) {
            const struct wb_catalog_segment *row = &o.rows.items[i];
            size_t count = wb_settle_plan(&s->repo->nodes, row, children);
            if (count == 1 && children[0].node == row->node)
                continue;
            if (pass == 0) {
                left += row->bytes;
                continue;
            }
            err = settle_segment(s, row, children, count);
            if (err == 0)
                err = wb_settling_report(s);
        }
        if (pass == 0)
            s->total = s->done + left;
    }
    wb_catalog_rows_release(&o.rows);
    return err;
}
