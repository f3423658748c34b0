/*
 * controldoor.c - the crawl's end of `webbase control`: the parent listens, answers, and passes orders on to the
 * workers through the tally. The other end is control.c.
 *
 *   listener -> guest (one packet, a few seconds) -> answer -> closed
 *
 * The event loop does all of it, so nothing here waits. A guest that sends nothing is sent away. Workers never hold
 * the socket: when the parent dies, however that happens, the door is gone.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "crawl/control.h"
#include "crawl/parent.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    GUEST_SECONDS = 3,     /* that a guest has to send its command */
    SAMPLE_MS = 1000,
    NAMES_BYTES = 32 << 10, /* of stopped and slowed sites in an answer; the others are only counted */
};

/* ---- orders that outlive a crawl --------------------------------------------------------------------------------- */

int wb_crawl_orders_new(struct wb_crawl_orders **orders_out)
{
    *orders_out = wb_alloc_zero(1, sizeof **orders_out);
    if (!*orders_out)
        return WB_E_NOMEM;
    (*orders_out)->magic = WB_CRAWL_ORDERS_MAGIC;
    return 0;
}

void wb_crawl_orders_free(struct wb_crawl_orders *orders)
{
    if (!orders)
        return;
    WB_CHECK(orders->magic == WB_CRAWL_ORDERS_MAGIC);
    for (size_t i = 0; i < orders->sites.count; i++)
        wb_free(orders->sites.items[i].name);
    wb_vec_release(&orders->sites);
    orders->magic = 0;
    wb_free(orders);
}

void wb_crawl_orders_restart(struct wb_crawl_orders *orders)
{
    WB_CHECK(orders->magic == WB_CRAWL_ORDERS_MAGIC);
    for (size_t i = 0; i < orders->sites.count; i++)
        orders->sites.items[i].stopped = false;
}

/* Tells the workers, which have not been started yet, what earlier crawls were told. */
static int repeat_orders(const struct wb_crawl_orders *orders, struct wb_tally_orders *shared)
{
    int err = 0;

    WB_CHECK(orders->magic == WB_CRAWL_ORDERS_MAGIC);
    atomic_store(&shared->paused, orders->paused);
    for (size_t i = 0; err == 0 && i < orders->sites.count; i++) {
        const struct wb_door_order *order = &orders->sites.items[i];
        uint64_t site = wb_edit_site(wb_slice_str(order->name));
        if (order->stopped)
            err = wb_tally_order_stop(shared, site);
        if (err == 0 && order->delay_ms)
            err = wb_tally_order_delay(shared, site, order->delay_ms);
    }
    return err;
}

/* ---- what the crawl is doing ------------------------------------------------------------------------------------- */

void wb_control_door_sample(struct wb_parent *p)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    struct wb_control_door *door = &p->door;
    const struct wb_tally *t = p->plan.tally;
    int64_t now = wb_clock_now_ms();
    const struct wb_door_sample *last = &door->samples[(door->sample_count + WB_DOOR_SAMPLES - 1) % WB_DOOR_SAMPLES];

    if (door->sample_count && now - last->ms < SAMPLE_MS && now >= last->ms)
        return;
    door->samples[door->sample_count++ % WB_DOOR_SAMPLES] =
        (struct wb_door_sample){.ms = now, .pages = t->pages, .requests = t->requests, .wire_bytes = t->wire_bytes};
}

/* What was done per second in the last seconds. */
static void write_rate(struct wb_json *j, const struct wb_control_door *door, const struct wb_crawl_stat *stat)
{
    unsigned kept = door->sample_count < WB_DOOR_SAMPLES ? door->sample_count : WB_DOOR_SAMPLES;
    const struct wb_door_sample *first = &door->samples[(door->sample_count - kept) % WB_DOOR_SAMPLES];
    double seconds = kept ? (double)(wb_clock_now_ms() - first->ms) / 1000 : 0;

    wb_json_key(j, "rate");
    wb_json_object(j);
    wb_json_field_double(j, "pages", seconds > 0 ? (double)(stat->pages - first->pages) / seconds : 0);
    wb_json_field_double(j, "requests", seconds > 0 ? (double)(stat->requests - first->requests) / seconds : 0);
    wb_json_field_double(j, "bytes", seconds > 0 ? (double)(stat->wire_bytes - first->wire_bytes) / seconds : 0);
    wb_json_object_end(j);
}

