/*
 * htmlnames.h - private to page: what the words that authors use say about a part of a page.
 *
 * Elements are named for style sheets, and the same few words are used everywhere: "comments",
 * "related-posts", "sidebarLeft", "post-meta". Headings tell as much: "Read also", "Leave a reply".
 * The vocabulary has words of many sites in many languages, and no rule for any one site.
 */
#ifndef WB_EXTRACT_HTMLNAMES_H
#define WB_EXTRACT_HTMLNAMES_H

#include "base/slice.h"

enum wb_names_mean {
    WB_NAMES_COMMENT = 1 << 0, /* what readers wrote */
    WB_NAMES_AROUND = 1 << 1,  /* navigation, related items, advertising, ... */
    WB_NAMES_SMALL = 1 << 2,   /* author, date, tags, captions */
    WB_NAMES_HIDDEN = 1 << 3,  /* not shown, or not to everybody */
    WB_NAMES_NEVER = 1 << 4,   /* with WB_NAMES_AROUND: however much text it has */
};

/* What a class or id says. */
struct wb_names {
    uint8_t means;  /* enum wb_names_mean */
    uint8_t around; /* the number of the first word that said WB_NAMES_AROUND, or 0 */
};
#define WB_NAMES_WORDS_MAX 256

/* Finds words and headings by their first four bytes. */
#define WB_NAMES_SLOTS 1024
struct wb_names_slot {
    uint32_t key;
    uint16_t number; /* 0: free */
};

/* Names that were read before: pages of a site have the same. Two with the same hash are taken for one. */
#define WB_NAMES_SEEN 1024
struct wb_names_seen {
    uint64_t hash;
    struct wb_names names;
};

struct wb_names_index {
    struct wb_names_slot words[WB_NAMES_SLOTS], heads[WB_NAMES_SLOTS];
    struct wb_names_seen seen[WB_NAMES_SEEN];
};

void wb_names_index_init(struct wb_names_index *index);

/* All that the words of a class or id say. */
struct wb_names wb_names_of(struct wb_names_index *index, struct wb_slice name);

/* What the text of a heading says of what follows: WB_NAMES_COMMENT, WB_NAMES_AROUND or 0. */
unsigned wb_names_of_heading(const struct wb_names_index *index, struct wb_slice text);

#endif
