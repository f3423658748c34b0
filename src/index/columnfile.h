/*
 * columnfile.h - what users bring: reads a file of lines "URL, tab, value" into a table of values by page id, or a file
 * of seeds, one in each line, into a table of seeds.
 *
 *   seed   example.org/a/b             a URL, as its key -> its href: the page that has this key
 *          example.org, edu, h:8080    a host -> nothing: the pages of this host and of hosts below it
 *
 * The keys of seeds begin with 'U' or 'H', which says which of the two they are.
 */
#ifndef WB_INDEX_COLUMNFILE_H
#define WB_INDEX_COLUMNFILE_H

#include "base/slice.h"

#include <stdbool.h>

#define WB_COLUMNFILE_END "wbu"
#define WB_COLUMNFILE_KIND "UVAL"         /* page id -> 8 bytes of a double, or a word */
#define WB_COLUMNFILE_SEEDS_KIND "USED"   /* seed -> href or nothing */
#define WB_COLUMNFILE_NUMBERS_KIND "UNUM" /* by docid */
#define WB_COLUMNFILE_CODES_KIND "UCOD"   /* by docid */
#define WB_COLUMNFILE_WORDS_KIND "UWRD"

/*
 * Reads the file and writes the table at path. Of several lines with one URL, the last counts. WB_E_INVALID names file,
 * line and column if a line is wrong. *words_out: the values are words.
 */
int wb_columnfile_import(const char *file, const char *column, const char *temp_dir, const char *path, bool *words_out);

/*
 * Reads a file of seeds: in each line a URL, with or without http://, or a host. Empty lines and lines that begin with
 * # are skipped. WB_E_INVALID names file, line and column if a line is wrong, or the file if it has no seed.
 */
int wb_columnfile_import_seeds(const char *file, const char *column, const char *temp_dir, const char *path);

#define WB_COLUMNFILE_SEED_URL 'U'
#define WB_COLUMNFILE_SEED_HOST 'H'

#endif
