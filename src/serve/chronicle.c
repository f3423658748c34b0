/*
 * chronicle.c - a file of three rings: seconds, minutes, hours.
 *
 *   head     at 0   "WBCHRON1"   8  record bytes (4), levels (4)   16  slots of each level (3 x 4), zero (4)
 *            32 checksum of bytes 0 to 32 (8), zeros up to 4096
 *   records  16 + 8 * 32 bytes: start in seconds (8), milliseconds watched (4), checksum (4), 32 doubles
 *
 * A record is valid if and only if its checksum is right, its start is a multiple of its level's period that belongs in
 * its slot (start / period mod slots), and between 1 and 60 times as many milliseconds were watched as the period has.
 * The place follows from the time, so nothing says where the ring begins: a record that is older or newer than its
 * neighbours is simply one of another round. A second is one write; a minute or an hour is written once it is over, and
 * can be made again from what is below it. So kill -9 costs the second that was being written, and no clock that jumps
 * can do more than leave a gap or replace what it showed before.
 */
#include "serve/chronicle.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/locked.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/nameless.h"
#include "os/path.h"

#include <math.h>
#include <pthread.h>

enum {
    CHRONICLE_MAGIC = 0x57424348,
    HEAD_CHECK_AT = 32,
    RECORDS_AT_ONCE = 64,
    WATCHED_FACTOR = 60, /* a sample can be late: then its second stands for more than one */
    TRY_AGAIN_NS = 1000000000,
};

static const char head_mark[8] = "WBCHRON1";

static const struct {
    int64_t period_s, slots;
} levels[WB_CHRONICLE_LEVELS] = {{1, 3600}, {60, 7 * 24 * 60}, {3600, 1827 * 24}};

struct wb_chronicle {
    uint32_t magic;
    char *dir;
    wb_chronicle_counted counted;
    pthread_mutex_t lock;
    struct wb_file file;
    enum wb_chronicle_role role;
    int64_t tried_ns;                /* when this process last tried to be the writer */
    struct wb_chronicle_record last; /* the second that was written last; watched_ms 0: none */
    bool caught_up;                  /* minutes and hours that a dead writer left were completed */
};

int64_t wb_chronicle_period(enum wb_chronicle_level level)
{
    WB_CHECK(level < WB_CHRONICLE_LEVELS);
    return levels[level].period_s;
}

