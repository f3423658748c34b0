/*
 * vaultship.c - brings the newest state of a repository to its vault (vault.h).
 *
 *   prepare   whose the vault is, and what it has                                    vaultowner.c
 *   collect   one moment of the repository                                           vaultcollect.c
 *   plan      what is new                                                            vaultplan.c, vaultshiprows.c
 *   put       objects with bytes, by several threads                                 vaultput.c
 *   publish   the shipment, and then head, which makes it safe
 *   remember  in DIR/vault: what was shipped, stamps of files, a mark of the rows    vaultmemory.c
 *   clean     objects that nothing needs any more                                    vaultclean.c
 *
 * Before the first object is put, DIR/vault has the number of the shipment and of the run. So whatever dies, the next
 * process knows what may be there: it uses the objects again that fit, and deletes the others after its own shipment.
 */
#include "base/date.h"
#include "base/error.h"
#include "os/clock.h"
#include "vault/vaultexpire.h"
#include "vault/vaultshipper.h"

#include <stdio.h>

#define EXPIRE_EVERY_MS WB_HOUR_MS        /* when nothing is new, but states are too old */
#define MARK_EVERY_NS (60 * 1000000000LL) /* while it follows */
#define DIFFERENCES_BYTES_LEAST (64 << 10)
enum { DIFFERENCES_MAX = 32, ATTEMPTS_MAX = 3 };

/* ---- an attempt ---------------------------------------------------------------------------------------------- */

/* What one shipment consists of. */
struct attempt {
    struct wb_vault_shipper *shipper;
    struct wb_collected moment;
    struct wb_vault_plan plan;
    struct wb_vault_putter *putter;
    bool full;
    struct wb_vault_object shipment; /* none: it was not put */
    bool published;                  /* head names it, or may do so */
    struct wb_object_counts before;
    struct wb_vault_garbages dropped;
};

/* If another process was killed, its run may have left objects. */
static int note_stale(struct wb_vault_memory *memory, uint64_t run)
{
    if (!memory->attempt || memory->run == run || memory->stale.count == WB_VAULT_STALE_MAX)
        return 0;
    return wb_vec_push(&memory->stale, memory->run);
}

/* From now on there may be objects of this shipment. */
static int begin_attempt(struct wb_vault_shipper *shipper, uint64_t number)
{
    struct wb_vault_memory *memory = &shipper->memory;
    int err = note_stale(memory, shipper->run);

    if (err < 0 || (memory->attempt == number && memory->run == shipper->run && shipper->begun == number))
        return err;
    memory->attempt = number;
    memory->run = shipper->run;
    err = wb_vault_memory_save(memory);
    shipper->begun = err == 0 ? number : 0;
    return err;
}

/* Whether the next shipment is a full one. */
static bool is_full(const struct wb_vault_manifest *manifest)
{
    uint64_t most = manifest->full_bytes > DIFFERENCES_BYTES_LEAST ? manifest->full_bytes : DIFFERENCES_BYTES_LEAST;

    return manifest->number == 0 || manifest->chain.count > DIFFERENCES_MAX || manifest->difference_bytes > most;
}

static uint64_t next_number(const struct wb_vault_shipper *shipper)
{
    uint64_t number = shipper->manifest.number;

    number = shipper->memory.number > number ? shipper->memory.number : number;
    return (shipper->memory.attempt > number ? shipper->memory.attempt : number) + 1;
}

static int put_tasks(struct attempt *attempt)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    struct wb_vault_plan *plan = &attempt->plan;
    size_t files = plan->tasks.count;
    int err = files ? begin_attempt(shipper, plan->number) : 0;

    if (files)
        wb_vault_note_waiting(shipper, plan->bytes);
    for (size_t i = 0; err == 0 && i < files; i++)
        err = wb_vault_putter_add(attempt->putter, plan->tasks.items[i]);
    if (err == 0)
        err = wb_vault_ship_rows(shipper, plan, attempt->putter, attempt->full, begin_attempt);
    if (err == 0)
        err = wb_vault_putter_wait(attempt->putter);
    return err < 0 ? err : wb_vault_plan_end(plan);
}

