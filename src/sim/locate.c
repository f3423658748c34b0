/*
 * locate.c - writes and reads the addresses of pages.
 *
 * The address of a page contains its number. To find a page, we read the number, write the
 * address of that page, and compare: a page therefore has exactly one address. It never says
 * whether the page exists now (plan.c).
 */
#include "sim/locate.h"
#include "sim/chance.h"
#include "sim/prose.h"

static const char *const sections[] = {"news",  "articles", "docs", "people",   "projects",
                                       "notes", "events",   "shop", "research", "media"};

#define SECTIONS (sizeof sections / sizeof *sections)

enum style { STYLE_HTML, STYLE_BARE, STYLE_FOLDER, STYLE_QUERY, STYLE_CGI, STYLE_PRINT };

/* Chooses the style of a page's address. Pages that robots.txt closes have styles that its rules match. */
static enum style path_style(const struct wb_world *world, const struct wb_plan *plan, uint64_t r)
{
    switch (plan->kind) {
    case WB_KIND_REPEAT:
        return STYLE_FOLDER;
    case WB_KIND_CALENDAR:
    case WB_KIND_SESSION:
    case WB_KIND_SOFT404:
    case WB_KIND_CHAIN:
    case WB_KIND_LONG_CHAIN:
    case WB_KIND_LOOP:
        return STYLE_BARE;
    default:
        break;
    }
    if (plan->open_door || plan->page >= WB_PLAN_NEW)
        return STYLE_HTML;
    bool groups = world->site[plan->site].rules == WB_RULES_GROUPS;
    if (!plan->allowed && groups && r % 3 > 0)
        return r % 3 == 1 ? STYLE_CGI : STYLE_PRINT;
    if (!plan->allowed && world->site[plan->site].rules != WB_RULES_FAILING)
        return STYLE_HTML;
    return r % 10 < 5 ? STYLE_HTML : r % 10 < 7 ? STYLE_BARE : r % 10 < 9 ? STYLE_FOLDER : STYLE_QUERY;
}

static void put_section(const struct wb_world *world, const struct wb_plan *plan, enum style style, uint64_t r,
                        struct wb_pen *pen)
{
    bool closed = !plan->allowed && style == STYLE_HTML && world->site[plan->site].rules != WB_RULES_FAILING;

    if (closed)
        wb_pen_str(pen, "/private/");
    else if (plan->open_door)
        wb_pen_str(pen, "/private/open/");
    else {
        wb_pen_char(pen, '/');
        wb_pen_str(pen, sections[(r >> 8) % SECTIONS]);
        wb_pen_char(pen, '/');
    }
}

static void put_number(uint32_t page, struct wb_pen *pen)
{
    if (page >= WB_PLAN_NEW)
        wb_pen_char(pen, 'n');
    wb_pen_u64(pen, page >= WB_PLAN_NEW ? page - WB_PLAN_NEW : page);
}

static void put_list(const struct wb_plan *plan, struct wb_pen *pen)
{
    bool sites = plan->page >= WB_PLAN_SITES;
    uint32_t number = plan->page - (sites ? WB_PLAN_SITES : WB_PLAN_LATEST);

    wb_pen_str(pen, sites ? "/sites/" : "/latest/");
    if (sites)
        wb_pen_u64(pen, number + 1); /* the root is the first list */
    else if (number > 0)
        wb_pen_u64(pen, number - 1);
}

void wb_locate_path(const struct wb_world *world, const struct wb_plan *plan, struct wb_pen *pen)
{
    if (plan->page == 0) {
        wb_pen_char(pen, '/');
        return;
    }
    if (plan->page >= WB_PLAN_LATEST) {
        put_list(plan, pen);
        return;
    }
    uint64_t r = wb_chance(world->seed, plan->site, plan->page, WB_CHANCE_PATH);
    enum style style = path_style(world, plan, r);
    put_section(world, plan, style, r, pen);
    if (style == STYLE_QUERY || style == STYLE_PRINT) {
        wb_pen_str(pen, style == STYLE_QUERY ? "view?id=" : "print?id=");
        put_number(plan->page, pen);
        return;
    }
    wb_pen_slice(pen, wb_prose_noun((uint32_t)(r >> 16)));
    wb_pen_char(pen, '-');
    wb_pen_slice(pen, wb_prose_noun((uint32_t)(r >> 40)));
    wb_pen_char(pen, '-');
    put_number(plan->page, pen);
    wb_pen_str(pen, style == STYLE_HTML ? ".html" : style == STYLE_FOLDER ? "/" : style == STYLE_CGI ? ".cgi" : "");
}

void wb_locate_url(const struct wb_world *world, const struct wb_plan *plan, struct wb_pen *pen)
{
    wb_pen_str(pen, "http://");
    wb_world_host(world, plan->site, false, pen);
    wb_locate_path(world, plan, pen);
}

/* ---- from addresses to pages -------------------------------------------------------------------------- */

