/*
 * inside.h - the inner door of store, for the room `move` alone: the engine behind the door of everybody (store.h).
 *
 *   repo.h         an open repository: reading, writing, commits, transactions
 *   repo_base.h    update nodes go on from what the read nodes have
 *   repo_adopt.h   records and pages of another repository, as they are
 *   repo_block.h   whole blocks, as another repository has compressed them
 *   unfinished.h   the directory in which a copy is being made
 *
 * batch/batched.h is one, too: the two parts of a batch design, and the gate between readers and transfers.
 */
#ifndef WB_STORE_INSIDE_H
#define WB_STORE_INSIDE_H

#include "store/repo.h"
#include "store/repo_adopt.h"
#include "store/repo_base.h"
#include "store/repo_block.h"
#include "store/store_nodes.h"
#include "store/unfinished.h"

#endif
