/*
 * guestreader.h - private to guest: what reads pages in a guest, be it a module that was loaded or what is built in.
 */
#ifndef WB_GUEST_GUESTREADER_H
#define WB_GUEST_GUESTREADER_H

#include <webbase/module.h>

struct wb_guest_reader {
    const char *types;
    int (*init)(const struct webbase_host *host, void **state_out);
    int (*process)(void *state, const struct webbase_record *record, const struct webbase_output *out);
    int (*finish)(void *state, int complete);
};

/* Finds the functions of poppler (pdfreader.c), while files can be read. WB_E_NOTFOUND if it is not installed. */
int wb_pdf_reader(struct wb_guest_reader *reader_out);

#endif
