/*
 * cdx.h - part of warc's door: lines of a CDX index, which say where the record of each capture is.
 *
 * One capture is one line. The lines of CDXJ, the form that WACZ files have (docs/formats/wacz.md), are sorted
 * bytewise:
 *
 *   urlkey 20260102030405 {"url":"...","mime":"...","status":"200","digest":"...","length":"...",...}
 */
#ifndef WB_WARC_CDX_H
#define WB_WARC_CDX_H

#include "base/buf.h"

/* A capture. All slices borrow; an empty one means unknown. */
struct wb_cdx {
    struct wb_slice urlkey; /* wb_urlkey_of_url(): the line is sorted by it */
    int64_t time_ms;
    struct wb_slice url, mime;
    unsigned status;          /* 0: unknown */
    struct wb_slice digest;   /* base32 of the SHA-1 of the payload; in a WACZ with "sha1:" before it */
    struct wb_slice redirect; /* where a redirect leads */
    struct wb_slice filename; /* the archive that has the record */
    uint64_t length;          /* bytes of the record in that file, compressed; 0: unknown */
    uint64_t offset;          /* of the record; counts only if there is a filename */
};

/* The time as 14 digits, YYYYMMDDhhmmss, and a NUL; years outside 0 to 9999 give the nearest one inside. */
#define WB_CDX_TIME_MAX 15
void wb_cdx_time(int64_t time_ms, char text_out[WB_CDX_TIME_MAX]);

/* Appends a line with its newline. 0 or WB_E_NOMEM; after an error the buffer may end with a part of a line. */
int wb_cdx_append_json(const struct wb_cdx *cdx, struct wb_buf *lines_out);

#endif
