/* s3_sign.h - AWS Signature Version 4: proves with each request that its sender has the secret key. */
#ifndef WB_OBJECT_S3_SIGN_H
#define WB_OBJECT_S3_SIGN_H

#include "base/buf.h"

#define WB_S3_DATE_MAX 17   /* YYYYMMDDThhmmssZ and NUL */
#define WB_S3_SHA256_HEX 65 /* 64 digits and NUL */

/* A field that is sent and signed. The name is in lower case; the value has no blanks at its ends, and none twice. */
struct wb_s3_field {
    const char *name;
    const char *value;
};

struct wb_s3_signing {
    const char *access, *secret; /* the keys */
    const char *region;
    const char *date; /* as wb_s3_date_format() writes it; also sent as x-amz-date */
    const char *method;
    const char *path;                 /* percent-encoded, as sent */
    const char *query;                /* percent-encoded, as sent, in order of names; empty: there is none */
    const struct wb_s3_field *fields; /* in ascending order of names; host is one of them */
    size_t field_count;
    const char *payload; /* the SHA-256 of the body, in hexadecimal */
};

void wb_s3_date_format(int64_t time_ms, char text_out[WB_S3_DATE_MAX]);
int wb_s3_sha256(struct wb_slice bytes, char hex_out[WB_S3_SHA256_HEX]);

/* Appends the value of the field Authorization. */
int wb_s3_sign(const struct wb_s3_signing *signing, struct wb_buf *out);

/* Appends text with everything encoded but letters, digits and -_.~; with slashes, '/' stays as well. */
int wb_s3_encode(struct wb_slice text, bool slashes, struct wb_buf *out);

#endif
