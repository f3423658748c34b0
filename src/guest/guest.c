/*
 * guest.c - starts a guest, asks it, and ends it when it misbehaves. It never reads what an answer says
 * (guestanswer.c), and runs no foreign code.
 *
 *   none -> start_process() -> running -> wb_guest_ask() ... -> end_process() -> none
 *
 * While it waits it looks at the memory of the guest from time to time: the limit that the kernel keeps makes
 * allocations fail, and a module that does not mind would only be slow.
 */
#include "guest/guest.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "guest/guestwire.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUEST_MAGIC = 0x47554553, LOOK_MS = 20, START_S = 60, END_MS = 2000, SIZE_MAX_ARG = 32 };

struct wb_guest {
    uint32_t magic;
    char *file, *argument; /* file: NULL for PDF */
    unsigned time_s;
    uint64_t memory_bytes;
    pid_t pid; /* 0: does not run */
    int socket;
    struct wb_buf types;
    struct wb_buf bytes; /* of what was received last */
};

static const char *program; /* NULL: this process cannot have guests */

void wb_guest_program(const char *path)
{
    program = path;
}

int wb_guest_new(const struct wb_guest_options *options, struct wb_guest **guest_out)
{
    struct wb_guest *g = wb_alloc_zero(1, sizeof *g);

    *guest_out = NULL;
    if (!g)
        return WB_E_NOMEM;
    WB_CHECK(options->time_s > 0 && options->memory_bytes > 0);
    *g = (struct wb_guest){
        .magic = GUEST_MAGIC, .time_s = options->time_s, .memory_bytes = options->memory_bytes, .socket = -1};
    g->file = options->file ? wb_strdup(options->file) : NULL;
    g->argument = wb_strdup(options->argument);
    if (!g->argument || (options->file && !g->file)) {
        wb_guest_free(g);
        return WB_E_NOMEM;
    }
    *guest_out = g;
    return 0;
}

/* ---- the process ------------------------------------------------------------------------------ */

/* Waits for a guest that has closed its socket, and ends one that goes on without. */
static void wait_end(pid_t pid, int *status_out, struct rusage *usage_out)
{
    int64_t until_ms = wb_clock_mono_ns() / 1000000 + END_MS;
    pid_t ended;

    while ((ended = wait4(pid, status_out, WNOHANG, usage_out)) == 0 && wb_clock_mono_ns() / 1000000 < until_ms)
        poll(NULL, 0, 1);
    if (ended != 0)
        return;
    kill(pid, SIGKILL);
    while (wait4(pid, status_out, 0, usage_out) < 0 && errno == EINTR)
        ;
    *status_out = 0; /* it was not the kernel's doing */
}

/* Ends the guest and finds out how it ended. killed: by us, for this reason; CRASH: it seems to have ended itself. */
static enum wb_guest_end end_process(struct wb_guest *g, enum wb_guest_end killed)
{
    struct rusage usage = {0};
    int status = 0;

    WB_CHECK(g->pid > 0);
    close(g->socket);
    g->socket = -1;
    if (killed != WB_GUEST_CRASH)
        kill(g->pid, SIGKILL);
    wait_end(g->pid, &status, &usage);
    g->pid = 0;
    if (killed != WB_GUEST_CRASH)
        return killed;
    int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    /* The kernel kills with SIGKILL if the machine has no memory left; SIGSYS: cage.c. */
    bool full = (uint64_t)usage.ru_maxrss * 1024 >= g->memory_bytes / 4 * 3;
    return full || by == SIGKILL || by == SIGSYS ? WB_GUEST_MEMORY : WB_GUEST_CRASH;
}

/* A guest without work ends itself when its socket is closed. */
static void leave_process(struct wb_guest *g)
{
    if (g->pid > 0)
        end_process(g, WB_GUEST_FAILED);
}

void wb_guest_free(struct wb_guest *g)
{
    if (!g)
        return;
    WB_CHECK(g->magic == GUEST_MAGIC);
    leave_process(g);
    g->magic = 0;
    wb_buf_release(&g->types);
    wb_buf_release(&g->bytes);
    wb_free(g->file);
    wb_free(g->argument);
    wb_free(g);
}

