/*
 * test_deal.c - workers that share a stream: each record goes to one of them at a time, those of a dead worker go to
 * others, nothing is forgotten when the server dies, and nothing comes again when all is done.
 *
 * WEBBASE_SEED=N repeats a run.
 */
#include "../seeded.h"
#include "../store/store_support.h"
#include "os/fault.h"
#include "stream/stream_own.h"
#include "stream/wire.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SITES = 3, NUMBERS = 700, PAGES = SITES * NUMBERS, WORKERS = 6 };

static char dir[DIR_MAX];

static struct wb_stream_home *make_home(void)
{
    struct wb_stream_home *home;

    test_dir(dir);
    create_store(dir);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t number = 0; number < NUMBERS; number++)
        for (uint32_t site = 0; site < SITES; site++) {
            struct spec spec = {.site = site, .number = number, .time_ms = 1000, .size = 100};
            must_ok(put_spec(store, &spec));
        }
    commit_store(store);
    wb_store_close(store);
    must_ok(wb_stream_home_open(dir, &home));
    return home;
}

static int try_join(struct wb_stream_home *home, const char *site, struct wb_deal_worker **worker_out)
{
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;

    must_ok(wb_stream_spec_set(&spec, "join", WB_SLICE_LIT("crowd"), false));
    must_ok(wb_stream_spec_set(&spec, "latest", WB_SLICE_LIT("1"), false));
    if (site)
        must_ok(wb_stream_spec_set(&spec, "site", wb_slice_str(site), false));
    int err = wb_deal_join(home, &spec, worker_out);
    wb_stream_spec_release(&spec);
    return err;
}

static struct wb_deal_worker *join(struct wb_stream_home *home)
{
    struct wb_deal_worker *worker;

    must_ok(try_join(home, NULL, &worker));
    return worker;
}

/* ---- at random ------------------------------------------------------------------------------------------ */

/* What is known about each record. */
struct ledger {
    uint8_t held[PAGES]; /* by how many workers */
    uint8_t acknowledged[PAGES];
    uint64_t ids[PAGES];
    size_t done;
};

struct hand {
    struct wb_deal_worker *worker;
    uint64_t positions[WB_DEAL_RECORDS_MAX];
    size_t count;
};

static void take(struct ledger *ledger, struct hand *hand, const struct wb_stream_record *record)
{
    must(record->position < PAGES && hand->count < WB_DEAL_RECORDS_MAX);
    must(ledger->held[record->position] == 0 && ledger->acknowledged[record->position] == 0);
    must(ledger->ids[record->position] == 0 || ledger->ids[record->position] == record->page.id.hi);
    must(record->page.body.len == 100 && record->token.len > 0);
    ledger->ids[record->position] = record->page.id.hi;
    ledger->held[record->position] = 1;
    hand->positions[hand->count++] = record->position;
}

static void acknowledge(struct ledger *ledger, struct hand *hand, size_t count)
{
    if (count == 0)
        return;
    must_ok(wb_deal_acknowledge(hand->worker, hand->positions[count - 1]));
    for (size_t i = 0; i < count; i++) {
        ledger->held[hand->positions[i]] = 0;
        ledger->acknowledged[hand->positions[i]] = 1;
    }
    ledger->done += count;
    hand->count -= count;
    memmove(hand->positions, hand->positions + count, hand->count * sizeof *hand->positions);
}

static void die(struct ledger *ledger, struct hand *hand)
{
    for (size_t i = 0; i < hand->count; i++)
        ledger->held[hand->positions[i]] = 0;
    wb_deal_leave(hand->worker);
    *hand = (struct hand){0};
}

