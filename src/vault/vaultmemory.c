/* vaultmemory.c - reads and writes DIR/vault: which copy this is, and what it remembers of a vault (vaultmemory.h). */
#include "vault/vaultmemory.h"
#include "base/checked_text.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "os/path.h"
#include "os/random.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    FORMAT = 1,
    TEXT_MAX = 65536, /* of a file */
    ID_DIGITS = 2 * WB_VAULT_ID_BYTES,
};

static int in_folder(const char *folder, const char *name, char **path_out)
{
    *path_out = wb_path_join(folder, name);
    return *path_out ? 0 : WB_E_NOMEM;
}

/* ---- lines --------------------------------------------------------------------------------------------------- */

static bool take_u64(struct wb_slice *lines, const char *name, uint64_t *number_out)
{
    struct wb_slice value;

    return wb_checked_text_take(lines, name, &value) && wb_slice_to_u64(value, number_out);
}

/* The next word of a line. */
static struct wb_slice take_word(struct wb_slice *line)
{
    const char *blank = memchr(line->ptr, ' ', line->len);
    struct wb_slice word = {line->ptr, blank ? (size_t)(blank - line->ptr) : line->len};
    size_t gone = word.len + (blank != NULL);

    line->ptr += gone;
    line->len -= gone;
    return word;
}

static bool take_hex(struct wb_slice *line, uint64_t *number_out)
{
    uint8_t bytes[8];

    *number_out = 0;
    if (!wb_hex_decode(take_word(line), bytes, sizeof bytes))
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        *number_out = *number_out << 8 | bytes[i];
    return true;
}

static bool take_decimal(struct wb_slice *line, uint64_t *number_out)
{
    return wb_slice_to_u64(take_word(line), number_out);
}

static int append_object(struct wb_buf *text, const struct wb_vault_object *object)
{
    return wb_buf_printf(text, "%016" PRIx64 " %" PRIu32 " %" PRIu32 " %016" PRIx64 " %016" PRIx64, object->run,
                         object->count, object->stored, object->hash[0], object->hash[1]);
}

static bool take_object(struct wb_slice *line, struct wb_vault_object *object_out)
{
    uint64_t count, stored;

    if (!take_hex(line, &object_out->run) || !take_decimal(line, &count) || !take_decimal(line, &stored) ||
        !take_hex(line, &object_out->hash[0]) || !take_hex(line, &object_out->hash[1]))
        return false;
    object_out->count = (uint32_t)count;
    object_out->stored = (uint32_t)stored;
    return count <= UINT32_MAX && stored <= WB_OBJECT_MAX;
}

/* The lines of a file after its first two. WB_E_NOTFOUND also if it is damaged: it is not needed. */
static int read_lines(const char *path, const char *title, struct wb_buf *mem, struct wb_slice *lines_out)
{
    struct wb_slice lines, value;
    uint64_t format;
    int err = wb_path_read(path, TEXT_MAX, mem);

    *lines_out = WB_SLICE_EMPTY;
    if (err == WB_E_LIMIT)
        return WB_E_NOTFOUND;
    if (err < 0)
        return err;
    lines = wb_buf_slice(mem);
    if (!wb_checked_text_take(&lines, "webbase", &value) || !wb_slice_equal(value, wb_slice_str(title)) ||
        !take_u64(&lines, "format", &format))
        return WB_E_NOTFOUND;
    if (format > FORMAT)
        return wb_fail_format(path, format, FORMAT);
    if (!wb_checked_text_open(wb_buf_slice(mem), &lines))
        return WB_E_NOTFOUND;
    wb_checked_text_take(&lines, "webbase", &value);
    wb_checked_text_take(&lines, "format", &value);
    *lines_out = lines;
    return 0;
}

/* ---- which copy this is -------------------------------------------------------------------------------------- */

static int write_owner(const char *path, const uint8_t owner[WB_VAULT_ID_BYTES])
{
    struct wb_file file = WB_FILE_INIT;
    struct wb_buf text = WB_BUF_INIT;
    struct wb_folder_birth birth;
    char id[ID_DIGITS + 1];
    int err = wb_path_unlink(path); /* a new file, with an inode of its own */

    wb_hex_encode(owner, WB_VAULT_ID_BYTES, id);
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &file);
    if (err == 0)
        err = wb_folder_birth(path, &birth);
    if (err == 0)
        err = wb_buf_printf(&text, "webbase owner\nformat %d\nid %s\ninode %" PRIu64 "\nbirth %" PRId64 "\n", FORMAT,
                            id, birth.inode, birth.birth_ns);
    if (err == 0)
        err = wb_checked_text_end(&text);
    if (err == 0)
        err = wb_file_write_at(&file, 0, text.ptr, text.len);
    if (err == 0)
        err = wb_file_sync(&file);
    if (err == 0)
        err = wb_path_sync_parent(path);
    wb_file_close(&file);
    wb_buf_release(&text);
    return err;
}

