/* s3_endpoint.h - to which server requests for a bucket go. */
#ifndef WB_OBJECT_S3_ENDPOINT_H
#define WB_OBJECT_S3_ENDPOINT_H

#include "object/objecturl.h"

#define WB_S3_REGION_MAX 64

struct wb_s3_endpoint {
    char *origin; /* "http://127.0.0.1:9000" */
    char *host;   /* "127.0.0.1:9000", as in the field Host: without a port that goes without saying */
    char *path;   /* what precedes the prefix, encoded: "/bucket", "/base/bucket", or empty */
    char region[WB_S3_REGION_MAX];
    bool loopback; /* on this machine */
};

/* From the environment: AWS_ENDPOINT_URL, AWS_REGION or AWS_DEFAULT_REGION. WB_E_INVALID names the variable. */
int wb_s3_endpoint_find(const struct wb_object_url *url, struct wb_s3_endpoint *endpoint_out);

/* The same, from texts: endpoint is empty if there is none, region as well. */
int wb_s3_endpoint_parse(const char *endpoint, const char *region, const char *bucket,
                         struct wb_s3_endpoint *endpoint_out);
void wb_s3_endpoint_release(struct wb_s3_endpoint *endpoint);

#endif
