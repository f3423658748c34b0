/* fetch_curl.h - private to fetch: libcurl started once for the process, on our memory. */
#ifndef WB_FETCH_FETCH_CURL_H
#define WB_FETCH_FETCH_CURL_H

#include <stdbool.h>

int wb_fetch_curl_init(void);

/* Memory was refused to this thread on behalf of libcurl. libcurl has one code for that and for limits of its own. */
void wb_fetch_curl_starve(void);
bool wb_fetch_curl_starved(void); /* since the last call */

#endif
