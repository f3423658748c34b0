/*
 * execsink.c - records on the standard input of a command, so that programs in any language can take part.
 *
 * A full pipe makes us wait for the command, which is how a slow consumer slows the stream. The command may end early:
 * with status 0 it had enough, with any other it failed.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/stop.h"
#include "stream/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITE_AT = 64 << 10 }; /* bytes that are collected before they are written */

#define EXEC_MAGIC 0x57425845u

struct exec_sink {
    struct wb_stream_sink base; /* must be the first member */
    uint32_t magic;             /* EXEC_MAGIC until it is closed */
    char *command;
    struct wb_stream_pen *pen;
    struct wb_buf out;
    int pipe;    /* -1: closed */
    pid_t child; /* 0: has been waited for */
    int status;
};

/* Waits for the command. 0 if it ended well. */
static int wait_for(struct exec_sink *sink)
{
    while (sink->child && waitpid(sink->child, &sink->status, 0) < 0)
        if (errno != EINTR)
            return wb_fail_errno("cannot wait for the command '%s'", sink->command);
    sink->child = 0;
    if (WIFSIGNALED(sink->status))
        return wb_fail(WB_E_INVALID, "the command '%s' was ended by signal %d", sink->command, WTERMSIG(sink->status));
    if (WEXITSTATUS(sink->status) != 0)
        return wb_fail(WB_E_INVALID, "the command '%s' ended with status %d", sink->command, WEXITSTATUS(sink->status));
    return 0;
}

/* The command reads no more. */
static int gone(struct exec_sink *sink)
{
    WB_CHECK(sink->pipe >= 0 && sink->child > 0);
    close(sink->pipe);
    sink->pipe = -1;
    int err = wait_for(sink);
    return err < 0 ? err : WB_SINK_ENOUGH;
}

/* Writes all of it; while the pipe is full, a signal to us is seen within a second. */
static int write_all(struct exec_sink *sink)
{
    size_t done = 0;

    while (done < sink->out.len) {
        ssize_t n = write(sink->pipe, sink->out.ptr + done, sink->out.len - done);
        if (n >= 0) {
            done += (size_t)n;
            continue;
        }
        if (errno == EPIPE)
            return gone(sink);
        if (errno != EAGAIN && errno != EINTR)
            return wb_fail_errno("cannot write to the command '%s'", sink->command);
        struct pollfd wait = {.fd = sink->pipe, .events = POLLOUT};
        if (poll(&wait, 1, 1000) == 0 && wb_stop_requested())
            return wb_fail(WB_E_STOPPED, "stopped by a signal");
    }
    wb_buf_clear(&sink->out);
    return 0;
}

static struct exec_sink *exec_of(struct wb_stream_sink *base)
{
    WB_CHECK(((const struct exec_sink *)base)->magic == EXEC_MAGIC);
    return (struct exec_sink *)base;
}

static int begin(struct wb_stream_sink *base, const struct wb_stream_info *info)
{
    (void)base;
    (void)info;
    return 0;
}

static int take_record(struct wb_stream_sink *base, const struct wb_stream_record *record)
{
    struct exec_sink *sink = exec_of(base);
    int err = wb_stream_pen_write(sink->pen, record, &sink->out);

    return err < 0 ? err : sink->out.len >= WRITE_AT ? write_all(sink) : 0;
}

static int flush(struct wb_stream_sink *base)
{
    struct exec_sink *sink = exec_of(base);

    return sink->pipe < 0 ? WB_SINK_ENOUGH : write_all(sink);
}

/* The command sees the end of its input, and may take its time with what it has. */
static int end(struct wb_stream_sink *base)
{
    struct exec_sink *sink = exec_of(base);

    if (sink->pipe >= 0)
        close(sink->pipe);
    sink->pipe = -1;
    return sink->child ? wait_for(sink) : 0;
}

static void close_exec(struct wb_stream_sink *base)
{
    struct exec_sink *sink = exec_of(base);
    struct wb_error_copy copy;

    wb_error_save(0, &copy);
    (void)end(base); /* the stream has failed already, if the command is still there */
    wb_stream_pen_free(sink->pen);
    wb_buf_release(&sink->out);
    wb_free(sink->command);
    sink->magic = 0;
    wb_free(sink);
    wb_error_restore(&copy);
}

/* In the child: the command gets the pipe, and signals as they usually are. */
static void run_command(const char *command, int input)
{
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (dup2(input, STDIN_FILENO) < 0)
        _exit(126);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static int start(struct exec_sink *sink)
{
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return wb_fail_errno("cannot make a pipe for the command '%s'", sink->command);
    sink->child = fork();
    if (sink->child == 0)
        run_command(sink->command, ends[0]);
    close(ends[0]);
    if (sink->child < 0) {
        sink->child = 0;
        close(ends[1]);
        return wb_fail_errno("cannot start the command '%s'", sink->command);
    }
    sink->pipe = ends[1];
    int flags = fcntl(sink->pipe, F_GETFL);
    if (flags < 0 || fcntl(sink->pipe, F_SETFL, flags | O_NONBLOCK) < 0)
        return wb_fail_errno("cannot write to the command '%s'", sink->command);
    return 0;
}

int wb_exec_new(const char *command, enum wb_stream_format format, bool tokens, struct wb_stream_sink **sink_out)
{
    struct exec_sink *sink = wb_alloc_zero(1, sizeof(*sink));
    int err = sink ? 0 : WB_E_NOMEM;

    *sink_out = NULL;
    if (err < 0)
        return err;
    sink->base.kind = (struct wb_stream_sink_kind){.bodies = wb_stream_format_bodies(format),
                                                   .begin = begin,
                                                   .record = take_record,
                                                   .flush = flush,
                                                   .end = end,
                                                   .close = close_exec};
    sink->magic = EXEC_MAGIC;
    sink->pipe = -1;
    sink->command = wb_strdup(command);
    err = sink->command ? wb_stream_pen_new(format, tokens, &sink->pen) : WB_E_NOMEM;
    if (err == 0)
        err = start(sink);
    if (err < 0) {
        close_exec(&sink->base);
        return err;
    }
    *sink_out = &sink->base;
    return 0;
}
