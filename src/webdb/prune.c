/*
 * prune.c - compares the journal with the newest edition: how many bytes are not merged yet, and which logs can go.
 *
 * A log can be removed once the newest edition contains all of it and no crawler needs it any more. A log that has not
 * ended is never removed: a process is still writing it, or the next crawl must recover it first.
 */
#include "base/mem.h"
#include "webdb/edition.h"

/* The logs of the journal, and how far the newest edition has read each of them. */
struct merged_journal {
    struct wb_journal_log *logs;
    size_t count;
    struct wb_manifest manifest; /* of the newest edition; empty if there is none */
};

static int open_journal(const char *dir, struct merged_journal *journal)
{
    WB_CHECK(dir != NULL);
    *journal = (struct merged_journal){0};
    int err = wb_journal_list_logs(dir, &journal->logs, &journal->count);

    return err < 0 ? err : wb_edition_newest_manifest(dir, &journal->manifest);
}

static void close_journal(struct merged_journal *journal)
{
    WB_CHECK(journal->count == 0 || journal->logs != NULL);
    wb_free(journal->logs);
    wb_manifest_release(&journal->manifest);
}

/* Where the newest edition stopped reading a log. */
static uint64_t merged_end(const struct merged_journal *journal, uint32_t log)
{
    WB_CHECK(log > 0);
    for (size_t i = 0; i < journal->manifest.logs.count; i++) {
        const struct wb_manifest_log *merged = &journal->manifest.logs.items[i];
        if (merged->log == log && merged->last) {
            WB_CHECK(merged->end > merged->last);
            return merged->end;
        }
    }
    return WB_JOURNAL_RECORDS_AT;
}

int wb_webdb_unmerged(const char *dir, uint64_t *bytes_out)
{
    struct merged_journal journal;

    WB_CHECK(dir != NULL);
    *bytes_out = 0;
    int err = open_journal(dir, &journal);
    for (size_t i = 0; err == 0 && i < journal.count; i++) {
        uint64_t merged = merged_end(&journal, journal.logs[i].number);
        *bytes_out += journal.logs[i].end > merged ? journal.logs[i].end - merged : 0;
    }
    close_journal(&journal);
    return err;
}

/* ---- pruning ----------------------------------------------------------------------------------- */

static bool is_needed(const struct merged_journal *journal, const struct wb_journal_log *log,
                      struct wb_journal_reader *reader, const struct wb_journal_needs *needs)
{
    WB_CHECK(reader != NULL);
    WB_CHECK(needs != NULL);
    if (!log->ended || merged_end(journal, log->number) < log->end)
        return true;
    return wb_journal_needs_log(needs, log->number) && wb_journal_log_is_of_crawl(reader, log->number);
}

static int prune(const char *dir, const struct merged_journal *journal, const struct wb_journal_needs *needs,
                 uint64_t *bytes_out)
{
    struct wb_journal_reader *reader = NULL;
    uint32_t *numbers = wb_alloc_zero(journal->count, sizeof *numbers);
    size_t count = 0;
    int err = numbers ? wb_journal_reader_open(dir, &reader) : WB_E_NOMEM;

    WB_CHECK(journal->count > 0);
    for (size_t i = 0; err == 0 && i < journal->count; i++)
        if (!is_needed(journal, &journal->logs[i], reader, needs))
            numbers[count++] = journal->logs[i].number;
    WB_CHECK(count <= journal->count);
    wb_journal_reader_close(reader);
    if (err == 0)
        err = wb_journal_remove_logs(dir, numbers, count, bytes_out);
    wb_free(numbers);
    return err;
}

int wb_webdb_prune_journal(const char *dir, const struct wb_journal_needs *needs, uint64_t *bytes_out)
{
    struct merged_journal journal;

    WB_CHECK(dir != NULL);
    WB_CHECK(needs != NULL);
    *bytes_out = 0;
    int err = open_journal(dir, &journal);
    if (err == 0 && journal.count)
        err = prune(dir, &journal, needs, bytes_out);
    close_journal(&journal);
    return err;
}
