/* page_view.h - private to serve: one page as people see it. page_view.c has the page, the others its parts. */
#ifndef WB_SERVE_PAGE_VIEW_H
#define WB_SERVE_PAGE_VIEW_H

#include "serve/htmlpen.h"

struct wb_page_view {
    struct wb_call *call;
    struct wb_htmlpen h;
    struct wb_slice url; /* as asked for */
    struct wb_pageid id;
    struct wb_page page; /* the newest version that there is; its body is not empty if `stored` */
    struct wb_buf mem;   /* what the page borrows from */
    struct wb_buf public; /* the URL of the page, if it had to be copied without a password */
    bool stored;         /* there is a version */
    struct wb_store_timeline timeline;
    struct wb_searcher *searcher; /* NULL: there is no index */
    uint32_t docid;               /* WB_DOCID_NONE: the index does not know it */
    struct wb_buf title;          /* may be empty */
};

/* Versions on a line of time, as a list, and the form that compares two of them (page_versions.c). */
void wb_page_versions(struct wb_page_view *v);

/* What changed between versions a and b, two times (page_compare.c). WB_E_INVALID, WB_E_NOTFOUND. */
int wb_page_changes(struct wb_page_view *v, struct wb_slice a, struct wb_slice b);

/* Links to and from the page, and similar pages (page_links.c). */
void wb_page_links(struct wb_page_view *v);
void wb_page_similar(struct wb_page_view *v);

#endif
