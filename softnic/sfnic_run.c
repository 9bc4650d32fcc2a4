/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `sfnic run`: a fabric, an environment, and the program takes our place.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/raw.h"
#include "softnic/sfnic.h"

/* Like env(1): our own failure, cannot be run, not found. */
#define EXIT_SFNIC 125
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

/* ---- where our own files are ---------------------------------------- */

/*
 * A file of ours, first relative to this executable (build tree, then
 * installed), then where it is installed.  IBV_DRIVERS wants the name without
 * the end that libibverbs appends itself.
 */
struct own_file {
	const char *what;
	const char *suffix;
	const char *near[2];
	const char *installed;
};

static const struct own_file preload_file = {
	.what = "preload library libsfnic-preload.so",
	.suffix = "",
	.near = {"../lib/libsfnic-preload.so",
		 "../" SFNIC_LIBDIR_NAME "/scalefabric/libsfnic-preload.so"},
	.installed = SFNIC_LIBDIR "/scalefabric/libsfnic-preload.so",
};

static const struct own_file plugin_file = {
	.what = "verbs provider libscalefabric-rdmav34.so",
	.suffix = "-rdmav34.so",
	.near = {"../lib/libscalefabric",
		 "../" SFNIC_LIBDIR_NAME "/libibverbs/libscalefabric"},
	.installed = SFNIC_LIBDIR "/libibverbs/libscalefabric",
};

static const struct own_file daemon_file = {
	.what = "daemon sfnicd",
	.suffix = "",
	.near = {"sfnicd"},
	.installed = SFNIC_BINDIR "/sfnicd",
};

static void own_directory(char *dir, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", dir, len - 1);
	char *slash;

	dir[n > 0 ? n : 0] = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
}

/* The absolute path without @suffix, if there is such a file. */
static bool real_file(const char *path, const char *suffix, char *out)
{
	char full[SFNIC_PATH_LEN];
	size_t len;

	if (snprintf(full, sizeof(full), "%s%s", path, suffix) >=
		    (int)sizeof(full) ||
	    !realpath(full, out))
		return false;
	len = strlen(out);
	/* A link to a file of another name cannot be cut like that. */
	if (len < strlen(suffix) || strcmp(out + len - strlen(suffix), suffix))
		return false;
	out[len - strlen(suffix)] = '\0';
	return true;
}

static bool find_file(const struct own_file *file, char out[SFNIC_PATH_LEN])
{
	char dir[SFNIC_PATH_LEN / 2], path[SFNIC_PATH_LEN];
	size_t i;

	own_directory(dir, sizeof(dir));
	for (i = 0; i < 2 && file->near[i] && dir[0]; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, file->near[i]);
		if (real_file(path, file->suffix, out))
			return true;
	}
	if (real_file(file->installed, file->suffix, out))
		return true;
	sfnic_say("cannot find the %s; install scaleFabric again", file->what);
	return false;
}

/* ---- environment ---------------------------------------------------- */

/* Is @item one of the words of @list? */
static bool listed(const char *list, const char *separators, const char *item)
{
	size_t n, len = strlen(item);

	for (; *list; list += n) {
		list += strspn(list, separators);
		n = strcspn(list, separators);
		if (n == len && !memcmp(list, item, n))
			return true;
	}
	return false;
}

/* Puts @item before what @name has, unless it is there already. */
static bool prepend(const char *name, const char *separators, const char *item)
{
	const char *old = getenv(name);
	char *value;
	int err;

	if (!old || !*old)
		return !setenv(name, item, 1);
	if (listed(old, separators, item))
		return true;
	if (asprintf(&value, "%s:%s", item, old) < 0)
		return false;
	err = setenv(name, value, 1);
	free(value);
	return !err;
}

static bool set_environment(const char *dir, const struct sfnic_options *opt)
{
	char preload[SFNIC_PATH_LEN], plugin[SFNIC_PATH_LEN];
	char daemon[SFNIC_PATH_LEN], line[SFNIC_OPTIONS_LINE];

	if (!find_file(&preload_file, preload) ||
	    !find_file(&plugin_file, plugin) ||
	    !find_file(&daemon_file, daemon))
		return false;
	if (strpbrk(preload, " :") || strchr(plugin, ':')) {
		sfnic_say("%s: LD_PRELOAD cannot name a path with a space or "
			  "colon; move scaleFabric elsewhere",
			  preload);
		return false;
	}
	sfnic_options_line(opt, line, sizeof(line));
	if (!setenv("SFNIC_DIR", dir, 1) && !setenv("SFNIC_OPTIONS", line, 1) &&
	    !setenv("SFNIC_DAEMON", daemon, 1) &&
	    prepend("LD_PRELOAD", " :", preload) &&
	    /* Programs under ASan: our library may stand before its own. */
	    prepend("ASAN_OPTIONS", ":", "verify_asan_link_order=0") &&
	    prepend("IBV_DRIVERS", ":", plugin))
		return true;
	sfnic_say("no memory for the environment");
	return false;
}

