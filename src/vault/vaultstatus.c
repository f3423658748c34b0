/*
 * vaultstatus.c - writes and reads DIR/vault/KEY/status (docs/formats/vault.md), and lists the vaults of a repository
 * without asking any store.
 */
#include "vault/vaultstatus.h"
#include "base/checked_text.h"
#include "base/error.h"
#include "base/format.h"
#include "os/path.h"
#include "vault/vault.h"

#include <inttypes.h>

enum { FORMAT = 1, TEXT_MAX = 16384, KEY_DIGITS = 16 };

/* ---- writing ------------------------------------------------------------------------------------------------- */

static int compose(const struct wb_vault_memory *memory, const struct wb_vault_noted *noted, struct wb_buf *text)
{
    int err =
        wb_buf_printf(text,
                      "webbase backup\nformat %d\nurl %s\nsafe %" PRId64 "\npages %" PRIu64 "\nsince %" PRId64
                      "\nunsafe %" PRId64 "\nwaiting %" PRIu64 "\nfollowing %d\nfailed %" PRId64 "\nerror %s\n",
                      FORMAT, memory->url, noted->safe_ms, noted->safe_pages, noted->since_ms, noted->unsafe_since_ms,
                      noted->bytes_waiting, noted->following, noted->error_ms, noted->error);

    return err < 0 ? err : wb_checked_text_end(text);
}

/* Replaces the file without syncing it: after a power failure it may be damaged, and is written again. */
static int replace(const char *path, struct wb_slice bytes)
{
    struct wb_buf name = WB_BUF_INIT;
    struct wb_file file = WB_FILE_INIT;
    int err = wb_buf_printf(&name, "%s.tmp", path);

    if (err == 0)
        err = wb_buf_terminate(&name);
    if (err == 0)
        err = wb_file_open(name.ptr, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE, &file);
    if (err == 0)
        err = wb_file_write_at(&file, 0, bytes.ptr, bytes.len);
    wb_file_close(&file);
    if (err == 0)
        err = wb_path_rename(name.ptr, path);
    wb_buf_release(&name);
    return err;
}

int wb_vault_noted_write(const struct wb_vault_memory *memory, const struct wb_vault_noted *noted)
{
    struct wb_buf text = WB_BUF_INIT, old = WB_BUF_INIT;
    char *path = wb_path_join(memory->folder, "status");
    int err = path ? compose(memory, noted, &text) : WB_E_NOMEM;

    WB_CHECK(!strchr(noted->error, '\n'));
    if (err == 0 &&
        (wb_path_read(path, TEXT_MAX, &old) < 0 || !wb_slice_equal(wb_buf_slice(&old), wb_buf_slice(&text))))
        err = replace(path, wb_buf_slice(&text));
    wb_buf_release(&text);
    wb_buf_release(&old);
    wb_free(path);
    return err;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static bool take_u64(struct wb_slice *lines, const char *name, uint64_t *number_out)
{
    struct wb_slice value;

    *number_out = 0;
    return wb_checked_text_take(lines, name, &value) && wb_slice_to_u64(value, number_out);
}

static bool take_time(struct wb_slice *lines, const char *name, int64_t *ms_out)
{
    uint64_t number;
    bool took = take_u64(lines, name, &number);

    *ms_out = (int64_t)number;
    return took && number <= INT64_MAX;
}

static bool take_noted(struct wb_slice lines, struct wb_vault_noted *noted, struct wb_slice *url_out)
{
    struct wb_slice error;
    uint64_t following;

    if (!wb_checked_text_take(&lines, "url", url_out) || !take_time(&lines, "safe", &noted->safe_ms) ||
        !take_u64(&lines, "pages", &noted->safe_pages) || !take_time(&lines, "since", &noted->since_ms) ||
        !take_time(&lines, "unsafe", &noted->unsafe_since_ms) || !take_u64(&lines, "waiting", &noted->bytes_waiting) ||
        !take_u64(&lines, "following", &following) || !take_time(&lines, "failed", &noted->error_ms) ||
        !wb_checked_text_take(&lines, "error", &error) || lines.len != 0 || error.len >= sizeof noted->error)
        return false;
    noted->following = following != 0;
    memcpy(noted->error, error.ptr, error.len);
    noted->error[error.len] = '\0';
    return true;
}

int wb_vault_noted_read(const char *folder, struct wb_vault_noted *noted_out, struct wb_buf *url_out)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice lines, value, url = WB_SLICE_EMPTY;
    char *path = wb_path_join(folder, "status");
    uint64_t format = 0;
    int err = path ? wb_path_read(path, TEXT_MAX, &mem) : WB_E_NOMEM;

    memset(noted_out, 0, sizeof *noted_out);
    lines = wb_buf_slice(&mem);
    if (err == 0 && wb_checked_text_take(&lines, "webbase", &value) && take_u64(&lines, "format", &format) &&
        format > FORMAT) {
        err = wb_fail_format(path, format, FORMAT);
    } else if (err == 0 && format == FORMAT && wb_checked_text_open(wb_buf_slice(&mem), &lines)) {
        wb_checked_text_take(&lines, "webbase", &value);
        wb_checked_text_take(&lines, "format", &value);
        if (!take_noted(lines, noted_out, &url))
            memset(noted_out, 0, sizeof *noted_out);
    }
    wb_buf_clear(url_out);
    if (err == 0)
        err = wb_buf_append_slice(url_out, url);
    if (err == 0)
        err = wb_buf_terminate(url_out);
    wb_buf_release(&mem);
    wb_free(path);
    return err == WB_E_NOTFOUND || err == WB_E_LIMIT ? 0 : err;
}

