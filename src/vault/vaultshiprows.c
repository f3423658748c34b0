/*
 * vaultshiprows.c - ships the rows of catalogs: those that differ from what the vault has, or all of them.
 *
 * The rows of a part are a chain: a base, and runs behind it, each of which has what changed. A process that follows
 * knows what it shipped last, because it holds that state; another one finds it by a mark. A mark may be older than the
 * newest shipment, after a kill: then the runs behind it die, and the new one has everything since. A new base comes
 * when the runs have become larger than the base, or too many.
 */
#include "base/error.h"
#include "vault/vaultrows.h"
#include "vault/vaultshipper.h"

#include <stdio.h>

enum { RUNS_MAX = 1024, RUNS_BYTES_LEAST = 256 << 10 };

struct rows {
    struct wb_vault_shipper *shipper;
    struct wb_vault_plan *plan;
    struct wb_vault_putter *putter;
    int (*before)(struct wb_vault_shipper *shipper, uint64_t number);
    bool *begun;
    bool merge;
    const char *name; /* of the chain */
    uint32_t file;
    uint64_t offset;
    bool run; /* the next piece begins one */
    struct wb_vault_rows_writer writer;
};

/* Hands the rows so far to the putter. */
static int flush_rows(struct rows *rows)
{
    struct wb_vault_task *task;
    uint64_t len = rows->writer.bytes.len;
    int err = 0;

    if (len == 0)
        return 0;
    if (!*rows->begun)
        err = rows->before(rows->shipper, rows->plan->number);
    *rows->begun = *rows->begun || err == 0;
    if (err == 0)
        err = wb_vault_plan_add_rows(rows->plan, rows->name, rows->file, rows->offset, rows->run, &rows->writer.bytes,
                                     &task);
    if (err == 0)
        err = wb_vault_putter_add(rows->putter, task);
    rows->offset += len;
    rows->run = false;
    wb_vault_rows_clear(&rows->writer);
    return err;
}

static int add_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    struct rows *rows = context;
    struct wb_vault_row row = {table, key, value};
    int err = 0;

    if (rows->writer.bytes.len + key.len + value.len > WB_VAULT_ROWS_CHUNK)
        err = flush_rows(rows);
    return err < 0 ? err : wb_vault_rows_add(&rows->writer, &row);
}

/* Where the difference begins. */
struct since {
    struct wb_store_state *state; /* or: */
    struct wb_slice mark;
    uint64_t number;
};

static bool find_since(const struct wb_vault_shipper *shipper, const struct wb_vault_rows_look *look,
                       struct since *since_out)
{
    const struct wb_vault_memory *memory = &shipper->memory;
    uint64_t newest = shipper->manifest.number;

    *since_out = (struct since){.state = NULL};
    if (!shipper->trusted || !look->any || look->runs >= RUNS_MAX ||
        (look->more_bytes > look->base_bytes && look->more_bytes > RUNS_BYTES_LEAST))
        return false;
    if (shipper->last && shipper->last_number == newest)
        *since_out = (struct since){.state = shipper->last, .number = newest};
    else if (memory->mark_number && memory->mark_number >= look->born && memory->mark_number <= newest)
        *since_out = (struct since){.mark = wb_buf_slice(&memory->mark), .number = memory->mark_number};
    return since_out->number != 0;
}

static int stop_at_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    (void)context;
    (void)table;
    (void)key;
    (void)value;
    return 1;
}

/* With a full shipment that comes anyway: everything since the last full one, instead of what is new. */
static int merge_runs(struct rows *rows, size_t part, const struct wb_vault_rows_look *look, struct since *since)
{
    struct wb_vault_shipper *shipper = rows->shipper;

    if (!rows->merge || since->state != shipper->last || !shipper->anchor || shipper->anchor == shipper->last ||
        shipper->anchor_number < look->born)
        return 0;
    int any = wb_vault_plan_has_news(rows->plan) || rows->plan->tasks.count
                  ? 1
                  : wb_store_state_rows_since(rows->plan->moment->state, part, since->state, stop_at_row, NULL);
    if (any > 0)
        *since = (struct since){.state = shipper->anchor, .number = shipper->anchor_number};
    return any < 0 ? any : 0;
}

static int add_difference(struct rows *rows, size_t part, const struct since *since)
{
    struct wb_store_state *state = rows->plan->moment->state;

    rows->run = true;
    if (since->state)
        return wb_store_state_rows_since(state, part, since->state, add_row, rows);
    return wb_store_state_rows_since_mark(state, part, since->mark, add_row, rows);
}

static int ship_part(struct rows *rows, size_t part)
{
    struct wb_vault_rows_look look;
    struct since since;
    int err = WB_E_NOTFOUND;

    wb_vault_plan_look(rows->plan, part, &look);
    bool difference = find_since(rows->shipper, &look, &since);
    int merged = difference ? merge_runs(rows, part, &look, &since) : 0;
    if (merged < 0)
        return merged;
    if (difference) {
        size_t pieces = rows->plan->change.pieces.count, tasks = rows->plan->tasks.count;
        err = wb_vault_plan_rows(rows->plan, part, false, since.number, &rows->file, &rows->offset);
        if (err == 0)
            err = add_difference(rows, part, &since);
        if (err == WB_E_NOTFOUND) { /* the mark has given way */
            rows->shipper->memory.mark_number = 0;
            rows->plan->change.pieces.count = pieces;
            if (rows->plan->tasks.count > tasks)
                return wb_fail(WB_E_BUSY, "%s: what was shipped last was overwritten while it was compared: try again",
                               rows->shipper->dir);
        }
    }
    if (err == WB_E_NOTFOUND) {
        wb_vault_rows_clear(&rows->writer);
        rows->run = true;
        err = wb_vault_plan_rows(rows->plan, part, true, 0, &rows->file, &rows->offset);
        if (err == 0)
            err = wb_store_state_rows(rows->plan->moment->state, part, add_row, rows);
    }
    return err < 0 ? err : flush_rows(rows);
}

int wb_vault_ship_rows(struct wb_vault_shipper *shipper, struct wb_vault_plan *plan, struct wb_vault_putter *putter,
                       bool merge, int (*before)(struct wb_vault_shipper *shipper, uint64_t number))
{
    static const char *const names[WB_VAULT_PARTS_MAX] = {"rows/0", "rows/1"};
    bool begun = plan->tasks.count > 0;
    struct rows rows = {
        .shipper = shipper, .plan = plan, .putter = putter, .before = before, .begun = &begun, .merge = merge};
    int err = 0;

    WB_CHECK(plan->moment->facts.parts <= WB_VAULT_PARTS_MAX);
    for (size_t part = 0; err == 0 && part < plan->moment->facts.parts; part++) {
        rows.name = names[part];
        err = ship_part(&rows, part);
    }
    wb_vault_rows_release(&rows.writer);
    return err;
}
