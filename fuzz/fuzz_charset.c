/*
 * fuzz_charset.c - documents in any encoding: which one is detected, and the UTF-8 it becomes.
 *
 * The first byte chooses the kind of document and, if it is large, an encoding from which the
 * bytes are decoded whatever they are. The output must be UTF-8 within its limit, and must not
 * depend on a limit that is not reached.
 */
#include "base/check.h"
#include "base/utf8.h"
#include "markup/charset.h"
#include "extract/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"utf-8",        "gb18030",        "big5",        "euc-jp",   "iso-2022-jp",
                                    "shift_jis",    "euc-kr",         "utf-16le",    "utf-16be", "windows-1252",
                                    "windows-1255", "x-user-defined", "replacement", "koi8-u"};

static void try_decode(const char *name, struct wb_slice bytes)
{
    struct wb_buf mem = WB_BUF_INIT, small = WB_BUF_INIT;
    struct wb_slice whole, part;
    size_t limit = bytes.len / 2;

    WB_CHECK(wb_charset_decode(name, bytes, 8 * bytes.len + 16, &mem, &whole) == 0);
    WB_CHECK(wb_utf8_valid(whole));
    WB_CHECK(wb_charset_decode(name, bytes, limit, &small, &part) == 0);
    WB_CHECK(part.len <= limit && wb_utf8_valid(part) && wb_slice_starts(whole, part));
    WB_CHECK(whole.len <= limit ? part.len == whole.len : part.len + 4 > limit);
    wb_buf_release(&mem);
    wb_buf_release(&small);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct wb_slice bytes = wb_slice((const char *)data + 1, size - 1);
    const char *name = wb_charset_of(bytes, WB_SLICE_EMPTY, (enum wb_charset_kind)(data[0] % 3));

    WB_CHECK(wb_charset_by_label(wb_slice_str(name)) && strcmp(wb_charset_by_label(wb_slice_str(name)), name) == 0);
    try_decode(name, bytes);
    if (data[0] >= 3)
        try_decode(names[data[0] % (sizeof names / sizeof *names)], bytes);
    size_t ascii = wb_decode_ascii_prefix(bytes.ptr, bytes.len), valid = wb_decode_utf8_prefix(bytes.ptr, bytes.len);
    WB_CHECK(ascii <= valid && valid <= bytes.len);
    WB_CHECK(wb_utf8_valid(wb_slice(bytes.ptr, valid)));
    WB_CHECK(valid == bytes.len || wb_utf8_length(bytes.ptr + valid, bytes.len - valid) == 0);
    (void)wb_simhash_of(bytes);
    (void)wb_language_of(bytes);
    return 0;
}
