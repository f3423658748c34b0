/*
 * waczpen.h - part of ingest's door: writes a WACZ file, which is a ZIP file of archives, their index and a list of
 * pages (docs/formats/wacz.md).
 *
 *   open -> pages are written through its WARC writer ... -> finish -> close          (close is safe at any time)
 *
 *   struct wb_waczpen *pen;
 *   int err = wb_waczpen_open(&options, &pen);
 *   if (err == 0)
 *       err = wb_warc_write_page(wb_waczpen_writer(pen), &page);
 *   if (err == 0)
 *       err = wb_waczpen_finish(pen);
 *   wb_waczpen_close(pen);
 *
 * The bytes go to a sink in order. Records are written as they come; their lines in the index and in the list of pages
 * are sorted on the way, in bounded memory and temporary files without a name.
 */
#ifndef WB_INGEST_WACZPEN_H
#define WB_INGEST_WACZPEN_H

#include "warc/warc.h"

#define WB_WACZPEN_ARCHIVE_BYTES (UINT64_C(1) << 30)
#define WB_WACZPEN_MEMORY_BYTES ((size_t)64 << 20)

struct wb_waczpen_options {
    wb_zipwriter_sink sink;
    void *context;
    const char *temporary_dir; /* for the sorter; not needed after open */
    size_t memory_bytes;       /* for the sorter */
    uint64_t archive_bytes;    /* an archive that has so many bytes is ended, and the next one begins */
    int64_t now_ms;
};

struct wb_waczpen;

int wb_waczpen_open(const struct wb_waczpen_options *options, struct wb_waczpen **pen_out);

/* The writer for pages and revisits. It belongs to the pen. */
struct wb_warc_writer *wb_waczpen_writer(struct wb_waczpen *pen);

/* How many archives it has begun. */
unsigned wb_waczpen_archives(const struct wb_waczpen *pen);

/* Writes everything that follows the archives. */
int wb_waczpen_finish(struct wb_waczpen *pen);
void wb_waczpen_close(struct wb_waczpen *pen);

#endif
