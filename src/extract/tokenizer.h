/*
 * tokenizer.h - private to page: the HTML standard's tokenizer, without a tree.
 *
 * Pull: each wb_tokenizer_next() finds the next token in a UTF-8 slice. Tokens borrow:
 * names, values and text are parts of the input as written, with a word on how they are to
 * be decoded, so that nothing is copied or looked up which nobody asks for. What
 * the standard's tree builder would tell the tokenizer, its user does: sets mode
 * after a start tag whose content is not markup, and foreign inside svg and math.
 */
#ifndef WB_EXTRACT_TOKENIZER_H
#define WB_EXTRACT_TOKENIZER_H

#include "base/slice.h"

/* More attributes of one tag than this are read over, not kept. */
#define WB_TOKEN_ATTRS_MAX 128

enum wb_token_kind {
    WB_TOKEN_NONE, /* the input has ended */
    WB_TOKEN_TEXT,
    WB_TOKEN_START,
    WB_TOKEN_END,
    WB_TOKEN_COMMENT,
    WB_TOKEN_DOCTYPE,
};

/* What is to be done to get from what is written to what is meant; line ends become LF in any case. */
enum wb_token_decode {
    WB_DECODE_ENTITIES = 1 << 0,
    WB_DECODE_ATTRIBUTE = 1 << 1, /* entities by the rule of attributes */
    WB_DECODE_NUL = 1 << 2,       /* NUL becomes U+FFFD */
    WB_DECODE_LOWER = 1 << 3,     /* A-Z become a-z */
};
#define WB_DECODE_VALUE (WB_DECODE_ENTITIES | WB_DECODE_ATTRIBUTE | WB_DECODE_NUL)
#define WB_DECODE_NAME (WB_DECODE_NUL | WB_DECODE_LOWER)

/* How the text that follows is read: the standard's states in which a token can begin. */
enum wb_token_mode {
    WB_MODE_DATA,
    WB_MODE_RCDATA,
    WB_MODE_RAWTEXT,
    WB_MODE_SCRIPT,
    WB_MODE_PLAINTEXT,
    WB_MODE_CDATA,
};

struct wb_token_attr {
    struct wb_slice name, value;
    bool name_coded;  /* name is not what it means: WB_DECODE_NAME */
    bool value_coded; /* WB_DECODE_VALUE */
};

struct wb_doctype {
    struct wb_slice public_id, system_id;
    bool has_name, has_public, has_system, force_quirks;
};

struct wb_tokenizer {
    const char *at, *end;
    enum wb_token_mode mode;
    bool foreign;               /* "<![CDATA[" is one */
    struct wb_slice last_start; /* name of the last start tag: only its end tag ends RCDATA, RAWTEXT and SCRIPT */

    /* The token. */
    enum wb_token_kind kind;
    struct wb_slice raw;        /* all of it; text between two tokens' raw is dropped by the standard */
    struct wb_slice text;       /* of text and comment the content, of tags and doctype the name */
    unsigned how;               /* enum wb_token_decode, of text */
    bool self_closing;
    unsigned attr_count;        /* of those kept; in order, repeated names too: the first one counts */
    uint64_t attrs_left_out;
    struct wb_doctype doctype;
    struct wb_token_attr attrs[WB_TOKEN_ATTRS_MAX];
};

void wb_tokenizer_init(struct wb_tokenizer *t, struct wb_slice utf8);

/* WB_TOKEN_NONE at the end, again and again. */
enum wb_token_kind wb_tokenizer_next(struct wb_tokenizer *t);

/* The first attribute of that name (lower case), or NULL. */
const struct wb_token_attr *wb_tokenizer_attr(const struct wb_tokenizer *t, struct wb_slice name);

/* Writes what raw means; returns its length, which is at most WB_DECODED_MAX(raw.len), the room out must have. */
#define WB_DECODED_MAX(len) (3 * (len) + 8)
size_t wb_token_decode(struct wb_slice raw, unsigned how, char *out);

#endif
