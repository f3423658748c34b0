/*
 * test_compact_damage.c - compaction of damaged segments: everything else is compacted, each damaged place is
 * reported with file and offset, no page that could be read is lost, and damage that no page needs is removed.
 */
#include "store_support.h"
#include "move/move.h"
#include "os/path.h"

enum { PAGES = 60, SITES = 3, FINDINGS_MAX = 64 };

static char dir[DIR_MAX];

struct finding {
    bool problem;
    uint64_t offset;
    char file[64], message[400];
};

struct findings {
    struct finding list[FINDINGS_MAX];
    size_t count;
};

static void note(void *context, const struct wb_store_finding *report)
{
    struct findings *findings = context;

    must(findings->count < FINDINGS_MAX);
    struct finding *finding = &findings->list[findings->count++];
    finding->problem = report->problem;
    finding->offset = report->offset;
    snprintf(finding->file, sizeof finding->file, "%s", report->file);
    snprintf(finding->message, sizeof finding->message, "%s", report->message);
}

static struct spec page(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % SITES, .number = number, .time_ms = time_ms, .size = 12000, .variant = 5};
}

/* Several small blocks in several segments. Every second page is replaced, so that every segment has dead pages. */
static void make_repository_of(uint64_t segment_bytes, size_t block_bytes)
{
    /* Large enough for a lead and frames beside it. */
    wb_pagefile_sizes = (struct wb_pagefile_sizes){.segment_bytes = segment_bytes,
                                                   .hashed_bytes = segment_bytes / 4,
                                                   .block_bytes = block_bytes,
                                                   .group_bytes = 2 * block_bytes,
                                                   .giant_bytes = 1 << 20,
                                                   .spare_bytes = 1 << 20};
    test_dir(dir);
    create_store(dir);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page(i, 1000);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
    for (uint32_t i = 0; i < PAGES; i += 2) {
        struct spec spec = page(i, 2000);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
    wb_store_close(store);
}

static void make_repository(uint64_t segment_bytes)
{
    make_repository_of(segment_bytes, 120 << 10);
}

static struct wb_move_compact_counts compact(struct findings *findings)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_move_compact_counts result;

    *findings = (struct findings){0};
    must_ok(wb_move_compact(store, NULL, NULL, note, findings, &result));
    wb_store_close(store);
    wb_store_close(open_store(dir, WB_STORE_WRITE)); /* deletes the files that were replaced */
    return result;
}

static bool is_readable(struct wb_store *store, uint32_t number)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct spec spec = page(number, number % 2 ? 1000 : 2000);
    struct wb_page found;
    struct made made;

    int err = wb_store_get(store, spec_id(&spec), &found, &memory);
    if (err == 0) {
        make_page(&spec, &made);
        must(wb_slice_equal(found.body, made.page.body));
        made_release(&made);
    }
    must(err == 0 || err == WB_E_CORRUPT || err == WB_E_NOTFOUND);
    wb_buf_release(&memory);
    return err == 0;
}

static unsigned read_all(bool readable[PAGES])
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    unsigned count = 0;

    for (uint32_t i = 0; i < PAGES; i++)
        count += readable[i] = is_readable(store, i);
    wb_store_close(store);
    return count;
}

static uint64_t find_block(const char *path, unsigned nth)
{
    struct wb_buf bytes;
    uint64_t at = 0;

    must_ok(wb_path_read(path, 64 << 20, &bytes));
    for (;; at++) {
        const char *found = memmem(bytes.ptr + at, bytes.len - at, "WBBK", 4);
        must(found != NULL);
        at = (uint64_t)(found - bytes.ptr);
        if (nth-- == 0)
            break;
    }
    wb_buf_release(&bytes);
    return at;
}

