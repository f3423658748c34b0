/*
 * crawlsite.c - making and freeing a site, the set of sites that a worker holds, and the bytes of a queued item:
 *
 *   at 0  kind, plus 0x80 for https (1)    1  tries (1)    2  hops (1)    3  depth (2)    5  path and query
 *
 * It holds what is known about a site and never decides what is requested next.
 */
#include "crawl/crawlsite.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>

enum { ITEM_HEAD_BYTES = 5, ITEM_HTTPS = 0x80 };

/* ---- moments that were stored ------------------------------------------------------------------------------------ */

int64_t wb_site_trust(int64_t stored_ms, int64_t written_ms, int64_t now_ms, int64_t longest_ms)
{
    WB_CHECK(longest_ms >= 0);
    if (stored_ms <= now_ms)
        return stored_ms;
    int64_t wait_ms = stored_ms - now_ms;
    /* The writer's clock was ahead of ours, so only the length of the wait at that time can be relied on. */
    if (written_ms > now_ms)
        wait_ms = stored_ms > written_ms ? stored_ms - written_ms : 0;
    return now_ms + (wait_ms < longest_ms ? wait_ms : longest_ms);
}

int64_t wb_site_wait(const struct wb_site_row *row, int64_t now_ms)
{
    return wb_site_trust(row->next_ms, row->trail_ms, now_ms, WB_BACK_OFF_MAX_MS);
}

void wb_site_shift(struct wb_site *site, int64_t by_ms)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC);
    int64_t *moments[] = {&site->next_ms, &site->rules.expires_ms, &site->address_expires_ms, &site->sitemaps_ms,
                          &site->trail_ms, &site->flight_ms, &site->not_before_ms, &site->asked_ms,
                          &site->heard_ms, &site->answered_ms};

    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
        if (*moments[i]) /* 0 means that there is no such moment */
            *moments[i] += by_ms;
}

int64_t wb_site_rest(int64_t sent_ms, int64_t heard_ms, int64_t ended_ms, int64_t interval_ms)
{
    int64_t took_ms = ended_ms > sent_ms ? ended_ms - sent_ms : 0;
    int64_t wait_ms = heard_ms > sent_ms ? heard_ms - sent_ms : 0;
    int64_t rest_ms = took_ms < interval_ms ? took_ms : interval_ms;

    WB_CHECK(interval_ms >= 0);
    return rest_ms + took_ms > interval_ms + wait_ms ? sent_ms + took_ms + rest_ms : sent_ms + wait_ms + interval_ms;
}

void wb_site_rest_after(struct wb_site *site)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC && site->page_delay_ms >= site->delay_ms);
    int64_t next_ms = 0;

    if (site->asked_ms)
        next_ms = wb_site_rest(site->asked_ms, site->heard_ms, site->answered_ms, site->page_delay_ms);
    if (next_ms > site->next_ms)
        site->next_ms = next_ms;
}

/* ---- a site ------------------------------------------------------------------------------------------------------ */

int wb_site_new(const struct wb_site_row *row, int64_t now_ms, struct wb_site **site_out)
{
    struct wb_site *site = wb_alloc_zero(1, sizeof *site);

    *site_out = NULL;
    if (!site)
        return WB_E_NOMEM;
    site->name = wb_strndup(row->name.ptr, row->name.len);
    if (!site->name) {
        wb_free(site);
        return WB_E_NOMEM;
    }
    site->magic = WB_SITE_MAGIC;
    site->id = row->id;
    site->key = wb_edit_site(row->name);
    site->https = wb_slice_equal(row->scheme, WB_SLICE_LIT("https"));
    site->next_ms = wb_site_wait(row, now_ms);
    site->attempts = row->attempts;
    site->visit = row->visit;
    site->listed_visit = row->listed;
    site->needed = row->needed != WB_NEEDED_NOT;
    site->sitemaps_ms = row->sitemaps_ms <= now_ms ? row->sitemaps_ms : 0;
    site->trail = wb_site_trail_to_place(row->trail);
    site->trail_ms = row->trail_ms <= now_ms ? row->trail_ms : now_ms;
    site->seeds_taken = row->seeds_taken;
    site->address_expires_ms = wb_site_trust(row->address_expires_ms, row->trail_ms, now_ms, WB_ADDRESS_LIFE_MAX_MS);
    *site_out = site;
    return 0;
}

void wb_site_free(struct wb_site *site, struct wb_spill *spill)
{
    if (!site)
        return;
    WB_CHECK(site->magic == WB_SITE_MAGIC && !site->favours);
    WB_CHECK(site->turn.at == 0 && site->in_flight == 0 && !site->frontier_address);
    wb_spill_clear(spill, &site->again);
    wb_spill_clear(spill, &site->queue);
    wb_seen_release(&site->seen);
    wb_seen_release(&site->unread);
    wb_trap_release(&site->trap);
    wb_robots_free(site->rules.robots);
    wb_buf_release(&site->rules.url);
    wb_buf_release(&site->news);
    wb_free(site->refusal);
    wb_free(site->name);
    site->magic = 0;
    wb_free(site);
}

void wb_site_set_reason(struct wb_site *site, struct wb_slice reason)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC);
    size_t len = reason.len < sizeof site->wait_reason - 1 ? reason.len : sizeof site->wait_reason - 1;

    memcpy(site->wait_reason, reason.ptr, len);
    site->wait_reason[len] = '\0';
}

