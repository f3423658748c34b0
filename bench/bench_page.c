/*
 * bench_page.c - measures how many bytes of HTML are understood per second on one core.
 *
 *   bench_page CORPUS KIND [STEP]    every STEP-th page of the corpus (default: 8)
 *   bench_page nasty                 inputs that are meant to make a parser quadratic, in two lengths
 *
 * KIND: scan     only searches the bytes for '<': the upper bound
 *       tokens   our tokenizer
 *       extract  tokens, links and text
 *       all      the same, and language, SimHash, MD5 and SHA-1
 *       gumbo    gumbo_parse(), which builds a tree
 *       libxml2  libxml2's HTML parser, SAX events only
 */
#include "bench.h"

#include "base/error.h"
#include "base/mem.h"
#include "extract/extract.h"
#include "markup/tokenizer.h"

#include <gumbo.h>
#include <libxml/HTMLparser.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP 8
#define ROUNDS 3

struct bench {
    struct wb_extractor *extractor;
    struct wb_tokenizer *tokenizer;
    uint64_t mix; /* keeps the compiler from optimising the work away */
};

/* ---- one page each way ----------------------------------------------------------------------- */

static int run_scan(struct bench *b, const struct wb_page *page)
{
    const char *p = page->body.ptr, *end = p + page->body.len;

    while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
        b->mix++;
        p++;
    }
    return 0;
}

static int run_tokens(struct bench *b, const struct wb_page *page)
{
    struct wb_tokenizer *t = b->tokenizer;

    wb_tokenizer_init(t, page->body);
    while (wb_tokenizer_next(t) != WB_TOKEN_NONE) {
        b->mix += t->text.len + t->attr_count;
        if (t->kind == WB_TOKEN_START && t->text.len == 6 && memcmp(t->text.ptr, "script", 6) == 0)
            t->mode = WB_MODE_SCRIPT;
    }
    return 0;
}

static int extract_page(struct bench *b, const struct wb_page *page, unsigned wants)
{
    struct wb_extract_input input = {page->url, WB_SLICE_LIT("text/html"), WB_SLICE_EMPTY, page->body, wants};
    struct wb_extract extract;

    int err = wb_extract(b->extractor, &input, &extract);
    b->mix += extract.link_count + extract.text.len + extract.simhash;
    return err;
}

static int run_extract(struct bench *b, const struct wb_page *page)
{
    return extract_page(b, page, WB_EXTRACT_LINKS | WB_EXTRACT_TEXT);
}

static int run_all(struct bench *b, const struct wb_page *page)
{
    struct wb_page copy = *page;

    copy.digested = false;
    wb_page_digest(&copy);
    b->mix += (uint64_t)copy.md5[0] + copy.sha1[0];
    return extract_page(b, page, WB_EXTRACT_ALL);
}

static int run_gumbo(struct bench *b, const struct wb_page *page)
{
    GumboOutput *output = gumbo_parse_with_options(&kGumboDefaultOptions, page->body.ptr, page->body.len);

    b->mix += output->root != NULL;
    gumbo_destroy_output(&kGumboDefaultOptions, output);
    return 0;
}

static void count_start(void *context, const xmlChar *name, const xmlChar **attributes)
{
    struct bench *b = context;

    b->mix += (uint64_t)name[0] + (attributes != NULL);
}

static void count_text(void *context, const xmlChar *text, int len)
{
    struct bench *b = context;

    b->mix += (uint64_t)len + text[0];
}

static int run_libxml2(struct bench *b, const struct wb_page *page)
{
    htmlSAXHandler sax = {.startElement = count_start, .characters = count_text, .cdataBlock = count_text};
    htmlParserCtxtPtr parser =
        htmlCreatePushParserCtxt(&sax, b, page->body.ptr, (int)page->body.len, NULL, XML_CHAR_ENCODING_UTF8);

    if (!parser)
        return wb_fail_nomem();
    htmlParseChunk(parser, NULL, 0, 1);
    htmlFreeParserCtxt(parser);
    return 0;
}

static const struct {
    const char *kind;
    int (*run)(struct bench *b, const struct wb_page *page);
} kinds[] = {
    {"scan", run_scan}, {"tokens", run_tokens}, {"extract", run_extract},
    {"all", run_all},   {"gumbo", run_gumbo},   {"libxml2", run_libxml2},
};

/* ---- the corpus ------------------------------------------------------------------------------ */

static int bench_corpus(struct bench *b, const char *dir, const char *kind, size_t step)
{
    struct corpus corpus = CORPUS_INIT;
    double best = 0;
    uint64_t bytes = 0, pages = 0;
    size_t k = 0;

    while (k < sizeof kinds / sizeof *kinds && strcmp(kinds[k].kind, kind) != 0)
        k++;
    if (k == sizeof kinds / sizeof *kinds)
        return wb_fail(WB_E_INVALID, "no kind %s", kind);
    int err = corpus_load(dir, &corpus);
    for (int round = 0; err == 0 && round < ROUNDS; round++) {
        double start = bench_cpu_seconds();
        bytes = pages = 0;
        for (size_t i = 0; err == 0 && i < corpus.count; i += step) {
            err = kinds[k].run(b, &corpus.pages[i]);
            bytes += corpus.pages[i].body.len;
            pages++;
        }
        double seconds = bench_cpu_seconds() - start;
        best = best == 0 || seconds < best ? seconds : best;
    }
    if (err == 0)
        printf("{\"bench\":\"page\",\"kind\":\"%s\",\"pages\":%llu,\"bytes\":%llu,\"mb_s\":%.1f,\"pages_s\":%.0f}\n",
               kind, (unsigned long long)pages, (unsigned long long)bytes, (double)bytes / 1e6 / best,
               (double)pages / best);
    corpus_release(&corpus);
    return err;
}