/* Removes what cannot be read, by id and site, as the takedown of a site does. */
static uint64_t remove_unreadable(void)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_buf room = WB_BUF_INIT;
    struct wb_pageid ids[PAGES];
    uint64_t removed = 0;
    size_t count;

    for (uint32_t site = 0; site < SITES; site++) {
        struct spec any = page(site, 1000);
        struct wb_slice name = spec_site(&any, &room);
        must_ok(wb_store_list_site(store, name, ids, PAGES, &count));
        for (size_t i = 0; i < count; i++) {
            struct wb_buf memory = WB_BUF_INIT;
            struct wb_page found;
            if (wb_store_get(store, ids[i], &found, &memory) == WB_E_CORRUPT) {
                must_ok(wb_store_remove(store, ids[i], name, 5000, true));
                removed++;
            }
            wb_buf_release(&memory);
        }
    }
    commit_store(store);
    wb_store_close(store);
    wb_buf_release(&room);
    return removed;
}

/* The second block of the first segment, whose header or directory is damaged. Some of its pages are live. */
static void damage_and_compact(uint64_t offset_in_block)
{
    char path[DIR_MAX];
    bool before[PAGES], after[PAGES];
    struct findings findings;
    struct wb_store_stat sound, stat;
    struct wb_store *store;

    make_repository(200000);
    path_in(dir, WB_SEGMENT_DIR "/00000001.seg", path);
    uint64_t at = find_block(path, 1);
    flip_byte(path, at + offset_in_block, 0x55);
    unsigned readable = read_all(before);
    assert_in_range(readable, 1, PAGES - 1);

    store = open_store(dir, WB_STORE_READ);
    must_ok(wb_store_stat(store, &sound));
    wb_store_close(store);
    struct wb_move_compact_counts result = compact(&findings);
    assert_int_equal(result.damaged, 1);
    assert_int_equal(result.dropped, 0);
    assert_int_equal(findings.count, 1);
    assert_true(findings.list[0].problem && findings.list[0].offset == at);
    assert_string_equal(findings.list[0].file, WB_SEGMENT_DIR "/00000001.seg");
    assert_true(result.files >= 2);
    assert_int_equal(read_all(after), readable);
    assert_memory_equal(before, after, sizeof before);
    store = open_store(dir, WB_STORE_READ);
    must_ok(wb_store_stat(store, &stat));
    wb_store_close(store);
    assert_int_equal(stat.bytes_dead, 0);
    assert_int_equal(stat.pages, PAGES);
    assert_true(stat.bytes_stored < sound.bytes_stored);
    assert_int_not_equal(verify_count(dir, false).problems, 0);

    /* Again, after more pages died: now the copy of the damaged part is somewhere else. */
    store = open_store(dir, WB_STORE_WRITE);
    uint32_t first = 0;
    while (!before[first])
        first++;
    struct spec gone = page(first, 0);
    must_ok(remove_spec(store, &gone, false));
    commit_store(store);
    wb_store_close(store);
    compact(&findings);
    assert_int_equal(read_all(after), readable - 1);

    /* Pages that cannot be read can be removed, and then the damage is dropped. */
    assert_int_equal(remove_unreadable(), PAGES - readable);
    result = compact(&findings);
    assert_int_equal(result.damaged, 0);
    assert_true(result.dropped >= 1);
    assert_int_equal(read_all(after), readable - 1);
    verify_clean(dir);
    use_usual_sizes();
}

static void test_header(void **state)
{
    (void)state;
    damage_and_compact(24);
}

static void test_directory(void **state)
{
    (void)state;
    damage_and_compact(WB_BLOCK_HEADER_BYTES + 8);
}

