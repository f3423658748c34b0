/* limits.c - resource limits and the signals that tell of them. */
#include "os/limits.h"

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
    /* If this fails, the old limit still works, and running into it is reported. */
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void wb_limits_prepare(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    raise_files();
}

/* The limit in force of a resource; 0 if there is none. */
static uint64_t limit_of(int resource)
{
    struct rlimit limit;

    return getrlimit((__rlimit_resource_t)resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (uint64_t)limit.rlim_cur : 0;
}

uint64_t wb_limits_files(void)
{
    return limit_of(RLIMIT_NOFILE);
}

uint64_t wb_limits_memory(void)
{
    return limit_of(RLIMIT_AS);
}
