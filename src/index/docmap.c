/*
 * docmap.c - the map as a file, rank and select.
 *
 *   head, 16 bytes    0 urls (8)  8 pages (8)
 *   block, 72 bytes   0 pages before this block (8)  8 the bits of 512 URLs (64); those behind the last URL are 0
 *
 * Numbers are little-endian. A block fits into two cache lines, so a docid costs two of them; the way back searches for
 * the block first. The map takes 1.125 bits per URL. It is checked as a whole when it is opened: everything depends
 * on it.
 */
#include "index/docmap.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"

enum {
    HEAD_BYTES = 16,
    BLOCK_URLS = 512,
    BLOCK_WORDS = BLOCK_URLS / 64,
    BLOCK_BYTES = 8 + BLOCK_WORDS * 8,
};

_Static_assert(BLOCK_URLS % 64 == 0, "a block has whole words");
_Static_assert(BLOCK_BYTES == 72, "a block as drawn above");

static uint64_t blocks_of(uint64_t urls)
{
    return (urls + BLOCK_URLS - 1) / BLOCK_URLS;
}

/* Without an instruction for it, which the oldest machines lack, __builtin_popcountll() is a call. */
static uint64_t count_bits(uint64_t word)
{
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    return ((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
}

static uint64_t count_pages(const uint64_t *bits, uint64_t urls)
{
    uint64_t pages = 0;

    for (uint64_t i = 0; i < (urls + 63) / 64; i++)
        pages += count_bits(bits[i]);
    return pages;
}

int wb_docmap_write(const char *path, const uint64_t *bits, uint64_t urls)
{
    struct wb_blob_writer *writer = NULL;
    char bytes[BLOCK_BYTES];
    uint64_t before = 0, words = (urls + 63) / 64;

    WB_CHECK(urls < WB_DOCID_NONE);
    WB_CHECK(urls % 64 == 0 || bits[urls / 64] >> urls % 64 == 0);
    int err = wb_blob_create(path, WB_DOCMAP_KIND, &writer);
    wb_put64(bytes, urls);
    wb_put64(bytes + 8, count_pages(bits, urls));
    if (err == 0)
        err = wb_blob_append(writer, bytes, HEAD_BYTES);
    for (uint64_t block = 0; err == 0 && block < blocks_of(urls); block++) {
        wb_put64(bytes, before);
        for (uint64_t i = 0; i < BLOCK_WORDS; i++) {
            uint64_t at = block * BLOCK_WORDS + i, word = at < words ? bits[at] : 0;
            wb_put64(bytes + 8 + 8 * i, word);
            before += count_bits(word);
        }
        err = wb_blob_append(writer, bytes, BLOCK_BYTES);
    }
    if (err < 0) {
        wb_blob_abandon(writer);
        return err;
    }
    return wb_blob_finish(writer, NULL);
}

/* ---- reading ----------------------------------------------------------------------------------- */

static const char *block_at(const struct wb_docmap *map, uint64_t block)
{
    WB_CHECK(block < blocks_of(map->urls));
    return map->blocks + block * BLOCK_BYTES;
}

/* Whether the counts of the blocks are those of their bits. */
static bool adds_up(const struct wb_docmap *map)
{
    uint64_t before = 0;

    for (uint64_t block = 0; block < blocks_of(map->urls); block++) {
        const char *p = block_at(map, block);
        if (wb_get64(p) != before)
            return false;
        for (int i = 0; i < BLOCK_WORDS; i++) {
            uint64_t word = wb_get64(p + 8 + 8 * i), first = block * BLOCK_URLS + (uint64_t)i * 64;
            if (first + 64 > map->urls && (first >= map->urls ? word : word >> (map->urls - first)) != 0)
                return false;
            before += count_bits(word);
        }
    }
    return before == map->pages;
}

int wb_docmap_open(const char *path, struct wb_docmap *map_out)
{
    struct wb_docmap *map = map_out;

    *map = (struct wb_docmap){.urls = 0};
    int err = wb_blob_open(path, WB_DOCMAP_KIND, &map->blob);
    if (err == 0)
        err = wb_blob_check(&map->blob, 0, map->blob.bytes);
    if (err == 0 && map->blob.bytes >= HEAD_BYTES) {
        map->urls = wb_get64(map->blob.data);
        map->pages = wb_get64(map->blob.data + 8);
        map->blocks = map->blob.data + HEAD_BYTES;
    }
    if (err == 0 && (map->blob.bytes < HEAD_BYTES || map->urls >= WB_DOCID_NONE ||
                     map->blob.bytes != HEAD_BYTES + blocks_of(map->urls) * BLOCK_BYTES || !adds_up(map)))
        err = wb_fail(WB_E_CORRUPT, "%s is not a map of docids", path);
    if (err < 0)
        wb_docmap_close(map);
    return err;
}

void wb_docmap_close(struct wb_docmap *map)
{
    wb_blob_close(&map->blob);
    *map = (struct wb_docmap){.urls = 0};
}

bool wb_docmap_is_page(const struct wb_docmap *map, uint64_t number)
{
    WB_CHECK(number < map->urls);
    return wb_get64(block_at(map, number / BLOCK_URLS) + 8 + number % BLOCK_URLS / 64 * 8) >> number % 64 & 1;
}

/*
 * The map was verified when it was opened, but it is mapped: a disk that goes bad can change it later. Then the numbers
 * below are wrong, but never out of range, so that a server stays up.
 */
static uint64_t in_range(const struct wb_docmap *map, uint64_t number)
{
    return number < map->urls ? number : map->urls - 1;
}

uint32_t wb_docmap_docid(const struct wb_docmap *map, uint64_t number)
{
    WB_CHECK(number < map->urls);
    const char *block = block_at(map, number / BLOCK_URLS);
    uint64_t in_block = number % BLOCK_URLS, rank = wb_get64(block);

    for (uint64_t i = 0; i < in_block / 64; i++)
        rank += count_bits(wb_get64(block + 8 + 8 * i));
    uint64_t word = wb_get64(block + 8 + in_block / 64 * 8);
    rank += count_bits(word & ((UINT64_C(1) << in_block % 64) - 1));
    return (uint32_t)in_range(map, word >> in_block % 64 & 1 ? rank : map->pages + (number - rank));
}

/* How many URLs of the wanted part are before this block. */
static uint64_t part_before(const struct wb_docmap *map, uint64_t block, bool page)
{
    uint64_t pages = wb_get64(block_at(map, block)), urls = block * BLOCK_URLS;

    pages = pages < urls ? pages : urls;
    return page ? pages : block * BLOCK_URLS - pages;
}

/* The place of the bit of a word that has rank others before it. */
static unsigned select_in_word(uint64_t word, uint64_t rank)
{
    WB_CHECK(rank < count_bits(word));
    while (rank-- > 0)
        word &= word - 1;
    return (unsigned)__builtin_ctzll(word);
}

uint64_t wb_docmap_number(const struct wb_docmap *map, uint32_t docid)
{
    bool page = docid < map->pages;
    uint64_t rank = page ? docid : docid - map->pages, low = 0, high = blocks_of(map->urls);

    WB_CHECK(docid < map->urls);
    /* The last block with at most rank of its part before it. */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (part_before(map, middle, page) <= rank)
            low = middle;
        else
            high = middle;
    }
    uint64_t before = part_before(map, low, page);
    rank -= before < rank ? before : rank;
    for (uint64_t i = 0; i < BLOCK_WORDS; i++) {
        uint64_t word = wb_get64(block_at(map, low) + 8 + 8 * i), count;
        word = page ? word : ~word;
        count = count_bits(word);
        if (rank < count)
            return in_range(map, low * BLOCK_URLS + i * 64 + select_in_word(word, rank));
        rank -= count;
    }
    return map->urls - 1;
}
