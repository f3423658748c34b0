/*
 * registry_schema.c - the tables of a cluster: made once, with all rows of shards; docs/formats/registry.md describes
 * each column. Tables of another format are refused (WB_E_NEWER).
 */
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "os/random.h"
#include "registry/registry_inside.h"

enum {
    ANSWER_MS_MIN = 1000,
    ANSWER_MS_MAX = 10000,
    ANSWER_MS = 10000, /* of commands, for which no lease runs */
};

static const char *const statements[] = {
#define STATEMENT_TEXT(name, text) [name] = text,
    WB_REGISTRY_STATEMENTS(STATEMENT_TEXT)
#define RULE_TEXT(name, text, says) [name] = text,
        WB_REGISTRY_RULES(RULE_TEXT)
#undef RULE_TEXT
#undef STATEMENT_TEXT
};

static const char tables[] =
    "CREATE TABLE webbase_cluster (one BIGINT PRIMARY KEY, format BIGINT NOT NULL, id TEXT NOT NULL,"
    "secret TEXT NOT NULL, store TEXT NOT NULL, history TEXT NOT NULL, shards BIGINT NOT NULL, copies BIGINT NOT NULL,"
    "lease_ms BIGINT NOT NULL, generation BIGINT NOT NULL, bars BIGINT NOT NULL, clock BIGINT NOT NULL);"
    "CREATE TABLE webbase_machine (name TEXT PRIMARY KEY, address TEXT NOT NULL, directory TEXT NOT NULL,"
    "weight BIGINT NOT NULL, class_name TEXT NOT NULL, search_only BIGINT NOT NULL, draining BIGINT NOT NULL,"
    "until_ms BIGINT NOT NULL, since_ms BIGINT NOT NULL, session TEXT NOT NULL, epoch BIGINT NOT NULL,"
    "bars BIGINT NOT NULL);"
    "CREATE TABLE webbase_shard (shard BIGINT PRIMARY KEY, hash_first BIGINT NOT NULL, hash_last BIGINT NOT NULL,"
    "holder TEXT NOT NULL, term BIGINT NOT NULL, token TEXT NOT NULL, wanted TEXT NOT NULL, head TEXT NOT NULL,"
    "pages BIGINT NOT NULL, bytes BIGINT NOT NULL, generation BIGINT NOT NULL, unsafe_ms BIGINT NOT NULL);"
    "CREATE TABLE webbase_copy (shard BIGINT NOT NULL, machine TEXT NOT NULL, head TEXT NOT NULL,"
    "PRIMARY KEY (shard, machine));"
    "CREATE TABLE webbase_task (name TEXT PRIMARY KEY, holder TEXT NOT NULL, session TEXT NOT NULL,"
    "term BIGINT NOT NULL, state TEXT NOT NULL);"
    "CREATE TABLE webbase_bar (what TEXT PRIMARY KEY, number BIGINT NOT NULL, lifted BIGINT NOT NULL);"
    "CREATE TABLE webbase_slot (address TEXT NOT NULL, slot BIGINT NOT NULL, machine TEXT NOT NULL,"
    "session TEXT NOT NULL, token TEXT NOT NULL, ready_ms BIGINT NOT NULL, PRIMARY KEY (address, slot));"
    "CREATE UNIQUE INDEX webbase_machine_directory ON webbase_machine (directory) WHERE directory <> '';"
    "CREATE INDEX webbase_shard_holder ON webbase_shard (holder);"
    "CREATE UNIQUE INDEX webbase_bar_number ON webbase_bar (number);";

/* %u: the number of shards; %llu: how many hashes each has. */
static const char shard_rows[] =
    "INSERT INTO webbase_shard (shard, hash_first, hash_last, holder, term, token, wanted, head, pages, bytes, "
    "generation, unsafe_ms) WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %u) "
    "SELECT i, CAST(i AS BIGINT) * %llu, CAST(i AS BIGINT) * %llu + %llu - 1, '', 0, '', '', '', 0, 0, 0, 0 FROM n;";

int wb_registry_open_sql(const char *url, unsigned lease_ms, bool existing, struct wb_sql **sql_out)
{
    unsigned quarter = lease_ms / 4;
    unsigned answer_ms = quarter < ANSWER_MS_MIN ? ANSWER_MS_MIN : quarter > ANSWER_MS_MAX ? ANSWER_MS_MAX : quarter;

    answer_ms = lease_ms ? answer_ms : ANSWER_MS;
    struct wb_sql_options options = {.texts = statements,
                                     .count = WB_REGISTRY_STATEMENT_COUNT,
                                     .durable = true,
                                     .existing = existing,
                                     .answer_ms = answer_ms,
                                     .patience_ms = answer_ms};
    int err = wb_sql_open(url, &options, sql_out);
    return err == WB_E_IO ? WB_E_DOWN : err;
}

