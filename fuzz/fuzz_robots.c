/*
 * fuzz_robots.c - arbitrary bytes as robots.txt: its decisions are consistent.
 *
 * The input is a URL, an agent and a robots.txt, with a NUL between them.
 *   - asking twice, or parsing twice, gives the same decision
 *   - the rule that decides is part of the text, and its line number is that of a line
 *   - that rule on its own decides the same
 *   - if all rules are for every agent, some rule decides if and only if one of them does on its own
 */
#include "base/check.h"
#include "fetch/fetch_probe.h"

#define LINES_MAX 50

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct wb_slice take_part(struct wb_slice *left)
{
    const char *nul = left->len ? memchr(left->ptr, 0, left->len) : NULL;
    struct wb_slice part = wb_slice(left->ptr, nul ? (size_t)(nul - left->ptr) : left->len);

    *left = nul ? wb_slice(nul + 1, left->len - part.len - 1) : WB_SLICE_EMPTY;
    return part;
}

static struct wb_robots *parse(struct wb_slice text, struct wb_slice agent)
{
    struct wb_robots *robots;

    WB_CHECK(wb_robots_parse(text, agent, &robots) == 0);
    WB_CHECK(wb_robots_bytes(robots) < 4096 + 200 * text.len);
    WB_CHECK(wb_robots_delay_ms(robots) >= -1);
    return robots;
}

/* The verdict of one group, for every agent, with these lines. */
static bool decides(struct wb_slice lines, struct wb_slice url, bool *allowed_out)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_robots_verdict verdict;

    WB_CHECK(wb_buf_append_str(&text, "User-agent: *\n") == 0 && wb_buf_append_slice(&text, lines) == 0);
    struct wb_robots *robots = parse(wb_buf_slice(&text), WB_SLICE_LIT("webbase"));
    wb_robots_check(robots, url, &verdict);
    *allowed_out = verdict.allowed;
    wb_robots_free(robots);
    wb_buf_release(&text);
    return verdict.line != 0;
}

static void check_verdict(struct wb_slice text, struct wb_slice url, const struct wb_robots *robots)
{
    struct wb_robots_verdict a, b;
    bool allowed;

    wb_robots_check(robots, url, &a);
    wb_robots_check(robots, url, &b);
    WB_CHECK(a.allowed == b.allowed && a.line == b.line && wb_slice_equal(a.rule, b.rule));
    WB_CHECK(a.line <= text.len && (a.line == 0) == (a.rule.len == 0));
    WB_CHECK(a.allowed || a.line);
    if (a.line == 0)
        return;
    WB_CHECK(memmem(text.ptr, text.len, a.rule.ptr, a.rule.len));
    WB_CHECK(decides(a.rule, url, &allowed) && allowed == a.allowed);
}

/* Compares each rule on its own with all of them together. */
static void check_each(struct wb_slice text, struct wb_slice url)
{
    bool any = false, allowed, some_allowed = false, some_not = false;
    size_t from = 0, lines = 0;

    for (size_t i = 0; i < text.len; i++) {
        lines += text.ptr[i] == '\n' || text.ptr[i] == '\r';
        if (wb_ascii_lower(text.ptr[i]) == 'u')
            return; /* may be a line that starts another group */
    }
    if (lines > LINES_MAX || text.len > 4000)
        return;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.ptr[i] != '\n' && text.ptr[i] != '\r')
            continue;
        if (decides(wb_slice(text.ptr + from, i - from), url, &allowed)) {
            any = true;
            some_allowed = some_allowed || allowed;
            some_not = some_not || !allowed;
        }
        from = i + 1;
    }
    WB_CHECK(decides(text, url, &allowed) == any);
    WB_CHECK(!any || (allowed ? some_allowed : some_not));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const urls[] = {"/", "https://h/a/b.html?c=d", "/a/b", "/%61*%24"};
    struct wb_slice text = wb_slice(size ? (const char *)data : "", size), sitemap;
    struct wb_slice url = take_part(&text), agent = take_part(&text);

    if (wb_slice_starts(text, WB_SLICE_LIT("\xff\xfe")) || wb_slice_starts(text, WB_SLICE_LIT("\xfe\xff"))) {
        wb_robots_free(parse(text, agent)); /* UTF-16: after decoding, its rules are not part of the input */
        return 0;
    }
    struct wb_robots *robots = parse(text, agent);

    check_verdict(text, url, robots);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        check_verdict(text, wb_slice_str(urls[i]), robots);
    for (size_t i = 0; wb_robots_sitemap(robots, i, &sitemap); i++)
        WB_CHECK(sitemap.len && memmem(text.ptr, text.len, sitemap.ptr, sitemap.len));
    wb_robots_free(robots);
    wb_robots_free(parse(text, WB_SLICE_LIT("*")));
    check_each(text, url);
    return 0;
}