static void test_random(void **state)
{
    struct wb_stream_home *home = make_home();
    struct ledger *ledger = calloc(1, sizeof *ledger);
    struct hand *hands = calloc(WORKERS, sizeof *hands);
    struct wb_stream_record record;
    uint64_t chance = test_seed();
    unsigned ends = 0, later = 0, deaths = 0;

    (void)state;
    must(ledger && hands);
    hands[0].worker = join(home);
    while (ends < 3) {
        struct hand *hand = &hands[chance_below(&chance, WORKERS)];
        if (!hand->worker) {
            hand->worker = join(home);
            continue;
        }
        for (size_t n = chance_below(&chance, 30); n > 0; n--) {
            int got = wb_deal_next(hand->worker, &record);
            must_ok(got);
            if (got == 1)
                take(ledger, hand, &record);
            must((got == 0) == (ledger->done == PAGES)); /* the end comes when all is acknowledged */
            ends += got == 0;
            later += got == WB_DEAL_LATER;
            if (got != 1)
                break;
        }
        if (chance_one_in(&chance, 2))
            acknowledge(ledger, hand, chance_below(&chance, hand->count + 1));
        if (chance_one_in(&chance, 30) && ledger->done < PAGES && hand != &hands[0]) {
            die(ledger, hand);
            deaths++;
        }
    }
    assert_int_equal(ledger->done, PAGES);
    assert_true(deaths > 0 && later > 0);
    for (size_t i = 0; i < WORKERS; i++)
        wb_deal_leave(hands[i].worker);
    struct wb_deal_worker *late = join(home); /* nothing comes any more */
    assert_int_equal(wb_deal_next(late, &record), 0);
    wb_deal_leave(late);
    wb_stream_home_close(home);
    free(ledger);
    free(hands);
}

/* ---- rules ---------------------------------------------------------------------------------------------- */

static void test_limit(void **state)
{
    struct wb_stream_home *home = make_home();
    struct wb_deal_worker *greedy = join(home), *other = join(home);
    struct wb_stream_record record;
    uint64_t last = 0;

    (void)state;
    for (size_t i = 0; i < WB_DEAL_RECORDS_MAX; i++) {
        assert_int_equal(wb_deal_next(greedy, &record), 1);
        last = record.position;
    }
    assert_int_equal(wb_deal_next(greedy, &record), WB_DEAL_LATER);
    assert_int_equal(wb_deal_next(other, &record), 1);
    assert_int_equal(record.position, WB_DEAL_RECORDS_MAX);
    must_ok(wb_deal_acknowledge(other, last)); /* not its own: ignored */
    assert_int_equal(wb_deal_next(greedy, &record), WB_DEAL_LATER);
    must_ok(wb_deal_acknowledge(greedy, last));
    must_ok(wb_deal_acknowledge(greedy, last));
    assert_int_equal(wb_deal_next(greedy, &record), 1);

    struct wb_deal_worker *wrong; /* another selection under the same name is refused */
    assert_int_equal(try_join(home, "site1.example", &wrong), WB_E_INVALID);
    assert_null(wrong);
    wb_deal_leave(greedy);
    wb_deal_leave(other);
    wb_stream_home_close(home);
}

/* Takes up to `count` records; acknowledges them if it is to. Returns what came after them. */
static int take_some(struct wb_deal_worker *worker, size_t count, bool acknowledges, bool *seen)
{
    struct wb_stream_record record;
    int got = 1;

    for (size_t i = 0; i < count; i++) {
        got = wb_deal_next(worker, &record);
        if (got != 1)
            return got;
        if (acknowledges) {
            assert_false(seen[record.position]);
            seen[record.position] = true;
            must_ok(wb_deal_acknowledge(worker, record.position));
        }
    }
    return got;
}

/* A worker that says nothing keeps its records as long as nobody has to wait for them, and then others get them. */
static void test_silent(void **state)
{
    struct wb_stream_home *home = make_home();
    bool seen[PAGES] = {false};
    struct wb_deal_worker *silent = join(home), *slow = join(home), *other = join(home);
    struct wb_stream_record record;

    (void)state;
    home->deal_window = 300;
    assert_int_equal(take_some(silent, 50, false, NULL), 1);
    assert_int_equal(take_some(other, PAGES, true, seen), WB_DEAL_LATER); /* the window is full */
    home->silence_ns = 0;
    assert_int_equal(take_some(other, 200, true, seen), 1); /* those of the silent one are among them */
    for (size_t i = 0; i < 50; i++)
        assert_true(seen[i]);
    assert_int_equal(wb_deal_next(silent, &record), WB_E_STOPPED);
    must_ok(wb_deal_acknowledge(silent, 49)); /* too late, and so without any effect */

    home->silence_ns = INT64_MAX;
    assert_int_equal(wb_deal_next(slow, &record), 1);
    assert_int_equal(take_some(other, PAGES, true, seen), WB_DEAL_LATER); /* one that is only slow keeps its record */
    must_ok(wb_deal_acknowledge(slow, record.position));
    assert_int_equal(take_some(other, PAGES, true, seen), 0);
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(seen[i], i != record.position);
    wb_deal_leave(silent);
    wb_deal_leave(slow);
    wb_deal_leave(other);
    wb_stream_home_close(home);
}

