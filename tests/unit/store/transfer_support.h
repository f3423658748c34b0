/* transfer_support.h - repositories of a batch design with two nodes on each side, which go and come. */
#ifndef WB_TESTS_TRANSFER_SUPPORT_H
#define WB_TESTS_TRANSFER_SUPPORT_H

#include "store_support.h"
#include "store/batch/batched.h"
#include "os/path.h"

enum { PAGES = 80, SITES = 7, READ_NODE = 2, UPDATE_NODE = WB_BATCHED_FIRST_NODE + 1 };

static const char *const designs[] = {
    "Batch[U(hash,log),R(hash,log)]",
    "Batch[U(uniform,log),R(uniform,log)]",
    "Batch[U(uniform,log),R(hash,hash)]",
    "Batch[U(hash,hashed-log),R(hash,hashed-log)]",
    "Batch[U(uniform,hashed-log),R(hash,log)]",
    "Batch[U(uniform,hash),R(uniform,hash)]",
    "Batch[U(hash,hash),R(uniform,hashed-log)]",
};

/* ---- nodes that go and come ---------------------------------------------------------------------------------- */

static inline void create_rig(const char *dir, const char *design, enum wb_store_keep keep, uint64_t number)
{
    struct wb_store_options options = {.history = {keep, number}, .nodes = {.count = 2}, .update_nodes = {.count = 2}};

    must_ok(wb_design_parse(wb_slice_str(design), &options.design));
    must_ok(wb_store_create(dir, &options));
}

static inline void node_dir(const char *dir, uint32_t node, const char *end, char path_out[DIR_MAX])
{
    char name[64];

    snprintf(name, sizeof name, "%snode%u%s", node >= WB_BATCHED_FIRST_NODE ? "update/" : "", node, end);
    path_in(dir, name, path_out);
}

static inline void take_away(const char *dir, uint32_t node)
{
    char here[DIR_MAX], away[DIR_MAX];

    node_dir(dir, node, "", here);
    node_dir(dir, node, ".away", away);
    must_ok(wb_path_rename(here, away));
}

static inline void bring_back(const char *dir, uint32_t node)
{
    char here[DIR_MAX], away[DIR_MAX];

    node_dir(dir, node, "", here);
    node_dir(dir, node, ".away", away);
    must_ok(wb_path_rename(away, here));
}

/* ---- pages --------------------------------------------------------------------------------------------------- */

static inline struct spec page_spec(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % SITES, .number = number, .time_ms = time_ms, .size = 300 + number % 5 * 50};
}

static inline struct wb_pageid page_id(uint32_t number)
{
    struct spec spec = page_spec(number, 0);

    return spec_id(&spec);
}

#endif
