/*
 * columnfile.h - what users bring: reads a file of lines "URL, tab, value" into a table of values by page id.
 */
#ifndef WB_INDEX_COLUMNFILE_H
#define WB_INDEX_COLUMNFILE_H

#include "base/slice.h"

#include <stdbool.h>

#define WB_COLUMNFILE_END "wbu"
#define WB_COLUMNFILE_KIND "UVAL"         /* page id -> 8 bytes of a double, or a word */
#define WB_COLUMNFILE_NUMBERS_KIND "UNUM" /* by docid */
#define WB_COLUMNFILE_CODES_KIND "UCOD"   /* by docid */
#define WB_COLUMNFILE_WORDS_KIND "UWRD"

/*
 * Reads the file and writes the table at path. Of several lines with one URL, the last counts. WB_E_INVALID names file,
 * line and column if a line is wrong. *words_out: the values are words.
 */
int wb_columnfile_import(const char *file, const char *column, const char *temp_dir, const char *path, bool *words_out);

#endif
