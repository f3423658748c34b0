/*
 * test_hash_damage.c - repositories of the organisation hash with damaged buckets. Whatever is done to them goes
 * through and concerns no page of another bucket: pages are added, replaced and removed, files grow, are compacted,
 * divided and moved. A page that is lost says so, and where; verify reports it until it is replaced or removed.
 */
#include "store_support.h"
#include "move/move.h"
#include "os/fault.h"
#include "pagefile/hash_store.h"
#include "store/store_nodes.h"

#include <errno.h>
#include <unistd.h>

enum { PAGES_MAX = 600, FIRST_PAGES = 90, STEPS = 10 };

enum fate { ABSENT, RIGHT, LOST };

/* What is expected of a page. */
struct expected {
    enum fate fate;
    int64_t time_ms;
};

struct rig {
    char dir[DIR_MAX], beside[DIR_MAX];
    struct wb_store *store;
    struct expected pages[PAGES_MAX], next[PAGES_MAX]; /* next: after the commit */
    uint32_t count;                                    /* pages that ever were */
    int64_t clock;
    unsigned nodes_added;
    uint64_t chance;
    uint64_t found;     /* damage that compactions have reported */
    uint64_t set_aside; /* damage that commits have reported */
};

static struct spec spec_of(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % 7,
                         .number = number,
                         .time_ms = time_ms,
                         .size = number % 13 == 5 ? 20000 + number : 200 + number % 900,
                         .variant = number};
}

static void put_one(struct rig *rig, uint32_t number)
{
    struct spec spec = spec_of(number, ++rig->clock);

    must_ok(put_spec(rig->store, &spec));
    rig->next[number] = (struct expected){RIGHT, spec.time_ms};
}

static void put_new(struct rig *rig, unsigned count)
{
    for (unsigned i = 0; i < count && rig->count < PAGES_MAX; i++)
        put_one(rig, rig->count++);
}

static void must_commit(struct rig *rig)
{
    struct wb_store_commit_counts counts = {0};

    must_ok(wb_store_commit(rig->store, &counts));
    rig->set_aside += counts.damaged;
    memcpy(rig->pages, rig->next, sizeof rig->pages);
}

static void make(struct rig *rig, const char *design, unsigned nodes)
{
    struct wb_store_options options = {.nodes = {.count = nodes}};

    must_ok(wb_design_parse(wb_slice_str(design), &options.design));
    test_dir(rig->dir);
    test_dir(rig->beside);
    must_ok(wb_store_create(rig->dir, &options));
    rig->store = open_store(rig->dir, WB_STORE_WRITE);
    rig->clock = 1000;
    put_new(rig, FIRST_PAGES);
    must_commit(rig); /* a merge: the double-write files are empty, and cannot help */
}

static void reopen(struct rig *rig)
{
    wb_store_close(rig->store);
    rig->store = open_store(rig->dir, WB_STORE_WRITE);
}

/* ---- damage ------------------------------------------------------------------------------------------------ */

/* The file of some row, and the row. */
static struct wb_catalog_segment some_file(struct rig *rig, char path_out[DIR_MAX])
{
    struct wb_repo *repo = wb_repo_of(rig->store);
    struct wb_overview o;
    char name[WB_SEGMENT_NAME_MAX];
    const char *node;

    must_ok(wb_pagefile_overview(&repo->files, &o));
    must(o.rows.count > 0);
    struct wb_catalog_segment row = o.rows.items[chance_below(&rig->chance, o.rows.count)];
    must_ok(wb_nodes_dir(&repo->nodes, row.node, &node));
    wb_bucket_name(row.number, row.revision, name);
    path_in(node, name, path_out);
    wb_catalog_rows_release(&o.rows);
    return row;
}