int64_t wb_chronicle_slots(enum wb_chronicle_level level)
{
    WB_CHECK(level < WB_CHRONICLE_LEVELS);
    return levels[level].slots;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

void wb_chronicle_merge(struct wb_chronicle_record *sum, const struct wb_chronicle_record *next,
                        wb_chronicle_counted counted)
{
    WB_CHECK(sum->watched_ms > 0 && next->watched_ms > 0);
    double before = (double)sum->watched_ms, after = (double)next->watched_ms;

    for (size_t i = 0; i < WB_CHRONICLE_NUMBERS; i++) {
        double a = sum->numbers[i], b = next->numbers[i];
        if (isnan(a) || isnan(b))
            sum->numbers[i] = isnan(a) ? b : a;
        else if (counted >> i & 1)
            sum->numbers[i] = a + b;
        else
            sum->numbers[i] = (a * before + b * after) / (before + after);
    }
    sum->watched_ms += next->watched_ms;
}

static uint32_t checksum(const uint8_t *bytes)
{
    uint8_t copy[WB_CHRONICLE_RECORD_BYTES];

    memcpy(copy, bytes, sizeof copy);
    wb_put32(copy + 12, 0);
    return wb_hash32(copy, sizeof copy);
}

void wb_chronicle_encode(const struct wb_chronicle_record *record, uint8_t bytes_out[WB_CHRONICLE_RECORD_BYTES])
{
    WB_CHECK(record->start_s >= 0);
    WB_CHECK(record->watched_ms > 0 && record->watched_ms <= UINT32_MAX);
    wb_put64(bytes_out, (uint64_t)record->start_s);
    wb_put32(bytes_out + 8, (uint32_t)record->watched_ms);
    for (size_t i = 0; i < WB_CHRONICLE_NUMBERS; i++) {
        uint64_t bits;
        memcpy(&bits, &record->numbers[i], sizeof bits);
        wb_put64(bytes_out + 16 + 8 * i, bits);
    }
    wb_put32(bytes_out + 12, checksum(bytes_out));
}

/* Records that say more are damaged. */
static uint64_t most_watched(enum wb_chronicle_level level)
{
    return (uint64_t)levels[level].period_s * 1000 * WATCHED_FACTOR;
}

static bool is_empty(const uint8_t *bytes)
{
    for (size_t i = 0; i < WB_CHRONICLE_RECORD_BYTES; i++)
        if (bytes[i])
            return false;
    return true;
}

enum wb_chronicle_found wb_chronicle_decode(enum wb_chronicle_level level, int64_t slot,
                                            const uint8_t bytes[WB_CHRONICLE_RECORD_BYTES],
                                            struct wb_chronicle_record *record_out)
{
    WB_CHECK(level < WB_CHRONICLE_LEVELS);
    WB_CHECK(slot >= 0 && slot < levels[level].slots);
    uint64_t start = wb_get64(bytes), period = (uint64_t)levels[level].period_s;
    uint32_t watched = wb_get32(bytes + 8);

    if (start == 0 && watched == 0 && is_empty(bytes))
        return WB_CHRONICLE_NOTHING;
    if (wb_get32(bytes + 12) != checksum(bytes) || start > INT64_MAX || start % period ||
        start / period % (uint64_t)levels[level].slots != (uint64_t)slot || watched == 0 ||
        watched > most_watched(level))
        return WB_CHRONICLE_DAMAGED;
    record_out->start_s = (int64_t)start;
    record_out->watched_ms = watched;
    for (size_t i = 0; i < WB_CHRONICLE_NUMBERS; i++) {
        uint64_t bits = wb_get64(bytes + 16 + 8 * i);
        memcpy(&record_out->numbers[i], &bits, sizeof bits);
    }
    return WB_CHRONICLE_RECORD;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static uint64_t offset_of(enum wb_chronicle_level level, int64_t slot)
{
    int64_t before = 0;

    WB_CHECK(level == WB_CHRONICLE_LEVELS ? slot == 0 : slot >= 0 && slot < levels[level].slots);
    for (unsigned l = 0; l < level; l++)
        before += levels[l].slots;
    return WB_CHRONICLE_HEAD_BYTES + (uint64_t)(before + slot) * WB_CHRONICLE_RECORD_BYTES;
}

static uint64_t file_bytes(void)
{
    return offset_of(WB_CHRONICLE_LEVELS, 0);
}

static int64_t floor_to(int64_t time_s, enum wb_chronicle_level level)
{
    WB_CHECK(time_s >= 0);
    return time_s - time_s % levels[level].period_s;
}

static int64_t slot_of(int64_t start_s, enum wb_chronicle_level level)
{
    WB_CHECK(start_s >= 0 && start_s % levels[level].period_s == 0);
    return start_s / levels[level].period_s % levels[level].slots;
}

static int write_record(struct wb_chronicle *c, enum wb_chronicle_level level, const struct wb_chronicle_record *record)
{
    uint8_t bytes[WB_CHRONICLE_RECORD_BYTES];
    struct wb_chronicle_record limited = *record;

    WB_CHECK(c->role == WB_CHRONICLE_WRITER || c->role == WB_CHRONICLE_MEMORY);
    if (limited.watched_ms > most_watched(level))
        limited.watched_ms = most_watched(level);
    wb_chronicle_encode(&limited, bytes);
    return wb_file_write_at(&c->file, offset_of(level, slot_of(record->start_s, level)), bytes, sizeof bytes);
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static void make_head(uint8_t head[HEAD_CHECK_AT + 8])
{
    memset(head, 0, HEAD_CHECK_AT + 8);
    memcpy(head, head_mark, sizeof head_mark);
    wb_put32(head + 8, WB_CHRONICLE_RECORD_BYTES);
    wb_put32(head + 12, WB_CHRONICLE_LEVELS);
    for (size_t l = 0; l < WB_CHRONICLE_LEVELS; l++)
        wb_put32(head + 16 + 4 * l, (uint32_t)levels[l].slots);
    wb_put64(head + HEAD_CHECK_AT, wb_hash64(head, HEAD_CHECK_AT));
}

/* 1: the head is ours; 0: there is none, or it is damaged. WB_E_NEWER: of another format; it must not be touched. */
static int check_head(const struct wb_file *file)
{
    uint8_t head[HEAD_CHECK_AT + 8], good[HEAD_CHECK_AT + 8];
    size_t got;
    int err = wb_file_read_at(file, 0, head, sizeof head, &got);

    make_head(good);
    if (err < 0 || got < sizeof head)
        return err;
    if (memcmp(head, good, sizeof head) == 0)
        return 1;
    unsigned format = wb_mark_format((const char *)head, head_mark);
    bool sound = wb_get64(head + HEAD_CHECK_AT) == wb_hash64(head, HEAD_CHECK_AT);
    return sound && format > 1 ? wb_fail_format(file->path, format, 1) : 0;
}

/*
 * The head is the same in every file of this version, so one that is missing or damaged is written again: the records
 * have their own checksums.
 */
static int mend_head(const struct wb_file *file)
{
    uint8_t head[HEAD_CHECK_AT + 8];
    uint64_t size;
    int good = check_head(file), err = good < 0 ? good : wb_file_size(file, &size);

    if (err == 0 && size != file_bytes())
        err = wb_file_truncate(file, file_bytes());
    if (err == 0 && good == 0) {
        make_head(head);
        err = wb_file_write_at(file, 0, head, sizeof head);
    }
    return err;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int copy_records(const struct wb_file *from, const struct wb_file *to)
{
    uint8_t bytes[RECORDS_AT_ONCE * WB_CHRONICLE_RECORD_BYTES];
    size_t got = sizeof bytes;
    int err = 0;

    for (uint64_t at = 0; err == 0 && got == sizeof bytes && at < file_bytes(); at += got) {
        err = wb_file_read_at(from, at, bytes, sizeof bytes, &got);
        bool zeros = got == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, got - 1) == 0);
        if (err == 0 && !zeros)
            err = wb_file_write_at(to, at, bytes, got);
    }
    return err;
}

/* Nobody can write the file: what it has is copied, so that what was before is shown, too. */
static int open_memory(struct wb_chronicle *c, const char *path)
{
    struct wb_file file = WB_FILE_INIT, old = WB_FILE_INIT;
    int err = wb_nameless_memory(&file);

    if (err == 0 && wb_file_open(path, WB_FILE_READ, &old) == 0 && check_head(&old) == 1)
        (void)copy_records(&old, &file); /* as far as it can be read */
    if (err == 0)
        err = mend_head(&file);
    wb_file_close(&old);
    if (err < 0) {
        wb_file_close(&file);
        return err;
    }
    wb_file_close(&c->file);
    c->file = file;
    c->role = WB_CHRONICLE_MEMORY;
    return 0;
}

/* Makes this process the writer. WB_E_BUSY: another one is. */
static int open_writer(struct wb_chronicle *c, const char *path)
{
    struct wb_file file = WB_FILE_INIT;
    char *folder = wb_path_join(c->dir, "control");
    int err = folder ? 0 : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(folder) == WB_PATH_NONE)
        err = wb_path_mkdirs(folder);
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file);
    if (err == 0)
        err = wb_file_lock(&file, false);
    if (err == 0)
        err = mend_head(&file);
    wb_free(folder);
    if (err < 0) {
        wb_file_close(&file);
        return err;
    }
    wb_file_close(&c->file);
    c->file = file;
    c->role = WB_CHRONICLE_WRITER;
    c->caught_up = false;
    return 0;
}

