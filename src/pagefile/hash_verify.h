/*
 * hash_verify.h - checks bucket files (wb_pagefile_kind.check).
 */
#ifndef WB_PAGEFILE_HASH_VERIFY_H
#define WB_PAGEFILE_HASH_VERIFY_H

#include "place/place.h"
#include "catalog/catalog.h"

/* What the checks need, and where they report to. */
struct wb_hash_check {
    struct wb_catalog *catalog;
    const uint8_t *repo_id;
    uint64_t content_seed;
    bool sound;     /* the catalog is not damaged: pages are looked up in it */
    uint64_t pages; /* output: latest versions that were found */
    uint64_t done;  /* output: bytes that were read */
    void *context;  /* of the functions */
    void (*report)(void *context, bool problem, const char *file, uint64_t offset, const char *message);
    int (*node)(void *context, uint32_t number, struct wb_node **node_out);
    int (*sealed)(void *context, const char *file, uint64_t commit); /* the file was sealed at this commit */
    bool (*progress)(void *context, uint64_t done);                  /* false: to be stopped */
};

/* Checks the file of a row. Damage is reported; other errors are returned. */
int wb_hash_check(struct wb_hash_check *check, const struct wb_catalog_segment *row);

#endif
