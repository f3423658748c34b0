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
                    {.add = 36.85, .add_sorted = 96.7, .bring = 4.383,                                                 \
                     .get = 45.84, .stream = 7.106, .compact = 37.58},                                                 \
                [WB_ORGANISATION_HASHED_LOG] =                                                                         \
                    {.add = 41.48, .add_sorted = 96.7, .bring = 101.5,                                                 \
                     .get = 51.49, .stream = 18.46, .compact = 37.58},                                                 \
                [WB_ORGANISATION_HASH] =                                                                               \
                    {.add = 218.1, .add_sorted = 161, .bring = 203.9,                                                  \
                     .get = 112.7, .stream = 26.37, .compact = 0},                                                     \
            },                                                                                                         \
        .merge = 143.7, .index = 0.5, .lookup = 0, .conflict = 0.1253,                                                 \
    }
