/* test_ask_parse.c - queries and their trees, bad queries and where they are bad. */
#include "asktree.h"
#include "os/path.h"
#include "../allocfail.h"
#include "../sourceroot.h"

#define DAY "86400000"

static const char *const trees[][2] = {
    {"alpha", "w[alpha]"},
    {"  alpha\tbeta\n", "and(w[alpha] w[beta])"},
    {"alpha AND beta", "and(w[alpha] w[beta])"},
    {"alpha and or beta", "and(w[alpha] w[and] w[or] w[beta])"},
    {"a OR b c OR d", "or(w[a] and(w[b] w[c]) w[d])"},
    {"(a OR b) c", "and(or(w[a] w[b]) w[c])"},
    {"(a)(b)", "and(w[a] w[b])"},
    {"a(b c)d", "and(w[a] and(w[b] w[c]) w[d])"},
    {"((a b) c)", "and(and(w[a] w[b]) w[c])"},
    {"a OR(b)", "or(w[a] w[b])"},
    {"(a)OR\"b\"", "or(w[a] q[b])"},
    {"ORB ANDROID", "and(w[ORB] w[ANDROID])"},
    {"OR*", "p[OR]"},
    {"\"OR\"", "q[OR]"},
    {"-alpha", "not(w[alpha])"},
    {"-(a OR b)", "not(or(w[a] w[b]))"},
    {"-(-a)", "not(not(w[a]))"},
    {"a -\"b c\" -title:d -site:e.org", "and(w[a] not(q[b c]) not(title.w[d]) not(site=[e.org]))"},
    {"foo - bar", "and(w[foo] w[-] w[bar])"},
    {"--help -x", "and(w[--help] not(w[x]))"},
    {"(-)", "w[-]"},
    {"\" a  b \"", "q[a  b]"},
    {"\"a b\"~5", "q[a b]~5"},
    {"\"a b\"~0", "q[a b]"},
    {"(\"a b\"~1000000)", "q[a b]~1000000"},
    {"\"a\"\"b\"c", "and(q[a] q[b] w[c])"},
    {"pre*", "p[pre]"},
    {"char** *x a*b", "and(p[char] w[*x] w[a*b])"},
    {"std::vector c++ 3.11.7 AT&T e-mail 0x1F U.S. foo_bar",
     "and(w[std::vector] w[c++] w[3.11.7] w[AT&T] w[e-mail] w[0x1F] w[U.S.] w[foo_bar])"},
    {"printf(3) main() f(g(x)) printf(a, b)", "and(w[printf(3)] w[main()] w[f(g(x))] w[printf] and(w[a,] w[b]))"},
    {"19\" rack", "and(w[19\"] w[rack])"},
    {"nosuchfield:alpha :alpha http://x.org/ Title:x",
     "and(w[nosuchfield:alpha] w[:alpha] w[http://x.org/] w[Title:x])"},
    {"said:\"no more\" said:(no more)", "and(w[said:] q[no more] w[said:] and(w[no] w[more]))"},
    {"'; drop table %s%n%s \\", "and(w[';] w[drop] w[table] w[%s%n%s] w[\\])"},
    {"title:a heading:b* url:\"c d\" anchor:\"e f\"~2", "and(title.w[a] heading.p[b] url.q[c d] anchor.q[e f]~2)"},
    {"title:(a OR -\"b c\" d*) e", "and(or(title.w[a] and(not(title.q[b c]) title.p[d])) w[e])"},
    {"title:OR title:url:x title:--a title:-", "and(title.w[OR] title.w[url:x] title.w[--a] title.w[-])"},
    {"title:((a (b)) OR x:y)", "or(and(title.w[a] title.w[b]) title.w[x:y])"},
    {"link:www-db.stanford.edu/ linkfrom:http://a.org:80/b?c=(d) related:x",
     "and(link=[www-db.stanford.edu/] linkfrom=[http://a.org:80/b?c=(d)] related=[x])"},
    {"(link:a.org/C_(lang) OR link:b.org/x)", "or(link=[a.org/C_(lang)] link=[b.org/x])"},
    {"link:a.org/x) b", "and(link=[a.org/x)] w[b])"},
    {"link:a.org/x( b", "and(link=[a.org/x(] w[b])"},
    {"(link:\"a.org/x)\")", "link=[a.org/x)]"},
    {"type:text/html lang:pt-BR suffix:ac.uk dup:no", "and(type=[text/html] lang=[pt-BR] suffix=[ac.uk] dup=[no])"},
    {"status:404 status:>=500 status:4xx", "and(status[404..404] status[500..] status[400..499])"},
    {"inlinks:>=10 inlinks:>9 inlinks:<=4 inlinks:<4 inlinks:=3 inlinks:3 inlinks:>=-1",
     "and(inlinks[10..] inlinks[10..] inlinks[..4] inlinks[..3] inlinks[3..3] inlinks[3..3] inlinks[-1..])"},
    {"size:<50k size:>1.5M size:2G size:0.001k size:<=7K",
     "and(size[..49999] size[1500001..] size[2000000000..2000000000] size[1..1] size[..7000])"},
    {"(size:<5)", "size[..4]"},
    {"outlinks:0 depth:<3 versions:>1", "and(outlinks[0..0] depth[..2] versions[2..])"},
    {"inlinks:9007199254740992", "inlinks[9007199254740992..9007199254740992]"},
    {"rank:>0.001 rank:1e-6 rank:<=.5", "and(rank>0.001 rank=1e-06 rank<=0.5)"},
    {"quality:>=-0.5 quality:0.5 quality:=x color-2:red color-2:\"dark red\"",
     "and(quality>=-0.5 quality=[0.5] quality=[x] color-2=[red] color-2=[dark red])"},
    {"after:1970-01-02 before:1970-01-02", "and(after[" DAY "..] after[..86399999])"},
    {"published:1970-01-02 published:>1970-01-01 published:<=1970-01-01 published:<1970-01-02",
     "and(published[" DAY "..172799999] published[" DAY "..] published[..86399999] published[..86399999])"},
    {"modified:>=1970-01-01T00:00:01Z modified:>1970-01-01T01:00:00.5+01:00 changed:1970-01-01T00:01",
     "and(modified[1000..] modified[501..] changed[60000..60000])"},
    {"changed:<0001-01-01 changed:>=9999-12-31", "and(changed[..-62135596800001] changed[253402214400000..])"},
    /* What is not text separates words: control characters, malformed UTF-8, blanks of Unicode. */
    {"a\x01"
     "b\xff"
     "c\xe2\x82"
     "d\xc2\xa0"
     "e\xe3\x80\x80"
     "f\x7f",
     "and(w[a] w[b] w[c] w[d] w[e] w[f])"},
    {"\"a\x01\xff"
     "b\"",
     "q[a  b]"},
    {"na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac", "and(w[na\xc3\xafve] w[\xe6\x97\xa5\xe6\x9c\xac])"},
};

