/*
 * backups.c - the repository's vaults as gauges for Prometheus, as a table of the dashboard, and as a sentence if one
 * of them needs somebody. Buckets, directories and the texts of errors are not shown: readers may be strangers. A vault
 * is called by its number, which is 1 for the oldest one, and by its kind.
 */
#include "serve/backups.h"
#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>

/* ---- gauges ------------------------------------------------------------------------------------------------------ */

static int64_t seconds_since(int64_t then_ms, int64_t now_ms)
{
    return then_ms && now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
}

enum gauge { UNSAFE_AGE, WAITING, SAFE_TIME, SAFE_PAGES, FOLLOWING, FAILING, ERROR_TIME, GAUGES };

static const struct {
    const char *name, *help;
} gauges[GAUGES] = {
    [UNSAFE_AGE] = {"backup_unsafe_age_seconds",
                    "For how long the oldest change has waited that is not safe; 0: none has."},
    [WAITING] = {"backup_waiting_bytes", "What the last look found to be shipped."},
    [SAFE_TIME] = {"backup_safe_timestamp_seconds", "When the newest safe state was taken; 0: nothing is safe."},
    [SAFE_PAGES] = {"backup_safe_pages", "Pages that a restore would have."},
    [FOLLOWING] = {"backup_following", "1 if backup --follow is running."},
    [FAILING] = {"backup_failing", "1 if nothing has succeeded since the last error."},
    [ERROR_TIME] = {"backup_error_timestamp_seconds", "When the last error was; 0: something has succeeded since."},
};

static int64_t gauge_value(const struct wb_vault_status *s, enum gauge gauge, int64_t now_ms)
{
    bool fails = s->error[0] != '\0';

    switch (gauge) {
    case UNSAFE_AGE:
        return seconds_since(s->unsafe_since_ms, now_ms);
    case WAITING:
        return (int64_t)s->bytes_waiting;
    case SAFE_TIME:
        return s->safe_ms / 1000;
    case SAFE_PAGES:
        return (int64_t)s->safe_pages;
    case FOLLOWING:
        return s->following;
    case FAILING:
        return fails;
    case ERROR_TIME:
        return fails ? s->error_ms / 1000 : 0;
    case GAUGES:
        break;
    }
    WB_CHECK(!"a gauge");
    return 0;
}

int wb_backups_metrics(const struct wb_answer_backups *backups, int64_t now_ms, struct wb_buf *out)
{
    int err = 0;

    for (unsigned g = 0; g < GAUGES && backups->count && err == 0; g++) {
        const char *name = gauges[g].name;
        err = wb_buf_printf(out, "# HELP webbase_%s %s\n# TYPE webbase_%s gauge\n", name, gauges[g].help, name);
        for (size_t i = 0; i < backups->count && err == 0; i++)
            err = wb_buf_printf(out, "webbase_%s{vault=\"%zu\",kind=\"%s\"} %" PRId64 "\n", name, i + 1,
                                wb_answer_backup_kind(&backups->items[i]),
                                gauge_value(&backups->items[i].status, (enum gauge)g, now_ms));
    }
    return err;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static const char *state_word(const struct wb_answer_backup *backup)
{
    return wb_answer_backup_fails(backup) ? "fails" : backup->status.following ? "follows" : "not running";
}

/* A time, or what stands for none. */
static struct wb_htmlpen_value time_or(int64_t time_ms, const char *none)
{
    return time_ms ? wb_htmlpen_time(time_ms) : wb_htmlpen_str(none);
}

static void add_row(struct wb_htmlpen *h, size_t number, const struct wb_answer_backup *backup)
{
    const struct wb_vault_status *s = &backup->status;

    wb_htmlpen_put(h,
                   "<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td>{}</td>"
                   "<td>{}</td><td>{}</td></tr>\n",
                   wb_htmlpen_plain(number), wb_htmlpen_str(wb_answer_backup_kind(backup)),
                   time_or(s->safe_ms, "nothing yet"), wb_htmlpen_number(s->safe_pages),
                   time_or(s->unsafe_since_ms, "nothing waits"), wb_htmlpen_bytes(s->bytes_waiting),
                   wb_htmlpen_str(state_word(backup)));
}

void wb_backups_section(struct wb_htmlpen *h, const struct wb_answer_backups *backups)
{
    wb_htmlpen_raw(h, backups->count ? "<section id=\"backups\">\n" : "<section id=\"backups\" hidden>\n");
    wb_htmlpen_raw(h, "<h2>Backups</h2>\n"
                      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Backups\"><table>\n"
                      "<thead><tr><th scope=\"col\" class=\"number\">No.</th><th scope=\"col\">Kind</th>"
                      "<th scope=\"col\">Safe is the state of</th><th scope=\"col\" class=\"number\">Pages</th>"
                      "<th scope=\"col\">Not safe since</th><th scope=\"col\">Waiting</th><th scope=\"col\">State</th>"
                      "</tr></thead>\n<tbody id=\"backup-rows\">\n");
    for (size_t i = 0; i < backups->count; i++)
        add_row(h, i + 1, &backups->items[i]);
    wb_htmlpen_raw(h, "</tbody>\n</table></div>\n</section>\n");
}

int wb_backups_problem(const struct wb_answer_backups *backups, struct wb_buf *out)
{
    int err = 0;

    for (size_t i = 0; i < backups->count && err == 0; i++)
        if (wb_answer_backup_fails(&backups->items[i]))
            err = wb_buf_printf(out, "%sBackup %zu fails, so what is new is not safe: 'webbase stat' says why.",
                                out->len ? " " : "", i + 1);
    return err;
}
