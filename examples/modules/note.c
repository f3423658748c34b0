/*
 * note.c - a module for text/x-note: the first line is the title, lines "NAME: VALUE" after it are facts, a line that
 * is a URL is a link, and everything is text.
 *
 *   cc -O2 -shared -fPIC -I include -o note.so examples/modules/note.c
 *   webbase crawl --module ./note.so https://example.org/
 *
 * Its argument, if any, is a fact named "source" of every note.
 */
#include <webbase/module.h>

#include <string.h>

const char *const webbase_module_types = "text/x-note";

static const char *source;

int webbase_module_init(const struct webbase_host *host, void **state_out)
{
    source = host->argument;
    *state_out = NULL;
    return WEBBASE_OK;
}

static void read_line(const struct webbase_output *out, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    char name[65];

    if (len > 7 && (memcmp(line, "http://", 7) == 0 || memcmp(line, "https:/", 7) == 0)) {
        out->link(out, line, len, "", 0);
        return;
    }
    if (!colon || colon == line || (size_t)(colon - line) >= sizeof name || line + len - colon < 3)
        return;
    memcpy(name, line, (size_t)(colon - line));
    name[colon - line] = '\0';
    out->fact(out, name, colon + 2, (size_t)(line + len - colon - 2)); /* refuses what is no name */
}

int webbase_module_process(void *state, const struct webbase_record *record, const struct webbase_output *out)
{
    const char *at = record->body.ptr, *end = at + record->body.len;

    (void)state;
    for (int first = 1; at < end; first = 0) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline ? newline : end) - at);
        if (first)
            out->title(out, at, len);
        else
            read_line(out, at, len);
        at += len + (newline != NULL);
    }
    if (*source)
        out->fact(out, "source", source, strlen(source));
    return out->text(out, record->body.ptr, record->body.len) < 0 ? WEBBASE_FAILED : WEBBASE_OK;
}

int webbase_module_finish(void *state, int complete)
{
    (void)state;
    (void)complete;
    return WEBBASE_OK;
}
