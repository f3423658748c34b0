/*
 * merge_rules.c - stage 6 of the merge: the robots.txt of each site, so that it is still known when its log is gone.
 *
 * The newest robots.txt of each site is kept until it expires. A site is identified by the hash of its name, as in the
 * chains of the journal, because records of rules do not contain the name.
 */
#include "base/bytes.h"
#include "webdb/rulesrow.h"
#include "webdb/writer.h"

enum {
    SITE_BYTES = 8,
    TIME_BYTES = 8,
    RULES_MEMORY_BYTES = 16 << 20, /* for the sorter; records of rules are few */
};

_Static_assert(SITE_BYTES == sizeof(uint64_t) && TIME_BYTES == sizeof(int64_t), "the key is two big-endian numbers");

int wb_merge_rules_add(struct wb_webdb_writer *writer, uint64_t site, const struct wb_webdb_rules *rules)
{
    struct wb_sorter_options options = {.dir = writer->root, .memory_bytes = RULES_MEMORY_BYTES};
    char key[SITE_BYTES + TIME_BYTES];
    int err = 0;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    if (!wb_rulesrow_fits(rules) || rules->expires_ms <= writer->options.now_ms)
        return 0;
    if (!writer->rules_edits)
        err = wb_sorter_open(&options, &writer->rules_edits);
    wb_put64_be(key, site);
    wb_put64_be(key + SITE_BYTES, (uint64_t)rules->time_ms);
    wb_buf_clear(&writer->value);
    if (err == 0)
        err = wb_rulesrow_encode(rules, &writer->value);
    if (err == 0)
        err = wb_sorter_add(writer->rules_edits, wb_slice(key, sizeof key), wb_buf_slice(&writer->value));
    writer->rules_count += err == 0;
    return err;
}

struct rules_stage {
    struct wb_webdb_writer *writer;
    struct wb_table *old_table;
    struct wb_cursor *old;
    struct wb_table_writer *table;
    struct wb_merge *merge;
    struct wb_buf row; /* the newest robots.txt of the current site; empty if it has expired */
    int64_t time_ms;   /* when that was read */
};

/* What is true whenever a function of this stage is entered. */
static void check_stage(const struct rules_stage *s)
{
    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_MERGING));
    WB_CHECK(s->writer->pages_merged);
    WB_CHECK(s->time_ms >= 0);
}

/* Keeps the row if it is newer than the one before it. Edits come in order of time, but the old row may be newer. */
static int take_row(struct rules_stage *s, struct wb_slice row)
{
    struct wb_webdb_rules rules;
    int err = wb_rulesrow_decode(row, &rules);

    check_stage(s);
    if (err < 0 || rules.time_ms < s->time_ms)
        return err;
    s->time_ms = rules.time_ms;
    wb_buf_clear(&s->row);
    return rules.expires_ms > s->writer->options.now_ms ? wb_buf_append_slice(&s->row, row) : 0;
}

static int merge_site(struct rules_stage *s, struct wb_slice site, const struct wb_table_record *old)
{
    struct wb_table_record edit;
    int got;

    check_stage(s);
    WB_CHECK(s->merge != NULL);
    WB_CHECK(s->table != NULL);
    if (site.len != SITE_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s: a row of rules has an invalid key", s->writer->root);
    s->time_ms = 0;
    wb_buf_clear(&s->row);
    got = old->key.ptr ? take_row(s, old->value) : 0;
    while (got == 0 && (got = wb_merge_edit(s->merge, &edit)) > 0)
        got = take_row(s, edit.value);
    if (got < 0 || s->row.len == 0)
        return got;
    return wb_table_add(s->table, site, wb_buf_slice(&s->row));
}

static int walk_sites(struct rules_stage *s)
{
    struct wb_table_record old;
    struct wb_slice site;
    int got = 0, err = 0;

    check_stage(s);
    WB_CHECK(s->merge != NULL);
    while (err == 0 && (got = wb_merge_next(s->merge, &site, &old)) > 0)
        err = merge_site(s, site, &old);
    return err < 0 ? err : got;
}

/* A merge needs a sorter, even if there are no edits. */
static int open_stage(struct rules_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    struct wb_sorter_options options = {.dir = writer->root};
    int err = writer->rules_edits ? 0 : wb_sorter_open(&options, &writer->rules_edits);

    check_stage(s);
    WB_CHECK(s->table == NULL);
    if (err == 0)
        err = wb_writer_open_old_table(writer, WB_RULES_FILE, WB_RULES_KIND, &s->old_table, &s->old);
    if (err == 0)
        err = wb_writer_create_table(writer, WB_RULES_FILE, WB_RULES_KIND, 0, &s->table);
    if (err == 0)
        err = wb_sorter_sort(writer->rules_edits);
    return err < 0 ? err : wb_merge_open(s->old, writer->rules_edits, TIME_BYTES, &s->merge);
}

int wb_merge_rules(struct wb_webdb_writer *writer)
{
    struct rules_stage s = {.writer = writer};

    WB_CHECK(writer->target_edits == NULL); /* stage 4 is done */
    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    int err = open_stage(&s);

    if (err == 0)
        err = walk_sites(&s);
    if (err == 0) {
        err = wb_table_finish(s.table, NULL);
        s.table = NULL;
    }
    wb_merge_close(s.merge);
    wb_table_abandon(s.table);
    wb_cursor_close(s.old);
    wb_table_close(s.old_table);
    wb_buf_release(&s.row);
    return err;
}
