/*
 * registry_tasks.c - tasks, which one machine at a time does for all, and bars, which all machines enforce.
 */
#include "base/buf.h"
#include "base/error.h"
#include "registry/registry_inside.h"

enum { BARS_AT_ONCE = 1000 };

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

struct task_call {
    const char *task;
    int64_t term;
    struct wb_slice state;
    struct wb_buf *state_out;
    bool done;
};

static int check_task(const char *task)
{
    size_t len = strlen(task);

    return len > 0 && len < WB_REGISTRY_NAME_MAX
               ? 0
               : wb_fail(WB_E_INVALID, "the name of a task has up to %d bytes", WB_REGISTRY_NAME_MAX - 1);
}

static int take_task(struct wb_registry *r, void *context)
{
    struct task_call *t = context;
    char holder[WB_REGISTRY_NAME_MAX];
    int err = WB_SQL_RUN(r->sql, R_TASK_ADD, wb_registry_text(t->task));

    if (err == 0)
        err = WB_SQL_RUN(r->sql, R_TASK, wb_registry_text(t->task));
    if (err <= 0)
        return err < 0 ? err : wb_fail(WB_SQL_AGAIN, "the row of task %s is not there yet", t->task);
    err = wb_registry_column(r, R_TASK, 0, holder, sizeof holder);
    bool mine = wb_slice_equal(wb_sql_text(r->sql, R_TASK, 1), wb_slice_str(r->session));
    t->term = wb_sql_number(r->sql, R_TASK, 2);
    wb_buf_clear(t->state_out);
    if (err == 0)
        err = wb_buf_append_slice(t->state_out, wb_sql_text(r->sql, R_TASK, 3));
    bool alive = wb_sql_number(r->sql, R_TASK, 4) != 0;
    wb_sql_end(r->sql, R_TASK);
    if (err < 0 || mine)
        return err;
    if (alive)
        return wb_fail(WB_E_BUSY, "the machine %s has the task %s", holder, t->task);
    err = WB_REGISTRY_ASK(r, &t->term, R_TASK_TAKE, wb_registry_text(t->task), wb_registry_text(r->name),
                          wb_registry_text(r->session), wb_sql_int(t->term), wb_registry_text(holder));
    return err == 0 ? wb_fail(WB_E_BUSY, "another machine has just taken the task %s", t->task) : err;
}

int wb_registry_task_take(struct wb_registry *r, const char *task, int64_t *term_out, struct wb_buf *state_out)
{
    struct task_call t = {.task = task, .state_out = state_out};
    int err = wb_registry_need_machine(r);

    *term_out = -1;
    if (err == 0)
        err = check_task(task);
    if (err == 0 && wb_registry_lease_left_ms(r) == 0)
        err = wb_fail(WB_E_DENIED, "the lease of the machine %s is over", r->name);
    if (err == 0)
        err = wb_registry_transact(r, WB_SQL_WRITE, take_task, &t);
    if (err == 0)
        *term_out = t.term;
    return err;
}

static int leave_task(struct wb_registry *r, void *context)
{
    const struct task_call *t = context;
    int64_t term;
    int err = WB_REGISTRY_ASK(r, &term, R_TASK_LEAVE, wb_registry_text(t->task), wb_registry_text(r->name),
                              wb_registry_text(r->session), wb_sql_int(t->term), wb_sql_str(t->state),
                              wb_registry_text(t->done ? "" : r->name), wb_registry_text(t->done ? "" : r->session));

    return err == 0 ? wb_fail(WB_E_DENIED, "the machine %s does not have the task %s any more", r->name, t->task) : err;
}

int wb_registry_task_leave(struct wb_registry *r, const char *task, int64_t term, struct wb_slice state, bool done)
{
    struct task_call t = {.task = task, .term = term, .state = state, .done = done};
    int err = wb_registry_need_machine(r);

    return err < 0 ? err : wb_registry_transact(r, WB_SQL_ONE, leave_task, &t);
}