/* ---- the door ------------------------------------------------------------------------------------------------ */

struct status_walk {
    const char *folder;
    int (*each)(void *context, const struct wb_vault_status *status);
    void *context;
};

/* A process that follows holds the lock; one that died does not. */
static bool is_locked(const char *folder)
{
    struct wb_file lock = WB_FILE_INIT;
    char *path = wb_path_join(folder, "lock");
    bool locked = path && wb_file_open(path, WB_FILE_READ, &lock) == 0 && wb_file_is_locked(&lock);

    wb_file_close(&lock);
    wb_free(path);
    return locked;
}

static int pass_status(const struct status_walk *walk, const char *folder)
{
    struct wb_vault_noted noted;
    struct wb_buf url = WB_BUF_INIT;
    int err = wb_vault_noted_read(folder, &noted, &url);

    if (err == 0 && url.len > 0) {
        struct wb_vault_status status = {
            .url = url.ptr,
            .safe_ms = noted.safe_ms,
            .safe_pages = noted.safe_pages,
            .since_ms = noted.since_ms,
            .unsafe_since_ms = noted.unsafe_since_ms,
            .bytes_waiting = noted.bytes_waiting,
            .following = noted.following && is_locked(folder),
            .error = noted.error,
            .error_ms = noted.error_ms,
        };
        err = walk->each(walk->context, &status);
    }
    wb_buf_release(&url);
    return err;
}

static int look_at(void *context, const struct wb_path_entry *entry)
{
    const struct status_walk *walk = context;

    if (entry->kind != WB_PATH_DIR || strlen(entry->name) != KEY_DIGITS)
        return 0;
    char *folder = wb_path_join(walk->folder, entry->name);
    int err = folder ? pass_status(walk, folder) : WB_E_NOMEM;
    wb_free(folder);
    return err;
}

int wb_vault_status_each(const char *dir, int (*each)(void *context, const struct wb_vault_status *status),
                         void *context)
{
    struct status_walk walk = {wb_path_join(dir, WB_VAULT_FOLDER), each, context};
    int err = !walk.folder                               ? WB_E_NOMEM
              : wb_path_kind(walk.folder) == WB_PATH_DIR ? wb_path_each(walk.folder, look_at, &walk)
                                                         : 0;

    wb_free((char *)(uintptr_t)walk.folder);
    return err;
}
