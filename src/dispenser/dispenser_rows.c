/*
 * dispenser_rows.c - transactions, and a site's row between database and memory.
 *
 * Every change of an existing row goes through wb_dispenser_row_save(), except a claim, which is one statement. That
 * keeps two invariants, whatever happens: among the ready sites of a run that share an address exactly the best one
 * is the *head* (dispenser_schema.c says why), and webbase_count says how many sites of each run are in each state.
 * Nothing here decides which state a site gets.
 */
#include "dispenser/dispenser_rows.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <limits.h>

/* ---- transactions -------------------------------------------------------------------------------- */

static int write_deltas(struct wb_dispenser *d)
{
    int err = 0;

    WB_CHECK(d->delta_count == 0 || d->writing);
    for (unsigned i = 0; i < d->delta_count && err >= 0; i++) {
        const struct wb_dispenser_delta *delta = &d->deltas[i];
        if (delta->sites)
            err = WB_SQL_RUN(d->sql, S_COUNT, wb_sql_int(delta->run), wb_sql_int(delta->state),
                             wb_sql_int(delta->sites));
    }
    d->delta_count = 0;
    return err < 0 ? err : 0;
}

struct transaction {
    struct wb_dispenser *d;
    bool write;
    wb_dispenser_work work;
    void *context;
};

static int work_and_count(struct wb_sql *sql, void *context)
{
    struct transaction *t = context;
    struct wb_dispenser *d = t->d;

    (void)sql;
    d->delta_count = 0;
    d->writing = t->write;
    int err = t->work(d, t->context);
    if (err >= 0)
        err = write_deltas(d);
    d->writing = false;
    return err;
}

int wb_dispenser_transact(struct wb_dispenser *d, bool write, wb_dispenser_work work, void *context)
{
    struct transaction t = {d, write, work, context};

    WB_CHECK(d->magic == WB_DISPENSER_MAGIC && !d->writing);
    return wb_sql_transact(d->sql, write ? WB_SQL_WRITE : WB_SQL_READ, work_and_count, &t);
}

int wb_dispenser_count(struct wb_dispenser *d, int64_t run, enum wb_site_state state, int64_t sites)
{
    unsigned i = 0;

    while (i < d->delta_count && (d->deltas[i].run != run || d->deltas[i].state != state))
        i++;
    if (i == WB_DISPENSER_DELTAS) {
        int err = write_deltas(d);
        if (err < 0)
            return err;
        i = 0;
    }
    if (i == d->delta_count)
        d->deltas[d->delta_count++] = (struct wb_dispenser_delta){.run = run, .state = state};
    d->deltas[i].sites += sites;
    return 0;
}

/* ---- text ------------------------------------------------------------------------------------------ */

bool wb_dispenser_is_plain(struct wb_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
            return false;
    }
    return text.len > 0;
}

int wb_dispenser_check_text(const char *what, struct wb_slice text)
{
    if (text.len && (!wb_utf8_valid(text) || memchr(text.ptr, 0, text.len)))
        return wb_fail(WB_E_INVALID, "the dispenser cannot store this %s: it is not UTF-8 text", what);
    return 0;
}

struct wb_slice wb_dispenser_reason(struct wb_slice reason, char mem[WB_DISPENSER_REASON_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < reason.len;) {
        size_t n = wb_utf8_length(reason.ptr + i, reason.len - i), bytes = n ? n : 1;
        if (len + bytes > WB_DISPENSER_REASON_MAX)
            break;
        if (n == 0 || (n == 1 && (unsigned char)reason.ptr[i] < ' '))
            mem[len] = '?';
        else
            memcpy(mem + len, reason.ptr + i, n);
        len += bytes;
        i += bytes;
    }
    return wb_slice(mem, len);
}

struct wb_slice wb_dispenser_first_address(struct wb_slice addresses)
{
    size_t len = 0;

