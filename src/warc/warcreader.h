/* warcreader.h - private to warc: the reader's state, and a reader over a file that is open already. */
#ifndef WB_WARC_WARCREADER_H
#define WB_WARC_WARCREADER_H

#include "warc/source.h"
#include "warc/warc.h"

struct wb_warc_reader {
    struct wb_source source;
    size_t block_max;
    size_t taken;            /* bytes of the record delivered last */
    uint64_t offset;         /* of the record being read */
    uint64_t error_offset;
    uint64_t unit_offset;    /* of the unit that the last record started in... */
    uint64_t unit_records;   /* ...and how many started in it so far */
    bool arc;                /* it is an ARC file */
    bool recognised;         /* something that starts like a record was seen */
    bool lost;               /* the next record has to be looked for */
    int final;               /* an error after which there is nothing more */
};

/* What an ARC header looks like is too vague to be looked for in a WARC file. */
static inline bool wb_reader_may_be_arc(const struct wb_warc_reader *r)
{
    return r->arc || !r->recognised;
}

/* Passes over line ends, within the newest unit. */
int wb_reader_skip_line_ends(struct wb_source *s);

/* Takes the file, also when it fails; its path is what messages name and what tells the kind where content does not. */
int wb_warc_open_file(struct wb_file *file, size_t block_max, struct wb_warc_reader **reader_out);

#endif
