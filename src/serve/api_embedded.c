/*
 * api_embedded.c - GET /api/embedded?url=[&time=TIME][&apart=SECONDS]: the files that a stored page is shown with.
 *
 *   {"url":..., "time":TIME, "apart":3600, "near":12, "far":2, "missing":1, "cut":false,
 *    "files":[{"url":..., "kind":"style", "time":TIME, "seconds":1036800, "status":200, "in":null}]}
 *
 * "seconds": from the page to the file. A file that is missing has neither time, seconds nor status. "in" is the style
 * sheet that names it.
 */
#include "base/check.h"
#include "serve/embedded.h"

static void add_file(struct wb_json *j, const struct wb_embedded *e, const struct wb_embedded_file *file)
{
    WB_CHECK(file->sheet == SIZE_MAX || file->sheet < (size_t)(file - e->files.items)); /* it was named before */
    wb_json_object(j);
    wb_json_field_slice(j, "url", file->url);
    wb_json_field_str(j, "kind", wb_embedded_kind(file));
    wb_json_field_time(j, "time", file->found ? file->time_ms : 0);
    wb_json_key(j, "seconds");
    if (file->found)
        wb_json_i64(j, (file->time_ms - e->page.time_ms) / 1000);
    else
        wb_json_null(j);
    wb_json_key(j, "status");
    if (file->found)
        wb_json_u64(j, file->status);
    else
        wb_json_null(j);
    wb_json_field_text(j, "in", file->sheet == SIZE_MAX ? WB_SLICE_EMPTY : e->files.items[file->sheet].url);
    wb_json_object_end(j);
}

void wb_handle_embedded(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_embedded e;
    struct wb_json j;
    int err = wb_embedded_read(call, &e);

    if (err == 0) {
        wb_call_json(call, &j);
        wb_json_field_slice(&j, "url", e.page.url);
        wb_json_field_time(&j, "time", e.page.time_ms);
        wb_json_field_i64(&j, "apart", e.apart_ms / 1000);
        wb_json_field_u64(&j, "near", e.counts[WB_EMBEDDED_NEAR]);
        wb_json_field_u64(&j, "far", e.counts[WB_EMBEDDED_FAR]);
        wb_json_field_u64(&j, "missing", e.counts[WB_EMBEDDED_MISSING]);
        wb_json_field_bool(&j, "cut", e.cut);
        wb_json_key(&j, "files");
        wb_json_array(&j);
        for (size_t i = 0; i < e.files.count; i++)
            add_file(&j, &e, &e.files.items[i]);
        wb_json_array_end(&j);
        wb_call_json_end(call, &j, 0);
    } else {
        wb_call_fail(call, err);
    }
    wb_embedded_release(&e);
}
