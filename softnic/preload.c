/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of libc by which programs find and use RDMA devices, put before
 * libc's own by LD_PRELOAD.  They lead paths into the tree, open command fds
 * and answer ioctl(2) and write(2) on them; everything else goes on to libc.
 *
 * What runs for calls that are not about RDMA is safe in signal handlers, in
 * the constructors of other libraries and between vfork() and exec(): nothing
 * is allocated or locked, and errno stays.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "softnic/client.h"
#include "softnic/convert.h"
#include "softnic/paths.h"
#include "softnic/raw.h"
#include "softnic/refresh.h"
#include "softnic/ucma.h"
#include "softnic/uverbs.h"

/* _IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr) */
#define VERBS_IOCTL 0xc0181b01ul

#define TREE_MAJOR 231
#define UMAD_MINOR 0

#define EXPORT __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

_Static_assert(sizeof(struct stat) == sizeof(struct stat64) &&
		       sizeof(off_t) == 8,
	       "one body serves a call and its 64-bit twin");

/* ---- the functions behind ours -------------------------------------- */

/*
 * A wrapped function has an entry in a section of its own, by which the
 * constructor finds them all.
 */
struct next {
	const char *name;
	void *function;
};

extern struct next __start_sfnic_next[], __stop_sfnic_next[];

#define WRAP(ret, name, params)                                               \
	typedef ret name##_fn params;                                         \
	__attribute__((section("sfnic_next"),                                 \
		       used)) static struct next next_##name = {#name, NULL}; \
	EXPORT ret name params

#define NEXT(name) ((name##_fn *)next_function(&next_##name))

/* On x86-64, and everywhere else. */
static const char *const base_versions[] = {"GLIBC_2.2.5", "GLIBC_2.17"};

/* For a function that this libc does not have. */
static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

static void *resolve(struct next *next)
{
	void *f = dlsym(RTLD_NEXT, next->name);
	size_t i;

	/* Kept for old programs only, such as __xstat: has a version. */
	for (i = 0; !f && i < sizeof(base_versions) / sizeof(*base_versions);
	     i++)
		f = dlvsym(RTLD_NEXT, next->name, base_versions[i]);
	if (!f)
		f = (void *)missing;
	__atomic_store_n(&next->function, f, __ATOMIC_RELAXED);
	return f;
}

/* Empty only before our constructor ran, in one of another library. */
static inline void *next_function(struct next *next)
{
	void *f = __atomic_load_n(&next->function, __ATOMIC_RELAXED);

	return likely(f) ? f : resolve(next);
}

/* ---- are we wanted? ------------------------------------------------- */

enum {
	UNKNOWN,
	OFF,
	ON
};

static int own_pid;

static struct {
	int state;
	/*
	 * Of the process that the table of fds belongs to.  Lies in a page that
	 * a child by fork finds empty, but not one that shares our memory.
	 */
	int *pid;
	char dir[PLACE_PATH_MAX / 2];
} me = {.pid = &own_pid};

static void learn_pid(void)
{
	__atomic_store_n(me.pid, (int)RAW(SYS_getpid), __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
	void *page = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && !madvise(page, sizeof(int), MADV_WIPEONFORK))
		me.pid = page;
	learn_pid();
	pthread_atfork(NULL, NULL, learn_pid);
}

/* Idempotent: several threads may do it at once. */
static int learn(void)
{
	const char *dir = getenv("SFNIC_DIR");
	size_t len = dir ? strlen(dir) : 0;

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (!len || dir[0] != '/' || len >= sizeof(me.dir)) {
		__atomic_store_n(&me.state, OFF, __ATOMIC_RELEASE);
		return OFF;
	}
	memcpy(me.dir, dir, len);
	__atomic_store_n(&me.state, ON, __ATOMIC_RELEASE);
	return ON;
}

static inline bool wanted(void)
{
	int state = __atomic_load_n(&me.state, __ATOMIC_ACQUIRE);

	return (likely(state) ? state : learn()) == ON;
}

static void learn_cwd(void);

__attribute__((constructor)) static void start(void)
{
	struct next *next;

	for (next = __start_sfnic_next; next < __stop_sfnic_next; next++)
		resolve(next);
	if (!wanted())
		return;
	sfnic_dir();
	watch_forks();
	learn_cwd();
}

/* ---- paths ---------------------------------------------------------- */

