/*
 * s3_keys.h - the keys with which requests are signed, and where they come from.
 *
 *   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN     if the first two are set; otherwise
 *   ~/.aws/credentials                   the part [default], or that which AWS_PROFILE names;
 * AWS_SHARED_CREDENTIALS_FILE names another file
 *
 * Keys that are only good for some hours are renewed by somebody who writes the file again. So when the store refuses
 * keys of the file, it is read again.
 */
#ifndef WB_OBJECT_S3_KEYS_H
#define WB_OBJECT_S3_KEYS_H

#include <stdbool.h>

#include "base/slice.h"

struct wb_s3_keys {
    char *access, *secret;
    char *token;      /* NULL: there is none */
    unsigned holders; /* of the ring that they are on */
};

struct wb_s3_keyring;

/* Finds the keys. WB_E_DENIED says where they were looked for. for_whom: the store, for messages. */
int wb_s3_keyring_open(const char *for_whom, struct wb_s3_keyring **ring_out);
void wb_s3_keyring_close(struct wb_s3_keyring *ring); /* NULL is fine; nobody may hold keys any more */

/* The keys of now. They stay as they are until they are dropped. From any thread. */
const struct wb_s3_keys *wb_s3_keyring_hold(struct wb_s3_keyring *ring);
void wb_s3_keyring_drop(struct wb_s3_keyring *ring, const struct wb_s3_keys *keys);

/* After the store has refused keys: returns true if there are others by now, in the file or since it was read. */
bool wb_s3_keyring_renew(struct wb_s3_keyring *ring, const struct wb_s3_keys *refused);

/* What a person must look at if a key is wrong: "AWS_SECRET_ACCESS_KEY", or "aws_secret_access_key of [default] in
 * FILE". */
enum wb_s3_key { WB_S3_ACCESS, WB_S3_SECRET, WB_S3_TOKEN, WB_S3_KEY_COUNT };
const char *wb_s3_keyring_place(const struct wb_s3_keyring *ring, enum wb_s3_key key);

/*
 * Finds the keys of a profile in the text of such a file. Those that it does not have are empty. Returns whether it has
 * the profile.
 */
bool wb_s3_credentials_find(struct wb_slice text, struct wb_slice profile, struct wb_slice found_out[WB_S3_KEY_COUNT]);

#endif