static int open_reader(struct wb_chronicle *c, const char *path)
{
    struct wb_file file = WB_FILE_INIT;
    int err = wb_file_open(path, WB_FILE_READ, &file);

    if (err == 0 && check_head(&file) < 0) /* one that is just being made has no head yet */
        err = WB_E_NEWER;
    if (err < 0) {
        wb_file_close(&file);
        return err;
    }
    wb_file_close(&c->file);
    c->file = file;
    c->role = WB_CHRONICLE_READER;
    return 0;
}

/*
 * Finds out which role this process can have now. A process that has the records in memory stays with them, unless the
 * file can be written after all: then what was seen meanwhile is lost.
 */
static int choose_role(struct wb_chronicle *c)
{
    WB_CHECK(c->role != WB_CHRONICLE_WRITER);
    char *path = wb_path_join(c->dir, WB_CHRONICLE_FILE);
    int err = path ? open_writer(c, path) : WB_E_NOMEM;

    c->tried_ns = wb_clock_mono_ns();
    if (err == WB_E_BUSY && c->role != WB_CHRONICLE_READER)
        err = open_reader(c, path);
    if (err < 0 && err != WB_E_BUSY && c->role != WB_CHRONICLE_MEMORY)
        err = path ? open_memory(c, path) : err;
    else if (err < 0)
        err = 0; /* as before */
    wb_free(path);
    return err;
}

