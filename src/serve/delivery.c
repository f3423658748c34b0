/*
 * delivery.c - parts of bodies, compression, and entity tags. It works on replies that are complete, and never looks at
 * what they are about.
 */
#include "serve/delivery.h"
#include "base/check.h"
#include "base/error.h"

#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_BYTES = 1024, LARGE_BYTES = 4 << 20, MOST_BYTES = 256 << 20 };
enum { LEVEL = 5, LEVEL_OF_LARGE = 1 };

/* ---- fields of a request ------------------------------------------------------------------------- */

/* Takes the next member of a list with commas; false at the end. Commas in quotes do not count. */
static bool next_member(struct wb_slice *rest, struct wb_slice *member_out)
{
    bool quoted = false;
    size_t len = 0;

    if (rest->len == 0)
        return false;
    for (; len < rest->len && (quoted || rest->ptr[len] != ','); len++)
        quoted ^= rest->ptr[len] == '"';
    *member_out = wb_slice_trim(wb_slice(rest->ptr, len));
    size_t used = len < rest->len ? len + 1 : len;
    *rest = wb_slice(rest->ptr + used, rest->len - used);
    return true;
}

/* Whether the parameters behind a coding are "q=0", "q=0.0" and so on. */
static bool is_refused(struct wb_slice parameters)
{
    const char *q = memmem(parameters.ptr, parameters.len, "q=", 2);
    const char *end = parameters.ptr + parameters.len;

    if (!q)
        q = memmem(parameters.ptr, parameters.len, "Q=", 2);
    if (!q)
        return false;
    for (q += 2; q < end && (*q == '0' || *q == '.'); q++)
        continue;
    return q == end || wb_ascii_is_space(*q) || *q == ';';
}

bool wb_delivery_takes_gzip(struct wb_slice accept)
{
    struct wb_slice member;
    bool any = false;

    while (next_member(&accept, &member)) {
        const char *mark = member.len ? memchr(member.ptr, ';', member.len) : NULL;
        size_t len = mark ? (size_t)(mark - member.ptr) : member.len;
        struct wb_slice coding = wb_slice_trim(wb_slice(member.ptr, len));
        bool refused = is_refused(wb_slice(member.ptr + len, member.len - len));
        if (wb_slice_equal_nocase(coding, WB_SLICE_LIT("gzip")) ||
            wb_slice_equal_nocase(coding, WB_SLICE_LIT("x-gzip")))
            return !refused;
        if (wb_slice_equal(coding, WB_SLICE_LIT("*")))
            any = !refused;
    }
    return any;
}

bool wb_delivery_has_tag(struct wb_slice list, struct wb_slice tag)
{
    struct wb_slice member;

    while (next_member(&list, &member)) {
        if (wb_slice_starts(member, WB_SLICE_LIT("W/")))
            member = wb_slice(member.ptr + 2, member.len - 2);
        if (wb_slice_equal(member, tag) || wb_slice_equal(member, WB_SLICE_LIT("*")))
            return true;
    }
    return false;
}

enum wb_delivery_part wb_delivery_range(struct wb_slice range, uint64_t size, uint64_t *from_out, uint64_t *count_out)
{
    static const char unit[] = "bytes=";
    uint64_t first = 0, last = UINT64_MAX;

    *from_out = 0;
    *count_out = size;
    if (!wb_slice_starts_nocase(range, WB_SLICE_LIT(unit)))
        return WB_DELIVERY_WHOLE;
    range = wb_slice_trim(wb_slice(range.ptr + sizeof unit - 1, range.len - (sizeof unit - 1)));
    const char *dash = range.len ? memchr(range.ptr, '-', range.len) : NULL;
    if (!dash)
        return WB_DELIVERY_WHOLE;
    struct wb_slice from = wb_slice(range.ptr, (size_t)(dash - range.ptr));
    struct wb_slice to = wb_slice(dash + 1, range.len - from.len - 1);
    if ((from.len && !wb_slice_to_u64(from, &first)) || (to.len && !wb_slice_to_u64(to, &last)) ||
        (from.len == 0 && to.len == 0) || (from.len && last < first))
        return WB_DELIVERY_WHOLE;
    if (from.len == 0) { /* the last bytes */
        first = last < size ? size - last : 0;
        if (last == 0)
            return WB_DELIVERY_BEYOND;
        last = UINT64_MAX;
    }
    if (first >= size)
        return WB_DELIVERY_BEYOND;
    *from_out = first;
    *count_out = (last < size ? last + 1 : size) - first;
    WB_CHECK(*count_out > 0 && *count_out <= size - *from_out);
    return WB_DELIVERY_PART;
}