/* Does this process stand in the tree?  Then short names lead there, too. */
static int cwd_in_tree;

static void learn_cwd(void)
{
	char cwd[PLACE_PATH_MAX];
	size_t len = strlen(me.dir);
	long n = RAW(SYS_readlinkat, AT_FDCWD, "/proc/self/cwd", cwd,
		     sizeof(cwd));

	cwd_in_tree =
		n > (long)len && !memcmp(cwd, me.dir, len) && cwd[len] == '/';
}

/*
 * The daemon leaves when nobody has used it for a while, and takes the tree
 * with it: who looks for devices again, starts it again.
 */
static void need_tree(void)
{
	char sys[PLACE_PATH_MAX];

	stpcpy(stpcpy(sys, me.dir), "/sys/class");
	if (RAW(SYS_faccessat, AT_FDCWD, sys, F_OK) == -ENOENT)
		sfnic_rnic();
}

/* Where @path leads; sets @at. */
static const char *lead(struct place *at, int dirfd, const char *path)
{
	int saved = errno;

	if (!wanted()) {
		at->kind = PLACE_ELSEWHERE;
		return path;
	}
	place_find(at, me.dir, dirfd, path);
	if (at->kind != PLACE_ELSEWHERE)
		need_tree();
	errno = saved;
	return at->path;
}

/* The same for a file that is going to be read. */
static const char *lead_open(struct place *at, int dirfd, const char *path)
{
	int saved = errno;

	lead(at, dirfd, path);
	if (at->kind == PLACE_ELSEWHERE) {
		if (unlikely(cwd_in_tree) && path && path[0] != '/' &&
		    dirfd == AT_FDCWD)
			refresh_relative(me.dir, path);
		errno = saved;
		return path;
	}
	refresh_counter(me.dir, at->path);
	errno = saved;
	return at->path;
}

/* Hides where the tree lies: what follows moves to the front. */
static void show(char *path)
{
	const char *shown = place_shown(me.dir, path);

	if (shown != path)
		memmove(path, shown, strlen(shown) + 1);
}

/* ---- the table of fds ----------------------------------------------- */

static inline uint32_t fd_what(int fd)
{
	return (unsigned int)fd < SFNIC_FD_TABLE ?
		       __atomic_load_n(&sfnic_fd_ctx[fd], __ATOMIC_RELAXED) :
		       0;
}

/*
 * Between vfork() and exec() a child closes and moves fds of its own, in memory
 * that is its parent's: then the table must stay.
 */
static bool table_is_ours(void)
{
	int pid = __atomic_load_n(me.pid, __ATOMIC_RELAXED);

	if (!pid) {
		learn_pid(); /* a child by clone(2) */
		return true;
	}
	return RAW(SYS_getpid) == pid;
}

/* @fd is going to be closed. */
static void fd_gone(int fd)
{
	int saved = errno;

	if (table_is_ours())
		sfnic_fd_closed(fd);
	errno = saved;
}

/* A descriptor that the program has not opened is not its to close. */
static inline bool is_internal(int fd)
{
	return unlikely(fd_what(fd) == SFNIC_FD_INTERNAL) && table_is_ours();
}

static inline void before_close(int fd)
{
	if (unlikely(fd_what(fd)))
		fd_gone(fd);
}

/* The first internal one of [first, last], or last + 1. */
static unsigned int fds_gone(unsigned int first, unsigned int last)
{
	for (; first <= last && first < SFNIC_FD_TABLE; first++) {
		if (is_internal(first))
			return first;
		before_close(first);
	}
	return last + 1;
}

/* @fd is new and is what @what says: 0 if nothing of ours. */
static inline int fd_is(int fd, uint32_t what)
{
	/* Old entries are of fds that were closed behind our back. */
	if (unlikely(fd_what(fd) != what) && fd >= 0 && fd < SFNIC_FD_TABLE &&
	    table_is_ours())
		__atomic_store_n(&sfnic_fd_ctx[fd], what, __ATOMIC_RELEASE);
	return fd;
}

/* The context of a command fd, or 0. */
static inline uint32_t command_fd(int fd, uint32_t *dev)
{
	uint32_t what = fd_what(fd);

	if (likely(!what) && likely(fd < SFNIC_FD_TABLE))
		return 0;
	if (unlikely(fd >= SFNIC_FD_TABLE))
		return sfnic_context(fd, dev);
	*dev = what >> 16 & 0x7fff;
	return what & (SFNIC_FD_EVENTS | SFNIC_FD_INTERNAL | SFNIC_FD_CM) ?
		       0 :
		       what & 0xffff;
}

