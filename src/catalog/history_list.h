/* history_list.h - changing the lists of a history, for history.c and history_keep.c only. */
#ifndef WB_CATALOG_HISTORY_LIST_H
#define WB_CATALOG_HISTORY_LIST_H

#include "base/check.h"
#include "catalog/history.h"

/* What is always true: ghosts come first, and every version has a capture. */
static inline void wb_history_check(const struct wb_history *history)
{
    WB_CHECK(history->ghosts <= history->versions.count);
    WB_CHECK(history->versions.count <= history->times.count);
    WB_CHECK(history->epochs.count == history->times.count);
}

/* Makes room for so many more versions and captures, and for all contents that can then be forgotten. */
int wb_history_reserve(struct wb_history *history, size_t versions, size_t captures);

/* There must be room for what these add. */
void wb_history_insert_version(struct wb_history *history, size_t at, const struct wb_history_version *version);

/* Puts a capture at index `at`, into version number `owner`; the versions after it move on. */
void wb_history_insert_time(struct wb_history *history, size_t at, size_t owner, int64_t time_ms, uint64_t epoch);

/* Takes away the captures [from, to) of version number `owner`. */
void wb_history_remove_times(struct wb_history *history, size_t owner, size_t from, size_t to);

/* Removes a version and its captures. */
void wb_history_remove_version(struct wb_history *history, size_t at);

/* Whether the content was seen at the time of the floor and is forgotten. */
bool wb_history_was_forgotten(const struct wb_history *history, uint64_t content);

/* Where the captures begin that take part: those of ghosts do not. */
size_t wb_history_first_time(const struct wb_history *history);

/* The number of the version that has the capture with this index. */
size_t wb_history_owner_of(const struct wb_history *history, size_t time);

/* A version that is not the latest becomes a ghost before its time: it moves to the end of the other ghosts. */
void wb_history_make_ghost(struct wb_history *history, size_t index);

/*
 * A version is about to be divided, joined, or to lose captures. If somebody sees it, a ghost keeps its form for them,
 * and the version arrives once more: 1, and everything behind the ghosts has moved on by one version and *captures_out
 * captures. Otherwise 0, or an error.
 */
int wb_history_freeze(struct wb_history *history, size_t index, const struct wb_history_capture *capture,
                      size_t *captures_out);

#endif
