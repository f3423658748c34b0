/*
 * test_tokenizer.c - all tokenizer cases of html5lib, and what they do not cover: long inputs, limits,
 * attributes.
 */
#include "../testdata.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "markup/scan.h"
#include "markup/tokenizer.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- tokens as JSON, as the cases write them --------------------------------------------- */

static json_t *text_of(struct wb_slice raw, unsigned how)
{
    char *out = malloc(WB_DECODED_MAX(raw.len));

    assert_non_null(out);
    size_t len = wb_token_decode(raw, how, out);
    assert_true(len <= WB_DECODED_MAX(raw.len));
    json_t *text = json_stringn_nocheck(out, len);
    free(out);
    assert_non_null(text);
    return text;
}

static json_t *attrs_of(const struct wb_tokenizer *t)
{
    json_t *attrs = json_object();

    for (unsigned i = 0; i < t->attr_count; i++) {
        const struct wb_token_attr *a = &t->attrs[i];
        json_t *name = text_of(a->name, a->name_coded ? WB_DECODE_NAME : 0);
        /* Under a name, a caller finds the first attribute with that name. */
        const struct wb_token_attr *found =
            wb_tokenizer_attr(t, wb_slice(json_string_value(name), json_string_length(name)));
        if (!json_object_get(attrs, json_string_value(name))) {
            assert_ptr_equal(found, a);
            json_object_set_new_nocheck(attrs, json_string_value(name),
                                        text_of(a->value, a->value_coded ? WB_DECODE_VALUE : 0));
        } else {
            assert_true(found < a);
        }
        json_decref(name);
    }
    return attrs;
}

/* Joins text with the text before it. */
static void append_text(json_t *tokens, json_t *text)
{
    json_t *last = json_array_get(tokens, json_array_size(tokens) - 1);

    if (json_array_size(tokens) > 0 && strcmp(json_string_value(json_array_get(last, 0)), "Character") == 0) {
        json_t *before = json_array_get(last, 1);
        struct wb_buf joined = WB_BUF_INIT;
        assert_int_equal(wb_buf_append(&joined, json_string_value(before), json_string_length(before)), 0);
        assert_int_equal(wb_buf_append(&joined, json_string_value(text), json_string_length(text)), 0);
        json_array_set_new(last, 1, json_stringn_nocheck(joined.ptr, joined.len));
        wb_buf_release(&joined);
        json_decref(text);
        return;
    }
    json_array_append_new(tokens, json_pack("[so]", "Character", text));
}

static void append_token(json_t *tokens, const struct wb_tokenizer *t)
{
    const struct wb_token_doctype *d = &t->doctype;

    switch (t->kind) {
    case WB_TOKEN_TEXT:
        append_text(tokens, text_of(t->text, t->how));
        break;
    case WB_TOKEN_START: {
        json_t *token = json_pack("[soo]", "StartTag", text_of(t->text, t->how), attrs_of(t));
        if (t->self_closing)
            json_array_append_new(token, json_true());
        json_array_append_new(tokens, token);
        break;
    }
    case WB_TOKEN_END:
        json_array_append_new(tokens, json_pack("[so]", "EndTag", text_of(t->text, t->how)));
        break;
    case WB_TOKEN_COMMENT:
        json_array_append_new(tokens, json_pack("[so]", "Comment", text_of(t->text, t->how)));
        break;
    case WB_TOKEN_DOCTYPE:
        json_array_append_new(tokens,
                              json_pack("[soooo]", "DOCTYPE", d->has_name ? text_of(t->text, t->how) : json_null(),
                                        d->has_public ? text_of(d->public_id, WB_DECODE_NUL) : json_null(),
                                        d->has_system ? text_of(d->system_id, WB_DECODE_NUL) : json_null(),
                                        json_boolean(!d->force_quirks)));
        break;
    default:
        fail_msg("a token of kind %d", t->kind);
    }
}

static json_t *tokens_of(struct wb_slice input, enum wb_token_mode mode, const char *last_start)
{
    struct wb_tokenizer *t = malloc(sizeof *t);
    json_t *tokens = json_array();
    /* A copy of the exact size, so that a sanitizer notices a read past the end. */
    char *exact = malloc(input.len ? input.len : 1);

    assert_true(t && exact);
    if (input.len)
        memcpy(exact, input.ptr, input.len);
    wb_tokenizer_init(t, wb_slice(exact, input.len));
    t->mode = mode;
    if (last_start)
        t->last_start = wb_slice_str(last_start);
    const char *at = exact;
    while (wb_tokenizer_next(t) != WB_TOKEN_NONE) {
        assert_true(t->raw.ptr >= at && t->raw.len > 0);
        at = t->raw.ptr + t->raw.len;
        append_token(tokens, t);
    }
    assert_ptr_equal(t->at, exact + input.len);
    assert_int_equal(wb_tokenizer_next(t), WB_TOKEN_NONE);
    free(exact);
    free(t);
    return tokens;
}

