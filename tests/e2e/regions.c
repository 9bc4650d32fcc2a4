/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory of every kind and with every thing that a program may do to
 * it: overlapping regions, neighbours, files, stacks, unmapping, MADV_DONTNEED,
 * writers during registration; 8-byte atomics of several processes.  A second
 * process is the peer: what it reads and writes is what the owner has and sees.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "rc.h"

#define PAGE 4096ul
#define SOON_MS 20000
#define SCRATCH (4 << 20)
#define FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW (PROT_READ | PROT_WRITE)

static struct rc rc;
static int sock;

/* ---- the peer ------------------------------------------------------- */

enum what { WHAT_READ, WHAT_WRITE, WHAT_ADD };

struct order {
	int what;
	uint32_t len;
	uint64_t addr;
	uint32_t rkey;
	uint32_t value; /* WRITE: of each byte; READ: expected; ADD: times */
};

static void start(uint8_t *scratch)
{
	struct rc_address own, peer;

	rc_open(&rc, 0);
	rc_create(&rc, scratch, SCRATCH);
	own = rc_address(&rc);
	CHECK(write(sock, &own, sizeof(own)) == sizeof(own));
	CHECK(recv(sock, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	rc_connect(&rc, &peer);
}

static void back_to_work(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct rc_address peer = rc.peer;

	CHECK(!ibv_modify_qp(rc.qp, &attr, IBV_QP_STATE));
	rc_connect(&rc, &peer);
}

static int obey(const struct order *o, uint8_t *scratch)
{
	struct ibv_wc wc;
	int status = IBV_WC_SUCCESS;
	uint32_t i;

	rc.peer.addr = o->addr;
	rc.peer.rkey = o->rkey;
	if (o->what == WHAT_ADD) {
		for (i = 0; i < o->value && !status; i++) {
			CHECK(!rc_post(&rc, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8));
			status = rc_wait(&rc, &wc, SOON_MS);
		}
		return status;
	}
	memset(scratch, o->what == WHAT_WRITE ? (int)o->value : 0, o->len);
	CHECK(!rc_post(&rc, o->what == WHAT_WRITE ? IBV_WR_RDMA_WRITE :
						    IBV_WR_RDMA_READ,
		       0, o->len));
	status = rc_wait(&rc, &wc, SOON_MS);
	for (i = 0; o->what == WHAT_READ && !status && i < o->len; i++)
		if (scratch[i] != (uint8_t)o->value)
			return 1000;
	return status;
}

static void peer_process(void)
{
	uint8_t *scratch = mmap(NULL, SCRATCH, RW, FLAGS, -1, 0);
	struct order o;

	start(scratch);
	while (recv(sock, &o, sizeof(o), MSG_WAITALL) == sizeof(o)) {
		int status = obey(&o, scratch);

		CHECK(write(sock, &status, sizeof(status)) == sizeof(status));
		CHECK(recv(sock, &status, 4, MSG_WAITALL) == 4);
		if (status)
			back_to_work();
		CHECK(write(sock, &status, sizeof(status)) == sizeof(status));
	}
	rc_destroy(&rc);
	rc_close(&rc);
	_exit(0);
}

/* ---- the owner ------------------------------------------------------ */

/* The status that the peer's request had. */
static int tell(int what, const struct ibv_mr *mr, const void *at, size_t len,
		uint32_t value)
{
	struct order o = {what, (uint32_t)len, (uintptr_t)at, mr->rkey, value};
	int status, again;

	CHECK(write(sock, &o, sizeof(o)) == sizeof(o));
	CHECK(recv(sock, &status, 4, MSG_WAITALL) == 4);
	CHECK(status != 1000);
	/* Both start again after an error. */
	again = status != IBV_WC_SUCCESS;
	if (again)
		back_to_work();
	CHECK(write(sock, &again, 4) == 4);
	CHECK(recv(sock, &again, 4, MSG_WAITALL) == 4);
	return status;
}

static bool all(const uint8_t *p, size_t len, int value)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != (uint8_t)value)
			return false;
	return true;
}

