/*
 * disksteps.c - the operations of each organisation as sequences of seeks, reads and writes, carried out on a disk; and
 * what Tables 3 and 4 of the paper make of the times. It never touches a file: the disk does.
 */
#include "disk.h"
#include "base/check.h"
#include "sim/chance.h"

#include <math.h>

#define KB ((uint64_t)1024)
#define MB (1024 * KB)
#define GB (1024 * MB)
#define SEED 20001
/* Section 3.2.2: "the size of the catalog is typically only about 1% of the size of the log". */
#define CATALOG_SHARE 0.01

const struct wb_disk_sizes wb_disk_sizes_paper = {
    .disk = 6 * GB + GB / 2,
    .bucket = 64 * KB,
    .node = 8 * KB,
    .memory = 16 * MB,
    .page = 2591 /* 2.53 KB */,
    .buffer = 64 * KB,
    .use = 0.6,
    .ratio = 0.25,
};

struct wb_disk_sizes wb_disk_sizes_for(uint64_t disk_bytes)
{
    struct wb_disk_sizes sizes = wb_disk_sizes_paper;

    WB_CHECK(disk_bytes > 0);
    sizes.memory = (uint64_t)((double)sizes.memory * sqrt((double)disk_bytes / (double)sizes.disk));
    sizes.disk = disk_bytes;
    return sizes;
}

/* ---- sequences ----------------------------------------------------------------------------------- */

#define SEEK(extent, course)                                                                                           \
    {                                                                                                                  \
        WB_DISK_SEEK, WB_DISK_##extent, WB_DISK_##course                                                               \
    }
#define READ(extent)                                                                                                   \
    {                                                                                                                  \
        WB_DISK_READ, WB_DISK_##extent, WB_DISK_AHEAD                                                                  \
    }
#define WRITE(extent)                                                                                                  \
    {                                                                                                                  \
        WB_DISK_WRITE, WB_DISK_##extent, WB_DISK_AHEAD                                                                 \
    }

/*
 * Table S-3-8 does not say whether its seek is fixed or variable. Logs end at different places, so it is variable here.
 */
const struct wb_disk_sequence wb_disk_sequences[WB_DISK_SEQUENCES] = {
    {"random read", "hash", "page", 19.8, false, 2, {SEEK(HALF, VARIABLE), READ(BUCKET)}},
    {"random read",
     "log",
     "page",
     28.2,
     false,
     4,
     {SEEK(HALF, VARIABLE), READ(NODE), SEEK(HALF, VARIABLE), READ(PAGE)}},
    {"streaming", "log", "page", 0.159, true, 1, {READ(BUFFER)}},
    {"streaming", "hash", "bucket", 3.87, false, 1, {READ(BUCKET)}},
    {"addition, random order",
     "hash",
     "page",
     42.9,
     false,
     4,
     {SEEK(HALF, VARIABLE), READ(BUCKET), SEEK(BUCKET, BACK), WRITE(BUCKET)}},
    {"addition, random order, buffered",
     "hash",
     "page",
     28.9,
     false,
     4,
     {SEEK(SWEEP, VARIABLE), READ(BUCKET), SEEK(BUCKET, BACK), WRITE(BUCKET)}},
    {"addition, sorted order", "hash", "bucket", 11.8, false, 3, {READ(BUCKET), SEEK(BUCKET, BACK), WRITE(BUCKET)}},
    {"addition, random order, buffered", "hashed-log", "log", 23.71, false, 2, {SEEK(LOG, VARIABLE), WRITE(SHARE)}},
    {"addition", "log", "page", 0.164, true, 1, {WRITE(BUFFER)}},
    {"addition, random order", "hashed-log", "page", 0, false, 2, {SEEK(HALF, VARIABLE), WRITE(PAGE)}},
    {"addition, sorted order", "hashed-log", "log", 0, false, 2, {SEEK(LOG, VARIABLE), WRITE(LOG)}},
    {"a stream and an addition in turn",
     "log",
     "turn",
     0,
     false,
     4,
     {SEEK(HALF, VARIABLE), READ(BUFFER), SEEK(HALF, VARIABLE), WRITE(BUFFER)}},
};

uint64_t wb_disk_extent_bytes(const struct wb_disk_sizes *sizes, enum wb_disk_extent extent)
{
    double disk = (double)sizes->disk, memory = (double)sizes->memory;
    double bytes = 0;

    WB_CHECK(sizes->disk > 0 && sizes->memory > 0);
    switch (extent) {
    case WB_DISK_HALF:
        bytes = disk / 2;
        break;
    case WB_DISK_BUCKET:
        bytes = (double)sizes->bucket;
        break;
    case WB_DISK_NODE:
        bytes = (double)sizes->node;
        break;
    case WB_DISK_PAGE:
        bytes = (double)sizes->page;
        break;
    case WB_DISK_BUFFER:
        bytes = (double)sizes->buffer;
        break;
    case WB_DISK_SWEEP:
        bytes = disk * (double)sizes->page / memory;
        break;
    case WB_DISK_LOG:
        bytes = memory;
        break;
    case WB_DISK_SHARE:
        bytes = memory * memory / disk;
        break;
    }
    return bytes < 1 ? 1 : (uint64_t)bytes;
}

/* ---- running ----------------------------------------------------------------------------------- */

struct disk_run {
    struct wb_disk *disk;
    const struct wb_disk_sizes *sizes;
    struct wb_chance_dice dice;
    uint64_t position;
};