/* ---- the cases ---------------------------------------------------------------------------- */

static void put_code(struct wb_buf *out, uint32_t code)
{
    char utf8[4] = {(char)(0xe0 | code >> 12), (char)(0x80 | (code >> 6 & 0x3f)), (char)(0x80 | (code & 0x3f))};
    bool surrogate = code >= 0xd800 && code <= 0xdfff; /* half of a pair, in some cases: any bytes will do */
    size_t len = surrogate ? 3 : wb_utf8_encode(code, utf8);

    assert_int_equal(wb_buf_append(out, utf8, len), 0);
}

/* Decodes the second layer of \uXXXX. */
static json_t *unescape(json_t *text)
{
    struct wb_buf out = WB_BUF_INIT;
    const char *p = json_string_value(text), *end = p + json_string_length(text);

    while (p < end) {
        unsigned code = 0, low = 0;
        int used = 0;
        if (sscanf(p, "\\u%4x%n", &code, &used) != 1 || used != 6) {
            assert_int_equal(wb_buf_append_char(&out, *p++), 0);
            continue;
        }
        p += 6;
        if (code >> 10 == 0x36 && sscanf(p, "\\u%4x%n", &low, &used) == 1 && used == 6 && low >> 10 == 0x37) {
            code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
            p += 6;
        }
        put_code(&out, code);
    }
    json_t *done = json_stringn_nocheck(out.ptr ? out.ptr : "", out.len);
    wb_buf_release(&out);
    return done;
}

/* Makes a tree in which every text and every key is unescaped. */
static json_t *unescape_all(json_t *value)
{
    size_t i;
    json_t *item, *done;
    const char *key;

    if (json_is_string(value))
        return unescape(value);
    if (json_is_array(value)) {
        done = json_array();
        json_array_foreach(value, i, item)
            json_array_append_new(done, unescape_all(item));
        return done;
    }
    if (!json_is_object(value))
        return json_incref(value);
    done = json_object();
    json_object_foreach(value, key, item) {
        json_t *name = json_string_nocheck(key), *plain = unescape(name);
        json_object_set_new_nocheck(done, json_string_value(plain), unescape_all(item));
        json_decref(name);
        json_decref(plain);
    }
    return done;
}

static enum wb_token_mode mode_by_name(const char *name)
{
    static const struct {
        const char *name;
        enum wb_token_mode mode;
    } modes[] = {
        {"Data state", WB_MODE_DATA},           {"RCDATA state", WB_MODE_RCDATA},
        {"RAWTEXT state", WB_MODE_RAWTEXT},     {"Script data state", WB_MODE_SCRIPT},
        {"PLAINTEXT state", WB_MODE_PLAINTEXT}, {"CDATA section state", WB_MODE_CDATA},
    };

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, name) == 0)
            return modes[i].mode;
    fail_msg("no mode for %s", name);
    return WB_MODE_DATA;
}

struct tally {
    unsigned runs, failed;
    bool xml;
};

/*
 * The cases of xmlViolation.test show tokens after they were adapted to XML. That is not the task of a
 * tokenizer, so the test does it.
 */
static json_t *made_fit_for_xml(json_t *text, bool comment)
{
    struct wb_buf out = WB_BUF_INIT;
    const char *p = json_string_value(text);

    for (; *p; p++)
        if (*p == '\f')
            assert_int_equal(wb_buf_append_char(&out, ' '), 0);
        else if (strncmp(p, "\xef\xbf\xbf", 3) == 0 && (p += 2))
            assert_int_equal(wb_buf_append_str(&out, "\xef\xbf\xbd"), 0);
        else
            assert_int_equal(wb_buf_append_str(&out, comment && strncmp(p, "--", 2) == 0 ? "- " : (char[]){*p, 0}), 0);
    json_t *done = json_stringn_nocheck(out.ptr ? out.ptr : "", out.len);
    wb_buf_release(&out);
    return done;
}

static void make_fit_for_xml(json_t *tokens)
{
    size_t i;
    json_t *token;

    json_array_foreach(tokens, i, token) {
        const char *kind = json_string_value(json_array_get(token, 0));
        if (strcmp(kind, "Character") == 0 || strcmp(kind, "Comment") == 0)
            json_array_set_new(token, 1, made_fit_for_xml(json_array_get(token, 1), kind[1] == 'o'));
    }
}

