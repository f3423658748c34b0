/* import_time.h - private to ingest: the time of a record whose own date is missing, unreadable or in the future. */
#ifndef WB_INGEST_IMPORT_TIME_H
#define WB_INGEST_IMPORT_TIME_H

#include "ingest/import_source.h"
#include "warc/warc.h"

/* The time of a page if nothing says when it was fetched: 1990-01-01, before there was a web. */
#define WB_IMPORT_TIME_UNKNOWN INT64_C(631152000000)

/* What is known about the time at a place of an archive. Zeroed at the start of each archive. */
struct wb_import_time {
    int64_t near_ms; /* the date of the last record that had one: of a warcinfo record, or of a neighbour */
};

/* Takes note of the date of any record, before a page is made of it. */
void wb_import_time_note(struct wb_import_time *time, const struct wb_warc_record *record);

/*
 * Sets page->time_ms. A record without a readable date gets that of the Date header of the response, or the date of a
 * record before it in the archive, or WB_IMPORT_TIME_UNKNOWN: never the time of the import, so that importing the
 * archive again gives the same captures. A date that is more than a day ahead of the clock cannot be true; it becomes
 * the time of the import (wb_import_source_fix_time()), which lets later versions in.
 * Returns true, with a message for the user, if the record's own date was not used.
 */
bool wb_import_time_set(const struct wb_import_time *time, const struct wb_warc_record *record, struct wb_page *page,
                        char message_out[WB_IMPORT_SOURCE_MESSAGE_MAX]);

#endif
