/* fetch_error.h - turns libcurl's outcomes into the errors of fetch.h. Used inside this room only. */
#ifndef WB_FETCH_FETCH_ERROR_H
#define WB_FETCH_FETCH_ERROR_H

#include "fetch/fetch.h"

#include <curl/curl.h>

/* answered: a status line was received. words: libcurl's message, which distinguishes cases that share a code. */
enum wb_fetch_error wb_fetch_error_of_curl(CURLcode code, bool answered, const char *words);

#endif
