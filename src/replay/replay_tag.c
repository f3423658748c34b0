/*
 * replay_tag.c - rewrites a start tag, or the text of a style element, so that what it names is in the archive.
 *
 * A value is decoded, changed, and encoded again; a value that stays the same is copied as it is, and so is everything
 * between the values. It never decides where a URL leads (replay_url.c), and knows no tag except the one at hand.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "replay/replayer.h"

/* What is done with an attribute. */
enum attr_role {
    ROLE_KEEP,
    ROLE_URL,
    ROLE_SRCSET,
    ROLE_CSS,
    ROLE_PAINT, /* CSS, but only in svg */
    ROLE_SRCDOC,
    ROLE_REFRESH,
    ROLE_CONTENT, /* of <meta>: a refresh, if its http-equiv says so */
    ROLE_EQUIV,   /* of <meta>: removed if it would set a policy */
    ROLE_TARGET,  /* of the outermost page: one that means its own frame would keep the page of ours as it is */
    ROLE_ORIGIN,  /* removed if the page has no origin */
    ROLE_REMOVE,
};

/* The attributes that mean something to us. If an element is given, the attribute counts only there. */
static const struct {
    const char *name, *element;
    enum attr_role role;
} attributes[] = {
    {"href", NULL, ROLE_URL},
    {"src", NULL, ROLE_URL},
    {"style", NULL, ROLE_CSS},
    {"srcset", NULL, ROLE_SRCSET},
    {"content", "meta", ROLE_CONTENT},
    {"http-equiv", "meta", ROLE_EQUIV},
    {"action", NULL, ROLE_URL},
    {"formaction", NULL, ROLE_URL},
    {"xlink:href", NULL, ROLE_URL},
    {"poster", NULL, ROLE_URL},
    {"data", "object", ROLE_URL},
    {"background", NULL, ROLE_URL},
    {"cite", NULL, ROLE_URL},
    {"longdesc", NULL, ROLE_URL},
    {"lowsrc", NULL, ROLE_URL},
    {"dynsrc", NULL, ROLE_URL},
    {"imagesrcset", NULL, ROLE_SRCSET},
    {"manifest", "html", ROLE_URL},
    {"profile", "head", ROLE_URL},
    {"codebase", NULL, ROLE_URL},
    {"srcdoc", "iframe", ROLE_SRCDOC},
    /* Digests of other bytes, requests with an origin that replayed pages do not have, policies of the live site. */
    {"integrity", NULL, ROLE_REMOVE},
    {"crossorigin", NULL, ROLE_ORIGIN},
    {"nonce", NULL, ROLE_REMOVE},
    {"csp", "iframe", ROLE_REMOVE},
    /* What would tell others where the reader is. */
    {"referrerpolicy", NULL, ROLE_REMOVE},
    {"target", NULL, ROLE_TARGET},
    {"formtarget", NULL, ROLE_TARGET},
    /* Requests that are only sent to tell somebody. */
    {"ping", NULL, ROLE_REMOVE},
    {"attributionsrc", NULL, ROLE_REMOVE},
    /* What would change how other attributes are resolved. */
    {"archive", NULL, ROLE_REMOVE},
    {"xml:base", NULL, ROLE_REMOVE},
    {"fill", NULL, ROLE_PAINT},
    {"stroke", NULL, ROLE_PAINT},
    {"filter", NULL, ROLE_PAINT},
    {"mask", NULL, ROLE_PAINT},
    {"clip-path", NULL, ROLE_PAINT},
    {"cursor", NULL, ROLE_PAINT},
    {"marker-start", NULL, ROLE_PAINT},
    {"marker-mid", NULL, ROLE_PAINT},
    {"marker-end", NULL, ROLE_PAINT},
};

#define NAME_BYTES_MAX 16

/* A byte of UTF-8 needs at most this many with entities: &quot; */
#define ENCODED_MAX 6

/* The start tag at hand. */
struct tag {
    struct wb_replayer *r;
    struct wb_replay_level *level;
    unsigned depth;
    const struct wb_tokenizer *t;
    bool foreign;
    bool refreshes, restricts; /* a <meta> with this http-equiv */
    bool refers;               /* <meta name=referrer> */
};