/* ---- open ----------------------------------------------------------- */

/* A node of the host is a link there, ours a file that is empty. */
static bool is_hosts_node(const struct place *at)
{
	char c;

	return RAW(SYS_readlinkat, AT_FDCWD, at->path, &c, 1) > 0;
}

/* The fd of a device, or -2 if @at is a file like any other. */
static int open_node(const struct place *at, int flags)
{
	if (flags & O_PATH || at->kind == PLACE_TREE ||
	    at->kind == PLACE_ELSEWHERE || is_hosts_node(at))
		return -2;
	if (at->kind == PLACE_UVERBS)
		return sfnic_open(at->unit, flags);
	if (at->kind == PLACE_RDMA_CM)
		return sfnic_cm_open(flags);
	if (at->kind == PLACE_UMAD) {
		/* No management datagrams here. */
		errno = ENXIO;
		return -1;
	}
	return -2;
}

static inline bool has_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* @call opens @path. */
#define OPEN_BODY(dirfd, path, flags, call) \
	struct place at;                    \
	int fd;                             \
                                            \
	path = lead_open(&at, dirfd, path); \
	fd = open_node(&at, flags);         \
	return fd == -2 ? fd_is(call, 0) : fd

#define READ_MODE(flags, mode)               \
	if (has_mode(flags)) {               \
		va_list args;                \
                                             \
		va_start(args, flags);       \
		mode = va_arg(args, mode_t); \
		va_end(args);                \
	}

#define WRAP_OPEN(name)                                     \
	WRAP(int, name, (const char *path, int flags, ...)) \
	{                                                   \
		mode_t mode = 0;                            \
                                                            \
		READ_MODE(flags, mode)                      \
		OPEN_BODY(AT_FDCWD, path, flags,            \
			  NEXT(name)(path, flags, mode));   \
	}

#define WRAP_OPENAT(name)                                              \
	WRAP(int, name, (int dirfd, const char *path, int flags, ...)) \
	{                                                              \
		mode_t mode = 0;                                       \
                                                                       \
		READ_MODE(flags, mode)                                 \
		OPEN_BODY(dirfd, path, flags,                          \
			  NEXT(name)(dirfd, path, flags, mode));       \
	}

#define WRAP_OPEN_2(name)                                                  \
	int name(const char *path, int flags);                             \
	WRAP(int, name, (const char *path, int flags))                     \
	{                                                                  \
		OPEN_BODY(AT_FDCWD, path, flags, NEXT(name)(path, flags)); \
	}

#define WRAP_OPENAT_2(name)                                                    \
	int name(int dirfd, const char *path, int flags);                      \
	WRAP(int, name, (int dirfd, const char *path, int flags))              \
	{                                                                      \
		OPEN_BODY(dirfd, path, flags, NEXT(name)(dirfd, path, flags)); \
	}

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
WRAP_OPEN_2(__open_2)
WRAP_OPEN_2(__open64_2)
WRAP_OPENAT_2(__openat_2)
WRAP_OPENAT_2(__openat64_2)

#define WRAP_FOPEN(name)                                         \
	WRAP(FILE *, name, (const char *path, const char *mode)) \
	{                                                        \
		struct place at;                                 \
                                                                 \
		path = lead_open(&at, AT_FDCWD, path);           \
		return NEXT(name)(path, mode);                   \
	}

#define WRAP_FREOPEN(name)                                                   \
	WRAP(FILE *, name, (const char *path, const char *mode, FILE *file)) \
	{                                                                    \
		struct place at;                                             \
                                                                             \
		path = lead_open(&at, AT_FDCWD, path);                       \
		return NEXT(name)(path, mode, file);                         \
	}

WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)
WRAP_FREOPEN(freopen)
WRAP_FREOPEN(freopen64)

/* ---- stat ----------------------------------------------------------- */

