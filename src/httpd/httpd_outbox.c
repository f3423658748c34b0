/* httpd_outbox.c - pieces that wait to be sent. */
#include "httpd/httpd_outbox.h"
#include "base/check.h"

#define KEPT_BYTES 2048u
#define SEND_MAX (1u << 20) /* bytes that one connection sends before others have their turn */

static size_t piece_len(const struct wb_httpd_piece *piece)
{
    return piece->lead.len + piece->bytes.len + (piece->tail ? strlen(piece->tail) : 0);
}

struct wb_httpd_piece *wb_httpd_outbox_add(struct wb_httpd_outbox *box)
{
    WB_CHECK(box->count < WB_HTTPD_PIECES_MAX);
    struct wb_httpd_piece *piece = &box->pieces[box->count++];
    wb_buf_clear(&piece->lead);
    wb_buf_clear(&piece->bytes);
    piece->tail = NULL;
    return piece;
}

void wb_httpd_outbox_added(struct wb_httpd_outbox *box)
{
    WB_CHECK(box->count > 0);
    box->unsent += piece_len(&box->pieces[box->count - 1]);
}

void wb_httpd_outbox_undo(struct wb_httpd_outbox *box)
{
    WB_CHECK(box->count > 0);
    box->count--;
}

/* Appends the part of s that is behind the first *skip bytes; *skip becomes what has to be skipped after it. */
static unsigned add_part(struct wb_slice *parts, unsigned count, struct wb_slice s, size_t *skip)
{
    size_t gone = *skip < s.len ? *skip : s.len;

    *skip -= gone;
    if (gone == s.len)
        return count;
    parts[count] = wb_slice(s.ptr + gone, s.len - gone);
    return count + 1;
}

/* Removes pieces that have been sent completely. Their memory is kept for the next ones. */
static void drop_sent(struct wb_httpd_outbox *box)
{
    while (box->count > 0 && box->sent >= piece_len(&box->pieces[0])) {
        struct wb_httpd_piece first = box->pieces[0];
        box->sent -= piece_len(&first);
        box->count--;
        memmove(box->pieces, box->pieces + 1, box->count * sizeof *box->pieces);
        box->pieces[box->count] = first;
    }
}

int wb_httpd_outbox_send(struct wb_httpd_outbox *box, struct wb_httpd_wire *wire, uint64_t *sent_out)
{
    *sent_out = 0;
    drop_sent(box);
    while (box->count > 0) {
        struct wb_slice parts[3 * WB_HTTPD_PIECES_MAX];
        size_t skip = box->sent;
        unsigned count = 0;
        for (unsigned i = 0; i < box->count; i++) {
            const struct wb_httpd_piece *piece = &box->pieces[i];
            count = add_part(parts, count, wb_buf_slice(&piece->lead), &skip);
            count = add_part(parts, count, wb_buf_slice(&piece->bytes), &skip);
            if (piece->tail)
                count = add_part(parts, count, wb_slice_str(piece->tail), &skip);
        }
        long n = wb_httpd_wire_write(wire, parts, count);
        if (n <= 0)
            return n == 0 ? WB_WIRE_BROKEN : (int)n;
        *sent_out += (uint64_t)n;
        box->sent += (size_t)n;
        box->unsent -= (size_t)n;
        drop_sent(box);
        if (box->count > 0 && *sent_out >= SEND_MAX)
            return WB_WIRE_WANTS_WRITE;
    }
    WB_CHECK(box->unsent == 0 && box->sent == 0);
    return 0;
}

void wb_httpd_outbox_trim(struct wb_httpd_outbox *box)
{
    WB_CHECK(box->count == 0);
    for (unsigned i = 0; i < WB_HTTPD_PIECES_MAX; i++) {
        if (box->pieces[i].lead.cap > KEPT_BYTES)
            wb_buf_release(&box->pieces[i].lead);
        wb_buf_release(&box->pieces[i].bytes);
    }
}

void wb_httpd_outbox_release(struct wb_httpd_outbox *box)
{
    for (unsigned i = 0; i < WB_HTTPD_PIECES_MAX; i++) {
        wb_buf_release(&box->pieces[i].lead);
        wb_buf_release(&box->pieces[i].bytes);
    }
    *box = (struct wb_httpd_outbox){0};
}