/* All pages of the damaged block are dead: it is dropped, and verify finds nothing any more. */
static void test_dead_block(void **state)
{
    char path[DIR_MAX];
    bool after[PAGES];
    struct findings findings;

    (void)state;
    make_repository(200000);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    /* The first block has the pages 0, 3, 6, ... 18 of one site, of which the even ones were replaced. */
    for (uint32_t i = 3; i <= 15; i += 6) {
        struct spec spec = page(i, 1000);
        must_ok(remove_spec(store, &spec, false));
    }
    commit_store(store);
    wb_store_close(store);
    path_in(dir, WB_SEGMENT_DIR "/00000001.seg", path);
    uint64_t at = find_block(path, 0);
    flip_byte(path, at + 24, 0x55);
    assert_int_not_equal(verify_count(dir, false).problems, 0);
    struct wb_move_compact_counts result = compact(&findings);
    assert_int_equal(result.damaged, 0);
    assert_int_equal(result.dropped, 1);
    assert_true(!findings.list[0].problem && findings.list[0].offset == at);
    assert_int_equal(read_all(after), PAGES - 3);
    verify_clean(dir);
    use_usual_sizes();
}

/* The offset of a page's body, which is random bytes, in a file; 0 if it is not there. */
static uint64_t find_body(const char *path, const struct spec *spec)
{
    struct wb_buf bytes;
    struct made made;

    make_page(spec, &made);
    must_ok(wb_path_read(path, 64 << 20, &bytes));
    const char *found = memmem(bytes.ptr, bytes.len, made.page.body.ptr + 1000, 64);
    uint64_t at = found ? (uint64_t)(found - bytes.ptr) : 0;
    wb_buf_release(&bytes);
    made_release(&made);
    return at;
}

/*
 * Frames are copied without being decompressed, but not without being checked: damage inside them is told, its bytes
 * stay as they are, and everything else can be read as before.
 */
static void test_frames(void **state)
{
    unsigned told = 0;

    (void)state;
    for (uint32_t i = 1; i < PAGES; i += 14) {
        char path[DIR_MAX];
        bool before[PAGES], after[PAGES];
        struct findings findings;
        struct spec spec = page(i, 1000);
        make_repository(200000);
        path_in(dir, WB_SEGMENT_DIR "/00000001.seg", path);
        uint64_t at = find_body(path, &spec);
        if (at == 0) /* in another segment */
            continue;
        flip_byte(path, at, 0x55);
        unsigned readable = read_all(before);
        assert_true(readable < PAGES && !before[i]);
        struct wb_move_compact_counts result = compact(&findings);
        assert_int_equal(result.damaged, 1);
        assert_int_equal(findings.count, 1);
        assert_true(findings.list[0].problem && findings.list[0].offset <= at);
        assert_string_equal(findings.list[0].file, WB_SEGMENT_DIR "/00000001.seg");
        assert_non_null(strstr(findings.list[0].message, "checksum"));
        assert_int_equal(read_all(after), readable);
        assert_memory_equal(before, after, sizeof before);
        assert_int_not_equal(verify_count(dir, false).problems, 0);
        assert_int_equal(remove_unreadable(), PAGES - readable);
        result = compact(&findings);
        assert_int_equal(result.damaged, 0);
        verify_clean(dir);
        told++;
    }
    assert_in_range(told, 2, PAGES);
    use_usual_sizes();
}

/*
 * A page in the lead is taken down, and another page of the block cannot be read: the bytes of the first one are
 * removed, the second one remains known and damaged, and all others can be read.
 */
