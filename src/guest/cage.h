/*
 * cage.h - private to guest: takes from this process what a guest must not have.
 *
 *   wb_cage_enter()   before foreign code is loaded: limits, no network, no processes; files can only be read
 *   wb_cage_shut()    before it gets a page: no files at all, and the limit on memory
 */
#ifndef WB_GUEST_CAGE_H
#define WB_GUEST_CAGE_H

#include <stdint.h>

/* 0, or a negative code with a message if the kernel has neither seccomp nor namespaces. */
int wb_cage_enter(void);
int wb_cage_shut(uint64_t memory_bytes);

#endif
