/*
 * office.c - the module for documents that are ZIP files of XML: DOCX, XLSX, PPTX, OpenDocument and EPUB.
 *
 *   DOCX   word/document.xml, its notes           links: word/_rels/document.xml.rels     facts: docProps/core.xml
 *   XLSX   xl/sharedStrings.xml, xl/worksheets/sheetN.xml (texts in cells)
 *   PPTX   ppt/slides/slideN.xml, in order
 *   ODF    content.xml                                                                    facts: meta.xml
 *   EPUB   META-INF/container.xml -> package -> spine -> chapters                         facts: the package
 *
 * The parts decide which format it is, not the media type. Whatever the bytes are, at most so much is inflated and
 * read as office.h says; if something is damaged or too large, the rest is read and module_error says "failed".
 */
#include "extract/office.h"
#include "base/error.h"
#include "os/nameless.h"

#include <stdio.h>

#define RELS_SUFFIX ".rels"

static const char *const no_names[] = {NULL};

/* Word, Excel and PowerPoint: only <t> has text, which may be cut anywhere. */
static const char *const ooxml_blocks[] = {"p", "si", "row", "tr", "tc", NULL};
static const char *const ooxml_gaps[] = {"tab", "br", "cr", "c", NULL};
static const char *const ooxml_skipped[] = {"del", "rPh", NULL};
static const struct wb_office_words ooxml = {"t", ooxml_blocks, NULL, ooxml_gaps, ooxml_skipped, NULL, NULL, NULL};

static const char *const odf_blocks[] = {"p", "h", "table-row", "table-cell", NULL};
static const char *const odf_gaps[] = {"s", "tab", "line-break", NULL};
static const char *const odf_skipped[] = {"tracked-changes",  "annotation", "font-face-decls",
                                          "automatic-styles", "scripts",    NULL};
static const struct wb_office_words odf = {NULL, odf_blocks, NULL, odf_gaps, odf_skipped, "a", "xlink", "href"};

static const char *const xhtml_inside[] = {"a",    "abbr",   "b",   "bdi", "bdo",  "cite", "code", "dfn",  "em",
                                           "font", "i",      "ins", "kbd", "mark", "q",    "s",    "samp", "small",
                                           "span", "strong", "sub", "sup", "u",    "var",  "wbr",  NULL};
static const char *const xhtml_skipped[] = {"head", "script", "style", NULL};
static const struct wb_office_words xhtml = {NULL, NULL, xhtml_inside, no_names, xhtml_skipped, "a", "", "href"};

/* ---- parts ------------------------------------------------------------------------------------------- */

/* Reads a part for its text, with the URLs that its relations name: dir/name has them in dir/_rels/name.rels. */
static int read_related(struct wb_office *o, struct wb_slice name)
{
    size_t dir = name.len;
    struct wb_buf path = WB_BUF_INIT;

    while (dir > 0 && name.ptr[dir - 1] != '/')
        dir--;
    wb_vec_clear(&o->links);
    int err =
        wb_buf_printf(&path, "%.*s_rels/%.*s" RELS_SUFFIX, (int)dir, name.ptr, (int)(name.len - dir), name.ptr + dir);
    int there = err < 0 ? err : wb_office_load(o, wb_buf_slice(&path));
    if (there > 0)
        there = wb_office_read_names(o, "Relationship", "Id", "Target", "TargetMode", "External", &o->links);
    wb_buf_release(&path);
    if (there >= 0)
        there = wb_office_load(o, name);
    return there > 0 ? wb_office_read_text(o, &ooxml) : there;
}

static int read_core(struct wb_office *o)
{
    int there = wb_office_load(o, WB_SLICE_LIT("docProps/core.xml"));

    return there > 0 ? wb_office_read_facts(o, true) : there;
}

static int read_docx(struct wb_office *o)
{
    int err = read_core(o);

    if (err == 0)
        err = read_related(o, WB_SLICE_LIT("word/document.xml"));
    if (err == 0)
        err = read_related(o, WB_SLICE_LIT("word/footnotes.xml"));
    return err < 0 ? err : read_related(o, WB_SLICE_LIT("word/endnotes.xml"));
}

