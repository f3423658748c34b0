/*
 * s3_keys.c - finds the keys, and renews them.
 *
 * The environment is read once, because other threads may be running later. No message contains a secret key or a
 * token, and both are wiped from memory before it is freed.
 */
#include "object/s3_keys.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX ((size_t)1 << 20)
#define PLACE_MAX 512
/* Bounds for what goes into a field of a request; tokens of Amazon have some 1,000 characters. */
enum { ACCESS_MAX = 256, SECRET_MAX = 256, TOKEN_MAX = 8192 };

static const struct {
    const char *variable, *line;
    size_t max;
} key_names[WB_S3_KEY_COUNT] = {
    [WB_S3_ACCESS] = {"AWS_ACCESS_KEY_ID", "aws_access_key_id", ACCESS_MAX},
    [WB_S3_SECRET] = {"AWS_SECRET_ACCESS_KEY", "aws_secret_access_key", SECRET_MAX},
    [WB_S3_TOKEN] = {"AWS_SESSION_TOKEN", "aws_session_token", TOKEN_MAX},
};

struct wb_s3_keyring {
    char *for_whom;
    char *file, *profile; /* NULL: the keys are from the environment */
    char places[WB_S3_KEY_COUNT][PLACE_MAX];
    pthread_mutex_t mutex;
    struct wb_s3_keys *now; /* the ring holds them too */
};

/* ---- the file ---------------------------------------------------------------------------------------------- */

/* The name in "[name]" or "[profile name]"; ptr NULL: the line is no heading. */
static struct wb_slice heading_of(struct wb_slice line)
{
    const char *end = line.len && *line.ptr == '[' ? memchr(line.ptr, ']', line.len) : NULL;
    struct wb_slice word = WB_SLICE_LIT("profile ");

    if (!end)
        return wb_slice(NULL, 0);
    struct wb_slice name = wb_slice_trim(wb_slice(line.ptr + 1, (size_t)(end - line.ptr) - 1));
    if (wb_slice_starts(name, word))
        name = wb_slice_trim(wb_slice(name.ptr + word.len, name.len - word.len));
    return name;
}

/* Takes note of "name = value" if it is a key. */
static void read_line(struct wb_slice line, struct wb_slice found_out[WB_S3_KEY_COUNT])
{
    const char *equals = memchr(line.ptr, '=', line.len);

    if (!equals)
        return;
    struct wb_slice name = wb_slice_trim(wb_slice(line.ptr, (size_t)(equals - line.ptr)));
    struct wb_slice value = wb_slice_trim(wb_slice(equals + 1, line.len - (size_t)(equals - line.ptr) - 1));
    for (int i = 0; i < WB_S3_KEY_COUNT; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(key_names[i].line)))
            found_out[i] = value;
}

bool wb_s3_credentials_find(struct wb_slice text, struct wb_slice profile, struct wb_slice found_out[WB_S3_KEY_COUNT])
{
    bool inside = false, any = false;
    struct wb_slice line;

    for (int i = 0; i < WB_S3_KEY_COUNT; i++)
        found_out[i] = WB_SLICE_EMPTY;
    if (wb_slice_starts(text, WB_SLICE_LIT("\xef\xbb\xbf")))
        text = wb_slice(text.ptr + 3, text.len - 3);
    while (wb_slice_next_text_line(&text, &line)) {
        line = wb_slice_trim(line);
        if (line.len == 0 || *line.ptr == '#' || *line.ptr == ';')
            continue;
        struct wb_slice heading = heading_of(line);
        if (heading.ptr) {
            inside = wb_slice_equal(heading, profile);
            any |= inside;
        } else if (inside) {
            read_line(line, found_out);
        }
    }
    return any;
}

/* ---- keys -------------------------------------------------------------------------------------------------- */

static void wipe(char *text)
{
    if (text)
        OPENSSL_cleanse(text, strlen(text));
    wb_free(text);
}

static void free_keys(struct wb_s3_keys *keys)
{
    if (!keys)
        return;
    wb_free(keys->access);
    wipe(keys->secret);
    wipe(keys->token);
    wb_free(keys);
}

