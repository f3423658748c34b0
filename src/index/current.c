/*
 * current.c - whether the last generation is what a build would make now, so that there is nothing to build.
 *
 * A generation follows from the state of the store, the edition of webdb, the history policy (which says how many
 * versions pages have), the columns of users, and our rules for words. Its manifest says from which of these it was
 * made: the epoch grows with every commit that changes a page, an edition is never changed, and nothing else matters.
 * So numbers are compared, no page is read, and it takes the same time whatever the size.
 *
 * Two things numbers do not tell. With a history policy of a duration, versions end with time alone: if any page has
 * several, we build. And the files may have been damaged: if one of them is of another size or younger than the
 * manifest, which was written last, all of them are verified.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/build.h"
#include "os/path.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- what it was made of ------------------------------------------------------------------------- */

static bool same_history(const struct wb_store_history *a, const struct wb_store_history *b)
{
    return a->keep == b->keep && a->value == b->value;
}

static int is_same_store(struct wb_build *build, const struct wb_generation_manifest *last, bool *same_out)
{
    struct wb_store_stat stat;
    int err = wb_store_stat(build->store, &stat);

    *same_out = err == 0 && stat.epoch == last->info.epoch && same_history(&stat.history, &last->history) &&
                (stat.history.keep != WB_STORE_KEEP_DURATION || stat.versions == stat.pages);
    return err;
}

struct edition_hold {
    uint32_t edition;
    char holder[WB_STORE_NAME_MAX + 1];
    bool found;
};

static int find_hold(void *context, uint32_t edition, const char *holder, int64_t since_ms)
{
    struct edition_hold *hold = context;

    (void)since_ms;
    hold->found = hold->found || (edition == hold->edition && strcmp(holder, hold->holder) == 0);
    return 0;
}

/* Whether the generation holds what it was made of. Without that, its snapshot could vanish under its readers. */
static int has_holds(struct wb_build *build, const struct wb_index_info *info, bool *has_out)
{
    struct edition_hold hold = {.edition = info->edition};
    struct wb_store_snapshot snapshot = {0};
    char number[16];

    *has_out = false;
    wb_generation_holder(info->generation, hold.holder);
    snprintf(number, sizeof number, "%" PRIu32, info->snapshot);
    int err = wb_store_snapshot_find(build->store, wb_slice_str(number), &snapshot);
    for (size_t i = 0; err == 0 && i < snapshot.holder_count; i++)
        *has_out = *has_out || (snapshot.holders[i].kind == WB_STORE_HOLDER_GENERATION &&
                                strcmp(snapshot.holders[i].name, hold.holder) == 0);
    *has_out = *has_out && snapshot.epoch == info->epoch;
    wb_store_snapshot_release(&snapshot);
    if (err == 0)
        err = wb_webdb_holds(build->options->dir, find_hold, &hold);
    *has_out = *has_out && hold.found;
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* ---- its files ----------------------------------------------------------------------------------- */

struct file_facts {
    int64_t manifest_ms, newest_ms;
    uint64_t bytes; /* of all files but the manifest */
};

static int add_file(void *context, const struct wb_path_entry *entry)
{
    struct file_facts *facts = context;

    if (strcmp(entry->name, WB_GENERATION_MANIFEST) == 0) {
        facts->manifest_ms = entry->mtime_ms;
        return 0;
    }
    facts->newest_ms = entry->mtime_ms > facts->newest_ms ? entry->mtime_ms : facts->newest_ms;
    facts->bytes += entry->size;
    return 0;
}

struct first_problem {
    uint64_t count;
    char text[WB_ERROR_MESSAGE_MAX];
};

static void note_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    struct first_problem *first = context;

    if (first->count++ == 0)
        snprintf(first->text, sizeof first->text, "%s at %" PRIu64 ": %s", file, offset, message);
}

/* Nothing of a damaged generation is used for the next one: what else is wrong with it may not show. */
static int are_files_good(struct wb_build *build, const struct wb_index_info *info, bool *good_out)
{
    struct file_facts facts = {.newest_ms = INT64_MIN};
    struct first_problem problem = {.count = 0};
    char *path = wb_series_path(build->last_root, info->generation);
    int err = path ? wb_path_each(path, add_file, &facts) : WB_E_NOMEM;

    wb_free(path);
    if (err == 0 && (facts.bytes != info->bytes || facts.newest_ms > facts.manifest_ms))
        err = wb_index_verify(build->options->dir, note_problem, &problem);
    *good_out = err == 0 && problem.count == 0;
    if (err == 0 && problem.count) {
        wb_build_warn(build, "%s; everything is indexed again", problem.text);
        build->from_scratch = true;
    }
    return err;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static int compare(struct wb_build *build, const struct wb_generation_manifest *last, bool *current_out)
{
    const struct wb_index_info *info = &last->info;
    WB_CHECK(info->generation > 0);
    bool same = info->generation == build->last && info->edition == build->options->edition &&
                info->rules == build->result->info.rules && info->damaged == 0;
    int err = same ? is_same_store(build, last, &same) : 0;

    if (err == 0 && same)
        err = has_holds(build, info, &same);
    if (err == 0 && same)
        err = are_files_good(build, info, &same);
    *current_out = err == 0 && same;
    return err;
}

int wb_build_is_current(struct wb_build *build, bool *current_out)
{
    struct wb_index *last = NULL;

    WB_CHECK(build->root != NULL);
    *current_out = false;
    if (build->from_scratch || build->last == 0 || build->lost || strcmp(build->root, build->where.root) != 0)
        return 0;
    /* Opening finds files that are missing or cut off. Whatever is wrong, the build says so. */
    int err = wb_generation_open(build->options->dir, build->last_root, build->last, &last);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    err = compare(build, &last->manifest, current_out);
    if (*current_out)
        build->result->info = last->manifest.info;
    wb_index_close(last);
    return err;
}
