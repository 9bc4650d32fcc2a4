// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sf_gda.h in host threads against the RNIC core: the functions that a kernel
 * uses, many posters, and everything that goes wrong on a queue.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rnic_fixture.h"

static void rest(void);
#define SF_GDA_PAUSE() rest()
#include "scalefabric/sf_gda.h"

#define MANY 64
#define FOREVER 100000000u /* looks: minutes */

/* ---- a host for threads --------------------------------------------- */

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

/* An exchange, as the core expects: see rnic_fence_after_unlock(). */
static void op_unlock(void *host, struct rnic_lock *lock)
{
	(void)host;
	__atomic_exchange_n(&lock->opaque[0], 0, __ATOMIC_SEQ_CST);
}

static void op_init(void *host, struct rnic_lock *lock)
{
	op_unlock(host, lock);
}

static void op_timer(void *host, uint64_t deadline)
{
	(void)host;
	(void)deadline;
}

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	struct sf_gda_qp q;
	uint64_t *target;
};

static struct rig g;

/* What an exporter of the queue does; again after RESET. */
static void export(void)
{
	uint64_t start = fx_line(&g.a)->word & SF_LINE_INDEX_MASK;

	g.q = (struct sf_gda_qp){
		.version = SF_GDA_VERSION,
		.size = sizeof(g.q),
		.qpn = g.a.qpn,
		.polls = FOREVER,
		.slots = (uintptr_t)fx_slot(&g.a, 0),
		.log_depth = g.a.init.sq_log_depth,
		.log_stride = g.a.init.sq_log_stride,
		.line = (uintptr_t)fx_line(&g.a),
		.doorbell = (uintptr_t)rnic_at(g.a.r, g.a.mem.doorbells),
		.next = start,
		.done = start,
	};
}

static void set_up(uint32_t log_depth, uint32_t log_stride)
{
	struct fx_opts o = fx_defaults;

	o.sq_log_depth = log_depth;
	o.sq_log_stride = log_stride;
	memset(&g, 0, sizeof(g));
	fx_open(&g.fx, RNIC_INFINIBAND);
	g.fx.ops.lock_init = op_init;
	g.fx.ops.trylock = op_trylock;
	g.fx.ops.lock = op_lock;
	g.fx.ops.unlock = op_unlock;
	g.fx.ops.timer = op_timer;
	fx_pair(&g.fx, &g.a, &g.b, &o);
	g.am = fx_mr(&g.a, 65536, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.b, 65536, FX_ALL_ACCESS);
	g.target = (uint64_t *)g.bm.ptr;
	export();
}

static int shallow(void **state)
{
	(void)state;
	set_up(1, SF_SLOT_LOG_MIN);
	return 0;
}

static int deep(void **state)
{
	(void)state;
	set_up(4, 7);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx_close(&g.fx);
	return 0;
}

/* The queue as it is after @index requests; the ring holds the lap before. */
static void start_at(uint64_t index)
{
	struct rnic_requester *req = &fx_qp(&g.a)->req;
	uint32_t depth = 1u << g.q.log_depth, i;

	req->una[req->una_sel & 1].index = index;
	req->cur = index;
	fx_line(&g.a)->word = index & SF_LINE_INDEX_MASK;
	export();
	g.q.next = index;
	for (i = 0; i < depth; i++)
		fx_slot(&g.a, i)->commit = sf_commit(
			SF_OP_NOP, 0, 0, index - depth + i, g.q.log_depth);
}

/*
 * More posters than CPUs: who waits for room sleeps until it is his turn, or it
 * would take the others' time.
 */
#define TURNS 256
static __thread const uint64_t *my_ticket;
static struct {
	uint32_t turn, waiting;
} seat[TURNS];

