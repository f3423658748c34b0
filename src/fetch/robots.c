/*
 * robots.c - reads a robots.txt (RFC 9309): its lines and groups, and which of them concern us.
 *
 *   line -> key and value -> group (one or more User-agent lines, then rules)
 *                            names us | is for everybody | is for others
 *
 * Groups that name us are merged; if there is none, those for everybody are. Lines that are neither User-agent nor
 * Allow nor Disallow do not end a group. The parser is as tolerant of careless writing as that of Google (whose
 * authors wrote RFC 9309), and no more. It never fetches: what a missing or unreachable robots.txt means is up to the
 * crawler.
 */
#include "fetch/fetch.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "fetch/fetch_probe.h"
#include "fetch/robots_path.h"
#include "fetch/robots_rules.h"
#include "page/page.h"

#define SITEMAPS_MAX 1000u
#define DELAY_MS_MAX WB_DAY_MS /* a longer crawl-delay counts as a day */
#define MAGIC 0x726f626fu

struct wb_robots {
    uint32_t magic;
    struct wb_robots_rules *rules;
    struct wb_buf sitemaps;     /* URLs, one after another */
    struct wb_buf sitemap_ends; /* the offset at which each of them ends, as 32 bits */
    int64_t delay_ms;
};

/* Whom a group is for. */
struct robots_audience {
    bool us, all;
};

/* A rule, as long as we do not know whether any group names us. */
struct robots_draft {
    struct wb_robots_line line;
    struct robots_audience audience;
};

struct robots_reader {
    struct wb_slice agent;       /* our product token */
    struct robots_audience group; /* that is being read */
    bool rules_seen;             /* in this group: the next User-agent line starts another one */
    bool named;                  /* some group names us */
    WB_VEC(struct robots_draft) drafts;
    int64_t delay_us_ms, delay_all_ms; /* -1: none */
    struct wb_robots *robots;    /* sitemaps go there at once */
};

/* ---- lines ------------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct wb_slice strip_line(struct wb_slice line)
{
    if (line.len > WB_ROBOTS_LINE_MAX)
        line.len = WB_ROBOTS_LINE_MAX;
    const char *comment = line.len ? memchr(line.ptr, '#', line.len) : NULL;
    if (comment)
        line.len = (size_t)(comment - line.ptr);
    return wb_slice_trim(line);
}

/* Splits "key: value". Without a colon, "key value" is accepted if it is exactly two words. */
static bool split_line(struct wb_slice line, struct wb_slice *key_out, struct wb_slice *value_out)
{
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
    size_t key = 0;

    if (colon) {
        key = (size_t)(colon - line.ptr);
        *key_out = wb_slice_trim(wb_slice(line.ptr, key));
        *value_out = wb_slice_trim(wb_slice(colon + 1, line.len - key - 1));
        return key_out->len > 0;
    }
    while (key < line.len && !is_blank(line.ptr[key]))
        key++;
    *key_out = wb_slice(line.ptr, key);
    *value_out = wb_slice_trim(wb_slice(line.ptr + key, line.len - key));
    for (size_t i = 0; i < value_out->len; i++)
        if (is_blank(value_out->ptr[i]))
            return false;
    return key > 0 && value_out->len > 0;
}

enum robots_key { KEY_OTHER, KEY_AGENT, KEY_ALLOW, KEY_DISALLOW, KEY_SITEMAP, KEY_DELAY };

/* A line whose key starts with one of these has that key. Frequent misspellings count. */
static const struct {
    const char *start;
    enum robots_key key;
} keys[] = {
    {"user-agent", KEY_AGENT},   {"useragent", KEY_AGENT},    {"user agent", KEY_AGENT},
    {"allow", KEY_ALLOW},        {"disallow", KEY_DISALLOW},  {"dissallow", KEY_DISALLOW},
    {"dissalow", KEY_DISALLOW},  {"disalow", KEY_DISALLOW},   {"diasllow", KEY_DISALLOW},
    {"disallaw", KEY_DISALLOW},  {"sitemap", KEY_SITEMAP},    {"site-map", KEY_SITEMAP},
    {"crawl-delay", KEY_DELAY},
};

