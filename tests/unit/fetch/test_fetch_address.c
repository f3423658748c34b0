/* test_fetch_address.c - addresses as text, and which of them are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fetch/fetch.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *address, *want; /* NULL: public */
} cases[] = {
    /* IPv4: first and last of each range, and its neighbours */
    {"0.0.0.0", "unspecified"}, {"0.255.255.255", "unspecified"}, {"1.0.0.0", NULL}, {"9.255.255.255", NULL},
    {"10.0.0.0", "private"}, {"10.255.255.255", "private"}, {"11.0.0.0", NULL}, {"100.63.255.255", NULL},
    {"100.64.0.0", "shared"}, {"100.127.255.255", "shared"}, {"100.128.0.0", NULL}, {"126.255.255.255", NULL},
    {"127.0.0.1", "loopback"}, {"127.255.255.255", "loopback"}, {"128.0.0.0", NULL}, {"169.253.255.255", NULL},
    {"169.254.0.0", "link-local"}, {"169.254.169.254", "link-local"}, {"169.255.0.0", NULL}, {"172.15.255.255", NULL},
    {"172.16.0.0", "private"}, {"172.31.255.255", "private"}, {"172.32.0.0", NULL}, {"191.255.255.255", NULL},
    {"192.0.0.0", "reserved"}, {"192.0.0.8", "reserved"}, {"192.0.0.9", NULL}, {"192.0.0.10", NULL},
    {"192.0.0.11", "reserved"}, {"192.0.0.255", "reserved"}, {"192.0.1.0", NULL}, {"192.0.2.1", "documentation"},
    {"192.0.3.0", NULL}, {"192.31.196.1", NULL}, {"192.52.193.1", NULL}, {"192.88.98.255", NULL},
    {"192.88.99.1", "reserved"}, {"192.88.100.0", NULL}, {"192.167.255.255", NULL}, {"192.168.0.0", "private"},
    {"192.168.255.255", "private"}, {"192.169.0.0", NULL}, {"192.175.48.1", NULL}, {"198.17.255.255", NULL},
    {"198.18.0.0", "benchmarking"}, {"198.19.255.255", "benchmarking"}, {"198.20.0.0", NULL}, {"198.51.99.255", NULL},
    {"198.51.100.7", "documentation"}, {"198.51.101.0", NULL}, {"203.0.113.255", "documentation"}, {"203.0.114.0",
                                                                                                    NULL},
    {"223.255.255.255", NULL}, {"224.0.0.0", "multicast"}, {"239.255.255.255", "multicast"}, {"240.0.0.0", "reserved"},
    {"255.255.255.254", "reserved"}, {"255.255.255.255", "broadcast"}, {"8.8.8.8", NULL},
    /* IPv6 */
    {"::", "unspecified"}, {"::1", "loopback"}, {"::2", "unspecified"}, {"100::1", "reserved"}, {"100:0:0:1::1",
                                                                                                 "reserved"},
    {"1fff::", "reserved"}, {"2001:1::1", NULL}, {"2001:1::2", NULL}, {"2001:1::3", NULL}, {"2001:1::4", "reserved"},
    {"2001:2::1", "benchmarking"}, {"2001:2:1::1", "reserved"}, {"2001:3::1", NULL}, {"2001:4:112::1", NULL},
    {"2001:4:113::1", "reserved"}, {"2001:10::1", "reserved"}, {"2001:20::1", NULL}, {"2001:2f:ffff::1", NULL},
    {"2001:30::1", NULL}, {"2001:1ff::1", "reserved"}, {"2001:200::1", NULL}, {"2001:db7::1", NULL},
    {"2001:db8::1", "documentation"}, {"2001:db9::1", NULL}, {"2001:4860:4860::8888", NULL}, {"2620:4f:8000::1", NULL},
    {"3ffe::1", NULL}, {"3fff::1", "documentation"}, {"3fff:fff::1", "documentation"}, {"3fff:1000::1", NULL},
    {"4000::1", "reserved"}, {"5f00::1", "reserved"}, {"fbff::1", "reserved"}, {"fc00::1", "private"}, {"fdff::1",
                                                                                                        "private"},
    {"fe00::1", "reserved"}, {"fe80::1", "link-local"}, {"febf::1", "link-local"}, {"fec0::1", "private"},
    {"ff02::1", "multicast"},
    /* IPv4 inside */
    {"::ffff:127.0.0.1", "loopback"}, {"::ffff:10.1.2.3", "private"}, {"::ffff:8.8.8.8", NULL},
    {"::ffff:169.254.169.254", "link-local"}, {"::127.0.0.1", "loopback"}, {"::8.8.8.8", "reserved"},
    {"::ffff:0:127.0.0.1", "loopback"}, {"::ffff:0:8.8.8.8", "reserved"},
    {"64:ff9b::10.0.0.1", "private"}, {"64:ff9b::8.8.8.8", NULL}, {"64:ff9b:1::8.8.8.8", "reserved"},
    {"2002:7f00:1::", "loopback"}, {"2002:a00:1::1", "private"}, {"2002:808:808::1", NULL}, {"2002:c0a8:101::",
                                                                                             "private"},
    {"2001:0:808:808:0:0:f5ff:fffe", "private"}, {"2001:0:a00:1:0:0:f7f7:f7f7",
                                                  "private"}, {"2001:0:808:808:0:0:f7f7:f7f7", NULL},
    {"2001:0:808:808:0:0:80ff:fffe", "loopback"},
    {"2a00::5efe:10.0.0.1", "private"}, {"2a00::200:5efe:127.0.0.1", "loopback"}, {"2a00::5efe:8.8.8.8", NULL},
};

