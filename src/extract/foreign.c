/*
 * foreign.c - which modules of users there are, and what guests say about a page.
 *
 * The modules are those of the process, because it has one repository, and extractors are made in many places of it.
 * Their counters are in shared memory, so that worker processes count together. An extractor has guests of its own,
 * each started when the first page needs it.
 */
#include "extract/foreign.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "guest/guest.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PDF = 0, GUESTS_MAX = WB_EXTRACT_MODULES_MAX + 1, TITLE_BYTES_MAX = 1024 };

struct foreign_counts {
    _Atomic uint64_t pages, errors;
};

static struct {
    struct wb_extract_module modules[WB_EXTRACT_MODULES_MAX]; /* owned texts */
    size_t count;
    struct wb_extract_limits limits;
    struct foreign_counts *counts; /* by guest */
} foreign = {.limits = {WB_GUEST_TIME_S, WB_GUEST_MEMORY_BYTES}};

struct wb_guests {
    struct wb_guest *guests[GUESTS_MAX];
    bool broken[GUESTS_MAX]; /* could not be started, so nobody tries again */
    struct wb_buf utf8;
};

/* ---- which modules there are --------------------------------------------------------------------- */

static void forget(void)
{
    for (size_t i = 0; i < foreign.count; i++) {
        wb_free(foreign.modules[i].name);
        wb_free(foreign.modules[i].file);
        wb_free(foreign.modules[i].argument);
        wb_free(foreign.modules[i].types);
    }
    foreign.count = 0;
}

static int take_module(const struct wb_extract_module *from)
{
    struct wb_extract_module *to = &foreign.modules[foreign.count++];

    *to = (struct wb_extract_module){wb_strdup(from->name), wb_strdup(from->file), wb_strdup(from->argument),
                                     wb_strdup(from->types)};
    return to->name && to->file && to->argument && to->types ? 0 : WB_E_NOMEM;
}

int wb_extract_use(const struct wb_extract_module *modules, size_t count, const struct wb_extract_limits *limits)
{
    size_t bytes = GUESTS_MAX * sizeof *foreign.counts;
    int err = 0;

    WB_CHECK(count <= WB_EXTRACT_MODULES_MAX && limits->time_s > 0 && limits->memory_bytes > 0);
    forget();
    foreign.limits = *limits;
    if (!foreign.counts) {
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return wb_fail_nomem();
        foreign.counts = at;
    }
    memset(foreign.counts, 0, bytes);
    for (size_t i = 0; err == 0 && i < count; i++)
        err = take_module(&modules[i]);
    return err;
}

size_t wb_extract_using(void)
{
    return foreign.count;
}

const struct wb_extract_module *wb_extract_module(size_t module)
{
    WB_CHECK(module < foreign.count);
    return &foreign.modules[module];
}

void wb_extract_used(size_t module, uint64_t *pages_out, uint64_t *errors_out)
{
    WB_CHECK(module < foreign.count && foreign.counts);
    *pages_out = atomic_load(&foreign.counts[module + 1].pages);
    *errors_out = atomic_load(&foreign.counts[module + 1].errors);
}

int wb_extract_module_check(const struct wb_extract_module *module, const struct wb_extract_limits *limits,
                            char **types_out)
{
    struct wb_guest_options options = {module->file, module->argument, limits->time_s, limits->memory_bytes};
    struct wb_guest *guest = NULL;
    const char *types = "";

    *types_out = NULL;
    int err = wb_guest_new(&options, &guest);
    if (err == 0)
        err = wb_guest_start(guest, &types);
    if (err == 0 && !*types)
        err = wb_fail(WB_E_INVALID, "the module %s cannot be used: it reads no media types", module->file);
    if (err == 0) {
        *types_out = wb_strdup(types);
        err = *types_out ? 0 : WB_E_NOMEM;
    }
    wb_guest_free(guest);
    return err;
}

/* True if a list of types, with commas between, has this one or all of its family. */
static bool has_type(const char *types, struct wb_slice type)
{
    struct wb_slice rest = wb_slice_str(types);

    while (rest.len > 0) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
        struct wb_slice one = wb_slice_trim(wb_slice(rest.ptr, len));
        bool family = one.len >= 2 && memcmp(one.ptr + one.len - 2, "/*", 2) == 0;
        if (wb_slice_equal(one, type) || (family && wb_slice_starts(type, wb_slice(one.ptr, one.len - 1))))
            return true;
        len += comma ? 1 : 0;
        rest = wb_slice(rest.ptr + len, rest.len - len);
    }
    return false;
}

int wb_foreign_first(struct wb_slice type)
{
    for (size_t i = 0; i < foreign.count; i++)
        if (has_type(foreign.modules[i].types, type))
            return (int)i + 1;
    return -1;
}

int wb_foreign_last(struct wb_slice type)
{
    return wb_slice_equal(type, WB_SLICE_LIT("application/pdf")) ? PDF : -1;
}

/* ---- what a guest says ---------------------------------------------------------------------------- */

/* Well-formed UTF-8 of what a guest said, valid until the next page. */
static int keep_text(struct wb_extractor *x, struct wb_slice raw, struct wb_slice *text_out)
{
    struct wb_slice text;
    int err = wb_charset_decode("UTF-8", raw, WB_GUEST_ANSWER_MAX, &x->foreign->utf8, &text);

    return err < 0 ? err : wb_sink_keep(x, text, text_out);
}

