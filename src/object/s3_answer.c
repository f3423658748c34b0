/*
 * s3_answer.c - errors and listings of S3, out of their XML.
 *
 *   <Error><Code>NoSuchKey</Code><Message>..</Message></Error>
 *
 *   <ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>..</NextContinuationToken>
 *   <Contents><Key>prefix/name</Key><Size>17</Size>...</Contents>...</ListBucketResult>
 *
 * Keys are percent-encoded, as was asked for, but stores do not agree on what '+' means then. Since we know with what
 * our keys begin, both readings are tried.
 */
#include "object/s3_answer.h"
#include "base/codec.h"
#include "base/error.h"
#include "object/s3_xml.h"

enum { TOKEN_MAX = 4096, KEY_MAX = 4096, NUMBER_MAX = 20 };

/* ---- errors ------------------------------------------------------------------------------------------------ */

static void append_shown(char *text, size_t size, struct wb_slice more)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < more.len && len < size - 1; i++)
        text[len++] = (unsigned char)more.ptr[i] < ' ' || more.ptr[i] == 127 ? '?' : more.ptr[i];
    text[len] = '\0';
}

void wb_s3_error_read(struct wb_slice text, struct wb_s3_error *error_out)
{
    struct wb_s3_xml xml;
    int event;

    *error_out = (struct wb_s3_error){0};
    wb_s3_xml_init(&xml, text);
    while ((event = wb_s3_xml_next(&xml)) >= 0 && event != WB_S3_XML_OVER) {
        struct wb_slice more = wb_buf_slice(&xml.text);
        if (event != WB_S3_XML_TEXT)
            continue;
        if (wb_s3_xml_inside(&xml, "Error/Code"))
            append_shown(error_out->code, sizeof error_out->code, more);
        else if (wb_s3_xml_inside(&xml, "Error/Message"))
            append_shown(error_out->message, sizeof error_out->message, more);
        else if (wb_s3_xml_inside(&xml, "Error/Region"))
            append_shown(error_out->region, sizeof error_out->region, more);
    }
    wb_s3_xml_release(&xml);
}

/* ---- listings ---------------------------------------------------------------------------------------------- */

struct reading {
    const char *before;
    struct wb_object_page *page;
    bool listing; /* it is one */
    bool encoded;
    struct wb_buf key, size, truncated, encoding, token, name;
};