/* Flips a byte of some bucket or extent. certainly: one that matters, in the head of an image. */
static void damage(struct rig *rig, bool certainly)
{
    char path[DIR_MAX];
    struct wb_catalog_segment row = some_file(rig, path);
    uint64_t buckets = WB_BUCKET_FILE_HEADER_BYTES + row.map_count * wb_pagefile_sizes.bucket_bytes;
    uint64_t at = WB_BUCKET_FILE_HEADER_BYTES +
                  chance_below(&rig->chance, row.map_count) * wb_pagefile_sizes.bucket_bytes +
                  chance_below(&rig->chance, certainly || chance_one_in(&rig->chance, 2) ? WB_BUCKET_HEAD_BYTES : 1000);

    if (!certainly && row.bytes > buckets && chance_one_in(&rig->chance, 3))
        at = buckets + chance_below(&rig->chance, row.bytes - buckets);
    flip_byte(path, at, (uint8_t)(1u << chance_below(&rig->chance, 8)));
}

/* What get says of a page. A page that is lost is reported with the name of its file and its bucket. */
static enum fate look(struct wb_store *store, uint32_t number, int64_t time_ms)
{
    struct spec spec = spec_of(number, time_ms);
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    int err = wb_store_get(store, spec_id(&spec), &page, &memory);

    wb_buf_release(&memory);
    if (err == WB_E_NOTFOUND)
        return ABSENT;
    if (err == WB_E_CORRUPT) {
        must(strstr(wb_error_message(), ".bkt") && strstr(wb_error_message(), "bucket"));
        return LOST;
    }
    must_ok(err);
    must(holds_spec(store, &spec));
    return RIGHT;
}

/* Damage was done: finds out which pages are lost. */
static unsigned find_lost(struct rig *rig)
{
    unsigned lost = 0;

    for (uint32_t i = 0; i < rig->count; i++) {
        if (rig->pages[i].fate == RIGHT)
            rig->pages[i].fate = look(rig->store, i, rig->pages[i].time_ms);
        must(rig->pages[i].fate == look(rig->store, i, rig->pages[i].time_ms));
        lost += rig->pages[i].fate == LOST;
    }
    memcpy(rig->next, rig->pages, sizeof rig->next);
    return lost;
}

static unsigned count_fates(const struct rig *rig, enum fate fate)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < rig->count; i++)
        count += rig->pages[i].fate == fate;
    return count;
}

/* Everything is as expected: by get, by scan, and by verify. */
static void check_all(struct rig *rig)
{
    struct wb_store *store = open_store(rig->dir, WB_STORE_READ);
    struct wb_store_scan *scan;
    struct wb_page page;
    unsigned came = 0, lost = count_fates(rig, LOST);
    int got;

    for (uint32_t i = 0; i < rig->count; i++) {
        enum fate fate = look(store, i, rig->pages[i].time_ms);
        if (fate != rig->pages[i].fate)
            fail_msg("page %u: %d instead of %d (%s)", i, fate, rig->pages[i].fate, wb_error_message());
    }
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    while ((got = wb_store_scan_next(scan, &page)) != 0) {
        must(got > 0 || got == WB_E_CORRUPT);
        came += got > 0;
    }
    wb_store_scan_close(scan);
    assert_int_equal(came, count_fates(rig, RIGHT));
    wb_store_close(store);
    if (chance_one_in(&rig->chance, 3) && lost &&
        verify_count(rig->dir, false).problems == 0) /* which takes its time */
        fail_msg("%u pages are lost, but verify finds nothing", lost);
}

/* ---- what is done to it ---------------------------------------------------------------------------------------- */

static void count_finding(void *context, const struct wb_store_finding *finding)
{
    struct rig *rig = context;

    must(strstr(finding->file, ".bkt") && finding->message[0]);
    rig->found += finding->problem;
}

static void compact(struct rig *rig)
{
    struct wb_move_compact_counts counts;
    uint64_t before = rig->found;

    must_ok(wb_move_compact(rig->store, NULL, NULL, count_finding, rig, &counts));
    assert_int_equal(rig->found - before, counts.damaged);
    must(count_fates(rig, LOST) || counts.damaged == 0);
}

/* Nodes come and go in spite of damage, but the caller is told. */
static void told(int err, const char *words)
{
    must(err == 0 || (err == WB_E_CORRUPT && strstr(wb_error_message(), words) && strstr(wb_error_message(), ".bkt")));
}

static void add_node(struct rig *rig)
{
    char name[32], path[DIR_MAX];

    snprintf(name, sizeof name, "disk%u", rig->nodes_added++);
    path_in(rig->beside, name, path);
    told(wb_move_node_add(rig->store, path, false, NULL, NULL, NULL), "was added, but");
}

