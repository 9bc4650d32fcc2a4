/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine under many threads at once, with locks that are real: posters,
 * one poller for all send queues, one receiver for all receive queues, somebody
 * who rings and arms at random, and the timers.  Built with TSan.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rnic_fixture.h"

#define LINKS 4
#define REQUESTS 40000u /* of each link; one in four is a SEND */
#define DEPTH 16
#define TIME_LIMIT 90

#define CHECK(x)                                                           \
	do {                                                               \
		if (!(x)) {                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#x);                                       \
			_exit(1);                                          \
		}                                                          \
	} while (0)

/* ---- a host for threads --------------------------------------------- */

static uint64_t now = 1000000000, events;

static uint64_t op_now(void *host)
{
	(void)host;
	return __atomic_load_n(&now, __ATOMIC_RELAXED);
}

static enum rnic_lock_result op_trylock(void *host, struct rnic_lock *lock)
{
	(void)host;
	return __atomic_exchange_n(&lock->opaque[0], 1, __ATOMIC_ACQUIRE) ?
		       RNIC_LOCK_BUSY :
		       RNIC_LOCKED;
}

static enum rnic_lock_result op_lock(void *host, struct rnic_lock *lock)
{
	while (op_trylock(host, lock) != RNIC_LOCKED)
		sched_yield();
	return RNIC_LOCKED;
}

/* As a mutex does it: rnic_fence_after_unlock() relies on a full fence. */
static void op_unlock(void *host, struct rnic_lock *lock)
{
	(void)host;
	__atomic_exchange_n(&lock->opaque[0], 0, __ATOMIC_SEQ_CST);
}

static void op_event(void *host, const struct rnic_event *event)
{
	(void)host;
	CHECK(event->type == RNIC_EVENT_COMPLETION);
	__atomic_fetch_add(&events, 1, __ATOMIC_RELAXED);
}

/* The ticker runs all the time. */
static void op_timer(void *host, uint64_t deadline)
{
	(void)host;
	(void)deadline;
}

/* ---- the fabric ----------------------------------------------------- */

static struct fx fx;
static struct fx_cq scq, rcq;
static struct fx_end a[LINKS], b[LINKS];
static struct fx_mr am, bm;
static uint64_t completed[LINKS];
static int over;

static void end_new(struct fx_end *e, uint32_t ctx, uint32_t pdn)
{
	memset(e, 0, sizeof(*e));
	e->fx = &fx;
	e->r = fx.r;
	e->ctx = ctx;
	e->pdn = pdn;
	e->init = (struct rnic_qp_init){
		.dev = ctx - 1,
		.type = RNIC_QPT_RC,
		.pdn = pdn,
		.send_cqn = ctx == 1 ? scq.cqn : rcq.cqn,
		.recv_cqn = ctx == 1 ? scq.cqn : rcq.cqn,
		.sq_log_depth = 4,
		.sq_log_stride = 7,
		.rq_log_depth = 4,
		.rq_log_stride = 6,
		.cap = {DEPTH, DEPTH, 4, 3, 64},
	};
	assert_int_equal(rnic_qp_create(fx.r, ctx, &e->init, &e->qpn, &e->mem),
			 0);
	e->sq_next = e->mem.sq_start;
	e->rq_next = e->mem.rq_start;
}

static void set_up(void)
{
	uint32_t i, pdn_a, pdn_b;

	fx_open(&fx, RNIC_INFINIBAND);
	fx.ops.now = op_now;
	fx.ops.trylock = op_trylock;
	fx.ops.lock = op_lock;
	fx.ops.unlock = op_unlock;
	fx.ops.event = op_event;
	fx.ops.timer = op_timer;
	assert_int_equal(rnic_pd_create(fx.r, 1, 0, &pdn_a), 0);
	assert_int_equal(rnic_pd_create(fx.r, 2, 1, &pdn_b), 0);
	fx_cq_new(&scq, fx.r, 1, 0, 8, 0);
	fx_cq_new(&rcq, fx.r, 2, 1, 8, 0);
	for (i = 0; i < LINKS; i++) {
		end_new(&a[i], 1, pdn_a);
		end_new(&b[i], 2, pdn_b);
	}
	for (i = 0; i < LINKS; i++) {
		fx_connect(&a[i], &b[i], RNIC_RTS, &fx_defaults, 1, 1);
		fx_connect(&b[i], &a[i], RNIC_RTS, &fx_defaults, 1, 1);
	}
	am = fx_mr(&a[0], 1 << 16, FX_ALL_ACCESS);
	bm = fx_mr(&b[0], 1 << 16, FX_ALL_ACCESS);
}

/* Byte offsets in the regions; each link and slot has its own. */
static uint64_t at(uint32_t link, uint64_t index)
{
	return 4096 + (link * DEPTH + index % DEPTH) * 64;
}

/* ---- threads -------------------------------------------------------- */

