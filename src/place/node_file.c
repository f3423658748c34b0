/* node_file.c - files of nodes (node_file.h): every function makes one kind of request. */
#include "place/node_file.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "place/node.h"
#include "os/path.h"

#include <stdio.h>

static struct wb_node_request request_for(const struct wb_node_file *file, enum wb_node_kind kind)
{
    WB_CHECK(file->node != NULL);
    return (struct wb_node_request){.kind = kind, .owner = file->owner, .name = file->name, .seat = file->seat};
}

/* Makes a request that has nothing but its kind. */
static int ask(const struct wb_node_file *file, enum wb_node_kind kind)
{
    struct wb_node_request request = request_for(file, kind);
    struct wb_node_reply reply;

    return wb_node_call(file->node, &request, &reply);
}

static int begin(struct wb_node *node, const char *name, enum wb_node_kind kind, bool write,
                 struct wb_node_file *file_out)
{
    struct wb_node_reply reply;

    *file_out = WB_NODE_FILE_INIT;
    if (!wb_node_name_valid(wb_slice_str(name)))
        return wb_fail(WB_E_INVALID, "%s: a file of a node cannot have the name %s", wb_node_label(node), name);
    char *path = wb_path_join(wb_node_label(node), name);
    if (!path)
        return WB_E_NOMEM;
    struct wb_node_file file = {.node = node, .owner = wb_node_owner(node), .path = path};
    snprintf(file.name, sizeof file.name, "%s", name);
    struct wb_node_request request = request_for(&file, kind);
    request.write = write;
    int err = wb_node_call(node, &request, &reply);
    if (err < 0) {
        wb_free(path);
        return err;
    }
    file.seat = reply.seat;
    wb_node_hold(node);
    *file_out = file;
    return 0;
}

int wb_node_file_open(struct wb_node *node, const char *name, bool write, struct wb_node_file *file_out)
{
    return begin(node, name, WB_NODE_OPEN, write, file_out);
}

int wb_node_file_create(struct wb_node *node, const char *name, struct wb_node_file *file_out)
{
    return begin(node, name, WB_NODE_CREATE, false, file_out);
}

void wb_node_file_close(struct wb_node_file *file)
{
    struct wb_error_copy why;

    if (file->node) {
        wb_error_save(0, &why); /* callers close files after an error, whose message must stay */
        ask(file, WB_NODE_CLOSE);
        wb_node_close(file->node);
        wb_error_restore(&why);
    }
    wb_free(file->path);
    *file = WB_NODE_FILE_INIT;
}

int wb_node_file_claim(const struct wb_node_file *file)
{
    return ask(file, WB_NODE_CLAIM);
}

void wb_node_file_release(const struct wb_node_file *file)
{
    ask(file, WB_NODE_RELEASE);
}

int wb_node_file_read_at(const struct wb_node_file *file, uint64_t offset, void *bytes_out, size_t len, size_t *got_out)
{
    struct wb_node_request request = request_for(file, WB_NODE_READ);
    struct wb_node_reply reply;
    int err;

    *got_out = 0;
    do {
        size_t left = len - *got_out;
        request.offset = offset + *got_out;
        request.length = left < WB_NODE_BYTES_MAX ? left : WB_NODE_BYTES_MAX;
        request.into = (char *)bytes_out + *got_out;
        err = wb_node_call(file->node, &request, &reply);
        *got_out += err == 0 ? reply.bytes.len : 0;
    } while (err == 0 && *got_out < len && reply.bytes.len == request.length);
    return err;
}

int wb_node_file_read_exact(const struct wb_node_file *file, uint64_t offset, void *bytes_out, size_t len)
{
    size_t got;
    int err = wb_node_file_read_at(file, offset, bytes_out, len, &got);

    if (err == 0 && got != len)
        err = wb_fail(WB_E_CORRUPT, "%s ends at %llu, in the middle of a unit at %llu", file->path,
                      (unsigned long long)(offset + got), (unsigned long long)offset);
    return err;
}

int wb_node_file_write_at(const struct wb_node_file *file, uint64_t offset, const void *bytes, size_t len)
{
    struct wb_node_request request = request_for(file, WB_NODE_WRITE);
    struct wb_node_reply reply;
    size_t done = 0;
    int err = 0;

    while (err == 0 && done < len) {
        size_t left = len - done;
        request.offset = offset + done;
        request.bytes = wb_slice((const char *)bytes + done, left < WB_NODE_BYTES_MAX ? left : WB_NODE_BYTES_MAX);
        err = wb_node_call(file->node, &request, &reply);
        done += request.bytes.len;
    }
    return err;
}

int wb_node_file_sync(const struct wb_node_file *file)
{
    return ask(file, WB_NODE_SYNC);
}

int wb_node_file_truncate(const struct wb_node_file *file, uint64_t size)
{
    struct wb_node_request request = request_for(file, WB_NODE_TRUNCATE);
    struct wb_node_reply reply;

    request.offset = size;
    return wb_node_call(file->node, &request, &reply);
}

int wb_node_file_size(const struct wb_node_file *file, uint64_t *size_out)
{
    struct wb_node_request request = request_for(file, WB_NODE_SIZE);
    struct wb_node_reply reply;
    int err = wb_node_call(file->node, &request, &reply);

    *size_out = err == 0 ? reply.size : 0;
    return err;
}

int wb_node_file_remove(const struct wb_node_file *file)
{
    return ask(file, WB_NODE_REMOVE);
}

void wb_node_file_hint(const struct wb_node_file *file, enum wb_node_hint hint, uint64_t offset, uint64_t len)
{
    struct wb_node_request request = request_for(file, WB_NODE_HINT);
    struct wb_node_reply reply;

    request.hint = hint;
    request.offset = offset;
    request.length = len;
    wb_node_call(file->node, &request, &reply);
}
