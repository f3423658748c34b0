/*
 * prose.c - makes sentences from a list of words ordered by how common they are, mixed with
 * made-up words that only one page uses.
 *
 * A language detector sees English, but the fingerprints of two pages differ. It knows nothing
 * about pages.
 */
#include "sim/prose.h"

#define WORD(text) {text, sizeof text - 1}

static const struct wb_slice words[] = {
    WORD("the"),      WORD("of"),        WORD("and"),     WORD("to"),        WORD("in"),      WORD("a"),
    WORD("is"),       WORD("that"),      WORD("for"),     WORD("it"),        WORD("was"),     WORD("on"),
    WORD("with"),     WORD("as"),        WORD("are"),     WORD("by"),        WORD("this"),    WORD("be"),
    WORD("from"),     WORD("at"),        WORD("which"),   WORD("or"),        WORD("have"),    WORD("not"),
    WORD("an"),       WORD("they"),      WORD("but"),     WORD("were"),      WORD("their"),   WORD("one"),
    WORD("all"),      WORD("there"),     WORD("when"),    WORD("more"),      WORD("can"),     WORD("has"),
    WORD("who"),      WORD("other"),     WORD("some"),    WORD("what"),      WORD("would"),   WORD("about"),
    WORD("into"),     WORD("these"),     WORD("than"),    WORD("only"),      WORD("its"),     WORD("time"),
    WORD("after"),    WORD("new"),       WORD("first"),   WORD("most"),      WORD("people"),  WORD("many"),
    WORD("may"),      WORD("between"),   WORD("years"),   WORD("over"),      WORD("through"), WORD("well"),
    WORD("where"),    WORD("work"),      WORD("under"),   WORD("often"),     WORD("because"), WORD("since"),
    WORD("each"),     WORD("long"),      WORD("while"),   WORD("small"),     WORD("found"),   WORD("made"),
    WORD("water"),    WORD("however"),   WORD("still"),   WORD("without"),   WORD("place"),   WORD("another"),
    WORD("large"),    WORD("against"),   WORD("during"),  WORD("before"),    WORD("known"),   WORD("house"),
    WORD("number"),   WORD("around"),    WORD("called"),  WORD("country"),   WORD("every"),   WORD("own"),
    WORD("part"),     WORD("day"),       WORD("early"),   WORD("used"),      WORD("several"), WORD("later"),
    WORD("old"),      WORD("important"), WORD("along"),   WORD("different"), WORD("given"),   WORD("upon"),
    WORD("few"),      WORD("little"),    WORD("world"),   WORD("almost"),    WORD("built"),   WORD("city"),
    WORD("never"),    WORD("better"),    WORD("morning"), WORD("half"),      WORD("written"), WORD("always"),
    WORD("together"), WORD("certain"),   WORD("public"),  WORD("open"),
};

static const struct wb_slice nouns[] = {
    WORD("river"),    WORD("harbour"), WORD("garden"),  WORD("letter"),   WORD("engine"),   WORD("window"),
    WORD("market"),   WORD("bridge"),  WORD("winter"),  WORD("copper"),   WORD("island"),   WORD("library"),
    WORD("orchard"),  WORD("railway"), WORD("teacher"), WORD("village"),  WORD("weather"),  WORD("kitchen"),
    WORD("journey"),  WORD("machine"), WORD("painter"), WORD("forest"),   WORD("station"),  WORD("meadow"),
    WORD("lantern"),  WORD("compass"), WORD("silver"),  WORD("thunder"),  WORD("archive"),  WORD("pottery"),
    WORD("history"),  WORD("council"), WORD("mineral"), WORD("textile"),  WORD("concert"),  WORD("glacier"),
    WORD("sparrow"),  WORD("pepper"),  WORD("cotton"),  WORD("theatre"),  WORD("physics"),  WORD("grammar"),
    WORD("sailor"),   WORD("temple"),  WORD("factory"), WORD("canyon"),   WORD("festival"), WORD("museum"),
    WORD("printing"), WORD("granite"), WORD("harvest"), WORD("insect"),   WORD("journal"),  WORD("kettle"),
    WORD("ladder"),   WORD("magnet"),  WORD("needle"),  WORD("ocean"),    WORD("pigment"),  WORD("quarry"),
    WORD("rocket"),   WORD("saddle"),  WORD("timber"),  WORD("valley"),   WORD("workshop"), WORD("yarn"),
    WORD("zinc"),     WORD("anchor"),  WORD("beacon"),  WORD("cabinet"),  WORD("dialect"),  WORD("estuary"),
    WORD("furnace"),  WORD("gallery"), WORD("hammer"),  WORD("ivory"),    WORD("jacket"),   WORD("kernel"),
    WORD("lagoon"),   WORD("mirror"),  WORD("nectar"),  WORD("oyster"),   WORD("parcel"),   WORD("quartz"),
    WORD("reptile"),  WORD("signal"),  WORD("tunnel"),  WORD("umbrella"), WORD("violin"),   WORD("walnut"),
    WORD("youth"),    WORD("almanac"), WORD("bakery"),  WORD("cargo"),    WORD("desert"),   WORD("echo"),
    WORD("fable"),    WORD("glove"),
};