static bool is_element(const struct tag *tag, const char *name)
{
    return wb_slice_equal_nocase(tag->t->text, wb_slice_str(name));
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Where a value is, in the document. */
struct span {
    const char *from, *to; /* without quotes */
    char quote;            /* 0 if it has none */
    bool missing;          /* the attribute has only a name, and from is where a value could be put */
};

static struct span span_of(const struct wb_replay_level *level, const struct wb_token_attr *attr)
{
    const char *end = level->bytes.ptr + level->bytes.len, *name_end = attr->name.ptr + attr->name.len;
    struct span span = {attr->value.ptr, attr->value.ptr + attr->value.len, 0, false};

    if ((uintptr_t)span.from < (uintptr_t)name_end || (uintptr_t)span.from > (uintptr_t)end)
        return (struct span){name_end, name_end, 0, true};
    WB_CHECK(span.from > level->bytes.ptr && span.to <= end);
    char before = span.from[-1];
    if ((before == '"' || before == '\'') && span.to < end && *span.to == before)
        span.quote = before;
    return span;
}

/* Where an attribute ends. */
static const char *end_of(const struct span *span)
{
    return span->to + (span->quote != 0);
}

/* Gets the value of an attribute in UTF-8, without entities. It is in the document or the level's working memory. */
static int read_value(struct wb_replay_level *level, const struct wb_token_attr *attr, struct wb_slice *value_out)
{
    int err = wb_tagwalk_utf8(level->charset, attr->value, &level->utf8, value_out);

    if (err < 0 || !attr->value_coded)
        return err;
    wb_buf_clear(&level->plain);
    err = wb_buf_reserve(&level->plain, WB_DECODED_MAX(value_out->len));
    if (err < 0)
        return err;
    level->plain.len = wb_token_decode(*value_out, WB_DECODE_VALUE, level->plain.ptr);
    *value_out = wb_buf_slice(&level->plain);
    return 0;
}

/* Appends the character at the front of text with entities, and returns how many bytes it has. */
static size_t put_char(struct wb_slice text, bool utf8, struct wb_buf *out, int *err)
{
    static const char *const entities[] = {
        ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;", ['<'] = "&lt;", ['>'] = "&gt;", ['\r'] = "&#13;"};
    uint8_t c = (uint8_t)*text.ptr;

    if (c < sizeof entities / sizeof *entities && entities[c]) {
        *err = wb_buf_append_str(out, entities[c]);
        return 1;
    }
    size_t len = c < 0x80 || utf8 ? 1 : wb_utf8_length(text.ptr, text.len);
    if (c < 0x80 || utf8) {
        *err = wb_buf_append_char(out, *text.ptr);
        return 1;
    }
    uint32_t code = len == 2 ? c & 0x1fu : len == 3 ? c & 0xfu : c & 7u;
    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((uint8_t)text.ptr[i] & 0x3f);
    *err = wb_buf_printf(out, "&#%u;", len ? code : 0xfffdu);
    return len ? len : 1;
}

/*
 * Appends UTF-8 text with entities, so that it can be in an attribute with any quotes, or between tags. If the document
 * is in another encoding, what is not ASCII becomes numbers.
 */
static int put_encoded(struct wb_slice text, const char *charset, struct wb_buf *out)
{
    bool utf8 = strcmp(charset, "utf-8") == 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < text.len;)
        i += put_char(wb_slice(text.ptr + i, text.len - i), utf8, out, &err);
    return err;
}

/* How many bytes put_encoded() writes at most. */
static size_t encoded_len(struct wb_slice text, const char *charset)
{
    bool utf8 = strcmp(charset, "utf-8") == 0;
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        len += c >= 0xc0 ? (utf8 ? 1 : 10) : c >= 0x80 ? utf8 : strchr("&\"'<>\r", c) ? ENCODED_MAX : 1;
    }
    return len;
}

/*
 * Writes the document up to a value, and this instead of the value: nothing, if its entities would make the page too
 * long. paid: bytes that its URLs have paid for already.
 */
static int replace_value(struct wb_replayer *r, struct wb_replay_level *level, const struct span *span,
                         struct wb_slice value, size_t paid)
{
    const char *before = span->missing ? "=\"" : span->quote ? "" : "\"", *behind = span->quote ? "" : "\"";
    int err = wb_replayer_copy(level, span->from);

