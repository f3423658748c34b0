/*
 * fuzz_s3answer.c - arbitrary bytes as the answer of an S3 store: an error, and a page of a listing.
 *
 *   input   how many bytes (1) precede the names of our objects; these bytes; the XML
 *
 * What is listed are names that objects may have, and reading it again gives the same.
 */
#include "base/check.h"
#include "base/mem.h"
#include "object/s3_answer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void release(struct wb_object_page *page)
{
    wb_buf_release(&page->names);
    wb_vec_release(&page->entries);
    wb_buf_release(&page->token);
}

static void check_printable(const char *text, size_t size)
{
    WB_CHECK(memchr(text, '\0', size) != NULL);
    for (; *text; text++)
        WB_CHECK((unsigned char)*text >= ' ' && *text != 127);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = size ? data[0] : 0;

    if (len + 1 > size)
        return 0;
    char *before = wb_strndup((const char *)data + 1, len);
    struct wb_slice xml = wb_slice((const char *)data + 1 + len, size - 1 - len);
    struct wb_object_page page = {.names = WB_BUF_INIT}, again = {.names = WB_BUF_INIT};
    struct wb_s3_error error;

    WB_CHECK(before != NULL);
    wb_s3_error_read(xml, &error);
    check_printable(error.code, sizeof error.code);
    check_printable(error.message, sizeof error.message);
    check_printable(error.region, sizeof error.region);

    int err = wb_s3_listing_read(xml, before, &page);
    WB_CHECK(err == 0 || err == WB_E_PROTO || err == WB_E_NOMEM);
    WB_CHECK(wb_s3_listing_read(xml, before, &again) == err);
    WB_CHECK(err < 0 || !page.more || page.token.len > 0);
    WB_CHECK(page.entries.count == again.entries.count && page.names.len == again.names.len);
    for (size_t i = 0; i < page.entries.count; i++) {
        WB_CHECK(page.entries.items[i].name_at < page.names.len);
        WB_CHECK(wb_object_name_valid(page.names.ptr + page.entries.items[i].name_at));
    }
    release(&page);
    release(&again);
    wb_free(before);
    return 0;
}
