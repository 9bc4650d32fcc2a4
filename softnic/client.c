/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process's side of the software RNIC.  Runs inside other people's programs:
 * no stdio, no malloc, no cancellation points, errno untouched unless said.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include "softnic/build_id.h"
#include "softnic/client.h"
#include "softnic/convert.h"
#include "softnic/files.h"
#include "softnic/host.h"
#include "softnic/options.h"
#include "softnic/raw.h"
#include "softnic/wire.h"

#define POSITION_MAGIC 0x5346ull /* "SF" */
#define UVERBS_MAJOR 231
#define UVERBS_MINOR 192
#define MISC_MAJOR 10
#define CM_MINOR 122

/* A pipe end that this process holds for a context or a channel. */
struct pipe_end {
	uint32_t id; /* whose; 0: free */
	int read_fd; /* -1: not opened by this process */
	int write_fd;
	ino_t ino;
};

#define MAX_PIPES 512
/* In an id: a pipe beside the one that the daemon writes to. */
#define ANOTHER (1u << 31)
#define MAX_MEM_FDS 256

struct fd_cache {
	uint32_t id;
	int fd;
};

static struct {
	pthread_mutex_t lock; /* connection, tables below */
	pthread_mutex_t call; /* one call at a time */
	pthread_mutex_t drop; /* one destroyed object at a time */
	sigset_t drop_mask;   /* of who holds it */
	int ready;	      /* connected and mapped */
	int maps_shown;	      /* the daemon has our maps */
	int dead;	      /* the daemon is gone */
	int arena_fd;
	int sock;
	int watch;
	int mem_fd;
	void *base;
	uint64_t size;
	ino_t ino;
	dev_t dev;
	struct rnic rnic;
	struct sfnic_host host;
	int life[SFNIC_MAX_CTX]; /* fd + 1 of a context's life line */
	struct pipe_end channel[MAX_PIPES];
	struct pipe_end async[MAX_PIPES];
	struct fd_cache mem[MAX_MEM_FDS];
	struct fd_cache maps[MAX_MEM_FDS];
	/* From the environment */
	char dir[256];
	char options[SFNIC_OPTIONS_LINE];
	char daemon[4096];
} me = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.call = PTHREAD_MUTEX_INITIALIZER,
	.drop = PTHREAD_MUTEX_INITIALIZER,
	.arena_fd = -1,
	.sock = -1,
	.watch = -1,
	.mem_fd = -1,
	.host.kick_fd = -1,
};

uint32_t sfnic_fd_ctx[SFNIC_FD_TABLE];

static void fd_note(int fd, uint32_t what)
{
	if (fd >= 0 && fd < SFNIC_FD_TABLE)
		__atomic_store_n(&sfnic_fd_ctx[fd], what, __ATOMIC_RELEASE);
}

/* Out of the program's way, and kept from closefrom(3) and its like. */
static int keep(int fd)
{
	fd = raw_move_high(fd);
	fd_note(fd, SFNIC_FD_INTERNAL);
	return fd;
}

static void let_go(int fd)
{
	fd_note(fd, 0);
	raw_close(fd);
}

/* ---- calls ---------------------------------------------------------- */

static int call_on(int sock, struct sfnic_req *req, int send_fd,
		   struct sfnic_rsp *rsp, int *recv_fd)
{
	sigset_t all, old;
	int err;

	/* A handler that calls verbs itself would wait for this lock. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&me.call);
	err = wire_send(sock, req, sizeof(*req), send_fd);
	if (!err)
		err = wire_recv(sock, rsp, sizeof(*rsp), recv_fd);
	pthread_mutex_unlock(&me.call);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err ? EIO : rsp->err;
}

static void complain(const char *what)
{
	raw_write(2, "sfnic: ", 7);
	raw_write(2, what, strlen(what));
	raw_write(2, "\n", 1);
}

/*
 * A program gets ENOMEM and seldom says why: one line for each reason, once.
 * Number 0 of every table but the queue pairs' is not used.
 */
static void explain_enomem(uint32_t op)
{
	static const struct {
		uint32_t op;
		uint32_t max;
		const char *text;
	} limits[] = {
#define USED_UP(what)                                                        \
	"all " what " of this fabric are in use: destroy some, or run with " \
	"`sfnic run --instance NAME` on a second fabric"
		{SFNIC_CREATE_QP, RNIC_MAX_QP, USED_UP("queue pairs")},
		{SFNIC_CREATE_AH, RNIC_MAX_AH - 1, USED_UP("address handles")},
		{SFNIC_CREATE_SRQ, RNIC_MAX_SRQ - 1,
		 USED_UP("shared receive queues")},
		{SFNIC_CREATE_CQ, RNIC_MAX_CQ - 1,
		 USED_UP("completion queues")},
		{SFNIC_REG_MR, RNIC_MAX_MR - 1, USED_UP("memory regions")},
		{SFNIC_ALLOC_MW, RNIC_MAX_MW - 1, USED_UP("memory windows")},
		{SFNIC_ALLOC_DM, RNIC_MAX_DM - 1, USED_UP("device memories")},
		{SFNIC_ALLOC_PD, RNIC_MAX_PD - 1,
		 USED_UP("protection domains")},
		{SFNIC_OPEN_XRCD, RNIC_MAX_XRCD - 1, USED_UP("XRC domains")},
	};
	static uint8_t said[sizeof(limits) / sizeof(limits[0]) + 1];
	struct rnic_objects n;
	uint32_t i;

	rnic_count_objects(&me.rnic, ~0u, &n);
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const uint32_t used[] = {n.qps, n.ahs, n.srqs, n.cqs,
					 n.mrs, n.mws, n.dms,  n.pds,
					 n.xrcds};

		if (limits[i].op != op)
			continue;
		if (used[i] < limits[i].max)
			i = sizeof(said) - 1;
		if (said[i]++)
			return;
		complain(i == sizeof(said) - 1 ?
				 "the arena is full: run with a larger one, "
				 "`sfnic run --arena SIZE`" :
				 limits[i].text);
		return;
	}
}

