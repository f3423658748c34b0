/* page_missing.h - private to serve: the page about a URL of which there is no capture, with what there is instead. */
#ifndef WB_SERVE_PAGE_MISSING_H
#define WB_SERVE_PAGE_MISSING_H

#include "serve/htmlpen.h"
#include "serve/memento.h"
#include "serve/replay_door.h"

struct wb_page_missing {
    const struct wb_memento_target *target;
    const char *sheet;     /* the address of our style sheet */
    bool form;             /* something was sent to it */
    struct wb_slice front; /* markup for its head; may be empty */
    const struct wb_replay_door
        *door; /* links lead to origins of replay, in the frame; NULL: they lead the whole page on */
};

/* A link to the captures of the site of a URL, for a page of the server's own origin. Nothing if it is not a URL. */
void wb_page_missing_site(struct wb_htmlpen *h, struct wb_slice url, const char *words);

/*
 * If a style sheet or a script was asked for, makes the reply an empty one of that type with status 404, and returns 1;
 * browsers complain in the console about a reply of another type. Returns 0 if something else was asked for.
 */
int wb_page_missing_file(struct wb_call *call);

/* Makes the reply this page, without a policy. */
int wb_page_missing(struct wb_call *call, const struct wb_page_missing *missing);

#endif
