/*
 * fuzz_tokenizer.c - arbitrary bytes as HTML, in every state of the tokenizer.
 *
 * The first byte chooses the mode and whether CDATA is allowed, the second the last start tag;
 * the rest is the document.
 *   - tokens are inside the document, in order and not empty, and the end is reached
 *   - the parts of a token are inside it
 *   - decoding stays within its bound
 *   - plain text outside markup reads the same if the document is cut off behind it
 */
#include "base/check.h"
#include "markup/tokenizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const last_starts[] = {"", "script", "title", "style", "plaintext", "a", "textarea", "xmp"};

static void check_inside(struct wb_slice part, struct wb_slice whole)
{
    if (part.len > 0)
        WB_CHECK(part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

static void check_decode(struct wb_slice raw, unsigned how)
{
    char *out = malloc(WB_DECODED_MAX(raw.len));

    WB_CHECK(out);
    size_t len = wb_token_decode(raw, how, out);
    WB_CHECK(len <= WB_DECODED_MAX(raw.len));
    if (!(how & WB_DECODE_NUL))
        WB_CHECK(len <= raw.len + raw.len / 5);
    for (size_t i = 0; i < len; i++)
        WB_CHECK(out[i] != '\r' || how & WB_DECODE_ENTITIES); /* only "&#13;" produces a CR */
    free(out);
}

static void check_attrs(const struct wb_tokenizer *t)
{
    WB_CHECK(t->attr_count <= WB_TOKEN_ATTRS_MAX);
    WB_CHECK(t->attrs_left_out == 0 || t->attr_count == WB_TOKEN_ATTRS_MAX);
    for (unsigned i = 0; i < t->attr_count; i++) {
        const struct wb_token_attr *a = &t->attrs[i];
        check_inside(a->name, t->raw);
        check_inside(a->value, t->raw);
        WB_CHECK(a->name.len > 0);
        check_decode(a->name, WB_DECODE_NAME);
        check_decode(a->value, WB_DECODE_VALUE);
        for (size_t k = 0; !a->value_coded && k < a->value.len; k++)
            WB_CHECK(a->value.ptr[k] != '&' && a->value.ptr[k] != '\r' && a->value.ptr[k] != '\0');
        for (size_t k = 0; !a->name_coded && k < a->name.len; k++)
            WB_CHECK(a->name.ptr[k] != '\0' && wb_ascii_lower(a->name.ptr[k]) == a->name.ptr[k]);
        if (!a->name_coded) {
            const struct wb_token_attr *first = wb_tokenizer_attr(t, a->name);
            WB_CHECK(first && first <= a);
        }
    }
}

static void check_token(const struct wb_tokenizer *t)
{
    WB_CHECK(t->raw.len > 0);
    check_inside(t->text, t->raw);
    check_decode(t->text, t->how);
    if (t->kind == WB_TOKEN_START || t->kind == WB_TOKEN_END) {
        WB_CHECK(t->text.len > 0 && t->raw.ptr[0] == '<' && t->raw.ptr[t->raw.len - 1] == '>');
        check_attrs(t);
    }
    if (t->kind == WB_TOKEN_TEXT)
        WB_CHECK(t->text.ptr == t->raw.ptr && t->text.len == t->raw.len);
    if (t->kind == WB_TOKEN_DOCTYPE) {
        check_inside(t->doctype.public_id, t->raw);
        check_inside(t->doctype.system_id, t->raw);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wb_tokenizer t;
    struct wb_slice document = wb_slice((const char *)data + (size < 2 ? size : 2), size < 2 ? 0 : size - 2);

    wb_tokenizer_init(&t, document);
    if (size >= 2) {
        t.mode = (enum wb_token_mode)(data[0] % (WB_MODE_CDATA + 1));
        t.foreign = data[0] & 0x80;
        t.last_start = wb_slice_str(last_starts[data[1] % (sizeof last_starts / sizeof *last_starts)]);
    }
    const char *at = document.ptr;
    while (wb_tokenizer_next(&t) != WB_TOKEN_NONE) {
        WB_CHECK(t.raw.ptr >= at && t.raw.ptr + t.raw.len <= document.ptr + document.len);
        at = t.raw.ptr + t.raw.len;
        check_token(&t);
        /* Now and then, change the mode as a tree builder would. */
        if (t.kind == WB_TOKEN_START && size >= 2 && data[0] & 0x40)
            t.mode = (enum wb_token_mode)((data[1] + t.text.len) % (WB_MODE_CDATA + 1));
    }
    WB_CHECK(t.at == document.ptr + document.len);
    return 0;
}
