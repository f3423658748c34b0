/* vaultput.c - puts objects, and deletes them, with several threads (vaultput.h). It does not know what they are for.
 */
#include "vault/vaultput.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/pool.h"

#include <pthread.h>
#include <time.h>

enum {
    THREADS = 12,
    MEMORY_MAX = 96 << 20, /* what they have in memory at once: bytes, and what these were compressed to */
    ROWS_WAITING = 4,      /* tasks with rows that are not done */
    DELETE_THREADS = 8,
    LOOK_MS = 100,
};

/* An object of a shipment that was not finished, by its bytes. */
struct part_entry {
    uint64_t hash;
    const struct wb_vault_part *part; /* NULL: it is in use */
};

struct wb_vault_putter {
    struct wb_vault_putter_options options;
    struct wb_pool *pool;
    struct wb_vault_parts parts; /* of earlier processes */
    WB_MAP(struct part_entry) by_hash;
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t done;
    size_t added, ended, rows; /* tasks; rows: added, but not ended */
    size_t memory;             /* of tasks that are being done */
    uint64_t bytes;
    struct wb_error_copy error; /* the first one; code 0: none */
    struct wb_file log;
    uint64_t log_end;
};

/* What a job gets. */
struct job {
    struct wb_vault_putter *putter;
    struct wb_vault_task *task;
};

/* ---- one task ------------------------------------------------------------------------------------------------ */

/* The bytes of a file behind the room for the head; of rows, they are in the task. */
static int read_bytes(struct wb_vault_putter *putter, const struct wb_vault_task *task, struct wb_buf *bytes)
{
    const struct wb_vault_source *source = task->source;

    wb_buf_clear(bytes);
    if (wb_buf_reserve(bytes, WB_VAULT_OBJECT_HEAD + (size_t)task->len) < 0)
        return WB_E_NOMEM;
    char *p = bytes->ptr + WB_VAULT_OBJECT_HEAD;
    bytes->len = WB_VAULT_OBJECT_HEAD + (size_t)task->len;
    if (source->collected)
        return wb_collected_read(source->collected, task->offset, task->len, p);
    if (source->kind == WB_VAULT_PAGES)
        return wb_store_state_read(putter->options.state, source->name, task->offset, task->len, p);
    memcpy(p, source->bytes.ptr + task->offset, task->len);
    return 0;
}

/* Makes the object. Pages are compressed already. */
static int make_object(struct wb_vault_putter *putter, struct wb_vault_task *task, struct wb_buf *bytes,
                       struct wb_buf *object)
{
    if (!task->source)
        return wb_vault_object_pack(WB_VAULT_BYTES, wb_buf_slice(&task->rows), true, object, &task->object);
    int err = read_bytes(putter, task, bytes);
    if (err < 0)
        return err;
    if (task->source->kind == WB_VAULT_PAGES) {
        wb_vault_object_seal(WB_VAULT_BYTES, bytes, &task->object);
        *object = wb_buf_take(bytes);
        return 0;
    }
    struct wb_slice contents = {bytes->ptr + WB_VAULT_OBJECT_HEAD, bytes->len - WB_VAULT_OBJECT_HEAD};
    return wb_vault_object_pack(WB_VAULT_BYTES, contents, true, object, &task->object);
}

/* Whether an earlier process has put it already; then the task's object gets its name. */
static bool use_part(struct wb_vault_putter *putter, struct wb_vault_task *task)
{
    uint64_t file = wb_hash64(task->name, strlen(task->name));
    struct part_entry *entry = NULL;

    while ((entry = wb_map_next(&putter->by_hash, task->object.hash[1], entry))) {
        const struct wb_vault_part *part = entry->part;
        if (!part)
            continue;
        struct wb_vault_object named = part->object;
        named.run = task->object.run;
        named.count = task->object.count;
        if (part->file == file && part->offset == task->offset && part->len == task->len &&
            wb_vault_object_equal(&named, &task->object)) {
            task->object = part->object;
            return true;
        }
    }
    return false;
}

static bool is_same(const struct wb_vault_task *task)
{
    const struct wb_vault_piece *was = task->was;

    return was && was->run == task->run && was->object.stored == task->object.stored &&
           was->object.hash[0] == task->object.hash[0] && was->object.hash[1] == task->object.hash[1];
}

