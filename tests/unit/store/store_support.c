/* store_support.c - see store_support.h. */
#include "store_support.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"
#include "os/random.h"
#include "pagefile/bucket.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- directories ------------------------------------------------------------------ */

static char test_root[DIR_MAX];
static pid_t test_root_owner;
static unsigned test_dirs;

static void remove_root(void)
{
    if (getpid() == test_root_owner)
        remove_tree(test_root);
}

/* In memory if the system offers that: the tests depend on the order of syncs, not on how long they take. */
void test_dir(char dir_out[DIR_MAX])
{
    if (!test_root[0]) {
        const char *base = getenv("TMPDIR");
        if (!base)
            base = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(test_root, sizeof test_root, "%s/webbase-test-XXXXXX", base);
        must(mkdtemp(test_root) != NULL);
        test_root_owner = getpid();
        atexit(remove_root);
    }
    must(snprintf(dir_out, DIR_MAX, "%.200s/%u", test_root, test_dirs++) < DIR_MAX);
    must(mkdir(dir_out, 0777) == 0);
}

void path_in(const char *dir, const char *name, char path_out[DIR_MAX])
{
    must(snprintf(path_out, DIR_MAX, "%s/%s", dir, name) < DIR_MAX);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[1 << 16];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ssize_t n;

    must(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        must(write(out, bytes, (size_t)n) == n);
    must(n == 0);
    close(in);
    close(out);
}

void copy_repository(const char *from, const char *to)
{
    char from_path[DIR_MAX], to_path[DIR_MAX];
    DIR *dir = opendir(from);
    struct dirent *entry;

    must(dir != NULL);
    mkdir(to, 0777);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        path_in(from, entry->d_name, from_path);
        path_in(to, entry->d_name, to_path);
        if (wb_path_kind(from_path) == WB_PATH_DIR)
            copy_repository(from_path, to_path);
        else
            copy_file(from_path, to_path);
    }
    closedir(dir);
}

void segment_path(const char *dir, const struct wb_catalog_segment *row, char path_out[DIR_MAX])
{
    char name[WB_SEGMENT_NAME_MAX], node[WB_SEGMENT_NAME_MAX + 16];

    wb_segment_name(row->number, row->revision, name);
    snprintf(node, sizeof node, "node%u/%s", row->node, name);
    path_in(dir, test_nodes() > 1 ? node : name, path_out);
}

uint64_t file_bytes(const char *path)
{
    struct stat st;

    must(stat(path, &st) == 0);
    return (uint64_t)st.st_size;
}

uint8_t flip_byte(const char *path, uint64_t at, uint8_t mask)
{
    int fd = open(path, O_RDWR);
    uint8_t before = 0, after;

    must(fd >= 0 && pread(fd, &before, 1, (off_t)at) == 1);
    after = before ^ mask;
    must(pwrite(fd, &after, 1, (off_t)at) == 1);
    close(fd);
    return before;
}

/* ---- pages -------------------------------------------------------------------------- */

int put_spec_as(struct wb_store *store, const struct spec *spec, enum wb_store_outcome *outcome_out)
{
    struct made made;

    make_page(spec, &made);
    int err = wb_store_put(store, &made.page, outcome_out);
    made_release(&made);
    return err;
}

int put_spec(struct wb_store *store, const struct spec *spec)
{
    return put_spec_as(store, spec, NULL);
}

int remove_spec(struct wb_store *store, const struct spec *spec, bool everywhere)
{
    struct wb_buf room = WB_BUF_INIT;
    int err = wb_store_remove(store, spec_id(spec), spec_site(spec, &room), spec->time_ms, everywhere);

    wb_buf_release(&room);
    return err;
}

