/*
 * rowwords.c - the words that stand for outcomes and flags in rows of webdb. `webdb pages` prints them and
 * wb_rows_import() reads them back, so both use these tables.
 */
#include "ingest/ingest.h"

const char *wb_rowwords_outcome(unsigned outcome)
{
    static const char *const words[] = {
        [WB_OUTCOME_STORED] = "stored",
        [WB_OUTCOME_UNCHANGED] = "unchanged",
        [WB_OUTCOME_REDIRECT] = "redirect",
        [WB_OUTCOME_DUPLICATE] = "duplicate",
        [WB_OUTCOME_GONE] = "gone",
        [WB_OUTCOME_TRUNCATED] = "truncated",
        [WB_OUTCOME_ERROR] = "error",
        [WB_OUTCOME_LATER] = "later",
        [WB_OUTCOME_ROBOTS] = "robots",
    };

    return outcome < sizeof words / sizeof *words ? words[outcome] : NULL;
}

const char *wb_rowwords_flag(size_t i, unsigned *flag_out)
{
    static const struct {
        unsigned flag;
        const char *word;
    } flags[] = {
        {WB_PAGE_WANTED, "wanted"},
        {WB_PAGE_GONE, "gone"},
        {WB_PAGE_PUSHED, "pushed"},
        {WB_PAGE_PUSHED_GONE, "pushed-gone"},
        {WB_PAGE_BARRED, "barred"},
        {WB_PAGE_BLOCKED, "blocked"},
        {WB_PAGE_SCORED, "scored"},
        {WB_PAGE_LOADED, "loaded"},
    };

    *flag_out = i < sizeof flags / sizeof *flags ? flags[i].flag : 0;
    return i < sizeof flags / sizeof *flags ? flags[i].word : NULL;
}
