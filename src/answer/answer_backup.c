/*
 * answer_backup.c - the vaults of the repository, as those who ship to them have noted it in DIR/vault. No store is
 * asked.
 */
#include "answer/answer.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void release_backup(struct wb_answer_backup *backup)
{
    wb_free(backup->url);
    wb_free(backup->error);
}

/* What the status borrows is copied. */
static int keep_backup(void *context, const struct wb_vault_status *status)
{
    struct wb_answer_backups *list = context;
    struct wb_answer_backup copy = {.status = *status, .url = wb_strdup(status->url)};

    copy.error = wb_strdup(status->error);
    copy.status.url = copy.url;
    copy.status.error = copy.error;
    if (copy.url && copy.error && wb_vec_push(list, copy) == 0)
        return 0;
    release_backup(&copy);
    return WB_E_NOMEM;
}

/* The oldest backup is first, so that a vault keeps its number when another one comes. */
static int compare_backups(const void *a, const void *b)
{
    const struct wb_answer_backup *one = a, *two = b;
    int64_t first = one->status.since_ms, second = two->status.since_ms;

    if (first != second)
        return first && (!second || first < second) ? -1 : 1;
    return strcmp(one->url, two->url);
}

int wb_answer_backups_read(const char *dir, struct wb_answer_backups *backups_out)
{
    *backups_out = (struct wb_answer_backups){.items = NULL};
    int err = wb_vault_status_each(dir, keep_backup, backups_out);

    if (backups_out->count > 1)
        qsort(backups_out->items, backups_out->count, sizeof *backups_out->items, compare_backups);
    /* Who may not read DIR/vault is shown no vaults. */
    return err == WB_E_DENIED || err == WB_E_NOTFOUND ? 0 : err;
}

void wb_answer_backups_release(struct wb_answer_backups *backups)
{
    for (size_t i = 0; i < backups->count; i++)
        release_backup(&backups->items[i]);
    wb_vec_release(backups);
}

const char *wb_answer_backup_kind(const struct wb_answer_backup *backup)
{
    return wb_slice_starts(wb_slice_str(backup->url), WB_SLICE_LIT("file:")) ? "file" : "s3";
}

bool wb_answer_backup_fails(const struct wb_answer_backup *backup)
{
    return backup->status.error[0] != '\0';
}

void wb_answer_backup(struct wb_json *j, const struct wb_answer_backup *backup, bool places)
{
    const struct wb_vault_status *s = &backup->status;

    WB_CHECK(s->url == backup->url && s->error == backup->error);
    wb_json_field_text(j, "url", places ? wb_slice_str(s->url) : WB_SLICE_EMPTY);
    wb_json_field_str(j, "kind", wb_answer_backup_kind(backup));
    wb_json_field_time(j, "since", s->since_ms);
    wb_json_field_time(j, "safe", s->safe_ms);
    wb_json_field_u64(j, "pages", s->safe_pages);
    wb_json_field_time(j, "unsafe_since", s->unsafe_since_ms);
    wb_json_field_u64(j, "bytes_waiting", s->bytes_waiting);
    wb_json_field_bool(j, "following", s->following);
    wb_json_field_bool(j, "failing", wb_answer_backup_fails(backup));
    wb_json_field_text(j, "error", places ? wb_slice_str(s->error) : WB_SLICE_EMPTY);
    wb_json_field_time(j, "error_time", wb_answer_backup_fails(backup) ? s->error_ms : 0);
}