static enum robots_key key_of(struct wb_slice name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (wb_slice_starts_nocase(name, wb_slice_str(keys[i].start)))
            return keys[i].key;
    return KEY_OTHER;
}

/* ---- groups ----------------------------------------------------------------------------------- */

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/*
 * A group is named by the product token at the start of the value. According to the standard, tokens have no digits. An
 * agent whose name has some is meant if the whole word is its name.
 */
static bool names_agent(struct wb_slice value, struct wb_slice agent)
{
    struct wb_slice token = wb_slice(value.ptr, 0);

    while (token.len < value.len && is_token_char(value.ptr[token.len]))
        token.len++;
    return agent.len && (wb_slice_equal_nocase(token, agent) || wb_slice_equal_nocase(wb_http_agent_token(value),
                                                                                      agent));
}

static void read_agent(struct robots_reader *r, struct wb_slice value)
{
    if (r->rules_seen) {
        r->group = (struct robots_audience){false, false};
        r->rules_seen = false;
    }
    if (value.len && value.ptr[0] == '*' && (value.len == 1 || is_blank(value.ptr[1]))) {
        r->group.all = true;
    } else if (names_agent(value, r->agent)) {
        r->group.us = true;
        r->named = true;
    }
}

static int read_rule(struct robots_reader *r, const struct wb_robots_line *line)
{
    r->rules_seen = true;
    if ((!r->group.us && !r->group.all) || line->value.len == 0)
        return 0;
    return wb_vec_push(&r->drafts, (struct robots_draft){*line, r->group});
}

/* Reads seconds with a fraction, as ms; -1 if there is no number. */
static int64_t parse_delay(struct wb_slice value)
{
    int64_t ms = 0, unit = 1000;
    bool digits = false, fraction = false;

    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        digits = true;
        if (fraction) {
            unit /= 10;
            ms += (c - '0') * unit;
        } else {
            ms = ms * 10 + (c - '0') * unit;
        }
        if (ms > DELAY_MS_MAX)
            return DELAY_MS_MAX;
    }
    return digits ? ms : -1;
}

/* If there are several, the longest counts. */
static void read_delay(struct robots_reader *r, struct wb_slice value)
{
    int64_t ms = parse_delay(value);

    if (r->group.us && ms > r->delay_us_ms)
        r->delay_us_ms = ms;
    if (r->group.all && ms > r->delay_all_ms)
        r->delay_all_ms = ms;
}

static int read_sitemap(struct wb_robots *robots, struct wb_slice value)
{
    char end[4];

    if (value.len == 0 || robots->sitemap_ends.len / sizeof end == SITEMAPS_MAX)
        return 0;
    int err = wb_buf_append_slice(&robots->sitemaps, value);
    wb_put32(end, (uint32_t)robots->sitemaps.len);
    return err < 0 ? err : wb_buf_append(&robots->sitemap_ends, end, sizeof end);
}

static int read_line(struct robots_reader *r, struct wb_slice text, uint32_t number)
{
    struct wb_robots_line line = {.text = strip_line(text), .number = number};
    struct wb_slice key;

    if (!split_line(line.text, &key, &line.value))
        return 0;
    switch (key_of(key)) {
    case KEY_AGENT:
        read_agent(r, line.value);
        return 0;
    case KEY_ALLOW:
        line.allow = true;
        return read_rule(r, &line);
    case KEY_DISALLOW:
        return read_rule(r, &line);
    case KEY_SITEMAP:
        return read_sitemap(r->robots, line.value);
    case KEY_DELAY:
        read_delay(r, line.value);
        return 0;
    default:
        return 0;
    }
}

/* ---- the whole file -------------------------------------------------------------------------------- */

/* Keeps the rules that concern us, in a form in which they can be searched. */
static int keep_rules(struct robots_reader *r)
{
    struct wb_robots_line *lines = wb_alloc((r->drafts.count + 1) * sizeof *lines);
    size_t count = 0;

    if (!lines)
        return WB_E_NOMEM;
    for (size_t i = 0; i < r->drafts.count; i++) {
        const struct robots_draft *draft = &r->drafts.items[i];
        if (r->named ? draft->audience.us : draft->audience.all)
            lines[count++] = draft->line;
    }
    int err = wb_robots_rules_build(lines, count, &r->robots->rules);
    r->robots->delay_ms = r->named ? r->delay_us_ms : r->delay_all_ms;
    wb_free(lines);
    return err;
}

