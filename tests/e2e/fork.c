/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fork, exec and threads around open devices: one case an argument, all of them
 * without one.  In each case the parent's connection works afterwards as before
 * and the parent's memory holds what the parent and its peers have written.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "rc.h"

#define SIZE (1 << 20)
#define SOON_MS 20000

extern char **environ;

static struct rc a, b;
static uint8_t *buf; /* a's region, then b's */

static void set_up(void)
{
	buf = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(buf != MAP_FAILED);
	memset(buf, 1, 2 * SIZE);
	rc_open(&a, 0);
	b.ctx = a.ctx;
	b.pd = a.pd;
	b.timeout = a.timeout;
	b.retry_cnt = a.retry_cnt;
	b.rnr_retry = a.rnr_retry;
	rc_create(&a, buf, SIZE);
	rc_create(&b, buf + SIZE, SIZE);
	rc_pair(&a, &b);
}

static void take_down(void)
{
	rc_destroy(&a);
	rc_destroy(&b);
	rc_close(&a);
	munmap(buf, 2 * SIZE);
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
}

/* One message each way, of this value. */
static void works(uint8_t value)
{
	struct ibv_wc wc;

	memset(buf, value, SIZE);
	memset(buf + SIZE, 0, SIZE);
	CHECK(!rc_recv(&b, 0, 4096));
	CHECK(!rc_post(&a, IBV_WR_SEND, 8192, 4096));
	CHECK(rc_wait(&a, &wc, SOON_MS) == IBV_WC_SUCCESS);
	CHECK(rc_wait(&b, &wc, SOON_MS) == IBV_WC_SUCCESS);
	CHECK(!rc_post(&a, IBV_WR_RDMA_WRITE, 4096, SIZE - 4096));
	CHECK(rc_wait(&a, &wc, SOON_MS) == IBV_WC_SUCCESS);
	CHECK(!memcmp(buf, buf + SIZE, SIZE));
}

static void wait_child(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status) {
		fprintf(stderr, "child ended with %#x\n", (unsigned int)status);
		_exit(1);
	}
}

/* ---- cases ---------------------------------------------------------- */

/* The child writes to its copy; the parent to the region. */
static void copy(void)
{
	int to_child[2], to_parent[2];
	char byte = 0;
	pid_t pid;
	int i;

	CHECK(!pipe(to_child) && !pipe(to_parent));
	memset(buf, 7, 2 * SIZE);
	pid = fork();
	if (!pid) {
		CHECK(read(to_child[0], &byte, 1) == 1);
		/* What the parent did meanwhile is not here. */
		for (i = 0; i < 2 * SIZE; i++)
			CHECK(buf[i] == 7);
		memset(buf, 8, 2 * SIZE);
		CHECK(write(to_parent[1], &byte, 1) == 1);
		CHECK(read(to_child[0], &byte, 1) == 1);
		for (i = 0; i < 2 * SIZE; i++)
			CHECK(buf[i] == 8);
		_exit(0);
	}
	works(9);
	CHECK(write(to_child[1], &byte, 1) == 1);
	CHECK(read(to_parent[0], &byte, 1) == 1);
	for (i = 0; i < 2 * SIZE; i++)
		CHECK(buf[i] == 9);
	works(10);
	CHECK(write(to_child[1], &byte, 1) == 1);
	wait_child(pid);
}

/* The child leaves with and without exit handlers; it touches nothing. */
static void ignore(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	wait_child(pid);
	works(2);
	pid = fork();
	if (!pid) {
		close(a.ctx->cmd_fd);
		close(a.ctx->async_fd);
		close(a.channel->fd);
		_exit(0);
	}
	wait_child(pid);
}

/* The child destroys its inherited objects: that is seen by all. */
static void destroy(void)
{
	static char more[8192] __attribute__((aligned(4096)));
	struct rc extra = a;
	pid_t pid;

	extra.mr = NULL;
	rc_create(&extra, more, sizeof(more));
	pid = fork();
	if (!pid) {
		ibv_destroy_qp(extra.qp);
		ibv_destroy_cq(extra.cq);
		_exit(0);
	}
	wait_child(pid);
	works(3);
	/* Gone already, or not: an error or none, but no crash. */
	ibv_destroy_qp(extra.qp);
	ibv_destroy_cq(extra.cq);
	CHECK(!ibv_dereg_mr(extra.mr));
	ibv_destroy_comp_channel(extra.channel);
}

