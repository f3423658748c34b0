/*
 * genholds.c - what generations hold, and which of them are still needed.
 *
 * A generation holds its snapshot and its edition by a name with its number. Nothing else remembers that: a hold of a
 * generation whose directory does not exist belongs to nobody, be it because a build died, or because the generation
 * was removed. So every build looks for such holds, when it begins and when it ends.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/build.h"
#include "os/path.h"

#include <stdlib.h>

/* The number in "generation-7"; 0 if it is another holder. */
static uint32_t generation_of(const char *holder)
{
    size_t prefix = strlen(WB_GENERATION_HOLDER);
    uint64_t number = 0;

    if (strncmp(holder, WB_GENERATION_HOLDER, prefix) != 0 ||
        !wb_slice_to_u64(wb_slice_str(holder + prefix), &number) || number > UINT32_MAX)
        return 0;
    return (uint32_t)number;
}

/* Whether a series has the generation. */
static int is_in(const char *root, uint32_t generation, bool *there)
{
    WB_CHECK(generation > 0);
    char *path = wb_series_path(root, generation);
    if (!path)
        return WB_E_NOMEM;
    *there = *there || wb_path_kind(path) == WB_PATH_DIR;
    wb_free(path);
    return 0;
}

static int exists(const struct wb_whereabouts *where, uint32_t generation, bool *there_out)
{
    *there_out = false;
    int err = is_in(where->home, generation, there_out);
    if (err == 0)
        err = is_in(where->root, generation, there_out);
    for (size_t i = 0; err == 0 && i < where->others.count; i++)
        err = is_in(where->others.items[i], generation, there_out);
    return err;
}

/* A hold that belongs to nobody any more. */
struct stale {
    uint32_t what; /* the number of the snapshot or edition */
    uint32_t generation;
};

struct stale_list {
    const struct wb_build *build;
    WB_VEC(struct stale) items;
    uint32_t greatest; /* number of any generation that holds anything */
};

static int note_stale(struct stale_list *list, uint32_t what, const char *holder)
{
    uint32_t generation = generation_of(holder);
    bool there = true;
    int err = generation ? exists(&list->build->where, generation, &there) : 0;

    list->greatest = generation > list->greatest ? generation : list->greatest;
    return err == 0 && !there ? wb_vec_push(&list->items, (struct stale){what, generation}) : err;
}

static int note_edition(void *context, uint32_t edition, const char *holder, int64_t since_ms)
{
    (void)since_ms;
    return note_stale(context, edition, holder);
}

static int note_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < snapshot->holder_count; i++)
        if (snapshot->holders[i].kind == WB_STORE_HOLDER_GENERATION)
            err = note_stale(context, snapshot->number, snapshot->holders[i].name);
    return err;
}

static int let_snapshot_go(struct wb_build *build, uint32_t snapshot, uint32_t generation)
{
    struct wb_store_holder holder = {.kind = WB_STORE_HOLDER_GENERATION};

    wb_generation_holder(generation, holder.name);
    int err = wb_store_let_go(build->store, snapshot, &holder);
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int release_edition(struct wb_build *build, uint32_t edition, uint32_t generation)
{
    char name[WB_STORE_NAME_MAX + 1];

    wb_generation_holder(generation, name);
    int err = wb_webdb_release(build->options->dir, edition, name);
    return err == WB_E_NOTFOUND ? 0 : err;
}

void wb_build_let_go(struct wb_build *build)
{
    WB_CHECK(build->number > 0 && build->held);
    release_edition(build, build->options->edition, build->number);
    if (build->snapshot.number)
        let_snapshot_go(build, build->snapshot.number, build->number);
}

int wb_build_greatest_holder(struct wb_build *build, uint32_t *number_out)
{
    struct stale_list list = {.build = build};
    int err = wb_webdb_holds(build->options->dir, note_edition, &list);

    if (err == 0)
        err = wb_store_snapshot_each(build->store, note_snapshot, &list);
    *number_out = list.greatest;
    wb_vec_release(&list.items);
    return err;
}

/* ---- tidying ----------------------------------------------------------------------------------- */

/* Removes the generations of a series with numbers below keep that nobody uses. */
static int clean(struct wb_build *build, const char *root, uint32_t keep)
{
    struct wb_file lock = WB_FILE_INIT, *use = &lock;
    int err = 0;

    if (wb_path_kind(root) != WB_PATH_DIR)
        return 0;
    if (wb_whereabouts_at_home(&build->where, root))
        use = &build->lock;
    else if (build->root && strcmp(root, build->root) == 0)
        use = &build->root_lock;
    else
        err = wb_series_lock(root, &lock);
    WB_CHECK(err < 0 || use->fd >= 0);
    if (err == 0)
        err = wb_series_clean(root, keep, use);
    wb_file_close(&lock);
    return err;
}

/* Whether a series that was cleaned, and is not in use any more, is gone: then nobody has to remember it. */
static int remove_root(const char *root, bool *gone_out)
{
    uint32_t newest = 0;

    WB_CHECK(root[0] == '/');
    char *parent = wb_strdup(root);
    int err = parent ? wb_series_newest(root, &newest) : WB_E_NOMEM;
    *gone_out = false;
    if (err == 0 && newest == 0) {
        err = wb_series_remove(root);
        /* Without the directory above it, its device is missing, and it may come back. */
        char *slash = strrchr(parent, '/');
        WB_CHECK(slash != NULL);
        *slash = '\0';
        *gone_out = err == 0 && (slash == parent || wb_path_kind(parent) == WB_PATH_DIR);
    }
    wb_free(parent);
    return err;
}

static int clean_others(struct wb_build *build)
{
    struct wb_whereabouts *where = &build->where;
    bool changed = false;

    WB_CHECK(build->lock.fd >= 0);
    int err = wb_whereabouts_at_home(where, where->root) ? 0 : clean(build, where->home, UINT32_MAX);
    for (size_t i = where->others.count; err == 0 && i-- > 0;) {
        bool gone = false;
        err = clean(build, where->others.items[i], UINT32_MAX);
        if (err == 0)
            err = remove_root(where->others.items[i], &gone);
        if (gone)
            wb_whereabouts_remove(where, where->others.items[i]);
        changed = changed || gone;
    }
    return err == 0 && changed ? wb_whereabouts_write(where) : err;
}

int wb_build_tidy(struct wb_build *build, uint32_t keep)
{
    struct stale_list list = {.build = build};

    WB_CHECK(keep <= build->number); /* what is being built stays */
    int err = clean(build, build->where.root, keep);
    if (err == 0)
        err = clean_others(build);
    if (err == 0)
        err = wb_webdb_holds(build->options->dir, note_edition, &list);
    for (size_t i = 0; err == 0 && i < list.items.count; i++)
        err = release_edition(build, list.items.items[i].what, list.items.items[i].generation);
    wb_vec_clear(&list.items);
    if (err == 0)
        err = wb_store_snapshot_each(build->store, note_snapshot, &list);
    for (size_t i = 0; err == 0 && i < list.items.count; i++)
        err = let_snapshot_go(build, list.items.items[i].what, list.items.items[i].generation);
    wb_vec_release(&list.items);
    return err;
}
