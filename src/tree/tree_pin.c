/*
 * tree_pin.c - numbers that readers pin, for writers to see (tree.h). A pin is a shared lock on a
 * byte far beyond the end of the file, like the lock of a reader on its state.
 */
#include "os/bytelock.h"
#include "tree/tree_own.h"

#include <unistd.h>

/* tree.c has its locks from 2^46 on, up to less than 2^61. */
#define LOCK_PINS ((uint64_t)1 << 61)
#define NUMBER_MAX ((uint64_t)1 << 60)

enum { SETTLE_PAUSE_US = 1000 };

int wb_tree_pin(struct wb_tree *tree, uint64_t number)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(number < NUMBER_MAX);
    WB_CHECK(tree->pid == getpid());
    return wb_bytelock_share(&tree->file, LOCK_PINS + number);
}

void wb_tree_unpin(struct wb_tree *tree, uint64_t number)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(number < NUMBER_MAX);
    wb_bytelock_release(&tree->file, LOCK_PINS + number);
}

int wb_tree_pinned(struct wb_tree *tree, uint64_t from, uint64_t *number_out)
{
    uint64_t at;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(from < NUMBER_MAX);
    *number_out = 0;
    int found = wb_bytelock_first(&tree->file, LOCK_PINS + from, LOCK_PINS + NUMBER_MAX, &at);
    if (found > 0)
        *number_out = at - LOCK_PINS;
    return found;
}

int wb_tree_pins_settle(struct wb_tree *tree)
{
    struct wb_tree_state before, now;
    int err = wb_tree_look(tree, &before);

    /*
     * At most one transaction can be under way that began before our pins. It has ended if nobody is
     * writing now, or if something was committed since.
     */
    while (err == 0) {
        int busy = wb_tree_writer_busy(tree);
        if (busy <= 0)
            return busy;
        err = wb_tree_look(tree, &now);
        if (err == 0 && now.txn != before.txn)
            return 0;
        usleep(SETTLE_PAUSE_US);
    }
    return err;
}
