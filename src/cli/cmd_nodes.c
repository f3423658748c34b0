/*
 * cmd_nodes.c - webbase nodes: lists, adds and removes the directories that hold the pages.
 *
 *   node  state      role  organisation  pages    capacity     used        free  dead  get  put  stream  directory
 *      1  streaming  both  log            1200  2000000000  4096000  1000000000    3%    0    0       1  node1
 *      2  down       both  log            1180           0        0           0    0%    0    0       0  /disk2/pages
 *         node 2 is down: /disk2/pages is empty (is the disk mounted?)
 *   {"node":1,"dir":"node1","role":"both",...,"pages":1200,"requests":{"get":0,"put":0,"stream":1}}
 *   {...,"why":"node 2 is down: ...",...}                 of a node that is down
 *   {...,"moving":"leaving",...}                          of one that is being removed; "arriving": added
 *   {"event":"done","node":3,"dir":"/disk3/pages"}        when it was added; without dir when it was removed
 */
#include "answer/answer.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "move/move.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>

/* ---- listing ----------------------------------------------------------------------------------- */

static int add_json(struct wb_buf *out, const struct wb_store_node *n)
{
    struct wb_json j;

    wb_json_init(&j, out);
    wb_json_object(&j);
    wb_answer_node(&j, n, true);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

/* Texts from disk, such as directories, are shown without control characters. */
static int add_text(struct wb_buf *out, const char *text)
{
    size_t before = out->len;
    int err = wb_buf_append_str(out, text);

    if (err == 0)
        wb_output_clean(out->ptr + before, out->len - before);
    return err < 0 ? err : wb_buf_append_char(out, '\n');
}

static int add_words(struct wb_buf *out, const struct wb_store_node *n)
{
    int err = 0;

    if (out->len == 0)
        err = wb_buf_append_str(out, "node  state      role    organisation       pages       capacity           used  "
                                     "         free  dead   get   put  stream  directory\n");
    if (err == 0)
        err = wb_buf_printf(out, "%4" PRIu32 "  %-9s  %-6s  %-12s  %10" PRIu64 "  %13" PRIu64 "  %13" PRIu64
                            "  %13" PRIu64 "  %3.0f%%  %4" PRIu64 "  %4" PRIu64 "  %6" PRIu64 "  ", n->number,
                            wb_store_node_state_word(n->state), wb_store_node_role_word(n->role),
                            wb_organisation_word(n->organisation), n->pages, n->capacity, n->used, n->free,
                            100 * n->fragmentation, n->gets, n->puts, n->streams);
    if (err == 0)
        err = add_text(out, n->dir);
    if (err == 0 && n->state == WB_STORE_NODE_DOWN)
        err = wb_buf_append_str(out, "      ");
    if (err == 0 && n->state == WB_STORE_NODE_DOWN)
        err = add_text(out, n->why);
    if (err == 0 && n->leaving)
        err = wb_buf_printf(out, "      it is being removed; if that was interrupted, repeat 'webbase nodes "
                                 "remove %" PRIu32 "'\n", n->number);
    else if (err == 0 && n->arriving)
        err = wb_buf_append_str(out, "      it is being added; if that was interrupted, repeat 'webbase nodes add'\n");
    return err;
}

struct node_list {
    bool json;
    struct wb_buf rows;
};

static int on_node(void *context, const struct wb_store_node *node)
{
    struct node_list *list = context;

    return list->json ? add_json(&list->rows, node) : add_words(&list->rows, node);
}

static int list_all(struct wb_store *store, const struct wb_options *options)
{
    struct node_list list = {.json = options->json};

    int err = wb_store_node_each(store, on_node, &list);
    if (err == 0 && list.rows.len)
        err = wb_output_lines(&list.rows);
    wb_buf_release(&list.rows);
    return err;
}

/* ---- adding and removing ----------------------------------------------------------------------- */

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    wb_progress_update(context, done, total, 0);
    return !wb_stop_requested();
}

static int say_done(const struct wb_options *options, uint32_t number, const char *dir, const char *words)
{
    struct wb_json j;

    if (!options->json)
        return wb_output_printf("%s node %" PRIu32 "\n", words, number);
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "node", number);
    if (dir)
        wb_json_field_text(&j, "dir", wb_slice_str(dir));
    return wb_output_object_end(&j);
}

static int add(struct wb_store *store, const struct wb_options *options)
{
    struct wb_progress progress;
    uint32_t number;

    wb_progress_init(&progress, "nodes add");
    int err = wb_move_node_add(store, options->args[1], wb_options_flag(options, "update"), on_progress, &progress,
                                &number);
    wb_progress_clear();
    return err < 0 ? err : say_done(options, number, options->args[1], "added");
}

static int remove_one(struct wb_store *store, const struct wb_options *options)
{
    struct wb_progress progress;
    uint64_t number = 0;

    if (!wb_slice_to_u64(wb_slice_str(options->args[1]), &number) || number > UINT32_MAX)
        return wb_fail(WB_E_NOTFOUND, "there is no node %s", options->args[1]);
    wb_progress_init(&progress, "nodes remove");
    int err = wb_move_node_remove(store, (uint32_t)number, on_progress, &progress);
    wb_progress_clear();
    return err < 0 ? err : say_done(options, (uint32_t)number, NULL, "removed");
}

/* ---- the command ------------------------------------------------------------------------------- */

static const struct node_action {
    const char *name;
    const char *takes; /* what follows the name, or NULL */
    enum wb_store_mode mode;
    int (*run)(struct wb_store *store, const struct wb_options *options);
} actions[] = {
    {"list", NULL, WB_STORE_READ, list_all},
    {"add", "directory", WB_STORE_WRITE, add},
    {"remove", "number", WB_STORE_WRITE, remove_one},
};

static const struct node_action *find_action(const struct wb_options *options)
{
    const char *name = options->arg_count ? options->args[0] : "list";

    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

/* The option parser knows only the command; here the arguments and options of the action are checked. */
static int check_words(const struct wb_options *options, const struct node_action *action)
{
    size_t wanted = action && action->takes ? 2 : 1;

    if (!action)
        return wb_options_usage("nodes: unknown action '%s'", options->args[0]);
    if (action->takes && options->arg_count < wanted)
        return wb_options_usage("nodes %s: the %s of a node is missing", action->name, action->takes);
    if (options->arg_count > wanted)
        return wb_options_usage("nodes %s: does not take '%s'", action->name, options->args[wanted]);
    if (action->run == add && options->args[1][0] == '\0')
        return wb_options_usage("nodes add: the directory has an empty name");
    if (action->run != add && wb_options_flag(options, "update"))
        return wb_options_usage("nodes %s: does not take --update", action->name);
    return 0;
}

int wb_cmd_nodes(const struct wb_options *options)
{
    const struct node_action *action = find_action(options);
    struct wb_store *store = NULL;

    int err = check_words(options, action);
    if (err < 0)
        return err;
    wb_stop_on_signals();
    err = wb_store_open(options->dir, action->mode, &store);
    if (err == 0)
        err = action->run(store, options);
    wb_store_close(store);
    return err;
}