    while (len < addresses.len && addresses.ptr[len] != ' ')
        len++;
    return wb_slice(addresses.ptr, len);
}

/* ---- one row in memory -------------------------------------------------------------------------------- */

struct wb_dispenser_row wb_dispenser_row_new(struct wb_slice name, struct wb_slice scheme, int64_t run)
{
    struct wb_dispenser_row record = WB_DISPENSER_ROW_INIT;

    record.row = (struct wb_site_row){
        .name = name,
        .scheme = scheme,
        .state = WB_SITE_UNRESOLVED,
        .before = WB_SITE_UNRESOLVED,
        .run = run,
        .delay_ms = -1,
        .budget = -1,
    };
    return record;
}

void wb_dispenser_row_apply_plan(const struct wb_site_plan *plan, struct wb_dispenser_row *record)
{
    struct wb_site_row *row = &record->row;

    if (plan->class_name.len)
        row->class_name = plan->class_name;
    if (plan->priority != INT_MIN)
        row->priority = plan->priority;
    if (plan->delay_ms != -2)
        row->delay_ms = plan->delay_ms;
    if (plan->budget != -2)
        row->budget = plan->budget;
    if (!plan->needed)
        row->needed = WB_NEEDED_NOT;
}

void wb_dispenser_row_make_listed(struct wb_dispenser_row *record)
{
    struct wb_site_row *row = &record->row;
    uint32_t last = row->visit + 1 > row->listed ? row->visit + 1 : row->listed;

    row->listed = last + 1;
    row->attempts = 0;
    row->pages = 0;
}

void wb_dispenser_row_make_plain(struct wb_dispenser_row *record)
{
    struct wb_site_row *row = &record->row;

    if (row->listed)
        row->visit = (row->listed > row->visit ? row->listed : row->visit) + 1;
    row->listed = 0;
}

void wb_dispenser_row_end_lease(struct wb_dispenser_row *record)
{
    struct wb_site_row *row = &record->row;

    WB_CHECK(row->owner.len > 0 && row->state != WB_SITE_CLAIMED);
    if (row->state == WB_SITE_READY && row->address.len == 0)
        row->state = WB_SITE_UNRESOLVED;
    if (record->anew && wb_site_is_over(row->state)) {
        wb_dispenser_row_make_plain(record);
        row->state = WB_SITE_UNRESOLVED;
        row->seeds_taken = row->pages = 0;
        row->probe = WB_SLICE_EMPTY;
    }
    record->anew = false;
    row->owner = WB_SLICE_EMPTY;
    row->lease_ms = 0;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* Reads the columns of a row one after another. */
struct row_columns {
    const struct wb_dispenser *d;
    enum wb_dispenser_statement statement;
    unsigned at;
};

static int64_t number(struct row_columns *c)
{
    return wb_sql_number(c->d->sql, c->statement, c->at++);
}

static struct wb_slice text(struct row_columns *c)
{
    return wb_sql_text(c->d->sql, c->statement, c->at++);
}

static bool is_state(int64_t state)
{
    return state >= WB_SITE_UNRESOLVED && state <= WB_SITE_REFUSED;
}

/* The columns are those of WB_SITE_COLUMNS, in that order. */
int wb_dispenser_row_read(const struct wb_dispenser *d, enum wb_dispenser_statement statement,
                          struct wb_dispenser_row *record_out)
{
    struct row_columns c = {d, statement, 0};
    struct wb_site_row *row = &record_out->row;

    *record_out = WB_DISPENSER_ROW_INIT;
    row->id = number(&c);
    row->name = text(&c);
    row->scheme = text(&c);
    int64_t state = number(&c), back_state = number(&c);
    row->run = number(&c);
    int64_t rank = number(&c);
    row->delay_ms = number(&c);
    row->budget = number(&c);
    row->class_name = text(&c);
    row->address = text(&c);
    row->address_expires_ms = number(&c);
    row->next_ms = number(&c);
    int64_t attempts = number(&c);
    row->reason = text(&c);
    row->alias_of = text(&c);
    row->probe = text(&c);
    row->visit = (uint32_t)number(&c);
    row->trail.log = (uint32_t)number(&c);
    row->trail.offset = (uint64_t)number(&c);
    row->trail_ms = number(&c);
    row->home = text(&c);
    row->seeds_taken = number(&c);
    row->owner = text(&c);
    row->lease_ms = number(&c);
    row->pages = number(&c);
    record_out->anew = number(&c) != 0;
    record_out->seed_last = number(&c);
    int64_t listed = number(&c);
    row->sitemaps_ms = number(&c);
    int64_t needed = number(&c);
    row->needed = needed >= 0 && needed <= WB_NEEDED_HERE ? (enum wb_site_needed)needed : WB_NEEDED_NOT;
    if (listed < 0 || listed > UINT32_MAX || !is_state(state) || !is_state(back_state) ||
        rank < -(int64_t)INT_MAX || rank > INT_MAX || attempts < INT_MIN || attempts > INT_MAX ||
        (state == WB_SITE_CLAIMED) != (row->owner.len > 0))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: the row of the site with id %lld", wb_sql_where(d->sql),
                       (long long)row->id);
    row->listed = (uint32_t)listed;
    row->state = (enum wb_site_state)state;
    row->before = (enum wb_site_state)back_state;
    row->priority = (int)-rank;
    row->attempts = (int)attempts;
    return 0;
}

