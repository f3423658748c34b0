/*
 * difference.h - what changed between two texts. Part of the door of replay (replay.h includes it).
 *
 * The texts are split into words, each with the white space behind it, and compared with Myers's algorithm ("An O(ND)
 * Difference Algorithm and Its Variations", 1986; its linear-space variation). Beyond a fixed amount of work, whole
 * lines are compared instead, and beyond that, everything between the equal fronts and ends counts as changed. The
 * result is then longer than necessary, but never wrong: the runs always give both texts.
 */
#ifndef WB_REPLAY_DIFFERENCE_H
#define WB_REPLAY_DIFFERENCE_H

#include "base/buf.h"
#include "base/vec.h"

enum wb_difference_kind {
    WB_DIFFERENCE_SAME,
    WB_DIFFERENCE_REMOVED, /* only in the old text... */
    WB_DIFFERENCE_ADDED,   /* ...or only in the new one */
};

/* Neighbouring runs are of different kinds; where text was replaced, what was removed comes first. */
struct wb_difference_run {
    enum wb_difference_kind kind;
    struct wb_slice text; /* part of the new text if it was added, otherwise of the old one */
};

struct wb_difference WB_VEC_OF(struct wb_difference_run);
#define WB_DIFFERENCE_INIT WB_VEC_INIT

/* Longer texts are refused (WB_E_LIMIT). */
#define WB_DIFFERENCE_BYTES_MAX (16u << 20)

/* Whether a character of Chinese or Japanese begins here: such text has no blanks between words. */
bool wb_difference_is_wide(const char *p, const char *end);

/*
 * Compares two texts. The runs borrow from them. All runs except the added ones are the old text, all except
 * the removed ones the new one. Memory is proportional to the texts; time, too, apart from a fixed amount.
 */
int wb_difference_of(struct wb_slice old_text, struct wb_slice new_text, struct wb_difference *difference_out);
void wb_difference_release(struct wb_difference *difference);

#endif
