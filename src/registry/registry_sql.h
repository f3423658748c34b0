/*
 * registry_sql.h - every statement of the registry, once, for both databases. registry_schema.c has the tables;
 * docs/formats/registry.md says what the columns mean. Used inside this room only.
 *
 * Writers do not take turns. So what must hold when a row is changed is in the WHERE of its UPDATE, which PostgreSQL
 * judges again if the row has changed meanwhile. The row of a machine is changed before the rows of its shards, by
 * everybody.
 */
#ifndef WB_REGISTRY_REGISTRY_SQL_H
#define WB_REGISTRY_REGISTRY_SQL_H

/* In the order in which registry_view.c reads them. */
#define WB_REGISTRY_SHARD_COLUMNS \
    "shard, holder, wanted, head, term, pages, bytes, generation, unsafe_ms, webbase_now_ms() "

/*
 * The rules that valid rows keep: name, a query that finds rows that break it, what is wrong with them. Each returns a
 * text of one column.
 */
#define WB_REGISTRY_RULES(X)                                                                                          \
    X(R_RULE_COUNT,                                                                                                   \
      "SELECT 'webbase_shard' FROM webbase_cluster WHERE shards <> (SELECT COUNT(*) FROM webbase_shard)",             \
      "the number of rows is not that of shards")                                                                     \
    X(R_RULE_RANGE,                                                                                                   \
      "SELECT 'shard ' || CAST(s.shard AS TEXT) FROM webbase_shard s, webbase_cluster c WHERE s.shard < 0 OR "        \
      "s.shard >= c.shards OR s.hash_first <> s.shard * (4294967296 / c.shards) OR "                                  \
      "s.hash_last <> (s.shard + 1) * (4294967296 / c.shards) - 1",                                                   \
      "its range of hashes is another one")                                                                           \
    X(R_RULE_NUMBERS,                                                                                                 \
      "SELECT 'shard ' || CAST(shard AS TEXT) FROM webbase_shard WHERE term < 0 OR pages < 0 OR bytes < 0 OR "        \
      "generation < 0 OR unsafe_ms < 0",                                                                              \
      "a number is negative")                                                                                         \
    X(R_RULE_HOLDER,                                                                                                  \
      "SELECT 'shard ' || CAST(shard AS TEXT) FROM webbase_shard s WHERE holder <> '' AND NOT EXISTS "                \
      "(SELECT 1 FROM webbase_machine m WHERE m.name = s.holder AND m.search_only = 0)",                              \
      "its holder is no machine of the cluster that may hold shards")                                                 \
    X(R_RULE_NEVER,                                                                                                   \
      "SELECT 'shard ' || CAST(shard AS TEXT) FROM webbase_shard WHERE term = 0 AND (holder <> '' OR head <> '' OR "  \
      "pages <> 0 OR bytes <> 0)",                                                                                    \
      "nobody has ever held it, but it has a holder or a head")                                                       \
    X(R_RULE_TOKEN,                                                                                                   \
      "SELECT 'shard ' || CAST(shard AS TEXT) FROM webbase_shard WHERE holder = '' AND (token <> '' OR "              \
      "unsafe_ms <> 0)",                                                                                              \
      "nobody holds it, but it has a token, or something that waits")                                                 \
    X(R_RULE_MACHINE,                                                                                                 \
      "SELECT 'machine ' || name FROM webbase_machine WHERE name = '' OR weight < 1 OR weight > 1000 OR "             \
      "draining < 0 OR draining > 1 OR search_only < 0 OR search_only > 1 OR epoch < 1 OR until_ms < 0 OR "           \
      "since_ms < 0 OR bars < 0",                                                                                     \
      "a value is out of its range")                                                                                  \
    X(R_RULE_LEASE,                                                                                                   \
      "SELECT 'machine ' || m.name FROM webbase_machine m, webbase_cluster c WHERE m.until_ms > 0 AND "               \
      "(m.session = '' OR m.since_ms > m.until_ms - c.lease_ms)",                                                     \
      "it has a lease without a session, or one that is shorter than its renewals")                                   \
    X(R_RULE_BARS,                                                                                                    \
      "SELECT 'bar ' || CAST(b.number AS TEXT) FROM webbase_bar b, webbase_cluster c WHERE b.number < 1 OR "          \
      "b.number > c.bars OR b.lifted < 0 OR b.lifted > 1",                                                            \
      "it has a number that was never given")                                                                         \
    X(R_RULE_COPY,                                                                                                    \
      "SELECT 'copy of shard ' || CAST(p.shard AS TEXT) || ' on ' || p.machine FROM webbase_copy p WHERE NOT EXISTS " \
      "(SELECT 1 FROM webbase_shard s WHERE s.shard = p.shard AND s.holder <> p.machine)",                            \
      "there is no such shard, or the machine holds it")                                                              \
    X(R_RULE_TASK,                                                                                                    \
      "SELECT 'task ' || name FROM webbase_task WHERE term < 0 OR (holder = '') <> (session = '')",                   \
      "its holder has no session, or the other way round")                                                            \
    X(R_RULE_SLOT,                                                                                                    \
      "SELECT 'slot ' || CAST(slot AS TEXT) || ' of ' || address FROM webbase_slot WHERE slot < 1 OR "                \
      "(machine = '') <> (token = '') OR (machine = '') <> (session = '')",                                           \
      "it has a holder without a token, or the other way round")

