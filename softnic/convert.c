/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whole pages of registered private memory are moved into the arena, in place:
 * copied, then mapped over.  Nothing may write to them in between.  That holds
 * if the process has no thread but this one (and ours), or if userfaultfd
 * write-protects them meanwhile: writers wait, also those in system calls.
 *
 * What is not converted is reached with a system call; the result is the same.
 *
 * The arena shows in two more places: in a forked child, which gets a private
 * copy before anyone goes on, and after the last deregistration, when the pages
 * are moved back so that MADV_DONTNEED and friends mean again what they do.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "softnic/client.h"
#include "softnic/convert.h"
#include "softnic/maps.h"
#include "softnic/raw.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0)
#endif

/* Converting costs a copy; regions beyond this are left as they are. */
#define CONVERT_MAX (1ull << 30)
#define MAX_BLOCKS 4096
#define MAX_PIECES 64

/* Pages that were converted together. */
struct block {
	uint64_t va, len, off; /* len 0: free */
	uint64_t seq;	       /* when */
	uint32_t refs;	       /* regions that were there then or came later */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[MAX_BLOCKS];
/* A region holds every block of its range that is not younger than it. */
static struct convert_hold notes[RNIC_MAX_KEYS];
static uint32_t high; /* blocks at and above were never used */
static uint64_t seq;
static int own_threads;
static int fork_pipe[2] = {-1, -1};

/* SFNIC_MEMORY: which way to take, for tests. */
static enum way {
	WAY_UNKNOWN,
	WAY_AUTO,
	WAY_UFFD, /* write-protect even where one thread would not need it */
	WAY_CALL, /* never convert */
} way;

static enum way chosen_way(void)
{
	const char *s;

	if (way == WAY_UNKNOWN) {
		s = getenv("SFNIC_MEMORY");
		way = WAY_AUTO;
		if (s && !strcmp(s, "uffd"))
			way = WAY_UFFD;
		if (s && !strcmp(s, "call"))
			way = WAY_CALL;
	}
	return way;
}

void convert_helper_threads(int n)
{
	own_threads = n;
}

/* ---- keeping writers away ------------------------------------------- */

#define GUARD_NONE (-1) /* nobody else is there */
#define GUARD_IMPOSSIBLE (-2)

static int open_uffd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	int fd = (int)RAW(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		int dev = (int)raw_open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);

		if (dev < 0)
			return -1;
		fd = (int)RAW(SYS_ioctl, dev, USERFAULTFD_IOC_NEW,
			      O_CLOEXEC | O_NONBLOCK);
		raw_close(dev);
	}
	if (fd >= 0 && RAW(SYS_ioctl, fd, UFFDIO_API, &api)) {
		raw_close(fd);
		return -1;
	}
	return fd;
}

