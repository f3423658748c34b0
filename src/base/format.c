/* format.c - reads the number of a format from a mark, and says that another one cannot be read. */
#include "base/format.h"
#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>

enum { MARK_BYTES = 8 };

int wb_fail_format(const char *what, uint64_t found, uint64_t read)
{
    WB_CHECK(found != read);
    return wb_fail(WB_E_NEWER, "%s has format %" PRIu64 "; this program reads format %" PRIu64, what, found, read);
}

unsigned wb_mark_format(const char *bytes, const char *mark)
{
    const char *digit = memchr(mark, '1', MARK_BYTES);

    WB_CHECK(digit != NULL);
    size_t at = (size_t)(digit - mark), after = at + 1;
    if (memcmp(bytes, mark, at) != 0 || memcmp(bytes + after, mark + after, MARK_BYTES - after) != 0)
        return 0;
    return bytes[at] >= '1' && bytes[at] <= '9' ? (unsigned)(bytes[at] - '0') : 0;
}
