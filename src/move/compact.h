/* compact.h - frees the space of dead pages in one part of a repository (wb_move_compact()). */
#ifndef WB_MOVE_COMPACT_H
#define WB_MOVE_COMPACT_H

#include "move/move.h"

int wb_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
               void *found_context, struct wb_move_compact_counts *counts_out);

#endif