/* Reads the digits at `at`, at most nine of them. */
static bool read_digits(struct wb_slice s, size_t at, uint32_t *number_out)
{
    size_t end = at;
    uint32_t number = 0;

    while (end < s.len && wb_ascii_is_digit(s.ptr[end]) && end - at < 10)
        number = number * 10 + (uint32_t)(s.ptr[end++] - '0');
    *number_out = number;
    return end > at && end - at <= 9;
}

/* Reads the number after "-" or "?id=", which is where the address of a page has it. */
static bool read_number(struct wb_slice target, uint32_t *page_out)
{
    for (size_t i = 0; i + 1 < target.len; i++) {
        size_t at = i + 1;
        if (target.ptr[i] == '?') {
            if (!wb_slice_starts(wb_slice(target.ptr + at, target.len - at), WB_SLICE_LIT("id=")))
                return false;
            at += 3;
        } else if (target.ptr[i] != '-')
            continue;
        bool newborn =
            at < target.len && target.ptr[at] == 'n' && at + 1 < target.len && wb_ascii_is_digit(target.ptr[at + 1]);
        if (newborn || (at < target.len && wb_ascii_is_digit(target.ptr[at]))) {
            bool ok = read_digits(target, at + newborn, page_out);
            *page_out += newborn ? WB_PLAN_NEW : 0;
            return ok && *page_out < WB_PLAN_LATEST;
        }
    }
    return false;
}

/* Finds the number of a page in a target: "/" is the root, and lists have theirs in /latest/ and /sites/. */
static bool find_number(struct wb_slice target, uint32_t *page_out)
{
    struct wb_slice latest = WB_SLICE_LIT("/latest/"), sites = WB_SLICE_LIT("/sites/");
    uint32_t number = 0;

    *page_out = 0;
    if (target.len <= 1 || target.ptr[1] == '?')
        return target.len >= 1 && target.ptr[0] == '/';
    if (wb_slice_starts(target, latest) || wb_slice_equal(target, WB_SLICE_LIT("/latest"))) {
        bool numbered = read_digits(target, latest.len, &number);
        *page_out = WB_PLAN_LATEST + (numbered ? number + 1 : 0);
        return *page_out < WB_PLAN_SITES;
    }
    if (wb_slice_starts(target, sites)) {
        *page_out = WB_PLAN_SITES + 1;
        if (!read_digits(target, sites.len, &number) || number < 2)
            return false;
        *page_out = WB_PLAN_SITES + number - 1;
        return *page_out < WB_PLAN_NONE;
    }
    return read_number(target, page_out);
}

enum wb_locate_result wb_locate_find(const struct wb_world *world, uint32_t site, struct wb_slice target,
                                     struct wb_buf *scratch, struct wb_plan *plan_out, struct wb_slice *rest_out)
{
    uint32_t page;

    *rest_out = WB_SLICE_EMPTY;
    *plan_out = (struct wb_plan){.site = site, .page = WB_PLAN_NONE};
    if (!find_number(target, &page) || !wb_plan_make(world, site, page, plan_out))
        return WB_LOCATE_NOTHING;
    wb_buf_clear(scratch);
    struct wb_pen pen = wb_pen(scratch);
    wb_locate_path(world, plan_out, &pen);
    struct wb_slice path = wb_buf_slice(scratch);
    if (pen.err < 0)
        return WB_LOCATE_NOTHING;
    if (wb_slice_starts(target, path)) {
        *rest_out = wb_slice(target.ptr + path.len, target.len - path.len);
        return rest_out->len ? WB_LOCATE_BELOW : WB_LOCATE_PAGE;
    }
    if (path.ptr[path.len - 1] == '/' && wb_slice_equal(target, wb_slice(path.ptr, path.len - 1)))
        return WB_LOCATE_SLASH;
    return WB_LOCATE_NOTHING;
}

uint32_t wb_locate_host(const struct wb_world *world, struct wb_slice host, bool *alias_out, uint32_t *raw_out)
{
    uint32_t number = 0;

    *alias_out = false;
    *raw_out = 0;
    if (host.len < 2 || !wb_ascii_is_digit(host.ptr[1]) || !read_digits(host, 1, &number))
        return 0;
    size_t end = 1;
    while (end < host.len && wb_ascii_is_digit(host.ptr[end]))
        end++;
    struct wb_slice local = WB_SLICE_LIT(".localhost"), tail = wb_slice(host.ptr + end, host.len - end);
    if (!wb_slice_starts_nocase(tail, local) || (tail.len > local.len && tail.ptr[local.len] != ':'))
        return 0;
    char letter = wb_ascii_lower(host.ptr[0]);
    if (letter == 'r')
        *raw_out = number;
    bool known = number >= 1 && number <= world->sites;
    *alias_out = known && letter == 'a' && world->site[number].alias;
    return known && (letter == 's' || *alias_out) ? number : 0;
}
