/*
 * factpen.h - writes rows of facts about pages to a file: CSV (RFC 4180), JSON lines, Parquet, or SQLite
 * (factsqlite.c).
 *
 *   open -> row, link ... -> finish -> close          (close is safe at any time)
 *
 * What the columns are, and what is in them, is decided by factrows.c.
 */
#ifndef WB_FACTS_FACTPEN_H
#define WB_FACTS_FACTPEN_H

#include "facts/facts.h"
#include "os/newfile.h"
#include "parquet/parquet.h"

enum wb_factcell_kind { WB_FACTCELL_NONE, WB_FACTCELL_TEXT, WB_FACTCELL_WHOLE, WB_FACTCELL_NUMBER, WB_FACTCELL_TIME };

struct wb_factcell {
    enum wb_factcell_kind kind; /* NONE: the value is not known */
    struct wb_slice text;       /* of a time, too, as RFC 3339... */
    int64_t time_ms;            /* ...and this is the time */
    uint64_t whole;
    double number;
};

struct wb_factcolumn {
    const char *name;
    enum wb_factcell_kind kind; /* of all values that are known */
    bool always;                /* every row has a value */
};

struct wb_factsqlite;

struct wb_factpen {
    enum wb_facts_format format;
    struct wb_newfile file;
    const struct wb_factcolumn *columns; /* the caller's */
    size_t column_count;
    struct wb_factsqlite *sqlite;
    struct wb_parquet *parquet;
    struct wb_parquet_column *parquet_columns;
    struct wb_parquet_cell *parquet_cells;
    struct wb_buf line;
};

#define WB_FACTPEN_INIT ((struct wb_factpen){.file = WB_NEWFILE_INIT})

/* Must be closed even if this fails. */
int wb_factpen_open(struct wb_factpen *pen, const struct wb_facts_options *options, const struct wb_factcolumn *columns,
                    size_t column_count);

/* Whether the format has a place for links. */
bool wb_factpen_has_links(const struct wb_factpen *pen);

/* A row has a cell for each column. */
int wb_factpen_row(struct wb_factpen *pen, const struct wb_factcell *cells);
int wb_factpen_link(struct wb_factpen *pen, struct wb_slice from, struct wb_slice to, struct wb_slice anchor);

/* Makes the file durable under its name. */
int wb_factpen_finish(struct wb_factpen *pen);
void wb_factpen_close(struct wb_factpen *pen);

/* ---- factsqlite.c -------------------------------------------------------------------------------- */

/* Opens an empty file that exists. Everything is one transaction, which finish() commits. */
int wb_factsqlite_open(const char *path, const struct wb_factcolumn *columns, size_t column_count,
                       struct wb_factsqlite **sqlite_out);
int wb_factsqlite_row(struct wb_factsqlite *sqlite, const struct wb_factcell *cells, size_t count);
int wb_factsqlite_link(struct wb_factsqlite *sqlite, struct wb_slice from, struct wb_slice to, struct wb_slice anchor);
int wb_factsqlite_finish(struct wb_factsqlite *sqlite);
void wb_factsqlite_close(struct wb_factsqlite *sqlite);

#endif