static void test_trees(void **state)
{
    (void)state;
    struct wb_arena arena = {0};
    struct wb_buf got = WB_BUF_INIT;
    struct wb_ask ask;

    for (size_t i = 0; i < COUNT(trees); i++) {
        if (wb_ask_parse(wb_slice_str(trees[i][0]), &test_options, &arena, &ask) < 0)
            fail_msg("%s: %s", trees[i][0], wb_error_message());
        show_tree(ask.root, &got);
        expect_text(&got, trees[i][1]);
        wb_arena_clear(&arena);
    }
    wb_buf_release(&got);
    wb_arena_release(&arena);
}

static const struct {
    const char *query;
    size_t character; /* from 1 */
    const char *says;
} bad_queries[] = {
    {"", 1, "empty"},
    {"  \x01\xff ", 1, "empty"},
    {"alpha \"beta", 7, "never closed"},
    {"\"", 1, "never closed"},
    {"\"\"", 1, "quotes are empty"},
    {"a \"  \"", 3, "quotes are empty"},
    {"(alpha beta", 1, "never closed"},
    {"a (", 3, "never closed"},
    {"a (b OR (c d) e", 3, "never closed"},
    {"printf(a, b", 7, "never closed"},
    {"alpha) beta", 6, "never opened"},
    {")", 1, "never opened"},
    {"alpha ()", 7, "parentheses are empty"},
    {"(( ) a)", 2, "parentheses are empty"},
    {"alpha OR", 7, "OR needs something after"},
    {"(alpha OR ) b", 8, "OR needs something after"},
    {"alpha OR OR beta", 10, "OR cannot follow OR"},
    {"alpha AND OR beta", 11, "OR cannot follow AND"},
    {"alpha OR AND beta", 10, "AND cannot follow OR"},
    {"alpha AND AND beta", 11, "AND cannot follow AND"},
    {"OR", 1, "OR needs something before"},
    {"AND", 1, "AND needs something before"},
    {"a (AND b)", 4, "AND needs something before"},
    {"a AND", 3, "AND needs something after"},
    {"a -OR b", 3, "- cannot be before OR"},
    {"-AND", 1, "- cannot be before AND"},
    {"*", 1, "* needs"},
    {"a **", 3, "* needs"},
    {"\"a b\"*", 6, "* needs"},
    {"-*", 2, "* needs"},
    {"title:", 7, "title: needs a word"},
    {"(title:) a", 8, "title: needs a word"},
    {"title: a", 7, "title: needs a word"},
    {"title:*", 7, "* needs"},
    {"title:-a", 7, "before title:"},
    {"title:()", 7, "parentheses are empty"},
    {"title:(a url:b)", 10, "url: cannot be inside title:"},
    {"heading:(a -quality:>3)", 13, "quality: cannot be inside heading:"},
    {"\"a b\"~", 6, "~ behind a phrase needs a number"},
    {"\"a b\"~x", 6, "~ behind a phrase needs a number"},
    {"\"a b\"~5x", 6, "~ behind a phrase needs a number"},
    {"\"a b\"~1000001", 7, "too large"},
    {"\"a b\"~99999999999999999999", 7, "too large"},
    {"link:", 6, "link: needs a value"},
    {"a site: b", 8, "site: needs a value"},
    {"(site:)", 7, "site: needs a value"},
    {"site:\" \"", 6, "site: has an empty value"},
    {"site:\"x", 6, "never closed"},
    {"link:a\"b\"", 7, "cannot contain a quote"},
    {"site:(a OR b)", 6, "site: takes a single value"},
    {"dup:yes", 5, "dup: takes only"},
    {"alpha inlinks:>=many", 17, "inlinks: needs a whole number"},
    {"inlinks:", 9, "inlinks: needs a whole number"},
    {"inlinks:>= 3", 11, "inlinks: needs a whole number"},
    {"inlinks:3k", 9, "inlinks: needs a whole number"},
    {"inlinks:1.5", 9, "inlinks: needs a whole number"},
    {"inlinks:-", 9, "inlinks: needs a whole number"},
    {"status:>4xx", 9, "status: needs a whole number"},
    {"alpha size:<big", 13, "size: needs a whole number"},
    {"size:<k", 7, "size: needs a whole number"},
    {"size:<1.2345k", 7, "size: needs a whole number"},
    {"size:1.2.3k", 6, "size: needs a whole number"},
    {"size:<99999999999999999999k", 7, "too large"},
    {"size:<9007199254740993", 7, "too large"},
    {"size:>10000000G", 7, "too large"},
    {"rank:>high", 7, "rank: needs a number"},
    {"rank:inf", 6, "rank: needs a number"},
    {"rank:0x1", 6, "rank: needs a number"},
    {"rank:1e999", 6, "rank: needs a number"},
    {"quality:>=much", 11, "quality: needs a number"},
    {"quality:", 9, "quality: needs a value"},
    {"alpha after:someday", 13, "after: needs a date"},
    {"after:>=2026-01-01", 7, "after: needs a date"},
    {"published:2026-02-30", 11, "published: needs a date"},
    {"published:>=2026", 13, "published: needs a date"},
    {"published:>9999-12-31", 12, "years 1 to 9998"},
    {"published:<=9999-12-31", 13, "years 1 to 9998"},
    {"before:0001-01-01T00:00:00+01:00", 8, "years 1 to 9998"},
    /* Characters are counted, not bytes. */
    {"\xe6\x97\xa5\xe6\x9c\xac na\xc3\xafve )", 10, "never opened"},
    {"\xc2\xa0\xff\xe3\x80\x80 )", 5, "never opened"},
};