static const char syllables[][4] = {"ba", "ce", "di", "fo", "gu",  "ha",  "je",  "ki",  "lo",  "mu",  "na",
                                    "pe", "qui", "ro", "su", "ta",  "ve",  "wi",  "xo",  "zu",  "bra", "cle",
                                    "dri", "flo", "gru", "sta", "tre", "pli", "sno", "thu", "ran", "mel"};

static const struct wb_slice japanese[] = {
    WORD("この町には古い図書館があります。"),
    WORD("昨日は雨が降りました。"),
    WORD("新しい駅は来年の春に開きます。"),
    WORD("川のそばに小さな市場があります。"),
    WORD("彼は毎朝、海まで歩きます。"),
    WORD("この本は百年前に書かれました。"),
    WORD("山の上から島が見えます。"),
    WORD("子供たちは公園で遊んでいます。"),
    WORD("博物館の入り口は北側です。"),
    WORD("詳しいことは次のページをご覧ください。"),
    WORD("工場では銅と錫を使っていました。"),
    WORD("祭りは夏の終わりに行われます。"),
};

#define COUNT(table) ((uint32_t)(sizeof(table) / sizeof *(table)))

/* The lower-case word with this number; the smaller the number, the more common the word. */
static struct wb_slice common_word(uint32_t number)
{
    return words[number % COUNT(words)];
}

struct wb_slice wb_prose_noun(uint32_t number)
{
    return nouns[number % COUNT(nouns)];
}

static void put_capital(struct wb_pen *pen, struct wb_slice word)
{
    wb_pen_char(pen, (char)(word.ptr[0] - 'a' + 'A'));
    wb_pen_put(pen, word.ptr + 1, word.len - 1);
}

void wb_prose_title(struct wb_pen *pen, uint64_t name)
{
    struct wb_chance_dice dice = {name};

    put_capital(pen, wb_prose_noun(wb_chance_dice_next(&dice)));
    wb_pen_char(pen, ' ');
    wb_pen_slice(pen, common_word(wb_chance_dice_below(&dice, 20)));
    wb_pen_char(pen, ' ');
    put_capital(pen, wb_prose_noun(wb_chance_dice_next(&dice)));
}

/* Makes up a word out of syllables; a page has 64 of them. */
static size_t make_word(uint64_t own, uint32_t which, char word_out[16])
{
    struct wb_chance_dice dice = {own + (which & 63) * 0x9e3779b97f4a7c15u};
    unsigned count = 2 + (wb_chance_dice_next(&dice) & 1);
    size_t len = 0;

    wb_chance_dice_next(&dice);
    for (unsigned i = 0; i < count; i++) {
        const char *s = syllables[wb_chance_dice_below(&dice, COUNT(syllables))];
        size_t n = strlen(s);
        memcpy(word_out + len, s, n);
        len += n;
    }
    return len;
}

/* Picks a word: common ones are more likely (the number is squared); now and then a noun or a made-up word. */
static struct wb_slice pick_word(struct wb_chance_dice *dice, uint64_t own, char made[16])
{
    uint32_t r = wb_chance_dice_next(dice);
    uint32_t kind = r & 15;

    if (kind == 0)
        return wb_slice(made, make_word(own, r >> 4, made));
    if (kind <= 3)
        return nouns[(uint64_t)(r >> 4) * COUNT(nouns) >> 28];
    uint64_t u = r >> 4; /* 28 bits */
    return words[(u * u >> 28) * COUNT(words) >> 28];
}

void wb_prose_sentence(struct wb_pen *pen, struct wb_chance_dice *dice, uint64_t own)
{
    uint32_t count = 6 + wb_chance_dice_below(dice, 13);
    struct wb_slice last = WB_SLICE_EMPTY;
    char made[16];

    for (uint32_t i = 0; i < count; i++) {
        struct wb_slice word = pick_word(dice, own, made);
        if (word.ptr == last.ptr || (word.len <= 3 && last.len <= 3 && i > 0))
            word = nouns[wb_chance_dice_below(dice, COUNT(nouns))]; /* "the of" is not English */
        if (i == 0)
            put_capital(pen, word);
        else {
            wb_pen_str(pen, i % 7 == 6 ? ", " : " ");
            wb_pen_slice(pen, word);
        }
        last = word;
    }
    wb_pen_put(pen, ". ", 2);
}

void wb_prose_japanese(struct wb_pen *pen, struct wb_chance_dice *dice)
{
    wb_pen_slice(pen, japanese[wb_chance_dice_below(dice, COUNT(japanese))]);
}
