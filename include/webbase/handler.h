/*
 * handler.h - what a handler of `webbase stream --handler FILE.so` must define: three functions, and a fourth one if
 * several workers are to make one result. examples/handlers has two handlers.
 *
 *   cc -O2 -shared -fPIC -I include -o words.so examples/handlers/words.c
 *   webbase stream --handler ./words.so
 *
 * The program calls init once, process for every record, and finish once, all from one thread. With --workers N each
 * worker process calls these for itself and gets its own part of the records. Then
 *
 *   a handler that defines merge gets the same ARGUMENT in all workers. In finish, each writes its share to the file
 *   host->part. When all workers have ended well, merge is called once, in a process of its own, and makes the result
 *
 *   a handler that does not gets "ARGUMENT.1" to "ARGUMENT.N", so that each worker writes a file of its own; the
 *   program says where they are. Without an ARGUMENT, what the workers write to standard output comes one after the
 *   other, when all have ended
 *
 * Everything in a record comes from the web and may be hostile. Texts are bytes with a length, without a NUL behind them.
 */
#ifndef WEBBASE_HANDLER_H
#define WEBBASE_HANDLER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counted up when the structs below change in a way that old handlers cannot bear. Checked when a handler is loaded. */
#define WEBBASE_HANDLER_ABI 1
extern const unsigned webbase_handler_abi;
__attribute__((weak, visibility("default"))) const unsigned webbase_handler_abi = WEBBASE_HANDLER_ABI;

/* What init, process, finish and merge return. */
enum webbase_result {
    WEBBASE_OK = 0,
    WEBBASE_SKIPPED = 1, /* a recoverable error: this record was of no use. It is counted, and the stream goes on */
    WEBBASE_ENOUGH = 2,  /* this handler needs no more records. The stream ends when all handlers have enough */
    WEBBASE_FAILED = -1, /* an unrecoverable error: the stream ends, and the exit status is 1 */
};

struct webbase_text {
    const char *ptr;
    size_t len;
};

/* One page, or with --versions one capture of a page. Valid during the call of process. */
struct webbase_record {
    struct webbase_text url;     /* as fetched */
    struct webbase_text key;     /* its normal form */
    const char *id;              /* of the page: 32 hexadecimal digits */
    uint32_t docid;              /* in the generation; WEBBASE_NO_DOCID: the stream does not deliver that of a generation */
    uint64_t position;           /* records that the stream delivered before this one */
    int64_t time_ms;             /* when it was fetched, in milliseconds since 1970 */
    unsigned status;
    struct webbase_text type;    /* media type in lower case */
    struct webbase_text charset; /* what the server said; may be empty */
    struct webbase_text headers; /* status line and header lines as received */
    struct webbase_text body;    /* bytes, without transfer and content codings */
    int truncated;               /* not 0: the body was cut off when it was fetched */
    int revisit;                 /* not 0: this capture brought no new bytes */
    const char *token;           /* resumes the stream after this record */
};
#define WEBBASE_NO_DOCID UINT32_MAX

struct webbase_link {
    struct webbase_text url;     /* absolute */
    struct webbase_text anchor;  /* the text of the link */
};

/* What the program does for a handler. */
struct webbase_host {
    const char *argument;        /* what follows "=" in --handler FILE.so=ARGUMENT; "" if nothing does */
    unsigned worker, workers;    /* this process is worker 1 to workers */

    /* The visible text, title and language (ISO 639-1; "" if unsure) of the record. UTF-8, valid until the next record. */
    int (*text)(const struct webbase_host *host, struct webbase_text *text_out, struct webbase_text *title_out,
                const char **language_out);

    /* The links of the record that a reader can follow, in the order of the page. Valid until the next record. */
    int (*links)(const struct webbase_host *host, const struct webbase_link **links_out, size_t *count_out);

    /* Prints a line on standard error, beside the progress. */
    void (*say)(const struct webbase_host *host, const char *format, ...) __attribute__((format(printf, 2, 3)));

    /* With several workers, if the handler defines merge: the file for this worker's share. Otherwise NULL. */
    const char *part;
};

/* Called first. *state_out is passed to the other two. */
int webbase_handler_init(const struct webbase_host *host, void **state_out);

/* Called for every record. */
int webbase_handler_process(void *state, const struct webbase_record *record);

/* Called last, also if the stream failed or was stopped: then complete is 0. */
int webbase_handler_finish(void *state, int complete);

/*
 * Optional; only called with several workers, in a process in which init was not called. parts are the files of
 * workers 1 to count, as they left them; they may be empty, and the program removes them. host->part is NULL.
 */
int webbase_handler_merge(const struct webbase_host *host, const char *const *parts, size_t count);

#ifdef __cplusplus
}
#endif

#endif
