/*
 * registry.h - the door of registry: which machine holds which shard?
 *
 * A cluster is some machines and the tables of this room, in PostgreSQL or, for machines of one host, in SQLite
 * (docs/formats/registry.md). A *shard* is the repository of all sites whose hash is in its range. One machine at a
 * time writes it, its *holder*, by a *lease*; the *term* grows by one with every change of holder. This room says who
 * holds what, and keeps machines from believing what is not so any more. It moves no pages and contacts no machine.
 *
 *   wb_registry_join() -> wb_registry_renew() every second -> wb_registry_leave()
 *
 * The rules (docs/design/0056-machines-and-shards.md has the reasons):
 *
 *   - A machine renews one lease every second, by the database's clock. A shard whose holder's lease is over is free.
 *   - A machine may take a free shard only after its own renewals have been unbroken for a full lease: no gap longer
 * than half a lease, and no step of the database's clock.
 *   - A holder stops when its lease is over by its own CLOCK_BOOTTIME, counted from before the request was sent, and an
 *     eighth earlier, because clocks differ. wb_registry_lease_left_ms() and wb_registry_holds() say so: ask them
 *     before each step that only a holder may do.
 *   - Every publication is bound to shard, holder, term and the head before it.
 *
 * Repeating after a lost answer is harmless, in each call in its own way; they say which:
 *
 *   (sets)   it sets again what it has set
 *   (bound)  it is bound to what was before, and recognises its own result
 *   (token)  it leaves a random token, and looks for that first
 *
 * Errors: WB_E_DOWN if the database cannot be reached or does not answer in time: leases run on meanwhile. WB_E_DENIED
 * if this machine may not do that (any more). WB_E_CORRUPT if the tables have rows that no call of this room makes.
 *
 * A handle is used by one thread at a time, except for wb_registry_lease_left_ms() and wb_registry_holds(), which any
 * thread may ask at any time. Not after fork.
 */
#ifndef WB_REGISTRY_REGISTRY_H
#define WB_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "base/vec.h"

enum {
    WB_REGISTRY_NAME_MAX = 64,     /* bytes of a machine's name, a class, a task, with the NUL */
    WB_REGISTRY_ADDRESS_MAX = 256, /* of an address */
    WB_REGISTRY_HEAD_MAX = 64,     /* of the name of a shipment */
    WB_REGISTRY_ID_MAX = 33,       /* of an id: 32 hexadecimal digits */
    WB_REGISTRY_SECRET_MAX = 65,
    WB_REGISTRY_STORE_MAX = 1024,
    WB_REGISTRY_WHAT_MAX = 2048, /* of what a bar names */
    WB_REGISTRY_SHARDS_MAX = 65536,
    WB_REGISTRY_COPIES_MAX = 16,
    WB_REGISTRY_LEASE_MS_MIN = 2000,
    WB_REGISTRY_LEASE_MS_MAX = 600000,
};

struct wb_registry;

/* ---- the cluster ---------------------------------------------------------------------------------------------------
 */

/* What a cluster is made with. Only `generation` ever changes. */
struct wb_registry_cluster {
    char id[WB_REGISTRY_ID_MAX];         /* random; init makes it */
    char secret[WB_REGISTRY_SECRET_MAX]; /* what machines show each other; init makes it. Never shown to people */
    char store[WB_REGISTRY_STORE_MAX];   /* the URL of the object store */
    char history[WB_REGISTRY_NAME_MAX];  /* the policy of all shards, as `webbase history` prints it */
    unsigned shards;                     /* a power of two */
    unsigned copies;                     /* of each shard, the holder's counted */
    unsigned lease_ms;
    uint64_t generation; /* the active one; 0: none yet */
};

/* WB_E_INVALID, with a sentence, if a cluster cannot be made with these settings. */
int wb_registry_cluster_check(const struct wb_registry_cluster *settings);

/*
 * Makes the tables of a cluster; in SQLite the file too. WB_E_INVALID as above, WB_E_BUSY if there is a cluster
 * already: the message names its store. (token: the id)
 */
int wb_registry_init(const char *url, const struct wb_registry_cluster *settings);