static void write_errors(struct wb_json *j, const struct wb_tally *tally)
{
    wb_json_key(j, "errors");
    wb_json_object(j);
    for (int i = 1; i < WB_CRAWL_ERROR_COUNT; i++)
        if (atomic_load(&tally->errors[i]))
            wb_json_field_u64(j, wb_crawl_error_word(i), atomic_load(&tally->errors[i]));
    wb_json_object_end(j);
}

static void write_sites(struct wb_json *j, const struct wb_crawl_stat *stat)
{
    wb_json_key(j, "sites");
    wb_json_object(j);
    wb_json_field_u64(j, "active", stat->sites_active);
    wb_json_field_u64(j, "waiting", stat->sites_waiting);
    wb_json_field_u64(j, "open", stat->sites_open);
    wb_json_field_u64(j, "done", stat->sites_done);
    wb_json_field_u64(j, "left", stat->sites_left);
    wb_json_object_end(j);
}

static void write_workers(struct wb_json *j, const struct wb_parent *p)
{
    uint64_t queued = 0;

    wb_json_key(j, "workers");
    wb_json_array(j);
    for (unsigned i = 0; i < p->crew.count; i++) {
        const struct wb_tally_worker *worker = &p->plan.tally->workers[i];
        wb_json_object(j);
        wb_json_field_u64(j, "sites", atomic_load(&worker->sites));
        wb_json_field_u64(j, "waiting", atomic_load(&worker->waiting));
        wb_json_field_u64(j, "in_flight", atomic_load(&worker->in_flight));
        wb_json_field_u64(j, "queued", atomic_load(&worker->queued));
        wb_json_object_end(j);
        queued += atomic_load(&worker->queued);
    }
    wb_json_array_end(j);
    wb_json_field_u64(j, "queued", queued);
}

