/*
 * handler_nothing.c - a handler that does nothing with records but count them: what a stream costs by itself.
 *
 *   webbase stream --handler handler_nothing.so
 *
 * Prints one JSON line at the end: {"records":N,"bytes":N}. It looks at the first byte of every body, as anything
 * useful would.
 */
#include <webbase/handler.h>

#include <inttypes.h>
#include <stdio.h>

struct sums {
    uint64_t records, bytes, mix;
};

static struct sums sums;

int webbase_handler_init(const struct webbase_host *host, void **state_out)
{
    (void)host;
    *state_out = &sums;
    return WEBBASE_OK;
}

int webbase_handler_process(void *state, const struct webbase_record *record)
{
    struct sums *s = state;

    s->records++;
    s->bytes += record->headers.len + record->body.len;
    s->mix += record->body.len ? (unsigned char)record->body.ptr[0] : 0;
    return WEBBASE_OK;
}

int webbase_handler_finish(void *state, int complete)
{
    struct sums *s = state;

    printf("{\"records\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"mix\":%" PRIu64 "}\n", s->records, s->bytes, s->mix);
    return complete ? WEBBASE_OK : WEBBASE_FAILED;
}
