/*
 * behave.c - one function per group of page kinds: redirects, errors, text in odd encodings,
 * and everything that is wrong on purpose, byte for byte.
 *
 * Each answer is a function of the page and the moment only: a page misbehaves in the same way
 * for every client. It never decides what kind a page is (plan.c), and never sends (webserver.c).
 */
#include "sim/behave.h"
#include "sim/bomb.h"
#include "sim/chance.h"
#include "sim/locate.h"
#include "sim/hypertext.h"
#include "sim/prose.h"

#include <unicode/ucnv.h>

#define CHAIN_HOPS 3
#define LONG_CHAIN_HOPS 60
#define SLOW_FIRST_MS 2000
#define DRIP_BYTES 512
#define DRIP_MS 200
#define HUGE_HEAD_LINES 4000
#define RAW_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"

int wb_behave_error(struct wb_respond *r, const struct wb_asked *asked, int status, struct wb_reply *reply)
{
    struct wb_pen pen = wb_pen(&r->body);

    wb_buf_clear(&r->body);
    wb_hypertext_message(wb_answer_reason(status), "This page is not to be had.", &pen);
    struct wb_answer answer = {.status = status, .type = "text/html; charset=utf-8", .body = wb_buf_slice(&r->body)};
    return pen.err < 0 ? pen.err : wb_answer(&r->answerer, asked, &answer, reply);
}

/* ---- pages ------------------------------------------------------------------------- */

/* Answers with the page itself, with the validators and compression that its site offers. */
static int answer_page(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan,
                       const struct wb_world_moment *now, struct wb_slice rest, struct wb_reply *reply)
{
    const struct wb_world_site *site = &r->world.site[plan->site];
    struct wb_pen pen = wb_pen(&r->body);
    double changed;

    wb_buf_clear(&r->body);
    wb_hypertext_page(&r->world, plan, now, "utf-8", rest, &pen);
    wb_plan_version(&r->world, plan, now, &changed);
    bool list = plan->page >= WB_PLAN_LATEST;
    struct wb_answer answer = {.status = 200,
                               .type = "text/html; charset=utf-8",
                               .body = wb_buf_slice(&r->body),
                               .etag = site->etag,
                               .modified_ms =
                                   site->modified && !list && !rest.len ? wb_world_stamp(&r->world, changed) : 0,
                               .gzip = site->gzip};
    return pen.err < 0 ? pen.err : wb_answer(&r->answerer, asked, &answer, reply);
}

/* Answers with the bytes of another page, exactly or nearly. */
static int answer_copy(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan,
                       const struct wb_world_moment *now, struct wb_reply *reply)
{
    struct wb_pen pen = wb_pen(&r->body);
    struct wb_plan twin;

    wb_plan_make(&r->world, plan->site, wb_plan_twin(&r->world, plan), &twin);
    wb_buf_clear(&r->body);
    wb_hypertext_page(&r->world, &twin, now, "utf-8", WB_SLICE_EMPTY, &pen);
    if (plan->kind == WB_KIND_NEAR)
        wb_pen_printf(&pen, "<!-- copy %u -->\n<p>This is copy number %u.</p>\n", plan->page, plan->page);
    struct wb_answer answer = {
        .status = 200, .type = "text/html; charset=utf-8", .body = wb_buf_slice(&r->body), .etag = true};
    return pen.err < 0 ? pen.err : wb_answer(&r->answerer, asked, &answer, reply);
}

/* Converts the body from UTF-8 to another encoding, into r->scratch. */
static int convert_body(struct wb_respond *r, const char *charset)
{
    UErrorCode code = U_ZERO_ERROR;
    size_t room = r->body.len * 2 + 64;

    wb_buf_clear(&r->scratch);
    int err = wb_buf_reserve(&r->scratch, room);
    if (err < 0)
        return err;
    int32_t got =
        ucnv_convert(charset, "utf-8", r->scratch.ptr, (int32_t)room, r->body.ptr, (int32_t)r->body.len, &code);
    r->scratch.len = U_SUCCESS(code) ? (size_t)got : 0;
    return 0;
}