/* Reads prefix1.xml, prefix2.xml and so on. Numbers that are missing are few: a slide was removed. */
static int read_numbered(struct wb_office *o, const char *prefix)
{
    unsigned missing = 0;
    char name[64];
    int err = 0;

    for (unsigned i = 1; err == 0 && missing < 16 && i <= WB_OFFICE_PARTS_MAX; i++) {
        snprintf(name, sizeof name, "%s%u.xml", prefix, i);
        bool there = wb_office_has(o, name);
        missing = there ? 0 : missing + 1;
        err = there ? read_related(o, wb_slice_str(name)) : 0;
    }
    return err;
}

static int read_xlsx(struct wb_office *o)
{
    int err = read_core(o);

    if (err == 0)
        err = read_related(o, WB_SLICE_LIT("xl/sharedStrings.xml"));
    return err < 0 ? err : read_numbered(o, "xl/worksheets/sheet");
}

static int read_pptx(struct wb_office *o)
{
    int err = read_core(o);

    return err < 0 ? err : read_numbered(o, "ppt/slides/slide");
}

static int read_odf(struct wb_office *o)
{
    int there = wb_office_load(o, WB_SLICE_LIT("meta.xml"));

    if (there > 0)
        there = wb_office_read_facts(o, false);
    if (there >= 0)
        there = wb_office_load(o, WB_SLICE_LIT("content.xml"));
    return there > 0 ? wb_office_read_text(o, &odf) : there;
}

/* ---- EPUB -------------------------------------------------------------------------------------------- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The path of a part that another one names: without fragment, "%20" decoded, from the folder of the other one. */
static int chapter_path(struct wb_slice package, struct wb_slice href, struct wb_buf *path)
{
    size_t dir = package.len;
    int err = 0;

    while (dir > 0 && package.ptr[dir - 1] != '/')
        dir--;
    wb_buf_clear(path);
    err = wb_buf_append(path, package.ptr, dir);
    while (href.len >= 3 && memcmp(href.ptr, "../", 3) == 0 && path->len > 0) {
        path->len--;
        while (path->len > 0 && path->ptr[path->len - 1] != '/')
            path->len--;
        href = wb_slice(href.ptr + 3, href.len - 3);
    }
    for (size_t i = 0; err == 0 && i < href.len && href.ptr[i] != '#'; i++) {
        bool coded =
            href.ptr[i] == '%' && href.len - i > 2 && hex_of(href.ptr[i + 1]) >= 0 && hex_of(href.ptr[i + 2]) >= 0;
        char c = coded ? (char)(hex_of(href.ptr[i + 1]) * 16 + hex_of(href.ptr[i + 2])) : href.ptr[i];
        err = wb_buf_append_char(path, c);
        i += coded ? 2 : 0;
    }
    return err;
}

static int read_chapters(struct wb_office *o, struct wb_slice package, const struct wb_office_names *manifest,
                         struct wb_slice spine)
{
    struct wb_buf path = WB_BUF_INIT;
    struct wb_xml_token token;
    struct wb_slice id;
    struct wb_xml xml;
    int err = 0;

    wb_xml_init(&xml, spine);
    while (err >= 0 && wb_xml_next(&xml, &token) && o->parts < WB_OFFICE_PARTS_MAX) {
        if (token.kind != WB_XML_OPEN || !wb_xml_is(&token, "itemref"))
            continue;
        err = wb_office_attribute(o, &token, "", "idref", &id);
        const struct wb_office_name *item = err < 0 ? NULL : wb_office_find_name(manifest, id);
        if (!item)
            continue;
        err = chapter_path(package, item->target, &path);
        if (err == 0)
            err = wb_office_load(o, wb_buf_slice(&path));
        if (err > 0)
            err = wb_office_read_text(o, &xhtml);
    }
    wb_buf_release(&path);
    return err < 0 ? err : 0;
}