static void expect_tokens(struct tally *tally, json_t *want, struct wb_slice input, const char *state,
                          const char *last_start, const char *description)
{
    json_t *got = tokens_of(input, mode_by_name(state), last_start);

    if (tally->xml)
        make_fit_for_xml(got);

    tally->runs++;
    if (!json_equal(got, want)) {
        char *a = json_dumps(want, JSON_COMPACT | JSON_ENSURE_ASCII),
             *b = json_dumps(got, JSON_COMPACT | JSON_ENSURE_ASCII);
        print_message("# %s (%s): input '%.*s'\n#   want %s\n#   got  %s\n", description, state, WB_SLICE_ARG(input), a,
                      b);
        tally->failed++;
        free(a);
        free(b);
    }
    json_decref(got);
}

/* The same behind and before long stretches of text, in which many bytes are searched at a time. */
static void expect_long(struct tally *tally, json_t *want, struct wb_slice input, const char *description)
{
    static const char stretch[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct wb_buf longer = WB_BUF_INIT;
    json_t *framed = json_pack("[[ss]]", "Comment", stretch);

    assert_int_equal(wb_buf_printf(&longer, "<!--%s-->", stretch), 0);
    assert_int_equal(wb_buf_append_slice(&longer, input), 0);
    json_array_extend(framed, want);
    expect_tokens(tally, framed, wb_buf_slice(&longer), "Data state", NULL, description);
    /* If the case ends in the middle of something, the text behind it would become part of that. */
    size_t last = json_array_size(want);
    const char *kind = last ? json_string_value(json_array_get(json_array_get(want, last - 1), 0)) : "";
    if (input.len && input.ptr[input.len - 1] == '>' && strcmp(kind, "StartTag") == 0) {
        assert_int_equal(wb_buf_append_str(&longer, stretch), 0);
        json_array_append_new(framed, json_pack("[ss]", "Character", stretch));
        expect_tokens(tally, framed, wb_buf_slice(&longer), "Data state", NULL, description);
    }
    json_decref(framed);
    wb_buf_release(&longer);
}

static void run_case(struct tally *tally, json_t *test)
{
    json_t *escaped = json_object_get(test, "doubleEscaped");
    json_t *input = json_object_get(test, "input"), *want = json_object_get(test, "output");
    json_t *states = json_object_get(test, "initialStates"), *state;
    const char *last_start = json_string_value(json_object_get(test, "lastStartTag"));
    const char *description = json_string_value(json_object_get(test, "description"));
    size_t i;

    input = json_is_true(escaped) ? unescape(input) : json_incref(input);
    want = json_is_true(escaped) ? unescape_all(want) : json_incref(want);
    struct wb_slice bytes = wb_slice(json_string_value(input), json_string_length(input));
    if (states)
        json_array_foreach(states, i, state)
            expect_tokens(tally, want, bytes, json_string_value(state), last_start, description);
    else {
        expect_tokens(tally, want, bytes, "Data state", last_start, description);
        expect_long(tally, want, bytes, description);
    }
    json_decref(input);
    json_decref(want);
}

static void run_file(const char *name, size_t cases_min)
{
    struct tally tally = {0, 0, false};
    char below[256], path[1024];
    json_error_t error;
    json_t *test;
    size_t i;

    snprintf(below, sizeof below, "html/tokenizer/%s", name);
    test_data_path(below, path);
    FILE *file = fopen(path, "r");
    if (!file) {
        print_message("# %s is not there\n", path);
        skip();
    }
    json_t *root = json_loadf(file, JSON_ALLOW_NUL, &error);
    fclose(file);
    if (!root)
        fail_msg("%s:%d: %s", path, error.line, error.text);
    json_t *tests = json_object_get(root, "tests");
    tally.xml = !tests;
    if (tally.xml)
        tests = json_object_get(root, "xmlViolationTests");
    assert_true(json_array_size(tests) >= cases_min);
    json_array_foreach(tests, i, test)
        run_case(&tally, test);
    json_decref(root);
    if (tally.failed)
        fail_msg("%s: %u of %u runs failed", name, tally.failed, tally.runs);
}

#define FILE_TEST(function, name, cases_min)        \
    static void function(void **state)              \
    {                                               \
        (void)state;                                \
        run_file(name, cases_min);                  \
    }

FILE_TEST(content_model_flags, "contentModelFlags.test", 14)
FILE_TEST(domjs, "domjs.test", 43)
FILE_TEST(escape_flag, "escapeFlag.test", 5)
FILE_TEST(named_entities, "namedEntities.test", 4210)
FILE_TEST(pending_changes, "pendingSpecChanges.test", 1)
FILE_TEST(test2, "test2.test", 45)
FILE_TEST(test4, "test4.test", 85)
FILE_TEST(unicode_chars, "unicodeChars.test", 323)
FILE_TEST(unicode_problematic, "unicodeCharsProblematic.test", 5)

FILE_TEST(xml_violation, "xmlViolation.test", 4)

/* ---- what the cases do not cover ------------------------------------------------------------------ */

static void many_attributes(void **state)
{
    struct wb_tokenizer *t = malloc(sizeof *t);
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    assert_non_null(t);
    assert_int_equal(wb_buf_append_str(&html, "<a"), 0);
    for (int i = 0; i < WB_TOKEN_ATTRS_MAX + 7; i++)
        assert_int_equal(wb_buf_printf(&html, " A%d=%d", i % 50, i), 0);
    assert_int_equal(wb_buf_append_str(&html, ">x"), 0);
    wb_tokenizer_init(t, wb_buf_slice(&html));
    assert_int_equal(wb_tokenizer_next(t), WB_TOKEN_START);
    assert_int_equal(t->attr_count, WB_TOKEN_ATTRS_MAX);
    assert_int_equal(t->attrs_left_out, 7);
    assert_true(wb_slice_equal(wb_tokenizer_attr(t, WB_SLICE_LIT("a7"))->value, WB_SLICE_LIT("7")));
    assert_null(wb_tokenizer_attr(t, WB_SLICE_LIT("a50")));
    assert_int_equal(wb_tokenizer_next(t), WB_TOKEN_TEXT);
    wb_buf_release(&html);
    free(t);
}

/* Bytes are found at every position and length, and never behind the end. */
static void scans(void **state)
{
    char bytes[80];

    (void)state;
    for (size_t len = 0; len <= 70; len++)
        for (size_t at = 0; at <= len; at++) {
            bool coded = false;
            memset(bytes, 'x', sizeof bytes);
            memset(bytes + len, '<', sizeof bytes - len);
            const char *want = bytes + (at < len ? at : len);
            if (at < len)
                bytes[at] = '<';
            assert_ptr_equal(wb_scan_byte(bytes, bytes + len, '<'), want);
            assert_ptr_equal(wb_scan_either(bytes, bytes + len, '>', '<'), want);
            assert_ptr_equal(wb_scan_value(bytes, bytes + len, '<', &coded), want);
            assert_false(coded);
            if (at > 0)
                bytes[at - 1] = len % 3 == 0 ? '&' : len % 3 == 1 ? '\r' : '\0';
            if (at < len)
                bytes[at + 1] = '&'; /* behind the match, so it does not count */
            assert_ptr_equal(wb_scan_value(bytes, bytes + len, '<', &coded), want);
            assert_int_equal(coded, at > 0);
        }
}

static void cdata_where_it_is_allowed(void **state)
{
    struct wb_tokenizer *t = malloc(sizeof *t);
    const struct wb_slice html = WB_SLICE_LIT("<![CDATA[]]><![CDATA[a<b>]]>c");

    (void)state;
    assert_non_null(t);
    wb_tokenizer_init(t, html);
    assert_int_equal(wb_tokenizer_next(t), WB_TOKEN_COMMENT);
    assert_true(wb_slice_equal(t->text, WB_SLICE_LIT("[CDATA[]]")));
    wb_tokenizer_init(t, html);
    t->foreign = true;
    assert_int_equal(wb_tokenizer_next(t), WB_TOKEN_TEXT);
    assert_true(wb_slice_equal(t->text, WB_SLICE_LIT("a<b>")));
    assert_int_equal(t->how, 0);
    assert_int_equal(wb_tokenizer_next(t), WB_TOKEN_TEXT);
    assert_true(wb_slice_equal(t->text, WB_SLICE_LIT("c")));
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_model_flags),
        cmocka_unit_test(domjs),
        cmocka_unit_test(escape_flag),
        cmocka_unit_test(named_entities),
        cmocka_unit_test(pending_changes),
        cmocka_unit_test(test2),
        cmocka_unit_test(test4),
        cmocka_unit_test(unicode_chars),
        cmocka_unit_test(unicode_problematic),
        cmocka_unit_test(xml_violation),
        cmocka_unit_test(many_attributes),
        cmocka_unit_test(scans),
        cmocka_unit_test(cdata_where_it_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
