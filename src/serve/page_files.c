/* page_files.c - GET /files?url=[&time=TIME][&apart=SECONDS]: the files of a stored page and their distances for
 * people. */
#include "base/check.h"
#include "serve/distance.h"
#include "serve/embedded.h"
#include "serve/htmlpen.h"

static void add_file(struct wb_htmlpen *h, const struct wb_embedded *e, const struct wb_embedded_file *file)
{
    char words[WB_DISTANCE_MAX];

    WB_CHECK(file->sheet == SIZE_MAX || file->sheet < (size_t)(file - e->files.items)); /* it was named before */
    wb_htmlpen_put(h, "<tr><td class=\"long\"><a href=\"/calendar?url={}\">{}</a>", wb_htmlpen_param(file->url),
                   wb_htmlpen_text(file->url));
    if (file->sheet != SIZE_MAX)
        wb_htmlpen_put(h, "<br><span class=\"quiet\">named by {}</span>",
                       wb_htmlpen_text(e->files.items[file->sheet].url));
    wb_htmlpen_put(h, "</td><td>{}</td>", wb_htmlpen_str(wb_embedded_kind(file)));
    if (file->found)
        wb_htmlpen_put(h, "<td>{}</td><td><a href=\"/web/{}/{}\">{}</a></td><td class=\"number\">{}</td></tr>\n",
                       wb_htmlpen_str(wb_distance_words(e->page.time_ms, file->time_ms, words)),
                       wb_htmlpen_digits(file->time_ms), wb_htmlpen_text(file->url), wb_htmlpen_time(file->time_ms),
                       wb_htmlpen_plain(file->status));
    else
        wb_htmlpen_raw(h, "<td>missing</td><td>never captured</td><td></td></tr>\n");
}

static void add_files(struct wb_htmlpen *h, const struct wb_embedded *e, enum wb_embedded_state state,
                      const char *title)
{
    if (e->counts[state] == 0)
        return;
    wb_htmlpen_put(h, "<section>\n<h2>{}: {}</h2>\n<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">File</th>",
                   wb_htmlpen_str(title), wb_htmlpen_number(e->counts[state]));
    wb_htmlpen_raw(h, "<th scope=\"col\">Kind</th><th scope=\"col\">Captured</th><th scope=\"col\">Time</th>"
                      "<th scope=\"col\" class=\"number\">Status</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < e->files.count; i++)
        if (wb_embedded_state(e, &e->files.items[i]) == state)
            add_file(h, e, &e->files.items[i]);
    wb_htmlpen_raw(h, "</tbody>\n</table></div>\n</section>\n");
}

static void show(struct wb_call *call, const struct wb_embedded *e)
{
    char apart[WB_DISTANCE_MAX];
    struct wb_htmlpen h;
    int words;

    wb_distance_words(0, e->apart_ms, apart);
    words = e->apart_ms >= 1000 ? (int)strlen(apart) - (int)strlen(" later") : 0;
    wb_page_begin(call, &h, &(struct wb_page_frame){.title = WB_SLICE_LIT("Files of a page"), .place = WB_PAGE_VIEW});
    wb_htmlpen_put(&h, "<article>\n<h1>Files of a page</h1>\n<p class=\"address\">{}</p>\n",
                   wb_htmlpen_text(e->page.url));
    wb_htmlpen_put(&h, "<p>The page was captured <a href=\"/web/{}/{}\">{}</a>. ", wb_htmlpen_digits(e->page.time_ms),
                   wb_htmlpen_text(e->page.url), wb_htmlpen_time(e->page.time_ms));
    if (e->files.count == 0)
        wb_htmlpen_raw(&h, "It names no files that it is shown with.</p>\n");
    else
        wb_htmlpen_put(&h, "It names {} {}, and each is shown by its capture that is nearest in time.</p>\n",
                       wb_htmlpen_number(e->files.count), wb_htmlpen_str(e->files.count == 1 ? "file" : "files"));
    if (e->cut)
        wb_htmlpen_raw(&h, "<p class=\"note\">The page has more files than are looked at here.</p>\n");
    if (e->files.count)
        wb_htmlpen_put(&h, "<p class=\"quiet\">\"Apart\" are those whose time differs by more than {}.</p>\n",
                       wb_htmlpen_text(words > 0 ? wb_slice(apart, (size_t)words) : WB_SLICE_LIT("nothing")));
    add_files(&h, e, WB_EMBEDDED_MISSING, "Missing");
    add_files(&h, e, WB_EMBEDDED_FAR, "Apart");
    add_files(&h, e, WB_EMBEDDED_NEAR, "Near in time");
    wb_htmlpen_raw(&h, "</article>\n");
    wb_page_end(call, &h);
}

void wb_handle_files_page(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_embedded e;
    int err = wb_embedded_read(call, &e);

    if (err == 0)
        show(call, &e);
    else
        wb_call_fail(call, err);
    wb_embedded_release(&e);
}