static int plan_files(struct attempt *attempt, bool full, const struct wb_vault_stamps *known)
{
    struct wb_vault_shipper *shipper = attempt->shipper;

    wb_vault_plan_release(&attempt->plan);
    attempt->plan = (struct wb_vault_plan){.moment = &attempt->moment,
                                           .manifest = &shipper->manifest,
                                           .trusted = shipper->trusted,
                                           .full = full,
                                           .number = next_number(shipper)};
    return wb_vault_plan_files(&attempt->plan, known);
}

/* Small pieces are only put together when something is new, and a full shipment comes anyway. */
static int plan_all(struct attempt *attempt, const struct wb_vault_stamps *known)
{
    int err = plan_files(attempt, false, known);
    bool news = attempt->plan.tasks.count > 0 || wb_vault_plan_has_news(&attempt->plan);

    return err == 0 && news && attempt->full ? plan_files(attempt, true, known) : err;
}

/* Collects, plans, and puts what is new. */
static int put_news(struct attempt *attempt)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    bool stamps = shipper->trusted && shipper->stamps_number && shipper->stamps_number <= shipper->manifest.number &&
                  shipper->stamps_term == shipper->term;
    const struct wb_vault_stamps none = WB_VEC_INIT;
    int err = wb_collect(shipper->dir, stamps ? &shipper->store_stamps : NULL, &attempt->moment);

    attempt->full = is_full(&shipper->manifest);
    if (err == 0)
        err = plan_all(attempt, stamps ? &shipper->stamps : &none);
    if (err < 0)
        return err;
    struct wb_vault_putter_options options = {.store = shipper->store,
                                              .memory = &shipper->memory,
                                              .manifest = &shipper->manifest,
                                              .state = attempt->moment.state,
                                              .run = shipper->run,
                                              .count = &shipper->count,
                                              .total = attempt->plan.bytes,
                                              .progress = shipper->options.progress,
                                              .progress_context = shipper->options.progress_context};
    err = wb_vault_putter_new(&options, &attempt->putter);
    if (err == 0)
        err = put_tasks(attempt);
    wb_vault_putter_free(attempt->putter);
    attempt->putter = NULL;
    return err;
}

/* ---- the shipment -------------------------------------------------------------------------------------------- */

/* Which states end, and whether that alone is worth a shipment. */
static int expire(struct attempt *attempt, bool *worth_out)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    const struct wb_vault_manifest *manifest = &shipper->manifest;
    const struct wb_store_state_facts *facts = &attempt->moment.facts;
    struct wb_vault_shipment *change = &attempt->plan.change;
    bool carried_out = facts->takedowns_open == 0 && facts->takedowns > manifest->takedowns;
    struct wb_vault_numbers before = WB_VEC_INIT;
    struct wb_vault_points older = manifest->points;
    int64_t now_ms = wb_clock_wall_ms();
    size_t old, many;

    /* The newest state is not too old as long as nothing is new. */
    older.count -= older.count > 0;
    int err = wb_vault_expire(&older, now_ms, shipper->options.keep_ms, carried_out, &before, &old);
    wb_vec_release(&before);
    *worth_out = (carried_out && manifest->number) ||
                 (old && (!shipper->options.follow || now_ms - shipper->expired_ms > EXPIRE_EVERY_MS));
    change->takedowns = carried_out ? facts->takedowns : manifest->takedowns;
    if (err == 0)
        err = wb_vault_expire(&manifest->points, now_ms, shipper->options.keep_ms, carried_out, &change->ended, &many);
    if (*worth_out)
        shipper->expired_ms = now_ms;
    return err;
}

/* The point itself, without what it takes in objects. */
static int add_point(struct attempt *attempt)
{
    const struct wb_vault_points *points = &attempt->shipper->manifest.points;
    int64_t time_ms = attempt->moment.time_ms, last_ms = points->count ? points->items[points->count - 1].time_ms : 0;
    struct wb_vault_point point = {.number = attempt->plan.number,
                                   .shipment = {.run = attempt->shipper->run, .count = ++attempt->shipper->count},
                                   .time_ms = time_ms > last_ms ? time_ms : last_ms + 1,
                                   .pages = attempt->moment.facts.pages};

    return wb_vec_push(&attempt->plan.change.points, point);
}

