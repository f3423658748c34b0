/*
 * htmlnames.c - the vocabulary of class and id names, and of headings.
 *
 * A name is split into words at every character that is not a letter, and where a capital follows a
 * small letter: "sidebarLeft" and "sidebar-left" have the same words. It never decides about a page:
 * a word may be misleading on a given page, which htmldrop.c and htmlmain.c must find out.
 */
#include "extract/htmlnames.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/utf8.h"

#include <unicode/uchar.h>

/* ---- words ------------------------------------------------------------------------------- */

#define C WB_NAMES_COMMENT
#define A WB_NAMES_AROUND
#define S WB_NAMES_SMALL
#define N (WB_NAMES_AROUND | WB_NAMES_NEVER)

/* A '*' at the end stands for any continuation; at least four letters come before it. */
static const struct {
    const char *text;
    uint8_t means;
} words[] = {
    {"", 0}, /* number 0 is not used */

    /* written by readers */
    {"comment*", C}, {"comentari*", C}, {"comentario*", C}, {"commenti", C}, {"disqus*", C}, {"kommentar*", C},
    {"komentar*", C}, {"koment*", C}, {"pingback*", C}, {"reactie*", C}, {"respond", C}, {"shoutbox", C},
    {"trackback*", C}, {"yorum*", C},

    /* navigation */
    {"breadcrumb*", N}, {"crumbs", A}, {"flyout", A}, {"foot", A}, {"footer*", N}, {"fusszeile", N}, {"jumplink*", A},
    {"masthead*", A}, {"menu", A}, {"menus", A}, {"menubar", A}, {"nav", A}, {"navbar*", A}, {"navbox*", A},
    {"navi", A}, {"navigat*", A}, {"navigation*", A}, {"noprint", A}, {"pagebar", A}, {"pager", A}, {"paginat*", A},
    {"paging", A}, {"prevnext", A}, {"rodape", N}, {"sidebar*", A}, {"sidenav*", A}, {"seitenleiste", A},
    {"skiplink*", A}, {"tabbar", A}, {"toolbar*", A}, {"widget*", A},

    /* other pages */
    {"alsoread", A}, {"benzer", A}, {"breaking", A}, {"correlati", A}, {"gerelateerd", A}, {"morefrom*", A},
    {"mostpopular", A}, {"mostread", A}, {"outbrain*", N}, {"podobne", A}, {"popular*", A}, {"powiazane", A},
    {"readmore*", A}, {"readnext", A}, {"recent", A}, {"recentposts", A}, {"recirc*", A}, {"recommend*", A},
    {"related*", A}, {"relacionad*", A}, {"relaterad*", A}, {"relaterat", A}, {"similar", A}, {"taboola*", N},
    {"tagcloud*", A}, {"ticker*", A}, {"trending*", A}, {"verwandt*", A}, {"weiterlesen", A},

    /* things to click, buy or agree to */
    {"abonne*", N}, {"ad", N}, {"ads", N}, {"adv", N}, {"advert*", N}, {"adsense", N}, {"anzeige*", N}, {"banner*", A},
    {"bookmark*", A}, {"carousel*", A}, {"compartilh*", N}, {"compartir", N}, {"condividi", N}, {"consent*", N},
    {"cookie*", N}, {"copyright*", N}, {"cta", A}, {"dialog", A}, {"disclaimer*", A}, {"donat*", A}, {"dropdown*", A},
    {"facebook", A}, {"follow", A}, {"followus", A}, {"gdpr*", N}, {"instagram", A}, {"lightbox*", A}, {"login*", N},
    {"modal*", A}, {"newsletter*", N}, {"notification*", A}, {"overlay*", A}, {"partag*", N}, {"paylas*", N},
    {"pinterest", A}, {"playlist*", A}, {"popup*", A}, {"privacy", A}, {"promo*", A}, {"pubblicita*", N},
    {"publicid*", N}, {"publicite", N}, {"reklam*", N}, {"share*", N}, {"sharing", N}, {"signin", N}, {"signup*", N},
    {"social*", N}, {"sponsor*", N}, {"subscri*", N}, {"suscri*", N}, {"teilen", N}, {"toast*", A}, {"tooltip*", A},
    {"udostepnij", N}, {"werbung*", N}, {"whatsapp", A},

    /* facts about a text, not part of it */
    {"author*", S}, {"auteur", S}, {"autor*", S}, {"avatar*", S}, {"bio", A}, {"byline*", S}, {"caption*", S},
    {"category", S}, {"categories", S}, {"credit*", S}, {"date", S}, {"dateline*", S}, {"datum", S}, {"gallery", S},
    {"galeria", S}, {"meta", S}, {"metadata*", S}, {"permalink*", S}, {"postmeta", S}, {"pubdate*", S},
    {"published", S}, {"slideshow*", S}, {"tag", S}, {"tags", S}, {"taglist", S}, {"time", S}, {"timestamp*", S},
};
#define WORD_COUNT (sizeof words / sizeof *words)
_Static_assert(WORD_COUNT <= WB_NAMES_WORDS_MAX, "the number of a word is a byte");

