/* kept.c - counters of the memory that caches keep. They are of the process, as its memory is. */
#include "base/kept.h"
#include "base/check.h"

#include <stdatomic.h>

static _Atomic uint64_t bound = UINT64_MAX;
static _Atomic uint64_t all;                   /* of all kinds */
static _Atomic uint64_t kept[WB_KEPT_COUNT];
static _Atomic uint64_t refusals;

const char *wb_kept_word(enum wb_kept kind)
{
    static const char *const words[WB_KEPT_COUNT] = {
        [WB_KEPT_CATALOG] = "catalog", [WB_KEPT_BLOCKS] = "blocks",   [WB_KEPT_SEGMENTS] = "segments",
        [WB_KEPT_TEXTS] = "texts",     [WB_KEPT_STREAMS] = "streams", [WB_KEPT_GENERATIONS] = "generations",
    };

    WB_CHECK(kind < WB_KEPT_COUNT);
    return words[kind];
}

void wb_kept_set_bound(uint64_t bytes)
{
    atomic_store(&bound, bytes);
}

uint64_t wb_kept_bound(void)
{
    return atomic_load(&bound);
}

bool wb_kept_add(enum wb_kept kind, size_t bytes)
{
    uint64_t most = atomic_load_explicit(&bound, memory_order_relaxed);
    uint64_t now = atomic_load_explicit(&all, memory_order_relaxed);

    WB_CHECK(kind < WB_KEPT_COUNT);
    do {
        if (now > most || bytes > most - now) {
            atomic_fetch_add_explicit(&refusals, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&all, &now, now + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    atomic_fetch_add_explicit(&kept[kind], bytes, memory_order_relaxed);
    return true;
}

void wb_kept_need(enum wb_kept kind, size_t bytes)
{
    WB_CHECK(kind < WB_KEPT_COUNT);
    atomic_fetch_add_explicit(&all, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&kept[kind], bytes, memory_order_relaxed);
}

void wb_kept_drop(enum wb_kept kind, size_t bytes)
{
    WB_CHECK(kind < WB_KEPT_COUNT);
    uint64_t before = atomic_fetch_sub_explicit(&kept[kind], bytes, memory_order_relaxed);

    WB_CHECK(before >= bytes);
    atomic_fetch_sub_explicit(&all, bytes, memory_order_relaxed);
}

bool wb_kept_pressed(uint64_t *seen)
{
    uint64_t now = atomic_load_explicit(&refusals, memory_order_relaxed);
    bool pressed = now != *seen;

    *seen = now;
    return pressed;
}

uint64_t wb_kept_bytes(enum wb_kept kind)
{
    WB_CHECK(kind < WB_KEPT_COUNT);
    return atomic_load_explicit(&kept[kind], memory_order_relaxed);
}

uint64_t wb_kept_all(void)
{
    return atomic_load_explicit(&all, memory_order_relaxed);
}
