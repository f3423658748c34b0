/*
 * replay.c - rewrites a page: finds out what kind of page it is, and copies it with other URLs.
 *
 *   HTML, XHTML, SVG   every start tag and style element (replay_tag.c)
 *   CSS                every URL
 *   anything else      copied
 *
 * The page is read twice. First, extract determines its encoding and its base, which may come behind the links that it
 * applies to; then all tokens are copied. A tag that the page's end cuts off is copied too: browsers drop it.
 */
#include "replay/replay.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "replay/replayer.h"

/* A larger buffer is freed after a page instead of being kept for the next one. */
#define KEPT_BYTES ((size_t)4 << 20)

/* Frees the buffers of a level that are larger than `kept`. */
static void release_level(struct wb_replay_level *level, size_t kept)
{
    struct wb_buf *const all[] = {&level->utf8, &level->plain, &level->value, &level->part, &level->url, &level->place};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->cap > kept)
            wb_buf_release(all[i]);
}

int wb_replayer_new(struct wb_replayer **replayer_out)
{
    struct wb_replayer *r = wb_alloc_zero(1, sizeof *r);

    *replayer_out = NULL;
    if (!r)
        return WB_E_NOMEM;
    r->magic = WB_REPLAYER_MAGIC;
    wb_tag_index_init(&r->tags);
    int err = wb_extractor_new(&r->extractor);
    for (unsigned i = 0; err == 0 && i < WB_REPLAY_LEVELS; i++)
        err = wb_tagwalk_new(&r->levels[i].walk);
    if (err < 0) {
        wb_replayer_free(r);
        return err;
    }
    *replayer_out = r;
    return 0;
}

void wb_replayer_free(struct wb_replayer *r)
{
    if (!r)
        return;
    WB_CHECK(r->magic == WB_REPLAYER_MAGIC);
    r->magic = 0;
    wb_extractor_free(r->extractor);
    for (unsigned i = 0; i < WB_REPLAY_LEVELS; i++) {
        wb_tagwalk_free(r->levels[i].walk);
        release_level(&r->levels[i], 0);
    }
    wb_url_release(&r->base);
    wb_url_release(&r->resolved);
    wb_buf_release(&r->document);
    wb_free(r);
}

static void shrink(struct wb_replayer *r)
{
    for (unsigned i = 0; i < WB_REPLAY_LEVELS; i++)
        release_level(&r->levels[i], KEPT_BYTES);
    if (r->document.cap > KEPT_BYTES)
        wb_buf_release(&r->document);
}

/* ---- HTML ------------------------------------------------------------------------------------------------------- */

int wb_replayer_copy(struct wb_replay_level *level, const char *to)
{
    WB_CHECK(to >= level->copied && to <= level->bytes.ptr + level->bytes.len);
    int err = wb_buf_append(level->out, level->copied, (size_t)(to - level->copied));

    level->copied = to;
    return err;
}

static int put_banner(struct wb_replay_level *level, const char *at)
{
    struct wb_slice banner = level->banner;
    int err = wb_replayer_copy(level, at);

    level->banner = WB_SLICE_EMPTY;
    return err < 0 ? err : wb_buf_append_slice(level->out, banner);
}

static bool is_one_of(struct wb_slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(names[i])))
            return true;
    return false;
}

/* Writes what stands at the front of the head: before the first tag that is in it, or behind <head> itself. */
static int put_front(struct wb_replay_level *level, const char *at)
{
    struct wb_slice front = level->front;
    int err = wb_replayer_copy(level, at);

    level->front = WB_SLICE_EMPTY;
    return err < 0 ? err : wb_buf_append_slice(level->out, front);
}

static int place_front(struct wb_replay_level *level, const struct wb_tokenizer *t)
{
    if (wb_slice_equal_nocase(t->text, WB_SLICE_LIT("html")))
        return 0;
    bool head = wb_slice_equal_nocase(t->text, WB_SLICE_LIT("head"));
    return put_front(level, head ? t->raw.ptr + t->raw.len : t->raw.ptr);
}

/*
 * Looks for the place of the banner in front of a start tag: before the first element that is not in <head>. Behind
 * <body>, place_behind() puts it. Frames have no body, and would not be shown if something came before them.
 */
