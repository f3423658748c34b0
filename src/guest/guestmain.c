/*
 * guestmain.c - what a guest does: loads its module, gives up its rights, and answers requests until the socket ends.
 *
 *   wb_cage_enter() -> load -> wb_cage_shut() -> init -> hello -> (request -> process -> answer)... -> finish
 *
 * What this process writes may be the work of hostile bytes, so nothing here protects anybody but the module: limits
 * are kept so that a module which means well is told of them. guestanswer.c is what others rely on.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "guest/cage.h"
#include "guest/guestwire.h"
#include "guest/guestreader.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

enum { ORPHAN_S = 5 }; /* after the time for a page, if nobody is left to kill us */

/* What the module says about the page under way. */
struct guest_answer {
    struct webbase_output out; /* first, so that its address is that of the answer */
    struct wb_buf bytes;
    size_t text_bytes;
    unsigned links, facts;
};

static struct guest_answer answer;

/* ---- what a module calls ------------------------------------------------------------------------- */

static int add_part(struct guest_answer *a, char kind, struct wb_slice name, struct wb_slice value)
{
    char head[WB_GUEST_PART_BYTES] = {kind};

    if (name.len > WB_GUEST_TEXT_MAX || value.len > WB_GUEST_TEXT_MAX ||
        a->bytes.len + name.len + value.len + sizeof head > WB_GUEST_ANSWER_MAX - 64)
        return -1;
    wb_put32(head + 1, (uint32_t)name.len);
    wb_put32(head + 5, (uint32_t)value.len);
    int err = wb_buf_append(&a->bytes, head, sizeof head);
    if (err == 0)
        err = wb_buf_append_slice(&a->bytes, name);
    if (err == 0)
        err = wb_buf_append_slice(&a->bytes, value);
    return err < 0 ? -1 : 0;
}

static struct guest_answer *answer_of(const struct webbase_output *out)
{
    WB_CHECK(out == &answer.out);
    return &answer;
}

static int say_text(const struct webbase_output *out, const char *text, size_t len)
{
    struct guest_answer *a = answer_of(out);

    if (len > WB_GUEST_TEXT_MAX - a->text_bytes)
        return -1;
    a->text_bytes += len;
    return len ? add_part(a, WB_GUEST_TEXT, WB_SLICE_EMPTY, wb_slice(text, len)) : 0;
}

static int say_title(const struct webbase_output *out, const char *text, size_t len)
{
    return add_part(answer_of(out), WB_GUEST_TITLE, WB_SLICE_EMPTY, wb_slice(text, len));
}

static int say_time(const struct webbase_output *out, char kind, int64_t time_ms)
{
    char bytes[8];

    wb_put64(bytes, (uint64_t)time_ms);
    return add_part(answer_of(out), kind, WB_SLICE_EMPTY, wb_slice(bytes, sizeof bytes));
}

static int say_published(const struct webbase_output *out, int64_t time_ms)
{
    return say_time(out, WB_GUEST_PUBLISHED, time_ms);
}

static int say_modified(const struct webbase_output *out, int64_t time_ms)
{
    return say_time(out, WB_GUEST_MODIFIED, time_ms);
}

static int say_link(const struct webbase_output *out, const char *url, size_t url_len, const char *anchor,
                    size_t anchor_len)
{
    struct guest_answer *a = answer_of(out);

    if (a->links == WB_GUEST_LINKS_MAX)
        return -1;
    a->links++;
    return add_part(a, WB_GUEST_LINK, wb_slice(url, url_len), wb_slice(anchor, anchor_len));
}

static int say_fact(const struct webbase_output *out, const char *name, const char *value, size_t value_len)
{
    struct guest_answer *a = answer_of(out);
    struct wb_guest_part part;

    if (a->facts == WB_GUEST_FACTS_MAX)
        return -1;
    size_t before = a->bytes.len;
    int err = add_part(a, WB_GUEST_FACT, wb_slice_str(name), wb_slice(value, value_len));
    struct wb_slice added = wb_slice(a->bytes.ptr + before, a->bytes.len - before);
    if (err < 0 || wb_guest_next(&added, &part) != 1) { /* the rules for names and values are there */
        a->bytes.len = before;
        return -1;
    }
    a->facts++;
    return 0;
}

__attribute__((format(printf, 2, 3))) static void say(const struct webbase_host *host, const char *format, ...)
{
    char text[1024];
    va_list args;

    (void)host;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_part(&answer, WB_GUEST_SAY, WB_SLICE_EMPTY, wb_slice_str(text));
}

static int no_text(const struct webbase_host *host, struct webbase_text *text_out, struct webbase_text *title_out,
                   const char **language_out)
{
    (void)host;
    *text_out = *title_out = (struct webbase_text){"", 0};
    *language_out = "";
    return WEBBASE_FAILED;
}

static int no_links(const struct webbase_host *host, const struct webbase_link **links_out, size_t *count_out)
{
    (void)host;
    *links_out = NULL;
    *count_out = 0;
    return WEBBASE_FAILED;
}

/* ---- loading ------------------------------------------------------------------------------------- */

/* A function of the module, without the conversion of a pointer that C does not define. */
static bool find(void *library, const char *name, void *function_out)
{
    void *at = dlsym(library, name);

    memcpy(function_out, &at, sizeof at);
    return at != NULL;
}

