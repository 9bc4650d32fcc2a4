/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include "softnic/files.h"
#include "softnic/raw.h"

#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142
#endif

/* ---- which files ---------------------------------------------------- */

/* SFNIC_MEMORY=memfd: a memory file stands in for a dmabuf, in tests. */
static bool is_dmabuf(const struct statfs *fs)
{
	const char *way = getenv("SFNIC_MEMORY");

	return fs->f_type == DMA_BUF_MAGIC ||
	       (way && !strcmp(way, "memfd") && fs->f_type == TMPFS_MAGIC);
}

static void *map(int fd, uint64_t size, bool write)
{
	return mmap(NULL, size, PROT_READ | (write ? PROT_WRITE : 0),
		    MAP_SHARED, fd, 0);
}

/* A duplicate's position is the original's: it goes back to where it was. */
static long size_of(int fd)
{
	long at = raw_lseek(fd, 0, SEEK_CUR);
	long size = raw_lseek(fd, 0, SEEK_END);

	if (at >= 0)
		raw_lseek(fd, at, SEEK_SET);
	return size;
}

int files_check(int fd, bool write, uint64_t *size)
{
	struct statfs fs;
	long err = RAW(SYS_fstatfs, fd, &fs), len;
	void *p;

	if (err)
		return err == -EBADF ? EBADF : EINVAL;
	if (!is_dmabuf(&fs))
		return EINVAL;
	len = size_of(fd);
	if (len <= 0)
		return EINVAL;
	p = map(fd, (uint64_t)len, write);
	if (p == MAP_FAILED)
		return errno == EACCES ? EACCES : EOPNOTSUPP;
	munmap(p, (uint64_t)len);
	*size = (uint64_t)len;
	return 0;
}

/* ---- those that are mapped here ------------------------------------- */

struct file {
	uint32_t space; /* 0: none */
	int fd;
	char *base;
	uint64_t size;
	bool writable;
	bool lent; /* the descriptor is somebody else's */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file files[SFNIC_MAX_FILE];

static struct file *entry(uint32_t space)
{
	return &files[SFNIC_INDEX(space) % SFNIC_MAX_FILE];
}

static void drop(struct file *f)
{
	if (!f->space)
		return;
	munmap(f->base, f->size);
	if (!f->lent)
		raw_close(f->fd);
	f->space = 0;
}

/* Two live files never have one entry: what was here before is gone. */
static bool take(struct file *f, const struct sfnic_host *h, uint32_t space)
{
	int fd = h->get_fd(SFNIC_FD_FILE, space);
	long size = fd < 0 ? -1 : size_of(fd);
	void *p = MAP_FAILED;

	drop(f);
	f->writable = true;
	if (size > 0)
		p = map(fd, (uint64_t)size, true);
	if (size > 0 && p == MAP_FAILED) {
		f->writable = false;
		p = map(fd, (uint64_t)size, false);
	}
	if (p == MAP_FAILED) {
		if (fd >= 0 && !h->lends_files)
			raw_close(fd);
		return false;
	}
	f->fd = fd;
	f->lent = h->lends_files;
	f->base = p;
	f->size = (uint64_t)size;
	f->space = space;
	return true;
}

/* Caches of the CPU and of whoever exports it. */
static void sync_file(const struct file *f, uint64_t flags)
{
	struct dma_buf_sync sync = {.flags = flags};

	while (RAW(SYS_ioctl, f->fd, DMA_BUF_IOCTL_SYNC, &sync) == -EINTR)
		;
}

bool files_copy(const struct sfnic_host *h, uint32_t space, uint64_t off,
		char *buf, uint64_t len, bool write)
{
	uint64_t mode = write ? DMA_BUF_SYNC_WRITE : DMA_BUF_SYNC_READ;
	struct file *f = entry(space);
	bool ok;

	pthread_mutex_lock(&lock);
	ok = f->space == space || take(f, h, space);
	ok = ok && off <= f->size && len <= f->size - off &&
	     (f->writable || !write);
	if (ok) {
		sync_file(f, DMA_BUF_SYNC_START | mode);
		if (write)
			memcpy(f->base + off, buf, len);
		else
			memcpy(buf, f->base + off, len);
		sync_file(f, DMA_BUF_SYNC_END | mode);
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

void files_forget(uint32_t space)
{
	pthread_mutex_lock(&lock);
	if (entry(space)->space == space)
		drop(entry(space));
	pthread_mutex_unlock(&lock);
}