int bar_spec(struct wb_store *store, const struct spec *spec, enum wb_store_bar_kind kind, bool allow)
{
    struct wb_buf room = WB_BUF_INIT;
    struct wb_store_bar bar = {
        .kind = kind, .id = spec_id(spec), .site = spec_site(spec, &room), .time_ms = spec->time_ms};
    int err = allow ? wb_store_allow(store, &bar) : wb_store_bar(store, &bar);

    wb_buf_release(&room);
    return err;
}

bool spec_barred(struct wb_store *store, const struct spec *spec)
{
    struct wb_buf room = WB_BUF_INIT;
    int barred = wb_store_barred(store, spec_id(spec), spec_site(spec, &room));

    wb_buf_release(&room);
    must(barred == 0 || barred == 1);
    return barred == 1;
}

/* Counts the files of one node that contain some bytes. */
static unsigned node_files_with(const char *dir, const char *needle, size_t len)
{
    char pages[DIR_MAX], path[DIR_MAX];
    unsigned count = 0;

    path_in(dir, WB_SEGMENT_DIR, pages);
    DIR *d = opendir(pages);
    must(d != NULL);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        struct wb_buf bytes;
        if (entry->d_name[0] == '.')
            continue;
        path_in(pages, entry->d_name, path);
        must_ok(wb_path_read(path, 64 << 20, &bytes));
        count += memmem(bytes.ptr, bytes.len, needle, len) != NULL;
        wb_buf_release(&bytes);
    }
    closedir(d);
    return count;
}

unsigned files_with(const char *dir, const struct spec *spec)
{
    char node[DIR_MAX], name[32];
    struct made made;
    unsigned count = 0;

    make_page(spec, &made);
    must(made.page.body.len >= 64);
    const char *needle = made.page.body.ptr + (made.page.body.len >= 1064 ? 1000 : made.page.body.len - 64);
    path_in(dir, WB_SEGMENT_DIR, node);
    if (wb_path_kind(node) == WB_PATH_DIR)
        count += node_files_with(dir, needle, 64);
    for (unsigned i = 1; i <= test_nodes(); i++) {
        snprintf(name, sizeof name, "node%u", i);
        path_in(dir, name, node);
        if (wb_path_kind(node) == WB_PATH_DIR)
            count += node_files_with(node, needle, 64);
    }
    made_release(&made);
    return count;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
    uint64_t parts[3] = {hash, len, len ? wb_hash64(bytes, len) : 0};

    return wb_hash64(parts, sizeof parts);
}

uint64_t page_hash(const struct wb_page *page, unsigned without)
{
    const struct wb_slice texts[] = {page->url, page->key, page->head, page->type, page->charset, page->body};
    const uint64_t numbers[] = {page->id.hi,
                                page->id.lo,
                                without & WITHOUT_TIME ? 0 : (uint64_t)page->time_ms,
                                page->body_bytes,
                                without & WITHOUT_EPOCH ? 0 : page->epoch,
                                without & WITHOUT_LIFETIME ? 0 : page->lifetime,
                                without & WITHOUT_LIFETIME ? 0 : page->lifetime_count,
                                page->status,
                                page->kind,
                                page->truncated,
                                page->digested,
                                page->has_payload_sha1};
    uint64_t hash = 0;

    for (size_t i = 0; i < COUNT(texts); i++)
        hash = mix(hash, texts[i].ptr, texts[i].len);
    hash = mix(hash, numbers, sizeof numbers);
    hash = mix(hash, page->md5, sizeof page->md5);
    hash = mix(hash, page->sha1, sizeof page->sha1);
    return mix(hash, page->payload_sha1, sizeof page->payload_sha1);
}

bool holds_spec(struct wb_store *store, const struct spec *spec)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    struct made made;
    bool same = false;

    make_page(spec, &made);
    wb_page_digest(&made.page);
    if (!made.page.lifetime_count)
        made.page.lifetime_count = made.page.lifetime;
    if (wb_store_get(store, made.page.id, &page, &memory) == 0)
        same = page_hash(&page, WITHOUT_EPOCH) == page_hash(&made.page, WITHOUT_EPOCH);
    if (!same)
        fprintf(stderr, "%.*s: not the page of %lld: %s\n", WB_SLICE_ARG(made.page.key), (long long)spec->time_ms,
                wb_error_message());
    made_release(&made);
    wb_buf_release(&memory);
    return same;
}

