/*
 * objectcalls.c - the door of the room object, for scripts that test it against a real store (tests/e2e/vault_s3.py).
 *
 *   objectcalls URL PATIENCE_MS     reads commands, one per line, and answers each with one line:
 *
 *   put NAME FILE                   ok 0
 *   fill PREFIX COUNT THREADS       ok COUNT       objects PREFIX00000 ... with their names as bytes
 *   get NAME FILE                   ok BYTES       the bytes are in FILE
 *   range NAME OFFSET LEN FILE      ok BYTES
 *   size NAME                       ok BYTES
 *   delete NAME                     ok 0
 *   list PREFIX FILE                ok COUNT       FILE has a line for each: NAME SIZE
 *   counts                          ok PUTS GETS DELETES LISTS REPEATED
 *
 * A call that fails: "error CODE MESSAGE". If the store cannot be opened: the same, once, and exit status 1.
 */
#include "base/buf.h"
#include "base/error.h"
#include "base/pool.h"
#include "object/object.h"
#include "os/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 5, LINE_MAX_BYTES = 4096, FILL_MAX = 10000 };

struct calls {
    struct wb_object_store *store;
    char *words[WORDS_MAX]; /* of the line */
    size_t count;
};

static const char *word(const struct calls *c, size_t n)
{
    return n < c->count ? c->words[n] : "";
}

static int write_file(const char *path, struct wb_slice bytes)
{
    FILE *file = fopen(path, "wb");

    if (!file)
        return wb_fail_errno("cannot write %s", path);
    bool good = fwrite(bytes.ptr, 1, bytes.len, file) == bytes.len;
    return (fclose(file) == 0) & good ? 0 : wb_fail_errno("cannot write %s", path);
}

/* ---- one function for each command; *answer_out is the number after "ok" ---------------------------------------- */

static int do_put(struct calls *c, uint64_t *answer_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int err = wb_path_read(word(c, 2), WB_OBJECT_MAX, &bytes);

    *answer_out = 0;
    if (err == 0)
        err = wb_object_put(c->store, word(c, 1), wb_buf_slice(&bytes));
    wb_buf_release(&bytes);
    return err;
}

struct filling {
    struct wb_object_store *store;
    char name[WB_OBJECT_NAME_MAX];
    struct wb_error_copy error; /* code 0: none */
};

static void fill_one(void *context)
{
    struct filling *f = context;
    int err = wb_object_put(f->store, f->name, wb_slice_str(f->name));

    if (err < 0)
        wb_error_save(err, &f->error);
}

static int do_fill(struct calls *c, uint64_t *answer_out)
{
    size_t count = strtoul(word(c, 2), NULL, 10);
    struct filling *all = count <= FILL_MAX ? calloc(count, sizeof *all) : NULL;
    struct wb_pool *pool = NULL;
    int err = all ? wb_pool_new((unsigned)atoi(word(c, 3)), &pool) : WB_E_NOMEM;

    for (size_t i = 0; i < count && err == 0; i++) {
        all[i].store = c->store;
        snprintf(all[i].name, sizeof all[i].name, "%.*s%05zu", WB_OBJECT_NAME_MAX - 6, word(c, 1), i);
        err = wb_pool_submit(pool, fill_one, &all[i]);
    }
    wb_pool_free(pool); /* waits */
    for (size_t i = 0; i < count && err == 0; i++)
        err = all[i].error.code ? wb_error_restore(&all[i].error) : 0;
    free(all);
    *answer_out = count;
    return err;
}

static int do_get(struct calls *c, uint64_t *answer_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int err = wb_object_get(c->store, word(c, 1), WB_OBJECT_MAX, &bytes);

    *answer_out = bytes.len;
    if (err == 0)
        err = write_file(word(c, 2), wb_buf_slice(&bytes));
    wb_buf_release(&bytes);
    return err;
}

static int do_range(struct calls *c, uint64_t *answer_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int err = wb_object_get_range(c->store, word(c, 1), strtoull(word(c, 2), NULL, 10), strtoul(word(c, 3), NULL, 10),
                                  &bytes);

    *answer_out = bytes.len;
    if (err == 0)
        err = write_file(word(c, 4), wb_buf_slice(&bytes));
    wb_buf_release(&bytes);
    return err;
}

static int do_size(struct calls *c, uint64_t *answer_out)
{
    return wb_object_size(c->store, word(c, 1), answer_out);
}

static int do_delete(struct calls *c, uint64_t *answer_out)
{
    *answer_out = 0;
    return wb_object_delete(c->store, word(c, 1));
}

static int add_listed(void *context, const char *name, uint64_t size)
{
    return wb_buf_printf(context, "%s %" PRIu64 "\n", name, size);
}

static int do_list(struct calls *c, uint64_t *answer_out)
{
    struct wb_buf lines = WB_BUF_INIT;
    int err = wb_object_list(c->store, c->count > 2 ? word(c, 1) : "", add_listed, &lines);

    *answer_out = 0;
    for (size_t i = 0; i < lines.len; i++)
        *answer_out += lines.ptr[i] == '\n';
    if (err == 0)
        err = write_file(word(c, c->count - 1), wb_buf_slice(&lines));
    wb_buf_release(&lines);
    return err;
}

static const struct {
    const char *name;
    int (*run)(struct calls *c, uint64_t *answer_out);
} commands[] = {
    {"put", do_put},   {"fill", do_fill},     {"get", do_get},   {"range", do_range},
    {"size", do_size}, {"delete", do_delete}, {"list", do_list},
};

static void run(struct calls *c)
{
    struct wb_object_counts n;
    uint64_t answer = 0;
    size_t i = 0;

    if (strcmp(word(c, 0), "counts") == 0) {
        wb_object_counts(c->store, &n);
        printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", n.puts, n.gets, n.deletes, n.lists,
               n.repeated);
        return;
    }
    while (i < sizeof commands / sizeof *commands && strcmp(commands[i].name, word(c, 0)) != 0)
        i++;
    int err = i < sizeof commands / sizeof *commands ? commands[i].run(c, &answer)
                                                     : wb_fail(WB_E_INVALID, "no command %s", word(c, 0));
    if (err < 0)
        printf("error %d %s\n", err, wb_error_message());
    else
        printf("ok %" PRIu64 "\n", answer);
}

int main(int argc, char **argv)
{
    struct calls c = {.count = 0};
    char line[LINE_MAX_BYTES], *rest;

    if (argc != 3)
        return 2;
    struct wb_object_options options = {.patience_ms = atoll(argv[2])};
    int err = wb_object_open(argv[1], &options, &c.store);
    if (err < 0) {
        printf("error %d %s\n", err, wb_error_message());
        return 1;
    }
    printf("ok 0\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        c.count = 0;
        for (char *w = strtok_r(line, " \n", &rest); w && c.count < WORDS_MAX; w = strtok_r(NULL, " \n", &rest))
            c.words[c.count++] = w;
        if (c.count == 0)
            break;
        run(&c);
        fflush(stdout);
    }
    wb_object_close(c.store);
    return 0;
}
