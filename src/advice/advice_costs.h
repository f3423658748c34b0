/*
 * advice_costs.h - what the operations of each organisation cost. Written by bench/run paper; do not edit.
 *
 * Microseconds of a node for one page. The designs themselves were measured, with pages of the benchmark corpus.
 */
/* clang-format off */
#define WB_ADVICE_MEASURED_WHERE                                                                                       \
    "2026-11-16, 2 processors, 24 GB of memory, a disk that reads 64 KB at random in 0.08 ms"

#define WB_ADVICE_MEASURED                                                                                             \
    {                                                                                                                  \
        .organisation =                                                                                                \
            {                                                                                                          \
                [WB_ORGANISATION_LOG] =                                                                                \
                    {.add = 44.34, .add_sorted = 95.57, .bring = 5.985,                                                \
                     .get = 61.08, .stream = 8.497, .compact = 38.15},                                                 \
                [WB_ORGANISATION_HASHED_LOG] =                                                                         \
                    {.add = 44.34, .add_sorted = 95.57, .bring = 97.83,                                                \
                     .get = 61.08, .stream = 19.32, .compact = 38.15},                                                 \
                [WB_ORGANISATION_HASH] =                                                                               \
                    {.add = 228.7, .add_sorted = 169.9, .bring = 183.8,                                                \
                     .get = 112.7, .stream = 33.25, .compact = 0},                                                     \
            },                                                                                                         \
        .merge = 154.6, .index = 1.5, .lookup = 0, .conflict = 0.1253,                                                 \
    }