/* Answers with a page in an encoding other than UTF-8. */
static int answer_encoded(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan,
                          const struct wb_world_moment *now, struct wb_reply *reply)
{
    struct wb_pen pen = wb_pen(&r->body);
    const char *charset = wb_plan_kind_word(plan->kind);
    /* Half of the pages declare their encoding in the HTTP head, the other half only in a meta element. */
    bool told =
        plan->kind == WB_KIND_UTF16 || wb_chance(r->world.seed, plan->site, plan->page, WB_CHANCE_BEHAVIOUR) & 1;
    char type[64] = "text/html";

    wb_buf_clear(&r->body);
    wb_hypertext_page(&r->world, plan, now, told ? NULL : charset, WB_SLICE_EMPTY, &pen);
    int err = pen.err < 0 ? pen.err : convert_body(r, plan->kind == WB_KIND_UTF16 ? "utf-16le" : charset);
    if (err < 0)
        return err;
    if (told) {
        strcat(type, "; charset=");
        strcat(type, plan->kind == WB_KIND_UTF16 ? "utf-16le" : charset);
    }
    struct wb_answer answer = {.status = 200, .type = type, .body = wb_buf_slice(&r->scratch), .etag = true};
    return wb_answer(&r->answerer, asked, &answer, reply);
}

/* ---- redirects -------------------------------------------------------------------- */

/* Answers with a redirect to the address in r->path. */
static int answer_redirect(struct wb_respond *r, const struct wb_asked *asked, int status, struct wb_reply *reply)
{
    int err = wb_buf_terminate(&r->path);
    struct wb_pen pen = wb_pen(&r->body);

    wb_buf_clear(&r->body);
    wb_hypertext_message("Moved", "The page has moved.", &pen);
    struct wb_answer answer = {.status = status, .type = "text/html; charset=utf-8", .body = wb_buf_slice(&r->body),
                               .location = r->path.ptr};
    if (err == 0)
        err = pen.err;
    return err < 0 ? err : wb_answer(&r->answerer, asked, &answer, reply);
}

/* The number after "?hop=": 0 for the page itself, -1 for anything else. */
static int hop_number(struct wb_slice rest)
{
    struct wb_slice prefix = WB_SLICE_LIT("?hop=");
    uint64_t hop = 0;

    if (rest.len == 0)
        return 0;
    if (!wb_slice_starts(rest, prefix) ||
        !wb_slice_to_u64(wb_slice(rest.ptr + prefix.len, rest.len - prefix.len), &hop) || hop < 1 ||
        hop > LONG_CHAIN_HOPS)
        return -1;
    return (int)hop;
}

/*
 * Answers for the kinds that redirect: to another page or site, through a chain of hops, in a loop,
 * or to a bad address.
 */
static int redirect_page(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan,
                         const struct wb_world_moment *now, struct wb_slice rest, struct wb_reply *reply)
{
    int hop = hop_number(rest), status = wb_plan_status(&r->world, plan, now);
    int hops = plan->kind == WB_KIND_CHAIN ? CHAIN_HOPS : plan->kind == WB_KIND_LONG_CHAIN ? LONG_CHAIN_HOPS : 0;
    struct wb_pen pen = wb_pen(&r->path);
    struct wb_plan target;

    wb_buf_clear(&r->path);
    if (plan->kind == WB_KIND_BAD_LOCATION)
        wb_pen_str(&pen, "http://[nowhere:%zz/\x01\x7f");
    else if (plan->kind == WB_KIND_LOOP || hop + 1 < hops) {
        wb_locate_path(&r->world, plan, &pen);
        if (plan->kind != WB_KIND_LOOP || hop == 0)
            wb_pen_printf(&pen, "?hop=%d", hop + 1);
    } else if (plan->kind == WB_KIND_OUT) {
        uint64_t draw = wb_chance(r->world.seed, plan->site, plan->page, WB_CHANCE_DERIVED);
        wb_plan_make(&r->world, 1 + (uint32_t)(draw % r->world.sites), 0, &target);
        wb_locate_url(&r->world, &target, &pen);
    } else {
        wb_plan_make(&r->world, plan->site, wb_plan_twin(&r->world, plan), &target);
        wb_locate_path(&r->world, &target, &pen);
    }
    if (hop < 0 || (hop > 0 && hops == 0 && plan->kind != WB_KIND_LOOP))
        return wb_behave_error(r, asked, 404, reply);
    return pen.err < 0 ? pen.err : answer_redirect(r, asked, status, reply);
}

