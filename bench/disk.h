/*
 * disk.h - the simulator of the paper (section 4.5): how long the operations of each organisation take on a disk.
 *
 * An operation, such as "random read in a hash bucket", is a sequence of elementary operations: seek, read, write
 * (Table S-1). The sequences are data (disksteps.c); a disk carries them out, and its clock says how long that took.
 * There are two disks: a model of the paper's disk (diskmodel.c), and real files (diskfiles.c).
 *
 *   struct wb_disk disk;
 *   wb_disk_model_init(&wb_disk_paper, &disk);
 *   wb_disk_run(&disk, &wb_disk_sizes_paper, &wb_disk_sequences[0], (struct wb_disk_budget){.times = 4000}, &ms);
 *   wb_disk_release(&disk);                  // ms is now R(1) of Table S-4
 *
 * docs/design/0036-paper-disk.md explains the model, and where its constants come from.
 */
#ifndef WB_BENCH_DISK_H
#define WB_BENCH_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- sizes (Table S-2) --------------------------------------------------------------------------- */

/* Bytes unless the name says otherwise. The letter is the paper's. */
struct wb_disk_sizes {
    uint64_t disk;   /* S: all of the disk */
    uint64_t bucket; /* B: a hash bucket */
    uint64_t node;   /* T: a node of the B-tree */
    uint64_t memory; /* M: the buffer, and a log of a hashed-log */
    uint64_t page;   /* p: a page, on average */
    uint64_t buffer; /* b: one read or write of a stream */
    double use;      /* u: which part of a bucket is full */
    double ratio;    /* r: which part of the pages an update replaces */
};

/* Those of the paper, except that S is 6.5 GB: its Table 4 follows from that, and not from the 6 GB of Table S-2. */
extern const struct wb_disk_sizes wb_disk_sizes_paper;

/* The same on a disk of another size. M changes with the root of it, so that M*M/S, the write of row 8, stays. */
struct wb_disk_sizes wb_disk_sizes_for(uint64_t disk_bytes);

/* ---- sequences (Tables S-3-1 to S-3-9) -------------------------------------------------------------- */

enum wb_disk_op { WB_DISK_SEEK, WB_DISK_READ, WB_DISK_WRITE };

/* The parameter of a step. */
enum wb_disk_extent {
    WB_DISK_HALF,   /* S/2 */
    WB_DISK_BUCKET, /* B */
    WB_DISK_NODE,   /* T */
    WB_DISK_PAGE,   /* p */
    WB_DISK_BUFFER, /* b */
    WB_DISK_SWEEP,  /* Sp/M: between two buckets that the elevator visits */
    WB_DISK_LOG,    /* M */
    WB_DISK_SHARE,  /* M*M/S: what the buffer holds for one log */
};

/* Where a seek leads. "Variable" in the paper: the distance is evenly distributed around its average. */
enum wb_disk_course { WB_DISK_VARIABLE, WB_DISK_AHEAD, WB_DISK_BACK };

struct wb_disk_step {
    enum wb_disk_op op;
    enum wb_disk_extent extent;
    enum wb_disk_course course; /* of a seek */
};

#define WB_DISK_STEPS_MAX 4
#define WB_DISK_ROWS 9 /* of Table S-4 */
#define WB_DISK_SEQUENCES 12

struct wb_disk_sequence {
    const char *operation, *organisation;
    const char *unit; /* what the time of Table S-4 is per: page, bucket or log */
    double paper_ms;  /* Table S-4; 0 in rows that the paper does not have */
    bool per_page;    /* one round moves b bytes, and the time is per page: rows 3 and 9 */
    size_t count;
    struct wb_disk_step steps[WB_DISK_STEPS_MAX];
};

/*
 * The first nine are the paper's. Then: 10, addition to a hashed-log without a buffer; 11, addition to a hashed-log in
 * sorted order; 12, a stream and an addition that take turns on one disk, which is what incremental updates do.
 */
