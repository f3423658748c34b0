/*
 * s3_refusal.c - the errors of S3 as sentences that say what to do.
 *
 * S3 names its errors ("NoSuchBucket"), and other stores use the same names. Most of them mean one thing, and are in a
 * table; an error that is not, is judged by its status.
 */
#include "object/s3_refusal.h"
#include "base/error.h"
#include "os/clock.h"

#include <stdio.h>

/* Clocks may differ by a quarter of an hour. A request that was signed longer ago than that is sent again. */
#define SKEW_MS_MIN INT64_C(600000)

/* What was asked for: "the object a/b in the bucket c". */
static const char *what(const struct wb_s3_refusal *r, char *text_out, size_t size)
{
    const char *prefix = r->url->prefix;

    if (r->name)
        snprintf(text_out, size, "the object %s%s%s in the bucket %s", prefix, *prefix ? "/" : "", r->name,
                 r->url->bucket);
    else
        snprintf(text_out, size, "the bucket %s", r->url->bucket);
    return text_out;
}

#define WHAT_MAX (WB_OBJECT_PREFIX_MAX + WB_OBJECT_NAME_MAX + WB_OBJECT_BUCKET_MAX + 64)

static const char *code_of(const struct wb_s3_refusal *r)
{
    return *r->error.code ? r->error.code : "no reason given";
}

/* ---- one function for each meaning ------------------------------------------------------------------------- */

static int refuse_secret(const struct wb_s3_refusal *r)
{
    return wb_fail(WB_E_DENIED, "%s: the secret key does not belong to the access key %.40s: check %s (%s)",
                   r->url->text, r->access, wb_s3_keyring_place(r->ring, WB_S3_SECRET), code_of(r));
}

static int refuse_access(const struct wb_s3_refusal *r)
{
    return wb_fail(WB_E_DENIED, "%s: %s does not know the access key %.40s: check %s (%s)", r->url->text, r->host,
                   r->access, wb_s3_keyring_place(r->ring, WB_S3_ACCESS), code_of(r));
}

static int refuse_token(const struct wb_s3_refusal *r)
{
    return wb_fail(WB_E_DENIED,
                   "%s: the keys have expired, or their session token is wrong: get new ones, and check %s (%s)",
                   r->url->text, wb_s3_keyring_place(r->ring, WB_S3_TOKEN), code_of(r));
}

static int refuse_bucket(const struct wb_s3_refusal *r)
{
    return wb_fail(WB_E_DENIED, "%s: there is no bucket %s at %s: make it, or correct the URL (%s)", r->url->text,
                   r->url->bucket, r->host, code_of(r));
}

static int refuse_region(const struct wb_s3_refusal *r)
{
    const char *right = *r->error.region ? r->error.region : r->exchange->region;

    if (*right && strcmp(right, r->region) != 0)
        return wb_fail(WB_E_DENIED, "%s: the bucket %s is in the region %s, not in %s: set AWS_REGION=%s (%s)",
                       r->url->text, r->url->bucket, right, r->region, right, code_of(r));
    return wb_fail(WB_E_DENIED, "%s: the bucket %s cannot be used in the region %s: check AWS_REGION (%s: %s)",
                   r->url->text, r->url->bucket, r->region, code_of(r), r->error.message);
}

static int refuse_permission(const struct wb_s3_refusal *r)
{
    static const struct {
        const char *method, *verb, *permission;
    } rights[] = {{"PUT", "write", "s3:PutObject"}, {"DELETE", "delete", "s3:DeleteObject"}};
    const char *verb = r->name ? "read" : "list",
               *permission = r->name ? "s3:GetObject and s3:ListBucket" : "s3:ListBucket";
    char text[WHAT_MAX];

    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        if (strcmp(r->exchange->method, rights[i].method) == 0) {
            verb = rights[i].verb;
            permission = rights[i].permission;
        }
    }
    return wb_fail(WB_E_DENIED, "the access key %.40s may not %s %s: it needs the permission %s (%ld %s)", r->access,
                   verb, what(r, text, sizeof text), permission, r->exchange->status, code_of(r));
}

static int refuse_quota(const struct wb_s3_refusal *r)
{
    return wb_fail(WB_E_DENIED, "%s: %s has no room left for the bucket %s (%s)", r->url->text, r->host, r->url->bucket,
                   code_of(r));
}

