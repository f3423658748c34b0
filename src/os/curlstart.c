/*
 * curlstart.c - starts libcurl once for the process, makes it use our memory functions, and remembers when these
 * failed.
 */
#include "os/curlstart.h"

#include "base/error.h"
#include "base/mem.h"

#include <curl/curl.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode outcome;

static _Thread_local bool starved;

void wb_curl_starve(void)
{
    starved = true;
}

static void *note(void *ptr)
{
    if (!ptr)
        wb_curl_starve();
    return ptr;
}

static void *curl_alloc(size_t size)
{
    return note(wb_alloc(size));
}

static void *curl_realloc(void *ptr, size_t size)
{
    return note(wb_realloc(ptr, size));
}

static char *curl_strdup(const char *text)
{
    return note(wb_strdup(text));
}

static void *curl_calloc(size_t count, size_t size)
{
    return note(wb_alloc_zero(count, size));
}

static void start(void)
{
    outcome = curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_alloc, wb_free, curl_realloc, curl_strdup, curl_calloc);
}

int wb_curl_start(void)
{
    pthread_once(&once, start);
    return outcome == CURLE_OK ? 0 : wb_fail(WB_E_NOMEM, "libcurl: %s", curl_easy_strerror(outcome));
}

bool wb_curl_starved(void)
{
    bool was = starved;

    starved = false;
    return was;
}
