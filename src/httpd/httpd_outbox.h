/*
 * httpd_outbox.h - what has to be sent to a client: a short row of pieces, each of which is
 *
 *   [ lead: head, size of the chunk | bytes: the body, or a part of it | tail: end of the chunk, of all chunks ]
 *
 * so that large bodies are never copied.
 */
#ifndef WB_HTTPD_HTTPD_OUTBOX_H
#define WB_HTTPD_HTTPD_OUTBOX_H

#include "base/buf.h"
#include "httpd/httpd_wire.h"

/* "100 Continue", the end of a reply's head, and two pieces of a source at most. */
#define WB_HTTPD_PIECES_MAX 4u

struct wb_httpd_piece {
    struct wb_buf lead, bytes;
    const char *tail; /* a constant; NULL: none */
};

/* All zero: empty. */
struct wb_httpd_outbox {
    struct wb_httpd_piece pieces[WB_HTTPD_PIECES_MAX]; /* the first `count` are in use; the others keep their memory */
    unsigned count;
    size_t sent;   /* bytes of the first piece that have been sent */
    size_t unsent; /* bytes of all pieces that have not been sent */
};

/* An empty piece at the end; fill it, and then call wb_httpd_outbox_added(). There must be room for it. */
struct wb_httpd_piece *wb_httpd_outbox_add(struct wb_httpd_outbox *box);
void wb_httpd_outbox_added(struct wb_httpd_outbox *box);

/* Takes the last piece out again, which was not counted yet. */
void wb_httpd_outbox_undo(struct wb_httpd_outbox *box);

/* Sends until the box is empty (then 0) or the wire takes no more: an enum wb_wire_result. *sent_out: the bytes. */
int wb_httpd_outbox_send(struct wb_httpd_outbox *box, struct wb_httpd_wire *wire, uint64_t *sent_out);

/* Gives back memory that an idle connection should not hold. The box must be empty. */
void wb_httpd_outbox_trim(struct wb_httpd_outbox *box);
void wb_httpd_outbox_release(struct wb_httpd_outbox *box);

#endif
