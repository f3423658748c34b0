/*
 * log_nodes.c - the nodes of a repository (log_nodes.h).
 */
#include "store/log_nodes.h"
#include "base/check.h"
#include "store/log.h"

int wb_log_node_dir(struct wb_log *log, uint32_t node, const char **dir_out)
{
    WB_CHECK(log->magic == WB_LOG_MAGIC);
    WB_CHECK(node == 1);
    *dir_out = log->dir;
    return 0;
}

int wb_log_bin_of(struct wb_log *log, struct wb_pageid id, struct wb_log_bin *bin_out)
{
    WB_CHECK(log->magic == WB_LOG_MAGIC);
    (void)id;
    *bin_out = (struct wb_log_bin){.node = 1};
    return 0;
}