/* The sites that were stopped and slowed down, as many names as fit into an answer. */
static void write_orders(struct wb_json *j, const struct wb_control_door *door)
{
    size_t from = j->buf->len;

    wb_json_key(j, "stopped");
    wb_json_array(j);
    for (size_t i = 0; i < door->orders->sites.count && j->buf->len - from < NAMES_BYTES / 2; i++)
        if (door->orders->sites.items[i].stopped)
            wb_json_str(j, door->orders->sites.items[i].name);
    wb_json_array_end(j);
    wb_json_key(j, "slowed");
    wb_json_array(j);
    for (size_t i = 0; i < door->orders->sites.count && j->buf->len - from < NAMES_BYTES; i++) {
        const struct wb_door_order *order = &door->orders->sites.items[i];
        if (!order->delay_ms)
            continue;
        wb_json_object(j);
        wb_json_field_str(j, "site", order->name);
        wb_json_field_double(j, "delay", (double)order->delay_ms / 1000);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
    wb_json_field_u64(j, "orders", door->orders->sites.count);
}

static int write_status(const struct wb_parent *p, struct wb_buf *text)
{
    const struct wb_crawl_options *o = p->plan.options;
    struct wb_crawl_stat stat;
    struct wb_json j;

    wb_parent_stat(p, &stat);
    wb_json_init(&j, text);
    wb_json_object(&j);
    wb_json_field_i64(&j, "pid", getpid());
    wb_json_field_bool(&j, "paused", atomic_load(&p->plan.tally->orders.paused));
    wb_json_field_bool(&j, "ending", p->stopping);
    wb_json_field_double(&j, "seconds", stat.seconds);
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"pages", stat.pages}, {"bytes", stat.bytes}, {"wire_bytes", stat.wire_bytes},
                  {"requests", stat.requests}, {"fetches", stat.fetches}, {"unchanged", stat.unchanged},
                  {"redirects", stat.redirects}, {"duplicates", stat.duplicates}, {"gone", stat.gone},
                  {"robots", stat.robots}, {"skipped", stat.skipped}, {"known", stat.known},
                  {"in_flight", stat.in_flight}, {"processes", stat.processes}, {"cpu_ms", stat.cpu_ms},
                  {"max_pages", o->max_pages}, {"max_rate", o->max_rate}, {"error_count", stat.errors}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        wb_json_field_u64(&j, counts[i].name, counts[i].value);
    write_errors(&j, p->plan.tally);
    write_rate(&j, &p->door, &stat);
    write_sites(&j, &stat);
    write_workers(&j, p);
    write_orders(&j, &p->door);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* A command that was read. site is empty if it names none. */
struct order_wish {
    enum wb_control_verb verb;
    struct wb_slice site;
    int64_t delay_ms;
};

/* Takes the next word from *rest, up to a blank. */
static struct wb_slice take_word(struct wb_slice *rest)
{
    const char *blank = rest->len ? memchr(rest->ptr, ' ', rest->len) : NULL;
    size_t len = blank ? (size_t)(blank - rest->ptr) : rest->len;
    struct wb_slice word = wb_slice(rest->ptr, len);

    *rest = wb_slice(rest->ptr + len + (blank != NULL), rest->len - len - (blank != NULL));
    return word;
}

static int read_command(struct wb_slice packet, struct order_wish *wish_out)
{
    struct wb_slice prefix = WB_SLICE_LIT(WB_CONTROL_PREFIX);
    uint64_t ms = 0;

    *wish_out = (struct order_wish){.site = WB_SLICE_EMPTY};
    if (!wb_slice_starts(packet, prefix))
        return wb_fail(WB_E_PROTO, "the crawl is of another version of webbase");
    packet = wb_slice(packet.ptr + prefix.len, packet.len - prefix.len);
    struct wb_slice verb = take_word(&packet);
    for (int i = WB_CONTROL_PAUSE; i < WB_CONTROL_VERBS; i++)
        if (wb_slice_equal(verb, wb_slice_str(wb_control_verb_word((enum wb_control_verb)i))))
            wish_out->verb = (enum wb_control_verb)i;
    wish_out->site = take_word(&packet);
    bool named = wish_out->verb == WB_CONTROL_STOP || wish_out->verb == WB_CONTROL_DELAY ||
                 wish_out->verb == WB_CONTROL_SITE;
    if (wish_out->verb == WB_CONTROL_DELAY && (!wb_slice_to_u64(packet, &ms) || ms > INT32_MAX * (uint64_t)1000))
        return wb_fail(WB_E_INVALID, "a delay is a number of milliseconds");
    if (!wish_out->verb || named != (wish_out->site.len > 0))
        return wb_fail(WB_E_PROTO, "the crawl does not know this command");
    wish_out->delay_ms = (int64_t)ms;
    return 0;
}

/* Whether the site takes part in this crawl. WB_E_NOTFOUND with a message that names it. */
static int need_site(struct wb_parent *p, struct wb_slice name)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_site_row row;

    int err = p->dispenser ? wb_dispenser_get(p->dispenser, name, &mem, &row)
                           : wb_fail(WB_E_BUSY, "the crawl is ending");
    if (err == WB_E_NOTFOUND || (err == 0 && row.run != p->plan.run))
        err = wb_fail(WB_E_NOTFOUND, "the crawl has no site %.*s", WB_SLICE_ARG(name));
    wb_buf_release(&mem);
    return err;
}

/* The order of a site by name; a new one if `add`. NULL: there is none, or memory ran out. */
static struct wb_door_order *find_order(struct wb_control_door *door, struct wb_slice name, bool add)
{
    for (size_t i = 0; i < door->orders->sites.count; i++)
        if (wb_slice_equal(name, wb_slice_str(door->orders->sites.items[i].name)))
            return &door->orders->sites.items[i];
    if (!add)
        return NULL;
    struct wb_door_order order = {.name = wb_strndup(name.ptr, name.len)};
    if (!order.name || wb_vec_push(&door->orders->sites, order) < 0) {
        wb_free(order.name);
        return NULL;
    }
    return &door->orders->sites.items[door->orders->sites.count - 1];
}

