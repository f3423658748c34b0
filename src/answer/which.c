/* which.c - turns the words of a question into page ids and numbers of snapshots, and says why there is no answer. */
#include "answer/answer.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"

/* 32 hexadecimal digits are always an id: a host that looks like one is found with its scheme in front. */
int wb_which_page(struct wb_slice text, struct wb_pageid *id_out)
{
    uint8_t bytes[WB_PAGEID_BYTES];
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;
    int err;

    *id_out = (struct wb_pageid){0, 0};
    if (wb_hex_decode(text, bytes, sizeof bytes)) {
        *id_out = wb_pageid_get(bytes);
        return 0;
    }
    err = wb_url_parse_typed(text, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        *id_out = wb_pageid_of_key(wb_buf_slice(&key));
    wb_buf_release(&key);
    wb_url_release(&url);
    return err;
}

int wb_which_url(struct wb_slice text, struct wb_buf *href_out)
{
    struct wb_url url = WB_URL_INIT;
    int err = wb_url_parse_typed(text, &url);

    wb_buf_clear(href_out);
    if (err == 0)
        err = wb_buf_append_slice(href_out, wb_url_href(&url));
    wb_url_release(&url);
    return err;
}

int wb_which_snapshot(struct wb_store *store, struct wb_slice text, uint32_t *number_out)
{
    struct wb_store_snapshot snapshot = {0};

    *number_out = 0;
    int err = wb_store_snapshot_find(store, text, &snapshot);
    if (err == 0)
        *number_out = snapshot.number;
    wb_store_snapshot_release(&snapshot);
    return err;
}

/* There is no version of this page. A revisit of it may have been seen, whose original was never stored. */
static int fail_unknown(struct wb_store *store, struct wb_pageid id, struct wb_slice name, const char *where)
{
    struct wb_store_revisit revisit;
    char time[WB_DATE_TEXT_MAX];

    int err = wb_store_get_revisit(store, id, &revisit);
    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_NOTFOUND, "%.*s: no such page in %s", WB_SLICE_ARG(name), where);
    if (err < 0)
        return err;
    wb_date_format(revisit.time_ms, time);
    return wb_fail(WB_E_NOTFOUND, "%.*s: no such page in %s; only a revisit at %s was seen, not its original",
                   WB_SLICE_ARG(name), where, time);
}

int wb_which_missing(struct wb_store *store, struct wb_pageid id, struct wb_slice name, struct wb_slice snapshot,
                     const char *where)
{
    struct wb_store_timeline timeline = {0};
    char time[WB_DATE_TEXT_MAX];

    int err = wb_store_timeline(store, id, &timeline);
    int64_t gone_ms = timeline.gone_ms;
    wb_store_timeline_release(&timeline);
    if (err == WB_E_NOTFOUND)
        return fail_unknown(store, id, name, where);
    if (err < 0)
        return err;
    if (snapshot.ptr)
        return wb_fail(WB_E_NOTFOUND, "%.*s: not in snapshot %.*s; 'webbase versions' shows when the page was seen",
                       WB_SLICE_ARG(name), WB_SLICE_ARG(snapshot));
    if (gone_ms == 0)
        return wb_fail(WB_E_NOTFOUND, "%.*s: no longer in %s, but snapshots have it: see 'webbase versions'",
                       WB_SLICE_ARG(name), where);
    wb_date_format(gone_ms, time);
    return wb_fail(WB_E_NOTFOUND, "%.*s: gone since %s; 'webbase versions' shows its past, and get --at reads it",
                   WB_SLICE_ARG(name), time);
}
