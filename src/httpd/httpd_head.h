/*
 * httpd_head.h - the head of a request: where it ends, and what it says. Pure functions over bytes.
 *
 *   GET /path?query HTTP/1.1 CR LF         request line
 *   Name: value CR LF                      fields
 *   CR LF                                  the end
 *
 * RFC 9112 lets a server forgive much here. We forgive nothing that two servers could read in two ways, because a
 * proxy in front of us may be the other one: lines end with CR LF, there is no folding and no blank before a colon,
 * and there is at most one Content-Length, one Transfer-Encoding and one Host.
 */
#ifndef WB_HTTPD_HTTPD_HEAD_H
#define WB_HTTPD_HTTPD_HEAD_H

#include "base/vec.h"
#include "httpd/httpd.h"

#define WB_HTTPD_PARAMS_MAX 1000u

/* What the functions of httpd_head.h and httpd_body.h return. A number from 400 up is the status of the refusal. */
enum wb_httpd_progress {
    WB_HTTPD_INCOMPLETE, /* more bytes are needed */
    WB_HTTPD_COMPLETE,
};

/* How far the search for the end of a head has come. All zero: at the beginning. */
struct wb_httpd_scan {
    size_t start; /* the head begins here: after an empty line, which clients may send between requests */
    size_t line;  /* the current line begins here */
    size_t at;    /* everything before this has been looked at */
    size_t lines; /* complete lines */
};

struct wb_http_field_list WB_VEC_OF(struct wb_http_field);

/* All zero: empty. The slices point to the bytes that were parsed, and into `text`. */
struct wb_httpd_head {
    struct wb_http_request request; /* without body, peer, loopback and tls */
    bool old;                       /* HTTP/1.0 */
    bool keep_alive;
    bool expect_continue;
    bool chunked;
    bool has_length;
    uint64_t length; /* Content-Length; 0 if there is none */
    struct wb_http_field_list fields, params;
    struct wb_buf text; /* decoded parameters */
};

/*
 * Looks for the end of the head in all bytes that have arrived so far. WB_HTTPD_COMPLETE: the head is the bytes from
 * scan->start to scan->at. Each byte is looked at once, however they arrive. A refusal says why.
 */
unsigned wb_httpd_head_find(struct wb_httpd_scan *scan, struct wb_slice bytes, const struct wb_httpd_limits *limits,
                            const char **why_out);

/* Parses a whole head. 0, or the status of a refusal. The bytes must stay where they are as long as the head is used.
 */
unsigned wb_httpd_head_parse(struct wb_httpd_head *head, struct wb_slice bytes, const char **why_out);

/* Forgets what was parsed; keeps memory of ordinary size. */
void wb_httpd_head_clear(struct wb_httpd_head *head);
void wb_httpd_head_release(struct wb_httpd_head *head);

/* The characters of a token: methods and the names of fields. */
bool wb_httpd_is_token(char c);

/* Splits a query at '&' and decodes names and values. Escapes that are not valid stay as they are. 0 or a status. */
unsigned wb_httpd_params_parse(struct wb_httpd_head *head, const char **why_out);

#endif
