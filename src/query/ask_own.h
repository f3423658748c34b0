/*
 * ask_own.h - what the files of the parser share.
 */
#ifndef WB_QUERY_ASK_OWN_H
#define WB_QUERY_ASK_OWN_H

#include "base/vec.h"
#include "query/ask.h"

/* What follows the colon of a field. */
enum wb_ask_class {
    WB_ASK_CLASS_TEXT,   /* a word, prefix, phrase or group */
    WB_ASK_CLASS_VALUE,  /* a value as typed */
    WB_ASK_CLASS_DUP,    /* no */
    WB_ASK_CLASS_WHOLE,  /* a range of whole numbers */
    WB_ASK_CLASS_DATE,   /* a range of times */
    WB_ASK_CLASS_AFTER,  /* a time, without an operator */
    WB_ASK_CLASS_BEFORE, /* a time, without an operator */
    WB_ASK_CLASS_NUMBER, /* an operator and any number */
    WB_ASK_CLASS_COLUMN, /* a value, or an operator and any number */
};

struct wb_ask_name {
    const char *name;
    enum wb_ask_field field;
    enum wb_ask_class class;
    bool sorts; /* --sort takes it */
};

/* The row of a field in the table of names; NULL if there is none. */
const struct wb_ask_name *wb_ask_find_name(struct wb_slice name);

struct wb_ask_parser {
    struct wb_slice typed; /* the query as it came */
    struct wb_slice text;  /* the copy of it that is read */
    size_t at;             /* the next byte */
    const struct wb_ask_options *options;
    struct wb_arena *arena;
    struct wb_ask *ask;
    unsigned depth;          /* open parentheses */
    enum wb_ask_field group; /* the field of the innermost title:( or the like; WB_ASK_ANY outside of one */
    const char *before;      /* what was read last, if something must follow: "(", "OR", "AND"; else NULL */
    size_t before_at;
    WB_VEC(struct wb_ask_node *) pending; /* the items so far of all groups that are being read, inner ones last */
};

/* WB_E_INVALID: what is wrong at that byte. */
int wb_ask_bad(struct wb_ask_parser *p, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Memory for a node or an array, aligned; NULL when out of memory. */
void *wb_ask_take(struct wb_arena *arena, size_t size);

/* A new node that begins at byte `begin` and ends at p->at. */
int wb_ask_add(struct wb_ask_parser *p, enum wb_ask_kind kind, enum wb_ask_field field, size_t begin,
               struct wb_ask_node **node_out);

/* Whether byte `at` is a blank or behind the end. */
bool wb_ask_ends(const struct wb_ask_parser *p, size_t at);

/* Reads what follows the colon of a field that is not a text field. p->at is behind the colon, the field began at
 * begin. */
int wb_ask_parse_value(struct wb_ask_parser *p, const struct wb_ask_name *name, struct wb_slice column, size_t begin,
                       struct wb_ask_node **node_out);

#endif