static void remove_node(struct rig *rig)
{
    struct wb_repo *repo = wb_repo_of(rig->store);
    struct wb_catalog_summary summary;

    must_ok(wb_repo_summary(repo, &summary)); /* reading anything takes up the newest table of nodes */
    size_t count = wb_nodes_count(&repo->nodes);
    if (count > 1)
        told(wb_move_node_remove(rig->store, wb_nodes_number(&repo->nodes, chance_below(&rig->chance, count)), NULL,
                                 NULL),
             "was removed, but");
}

/* A commit that fails somewhere. Nothing of it may be seen. */
static void fail_to_commit(struct rig *rig)
{
    uint32_t marker = rig->count;

    put_new(rig, 5);
    for (unsigned i = 0; i < 4; i++)
        put_one(rig, (uint32_t)chance_below(&rig->chance, FIRST_PAGES));
    wb_fault_arm(WB_FAULT_WRITE | WB_FAULT_SYNC, 1 + chance_below(&rig->chance, 30), EIO);
    int err = wb_store_commit(rig->store, &(struct wb_store_commit_counts){0});
    wb_fault_disarm();
    reopen(rig);
    /* If the last sync fails, it is not known whether it is on disk, until somebody looks. */
    if (err == 0 || look(rig->store, marker, rig->next[marker].time_ms) == RIGHT)
        memcpy(rig->pages, rig->next, sizeof rig->pages);
    else
        memcpy(rig->next, rig->pages, sizeof rig->next);
}

static void change_some(struct rig *rig)
{
    put_new(rig, (unsigned)chance_below(&rig->chance, 4));
    for (unsigned i = 0; i < 6; i++) {
        uint32_t number = (uint32_t)chance_below(&rig->chance, rig->count);
        struct spec spec = spec_of(number, ++rig->clock);
        if (i % 3) {
            put_one(rig, number);
        } else if (rig->next[number].fate != ABSENT) {
            must_ok(remove_spec(rig->store, &spec, i == 0));
            rig->next[number].fate = ABSENT;
        }
    }
    must_commit(rig);
}

static void step(struct rig *rig)
{
    switch (chance_below(&rig->chance, 8)) {
    case 0:
        put_new(rig, 40); /* often so many that the file grows */
        must_commit(rig);
        break;
    case 1:
        compact(rig);
        break;
    case 2:
        add_node(rig);
        break;
    case 3:
        remove_node(rig);
        break;
    case 4:
        fail_to_commit(rig);
        break;
    case 5:
        reopen(rig);
        break;
    default:
        change_some(rig);
    }
}

/* Every page that is lost is replaced or removed: then nothing is damaged any more. */
static void heal(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->count; i++) {
        struct spec spec = spec_of(i, ++rig->clock);
        if (rig->pages[i].fate != LOST)
            continue;
        if (i % 2) {
            put_one(rig, i);
        } else {
            must_ok(remove_spec(rig->store, &spec, true));
            rig->next[i].fate = ABSENT;
        }
    }
    must_commit(rig);
    compact(rig);
    reopen(rig);
    check_all(rig);
    verify_clean(rig->dir);
}

static void test_all_doors(void **state)
{
    static const char *const designs[] = {"Incr[hash,hash]", "Incr[uniform,hash]"};
    uint64_t seed = test_seed(), found = 0, set_aside = 0;
    unsigned lost = 0;

    (void)state;
    use_small_sizes(9000);
    for (unsigned round = 0; round < test_rounds(10); round++) {
        struct rig rig = {.chance = seed + round};
        make(&rig, designs[round % 2], round % 3 ? 1 : 3);
        damage(&rig, true);
        for (uint64_t flips = chance_below(&rig.chance, 3); flips > 0; flips--)
            damage(&rig, false);
        lost += find_lost(&rig);
        for (unsigned i = 0; i < STEPS; i++) {
            step(&rig);
            check_all(&rig);
        }
        heal(&rig);
        wb_store_close(rig.store);
        found += rig.found;
        set_aside += rig.set_aside;
        remove_tree(rig.dir);
        remove_tree(rig.beside);
    }
    printf("# %u pages lost; %llu damaged places found by compaction, %llu by commits\n", lost,
           (unsigned long long)found, (unsigned long long)set_aside);
    must(lost > 0);
    use_usual_sizes();
}

