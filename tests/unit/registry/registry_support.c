/* registry_support.c - see registry_support.h. */
#include "registry_support.h"
#include "../postgresserver.h"
#include "../removetree.h"
#include "base/codec.h"
#include "base/hash.h"

int64_t true_ms = INT64_C(1000000000), database_ahead_ms;

static int64_t database_clock(void)
{
    return true_ms + database_ahead_ms;
}

static int64_t machine_clock(const struct wb_registry *r)
{
    (void)r;
    return true_ms * 1000000;
}

void own_clocks(bool own)
{
    wb_sql_test_clock = own ? database_clock : NULL;
    wb_registry_test_clock = own ? machine_clock : NULL;
}

int make_cluster(struct cluster_place *p, bool postgres, unsigned shards, unsigned copies, unsigned lease_ms)
{
    struct wb_registry_cluster settings = {
        .store = "file:///store", .history = "newest", .shards = shards, .copies = copies, .lease_ms = lease_ms};

    *p = (struct cluster_place){.postgres = postgres};
    snprintf(p->dir, sizeof p->dir, "%s/webbase-registry.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    must(mkdtemp(p->dir));
    if (postgres)
        postgres_schema(p->url, sizeof p->url);
    else
        snprintf(p->url, sizeof p->url, "sqlite://%s/registry.db", p->dir);
    database_ahead_ms = 0;
    int err = wb_registry_init(p->url, &settings);
    return err < 0 ? err : wb_registry_open(p->url, &p->admin);
}

void remove_cluster(struct cluster_place *p)
{
    wb_registry_close(p->admin);
    remove_tree(p->dir);
}

int set_up_cluster(void **state)
{
    struct cluster_place *p = malloc(sizeof *p);

    must(p);
    own_clocks(true);
    must_ok(make_cluster(p, strcmp(*state, "postgres") == 0, 8, 2, LEASE));
    *state = p;
    return 0;
}

int tear_down_cluster(void **state)
{
    check_rules(*state);
    remove_cluster(*state);
    free(*state);
    return 0;
}

struct wb_registry *open_machine(const struct cluster_place *p)
{
    struct wb_registry *r = NULL;

    must_ok(wb_registry_open(p->url, &r));
    return r;
}

int join_as(struct wb_registry *r, const char *name)
{
    uint64_t id[2] = {wb_hash64(name, strlen(name)), 1};
    char directory[33] = {0}, address[80];

    wb_hex_encode(id, sizeof id, directory);
    directory[32] = '\0';
    snprintf(address, sizeof address, "%s.example:8080", name);
    struct wb_registry_self self = {
        .name = name, .address = address, .directory = directory, .weight = 1, .class_name = ""};
    return wb_registry_join(r, &self);
}

struct wb_registry *new_machine(const struct cluster_place *p, const char *name)
{
    struct wb_registry *r = open_machine(p);

    must_ok(join_as(r, name));
    return r;
}

void pass_time(unsigned seconds, struct wb_registry *const *machines, size_t count)
{
    for (unsigned s = 0; s < seconds; s++) {
        true_ms += 1000;
        for (size_t i = 0; i < count; i++)
            if (machines[i])
                must_ok(wb_registry_renew(machines[i], NULL));
    }
}

struct wb_registry_shard shard_now(const struct cluster_place *p, unsigned shard)
{
    struct wb_registry_view view;

    must_ok(wb_registry_look(p->admin, &view));
    must(shard < view.shards.count);
    struct wb_registry_shard row = view.shards.items[shard];
    wb_registry_view_release(&view);
    return row;
}

static void fail_rule(void *context, const char *message)
{
    (void)context;
    print_error("%s\n", message);
    must(!"the registry's rows are valid");
}

void check_rules(const struct cluster_place *p)
{
    must_ok(wb_registry_check(p->admin, fail_rule, NULL));
}

static int change(struct wb_registry *r, void *context)
{
    return wb_sql_exec(r->sql, context);
}

void change_rows(const struct cluster_place *p, const char *text)
{
    must_ok(wb_registry_transact(p->admin, WB_SQL_WRITE, change, (void *)(uintptr_t)text));
}
