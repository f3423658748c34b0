/* bucketstudy.c - deals pages to hash buckets and counts what a bucket size costs. It touches no file and no clock. */
#include "bucketstudy.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "sim/chance.h"

#include <math.h>

#define STEP_BYTES 4096u
#define SEED 2

int wb_bucketstudy_deal(const uint32_t *sizes, size_t known, unsigned per_bucket, size_t count,
                        struct wb_bucketstudy *study_out)
{
    struct wb_chance_dice dice = {SEED};

    *study_out = (struct wb_bucketstudy){.bytes = NULL};
    if (known == 0 || known > UINT32_MAX || per_bucket == 0 || count == 0 || count > UINT32_MAX)
        return wb_fail(WB_E_INVALID, "a study of buckets needs pages and buckets");
    study_out->bytes = wb_alloc_zero(count, sizeof *study_out->bytes);
    study_out->pages = wb_alloc_zero(count, sizeof *study_out->pages);
    if (!study_out->bytes || !study_out->pages) {
        wb_bucketstudy_release(study_out);
        return WB_E_NOMEM;
    }
    study_out->count = count;
    study_out->total_pages = (uint64_t)count * per_bucket;
    for (uint64_t i = 0; i < study_out->total_pages; i++) {
        uint32_t size = sizes[wb_chance_dice_below(&dice, (uint32_t)known)];
        uint32_t bucket = wb_chance_dice_below(&dice, (uint32_t)count);
        study_out->bytes[bucket] += size;
        study_out->pages[bucket]++;
        study_out->total_bytes += size;
    }
    return 0;
}

void wb_bucketstudy_release(struct wb_bucketstudy *study)
{
    wb_free(study->bytes);
    wb_free(study->pages);
    *study = (struct wb_bucketstudy){.bytes = NULL};
}

double wb_bucketstudy_share(const struct wb_bucketstudy *study, uint64_t from, uint64_t to)
{
    size_t found = 0;

    WB_CHECK(study->count > 0 && from <= to);
    for (size_t i = 0; i < study->count; i++)
        found += study->bytes[i] >= from && study->bytes[i] < to;
    return (double)found / (double)study->count;
}

/*
 * The pages of a bucket with `bytes` bytes fill a chain from its start, so bucket_bytes / bytes of them are in each
 * bucket of the chain but the last. A page that is cut by the end of a bucket counts by its bytes, too.
 */
static double reads_of(uint64_t bytes, uint64_t bucket_bytes)
{
    double whole = (double)(bytes / bucket_bytes), rest = (double)(bytes % bucket_bytes), full = (double)bucket_bytes;

    if (bytes <= bucket_bytes)
        return 1;
    return (full * whole * (whole + 1) / 2 + rest * (whole + 1)) / (double)bytes;
}

double wb_bucketstudy_reads(const struct wb_bucketstudy *study, uint64_t bucket_bytes)
{
    double reads = 0;

    WB_CHECK(study->total_pages > 0 && bucket_bytes > 0);
    for (size_t i = 0; i < study->count; i++)
        reads += study->pages[i] * reads_of(study->bytes[i], bucket_bytes);
    return reads / (double)study->total_pages;
}

double wb_bucketstudy_use(const struct wb_bucketstudy *study, uint64_t bucket_bytes)
{
    double buckets = 0;

    WB_CHECK(study->count > 0 && bucket_bytes > 0);
    for (size_t i = 0; i < study->count; i++) {
        uint64_t chain = (study->bytes[i] + bucket_bytes - 1) / bucket_bytes;
        buckets += (double)(chain ? chain : 1); /* an empty bucket has its place, too */
    }
    return (double)study->total_bytes / (buckets * (double)bucket_bytes);
}

double wb_bucketstudy_read_ms(const struct wb_bucketstudy_cost *cost, uint64_t bucket_bytes)
{
    return cost->first_ms + cost->ms_per_kb * (double)bucket_bytes / 1024;
}

uint64_t wb_bucketstudy_best(const struct wb_bucketstudy *study, const struct wb_bucketstudy_cost *cost,
                             uint64_t max_bytes)
{
    uint64_t best = STEP_BYTES;
    double best_ms = INFINITY;

    for (uint64_t z = STEP_BYTES; z <= max_bytes; z += STEP_BYTES) {
        double ms = wb_bucketstudy_reads(study, z) * wb_bucketstudy_read_ms(cost, z);
        if (ms < best_ms) {
            best_ms = ms;
            best = z;
        }
    }
    return best;
}

/* By Box and Muller: two even numbers give one normal number. */
void wb_bucketstudy_lognormal(double mean_bytes, double sigma, uint64_t seed, uint32_t *sizes_out, size_t count)
{
    struct wb_chance_dice dice = {seed};
    double mu = log(mean_bytes) - sigma * sigma / 2;

    WB_CHECK(mean_bytes > 0 && sigma >= 0);
    for (size_t i = 0; i < count; i++) {
        double a = 1 - wb_chance_dice_unit(&dice), b = wb_chance_dice_unit(&dice);
        double size = exp(mu + sigma * sqrt(-2 * log(a)) * cos(2 * 3.14159265358979323846 * b));
        sizes_out[i] = size < 1 ? 1 : size > (double)UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    }
}
