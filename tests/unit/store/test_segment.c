/* test_segment.c - segment files: names, header, map, seal, reading a record, walking over damage. */
#include "../otherformat.h"
#include "store_support.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "os/file.h"
#include "os/path.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[DIR_MAX];
static struct wb_node *node;
static const uint8_t repo_id[WB_SUPERBLOCK_ID_BYTES] = {9, 8, 7};

static int make_dir(void **state)
{
    char pages[DIR_MAX];

    (void)state;
    test_dir(dir);
    path_in(dir, WB_SEGMENT_DIR, pages);
    must_ok(wb_node_open(dir, NULL, &node));
    return wb_path_mkdirs(pages);
}

static void test_names(void **state)
{
    static const struct {
        uint32_t number, revision;
        const char *name;
    } good[] = {{1, 0, "00000001.seg"}, {7, 2, "00000007.2.seg"}, {99999999, 4294967295u, "99999999.4294967295.seg"}};
    static const char *const bad[] = {"",
                                      ".seg",
                                      "1.seg",
                                      "00000001",
                                      "00000001.seg ",
                                      "00000001.0.seg",
                                      "00000001.01.seg",
                                      "00000001.seg.tmp",
                                      "-0000001.seg",
                                      "0000000x.seg",
                                      "00000001.2.3.seg",
                                      "000000001.seg",
                                      "+0000001.seg"};
    char name[WB_SEGMENT_NAME_MAX];
    uint32_t number, revision;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        wb_segment_name(good[i].number, good[i].revision, name);
        assert_true(strncmp(name, "pages/", 6) == 0);
        assert_string_equal(name + 6, good[i].name);
        assert_true(wb_segment_name_parse(good[i].name, &number, &revision));
        assert_int_equal(number, good[i].number);
        assert_int_equal(revision, good[i].revision);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (wb_segment_name_parse(bad[i], &number, &revision))
            fail_msg("'%s' is taken for a segment", bad[i]);
}

static void path_of(uint32_t number, uint32_t revision, char path_out[DIR_MAX])
{
    char name[WB_SEGMENT_NAME_MAX];

    wb_segment_name(number, revision, name);
    path_in(dir, name, path_out);
}

static int open_segment(uint32_t number, uint32_t revision, const uint8_t *id, uint64_t map_at, uint64_t map_count)
{
    struct wb_catalog_segment row = {.number = number, .revision = revision, .map_at = map_at, .map_count = map_count};
    struct wb_segment segment;
    if (revision) {
        row.bytes = map_at + 32 + map_count * 16;
        row.logical_end = UINT64_MAX;
    }
    int err = wb_segment_open(node, id, &row, false, &segment);

    wb_segment_close(&segment);
    return err;
}

static void test_header(void **state)
{
    static const uint8_t other_id[WB_SUPERBLOCK_ID_BYTES] = {1};
    struct wb_segment segment, second;
    struct wb_file file;
    char path[DIR_MAX];

    (void)state;
    path_of(1, 0, path);
    assert_int_equal(wb_segment_create(node, repo_id, 1, 0, &segment), 0);
    assert_int_equal(wb_segment_create(node, repo_id, 1, 0, &second), WB_E_INVALID);
    /* The process that creates a file has its lock. */
    must_ok(wb_file_open(path, WB_FILE_READ, &file));
    assert_int_equal(wb_file_lock(&file, false), WB_E_BUSY);
    wb_file_close(&file);
    assert_int_equal(open_segment(1, 0, repo_id, 0, 0), 0);
    wb_segment_close(&segment);
    assert_int_equal(open_segment(1, 0, other_id, 0, 0), WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), path));
    assert_int_equal(open_segment(2, 0, repo_id, 0, 0), WB_E_CORRUPT); /* missing */
    for (uint64_t at = 0; at < WB_SEGMENT_HEADER_BYTES; at++) {
        flip_byte(path, at, 0x04);
        assert_int_equal(open_segment(1, 0, repo_id, 0, 0), WB_E_CORRUPT);
        flip_byte(path, at, 0x04);
    }
    /* A file under the name of another one. */
    char other[DIR_MAX];
    path_of(3, 0, other);
    assert_int_equal(link(path, other), 0);
    assert_int_equal(open_segment(3, 0, repo_id, 0, 0), WB_E_CORRUPT);
    /* A file of another format is not called damaged. */
    put_format(path, 0, 4, 2, 56);
    assert_refused_format(open_segment(1, 0, repo_id, 0, 0), path, 2);
    must_ok(wb_file_open(path, WB_FILE_WRITE, &file));
    must_ok(wb_file_truncate(&file, 20));
    wb_file_close(&file);
    assert_int_equal(open_segment(1, 0, repo_id, 0, 0), WB_E_CORRUPT);
}

