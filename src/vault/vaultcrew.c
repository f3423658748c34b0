/*
 * vaultcrew.c - a queue of pieces, and threads that read them (vaultcrew.h).
 *
 * A thread takes the next piece when there is room for it in MEMORY_BYTES, or when no other is under way. So small
 * objects are read by all threads at once, and of the largest ones one or two at a time.
 */
#include "vault/vaultcrew.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/stop.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { THREADS_MAX = 16, MEMORY_BYTES = 80 << 20, LOOK_MS = 200 };

struct wb_vaultcrew {
    struct wb_object_store *store;
    const struct wb_vault_piece *const *pieces;
    size_t count;
    struct wb_vaultcrew_sink sink;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Protected by the lock. */
    size_t next;         /* piece */
    unsigned char *done; /* one byte for each piece */
    size_t all_done;     /* so many of the first pieces are done */
    unsigned under_way;
    size_t memory; /* that those under way take */
    uint64_t bytes;
    bool ending;
    struct wb_error_copy error; /* the first one */
    unsigned threads;
    pthread_t thread[THREADS_MAX];
};

/* The memory that reading a piece takes: the object, and what it becomes if it is compressed. */
static size_t memory_of(const struct wb_vault_piece *piece)
{
    if (!wb_vault_object_is_one(&piece->object))
        return 0;
    size_t stored = piece->object.stored;
    return stored == (size_t)piece->len + WB_VAULT_OBJECT_HEAD ? stored : stored + piece->len;
}

int wb_vault_fetch_piece(struct wb_object_store *store, const struct wb_vault_piece *piece, struct wb_buf *bytes,
                         struct wb_buf *mem, struct wb_slice *contents_out)
{
    char name[WB_OBJECT_NAME_MAX], full[WB_VAULT_MESSAGE_NAME_MAX];

    *contents_out = piece->bytes;
    if (!wb_vault_object_is_one(&piece->object))
        return 0;
    int err = wb_vault_fetch(store, WB_VAULT_BYTES, &piece->object, bytes, mem, contents_out);
    if (err < 0 || contents_out->len == piece->len)
        return err;
    wb_vault_object_name(WB_VAULT_OBJECTS, &piece->object, name);
    wb_vault_full_name(store, name, full);
    return wb_fail(WB_E_CORRUPT, "%s has %zu bytes of a file, not the %u that the shipment says", full,
                   contents_out->len, (unsigned)piece->len);
}

static int read_piece(struct wb_vaultcrew *crew, size_t number, struct wb_buf *bytes, struct wb_buf *mem)
{
    struct wb_slice contents;
    int err = wb_vault_fetch_piece(crew->store, crew->pieces[number], bytes, mem, &contents);

    if (err < 0)
        return crew->sink.failed && err != WB_E_STOPPED ? crew->sink.failed(crew->sink.context, number, err) : err;
    return crew->sink.take(crew->sink.context, number, contents);
}

/* Under the lock: waits for room, and takes the next piece. False: there is nothing more to do. */
static bool take_next(struct wb_vaultcrew *crew, size_t *number_out)
{
    for (;;) {
        if (crew->ending || crew->error.code < 0 || crew->next == crew->count)
            return false;
        size_t memory = memory_of(crew->pieces[crew->next]);
        if (crew->under_way == 0 || crew->memory + memory <= MEMORY_BYTES) {
            crew->under_way++;
            crew->memory += memory;
            *number_out = crew->next++;
            return true;
        }
        pthread_cond_wait(&crew->changed, &crew->lock);
    }
}

/* Under the lock. */
static void note_done(struct wb_vaultcrew *crew, size_t number, int err)
{
    const struct wb_vault_piece *piece = crew->pieces[number];

    WB_CHECK(crew->under_way > 0 && !crew->done[number]);
    crew->under_way--;
    crew->memory -= memory_of(piece);
    crew->bytes += piece->object.stored;
    crew->done[number] = 1;
    while (crew->all_done < crew->count && crew->done[crew->all_done])
        crew->all_done++;
    if (err < 0 && crew->error.code == 0)
        wb_error_save(err, &crew->error);
    pthread_cond_broadcast(&crew->changed);
}