/* A placeholder of the tree becomes the device that it stands for. */
static int node_stat(const struct place *at, int ret, struct stat *st)
{
	if (ret || !S_ISREG(st->st_mode))
		return ret;
	if (at->kind == PLACE_UVERBS || at->kind == PLACE_UMAD)
		sfnic_fake_stat(at->unit, st);
	if (at->kind == PLACE_UMAD)
		st->st_rdev = makedev(TREE_MAJOR, UMAD_MINOR + at->unit);
	if (at->kind == PLACE_RDMA_CM)
		sfnic_fake_cm_stat(st);
	return ret;
}

/* Of a file without a name, such as a command fd from another process. */
static inline bool came_by_message(int fd, const struct stat *st, uint32_t *dev)
{
	return unlikely(!st->st_nlink && S_ISREG(st->st_mode)) && wanted() &&
	       sfnic_context(fd, dev);
}

static inline int fd_stat(int fd, int ret, struct stat *st)
{
	uint32_t dev;

	if (!ret && (command_fd(fd, &dev) || came_by_message(fd, st, &dev)))
		sfnic_fake_fstat(dev, st);
	else if (!ret && unlikely(fd_what(fd) & SFNIC_FD_CM))
		sfnic_fake_cm_stat(st);
	return ret;
}

/* With AT_EMPTY_PATH the fd itself is meant. */
static inline bool fd_itself(const char *path, int flags)
{
	return flags & AT_EMPTY_PATH && (!path || !*path);
}

/* @call looks at @path. */
#define STAT_BODY(dirfd, path, st, call) \
	struct place at;                 \
                                         \
	path = lead(&at, dirfd, path);   \
	return node_stat(&at, call, (struct stat *)st)

#define STATAT_BODY(dirfd, path, flags, st, call)               \
	if (fd_itself(path, flags))                             \
		return fd_stat(dirfd, call, (struct stat *)st); \
	STAT_BODY(dirfd, path, st, call)

#define WRAP_STAT(name, type)                                        \
	WRAP(int, name, (const char *path, struct type *st))         \
	{                                                            \
		STAT_BODY(AT_FDCWD, path, st, NEXT(name)(path, st)); \
	}

#define WRAP_FSTAT(name, type)                                             \
	WRAP(int, name, (int fd, struct type *st))                         \
	{                                                                  \
		return fd_stat(fd, NEXT(name)(fd, st), (struct stat *)st); \
	}

#define WRAP_FSTATAT(name, type)                                        \
	WRAP(int, name,                                                 \
	     (int dirfd, const char *path, struct type *st, int flags)) \
	{                                                               \
		STATAT_BODY(dirfd, path, flags, st,                     \
			    NEXT(name)(dirfd, path, st, flags));        \
	}

WRAP_STAT(stat, stat)
WRAP_STAT(stat64, stat64)
WRAP_STAT(lstat, stat)
WRAP_STAT(lstat64, stat64)
WRAP_FSTAT(fstat, stat)
WRAP_FSTAT(fstat64, stat64)
WRAP_FSTATAT(fstatat, stat)
WRAP_FSTATAT(fstatat64, stat64)

/* The names that programs built for glibc before 2.33 use. */
#define WRAP_XSTAT(name, type)                                            \
	int name(int ver, const char *path, struct type *st);             \
	WRAP(int, name, (int ver, const char *path, struct type *st))     \
	{                                                                 \
		STAT_BODY(AT_FDCWD, path, st, NEXT(name)(ver, path, st)); \
	}

#define WRAP_FXSTAT(name, type)                             \
	int name(int ver, int fd, struct type *st);         \
	WRAP(int, name, (int ver, int fd, struct type *st)) \
	{                                                   \
		return fd_stat(fd, NEXT(name)(ver, fd, st), \
			       (struct stat *)st);          \
	}

#define WRAP_FXSTATAT(name, type)                                       \
	int name(int ver, int dirfd, const char *path, struct type *st, \
		 int flags);                                            \
	WRAP(int, name,                                                 \
	     (int ver, int dirfd, const char *path, struct type *st,    \
	      int flags))                                               \
	{                                                               \
		STATAT_BODY(dirfd, path, flags, st,                     \
			    NEXT(name)(ver, dirfd, path, st, flags));   \
	}

WRAP_XSTAT(__xstat, stat)
WRAP_XSTAT(__xstat64, stat64)
WRAP_XSTAT(__lxstat, stat)
WRAP_XSTAT(__lxstat64, stat64)
WRAP_FXSTAT(__fxstat, stat)
WRAP_FXSTAT(__fxstat64, stat64)
WRAP_FXSTATAT(__fxstatat, stat)
WRAP_FXSTATAT(__fxstatat64, stat64)

