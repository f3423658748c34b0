/* hangup.h - SIGHUP as a count: code whose open files may be replaced looks whether it has grown. */
#ifndef WB_OS_HANGUP_H
#define WB_OS_HANGUP_H

/* From now on the signal is counted; before, it ends the process. */
void wb_hangup_count(void);
unsigned wb_hangups(void);

#endif