/* The child posts on the inherited queue pair: it does, or it gets an error. */
static void post(void)
{
	struct ibv_wc wc;
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (!rc_post(&a, IBV_WR_RDMA_WRITE, 0, 64))
			rc_wait(&a, &wc, 2000);
		_exit(0);
	}
	wait_child(pid);
	/* The parent's own idea of the queue is a lap behind: start again. */
	status = rc_wait(&a, &wc, 0);
	CHECK(status == RC_NONE || status >= 0);
	take_down();
	set_up();
}

/* The child opens the device itself and talks to the parent. */
static void open_again(void)
{
	int to_child[2], to_parent[2];
	struct rc_address addr;
	struct rc c = {0}, d = a;
	struct ibv_wc wc;
	static uint8_t mem[65536] __attribute__((aligned(4096)));
	pid_t pid;

	CHECK(!pipe(to_child) && !pipe(to_parent));
	pid = fork();
	if (!pid) {
		rc_open(&c, 0);
		rc_create(&c, mem, sizeof(mem));
		addr = rc_address(&c);
		CHECK(write(to_parent[1], &addr, sizeof(addr)) ==
		      sizeof(addr));
		CHECK(read(to_child[0], &addr, sizeof(addr)) == sizeof(addr));
		rc_connect(&c, &addr);
		CHECK(!rc_recv(&c, 0, 4096));
		CHECK(write(to_parent[1], "", 1) == 1);
		CHECK(rc_wait(&c, &wc, SOON_MS) == IBV_WC_SUCCESS);
		CHECK(mem[0] == 5 && mem[4095] == 5);
		rc_destroy(&c);
		rc_close(&c);
		exit(0); /* with the handlers of all libraries */
	}
	d.mr = NULL;
	rc_create(&d, mem, sizeof(mem));
	memset(mem, 5, sizeof(mem));
	addr = rc_address(&d);
	CHECK(write(to_child[1], &addr, sizeof(addr)) == sizeof(addr));
	CHECK(read(to_parent[0], &addr, sizeof(addr)) == sizeof(addr));
	rc_connect(&d, &addr);
	CHECK(read(to_parent[0], &addr, 1) == 1);
	CHECK(!rc_post(&d, IBV_WR_SEND, 0, 4096));
	CHECK(rc_wait(&d, &wc, SOON_MS) == IBV_WC_SUCCESS);
	wait_child(pid);
	rc_destroy(&d);
}

static volatile int running;

static void *poster(void *arg)
{
	struct ibv_wc wc;

	(void)arg;
	while (running) {
		CHECK(!rc_post(&a, IBV_WR_RDMA_WRITE, 0, 4096));
		CHECK(rc_wait(&a, &wc, SOON_MS) == IBV_WC_SUCCESS);
		pthread_testcancel();
	}
	return NULL;
}

static void *registrar(void *arg)
{
	size_t len = 256 << 10;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	CHECK(p != MAP_FAILED);
	while (running) {
		struct ibv_mr *mr = ibv_reg_mr(a.pd, p, len, RC_ALL);

		CHECK(mr);
		CHECK(!ibv_dereg_mr(mr));
	}
	munmap(p, len);
	return NULL;
}

