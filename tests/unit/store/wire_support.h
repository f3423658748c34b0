/*
 * wire_support.h - nodes behind a transport: every request of a store is encoded, delivered once or twice, and carried
 * out by a node that the store cannot see. What messages call such a node is no path of this machine.
 */
#ifndef WB_TESTS_WIRE_SUPPORT_H
#define WB_TESTS_WIRE_SUPPORT_H

#include "place/node.h"

/* What was exchanged so far in this process. */
struct wire_counts {
    uint64_t requests[WB_NODE_KINDS];
    uint64_t repeated;
};

/* From now on, stores reach their nodes in this way. WEBBASE_TEST_WIRE=1 does the same from the start of a program. */
void use_wire(void);

/* Ends that, when no store is open. */
void use_no_wire(void);
struct wire_counts wire_counted(void);

#endif
