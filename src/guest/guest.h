/*
 * guest.h - the door of guest: foreign code that reads hostile bytes, in a process of its own.
 *
 *   this process                                  the guest: this program again, started afresh
 *   wb_guest_ask(url, type, body)  --request-->   cage.c takes network, files and memory from it
 *   checks every byte of it        <--answer---   guestmain.c calls the module: FILE.so, or pdfreader.c
 *
 * A guest is started with the first request and answers one at a time. It is killed, and started again with the next
 * request, when it crashes, takes too long or takes too much memory. It has no environment, no memory of the process
 * that started it, and no open files but the socket. What it answers is believed in nothing but that somebody wrote it.
 *
 * A guest belongs to one thread. Why it works this way: docs/design/0058-modules.md.
 */
#ifndef WB_GUEST_GUEST_H
#define WB_GUEST_GUEST_H

#include "base/buf.h"

#define WB_GUEST_TIME_S 10u                         /* --module-time, unless given */
#define WB_GUEST_MEMORY_BYTES ((uint64_t)512 << 20) /* --module-memory, unless given */
#define WB_GUEST_TYPES_MAX 4096u                    /* bytes of webbase_module_types */

/* The limits of an answer. */
#define WB_GUEST_TEXT_MAX ((uint32_t)8 << 20)
#define WB_GUEST_LINKS_MAX (1u << 16)
#define WB_GUEST_FACTS_MAX 64u
#define WB_GUEST_FACT_NAME_MAX 64u
#define WB_GUEST_FACT_VALUE_MAX 4096u
#define WB_GUEST_ANSWER_MAX ((uint32_t)48 << 20)

struct wb_guest_options {
    const char *file;     /* of the module; NULL: PDF, which is built in */
    const char *argument; /* "" if it has none */
    unsigned time_s;      /* for a page */
    uint64_t memory_bytes;
};

/* How a request ended. */
enum wb_guest_end { WB_GUEST_OK, WB_GUEST_CRASH, WB_GUEST_TIME, WB_GUEST_MEMORY, WB_GUEST_FAILED };
const char *wb_guest_end_name(enum wb_guest_end end); /* "crash", "time", "memory", "failed"; "" */

struct wb_guest_request {
    struct wb_slice url, type, charset, body;
};

/* The parts of an answer, as they were said. */
enum wb_guest_part_kind {
    WB_GUEST_TEXT = 'T',
    WB_GUEST_TITLE = 'I',
    WB_GUEST_PUBLISHED = 'P',
    WB_GUEST_MODIFIED = 'M',
    WB_GUEST_LINK = 'L',
    WB_GUEST_FACT = 'F',
    WB_GUEST_SAY = 'S',
};

struct wb_guest_part {
    enum wb_guest_part_kind kind;
    struct wb_slice name;  /* of a fact; the URL of a link */
    struct wb_slice value; /* bytes that may be anything; of a link, its anchor */
    int64_t time_ms;
};

/*
 * Reads the next part of an answer and moves *rest behind it: 1, 0 at the end, WB_E_PROTO if the bytes are none. A name
 * of a fact is well-formed; everything else is within the limits above.
 */
int wb_guest_next(struct wb_slice *rest, struct wb_guest_part *part_out);

struct wb_guest;

/* Starts nothing yet. The options, but not what they point to, are copied. */
int wb_guest_new(const struct wb_guest_options *options, struct wb_guest **guest_out);
void wb_guest_free(struct wb_guest *guest);

/*
 * Starts the guest, unless it runs. The error names the file and says why it cannot be loaded. *types_out (may be NULL)
 * are the types that the module reads, valid until the guest is freed.
 */
int wb_guest_start(struct wb_guest *guest, const char **types_out);

/*
 * Asks about a page. *answer_out is valid until the next call, and empty unless *end_out is WB_GUEST_OK. Fails only if
 * the guest cannot be started, or with WB_E_NOMEM.
 */
int wb_guest_ask(struct wb_guest *guest, const struct wb_guest_request *request, struct wb_slice *answer_out,
                 enum wb_guest_end *end_out);

/* ---- for main() ------------------------------------------------------------------------------ */

/* A program that is called by this name must pass its arguments to wb_guest_main(), before it does anything else. */
#define WB_GUEST_NAME "webbase-guest"
int wb_guest_main(int argc, char **argv);

/*
 * The path of a program that does so. Until it is set there are no guests: a program that does not would start itself
 * again and do all its work once more.
 */
void wb_guest_program(const char *path);

#endif