/* The texts of a row. */
static const size_t text_fields[] = {
    offsetof(struct wb_site_row, name),       offsetof(struct wb_site_row, scheme),
    offsetof(struct wb_site_row, class_name), offsetof(struct wb_site_row, address),
    offsetof(struct wb_site_row, reason),     offsetof(struct wb_site_row, alias_of),
    offsetof(struct wb_site_row, probe),      offsetof(struct wb_site_row, home),
    offsetof(struct wb_site_row, owner),
};

enum { FIELDS = sizeof text_fields / sizeof *text_fields };

static struct wb_slice *field(struct wb_site_row *row, size_t i)
{
    return (struct wb_slice *)(void *)((char *)row + text_fields[i]);
}

static size_t text_bytes(struct wb_site_row *row)
{
    size_t bytes = 0;

    for (size_t i = 0; i < FIELDS; i++)
        bytes += field(row, i)->len;
    return bytes;
}

static void move_text(struct wb_site_row *row, char *to)
{
    for (size_t i = 0; i < FIELDS; i++) {
        struct wb_slice *s = field(row, i);
        if (s->len)
            memcpy(to, s->ptr, s->len);
        s->ptr = to;
        to += s->len;
    }
}

int wb_dispenser_row_keep(struct wb_dispenser_row *record)
{
    WB_CHECK(!record->text);
    record->text = wb_alloc(text_bytes(&record->row));
    if (!record->text)
        return WB_E_NOMEM;
    move_text(&record->row, record->text);
    return 0;
}

int wb_dispenser_row_copy(const struct wb_dispenser_row *record, struct wb_buf *mem, struct wb_site_row *row_out)
{
    struct wb_site_row row = record->row;
    size_t bytes = text_bytes(&row);
    int err;

    wb_buf_clear(mem);
    err = wb_buf_reserve(mem, bytes + 1);
    if (err < 0)
        return err;
    move_text(&row, mem->ptr);
    mem->len = bytes;
    *row_out = row;
    return 0;
}

void wb_dispenser_row_release(struct wb_dispenser_row *record)
{
    wb_free(record->text);
    *record = WB_DISPENSER_ROW_INIT;
}

/* Reads the only row of a statement and ends it. `ran` is what running it returned. */
static int take_one(struct wb_dispenser *d, enum wb_dispenser_statement statement, int ran,
                    struct wb_dispenser_row *record_out)
{
    int err = ran;

