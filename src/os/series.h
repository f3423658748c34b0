/*
 * series.h - numbered directories, of which the highest counts: how a whole state on disk is replaced with one rename.
 *
 *   root/lock                 locked by the writer; readers lock the byte with the number of theirs (bytelock.h)
 *   root/00000003/            a state; the highest number is the newest. An older one exists as long as it is held
 *   root/00000003/hold-NAME   an empty file: somebody of that name holds it
 *   root/new-XXXXXXXX/        being written. If its writer dies, the next writer removes it
 *   root/old-00000002/        being removed. If its writer dies, the next writer continues
 *
 * A directory that is not the newest exists as long as it is held:
 *   by an open handle   a shared lock on the byte of its number in root/lock. It ends with the process
 *   by a name           an empty file hold-NAME in it. It stays until it is released
 *
 * A writer takes the byte exclusively, looks for names, and renames the directory in one step. A process that wants to
 * hold it takes the shared lock first and looks for the directory afterwards. So a directory is either held or gone,
 * whatever dies in between. The editions of webdb and the generations of the index are series. This file knows nothing
 * about what is in a directory; there are only files in it.
 */
#ifndef WB_OS_SERIES_H
#define WB_OS_SERIES_H

#include "os/file.h"

#define WB_SERIES_LOCK "lock"

/* The number of the newest directory; 0 if there is none, or no root. */
int wb_series_newest(const char *root, uint32_t *number_out);

/* "root/00000003", from the heap; NULL when out of memory. */
char *wb_series_path(const char *root, uint32_t number);

/* ---- holding --------------------------------------------------------------------------------- */

/*
 * Holds a directory as long as the file is open: a writer does not remove it. Whether it exists must be found out
 * afterwards. If there is no file to lock, no writer has ever been here, and the file stays closed.
 */
int wb_series_share(const char *root, uint32_t number, struct wb_file *lock_out);

#define WB_HOLDER_MAX 100

/*
 * Holds a directory under a name until it is released: durable, and whatever happens to the process. Holding one twice
 * is the same as once. WB_E_NOTFOUND, without a message, if there is no such directory; WB_E_INVALID if the name is
 * empty, too long, or has anything but letters, digits, '.', '_' and '-'.
 */
int wb_series_hold(const char *root, uint32_t number, const char *holder);

/* Durable too. WB_E_NOTFOUND, without a message, if this name does not hold it. */
int wb_series_release(const char *root, uint32_t number, const char *holder);

/* Called for each hold, with the time at which it began. Anything but 0 ends the listing. */
typedef int (*wb_series_held)(void *context, uint32_t number, const char *holder, int64_t since_ms);
int wb_series_holds(const char *root, wb_series_held each, void *context);

/* ---- writing --------------------------------------------------------------------------------- */

/* Creates the root and takes the writer's lock, which lasts until the file is closed. WB_E_BUSY if another has it. */
int wb_series_lock(const char *root, struct wb_file *lock_out);

/* Makes a directory for a new state: root/new-XXXXXXXX. *path_out is from the heap. */
int wb_series_begin(const char *root, char **path_out);

/*
 * The new directory, complete and with all its files synced, becomes the state of this number, with one rename. If
 * this fails, *renamed_out says whether it counts nevertheless.
 */
int wb_series_publish(const char *root, const char *fresh, uint32_t number, bool *renamed_out);

/*
 * Removes what dead writers have left, and every directory with a number below keep that nobody holds. The caller has
 * the writer's lock.
 */
int wb_series_clean(const char *root, uint32_t keep, const struct wb_file *lock);

/* Removes a directory and the files in it. It is not an error if there is none. */
int wb_series_remove(const char *path);

#endif
