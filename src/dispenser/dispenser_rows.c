/*
 * dispenser_rows.c - transactions, and a site's row between database and memory.
 *
 * Every change of a row that was there goes through wb_record_save() (a claim excepted, which is one statement), so that two
 * things hold whatever happens: of the ready sites of a run and address exactly the best is the head, and webbase_count
 * says how many sites of a run are in a state. Nothing here decides which state a site gets.
 */
#include "dispenser/dispenser_rows.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "os/random.h"

#include <limits.h>
#include <time.h>

enum {
    TRIES = 12,
    TRY_MS = 30000, /* after which it is not begun again */
};

/* ---- transactions -------------------------------------------------------------------------------- */

static void pause_with_jitter(unsigned tries)
{
    uint32_t chance;
    unsigned ms_max = 4u << (tries < 6 ? tries : 6);

    wb_random_bytes(&chance, sizeof chance);
    nanosleep(&(struct timespec){0, (long)(1 + chance % ms_max) * 1000000L}, NULL);
}

static int write_deltas(struct wb_dispenser *d)
{
    int err = 0;

    for (unsigned i = 0; i < d->delta_count && err >= 0; i++) {
        const struct wb_dispenser_delta *delta = &d->deltas[i];
        if (delta->sites)
            err = WB_SQL_RUN(d->sql, S_COUNT, wb_sql_int(delta->run), wb_sql_int(delta->state), wb_sql_int(delta->sites));
    }
    d->delta_count = 0;
    return err < 0 ? err : 0;
}

static int try_transaction(struct wb_dispenser *d, bool write, wb_dispenser_work work, void *context)
{
    int err;

    d->delta_count = 0;
    err = wb_sql_begin(d->sql, write);
    if (err == 0)
        err = work(d, context);
    if (err >= 0)
        err = write_deltas(d);
    if (err == 0)
        err = wb_sql_commit(d->sql);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_sql_rollback(d->sql);
        err = wb_error_restore(&why);
    }
    return err;
}

