/*
 * dispenser_sql.h - every statement of the dispenser, once, for all databases. dispenser_schema.c has the tables;
 * docs/formats/dispenser.md says what the columns mean. Used inside this room only.
 *
 * The states (enum wb_site_state) are written as numbers:
 *
 *   1 unresolved   2 ready   3 claimed   4 waiting   5 done   6 alias   7 refused
 *
 * because a database uses a partial index only if the statement contains the condition of the index word for word.
 * That is also why many statements have conditions that seem to say nothing, such as owner <> '' beside owner = ?1.
 *
 * S_HEAD asks whether another process holds a site of the same address. Three things in it keep PostgreSQL fast:
 * it is a scalar subquery with LIMIT, which the planner cannot turn into a join with all claimed sites; it leaves out
 * owner <> '', which would offer the planner the wrong indexes; and it is asked twice, for owners before and after
 * our own in the order of the index, so that the sites that we hold ourselves are skipped.
 */
#ifndef WB_DISPENSER_DISPENSER_SQL_H
#define WB_DISPENSER_DISPENSER_SQL_H

/* The columns of a site, in the order in which wb_dispenser_row_read() reads them. */
#define WB_SITE_COLUMNS                                                                                               \
    "id, name, scheme, state, back_state, run, rank, delay_ms, budget, class_name, "                                  \
    "address, address_expires_ms, next_ms, attempts, reason, alias_of, probe, visit, "                                \
    "trail_log, trail_offset, trail_ms, home, seeds_taken, owner, lease_ms, pages, "                                  \
    "anew, seed_last, listed, sitemaps_ms, needed "

#define WB_SELECT_SITE "SELECT " WB_SITE_COLUMNS "FROM webbase_site "

