/*
 * guesses.h - slows down clients that try tokens. A client may send some wrong tokens at once, because people mistype.
 * After that, it is heard four times a second: answers to requests with a token leave in turn, and if too many wait,
 * more are refused. That holds for right tokens, too, or else the time of the answer would tell them apart; but for
 * this client only. A client is an address (IPv6: a /64), as a proxy on this machine tells it.
 */
#ifndef WB_SERVE_GUESSES_H
#define WB_SERVE_GUESSES_H

#include "httpd/httpd.h"

enum {
    WB_GUESSES_FREE = 20,       /* wrong tokens that cost nothing */
    WB_GUESSES_FORGET_S = 60,   /* one of them is forgotten each minute */
    WB_GUESSES_TURN_MS = 250,
    WB_GUESSES_WAITING_MAX = 40 /* turns */
};

struct wb_guesses;

int wb_guesses_new(struct wb_guesses **guesses_out);
void wb_guesses_free(struct wb_guesses *guesses); /* NULL is fine */

/*
 * A request has a token, right or wrong. Returns how long its answer is to be held back, or -1 if it is to be refused
 * without looking at the token. Called by one thread.
 */
int wb_guesses_enter(struct wb_guesses *guesses, const struct wb_http_request *request, bool right, int64_t now_ms);

#endif
