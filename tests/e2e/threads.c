/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many threads on few objects, and objects that come and go under traffic.
 * threads [SECONDS-PER-CASE [CASE]]
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "pair.h"

#define THREADS 64
#define DEPTH 64

static double limit = 2;
static struct end end;

static void *run_thread(pthread_t *t, void *(*fn)(void *), void *arg)
{
	CHECK(!pthread_create(t, NULL, fn, arg));
	return NULL;
}

static struct ibv_mr *new_mr(void *p, size_t size)
{
	struct ibv_mr *mr = ibv_reg_mr(end.pd, p, size, ALL_ACCESS);

	CHECK(mr);
	return mr;
}

static int post(struct ibv_qp *qp, uint64_t wr_id, int opcode,
		struct ibv_sge *sge, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr =
				   {
					   .wr_id = wr_id,
					   .sg_list = sge,
					   .num_sge = 1,
					   .opcode = opcode,
					   .send_flags = IBV_SEND_SIGNALED,
				   },
			   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

/* ---- one queue pair, one completion queue, many threads --------------- */

#define EACH 200

static struct {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint64_t *target, *results;
	uint32_t rkey;
	uint8_t seen[THREADS * EACH];
	uint32_t polled;
} many;

static void many_poll(void)
{
	struct ibv_wc wc[8];
	int i, n = ibv_poll_cq(many.cq, 8, wc);

	CHECK(n >= 0);
	if (!n)
		sched_yield(); /* there are more threads than CPUs */
	for (i = 0; i < n; i++) {
		CHECK(wc[i].status == IBV_WC_SUCCESS);
		CHECK(wc[i].wr_id < sizeof(many.seen));
		CHECK(!ADD(many.seen[wc[i].wr_id], 1));
	}
	ADD(many.polled, n);
}

static void *many_thread(void *arg)
{
	uint64_t id = (uintptr_t)arg;
	uint32_t i;

	for (i = 0; i < EACH; i++) {
		uint64_t wr_id = id * EACH + i;
		struct ibv_sge sge = {(uintptr_t)&many.results[wr_id], 8,
				      many.mr->lkey};
		int err;

		do {
			err = post(many.qp, wr_id, IBV_WR_ATOMIC_FETCH_AND_ADD,
				   &sge, (uintptr_t)many.target, many.rkey);
			CHECK(!err || err == ENOMEM);
			many_poll();
		} while (err);
	}
	while (LOAD(many.polled) < THREADS * EACH)
		many_poll();
	return NULL;
}

/* The other process only lends its memory and its queue pair. */
static void lend(int to, int from, uint64_t *target)
{
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t words[2], peer;
	char byte;

	end_open(&end);
	cq = new_cq(&end, 16, NULL);
	qp = new_qp(&end, cq, cq, 16);
	mr = new_mr(target, 4096);
	words[0] = qp->qp_num;
	words[1] = mr->rkey;
	CHECK(write(to, words, sizeof(words)) == sizeof(words));
	CHECK(read(from, &peer, sizeof(peer)) == sizeof(peer));
	connect_qp(&end, qp, peer);
	CHECK(write(to, "c", 1) == 1);
	CHECK(read(from, &byte, 1) == 1);
	CHECK(target[0] == THREADS * EACH);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_dereg_mr(mr));
	end_close(&end);
	_exit(0);
}

static void many_posters(void)
{
	uint64_t *target = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t size = sizeof(uint64_t) * THREADS * EACH, i;
	uint8_t *got = calloc(1, THREADS * EACH);
	pthread_t t[THREADS];
	int up[2], down[2], status;
	uint32_t words[2], qpn;
	pid_t child;
	char byte;

	CHECK(target != MAP_FAILED && got);
	CHECK(!pipe(up) && !pipe(down));
	child = fork();
	CHECK(child >= 0);
	if (!child)
		lend(up[1], down[0], target);
	end_open(&end);
	many.target = target; /* same address there */
	CHECK(many.results = malloc(size));
	many.mr = new_mr(many.results, size);
	many.cq = new_cq(&end, 2 * DEPTH, NULL);
	many.qp = new_qp(&end, many.cq, many.cq, DEPTH);
	CHECK(read(up[0], words, sizeof(words)) == sizeof(words));
	many.rkey = words[1];
	qpn = many.qp->qp_num;
	CHECK(write(down[1], &qpn, sizeof(qpn)) == sizeof(qpn));
	connect_qp(&end, many.qp, words[0]);
	CHECK(read(up[0], &byte, 1) == 1);
	for (i = 0; i < THREADS; i++)
		run_thread(&t[i], many_thread, (void *)i);
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	/* Every number was fetched once. */
	for (i = 0; i < THREADS * EACH; i++) {
		CHECK(many.results[i] < THREADS * EACH);
		CHECK(!got[many.results[i]]++);
	}
	CHECK(write(down[1], "e", 1) == 1);
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(!ibv_destroy_qp(many.qp));
	CHECK(!ibv_destroy_cq(many.cq));
	CHECK(!ibv_dereg_mr(many.mr));
	end_close(&end);
	free(many.results);
	free(got);
}

