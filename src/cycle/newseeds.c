/* newseeds.c - finds the seeds that were never fetched. It ignores invalid lines: the crawl warns about them. */
#include "cycle/newseeds.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/path.h"
#include "webdb/webdb.h"

enum { SEEDS_BYTES_MAX = 1 << 30 };

static int add_url(struct wb_newseeds *seeds, struct wb_slice url)
{
    if (wb_grow(&seeds->urls, &seeds->cap, seeds->count + 1) < 0)
        return WB_E_NOMEM;
    seeds->urls[seeds->count] = wb_strndup(url.ptr, url.len);
    if (!seeds->urls[seeds->count])
        return WB_E_NOMEM;
    seeds->count++;
    return 0;
}

/* A seed without a scheme means https. */
static int look_at(struct wb_webdb *webdb, struct wb_slice text, struct wb_newseeds *seeds)
{
    struct wb_buf url = WB_BUF_INIT;
    struct wb_webdb_page page;
    int err = 0;

    if (!memmem(text.ptr, text.len, "://", 3))
        err = wb_buf_append_str(&url, "https://");
    if (err == 0)
        err = wb_buf_append_slice(&url, text);
    if (err == 0)
        err = webdb ? wb_webdb_get_page(webdb, wb_buf_slice(&url), &page) : WB_E_NOTFOUND;
    if (err == WB_E_NOTFOUND || (err == 0 && page.last_tried_ms == 0 && !(page.flags & WB_PAGE_BARRED)))
        err = add_url(seeds, text);
    wb_buf_release(&url);
    return err == WB_E_INVALID || err == WB_E_PROTO || err == WB_E_LIMIT ? 0 : err;
}

static int look_at_file(struct wb_webdb *webdb, const char *path, struct wb_newseeds *seeds)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_path_read(path, SEEDS_BYTES_MAX, &text);
    struct wb_slice rest = wb_buf_slice(&text);

    if (wb_slice_starts(rest, WB_SLICE_LIT("\xef\xbb\xbf")))
        rest = wb_slice(rest.ptr + 3, rest.len - 3);
    while (err == 0 && rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len, word = 0;
        struct wb_slice line = wb_slice_trim(wb_slice(rest.ptr, len));
        while (word < line.len && line.ptr[word] != ' ' && line.ptr[word] != '\t')
            word++;
        line.len = word;
        if (line.len && line.ptr[0] != '#' && !wb_slice_equal(line, WB_SLICE_LIT("class")))
            err = look_at(webdb, line, seeds);
        len += end != NULL;
        rest = wb_slice(rest.ptr + len, rest.len - len);
    }
    wb_buf_release(&text);
    return err;
}

int wb_newseeds_find(const struct wb_crawl_options *options, struct wb_newseeds *seeds_out)
{
    struct wb_webdb *webdb = NULL;

    *seeds_out = (struct wb_newseeds){NULL, 0, 0};
    if (options->url_count == 0 && !options->seeds_file)
        return 0;
    int err = wb_webdb_open(options->dir, &webdb);
    if (err == WB_E_NOTFOUND)
        err = 0;
    for (size_t i = 0; err == 0 && i < options->url_count; i++)
        err = look_at(webdb, wb_slice_str(options->urls[i]), seeds_out);
    if (err == 0 && options->seeds_file)
        err = look_at_file(webdb, options->seeds_file, seeds_out);
    wb_webdb_close(webdb);
    return err;
}

void wb_newseeds_release(struct wb_newseeds *seeds)
{
    for (size_t i = 0; i < seeds->count; i++)
        wb_free(seeds->urls[i]);
    wb_free(seeds->urls);
    *seeds = (struct wb_newseeds){NULL, 0, 0};
}