    if (!wb_replayer_grow(r, (size_t)(span->to - span->from) + paid, encoded_len(value, level->charset))) {
        r->result->urls_dropped++;
        value = WB_SLICE_EMPTY;
    }
    if (err == 0)
        err = wb_buf_append_str(level->out, before);
    if (err == 0)
        err = put_encoded(value, level->charset, level->out);
    if (err == 0)
        err = wb_buf_append_str(level->out, behind);
    level->copied = span->to;
    return err;
}

/* Writes the document up to an attribute, and a blank instead of it: "<a/x>" must not become "<a/>". */
static int remove_attr(struct wb_replay_level *level, const struct wb_token_attr *attr)
{
    struct span span = span_of(level, attr);
    int err = wb_replayer_copy(level, attr->name.ptr);

    if (err == 0)
        err = wb_buf_append_char(level->out, ' ');
    level->copied = end_of(&span);
    return err;
}

/* ---- what becomes of them ------------------------------------------------------------------------------------- */

/* These compute a new value in level->value; *changed_out is false if the old one stays. */

static int change_url(struct tag *tag, struct wb_slice value, bool *changed_out)
{
    enum wb_replay_place place = WB_REPLAY_PLACE_LOAD;
    bool kept = false;

    if (is_element(tag, "a") || is_element(tag, "area"))
        place = WB_REPLAY_PLACE_LINK;
    else if (tag->foreign)
        place = WB_REPLAY_PLACE_PART;
    int err = wb_replayer_url(tag->r, value, place, &tag->level->value, &kept);
    *changed_out = !kept;
    return err;
}

/* Keeps everything between the URLs of the candidates; those behind one for which there is no room are left out. */
static int change_srcset(struct tag *tag, struct wb_slice srcset, bool *changed_out)
{
    struct wb_buf *out = &tag->level->value;
    struct wb_slice href, rest = srcset;
    const char *copied = srcset.ptr, *end = srcset.ptr + srcset.len;
    int err = 0;

    while (err == 0 && wb_srcset_next(&rest, &href)) {
        size_t len = out->len + (size_t)(href.ptr - copied);
        bool kept = true;
        err = wb_buf_append(out, copied, (size_t)(href.ptr - copied));
        copied = href.ptr;
        if (err == 0)
            err = wb_replayer_url(tag->r, href, WB_REPLAY_PLACE_LOAD, out, &kept);
        if (!kept) {
            *changed_out = true;
            copied = out->len > len ? href.ptr + href.len : end;
        }
        if (copied == end)
            break;
    }
    return err < 0 ? err : wb_buf_append(out, copied, (size_t)(end - copied));
}

/* Writes "5; url=..." without quotes, which the URL might contain; a URL that leads nowhere leaves no refresh. */
static int change_refresh(struct tag *tag, struct wb_slice content, bool *changed_out)
{
    struct wb_buf *out = &tag->level->value;
    uint64_t dropped = tag->r->result->urls_dropped;
    struct wb_slice href;
    size_t delay = 0;
    bool kept = true;

    if (!wb_refresh_parse(content, &href) || href.len == 0)
        return 0;
    while (delay < content.len && (wb_ascii_is_space(content.ptr[delay]) || wb_ascii_is_digit(content.ptr[delay]) ||
                                   content.ptr[delay] == '.'))
        delay++;
    int err = wb_buf_append(out, content.ptr, delay);
    if (err == 0)
        err = wb_buf_append_str(out, ";url=");
    if (err == 0)
        err = wb_replayer_url(tag->r, href, WB_REPLAY_PLACE_LINK, out, &kept);
    *changed_out = !kept;
    if (dropped != tag->r->result->urls_dropped)
        wb_buf_clear(out);
    struct wb_buf *asked = tag->depth == 0 ? tag->r->options->refresh : NULL;
    if (err == 0 && *changed_out && asked && asked->len == 0)
        err = wb_buf_append_slice(asked, wb_buf_slice(out));
    return err;
}

/* A document in an attribute. What is in the deepest level is dropped. */
static int change_srcdoc(struct tag *tag, struct wb_slice value, bool *changed_out)
{
    *changed_out = true;
    if (tag->depth + 1 == WB_REPLAY_LEVELS)
        return 0;
    return wb_replayer_document(tag->r, tag->depth + 1, value, "utf-8", false, &tag->level->value);
}

