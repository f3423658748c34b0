/*
 * htmlneeds.c - takes what an HTML page needs in order to be displayed, apart from images and <link>, which are links
 * in any case (htmllinks.c): scripts, sound and video, pictures of other elements, and what inline styles name.
 *
 * Called only if WB_EXTRACT_NEEDS is wanted. It never decides what is fetched.
 */
#include "extract/html.h"

/* Takes an attribute that is a URL. */
static int take_attribute(struct wb_html *h, enum wb_extract_tag tag, struct wb_slice attribute)
{
    struct wb_extract_link link = {.tag = (uint8_t)tag, .href = WB_SLICE_EMPTY, .url = WB_SLICE_EMPTY,
                                   .anchor = WB_SLICE_EMPTY, .rel = WB_SLICE_EMPTY};
    bool found;

    int err = wb_html_value(h, attribute, &found, &link.href);
    return err < 0 || !found || link.href.len == 0 ? err : wb_sink_link(h->x, &link, NULL);
}

static int take_style_attribute(struct wb_html *h)
{
    struct wb_slice style;
    bool found;

    int err = wb_html_value(h, WB_SLICE_LIT("style"), &found, &style);
    return err < 0 || !found ? err : wb_css_links(h->x, style);
}

static bool has_word(struct wb_html *h, struct wb_slice attribute, struct wb_slice word)
{
    const struct wb_token_attr *attr = wb_tokenizer_attr(&h->t, attribute);

    return attr && wb_slice_equal_nocase(wb_slice_trim(attr->value), word);
}

static int take_element(struct wb_html *h, enum wb_tag tag)
{
    int err;

    switch (tag) {
    case WB_TAG_SCRIPT_:
        return take_attribute(h, WB_EXTRACT_LINK_SCRIPT, WB_SLICE_LIT("src"));
    case WB_TAG_VIDEO_:
        err = take_attribute(h, WB_EXTRACT_LINK_IMAGE, WB_SLICE_LIT("poster"));
        return err < 0 ? err : take_attribute(h, WB_EXTRACT_LINK_MEDIA, WB_SLICE_LIT("src"));
    case WB_TAG_AUDIO_:
    case WB_TAG_EMBED_:
    case WB_TAG_SOURCE_: /* its srcset is a link in any case */
    case WB_TAG_TRACK_:
        return take_attribute(h, WB_EXTRACT_LINK_MEDIA, WB_SLICE_LIT("src"));
    case WB_TAG_OBJECT_:
        return take_attribute(h, WB_EXTRACT_LINK_MEDIA, WB_SLICE_LIT("data"));
    case WB_TAG_INPUT_:
        if (!has_word(h, WB_SLICE_LIT("type"), WB_SLICE_LIT("image")))
            return 0;
        return take_attribute(h, WB_EXTRACT_LINK_IMAGE, WB_SLICE_LIT("src"));
    case WB_TAG_BODY_:
    case WB_TAG_TABLE_:
    case WB_TAG_TD_:
        return take_attribute(h, WB_EXTRACT_LINK_IMAGE, WB_SLICE_LIT("background"));
    case WB_TAG_IMAGE_: /* of svg */
        err = take_attribute(h, WB_EXTRACT_LINK_IMAGE, WB_SLICE_LIT("href"));
        return err < 0 ? err : take_attribute(h, WB_EXTRACT_LINK_IMAGE, WB_SLICE_LIT("xlink:href"));
    default:
        return 0;
    }
}

int wb_html_needs(struct wb_html *h, enum wb_tag tag)
{
    int err = h->t.attr_count ? take_style_attribute(h) : 0;

    return err < 0 || !h->t.attr_count ? err : take_element(h, tag);
}

/* What a <link> of this kind leads to. */
enum wb_extract_tag wb_html_link_need(struct wb_html *h, const struct wb_extract_link *link)
{
    static const struct {
        const char *as;
        enum wb_extract_tag tag;
    } preloads[] = {{"image", WB_EXTRACT_LINK_IMAGE}, {"style", WB_EXTRACT_LINK_STYLE}, {"font", WB_EXTRACT_LINK_STYLE},
                    {"script", WB_EXTRACT_LINK_SCRIPT}, {"audio", WB_EXTRACT_LINK_MEDIA},
                    {"video", WB_EXTRACT_LINK_MEDIA}, {"track", WB_EXTRACT_LINK_MEDIA}};

    if (link->rels & WB_EXTRACT_REL_STYLESHEET)
        return WB_EXTRACT_LINK_STYLE;
    if (link->rels & WB_EXTRACT_REL_ICON)
        return WB_EXTRACT_LINK_IMAGE;
    if (link->rels & WB_EXTRACT_REL_PRELOAD)
        for (size_t i = 0; i < sizeof preloads / sizeof *preloads; i++)
            if (has_word(h, WB_SLICE_LIT("as"), wb_slice_str(preloads[i].as)))
                return preloads[i].tag;
    return (enum wb_extract_tag)link->tag;
}

bool wb_html_is_module(struct wb_html *h)
{
    return has_word(h, WB_SLICE_LIT("type"), WB_SLICE_LIT("module"));
}

int wb_html_style(struct wb_html *h)
{
    return wb_css_links(h->x, h->t.text);
}