/* ---- what the user should know -------------------------------------- */

/*
 * By system calls: when we run on a fabric ourselves, the path would lead to
 * its devices.
 */
static void tell_hidden_devices(void)
{
	char buf[1024];
	long n, at = 0;
	bool found = false;
	int fd = raw_open("/sys/class/infiniband",
			  O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	n = RAW(SYS_getdents64, fd, buf, sizeof(buf));
	while (at < n && !found) {
		/* The kernel's record: the same as struct dirent64. */
		struct dirent64 *entry = (struct dirent64 *)(buf + at);

		found = entry->d_name[0] != '.';
		at += entry->d_reclen;
	}
	raw_close(fd);
	if (found)
		sfnic_say("the host's own RDMA devices are hidden from the "
			  "program (--host-devices show shows them, too)");
}

/* The file that execvp() would run. */
static bool find_program(const char *name, char out[SFNIC_PATH_LEN])
{
	const char *path = getenv("PATH");
	size_t n;

	if (strchr(name, '/')) {
		snprintf(out, SFNIC_PATH_LEN, "%s", name);
		return true;
	}
	for (path = path ? path : "/bin:/usr/bin"; *path;
	     path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		snprintf(out, SFNIC_PATH_LEN, "%.*s/%s", (int)n, path, name);
		if (!access(out, X_OK))
			return true;
	}
	return false;
}

/* Does the ELF file name a dynamic linker?  True for what is no ELF file. */
static bool is_dynamic(int fd)
{
	Elf64_Ehdr elf;
	Elf64_Phdr segment;
	unsigned int i;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64)
		return true;
	for (i = 0; i < elf.e_phnum; i++)
		if (pread(fd, &segment, sizeof(segment),
			  elf.e_phoff + i * sizeof(segment)) ==
			    sizeof(segment) &&
		    segment.p_type == PT_INTERP)
			return true;
	return false;
}

static bool changes_user(const struct stat *st)
{
	return (st->st_mode & S_ISUID && st->st_uid != geteuid()) ||
	       (st->st_mode & S_ISGID && st->st_gid != getegid());
}

static void tell_out_of_reach(const char *name)
{
	char path[SFNIC_PATH_LEN];
	struct stat st;
	int fd;

	if (!find_program(name, path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && changes_user(&st))
		sfnic_say("%s runs as another user: it will not see the "
			  "software device",
			  name);
	else if (!is_dynamic(fd))
		sfnic_say("%s is statically linked: it will not see the "
			  "software device",
			  name);
	close(fd);
}

/* ---- run ------------------------------------------------------------ */

/* The index of PROGRAM, or -1. */
static int parse(int argc, char **argv, struct sfnic_options *opt)
{
	int at = sfnic_options_parse(opt, argc, argv);

	if (at < 0)
		return -1;
	if (at < argc && !strcmp(argv[at], "--"))
		at++;
	else if (at < argc && argv[at][0] == '-') {
		sfnic_say("%s is not an option of run; see sfnic --help",
			  argv[at]);
		return -1;
	}
	if (at < argc)
		return at;
	sfnic_say("run what? sfnic run [OPTIONS] [--] PROGRAM [ARGS]");
	return -1;
}

static bool bring_up(const struct sfnic_options *opt)
{
	char dir[SFNIC_PATH_LEN], msg[SFNIC_MSG_LEN];
	int sock;

	if (access("/proc/self/fd", X_OK)) {
		sfnic_say("/proc is not mounted here, and nothing works "
			  "without it: mount -t proc proc /proc");
		return false;
	}
	/* It names a fabric of its own, also within a program on another. */
	if (opt->instance[0])
		unsetenv("SFNIC_DIR");
	if (sfnic_runtime_dir(opt->instance, dir, sizeof(dir), msg,
			      sizeof(msg))) {
		sfnic_say("%s", msg);
		return false;
	}
	if (!set_environment(dir, opt))
		return false;
	sock = sfnic_daemon_connect(dir, opt, msg, sizeof(msg));
	if (sock < 0) {
		sfnic_say("%s", msg);
		return false;
	}
	close(sock);
	return true;
}

int sfnic_run(int argc, char **argv)
{
	struct sfnic_options opt;
	int at = parse(argc, argv, &opt), err;

	if (at < 0 || !bring_up(&opt))
		return EXIT_SFNIC;
	if (!opt.host_devices)
		tell_hidden_devices();
	tell_out_of_reach(argv[at]);
	execvp(argv[at], argv + at);
	err = errno;
	sfnic_say("%s: %s", argv[at], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
