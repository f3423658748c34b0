/* limits.c - resource limits (getrlimit), the signals that enforce them, and the processors that we may use. */
#include "os/limits.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

static void raise_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    rlim_t want = limit.rlim_max < WB_LIMITS_FILES_MAX ? limit.rlim_max : WB_LIMITS_FILES_MAX;
    if (limit.rlim_cur >= want)
        return;
    limit.rlim_cur = want;
    /* If this fails, the old limit stays in force, and running into it is reported as an error. */
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void wb_limits_prepare(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    raise_files();
}

/* The limit of a resource that is in force; 0 if there is none. */
static uint64_t limit_of(int resource)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    return (uint64_t)limit.rlim_cur;
}

uint64_t wb_limits_files(void)
{
    return limit_of(RLIMIT_NOFILE);
}

uint64_t wb_limits_memory(void)
{
    return limit_of(RLIMIT_AS);
}

unsigned wb_limits_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (unsigned)count : 1;
}
