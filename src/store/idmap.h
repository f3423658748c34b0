/* idmap.h - a hash table from page ids (or other 128-bit hashes) to small numbers. */
#ifndef WB_STORE_IDMAP_H
#define WB_STORE_IDMAP_H

#include "url/url.h"

struct wb_idmap_slot {
    struct wb_pageid id;
    uint32_t value_plus_1; /* 0: empty */
};

struct wb_idmap {
    struct wb_idmap_slot *slots;
    size_t cap, count;
};

#define WB_IDMAP_INIT ((struct wb_idmap){NULL, 0, 0})

bool wb_idmap_get(const struct wb_idmap *map, struct wb_pageid id, uint32_t *value_out);
int wb_idmap_set(struct wb_idmap *map, struct wb_pageid id, uint32_t value);
void wb_idmap_clear(struct wb_idmap *map);
void wb_idmap_release(struct wb_idmap *map);

#endif
