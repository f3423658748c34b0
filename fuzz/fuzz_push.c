/*
 * fuzz_push.c - arbitrary bytes as a push, as the server and as the command read it.
 *   - URLs are http or https, and have a site; pages have a head of whole lines that names the provider last
 *   - what the server takes, the command takes too, and reads the same
 *   - nothing but the codes that the door names comes out
 */
#include "base/check.h"
#include "cycle/pushlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_url(struct wb_slice url, struct wb_slice site)
{
    WB_CHECK(wb_slice_starts(url, WB_SLICE_LIT("http://")) || wb_slice_starts(url, WB_SLICE_LIT("https://")));
    WB_CHECK(!memchr(url.ptr, '#', url.len));
    WB_CHECK(site.len > 0 && wb_push_covers(site, site));
}

static void check_page(const struct wb_page *page)
{
    static const char last[] = "\r\n" WB_PUSH_PROVIDER_FIELD ": p.test\r\n";
    struct wb_slice provider = {NULL, 0}, name, value;
    size_t at = 0, providers = 0;

    check_url(page->url, wb_key_site(page->key));
    WB_CHECK(page->status >= 200 && page->status <= 599 && page->type.len > 0 && page->body_bytes == page->body.len);
    WB_CHECK(wb_slice_ends(page->head, WB_SLICE_LIT(last)) && !memchr(page->head.ptr, '\0', page->head.len));
    while (wb_http_header_next(page->head, &at, &name, &value))
        providers += wb_slice_equal_nocase(name, WB_SLICE_LIT(WB_PUSH_PROVIDER_FIELD));
    WB_CHECK(providers == 1 && wb_http_header(page->head, WB_PUSH_PROVIDER_FIELD, &provider));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice text = wb_slice((const char *)data, size);
    struct wb_push_reading server = {
        .name = "push", .provider = "p.test", .now_ms = INT64_C(1780000000000), .strict = true, .items_max = 100};
    struct wb_push_reading command = {.name = "push", .provider = "p.test", .now_ms = INT64_C(1780000000000)};
    struct wb_push_list strict, loose;

    int err = wb_push_list_read(text, &server, &strict);
    int err_loose = wb_push_list_read(text, &command, &loose);
    WB_CHECK(err == 0 || err == WB_E_PROTO || err == WB_E_INVALID || err == WB_E_LIMIT || err == WB_E_NOMEM);
    WB_CHECK(err < 0 || (err_loose == 0 && strict.urls.count == loose.urls.count && loose.refused == 0 &&
                         strict.pages.count == loose.pages.count));
    for (size_t i = 0; err_loose == 0 && i < loose.urls.count; i++)
        check_url(loose.urls.items[i].url, loose.urls.items[i].site);
    for (size_t i = 0; err_loose == 0 && i < loose.pages.count; i++)
        check_page(&loose.pages.items[i]);
    wb_push_list_release(&strict);
    wb_push_list_release(&loose);
    return 0;
}
