/*
 * test_convert_damage.c - conversions of repositories that are damaged: whatever byte of a file of pages is wrong, and
 * if a file is missing, everything else is copied, each version that is lost is reported, and the copy is sound. If a
 * node is down or the catalog is damaged, there is no copy.
 */
#include "convert_support.h"
#include "move/move.h"
#include "os/path.h"

#include <unistd.h>

/* What a conversion reports as lost. */
struct losses {
    WB_VEC(struct wb_pageid) ids;
    uint64_t latest;
    const char *file; /* that each message names; NULL: any */
};

static void note_lost(void *context, const struct wb_move_lost *lost)
{
    struct losses *losses = context;

    must(lost->time_ms >= 1000000);
    must(!losses->file || strstr(lost->message, losses->file) != NULL);
    losses->latest += lost->latest;
    must_ok(wb_vec_push(&losses->ids, lost->id));
}

static bool is_lost(const struct losses *losses, struct wb_pageid id)
{
    for (size_t i = 0; i < losses->ids.count; i++)
        if (wb_pageid_equal(losses->ids.items[i], id))
            return true;
    return false;
}

/* Pages that have lost nothing are as in the source; of the others, the copy has what could be read, and no more. */
static void compare_with_losses(const char *to, const char *sound, const struct losses *losses,
                                const struct wb_move_convert_counts *counts)
{
    struct wb_store *x = open_store(to, WB_STORE_READ), *y = open_store(sound, WB_STORE_READ);
    struct pair p = {.log = x, .twin = y, .committed = true};
    struct wb_store_stat a, b;

    must_ok(wb_store_stat(x, &a));
    must_ok(wb_store_stat(y, &b));
    must(a.pages == counts->pages && a.versions == counts->versions);
    must(a.pages + losses->latest == b.pages && a.versions + counts->lost == b.versions);
    must(a.bars == b.bars && a.revisits == b.revisits && a.snapshots == b.snapshots && a.epoch == b.epoch);
    for (uint32_t site = 0; site < CONVERT_SITES; site++)
        for (uint32_t number = 0; number < CONVERT_NUMBERS; number++) {
            struct spec spec = {.site = site, .number = number};
            struct wb_pageid id = spec_id(&spec);
            if (is_lost(losses, id))
                continue;
            compare_get(&p, id);
            compare_timeline(&p, id);
            compare_in_snapshots(&p, id);
        }
    wb_store_close(x);
    wb_store_close(y);
    verify_clean(to);
}

/*
 * Flips a byte of a file and converts. Returns 1 if the result is a copy without something, which then lacks nothing
 * else; 0 if the copy has everything; -1 if there is no copy.
 */
static int convert_damaged(const char *from, const char *sound, const char *to, size_t design, const char *file,
                           uint64_t *chance)
{
    struct losses losses = {.file = strcmp(file, "catalog.wbt") == 0 ? NULL : strrchr(file, '/') + 1};
    struct wb_move_convert_sink sink = {.lost = note_lost, .context = &losses};
    struct wb_move_convert_counts counts;
    struct wb_store_options options = options_of(design);
    char path[DIR_MAX];

    path_in(from, file, path);
    uint64_t at = chance_below(chance, file_bytes(path));
    uint8_t mask = (uint8_t)(1 + chance_below(chance, 255));
    flip_byte(path, at, mask);
    int err = wb_move_convert(from, to, &options, &sink, &counts);
    flip_byte(path, at, mask);
    must(err == 0 || err == WB_E_CORRUPT || err == WB_E_NEWER);
    must(losses.file == NULL || err == 0 || err == WB_E_NEWER);
    if (err == 0) {
        must(counts.lost == losses.ids.count && (counts.lost_pages > 0) == (counts.lost > 0));
        must(counts.lost_pages <= counts.lost);
        compare_with_losses(to, sound, &losses, &counts);
        if (counts.lost == 0)
            compare_dirs(to, sound);
    } else {
        must(wb_path_kind(to) == WB_PATH_NONE || !wb_store_exists(to));
    }
    wb_vec_release(&losses.ids);
    if (wb_path_kind(to) != WB_PATH_NONE)
        remove_tree(to);
    return err < 0 ? -1 : counts.lost > 0;
}

struct file_search {
    char dir[DIR_MAX];
    const char *end;
    uint64_t bytes;
    char name[64];
};

static int look_at_file(void *context, const struct wb_path_entry *entry)
{
    struct file_search *s = context;
    size_t len = strlen(entry->name), end = strlen(s->end);
    char path[DIR_MAX];

    path_in(s->dir, entry->name, path);
    if (len > end && strcmp(entry->name + len - end, s->end) == 0 && file_bytes(path) > s->bytes) {
        s->bytes = file_bytes(path);
        snprintf(s->name, sizeof s->name, "%s", entry->name);
    }
    return 0;
}

/* The largest file in a directory of the repository whose name ends like this, relative to the repository. */
static void largest_file(const char *repo, const char *dir, const char *end, char file_out[DIR_MAX])
{
    struct file_search s = {.end = end};

    path_in(repo, dir, s.dir);
    must_ok(wb_path_each(s.dir, look_at_file, &s));
    must(s.bytes > 0);
    snprintf(file_out, DIR_MAX, "%s/%s", dir, s.name);
}

