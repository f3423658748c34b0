/*
 * test_flip.c - single bytes of all files are changed. Reading never crashes, hangs or returns
 * a wrong page. If a page cannot be read, verify finds the problem. No byte of a segment
 * can change unnoticed.
 *
 * A child process does the reading, so that a crash does not end the test. It goes from flip
 * to flip; if it dies, the parent starts another one for the rest.
 */
#include "parcel_support.h"
#include "move/move.h"
#include "pagefile/bucket.h"
#include "base/hash.h"
#include "os/file.h"

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SITES = 5, NUMBERS = 7, EXPECTED_MAX = 100, SNAPSHOTS = 2 };

/* The result of reading a repository with one changed byte. */
enum outcome { UNAFFECTED, NOTICED_BY_READING, NOTICED_BY_VERIFY, OUTCOMES };

struct repository {
    char dir[DIR_MAX];
    struct wb_store_history history;
    struct sights latest, snapshots[SNAPSHOTS]; /* snapshots 1 and 2 */
    uint64_t timelines[SITES * NUMBERS];        /* hashes; 0: there is none */
    struct wb_store_stat stat;
};

static struct repository mixed = {.history = {WB_STORE_KEEP_COUNT, 3}}, removed_last;

/* ---- the repositories ------------------------------------------------------------------------------ */

static void put_round(struct wb_store *store, int64_t round)
{
    for (uint32_t site = 0; site < SITES; site++)
        for (uint32_t number = 0; number < NUMBERS; number++)
            if (round == 0 || (site + number) % 4 == (uint32_t)round % 4) {
                struct spec spec = {.site = site,
                                    .number = number,
                                    .time_ms = 1000 + round,
                                    .size = 100 + number * 150,
                                    .variant = site + number * 3};
                must_ok(put_spec(store, &spec));
            }
}

/* Everything that the store says about the past of a page. */
static int hash_timeline(struct wb_store *store, uint32_t page, uint64_t *hash_out)
{
    struct wb_store_timeline timeline;
    int err =
        wb_store_timeline(store, spec_id(&(struct spec){.site = page % SITES, .number = page / SITES}), &timeline);

    *hash_out = 0;
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    for (size_t i = 0; i < timeline.count; i++) {
        const struct wb_store_version *v = &timeline.versions[i];
        uint64_t parts[] = {*hash_out, v->captures, v->arrived, v->ceased, v->body_bytes, v->status, v->same};
        *hash_out = wb_hash64(parts, sizeof parts);
    }
    *hash_out ^= wb_hash64(timeline.times, timeline.time_count * sizeof *timeline.times) ^ (uint64_t)timeline.gone_ms;
    wb_store_timeline_release(&timeline);
    return 0;
}

static void remember(struct repository *repository)
{
    struct wb_store *store = open_store(repository->dir, WB_STORE_READ);

    scan_all(store, &(struct wb_store_scan_options){0}, WITHOUT_EPOCH, &repository->latest);
    for (uint32_t i = 0; i < SNAPSHOTS; i++) {
        scan_all(store, &(struct wb_store_scan_options){.snapshot = i + 1}, WITHOUT_EPOCH, &repository->snapshots[i]);
        must(repository->snapshots[i].count > 10);
    }
    for (uint32_t i = 0; i < SITES * NUMBERS; i++)
        must_ok(hash_timeline(store, i, &repository->timelines[i]));
    must_ok(wb_store_stat(store, &repository->stat));
    must(repository->latest.count > 10 && repository->stat.versions > repository->stat.pages);
    wb_store_close(store);
}

/* Segments as written and compacted, old versions in two snapshots, revisits, a page removed everywhere. */
static void build(struct repository *repository, bool remove_last)
{
    struct wb_move_compact_counts compact;

    use_small_sizes(6000);
    test_dir(repository->dir);
    create_store_as(repository->dir, repository->history);
    struct wb_store *store = open_store(repository->dir, WB_STORE_WRITE);
    put_round(store, 0);
    must(seal_store(store) == 1);
    put_round(store, 1);
    must_ok(remove_spec(store, &(struct spec){.site = 1, .number = 1}, true));
    commit_store(store);
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compact));
    must(compact.files > 0 || test_design().read.organisation == WB_ORGANISATION_HASH);
    must(seal_store(store) == 2);
    put_round(store, 2);
    for (uint64_t i = 0; i < 5; i++)
        must_ok(wb_store_put_revisit(store,
                                     &(struct wb_store_revisit){.id = {i, i},
                                                                .site = WB_SLICE_LIT("revisited.example"),
                                                                .time_ms = 5,
                                                                .has_sha1 = true,
                                                                .original = {i, i + 1}},
                                     NULL));
    commit_store(store);
    wb_store_close(store);
    store = open_store(repository->dir, WB_STORE_WRITE);
    if (remove_last) {
        must_ok(remove_spec(store, &(struct spec){.site = 2, .number = 2}, false));
        must_ok(wb_store_touch(store, spec_id(&(struct spec){.site = 2, .number = 3}), 5000));
    } else {
        put_round(store, 3);
    }
    commit_store(store);
    wb_store_close(store);
    must(verify_clean(repository->dir).notes == 0);
    remember(repository);
    use_usual_sizes();
}

