/*
 * named.c - streams that the repository remembers: the token of the last place that was acknowledged, by name.
 *
 *   DIR/streams/names/NAME.stream   three slots; the newest valid one counts (docs/formats/stream.md)
 *   DIR/streams/lock                locks on single bytes, one for each name in use
 *
 * Slots 0 and 1 are written in turns, once a second, and synced: while one of them is written, the other one is whole.
 * Slot 2 is written in between without syncing: it is there if the process was killed, and may be incomplete after a
 * power failure. If the newest slot is damaged, the stream goes on from the one before, and says so.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/bytelock.h"
#include "os/clock.h"
#include "os/path.h"
#include "stream/slots.h"
#include "stream/stream_own.h"

#include <inttypes.h>
#include <stdio.h>

/* So that no name is that of another one's temporary file. */
#define SUFFIX ".stream"

#define READ_TRIES 10
#define SAVE_RECORDS 500
#define SAVE_NS INT64_C(1000000000)

#define NAMED_MAGIC 0x57424e4du

struct wb_named {
    uint32_t magic;     /* NAMED_MAGIC until it is released */
    struct wb_file lock, file;
    uint64_t sequence;
    uint64_t saved_position;
    int64_t saved_ns, synced_ns;
    bool saved;         /* the file exists */
    bool set_back;      /* the newest place was damaged, so the stream goes on from the one before ... */
    uint64_t damaged_at; /* ... and it was here in the file */
    unsigned last_slot; /* 0 or 1: the one that was synced last */
    char *path;
};

/* ---- files --------------------------------------------------------------------------------------- */

static char *named_path(const char *dir, struct wb_slice name)
{
    struct wb_buf path = WB_BUF_INIT;

    if (wb_buf_printf(&path, "%s/streams/names/%.*s" SUFFIX, dir, WB_SLICE_ARG(name)) < 0 ||
        wb_buf_terminate(&path) < 0) {
        wb_buf_release(&path);
        return NULL;
    }
    return wb_buf_take(&path).ptr;
}

/* Makes the folder, and takes the lock of a name. WB_E_BUSY if it is in use. */
static int take_lock(const char *dir, struct wb_slice name, struct wb_file *lock_out)
{
    char *folder = wb_path_join(dir, "streams/names"), *path = wb_path_join(dir, "streams/lock");
    int err = folder && path ? wb_path_mkdirs(folder) : WB_E_NOMEM;

    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, lock_out);
    int got = err == 0 ? wb_bytelock_try(lock_out, wb_hash64(name.ptr, name.len) >> 2) : err;
    if (got == 0)
        got = wb_fail(WB_E_BUSY, "another process uses the stream '%.*s'", WB_SLICE_ARG(name));
    wb_free(folder);
    wb_free(path);
    return got < 0 ? got : 0;
}

static int refuse_damaged(const char *path)
{
    return wb_fail(WB_E_CORRUPT, "%s is damaged: the place of this stream is lost, and so is the one before; drop it "
                   "with 'webbase stream drop', and start it again", path);
}

/* Whether a reader has begun a stream: then it holds its snapshot as readers do. */
static int is_of_readers(const struct wb_stream_home *home, const struct wb_slots *state, bool *is_out)
{
    struct wb_stream_ticket ticket = {.holder = 0};
    struct wb_stream_place place;
    struct wb_buf mem = WB_BUF_INIT;
    int err = wb_token_read(wb_slice(state->token, state->token_bytes), home->repository, &ticket, &place, &mem);

    *is_out = err == 0 && ticket.holder == WB_HOLD_OF_READERS;
    wb_buf_release(&mem);
    return err;
}

/* Readers neither read nor move the place of a stream that an owner has begun. */
static int check_reader(const struct wb_stream_home *home, const struct wb_slots *state, struct wb_slice name)
{
    bool is_reader;
    int err = is_of_readers(home, state, &is_reader);

    if (err < 0 || is_reader)
        return err;
    return wb_fail(WB_E_DENIED, "the stream '%.*s' was begun with a token, or on the command line: it needs a token",
                   WB_SLICE_ARG(name));
}

/* ---- taking, saving and giving back -------------------------------------------------------------- */

bool wb_stream_named_has_ended(const char *path)
{
    struct wb_slots slots;

    return wb_slots_read(path, &slots) == 0 && slots.valid && slots.finished;
}

void wb_named_release(struct wb_named *named)
{
    if (!named)
        return;
    WB_CHECK(named->magic == NAMED_MAGIC);
    wb_file_close(&named->file);
    wb_file_close(&named->lock); /* which ends the lock */
    wb_free(named->path);
    named->magic = 0;
    wb_free(named);
}