/* A key goes into a field of a request, so it may only have characters that cannot end it. */
static int check_key(const struct wb_s3_keyring *ring, enum wb_s3_key key, struct wb_slice value)
{
    const char *place = ring->places[key];

    if (value.len > key_names[key].max)
        return wb_fail(WB_E_DENIED, "%s: %s has more than %zu characters", ring->for_whom, place, key_names[key].max);
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] <= ' ' || value.ptr[i] > '~' || (key == WB_S3_ACCESS && strchr("/,", value.ptr[i])))
            return wb_fail(WB_E_DENIED, "%s: %s has a character that no key has, at place %zu", ring->for_whom, place,
                           i + 1);
    return 0;
}

static int make_keys(const struct wb_s3_keyring *ring, const struct wb_slice values[WB_S3_KEY_COUNT],
                     struct wb_s3_keys **keys_out)
{
    int err = 0;

    *keys_out = NULL;
    for (int i = 0; err == 0 && i < WB_S3_KEY_COUNT; i++) {
        err = check_key(ring, (enum wb_s3_key)i, values[i]);
        if (err == 0 && i != WB_S3_TOKEN && values[i].len == 0)
            err = wb_fail(WB_E_DENIED, "%s: %s is missing; two keys are needed", ring->for_whom, ring->places[i]);
    }
    if (err < 0)
        return err;
    struct wb_s3_keys *keys = wb_alloc_zero(1, sizeof *keys);
    if (!keys)
        return WB_E_NOMEM;
    const struct wb_slice *token = &values[WB_S3_TOKEN];
    keys->access = wb_strndup(values[WB_S3_ACCESS].ptr, values[WB_S3_ACCESS].len);
    keys->secret = wb_strndup(values[WB_S3_SECRET].ptr, values[WB_S3_SECRET].len);
    keys->token = token->len ? wb_strndup(token->ptr, token->len) : NULL;
    keys->holders = 1;
    if (!keys->access || !keys->secret || (token->len && !keys->token)) {
        free_keys(keys);
        return WB_E_NOMEM;
    }
    *keys_out = keys;
    return 0;
}

/* The sentence for somebody who has set nothing up yet. */
static int no_keys(const struct wb_s3_keyring *ring, const char *why)
{
    return wb_fail(WB_E_DENIED,
                   "no keys for %s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put credentials into %s, "
                   "under [%s] (%s)",
                   ring->for_whom, ring->file, ring->profile, why);
}

static int read_file(const struct wb_s3_keyring *ring, struct wb_s3_keys **keys_out)
{
    struct wb_slice values[WB_S3_KEY_COUNT];
    struct wb_buf text;
    int err = wb_path_read(ring->file, FILE_MAX, &text);

    *keys_out = NULL;
    if (err == WB_E_NOTFOUND)
        return no_keys(ring, "there is no such file");
    if (err < 0)
        return err;
    if (!wb_s3_credentials_find(wb_buf_slice(&text), wb_slice_str(ring->profile), values))
        err = no_keys(ring, "it has no such part");
    else
        err = make_keys(ring, values, keys_out);
    if (text.ptr)
        OPENSSL_cleanse(text.ptr, text.len);
    wb_buf_release(&text);
    return err;
}

/* ---- the ring ---------------------------------------------------------------------------------------------- */

static struct wb_slice variable(const char *name)
{
    const char *value = getenv(name);

    return value ? wb_slice_trim(wb_slice_str(value)) : WB_SLICE_EMPTY;
}

/* Takes the keys of the environment. One of them without the other is a mistake, and not a reason to look elsewhere. */
static int read_environment(struct wb_s3_keyring *ring, bool *any_out)
{
    struct wb_slice values[WB_S3_KEY_COUNT];

    for (int i = 0; i < WB_S3_KEY_COUNT; i++) {
        values[i] = variable(key_names[i].variable);
        snprintf(ring->places[i], PLACE_MAX, "%s", key_names[i].variable);
    }
    *any_out = values[WB_S3_ACCESS].len || values[WB_S3_SECRET].len;
    return *any_out ? make_keys(ring, values, &ring->now) : 0;
}

