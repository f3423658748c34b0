/*
 * httpd_peer.h - clients by address: how many connections each has, and which of them wait for a request.
 *
 * IPv6 addresses count by their first 64 bits, because one client may have all addresses behind them.
 */
#ifndef WB_HTTPD_HTTPD_PEER_H
#define WB_HTTPD_HTTPD_PEER_H

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

#include <sys/socket.h>

#define WB_HTTPD_PEER_TEXT 48

struct wb_httpd_peer {
    unsigned char key[16]; /* the address as IPv6 */
    size_t connections;
    struct wb_list waiting; /* connections that wait for a request, the oldest first */
};

struct wb_httpd_peer_entry {
    uint64_t hash;
    struct wb_httpd_peer *peer;
};

union wb_httpd_peer_map WB_MAP_OF(struct wb_httpd_peer_entry);

struct wb_httpd_peers {
    union wb_httpd_peer_map map;
};

void wb_httpd_peers_init(struct wb_httpd_peers *peers);

/* All connections must have left. */
void wb_httpd_peers_release(struct wb_httpd_peers *peers);

/* The client with this address, which is remembered while it has connections; NULL when out of memory. */
struct wb_httpd_peer *wb_httpd_peer_enter(struct wb_httpd_peers *peers, const struct sockaddr_storage *address);

/* One connection of the client has ended. */
void wb_httpd_peer_leave(struct wb_httpd_peers *peers, struct wb_httpd_peer *peer);

/* Every address as IPv6: IPv4 becomes ::ffff:a.b.c.d, as it is on a socket for both. Other families are all zero. */
void wb_httpd_peer_bytes(const struct sockaddr_storage *address, unsigned char bytes_out[16]);

/* The address as text, without a port, and IPv4 as IPv4. Returns true if it is a loopback address. */
bool wb_httpd_peer_describe(const struct sockaddr_storage *address, char text_out[WB_HTTPD_PEER_TEXT]);

#endif
