/*
 * objecturl.c - takes the URL of an object store apart.
 *
 * s3://BUCKET/PREFIX and file:///DIR. Nothing in them is decoded: "%20" is three characters of a prefix or of the name
 * of a directory. It looks at nothing but the text.
 */
#include "object/objecturl.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/slice.h"
#include "object/object.h"

#define FORMS "the URL of an object store is s3://BUCKET/PREFIX or file:///DIR"

/* The URL as messages show it: without control characters, which a terminal would obey, and not longer than a line. */
static int refuse(const char *text, const char *why)
{
    char shown[101];
    size_t len = 0;

    for (; text[len] && len < sizeof shown - 1; len++)
        shown[len] = (unsigned char)text[len] < ' ' || text[len] == 127 ? '?' : text[len];
    shown[len] = '\0';
    return wb_fail(WB_E_INVALID, "'%s'%s: %s; " FORMS, shown, text[len] ? " (and so on)" : "", why);
}

static bool is_bucket(struct wb_slice name)
{
    bool good = name.len > 0 && (wb_ascii_is_letter(*name.ptr) || wb_ascii_is_digit(*name.ptr));

    for (size_t i = 0; good && i < name.len; i++)
        good = wb_ascii_is_letter(name.ptr[i]) || wb_ascii_is_digit(name.ptr[i]) || strchr("-_.", name.ptr[i]);
    return good && name.len <= WB_OBJECT_BUCKET_MAX;
}

/* A '/' at the end says nothing: prefix and directory are joined to names with one. */
static struct wb_slice without_last_slash(struct wb_slice text)
{
    return text.len && text.ptr[text.len - 1] == '/' ? wb_slice(text.ptr, text.len - 1) : text;
}

static int parse_s3(struct wb_slice rest, struct wb_object_url *url)
{
    const char *slash = memchr(rest.ptr, '/', rest.len);
    struct wb_slice bucket = wb_slice(rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len);
    struct wb_slice prefix = slash ? wb_slice(slash + 1, rest.len - bucket.len - 1) : WB_SLICE_EMPTY;

    if (bucket.len == 0)
        return refuse(url->text, "it names no bucket");
    if (!is_bucket(bucket))
        return refuse(url->text, "a bucket cannot have this name");
    prefix = without_last_slash(prefix);
    if (prefix.len > WB_OBJECT_PREFIX_MAX)
        return refuse(url->text, "the prefix is too long");
    url->is_s3 = true;
    url->bucket = wb_strndup(bucket.ptr, bucket.len);
    url->prefix = wb_strndup(prefix.ptr, prefix.len);
    return url->bucket && url->prefix ? 0 : WB_E_NOMEM;
}

static int parse_file(struct wb_slice rest, struct wb_object_url *url)
{
    if (rest.len == 0)
        return refuse(url->text, "it names no directory");
    if (*rest.ptr != '/')
        return refuse(url->text, "the directory must begin with '/'");
    while (rest.len > 1 && rest.ptr[rest.len - 1] == '/')
        rest.len--;
    if (rest.len > WB_OBJECT_DIR_MAX)
        return refuse(url->text, "the name of the directory is too long");
    url->dir = wb_strndup(rest.ptr, rest.len);
    return url->dir ? 0 : WB_E_NOMEM;
}

int wb_object_url_parse(const char *text, struct wb_object_url *url_out)
{
    struct wb_slice all = wb_slice_str(text), s3 = WB_SLICE_LIT("s3://"), file = WB_SLICE_LIT("file://");
    int err;

    *url_out = (struct wb_object_url){.text = wb_strdup(text)};
    if (!url_out->text)
        return WB_E_NOMEM;
    err = 0;
    for (size_t i = 0; err == 0 && i < all.len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            err = refuse(text, "it has a control character");
    if (err == 0 && wb_slice_starts(all, s3))
        err = parse_s3(wb_slice(text + s3.len, all.len - s3.len), url_out);
    else if (err == 0 && wb_slice_starts(all, file))
        err = parse_file(wb_slice(text + file.len, all.len - file.len), url_out);
    else if (err == 0)
        err = refuse(text, "not an object store");
    if (err < 0)
        wb_object_url_release(url_out);
    return err;
}

void wb_object_url_release(struct wb_object_url *url)
{
    wb_free(url->text);
    wb_free(url->bucket);
    wb_free(url->prefix);
    wb_free(url->dir);
    *url = (struct wb_object_url){0};
}

int wb_object_url_check(const char *url)
{
    struct wb_object_url parts;
    int err = wb_object_url_parse(url, &parts);

    wb_object_url_release(&parts);
    return err;
}