static void rest(void)
{
	struct timespec ms = {0, 1000000};
	uint64_t index;
	uint32_t turn;

	if (!my_ticket) {
		sched_yield();
		return;
	}
	index = *my_ticket;
	turn = load_acquire(&seat[index % TURNS].turn);
	__atomic_fetch_add(&seat[index % TURNS].waiting, 1, __ATOMIC_SEQ_CST);
	if (sf_gda_fits(&g.q, index + 1, load_acquire(&fx_line(&g.a)->word)))
		sched_yield();
	else
		syscall(SYS_futex, &seat[index % TURNS].turn,
			FUTEX_WAIT_PRIVATE, turn, &ms);
	__atomic_fetch_sub(&seat[index % TURNS].waiting, 1, __ATOMIC_SEQ_CST);
}

static void your_turn(uint64_t index)
{
	if (!load_acquire(&seat[index % TURNS].waiting))
		return;
	__atomic_fetch_add(&seat[index % TURNS].turn, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &seat[index % TURNS].turn, FUTEX_WAKE_PRIVATE, 1);
}

/* The device looks. */
static void look(void)
{
	uint64_t word, i;

	rnic_sq_ring(g.a.r, g.a.qpn);
	word = load_acquire(&fx_line(&g.a)->word);
	for (i = 0; i < 2; i++)
		your_turn(word + i);
}

static struct sf_gda_mem remote(uint64_t off)
{
	return (struct sf_gda_mem){g.bm.addr + off, g.bm.key};
}

static struct sf_gda_mem own(uint64_t off)
{
	return (struct sf_gda_mem){g.am.addr + off, g.am.key};
}

static uint64_t *own_word(uint64_t off)
{
	return (uint64_t *)(g.am.ptr + off);
}

/* ---- every function ------------------------------------------------- */

static void put_get_and_atomics_do_what_they_say(void **state)
{
	uint64_t t, data[4] = {11, 12, 13, 14};

	(void)state;
	*own_word(0) = 4711;
	assert_int_equal(sf_gda_put(&g.q, remote(8), own(0), 8, 0, &t), 0);
	assert_int_equal(sf_gda_test(&g.q, t), SF_GDA_AGAIN);
	look();
	assert_int_equal(sf_gda_test(&g.q, t), 0);
	assert_int_equal(g.target[1], 4711);

	assert_int_equal(sf_gda_put_inline(&g.q, remote(64), data, 28, 0, &t),
			 0);
	assert_int_equal(sf_gda_add(&g.q, remote(8), 1, 0, &t), 0);
	assert_int_equal(sf_gda_fetch_add(&g.q, remote(8), 2, own(16), 0, &t),
			 0);
	assert_int_equal(sf_gda_cas(&g.q, remote(8), 4714, 5, own(24), 0, &t),
			 0);
	assert_int_equal(sf_gda_cas(&g.q, remote(8), 1, 6, own(32), 0, &t), 0);
	assert_int_equal(sf_gda_get(&g.q, own(40), remote(8), 8, 0, &t), 0);
	look();
	assert_int_equal(sf_gda_quiet(&g.q, 0), 0);
	assert_memory_equal(&g.target[8], data, 28);
	assert_int_equal(((uint32_t *)&g.target[8])[7], 0);
	assert_int_equal(*own_word(16), 4712);
	assert_int_equal(*own_word(24), 4714);
	assert_int_equal(*own_word(32), 5);
	assert_int_equal(*own_word(40), 5);
	expect_no_cqe(&g.a.scq);
}

static void put_signal_and_counter_are_one_slot(void **state)
{
	struct sf_gda_signal signal = {g.bm.addr + 64, g.bm.key, -5 - 1};
	struct sf_counter *counter;
	uint64_t t, first = g.q.next, mem, value;
	uint32_t id;

	(void)state;
	assert_int_equal(
		rnic_counter_create(g.a.r, g.a.ctx, g.a.pdn, &id, &mem), 0);
	counter = rnic_at(g.a.r, mem);
	*own_word(0) = 77;
	assert_int_equal(sf_gda_put_signal(&g.q, remote(0), own(0), 8, signal,
					   SF_GDA_COUNT(id), &t),
			 0);
	assert_int_equal(sf_gda_wait_change(&g.q, &g.target[8], 0, 0, &value),
			 SF_GDA_TIMEDOUT);
	look();
	assert_int_equal(g.q.next, first + 1);
	assert_int_equal(sf_gda_wait_change(&g.q, &g.target[8], 0, 0, &value),
			 0);
	assert_true((int64_t)value == -6);
	assert_int_equal(g.target[0], 77);
	assert_int_equal(sf_gda_wait_counter(counter, 1, 0), 0);

	signal.addend = 7;
	assert_int_equal(sf_gda_signal(&g.q, signal, SF_WQE_WEAK, &t), 0);
	look();
	assert_int_equal(sf_gda_wait(&g.q, t, 0), 0);
	assert_int_equal(sf_gda_wait_signal(&g.q, &g.target[8], 1, 0), 0);
	assert_int_equal(counter->success, 1);
}