/* ---- fields of the reply --------------------------------------------------------------------------- */

/* The value of a field that a handler has set; ptr NULL: it has not. */
static struct wb_slice field_of(const struct wb_http_reply *reply, const char *name)
{
    struct wb_slice rest = wb_buf_slice(&reply->fields);
    size_t name_len = strlen(name);

    while (rest.len) {
        const char *end = memmem(rest.ptr, rest.len, "\r\n", 2);
        if (!end)
            break;
        struct wb_slice line = wb_slice(rest.ptr, (size_t)(end - rest.ptr));
        if (line.len > name_len && line.ptr[name_len] == ':' &&
            wb_slice_equal_nocase(wb_slice(line.ptr, name_len), wb_slice(name, name_len)))
            return wb_slice_trim(wb_slice(line.ptr + name_len + 1, line.len - name_len - 1));
        rest = wb_slice(end + 2, rest.len - line.len - 2);
    }
    return (struct wb_slice){NULL, 0};
}

/* Puts a text into the fields, at a place that field_of() has found. */
static int insert(struct wb_http_reply *reply, const char *at, const char *text)
{
    WB_CHECK(at >= reply->fields.ptr && at <= reply->fields.ptr + reply->fields.len);
    size_t before = (size_t)(at - reply->fields.ptr), len = strlen(text);
    int err = wb_buf_reserve(&reply->fields, len);

    if (err < 0)
        return err;
    memmove(reply->fields.ptr + before + len, reply->fields.ptr + before, reply->fields.len - before);
    memcpy(reply->fields.ptr + before, text, len);
    reply->fields.len += len;
    return 0;
}

/* ---- parts --------------------------------------------------------------------------------------------- */

/* With If-Range, a part is wanted only of what the client has the beginning of. A date says too little for that. */
static bool is_in_range(const struct wb_call *call)
{
    struct wb_slice condition = wb_http_field(call->request, "If-Range");

    return !condition.ptr || wb_slice_equal(condition, field_of(call->reply, "ETag"));
}

static int answer_beyond(struct wb_call *call, uint64_t size)
{
    char text[64];

    snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
    wb_route_fail(wb_route_find(call->request->path), call->request, call->reply, 416,
                  "this has fewer bytes than the part that was asked for begins at");
    return wb_http_reply_field(call->reply, "Content-Range", wb_slice_str(text));
}

/* Returns 1 if the reply is now a part, or an error about it. */
static int take_part(struct wb_call *call)
{
    WB_CHECK(call->parts);
    WB_CHECK(call->reply->status == 200);
    WB_CHECK(!call->reply->source);
    struct wb_http_reply *reply = call->reply;
    struct wb_slice range = wb_http_field(call->request, "Range");
    uint64_t from, count, size = reply->body.len;
    char text[80];

    int err = wb_http_reply_field(reply, "Accept-Ranges", WB_SLICE_LIT("bytes"));
    enum wb_delivery_part part =
        range.ptr && is_in_range(call) ? wb_delivery_range(range, size, &from, &count) : WB_DELIVERY_WHOLE;
    if (err < 0 || part == WB_DELIVERY_WHOLE)
        return err;
    if (part == WB_DELIVERY_BEYOND)
        return answer_beyond(call, size) < 0 ? WB_E_NOMEM : 1;
    snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)from,
             (unsigned long long)(from + count - 1), (unsigned long long)size);
    err = wb_http_reply_field(reply, "Content-Range", wb_slice_str(text));
    if (err < 0)
        return err;
    WB_CHECK(from + count <= size);
    reply->status = 206;
    memmove(reply->body.ptr, reply->body.ptr + from, count);
    reply->body.len = count;
    return 1;
}

