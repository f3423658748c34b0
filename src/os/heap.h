/* heap.h - how malloc() uses memory in a process with many threads that lives for long. */
#ifndef WB_OS_HEAP_H
#define WB_OS_HEAP_H

/*
 * To be called before the first thread starts. Large blocks go back to the system as soon as they are freed, instead of
 * leaving holes, and threads share a few heaps instead of having one each.
 */
void wb_heap_share(void);

/* Gives back to the system what was freed. Takes about a millisecond. */
void wb_heap_trim(void);

#endif
