/*
 * control.c - sends the commands of an operator to the crawls that run on a repository. The other end is
 * controldoor.c. It never starts or ends a crawl, and changes nothing itself.
 */
#include "base/check.h"
#include "base/error.h"
#include "crawl/control.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000 }; /* for the answer of one crawl, which looks at its door at least every few seconds */

const char *wb_control_verb_word(enum wb_control_verb verb)
{
    static const char *const words[] = {[WB_CONTROL_PAUSE] = "pause", [WB_CONTROL_RESUME] = "resume",
                                        [WB_CONTROL_STOP] = "stop",   [WB_CONTROL_DELAY] = "delay",
                                        [WB_CONTROL_SITE] = "site",   [WB_CONTROL_STATUS] = "status"};

    WB_CHECK(verb >= WB_CONTROL_PAUSE && verb < WB_CONTROL_VERBS);
    return words[verb];
}

int wb_control_address(const char *dir, unsigned number, struct sockaddr_un *address_out, socklen_t *len_out)
{
    struct stat about;

    *address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    *len_out = 0;
    if (stat(dir, &about) < 0)
        return errno == ENOENT ? wb_fail(WB_E_NOTFOUND, "there is no repository in %s", dir) : wb_fail_errno("%s", dir);
    /* A name that starts with NUL is in no directory, and vanishes with the last process that holds the socket. */
    int len = snprintf(address_out->sun_path + 1, sizeof address_out->sun_path - 1, "webbase/%jx-%jx/%u",
                       (uintmax_t)about.st_dev, (uintmax_t)about.st_ino, number);
    WB_CHECK(len > 0 && (size_t)len < sizeof address_out->sun_path - 1);
    *len_out = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    return 0;
}

bool wb_control_trusts(int fd, uid_t owner)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    return peer.uid == 0 || peer.uid == geteuid() || peer.uid == owner;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Appends the name of the site in the form in which crawls know it. */
static int append_site(const char *text, struct wb_buf *packet)
{
    struct wb_buf href = WB_BUF_INIT, key = WB_BUF_INIT;
    struct wb_url url = {0};

    int err = wb_buf_printf(&href, "%s%s/", strstr(text, "://") ? "" : "http://", text);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&href), NULL, &url);
    if (err == 0)
        err = wb_url_is_http(&url) ? wb_url_key(&url, &key) : WB_E_INVALID;
    struct wb_slice name = err == 0 ? wb_key_site(wb_buf_slice(&key)) : WB_SLICE_EMPTY;
    if (err == 0 && name.len > WB_SITE_NAME_MAX)
        err = WB_E_INVALID;
    if (err == 0)
        err = wb_buf_append_slice(packet, name);
    else if (err != WB_E_NOMEM)
        err = wb_fail(WB_E_INVALID, "'%s' is not the name of a site", text);
    wb_buf_release(&href);
    wb_buf_release(&key);
    wb_url_release(&url);
    return err;
}

static int make_packet(const struct wb_control_command *command, struct wb_buf *packet)
{
    bool named = command->verb == WB_CONTROL_STOP || command->verb == WB_CONTROL_DELAY ||
                 command->verb == WB_CONTROL_SITE;

    WB_CHECK(!named || command->site);
    WB_CHECK(command->verb != WB_CONTROL_DELAY || command->delay_ms >= 0);
    int err = wb_buf_printf(packet, WB_CONTROL_PREFIX "%s", wb_control_verb_word(command->verb));
    if (err == 0 && named)
        err = wb_buf_append_str(packet, " ");
    if (err == 0 && named)
        err = append_site(command->site, packet);
    if (err == 0 && command->verb == WB_CONTROL_DELAY)
        err = wb_buf_printf(packet, " %" PRId64, command->delay_ms);
    return err;
}

/* ---- one crawl --------------------------------------------------------------------------------------------------- */

static int wait_for(int fd, short events, const char *dir)
{
    struct pollfd wait = {.fd = fd, .events = events};
    int got;

    do
        got = poll(&wait, 1, PATIENCE_MS);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return wb_fail_errno("the crawl on %s", dir);
    return got > 0 ? 0 : wb_fail(WB_E_BUSY, "the crawl on %s does not answer", dir);
}

