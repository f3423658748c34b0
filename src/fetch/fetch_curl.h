/* fetch_curl.h - starts libcurl once for the process, with our memory functions. Used inside this room only. */
#ifndef WB_FETCH_FETCH_CURL_H
#define WB_FETCH_FETCH_CURL_H

#include <stdbool.h>

int wb_fetch_curl_init(void);

/*
 * libcurl has one code for "out of memory" and for some limits of its own. So we remember, per thread, whether it was
 * really refused memory. starve() records it; starved() says whether it happened since the last call.
 */
void wb_fetch_curl_starve(void);
bool wb_fetch_curl_starved(void);

#endif