int wb_chronicle_open(const char *dir, wb_chronicle_counted counted, struct wb_chronicle **chronicle_out)
{
    struct wb_chronicle *c = wb_alloc_zero(1, sizeof *c);

    *chronicle_out = NULL;
    if (!c)
        return WB_E_NOMEM;
    c->magic = CHRONICLE_MAGIC;
    c->file = WB_FILE_INIT;
    c->counted = counted;
    pthread_mutex_init(&c->lock, NULL);
    c->dir = wb_strdup(dir);
    int err = c->dir ? choose_role(c) : WB_E_NOMEM;
    if (err < 0)
        wb_chronicle_close(c);
    else
        *chronicle_out = c;
    return err;
}

void wb_chronicle_close(struct wb_chronicle *c)
{
    if (!c)
        return;
    WB_CHECK(c->magic == CHRONICLE_MAGIC);
    wb_file_close(&c->file);
    pthread_mutex_destroy(&c->lock);
    wb_free(c->dir);
    c->magic = 0;
    wb_free(c);
}

enum wb_chronicle_role wb_chronicle_role(struct wb_chronicle *c)
{
    WB_CHECK(c->magic == CHRONICLE_MAGIC);
    pthread_mutex_lock(&c->lock);
    enum wb_chronicle_role role = c->role;
    pthread_mutex_unlock(&c->lock);
    return role;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Records of one level, in the order of time. *end_out: where the last one ends; unchanged if there is none. */
static int walk_level(struct wb_chronicle *c, enum wb_chronicle_level level, int64_t from_s, int64_t to_s,
                      int64_t *end_out, wb_chronicle_each each, void *context)
{
    int64_t period = levels[level].period_s, slots = levels[level].slots;
    int64_t first = (from_s + period - 1) / period, end = (to_s + period - 1) / period;
    uint8_t bytes[RECORDS_AT_ONCE * WB_CHRONICLE_RECORD_BYTES];
    struct wb_chronicle_record record;
    int err = 0;

    WB_CHECK(level < WB_CHRONICLE_LEVELS);
    WB_CHECK(from_s >= 0);
    first = first < end - slots ? end - slots : first;
    while (err == 0 && first < end) {
        int64_t slot = first % slots, count = slots - slot < end - first ? slots - slot : end - first;
        size_t got;
        count = count < RECORDS_AT_ONCE ? count : RECORDS_AT_ONCE;
        err = wb_file_read_at(&c->file, offset_of(level, slot), bytes, (size_t)count * WB_CHRONICLE_RECORD_BYTES, &got);
        for (int64_t i = 0; err == 0 && i < (int64_t)(got / WB_CHRONICLE_RECORD_BYTES); i++) {
            if (wb_chronicle_decode(level, slot + i, bytes + i * WB_CHRONICLE_RECORD_BYTES, &record) !=
                    WB_CHRONICLE_RECORD ||
                record.start_s != (first + i) * period)
                continue;
            *end_out = record.start_s + period;
            err = each(context, &record);
        }
        first += count;
    }
    return err;
}

static int walk(struct wb_chronicle *c, enum wb_chronicle_level level, int64_t from_s, int64_t to_s,
                wb_chronicle_each each, void *context)
{
    int64_t end = from_s;
    int err = 0;

    WB_CHECK(wb_is_locked(&c->lock));
    for (int l = (int)level; l >= 0 && err == 0; l--)
        err = walk_level(c, (enum wb_chronicle_level)l, end, to_s, &end, each, context);
    return err;
}

int wb_chronicle_read(struct wb_chronicle *c, enum wb_chronicle_level level, int64_t from_s, int64_t to_s,
                      wb_chronicle_each each, void *context)
{
    int64_t now_s = wb_clock_wall_ms() / 1000;

    WB_CHECK(c->magic == CHRONICLE_MAGIC);
    WB_CHECK(level < WB_CHRONICLE_LEVELS);
    from_s = from_s < 0 ? 0 : from_s;
    to_s = to_s < now_s + 1 ? to_s : now_s + 1; /* otherwise the rings would seem to reach back less far */
    pthread_mutex_lock(&c->lock);
    int err = walk(c, level, from_s, to_s, each, context);
    pthread_mutex_unlock(&c->lock);
    return err;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct chronicle_sum {
    struct wb_chronicle_record record;
    wb_chronicle_counted counted;
};

static int add_to_sum(void *context, const struct wb_chronicle_record *record)
{
    struct chronicle_sum *sum = context;

    if (sum->record.watched_ms == 0) {
        int64_t start = sum->record.start_s;
        sum->record = *record;
        sum->record.start_s = start;
    } else {
        wb_chronicle_merge(&sum->record, record, sum->counted);
    }
    return 0;
}

/* Makes the record of a period that is over from the level below, if it has any. */
static int complete(struct wb_chronicle *c, enum wb_chronicle_level level, int64_t start_s)
{
    WB_CHECK(level > WB_CHRONICLE_SECONDS);
    WB_CHECK(start_s % levels[level].period_s == 0);
    struct chronicle_sum sum = {.record = {.start_s = start_s}, .counted = c->counted};
    int64_t period = levels[level].period_s, end;
    int err = walk_level(c, level - 1, start_s, start_s + period, &end, add_to_sum, &sum);

    return err < 0 || sum.record.watched_ms == 0 ? err : write_record(c, level, &sum.record);
}

/* Calls visit() for every slot of a level, in the order of the file. */
static int each_slot(const struct wb_file *file, enum wb_chronicle_level level,
                     int (*visit)(void *context, int64_t slot, enum wb_chronicle_found found,
                                  const struct wb_chronicle_record *record),
                     void *context)
{
    uint8_t bytes[RECORDS_AT_ONCE * WB_CHRONICLE_RECORD_BYTES];
    struct wb_chronicle_record record;
    int64_t slots = levels[level].slots;
    int err = 0;

    WB_CHECK(level < WB_CHRONICLE_LEVELS);
    for (int64_t slot = 0; err == 0 && slot < slots; slot += RECORDS_AT_ONCE) {
        int64_t count = slots - slot < RECORDS_AT_ONCE ? slots - slot : RECORDS_AT_ONCE;
        err = wb_file_read_exact(file, offset_of(level, slot), bytes, (size_t)count * WB_CHRONICLE_RECORD_BYTES);
        for (int64_t i = 0; err == 0 && i < count; i++)
            err = visit(context, slot + i,
                        wb_chronicle_decode(level, slot + i, bytes + i * WB_CHRONICLE_RECORD_BYTES, &record), &record);
    }
    return err;
}

struct catch_up {
    struct wb_chronicle *c;
    enum wb_chronicle_level level; /* of the records that may be missing */
    int64_t now_s, looked_s;       /* the period that was looked at last; -1: none */
};

static int see_record(void *context, const struct wb_chronicle_record *record)
{
    (void)record;
    *(bool *)context = true;
    return 0;
}

/* A record of the level below: is there one of the period that it belongs to? */
static int complete_missing(void *context, int64_t slot, enum wb_chronicle_found found,
                            const struct wb_chronicle_record *record)
{
    struct catch_up *u = context;
    int64_t period = levels[u->level].period_s, ignored;
    bool seen = false;

    WB_CHECK(u->level > WB_CHRONICLE_SECONDS);
    WB_CHECK(u->looked_s < u->now_s);
    (void)slot;
    if (found != WB_CHRONICLE_RECORD || floor_to(record->start_s, u->level) == u->looked_s ||
        floor_to(record->start_s, u->level) >= floor_to(u->now_s, u->level))
        return 0;
    u->looked_s = floor_to(record->start_s, u->level);
    int err = walk_level(u->c, u->level, u->looked_s, u->looked_s + period, &ignored, see_record, &seen);
    return err < 0 || seen ? err : complete(u->c, u->level, u->looked_s);
}

/* Completes what a writer that died, or a full disk, left out. */
static int catch_up(struct wb_chronicle *c, int64_t now_s)
{
    int err = 0;

    WB_CHECK(wb_is_locked(&c->lock));
    for (enum wb_chronicle_level level = WB_CHRONICLE_MINUTES; level < WB_CHRONICLE_LEVELS && err == 0; level++) {
        struct catch_up u = {.c = c, .level = level, .now_s = now_s, .looked_s = -1};
        err = each_slot(&c->file, level - 1, complete_missing, &u);
    }
    return err;
}

/* The periods in which the last second was are over if the next one is in others, whether the clock goes on or back. */
static int complete_before(struct wb_chronicle *c, int64_t now_s)
{
    int err = 0;

    WB_CHECK(c->last.watched_ms > 0);
    for (enum wb_chronicle_level level = WB_CHRONICLE_MINUTES; level < WB_CHRONICLE_LEVELS && err == 0; level++) {
        int64_t start = floor_to(c->last.start_s, level);
        if (start != floor_to(now_s, level))
            err = complete(c, level, start);
    }
    return err;
}

static int add(struct wb_chronicle *c, const struct wb_chronicle_record *second)
{
    struct wb_chronicle_record record = *second;
    int err = 0;

    WB_CHECK(wb_is_locked(&c->lock));
    WB_CHECK(c->role != WB_CHRONICLE_READER);
    WB_CHECK(second->start_s >= 0);
    if (c->last.watched_ms && c->last.start_s == second->start_s) {
        record = c->last; /* two samples in one second */
        wb_chronicle_merge(&record, second, c->counted);
    } else if (c->last.watched_ms) {
        err = complete_before(c, second->start_s);
    }
    if (!c->caught_up && err == 0)
        err = catch_up(c, second->start_s);
    c->caught_up = err == 0; /* otherwise what is missing is looked for the next time */
    c->last = record;
    int written = write_record(c, WB_CHRONICLE_SECONDS, &record);
    return err < 0 ? err : written;
}

int wb_chronicle_add(struct wb_chronicle *c, const struct wb_chronicle_record *second)
{
    int err = 0;

    WB_CHECK(c->magic == CHRONICLE_MAGIC);
    pthread_mutex_lock(&c->lock);
    if (c->role != WB_CHRONICLE_WRITER && wb_clock_mono_ns() - c->tried_ns >= TRY_AGAIN_NS)
        err = choose_role(c);
    if (err == 0 && c->role != WB_CHRONICLE_READER && second->start_s >= 0)
        err = add(c, second);
    pthread_mutex_unlock(&c->lock);
    return err;
}

/* ---- verify ------------------------------------------------------------------------------------------------------ */

struct chronicle_check {
    const struct wb_file *file;
    enum wb_chronicle_level level;
    void (*found)(void *context, bool problem, const char *file, uint64_t offset, const char *message);
    void *context;
};

/* A record that is being written may look damaged, so it is read once more. */
static int check_slot(void *context, int64_t slot, enum wb_chronicle_found found,
                      const struct wb_chronicle_record *record)
{
    const struct chronicle_check *check = context;
    uint8_t bytes[WB_CHRONICLE_RECORD_BYTES];
    struct wb_chronicle_record again;
    uint64_t at = offset_of(check->level, slot);

    (void)record;
    if (found != WB_CHRONICLE_DAMAGED)
        return 0;
    int err = wb_file_read_exact(check->file, at, bytes, sizeof bytes);
    if (err == 0 && wb_chronicle_decode(check->level, slot, bytes, &again) == WB_CHRONICLE_DAMAGED)
        check->found(check->context, true, WB_CHRONICLE_FILE, at,
                     "a record of the dashboard's history is damaged, and is left out");
    return err;
}

static int check_records(struct chronicle_check *check)
{
    int err = 0;

    for (check->level = 0; check->level < WB_CHRONICLE_LEVELS && err == 0; check->level++)
        err = each_slot(check->file, check->level, check_slot, check);
    return err;
}

/* A file that its writer has begun, but was killed before it had a head or its size, is sound: it has nothing yet. */
static bool is_begun(const struct wb_file *file)
{
    uint8_t head[HEAD_CHECK_AT + 8] = {0}, zeros[HEAD_CHECK_AT + 8] = {0};
    size_t got;

    return wb_file_read_at(file, 0, head, sizeof head, &got) == 0 && memcmp(head, zeros, sizeof head) == 0;
}

static int check_file(const struct wb_file *file, struct chronicle_check *check)
{
    int good = check_head(file);
    uint64_t size;

    if (good == WB_E_NEWER) {
        check->found(check->context, false, WB_CHRONICLE_FILE, 0, wb_error_message());
        return 0;
    }
    int err = good < 0 ? good : wb_file_size(file, &size);
    if (err == 0 && good == 0 && !is_begun(file))
        check->found(check->context, true, WB_CHRONICLE_FILE, 0,
                     "the head is damaged; the next server writes it again");
    else if (err == 0 && good == 1 && size != file_bytes())
        check->found(check->context, true, WB_CHRONICLE_FILE, size, "the size is wrong; the next server mends it");
    else if (err == 0 && good == 1)
        err = check_records(check);
    return err;
}

int wb_chronicle_verify(const char *dir,
                        void (*found)(void *context, bool problem, const char *file, uint64_t offset,
                                      const char *message),
                        void *context)
{
    struct wb_file file = WB_FILE_INIT;
    struct chronicle_check check = {.file = &file, .found = found, .context = context};
    char *path = wb_path_join(dir, WB_CHRONICLE_FILE);
    int err = path ? wb_file_open(path, WB_FILE_READ, &file) : WB_E_NOMEM;

    if (err == 0)
        err = check_file(&file, &check);
    wb_file_close(&file);
    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err;
}