/* ---- nasty inputs ---------------------------------------------------------------------------- */

static const struct {
    const char *name, *start, *piece;
} nasty[] = {
    {"<", "", "<"},
    {"<a", "", "<a "},
    {"</", "", "</"},
    {"<!--", "", "<!--"},
    {"<!-- -", "<!--", "-!"},
    {"<![CDATA[", "<svg>", "<![CDATA[]]>"},
    {"<?", "", "<?"},
    {"&", "", "&"},
    {"&amp", "", "&amp"},
    {"&#1", "", "&#1"},
    {"attributes", "<a ", "x"},
    {"attributes =", "<a ", "a=b "},
    {"same attributes", "<a ", "a a "},
    {"quotes", "<a a=\"", "'"},
    {"script", "<script>", "<!--<script>"},
    {"</script", "<script>", "</scrip"},
    {"title", "<title>", "</titl"},
    {"nesting", "", "<div>"},
    {"ends", "<nav>", "</div>"},
    {"formatting", "", "<b><i><a>"},
    {"svg", "", "<svg><desc>"},
    {"templates", "", "<template>"},
    {"links", "", "<a href=a>b"},
    {"long base", "<base href=/%LONG%>", "<a href=a>b"},
    {"srcset", "<img srcset='", "a,b "},
    {"blocks", "", "a<p>"},
    {"meta", "", "<meta name=robots content=a>"},
    {"blanks", "", " "},
    {"text", "", "word "},
    {"nuls", "<textarea>", "%NUL%"},
    {"names", "", "<div class='related comment a b c d e f g h'>a"},
    {"twins", "", "<div class=a><p>A sentence that is long enough to be one.</div>"},
    {"cells", "", "<table><tr><td>a<p>b"},
    {"headings", "<title>title</title>", "<div><h1>title</h1>a<h2>Related</h2>b"},
    {"classes", "", "<p class='a b'>c"},
};

/* Makes a document of about `bytes` bytes: start, then the piece over and over. */
static int make_nasty(size_t n, size_t bytes, struct wb_buf *page)
{
    char nul = '\0';
    const char *mark = strstr(nasty[n].start, "%LONG%");

    wb_buf_clear(page);
    int err = wb_buf_append(page, nasty[n].start, mark ? (size_t)(mark - nasty[n].start) : strlen(nasty[n].start));
    for (int i = 0; err == 0 && mark && i < 60000; i++)
        err = wb_buf_append_char(page, 'x');
    if (err == 0 && mark)
        err = wb_buf_append_str(page, mark + 6);
    for (unsigned n_links = 0; err == 0 && mark && page->len < bytes; n_links++)
        err = wb_buf_printf(page, "<a href=%u>b", n_links); /* all different */
    while (err == 0 && page->len < bytes)
        err = strcmp(nasty[n].piece, "%NUL%") == 0 ? wb_buf_append(page, &nul, 1)
                                                   : wb_buf_append_str(page, nasty[n].piece);
    return err;
}

static int time_nasty(struct bench *b, size_t n, size_t bytes, double *seconds_out)
{
    struct wb_buf body = WB_BUF_INIT;
    struct wb_page page = {.url = WB_SLICE_LIT("https://nasty.example/")};
    int err = make_nasty(n, bytes, &body);

    *seconds_out = 0;
    for (int round = 0; err == 0 && round < ROUNDS; round++) {
        page.body = wb_buf_slice(&body);
        double start = bench_cpu_seconds();
        err = extract_page(b, &page, WB_EXTRACT_LINKS | WB_EXTRACT_TEXT | WB_EXTRACT_SIMHASH);
        double seconds = bench_cpu_seconds() - start;
        *seconds_out = round == 0 || seconds < *seconds_out ? seconds : *seconds_out;
    }
    wb_buf_release(&body);
    return err;
}

static int bench_nasty(struct bench *b)
{
    const size_t bytes = (size_t)2 << 20;
    int err = 0;

    for (size_t n = 0; err == 0 && n < sizeof nasty / sizeof *nasty; n++) {
        double one = 0, four = 0;
        err = time_nasty(b, n, bytes, &one);
        if (err == 0)
            err = time_nasty(b, n, 4 * bytes, &four);
        if (err == 0)
            printf("{\"bench\":\"nasty\",\"name\":\"%s\",\"mb_s\":%.1f,\"times\":%.2f}\n", nasty[n].name,
                   4 * (double)bytes / 1e6 / four, four / one);
    }
    return err;
}

int main(int argc, char **argv)
{
    struct bench b = {NULL, NULL, 0};

    if (argc < 2 || (argc < 3 && strcmp(argv[1], "nasty") != 0)) {
        fprintf(stderr, "usage: bench_page CORPUS KIND [STEP] | bench_page nasty\n");
        return 2;
    }
    int err = wb_extractor_new(&b.extractor);
    b.tokenizer = wb_alloc(sizeof *b.tokenizer);
    if (err == 0 && !b.tokenizer)
        err = WB_E_NOMEM;
    if (err == 0)
        err = argc < 3 ? bench_nasty(&b)
                       : bench_corpus(&b, argv[1], argv[2], argc > 3 ? strtoul(argv[3], NULL, 10) : STEP);
    if (err < 0)
        fprintf(stderr, "bench_page: %s\n", wb_error_message());
    wb_extractor_free(b.extractor);
    wb_free(b.tokenizer);
    return err < 0 ? 1 : b.mix == 1; /* is never 1 */
}
