/*
 * test_htmlmain.c - finding the main text of small pages of many kinds.
 *
 * A case lists words that the main text must contain and words that it must not contain; each of them
 * occurs in one text only. Real articles are in tests/e2e/main_text.py.
 */
#include "base/buf.h"
#include "extract_support.h"

/* Two sentences of a paragraph. */
#define S "The committee met on Tuesday to discuss the new proposal, which had been sent to every member a week before."
#define T "Nobody expected that the vote would be so close, but in the end the measure passed by a single voice."

#define NAV                                                                                                         \
    "<div id=top><ul><li><a href=/a>NAV Politics</a><li><a href=/b>Sports</a><li><a href=/c>Culture</a>"            \
    "<li><a href=/d>Weather</a><li><a href=/e>Opinion</a></ul></div>"
#define FOOT "<div id=bottom><p>FOOT All rights reserved, in all countries.</p><a href=/i>Imprint</a></div>"

static void see_bytes(struct wb_slice body)
{
    see_page("text/html", "utf-8", body, WB_EXTRACT_LINKS | WB_EXTRACT_TEXT);
}

struct page_case {
    const char *html;
    const char *kept, *left_out; /* words, separated by blanks */
};

static void check_words(const char *html, const char *words, bool wanted)
{
    char word[32];
    int used = 0;

    for (; sscanf(words, "%31s%n", word, &used) == 1; words += used) {
        if (!memmem(page.text.ptr, page.text.len, word, strlen(word)))
            fail_msg("%s is not in the text of %s", word, html);
        if ((memmem(page.main_text.ptr, page.main_text.len, word, strlen(word)) != NULL) != wanted)
            fail_msg("%s is %sin the main text of %s\nwhich is '%.*s'", word, wanted ? "not " : "", html,
                     WB_SLICE_ARG(page.main_text));
    }
}

static void check_cases(const struct page_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        see_bytes(wb_slice_str(cases[i].html));
        check_words(cases[i].html, cases[i].kept, true);
        check_words(cases[i].html, cases[i].left_out, false);
    }
}
#define CHECK_CASES(cases) check_cases(cases, sizeof(cases) / sizeof *(cases))

/* ---- articles ---------------------------------------------------------------------------- */

static void articles(void **state)
{
    static const struct page_case cases[] = {
        {NAV "<div class=x><p>ONE " S "</p><p>TWO " T "</p></div>" FOOT, "ONE TWO", "NAV FOOT"},
        /* the comments of readers are longer than the article */
        {"<div id=content><p>ONE " S S
         "</p></div><div id=comments class=comments-area><ol class=comment-list><li><div class=comment-body><p>AAA " S S
         "</p></div><li><div class=comment-body><p>BBB " T T "</p></div></ol></div>",
         "ONE", "AAA BBB"},
        /* related items after the article, by name and by heading, in several languages */
        {"<div class=b><p>ONE " S "</p><p>TWO " T "</p></div><div class=related-posts><p>AAA " S "</p></div>",
         "ONE TWO", "AAA"},
        {"<div class=b><p>ONE " S "</p><p>TWO " T "</p></div><div><h3>Read next</h3><p>AAA " S "</p></div>", "ONE TWO",
         "AAA"},
        {"<div class=b><p>ONE " S "</p><p>TWO " T "</p></div><div><h3>VOCÊ pode gostar...</h3><p>AAA " S "</p></div>",
         "ONE TWO", "AAA"},
        {"<div class=b><p>ONE " S "</p><p>TWO " T "</p></div><div><h3>Самые популярные</h3><p>AAA " S "</p></div>",
         "ONE TWO", "AAA"},
        {"<div class=b><p>ONE " S "</p><p>TWO " T "</p></div><div><h3>相关文章</h3><p>AAA " S "</p></div>", "ONE TWO",
         "AAA"},
        /* the text is spread over many elements, with something between them */
        {"<div class=story><div class=col><p>ONE " S "</p></div><div class=x>AAA</div><div class=col><p>TWO " T
         "</p></div><div class=col><p>SIX " S "</p></div></div>" FOOT,
         "ONE TWO SIX", "FOOT"},
        /* author, date, captions, buttons */
        {"<title>Big news - Site</title><article><h1>Big news</h1><div class=byline>AAA Jane Doe</div><figure><img "
         "src=i><figcaption>BBB a house in the "
         "town of New York, seen from above.</figcaption></figure><p>ONE " S "</p><div>CCC</div><p>TWO " T
         "</p><div>DDD</div></article>",
         "ONE TWO", "AAA BBB CCC DDD Big"},
        {"<div class=b><p>ONE " S "</p><p><a href=x>AAA another text to read</a></p><p>TWO " T "</p></div>", "ONE TWO",
         "AAA"},
        /* not shown */
        {"<div class=b><p>ONE " S "</p><div hidden><p>AAA " T
         "</p></div><div style='color:red; display: none'><p>BBB " T "</p></div><div class='x sr-only'><p>CCC " T
         "</p></div><div aria-hidden=true><p>DDD " T "</p></div><p>TWO " T "</p></div><p>SIX " S,
         "ONE TWO", "AAA BBB CCC DDD"},
        /* cookies first, and longer than the text */
        {"<div class=cc role=dialog><p>AAA " S T S "</p></div><div class=cookie-banner><p>BBB " S T S
         "</p></div><div><p>ONE " S "</p></div>",
         "ONE", "AAA BBB"},
        /* a heading with nothing below it is dropped, others are kept */
        {"<div><h2>ONE</h2><p>" S "</p><h2>AAA</h2><ul><li><a href=a>x</a></ul><h2>TWO</h2><h3>SIX</h3><p>" T
         "</p></div>",
         "ONE TWO SIX", "AAA"},
        {"<p>ONE " S "<div itemprop=articleBody><p>TWO " T "</p><p>SIX " S "</p></div>", "TWO SIX", "ONE"},
    };

    (void)state;
    CHECK_CASES(cases);
}

