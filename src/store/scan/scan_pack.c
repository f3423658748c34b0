/*
 * scan_pack.c - fills parcels with the pages of a scan. It does not know where they come from, and reads no file.
 */
#include "store/scan/scan_pack.h"
#include "base/check.h"

int wb_scan_pack(struct wb_scan_pack *pack, struct wb_store_scan *scan,
                 int (*next)(struct wb_store_scan *scan, struct wb_page *page_out), struct wb_store_parcel *parcel_out)
{
    struct wb_store_position position;
    struct wb_page page;
    int got = pack->packer ? 0 : wb_store_packer_new(&pack->packer);
    size_t count = 0;

    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(pack->late.code == 0);
    while (got >= 0 && (got = next(scan, &page)) > 0) {
        scan->ops->scan_tell(scan, &position);
        got = wb_store_packer_add(pack->packer, &page, &position);
        count += got == 0;
        if (wb_store_packer_full(pack->packer))
            break;
    }
    if (count == 0)
        return got;
    if (got < 0)
        wb_error_save(got, &pack->late);
    got = wb_store_packer_finish(pack->packer, parcel_out);
    return got < 0 ? got : 1;
}

int wb_scan_pack_late(struct wb_scan_pack *pack)
{
    if (pack->late.code == 0)
        return 0;
    WB_CHECK(pack->packer != NULL);
    WB_CHECK(pack->late.code < 0);
    int err = wb_error_restore(&pack->late);
    pack->late.code = 0;
    return err;
}

void wb_scan_pack_release(struct wb_scan_pack *pack)
{
    wb_store_packer_free(pack->packer);
    *pack = (struct wb_scan_pack){0};
}
