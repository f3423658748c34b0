/*
 * dispenser_schema.c - the dispenser's tables; docs/formats/dispenser.md describes each column.
 *
 * Missing tables are created. Tables of another format are refused (WB_E_NEWER).
 *
 * How a claim stays fast: among all ready sites of a run that share a home and an address, the best one (by rank,
 * then id) is marked as the *head*. A claim walks the heads in order. So an address that another process holds costs it
 * one look, and not one for each of its 100,000 names. All indexes but three are partial: a site is only in those that
 * its state needs.
 */
#include "dispenser/dispenser_rows.h"
#include "base/error.h"
#include "base/format.h"

enum { FORMAT = 1 };

/* %s stands for wb_sql_id_type(). */
static const char tables[] =
    "CREATE TABLE webbase_meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL);"
    "CREATE TABLE webbase_site ("
    "id %s, name TEXT NOT NULL, domain TEXT NOT NULL, scheme TEXT NOT NULL,"
    "state INTEGER NOT NULL, back_state INTEGER NOT NULL, run BIGINT NOT NULL, rank BIGINT NOT NULL,"
    "delay_ms BIGINT NOT NULL, budget BIGINT NOT NULL, class_name TEXT NOT NULL,"
    "address TEXT NOT NULL DEFAULT '', address_first TEXT NOT NULL DEFAULT '',"
    "address_expires_ms BIGINT NOT NULL DEFAULT 0,"
    "next_ms BIGINT NOT NULL DEFAULT 0, attempts BIGINT NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',"
    "alias_of TEXT NOT NULL DEFAULT '', probe TEXT NOT NULL DEFAULT '', visit BIGINT NOT NULL DEFAULT 0,"
    "trail_log BIGINT NOT NULL DEFAULT 0, trail_offset BIGINT NOT NULL DEFAULT 0, trail_ms BIGINT NOT NULL DEFAULT 0,"
    "home TEXT NOT NULL DEFAULT '', seeds_taken BIGINT NOT NULL DEFAULT 0, seed_last BIGINT NOT NULL DEFAULT 0,"
    "owner TEXT NOT NULL, lease_ms BIGINT NOT NULL, ticket BIGINT NOT NULL DEFAULT 0,"
    "pages BIGINT NOT NULL DEFAULT 0, head INTEGER NOT NULL DEFAULT 0, anew INTEGER NOT NULL DEFAULT 0,"
    "listed BIGINT NOT NULL DEFAULT 0, sitemaps_ms BIGINT NOT NULL DEFAULT 0, needed INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE webbase_seed (id %s, site BIGINT NOT NULL, hash BIGINT NOT NULL, url TEXT NOT NULL,"
    "depth INTEGER NOT NULL);"
    "CREATE TABLE webbase_count (run BIGINT NOT NULL, state INTEGER NOT NULL, sites BIGINT NOT NULL,"
    "PRIMARY KEY (run, state));"
    "CREATE TABLE webbase_lost (owner TEXT NOT NULL, site BIGINT NOT NULL, PRIMARY KEY (owner, site));"
    "CREATE TABLE webbase_class (name TEXT PRIMARY KEY, fetches BIGINT NOT NULL, delay_ms BIGINT NOT NULL,"
    "min_ms BIGINT NOT NULL, max_ms BIGINT NOT NULL);"
    "CREATE TABLE webbase_home (run BIGINT NOT NULL, home TEXT NOT NULL, until_ms BIGINT NOT NULL,"
    "PRIMARY KEY (run, home));"
    "CREATE TABLE webbase_news (site BIGINT NOT NULL, run BIGINT NOT NULL, number BIGINT NOT NULL, home TEXT NOT NULL,"
    "text TEXT NOT NULL, PRIMARY KEY (site, run, number));";

