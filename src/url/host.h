/* host.h - the host of a URL: a domain, an address, or an opaque host. Private to url. */
#ifndef WB_URL_HOST_H
#define WB_URL_HOST_H

#include "url/reader.h"

/* Reads a host as the URL standard's host parser does, and writes it in its final form. */
int wb_host_read(struct wb_reader *r, struct wb_slice host);

#endif
