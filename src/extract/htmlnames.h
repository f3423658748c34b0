/*
 * htmlnames.h - private to extract: what the names of elements and the words of headings say about a
 * part of a page. Used by htmldrop.c and htmltext.c.
 *
 * Authors name elements for style sheets, and use the same few words everywhere: "comments",
 * "related-posts", "sidebarLeft", "post-meta". Headings say as much: "Read also", "Leave a reply".
 * The vocabulary has words of many sites in many languages, but no rule for any single site.
 */
#ifndef WB_EXTRACT_HTMLNAMES_H
#define WB_EXTRACT_HTMLNAMES_H

#include "base/slice.h"

enum wb_names_mean {
    WB_NAMES_COMMENT = 1 << 0, /* written by readers */
    WB_NAMES_AROUND = 1 << 1,  /* navigation, related items, advertising, ... */
    WB_NAMES_SMALL = 1 << 2,   /* author, date, tags, captions */
    WB_NAMES_HIDDEN = 1 << 3,  /* not shown, or not to everyone */
    WB_NAMES_NEVER = 1 << 4,   /* with WB_NAMES_AROUND: never content, however much text it has */
};

/* What a class or an id says. */
struct wb_names {
    uint8_t means;  /* enum wb_names_mean */
    uint8_t around; /* the number of the first word that means WB_NAMES_AROUND, or 0 */
};
#define WB_NAMES_WORDS_MAX 256

/* A slot of a hash table that finds words and headings by their first four bytes. */
#define WB_NAMES_SLOTS 1024
struct wb_names_slot {
    uint32_t key;
    uint16_t number; /* 0 if the slot is free */
};

/*
 * A cache of names that were read before, because the pages of a site use the same ones. Two names
 * with the same hash are taken for the same name.
 */
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

/* What the words of a class or an id say together. */
struct wb_names wb_names_of(struct wb_names_index *index, struct wb_slice name);

/* What the text of a heading says about what follows it: WB_NAMES_COMMENT, WB_NAMES_AROUND or 0. */
unsigned wb_names_of_heading(const struct wb_names_index *index, struct wb_slice text);

#endif
