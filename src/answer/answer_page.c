/* answer_page.c - pages, versions and snapshots as JSON. */
#include "answer/answer.h"
#include "base/codec.h"

#include <stdio.h>
#include <string.h>

void wb_answer_page(struct wb_json *j, const struct wb_page *page)
{
    char id[WB_PAGEID_HEX + 1], md5[2 * WB_MD5_BYTES + 1], sha1[2 * WB_SHA1_BYTES + 1];

    wb_pageid_hex(page->id, id);
    wb_hex_encode(page->md5, WB_MD5_BYTES, md5);
    wb_hex_encode(page->sha1, WB_SHA1_BYTES, sha1);
    wb_json_field_slice(j, "url", page->url);
    wb_json_field_slice(j, "key", page->key);
    wb_json_field_str(j, "id", id);
    wb_json_field_time(j, "time", page->time_ms);
    wb_json_field_u64(j, "status", page->status);
    wb_json_field_text(j, "type", page->type);
    wb_json_field_text(j, "charset", page->charset);
    wb_json_field_u64(j, "length", page->body_bytes);
    wb_json_field_str(j, "md5", md5);
    wb_json_field_str(j, "sha1", sha1);
    wb_json_field_bool(j, "truncated", page->truncated);
    wb_json_field_u64(j, "epoch", page->epoch);
}

void wb_answer_version(struct wb_json *j, struct wb_slice url, size_t number, const struct wb_store_version *version,
                       const struct wb_page *page)
{
    char md5[2 * WB_MD5_BYTES + 1] = "", sha1[2 * WB_SHA1_BYTES + 1] = "";

    if (page) {
        wb_hex_encode(page->md5, WB_MD5_BYTES, md5);
        wb_hex_encode(page->sha1, WB_SHA1_BYTES, sha1);
    }
    wb_json_field_text(j, "url", page ? page->url : url);
    wb_json_field_u64(j, "version", number);
    wb_json_field_time(j, "time", version->time_ms);
    wb_json_field_time(j, "last_seen", version->last_ms);
    wb_json_field_u64(j, "captures", version->captures);
    wb_json_field_u64(j, "status", version->status);
    wb_json_field_text(j, "type", page ? page->type : WB_SLICE_EMPTY);
    wb_json_field_u64(j, "length", version->body_bytes);
    wb_json_field_text(j, "md5", wb_slice_str(md5));
    wb_json_field_text(j, "sha1", wb_slice_str(sha1));
}

const char *wb_answer_holder(const struct wb_store_holder *holder, char text_out[WB_ANSWER_HOLDER_MAX])
{
    static const char *const words[] = {
        [WB_STORE_HOLDER_PERSON] = "person",
        [WB_STORE_HOLDER_GENERATION] = "generation",
        [WB_STORE_HOLDER_STREAM] = "stream",
    };

    const char *kind = words[holder->kind], *name = holder->name;

    /* A generation holds its snapshot as "generation-7". */
    if (strncmp(name, kind, strlen(kind)) == 0 && name[strlen(kind)] == '-')
        name += strlen(kind) + 1;
    snprintf(text_out, WB_ANSWER_HOLDER_MAX, "%s%s%s", kind, name[0] ? " " : "", name);
    return text_out;
}

void wb_answer_snapshot(struct wb_json *j, const struct wb_store_snapshot *snapshot)
{
    char holder[WB_ANSWER_HOLDER_MAX];

    wb_json_field_u64(j, "snapshot", snapshot->number);
    wb_json_field_text(j, "name", wb_slice_str(snapshot->name));
    wb_json_field_u64(j, "epoch", snapshot->epoch);
    wb_json_field_time(j, "time", snapshot->time_ms);
    wb_json_field_u64(j, "pages", snapshot->pages);
    wb_json_field_time(j, "expires", snapshot->expires_ms);
    wb_json_key(j, "held_by");
    wb_json_array(j);
    for (size_t i = 0; i < snapshot->holder_count; i++)
        wb_json_str(j, wb_answer_holder(&snapshot->holders[i], holder));
    wb_json_array_end(j);
}
