/*
 * factrows.c - reads the facts about pages from the index, and passes them on as rows. It knows nothing about files.
 *
 * Pages that were taken down since the index was built are not in the set of pages that the caller gives, and their
 * links are not counted as in-links of others.
 */
#include "facts/factrows.h"
#include "base/date.h"
#include "base/error.h"
#include "words/words.h"

#include <math.h>

/* In the order of the built-in columns. */
enum built_in {
    IN_URL, IN_ID, IN_TIME, IN_STATUS, IN_TYPE, IN_LENGTH, IN_LANG, IN_TITLE, IN_PUBLISHED, IN_MODIFIED, IN_DEPTH,
    IN_INLINKS, IN_OUTLINKS, IN_RANK, IN_HOSTRANK, BUILT_IN
};

static const struct wb_factcolumn built_in[BUILT_IN] = {
    [IN_URL] = {"url", WB_FACTCELL_TEXT, true},
    [IN_ID] = {"id", WB_FACTCELL_TEXT, true},
    [IN_TIME] = {"time", WB_FACTCELL_TIME, true},
    [IN_STATUS] = {"status", WB_FACTCELL_WHOLE, true},
    [IN_TYPE] = {"type", WB_FACTCELL_TEXT, false},
    [IN_LENGTH] = {"length", WB_FACTCELL_WHOLE, true},
    [IN_LANG] = {"lang", WB_FACTCELL_TEXT, false},
    [IN_TITLE] = {"title", WB_FACTCELL_TEXT, false},
    [IN_PUBLISHED] = {"published", WB_FACTCELL_TIME, false},
    [IN_MODIFIED] = {"modified", WB_FACTCELL_TIME, false},
    [IN_DEPTH] = {"depth", WB_FACTCELL_WHOLE, false},
    [IN_INLINKS] = {"inlinks", WB_FACTCELL_WHOLE, true},
    [IN_OUTLINKS] = {"outlinks", WB_FACTCELL_WHOLE, true},
    [IN_RANK] = {"rank", WB_FACTCELL_NUMBER, true},
    [IN_HOSTRANK] = {"hostrank", WB_FACTCELL_NUMBER, true},
};

static const enum wb_fact needed[] = {WB_FACT_ID,       WB_FACT_SITE,     WB_FACT_DEPTH,     WB_FACT_RANK,
                                      WB_FACT_HOSTRANK, WB_FACT_OUTLINKS, WB_FACT_TIME,      WB_FACT_SIZE,
                                      WB_FACT_STATUS,   WB_FACT_TYPE,     WB_FACT_PUBLISHED, WB_FACT_MODIFIED,
                                      WB_FACT_LANG};

int wb_factrows_init(struct wb_factrows *rows, struct wb_searcher *searcher)
{
    struct wb_index *index = wb_searcher_index(searcher);
    const struct wb_index_column *users;
    size_t count = wb_index_columns(index, &users);
    int err = 0;

    *rows = (struct wb_factrows){.searcher = searcher};
    for (size_t i = 0; err == 0 && i < BUILT_IN; i++)
        err = wb_vec_push(&rows->columns, built_in[i]);
    for (size_t i = 0; err == 0 && i < count; i++) {
        const struct wb_index_column *column = &users[i];
        err = wb_index_column(index, wb_slice_str(users[i].name), &column); /* opens its files */
        if (err == 0)
            err = wb_vec_push(&rows->columns,
                              (struct wb_factcolumn){column->name,
                                                     column->words ? WB_FACTCELL_TEXT : WB_FACTCELL_NUMBER, false});
    }
    for (size_t i = 0; err == 0 && i < sizeof needed / sizeof *needed; i++)
        err = wb_index_fact(index, needed[i], &rows->facts[needed[i]]);
    if (err == 0)
        err = wb_searcher_inlinks(searcher, &rows->inlinks);
    return err < 0 ? err : wb_vec_reserve(&rows->cells, rows->columns.count);
}

void wb_factrows_release(struct wb_factrows *rows)
{
    wb_vec_release(&rows->columns);
    wb_vec_release(&rows->cells);
    wb_arena_release(&rows->texts);
}

/* ---- values -------------------------------------------------------------------------------------- */

static uint64_t whole_of(const struct wb_factrows *rows, enum wb_fact fact, uint32_t docid)
{
    const void *values = rows->facts[fact];

    switch (fact) {
    case WB_FACT_SIZE:
        return ((const uint64_t *)values)[docid];
    case WB_FACT_STATUS:
    case WB_FACT_DEPTH:
        return ((const uint16_t *)values)[docid];
    case WB_FACT_LANG:
        return ((const uint8_t *)values)[docid];
    default:
        return ((const uint32_t *)values)[docid];
    }
}

