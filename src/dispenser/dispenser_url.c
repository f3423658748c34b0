/*
 * dispenser_url.c - remembers which dispenser a repository uses, so that not every command must be told.
 *
 *   dispenser.url    webbase dispenser 1
 *                    url postgres://...
 *                    check 0123456789abcdef       XXH3 of everything before this line
 *
 * A crawl with the option --dispenser writes this file. Only its owner can read it, because the URL may contain a
 * password. Without the file, the dispenser is dispenser.db in the repository.
 */
#include "dispenser/dispenser.h"
#include "base/checked_text.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "sql/sql.h"

#include <sys/stat.h>

enum { FILE_BYTES_MAX = 64 << 10 };

#define FILE_NAME "dispenser.url"

static bool read_file(struct wb_slice text, struct wb_slice *url_out)
{
    struct wb_slice lines, title;

    return wb_checked_text_open(text, &lines) && wb_checked_text_take(&lines, "webbase", &title) &&
           wb_slice_equal(title, WB_SLICE_LIT("dispenser 1")) && wb_checked_text_take(&lines, "url", url_out) &&
           lines.len == 0 && wb_dispenser_is_url(*url_out);
}

bool wb_dispenser_is_url(struct wb_slice url)
{
    return url.len < FILE_BYTES_MAX / 2 && wb_sql_url_kind(url) == WB_SQL_URL_POSTGRES;
}

int wb_dispenser_recall_url(const char *dir, struct wb_buf *url_out)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_slice url;
    char *path = wb_path_join(dir, FILE_NAME);

    wb_buf_clear(url_out);
    int err = path ? wb_path_read(path, FILE_BYTES_MAX, &text) : WB_E_NOMEM;
    if (err == 0 && !read_file(wb_buf_slice(&text), &url))
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: a crawl with --dispenser replaces it", path);
    if (err == 0)
        err = wb_buf_append_slice(url_out, url);
    if (err == 0)
        err = wb_buf_terminate(url_out);
    wb_free(path);
    wb_buf_release(&text);
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_dispenser_remember_url(const char *dir, const char *url)
{
    struct wb_buf text = WB_BUF_INIT;
    char *path = wb_path_join(dir, FILE_NAME);
    int err = path ? 0 : WB_E_NOMEM;

    if (err == 0 && strcmp(url, WB_DISPENSER_OWN) == 0) {
        err = wb_path_unlink(path);
        goto done;
    }
    if (err == 0)
        err = wb_buf_printf(&text, "webbase dispenser 1\nurl %s\n", url);
    if (err == 0)
        err = wb_checked_text_end(&text);
    if (err == 0) {
        mode_t before = umask(077);
        err = wb_path_replace(path, wb_buf_slice(&text));
        umask(before);
    }
done:
    wb_free(path);
    wb_buf_release(&text);
    return err;
}

int wb_dispenser_redact_url(struct wb_slice url, struct wb_buf *text_out)
{
    return wb_sql_url_redact(url, text_out);
}
