/* curlstart.h - starts libcurl once for the process, with our memory functions. */
#ifndef WB_OS_CURLSTART_H
#define WB_OS_CURLSTART_H

#include <stdbool.h>

/* To be called by all who use libcurl, before they do. */
int wb_curl_start(void);

/*
 * libcurl has one code for "out of memory" and for some limits of its own. So we remember, per thread, whether it was
 * really refused memory. starve() records it; starved() says whether it happened since the last call.
 */
void wb_curl_starve(void);
bool wb_curl_starved(void);

#endif
