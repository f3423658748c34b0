/* explain.c - shows how a query is evaluated: the plan with estimated and real numbers, and the parts of a score. */
#include "base/check.h"
#include "query/results.h"

static const char *const leaf_names[] = {
    [WB_LEAF_NOTHING] = "nothing", [WB_LEAF_WORDS] = "lists",   [WB_LEAF_DOCS] = "links",
    [WB_LEAF_BITS] = "beginnings", [WB_LEAF_RANGES] = "ranges", [WB_LEAF_COLUMN] = "column",
};

/* How many documents match a part, whether they are shown or not. */
static uint64_t count_node(struct wb_qplan *plan, const struct wb_qnode *node)
{
    struct wb_windowbits bits;
    uint64_t count = 0;

    for (uint32_t from = 0; from < plan->searcher->urls && plan->err == 0;) {
        uint32_t next = wb_qnode_next(plan, node, from);
        struct wb_window window = {next / WB_WINDOW * WB_WINDOW, WB_WINDOW};
        if (next >= plan->searcher->urls)
            break;
        WB_CHECK(next >= from);
        if (wb_qnode_eval(plan, node, window, &bits))
            count += wb_bits_count(window, &bits);
        from = window.base + window.size;
    }
    return count;
}

static int print_slots(const struct wb_leaf_words *words, struct wb_buf *out)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < words->slot_count; i++)
        err = wb_buf_printf(out, "%s%.*s %llu in %zu", i ? ", " : ": ", WB_SLICE_ARG(words->slots[i].text),
                            (unsigned long long)words->slots[i].df, words->slots[i].list_count);
    return err;
}

static int print_leaf(const struct wb_leaf *leaf, struct wb_buf *out)
{
    WB_CHECK(leaf->kind < sizeof leaf_names / sizeof *leaf_names);
    int err = leaf->ask ? wb_ask_print(leaf->ask, out) : wb_buf_append_str(out, "everything");
    if (err == 0)
        err = wb_buf_printf(out, " (%s", leaf_names[leaf->kind]);
    if (err == 0 && leaf->kind == WB_LEAF_WORDS)
        err = print_slots(WB_WORDS_OF(leaf), out);
    if (err == 0 && leaf->verify)
        err = wb_buf_append_str(out, WB_WORDS_OF(leaf)->phrase ? "; positions" : "; fields");
    if (err == 0 && leaf->deferred)
        err = wb_buf_append_str(out, " last");
    return err < 0 ? err : wb_buf_append_char(out, ')');
}

static int print_node(struct wb_qplan *plan, const struct wb_qnode *node, unsigned depth, struct wb_buf *out)
{
    static const char *const names[] = {[WB_QNODE_AND] = "AND", [WB_QNODE_OR] = "OR", [WB_QNODE_NOT] = "NOT"};
    int err = wb_buf_printf(out, "%*s", (int)(2 * depth), "");

    if (err == 0)
        err = node->kind == WB_QNODE_LEAF ? print_leaf(node->leaf, out) : wb_buf_append_str(out, names[node->kind]);
    if (err == 0)
        err = wb_buf_printf(out, ": about %llu, found %llu\n", (unsigned long long)node->cost,
                            (unsigned long long)count_node(plan, node));
    for (size_t i = 0; err == 0 && i < node->item_count; i++)
        err = print_node(plan, node->items[i], depth + 1, out);
    return err < 0 ? err : plan->err;
}

int wb_explain_plan(struct wb_qplan *plan, struct wb_buf *out)
{
    int err = wb_buf_append_str(out, "query ");

    if (err == 0)
        err = wb_ask_print(plan->ask.root, out);
    if (err == 0)
        err = wb_buf_append_char(out, '\n');
    if (err == 0 && plan->dup_no)
        err = wb_buf_append_str(out, "one of each group of near duplicates\n");
    if (err == 0 && !plan->with_status)
        err = wb_buf_append_str(out, "without pages whose status is not 2xx\n");
    if (err < 0)
        return err;
    return plan->root ? print_node(plan, plan->root, 0, out) : wb_buf_append_str(out, "there is no word in it\n");
}

/* ---- the parts of a score --------------------------------------------------------------------------- */

