/* s3_support.c - a small object store: one thread for each connection, objects in memory. */
#include "s3_support.h"

#include "base/codec.h"
#include "base/date.h"
#include "object/objectkind.h"
#include "object/s3_sign.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_MAX = 32 << 10, FIELDS_MAX = 32, BODY_MAX = 4 << 20 };

/* A request as it came; all texts end with NUL. */
struct heard {
    struct stand *stand;
    int fd;
    char head[HEAD_MAX], line[2048];
    char *method, *path, *query;
    struct {
        char *name, *value;
    } fields[FIELDS_MAX];
    size_t field_count;
    char *body, *key;
    size_t len;
};

static void fail_stand(const char *what)
{
    fprintf(stderr, "the object store of the test: %s\n", what);
    abort();
}

static const char *field(const struct heard *h, const char *name)
{
    for (size_t i = 0; i < h->field_count; i++)
        if (strcasecmp(h->fields[i].name, name) == 0)
            return h->fields[i].value;
    return NULL;
}

/* ---- hearing ----------------------------------------------------------------------------------------------- */

/* Decodes %XX in place. */
static void decode(char *text)
{
    char *to = text;

    for (const char *p = text; *p; p++)
        if (*p == '%' && wb_hex_digit(p[1]) >= 0 && wb_hex_digit(p[2]) >= 0) {
            *to++ = (char)(wb_hex_digit(p[1]) * 16 + wb_hex_digit(p[2]));
            p += 2;
        } else {
            *to++ = *p;
        }
    *to = '\0';
}

/* Reads one byte after the other up to the empty line. False: the client has gone. */
static bool hear_head(struct heard *h)
{
    size_t len = 0;

    while (len < 4 || memcmp(h->head + len - 4, "\r\n\r\n", 4) != 0) {
        if (len == HEAD_MAX - 1 || recv(h->fd, h->head + len, 1, 0) != 1)
            return false;
        len++;
    }
    h->head[len - 2] = '\0';
    return true;
}

static void split_head(struct heard *h)
{
    char *rest = h->head, *end = strstr(rest, "\r\n");

    *end = '\0';
    snprintf(h->line, sizeof h->line, "%.*s", (int)strlen(rest) - (int)strlen(" HTTP/1.1"), rest);
    h->method = strtok_r(rest, " ", &rest);
    h->path = strtok_r(NULL, " ", &rest);
    if (!h->path)
        fail_stand("no path");
    h->query = strchr(h->path, '?');
    if (h->query)
        *h->query++ = '\0';
    else
        h->query = "";
    h->field_count = 0;
    for (char *line = end + 2; *line && h->field_count < FIELDS_MAX; line = end + 2) {
        end = strstr(line, "\r\n");
        if (!end)
            break;
        *end = '\0';
        char *colon = strchr(line, ':');
        if (!colon)
            fail_stand("a field without a colon");
        *colon = '\0';
        h->fields[h->field_count].name = line;
        h->fields[h->field_count++].value = colon + 1 + strspn(colon + 1, " ");
    }
}