static int take_text(struct wb_extractor *x, struct wb_slice raw)
{
    struct wb_slice rest;
    int err = wb_charset_decode("UTF-8", raw, WB_GUEST_ANSWER_MAX, &x->foreign->utf8, &rest);

    while (err == 0 && rest.len > 0) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        wb_sink_text(x, wb_slice(rest.ptr, len));
        if (end)
            wb_sink_break(x);
        len += end ? 1 : 0;
        rest = wb_slice(rest.ptr + len, rest.len - len);
    }
    return err;
}

static int take_link(struct wb_extractor *x, const struct wb_guest_part *part)
{
    struct wb_extract_link link = {.tag = WB_EXTRACT_LINK_A, .rel = WB_SLICE_EMPTY};
    struct wb_slice anchor;

    if (part->name.len > WB_URL_MAX_BYTES)
        return 0;
    int err = keep_text(x, part->name, &link.href);
    if (err == 0)
        err = keep_text(x, part->value, &anchor);
    if (err == 0)
        err = wb_sink_keep_words(x, anchor, WB_EXTRACT_ANCHOR_MAX, &link.anchor);
    return err < 0 ? err : wb_sink_link(x, &link, NULL);
}

static int take_part(struct wb_extractor *x, const struct wb_guest_part *part)
{
    struct wb_slice text;
    int err = 0;

    switch (part->kind) {
    case WB_GUEST_TEXT:
        return take_text(x, part->value);
    case WB_GUEST_TITLE:
        err = keep_text(x, part->value, &text);
        return err < 0 ? err : wb_sink_keep_words(x, text, TITLE_BYTES_MAX, &x->out->title);
    case WB_GUEST_PUBLISHED:
        x->out->published_ms = wb_sink_time(part->time_ms);
        return 0;
    case WB_GUEST_MODIFIED:
        x->out->modified_ms = wb_sink_time(part->time_ms);
        return 0;
    case WB_GUEST_LINK:
        return take_link(x, part);
    case WB_GUEST_FACT:
        err = keep_text(x, part->value, &text);
        return err < 0 ? err : wb_sink_fact(x, part->name, text);
    case WB_GUEST_SAY:
        err = keep_text(x, part->value, &text);
        if (err == 0)
            fprintf(stderr, "webbase: %s: %.*s\n", x->out->module, WB_SLICE_ARG(text));
        return err;
    default:
        return 0;
    }
}

/* Checks the whole answer before any of it counts, and how much text it has. */
static bool is_sound(struct wb_slice answer, size_t *text_out)
{
    struct wb_guest_part part;
    int more;

    *text_out = 0;
    while ((more = wb_guest_next(&answer, &part)) > 0)
        *text_out += part.kind == WB_GUEST_TEXT ? 3 * part.value.len : 0; /* a bad byte becomes U+FFFD */
    return more == 0;
}

static int take_answer(struct wb_extractor *x, struct wb_slice answer)
{
    struct wb_guest_part part;
    size_t text = 0;

    if (!is_sound(answer, &text)) {
        x->out->module_error = wb_guest_end_name(WB_GUEST_FAILED);
        return 0;
    }
    int err = wb_sink_room(x, text);
    while (err == 0 && wb_guest_next(&answer, &part) > 0)
        err = take_part(x, &part);
    return err;
}

/* ---- asking -------------------------------------------------------------------------------------- */

static int find_guest(struct wb_extractor *x, int number)
{
    const struct wb_extract_module *module = number == PDF ? NULL : &foreign.modules[number - 1];
    struct wb_guest_options options = {module ? module->file : NULL, module ? module->argument : "",
                                       foreign.limits.time_s, foreign.limits.memory_bytes};

    if (!x->foreign)
        x->foreign = wb_alloc_zero(1, sizeof *x->foreign);
    if (!x->foreign)
        return WB_E_NOMEM;
    return x->foreign->guests[number] ? 0 : wb_guest_new(&options, &x->foreign->guests[number]);
}

int wb_foreign_run(struct wb_extractor *x, int number, struct wb_slice type)
{
    enum wb_guest_end end = WB_GUEST_FAILED;
    struct wb_slice answer = WB_SLICE_EMPTY;
    int err = find_guest(x, number);

    WB_CHECK(number >= 0 && number <= (int)foreign.count);
    if (err < 0)
        return err;
    x->out->module = number == PDF ? "pdf" : foreign.modules[number - 1].name;
    if (!x->foreign->broken[number]) {
        struct wb_guest_request request = {x->input->url, type, x->input->charset, x->input->body};
        err = wb_guest_ask(x->foreign->guests[number], &request, &answer, &end);
    }
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0) {
        fprintf(stderr, "webbase: %s\n", wb_error_message());
        x->foreign->broken[number] = true;
        end = WB_GUEST_FAILED;
    }
    x->out->module_error = wb_guest_end_name(end);
    err = end == WB_GUEST_OK ? take_answer(x, answer) : 0;
    if (foreign.counts) {
        atomic_fetch_add(&foreign.counts[number].pages, 1);
        atomic_fetch_add(&foreign.counts[number].errors, *x->out->module_error != '\0');
    }
    return err;
}

void wb_foreign_free(struct wb_extractor *x)
{
    if (!x->foreign)
        return;
    for (size_t i = 0; i < GUESTS_MAX; i++)
        wb_guest_free(x->foreign->guests[i]);
    wb_buf_release(&x->foreign->utf8);
    wb_free(x->foreign);
    x->foreign = NULL;
}
