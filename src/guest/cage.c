/*
 * cage.c - takes network, files, processes and memory from this process, for good.
 *
 * Two filters of system calls, each a list of what is allowed; anything else fails with EPERM, so that code which tries
 * a socket and can do without one goes on. The first list lets the dynamic linker read libraries. The second has
 * nothing that takes a name. Both stay in force, and a call needs the consent of both.
 *
 * A kernel without seccomp gives us namespaces instead: an empty network, and an empty root directory. One that has
 * neither runs no guests. Limits (no files to write, no core, memory) are set in any case.
 *
 * One request for more memory than all that is allowed ends the process with SIGSYS, because what comes after it, a
 * NULL pointer that is not checked or a loop that tries again, looks like some other mistake.
 */
#include "guest/cage.h"
#include "base/error.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CAGE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CAGE_ARCH AUDIT_ARCH_AARCH64
#else
#define CAGE_ARCH 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Beside the memory of the module: the data of this program and of the libraries. */
#define DATA_ROOM ((uint64_t)32 << 20)

/* Calls that take no name and reach nothing outside the process. */
static const int harmless[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_close,
    SYS_lseek,
    SYS_munmap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_restart_syscall,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrandom,
    SYS_getrusage,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_uname,
    SYS_setitimer,
    SYS_ppoll,
    SYS_membarrier,
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_time
    SYS_time,
#endif
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
};

/* What the dynamic linker does besides. */
static const int loading[] = {
    SYS_newfstatat, SYS_fstat, SYS_statx,   SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_pread64,
    SYS_getcwd,     SYS_prctl, SYS_seccomp, SYS_fcntl,     SYS_statfs,     SYS_fstatfs,    SYS_sysinfo,
#ifdef SYS_access
    SYS_access,
#endif
#ifdef SYS_readlink
    SYS_readlink,
#endif
#ifdef SYS_stat
    SYS_stat,       SYS_lstat,
#endif
};

struct cage_program WB_VEC_OF(struct sock_filter);

static int add(struct cage_program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    return wb_vec_push(p, (struct sock_filter){code, yes, no, k});
}

static int add_load(struct cage_program *p, size_t offset)
{
    return add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static int add_return(struct cage_program *p, uint32_t action)
{
    return add(p, BPF_RET | BPF_K, action, 0, 0);
}

#define LOW(n) (offsetof(struct seccomp_data, args[n])) /* both kinds of processors are little-endian */
#define HIGH(n) (offsetof(struct seccomp_data, args[n]) + 4)
#define NUMBER (offsetof(struct seccomp_data, nr))
#define DENY (SECCOMP_RET_ERRNO | EPERM)

static int allow(struct cage_program *p, int call)
{
    int err = add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);

    return err < 0 ? err : add_return(p, SECCOMP_RET_ALLOW);
}

/* Allows a call if (argument & mask) == value, for the lower half of an argument. */
static int allow_if(struct cage_program *p, int call, unsigned arg, uint32_t mask, uint32_t value)
{
    int err = add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5);

    if (err == 0)
        err = add_load(p, LOW(arg));
    if (err == 0)
        err = add(p, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    if (err == 0)
        err = add(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    if (err == 0)
        err = add_return(p, SECCOMP_RET_ALLOW);
    return err < 0 ? err : add_return(p, DENY);
}

/* Allows a call that asks for at most max bytes; one that asks for more ends the process. */
static int allow_size(struct cage_program *p, int call, unsigned arg, uint64_t max)
{
    int err = add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 7);

    if (err == 0)
        err = add_load(p, HIGH(arg));
    if (err == 0)
        err = add(p, BPF_JMP | BPF_JGT | BPF_K, (uint32_t)(max >> 32), 4, 0);
    if (err == 0)
        err = add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(max >> 32), 0, 2);
    if (err == 0)
        err = add_load(p, LOW(arg));
    if (err == 0)
        err = add(p, BPF_JMP | BPF_JGT | BPF_K, (uint32_t)max, 1, 0);
    if (err == 0)
        err = add_return(p, SECCOMP_RET_ALLOW);
    return err < 0 ? err : add_return(p, SECCOMP_RET_KILL_PROCESS);
}

