/*
 * warcinput.h - private to warc: the bytes of one archive, wherever they are: a file, or an entry of a ZIP file.
 *
 *   file              bytes as they are
 *   stored entry      the same, shifted by where the entry begins
 *   deflated entry    inflated on the way (inflater.c); reading backwards costs time, but little memory
 *
 * The reader of records (source.c) reads at any offset, usually in order. Of an entry that has checksums, the bytes are
 * digested as they pass by, so that checking them at the end reads nothing twice.
 */
#ifndef WB_WARC_WARCINPUT_H
#define WB_WARC_WARCINPUT_H

#include "os/file.h"
#include "zipdir/zipdir.h"

#include <openssl/evp.h>

/* What has been digested of an entry so far: always a prefix of its bytes. */
struct wb_warcsum {
    uint64_t done;
    uint32_t crc;
    EVP_MD_CTX *digest; /* NULL: only the CRC is computed */
};

struct wb_inflater;

struct wb_warcinput {
    struct wb_file file; /* owned, unless it is an entry: then the file is that of the ZIP file, and stays open */
    char *name;          /* for messages; owned */
    bool entry;
    uint64_t base;                /* where the first byte is in the file */
    uint64_t size;                /* of the archive; shrinks to the part that can be inflated if there is damage */
    bool damaged;                 /* it has shrunk */
    struct wb_inflater *inflater; /* of a deflated entry */
    struct wb_warcsum *sum;       /* the caller's; may be NULL */
};

/* Takes ownership of the file even if it fails. */
int wb_warcinput_open_file(struct wb_file *file, struct wb_warcinput **input_out);

/* The file and the sum must stay until the input is closed. */
int wb_warcinput_open_entry(const struct wb_file *file, const struct wb_zipdir_entry *entry, struct wb_warcsum *sum,
                            struct wb_warcinput **input_out);
void wb_warcinput_close(struct wb_warcinput *input);

/*
 * Reads up to len bytes. *got_out is less than len only at the end. Never WB_E_CORRUPT: damage of a deflated entry ends
 * it, and wb_warcinput_finish_sum() tells.
 */
int wb_warcinput_read_at(struct wb_warcinput *input, uint64_t offset, void *bytes_out, size_t len, size_t *got_out);

/* Reads what was not digested yet, so that the sum covers everything. WB_E_CORRUPT if not all of it can be inflated. */
int wb_warcinput_finish_sum(struct wb_warcinput *input);

#endif
