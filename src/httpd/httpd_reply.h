/* httpd_reply.h - replies as bytes. */
#ifndef WB_HTTPD_HTTPD_REPLY_H
#define WB_HTTPD_HTTPD_REPLY_H

#include "httpd/httpd_head.h"

/* How the end of a reply's body is recognised. */
enum wb_httpd_framing {
    WB_FRAMING_NONE, /* there is no body, whatever the head says: HEAD, 204, 304 */
    WB_FRAMING_LENGTH,
    WB_FRAMING_CHUNKED,
    WB_FRAMING_CLOSE, /* it ends with the connection: a source for an HTTP/1.0 client */
};

/* A reply of 200 without fields or body. */
struct wb_http_reply wb_httpd_reply_new(void);
void wb_httpd_reply_release(struct wb_http_reply *reply);

enum wb_httpd_framing wb_httpd_reply_framing(const struct wb_http_reply *reply, const struct wb_httpd_head *head);

/* Appends status line and fields. date: WB_DATE_HTTP_BYTES bytes. */
int wb_httpd_reply_head(const struct wb_http_reply *reply, const struct wb_httpd_head *head, const char *date,
                        bool keep_alive, struct wb_buf *out);

#endif
