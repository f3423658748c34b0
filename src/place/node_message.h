/*
 * node_message.h - what the manager asks a node, and what the node answers. A node is a directory of this machine
 * (node.h) or, with a transport for the bytes that this file describes, another machine.
 *
 * Nothing in a message is a pointer or a descriptor: a file is named relative to the node ("pages/00000007.2.seg"), and
 * whoever uses it is named by a random number, the *owner*. Who does not get an answer sends the request again, with
 * the same owner. That is safe, because every request is idempotent: done twice, or once more after an answer that was
 * lost, it has the effect and the answer of doing it once.
 *
 *   kind       name  what it does                                      why it can be repeated
 *   identity         who the node is                                   changes nothing
 *   space            capacity, free bytes, read-only                   changes nothing
 *   list       (*)   names and sizes of files                          changes nothing; goes on after the name (*)
 *   create     file  makes an empty file, claimed by the owner         the owner has it already: the same answer
 *   open       file  keeps it readable even if it is removed           the owner has it open already: the same answer
 *   close      file  the owner needs it no more; ends its claim        what is not open is closed
 *   read       file  up to `length` bytes at `offset`                  changes nothing
 *   write      file  bytes at `offset`; needs the owner's claim        writes the same bytes to the same place
 *   size       file  its size                                          changes nothing
 *   sync       file  makes its bytes durable                           what is durable stays so
 *   sync names       makes names durable: files created and removed    what is durable stays so
 *   truncate   file  sets the size to `offset`; needs the claim        sets the same size again
 *   remove     file  removes its name                                  what is gone is removed
 *   claim      file  makes the owner the only one who writes           the owner has the claim already
 *   release    file  ends the claim                                    there is none any more
 *   hint       file  what will be read or is no longer needed          may be ignored anyway
 *
 * A repetition can also arrive late, when others have used the file meanwhile. Therefore writing needs a claim: a late
 * write of an owner that has released its claim is refused, and removing is refused as long as another owner has one.
 * A file that is created is claimed from its first moment, so a late removal never hits a new file of the same name.
 * Claims end when the owner's process ends, or when its connection does.
 */
#ifndef WB_PLACE_NODE_MESSAGE_H
#define WB_PLACE_NODE_MESSAGE_H

#include "base/buf.h"
#include "place/node_identity.h"

enum wb_node_kind {
    WB_NODE_IDENTITY = 1,
    WB_NODE_SPACE,
    WB_NODE_LIST,
    WB_NODE_CREATE,
    WB_NODE_OPEN,
    WB_NODE_CLOSE,
    WB_NODE_READ,
    WB_NODE_WRITE,
    WB_NODE_SIZE,
    WB_NODE_SYNC,
    WB_NODE_SYNC_NAMES,
    WB_NODE_TRUNCATE,
    WB_NODE_REMOVE,
    WB_NODE_CLAIM,
    WB_NODE_RELEASE,
    WB_NODE_HINT,
    WB_NODE_KINDS /* no kind: their number */
};

/* What a hint says of `length` bytes at `offset`. */
enum wb_node_hint {
    WB_NODE_SEQUENTIAL, /* the file will be read from start to end */
    WB_NODE_WRITE_BACK, /* the disk should begin to write */
    WB_NODE_DISCARD,    /* no longer needed: may be freed, and may read as zeros. Needs the claim */
    WB_NODE_HINTS
};

enum {
    WB_NODE_NAME_MAX = 64,        /* with the NUL */
    WB_NODE_BYTES_MAX = 16 << 20, /* in one message; larger transfers are divided (node_file.h) */
    WB_NODE_LIST_BYTES_MIN = 128, /* a listing asks for at least this many bytes, so that one entry fits */
    WB_NODE_REQUEST_BYTES = 56,   /* of an encoded request, without name and bytes */
    WB_NODE_REPLY_BYTES = 104,
};

struct wb_node_request {
    enum wb_node_kind kind;
    uint64_t owner;   /* not 0, in requests that name a file; see node_file.h */
    const char *name; /* of the file, "" for none; in a listing: the name after which it goes on */
    uint64_t offset;
    uint64_t length;       /* read, list: how many bytes at most; hint: of how many */
    struct wb_slice bytes; /* to write, borrowed */
    bool write;            /* open: for writing as well */
    enum wb_node_hint hint;

    /* ---- the following is not part of the message ---- */
    void *into;    /* read, list: room for `length` bytes */
    uint32_t seat; /* where the node found the file the last time (reply), or 0: saves looking for it */
};

struct wb_node_reply {
    int code;                         /* 0, or a code of base/error.h */
    struct wb_slice message;          /* of an error; borrowed, from the thread's message or from the encoded reply */
    struct wb_slice bytes;            /* read, list: what was read. In request.into, or in the encoded reply */
    uint64_t size;                    /* of the file: size */
    uint64_t capacity, free;          /* space */
    bool read_only;                   /* space */
    bool more;                        /* list: there are more names */
    struct wb_node_identity identity; /* identity; number 0: the node has none */
    uint32_t seat;                    /* not part of the message */
};

/* Whether this is the name of a file of a node: pages/ and one component of letters, digits, '.', '_' and '-'. */
bool wb_node_name_valid(struct wb_slice name);

/* WB_E_INVALID if the request makes no sense: no owner, a name outside the node, too many bytes. */
int wb_node_request_check(const struct wb_node_request *request);

/* ---- as bytes (docs/formats/node.md) ------------------------------------------------------------- */

/* Appends the request, which must be valid, to out. */
int wb_node_request_encode(const struct wb_node_request *request, struct wb_buf *out);

/*
 * Reads a request. WB_E_PROTO if the bytes are not exactly one request, which could have been encoded; WB_E_NEWER if
 * it is of a later version. The request borrows from bytes, and its name is copied to name_out.
 */
int wb_node_request_decode(struct wb_slice bytes, char name_out[WB_NODE_NAME_MAX], struct wb_node_request *request_out);

int wb_node_reply_encode(const struct wb_node_reply *reply, struct wb_buf *out);
int wb_node_reply_decode(struct wb_slice bytes, struct wb_node_reply *reply_out);

/* ---- entries of a listing ------------------------------------------------------------------------ */

struct wb_node_entry {
    char name[WB_NODE_NAME_MAX];
    uint64_t size, disk_bytes;
};

/* Writes an entry to `to`, where there is room for WB_NODE_LIST_BYTES_MIN bytes, and returns how many it took. */
size_t wb_node_entry_put(const struct wb_node_entry *entry, char *to);

/* Takes the next entry off *rest: returns 1, 0 at the end, or WB_E_PROTO. */
int wb_node_entry_take(struct wb_slice *rest, struct wb_node_entry *entry_out);

#endif
