/*
 * handlers.c - the run-handlers of the WebBase paper: code of users, in shared objects, that sees every record.
 *
 * A handler runs in our process: it is trusted as much as the program itself. What it gets is a copy of the record's
 * facts in the types of include/webbase/handler.h, which are the whole contract; text and links are extracted only if
 * a handler asks for them, once for all handlers.
 *
 * With several workers, the parent loads the handlers first, as a room that gets no records. It has the files in which
 * workers leave their shares (without names, so that nobody has to remove them), and merges them when all have ended.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "extract/extract.h"
#include "os/nameless.h"
#include "stream/stream_own.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <webbase/handler.h>

enum { PART_PATH = 32 };

struct handler {
    char *path;
    char *argument;
    void *library;
    void *state;
    struct webbase_host host;
    struct handler_room *room;
    int (*init)(const struct webbase_host *host, void **state_out);
    int (*process)(void *state, const struct webbase_record *record);
    int (*finish)(void *state, int complete);
    int (*merge)(const struct webbase_host *host, const char *const *parts, size_t count); /* NULL: it has none */
    struct wb_file *parts; /* of the parent: the shares of the workers, if there is merge */
    char part[PART_PATH];  /* of a worker: the path of its own */
    bool begun, enough;
    uint64_t skipped;
};

#define ROOM_MAGIC 0x57424852u

/* All handlers of a stream, and the record that they are looking at. */
struct handler_room {
    struct wb_stream_sink sink; /* must be the first member */
    uint32_t magic;             /* ROOM_MAGIC until it is closed */
    struct handler *handlers;
    size_t count;
    unsigned workers;
    void (*say)(const char *line);
    const struct wb_page *page;
    struct wb_extractor *extractor;
    struct wb_extract extract;
    unsigned extracted; /* enum wb_extract_wants of what extract has */
    WB_VEC(struct webbase_link) links;
    char id[WB_PAGEID_HEX + 1];
    struct wb_buf token;
};

static struct webbase_text text_of(struct wb_slice s)
{
    return (struct webbase_text){s.ptr, s.len};
}

/* ---- what handlers may ask for ------------------------------------------------------------------- */

static struct handler_room *room_of(const struct webbase_host *host)
{
    const char *at = (const char *)host - offsetof(struct handler, host);

    struct handler_room *room = ((const struct handler *)at)->room;

    WB_CHECK(room->magic == ROOM_MAGIC);
    return room;
}

/* What was extracted before is extracted again together with what is new: handlers that ask for both ask once each. */
static int extract(struct handler_room *room, unsigned wants)
{
    const struct wb_page *page = room->page;
    int err = 0;

    if (!page)
        return WEBBASE_FAILED; /* asked for outside of process */
    if ((room->extracted & wants) == wants)
        return 0;
    if (!room->extractor)
        err = wb_extractor_new(&room->extractor);
    struct wb_extract_input input = {.url = page->url,
                                     .type = page->type,
                                     .charset = page->charset,
                                     .body = page->body,
                                     .wants = room->extracted | wants};
    if (err == 0)
        err = wb_extract(room->extractor, &input, &room->extract);
    if (err == 0)
        room->extracted = input.wants;
    return err < 0 ? WEBBASE_FAILED : 0;
}

static int give_text(const struct webbase_host *host, struct webbase_text *text_out, struct webbase_text *title_out,
                     const char **language_out)
{
    struct handler_room *room = room_of(host);
    int err = extract(room, WB_EXTRACT_TEXT | (language_out ? WB_EXTRACT_LANGUAGE : 0));

    if (err != 0)
        return err;
    if (text_out)
        *text_out = text_of(room->extract.text);
    if (title_out)
        *title_out = text_of(room->extract.title);
    if (language_out)
        *language_out = room->extract.language;
    return 0;
}

static int give_links(const struct webbase_host *host, const struct webbase_link **links_out, size_t *count_out)
{
    struct handler_room *room = room_of(host);
    int err = extract(room, WB_EXTRACT_LINKS);

    wb_vec_clear(&room->links);
    for (size_t i = 0; i < room->extract.link_count && err == 0; i++) {
        const struct wb_extract_link *link = &room->extract.links[i];
        if (wb_stream_is_link(link))
            err = wb_vec_push(&room->links, (struct webbase_link){text_of(link->url), text_of(link->anchor)});
    }
    *links_out = room->links.items;
    *count_out = room->links.count;
    return err < 0 ? WEBBASE_FAILED : 0;
}

