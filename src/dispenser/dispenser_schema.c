/*
 * dispenser_schema.c - the dispenser's tables; docs/formats/dispenser.md describes each column.
 *
 * Missing tables are created. Tables of an earlier version are brought up to date step by step, in the transaction
 * that finds them. Tables of a newer version are refused (WB_E_NEWER); anything else is damage.
 *
 * How a claim stays fast: among all ready sites of a run that share a home and an address, the best one (by rank,
 * then id) is marked as the *head*. A claim walks the heads in order. So an address that another process holds costs it
 * one look, and not one for each of its 100,000 names. All indexes but three are partial: a site is only in those that
 * its state needs.
 */
#include "dispenser/dispenser_rows.h"
#include "base/error.h"

enum { VERSION = 5 };

/* Version 1. %s stands for wb_sql_id_type(). */
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
    "pages BIGINT NOT NULL DEFAULT 0, head INTEGER NOT NULL DEFAULT 0, anew INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE webbase_seed (id %s, site BIGINT NOT NULL, hash BIGINT NOT NULL, url TEXT NOT NULL,"
    "depth INTEGER NOT NULL);"
    "CREATE TABLE webbase_count (run BIGINT NOT NULL, state INTEGER NOT NULL, sites BIGINT NOT NULL,"
    "PRIMARY KEY (run, state));"
    "CREATE TABLE webbase_lost (owner TEXT NOT NULL, site BIGINT NOT NULL, PRIMARY KEY (owner, site));";

static const char indexes[] =
    "CREATE UNIQUE INDEX webbase_site_name ON webbase_site (name);"
    "CREATE INDEX webbase_site_domain ON webbase_site (domain, id);"
    "CREATE INDEX webbase_site_address ON webbase_site (address_first, id) WHERE address_first <> '';"
    "CREATE INDEX webbase_site_probe ON webbase_site (address_first, probe, id) WHERE probe <> '';"
    "CREATE INDEX webbase_site_unresolved ON webbase_site (run, id) WHERE state = 1;"
    "CREATE INDEX webbase_site_stale ON webbase_site (run, address_expires_ms) WHERE state IN (2, 4);"
    "CREATE INDEX webbase_site_ready ON webbase_site (run, address_first, rank, id) WHERE state = 2;"
    "CREATE UNIQUE INDEX webbase_site_head ON webbase_site (run, address_first) WHERE head = 1;"
    "CREATE INDEX webbase_site_queue ON webbase_site (run, rank, id) WHERE head = 1;"
    "CREATE INDEX webbase_site_waiting ON webbase_site (run, next_ms) WHERE state = 4;"
    "CREATE INDEX webbase_site_held ON webbase_site (address_first, owner, lease_ms) WHERE state = 3;"
    "CREATE INDEX webbase_site_owner ON webbase_site (owner) WHERE state = 3 AND owner <> '';"
    "CREATE INDEX webbase_site_lease ON webbase_site (lease_ms) WHERE state = 3 AND owner <> '';"
    "CREATE INDEX webbase_site_untaken ON webbase_site (run) WHERE state = 5 AND seed_last > seeds_taken;"
    "CREATE INDEX webbase_seed_site ON webbase_seed (site, id);"
    "CREATE INDEX webbase_seed_hash ON webbase_seed (site, hash);";