/* Texts of the index are only valid for a moment, so the row has its own. An empty one is not known. */
static int set_text(struct wb_factrows *rows, struct wb_factcell *cell, struct wb_slice text)
{
    *cell = (struct wb_factcell){.kind = text.len ? WB_FACTCELL_TEXT : WB_FACTCELL_NONE};
    return text.len ? wb_arena_copy(&rows->texts, text, &cell->text) : 0;
}

static int set_time(struct wb_factrows *rows, struct wb_factcell *cell, int64_t time_ms, bool always)
{
    char text[WB_DATE_TEXT_MAX];

    wb_date_format(time_ms, text);
    int err = set_text(rows, cell, time_ms || always ? wb_slice_str(text) : WB_SLICE_EMPTY);
    if (cell->kind == WB_FACTCELL_TEXT)
        cell->kind = WB_FACTCELL_TIME;
    cell->time_ms = time_ms;
    return err;
}

static int set_fact_time(struct wb_factrows *rows, struct wb_factcell *cell, enum wb_fact fact, uint32_t docid)
{
    return set_time(rows, cell, ((const int64_t *)rows->facts[fact])[docid], fact == WB_FACT_TIME);
}

static void set_whole(struct wb_factcell *cell, uint64_t whole)
{
    *cell = (struct wb_factcell){.kind = WB_FACTCELL_WHOLE, .whole = whole};
}

static void set_rank(const struct wb_factrows *rows, struct wb_factcell *cell, enum wb_fact fact, uint32_t docid)
{
    *cell = (struct wb_factcell){.kind = WB_FACTCELL_NUMBER, .number = ((const double *)rows->facts[fact])[docid]};
}

static int set_user_value(struct wb_factrows *rows, struct wb_factcell *cell, const struct wb_index_column *column,
                          uint32_t docid)
{
    struct wb_slice word = WB_SLICE_EMPTY;

    *cell = (struct wb_factcell){.kind = WB_FACTCELL_NONE};
    if (!column->words) {
        cell->number = column->numbers[docid];
        cell->kind = isnan(cell->number) ? WB_FACTCELL_NONE : WB_FACTCELL_NUMBER;
        return 0;
    }
    if (column->codes[docid] == 0)
        return 0;
    int err = wb_index_column_word(wb_searcher_index(rows->searcher), column, column->codes[docid], &word);
    return err < 0 ? err : set_text(rows, cell, word);
}

/* The texts of a page: its URL, title, type and times. */
static int fill_texts(struct wb_factrows *rows, uint32_t docid, struct wb_slice type)
{
    struct wb_index *index = wb_searcher_index(rows->searcher);
    struct wb_factcell *cells = rows->cells.items;
    uint64_t language = whole_of(rows, WB_FACT_LANG, docid);
    struct wb_slice text = WB_SLICE_EMPTY;
    char id[WB_PAGEID_HEX + 1];

    wb_pageid_hex(wb_pageid_get((const char *)rows->facts[WB_FACT_ID] + (size_t)docid * WB_PAGEID_BYTES), id);
    int err = set_text(rows, &cells[IN_TYPE], type);
    if (err == 0)
        err = wb_index_url(index, docid, &text);
    if (err == 0)
        err = set_text(rows, &cells[IN_URL], text);
    if (err == 0)
        err = wb_index_title(index, docid, &text);
    if (err == 0)
        err = set_text(rows, &cells[IN_TITLE], text);
    if (err == 0)
        err = set_text(rows, &cells[IN_ID], wb_slice_str(id));
    if (err == 0)
        err = set_text(rows, &cells[IN_LANG],
                       language < WB_LANGUAGES ? wb_slice_str(wb_language_code((uint8_t)language)) : WB_SLICE_EMPTY);
    if (err == 0)
        err = set_fact_time(rows, &cells[IN_TIME], WB_FACT_TIME, docid);
    if (err == 0)
        err = set_fact_time(rows, &cells[IN_PUBLISHED], WB_FACT_PUBLISHED, docid);
    return err < 0 ? err : set_fact_time(rows, &cells[IN_MODIFIED], WB_FACT_MODIFIED, docid);
}

