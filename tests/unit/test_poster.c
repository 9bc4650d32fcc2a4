// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A GPU-style poster in plain C threads: several threads on one send queue, no
 * lock, no CAS, no completion queue.  docs quote the part between the marks.
 */
#include <pthread.h>
#include <sched.h>

#include "rnic_fixture.h"

/* [poster] What a posting thread has to know about a queue. */
struct poster {
	char *slots; /* ring of 1 << log_depth slots of 1 << log_stride bytes */
	uint32_t log_depth, log_stride;
	struct sf_send_line *line;
	struct sf_doorbell *doorbell;
	void (*ring)(struct poster *p); /* the notify; none on hardware */
	uint64_t next;			/* index that the next one gets */
};

/* Waits until all below @index have succeeded; false: QP in error. */
static bool poster_wait(struct poster *p, uint64_t index)
{
	uint64_t word;

	/* An error is larger than any index: it ends every wait. */
	while ((word = __atomic_load_n(&p->line->word, __ATOMIC_ACQUIRE)) <
	       index)
		sched_yield();
	return !(word & SF_LINE_ERROR);
}

/* Reserves an index and waits until its slot is free; false: QP in error. */
static bool poster_reserve(struct poster *p, uint64_t *index)
{
	*index = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED);
	return poster_wait(p, *index + 1 - (1ull << p->log_depth));
}

static struct sf_wqe *poster_slot(struct poster *p, uint64_t index)
{
	uint64_t i = index & ((1ull << p->log_depth) - 1);

	return (struct sf_wqe *)(p->slots + (i << p->log_stride));
}

/* The body is in the slot: makes the request real, then tells the device. */
static void poster_commit(struct poster *p, uint64_t index, uint32_t opcode,
			  uint32_t n_sge, uint32_t flags)
{
	struct sf_wqe *wqe = poster_slot(p, index);

	__atomic_store_n(&wqe->commit,
			 sf_commit(opcode, n_sge, flags, index, p->log_depth),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&p->doorbell->value, index + 1, __ATOMIC_RELEASE);
	p->ring(p);
}
/* [/poster] */

/* ---- a host with real locks ----------------------------------------- */

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct rnic_lock),
	       "a mutex fits into the room for a lock");

static void real_init(void *host, struct rnic_lock *lock)
{
	(void)host;
	pthread_mutex_init((pthread_mutex_t *)lock, NULL);
}

static enum rnic_lock_result real_trylock(void *host, struct rnic_lock *lock)
{
	(void)host;
	return pthread_mutex_trylock((pthread_mutex_t *)lock) ? RNIC_LOCK_BUSY :
								RNIC_LOCKED;
}

static enum rnic_lock_result real_lock(void *host, struct rnic_lock *lock)
{
	(void)host;
	pthread_mutex_lock((pthread_mutex_t *)lock);
	return RNIC_LOCKED;
}

static void real_unlock(void *host, struct rnic_lock *lock)
{
	(void)host;
	pthread_mutex_unlock((pthread_mutex_t *)lock);
}

static void no_timer(void *host, uint64_t deadline)
{
	(void)host;
	(void)deadline;
}

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	struct poster p;
};

static struct rig g;

static void ring(struct poster *p)
{
	(void)p;
	rnic_sq_ring(g.a.r, g.a.qpn);
}

static int setup(void **state)
{
	struct fx_opts o = fx_defaults;

	(void)state;
	o.sq_log_stride = SF_SLOT_LOG_MIN;
	memset(&g, 0, sizeof(g));
	fx_open(&g.fx, RNIC_INFINIBAND);
	g.fx.ops.lock_init = real_init;
	g.fx.ops.trylock = real_trylock;
	g.fx.ops.lock = real_lock;
	g.fx.ops.unlock = real_unlock;
	g.fx.ops.timer = no_timer;
	fx_pair(&g.fx, &g.a, &g.b, &o);
	g.am = fx_mr(&g.a, 65536, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.b, 1 << 20, FX_ALL_ACCESS);
	g.p = (struct poster){
		.slots = rnic_at(g.a.r, g.a.mem.queues + g.a.mem.sq),
		.log_depth = o.sq_log_depth,
		.log_stride = o.sq_log_stride,
		.line = fx_line(&g.a),
		.doorbell = rnic_at(g.a.r, g.a.mem.doorbells),
		.ring = ring,
		.next = g.a.mem.sq_start,
	};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx_close(&g.fx);
	return 0;
}

/* ---- the work ------------------------------------------------------- */

#define THREADS 4
#ifndef POSTS
#define POSTS 20000
#endif

