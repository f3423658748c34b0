/* certificate.h - a certificate for site.test that nobody signed, in the directory of testroot.h. Header only. */
#ifndef WB_TESTS_CERTIFICATE_H
#define WB_TESTS_CERTIFICATE_H

#include "../testroot.h"

#include <stdbool.h>

/* Writes key.pem and cert.pem. False if openssl cannot be run. */
static inline bool make_certificate(void)
{
    char command[512];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=site.test "
             "-addext subjectAltName=DNS:site.test -keyout %s/key.pem -out %s/cert.pem >/dev/null 2>&1",
             test_root, test_root);
    return system(command) == 0;
}

#endif