/* Where the package is: the first root file of the container. */
static int find_package(struct wb_office *o, struct wb_slice *path_out)
{
    struct wb_xml_token token;
    struct wb_xml xml;
    int there = wb_office_load(o, WB_SLICE_LIT("META-INF/container.xml"));

    *path_out = WB_SLICE_EMPTY;
    wb_xml_init(&xml, wb_buf_slice(&o->part));
    while (there > 0 && wb_xml_next(&xml, &token))
        if (token.kind == WB_XML_OPEN && wb_xml_is(&token, "rootfile"))
            return wb_office_attribute(o, &token, "", "full-path", path_out);
    return there < 0 ? there : 0;
}

static int read_epub(struct wb_office *o)
{
    struct wb_office_names manifest = WB_VEC_INIT;
    struct wb_buf spine = WB_BUF_INIT;
    struct wb_slice package;
    int err = find_package(o, &package), there = err < 0 ? err : wb_office_load(o, package);

    err = there < 0 ? there : 0;
    if (there > 0)
        err = wb_office_read_facts(o, true);
    if (there > 0 && err == 0)
        err = wb_office_read_names(o, "item", "id", "href", NULL, NULL, &manifest);
    spine = wb_buf_take(&o->part); /* which the chapters come into */
    if (there > 0 && err == 0)
        err = read_chapters(o, package, &manifest, wb_buf_slice(&spine));
    wb_buf_release(&spine);
    wb_vec_release(&manifest);
    return err;
}

/* ---- the module -------------------------------------------------------------------------------------- */

static bool accepts_office(struct wb_slice type)
{
    return wb_slice_equal(type, WB_SLICE_LIT("application/epub+zip")) ||
           wb_slice_starts(type, WB_SLICE_LIT("application/vnd.openxmlformats-officedocument.")) ||
           wb_slice_equal(type, WB_SLICE_LIT("application/vnd.oasis.opendocument.text")) ||
           wb_slice_equal(type, WB_SLICE_LIT("application/vnd.oasis.opendocument.spreadsheet")) ||
           wb_slice_equal(type, WB_SLICE_LIT("application/vnd.oasis.opendocument.presentation"));
}

static int read_format(struct wb_office *o)
{
    static const struct {
        const char *part;
        int (*read)(struct wb_office *o);
    } formats[] = {
        {"word/document.xml", read_docx},      {"xl/workbook.xml", read_xlsx}, {"ppt/presentation.xml", read_pptx},
        {"META-INF/container.xml", read_epub}, {"content.xml", read_odf},
    };

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (wb_office_has(o, formats[i].part))
            return formats[i].read(o);
    o->x->out->module_error = "failed";
    return 0;
}

/* Opens the ZIP file: 1, or 0 if it is none that can be read. */
static int open_archive(struct wb_office *o)
{
    struct wb_slice body = o->x->input->body;
    int err = wb_nameless_memory(&o->file);

    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    err = wb_file_write_at(&o->file, 0, body.ptr, body.len);
    if (err == 0)
        err = wb_zipdir_read(&o->dir, &o->file);
    if (err == WB_E_NOMEM)
        return err;
    return err == 0 && o->dir.entries.count <= WB_OFFICE_ENTRIES_MAX;
}

static int run_office(struct wb_extractor *x)
{
    struct wb_office o = {.x = x, .file = WB_FILE_INIT};
    uint64_t bytes = 0;
    int opened = open_archive(&o), err = opened < 0 ? opened : 0;

    if (opened == 0)
        x->out->module_error = "failed";
    for (size_t i = 0; opened > 0 && i < o.dir.entries.count && bytes < WB_EXTRACT_TEXT_MAX; i++)
        bytes += o.dir.entries.items[i].size;
    if (opened > 0)
        err = wb_sink_room(x, bytes < WB_EXTRACT_TEXT_MAX ? (size_t)bytes : WB_EXTRACT_TEXT_MAX);
    if (opened > 0 && err == 0)
        err = read_format(&o);
    wb_vec_release(&o.links);
    wb_buf_release(&o.part);
    wb_buf_release(&o.decoded);
    wb_zipdir_release(&o.dir);
    wb_file_close(&o.file);
    return err;
}

const struct wb_module wb_module_office = {
    .name = "office",
    .binary = true,
    .accepts = accepts_office,
    .run = run_office,
};
