/*
 * control.h - what both ends of the door of a crawl agree on (crawl.h). Private to control.c, controldoor.c and
 * why.c.
 *
 * The door is a SOCK_SEQPACKET socket, so a message is one packet and never arrives in parts:
 *
 *   command   "webbase-1 VERB[ SITE[ MS]]"        SITE in normal form, MS in decimal
 *   answer    "webbase-1 CODE\nTEXT"              CODE: 0, and TEXT is a line of JSON; or an error code, and TEXT is
 *                                                 what is wrong in words
 */
#ifndef WB_CRAWL_CONTROL_H
#define WB_CRAWL_CONTROL_H

#include "crawl/crawl.h"

#include <sys/socket.h>
#include <sys/un.h>

#define WB_CONTROL_PREFIX "webbase-1 "
#define WB_CONTROL_COMMAND_MAX (WB_SITE_NAME_MAX + 64)
#define WB_CONTROL_ANSWER_MAX ((size_t)64 << 10)
#define WB_CONTROL_DOORS_MAX 8 /* crawls that run on one repository at a time and can be reached */

/* The address of one of the doors of a repository, from 0. WB_E_NOTFOUND, WB_E_IO: there is no such directory. */
int wb_control_address(const char *dir, unsigned number, struct sockaddr_un *address_out, socklen_t *len_out);

/*
 * Appends what the crawl that is running on the repository was told about a site: "; slowed down ...". Appends nothing
 * if no crawl is running, or if it was told nothing.
 */
int wb_control_describe(const char *dir, struct wb_slice site, struct wb_buf *text_out);

/* Whether the process at the other end is root's, ours or `owner`'s. */
bool wb_control_trusts(int fd, uid_t owner);

#endif