static void say(const struct webbase_host *host, const char *format, ...)
{
    struct handler_room *room = room_of(host);
    struct wb_buf line = WB_BUF_INIT;
    va_list args;

    va_start(args, format);
    int err = wb_buf_vprintf(&line, format, args);
    va_end(args);
    if (err == 0 && wb_buf_terminate(&line) == 0 && room->say)
        room->say(line.ptr);
    wb_buf_release(&line);
}

/* ---- records ------------------------------------------------------------------------------------- */

static int failed(const struct handler *handler, const char *what, int result)
{
    return wb_fail(WB_E_INVALID, "the handler %s failed: %s returned %d", handler->path, what, result);
}

static int process(struct handler *handler, const struct webbase_record *record)
{
    WB_CHECK(handler->begun && !handler->enough);
    int result = handler->process(handler->state, record);

    if (result == WEBBASE_SKIPPED)
        handler->skipped++;
    else if (result == WEBBASE_ENOUGH)
        handler->enough = true;
    else if (result != WEBBASE_OK)
        return failed(handler, "process", result);
    return 0;
}

static struct handler_room *room_of_sink(struct wb_stream_sink *sink)
{
    WB_CHECK(((const struct handler_room *)sink)->magic == ROOM_MAGIC);
    return (struct handler_room *)sink;
}

static int take_record(struct wb_stream_sink *sink, const struct wb_stream_record *record)
{
    struct handler_room *room = room_of_sink(sink);
    const struct wb_page *page = &record->page;
    bool enough = true;

    room->page = page;
    room->extracted = 0;
    wb_pageid_hex(page->id, room->id);
    wb_buf_clear(&room->token);
    int err = wb_buf_append_slice(&room->token, record->token);
    if (err == 0)
        err = wb_buf_terminate(&room->token);
    const struct webbase_record seen = {.url = text_of(page->url),
                                        .key = text_of(page->key),
                                        .id = room->id,
                                        .docid = record->docid,
                                        .position = record->position,
                                        .time_ms = page->time_ms,
                                        .status = page->status,
                                        .type = text_of(page->type),
                                        .charset = text_of(page->charset),
                                        .headers = text_of(page->head),
                                        .body = text_of(page->body),
                                        .truncated = page->truncated,
                                        .revisit = record->revisit,
                                        .token = room->token.ptr};
    for (size_t i = 0; i < room->count && err == 0; i++) {
        if (!room->handlers[i].enough)
            err = process(&room->handlers[i], &seen);
        enough = enough && room->handlers[i].enough;
    }
    room->page = NULL;
    return err < 0 ? err : enough ? WB_SINK_ENOUGH : 0;
}

static int flush(struct wb_stream_sink *sink)
{
    (void)sink;
    return 0;
}

uint64_t wb_handlers_skipped(const struct wb_stream_sink *sink)
{
    const struct handler_room *room = (const struct handler_room *)sink;
    uint64_t skipped = 0;

    WB_CHECK(room->magic == ROOM_MAGIC);
    for (size_t i = 0; i < room->count; i++)
        skipped += room->handlers[i].skipped;
    return skipped;
}

/* Every handler that has begun is finished, whatever the others say. The first error counts. */
static int finish(struct handler_room *room, bool complete)
{
    int err = 0;

    for (size_t i = 0; i < room->count; i++) {
        struct handler *handler = &room->handlers[i];
        int result = handler->begun ? handler->finish(handler->state, complete) : WEBBASE_OK;
        if (result < 0 && err == 0)
            err = failed(handler, "finish", result);
        handler->begun = false;
    }
    return err;
}

static int end(struct wb_stream_sink *sink)
{
    return finish(room_of_sink(sink), true);
}

static void close_parts(struct handler *handler, unsigned workers)
{
    WB_CHECK(!handler->begun);
    for (unsigned i = 0; handler->parts && i < workers; i++)
        wb_file_close(&handler->parts[i]);
    wb_free(handler->parts);
}