static int find_file(struct wb_s3_keyring *ring)
{
    struct wb_slice file = variable("AWS_SHARED_CREDENTIALS_FILE"), profile = variable("AWS_PROFILE");
    struct wb_slice home = variable("HOME");

    ring->profile = profile.len ? wb_strndup(profile.ptr, profile.len) : wb_strdup("default");
    if (file.len) {
        ring->file = wb_strndup(file.ptr, file.len);
    } else {
        char *folder = wb_strndup(home.ptr, home.len);
        ring->file = folder ? wb_path_join(folder, ".aws/credentials") : NULL;
        wb_free(folder);
    }
    if (!ring->file || !ring->profile)
        return WB_E_NOMEM;
    for (int i = 0; i < WB_S3_KEY_COUNT; i++)
        snprintf(ring->places[i], PLACE_MAX, "%s of [%s] in %s", key_names[i].line, ring->profile, ring->file);
    return 0;
}

int wb_s3_keyring_open(const char *for_whom, struct wb_s3_keyring **ring_out)
{
    struct wb_s3_keyring *ring = wb_alloc_zero(1, sizeof *ring);
    bool any = false;
    int err;

    *ring_out = NULL;
    if (!ring)
        return WB_E_NOMEM;
    pthread_mutex_init(&ring->mutex, NULL);
    ring->for_whom = wb_strdup(for_whom);
    err = ring->for_whom ? read_environment(ring, &any) : WB_E_NOMEM;
    if (err == 0 && !any) {
        err = find_file(ring);
        if (err == 0)
            err = read_file(ring, &ring->now);
    }
    if (err < 0)
        wb_s3_keyring_close(ring);
    else
        *ring_out = ring;
    return err;
}

void wb_s3_keyring_close(struct wb_s3_keyring *ring)
{
    if (!ring)
        return;
    WB_CHECK(!ring->now || ring->now->holders == 1);
    free_keys(ring->now);
    pthread_mutex_destroy(&ring->mutex);
    wb_free(ring->for_whom);
    wb_free(ring->file);
    wb_free(ring->profile);
    wb_free(ring);
}

const struct wb_s3_keys *wb_s3_keyring_hold(struct wb_s3_keyring *ring)
{
    pthread_mutex_lock(&ring->mutex);
    struct wb_s3_keys *keys = ring->now;
    keys->holders++;
    pthread_mutex_unlock(&ring->mutex);
    return keys;
}

/* With the lock. */
static void drop(struct wb_s3_keys *keys)
{
    WB_CHECK(keys->holders > 0);
    if (--keys->holders == 0)
        free_keys(keys);
}

void wb_s3_keyring_drop(struct wb_s3_keyring *ring, const struct wb_s3_keys *keys)
{
    pthread_mutex_lock(&ring->mutex);
    drop((struct wb_s3_keys *)keys);
    pthread_mutex_unlock(&ring->mutex);
}

static bool are_equal(const struct wb_s3_keys *a, const struct wb_s3_keys *b)
{
    return strcmp(a->access, b->access) == 0 && strcmp(a->secret, b->secret) == 0 &&
           strcmp(a->token ? a->token : "", b->token ? b->token : "") == 0;
}

bool wb_s3_keyring_renew(struct wb_s3_keyring *ring, const struct wb_s3_keys *refused)
{
    struct wb_s3_keys *fresh = NULL;
    struct wb_error_copy before;

    if (!ring->file)
        return false;
    wb_error_save(0, &before);
    pthread_mutex_lock(&ring->mutex);
    if (are_equal(ring->now, refused) && read_file(ring, &fresh) == 0) {
        drop(ring->now);
        ring->now = fresh;
    }
    bool others = !are_equal(ring->now, refused);
    pthread_mutex_unlock(&ring->mutex);
    wb_error_restore(&before);
    return others;
}

const char *wb_s3_keyring_place(const struct wb_s3_keyring *ring, enum wb_s3_key key)
{
    return ring->places[key];
}
