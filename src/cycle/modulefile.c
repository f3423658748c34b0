/*
 * modulefile.c - the modules that a repository remembers, and how many pages they have read: DIR/modules.
 *
 *   time 10                   seconds and bytes for a page, as they were given last
 *   memory 536870912
 *   module note               begins the lines of one module; the order is that in which they were first given
 *   file /home/me/note.so
 *   argument ...
 *   types text/x-note
 *   pages 12                  given to it by crawls and imports, and of these, those that ended in an error
 *   errors 0
 *   index_pages 12            the same for the index
 *   index_errors 0
 */
#include "base/error.h"
#include "base/mem.h"
#include "cycle/cycle.h"
#include "cycle/statefile.h"
#include "os/path.h"

#include <inttypes.h>

#define FILE_NAME "modules"

void wb_modules_release(struct wb_modules *set)
{
    for (size_t i = 0; i < set->items.count; i++) {
        wb_free(set->items.items[i].module.name);
        wb_free(set->items.items[i].module.file);
        wb_free(set->items.items[i].module.argument);
        wb_free(set->items.items[i].module.types);
    }
    wb_vec_release(&set->items);
}

/* ---- reading --------------------------------------------------------------------------------------- */

static int copy_text(struct wb_slice value, char **to)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_buf_append_slice(&text, value);

    if (err == 0)
        err = wb_buf_terminate(&text);
    wb_free(*to);
    *to = err == 0 ? text.ptr : NULL;
    if (err < 0)
        wb_buf_release(&text);
    return err;
}

static int add_module(struct wb_modules *set, struct wb_slice name)
{
    struct wb_module_entry *entry = set->items.count < WB_EXTRACT_MODULES_MAX ? wb_vec_add(&set->items) : NULL;
    int err = entry ? 0 : set->items.count < WB_EXTRACT_MODULES_MAX ? WB_E_NOMEM : WB_E_CORRUPT;

    if (err == 0)
        err = copy_text(name, &entry->module.name);
    if (err == 0)
        err = copy_text(WB_SLICE_EMPTY, &entry->module.file);
    if (err == 0)
        err = copy_text(WB_SLICE_EMPTY, &entry->module.argument);
    return err < 0 ? err : copy_text(WB_SLICE_EMPTY, &entry->module.types);
}

static int read_number(struct wb_slice value, uint64_t *number_out)
{
    return wb_slice_to_u64(value, number_out) ? 0 : WB_E_CORRUPT;
}

static int read_line(struct wb_modules *set, struct wb_slice name, struct wb_slice value)
{
    struct wb_module_entry *last = set->items.count ? &set->items.items[set->items.count - 1] : NULL;
    uint64_t time_s = 0;

    if (wb_slice_equal(name, WB_SLICE_LIT("module")))
        return add_module(set, value);
    if (wb_slice_equal(name, WB_SLICE_LIT("memory")))
        return read_number(value, &set->limits.memory_bytes);
    if (wb_slice_equal(name, WB_SLICE_LIT("time"))) {
        int err = read_number(value, &time_s);
        set->limits.time_s = (unsigned)time_s;
        return err < 0 || time_s > WB_MODULE_TIME_MAX_S ? WB_E_CORRUPT : 0;
    }
    const struct {
        const char *name;
        char **text;
        uint64_t *number;
    } fields[] = {{"file", last ? &last->module.file : NULL, NULL},
                  {"argument", last ? &last->module.argument : NULL, NULL},
                  {"types", last ? &last->module.types : NULL, NULL},
                  {"pages", NULL, last ? &last->pages : NULL},
                  {"errors", NULL, last ? &last->errors : NULL},
                  {"index_pages", NULL, last ? &last->index_pages : NULL},
                  {"index_errors", NULL, last ? &last->index_errors : NULL}};
    for (size_t i = 0; last && i < sizeof fields / sizeof *fields; i++)
        if (wb_slice_equal(name, wb_slice_str(fields[i].name)))
            return fields[i].text ? copy_text(value, fields[i].text) : read_number(value, fields[i].number);
    return 0; /* as in the other files of this form */
}

int wb_modules_read(const char *dir, struct wb_modules *set)
{
    struct wb_slice lines, name, value;
    struct wb_buf memory = WB_BUF_INIT;
    char *path = wb_path_join(dir, FILE_NAME);
    int err = path ? wb_statefile_read(path, FILE_NAME, &memory, &lines) : WB_E_NOMEM;

    *set = (struct wb_modules){.limits = WB_MODULE_LIMITS};
    if (err == WB_E_NOTFOUND) {
        err = 0;
        lines = WB_SLICE_EMPTY;
    }
    while (err == 0 && wb_statefile_line(&lines, &name, &value))
        err = read_line(set, name, value);
    if (err == 0 && (set->limits.time_s == 0 || set->limits.memory_bytes == 0))
        err = WB_E_CORRUPT;
    if (err == WB_E_CORRUPT)
        err = wb_fail(WB_E_CORRUPT, "%s is damaged; remove it, and give --module again", path);
    wb_buf_release(&memory);
    wb_free(path);
    return err;
}

/* ---- writing --------------------------------------------------------------------------------------- */

int wb_modules_write(const char *dir, const struct wb_modules *set)
{
    struct wb_buf lines = WB_BUF_INIT;
    char *path = wb_path_join(dir, FILE_NAME);
    int err = path
                  ? wb_buf_printf(&lines, "time %u\nmemory %" PRIu64 "\n", set->limits.time_s, set->limits.memory_bytes)
                  : WB_E_NOMEM;

    for (size_t i = 0; err == 0 && i < set->items.count; i++) {
        const struct wb_module_entry *e = &set->items.items[i];
        err = wb_buf_printf(&lines,
                            "module %s\nfile %s\nargument %s\ntypes %s\npages %" PRIu64 "\nerrors %" PRIu64
                            "\nindex_pages %" PRIu64 "\nindex_errors %" PRIu64 "\n",
                            e->module.name, e->module.file, e->module.argument, e->module.types, e->pages, e->errors,
                            e->index_pages, e->index_errors);
    }
    if (err == 0)
        err = wb_statefile_write(path, FILE_NAME, wb_buf_slice(&lines));
    wb_buf_release(&lines);
    wb_free(path);
    return err;
}

int wb_modules_set(struct wb_modules *set, const struct wb_extract_module *module)
{
    const char *const texts[] = {module->name, module->file, module->argument, module->types};
    size_t at = 0;
    int err = 0;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strchr(texts[i], '\n'))
            return wb_fail(WB_E_INVALID, "the module %s cannot be remembered: it has a line break in its %s",
                           module->file, i == 3 ? "types" : "name or argument");
    while (at < set->items.count && strcmp(set->items.items[at].module.name, module->name) != 0)
        at++;
    if (at == WB_EXTRACT_MODULES_MAX)
        return wb_fail(WB_E_LIMIT, "%s: a repository has at most %u modules", module->file, WB_EXTRACT_MODULES_MAX);
    if (at == set->items.count)
        err = add_module(set, wb_slice_str(module->name));
    if (err == 0)
        err = copy_text(wb_slice_str(module->file), &set->items.items[at].module.file);
    if (err == 0)
        err = copy_text(wb_slice_str(module->argument), &set->items.items[at].module.argument);
    return err < 0 ? err : copy_text(wb_slice_str(module->types), &set->items.items[at].module.types);
}
