/*
 * zipdir.h - the door of zipdir: the directory of a ZIP file, read from a stranger.
 *
 * The directory is at the end of the file and is small, so it is read whole. It is refused unless every entry lies
 * inside the file, before the directory, and overlaps no other: then reading all entries costs no more than the size
 * of the file says.
 */
#ifndef WB_ZIPDIR_ZIPDIR_H
#define WB_ZIPDIR_ZIPDIR_H

#include "base/buf.h"
#include "base/vec.h"
#include "os/file.h"

#define WB_ZIPDIR_BYTES_MAX ((uint64_t)64 << 20) /* of the whole directory... */
#define WB_ZIPDIR_ENTRIES_MAX (1u << 18)         /* ...and how many entries it may have */

/* deflate cannot do better than 1032 to 1; archives and text never reach this. */
#define WB_ZIPDIR_RATIO_MAX 200u
#define WB_ZIPDIR_RATIO_FREE ((uint64_t)16 << 20) /* so many bytes may come out in any case */

enum wb_zipdir_method { WB_ZIPDIR_STORED = 0, WB_ZIPDIR_DEFLATED = 8 };

struct wb_zipdir_entry {
    struct wb_slice name;  /* not empty, relative, without ".." and control characters */
    uint64_t offset;       /* of its local header */
    uint64_t limit;        /* where the next entry or the directory begins */
    uint64_t packed, size; /* bytes in the file; bytes when inflated */
    uint32_t crc;          /* of the inflated bytes */
    uint16_t method;       /* may be unknown to us */
    uint16_t flags;
};

struct wb_zipdir {
    struct wb_buf bytes;                    /* the names borrow from this */
    WB_VEC(struct wb_zipdir_entry) entries; /* in the order of their offsets; no two have the same name */
};

/* WB_E_PROTO if the file is not a ZIP file, WB_E_CORRUPT, WB_E_LIMIT: each names the file. Release it even then. */
int wb_zipdir_read(struct wb_zipdir *dir, const struct wb_file *file);
void wb_zipdir_release(struct wb_zipdir *dir);

/*
 * Finds the first byte of an entry's data, behind its local header. WB_E_CORRUPT if the header is not that of the
 * entry; WB_E_PROTO if the entry is encrypted, or compressed in a way that we do not read, or expands too far.
 */
int wb_zipdir_data(const struct wb_file *file, const struct wb_zipdir_entry *entry, uint64_t *data_out);

/*
 * Reads an entry and inflates it. WB_E_LIMIT if that gives more than max bytes, WB_E_CORRUPT if they are not what the
 * directory says; and as above.
 */
int wb_zipdir_load(const struct wb_file *file, const struct wb_zipdir_entry *entry, size_t max, struct wb_buf *out);

#endif