/* ---- other kinds ------------------------------------------------------------------------- */

static void forums(void **state)
{
    static const struct page_case cases[] = {
        {NAV "<div class='post bg1'><p class=author>by joe on Mon</p><div class=content>ONE my pump makes noise since "
             "I replaced the seal.</div></div>"
             "<div class='post bg2'><p class=author>by ann on Tue</p><div class=content>TWO take it apart and look at "
             "the left bearing.</div></div>"
             "<div class='post bg1'><p class=author>by joe on Wed</p><div class=content>SIX that was it, thank you "
             "very much for your help!</div></div>",
         "ONE TWO SIX", "NAV"},
        {"<div id=mainbar><div class=question><div class=prose><p>ONE how do I sort a list of numbers in "
         "place?</p><pre><code>int a[] = {3, 1, 2};"
         "</code></pre></div><div class=comments><ul><li>AAA have you read the manual page of qsort? It is "
         "clear.</ul></div></div><div class=answers>"
         "<div class=answer><div class=prose><p>TWO use qsort with a comparison function of your "
         "own.</p><pre><code>qsort(a, 3, sizeof *a, cmp);"
         "</code></pre></div></div><div class=answer><div class=prose><p>SIX insertion sort is fast where lists are "
         "short.</p></div></div></div></div>"
         "<div id=sidebar><h4>Related</h4><a href=a>BBB other question</a></div>",
         "ONE TWO SIX int qsort(a,", "AAA BBB"},
        /* if there is nothing but comments, they are the content */
        {"<table class=comment-tree><tr><td><div class=comment>ONE I think that this is a good idea, but it needs more "
         "work.</div><tr><td>"
         "<div class=comment>TWO I do not think that it can ever be done at all.</div></table>",
         "ONE TWO", ""},
    };

    (void)state;
    CHECK_CASES(cases);
}