/* fork while other threads post and register. */
static void threads(void)
{
	pthread_t t[3];
	int i;

	running = 1;
	CHECK(!pthread_create(&t[0], NULL, poster, NULL));
	CHECK(!pthread_create(&t[1], NULL, registrar, NULL));
	CHECK(!pthread_create(&t[2], NULL, registrar, NULL));
	for (i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (!pid) {
			/* A third of them uses a device. */
			if (i % 3 == 0) {
				struct rc c = {0};

				rc_open(&c, 0);
				rc_close(&c);
			}
			_exit(0);
		}
		wait_child(pid);
	}
	running = 0;
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

/* A large region: the child's copy is complete, the parent goes on. */
static void large(void)
{
	size_t len = 64 << 20, i;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	pid_t pid;

	CHECK(p != MAP_FAILED);
	memset(p, 0x5a, len);
	CHECK(mr = ibv_reg_mr(a.pd, p, len, RC_ALL));
	pid = fork();
	if (!pid) {
		for (i = 0; i < len; i += 512)
			CHECK(p[i] == 0x5a);
		_exit(0);
	}
	memset(p, 0xa5, len);
	wait_child(pid);
	CHECK(!ibv_dereg_mr(mr));
	munmap(p, len);
}

/* Everything that starts another program, with a device open. */
static void programs(void)
{
	char *const args[] = {"sh", "-c", "exit 0", NULL};
	FILE *f;
	pid_t pid;
	char line[64] = "";

	CHECK(!system("exit 0"));
	CHECK(f = popen("echo hello", "r"));
	CHECK(fgets(line, sizeof(line), f) && !strcmp(line, "hello\n"));
	CHECK(!pclose(f));
	CHECK(!posix_spawnp(&pid, "sh", NULL, NULL, args, environ));
	wait_child(pid);
	pid = vfork();
	if (!pid) {
		execvp("sh", args);
		_exit(1);
	}
	wait_child(pid);
	/* No descriptor of ours is left to it. */
	CHECK(f = popen("ls -l /proc/self/fd | grep -c sfnic", "r"));
	CHECK(fgets(line, sizeof(line), f) && !strcmp(line, "0\n"));
	pclose(f);
	CHECK(!system("ibv_devices | grep -q sfab0"));
	works(4);
}

/* As daemon(3) and its imitators: all descriptors are closed, then it begins. */
static void daemonize(void)
{
	int fds[2], fd;
	char byte = 1;
	pid_t pid;

	CHECK(!pipe(fds));
	pid = fork();
	if (!pid) {
		setsid();
		pid = fork();
		if (pid)
			_exit(pid < 0);
		CHECK(dup2(fds[1], 700) == 700);
		for (fd = 0; fd < 2000; fd++)
			if (fd != 700)
				close(fd);
		CHECK(open("/dev/null", O_RDWR) == 0);
		CHECK(dup(0) == 1 && dup(0) == 2);
		memset(&a, 0, sizeof(a));
		memset(&b, 0, sizeof(b));
		set_up();
		works(6);
		take_down();
		byte = 0;
		CHECK(write(700, &byte, 1) == 1);
		_exit(0);
	}
	wait_child(pid);
	close(fds[1]);
	CHECK(read(fds[0], &byte, 1) == 1 && !byte);
	close(fds[0]);
}

/* Threads that are cancelled while they post. */
static void cancel(void)
{
	int i;

	for (i = 0; i < 20; i++) {
		pthread_t t;

		take_down();
		set_up();
		running = 1;
		CHECK(!pthread_create(&t, NULL, poster, NULL));
		usleep((useconds_t)rand() % 3000);
		CHECK(!pthread_cancel(t));
		pthread_join(t, NULL);
		running = 0;
	}
	take_down();
	set_up();
}

static void on_alarm(int sig)
{
	(void)sig;
	_exit(0);
}

/* Signal handlers that end the process in the middle of anything. */
static void handler(void)
{
	int i;

	for (i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (!pid) {
			struct itimerval in = {.it_value.tv_usec =
						       1 + rand() % 20000};
			struct sigaction act = {.sa_handler = on_alarm};

			srand((unsigned int)i);
			memset(&a, 0, sizeof(a));
			memset(&b, 0, sizeof(b));
			sigaction(SIGALRM, &act, NULL);
			setitimer(ITIMER_REAL, &in, NULL);
			set_up();
			running = 1;
			poster(NULL);
			_exit(1);
		}
		wait_child(pid);
	}
}

/* A child without pthread_atfork handlers. */
static void raw_clone(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (!pid)
		_exit(0);
	wait_child(pid);
}

static void *small_thread(void *arg)
{
	(void)arg;
	set_up();
	works(11);
	take_down();
	return NULL;
}

/* All of it on a small stack. */
static void small_stack(void)
{
	pthread_attr_t attr;
	pthread_t t;

	take_down();
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstacksize(&attr, 64 << 10));
	CHECK(!pthread_create(&t, &attr, small_thread, NULL));
	pthread_join(t, NULL);
	pthread_attr_destroy(&attr);
	set_up();
}

static const struct {
	const char *name;
	void (*fn)(void);
} tests[] = {
	{"copy", copy},	      {"ignore", ignore},
	{"destroy", destroy}, {"post", post},
	{"open", open_again}, {"threads", threads},
	{"large", large},     {"programs", programs},
	{"daemon", daemonize}, {"cancel", cancel},
	{"handler", handler}, {"clone", raw_clone},
	{"stack", small_stack},
};

/* fork [CASE] [init] */
int main(int argc, char **argv)
{
	size_t i, n = 0;

	alarm(100);
	if (argc > 2)
		CHECK(!ibv_fork_init());
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc > 1 && strcmp(argv[1], "all") &&
		    strcmp(argv[1], tests[i].name))
			continue;
		fprintf(stderr, "%s\n", tests[i].name);
		set_up();
		tests[i].fn();
		works((uint8_t)(100 + i));
		take_down();
		n++;
	}
	printf("%zu cases\n", n);
	return 0;
}