static void put_with_immediate_takes_a_receive(void **state)
{
	struct sf_cqe cqe;
	uint64_t t;

	(void)state;
	fx_recv(&g.b, 9, NULL, 0);
	assert_int_equal(sf_gda_put_imm(&g.q, remote(0), own(0), 8, 77,
					SF_WQE_SIGNALED, &t),
			 0);
	look();
	expect_ok(&g.a.scq, SF_OP_WRITE_IMM, t);
	cqe = expect_ok(&g.b.rcq, SF_CQE_RECV_RDMA_IMM, 9);
	assert_int_equal(cqe.imm, 77);
}

static void batch_rings_once(void **state)
{
	struct sf_doorbell *db = (void *)(uintptr_t)g.q.doorbell;
	uint64_t index, data[4] = {0}, i;
	uint32_t head = 0;

	(void)state;
	assert_int_equal(sf_gda_reserve(&g.q, 17, 0, &index), SF_GDA_INVALID);
	assert_int_equal(sf_gda_reserve(&g.q, 16, 0, &index), 0);
	for (i = 0; i < 16; i++) {
		data[0] = i + 1;
		head = sf_gda_fill_put_inline(sf_gda_slot(&g.q, index + i),
					      remote(8 * i), data, 8, 0);
	}
	look();
	assert_int_equal(sf_gda_test(&g.q, index), SF_GDA_AGAIN);
	sf_gda_post_batch(&g.q, index, 16, head, 0);
	assert_int_equal(db->value, index + 16);
	look();
	assert_int_equal(sf_gda_wait(&g.q, index + 15, 0), 0);
	for (i = 0; i < 16; i++)
		assert_int_equal(g.target[i], i + 1);
}

static void collective_of_one_lane_is_a_put(void **state)
{
	uint64_t t;

	(void)state;
	*own_word(0) = 5;
	assert_int_equal(
		sf_gda_put_lanes(&g.q, 0, 1, remote(0), own(0), 8, 0, &t), 0);
	look();
	assert_int_equal(sf_gda_wait(&g.q, t, 0), 0);
	assert_int_equal(g.target[0], 5);
}