static void test_bad(void **state)
{
    (void)state;
    struct wb_arena arena = {0};
    struct wb_ask ask;
    char where[64];

    for (size_t i = 0; i < COUNT(bad_queries); i++) {
        assert_int_equal(wb_ask_parse(wb_slice_str(bad_queries[i].query), &test_options, &arena, &ask), WB_E_INVALID);
        assert_null(ask.root);
        snprintf(where, sizeof where, "at character %zu: ", bad_queries[i].character);
        if (!strstr(wb_error_message(), where) || !strstr(wb_error_message(), bad_queries[i].says))
            fail_msg("%s: %s, not %s%s", bad_queries[i].query, wb_error_message(), where, bad_queries[i].says);
        wb_arena_clear(&arena);
    }
    wb_arena_release(&arena);
}

/* Appends a text many times. */
static void repeat(struct wb_buf *out, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++)
        assert_int_equal(wb_buf_append_str(out, text), 0);
}

static void expect_limit(struct wb_buf *query, const char *says, size_t bad_at)
{
    struct wb_arena arena = {0};
    struct wb_ask ask;

    assert_int_equal(wb_ask_parse(wb_buf_slice(query), NULL, &arena, &ask), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), says));
    assert_non_null(strstr(wb_error_message(), "at character "));
    assert_int_equal(ask.bad_at, bad_at);
    wb_buf_clear(query);
    wb_arena_release(&arena);
}

