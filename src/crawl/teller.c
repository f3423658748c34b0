/*
 * teller.c - from the files of lines (lines.h) to the readers of a crawl's log.
 *
 * Each output has its own position in each file, so a reader of --json that stops does not keep lines from the file
 * of --log. An output gets lines of one file up to the end of a line; only then may lines of another file follow.
 * The position on disk is always the end of a line, so the next crawl starts with a whole one. A line is therefore
 * written at least once, and twice only if the parent is killed in the moment between writing it and noting that.
 */
#include "crawl/teller.h"
#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "base/mem.h"
#include "crawl/spool.h"
#include "os/path.h"

enum {
    TELLER_MAGIC = 0x5742544c,
    STEP_BYTES = 64 << 10,
    STEPS_MAX = 64, /* per call and output, because the parent has other work too */
};

/* A file of lines that is being passed on. */
struct told_file {
    struct wb_list_node node;
    struct wb_lines *lines;
    uint64_t at[WB_CRAWL_OUTPUTS]; /* how far each output got; lines->told is the last end of a line before that */
    char *name;                    /* of the file, and of the spool of its process */
    bool ended;                    /* nobody appends to it any more */
};

struct wb_teller {
    uint32_t magic;
    const struct wb_crawl_sink *sink;
    char *dir;
    struct wb_list files;                        /* of struct told_file, the newest first */
    struct told_file *current[WB_CRAWL_OUTPUTS]; /* the file of which the output has half a line; NULL: none */
    struct wb_buf text;
};

/* Walks through the files: the first one if previous is NULL; NULL: no more. */
static struct told_file *next_file(const struct wb_teller *t, const struct told_file *previous)
{
    struct wb_list_node *node = previous ? previous->node.next : t->files.first;

    return node ? WB_CONTAINER_OF(node, struct told_file, node) : NULL;
}