/* The clocks differ, or the request took too long to arrive. */
static int refuse_time(const struct wb_s3_refusal *r)
{
    int64_t ahead = r->exchange->date_ms ? wb_clock_wall_ms() - r->exchange->date_ms : 0;
    long long seconds = (ahead < 0 ? -ahead : ahead) / 1000;

    if (r->exchange->date_ms && ahead > -SKEW_MS_MIN && ahead < SKEW_MS_MIN)
        return wb_fail(WB_E_DOWN, "%s received a request long after it had been signed (%s)", r->host, code_of(r));
    if (!r->exchange->date_ms)
        return wb_fail(WB_E_DENIED, "%s: the clock of this machine differs too much from that of %s: set it (%s)",
                       r->url->text, r->host, code_of(r));
    return wb_fail(WB_E_DENIED, "%s: the clock of this machine is %lld min %lld s %s that of %s: set it (%s)",
                   r->url->text, seconds / 60, seconds % 60, ahead > 0 ? "ahead of" : "behind", r->host, code_of(r));
}

static int refuse_absent(const struct wb_s3_refusal *r)
{
    return wb_fail(WB_E_NOTFOUND, "%s has no object %s", r->url->text, r->name);
}

/* Something that passes. */
static int refuse_for_now(const struct wb_s3_refusal *r)
{
    return wb_fail(WB_E_DOWN, "%s answers %ld %s: %s", r->host, r->exchange->status, code_of(r), r->error.message);
}

static int refuse_answer(const struct wb_s3_refusal *r)
{
    char text[WHAT_MAX];

    return wb_fail(WB_E_PROTO,
                   "%s answers %ld to %s %s (%s%s%s); is it an object store, and is AWS_ENDPOINT_URL right?", r->host,
                   r->exchange->status, r->exchange->method, what(r, text, sizeof text), code_of(r),
                   *r->error.message ? ": " : "", r->error.message);
}

/* ---- which of them it is ----------------------------------------------------------------------------------- */

static const struct {
    const char *code;
    int (*refuse)(const struct wb_s3_refusal *r);
} meanings[] = {
    {"SignatureDoesNotMatch", refuse_secret},
    {"InvalidAccessKeyId", refuse_access},
    {"ExpiredToken", refuse_token},
    {"ExpiredTokenException", refuse_token},
    {"InvalidToken", refuse_token},
    {"TokenRefreshRequired", refuse_token},
    {"NoSuchBucket", refuse_bucket},
    {"InvalidBucketName", refuse_bucket},
    {"AuthorizationHeaderMalformed", refuse_region},
    {"PermanentRedirect", refuse_region},
    {"TemporaryRedirect", refuse_region},
    {"Redirect", refuse_region},
    {"InvalidRegion", refuse_region},
    {"IllegalLocationConstraintException", refuse_region},
    {"RequestTimeTooSkewed", refuse_time},
    {"RequestExpired", refuse_time},
    {"QuotaExceeded", refuse_quota},
    {"NoSuchKey", refuse_absent},
    /* The bytes were damaged or cut on their way, or somebody else changes the same thing. */
    {"RequestTimeout", refuse_for_now},
    {"BadDigest", refuse_for_now},
    {"IncompleteBody", refuse_for_now},
    {"XAmzContentSHA256Mismatch", refuse_for_now},
    {"OperationAborted", refuse_for_now},
    {"SlowDown", refuse_for_now},
};

static int refuse_by_status(const struct wb_s3_refusal *r)
{
    long status = r->exchange->status;

    if (status == 408 || status == 425 || status == 429 || (status >= 500 && status != 501 && status != 505))
        return refuse_for_now(r);
    if (status == 401 || status == 403)
        return refuse_permission(r);
    if (status == 301 || status == 307 || status == 308)
        return *r->exchange->region ? refuse_region(r) : refuse_answer(r);
    return refuse_answer(r);
}

int wb_s3_refuse(const struct wb_s3_refusal *r)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(r->error.code, meanings[i].code) == 0 && (r->name || meanings[i].refuse != refuse_absent))
            return meanings[i].refuse(r);
    return refuse_by_status(r);
}

bool wb_s3_refusal_of_keys(const struct wb_s3_refusal *r)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(r->error.code, meanings[i].code) == 0)
            return meanings[i].refuse == refuse_token || meanings[i].refuse == refuse_access ||
                   meanings[i].refuse == refuse_secret;
    return false;
}
