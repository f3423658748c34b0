/* heaps.h - how malloc() uses memory in a process with many threads that lives for long. */
#ifndef WB_OS_HEAPS_H
#define WB_OS_HEAPS_H

/*
 * To be called before the first thread starts. Large blocks go back to the system as soon as they are freed, instead of
 * leaving holes, and threads share a few heaps instead of having one each.
 */
void wb_heaps_share(void);

/* Gives back to the system what was freed. Takes about a millisecond. */
void wb_heaps_trim(void);

#endif
