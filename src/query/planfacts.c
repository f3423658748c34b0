/* planfacts.c - leaves for what is known about pages: tests of columns, also those of users. */
#include "base/check.h"
#include "base/error.h"
#include "query/queryplan.h"

/* The column of a field. */
struct wb_field_fact {
    enum wb_fact fact;
    enum wb_value_kind value;
    bool has_none;
    int64_t none; /* the value that means that it is not known */
};

static const struct wb_field_fact field_facts[] = {
    [WB_ASK_STATUS] = {WB_FACT_STATUS, WB_VALUE_U16, false, 0},
    [WB_ASK_INLINKS] = {WB_FACT_INLINKS, WB_VALUE_U32, false, 0},
    [WB_ASK_OUTLINKS] = {WB_FACT_OUTLINKS, WB_VALUE_U32, false, 0},
    [WB_ASK_SIZE] = {WB_FACT_SIZE, WB_VALUE_U64, false, 0},
    [WB_ASK_DEPTH] = {WB_FACT_DEPTH, WB_VALUE_U16, true, UINT16_MAX},
    [WB_ASK_VERSIONS] = {WB_FACT_VERSIONS, WB_VALUE_U32, false, 0},
    [WB_ASK_FETCHED] = {WB_FACT_TIME, WB_VALUE_I64, true, 0},
    [WB_ASK_CHANGED] = {WB_FACT_CHANGED, WB_VALUE_I64, true, 0},
    [WB_ASK_PUBLISHED] = {WB_FACT_PUBLISHED, WB_VALUE_I64, true, 0},
    [WB_ASK_MODIFIED] = {WB_FACT_MODIFIED, WB_VALUE_I64, true, 0},
};

/* A leaf that tests low <= value <= high. */
static int range_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, const struct wb_field_fact *field,
                      int64_t low, int64_t high, struct wb_qnode **node_out)
{
    struct wb_searcher *searcher = plan->searcher;
    struct wb_leaf *leaf = wb_qplan_leaf(plan, ask, WB_LEAF_COLUMN);
    const uint32_t *inlinks = NULL;
    const void *values = NULL;
    int err;

    WB_CHECK(field->value != WB_VALUE_DOUBLE); /* number_leaf() tests those */
    if (!leaf)
        return WB_E_NOMEM;
    if (field->fact == WB_FACT_INLINKS) {
        err = wb_searcher_inlinks(searcher, &inlinks);
        values = inlinks;
    } else {
        err = wb_index_fact(searcher->index, field->fact, &values);
    }
    WB_CHECK(err < 0 || values);
    uint32_t end = field->fact >= WB_FACT_FIRST_OF_PAGES ? searcher->pages : searcher->urls;
    *WB_COLUMN_OF(leaf) = (struct wb_leaf_column){.value = field->value, .values = values, .end = end, .low = low,
                                                  .high = high, .has_none = field->has_none, .none = field->none};
    leaf->cost = end;
    return err < 0 ? err : wb_plan_leaf_node(plan, leaf, node_out);
}

static int nothing(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out)
{
    return wb_plan_leaf_node(plan, wb_qplan_leaf(plan, ask, WB_LEAF_NOTHING), node_out);
}

static int number_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, const double *values, enum wb_ask_op op,
                       double number, struct wb_qnode **node_out)
{
    struct wb_leaf *leaf = wb_qplan_leaf(plan, ask, WB_LEAF_COLUMN);

    WB_CHECK(values && op <= WB_ASK_GE);
    if (!leaf)
        return WB_E_NOMEM;
    *WB_COLUMN_OF(leaf) = (struct wb_leaf_column){.value = WB_VALUE_DOUBLE, .values = values, .op = op,
                                                  .number = number, .end = plan->searcher->urls};
    leaf->cost = plan->searcher->urls;
    return wb_plan_leaf_node(plan, leaf, node_out);
}

/* ---- media types and languages ------------------------------------------------------------------- */

static bool type_matches(struct wb_slice type, struct wb_slice wanted)
{
    if (wb_slice_equal_nocase(wanted, WB_SLICE_LIT("html")))
        return wb_slice_equal(type, WB_SLICE_LIT("text/html")) ||
               wb_slice_equal(type, WB_SLICE_LIT("application/xhtml+xml"));
    return wb_slice_equal_nocase(type, wanted);
}