/* ---- wrong on purpose -------------------------------------------------------------- */

/* Supplies an endless body. */
static int more_body(void *context, struct wb_buf *bytes_out)
{
    static const char text[] = "<p>And so on, and so on; there is always more of it where that came from.</p>\n";
    int err = 0;

    (void)context;
    for (unsigned i = 0; err == 0 && i < 400; i++)
        err = wb_buf_append(bytes_out, text, sizeof text - 1);
    return err < 0 ? err : 1;
}

/* Supplies endless header lines. */
static int more_head(void *context, struct wb_buf *bytes_out)
{
    int err = 0;

    (void)context;
    for (unsigned i = 0; err == 0 && i < 400; i++)
        err = wb_buf_append_str(bytes_out, "X-Filler: there is always one more header line\r\n");
    return err < 0 ? err : 1;
}

/* Makes the bomb, or the bomb inside a bomb, when it is first asked for. */
static int make_bomb(struct wb_respond *r, bool nested)
{
    struct wb_slice packed;
    int err = r->bomb.len ? 0 : wb_bomb_make(&r->bomb);

    if (err < 0 || !nested || r->nested.len)
        return err;
    err = wb_answer_gzip(&r->answerer, wb_buf_slice(&r->bomb), &packed);
    return err < 0 ? err : wb_buf_append_slice(&r->nested, packed);
}

static int send_bomb(struct wb_respond *r, bool nested, struct wb_pen *out)
{
    int err = make_bomb(r, nested);
    struct wb_slice bytes = wb_buf_slice(nested ? &r->nested : &r->bomb);

    wb_pen_printf(out, RAW_HEAD "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n", nested ? "gzip, gzip" : "gzip",
                  bytes.len);
    wb_pen_slice(out, bytes);
    return err;
}

/* Writes a chunked body whose second chunk has an invalid size line, in one of two ways. */
static void write_bad_chunks(struct wb_pen *out, struct wb_slice body, uint64_t draw)
{
    wb_pen_str(out, RAW_HEAD "Transfer-Encoding: chunked\r\n\r\n");
    wb_pen_printf(out, "%zx\r\n", body.len / 2);
    wb_pen_put(out, body.ptr, body.len / 2);
    if (draw & 1)
        wb_pen_str(out, "\r\nxyz\r\n");
    else
        wb_pen_str(out, "no end of line\r\nfffffffffffffffff\r\n");
    wb_pen_put(out, body.ptr + body.len / 2, body.len - body.len / 2);
}

static void write_garbage(struct wb_pen *out, uint64_t draw)
{
    struct wb_chance_dice dice = {draw};

    for (unsigned i = 0; i < 500; i++) {
        uint32_t word = wb_chance_dice_next(&dice);
        wb_pen_put(out, &word, sizeof word);
    }
}