/*
 * Busy here means that a lock is held for longer than anyone should: by a
 * process that gets no CPU, or is stopped.  The daemon waits for a moment each
 * time, the caller for seconds.
 */
#define BUSY_TRIES 100

static bool waits(uint32_t op)
{
	return op == SFNIC_DEREG_MR || op == SFNIC_REREG_MR ||
	       op == SFNIC_DEALLOC_MW || op == SFNIC_DESTROY_QP ||
	       op == SFNIC_MODIFY_QP || op == SFNIC_RESIZE_CQ ||
	       op == SFNIC_MODIFY_SRQ || op == SFNIC_DESTROY_SRQ;
}

int sfnic_call(struct sfnic_req *req, int send_fd, struct sfnic_rsp *rsp,
	       int *recv_fd)
{
	int err, tries = BUSY_TRIES;

	if (recv_fd)
		*recv_fd = -1;
	memset(rsp, 0, sizeof(*rsp));
	if (!sfnic_rnic())
		return errno;
	if (__atomic_load_n(&me.dead, __ATOMIC_ACQUIRE))
		return EIO;
	do {
		err = call_on(me.sock, req, send_fd, rsp, recv_fd);
	} while (err == EBUSY && waits(req->op) && --tries);
	if (err == ENOMEM)
		explain_enomem(req->op);
	return err;
}

/* ---- descriptors of others ------------------------------------------ */

static struct pipe_end *pipe_find(struct pipe_end *table, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < MAX_PIPES; i++)
		if (table[i].id == id)
			return &table[i];
	return NULL;
}

static int ask_fd(uint32_t kind, uint32_t id)
{
	struct sfnic_req req = {.op = SFNIC_GET_FD};
	struct sfnic_rsp rsp;
	int fd;

	req.fd.kind = kind;
	req.fd.id = id;
	if (sfnic_call(&req, -1, &rsp, &fd) || fd < 0)
		return -1;
	return keep(fd);
}

/* A peer's pipe takes the place of the one that was used longest ago. */
static int pipe_fd(struct pipe_end *table, uint32_t kind, uint32_t id)
{
	static uint32_t victim;
	struct pipe_end *p = pipe_find(table, id);
	uint32_t i;
	int fd;

	if (p)
		return p->write_fd;
	fd = ask_fd(kind, id);
	if (fd < 0)
		return -1;
	pthread_mutex_lock(&me.lock);
	p = pipe_find(table, 0);
	for (i = 0; !p && i < MAX_PIPES; i++) {
		struct pipe_end *v = &table[victim++ % MAX_PIPES];

		if (v->read_fd < 0) {
			let_go(v->write_fd);
			p = v;
		}
	}
	if (p)
		*p = (struct pipe_end){id, -1, fd, 0};
	pthread_mutex_unlock(&me.lock);
	return fd;
}

static int space_fd(struct fd_cache *table, uint32_t kind, uint32_t space)
{
	struct fd_cache *c = &table[space % MAX_MEM_FDS];
	int fd;

	if (__atomic_load_n(&c->id, __ATOMIC_ACQUIRE) == space)
		return c->fd;
	fd = ask_fd(kind, space);
	if (fd < 0)
		return -1;
	pthread_mutex_lock(&me.lock);
	/*
	 * The old one stays open: another thread may be using it.  Few spaces
	 * share an index, and each is closed with the process.
	 */
	c->fd = fd;
	__atomic_store_n(&c->id, space, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&me.lock);
	return fd;
}

/*
 * What an asynchronous pipe goes by here: the number of a context comes back
 * for another one, whose pipe is another one.
 */
static uint32_t async_id(uint32_t ctx)
{
	return __atomic_load_n(&me.host.shared->ctx_id[ctx % SFNIC_MAX_CTX],
			       __ATOMIC_ACQUIRE);
}

