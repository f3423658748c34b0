/*
 * diskmodel.c - a model of the paper's disk: one arm, platters that turn, and a clock that it moves itself. It never
 * waits, and the same requests always take the same time.
 *
 * Byte n is at the angle n / (bytes of a track). A request that does not continue the one before moves the arm and then
 * waits until its first byte comes under the head; so reading a bucket and writing it back costs what is left of the
 * revolution, without a rule for that case.
 */
#include "disk.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <math.h>

/* Fitted by `bench_disk fit`; docs/design/0036-paper-disk.md has the derivation. */
const struct wb_disk_model wb_disk_paper = {
    .bytes = (uint64_t)13 << 29,
    .turn_ms = 60000.0 / 7200,
    .rate = 16490,
    .near_ms = 1.43,
    .far_ms = 17.68,
    .request_ms = 0.5,
    .write_ms = 0.036,
    .leave_ms = 12.76,
};

struct disk_model {
    struct wb_disk_model is;
    double clock_ms;
    double angle;  /* under the head at the end of the last request, in revolutions */
    uint64_t head; /* the byte that comes next under the head */
    bool wrote;    /* the last request was a write */
};

static double track_bytes(const struct disk_model *m)
{
    return m->is.rate * m->is.turn_ms;
}

static double angle_of(const struct disk_model *m, uint64_t offset)
{
    return fmod((double)offset / track_bytes(m), 1.0);
}

/* Within a track the arm stays where it is. */
static double arm_ms(const struct disk_model *m, uint64_t from, uint64_t to)
{
    double distance = fabs((double)to - (double)from);

    if (distance <= track_bytes(m))
        return 0;
    return m->is.near_ms + (m->is.far_ms - m->is.near_ms) * sqrt(distance / (double)m->is.bytes);
}

static void go_to(struct disk_model *m, uint64_t offset)
{
    double ms, angle, turn;

    if (offset == m->head)
        return;
    ms = m->is.request_ms + arm_ms(m, m->head, offset) + (m->wrote ? m->is.leave_ms : 0);
    angle = fmod(m->angle + ms / m->is.turn_ms, 1.0);
    turn = fmod(angle_of(m, offset) - angle + 1.0, 1.0);
    WB_CHECK(turn >= 0 && turn < 1);
    m->clock_ms += ms + turn * m->is.turn_ms;
}

static void transfer(struct disk_model *m, uint64_t offset, uint64_t bytes, bool write)
{
    WB_CHECK(offset + bytes <= m->is.bytes);
    go_to(m, offset);
    m->clock_ms += (double)bytes / m->is.rate + (write ? m->is.write_ms : 0);
    m->head = offset + bytes;
    m->angle = angle_of(m, m->head);
    m->wrote = write;
}

static int model_read(void *state, uint64_t offset, uint64_t bytes)
{
    transfer(state, offset, bytes, false);
    return 0;
}

static int model_write(void *state, uint64_t offset, uint64_t bytes)
{
    transfer(state, offset, bytes, true);
    return 0;
}

static int model_sync(void *state)
{
    (void)state;
    return 0;
}

static double model_now(void *state)
{
    return ((struct disk_model *)state)->clock_ms;
}

int wb_disk_model_init(const struct wb_disk_model *model, struct wb_disk *disk_out)
{
    struct disk_model *m;

    *disk_out = (struct wb_disk){.state = NULL};
    WB_CHECK(model->bytes > 0 && model->turn_ms > 0 && model->rate > 0);
    m = wb_alloc(sizeof *m);
    if (!m)
        return WB_E_NOMEM;
    *m = (struct disk_model){.is = *model};
    *disk_out = (struct wb_disk){m, model_read, model_write, model_sync, model_now, wb_free};
    return 0;
}