/* Bytes of all objects that a restore reads. */
static uint64_t living_bytes(const struct wb_vault_manifest *manifest)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < manifest->pieces.count; i++)
        if (wb_vault_alive_at(manifest->pieces.items[i].born, manifest->pieces.items[i].died, manifest->number))
            bytes += manifest->pieces.items[i].object.stored;
    return bytes;
}

/* What nothing needs once this shipment is there: what is left of before, what it drops, and replaced shipments. */
static int list_garbage(struct attempt *attempt, struct wb_vault_garbages *left)
{
    const struct wb_vault_objects *chain = &attempt->shipper->manifest.chain;
    int err = 0;

    for (size_t i = 0; err == 0 && i < attempt->dropped.count; i++)
        err = wb_vec_push(left, attempt->dropped.items[i]);
    for (size_t i = 0; err == 0 && attempt->full && i + 1 < chain->count; i++)
        err = wb_vec_push(left, (struct wb_vault_garbage){true, chain->items[i]});
    return err;
}

/* Applies the change to the manifest. From here on the manifest is only good if everything succeeds. */
static int apply_change(struct attempt *attempt)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    struct wb_vault_manifest *manifest = &shipper->manifest;
    struct wb_vault_shipment *change = &attempt->plan.change;
    struct wb_vault_garbages left = manifest->garbage;
    struct wb_vault_object self;

    manifest->garbage = (struct wb_vault_garbages)WB_VEC_INIT;
    change->full = manifest->number == 0;
    memcpy(change->repository, shipper->repository, WB_VAULT_ID_BYTES);
    if (!change->full)
        change->previous = manifest->chain.items[manifest->chain.count - 1];
    else
        wb_vec_clear(&change->ended);
    int err = add_point(attempt);
    if (err == 0) {
        self = change->points.items[0].shipment;
        err = wb_vault_manifest_apply(manifest, "the new shipment", &self, change, &attempt->dropped);
    }
    if (err == 0)
        err = list_garbage(attempt, &left);
    change->garbage = left;
    for (size_t i = 0; err == 0 && i < left.count; i++)
        err = wb_vec_push(&manifest->garbage, left.items[i]);
    if (err == 0) {
        change->points.items[0].bytes = living_bytes(manifest);
        manifest->points.items[manifest->points.count - 1].bytes = change->points.items[0].bytes;
    }
    return err;
}

/* Makes the manifest anew from a full shipment: without what older shipments have left in its memory. */
static int renew_manifest(struct wb_vault_shipper *shipper, const struct wb_vault_object *self,
                          const struct wb_vault_shipment *full)
{
    struct wb_vault_manifest fresh = {.number = 0};
    int err = wb_vault_manifest_apply(&fresh, "the new shipment", self, full, NULL);

    if (err < 0) {
        wb_vault_manifest_release(&fresh);
        return err;
    }
    wb_vault_manifest_release(&shipper->manifest);
    shipper->manifest = fresh;
    return 0;
}

static int put_shipment(struct attempt *attempt)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    struct wb_vault_manifest *manifest = &shipper->manifest;
    struct wb_vault_object *self = &manifest->chain.items[manifest->chain.count - 1];
    struct wb_vault_shipment full = {.full = false};
    struct wb_buf contents = WB_BUF_INIT, bytes = WB_BUF_INIT;
    char name[WB_OBJECT_NAME_MAX];
    int err = attempt->full ? wb_vault_manifest_full(manifest, &full) : 0;

    if (err == 0)
        err = wb_vault_shipment_encode(attempt->full ? &full : &attempt->plan.change, &contents);
    if (err == 0)
        err = wb_vault_object_pack(WB_VAULT_SHIPMENT, wb_buf_slice(&contents), true, &bytes, self);
    wb_vault_object_name(WB_VAULT_SHIPMENTS, self, name);
    if (err == 0)
        attempt->shipment = *self;
    if (err == 0)
        err = wb_object_put(shipper->store, name, wb_buf_slice(&bytes));
    manifest->difference_bytes += attempt->full ? 0 : self->stored;
    if (err == 0 && attempt->full) {
        struct wb_vault_object object = *self;
        err = renew_manifest(shipper, &object, &full);
    }
    wb_vault_shipment_release(&full);
    wb_buf_release(&contents);
    wb_buf_release(&bytes);
    return err;
}

/* ---- remembering --------------------------------------------------------------------------------------------- */

