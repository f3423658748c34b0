/*
 * peer_webdb_ours.c - our web database for bench_webdb, once through the writer's calls and once through the journal.
 * And no database at all, which shows what generating the edits costs.
 */
#include "bench_webdb.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/file.h"

/* ---- writing ------------------------------------------------------------------------------------ */

static int ours_open(const struct webdb_setting *setting, void **state_out)
{
    struct wb_webdb_options options = {.memory_bytes = setting->memory_bytes, .threads = setting->threads};
    struct wb_webdb_writer *writer = NULL;
    int err = wb_webdb_writer_open(setting->dir, &options, &writer);
    struct wb_webdb_writer **state = err == 0 ? wb_alloc_zero(1, sizeof *state) : NULL;

    *state_out = state;
    if (err == 0 && !state) {
        wb_webdb_writer_abandon(writer);
        return WB_E_NOMEM;
    }
    if (err == 0)
        *state = writer;
    return err;
}

static int ours_add_page(void *state, const struct wb_webdb_page *page)
{
    return wb_webdb_add_page(*(struct wb_webdb_writer **)state, page);
}

static int ours_add_link(void *state, const struct wb_webdb_link *link)
{
    return wb_webdb_add_link(*(struct wb_webdb_writer **)state, link);
}

static int ours_finish(void *state)
{
    struct wb_webdb_writer *writer = *(struct wb_webdb_writer **)state;

    *(struct wb_webdb_writer **)state = NULL;
    return wb_webdb_writer_close(writer, NULL);
}

static void ours_close(void *state)
{
    wb_webdb_writer_abandon(*(struct wb_webdb_writer **)state);
    wb_free(state);
}

/* ---- the journal ----------------------------------------------------------------------------------- */

static int journal_finish(void *state)
{
    int err = wb_webdb_add_journal(*(struct wb_webdb_writer **)state, NULL, NULL);

    return err < 0 ? err : ours_finish(state);
}

static int append_page(struct wb_journal_writer *log, const struct graph *graph, struct graph_page *p,
                       struct wb_buf *text)
{
    const struct wb_webdb_page *page = &p->page;
    const struct graph_site *site = &graph->sites[p->site];
    struct wb_pagelink links[GRAPH_LINKS_MAX];
    struct wb_edit edit = {.kind = WB_EDIT_PAGE,
                           .site = wb_edit_site(wb_slice(site->host, site->host_len)),
                           .time_ms = page->last_seen_ms};
    struct wb_edit_place place;
    int err = 0;

    text->len = 0;
    /* Reserve everything now, because a buffer that grows moves, and slices point into this one. */
    err = wb_buf_reserve(text, GRAPH_LINKS_MAX * (GRAPH_URL_MAX + GRAPH_ANCHOR_MAX));
    for (size_t i = 0; err == 0 && i < p->link_count; i++) {
        struct wb_webdb_link link;

        graph_link(graph, p, i, &link);
        links[i] = (struct wb_pagelink){.url = wb_slice(text->ptr + text->len, link.to.len),
                                        .anchor = wb_slice(text->ptr + text->len + link.to.len, link.anchor.len),
                                        .tag = link.tag,
                                        .flags = link.flags};
        err = wb_buf_append_slice(text, link.to);
        if (err == 0)
            err = wb_buf_append_slice(text, link.anchor);
    }
    edit.page = (struct wb_edit_page){.url = page->url,
                                      .outcome = page->outcome,
                                      .status = page->status,
                                      .depth.links = page->depth,
                                      .has_content = true,
                                      .bytes = page->bytes,
                                      .simhash = page->simhash,
                                      .title_hash = page->title_hash,
                                      .type = page->type,
                                      .etag = page->etag,
                                      .links = links,
                                      .link_count = p->link_count};
    memcpy(edit.page.md5, page->md5, sizeof edit.page.md5);
    return err < 0 ? err : wb_journal_writer_append(log, &edit, &place);
}