/* ---- queue pairs come and go on a CQ that others use ------------------ */

/* Traffic on a pair of QPs within the process, until `stop`. */
struct traffic {
	pthread_t thread;
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
	uint8_t *buf; /* 2 * 4096: source, target */
	struct ibv_mr *mr;
	uint64_t posted, done;
	int tag; /* high half of wr_id */
};

#define PAIRS 4

static struct traffic traffic[PAIRS];
static struct ibv_cq *shared_cq;
static uint32_t gone; /* churned pairs below it are destroyed */
static int hold;      /* nobody polls */
static int stop;

static void traffic_start(struct traffic *t, struct ibv_cq *cq, int tag)
{
	memset(t, 0, sizeof(*t));
	t->cq = cq;
	t->tag = tag;
	t->a = new_qp(&end, cq, cq, DEPTH);
	t->b = new_qp(&end, cq, cq, DEPTH);
	connect_qp(&end, t->a, t->b->qp_num);
	connect_qp(&end, t->b, t->a->qp_num);
	CHECK(t->buf = aligned_alloc(4096, 8192));
	memset(t->buf, 0, 8192);
	t->mr = new_mr(t->buf, 8192);
}

static void traffic_end(struct traffic *t)
{
	CHECK(!ibv_destroy_qp(t->a));
	CHECK(!ibv_destroy_qp(t->b));
	CHECK(!ibv_dereg_mr(t->mr));
	free(t->buf);
}

static int poll_shared(void)
{
	uint32_t before = LOAD(gone);
	struct ibv_wc wc[4];
	int i, n;

	if (LOAD(hold)) {
		sched_yield();
		return 0;
	}
	n = ibv_poll_cq(shared_cq, 4, wc);
	CHECK(n >= 0);
	for (i = 0; i < n; i++) {
		uint32_t tag = wc[i].wr_id >> 32;

		CHECK(tag <= PAIRS);
		if (tag == PAIRS) { /* never of a QP that is destroyed */
			CHECK((uint32_t)wc[i].wr_id >= before);
			continue;
		}
		CHECK(wc[i].status == IBV_WC_SUCCESS);
		CHECK((uint32_t)wc[i].wr_id < LOAD(traffic[tag].posted));
		ADD(traffic[tag].done, 1);
	}
	return n;
}

static void *traffic_thread(void *arg)
{
	struct traffic *t = arg;
	struct ibv_sge sge = {(uintptr_t)t->buf, 100, t->mr->lkey};
	uint64_t target = (uintptr_t)t->buf + 4096;

	while (!LOAD(stop)) {
		if (LOAD(t->posted) - LOAD(t->done) < DEPTH) {
			uint64_t id =
				(uint64_t)t->tag << 32 | ADD(t->posted, 1);
			int err = post(t->a, id, IBV_WR_RDMA_WRITE, &sge,
				       target, t->mr->rkey);

			/* `done` is counted a bit later than retired. */
			CHECK(!err);
		}
		poll_shared();
	}
	return NULL;
}

static void traffic_finish(void)
{
	int i;

	STORE(stop, 1);
	for (i = 0; i < PAIRS; i++)
		CHECK(!pthread_join(traffic[i].thread, NULL));
	for (i = 0; i < PAIRS; i++) {
		while (traffic[i].done < traffic[i].posted)
			poll_shared();
		traffic_end(&traffic[i]);
	}
	CHECK(!poll_shared());
	CHECK(!ibv_destroy_cq(shared_cq));
	end_close(&end);
	STORE(stop, 0);
}

