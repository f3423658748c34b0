/* test_wacz.c - archives inside WACZ files: stored and deflated, whole and damaged, with right and wrong hashes. */
#include "zip_support.h"

#include "base/codec.h"
#include "os/fault.h"
#include "warc/warc.h"

#include <errno.h>
#include <openssl/evp.h>

#define PAGES 40u

static void append_resource(struct wb_buf *json, const char *path, struct wb_slice bytes, int more)
{
    uint8_t sha256[32];
    char hex[65];

    assert_true(EVP_Digest(bytes.ptr, bytes.len, sha256, NULL, EVP_sha256(), NULL));
    wb_hex_encode(sha256, sizeof sha256, hex);
    int err = wb_buf_printf(json, "%s{\"path\":\"%s\",\"hash\":\"sha256:%s\",\"bytes\":%zu}", json->len > 15 ? "," : "",
                            path, hex, bytes.len + (size_t)more);
    assert_int_equal(err, 0);
}

/* A WACZ with two archives, the second one plain. */
struct sample {
    struct archive plain, gz;
    struct wb_buf package;
    struct zip zip;
};

static struct sample make_sample(bool deflated, int more)
{
    struct sample s = {.plain = make_archive(PAGES, 200), .zip = ZIP_INIT};

    s.gz = packed(&s.plain, GZIP);
    assert_int_equal(wb_buf_append_str(&s.package, "{\"resources\":["), 0);
    append_resource(&s.package, "archive/a.warc.gz", wb_buf_slice(&s.gz.bytes), more);
    append_resource(&s.package, "archive/b.warc", wb_buf_slice(&s.plain.bytes), 0);
    append_resource(&s.package, "pages/pages.jsonl", WB_SLICE_LIT("{}\n"), 0);
    assert_int_equal(wb_buf_append_str(&s.package, "]}"), 0);
    zip_add(&s.zip, "archive/a.warc.gz", deflated, wb_buf_slice(&s.gz.bytes));
    zip_add(&s.zip, "archive/b.warc", deflated, wb_buf_slice(&s.plain.bytes));
    zip_add(&s.zip, "archive/readme.txt", false, WB_SLICE_LIT("not an archive"));
    zip_add(&s.zip, "pages/pages.jsonl", true, WB_SLICE_LIT("{}\n"));
    zip_add(&s.zip, "datapackage.json", true, wb_buf_slice(&s.package));
    zip_end(&s.zip);
    return s;
}

static void release_sample(struct sample *s)
{
    archive_release(&s->plain);
    archive_release(&s->gz);
    wb_buf_release(&s->package);
    zip_release(&s->zip);
}

/* What reading a WACZ gave. */
struct outcome {
    int opened, package;
    unsigned archives, records, damaged, wrong; /* wrong: entries that differ from their checksums */
    int final;                                  /* an error that ended an archive */
};

static int read_entry(struct wb_wacz *wacz, size_t i, struct outcome *o)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_record record;

    int err = wb_wacz_open_archive(wacz, i, BLOCK_MAX, &reader);
    while (err >= 0 || err == WB_E_CORRUPT) {
        err = wb_warc_next(reader, &record);
        if (err == 0)
            break;
        o->records += err > 0;
        o->damaged += err == WB_E_CORRUPT || (err > 0 && *record.problem);
    }
    wb_warc_close(reader);
    return err;
}

static struct outcome read_all(struct wb_slice bytes)
{
    struct wb_file file = zip_file(bytes);
    struct wb_wacz *wacz = NULL;
    struct wb_wacz_entry entry;
    struct outcome o = {0};

    o.opened = wb_wacz_open(file.path, &wacz);
    if (o.opened == 0)
        o.package = wb_wacz_read_package(wacz);
    for (size_t i = 0; o.opened == 0 && wb_wacz_entry(wacz, i, &entry); i++) {
        int err = entry.archive ? read_entry(wacz, i, &o) : 0;
        o.archives += entry.archive;
        o.final = err < 0 ? err : o.final;
        err = wb_wacz_check(wacz, i);
        if (err < 0)
            assert_non_null(strstr(wb_error_message(), entry.name));
        o.wrong += err == WB_E_CORRUPT;
        o.final = err < 0 && err != WB_E_CORRUPT ? err : o.final;
    }
    wb_wacz_close(wacz);
    wb_file_close(&file);
    return o;
}

static void whole(void **state)
{
    (void)state;
    for (int deflated = 0; deflated < 2; deflated++) {
        struct sample s = make_sample(deflated, 0);
        struct outcome o = read_all(wb_buf_slice(&s.zip.bytes));
        assert_int_equal(o.opened, 0);
        assert_int_equal(o.package, 0);
        assert_int_equal(o.archives, 2);
        assert_int_equal(o.records, 2 * PAGES);
        assert_int_equal(o.damaged + o.wrong, 0);
        assert_int_equal(o.final, 0);
        release_sample(&s);
    }
}

/* A changed byte of an archive costs at most a record or two, and the checksums notice it. */
static void one_byte_changed(void **state)
{
    (void)state;
    for (int deflated = 0; deflated < 2; deflated++) {
        struct sample s = make_sample(deflated, 0);
        for (size_t at = 60; at < s.gz.bytes.len; at += 997) {
            s.zip.bytes.ptr[at] = (char)(s.zip.bytes.ptr[at] ^ 0x10);
            struct outcome o = read_all(wb_buf_slice(&s.zip.bytes));
            assert_int_equal(o.opened, 0);
            assert_int_equal(o.wrong, 1);
            assert_int_equal(o.final, 0);
            assert_true(o.records >= PAGES && (deflated || o.records >= 2 * PAGES - 2));
            s.zip.bytes.ptr[at] = (char)(s.zip.bytes.ptr[at] ^ 0x10);
        }
        release_sample(&s);
    }
}

