/* supplier.c - the private supplier: a scan of the store, one page at a time (supplier.h). */
#include "stream/supplier.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#define SCAN_MAGIC 0x57425353u

struct scan_supplier {
    struct wb_supplier base; /* must be the first member */
    uint32_t magic;          /* SCAN_MAGIC until it is closed */
    struct wb_store_scan *scan;
    struct wb_page page;
    uint64_t bars; /* before the scan began */
};

static int scan_next(struct wb_supplier *base, struct wb_supply *supply_out)
{
    struct scan_supplier *s = (struct scan_supplier *)base;
    int got = wb_store_scan_next(s->scan, &s->page);

    WB_CHECK(s->magic == SCAN_MAGIC);
    *supply_out = (struct wb_supply){.pages = &s->page, .count = got > 0, .bars = s->bars};
    return got;
}

static void scan_tell(const struct wb_supplier *base, size_t index, struct wb_store_position *position_out)
{
    WB_CHECK(((const struct scan_supplier *)base)->magic == SCAN_MAGIC && index == 0);
    wb_store_scan_tell(((const struct scan_supplier *)base)->scan, position_out);
}

static void scan_close(struct wb_supplier *base)
{
    struct scan_supplier *s = (struct scan_supplier *)base;

    WB_CHECK(s->magic == SCAN_MAGIC);
    wb_store_scan_close(s->scan);
    s->magic = 0;
    wb_free(s);
}

static const struct wb_supplier_kind scan_kind = {.next = scan_next, .tell = scan_tell, .close = scan_close};

int wb_supplier_scan(struct wb_store *store, const struct wb_supply_request *request,
                     struct wb_supplier **supplier_out)
{
    struct wb_store_scan_options options = {.snapshot = request->snapshot,
                                            .site = request->site,
                                            .facts = request->facts,
                                            .after = request->after,
                                            .until = request->until,
                                            .at_once = request->at_once};
    struct scan_supplier *s = wb_alloc_zero(1, sizeof *s);

    *supplier_out = NULL;
    if (!s)
        return WB_E_NOMEM;
    s->magic = SCAN_MAGIC;
    s->base.kind = &scan_kind;
    int err = wb_store_bar_version(store, &s->bars);
    if (err == 0)
        err = wb_store_scan_open(store, &options, &s->scan);
    if (err < 0) {
        wb_free(s);
        return err;
    }
    *supplier_out = &s->base;
    return 0;
}