/* ---- the whole ----------------------------------------------------------------------------- */

struct wb_design test_design(void)
{
    const char *text = getenv("WEBBASE_TEST_DESIGN");
    struct wb_design design = {0};

    if (text)
        must_ok(wb_design_parse(wb_slice_str(text), &design));
    return design;
}

unsigned test_nodes(void)
{
    const char *text = getenv("WEBBASE_TEST_NODES");

    return text ? (unsigned)atoi(text) : 1;
}

void create_store(const char *dir)
{
    create_store_as(dir, (struct wb_store_history){0});
}

void create_store_as(const char *dir, struct wb_store_history history)
{
    must_ok(wb_store_create(dir, &(struct wb_store_options){
                                     .design = test_design(), .history = history, .nodes = {.count = test_nodes()}}));
}

struct wb_store *open_store(const char *dir, enum wb_store_mode mode)
{
    struct wb_store *store = NULL;

    must_ok(wb_store_open(dir, mode, &store));
    return store;
}

void commit_store(struct wb_store *store)
{
    struct wb_store_commit_counts counts = {0};

    must_ok(wb_store_commit(store, &counts));
}

uint32_t seal_store(struct wb_store *store)
{
    const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot;

    must_ok(wb_store_seal(store, wb_slice("", 0), &person, &snapshot));
    uint32_t number = snapshot.number;
    wb_store_snapshot_release(&snapshot);
    return number;
}

static void print_found(void *context, const struct wb_store_finding *report)
{
    const bool *print = context;

    must(report->file && report->file[0] && report->message && report->message[0]);
    if (report->problem && *print)
        fprintf(stderr, "verify: %s at %llu: %s\n", report->file, (unsigned long long)report->offset, report->message);
}

struct wb_store_verify_counts verify_count(const char *dir, bool print)
{
    struct wb_store_verify_counts result;

    if (wb_store_verify(dir, print_found, &print, NULL, NULL, &result) < 0)
        result.problems++;
    return result;
}

struct wb_store_verify_counts verify_clean(const char *dir)
{
    struct wb_store_verify_counts result;
    bool print = true;

    must_ok(wb_store_verify(dir, print_found, &print, NULL, NULL, &result));
    must(result.problems == 0);
    return result;
}

/* ---- sizes ------------------------------------------------------------------------------------------ */

void use_small_sizes(uint64_t segment_bytes)
{
    wb_pagefile_sizes = (struct wb_pagefile_sizes){.segment_bytes = segment_bytes,
                                                   .hashed_bytes = segment_bytes / 4,
                                                   .block_bytes = 6 << 10,
                                                   .group_bytes = 24 << 10,
                                                   .giant_bytes = 48 << 10,
                                                   .spare_bytes = 48 << 10,
                                                   .bucket_bytes = 4 << 10,
                                                   .large_bytes = 16 << 10,
                                                   .pending_bytes = 96 << 10};
}

void use_usual_sizes(void)
{
    wb_pagefile_sizes = (struct wb_pagefile_sizes){.segment_bytes = WB_SEGMENT_BYTES_MAX,
                                                   .hashed_bytes = 10 << 20,
                                                   .block_bytes = WB_BLOCK_RAW_TARGET,
                                                   .group_bytes = 16 << 20,
                                                   .giant_bytes = 8 << 20,
                                                   .spare_bytes = 64 << 20,
                                                   .bucket_bytes = WB_BUCKET_BYTES,
                                                   .large_bytes = WB_BUCKET_LARGE_BYTES,
                                                   .pending_bytes = 64 << 20};
}
