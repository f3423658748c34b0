/* random.c - getrandom(2), which cannot fail once the system has booted. */
#include "os/random.h"
#include "base/check.h"

#include <sys/random.h>

void wb_random_bytes(void *bytes_out, size_t len)
{
    char *to = bytes_out;

    while (len) {
        ssize_t n = getrandom(to, len, 0);
        WB_CHECK(n > 0);
        to += n;
        len -= (size_t)n;
    }
}