static void close_room(struct wb_stream_sink *sink)
{
    struct handler_room *room = room_of_sink(sink);
    struct wb_error_copy copy;

    wb_error_save(0, &copy);
    (void)finish(room, false); /* the stream has failed already, if any handler is left */
    for (size_t i = 0; i < room->count; i++) {
        close_parts(&room->handlers[i], room->workers);
        if (room->handlers[i].library)
            dlclose(room->handlers[i].library);
        wb_free(room->handlers[i].path);
        wb_free(room->handlers[i].argument);
    }
    wb_extractor_free(room->extractor);
    wb_vec_release(&room->links);
    wb_buf_release(&room->token);
    wb_free(room->handlers);
    room->magic = 0;
    wb_free(room);
    wb_error_restore(&copy);
}

/* ---- loading ------------------------------------------------------------------------------------- */

/* "mine.so=ARGUMENT": the path ends at the first '=' that follows ".so", so that paths may contain '='. */
static int split(struct handler *handler, const char *text)
{
    const char *mark = strstr(text, ".so=");
    size_t len = mark ? (size_t)(mark - text) + 3 : strlen(text);

    handler->path = wb_strndup(text, len);
    handler->argument = wb_strndup(mark ? mark + 4 : "", strlen(mark ? mark + 4 : ""));
    return handler->path && handler->argument ? 0 : WB_E_NOMEM;
}

static int find(struct handler *handler, const char *name, void *pointer_out)
{
    void *symbol = dlsym(handler->library, name);

    if (!symbol)
        return wb_fail(WB_E_INVALID, "%s is not a handler: it does not define %s (see include/webbase/handler.h)",
                       handler->path, name);
    memcpy(pointer_out, &symbol, sizeof symbol);
    return 0;
}

static int load(struct handler *handler)
{
    char real[4096];
    const unsigned *abi = NULL;

    /* Without a slash in it, dlopen() would look for the file among the system's libraries. */
    if (!strchr(handler->path, '/') && snprintf(real, sizeof real, "./%s", handler->path) < (int)sizeof real)
        handler->library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    else
        handler->library = dlopen(handler->path, RTLD_NOW | RTLD_LOCAL);
    if (!handler->library)
        return wb_fail(WB_E_INVALID, "cannot load the handler %s: %s", handler->path, dlerror());
    int err = find(handler, "webbase_handler_abi", &abi);
    if (err == 0 && *abi != WEBBASE_HANDLER_ABI)
        err = wb_fail(WB_E_INVALID, "the handler %s was compiled for another version of webbase (%u, this is %u)",
                      handler->path, *abi, WEBBASE_HANDLER_ABI);
    if (err == 0)
        err = find(handler, "webbase_handler_init", &handler->init);
    if (err == 0)
        err = find(handler, "webbase_handler_process", &handler->process);
    if (err == 0)
        err = find(handler, "webbase_handler_finish", &handler->finish);
    void *merge = err == 0 ? dlsym(handler->library, "webbase_handler_merge") : NULL;
    memcpy(&handler->merge, &merge, sizeof merge);
    return err;
}

/* ---- several workers ----------------------------------------------------------------------------- */

/* A file without a name has one as long as it is open, in every process that has inherited it. */
static void part_path(const struct wb_file *file, char path_out[PART_PATH])
{
    snprintf(path_out, PART_PATH, "/dev/fd/%d", file->fd);
}

/* The parent: a file for the share of each worker, before these are started. */
static int open_parts(struct handler *handler, unsigned workers)
{
    WB_CHECK(!handler->parts);
    const char *dir = getenv("TMPDIR");
    int err = 0;

    if (!handler->merge)
        return 0;
    handler->parts = wb_alloc_zero(workers, sizeof(*handler->parts));
    for (unsigned i = 0; handler->parts && i < workers; i++)
        handler->parts[i] = WB_FILE_INIT;
    for (unsigned i = 0; handler->parts && err == 0 && i < workers; i++)
        err = wb_nameless_open(dir && dir[0] ? dir : "/tmp", &handler->parts[i]);
    return handler->parts ? err : WB_E_NOMEM;
}