/* Both directions, of this memory. */
static void exercise(const struct ibv_mr *mr, uint8_t *p, size_t len)
{
	memset(p, 21, len);
	CHECK(tell(WHAT_READ, mr, p, len, 21) == IBV_WC_SUCCESS);
	CHECK(tell(WHAT_WRITE, mr, p, len, 22) == IBV_WC_SUCCESS);
	CHECK(all(p, len, 22));
	p[0] = 21;
	CHECK(tell(WHAT_READ, mr, p, 1, 21) == IBV_WC_SUCCESS);
}

static struct ibv_mr *reg(void *p, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(rc.pd, p, len, access);

	CHECK(mr);
	return mr;
}

static uint8_t *map(size_t len)
{
	uint8_t *p = mmap(NULL, len, RW, FLAGS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* ---- cases ---------------------------------------------------------- */

/* Pieces of one mapping, many times, given back in another order. */
static void overlapping(void)
{
	enum { N = 40 };
	size_t len = 64 * PAGE, off[N], n[N], i, round;
	struct ibv_mr *mr[N];
	uint8_t *p = map(len);

	for (round = 0; round < 5; round++) {
		memset(p, 3, len);
		for (i = 0; i < N; i++) {
			off[i] = (size_t)rand() % (len - 1);
			n[i] = 1 + (size_t)rand() % (len - off[i]);
			mr[i] = reg(p + off[i], n[i], RC_ALL);
		}
		CHECK(all(p, len, 3));
		for (i = 0; i < N; i++)
			exercise(mr[i], p + off[i], n[i]);
		for (i = 0; i < N; i++) {
			size_t j = (i * 7 + round) % N;

			CHECK(!ibv_dereg_mr(mr[j]));
			j = ((i + 1) * 7 + round) % N;
			if (i + 1 < N)
				exercise(mr[j], p + off[j], n[j]);
		}
		memset(p, 5, len);
		CHECK(all(p, len, 5));
	}
	munmap(p, len);
}

/* What lies before and behind is nobody's business. */
static void neighbours(void)
{
	enum { N = 200 };
	uint8_t *p[N];
	struct ibv_mr *mr[N];
	size_t len[N], i;

	for (i = 0; i < N; i++) {
		len[i] = 1 + (size_t)rand() % (i % 10 ? 3000 : 40000);
		CHECK(p[i] = malloc(len[i]));
		memset(p[i], (int)i, len[i]);
	}
	for (i = 0; i < N; i += 2)
		mr[i] = reg(p[i], len[i], RC_ALL);
	for (i = 0; i < N; i += 2) {
		CHECK(tell(WHAT_WRITE, mr[i], p[i], len[i], (uint8_t)~i) ==
		      IBV_WC_SUCCESS);
		if (i % 8 == 0)
			CHECK(tell(WHAT_WRITE, mr[i], p[i] + 1, len[i], 1) ==
			      IBV_WC_REM_ACCESS_ERR);
	}
	for (i = 0; i < N; i++)
		CHECK(all(p[i], len[i], (int)(i % 2 ? i : ~i)));
	for (i = 0; i < N; i += 2) {
		CHECK(!ibv_dereg_mr(mr[i]));
		free(p[i]);
		CHECK(p[i] = realloc(NULL, len[i] + 5000));
		memset(p[i], 1, len[i] + 5000);
	}
	for (i = 1; i < N; i += 2)
		CHECK(all(p[i], len[i], (int)i));
	for (i = 0; i < N; i++)
		free(p[i]);
}

/* realloc of registered memory keeps what the program sees. */
static void grows(void)
{
	size_t len = 1 << 20;
	uint8_t *p = malloc(len), *q;
	struct ibv_mr *mr;

	CHECK(p);
	mr = reg(p, len, RC_ALL);
	exercise(mr, p, len);
	memset(p, 6, len);
	CHECK(q = realloc(p, 4 * len));
	CHECK(all(q, len, 6));
	memset(q, 7, 4 * len);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(all(q, 4 * len, 7));
	free(q);
	mr = reg(q = map(len), len, RC_ALL);
	memset(q, 8, len);
	p = mremap(q, len, 2 * len, MREMAP_MAYMOVE);
	if (p != MAP_FAILED) {
		CHECK(all(p, len, 8));
		memset(p, 9, 2 * len);
		q = p;
		len *= 2;
	}
	CHECK(!ibv_dereg_mr(mr));
	CHECK(len == 1 << 20 || all(q, len, 9));
	munmap(q, len);
}

/* After the last deregistration memory is as before. */
static void dontneed(void)
{
	size_t len = 32 * PAGE;
	uint8_t *p = map(len);
	struct ibv_mr *mr = reg(p, len, RC_ALL), *part;

	part = reg(p + PAGE, PAGE, RC_ALL);
	exercise(mr, p, len);
	exercise(part, p + PAGE, PAGE);
	CHECK(!ibv_dereg_mr(mr));
	exercise(part, p + PAGE, PAGE);
	CHECK(!ibv_dereg_mr(part));
	memset(p, 1, len);
	CHECK(!madvise(p, len, MADV_DONTNEED));
	CHECK(all(p, len, 0));
	mr = reg(p, len, RC_ALL);
	CHECK(all(p, len, 0));
	exercise(mr, p, len);
	CHECK(!ibv_dereg_mr(mr));
	munmap(p, len);
}

/* Unmapped first, deregistered later; something else at the same address. */
static void unmapped(void)
{
	size_t len = 16 * PAGE;
	int i;

	for (i = 0; i < 20; i++) {
		uint8_t *p = map(len), *q;
		struct ibv_mr *old = reg(p, len, RC_ALL), *mr;

		exercise(old, p, len);
		CHECK(!munmap(p, i & 1 ? len : len / 2));
		q = mmap(p, len, RW, FLAGS | MAP_FIXED, -1, 0);
		CHECK(q == p);
		if (!(i & 1))
			CHECK(all(q, len / 2, 0));
		else
			CHECK(all(q, len, 0));
		mr = reg(q, len, RC_ALL);
		exercise(mr, q, len);
		if (i & 2) {
			CHECK(!ibv_dereg_mr(old));
			exercise(mr, q, len);
			CHECK(!ibv_dereg_mr(mr));
		} else {
			CHECK(!ibv_dereg_mr(mr));
			memset(q, 4, len);
			CHECK(!ibv_dereg_mr(old));
			CHECK(all(q, len, 4));
		}
		munmap(q, len);
	}
}

static void read_only(void)
{
	size_t len = 8 * PAGE;
	uint8_t *p = map(len);
	struct ibv_mr *mr;

	memset(p, 17, len);
	CHECK(!mprotect(p, len, PROT_READ));
	mr = reg(p, len, IBV_ACCESS_REMOTE_READ);
	CHECK(tell(WHAT_READ, mr, p, len, 17) == IBV_WC_SUCCESS);
	CHECK(tell(WHAT_WRITE, mr, p, len, 1) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_reg_mr(rc.pd, p, len, RC_ALL));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!mprotect(p, len, RW));
	mr = reg(p, len, RC_ALL);
	exercise(mr, p, len);
	/* Taken away while registered: an error for the peer at most. */
	memset(p, 18, len);
	CHECK(!mprotect(p, len, PROT_READ));
	tell(WHAT_READ, mr, p, len, 18);
	CHECK(!mprotect(p, len, RW));
	CHECK(!ibv_dereg_mr(mr));
	munmap(p, len);
	/* The program's own constants. */
	mr = reg((void *)"constant", 8, IBV_ACCESS_REMOTE_READ);
	CHECK(!ibv_dereg_mr(mr));
}

/* Files: private, shared, and memory that is shared already. */
static void files(void)
{
	char name[] = "/tmp/e2e-regions-XXXXXX";
	size_t len = 16 * PAGE;
	uint8_t *priv, *shared, *anon;
	struct ibv_mr *mr;
	int fd = mkstemp(name);

	CHECK(fd >= 0 && !unlink(name) && !ftruncate(fd, (off_t)len));
	shared = mmap(NULL, len, RW, MAP_SHARED, fd, 0);
	priv = mmap(NULL, len, RW, MAP_PRIVATE, fd, 0);
	anon = mmap(NULL, len, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && priv != MAP_FAILED && anon != MAP_FAILED);
	mr = reg(priv, len, RC_ALL);
	exercise(mr, priv, len);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(all(shared, len, 0));
	mr = reg(shared, len, RC_ALL);
	exercise(mr, shared, len);
	memset(shared, 33, len);
	CHECK(!ibv_dereg_mr(mr));
	munmap(shared, len);
	shared = mmap(NULL, len, RW, MAP_SHARED, fd, 0);
	CHECK(shared != MAP_FAILED && all(shared, len, 33));
	mr = reg(anon, len, RC_ALL);
	if (!fork()) {
		memset(anon, 44, len);
		_exit(0);
	}
	wait(NULL);
	CHECK(tell(WHAT_READ, mr, anon, len, 44) == IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr));
	munmap(anon, len);
	munmap(priv, len);
	munmap(shared, len);
	close(fd);
}

