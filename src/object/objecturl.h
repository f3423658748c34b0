/* objecturl.h - the parts of the URL of an object store. Used inside this room only. */
#ifndef WB_OBJECT_OBJECTURL_H
#define WB_OBJECT_OBJECTURL_H

#include <stdbool.h>

/* Longer prefixes leave no room for names: S3 allows 1,024 bytes for a key. Longer directories: Linux allows 4,096. */
#define WB_OBJECT_PREFIX_MAX 800
#define WB_OBJECT_DIR_MAX 3800
#define WB_OBJECT_BUCKET_MAX 255

struct wb_object_url {
    char *text; /* as given */
    bool is_s3;
    char *bucket; /* of S3 */
    char *prefix; /* of S3: empty, or what precedes '/' and the name of an object */
    char *dir;    /* of files: absolute; no '/' at its end, unless it is the root */
};

/* WB_E_INVALID names the text and says which URLs there are. */
int wb_object_url_parse(const char *text, struct wb_object_url *url_out);
void wb_object_url_release(struct wb_object_url *url);

#endif
