/*
 * embedded.h - private to serve: the files that a stored page is shown with, and how far each of them was captured from
 * the page.
 *
 *   page --extract--> links to images, styles, scripts, media, frames --memento.h--> the capture that is shown of each
 *        --style sheets, up to a bound--> what they name in turn
 *
 * Nothing is fetched, and nothing is remembered. Bounds: so many files, so many style sheets that are read, and so many
 * bytes of them.
 */
#ifndef WB_SERVE_EMBEDDED_H
#define WB_SERVE_EMBEDDED_H

#include "base/vec.h"
#include "serve/server.h"

enum { WB_EMBEDDED_FILES = 1000, WB_EMBEDDED_SHEETS = 50, WB_EMBEDDED_APART = 3600 };
#define WB_EMBEDDED_BYTES ((size_t)8 << 20)

struct wb_embedded_file {
    struct wb_slice url;
    struct wb_pageid id;
    uint8_t tag;      /* enum wb_extract_tag of the first link to it */
    size_t sheet;     /* the file that names it; SIZE_MAX: the page itself */
    bool found;       /* there is a capture; otherwise it is missing */
    int64_t asked_ms; /* the time in the link to it */
    int64_t time_ms;  /* of the capture that is shown */
    uint16_t status;
};

struct wb_embedded {
    struct wb_slice url; /* as asked for */
    struct wb_pageid id;
    struct wb_page page;
    struct wb_buf mem, public;
    WB_VEC(struct wb_embedded_file) files; /* in the order in which they are named */
    struct wb_arena texts;
    bool cut;         /* a bound was reached: there may be more */
    int64_t apart_ms; /* captures at least so far from the page count as apart */
    size_t counts[3]; /* by enum wb_embedded_state */
};

enum wb_embedded_state { WB_EMBEDDED_NEAR, WB_EMBEDDED_FAR, WB_EMBEDDED_MISSING };

/* Reads the parameters url, time and apart (seconds), and finds the files. Release it even after an error. */
int wb_embedded_read(struct wb_call *call, struct wb_embedded *embedded_out);
void wb_embedded_release(struct wb_embedded *embedded);

enum wb_embedded_state wb_embedded_state(const struct wb_embedded *embedded, const struct wb_embedded_file *file);

/* "image", "style", "script", "media" or "frame". */
const char *wb_embedded_kind(const struct wb_embedded_file *file);

#endif