struct removal {
    char path[DIR_MAX];
    pid_t parent; /* when it dies, the remover ends */
};

/* Does what recovery does with a file that the catalog does not know: removes it if nobody has locked it. */
static int remove_again_and_again(void *context)
{
    const struct removal *r = context;
    struct wb_file file;

    while (getppid() == r->parent) {
        if (wb_file_open(r->path, WB_FILE_READ, &file) < 0)
            continue;
        if (wb_file_lock(&file, false) == 0 && !wb_file_unlinked(&file))
            must_ok(wb_path_unlink(r->path));
        wb_file_close(&file);
    }
    return 0;
}

/* Whatever others remove: a segment that was created exists, under its name. */
static void test_making_beside_removal(void **state)
{
    struct wb_segment segment;
    struct stat named;
    struct removal removal = {.parent = getpid()};

    (void)state;
    path_of(9, 0, removal.path);
    pid_t remover = start_child(remove_again_and_again, &removal);
    for (unsigned i = 0; i < test_rounds(20000); i++) {
        must_ok(wb_segment_create(node, repo_id, 9, 0, &segment));
        must_ok(wb_node_file_truncate(&segment.file, 100 + i));
        if (stat(removal.path, &named) != 0 || named.st_size != 100 + (off_t)i) /* the file of that name is ours */
            fail_msg("the segment made in round %u is gone", i);
        must_ok(wb_node_file_remove(&segment.file));
        wb_segment_close(&segment);
    }
    kill(remover, SIGKILL);
    end_child(remover);
}

