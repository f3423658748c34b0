/* dash_numbers.c - the numbers of the dashboard and of /api/history: their names and what they mean. */
#include "serve/dash.h"

const struct wb_dash_about wb_dash_numbers[WB_DASH_NUMBERS] = {
    [WB_DASH_PAGES] = {"pages", "", false, "stored pages"},
    [WB_DASH_CAPTURES] = {"captures", "", false, "captures of all pages"},
    [WB_DASH_SITES] = {"sites", "", false, "sites with a stored page"},
    [WB_DASH_PAGE_BYTES] = {"page_bytes", "bytes", false, "bodies of the latest versions, uncompressed"},
    [WB_DASH_STORED_BYTES] = {"stored_bytes", "bytes", false, "files of the store"},
    [WB_DASH_DEAD_BYTES] = {"dead_bytes", "bytes", false, "of these, what compaction can free"},
    [WB_DASH_KNOWN] = {"known", "", false, "URLs that webdb knows"},
    [WB_DASH_UNMERGED] = {"unmerged_bytes", "bytes", false, "journal that is not merged into webdb yet"},
    [WB_DASH_GENERATION] = {"generation", "", false, "the generation of the index that is searched"},
    [WB_DASH_FRESHNESS] = {"freshness", "share", false, "pages that are expected to be as stored"},
    [WB_DASH_AGE] = {"age_days", "days", false, "time since pages were last seen, on average"},
    [WB_DASH_REQUESTS] = {"requests", "", true, "requests that the server has answered"},
    [WB_DASH_FAILED] = {"requests_failed", "", true, "of these, with a status from 500"},
    [WB_DASH_CONNECTIONS] = {"connections", "", false, "open connections to the server"},
    [WB_DASH_STREAMS] = {"streams", "", false, "streams that are being delivered"},
    [WB_DASH_CRAWLS] = {"crawls", "", false, "running crawls"},
    [WB_DASH_CRAWL_PAGES] = {"crawl_pages", "", true, "pages that crawls have stored"},
    [WB_DASH_CRAWL_REQUESTS] = {"crawl_requests", "", true, "requests of crawls"},
    [WB_DASH_CRAWL_BYTES] = {"crawl_bytes", "bytes", true, "bodies that crawls have received"},
    [WB_DASH_CRAWL_ERRORS] = {"crawl_errors", "", true, "requests of crawls that failed"},
    [WB_DASH_CRAWL_ACTIVE] = {"crawl_sites_active", "", false, "sites that crawls work on"},
    [WB_DASH_CRAWL_WAITING] = {"crawl_sites_waiting", "", false, "of these, without a request under way"},
    [WB_DASH_CRAWL_QUEUED] = {"crawl_queued", "", false, "URLs in the queues of crawls"},
    [WB_DASH_CRAWL_FLYING] = {"crawl_in_flight", "", false, "requests of crawls under way"},
    [WB_DASH_CRAWL_UNCHANGED] = {"crawl_unchanged", "", true, "pages that crawls found unchanged"},
    [WB_DASH_CRAWL_GONE] = {"crawl_gone", "", true, "pages that crawls found to be gone"},
    [WB_DASH_ARRIVED] = {"captures_new", "", true, "captures that were added"},
    [WB_DASH_DISK_FREE] = {"disk_free", "bytes", false, "free space where the repository is"},
};

enum wb_dash_number wb_dash_number_find(struct wb_slice name)
{
    enum wb_dash_number number = 0;

    while (number < WB_DASH_NUMBERS && !wb_slice_equal(name, wb_slice_str(wb_dash_numbers[number].name)))
        number++;
    return number;
}
