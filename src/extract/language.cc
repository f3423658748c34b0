/*
 * language.cc - the language of a text, by CLD2.
 *
 * Debian builds CLD2's code with tables of 83 languages and, in a library that holds nothing else, tables
 * of 175. Both define the same names: the ones that are linked first are used.
 *
 * A shim: picks a piece of the text, asks, and turns CLD2's codes into those of ISO 639. It trusts no byte
 * of the text (CLD2 checks that it is UTF-8) and lets no exception out. CLD2 has no answer for a text with a
 * single character that is not for interchange (controls, noncharacters): it is asked again with blanks for those.
 * It is only ever shown a copy with zeros behind it, because it reads a byte beyond the end of some texts.
 */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

extern "C" {
#include "base/utf8.h"
#include "extract/extract.h"
}

namespace CLD2
{
struct CLD2TableSummary;
extern const CLD2TableSummary kQuad_obj2;
} // namespace CLD2

namespace
{

/* Asks for something of the tables' library, or the linker would leave it out. */
[[gnu::used]] const CLD2::CLD2TableSummary *const kTables = &CLD2::kQuad_obj2;

/* CLD2 takes some 30 ns a byte; more than this makes no answer better (texts of 5 KB in 39 languages: 155 of 156 right with 768 bytes and with 1024, 153 with 512). */
const size_t kPieceMax = 768;

/* CLD2's codes that ISO 639-1 writes otherwise, and those that name a script or a region besides. */
const struct {
    const char *from, *to;
} kCodes[] = {
    {"iw", "he"}, {"jw", "jv"}, {"no", "nb"}, {"mo", "ro"}, {"in", "id"}, {"ji", "yi"},
    {"zh-Hant", "zh"}, {"sr-ME", "sr"}, {"un", ""}, {"tlh", ""}, {"zzp", ""},
};

const char *code_of(CLD2::Language language)
{
    const char *code = CLD2::LanguageCode(language);

    for (const auto &row : kCodes)
        if (std::strcmp(code, row.from) == 0)
            return row.to;
    return std::strncmp(code, "xx-", 3) == 0 ? "" : code;
}

/* At most kPieceMax bytes, whole characters. The front of a long text is often a heading or a menu: those are left out. */
struct wb_slice choose_piece(struct wb_slice text)
{
    size_t start = text.len > 4 * kPieceMax ? text.len / 4 : 0, end;

    while (start > 0 && start < text.len && (text.ptr[start] & 0xc0) == 0x80)
        start++;
    end = text.len - start > kPieceMax ? start + kPieceMax : text.len;
    while (end < text.len && end > start && (text.ptr[end] & 0xc0) == 0x80)
        end--;
    return {text.ptr + start, end - start};
}

/* Characters that are not for interchange, as CLD2 has it. */
bool is_odd(uint32_t cp)
{
    return (cp < 0x20 && cp != '\t' && cp != '\n' && cp != '\r') || (cp >= 0x7f && cp < 0xa0) || (cp >= 0xfdd0 && cp <= 0xfdef) ||
           (cp & 0xfffe) == 0xfffe;
}

/* Zeros behind the text, as many as a character may be long. */
const size_t kBehind = 4;

/* A copy of the piece with blanks for what is odd or malformed. */
size_t copy_plain(struct wb_slice piece, char *out)
{
    size_t n = 0;

    for (size_t at = 0; at < piece.len;) {
        size_t len = wb_utf8_length(piece.ptr + at, piece.len - at);
        if (len == 0 || is_odd(wb_utf8_decode(piece.ptr + at, len))) {
            out[n++] = ' ';
        } else {
            std::memcpy(out + n, piece.ptr + at, len);
            n += len;
        }
        at += len ? len : 1;
    }
    return n;
}

/* valid_bytes_out: how far CLD2 took the text for one. */
CLD2::Language ask(const char *text, size_t len, int *valid_bytes_out)
{
    CLD2::CLDHints hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
    CLD2::Language languages[3];
    double scores[3];
    int percents[3], text_bytes = 0;
    bool reliable = false; /* not heeded: that costs 17 right answers for each wrong one (measured on data/lang) */

    return CLD2::ExtDetectLanguageSummaryCheckUTF8(text, static_cast<int>(len), true, &hints, 0, languages, percents, scores,
                                                   nullptr, &text_bytes, &reliable, valid_bytes_out);
}

} // namespace

extern "C" const char *wb_language_of(struct wb_slice utf8)
{
    struct wb_slice piece = choose_piece(utf8);
    char copy[kPieceMax + kBehind];
    int valid_bytes = 0;

    if (piece.len == 0)
        return "";
    std::memcpy(copy, piece.ptr, piece.len);
    std::memset(copy + piece.len, 0, kBehind);
    try {
        CLD2::Language language = ask(copy, piece.len, &valid_bytes);
        if (static_cast<size_t>(valid_bytes) < piece.len) {
            size_t len = copy_plain(piece, copy);
            std::memset(copy + len, 0, kBehind);
            language = ask(copy, len, &valid_bytes);
        }
        return code_of(language);
    } catch (...) {
        return "";
    }
}
