/* unsynced.h - nothing is really synced in this test program, which would only take time. */
#ifndef WB_TESTS_UNSYNCED_H
#define WB_TESTS_UNSYNCED_H

#include <unistd.h>

int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

int fsync(int fd)
{
    (void)fd;
    return 0;
}

#endif
