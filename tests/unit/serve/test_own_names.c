/* test_own_names.c - for which hosts the server answers, and whose pages may make it change something. */
#include "base/error.h"
#include "serve/server.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int admit(void *context, const struct wb_http_request *head, uint64_t *body_max_out, struct wb_http_reply *reply)
{
    (void)context, (void)head, (void)body_max_out, (void)reply;
    return 0;
}

static void handle(void *context, void *worker, const struct wb_http_request *request, struct wb_http_reply *reply)
{
    (void)context, (void)worker, (void)request, (void)reply;
}

/* A server that listens there; the port of --allow-host is in the names. */
static void open_server(struct wb_server *server, struct wb_serve_options *options, const char *listen)
{
    static const struct wb_slice names[] = {{"archive.example", 15}, {"other.example:81", 16}, {"[2001:db8::7]", 13}};
    struct wb_httpd_options httpd = {.listen = wb_slice_str(listen), .app = {.admit = admit, .handle = handle}};

    *options = (struct wb_serve_options){.hosts = names, .host_count = 3};
    *server = (struct wb_server){.magic = WB_SERVER_MAGIC, .options = options};
    assert_int_equal(wb_httpd_new(&httpd, &server->httpd), 0);
}

static bool answers(const struct wb_server *server, const char *authority, const char *host)
{
    struct wb_http_field field = {WB_SLICE_LIT("hOST"), host ? wb_slice_str(host) : WB_SLICE_EMPTY};
    struct wb_http_request request = {.fields = &field, .field_count = host != NULL};
    struct wb_slice foreign;

    if (authority)
        request.authority = wb_slice_str(authority);
    return wb_own_names_has(server, &request, &foreign);
}

static void test_hosts(void **state)
{
    static const struct {
        const char *host;
        bool loopback, all; /* answered by a server on a loopback address, and by one on all addresses */
    } cases[] = {
        {"localhost", true, true}, {"LocalHost:8080", true, true}, {"localhost.", true, true},
        {"localhost.:1", true, true}, {"127.0.0.1", true, true}, {"127.0.0.1:8080", true, true},
        {"127.8.9.10", true, true}, {"[::1]:8080", true, true}, {"[0:0:0:0:0:0:0:1]", true, true},
        {"[::ffff:127.0.0.1]", true, true}, {"archive.example", true, true}, {"ARCHIVE.example.:99", true, true},
        {"other.example:81", true, true}, {"other.example", false, false}, {"other.example:82", false, false},
        {"[2001:db8::7]:5", true, true},
        {"", false, false}, {":80", false, false}, {".", false, false}, {"1x", false, false},
        {"x", true, true}, {"archive:8080", true, true}, {"my-archive.", true, true}, {"a_b", false, false},
        {"attacker.example", false, false}, {"attacker.example:8080", false, false},
        {"localhost.attacker.example", false, false}, {"127.0.0.1.attacker.example", false, false},
        {"attacker.example.localhost", false, false}, {"archive.example.evil", false, false},
        {"evilarchive.example", false, false}, {"localhost..", false, false}, {"127.0.0.1..", false, false},
        {"127.1", false, false}, {"2130706433", false, false}, {"0x7f000001", false, false},
        {"127.0.0.1:", true, true}, {"127.0.0.1:a", false, false}, {"127.0.0.1:80:80", false, false},
        {"127.0.0.1:70000", false, false}, {"::1", false, false}, {"[::1", false, false}, {"[::1]x", false, false},
        {"[::1]:x", false, false}, {"[localhost]", false, false}, {"0.0.0.0", false, false}, {"[::]", false, false},
        {"192.0.2.77", false, false}, {"[2001:db8::8]", false, false},
    };
    struct wb_serve_options options, all_options;
    struct wb_server server, all;

    (void)state;
    open_server(&server, &options, "127.0.0.1:0");
    open_server(&all, &all_options, "0.0.0.0:0");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (answers(&server, NULL, cases[i].host) != cases[i].loopback ||
            answers(&all, NULL, cases[i].host) != cases[i].all)
            fail_msg("Host: %s", cases[i].host);
    }
    /* The host of the target counts as well. */
    assert_true(answers(&server, "localhost:80", "127.0.0.1"));
    assert_false(answers(&server, "attacker.example", "localhost"));
    assert_false(answers(&server, "localhost", "attacker.example"));
    assert_true(answers(&server, NULL, NULL)); /* HTTP/1.0 */
    assert_false(answers(&server, "attacker.example", NULL));
    wb_httpd_free(server.httpd);
    wb_httpd_free(all.httpd);
}