/* ---- bars -----------------------------------------------------------------------------------------------------------
 */

struct bar_call {
    const char *what;
    bool lifted;
    int64_t number;
};

static int set_bar(struct wb_registry *r, void *context)
{
    struct bar_call *b = context;
    int err = WB_REGISTRY_ASK(r, &b->number, R_BAR_NUMBER, wb_sql_int(1));

    if (err <= 0)
        return err < 0 ? err
                       : wb_fail(WB_E_CORRUPT, "the registry in %s is damaged: the row of the cluster is missing",
                                 wb_sql_where(r->sql));
    return WB_SQL_RUN(r->sql, R_BAR_SET, wb_registry_text(b->what), wb_sql_int(b->number), wb_sql_int(b->lifted));
}

int wb_registry_bar(struct wb_registry *r, const char *what, bool lifted, uint64_t *number_out)
{
    struct bar_call b = {.what = what, .lifted = lifted};

    *number_out = 0;
    if (!what[0] || strlen(what) >= WB_REGISTRY_WHAT_MAX)
        return wb_fail(WB_E_INVALID, "what is barred has 1 to %d bytes", WB_REGISTRY_WHAT_MAX - 1);
    int err = wb_registry_transact(r, WB_SQL_WRITE, set_bar, &b);
    if (err == 0)
        *number_out = (uint64_t)b.number;
    return err;
}

struct barred_rows {
    int64_t after;
    struct wb_buf text; /* number, lifted and text with a NUL, one after the other */
    WB_VEC(struct wb_registry_bar) bars;
};

static int read_bars(struct wb_registry *r, void *context)
{
    struct barred_rows *list = context;

    wb_vec_clear(&list->bars);
    wb_buf_clear(&list->text);
    int err = WB_SQL_RUN(r->sql, R_BARS, wb_sql_int(list->after), wb_sql_int(BARS_AT_ONCE));
    while (err > 0) {
        struct wb_registry_bar bar = {.number = (uint64_t)wb_sql_number(r->sql, R_BARS, 0),
                                      .lifted = wb_sql_number(r->sql, R_BARS, 2) != 0};
        err = wb_buf_append_slice(&list->text, wb_sql_text(r->sql, R_BARS, 1));
        if (err == 0)
            err = wb_buf_append_char(&list->text, '\0');
        if (err == 0)
            err = wb_vec_push(&list->bars, bar);
        if (err == 0)
            err = wb_sql_next(r->sql, R_BARS);
    }
    return err;
}

int wb_registry_bars_each(struct wb_registry *r, uint64_t after,
                          int (*each)(void *context, const struct wb_registry_bar *bar), void *context)
{
    struct barred_rows list = {.after = (int64_t)after, .text = WB_BUF_INIT};
    int err = 0;

    do {
        err = wb_registry_transact(r, WB_SQL_READ, read_bars, &list);
        const char *text = list.text.ptr;
        for (size_t i = 0; i < list.bars.count && err == 0; i++) {
            list.bars.items[i].what = text;
            text += strlen(text) + 1;
            list.after = (int64_t)list.bars.items[i].number;
            err = each(context, &list.bars.items[i]);
        }
    } while (err == 0 && list.bars.count == BARS_AT_ONCE);
    wb_vec_release(&list.bars);
    wb_buf_release(&list.text);
    return err;
}

static int confirm_bars(struct wb_registry *r, void *context)
{
    return WB_SQL_RUN(r->sql, R_BARS_CONFIRM, wb_registry_text(r->name), wb_registry_text(r->session),
                      wb_sql_int(*(const int64_t *)context));
}

int wb_registry_bars_confirm(struct wb_registry *r, uint64_t number)
{
    int64_t upto = (int64_t)number;
    int err = wb_registry_need_machine(r);

    return err < 0 ? err : wb_registry_transact(r, WB_SQL_ONE, confirm_bars, &upto);
}
