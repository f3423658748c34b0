/* tally.c - the memory that the processes of a crawl share. */
#include "crawl/tally.h"
#include "base/error.h"
#include "base/hash.h"

#include <sys/mman.h>

const char *wb_crawl_error_word(int error)
{
    static const char *const words[] = {
#define WB_CRAWL_ERROR_WORD(name, word) [name - WB_CRAWL_FIRST] = word,
        WB_CRAWL_ERRORS(WB_CRAWL_ERROR_WORD)
#undef WB_CRAWL_ERROR_WORD
    };

    return error <= WB_CRAWL_FIRST ? wb_fetch_error_word((enum wb_fetch_error)error) : words[error - WB_CRAWL_FIRST];
}

struct wb_tally *wb_tally_new(void)
{
    void *memory = mmap(NULL, sizeof(struct wb_tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        wb_fail_nomem();
        return NULL;
    }
    return memory;
}

void wb_tally_free(struct wb_tally *tally)
{
    if (tally)
        munmap(tally, sizeof *tally);
}

uint64_t wb_tally_subject(struct wb_slice url)
{
    return wb_hash64(url.ptr, url.len) | 1;
}

/* Only the parent adds; past the last place nothing more is remembered. */
void wb_tally_blame(struct wb_tally *tally, uint64_t subject)
{
    unsigned count = atomic_load(&tally->bad_count);

    if (count == WB_TALLY_BAD_MAX || wb_tally_is_bad(tally, subject))
        return;
    atomic_store(&tally->bad[count], subject);
    atomic_store(&tally->bad_count, count + 1);
}

bool wb_tally_is_bad(const struct wb_tally *tally, uint64_t subject)
{
    unsigned count = atomic_load(&tally->bad_count);

    for (unsigned i = 0; i < count; i++)
        if (atomic_load(&tally->bad[i]) == subject)
            return true;
    return false;
}
