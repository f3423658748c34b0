/*
 * block_sound.c - compares the frames of a block with their checksums, without decompressing anything. Code that copies
 * blocks as they are asks this first, so that damage is not passed on without a word. It changes nothing.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "block/block.h"

bool wb_block_frame_is_sound(const struct wb_block_index *index, const char *block, uint32_t frame)
{
    WB_CHECK(frame < index->frames.count);

    const struct wb_block_frame *f = &index->frames.items[frame];

    WB_CHECK(f->at <= index->head.bytes && f->stored_bytes <= index->head.bytes - f->at); /* wb_block_index_read() */
    return wb_hash32(block + f->at, f->stored_bytes) == f->check;
}

enum frame_state { FRAME_UNKNOWN, FRAME_SOUND, FRAME_DAMAGED, FRAME_TOLD };

/* Checks a frame once, and counts it when it turns out to be damaged. */
static bool look_at(const struct wb_block_index *index, const char *block, uint32_t frame, uint8_t *states,
                    struct wb_block_damage *damage)
{
    WB_CHECK(frame < index->frames.count);
    if (states[frame] == FRAME_UNKNOWN)
        states[frame] = wb_block_frame_is_sound(index, block, frame) ? FRAME_SOUND : FRAME_DAMAGED;
    if (states[frame] == FRAME_DAMAGED) {
        uint64_t at = index->frames.items[frame].at;
        damage->at = damage->frames == 0 || at < damage->at ? at : damage->at;
        damage->frames++;
        states[frame] = FRAME_TOLD;
    }
    return states[frame] == FRAME_SOUND;
}

int wb_block_check(const struct wb_block_index *index, const char *block, const bool *dead,
                   struct wb_block_damage *damage_out)
{
    uint8_t *states = wb_alloc_zero(index->frames.count, sizeof *states);

    WB_CHECK(index->frames.count > 0);
    *damage_out = (struct wb_block_damage){0};
    if (!states)
        return WB_E_NOMEM;
    for (size_t i = 0; i < index->frames.count; i++) {
        const struct wb_block_frame *frame = &index->frames.items[i];
        uint32_t pages = 0;
        bool sound = true;
        for (size_t k = frame->first; k < frame->first + frame->count; k++)
            pages += !(dead && dead[k]) && !(index->entries.items[k].flags & WB_BLOCK_ENTRY_DEAD);
        for (int64_t f = pages ? (int64_t)i : -1; f >= 0; f = index->frames.items[f].base)
            sound = look_at(index, block, (uint32_t)f, states, damage_out) && sound;
        damage_out->pages += sound ? 0 : pages;
    }
    wb_free(states);
    WB_CHECK((damage_out->frames == 0) == (damage_out->pages == 0));
    return damage_out->frames == 0;
}
