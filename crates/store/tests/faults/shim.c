/* Faults for tests: a library to preload that makes system calls fail.
 *
 * The file named by COUNTERSIGN_TEST_FAULTS is read again at each call, so faults can be switched on
 * and off while the process runs. Its one line says
 *
 *     CALL PART WHAT SKIP
 *
 * CALL is open, write, fsync, rename, link, unlink, truncate or any; PART is a piece of the file's
 * path; WHAT is the error, or KILL to end the process before the call happens; SKIP is how many
 * such calls of this process go through first. An empty file is no fault.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long seen;

/* Reads a small file without the calls that this library replaces. */
static int read_control(char *text, size_t size) {
    const char *name = getenv("COUNTERSIGN_TEST_FAULTS");
    if (!name) return 0;
    long fd = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    long length = syscall(SYS_read, fd, text, size - 1);
    syscall(SYS_close, fd);
    if (length <= 0) return 0;
    text[length] = 0;
    return 1;
}

static int error_number(const char *name) {
    if (!strcmp(name, "EIO")) return EIO;
    if (!strcmp(name, "ENOSPC")) return ENOSPC;
    if (!strcmp(name, "EROFS")) return EROFS;
    if (!strcmp(name, "EACCES")) return EACCES;
    abort();
}

/* Whether the call must fail; sets errno if so. */
static int fails(const char *call, const char *path) {
    int saved = errno;
    char text[4096], wanted[16], part[2048], what[16];
    long skip = 0;
    if (!read_control(text, sizeof text) ||
        sscanf(text, "%15s %2047s %15s %ld", wanted, part, what, &skip) != 4 ||
        (strcmp(wanted, "any") && strcmp(wanted, call)) || !strstr(path, part) ||
        atomic_fetch_add(&seen, 1) < skip) {
        errno = saved;
        return 0;
    }
    if (!strcmp(what, "KILL")) {
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
        for (;;) pause();
    }
    errno = error_number(what);
    return 1;
}

static int fd_fails(const char *call, int fd) {
    int saved = errno;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    errno = saved;
    if (length <= 0 || path[0] != '/') return 0;
    path[length] = 0;
    return fails(call, path);
}

static int open_file(int folder, const char *path, int flags, int mode) {
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
    if (writes && fails("open", path)) return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define WITH_MODE(flags)                                                                           \
    int mode = 0;                                                                                  \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                           \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode = va_arg(rest, int);                                                                  \
        va_end(rest);                                                                              \
    }

int open(const char *path, int flags, ...) {
    WITH_MODE(flags)
    return open_file(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    WITH_MODE(flags)
    return open_file(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    WITH_MODE(flags)
    return open_file(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    WITH_MODE(flags)
    return open_file(folder, path, flags | O_LARGEFILE, mode);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    return fd_fails("write", fd) ? -1 : syscall(SYS_write, fd, bytes, count);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    return fd_fails("write", fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    return fd_fails("write", fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, offset);
}

int fsync(int fd) { return fd_fails("fsync", fd) ? -1 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return fd_fails("fsync", fd) ? -1 : (int)syscall(SYS_fdatasync, fd); }

int ftruncate(int fd, off_t length) {
    return fd_fails("truncate", fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}
int ftruncate64(int fd, off64_t length) {
    return fd_fails("truncate", fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int rename(const char *from, const char *to) {
    if (fails("rename", to)) return -1;
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int link(const char *from, const char *to) {
    if (fails("link", to)) return -1;
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    if (fails("link", to)) return -1;
    return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}
int unlink(const char *path) {
    return fails("unlink", path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
