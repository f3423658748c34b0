/*
 * guestanswer.c - reads the parts of an answer, which come from a process that hostile bytes may have taken over. It
 * believes no length, no name and no count.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "guest/guestwire.h"

const char *wb_guest_end_name(enum wb_guest_end end)
{
    static const char *const names[] = {"", "crash", "time", "memory", "failed"};

    return names[end];
}

#define FACT_NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

static bool is_fact_name(struct wb_slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!memchr(FACT_NAME_CHARACTERS, name.ptr[i], sizeof FACT_NAME_CHARACTERS - 1))
            return false;
    return name.len > 0 && name.len <= WB_GUEST_FACT_NAME_MAX;
}

static bool is_within_limits(const struct wb_guest_part *part)
{
    switch (part->kind) {
    case WB_GUEST_TEXT:
    case WB_GUEST_TITLE:
    case WB_GUEST_SAY:
        return part->name.len == 0 && part->value.len <= WB_GUEST_TEXT_MAX;
    case WB_GUEST_PUBLISHED:
    case WB_GUEST_MODIFIED:
        return part->name.len == 0 && part->value.len == 8;
    case WB_GUEST_LINK:
        return true;
    case WB_GUEST_FACT:
        return is_fact_name(part->name) && part->value.len <= WB_GUEST_FACT_VALUE_MAX;
    default:
        return false;
    }
}

int wb_guest_next(struct wb_slice *rest, struct wb_guest_part *part_out)
{
    *part_out = (struct wb_guest_part){.name = WB_SLICE_EMPTY, .value = WB_SLICE_EMPTY};
    if (rest->len == 0)
        return 0;
    if (rest->len < WB_GUEST_PART_BYTES)
        return WB_E_PROTO;
    size_t first = wb_get32(rest->ptr + 1), second = wb_get32(rest->ptr + 5), left = rest->len - WB_GUEST_PART_BYTES;
    if (first > left || second > left - first)
        return WB_E_PROTO;
    const char *at = rest->ptr + WB_GUEST_PART_BYTES;
    part_out->kind = (enum wb_guest_part_kind)(unsigned char)*rest->ptr;
    part_out->name = wb_slice(at, first);
    part_out->value = wb_slice(at + first, second);
    if (!is_within_limits(part_out))
        return WB_E_PROTO;
    if (part_out->kind == WB_GUEST_PUBLISHED || part_out->kind == WB_GUEST_MODIFIED)
        part_out->time_ms = (int64_t)wb_get64(part_out->value.ptr);
    *rest = wb_slice(at + first + second, left - first - second);
    return 1;
}
