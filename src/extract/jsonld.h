/*
 * jsonld.h - private to page: the few facts of schema.org that we read in JSON-LD.
 *
 *   <script type="application/ld+json">{"@type": "NewsArticle", "datePublished": "2024-03-04"}</script>
 */
#ifndef WB_EXTRACT_JSONLD_H
#define WB_EXTRACT_JSONLD_H

#include "base/arena.h"

/* Longer scripts, and values nested deeper, are not read. */
#define WB_JSONLD_MAX_BYTES ((size_t)1 << 20)
#define WB_JSONLD_DEPTH_MAX 64

/* What the best object says that has the property; empty where none has. */
struct wb_jsonld {
    struct wb_slice type, published, modified;
    struct wb_slice author; /* several are joined by ", " */
};

/*
 * Reads the text of one script. Objects count on the top level, in arrays, in @graph, mainEntity and
 * mainEntityOfPage; articles before other things, and of two alike the first. Text that is not JSON
 * says nothing. The slices lie in text or in arena, as UTF-8. Only WB_E_NOMEM is an error.
 */
int wb_jsonld_read(struct wb_arena *arena, struct wb_slice text, struct wb_jsonld *facts_out);

#endif