/* Opens the tables. WB_E_NOTFOUND if there is no cluster, WB_E_NEWER if it has another format. */
int wb_registry_open(const char *url, struct wb_registry **registry_out);
void wb_registry_close(struct wb_registry *registry);

/* As it was when the handle was opened. */
const struct wb_registry_cluster *wb_registry_cluster(const struct wb_registry *registry);

/* What messages call the database; never a password. */
const char *wb_registry_where(const struct wb_registry *registry);

/* The shard of a site, by its name as the dispenser has it: example.org, example.org:8080. */
unsigned wb_registry_shard_of(struct wb_slice site, unsigned shards);

/* ---- being a machine
 * -------------------------------------------------------------------------------------------------- */

struct wb_registry_self {
    const char *name;       /* letters, digits, '.', '-', '_' */
    const char *address;    /* HOST:PORT, where other machines reach it */
    const char *directory;  /* the id that the directory keeps: 32 hexadecimal digits */
    unsigned weight;        /* 1 to 1000 */
    const char *class_name; /* it crawls only sites of this class; "": all that have no machine of their own */
    bool search_only;       /* it holds copies, never a shard */
};

/*
 * Becomes a machine of the cluster, with a new lease. WB_E_BUSY if a machine at work has that name or that directory,
 * and names it. Shards that an earlier process held under the name stay with it, with a higher term, so that whatever
 * the earlier one still does is refused; they are held when the new lease has lasted for its full length. (token: the
 * session)
 */
int wb_registry_join(struct wb_registry *registry, const struct wb_registry_self *self);

/* What a machine hears with each renewal. */
struct wb_registry_news {
    bool lapsed;         /* the lease had been over: everything of other machines may have changed */
    bool shards_changed; /* somebody else changed which shards this machine has: wb_registry_held_each() has them */
    bool draining;
    uint64_t generation; /* of the cluster, that is active now */
    uint64_t bars;       /* the number of the newest bar */
};

/*
 * Renews the lease; call it every second. If somebody has changed which shards this machine holds, that is read too,
 * before the lease counts as renewed. WB_E_DENIED: the machine was removed, or another process has its name; it must
 * end. news_out may be NULL. (sets)
 */
int wb_registry_renew(struct wb_registry *registry, struct wb_registry_news *news_out);

/* Gives up all shards and the lease. (bound) */
int wb_registry_leave(struct wb_registry *registry);

/* How long the lease still lasts by this machine's own clock, in ms; 0: it is over. Any thread. */
int64_t wb_registry_lease_left_ms(const struct wb_registry *registry);

/* Whether this machine holds the shard at this moment: the lease lasts and it is one of its shards. Any thread. */
bool wb_registry_holds(const struct wb_registry *registry, unsigned shard, int64_t *term_out);

/* Whether its renewals have been unbroken for a full lease. */
bool wb_registry_may_take(const struct wb_registry *registry);

/* ---- shards
 * ------------------------------------------------------------------------------------------------------------ */

struct wb_registry_shard {
    unsigned shard;
    char holder[WB_REGISTRY_NAME_MAX]; /* "": nobody */
    char wanted[WB_REGISTRY_NAME_MAX]; /* the machine that is to have it next; "": it stays */
    char head[WB_REGISTRY_HEAD_MAX];   /* the newest shipment; "": nothing was ever shipped */
    int64_t term;
    uint64_t pages, bytes, generation;
    int64_t unsafe_ms; /* how long the oldest thing that is not safe has waited; 0: nothing waits */
};

/* The shards of this machine, as of the last renewal, take or release. Does not ask the database. */
int wb_registry_held_each(const struct wb_registry *registry,
                          int (*each)(void *context, const struct wb_registry_shard *shard), void *context);

/*
 * Takes a shard that is free: WB_E_BUSY if it is not, WB_E_DENIED if this machine may not take any now. *shard_out is
 * the shard with its new term; head is where to begin from. (token)
 */
int wb_registry_take(struct wb_registry *registry, unsigned shard, struct wb_registry_shard *shard_out);

/* Gives a shard up; this machine does not hold it any more from the moment of the call, whatever comes of it. (bound)
 */
int wb_registry_release(struct wb_registry *registry, unsigned shard);

