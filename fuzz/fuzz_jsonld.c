/*
 * fuzz_jsonld.c - arbitrary bytes as a JSON-LD script.
 *   - the facts found are within their limits
 *   - if the input is UTF-8, so are they
 *   - parsing again gives the same, and blanks around the input change nothing
 */
#include "base/buf.h"
#include "base/check.h"
#include "base/utf8.h"
#include "extract/jsonld.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const struct wb_jsonld *a, const struct wb_jsonld *b)
{
    return wb_slice_equal(a->type, b->type) && wb_slice_equal(a->published, b->published) &&
           wb_slice_equal(a->modified, b->modified) && wb_slice_equal(a->author, b->author);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice text = wb_slice((const char *)data, size);
    struct wb_arena arena = {0};
    struct wb_buf padded = WB_BUF_INIT;
    struct wb_jsonld facts, again;

    if (wb_jsonld_read(&arena, text, &facts) < 0 || wb_buf_append_char(&padded, ' ') < 0 ||
        wb_buf_append_slice(&padded, text) < 0 || wb_buf_append_char(&padded, '\n') < 0 ||
        wb_jsonld_read(&arena, wb_buf_slice(&padded), &again) < 0)
        goto done;
    WB_CHECK(is_same(&facts, &again));
    WB_CHECK(facts.type.len <= 64 && facts.published.len <= 64 && facts.modified.len <= 64 && facts.author.len <= 4096);
    if (wb_utf8_valid(text))
        WB_CHECK(wb_utf8_valid(facts.type) && wb_utf8_valid(facts.published) && wb_utf8_valid(facts.modified) &&
                 wb_utf8_valid(facts.author));
done:
    wb_buf_release(&padded);
    wb_arena_release(&arena);
    return 0;
}