/* Positions wrap around at the end of the disk, as the paper's simulator must have done: it runs for minutes. */
static uint64_t seek_from(struct disk_run *run, const struct wb_disk_step *step)
{
    uint64_t distance = wb_disk_extent_bytes(run->sizes, step->extent), disk = run->sizes->disk;

    if (step->course == WB_DISK_VARIABLE)
        distance = (uint64_t)(wb_chance_dice_unit(&run->dice) * 2.0 * (double)distance);
    distance %= disk;
    if (step->course == WB_DISK_BACK)
        return run->position >= distance ? run->position - distance : 0;
    return (run->position + distance) % disk;
}

static int take_step(struct disk_run *run, const struct wb_disk_step *step)
{
    uint64_t bytes = wb_disk_extent_bytes(run->sizes, step->extent);
    int err;

    if (step->op == WB_DISK_SEEK) {
        run->position = seek_from(run, step);
        return 0;
    }
    WB_CHECK(bytes <= run->sizes->disk);
    if (run->position + bytes > run->sizes->disk)
        run->position = 0;
    err = step->op == WB_DISK_READ ? run->disk->read(run->disk->state, run->position, bytes)
                                   : run->disk->write(run->disk->state, run->position, bytes);
    run->position += bytes;
    return err;
}

int wb_disk_run(struct wb_disk *disk, const struct wb_disk_sizes *sizes, const struct wb_disk_sequence *sequence,
                struct wb_disk_budget budget, double *ms_out)
{
    struct disk_run run = {.disk = disk, .sizes = sizes, .dice = {SEED}};
    double start = disk->now_ms(disk->state), spent = 0;
    uint64_t rounds = 0;
    int err = 0;

    *ms_out = 0;
    WB_CHECK(sequence->count > 0 && sequence->count <= WB_DISK_STEPS_MAX);
    WB_CHECK(budget.times > 0 || budget.ms > 0);
    while (err == 0 && (budget.times == 0 || rounds < budget.times) && (budget.ms <= 0 || spent < budget.ms)) {
        for (size_t i = 0; err == 0 && i < sequence->count; i++)
            err = take_step(&run, &sequence->steps[i]);
        rounds++;
        spent = disk->now_ms(disk->state) - start;
    }
    if (err == 0)
        err = disk->sync(disk->state);
    if (err < 0)
        return err;
    spent = disk->now_ms(disk->state) - start;
    *ms_out = spent / (double)rounds;
    if (sequence->per_page)
        *ms_out *= (double)sizes->page / (double)sizes->buffer;
    return 0;
}

void wb_disk_release(struct wb_disk *disk)
{
    if (disk->free)
        disk->free(disk->state);
    *disk = (struct wb_disk){.state = NULL};
}

/* ---- Tables 3 and 4 ------------------------------------------------------------------------------- */

static double per_second(double ms)
{
    return ms > 0 ? 1000 / ms : 0;
}

/* Table S-5. The columns of hash and log are the paper's; that of hashed-log follows the same rules. */
struct wb_disk_rates wb_disk_rates(const double ms[WB_DISK_SEQUENCES], const struct wb_disk_sizes *sizes,
                                   enum wb_disk_organisation organisation)
{
    const double *r = ms - 1; /* R(1) is r[1], as in the paper */
    double in_bucket = (double)sizes->bucket * sizes->use / (double)sizes->page;
    double in_share = (double)wb_disk_extent_bytes(sizes, WB_DISK_SHARE) / (double)sizes->page;
    double in_log = (double)sizes->memory / (double)sizes->page;

    switch (organisation) {
    case WB_DISK_ORG_HASH:
        return (struct wb_disk_rates){
            .stream = per_second(r[4]) * in_bucket,
            .get = per_second(r[1]),
            .add = per_second(r[5]),
            .add_buffered = per_second(r[6]),
            .add_sorted = per_second(r[7]) * in_bucket,
            .space = sizes->use,
        };
    case WB_DISK_ORG_HASHED_LOG:
        return (struct wb_disk_rates){
            .stream = per_second(r[3]),
            .get = per_second(r[2]),
            .add = per_second(r[10]),
            .add_buffered = per_second(r[8]) * in_share,
            .add_sorted = per_second(r[11]) * in_log,
            .space = 1 - CATALOG_SHARE,
        };
    default:
        WB_CHECK(organisation == WB_DISK_ORG_LOG);
        return (struct wb_disk_rates){
            .stream = per_second(r[3]),
            .get = per_second(r[2]),
            .add = per_second(r[9]),
            .add_buffered = per_second(r[9]),
            .add_sorted = per_second(r[9]),
            .space = 1 - CATALOG_SHARE,
        };
    }
}

/* Table S-6. A log cannot deliver its pages in the order of ids, so the read nodes add them in random order. */
struct wb_disk_batch wb_disk_batch(const double ms[WB_DISK_SEQUENCES], const struct wb_disk_sizes *sizes,
                                   enum wb_disk_organisation update)
{
    const double *r = ms - 1;
    double buckets = (double)sizes->disk / (double)sizes->bucket;
    double new_pages = (double)sizes->disk * sizes->use * sizes->ratio / (double)sizes->page;
    double sorted_s = buckets * r[7] / 1000;

    if (update == WB_DISK_ORG_LOG)
        return (struct wb_disk_batch){.add = per_second(r[9]), .update_s = new_pages * r[6] / 1000};
    return (struct wb_disk_batch){.add = wb_disk_rates(ms, sizes, update).add_buffered, .update_s = sorted_s};
}
