/*
 * sql_url.c - which kind of database a URL names, and how it is shown.
 *
 * It takes no URL apart beyond that: PostgreSQL's library reads its own.
 */
#include "base/slice.h"
#include "sql/sql.h"

enum wb_sql_url_kind wb_sql_url_kind(struct wb_slice url)
{
    if (url.len >= WB_SQL_URL_MAX || memchr(url.ptr, '\n', url.len) || memchr(url.ptr, '\0', url.len))
        return WB_SQL_URL_NONE;
    if (wb_slice_starts(url, WB_SLICE_LIT("postgres://")) || wb_slice_starts(url, WB_SLICE_LIT("postgresql://")))
        return WB_SQL_URL_POSTGRES;
    /* The third slash begins the path. */
    return wb_slice_starts(url, WB_SLICE_LIT("sqlite:///")) && url.len > sizeof "sqlite:///" - 1 ? WB_SQL_URL_SQLITE
                                                                                                 : WB_SQL_URL_NONE;
}

/* The last '@' in [from, to), so that nothing of a password with an '@' in it remains; NULL: there is none. */
static const char *last_at(const char *from, const char *to)
{
    const char *found = NULL;

    for (const char *c = from; c < to; c++)
        found = *c == '@' ? c : found;
    return found;
}

int wb_sql_url_redact(struct wb_slice url, struct wb_buf *text_out)
{
    const char *end = url.ptr + url.len, *user = url.ptr;

    if (wb_sql_url_kind(url) == WB_SQL_URL_SQLITE)
        return wb_buf_append_slice(text_out, url);
    for (const char *c = url.ptr; c + 2 < end && user == url.ptr; c++)
        if (memcmp(c, "://", 3) == 0)
            user = c + 3;
    const char *query = memchr(user, '?', (size_t)(end - user));
    const char *last = query ? query : end;
    const char *host = last_at(user, last);
    const char *colon = host ? memchr(user, ':', (size_t)(host - user)) : NULL;
    /* An '@' after the '?' may end a password that should have been written with %3F. */
    if (!host && last_at(last, end)) {
        colon = memchr(user, ':', (size_t)(last - user));
        host = last;
    }
    int err = wb_buf_append(text_out, url.ptr, (size_t)((colon ? colon + 1 : last) - url.ptr));
    if (err == 0 && colon)
        err = wb_buf_append_str(text_out, "***");
    if (err == 0 && colon)
        err = wb_buf_append(text_out, host, (size_t)(last - host));
    /* Parameters may contain a password, too. */
    return err == 0 && query ? wb_buf_append_str(text_out, "?...") : err;
}