/* ---- CSS ------------------------------------------------------------------------------------------------------- */

/* Appends what a URL of a style sheet becomes; *kept_out: it stays as it is, and nothing was appended. */
static int put_css_url(struct wb_replayer *r, struct wb_replay_level *level, const struct wb_css_item *item,
                       const char *charset, struct wb_buf *out, bool *kept_out)
{
    struct wb_slice href;
    int err = wb_tagwalk_utf8(charset, item->raw, &level->part, &href);

    if (err == 0 && item->coded) {
        err = wb_css_decode(href, &level->url);
        href = wb_buf_slice(&level->url);
    }
    wb_buf_clear(&level->place);
    if (err == 0)
        err = wb_replayer_url(r, href, WB_REPLAY_PLACE_PART, &level->place, kept_out);
    return err < 0 || *kept_out ? err : wb_css_encode(wb_buf_slice(&level->place), out);
}

int wb_replayer_css(struct wb_replayer *r, struct wb_replay_level *level, struct wb_slice css, const char *charset,
                    struct wb_buf *out, bool *changed_out)
{
    const char *copied = css.ptr, *end = css.ptr + css.len;
    struct wb_css_item item;
    struct wb_css scanner;
    int err = 0;

    *changed_out = false;
    wb_css_init(&scanner, css);
    while (err == 0 && wb_css_next(&scanner, &item)) {
        bool kept = true;
        err = wb_buf_append(out, copied, (size_t)(item.raw.ptr - copied));
        copied = item.raw.ptr;
        if (err == 0)
            err = put_css_url(r, level, &item, charset, out, &kept);
        if (!kept) {
            *changed_out = true;
            copied += item.raw.len;
        }
    }
    return err < 0 ? err : wb_buf_append(out, copied, (size_t)(end - copied));
}

int wb_replayer_style(struct wb_replayer *r, struct wb_replay_level *level, const struct wb_tokenizer *t)
{
    bool changed = false;
    struct wb_slice css;

    if (!(t->how & WB_DECODE_ENTITIES)) {
        int err = wb_replayer_copy(level, t->text.ptr);
        level->copied = t->text.ptr + t->text.len;
        return err < 0 ? err : wb_replayer_css(r, level, t->text, level->charset, level->out, &changed);
    }
    /* In svg and XHTML, the text of a style element has entities. */
    struct wb_token_attr text = {WB_SLICE_EMPTY, t->text, false, true};
    size_t growth_left = r->growth_left;
    int err = read_value(level, &text, &css);
    wb_buf_clear(&level->value);
    if (err == 0)
        err = wb_replayer_css(r, level, css, "utf-8", &level->value, &changed);
    if (err < 0 || !changed)
        return err;
    struct span span = {t->text.ptr, t->text.ptr + t->text.len, '"', false}; /* as if it were quoted: none are added */
    return replace_value(r, level, &span, wb_buf_slice(&level->value), growth_left - r->growth_left);
}

/* ---- the tag ----------------------------------------------------------------------------------------------------- */

/* Whether a target is the frame of the page itself, or the page of ours around it. */
static bool stays(const struct tag *tag, const struct wb_token_attr *attr)
{
    struct wb_slice value;

    return read_value(tag->level, attr, &value) < 0 || value.len == 0 ||
           wb_slice_equal_nocase(value, WB_SLICE_LIT("_self")) || wb_slice_equal_nocase(value, WB_SLICE_LIT("_parent"));
}

static enum attr_role role_of(const struct tag *tag, const struct wb_token_attr *attr)
{
    char lower[WB_DECODED_MAX(NAME_BYTES_MAX)];
    struct wb_slice name = attr->name;
    bool as_live = tag->r->options->origins && tag->r->options->in_place;