static void wait_for_a_word_is_bounded(void **state)
{
	struct sf_counter counter = {.success = 3};
	uint64_t word = (uint64_t)-2, value;

	(void)state;
	assert_int_equal(sf_gda_wait_signal(&g.q, &word, 1, 10),
			 SF_GDA_TIMEDOUT);
	word += 3; /* over zero */
	assert_int_equal(sf_gda_wait_signal(&g.q, &word, 1, 10), 0);
	assert_int_equal(sf_gda_wait_change(&g.q, &word, 1, 10, &value),
			 SF_GDA_TIMEDOUT);
	assert_int_equal(sf_gda_wait_change(&g.q, &word, 0, 10, &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(sf_gda_wait_counter(&counter, 3, 10), 0);
	assert_int_equal(sf_gda_wait_counter(&counter, 4, 10), SF_GDA_TIMEDOUT);
	counter.error = 1;
	assert_int_equal(sf_gda_wait_counter(&counter, 3, 10), 0);
	assert_int_equal(sf_gda_wait_counter(&counter, 4, 10),
			 SF_ST_GENERAL_ERR);
	assert_int_equal(fx_modify(&g.a, RNIC_ERR), 0);
	assert_int_equal(sf_gda_wait_signal(&g.q, &word, 2, FOREVER),
			 SF_ST_WR_FLUSH_ERR);
	assert_int_equal(sf_gda_wait_change(&g.q, &word, 1, FOREVER, &value),
			 SF_ST_WR_FLUSH_ERR);
}

/* ---- many posters --------------------------------------------------- */

struct worker {
	pthread_t thread;
	uint32_t id, posts;
	uint64_t flags, ticket, added, fetched;
	int res;
};

static int one_post(struct worker *w, uint32_t i)
{
	struct sf_gda_mem counter = remote(8 * w->id);
	uint64_t data[4] = {i + 1};
	int res;

	do {
		if (i % 4 == 0)
			res = sf_gda_put_inline(&g.q,
						remote(8 * (MANY + w->id)),
						data, 8, w->flags, &w->ticket);
		else if (i % 64 == 1)
			res = sf_gda_fetch_add(&g.q, counter, 1, own(8 * w->id),
					       w->flags, &w->ticket);
		else
			res = sf_gda_add(&g.q, counter, 1, w->flags,
					 &w->ticket);
		/* Those who wait have reserved all that comes next. */
		if (res == SF_GDA_AGAIN)
			usleep(1000);
	} while (res == SF_GDA_AGAIN);
	if (!res)
		look();
	return res;
}

static void *poster(void *arg)
{
	struct worker *w = arg;
	uint32_t i;

	my_ticket = w->flags & SF_GDA_TRY ? NULL : &w->ticket;
	for (i = 0; !w->res && i < w->posts; i++) {
		w->res = one_post(w, i);
		if (w->res || i % 64 != 1) {
			w->added += i % 4 != 0;
			continue;
		}
		/* What it brings is what this thread has added so far. */
		w->res = sf_gda_wait(&g.q, w->ticket, FOREVER);
		if (!w->res && *own_word(8 * w->id) != w->added++)
			w->res = 1000;
	}
	if (!w->res)
		w->res = sf_gda_wait(&g.q, w->ticket, FOREVER);
	my_ticket = NULL;
	return NULL;
}

static void run_threads(struct worker *w, uint32_t n, void *(*fn)(void *))
{
	uint32_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, fn, &w[i]),
				 0);
}

static void join_threads(struct worker *w, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
}

static void posts_of_many(uint32_t posts)
{
	static struct worker w[MANY];
	uint64_t start = g.q.next;
	uint32_t i;

	memset(w, 0, sizeof(w));
	for (i = 0; i < MANY; i++) {
		w[i].id = i;
		w[i].posts = posts;
		w[i].flags = i % 8 == 7 ? SF_GDA_TRY : 0;
	}
	run_threads(w, MANY, poster);
	join_threads(w, MANY);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(w[i].res, 0);
		assert_int_equal(g.target[i], w[i].added);
		assert_int_equal(g.target[MANY + i], (posts - 1) / 4 * 4 + 1);
	}
	assert_int_equal(g.q.next, start + (uint64_t)posts * MANY);
	expect_line(&g.a, g.q.next & SF_LINE_INDEX_MASK);
	expect_no_cqe(&g.a.scq);
}

static void sixty_four_posters_share_a_queue_of_two(void **state)
{
	(void)state;
	posts_of_many((getenv("SF_TEST_LONG") ? 10000000 : 1000000) / MANY);
}

static void laps_wrap_after_two_to_the_32(void **state)
{
	(void)state;
	start_at((1ull << (32 + g.q.log_depth)) - 4096);
	posts_of_many(1000);
	assert_true(sf_lap(g.q.next, g.q.log_depth) < 100000);
}

static void line_wraps_after_two_to_the_56(void **state)
{
	(void)state;
	start_at((1ull << 56) - 4096);
	posts_of_many(1000);
	assert_true(fx_line(&g.a)->word < 100000);
}

static void exclusive_poster_needs_no_atomics(void **state)
{
	struct worker w = {.posts = 10000, .flags = SF_GDA_EXCLUSIVE};

	(void)state;
	start_at((1ull << 56) - 64);
	poster(&w);
	assert_int_equal(w.res, 0);
	assert_int_equal(g.target[0], w.added);
	w = (struct worker){
		.posts = 64, .flags = SF_GDA_EXCLUSIVE | SF_GDA_TRY, .id = 1};
	poster(&w);
	assert_int_equal(w.res, 0);
	assert_int_equal(g.target[1], w.added);
}