/* Reads the id. WB_E_NOTFOUND if there is none, or if the file is a copy of the one that was written. */
static int read_owner(const char *path, uint8_t owner_out[WB_VAULT_ID_BYTES])
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice lines, id;
    struct wb_folder_birth birth;
    uint64_t inode, born;
    int err = read_lines(path, "owner", &mem, &lines);

    if (err == 0)
        err = wb_folder_birth(path, &birth);
    if (err == 0 && (!wb_checked_text_take(&lines, "id", &id) || !wb_hex_decode(id, owner_out, WB_VAULT_ID_BYTES) ||
                     !take_u64(&lines, "inode", &inode) || !take_u64(&lines, "birth", &born) || lines.len != 0 ||
                     inode != birth.inode || born != (uint64_t)birth.birth_ns))
        err = WB_E_NOTFOUND;
    wb_buf_release(&mem);
    return err;
}

/* Makes sure that this directory has an id of its own. */
static int own(const char *folder, uint8_t owner_out[WB_VAULT_ID_BYTES])
{
    char *path;
    int err = in_folder(folder, "owner", &path);

    if (err == 0)
        err = read_owner(path, owner_out);
    if (err == WB_E_NOTFOUND) {
        wb_random_bytes(owner_out, WB_VAULT_ID_BYTES);
        err = write_owner(path, owner_out);
    }
    wb_free(path);
    return err;
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

static int append_numbers(const struct wb_vault_memory *memory, struct wb_buf *text)
{
    int err =
        wb_buf_printf(text,
                      "since %" PRId64 "\nterm %" PRIu64 "\nnumber %" PRIu64 "\ndeleted %" PRIu64 "\nattempt %" PRIu64
                      "\nrun %016" PRIx64 "\nshipment ",
                      memory->since_ms, memory->term, memory->number, memory->deleted, memory->attempt, memory->run);

    if (err == 0)
        err = append_object(text, &memory->shipment);
    if (err == 0)
        err = wb_buf_printf(text, "\nmarked %" PRIu64 "\nmark ", memory->mark_number);
    for (size_t i = 0; err == 0 && i < memory->mark.len; i++)
        err = wb_buf_printf(text, "%02x", (uint8_t)memory->mark.ptr[i]);
    if (err == 0)
        err = wb_buf_append_str(text, "\nstale ");
    for (size_t i = 0; err == 0 && i < memory->stale.count; i++)
        err = wb_buf_printf(text, "%s%016" PRIx64, i ? " " : "", memory->stale.items[i]);
    return err < 0 ? err : wb_buf_append_char(text, '\n');
}

int wb_vault_memory_save(const struct wb_vault_memory *memory)
{
    struct wb_buf text = WB_BUF_INIT;
    char id[ID_DIGITS + 1], *path;
    int err = in_folder(memory->folder, "memory", &path);

    WB_CHECK(memory->lock.fd >= 0);
    wb_hex_encode(memory->owner, WB_VAULT_ID_BYTES, id);
    if (err == 0)
        err = wb_buf_printf(&text, "webbase vault\nformat %d\nurl %s\nowner %s\n", FORMAT, memory->url, id);
    if (err == 0)
        err = append_numbers(memory, &text);
    if (err == 0)
        err = wb_checked_text_end(&text);
    if (err == 0)
        err = wb_path_replace(path, wb_buf_slice(&text));
    wb_buf_release(&text);
    wb_free(path);
    return err;
}

static bool take_mark(struct wb_slice *lines, struct wb_vault_memory *memory)
{
    struct wb_slice value;

    if (!take_u64(lines, "marked", &memory->mark_number) || !wb_checked_text_take(lines, "mark", &value) ||
        value.len % 2 || value.len > 2 * WB_VAULT_MARK_MAX)
        return false;
    wb_buf_clear(&memory->mark);
    if (wb_buf_reserve(&memory->mark, value.len / 2 + 1) < 0)
        return false;
    memory->mark.len = value.len / 2;
    return value.len == 0 || wb_hex_decode(value, memory->mark.ptr, memory->mark.len);
}

static bool take_stale(struct wb_slice *lines, struct wb_vault_memory *memory)
{
    struct wb_slice value;
    uint64_t run;

    if (!wb_checked_text_take(lines, "stale", &value))
        return false;
    while (value.len)
        if (!take_hex(&value, &run) || memory->stale.count == WB_VAULT_STALE_MAX ||
            wb_vec_push(&memory->stale, run) < 0)
            return false;
    return true;
}

static bool take_memory(struct wb_slice lines, struct wb_vault_memory *memory, uint8_t owner_out[WB_VAULT_ID_BYTES])
{
    struct wb_slice value;
    uint64_t since;

    if (!wb_checked_text_take(&lines, "url", &value) || !wb_slice_equal(value, wb_slice_str(memory->url)) ||
        !wb_checked_text_take(&lines, "owner", &value) || !wb_hex_decode(value, owner_out, WB_VAULT_ID_BYTES) ||
        !take_u64(&lines, "since", &since) || !take_u64(&lines, "term", &memory->term) ||
        !take_u64(&lines, "number", &memory->number) || !take_u64(&lines, "deleted", &memory->deleted) ||
        !take_u64(&lines, "attempt", &memory->attempt) || !wb_checked_text_take(&lines, "run", &value) ||
        !take_hex(&value, &memory->run) || !wb_checked_text_take(&lines, "shipment", &value) ||
        !take_object(&value, &memory->shipment))
        return false;
    memory->since_ms = (int64_t)since;
    return take_mark(&lines, memory) && take_stale(&lines, memory) && lines.len == 0;
}

static void forget(struct wb_vault_memory *memory)
{
    memory->since_ms = 0;
    memory->term = memory->number = memory->deleted = memory->mark_number = memory->attempt = memory->run = 0;
    memory->shipment = (struct wb_vault_object){.run = 0};
    wb_buf_release(&memory->mark);
    wb_vec_release(&memory->stale);
}

static int remember(struct wb_vault_memory *memory, struct wb_buf *orphan_out)
{
    struct wb_buf mem = WB_BUF_INIT;
    uint8_t owner[WB_VAULT_ID_BYTES];
    struct wb_slice lines;
    char *path;
    int err = in_folder(memory->folder, "memory", &path);

    if (err == 0)
        err = read_lines(path, "vault", &mem, &lines);
    if (err == 0 && !take_memory(lines, memory, owner)) {
        forget(memory);
    } else if (err == 0 && memcmp(owner, memory->owner, WB_VAULT_ID_BYTES) != 0) {
        *orphan_out = wb_buf_take(&memory->mark);
        forget(memory);
    }
    wb_buf_release(&mem);
    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int lock_folder(struct wb_vault_memory *memory)
{
    char *path;
    int err = in_folder(memory->folder, "lock", &path);

    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &memory->lock);
    if (err == 0)
        err = wb_file_lock(&memory->lock, false);
    if (err == WB_E_BUSY)
        err = wb_fail(WB_E_BUSY, "another process is shipping to %s: only one can at a time", memory->url);
    wb_free(path);
    return err;
}

int wb_vault_memory_open(const char *dir, const char *url, struct wb_vault_memory *memory_out,
                         struct wb_buf *orphan_out)
{
    char key[17], *folder = wb_path_join(dir, WB_VAULT_FOLDER);
    int err = folder ? 0 : WB_E_NOMEM;

    *orphan_out = WB_BUF_INIT;
    *memory_out = (struct wb_vault_memory){.lock = WB_FILE_INIT, .url = wb_strdup(url)};
    snprintf(key, sizeof key, "%016" PRIx64, wb_hash64(url, strlen(url)));
    if (err == 0)
        err = memory_out->url ? in_folder(folder, key, &memory_out->folder) : WB_E_NOMEM;
    if (err == 0)
        err = wb_path_mkdirs(memory_out->folder);
    if (err == 0)
        err = lock_folder(memory_out);
    if (err == 0)
        err = own(folder, memory_out->owner);
    if (err == 0)
        err = remember(memory_out, orphan_out);
    memory_out->whole = err == 0;
    wb_free(folder);
    return err;
}

/* Nothing has ever come of it: leaves no folder behind. */
static void remove_folder(const struct wb_vault_memory *memory)
{
    static const char *const names[] = {"parts", "status", "status.tmp", "memory", "lock"};
    struct wb_error_copy error;
    char *path = NULL;

    wb_error_save(WB_E_IO, &error);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (in_folder(memory->folder, names[i], &path) == 0)
            (void)wb_path_unlink(path);
        wb_free(path);
    }
    (void)wb_folder_remove(memory->folder);
    wb_error_restore(&error);
}

void wb_vault_memory_close(struct wb_vault_memory *memory)
{
    if (memory->whole && memory->number == 0 && memory->attempt == 0 && memory->stale.count == 0)
        remove_folder(memory);
    wb_file_close(&memory->lock);
    wb_buf_release(&memory->mark);
    wb_vec_release(&memory->stale);
    wb_free(memory->folder);
    wb_free(memory->url);
    *memory = (struct wb_vault_memory){.lock = WB_FILE_INIT};
}