/* The state that is safe now becomes the one that the next difference begins with. */
static int remember(struct attempt *attempt)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    struct wb_vault_memory *memory = &shipper->memory;
    const struct wb_vault_manifest *manifest = &shipper->manifest;
    struct wb_buf stamps = WB_BUF_INIT;
    bool trusted = shipper->trusted;

    if (shipper->last != shipper->anchor)
        wb_store_state_let_go(shipper->last);
    shipper->last = attempt->moment.state;
    shipper->last_number = manifest->number;
    attempt->moment.state = NULL;
    if (shipper->options.follow && (attempt->full || !shipper->anchor)) {
        wb_store_state_let_go(shipper->anchor);
        shipper->anchor = shipper->last;
        shipper->anchor_number = shipper->last_number;
    }
    int err = note_stale(memory, shipper->run);
    if (err == 0)
        err = wb_store_state_stamps(shipper->last, &stamps);
    if (err < 0) {
        wb_buf_release(&stamps);
        return err;
    }
    wb_buf_release(&shipper->store_stamps);
    shipper->store_stamps = stamps;
    wb_vault_stamps_release(&shipper->stamps);
    shipper->stamps = attempt->plan.stamps;
    attempt->plan.stamps = (struct wb_vault_stamps)WB_VEC_INIT;
    shipper->stamps_number = manifest->number;
    shipper->stamps_term = shipper->term;
    memory->number = manifest->number;
    memory->shipment = manifest->chain.items[manifest->chain.count - 1];
    memory->term = shipper->term;
    memory->attempt = 0;
    memory->run = shipper->run;
    if (!memory->since_ms)
        memory->since_ms = manifest->points.items[manifest->points.count - 1].time_ms;
    shipper->trusted = true;
    shipper->options.take_over = false; /* from now on, another owner is not taken over again */
    return trusted ? 0 : wb_vault_save_stamps(shipper);
}

/* What is left to do when the state is safe. */
static int settle(struct attempt *attempt)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    bool often = shipper->options.follow && wb_clock_mono_ns() - shipper->marked_ns < MARK_EVERY_NS;
    int err = remember(attempt);

    wb_vault_clean_garbage(shipper);
    if (err == 0)
        (void)wb_vault_clean_leftovers(shipper);
    if (shipper->manifest.garbage.count == 0)
        shipper->memory.deleted = shipper->manifest.number;
    if (err < 0)
        return err;
    return often ? wb_vault_memory_save(&shipper->memory) : wb_vault_mark_last(shipper);
}

/* ---- the door ------------------------------------------------------------------------------------------------ */

static void describe(struct attempt *attempt, struct wb_vault_shipped *shipped_out)
{
    const struct wb_vault_points *points = &attempt->shipper->manifest.points;
    const struct wb_vault_point *point = &points->items[points->count - 1];
    struct wb_object_counts now;
    char name[WB_OBJECT_NAME_MAX];

    wb_object_counts(attempt->shipper->store, &now);
    wb_vault_object_name("", &point->shipment, name);
    snprintf(shipped_out->state.shipment, sizeof shipped_out->state.shipment, "%.*s", WB_VAULT_NAME_MAX - 1, name);
    shipped_out->state.time_ms = point->time_ms;
    shipped_out->state.pages = point->pages;
    shipped_out->state.bytes = point->bytes;
    shipped_out->objects = now.puts - attempt->before.puts;
    shipped_out->bytes = now.bytes_put - attempt->before.bytes_put;
}

/* Nothing new: what a take-over or a lost head needs, and what an earlier process could not delete. */
static int ship_nothing(struct attempt *attempt)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    int err = 0;

    if (shipper->rewrite) {
        err = wb_vault_check_head(shipper);
        if (err == 0)
            err = wb_vault_put_head(shipper);
        return err < 0 ? err : settle(attempt);
    }
    wb_vault_clean_garbage(shipper);
    bool clean = shipper->manifest.garbage.count == 0 && shipper->memory.deleted != shipper->manifest.number;
    if (shipper->memory.attempt || shipper->memory.number != shipper->manifest.number)
        return settle(attempt); /* a killed process has shipped this; or all bytes were compared */
    if (clean) {
        shipper->memory.deleted = shipper->manifest.number;
        err = wb_vault_memory_save(&shipper->memory);
    }
    return err;
}

