/*
 * design.c - reads and writes the notation of designs. The grammar, where any blanks are skipped between tokens:
 *
 *   design = "Incr" "[" part "]"  |  "Batch" "[" "U" "(" part ")" "," "R" "(" part ")" "]"
 *   part   = distribution "," organisation
 */
#include "place/design.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const char *const distributions[] = {"hash", "uniform"};
static const char *const organisations[] = {"log", "hash", "hashed-log"};

enum {
    DISTRIBUTIONS = sizeof distributions / sizeof distributions[0],
    ORGANISATIONS = sizeof organisations / sizeof organisations[0],
    PARTS = DISTRIBUTIONS * ORGANISATIONS,
    SHOWN_MAX = 200, /* of a text in a message */
};

const char *wb_distribution_word(enum wb_distribution distribution)
{
    return distributions[distribution];
}

const char *wb_organisation_word(enum wb_organisation_kind organisation)
{
    return organisations[organisation];
}

/* The index of a word in a list; -1 if it is not there. */
static int find_word(struct wb_slice word, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (wb_slice_equal(word, wb_slice_str(words[i])))
            return i;
    return -1;
}

static int shown(struct wb_slice text)
{
    return text.len > SHOWN_MAX ? SHOWN_MAX : (int)text.len;
}

int wb_distribution_parse(struct wb_slice word, enum wb_distribution *distribution_out)
{
    int found = find_word(word, distributions, DISTRIBUTIONS);

    *distribution_out = found < 0 ? WB_DISTRIBUTION_HASH : (enum wb_distribution)found;
    return found < 0 ? wb_fail(WB_E_INVALID, "no such distribution: %.*s (hash or uniform)", shown(word), word.ptr) : 0;
}

int wb_organisation_parse(struct wb_slice word, enum wb_organisation_kind *organisation_out)
{
    int found = find_word(word, organisations, ORGANISATIONS);

    *organisation_out = found < 0 ? WB_ORGANISATION_LOG : (enum wb_organisation_kind)found;
    return found < 0 ? wb_fail(WB_E_INVALID, "no such organisation: %.*s (log, hash or hashed-log)", shown(word),
                               word.ptr)
                     : 0;
}

/* ---- parsing --------------------------------------------------------------------------------------------- */

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void skip_blanks(struct wb_slice *text)
{
    while (text->len && (*text->ptr == ' ' || (*text->ptr >= '\t' && *text->ptr <= '\r'))) /* line breaks, too */
        *text = wb_slice(text->ptr + 1, text->len - 1);
}

static struct wb_slice take_name(struct wb_slice *text)
{
    size_t len = 0;

    skip_blanks(text);
    while (len < text->len && is_word_byte(text->ptr[len]))
        len++;
    struct wb_slice word = wb_slice(text->ptr, len);
    *text = wb_slice(text->ptr + len, text->len - len);
    return word;
}

static bool take_mark(struct wb_slice *text, char mark)
{
    skip_blanks(text);
    if (text->len == 0 || *text->ptr != mark)
        return false;
    *text = wb_slice(text->ptr + 1, text->len - 1);
    return true;
}

/* Returns 1, 0 if the text has another shape, or WB_E_INVALID if a word is unknown. */
static int take_part(struct wb_slice *text, struct wb_design_part *part_out)
{
    struct wb_slice distribution = take_name(text);

    if (distribution.len == 0 || !take_mark(text, ','))
        return 0;
    struct wb_slice organisation = take_name(text);
    if (organisation.len == 0)
        return 0;
    int err = wb_distribution_parse(distribution, &part_out->distribution);
    if (err == 0)
        err = wb_organisation_parse(organisation, &part_out->organisation);
    return err < 0 ? err : 1;
}

static int take_side(struct wb_slice *text, const char *name, struct wb_design_part *part_out)
{
    if (!wb_slice_equal(take_name(text), wb_slice_str(name)) || !take_mark(text, '('))
        return 0;
    int took = take_part(text, part_out);
    return took <= 0 ? took : take_mark(text, ')');
}

static int take_design(struct wb_slice *text, struct wb_design *design)
{
    struct wb_slice kind = take_name(text);
    bool incremental = wb_slice_equal(kind, WB_SLICE_LIT("Incr"));

    design->batch = wb_slice_equal(kind, WB_SLICE_LIT("Batch"));
    if (!design->batch && !incremental && kind.len)
        return wb_fail(WB_E_INVALID, "no such update scheme: %.*s (Incr or Batch)", shown(kind), kind.ptr);
    if (kind.len == 0 || !take_mark(text, '['))
        return 0;
    int took = incremental ? take_part(text, &design->read) : take_side(text, "U", &design->update);
    if (took > 0 && design->batch)
        took = take_mark(text, ',') ? take_side(text, "R", &design->read) : 0;
    return took <= 0 ? took : take_mark(text, ']');
}

int wb_design_parse(struct wb_slice text, struct wb_design *design_out)
{
    struct wb_slice rest = text;
    struct wb_design design = {0};
    int took = take_design(&rest, &design);

    *design_out = (struct wb_design){0};
    skip_blanks(&rest);
    if (took < 0)
        return took;
    if (took == 0 || rest.len)
        return wb_fail(WB_E_INVALID, "'%.*s' is not a design: write Incr[p,o] or Batch[U(p,o),R(p,o)]", shown(text),
                       text.ptr);
    *design_out = design;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

void wb_design_format(const struct wb_design *design, char text_out[WB_DESIGN_TEXT_MAX])
{
    const char *rp = wb_distribution_word(design->read.distribution);
    const char *ro = wb_organisation_word(design->read.organisation);

    if (design->batch)
        snprintf(text_out, WB_DESIGN_TEXT_MAX, "Batch[U(%s,%s),R(%s,%s)]",
                 wb_distribution_word(design->update.distribution), wb_organisation_word(design->update.organisation),
                 rp, ro);
    else
        snprintf(text_out, WB_DESIGN_TEXT_MAX, "Incr[%s,%s]", rp, ro);
}

static struct wb_design_part nth_part(unsigned index)
{
    return (struct wb_design_part){(enum wb_distribution)(index / ORGANISATIONS),
                                   (enum wb_organisation_kind)(index % ORGANISATIONS)};
}

bool wb_design_nth(unsigned index, struct wb_design *design_out)
{
    *design_out = (struct wb_design){0};
    if (index >= PARTS + PARTS * PARTS)
        return false;
    if (index < PARTS) {
        design_out->read = nth_part(index);
        return true;
    }
    index -= PARTS;
    *design_out = (struct wb_design){.batch = true, .update = nth_part(index / PARTS), .read = nth_part(index % PARTS)};
    return true;
}