#define WB_REGISTRY_STATEMENTS(X)                                                                                     \
    X(R_CLUSTER,                                                                                                      \
      "SELECT format, id, secret, store, history, shards, copies, lease_ms, generation, bars, clock, "                \
      "webbase_now_ms() FROM webbase_cluster WHERE one = 1")                                                          \
    X(R_CLUSTER_ADD,                                                                                                  \
      "INSERT INTO webbase_cluster (one, format, id, secret, store, history, shards, copies, lease_ms, generation, "  \
      "bars, clock) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, ?9)")                                            \
    X(R_CLOCK_SET, "UPDATE webbase_cluster SET clock = ?1 WHERE one = 1")                                             \
    X(R_LEASES_OVER, "UPDATE webbase_machine SET until_ms = 0, since_ms = 0, session = ''")                           \
    X(R_WAITS_OVER, "UPDATE webbase_slot SET ready_ms = 0")                                                           \
    X(R_UNSAFE_OVER, "UPDATE webbase_shard SET unsafe_ms = 0")                                                        \
    /* machines */                                                                                                    \
    X(R_MACHINE,                                                                                                      \
      "SELECT session, until_ms, address, directory, webbase_now_ms() FROM webbase_machine WHERE name = ?1")          \
    X(R_MACHINE_OF_DIRECTORY,                                                                                         \
      "SELECT name, address FROM webbase_machine WHERE directory = ?1 AND name <> ?2 AND until_ms > webbase_now_ms()") \
    X(R_DIRECTORY_LEFT,                                                                                               \
      "UPDATE webbase_machine SET directory = '' WHERE directory = ?1 AND name <> ?2 AND "                            \
      "until_ms <= webbase_now_ms()")                                                                                 \
    X(R_MACHINE_ADD,                                                                                                  \
      "INSERT INTO webbase_machine (name, address, directory, weight, class_name, search_only, draining, until_ms, "  \
      "since_ms, session, epoch, bars) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, webbase_now_ms() + ?7, webbase_now_ms(), "  \
      "?8, 1, 0) ON CONFLICT (name) DO NOTHING")                                                                      \
    X(R_MACHINE_AGAIN,                                                                                                \
      "UPDATE webbase_machine SET address = ?2, directory = ?3, weight = ?4, class_name = ?5, search_only = ?6, "     \
      "until_ms = webbase_now_ms() + ?7, since_ms = webbase_now_ms(), session = ?8, epoch = epoch + 1, bars = 0 "     \
      "WHERE name = ?1 AND until_ms <= webbase_now_ms()")                                                             \
    X(R_TERMS_UP, "UPDATE webbase_shard SET term = term + 1, token = '' WHERE holder = ?1")                           \
    X(R_SELF,                                                                                                         \
      "SELECT until_ms, epoch, webbase_server(), since_ms, draining, search_only, webbase_now_ms() "                  \
      "FROM webbase_machine WHERE name = ?1 AND session = ?2")                                                        \
    X(R_RENEW,                                                                                                        \
      "UPDATE webbase_machine SET until_ms = webbase_now_ms() + ?3, "                                                 \
      "since_ms = CASE WHEN until_ms - ?3 <= webbase_now_ms() AND webbase_now_ms() <= until_ms - ?3 + ?4 "            \
      "THEN since_ms ELSE webbase_now_ms() END WHERE name = ?1 AND session = ?2 "                                     \
      "RETURNING until_ms, epoch, webbase_server(), draining, "                                                       \
      "(SELECT generation FROM webbase_cluster WHERE one = 1), (SELECT bars FROM webbase_cluster WHERE one = 1)")     \
    X(R_LEAVE,                                                                                                        \
      "UPDATE webbase_machine SET until_ms = 0, since_ms = 0, session = '', epoch = epoch + 1 "                       \
      "WHERE name = ?1 AND session = ?2 RETURNING epoch")                                                             \
    X(R_SHARDS_LEFT, "UPDATE webbase_shard SET holder = '', token = '', unsafe_ms = 0 WHERE holder = ?1")             \
    X(R_COPIES_LEFT, "DELETE FROM webbase_copy WHERE machine = ?1")                                                   \
    X(R_BUMP, "UPDATE webbase_machine SET epoch = epoch + 1 WHERE name = ?1 RETURNING epoch")                         \
    X(R_BUMP_DEAD,                                                                                                    \
      "UPDATE webbase_machine SET epoch = epoch + 1 WHERE name = ?1 AND until_ms <= webbase_now_ms() RETURNING epoch") \
    X(R_BUMP_ABLE,                                                                                                    \
      "UPDATE webbase_machine SET epoch = epoch + 1 WHERE name = ?1 AND until_ms > webbase_now_ms() AND "             \
      "draining = 0 AND search_only = 0 RETURNING epoch")                                                             \
    X(R_CLAMP,                                                                                                        \
      "UPDATE webbase_machine SET until_ms = webbase_now_ms() + ?1, since_ms = webbase_now_ms() "                     \
      "WHERE until_ms > webbase_now_ms() + ?1")                                                                       \
    X(R_DRAIN, "UPDATE webbase_machine SET draining = 1 WHERE name = ?1 RETURNING name")                              \
    X(R_REMOVE,                                                                                                       \
      "DELETE FROM webbase_machine WHERE name = ?1 AND (draining = 1 OR until_ms <= webbase_now_ms()) AND "           \
      "NOT EXISTS (SELECT 1 FROM webbase_shard WHERE holder = ?1) RETURNING name")                                    \
    /* shards */                                                                                                      \
    X(R_SHARD, "SELECT " WB_REGISTRY_SHARD_COLUMNS ", token FROM webbase_shard WHERE shard = ?1")                     \
    X(R_HELD, "SELECT " WB_REGISTRY_SHARD_COLUMNS "FROM webbase_shard WHERE holder = ?1 ORDER BY shard")              \
    X(R_TAKE,                                                                                                         \
      "UPDATE webbase_shard SET holder = ?1, term = term + 1, token = ?2, wanted = '', unsafe_ms = 0 "                \
      "WHERE shard = ?3 AND holder = ?4 AND term = ?5 RETURNING " WB_REGISTRY_SHARD_COLUMNS)                          \
    X(R_RELEASE,                                                                                                      \
      "UPDATE webbase_shard SET holder = '', token = '', unsafe_ms = 0 WHERE shard = ?1 AND holder = ?2 AND "         \
      "term = ?3")                                                                                                    \
    X(R_HAND_OVER,                                                                                                    \
      "UPDATE webbase_shard SET holder = ?4, term = term + 1, token = '', wanted = '', unsafe_ms = 0 "                \
      "WHERE shard = ?1 AND holder = ?2 AND term = ?3 RETURNING term")                                                \
    X(R_PUBLISH,                                                                                                      \
      "UPDATE webbase_shard SET head = ?5, pages = ?6, bytes = ?7, generation = ?8, "                                 \
      "unsafe_ms = ?9 * webbase_now_ms() WHERE shard = ?1 AND holder = ?2 AND term = ?3 AND head = ?4 "               \
      "RETURNING " WB_REGISTRY_SHARD_COLUMNS)                                                                         \
    X(R_UNSAFE,                                                                                                       \
      "UPDATE webbase_shard SET unsafe_ms = ?4 * (webbase_now_ms() - ?5) WHERE shard = ?1 AND holder = ?2 AND "       \
      "term = ?3")                                                                                                    \
    X(R_WANT, "UPDATE webbase_shard SET wanted = ?2 WHERE shard = ?1 RETURNING holder")                               \
    X(R_COPY_SET,                                                                                                     \
      "INSERT INTO webbase_copy (shard, machine, head) VALUES (?1, ?2, ?3) ON CONFLICT (shard, machine) DO UPDATE "   \
      "SET head = excluded.head")                                                                                     \
    X(R_COPY_DROP, "DELETE FROM webbase_copy WHERE shard = ?1 AND machine = ?2")                                      \
    /* everything */                                                                                                  \
    X(R_ANY_FREE,                                                                                                     \
      "SELECT CASE WHEN EXISTS (SELECT 1 FROM webbase_shard WHERE holder = '') OR "                                   \
      "EXISTS (SELECT 1 FROM webbase_machine m WHERE m.until_ms <= webbase_now_ms() AND "                             \
      "EXISTS (SELECT 1 FROM webbase_shard s WHERE s.holder = m.name)) THEN 1 ELSE 0 END, "                           \
      "CASE WHEN EXISTS (SELECT 1 FROM webbase_machine WHERE until_ms > webbase_now_ms() + ?1) THEN 1 ELSE 0 END")    \
    X(R_MACHINES,                                                                                                     \
      "SELECT name, address, directory, weight, class_name, search_only, draining, until_ms, since_ms, bars, "        \
      "webbase_now_ms() FROM webbase_machine")                                                                        \
    X(R_SHARDS, "SELECT " WB_REGISTRY_SHARD_COLUMNS "FROM webbase_shard ORDER BY shard")                              \
    X(R_COPIES, "SELECT shard, machine, head FROM webbase_copy")                                                      \
    /* tasks */                                                                                                       \
    X(R_TASK,                                                                                                         \
      "SELECT t.holder, t.session, t.term, t.state, CASE WHEN EXISTS (SELECT 1 FROM webbase_machine m WHERE "         \
      "m.name = t.holder AND m.session = t.session AND m.until_ms > webbase_now_ms()) THEN 1 ELSE 0 END "             \
      "FROM webbase_task t WHERE t.name = ?1")                                                                        \
    X(R_TASK_ADD,                                                                                                     \
      "INSERT INTO webbase_task (name, holder, session, term, state) VALUES (?1, '', '', 0, '') "                     \
      "ON CONFLICT (name) DO NOTHING")                                                                                \
    X(R_TASK_TAKE,                                                                                                    \
      "UPDATE webbase_task SET holder = ?2, session = ?3, term = term + 1 WHERE name = ?1 AND term = ?4 AND "         \
      "holder = ?5 RETURNING term")                                                                                   \
    X(R_TASK_LEAVE,                                                                                                   \
      "UPDATE webbase_task SET state = ?5, holder = ?6, session = ?7 WHERE name = ?1 AND term = ?4 AND "              \
      "(holder = ?2 AND session = ?3 OR holder = '' AND state = ?5) RETURNING term")                                  \
    /* bars */                                                                                                        \
    X(R_BAR_NUMBER, "UPDATE webbase_cluster SET bars = bars + 1 WHERE one = ?1 RETURNING bars")                        \
    X(R_BAR_SET,                                                                                                      \
      "INSERT INTO webbase_bar (what, number, lifted) VALUES (?1, ?2, ?3) ON CONFLICT (what) DO UPDATE SET "          \
      "number = excluded.number, lifted = excluded.lifted")                                                           \
    X(R_BARS, "SELECT number, what, lifted FROM webbase_bar WHERE number > ?1 ORDER BY number LIMIT ?2")              \
    X(R_BARS_CONFIRM, "UPDATE webbase_machine SET bars = ?3 WHERE name = ?1 AND session = ?2 AND bars < ?3")          \
    /* slots of addresses */                                                                                          \
    X(R_SLOT_OF_TOKEN, "SELECT slot, ready_ms, webbase_now_ms() FROM webbase_slot WHERE address = ?1 AND token = ?2") \
    X(R_SLOTS,                                                                                                        \
      "SELECT s.slot, s.token, s.ready_ms, CASE WHEN EXISTS (SELECT 1 FROM webbase_machine m WHERE "                  \
      "m.name = s.machine AND m.session = s.session AND m.until_ms > webbase_now_ms()) THEN 1 ELSE 0 END, "           \
      "webbase_now_ms() FROM webbase_slot s WHERE s.address = ?1 ORDER BY s.slot")                                    \
    X(R_SLOT_ADD,                                                                                                     \
      "INSERT INTO webbase_slot (address, slot, machine, session, token, ready_ms) VALUES (?1, ?2, ?3, ?4, ?5, 0) "   \
      "ON CONFLICT (address, slot) DO NOTHING RETURNING slot")                                                        \
    X(R_SLOT_TAKE,                                                                                                    \
      "UPDATE webbase_slot SET machine = ?3, session = ?4, token = ?5 WHERE address = ?1 AND slot = ?2 AND "          \
      "token = ?6 RETURNING slot")                                                                                    \
    X(R_SLOT_RELEASE,                                                                                                 \
      "UPDATE webbase_slot SET machine = '', session = '', token = '', ready_ms = webbase_now_ms() + ?5 "             \
      "WHERE address = ?1 AND slot = ?2 AND machine = ?3 AND session = ?4")                                           \
    X(R_SLOTS_TIDY,                                                                                                   \
      "DELETE FROM webbase_slot WHERE address = ?1 AND slot <> ?2 AND machine = '' AND ready_ms <= webbase_now_ms()")

enum wb_registry_statement {
#define WB_REGISTRY_RULE_ENUM(name, text, says) name,
    WB_REGISTRY_RULES(WB_REGISTRY_RULE_ENUM)
#undef WB_REGISTRY_RULE_ENUM
#define WB_REGISTRY_ENUM(name, text) name,
    WB_REGISTRY_STATEMENTS(WB_REGISTRY_ENUM)
#undef WB_REGISTRY_ENUM
    WB_REGISTRY_STATEMENT_COUNT
};

#endif
