/*
 * pdfreader.c - reads PDF with poppler: text, title, author, dates, links, and how many pages there are.
 *
 * The library is loaded when a guest needs it, so that no other process of ours contains it, and no command waits for
 * it. Of what it says, nothing is believed: this runs in a guest.
 */
#include "base/error.h"
#include "base/slice.h"
#include "guest/guestreader.h"

#include <dlfcn.h>
#include <poppler.h>
#include <stdio.h>
#include <string.h>

enum { PAGES_MAX = 20000, ANCHORS_MAX = 2000, ANCHOR_BYTES_MAX = 512 };

#define LIBRARY "libpoppler-glib.so.8"

/* The functions that are used, each with the type that its header gives it. */
#define FUNCTIONS(X)                                                                                                   \
    X(poppler_document_new_from_bytes)                                                                                 \
    X(poppler_document_get_n_pages) X(poppler_document_get_title) X(poppler_document_get_creation_date_time)           \
        X(poppler_document_get_modification_date_time) X(poppler_document_get_page) X(poppler_page_get_text)           \
            X(poppler_page_get_link_mapping) X(poppler_page_free_link_mapping) X(poppler_page_get_text_for_area)       \
                X(poppler_page_get_size) X(g_bytes_new_static) X(g_bytes_unref) X(g_object_unref) X(g_free)            \
                    X(g_date_time_to_unix) X(g_date_time_unref) X(g_clear_error)

static struct {
#define MEMBER(name) __typeof__(&name) call_##name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

static int64_t time_of(GDateTime *date)
{
    int64_t time_ms = date ? lib.call_g_date_time_to_unix(date) * 1000 : 0;

    if (date)
        lib.call_g_date_time_unref(date);
    return time_ms;
}

/* The text below a link. The mapping counts from below, the text from above. */
static char *anchor_of(PopplerPage *page, const PopplerRectangle *area)
{
    double width, height;

    lib.call_poppler_page_get_size(page, &width, &height);
    PopplerRectangle text = {area->x1, height - area->y2, area->x2, height - area->y1};
    return lib.call_poppler_page_get_text_for_area(page, &text);
}

static void read_links(PopplerPage *page, const struct webbase_output *out, unsigned *anchors)
{
    GList *links = lib.call_poppler_page_get_link_mapping(page);

    for (GList *l = links; l; l = l->next) {
        const PopplerLinkMapping *link = l->data;
        if (!link->action || link->action->type != POPPLER_ACTION_URI || !link->action->uri.uri)
            continue;
        char *anchor = (*anchors)++ < ANCHORS_MAX ? anchor_of(page, &link->area) : NULL;
        size_t len = anchor ? strlen(anchor) : 0;
        out->link(out, link->action->uri.uri, strlen(link->action->uri.uri), anchor ? anchor : "",
                  len < ANCHOR_BYTES_MAX ? len : ANCHOR_BYTES_MAX);
        lib.call_g_free(anchor);
    }
    lib.call_poppler_page_free_link_mapping(links);
}

/* Lines are as wide as the page; only its end is one of a paragraph. */
static void join_lines(char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            *text = ' ';
}

/* Returns false when there is no room for more text. */
static bool read_page(PopplerPage *page, const struct webbase_output *out, unsigned *anchors)
{
    char *text = lib.call_poppler_page_get_text(page);
    if (text)
        join_lines(text);
    bool room = !text || out->text(out, text, strlen(text)) == 0;

    lib.call_g_free(text);
    out->text(out, "\n", 1);
    read_links(page, out, anchors);
    return room;
}

static void read_facts(PopplerDocument *document, const struct webbase_output *out, int pages)
{
    char *title = lib.call_poppler_document_get_title(document), count[16];
    int64_t published = time_of(lib.call_poppler_document_get_creation_date_time(document));
    int64_t modified = time_of(lib.call_poppler_document_get_modification_date_time(document));

    if (title)
        out->title(out, title, strlen(title));
    lib.call_g_free(title);
    if (published)
        out->published(out, published);
    if (modified)
        out->modified(out, modified);
    snprintf(count, sizeof count, "%d", pages);
    out->fact(out, "pages", count, strlen(count));
}

static PopplerDocument *open_document(const char *bytes, size_t len)
{
    GError *error = NULL;
    GBytes *body = lib.call_g_bytes_new_static(bytes, len);
    PopplerDocument *document = lib.call_poppler_document_new_from_bytes(body, NULL, &error);

    lib.call_g_bytes_unref(body);
    lib.call_g_clear_error(&error);
    return document;
}

static int pdf_process(void *state, const struct webbase_record *record, const struct webbase_output *out)
{
    PopplerDocument *document = open_document(record->body.ptr, record->body.len);
    unsigned anchors = 0;

    (void)state;
    if (!document)
        return WEBBASE_FAILED;
    int pages = lib.call_poppler_document_get_n_pages(document);
    read_facts(document, out, pages);
    bool room = true;
    for (int i = 0; room && i < pages && i < PAGES_MAX; i++) {
        PopplerPage *page = lib.call_poppler_document_get_page(document, i);
        if (!page)
            continue;
        room = read_page(page, out, &anchors);
        lib.call_g_object_unref(page);
    }
    lib.call_g_object_unref(document);
    return WEBBASE_OK;
}

static int pdf_init(const struct webbase_host *host, void **state_out)
{
    (void)host;
    *state_out = NULL;
    return WEBBASE_OK;
}

static int pdf_finish(void *state, int complete)
{
    (void)state;
    (void)complete;
    return WEBBASE_OK;
}

int wb_pdf_reader(struct wb_guest_reader *reader_out)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return wb_fail(WB_E_NOTFOUND, "%s is not installed (Debian: libpoppler-glib8)", LIBRARY);
#define FIND(name)                                                                                                     \
    {                                                                                                                  \
        void *at = dlsym(library, #name);                                                                              \
        if (!at)                                                                                                       \
            return wb_fail(WB_E_NOTFOUND, LIBRARY " has no " #name);                                                   \
        memcpy(&lib.call_##name, &at, sizeof at);                                                                      \
    }
    FUNCTIONS(FIND)
#undef FIND
    /* Its first document makes it look for configuration, which it can do only now. */
    PopplerDocument *document = open_document("%PDF-1.4\n", 9);
    if (document)
        lib.call_g_object_unref(document);
    *reader_out = (struct wb_guest_reader){"application/pdf", pdf_init, pdf_process, pdf_finish};
    return 0;
}
