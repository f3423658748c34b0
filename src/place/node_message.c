/*
 * node_message.c - requests and replies as bytes. It knows neither files nor transports.
 *
 * Offset and, in brackets, bytes. Numbers are little-endian, checksums XXH3 with 64 bits.
 *
 *   request  0 "WBNQ" (4)  4 version, 1 (2)  6 kind (1)  7 flags: 1 write, from 2 the hint (1)
 *            8 owner (8)  16 offset (8)  24 length (8)  32 bytes of the name, n (4)  36 bytes to write, m (4)
 *            40 zero (8)  48 checksum of bytes 0 to 47, then of name and bytes with that as the seed (8)
 *            56 name (n)  bytes (m)
 *   reply    0 "WBNR" (4)  4 version, 1 (2)  6 the error code, negated (1)  7 flags: 1 read-only, 2 more (1)
 *            8 size (8)  16 capacity (8)  24 free (8)  32 repository id (16)  48 node id (16)  64 node number (4)
 *            68 bytes of the message, n (4)  72 bytes read, m (4)  76 zero (20)
 *            96 checksum as above, of bytes 0 to 95 (8)  104 message (n)  bytes (m)
 *
 * Valid if and only if nothing follows, the checksum matches, and encoding what was read gives the same bytes.
 */
#include "place/node_message.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/hash.h"

enum {
    MESSAGE_VERSION = 1,
    REQUEST_CHECK_AT = 48,
    REPLY_CHECK_AT = 96,
    CODE_MAX = 64,
    REQUEST_WRITE = 1,
    REPLY_READ_ONLY = 1,
    REPLY_MORE = 2,
};

_Static_assert(REQUEST_CHECK_AT + 8 == (int)WB_NODE_REQUEST_BYTES, "the checksum ends the head of a request");
_Static_assert(REPLY_CHECK_AT + 8 == (int)WB_NODE_REPLY_BYTES, "the checksum ends the head of a reply");
_Static_assert(2 + (int)WB_NODE_NAME_MAX + 2 * WB_VARINT_MAX <= (int)WB_NODE_LIST_BYTES_MIN, "an entry fits");

/* What requests of a kind have. */
enum { HAS_FILE = 1, HAS_BYTES = 2, HAS_LENGTH = 4, HAS_OFFSET = 8, HAS_CURSOR = 16, HAS_WRITE = 32, HAS_HINT = 64 };
static const uint8_t parts_of[WB_NODE_KINDS] = {
    [WB_NODE_LIST] = HAS_CURSOR | HAS_LENGTH,
    [WB_NODE_CREATE] = HAS_FILE,
    [WB_NODE_OPEN] = HAS_FILE | HAS_WRITE,
    [WB_NODE_CLOSE] = HAS_FILE,
    [WB_NODE_READ] = HAS_FILE | HAS_OFFSET | HAS_LENGTH,
    [WB_NODE_WRITE] = HAS_FILE | HAS_OFFSET | HAS_BYTES,
    [WB_NODE_SIZE] = HAS_FILE,
    [WB_NODE_SYNC] = HAS_FILE,
    [WB_NODE_TRUNCATE] = HAS_FILE | HAS_OFFSET,
    [WB_NODE_REMOVE] = HAS_FILE,
    [WB_NODE_CLAIM] = HAS_FILE,
    [WB_NODE_RELEASE] = HAS_FILE,
    [WB_NODE_HINT] = HAS_FILE | HAS_OFFSET | HAS_LENGTH | HAS_HINT,
};

