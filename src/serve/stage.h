/*
 * stage.h - private to serve: the page of ours around a stored page. A bar of our own is at the top, and a frame with
 * the stored page fills the rest, so a page can neither hide nor cover nor move the bar.
 *
 *   stage.c       the document, its policy and its frame
 *   stage_bar.c   what the bar says, as static HTML that works without scripts
 */
#ifndef WB_SERVE_STAGE_H
#define WB_SERVE_STAGE_H

#include "serve/htmlpen.h"

struct wb_stage {
    struct wb_slice url; /* of the capture that is shown */
    const struct wb_store_timeline *timeline;
    size_t at;               /* of the capture, in the timeline */
    struct wb_slice src;     /* the address of the frame... */
    struct wb_slice sandbox; /* ...what its page may do... */
    struct wb_slice frames;  /* ...and where it may go: sources of the policy's frame-src */
};

/* Makes the reply the stage. Its status and fields so far stay. */
int wb_stage_show(struct wb_call *call, const struct wb_stage *stage);

/* The content of the bar, which is an element <header>. Its style is in web/stage.css. */
void wb_stage_bar(struct wb_htmlpen *h, const struct wb_stage *stage);

#endif
