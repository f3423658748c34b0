/*
 * bench_words.c - measures how many bytes of text per second become words, on one core.
 *
 *   bench_words [-l LANGUAGE] FILE...     UTF-8 text
 *
 * Each file is read several times without stems and several times with them, in turns; the best time of each counts.
 */
#include "base/error.h"
#include "os/path.h"
#include "words/words.h"

#include <stdio.h>
#include <time.h>

#define FILE_MAX ((size_t)1 << 30)
#define ROUNDS 7
#define ROUND_BYTES ((size_t)64 << 20)

struct count {
    uint64_t words, compounds, grams, bytes; /* bytes keeps the compiler from leaving out the stems */
};

/* Reads the text once; *count_out is what was in it. */
static int read_words(struct wb_words *words, struct wb_slice text, const char *language, struct count *count_out)
{
    struct wb_word word;
    int more, err = wb_words_begin(words, text, language);

    *count_out = (struct count){0};
    if (err < 0)
        return err;
    while ((more = wb_words_next(words, &word)) > 0) {
        count_out->words++;
        count_out->compounds += word.kind == WB_WORD_COMPOUND;
        count_out->grams += word.kind == WB_WORD_GRAM;
        count_out->bytes += word.stem.len;
    }
    return more;
}

/* The time that this process has used, which does not depend on what else the machine does. */
static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Reads the text often enough for a round, and keeps the best speed in MB/s. */
static int measure(struct wb_words *words, struct wb_slice text, const char *language, struct count *count_out,
                   double *best)
{
    size_t times = 1 + ROUND_BYTES / (text.len + 1);
    int64_t from = cpu_ns();

    for (size_t i = 0; i < times; i++) {
        int err = read_words(words, text, language, count_out);
        if (err < 0)
            return err;
    }
    double speed = (double)(text.len * times) * 1e3 / (double)(cpu_ns() - from);
    *best = speed > *best ? speed : *best;
    return 0;
}

static int bench_file(struct wb_words *words, const char *path, const char *language)
{
    struct wb_buf text = WB_BUF_INIT;
    struct count count = {0};
    double plain = 0, stemmed = 0;
    int err = wb_path_read(path, FILE_MAX, &text);

    for (int i = 0; err == 0 && i < ROUNDS; i++) {
        err = measure(words, wb_buf_slice(&text), NULL, &count, &plain);
        if (err == 0)
            err = measure(words, wb_buf_slice(&text), language, &count, &stemmed);
    }
    if (err == 0)
        printf("{\"bench\":\"words\",\"bytes\":%zu,\"words\":%llu,\"compounds\":%llu,\"grams\":%llu,\"mb_per_s\":%.0f,"
               "\"mb_per_s_stems\":%.0f,\"file\":\"%s\"}\n",
               text.len, (unsigned long long)count.words, (unsigned long long)count.compounds,
               (unsigned long long)count.grams, plain, stemmed, path);
    wb_buf_release(&text);
    return err;
}

int main(int argc, char **argv)
{
    struct wb_words *words = NULL;
    const char *language = "en";
    int err = wb_words_new(&words), i = 1;

    if (argc > 2 && strcmp(argv[1], "-l") == 0) {
        language = argv[2];
        i = 3;
    }
    if (i == argc) {
        fprintf(stderr, "usage: bench_words [-l LANGUAGE] FILE...\n");
        return 2;
    }
    for (; err == 0 && i < argc; i++)
        err = bench_file(words, argv[i], language);
    if (err < 0)
        fprintf(stderr, "bench_words: %s\n", wb_error_message());
    wb_words_free(words);
    return err < 0;
}