static void stack(void)
{
	uint8_t small[100], large[256 << 10];
	struct ibv_mr *a = reg(small, sizeof(small), RC_ALL);
	struct ibv_mr *b = reg(large, sizeof(large), RC_ALL);

	exercise(a, small, sizeof(small));
	exercise(b, large, sizeof(large));
	CHECK(!ibv_dereg_mr(a));
	CHECK(!ibv_dereg_mr(b));
}

static void *stack_thread(void *arg)
{
	(void)arg;
	stack();
	return NULL;
}

static void thread_stack(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, stack_thread, NULL));
	pthread_join(t, NULL);
}

/* A mapping of many pieces, with holes in what is writable. */
static void pieces(void)
{
	size_t n = 200, len = n * PAGE, i;
	uint8_t *p = map(len);
	struct ibv_mr *mr;

	for (i = 0; i < n; i += 2) {
		CHECK(mmap(p + i * PAGE, PAGE, RW,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		      MAP_FAILED);
	}
	mr = reg(p, len, RC_ALL);
	exercise(mr, p, len);
	CHECK(!ibv_dereg_mr(mr));
	munmap(p, len);
}

/* Writers that do not know of registration lose nothing. */
#define WRITERS 3
static int running;
static uint64_t *counters; /* one line each, all over the region */
#define LINES 4096

static void *writer(void *arg)
{
	uint64_t sum = 0, i, first = (uintptr_t)arg;

	while (__atomic_load_n(&running, __ATOMIC_RELAXED))
		for (i = first; i < LINES; i += WRITERS) {
			counters[i * 8]++;
			sum++;
		}
	return (void *)sum;
}

static void writers(void)
{
	uint64_t sum = 0, found = 0, i;
	size_t len = LINES * 64;
	pthread_t t[WRITERS];
	void *ret;

	counters = (uint64_t *)map(len);
	running = 1;
	for (i = 0; i < WRITERS; i++)
		CHECK(!pthread_create(&t[i], NULL, writer, (void *)i));
	for (i = 0; i < 50; i++) {
		struct ibv_mr *mr = reg(counters, len, RC_ALL);

		CHECK(tell(WHAT_READ, mr, (uint8_t *)(counters + 1), 8, 0) ==
		      IBV_WC_SUCCESS);
		CHECK(!ibv_dereg_mr(mr));
	}
	__atomic_store_n(&running, 0, __ATOMIC_RELAXED);
	for (i = 0; i < WRITERS; i++) {
		pthread_join(t[i], &ret);
		sum += (uint64_t)ret;
	}
	for (i = 0; i < LINES; i++)
		found += counters[i * 8];
	CHECK(found == sum);
	munmap(counters, len);
}

/* Aligned, and where a region's pages are its own, and where they are not. */
static void atomics(void)
{
	uint8_t *p = map(4 * PAGE);
	uint64_t *word[] = {(uint64_t *)p, (uint64_t *)(p + 3 * PAGE - 8),
			    malloc(64)};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct ibv_mr *mr = i < 2 ? reg(p, 4 * PAGE, RC_ALL) :
					    reg(word[i], 64, RC_ALL);

		*word[i] = 1000;
		CHECK(tell(WHAT_ADD, mr, word[i], 8, 500) == IBV_WC_SUCCESS);
		CHECK(*word[i] == 1500);
		CHECK(!ibv_dereg_mr(mr));
	}
	free(word[2]);
	munmap(p, 4 * PAGE);
}

