/*
 * cyclestate.c - the current step of the current cycle, so that after kill -9 the next run continues with it.
 *
 * The file is replaced as a whole at the start of every step and from time to time during it. This code never decides
 * what comes next.
 */
#include "cycle/cyclestate.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/statefile.h"
#include "os/bytelock.h"
#include "os/clock.h"
#include "os/path.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#define FILE_NAME "cycle"
#define LOCK_NAME "cycle.lock"
#define TITLE "cycle"

/*
 * The crawlers of a run inherit its lock. If the run is killed, they hold it until they have noticed that and written
 * what they have, which is waited for. The run locks a byte too, for itself alone: that is how others see that it
 * lives.
 */
#define RUN_BYTE 0
#define RUN_PATIENCE_NS 3000000000ll        /* for a run that may be about to end */
#define CRAWLERS_PATIENCE_NS 600000000000ll /* nobody is at work: this only ends what hangs */
#define LOCK_LOOK_NS 20000000l

static const char *const step_words[] = {
    [WB_CYCLE_REST] = "rest",       [WB_CYCLE_GENERATE] = "generate", [WB_CYCLE_CRAWL] = "crawl",
    [WB_CYCLE_UPDATE] = "update",   [WB_CYCLE_EXPUNGE] = "expunge",   [WB_CYCLE_INDEX] = "index",
    [WB_CYCLE_COMPACT] = "compact",
};

_Static_assert(sizeof step_words / sizeof *step_words == WB_CYCLE_COMPACT + 1, "each step has a word");

const char *wb_cycle_step_word(enum wb_cycle_step step)
{
    WB_CHECK((size_t)step < sizeof step_words / sizeof *step_words);
    return step_words[step];
}

/* ---- lines ---------------------------------------------------------------------------------------- */

enum field_kind { FIELD_TIME, FIELD_I64, FIELD_U64 };

static const struct field {
    const char *name;
    size_t at;
    enum field_kind kind;
} fields[] = {
#define FIELD(name, member, kind) {name, offsetof(struct wb_cycle_status, member), kind}
    FIELD("cycle", cycle, FIELD_U64),
    FIELD("began", began_ms, FIELD_TIME),
    FIELD("since", step_ms, FIELD_TIME),
    FIELD("next", next_ms, FIELD_TIME),
    FIELD("run", run, FIELD_I64),
    FIELD("budget", budget, FIELD_U64),
    FIELD("listed", listed, FIELD_U64),
    FIELD("fetched", fetched, FIELD_U64),
    FIELD("stored", stored, FIELD_U64),
    FIELD("unchanged", unchanged, FIELD_U64),
    FIELD("gone", gone, FIELD_U64),
    FIELD("errors", errors, FIELD_U64),
    FIELD("expunged", expunged, FIELD_U64),
    FIELD("evicted", evicted, FIELD_U64),
    FIELD("capacity-pages", capacity.pages, FIELD_U64),
    FIELD("capacity-bytes", capacity.bytes, FIELD_U64),
#undef FIELD
};

static bool read_field(const struct field *field, struct wb_slice value, struct wb_cycle_status *status)
{
    void *at = (char *)status + field->at;

    if (field->kind == FIELD_U64)
        return wb_slice_to_u64(value, at);
    if (field->kind == FIELD_TIME && !wb_slice_equal(value, WB_SLICE_LIT("never")))
        return wb_date_parse(value, at);
    return field->kind == FIELD_TIME || wb_statefile_i64(value, at);
}

static bool read_step(struct wb_slice value, enum wb_cycle_step *step_out)
{
    for (size_t i = 0; i < sizeof step_words / sizeof *step_words; i++)
        if (wb_slice_equal(value, wb_slice_str(step_words[i]))) {
            *step_out = (enum wb_cycle_step)i;
            return true;
        }
    return false;
}

/* Ignores unknown lines: a later version wrote them. */
static bool read_line(struct wb_slice name, struct wb_slice value, struct wb_cyclestate *state)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (wb_slice_equal(name, wb_slice_str(fields[i].name)))
            return read_field(&fields[i], value, &state->status);
    if (wb_slice_equal(name, WB_SLICE_LIT("step")))
        return read_step(value, &state->status.step);
    if (wb_slice_equal(name, WB_SLICE_LIT("seeded")))
        return wb_slice_to_u64(value, &state->seeded);
    if (wb_slice_equal(name, WB_SLICE_LIT("theta")))
        return wb_slice_to_double(value, &state->status.theta);
    if (wb_slice_equal(name, WB_SLICE_LIT("error")))
        snprintf(state->status.last_error, sizeof state->status.last_error, "%.*s", WB_SLICE_ARG(value));
    return true;
}