/* ---- compression ----------------------------------------------------------------------------------------- */

static bool is_text(struct wb_slice type)
{
    static const char *const types[] = {"application/json", "application/javascript",  "application/x-javascript",
                                        "application/xml",  "application/link-format", "application/x-ndjson"};
    const char *mark = type.len ? memchr(type.ptr, ';', type.len) : NULL;

    type = wb_slice_trim(wb_slice(type.ptr, mark ? (size_t)(mark - type.ptr) : type.len));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (wb_slice_equal(type, wb_slice_str(types[i])))
            return true;
    return wb_slice_starts(type, WB_SLICE_LIT("text/")) || wb_slice_ends(type, WB_SLICE_LIT("+xml")) ||
           wb_slice_ends(type, WB_SLICE_LIT("+json"));
}

static int add_vary(struct wb_http_reply *reply)
{
    struct wb_slice vary = field_of(reply, "Vary");

    return vary.ptr ? insert(reply, vary.ptr + vary.len, ", Accept-Encoding")
                    : wb_http_reply_field(reply, "Vary", WB_SLICE_LIT("Accept-Encoding"));
}

/* The compressed body has other bytes, so a strong tag would be wrong for it. */
static int weaken_tag(struct wb_http_reply *reply)
{
    struct wb_slice tag = field_of(reply, "ETag");

    return tag.ptr && *tag.ptr == '"' ? insert(reply, tag.ptr, "W/") : 0;
}

/* What does not become smaller stays as it is. */
static int compress(struct wb_http_reply *reply)
{
    WB_CHECK(!reply->source);
    WB_CHECK(reply->body.len >= LEAST_BYTES);
    struct wb_buf packed = WB_BUF_INIT;
    struct libdeflate_compressor *c =
        libdeflate_alloc_compressor(reply->body.len > LARGE_BYTES ? LEVEL_OF_LARGE : LEVEL);
    int err = c ? wb_buf_reserve(&packed, reply->body.len) : WB_E_NOMEM;

    if (err == 0)
        packed.len = libdeflate_gzip_compress(c, reply->body.ptr, reply->body.len, packed.ptr, reply->body.len);
    if (err == 0 && packed.len > 0) {
        err = wb_http_reply_field(reply, "Content-Encoding", WB_SLICE_LIT("gzip"));
        if (err == 0)
            err = weaken_tag(reply);
        wb_buf_release(&reply->body);
        reply->body = wb_buf_take(&packed);
    }
    libdeflate_free_compressor(c);
    wb_buf_release(&packed);
    return err;
}

void wb_delivery_finish(struct wb_call *call)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(call->reply->status >= 200);
    struct wb_http_reply *reply = call->reply;
    int done = 0;

    /* Whatever a handler does, no page leaves without a policy. */
    WB_CHECK(!wb_slice_starts(field_of(reply, "Content-Type"), WB_SLICE_LIT("text/html")) ||
             field_of(reply, "Content-Security-Policy").ptr);

    if (reply->source || reply->status == 204 || reply->status == 304)
        return;
    if (call->parts && reply->status == 200)
        done = take_part(call);
    bool packs = done == 0 && is_text(field_of(reply, "Content-Type")) && reply->body.len >= LEAST_BYTES &&
                 reply->body.len <= MOST_BYTES && !field_of(reply, "Content-Encoding").ptr;
    if (packs)
        done = add_vary(reply);
    if (packs && done == 0 && wb_delivery_takes_gzip(wb_http_field(call->request, "Accept-Encoding")))
        done = compress(reply);
    if (done < 0)
        wb_call_fail(call, done);
}
