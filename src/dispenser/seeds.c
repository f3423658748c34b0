/*
 * seeds.c - reads seeds from the command line and from seed files, and makes plans for their sites. It never touches
 * the database.
 */
#include "dispenser/dispenser.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEEDS_BYTES_MAX = 1 << 30, PRIORITY_MAX = 1000 };

/* What a class says about the plan of each of its sites. */
struct wb_seed_class {
    char *name;
    int priority;
    int64_t delay_ms, budget;
};

/* Copies a text, so that it lives as long as the seeds. */
static int keep(struct wb_seeds *list, struct wb_slice text, struct wb_slice *kept_out)
{
    if (wb_grow(&list->mem, &list->mem_cap, list->mem_count + 1) < 0)
        return WB_E_NOMEM;
    char *copy = wb_strndup(text.ptr, text.len);
    if (!copy)
        return WB_E_NOMEM;
    list->mem[list->mem_count++] = copy;
    *kept_out = wb_slice(copy, text.len);
    return 0;
}

static int add_parsed(struct wb_seeds *list, const struct wb_url *url, const struct wb_site_plan *wanted)
{
    struct wb_buf key = WB_BUF_INIT;
    struct wb_slice href = wb_url_href(url);

    if (wb_grow(&list->plans, &list->plan_cap, list->count + 1) < 0 ||
        wb_grow(&list->seeds, &list->seed_cap, list->count + 1) < 0)
        return WB_E_NOMEM;
    struct wb_site_plan *plan = &list->plans[list->count];
    struct wb_seed *seed = &list->seeds[list->count];
    *plan = *wanted;
    *seed = (struct wb_seed){0};
    if (url->has_fragment)
        href.len = url->fragment_at - 1;
    int err = wb_url_key(url, &key);
    if (err == 0)
        err = keep(list, wb_key_site(wb_buf_slice(&key)), &plan->name);
    if (err == 0)
        err = keep(list, wb_url_scheme(url), &plan->scheme);
    if (err == 0)
        err = keep(list, href, &seed->url);
    wb_buf_release(&key);
    if (err == 0)
        list->count++;
    return err;
}

static int add_url(struct wb_seeds *list, struct wb_slice text, const struct wb_site_plan *wanted)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf whole = WB_BUF_INIT;
    int err = 0;

    bool scheme = false;
    for (size_t i = 0; i + 2 < text.len && !scheme; i++)
        scheme = memcmp(text.ptr + i, "://", 3) == 0;
    if (!scheme && memchr(text.ptr, '@', text.len))
        return wb_fail(WB_E_INVALID, "'%.*s' is not an http or https URL", WB_SLICE_ARG(text));
    if (!scheme) {
        err = wb_buf_append_str(&whole, "https://");
        if (err == 0)
            err = wb_buf_append_slice(&whole, text);
        text = wb_buf_slice(&whole);
    }
    if (err == 0)
        err = wb_url_parse(text, NULL, &url);
    if (err == 0 && (!wb_url_is_http(&url) || wb_url_host(&url).len == 0))
        err = wb_fail(WB_E_INVALID, "'%.*s' is not an http or https URL", WB_SLICE_ARG(text));
    if (err == 0)
        err = add_parsed(list, &url, wanted);
    wb_buf_release(&whole);
    wb_url_release(&url);
    return err == WB_E_PROTO ? WB_E_INVALID : err;
}

static struct wb_site_plan default_plan(void)
{
    return (struct wb_site_plan){.class_name = WB_SLICE_EMPTY, .priority = INT_MIN, .delay_ms = -2, .budget = -2,
                                 .revisit = true};
}

int wb_seeds_add(struct wb_seeds *list, struct wb_slice url)
{
    struct wb_site_plan wanted = default_plan();

    return add_url(list, url, &wanted);
}

/* ---- lines ---------------------------------------------------------------------------------------- */

static struct wb_slice next_word(struct wb_slice *rest)
{
    *rest = wb_slice_trim(*rest);
    size_t len = 0;
    while (len < rest->len && rest->ptr[len] != ' ' && rest->ptr[len] != '\t')
        len++;
    struct wb_slice word = wb_slice(rest->ptr, len);
    *rest = wb_slice(rest->ptr + len, rest->len - len);
    return word;
}

