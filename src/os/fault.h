/*
 * fault.h - makes the Nth operation of a kind fail, for tests.
 *
 * Every file operation of src/os and, once wb_fault_arm() was called, every
 * allocation of src/base asks here first. Nothing is armed outside of tests, and
 * asking costs one load.
 */
#ifndef WB_OS_FAULT_H
#define WB_OS_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum wb_fault_kind {
    WB_FAULT_ALLOC = 1 << 0,
    WB_FAULT_OPEN = 1 << 1,
    WB_FAULT_READ = 1 << 2,
    WB_FAULT_WRITE = 1 << 3, /* writes half of what it was given, then fails */
    WB_FAULT_SYNC = 1 << 4,
    WB_FAULT_RENAME = 1 << 5,
    WB_FAULT_ANY = (1 << 6) - 1,
};

/* The nth (from 1) operation of these kinds fails with error (an errno), once. */
void wb_fault_arm(unsigned kinds, uint64_t nth, int error);
void wb_fault_disarm(void);

/* Operations of the armed kinds since arming; whether the fault has struck. */
uint64_t wb_fault_count(void);
bool wb_fault_struck(void);

/* Asked by operations: 0, or the errno to fail with. */
int wb_fault_hit(enum wb_fault_kind kind);

/* The same for operations that report through errno: true where it was set and they must fail. */
bool wb_fault_strikes(enum wb_fault_kind kind);

#endif
