/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finding the daemon, or starting it. */
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include "softnic/options.h"
#include "softnic/proto.h"
#include "softnic/raw.h"
#include "softnic/wire.h"

#define START_TIMEOUT_MS 10000

extern char **environ;

static int ask(int sock, uint32_t op, uint32_t id, struct sfnic_rsp *rsp)
{
	struct sfnic_req req = {.op = op, .id = id};
	int err = wire_send(sock, &req, sizeof(req), -1);

	if (!err)
		err = wire_recv(sock, rsp, sizeof(*rsp), NULL);
	return err ? err : rsp->err;
}

/* The environment without what would make the daemon a client of itself. */
static char **clean_environment(char **env, size_t max)
{
	size_t n = 0;
	char **e;

	for (e = environ; *e && n + 1 < max; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "SFNIC_", 6))
			env[n++] = *e;
	env[n] = NULL;
	return env;
}

/* The other end is closed when the daemon is ready, or has given up. */
static int wait_ready(int fd, char *msg, size_t len)
{
	struct pollfd p = {fd, POLLIN, 0};
	int ready;
	long n;

	/* Signals are the program's business: they begin the wait anew. */
	do {
		ready = poll(&p, 1, START_TIMEOUT_MS);
	} while (ready < 0 && errno == EINTR);
	if (ready <= 0) {
		snprintf(msg, len, "the daemon does not come up");
		return ETIMEDOUT;
	}
	n = raw_read(fd, msg, len - 1);
	if (n == 1 && msg[0] == '\n')
		return 0;
	if (n <= 0)
		snprintf(msg, len, "the daemon ended while starting");
	else
		msg[n] = 0;
	return EIO;
}

/*
 * The daemon puts itself in the background, so its first process ends at once
 * and is waited for here: the caller gets no child that it does not know.
 */
static int spawn(char *const argv[], int ready, char *msg, size_t len)
{
	char *env[512];
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int err;

	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	RAW(SYS_fcntl, ready, F_SETFD, 0);
	err = posix_spawn(&pid, argv[0], NULL, &attr, argv,
			  clean_environment(env, 512));
	posix_spawnattr_destroy(&attr);
	if (err) {
		snprintf(msg, len, "cannot start %s: %s%s", argv[0],
			 strerror(err),
			 err == EAGAIN ? " (raise ulimit -u)" : "");
		return err;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* @named, or the one beside us. */
static const char *daemon_path(const char *named, char *buf, size_t len)
{
	ssize_t n;
	char *slash;

	if (named)
		return named;
	n = readlink("/proc/self/exe", buf, len - 8);
	if (n <= 0)
		return "/usr/bin/sfnicd";
	buf[n] = 0;
	slash = strrchr(buf, '/');
	strcpy(slash ? slash + 1 : buf, "sfnicd");
	return buf;
}

static int start(const char *dir, const char *options, const char *daemon,
		 char *msg, size_t len)
{
	char path[4096], fd[16], words[SFNIC_OPTIONS_LINE],
		flags[16][SFNIC_ADDRS_LEN + 16], *argv[32];
	char *save, *w;
	int pipefd[2], n = 0, i = 0, err;

	if (pipe2(pipefd, O_CLOEXEC)) {
		snprintf(msg, len,
			 "no descriptors left: raise the limit (ulimit -n)");
		return errno;
	}
	snprintf(fd, sizeof(fd), "%d", pipefd[1]);
	snprintf(words, sizeof(words), "%s", options);
	argv[n++] = (char *)daemon_path(daemon, path, sizeof(path));
	argv[n++] = "--dir";
	argv[n++] = (char *)dir;
	argv[n++] = "--ready";
	argv[n++] = fd;
	/* "devices=1 ..." as "--devices=1", ... */
	for (w = strtok_r(words, " ", &save); w && i < 16;
	     w = strtok_r(NULL, " ", &save), i++) {
		snprintf(flags[i], sizeof(flags[i]), "--%s", w);
		argv[n++] = flags[i];
	}
	argv[n] = NULL;
	err = spawn(argv, pipefd[1], msg, len);
	raw_close(pipefd[1]);
	if (!err)
		err = wait_ready(pipefd[0], msg, len);
	raw_close(pipefd[0]);
	return err;
}

/* Of many that start at the same instant, one holds the lock. */
static int connect_or_start(const char *dir, const char *options,
			    const char *daemon, char *msg, size_t len)
{
	char path[4096];
	int lock, sock = wire_connect(dir);

	if (sock >= 0)
		return sock;
	snprintf(path, sizeof(path), "%s/lock", dir);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0) {
		snprintf(msg, len,
			 "cannot write to %s: %s; set SFNIC_DIR to a directory "
			 "of your own",
			 dir, strerror(errno));
		return -1;
	}
	while (flock(lock, LOCK_EX) && errno == EINTR)
		;
	sock = wire_connect(dir);
	if (sock < 0 && !start(dir, options, daemon, msg, len)) {
		sock = wire_connect(dir);
		if (sock < 0)
			snprintf(msg, len, "the daemon does not answer: %s",
				 strerror(-sock));
	}
	close(lock);
	return sock;
}

int sfnic_daemon_connect(const char *dir, const struct sfnic_options *opt,
			 char *msg, size_t len)
{
	char want[SFNIC_OPTIONS_LINE];
	struct sfnic_rsp rsp, down;
	int sock, tries;

	sfnic_options_line(opt, want, sizeof(want));
	for (tries = 0; tries < 3; tries++) {
		msg[0] = 0;
		sock = connect_or_start(dir, want, getenv("SFNIC_DAEMON"), msg,
					len);
		if (sock < 0)
			return -1;
		/* The answer also tells that it is not about to leave. */
		memset(&rsp, 0, sizeof(rsp));
		if (ask(sock, SFNIC_INFO, 0, &rsp)) {
			raw_close(sock);
			snprintf(msg, len, "the daemon does not answer");
			continue;
		}
		if (!opt->given || !strcmp(rsp.info.options, want))
			return sock;
		if (ask(sock, SFNIC_DOWN, 0, &down) == EBUSY) {
			raw_close(sock);
			snprintf(msg, len,
				 "a fabric with other options is in use (%s): "
				 "leave the options out, wait, or use "
				 "--instance NAME",
				 rsp.info.options);
			return -1;
		}
		raw_close(sock);
	}
	return -1;
}

int sfnic_daemon_restart(const char *dir, const char *options,
			 const char *daemon)
{
	char msg[SFNIC_MSG_LEN];

	if (!dir[0] || !options[0] || !daemon[0])
		return -1;
	return connect_or_start(dir, options, daemon, msg, sizeof(msg));
}