static int load_file(const char *file, struct wb_guest_reader *reader)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        const char *why = dlerror();
        return wb_fail(WB_E_INVALID, "%s", why ? why : "it is not a shared object");
    }
    const unsigned *abi = dlsym(library, "webbase_module_abi");
    const char *const *types = dlsym(library, "webbase_module_types");
    if (!abi || !types || !*types || !find(library, "webbase_module_init", &reader->init) ||
        !find(library, "webbase_module_process", &reader->process) ||
        !find(library, "webbase_module_finish", &reader->finish))
        return wb_fail(WB_E_INVALID, "it does not define what webbase/module.h asks for");
    if (*abi != WEBBASE_MODULE_ABI)
        return wb_fail(WB_E_INVALID, "it was compiled for version %u of webbase/module.h, and this is version %u", *abi,
                       WEBBASE_MODULE_ABI);
    reader->types = *types;
    return strlen(reader->types) <= WB_GUEST_TYPES_MAX ? 0 : wb_fail(WB_E_LIMIT, "its list of types is too long");
}

static bool write_all(struct wb_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t sent = write(WB_GUEST_SOCKET, bytes.ptr, bytes.len);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        bytes = wb_slice(bytes.ptr + sent, bytes.len - (size_t)sent);
    }
    return true;
}

/* Sends a message of one byte and a text. */
static bool send_message(char byte, struct wb_slice text)
{
    char head[5];

    wb_put32(head, (uint32_t)text.len + 1);
    head[4] = byte;
    return write_all(wb_slice(head, sizeof head)) && write_all(text);
}

/* ---- requests ------------------------------------------------------------------------------------ */

static bool read_all(char *to, size_t len)
{
    while (len > 0) {
        ssize_t got = read(WB_GUEST_SOCKET, to, len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        len -= (size_t)got;
    }
    return true;
}

/* Reads a request; false when there are no more. */
static bool read_request(struct wb_buf *memory, struct wb_slice parts[4])
{
    char head[4];

    wb_buf_clear(memory);
    if (!read_all(head, sizeof head))
        return false;
    uint32_t len = wb_get32(head);
    if (len > WB_GUEST_REQUEST_MAX || wb_buf_reserve(memory, len + 1) < 0 || !read_all(memory->ptr, len))
        return false;
    size_t at = 0;
    for (size_t i = 0; i < 4; i++) {
        if (len - at < 4 || wb_get32(memory->ptr + at) > len - at - 4)
            return false;
        parts[i] = wb_slice(memory->ptr + at + 4, wb_get32(memory->ptr + at));
        at += 4 + parts[i].len;
    }
    return true;
}

static void set_timer(unsigned seconds)
{
    struct itimerval timer = {.it_value.tv_sec = (time_t)seconds};

    setitimer(ITIMER_REAL, &timer, NULL);
}

static struct webbase_text text_of(struct wb_slice s)
{
    return (struct webbase_text){s.ptr, s.len};
}

static bool answer_request(const struct wb_guest_reader *reader, void *state, const struct wb_slice parts[4],
                           unsigned time_s)
{
    struct webbase_text none = {"", 0};
    struct webbase_record record = {.url = text_of(parts[0]),
                                    .key = text_of(parts[0]),
                                    .type = text_of(parts[1]),
                                    .charset = text_of(parts[2]),
                                    .body = text_of(parts[3]),
                                    .headers = none,
                                    .id = "",
                                    .token = "",
                                    .docid = WEBBASE_NO_DOCID};

    answer.text_bytes = answer.links = answer.facts = 0;
    set_timer(time_s + ORPHAN_S);
    int result = reader->process(state, &record, &answer.out);
    set_timer(0);
    bool sent = send_message(result < 0, wb_buf_slice(&answer.bytes));
    wb_buf_clear(&answer.bytes);
    wb_buf_trim(&answer.bytes, (size_t)1 << 20);
    return sent;
}

static int serve(const struct wb_guest_reader *reader, const struct webbase_host *host, unsigned time_s)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_slice parts[4];
    void *state = NULL;

    set_timer(time_s + ORPHAN_S);
    int result = reader->init(host, &state);
    set_timer(0);
    if (result < 0) {
        send_message('N', WB_SLICE_LIT("its init() failed"));
        reader->finish(state, 0);
        return 1;
    }
    bool going = send_message('Y', wb_slice_str(reader->types));
    while (going && read_request(&memory, parts)) {
        going = answer_request(reader, state, parts, time_s);
        wb_buf_trim(&memory, (size_t)4 << 20);
    }
    set_timer(time_s + ORPHAN_S);
    reader->finish(state, 1);
    return 0;
}

/* argv: the name of a guest, the file of the module or "", its argument, seconds and bytes for a page. */
int wb_guest_main(int argc, char **argv)
{
    struct wb_guest_reader reader = {.types = ""};

    if (argc != 5)
        _exit(2);
    unsigned time_s = (unsigned)strtoul(argv[3], NULL, 10);
    struct webbase_host host = {
        .argument = argv[2], .worker = 1, .workers = 1, .text = no_text, .links = no_links, .say = say};
    answer.out = (struct webbase_output){say_text, say_title, say_published, say_modified, say_link, say_fact};
    int err = wb_cage_enter();
    if (err == 0)
        err = argv[1][0] ? load_file(argv[1], &reader) : wb_pdf_reader(&reader);
    if (err == 0)
        err = wb_cage_shut(strtoull(argv[4], NULL, 10));
    if (err < 0)
        send_message('N', wb_slice_str(wb_error_message()));
    _exit(err < 0 ? 1 : serve(&reader, &host, time_s)); /* what others would do at the end of a process is not ours */
}
