/* madepage.c - see madepage.h. */
#include "madepage.h"
#include "must.h"
#include "seeded.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const phrases[] = {
    "<p>The quick brown fox jumps over",
    " the lazy dog.</p>\n",
    "<div class=\"entry\"><a href=\"/index.html\">home</a>",
    "<li>one item of many</li>\n",
    "<td>42</td><td>43</td>",
    "\xc3\xa9t\xc3\xa9 \xe2\x82\xac 10",
    "<script>var x = {};</script>\n",
};

static void fill_body(struct wb_buf *body, const struct spec *spec)
{
    uint64_t moment = spec->content ? spec->content : (uint64_t)spec->time_ms;
    uint64_t chance = (uint64_t)spec->site << 40 ^ (uint64_t)spec->number << 20 ^ moment * 31 ^ spec->variant;
    bool noise = spec->variant % 5 == 0;

    must_ok(wb_buf_reserve(body, (size_t)spec->size + 64));
    while (body->len < spec->size) {
        uint64_t r = chance_next(&chance);
        if (noise || r % 4 == 0)
            must_ok(wb_buf_append(body, &r, sizeof r));
        else
            must_ok(wb_buf_append_str(body, phrases[r / 4 % COUNT(phrases)]));
    }
    body->len = spec->size;
}

/* Makes keys like "site7.example/page/3"; some sites have ports, very long hosts, or no host at all. */
static void write_key(const struct spec *spec, struct wb_buf *to)
{
    if (spec->site % 16 == 13)
        must_ok(wb_buf_printf(to, "dns:page%u-%u", spec->site, spec->number));
    else if (spec->site % 16 == 14)
        must_ok(wb_buf_printf(to, "site%u.%0600u.example/page/%u", spec->site, spec->site, spec->number));
    else if (spec->site % 16 == 15)
        must_ok(wb_buf_printf(to, "site%u.example:8080/page/%u?q=1", spec->site, spec->number));
    else
        must_ok(wb_buf_printf(to, "site%u.example/page/%u", spec->site, spec->number));
}

struct wb_pageid spec_id(const struct spec *spec)
{
    struct wb_buf key = WB_BUF_INIT;

    write_key(spec, &key);
    struct wb_pageid id = wb_pageid_of_key(wb_buf_slice(&key));
    wb_buf_release(&key);
    return id;
}

struct wb_slice spec_site(const struct spec *spec, struct wb_buf *room)
{
    wb_buf_clear(room);
    write_key(spec, room);
    return wb_key_site(wb_buf_slice(room));
}

void make_page(const struct spec *spec, struct made *made_out)
{
    static const char *const types[] = {"text/html", "", "application/pdf", "text/plain"};
    static const char *const charsets[] = {"utf-8", "", "windows-1252"};
    struct made made = {.text = WB_BUF_INIT, .body = WB_BUF_INIT};
    uint32_t look = spec->variant + spec->dress;
    size_t url_at, head_at;

    write_key(spec, &made.text);
    url_at = made.text.len;
    must_ok(wb_buf_append_str(&made.text, look % 7 == 3 ? "http://u@" : "https://"));
    if (look % 7 == 4) /* a url that does not contain the key */
        must_ok(wb_buf_printf(&made.text, "other.example/%u/%u#part", spec->site, spec->number));
    else
        write_key(spec, &made.text);
    head_at = made.text.len;
    if (look % 4 != 1)
        must_ok(wb_buf_printf(&made.text, "HTTP/1.1 %u OK\r\nServer: test\r\nX-Number: %u\r\n", 200 + spec->variant % 3,
                              spec->number));
    fill_body(&made.body, spec);
    made.body.len -= spec->cut < made.body.len ? spec->cut : made.body.len;
    struct wb_page page = {
        .key = wb_slice(made.text.ptr, url_at),
        .url = wb_slice(made.text.ptr + url_at, head_at - url_at),
        .head = wb_slice(made.text.ptr + head_at, made.text.len - head_at),
        .type = wb_slice_str(types[spec->variant % COUNT(types)]),
        .charset = wb_slice_str(charsets[look % COUNT(charsets)]),
        .body = wb_buf_slice(&made.body),
        .time_ms = spec->time_ms,
        .body_bytes = made.body.len,
        .status = (uint16_t)(200 + spec->variant % 3),
        .kind = look % 4 == 1 ? WB_PAGE_RESOURCE : WB_PAGE_RESPONSE,
        .truncated = spec->cut || spec->variant % 6 == 5,
        .has_payload_sha1 = look % 8 == 2,
        .lifetime = look % 9 < 5 ? 0 : look % 9 * 30,
    };
    if (look % 18 == 8)
        page.lifetime_count = 3;
    page.id = wb_pageid_of_key(page.key);
    if (page.has_payload_sha1)
        memset(page.payload_sha1, (int)(look & 0xff), sizeof page.payload_sha1);
    if (look % 3 == 0)
        wb_page_digest(&page);
    made.page = page;
    *made_out = made;
}

void made_release(struct made *made)
{
    wb_buf_release(&made->text);
    wb_buf_release(&made->body);
}
