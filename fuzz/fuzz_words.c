/*
 * fuzz_words.c - arbitrary bytes as the text of a page and as a piece of a query. The first byte chooses the language.
 * Words are folded to themselves, and a query has the words that the page has.
 */
#include "base/check.h"
#include "base/utf8.h"
#include "words/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks the words of a text, and that each word, read as a text, gives itself. */
static void read_text(struct wb_words *words, struct wb_words *again, struct wb_slice text, const char *language)
{
    struct wb_word word, same;
    size_t begin = 0;
    uint32_t position = 0;
    int more;

    WB_CHECK(wb_words_begin(words, text, language) == 0);
    while ((more = wb_words_next(words, &word)) > 0) {
        WB_CHECK(word.begin >= begin && word.end > word.begin && word.end <= text.len && word.position == position);
        WB_CHECK(word.exact.len > 0 && word.exact.len <= WB_WORD_BYTES_MAX && wb_utf8_valid(word.exact));
        WB_CHECK(word.stem.len > 0 && word.stem.len <= WB_WORD_BYTES_MAX && wb_utf8_valid(word.stem));
        begin = word.begin;
        position += word.kind != WB_WORD_COMPOUND;
        WB_CHECK(wb_words_begin(again, word.exact, language) == 0 && wb_words_next(again, &same) == 1);
        WB_CHECK(wb_slice_equal(same.exact, word.exact) && same.kind == word.kind);
        WB_CHECK(wb_slice_equal(same.stem, word.stem));
    }
    WB_CHECK(more == 0);
}

static void read_query(struct wb_words *words, struct wb_words *again, struct wb_slice text)
{
    struct wb_wordlist list = WB_WORDLIST_INIT;
    struct wb_word word;
    size_t at = 0;

    WB_CHECK(wb_words_of_query(words, text, &list) == 0 && list.count <= WB_WORDLIST_MAX);
    WB_CHECK(wb_words_begin(again, text, NULL) == 0);
    while (at < list.count && wb_words_next(again, &word) > 0)
        if (wb_slice_equal(word.exact, list.words[at].exact) && word.position == list.words[at].position &&
            word.kind == list.words[at].kind)
            at++;
        else
            WB_CHECK(word.kind == WB_WORD_GRAM && word.last);
    WB_CHECK(at == list.count);
    wb_wordlist_release(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wb_words *words, *again; /* kept, because each has a large cache */
    struct wb_slice text = size > 1 ? wb_slice((const char *)data + 1, size - 1) : WB_SLICE_EMPTY;

    if (!words)
        WB_CHECK(wb_words_new(&words) == 0 && wb_words_new(&again) == 0);
    read_text(words, again, text, wb_language_code(size ? data[0] % WB_LANGUAGES : 0));
    read_query(words, again, text);
    return 0;
}
