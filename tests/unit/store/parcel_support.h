/*
 * parcel_support.h - reads a scan page by page through its parcels, so that every test of scans can also be one of
 * parcels.
 */
#ifndef WB_TESTS_STORE_PARCEL_SUPPORT_H
#define WB_TESTS_STORE_PARCEL_SUPPORT_H

#include "store_support.h"

struct parcel_reader {
    struct wb_store_scan *scan;
    struct wb_store_unpacker *unpacker;
    struct wb_store_parcel parcel;
    size_t at; /* the next page of the parcel */
};

/* Returns 1 and the next page, 0 at the end, or an error. After WB_E_CORRUPT it may be continued. */
static inline int parcel_next(struct parcel_reader *reader, struct wb_page *page_out)
{
    int err = reader->unpacker ? 0 : wb_store_unpacker_new(&reader->unpacker);

    while (err == 0 && reader->at == reader->parcel.count) {
        err = wb_store_scan_parcel(reader->scan, &reader->parcel);
        reader->at = 0;
        if (err <= 0)
            reader->parcel.count = 0;
        if (err <= 0)
            return err;
        err = wb_store_unpacker_open(reader->unpacker, &reader->parcel);
        if (err < 0)
            reader->parcel.count = 0;
    }
    if (err < 0)
        return err;
    err = wb_store_unpacker_page(reader->unpacker, reader->at++, page_out);
    return err < 0 ? err : 1;
}

/* The place of the page that was returned last. */
static inline void parcel_tell(const struct parcel_reader *reader, struct wb_store_position *position_out)
{
    must(reader->at > 0);
    *position_out = reader->parcel.pages[reader->at - 1].position;
}

/* Also closes the scan. */
static inline void parcel_close(struct parcel_reader *reader)
{
    wb_store_scan_close(reader->scan);
    wb_store_unpacker_free(reader->unpacker);
}

#endif