static void test_map(void **state)
{
    struct wb_segment_map_entry map[100];
    struct wb_catalog_segment row = {.number = 4, .revision = 1, .map_at = 1000, .map_count = COUNT(map)};
    struct wb_segment segment;
    char path[DIR_MAX];
    uint64_t bytes, physical;

    (void)state;
    path_of(4, 1, path);
    for (size_t i = 0; i < COUNT(map); i++)
        map[i] = (struct wb_segment_map_entry){64 + i * 1000, 64 + i * 10};
    must_ok(wb_segment_create(node, repo_id, 4, 1, &segment));
    must_ok(wb_segment_write_map(&segment, 1000, map, COUNT(map), &bytes));
    wb_segment_close(&segment);
    assert_int_equal(bytes, 32 + COUNT(map) * 16);
    row.bytes = 1000 + bytes + 300; /* blocks were appended behind the map */
    row.logical_end = 64 + COUNT(map) * 1000 + 300;
    must_ok(wb_segment_open(node, repo_id, &row, false, &segment));
    must_ok(wb_segment_locate(&segment, row.logical_end - 300, &physical));
    assert_int_equal(physical, 1000 + bytes);
    must_ok(wb_segment_locate(&segment, row.logical_end - 1, &physical));
    assert_int_equal(physical, row.bytes - 1);
    assert_int_equal(wb_segment_name_at(&segment, row.bytes), row.logical_end);
    assert_int_equal(wb_segment_seek(&segment, 0, row.bytes), 64);
    assert_int_equal(wb_segment_seek(&segment, map[7].logical + 1, row.bytes), map[8].physical);
    assert_int_equal(wb_segment_seek(&segment, map[99].logical + 1, row.bytes), 1000 + bytes);
    assert_int_equal(wb_segment_seek(&segment, row.logical_end - 1, row.bytes), row.bytes - 1);
    assert_int_equal(wb_segment_seek(&segment, row.logical_end, row.bytes), row.bytes);
    assert_int_equal(wb_segment_blocks_end(&row), row.bytes);
    for (size_t i = 0; i < COUNT(map); i++) {
        must_ok(wb_segment_locate(&segment, map[i].logical, &physical));
        assert_int_equal(physical, map[i].physical);
        assert_int_equal(wb_segment_locate(&segment, map[i].logical + 1, &physical), WB_E_CORRUPT);
    }
    assert_int_equal(wb_segment_locate(&segment, 0, &physical), WB_E_CORRUPT);
    wb_segment_close(&segment);
    row.bytes -= 300;
    row.logical_end -= 300;
    assert_int_equal(wb_segment_blocks_end(&row), 1000); /* nothing was: what follows is the map */
    row.logical_end = map[COUNT(map) - 1].logical;
    assert_int_equal(wb_segment_open(node, repo_id, &row, false, &segment), WB_E_CORRUPT);
    wb_segment_close(&segment);
    assert_int_equal(open_segment(4, 1, repo_id, 1000, COUNT(map) - 1), WB_E_CORRUPT);
    assert_int_equal(open_segment(4, 1, repo_id, 1001, COUNT(map)), WB_E_CORRUPT);
    assert_int_equal(open_segment(4, 1, repo_id, 100000, COUNT(map)), WB_E_CORRUPT);
    for (uint64_t at = 1000; at < 1000 + bytes; at++) {
        flip_byte(path, at, 0x80);
        if (open_segment(4, 1, repo_id, 1000, COUNT(map)) != WB_E_CORRUPT)
            fail_msg("byte %llu of the map may change", (unsigned long long)(at - 1000));
        flip_byte(path, at, 0x80);
    }
}

static void test_seal(void **state)
{
    struct wb_segment segment;
    char path[DIR_MAX];
    uint64_t commit;

    (void)state;
    path_of(5, 0, path);
    must_ok(wb_segment_create(node, repo_id, 5, 0, &segment));
    assert_false(wb_segment_last_seal(&segment, &commit));
    must_ok(wb_segment_write_seal(&segment, 200, 77));
    assert_true(wb_segment_read_seal(&segment, 200, &commit));
    assert_int_equal(commit, 77);
    assert_true(wb_segment_last_seal(&segment, &commit));
    assert_int_equal(commit, 77);
    assert_false(wb_segment_read_seal(&segment, 199, &commit));
    assert_int_equal(commit, 0);
    for (uint64_t at = 200; at < 200 + WB_SEGMENT_SEAL_BYTES; at++) {
        flip_byte(path, at, 0x10);
        assert_false(wb_segment_read_seal(&segment, 200, &commit));
        flip_byte(path, at, 0x10);
    }
    /* A seal is valid only where it was written. */
    char seal[WB_SEGMENT_SEAL_BYTES];
    must_ok(wb_node_file_read_exact(&segment.file, 200, seal, sizeof seal));
    must_ok(wb_node_file_write_at(&segment.file, 300, seal, sizeof seal));
    assert_false(wb_segment_read_seal(&segment, 300, &commit));
    assert_false(wb_segment_last_seal(&segment, &commit));
    wb_segment_close(&segment);
}

/* ---- blocks in a file ------------------------------------------------------------------------------------ */

enum { BLOCKS = 6, PAGES = 5 };

struct file_of_blocks {
    struct wb_segment segment;
    uint64_t at[BLOCKS + 1];
    struct wb_pageid ids[BLOCKS][PAGES];
};

