/* pushpage.h - one page of a push: from JSON to a page as the store takes it. pushlist.c uses it. */
#ifndef WB_CYCLE_PUSHPAGE_H
#define WB_CYCLE_PUSHPAGE_H

#include "cycle/pushlist.h"

#include <jansson.h>

/* Appends the page to list->pages. number: its place in the push, from 1, for messages. WB_E_INVALID or WB_E_LIMIT. */
int wb_push_page_read(const json_t *object, uint64_t number, const struct wb_push_reading *reading,
                      struct wb_push_list *list);

/* The URL without its fragment. */
struct wb_slice wb_push_plain_href(const struct wb_url *url);

#endif