static int order_site(struct wb_parent *p, const struct order_wish *wish, struct wb_buf *text)
{
    struct wb_tally_orders *orders = &p->plan.tally->orders;
    uint64_t site = wb_edit_site(wish->site);
    struct wb_json j;

    int err = need_site(p, wish->site);
    struct wb_door_order *order = err == 0 ? find_order(&p->door, wish->site, wish->verb != WB_CONTROL_SITE) : NULL;
    if (err == 0 && !order && wish->verb != WB_CONTROL_SITE)
        err = wb_fail_nomem();
    if (err == 0 && wish->verb == WB_CONTROL_STOP && (err = wb_tally_order_stop(orders, site)) == 0)
        order->stopped = true;
    if (err == 0 && wish->verb == WB_CONTROL_DELAY && (err = wb_tally_order_delay(orders, site, wish->delay_ms)) == 0)
        order->delay_ms = wish->delay_ms;
    if (err < 0)
        return err;
    wb_json_init(&j, text);
    wb_json_object(&j);
    wb_json_field_slice(&j, "site", wish->site);
    wb_json_field_bool(&j, "stopped", order && order->stopped);
    wb_json_field_double(&j, "delay", order ? (double)order->delay_ms / 1000 : 0);
    wb_json_field_bool(&j, "paused", atomic_load(&orders->paused));
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

static int order_pause(struct wb_parent *p, bool paused, struct wb_buf *text)
{
    struct wb_json j;

    p->door.orders->paused = paused;
    atomic_store(&p->plan.tally->orders.paused, paused);
    wb_json_init(&j, text);
    wb_json_object(&j);
    wb_json_field_bool(&j, "paused", paused);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

static int carry_out(struct wb_parent *p, struct wb_slice packet, struct wb_buf *text)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC && p->door.orders->magic == WB_CRAWL_ORDERS_MAGIC);
    struct order_wish wish;
    int err = read_command(packet, &wish);

    if (err < 0)
        return err;
    switch (wish.verb) {
    case WB_CONTROL_PAUSE:
    case WB_CONTROL_RESUME:
        return order_pause(p, wish.verb == WB_CONTROL_PAUSE, text);
    case WB_CONTROL_STATUS:
        return write_status(p, text);
    default:
        return order_site(p, &wish, text);
    }
}

/* ---- guests ------------------------------------------------------------------------------------------------------ */

static void send_away(struct wb_door_guest *guest)
{
    if (guest->reader)
        event_free(guest->reader);
    if (guest->fd >= 0)
        close(guest->fd);
    guest->reader = NULL;
    guest->fd = -1;
}

static void answer(struct wb_door_guest *guest, struct wb_slice packet)
{
    struct wb_buf text = WB_BUF_INIT, reply = WB_BUF_INIT;
    int err = carry_out(guest->parent, packet, &text);

    struct wb_slice said = err < 0 ? wb_slice_str(wb_error_message()) : wb_buf_slice(&text);
    if (wb_buf_printf(&reply, WB_CONTROL_PREFIX "%d\n", err) == 0 && wb_buf_append_slice(&reply, said) == 0)
        (void)!send(guest->fd, reply.ptr, reply.len, MSG_NOSIGNAL); /* if the guest is gone, nobody minds */
    wb_buf_release(&text);
    wb_buf_release(&reply);
}

static void on_guest(evutil_socket_t fd, short what, void *context)
{
    char packet[WB_CONTROL_COMMAND_MAX];
    struct wb_door_guest *guest = context;

    WB_CHECK(guest->parent->magic == WB_PARENT_MAGIC && guest->fd == fd);
    if (what & EV_READ) {
        ssize_t len = recv(fd, packet, sizeof packet, 0);
        if (len > 0)
            answer(guest, wb_slice(packet, (size_t)len));
    }
    send_away(guest);
}