static int guard_uffd(uint64_t va, uint64_t len)
{
	struct uffdio_register reg = {
		.range = {va, len},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect wp = {
		.range = {va, len},
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = open_uffd();

	if (fd < 0)
		return GUARD_IMPOSSIBLE;
	if (RAW(SYS_ioctl, fd, UFFDIO_REGISTER, &reg) ||
	    RAW(SYS_ioctl, fd, UFFDIO_WRITEPROTECT, &wp)) {
		raw_close(fd);
		return GUARD_IMPOSSIBLE;
	}
	return fd;
}

static int guard_begin(uint64_t va, uint64_t len)
{
	if (chosen_way() != WAY_UFFD && maps_threads() == 1 + own_threads)
		return GUARD_NONE;
	return guard_uffd(va, len);
}

/*
 * Closing alone does not wake everybody if a fork in another library's back
 * has duplicated the descriptor.
 */
static void guard_end(int guard, uint64_t va, uint64_t len)
{
	struct uffdio_range range = {va, len};
	struct uffdio_writeprotect wp = {.range = {va, len}};

	if (guard < 0)
		return;
	RAW(SYS_ioctl, guard, UFFDIO_WRITEPROTECT, &wp);
	RAW(SYS_ioctl, guard, UFFDIO_UNREGISTER, &range);
	RAW(SYS_ioctl, guard, UFFDIO_WAKE, &range);
	raw_close(guard);
}

/* Memory that this very code stands on must not be protected from it. */
static bool is_own(uint64_t start, uint64_t end)
{
	const void *own[] = {&own,  &errno, blocks,
			     notes, &lock,  __builtin_frame_address(0)};
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		uint64_t at = (uintptr_t)own[i];

		/* The stack goes on below, the thread's block above. */
		if (at + (64 << 10) > start && at < end + (64 << 10))
			return true;
	}
	return false;
}

/* ---- there ---------------------------------------------------------- */

/* Would the kernel send SIGXFSZ? */
static bool file_limit(uint64_t end)
{
	struct rlimit limit;

	return !RAW(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) &&
	       limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < end;
}

static uint64_t take_pages(uint64_t len, int arena)
{
	struct sfnic_req req = {.op = SFNIC_ALLOC_PAGES, .pages.len = len};
	struct sfnic_rsp rsp;

	if (sfnic_call(&req, -1, &rsp, NULL))
		return 0;
	/* Rather no conversion now than a SIGBUS later. */
	if (!file_limit(rsp.pages.off + len) &&
	    !RAW(SYS_fallocate, arena, 0, rsp.pages.off, len))
		return rsp.pages.off;
	req.op = SFNIC_FREE_PAGES;
	req.pages.off = rsp.pages.off;
	sfnic_call(&req, -1, &rsp, NULL);
	return 0;
}

static void give_pages(uint64_t off, uint64_t len)
{
	struct sfnic_req req = {.op = SFNIC_FREE_PAGES};
	struct sfnic_rsp rsp;

	req.pages.off = off;
	req.pages.len = len;
	sfnic_call(&req, -1, &rsp, NULL);
}

static bool move_in(uint64_t va, uint64_t len, uint64_t off, int arena)
{
	void *new = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, arena, (off_t)off);
	int guard;
	bool ok;

	if (new == MAP_FAILED)
		return false;
	guard = guard_begin(va, len);
	ok = guard != GUARD_IMPOSSIBLE && sfnic_copy_own(new, va, len) &&
	     RAW(SYS_mremap, new, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
		 va) == (long)va;
	guard_end(guard, va, len);
	if (!ok)
		munmap(new, len);
	return ok;
}

static struct block *free_block(void)
{
	uint32_t i;

	for (i = 0; i < MAX_BLOCKS; i++) {
		if (blocks[i].len)
			continue;
		if (high <= i)
			high = i + 1;
		return &blocks[i];
	}
	return NULL;
}

static struct block *convert(const struct mapping *m, int arena)
{
	uint64_t len = m->end - m->start, off;
	struct block *b = free_block();

	if (!b || m->special || m->shared || m->ino || !m->writable ||
	    is_own(m->start, m->end))
		return NULL;
	off = take_pages(len, arena);
	if (!off)
		return NULL;
	if (!move_in(m->start, len, off, arena)) {
		give_pages(off, len);
		return NULL;
	}
	*b = (struct block){m->start, len, off, ++seq, 0};
	return b;
}

/* ---- and back ------------------------------------------------------- */

/* Is the block still mapped where it was put, all of it? */
static bool block_mapped(const struct block *b, bool *gone)
{
	struct mapping maps[MAX_PIECES];
	struct stat st;
	uint64_t at = b->va;
	int arena, i, n;

	sfnic_arena(&arena);
	n = maps_read(b->va, b->va + b->len, maps, MAX_PIECES);
	*gone = false;
	if (n < 0 || raw_fstat(arena, &st))
		return false;
	*gone = true;
	for (i = 0; i < n; i++) {
		bool ours = maps[i].ino == st.st_ino &&
			    maps[i].dev == st.st_dev &&
			    maps[i].off == b->off + (maps[i].start - b->va);

		if (ours)
			*gone = false;
		if (!ours || maps[i].start != at || !maps[i].writable)
			return false;
		at = maps[i].end;
	}
	return at == b->va + b->len;
}

static bool copy_from_file(int fd, uint64_t off, char *to, uint64_t len)
{
	while (len) {
		long n = raw_pread(fd, to, len, (off_t)off);

		if (n <= 0)
			return false;
		off += (uint64_t)n;
		to += n;
		len -= (uint64_t)n;
	}
	return true;
}

/*
 * A private copy takes the place of the block.  The kernel copies: what watches
 * this program's accesses to its memory (sanitizers) has nothing to say.
 */
