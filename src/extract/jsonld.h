/*
 * jsonld.h - private to extract: the few facts of schema.org that we read from JSON-LD.
 *
 *   <script type="application/ld+json">{"@type": "NewsArticle", "datePublished": "2024-03-04"}</script>
 *
 * Used by htmlfacts.c.
 */
#ifndef WB_EXTRACT_JSONLD_H
#define WB_EXTRACT_JSONLD_H

#include "base/arena.h"

/* Longer scripts and deeper values are ignored. */
#define WB_JSONLD_MAX_BYTES ((size_t)1 << 20)
#define WB_JSONLD_DEPTH_MAX 64

/* Each property comes from the best object that has it; empty if none has. */
struct wb_jsonld {
    struct wb_slice type, published, modified;
    struct wb_slice author; /* several are joined by ", " */
};

/*
 * Reads the text of one script. It considers objects at the top level, in arrays, and in @graph,
 * mainEntity and mainEntityOfPage; articles take precedence over other things, and the first of two
 * equals over the second. A text that is not JSON gives nothing. The slices are UTF-8 and are part of
 * the text or of the arena. Fails only with WB_E_NOMEM.
 */
int wb_jsonld_read(struct wb_arena *arena, struct wb_slice text, struct wb_jsonld *facts_out);

#endif