/* ---- a full queue, a stopped writer --------------------------------- */

/* Reserves a slot and stops after half of its body. */
static uint64_t stop_in_mid_slot(void)
{
	struct sf_wqe *slot;
	uint64_t index;

	assert_int_equal(sf_gda_reserve(&g.q, 1, 0, &index), 0);
	slot = sf_gda_slot(&g.q, index);
	slot->remote_addr = g.bm.addr;
	slot->rkey = g.bm.key;
	slot->arg0 = 1000;
	return index;
}

static void full_queue_and_try_leave_nothing_reserved(void **state)
{
	uint64_t t, next, i;

	(void)state;
	for (i = 0; i < 16; i++)
		assert_int_equal(sf_gda_add(&g.q, remote(0), 1, SF_GDA_TRY, &t),
				 0);
	next = g.q.next;
	for (i = 0; i < 3; i++)
		assert_int_equal(sf_gda_add(&g.q, remote(0), 1, SF_GDA_TRY, &t),
				 SF_GDA_AGAIN);
	assert_int_equal(g.q.next, next);
	look();
	assert_int_equal(sf_gda_add(&g.q, remote(0), 1, SF_GDA_TRY, &t), 0);
	look();
	assert_int_equal(g.target[0], 17);
}

static void nobody_passes_a_stopped_writer(void **state)
{
	uint64_t stopped, late, t, i;

	(void)state;
	g.q.polls = 100;
	stopped = stop_in_mid_slot();
	for (i = 1; i < 16; i++) {
		assert_int_equal(sf_gda_add(&g.q, remote(8), 1, 0, &t), 0);
		look();
	}
	/* Its slot stays as it was: nobody stores to it before it is free. */
	assert_int_equal(sf_gda_add(&g.q, remote(8), 1, 0, &late),
			 SF_GDA_TIMEDOUT);
	assert_int_equal(late, stopped + 16);
	assert_int_equal(sf_gda_slot(&g.q, late)->arg0, 1000);
	assert_int_equal(sf_gda_wait(&g.q, t, 100), SF_GDA_TIMEDOUT);
	assert_int_equal(sf_gda_nops(&g.q, late, 1, 100), SF_GDA_TIMEDOUT);
	assert_int_equal(g.target[1], 0);
	expect_line(&g.a, stopped);

	/* It goes on, and the one that gave up keeps its promise. */
	SF_GDA_FENCE();
	sf_gda_commit(&g.q, stopped,
		      sf_gda_head(SF_OP_ATOMIC_FADD, 0, SF_WQE_NOFETCH));
	look();
	assert_int_equal(sf_gda_nops(&g.q, late, 1, 100), 0);
	look();
	assert_int_equal(sf_gda_quiet(&g.q, 0), 0);
	assert_int_equal(g.target[0], 1000);
	assert_int_equal(g.target[1], 15);
}

static void *waiter(void *arg)
{
	struct worker *w = arg;
	uint64_t value;

	switch (w->id % 4) {
	case 0:
		w->res = sf_gda_wait(&g.q, w->ticket, FOREVER);
		break;
	case 1:
		w->res = sf_gda_add(&g.q, remote(8), 1, 0, &w->ticket);
		break;
	case 2:
		w->res = sf_gda_quiet(&g.q, FOREVER);
		break;
	default:
		w->res = sf_gda_wait_change(&g.q, own_word(0), 0, FOREVER,
					    &value);
	}
	return NULL;
}

/* Fills the queue behind a stopped writer and lets many wait for it. */
static uint64_t let_many_wait(struct worker *w, uint32_t n)
{
	uint64_t stopped = stop_in_mid_slot(), t, i;

	for (i = 1; i < 16; i++)
		assert_int_equal(sf_gda_add(&g.q, remote(8), 1, 0, &t), 0);
	memset(w, 0, n * sizeof(*w));
	for (i = 0; i < n; i++) {
		w[i].id = i;
		w[i].ticket = stopped + i % 16;
	}
	run_threads(w, n, waiter);
	for (i = 0; i < 1000; i++)
		sched_yield();
	return stopped;
}