static int fill_row(struct wb_factrows *rows, uint32_t docid, struct wb_slice type)
{
    const struct wb_index_column *users;
    size_t count = wb_index_columns(wb_searcher_index(rows->searcher), &users);
    struct wb_factcell *cells = rows->cells.items;
    uint64_t depth = whole_of(rows, WB_FACT_DEPTH, docid);

    wb_arena_clear(&rows->texts);
    int err = fill_texts(rows, docid, type);
    set_whole(&cells[IN_STATUS], whole_of(rows, WB_FACT_STATUS, docid));
    set_whole(&cells[IN_LENGTH], whole_of(rows, WB_FACT_SIZE, docid));
    set_whole(&cells[IN_DEPTH], depth);
    if (depth == UINT16_MAX)
        cells[IN_DEPTH].kind = WB_FACTCELL_NONE;
    set_whole(&cells[IN_INLINKS], rows->inlinks[docid]);
    set_whole(&cells[IN_OUTLINKS], whole_of(rows, WB_FACT_OUTLINKS, docid));
    set_rank(rows, &cells[IN_RANK], WB_FACT_RANK, docid);
    set_rank(rows, &cells[IN_HOSTRANK], WB_FACT_HOSTRANK, docid);
    for (size_t i = 0; err == 0 && i < count; i++)
        err = set_user_value(rows, &cells[BUILT_IN + i], &users[i], docid);
    return err;
}

/* ---- which pages --------------------------------------------------------------------------------- */

/* Pages of a site come together, so the answer for the last site is mostly the one that is needed. */
static int has_site(struct wb_factrows *rows, const struct wb_selection *pages, uint32_t docid, bool *wanted_out)
{
    uint32_t site = (uint32_t)whole_of(rows, WB_FACT_SITE, docid);
    struct wb_slice name = WB_SLICE_EMPTY;
    int err = 0;

    if (!rows->site_known || rows->site != site) {
        err = wb_index_site(wb_searcher_index(rows->searcher), site, &name);
        rows->site_known = err == 0;
        rows->site = site;
        rows->site_wanted = err == 0 && wb_selection_has_site(pages, name);
    }
    *wanted_out = rows->site_wanted;
    return err;
}

static int is_wanted(struct wb_factrows *rows, const struct wb_factrows_selection *selection, uint32_t docid,
                     struct wb_slice *type_out, bool *wanted_out)
{
    const struct wb_selection *pages = selection->pages;
    int64_t time_ms = ((const int64_t *)rows->facts[WB_FACT_TIME])[docid];

    *wanted_out = (selection->bits[docid / 64] >> docid % 64 & 1) && wb_selection_has_time(pages, time_ms) &&
                  wb_selection_has_status(pages, (unsigned)whole_of(rows, WB_FACT_STATUS, docid)) &&
                  (selection->language == 0 || whole_of(rows, WB_FACT_LANG, docid) == selection->language);
    int err = *wanted_out ? has_site(rows, pages, docid, wanted_out) : 0;
    if (err == 0 && *wanted_out) {
        err = wb_index_type(wb_searcher_index(rows->searcher), (uint32_t)whole_of(rows, WB_FACT_TYPE, docid), type_out);
        *wanted_out = err == 0 && wb_selection_has_type(pages, *type_out);
    }
    return err;
}

/* ---- writing ------------------------------------------------------------------------------------- */

struct link_pen {
    struct wb_factrows *rows;
    struct wb_factpen *pen;
};

static int write_link(void *context, const struct wb_link_row *row)
{
    struct link_pen *to = context;

    to->rows->counts.links++;
    return wb_factpen_link(to->pen, to->rows->cells.items[IN_URL].text, row->url, row->anchor);
}

static int write_page(struct wb_factrows *rows, uint32_t docid, struct wb_slice type, struct wb_factpen *pen)
{
    struct link_pen links = {rows, pen};
    int err = fill_row(rows, docid, type);

    if (err == 0)
        err = wb_factpen_row(pen, rows->cells.items);
    if (err == 0 && wb_factpen_has_links(pen))
        err = wb_links_of(rows->searcher, docid, WB_ARCS_OUT, write_link, &links);
    rows->counts.pages += err == 0;
    return err;
}

int wb_factrows_write(struct wb_factrows *rows, const struct wb_factrows_selection *selection, struct wb_factpen *pen,
                      const struct wb_facts_options *options)
{
    uint64_t pages = wb_index_info(wb_searcher_index(rows->searcher))->pages;
    int err = 0;

    for (uint32_t docid = 0; err == 0 && docid < pages; docid++) {
        struct wb_slice type = WB_SLICE_EMPTY;
        bool wanted = false;
        err = options->step(options->context, docid, pages, &rows->counts);
        if (err == 0)
            err = is_wanted(rows, selection, docid, &type, &wanted);
        if (err == 0 && wanted)
            err = write_page(rows, docid, type, pen);
    }
    return err;
}