static void write_blocks(uint32_t number, struct file_of_blocks *f)
{
    struct wb_block_builder *builder;
    uint64_t at = WB_SEGMENT_HEADER_BYTES;

    must_ok(wb_block_builder_new(&builder));
    must_ok(wb_segment_create(node, repo_id, number, 0, &f->segment));
    for (uint32_t b = 0; b < BLOCKS; b++) {
        struct wb_block_page pages[PAGES];
        struct wb_buf records[PAGES] = {WB_BUF_INIT}, block = WB_BUF_INIT;
        for (uint32_t i = 0; i < PAGES; i++) {
            struct spec spec = {.site = b, .number = i, .time_ms = 1, .size = i * 3000 + 40, .variant = i};
            struct made made;
            make_page(&spec, &made);
            must_ok(wb_page_encode(&made.page, &records[i]));
            f->ids[b][i] = made.page.id;
            pages[i] = (struct wb_block_page){.id = made.page.id, .record = wb_buf_slice(&records[i]), .site = b};
            made_release(&made);
        }
        must_ok(wb_block_build(builder, pages, PAGES, &block));
        wb_block_stamp(block.ptr, at, 1);
        must_ok(wb_node_file_write_at(&f->segment.file, at, block.ptr, block.len));
        f->at[b] = at;
        at += block.len;
        for (uint32_t i = 0; i < PAGES; i++)
            wb_buf_release(&records[i]);
        wb_buf_release(&block);
    }
    f->at[BLOCKS] = at;
    wb_block_builder_free(builder);
}

static void test_read_record(void **state)
{
    struct file_of_blocks f;
    struct wb_segment_reader source;
    struct wb_buf record = WB_BUF_INIT;
    struct wb_page page;

    (void)state;
    write_blocks(6, &f);
    must_ok(wb_segment_reader_init(&source));
    for (uint32_t b = 0; b < BLOCKS; b++)
        for (uint16_t i = 0; i < PAGES; i++) {
            struct wb_catalog_place place = {6, i, f.at[b]};
            must_ok(wb_segment_read_record(&f.segment, &source, &place, f.ids[b][i], &record));
            must_ok(wb_page_decode(wb_buf_slice(&record), &page));
            assert_true(wb_pageid_equal(wb_pageid_of_key(page.key), f.ids[b][i]));
            /* The id of another page, a slot that does not exist, a position where no block starts. */
            assert_int_equal(wb_segment_read_record(&f.segment, &source, &place, f.ids[b][(i + 1) % PAGES], &record),
                             WB_E_CORRUPT);
            assert_non_null(strstr(wb_error_message(), f.segment.file.path));
            place.slot = PAGES;
            assert_int_equal(wb_segment_read_record(&f.segment, &source, &place, f.ids[b][i], &record), WB_E_CORRUPT);
            place = (struct wb_catalog_place){6, i, f.at[b] + 1};
            assert_int_equal(wb_segment_read_record(&f.segment, &source, &place, f.ids[b][i], &record), WB_E_CORRUPT);
        }
    struct wb_catalog_place past = {6, 0, f.at[BLOCKS] + 10000};
    assert_int_equal(wb_segment_read_record(&f.segment, &source, &past, f.ids[0][0], &record), WB_E_CORRUPT);
    must_ok(wb_node_file_truncate(&f.segment.file, f.at[BLOCKS] - 1));
    wb_segment_reader_release(&source); /* because its cache may have the block */
    must_ok(wb_segment_reader_init(&source));
    struct wb_catalog_place last = {6, PAGES - 1, f.at[BLOCKS - 1]};
    assert_int_equal(wb_segment_read_record(&f.segment, &source, &last, f.ids[BLOCKS - 1][PAGES - 1], &record),
                     WB_E_CORRUPT);
    wb_segment_reader_release(&source);
    wb_buf_release(&record);
    wb_segment_close(&f.segment);
}