/* ---- atomics of several processes ----------------------------------- */

#define ADDERS 4
#define ADDS 2000

static void adder(int s)
{
	struct rc_address own, peer;
	struct rc c = {0};
	static uint64_t result[8];
	struct ibv_wc wc;
	int i;

	rc_open(&c, 0);
	rc_create(&c, result, sizeof(result));
	own = rc_address(&c);
	CHECK(write(s, &own, sizeof(own)) == sizeof(own));
	CHECK(recv(s, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	rc_connect(&c, &peer);
	CHECK(recv(s, &own, 1, MSG_WAITALL) == 1);
	for (i = 0; i < ADDS; i++) {
		CHECK(!rc_post(&c, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8));
		CHECK(rc_wait(&c, &wc, SOON_MS) == IBV_WC_SUCCESS);
	}
	rc_destroy(&c);
	rc_close(&c);
	_exit(0);
}

static void exact_sum(void *place, size_t len)
{
	struct rc c[ADDERS] = {0}, owner = {0};
	struct ibv_mr *mr;
	uint64_t *word = place;
	int s[ADDERS][2], i, status;

	for (i = 0; i < ADDERS; i++) {
		pid_t pid;

		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s[i]));
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			adder(s[i][0]);
	}
	rc_open(&owner, 0);
	CHECK(mr = ibv_reg_mr(owner.pd, place, len, RC_ALL));
	*word = 0;
	for (i = 0; i < ADDERS; i++) {
		struct rc_address peer, own;

		c[i] = owner;
		rc_create(&c[i], NULL, 0);
		c[i].mr = mr;
		own = rc_address(&c[i]);
		c[i].mr = NULL;
		CHECK(recv(s[i][1], &peer, sizeof(peer), MSG_WAITALL) ==
		      sizeof(peer));
		rc_connect(&c[i], &peer);
		CHECK(write(s[i][1], &own, sizeof(own)) == sizeof(own));
	}
	for (i = 0; i < ADDERS; i++)
		CHECK(write(s[i][1], "", 1) == 1);
	for (i = 0; i < ADDERS; i++) {
		CHECK(wait(&status) > 0 && !status);
		close(s[i][0]);
		close(s[i][1]);
	}
	if (*word != (uint64_t)ADDERS * ADDS) {
		fprintf(stderr, "sum %llu\n", (unsigned long long)*word);
		_exit(1);
	}
	for (i = 0; i < ADDERS; i++)
		rc_destroy(&c[i]);
	CHECK(!ibv_dereg_mr(mr));
	rc_close(&owner);
}