static int build_all(void **state)
{
    (void)state;
    build(&mixed, false);
    build(&removed_last, true);
    return 0;
}

static int forget_all(void **state)
{
    (void)state;
    sights_release(&mixed.latest);
    sights_release(&removed_last.latest);
    for (size_t i = 0; i < SNAPSHOTS; i++) {
        sights_release(&mixed.snapshots[i]);
        sights_release(&removed_last.snapshots[i]);
    }
    return 0;
}

/* ---- reading, in the child ------------------------------------------------------------------------------ */

static const struct seen *find_expected(const struct sights *sights, struct wb_pageid id)
{
    for (size_t i = 0; i < sights->count; i++)
        if (wb_pageid_equal(sights->list[i].id, id))
            return &sights->list[i];
    return NULL;
}

/* Returns true if all pages could be read; those that could must be right. */
static bool read_scan(struct wb_store *store, uint32_t snapshot, bool parcels, const struct sights *expected)
{
    struct parcel_reader reader = {0};
    struct wb_page page;
    struct wb_pageid came[EXPECTED_MAX];
    size_t count = 0;
    unsigned errors = 0;
    int more;

    if (wb_store_scan_open(store, &(struct wb_store_scan_options){.snapshot = snapshot}, &reader.scan) < 0)
        return false;
    while ((more = parcels ? parcel_next(&reader, &page) : wb_store_scan_next(reader.scan, &page)) != 0) {
        if (more < 0) {
            must(wb_error_message()[0]);
            if (more != WB_E_CORRUPT)
                break;
            must(++errors <= EXPECTED_MAX); /* it goes on behind the damage, and finds it once */
            continue;
        }
        const struct seen *seen = find_expected(expected, page.id);
        must(seen && seen->hash == page_hash(&page, WITHOUT_EPOCH));
        for (size_t i = 0; i < count; i++)
            must(!wb_pageid_equal(came[i], page.id));
        must(count < EXPECTED_MAX);
        came[count++] = page.id;
    }
    parcel_close(&reader);
    return errors == 0 && count == expected->count;
}

static bool read_pages(struct wb_store *store, const struct repository *repository)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    bool all = true;

    for (size_t i = 0; i < repository->latest.count; i++) {
        const struct seen *seen = &repository->latest.list[i];
        int err = wb_store_get(store, seen->id, &page, &memory);
        must(err == 0 || (err == WB_E_CORRUPT && strstr(wb_error_message(), repository->dir)));
        must(err < 0 || page_hash(&page, WITHOUT_EPOCH) == seen->hash);
        all = all && err == 0;
    }
    /* Pages that never existed, or were removed, must not exist now. */
    struct wb_pageid gone = spec_id(&(struct spec){.site = 1, .number = 1});
    if (!find_expected(&repository->latest, gone))
        must(wb_store_get(store, gone, &page, &memory) < 0);
    wb_buf_release(&memory);
    return all;
}

/* A version in a snapshot, and the timeline, are right or not there at all. */
static bool read_history(struct wb_store *store, const struct repository *repository)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    bool all = true;

    for (uint32_t i = 0; i < SITES * NUMBERS; i++) {
        uint64_t hash;
        int err = hash_timeline(store, i, &hash);
        must(err == 0 || err == WB_E_CORRUPT);
        must(err < 0 || hash == repository->timelines[i]);
        all = all && err == 0;
    }
    for (uint32_t i = 0; i < SNAPSHOTS; i++)
        for (size_t j = 0; j < repository->snapshots[i].count; j++) {
            const struct seen *seen = &repository->snapshots[i].list[j];
            struct wb_store_when when = {.kind = WB_STORE_WHEN_SNAPSHOT, .snapshot = i + 1};
            int err = wb_store_get_when(store, seen->id, &when, &page, &memory);
            must(err == 0 || (err == WB_E_CORRUPT && strstr(wb_error_message(), repository->dir)));
            must(err < 0 || page_hash(&page, WITHOUT_EPOCH) == seen->hash);
            all = all && err == 0;
        }
    wb_buf_release(&memory);
    return all;
}