static void *work(void *context)
{
    struct wb_vaultcrew *crew = context;
    size_t number;

    pthread_mutex_lock(&crew->lock);
    while (take_next(crew, &number)) {
        struct wb_buf bytes = WB_BUF_INIT, mem = WB_BUF_INIT;
        pthread_mutex_unlock(&crew->lock);
        int err = wb_stop_requested() ? wb_fail(WB_E_STOPPED, "stopped") : read_piece(crew, number, &bytes, &mem);
        wb_buf_release(&bytes);
        wb_buf_release(&mem);
        pthread_mutex_lock(&crew->lock);
        note_done(crew, number, err);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

int wb_vaultcrew_start(struct wb_object_store *store, const struct wb_vault_piece *const *pieces, size_t count,
                       const struct wb_vaultcrew_sink *sink, struct wb_vaultcrew **crew_out)
{
    struct wb_vaultcrew *crew = wb_alloc_zero(1, sizeof *crew);
    pthread_condattr_t monotonic;

    *crew_out = NULL;
    if (!crew)
        return WB_E_NOMEM;
    crew->done = wb_alloc_zero(count ? count : 1, 1);
    if (!crew->done) {
        wb_free(crew);
        return WB_E_NOMEM;
    }
    crew->store = store;
    crew->pieces = pieces;
    crew->count = count;
    crew->sink = *sink;
    WB_CHECK(pthread_mutex_init(&crew->lock, NULL) == 0);
    WB_CHECK(pthread_condattr_init(&monotonic) == 0 && pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    WB_CHECK(pthread_cond_init(&crew->changed, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
    for (unsigned i = 0; i < THREADS_MAX && i < count; i++) {
        if (pthread_create(&crew->thread[crew->threads], NULL, work, crew) != 0)
            break;
        crew->threads++;
    }
    if (count && crew->threads == 0) {
        wb_vaultcrew_end(crew);
        return wb_fail(WB_E_LIMIT, "no thread can be started to read from %s", wb_object_url(store));
    }
    *crew_out = crew;
    return 0;
}

/* Under the lock: until something has changed, but no longer than a moment. */
static void wait_a_moment(struct wb_vaultcrew *crew)
{
    struct timespec until;

    WB_CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    int result = pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
    WB_CHECK(result == 0 || result == ETIMEDOUT);
}

int wb_vaultcrew_wait(struct wb_vaultcrew *crew, size_t count, const struct wb_vaultcrew_progress *progress)
{
    WB_CHECK(count <= crew->count);
    pthread_mutex_lock(&crew->lock);
    while (crew->all_done < count && crew->error.code == 0 && !wb_stop_requested()) {
        wait_a_moment(crew);
        uint64_t bytes = crew->bytes;
        if (progress && progress->show) {
            pthread_mutex_unlock(&crew->lock);
            progress->show(progress->context, bytes, progress->total);
            pthread_mutex_lock(&crew->lock);
        }
    }
    bool done = crew->all_done >= count;
    struct wb_error_copy error = crew->error;
    pthread_mutex_unlock(&crew->lock);
    if (error.code < 0)
        return wb_error_restore(&error);
    return done ? 0 : wb_fail(WB_E_STOPPED, "stopped");
}

uint64_t wb_vaultcrew_bytes(struct wb_vaultcrew *crew)
{
    pthread_mutex_lock(&crew->lock);
    uint64_t bytes = crew->bytes;
    pthread_mutex_unlock(&crew->lock);
    return bytes;
}

void wb_vaultcrew_end(struct wb_vaultcrew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->ending = true;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->threads; i++)
        pthread_join(crew->thread[i], NULL);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
    wb_free(crew->done);
    wb_free(crew);
}