static void traffic_begin(void)
{
	int i;

	end_open(&end);
	shared_cq = new_cq(&end, 4096, NULL);
	for (i = 0; i < PAIRS; i++) {
		traffic_start(&traffic[i], shared_cq, i);
		run_thread(&traffic[i].thread, traffic_thread, &traffic[i]);
	}
}

/* Destroyed with work outstanding and CQEs that nobody has polled. */
static void qp_churn(void)
{
	double until = seconds() + limit;
	uint32_t n, i;

	traffic_begin();
	for (n = 0; seconds() < until; n++) {
		uint64_t id = (uint64_t)PAIRS << 32 | n;
		struct ibv_recv_wr recv = {.wr_id = id}, *bad;
		struct traffic t;
		struct ibv_sge sge;

		traffic_start(&t, shared_cq, PAIRS);
		sge = (struct ibv_sge){(uintptr_t)t.buf, 0, t.mr->lkey};
		STORE(hold, 1);
		for (i = 0; i < 8; i++)
			CHECK(!ibv_post_recv(t.b, &recv, &bad));
		for (i = 0; i < 4; i++)
			CHECK(!post(t.a, id, IBV_WR_SEND, &sge, 0, 0));
		if (n % 2)
			set_state(t.b, IBV_QPS_ERR);
		traffic_end(&t);
		STORE(gone, n + 1);
		STORE(hold, 0);
	}
	CHECK(n > 3);
	traffic_finish();
	gone = 0;
}

static void cq_resize(void)
{
	double until = seconds() + limit;
	uint32_t n;

	traffic_begin();
	for (n = 0; seconds() < until; n++) {
		int err = ibv_resize_cq(shared_cq, 512 << n % 5);

		CHECK(!err);
		CHECK(shared_cq->cqe == 512 << n % 5);
	}
	CHECK(n > 3);
	traffic_finish();
}

/* ---- memory that comes and goes ---------------------------------------- */

/*
 * Others WRITE to it, READ from it and use it as their own: each time either
 * it works or the QP fails, and after deregistration nothing touches it.
 */
#define MR_THREADS 4

static struct {
	uint8_t *buf; /* registered and deregistered */
	uint8_t *own;
	struct ibv_mr *own_mr;
	uint64_t keys; /* rkey << 32 | lkey of now, or of before */
	uint64_t good, failed;
} mem;

#define MEM_SIZE (1 << 20)

static void wait_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	double until = seconds() + 20;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
	} while (!n && seconds() < until);
	CHECK(n == 1);
}

static void *mr_thread(void *arg)
{
	static const int opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
				      IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	uint64_t id = (uintptr_t)arg;
	struct ibv_cq *cq = new_cq(&end, 16, NULL);
	struct ibv_qp *a = new_qp(&end, cq, cq, 4);
	struct ibv_qp *b = new_qp(&end, cq, cq, 4);
	bool remote = id < 2;

	while (!LOAD(stop)) {
		uint64_t keys = LOAD(mem.keys);
		struct ibv_sge sge = {(uintptr_t)mem.own, MEM_SIZE,
				      mem.own_mr->lkey};
		uint64_t to = (uintptr_t)mem.buf;
		uint32_t rkey = keys >> 32;
		struct ibv_wc wc;

		if (!remote) {
			sge.addr = to;
			sge.lkey = (uint32_t)keys;
			to = (uintptr_t)mem.own;
			rkey = mem.own_mr->rkey;
		}
		if (a->state != IBV_QPS_RTS) {
			set_state(a, IBV_QPS_RESET);
			set_state(b, IBV_QPS_RESET);
			connect_qp(&end, a, b->qp_num);
			connect_qp(&end, b, a->qp_num);
		}
		CHECK(!post(a, id, opcodes[id], &sge, to, rkey));
		wait_one(cq, &wc);
		CHECK(wc.wr_id == id);
		if (wc.status == IBV_WC_SUCCESS) {
			ADD(mem.good, 1);
			continue;
		}
		CHECK(wc.status ==
		      (remote ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR));
		ADD(mem.failed, 1);
		set_state(a, IBV_QPS_ERR);
	}
	CHECK(!ibv_destroy_qp(a));
	CHECK(!ibv_destroy_qp(b));
	CHECK(!ibv_destroy_cq(cq));
	return NULL;
}

