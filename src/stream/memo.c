/* memo.c - texts that were made from pages, for all who need them (memo.h). It does not know what is in them. */
#include "stream/memo.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <pthread.h>

enum { AHEAD_PAGES = 32 };
enum memo_state { MEMO_NONE, MEMO_BUSY, MEMO_READY };

struct wb_stream_memo {
    struct wb_memo_set *set;
    enum memo_state states[WB_MEMO_KINDS];
    struct wb_slice texts[WB_MEMO_KINDS];
};

#define MEMO_SET_MAGIC 0x57424d53u

struct wb_memo_set {
    uint32_t magic; /* MEMO_SET_MAGIC from new to free */
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    const struct wb_page *pages;
    size_t count, bytes, bytes_max;
    struct wb_stream_memo memos[];
};

int wb_memo_set_new(const struct wb_page *pages, size_t count, size_t bytes_max, struct wb_memo_set **set_out)
{
    struct wb_memo_set *set = wb_alloc_zero(1, sizeof *set + count * sizeof *set->memos);

    *set_out = set;
    if (!set)
        return WB_E_NOMEM;
    set->magic = MEMO_SET_MAGIC;
    pthread_mutex_init(&set->mutex, NULL);
    pthread_cond_init(&set->changed, NULL);
    set->pages = pages;
    set->count = count;
    set->bytes_max = bytes_max;
    for (size_t i = 0; i < count; i++)
        set->memos[i].set = set;
    return 0;
}

void wb_memo_set_free(struct wb_memo_set *set)
{
    if (!set)
        return;
    WB_CHECK(set->magic == MEMO_SET_MAGIC && set->bytes <= set->bytes_max);
    for (size_t i = 0; i < set->count; i++)
        for (size_t kind = 0; kind < WB_MEMO_KINDS; kind++) {
            WB_CHECK(set->memos[i].states[kind] != MEMO_BUSY);
            wb_free((char *)set->memos[i].texts[kind].ptr);
        }
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->mutex);
    set->magic = 0;
    wb_free(set);
}

struct wb_stream_memo *wb_memo_of(struct wb_memo_set *set, size_t page)
{
    WB_CHECK(set->magic == MEMO_SET_MAGIC && page < set->count);
    return &set->memos[page];
}

enum wb_memo_got wb_memo_take(struct wb_stream_memo *memo, enum wb_memo_kind kind, struct wb_slice *text_out)
{
    static const enum wb_memo_got answers[] = {WB_MEMO_MAKE, WB_MEMO_BUSY, WB_MEMO_THERE};

    WB_CHECK(memo->set->magic == MEMO_SET_MAGIC && kind < WB_MEMO_KINDS);
    pthread_mutex_lock(&memo->set->mutex);
    enum wb_memo_got got = answers[memo->states[kind]];
    *text_out = memo->texts[kind];
    if (got == WB_MEMO_MAKE)
        memo->states[kind] = MEMO_BUSY;
    pthread_mutex_unlock(&memo->set->mutex);
    return got;
}

void wb_memo_put(struct wb_stream_memo *memo, enum wb_memo_kind kind, struct wb_slice text)
{
    WB_CHECK(memo->set->magic == MEMO_SET_MAGIC && kind < WB_MEMO_KINDS);
    struct wb_memo_set *set = memo->set;
    char *copy = text.len ? wb_strndup(text.ptr, text.len) : NULL;

    pthread_mutex_lock(&set->mutex);
    WB_CHECK(memo->states[kind] == MEMO_BUSY);
    bool kept = copy && set->bytes + text.len <= set->bytes_max;
    memo->states[kind] = kept ? MEMO_READY : MEMO_NONE;
    if (kept) {
        memo->texts[kind] = wb_slice(copy, text.len);
        set->bytes += text.len;
    }
    pthread_cond_broadcast(&set->changed);
    pthread_mutex_unlock(&set->mutex);
    if (!kept)
        wb_free(copy);
}

struct wb_stream_memo *wb_memo_ahead(struct wb_stream_memo *memo, enum wb_memo_kind kind,
                                     const struct wb_page **page_out)
{
    WB_CHECK(memo->set->magic == MEMO_SET_MAGIC && kind < WB_MEMO_KINDS);
    struct wb_memo_set *set = memo->set;
    struct wb_stream_memo *found = NULL;
    size_t from = (size_t)(memo - set->memos) + 1;

    pthread_mutex_lock(&set->mutex);
    bool room = set->bytes < set->bytes_max;
    for (size_t i = from; room && i < set->count && i < from + AHEAD_PAGES && !found; i++)
        if (set->memos[i].states[kind] == MEMO_NONE) {
            found = &set->memos[i];
            found->states[kind] = MEMO_BUSY;
            *page_out = &set->pages[i];
        }
    pthread_mutex_unlock(&set->mutex);
    return found;
}

void wb_memo_wait(struct wb_stream_memo *memo, enum wb_memo_kind kind)
{
    WB_CHECK(memo->set->magic == MEMO_SET_MAGIC && kind < WB_MEMO_KINDS);
    pthread_mutex_lock(&memo->set->mutex);
    while (memo->states[kind] == MEMO_BUSY)
        pthread_cond_wait(&memo->set->changed, &memo->set->mutex);
    pthread_mutex_unlock(&memo->set->mutex);
}
