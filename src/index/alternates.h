/*
 * alternates.h - pages that have the same text in other languages, as their URLs and their languages show.
 *
 *   example.org/de/intro   German          example.org/intro.de.html   German
 *   example.org/en/intro   English         example.org/intro.html      English
 *
 * A URL names a language if a part of it is a language's code, alone (de) or with a region (de-AT, pt_BR), and the page
 * is in that language. Without that part, the URLs of all versions are the same; one of them may have no such part at
 * all. So a code that is only a word (/it/, /no/) does no harm unless two pages fit each other.
 */
#ifndef WB_INDEX_ALTERNATES_H
#define WB_INDEX_ALTERNATES_H

#include "index/build.h"

/* Notes what the URL of a page says, while the roster is made. */
int wb_alternates_note(struct wb_build *build, struct wb_slice surt, uint32_t docid);

/* Fills in build->alternates, once the languages of all pages are known. */
int wb_alternates_find(struct wb_build *build);

#endif