static void references(void **state)
{
    static const struct page_case cases[] = {
        /* sections are named after their topics */
        {"<div role=main><section id=intro><h1>Lexical analysis</h1><p>ONE A program is read by a parser, as a stream "
         "of tokens.</p><section id=comments>"
         "<h2>Comments</h2><p>TWO A comment starts with a hash and ends at the end of the line.</p><div "
         "class=highlight><pre>SIX = 1 # comment</pre></div>"
         "</section><div class=section id=related-tokens><h2>Tokens</h2><p>TEN The share of tokens that follow is in "
         "the table.</p><table><tr><td>CELL<td>"
         "ROW</table></div></section></div><div class=sphinxsidebar><p>AAA This is a sidebar with a sentence in "
         "it.</p></div>",
         "ONE TWO SIX TEN CELL ROW", "AAA"},
        {"<nav>AAA</nav><main><h1>Client</h1><section class=method id=share><h3>share</h3><p>ONE Shares "
         "it.</p></section><section class=method "
         "id='follow(x)'><h3>follow</h3><p>TWO Follows it.</p></section><section id=subscribe><h3>subscribe</h3><p>SIX "
         "Subscribes.</p></section></main>",
         "ONE TWO SIX", "AAA"},
        {"<title>Glossary</title>" NAV
         "<div><dl><dt>ONE<dd>a short meaning<dt>TWO<dd>another one<dt>SIX<dd>a third<dt>TEN<dd>a fourth</dl></div>",
         "ONE TWO SIX TEN", "NAV"},
        {"<main><p>ONE " S "</p><figure><pre>TWO code</pre><figcaption>AAA Listing "
                           "1</figcaption></figure><table><tr><th>SIX<td>1.2 kg</table></main>",
         "ONE TWO SIX", "AAA"},
        /* an encyclopedia */
        {"<div id=content class=mw-body role=main><h1>Ox</h1><div class=mw-parser-output><table "
         "class=infobox><tr><th>Kingdom<td>ONE Animalia</table>"
         "<p>TWO An ox is a <a href=a>male</a> <a href=b>bovine</a> that was trained as a <a href=c>draft "
         "animal</a>.</p><h2>Breeds</h2><p>SIX " S T
         "</p><ul><li><a href=d>Ankole</a> TEN from Africa</ul><div class=navbox><a href=x>AAA cattle</a> "
         "list</div></div></div><div id=footer><p>BBB Text "
         "is available under a free license; other terms may apply.</p></div>",
         "ONE TWO SIX TEN", "AAA BBB"},
    };

    (void)state;
    CHECK_CASES(cases);
}

static void lists(void **state)
{
    static const struct page_case cases[] = {
        {NAV "<div><div class=teaser><h3><a href=a>ONE</a></h3><p>TWO " S
             "</p></div><div class=teaser><h3><a href=b>SIX</a></h3><p>TEN " T
             "</p></div><div class=teaser><h3><a href=c>OLD</a></h3><p>NEW " S "</p></div></div>",
         "ONE TWO SIX TEN OLD NEW", "NAV"},
        /* a word that names most of the page has another meaning here */
        {NAV "<div id=promo-list><div class=promo><p>ONE " S "</p></div><div class=promo><p>TWO " T
             "</p></div><div class=promo><p>SIX " S "</p></div></div>",
         "ONE TWO SIX", "NAV"},
        {"<div class='has-sidebar widget'><div class=sidebar><p>AAA " S "</p></div><div class=widget-inner><p>ONE " S
         "</p><p>TWO " T "</p></div></div>",
         "ONE TWO", "AAA"},
        /* a shop */
        {NAV "<div class=product><h1>Kettle</h1><div class=description><p>ONE The kettle boils a litre of water in "
             "less than three minutes. " T "</p><ul><li>TWO Stainless steel<li>SIX 1.7 litres</ul></div><table "
                                           "class=specs><tr><th>Weight<td>TEN 1.2 kg</table></div>"
             "<div class=related-products><h3>Customers also bought</h3><a href=t>AAA Toaster</a> only 29.99</div>",
         "ONE TWO SIX TEN", "NAV AAA"},
        /* lists and tables, with a sentence at the foot */
        {NAV "<div><h1>Engineer</h1><h2>Tasks</h2><ul><li>ONE Build things that last<li>TWO Review "
             "code</ul><h2>You</h2><ul><li>SIX C and SQL</ul>"
             "<p>TEN Send us your documents by email, we answer soon.</div>" FOOT,
         "ONE TWO SIX TEN", "NAV"},
        {NAV "<div><h1>Sizes</h1><table><tr><td>ONE<td>10 mm</tr><tr><td>TWO<td>20 mm</tr><tr><td>SIX<td>30 "
             "mm</tr><tr><td>TEN<td>40 mm</tr>"
             "<tr><td>Eleven<td>50 mm</tr><tr><td>Twelve<td>60 mm</tr></table></div>" FOOT,
         "ONE TWO SIX TEN", "NAV"},
        /* nothing but links */
        {"<title>Index</title><h1>Index</h1><ul><li><a href=a>ONE</a><li><a href=b>TWO</a><li><a href=c>SIX</a></ul>",
         "ONE TWO SIX", ""},
    };

    (void)state;
    CHECK_CASES(cases);
}

