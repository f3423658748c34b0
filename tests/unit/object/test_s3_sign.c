/*
 * test_s3_sign.c - the examples of Amazon's description of Signature Version 4, with the signatures that are printed
 * there.
 */
#include "../expect.h"
#include "object/s3_sign.h"

#include <stdio.h>

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define DATE "20130524T000000Z"
#define HOST "examplebucket.s3.amazonaws.com"

static struct wb_s3_signing example(const char *method, const char *path, const char *query,
                                    const struct wb_s3_field *fields, size_t count, const char *payload)
{
    return (struct wb_s3_signing){
        .access = "AKIAIOSFODNN7EXAMPLE",
        .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        .region = "us-east-1",
        .date = DATE,
        .method = method,
        .path = path,
        .query = query,
        .fields = fields,
        .field_count = count,
        .payload = payload,
    };
}

static void expect_signature(const struct wb_s3_signing *signing, const char *names, const char *signature)
{
    struct wb_buf got = WB_BUF_INIT;
    char want[512];

    snprintf(want, sizeof want,
             "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=%s,"
             "Signature=%s",
             names, signature);
    ok(wb_s3_sign(signing, &got));
    expect(wb_buf_slice(&got), want);
    wb_buf_release(&got);
}

static void test_get(void **state)
{
    const struct wb_s3_field fields[] = {
        {"host", HOST}, {"range", "bytes=0-9"}, {"x-amz-content-sha256", EMPTY}, {"x-amz-date", DATE}};
    struct wb_s3_signing signing = example("GET", "/test.txt", "", fields, COUNT(fields), EMPTY);

    (void)state;
    expect_signature(&signing, "host;range;x-amz-content-sha256;x-amz-date",
                     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void test_put(void **state)
{
    char payload[WB_S3_SHA256_HEX];
    struct wb_buf path = WB_BUF_INIT;

    (void)state;
    ok(wb_s3_sha256(WB_SLICE_LIT("Welcome to Amazon S3."), payload));
    assert_string_equal(payload, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    ok(wb_s3_encode(WB_SLICE_LIT("/test$file.text"), true, &path));
    ok(wb_buf_terminate(&path));
    const struct wb_s3_field fields[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                         {"host", HOST},
                                         {"x-amz-content-sha256", payload},
                                         {"x-amz-date", DATE},
                                         {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    struct wb_s3_signing signing = example("PUT", path.ptr, "", fields, COUNT(fields), payload);
    expect_signature(&signing, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    wb_buf_release(&path);
}

static void test_queries(void **state)
{
    const struct wb_s3_field fields[] = {{"host", HOST}, {"x-amz-content-sha256", EMPTY}, {"x-amz-date", DATE}};
    struct wb_s3_signing lifecycle = example("GET", "/", "lifecycle=", fields, COUNT(fields), EMPTY);
    struct wb_s3_signing list = example("GET", "/", "max-keys=2&prefix=J", fields, COUNT(fields), EMPTY);

    (void)state;
    expect_signature(&lifecycle, "host;x-amz-content-sha256;x-amz-date",
                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    expect_signature(&list, "host;x-amz-content-sha256;x-amz-date",
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_parts(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    char date[WB_S3_DATE_MAX], hex[WB_S3_SHA256_HEX];

    (void)state;
    wb_s3_date_format(INT64_C(1369353600000), date);
    assert_string_equal(date, DATE);
    wb_s3_date_format(INT64_C(1704164645999), date);
    assert_string_equal(date, "20240102T030405Z");
    ok(wb_s3_sha256(WB_SLICE_EMPTY, hex));
    assert_string_equal(hex, EMPTY);
    ok(wb_s3_encode(WB_SLICE_LIT("az AZ09-_.~/+=:,@%\xc3\xbc"), true, &text));
    expect(wb_buf_slice(&text), "az%20AZ09-_.~/%2B%3D%3A%2C%40%25%C3%BC");
    wb_buf_clear(&text);
    ok(wb_s3_encode(WB_SLICE_LIT("a/b"), false, &text));
    expect(wb_buf_slice(&text), "a%2Fb");
    wb_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