static void sums(void)
{
	uint8_t *page = map(2 * PAGE), *shared;
	uint64_t local[8];

	exact_sum(page, 2 * PAGE); /* pages of its own */
	exact_sum(local, sizeof(local)); /* part of a page */
	shared = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	exact_sum(shared, PAGE);
	munmap(shared, PAGE);
	munmap(page, 2 * PAGE);
}

static const struct {
	const char *name;
	void (*fn)(void);
} tests[] = {
	{"overlapping", overlapping}, {"neighbours", neighbours},
	{"grows", grows},	      {"dontneed", dontneed},
	{"unmapped", unmapped},	      {"read_only", read_only},
	{"files", files},	      {"stack", stack},
	{"thread_stack", thread_stack}, {"pieces", pieces},
	{"writers", writers},	      {"atomics", atomics},
	{"sums", sums},
};

/* regions [CASE]: all of them without one */
int main(int argc, char **argv)
{
	static uint8_t scratch[SCRATCH] __attribute__((aligned(4096)));
	int s[2], status;
	size_t i, n = 0;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	pid = fork();
	CHECK(pid >= 0);
	alarm(110);
	sock = s[!pid];
	close(s[!!pid]);
	if (!pid)
		peer_process();
	start(scratch);
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc > 1 && strcmp(argv[1], tests[i].name))
			continue;
		fprintf(stderr, "%s\n", tests[i].name);
		tests[i].fn();
		n++;
	}
	shutdown(sock, SHUT_RDWR);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	rc_destroy(&rc);
	rc_close(&rc);
	printf("%zu cases\n", n);
	return 0;
}
