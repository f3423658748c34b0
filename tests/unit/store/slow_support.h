/*
 * slow_support.h - nodes that are slow: now and then a file of a node makes its user wait for a moment. So the
 * threads of a store meet in orders in which they hardly ever do on a fast disk.
 */
#ifndef WB_TESTS_SLOW_SUPPORT_H
#define WB_TESTS_SLOW_SUPPORT_H

#include <stdint.h>

/* How often somebody had to wait so far, by what he wanted. */
struct slow_counts {
    uint64_t opens, reads, writes, syncs;
};

/* From now on, files of nodes are slow. WEBBASE_TEST_SLOW=1 does the same from the start of a program. */
void use_slow_nodes(void);

/* Ends that, when no store is open. */
void use_fast_nodes(void);
struct slow_counts slow_counted(void);

#endif