static int type_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out)
{
    static const struct wb_field_fact field = {WB_FACT_TYPE, WB_VALUE_U32, false, 0};
    struct wb_qnode *found[2] = {NULL, NULL};
    size_t count = 0;
    struct wb_slice name;
    int err = 0;

    for (uint32_t type = 0; err == 0 && count < 2; type++) {
        err = wb_index_type(plan->searcher->index, type, &name);
        if (err == 0 && type_matches(name, ask->text))
            err = range_leaf(plan, ask, &field, type, type, &found[count++]);
    }
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    if (count == 0)
        return nothing(plan, ask, node_out);
    *node_out = found[0];
    if (count == 1)
        return 0;
    *node_out = wb_qplan_node(plan, WB_QNODE_OR, 2);
    if (!*node_out)
        return WB_E_NOMEM;
    memcpy((*node_out)->items, found, sizeof found);
    (*node_out)->item_count = 2;
    (*node_out)->cost = found[0]->cost;
    return 0;
}

static int lang_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out)
{
    static const struct wb_field_fact field = {WB_FACT_LANG, WB_VALUE_U8, false, 0};
    uint8_t number = wb_language_number(ask->text);

    return number ? range_leaf(plan, ask, &field, number, number, node_out) : nothing(plan, ask, node_out);
}

/* ---- columns of users --------------------------------------------------------------------------- */

static int column_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out)
{
    const struct wb_index_column *column = NULL;
    double number = 0;
    uint32_t code = 0;

    WB_CHECK(ask->kind == WB_ASK_NUMBER || ask->kind == WB_ASK_VALUE);
    int err = wb_index_column(plan->searcher->index, ask->column, &column);
    if (err < 0)
        return err;
    if (column->words && ask->kind == WB_ASK_NUMBER)
        return wb_fail(WB_E_INVALID, "the column %s has words, so it cannot be compared with a number", column->name);
    if (!column->words && ask->kind == WB_ASK_NUMBER)
        return number_leaf(plan, ask, column->numbers, ask->op, ask->number, node_out);
    if (!column->words) {
        if (!wb_slice_to_double(ask->text, &number))
            return wb_fail(WB_E_INVALID, "the column %s has numbers, and %.*s is not a number", column->name,
                           WB_SLICE_ARG(ask->text));
        return number_leaf(plan, ask, column->numbers, WB_ASK_EQ, number, node_out);
    }
    err = wb_index_column_code(plan->searcher->index, column, ask->text, &code);
    if (err < 0 || code == 0)
        return err < 0 ? err : nothing(plan, ask, node_out);
    WB_CHECK(column->codes);
    struct wb_leaf *leaf = wb_qplan_leaf(plan, ask, WB_LEAF_COLUMN);
    if (!leaf)
        return WB_E_NOMEM;
    *WB_COLUMN_OF(leaf) = (struct wb_leaf_column){.value = WB_VALUE_U32, .values = column->codes, .low = code,
                                                  .high = code, .end = plan->searcher->urls};
    leaf->cost = plan->searcher->urls;
    return wb_plan_leaf_node(plan, leaf, node_out);
}

/* dup:no inside a group or a negation: whether the page is the first of its near duplicates. */
static int first_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out)
{
    static const struct wb_field_fact field = {WB_FACT_NEAR, WB_VALUE_SELF, false, 0};

    return range_leaf(plan, ask, &field, 0, 0, node_out);
}

int wb_plan_fact(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out)
{
    const void *ranks = NULL;
    int err;

    *node_out = NULL;
    switch (ask->field) {
    case WB_ASK_TYPE:
        return type_leaf(plan, ask, node_out);
    case WB_ASK_LANG:
        return lang_leaf(plan, ask, node_out);
    case WB_ASK_DUP:
        return first_leaf(plan, ask, node_out);
    case WB_ASK_COLUMN:
        return column_leaf(plan, ask, node_out);
    case WB_ASK_RANK:
    case WB_ASK_HOSTRANK:
        err = wb_index_fact(plan->searcher->index, ask->field == WB_ASK_RANK ? WB_FACT_RANK : WB_FACT_HOSTRANK, &ranks);
        return err < 0 ? err : number_leaf(plan, ask, ranks, ask->op, ask->number, node_out);
    default:
        WB_CHECK(ask->kind == WB_ASK_RANGE && ask->field >= WB_ASK_STATUS && ask->field <= WB_ASK_MODIFIED);
        return range_leaf(plan, ask, &field_facts[ask->field], ask->low, ask->high, node_out);
    }
}
