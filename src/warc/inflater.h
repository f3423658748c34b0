/*
 * inflater.h - private to warc: random access to bytes that are deflated in a file.
 *
 * Going forward costs what inflating costs. The newest bytes are kept, so small steps back are free. For larger ones
 * the state of the decoder is saved now and then; a jump continues from the last state before the place.
 *
 *   |-----mark----------mark----------mark---[kept bytes]| next
 *   0                                                      -> size
 *
 * The work is bounded: somebody who makes the reader jump back and forth forever gets WB_E_LIMIT.
 */
#ifndef WB_WARC_INFLATER_H
#define WB_WARC_INFLATER_H

#include "os/file.h"

struct wb_inflater;

/* How many bytes come out between two saved states; the more there are, the larger this becomes. */
#define WB_INFLATER_MARK_BYTES ((uint64_t)4 << 20)

/* at, packed: where the deflated bytes are in the file, which must stay open. size: how many bytes must come out. */
int wb_inflater_new(const struct wb_file *file, uint64_t at, uint64_t packed, uint64_t size, uint64_t mark_bytes,
                    struct wb_inflater **inflater_out);
void wb_inflater_free(struct wb_inflater *inflater);

/*
 * Reads len bytes, which must lie inside. name is for messages. WB_E_CORRUPT if the data is damaged: *got_out is then
 * how many of these bytes come before the damage. WB_E_LIMIT, WB_E_IO.
 */
int wb_inflater_read_at(struct wb_inflater *inflater, const char *name, uint64_t offset, void *bytes_out, size_t len,
                        size_t *got_out);

#endif