static const char indexes[] =
    "CREATE UNIQUE INDEX webbase_site_name ON webbase_site (name);"
    "CREATE INDEX webbase_site_domain ON webbase_site (domain, id);"
    "CREATE INDEX webbase_site_address ON webbase_site (address_first, id) WHERE address_first <> '';"
    "CREATE INDEX webbase_site_probe ON webbase_site (address_first, probe, id) WHERE probe <> '';"
    "CREATE INDEX webbase_site_unresolved ON webbase_site (run, id) WHERE state = 1;"
    "CREATE INDEX webbase_site_stale ON webbase_site (run, address_expires_ms) WHERE state IN (2, 4);"
    "CREATE INDEX webbase_site_ready ON webbase_site (run, home, address_first, rank, id) WHERE state = 2;"
    "CREATE UNIQUE INDEX webbase_site_head ON webbase_site (run, home, address_first) WHERE head = 1;"
    "CREATE INDEX webbase_site_queue ON webbase_site (run, home, rank, id) WHERE head = 1;"
    "CREATE INDEX webbase_site_waiting ON webbase_site (run, next_ms) WHERE state = 4;"
    "CREATE INDEX webbase_site_reason ON webbase_site (reason) WHERE state = 4;"
    "CREATE INDEX webbase_site_held ON webbase_site (address_first, owner, lease_ms) WHERE state = 3;"
    "CREATE INDEX webbase_site_owner ON webbase_site (owner) WHERE state = 3 AND owner <> '';"
    "CREATE INDEX webbase_site_lease ON webbase_site (lease_ms) WHERE state = 3 AND owner <> '';"
    "CREATE INDEX webbase_site_untaken ON webbase_site (run) WHERE state = 5 AND seed_last > seeds_taken;"
    "CREATE INDEX webbase_site_listed ON webbase_site (run) WHERE listed <> 0;"
    "CREATE INDEX webbase_site_needed ON webbase_site (run) WHERE needed <> 0;"
    "CREATE INDEX webbase_seed_site ON webbase_seed (site, id);"
    "CREATE INDEX webbase_seed_hash ON webbase_seed (site, hash);";

static int make_tables(struct wb_dispenser *d)
{
    struct wb_buf text = WB_BUF_INIT;
    const char *id = wb_sql_id_type(d->sql);
    int err;

    err = wb_buf_printf(&text, tables, id, id);
    if (err == 0)
        err =
            wb_buf_printf(&text, "INSERT INTO webbase_meta (name, value) VALUES ('version', %d), ('run', 0);", FORMAT);
    if (err == 0)
        err = wb_buf_append_str(&text, indexes);
    if (err == 0)
        err = wb_buf_terminate(&text);
    if (err == 0)
        err = wb_sql_exec(d->sql, text.ptr);
    wb_buf_release(&text);
    return err;
}

/* Checks the format of the tables. */
static int check_format(struct wb_dispenser *d)
{
    const char *where = wb_sql_where(d->sql);
    int err = WB_SQL_RUN(d->sql, S_META, wb_sql_str(WB_SLICE_LIT("version")));

    if (err < 0)
        return err;
    int64_t format = err ? wb_sql_number(d->sql, S_META, 0) : 0;
    wb_sql_end(d->sql, S_META);
    if (format == FORMAT)
        return 0;
    return format < 1 ? wb_fail(WB_E_CORRUPT, "the tables in %s have an impossible format", where)
                      : wb_fail_format(where, (uint64_t)format, FORMAT);
}

/* Most of the time the tables exist, and a reading transaction is enough to see that. context is a bool: they exist. */
static int look_for_tables(struct wb_dispenser *d, void *context)
{
    bool *there_out = context;
    int err = wb_sql_has_table(d->sql, "webbase_meta");

    *there_out = err == 1;
    return err == 1 ? check_format(d) : err;
}

/* Another process may have created them since we looked, so look again inside the writing transaction. */
static int make_where_missing(struct wb_dispenser *d, void *context)
{
    bool *there = context;
    int err = look_for_tables(d, there);

    return err < 0 || *there ? err : make_tables(d);
}

int wb_dispenser_schema(struct wb_dispenser *d)
{
    bool there = false;
    int err = wb_dispenser_transact(d, false, look_for_tables, &there);

    return err < 0 || there ? err : wb_dispenser_transact(d, true, make_where_missing, &there);
}