/* Parses seconds such as "2.5"; with units, also "10m", "6h", "1d". */
static bool parse_time(struct wb_slice text, bool units, int64_t *ms_out)
{
    static const struct {
        char letter;
        double seconds;
    } table[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', WB_DAY_SECONDS}, {'w', 7 * WB_DAY_SECONDS}};
    char copy[32], *end = NULL;
    double unit = 1;

    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    double number = strtod(copy, &end);
    for (size_t i = 0; units && end > copy && i < sizeof table / sizeof *table; i++)
        if (*end == table[i].letter && !end[1]) {
            unit = table[i].seconds;
            end++;
        }
    double seconds = number * unit;
    if (*end || !(seconds >= 0) || seconds > (units ? 1e9 : 1e6))
        return false;
    *ms_out = (int64_t)(seconds * 1000);
    return true;
}

static const struct wb_seed_class *find_class(const struct wb_seeds *list, struct wb_slice name)
{
    for (size_t i = 0; i < list->class_count; i++)
        if (wb_slice_equal(wb_slice_str(list->classes[i].name), name))
            return &list->classes[i];
    return NULL;
}

/* Applies one setting, such as delay=20, to a plan. */
static int apply_setting(struct wb_seeds *list, struct wb_slice word, struct wb_site_plan *wanted)
{
    static const struct wb_seed_class small = {"small", -10, 20000, -2};
    const char *equals = memchr(word.ptr, '=', word.len);
    struct wb_slice name, value;
    uint64_t number;

    if (!equals)
        return wb_fail(WB_E_INVALID, "'%.*s' is neither a URL nor a setting such as delay=20", WB_SLICE_ARG(word));
    name = wb_slice(word.ptr, (size_t)(equals - word.ptr));
    value = wb_slice(equals + 1, word.len - name.len - 1);
    bool negative = value.len && value.ptr[0] == '-';
    struct wb_slice digits = negative ? wb_slice(value.ptr + 1, value.len - 1) : value;
    if (wb_slice_equal(name, WB_SLICE_LIT("delay"))) {
        if (parse_time(value, false, &wanted->delay_ms))
            return 0;
    } else if (wb_slice_equal(name, WB_SLICE_LIT("budget"))) {
        if (!negative && wb_slice_to_u64(digits, &number) && number < INT64_MAX) {
            wanted->budget = (int64_t)number;
            return 0;
        }
    } else if (wb_slice_equal(name, WB_SLICE_LIT("priority"))) {
        if (wb_slice_to_u64(digits, &number) && number <= PRIORITY_MAX) {
            wanted->priority = negative ? -(int)number : (int)number;
            return 0;
        }
    } else if (wb_slice_equal(name, WB_SLICE_LIT("class"))) {
        const struct wb_seed_class *class = find_class(list, value);
        if (!class && wb_slice_equal(value, WB_SLICE_LIT("small")))
            class = &small;
        if (class) {
            wanted->priority = class->priority;
            wanted->delay_ms = class->delay_ms;
            wanted->budget = class->budget;
            return keep(list, value, &wanted->class_name);
        }
    }
    return wb_fail(WB_E_INVALID,
                   "'%.*s': settings are delay=SECONDS, budget=PAGES, priority=-1000..1000 "
                   "and class=NAME of a class",
                   WB_SLICE_ARG(word));
}

/* Applies a setting that only a class can have. Returns 1 if the word was one, 0 if it is some other setting. */
static int apply_class_setting(struct wb_slice word, struct wb_site_class *class)
{
    uint64_t number;
    bool fetches = wb_slice_starts(word, WB_SLICE_LIT("fetches=")), min = wb_slice_starts(word, WB_SLICE_LIT("min="));

    if (!fetches && !min && !wb_slice_starts(word, WB_SLICE_LIT("max=")))
        return 0;
    size_t at = fetches ? 8 : 4;
    struct wb_slice value = wb_slice(word.ptr + at, word.len - at);
    if (fetches && wb_slice_to_u64(value, &number) && number < INT64_MAX) {
        class->fetches = (int64_t)number;
        return 1;
    }
    if (!fetches && parse_time(value, true, min ? &class->min_ms : &class->max_ms))
        return 1;
    return wb_fail(WB_E_INVALID,
                   "'%.*s': a class may have fetches=NUMBER, and min= and max= of a time "
                   "such as 90, 10m, 6h or 1d",
                   WB_SLICE_ARG(word));
}

/* Adds a class, or redefines it. */
static int keep_class(struct wb_seeds *list, struct wb_slice name, const struct wb_site_plan *wanted,
                      const struct wb_site_class *site_class)
{
    const struct wb_seed_class *found = find_class(list, name);
    size_t at = found ? (size_t)(found - list->classes) : list->class_count;

    if (!found) {
        if (wb_grow(&list->classes, &list->class_cap, at + 1) < 0 ||
            wb_grow(&list->site_classes, &list->site_class_cap, at + 1) < 0)
            return WB_E_NOMEM;
        list->classes[at].name = wb_strndup(name.ptr, name.len);
        if (!list->classes[at].name)
            return WB_E_NOMEM;
        list->class_count++;
    }
    list->classes[at] = (struct wb_seed_class){list->classes[at].name, wanted->priority, wanted->delay_ms,
                                               wanted->budget};
    list->site_classes[at] = *site_class;
    list->site_classes[at].name = wb_slice_str(list->classes[at].name);
    list->site_classes[at].delay_ms = wanted->delay_ms >= 0 ? wanted->delay_ms : -1;
    return 0;
}

static int add_class(struct wb_seeds *list, struct wb_slice rest)
{
    struct wb_slice name = next_word(&rest);
    struct wb_site_plan wanted = default_plan();
    struct wb_site_class class = {.fetches = -1, .delay_ms = -1};

    if (!name.len)
        return wb_fail(WB_E_INVALID, "a class needs a name");
    for (struct wb_slice word = next_word(&rest); word.len && word.ptr[0] != '#'; word = next_word(&rest)) {
        int err = apply_class_setting(word, &class);
        if (err == 0)
            err = apply_setting(list, word, &wanted);
        if (err < 0)
            return err;
    }
    if (class.max_ms && class.min_ms > class.max_ms)
        return wb_fail(WB_E_INVALID, "class %.*s: min is more than max", WB_SLICE_ARG(name));
    return keep_class(list, name, &wanted, &class);
}

int wb_seeds_line(struct wb_seeds *list, struct wb_slice line)
{
    struct wb_slice rest = wb_slice_trim(line);
    struct wb_site_plan wanted = default_plan();

    if (!rest.len || rest.ptr[0] == '#')
        return 0;
    struct wb_slice url = next_word(&rest);
    if (wb_slice_equal(url, WB_SLICE_LIT("class")))
        return add_class(list, rest);
    for (struct wb_slice word = next_word(&rest); word.len && word.ptr[0] != '#'; word = next_word(&rest)) {
        int err = apply_setting(list, word, &wanted);
        if (err < 0)
            return err;
    }
    return add_url(list, url, &wanted);
}

static int read_input(const char *path, struct wb_buf *text)
{
    if (strcmp(path, "-") != 0)
        return wb_path_read(path, SEEDS_BYTES_MAX, text);
    for (;;) {
        int err = wb_buf_reserve(text, 1 << 16);
        if (err < 0)
            return err;
        ssize_t n = read(STDIN_FILENO, text->ptr + text->len, 1 << 16);
        if (n < 0)
            return wb_fail_errno("standard input");
        if (n == 0)
            return 0;
        text->len += (size_t)n;
        if (text->len > SEEDS_BYTES_MAX)
            return wb_fail(WB_E_LIMIT, "standard input: more than %d bytes of seeds", SEEDS_BYTES_MAX);
    }
}

int wb_seeds_read(struct wb_seeds *list, const char *path, wb_seeds_warn warn, void *context)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_slice rest;
    char message[WB_ERROR_MESSAGE_MAX + 256];
    unsigned long number = 0;
    int err = read_input(path, &text);

    rest = wb_buf_slice(&text);
    if (err == 0 && wb_slice_starts(rest, WB_SLICE_LIT("\xef\xbb\xbf")))
        rest = wb_slice(rest.ptr + 3, rest.len - 3);
    while (err == 0 && rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        number++;
        err = wb_seeds_line(list, wb_slice(rest.ptr, len));
        if (err == WB_E_INVALID) {
            snprintf(message, sizeof message, "%s:%lu: %s", path, number, wb_error_message());
            warn(context, message);
            err = 0;
        }
        rest = wb_slice(rest.ptr + len + (end != NULL), rest.len - len - (end != NULL));
    }
    wb_buf_release(&text);
    return err;
}

void wb_seeds_release(struct wb_seeds *list)
{
    for (size_t i = 0; i < list->mem_count; i++)
        wb_free(list->mem[i]);
    for (size_t i = 0; i < list->class_count; i++)
        wb_free(list->classes[i].name);
    wb_free(list->mem);
    wb_free(list->classes);
    wb_free(list->site_classes);
    wb_free(list->plans);
    wb_free(list->seeds);
    *list = (struct wb_seeds){0};
}
