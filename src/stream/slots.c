/* slots.c - the bytes of the file of a named stream (slots.h); docs/formats/stream.md is the reference for them. */
#include "stream/slots.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "os/clock.h"
#include "os/path.h"

/*
 * A slot has 16 sectors, each with a checksum of its own, because disks write sectors as a whole. So a slot that was
 * being written when the power failed can be told from one that is damaged.
 *
 *     0    8  "WBNAMED1"
 *     8    8  sequence, the same in all sectors of a slot
 *    16  488  a part of the state
 *   504    8  hash of everything before
 *
 * The state, which is divided over the sectors:
 *
 *     0    8  saved at, in ms
 *     8    1  1: finished
 *     9    3  zero
 *    12    4  length of the token
 *    16       the token, then zeros
 */
enum { SECTOR_BYTES = 512, SECTORS = 16, AT_SEQUENCE = 8, AT_PART = 16, AT_CHECK = 504 };
enum { PART_BYTES = AT_CHECK - AT_PART, STATE_BYTES = SECTORS * PART_BYTES };
enum { AT_SAVED = 0, AT_FINISHED = 8, AT_LENGTH = 12, AT_TOKEN = 16 };
enum { SLOTS = 3 };
_Static_assert((int)WB_SLOT_BYTES == SECTORS * SECTOR_BYTES, "a slot is made of sectors");
_Static_assert(AT_TOKEN + WB_TOKEN_TEXT_MAX <= STATE_BYTES, "a token fits");
static const char magic[8] = "WBNAMED1";

/* What the sectors of a slot are, one by one. */
struct slot_look {
    unsigned sound, empty;  /* sectors; the others are damaged */
    unsigned format;        /* another one that an intact sector has; 0: none */
    unsigned damaged;       /* the first one that is */
    uint64_t first, newest; /* sequences: of the first sound one, and the greatest */
    bool mixed;             /* they are not all the same */
};

static bool is_zero(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static struct slot_look look_at(const char *slot)
{
    struct slot_look look = {.damaged = SECTORS};

    for (unsigned i = 0; i < SECTORS; i++) {
        const char *sector = slot + i * (size_t)SECTOR_BYTES;
        bool intact = wb_get64(sector + AT_CHECK) == wb_hash64(sector, AT_CHECK);
        unsigned format = intact ? wb_mark_format(sector, magic) : 0;
        look.format = format > 1 ? format : look.format;
        if (is_zero(sector, SECTOR_BYTES)) {
            look.empty++;
        } else if (format == 1) {
            uint64_t sequence = wb_get64(sector + AT_SEQUENCE);
            look.first = look.sound ? look.first : sequence;
            look.mixed = look.mixed || sequence != look.first;
            look.newest = sequence > look.newest ? sequence : look.newest;
            look.sound++;
        } else if (look.damaged == SECTORS) {
            look.damaged = i;
        }
    }
    return look;
}

/* A whole slot: takes its state, unless there is a newer one. */
static void take_slot(const char *slot, unsigned number, uint64_t sequence, struct wb_slots *slots)
{
    char bytes[STATE_BYTES];

    WB_CHECK(number < SLOTS);
    for (unsigned i = 0; i < SECTORS; i++)
        memcpy(bytes + i * (size_t)PART_BYTES, slot + i * (size_t)SECTOR_BYTES + AT_PART, PART_BYTES);
    uint32_t len = wb_get32(bytes + AT_LENGTH);
    if (len > WB_TOKEN_TEXT_MAX)
        return;
    if (number != WB_SLOT_QUICK && sequence >= slots->synced_sequence) {
        slots->synced_slot = number;
        slots->synced_sequence = sequence;
    }
    if (slots->valid && sequence < slots->sequence)
        return;
    slots->valid = true;
    slots->finished = bytes[AT_FINISHED] == 1;
    slots->sequence = sequence;
    slots->saved_ms = (int64_t)wb_get64(bytes + AT_SAVED);
    slots->token_bytes = len;
    memcpy(slots->token, bytes + AT_TOKEN, len);
}

static int read_slot(const char *path, const char *slot, unsigned number, struct wb_slots *slots)
{
    struct slot_look look = look_at(slot);

    if (look.format)
        return wb_fail_format(path, look.format, 1);
    if (look.empty == SECTORS) /* never written */
        return 0;
    if (look.sound == SECTORS && !look.mixed) {
        take_slot(slot, number, look.first, slots);
    } else if (look.damaged < SECTORS) {
        uint64_t lost = look.sound ? look.newest : UINT64_MAX;
        slots->damaged_at = slots->damaged ? slots->damaged_at
                                           : number * (uint64_t)WB_SLOT_BYTES + look.damaged * (uint64_t)SECTOR_BYTES;
        slots->lost = !slots->damaged || lost > slots->lost ? lost : slots->lost;
        slots->damaged = true;
    } else {
        slots->torn_at = number * (uint64_t)WB_SLOT_BYTES;
        slots->torn = true;
    }
    return 0;
}

bool wb_slots_set_back(const struct wb_slots *slots)
{
    return slots->valid && slots->damaged && slots->lost > slots->sequence;
}

uint64_t wb_slots_newest(const struct wb_slots *slots)
{
    bool known = slots->damaged && slots->lost != UINT64_MAX && slots->lost > slots->sequence;

    return known ? slots->lost : slots->sequence + 1;
}

void wb_slots_fill(uint64_t sequence, struct wb_slice token, bool finished, char slot_out[WB_SLOT_BYTES])
{
    char bytes[STATE_BYTES] = {0};

    WB_CHECK(token.len <= WB_TOKEN_TEXT_MAX);
    wb_put64(bytes + AT_SAVED, (uint64_t)wb_clock_wall_ms());
    bytes[AT_FINISHED] = finished;
    wb_put32(bytes + AT_LENGTH, (uint32_t)token.len);
    memcpy(bytes + AT_TOKEN, token.ptr, token.len);
    for (unsigned i = 0; i < SECTORS; i++) {
        char *sector = slot_out + i * (size_t)SECTOR_BYTES;
        memcpy(sector, magic, sizeof magic);
        wb_put64(sector + AT_SEQUENCE, sequence);
        memcpy(sector + AT_PART, bytes + i * (size_t)PART_BYTES, PART_BYTES);
        wb_put64(sector + AT_CHECK, wb_hash64(sector, AT_CHECK));
    }
}

int wb_slots_read(const char *path, struct wb_slots *slots_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int err = wb_path_read(path, WB_SLOT_BYTES * SLOTS, &bytes);

    *slots_out = (struct wb_slots){.valid = false};
    for (size_t at = 0; err == 0 && at + WB_SLOT_BYTES <= bytes.len; at += WB_SLOT_BYTES)
        err = read_slot(path, bytes.ptr + at, (unsigned)(at / WB_SLOT_BYTES), slots_out);
    wb_buf_release(&bytes);
    return err == WB_E_LIMIT ? 0 : err;
}
