/*
 * replay_door.h - private to serve: the second address, where each archived site has a browser origin of its own at
 * each time (replay/replay_origin.h). Pages run their scripts there, and can reach nothing but other stored pages.
 *
 *   http://20260102030405-https-www-example-org.localhost:8081/path   a page                  origin_replay.c
 *   http://localhost:8081/web/20260102030405/https://...              leads there             replay_door.c
 *
 * Nothing of the first address is served here, and nothing of here under the first address.
 */
#ifndef WB_SERVE_REPLAY_DOOR_H
#define WB_SERVE_REPLAY_DOOR_H

#include "replay/replay.h"
#include "serve/server.h"

/*
 * What a page in a frame may do. It may not navigate what is around it, open windows or save files: each of these could
 * lead to the live web, where no policy of ours holds.
 */
#define WB_REPLAY_DOOR_SANDBOX "allow-scripts allow-same-origin allow-forms allow-modals allow-pointer-lock"

/* Below this path of every origin are files of ours. */
#define WB_REPLAY_DOOR_OWN "/-webbase-/"

#define WB_REPLAY_DOOR_MAGIC 0x57425264u

struct wb_replay_door {
    uint32_t magic; /* WB_REPLAY_DOOR_MAGIC from open to close */
    struct wb_replay_base base;
    bool loopback;         /* its name is localhost, which browsers on this machine alone can use */
    struct wb_buf name;    /* of the base: "localhost:8081" */
    struct wb_buf sources; /* all origins in a policy: "http://[*].localhost:8081", without the brackets */
    struct wb_buf policy;  /* of pages on origins */
    struct wb_buf home;    /* the first address: "http://127.0.0.1:8080" */
};

/* Finds out under which name the second address is reached. WB_E_INVALID if there is none. */
int wb_replay_door_open(const struct wb_server *server, struct wb_replay_door **door_out);
void wb_replay_door_close(struct wb_replay_door *door);

/* The door, if the client of a request to the first address can use it; otherwise NULL. */
const struct wb_replay_door *wb_replay_door_for(const struct wb_call *call);

/* Appends the address of a page on the origin of its site. WB_E_PROTO if the site can have none. */
int wb_replay_door_address(const struct wb_replay_door *door, const char *digits, struct wb_slice url,
                           struct wb_buf *out);

/* Whether this is one of our origins, exactly as a browser writes it. */
bool wb_replay_door_has_origin(const struct wb_replay_door *door, struct wb_slice origin);

/* wb_route_admit() and the handler of requests to the second address. */
int wb_replay_door_admit(struct wb_server *server, const struct wb_http_request *head, uint64_t *body_max_out,
                         struct wb_http_reply *reply);
void wb_replay_door_handle(struct wb_call *call);

/* A request to the origin with these labels (origin_replay.c). */
void wb_origin_replay(struct wb_call *call, struct wb_slice labels);

#endif
