/* usercolumn.c - columns of users. */
#include "index/usercolumn.h"
#include "index/build.h"

int wb_usercolumns_write(struct wb_build *build)
{
    (void)build;
    return 0;
}

int wb_usercolumns_open(struct wb_index *index)
{
    (void)index;
    return 0;
}

void wb_usercolumns_close(struct wb_index *index)
{
    (void)index;
}
