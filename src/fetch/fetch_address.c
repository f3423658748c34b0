/*
 * fetch_address.c - addresses as text, and which of them no public site can have. It never opens a connection.
 *
 * The tables are IANA's special-purpose registries for IPv4 and IPv6. What these call not globally reachable is private
 * here, and so is IPv6 space that was assigned to nobody. An IPv6 address that contains an IPv4 address (mapped,
 * compatible, translated, 6to4, Teredo, NAT64, ISATAP) is as private as that one.
 */
#include "fetch/fetch.h"

#include <arpa/inet.h>
#include <string.h>

bool wb_address_parse(struct wb_slice text, struct wb_address *address_out)
{
    char copy[WB_ADDRESS_TEXT_MAX];

    *address_out = (struct wb_address){0};
    if (text.len == 0 || text.len >= sizeof copy || memchr(text.ptr, '\0', text.len))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, address_out->bytes) == 1)
        address_out->family = 4;
    else if (inet_pton(AF_INET6, copy, address_out->bytes) == 1)
        address_out->family = 6;
    else
        *address_out = (struct wb_address){0};
    return address_out->family != 0;
}

void wb_address_format(const struct wb_address *address, char text_out[WB_ADDRESS_TEXT_MAX])
{
    text_out[0] = '\0';
    if (address->family)
        inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, text_out, WB_ADDRESS_TEXT_MAX);
}

bool wb_address_equal(const struct wb_address *a, const struct wb_address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16) == 0;
}

/* ---- ranges ----------------------------------------------------------------------------------------- */

struct address_range {
    const char *words; /* NULL: public */
    uint8_t bits;      /* of the prefix */
    uint8_t bytes[16];
};

/* The first range that matches decides. */
static const struct address_range ranges4[] = {
    {"unspecified", 8, {0}},
    {"private", 8, {10}},
    {"shared", 10, {100, 64}},
    {"loopback", 8, {127}},
    {"link-local", 16, {169, 254}},
    {"private", 12, {172, 16}},
    {NULL, 32, {192, 0, 0, 9}},  /* port control protocol, anycast */
    {NULL, 32, {192, 0, 0, 10}}, /* relays of TURN, anycast */
    {"reserved", 24, {192, 0, 0}},
    {"documentation", 24, {192, 0, 2}},
    {"reserved", 24, {192, 88, 99}}, /* once relays of 6to4 */
    {"private", 16, {192, 168}},
    {"benchmarking", 15, {198, 18}},
    {"documentation", 24, {198, 51, 100}},
    {"documentation", 24, {203, 0, 113}},
    {"multicast", 4, {224}},
    {"broadcast", 32, {255, 255, 255, 255}},
    {"reserved", 4, {240}},
};

static const struct address_range ranges6[] = {
    {"unspecified", 128, {0}},
    {"loopback", 128, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
    {NULL, 96, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}, /* mapped: what it carries decides */
    {NULL, 96, {0, 0x64, 0xff, 0x9b}},                      /* NAT64: likewise */
    {NULL, 128, {0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
    {NULL, 128, {0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}},
    {NULL, 128, {0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}},
    {NULL, 32, {0x20, 1, 0, 0}},       /* Teredo: what it carries decides */
    {NULL, 32, {0x20, 1, 0, 3}},       /* AMT */
    {NULL, 48, {0x20, 1, 0, 4, 1, 0x12}}, /* AS112 */
    {NULL, 28, {0x20, 1, 0, 0x20}},    /* ORCHIDv2 */
    {NULL, 28, {0x20, 1, 0, 0x30}},    /* DRIP */
    {"benchmarking", 48, {0x20, 1, 0, 2}},
    {"reserved", 23, {0x20, 1}},
    {"documentation", 32, {0x20, 1, 0x0d, 0xb8}},
    {"documentation", 20, {0x3f, 0xff}},
    {NULL, 3, {0x20}},
    {"private", 7, {0xfc}},
    {"link-local", 10, {0xfe, 0x80}},
    {"private", 10, {0xfe, 0xc0}}, /* formerly called site-local */
    {"multicast", 8, {0xff}},
    {"reserved", 0, {0}},
};

static bool in_range(const uint8_t *bytes, const struct address_range *range)
{
    unsigned whole = range->bits / 8u, rest = range->bits % 8u;

    if (memcmp(bytes, range->bytes, whole) != 0)
        return false;
    return rest == 0 || (bytes[whole] ^ range->bytes[whole]) >> (8 - rest) == 0;
}

static const char *find_range(const uint8_t *bytes, const struct address_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (in_range(bytes, &ranges[i]))
            return ranges[i].words;
    return NULL;
}

static const char *private4(const uint8_t *bytes)
{
    return find_range(bytes, ranges4, sizeof ranges4 / sizeof *ranges4);
}

/* ---- IPv4 in IPv6 --------------------------------------------------------------------------------------- */

static bool starts(const uint8_t *bytes, const uint8_t *prefix, size_t len)
{
    return memcmp(bytes, prefix, len) == 0;
}

/* If the address contains a private IPv4 address, returns the word for that; otherwise NULL. */
static const char *private_inside(const uint8_t *b)
{
    static const uint8_t zeros[8] = {0}, nat64[12] = {0, 0x64, 0xff, 0x9b}, teredo[4] = {0x20, 1}, sixtofour[2] = {0x20,
                                                                                                                   2};
    static const uint8_t mapped[4] = {0, 0, 0xff, 0xff}, translated[4] = {0xff, 0xff, 0, 0}, isatap[3] = {0, 0x5e,
                                                                                                          0xfe};
    const char *words = NULL;

    if (starts(b, zeros, 8) && (starts(b + 8, zeros, 4) || starts(b + 8, mapped, 4) || starts(b + 8, translated, 4)))
        return private4(b + 12);
    if (starts(b, nat64, 12))
        return private4(b + 12);
    if (starts(b, sixtofour, 2))
        return private4(b + 2);
    if (starts(b, teredo, 4)) {
        /* Teredo contains the address of its server, and that of its client with all bits inverted. */
        uint8_t client[4];
        for (int i = 0; i < 4; i++)
            client[i] = b[12 + i] ^ 0xff;
        words = private4(b + 4);
        return words ? words : private4(client);
    }
    if ((b[8] & ~2) == 0 && starts(b + 9, isatap, 3))
        return private4(b + 12);
    return NULL;
}

const char *wb_address_private(const struct wb_address *address)
{
    if (address->family == 4)
        return private4(address->bytes);
    if (address->family != 6)
        return "unspecified";
    const char *words = find_range(address->bytes, ranges6, 2); /* ::1 is loopback, not 0.0.0.1 */
    if (!words)
        words = private_inside(address->bytes);
    return words ? words : find_range(address->bytes, ranges6, sizeof ranges6 / sizeof *ranges6);
}
