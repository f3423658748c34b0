/* faultkinds.h - every kind of operation that a test can make fail (os/fault.h), and how it usually fails. */
#ifndef WB_TESTS_FAULTKINDS_H
#define WB_TESTS_FAULTKINDS_H

#include "os/fault.h"

#include <errno.h>

static const struct {
    unsigned kind;
    int error;
    const char *name;
} fault_kinds[] = {
    {WB_FAULT_ALLOC, ENOMEM, "alloc"}, {WB_FAULT_OPEN, EACCES, "open"}, {WB_FAULT_READ, EIO, "read"},
    {WB_FAULT_WRITE, ENOSPC, "write"}, {WB_FAULT_SYNC, EIO, "sync"},    {WB_FAULT_RENAME, ENOSPC, "rename"},
};

#endif
