/*
 * whereabouts.c - reads and writes DIR/index/where, which is text so that people can read it too:
 *
 *   webbase index 1                  the format
 *   root /disk2/webbase-0123...      the series that readers use; "home" is DIR/index
 *   other /disk1/webbase-0123...     any number of others; never DIR/index, which is always known
 *   checksum 0123456789abcdef        XXH3 of everything before this line
 */
#include "index/whereabouts.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/generation.h"
#include "os/path.h"

#include <stdio.h>

#define HEADLINE "webbase index "
#define AT_HOME "home"

enum { WHERE_FORMAT = 1 };

/* ---- the file ---------------------------------------------------------------------------------- */

static int read_line(void *context, size_t line, struct wb_slice name, struct wb_slice value)
{
    struct wb_whereabouts *where = context;
    bool root = wb_slice_equal(name, WB_SLICE_LIT("root")), home = wb_slice_equal(value, WB_SLICE_LIT(AT_HOME));

    if ((line == 0) != root || (!root && !wb_slice_equal(name, WB_SLICE_LIT("other"))) || (home && !root) ||
        (!home && (value.len == 0 || value.ptr[0] != '/')) || memchr(value.ptr, '\0', value.len))
        return WB_E_CORRUPT;
    char *copy = home ? wb_strdup(where->home) : wb_strndup(value.ptr, value.len);
    if (!copy)
        return WB_E_NOMEM;
    if (root) {
        where->root = copy;
        return 0;
    }
    int err = wb_vec_push(&where->others, copy);
    if (err < 0)
        wb_free(copy);
    return err;
}

int wb_whereabouts_read(const char *dir, struct wb_whereabouts *where)
{
    *where = (struct wb_whereabouts){.home = wb_path_join(dir, WB_INDEX_DIR)};
    char *path = where->home ? wb_path_join(where->home, WB_INDEX_WHERE) : NULL;
    int err = path ? wb_sealed_read(path, HEADLINE, WHERE_FORMAT, read_line, where) : WB_E_NOMEM;

    if (err == 0 && !where->root)
        err = wb_fail(WB_E_CORRUPT, "%s does not say where the index is", path);
    if (err == WB_E_NOTFOUND) {
        where->root = wb_strdup(where->home);
        err = where->root ? 0 : WB_E_NOMEM;
    }
    wb_free(path);
    return err;
}

int wb_index_root(const char *dir, char **root_out)
{
    struct wb_whereabouts where;
    int err = wb_whereabouts_read(dir, &where);

    *root_out = NULL;
    if (err == 0) {
        *root_out = where.root;
        where.root = NULL;
    }
    wb_whereabouts_release(&where);
    return err;
}

bool wb_whereabouts_at_home(const struct wb_whereabouts *where, const char *root)
{
    WB_CHECK(root && where->home);
    return strcmp(root, where->home) == 0;
}

int wb_whereabouts_write(const struct wb_whereabouts *where)
{
    struct wb_buf text = WB_BUF_INIT;

    WB_CHECK(where->root && where->home);
    bool home = wb_whereabouts_at_home(where, where->root);
    char *path = wb_path_join(where->home, WB_INDEX_WHERE);
    int err = path ? wb_buf_printf(&text, "root %s\n", home ? AT_HOME : where->root) : WB_E_NOMEM;

    WB_CHECK(home || where->root[0] == '/');
    for (size_t i = 0; err == 0 && i < where->others.count; i++)
        err = wb_buf_printf(&text, "other %s\n", where->others.items[i]);
    if (err == 0 && (!home || where->others.count))
        err = wb_sealed_write(path, HEADLINE, WHERE_FORMAT, wb_buf_slice(&text));
    else if (err == 0)
        err = wb_path_unlink(path);
    wb_buf_release(&text);
    wb_free(path);
    return err;
}

/* ---- the directories --------------------------------------------------------------------------- */

int wb_whereabouts_add(struct wb_whereabouts *where, const char *root)
{
    WB_CHECK(root[0] == '/' && !wb_whereabouts_at_home(where, root)); /* that is always known */
    for (size_t i = 0; i < where->others.count; i++)
        if (strcmp(where->others.items[i], root) == 0)
            return 0;
    char *copy = wb_strdup(root);
    int err = copy ? wb_vec_push(&where->others, copy) : WB_E_NOMEM;
    if (err < 0)
        wb_free(copy);
    return err;
}

void wb_whereabouts_remove(struct wb_whereabouts *where, const char *root)
{
    for (size_t i = 0; i < where->others.count; i++)
        if (strcmp(where->others.items[i], root) == 0) {
            wb_free(where->others.items[i]);
            where->others.items[i] = where->others.items[--where->others.count];
            return;
        }
}

void wb_whereabouts_release(struct wb_whereabouts *where)
{
    for (size_t i = 0; i < where->others.count; i++)
        wb_free(where->others.items[i]);
    wb_vec_release(&where->others);
    wb_free(where->root);
    wb_free(where->home);
    *where = (struct wb_whereabouts){.home = NULL};
}

int wb_whereabouts_root(const char *dir, const char *index_dir, char **root_out)
{
    char id[WB_STORE_ID_HEX + 1], name[WB_STORE_ID_HEX + 16];

    *root_out = NULL;
    if (wb_path_kind(index_dir) != WB_PATH_DIR)
        return wb_fail(WB_E_NOTFOUND, "%s, where the index is to be, is not a directory", index_dir);
    char *real = wb_path_real(index_dir), *home = wb_path_real(dir);
    int err = real && home ? wb_store_id(dir, id) : WB_E_IO;
    if (err == 0 && strchr(real, '\n'))
        err = wb_fail(WB_E_INVALID, "%s: the directory of an index must not have a line end in its name", index_dir);
    if (err == 0 && strcmp(home, real) == 0)
        *root_out = wb_path_join(dir, WB_INDEX_DIR);
    if (err == 0 && strcmp(home, real) != 0) {
        snprintf(name, sizeof name, "webbase-%s", id);
        *root_out = wb_path_join(real, name);
    }
    wb_free(real);
    wb_free(home);
    return err < 0 ? err : *root_out ? 0 : WB_E_NOMEM;
}
