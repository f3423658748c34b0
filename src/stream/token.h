/*
 * token.h - private to stream: restart tokens. A token is the text of a few bytes (docs/formats/stream.md): which
 * repository, which snapshot, who holds it, what was asked for, and the place after a record. Its checksum covers all
 * of it, so a token that was cut, doubled or changed anywhere is refused.
 */
#ifndef WB_STREAM_TOKEN_H
#define WB_STREAM_TOKEN_H

#include "store/store.h"

/* Longer texts are not tokens. */
#define WB_TOKEN_TEXT_MAX 4096

/* The place after a record: where the next one is. */
struct wb_stream_place {
    uint64_t position;               /* records that were delivered before it */
    uint64_t index;                  /* of streams with a list: the number of the next page in it... */
    bool within;                     /* ...of which the captures up to this time were delivered */
    int64_t capture_ms;
    uint64_t capture_tie;            /* ...and of those of this time so many */
    bool has_at, has_start, wrapped; /* of streams without a list: the last page; where they began... */
    struct wb_store_position at, start; /* ...and whether they now deliver what is before that */
};

/* What a token says besides the place: the same for all tokens of a stream. */
struct wb_stream_ticket {
    uint32_t snapshot;    /* 0: none could be sealed, and the state is that of the epoch */
    uint32_t generation;  /* whose snapshot it is; 0: of no generation */
    uint64_t epoch;
    uint64_t holder;      /* names the hold; 0: there is none */
    bool sealed;          /* the snapshot was sealed for this stream */
    bool kept;            /* spec is the hash of a file on the shelf, not the spec itself */
    struct wb_slice spec; /* its bytes (spec.h), or the hash */
    bool listed;          /* the stream has a list of pages... */
    uint64_t list_hash;   /* ...with this hash */
};

/* Writes tokens of one stream. */
struct wb_token_writer {
    uint64_t repository;
    struct wb_buf bytes;  /* of the last token; the first `fixed` are those that all tokens begin with */
    size_t fixed;
    struct wb_buf text;
};

/* The number that stands for a repository in tokens: a hash of its id. */
uint64_t wb_token_repository(const char *id);

int wb_token_writer_init(struct wb_token_writer *writer, uint64_t repository, const struct wb_stream_ticket *ticket);
void wb_token_writer_release(struct wb_token_writer *writer);

/* The text is valid until the next call. */
int wb_token_write(struct wb_token_writer *writer, const struct wb_stream_place *place, struct wb_slice *token_out);

/*
 * Reads a token. The ticket borrows from mem_out. WB_E_INVALID: it is damaged, not a token at all, or of another
 * repository; WB_E_NEWER: it has another format.
 */
int wb_token_read(struct wb_slice token, uint64_t repository, struct wb_stream_ticket *ticket_out,
                  struct wb_stream_place *place_out, struct wb_buf *mem_out);

#endif
