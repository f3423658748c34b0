/*
 * registry_support.h - what the tests of the registry share: a cluster in each database, machines, and a time that the
 * test moves.
 */
#ifndef WB_TEST_REGISTRY_SUPPORT_H
#define WB_TEST_REGISTRY_SUPPORT_H

#include "../must.h"
#include "../seeded.h"
#include "registry/registry_inside.h"
#include "sql/sql_driver.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { LEASE = 4000 };

struct cluster_place {
    char dir[64], url[512];
    bool postgres;
    struct wb_registry *admin; /* a handle that is no machine */
};

/* A new cluster with 8 shards, 2 copies and a lease of LEASE ms. *state: "sqlite" or "postgres", then the place. */
int set_up_cluster(void **state);
int tear_down_cluster(void **state);
int make_cluster(struct cluster_place *p, bool postgres, unsigned shards, unsigned copies, unsigned lease_ms);
void remove_cluster(struct cluster_place *p);

#define BOTH(test)                                                                                                     \
    {#test " (sqlite)", test, set_up_cluster, tear_down_cluster, (void *)"sqlite"},                                    \
    {                                                                                                                  \
#test " (postgres)", test, set_up_cluster, tear_down_cluster, (void *)"postgres"                               \
    }

/*
 * The time, in ms, of all clocks: true_ms, which the database adds database_ahead_ms to. With own_clocks(false) they
 * are the real ones.
 */
extern int64_t true_ms, database_ahead_ms;
void own_clocks(bool own);

struct wb_registry *open_machine(const struct cluster_place *p);

/* Joins; the id of the directory is made of the name. */
int join_as(struct wb_registry *r, const char *name);
struct wb_registry *new_machine(const struct cluster_place *p, const char *name);

/* Lets some seconds pass, in which all these machines renew their leases. NULLs are passed over. */
void pass_time(unsigned seconds, struct wb_registry *const *machines, size_t count);

/* One shard as the registry has it now. */
struct wb_registry_shard shard_now(const struct cluster_place *p, unsigned shard);

/* Fails the test if a row breaks a rule. */
void check_rules(const struct cluster_place *p);

/* Runs statements, without the registry's knowledge. */
void change_rows(const struct cluster_place *p, const char *text);

#endif
