/*
 * test_registry.c - the registry's calls one by one, with both databases: what each does, what it refuses, and what its
 * repetition does. Time is moved by the test.
 */
#include "registry_support.h"
#include "../postgresserver.h"
#include "base/buf.h"

static bool says(const char *text)
{
    return strstr(wb_error_message(), text) != NULL;
}

/* ---- the cluster ------------------------------------------------------------------------------------------------- */

static void test_settings(void **state)
{
    static const struct wb_registry_cluster wrong[] = {
        {.store = "s", .history = "all", .shards = 0, .copies = 1, .lease_ms = 5000},
        {.store = "s", .history = "all", .shards = 48, .copies = 1, .lease_ms = 5000},
        {.store = "s", .history = "all", .shards = 131072, .copies = 1, .lease_ms = 5000},
        {.store = "s", .history = "all", .shards = 64, .copies = 0, .lease_ms = 5000},
        {.store = "s", .history = "all", .shards = 64, .copies = 17, .lease_ms = 5000},
        {.store = "s", .history = "all", .shards = 64, .copies = 1, .lease_ms = 1999},
        {.store = "s", .history = "all", .shards = 64, .copies = 1, .lease_ms = 600001},
        {.store = "", .history = "all", .shards = 64, .copies = 1, .lease_ms = 5000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(wb_registry_init("sqlite:///nonexistent/x.db", &wrong[i]), WB_E_INVALID);
}

static void test_cluster(void **state)
{
    struct cluster_place *p = *state, other;
    struct wb_registry_cluster settings = {
        .store = "s3://b/p", .history = "all", .shards = 16, .copies = 1, .lease_ms = 5000};
    struct wb_registry *r = NULL;

    const struct wb_registry_cluster *c = wb_registry_cluster(p->admin);
    assert_int_equal(c->shards, 8);
    assert_int_equal(c->copies, 2);
    assert_int_equal(c->lease_ms, LEASE);
    assert_string_equal(c->store, "file:///store");
    assert_int_equal(strlen(c->id), 32);
    assert_int_equal(strlen(c->secret), 64);
    /* A second one is refused. */
    assert_int_equal(wb_registry_init(p->url, &settings), WB_E_BUSY);
    assert_true(says("file:///store"));
    assert_int_equal(wb_registry_cluster(p->admin)->shards, 8);
    /* Another format. */
    change_rows(p, "UPDATE webbase_cluster SET format = 2");
    assert_int_equal(wb_registry_open(p->url, &r), WB_E_NEWER);
    change_rows(p, "UPDATE webbase_cluster SET format = 1, shards = 3");
    assert_int_equal(wb_registry_open(p->url, &r), WB_E_CORRUPT);
    change_rows(p, "UPDATE webbase_cluster SET shards = 8");
    /* A database without one, and with a single shard. */
    must_ok(make_cluster(&other, p->postgres, 1, 1, 5000));
    change_rows(&other, "DELETE FROM webbase_cluster");
    assert_int_equal(wb_registry_open(other.url, &r), WB_E_NOTFOUND);
    assert_true(says("webbase cluster init"));
    remove_cluster(&other);
}

static void test_shard_of(void **state)
{
    unsigned counts[64] = {0};
    char site[32];

    (void)state;
    for (unsigned i = 0; i < 6400; i++) {
        snprintf(site, sizeof site, "site%u.example", i);
        unsigned shard = wb_registry_shard_of(wb_slice_str(site), 64);
        must(shard < 64);
        counts[shard]++;
        /* A shard is divided into its two halves, and all sites are in the only one. */
        assert_int_equal(wb_registry_shard_of(wb_slice_str(site), 128) / 2, shard);
        assert_int_equal(wb_registry_shard_of(wb_slice_str(site), 1), 0);
    }
    for (unsigned i = 0; i < 64; i++)
        assert_true(counts[i] > 50 && counts[i] < 150);
}

/* ---- machines -----------------------------------------------------------------------------------------------------
 */

static void test_join(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *a = new_machine(p, "a"), *b = open_machine(p);

    assert_true(wb_registry_lease_left_ms(a) > LEASE / 2 && wb_registry_lease_left_ms(a) < LEASE);
    assert_int_equal(wb_registry_lease_left_ms(b), 0);
    assert_int_equal(wb_registry_renew(b, NULL), WB_E_DENIED);
    assert_int_equal(join_as(b, "a"), WB_E_BUSY);
    assert_true(says("a.example:8080"));
    /* Its directory, under another name. */
    struct wb_registry_self self = {.name = "b", .address = "b:1", .directory = "", .weight = 1, .class_name = ""};
    struct wb_registry_view view;
    must_ok(wb_registry_look(p->admin, &view));
    self.directory = view.machines.items[0].directory;
    assert_int_equal(wb_registry_join(b, &self), WB_E_BUSY);
    assert_true(says("machine a is at work"));
    /* When the machine is down, the directory may come back under another name, and the name with another directory. */
    true_ms += LEASE + 1;
    assert_int_equal(wb_registry_lease_left_ms(a), 0);
    must_ok(wb_registry_join(b, &self));
    assert_int_equal(wb_registry_renew(a, NULL), 0); /* nobody has taken the name */
    must_ok(wb_registry_leave(b));
    true_ms += LEASE + 1;
    must_ok(join_as(b, "a"));
    /* The earlier process must end. */
    assert_int_equal(wb_registry_renew(a, NULL), WB_E_DENIED);
    assert_int_equal(wb_registry_renew(a, NULL), WB_E_DENIED);
    assert_int_equal(wb_registry_lease_left_ms(a), 0);
    wb_registry_view_release(&view);
    wb_registry_close(a);
    wb_registry_close(b);
}

static void test_join_refused(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *r = open_machine(p);
    const char *const id = "00112233445566778899aabbccddeeff";
    const struct wb_registry_self wrong[] = {
        {.name = "", .address = "h:1", .directory = id, .weight = 1, .class_name = ""},
        {.name = "a b", .address = "h:1", .directory = id, .weight = 1, .class_name = ""},
        {.name = "a", .address = "h", .directory = id, .weight = 1, .class_name = ""},
        {.name = "a", .address = "h:1", .directory = "0011", .weight = 1, .class_name = ""},
        {.name = "a", .address = "h:1", .directory = id, .weight = 0, .class_name = ""},
        {.name = "a", .address = "h:1", .directory = id, .weight = 1001, .class_name = ""},
        {.name = "a", .address = "h:1", .directory = id, .weight = 1, .class_name = "two words"},
    };

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(wb_registry_join(r, &wrong[i]), WB_E_INVALID);
    wb_registry_close(r);
}

/* ---- taking --------------------------------------------------------------------------------------------------------
 */

/* A machine may take a shard only when its renewals have been unbroken for a lease. */
static void test_unbroken(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *a = new_machine(p, "a");
    struct wb_registry_shard s;

    for (int i = 0; i < 2; i++) {
        assert_false(wb_registry_may_take(a));
        assert_int_equal(wb_registry_take(a, 3, &s), WB_E_DENIED);
        pass_time(LEASE / 1000 - 1, &a, 1);
        assert_int_equal(wb_registry_take(a, 3, &s), WB_E_DENIED);
        pass_time(1, &a, 1);
        assert_true(wb_registry_may_take(a));
        /* A gap of more than half a lease, in which the lease was never over, begins it again. */
        true_ms += LEASE / 2 + 1;
        must_ok(wb_registry_renew(a, NULL));
    }
    pass_time(LEASE / 1000, &a, 1);
    must_ok(wb_registry_take(a, 3, &s));
    assert_int_equal(s.shard, 3);
    assert_int_equal(s.term, 1);
    assert_string_equal(s.holder, "a");
    assert_int_equal(wb_registry_take(a, 3, &s), WB_E_BUSY);
    assert_int_equal(wb_registry_take(a, 8, &s), WB_E_NOTFOUND);
    wb_registry_close(a);
}

static void test_clock_steps(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *m[2] = {new_machine(p, "a"), new_machine(p, "b")};
    struct wb_registry_shard s;

    pass_time(LEASE / 1000, m, 2);
    must_ok(wb_registry_take(m[0], 0, &s));
    assert_int_equal(wb_registry_take(m[1], 0, &s), WB_E_BUSY);
    /* The database's clock is set forward: everybody's lease seems to be over, and nobody may take anything. */
    database_ahead_ms = 3600000;
    assert_int_equal(wb_registry_take(m[1], 0, &s), WB_E_DENIED);
    must_ok(wb_registry_renew(m[1], NULL));
    assert_int_equal(wb_registry_take(m[1], 0, &s), WB_E_DENIED);
    assert_true(wb_registry_holds(m[0], 0, NULL));
    pass_time(LEASE / 1000, m, 2);
    assert_int_equal(wb_registry_take(m[1], 0, &s), WB_E_BUSY);
    /* Small steps add up. */
    for (int i = 0; i < 4; i++) {
        database_ahead_ms += LEASE / 32 - 10;
        pass_time(1, m, 2);
    }
    assert_false(wb_registry_may_take(m[1]));
    /* It goes back: a machine that dies then must not keep its shards for an hour. */
    pass_time(LEASE / 1000, m, 2);
    database_ahead_ms = 0;
    pass_time(LEASE / 1000 + 1, m + 1, 1);
    assert_int_equal(wb_registry_take(m[1], 0, &s), WB_E_BUSY);
    must(wb_registry_anything_free(m[1]) >= 0); /* mends that */
    pass_time(LEASE / 1000 + 1, m + 1, 1);
    must_ok(wb_registry_take(m[1], 0, &s));
    assert_int_equal(s.term, 2);
    wb_registry_close(m[0]);
    wb_registry_close(m[1]);
}

/* After an outage of the database that was longer than a lease, holders keep their shards and terms. */
static void test_outage(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *m[2] = {new_machine(p, "a"), new_machine(p, "b")};
    struct wb_registry_shard s;
    struct wb_registry_news news;
    int64_t term;

    pass_time(LEASE / 1000, m, 2);
    must_ok(wb_registry_take(m[0], 5, &s));
    true_ms += 10 * LEASE;
    assert_false(wb_registry_holds(m[0], 5, &term));
    /* The other one comes back first, and must not take it. */
    must_ok(wb_registry_renew(m[1], &news));
    assert_true(news.lapsed);
    assert_int_equal(wb_registry_anything_free(m[1]), 1);
    assert_int_equal(wb_registry_take(m[1], 5, &s), WB_E_DENIED);
    must_ok(wb_registry_renew(m[0], &news));
    assert_true(news.lapsed && !news.shards_changed);
    assert_true(wb_registry_holds(m[0], 5, &term));
    assert_int_equal(term, 1);
    pass_time(LEASE / 1000, m, 2);
    assert_int_equal(wb_registry_take(m[1], 5, &s), WB_E_BUSY);
    wb_registry_close(m[0]);
    wb_registry_close(m[1]);
}

/* The holder stops by its own clock before anybody can take its shard; when it comes back it hears of that. */
static void test_takeover(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *m[2] = {new_machine(p, "a"), new_machine(p, "b")};
    struct wb_registry_shard s;
    struct wb_registry_news news;
    unsigned waited = 0;

    pass_time(LEASE / 1000, m, 2);
    must_ok(wb_registry_take(m[0], 1, &s));
    must_ok(wb_registry_take(m[0], 2, &s));
    while (wb_registry_take(m[1], 1, &s) < 0) {
        pass_time(1, m + 1, 1);
        must(++waited < 3 * LEASE / 1000);
    }
    assert_false(wb_registry_holds(m[0], 1, NULL));
    assert_int_equal(s.term, 2);
    assert_string_equal(s.holder, "b");
    struct wb_registry_publication late = {.shard = 1, .old_head = "", .head = "x"};
    assert_int_equal(wb_registry_publish(m[0], &late, &s), WB_E_DENIED);
    must_ok(wb_registry_renew(m[0], &news));
    assert_true(news.lapsed && news.shards_changed);
    assert_false(wb_registry_holds(m[0], 1, NULL));
    assert_true(wb_registry_holds(m[0], 2, NULL));
    assert_true(wb_registry_holds(m[1], 1, NULL));
    wb_registry_close(m[0]);
    wb_registry_close(m[1]);
}

/* What a process of the same name held is held by the new one with another term, after a lease. */
static void test_same_name(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *old = new_machine(p, "a"), *new = open_machine(p);
    struct wb_registry_shard s;
    int64_t term;

    pass_time(LEASE / 1000, &old, 1);
    must_ok(wb_registry_take(old, 1, &s));
    true_ms += LEASE + 1;
    must_ok(join_as(new, "a"));
    assert_false(wb_registry_holds(new, 1, NULL));
    pass_time(LEASE / 1000 + 1, &new, 1);
    assert_true(wb_registry_holds(new, 1, &term));
    assert_int_equal(term, 2);
    /* Even if the old one had been frozen between its last look at the clock and its request. */
    old->lease_end_ns = INT64_MAX;
    struct wb_registry_publication late = {.shard = 1, .old_head = "", .head = "x"};
    assert_int_equal(wb_registry_publish(old, &late, &s), WB_E_DENIED);
    assert_string_equal(shard_now(p, 1).head, "");
    wb_registry_close(old);
    wb_registry_close(new);
}

/* ---- publishing
 * ------------------------------------------------------------------------------------------------------ */

static void test_publish(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *a = new_machine(p, "a");
    struct wb_registry_shard s;

    pass_time(LEASE / 1000, &a, 1);
    must_ok(wb_registry_take(a, 4, &s));
    struct wb_registry_publication first = {
        .shard = 4, .old_head = "", .head = "h1", .pages = 7, .bytes = 70, .unsafe = true};
    must_ok(wb_registry_publish(a, &first, &s));
    assert_string_equal(s.head, "h1");
    true_ms += 300;
    s = shard_now(p, 4);
    assert_true(s.pages == 7 && s.bytes == 70 && s.unsafe_ms == 300);
    /* The same again is what follows a lost answer. */
    must_ok(wb_registry_publish(a, &first, &s));
    struct wb_registry_publication second = {.shard = 4, .old_head = "h1", .head = "h2", .pages = 8, .bytes = 80};
    must_ok(wb_registry_publish(a, &second, &s));
    assert_int_equal(shard_now(p, 4).unsafe_ms, 0);
    must_ok(wb_registry_tell_unsafe(a, 4, 2000));
    assert_int_equal(shard_now(p, 4).unsafe_ms, 2000);
    must_ok(wb_registry_tell_unsafe(a, 4, 0));
    assert_int_equal(shard_now(p, 4).unsafe_ms, 0);
    /* The database has lost a second: the holder hears what it says. */
    change_rows(p, "UPDATE webbase_shard SET head = 'h1' WHERE shard = 4");
    struct wb_registry_publication third = {.shard = 4, .old_head = "h2", .head = "h3"};
    assert_int_equal(wb_registry_publish(a, &third, &s), WB_E_CORRUPT);
    assert_string_equal(s.head, "h1");
    third.old_head = "h1";
    must_ok(wb_registry_publish(a, &third, &s));
    third.old_head = third.head;
    assert_int_equal(wb_registry_publish(a, &third, &s), WB_E_INVALID);
    third = (struct wb_registry_publication){.shard = 5, .old_head = "", .head = "h"};
    assert_int_equal(wb_registry_publish(a, &third, &s), WB_E_DENIED);
    wb_registry_close(a);
}

/* ---- giving
 * ------------------------------------------------------------------------------------------------------------ */

static void test_giving(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *m[2] = {new_machine(p, "a"), new_machine(p, "b")};
    struct wb_registry_shard s;
    struct wb_registry_news news;

    pass_time(LEASE / 1000, m, 2);
    for (unsigned i = 0; i < 3; i++)
        must_ok(wb_registry_take(m[0], i, &s));
    must_ok(wb_registry_hand_over(m[0], 0, "b"));
    assert_false(wb_registry_holds(m[0], 0, NULL));
    assert_false(wb_registry_holds(m[1], 0, NULL));
    must_ok(wb_registry_renew(m[1], &news));
    int64_t term;
    assert_true(news.shards_changed && wb_registry_holds(m[1], 0, &term));
    assert_int_equal(term, 2);
    assert_int_equal(wb_registry_hand_over(m[0], 0, "b"), WB_E_DENIED);
    assert_int_equal(wb_registry_hand_over(m[0], 1, "a"), WB_E_INVALID);
    /* To a machine that cannot have it: then nobody has it. */
    assert_int_equal(wb_registry_hand_over(m[0], 1, "nobody"), WB_E_BUSY);
    assert_string_equal(shard_now(p, 1).holder, "");
    must_ok(wb_registry_release(m[0], 2));
    assert_int_equal(wb_registry_release(m[0], 2), WB_E_DENIED);
    assert_string_equal(shard_now(p, 2).holder, "");
    must_ok(wb_registry_take(m[1], 2, &s));
    assert_int_equal(s.term, 2);
    must_ok(wb_registry_leave(m[1]));
    assert_string_equal(shard_now(p, 0).holder, "");
    assert_string_equal(shard_now(p, 2).holder, "");
    assert_int_equal(wb_registry_renew(m[1], NULL), WB_E_DENIED);
    wb_registry_close(m[0]);
    wb_registry_close(m[1]);
}

/* ---- operators
 * ----------------------------------------------------------------------------------------------------------- */

static void test_orders(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *m[2] = {new_machine(p, "a"), new_machine(p, "b")};
    struct wb_registry_shard s;
    struct wb_registry_news news;

    pass_time(LEASE / 1000, m, 2);
    must_ok(wb_registry_take(m[0], 0, &s));
    assert_int_equal(wb_registry_move(p->admin, 0, "c"), WB_E_NOTFOUND);
    assert_int_equal(wb_registry_move(p->admin, 8, "b"), WB_E_NOTFOUND);
    must_ok(wb_registry_move(p->admin, 0, "b"));
    must_ok(wb_registry_renew(m[0], &news));
    assert_true(news.shards_changed && wb_registry_holds(m[0], 0, NULL));
    assert_string_equal(m[0]->own.items[0].row.wanted, "b");
    assert_int_equal(wb_registry_drain(p->admin, "c"), WB_E_NOTFOUND);
    must_ok(wb_registry_drain(p->admin, "a"));
    must_ok(wb_registry_renew(m[0], &news));
    assert_true(news.draining);
    assert_int_equal(wb_registry_take(m[0], 1, &s), WB_E_DENIED);
    assert_int_equal(wb_registry_move(p->admin, 0, "a"), WB_E_BUSY);
    assert_int_equal(wb_registry_remove(p->admin, "a"), WB_E_BUSY);
    assert_int_equal(wb_registry_remove(p->admin, "b"), WB_E_BUSY);
    assert_int_equal(wb_registry_remove(p->admin, "c"), WB_E_NOTFOUND);
    must_ok(wb_registry_hand_over(m[0], 0, "b"));
    must_ok(wb_registry_remove(p->admin, "a"));
    assert_int_equal(wb_registry_renew(m[0], NULL), WB_E_DENIED);
    wb_registry_close(m[0]);
    wb_registry_close(m[1]);
}

static int keep_sentence(void *context, const char *sentence)
{
    strcat(context, sentence);
    strcat(context, "\n");
    return 0;
}

static void test_view(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *m[2] = {new_machine(p, "b"), new_machine(p, "a")};
    struct wb_registry_shard s;
    struct wb_registry_view view;
    char text[2048] = "";

    pass_time(LEASE / 1000, m, 2);
    for (unsigned i = 0; i < 8; i++)
        must_ok(wb_registry_take(m[i % 2], i, &s));
    struct wb_registry_publication all = {.shard = 0, .old_head = "", .head = "h", .pages = 5, .bytes = 50};
    must_ok(wb_registry_publish(m[0], &all, &s));
    for (unsigned i = 0; i < 8; i++)
        must_ok(wb_registry_copy(m[1 - i % 2], i, "h"));
    must_ok(wb_registry_copy(m[1], 0, "h2"));
    must_ok(wb_registry_look(p->admin, &view));
    assert_int_equal(view.machines.count, 2);
    assert_string_equal(view.machines.items[0].name, "a");
    const struct wb_registry_machine *b = wb_registry_view_machine(&view, "b");
    assert_true(b->shards == 4 && b->pages == 5 && b->bytes == 50 && b->steady && b->lease_ms > 0);
    assert_int_equal(wb_registry_state(b), WB_REGISTRY_UP);
    assert_int_equal(view.copies.count, 8);
    assert_string_equal(view.copies.items[0].machine, "a");
    assert_string_equal(view.copies.items[0].head, "h2");
    must_ok(wb_registry_problems(&view, keep_sentence, text));
    assert_string_equal(text, "");
    wb_registry_view_release(&view);
    must_ok(wb_registry_copy(m[1], 0, NULL));
    pass_time(LEASE / 1000 + 1, m + 1, 1);
    must_ok(wb_registry_look(p->admin, &view));
    must_ok(wb_registry_problems(&view, keep_sentence, text));
    assert_string_equal(text, "The machine b is down and still has 4 shards; nobody has taken them yet.\n"
                              "5 of 8 shards have fewer than 2 copies.\n");
    wb_registry_view_release(&view);
    wb_registry_close(m[0]);
    wb_registry_close(m[1]);
}

/* ---- tasks, bars, slots
 * ------------------------------------------------------------------------------------------------------ */

static void test_tasks(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *m[2] = {new_machine(p, "a"), new_machine(p, "b")};
    struct wb_buf left = WB_BUF_INIT;
    int64_t term, same;

    must_ok(wb_registry_task_take(m[0], "survey", &term, &left));
    assert_true(term == 1 && left.len == 0);
    must_ok(wb_registry_task_take(m[0], "survey", &same, &left));
    assert_int_equal(same, 1);
    assert_int_equal(wb_registry_task_take(m[1], "survey", &same, &left), WB_E_BUSY);
    assert_true(says("machine a has the task survey"));
    must_ok(wb_registry_task_leave(m[0], "survey", term, WB_SLICE_LIT("half"), false));
    pass_time(LEASE / 1000 + 1, m + 1, 1);
    must_ok(wb_registry_task_take(m[1], "survey", &same, &left));
    assert_int_equal(same, 2);
    assert_true(wb_slice_equal(wb_buf_slice(&left), WB_SLICE_LIT("half")));
    assert_int_equal(wb_registry_task_leave(m[0], "survey", term, WB_SLICE_LIT("all"), true), WB_E_DENIED);
    must_ok(wb_registry_task_leave(m[1], "survey", 2, WB_SLICE_LIT("all"), true));
    must_ok(wb_registry_task_leave(m[1], "survey", 2, WB_SLICE_LIT("all"), true)); /* again, its answer was lost */
    must_ok(wb_registry_renew(m[0], NULL));
    must_ok(wb_registry_task_take(m[0], "survey", &same, &left));
    assert_int_equal(same, 3);
    wb_buf_release(&left);
    wb_registry_close(m[0]);
    wb_registry_close(m[1]);
}

static int note_bar(void *context, const struct wb_registry_bar *bar)
{
    char *text = context;

    sprintf(text + strlen(text), "%d%s%s ", (int)bar->number, bar->lifted ? "-" : "+", bar->what);
    return 0;
}

static void test_bars(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *a = new_machine(p, "a");
    struct wb_registry_news news;
    struct wb_registry_view view;
    char text[256] = "";
    uint64_t number;

    must_ok(wb_registry_bar(p->admin, "x.org", false, &number));
    must_ok(wb_registry_bar(p->admin, "http://y.org/", false, &number));
    must_ok(wb_registry_bar(p->admin, "x.org", true, &number));
    assert_int_equal(number, 3);
    must_ok(wb_registry_renew(a, &news));
    assert_int_equal(news.bars, 3);
    must_ok(wb_registry_bars_each(a, 0, note_bar, text));
    assert_string_equal(text, "2+http://y.org/ 3-x.org ");
    text[0] = '\0';
    must_ok(wb_registry_bars_each(a, 2, note_bar, text));
    assert_string_equal(text, "3-x.org ");
    must_ok(wb_registry_bars_confirm(a, 3));
    must_ok(wb_registry_bars_confirm(a, 2)); /* a late one changes nothing */
    must_ok(wb_registry_look(p->admin, &view));
    assert_int_equal(view.machines.items[0].bars, 3);
    wb_registry_view_release(&view);
    wb_registry_close(a);
}

static void test_slots(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *m[2] = {new_machine(p, "a"), new_machine(p, "b")};
    struct wb_slice one = WB_SLICE_LIT("10.0.0.1"), two = WB_SLICE_LIT("2001:db8::1");
    unsigned slot;
    int64_t ready;

    must_ok(wb_registry_slot_take(m[0], one, 2, &slot, &ready));
    assert_true(slot == 1 && ready == 0);
    must_ok(wb_registry_slot_take(m[1], one, 2, &slot, &ready));
    assert_int_equal(slot, 2);
    must_ok(wb_registry_slot_take(m[1], one, 2, &slot, &ready));
    assert_int_equal(slot, 0);
    must_ok(wb_registry_slot_take(m[1], two, 1, &slot, &ready));
    assert_int_equal(slot, 1);
    /* Whoever gets it next waits for as long as the address wants. */
    must_ok(wb_registry_slot_release(m[0], one, 1, 700));
    must_ok(wb_registry_slot_release(m[0], one, 2, 700)); /* not its own: nothing happens */
    must_ok(wb_registry_slot_take(m[1], one, 2, &slot, &ready));
    assert_true(slot == 1 && ready == 700);
    must_ok(wb_registry_slot_release(m[1], one, 1, 0));
    /* The slots of a machine that is down are free. */
    pass_time(LEASE / 1000 + 1, m, 1);
    must_ok(wb_registry_slot_take(m[0], one, 3, &slot, &ready));
    assert_int_equal(slot, 1);
    must_ok(wb_registry_slot_take(m[0], one, 3, &slot, &ready));
    assert_int_equal(slot, 2);
    must_ok(wb_registry_slot_take(m[0], one, 3, &slot, &ready));
    assert_int_equal(slot, 3);
    /* Rows that say nothing any more are removed. */
    for (unsigned i = 1; i <= 3; i++)
        must_ok(wb_registry_slot_release(m[0], one, i, 0));
    must_ok(wb_registry_slot_take(m[0], one, 1, &slot, &ready));
    must_ok(wb_registry_slot_take(m[0], one, 1, &slot, &ready));
    assert_int_equal(slot, 0);
    wb_registry_close(m[0]);
    wb_registry_close(m[1]);
}

/* ---- checking
 * ---------------------------------------------------------------------------------------------------------------- */

static void count_found(void *context, const char *message)
{
    assert_non_null(strchr(message, ':'));
    ++*(unsigned *)context;
}

/* Each rule finds a row that breaks it. */
static void test_rules(void **state)
{
    struct cluster_place *p = *state;
    struct wb_registry *a = new_machine(p, "a");
    struct wb_registry_shard s;
    static const struct {
        const char *damage, *mend;
    } rows[] = {
        {"DELETE FROM webbase_shard WHERE shard = 7",
         "INSERT INTO webbase_shard VALUES (7, 3758096384, 4294967295, '', 0, '', '', '', 0, 0, 0, 0)"},
        {"UPDATE webbase_shard SET hash_last = hash_last + 1 WHERE shard = 1",
         "UPDATE webbase_shard SET hash_last = hash_last - 1 WHERE shard = 1"},
        {"UPDATE webbase_shard SET bytes = -1 WHERE shard = 0", "UPDATE webbase_shard SET bytes = 0 WHERE shard = 0"},
        {"UPDATE webbase_shard SET holder = 'ghost' WHERE shard = 0",
         "UPDATE webbase_shard SET holder = 'a' WHERE shard = 0"},
        {"UPDATE webbase_shard SET head = 'x' WHERE shard = 2", "UPDATE webbase_shard SET head = '' WHERE shard = 2"},
        {"UPDATE webbase_shard SET token = 'x' WHERE shard = 2", "UPDATE webbase_shard SET token = '' WHERE shard = 2"},
        {"UPDATE webbase_machine SET weight = 0", "UPDATE webbase_machine SET weight = 1"},
        {"UPDATE webbase_machine SET since_ms = until_ms", "UPDATE webbase_machine SET since_ms = 1"},
        {"INSERT INTO webbase_bar (what, number, lifted) VALUES ('x', 9, 0)", "DELETE FROM webbase_bar"},
        {"INSERT INTO webbase_copy (shard, machine, head) VALUES (0, 'a', '')", "DELETE FROM webbase_copy"},
        {"INSERT INTO webbase_task (name, holder, session, term, state) VALUES ('t', 'a', '', 1, '')",
         "DELETE FROM webbase_task"},
        {"INSERT INTO webbase_slot (address, slot, machine, session, token, ready_ms) VALUES ('x', 1, 'a', '', '', 0)",
         "DELETE FROM webbase_slot"},
    };

    pass_time(LEASE / 1000, &a, 1);
    must_ok(wb_registry_take(a, 0, &s));
    check_rules(p);
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned found = 0;
        change_rows(p, rows[i].damage);
        must_ok(wb_registry_check(p->admin, count_found, &found));
        if (found == 0)
            fail_msg("nothing is found after: %s", rows[i].damage);
        change_rows(p, rows[i].mend);
        check_rules(p);
    }
    wb_registry_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_shard_of),
        BOTH(test_cluster),
        BOTH(test_join),
        BOTH(test_join_refused),
        BOTH(test_unbroken),
        BOTH(test_clock_steps),
        BOTH(test_outage),
        BOTH(test_takeover),
        BOTH(test_same_name),
        BOTH(test_publish),
        BOTH(test_giving),
        BOTH(test_orders),
        BOTH(test_view),
        BOTH(test_tasks),
        BOTH(test_bars),
        BOTH(test_slots),
        BOTH(test_rules),
    };

    return cmocka_run_group_tests_name("registry", tests, NULL, postgres_end);
}
