/*
 * anchors.c - an example handler: which texts do others use when they link to a page? (Hirai et al., WebBase, 4.2)
 *
 *   cc -O2 -shared -fPIC -I include -o anchors.so examples/handlers/anchors.c
 *   webbase stream --handler ./anchors.so=anchors.tsv        to standard output if no file is named
 *
 * Phase 1, process: the links of each page become lines "TARGET<TAB>ANCHOR<TAB>SOURCE", which are sorted in memory and
 * written to a run whenever RUN_BYTES of them have come together. Phase 2, finish: the runs are merged, so that the
 * output has all anchors of a target next to each other. Memory stays bounded however many pages there are. With
 * --workers N, the output of each worker is a share, and phase 3 merges the shares as phase 2 merges the runs.
 */
#include <webbase/handler.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_BYTES = 64 << 20, RUNS_MAX = 1000, LINE_MAX_BYTES = 8192 };

struct anchors {
    const struct webbase_host *host;
    char *bytes;  /* lines that are not in a run yet, each ended by a NUL */
    size_t len;
    char **lines;
    size_t count, room;
    FILE *runs[RUNS_MAX];
    size_t run_count;
};

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- phase 1 ------------------------------------------------------------------------------------- */

static int write_run(struct anchors *a)
{
    if (a->count == 0)
        return WEBBASE_OK;
    FILE *run = a->run_count < RUNS_MAX ? tmpfile() : NULL;
    if (!run)
        return WEBBASE_FAILED;
    a->runs[a->run_count++] = run;
    qsort(a->lines, a->count, sizeof(*a->lines), compare);
    for (size_t i = 0; i < a->count; i++)
        if (fputs(a->lines[i], run) < 0 || fputc('\n', run) < 0)
            return WEBBASE_FAILED;
    a->count = a->len = 0;
    return WEBBASE_OK;
}

/* Appends a text of a line; what would end a field or the line becomes a blank. */
static size_t put(char *line, size_t at, struct webbase_text text, char end)
{
    for (size_t i = 0; i < text.len && at < LINE_MAX_BYTES - 2; i++)
        line[at++] = (unsigned char)text.ptr[i] < ' ' ? ' ' : text.ptr[i];
    line[at++] = end;
    return at;
}

static int add(struct anchors *a, const struct webbase_link *link, const struct webbase_record *record)
{
    if (a->len + 3 * LINE_MAX_BYTES > RUN_BYTES && write_run(a) != WEBBASE_OK)
        return WEBBASE_FAILED;
    if (a->count == a->room) {
        size_t room = a->room ? 2 * a->room : 1 << 16;
        char **lines = realloc(a->lines, room * sizeof(*lines));
        if (!lines)
            return WEBBASE_FAILED;
        a->lines = lines;
        a->room = room;
    }
    char *line = a->bytes + a->len;
    size_t at = put(line, 0, link->url, '\t');
    at = put(line, at, link->anchor, '\t');
    at = put(line, at, record->url, '\0');
    a->lines[a->count++] = line;
    a->len += at;
    return WEBBASE_OK;
}

int webbase_handler_init(const struct webbase_host *host, void **state_out)
{
    struct anchors *a = calloc(1, sizeof(*a));

    if (a)
        a->bytes = malloc(RUN_BYTES);
    if (!a || !a->bytes) {
        free(a);
        return WEBBASE_FAILED;
    }
    a->host = host;
    *state_out = a;
    return WEBBASE_OK;
}

int webbase_handler_process(void *state, const struct webbase_record *record)
{
    struct anchors *a = state;
    const struct webbase_link *links;
    size_t count;
    int result = a->host->links(a->host, &links, &count);

    for (size_t i = 0; i < count && result == WEBBASE_OK; i++)
        if (links[i].anchor.len)
            result = add(a, &links[i], record);
    return result;
}

/* ---- phase 2 ------------------------------------------------------------------------------------- */

struct cursor {
    FILE *run;
    char line[3 * LINE_MAX_BYTES];
    int over;
};

static void advance(struct cursor *c)
{
    c->over = !fgets(c->line, sizeof c->line, c->run);
}

/* Few runs, so the smallest line is found by looking at all of them. */
static int merge(FILE *const *runs, size_t run_count, FILE *out)
{
    struct cursor *cursors = calloc(run_count + 1, sizeof(*cursors));
    int result = cursors ? WEBBASE_OK : WEBBASE_FAILED;

    for (size_t i = 0; cursors && i < run_count; i++) {
        rewind(runs[i]);
        cursors[i].run = runs[i];
        advance(&cursors[i]);
    }
    while (result == WEBBASE_OK) {
        struct cursor *least = NULL;
        for (size_t i = 0; i < run_count; i++)
            if (!cursors[i].over && (!least || strcmp(cursors[i].line, least->line) < 0))
                least = &cursors[i];
        if (!least)
            break;
        result = fputs(least->line, out) < 0 ? WEBBASE_FAILED : WEBBASE_OK;
        advance(least);
    }
    for (size_t i = 0; i < run_count; i++)
        if (ferror(runs[i]))
            result = WEBBASE_FAILED;
    free(cursors);
    return result;
}

/* To a file, or to standard output if path is empty. */
static int write_merged(const struct webbase_host *host, const char *path, FILE *const *runs, size_t run_count)
{
    FILE *out = path[0] ? fopen(path, "w") : stdout;
    int result = out ? merge(runs, run_count, out) : WEBBASE_FAILED;

    if (out && (path[0] ? fclose(out) : fflush(out)) != 0)
        result = WEBBASE_FAILED;
    if (result != WEBBASE_OK)
        host->say(host, "cannot write %s", path[0] ? path : "to standard output");
    return result;
}

int webbase_handler_finish(void *state, int complete)
{
    struct anchors *a = state;
    const char *path = a->host->part ? a->host->part : a->host->argument;
    int result = complete ? write_run(a) : WEBBASE_OK;

    if (complete && result == WEBBASE_OK)
        result = write_merged(a->host, path, a->runs, a->run_count);
    for (size_t i = 0; i < a->run_count; i++)
        fclose(a->runs[i]);
    free(a->lines);
    free(a->bytes);
    free(a);
    return result;
}

/* ---- phase 3, with several workers ---------------------------------------------------------------- */

int webbase_handler_merge(const struct webbase_host *host, const char *const *parts, size_t count)
{
    FILE **shares = calloc(count, sizeof(*shares));
    int result = shares ? WEBBASE_OK : WEBBASE_FAILED;

    for (size_t i = 0; i < count && result == WEBBASE_OK; i++)
        if (!(shares[i] = fopen(parts[i], "r")))
            result = WEBBASE_FAILED;
    if (result == WEBBASE_OK)
        result = write_merged(host, host->argument, shares, count);
    for (size_t i = 0; shares && i < count; i++)
        if (shares[i])
            fclose(shares[i]);
    free(shares);
    return result;
}
