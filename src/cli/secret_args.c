/*
 * secret_args.c - hides passwords of command lines.
 *
 *   postgres://user:secret@host/name?password=secret&x=1
 *                   xxxxxx                    xxxxxx
 */
#include "cli/secret_args.h"
#include "base/error.h"
#include "base/mem.h"

#include <string.h>

static void cross_out(char *from, const char *to)
{
    for (char *c = from; c < to; c++)
        *c = 'x';
}

static char *find_url(char *word)
{
    char *url = strstr(word, "postgres://");

    return url ? url : strstr(word, "postgresql://");
}

/* Crosses out what may be a password. An '@' or '?' in a password should have been written as %40 or %3F, but who
 * knows. */
static void hide(char *url)
{
    char *user = strstr(url, "://") + 3, *host = strrchr(user, '@');
    char *colon = host ? memchr(user, ':', (size_t)(host - user)) : NULL;

    for (char *at = strstr(user, "password="); at; at = strstr(at, "password=")) {
        at += sizeof "password=" - 1;
        cross_out(at, at + strcspn(at, "&"));
    }
    if (colon)
        cross_out(colon + 1, host);
}

int wb_secret_args_hide(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *url = find_url(argv[i]), *copy;
        if (!url)
            continue;
        copy = wb_strdup(argv[i]);
        if (!copy)
            return WB_E_NOMEM;
        hide(url);
        argv[i] = copy;
    }
    return 0;
}