static int spawn(struct wb_guest *g, int theirs)
{
    char time[SIZE_MAX_ARG], memory[SIZE_MAX_ARG], name[] = WB_GUEST_NAME, none[] = "";
    char *argv[] = {name, g->file ? g->file : none, g->argument, time, memory, NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;

    if (!program)
        return wb_fail(WB_E_INVALID, "this program cannot start processes for modules");
    snprintf(time, sizeof time, "%u", g->time_s);
    snprintf(memory, sizeof memory, "%" PRIu64, g->memory_bytes);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&signals);
    int err = posix_spawn_file_actions_adddup2(&actions, theirs, WB_GUEST_SOCKET);
    for (int fd = 0; err == 0 && fd < 3; fd++)
        err = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    if (err == 0)
        err = posix_spawn_file_actions_addclosefrom_np(&actions, WB_GUEST_SOCKET + 1);
    if (err == 0)
        err = posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    if (err == 0)
        err = posix_spawnattr_setsigdefault(&attributes, &signals);
    if (err == 0)
        err = posix_spawnattr_setpgroup(&attributes, 0); /* Ctrl-C is for us, and we end the guest */
    if (err == 0)
        err = posix_spawnattr_setflags(&attributes,
                                       POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    if (err == 0)
        err = posix_spawn(&g->pid, program, &actions, &attributes, argv, env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (err == 0)
        return 0;
    g->pid = 0;
    errno = err;
    return wb_fail_errno("cannot start a process for modules");
}

static int start_process(struct wb_guest *g)
{
    int pair[2];

    WB_CHECK(g->pid == 0);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return wb_fail_errno("cannot make a socket for modules");
    /* posix_spawn() would leave the flag on a descriptor that is its own duplicate, and close it. */
    int theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, WB_GUEST_SOCKET + 1);
    close(pair[1]);
    int err = theirs < 0 ? wb_fail_errno("cannot make a socket for modules") : spawn(g, theirs);
    if (theirs >= 0)
        close(theirs);
    if (err < 0) {
        close(pair[0]);
        return err;
    }
    g->socket = pair[0];
    fcntl(g->socket, F_SETFL, O_NONBLOCK);
    return 0;
}

/* ---- sending and receiving --------------------------------------------------------------------- */

static bool eats_memory(const struct wb_guest *g)
{
    char path[64], text[128];
    unsigned long long pages = 0, resident = 0;

    snprintf(path, sizeof path, "/proc/%ld/statm", (long)g->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return sscanf(text, "%llu %llu", &pages, &resident) == 2 &&
           resident * (uint64_t)sysconf(_SC_PAGESIZE) > g->memory_bytes;
}

/* Waits until the socket is ready. */
static enum wb_guest_end wait_ready(const struct wb_guest *g, short events, int64_t until_ms)
{
    for (;;) {
        struct pollfd fd = {g->socket, events, 0};
        int64_t left = until_ms - wb_clock_mono_ns() / 1000000;
        if (poll(&fd, 1, left > LOOK_MS ? LOOK_MS : left > 0 ? (int)left : 0) > 0)
            return WB_GUEST_OK; /* also if the guest has ended: then reading says so */
        if (eats_memory(g))
            return WB_GUEST_MEMORY;
        if (left <= 0)
            return WB_GUEST_TIME;
    }
}

static enum wb_guest_end send_all(const struct wb_guest *g, struct wb_slice bytes, int64_t until_ms)
{
    enum wb_guest_end end = WB_GUEST_OK;

    while (end == WB_GUEST_OK && bytes.len > 0) {
        ssize_t sent = send(g->socket, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent >= 0)
            bytes = wb_slice(bytes.ptr + sent, bytes.len - (size_t)sent);
        else if (errno == EAGAIN)
            end = wait_ready(g, POLLOUT, until_ms);
        else if (errno != EINTR)
            end = WB_GUEST_CRASH;
    }
    return end;
}

static enum wb_guest_end receive_all(const struct wb_guest *g, char *to, size_t len, int64_t until_ms)
{
    enum wb_guest_end end = WB_GUEST_OK;

    while (end == WB_GUEST_OK && len > 0) {
        ssize_t got = recv(g->socket, to, len, 0);
        if (got > 0) {
            to += got;
            len -= (size_t)got;
        } else if (got < 0 && errno == EAGAIN) {
            end = wait_ready(g, POLLIN, until_ms);
        } else if (got == 0 || errno != EINTR) {
            end = WB_GUEST_CRASH;
        }
    }
    return end;
}

/* Receives a message into g->bytes. WB_E_NOMEM; *end_out says what else may have happened. */
static int receive(struct wb_guest *g, uint32_t max, int64_t until_ms, enum wb_guest_end *end_out)
{
    char head[4];
    int err = 0;

    wb_buf_trim(&g->bytes, (size_t)4 << 20);
    wb_buf_clear(&g->bytes);
    *end_out = receive_all(g, head, sizeof head, until_ms);
    uint32_t len = *end_out == WB_GUEST_OK ? wb_get32(head) : 0;
    if (*end_out == WB_GUEST_OK && (len == 0 || len > max))
        *end_out = WB_GUEST_FAILED;
    if (*end_out == WB_GUEST_OK)
        err = wb_buf_reserve(&g->bytes, len + 1);
    if (*end_out != WB_GUEST_OK || err < 0)
        return err;
    *end_out = receive_all(g, g->bytes.ptr, len, until_ms);
    g->bytes.len = *end_out == WB_GUEST_OK ? len : 0;
    return 0;
}

/* ---- asking ------------------------------------------------------------------------------------- */

static int64_t deadline(unsigned seconds)
{
    return wb_clock_mono_ns() / 1000000 + (int64_t)seconds * 1000;
}

/* The hello of a guest: its types, or why there is none. */
static int greet(struct wb_guest *g)
{
    const char *name = g->file ? g->file : "pdf";
    enum wb_guest_end end;
    int err = receive(g, WB_GUEST_HELLO_MAX, deadline(START_S), &end);

    if (err < 0)
        return err;
    if (end != WB_GUEST_OK)
        return wb_fail(WB_E_INVALID, "the module %s cannot be loaded: its process ended (%s)", name,
                       wb_guest_end_name(end_process(g, end)));
    struct wb_slice text = wb_slice(g->bytes.ptr + 1, g->bytes.len - 1);
    if (g->bytes.ptr[0] != 'Y')
        return wb_fail(WB_E_INVALID, "the module %s cannot be loaded: %.*s", name, WB_SLICE_ARG(text));
    if (text.len > WB_GUEST_TYPES_MAX || memchr(text.ptr, '\0', text.len))
        return wb_fail(WB_E_INVALID, "the module %s cannot be loaded: its list of types is too long", name);
    wb_buf_clear(&g->types);
    err = wb_buf_append_slice(&g->types, text);
    return err < 0 ? err : wb_buf_terminate(&g->types);
}

int wb_guest_start(struct wb_guest *g, const char **types_out)
{
    WB_CHECK(g->magic == GUEST_MAGIC);
    int err = 0;

    if (g->pid == 0) {
        err = start_process(g);
        if (err == 0)
            err = greet(g);
        if (err < 0)
            leave_process(g);
    }
    if (types_out)
        *types_out = err == 0 ? g->types.ptr : "";
    return err;
}

static enum wb_guest_end send_request(struct wb_guest *g, const struct wb_guest_request *r, int64_t until_ms)
{
    const struct wb_slice parts[] = {r->url, r->type, r->charset, r->body};
    size_t total = 0;
    char head[4];

    for (size_t i = 0; i < 4; i++)
        total += parts[i].len + 4;
    if (total > WB_GUEST_REQUEST_MAX)
        return WB_GUEST_FAILED;
    wb_put32(head, (uint32_t)total);
    enum wb_guest_end end = send_all(g, wb_slice(head, 4), until_ms);
    for (size_t i = 0; end == WB_GUEST_OK && i < 4; i++) {
        wb_put32(head, (uint32_t)parts[i].len);
        end = send_all(g, wb_slice(head, 4), until_ms);
        if (end == WB_GUEST_OK)
            end = send_all(g, parts[i], until_ms);
    }
    return end;
}

int wb_guest_ask(struct wb_guest *g, const struct wb_guest_request *request, struct wb_slice *answer_out,
                 enum wb_guest_end *end_out)
{
    *answer_out = WB_SLICE_EMPTY;
    *end_out = WB_GUEST_FAILED;
    int err = wb_guest_start(g, NULL);
    if (err < 0)
        return err;
    int64_t until_ms = deadline(g->time_s);
    *end_out = send_request(g, request, until_ms);
    if (*end_out == WB_GUEST_OK)
        err = receive(g, WB_GUEST_ANSWER_MAX, until_ms, end_out);
    if (err < 0 || *end_out != WB_GUEST_OK) {
        *end_out = end_process(g, err < 0 ? WB_GUEST_FAILED : *end_out);
        return err;
    }
    if (g->bytes.ptr[0] == 0)
        *answer_out = wb_slice(g->bytes.ptr + 1, g->bytes.len - 1);
    else
        *end_out = WB_GUEST_FAILED;
    return 0;
}