int wb_named_take(struct wb_stream *stream, struct wb_slice name, struct wb_buf *token_out, bool *finished_out)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC && !stream->named);
    struct wb_slots *state = wb_alloc(sizeof *state);
    struct wb_named *named = stream->named = wb_alloc_zero(1, sizeof *named);
    int err = state && named ? 0 : WB_E_NOMEM;

    *finished_out = false;
    if (named)
        *named = (struct wb_named){.magic = NAMED_MAGIC, .lock = WB_FILE_INIT, .file = WB_FILE_INIT};
    if (err == 0)
        err = wb_store_name_check(name);
    if (err == 0)
        named->path = named_path(stream->home->dir, name);
    if (err == 0 && !named->path)
        err = WB_E_NOMEM;
    if (err == 0)
        err = take_lock(stream->home->dir, name, &named->lock);
    if (err == 0)
        err = wb_slots_read(named->path, state);
    if (err == 0 && !state->valid)
        err = refuse_damaged(named->path);
    if (err == 0 && stream->spec.who != WB_STREAM_OWNER)
        err = check_reader(stream->home, state, name);
    if (err == 0) {
        named->saved = true;
        named->sequence = wb_slots_newest(state);
        named->last_slot = state->synced_slot;
        named->set_back = wb_slots_set_back(state);
        named->damaged_at = state->damaged_at;
        *finished_out = state->finished;
        err = wb_buf_append(token_out, state->token, state->token_bytes);
    } else if (err == WB_E_NOTFOUND) {
        err = stream->spec.who == WB_STREAM_OWNER ? 0 : wb_readers_name(stream->home);
        stream->names = err == 0 && stream->spec.who != WB_STREAM_OWNER;
    }
    wb_free(state);
    return err;
}

/* A file that exists has two whole slots at least, so that every state has one before it. */
static int make_file(struct wb_named *named, const char *slot)
{
    char *both = wb_alloc(2 * (size_t)WB_SLOT_BYTES);
    int err = both ? 0 : WB_E_NOMEM;

    WB_CHECK(!named->saved);
    if (err == 0) {
        memcpy(both, slot, WB_SLOT_BYTES);
        memcpy(both + WB_SLOT_BYTES, slot, WB_SLOT_BYTES);
        err = wb_path_replace(named->path, wb_slice(both, 2 * (size_t)WB_SLOT_BYTES));
    }
    named->saved = err == 0;
    wb_free(both);
    return err;
}

static int write_slot(struct wb_named *named, const char *slot, bool synced)
{
    WB_CHECK(named->lock.fd >= 0 && named->last_slot < WB_SLOT_QUICK);
    unsigned number = synced ? !named->last_slot : WB_SLOT_QUICK;

    if (!named->saved)
        return make_file(named, slot);
    int err = named->file.fd < 0 ? wb_file_open(named->path, WB_FILE_WRITE, &named->file) : 0;
    if (err == 0)
        err = wb_file_write_at(&named->file, number * (uint64_t)WB_SLOT_BYTES, slot, WB_SLOT_BYTES);
    if (err == 0 && synced)
        err = wb_file_sync(&named->file);
    if (err == 0 && synced)
        named->last_slot = number;
    return err;
}

/* Saves the token of a place. */
static int save_token(struct wb_named *named, struct wb_slice token, uint64_t position, bool finished, bool now)
{
    WB_CHECK(named->magic == NAMED_MAGIC && token.len > 0);
    int64_t now_ns = wb_clock_mono_ns();
    char slot[WB_SLOT_BYTES];

    wb_slots_fill(++named->sequence, token, finished, slot);
    bool synced = now || now_ns - named->synced_ns >= SAVE_NS;
    int err = write_slot(named, slot, synced);
    named->saved_ns = now_ns;
    named->saved_position = position;
    if (synced && err == 0)
        named->synced_ns = now_ns;
    return err;
}

int wb_named_save(struct wb_stream *stream, bool now)
{
    struct wb_named *named = stream->named;
    uint64_t position = stream->place.position;
    struct wb_slice token;

    WB_CHECK(stream->magic == WB_STREAM_MAGIC && named->magic == NAMED_MAGIC);
    if (!stream->tokens.fixed || /* it had ended before */
        (!now && position - named->saved_position < SAVE_RECORDS && wb_clock_mono_ns() - named->saved_ns < SAVE_NS))
        return 0;
    int err = wb_token_write(&stream->tokens, &stream->place, &token);
    if (err == 0)
        err = save_token(named, token, position, stream->finished, now);
    /* The snapshot of a finished stream is let go, so it cannot go on from an older place: the end is kept twice. */
    if (err == 0 && stream->finished && now)
        err = save_token(named, token, position, true, true);
    return err;
}