int webdb_write_journal(const char *dir, const struct graph *graph, uint32_t edits)
{
    struct graph_page *p = wb_alloc(sizeof *p);
    struct wb_buf text = WB_BUF_INIT;
    struct wb_journal_writer *log = NULL;
    int err = p ? wb_journal_writer_open(dir, 0, &log) : WB_E_NOMEM;

    for (uint32_t i = 0; err == 0 && i < edits; i++) {
        graph_edit(graph, i, p);
        err = append_page(log, graph, p, &text);
    }
    if (err == 0)
        err = wb_journal_writer_finish(log);
    if (log)
        wb_journal_writer_close(log);
    wb_buf_release(&text);
    wb_free(p);
    return err;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static int ours_open_read(const struct webdb_setting *setting, void **state_out)
{
    struct wb_webdb *webdb = NULL;
    int err = wb_webdb_open(setting->dir, &webdb);

    *state_out = webdb;
    return err;
}

static int ours_get_page(void *state, struct wb_slice url)
{
    struct wb_webdb_page page;

    return wb_webdb_get_page(state, url, &page);
}

static int walk_links(struct wb_webdb_links *links, uint64_t limit, struct webdb_sum *sum)
{
    struct wb_webdb_link link;
    int err = 0;

    while (limit-- > 0 && (err = wb_webdb_links_next(links, &link)) > 0) {
        sum->rows++;
        if (sum->check)
            sum->mix += link_mix(&link);
    }
    wb_webdb_links_close(links);
    return err < 0 ? err : 0;
}

static int ours_links_to(void *state, struct wb_slice url, uint64_t limit, struct webdb_sum *sum)
{
    struct wb_webdb_links *links = NULL;
    int err = wb_webdb_links_to(state, url, &links);

    return err < 0 ? err : walk_links(links, limit, sum);
}

static int ours_links_from(void *state, const uint8_t md5[WB_MD5_BYTES], struct webdb_sum *sum)
{
    struct wb_webdb_links *links = NULL;
    int err = wb_webdb_links_from(state, md5, &links);

    return err < 0 ? err : walk_links(links, UINT64_MAX, sum);
}

static int ours_links(void *state, struct webdb_sum *sum)
{
    struct wb_webdb_links *links = NULL;
    int err = wb_webdb_links(state, &links);

    return err < 0 ? err : walk_links(links, UINT64_MAX, sum);
}

static int ours_sizes(void *state, uint64_t *pages_out, uint64_t *link_bytes_out)
{
    struct wb_webdb_count count;

    wb_webdb_count(state, &count);
    *pages_out = count.pages;
    *link_bytes_out = count.link_bytes;
    return 0;
}

static void ours_close_read(void *state)
{
    wb_webdb_close(state);
}

/* Both of ours are read in the same way. */
#define OURS_READING \
    .open_read = ours_open_read, .get_page = ours_get_page, .links_to = ours_links_to, .links_from = ours_links_from, \
    .links = ours_links, .sizes = ours_sizes, .close_read = ours_close_read

const struct webdb_peer webdb_ours = {
    .name = "webbase",
    .settings = "through wb_webdb_add_page and wb_webdb_add_link",
    .open = ours_open,
    .add_page = ours_add_page,
    .add_link = ours_add_link,
    .finish = ours_finish,
    .close = ours_close,
    OURS_READING,
};

const struct webdb_peer webdb_journal = {
    .name = "webbase-journal",
    .settings = "from a journal that was written before; targets of links also become pages",
    .from_journal = true,
    .open = ours_open,
    .finish = journal_finish,
    .close = ours_close,
    OURS_READING,
};

/* ---- nothing ------------------------------------------------------------------------------------------------ */

static int none_open(const struct webdb_setting *setting, void **state_out)
{
    (void)setting;
    *state_out = NULL;
    return 0;
}

static int none_add_page(void *state, const struct wb_webdb_page *page)
{
    (void)state;
    (void)page;
    return 0;
}

static int none_add_link(void *state, const struct wb_webdb_link *link)
{
    (void)state;
    (void)link;
    return 0;
}

static int none_finish(void *state)
{
    (void)state;
    return 0;
}

static void none_close(void *state)
{
    (void)state;
}

const struct webdb_peer webdb_none = {
    .name = "none",
    .settings = "the edits are made and dropped",
    .open = none_open,
    .add_page = none_add_page,
    .add_link = none_add_link,
    .finish = none_finish,
    .close = none_close,
};