static void check_canary(uint8_t value)
{
	uint32_t i;

	for (i = 0; i < MEM_SIZE; i++)
		CHECK(mem.buf[i] == value);
}

static void mr_churn(void)
{
	double until = seconds() + limit;
	pthread_t t[MR_THREADS];
	struct ibv_mr *mr = NULL;
	uint32_t n;
	uintptr_t i;

	end_open(&end);
	memset(&mem, 0, sizeof(mem));
	CHECK(mem.buf = aligned_alloc(4096, MEM_SIZE));
	CHECK(mem.own = aligned_alloc(4096, MEM_SIZE));
	memset(mem.own, 1, MEM_SIZE);
	memset(mem.buf, 1, MEM_SIZE);
	mem.own_mr = new_mr(mem.own, MEM_SIZE);
	for (n = 0; seconds() < until; n++) {
		mr = new_mr(mem.buf, MEM_SIZE);
		STORE(mem.keys, (uint64_t)mr->rkey << 32 | mr->lkey);
		if (!n)
			for (i = 0; i < MR_THREADS; i++)
				run_thread(&t[i], mr_thread, (void *)i);
		usleep(n % 8 * 1000);
		CHECK(!ibv_dereg_mr(mr));
		memset(mem.buf, 2 + n % 200, MEM_SIZE);
		check_canary(2 + n % 200);
	}
	STORE(stop, 1);
	for (i = 0; i < MR_THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	STORE(stop, 0);
	printf("  %u registrations, %llu good, %llu failed\n", n,
	       (unsigned long long)mem.good, (unsigned long long)mem.failed);
	CHECK(!ibv_dereg_mr(mem.own_mr));
	end_close(&end);
	free(mem.buf);
	free(mem.own);
}

/* ---- ERR in the middle of posting -------------------------------------- */

#define ERR_THREADS 8

static struct {
	struct ibv_qp *qp;
	struct traffic t;
	uint64_t posted, polled, flushed;
	int hold, held;
} err;

/* What was posted without an error completes once, whatever happens. */
static void *err_thread(void *arg)
{
	struct ibv_sge sge = {(uintptr_t)err.t.buf, 64, err.t.mr->lkey};

	(void)arg;
	while (!LOAD(stop)) {
		if (LOAD(err.hold)) {
			ADD(err.held, 1);
			while (LOAD(err.hold))
				usleep(50);
			ADD(err.held, -1);
		}
		if (!post(err.t.a, 1, IBV_WR_RDMA_WRITE, &sge,
			  (uintptr_t)err.t.buf + 4096, err.t.mr->rkey))
			ADD(err.posted, 1);
	}
	return NULL;
}

static void *err_poller(void *arg)
{
	(void)arg;
	while (!LOAD(stop)) {
		struct ibv_wc wc[4];
		int i, n = ibv_poll_cq(err.t.cq, 4, wc);

		CHECK(n >= 0);
		for (i = 0; i < n; i++) {
			CHECK(wc[i].status == IBV_WC_SUCCESS ||
			      wc[i].status == IBV_WC_WR_FLUSH_ERR);
			ADD(err.flushed, wc[i].status != 0);
		}
		ADD(err.polled, n);
	}
	return NULL;
}

static void qp_errors(void)
{
	double until = seconds() + limit, wait;
	pthread_t t[ERR_THREADS], poller;
	uint32_t n, i;

	end_open(&end);
	memset(&err, 0, sizeof(err));
	traffic_start(&err.t, new_cq(&end, 2 * DEPTH, NULL), 0);
	run_thread(&poller, err_poller, NULL);
	for (i = 0; i < ERR_THREADS; i++)
		run_thread(&t[i], err_thread, NULL);
	for (n = 0; seconds() < until; n++) {
		usleep(1000);
		set_state(err.t.a, IBV_QPS_ERR);
		usleep(1000); /* all goes on posting */
		STORE(err.hold, 1);
		while (LOAD(err.held) < ERR_THREADS)
			usleep(50);
		wait = seconds() + 20;
		while (LOAD(err.polled) < LOAD(err.posted))
			CHECK(seconds() < wait);
		CHECK(LOAD(err.polled) == LOAD(err.posted));
		set_state(err.t.a, IBV_QPS_RESET);
		set_state(err.t.b, IBV_QPS_RESET);
		connect_qp(&end, err.t.a, err.t.b->qp_num);
		connect_qp(&end, err.t.b, err.t.a->qp_num);
		STORE(err.hold, 0);
		while (LOAD(err.held))
			usleep(50);
	}
	STORE(stop, 1);
	for (i = 0; i < ERR_THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(!pthread_join(poller, NULL));
	STORE(stop, 0);
	printf("  %u times ERR, %llu of %llu flushed\n", n,
	       (unsigned long long)err.flushed, (unsigned long long)err.posted);
	CHECK(err.flushed);
	traffic_end(&err.t);
	CHECK(!ibv_destroy_cq(err.t.cq));
	end_close(&end);
}

/* ---- a thread that never leaves the queue ------------------------------ */

/*
 * While one thread posts long messages without a pause, control calls on the
 * same objects neither fail nor wait for ever.
 */
static void *long_thread(void *arg)
{
	struct traffic *t = arg;
	struct ibv_sge sge = {(uintptr_t)t->buf, 4 << 20, t->mr->lkey};

	while (!LOAD(stop)) {
		struct ibv_wc wc;

		if (!post(t->a, 1, IBV_WR_RDMA_WRITE, &sge,
			  (uintptr_t)t->buf + (4 << 20), t->mr->rkey))
			t->posted++;
		if (t->posted - t->done > 8)
			t->done += ibv_poll_cq(t->cq, 1, &wc);
	}
	return NULL;
}

static void no_starvation(void)
{
	double until = seconds() + limit;
	struct traffic t = {0};
	uint32_t n;

	end_open(&end);
	t.cq = new_cq(&end, 2 * DEPTH, NULL);
	t.a = new_qp(&end, t.cq, t.cq, DEPTH);
	t.b = new_qp(&end, t.cq, t.cq, DEPTH);
	connect_qp(&end, t.a, t.b->qp_num);
	connect_qp(&end, t.b, t.a->qp_num);
	CHECK(t.buf = aligned_alloc(4096, 8 << 20));
	memset(t.buf, 1, 8 << 20);
	t.mr = new_mr(t.buf, 8 << 20);
	run_thread(&t.thread, long_thread, &t);
	for (n = 0; seconds() < until; n++) {
		uint8_t bytes[64];
		struct ibv_mr *mr = new_mr(bytes, sizeof(bytes));
		int res = ibv_dereg_mr(mr);

		CHECK(!res);
		set_state(t.a, IBV_QPS_SQD);
		set_state(t.a, IBV_QPS_RTS);
	}
	set_state(t.b, IBV_QPS_ERR);
	set_state(t.a, IBV_QPS_RESET);
	STORE(stop, 1);
	CHECK(!pthread_join(t.thread, NULL));
	STORE(stop, 0);
	CHECK(!ibv_destroy_qp(t.a));
	CHECK(!ibv_destroy_qp(t.b));
	CHECK(!ibv_dereg_mr(t.mr));
	CHECK(!ibv_destroy_cq(t.cq));
	end_close(&end);
	free(t.buf);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"many posters and pollers", many_posters},
	{"queue pairs come and go", qp_churn},
	{"a completion queue is resized", cq_resize},
	{"memory regions come and go", mr_churn},
	{"ERR in the middle of posting", qp_errors},
	{"control calls next to a busy thread", no_starvation},
};

int main(int argc, char **argv)
{
	size_t i, n = sizeof(cases) / sizeof(cases[0]);
	double start = seconds();

	if (argc > 1)
		limit = atof(argv[1]);
	alarm(120 + 10 * limit);
	for (i = 0; i < n; i++) {
		if (argc > 2 && (size_t)atoi(argv[2]) != i)
			continue;
		start = seconds();
		cases[i].run();
		printf("%s: %.1f s\n", cases[i].name, seconds() - start);
		fflush(stdout);
	}
	printf("%zu cases, all right\n", n);
	return 0;
}
