/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kill kill|stop|daemon N [SEED]: four pairs of processes exchange all kinds of
 * requests; N times one process, at a random moment of its life, is killed with
 * SIGKILL.  Its peer must get what IBTA says, take down its objects without an
 * error and end; other pairs must see nothing.
 *
 * stop: before that it is stopped for a while, perhaps with locks held, and
 * perhaps goes on.  Other pairs go on, and so do control calls.
 *
 * daemon: the daemon is killed.  All end soon, of themselves, and the next ones
 * find another daemon.
 *
 * A pair is two processes with a socket between them.  What a process does is
 * chosen by random numbers: size of memory, threads, operations.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "rc.h"

#define PAIRS 4
#define DEPTH 16
#define ANSWER_MS 20000 /* for what takes some ms if nothing is wrong */

/* ---- one side ------------------------------------------------------- */

static volatile int leave;
static bool stops;		    /* whether anybody is stopped */
static volatile uint64_t *progress; /* of each pair, shared */

static void on_term(int sig)
{
	(void)sig;
	leave = 1;
}

/* The peer's process has gone. */
static bool peer_gone(int sock)
{
	char byte;

	return recv(sock, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* False: the peer died meanwhile. */
static bool exchange(int sock, const void *out, void *in, size_t len)
{
	return send(sock, out, len, MSG_NOSIGNAL) == (ssize_t)len &&
	       recv(sock, in, len, MSG_WAITALL) == (ssize_t)len;
}

/* An error has come: nothing but the death of the peer explains it. */
static void wait_gone(int sock, int status)
{
	uint64_t end = rc_ms() + ANSWER_MS / 2;

	while (!leave && !peer_gone(sock)) {
		if (rc_ms() > end) {
			fprintf(stderr, "%d: status %d, but the peer lives\n",
				getpid(), status);
			_exit(5);
		}
		usleep(100);
	}
}

static int random_op(unsigned int *seed)
{
	static const int ops[] = {IBV_WR_SEND,
				  IBV_WR_SEND,
				  IBV_WR_RDMA_WRITE,
				  IBV_WR_RDMA_READ,
				  IBV_WR_RDMA_WRITE_WITH_IMM,
				  IBV_WR_ATOMIC_FETCH_AND_ADD};

	return ops[rand_r(seed) % 6];
}

static void post_one(struct rc *rc, unsigned int *seed, size_t len)
{
	uint32_t sizes[] = {4, 64, 4096, 100000};
	int op = random_op(seed);
	uint32_t n = sizes[rand_r(seed) % 4];

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		n = 8;
	if (n > len / 2)
		n = 64;
	CHECK(!rc_post(rc, op, len / 2, n));
}

/* Until somebody dies or all shall end.  Returns the last status. */
static int traffic(struct rc *rc, int sock, unsigned int *seed, size_t len,
		   bool events, volatile uint64_t *count)
{
	int sent = 0, status = IBV_WC_SUCCESS, n, loops = 0;
	struct ibv_wc wc;

	for (n = 0; n < 4 * DEPTH; n++)
		CHECK(!rc_recv(rc, 0, len / 2));
	while (status == IBV_WC_SUCCESS && !leave) {
		struct pollfd p = {rc->channel->fd, POLLIN, 0};
		struct ibv_cq *cq;
		void *arg;

		if (!(++loops & 15)) {
			if (peer_gone(sock))
				break;
			/* Others want the CPU, too. */
			usleep((unsigned int)rand_r(seed) % 1000);
		}
		while (sent < DEPTH) {
			post_one(rc, seed, len);
			sent++;
		}
		n = ibv_poll_cq(rc->cq, 1, &wc);
		CHECK(n >= 0);
		if (!n && events) {
			CHECK(!ibv_req_notify_cq(rc->cq, 0));
			n = ibv_poll_cq(rc->cq, 1, &wc);
		}
		if (!n) {
			if (events && poll(&p, 1, 20) == 1) {
				CHECK(!ibv_get_cq_event(rc->channel, &cq,
							&arg));
				ibv_ack_cq_events(cq, 1);
			} else if (!events) {
				usleep((unsigned int)rand_r(seed) % 200);
			}
			continue;
		}
		status = wc.status;
		if (status)
			break;
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
		if (wc.opcode & IBV_WC_RECV)
			CHECK(!rc_recv(rc, 0, len / 2));
		else
			sent--;
	}
	return status;
}

/*
 * The peer is gone: soon, what is posted must end with an error.  Its queue
 * pair may outlive it for a moment.
 */
static void expect_error(struct rc *rc, int status)
{
	struct ibv_wc wc = {0};

	CHECK(!rc_post(rc, IBV_WR_RDMA_WRITE, 0, 4));
	while (status == IBV_WC_SUCCESS) {
		status = rc_wait(rc, &wc, ANSWER_MS);
		if (status == RC_NONE) {
			fprintf(stderr, "%d: no answer, state %d\n", getpid(),
				rc_state(rc));
			_exit(3);
		}
		if (status == IBV_WC_SUCCESS && !(wc.opcode & IBV_WC_RECV))
			CHECK(!rc_post(rc, IBV_WR_RDMA_WRITE, 0, 4));
	}
	/*
	 * RETRY_EXC: nobody answers.  REM_ACCESS, REM_OP: its memory went
	 * before its queue pair.
	 */
	if (status != IBV_WC_RETRY_EXC_ERR && status != IBV_WC_WR_FLUSH_ERR &&
	    status != IBV_WC_REM_ACCESS_ERR && status != IBV_WC_REM_OP_ERR) {
		fprintf(stderr, "%d: status %d\n", getpid(), status);
		_exit(4);
	}
	CHECK(rc_state(rc) == IBV_QPS_ERR);
}

static void *register_and_forget(void *arg)
{
	struct rc *rc = arg;
	size_t len = 2 << 20;

	for (;;) {
		void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct ibv_mr *mr;

		CHECK(p != MAP_FAILED);
		mr = ibv_reg_mr(rc->pd, p, len, RC_ALL);
		CHECK(mr);
		CHECK(!ibv_dereg_mr(mr));
		munmap(p, len);
		usleep(500);
		pthread_testcancel();
	}
	return NULL;
}

/* Children that leave, and children that become another program. */
static void *fork_and_exec(void *arg)
{
	unsigned int seed = (unsigned int)getpid();
	pid_t pid;

	(void)arg;
	for (;;) {
		pid = fork();
		if (!pid && rand_r(&seed) & 1)
			execl("/bin/true", "true", NULL);
		if (!pid)
			_exit(0);
		CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
		usleep(3000);
		pthread_testcancel();
	}
	return NULL;
}

/* What a stopped peer has locked stays for now; the janitor knows it. */
static void leave_behind(struct rc *rc)
{
	int err = ibv_destroy_qp(rc->qp);

	if (err) {
		CHECK(err == EBUSY);
		_exit(0);
	}
	CHECK(!ibv_destroy_cq(rc->cq));
	_exit(0);
}

static void side(int sock, unsigned int seed, size_t len,
		 volatile uint64_t *count)
{
	static void *(*const others[])(void *) = {register_and_forget,
						  fork_and_exec};
	bool events = rand_r(&seed) % 2, threads = rand_r(&seed) % 3 == 0;
	struct rc_address own, peer;
	struct rc rc = {0};
	pthread_t thread;
	int status;
	void *buf;

	rc.timeout = 12; /* 17 ms */
	rc.retry_cnt = 3;
	rc.rnr_retry = 7;
	alarm(60);
	buf = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(buf != MAP_FAILED);
	rc_open(&rc, 0);
	rc_create(&rc, buf, len);
	own = rc_address(&rc);
	if (exchange(sock, &own, &peer, sizeof(own))) {
		rc_connect(&rc, &peer);
		if (exchange(sock, &own, &peer, sizeof(own))) {
			if (threads)
				CHECK(!pthread_create(&thread, NULL,
						      others[rand_r(&seed) % 2],
						      &rc));
			status = traffic(&rc, sock, &seed, len, events, count);
			if (stops && status && !leave && !peer_gone(sock))
				leave_behind(&rc);
			/* Whoever leaves first has not been killed. */
			if (!leave && status &&
			    status != IBV_WC_REM_INV_REQ_ERR)
				wait_gone(sock, status);
			if (!leave)
				expect_error(&rc, status);
			if (threads) {
				pthread_cancel(thread);
				pthread_join(thread, NULL);
			}
		}
	}
	rc_destroy(&rc);
	rc_close(&rc);
	_exit(0);
}

/* ---- the killer ----------------------------------------------------- */

static struct pair {
	pid_t pid[2];
	int victim; /* -1: none yet */
} pairs[PAIRS];
static int failures;

static void start_pair(struct pair *p, unsigned int *seed)
{
	unsigned int seeds[2] = {(unsigned int)rand_r(seed),
				 (unsigned int)rand_r(seed)};
	size_t len = rand_r(seed) % 3 ? 1 << 18 : 8 << 20;
	int s[2], i;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	for (i = 0; i < 2; i++) {
		p->pid[i] = fork();
		CHECK(p->pid[i] >= 0);
		if (!p->pid[i]) {
			close(s[!i]);
			side(s[i], seeds[i], len, &progress[p - pairs]);
		}
	}
	close(s[0]);
	close(s[1]);
	p->victim = -1;
}

/* Waits for a process; its exit status, or -1 if it had to be killed. */
static int reap(pid_t pid)
{
	uint64_t end = rc_ms() + ANSWER_MS;
	int status;

	for (;;) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		if (rc_ms() > end)
			break;
		usleep(1000);
	}
	fprintf(stderr, "%d does not end\n", pid);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

static void check_survivor(pid_t pid, const char *what)
{
	int status = reap(pid);

	if (status) {
		fprintf(stderr, "FAILED  %s: %d ended with %#x\n", what, pid,
			(unsigned int)status);
		failures++;
	}
}

static void expect_progress(int but)
{
	uint64_t end = rc_ms() + ANSWER_MS, then[PAIRS];
	int i;

	for (i = 0; i < PAIRS; i++)
		then[i] = progress[i];
	for (i = 0; i < PAIRS; i++) {
		while (i != but && progress[i] == then[i]) {
			if (rc_ms() > end) {
				fprintf(stderr,
					"FAILED  a pair stands still\n");
				failures++;
				return;
			}
			usleep(1000);
		}
	}
}

/* Another program comes and goes meanwhile. */
static void expect_control(void)
{
	static char buf[65536];
	struct rc rc = {0};
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid) {
		check_survivor(pid, "control calls");
		return;
	}
	rc_open(&rc, 0);
	rc_create(&rc, buf, sizeof(buf));
	rc_destroy(&rc);
	rc_close(&rc);
	_exit(0);
}

static void stop(struct pair *p, int who, unsigned int *seed)
{
	kill(p->pid[who], SIGSTOP);
	expect_progress(p - pairs);
	expect_control();
	usleep((unsigned int)rand_r(seed) % 100000);
	if (rand_r(seed) & 1) {
		kill(p->pid[who], SIGCONT);
		usleep((unsigned int)rand_r(seed) % 20000);
	}
}

static void check_killed(pid_t pid)
{
	int status = reap(pid);

	/* Who was stopped may have lost its connection. */
	if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
	    (stops && !status))
		return;
	fprintf(stderr, "FAILED  %d ended by itself: %#x\n", pid,
		(unsigned int)status);
	failures++;
}

