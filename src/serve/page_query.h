/*
 * page_query.h - private to serve: queries as text, for pages that offer a changed query as a link. Pure functions.
 *
 * A term is a condition such as site:example.org that stands at the top level of a query: not in quotes, not in
 * parentheses, without a minus, and in a query without OR, where it could not simply be removed.
 */
#ifndef WB_SERVE_PAGE_QUERY_H
#define WB_SERVE_PAGE_QUERY_H

#include "base/buf.h"
#include "base/slice.h"

/* Appends the query with field:value added. An earlier term of the same field is replaced. */
int wb_page_query_refine(struct wb_slice query, const char *field, struct wb_slice value, struct wb_buf *out);

/* Whether there is a term of this field: site, type, lang or status. */
bool wb_page_query_has(struct wb_slice query, const char *field, struct wb_slice *value_out);

/* Term number i of these fields, and the query without it. Returns 1, 0 if there are not so many, or an error. */
int wb_page_query_term(struct wb_slice query, size_t number, struct wb_slice *term_out, struct wb_buf *rest_out);

/* The length of the word at the beginning of a text: up to a blank; at least one character. */
size_t wb_page_query_word(struct wb_slice text);

#endif
