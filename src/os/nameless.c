/* nameless.c - O_TMPFILE; on file systems that do not have it, a file that is removed as soon as it is made. */
#include "os/nameless.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/fault.h"
#include "os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int make_and_remove(const char *dir)
{
    char *path = wb_path_join(dir, "temporary-XXXXXX");
    int fd = -1;

    if (!path) {
        errno = ENOMEM;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    wb_free(path);
    return fd;
}

int wb_nameless_open(const char *dir, struct wb_file *file_out)
{
    char *copy = wb_strdup(dir);
    int fd;

    *file_out = WB_FILE_INIT;
    if (!copy)
        return WB_E_NOMEM;
    fd = wb_fault_strikes(WB_FAULT_OPEN, dir) ? -1 : open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        fd = make_and_remove(dir);
    if (fd < 0) {
        int err = wb_fail_errno("cannot make a temporary file in %s", dir);
        wb_free(copy);
        return err;
    }
    *file_out = (struct wb_file){fd, copy};
    return 0;
}

int wb_nameless_memory(struct wb_file *file_out)
{
    char *name = wb_strdup("a file in memory");
    int fd;

    *file_out = WB_FILE_INIT;
    if (!name)
        return WB_E_NOMEM;
    fd = wb_fault_strikes(WB_FAULT_OPEN, name) ? -1 : memfd_create("webbase", MFD_CLOEXEC);
    if (fd < 0) {
        int err = wb_fail_errno("cannot make %s", name);
        wb_free(name);
        return err;
    }
    *file_out = (struct wb_file){fd, name};
    return 0;
}

int wb_nameless_map(const char *dir, size_t bytes, void **memory_out)
{
    struct wb_file file = WB_FILE_INIT;
    void *memory = MAP_FAILED;
    int err = wb_nameless_open(dir, &file);

    *memory_out = NULL;
    WB_CHECK(bytes > 0);
    if (err < 0)
        return err;
    errno = 0;
    if (!wb_fault_strikes(WB_FAULT_WRITE, dir))
        errno = posix_fallocate(file.fd, 0, (off_t)bytes);
    if (errno)
        err = wb_fail_errno("cannot take %zu bytes for a temporary file in %s", bytes, dir);
    if (err == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    if (err == 0 && memory == MAP_FAILED)
        err = wb_fail_errno("cannot map a temporary file in %s", dir);
    wb_file_close(&file);
    if (err == 0)
        *memory_out = memory;
    return err;
}

void wb_nameless_unmap(void *memory, size_t bytes)
{
    WB_CHECK(munmap(memory, bytes) == 0);
}
