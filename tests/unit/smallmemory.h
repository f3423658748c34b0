/*
 * smallmemory.h - how much memory updates and builds of indexes get in tests. With the default, which is for large
 * crawls, AddressSanitizer takes most of the time of a test to mark memory that is never used.
 */
#ifndef WB_TESTS_SMALLMEMORY_H
#define WB_TESTS_SMALLMEMORY_H

enum { SMALL_MEMORY = 16 << 20 };

#endif
