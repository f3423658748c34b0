/*
 * registry.c - opens and closes the registry, and runs its transactions. registry_inside.h lists the other files.
 */
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/random.h"
#include "registry/registry_inside.h"

int64_t (*wb_registry_test_clock)(const struct wb_registry *registry);

int64_t wb_registry_now_ns(const struct wb_registry *r)
{
    return wb_registry_test_clock ? wb_registry_test_clock(r) : wb_clock_mono_ns();
}

void wb_registry_random_id(char id_out[WB_REGISTRY_ID_MAX])
{
    uint8_t bytes[(WB_REGISTRY_ID_MAX - 1) / 2];

    wb_random_bytes(bytes, sizeof bytes);
    wb_hex_encode(bytes, sizeof bytes, id_out);
    id_out[WB_REGISTRY_ID_MAX - 1] = '\0';
}

/* ---- transactions --------------------------------------------------------------------------------------------- */

struct registry_transaction {
    struct wb_registry *r;
    wb_registry_work work;
    void *context;
    int refused; /* what work itself said, unless the database was the reason */
};

static int run_work(struct wb_sql *sql, void *context)
{
    struct registry_transaction *t = context;
    int err = t->work(t->r, t->context);

    (void)sql;
    t->refused = err < 0 && err != WB_SQL_AGAIN ? err : 0;
    return err < 0 ? err : 0;
}

int wb_registry_transact(struct wb_registry *r, enum wb_sql_kind kind, wb_registry_work work, void *context)
{
    struct registry_transaction t = {.r = r, .work = work, .context = context};

    WB_CHECK(r->magic == WB_REGISTRY_MAGIC);
    int err = wb_sql_transact(r->sql, kind, run_work, &t);
    return err == WB_E_IO || (err == WB_E_BUSY && t.refused != WB_E_BUSY) ? WB_E_DOWN : err;
}

int wb_registry_end_row(struct wb_registry *r, enum wb_registry_statement statement, int ran)
{
    if (ran > 0)
        wb_sql_end(r->sql, statement);
    return ran;
}

int wb_registry_take_number(struct wb_registry *r, int64_t *number_out, enum wb_registry_statement statement, int ran)
{
    *number_out = ran > 0 ? wb_sql_number(r->sql, statement, 0) : 0;
    return wb_registry_end_row(r, statement, ran);
}

int wb_registry_need_machine(const struct wb_registry *r)
{
    WB_CHECK(r->magic == WB_REGISTRY_MAGIC);
    return r->session[0]
               ? 0
               : wb_fail(WB_E_DENIED, "this process is not a machine of the cluster in %s", wb_sql_where(r->sql));
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

struct opening {
    int64_t epoch; /* of the database's clock now */
    bool found;
};

static int read_cluster(struct wb_registry *r, void *context)
{
    struct opening *o = context;
    int64_t now;
    int err = wb_registry_read_cluster(r, &r->cluster, &r->clock, &now);

    o->found = err > 0;
    return err < 0 ? err : 0;
}

/* SQLite's clock has started again with the machine: nobody who had a lease by the old one is alive. */
static int end_epoch(struct wb_registry *r, void *context)
{
    struct opening *o = context;
    int err = read_cluster(r, o);

    if (err < 0 || r->clock == o->epoch)
        return err;
    err = wb_sql_run(r->sql, R_LEASES_OVER, NULL, 0);
    if (err == 0)
        err = wb_sql_run(r->sql, R_WAITS_OVER, NULL, 0);
    if (err == 0)
        err = wb_sql_run(r->sql, R_UNSAFE_OVER, NULL, 0);
    return err < 0 ? err : WB_SQL_RUN(r->sql, R_CLOCK_SET, wb_sql_int(o->epoch));
}

static int open_cluster(struct wb_registry *r, const char *url)
{
    struct opening o = {.found = false};
    int err = wb_registry_open_sql(url, 0, true, &r->sql);

    if (err == 0)
        err = wb_sql_clock_epoch(r->sql, &o.epoch);
    if (err == 0)
        err = wb_registry_transact(r, WB_SQL_READ, read_cluster, &o);
    if (err == 0 && !o.found)
        err =
            wb_fail(WB_E_NOTFOUND, "there is no cluster in %s: 'webbase cluster init' makes one", wb_sql_where(r->sql));
    if (err == 0 && o.epoch != r->clock)
        err = wb_registry_transact(r, WB_SQL_WRITE, end_epoch, &o);
    if (err < 0)
        return err;
    /* Now it is known how long an answer may take. */
    wb_sql_close(r->sql);
    r->sql = NULL;
    return wb_registry_open_sql(url, r->cluster.lease_ms, true, &r->sql);
}

int wb_registry_open(const char *url, struct wb_registry **registry_out)
{
    struct wb_registry *r = wb_alloc_zero(1, sizeof *r);

    *registry_out = NULL;
    if (!r)
        return WB_E_NOMEM;
    r->magic = WB_REGISTRY_MAGIC;
    pthread_mutex_init(&r->lock, NULL);
    int err = open_cluster(r, url);
    if (err == 0) {
        *registry_out = r;
    } else {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_registry_close(r);
        err = wb_error_restore(&why);
    }
    return err;
}

void wb_registry_close(struct wb_registry *r)
{
    if (!r)
        return;
    WB_CHECK(r->magic == WB_REGISTRY_MAGIC);
    wb_sql_close(r->sql);
    wb_vec_release(&r->own);
    pthread_mutex_destroy(&r->lock);
    r->magic = 0;
    wb_free(r);
}

const struct wb_registry_cluster *wb_registry_cluster(const struct wb_registry *r)
{
    return &r->cluster;
}

const char *wb_registry_where(const struct wb_registry *r)
{
    return wb_sql_where(r->sql);
}

unsigned wb_registry_shard_of(struct wb_slice site, unsigned shards)
{
    WB_CHECK(shards > 0 && (shards & (shards - 1)) == 0 && shards <= WB_REGISTRY_SHARDS_MAX);
    /* The upper 32 bits, so that a shard has a range of hashes, and halves of it when all are divided. */
    return (unsigned)((wb_hash64(site.ptr, site.len) >> 32) / (UINT64_C(0x100000000) / shards));
}
