/*
 * tokenizer.h - the tokenizer of the HTML standard, without a tree builder. wb_tagwalk_next() (tagwalk.h) is the way
 * to all tags of a document for those who do not want to know about modes.
 *
 * Each wb_tokenizer_next() finds the next token in a UTF-8 slice. Tokens borrow: names, values and
 * text are parts of the input as written, with flags that say how to decode them, so that nothing is
 * copied or looked up unless someone asks for it. In the standard, the tree builder tells the
 * tokenizer how to continue; here its user does so: it sets `mode` after a start tag whose content is
 * not markup, and `foreign` inside svg and math.
 */
#ifndef WB_MARKUP_TOKENIZER_H
#define WB_MARKUP_TOKENIZER_H

#include "base/slice.h"

/* Further attributes of a tag are skipped. */
#define WB_TOKEN_ATTRS_MAX 128

enum wb_token_kind {
    WB_TOKEN_NONE, /* the input has ended */
    WB_TOKEN_TEXT,
    WB_TOKEN_START,
    WB_TOKEN_END,
    WB_TOKEN_COMMENT,
    WB_TOKEN_DOCTYPE,
};

/* What must be done to decode a part of the input; in addition, line ends always become LF. */
enum wb_token_decode {
    WB_DECODE_ENTITIES = 1 << 0,
    WB_DECODE_ATTRIBUTE = 1 << 1, /* the rules for entities are those of attributes */
    WB_DECODE_NUL = 1 << 2,       /* NUL becomes U+FFFD */
    WB_DECODE_LOWER = 1 << 3,     /* A-Z become a-z */
};
#define WB_DECODE_VALUE (WB_DECODE_ENTITIES | WB_DECODE_ATTRIBUTE | WB_DECODE_NUL)
#define WB_DECODE_NAME (WB_DECODE_NUL | WB_DECODE_LOWER)

/* How the following text is read: the states of the standard in which a token can begin. */
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
    bool name_coded;  /* the name must be decoded: WB_DECODE_NAME */
    bool value_coded; /* the value must be decoded: WB_DECODE_VALUE */
};

struct wb_token_doctype {
    struct wb_slice public_id, system_id;
    bool has_name, has_public, has_system, force_quirks;
};

struct wb_tokenizer {
    const char *at, *end;
    enum wb_token_mode mode;
    bool foreign;               /* "<![CDATA[" starts a CDATA section here */
    struct wb_slice last_start; /* the name of the last start tag: only its end tag ends RCDATA, RAWTEXT and SCRIPT */

    /* The token that was read last. */
    enum wb_token_kind kind;
    struct wb_slice raw;        /* all of it; the standard drops what is between the raw parts of two tokens */
    struct wb_slice text;       /* the content of text and comments, the name of tags and doctypes */
    unsigned how;               /* how to decode `text`: enum wb_token_decode */
    bool self_closing;
    unsigned attr_count;        /* those kept, in order; if a name is repeated, the first one counts */
    uint64_t attrs_left_out;
    struct wb_token_doctype doctype;
    struct wb_token_attr attrs[WB_TOKEN_ATTRS_MAX];
};

void wb_tokenizer_init(struct wb_tokenizer *t, struct wb_slice utf8);

/* Reads the next token. At the end it returns WB_TOKEN_NONE, however often it is called. */
enum wb_token_kind wb_tokenizer_next(struct wb_tokenizer *t);

/* The first attribute with this name (in lower case), or NULL. */
const struct wb_token_attr *wb_tokenizer_attr(const struct wb_tokenizer *t, struct wb_slice name);

/* Decodes raw into out, which must have room for WB_DECODED_MAX(raw.len) bytes; returns the length. */
#define WB_DECODED_MAX(len) (3 * (len) + 8)
size_t wb_token_decode(struct wb_slice raw, unsigned how, char *out);

#endif