static void all_return(struct worker *w, uint32_t n, int res)
{
	uint32_t i;

	join_threads(w, n);
	for (i = 0; i < n; i++)
		assert_int_equal(w[i].res, res);
}

static void poison_ends_every_wait(void **state)
{
	struct worker w[16];
	uint64_t t;

	(void)state;
	let_many_wait(w, 16);
	sf_gda_poison(&g.q);
	all_return(w, 16, SF_GDA_POISONED);
	assert_int_equal(sf_gda_add(&g.q, remote(0), 1, 0, &t),
			 SF_GDA_POISONED);
	assert_int_equal(sf_gda_add(&g.q, remote(0), 1, SF_GDA_TRY, &t),
			 SF_GDA_POISONED);
}

static void error_ends_every_wait_with_its_code(void **state)
{
	struct worker w[16];
	uint64_t stopped;

	(void)state;
	stopped = let_many_wait(w, 16);
	sf_gda_slot(&g.q, stopped)->rkey ^= 1;
	sf_gda_commit(&g.q, stopped,
		      sf_gda_head(SF_OP_ATOMIC_FADD, 0, SF_WQE_NOFETCH));
	look();
	all_return(w, 16, SF_ST_REM_ACCESS_ERR);
	assert_int_equal(g.target[0] | g.target[1], 0);
	assert_int_equal(fx_line(&g.a)->failed, stopped);
}

static void modify_to_err_ends_every_wait(void **state)
{
	struct worker w[16];

	(void)state;
	let_many_wait(w, 16);
	assert_int_equal(fx_modify(&g.a, RNIC_ERR), 0);
	all_return(w, 16, SF_ST_WR_FLUSH_ERR);
	assert_int_equal(g.target[0] | g.target[1], 0);
}

/* ---- doorbells ------------------------------------------------------ */

static void ring_value(uint64_t value)
{
	sf_gda_ring(&g.q, value);
	look();
}

static void ring_of_any_value_after_the_commit_does(void **state)
{
	uint64_t values[] = {0, 17, ~0ull, 1}, t, i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(
			sf_gda_add(&g.q, remote(0), 1, SF_GDA_NO_RING, &t), 0);
		assert_int_equal(
			sf_gda_add(&g.q, remote(0), 1, SF_GDA_NO_RING, &t), 0);
		ring_value(values[i]);
		ring_value(values[i]);
		assert_int_equal(sf_gda_test(&g.q, t), 0);
		assert_int_equal(g.target[0], 2 * (i + 1));
	}
}

static void commit_without_ring_waits_for_a_lower_one(void **state)
{
	uint64_t first, second;
	uint32_t head;

	(void)state;
	assert_int_equal(sf_gda_reserve(&g.q, 1, 0, &first), 0);
	assert_int_equal(sf_gda_add(&g.q, remote(8), 1, 0, &second), 0);
	look();
	assert_int_equal(g.target[1], 0);
	head = sf_gda_fill_atomic(sf_gda_slot(&g.q, first), SF_OP_ATOMIC_FADD,
				  remote(0), 1, 0, (struct sf_gda_mem){0, 0},
				  0);
	SF_GDA_FENCE();
	sf_gda_commit(&g.q, first, head);
	ring_value(first);
	assert_int_equal(sf_gda_test(&g.q, second), 0);
	assert_int_equal(g.target[0] & g.target[1], 1);
}

