/*
 * contents.c - finding a content's number by its MD5.
 *
 * Entries are sorted by (MD5, page) and digests are spread evenly, so a guess by proportion lands near. Whoever can
 * choose contents can spoil that (a thousand copies of one page do, by chance); so every other step halves what is left,
 * and the worst case is twice a binary search. It never looks at pages.
 */
#include "webdb/contents.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"

_Static_assert(sizeof(struct wb_content) == WB_EDIT_MD5_BYTES + 8, "an entry has no gaps");

static const uint8_t *md5_at(const struct wb_column *contents, uint64_t number)
{
    return ((const struct wb_content *)wb_column_at(contents, number))->md5;
}

/* Where between low and high, which hold digests from `least` to `most`, a digest that begins with `wanted` should be. */
static uint64_t guess_place(uint64_t low, uint64_t high, uint64_t least, uint64_t most, uint64_t wanted)
{
    if (wanted <= least || most <= least)
        return low;
    if (wanted >= most)
        return high - 1;
    return low + (uint64_t)((unsigned __int128)(wanted - least) * (high - low) / (most - least));
}

int wb_contents_find(const struct wb_column *contents, const uint8_t md5[WB_EDIT_MD5_BYTES], uint64_t *number_out)
{
    uint64_t low = 0, high = contents->count; /* the first entry not less than md5 lies in [low, high] */
    uint64_t least = 0, most = UINT64_MAX, wanted = wb_get64_be(md5);

    WB_CHECK(contents->record_bytes == sizeof(struct wb_content) || contents->count == 0);
    *number_out = 0;
    for (bool halve = false; low < high; halve = !halve) {
        uint64_t at = halve ? low + (high - low) / 2 : guess_place(low, high, least, most, wanted);
        WB_CHECK(at >= low && at < high);
        int err = wb_column_check(contents, at, 1);
        if (err < 0)
            return err;
        const uint8_t *found = md5_at(contents, at);
        if (memcmp(found, md5, WB_EDIT_MD5_BYTES) < 0) {
            low = at + 1;
            least = wb_get64_be(found);
        } else {
            high = at;
            most = wb_get64_be(found);
        }
    }
    if (low == contents->count || memcmp(md5_at(contents, low), md5, WB_EDIT_MD5_BYTES) != 0)
        return WB_E_NOTFOUND;
    *number_out = low;
    return 0;
}