extern const struct wb_disk_sequence wb_disk_sequences[WB_DISK_SEQUENCES];

/* The bytes that an extent stands for, at least 1. */
uint64_t wb_disk_extent_bytes(const struct wb_disk_sizes *sizes, enum wb_disk_extent extent);

/* ---- disks ----------------------------------------------------------------------------------- */

struct wb_disk {
    void *state; /* owned */
    int (*read)(void *state, uint64_t offset, uint64_t bytes);
    int (*write)(void *state, uint64_t offset, uint64_t bytes);
    int (*sync)(void *state);      /* everything written is on the disk */
    double (*now_ms)(void *state); /* the disk's clock */
    void (*free)(void *state);
};

/* A disk with one arm. */
struct wb_disk_model {
    uint64_t bytes;
    double turn_ms;    /* one revolution */
    double rate;       /* bytes per ms under the head */
    double near_ms;    /* moving the arm by one cylinder... */
    double far_ms;     /* ...and across all of them; in between it grows with the root of the distance */
    double request_ms; /* for a request that does not continue the one before: the system, the bus, the controller */
    double write_ms;   /* added to each write */
    double leave_ms;   /* when the next request does not continue a write: until the written bytes are settled */
};

/* The paper's disk, as bench/run paper fits it to Table S-4. */
extern const struct wb_disk_model wb_disk_paper;

/* model is copied. Returns 0 or WB_E_NOMEM. */
int wb_disk_model_init(const struct wb_disk_model *model, struct wb_disk *disk_out);

/*
 * Files of at most 1 GB in dir, `bytes` in total, filled with incompressible bytes; removed by wb_disk_release().
 * *direct_out says whether they bypass the page cache (O_DIRECT); if the file system refuses that, the kernel is told
 * to forget each part after its use, which is the second best. Transfers are rounded to whole blocks of 4 KB.
 */
int wb_disk_files_init(const char *dir, uint64_t bytes, struct wb_disk *disk_out, bool *direct_out);

/* Safe for a disk that is all zero. */
void wb_disk_release(struct wb_disk *disk);

/* ---- running ----------------------------------------------------------------------------------- */

/* A run ends after so many rounds, or after so many milliseconds of the disk's clock; 0: no such limit. */
struct wb_disk_budget {
    uint64_t times;
    double ms;
};

/* The time of one row of Table S-4 in milliseconds. The same seed is used for every run. */
int wb_disk_run(struct wb_disk *disk, const struct wb_disk_sizes *sizes, const struct wb_disk_sequence *sequence,
                struct wb_disk_budget budget, double *ms_out);

/* ---- Tables 3 and 4 (their derivations, S-5 and S-6) ----------------------------------------------- */

enum wb_disk_organisation { WB_DISK_ORG_LOG, WB_DISK_ORG_HASH, WB_DISK_ORG_HASHED_LOG, WB_DISK_ORGS };

/* A column of Table 3: pages per second of one node. */
struct wb_disk_rates {
    double stream; /* in the order that suits the organisation; by id in hash and hashed-log */
    double get;
    double add; /* in random order, without a buffer */
    double add_buffered;
    double add_sorted;
    double space; /* which part of the disk is pages */
};

/* A row of Table 4: a batch design whose read nodes are hash-based. */
struct wb_disk_batch {
    double add;      /* pages per second of one update node */
    double update_s; /* the batch update */
};

/* ms are the times of all sequences, R(1) first. Table 3 has an update ratio of 1, Table 4 that of sizes. */
struct wb_disk_rates wb_disk_rates(const double ms[WB_DISK_SEQUENCES], const struct wb_disk_sizes *sizes,
                                   enum wb_disk_organisation organisation);
struct wb_disk_batch wb_disk_batch(const double ms[WB_DISK_SEQUENCES], const struct wb_disk_sizes *sizes,
                                   enum wb_disk_organisation update);

#endif