bool wb_stream_warning(const struct wb_stream *stream, char text_out[WB_ERROR_MESSAGE_MAX])
{
    const struct wb_named *named = stream->named;

    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    text_out[0] = '\0';
    if (!named || !named->set_back)
        return false;
    snprintf(text_out, WB_ERROR_MESSAGE_MAX,
             "streams/names/%.*s" SUFFIX " is damaged at %" PRIu64 ": the newest place of this stream is lost, so it "
             "goes on from the one before, after %" PRIu64 " record%s; records behind that come a second time",
             WB_SLICE_ARG(stream->spec.name), named->damaged_at, stream->place.position,
             stream->place.position == 1 ? "" : "s");
    return true;
}

/* ---- places that a client acknowledges ----------------------------------------------------------- */

/*
 * Reads a token of the stream that has this ticket. Readers have one holder for all their streams, so that alone does
 * not tell one stream from another.
 */
static int read_own_token(const struct wb_stream_home *home, struct wb_slice token,
                          const struct wb_stream_ticket *known, struct wb_stream_place *place_out)
{
    struct wb_stream_ticket ticket;
    struct wb_buf mem = WB_BUF_INIT;
    int err = wb_token_read(token, home->repository, &ticket, place_out, &mem);

    if (err == 0 && (ticket.snapshot != known->snapshot || ticket.epoch != known->epoch ||
                     ticket.holder != known->holder || !wb_slice_equal(ticket.spec, known->spec) ||
                     ticket.listed != known->listed || ticket.list_hash != known->list_hash))
        err = wb_fail(WB_E_INVALID, "this token is one of another stream");
    wb_buf_release(&mem);
    return err;
}

int wb_stream_acknowledge_token(struct wb_stream *stream, enum wb_stream_who who, struct wb_slice token)
{
    struct wb_stream_ticket known = stream->ticket;
    struct wb_stream_place place;
    char hash[8];

    WB_CHECK(stream->magic == WB_STREAM_MAGIC && stream->named->magic == NAMED_MAGIC);
    known.spec = wb_buf_slice(&stream->spec_bytes);
    if (known.kept) {
        wb_put64(hash, wb_shelf_hash(known.spec));
        known.spec = wb_slice(hash, sizeof hash);
    }
    if (who != WB_STREAM_OWNER && stream->spec.who == WB_STREAM_OWNER)
        return wb_fail(WB_E_DENIED, "this stream was begun with a token: it needs one");
    int err = read_own_token(stream->home, token, &known, &place);
    if (err < 0 || place.position <= stream->named->saved_position)
        return err;
    return save_token(stream->named, token, place.position, false, false);
}

/* The stream is not open: takes the name for a moment. */
static int acknowledge_closed(struct wb_stream_home *home, struct wb_named *named, struct wb_slots *state,
                              struct wb_slice token)
{
    struct wb_stream_place place, last;
    struct wb_stream_ticket ticket;
    struct wb_buf mem = WB_BUF_INIT;

    WB_CHECK(named->lock.fd >= 0);
    int err = wb_slots_read(named->path, state);
    if (err == 0 && !state->valid)
        err = refuse_damaged(named->path);
    if (err == 0)
        err = wb_token_read(wb_slice(state->token, state->token_bytes), home->repository, &ticket, &last, &mem);
    if (err == 0)
        err = read_own_token(home, token, &ticket, &place);
    named->saved = true;
    named->sequence = wb_slots_newest(state);
    named->last_slot = state->synced_slot;
    if (err == 0 && !state->finished && place.position > last.position)
        err = save_token(named, token, place.position, false, true);
    wb_buf_release(&mem);
    return err;
}

int wb_stream_named_acknowledge(struct wb_stream_home *home, enum wb_stream_who who, struct wb_slice name,
                                struct wb_slice token)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    struct wb_named *named = wb_alloc_zero(1, sizeof *named);
    struct wb_slots *state = wb_alloc(sizeof *state);
    int err = named && state ? wb_store_name_check(name) : WB_E_NOMEM;

    if (named) {
        *named = (struct wb_named){.magic = NAMED_MAGIC, .lock = WB_FILE_INIT, .file = WB_FILE_INIT};
        named->path = err == 0 ? named_path(home->dir, name) : NULL;
    }
    if (err == 0 && !named->path)
        err = WB_E_NOMEM;
    if (err == 0 && wb_path_kind(named->path) == WB_PATH_NONE)
        err = wb_fail(WB_E_NOTFOUND, "there is no stream '%.*s'", WB_SLICE_ARG(name));
    if (err == 0)
        err = take_lock(home->dir, name, &named->lock);
    if (err == 0 && who != WB_STREAM_OWNER)
        err = wb_slots_read(named->path, state);
    if (err == 0 && who != WB_STREAM_OWNER && state->valid)
        err = check_reader(home, state, name);
    if (err == 0)
        err = acknowledge_closed(home, named, state, token);
    wb_named_release(named);
    wb_free(state);
    return err;
}