static bool make_private(const struct block *b)
{
	uint64_t va = b->va, len = b->len;
	int arena;
	void *copy = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	sfnic_arena(&arena);
	if (copy_from_file(arena, b->off, copy, len) &&
	    RAW(SYS_mremap, copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
		va) == (long)va)
		return true;
	munmap(copy, len);
	return false;
}

static void revert(struct block *b)
{
	bool gone;
	int guard;

	if (!block_mapped(b, &gone)) {
		if (gone) { /* unmapped by the program */
			give_pages(b->off, b->len);
			b->len = 0;
		}
		return;
	}
	if (is_own(b->va, b->va + b->len))
		return;
	guard = guard_begin(b->va, b->len);
	if (guard == GUARD_IMPOSSIBLE)
		return; /* stays as it is; taken up by the next region */
	if (make_private(b)) {
		guard_end(guard, b->va, b->len);
		give_pages(b->off, b->len);
		b->len = 0;
	} else {
		guard_end(guard, b->va, b->len);
	}
}

/* ---- regions -------------------------------------------------------- */

static void add_segment(struct rnic_mr_attr *attr, uint64_t va, uint64_t len,
			uint64_t off)
{
	struct rnic_mr_seg *last =
		attr->nseg ? &attr->seg[attr->nseg - 1] : NULL;
	uint32_t i, least = 0;

	if (last && last->va + last->len == va &&
	    last->off + last->len == off) {
		last->len += len;
		return;
	}
	if (attr->nseg < RNIC_MR_SEGS) {
		attr->seg[attr->nseg++] = (struct rnic_mr_seg){va, len, off};
		return;
	}
	/* No room: the shortest goes by system call. */
	for (i = 1; i < RNIC_MR_SEGS; i++)
		if (attr->seg[i].len < attr->seg[least].len)
			least = i;
	if (attr->seg[least].len >= len)
		return;
	memmove(&attr->seg[least], &attr->seg[least + 1],
		(RNIC_MR_SEGS - 1 - least) * sizeof(attr->seg[0]));
	attr->seg[RNIC_MR_SEGS - 1] = (struct rnic_mr_seg){va, len, off};
}

static bool overlaps(const struct block *b, uint64_t addr, uint64_t len)
{
	return b->len && b->va < addr + len && addr < b->va + b->len;
}

bool convert_covers(uint64_t addr, uint64_t len)
{
	uint32_t i;

	for (i = 0; i < high; i++)
		if (overlaps(&blocks[i], addr, len ? len : 1))
			return true;
	return false;
}

/* The parts of [start, end) that are in the arena, from the blocks. */
static void collect(struct rnic_mr_attr *attr, uint64_t start, uint64_t end)
{
	uint64_t at = start;

	for (;;) {
		const struct block *next = NULL;
		uint64_t from, to;
		uint32_t i;

		for (i = 0; i < high; i++)
			if (overlaps(&blocks[i], at, end - at) &&
			    (!next || blocks[i].va < next->va))
				next = &blocks[i];
		if (!next || at >= end)
			return;
		from = next->va > at ? next->va : at;
		to = next->va + next->len < end ? next->va + next->len : end;
		add_segment(attr, from, to - from,
			    next->off + (from - next->va));
		at = to;
	}
}

static void hold(uint64_t addr, uint64_t len)
{
	uint32_t i;

	for (i = 0; i < high; i++)
		if (overlaps(&blocks[i], addr, len))
			blocks[i].refs++;
}

static void drop(uint64_t addr, uint64_t len, uint64_t until)
{
	uint32_t i;

	for (i = 0; i < high; i++) {
		struct block *b = &blocks[i];

		if (overlaps(b, addr, len) && b->seq <= until && b->refs &&
		    !--b->refs)
			revert(b);
	}
}

/* Blocks that the program has unmapped are not what is there now. */
static void forget_unmapped(uint64_t start, uint64_t end)
{
	uint32_t i;
	bool gone;

	for (i = 0; i < high; i++) {
		struct block *b = &blocks[i];

		if (overlaps(b, start, end - start) &&
		    !block_mapped(b, &gone) && gone) {
			/* Regions of the old memory may still use the pages. */
			if (!b->refs)
				give_pages(b->off, b->len);
			b->len = 0;
		}
	}
}