static int ship(struct attempt *attempt, struct wb_vault_shipped *shipped_out)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    bool worth = false;
    int err = put_news(attempt);

    if (err == 0)
        err = expire(attempt, &worth);
    if (err < 0)
        return err;
    if (!worth && !wb_vault_plan_has_news(&attempt->plan) && shipper->manifest.number)
        return ship_nothing(attempt);
    shipped_out->anything = true;
    err = begin_attempt(shipper, attempt->plan.number);
    if (err == 0)
        err = apply_change(attempt);
    if (err == 0)
        err = put_shipment(attempt);
    if (err == 0)
        err = wb_vault_check_head(shipper);
    attempt->published = err == 0; /* even if the answer of what follows is lost */
    if (err == 0)
        err = wb_vault_put_head(shipper);
    return err < 0 ? err : settle(attempt);
}

/* Deletes what was put, so that the vault is as it was. */
static void take_back(struct attempt *attempt)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    struct wb_vault_garbages put = WB_VEC_INIT;
    int err = 0;

    WB_CHECK(!attempt->published);
    if (!shipper->memory.attempt || shipper->memory.run != shipper->run)
        return; /* it had not begun: what may be there is another one's */
    for (size_t i = 0; err == 0 && i < attempt->plan.tasks.count; i++)
        if (attempt->plan.tasks.items[i]->put)
            err = wb_vec_push(&put, (struct wb_vault_garbage){false, attempt->plan.tasks.items[i]->object});
    if (err == 0 && wb_vault_object_is_one(&attempt->shipment))
        err = wb_vec_push(&put, (struct wb_vault_garbage){true, attempt->shipment});
    wb_vault_delete(shipper->store, &put);
    if (err == 0 && put.count == 0 && wb_vault_parts_clear(&shipper->memory) == 0) {
        shipper->memory.attempt = 0;
        (void)wb_vault_memory_save(&shipper->memory);
    }
    wb_vec_release(&put);
}

/*
 * After a failure. What was put stays if the same is tried again soon, and if head may name it; the next shipment
 * deletes what it does not need. Keeps the error message.
 */
static void give_up(struct attempt *attempt, int err)
{
    struct wb_vault_shipper *shipper = attempt->shipper;
    struct wb_error_copy error;

    wb_error_save(err, &error);
    wb_vault_manifest_release(&shipper->manifest);
    if (err == WB_E_BUSY)
        shipper->stamps_number = 0; /* the next attempt compares everything */
    if (!attempt->published && err != WB_E_DOWN && err != WB_E_STOPPED)
        take_back(attempt);
    else if (wb_vault_object_is_one(&attempt->shipment))
        (void)wb_vec_push(&shipper->orphans, (struct wb_vault_garbage){true, attempt->shipment});
    wb_error_restore(&error);
    wb_vault_note_failure(shipper);
}

static int ship_once(struct wb_vault_shipper *shipper, struct wb_vault_shipped *shipped_out)
{
    struct attempt attempt = {.shipper = shipper};
    uint64_t look = 0;
    bool fresh = true;

    wb_object_counts(shipper->store, &attempt.before);
    int err = wb_vault_prepare(shipper);
    if (err == 0)
        err = wb_collect_look(shipper->dir, &look, &fresh); /* before the moment, so that nothing later is missed */
    if (err == 0)
        err = ship(&attempt, shipped_out);
    if (err == 0) {
        describe(&attempt, shipped_out);
        wb_vault_note_safe(shipper);
        shipper->look = look;
        shipper->fresh = fresh;
        shipper->looked = true;
    } else {
        give_up(&attempt, err);
    }
    wb_vault_plan_release(&attempt.plan);
    wb_vec_release(&attempt.dropped);
    wb_collected_release(&attempt.moment);
    return err;
}

int wb_vault_ship(struct wb_vault_shipper *shipper, struct wb_vault_shipped *shipped_out)
{
    int err = WB_E_BUSY;

    WB_CHECK(shipper->magic == WB_VAULT_SHIPPER_MAGIC);
    for (int i = 0; err == WB_E_BUSY && i < ATTEMPTS_MAX; i++) {
        *shipped_out = (struct wb_vault_shipped){.anything = false};
        err = ship_once(shipper, shipped_out);
    }
    return err;
}