/* ---- listing ------------------------------------------------------------------------ */

struct named_walk {
    struct wb_stream_home *home;
    const char *folder;
    struct wb_slots *state;
    int (*each)(void *context, const struct wb_stream_named *named);
    void *context;
};

struct reader_walk {
    struct wb_stream_home *home;
    const char *folder;
    struct wb_slots *state;
    struct wb_named_readers *readers;
};

/* Fills in what the token says. */
static int describe(const struct wb_stream_home *home, const struct wb_slots *state, struct wb_stream_named *named,
                    uint64_t *holder_out)
{
    struct wb_stream_ticket ticket;
    struct wb_stream_place place;
    struct wb_buf mem = WB_BUF_INIT;
    int err = state->valid
                  ? wb_token_read(wb_slice(state->token, state->token_bytes), home->repository, &ticket, &place, &mem)
                  : WB_E_CORRUPT;

    *holder_out = 0;
    named->damaged = err < 0;
    if (err == 0) {
        named->snapshot = ticket.snapshot;
        named->delivered = place.position;
        named->finished = state->finished;
        named->saved_ms = state->saved_ms;
        *holder_out = ticket.holder;
    }
    wb_buf_release(&mem);
    return err == WB_E_NOMEM ? err : 0;
}

static int walk_name(void *context, const struct wb_path_entry *entry)
{
    const struct named_walk *walk = context;
    char name[WB_STORE_NAME_MAX + 1];
    struct wb_stream_named named = {.name = name};
    struct wb_slice file = wb_slice_str(entry->name);
    uint64_t holder;

    if (entry->kind != WB_PATH_FILE || !wb_slice_ends(file, WB_SLICE_LIT(SUFFIX)) ||
        file.len - strlen(SUFFIX) > WB_STORE_NAME_MAX)
        return 0;
    memcpy(name, file.ptr, file.len - strlen(SUFFIX));
    name[file.len - strlen(SUFFIX)] = '\0';
    char *path = wb_path_join(walk->folder, entry->name);
    int err = path ? wb_slots_read(path, walk->state) : WB_E_NOMEM;
    wb_free(path);
    if (err == WB_E_NOTFOUND)
        return 0;
    if (err == WB_E_NEWER) { /* it is listed like one that is damaged; verify says more */
        walk->state->valid = false;
        err = 0;
    }
    if (err == 0)
        err = describe(walk->home, walk->state, &named, &holder);
    return err == 0 ? walk->each(walk->context, &named) : err;
}

int wb_stream_named_each(struct wb_stream_home *home, int (*each)(void *context, const struct wb_stream_named *named),
                         void *context)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    char *folder = wb_path_join(home->dir, "streams/names");
    struct named_walk walk = {
        .home = home, .folder = folder, .each = each, .context = context, .state = wb_alloc(sizeof *walk.state)};
    int err = folder && walk.state ? 0 : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(folder) == WB_PATH_DIR)
        err = wb_path_each(folder, walk_name, &walk);
    wb_free(walk.state);
    wb_free(folder);
    return err;
}

/* ---- checking ------------------------------------------------------------------------------------ */

struct named_check {
    const char *folder;
    struct wb_slots *state;
    wb_stream_found found;
    void *context;
};

static int check_name(void *context, const struct wb_path_entry *entry)
{
    struct named_check *check = context;
    struct wb_slice file = wb_slice_str(entry->name);
    const struct wb_slots *state = check->state;
    char name[sizeof "streams/names/" + WB_STORE_NAME_MAX + sizeof SUFFIX];

    if (entry->kind != WB_PATH_FILE || !wb_slice_ends(file, WB_SLICE_LIT(SUFFIX)) ||
        file.len - strlen(SUFFIX) > WB_STORE_NAME_MAX)
        return 0;
    snprintf(name, sizeof name, "streams/names/%s", entry->name);
    char *path = wb_path_join(check->folder, entry->name);
    int err = path ? wb_slots_read(path, check->state) : WB_E_NOMEM;
    /* Somebody may have been writing a slot while it was read. */
    for (unsigned i = 0; i < READ_TRIES && err == 0 && state->damaged; i++)
        err = wb_slots_read(path, check->state);
    wb_free(path);
    if (err == WB_E_NEWER) {
        check->found(check->context, true, name, 0, wb_error_message());
        return 0;
    }
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    if (!state->valid)
        check->found(check->context, true, name, state->damaged_at,
                     "the place of this stream is lost, and so is the one before: drop it, and start it again");
    else if (wb_slots_set_back(state))
        check->found(check->context, true, name, state->damaged_at,
                     "the newest place of this stream is damaged: it goes on from the one before");
    else if (state->damaged)
        check->found(check->context, true, name, state->damaged_at,
                     "an older place of this stream is damaged; the newest one is sound");
    else if (state->torn)
        check->found(check->context, false, name, state->torn_at,
                     "a place of this stream was not written completely; it goes on from the newest one that was");
    return 0;
}

