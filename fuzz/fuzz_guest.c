/*
 * fuzz_guest.c - arbitrary bytes as the answer of a process that hostile bytes have taken over: each part is inside the
 * answer, behind the one before, and within the limits.
 */
#include "base/check.h"
#include "guest/guest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice rest = wb_slice(size ? (const char *)data : "", size);
    const char *at = rest.ptr, *end = rest.ptr + rest.len;
    struct wb_guest_part part;
    int more;

    while ((more = wb_guest_next(&rest, &part)) > 0) {
        WB_CHECK(rest.ptr > at && rest.ptr + rest.len == end);
        WB_CHECK(part.name.ptr >= at && part.value.ptr == part.name.ptr + part.name.len);
        WB_CHECK(part.value.ptr + part.value.len == rest.ptr);
        WB_CHECK(part.kind != WB_GUEST_FACT || (part.name.len > 0 && part.name.len <= WB_GUEST_FACT_NAME_MAX &&
                                                part.value.len <= WB_GUEST_FACT_VALUE_MAX));
        at = rest.ptr;
    }
    WB_CHECK(more < 0 || rest.len == 0);
    return 0;
}