/* Decodes %XX, and with plus '+' as well. What is no escape stays. */
static int unescape(struct wb_slice text, bool plus, struct wb_buf *out)
{
    int err = 0;

    wb_buf_clear(out);
    for (size_t i = 0; err == 0 && i < text.len; i++) {
        char c = text.ptr[i];
        int high = c == '%' && i + 2 < text.len ? wb_hex_digit(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? wb_hex_digit(text.ptr[i + 2]) : -1;
        if (low >= 0) {
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        err = wb_buf_append_char(out, c);
    }
    return err;
}

/* Finds the name of the object in reading->key: what follows `before`. Puts it into name, with NUL; false: it is not
 * ours. */
static int find_name(struct reading *r, bool *ours_out)
{
    struct wb_slice key = wb_buf_slice(&r->key), before = wb_slice_str(r->before);
    int err = 0;

    *ours_out = false;
    for (int plus = 1; err == 0 && !*ours_out && plus >= 0; plus--) {
        if (r->encoded) {
            err = unescape(key, plus, &r->name);
        } else {
            wb_buf_clear(&r->name);
            err = wb_buf_append_slice(&r->name, key);
        }
        *ours_out = err == 0 && wb_slice_starts(wb_buf_slice(&r->name), before);
    }
    if (err < 0 || !*ours_out)
        return err;
    r->name.len -= before.len;
    if (before.len)
        memmove(r->name.ptr, r->name.ptr + before.len, r->name.len);
    err = wb_buf_terminate(&r->name);
    *ours_out = err == 0 && strlen(r->name.ptr) == r->name.len && wb_object_name_valid(r->name.ptr);
    return err;
}

static int end_entry(struct reading *r)
{
    uint64_t size = 0;
    bool ours;
    int err = find_name(r, &ours);

    if (err == 0 && ours && !wb_slice_to_u64(wb_slice_trim(wb_buf_slice(&r->size)), &size))
        return wb_fail(WB_E_PROTO, "the listing has the object %s without a size", r->name.ptr);
    if (err == 0 && ours)
        err = wb_object_page_add(r->page, r->name.ptr, size);
    wb_buf_clear(&r->key);
    wb_buf_clear(&r->size);
    return err;
}

static int append_within(struct wb_buf *to, struct wb_slice more, size_t max)
{
    if (more.len > max - to->len)
        return wb_fail(WB_E_PROTO, "the listing has a part of more than %zu bytes", max);
    return wb_buf_append_slice(to, more);
}

static int read_text(struct reading *r, const struct wb_s3_xml *xml)
{
    struct wb_slice more = wb_buf_slice(&xml->text);

    if (wb_s3_xml_inside(xml, "ListBucketResult/Contents/Key"))
        return append_within(&r->key, more, KEY_MAX);
    if (wb_s3_xml_inside(xml, "ListBucketResult/Contents/Size"))
        return append_within(&r->size, more, NUMBER_MAX);
    if (wb_s3_xml_inside(xml, "ListBucketResult/IsTruncated"))
        return append_within(&r->truncated, more, NUMBER_MAX);
    if (wb_s3_xml_inside(xml, "ListBucketResult/NextContinuationToken"))
        return append_within(&r->token, more, TOKEN_MAX);
    if (wb_s3_xml_inside(xml, "ListBucketResult/EncodingType"))
        return append_within(&r->encoding, more, NUMBER_MAX);
    return 0;
}

/* Reads the events. Keys may precede EncodingType; their decoding depends on it, so there are two passes. */
static int read_events(struct reading *r, struct wb_slice text, bool entries)
{
    struct wb_s3_xml xml;
    int event, err = 0;

    wb_s3_xml_init(&xml, text);
    while (err == 0 && (event = wb_s3_xml_next(&xml)) != WB_S3_XML_OVER) {
        r->listing |= wb_s3_xml_inside(&xml, "ListBucketResult");
        if (event < 0)
            err = event;
        else if (event == WB_S3_XML_TEXT &&
                 entries == wb_slice_equal(xml.open[xml.depth > 1], WB_SLICE_LIT("Contents")))
            err = read_text(r, &xml);
        else if (event == WB_S3_XML_END && entries && wb_s3_xml_inside(&xml, "ListBucketResult") &&
                 wb_slice_equal(xml.ended, WB_SLICE_LIT("Contents")))
            err = end_entry(r);
    }
    wb_s3_xml_release(&xml);
    return err;
}

static bool says(const struct wb_buf *text, const char *word)
{
    return wb_slice_equal(wb_slice_trim(wb_buf_slice(text)), wb_slice_str(word));
}

/* What follows this page, from what was read of it. */
static int set_token(struct reading *r)
{
    struct wb_object_page *page = r->page;

    page->more = says(&r->truncated, "true");
    if (!r->listing || (!page->more && !says(&r->truncated, "false")))
        return wb_fail(WB_E_PROTO, "the answer is not a listing of a bucket");
    if (page->more && (r->token.len == 0 || wb_slice_equal(wb_buf_slice(&r->token), wb_buf_slice(&page->token))))
        return wb_fail(WB_E_PROTO, "the listing has more pages, but does not say where the next one begins");
    wb_buf_clear(&page->token);
    return wb_buf_append_slice(&page->token, wb_buf_slice(&r->token));
}

int wb_s3_listing_read(struct wb_slice xml, const char *before, struct wb_object_page *page)
{
    struct reading r = {.before = before, .page = page};
    int err = read_events(&r, xml, false);

    r.encoded = says(&r.encoding, "url");
    if (err == 0)
        err = read_events(&r, xml, true);
    if (err == 0)
        err = set_token(&r);
    wb_buf_release(&r.key);
    wb_buf_release(&r.size);
    wb_buf_release(&r.truncated);
    wb_buf_release(&r.encoding);
    wb_buf_release(&r.token);
    wb_buf_release(&r.name);
    return err;
}
