/* s3_refusal.h - what an answer that is an error means for the caller, and what a person must do about it. */
#ifndef WB_OBJECT_S3_REFUSAL_H
#define WB_OBJECT_S3_REFUSAL_H

#include "object/s3_answer.h"
#include "object/s3_http.h"
#include "object/s3_keys.h"

struct wb_s3_refusal {
    const struct wb_object_url *url;
    const char *host;   /* that was asked */
    const char *region; /* for which it was signed */
    const char *name;   /* of the object; NULL: the bucket was listed */
    const char *access; /* the access key */
    const struct wb_s3_keyring *ring;
    const struct wb_s3_exchange *exchange;
    struct wb_s3_error error;
};

/* Sets the message and returns the code: WB_E_DOWN if it may pass. */
int wb_s3_refuse(const struct wb_s3_refusal *refusal);

/* Whether other keys might be accepted: these have expired, or are unknown or wrong by now. */
bool wb_s3_refusal_of_keys(const struct wb_s3_refusal *refusal);

#endif
