/*
 * bench_web.c - measures how many pages per second a web server on loopback serves to a client
 * that does nothing with them.
 *
 *   bench_web PORT CONNECTIONS REQUESTS SERVER-PID [gzip]  <  lines "HOST PATH"
 *
 * Prints one JSON line: requests, bytes, seconds, and the server's CPU seconds, which show
 * what it could do with a core to itself. Bodies must have a Content-Length.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 65536
#define CONNECTIONS_MAX 1024

struct place {
    char *host, *path;
};

struct link {
    int fd;
    char in[HEAD_MAX];
    size_t len;    /* bytes of the head read so far */
    int64_t left;  /* bytes of the body left to read; -1: reading the head */
};

static struct place *places;
static size_t place_count, place_next;
static struct link *links;
static const char *port, *coding = "";
static uint64_t to_ask, asked, answered, bytes, failed;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_of(const char *pid)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, kernel = 0;

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f)) {
        const char *after = strrchr(line, ')');
        if (after)
            sscanf(after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel);
    }
    if (f)
        fclose(f);
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static void read_places(void)
{
    char line[4096];
    size_t room = 0;

    while (fgets(line, sizeof line, stdin)) {
        char *blank = strchr(line, ' ');
        line[strcspn(line, "\n")] = 0;
        if (!blank)
            continue;
        *blank = 0;
        if (place_count == room)
            places = realloc(places, (room = room * 2 + 1024) * sizeof *places);
        places[place_count++] = (struct place){strdup(line), strdup(blank + 1)};
    }
}

static int connect_to(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static void ask(struct link *l)
{
    char text[8192];
    const struct place *p = &places[place_next++ % place_count];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\n%s\r\n", p->path, p->host,
                     coding);

    l->len = 0;
    l->left = -1;
    asked++;
    if (send(l->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        failed++;
}

/* Returns true if the response is complete. */
static bool take(struct link *l, const char *data, size_t n)
{
    if (l->left < 0) {
        size_t room = HEAD_MAX - 1 - l->len, copied = n < room ? n : room;
        memcpy(l->in + l->len, data, copied);
        l->len += copied;
        l->in[l->len] = 0;
        const char *end = strstr(l->in, "\r\n\r\n"), *length = strcasestr(l->in, "\ncontent-length:");
        if (!end)
            return false;
        l->left = (length && length < end ? atoll(length + 16) : 0) - (int64_t)(l->in + l->len - end - 4);
    } else
        l->left -= (int64_t)n;
    return l->left <= 0;
}

static void serve_event(int epoll, struct link *l)
{
    static char data[262144];
    ssize_t n = recv(l->fd, data, sizeof data, 0);

    if (n <= 0) {
        failed++;
        close(l->fd);
        l->fd = connect_to();
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
        epoll_ctl(epoll, EPOLL_CTL_ADD, l->fd, &e);
        ask(l);
        return;
    }
    bytes += (uint64_t)n;
    if (take(l, data, (size_t)n)) {
        answered++;
        if (asked < to_ask)
            ask(l);
    }
}

int main(int argc, char **argv)
{
    struct epoll_event events[64];

    if (argc < 5 || atoi(argv[2]) < 1 || atoi(argv[2]) > CONNECTIONS_MAX) {
        fprintf(stderr, "bench_web PORT CONNECTIONS REQUESTS SERVER-PID [gzip] < lines of HOST PATH\n");
        return 2;
    }
    port = argv[1];
    int connections = atoi(argv[2]), epoll = epoll_create1(0);
    to_ask = strtoull(argv[3], NULL, 10);
    coding = argc > 5 ? "Accept-Encoding: gzip\r\n" : "";
    read_places();
    links = calloc((size_t)connections, sizeof *links);
    double cpu = cpu_of(argv[4]), start = now();
    for (int i = 0; i < connections; i++) {
        links[i].fd = connect_to();
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &links[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, links[i].fd, &e);
        ask(&links[i]);
    }
    while (answered + failed < to_ask) {
        int n = epoll_wait(epoll, events, 64, 10000);
        if (n <= 0)
            break;
        for (int i = 0; i < n; i++)
            serve_event(epoll, events[i].data.ptr);
    }
    double seconds = now() - start;
    cpu = cpu_of(argv[4]) - cpu;
    printf("{\"requests\":%llu,\"failed\":%llu,\"bytes\":%llu,\"seconds\":%.3f,\"server_cpu\":%.2f,"
           "\"pages_per_second\":%.0f,\"pages_per_cpu_second\":%.0f}\n",
           (unsigned long long)answered, (unsigned long long)failed, (unsigned long long)bytes, seconds, cpu,
           (double)answered / seconds, cpu > 0 ? (double)answered / cpu : 0.0);
    return failed ? 1 : 0;
}