static int place_before(struct wb_replay_level *level, const struct wb_tokenizer *t)
{
    static const char *const empty[] = {"html", "head", "meta", "link", "base", "basefont", "bgsound", "body"};
    static const char *const unseen[] = {"title", "style", "script", "noscript", "template", "noframes"};

    if (level->unseen.len || is_one_of(t->text, empty, sizeof empty / sizeof *empty))
        return 0;
    if (wb_slice_equal_nocase(t->text, WB_SLICE_LIT("frameset"))) {
        level->banner = WB_SLICE_EMPTY;
        return 0;
    }
    if (is_one_of(t->text, unseen, sizeof unseen / sizeof *unseen)) {
        if (!t->self_closing || !t->foreign)
            level->unseen = t->text;
        return 0;
    }
    return put_banner(level, t->raw.ptr);
}

static int place_behind(struct wb_replay_level *level, const struct wb_tokenizer *t)
{
    if (level->unseen.len || !wb_slice_equal_nocase(t->text, WB_SLICE_LIT("body")))
        return 0;
    return put_banner(level, t->raw.ptr + t->raw.len);
}

static bool is_blank(struct wb_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!wb_ascii_is_space(text.ptr[i]))
            return false;
    return true;
}

static int take_start(struct wb_replayer *r, unsigned depth, const struct wb_tokenizer *t)
{
    struct wb_replay_level *level = &r->levels[depth];
    int err = level->front.len ? place_front(level, t) : 0;

    level->in_style = wb_slice_equal_nocase(t->text, WB_SLICE_LIT("style")) && !(t->self_closing && t->foreign);
    if (err == 0 && level->banner.len)
        err = place_before(level, t);
    if (err == 0 && t->attr_count)
        err = wb_replayer_tag(r, depth, t);
    if (err == 0 && level->banner.len)
        err = place_behind(level, t);
    return err;
}

static int take_text(struct wb_replayer *r, struct wb_replay_level *level, const struct wb_tokenizer *t)
{
    if (level->in_style)
        return wb_replayer_style(r, level, t);
    int err = 0;
    if (level->front.len && !is_blank(t->text))
        err = put_front(level, t->raw.ptr);
    if (err == 0 && level->banner.len && !level->unseen.len && !is_blank(t->text))
        err = put_banner(level, t->raw.ptr);
    return err == 0 && level->marks ? wb_replayer_marks(level, t->text) : err;
}

int wb_replayer_document(struct wb_replayer *r, unsigned depth, struct wb_slice bytes, const char *charset, bool xml,
                         struct wb_buf *out)
{
    WB_CHECK(depth < WB_REPLAY_LEVELS);
    struct wb_replay_level *level = &r->levels[depth];
    const char *end = bytes.ptr + bytes.len;
    int err = 0;

    level->bytes = bytes;
    level->charset = charset;
    level->copied = bytes.ptr;
    level->out = out;
    level->in_style = false;
    level->unseen = WB_SLICE_EMPTY;
    level->front = depth == 0 ? r->options->front : WB_SLICE_EMPTY;
    level->banner = depth == 0 ? r->options->banner : WB_SLICE_EMPTY;
    level->marks = depth == 0 && r->result->kind == WB_REPLAY_HTML ? r->options->marks : NULL;
    level->mark = 0;
    /* The banner comes behind a BOM, which would be text otherwise. */
    if (wb_slice_starts(bytes, WB_SLICE_LIT("\xef\xbb\xbf")))
        bytes = wb_slice(bytes.ptr + 3, bytes.len - 3);
    wb_tagwalk_begin(level->walk, bytes, xml);
    for (const struct wb_tokenizer *t; err == 0 && (t = wb_tagwalk_next(level->walk))->kind != WB_TOKEN_NONE;) {
        if (t->kind == WB_TOKEN_START) {
            err = take_start(r, depth, t);
        } else if (t->kind == WB_TOKEN_TEXT) {
            err = take_text(r, level, t);
        } else if (t->kind == WB_TOKEN_END) {
            level->in_style = false;
            if (wb_slice_equal_nocase(t->text, level->unseen))
                level->unseen = WB_SLICE_EMPTY;
        }
    }
    return err < 0 ? err : wb_replayer_copy(level, end);
}

/* ---- pages ------------------------------------------------------------------------------------------------------ */

/* What kind of page this is. The bytes decide only if nothing else does. */
static enum wb_replay_kind kind_of(struct wb_slice type, const char *module)
{
    if (wb_slice_equal(type, WB_SLICE_LIT("image/svg+xml")))
        return WB_REPLAY_SVG;
    if (wb_slice_equal(type, WB_SLICE_LIT("text/html")) || strcmp(module, "html") == 0)
        return WB_REPLAY_HTML;
    return WB_REPLAY_UNCHANGED;
}

