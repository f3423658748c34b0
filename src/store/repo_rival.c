/*
 * repo_rival.c - recognises that two records of one time are the same capture, of which one was cut short: by a limit
 * of the crawler, or because the archive ends in the middle. The longer one counts, whichever comes first.
 *
 * The catalog knows what was cut short, and how long it is, but not how it begins. So bodies are read and compared, but
 * only if there are two records of one page and one time, one of them is cut, and their lengths allow it.
 */
#include "base/check.h"
#include "store/repo.h"

enum { RIVALS_MAX = 16 }; /* a stranger can make any number of captures of one time; the others are kept as they are */

/* Whether a record of so many bytes can be the beginning of another one. */
static bool can_begin(bool cut, uint64_t bytes, bool other_cut, uint64_t other_bytes)
{
    return cut && (bytes < other_bytes || (bytes == other_bytes && !other_cut));
}

/* Whether the shorter body is the beginning of the longer one. */
static bool begins_with(struct wb_slice body, struct wb_slice beginning)
{
    WB_CHECK(beginning.ptr || beginning.len == 0);
    return beginning.len <= body.len && (beginning.len == 0 || memcmp(body.ptr, beginning.ptr, beginning.len) == 0);
}

/* Which of two records of one time may be the beginning of the other one. */
enum rivalry { RIVAL_NONE, RIVAL_COVERS, RIVAL_IS_REPLACED };

static enum rivalry judge(const struct wb_history_version *other, uint64_t content, uint16_t status, uint64_t bytes)
{
    bool cut = wb_history_is_cut(content), other_cut = wb_history_is_cut(other->content);

    if (other->place.segment == 0 || other->status != status || other->content == content)
        return RIVAL_NONE;
    if (can_begin(cut, bytes, other_cut, other->body_bytes))
        return RIVAL_COVERS;
    return can_begin(other_cut, other->body_bytes, cut, bytes) ? RIVAL_IS_REPLACED : RIVAL_NONE;
}

int wb_repo_rival(const struct wb_history *history, const struct wb_page *page, wb_repo_read_rival read, void *context,
                  uint64_t *replaces_out)
{
    size_t first, count = wb_history_tie(history, page->time_ms, &first);
    uint64_t content = page->truncated, longest = 0; /* all that matters here is whether it was cut */
    struct wb_buf memory = WB_BUF_INIT;
    int result = 0, looked = 0;

    *replaces_out = 0;
    for (size_t i = first + count; i > first && result == 0 && looked < RIVALS_MAX; i--) {
        const struct wb_history_version *other = wb_history_owner(history, i - 1);
        enum rivalry rivalry = judge(other, content, page->status, page->body.len);
        struct wb_page stored;
        if (rivalry == RIVAL_NONE)
            continue;
        looked++;
        int err = read(context, page->id, other, &stored, &memory);
        if (err == WB_E_CORRUPT || err == WB_E_NOTFOUND || err == WB_E_DOWN)
            continue; /* nobody can tell, so both are kept */
        if (err < 0)
            result = err;
        else if (rivalry == RIVAL_COVERS)
            result = begins_with(stored.body, page->body);
        else if (begins_with(page->body, stored.body) && (*replaces_out == 0 || other->body_bytes > longest)) {
            longest = other->body_bytes;
            *replaces_out = other->content;
        }
    }
    wb_buf_release(&memory);
    return result;
}
