/*
 * vaultshipper.c - a process that ships, between two shipments: opening and closing it, what it notes for people who
 * watch, the mark of the state that was shipped last, and whether there is anything to ship.
 */
#include "vault/vaultshipper.h"
#include "base/codec.h"
#include "base/error.h"
#include "os/clock.h"
#include "os/path.h"
#include "os/random.h"
#include "store/store.h"

#include <stdio.h>

#define MAGIC WB_VAULT_SHIPPER_MAGIC

_Static_assert(WB_STORE_ID_HEX == 2 * WB_VAULT_ID_BYTES, "the id of a repository as bytes");

/* ---- status -------------------------------------------------------------------------------------------------- */

/* For people who watch. That it cannot be written is no reason not to ship. */
static void note(struct wb_vault_shipper *shipper)
{
    struct wb_error_copy error;

    shipper->status.since_ms = shipper->memory.since_ms;
    shipper->status.following = shipper->options.follow;
    wb_error_save(WB_E_IO, &error);
    (void)wb_vault_noted_write(&shipper->memory, &shipper->status);
    wb_error_restore(&error);
}

void wb_vault_note_failure(struct wb_vault_shipper *shipper)
{
    struct wb_vault_noted *status = &shipper->status;

    /* Before anything was compared with the vault, only a look can tell whether something is new. */
    if (!status->unsafe_since_ms && shipper->looked && wb_vault_shipper_due(shipper))
        status->unsafe_since_ms = wb_clock_wall_ms();
    snprintf(status->error, sizeof status->error, "%s", wb_error_message());
    for (char *p = status->error; *p; p++)
        if ((uint8_t)*p < ' ')
            *p = ' ';
    status->error_ms = wb_clock_wall_ms();
    note(shipper);
}

/* Something is on its way. */
void wb_vault_note_waiting(struct wb_vault_shipper *shipper, uint64_t bytes)
{
    struct wb_vault_noted *status = &shipper->status;

    status->bytes_waiting = bytes;
    if (!status->unsafe_since_ms)
        status->unsafe_since_ms = wb_clock_wall_ms();
    note(shipper);
}