int wb_cyclestate_read(const char *dir, struct wb_cyclestate *state_out)
{
    char *path = wb_path_join(dir, FILE_NAME);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice lines, name, value;

    *state_out = (struct wb_cyclestate){.seeded = 0};
    int err = path ? wb_statefile_read(path, TITLE, &mem, &lines) : WB_E_NOMEM;
    while (err == 0 && wb_statefile_line(&lines, &name, &value))
        if (!read_line(name, value, state_out))
            err = wb_fail(WB_E_CORRUPT, "%s is damaged: '%.*s' cannot be '%.*s'", path, WB_SLICE_ARG(name),
                          WB_SLICE_ARG(value));
    wb_buf_release(&mem);
    wb_free(path);
    return err;
}

static int add_field(const struct field *field, const struct wb_cycle_status *status, struct wb_buf *lines)
{
    const void *at = (const char *)status + field->at;
    char text[WB_DATE_TEXT_MAX];

    if (field->kind == FIELD_U64)
        snprintf(text, sizeof text, "%" PRIu64, *(const uint64_t *)at);
    else if (field->kind == FIELD_I64)
        snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)at);
    else if (*(const int64_t *)at)
        wb_date_format(*(const int64_t *)at, text);
    else
        snprintf(text, sizeof text, "never");
    return wb_buf_printf(lines, "%s %s\n", field->name, text);
}

/* Writes a message as one line, whatever it contains. */
static int add_error(const char *message, struct wb_buf *lines)
{
    int err = wb_buf_append_str(lines, "error ");

    for (; err == 0 && *message; message++)
        err = wb_buf_append_char(lines, (unsigned char)*message < ' ' ? '?' : *message);
    return err < 0 ? err : wb_buf_append_char(lines, '\n');
}

int wb_cyclestate_write(const char *dir, const struct wb_cyclestate *state)
{
    const struct wb_cycle_status *status = &state->status;
    char *path = wb_path_join(dir, FILE_NAME);
    struct wb_buf lines = WB_BUF_INIT;
    int err = path ? wb_buf_printf(&lines, "step %s\n", wb_cycle_step_word(status->step)) : WB_E_NOMEM;

    for (size_t i = 0; err == 0 && i < sizeof fields / sizeof *fields; i++)
        err = add_field(&fields[i], status, &lines);
    if (err == 0)
        err = wb_buf_printf(&lines, "seeded %" PRIu64 "\ntheta %.17g\n", state->seeded, status->theta);
    if (err == 0 && status->last_error[0])
        err = add_error(status->last_error, &lines);
    if (err == 0)
        err = wb_statefile_write(path, TITLE, wb_buf_slice(&lines));
    wb_buf_release(&lines);
    wb_free(path);
    return err;
}

/* ---- the lock --------------------------------------------------------------------------------------- */

static int open_lock(const char *dir, unsigned flags, struct wb_file *lock_out)
{
    char *path = wb_path_join(dir, LOCK_NAME);

    *lock_out = WB_FILE_INIT;
    if (!path)
        return WB_E_NOMEM;
    int err = wb_file_open(path, flags, lock_out);
    wb_free(path);
    return err;
}

static int wait_for_lock(const struct wb_file *lock)
{
    WB_CHECK(lock->fd >= 0);
    int64_t began = wb_clock_mono_ns();
    uint64_t at;
    int err;

    while ((err = wb_file_lock(lock, false)) == WB_E_BUSY) {
        int lives = wb_bytelock_first(lock, RUN_BYTE, RUN_BYTE + 1, &at);
        if (lives < 0)
            return lives;
        if (wb_clock_mono_ns() - began > (lives ? RUN_PATIENCE_NS : CRAWLERS_PATIENCE_NS))
            break;
        if (wb_stop_requested())
            return wb_fail(WB_E_STOPPED, "stopped while the crawlers of another run ended");
        nanosleep(&(struct timespec){0, LOCK_LOOK_NS}, NULL);
    }
    return err;
}

int wb_cyclestate_lock(const char *dir, struct wb_file *lock_out)
{
    int err = open_lock(dir, WB_FILE_WRITE | WB_FILE_CREATE, lock_out);

    if (err < 0)
        return err;
    err = wait_for_lock(lock_out);
    int got = err == 0 ? wb_bytelock_try_alone(lock_out, RUN_BYTE) : err;
    if (got == 0 || got == WB_E_BUSY)
        got = wb_fail(WB_E_BUSY, "another run is at work in %s", dir);
    if (got < 0)
        wb_file_close(lock_out);
    return got < 0 ? got : 0;
}

bool wb_cyclestate_locked(const char *dir)
{
    struct wb_file lock;
    int err = open_lock(dir, WB_FILE_READ, &lock);

    if (err < 0)
        return false;
    bool locked = wb_file_is_locked(&lock);
    wb_file_close(&lock);
    return locked;
}

int wb_cycle_status(const char *dir, struct wb_cycle_status *status_out)
{
    struct wb_cyclestate state;
    int err = wb_cyclestate_read(dir, &state);

    *status_out = state.status;
    if (err == 0)
        status_out->running = wb_cyclestate_locked(dir);
    return err;
}
