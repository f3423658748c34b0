/*
 * guesses.c - counts wrong tokens by client. The table has a fixed size: a new client takes the place of that one of
 * its row which has been quiet for longest. Who has so many addresses that this helps is not slowed down by anything.
 */
#include "serve/guesses.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/random.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>

enum { ROWS = 1024, IN_ROW = 4, ADDRESS_BYTES = 16, FORGET_MS = WB_GUESSES_FORGET_S * 1000 };

struct client {
    unsigned char address[ADDRESS_BYTES];
    unsigned wrong;     /* tokens that are not forgotten; 0: an empty place */
    int64_t counted_ms; /* when `wrong` was right */
    int64_t next_ms;    /* when its next answer may leave */
};

#define GUESSES_MAGIC 0x57424753u

struct wb_guesses {
    uint32_t magic;   /* GUESSES_MAGIC from new to free */
    bool used;
    pthread_t thread; /* that has used it first: it has no lock, so no other thread may */
    uint64_t seed;
    struct client clients[ROWS][IN_ROW];
};

int wb_guesses_new(struct wb_guesses **guesses_out)
{
    *guesses_out = wb_alloc_zero(1, sizeof **guesses_out);
    if (!*guesses_out)
        return WB_E_NOMEM;
    (*guesses_out)->magic = GUESSES_MAGIC;
    wb_random_bytes(&(*guesses_out)->seed, sizeof(*guesses_out)->seed);
    return 0;
}

void wb_guesses_free(struct wb_guesses *guesses)
{
    if (!guesses)
        return;
    WB_CHECK(guesses->magic == GUESSES_MAGIC);
    guesses->magic = 0;
    wb_free(guesses);
}

/* ---- clients ------------------------------------------------------------------------------------- */

/* An address as text; all texts that are not addresses count as one client. */
static void read_address(struct wb_slice text, unsigned char address_out[ADDRESS_BYTES])
{
    char copy[INET6_ADDRSTRLEN] = "";

    memset(address_out, 0, ADDRESS_BYTES);
    if (text.len >= sizeof copy)
        return;
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    if (inet_pton(AF_INET, copy, address_out + ADDRESS_BYTES - 4) == 1)
        address_out[ADDRESS_BYTES - 5] = address_out[ADDRESS_BYTES - 6] = 0xff;
    else if (inet_pton(AF_INET6, copy, address_out) == 1)
        memset(address_out + ADDRESS_BYTES / 2, 0, ADDRESS_BYTES / 2);
}

/* A proxy on this machine puts its client's address at the end of X-Forwarded-For; others may write what they like. */
static void find_address(const struct wb_http_request *request, unsigned char address_out[ADDRESS_BYTES])
{
    struct wb_slice list = request->loopback ? wb_http_field(request, "X-Forwarded-For") : WB_SLICE_EMPTY;
    const char *comma = list.len ? memrchr(list.ptr, ',', list.len) : NULL;

    if (comma)
        list = wb_slice(comma + 1, (size_t)(list.ptr + list.len - comma - 1));
    list = wb_slice_trim(list);
    read_address(list.len ? list : request->peer, address_out);
}

static void forget(struct client *client, int64_t now_ms)
{
    int64_t steps = now_ms > client->counted_ms ? (now_ms - client->counted_ms) / FORGET_MS : 0;

    client->counted_ms += steps * FORGET_MS;
    client->wrong = steps < (int64_t)client->wrong ? client->wrong - (unsigned)steps : 0;
}

/* The client, or the place that it may take: an empty one, or that of the client that has been quiet for longest. */
static struct client *find_client(struct wb_guesses *guesses, const unsigned char address[ADDRESS_BYTES],
                                  int64_t now_ms, bool *found_out)
{
    struct client *row = guesses->clients[wb_hash64_seeded(address, ADDRESS_BYTES, guesses->seed) % ROWS];
    struct client *place = &row[0];

    *found_out = false;
    for (size_t i = 0; i < IN_ROW; i++) {
        forget(&row[i], now_ms);
        if (row[i].wrong && memcmp(row[i].address, address, ADDRESS_BYTES) == 0) {
            *found_out = true;
            return &row[i];
        }
        if (place->wrong && (!row[i].wrong || row[i].counted_ms < place->counted_ms))
            place = &row[i];
    }
    return place;
}

/* All calls come from one thread. */
static void check_thread(struct wb_guesses *guesses)
{
    if (!guesses->used)
        guesses->thread = pthread_self();
    guesses->used = true;
    WB_CHECK(guesses->magic == GUESSES_MAGIC);
    WB_CHECK(pthread_equal(guesses->thread, pthread_self()));
}

int wb_guesses_enter(struct wb_guesses *guesses, const struct wb_http_request *request, bool right, int64_t now_ms)
{
    unsigned char address[ADDRESS_BYTES];
    bool found;

    check_thread(guesses);
    find_address(request, address);
    struct client *client = find_client(guesses, address, now_ms, &found);
    WB_CHECK(client->wrong <= WB_GUESSES_FREE + 1);
    if (!found && right)
        return 0;
    if (!found) {
        *client = (struct client){.counted_ms = now_ms, .next_ms = now_ms};
        memcpy(client->address, address, sizeof address);
    }
    bool slow = client->wrong >= WB_GUESSES_FREE;
    int64_t at_ms = client->next_ms > now_ms ? client->next_ms : now_ms;
    if (slow && at_ms + WB_GUESSES_TURN_MS - now_ms > WB_GUESSES_WAITING_MAX * WB_GUESSES_TURN_MS)
        return -1;
    if (!right && client->wrong <= WB_GUESSES_FREE) /* so what is forgotten is forgotten soon */
        client->wrong++;
    if (!slow)
        return 0;
    client->next_ms = at_ms + WB_GUESSES_TURN_MS;
    WB_CHECK(client->next_ms - now_ms <= WB_GUESSES_WAITING_MAX * WB_GUESSES_TURN_MS);
    return (int)(client->next_ms - now_ms);
}