/* ---- the daemon ----------------------------------------------------- */

/* Whoever listens in the runtime directory; 0: nobody. */
static pid_t daemon_pid(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	CHECK(fd >= 0);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/sock",
		 getenv("SFNIC_DIR"));
	if (!connect(fd, (struct sockaddr *)&sun, sizeof(sun)))
		CHECK(!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len));
	close(fd);
	return cred.pid;
}

/* By itself, and not in a way that a debugger would be needed for. */
static void check_ended(pid_t pid)
{
	int status = reap(pid);

	if (status >= 0 && WIFEXITED(status))
		return;
	fprintf(stderr, "FAILED  without a daemon: %d ended with %#x\n", pid,
		(unsigned int)status);
	failures++;
}

static void kill_daemons(int kills, unsigned int *seed)
{
	int n, i;

	for (n = 0; n < kills && failures < 5; n++) {
		pid_t pid;

		for (i = 0; i < PAIRS; i++)
			start_pair(&pairs[i], seed);
		usleep((unsigned int)rand_r(seed) % 60000 + 1);
		pid = daemon_pid();
		if (pid)
			kill(pid, SIGKILL);
		for (i = 0; i < PAIRS; i++) {
			/* Those that came after it know nothing of it. */
			kill(pairs[i].pid[0], SIGTERM);
			kill(pairs[i].pid[1], SIGTERM);
			check_ended(pairs[i].pid[0]);
			check_ended(pairs[i].pid[1]);
		}
	}
	printf("%d kills, %d failures\n", n, failures);
}

