/* slow_support.c - the judge of slow_support.h. Stores use several threads and child processes, so it has no locks. */
#include "slow_support.h"
#include "../seeded.h"
#include "os/fault.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ONE_IN = 4, WAIT_US_MAX = 200 };

static uint64_t seed;
static _Atomic uint64_t asked, opens, reads, writes, syncs;

static int make_wait(void *context, enum wb_fault_kind kind, const char *path)
{
    uint64_t chance = seed ^ atomic_fetch_add(&asked, 1) << 20;

    (void)context;
    if (!strstr(path, "/pages/") || !chance_one_in(&chance, ONE_IN))
        return 0;
    opens += kind == WB_FAULT_OPEN;
    reads += kind == WB_FAULT_READ;
    writes += kind == WB_FAULT_WRITE;
    syncs += kind == WB_FAULT_SYNC;
    usleep((useconds_t)chance_below(&chance, WAIT_US_MAX));
    return 0;
}

void use_slow_nodes(void)
{
    seed = test_seed();
    wb_fault_ask(make_wait, NULL);
}

void use_fast_nodes(void)
{
    wb_fault_ask(NULL, NULL);
    opens = reads = writes = syncs = 0;
}

struct slow_counts slow_counted(void)
{
    return (struct slow_counts){opens, reads, writes, syncs};
}

__attribute__((constructor)) static void begin(void)
{
    if (getenv("WEBBASE_TEST_SLOW"))
        use_slow_nodes();
}
