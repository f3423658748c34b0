/*
 * words.c - an example handler: how often words occur, and on how many pages.
 *
 *   cc -O2 -shared -fPIC -I include -o words.so examples/handlers/words.c
 *   webbase stream --handler ./words.so=20        the 20 most frequent words (100 unless a number is given)
 *
 * Prints "WORD<TAB>OCCURRENCES<TAB>PAGES", most frequent first. A word is a run of letters, digits and bytes beyond
 * ASCII; capital ASCII letters count as small ones. The table grows with the vocabulary, not with the pages.
 */
#include <webbase/handler.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 40 };

struct word {
    char *text; /* NULL: an empty place of the table */
    uint64_t occurrences, pages, last_page;
};

struct statistics {
    const struct webbase_host *host;
    struct word *table;
    size_t size, used; /* size is a power of two */
    uint64_t page;
};

static size_t hash(const char *text)
{
    size_t h = 14695981039346656037u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

static struct word *place(struct word *table, size_t size, const char *text)
{
    size_t at = hash(text) & (size - 1);

    while (table[at].text && strcmp(table[at].text, text) != 0)
        at = (at + 1) & (size - 1);
    return &table[at];
}

static int grow(struct statistics *s)
{
    size_t size = s->size ? 2 * s->size : 1 << 16;
    struct word *table = calloc(size, sizeof(*table));

    if (!table)
        return WEBBASE_FAILED;
    for (size_t i = 0; i < s->size; i++)
        if (s->table[i].text)
            *place(table, size, s->table[i].text) = s->table[i];
    free(s->table);
    s->table = table;
    s->size = size;
    return WEBBASE_OK;
}

static int count(struct statistics *s, const char *text)
{
    if (2 * s->used >= s->size && grow(s) != WEBBASE_OK)
        return WEBBASE_FAILED;
    struct word *word = place(s->table, s->size, text);
    if (!word->text) {
        word->text = strdup(text);
        if (!word->text)
            return WEBBASE_FAILED;
        s->used++;
    }
    word->occurrences++;
    word->pages += word->last_page != s->page;
    word->last_page = s->page;
    return WEBBASE_OK;
}

int webbase_handler_init(const struct webbase_host *host, void **state_out)
{
    struct statistics *s = calloc(1, sizeof(*s));

    if (!s)
        return WEBBASE_FAILED;
    s->host = host;
    *state_out = s;
    return WEBBASE_OK;
}

int webbase_handler_process(void *state, const struct webbase_record *record)
{
    struct statistics *s = state;
    struct webbase_text text;
    char word[WORD_MAX + 1];
    size_t len = 0;
    int result = s->host->text(s->host, &text, NULL, NULL);

    (void)record;
    if (result != WEBBASE_OK)
        return result;
    if (text.len == 0)
        return WEBBASE_SKIPPED; /* an image, say */
    s->page++;
    for (size_t i = 0; i <= text.len && result == WEBBASE_OK; i++) {
        unsigned char c = i < text.len ? (unsigned char)text.ptr[i] : ' ';
        if (c >= 0x80 || isalnum(c)) {
            if (len < WORD_MAX)
                word[len] = (char)tolower(c);
            len++;
        } else if (len) {
            word[len < WORD_MAX ? len : WORD_MAX] = '\0';
            result = len <= WORD_MAX ? count(s, word) : WEBBASE_OK;
            len = 0;
        }
    }
    return result;
}

static int by_occurrences(const void *a, const void *b)
{
    const struct word *x = a, *y = b;

    if (!x->text || !y->text)
        return !x->text - !y->text;
    if (x->occurrences != y->occurrences)
        return x->occurrences < y->occurrences ? 1 : -1;
    return strcmp(x->text, y->text);
}

int webbase_handler_finish(void *state, int complete)
{
    struct statistics *s = state;
    size_t top = s->host->argument[0] ? strtoul(s->host->argument, NULL, 10) : 100;

    if (complete && s->size) {
        qsort(s->table, s->size, sizeof(*s->table), by_occurrences);
        for (size_t i = 0; i < top && i < s->used; i++)
            printf("%s\t%llu\t%llu\n", s->table[i].text, (unsigned long long)s->table[i].occurrences,
                   (unsigned long long)s->table[i].pages);
    }
    for (size_t i = 0; i < s->size; i++)
        free(s->table[i].text);
    free(s->table);
    free(s);
    return fflush(stdout) == 0 ? WEBBASE_OK : WEBBASE_FAILED;
}