static int client_get_fd(uint32_t kind, uint32_t id)
{
	switch (kind) {
	case SFNIC_FD_CHANNEL:
		return pipe_fd(me.channel, kind, id);
	case SFNIC_FD_ASYNC:
		return pipe_fd(me.async, kind, async_id(id));
	case SFNIC_FD_MEM:
		return id == me.host.space ? me.mem_fd :
					     space_fd(me.mem, kind, id);
	case SFNIC_FD_FILE:
		return ask_fd(kind, id);
	case SFNIC_FD_MAPS:
		return space_fd(me.maps, kind, id);
	}
	return -1;
}

static void client_event_later(const struct rnic_event *event)
{
	struct sfnic_req req = {.op = SFNIC_EVENT, .event = *event};
	struct sfnic_rsp rsp;

	sfnic_call(&req, -1, &rsp, NULL);
}

/* ---- connection ----------------------------------------------------- */

static int hello(int sock, struct sfnic_rsp *rsp, int *arena)
{
	struct sfnic_req req = {.op = SFNIC_HELLO};

	if (me.mem_fd < 0) {
		me.mem_fd = raw_open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		if (me.mem_fd >= 0)
			me.mem_fd = keep(me.mem_fd);
	}
	req.hello.version = SFNIC_PROTO_VERSION;
	req.hello.pid = getpid();
	req.hello.build = SFNIC_BUILD_ID;
	return call_on(sock, &req, me.mem_fd, rsp, arena);
}

/* An eventfd; the daemon is asked before anyone can need it. */
static int get_kick(int sock)
{
	struct sfnic_req req = {.op = SFNIC_GET_FD, .fd.kind = SFNIC_FD_KICK};
	struct sfnic_rsp rsp;
	int fd, err;

	if (me.host.kick_fd >= 0) /* inherited */
		return 0;
	err = call_on(sock, &req, -1, &rsp, &fd);
	if (err)
		return err;
	if (fd < 0)
		return EMFILE;
	me.host.kick_fd = keep(fd);
	return 0;
}

/*
 * Maps the arena, or checks that the inherited one is still the same.  @fd is
 * kept if it is needed.
 */
static int map_arena(int fd, uint64_t size, bool *kept)
{
	struct stat st;
	void *base;

	*kept = false;
	if (raw_fstat(fd, &st))
		return EIO;
	if (me.base)
		return st.st_ino == me.ino && st.st_dev == me.dev ? 0 : ENODEV;
	base = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return ENOMEM;
	if (mprotect(base, SFNIC_ARENA_FIRST, PROT_READ | PROT_WRITE)) {
		munmap(base, size);
		return ENOMEM;
	}
	madvise(base, size, MADV_DONTDUMP);
	me.base = base;
	me.size = size;
	me.ino = st.st_ino;
	me.dev = st.st_dev;
	me.arena_fd = keep(fd);
	*kept = true;
	return 0;
}

static int attach(int sock)
{
	struct sfnic_rsp rsp;
	int arena, err = hello(sock, &rsp, &arena);
	bool kept;

	if (err)
		return err;
	if (arena < 0)
		return EMFILE; /* it was sent, there was no room for it */
	err = map_arena(arena, rsp.arena.size, &kept);
	if (!kept)
		raw_close(arena);
	if (!err)
		err = get_kick(sock);
	if (err)
		return err;
	me.host.space = rsp.id;
	me.host.shared =
		(struct sfnic_shared *)((char *)me.base + RNIC_ARENA_DYNAMIC);
	me.host.size = me.size;
	me.host.lock_wait_ms = 500;
	me.host.get_fd = client_get_fd;
	me.host.event_later = client_event_later;
	return rnic_attach(&me.rnic, me.base, me.size, &sfnic_host_ops,
			   &me.host);
}

static void keep_variable(const char *name, char *value, size_t len)
{
	const char *now = getenv(name);

	if (now && strlen(now) < len)
		strcpy(value, now);
}

/* Programs may change their environment: asked for early, and once. */
const char *sfnic_dir(void)
{
	if (!me.dir[0]) {
		keep_variable("SFNIC_DIR", me.dir, sizeof(me.dir));
		keep_variable("SFNIC_OPTIONS", me.options, sizeof(me.options));
		keep_variable("SFNIC_DAEMON", me.daemon, sizeof(me.daemon));
	}
	return me.dir;
}

static int connect_daemon(void)
{
	int err, sock = wire_connect(sfnic_dir());

	if (sock < 0 && sock != -EMFILE)
		sock = sfnic_daemon_restart(me.dir, me.options, me.daemon);
	if (sock < 0 && sock != -EMFILE) {
		complain(
			"the software RNIC's daemon does not answer; start the "
			"program with `sfnic run`");
		return ENODEV;
	}
	err = sock < 0 ? -sock : attach(sock);
	if (err == EMFILE)
		complain("no descriptors left: raise the limit (ulimit -n)");
	if (err == ENOMEM)
		complain("no address space for the arena: raise the limit "
			 "(ulimit -v) or use `sfnic run --arena 1G`");
	if (err == EIO)
		complain("the daemon has hung up: it was ended, or has no "
			 "descriptors left (ulimit -n where it was started)");
	if (err == EPROTO)
		complain("the daemon is of another build: `sfnic down`, then "
			 "start the program again");
	if (err == EUSERS)
		complain("too many processes on this fabric: use `sfnic run "
			 "--instance NAME` for a second one");
	if (err) {
		if (sock >= 0)
			raw_close(sock);
		return err;
	}
	me.sock = keep(sock);
	__atomic_store_n(&me.dead, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&me.ready, 1, __ATOMIC_RELEASE);
	return 0;
}

