/*
 * module_args.c - which modules a command uses.
 *
 * All commands that read pages use those that the repository remembers. Those that have the option --module may add
 * some or leave all out; and only they start each module before the work, so that a FILE which is gone is an error of
 * theirs. For other commands it costs no more than what the module would have said.
 */
#include "cli/module_args.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/cycle.h"
#include "extract/extract.h"
#include "os/path.h"

#include <string.h>

static bool has_option(const struct wb_options *options, const char *name)
{
    for (const struct wb_option *o = options->command->options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return true;
    return false;
}

static bool is_command(const struct wb_options *options, const char *name)
{
    return strcmp(options->command->name, name) == 0;
}

/* A server only reads pages, unless it runs cycles, too. */
static bool only_reads(const struct wb_options *options)
{
    return !has_option(options, "module") || (is_command(options, "serve") && !wb_options_flag(options, "run"));
}

/* extract has no repository. */
static bool remembers(const struct wb_options *options)
{
    return options->dir && !only_reads(options) && !is_command(options, "extract");
}

/* What a module is called: its file, without folders and ".so". */
static struct wb_slice name_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    struct wb_slice name = wb_slice_str(slash ? slash + 1 : file);

    return name.len > 3 && wb_slice_ends(name, WB_SLICE_LIT(".so")) ? wb_slice(name.ptr, name.len - 3) : name;
}

static char *copy_text(struct wb_slice text)
{
    char *copy = wb_alloc(text.len + 1);

    if (copy) {
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

/* Reads FILE.so[=ARG] into the set. The file keeps its full path, because later commands run elsewhere. */
static int add_given(struct wb_modules *set, const char *text)
{
    const char *equals = strchr(text, '=');
    struct wb_extract_module module = {.argument = wb_strdup(equals ? equals + 1 : "")};
    char *file = copy_text(equals ? wb_slice(text, (size_t)(equals - text)) : wb_slice_str(text));
    int err = file && module.argument ? 0 : WB_E_NOMEM;

    if (err == 0 && !*file)
        err = wb_options_usage("--module takes FILE.so or FILE.so=ARGUMENT, not '%s'", text);
    module.file = err == 0 ? wb_path_real(file) : NULL;
    if (err == 0 && !module.file)
        err = wb_fail(WB_E_NOTFOUND, "the module %s cannot be loaded: there is no such file", file);
    module.name = err == 0 ? copy_text(name_of(module.file)) : NULL;
    if (err == 0 && !module.name)
        err = WB_E_NOMEM;
    if (err == 0)
        err = wb_extract_module_check(&module, &set->limits, &module.types);
    if (err == 0)
        err = wb_modules_set(set, &module);
    wb_free(file);
    wb_free(module.name);
    wb_free(module.file);
    wb_free(module.argument);
    wb_free(module.types);
    return err;
}

/* Starts those that are remembered: a FILE may be gone, or may have been compiled again. */
static int check_remembered(struct wb_modules *set)
{
    for (size_t i = 0; i < set->items.count; i++) {
        char *types = NULL;
        int err = wb_extract_module_check(&set->items.items[i].module, &set->limits, &types);
        if (err < 0)
            return err;
        wb_free(set->items.items[i].module.types);
        set->items.items[i].module.types = types;
    }
    return 0;
}

static int read_limits(const struct wb_options *options, struct wb_extract_limits *limits)
{
    int64_t time_ms = wb_options_duration(options, "module-time", (int64_t)limits->time_s * 1000);

    limits->memory_bytes = wb_options_size(options, "module-memory", limits->memory_bytes);
    if (time_ms <= 0 || time_ms > (int64_t)WB_MODULE_TIME_MAX_S * 1000)
        return wb_options_usage("--module-time takes 1 to %u seconds", WB_MODULE_TIME_MAX_S);
    if (limits->memory_bytes < WB_MODULE_MEMORY_MIN)
        return wb_options_usage("--module-memory takes at least %uM", (unsigned)(WB_MODULE_MEMORY_MIN / 1000000));
    limits->time_s = (unsigned)((time_ms + 999) / 1000);
    return 0;
}

static int read_set(const struct wb_options *options, struct wb_modules *set)
{
    int err = is_command(options, "extract") || !options->dir ? 0 : wb_modules_read(options->dir, set);
    const char *const *given = NULL;
    size_t count = 0;

    if (err < 0 || only_reads(options))
        return err;
    err = read_limits(options, &set->limits);
    given = wb_options_list(options, "module", &count);
    bool none = wb_options_flag(options, "no-modules");
    if (err == 0 && none && count)
        err = wb_options_usage("--no-modules and --module contradict each other");
    if (none)
        wb_modules_release(set);
    for (size_t i = 0; err == 0 && i < count; i++)
        err = add_given(set, given[i]);
    return err < 0 || count ? err : check_remembered(set);
}

static int use(const struct wb_modules *set)
{
    struct wb_extract_module modules[WB_EXTRACT_MODULES_MAX];

    for (size_t i = 0; i < set->items.count; i++)
        modules[i] = set->items.items[i].module;
    return wb_extract_use(modules, set->items.count, &set->limits);
}

int wb_module_args_begin(const struct wb_options *options)
{
    struct wb_modules set = {.limits = WB_MODULE_LIMITS};
    int err = read_set(options, &set);

    if (err == 0)
        err = use(&set);
    /* Now already, if there is a repository: it may be read by others, and this command may be killed. */
    if (err == 0 && remembers(options) && set.items.count && !wb_options_flag(options, "no-modules") &&
        wb_path_kind(options->dir) == WB_PATH_DIR)
        err = wb_modules_write(options->dir, &set);
    wb_modules_release(&set);
    return err;
}

/* Adds what this command and its workers have counted to what is on disk. */
static void count_pages(const struct wb_options *options, struct wb_modules *used)
{
    bool index = is_command(options, "index");

    for (size_t i = 0; i < used->items.count; i++) {
        struct wb_module_entry *e = &used->items.items[i];
        uint64_t pages, errors;
        wb_extract_used(i, &pages, &errors);
        *(index ? &e->index_pages : &e->pages) += pages;
        *(index ? &e->index_errors : &e->errors) += errors;
    }
}

int wb_module_args_end(const struct wb_options *options)
{
    struct wb_modules set = {.limits = WB_MODULE_LIMITS};

    if (!remembers(options) || wb_options_flag(options, "no-modules") || wb_path_kind(options->dir) != WB_PATH_DIR ||
        wb_extract_using() == 0)
        return 0;
    int err = wb_modules_read(options->dir, &set);
    for (size_t i = 0; err == 0 && i < wb_extract_using(); i++)
        err = wb_modules_set(&set, wb_extract_module(i));
    if (err == 0)
        err = read_limits(options, &set.limits);
    if (err == 0) {
        count_pages(options, &set);
        err = wb_modules_write(options->dir, &set);
    }
    wb_modules_release(&set);
    return err;
}
