/*
 * warcpage.c - turns an archive record into the page it holds, or into what a revisit says.
 *
 * A block that is an HTTP response becomes a page with a head and a body whose codings are
 * removed; any other block is itself the body. It never decides what is stored.
 */
#include "warc/warcreader.h"

#include "base/error.h"
#include "warc/warcdate.h"
#include "warc/warchead.h"
#include "warc/xcrawl.h"

void wb_warc_mem_release(struct wb_warc_mem *mem)
{
    wb_url_release(&mem->url);
    wb_buf_release(&mem->key);
    wb_buf_release(&mem->text);
    wb_buf_release(&mem->body);
}

static int name_page(struct wb_slice uri, struct wb_warc_mem *mem, struct wb_page *page)
{
    if (uri.len == 0)
        return wb_fail(WB_E_PROTO, "the record has no target URI");
    int err = wb_url_parse(uri, NULL, &mem->url);
    if (err < 0)
        return err;
    err = wb_url_key(&mem->url, &mem->key);
    if (err < 0)
        return err;
    page->url = wb_url_href(&mem->url);
    page->key = wb_buf_slice(&mem->key);
    page->id = wb_pageid_of_key(page->key);
    return 0;
}

/* The text of *problem_out: the most serious problem, or "". */
static const char *problem_of(const struct wb_payload_result *decoded, bool cut)
{
    if (decoded->damaged)
        return "the payload's coding is damaged or incomplete";
    if (decoded->cut || cut)
        return "the payload is longer than the limit";
    return "";
}

/* Fills head, type and charset of a response; they borrow from `text` or from the record. */
static int describe_response(struct wb_slice raw, struct wb_buf *text, struct wb_page *page)
{
    struct wb_slice value;
    size_t head_len = 0;
    int err = 0;

    if (wb_xcrawl_has(raw)) {
        err = wb_xcrawl_undo(raw, text);
        head_len = text->len;
    }
    if (err < 0)
        return err;
    wb_http_header(raw, "Content-Type", &value);
    err = wb_media_type_parse(value, text, &page->type, &page->charset);
    page->head = head_len ? wb_slice(text->ptr, head_len) : raw; /* not earlier: text may have moved */
    return err;
}

static int fill_response(const struct wb_warc_record *record, const struct wb_http_head *http, size_t body_max,
                         struct wb_warc_mem *mem, struct wb_page *page, struct wb_payload_result *decoded_out)
{
    struct wb_slice digest;
    int err = wb_payload_decode(http->raw, http->body, body_max, &mem->body, decoded_out);

    if (err < 0)
        return err;
    page->kind = WB_PAGE_RESPONSE;
    page->status = http->status;
    page->body = decoded_out->changed ? wb_buf_slice(&mem->body) : http->body;
    if (decoded_out->changed && wb_warc_header(record, "WARC-Payload-Digest", &digest))
        page->has_payload_sha1 = wb_warc_head_sha1(digest, page->payload_sha1);
    return describe_response(http->raw, &mem->text, page);
}

static int fill_resource(const struct wb_warc_record *record, struct wb_warc_mem *mem, struct wb_page *page)
{
    page->kind = WB_PAGE_RESOURCE;
    page->status = 200;
    page->body = record->block;
    /* The block claims to be an HTTP response but cannot be parsed as one, so its media type is unknown. */
    if (wb_slice_starts_nocase(record->content_type, WB_SLICE_LIT("application/http")))
        return 0;
    return wb_media_type_parse(record->content_type, &mem->text, &page->type, &page->charset);
}

/* True if an incomplete record ends before its page begins: after the record's header, or inside the status line. */
static bool ends_before_page(const struct wb_warc_record *record)
{
    static const char *const protocols[] = {"HTTP/", "ICY "};
    struct wb_slice block = record->block;

    if (!*record->problem)
        return false;
    while (block.len > 0 && (block.ptr[0] == '\r' || block.ptr[0] == '\n'))
        block = wb_slice(block.ptr + 1, block.len - 1);
    if (block.len == 0 || record->type == WB_WARC_RESOURCE)
        return block.len == 0;
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        struct wb_slice protocol = wb_slice_str(protocols[i]);
        if (block.len < protocol.len)
            protocol.len = block.len;
        if (wb_slice_starts_nocase(block, protocol))
            return !memchr(block.ptr, '\n', block.len);
    }
    return false;
}

int wb_warc_page(const struct wb_warc_record *record, size_t body_max, struct wb_warc_mem *mem,
                 struct wb_page *page_out, const char **problem_out)
{
    struct wb_http_head http;
    struct wb_payload_result decoded = {.changed = false};
    struct wb_page page = {
        .head = WB_SLICE_EMPTY, .type = WB_SLICE_EMPTY, .charset = WB_SLICE_EMPTY, .body = WB_SLICE_EMPTY};
    int err;

    *page_out = page;
    *problem_out = "";
    wb_buf_clear(&mem->text);
    wb_buf_clear(&mem->body);
    if (record->type != WB_WARC_RESPONSE && record->type != WB_WARC_RESOURCE && record->type != WB_WARC_ARC)
        return wb_fail(WB_E_PROTO, "the record does not contain a page");
    err = name_page(record->uri, mem, &page);
    if (err < 0)
        return err;
    bool has_head = record->type != WB_WARC_RESOURCE && wb_http_split(record->block, &http) == 0;
    if (ends_before_page(record))
        return wb_fail(WB_E_PROTO, "%s, before its page begins", record->problem);
    if (has_head)
        err = fill_response(record, &http, body_max, mem, &page, &decoded);
    else
        err = fill_resource(record, mem, &page);
    if (err < 0)
        return err;
    bool cut = record->cut || page.body.len > body_max;
    if (page.body.len > body_max)
        page.body.len = body_max;
    page.body_bytes = page.body.len;
    page.time_ms = record->has_time ? record->time_ms : 0;
    page.truncated = record->truncated || cut || decoded.cut || decoded.damaged;
    *problem_out = problem_of(&decoded, cut);
    *page_out = page;
    return 0;
}

/* ---- revisits --------------------------------------------------------------------------- */

void wb_warc_revisit(const struct wb_warc_record *record, struct wb_warc_revisit *revisit_out)
{
    struct wb_slice value;

    *revisit_out = (struct wb_warc_revisit){.refers_uri = WB_SLICE_EMPTY};
    /* WARC 1.0, 1.1 and their drafts spell the profile differently, except for its last word. */
    if (wb_warc_header(record, "WARC-Profile", &value)) {
        revisit_out->not_modified = wb_slice_ends(value, WB_SLICE_LIT("/server-not-modified"));
        revisit_out->known_profile =
            revisit_out->not_modified || wb_slice_ends(value, WB_SLICE_LIT("identical-payload-digest"));
    }
    if (wb_warc_header(record, "WARC-Payload-Digest", &value))
        revisit_out->has_sha1 = wb_warc_head_sha1(value, revisit_out->sha1);
    if (wb_warc_header(record, "WARC-Refers-To-Target-URI", &value))
        revisit_out->refers_uri = wb_warc_head_bare_uri(value);
    if (wb_warc_header(record, "WARC-Refers-To-Date", &value))
        (void)wb_warc_date_parse(value, &revisit_out->refers_time_ms);
}