void wb_vault_note_safe(struct wb_vault_shipper *shipper)
{
    const struct wb_vault_points *points = &shipper->manifest.points;
    struct wb_vault_noted *status = &shipper->status;

    WB_CHECK(points->count > 0);
    status->safe_ms = points->items[points->count - 1].time_ms;
    status->safe_pages = points->items[points->count - 1].pages;
    status->unsafe_since_ms = status->error_ms = 0;
    status->bytes_waiting = 0;
    status->error[0] = '\0';
    note(shipper);
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

static int open_repository(struct wb_vault_shipper *shipper)
{
    char id[WB_STORE_ID_HEX + 1];
    int err = wb_store_id(shipper->dir, id);

    if (err == 0 && !wb_hex_decode(wb_slice_str(id), shipper->repository, WB_VAULT_ID_BYTES))
        err = wb_fail(WB_E_CORRUPT, "%s: the id of the repository is malformed", shipper->dir);
    return err;
}

static int open_memory(struct wb_vault_shipper *shipper, const char *url)
{
    struct wb_buf orphan = WB_BUF_INIT, noted = WB_BUF_INIT;
    int err = wb_vault_memory_open(shipper->dir, url, &shipper->memory, &orphan);

    if (err == 0 && orphan.len)
        err = wb_store_unmark(shipper->dir, wb_buf_slice(&orphan)); /* it came along with the catalog */
    if (err == 0)
        err = wb_vault_stamps_load(&shipper->memory, &shipper->stamps_number, &shipper->stamps_term,
                                   &shipper->store_stamps, &shipper->stamps);
    if (err == 0 && shipper->memory.since_ms)
        err = wb_vault_noted_read(shipper->memory.folder, &shipper->status, &noted);
    wb_buf_release(&orphan);
    wb_buf_release(&noted);
    return err;
}

static const struct wb_object_options store_options = {.stoppable = true};

int wb_vault_shipper_open(const char *dir, const char *url, const struct wb_vault_ship_options *options,
                          struct wb_vault_shipper **shipper_out)
{
    struct wb_vault_shipper *shipper = wb_alloc_zero(1, sizeof *shipper);
    struct wb_error_copy error;

    *shipper_out = NULL;
    if (!shipper)
        return WB_E_NOMEM;
    shipper->magic = MAGIC;
    shipper->options = *options;
    shipper->memory.lock = WB_FILE_INIT;
    shipper->dir = wb_strdup(dir);
    wb_random_bytes(&shipper->run, sizeof shipper->run);
    int err = shipper->dir ? wb_object_url_check(url) : WB_E_NOMEM;
    if (err == 0)
        err = open_repository(shipper);
    if (err == 0)
        err = wb_object_open(url, &store_options, &shipper->store);
    if (err == 0)
        err = open_memory(shipper, url);
    if (err == 0 && !options->follow) /* who follows waits for a store that is away, and is seen to wait */
        err = wb_vault_prepare(shipper);
    if (err == 0) {
        *shipper_out = shipper;
        return 0;
    }
    wb_error_save(err, &error);
    wb_vault_shipper_close(shipper);
    return wb_error_restore(&error);
}

void wb_vault_shipper_renew(struct wb_vault_shipper *shipper)
{
    struct wb_object_store *store;

    WB_CHECK(shipper->magic == MAGIC);
    if (wb_object_open(shipper->memory.url, &store_options, &store) < 0)
        return;
    wb_object_close(shipper->store);
    shipper->store = store;
}

/* ---- marks --------------------------------------------------------------------------------------------------- */

int wb_vault_save_stamps(struct wb_vault_shipper *shipper)
{
    return wb_vault_stamps_save(&shipper->memory, shipper->stamps_number, shipper->stamps_term,
                                wb_buf_slice(&shipper->store_stamps), &shipper->stamps);
}

int wb_vault_mark_last(struct wb_vault_shipper *shipper)
{
    struct wb_vault_memory *memory = &shipper->memory;
    struct wb_buf mark = WB_BUF_INIT, old = WB_BUF_INIT;

    WB_CHECK(shipper->last != NULL);
    /* If there is no mark, all rows are shipped again by the next process, which costs no more than time. */
    if (memory->mark_number != shipper->last_number && wb_store_state_mark(shipper->last, &mark) == 0) {
        old = wb_buf_take(&memory->mark);
        memory->mark = wb_buf_take(&mark);
        memory->mark_number = shipper->last_number;
        shipper->marked_ns = wb_clock_mono_ns();
    }
    wb_buf_release(&mark);
    int err = wb_vault_save_stamps(shipper);
    if (err == 0)
        err = wb_vault_memory_save(memory);
    if (err == 0 && old.len)
        (void)wb_store_unmark(shipper->dir, wb_buf_slice(&old));
    wb_buf_release(&old);
    return err;
}

/* ---- closing, looking ---------------------------------------------------------------------------------------- */

void wb_vault_shipper_close(struct wb_vault_shipper *shipper)
{
    if (!shipper)
        return;
    WB_CHECK(shipper->magic == MAGIC);
    if (shipper->last && shipper->memory.mark_number != shipper->last_number) {
        struct wb_error_copy error;
        wb_error_save(WB_E_IO, &error);
        (void)wb_vault_mark_last(shipper);
        wb_error_restore(&error);
    }
    shipper->options.follow = false;
    if (shipper->memory.lock.fd >= 0 && shipper->memory.since_ms)
        note(shipper);
    if (shipper->anchor != shipper->last)
        wb_store_state_let_go(shipper->anchor);
    wb_store_state_let_go(shipper->last);
    wb_vault_manifest_release(&shipper->manifest);
    wb_vec_release(&shipper->orphans);
    wb_vault_stamps_release(&shipper->stamps);
    wb_buf_release(&shipper->store_stamps);
    wb_vault_memory_close(&shipper->memory);
    wb_object_close(shipper->store);
    shipper->magic = 0;
    wb_free(shipper->dir);
    wb_free(shipper);
}

bool wb_vault_shipper_due(struct wb_vault_shipper *shipper)
{
    uint64_t look;
    bool fresh;

    WB_CHECK(shipper->magic == MAGIC);
    if (!shipper->looked || shipper->fresh || wb_collect_look(shipper->dir, &look, &fresh) < 0 || look != shipper->look)
        return true;
    return false;
}

bool wb_vault_shipper_lost(const struct wb_vault_shipper *shipper)
{
    WB_CHECK(shipper->magic == MAGIC);
    return shipper->lost;
}
