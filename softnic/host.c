/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Locks, time, events and foreign memory for the RNIC core. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include "softnic/files.h"
#include "softnic/host.h"
#include "softnic/maps.h"
#include "softnic/raw.h"
#include "rdma/ib_user_verbs.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct rnic_lock),
	       "a mutex fits where the core keeps its locks");

/* ---- time ----------------------------------------------------------- */

static uint64_t host_now(void *host)
{
	struct timespec ts;

	(void)host;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Only who lowers the word wakes the daemon. */
static void host_timer(void *host, uint64_t deadline)
{
	struct sfnic_host *h = host;
	uint64_t next =
		__atomic_load_n(&h->shared->next_tick, __ATOMIC_SEQ_CST);
	uint64_t one = 1;

	while (deadline < next) {
		if (!__atomic_compare_exchange_n(
			    &h->shared->next_tick, &next, deadline, false,
			    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		raw_write(h->kick_fd, &one, sizeof(one));
		return;
	}
}

/* ---- the arena ------------------------------------------------------ */

/*
 * It is reserved as a whole and accessible as far as it is used: tools that
 * walk a process's memory (leak checkers, core dumps) do not meet all of it.
 */
static uint64_t host_reach(void *host, uint64_t end)
{
	static uint64_t reached;
	struct sfnic_host *h = host;
	char *base = (char *)h->shared - RNIC_ARENA_DYNAMIC;
	uint64_t now = __atomic_load_n(&reached, __ATOMIC_ACQUIRE);
	uint64_t to = SFNIC_ARENA_FIRST;

	if (end <= now)
		return now;
	while (to < end)
		to *= 2;
	if (to > h->size)
		to = h->size;
	if (end > to || RAW(SYS_mprotect, base, to, PROT_READ | PROT_WRITE))
		return now;
	/* Another thread may have gone further: asked again, it says so. */
	__atomic_store_n(&reached, to, __ATOMIC_RELEASE);
	return to;
}

/* ---- locks ---------------------------------------------------------- */

#define LOCK_SPINS 400

static pthread_mutex_t *mutex(struct rnic_lock *lock)
{
	return (pthread_mutex_t *)lock;
}

static void host_lock_init(void *host, struct rnic_lock *lock)
{
	pthread_mutexattr_t attr;

	(void)host;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(mutex(lock), &attr);
	pthread_mutexattr_destroy(&attr);
}

static enum rnic_lock_result locked(struct rnic_lock *lock, int err)
{
	if (__builtin_expect(!err, 1))
		return RNIC_LOCKED;
	if (err != EOWNERDEAD)
		return RNIC_LOCK_BUSY;
	pthread_mutex_consistent(mutex(lock));
	return RNIC_LOCK_REPAIR;
}

static enum rnic_lock_result host_trylock(void *host, struct rnic_lock *lock)
{
	(void)host;
	return locked(lock, pthread_mutex_trylock(mutex(lock)));
}

static enum rnic_lock_result host_lock(void *host, struct rnic_lock *lock)
{
	const struct sfnic_host *h = host;
	struct timespec ts;
	int i, err;

	for (i = 0; i < LOCK_SPINS; i++) {
		err = pthread_mutex_trylock(mutex(lock));
		if (__builtin_expect(err != EBUSY, 1))
			return locked(lock, err);
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += h->lock_wait_ms * 1000000L;
	if (ts.tv_nsec >= 1000000000L) {
		ts.tv_nsec -= 1000000000L;
		ts.tv_sec++;
	}
	return locked(lock, pthread_mutex_clocklock(mutex(lock),
						    CLOCK_MONOTONIC, &ts));
}

static void host_unlock(void *host, struct rnic_lock *lock)
{
	(void)host;
	pthread_mutex_unlock(mutex(lock));
}

/* ---- events --------------------------------------------------------- */

int sfnic_event_write(int fd, const struct rnic_event *event)
{
	struct ib_uverbs_async_event_desc async = {
		.element = event->element,
		.event_type = event->type,
	};
	struct ib_uverbs_comp_event_desc comp = {.cq_handle = event->element};
	long n;

	/* Shorter than PIPE_BUF: all or nothing. */
	do {
		if (event->type == RNIC_EVENT_COMPLETION)
			n = raw_write(fd, &comp, sizeof(comp));
		else
			n = raw_write(fd, &async, sizeof(async));
	} while (n == -EINTR);
	if (n > 0)
		return 0;
	return n == -EAGAIN ? EAGAIN : EPIPE;
}

static int event_fd(struct sfnic_host *h, const struct rnic_event *event)
{
	bool comp = event->type == RNIC_EVENT_COMPLETION;

	return h->get_fd(comp ? SFNIC_FD_CHANNEL : SFNIC_FD_ASYNC,
			 comp ? event->channel : event->ctx);
}

/* The first one to a pipe asks the daemon for it: this keeps it at hand. */
static void host_event_soon(void *host, const struct rnic_event *event)
{
	if (event->type != RNIC_EVENT_COMPLETION || event->channel)
		event_fd(host, event);
}

static void host_event(void *host, const struct rnic_event *event)
{
	struct sfnic_host *h = host;
	int fd = event_fd(h, event);

	/* No descriptor left?  The daemon has one. */
	if (fd < 0 || sfnic_event_write(fd, event) == EAGAIN)
		h->event_later(event);
}

/* ---- memory --------------------------------------------------------- */

/*
 * Memory of a process that is not shared is reached through its own
 * /proc/self/mem, opened by itself: the descriptor stays bound to that address
 * space, fails cleanly after exec or death, and needs no right to trace.  That
 * holds for this process's own memory too: a bad address is an error here, not
 * a signal.  EFAULT blames the buffer, all else the other side.
 */
static enum rnic_copy_result blame(long n, enum rnic_copy_result far,
				   enum rnic_copy_result near)
{
	return n == -EFAULT ? near : far;
}

static enum rnic_copy_result copy_out(int fd, uint64_t va, const char *src,
				      uint64_t len)
{
	while (len) {
		long n = raw_pwrite(fd, src, len, (off_t)va);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return blame(n, RNIC_FAULT_DST, RNIC_FAULT_SRC);
		va += (uint64_t)n;
		src += n;
		len -= (uint64_t)n;
	}
	return RNIC_COPY_OK;
}

static enum rnic_copy_result copy_in(int fd, uint64_t va, char *dst,
				     uint64_t len)
{
	while (len) {
		long n = raw_pread(fd, dst, len, (off_t)va);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return blame(n, RNIC_FAULT_SRC, RNIC_FAULT_DST);
		va += (uint64_t)n;
		dst += n;
		len -= (uint64_t)n;
	}
	return RNIC_COPY_OK;
}

/* Two address spaces, both foreign: through a buffer of ours. */
static enum rnic_copy_result copy_through(int dst_fd, uint64_t dst, int src_fd,
					  uint64_t src, uint64_t len)
{
	char buf[16384];

	while (len) {
		uint64_t n = len < sizeof(buf) ? len : sizeof(buf);
		enum rnic_copy_result res = copy_in(src_fd, src, buf, n);

		if (!res)
			res = copy_out(dst_fd, dst, buf, n);
		if (res)
			return res;
		dst += n;
		src += n;
		len -= n;
	}
	return RNIC_COPY_OK;
}

static char *near_pointer(const struct sfnic_host *h,
			  const struct rnic_ref *ref)
{
	if (ref->space == RNIC_SPACE_ARENA)
		return (char *)h->shared - RNIC_ARENA_DYNAMIC + ref->va;
	if (ref->space == RNIC_SPACE_RAW || ref->space == h->space)
		return (char *)(uintptr_t)ref->va;
	return NULL;
}

/* Own memory that nothing vouches for: only the kernel may touch it. */
static bool unsafe(const struct sfnic_host *h, const struct rnic_ref *ref)
{
	return ref->space == h->space;
}

/*
 * Memory that is paged on demand.  /proc/self/mem does not mind protection: the
 * kernel copies as the program itself would where that is us, else the owner's
 * map is looked at first.
 */
static long copy_own(const struct rnic_ref *ref, uint64_t off, char *buf,
		     uint64_t len, bool write)
{
	while (len) {
		struct iovec local = {buf, len};
		struct iovec remote = {(void *)(uintptr_t)(ref->va + off), len};
		long n = RAW(write ? SYS_process_vm_writev :
				     SYS_process_vm_readv,
			     getpid(), &local, 1, &remote, 1, 0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n ? n : -EFAULT;
		buf += n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static bool allowed(const struct sfnic_host *h, const struct rnic_ref *ref,
		    uint64_t off, uint64_t len, bool write)
{
	int fd = h->get_fd(SFNIC_FD_MAPS, ref->space);

	return fd >= 0 && maps_allow(fd, ref->va + off, len, write);
}

/* One piece between @buf and any kind of memory. */
static bool copy_piece(const struct sfnic_host *h, const struct rnic_ref *ref,
		       uint64_t off, char *buf, uint64_t len, bool write)
{
	char *p = near_pointer(h, ref);
	int fd;

	if (sfnic_space_is_file(ref->space))
		return files_copy(h, ref->space, ref->va + off, buf, len,
				  write);
	if (p && !unsafe(h, ref)) {
		memcpy(write ? p + off : buf, write ? buf : p + off, len);
		return true;
	}
	if (ref->on_demand && unsafe(h, ref)) {
		long err = copy_own(ref, off, buf, len, write);

		/* A sandbox may forbid it. */
		if (err != -EPERM && err != -ENOSYS)
			return !err;
	}
	if (ref->on_demand && !allowed(h, ref, off, len, write))
		return false;
	fd = h->get_fd(SFNIC_FD_MEM, ref->space);
	if (fd < 0)
		return false;
	return write ? !copy_out(fd, ref->va + off, buf, len) :
		       !copy_in(fd, ref->va + off, buf, len);
}

static enum rnic_copy_result copy_pieces(const struct sfnic_host *h,
					 const struct rnic_ref *dst,
					 const struct rnic_ref *src,
					 uint64_t len)
{
	uint64_t off = 0, n;
	char buf[16384];

	for (; off < len; off += n) {
		n = len - off < sizeof(buf) ? len - off : sizeof(buf);
		if (!copy_piece(h, src, off, buf, n, false))
			return RNIC_FAULT_SRC;
		if (!copy_piece(h, dst, off, buf, n, true))
			return RNIC_FAULT_DST;
	}
	return RNIC_COPY_OK;
}

enum rnic_copy_result sfnic_copy(void *host, const struct rnic_ref *dst,
				 const struct rnic_ref *src)
{
	struct sfnic_host *h = host;
	char *d = near_pointer(h, dst), *s = near_pointer(h, src);
	uint64_t len = dst->len < src->len ? dst->len : src->len;
	int dst_fd = -1, src_fd = -1;

	if (dst->on_demand || src->on_demand ||
	    sfnic_space_is_file(dst->space) || sfnic_space_is_file(src->space))
		return copy_pieces(h, dst, src, len);
	/* Of two near sides the far one is the unsafe one, if any. */
	if (!d || (unsafe(h, dst) && s)) {
		dst_fd = h->get_fd(SFNIC_FD_MEM, dst->space);
		if (dst_fd < 0)
			return RNIC_FAULT_DST;
		if (s)
			return copy_out(dst_fd, dst->va, s, len);
	}
	src_fd = h->get_fd(SFNIC_FD_MEM, src->space);
	if (src_fd < 0)
		return RNIC_FAULT_SRC;
	if (dst_fd < 0)
		return copy_in(src_fd, src->va, d, len);
	return copy_through(dst_fd, dst->va, src_fd, src->va, len);
}

static void host_yield(void *host)
{
	(void)host;
	sched_yield();
}

const struct rnic_host_ops sfnic_host_ops = {
	.now = host_now,
	.lock_init = host_lock_init,
	.trylock = host_trylock,
	.lock = host_lock,
	.unlock = host_unlock,
	.copy = sfnic_copy,
	.event = host_event,
	.event_soon = host_event_soon,
	.timer = host_timer,
	.yield = host_yield,
	.reach = host_reach,
};
