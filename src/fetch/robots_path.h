/* robots_path.h - the spelling in which paths of robots.txt and of URLs are compared. Used by robots*.c only. */
#ifndef WB_FETCH_ROBOTS_PATH_H
#define WB_FETCH_ROBOTS_PATH_H

#include "base/buf.h"

/*
 * Escapes are written as %XX in upper case. Octets that are not allowed in a URL, '$', and in a URL '*', are escaped.
 * Escapes of "-._~" are decoded. Beyond that there are two spellings:
 *
 *   LITERAL  escapes of letters and digits stay as they are, and so do octets above 127 in a URL. An Allow is compared
 *            in this spelling, so that it opens only what it names
 *   FOLDED   escapes of letters and digits are decoded, and octets above 127 are escaped. A Disallow is compared in
 *            this spelling, so that it closes every spelling of what it names
 */
enum wb_robots_spelling { WB_ROBOTS_LITERAL, WB_ROBOTS_FOLDED };

/* Appends a pattern (without its final '$') or the path of a URL. *same_out: both spellings of it are the same. */
int wb_robots_path_write(struct wb_slice path, bool pattern, enum wb_robots_spelling spelling, struct wb_buf *out,
                         bool *same_out);

/* The length of a pattern in its folded spelling: by this the longest match is measured. */
size_t wb_robots_path_octets(struct wb_slice pattern);

/*
 * Path and query of an absolute URL, or of a path, without the fragment. The result is a part of url, or "/". It may
 * start with '?' or ';' if the URL has no path.
 */
struct wb_slice wb_robots_path_of(struct wb_slice url);

#endif
