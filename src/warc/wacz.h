/*
 * wacz.h - part of warc's door: reads the archives inside a WACZ file, which is a ZIP file (docs/formats/wacz.md).
 *
 *   open -> read_package -> for each entry: { [open_archive -> wb_warc_next ... -> wb_warc_close] -> check } -> close
 *
 * Nothing is unpacked: archives are read where they are, stored or deflated. The file comes from a stranger, so memory
 * and work are bounded by its size, whatever it says (zipdir.h). The index and the list of pages are not used: the
 * archives say everything that they say.
 */
#ifndef WB_WARC_WACZ_H
#define WB_WARC_WACZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wb_wacz;
struct wb_warc_reader;

/* Whether a file is meant to be a WACZ: it starts as a ZIP file does, or its name ends in .wacz. */
bool wb_wacz_is(const char *path);

/* WB_E_PROTO if it is not a ZIP file or has no archives, WB_E_CORRUPT, WB_E_LIMIT; each message names the file. */
int wb_wacz_open(const char *path, struct wb_wacz **wacz_out);
void wb_wacz_close(struct wb_wacz *wacz);

/*
 * Reads datapackage.json, which has a hash of each entry. WB_E_NOTFOUND if there is none, WB_E_PROTO if it makes no
 * sense, WB_E_CORRUPT if it lists an entry that is not there. The archives can be read in any case.
 */
int wb_wacz_read_package(struct wb_wacz *wacz);

struct wb_wacz_entry {
    const char *name;       /* the file and the entry, for messages: "some.wacz:archive/data.warc.gz" */
    bool archive;           /* it is a WARC or ARC file in archive/ */
    uint64_t offset, bytes; /* where it is in the file, and how many bytes it has there */
};

/* Entries are in the order of the file, from 0. Returns false after the last one. The name is valid until the close. */
bool wb_wacz_entry(const struct wb_wacz *wacz, size_t i, struct wb_wacz_entry *entry_out);

/* Opens an archive as wb_warc_open() does. Close the reader before the WACZ. Offsets are those inside the archive. */
int wb_wacz_open_archive(struct wb_wacz *wacz, size_t i, size_t block_max, struct wb_warc_reader **reader_out);

/*
 * Compares an entry with its checksums: that of the ZIP file, and that of datapackage.json. Bytes that were read before
 * are not read again. Call it once for each entry. WB_E_CORRUPT if they differ. An entry that is neither an archive nor
 * listed is not read.
 */
int wb_wacz_check(struct wb_wacz *wacz, size_t i);

#endif
