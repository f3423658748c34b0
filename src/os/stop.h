/* stop.h - SIGINT and SIGTERM as a flag that long work looks at, so that it can stop at a good moment. */
#ifndef WB_OS_STOP_H
#define WB_OS_STOP_H

#include <stdbool.h>

/* From now on the first of these signals sets the flag. The second one ends the process at once, as usual. */
void wb_stop_on_signals(void);
bool wb_stop_requested(void);

#endif