int wb_dispenser_transact(struct wb_dispenser *d, bool write, wb_dispenser_work work, void *context)
{
    int64_t until_ns = wb_clock_mono_ns() + TRY_MS * (int64_t)1000000;
    int err = WB_SQL_AGAIN;

    for (unsigned tries = 0; err == WB_SQL_AGAIN && tries < TRIES; tries++) {
        if (tries) {
            if (wb_clock_mono_ns() > until_ns)
                break;
            pause_with_jitter(tries);
        }
        err = try_transaction(d, write, work, context);
    }
    return err == WB_SQL_AGAIN ? WB_E_BUSY : err;
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

bool wb_dispenser_plain(struct wb_slice text)
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
        return wb_fail(WB_E_INVALID, "the dispenser takes no %s that is not text", what);
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

struct wb_slice wb_address_first(struct wb_slice addresses)
{
    size_t len = 0;

    while (len < addresses.len && addresses.ptr[len] != ' ')
        len++;
    return wb_slice(addresses.ptr, len);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* Takes columns one after the other. */
struct column {
    const struct wb_dispenser *d;
    enum wb_dispenser_statement statement;
    unsigned at;
};

static int64_t number(struct column *c)
{
    return wb_sql_number(c->d->sql, c->statement, c->at++);
}

static struct wb_slice text(struct column *c)
{
    return wb_sql_text(c->d->sql, c->statement, c->at++);
}

int wb_record_read(const struct wb_dispenser *d, enum wb_dispenser_statement statement, struct wb_record *record_out)
{
    struct column c = {d, statement, 0};
    struct wb_site_row *row = &record_out->row;

    *record_out = WB_RECORD_INIT;
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
    if (listed < 0 || listed > UINT32_MAX || state < WB_SITE_UNRESOLVED || state > WB_SITE_REFUSED || back_state < WB_SITE_UNRESOLVED || back_state > WB_SITE_REFUSED ||
        rank < -(int64_t)INT_MAX || rank > INT_MAX || attempts < INT_MIN || attempts > INT_MAX ||
        (state == WB_SITE_CLAIMED) != (row->owner.len > 0))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: the row of the site with id %lld", wb_sql_where(d->sql), (long long)row->id);
    row->listed = (uint32_t)listed;
    row->state = (enum wb_site_state)state;
    row->before = (enum wb_site_state)back_state;
    row->priority = (int)-rank;
    row->attempts = (int)attempts;
    return 0;
}

/* Where the text of a row is. */
static const size_t text_fields[] = {
    offsetof(struct wb_site_row, name),    offsetof(struct wb_site_row, scheme), offsetof(struct wb_site_row, class_name),
    offsetof(struct wb_site_row, address), offsetof(struct wb_site_row, reason), offsetof(struct wb_site_row, alias_of),
    offsetof(struct wb_site_row, probe),   offsetof(struct wb_site_row, home),   offsetof(struct wb_site_row, owner),
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

int wb_record_keep(struct wb_record *record)
{
    WB_CHECK(!record->text);
    record->text = wb_alloc(text_bytes(&record->row));
    if (!record->text)
        return WB_E_NOMEM;
    move_text(&record->row, record->text);
    return 0;
}

int wb_record_give(const struct wb_record *record, struct wb_buf *mem, struct wb_site_row *row_out)
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

void wb_record_release(struct wb_record *record)
{
    wb_free(record->text);
    *record = WB_RECORD_INIT;
}

/* ran: what running the statement returned. */
static int take_one(struct wb_dispenser *d, enum wb_dispenser_statement statement, int ran, struct wb_record *record_out)
{
    int err = ran;

    *record_out = WB_RECORD_INIT;
    if (ran <= 0)
        return ran;
    err = wb_record_read(d, statement, record_out);
    if (err == 0)
        err = wb_record_keep(record_out);
    wb_sql_end(d->sql, statement);
    return err < 0 ? err : 1;
}

int wb_record_by_id(struct wb_dispenser *d, int64_t id, struct wb_record *record_out)
{
    return take_one(d, S_BY_ID, WB_SQL_RUN(d->sql, S_BY_ID, wb_sql_int(id)), record_out);
}

int wb_record_by_name(struct wb_dispenser *d, struct wb_slice name, struct wb_record *record_out)
{
    return take_one(d, S_BY_NAME, WB_SQL_RUN(d->sql, S_BY_NAME, wb_sql_str(name)), record_out);
}

int wb_record_by_host(struct wb_dispenser *d, struct wb_slice from, struct wb_slice to, struct wb_record *record_out)
{
    return take_one(d, S_BY_HOST, WB_SQL_RUN(d->sql, S_BY_HOST, wb_sql_str(from), wb_sql_str(to)), record_out);
}

/* ---- lists ------------------------------------------------------------------------------------------- */

int wb_record_list_add(struct wb_record_list *list, struct wb_record *taken)
{
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 16;
        struct wb_record *records = wb_realloc(list->records, cap * sizeof *records);
        if (!records)
            return WB_E_NOMEM;
        list->records = records;
        list->cap = cap;
    }
    list->records[list->count++] = *taken;
    *taken = WB_RECORD_INIT;
    return 0;
}

int wb_record_list_read(struct wb_dispenser *d, enum wb_dispenser_statement statement, int ran, struct wb_record_list *list)
{
    int err = ran;

    while (err > 0) {
        struct wb_record record;
        err = wb_record_read(d, statement, &record);
        if (err == 0)
            err = wb_record_keep(&record);
        if (err == 0)
            err = wb_record_list_add(list, &record);
        if (err < 0)
            wb_record_release(&record);
        else
            err = wb_sql_next(d->sql, statement);
    }
    return err;
}

void wb_record_list_release(struct wb_record_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        wb_record_release(&list->records[i]);
    wb_free(list->records);
    *list = WB_RECORD_LIST_INIT;
}

int wb_record_list_tell(const struct wb_record_list *list, wb_site_each each, void *context)
{
    int err = 0;

    for (size_t i = 0; i < list->count && err == 0; i++)
        err = each(context, &list->records[i].row);
    return err;
}

/* ---- changing ------------------------------------------------------------------------------------------ */

/* Makes the best of the ready sites of an address its head. */
static int seat_head(struct wb_dispenser *d, int64_t run, struct wb_slice address)
{
    int err = WB_SQL_RUN(d->sql, S_BEST, wb_sql_int(run), wb_sql_str(address));

    if (err <= 0)
        return err;
    int64_t best = wb_sql_number(d->sql, S_BEST, 0);
    bool seated = wb_sql_number(d->sql, S_BEST, 1) != 0;
    wb_sql_end(d->sql, S_BEST);
    if (seated)
        return 0;
    err = WB_SQL_RUN(d->sql, S_UNSEAT, wb_sql_int(run), wb_sql_str(address));
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_SEAT, wb_sql_int(best));
}

static bool same_place(const struct wb_site_row *a, const struct wb_site_row *b)
{
    return a->state == b->state && a->run == b->run && a->priority == b->priority &&
           wb_slice_equal(wb_address_first(a->address), wb_address_first(b->address));
}

/* stays: one that is a head stays it. */
static int run_save(struct wb_dispenser *d, const struct wb_record *now, bool stays)
{
    const struct wb_site_row *r = &now->row;

    return WB_SQL_RUN(d->sql, S_SAVE, wb_sql_int(r->id), wb_sql_str(r->scheme), wb_sql_int(r->state), wb_sql_int(r->before),
                      wb_sql_int(r->run), wb_sql_int(-(int64_t)r->priority), wb_sql_int(r->delay_ms), wb_sql_int(r->budget),
                      wb_sql_str(r->class_name), wb_sql_str(r->address), wb_sql_str(wb_address_first(r->address)),
                      wb_sql_int(r->address_expires_ms), wb_sql_int(r->next_ms), wb_sql_int(r->attempts), wb_sql_str(r->reason),
                      wb_sql_str(r->alias_of), wb_sql_str(r->probe), wb_sql_int(r->visit), wb_sql_int(r->trail.log),
                      wb_sql_int((int64_t)r->trail.offset), wb_sql_int(r->trail_ms), wb_sql_str(r->home), wb_sql_int(r->seeds_taken),
                      wb_sql_str(r->owner), wb_sql_int(r->lease_ms), wb_sql_int(r->pages), wb_sql_int(stays), wb_sql_int(now->anew),
                      wb_sql_int(now->seed_last), wb_sql_int(r->listed), wb_sql_int(r->sitemaps_ms));
}

int wb_record_save(struct wb_dispenser *d, const struct wb_record *was, const struct wb_record *now)
{
    const struct wb_site_row *old = &was->row, *new = &now->row;
    bool stays = same_place(old, new);
    int err;

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
    /* Whether it was a head is not asked: where many rows were read at once, saving one makes another the head. */
    if (err == 0 && old->state == WB_SITE_READY)
        err = seat_head(d, old->run, wb_address_first(old->address));
    if (err == 0 && new->state == WB_SITE_READY)
        err = seat_head(d, new->run, wb_address_first(new->address));
    return err;
}

int wb_record_insert(struct wb_dispenser *d, struct wb_record *now)
{
    struct wb_site_row *r = &now->row;
    int err;

    WB_CHECK(r->state == WB_SITE_UNRESOLVED || r->state == WB_SITE_CLAIMED);
    err = WB_SQL_RUN(d->sql, S_INSERT, wb_sql_str(r->name), wb_sql_str(wb_site_domain(r->name)), wb_sql_str(r->scheme),
                     wb_sql_int(r->state), wb_sql_int(r->before), wb_sql_int(r->run), wb_sql_int(-(int64_t)r->priority),
                     wb_sql_int(r->delay_ms), wb_sql_int(r->budget), wb_sql_str(r->class_name), wb_sql_str(r->owner),
                     wb_sql_int(r->lease_ms), wb_sql_int(r->listed));
    if (err < 0)
        return err;
    WB_CHECK(err == 1);
    r->id = wb_sql_number(d->sql, S_INSERT, 0);
    wb_sql_end(d->sql, S_INSERT);
    return wb_dispenser_count(d, r->run, r->state, 1);
}