/* The beginning of both lists: the right kind of processor, and threads but no processes. */
static int begin_list(struct cage_program *p)
{
    int err = add_load(p, offsetof(struct seccomp_data, arch));

    if (err == 0)
        err = add(p, BPF_JMP | BPF_JEQ | BPF_K, CAGE_ARCH, 1, 0);
    if (err == 0)
        err = add_return(p, SECCOMP_RET_KILL_PROCESS);
    if (err == 0)
        err = add_load(p, NUMBER);
    for (size_t i = 0; err == 0 && i < sizeof harmless / sizeof *harmless; i++)
        err = allow(p, harmless[i]);
    if (err == 0)
        err = allow_if(p, SYS_clone, 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM);
    if (err == 0) /* its arguments are in memory, which a filter cannot read: glibc then takes clone() */
        err = add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    if (err == 0)
        err = add_return(p, SECCOMP_RET_ERRNO | ENOSYS);
    if (err == 0)
        err = allow_if(p, SYS_tgkill, 0, UINT32_MAX, (uint32_t)getpid()); /* abort() */
    return err < 0 ? err : allow_if(p, SYS_prlimit64, 0, UINT32_MAX, 0);
}

static int install(struct cage_program *p)
{
    struct sock_fprog program = {(unsigned short)p->count, p->items};

    if (CAGE_ARCH == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return WB_E_DENIED;
    return 0;
}

/* What a kernel without seccomp can do: a network without interfaces, and a root directory without files. */
static int move_away(void)
{
    static bool moved;

    if (moved)
        return 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) != 0)
        return wb_fail(WB_E_DENIED, "this kernel has neither seccomp nor namespaces, so no module can be confined");
    moved = true;
    return 0;
}

static void set_limit(int what, uint64_t value)
{
    struct rlimit limit = {value, value};

    setrlimit((__rlimit_resource_t)what, &limit);
}

int wb_cage_enter(void)
{
    struct cage_program p = WB_VEC_INIT;

    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_FSIZE, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int err = begin_list(&p);
    for (size_t i = 0; err == 0 && i < sizeof loading / sizeof *loading; i++)
        err = allow(&p, loading[i]);
    if (err == 0)
        err = allow_if(&p, SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
#ifdef SYS_open
    if (err == 0)
        err = allow_if(&p, SYS_open, 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
#endif
    if (err == 0)
        err = allow(&p, SYS_mmap);
    if (err == 0)
        err = allow(&p, SYS_mremap);
    if (err == 0)
        err = add_return(&p, DENY);
    if (err == 0)
        err = install(&p);
    wb_vec_release(&p);
    return err == WB_E_DENIED ? move_away() : err;
}

int wb_cage_shut(uint64_t memory_bytes)
{
    struct cage_program p = WB_VEC_INIT;
    uint64_t most = SANITIZED ? UINT64_MAX : memory_bytes;
    int err = begin_list(&p);

    if (!SANITIZED) /* which reserves far more than it uses */
        set_limit(RLIMIT_DATA, memory_bytes + DATA_ROOM);
    set_limit(RLIMIT_NOFILE, 16);
    if (err == 0)
        err = allow_size(&p, SYS_mmap, 1, most);
    if (err == 0)
        err = allow_size(&p, SYS_mremap, 2, most);
    if (err == 0)
        err = add_return(&p, DENY);
    if (err == 0)
        err = install(&p);
    wb_vec_release(&p);
    if (err != WB_E_DENIED)
        return err;
    err = move_away();
    /* The folder is empty for a process that has no other descriptors than those that were opened before. */
    if (err == 0 && (chroot("/proc/self/fdinfo") != 0 || chdir("/") != 0))
        return wb_fail_errno("a module cannot be confined");
    return err;
}
