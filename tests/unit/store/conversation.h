/*
 * conversation.h - lets a test and a child process wait for each other.
 */
#ifndef WB_TESTS_STORE_CONVERSATION_H
#define WB_TESTS_STORE_CONVERSATION_H

#include "store_support.h"

#include <unistd.h>

/* A child that does something when told, and says when it has. */
struct conversation {
    int to_child[2], from_child[2];
};

static inline void converse(struct conversation *c)
{
    must(pipe(c->to_child) == 0 && pipe(c->from_child) == 0);
}

static inline void tell(int fd)
{
    must(write(fd, "x", 1) == 1);
}

static inline void await(int fd)
{
    char c;

    must(read(fd, &c, 1) == 1);
}

static inline void end_conversation(struct conversation *c)
{
    for (size_t i = 0; i < 2; i++) {
        close(c->to_child[i]);
        close(c->from_child[i]);
    }
}

#endif