    *record_out = WB_DISPENSER_ROW_INIT;
    if (ran <= 0)
        return ran;
    err = wb_dispenser_row_read(d, statement, record_out);
    if (err == 0)
        err = wb_dispenser_row_keep(record_out);
    wb_sql_end(d->sql, statement);
    return err < 0 ? err : 1;
}

int wb_dispenser_row_by_id(struct wb_dispenser *d, int64_t id, struct wb_dispenser_row *record_out)
{
    return take_one(d, S_BY_ID, WB_SQL_RUN(d->sql, S_BY_ID, wb_sql_int(id)), record_out);
}

int wb_dispenser_row_by_name(struct wb_dispenser *d, struct wb_slice name, struct wb_dispenser_row *record_out)
{
    return take_one(d, S_BY_NAME, WB_SQL_RUN(d->sql, S_BY_NAME, wb_sql_str(name)), record_out);
}

int wb_dispenser_row_by_host(struct wb_dispenser *d, struct wb_slice from, struct wb_slice to,
                             struct wb_dispenser_row *record_out)
{
    return take_one(d, S_BY_HOST, WB_SQL_RUN(d->sql, S_BY_HOST, wb_sql_str(from), wb_sql_str(to)), record_out);
}

/* ---- lists ------------------------------------------------------------------------------------------- */

int wb_dispenser_row_list_add(struct wb_dispenser_row_list *list, struct wb_dispenser_row *taken)
{
    int err = wb_vec_push(list, *taken);

    if (err == 0)
        *taken = WB_DISPENSER_ROW_INIT;
    return err;
}

int wb_dispenser_row_list_read(struct wb_dispenser *d, enum wb_dispenser_statement statement, int ran,
                               struct wb_dispenser_row_list *list)
{
    int err = ran;

    while (err > 0) {
        struct wb_dispenser_row record;
        err = wb_dispenser_row_read(d, statement, &record);
        if (err == 0)
            err = wb_dispenser_row_keep(&record);
        if (err == 0)
            err = wb_dispenser_row_list_add(list, &record);
        if (err < 0)
            wb_dispenser_row_release(&record);
        else
            err = wb_sql_next(d->sql, statement);
    }
    return err;
}

void wb_dispenser_row_list_release(struct wb_dispenser_row_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        wb_dispenser_row_release(&list->items[i]);
    wb_vec_release(list);
}

int wb_dispenser_row_list_each(const struct wb_dispenser_row_list *list, wb_site_each each, void *context)
{
    int err = 0;

    for (size_t i = 0; i < list->count && err == 0; i++)
        err = each(context, &list->items[i].row);
    return err;
}

/* ---- changing ------------------------------------------------------------------------------------------ */

/* Makes the best of the ready sites with the run, home and address of this one their head. */
static int choose_head(struct wb_dispenser *d, const struct wb_site_row *row)
{
    struct wb_slice address = wb_dispenser_first_address(row->address), home = row->home;
    int64_t run = row->run;
    int err = WB_SQL_RUN(d->sql, S_BEST, wb_sql_int(run), wb_sql_str(address), wb_sql_str(home));

    if (err <= 0)
        return err;
    int64_t best = wb_sql_number(d->sql, S_BEST, 0);
    bool is_head = wb_sql_number(d->sql, S_BEST, 1) != 0;
    wb_sql_end(d->sql, S_BEST);
    if (is_head)
        return 0;
    err = WB_SQL_RUN(d->sql, S_HEAD_CLEAR, wb_sql_int(run), wb_sql_str(address), wb_sql_str(home));
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_HEAD_SET, wb_sql_int(best));
}

/* True if a change from a to b affects neither heads nor counts. */
static bool same_place(const struct wb_site_row *a, const struct wb_site_row *b)
{
    return a->state == b->state && a->run == b->run && a->priority == b->priority &&
           wb_slice_equal(a->home, b->home) &&
           wb_slice_equal(wb_dispenser_first_address(a->address), wb_dispenser_first_address(b->address));
}