/* A server on all addresses answers for each address of the machine; one on a loopback address does not. */
static void test_addresses_of_the_machine(void **state)
{
    struct wb_serve_options options, all_options;
    struct wb_server server, all;
    struct ifaddrs *list;

    (void)state;
    open_server(&server, &options, "[::1]:0");
    open_server(&all, &all_options, "*:0");
    assert_int_equal(getifaddrs(&list), 0);
    for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
        char text[INET6_ADDRSTRLEN], host[INET6_ADDRSTRLEN + 2];
        int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6)
            continue;
        const void *bytes = family == AF_INET ? (const void *)&((struct sockaddr_in *)at->ifa_addr)->sin_addr
                                              : (const void *)&((struct sockaddr_in6 *)at->ifa_addr)->sin6_addr;
        assert_non_null(inet_ntop(family, bytes, text, sizeof text));
        snprintf(host, sizeof host, family == AF_INET ? "%s" : "[%s]", text);
        assert_true(answers(&all, NULL, host));
        assert_int_equal(answers(&server, NULL, host), strncmp(text, "127.", 4) == 0 || strcmp(text, "::1") == 0);
    }
    freeifaddrs(list);
    wb_httpd_free(server.httpd);
    wb_httpd_free(all.httpd);
}

static bool trusts(const struct wb_server *server, const char *host, const char *name, const char *value)
{
    struct wb_http_field fields[2] = {{WB_SLICE_LIT("Host"), wb_slice_str(host)},
                                      {wb_slice_str(name), wb_slice_str(value)}};
    struct wb_http_request request = {.fields = fields, .field_count = 2};

    return wb_own_names_trust(server, &request);
}

static void test_origins(void **state)
{
    static const struct {
        const char *host, *origin;
        bool own;
    } cases[] = {
        {"localhost:8080", "http://localhost:8080", true}, {"LOCALHOST:8080", "HTTP://localhost.:8080", true},
        {"localhost:8080", "https://localhost:8080", true}, {"localhost", "http://localhost:80", true},
        {"localhost:80", "http://localhost", true}, {"archive.example", "https://archive.example:443", true},
        {"127.0.0.1:8080", "https://archive.example", true}, {"127.0.0.1:8080", "https://archive.example:8443", false},
        {"127.0.0.1:8080", "http://other.example:81", true}, {"127.0.0.1:8080", "http://other.example", false},
        {"localhost:8080", "http://localhost:3000", false}, {"localhost:8080", "http://localhost", false},
        {"127.0.0.1:8080", "http://localhost:8080", false}, {"localhost:8080", "null", false},
        {"localhost:8080", "", false}, {"localhost:8080", "localhost:8080", false},
        {"localhost:8080", "http://evil.example", false},
        {"localhost:8080", "http://localhost:8080.evil.example", false},
        {"localhost:8080", "file://", false}, {"localhost:8080", "chrome-extension://localhost:8080", false},
    };
    struct wb_serve_options options;
    struct wb_server server;

    (void)state;
    open_server(&server, &options, "127.0.0.1:0");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (trusts(&server, cases[i].host, "Origin", cases[i].origin) != cases[i].own)
            fail_msg("Host: %s, Origin: %s", cases[i].host, cases[i].origin);
    assert_true(trusts(&server, "localhost", "Sec-Fetch-Site", "same-origin"));
    assert_true(trusts(&server, "localhost", "sec-fetch-site", "none"));
    assert_false(trusts(&server, "localhost", "Sec-Fetch-Site", "same-site"));
    assert_false(trusts(&server, "localhost", "sec-fetch-site", "cross-site"));
    assert_false(trusts(&server, "localhost", "Sec-Fetch-Site", "anything else"));
    assert_true(trusts(&server, "localhost", "Referer", "http://evil.example/"));
    wb_httpd_free(server.httpd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_addresses_of_the_machine),
        cmocka_unit_test(test_origins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
