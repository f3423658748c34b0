/* cycletransfer.h - a step of the cycle before the index: makes what was crawled visible to readers. */
#ifndef WB_CYCLE_CYCLETRANSFER_H
#define WB_CYCLE_CYCLETRANSFER_H

#include "cycle/cycle.h"

/*
 * In a batch design, transfers what waits on the update nodes. In others there is nothing to do. WB_E_NOTFOUND.
 * *partly_out: the error, WB_E_DOWN, is about some pages only, which wait for a node; all others were brought.
 */
int wb_cycle_transfer(const char *dir, const struct wb_cycle_sink *sink, bool *partly_out);

#endif
