/*
 * language.cc - guesses the language of a text, with the library CLD2.
 *
 * This file picks a piece of the text, asks CLD2, and translates its codes into those of ISO 639. It
 * never lets an exception out, and trusts no byte of the text (CLD2 checks that it is UTF-8). Two
 * peculiarities of CLD2: it gives no answer for a text that contains a single control character or
 * noncharacter, so we ask again with blanks in their place; and it reads a byte beyond the end of some
 * texts, so we give it a copy with zeros behind it.
 *
 * Debian builds CLD2 with tables for 83 languages, and has a second library with nothing but tables
 * for 175. Both define the same names; the ones that are linked first are used.
 */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

extern "C" {
#include "base/utf8.h"
#include "extract/module.h"
}

namespace CLD2
{
struct CLD2TableSummary;
extern const CLD2TableSummary kQuad_obj2;
} // namespace CLD2

namespace
{

/* Refers to the library of tables, because otherwise the linker would leave it out. */
[[gnu::used]] const CLD2::CLD2TableSummary *const kTables = &CLD2::kQuad_obj2;

/*
 * How much CLD2 is shown. It takes about 30 ns per byte, and more text does not make its answers
 * better: of 156 texts of 5 KB in 39 languages, it recognises 155 with 768 or 1024 bytes, 153 with 512.
 */
const size_t kPieceMax = 768;

/* Codes of CLD2 that ISO 639-1 writes differently, or that also name a script or a region. */
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

/* Picks at most kPieceMax bytes, whole characters. Skips the beginning of a long text, which is often a menu. */
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

/* True for characters that CLD2 does not accept: control characters and noncharacters. */
bool is_odd(uint32_t cp)
{
    return (cp < 0x20 && cp != '\t' && cp != '\n' && cp != '\r') || (cp >= 0x7f && cp < 0xa0) ||
           (cp >= 0xfdd0 && cp <= 0xfdef) || (cp & 0xfffe) == 0xfffe;
}

/* How many zeros follow the text: as many as the longest character has bytes. */
const size_t kBehind = 4;

/* Copies the piece, with blanks in place of odd characters and malformed bytes. */
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

/* Asks CLD2; *valid_bytes_out is how much of the text it accepted. */
CLD2::Language ask(const char *text, size_t len, int *valid_bytes_out)
{
    CLD2::CLDHints hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
    CLD2::Language languages[3];
    double scores[3];
    int percents[3], text_bytes = 0;
    bool reliable = false; /* ignored: heeding it loses 17 right answers for each wrong one (on data/lang) */

    return CLD2::ExtDetectLanguageSummaryCheckUTF8(text, static_cast<int>(len), true, &hints, 0, languages, percents,
                                                   scores, nullptr, &text_bytes, &reliable, valid_bytes_out);
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
