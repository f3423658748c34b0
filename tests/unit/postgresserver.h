/* postgresserver.h - a PostgreSQL server for one test program, and schemas in it. */
#ifndef WB_TEST_POSTGRESSERVER_H
#define WB_TEST_POSTGRESSERVER_H

#include <stddef.h>
#include <sys/types.h>

/* The URL of the server, which is started by the first call. It ends when this process has ended, whichever way. */
const char *postgres_url(void);

/* The URL of a new, empty schema in it. */
void postgres_schema(char *url_out, size_t size);

/* The socket on which the server listens, and the process that started all its others. */
void postgres_socket(char *path_out, size_t size);
pid_t postgres_process(void);

/* In a child: so that the server does not live as long as the child. */
void postgres_leave(void);

/* Ends the server. For cmocka: the teardown of a group. */
int postgres_end(void **state);

#endif
