/* which.c - turns the words of a command line into page ids and numbers of snapshots. It prints nothing. */
#include "cli/which.h"
#include "base/codec.h"
#include "base/error.h"

/* A URL has a scheme, so none looks like an id. */
int wb_which_page(const char *text, struct wb_pageid *id_out)
{
    uint8_t bytes[WB_PAGEID_BYTES];
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;
    int err;

    *id_out = (struct wb_pageid){0, 0};
    if (wb_hex_decode(wb_slice_str(text), bytes, sizeof bytes)) {
        *id_out = wb_pageid_get(bytes);
        return 0;
    }
    err = wb_url_parse(wb_slice_str(text), NULL, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        *id_out = wb_pageid_of_key(wb_buf_slice(&key));
    wb_buf_release(&key);
    wb_url_release(&url);
    return err;
}

int wb_which_snapshot(struct wb_store *store, const char *text, uint32_t *number_out)
{
    struct wb_store_snapshot snapshot = {0};

    *number_out = 0;
    int err = wb_store_snapshot_find(store, wb_slice_str(text), &snapshot);
    if (err == 0)
        *number_out = snapshot.number;
    wb_store_snapshot_release(&snapshot);
    return err;
}