static const uint32_t ops[] = {SF_OP_SEND, SF_OP_WRITE, SF_OP_ATOMIC_FADD,
			       SF_OP_READ};

static void *poster(void *arg)
{
	uint32_t link = (uint32_t)(uintptr_t)arg, i;
	struct fx_wr wr = {
		.flags = SF_WQE_SIGNALED, .rkey = bm.key, .n_sge = 1};
	uint64_t where;

	for (i = 0; i < REQUESTS; i++) {
		while (i - __atomic_load_n(&completed[link],
					   __ATOMIC_ACQUIRE) >=
		       DEPTH)
			sched_yield();
		where = at(link, i);
		memcpy(am.ptr + where, &i, sizeof(i));
		wr.opcode = ops[i % 4];
		wr.remote_addr = bm.addr + (i % 4 == 2 ? 0 : 8192 + where);
		wr.arg0 = 1;
		wr.sge[0] = fx_sge(&am, where, i % 4 == 2 ? 8 : 32);
		fx_send(&a[link], &wr);
	}
	return NULL;
}

static uint32_t link_of(const struct fx_end *ends, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < LINKS && ends[i].qpn != qpn; i++)
		;
	CHECK(i < LINKS);
	return i;
}

static void *poller(void *arg)
{
	uint64_t left = LINKS * REQUESTS;
	struct sf_cqe cqe;
	uint32_t i;

	(void)arg;
	while (left) {
		if (!fx_poll(&scq, &cqe)) {
			sched_yield();
			continue;
		}
		CHECK(!sf_cqe_status(cqe.word));
		i = link_of(a, cqe.qpn);
		CHECK(cqe.wr == a[i].mem.sq_start + completed[i]);
		CHECK(sf_cqe_opcode(cqe.word) == ops[completed[i] % 4]);
		__atomic_fetch_add(&completed[i], 1, __ATOMIC_RELEASE);
		left--;
	}
	return NULL;
}

static void receive(uint32_t link, uint32_t n)
{
	fx_recv_mr(&b[link], n, &bm, at(link, n), 32);
}

static void *receiver(void *arg)
{
	uint32_t left = LINKS * REQUESTS / 4, got[LINKS] = {0}, i, value;
	struct sf_cqe cqe;

	(void)arg;
	while (left) {
		if (!fx_poll(&rcq, &cqe)) {
			sched_yield();
			continue;
		}
		CHECK(!sf_cqe_status(cqe.word));
		i = link_of(b, cqe.qpn);
		CHECK(cqe.wr == got[i]);
		memcpy(&value, bm.ptr + at(i, got[i]), sizeof(value));
		CHECK(value == got[i] * 4);
		receive(i, got[i] + DEPTH);
		got[i]++;
		left--;
	}
	return NULL;
}

static void *ringer(void *arg)
{
	unsigned int seed = 1;
	uint32_t i;

	(void)arg;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		i = rand_r(&seed) % LINKS;
		rnic_sq_ring(fx.r, a[i].qpn);
		rnic_sq_ring(fx.r, b[i].qpn);
		rnic_rq_ring(fx.r, b[i].qpn);
		rnic_cq_arm(fx.r, seed & 256 ? scq.cqn : rcq.cqn);
	}
	return NULL;
}

static void *ticker(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		uint64_t t = __atomic_add_fetch(&now, 100000, __ATOMIC_RELAXED);

		rnic_tick(fx.r, t);
		sched_yield();
	}
	return NULL;
}

static void threads_share_the_engine(void **state)
{
	static void *(*const fn[])(void *) = {poller, receiver, ringer, ringer,
					      ticker};
	pthread_t t[5], p[LINKS];
	struct sf_cq_ctrl *ctrl;
	uint64_t sum;
	uint32_t i;

	(void)state;
	set_up();
	for (i = 0; i < LINKS * DEPTH; i++)
		receive(i % LINKS, i / LINKS);
	ctrl = rnic_at(fx.r, scq.mem.ctrl);
	ctrl->arm = (uint64_t)SF_CQ_ARM_ANY << SF_CQ_ARM_SHIFT;
	alarm(TIME_LIMIT);
	for (i = 0; i < 5; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fn[i], NULL), 0);
	for (i = 0; i < LINKS; i++)
		assert_int_equal(pthread_create(&p[i], NULL, poster,
						(void *)(uintptr_t)i),
				 0);
	for (i = 0; i < LINKS; i++)
		pthread_join(p[i], NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	for (i = 2; i < 5; i++)
		pthread_join(t[i], NULL);
	alarm(0);
	memcpy(&sum, bm.ptr, sizeof(sum));
	assert_int_equal(sum, LINKS * REQUESTS / 4);
	assert_true(events > 0);
	for (i = 0; i < LINKS; i++) {
		assert_int_equal(fx_state(&a[i]), RNIC_RTS);
		assert_int_equal(fx_state(&b[i]), RNIC_RTS);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_share_the_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