static void expect_nodes(struct wb_buf *query, size_t nodes)
{
    struct wb_arena arena = {0};
    struct wb_ask ask;

    if (wb_ask_parse(wb_buf_slice(query), NULL, &arena, &ask) < 0)
        fail_msg("%s", wb_error_message());
    assert_int_equal(ask.node_count, nodes);
    wb_buf_clear(query);
    wb_arena_release(&arena);
}

static void test_limits(void **state)
{
    (void)state;
    struct wb_buf query = WB_BUF_INIT;

    repeat(&query, "(", WB_ASK_DEPTH_MAX);
    repeat(&query, "a", 1);
    repeat(&query, ")", WB_ASK_DEPTH_MAX);
    expect_nodes(&query, 1);
    repeat(&query, "(", 500);
    repeat(&query, "a", 1);
    repeat(&query, ")", 500);
    expect_limit(&query, "parentheses are open", WB_ASK_DEPTH_MAX);
    repeat(&query, "-(", 500);
    expect_limit(&query, "parentheses are open", 2 * WB_ASK_DEPTH_MAX + 1);
    repeat(&query, "title:(", 1);
    repeat(&query, "x(x(", 500);
    expect_limit(&query, "parentheses are open", 7 + 2 * (WB_ASK_DEPTH_MAX - 1) + 1);
    repeat(&query, "(", 5000);
    expect_limit(&query, "parentheses are open", WB_ASK_DEPTH_MAX);

    repeat(&query, "a ", WB_ASK_NODES_MAX - 1);
    expect_nodes(&query, WB_ASK_NODES_MAX);
    repeat(&query, "a ", WB_ASK_NODES_MAX + 1);
    expect_limit(&query, "parts", 2 * WB_ASK_NODES_MAX);
    repeat(&query, "-a OR ", 2000);
    repeat(&query, "a", 1);
    expect_nodes(&query, 4002);

    repeat(&query, "x", WB_ASK_BYTES_MAX);
    expect_nodes(&query, 1);
    repeat(&query, "x", WB_ASK_BYTES_MAX + 1);
    expect_limit(&query, "longer than", WB_ASK_BYTES_MAX);
    repeat(&query, "x(", WB_ASK_BYTES_MAX / 4);
    repeat(&query, "))", WB_ASK_BYTES_MAX / 8);
    expect_nodes(&query, 1);
    repeat(&query, "x(\"", WB_ASK_BYTES_MAX / 4);
    expect_limit(&query, "parentheses are open", 6 * WB_ASK_DEPTH_MAX + 1);
    wb_buf_release(&query);
}

