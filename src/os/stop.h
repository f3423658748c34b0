/* stop.h - SIGINT and SIGTERM as a flag that long work looks at. */
#ifndef WB_OS_STOP_H
#define WB_OS_STOP_H

#include <stdbool.h>

/* From now on the first of the two signals sets the flag; the second one ends the process as usual. */
void wb_stop_on_signals(void);
bool wb_stop_requested(void);

#endif