#define KEY_LETTERS 4
#define WORD_MAX 24

/* The key of a word is its first four letters, as a number. */
static uint32_t key_of(const char *word, size_t len)
{
    char key[KEY_LETTERS] = {0};
    uint32_t number;

    memcpy(key, word, len < KEY_LETTERS ? len : KEY_LETTERS);
    memcpy(&number, key, sizeof number);
    return number;
}

static size_t slot_of(uint32_t key)
{
    return key * 0x9e3779b1u >> 22;
}

static void add_key(struct wb_names_slot slots[WB_NAMES_SLOTS], const char *text, size_t number)
{
    uint32_t key = key_of(text, strlen(text));
    size_t at = slot_of(key);

    while (slots[at].number)
        at = (at + 1) % WB_NAMES_SLOTS;
    slots[at] = (struct wb_names_slot){key, (uint16_t)number};
}

/* True if a word matches a pattern, whose '*' stands for any continuation. */
static bool matches(const char *pattern, const char *word, size_t len)
{
    size_t i = 0;

    while (i < len && pattern[i] == word[i])
        i++;
    return pattern[i] == '*' || (i == len && pattern[i] == '\0');
}

/* Words that are often written together with another word before them: "topnav", "leftsidebar". */
static unsigned ending_means(const char *word, size_t len)
{
    static const struct {
        struct wb_slice text;
        uint8_t means;
    } endings[] = {
        {WB_SLICE_LIT("comments"), C}, {WB_SLICE_LIT("footer"), A}, {WB_SLICE_LIT("menu"), A}, {WB_SLICE_LIT("nav"), A},
        {WB_SLICE_LIT("navbar"), A}, {WB_SLICE_LIT("sidebar"), A},
    };

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (len > endings[i].text.len && word[len - 1] == endings[i].text.ptr[endings[i].text.len - 1] &&
            memcmp(word + len - endings[i].text.len, endings[i].text.ptr, endings[i].text.len) == 0)
            return endings[i].means;
    return 0;
}

/* What a word means; *around becomes the number of the first word that means WB_NAMES_AROUND. */
static unsigned look_up(const struct wb_names_index *index, const char *word, size_t len, uint8_t *around)
{
    uint32_t key = key_of(word, len);
    unsigned means = 0;

    for (size_t at = slot_of(key); index->words[at].number; at = (at + 1) % WB_NAMES_SLOTS) {
        uint16_t number = index->words[at].number;
        if (index->words[at].key != key || !matches(words[number].text, word, len))
            continue;
        means |= words[number].means;
        if (words[number].means & A && *around == 0)
            *around = (uint8_t)number;
    }
    return means ? means : ending_means(word, len);
}

/* True for the classes that hide an element. The whole class must match: "label-hidden" hides nothing. */
static bool hides(struct wb_slice token)
{
    static const struct wb_slice tokens[] = {
        WB_SLICE_LIT("d-none"), WB_SLICE_LIT("element-invisible"), WB_SLICE_LIT("hidden"), WB_SLICE_LIT("hide"),
        WB_SLICE_LIT("invisible"), WB_SLICE_LIT("is-hidden"), WB_SLICE_LIT("offscreen"),
        WB_SLICE_LIT("screen-reader-text"), WB_SLICE_LIT("sr-only"), WB_SLICE_LIT("u-hidden"),
        WB_SLICE_LIT("visually-hidden"), WB_SLICE_LIT("visuallyhidden"),
    };

    if (token.len < 4 || !strchr("dehiosuv", *token.ptr))
        return false;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        if (token.len == tokens[i].len && memcmp(token.ptr, tokens[i].ptr, token.len) == 0)
            return true;
    return false;
}

/* "tag-news" and "category-news" say what an article is about, not what it is. */
static bool is_topic(struct wb_slice token)
{
    return wb_slice_starts(token, WB_SLICE_LIT("tag-")) || wb_slice_starts(token, WB_SLICE_LIT("category-"));
}

/* What the words of one class or id mean together. */
static unsigned token_means(const struct wb_names_index *index, struct wb_slice token, uint8_t *around)
{
    char word[WORD_MAX];
    size_t n = 0;
    unsigned means = hides(token) ? WB_NAMES_HIDDEN : 0;

    if (is_topic(token))
        return means;
    for (size_t i = 0; i <= token.len; i++) {
        char c = i < token.len ? token.ptr[i] : '-';
        bool small = c >= 'a' && c <= 'z', capital = c >= 'A' && c <= 'Z';
        bool ends = !(small || capital) || (capital && i > 0 && token.ptr[i - 1] >= 'a' && token.ptr[i - 1] <= 'z');
        if (n > 1 && ends)
            means |= look_up(index, word, n, around);
        if (ends)
            n = 0;
        if ((small || capital) && n < WORD_MAX)
            word[n++] = (char)(c | 0x20);
    }
    return means;
}