int wb_stream_verify(const char *dir, wb_stream_found found, void *context)
{
    char *folder = wb_path_join(dir, "streams/names");
    struct named_check check = {
        .folder = folder, .state = wb_alloc(sizeof *check.state), .found = found, .context = context};
    int err = folder && check.state ? 0 : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(folder) == WB_PATH_DIR)
        err = wb_path_each(folder, check_name, &check);
    wb_free(check.state);
    wb_free(folder);
    return err;
}

/* ---- streams of readers -------------------------------------------------------------------------- */

/* One of the files. */
static int count_reader(void *context, const struct wb_path_entry *entry)
{
    struct reader_walk *walk = context;
    struct wb_slice file = wb_slice_str(entry->name);
    bool is_reader = false;

    if (entry->kind != WB_PATH_FILE || !wb_slice_ends(file, WB_SLICE_LIT(SUFFIX)) ||
        file.len - strlen(SUFFIX) > WB_STORE_NAME_MAX)
        return 0;
    char *path = wb_path_join(walk->folder, entry->name);
    int err = path ? wb_slots_read(path, walk->state) : WB_E_NOMEM;
    wb_free(path);
    if (err == 0 && walk->state->valid)
        err = is_of_readers(walk->home, walk->state, &is_reader);
    if (err < 0 || !is_reader) /* gone, damaged or of somebody else: not ours to count */
        return err == WB_E_NOMEM ? err : 0;
    struct wb_named_readers *readers = walk->readers;
    readers->count++;
    if (walk->state->saved_ms <= readers->after_ms ||
        (readers->first[0] && walk->state->saved_ms >= readers->first_saved_ms))
        return 0;
    memcpy(readers->first, file.ptr, file.len - strlen(SUFFIX));
    readers->first[file.len - strlen(SUFFIX)] = '\0';
    readers->first_saved_ms = walk->state->saved_ms;
    return 0;
}

int wb_named_count_readers(struct wb_stream_home *home, struct wb_named_readers *readers)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    char *folder = wb_path_join(home->dir, "streams/names");
    struct reader_walk walk = {
        .home = home, .folder = folder, .readers = readers, .state = wb_alloc(sizeof *walk.state)};
    int err = folder && walk.state ? 0 : WB_E_NOMEM;

    *readers = (struct wb_named_readers){.after_ms = readers->after_ms};
    if (err == 0 && wb_path_kind(folder) == WB_PATH_DIR)
        err = wb_path_each(folder, count_reader, &walk);
    wb_free(walk.state);
    wb_free(folder);
    return err;
}

/* ---- dropping ------------------------------------------------------------------------------------ */

int wb_stream_named_drop(struct wb_stream_home *home, struct wb_slice name)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    struct wb_slots *state = wb_alloc(sizeof *state);
    struct wb_stream_named named = {.name = NULL};
    struct wb_file lock = WB_FILE_INIT;
    char *path = named_path(home->dir, name);
    uint64_t holder = 0;
    int err = state && path ? wb_store_name_check(name) : WB_E_NOMEM;

    if (err == 0)
        err = wb_path_kind(path) == WB_PATH_NONE
                  ? wb_fail(WB_E_NOTFOUND, "there is no stream '%.*s'", WB_SLICE_ARG(name))
                  : take_lock(home->dir, name, &lock);
    if (err == 0)
        err = wb_slots_read(path, state);
    if (err == 0)
        err = describe(home, state, &named, &holder);
    if (err == 0)
        err = wb_path_unlink(path);
    if (err == 0)
        err = wb_path_sync_parent(path);
    if (err == 0 && holder && holder != WB_HOLD_OF_READERS) /* which others use */
        err = wb_hold_let_go(home->dir, named.snapshot, holder);
    wb_file_close(&lock);
    wb_free(path);
    wb_free(state);
    return err;
}
