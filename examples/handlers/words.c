/*
 * words.c - an example handler: how often words occur, and on how many pages.
 *
 *   cc -O2 -shared -fPIC -I include -o words.so examples/handlers/words.c
 *   webbase stream --handler ./words.so=20        the 20 most frequent words (100 unless a number is given)
 *
 * Prints "WORD<TAB>OCCURRENCES<TAB>PAGES", most frequent first. A word is a run of letters, digits and bytes beyond
 * ASCII; capital ASCII letters count as small ones. The table grows with the vocabulary, not with the pages. With
 * --workers N, each worker leaves all its words, and merge adds them up.
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

/* The entry of a word, which is made if there is none. NULL: no memory. */
static struct word *entry(struct statistics *s, const char *text)
{
    if (2 * s->used >= s->size && grow(s) != WEBBASE_OK)
        return NULL;
    struct word *word = place(s->table, s->size, text);
    if (!word->text) {
        word->text = strdup(text);
        if (!word->text)
            return NULL;
        s->used++;
    }
    return word;
}

static int count(struct statistics *s, const char *text)
{
    struct word *word = entry(s, text);

    if (!word)
        return WEBBASE_FAILED;
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

/* Prints the `top` most frequent words. */
static int print(struct statistics *s, size_t top, FILE *out)
{
    if (s->size)
        qsort(s->table, s->size, sizeof(*s->table), by_occurrences);
    for (size_t i = 0; i < top && i < s->used; i++)
        fprintf(out, "%s\t%llu\t%llu\n", s->table[i].text, (unsigned long long)s->table[i].occurrences,
                (unsigned long long)s->table[i].pages);
    return fflush(out) == 0 && !ferror(out) ? WEBBASE_OK : WEBBASE_FAILED;
}

static size_t wanted(const struct webbase_host *host)
{
    return host->argument[0] ? strtoul(host->argument, NULL, 10) : 100;
}

static void release(struct statistics *s)
{
    for (size_t i = 0; i < s->size; i++)
        free(s->table[i].text);
    free(s->table);
}

int webbase_handler_finish(void *state, int complete)
{
    struct statistics *s = state;
    const char *part = s->host->part;
    int result = WEBBASE_OK;

    if (complete) {
        FILE *out = part ? fopen(part, "w") : stdout;
        result = out ? print(s, part ? SIZE_MAX : wanted(s->host), out) : WEBBASE_FAILED;
        if (part && out)
            fclose(out);
    }
    release(s);
    free(s);
    return result;
}

/* Adds the words of one worker. */
static int add_part(struct statistics *s, FILE *part)
{
    char line[WORD_MAX + 64], text[WORD_MAX + 1];
    unsigned long long occurrences, pages;

    while (fgets(line, sizeof line, part)) {
        struct word *word = sscanf(line, "%40s %llu %llu", text, &occurrences, &pages) == 3 ? entry(s, text) : NULL;
        if (!word)
            return WEBBASE_FAILED;
        word->occurrences += occurrences;
        word->pages += pages;
    }
    return ferror(part) ? WEBBASE_FAILED : WEBBASE_OK;
}

int webbase_handler_merge(const struct webbase_host *host, const char *const *parts, size_t count)
{
    struct statistics s = {.host = host};
    int result = WEBBASE_OK;

    for (size_t i = 0; i < count && result == WEBBASE_OK; i++) {
        FILE *part = fopen(parts[i], "r");
        result = part ? add_part(&s, part) : WEBBASE_FAILED;
        if (part)
            fclose(part);
    }
    if (result == WEBBASE_OK)
        result = print(&s, wanted(host), stdout);
    release(&s);
    return result;
}