static struct wb_names read_name(const struct wb_names_index *index, struct wb_slice name)
{
    struct wb_names names = {0, 0};

    for (size_t i = 0; i < name.len; i++) {
        size_t from = i;
        while (i < name.len && !wb_ascii_is_space(name.ptr[i]))
            i++;
        if (i > from)
            names.means |= (uint8_t)token_means(index, wb_slice(name.ptr + from, i - from), &names.around);
    }
    return names;
}

struct wb_names wb_names_of(struct wb_names_index *index, struct wb_slice name)
{
    uint64_t hash = wb_hash64(name.ptr, name.len);
    struct wb_names_seen *seen = &index->seen[hash % WB_NAMES_SEEN];

    if (seen->hash != hash)
        *seen = (struct wb_names_seen){hash, read_name(index, name)};
    return seen->names;
}

/* ---- headings ---------------------------------------------------------------------------- */

/* How headings begin or, after a '=', the whole heading; with folded case. */
static const struct {
    const char *text;
    uint8_t means;
} heads[] = {
    /* English */
    {"=related", A}, {"related articles", A}, {"related stories", A}, {"related posts", A}, {"related content", A},
    {"related news", A}, {"related coverage", A}, {"related topics", A}, {"related links", A}, {"related products", A},
    {"related items", A}, {"related reading", A}, {"related questions", A}, {"related searches", A},
    {"related videos", A}, {"=recommended", A}, {"recommended for", A}, {"recommended stories", A},
    {"recommended articles", A}, {"recommended reading", A}, {"recommended posts", A}, {"recommended videos", A},
    {"more from", A}, {"more on this", A}, {"more stories", A}, {"more news", A}, {"more articles", A},
    {"also read", A}, {"read also", A}, {"read next", A}, {"=read more", A}, {"you may also", A}, {"you might also", A},
    {"you may like", A}, {"you might like", A}, {"up next", A}, {"next up", A}, {"=trending", A}, {"trending now", A},
    {"trending news", A}, {"trending stories", A}, {"most popular", A}, {"most read", A}, {"most viewed", A},
    {"popular posts", A}, {"popular articles", A}, {"popular now", A}, {"latest news", A}, {"latest stories", A},
    {"latest posts", A}, {"latest articles", A}, {"recent posts", A}, {"recent articles", A}, {"share this", A},
    {"about the author", A}, {"sign up for", A}, {"subscribe to our", A}, {"subscribe now", A}, {"=newsletter", A},
    {"follow us", A}, {"don't miss", A}, {"don’t miss", A}, {"=advertisement", A}, {"=sponsored", A},
    {"sponsored content", A}, {"customers who", A}, {"customers also", A}, {"from around the web", A},
    {"promoted stories", A}, {"similar articles", A}, {"similar posts", A}, {"similar products", A},
    {"recent comments", C}, {"leave a comment", C}, {"leave a reply", C}, {"post a comment", C}, {"add a comment", C},
    {"join the conversation", C}, {"join the discussion", C},

    /* German */
    {"mehr zum thema", A}, {"mehr aus", A}, {"das könnte sie", A}, {"das könnte dich", A}, {"ähnliche artikel", A},
    {"ähnliche beiträge", A}, {"verwandte artikel", A}, {"verwandte beiträge", A}, {"verwandte themen", A},
    {"lesen sie auch", A}, {"auch interessant", A}, {"meistgelesen", A}, {"weitere artikel", A},
    {"schreibe einen kommentar", C},

    /* French */
    {"à lire aussi", A}, {"lire aussi", A}, {"articles liés", A}, {"articles similaires", A},
    {"sur le même sujet", A}, {"les plus lus", A}, {"vous aimerez aussi", A}, {"laisser un commentaire", C},

    /* Spanish */
    {"artículos relacionados", A}, {"noticias relacionadas", A}, {"entradas relacionadas", A},
    {"te puede interesar", A}, {"te podría interesar", A}, {"también te puede", A}, {"lo más leído", A},
    {"lo más visto", A}, {"más leídas", A}, {"lee también", A}, {"deja un comentario", C},
    {"deja una respuesta", C},

    /* Portuguese */
    {"artigos relacionados", A}, {"notícias relacionadas", A}, {"posts relacionados", A}, {"leia também", A},
    {"leia mais", A}, {"veja também", A}, {"você pode gostar", A}, {"você também pode", A}, {"mais lidas", A},
    {"deixe um comentário", C}, {"deixe uma resposta", C},

    /* Italian */
    {"articoli correlati", A}, {"leggi anche", A}, {"ti potrebbe", A}, {"potrebbe interessarti", A},
    {"potrebbero interessarti", A}, {"i più letti", A}, {"lascia un commento", C},

    /* Dutch, Scandinavian languages, Polish, Czech, Hungarian, Turkish */
    {"lees ook", A}, {"gerelateerde", A}, {"meest gelezen", A}, {"läs också", A}, {"mest läst", A},
    {"læs også", A}, {"les også", A}, {"mest læst", A}, {"lue myös", A}, {"czytaj także", A}, {"czytaj też", A},
    {"zobacz także", A}, {"podobne artykuły", A}, {"související", A}, {"kapcsolódó cikk", A},
    {"ilgili haberler", A},

    /* Russian, Ukrainian, Greek */
    {"читайте также", A}, {"читать также", A}, {"похожие статьи", A},
    {"похожие материалы", A}, {"похожие новости", A},
    {"самые популярные", A}, {"популярные статьи", A}, {"популярное", A},
    {"рекомендуем", A}, {"читайте також", A}, {"διαβάστε επίσης", A},
    {"σχετικά άρθρα", A}, {"оставить комментарий", C},
    {"добавить комментарий", C},

    /* Japanese, Chinese, Korean, Arabic */
    {"関連記事", A}, {"おすすめ記事", A}, {"人気記事", A}, {"相关文章", A}, {"相关阅读", A},
    {"相关新闻", A}, {"相關文章", A}, {"相關新聞", A}, {"推荐阅读", A}, {"推薦閱讀", A},
    {"热门文章", A}, {"猜你喜欢", A}, {"관련기사", A}, {"관련 기사", A}, {"많이 본", A},
    {"اقرأ أيضا", A}, {"مواضيع ذات صلة", A}, {"כתבות נוספות", A},
};