/* With stays, a site that is a head remains one. */
static int run_save(struct wb_dispenser *d, const struct wb_dispenser_row *now, bool stays)
{
    const struct wb_site_row *r = &now->row;

    return WB_SQL_RUN(d->sql, S_SAVE,
                      wb_sql_int(r->id), wb_sql_str(r->scheme), wb_sql_int(r->state), wb_sql_int(r->before),
                      wb_sql_int(r->run), wb_sql_int(-(int64_t)r->priority),
                      wb_sql_int(r->delay_ms), wb_sql_int(r->budget), wb_sql_str(r->class_name),
                      wb_sql_str(r->address), wb_sql_str(wb_dispenser_first_address(r->address)),
                      wb_sql_int(r->address_expires_ms),
                      wb_sql_int(r->next_ms), wb_sql_int(r->attempts), wb_sql_str(r->reason),
                      wb_sql_str(r->alias_of), wb_sql_str(r->probe), wb_sql_int(r->visit),
                      wb_sql_int(r->trail.log), wb_sql_int((int64_t)r->trail.offset), wb_sql_int(r->trail_ms),
                      wb_sql_str(r->home), wb_sql_int(r->seeds_taken),
                      wb_sql_str(r->owner), wb_sql_int(r->lease_ms), wb_sql_int(r->pages),
                      wb_sql_int(stays), wb_sql_int(now->anew), wb_sql_int(now->seed_last),
                      wb_sql_int(r->listed), wb_sql_int(r->sitemaps_ms), wb_sql_int(r->needed));
}

int wb_dispenser_row_save(struct wb_dispenser *d, const struct wb_dispenser_row *was,
                          const struct wb_dispenser_row *now)
{
    const struct wb_site_row *old = &was->row, *new = &now->row;
    bool stays = same_place(old, new);
    int err;

    WB_CHECK(d->writing);
    WB_CHECK(old->id == new->id);
    WB_CHECK((new->state == WB_SITE_CLAIMED) == (new->owner.len > 0));
    err = run_save(d, now, stays);
    if (err < 0 || stays)
        return err;
    if (old->state != new->state || old->run != new->run) {
        err = wb_dispenser_count(d, old->run, old->state, -1);
        if (err == 0)
            err = wb_dispenser_count(d, new->run, new->state, 1);
    }
    /* Do not ask whether it was a head: if many rows were read at once, saving one may have made another the head. */
    if (err == 0 && old->state == WB_SITE_READY)
        err = choose_head(d, old);
    if (err == 0 && new->state == WB_SITE_READY)
        err = choose_head(d, new);
    return err;
}

int wb_dispenser_row_insert(struct wb_dispenser *d, struct wb_dispenser_row *now)
{
    struct wb_site_row *r = &now->row;
    int err;

    WB_CHECK(d->writing && r->id == 0);
    WB_CHECK(r->state == WB_SITE_UNRESOLVED || r->state == WB_SITE_CLAIMED);
    err = WB_SQL_RUN(d->sql, S_INSERT, wb_sql_str(r->name), wb_sql_str(wb_site_domain(r->name)), wb_sql_str(r->scheme),
                     wb_sql_int(r->state), wb_sql_int(r->before), wb_sql_int(r->run), wb_sql_int(-(int64_t)r->priority),
                     wb_sql_int(r->delay_ms), wb_sql_int(r->budget), wb_sql_str(r->class_name), wb_sql_str(r->owner),
                     wb_sql_int(r->lease_ms), wb_sql_int(r->listed), wb_sql_int(r->needed));
    if (err < 0)
        return err;
    WB_CHECK(err == 1);
    r->id = wb_sql_number(d->sql, S_INSERT, 0);
    wb_sql_end(d->sql, S_INSERT);
    return wb_dispenser_count(d, r->run, r->state, 1);
}
