/*
 * fault.h - a test seam: makes the Nth operation of a kind fail, or lets a test judge each operation on a file.
 *
 * Every file operation of src/os asks wb_fault_strikes() first, and so does every allocation of src/base after
 * wb_fault_arm() was called. Only tests arm a fault; without one, asking costs two loads. A fault test runs an
 * operation again and again and lets the 1st, 2nd, 3rd... step fail, until one run comes through without a failure:
 *
 *   for (uint64_t n = 1;; n++) {
 *       wb_fault_arm(WB_FAULT_ANY, n, EIO);
 *       err = do_something();
 *       wb_fault_disarm();
 *       if (!wb_fault_struck())
 *           break;
 *       ...what must hold after a failure...
 *   }
 */
#ifndef WB_OS_FAULT_H
#define WB_OS_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum wb_fault_kind {
    WB_FAULT_ALLOC = 1 << 0,
    WB_FAULT_OPEN = 1 << 1,
    WB_FAULT_READ = 1 << 2,
    WB_FAULT_WRITE = 1 << 3, /* half of the bytes are written before it fails */
    WB_FAULT_SYNC = 1 << 4,
    WB_FAULT_RENAME = 1 << 5,
    WB_FAULT_ANY = (1 << 6) - 1,
};

/* The nth operation (from 1) of these kinds fails with this errno, once. */
void wb_fault_arm(unsigned kinds, uint64_t nth, int error);
void wb_fault_disarm(void);

/* How many operations of the armed kinds there were since wb_fault_arm(), and whether the fault has struck. */
uint64_t wb_fault_count(void);
bool wb_fault_struck(void);

/*
 * From now on, judge() is asked before every operation on a file or directory, in the thread that does it. It returns
 * the errno with which the operation fails, or 0; and it may wait, which makes a disk slow. NULL: from now on, nobody
 * is asked. To be called while no operation is under way.
 */
typedef int (*wb_fault_judge)(void *context, enum wb_fault_kind kind, const char *path);
void wb_fault_ask(wb_fault_judge judge, void *context);

/* For operations that report through errno: returns true if this one must fail now, with errno set. */
bool wb_fault_strikes(enum wb_fault_kind kind, const char *path);

#endif
