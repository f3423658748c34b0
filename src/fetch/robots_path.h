/* robots_path.h - private to crawl: the spelling in which robots.txt paths and URLs are compared. */
#ifndef WB_FETCH_ROBOTS_PATH_H
#define WB_FETCH_ROBOTS_PATH_H

#include "base/buf.h"

/*
 * Escapes are written %XX in upper case; what may not stand in a URL, '$' and (in a
 * URL) '*' are escaped; escapes of "-._~" are decoded. Then there are two ways:
 *
 *   LITERAL  escapes of letters and digits stay, and so do octets above 127 of a URL: the
 *            way an Allow is compared, which opens no more than what it names
 *   FOLDED   escapes of letters and digits are decoded and octets above 127 escaped: the
 *            way a Disallow is compared, which closes every spelling of what it names
 */
enum wb_robots_spelling { WB_ROBOTS_LITERAL, WB_ROBOTS_FOLDED };

/* Appends a path pattern (without its final '$') or a URL's path; *same_out: both spellings of it have the same bytes. */
int wb_robots_path_write(struct wb_slice path, bool pattern, enum wb_robots_spelling spelling, struct wb_buf *out, bool *same_out);

/* Octets of the folded spelling of a pattern: what the longest match is measured by. */
size_t wb_robots_path_octets(struct wb_slice pattern);

/* Path and query of an absolute URL, or of a path: without the fragment; a part of url, "/" or a text that starts with '?' or ';'. */
struct wb_slice wb_robots_path_of(struct wb_slice url);

#endif