struct worker {
	pthread_t thread;
	uint32_t id, posts;
	bool ok;
};

static void body_fadd(struct sf_wqe *wqe, uint32_t id)
{
	wqe->arg0 = 1;
	wqe->rkey = g.bm.key;
	wqe->remote_addr = g.bm.addr + 8 * id;
}

static void *fadd_worker(void *arg)
{
	struct worker *w = arg;
	uint64_t index = 0;
	uint32_t i;

	for (i = 0; i < w->posts; i++) {
		if (!poster_reserve(&g.p, &index))
			return NULL;
		body_fadd(poster_slot(&g.p, index), w->id);
		poster_commit(&g.p, index, SF_OP_ATOMIC_FADD, 0,
			      SF_WQE_NOFETCH);
	}
	w->ok = poster_wait(&g.p, index + 1);
	return NULL;
}

/* Each writes a number of its own to a place of its own. */
static void *write_worker(void *arg)
{
	struct worker *w = arg;
	uint64_t index = 0;
	uint32_t i;

	for (i = 0; i < w->posts; i++) {
		uint64_t value = (uint64_t)w->id << 32 | (i + 1);
		struct sf_wqe *wqe;

		if (!poster_reserve(&g.p, &index))
			return NULL;
		wqe = poster_slot(&g.p, index);
		memcpy(&wqe->sge0, &value, 8);
		wqe->inline_len = 8;
		wqe->remote_addr =
			g.bm.addr + 8 * ((uint64_t)w->id * w->posts + i);
		wqe->rkey = g.bm.key;
		poster_commit(&g.p, index, SF_OP_WRITE, 0, SF_WQE_INLINE);
	}
	w->ok = poster_wait(&g.p, index + 1);
	return NULL;
}

/* Waits for each request and then looks at what it brought. */
static void *read_worker(void *arg)
{
	struct worker *w = arg;
	uint64_t *result = (uint64_t *)(g.am.ptr + 64 * w->id);
	uint64_t index, last = 0;
	uint32_t i;

	for (i = 0; i < w->posts; i++) {
		struct sf_wqe *wqe;

		if (!poster_reserve(&g.p, &index))
			return NULL;
		wqe = poster_slot(&g.p, index);
		body_fadd(wqe, w->id);
		wqe->sge0 = fx_sge(&g.am, 64 * w->id, 8);
		poster_commit(&g.p, index, SF_OP_ATOMIC_FADD, 1, 0);
		if (!poster_wait(&g.p, index + 1) || *result != last++)
			return NULL;
	}
	w->ok = true;
	return NULL;
}

static void work(void *(*fn)(void *), uint32_t posts, bool ok)
{
	struct worker w[THREADS];
	uint32_t i;

	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.id = i, .posts = posts};
		assert_int_equal(pthread_create(&w[i].thread, NULL, fn, &w[i]),
				 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(w[i].ok, ok);
}

/* ---- tests ---------------------------------------------------------- */

static void every_request_of_four_threads_is_executed_once(void **state)
{
	uint64_t *target = (uint64_t *)g.bm.ptr;
	uint32_t i;

	(void)state;
	work(fadd_worker, POSTS, true);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(target[i], POSTS);
	expect_line(&g.a, g.a.mem.sq_start + THREADS * POSTS);
	expect_no_cqe(&g.a.scq);
}

static void every_payload_arrives_where_it_belongs(void **state)
{
	uint64_t *target = (uint64_t *)g.bm.ptr;
	uint32_t posts = POSTS < 20000 ? POSTS : 20000, i, k;

	(void)state;
	work(write_worker, posts, true);
	for (i = 0; i < THREADS; i++)
		for (k = 0; k < posts; k++)
			assert_int_equal(target[i * posts + k],
					 (uint64_t)i << 32 | (k + 1));
}

static void result_is_there_when_the_line_says_so(void **state)
{
	(void)state;
	work(read_worker, POSTS / 4, true);
}

static void error_ends_every_wait(void **state)
{
	(void)state;
	g.bm.key ^= 1;
	work(fadd_worker, POSTS, false);
	assert_true(fx_line(&g.a)->word & SF_LINE_ERROR);
	assert_int_equal(fx_line(&g.a)->failed, g.a.mem.sq_start);
	assert_int_equal(fx_line(&g.a)->status, SF_ST_REM_ACCESS_ERR);
	g.bm.key ^= 1;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(every_request_of_four_threads_is_executed_once),
		T(every_payload_arrives_where_it_belongs),
		T(result_is_there_when_the_line_says_so),
		T(error_ends_every_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