    if (name.len > NAME_BYTES_MAX)
        return ROLE_KEEP;
    if (attr->name_coded)
        name = wb_slice(lower, wb_token_decode(attr->name, WB_DECODE_NAME, lower));
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (!wb_slice_equal(name, wb_slice_str(attributes[i].name)))
            continue;
        if (attributes[i].element && !is_element(tag, attributes[i].element))
            return ROLE_KEEP;
        enum attr_role role = attributes[i].role;
        if (role == ROLE_PAINT)
            return tag->foreign ? ROLE_CSS : ROLE_KEEP;
        if (role == ROLE_EQUIV)
            return tag->restricts ? ROLE_REMOVE : ROLE_KEEP;
        if (role == ROLE_CONTENT)
            return tag->refers ? ROLE_REMOVE : tag->refreshes ? ROLE_REFRESH : ROLE_KEEP;
        if (role == ROLE_TARGET)
            return tag->r->options->outermost && tag->depth == 0 && stays(tag, attr) ? ROLE_REMOVE : ROLE_KEEP;
        if (role == ROLE_URL && !tag->foreign && is_element(tag, "base"))
            return as_live ? ROLE_URL : ROLE_REMOVE; /* what it says has been applied to every URL */
        if (role == ROLE_ORIGIN)
            return tag->r->options->origins ? ROLE_KEEP : ROLE_REMOVE;
        return role;
    }
    return ROLE_KEEP;
}

static int rewrite_attr(struct tag *tag, const struct wb_token_attr *attr, enum attr_role role)
{
    struct wb_replay_level *level = tag->level;
    struct span span = span_of(level, attr);
    size_t growth_left = tag->r->growth_left;
    struct wb_slice value;
    bool changed = false;

    if (role == ROLE_REMOVE)
        return remove_attr(level, attr);
    int err = read_value(level, attr, &value);
    if (err < 0)
        return err;
    wb_buf_clear(&level->value);
    switch (role) {
    case ROLE_URL:
        err = change_url(tag, value, &changed);
        break;
    case ROLE_SRCSET:
        err = change_srcset(tag, value, &changed);
        break;
    case ROLE_SRCDOC:
        err = change_srcdoc(tag, value, &changed);
        break;
    case ROLE_REFRESH:
        err = change_refresh(tag, value, &changed);
        break;
    default:
        err = wb_replayer_css(tag->r, level, value, "utf-8", &level->value, &changed);
        break;
    }
    size_t paid = growth_left - tag->r->growth_left;
    return err < 0 || !changed ? err : replace_value(tag->r, level, &span, wb_buf_slice(&level->value), paid);
}

/* Looks at the name and http-equiv of a <meta>: it may make the page load another one, or set a policy. */
static int read_meta(struct tag *tag)
{
    const struct wb_token_attr *attr;
    struct wb_slice value;

    if (!is_element(tag, "meta"))
        return 0;
    attr = wb_tokenizer_attr(tag->t, WB_SLICE_LIT("name"));
    int err = attr ? read_value(tag->level, attr, &value) : 0;
    if (err < 0)
        return err;
    tag->refers = attr && wb_slice_equal_nocase(wb_slice_trim(value), WB_SLICE_LIT("referrer"));
    attr = wb_tokenizer_attr(tag->t, WB_SLICE_LIT("http-equiv"));
    err = attr ? read_value(tag->level, attr, &value) : 0;
    if (err < 0 || !attr)
        return err;
    value = wb_slice_trim(value);
    tag->refreshes = wb_slice_equal_nocase(value, WB_SLICE_LIT("refresh"));
    tag->restricts = wb_slice_starts_nocase(value, WB_SLICE_LIT("content-security-policy"));
    return 0;
}

int wb_replayer_tag(struct wb_replayer *r, unsigned depth, const struct wb_tokenizer *t)
{
    struct wb_replay_level *level = &r->levels[depth];
    struct tag tag = {r, level, depth, t, wb_tagwalk_is_foreign(level->walk), false, false, false};
    int err = read_meta(&tag);

    for (unsigned i = 0; err == 0 && i < t->attr_count; i++) {
        enum attr_role role = role_of(&tag, &t->attrs[i]);
        if (role != ROLE_KEEP)
            err = rewrite_attr(&tag, &t->attrs[i], role);
    }
    if (err < 0 || t->attrs_left_out == 0)
        return err;
    /* Attributes that the tokenizer did not keep could name anything: they are left out. */
    struct span last = span_of(level, &t->attrs[t->attr_count - 1]);
    if (level->copied < end_of(&last))
        err = wb_replayer_copy(level, end_of(&last));
    level->copied = t->raw.ptr + t->raw.len;
    return err < 0 ? err : wb_buf_append_str(level->out, t->self_closing ? " />" : " >");
}