int wb_site_url(const struct wb_site *site, bool https, struct wb_slice path, struct wb_buf *url_out)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC);
    wb_buf_clear(url_out);
    int err = wb_buf_append_str(url_out, https ? "https://" : "http://");
    if (err == 0)
        err = wb_buf_append_str(url_out, site->name);
    if (err == 0)
        err = wb_buf_append_slice(url_out, path);
    return err;
}

struct wb_slice wb_site_path(const struct wb_url *url)
{
    size_t end = url->has_query ? url->query_end : url->path_end;

    return wb_slice(url->href.ptr + url->path_at, end - url->path_at);
}

void wb_site_probe(const struct wb_site *site, char text_out[WB_PROBE_TEXT_MAX])
{
    WB_CHECK(site->magic == WB_SITE_MAGIC);
    text_out[0] = '\0';
    if (site->root.digest)
        snprintf(text_out, WB_PROBE_TEXT_MAX, "%016llx%016llx", (unsigned long long)site->rules.digest,
                 (unsigned long long)site->root.digest);
}

void wb_site_endpoint(const struct wb_url *url, struct wb_slice *host_out, uint16_t *port_out)
{
    struct wb_slice host = wb_url_host(url), digits = wb_url_port(url);
    uint64_t port = wb_slice_equal(wb_url_scheme(url), WB_SLICE_LIT("https")) ? 443 : 80;

    if (host.len && host.ptr[0] == '[')
        host = wb_slice(host.ptr + 1, host.len - 2);
    if (digits.len && !wb_slice_to_u64(digits, &port))
        port = 0;
    *host_out = host;
    *port_out = (uint16_t)port;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

int wb_item_push(struct wb_spill *spill, struct wb_spill_queue *queue, const struct wb_item *item)
{
    char bytes[ITEM_HEAD_BYTES + WB_TRAP_URL_MAX];

    if (item->path.len > WB_TRAP_URL_MAX)
        return 0;
    WB_CHECK(item->kind > 0 && item->kind < ITEM_HTTPS && item->path.len > 0);
    bytes[0] = (char)(item->kind | (item->https ? ITEM_HTTPS : 0));
    bytes[1] = (char)item->tries;
    bytes[2] = (char)item->hops;
    wb_put16(bytes + 3, wb_depth_code(item->depth));
    memcpy(bytes + ITEM_HEAD_BYTES, item->path.ptr, item->path.len);
    return wb_spill_push(spill, queue, wb_slice(bytes, ITEM_HEAD_BYTES + item->path.len));
}

int wb_site_pop(struct wb_site *site, struct wb_spill *spill, struct wb_buf *mem, struct wb_item *item_out)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC);
    struct wb_slice bytes = WB_SLICE_EMPTY;
    int got = wb_spill_pop(spill, &site->again, mem, &bytes);

    *item_out = (struct wb_item){0};
    if (got == 0)
        got = wb_spill_pop(spill, &site->queue, mem, &bytes);
    if (got <= 0)
        return got;
    WB_CHECK(bytes.len > ITEM_HEAD_BYTES);
    uint8_t first = (uint8_t)bytes.ptr[0];
    item_out->kind = first & (ITEM_HTTPS - 1);
    item_out->https = first & ITEM_HTTPS;
    item_out->tries = (uint8_t)bytes.ptr[1];
    item_out->hops = (uint8_t)bytes.ptr[2];
    item_out->depth = wb_depth_of_code(wb_get16(bytes.ptr + 3));
    item_out->path = wb_slice(bytes.ptr + ITEM_HEAD_BYTES, bytes.len - ITEM_HEAD_BYTES);
    return 1;
}

/* ---- the set ----------------------------------------------------------------------------------------------------- */

static struct wb_site_name *find_name(const struct wb_site_set *set, uint64_t key, struct wb_slice name)
{
    struct wb_site_name *entry = NULL;

    while ((entry = wb_map_next(&set->names, key, entry)))
        if (wb_slice_equal(wb_slice_str(entry->site->name), name))
            return entry;
    return NULL;
}

struct wb_site *wb_site_set_find(const struct wb_site_set *set, struct wb_slice name)
{
    struct wb_site_name *entry = find_name(set, wb_edit_site(name), name);

    return entry ? entry->site : NULL;
}

int wb_site_set_add(struct wb_site_set *set, struct wb_site *site)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC && !find_name(set, site->key, wb_slice_str(site->name)));
    struct wb_site_name *entry = wb_map_add(&set->names, site->key);

    if (!entry)
        return WB_E_NOMEM;
    entry->site = site;
    wb_list_prepend(&set->list, &site->node);
    set->count++;
    return 0;
}

void wb_site_set_remove(struct wb_site_set *set, struct wb_site *site)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC);
    struct wb_site_name *entry = find_name(set, site->key, wb_slice_str(site->name));

    WB_CHECK(entry && entry->site == site && set->count > 0);
    wb_map_remove(&set->names, entry);
    wb_list_remove(&set->list, &site->node);
    set->count--;
}

void wb_site_set_release(struct wb_site_set *set)
{
    WB_CHECK(set->count == 0);
    wb_map_release(&set->names);
}

struct wb_site *wb_site_set_next(const struct wb_site_set *set, const struct wb_site *previous)
{
    WB_CHECK(!previous || previous->magic == WB_SITE_MAGIC);
    struct wb_list_node *node = previous ? previous->node.next : set->list.first;

    return node ? WB_CONTAINER_OF(node, struct wb_site, node) : NULL;
}
