/*
 * linkwork.h - the links of the next generation: both graphs, and the words of links.
 */
#ifndef WB_INDEX_LINKWORK_H
#define WB_INDEX_LINKWORK_H

#include "index/build.h"

/*
 * Writes out.wbg and in.wbg, fills in build->inlinks and anchors, and adds the texts of links to runs:
 * of all URLs, or, if the build is based on an earlier generation, of those whose texts have changed; what these had
 * before is marked in build->carry.keep.
 */
int wb_linkwork(struct wb_build *build);

#endif
