/* s3_answer.h - what S3 says in XML: an error, or a page of a listing. */
#ifndef WB_OBJECT_S3_ANSWER_H
#define WB_OBJECT_S3_ANSWER_H

#include "object/objectkind.h"

/* Parts that are missing are empty; longer ones are cut. Control characters have become '?'. */
struct wb_s3_error {
    char code[64]; /* NoSuchKey */
    char message[256];
    char region[64]; /* the right one, if that is the error */
};

/* Never fails: what is no error of S3 has no code. */
void wb_s3_error_read(struct wb_slice xml, struct wb_s3_error *error_out);

/*
 * Reads the answer to ListObjectsV2: adds the objects whose keys begin with `before`, without that part, sets
 * page->more and page->token. Names that no object of ours has are skipped. WB_E_PROTO if it is no such answer.
 */
int wb_s3_listing_read(struct wb_slice xml, const char *before, struct wb_object_page *page);

#endif