static int put_object(struct wb_vault_putter *putter, struct wb_vault_task *task, struct wb_slice bytes)
{
    struct wb_vault_part part = {
        .file = wb_hash64(task->name, strlen(task->name)), .offset = task->offset, .len = task->len};
    char name[WB_OBJECT_NAME_MAX];

    pthread_mutex_lock(&putter->mutex);
    task->object.run = putter->options.run;
    task->object.count = ++*putter->options.count;
    pthread_mutex_unlock(&putter->mutex);
    wb_vault_object_name(WB_VAULT_OBJECTS, &task->object, name);
    task->put = true; /* even if it fails: nobody knows how far it came */
    int err = wb_object_put(putter->options.store, name, bytes);
    if (err < 0)
        return err;
    part.object = task->object;
    pthread_mutex_lock(&putter->mutex);
    err = wb_vault_parts_add(&putter->log, &putter->log_end, &part);
    pthread_mutex_unlock(&putter->mutex);
    return err;
}

static int do_task(struct wb_vault_putter *putter, struct wb_vault_task *task)
{
    struct wb_buf bytes = WB_BUF_INIT, object = WB_BUF_INIT;
    int err = make_object(putter, task, &bytes, &object);

    wb_buf_release(&bytes);
    task->same = err == 0 && is_same(task);
    if (err == 0 && !task->same && !use_part(putter, task))
        err = put_object(putter, task, wb_buf_slice(&object));
    wb_buf_release(&object);
    return err;
}

/* The most memory that a task takes. */
static size_t memory_of(const struct wb_vault_task *task)
{
    bool pages = task->source && task->source->kind == WB_VAULT_PAGES;

    return pages ? task->len : 2 * (size_t)task->len;
}

/* Waits until there is room for a task, or it is too late. Called with the mutex. */
static void take_memory(struct wb_vault_putter *putter, size_t bytes)
{
    while (putter->memory > 0 && putter->memory + bytes > MEMORY_MAX && !putter->error.code)
        pthread_cond_wait(&putter->done, &putter->mutex);
    putter->memory += bytes;
}

static void run_job(void *context)
{
    struct job *job = context;
    struct wb_vault_putter *putter = job->putter;
    struct wb_vault_task *task = job->task;

    pthread_mutex_lock(&putter->mutex);
    take_memory(putter, memory_of(task));
    bool failed = putter->error.code != 0;
    pthread_mutex_unlock(&putter->mutex);
    int err = failed ? 0 : do_task(putter, task);
    wb_buf_release(&task->rows);
    pthread_mutex_lock(&putter->mutex);
    if (err < 0 && !putter->error.code)
        wb_error_save(err, &putter->error);
    putter->ended++;
    putter->memory -= memory_of(task);
    putter->rows -= !task->source;
    putter->bytes += task->len;
    pthread_cond_broadcast(&putter->done);
    pthread_mutex_unlock(&putter->mutex);
    wb_free(job);
}

/* ---- the door ------------------------------------------------------------------------------------------------ */

/* An object belongs to one piece: what the manifest has already is not used again. */
static void leave_out_used(struct wb_vault_putter *putter, const struct wb_vault_pieces *pieces)
{
    for (size_t i = 0; putter->parts.count && i < pieces->count; i++) {
        const struct wb_vault_object *object = &pieces->items[i].object;
        struct part_entry *entry = NULL;
        while ((entry = wb_map_next(&putter->by_hash, object->hash[1], entry)))
            if (entry->part && wb_vault_object_equal(&entry->part->object, object))
                entry->part = NULL;
    }
}

int wb_vault_putter_new(const struct wb_vault_putter_options *options, struct wb_vault_putter **putter_out)
{
    struct wb_vault_putter *putter = *putter_out = wb_alloc_zero(1, sizeof *putter);

    if (!putter)
        return WB_E_NOMEM;
    putter->options = *options;
    putter->log = WB_FILE_INIT;
    pthread_mutex_init(&putter->mutex, NULL);
    pthread_cond_init(&putter->done, NULL);
    int err = wb_vault_parts_load(options->memory, &putter->parts);
    for (size_t i = 0; err == 0 && i < putter->parts.count; i++) {
        struct part_entry *entry = wb_map_add(&putter->by_hash, putter->parts.items[i].object.hash[1]);
        if (!entry)
            err = WB_E_NOMEM;
        else
            entry->part = &putter->parts.items[i];
    }
    if (err == 0)
        leave_out_used(putter, &options->manifest->pieces);
    if (err == 0)
        err = wb_vault_parts_open(options->memory, &putter->log, &putter->log_end);
    return err < 0 ? err : wb_pool_new(THREADS, &putter->pool);
}