/* datapackage.json says another size, or lists what is not there, or is not JSON, or is missing. */
static void other_package(void **state)
{
    struct sample s = make_sample(false, 1);
    struct outcome o = read_all(wb_buf_slice(&s.zip.bytes));

    (void)state;
    assert_int_equal(o.package, 0);
    assert_int_equal(o.wrong, 1);
    assert_int_equal(o.records, 2 * PAGES);
    static const struct {
        const char *text;
        int code;
    } packages[] = {
        {NULL, WB_E_NOTFOUND},
        {"this is not JSON", WB_E_PROTO},
        {"[]", WB_E_PROTO},
        {"{\"resources\":{}}", WB_E_PROTO},
        {"{\"resources\":[{\"path\":\"archive/lost.warc\"}]}", WB_E_CORRUPT},
        {"{\"resources\":[{\"path\":7}]}", WB_E_CORRUPT},
        {"{\"resources\":[]}", 0},
    };
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        struct zip z = ZIP_INIT;
        zip_add(&z, "archive/b.warc", false, wb_buf_slice(&s.plain.bytes));
        if (packages[i].text)
            zip_add(&z, "datapackage.json", false, wb_slice_str(packages[i].text));
        zip_end(&z);
        o = read_all(wb_buf_slice(&z.bytes));
        assert_int_equal(o.package, packages[i].code);
        assert_int_equal(o.records, PAGES);
        assert_int_equal(o.wrong, 0);
        zip_release(&z);
    }
    release_sample(&s);
}

/* datapackage-digest.json has the hash of datapackage.json. */
static void wrong_digest(void **state)
{
    struct zip z = ZIP_INIT;

    (void)state;
    zip_add(&z, "archive/b.warc", false, WB_SLICE_EMPTY);
    zip_add(&z, "datapackage.json", false, WB_SLICE_LIT("{\"resources\":[]}"));
    zip_add(&z, "datapackage-digest.json", false,
            WB_SLICE_LIT("{\"path\":\"datapackage.json\",\"hash\":\"sha256:00\"}"));
    zip_end(&z);
    struct outcome o = read_all(wb_buf_slice(&z.bytes));
    assert_int_equal(o.package, 0);
    assert_int_equal(o.wrong, 1);
    zip_release(&z);
}

static void refused(void **state)
{
    struct zip none = ZIP_INIT, locked = ZIP_INIT;

    (void)state;
    zip_add(&none, "some.txt", false, WB_SLICE_LIT("text"));
    zip_end(&none);
    assert_int_equal(read_all(wb_buf_slice(&none.bytes)).opened, WB_E_PROTO);
    assert_int_equal(read_all(WB_SLICE_LIT("text")).opened, WB_E_PROTO);
    zip_add_lie(&locked, "archive/a.warc", false, WB_SLICE_LIT("secret"), (struct zip_lie){.flags = 1});
    zip_end(&locked);
    struct outcome o = read_all(wb_buf_slice(&locked.bytes));
    assert_int_equal(o.opened, 0);
    assert_int_equal(o.final, WB_E_PROTO);
    zip_release(&none);
    zip_release(&locked);
}

static void which_files(void **state)
{
    struct wb_file zip = zip_file(WB_SLICE_LIT("PK\3\4 and so on")), text = zip_file(WB_SLICE_LIT("text"));

    (void)state;
    assert_true(wb_wacz_is("/nowhere/some.WACZ"));
    assert_true(wb_wacz_is(zip.path));
    assert_false(wb_wacz_is(text.path));
    assert_false(wb_wacz_is("/nowhere/some.warc"));
    assert_false(wb_wacz_is("/tmp"));
    wb_file_close(&zip);
    wb_file_close(&text);
}

/* Each allocation and each read fails once: an error, and no leak. */
static void faults(void **state)
{
    struct sample s = make_sample(true, 0);

    (void)state;
    for (unsigned kind = 0; kind < 2; kind++) {
        bool struck = true;
        uint64_t nth;
        for (nth = 1; struck; nth++) {
            struct wb_file file = zip_file(wb_buf_slice(&s.zip.bytes));
            struct wb_wacz *wacz = NULL;
            struct outcome o = {0};
            wb_fault_arm(kind ? WB_FAULT_READ : WB_FAULT_ALLOC, nth, kind ? EIO : ENOMEM);
            int err = wb_wacz_open(file.path, &wacz);
            if (err == 0)
                err = wb_wacz_read_package(wacz);
            for (size_t i = 0; err == 0 && i < 2; i++) {
                err = read_entry(wacz, i, &o);
                if (err == 0)
                    err = wb_wacz_check(wacz, i);
            }
            struck = wb_fault_struck();
            wb_fault_disarm();
            wb_wacz_close(wacz);
            wb_file_close(&file);
            assert_int_equal(err < 0, struck);
        }
        assert_true(nth > 10);
    }
    release_sample(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),        cmocka_unit_test(one_byte_changed), cmocka_unit_test(other_package),
        cmocka_unit_test(wrong_digest), cmocka_unit_test(refused),          cmocka_unit_test(which_files),
        cmocka_unit_test(faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