static void child_after_fork(void);
static void before_fork(void);
static void parent_after_fork(void);

struct rnic *sfnic_rnic(void)
{
	static int forks_watched;
	int err = 0;

	if (__builtin_expect(__atomic_load_n(&me.ready, __ATOMIC_ACQUIRE), 1))
		return &me.rnic;
	pthread_mutex_lock(&me.lock);
	if (!me.ready) {
		err = connect_daemon();
		if (!err && !forks_watched) {
			forks_watched = 1;
			pthread_atfork(before_fork, parent_after_fork,
				       child_after_fork);
		}
	}
	pthread_mutex_unlock(&me.lock);
	errno = err;
	return err ? NULL : &me.rnic;
}

/* ---- the helper thread ---------------------------------------------- */

static void raise_fatal(void)
{
	struct rnic_event event = {.type = RNIC_EVENT_DEVICE_FATAL};
	uint32_t i;

	for (i = 0; i < MAX_PIPES; i++)
		if (me.async[i].id && me.async[i].read_fd >= 0)
			sfnic_event_write(me.async[i].write_fd, &event);
}

/* Nobody runs timers now: what is in flight ends here. */
static void fail_contexts(void)
{
	uint32_t i;

	for (i = 0; i < SFNIC_MAX_CTX; i++)
		if (me.life[i])
			rnic_ctx_fail(&me.rnic, i);
}

/*
 * Whoever waits for a completion event finds the end of the pipe, when the last
 * process has done this.  The descriptors may be in use: they stay open.
 */
