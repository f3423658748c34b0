/*
 * thresholds.c - the file of the thresholds that were learnt.
 *
 *   webbase thresholds 1
 *   policy optimal
 *   theta optimal 0.0123
 *   theta optimal 0.4 news
 *   check ...
 */
#include "cycle/thresholds.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "cycle/statefile.h"
#include "os/path.h"

#define FILE_NAME "thresholds"
#define TITLE "thresholds"
#define BEGIN_DAYS 7.0

static struct wb_thresholds_row *find_row(const struct wb_thresholds *t, enum wb_refresh_policy policy,
                                          struct wb_slice class_name)
{
    for (size_t i = 0; i < t->count; i++) {
        struct wb_thresholds_row *row = &t->rows[i];
        struct wb_slice name = row->class_name ? wb_slice_str(row->class_name) : WB_SLICE_EMPTY;
        if (row->policy == policy && wb_slice_equal(name, class_name))
            return row;
    }
    return NULL;
}

double wb_thresholds_get(const struct wb_thresholds *thresholds, enum wb_refresh_policy policy,
                         struct wb_slice class_name)
{
    const struct wb_thresholds_row *row = find_row(thresholds, policy, class_name);

    double theta = row ? row->theta : wb_refresh_first_theta(policy, BEGIN_DAYS);

    WB_CHECK(theta > 0);
    return theta;
}

int wb_thresholds_set(struct wb_thresholds *t, enum wb_refresh_policy policy, struct wb_slice class_name, double theta)
{
    WB_CHECK(theta > 0);
    struct wb_thresholds_row *row = find_row(t, policy, class_name);

    if (row) {
        row->theta = theta;
        return 0;
    }
    if (wb_grow(&t->rows, &t->cap, t->count + 1) < 0)
        return WB_E_NOMEM;
    row = &t->rows[t->count];
    *row = (struct wb_thresholds_row){.policy = policy, .theta = theta};
    if (class_name.len) {
        row->class_name = wb_strndup(class_name.ptr, class_name.len);
        if (!row->class_name)
            return WB_E_NOMEM;
    }
    t->count++;
    return 0;
}

void wb_thresholds_release(struct wb_thresholds *thresholds)
{
    for (size_t i = 0; i < thresholds->count; i++)
        wb_free(thresholds->rows[i].class_name);
    wb_free(thresholds->rows);
    *thresholds = (struct wb_thresholds){0};
}

/* Takes the word before the first blank off *text. */
static struct wb_slice take_word(struct wb_slice *text)
{
    const char *blank = memchr(text->ptr, ' ', text->len);
    size_t len = blank ? (size_t)(blank - text->ptr) : text->len;
    struct wb_slice word = wb_slice(text->ptr, len);

    *text = wb_slice(text->ptr + len + (blank != NULL), text->len - len - (blank != NULL));
    return word;
}

static int read_lines(struct wb_slice lines, struct wb_thresholds *t)
{
    struct wb_slice name, value;
    enum wb_refresh_policy policy;
    double theta;
    int err = 0;

    while (err == 0 && wb_statefile_line(&lines, &name, &value)) {
        if (!wb_refresh_policy_parse(take_word(&value), &policy))
            continue; /* a later version wrote this line */
        if (wb_slice_equal(name, WB_SLICE_LIT("policy")))
            t->policy = policy;
        else if (wb_slice_equal(name, WB_SLICE_LIT("theta")) && wb_slice_to_double(take_word(&value), &theta) &&
                 theta > 0)
            err = wb_thresholds_set(t, policy, value, theta);
    }
    return err;
}

int wb_thresholds_read(const char *dir, void (*warn)(void *context, const char *message), void *context,
                       struct wb_thresholds *thresholds_out)
{
    char *path = wb_path_join(dir, FILE_NAME);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice lines;

    *thresholds_out = (struct wb_thresholds){.policy = WB_REFRESH_OPTIMAL};
    if (!path)
        return WB_E_NOMEM;
    int err = wb_statefile_read(path, TITLE, &mem, &lines);
    if (err == 0)
        err = read_lines(lines, thresholds_out);
    else if (err == WB_E_NOTFOUND)
        err = 0;
    else if (err == WB_E_CORRUPT || err == WB_E_LIMIT) {
        if (warn)
            warn(context, wb_error_message());
        err = 0;
    }
    wb_buf_release(&mem);
    wb_free(path);
    return err;
}

int wb_thresholds_write(const char *dir, const struct wb_thresholds *thresholds)
{
    char *path = wb_path_join(dir, FILE_NAME);
    struct wb_buf lines = WB_BUF_INIT;
    int err = path ? wb_buf_printf(&lines, "policy %s\n", wb_refresh_policy_word(thresholds->policy)) : WB_E_NOMEM;

    for (size_t i = 0; err == 0 && i < thresholds->count; i++) {
        const struct wb_thresholds_row *row = &thresholds->rows[i];
        WB_CHECK(row->theta > 0);
        err = wb_buf_printf(&lines, "theta %s %.17g%s%s\n", wb_refresh_policy_word(row->policy), row->theta,
                            row->class_name ? " " : "", row->class_name ? row->class_name : "");
    }
    if (err == 0)
        err = wb_statefile_write(path, TITLE, wb_buf_slice(&lines));
    wb_buf_release(&lines);
    wb_free(path);
    return err;
}
