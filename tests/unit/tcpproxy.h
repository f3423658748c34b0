/*
 * tcpproxy.h - what lies between a program and a server, and goes wrong when a test wants it to. It listens on a port
 * of 127.0.0.1 and passes everything to a unix socket, from a thread of its own.
 */
#ifndef WB_TEST_TCPPROXY_H
#define WB_TEST_TCPPROXY_H

#include <stdbool.h>

struct tcp_proxy;

struct tcp_proxy *proxy_start(const char *unix_socket);
void proxy_stop(struct tcp_proxy *proxy);
int proxy_port(const struct tcp_proxy *proxy);

/* Ends all connections now. */
void proxy_cut(struct tcp_proxy *proxy);

/* While it refuses, new connections are ended at once. */
void proxy_refuse(struct tcp_proxy *proxy, bool refuse);

/* While it is silent, questions reach the server but no answer comes back; while it is deaf, nothing passes at all. */
void proxy_silent(struct tcp_proxy *proxy, bool silent);
void proxy_deaf(struct tcp_proxy *proxy, bool deaf);

/* Each answer is held for so long before it is passed on. */
void proxy_delay(struct tcp_proxy *proxy, unsigned ms);

/*
 * The nth time from now on that a program sends something with this text in it, the server gets it and carries it out,
 * and its answer is thrown away with the connection. NULL: never. `swallow`: the connection stays, without an answer.
 */
void proxy_lose(struct tcp_proxy *proxy, const char *text, unsigned nth, bool swallow);

/* How many answers were lost that way so far. */
unsigned proxy_lost(struct tcp_proxy *proxy);

#endif