/* At the end of the stream, too. */
static void test_silent_at_the_end(void **state)
{
    struct wb_stream_home *home = make_home();
    bool seen[PAGES] = {false};
    struct wb_deal_worker *silent = join(home), *other = join(home);

    (void)state;
    assert_int_equal(take_some(silent, 10, false, NULL), 1);
    assert_int_equal(take_some(other, PAGES, true, seen), WB_DEAL_LATER);
    home->silence_ns = 0;
    assert_int_equal(take_some(other, PAGES, true, seen), 0);
    for (size_t i = 0; i < PAGES; i++)
        assert_true(seen[i]);
    wb_deal_leave(silent);
    wb_deal_leave(other);
    wb_stream_home_close(home);
}

/* What a worker is looking at stays as it is, even if others have got it meanwhile and are done with it. */
static void test_silent_while_it_looks(void **state)
{
    struct wb_stream_home *home = make_home();
    bool seen[PAGES] = {false};
    struct wb_deal_worker *silent = join(home), *other = join(home);
    struct wb_stream_record record;
    struct wb_buf before = WB_BUF_INIT;
    void *others[64];

    (void)state;
    assert_int_equal(wb_deal_next(silent, &record), 1);
    const struct wb_slice *texts[] = {&record.page.url, &record.page.head, &record.page.body};
    for (size_t i = 0; i < COUNT(texts); i++)
        must_ok(wb_buf_append_slice(&before, *texts[i]));
    home->silence_ns = 0;
    assert_int_equal(take_some(other, PAGES + 1, true, seen), 0);
    assert_true(seen[record.position]);
    /* If the memory of the record were free, somebody would use it now. */
    for (size_t i = 0; i < COUNT(others); i++) {
        others[i] = malloc((i + 1) * 256);
        memset(others[i], 0xee, (i + 1) * 256);
    }
    for (size_t i = 0, at = 0; i < COUNT(texts); at += texts[i++]->len)
        assert_memory_equal(texts[i]->ptr, before.ptr + at, texts[i]->len);
    for (size_t i = 0; i < COUNT(others); i++)
        free(others[i]);
    assert_int_equal(wb_deal_next(silent, &record), WB_E_STOPPED);
    wb_buf_release(&before);
    wb_deal_leave(silent);
    wb_deal_leave(other);
    wb_stream_home_close(home);
}

/* Returns what wb_deal_next() does, and acknowledges the record. */
static int take_one(struct wb_deal_worker *worker, bool *seen, size_t *count)
{
    struct wb_stream_record record;
    int got = wb_deal_next(worker, &record);

    if (got != 1)
        return got;
    *count += !seen[record.position];
    seen[record.position] = true;
    must_ok(wb_deal_acknowledge(worker, record.position));
    return 1;
}

/* A record for which there was no memory comes again, even if its worker leaves and another one goes on. */
static void test_out_of_memory(void **state)
{
    struct wb_stream_home *home = make_home();
    struct wb_deal_worker *worker = join(home), *other = join(home);
    bool seen[PAGES] = {false};
    size_t count = 0;
    int got = 1;

    (void)state;
    for (uint64_t nth = 1; got != 0; nth++) {
        wb_fault_arm(WB_FAULT_ALLOC, nth % 23 + 1, ENOMEM);
        got = take_one(worker, seen, &count);
        wb_fault_disarm();
        if (got >= 0)
            continue;
        assert_int_equal(got, WB_E_NOMEM);
        wb_deal_leave(worker);
        got = take_one(other, seen, &count);
        if (got < 0) {
            assert_int_equal(got, WB_E_NOMEM);
            wb_deal_leave(other);
            other = join(home);
        }
        worker = join(home);
    }
    assert_int_equal(count, PAGES);
    wb_deal_leave(worker);
    wb_deal_leave(other);
    wb_stream_home_close(home);
}

/* ---- a server that dies ----------------------------------------------------------------------------------- */

