/*
 * entity.c - reads the character references of HTML.
 *
 * A name consists of letters and digits and ends in a semicolon, which those of HTML 4 may lack. The
 * longest match is therefore found with few lookups: first the whole run of letters and digits, if a
 * semicolon follows it; otherwise the longest prefix of the run that may lack its semicolon, and
 * those have two to six letters. Each lookup is one probe of a perfect hash, which scripts/entities
 * generates. It never decides where text begins or ends.
 */
#include "markup/entity.h"
#include "base/utf8.h"

struct entity {
    uint16_t name_at;
    uint8_t name_len;
    uint8_t legacy;   /* may lack its semicolon */
    uint8_t utf8_len;
    uint8_t utf8[WB_ENTITY_UTF8_MAX];
};

/*
 * The rows of the generated table: E, and OLD for a name that may lack its semicolon. The n bytes of
 * UTF-8 are one hexadecimal number, the first byte highest.
 */
#define BYTE(utf8, n, i) (uint8_t)((i) < (n) ? UINT64_C(utf8) >> 8 * (((n) - 1 - (i)) & 7) : 0)
#define BYTES(utf8, n) \
    {BYTE(utf8, n, 0), BYTE(utf8, n, 1), BYTE(utf8, n, 2), BYTE(utf8, n, 3), BYTE(utf8, n, 4), BYTE(utf8, n, 5)}
#define E(at, len, n, utf8) {at, len, 0, n, BYTES(utf8, n)}
#define OLD(at, len, n, utf8) {at, len, 1, n, BYTES(utf8, n)}

#include "markup/entity_table.h"

#define HASH_BASIS 2166136261u
#define SEED_SHIFT 22

/* One step of FNV-1a. */
static uint32_t hash_step(uint32_t hash, char c)
{
    return (hash ^ (uint8_t)c) * 16777619u;
}

/* Must compute the same as fnv() and slot() in scripts/entities. */
static uint32_t slot_of(uint32_t hash)
{
    hash = (hash ^ hash >> 15) * 0x2c1b3c6du;
    uint32_t seed = entity_seeds[hash >> SEED_SHIFT];
    hash ^= seed * 0x9e3779b1u;
    hash = (hash ^ hash >> 15) * 0x85ebca6bu;
    hash ^= hash >> 13;
    return (uint32_t)((uint64_t)hash * ENTITY_SLOTS >> 32);
}

static const struct entity *find_name(const char *name, size_t len, uint32_t hash)
{
    const struct entity *e = &entity_table[slot_of(hash)];

    return e->name_len == len && len && memcmp(entity_names + e->name_at, name, len) == 0 ? e : NULL;
}

static bool is_alnum(char c)
{
    return wb_ascii_is_digit(c) || wb_ascii_is_letter(c);
}

static size_t take_entity(const struct entity *e, size_t taken, char utf8_out[WB_ENTITY_UTF8_MAX], size_t *len_out)
{
    memcpy(utf8_out, e->utf8, WB_ENTITY_UTF8_MAX);
    *len_out = e->utf8_len;
    return taken;
}

/* p is behind the '&'; returns the length of the reference including it. */
static size_t read_named(const char *p, const char *end, bool in_attribute, char utf8_out[WB_ENTITY_UTF8_MAX],
                         size_t *len_out)
{
    uint32_t hashes[ENTITY_NAME_MAX + 1];
    size_t len = 0;

    hashes[0] = HASH_BASIS;
    for (; p + len < end && len < ENTITY_NAME_MAX && is_alnum(p[len]); len++)
        hashes[len + 1] = hash_step(hashes[len], p[len]);
    if (p + len < end && p[len] == ';') {
        const struct entity *e = find_name(p, len, hashes[len]);
        if (e)
            return take_entity(e, len + 2, utf8_out, len_out);
    }
    for (size_t n = len < ENTITY_LEGACY_MAX ? len : ENTITY_LEGACY_MAX; n >= ENTITY_LEGACY_MIN; n--) {
        const struct entity *e = find_name(p, n, hashes[n]);
        if (!e || !e->legacy)
            continue;
        /* For historical reasons, "?a=1&copy=2" in an attribute does not contain a reference. */
        if (in_attribute && p + n < end && (p[n] == '=' || is_alnum(p[n])))
            return 0;
        return take_entity(e, n + 1, utf8_out, len_out);
    }
    return 0;
}

/* What browsers make of numbers that were meant as windows-1252. */
static const uint16_t c1_replacements[32] = {
    0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d, 0x8f,
    0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d, 0x17e,
    0x178,
};

/* Corrects a number as the standard says: surrogates and numbers beyond Unicode become U+FFFD. */
static uint32_t correct_number(uint32_t number)
{
    if (number == 0 || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
        return 0xfffd;
    return number >= 0x80 && number <= 0x9f ? c1_replacements[number - 0x80] : number;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = wb_ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* p is behind "&#". */
static size_t read_number(const char *p, const char *end, char utf8_out[WB_ENTITY_UTF8_MAX], size_t *len_out)
{
    const char *start = p;
    int base = 10;
    uint32_t number = 0;

    if (p < end && (*p == 'x' || *p == 'X')) {
        base = 16;
        start = ++p;
    }
    const char *digits = p;
    for (; p < end && digit_value(*p) < base; p++)
        if (number <= 0x10ffff)
            number = number * (uint32_t)base + (uint32_t)digit_value(*p);
    if (p == digits)
        return 0;
    *len_out = wb_utf8_encode(correct_number(number), utf8_out);
    size_t taken = (size_t)(p - start) + (base == 16 ? 3 : 2);
    return p < end && *p == ';' ? taken + 1 : taken;
}

size_t wb_entity_read(const char *p, const char *end, bool in_attribute, char utf8_out[WB_ENTITY_UTF8_MAX],
                      size_t *len_out)
{
    *len_out = 0;
    if (end - p < 2)
        return 0;
    if (p[1] == '#')
        return read_number(p + 2, end, utf8_out, len_out);
    return is_alnum(p[1]) ? read_named(p + 1, end, in_attribute, utf8_out, len_out) : 0;
}
