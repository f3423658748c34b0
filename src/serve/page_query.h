/*
 * page_query.h - private to serve: queries as text, for pages that offer a changed query as a link. Pure functions.
 *
 * A term is a condition on site, type, lang or status at the top level of a query: not in a group, not negated, and in
 * a query without OR, where it could not simply be removed. What was typed stays as it is, unless a term is removed or
 * the query has OR: then it is written in its canonical form (query/ask.h).
 */
#ifndef WB_SERVE_PAGE_QUERY_H
#define WB_SERVE_PAGE_QUERY_H

#include "base/buf.h"
#include "base/slice.h"

/* Appends the query with field:value added. Earlier terms of the same field are removed. */
int wb_page_query_refine(struct wb_slice query, const char *field, struct wb_slice value, struct wb_buf *out);

/* Whether there is a term of this field. False if out of memory. */
bool wb_page_query_has(struct wb_slice query, const char *field);

/*
 * Term `number`, counted from 0, as it was typed, and the query without it, which replaces the content of rest_out.
 * Returns 1, 0 if there are not so many, or an error.
 */
int wb_page_query_term(struct wb_slice query, size_t number, struct wb_slice *term_out, struct wb_buf *rest_out);

/* The length of the word at the beginning of a text, which is not empty: up to a blank, at least one character. */
size_t wb_page_query_word(struct wb_slice text);

#endif
