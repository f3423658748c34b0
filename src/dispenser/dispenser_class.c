/*
 * dispenser_class.c - stores the classes of sites and reads them. What a class means is decided elsewhere: by crawls
 * (delay) and by the choice of what to fetch next (fetches, min, max).
 */
#include "dispenser/dispenser_rows.h"
#include "base/error.h"
#include "base/vec.h"

/* Classes to be stored, or read. */
struct class_list {
    const struct wb_site_class *set; /* to be stored */
    size_t count;
    struct wb_buf names;                /* of the classes that were read, one after another */
    WB_VEC(struct wb_site_class) found; /* those classes; their names are set at the end, because the buffer moves */
};

static int set_classes(struct wb_dispenser *d, void *context)
{
    const struct class_list *l = context;
    int err = 0;

    for (size_t i = 0; i < l->count && err == 0; i++) {
        const struct wb_site_class *c = &l->set[i];
        err = WB_SQL_RUN(d->sql, S_CLASS_SET, wb_sql_str(c->name), wb_sql_int(c->fetches), wb_sql_int(c->delay_ms),
                         wb_sql_int(c->min_ms), wb_sql_int(c->max_ms));
    }
    return err;
}

int wb_dispenser_set_classes(struct wb_dispenser *d, const struct wb_site_class *classes, size_t count)
{
    struct class_list l = {.set = classes, .count = count};
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_dispenser_check_text("name of a class", classes[i].name);
    return err < 0 || count == 0 ? err : wb_dispenser_transact(d, true, set_classes, &l);
}

static int read_classes(struct wb_dispenser *d, void *context)
{
    struct class_list *l = context;
    int err = wb_sql_run(d->sql, S_CLASSES, NULL, 0);

    wb_buf_clear(&l->names);
    wb_vec_clear(&l->found);
    while (err > 0) {
        struct wb_slice name = wb_sql_text(d->sql, S_CLASSES, 0);
        struct wb_site_class c = {
            .name = {NULL, name.len},
            .fetches = wb_sql_number(d->sql, S_CLASSES, 1),
            .delay_ms = wb_sql_number(d->sql, S_CLASSES, 2),
            .min_ms = wb_sql_number(d->sql, S_CLASSES, 3),
            .max_ms = wb_sql_number(d->sql, S_CLASSES, 4),
        };
        err = wb_buf_append_slice(&l->names, name);
        if (err == 0)
            err = wb_vec_push(&l->found, c);
        if (err == 0)
            err = wb_sql_next(d->sql, S_CLASSES);
    }
    return err;
}

int wb_dispenser_classes(struct wb_dispenser *d, wb_class_each each, void *context)
{
    struct class_list l = {.names = WB_BUF_INIT, .found = WB_VEC_INIT};
    int err = wb_dispenser_transact(d, false, read_classes, &l);
    const char *name = l.names.ptr;

    for (size_t i = 0; err == 0 && i < l.found.count; i++) {
        struct wb_site_class *c = &l.found.items[i];
        c->name.ptr = name;
        name += c->name.len;
        err = each(context, c);
    }
    wb_buf_release(&l.names);
    wb_vec_release(&l.found);
    return err;
}