/* steps[n] leads from version n + 1 to the next. */
static const char *const steps[VERSION - 1] = {
    "ALTER TABLE webbase_site ADD COLUMN listed BIGINT NOT NULL DEFAULT 0;"
    "ALTER TABLE webbase_site ADD COLUMN sitemaps_ms BIGINT NOT NULL DEFAULT 0;"
    "CREATE INDEX webbase_site_listed ON webbase_site (run) WHERE listed <> 0;"
    "CREATE TABLE webbase_class (name TEXT PRIMARY KEY, fetches BIGINT NOT NULL, delay_ms BIGINT NOT NULL,"
    "min_ms BIGINT NOT NULL, max_ms BIGINT NOT NULL);",
    /*
     * From here on leases are measured by the database's clock, and SQLite's pages have checksums. Older programs
     * know neither.
     */
    "UPDATE webbase_site SET lease_ms = 0 WHERE state = 3;",
    /* Sites that pages of other sites need. An older program would crawl all of such a site. */
    "ALTER TABLE webbase_site ADD COLUMN needed INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX webbase_site_needed ON webbase_site (run) WHERE needed <> 0;"
    "CREATE INDEX webbase_site_reason ON webbase_site (reason) WHERE state = 4;",
    /* Sites stay with their home, so each home has heads of its own. An older program would claim them all. */
    "CREATE TABLE webbase_home (run BIGINT NOT NULL, home TEXT NOT NULL, until_ms BIGINT NOT NULL,"
    "PRIMARY KEY (run, home));"
    "CREATE TABLE webbase_news (site BIGINT NOT NULL, run BIGINT NOT NULL, number BIGINT NOT NULL, home TEXT NOT NULL,"
    "text TEXT NOT NULL, PRIMARY KEY (site, run, number));"
    "DROP INDEX webbase_site_ready; DROP INDEX webbase_site_head; DROP INDEX webbase_site_queue;"
    "UPDATE webbase_site SET head = 0 WHERE head = 1;"
    "UPDATE webbase_site SET head = 1 WHERE state = 2 AND NOT EXISTS (SELECT 1 FROM webbase_site b WHERE "
    "b.state = 2 AND b.run = webbase_site.run AND b.home = webbase_site.home AND "
    "b.address_first = webbase_site.address_first AND (b.rank, b.id) < (webbase_site.rank, webbase_site.id));"
    "CREATE INDEX webbase_site_ready ON webbase_site (run, home, address_first, rank, id) WHERE state = 2;"
    "CREATE UNIQUE INDEX webbase_site_head ON webbase_site (run, home, address_first) WHERE head = 1;"
    "CREATE INDEX webbase_site_queue ON webbase_site (run, home, rank, id) WHERE head = 1;",
};

static int make_tables(struct wb_dispenser *d)
{
    struct wb_buf text = WB_BUF_INIT;
    const char *id = wb_sql_id_type(d->sql);
    int err;

    err = wb_buf_printf(&text, tables, id, id);
    if (err == 0)
        err = wb_buf_printf(&text, "INSERT INTO webbase_meta (name, value) VALUES ('version', 1), ('run', 0);");
    if (err == 0)
        err = wb_buf_append_str(&text, indexes);
    if (err == 0)
        err = wb_buf_terminate(&text);
    if (err == 0)
        err = wb_sql_exec(d->sql, text.ptr);
    wb_buf_release(&text);
    return err;
}

static int step_up(struct wb_dispenser *d, int64_t version)
{
    int err = 0;

    for (; err == 0 && version < VERSION; version++)
        err = wb_sql_exec(d->sql, steps[version - 1]);
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_VERSION, wb_sql_int(VERSION));
}

/* Reads the version of the tables, from 1 to VERSION. */
static int read_version(struct wb_dispenser *d, int64_t *version_out)
{
    const char *where = wb_sql_where(d->sql);
    int err = WB_SQL_RUN(d->sql, S_META, wb_sql_str(WB_SLICE_LIT("version")));

    *version_out = 0;
    if (err < 0)
        return err;
    int64_t version = err ? wb_sql_number(d->sql, S_META, 0) : 0;
    wb_sql_end(d->sql, S_META);
    if (version > VERSION)
        return wb_fail(WB_E_NEWER, "the tables in %s are of version %lld; this program knows %d", where,
                       (long long)version, VERSION);
    if (version < 1)
        return wb_fail(WB_E_CORRUPT, "the tables in %s have an impossible version", where);
    *version_out = version;
    return 0;
}

/*
 * Most of the time the tables exist, and a reading transaction is enough to see that. context is an int64_t for the
 * version; it becomes 0 if there are no tables.
 */
static int look_for_tables(struct wb_dispenser *d, void *context)
{
    int64_t *version_out = context;
    int err = wb_sql_has_table(d->sql, "webbase_meta");

    *version_out = 0;
    return err == 1 ? read_version(d, version_out) : err;
}

/* Another process may have created them since we looked, so look again inside the writing transaction. */
static int make_where_missing(struct wb_dispenser *d, void *context)
{
    int64_t *version = context;
    int err = look_for_tables(d, version);

    if (err == 0 && *version == 0) {
        err = make_tables(d);
        *version = 1;
    }
    return err < 0 ? err : step_up(d, *version);
}

int wb_dispenser_schema(struct wb_dispenser *d)
{
    int64_t version = 0;
    int err = wb_dispenser_transact(d, false, look_for_tables, &version);

    return err < 0 || version == VERSION ? err : wb_dispenser_transact(d, true, make_where_missing, &version);
}
