/*
 * recent.c - a ring of fetches in a file.
 *
 *   head   at 0  "WBFETCH1"   8 slot bytes (4), slots (4)   16 checksum of bytes 0 to 16 (8)
 *          64  number of the newest fetch (8), checksum of it (8)
 *   slot   0 number (8)   8 checksum (4)   12 milliseconds it took (4)   16 time (8)   24 bytes (8)
 *          32 URLs left in the queue of its site, 2^32 - 1: unknown (4)   36 status (2)
 *          38 length of the URL (2), of the result (1), of the reason (1)   42 flags (1): 1 the URL was cut   43 zero
 * (5) 48 result, reason, URL, zeros
 *
 * The fetch with number n, from 1, is in slot n mod slots, and valid if and only if its checksum (of the whole slot,
 * with zeros in place of the checksum) is right and its texts fit. Writers hold the lock of the file (flock) for a few
 * microseconds: they read the number of the newest fetch, write slots, then the number. If one is killed in between,
 * the next one writes over its slots. If the number is damaged, the highest number in a valid slot takes its place.
 */
#include "crawl/recent.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"

#define RECENT_FILE "control/fetches"

enum {
    RECENT_CHECK_AT = 16,
    NUMBER_AT = 64,
    TEXTS_AT = 48,
    RESULT_MAX = 40,
    REASON_MAX = 160,
    FLAG_CUT = 1,
    FLUSH_MS = 250,
    PENDING_MAX = 4096, /* fetches that wait for another process to end writing; more are dropped */
    SLOTS_AT_ONCE = 64,
};

_Static_assert(TEXTS_AT + RESULT_MAX + REASON_MAX < WB_RECENT_SLOT_BYTES, "room for a URL is left");
_Static_assert(RESULT_MAX <= UINT8_MAX && REASON_MAX <= UINT8_MAX, "their lengths are bytes");

static const char mark[8] = "WBFETCH1";

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static uint32_t checksum(const uint8_t *bytes)
{
    uint8_t copy[WB_RECENT_SLOT_BYTES];

    memcpy(copy, bytes, sizeof copy);
    wb_put32(copy + 8, 0);
    return wb_hash32(copy, sizeof copy);
}

static void set_number(uint8_t *bytes, uint64_t number)
{
    wb_put64(bytes, number);
    wb_put32(bytes + 8, checksum(bytes));
}

static size_t put_text(uint8_t *bytes, size_t at, struct wb_slice text, size_t max)
{
    size_t len = text.len < max ? text.len : max;

    if (len)
        memcpy(bytes + at, text.ptr, len);
    return len;
}

void wb_recent_encode(const struct wb_recent_fetch *fetch, uint8_t bytes_out[WB_RECENT_SLOT_BYTES])
{
    memset(bytes_out, 0, WB_RECENT_SLOT_BYTES);
    wb_put32(bytes_out + 12, fetch->took_ms);
    wb_put64(bytes_out + 16, (uint64_t)fetch->time_ms);
    wb_put64(bytes_out + 24, fetch->bytes);
    wb_put32(bytes_out + 32, fetch->queued);
    wb_put16(bytes_out + 36, fetch->status);
    size_t result = put_text(bytes_out, TEXTS_AT, fetch->result, RESULT_MAX);
    size_t reason = put_text(bytes_out, TEXTS_AT + result, fetch->reason, REASON_MAX);
    size_t at = TEXTS_AT + result + reason;
    size_t url = put_text(bytes_out, at, fetch->url, WB_RECENT_SLOT_BYTES - at);
    wb_put16(bytes_out + 38, (uint16_t)url);
    bytes_out[40] = (uint8_t)result;
    bytes_out[41] = (uint8_t)reason;
    bytes_out[42] = fetch->cut || url < fetch->url.len ? FLAG_CUT : 0;
    set_number(bytes_out, fetch->number);
}