static void test_places(void **state)
{
    (void)state;
    struct wb_arena arena = {0};
    struct wb_ask ask;

    /*                                          0123456789012345678901 */
    assert_int_equal(wb_ask_parse(WB_SLICE_LIT(" a -title:b* OR (\"c d\")"), NULL, &arena, &ask), 0);
    const struct wb_ask_node *list = ask.root->items[0], *minus = list->items[1], *phrase = ask.root->items[1];
    assert_int_equal(ask.root->begin, 1);
    assert_int_equal(ask.root->end, 22);
    assert_int_equal(list->end, 12);
    assert_int_equal(minus->begin, 3);
    assert_int_equal(minus->items[0]->begin, 4);
    assert_int_equal(minus->items[0]->end, 12);
    assert_int_equal(phrase->begin, 17);
    assert_int_equal(phrase->end, 22);
    wb_arena_release(&arena);
}

/* Every query in the tables of docs/query.md is one. */
static void test_manual(void **state)
{
    (void)state;
    struct wb_buf manual = WB_BUF_INIT;
    struct wb_arena arena = {0};
    struct wb_slice line;
    size_t queries = 0;
    char path[1024];

    snprintf(path, sizeof path, "%s/docs/query.md", test_source_root);
    assert_int_equal(wb_path_read(path, 1 << 20, &manual), 0);
    for (struct wb_slice rest = wb_buf_slice(&manual); wb_slice_next_line(&rest, &line);) {
        const char *end = line.len > 2 ? memchr(line.ptr + 2, '|', line.len - 2) : NULL, *at = line.ptr;
        if (!end || line.ptr[0] != '|')
            continue;
        while ((at = memchr(at, '`', (size_t)(end - at)))) {
            const char *close = memchr(at + 1, '`', (size_t)(end - at - 1));
            struct wb_ask ask;
            assert_non_null(close);
            if (wb_ask_parse(wb_slice(at + 1, (size_t)(close - at - 1)), NULL, &arena, &ask) < 0)
                fail_msg("%.*s: %s", WB_SLICE_ARG(line), wb_error_message());
            queries++;
            at = close + 1;
        }
    }
    assert_true(queries > 40);
    wb_buf_release(&manual);
    wb_arena_release(&arena);
}

/* Every allocation fails once. */
static void test_memory(void **state)
{
    (void)state;
    struct wb_buf query = WB_BUF_INIT, text = WB_BUF_INIT;
    size_t failed = 0;

    repeat(&query, "a b OR (c -(d OR title:\"e f\") a) a ", 300);
    for (size_t n = 0;; n++) {
        struct wb_arena arena = {0};
        struct wb_ask ask;
        alloc_fail_nth(n);
        int err = wb_ask_parse(wb_buf_slice(&query), NULL, &arena, &ask);
        if (err == 0)
            err = wb_ask_simplify(&ask, &arena);
        if (err == 0)
            err = wb_ask_print(ask.root, &text);
        bool done = !alloc_has_failed();
        alloc_fail_none();
        assert_int_equal(err, done ? 0 : WB_E_NOMEM);
        wb_arena_release(&arena);
        wb_buf_release(&text);
        if (done)
            break;
        failed++;
    }
    assert_true(failed > 10);
    wb_buf_release(&query);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),  cmocka_unit_test(test_bad),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_places), cmocka_unit_test(test_manual), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