/* Walks through the whole segment; returns the number of blocks and counts the errors. */
static unsigned walk_all(const struct file_of_blocks *f, uint64_t end, unsigned *errors_out, bool came_out[BLOCKS])
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at;
    unsigned came = 0;
    int more;

    *errors_out = 0;
    memset(came_out, 0, BLOCKS * sizeof *came_out);
    wb_segment_walk_init(&walk, &f->segment, end);
    while ((more = wb_segment_walk_next(&walk, &head, &block, &at)) != 0) {
        assert_true(more == 1 || more == WB_E_CORRUPT);
        *errors_out += more < 0;
        for (unsigned b = 0; more == 1 && b < BLOCKS; b++)
            came_out[b] = came_out[b] || f->at[b] == at;
        came += more == 1;
        assert_true(*errors_out <= BLOCKS);
    }
    wb_segment_walk_release(&walk);
    return came;
}

static void test_walk(void **state)
{
    struct file_of_blocks f;
    bool came[BLOCKS];
    unsigned errors;

    (void)state;
    write_blocks(7, &f);
    assert_int_equal(walk_all(&f, f.at[BLOCKS], &errors, came), BLOCKS);
    assert_int_equal(errors, 0);
    assert_int_equal(walk_all(&f, WB_SEGMENT_HEADER_BYTES, &errors, came), 0);
    /* Damages magic, length or directory of one or two blocks: all others are read, and each loss is reported once. */
    for (unsigned b = 0; b < BLOCKS; b++)
        for (uint64_t offset = 0; offset < 200; offset += 7) {
            flip_byte(f.segment.file.path, f.at[b] + offset, 0x20);
            assert_int_equal(walk_all(&f, f.at[BLOCKS], &errors, came), BLOCKS - 1);
            assert_int_equal(errors, 1);
            assert_false(came[b]);
            flip_byte(f.segment.file.path, f.at[b] + offset, 0x20);
        }
    flip_byte(f.segment.file.path, f.at[2], 1);
    flip_byte(f.segment.file.path, f.at[3] + 90, 1);
    assert_int_equal(walk_all(&f, f.at[BLOCKS], &errors, came), BLOCKS - 2);
    assert_int_equal(errors, 2);
    flip_byte(f.segment.file.path, f.at[2], 1);
    flip_byte(f.segment.file.path, f.at[3] + 90, 1);
    /* The file is shorter than it should be. */
    must_ok(wb_node_file_truncate(&f.segment.file, f.at[BLOCKS] - 5));
    assert_int_equal(walk_all(&f, f.at[BLOCKS], &errors, came), BLOCKS - 1);
    assert_int_equal(errors, 1);
    wb_segment_close(&f.segment);
}

/* Passing damage takes time in proportion to its size, even if it is full of bytes that look like headers. */
static void test_walk_over_magics(void **state)
{
    enum { BYTES = 6 << 20 };
    struct file_of_blocks f;
    struct wb_buf magics = WB_BUF_INIT;
    bool came[BLOCKS];
    unsigned errors;

    (void)state;
    write_blocks(8, &f);
    must_ok(wb_buf_reserve(&magics, BYTES));
    while (magics.len < BYTES)
        must_ok(wb_buf_append_str(&magics, "WBBK"));
    must_ok(wb_node_file_write_at(&f.segment.file, f.at[BLOCKS], magics.ptr, magics.len));
    wb_buf_release(&magics);
    alarm(600);
    assert_int_equal(walk_all(&f, f.at[BLOCKS] + BYTES, &errors, came), BLOCKS);
    assert_int_equal(errors, 1);
    alarm(0);
    wb_segment_close(&f.segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_making_beside_removal),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_seal),
        cmocka_unit_test(test_read_record),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_walk_over_magics),
    };

    return cmocka_run_group_tests(tests, make_dir, NULL);
}
