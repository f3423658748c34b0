/*
 * cmd_snapshot.c - webbase snapshot: seals, lists and drops snapshots.
 *
 *   sealed snapshot 3 (corpus-2026) with 472 pages; it is kept until it is dropped
 *   {"snapshot":3,"name":"corpus-2026","epoch":12,"time":...,"pages":472,"expires":null,"held_by":["person"]}
 *   {"event":"done","snapshot":3,"name":"corpus-2026"}      when it was dropped
 */
#include "answer/answer.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "os/clock.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- how a snapshot is shown ------------------------------------------------------------------- */

static int add_json(struct wb_buf *out, const struct wb_store_snapshot *s)
{
    struct wb_json j;

    wb_json_init(&j, out);
    wb_json_object(&j);
    wb_answer_snapshot(&j, s);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

static void expiry_text(const struct wb_store_snapshot *s, char text_out[WB_DATE_TEXT_MAX])
{
    if (s->expires_ms)
        wb_date_format(s->expires_ms, text_out);
    else
        snprintf(text_out, WB_DATE_TEXT_MAX, "never");
}

static int add_words(struct wb_buf *out, const struct wb_store_snapshot *s)
{
    char time[WB_DATE_TEXT_MAX], expires[WB_DATE_TEXT_MAX], holder[WB_ANSWER_HOLDER_MAX];
    int err = 0;

    wb_date_format(s->time_ms, time);
    expiry_text(s, expires);
    if (out->len == 0)
        err = wb_buf_printf(out, "snapshot  %-20s  %-24s  %-24s       epoch       pages  held by\n", "name", "sealed",
                            "expires");
    if (err == 0)
        err = wb_buf_printf(out, "%8" PRIu32 "  %-20s  %-24s  %-24s  %10" PRIu64 "  %10" PRIu64 "  ", s->number,
                            s->name, time, expires, s->epoch, s->pages);
    for (size_t i = 0; err == 0 && i < s->holder_count; i++)
        err = wb_buf_printf(out, "%s%s", i ? ", " : "", wb_answer_holder(&s->holders[i], holder));
    return err < 0 ? err : wb_buf_append_char(out, '\n');
}

/* ---- actions ----------------------------------------------------------------------------------- */

static int say_sealed(const struct wb_store_snapshot *s)
{
    char expires[WB_DATE_TEXT_MAX];

    expiry_text(s, expires);
    return wb_output_printf("sealed snapshot %" PRIu32 "%s%s%s with %" PRIu64 " page%s; it is kept until %s\n",
                            s->number, s->name[0] ? " (" : "", s->name, s->name[0] ? ")" : "", s->pages,
                            wb_output_plural(s->pages), s->expires_ms ? expires : "it is dropped");
}

static int seal(struct wb_store *store, const struct wb_options *options)
{
    const char *name = wb_options_text(options, "name");
    int64_t keep_ms = wb_options_duration(options, "keep", 0);
    struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot s = {0};
    struct wb_buf line = WB_BUF_INIT;

    person.expires_ms = keep_ms ? wb_clock_wall_ms() + keep_ms : 0;
    int err = wb_store_seal(store, wb_slice_str(name ? name : ""), &person, &s);
    if (err == 0)
        err = options->json ? add_json(&line, &s) : say_sealed(&s);
    if (err == 0 && options->json)
        err = wb_output_lines(&line);
    wb_store_snapshot_release(&s);
    wb_buf_release(&line);
    return err;
}

struct snapshot_list {
    bool json;
    struct wb_buf rows;
};

static int on_snapshot(void *context, const struct wb_store_snapshot *s)
{
    struct snapshot_list *list = context;

    return list->json ? add_json(&list->rows, s) : add_words(&list->rows, s);
}

static int list_all(struct wb_store *store, const struct wb_options *options)
{
    struct snapshot_list list = {.json = options->json};

    int err = wb_store_snapshot_each(store, on_snapshot, &list);
    if (err == 0 && list.rows.len)
        err = wb_output_lines(&list.rows);
    else if (err == 0 && !options->json)
        err = wb_output_printf("there are no snapshots\n");
    wb_buf_release(&list.rows);
    return err;
}

static int drop(struct wb_store *store, const struct wb_options *options)
{
    struct wb_store_snapshot s = {0};
    struct wb_json j;

    int err = wb_store_snapshot_find(store, wb_slice_str(options->args[1]), &s);
    if (err == 0)
        err = wb_store_drop(store, s.number);
    if (err == 0 && options->json) {
        wb_output_object_begin(&j, "done");
        wb_json_field_u64(&j, "snapshot", s.number);
        wb_json_field_text(&j, "name", wb_slice_str(s.name));
        err = wb_output_object_end(&j);
    } else if (err == 0) {
        err = wb_output_printf("dropped snapshot %" PRIu32 "%s%s%s; what only it kept is gone from disk after the next "
                               "compact\n",
                               s.number, s.name[0] ? " (" : "", s.name, s.name[0] ? ")" : "");
    }
    wb_store_snapshot_release(&s);
    return err;
}

static const struct snapshot_action {
    const char *name;
    size_t args; /* how many arguments follow the name */
    enum wb_store_mode mode;
    int (*run)(struct wb_store *store, const struct wb_options *options);
} actions[] = {
    {"", 0, WB_STORE_WRITE, seal},
    {"list", 0, WB_STORE_READ, list_all},
    {"drop", 1, WB_STORE_WRITE, drop},
};

static const struct snapshot_action *find_action(const struct wb_options *options)
{
    const char *name = options->arg_count ? options->args[0] : "";

    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0 && !*name == !options->arg_count)
            return &actions[i];
    return NULL;
}

/* The option parser knows only the command; here the arguments and options of the action are checked. */
static int check_words(const struct wb_options *options, const struct snapshot_action *action)
{
    const char *name = wb_options_text(options, "name"), *keep = wb_options_text(options, "keep");

    if (!action)
        return wb_options_usage("snapshot: unknown action '%s'", options->args[0]);
    if (action->run != seal && options->arg_count - 1 < action->args)
        return wb_options_usage("snapshot %s: the number or name of a snapshot is missing", action->name);
    if (action->run != seal && options->arg_count - 1 > action->args)
        return wb_options_usage("snapshot %s: does not take '%s'", action->name, options->args[1 + action->args]);
    if (action->run != seal && (name || keep))
        return wb_options_usage("snapshot %s: does not take --%s", action->name, name ? "name" : "keep");
    if (name && wb_store_name_check(wb_slice_str(name)) < 0)
        return wb_options_usage("--name takes 1 to %d letters, digits, '.', '_' or '-' that are not a number, "
                                "not '%.80s'",
                                WB_STORE_NAME_MAX, name);
    if (keep && wb_options_duration(options, "keep", 0) == 0)
        return wb_options_usage("--keep takes a duration of more than 0, not '%s'", keep);
    return 0;
}

int wb_cmd_snapshot(const struct wb_options *options)
{
    const struct snapshot_action *action = find_action(options);
    struct wb_store *store = NULL;

    int err = check_words(options, action);
    if (err == 0)
        err = wb_store_open(options->dir, action->mode, &store);
    if (err == 0)
        err = action->run(store, options);
    wb_store_close(store);
    return err;
}