int main(int argc, char **argv)
{
	int kills = argc > 2 ? atoi(argv[2]) : 100, n, i;
	unsigned int seed =
		argc > 3 ? (unsigned int)atoi(argv[3]) : (unsigned int)getpid();

	stops = argc > 1 && !strcmp(argv[1], "stop");
	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(progress != MAP_FAILED);

	signal(SIGTERM, on_term); /* theirs, from the beginning */
	printf("seed %u\n", seed);
	fflush(stdout);
	if (argc > 1 && !strcmp(argv[1], "daemon")) {
		kill_daemons(kills, &seed);
		return failures != 0;
	}
	for (i = 0; i < PAIRS; i++)
		start_pair(&pairs[i], &seed);
	for (n = 0; n < kills && failures < 5; n++) {
		struct pair *p = &pairs[rand_r(&seed) % PAIRS];
		int who = rand_r(&seed) & 1;

		/* Some die while they begin, most in the middle of traffic. */
		usleep((unsigned int)rand_r(&seed) % 30000 + 1);
		if (stops)
			stop(p, who, &seed);
		kill(p->pid[who], SIGKILL);
		check_killed(p->pid[who]);
		check_survivor(p->pid[!who], "survivor");
		start_pair(p, &seed);
	}
	/* Killed while they take down, and the others. */
	for (i = 0; i < PAIRS; i++) {
		kill(pairs[i].pid[0], SIGTERM);
		usleep((unsigned int)rand_r(&seed) % 3000);
		kill(pairs[i].pid[0], SIGKILL);
		reap(pairs[i].pid[0]);
		kill(pairs[i].pid[1], SIGTERM);
		check_survivor(pairs[i].pid[1], "at the end");
	}
	printf("%d kills, %d failures\n", n, failures);
	return failures != 0;
}