#define WB_DISPENSER_STATEMENTS(X)                                                                                    \
    X(S_META, "SELECT value FROM webbase_meta WHERE name = ?1")                                                       \
    X(S_META_SET,                                                                                                     \
      "INSERT INTO webbase_meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET "                      \
      "value = excluded.value")                                                                                       \
    X(S_NEXT_RUN, "UPDATE webbase_meta SET value = value + 1 WHERE name = 'run' RETURNING value")                     \
    /* one site */                                                                                                    \
    X(S_BY_ID, WB_SELECT_SITE "WHERE id = ?1")                                                                        \
    X(S_BY_NAME, WB_SELECT_SITE "WHERE name = ?1")                                                                    \
    X(S_BY_HOST, WB_SELECT_SITE "WHERE name >= ?1 AND name < ?2 ORDER BY name LIMIT 1")                               \
    X(S_INSERT,                                                                                                       \
      "INSERT INTO webbase_site (name, domain, scheme, state, back_state, run, rank, delay_ms, "                      \
      "budget, class_name, owner, lease_ms, listed, needed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "             \
      "?10, ?11, ?12, ?13, ?14) RETURNING id")                                                                        \
    X(S_SAVE,                                                                                                         \
      "UPDATE webbase_site SET scheme = ?2, state = ?3, back_state = ?4, run = ?5, rank = ?6, "                       \
      "delay_ms = ?7, budget = ?8, class_name = ?9, address = ?10, address_first = ?11, "                             \
      "address_expires_ms = ?12, next_ms = ?13, attempts = ?14, reason = ?15, alias_of = ?16, "                       \
      "probe = ?17, visit = ?18, trail_log = ?19, trail_offset = ?20, trail_ms = ?21, home = ?22, "                   \
      "seeds_taken = ?23, owner = ?24, lease_ms = ?25, pages = ?26, head = head * ?27, anew = "                       \
      "?28, seed_last = ?29, listed = ?30, sitemaps_ms = ?31, needed = ?32 WHERE id = ?1")                            \
    /* heads: the best ready site of each run, home and address */                                                    \
    X(S_BEST,                                                                                                         \
      "SELECT id, head FROM webbase_site WHERE run = ?1 AND home = ?3 AND address_first = ?2 AND state = 2 "          \
      "ORDER BY rank, id LIMIT 1")                                                                                    \
    X(S_HEAD_CLEAR,                                                                                                   \
      "UPDATE webbase_site SET head = 0 WHERE run = ?1 AND home = ?3 AND address_first = ?2 AND head = 1")            \
    X(S_HEAD_SET, "UPDATE webbase_site SET head = 1 WHERE id = ?1")                                                   \
    X(S_HEAD_NEXT,                                                                                                    \
      "UPDATE webbase_site SET head = 1 WHERE id = (SELECT id FROM webbase_site WHERE run = ?1 AND home = ?3 "        \
      "AND address_first = ?2 AND state = 2 ORDER BY rank, id LIMIT 1)")                                              \
    X(S_COUNT,                                                                                                        \
      "INSERT INTO webbase_count (run, state, sites) VALUES (?1, ?2, ?3) ON CONFLICT (run, state) "                   \
      "DO UPDATE SET sites = webbase_count.sites + excluded.sites")                                                   \
    /* seeds */                                                                                                       \
    X(S_SEED_FIND, "SELECT id FROM webbase_seed WHERE site = ?1 AND hash = ?2 AND url = ?3")                          \
    X(S_SEED_ADD, "INSERT INTO webbase_seed (site, hash, url, depth) VALUES (?1, ?2, ?3, ?4) RETURNING id")           \
    X(S_SEED_ADD_TEN,                                                                                                 \
      "INSERT INTO webbase_seed (site, hash, url, depth) VALUES (?1, ?2, ?3, ?4), (?1, ?5, ?6, "                      \
      "?7), (?1, ?8, ?9, ?10), (?1, ?11, ?12, ?13), (?1, ?14, ?15, ?16), (?1, ?17, ?18, ?19), "                       \
      "(?1, ?20, ?21, ?22), (?1, ?23, ?24, ?25), (?1, ?26, ?27, ?28), (?1, ?29, ?30, ?31)")                           \
    X(S_SEED_DROP, "DELETE FROM webbase_seed WHERE id = ?1")                                                          \
    X(S_SEED_NEWEST, "SELECT COALESCE(MAX(id), 0) FROM webbase_seed WHERE site = ?1")                                 \
    X(S_SEED_LAST, "UPDATE webbase_site SET seed_last = ?2 WHERE id = ?1")                                            \
    X(S_SEEDS, "SELECT id, url, depth FROM webbase_seed WHERE site = ?1 AND id > ?2 ORDER BY id LIMIT ?3")            \
    X(S_SEEDS_PASS,                                                                                                   \
      "INSERT INTO webbase_seed (site, hash, url, depth) SELECT ?2, s.hash, s.url, s.depth FROM webbase_seed s "      \
      "WHERE s.site = ?1 AND NOT EXISTS (SELECT 1 FROM webbase_seed t WHERE t.site = ?2 AND t.hash = s.hash AND "     \
      "t.url = s.url) ORDER BY s.id")                                                                                 \
    X(S_SEEDS_DROP, "DELETE FROM webbase_seed WHERE site = ?1")                                                       \
    X(S_UNTAKEN, WB_SELECT_SITE "WHERE run = ?1 AND state = 5 AND seed_last > seeds_taken LIMIT ?2")                  \
    /* many sites */                                                                                                  \
    X(S_UNRESOLVED, WB_SELECT_SITE "WHERE run = ?1 AND state = 1 ORDER BY id LIMIT ?2")                               \
    X(S_STALE,                                                                                                        \
      WB_SELECT_SITE "WHERE run = ?1 AND state IN (2, 4) AND address_expires_ms <= ?2 ORDER BY "                      \
      "address_expires_ms LIMIT ?3")                                                                                  \
    X(S_UNFINISHED, WB_SELECT_SITE "WHERE id > ?1 AND state IN (1, 2, 3, 4) AND run <> ?2 ORDER BY id LIMIT ?3")      \
    X(S_OF_DOMAIN,                                                                                                    \
      WB_SELECT_SITE "WHERE domain = ?1 AND id > ?2 AND state IN (1, 2, 3, 4) AND run <> ?3 ORDER BY id LIMIT ?4")    \
    X(S_DOMAIN_RUN,                                                                                                   \
      "SELECT COALESCE(MAX(run), 0) FROM webbase_site WHERE domain = ?1 AND state IN (1, 2, 3) "                      \
      "AND listed = 0 AND needed = 0")                                                                                \
    X(S_DOMAIN_OPEN,                                                                                                  \
      "SELECT COUNT(*) FROM webbase_site WHERE domain = ?1 AND state IN (1, 2, 3) AND run = ?2 AND needed = 0")       \
    X(S_NEEDED_OPEN, "SELECT COUNT(*) FROM webbase_site WHERE run = ?1 AND needed <> 0 AND state IN (1, 2, 3)")       \
    X(S_LISTED_ANY, "SELECT id FROM webbase_site WHERE run = ?1 AND listed <> 0 AND state IN (1, 2, 3) LIMIT 1")      \
    X(S_LISTED_NEWEST, "SELECT COALESCE(MAX(run), 0) FROM webbase_site WHERE listed <> 0 AND state IN (1, 2, 3, 4)")  \
    X(S_WAITING, WB_SELECT_SITE "WHERE state = 4 AND reason = ?1 LIMIT ?2")                                           \
    X(S_ALL, WB_SELECT_SITE "WHERE id > ?1 ORDER BY id LIMIT ?2")                                                     \
    X(S_OF_RUN, WB_SELECT_SITE "WHERE id > ?1 AND run = ?2 ORDER BY id LIMIT ?3")                                     \
    /* what people look for: ?1 is a pattern, ?2 a state or 0, ?3 a number to sort by, ?4 is 1 or -1 */               \
    X(S_FIND,                                                                                                         \
      WB_SELECT_SITE "WHERE name LIKE ?1 ESCAPE '!' AND (?2 = 0 OR state = ?2) ORDER BY ?4 * (CASE WHEN ?3 = 1 THEN " \
      "state WHEN ?3 = 2 AND state = 4 THEN next_ms WHEN ?3 = 3 THEN pages WHEN ?3 = 4 THEN attempts ELSE 0 END), "   \
      "name LIMIT ?5 OFFSET ?6")                                                                                      \
    X(S_FIND_BACK,                                                                                                    \
      WB_SELECT_SITE "WHERE name LIKE ?1 ESCAPE '!' AND (?2 = 0 OR state = ?2) ORDER BY name DESC LIMIT ?3 OFFSET "   \
      "?4")                                                                                                           \
    X(S_FIND_COUNT, "SELECT COUNT(*) FROM webbase_site WHERE name LIKE ?1 ESCAPE '!' AND (?2 = 0 OR state = ?2)")     \
    /* classes, and sites that may be the same under another name */                                                  \
    X(S_CLASS_SET,                                                                                                    \
      "INSERT INTO webbase_class (name, fetches, delay_ms, min_ms, max_ms) VALUES (?1, ?2, ?3, "                      \
      "?4, ?5) ON CONFLICT (name) DO UPDATE SET fetches = excluded.fetches, delay_ms = "                              \
      "excluded.delay_ms, min_ms = excluded.min_ms, max_ms = excluded.max_ms")                                        \
    X(S_CLASSES, "SELECT name, fetches, delay_ms, min_ms, max_ms FROM webbase_class ORDER BY name")                   \
    X(S_NEIGHBOURS, WB_SELECT_SITE "WHERE address_first = ?1 AND address_first <> '' ORDER BY id LIMIT ?2")           \
    X(S_TWINS, WB_SELECT_SITE "WHERE address_first = ?1 AND probe = ?2 AND probe <> '' ORDER BY id LIMIT ?3")         \
    /* leases. A site that waits for more than 25 hours (90,000,000 ms) is due too: a clock was wrong */              \
    X(S_DUE,                                                                                                          \
      WB_SELECT_SITE "WHERE run = ?1 AND state = 4 AND (next_ms <= ?2 OR next_ms - 90000000 > ?2) ORDER BY "          \
      "next_ms LIMIT ?3")                                                                                             \
    X(S_EXPIRED,                                                                                                      \
      WB_SELECT_SITE "WHERE state = 3 AND owner <> '' AND lease_ms <= ?1 AND owner <> ?2 ORDER BY lease_ms LIMIT "    \
      "?3")                                                                                                           \
    X(S_HEAD,                                                                                                         \
      "SELECT s.rank, s.id FROM webbase_site s WHERE s.run = ?1 AND s.home = ?2 AND s.head = 1 AND (s.rank, s.id) "   \
      "> (?3, ?4) AND (SELECT h.id FROM webbase_site h WHERE h.address_first = s.address_first AND h.state = 3 "      \
      "AND h.owner < ?5 AND h.lease_ms > ?6 LIMIT 1) IS NULL AND (SELECT h.id FROM webbase_site h WHERE "             \
      "h.address_first = s.address_first AND h.state = 3 AND h.owner > ?5 AND h.lease_ms > ?6 LIMIT 1) IS NULL "      \
      "ORDER BY s.rank, s.id LIMIT 1")                                                                                \
    X(S_CLAIM,                                                                                                        \
      "UPDATE webbase_site SET state = 3, back_state = 2, head = 0, owner = ?2, lease_ms = ?3, ticket = ?4, "         \
      "trail_log = CASE WHEN home = ?5 THEN trail_log ELSE 0 END, trail_offset = CASE WHEN home = ?5 THEN "           \
      "trail_offset ELSE 0 END, home = ?5 WHERE id = ?1 "                                                             \
      "RETURNING " WB_SITE_COLUMNS)                                                                                   \
    X(S_TICKET, WB_SELECT_SITE "WHERE owner = ?1 AND owner <> '' AND state = 3 AND ticket = ?2 ORDER BY rank, id")    \
    X(S_RENEW, "UPDATE webbase_site SET lease_ms = ?2 WHERE owner = ?1 AND owner <> '' AND state = 3")                \
    X(S_LEASES_OVER, "UPDATE webbase_site SET lease_ms = 0 WHERE state = 3 AND owner <> ''")                          \
    X(S_NEXT_OWNER,                                                                                                   \
      "SELECT owner FROM webbase_site WHERE owner > ?1 AND owner <> '' AND state = 3 ORDER BY "                       \
      "owner LIMIT 1")                                                                                                \
    X(S_OF_OWNER, WB_SELECT_SITE "WHERE owner = ?1 AND owner <> '' AND state = 3 ORDER BY id LIMIT ?2")               \
    /* homes: the repositories that the run's sites stay with */                                                      \
    X(S_HOMES_GONE, "DELETE FROM webbase_home WHERE until_ms <= ?1")                                                  \
    X(S_HOME_LEFT, "DELETE FROM webbase_home WHERE run = ?1 AND home = ?2")                                           \
    X(S_HOMES_OVER, "DELETE FROM webbase_home")                                                                       \
    X(S_HOME_SEEN,                                                                                                    \
      "INSERT INTO webbase_home (run, home, until_ms) VALUES (?1, ?2, ?3) ON CONFLICT (run, home) DO UPDATE "         \
      "SET until_ms = excluded.until_ms WHERE webbase_home.until_ms < ?4")                                            \
    X(S_HOME_ALIVE, "SELECT until_ms FROM webbase_home WHERE run = ?1 AND home = ?2 AND until_ms > ?3")               \
    X(S_FIRST_HOME,                                                                                                   \
      "SELECT home FROM webbase_site WHERE run = ?1 AND home >= ?2 AND head = 1 ORDER BY home LIMIT 1")               \
    X(S_NEXT_HOME,                                                                                                    \
      "SELECT home FROM webbase_site WHERE run = ?1 AND home > ?2 AND head = 1 ORDER BY home LIMIT 1")                \
    /* news of sites, for those who take them over */                                                                 \
    X(S_NEWS_DROP, "DELETE FROM webbase_news WHERE site = ?1 AND run <> ?2")                                          \
    X(S_NEWS_LAST, "SELECT COALESCE(MAX(number), 0) FROM webbase_news WHERE site = ?1 AND run = ?2")                  \
    X(S_NEWS_ADD, "INSERT INTO webbase_news (site, run, number, home, text) VALUES (?1, ?2, ?3, ?4, ?5)")             \
    X(S_NEWS_NEXT,                                                                                                    \
      "SELECT number, text FROM webbase_news WHERE site = ?1 AND run = ?2 AND number > ?3 AND home <> ?4 "            \
      "ORDER BY number LIMIT 1")                                                                                      \
    X(S_LOST_ADD, "INSERT INTO webbase_lost (owner, site) VALUES (?1, ?2) ON CONFLICT (owner, site) DO NOTHING")      \
    X(S_LOST_ANY, "SELECT site FROM webbase_lost WHERE owner = ?1 LIMIT 1")                                           \
    X(S_LOST_BACK, "DELETE FROM webbase_lost WHERE owner = ?1 AND site = ?2")                                         \
    X(S_LOST_CLEAR, "DELETE FROM webbase_lost WHERE owner = ?1")                                                      \
    /* counts */                                                                                                      \
    X(S_COUNTS, "SELECT run, state, sites FROM webbase_count WHERE run = ?1")                                         \
    X(S_COUNTS_ALL, "SELECT run, state, sites FROM webbase_count")                                                    \
    X(S_FIRST_DUE, "SELECT next_ms FROM webbase_site WHERE run = ?1 AND state = 4 ORDER BY next_ms LIMIT 1")

enum wb_dispenser_statement {
#define WB_DISPENSER_ENUM(name, text) name,
    WB_DISPENSER_STATEMENTS(WB_DISPENSER_ENUM)
#undef WB_DISPENSER_ENUM
    WB_DISPENSER_STATEMENT_COUNT
};

#endif
