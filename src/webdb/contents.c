/*
 * contents.c - finds the number of a content by its MD5.
 *
 * Entries are sorted by (MD5, page), and digests are spread evenly, so interpolation usually needs only a few steps.
 * But whoever chooses the contents can make them uneven; even a thousand copies of one page do. So every other step
 * halves the range, and the worst case is twice a binary search. This file never looks at the pages themselves.
 */
#include "webdb/edition.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"

static const uint8_t *md5_at(const struct wb_column *contents, uint64_t number)
{
    WB_CHECK(number < contents->count);
    return ((const struct wb_content *)wb_column_at(contents, number))->md5;
}

/*
 * The place in [low, high) where a digest that starts with `wanted` should be. The digests there start with least to
 * most.
 */
static uint64_t guess_place(uint64_t low, uint64_t high, uint64_t least, uint64_t most, uint64_t wanted)
{
    WB_CHECK(low < high);
    if (wanted <= least || most <= least)
        return low;
    if (wanted >= most)
        return high - 1;
    return low + (uint64_t)((unsigned __int128)(wanted - least) * (high - low) / (most - least));
}

int wb_contents_find(const struct wb_column *contents, const uint8_t md5[WB_MD5_BYTES], uint64_t *number_out)
{
    uint64_t low = 0, high = contents->count; /* the first entry that is not less than md5 is in [low, high] */
    uint64_t least = 0, most = UINT64_MAX, wanted = wb_get64_be(md5);

    WB_CHECK(contents->record_bytes == sizeof(struct wb_content) || contents->count == 0);
    *number_out = 0;
    for (bool halve = false; low < high; halve = !halve) {
        uint64_t at = halve ? low + (high - low) / 2 : guess_place(low, high, least, most, wanted);
        WB_CHECK(at >= low);
        WB_CHECK(at < high);
        int err = wb_column_check(contents, at, 1);
        if (err < 0)
            return err;
        const uint8_t *found = md5_at(contents, at);
        if (memcmp(found, md5, WB_MD5_BYTES) < 0) {
            low = at + 1;
            least = wb_get64_be(found);
        } else {
            high = at;
            most = wb_get64_be(found);
        }
    }
    if (low == contents->count || memcmp(md5_at(contents, low), md5, WB_MD5_BYTES) != 0)
        return WB_E_NOTFOUND;
    WB_CHECK(low == 0 || memcmp(md5_at(contents, low - 1), md5, WB_MD5_BYTES) != 0); /* it is the first one */
    *number_out = low;
    return 0;
}