static void end_channels(void)
{
	int other = (int)RAW(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint32_t i;

	if (other < 0)
		return;
	pthread_mutex_lock(&me.lock);
	for (i = 0; i < MAX_PIPES; i++)
		if (me.channel[i].id)
			RAW(SYS_dup3, other, me.channel[i].write_fd, O_CLOEXEC);
	pthread_mutex_unlock(&me.lock);
	raw_close(other);
}

static void device_lost(void)
{
	struct timespec ts = {0, 10000000};
	int i;

	fail_contexts();
	raise_fatal();
	/* Again, for what somebody held a lock of. */
	for (i = 0; i < 5; i++) {
		RAW(SYS_nanosleep, &ts, NULL);
		fail_contexts();
	}
	end_channels();
}

/* Sleeps until the daemon says something; the end means that it died. */
static void *helper(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char byte;
	long n;

	do {
		n = raw_read(fd, &byte, 1);
	} while (n > 0 || n == -EINTR);
	if (fd == me.watch) {
		__atomic_store_n(&me.dead, 1, __ATOMIC_RELEASE);
		device_lost();
	}
	return NULL;
}

static void start_helper(void)
{
	struct sfnic_req req = {.op = SFNIC_WATCH, .id = me.host.space};
	struct sfnic_rsp rsp;
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int fd = wire_connect(sfnic_dir());

	if (fd < 0 || call_on(fd, &req, -1, &rsp, NULL)) {
		if (fd >= 0)
			raw_close(fd);
		return;
	}
	me.watch = keep(fd);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!pthread_create(&thread, &attr, helper,
			    (void *)(intptr_t)me.watch)) {
		convert_helper_threads(1);
	} else { /* for the next one who opens a device to try */
		let_go(me.watch);
		me.watch = -1;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

/* ---- fork ----------------------------------------------------------- */

/* In the order in which registering takes them. */
static void before_fork(void)
{
	convert_before_fork();
	pthread_mutex_lock(&me.lock);
	pthread_mutex_lock(&me.call);
}

static void parent_after_fork(void)
{
	pthread_mutex_unlock(&me.call);
	pthread_mutex_unlock(&me.lock);
	convert_parent_after_fork();
}

/*
 * The child is another process: its own connection, its own address space.
 * Contexts and life lines are inherited, as command fds are.
 */
static void child_after_fork(void)
{
	uint32_t i;

	pthread_mutex_init(&me.call, NULL);
	pthread_mutex_init(&me.lock, NULL);
	pthread_mutex_init(&me.drop, NULL);
	convert_child_after_fork();
	if (me.sock >= 0)
		let_go(me.sock);
	if (me.watch >= 0)
		let_go(me.watch);
	if (me.mem_fd >= 0)
		let_go(me.mem_fd);
	me.sock = me.watch = me.mem_fd = -1;
	me.maps_shown = 0;
	for (i = 0; i < MAX_MEM_FDS; i++) {
		if (me.mem[i].id == me.host.space)
			me.mem[i].id = 0;
		if (me.maps[i].id == me.host.space)
			me.maps[i].id = 0;
	}
	me.ready = 0;
}

/* ---- command fds ---------------------------------------------------- */

/* A description of its own for what @fd stands for. */
static int reopen(int fd, int flags)
{
	char path[32] = "/proc/self/fd/", *p = path + 14;
	unsigned int n = (unsigned int)fd, digits[10], count = 0;

	for (; count == 0 || n; n /= 10)
		digits[count++] = n % 10;
	while (count)
		*p++ = (char)('0' + digits[--count]);
	return (int)raw_open(path, flags);
}

int sfnic_inode_fd(int fd)
{
	if (fd < 0)
		return -EBADF;
	fd = reopen(fd, O_PATH | O_CLOEXEC);
	if (fd == -ENOENT)
		return -EBADF;
	return fd < 0 ? fd : keep(fd);
}

void sfnic_close_fd(int fd)
{
	let_go(fd);
}

int sfnic_open(uint32_t unit, int flags)
{
	struct sfnic_req req = {.op = SFNIC_OPEN};
	struct sfnic_rsp rsp;
	int life[2], fd, err;
	uint32_t dev;

	if (!sfnic_rnic())
		return -1;
	dev = unit - me.host.shared->uverbs_base;
	if (dev >= rnic_devices(&me.rnic)) {
		errno = ENXIO;
		return -1;
	}
	err = (int)-RAW(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
			life);
	if (err)
		goto err;
	/* The program gets the number that it expects: the lowest. */
	life[0] = keep(life[0]);
	life[1] = keep(life[1]);
	req.open.dev = dev;
	err = sfnic_call(&req, life[1], &rsp, NULL);
	let_go(life[1]);
	if (err == EMFILE)
		complain("the daemon has no descriptors left: raise ulimit -n, "
			 "`sfnic down`, then start the program again");
	if (err)
		goto err_life;
	fd = reopen(me.arena_fd, O_RDWR | (flags & O_CLOEXEC));
	if (fd < 0) {
		err = -fd;
		goto err_life;
	}
	raw_lseek(fd,
		  (off_t)(POSITION_MAGIC << 40 | (uint64_t)dev << 16 |
			  SFNIC_INDEX(rsp.id)),
		  SEEK_SET);
	me.life[SFNIC_INDEX(rsp.id) % SFNIC_MAX_CTX] = life[0] + 1;
	fd_note(fd, SFNIC_INDEX(rsp.id) | dev << 16);
	pthread_mutex_lock(&me.lock);
	if (me.watch < 0)
		start_helper();
	pthread_mutex_unlock(&me.lock);
	return fd;

err_life:
	let_go(life[0]);
err:
	errno = err;
	return -1;
}

/* What the file position says; 0: not a command fd. */
static uint32_t context_by_position(int fd)
{
	struct stat st;
	long pos = raw_lseek(fd, 0, SEEK_CUR);

	if (pos < 0 || (uint64_t)pos >> 40 != POSITION_MAGIC)
		return 0;
	/* It may have come from another process, before we are connected. */
	if (!me.base)
		sfnic_rnic();
	if (!me.base || raw_fstat(fd, &st) || st.st_ino != me.ino ||
	    st.st_dev != me.dev)
		return 0;
	return (uint32_t)pos;
}

uint32_t sfnic_context(int fd, uint32_t *dev)
{
	uint32_t what = 0;

	if (fd < 0)
		return 0;
	if (fd < SFNIC_FD_TABLE)
		what = __atomic_load_n(&sfnic_fd_ctx[fd], __ATOMIC_ACQUIRE);
	if (what & (SFNIC_FD_INTERNAL | SFNIC_FD_CM))
		return 0;
	if (!what || what & SFNIC_FD_EVENTS) {
		what = context_by_position(fd);
		if (what)
			fd_note(fd, what);
	}
	*dev = what >> 16;
	return what & 0xffff;
}

/* Does any other descriptor of this process stand for the context? */
static bool context_has_fd(uint32_t what, int except)
{
	char buf[2048];
	long n, at;
	int dir = (int)raw_open("/proc/self/fd",
				O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = false;

	if (dir < 0)
		return false;
	while (!found && (n = RAW(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n && !found;) {
			struct {
				uint64_t ino;
				int64_t off;
				unsigned short reclen;
				unsigned char type;
				char name[];
			} *d = (void *)(buf + at);
			int fd = d->name[0] == '.' ? -1 : atoi(d->name);

			at += d->reclen;
			if (fd >= 0 && fd != except && fd != dir)
				found = context_by_position(fd) == what;
		}
	}
	raw_close(dir);
	return found;
}

static void pipe_closed(struct pipe_end *table, int fd)
{
	uint32_t i;

	for (i = 0; i < MAX_PIPES; i++) {
		if (!table[i].id || table[i].read_fd != fd)
			continue;
		let_go(table[i].write_fd);
		table[i].id = 0;
	}
}

void sfnic_fd_closed(int fd)
{
	uint32_t dev, ctx, what;
	int life;

	if (fd >= 0 && fd < SFNIC_FD_TABLE &&
	    sfnic_fd_ctx[fd] & SFNIC_FD_EVENTS) {
		fd_note(fd, 0);
		pthread_mutex_lock(&me.lock);
		pipe_closed(me.channel, fd);
		pipe_closed(me.async, fd);
		pthread_mutex_unlock(&me.lock);
		return;
	}
	/* An event channel of rdma_cm: the daemon sees its end. */
	ctx = sfnic_context(fd, &dev);
	fd_note(fd, 0);
	if (!ctx)
		return;
	what = ctx | dev << 16;
	if (context_has_fd(what, fd))
		return;
	life = me.life[ctx % SFNIC_MAX_CTX];
	me.life[ctx % SFNIC_MAX_CTX] = 0;
	if (life)
		let_go(life - 1);
}

void sfnic_fake_stat(uint32_t unit, struct stat *st)
{
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(UVERBS_MAJOR, UVERBS_MINOR + unit);
	st->st_size = 0;
	st->st_blocks = 0;
}

void sfnic_fake_fstat(uint32_t dev, struct stat *st)
{
	sfnic_fake_stat(me.host.shared->uverbs_base + dev, st);
}

/* ---- event channels of rdma_cm --------------------------------------- */

/*
 * What a channel is, its own name tells, wherever it has come to: the number,
 * and whose.  Abstract names belong to a network namespace, as the daemon does.
 */
struct cm_name {
	sa_family_t family;
	char zero;
	char word[9];
	uint32_t channel;
	uint64_t ino, dev; /* of the arena */
} __attribute__((packed));

static struct cm_name cm_name(uint32_t channel)
{
	return (struct cm_name){
		.family = AF_UNIX,
		.word = {'s', 'f', 'n', 'i', 'c', '-', 'c', 'm', '/'},
		.channel = channel,
		.ino = me.ino,
		.dev = me.dev,
	};
}

int sfnic_cm_open(int flags)
{
	struct sfnic_req req = {.op = SFNIC_CM_OPEN};
	struct cm_name name;
	struct sfnic_rsp rsp;
	int fd[2], err;

	if (!sfnic_rnic())
		return -1;
	err = (int)-RAW(SYS_socketpair, AF_UNIX,
			SOCK_SEQPACKET |
				(flags & O_CLOEXEC ? SOCK_CLOEXEC : 0) |
				(flags & O_NONBLOCK ? SOCK_NONBLOCK : 0),
			0, fd);
	if (err) {
		errno = err;
		return -1;
	}
	fd[1] = keep(fd[1]);
	err = sfnic_call(&req, fd[1], &rsp, NULL);
	let_go(fd[1]);
	name = cm_name(rsp.id);
	if (!err)
		err = (int)-RAW(SYS_bind, fd[0], &name, sizeof(name));
	/* Beyond the table writes would not find it. */
	if (!err && fd[0] >= SFNIC_FD_TABLE)
		err = EMFILE;
	if (err) {
		raw_close(fd[0]);
		errno = err;
		return -1;
	}
	fd_note(fd[0], SFNIC_FD_CM);
	return fd[0];
}

uint32_t sfnic_cm_channel(int fd)
{
	struct cm_name name = {0}, ours;
	socklen_t len = sizeof(name);

	if (RAW(SYS_getsockname, fd, &name, &len) || len != sizeof(name))
		return 0;
	/* It may have come from another process, before we are connected. */
	if (!me.base)
		sfnic_rnic();
	ours = cm_name(name.channel);
	return memcmp(&name, &ours, sizeof(name)) ? 0 : name.channel;
}

void sfnic_fake_cm_stat(struct stat *st)
{
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(MISC_MAJOR, CM_MINOR);
	st->st_size = 0;
	st->st_blocks = 0;
}

/* ---- event pipes ---------------------------------------------------- */

static int open_pipe(uint32_t ctx, uint32_t op, struct pipe_end *table,
		     int *read_fd, uint32_t *id)
{
	struct sfnic_req req = {.op = op, .ctx = ctx};
	struct sfnic_rsp rsp;
	struct pipe_end *p;
	struct stat st;
	int fd[2], err, both;

	err = (int)-RAW(SYS_pipe2, fd, O_CLOEXEC);
	if (err)
		return err;
	/*
	 * Who writes into it can read it, too: else a peer that dies would
	 * leave a broken pipe behind, and SIGPIPE to whoever tells it of a
	 * completion.
	 */
	both = reopen(fd[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
	raw_close(fd[1]);
	if (both < 0) {
		raw_close(fd[0]);
		return -both;
	}
	fd[1] = keep(both);
	err = sfnic_call(&req, fd[1], &rsp, NULL);
	if (err)
		goto err;
	*id = op == SFNIC_CREATE_CHANNEL ? rsp.id : async_id(ctx);
	raw_fstat(fd[0], &st);
	pthread_mutex_lock(&me.lock);
	/* A context that was imported here, too. */
	p = pipe_find(table, *id);
	if (p && p->read_fd >= 0)
		*id |= ANOTHER;
	if (!p || *id & ANOTHER)
		p = pipe_find(table, 0);
	if (p)
		*p = (struct pipe_end){*id, fd[0], fd[1], st.st_ino};
	pthread_mutex_unlock(&me.lock);
	err = EMFILE;
	if (!p)
		goto err;
	fd_note(fd[0], SFNIC_FD_EVENTS);
	*read_fd = fd[0];
	return 0;

err:
	raw_close(fd[0]);
	let_go(fd[1]);
	return err;
}

int sfnic_channel(uint32_t ctx, int *fd, uint32_t *channel)
{
	return open_pipe(ctx, SFNIC_CREATE_CHANNEL, me.channel, fd, channel);
}

int sfnic_async_fd(uint32_t ctx, int *fd)
{
	uint32_t id;

	return open_pipe(ctx, SFNIC_SET_ASYNC, me.async, fd, &id);
}

/* The one that @fd is a read end of, also a dup of it. */
static struct pipe_end *pipe_by_ino(struct pipe_end *table, int fd)
{
	struct stat st;
	uint32_t i;

	if (raw_fstat(fd, &st))
		return NULL;
	for (i = 0; i < MAX_PIPES; i++)
		if (table[i].id && table[i].read_fd >= 0 &&
		    table[i].ino == st.st_ino)
			return &table[i];
	return NULL;
}

uint32_t sfnic_fd_channel(int fd)
{
	struct pipe_end *p = pipe_by_ino(me.channel, fd);

	return p ? p->id : 0;
}

int sfnic_channel_fd(uint32_t channel)
{
	struct pipe_end *p = channel ? pipe_find(me.channel, channel) : NULL;

	return p ? p->read_fd : -1;
}

int sfnic_async_read_fd(uint32_t ctx)
{
	struct pipe_end *p = ctx ? pipe_find(me.async, async_id(ctx)) : NULL;

	return p ? p->read_fd : -1;
}

/* Records for which somebody else has taken the room: the daemon has some. */
static void hand_over(int fd, const char *buf, uint32_t len, uint32_t size)
{
	struct pipe_end *async = pipe_by_ino(me.async, fd);
	struct rnic_event event = {
		.type = RNIC_EVENT_COMPLETION,
		.channel = sfnic_fd_channel(fd),
		/* Else the channel's. */
		.ctx = async ? SFNIC_INDEX(async->id) : 0,
	};

	for (; len >= size; buf += size, len -= size) {
		memcpy(&event.element, buf, sizeof(event.element));
		if (async)
			memcpy(&event.type, buf + sizeof(event.element),
			       sizeof(event.type));
		client_event_later(&event);
	}
}

/*
 * Reads what is in the pipe and writes it back, except for @record: each as
 * soon as it was read, so that seldom a writer takes its room.  @fd is ours,
 * opened for both: a program that has no descriptor left does not wait for ever
 * for events of a CQ that is gone.
 */
static uint32_t turn_pipe(int fd, uint64_t record, uint32_t size)
{
	static char keep[65536]; /* sfnic_lock_events(); stacks are small */
	char buf[16];
	uint32_t dropped = 0, kept = 0, at = 0;
	int left = 0;

	if (size > sizeof(buf) || RAW(SYS_ioctl, fd, FIONREAD, &left))
		return 0;
	for (; left >= (int)size && kept + size <= sizeof(keep);
	     left -= (int)size) {
		if (raw_read(fd, buf, size) != (long)size)
			break;
		if (!memcmp(buf, &record, sizeof(record))) {
			dropped++;
			continue;
		}
		memcpy(keep + kept, buf, size);
		kept += size;
		if (raw_write(fd, keep + at, size) == (long)size)
			at += size;
	}
	while (at < kept && raw_write(fd, keep + at, size) == (long)size)
		at += size;
	hand_over(fd, keep + at, kept - at, size);
	return dropped;
}

void sfnic_lock_events(void)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&me.drop);
	me.drop_mask = old;
}

void sfnic_unlock_events(void)
{
	sigset_t old = me.drop_mask;

	pthread_mutex_unlock(&me.drop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

uint32_t sfnic_drop_events(int fd, uint64_t record, uint32_t size)
{
	struct pipe_end *p = pipe_by_ino(me.channel, fd);

	if (!p)
		p = pipe_by_ino(me.async, fd);
	return p ? turn_pipe(p->write_fd, record, size) : 0;
}

/* ---- memory regions ------------------------------------------------- */

/*
 * Whoever writes to memory that is paged on demand asks first whether its owner
 * could: others see that in this file only.
 */
static int show_maps(void)
{
	struct sfnic_req req = {.op = SFNIC_SET_MAPS};
	struct sfnic_rsp rsp;
	int err, fd;

	if (__atomic_load_n(&me.maps_shown, __ATOMIC_ACQUIRE))
		return 0;
	fd = (int)raw_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -fd;
	err = sfnic_call(&req, fd, &rsp, NULL);
	raw_close(fd);
	if (!err)
		__atomic_store_n(&me.maps_shown, 1, __ATOMIC_RELEASE);
	return err;
}

/* Makes ready what a region names, if it names memory of this process. */
static int acquire(struct rnic_mr_attr *attr, struct convert_hold *held)
{
	bool own = !attr->dm && attr->space != RNIC_SPACE_NULL;

	if (own && !(attr->access & RNIC_ON_DEMAND))
		return convert_acquire(attr, held);
	convert_none(attr, held);
	return own ? show_maps() : 0;
}

int sfnic_reg_mr(uint32_t ctx, struct rnic_mr_attr *attr, uint32_t *key)
{
	struct sfnic_req req = {.op = SFNIC_REG_MR, .ctx = ctx};
	struct convert_hold held;
	struct sfnic_rsp rsp;
	int err;

	if (!sfnic_rnic())
		return errno;
	err = acquire(attr, &held);
	if (err)
		return err;
	req.mr = *attr;
	err = sfnic_call(&req, -1, &rsp, NULL);
	if (err) {
		convert_release(&held);
		return err;
	}
	*key = rsp.id;
	convert_note(rsp.id, &held);
	return 0;
}

int sfnic_reg_dmabuf(uint32_t ctx, int fd, struct rnic_mr_attr *attr,
		     uint32_t *key)
{
	struct sfnic_req req = {.op = SFNIC_REG_FILE_MR, .ctx = ctx};
	struct convert_hold held;
	struct sfnic_rsp rsp;
	uint64_t size;
	int err;

	if (!sfnic_rnic())
		return errno;
	err = files_check(fd, attr->access & RNIC_LOCAL_WRITE, &size);
	if (err)
		return err;
	if (attr->addr > size || attr->len > size - attr->addr)
		return EINVAL;
	convert_none(attr, &held);
	req.mr = *attr;
	err = sfnic_call(&req, fd, &rsp, NULL);
	*key = rsp.id;
	return err;
}

/* What stays is filled in: the whole region is made ready anew. */
static int merge(uint32_t ctx, uint32_t key, uint32_t mask,
		 struct rnic_mr_attr *attr)
{
	struct rnic_mr_attr now;
	int err = rnic_mr_query(&me.rnic, ctx, key, &now);

	if (err)
		return err;
	if (!(mask & RNIC_MR_ACCESS))
		attr->access = now.access;
	attr->dm = now.dm;
	attr->space = now.space;
	if (mask & RNIC_MR_TRANSLATION) {
		if (attr->access & RNIC_ZERO_BASED)
			attr->iova = 0;
		return 0;
	}
	attr->addr = now.addr;
	attr->len = now.len;
	attr->iova = now.iova;
	return 0;
}

int sfnic_rereg_mr(uint32_t ctx, uint32_t key, uint32_t mask,
		   struct rnic_mr_attr *attr)
{
	bool anew = mask & (RNIC_MR_TRANSLATION | RNIC_MR_ACCESS);
	struct sfnic_req req = {.op = SFNIC_REREG_MR, .ctx = ctx};
	struct convert_hold held;
	struct sfnic_rsp rsp;
	int err;

	if (!sfnic_rnic())
		return errno;
	err = merge(ctx, key, mask, attr);
	if (!err && anew)
		err = acquire(attr, &held);
	if (err)
		return err;
	req.rereg_mr.key = key;
	req.rereg_mr.mask = mask;
	req.rereg_mr.attr = *attr;
	err = sfnic_call(&req, -1, &rsp, NULL);
	if (!anew)
		return err;
	if (err) {
		convert_release(&held);
		return err;
	}
	convert_forget(key);
	convert_note(key, &held);
	return 0;
}

int sfnic_dereg_mr(uint32_t ctx, uint32_t key)
{
	struct sfnic_req req = {.op = SFNIC_DEREG_MR, .ctx = ctx, .id = key};
	struct sfnic_rsp rsp;
	struct rnic_mr_attr attr;
	bool file = sfnic_rnic() &&
		    !rnic_mr_query(&me.rnic, ctx, key, &attr) &&
		    sfnic_space_is_file(attr.space);
	int err = sfnic_call(&req, -1, &rsp, NULL);

	if (!err)
		convert_forget(key);
	if (!err && file)
		files_forget(attr.space);
	return err;
}

bool sfnic_copy_own(char *to, uint64_t va, uint64_t len)
{
	while (len) {
		struct iovec local = {to, len};
		struct iovec remote = {(void *)(uintptr_t)va, len};
		long n = RAW(SYS_process_vm_readv, getpid(), &local, 1, &remote,
			     1, 0);

		/* Slower, and there where the other is forbidden. */
		if (n < 0)
			n = raw_pread(me.mem_fd, to, len, (off_t)va);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		va += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return true;
}

void *sfnic_arena(int *fd)
{
	*fd = me.arena_fd;
	return me.base;
}
