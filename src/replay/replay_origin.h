/*
 * replay_origin.h - part of the door of replay: the browser origin that each archived site has at each time.
 *
 *   2026-01-02 03:04:05, https://www.example.org      20260102030405-https-www-example-org
 *   2026-01-02 03:04:05, http://example.org:8080      20260102030405-http8080-example-org
 *   2026-01-02 03:04:05, https://my-host.example.org  20260102030405-https-my--host-example-org
 *
 * This is one label of a host name, in front of the name under which replay is reached. In the label, '.' is '-' and
 * '-' is '--'. A host for which that is too long, or could be read in two ways, stands in front of a label with its
 * digest instead; so what is next to the name always belongs to one site at one time, and cookies cannot be shared by
 * setting them for a part of the host:
 *
 *   a-.example.org     a-.example.org.20260102030405-https--<32 hexadecimal digits>
 *
 * Two sites or two times never have the same origin, and each has one spelling only.
 */
#ifndef WB_REPLAY_REPLAY_ORIGIN_H
#define WB_REPLAY_REPLAY_ORIGIN_H

#include "base/buf.h"
#include "url/url.h"

#include <stdbool.h>

/* Labels with the host in front of them have at most this many bytes; with a name of up to 64, a host name holds them.
 */
#define WB_REPLAY_LABELS_MAX 188

/* Under which name replay origins are reached. */
struct wb_replay_base {
    bool tls;
    struct wb_slice
        name; /* "localhost:8081", "replay.example.org"; in lower case, the port if it is not the usual one */
};

/*
 * A test seam. Appends the labels of the origin of a URL at a time of 14 digits. WB_E_PROTO if there is none: only http
 * and https have one, and hosts whose labels consist of letters, digits, '-' and '_'.
 */
int wb_replay_origin_labels(struct wb_slice time, const struct wb_url *url, struct wb_buf *out);

/* Appends "http://LABELS.NAME" with the path, query and fragment of the URL. WB_E_PROTO as above. */
int wb_replay_origin_address(const struct wb_replay_base *base, struct wb_slice time, const struct wb_url *url,
                             struct wb_buf *out);

/*
 * The other way: the time, which is part of the text, and the live origin "https://www.example.org", which is appended.
 * WB_E_PROTO if these are not labels exactly as they are written here, or the time does not exist.
 */
int wb_replay_origin_parse(struct wb_slice labels, struct wb_slice *time_out, struct wb_buf *origin_out);

/* Gets the labels in front of the name from a Host; false if it is of another name or has none. Any case. */
bool wb_replay_base_labels(const struct wb_replay_base *base, struct wb_slice host, struct wb_slice *labels_out);

#endif
