/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls as such: not cancellation points, not interposed, the same in
 * the middle of any program.  They return -errno like the kernel.
 */
#ifndef SFNIC_RAW_H
#define SFNIC_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RAW(nr, ...)                                        \
	({                                                  \
		int raw_saved_ = errno;                     \
		long raw_ret_ = syscall(nr, ##__VA_ARGS__); \
		if (raw_ret_ < 0)                           \
			raw_ret_ = -errno;                  \
		errno = raw_saved_;                         \
		raw_ret_;                                   \
	})

static inline long raw_close(int fd)
{
	return RAW(SYS_close, fd);
}

static inline long raw_write(int fd, const void *buf, size_t len)
{
	return RAW(SYS_write, fd, buf, len);
}

static inline long raw_read(int fd, void *buf, size_t len)
{
	return RAW(SYS_read, fd, buf, len);
}

static inline long raw_pread(int fd, void *buf, size_t len, off_t off)
{
	return RAW(SYS_pread64, fd, buf, len, off);
}

static inline long raw_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	return RAW(SYS_pwrite64, fd, buf, len, off);
}

static inline long raw_lseek(int fd, off_t off, int whence)
{
	return RAW(SYS_lseek, fd, off, whence);
}

static inline long raw_fstat(int fd, struct stat *st)
{
	return RAW(SYS_fstat, fd, st);
}

static inline long raw_open(const char *path, int flags)
{
	return RAW(SYS_openat, AT_FDCWD, path, flags, 0);
}

/*
 * Descriptors that a program does not know of stay out of its way: out of the
 * low numbers, and if it must not have that many, at least not where it would
 * look for a terminal.  Takes @fd, returns what it became.
 */
static inline int raw_move_high(int fd)
{
	long high = RAW(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 800);

	if (high < 0 && fd < 3)
		high = RAW(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
	if (high < 0)
		return fd;
	raw_close(fd);
	return (int)high;
}

#endif
