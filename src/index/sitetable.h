/*
 * sitetable.h - the sites of a generation: SURT of the site ("org,example)") -> its docids. The rank of a row is the
 * number of the site.
 *
 *   row, 16 bytes   0 first page (4)  4 behind the last page (4)  8 first other URL (4)  12 behind the last other URL
 * (4)
 *
 * URLs are in the order of SURTs, so the URLs of a site are neighbours in each of the two parts of the docids.
 */
#ifndef WB_INDEX_SITETABLE_H
#define WB_INDEX_SITETABLE_H

#include "base/arena.h"
#include "index/generation.h"

struct wb_sitetable_row {
    struct wb_index_range pages, others;
};

/* ---- writing: one call per URL, in the order of SURTs, then all at once */

struct wb_sitetable_site {
    struct wb_slice surt;
    uint32_t pages, others; /* how many URLs it has of each kind */
};

struct wb_sitetable {
    struct wb_arena texts;
    WB_VEC(struct wb_sitetable_site) sites;
};

/* *site_out is the number of the URL's site. */
int wb_sitetable_add(struct wb_sitetable *table, struct wb_slice surt, bool page, uint32_t *site_out);

/* pages: how many URLs are pages, which is the first docid of the others. */
int wb_sitetable_write(const struct wb_sitetable *table, const char *path, uint32_t pages);
void wb_sitetable_release(struct wb_sitetable *table);

/*
 * Does what wb_index_sites() does, with a cursor of a table of sites that belongs to these docids. path is the
 * directory that has the table.
 */
int wb_sitetable_each(struct wb_cursor *cursor, const struct wb_docmap *docmap, const char *path, struct wb_slice host,
                      int (*each)(void *context, struct wb_index_range range), void *context);

#endif