bool wb_recent_decode(const uint8_t bytes[WB_RECENT_SLOT_BYTES], struct wb_recent_fetch *fetch_out)
{
    size_t url = wb_get16(bytes + 38), result = bytes[40], reason = bytes[41];
    const char *texts = (const char *)bytes + TEXTS_AT;

    *fetch_out = (struct wb_recent_fetch){.number = wb_get64(bytes)};
    if (fetch_out->number == 0 || wb_get32(bytes + 8) != checksum(bytes) ||
        url + result + reason > WB_RECENT_SLOT_BYTES - TEXTS_AT)
        return false;
    fetch_out->took_ms = wb_get32(bytes + 12);
    fetch_out->time_ms = (int64_t)wb_get64(bytes + 16);
    fetch_out->bytes = wb_get64(bytes + 24);
    fetch_out->queued = wb_get32(bytes + 32);
    fetch_out->status = wb_get16(bytes + 36);
    fetch_out->cut = bytes[42] & FLAG_CUT;
    fetch_out->result = wb_slice(texts, result);
    fetch_out->reason = wb_slice(texts + result, reason);
    fetch_out->url = wb_slice(texts + result + reason, url);
    return true;
}

static uint64_t slot_at(uint64_t number)
{
    return WB_RECENT_HEAD_BYTES + number % WB_RECENT_SLOTS * WB_RECENT_SLOT_BYTES;
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static void make_head(uint8_t head[RECENT_CHECK_AT + 8])
{
    memcpy(head, mark, sizeof mark);
    wb_put32(head + 8, WB_RECENT_SLOT_BYTES);
    wb_put32(head + 12, WB_RECENT_SLOTS);
    wb_put64(head + RECENT_CHECK_AT, wb_hash64(head, RECENT_CHECK_AT));
}

/* 1: ours; 0: none, or damaged; WB_E_NEWER: of another format. */
static int check_head(const struct wb_file *file)
{
    uint8_t head[RECENT_CHECK_AT + 8], good[RECENT_CHECK_AT + 8];
    size_t got;
    int err = wb_file_read_at(file, 0, head, sizeof head, &got);

    make_head(good);
    if (err < 0 || got < sizeof head)
        return err;
    if (memcmp(head, good, sizeof head) == 0)
        return 1;
    unsigned format = wb_mark_format((const char *)head, mark);
    bool sound = wb_get64(head + RECENT_CHECK_AT) == wb_hash64(head, RECENT_CHECK_AT);
    return sound && format > 1 ? wb_fail_format(file->path, format, 1) : 0;
}

static int find_newest(const struct wb_file *file, uint64_t *number_out)
{
    uint8_t bytes[SLOTS_AT_ONCE * WB_RECENT_SLOT_BYTES];
    struct wb_recent_fetch fetch;
    size_t got = sizeof bytes;
    int err = 0;

    *number_out = 0;
    for (uint64_t at = WB_RECENT_HEAD_BYTES; err == 0 && got == sizeof bytes && at < slot_at(WB_RECENT_SLOTS - 1);
         at += got) {
        err = wb_file_read_at(file, at, bytes, sizeof bytes, &got);
        for (size_t i = 0; err == 0 && i + WB_RECENT_SLOT_BYTES <= got; i += WB_RECENT_SLOT_BYTES)
            if (wb_recent_decode(bytes + i, &fetch) && slot_at(fetch.number) == at + i && fetch.number > *number_out)
                *number_out = fetch.number;
    }
    return err;
}

/* The number of the newest fetch; 0: there is none. */
static int read_newest(const struct wb_file *file, uint64_t *number_out)
{
    uint8_t bytes[16];
    size_t got;
    int err = wb_file_read_at(file, NUMBER_AT, bytes, sizeof bytes, &got);

    *number_out = 0;
    if (err < 0)
        return err;
    if (got < sizeof bytes || wb_get64(bytes + 8) != wb_hash64(bytes, 8))
        return find_newest(file, number_out);
    *number_out = wb_get64(bytes);
    return 0;
}

static int write_newest(const struct wb_file *file, uint64_t number)
{
    uint8_t bytes[16];

    wb_put64(bytes, number);
    wb_put64(bytes + 8, wb_hash64(bytes, 8));
    return wb_file_write_at(file, NUMBER_AT, bytes, sizeof bytes);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void wb_recent_open(const char *dir, struct wb_recent *recent_out)
{
    uint8_t head[RECENT_CHECK_AT + 8];
    char *folder = wb_path_join(dir, "control"), *path = wb_path_join(dir, RECENT_FILE);
    int err = folder && path ? 0 : WB_E_NOMEM;

    *recent_out = (struct wb_recent){.file = WB_FILE_INIT};
    if (err == 0 && wb_path_kind(folder) == WB_PATH_NONE)
        err = wb_path_mkdirs(folder);
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &recent_out->file);
    if (err == 0)
        err = check_head(&recent_out->file);
    if (err == 0) {
        make_head(head); /* that of every file of this format: two processes may both write it */
        err = wb_file_write_at(&recent_out->file, 0, head, sizeof head);
    }
    if (err < 0)
        wb_recent_close(recent_out);
    wb_free(folder);
    wb_free(path);
}

void wb_recent_close(struct wb_recent *recent)
{
    wb_file_close(&recent->file);
    wb_buf_release(&recent->slots);
}

void wb_recent_add(struct wb_recent *recent, const struct wb_recent_fetch *fetch)
{
    uint8_t bytes[WB_RECENT_SLOT_BYTES];

    if (recent->file.fd < 0 || recent->slots.len >= PENDING_MAX * WB_RECENT_SLOT_BYTES)
        return;
    wb_recent_encode(fetch, bytes);
    (void)wb_buf_append(&recent->slots, bytes, sizeof bytes); /* without memory it is left out */
}

/* Writes slots with numbers from `next` on. */
static int write_slots(const struct wb_file *file, uint64_t next, char *slots, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count; i++)
        set_number((uint8_t *)slots + i * WB_RECENT_SLOT_BYTES, next + i);
    while (count && err == 0) {
        uint64_t to_end = WB_RECENT_SLOTS - next % WB_RECENT_SLOTS;
        size_t some = count < to_end ? count : (size_t)to_end;
        err = wb_file_write_at(file, slot_at(next), slots, some * WB_RECENT_SLOT_BYTES);
        next += some;
        slots += some * WB_RECENT_SLOT_BYTES;
        count -= some;
    }
    return err;
}

