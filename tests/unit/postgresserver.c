/* postgresserver.c - see postgresserver.h. */
#include "postgresserver.h"
#include "must.h"
#include "sourceroot.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static struct {
    pid_t script;
    int hold; /* the server runs until this is closed */
    char url[256];
    unsigned schemas;
} server = {.hold = -1};

/* tests/postgres ends the server when this process has ended. */
const char *postgres_url(void)
{
    int in[2], out[2];

    if (server.script)
        return server.url;
    must(pipe(in) == 0 && pipe(out) == 0);
    server.script = fork();
    must(server.script >= 0);
    if (server.script == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        char path[1024];
        snprintf(path, sizeof path, "%s/tests/postgres", test_source_root);
        execl(path, "postgres", (char *)NULL);
        _exit(127);
    }
    close(in[0]), close(out[1]);
    server.hold = in[1];
    FILE *answer = fdopen(out[0], "r");
    must(answer);
    char *line = fgets(server.url, sizeof server.url, answer);
    fclose(answer);
    must(line); /* otherwise the script has said why */
    server.url[strcspn(server.url, "\n")] = '\0';
    return server.url;
}

void postgres_schema(char *url_out, size_t size)
{
    char text[64];
    PGconn *conn = PQconnectdb(postgres_url());

    snprintf(text, sizeof text, "CREATE SCHEMA t%u", ++server.schemas);
    PGresult *result = PQexec(conn, text);
    must(PQresultStatus(result) == PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(conn);
    snprintf(url_out, size, "%s&options=-csearch_path%%3Dt%u", server.url, server.schemas);
}

void postgres_socket(char *path_out, size_t size)
{
    const char *folder = strstr(postgres_url(), "host=");

    must(folder);
    snprintf(path_out, size, "%s/.s.PGSQL.5432", folder + sizeof "host=" - 1);
}

pid_t postgres_process(void)
{
    char path[512];
    const char *folder = strstr(postgres_url(), "host=");
    long pid = 0;

    must(folder);
    snprintf(path, sizeof path, "%s/data/postmaster.pid", folder + sizeof "host=" - 1);
    FILE *file = fopen(path, "r");
    must(file && fscanf(file, "%ld", &pid) == 1 && pid > 1);
    fclose(file);
    return (pid_t)pid;
}

void postgres_leave(void)
{
    if (server.script)
        close(server.hold);
}

int postgres_end(void **state)
{
    (void)state;
    if (server.script) {
        close(server.hold);
        waitpid(server.script, NULL, 0);
        server.script = 0;
    }
    return 0;
}