/* Writes the kinds that are one fixed string of bytes around the body. */
static void write_wrong(const struct wb_plan *plan, struct wb_slice body, uint64_t draw, struct wb_pen *out)
{
    switch (plan->kind) {
    case WB_KIND_RESET_HEAD:
        wb_pen_str(out, "HTTP/1.1 200 OK\r\nContent-Type: text/ht");
        break;
    case WB_KIND_RESET_BODY:
    case WB_KIND_SHORT:
        wb_pen_printf(out, RAW_HEAD "Content-Length: %zu\r\n\r\n", body.len);
        wb_pen_put(out, body.ptr, body.len / 2);
        break;
    case WB_KIND_LONG:
        wb_pen_printf(out, RAW_HEAD "Content-Length: %zu\r\n\r\n", body.len / 2);
        wb_pen_slice(out, body);
        break;
    case WB_KIND_BAD_GZIP:
        wb_pen_printf(out, RAW_HEAD "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", body.len);
        wb_pen_slice(out, body);
        break;
    case WB_KIND_UNKNOWN_CODING:
        wb_pen_printf(out, RAW_HEAD "Content-Encoding: squeezed\r\nContent-Length: %zu\r\n\r\n", body.len);
        wb_pen_slice(out, body);
        break;
    case WB_KIND_BAD_CHUNKS:
        write_bad_chunks(out, body, draw);
        break;
    case WB_KIND_GARBAGE:
        write_garbage(out, draw);
        break;
    case WB_KIND_BAD_HEAD:
        wb_pen_str(out, "HTTP/1.1 200 OK\r\nno colon in this line\r\nX-Nul: a");
        wb_pen_put(out, "\0b\r\n", 4);
        wb_pen_str(out, " folded: yes\r\n: no name\r\nContent-Length: -5\r\n\r\n");
        wb_pen_slice(out, body);
        break;
    case WB_KIND_TWO_LENGTHS:
        wb_pen_printf(out, RAW_HEAD "Content-Length: %zu\r\nContent-Length: 3\r\n\r\n", body.len);
        wb_pen_slice(out, body);
        break;
    case WB_KIND_ENDLESS:
        wb_pen_str(out, RAW_HEAD "Connection: close\r\n\r\n");
        wb_pen_slice(out, body);
        break;
    case WB_KIND_ENDLESS_HEAD:
        wb_pen_str(out, "HTTP/1.1 200 OK\r\n");
        break;
    case WB_KIND_HUGE_HEAD:
        wb_pen_str(out, RAW_HEAD);
        for (unsigned i = 0; i < HUGE_HEAD_LINES; i++)
            wb_pen_printf(out, "X-Line-%u: %0240u\r\n", i, i);
        wb_pen_printf(out, "Content-Length: %zu\r\n\r\n", body.len);
        wb_pen_slice(out, body);
        break;
    default:
        break;
    }
}

/* Sends one of the malformed answers, and chooses how the connection ends after it. */
static int send_wrong(struct wb_respond *r, const struct wb_plan *plan, const struct wb_world_moment *now,
                      struct wb_reply *reply)
{
    struct wb_pen pen = wb_pen(&r->body), out = wb_pen(&reply->bytes);
    int err = 0;

    wb_buf_clear(&r->body);
    wb_hypertext_page(&r->world, plan, now, "utf-8", WB_SLICE_EMPTY, &pen);
    if (plan->kind == WB_KIND_BOMB || plan->kind == WB_KIND_BOMB_NESTED)
        err = send_bomb(r, plan->kind == WB_KIND_BOMB_NESTED, &out);
    else
        write_wrong(plan, wb_buf_slice(&r->body), wb_chance(r->world.seed, plan->site, plan->page, WB_CHANCE_BEHAVIOUR),
                    &out);
    if (plan->kind == WB_KIND_ENDLESS)
        reply->more = more_body;
    if (plan->kind == WB_KIND_ENDLESS_HEAD)
        reply->more = more_head;
    bool reset = plan->kind == WB_KIND_RESET_HEAD || plan->kind == WB_KIND_RESET_BODY;
    reply->end = plan->kind == WB_KIND_SILENT ? WB_REPLY_HOLD : reset ? WB_REPLY_RESET : WB_REPLY_CLOSE;
    reply->status = wb_plan_status(&r->world, plan, now);
    return err < 0 ? err : pen.err < 0 ? pen.err : out.err;
}

