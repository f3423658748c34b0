/* which.h - which page and which snapshot the words of a command line mean. */
#ifndef WB_CLI_WHICH_H
#define WB_CLI_WHICH_H

#include "store/store.h"

/* Reads 32 hexadecimal digits as a page id, anything else as a URL. WB_E_PROTO names the text if it is neither. */
int wb_which_page(const char *text, struct wb_pageid *id_out);

/* Finds a snapshot by its number or name. WB_E_NOTFOUND, which names it, also if it was dropped or has expired. */
int wb_which_snapshot(struct wb_store *store, const char *text, uint32_t *number_out);

#endif
