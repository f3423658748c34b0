/* contents.h - finding a content's number by its MD5. */
#ifndef WB_WEBDB_CONTENTS_H
#define WB_WEBDB_CONTENTS_H

#include "webdb/edition.h"

/*
 * The rank of the first entry of an MD5. WB_E_NOTFOUND, without a message, if there is none: said only after every entry that the
 * search looked at has been compared with its checksum. WB_E_CORRUPT.
 */
int wb_contents_find(const struct wb_column *contents, const uint8_t md5[WB_EDIT_MD5_BYTES], uint64_t *number_out);

#endif
