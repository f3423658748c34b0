/* fetch_error.h - private to fetch: libcurl's outcomes as the table of fetch.h has them. */
#ifndef WB_FETCH_FETCH_ERROR_H
#define WB_FETCH_FETCH_ERROR_H

#include "fetch/fetch.h"

#include <curl/curl.h>

/* answered: a status line had come. words: libcurl's own of it, which tell apart what the code does not. */
enum wb_fetch_error wb_fetch_error_of_curl(CURLcode code, bool answered, const char *words);

#endif
