/*
 * advice_costs.h - what the operations of each organisation cost. Written by bench/run paper; do not edit.
 *
 * Microseconds of a node for one page. The designs themselves are not measured yet: a cost is the work that the log
 * does without waiting for the disk, measured, and the time that the paper's simulator needs on files.
 */
#define WB_ADVICE_MEASURED_WHERE "2026-11-16, a virtual machine with 2 processors and a virtual disk"

#define WB_ADVICE_MEASURED                                                                                             \
    {                                                                                                                  \
        .organisation =                                                                                                \
            {                                                                                                          \
                [WB_ORGANISATION_LOG] = {.add = 63, .add_sorted = 63, .get = 128, .stream = 6.2, .compact = 9},              \
                [WB_ORGANISATION_HASHED_LOG] = {.add = 64, .add_sorted = 61, .get = 128, .stream = 6.2, .compact = 9},       \
                [WB_ORGANISATION_HASH] = {.add = 217, .add_sorted = 71, .get = 131, .stream = 8.4, .compact = 0},            \
            },                                                                                                         \
        .merge = 13, .index = 3, .lookup = 54, .conflict = 0.13,                                                       \
    }
