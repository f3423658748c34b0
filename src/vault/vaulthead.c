/* vaulthead.c - writes and reads the contents of `head` (vaulthead.h; docs/formats/vault.md draws it). */
#include "vault/vaulthead.h"
#include "base/error.h"
#include "base/fields.h"

enum { FIXED_MAX = 2 * WB_VAULT_ID_BYTES + 8 * WB_VARINT_MAX + WB_VAULT_OBJECT_REFERENCE };

int wb_vault_head_encode(const struct wb_vault_head *head, struct wb_buf *contents_out)
{
    struct wb_slice machine = wb_slice_str(head->machine), directory = wb_slice_str(head->directory);

    WB_CHECK(head->term > 0 && head->point.number > 0);
    wb_buf_clear(contents_out);
    if (wb_buf_reserve(contents_out, FIXED_MAX + machine.len + directory.len) < 0)
        return WB_E_NOMEM;
    char *p = contents_out->ptr;
    memcpy(p, head->repository, WB_VAULT_ID_BYTES);
    memcpy(p + WB_VAULT_ID_BYTES, head->owner, WB_VAULT_ID_BYTES);
    p = wb_fields_put(p + 2 * WB_VAULT_ID_BYTES, head->term);
    p = wb_fields_put_time(p, head->owned_ms, 0);
    p = wb_fields_put_text(p, machine);
    p = wb_fields_put_text(p, directory);
    p = wb_vault_object_put(p, &head->shipment);
    p = wb_fields_put(p, head->point.number);
    p = wb_fields_put_time(p, head->point.time_ms, 0);
    p = wb_fields_put(p, head->point.pages);
    p = wb_fields_put(p, head->point.bytes);
    contents_out->len = (size_t)(p - contents_out->ptr);
    return 0;
}

/* A text that will be shown: no control characters. */
static void take_shown(struct wb_fields *fields, size_t most, char *text_out)
{
    struct wb_slice text = wb_fields_take_text(fields);

    fields->ok = fields->ok && text.len <= most;
    for (size_t i = 0; fields->ok && i < text.len; i++)
        fields->ok = (uint8_t)text.ptr[i] >= ' ' && text.ptr[i] != 0x7f;
    if (!fields->ok)
        text.len = 0;
    memcpy(text_out, text.ptr, text.len);
    text_out[text.len] = '\0';
}

int wb_vault_head_decode(const char *name, struct wb_slice contents, struct wb_vault_head *head_out)
{
    struct wb_fields fields = wb_fields_of(contents);
    const char *p = wb_fields_take_bytes(&fields, 2 * WB_VAULT_ID_BYTES);

    memset(head_out, 0, sizeof *head_out);
    if (p) {
        memcpy(head_out->repository, p, WB_VAULT_ID_BYTES);
        memcpy(head_out->owner, p + WB_VAULT_ID_BYTES, WB_VAULT_ID_BYTES);
    }
    head_out->term = wb_fields_take(&fields, UINT64_MAX - 1);
    head_out->owned_ms = wb_fields_take_time(&fields, 0);
    take_shown(&fields, WB_VAULT_MACHINE_MAX, head_out->machine);
    take_shown(&fields, WB_VAULT_DIRECTORY_MAX, head_out->directory);
    p = wb_fields_take_bytes(&fields, WB_VAULT_OBJECT_REFERENCE);
    fields.ok = p && wb_vault_object_take(p, &head_out->shipment);
    head_out->point.number = wb_fields_take(&fields, UINT64_MAX - 1);
    head_out->point.time_ms = wb_fields_take_time(&fields, 0);
    head_out->point.pages = wb_fields_take(&fields, UINT64_MAX);
    head_out->point.bytes = wb_fields_take(&fields, UINT64_MAX);
    head_out->point.shipment =
        (struct wb_vault_object){.run = head_out->shipment.run, .count = head_out->shipment.count};
    if (!fields.ok || fields.at != fields.end || head_out->term == 0 || head_out->point.number == 0)
        return wb_fail(WB_E_CORRUPT, "%s is malformed", name);
    return 0;
}