/* A worker: the file for its share; or else an argument of its own, which names its file. */
static int take_part(struct handler *handler, const struct handler *parent, unsigned worker)
{
    struct wb_buf argument = WB_BUF_INIT;

    if (handler->merge) {
        WB_CHECK(parent->parts && worker > 0);
        part_path(&parent->parts[worker - 1], handler->part);
        handler->host.part = handler->part;
        return 0;
    }
    if (!handler->argument[0])
        return 0;
    int err = wb_buf_printf(&argument, "%s.%u", handler->argument, worker);
    if (err == 0)
        err = wb_buf_terminate(&argument);
    if (err < 0) {
        wb_buf_release(&argument);
        return err;
    }
    wb_free(handler->argument);
    handler->host.argument = handler->argument = argument.ptr;
    return 0;
}

static int merge(struct handler *handler, unsigned workers)
{
    char paths[WB_STREAM_WORKERS_MAX][PART_PATH];
    const char *parts[WB_STREAM_WORKERS_MAX];

    WB_CHECK(workers <= WB_STREAM_WORKERS_MAX && handler->parts);
    for (unsigned i = 0; i < workers; i++) {
        part_path(&handler->parts[i], paths[i]);
        parts[i] = paths[i];
    }
    int result = handler->merge(&handler->host, parts, workers);
    return result < 0 ? failed(handler, "merge", result) : 0;
}

int wb_handlers_merge(struct wb_stream_sink *parent)
{
    struct handler_room *room = room_of_sink(parent);
    int err = 0;

    for (size_t i = 0; err == 0 && i < room->count; i++) {
        struct handler *handler = &room->handlers[i];
        if (handler->merge)
            err = merge(handler, room->workers);
        else if (handler->argument[0])
            say(&handler->host, "the handler %s cannot merge: its %u parts are in %s.1 to %s.%u", handler->path,
                room->workers, handler->argument, handler->argument, room->workers);
    }
    return err;
}

static int init(struct handler *handler)
{
    WB_CHECK(!handler->begun);
    int result = handler->init(&handler->host, &handler->state);

    if (result != WEBBASE_OK && result != WEBBASE_ENOUGH)
        return failed(handler, "init", result);
    handler->begun = true;
    handler->enough = result == WEBBASE_ENOUGH;
    return 0;
}

static int begin(struct wb_stream_sink *sink, const struct wb_stream_info *info)
{
    struct handler_room *room = room_of_sink(sink);
    int err = 0;

    (void)info;
    for (size_t i = 0; i < room->count && err == 0; i++)
        err = init(&room->handlers[i]);
    return err;
}

/* The handler that the parent of a worker has loaded in this place. */
static const struct handler *parent_of(const struct wb_handler_options *options, size_t i)
{
    WB_CHECK(i < ((const struct handler_room *)options->parent)->count);
    return &((const struct handler_room *)options->parent)->handlers[i];
}

int wb_handlers_new(const struct wb_handler_options *options, struct wb_stream_sink **sink_out)
{
    WB_CHECK(options->workers <= WB_STREAM_WORKERS_MAX && options->worker <= options->workers);
    struct handler_room *room = wb_alloc_zero(1, sizeof(*room));
    int err = room ? 0 : WB_E_NOMEM;

    *sink_out = NULL;
    if (err < 0)
        return err;
    room->magic = ROOM_MAGIC;
    room->sink.kind = (struct wb_stream_sink_kind){.bodies = true,
                                                   .docids = true,
                                                   .begin = begin,
                                                   .record = take_record,
                                                   .flush = flush,
                                                   .end = end,
                                                   .close = close_room};
    room->handlers = wb_alloc_zero(options->count, sizeof(*room->handlers));
    room->count = room->handlers ? options->count : 0;
    room->workers = options->workers;
    room->say = options->say;
    err = room->handlers ? 0 : WB_E_NOMEM;
    for (size_t i = 0; i < room->count && err == 0; i++) {
        struct handler *handler = &room->handlers[i];
        err = split(handler, options->paths[i]);
        handler->room = room;
        handler->host = (struct webbase_host){.argument = handler->argument,
                                              .worker = options->worker,
                                              .workers = options->workers,
                                              .text = give_text,
                                              .links = give_links,
                                              .say = say};
        if (err == 0)
            err = load(handler);
        if (err == 0 && options->worker == 0)
            err = open_parts(handler, options->workers);
        else if (err == 0 && options->parent)
            err = take_part(handler, parent_of(options, i), options->worker);
    }
    if (err < 0) {
        close_room(&room->sink);
        return err;
    }
    *sink_out = &room->sink;
    return 0;
}