/* ---- choosing by kind --------------------------------------------------------------------- */

/* Answers for the kinds that recover: with an error and Retry-After while they are down, otherwise with the page. */
static int answer_failing(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan,
                          const struct wb_world_moment *now, struct wb_reply *reply)
{
    unsigned wait = wb_plan_wait(&r->world, plan, now);

    if (!wait)
        return answer_page(r, asked, plan, now, WB_SLICE_EMPTY, reply);
    struct wb_answer answer = {.status = wb_plan_status(&r->world, plan, now), .type = "text/plain",
                               .body = WB_SLICE_LIT("Try again later.\n"), .retry_after_s = wait};
    return wb_answer(&r->answerer, asked, &answer, reply);
}

/* Answers for addresses below a page: 404, except for the kinds that go on forever. */
static int behave_below(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan,
                        const struct wb_world_moment *now, struct wb_slice rest, struct wb_reply *reply)
{
    struct wb_answer lost = {
        .status = 200, .type = "text/plain", .body = WB_SLICE_LIT("Sorry, we could not find that page.\n")};

    switch (plan->kind) {
    case WB_KIND_CHAIN:
    case WB_KIND_LONG_CHAIN:
    case WB_KIND_LOOP:
        return redirect_page(r, asked, plan, now, rest, reply);
    case WB_KIND_CALENDAR:
    case WB_KIND_SESSION:
        if (rest.ptr[0] != '?')
            break;
        return answer_page(r, asked, plan, now, rest, reply);
    case WB_KIND_REPEAT:
        return answer_page(r, asked, plan, now, rest, reply);
    case WB_KIND_SOFT404:
        return wb_answer(&r->answerer, asked, &lost, reply);
    default:
        break;
    }
    return wb_behave_error(r, asked, 404, reply);
}

int wb_behave(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan,
              const struct wb_world_moment *now, struct wb_slice rest, struct wb_reply *reply)
{
    int status = wb_plan_status(&r->world, plan, now);

    if (rest.len > 0)
        return behave_below(r, asked, plan, now, rest, reply);
    if (status == 404 || status == 410 || status == 500)
        return wb_behave_error(r, asked, status, reply);
    switch (plan->kind) {
    case WB_KIND_DUPLICATE:
    case WB_KIND_NEAR:
        return answer_copy(r, asked, plan, now, reply);
    case WB_KIND_LATIN:
    case WB_KIND_SJIS:
    case WB_KIND_UTF16:
        return answer_encoded(r, asked, plan, now, reply);
    case WB_KIND_REDIRECT:
    case WB_KIND_CHAIN:
    case WB_KIND_OUT:
    case WB_KIND_LOOP:
    case WB_KIND_LONG_CHAIN:
    case WB_KIND_BAD_LOCATION:
        return redirect_page(r, asked, plan, now, rest, reply);
    case WB_KIND_UNAVAILABLE:
    case WB_KIND_TOO_MANY:
        return answer_failing(r, asked, plan, now, reply);
    case WB_KIND_SLOW_FIRST:
        reply->delay_ms = SLOW_FIRST_MS;
        return answer_page(r, asked, plan, now, rest, reply);
    case WB_KIND_SLOW_BODY:
        reply->drip_bytes = DRIP_BYTES;
        reply->drip_ms = DRIP_MS;
        return answer_page(r, asked, plan, now, rest, reply);
    case WB_KIND_PAGE:
    case WB_KIND_CALENDAR:
    case WB_KIND_REPEAT:
    case WB_KIND_SESSION:
    case WB_KIND_SOFT404:
    case WB_KIND_MANY_LINKS:
    case WB_KIND_DEEP:
        return answer_page(r, asked, plan, now, rest, reply);
    default:
        return send_wrong(r, plan, now, reply);
    }
}
