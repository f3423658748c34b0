/*
 * access.c - who may do what. Reading is open as long as only this machine can connect, or --public was given;
 * everything else needs a token in the field Authorization. Tokens are compared in constant time.
 */
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/path.h"
#include "os/random.h"
#include "serve/server.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MADE_BYTES = 16, TOKEN_MIN = 8 };

static bool same(struct wb_slice a, struct wb_slice b)
{
    return a.len == b.len && a.len > 0 && CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* "Bearer TOKEN". Empty if there is none, or it is something else. */
static struct wb_slice bearer_of(const struct wb_http_request *request)
{
    static const char scheme[] = "bearer ";
    struct wb_slice value = wb_http_field(request, "Authorization");

    if (value.len < sizeof scheme - 1 || strncasecmp(value.ptr, scheme, sizeof scheme - 1) != 0)
        return WB_SLICE_EMPTY;
    return wb_slice_trim(wb_slice(value.ptr + sizeof scheme - 1, value.len - (sizeof scheme - 1)));
}

static const struct wb_serve_provider *find_provider(const struct wb_server *server, struct wb_slice token,
                                                     bool *operator_out)
{
    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    const struct wb_serve_options *o = server->options;
    const struct wb_serve_provider *found = NULL;

    *operator_out = same(token, wb_slice_str(server->token));
    for (size_t i = 0; i < o->provider_count; i++)
        if (same(token, o->providers[i].token))
            found = &o->providers[i];
    return found;
}

const struct wb_serve_provider *wb_access_provider(const struct wb_server *server,
                                                   const struct wb_http_request *request, bool *operator_out)
{
    return find_provider(server, bearer_of(request), operator_out);
}

/*
 * "Basic base64(NAME:TOKEN)", which browsers send after asking for a password. They send it with every request from
 * then on, also with those that pages of other sites make them send; so it is good for reading only.
 */
static bool has_password(const struct wb_server *server, const struct wb_http_request *request, bool of_operator)
{
    static const char scheme[] = "basic ";
    struct wb_slice value = wb_http_field(request, "Authorization");
    uint8_t text[4 * WB_SERVE_TOKEN_MAX];
    bool is_operator = false;

    if (value.len < sizeof scheme - 1 || strncasecmp(value.ptr, scheme, sizeof scheme - 1) != 0)
        return false;
    value = wb_slice_trim(wb_slice(value.ptr + sizeof scheme - 1, value.len - (sizeof scheme - 1)));
    if (value.len == 0 || value.len % 4 || value.len / 4 * 3 > sizeof text)
        return false;
    int len = EVP_DecodeBlock(text, (const uint8_t *)value.ptr, (int)value.len);
    while (len > 0 && text[len - 1] == '\0') /* the padding */
        len--;
    const uint8_t *colon = len > 0 ? memchr(text, ':', (size_t)len) : NULL;
    if (!colon)
        return false;
    struct wb_slice token = wb_slice((const char *)colon + 1, (size_t)(text + len - colon - 1));
    bool is_provider = find_provider(server, token, &is_operator) != NULL;
    return is_operator || (is_provider && !of_operator);
}

enum wb_stream_who wb_access_who(const struct wb_server *server, const struct wb_http_request *request)
{
    bool is_operator;

    if (!wb_own_names_trust(server, request))
        return WB_STREAM_STRANGER;
    return wb_access_provider(server, request, &is_operator) || is_operator ? WB_STREAM_OWNER : WB_STREAM_READER;
}

bool wb_access_has_token(const struct wb_server *server, const struct wb_http_request *request, bool *right_out)
{
    bool is_operator;
    bool is_provider = wb_access_provider(server, request, &is_operator) != NULL;

    *right_out = is_provider || is_operator || has_password(server, request, false);
    return wb_http_field(request, "Authorization").len > 0;
}

unsigned wb_access_check(const struct wb_server *server, const struct wb_http_request *request, enum wb_access access)
{
    WB_CHECK(access <= WB_ACCESS_OPERATOR);
    bool is_operator;
    bool is_provider = wb_access_provider(server, request, &is_operator) != NULL;

    if (access == WB_ACCESS_ANYONE || (access == WB_ACCESS_READER && server->reading_is_open) || is_operator)
        return 0;
    if (is_provider)
        return access == WB_ACCESS_OPERATOR || access == WB_ACCESS_WATCHER ? 403 : 0;
    bool by_password = access == WB_ACCESS_READER || access == WB_ACCESS_WATCHER;
    return by_password && has_password(server, request, access == WB_ACCESS_WATCHER) ? 0 : 401;
}

/* ---- the operator's token ------------------------------------------------------------------------ */

static int use(struct wb_server *server, struct wb_slice token, const char *where)
{
    WB_CHECK(!server->token[0]);
    if (token.len < TOKEN_MIN || token.len > WB_SERVE_TOKEN_MAX)
        return wb_fail(WB_E_INVALID, "%s: a token has %d to %d characters", where, TOKEN_MIN, WB_SERVE_TOKEN_MAX);
    memcpy(server->token, token.ptr, token.len);
    server->token[token.len] = '\0';
    return 0;
}

/* Only the owner may read the file. Of two servers that start at once, the one that creates it wins. */
static int make(struct wb_server *server, const char *path)
{
    uint8_t bytes[MADE_BYTES];
    char text[2 * MADE_BYTES + 2];
    struct wb_file file = WB_FILE_INIT;

    wb_random_bytes(bytes, sizeof bytes);
    wb_hex_encode(bytes, sizeof bytes, text);
    int err = use(server, wb_slice_str(text), path);
    strcat(text, "\n");
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW | WB_FILE_PRIVATE, &file);
    if (err == 0)
        err = wb_file_write_at(&file, 0, text, strlen(text));
    if (err == 0)
        err = wb_file_sync(&file);
    wb_file_close(&file);
    return err;
}

/* Where nothing can be written, there is nothing to order either: the token stays unknown to everybody. */
static int make_if_possible(struct wb_server *server, const char *path)
{
    const struct wb_serve_options *o = server->options;
    int err = make(server, path);

    if (err == 0 || err == WB_E_NOMEM || wb_folder_is_writable(o->dir))
        return err;
    if (o->say)
        o->say(o->context, "the repository cannot be written to, so there is no token, and nobody can give orders; "
                           "--token sets one");
    return 0;
}

int wb_access_init(struct wb_server *server)
{
    struct wb_buf text = WB_BUF_INIT;

    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    WB_CHECK(server->httpd);
    server->reading_is_open = server->options->open || wb_httpd_is_loopback(server->httpd);
    if (server->options->token.len)
        return use(server, server->options->token, "--token");
    char *path = wb_path_join(server->options->dir, "token");
    int err = path ? wb_path_read(path, WB_SERVE_TOKEN_MAX + 2, &text) : WB_E_NOMEM;
    if (err == WB_E_NOTFOUND)
        err = make_if_possible(server, path);
    else if (err == 0)
        err = use(server, wb_slice_trim(wb_buf_slice(&text)), path);
    wb_buf_release(&text);
    wb_free(path);
    return err;
}
