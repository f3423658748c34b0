/*
 * module.h - what a module must define: which media types it reads, and three functions. It finds out what is in a
 * page of a type that WebBase does not read itself, or reads it better.
 *
 *   cc -O2 -shared -fPIC -I include -o note.so note.c
 *   webbase crawl --module ./note.so=ARGUMENT https://example.org/
 *
 * A module runs in a process of its own, one for each process of WebBase that needs it. That process has no network and
 * no files: open(), socket() and the like fail. It may start threads, but no processes. It is killed when it takes
 * longer over a page than --module-time or more memory than --module-memory. Then what it would have said about
 * the page is lost, and it is started again for the next one. Its libraries are loaded, and their constructors run,
 * while files may still be read; init is called when they no longer may be.
 *
 * The program calls init once, process for every page, and finish once at the end, unless the process was killed.
 * The bytes of a page come from the web and may be hostile. Texts are bytes with a length, without a NUL behind them.
 */
#ifndef WEBBASE_MODULE_H
#define WEBBASE_MODULE_H

#include <webbase/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counted up when the structs below change in a way that old modules cannot bear. Checked when a module is loaded. */
#define WEBBASE_MODULE_ABI 1
extern const unsigned webbase_module_abi;
__attribute__((weak, visibility("default"))) const unsigned webbase_module_abi = WEBBASE_MODULE_ABI;

/* The media types that the module reads, in lower case, with commas between: "image/tiff,text/x-note"; "image/" and a
 * star mean all of image */
extern const char *const webbase_module_types;

/*
 * What a module says about the page. Texts are UTF-8. What is said twice is added (text, links, facts) or replaces what
 * was said before (title, dates, a fact of the same name). Each function returns 0, or -1 if there is no room for
 * more: a page has at most 8 MB of text, 65,536 links, and 64 facts.
 */
struct webbase_output {
    int (*text)(const struct webbase_output *out, const char *text, size_t len); /* a newline ends a paragraph */
    int (*title)(const struct webbase_output *out, const char *text, size_t len);
    int (*published)(const struct webbase_output *out, int64_t time_ms); /* in milliseconds since 1970 */
    int (*modified)(const struct webbase_output *out, int64_t time_ms);

    /* The URL may be relative to that of the page. */
    int (*link)(const struct webbase_output *out, const char *url, size_t url_len, const char *anchor,
                size_t anchor_len);

    /* A name has 1 to 64 letters, digits, '_', '-' and '.'; a value has at most 4096 bytes. */
    int (*fact)(const struct webbase_output *out, const char *name, const char *value, size_t value_len);
};

/*
 * Called first; *state_out is passed to the other two. host->argument is what follows "=" in --module FILE.so=ARGUMENT.
 * host->say prints a line on standard error. Other members of host serve handlers and do nothing here.
 */
int webbase_module_init(const struct webbase_host *host, void **state_out);

/*
 * Called for every page. Of the record, url, key, type, charset and body are set; the rest is empty. WEBBASE_OK, or
 * WEBBASE_SKIPPED if the page is of no use to the module; anything negative is an error of this page.
 */
int webbase_module_process(void *state, const struct webbase_record *record, const struct webbase_output *out);

/* Called last. complete is 0 if init failed. */
int webbase_module_finish(void *state, int complete);

#ifdef __cplusplus
}
#endif

#endif
