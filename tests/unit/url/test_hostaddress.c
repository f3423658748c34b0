/* test_hostaddress.c - IPv4 and IPv6 addresses: which are read, which are refused, and how they are written. */
#include "support.h"
#include "url/hostaddress.h"

/* text, and how it is written or NULL */
static const char *const fours[][2] = {
    {"192.0.2.9", "192.0.2.9"},       {"0xC0.0.2.9", "192.0.2.9"},   {"0300.0.02.011", "192.0.2.9"},
    {"3221225993", "192.0.2.9"},      {"192.521", "192.0.2.9"},      {"192.0.521", "192.0.2.9"},
    {"0x", "0.0.0.0"},                {"0", "0.0.0.0"},              {"192.0.2.9.", "192.0.2.9"},
    {"255.255.255.255", "255.255.255.255"}, {"4294967295", "255.255.255.255"},
    {"4294967296", NULL},             {"256.0.0.1", NULL},           {"1.2.3.256", NULL},
    {"1.16777216", NULL},             {"1.2.65536", NULL},           {"1.2.3.4.5", NULL},
    {"1..2", NULL},                   {".", NULL},                   {"", NULL},
    {"08", NULL},                     {"0xg", NULL},                 {"1.2.3.4..", NULL},
    {"99999999999999999999999999", NULL}, {"0x00000000000000000000000001", "0.0.0.1"},
};

static void test_ipv4(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(fours); i++) {
        uint32_t address = 1;
        char out[16];
        bool ok = wb_hostaddress_read4(wb_slice_str(fours[i][0]), &address);
        if (ok != (fours[i][1] != NULL))
            fail_msg("'%s' is %s", fours[i][0], ok ? "taken" : "refused");
        if (ok)
            assert_slice(wb_slice(out, (size_t)(wb_hostaddress_write4(out, address) - out)), fours[i][1]);
    }
}

static const char *const sixes[][2] = {
    {"::", "[::]"},
    {"::1", "[::1]"},
    {"1::", "[1::]"},
    {"2001:DB8:0:0::1", "[2001:db8::1]"},
    {"1:0:0:2:0:0:0:3", "[1:0:0:2::3]"},
    {"1:0:0:2:3:0:0:4", "[1::2:3:0:0:4]"},
    {"1:0:2:3:4:5:6:7", "[1:0:2:3:4:5:6:7]"},
    {"0:0:1:2:3:4:5:6", "[::1:2:3:4:5:6]"},
    {"1:2:3:4:5:6:0:0", "[1:2:3:4:5:6::]"},
    {"1:2:3:4:5:6:7::", "[1:2:3:4:5:6:7:0]"},
    {"::ffff:192.0.2.9", "[::ffff:c000:209]"},
    {"1:2:3:4:5:6:1.2.3.4", "[1:2:3:4:5:6:102:304]"},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]"},
    {"", NULL},
    {":", NULL},
    {":1", NULL},
    {"1:", NULL},
    {":::", NULL},
    {"1::2::3", NULL},
    {"1:2:3:4:5:6:7", NULL},
    {"1:2:3:4:5:6:7:8:9", NULL},
    {"1:2:3:4:5:6:7::8", NULL},
    {"1:2:3:4:5:6:7:8::", NULL},
    {"12345::", NULL},
    {"g::", NULL},
    {"::1%eth0", NULL},
    {"::1.2.3", NULL},
    {"::1.2.3.4.5", NULL},
    {"::1.2.3.4:5", NULL},
    {"::1.2.3.256", NULL},
    {"::01.2.3.4", NULL},
    {"::.1.2.3", NULL},
    {"1:2:3:4:5:6:7:1.2.3.4", NULL},
    {"1:2:3:4:5:6::1.2.3.4", NULL},
};

static void test_ipv6(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sixes); i++) {
        uint16_t pieces[8];
        char out[41];
        bool ok = wb_hostaddress_read6(wb_slice_str(sixes[i][0]), pieces);
        if (ok != (sixes[i][1] != NULL))
            fail_msg("'%s' is %s", sixes[i][0], ok ? "taken" : "refused");
        if (ok)
            assert_slice(wb_slice(out, (size_t)(wb_hostaddress_write6(out, pieces) - out)), sixes[i][1]);
    }
}

static void test_ends_in_number(void **state)
{
    (void)state;
    static const char *const yes[] = {"1", "a.1", "a.1.", "1.2.3.4", "a.0x", "a.0xff", "a.09", "09"};
    static const char *const no[] = {"", ".", "a", "1.a", "a..", "1..", "a.0xg", "a.1b", "a.b1"};

    for (size_t i = 0; i < COUNT(yes); i++)
        if (!wb_hostaddress_ends_in_number(wb_slice_str(yes[i])))
            fail_msg("'%s' ends in a number", yes[i]);
    for (size_t i = 0; i < COUNT(no); i++)
        if (wb_hostaddress_ends_in_number(wb_slice_str(no[i])))
            fail_msg("'%s' does not end in a number", no[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ipv4), cmocka_unit_test(test_ipv6),
                                       cmocka_unit_test(test_ends_in_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
