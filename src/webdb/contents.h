/* contents.h - finds the number of a content by its MD5. */
#ifndef WB_WEBDB_CONTENTS_H
#define WB_WEBDB_CONTENTS_H

#include "webdb/edition.h"

/*
 * The rank of the first entry with this MD5. Every entry that the search looks at is compared with its checksum first,
 * so WB_E_NOTFOUND can be trusted; it sets no message. WB_E_CORRUPT.
 */
int wb_contents_find(const struct wb_column *contents, const uint8_t md5[WB_EDIT_MD5_BYTES], uint64_t *number_out);

#endif