static enum outcome read_all(const struct repository *repository)
{
    struct wb_store *store;
    struct wb_store_stat stat;
    bool all = false;

    if (wb_store_open(repository->dir, WB_STORE_READ, &store) == 0) {
        all = read_pages(store, repository);
        all = read_history(store, repository) && all;
        for (uint32_t i = 0; i <= SNAPSHOTS; i++) {
            const struct sights *expected = i ? &repository->snapshots[i - 1] : &repository->latest;
            bool pages = read_scan(store, i, false, expected), parcels = read_scan(store, i, true, expected);
            must(pages == parcels);
            all = all && pages;
        }
        all = wb_store_stat(store, &stat) == 0 && stat.pages == repository->stat.pages &&
              stat.sites == repository->stat.sites && stat.snapshot == repository->stat.snapshot &&
              stat.snapshots == SNAPSHOTS && stat.versions == repository->stat.versions && all;
        wb_store_close(store);
    } else {
        must(wb_error_message()[0]);
    }
    bool noticed = verify_count(repository->dir, false).problems > 0;
    must(all || noticed); /* if something cannot be read, verify says why */
    return !all ? NOTICED_BY_READING : noticed ? NOTICED_BY_VERIFY : UNAFFECTED;
}

/* ---- flipping ------------------------------------------------------------------------------------------------ */

struct flip {
    uint64_t at;
    uint8_t mask;
};

/* Shared with the child. */
struct progress {
    size_t next;
    uint8_t before;
    bool flipped;
    unsigned outcomes[OUTCOMES];
    enum outcome last;
};

struct flipping {
    const struct repository *repository;
    char path[DIR_MAX];
    const struct flip *flips;
    size_t count;
    bool every_one; /* no flip may go unnoticed */
    struct progress *progress;
    unsigned outcomes[OUTCOMES]; /* afterwards */
};

static int flip_on(void *context)
{
    struct flipping *f = context;
    struct progress *p = f->progress;

    while (p->next < f->count) {
        const struct flip *flip = &f->flips[p->next];
        alarm(child_seconds);
        p->flipped = true;
        flip_byte(f->path, flip->at, flip->mask);
        p->last = read_all(f->repository);
        flip_byte(f->path, flip->at, flip->mask);
        p->flipped = false;
        p->next++;
        p->outcomes[p->last]++;
        if (f->every_one && p->last == UNAFFECTED) {
            fprintf(stderr, "%s: byte %llu may change to %02x unnoticed\n", f->path, (unsigned long long)flip->at,
                    flip->mask);
            return 98;
        }
    }
    return 0;
}