/* Waits a moment, and shows how far it is. Called and returns with the mutex. */
static void wait_a_moment(struct wb_vault_putter *putter)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&putter->done, &putter->mutex, &until);
    uint64_t bytes = putter->bytes;
    if (!putter->options.progress)
        return;
    pthread_mutex_unlock(&putter->mutex);
    putter->options.progress(putter->options.progress_context, bytes, putter->options.total);
    pthread_mutex_lock(&putter->mutex);
}

int wb_vault_putter_add(struct wb_vault_putter *putter, struct wb_vault_task *task)
{
    struct job *job = wb_alloc(sizeof *job);

    if (!job)
        return WB_E_NOMEM;
    *job = (struct job){putter, task};
    pthread_mutex_lock(&putter->mutex);
    while (!task->source && putter->rows >= ROWS_WAITING)
        wait_a_moment(putter);
    int failed = putter->error.code;
    putter->added += !failed;
    putter->rows += !failed && !task->source;
    pthread_mutex_unlock(&putter->mutex);
    if (failed) {
        wb_free(job);
        return wb_error_restore(&putter->error);
    }
    int err = wb_pool_submit(putter->pool, run_job, job);
    if (err < 0) {
        wb_free(job);
        pthread_mutex_lock(&putter->mutex);
        putter->added--;
        putter->rows -= !task->source;
        pthread_mutex_unlock(&putter->mutex);
    }
    return err;
}

int wb_vault_putter_wait(struct wb_vault_putter *putter)
{
    pthread_mutex_lock(&putter->mutex);
    while (putter->ended < putter->added)
        wait_a_moment(putter);
    pthread_mutex_unlock(&putter->mutex);
    return putter->error.code ? wb_error_restore(&putter->error) : 0;
}

void wb_vault_putter_free(struct wb_vault_putter *putter)
{
    struct wb_error_copy error;

    if (!putter)
        return;
    pthread_mutex_lock(&putter->mutex);
    if (putter->ended < putter->added && !putter->error.code)
        putter->error.code = WB_E_STOPPED; /* what has not begun is not begun */
    pthread_mutex_unlock(&putter->mutex);
    wb_error_save(WB_E_IO, &error);
    wb_pool_free(putter->pool);
    wb_file_close(&putter->log);
    wb_map_release(&putter->by_hash);
    wb_vec_release(&putter->parts);
    pthread_cond_destroy(&putter->done);
    pthread_mutex_destroy(&putter->mutex);
    wb_free(putter);
    wb_error_restore(&error);
}

/* ---- deleting ------------------------------------------------------------------------------------------------ */

struct deletion {
    struct wb_object_store *store;
    const struct wb_vault_garbage *garbage;
    bool gone;
};

static void delete_one(void *context)
{
    struct deletion *deletion = context;
    char name[WB_OBJECT_NAME_MAX];

    wb_vault_object_name(deletion->garbage->shipment ? WB_VAULT_SHIPMENTS : WB_VAULT_OBJECTS,
                         &deletion->garbage->object, name);
    deletion->gone = wb_object_delete(deletion->store, name) == 0;
}

void wb_vault_delete(struct wb_object_store *store, struct wb_vault_garbages *garbage)
{
    struct deletion *deletions = garbage->count ? wb_alloc_zero(garbage->count, sizeof *deletions) : NULL;
    struct wb_pool *pool = NULL;
    size_t kept = 0;

    if (!deletions || wb_pool_new(garbage->count > 1 ? DELETE_THREADS : 0, &pool) < 0) {
        wb_free(deletions);
        return;
    }
    for (size_t i = 0; i < garbage->count; i++) {
        deletions[i] = (struct deletion){store, &garbage->items[i], false};
        if (wb_pool_submit(pool, delete_one, &deletions[i]) < 0)
            break;
    }
    wb_pool_free(pool);
    for (size_t i = 0; i < garbage->count; i++)
        if (!deletions[i].gone)
            garbage->items[kept++] = garbage->items[i];
    garbage->count = kept;
    wb_free(deletions);
}