/* Reads an answer: appends its JSON, or returns its error. */
static int read_answer(const char *dir, struct wb_slice packet, struct wb_buf *answer_out)
{
    struct wb_slice prefix = WB_SLICE_LIT(WB_CONTROL_PREFIX);
    const char *line = packet.len ? memchr(packet.ptr, '\n', packet.len) : NULL;

    if (!line || !wb_slice_starts(packet, prefix))
        return wb_fail(WB_E_PROTO, "the crawl on %s is of another version of webbase", dir);
    long code = strtol(packet.ptr + prefix.len, NULL, 10); /* the line end stops it */
    struct wb_slice text = wb_slice(line + 1, packet.len - (size_t)(line + 1 - packet.ptr));
    if (code == 0)
        return wb_buf_append_slice(answer_out, text);
    return wb_fail(code >= WB_E_STOPPED && code < 0 ? (int)code : WB_E_PROTO, "%.*s", WB_SLICE_ARG(text));
}

static int talk(int fd, const char *dir, struct wb_slice packet, struct wb_buf *answer_out)
{
    struct wb_buf answer = WB_BUF_INIT;
    ssize_t got = -1;

    int err = wait_for(fd, POLLOUT, dir);
    if (err == 0 && send(fd, packet.ptr, packet.len, MSG_NOSIGNAL) != (ssize_t)packet.len)
        err = wb_fail_errno("the crawl on %s", dir);
    if (err == 0)
        err = wait_for(fd, POLLIN, dir);
    if (err == 0)
        err = wb_buf_reserve(&answer, WB_CONTROL_ANSWER_MAX);
    if (err == 0) {
        got = recv(fd, answer.ptr, WB_CONTROL_ANSWER_MAX, 0);
        /* It ended while we were talking to it. */
        err = got > 0 ? 0 : wb_fail(WB_E_NOTFOUND, "no crawl is running on %s", dir);
    }
    if (err == 0)
        err = read_answer(dir, wb_slice(answer.ptr, (size_t)got), answer_out);
    wb_buf_release(&answer);
    return err;
}

/* Sends the packet through one door. 1: a crawl accepted it, 0: there is no crawl at this door, or an error. */
static int knock(const char *dir, unsigned number, struct wb_slice packet, struct wb_buf *answer_out)
{
    struct sockaddr_un address;
    struct stat about;
    socklen_t len;

    int err = wb_control_address(dir, number, &address, &len);
    if (err < 0)
        return err;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return wb_fail_errno("socket");
    if (connect(fd, (const struct sockaddr *)&address, len) < 0)
        err = errno == ECONNREFUSED ? 0 : errno == EAGAIN ? wb_fail(WB_E_BUSY, "the crawl on %s does not answer", dir)
                                                          : wb_fail_errno("the crawl on %s", dir);
    else if (stat(dir, &about) < 0 || !wb_control_trusts(fd, about.st_uid))
        err = wb_fail(WB_E_BUSY, "the crawl on %s is that of another user", dir);
    else
        err = (err = talk(fd, dir, packet, answer_out)) < 0 ? err : 1;
    close(fd);
    return err;
}

int wb_control_send(const char *dir, const struct wb_control_command *command, struct wb_buf *answer_out)
{
    struct wb_buf packet = WB_BUF_INIT;
    struct wb_error_copy failed = {0};
    bool accepted = false;

    int err = make_packet(command, &packet);
    for (unsigned i = 0; err == 0 && i < WB_CONTROL_DOORS_MAX; i++) {
        int got = knock(dir, i, wb_buf_slice(&packet), answer_out);
        accepted |= got > 0;
        if (got < 0 && failed.code == 0)
            wb_error_save(got, &failed);
    }
    wb_buf_release(&packet);
    if (err < 0 || accepted)
        return err;
    return failed.code < 0 ? wb_error_restore(&failed) : wb_fail(WB_E_NOTFOUND, "no crawl is running on %s", dir);
}

int wb_control_describe(const char *dir, struct wb_slice site, struct wb_buf *text_out)
{
    char name[WB_SITE_NAME_MAX + 1];
    struct wb_control_command command = {.verb = WB_CONTROL_SITE, .site = name};
    struct wb_buf answer = WB_BUF_INIT;

    if (site.len > WB_SITE_NAME_MAX)
        return 0;
    snprintf(name, sizeof name, "%.*s", WB_SLICE_ARG(site));
    int err = wb_control_send(dir, &command, &answer);
    if (err == 0)
        err = wb_buf_terminate(&answer);
    if (err < 0) {
        wb_buf_release(&answer);
        return err == WB_E_NOMEM ? err : 0;
    }
    const char *delay = strstr(answer.ptr, "\"delay\":");
    double seconds = delay ? strtod(delay + strlen("\"delay\":"), NULL) : 0;
    if (seconds > 0)
        err = wb_buf_printf(text_out, "; 'webbase control' slowed it down to a request every %g s", seconds);
    if (err == 0 && strstr(answer.ptr, "\"paused\":true"))
        err = wb_buf_append_str(text_out, "; the crawl is paused");
    wb_buf_release(&answer);
    return err;
}
