/* contents.h - finding a content's number by its MD5. */
#ifndef WB_WEBDB_CONTENTS_H
#define WB_WEBDB_CONTENTS_H

#include "webdb/generation.h"

/* The rank of the first entry of an MD5 (digests are spread evenly: a few steps of interpolation). False where there is none. */
bool wb_contents_find(const struct wb_column *contents, const uint8_t md5[WB_EDIT_MD5_BYTES], uint64_t *number_out);

#endif
