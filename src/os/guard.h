/*
 * guard.h - turns a fault in mapped memory into an error.
 *
 * A file that is read through a mapping has no error return: an unreadable disk
 * sector arrives as SIGBUS, and LMDB (which has no checksums) follows whatever
 * offsets a damaged page holds, into SIGSEGV. wb_guard_call() runs a function so
 * that either signal, raised in this thread, ends the function and returns
 * WB_E_CORRUPT instead of ending the process. What the function held (locks,
 * memory) is lost, so the mapping must not be used again afterwards.
 */
#ifndef WB_OS_GUARD_H
#define WB_OS_GUARD_H

/* Returns what function returned, or WB_E_CORRUPT with a message that names what. Calls may nest. */
int wb_guard_call(const char *what, int (*function)(void *context), void *context);

/* Ends the innermost guarded call as a fault would; used by callbacks that must not return. Aborts outside of one. */
_Noreturn void wb_guard_escape(void);

#endif