/* Shared with the processes that are killed: what was acknowledged, and how often each record was delivered. */
struct memory {
    bool acknowledged[PAGES];
    unsigned delivered[PAGES];
};

/* A server with a few workers, which is killed at some moment. Ends with 1 if it has reached the end of the stream. */
static void serve_until_killed(struct memory *memory, uint64_t chance)
{
    struct wb_deal_worker *workers[3];
    uint64_t last[3] = {0}, got_since[3][WB_DEAL_RECORDS_MAX];
    size_t counts[3] = {0};
    struct wb_stream_home *home;
    struct wb_stream_record record;

    must_ok(wb_stream_home_open(dir, &home));
    for (size_t i = 0; i < COUNT(workers); i++)
        workers[i] = join(home);
    for (uint64_t life = 100 + chance_below(&chance, 900); life > 0; life--) {
        size_t w = chance_below(&chance, COUNT(workers));
        int got = wb_deal_next(workers[w], &record);
        must_ok(got);
        if (got == 0)
            _exit(1);
        if (got == 1) {
            memory->delivered[record.position]++;
            last[w] = record.position;
            got_since[w][counts[w]++] = record.position;
        }
        if (counts[w] && (got == WB_DEAL_LATER || chance_one_in(&chance, 20))) {
            must_ok(wb_deal_acknowledge(workers[w], last[w]));
            for (; counts[w] > 0; counts[w]--)
                memory->acknowledged[got_since[w][counts[w] - 1]] = true;
        }
    }
    _exit(0);
}

static void test_killed(void **state)
{
    struct memory *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t chance = test_seed();
    int status = 0;
    unsigned lives = 0;

    (void)state;
    must(memory != MAP_FAILED);
    wb_stream_home_close(make_home());
    for (; lives < 200 && !(WIFEXITED(status) && WEXITSTATUS(status) == 1); lives++) {
        uint64_t of_child = chance_next(&chance);
        pid_t pid = fork();
        must(pid >= 0);
        if (pid == 0)
            serve_until_killed(memory, of_child);
        must(waitpid(pid, &status, 0) == pid);
        must(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    }
    assert_true(lives > 2 && lives < 200); /* a life is shorter than half of the stream */
    for (size_t i = 0; i < PAGES; i++)
        assert_true(memory->delivered[i] > 0 && memory->acknowledged[i]);
}

/* ---- over the wire, in threads ------------------------------------------------------------------------------ */

struct remote_worker {
    struct wb_stream_home *home;
    uint8_t *seen; /* by position; each is written by one worker */
    size_t count;
};

static void *run_remote(void *context)
{
    struct remote_worker *w = context;
    struct wb_deal_worker *worker = join(w->home);
    struct wb_wire_reader *reader;
    struct wb_stream_record record;
    struct wb_buf bytes = WB_BUF_INIT;
    int got = 0;

    must_ok(wb_wire_reader_new(&reader));
    while (got != WB_WIRE_END) {
        uint64_t last = UINT64_MAX;
        int more = wb_deal_next_wire(worker, &bytes);
        must_ok(more);
        must_ok(wb_wire_reader_feed(reader, wb_buf_slice(&bytes)));
        wb_buf_clear(&bytes);
        while ((got = wb_wire_reader_next(reader, &record)) == WB_WIRE_RECORD) {
            w->seen[record.position]++;
            w->count++;
            last = record.position;
        }
        must_ok(got);
        if (last != UINT64_MAX)
            must_ok(wb_deal_acknowledge(worker, last));
        if (more == WB_DEAL_LATER)
            sched_yield();
    }
    wb_wire_reader_free(reader);
    wb_buf_release(&bytes);
    wb_deal_leave(worker);
    return NULL;
}

static void test_wire_workers(void **state)
{
    struct wb_stream_home *home = make_home();
    uint8_t seen[PAGES] = {0};
    struct remote_worker workers[WORKERS];
    pthread_t threads[WORKERS];
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct remote_worker){.home = home, .seen = seen};
        must(pthread_create(&threads[i], NULL, run_remote, &workers[i]) == 0);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        must(pthread_join(threads[i], NULL) == 0);
        count += workers[i].count;
    }
    assert_int_equal(count, PAGES);
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(seen[i], 1);
    wb_stream_home_close(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_silent_at_the_end),
        cmocka_unit_test(test_silent_while_it_looks),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_wire_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