static void on_knock(evutil_socket_t fd, short what, void *context)
{
    struct wb_parent *p = context;
    struct timeval patience = {GUEST_SECONDS, 0};

    WB_CHECK(p->magic == WB_PARENT_MAGIC && p->door.fd == fd);
    (void)what;
    int came = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (came < 0)
        return;
    for (unsigned i = 0; i < WB_DOOR_GUESTS_MAX; i++) {
        struct wb_door_guest *guest = &p->door.guests[i];
        if (guest->fd >= 0)
            continue;
        if (!wb_control_trusts(came, geteuid()))
            break;
        WB_CHECK(!guest->reader);
        *guest = (struct wb_door_guest){.parent = p, .fd = came};
        guest->reader = event_new(p->base, came, EV_READ, on_guest, guest);
        if (!guest->reader || event_add(guest->reader, &patience) < 0)
            send_away(guest);
        return;
    }
    close(came);
}

/* ---- the door ---------------------------------------------------------------------------------------------------- */

/* Listens at the first door that no other crawl has. */
static int listen_somewhere(const char *dir, int *fd_out)
{
    struct sockaddr_un address;
    socklen_t len;

    *fd_out = -1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return wb_fail_errno("socket");
    for (unsigned i = 0; i < WB_CONTROL_DOORS_MAX; i++) {
        int err = wb_control_address(dir, i, &address, &len);
        if (err == 0 && bind(fd, (const struct sockaddr *)&address, len) < 0) {
            if (errno == EADDRINUSE)
                continue;
            err = wb_fail_errno("bind");
        }
        if (err == 0 && listen(fd, WB_DOOR_GUESTS_MAX) < 0)
            err = wb_fail_errno("listen");
        if (err < 0)
            close(fd);
        else
            *fd_out = fd;
        return err;
    }
    close(fd);
    return wb_fail(WB_E_LIMIT, "%d other crawls are running on %s", WB_CONTROL_DOORS_MAX, dir);
}

int wb_control_door_open(struct wb_parent *p)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC && p->door.fd < 0 && !p->door.orders);
    WB_CHECK(p->crew.alive == 0); /* workers find in the tally what earlier crawls were told */
    struct wb_control_door *door = &p->door;
    char words[WB_ERROR_MESSAGE_MAX + 80];

    for (unsigned i = 0; i < WB_DOOR_GUESTS_MAX; i++)
        door->guests[i].fd = -1;
    door->orders = p->plan.options->orders;
    int err = door->orders ? repeat_orders(door->orders, &p->plan.tally->orders) : wb_crawl_orders_new(&door->orders);
    if (err < 0)
        return err;
    err = listen_somewhere(p->plan.options->dir, &door->fd);
    if (err < 0) {
        snprintf(words, sizeof words, "webbase control cannot reach this crawl: %s", wb_error_message());
        wb_parent_warn(p, words);
        return 0;
    }
    door->listener = event_new(p->base, door->fd, EV_READ | EV_PERSIST, on_knock, p);
    return door->listener && event_add(door->listener, NULL) == 0 ? 0 : wb_fail_nomem();
}

void wb_control_door_close(struct wb_parent *p)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    struct wb_control_door *door = &p->door;
    bool stopped = false;

    for (unsigned i = 0; door->listener && i < WB_DOOR_GUESTS_MAX; i++)
        send_away(&door->guests[i]);
    if (door->listener)
        event_free(door->listener);
    if (door->fd >= 0)
        close(door->fd);
    door->listener = NULL;
    door->fd = -1;
    for (size_t i = 0; door->orders && i < door->orders->sites.count; i++)
        stopped |= door->orders->sites.items[i].stopped;
    if (door->orders != p->plan.options->orders)
        wb_crawl_orders_free(door->orders);
    door->orders = NULL;
    /* If this fails, the next crawl does it. */
    if (stopped && p->dispenser &&
        wb_dispenser_end_waits(p->dispenser, WB_SLICE_LIT(WB_TALLY_STOPPED), wb_clock_now_ms()) < 0)
        wb_parent_warn(p, wb_error_message());
}

void wb_control_door_forget(struct wb_parent *p)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC && p->plan.parent != getpid()); /* we are the child */
    if (p->door.fd < 0)
        return;
    close(p->door.fd);
    for (unsigned i = 0; i < WB_DOOR_GUESTS_MAX; i++)
        if (p->door.guests[i].fd >= 0)
            close(p->door.guests[i].fd);
}