static void statx_node(struct statx *stx, const struct stat *st)
{
	stx->stx_mode = st->st_mode;
	stx->stx_rdev_major = major(st->st_rdev);
	stx->stx_rdev_minor = minor(st->st_rdev);
	stx->stx_size = 0;
	stx->stx_blocks = 0;
}

WRAP(int, statx,
     (int dirfd, const char *path, int flags, unsigned int mask,
      struct statx *stx))
{
	struct place at;
	struct stat st;
	uint32_t dev;
	int ret;

	if (fd_itself(path, flags)) {
		ret = NEXT(statx)(dirfd, path, flags, mask, stx);
		if (ret || !command_fd(dirfd, &dev))
			return ret;
		sfnic_fake_fstat(dev, &st);
		statx_node(stx, &st);
		return ret;
	}
	path = lead(&at, dirfd, path);
	ret = NEXT(statx)(dirfd, path, flags, mask, stx);
	if (!ret && S_ISREG(stx->stx_mode) &&
	    (at.kind == PLACE_UVERBS || at.kind == PLACE_UMAD)) {
		st.st_mode = stx->stx_mode;
		node_stat(&at, 0, &st);
		statx_node(stx, &st);
	}
	return ret;
}

/* ---- other calls on paths ------------------------------------------- */

/* A call whose only path becomes another. */
#define WRAP_PATH(ret, name, dirfd, params, args) \
	WRAP(ret, name, params)                   \
	{                                         \
		struct place at;                  \
                                                  \
		path = lead(&at, dirfd, path);    \
		return NEXT(name) args;           \
	}

WRAP_PATH(int, access, AT_FDCWD, (const char *path, int how), (path, how))
WRAP_PATH(int, eaccess, AT_FDCWD, (const char *path, int how), (path, how))
WRAP_PATH(int, euidaccess, AT_FDCWD, (const char *path, int how), (path, how))
WRAP_PATH(int, faccessat, dirfd,
	  (int dirfd, const char *path, int how, int flags),
	  (dirfd, path, how, flags))
WRAP_PATH(DIR *, opendir, AT_FDCWD, (const char *path), (path))
WRAP_PATH(int, scandir, AT_FDCWD,
	  (const char *path, struct dirent ***list,
	   int (*filter)(const struct dirent *),
	   int (*order)(const struct dirent **, const struct dirent **)),
	  (path, list, filter, order))
WRAP_PATH(int, scandir64, AT_FDCWD,
	  (const char *path, struct dirent64 ***list,
	   int (*filter)(const struct dirent64 *),
	   int (*order)(const struct dirent64 **, const struct dirent64 **)),
	  (path, list, filter, order))

/* ls -l asks for them, and complains if a file that it has seen is not there.
 */
WRAP_PATH(ssize_t, getxattr, AT_FDCWD,
	  (const char *path, const char *name, void *value, size_t size),
	  (path, name, value, size))
WRAP_PATH(ssize_t, lgetxattr, AT_FDCWD,
	  (const char *path, const char *name, void *value, size_t size),
	  (path, name, value, size))
WRAP_PATH(ssize_t, listxattr, AT_FDCWD,
	  (const char *path, char *list, size_t size), (path, list, size))
WRAP_PATH(ssize_t, llistxattr, AT_FDCWD,
	  (const char *path, char *list, size_t size), (path, list, size))

WRAP(int, chdir, (const char *path))
{
	struct place at;
	int ret, saved = errno;

	path = lead(&at, AT_FDCWD, path);
	ret = NEXT(chdir)(path);
	if (!ret && (cwd_in_tree || at.kind != PLACE_ELSEWHERE)) {
		learn_cwd();
		errno = saved;
	}
	return ret;
}

static void show_all(char **paths, size_t n)
{
	for (; n; n--, paths++)
		if (*paths)
			show(*paths);
}

#define WRAP_GLOB(name, type)                                                  \
	WRAP(int, name,                                                        \
	     (const char *pattern, int flags, int (*error)(const char *, int), \
	      type *list))                                                     \
	{                                                                      \
		struct place at;                                               \
		int ret;                                                       \
                                                                               \
		pattern = lead(&at, AT_FDCWD, pattern);                        \
		ret = NEXT(name)(pattern, flags, error, list);                 \
		if (at.kind != PLACE_ELSEWHERE && !ret)                        \
			show_all(list->gl_pathv + (flags & GLOB_DOOFFS ?       \
							   list->gl_offs :     \
							   0),                 \
				 list->gl_pathc);                              \
		return ret;                                                    \
	}

