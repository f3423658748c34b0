/* stage_bar.c - what the bar over a stored page says. web/stage.js brings it up to date when the frame goes elsewhere.
 */
#include "serve/stage.h"

void wb_stage_bar(struct wb_htmlpen *h, const struct wb_stage *stage)
{
    struct wb_htmlpen_value url = wb_htmlpen_text(stage->url);

    wb_page_asset(h,
                  "<a class=\"brand\" href=\"/\" title=\"WebBase: search\"><img src=\"/assets/{}?{}\" alt=\"WebBase\" "
                  "width=\"20\" height=\"20\"></a>\n",
                  "icon.svg");
    wb_htmlpen_put(h,
                   "<p class=\"stage-what\"><span id=\"stage-time\">{}</span> "
                   "<span id=\"stage-url\" class=\"stage-url\" title=\"{}\">{}</span></p>\n",
                   wb_htmlpen_time(stage->timeline->times[stage->at]), url, url);
    wb_htmlpen_put(
        h, "<nav aria-label=\"Versions\">\n<a id=\"stage-newest\" rel=\"nofollow\" href=\"/web/{}\">newest</a>\n", url);
    wb_htmlpen_put(h, "<a id=\"stage-all\" rel=\"nofollow\" href=\"/web/*/{}\">all versions</a>\n", url);
    if (wb_htmlpen_is_web_url(stage->url))
        wb_htmlpen_put(
            h, "<a id=\"stage-live\" href=\"{}\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">live web</a>\n",
            url);
    wb_htmlpen_raw(h, "</nav>\n");
}
