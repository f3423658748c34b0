/* state_support.c - see state_support.h. */
#include "state_support.h"
#include "os/file.h"
#include "os/path.h"

enum { CHUNK = 1 << 20 };

struct carrier {
    struct wb_store_state *state;
    struct wb_store_loader *loader;
    const char *to;
    size_t part;
    struct wb_file file;
};

static int carry_small(void *context, const char *name, struct wb_slice bytes)
{
    const struct carrier *c = context;

    return wb_store_loader_small(c->loader, name, bytes);
}

static int carry_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    const struct carrier *c = context;

    must(value.ptr != NULL);
    return wb_store_loader_row(c->loader, c->part, table, key, value);
}

static int carry_file(void *context, const struct wb_store_state_file *file)
{
    struct carrier *c = context;
    char path[DIR_MAX], *bytes = malloc(CHUNK);
    int err;

    must(bytes != NULL);
    path_in(c->to, file->name, path);
    *strrchr(path, '/') = '\0';
    err = wb_path_mkdirs(path);
    path_in(c->to, file->name, path);
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &c->file);
    for (uint64_t at = 0; at < file->bytes && err == 0; at += CHUNK) {
        size_t len = file->bytes - at < CHUNK ? (size_t)(file->bytes - at) : CHUNK;
        err = wb_store_state_read(c->state, file->name, at, len, bytes);
        if (err == 0)
            err = wb_file_write_at(&c->file, at, bytes, len);
    }
    if (err == 0)
        err = wb_file_sync(&c->file);
    wb_file_close(&c->file);
    free(bytes);
    return err;
}

int carry_try(struct wb_store_state *state, const char *to)
{
    struct carrier c = {.state = state, .to = to, .file = WB_FILE_INIT};
    struct wb_store_state_facts facts;
    int err = wb_store_loader_open(to, &c.loader);

    wb_store_state_facts(state, &facts);
    if (err == 0)
        err = wb_store_state_each_small(state, carry_small, &c);
    for (; err == 0 && c.part < facts.parts; c.part++)
        err = wb_store_state_rows(state, c.part, carry_row, &c);
    if (err == 0)
        err = wb_store_state_each_file(state, carry_file, &c);
    if (err == 0)
        err = wb_store_loader_finish(c.loader);
    wb_store_loader_close(c.loader);
    return err;
}

void carry(struct wb_store_state *state, const char *to)
{
    must_ok(carry_try(state, to));
}