static void test_private(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wb_address address;
        if (!wb_address_parse(wb_slice_str(cases[i].address), &address))
            fail_msg("%s is refused", cases[i].address);
        const char *got = wb_address_private(&address);
        if ((got == NULL) != (cases[i].want == NULL) || (got && strcmp(got, cases[i].want) != 0))
            fail_msg("%s is %s, not %s", cases[i].address, got ? got : "public",
                     cases[i].want ? cases[i].want : "public");
    }
    assert_non_null(wb_address_private(&(struct wb_address){0}));
}

static void test_text(void **state)
{
    (void)state;
    static const char *const same[] = {"192.0.2.1", "2001:db8::1", "::", "::1", "::ffff:192.0.2.1", "255.255.255.255",
                                       "1111:2222:3333:4444:5555:6666:7777:8888"};
    static const char *const none[] = {"", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4x", "[::1]", "::1%eth0",
                                       "1:2:3",
                                       "example.com", "1.2.3.4 ", "0x7f.0.0.1", ":::",
                                       "1111:2222:3333:4444:5555:6666:7777:8888:9999:1111:2222:3333"};
    struct wb_address a, b;
    char text[WB_ADDRESS_TEXT_MAX];

    for (size_t i = 0; i < COUNT(same); i++) {
        assert_true(wb_address_parse(wb_slice_str(same[i]), &a));
        wb_address_format(&a, text);
        assert_string_equal(text, same[i]);
    }
    for (size_t i = 0; i < COUNT(none); i++) {
        if (wb_address_parse(wb_slice_str(none[i]), &a))
            fail_msg("'%s' is taken", none[i]);
        assert_int_equal(a.family, 0);
    }
    assert_false(wb_address_parse(wb_slice("1.2.3.4\0x", 9), &a));
    wb_address_format(&(struct wb_address){0}, text);
    assert_string_equal(text, "");

    assert_true(wb_address_parse(wb_slice_str("1.2.3.4"), &a) && wb_address_parse(wb_slice_str("1.2.3.4"), &b));
    assert_true(wb_address_equal(&a, &b));
    b.bytes[4] = 1; /* beyond an IPv4 address */
    assert_true(wb_address_equal(&a, &b));
    b.bytes[3] = 5;
    assert_false(wb_address_equal(&a, &b));
    assert_true(wb_address_parse(wb_slice_str("102:304::"), &b));
    assert_false(wb_address_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