static int rewrite_sheet(struct wb_replayer *r, const struct wb_replay_page *page, struct wb_buf *out)
{
    const char *charset = wb_tagwalk_css_charset(page->body, page->charset);
    struct wb_slice bytes;
    bool changed;

    r->result->kind = WB_REPLAY_CSS;
    int err = wb_replayer_begin_urls(r, page, WB_SLICE_EMPTY);
    if (err == 0)
        err = wb_tagwalk_bytes(charset, page->body, &r->document, &bytes, &r->result->charset);
    return err < 0 ? err : wb_replayer_css(r, &r->levels[0], bytes, r->result->charset, out, &changed);
}

/*
 * Browsers write what is not ASCII in the query of a link in the encoding of the page, and the page was crawled with
 * such links. In these encodings no byte of a character looks like one of markup. Some look like a backslash, so a URL
 * in a style element may be missed; that is why pages in a sandbox become UTF-8.
 */
static bool is_kept_encoding(const char *charset)
{
    static const char *const kept[] = {"shift_jis", "gbk", "gb18030", "big5", "euc-jp", "euc-kr"};

    return is_one_of(wb_slice_str(charset), kept, sizeof kept / sizeof *kept);
}

int wb_replayer_markup(struct wb_replayer *r, const struct wb_replay_page *page, struct wb_buf *mem,
                       struct wb_slice *bytes_out, const char **charset_out, bool *xml_out)
{
    struct wb_extract_input input = {page->url, page->type, page->charset, page->body, 0};
    struct wb_extract facts;
    int err = wb_extract(r->extractor, &input, &facts);

    *bytes_out = WB_SLICE_EMPTY;
    *xml_out = page->type.len && !wb_slice_equal(page->type, WB_SLICE_LIT("text/html"));
    if (err < 0 || kind_of(page->type, facts.module) != WB_REPLAY_HTML)
        return err;
    return wb_tagwalk_bytes(*facts.charset ? facts.charset : "utf-8", page->body, mem, bytes_out, charset_out);
}

static int rewrite_markup(struct wb_replayer *r, const struct wb_replay_page *page, struct wb_buf *out)
{
    struct wb_extract_input input = {page->url, page->type, page->charset, page->body, 0};
    struct wb_extract facts;
    struct wb_slice bytes;
    int err = wb_extract(r->extractor, &input, &facts);

    if (err == 0)
        err = wb_replayer_begin_urls(r, page, facts.base);
    if (err < 0)
        return err;
    r->result->kind = kind_of(page->type, facts.module);
    if (r->result->kind == WB_REPLAY_UNCHANGED)
        return wb_buf_append_slice(out, page->body);
    const char *charset = *facts.charset ? facts.charset : "utf-8";
    bool xml = page->type.len && !wb_slice_equal(page->type, WB_SLICE_LIT("text/html"));
    if (r->options->origins && is_kept_encoding(charset)) {
        bytes = page->body;
        r->result->charset = charset;
    } else {
        err = wb_tagwalk_bytes(charset, page->body, &r->document, &bytes, &r->result->charset);
    }
    return err < 0 ? err : wb_replayer_document(r, 0, bytes, r->result->charset, xml, out);
}

int wb_replay_rewrite(struct wb_replayer *r, const struct wb_replay_page *page, const struct wb_replay_options *options,
                      struct wb_buf *out, struct wb_replay_result *result_out)
{
    struct wb_replay_options used = *options;
    size_t before = out->len;

    WB_CHECK(r->magic == WB_REPLAYER_MAGIC && !r->result); /* one thread, one page at a time */
    *result_out = (struct wb_replay_result){WB_REPLAY_UNCHANGED, "", 0, 0};
    if (wb_slice_equal(page->type, WB_SLICE_LIT("image/svg+xml")))
        used.banner = used.front = WB_SLICE_EMPTY;
    r->result = result_out;
    r->options = &used;
    int err = wb_slice_equal(page->type, WB_SLICE_LIT("text/css")) ? rewrite_sheet(r, page, out)
                                                                   : rewrite_markup(r, page, out);
    size_t more = used.banner.len + used.front.len + (used.marks ? used.marks->count * WB_REPLAY_MARK_BYTES : 0);
    WB_CHECK(err < 0 || out->len - before <= 2 * WB_REPLAY_BYTES_MAX(page->body.len) + more);
    if (err < 0)
        out->len = before;
    r->result = NULL;
    r->options = NULL;
    shrink(r);
    return err;
}