static void convert_range(struct rnic_mr_attr *attr)
{
	uint64_t mask = RNIC_PAGE - 1;
	uint64_t start = (attr->addr + mask) & ~mask;
	uint64_t end = (attr->addr + attr->len) & ~mask;
	struct mapping maps[MAX_PIECES];
	int arena, i, n;

	if (end <= start || end - start > CONVERT_MAX ||
	    chosen_way() == WAY_CALL)
		return;
	sfnic_arena(&arena);
	forget_unmapped(start, end);
	n = maps_read(start, end, maps, MAX_PIECES);
	for (i = 0; i < n; i++)
		convert(&maps[i], arena);
	collect(attr, start, end);
}

static bool writable(uint64_t start, uint64_t end)
{
	struct mapping maps[MAX_PIECES];
	int i, n;

	do {
		n = maps_read(start, end, maps, MAX_PIECES);
		for (i = 0; i < n; i++)
			if (!maps[i].writable)
				return false;
		if (n > 0)
			start = maps[n - 1].end;
	} while (n == MAX_PIECES);
	return true;
}

/*
 * Maps in what is to be registered, as pinning would: a region that is not
 * mapped, or not writable though it must be, is refused.
 */
int convert_prefetch(uint64_t addr, uint64_t len, bool write)
{
	uint64_t mask = RNIC_PAGE - 1;
	uint64_t start = addr & ~mask;
	uint64_t end = (addr + len + mask) & ~mask;
	long err;

	if (end < start)
		return EINVAL;
	err = RAW(SYS_madvise, start, end - start,
		  write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	if (err == -ENOMEM || err == -EFAULT)
		return EFAULT;
	/* A kernel or a kind of memory that does not know it, or no right. */
	return err == -EINVAL && write && !writable(start, end) ? EFAULT : 0;
}

static void enter(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	pthread_mutex_lock(&lock);
}

static void leave(const sigset_t *old)
{
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

int convert_acquire(struct rnic_mr_attr *attr, struct convert_hold *held)
{
	sigset_t old;
	int err;

	attr->nseg = 0;
	*held = (struct convert_hold){attr->addr, attr->len, 0};
	if (!attr->len)
		return 0;
	err = convert_prefetch(attr->addr, attr->len,
			       attr->access & RNIC_LOCAL_WRITE);
	if (err)
		return err;
	enter(&old);
	convert_range(attr);
	hold(attr->addr, attr->len);
	held->seq = seq;
	leave(&old);
	return 0;
}

void convert_none(struct rnic_mr_attr *attr, struct convert_hold *held)
{
	attr->nseg = 0;
	*held = (struct convert_hold){.len = 0};
}

void convert_release(const struct convert_hold *held)
{
	sigset_t old;

	if (!held->len)
		return;
	enter(&old);
	drop(held->addr, held->len, held->seq);
	leave(&old);
}

void convert_note(uint32_t key, const struct convert_hold *held)
{
	notes[SF_KEY_INDEX(key) % RNIC_MAX_KEYS] = *held;
}

void convert_forget(uint32_t key)
{
	struct convert_hold *n = &notes[SF_KEY_INDEX(key) % RNIC_MAX_KEYS];

	convert_release(n);
	n->len = 0;
}

/* ---- fork ----------------------------------------------------------- */

static bool any_block(void)
{
	uint32_t i;

	for (i = 0; i < high; i++)
		if (blocks[i].len)
			return true;
	return false;
}

void convert_before_fork(void)
{
	pthread_mutex_lock(&lock);
	fork_pipe[0] = fork_pipe[1] = -1;
	if (any_block())
		RAW(SYS_pipe2, fork_pipe, O_CLOEXEC);
}

/* Goes on when the child has its copies, or is dead. */
void convert_parent_after_fork(void)
{
	char byte;

	if (fork_pipe[0] >= 0) {
		raw_close(fork_pipe[1]);
		while (raw_read(fork_pipe[0], &byte, 1) == -EINTR)
			;
		raw_close(fork_pipe[0]);
	}
	pthread_mutex_unlock(&lock);
}

void convert_child_after_fork(void)
{
	uint32_t i;
	bool gone;

	for (i = 0; i < high; i++) {
		if (blocks[i].len && block_mapped(&blocks[i], &gone))
			make_private(&blocks[i]);
		blocks[i].len = 0;
	}
	memset(notes, 0, sizeof(notes));
	own_threads = 0;
	if (fork_pipe[0] >= 0) {
		raw_close(fork_pipe[0]);
		raw_close(fork_pipe[1]);
	}
	pthread_mutex_init(&lock, NULL);
}