static void flip_all(struct flipping *f)
{
    f->progress = mmap(NULL, sizeof *f->progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(f->progress != MAP_FAILED);
    unsigned failed = 0;
    while (f->progress->next < f->count && failed < 5) {
        int status = run_child(flip_on, f);
        if (status == 0)
            continue;
        failed++;
        const struct flip *flip = &f->flips[f->progress->next];
        if (f->progress->flipped) {
            fprintf(stderr, "%s: byte %llu changed by %02x: the reader ended with %d\n", f->path,
                    (unsigned long long)flip->at, flip->mask, status);
            flip_byte(f->path, flip->at, flip->mask);
            f->progress->flipped = false;
            f->progress->next++;
        }
    }
    printf("# %s: %zu flips, %u unaffected, %u noticed by reading, %u by verify only\n", strrchr(f->path, '/') + 1,
           f->count, f->progress->outcomes[UNAFFECTED], f->progress->outcomes[NOTICED_BY_READING],
           f->progress->outcomes[NOTICED_BY_VERIFY]);
    memcpy(f->outcomes, f->progress->outcomes, sizeof f->outcomes);
    munmap(f->progress, sizeof *f->progress);
    must(failed == 0);
}

/* One bit of each byte, or of the share of them that this run does. */
static struct flip *each_byte(uint64_t from, uint64_t to, uint64_t *chance, size_t *count_out)
{
    struct flip *flips = calloc(to - from, sizeof *flips);

    must(flips != NULL);
    *count_out = 0;
    for (uint64_t at = from + (test_stride(chance) - 1) % (to - from); at < to; at += test_stride(chance))
        flips[(*count_out)++] = (struct flip){at, (uint8_t)(1u << chance_below(chance, 8))};
    return flips;
}

static struct flip *random_bytes(uint64_t from, uint64_t to, size_t count, uint64_t *chance)
{
    struct flip *flips = calloc(count, sizeof *flips);

    must(flips != NULL);
    for (size_t i = 0; i < count; i++)
        flips[i] = (struct flip){from + chance_below(chance, to - from), (uint8_t)(1 + chance_below(chance, 255))};
    return flips;
}

static void test_superblock(void **state)
{
    uint64_t chance = test_seed();
    struct flipping f = {.repository = &mixed, .every_one = true};

    (void)state;
    path_in(mixed.dir, WB_SUPERBLOCK_NAME, f.path);
    for (int i = 0; i < 3; i++) {
        struct flip *flips = each_byte(0, file_bytes(f.path), &chance, &f.count);
        f.flips = flips;
        flip_all(&f);
        free(flips);
    }
}

/* Both copies of the root record, byte by byte: one of them is always valid, so nothing is lost. */
static void flip_roots(const struct repository *repository, unsigned step)
{
    uint64_t chance = test_seed();
    struct flipping f = {.repository = repository};
    size_t count;

    path_in(repository->dir, WB_CATALOG_NAME, f.path);
    struct flip *flips = each_byte(0, 8192, &chance, &count);
    for (size_t i = 0; i < count; i++)
        if (flips[i].at % 4096 < 1024 || i % step == 0)
            flips[f.count++] = flips[i];
    f.flips = flips;
    flip_all(&f);
    must(f.count > 0 && f.outcomes[UNAFFECTED] == f.count);
    free(flips);
}

static void test_catalog_roots(void **state)
{
    (void)state;
    flip_roots(&mixed, 7);
}

static void test_catalog_roots_after_removal(void **state)
{
    (void)state;
    flip_roots(&removed_last, 50);
}

static void test_catalog(void **state)
{
    uint64_t chance = test_seed();
    struct flipping f = {.repository = &mixed, .count = test_rounds(1500)};

    (void)state;
    path_in(mixed.dir, WB_CATALOG_NAME, f.path);
    struct flip *flips = random_bytes(8192, file_bytes(f.path), f.count, &chance);
    f.flips = flips;
    flip_all(&f);
    free(flips);
}

/* The start of the seal, or the end of the file: nothing after it belongs to the repository. */
static uint64_t committed_bytes(const char *path)
{
    uint64_t size = file_bytes(path);
    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_node *node;
    uint64_t commit;

    must_ok(wb_node_open(mixed.dir, NULL, &node));
    must_ok(wb_node_file_open(node, path + strlen(mixed.dir) + 1, false, &segment.file));
    wb_node_close(node);
    segment.magic = WB_SEGMENT_MAGIC;
    bool sealed = wb_segment_read_seal(&segment, size - WB_SEGMENT_SEAL_BYTES, &commit);
    wb_segment_close(&segment);
    return sealed ? size - WB_SEGMENT_SEAL_BYTES : size;
}

static void test_segments(void **state)
{
    uint64_t chance = test_seed();
    char pages[DIR_MAX];
    struct dirent *entry;
    bool compacted_done = false, written_done = false;

    (void)state;
    path_in(mixed.dir, WB_SEGMENT_DIR, pages);
    DIR *dir = opendir(pages);
    must(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        struct flipping f = {.repository = &mixed, .every_one = true};
        uint32_t number, revision;
        bool doubles, bucket = wb_bucket_name_parse(entry->d_name, &number, &revision, &doubles);
        if (!bucket && !wb_segment_name_parse(entry->d_name, &number, &revision))
            continue;
        path_in(pages, entry->d_name, f.path);
        uint64_t end = committed_bytes(f.path);
        if (bucket) { /* extents that are not used any more, and the double-write file, need not be as they were */
            f.every_one = false;
            written_done = true;
        }
        bool *done = revision ? &compacted_done : &written_done;
        bool whole = revision && !*done;
        f.count = test_rounds(1000);
        struct flip *flips = whole ? each_byte(0, end, &chance, &f.count) : random_bytes(0, end, f.count, &chance);
        *done = true;
        f.flips = flips;
        flip_all(&f);
        free(flips);
    }
    closedir(dir);
    must(compacted_done && written_done);
}

/* ---- writing to a damaged catalog ------------------------------------------------------------------------------- */

static int damaged_error(int err)
{
    must(err == 0 || err == WB_E_CORRUPT);
    return err;
}

/* Puts older and newer versions of all pages, and some new pages. Each page that cannot be looked up is refused. */
static int write_all(void *context)
{
    const char *dir = context;
    struct wb_store *store;
    struct wb_move_compact_counts compact;
    const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot;
    bool ok = true;

    if (damaged_error(wb_store_open(dir, WB_STORE_WRITE, &store)) < 0)
        return 0;
    for (uint32_t i = 0; i < SITES * NUMBERS; i++) {
        struct spec spec = {
            .site = i % SITES, .number = i / SITES, .time_ms = i % 3 ? 10 : 9000, .size = 300, .variant = i};
        ok = damaged_error(put_spec(store, &spec)) == 0 && ok;
    }
    ok = damaged_error(wb_store_commit(store, &(struct wb_store_commit_counts){0})) == 0 && ok;
    ok = damaged_error(wb_store_seal(store, WB_SLICE_LIT("last"), &person, &snapshot)) == 0 && ok;
    wb_store_snapshot_release(&snapshot);
    ok = damaged_error(wb_store_drop(store, 1)) == 0 && ok;
    ok = damaged_error(wb_store_set_history(store, &(struct wb_store_history){WB_STORE_KEEP_NEWEST, 0})) == 0 && ok;
    ok = damaged_error(wb_move_compact(store, NULL, NULL, NULL, NULL, &compact)) == 0 && ok;
    wb_store_close(store);
    verify_count(dir, false);
    return ok ? 1 : 0;
}

struct comparison {
    const struct repository *repository;
    const char *dir;
};

/* A page that can be read is the newest one that was there, or the newer one that was put; never an older one. */
static int read_after(void *context)
{
    const struct comparison *c = context;
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_store *store;
    struct wb_page page;

    if (damaged_error(wb_store_open(c->dir, WB_STORE_READ, &store)) < 0)
        return 0;
    for (size_t i = 0; i < c->repository->latest.count; i++) {
        const struct seen *seen = &c->repository->latest.list[i];
        if (damaged_error(wb_store_get(store, seen->id, &page, &memory)) < 0)
            continue;
        must(page.time_ms == 9000 || page.time_ms == seen->time_ms);
        must(page.time_ms == 9000 || page_hash(&page, WITHOUT_EPOCH) == seen->hash);
    }
    wb_buf_release(&memory);
    wb_store_close(store);
    return 0;
}

static void test_writing_to_a_damaged_catalog(void **state)
{
    uint64_t chance = test_seed();
    unsigned rounds = test_rounds(300), written = 0, died = 0;
    char dir[DIR_MAX], path[DIR_MAX];
    struct comparison comparison = {&mixed, dir};

    (void)state;
    test_dir(dir);
    path_in(dir, WB_CATALOG_NAME, path);
    for (unsigned i = 0; i < rounds; i++) {
        remove_tree(dir);
        copy_repository(mixed.dir, dir);
        uint64_t at = i % 8 == 0 ? chance_below(&chance, 2) * 4096 + chance_below(&chance, 1024)
                                 : chance_below(&chance, file_bytes(path));
        uint8_t mask = (uint8_t)(1 + chance_below(&chance, 255));
        flip_byte(path, at, mask);
        int status = run_child(write_all, dir);
        written += status == 1;
        if ((status == 0 || status == 1) && run_child(read_after, &comparison) == 0)
            continue;
        died++;
        fprintf(stderr, "catalog byte %llu changed by %02x: the writer ended with %d\n", (unsigned long long)at, mask,
                status);
    }
    printf("# %u of %u writers went through\n", written, rounds);
    must(died == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_superblock),
        cmocka_unit_test(test_catalog_roots),
        cmocka_unit_test(test_catalog_roots_after_removal),
        cmocka_unit_test(test_catalog),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_writing_to_a_damaged_catalog),
    };

    child_seconds = 20;
    return cmocka_run_group_tests(tests, build_all, forget_all);
}
