/* httpd_peer.c - counts the connections of each client. */
#include "httpd/httpd_peer.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/random.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void wb_httpd_peer_bytes(const struct sockaddr_storage *address, unsigned char bytes_out[16])
{
    memset(bytes_out, 0, 16);
    if (address->ss_family == AF_INET6) {
        memcpy(bytes_out, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    } else if (address->ss_family == AF_INET) {
        memcpy(bytes_out, mapped, 12);
        memcpy(bytes_out + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    }
}

void wb_httpd_peers_init(struct wb_httpd_peers *peers)
{
    uint64_t seed;

    wb_random_bytes(&seed, sizeof seed);
    *peers = (struct wb_httpd_peers){WB_MAP_INIT(seed)};
}

void wb_httpd_peers_release(struct wb_httpd_peers *peers)
{
    WB_CHECK(wb_map_count(&peers->map) == 0);
    wb_map_release(&peers->map);
}

static struct wb_httpd_peer_entry *find_entry(struct wb_httpd_peers *peers, const unsigned char key[16], uint64_t hash)
{
    struct wb_httpd_peer_entry *entry = NULL;

    while ((entry = wb_map_next(&peers->map, hash, entry)))
        if (memcmp(entry->peer->key, key, 16) == 0)
            break;
    return entry;
}

struct wb_httpd_peer *wb_httpd_peer_enter(struct wb_httpd_peers *peers, const struct sockaddr_storage *address)
{
    unsigned char key[16];

    wb_httpd_peer_bytes(address, key);
    if (memcmp(key, mapped, sizeof mapped) != 0)
        memset(key + 8, 0, 8);
    uint64_t hash = wb_hash64_seeded(key, sizeof key, peers->map.map.seed);
    struct wb_httpd_peer_entry *entry = find_entry(peers, key, hash);
    if (!entry) {
        struct wb_httpd_peer *peer = wb_alloc_zero(1, sizeof *peer);
        entry = peer ? wb_map_add(&peers->map, hash) : NULL;
        if (!entry) {
            wb_free(peer);
            return NULL;
        }
        memcpy(peer->key, key, sizeof key);
        entry->peer = peer;
    }
    entry->peer->connections++;
    return entry->peer;
}

void wb_httpd_peer_leave(struct wb_httpd_peers *peers, struct wb_httpd_peer *peer)
{
    WB_CHECK(peer->connections > 0);
    if (--peer->connections > 0)
        return;
    WB_CHECK(!peer->waiting.first);
    uint64_t hash = wb_hash64_seeded(peer->key, sizeof peer->key, peers->map.map.seed);
    struct wb_httpd_peer_entry *entry = find_entry(peers, peer->key, hash);
    WB_CHECK(entry && entry->peer == peer);
    wb_map_remove(&peers->map, entry);
    wb_free(peer);
}

bool wb_httpd_peer_describe(const struct sockaddr_storage *address, char text_out[WB_HTTPD_PEER_TEXT])
{
    static const unsigned char one[16] = {[15] = 1};
    unsigned char bytes[16];

    wb_httpd_peer_bytes(address, bytes);
    if (memcmp(bytes, mapped, sizeof mapped) == 0) {
        inet_ntop(AF_INET, bytes + 12, text_out, WB_HTTPD_PEER_TEXT);
        return bytes[12] == 127;
    }
    inet_ntop(AF_INET6, bytes, text_out, WB_HTTPD_PEER_TEXT);
    return memcmp(bytes, one, sizeof one) == 0;
}