/* Whatever byte of a file of pages is wrong: everything else is copied, and what is missing is named. */
static void test_damaged_pages(void **state)
{
    static const struct {
        size_t from, to;
        const char *dir, *end;
    } cases[] = {{0, 2, "pages", ".seg"},       {0, 4, "pages", ".seg"},       {3, 0, "pages", ".seg"},
                 {4, 0, "node1/pages", ".bkt"}, {4, 5, "node2/pages", ".bkt"}, {8, 6, "pages", ".seg"}};
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], sound[DIR_MAX], file[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned lossy = 0, rounds = test_rounds(12);
        struct wb_store_options options = options_of(cases[i].from);
        test_dir(from);
        test_dir(targets);
        path_in(targets, "to", to);
        path_in(targets, "sound", sound);
        options.history = (struct wb_store_history){WB_STORE_KEEP_ALL, 0};
        must_ok(wb_store_create(from, &options));
        struct wb_store *store = open_store(from, WB_STORE_WRITE);
        fill(store, &chance, options.design.batch, 1000000);
        wb_store_close(store);
        copy_repository(from, sound);
        fprintf(stderr, "# %s into %s\n", designs[cases[i].from].design, designs[cases[i].to].design);
        largest_file(from, cases[i].dir, cases[i].end, file);
        /* Some bytes are not needed by any version, but most are. */
        for (unsigned k = 0; k < rounds || (lossy == 0 && k < 100 * rounds); k++)
            lossy += convert_damaged(from, sound, to, cases[i].to, file, &chance) == 1;
        must(lossy > 0);
        remove_tree(from);
        remove_tree(targets);
    }
    use_usual_sizes();
}

/* Without a file, all of its versions are lost; and a page of which nothing is left does not stop the rest. */
static void test_missing_file(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], path[DIR_MAX];
    struct losses losses = {.file = "number 1, revision 0"};
    struct wb_move_convert_sink sink = {.lost = note_lost, .context = &losses};
    struct wb_move_convert_counts counts;
    struct wb_store_options options = options_of(2);
    struct wb_store_stat before, after;

    (void)state;
    use_small_sizes(20000);
    test_dir(from);
    test_dir(targets);
    path_in(targets, "to", to);
    create_store_as(from, (struct wb_store_history){WB_STORE_KEEP_ALL, 0});
    struct wb_store *store = open_store(from, WB_STORE_WRITE);
    fill(store, &chance, false, 1000000);
    must_ok(wb_store_stat(store, &before));
    wb_store_close(store);
    path_in(from, "pages/00000001.seg", path);
    must(unlink(path) == 0);
    must_ok(wb_move_convert(from, to, &options, &sink, &counts));
    must(counts.lost > 0 && counts.lost == losses.ids.count);
    store = open_store(to, WB_STORE_READ);
    must_ok(wb_store_stat(store, &after));
    wb_store_close(store);
    must(after.versions > 0 && after.versions + counts.lost == before.versions);
    must(after.pages + losses.latest == before.pages);
    verify_clean(to);
    wb_vec_release(&losses.ids);
    use_usual_sizes();
}

struct wanted_node {
    uint32_t number;
    uint64_t pages;
};

static int count_pages(void *context, const struct wb_store_node *node)
{
    struct wanted_node *wanted = context;

    wanted->pages += node->number == wanted->number ? node->pages : 0;
    return 0;
}

/* A repository that has pages on this node: one on which nothing is alive may be down. */
static void make_source_with(const char *dir, size_t design, uint32_t node, uint64_t *chance)
{
    struct wanted_node wanted = {.number = node};

    for (;;) {
        make_source(dir, design, chance);
        struct wb_store *store = open_store(dir, WB_STORE_READ);
        must_ok(wb_store_node_each(store, count_pages, &wanted));
        wb_store_close(store);
        if (wanted.pages)
            return;
        remove_tree(dir);
    }
}

/* A node that is down is noticed before anything is made. */
static void test_down(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], node[DIR_MAX], away[DIR_MAX];
    static const struct {
        size_t design;
        uint32_t number;
        const char *node;
    } cases[] = {{1, 2, "node2"}, {4, 1, "node1"}, {8, 102, "update/node102"}};
    struct wb_store_options options = options_of(0);
    struct wb_move_convert_counts counts;

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_dir(from);
        test_dir(targets);
        path_in(targets, "to", to);
        path_in(targets, "away", away);
        make_source_with(from, cases[i].design, cases[i].number, &chance);
        path_in(from, cases[i].node, node);
        must(rename(node, away) == 0);
        must(wb_move_convert(from, to, &options, &quiet, &counts) == WB_E_DOWN);
        must(strstr(wb_error_message(), "node") != NULL && strstr(wb_error_message(), "unfinished") == NULL);
        must(wb_path_kind(to) == WB_PATH_NONE);
        must(rename(away, node) == 0);
        convert(from, to, 0);
        remove_tree(from);
        remove_tree(targets);
    }
    use_usual_sizes();
}

/* Whatever byte of the catalog is wrong: the copy is right, or there is none. */
static void test_damaged(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], sound[DIR_MAX];
    unsigned noticed = 0, rounds = test_rounds(30);

    (void)state;
    test_dir(from);
    test_dir(targets);
    path_in(targets, "to", to);
    path_in(targets, "sound", sound);
    create_store_as(from, (struct wb_store_history){WB_STORE_KEEP_ALL, 0});
    struct wb_store *store = open_store(from, WB_STORE_WRITE);
    fill(store, &chance, false, 1000000);
    wb_store_close(store);
    copy_repository(from, sound);
    for (unsigned i = 0; i < rounds; i++) {
        int result = convert_damaged(from, sound, to, 2, "catalog.wbt", &chance);
        must(result <= 0);
        noticed += result < 0;
    }
    must(noticed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_pages),
        cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_down),
        cmocka_unit_test(test_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