bool wb_node_name_valid(struct wb_slice name)
{
    static const struct wb_slice dir = {WB_NODE_DIR "/", sizeof WB_NODE_DIR};

    if (!wb_slice_starts(name, dir) || name.len == dir.len || name.len >= WB_NODE_NAME_MAX)
        return false;
    if (name.ptr[dir.len] == '.') /* ".", ".." and hidden files */
        return false;
    for (size_t i = dir.len; i < name.len; i++) {
        char c = name.ptr[i];
        if (!wb_ascii_is_digit(c) && !wb_ascii_is_letter(c) && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

/* What is wrong with a request, or NULL. */
static const char *fault_of(const struct wb_node_request *r)
{
    if (r->kind < WB_NODE_IDENTITY || r->kind >= WB_NODE_KINDS)
        return "unknown kind";
    unsigned has = parts_of[r->kind];
    struct wb_slice name = wb_slice_str(r->name ? r->name : "");
    if (has & HAS_FILE ? !wb_node_name_valid(name) || r->owner == 0
                       : r->owner != 0 || (name.len && !(has & HAS_CURSOR && wb_node_name_valid(name))))
        return "not the name of a file of a node, or no owner";
    if ((!(has & HAS_BYTES) && r->bytes.len) || r->bytes.len > WB_NODE_BYTES_MAX)
        return "too many bytes";
    if (!(has & HAS_OFFSET) ? r->offset != 0 : r->offset > INT64_MAX - WB_NODE_BYTES_MAX)
        return "an offset that no file has";
    if (!(has & HAS_LENGTH) ? r->length != 0 : !(has & HAS_HINT) && r->length > WB_NODE_BYTES_MAX)
        return "a length that is too large";
    if (r->kind == WB_NODE_HINT && r->length > INT64_MAX - r->offset)
        return "a length that is too large";
    if (r->kind == WB_NODE_LIST && r->length < WB_NODE_LIST_BYTES_MIN)
        return "a length that is too small";
    if ((r->write && !(has & HAS_WRITE)) || (has & HAS_HINT ? r->hint >= WB_NODE_HINTS : r->hint != 0))
        return "unknown flags";
    return NULL;
}

int wb_node_request_check(const struct wb_node_request *request)
{
    const char *fault = fault_of(request);

    return fault ? wb_fail(WB_E_INVALID, "a request to a node has %s", fault) : 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Completes a message of two parts whose head is at `head`, and appends it. On error out is unchanged. */
static int append_message(struct wb_buf *out, char *head, size_t check_at, struct wb_slice first,
                          struct wb_slice second)
{
    uint64_t check = wb_hash64_seeded(first.ptr, first.len, wb_hash64(head, check_at));

    WB_CHECK(first.len <= WB_NODE_BYTES_MAX && second.len <= WB_NODE_BYTES_MAX);
    int err = wb_buf_reserve(out, check_at + 8 + first.len + second.len);
    if (err < 0)
        return err;
    wb_put64(head + check_at, wb_hash64_seeded(second.ptr, second.len, check));
    wb_buf_append(out, head, check_at + 8);
    wb_buf_append_slice(out, first);
    wb_buf_append_slice(out, second);
    return 0;
}

/* Whether bytes are a message of two parts of these lengths with the right checksum. */
static bool message_matches(struct wb_slice bytes, size_t check_at, uint64_t first, uint64_t second)
{
    WB_CHECK(bytes.len >= check_at + 8);
    const char *body = bytes.ptr + check_at + 8;
    if (first > WB_NODE_BYTES_MAX || second > WB_NODE_BYTES_MAX || bytes.len - check_at - 8 != first + second)
        return false;
    uint64_t check = wb_hash64_seeded(body, first, wb_hash64(bytes.ptr, check_at));
    return wb_get64(bytes.ptr + check_at) == wb_hash64_seeded(body + first, second, check);
}

/* Checks what all versions of messages have in common. */
static int check_head(struct wb_slice bytes, const char *magic, size_t head_bytes, const char *what)
{
    if (bytes.len < 6 || memcmp(bytes.ptr, magic, 4) != 0)
        return wb_fail(WB_E_PROTO, "this is not a %s", what);
    if (wb_get16(bytes.ptr + 4) > MESSAGE_VERSION)
        return wb_fail(WB_E_NEWER, "a %s has version %u, this program knows versions up to %d", what,
                       wb_get16(bytes.ptr + 4), MESSAGE_VERSION);
    if (bytes.len < head_bytes || wb_get16(bytes.ptr + 4) != MESSAGE_VERSION)
        return wb_fail(WB_E_PROTO, "a %s is damaged", what);
    return 0;
}

static void put_request_head(const struct wb_node_request *request, char head[WB_NODE_REQUEST_BYTES])
{
    memset(head, 0, WB_NODE_REQUEST_BYTES);
    memcpy(head, "WBNQ", 4);
    wb_put16(head + 4, MESSAGE_VERSION);
    head[6] = (char)request->kind;
    head[7] = (char)((request->write ? REQUEST_WRITE : 0) | (int)request->hint << 1);
    wb_put64(head + 8, request->owner);
    wb_put64(head + 16, request->offset);
    wb_put64(head + 24, request->length);
    wb_put32(head + 32, (uint32_t)strlen(request->name ? request->name : ""));
    wb_put32(head + 36, (uint32_t)request->bytes.len);
}

int wb_node_request_encode(const struct wb_node_request *request, struct wb_buf *out)
{
    char head[WB_NODE_REQUEST_BYTES];
    int err = wb_node_request_check(request);

    if (err < 0)
        return err;
    put_request_head(request, head);
    struct wb_slice name = wb_slice_str(request->name ? request->name : "");
    struct wb_slice bytes = request->bytes.len ? request->bytes : WB_SLICE_EMPTY;
    return append_message(out, head, REQUEST_CHECK_AT, name, bytes);
}

int wb_node_request_decode(struct wb_slice bytes, char name_out[WB_NODE_NAME_MAX], struct wb_node_request *request_out)
{
    char again[WB_NODE_REQUEST_BYTES];
    int err = check_head(bytes, "WBNQ", WB_NODE_REQUEST_BYTES, "request to a node");

    *request_out = (struct wb_node_request){0};
    name_out[0] = '\0';
    if (err < 0)
        return err;
    uint32_t name_len = wb_get32(bytes.ptr + 32), len = wb_get32(bytes.ptr + 36);
    if (name_len >= WB_NODE_NAME_MAX || !message_matches(bytes, REQUEST_CHECK_AT, name_len, len))
        return wb_fail(WB_E_PROTO, "a request to a node is damaged");
    memcpy(name_out, bytes.ptr + WB_NODE_REQUEST_BYTES, name_len);
    name_out[name_len] = '\0';
    uint8_t flags = (uint8_t)bytes.ptr[7];
    *request_out = (struct wb_node_request){
        .kind = (enum wb_node_kind)(uint8_t)bytes.ptr[6],
        .owner = wb_get64(bytes.ptr + 8),
        .name = name_out,
        .offset = wb_get64(bytes.ptr + 16),
        .length = wb_get64(bytes.ptr + 24),
        .bytes = wb_slice(bytes.ptr + WB_NODE_REQUEST_BYTES + name_len, len),
        .write = flags & REQUEST_WRITE,
        .hint = (enum wb_node_hint)(flags >> 1),
    };
    const char *fault = fault_of(request_out);
    if (fault)
        return wb_fail(WB_E_PROTO, "a request to a node has %s", fault);
    put_request_head(request_out, again);
    if (memcmp(again, bytes.ptr, REQUEST_CHECK_AT) != 0) /* bytes that must be zero, or a NUL in the name */
        return wb_fail(WB_E_PROTO, "a request to a node is damaged");
    return 0;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void put_reply_head(const struct wb_node_reply *reply, char head[WB_NODE_REPLY_BYTES])
{
    memset(head, 0, WB_NODE_REPLY_BYTES);
    memcpy(head, "WBNR", 4);
    wb_put16(head + 4, MESSAGE_VERSION);
    head[6] = (char)-reply->code;
    head[7] = (char)((reply->read_only ? REPLY_READ_ONLY : 0) | (reply->more ? REPLY_MORE : 0));
    wb_put64(head + 8, reply->size);
    wb_put64(head + 16, reply->capacity);
    wb_put64(head + 24, reply->free);
    memcpy(head + 32, reply->identity.repository, WB_NODE_ID_BYTES);
    memcpy(head + 48, reply->identity.id, WB_NODE_ID_BYTES);
    wb_put32(head + 64, reply->identity.number);
    wb_put32(head + 68, (uint32_t)reply->message.len);
    wb_put32(head + 72, (uint32_t)reply->bytes.len);
}

int wb_node_reply_encode(const struct wb_node_reply *reply, struct wb_buf *out)
{
    char head[WB_NODE_REPLY_BYTES];

    WB_CHECK(reply->code <= 0 && reply->code > -CODE_MAX);
    WB_CHECK(reply->code < 0 || reply->message.len == 0);
    WB_CHECK(reply->message.len < WB_ERROR_MESSAGE_MAX);
    put_reply_head(reply, head);
    return append_message(out, head, REPLY_CHECK_AT, reply->message.len ? reply->message : WB_SLICE_EMPTY,
                          reply->bytes.len ? reply->bytes : WB_SLICE_EMPTY);
}

int wb_node_reply_decode(struct wb_slice bytes, struct wb_node_reply *reply_out)
{
    char again[WB_NODE_REPLY_BYTES];
    int err = check_head(bytes, "WBNR", WB_NODE_REPLY_BYTES, "reply of a node");

    *reply_out = (struct wb_node_reply){0};
    if (err < 0)
        return err;
    uint32_t message_len = wb_get32(bytes.ptr + 68), len = wb_get32(bytes.ptr + 72);
    uint8_t code = (uint8_t)bytes.ptr[6], flags = (uint8_t)bytes.ptr[7];
    if (code >= CODE_MAX || message_len >= WB_ERROR_MESSAGE_MAX || (code == 0 && message_len) ||
        !message_matches(bytes, REPLY_CHECK_AT, message_len, len))
        return wb_fail(WB_E_PROTO, "a reply of a node is damaged");
    *reply_out = (struct wb_node_reply){
        .code = -(int)code,
        .message = wb_slice(bytes.ptr + WB_NODE_REPLY_BYTES, message_len),
        .bytes = wb_slice(bytes.ptr + WB_NODE_REPLY_BYTES + message_len, len),
        .size = wb_get64(bytes.ptr + 8),
        .capacity = wb_get64(bytes.ptr + 16),
        .free = wb_get64(bytes.ptr + 24),
        .read_only = flags & REPLY_READ_ONLY,
        .more = flags & REPLY_MORE,
        .identity = {.number = wb_get32(bytes.ptr + 64)},
    };
    memcpy(reply_out->identity.repository, bytes.ptr + 32, WB_NODE_ID_BYTES);
    memcpy(reply_out->identity.id, bytes.ptr + 48, WB_NODE_ID_BYTES);
    put_reply_head(reply_out, again);
    if (memcmp(again, bytes.ptr, REPLY_CHECK_AT) != 0)
        return wb_fail(WB_E_PROTO, "a reply of a node is damaged");
    return 0;
}

/* ---- entries of a listing -------------------------------------------------------------------- */

size_t wb_node_entry_put(const struct wb_node_entry *entry, char *to)
{
    WB_CHECK(wb_node_name_valid(wb_slice_str(entry->name)));
    char *p = wb_fields_put_text(to, wb_slice_str(entry->name));
    p = wb_fields_put(p, entry->size);
    p = wb_fields_put(p, entry->disk_bytes);
    WB_CHECK(p - to <= WB_NODE_LIST_BYTES_MIN);
    return (size_t)(p - to);
}

int wb_node_entry_take(struct wb_slice *rest, struct wb_node_entry *entry_out)
{
    struct wb_fields fields = wb_fields_of(*rest);

    *entry_out = (struct wb_node_entry){0};
    if (rest->len == 0)
        return 0;
    struct wb_slice name = wb_fields_take_text(&fields);
    entry_out->size = wb_fields_take(&fields, UINT64_MAX);
    entry_out->disk_bytes = wb_fields_take(&fields, UINT64_MAX);
    if (!fields.ok || !wb_node_name_valid(name))
        return wb_fail(WB_E_PROTO, "the list of a node's files is damaged");
    memcpy(entry_out->name, name.ptr, name.len); /* the rest is zero */
    *rest = wb_slice(fields.at, (size_t)(fields.end - fields.at));
    return 1;
}