/*
 * Gives a shard to another machine, which is up, with the next term. As above: not held any more from now on. WB_E_BUSY
 * if that machine cannot have it; then the shard is free. (bound)
 */
int wb_registry_hand_over(struct wb_registry *registry, unsigned shard, const char *machine);

struct wb_registry_publication {
    unsigned shard;
    const char *old_head, *head; /* no two publications may have the same head */
    uint64_t pages, bytes, generation;
    bool unsafe; /* something newer than this shipment waits already */
};

/*
 * Makes a shipment the newest of a shard. WB_E_DENIED: this machine does not hold the shard any more, and nothing has
 * changed. WB_E_CORRUPT: it does, but the head is another than old_head: the database has lost what it had confirmed (a
 * standby took its place), or the directory is a copy; *now_out has what the registry says. (bound)
 */
int wb_registry_publish(struct wb_registry *registry, const struct wb_registry_publication *publication,
                        struct wb_registry_shard *now_out);

/* Tells that something in the shard waits to become safe, since so long. Only for others to see. (sets) */
int wb_registry_tell_unsafe(struct wb_registry *registry, unsigned shard, int64_t unsafe_ms);

/* This machine follows the shard as a copy, and has this shipment; NULL: it does not any more. (sets) */
int wb_registry_copy(struct wb_registry *registry, unsigned shard, const char *head);

/* ---- what there is
 * ----------------------------------------------------------------------------------------------------- */

enum wb_registry_state {
    WB_REGISTRY_UP,
    WB_REGISTRY_DOWN,     /* its lease is over */
    WB_REGISTRY_DRAINING, /* it gives its shards away, and stays so until it is removed */
};

struct wb_registry_machine {
    char name[WB_REGISTRY_NAME_MAX], address[WB_REGISTRY_ADDRESS_MAX], class_name[WB_REGISTRY_NAME_MAX];
    char directory[WB_REGISTRY_ID_MAX];
    unsigned weight;
    bool search_only, draining;
    bool steady;      /* its renewals have been unbroken for a full lease */
    int64_t lease_ms; /* what is left of it, by the database's clock; 0: over */
    uint64_t bars;    /* it enforces all bars up to this number */
    unsigned shards;  /* the sums over the shards that it holds */
    uint64_t pages, bytes;
};

struct wb_registry_copy_row {
    unsigned shard;
    char machine[WB_REGISTRY_NAME_MAX], head[WB_REGISTRY_HEAD_MAX];
};

/* The registry at one moment. */
struct wb_registry_view {
    struct wb_registry_cluster cluster;
    int64_t now_ms;                              /* by the database's clock */
    WB_VEC(struct wb_registry_machine) machines; /* by name */
    WB_VEC(struct wb_registry_shard) shards;     /* by number */
    WB_VEC(struct wb_registry_copy_row) copies;  /* by shard and machine */
    bool lossy;                                  /* the server may lose what it has confirmed */
};

#define WB_REGISTRY_VIEW_INIT ((struct wb_registry_view){.now_ms = 0})

int wb_registry_look(struct wb_registry *registry, struct wb_registry_view *view_out);
void wb_registry_view_release(struct wb_registry_view *view);
enum wb_registry_state wb_registry_state(const struct wb_registry_machine *machine);
const char *wb_registry_state_word(enum wb_registry_state state);

/* NULL if there is none. */
const struct wb_registry_machine *wb_registry_view_machine(const struct wb_registry_view *view, const char *name);

/* Calls each() with a sentence for everything that somebody should see to. */
int wb_registry_problems(const struct wb_registry_view *view, int (*each)(void *context, const char *sentence),
                         void *context);

/*
 * For next to nothing, every second: returns 1 if some shard may be free, 0 if none is. Also mends leases that the
 * database's clock, having gone back, would keep for longer than a lease.
 */
int wb_registry_anything_free(struct wb_registry *registry);

/* ---- placement: who should hold what
 * ---------------------------------------------------------------------------------- */

/*
 * A step towards an even cluster. Every machine finds the same steps in the same view; it does those that are its own.
 * Shards weigh their bytes, empty ones count by number; each machine gets its share by weight.
 */
