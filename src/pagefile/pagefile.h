/*
 * pagefile.h - the door of pagefile: how the bytes of pages lie in files.
 *
 * An organisation is one struct wb_pagefile_kind: a table of functions that place, write, read, check and rewrite the
 * records of pages, and a few facts. Nobody outside this room and `place` asks which organisation it is. There are two
 * families of files:
 *
 *   segments   append-only, pages in compressed blocks             log, hashed-log     segment_kind.c
 *   buckets    in the order of page ids, changed in place          hash                hash_store.c
 *
 * What the catalog knows about a file is its row in table segments. Which versions a page has is not decided here: a
 * commit (store/repo_commit.c) tells what is to be stored, and which places are needed any more.
 *
 * The life of a record in a writer:
 *   1 taken      added to the writer's puts: it is part of the current group
 *   2 in flight  the group is full, and worker threads compute digests and compress it
 *   3 placed     its place is known: segments, when its block was appended; buckets, in the commit itself
 *   4 committed  the files are synced and the catalog changed: readers see the page
 * A crash before 4 loses it completely. The next writer removes what is left.
 *
 * Threads: everything here runs in the thread that owns the handle, except for the workers (append_flush.c,
 * hash_stage.c, hash_press.c), and sources of scans, which have their own files.
 */
#ifndef WB_PAGEFILE_PAGEFILE_H
#define WB_PAGEFILE_PAGEFILE_H

#include "pagefile/append_block.h"
#include "pagefile/append_sync.h"
#include "pagefile/bucket_aside.h"
#include "pagefile/hash_verify.h"
#include "pagefile/pagefile_files.h"
#include "pagefile/segment_live.h"
#include "pagefile/segment_tail.h"
#include "pagefile/sorted_source.h"

#endif