static bool wants(const struct wb_teller *t, unsigned output)
{
    return t->sink->outputs >> output & 1;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int add_file(struct wb_teller *t, const char *name, enum wb_lines_role role, struct told_file **file_out)
{
    struct told_file *file = wb_alloc_zero(1, sizeof *file);
    int err = file && (file->name = wb_strdup(name)) ? wb_lines_open(t->dir, name, role, &file->lines) : WB_E_NOMEM;

    *file_out = NULL;
    if (err < 0) {
        if (file)
            wb_free(file->name);
        wb_free(file);
        return err;
    }
    memcpy(file->at, file->lines->told, sizeof file->at);
    wb_list_prepend(&t->files, &file->node);
    *file_out = file;
    return 0;
}

static bool all_told(const struct wb_teller *t, const struct told_file *file)
{
    for (unsigned o = 0; o < WB_CRAWL_OUTPUTS; o++)
        if (wants(t, o) && file->at[o] < file->lines->end)
            return false;
    return true;
}

/*
 * If its spool still exists, the crawl that recovers the spool will append lines to the file. It does so before it
 * removes the spool, so we look for new lines after we have looked for the spool.
 */
static bool nothing_left(const struct wb_teller *t, const struct told_file *file)
{
    return file->ended && all_told(t, file) && !wb_spool_exists(t->dir, file->name) &&
           wb_lines_refresh(file->lines) == 0 && all_told(t, file);
}

/* Closes a file, and deletes it if nobody needs it any more. We still hold its lock, so nobody adopts it meanwhile. */
static void drop_file(struct wb_teller *t, struct told_file *file)
{
    wb_list_remove(&t->files, &file->node);
    for (unsigned o = 0; o < WB_CRAWL_OUTPUTS; o++)
        if (t->current[o] == file)
            t->current[o] = NULL;
    if (nothing_left(t, file))
        (void)wb_path_unlink(file->lines->file.path);
    wb_lines_close(file->lines);
    wb_free(file->name);
    wb_free(file);
}

static int adopt_file(void *context, const struct wb_path_entry *entry)
{
    struct wb_teller *t = context;
    struct told_file *file;

    if (entry->kind != WB_PATH_FILE)
        return 0;
    int err = add_file(t, entry->name, WB_LINES_HEIR, &file);
    if (err == WB_E_BUSY || err == WB_E_NOTFOUND)
        return 0; /* it belongs to a crawl that is at work or just dying, or to us; or another crawl has passed it on */
    if (err < 0)
        return err;
    file->ended = true;
    /* A file with nothing to tell may have been made just now, and its owner waits for the lock. */
    if (nothing_left(t, file))
        drop_file(t, file);
    return 0;
}

int wb_teller_adopt(struct wb_teller *t)
{
    WB_CHECK(t->magic == TELLER_MAGIC);
    char *folder = wb_path_join(t->dir, WB_LINES_DIR);
    int err = folder ? 0 : WB_E_NOMEM;

    if (err == 0 && t->sink->outputs && wb_path_kind(folder) == WB_PATH_DIR)
        err = wb_path_each(folder, adopt_file, t);
    wb_free(folder);
    return err;
}

int wb_teller_open(const char *dir, const struct wb_crawl_sink *sink, struct wb_teller **teller_out)
{
    struct wb_teller *t = wb_alloc_zero(1, sizeof *t);
    int err = t && (t->dir = wb_strdup(dir)) ? 0 : WB_E_NOMEM;

    *teller_out = NULL;
    if (t) {
        t->magic = TELLER_MAGIC;
        t->sink = sink;
    }
    if (err == 0)
        err = wb_teller_adopt(t);
    if (err == 0)
        *teller_out = t;
    else
        wb_teller_close(t);
    return err;
}

int wb_teller_add(struct wb_teller *t, const char *name, struct wb_lines **lines_out)
{
    struct told_file *file;

    WB_CHECK(t->magic == TELLER_MAGIC);
    *lines_out = NULL;
    if (!t->sink->outputs)
        return 0;
    int err = add_file(t, name, WB_LINES_OWNER, &file);
    if (err == 0)
        *lines_out = file->lines;
    return err;
}

void wb_teller_ended(struct wb_teller *t, const char *name)
{
    WB_CHECK(t->magic == TELLER_MAGIC);
    for (struct told_file *file = NULL; (file = next_file(t, file));)
        if (strcmp(file->name, name) == 0)
            file->ended = true;
}

void wb_teller_close(struct wb_teller *t)
{
    if (!t)
        return;
    WB_CHECK(t->magic == TELLER_MAGIC);
    for (struct told_file *file = next_file(t, NULL), *next; file; file = next) {
        next = next_file(t, file);
        drop_file(t, file);
    }
    wb_buf_release(&t->text);
    wb_free(t->dir);
    t->magic = 0;
    wb_free(t);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

/*
 * Outputs that this crawl does not have follow the wanted one that is furthest behind: nobody will ask for older
 * lines.
 */
static void move_others(const struct wb_teller *t, struct wb_lines *lines)
{
    uint64_t least = UINT64_MAX;

    for (unsigned o = 0; o < WB_CRAWL_OUTPUTS; o++)
        if (wants(t, o) && lines->told[o] < least)
            least = lines->told[o];
    for (unsigned o = 0; o < WB_CRAWL_OUTPUTS; o++)
        if (!wants(t, o) && lines->told[o] < least)
            lines->told[o] = least;
}

/* Gives an output the next bytes of a file. 1: it took some, 0: it would have to be waited for, or an error. */
static int tell_some(struct wb_teller *t, struct told_file *file, unsigned output)
{
    struct wb_lines *lines = file->lines;
    size_t taken = 0, whole;

    WB_CHECK(wants(t, output) && file->at[output] >= lines->told[output]);
    int err = wb_lines_read(lines, file->at[output], STEP_BYTES, &t->text);
    if (err == 0)
        err = t->sink->take(t->sink->context, output, wb_buf_slice(&t->text), &taken);
    WB_CHECK(taken <= t->text.len);
    for (whole = taken; whole && t->text.ptr[whole - 1] != '\n'; whole--)
        ;
    if (whole) {
        lines->told[output] = file->at[output] + whole;
        move_others(t, lines);
    }
    file->at[output] += taken;
    t->current[output] = file->at[output] == lines->told[output] ? NULL : file;
    if (err == 0 && whole)
        err = wb_lines_note(lines);
    return err < 0 ? err : taken > 0;
}

/* A file that has something for the output; NULL: there is none. */
static struct told_file *find_file(const struct wb_teller *t, unsigned output)
{
    if (t->current[output])
        return t->current[output];
    for (struct told_file *file = NULL; (file = next_file(t, file));)
        if (file->at[output] < file->lines->end)
            return file;
    return NULL;
}

int wb_teller_tell(struct wb_teller *t, bool *moved_out)
{
    int err = 0;

    WB_CHECK(t->magic == TELLER_MAGIC);
    *moved_out = false;
    for (struct told_file *file = NULL; err == 0 && (file = next_file(t, file));)
        err = wb_lines_refresh(file->lines);
    for (unsigned o = 0; err == 0 && o < WB_CRAWL_OUTPUTS; o++) {
        struct told_file *file;
        int more = 1;
        for (unsigned i = 0; wants(t, o) && more == 1 && i < STEPS_MAX && (file = find_file(t, o)); i++) {
            more = tell_some(t, file, o);
            *moved_out = *moved_out || more == 1;
        }
        err = more < 0 ? more : 0;
    }
    for (struct told_file *file = next_file(t, NULL), *next; err == 0 && file; file = next) {
        next = next_file(t, file);
        if (nothing_left(t, file))
            drop_file(t, file);
    }
    return err;
}

static int count_lines(struct wb_teller *t, const struct told_file *file, unsigned output, uint64_t *count)
{
    int err = 0;

    for (uint64_t at = file->lines->told[output]; err == 0 && at < file->lines->end; at += t->text.len) {
        err = wb_lines_read(file->lines, at, STEP_BYTES, &t->text);
        for (size_t i = 0; err == 0 && i < t->text.len; i++)
            *count += t->text.ptr[i] == '\n';
    }
    return err;
}

int wb_teller_left(struct wb_teller *t, uint64_t *left_out)
{
    int err = 0;

    WB_CHECK(t->magic == TELLER_MAGIC);
    *left_out = 0;
    for (unsigned o = 0; err == 0 && o < WB_CRAWL_OUTPUTS; o++) {
        uint64_t count = 0;
        for (struct told_file *file = NULL; wants(t, o) && err == 0 && (file = next_file(t, file));)
            err = count_lines(t, file, o, &count);
        *left_out = count > *left_out ? count : *left_out;
    }
    return err;
}