static int add_slot(struct wb_qplan *plan, struct wb_slot *slot, uint32_t docid, struct wb_hit_part *part)
{
    uint32_t score = 0, frequency[WB_FIELDS];
    int err = 0;

    WB_CHECK(slot->scorer);
    for (size_t i = 0; err == 0 && i < slot->list_count; i++) {
        struct wb_postlist *list = slot->lists[i];
        if (list->docid != docid && wb_postlist_seek(list, docid) != docid)
            continue;
        err = wb_postlist_frequencies(list, frequency);
        for (int f = 0; err == 0 && f < WB_FIELDS; f++)
            part->frequency[f] += frequency[f];
        if (err == 0)
            score +=
                plan->plain ? wb_scoring_plain(plan, slot, docid, frequency) : wb_postlist_score(list, slot->scorer);
    }
    part->score = wb_scoring_value(plan, score);
    return err;
}

static bool leaf_counts(struct wb_qplan *plan, struct wb_leaf *leaf, uint32_t docid)
{
    struct wb_window window = {docid / 64 * 64, 64};
    struct wb_windowbits bits;

    if (!leaf->scored || (leaf->kind != WB_LEAF_WORDS && leaf->constant == 0))
        return false;
    bits.word[0] = 1ull << docid % 64;
    wb_leaf_filter(leaf, window, &bits);
    return bits.word[0] && (!leaf->verify || wb_leaf_matches(plan, leaf, docid));
}

/* What a leaf without lists adds. */
static uint32_t constant_of(const struct wb_qplan *plan, const struct wb_leaf *leaf, uint32_t docid)
{
    const struct wb_leaf_docs *docs = leaf->kind == WB_LEAF_DOCS ? WB_DOCS_OF(leaf) : NULL;

    for (size_t i = 0; docs && docs->scores && i < docs->count; i++)
        if (docs->items[i] == docid)
            return docs->scores[i] >> plan->shift;
    return leaf->constant;
}

/* The length that the page has for its score: a range of lengths has the same byte, of which this is the least. */
static int set_length(const struct wb_qplan *plan, uint32_t docid, struct wb_hit *hit)
{
    const void *lengths = NULL;

    if (plan->plain) {
        hit->length = docid < plan->searcher->pages ? plan->words[docid] : (uint64_t)plan->average;
        return 0;
    }
    int err = wb_index_fact(plan->searcher->index, WB_FACT_LENGTH, &lengths);
    if (err == 0)
        hit->length = wb_length_of_byte(((const uint8_t *)lengths)[docid]);
    return err;
}

int wb_explain_hit(struct wb_qplan *plan, uint32_t docid, struct wb_arena *arena, struct wb_hit *hit)
{
    size_t slots = 1;
    int err = 0;

    WB_CHECK(arena == plan->arena); /* where the parts are taken from */
    WB_CHECK(docid < plan->searcher->urls && hit->part_count == 0);
    for (size_t i = 0; i < plan->leaves.count; i++) {
        const struct wb_leaf *leaf = plan->leaves.items[i];
        slots += leaf->kind == WB_LEAF_WORDS ? WB_WORDS_OF(leaf)->slot_count : 1;
    }
    struct wb_hit_part *parts = wb_qplan_take(plan, slots * sizeof *parts);
    if (!parts)
        return WB_E_NOMEM;
    hit->parts = parts;
    for (size_t i = 0; err == 0 && i < plan->leaves.count; i++) {
        struct wb_leaf *leaf = plan->leaves.items[i];
        if (!leaf_counts(plan, leaf, docid))
            continue;
        WB_CHECK(hit->part_count < slots);
        if (leaf->kind != WB_LEAF_WORDS) {
            parts[hit->part_count++] = (struct wb_hit_part){
                .term = leaf->ask->text, .score = wb_scoring_value(plan, constant_of(plan, leaf, docid))};
            continue;
        }
        const struct wb_leaf_words *words = WB_WORDS_OF(leaf);
        for (size_t s = 0; err == 0 && s < words->slot_count; s++) {
            parts[hit->part_count].term = words->slots[s].text;
            err = add_slot(plan, &words->slots[s], docid, &parts[hit->part_count++]);
        }
    }
    if (err == 0 && !plan->plain)
        parts[hit->part_count++] = (struct wb_hit_part){
            .term = WB_SLICE_LIT("PageRank"),
            .score = wb_scoring_value(plan, wb_scoring_static(plan, plan->searcher->statics[docid]))};
    if (err == 0)
        err = set_length(plan, docid, hit);
    return err < 0 ? err : plan->err;
}
