/*
 * scriptlinks.c - the module for scripts: what they may load, as links of the page.
 *
 * What a module imports is certain. Other strings are guesses, of which about half are right: a string is taken if it
 * looks like the name of a file beside the script, and a script has only some of them (docs/design/0031-requisites.md).
 */
#include "base/error.h"
#include "extract/module.h"

#define GUESSES_MAX 32 /* in one script */
#define GUESS_BYTES_MAX 200

/* The endings of files that scripts load, and what they are needed for. */
static const struct {
    const char *ending;
    enum wb_extract_tag tag;
} endings[] = {
    {".js", WB_EXTRACT_LINK_SCRIPT},   {".mjs", WB_EXTRACT_LINK_SCRIPT},  {".json", WB_EXTRACT_LINK_SCRIPT},
    {".wasm", WB_EXTRACT_LINK_SCRIPT}, {".css", WB_EXTRACT_LINK_STYLE},   {".woff", WB_EXTRACT_LINK_STYLE},
    {".woff2", WB_EXTRACT_LINK_STYLE}, {".ttf", WB_EXTRACT_LINK_STYLE},   {".png", WB_EXTRACT_LINK_IMAGE},
    {".svg", WB_EXTRACT_LINK_IMAGE},   {".gif", WB_EXTRACT_LINK_IMAGE},   {".jpg", WB_EXTRACT_LINK_IMAGE},
    {".jpeg", WB_EXTRACT_LINK_IMAGE},  {".webp", WB_EXTRACT_LINK_IMAGE},
};

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.~+@%/", c);
}

/* A name without folders ("search.js"), or one that says where it begins ("./a.js", "../a/b.css"). */
static bool is_beside(struct wb_slice s)
{
    bool up = wb_slice_starts(s, WB_SLICE_LIT("./")) || wb_slice_starts(s, WB_SLICE_LIT("../"));

    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '\0' || !is_name_byte(s.ptr[i]))
            return false;
    return up || (s.ptr[0] != '.' && !memchr(s.ptr, '/', s.len));
}

/* What a string names, judged by its looks; 0 if it does not look like a file. */
static unsigned guess_tag(struct wb_slice s)
{
    if (s.len == 0 || s.len > GUESS_BYTES_MAX || !is_beside(s))
        return 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct wb_slice ending = wb_slice_str(endings[i].ending);
        if (s.len > ending.len && wb_slice_ends(s, ending) && s.ptr[s.len - ending.len - 1] != '/')
            return endings[i].tag;
    }
    return 0;
}

/* What is imported by another name ("react") is explained by a map that we do not read. */
static bool is_module_url(struct wb_slice s)
{
    return s.len <= WB_URL_MAX_BYTES &&
           (wb_slice_starts(s, WB_SLICE_LIT("./")) || wb_slice_starts(s, WB_SLICE_LIT("../")) ||
            wb_slice_starts(s, WB_SLICE_LIT("/")) || wb_slice_starts(s, WB_SLICE_LIT("http://")) ||
            wb_slice_starts(s, WB_SLICE_LIT("https://")));
}

int wb_script_links(struct wb_extractor *x, struct wb_slice text)
{
    struct wb_script script;
    struct wb_script_item item;
    unsigned guesses = 0;
    int err = 0;

    wb_script_init(&script, text);
    while (err == 0 && wb_script_next(&script, &item)) {
        bool import = item.kind == WB_SCRIPT_IMPORT && is_module_url(item.text);
        unsigned tag = import ? WB_EXTRACT_LINK_SCRIPT : guesses < GUESSES_MAX ? guess_tag(item.text) : 0;
        if (!tag)
            continue;
        guesses += !import;
        struct wb_extract_link link = {.tag = (uint8_t)tag, .href = item.text, .url = WB_SLICE_EMPTY,
                                       .anchor = WB_SLICE_EMPTY, .rel = WB_SLICE_EMPTY};
        err = wb_sink_link(x, &link, NULL);
    }
    return err;
}

static bool accepts_script(struct wb_slice type)
{
    return wb_slice_ends(type, WB_SLICE_LIT("/javascript")) || wb_slice_ends(type, WB_SLICE_LIT("/ecmascript")) ||
           wb_slice_ends(type, WB_SLICE_LIT("/x-javascript"));
}

static int run_script(struct wb_extractor *x)
{
    return wb_script_links(x, x->utf8);
}

const struct wb_module wb_module_script = {
    .name = "script",
    .charset_kind = WB_CHARSET_TEXT,
    .accepts = accepts_script,
    .run = run_script,
};
