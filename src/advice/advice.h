/*
 * advice.h - the door of advice: which storage design suits a load?
 *
 * It knows what each operation of each organisation costs (advice_costs.h, which bench/run paper writes), and judges
 * all 42 designs by the work that a load makes for the nodes. It never opens a repository.
 * docs/design/0037-advice.md has the formulas.
 */
#ifndef WB_ADVICE_ADVICE_H
#define WB_ADVICE_ADVICE_H

#include "place/design.h"

/* ---- costs --------------------------------------------------------------------------------------- */

/* Microseconds of a node for one page. */
struct wb_advice_organisation_costs {
    double add;        /* as a crawler delivers them, in no order of ids */
    double add_sorted; /* in the order of ids */
    double bring;      /* from update nodes of the same organisation */
    double get;
    double stream;
    double compact; /* copying a page that stays; 0 if replaced pages leave no holes */
};

/* Of enum wb_organisation_kind, and designs of wb_design_nth(). */
#define WB_ADVICE_ORGANISATIONS 3
#define WB_ADVICE_DESIGNS 42

struct wb_advice_costs {
    struct wb_advice_organisation_costs organisation[WB_ADVICE_ORGANISATIONS];
    double merge;    /* hash: reading and writing a page of a bucket into which sorted pages are merged */
    double index;    /* an entry of an index, written */
    double lookup;   /* an entry of the global index, found: uniform distribution */
    double conflict; /* reading and writing in turn takes 1 + conflict times as long as one after the other */
};

/* What bench/run paper has measured, and where, in words. */
extern const struct wb_advice_costs wb_advice_measured;
const char *wb_advice_measured_where(void);

/* ---- advice -------------------------------------------------------------------------------------- */

struct wb_advice_load {
    double add, get, stream; /* pages per second */
    double update_ratio;     /* which part of the pages is replaced before the dead ones are cleared: 0 to 1 */
    unsigned nodes;          /* at least 1; in a batch design, update nodes and read nodes together */
};

#define WB_ADVICE_REASON_MAX 320

struct wb_advice {
    struct wb_design design;
    double score;            /* how many times the load it can carry, two digits; at most WB_ADVICE_SCORE_MAX */
    double add, get, stream; /* pages per second if nothing else is asked of it */
    unsigned update_nodes;   /* the best division of the nodes; 0 in an incremental design, or if all share one */
    char reason[WB_ADVICE_REASON_MAX];
};

/* The score of a design for which the load is no work at all. */
#define WB_ADVICE_SCORE_MAX 1e9

/* "1200", "61", "0.14": as people write a number of two digits. Returns text_out. */
#define WB_ADVICE_SCORE_TEXT_MAX 32
const char *wb_advice_score_text(double score, char text_out[WB_ADVICE_SCORE_TEXT_MAX]);

/* Judges all designs; the best comes first, and of equals the one that wb_design_nth() gives first. */
void wb_advice_for(const struct wb_advice_costs *costs, const struct wb_advice_load *load,
                   struct wb_advice advice_out[WB_ADVICE_DESIGNS]);

#endif