static void test_takedown_beside_damage(void **state)
{
    char path[DIR_MAX];
    bool before[PAGES], after[PAGES];
    struct findings findings;
    struct spec victim = {0}, damaged = {0};
    unsigned readable = 0;

    (void)state;
    make_repository_of(1 << 20, 240 << 10);
    path_in(dir, WB_SEGMENT_DIR "/00000001.seg", path);
    /* In the first block, with the pages 0, 3, ... 36: damage to a frame affects one page, damage to the lead all. */
    for (uint32_t i = 3; i <= 33; i += 6) {
        struct spec spec = page(i, 1000);
        uint64_t at = find_body(path, &spec);
        must(at > 0);
        flip_byte(path, at, 0x55);
        unsigned count = read_all(before);
        if (count == PAGES - 1 && !damaged.time_ms) {
            damaged = spec;
            continue;
        }
        flip_byte(path, at, 0x55);
        if (count < PAGES - 2)
            victim = spec;
    }
    must(damaged.time_ms && victim.time_ms);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    must_ok(remove_spec(store, &victim, true));
    commit_store(store);
    wb_store_close(store);
    readable = read_all(before);
    assert_int_equal(readable, PAGES - 2);
    struct wb_move_compact_counts result = compact(&findings);
    assert_int_equal(result.damaged, 1);
    assert_non_null(strstr(findings.list[0].message, "taken down"));
    assert_int_equal(files_with(dir, &victim), 0);
    assert_int_equal(read_all(after), readable);
    assert_memory_equal(before, after, sizeof before);
    store = open_store(dir, WB_STORE_WRITE);
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page found;
    assert_int_equal(wb_store_get(store, spec_id(&damaged), &found, &memory), WB_E_CORRUPT);
    wb_buf_release(&memory);
    /* A new version repairs the page, and the next compaction removes the rest. */
    damaged.time_ms = 3000;
    must_ok(put_spec(store, &damaged));
    commit_store(store);
    wb_store_close(store);
    result = compact(&findings);
    assert_int_equal(result.damaged, 0);
    use_usual_sizes();
}

/* The first segment cannot be opened: it is left alone, the others are compacted. Without live pages it is deleted. */
static void test_segment_header(void **state)
{
    char path[DIR_MAX];
    bool before[PAGES], after[PAGES];
    struct findings findings;

    (void)state;
    make_repository(200000);
    path_in(dir, WB_SEGMENT_DIR "/00000001.seg", path);
    flip_byte(path, 20, 0x55);
    unsigned readable = read_all(before);
    struct wb_move_compact_counts result = compact(&findings);
    assert_int_equal(result.damaged, 1);
    assert_string_equal(findings.list[0].file, WB_SEGMENT_DIR "/00000001.seg");
    assert_true(result.files >= 1);
    assert_int_equal(read_all(after), readable);
    assert_int_equal(wb_path_kind(path), WB_PATH_FILE);
    remove_unreadable();
    result = compact(&findings);
    assert_int_equal(result.damaged, 0);
    assert_int_equal(wb_path_kind(path), WB_PATH_NONE);
    assert_int_equal(read_all(after), readable);
    verify_clean(dir);
    use_usual_sizes();
}

static void damage_somewhere(uint64_t *c)
{
    char path[DIR_MAX], name[WB_SEGMENT_NAME_MAX];

    for (uint64_t n = chance_below(c, 4) + 1; n > 0; n--) {
        wb_segment_name((uint32_t)chance_below(c, 3) + 1, 0, name);
        path_in(dir, name, path);
        if (wb_path_kind(path) == WB_PATH_FILE)
            flip_byte(path, chance_below(c, file_bytes(path)), (uint8_t)(1 + chance_below(c, 255)));
    }
}

/* Wherever the damage is: what could be read before can be read afterwards, even after takedowns. */
static void test_anywhere(void **state)
{
    uint64_t chance = test_seed();
    bool before[PAGES], after[PAGES];
    struct findings findings;

    (void)state;
    for (unsigned round = test_rounds(150); round > 0; round--) {
        make_repository(100000 + chance_below(&chance, 300000));
        damage_somewhere(&chance);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        uint32_t gone = (uint32_t)chance_below(&chance, PAGES);
        struct spec spec = page(gone, 0);
        must_ok(remove_spec(store, &spec, chance_one_in(&chance, 2)));
        commit_store(store);
        wb_store_close(store);
        unsigned readable = read_all(before);
        struct wb_move_compact_counts result = compact(&findings);
        assert_int_equal(result.damaged + result.dropped, findings.count);
        assert_int_equal(read_all(after), readable);
        assert_memory_equal(before, after, sizeof before);
        if (readable == PAGES - 1 && result.damaged == 0)
            verify_clean(dir);
        remove_tree(dir);
    }
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_dead_block),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_takedown_beside_damage),
        cmocka_unit_test(test_segment_header),
        cmocka_unit_test(test_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