static void plain_pages(void **state)
{
    static const struct page_case cases[] = {
        /* tables for layout */
        {"<table width=100%><tr><td width=150><a href=a>AAA</a><br><a href=b>News</a><td><b>Welcome</b><br><br>ONE " S
         "<br><br>TWO " T "<p>SIX " S "<td>BBB<br><a href=c>Buy</a></table>",
         "ONE TWO SIX", "AAA BBB"},
        {"ONE " S "<br><br>TWO " T "<hr><a href=a>AAA</a>", "ONE TWO", "AAA"},
        {NAV "<div>"
             "<div>ONE " S "</div><div>TWO " T "</div><div>SIX " S "</div></div>",
         "ONE TWO SIX", "NAV"},
        {NAV "<div>ONE roses are red<br>TWO violets are blue<br>SIX sugar is sweet<br>TEN and so are you</div>",
         "ONE TWO SIX TEN", "NAV"},
        {"<form id=aspnetForm><div class=nav-wrapper>" NAV "</div><div><p>ONE " S "</p><p>TWO " T "</p></div></form>",
         "ONE TWO", "NAV"},
        {NAV "<div><p>ONE "
             "北京时间周二，委员会召开会议，讨论了一周前送交每位成员的新提案，没有人预料到投票结果会如此接近。</"
             "p><p>TWO 最终该措施以一票之差获得通过。</p>"
             "</div>",
         "ONE TWO", "NAV"},
        {NAV "<div><p>ONE اجتمعت اللجنة يوم الثلاثاء لمناقشة الاقتراح الجديد الذي أرسل إلى كل عضو قبل أسبوع.</p><p>TWO "
             "لم يتوقع أحد أن يكون التصويت متقاربا إلى هذا "
             "الحد.</p></div>",
         "ONE TWO", "NAV"},
        /* everything is in the wrong place: better than nothing */
        {"<nav><p>ONE " S "</nav>", "ONE", ""},
        {"<div hidden><p>ONE " S "</div>", "ONE", ""},
        {"<header>ONE</header>", "ONE", ""},
        {"<p>ONE", "ONE", ""},
    };

    (void)state;
    CHECK_CASES(cases);
}

/* ---- hostile pages ----------------------------------------------------------------------- */

/* Many elements, blocks, headings and names. Only what exceeds a limit is lost. */
static void bounded(void **state)
{
    static const char *const pieces[] = {
        "<div class='comment related'>",
        "<div><p>" S "</p></div>",
        "<td>a",
        "<table><tr><td>a<p>b",
        "<h1>title</h1>",
        "<div><h3>Related</h3>a",
        "<p class='a b c related'>a",
        "<article>a",
        "<main>" S,
        "<div id=comments>" S "</div>",
        "<div style='display:none'>a",
        "<figure><p>" S,
        "</div></td>",
        "<section class=x><p>" S "</section>",
    };
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        wb_buf_clear(&html);
        assert_int_equal(wb_buf_append_str(&html, "<title>title</title>"), 0);
        for (int n = 0; n < 70000; n++)
            assert_int_equal(wb_buf_append_str(&html, pieces[i]), 0);
        assert_int_equal(wb_buf_append_str(&html, "<p>" T), 0);
        see_bytes(wb_buf_slice(&html));
        assert_true(page.text.len > 0 && page.main_text.len > 0 && page.main_text.len <= page.text.len);
    }
    wb_buf_release(&html);
}

/* ---- links ----------------------------------------------------------------------------------- */

#define ITEM "<li><a href=/x>An entry of the index</a>, 12"

/* How much of the text is links; what certainly is not content does not count. */
static void share_of_links(void **state)
{
    static const struct {
        const char *html;
        unsigned least, most;
    } cases[] = {
        {"<p>" S "</p><p>" T "</p>", 0, 0},
        {"<p>" S "</p><p>" T " <a href=/y>" S "</a></p>", 30, 40},
        {"<ul>" ITEM ITEM ITEM ITEM ITEM ITEM "</ul>", 70, 95},
        {"<ul><li><a href=/x>One</a><li><a href=/y>Two</a></ul>", 100, 100},
        {"<nav><a href=/a>Politics</a> <a href=/b>Sports of all kinds, and more</a></nav><main><p>" S "</p><p>" T
         "</p></main>", 0, 0},
        {"", 0, 0},
        {"<a href=/x></a>", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        see_bytes(wb_slice_str(cases[i].html));
        if (page.linked < cases[i].least || page.linked > cases[i].most)
            fail_msg("%u percent of %s are links", page.linked, cases[i].html);
    }
    see_page("text/plain", "utf-8", WB_SLICE_LIT("http://example.org/"), WB_EXTRACT_TEXT);
    assert_int_equal(page.linked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(articles), cmocka_unit_test(forums), cmocka_unit_test(references), cmocka_unit_test(lists),
        cmocka_unit_test(plain_pages), cmocka_unit_test(bounded),  cmocka_unit_test(share_of_links),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
