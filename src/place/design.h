/*
 * design.h - the door of design: the notation of the WebBase paper for how a repository stores its pages.
 *
 *   Incr[p,o]                  every node takes new pages and serves readers
 *   Batch[U(p,o),R(p,o)]       update nodes take new pages, read nodes serve; `transfer` brings pages to the latter
 *
 *   p  distribution: which node a page is on      hash (by its id), uniform (any)
 *   o  organisation: how a node stores its pages  log, hash, hashed-log
 */
#ifndef WB_PLACE_DESIGN_H
#define WB_PLACE_DESIGN_H

#include "base/slice.h"

#include <stdbool.h>

enum wb_distribution { WB_DISTRIBUTION_HASH, WB_DISTRIBUTION_UNIFORM };
enum wb_organisation_kind { WB_ORGANISATION_LOG, WB_ORGANISATION_HASH, WB_ORGANISATION_HASHED_LOG };

struct wb_design_part {
    enum wb_distribution distribution;
    enum wb_organisation_kind organisation;
};

/* All zero is the default, Incr[hash,log]. */
struct wb_design {
    bool batch;
    struct wb_design_part read;   /* in an incremental design: all nodes */
    struct wb_design_part update; /* batch only */
};

/* At most so many nodes have the pages of a repository, or of each of the two parts of a batch design. */
#define WB_DESIGN_NODES_MAX 64

/*
 * Parses a design; blanks between its parts are ignored. WB_E_INVALID, with a message that names the part that is
 * wrong, or else the whole text.
 */
int wb_design_parse(struct wb_slice text, struct wb_design *design_out);

/* One spelling for each design, without blanks. */
#define WB_DESIGN_TEXT_MAX 64
void wb_design_format(const struct wb_design *design, char text_out[WB_DESIGN_TEXT_MAX]);

/* The words of the parts; the parsers give WB_E_INVALID, which names the word. */
const char *wb_distribution_word(enum wb_distribution distribution);
const char *wb_organisation_word(enum wb_organisation_kind organisation);
int wb_distribution_parse(struct wb_slice word, enum wb_distribution *distribution_out);
int wb_organisation_parse(struct wb_slice word, enum wb_organisation_kind *organisation_out);

/* Number `index` of all designs: 6 incremental ones, then 36 batch designs. Returns false behind the last one. */
bool wb_design_nth(unsigned index, struct wb_design *design_out);

#endif