static bool hear_body(struct heard *h)
{
    const char *length = field(h, "content-length");
    size_t got = 0;

    h->len = length ? strtoul(length, NULL, 10) : 0;
    if (h->len > BODY_MAX || field(h, "expect") || field(h, "transfer-encoding"))
        fail_stand("a request that S3 would not like");
    h->body = malloc(h->len + 1);
    while (h->body && got < h->len) {
        ssize_t n = recv(h->fd, h->body + got, h->len - got, 0);
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return h->body != NULL;
}

/* ---- signatures -------------------------------------------------------------------------------------------- */

/* Whether the request is signed for what has arrived. */
static bool is_signed(const struct heard *h)
{
    const struct stand *stand = h->stand;
    const char *authorization = field(h, "authorization"), *date = field(h, "x-amz-date");
    const char *payload = field(h, "x-amz-content-sha256"), *token = field(h, "x-amz-security-token");
    char names[512], hex[WB_S3_SHA256_HEX], *rest = names;
    struct wb_s3_field fields[FIELDS_MAX];
    size_t count = 0;

    if (!authorization || !date || !payload || !strstr(authorization, "SignedHeaders="))
        return false;
    if (wb_s3_sha256(wb_slice(h->body, h->len), hex) < 0 || strcmp(hex, payload) != 0)
        return false;
    if ((token != NULL) != (stand->token != NULL) || (token && strcmp(token, stand->token) != 0))
        return false;
    snprintf(names, sizeof names, "%s", strstr(authorization, "SignedHeaders=") + strlen("SignedHeaders="));
    names[strcspn(names, ",")] = '\0';
    for (char *name = strtok_r(rest, ";", &rest); name; name = strtok_r(NULL, ";", &rest))
        fields[count++] = (struct wb_s3_field){name, field(h, name)};
    for (size_t i = 0; i < h->field_count; i++)
        if (strncmp(h->fields[i].name, "x-amz-", 6) == 0 || strcmp(h->fields[i].name, "host") == 0) {
            bool among = false;
            for (size_t k = 0; k < count; k++)
                among |= strcmp(fields[k].name, h->fields[i].name) == 0;
            if (!among)
                return false;
        }
    struct wb_s3_signing signing = {
        .access = stand->access,
        .secret = STAND_SECRET,
        .region = "us-east-1",
        .date = date,
        .method = h->method,
        .path = h->path,
        .query = h->query,
        .fields = fields,
        .field_count = count,
        .payload = payload,
    };
    struct wb_buf want = WB_BUF_INIT;
    bool equal = wb_s3_sign(&signing, &want) == 0 && wb_slice_equal(wb_buf_slice(&want), wb_slice_str(authorization));
    wb_buf_release(&want);
    return equal;
}

/* ---- answers ----------------------------------------------------------------------------------------------- */

static void say(const struct heard *h, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(h->fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

static void answer(const struct heard *h, int status, const char *more, const char *body, size_t len, size_t sent)
{
    char head[1024], date[WB_DATE_HTTP_BYTES + 1] = "";

    wb_date_format_http(wb_clock_wall_ms() + h->stand->date_shift_ms, date);
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d x\r\nDate: %s\r\nContent-Length: %zu\r\n%s\r\n", status, date, len,
                     more);
    say(h, head, (size_t)n);
    if (strcmp(h->method, "HEAD") != 0)
        say(h, body, sent);
}

static void refuse(const struct heard *h, int status, const char *code, const char *more)
{
    char xml[1024];

    int n = snprintf(xml, sizeof xml,
                     "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>a &amp; b</Message>%s</Error>", code,
                     more ? more : "");
    answer(h, status, "Content-Type: application/xml\r\n", xml, (size_t)n, (size_t)n);
}

static size_t place_of(const struct stand *stand, const char *key)
{
    size_t i = 0;

    while (i < stand->object_count && strcmp(stand->objects[i].key, key) < 0)
        i++;
    return i;
}

static struct stand_object *find(const struct stand *stand, const char *key)
{
    size_t i = place_of(stand, key);

    return i < stand->object_count && strcmp(stand->objects[i].key, key) == 0 ? &stand->objects[i] : NULL;
}

static void store(struct heard *h)
{
    struct stand *stand = h->stand;
    struct stand_object *object = find(stand, h->key);

    if (object) {
        free(object->bytes);
    } else {
        size_t at = place_of(stand, h->key);
        stand->objects = realloc(stand->objects, (stand->object_count + 1) * sizeof *stand->objects);
        if (!stand->objects)
            fail_stand("no memory");
        object = &stand->objects[at];
        memmove(object + 1, object, (stand->object_count++ - at) * sizeof *object);
        object->key = strdup(h->key);
    }
    object->bytes = h->body;
    object->len = h->len;
    h->body = NULL;
}

static void erase(struct stand *stand, const char *key)
{
    struct stand_object *object = find(stand, key);

    if (!object)
        return;
    free(object->key);
    free(object->bytes);
    memmove(object, object + 1, (size_t)(stand->objects + --stand->object_count - object) * sizeof *object);
}

static void answer_get(const struct heard *h, const struct act *act)
{
    const struct stand_object *object = find(h->stand, h->key);
    unsigned long long start = 0, end;
    const char *range = field(h, "range");
    char more[128] = "";

    if (!object) {
        refuse(h, 404, "NoSuchKey", NULL);
        return;
    }
    end = object->len;
    if (range && sscanf(range, "bytes=%llu-%llu", &start, &end) == 2) {
        if (start >= object->len) {
            refuse(h, 416, "InvalidRange", NULL);
            return;
        }
        end = end + 1 < object->len ? end + 1 : object->len;
        snprintf(more, sizeof more, "Content-Range: bytes %llu-%llu/%zu\r\n", start, end - 1, object->len);
    }
    size_t len = (size_t)(end - start);
    answer(h, range ? 206 : 200, more, object->bytes + start, len, act->kind == ACT_CUT ? len / 2 : len);
}

/* The value of a parameter, decoded, into text; empty if there is none. */
static void parameter(const struct heard *h, const char *name, char text[1024])
{
    const char *p = h->query;
    size_t len = strlen(name);

    *text = '\0';
    for (; *p; p += strcspn(p, "&"), p += *p == '&')
        if (strncmp(p, name, len) == 0 && p[len] == '=')
            snprintf(text, 1024, "%.*s", (int)strcspn(p + len + 1, "&"), p + len + 1);
    decode(text);
}

static void answer_list(const struct heard *h, const struct act *act)
{
    const struct stand *stand = h->stand;
    char prefix[1024], after[1024], *xml = malloc(1 << 20);
    unsigned count = 0, i;
    int n = 0;

    if (!xml)
        fail_stand("no memory");
    parameter(h, "prefix", prefix);
    parameter(h, "continuation-token", after);
    n += sprintf(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3\">"
                      "<EncodingType>url</EncodingType>");
    for (i = 0; i < stand->object_count; i++) {
        const struct stand_object *object = &stand->objects[i];
        if (strncmp(object->key, prefix, strlen(prefix)) != 0 || strcmp(object->key, after) <= 0)
            continue;
        if (count++ == stand->page_max)
            break;
        n += sprintf(xml + n, "<Contents><Key>");
        for (const char *p = object->key; *p; p++)
            n += wb_ascii_is_letter(*p) || wb_ascii_is_digit(*p) ? sprintf(xml + n, "%c", *p)
                                                                 : sprintf(xml + n, "%%%02X", (unsigned char)*p);
        n += sprintf(xml + n, "</Key><Owner><ID>o</ID></Owner><Size>%zu</Size></Contents>", object->len);
    }
    n += sprintf(xml + n, "<IsTruncated>%s</IsTruncated>", i < stand->object_count ? "true" : "false");
    if (i < stand->object_count && i > 0) {
        n += sprintf(xml + n, "<NextContinuationToken>");
        for (const char *p = stand->objects[i - 1].key; *p; p++)
            n += *p == '&' ? sprintf(xml + n, "&amp;") : sprintf(xml + n, "%c", *p);
        n += sprintf(xml + n, "</NextContinuationToken>");
    }
    n += sprintf(xml + n, "</ListBucketResult>");
    answer(h, 200, "", xml, (size_t)n, act->kind == ACT_CUT ? (size_t)n / 2 : (size_t)n);
    free(xml);
}

static void answer_well(struct heard *h, const struct act *act)
{
    char *bucket = h->path + 1, *key = strchr(bucket, '/');
    bool lost = act->kind == ACT_LOST;

    decode(h->path);
    h->key = key ? key + 1 : NULL;
    if (strncmp(bucket, "bucket", 6) != 0 || (bucket[6] && bucket[6] != '/')) {
        refuse(h, 404, "NoSuchBucket", NULL);
    } else if (!h->key) {
        answer_list(h, act);
    } else if (strcmp(h->method, "PUT") == 0) {
        store(h);
        if (!lost)
            answer(h, 200, "ETag: \"x\"\r\n", "", 0, 0);
    } else if (strcmp(h->method, "DELETE") == 0) {
        erase(h->stand, h->key);
        if (!lost)
            say(h, "HTTP/1.1 204 x\r\n\r\n", 18);
    } else {
        answer_get(h, act);
    }
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

static void reset(int fd)
{
    struct linger linger = {1, 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

/* Takes note of a request, and says what happens to it. With the lock. */
static struct act decide(struct heard *h)
{
    struct stand *stand = h->stand;
    struct act act = stand->acted < stand->act_count ? stand->acts[stand->acted++] : stand->rest;

    if (stand->requests < COUNT(stand->targets))
        snprintf(stand->targets[stand->requests], sizeof stand->targets[0], "%.500s", h->line);
    stand->requests++;
    stand->running++;
    if (stand->running > stand->running_most)
        stand->running_most = stand->running;
    while (stand->holding)
        pthread_cond_wait(&stand->changed, &stand->mutex);
    if ((act.kind == ACT_WELL || act.kind == ACT_LOST || act.kind == ACT_CUT) && !stand->trusting && !is_signed(h)) {
        stand->bad++;
        act = (struct act){.kind = ACT_STATUS, .status = 403, .code = "SignatureDoesNotMatch"};
    }
    return act;
}

/* Answers one request. False: the connection ends. */
static bool serve(struct heard *h)
{
    struct stand *stand = h->stand;
    char one;

    pthread_mutex_lock(&stand->mutex);
    struct act act = decide(h);
    if (act.kind == ACT_STATUS)
        refuse(h, act.status, act.code, act.canned);
    else if (act.kind == ACT_CANNED)
        say(h, act.canned, strlen(act.canned));
    else if (act.kind != ACT_RESET && act.kind != ACT_SILENT)
        answer_well(h, &act);
    if (act.kind == ACT_RESET || act.kind == ACT_LOST)
        reset(h->fd);
    stand->running--;
    pthread_cond_broadcast(&stand->changed);
    pthread_mutex_unlock(&stand->mutex);
    if (act.kind == ACT_SILENT) {
        wb_clock_shift(0, stand->clock_shift_ms);
        recv(h->fd, &one, 1, 0); /* until the client has given up */
    }
    return act.kind == ACT_WELL || act.kind == ACT_STATUS;
}

struct connection {
    struct stand *stand;
    int fd;
};

static void *serve_connection(void *context)
{
    struct connection *connection = context;
    struct stand *stand = connection->stand;
    struct heard *h = malloc(sizeof *h);
    int fd = connection->fd;
    bool more = h != NULL;

    free(connection);
    while (more) {
        memset(h, 0, sizeof *h);
        h->stand = stand;
        h->fd = fd;
        more = hear_head(h);
        if (more)
            split_head(h);
        more = more && hear_body(h) && serve(h);
        free(h->body);
    }
    free(h);
    pthread_mutex_lock(&stand->mutex);
    for (unsigned i = 0; i < COUNT(stand->sockets); i++)
        if (stand->sockets[i] == fd)
            stand->sockets[i] = -1;
    close(fd);
    stand->open--;
    pthread_cond_broadcast(&stand->changed);
    pthread_mutex_unlock(&stand->mutex);
    return NULL;
}

static void *serve_all(void *context)
{
    struct stand *stand = context;
    int fd, on = 1;

    while ((fd = accept(stand->listener, NULL, NULL)) >= 0) {
        struct connection *connection = malloc(sizeof *connection);
        pthread_t thread;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_mutex_lock(&stand->mutex);
        unsigned i = 0;
        while (i < COUNT(stand->sockets) && stand->sockets[i] >= 0)
            i++;
        if (!connection || i == COUNT(stand->sockets))
            fail_stand("too many connections");
        stand->sockets[i] = fd;
        stand->open++;
        stand->connections++;
        pthread_mutex_unlock(&stand->mutex);
        *connection = (struct connection){stand, fd};
        if (pthread_create(&thread, NULL, serve_connection, connection) != 0)
            fail_stand("no thread");
        pthread_detach(thread);
    }
    return NULL;
}

/* ---- the stand --------------------------------------------------------------------------------------------- */

void stand_start(struct stand *stand)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    memset(stand, 0, sizeof *stand);
    stand->page_max = 3;
    stand->access = STAND_ACCESS;
    for (unsigned i = 0; i < COUNT(stand->sockets); i++)
        stand->sockets[i] = -1;
    pthread_mutex_init(&stand->mutex, NULL);
    pthread_cond_init(&stand->changed, NULL);
    stand->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(stand->listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(stand->listener, 64) != 0 ||
        getsockname(stand->listener, (struct sockaddr *)&address, &len) != 0 ||
        pthread_create(&stand->thread, NULL, serve_all, stand) != 0)
        fail_stand("cannot listen");
    stand->port = ntohs(address.sin_port);
}

void stand_stop(struct stand *stand)
{
    shutdown(stand->listener, SHUT_RDWR);
    pthread_join(stand->thread, NULL);
    close(stand->listener);
    pthread_mutex_lock(&stand->mutex);
    stand->holding = false;
    pthread_cond_broadcast(&stand->changed);
    for (unsigned i = 0; i < COUNT(stand->sockets); i++)
        if (stand->sockets[i] >= 0)
            shutdown(stand->sockets[i], SHUT_RDWR);
    while (stand->open)
        pthread_cond_wait(&stand->changed, &stand->mutex);
    while (stand->object_count)
        erase(stand, stand->objects[0].key);
    free(stand->objects);
    pthread_mutex_unlock(&stand->mutex);
    pthread_cond_destroy(&stand->changed);
    pthread_mutex_destroy(&stand->mutex);
}

void stand_next(struct stand *stand, struct act act)
{
    pthread_mutex_lock(&stand->mutex);
    if (stand->acted == stand->act_count)
        stand->acted = stand->act_count = 0;
    assert_true(stand->act_count < COUNT(stand->acts));
    stand->acts[stand->act_count++] = act;
    pthread_mutex_unlock(&stand->mutex);
}

void clear_environment(void)
{
    static const char *const names[] = {
        "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID",  "AWS_SECRET_ACCESS_KEY",       "AWS_SESSION_TOKEN", "AWS_REGION",
        "AWS_PROFILE",      "AWS_DEFAULT_REGION", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE",     "http_proxy",
    };

    for (size_t i = 0; i < COUNT(names); i++)
        unsetenv(names[i]);
}

void stand_environment(const struct stand *stand)
{
    char endpoint[64];

    clear_environment();
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", stand->port);
    setenv("AWS_ENDPOINT_URL", endpoint, 1);
    setenv("AWS_ACCESS_KEY_ID", STAND_ACCESS, 1);
    setenv("AWS_SECRET_ACCESS_KEY", STAND_SECRET, 1);
}

struct wb_object_store *stand_open(const struct stand *stand, const char *url)
{
    struct wb_object_store *store_opened;

    stand_environment(stand);
    ok(wb_object_open(url, NULL, &store_opened));
    return store_opened;
}

size_t stand_count(struct stand *stand)
{
    pthread_mutex_lock(&stand->mutex);
    size_t count = stand->object_count;
    pthread_mutex_unlock(&stand->mutex);
    return count;
}

bool stand_has(struct stand *stand, const char *key, const char *bytes)
{
    pthread_mutex_lock(&stand->mutex);
    const struct stand_object *object = find(stand, key);
    bool has = object && wb_slice_equal(wb_slice(object->bytes, object->len), wb_slice_str(bytes));
    pthread_mutex_unlock(&stand->mutex);
    return has;
}

unsigned stand_requests(struct stand *stand)
{
    pthread_mutex_lock(&stand->mutex);
    unsigned requests = stand->requests;
    pthread_mutex_unlock(&stand->mutex);
    return requests;
}

void stand_quiet(struct stand *stand)
{
    pthread_mutex_lock(&stand->mutex);
    while (stand->running)
        pthread_cond_wait(&stand->changed, &stand->mutex);
    pthread_mutex_unlock(&stand->mutex);
}

static void skip_pause(int64_t length_ms)
{
    wb_clock_shift(0, length_ms);
}

void pauses_skip(void)
{
    wb_object_pausing = skip_pause;
}

void pauses_take_time(void)
{
    wb_object_pausing = NULL;
}