int wb_registry_read_cluster(struct wb_registry *r, struct wb_registry_cluster *cluster_out, int64_t *clock_out,
                             int64_t *now_out)
{
    struct wb_registry_cluster *c = cluster_out;
    int err = wb_sql_has_table(r->sql, "webbase_cluster");

    *c = (struct wb_registry_cluster){.shards = 0};
    if (err > 0)
        err = wb_sql_run(r->sql, R_CLUSTER, NULL, 0);
    if (err <= 0)
        return err;
    int64_t format = wb_sql_number(r->sql, R_CLUSTER, 0);
    if (format != WB_REGISTRY_FORMAT) {
        wb_sql_end(r->sql, R_CLUSTER);
        return format < 1 ? wb_fail(WB_E_CORRUPT, "the tables in %s have an impossible format", wb_sql_where(r->sql))
                          : wb_fail_format(wb_sql_where(r->sql), (uint64_t)format, WB_REGISTRY_FORMAT);
    }
    err = wb_registry_column(r, R_CLUSTER, 1, c->id, sizeof c->id);
    if (err == 0)
        err = wb_registry_column(r, R_CLUSTER, 2, c->secret, sizeof c->secret);
    if (err == 0)
        err = wb_registry_column(r, R_CLUSTER, 3, c->store, sizeof c->store);
    if (err == 0)
        err = wb_registry_column(r, R_CLUSTER, 4, c->history, sizeof c->history);
    int64_t shards = wb_sql_number(r->sql, R_CLUSTER, 5), copies = wb_sql_number(r->sql, R_CLUSTER, 6);
    int64_t lease_ms = wb_sql_number(r->sql, R_CLUSTER, 7);
    c->generation = (uint64_t)wb_sql_number(r->sql, R_CLUSTER, 8);
    *clock_out = wb_sql_number(r->sql, R_CLUSTER, 10);
    *now_out = wb_sql_number(r->sql, R_CLUSTER, 11);
    wb_sql_end(r->sql, R_CLUSTER);
    if (err < 0)
        return err;
    c->shards = shards > 0 && shards <= UINT32_MAX ? (unsigned)shards : 0;
    c->copies = copies > 0 && copies <= UINT32_MAX ? (unsigned)copies : 0;
    c->lease_ms = lease_ms > 0 && lease_ms <= UINT32_MAX ? (unsigned)lease_ms : 0;
    if (wb_registry_cluster_check(c) < 0)
        return wb_fail(WB_E_CORRUPT, "the cluster in %s has impossible settings", wb_sql_where(r->sql));
    return 1;
}

/* ---- making them ------------------------------------------------------------------------------------------------ */

int wb_registry_cluster_check(const struct wb_registry_cluster *s)
{
    if (s->shards < 1 || s->shards > WB_REGISTRY_SHARDS_MAX || (s->shards & (s->shards - 1)) != 0)
        return wb_fail(WB_E_INVALID, "the number of shards is a power of two from 1 to %d", WB_REGISTRY_SHARDS_MAX);
    if (s->copies < 1 || s->copies > WB_REGISTRY_COPIES_MAX)
        return wb_fail(WB_E_INVALID, "the number of copies, the holder's counted, is from 1 to %d",
                       WB_REGISTRY_COPIES_MAX);
    if (s->lease_ms < WB_REGISTRY_LEASE_MS_MIN || s->lease_ms > WB_REGISTRY_LEASE_MS_MAX)
        return wb_fail(WB_E_INVALID, "a lease lasts from %d seconds, because it is renewed every second, to %d minutes",
                       WB_REGISTRY_LEASE_MS_MIN / 1000, WB_REGISTRY_LEASE_MS_MAX / 60000);
    if (!s->store[0] || !s->history[0])
        return wb_fail(WB_E_INVALID, "a cluster needs a store and a history policy");
    return 0;
}

struct making {
    struct wb_registry_cluster settings;
    int64_t epoch;
};

static int add_shards(struct wb_registry *r, unsigned shards)
{
    struct wb_buf text = WB_BUF_INIT;
    unsigned long long each = UINT64_C(0x100000000) / shards;
    int err = wb_buf_append_str(&text, tables);

    if (err == 0)
        err = wb_buf_printf(&text, shard_rows, shards, each, each, each);
    if (err == 0)
        err = wb_buf_terminate(&text);
    if (err == 0)
        err = wb_sql_exec(r->sql, text.ptr);
    wb_buf_release(&text);
    return err;
}

static int make_cluster(struct wb_registry *r, void *context)
{
    const struct making *m = context;
    const struct wb_registry_cluster *s = &m->settings;
    struct wb_registry_cluster there;
    int64_t clock, now;
    int err = wb_registry_read_cluster(r, &there, &clock, &now);

    if (err > 0 && strcmp(there.id, s->id) == 0)
        return 0; /* an attempt whose answer was lost */
    if (err > 0)
        return wb_fail(WB_E_BUSY, "there is a cluster in %s already, with the store %s", wb_sql_where(r->sql),
                       there.store);
    if (err == 0)
        err = add_shards(r, s->shards);
    if (err < 0)
        return err;
    return WB_SQL_RUN(r->sql, R_CLUSTER_ADD, wb_sql_int(WB_REGISTRY_FORMAT), wb_registry_text(s->id),
                      wb_registry_text(s->secret), wb_registry_text(s->store), wb_registry_text(s->history),
                      wb_sql_int(s->shards), wb_sql_int(s->copies), wb_sql_int(s->lease_ms), wb_sql_int(m->epoch));
}

int wb_registry_init(const char *url, const struct wb_registry_cluster *settings)
{
    struct wb_registry r = {.magic = WB_REGISTRY_MAGIC};
    struct making m = {.settings = *settings};
    int err = wb_registry_cluster_check(settings);

    if (err < 0)
        return err;
    wb_registry_random_id(m.settings.id);
    wb_registry_random_id(m.settings.secret);
    wb_registry_random_id(m.settings.secret + WB_REGISTRY_ID_MAX - 1);
    err = wb_registry_open_sql(url, 0, false, &r.sql);
    if (err == 0)
        err = wb_sql_clock_epoch(r.sql, &m.epoch);
    if (err == 0)
        err = wb_registry_transact(&r, WB_SQL_WRITE, make_cluster, &m);
    wb_sql_close(r.sql);
    return err;
}