void wb_recent_flush(struct wb_recent *recent, int64_t now_ms)
{
    size_t count = recent->slots.len / WB_RECENT_SLOT_BYTES;
    uint64_t newest;

    if (count == 0 || (now_ms >= recent->written_ms && now_ms - recent->written_ms < FLUSH_MS))
        return;
    WB_CHECK(recent->file.fd >= 0 && recent->slots.len % WB_RECENT_SLOT_BYTES == 0);
    if (wb_file_lock(&recent->file, false) < 0)
        return;
    int err = read_newest(&recent->file, &newest);
    if (err == 0)
        err = write_slots(&recent->file, newest + 1, recent->slots.ptr, count);
    if (err == 0)
        (void)write_newest(&recent->file, newest + count);
    wb_file_unlock(&recent->file);
    recent->written_ms = now_ms;
    wb_buf_clear(&recent->slots); /* also after an error: nothing depends on it */
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int open_for_reading(const char *dir, struct wb_file *file_out)
{
    char *path = wb_path_join(dir, RECENT_FILE);
    int err = path ? wb_file_open(path, WB_FILE_READ, file_out) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

/* Fetches with numbers from low to high, the newest first. */
static int walk_back(const struct wb_file *file, uint64_t low, uint64_t high, wb_recent_each each, void *context)
{
    uint8_t bytes[SLOTS_AT_ONCE * WB_RECENT_SLOT_BYTES];
    struct wb_recent_fetch fetch;
    size_t got;
    int err = 0;

    WB_CHECK(low > 0);
    while (high >= low && err == 0) {
        uint64_t count = high % WB_RECENT_SLOTS + 1;
        count = count < high - low + 1 ? count : high - low + 1;
        count = count < SLOTS_AT_ONCE ? count : SLOTS_AT_ONCE;
        err = wb_file_read_at(file, slot_at(high - count + 1), bytes, (size_t)count * WB_RECENT_SLOT_BYTES, &got);
        for (uint64_t i = 0; i < count && err == 0; i++) {
            size_t at = (size_t)(count - 1 - i) * WB_RECENT_SLOT_BYTES;
            if (at + WB_RECENT_SLOT_BYTES <= got && wb_recent_decode(bytes + at, &fetch) && fetch.number == high - i)
                err = each(context, &fetch);
        }
        high -= count;
    }
    return err;
}

int wb_recent_read(const char *dir, uint64_t after, wb_recent_each each, void *context, uint64_t *newest_out)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t low = after + 1;

    *newest_out = 0;
    int err = open_for_reading(dir, &file);
    if (err == 0)
        err = check_head(&file);
    if (err >= 0)
        err = read_newest(&file, newest_out);
    if (*newest_out > WB_RECENT_SLOTS && low < *newest_out - WB_RECENT_SLOTS + 1)
        low = *newest_out - WB_RECENT_SLOTS + 1;
    if (err == 0 && after < *newest_out)
        err = walk_back(&file, low, *newest_out, each, context);
    wb_file_close(&file);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* ---- verify ------------------------------------------------------------------------------------------------------ */

static bool is_zero(const uint8_t *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Only what is at most as new as the head says must be whole: a writer may be at work, or have died, after that. */
static int check_slots(const struct wb_file *file, uint64_t newest, wb_journal_found found, void *context)
{
    uint8_t bytes[SLOTS_AT_ONCE * WB_RECENT_SLOT_BYTES];
    struct wb_recent_fetch fetch;
    size_t got = sizeof bytes;
    int err = 0;

    for (uint64_t slot = 0; err == 0 && got == sizeof bytes && slot < WB_RECENT_SLOTS; slot += SLOTS_AT_ONCE) {
        err = wb_file_read_at(file, slot_at(slot), bytes, sizeof bytes, &got);
        for (size_t i = 0; err == 0 && (i + 1) * WB_RECENT_SLOT_BYTES <= got; i++) {
            const uint8_t *at = bytes + i * WB_RECENT_SLOT_BYTES;
            bool sound = wb_recent_decode(at, &fetch) ? fetch.number % WB_RECENT_SLOTS == slot + i
                                                      : is_zero(at, WB_RECENT_SLOT_BYTES);
            bool next = (slot + i + WB_RECENT_SLOTS - newest % WB_RECENT_SLOTS) % WB_RECENT_SLOTS <= PENDING_MAX;
            if (!sound && !(next && slot + i != newest % WB_RECENT_SLOTS))
                found(context, true, RECENT_FILE, slot_at(slot + i), "a line is damaged, and is left out");
        }
    }
    return err;
}

int wb_recent_verify(const char *dir, wb_journal_found found, void *context)
{
    uint8_t head[WB_RECENT_HEAD_BYTES];
    struct wb_file file = WB_FILE_INIT;
    uint64_t newest = 0;
    size_t got = 0;

    int err = open_for_reading(dir, &file);
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    int good = check_head(&file);
    if (good == WB_E_NEWER)
        found(context, false, RECENT_FILE, 0, wb_error_message());
    err = wb_file_read_at(&file, 0, head, sizeof head, &got);
    if (err == 0 && good == 0 && !is_zero(head, got))
        found(context, true, RECENT_FILE, 0, "the head is damaged; the next crawl writes it again");
    else if (err == 0 && good == 1 && (err = read_newest(&file, &newest)) == 0)
        err = check_slots(&file, newest, found, context);
    wb_file_close(&file);
    return err;
}
