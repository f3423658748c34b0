/* assets.h - files that are part of the program: styles, scripts, descriptions. scripts/embed makes the table. */
#ifndef WB_SERVE_ASSETS_H
#define WB_SERVE_ASSETS_H

#include "base/slice.h"

struct wb_asset {
    const char *name, *type, *etag;
    struct wb_slice bytes;
};

/* In the order of names; the last one has no name. */
extern const struct wb_asset wb_assets[];

/* NULL if there is no such file. */
const struct wb_asset *wb_asset_find(struct wb_slice name);

#endif