struct wb_registry_step {
    unsigned shard;
    const char *from; /* "": the shard is free. Points into the view, as `to` does */
    const char *to;
};

struct wb_registry_steps WB_VEC_OF(struct wb_registry_step);

/*
 * Free shards are distributed first, all of them: the largest first, each to the machine with the fewest bytes for its
 * weight. If none is free, shards move: those that somebody asked for, then from machines that drain, then from full
 * ones to empty ones; each machine gives and gets at most one at a time.
 */
int wb_registry_place(const struct wb_registry_view *view, struct wb_registry_steps *steps_out);

/* The machines that should have a copy of a shard, the holder not counted. Returns how many. */
unsigned wb_registry_place_copies(const struct wb_registry_view *view, unsigned shard,
                                  const char *machines_out[WB_REGISTRY_COPIES_MAX]);

/* ---- for operators; each is (sets)
 * -------------------------------------------------------------------------------------- */

/* The machine gives its shards away from now on. WB_E_NOTFOUND. */
int wb_registry_drain(struct wb_registry *registry, const char *machine);

/* Forgets a machine. WB_E_BUSY while it holds shards, or is at work and does not drain. WB_E_NOTFOUND. */
int wb_registry_remove(struct wb_registry *registry, const char *machine);

/* The shard is to move to that machine. WB_E_NOTFOUND, WB_E_BUSY if that machine cannot have shards. */
int wb_registry_move(struct wb_registry *registry, unsigned shard, const char *machine);

/* ---- tasks: what one machine at a time does for all
 * ---------------------------------------------------------------------- */

/*
 * Takes a task, or keeps it: *term_out grows with each change of holder. WB_E_BUSY if a machine whose lease lasts has
 * it, and names it. *state_out is what the last holder has left. (token: the session)
 */
int wb_registry_task_take(struct wb_registry *registry, const char *task, int64_t *term_out, struct wb_buf *state_out);

/* Leaves a state, bound to holder and term; `done`: gives the task up. WB_E_DENIED if another has it. (sets) */
int wb_registry_task_leave(struct wb_registry *registry, const char *task, int64_t term, struct wb_slice state,
                           bool done);

/* ---- bars: takedowns that every machine enforces
 * --------------------------------------------------------------------------- */

struct wb_registry_bar {
    uint64_t number;  /* each change has a higher one */
    const char *what; /* a URL or a site, as `expunge` takes it */
    bool lifted;      /* it does not hold any more */
};

/* Bars something, or lifts the bar; *number_out is that of the change. (sets) */
int wb_registry_bar(struct wb_registry *registry, const char *what, bool lifted, uint64_t *number_out);

/* Calls each() for all changes after a number, in order, outside of any transaction. */
int wb_registry_bars_each(struct wb_registry *registry, uint64_t after,
                          int (*each)(void *context, const struct wb_registry_bar *bar), void *context);

/* This machine enforces all bars up to this number. (sets) */
int wb_registry_bars_confirm(struct wb_registry *registry, uint64_t number);

/* ---- addresses: slots that machines share
 * --------------------------------------------------------------------------------- */

/*
 * Takes one of `slots` slots of an IP address, until it is released or this machine's lease is over. *slot_out is 0 if
 * all are taken, otherwise from 1. Whoever had the slot before must not contact the address again before *ready_ms_out
 * (ms from now) is over, and nor must we. (token)
 */
int wb_registry_slot_take(struct wb_registry *registry, struct wb_slice address, unsigned slots, unsigned *slot_out,
                          int64_t *ready_ms_out);

/* Gives it back; nobody may use it for another wait_ms. (bound) */
int wb_registry_slot_release(struct wb_registry *registry, struct wb_slice address, unsigned slot, int64_t wait_ms);

/* ---- checking
 * --------------------------------------------------------------------------------------------------------------- */

/* Calls found() for each row that breaks the rules of docs/formats/registry.md. That is not an error. */
int wb_registry_check(struct wb_registry *registry, void (*found)(void *context, const char *message), void *context);

/* A test seam: this machine's CLOCK_BOOTTIME in ns; NULL: the real one. */
extern int64_t (*wb_registry_test_clock)(const struct wb_registry *registry);

#endif