/* RFC 9309 requires UTF-8. But if a byte order mark shows that a file is UTF-16, read that, too. */
static int decode_utf16(struct wb_slice *text, struct wb_buf *mem)
{
    bool big_endian = wb_slice_starts(*text, WB_SLICE_LIT("\xfe\xff"));

    if (!big_endian && !wb_slice_starts(*text, WB_SLICE_LIT("\xff\xfe")))
        return 0;
    int err = wb_utf8_from_utf16(*text, big_endian, WB_ROBOTS_BYTES_MAX, mem);
    if (err == 0)
        *text = wb_buf_slice(mem);
    return err;
}

int wb_robots_parse(struct wb_slice text, struct wb_slice agent, struct wb_robots **robots_out)
{
    struct wb_robots *robots = wb_alloc_zero(1, sizeof *robots);
    struct wb_buf mem = WB_BUF_INIT;
    struct robots_reader r = {.agent = wb_http_agent_token(agent), .delay_us_ms = -1, .delay_all_ms = -1,
                              .robots = robots};
    struct wb_slice line;
    size_t at = 0;
    int err = 0;

    *robots_out = NULL;
    if (!robots)
        return WB_E_NOMEM;
    robots->magic = MAGIC;
    if (text.len > WB_ROBOTS_BYTES_MAX)
        text.len = WB_ROBOTS_BYTES_MAX;
    err = decode_utf16(&text, &mem);
    while (at < text.len && at < 3 && text.ptr[at] == "\xef\xbb\xbf"[at])
        at++; /* skip a byte order mark, or what is left of one */
    if (at)
        text = wb_slice(text.ptr + at, text.len - at);
    for (uint32_t number = 1; err == 0 && wb_slice_next_text_line(&text, &line); number++)
        err = read_line(&r, line, number);
    if (err == 0)
        err = keep_rules(&r);
    if (err < 0)
        goto done;
    wb_buf_trim(&robots->sitemaps, 0);
    wb_buf_trim(&robots->sitemap_ends, 0);
    *robots_out = robots;
    robots = NULL;
done:
    wb_vec_release(&r.drafts);
    wb_buf_release(&mem);
    wb_robots_free(robots);
    return err;
}

void wb_robots_free(struct wb_robots *robots)
{
    if (!robots)
        return;
    WB_CHECK(robots->magic == MAGIC);
    wb_robots_rules_free(robots->rules);
    wb_buf_release(&robots->sitemaps);
    wb_buf_release(&robots->sitemap_ends);
    wb_free(robots);
}

void wb_robots_check(const struct wb_robots *robots, struct wb_slice url, struct wb_robots_verdict *verdict_out)
{
    WB_CHECK(robots->magic == MAGIC);
    *verdict_out = (struct wb_robots_verdict){true, 0, WB_SLICE_EMPTY};
    if (wb_slice_equal(wb_robots_path_of(url), WB_SLICE_LIT("/robots.txt")))
        return;
    wb_robots_rules_find(robots->rules, url, &verdict_out->allowed, &verdict_out->line, &verdict_out->rule);
}

int64_t wb_robots_delay_ms(const struct wb_robots *robots)
{
    return robots->delay_ms;
}

bool wb_robots_sitemap(const struct wb_robots *robots, size_t i, struct wb_slice *url_out)
{
    const char *ends = robots->sitemap_ends.ptr;

    *url_out = WB_SLICE_EMPTY;
    if (i >= robots->sitemap_ends.len / 4)
        return false;
    uint32_t from = i ? wb_get32(ends + 4 * i - 4) : 0;
    *url_out = wb_slice(robots->sitemaps.ptr + from, wb_get32(ends + 4 * i) - from);
    return true;
}

size_t wb_robots_bytes(const struct wb_robots *robots)
{
    return sizeof *robots + robots->sitemaps.cap + robots->sitemap_ends.cap + wb_robots_rules_bytes(robots->rules);
}