WRAP_GLOB(glob, glob_t)
WRAP_GLOB(glob64, glob64_t)

/* ---- links ---------------------------------------------------------- */

/* The link of a path in the tree, as the program would know it. */
static ssize_t tree_readlink(const struct place *at, char *buf, size_t len)
{
	char target[PLACE_PATH_MAX];
	const char *shown;
	size_t n;
	long ret;

	ret = RAW(SYS_readlinkat, AT_FDCWD, at->path, target,
		  sizeof(target) - 1);
	if (ret < 0) {
		errno = -ret;
		return -1;
	}
	target[ret] = '\0';
	shown = place_shown(me.dir, target);
	n = strlen(shown);
	if (n > len)
		n = len;
	memcpy(buf, shown, n);
	return n;
}

#define READLINK_BODY(dirfd, path, buf, len, call) \
	struct place at;                           \
                                                   \
	path = lead(&at, dirfd, path);             \
	return at.kind == PLACE_ELSEWHERE ? call : tree_readlink(&at, buf, len)

WRAP(ssize_t, readlink, (const char *path, char *buf, size_t len))
{
	READLINK_BODY(AT_FDCWD, path, buf, len, NEXT(readlink)(path, buf, len));
}

WRAP(ssize_t, readlinkat, (int dirfd, const char *path, char *buf, size_t len))
{
	READLINK_BODY(dirfd, path, buf, len,
		      NEXT(readlinkat)(dirfd, path, buf, len));
}

ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t size);
WRAP(ssize_t, __readlink_chk,
     (const char *path, char *buf, size_t len, size_t size))
{
	READLINK_BODY(AT_FDCWD, path, buf, len < size ? len : size,
		      NEXT(__readlink_chk)(path, buf, len, size));
}

ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t len,
			 size_t size);
WRAP(ssize_t, __readlinkat_chk,
     (int dirfd, const char *path, char *buf, size_t len, size_t size))
{
	READLINK_BODY(dirfd, path, buf, len < size ? len : size,
		      NEXT(__readlinkat_chk)(dirfd, path, buf, len, size));
}

#define REALPATH_BODY(path, call)               \
	struct place at;                        \
	char *real;                             \
                                                \
	path = lead(&at, AT_FDCWD, path);       \
	real = call;                            \
	if (real && at.kind != PLACE_ELSEWHERE) \
		show(real);                     \
	return real

WRAP(char *, realpath, (const char *path, char *buf))
{
	REALPATH_BODY(path, NEXT(realpath)(path, buf));
}

char *__realpath_chk(const char *path, char *buf, size_t size);
WRAP(char *, __realpath_chk, (const char *path, char *buf, size_t size))
{
	REALPATH_BODY(path, NEXT(__realpath_chk)(path, buf, size));
}

WRAP(char *, canonicalize_file_name, (const char *path))
{
	REALPATH_BODY(path, NEXT(canonicalize_file_name)(path));
}

/* ---- commands ------------------------------------------------------- */

static int verbs_ioctl(int fd, void *arg, bool *ours)
{
	int saved = errno, err;
	uint32_t ctx, dev = 0;

	ctx = sfnic_context(fd, &dev);
	/* It may have come from another process, before we are connected. */
	if (!ctx && sfnic_rnic())
		ctx = sfnic_context(fd, &dev);
	*ours = ctx;
	err = ctx ? uverbs_ioctl(&uverbs_real_ops, ctx, dev, arg) : 0;
	errno = err ? err : saved;
	return err ? -1 : 0;
}

WRAP(int, ioctl, (int fd, unsigned long request, ...))
{
	va_list args;
	bool ours;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (unlikely(request == VERBS_IOCTL) && wanted()) {
		ret = verbs_ioctl(fd, arg, &ours);
		if (ours)
			return ret;
	}
	return NEXT(ioctl)(fd, request, arg);
}

