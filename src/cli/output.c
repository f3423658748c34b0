/*
 * output.c - standard output, whose errors are reported like all others: a full disk behind a redirection must not look
 * like success.
 *
 * Nothing here blocks in write(): poll() first says whether the reader has room, and then no more is written than a
 * pipe takes at once. A signal is therefore noticed even while nobody reads, and a crawl need not wait at all
 * (wb_output_try).
 */
#include "cli/output.h"
#include "base/check.h"
#include "base/error.h"
#include "os/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 64 << 10,
    LOOK_MS = 100,      /* how often we look whether a signal came */
    PATIENCE_MS = 2000, /* how long we wait for a reader after a signal */
};

static bool gone;             /* the reader of standard output has closed the pipe */
static struct wb_buf pending; /* what was written and not flushed */
static struct wb_buf object;  /* the object under way */

static int fail_output(const char *name)
{
    return wb_fail_errno("cannot write to %s", name);
}

/* Regular files and disks are always ready, and poll() says nothing about them. */
static bool is_plain_file(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

int wb_output_try(int fd, const char *name, struct wb_slice bytes, int wait_ms, size_t *taken_out)
{
    bool plain = is_plain_file(fd);

    *taken_out = 0;
    while (*taken_out < bytes.len) {
        struct pollfd reader = {.fd = fd, .events = POLLOUT};
        size_t len = bytes.len - *taken_out;
        int ready = plain ? 1 : poll(&reader, 1, *taken_out ? 0 : wait_ms);
        if (ready < 0 && errno != EINTR)
            return fail_output(name);
        if (ready <= 0)
            return 0;
        /* A pipe that is ready has room for PIPE_BUF bytes. */
        ssize_t n = write(fd, bytes.ptr + *taken_out, plain || len < PIPE_BUF ? len : PIPE_BUF);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno != EINTR)
            return fail_output(name);
        *taken_out += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int wb_output_all(int fd, const char *name, struct wb_slice bytes)
{
    int waited = 0;

    while (bytes.len) {
        size_t taken;
        int err = wb_output_try(fd, name, bytes, LOOK_MS, &taken);
        if (err < 0)
            return err;
        bytes = wb_slice(bytes.ptr + taken, bytes.len - taken);
        waited = taken || !wb_stop_requested() ? 0 : waited + LOOK_MS;
        if (waited >= PATIENCE_MS)
            return wb_fail(WB_E_STOPPED, "stopped by a signal while nobody read %s", name);
    }
    return 0;
}

/* Writes to standard output, and remembers if the reader is gone. */
static int write_all(struct wb_slice bytes)
{
    int err = wb_output_all(STDOUT_FILENO, "standard output", bytes);

    gone = gone || (err < 0 && errno == EPIPE);
    return err;
}

int wb_output_flush(void)
{
    int err = write_all(wb_buf_slice(&pending));

    wb_buf_clear(&pending);
    return err;
}

int wb_output_write(const void *bytes, size_t len)
{
    int err = 0;

    if (pending.len + len > BUFFER_BYTES)
        err = wb_output_flush();
    if (err == 0 && len > BUFFER_BYTES)
        return write_all(wb_slice(bytes, len));
    if (err == 0)
        err = wb_buf_append(&pending, bytes, len);
    /* People want to see lines as they come. */
    if (err == 0 && len && ((const char *)bytes)[len - 1] == '\n' && isatty(STDOUT_FILENO) == 1)
        err = wb_output_flush();
    return err;
}

int wb_output_printf(const char *format, ...)
{
    struct wb_buf text = WB_BUF_INIT;
    va_list args;

    va_start(args, format);
    int err = wb_buf_vprintf(&text, format, args);
    va_end(args);
    if (err == 0)
        err = wb_output_write(text.ptr, text.len);
    wb_buf_release(&text);
    return err;
}

void wb_output_clean(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            text[i] = '?';
        else if (c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0)
            text[i] = text[i + 1] = '?'; /* C1 controls in UTF-8 */
    }
}

const char *wb_output_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

int wb_output_text(struct wb_slice text)
{
    struct wb_buf copy = WB_BUF_INIT;

    int err = wb_buf_append_slice(&copy, text);
    if (err == 0) {
        wb_output_clean(copy.ptr, copy.len);
        err = wb_output_write(copy.ptr, copy.len);
    }
    wb_buf_release(&copy);
    return err;
}

int wb_output_finding(const char *kind, const char *file, uint64_t offset, const char *message)
{
    int err = wb_output_printf("%s: %s at %" PRIu64 ": ", kind, file, offset);

    if (err == 0)
        err = wb_output_text(wb_slice_str(message));
    return err < 0 ? err : wb_output_write("\n", 1);
}

int wb_output_lines(struct wb_buf *lines)
{
    int err = wb_output_write(lines->ptr, lines->len);

    wb_buf_clear(lines);
    return err < 0 ? err : wb_output_flush();
}

void wb_output_object_begin(struct wb_json *j, const char *event)
{
    wb_buf_clear(&object);
    wb_json_init(j, &object);
    wb_json_object(j);
    if (event)
        wb_json_field_str(j, "event", event);
}

int wb_output_object_end(struct wb_json *j)
{
    int err = wb_output_object_queue(j);

    return err < 0 ? err : wb_output_flush();
}

int wb_output_object_queue(struct wb_json *j)
{
    WB_CHECK(j->buf == &object);
    wb_json_object_end(j);
    int err = wb_json_line(j);
    if (err == 0)
        err = wb_output_write(object.ptr, object.len);
    wb_buf_clear(&object);
    return err;
}

bool wb_output_gone(void)
{
    return gone;
}
