/*
 * bucketstudy.h - which size hash buckets should have for pages of given sizes (the paper's section 4.2, Figures 4, 5).
 *
 * Pages go to buckets by chance, n per bucket on average. A bucket of Z bytes whose pages need more has a chain of
 * overflow buckets, and a page in the k-th bucket of the chain costs k reads. Small buckets have long chains; large
 * ones take long to read and are mostly empty.
 *
 *   wb_bucketstudy_deal(sizes, count, 16, buckets, &study)         who gets which pages: plot D
 *   wb_bucketstudy_reads(&study, 65536)                            plot C
 *   wb_bucketstudy_use(&study, 65536)                              plot F
 *   wb_bucketstudy_best(&study, &cost)                             the lowest point of plot A
 */
#ifndef WB_BENCH_BUCKETSTUDY_H
#define WB_BENCH_BUCKETSTUDY_H

#include <stddef.h>
#include <stdint.h>

struct wb_bucketstudy {
    uint64_t *bytes; /* owned: of the pages in each bucket, S(b) in the paper */
    uint32_t *pages; /* owned: how many there are in each */
    size_t count;    /* buckets */
    uint64_t total_pages, total_bytes;
};

/*
 * Deals count * per_bucket pages to count buckets. Each page has one of the `known` sizes, chosen by chance; the same
 * arguments give the same study. WB_E_INVALID without sizes, pages or buckets.
 */
int wb_bucketstudy_deal(const uint32_t *sizes, size_t known, unsigned per_bucket, size_t count,
                        struct wb_bucketstudy *study_out);
void wb_bucketstudy_release(struct wb_bucketstudy *study);

/* The share of the buckets whose pages have from..to bytes (to excluded): the area under plot D. */
double wb_bucketstudy_share(const struct wb_bucketstudy *study, uint64_t from, uint64_t to);

/* Bucket reads for a random page, on average; at least 1. */
double wb_bucketstudy_reads(const struct wb_bucketstudy *study, uint64_t bucket_bytes);

/* Which part of all buckets, overflow buckets included, is pages. */
double wb_bucketstudy_use(const struct wb_bucketstudy *study, uint64_t bucket_bytes);

/* What it costs to read one bucket: first_ms, and then ms_per_kb. Plot B. */
struct wb_bucketstudy_cost {
    double first_ms, ms_per_kb;
};
double wb_bucketstudy_read_ms(const struct wb_bucketstudy_cost *cost, uint64_t bucket_bytes);

/* The multiple of 4 KB with the lowest reads * read_ms, up to max_bytes. */
uint64_t wb_bucketstudy_best(const struct wb_bucketstudy *study, const struct wb_bucketstudy_cost *cost,
                             uint64_t max_bytes);

/* Sizes of pages from a lognormal distribution with that mean; sigma is that of the logarithm. At least 1 byte each. */
void wb_bucketstudy_lognormal(double mean_bytes, double sigma, uint64_t seed, uint32_t *sizes_out, size_t count);

#endif