/* Apart, so that a doorbell has a small frame. */
static __attribute__((noinline)) ssize_t cm_write(int fd, const void *buf,
						  size_t len, bool *ours)
{
	int saved = errno;
	uint32_t channel = sfnic_cm_channel(fd);
	ssize_t ret = 0;

	*ours = channel;
	if (channel)
		ret = ucma_write(&ucma_real_ops, fd, channel, buf, len);
	else
		fd_is(fd, 0); /* another file, after a close behind our back */
	errno = ret < 0 ? -ret : saved;
	return ret < 0 ? -1 : ret;
}

/* Doorbells come this way. */
WRAP(ssize_t, write, (int fd, const void *buf, size_t len))
{
	uint32_t ctx, dev;
	ssize_t ret;
	bool ours;

	ctx = command_fd(fd, &dev);
	if (likely(!ctx)) {
		if (unlikely(fd_what(fd) & SFNIC_FD_CM)) {
			ret = cm_write(fd, buf, len, &ours);
			if (ours)
				return ret;
		}
		return NEXT(write)(fd, buf, len);
	}
	ret = uverbs_write(&uverbs_real_ops, ctx, dev, buf, len);
	if (likely(ret >= 0))
		return ret;
	errno = -ret;
	return -1;
}

/*
 * Registered pages lie in the arena: as they are, they can neither grow into
 * what follows there, nor move without our knowing.
 */
WRAP(void *, mremap, (void *old, size_t old_len, size_t len, int flags, ...))
{
	va_list args;
	void *to;

	va_start(args, flags);
	to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
	va_end(args);
	if (unlikely((len > old_len || flags & ~MREMAP_MAYMOVE) &&
		     convert_covers((uintptr_t)old, old_len))) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return NEXT(mremap)(old, old_len, len, flags, to);
}

WRAP(int, socket, (int domain, int type, int protocol))
{
	/* libibverbs would ask the kernel, which knows of no device. */
	if (unlikely(domain == AF_NETLINK && protocol == NETLINK_RDMA) &&
	    wanted()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return fd_is(NEXT(socket)(domain, type, protocol), 0);
}

/* ---- the life of fds ------------------------------------------------ */

WRAP(int, close, (int fd))
{
	if (is_internal(fd)) {
		errno = EBADF;
		return -1;
	}
	before_close(fd);
	return NEXT(close)(fd);
}

/* Closes around what is internal. */
static int close_around(unsigned int first, unsigned int last)
{
	while (first <= last) {
		unsigned int stop = fds_gone(first, last);
		long err = 0;

		if (stop > first || stop == 0)
			err = RAW(SYS_close_range, first, stop - 1, 0);
		if (err < 0) {
			errno = -err;
			return -1;
		}
		if (stop == 0 || stop > last)
			break;
		first = stop + 1;
	}
	return 0;
}

WRAP(int, close_range, (unsigned int first, unsigned int last, int flags))
{
	if (flags || first > last)
		return NEXT(close_range)(first, last, flags);
	return close_around(first, last);
}

WRAP(void, closefrom, (int first))
{
	int saved = errno;

	if (close_around(first < 0 ? 0 : first, UINT_MAX))
		NEXT(closefrom)(first); /* a kernel without close_range() */
	errno = saved;
}

/* @to is going to be closed if @from is open. */
static inline void before_dup_over(int from, int to)
{
	if (unlikely(fd_what(to)) && from != to &&
	    RAW(SYS_fcntl, from, F_GETFD) >= 0)
		fd_gone(to);
}

WRAP(int, dup, (int fd))
{
	return fd_is(NEXT(dup)(fd), fd_what(fd));
}

WRAP(int, dup2, (int from, int to))
{
	before_dup_over(from, to);
	return fd_is(NEXT(dup2)(from, to), fd_what(from));
}

WRAP(int, dup3, (int from, int to, int flags))
{
	before_dup_over(from, to);
	return fd_is(NEXT(dup3)(from, to, flags), fd_what(from));
}

#define WRAP_FCNTL(name)                                              \
	WRAP(int, name, (int fd, int command, ...))                   \
	{                                                             \
		va_list args;                                         \
		void *arg;                                            \
		int ret;                                              \
                                                                      \
		va_start(args, command);                              \
		arg = va_arg(args, void *);                           \
		va_end(args);                                         \
		ret = NEXT(name)(fd, command, arg);                   \
		if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) \
			fd_is(ret, fd_what(fd));                      \
		return ret;                                           \
	}

WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)
