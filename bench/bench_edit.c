/* bench_edit.c - makes the next version of a page (bench_edit.h). It never reads or writes files. */
#include "bench_edit.h"

#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    POOL_PAGES = 50,  /* the words of every fiftieth page are in the pool */
    PLACE_WORDS = 12, /* an edited place has at most so many words */
    PERCENT = 2,      /* of the words */
};

/* ---- words ------------------------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Where the text goes on after what starts with the '<' at `at`: a tag, a comment, a whole script or style. */
static size_t skip_markup(struct wb_slice body, size_t at)
{
    static const struct {
        const char *start, *end;
    } long_ones[] = {{"<!--", "-->"}, {"<script", "</script"}, {"<style", "</style"}};
    const char *found;

    for (size_t i = 0; i < sizeof(long_ones) / sizeof(*long_ones); i++) {
        size_t len = strlen(long_ones[i].start);

        if (body.len - at < len || strncasecmp(body.ptr + at, long_ones[i].start, len) != 0)
            continue;
        found = memmem(body.ptr + at, body.len - at, long_ones[i].end, strlen(long_ones[i].end));
        if (!found)
            return body.len;
        at = (size_t)(found - body.ptr);
        break;
    }
    found = memchr(body.ptr + at, '>', body.len - at);
    return found ? (size_t)(found - body.ptr) + 1 : body.len;
}

/* Finds the words of the text; editor->words is replaced. */
static int find_words(struct editor *editor, struct wb_slice body)
{
    int err = 0;

    wb_vec_clear(&editor->words);
    for (size_t at = 0; at < body.len && err == 0;) {
        size_t from = at;

        if (body.ptr[at] == '<') {
            at = skip_markup(body, at);
        } else if (body.ptr[at] == '&') { /* a character reference is no word */
            for (at++; at < body.len && at < from + 10 && (is_letter(body.ptr[at]) || body.ptr[at] == '#'); at++)
                ;
        } else if (is_letter(body.ptr[at])) {
            while (at < body.len && is_letter(body.ptr[at]))
                at++;
            err = wb_vec_push(&editor->words, wb_slice(body.ptr + from, at - from));
        } else {
            at++;
        }
        editor->text_bytes += body.ptr[from] != '<' ? at - from : 0;
    }
    return err;
}

int editor_init(const struct corpus *corpus, struct editor *editor_out)
{
    int err = 0;

    *editor_out = EDITOR_INIT;
    for (size_t i = 0; i < corpus->count && err == 0; i += POOL_PAGES) {
        err = find_words(editor_out, corpus->pages[i].body);
        for (size_t k = 0; k < editor_out->words.count && err == 0; k++)
            err = wb_vec_push(&editor_out->pool, editor_out->words.items[k]);
    }
    if (err == 0 && editor_out->pool.count == 0)
        err = wb_fail(WB_E_CORRUPT, "the corpus has no words");
    editor_out->text_bytes = 0;
    return err;
}

void editor_release(struct editor *editor)
{
    wb_vec_release(&editor->pool);
    wb_vec_release(&editor->words);
    wb_vec_release(&editor->chosen);
}

/* ---- a version ------------------------------------------------------------------------------------------------ */

/* Chooses the words that are replaced, in a few places. */
static int choose_words(struct editor *editor, uint64_t *random)
{
    size_t count = editor->words.count, wanted = count * PERCENT / 100, chosen = 0;
    int err = wb_vec_reserve(&editor->chosen, count + 1);

    if (err < 0)
        return err;
    memset(editor->chosen.items, 0, count * sizeof *editor->chosen.items);
    wanted = wanted == 0 && count > 0 ? 1 : wanted;
    while (chosen < wanted) {
        size_t first = bench_random(random) % count, words = 1 + bench_random(random) % PLACE_WORDS;

        for (size_t i = first; i < count && i < first + words && chosen < wanted; i++) {
            chosen += !editor->chosen.items[i];
            editor->chosen.items[i] = true;
        }
    }
    editor->words_seen += count;
    editor->words_replaced += chosen;
    return 0;
}

static int write_body(struct editor *editor, struct wb_slice body, uint64_t *random, struct wb_buf *mem)
{
    const char *done = body.ptr;
    int err = 0;

    for (size_t i = 0; i < editor->words.count && err == 0; i++) {
        struct wb_slice old = editor->words.items[i];

        if (!editor->chosen.items[i])
            continue;
        err = wb_buf_append(mem, done, (size_t)(old.ptr - done));
        if (err == 0)
            err = wb_buf_append_slice(mem, editor->pool.items[bench_random(random) % editor->pool.count]);
        done = old.ptr + old.len;
    }
    return err < 0 ? err : wb_buf_append(mem, done, (size_t)(body.ptr + body.len - done));
}

static void http_date(int64_t time_ms, char text_out[64])
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;

    gmtime_r(&seconds, &parts);
    strftime(text_out, 64, "%a, %d %b %Y %H:%M:%S GMT", &parts);
}

/* Copies the head, with the lines changed that say when the page changed and how long it is. */
static int write_head(struct wb_slice head, int64_t time_ms, size_t body_bytes, struct wb_buf *mem)
{
    char date[64], changed[64];
    int64_t changed_ms = time_ms - WB_DAY_MS / 2;
    int err = 0;

    http_date(time_ms, date);
    http_date(changed_ms, changed);
    for (size_t at = 0, next; at < head.len && err == 0; at = next) {
        const char *line = head.ptr + at, *end = memchr(line, '\n', head.len - at);

        next = end ? (size_t)(end - head.ptr) + 1 : head.len;
        if (next - at > 5 && strncasecmp(line, "Date:", 5) == 0)
            err = wb_buf_printf(mem, "Date: %s\r\n", date);
        else if (next - at > 14 && strncasecmp(line, "Last-Modified:", 14) == 0)
            err = wb_buf_printf(mem, "Last-Modified: %s\r\n", changed);
        else if (next - at > 5 && strncasecmp(line, "ETag:", 5) == 0)
            err = wb_buf_printf(mem, "ETag: \"%zx-%llx\"\r\n", body_bytes, (unsigned long long)changed_ms * 1000);
        else if (next - at > 15 && strncasecmp(line, "Content-Length:", 15) == 0)
            err = wb_buf_printf(mem, "Content-Length: %zu\r\n", body_bytes);
        else
            err = wb_buf_append(mem, line, next - at);
    }
    return err;
}

int editor_next(struct editor *editor, const struct wb_page *page, uint64_t seed, int64_t step_ms, struct wb_buf *mem,
                struct wb_page *page_out)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
    size_t body_bytes;
    int err = find_words(editor, page->body);

    *page_out = *page;
    wb_buf_clear(mem);
    if (err == 0)
        err = choose_words(editor, &random);
    if (err == 0)
        err = wb_buf_reserve(mem, page->head.len + page->body.len + (page->body.len >> 4) + 64);
    if (err == 0)
        err = write_body(editor, page->body, &random, mem);
    body_bytes = mem->len;
    page_out->time_ms = page->time_ms + step_ms;
    if (err == 0)
        err = write_head(page->head, page_out->time_ms, body_bytes, mem);
    page_out->body = wb_slice(mem->ptr, body_bytes);
    page_out->body_bytes = body_bytes;
    page_out->head = wb_slice(mem->ptr + body_bytes, mem->len - body_bytes);
    editor->body_bytes += body_bytes;
    return err;
}
