/*
 * advice_costs.h - what the operations of each organisation cost. Written by bench/run paper; do not edit.
 *
 * Microseconds of a node for one page. The designs themselves were measured, with pages of the benchmark corpus.
 */
/* clang-format off */
#define WB_ADVICE_MEASURED_WHERE                                                                                       \
    "2026-11-16, 2 processors, 24 GB of memory, a disk that reads 64 KB at random in 0.1 ms"

#define WB_ADVICE_MEASURED                                                                                             \
    {                                                                                                                  \
        .organisation =                                                                                                \
            {                                                                                                          \
                [WB_ORGANISATION_LOG] =                                                                                \
                    {.add = 40.33, .add_sorted = 4.262, .bring = 4.847,                                                \
                     .get = 59.06, .stream = 8.385, .compact = 37.58},                                                 \
                [WB_ORGANISATION_HASHED_LOG] =                                                                         \
                    {.add = 47.07, .add_sorted = 18.35, .bring = 18.35,                                                \
                     .get = 59.06, .stream = 20.97, .compact = 37.58},                                                 \
                [WB_ORGANISATION_HASH] =                                                                               \
                    {.add = 153.5, .add_sorted = 138, .bring = 159.6,                                                  \
                     .get = 122.2, .stream = 30.12, .compact = 0},                                                     \
            },                                                                                                         \
        .merge = 99.46, .index = 0.7, .lookup = 0, .conflict = 0.2199,                                                 \
    }
