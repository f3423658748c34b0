/*
 * fault.c - one armed fault, and one judge, for the whole process. Operations are counted atomically, because threads
 * write too.
 */
#include "os/fault.h"
#include "base/check.h"
#include "base/mem.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_uint armed_kinds, judged_kinds;
static _Atomic wb_fault_judge judge_of_files;
static void *_Atomic judge_context;
static _Atomic uint64_t strike_at, counted;
static atomic_int strike_error;
static atomic_bool struck;

/* The errno to fail with, or 0. */
static int count_operation(enum wb_fault_kind kind)
{
    if (!(atomic_load_explicit(&armed_kinds, memory_order_relaxed) & kind))
        return 0;
    if (atomic_fetch_add(&counted, 1) + 1 != strike_at)
        return 0;
    struck = true;
    return strike_error;
}

static bool alloc_should_fail(void)
{
    return count_operation(WB_FAULT_ALLOC) != 0;
}

void wb_fault_arm(unsigned kinds, uint64_t nth, int error)
{
    WB_CHECK(nth > 0 && error != 0 && (kinds & ~(unsigned)WB_FAULT_ANY) == 0);
    counted = 0;
    struck = false;
    strike_at = nth;
    strike_error = error;
    armed_kinds = kinds;
    __atomic_store_n(&wb_alloc_should_fail, kinds & WB_FAULT_ALLOC ? alloc_should_fail : NULL, __ATOMIC_RELAXED);
}

void wb_fault_disarm(void)
{
    armed_kinds = 0;
    __atomic_store_n(&wb_alloc_should_fail, NULL, __ATOMIC_RELAXED);
}

uint64_t wb_fault_count(void)
{
    return counted;
}

bool wb_fault_struck(void)
{
    return struck;
}

void wb_fault_ask(wb_fault_judge judge, void *context)
{
    judge_context = context;
    judge_of_files = judge;
    judged_kinds = judge ? WB_FAULT_ANY & ~WB_FAULT_ALLOC : 0;
}

bool wb_fault_strikes(enum wb_fault_kind kind, const char *path)
{
    int error = count_operation(kind);

    if (error == 0 && atomic_load_explicit(&judged_kinds, memory_order_relaxed) & kind)
        error = judge_of_files(judge_context, kind, path);
    if (error)
        errno = error;
    return error != 0;
}