/* Writes a bucket back as it was before, as a disk does that has lost a write. Returns false if nothing had changed. */
static bool lose_write(const char *before, const char *path, uint64_t bucket)
{
    char *old = malloc(wb_pagefile_sizes.bucket_bytes), *new = malloc(wb_pagefile_sizes.bucket_bytes);
    long at = (long)(WB_BUCKET_FILE_HEADER_BYTES + bucket * wb_pagefile_sizes.bucket_bytes);
    FILE *from = fopen(before, "rb"), *to = fopen(path, "r+b");

    must(old && new &&from &&to &&fseek(from, at, SEEK_SET) == 0 && fseek(to, at, SEEK_SET) == 0);
    must(fread(old, wb_pagefile_sizes.bucket_bytes, 1, from) == 1 &&
         fread(new, wb_pagefile_sizes.bucket_bytes, 1, to) == 1);
    bool changed = memcmp(old, new, wb_pagefile_sizes.bucket_bytes) != 0;
    must(fseek(to, at, SEEK_SET) == 0 && fwrite(old, wb_pagefile_sizes.bucket_bytes, 1, to) == 1);
    must(fclose(from) == 0 && fclose(to) == 0);
    free(old);
    free(new);
    return changed;
}

/* An old image looks good, but versions are missing. The process that rewrites the file notices that, and goes on. */
static void test_lost_write(void **state)
{
    (void)state;
    use_small_sizes(9000);
    for (unsigned round = 0; round < 6; round++) {
        struct rig rig = {.chance = round};
        struct wb_move_compact_counts counts;
        char path[DIR_MAX], copy[DIR_MAX];
        make(&rig, "Incr[hash,hash]", 1);
        struct wb_catalog_segment row = some_file(&rig, path);
        copy_repository(rig.dir, strcat(strcpy(copy, rig.beside), "/copy"));
        for (uint32_t i = 0; i < FIRST_PAGES; i += 5)
            put_one(&rig, i);
        must_commit(&rig);
        strcat(copy, path + strlen(rig.dir));
        must(some_file(&rig, path).revision == row.revision); /* it was a sweep */
        uint64_t bucket = 0;
        while (!lose_write(copy, path, bucket))
            bucket++;
        wb_bucket_file_close(&wb_repo_of(rig.store)->files.hash->files.open.items[0]);
        must(verify_count(rig.dir, false).problems > 0);
        if (round % 2) {
            struct spec spec = spec_of(1, ++rig.clock);
            must_ok(remove_spec(rig.store, &spec, true));
            rig.next[1].fate = ABSENT;
            must_commit(&rig);
            must_ok(wb_move_compact(rig.store, NULL, NULL, count_finding, &rig, &counts));
            must(rig.found > 0 && counts.damaged == rig.found);
        } else {
            add_node(&rig);
        }
        unsigned lost = find_lost(&rig);
        must(lost > 0 && lost < FIRST_PAGES / 5);
        check_all(&rig);
        heal(&rig);
        wb_store_close(rig.store);
    }
    use_usual_sizes();
}

/* A file whose header is damaged can be used all the same, and the next writer repairs it. */
static void test_damaged_header(void **state)
{
    (void)state;
    use_small_sizes(9000);
    for (unsigned at = 0; at < 64; at += 7) {
        struct rig rig = {.chance = at};
        char path[DIR_MAX];
        make(&rig, "Incr[hash,hash]", 1);
        some_file(&rig, path);
        wb_store_close(rig.store);
        flip_byte(path, at, 4);
        check_all(&rig);
        assert_int_equal(verify_count(rig.dir, false).problems, 1);
        rig.store = open_store(rig.dir, WB_STORE_WRITE);
        verify_clean(rig.dir);
        put_new(&rig, 10);
        must_commit(&rig);
        check_all(&rig);
        wb_store_close(rig.store);
    }
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged_header), cmocka_unit_test(test_lost_write),
                                       cmocka_unit_test(test_all_doors)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
