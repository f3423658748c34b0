/*
 * registry_check.c - finds rows that break the rules of docs/formats/registry.md. It only reads.
 *
 * Each rule is a query that returns the name of a row that breaks it, or nothing.
 */
#include "base/buf.h"
#include "base/error.h"
#include "registry/registry_inside.h"

struct rule {
    enum wb_registry_statement statement;
    const char *says; /* %s: the row */
};

static const struct rule rules[] = {
#define RULE(name, text, says) {name, says},
    WB_REGISTRY_RULES(RULE)
#undef RULE
};

struct checking {
    struct wb_buf found; /* sentences, each with a NUL */
};

static int check_rule(struct wb_registry *r, const struct rule *rule, struct wb_buf *found)
{
    int err = wb_sql_run(r->sql, rule->statement, NULL, 0);

    while (err > 0) {
        struct wb_slice row = wb_sql_text(r->sql, rule->statement, 0);
        err = wb_buf_printf(found, "%.*s: %s", WB_SLICE_ARG(row), rule->says);
        if (err == 0)
            err = wb_buf_append_char(found, '\0');
        if (err == 0)
            err = wb_sql_next(r->sql, rule->statement);
    }
    return err;
}

static int check_all(struct wb_registry *r, void *context)
{
    struct checking *c = context;
    struct wb_registry_cluster cluster;
    int64_t clock, now;
    int err = wb_registry_read_cluster(r, &cluster, &clock, &now);

    wb_buf_clear(&c->found);
    if (err == 0)
        return wb_fail(WB_E_CORRUPT, "the registry in %s is damaged: the row of the cluster is missing",
                       wb_sql_where(r->sql));
    for (size_t i = 0; i < sizeof rules / sizeof *rules && err >= 0; i++)
        err = check_rule(r, &rules[i], &c->found);
    return err;
}

int wb_registry_check(struct wb_registry *r, void (*found)(void *context, const char *message), void *context)
{
    struct checking c = {.found = WB_BUF_INIT};
    int err = wb_registry_transact(r, WB_SQL_READ, check_all, &c);

    for (size_t at = 0; err == 0 && at < c.found.len; at += strlen(c.found.ptr + at) + 1)
        found(context, c.found.ptr + at);
    wb_buf_release(&c.found);
    return err;
}
