/*
 * unfinished.h - the directory in which a copy of a repository is being made, by a conversion (move) or from files and
 * rows (store_loader.c).
 *
 *   a new or empty directory -> mark -> everything else -> webbase.repo -> the mark goes
 *
 * As long as there is no webbase.repo, nobody can open it, and the mark says why. A process that dies in between
 * leaves the mark, and the next copy into the same directory removes what is there and starts again.
 */
#ifndef WB_STORE_UNFINISHED_H
#define WB_STORE_UNFINISHED_H

#include "os/file.h"
#include "place/init_options.h"

#include <stdint.h>

/*
 * Checks that a copy can be made there, without changing anything: the directory is new, empty, or an unfinished copy
 * without anything else in it, and neither it nor one above it is a repository or a node. WB_E_INVALID.
 */
int wb_unfinished_check(const char *dir, bool *unfinished_out);

/* Makes the directory and locks it, so that two copies at once do not meet there. WB_E_BUSY. */
int wb_unfinished_lock(const char *dir, struct wb_file *lock_out);

/* Removes what an unfinished copy has, also on its nodes elsewhere; its mark stays. */
int wb_unfinished_clear(const char *dir);

/* Writes the mark. id: of the repository that it is to become; options: or NULL, if all nodes are inside. */
int wb_unfinished_mark(const char *dir, const uint8_t *id, const struct wb_store_options *options);

/* It is a repository now: removes the mark. */
int wb_unfinished_end(const char *dir);

#endif