/* Rings get lost, come twice, late, with what another poster had to say. */
static void *careless(void *arg)
{
	struct worker *w = arg;
	uint64_t old = 0;
	uint32_t i, seed = w->id;

	for (i = 0; !w->res && i < w->posts; i++) {
		w->res = sf_gda_add(&g.q, remote(0), 1, SF_GDA_NO_RING,
				    &w->ticket);
		seed = seed * 1664525u + 1013904223u;
		/* Who may have to wait for room rings what it has posted. */
		switch (seed >> 30) {
		case 0:
			ring_value(old);
			break;
		case 1:
			ring_value(w->ticket + 1);
			ring_value(w->ticket + 1);
			break;
		case 2:
			look();
			sf_gda_ring(&g.q, old);
			break;
		default:
			sf_gda_ring(&g.q, 0);
			look();
		}
		old = w->ticket;
	}
	return NULL;
}

static void doorbells_may_tell_anything(void **state)
{
	struct worker w[8] = {{0}};
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		w[i].id = i;
		w[i].posts = 2000;
	}
	run_threads(w, 8, careless);
	all_return(w, 8, 0);
	assert_int_equal(sf_gda_quiet(&g.q, FOREVER), 0);
	assert_int_equal(g.target[0], 16000);
}

/* ---- what looks like a request and is none -------------------------- */

static void reset_forgets_a_full_ring(void **state)
{
	struct fx_opts o = fx_defaults;
	uint64_t t, i;

	(void)state;
	for (i = 0; i < 16; i++)
		assert_int_equal(sf_gda_add(&g.q, remote(0), 1, 0, &t), 0);
	assert_int_equal(fx_modify(&g.a, RNIC_RESET), 0);
	assert_int_equal(fx_modify(&g.b, RNIC_RESET), 0);
	fx_connect(&g.a, &g.b, RNIC_RTS, &o, 1, 2);
	fx_connect(&g.b, &g.a, RNIC_RTS, &o, 2, 1);
	export();
	look();
	expect_line(&g.a, g.q.next);
	assert_int_equal(sf_gda_add(&g.q, remote(8), 1, 0, &t), 0);
	look();
	assert_int_equal(sf_gda_wait(&g.q, t, 0), 0);
	assert_int_equal(g.target[0], 0);
	assert_int_equal(g.target[1], 1);
}

static void bytes_that_imitate_a_commit_word_are_data(void **state)
{
	uint64_t t, i, k;

	(void)state;
	for (i = 0; i < 64; i++) {
		uint64_t data[4], next = g.q.next, *slot;

		for (k = 0; k < 4; k++)
			data[k] =
				sf_commit(SF_OP_ATOMIC_FADD, 0, SF_WQE_NOFETCH,
					  next + k, g.q.log_depth);
		assert_int_equal(sf_gda_put_inline(&g.q, remote(32 * i), data,
						   32, 0, &t),
				 0);
		/* All that comes after, too, but for the commit words. */
		slot = (uint64_t *)sf_gda_slot(&g.q, t + 1);
		for (k = 1; k < 16; k++)
			slot[k] = data[1];
		look();
		look();
		assert_int_equal(sf_gda_wait(&g.q, t, 0), 0);
		expect_line(&g.a, t + 1);
		assert_memory_equal(&g.target[4 * i], data, 32);
	}
}

#define S(f) cmocka_unit_test_setup_teardown(f, shallow, teardown)
#define D(f) cmocka_unit_test_setup_teardown(f, deep, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		D(put_get_and_atomics_do_what_they_say),
		D(put_signal_and_counter_are_one_slot),
		D(put_with_immediate_takes_a_receive),
		D(batch_rings_once),
		D(collective_of_one_lane_is_a_put),
		D(wait_for_a_word_is_bounded),
		S(sixty_four_posters_share_a_queue_of_two),
		S(laps_wrap_after_two_to_the_32),
		S(line_wraps_after_two_to_the_56),
		S(exclusive_poster_needs_no_atomics),
		D(full_queue_and_try_leave_nothing_reserved),
		D(nobody_passes_a_stopped_writer),
		D(poison_ends_every_wait),
		D(error_ends_every_wait_with_its_code),
		D(modify_to_err_ends_every_wait),
		D(ring_of_any_value_after_the_commit_does),
		D(commit_without_ring_waits_for_a_lower_one),
		D(doorbells_may_tell_anything),
		D(reset_forgets_a_full_ring),
		D(bytes_that_imitate_a_commit_word_are_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