/* A longer heading is a sentence that happens to begin like one of these. */
#define HEAD_MAX 64

/* Folds the case of as much text as fits; returns its length. */
static size_t fold_text(struct wb_slice text, char folded_out[HEAD_MAX + 4])
{
    size_t n = 0;

    for (size_t i = 0; i < text.len && n < HEAD_MAX;) {
        size_t len = wb_utf8_length(text.ptr + i, text.len - i);
        if (len == 0)
            break;
        uint32_t cp = wb_utf8_decode(text.ptr + i, len);
        i += len;
        n += wb_utf8_encode((uint32_t)u_foldCase((UChar32)cp, U_FOLD_CASE_DEFAULT), folded_out + n);
    }
    return n;
}

/* Compares only the first letters, which is enough to reject most headings. */
static bool may_be_head(const struct wb_names_index *index, const char *text)
{
    char letters[KEY_LETTERS];

    for (size_t i = 0; i < KEY_LETTERS; i++) {
        if ((uint8_t)text[i] >= 0x80)
            return true;
        letters[i] = wb_ascii_lower(text[i]);
    }
    uint32_t key = key_of(letters, KEY_LETTERS);
    for (size_t at = slot_of(key); index->heads[at].number; at = (at + 1) % WB_NAMES_SLOTS)
        if (index->heads[at].key == key)
            return true;
    return false;
}

static bool is_head(const char *head, struct wb_slice text)
{
    return *head == '=' ? wb_slice_equal(text, wb_slice_str(head + 1)) : wb_slice_starts(text, wb_slice_str(head));
}

unsigned wb_names_of_heading(const struct wb_names_index *index, struct wb_slice text)
{
    char folded[HEAD_MAX + 4];

    text = wb_slice_trim(text);
    if (text.len < KEY_LETTERS || text.len > HEAD_MAX || !may_be_head(index, text.ptr))
        return 0;
    struct wb_slice head = wb_slice(folded, fold_text(text, folded));
    uint32_t key = key_of(head.ptr, head.len);
    for (size_t at = slot_of(key); index->heads[at].number; at = (at + 1) % WB_NAMES_SLOTS)
        if (index->heads[at].key == key && is_head(heads[index->heads[at].number - 1].text, head))
            return heads[index->heads[at].number - 1].means;
    return 0;
}

/* ---- the index -------------------------------------------------------------------------- */

void wb_names_index_init(struct wb_names_index *index)
{
    memset(index, 0, sizeof *index);
    for (size_t i = 1; i < WORD_COUNT; i++) {
        const char *star = strchr(words[i].text, '*');
        WB_CHECK(!star || star - words[i].text >= KEY_LETTERS);
        add_key(index->words, words[i].text, i);
    }
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const char *text = heads[i].text + (*heads[i].text == '=');
        WB_CHECK(strlen(text) >= KEY_LETTERS);
        add_key(index->heads, text, i + 1);
    }
}
