// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fused signals and counters: what sf_gda.h builds upon. */
#include "rnic_fixture.h"

#define WORD 4096 /* of b's region, to be added to */

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	uint32_t counter;
	struct sf_counter *counted;
};

static void rig_open(struct rig *g, const struct fx_opts *o)
{
	uint64_t mem;

	fx_open(&g->fx, RNIC_INFINIBAND);
	fx_pair(&g->fx, &g->a, &g->b, o);
	g->am = fx_mr(&g->a, 65536, FX_ALL_ACCESS);
	g->bm = fx_mr(&g->b, 65536, FX_ALL_ACCESS);
	assert_int_equal(rnic_counter_create(g->a.r, g->a.ctx, g->a.pdn,
					     &g->counter, &mem),
			 0);
	g->counted = rnic_at(g->a.r, mem);
}

static int setup(void **state)
{
	static struct rig g;

	rig_open(&g, &fx_defaults);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	fx_close(&g->fx);
	return 0;
}

static void reopen(struct rig *g, const struct fx_opts *o)
{
	fx_close(&g->fx);
	rig_open(g, o);
}

static uint64_t word(const struct rig *g)
{
	return *(uint64_t *)(g->bm.ptr + WORD);
}

/* @len bytes from the start of a's memory, and @addend to b's word. */
static struct fx_wr put_signal(const struct rig *g, uint32_t len,
			       int32_t addend)
{
	struct fx_wr wr = {
		.opcode = SF_OP_WRITE,
		.flags = SF_WQE_SIGNALED | SF_WQE_SIGNAL,
		.remote_addr = g->bm.addr,
		.rkey = g->bm.key,
		.arg0 = g->bm.addr + WORD,
		.arg1 = g->bm.key | (uint64_t)(uint32_t)addend << 32,
		.n_sge = 1,
	};

	wr.sge[0] = fx_sge(&g->am, 0, len);
	return wr;
}

/* ---- signals -------------------------------------------------------- */

static void signal_is_added_once_after_the_payload(void **state)
{
	static const uint32_t lengths[] = {0, 1, 8, 1024, 1025, 4096};
	struct rig *g = *state;
	uint64_t sum = 0, i;

	for (i = 0; i < 6; i++) {
		int32_t addend = (int32_t)(i % 2 ? -7 - i : 5 + i);
		struct fx_wr wr = put_signal(g, lengths[i], addend);
		uint64_t index;

		fx_fill(g->am.ptr, 4096, i);
		sum += (int64_t)addend;
		index = fx_send(&g->a, &wr);
		assert_int_equal(
			expect_ok(&g->a.scq, SF_OP_WRITE, index).byte_len,
			lengths[i]);
		assert_memory_equal(g->bm.ptr, g->am.ptr, lengths[i]);
		assert_true(word(g) == sum);
	}
	expect_line(&g->a, g->a.sq_next);
}

static void entries_and_inline_data_step_over_the_operands(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = put_signal(g, 100, 1);

	fx_fill(g->am.ptr, 4096, 1);
	wr.n_sge = 3;
	wr.sge[1] = fx_sge(&g->am, 200, 50);
	wr.sge[2] = fx_sge(&g->am, 300, 10);
	fx_send(&g->a, &wr);
	assert_memory_equal(g->bm.ptr, g->am.ptr, 100);
	assert_memory_equal(g->bm.ptr + 100, g->am.ptr + 200, 50);
	assert_memory_equal(g->bm.ptr + 150, g->am.ptr + 300, 10);

	wr = put_signal(g, 0, 1);
	wr.flags |= SF_WQE_INLINE;
	wr.n_sge = 0;
	wr.data = g->am.ptr + 1000;
	wr.len = 80;
	fx_send(&g->a, &wr);
	assert_memory_equal(g->bm.ptr, g->am.ptr + 1000, 80);
	assert_int_equal(word(g), 2);
	wr.len = 81;
	fx_send(&g->a, &wr);
	expect_failed_line(&g->a, g->a.sq_next - 1, SF_ST_LOC_QP_OP_ERR,
			   SF_SYN_SLOT);
	assert_int_equal(word(g), 2);
}

static void weak_signal_is_added_too(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = put_signal(g, 8, 3);

	wr.flags |= SF_WQE_WEAK;
	fx_send(&g->a, &wr);
	assert_int_equal(word(g), 3);
}

static void signal_comes_after_all_earlier_requests(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = put_signal(g, 8, 1);
	uint32_t i;

	/* A whole ring, posted before anything runs. */
	for (i = 0; i < 16; i++) {
		wr.flags = i == 15 ? SF_WQE_SIGNAL : 0;
		wr.remote_addr = g->bm.addr + 8 * i;
		wr.sge[0] = fx_sge(&g->am, 8 * i, 8);
		fx_post(&g->a, &wr);
	}
	fx_fill(g->am.ptr, 128, 9);
	assert_int_equal(word(g), 0);
	rnic_sq_ring(g->a.r, g->a.qpn);
	assert_int_equal(word(g), 1);
	assert_memory_equal(g->bm.ptr, g->am.ptr, 128);
}

static void fails(struct rig *g, struct fx_wr wr, uint32_t status,
		  uint32_t syndrome)
{
	uint64_t index = fx_send(&g->a, &wr);

	expect_cqe(&g->a.scq, SF_OP_WRITE, status, syndrome, index);
	expect_failed_line(&g->a, index, status, syndrome);
	assert_int_equal(word(g), 0);
	reopen(g, &fx_defaults);
}

static void signal_is_protected_like_an_atomic(void **state)
{
	struct fx_opts o = fx_defaults;
	struct rig *g = *state;
	struct fx_wr wr;
	struct fx_mr no;

	wr = put_signal(g, 8, 1);
	wr.arg0 += 4;
	fails(g, wr, SF_ST_REM_INV_REQ_ERR, SF_SYN_PEER);
	wr = put_signal(g, 8, 1);
	wr.arg1 ^= 1;
	fails(g, wr, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER);
	wr = put_signal(g, 8, 1);
	wr.arg0 = g->bm.addr + g->bm.len;
	fails(g, wr, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER);
	no = fx_mr(&g->b, 4096, FX_ALL_ACCESS & ~RNIC_REMOTE_ATOMIC);
	wr = put_signal(g, 8, 1);
	wr.arg0 = no.addr;
	wr.arg1 = no.key | 1ull << 32;
	fails(g, wr, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER);
	o.access = RNIC_REMOTE_WRITE;
	reopen(g, &o);
	fails(g, put_signal(g, 8, 1), SF_ST_REM_ACCESS_ERR, SF_SYN_PEER);
	/* It takes one of the atomics that may be under way. */
	o = fx_defaults;
	o.rd_atomic = 0;
	reopen(g, &o);
	fails(g, put_signal(g, 8, 1), SF_ST_LOC_QP_OP_ERR, SF_SYN_DEPTH);
}

static void signal_goes_with_a_write_only(void **state)
{
	static const uint32_t others[] = {SF_OP_NOP,	    SF_OP_SEND,
					  SF_OP_SEND_IMM,   SF_OP_WRITE_IMM,
					  SF_OP_READ,	    SF_OP_ATOMIC_CAS,
					  SF_OP_ATOMIC_FADD};
	struct rig *g = *state;
	uint32_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct fx_wr wr = put_signal(g, 8, 1);
		uint64_t index;

		wr.opcode = others[i];
		index = fx_send(&g->a, &wr);
		expect_cqe(&g->a.scq, others[i], SF_ST_LOC_QP_OP_ERR,
			   SF_SYN_OPCODE, index);
		assert_int_equal(word(g), 0);
		reopen(g, &fx_defaults);
	}
}

/* The target's lock is busy at one point or another: it is tried again. */
static void busy_target_gets_the_signal_once(void **state)
{
	struct rig *g = *state;
	uint32_t i;

	for (i = 0; i < 8; i++) {
		struct fx_wr wr = put_signal(g, 2000, 1);
		uint64_t index = fx_post(&g->a, &wr);

		fx_lock_busy(&fx_qp(&g->b)->resp.lock, i % 3);
		fx_lock_busy(&fx_cq_state(&g->a.scq)->lock, i / 3);
		rnic_sq_ring(g->a.r, g->a.qpn);
		fx_settle(&g->fx);
		expect_ok(&g->a.scq, SF_OP_WRITE, index);
		assert_int_equal(word(g), i + 1);
	}
}

/* ---- counters ------------------------------------------------------- */

static struct fx_wr counted(const struct rig *g, uint32_t opcode)
{
	struct fx_wr wr = {
		.opcode = opcode,
		.flags = SF_WQE_COUNTER,
		.counter_id = g->counter,
		.remote_addr = g->bm.addr,
		.rkey = g->bm.key,
		.n_sge = opcode != SF_OP_NOP,
	};

	wr.sge[0] = fx_sge(&g->am, 0, 8);
	return wr;
}

static void counter_counts_what_asks_for_it(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = put_signal(g, 8, 1);

	wr.flags |= SF_WQE_COUNTER;
	wr.counter_id = g->counter;
	fx_send(&g->a, &wr);
	assert_int_equal(g->counted->success, 1);
	wr = counted(g, SF_OP_READ);
	fx_send(&g->a, &wr);
	wr = counted(g, SF_OP_ATOMIC_FADD);
	fx_send(&g->a, &wr);
	wr = counted(g, SF_OP_NOP);
	fx_send(&g->a, &wr);
	assert_int_equal(g->counted->success, 4);
	wr.flags = 0;
	fx_send(&g->a, &wr);
	assert_int_equal(g->counted->success, 4);
	assert_int_equal(g->counted->error, 0);
}

static void counter_counts_errors_and_flushes(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = counted(g, SF_OP_WRITE);

	fx_post(&g->a, &wr);
	wr.rkey ^= 1;
	fx_post(&g->a, &wr);
	fx_post(&g->a, &wr);
	fx_send(&g->a, &wr);
	assert_int_equal(g->counted->success, 1);
	assert_int_equal(g->counted->error, 3);
}

static void request_whose_cqe_waits_is_counted_once(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = counted(g, SF_OP_WRITE);
	uint64_t index;

	wr.flags |= SF_WQE_SIGNALED;
	fx_lock_busy(&fx_cq_state(&g->a.scq)->lock, 3);
	index = fx_send(&g->a, &wr);
	expect_no_cqe(&g->a.scq);
	fx_settle(&g->fx);
	expect_ok(&g->a.scq, SF_OP_WRITE, index);
	assert_int_equal(g->counted->success, 1);
}

/* The holder of the requester's lock dies before or after the addition. */
static void death_while_counting_counts_once(void **state)
{
	struct rig *g = *state;
	struct rnic_requester *req = &fx_qp(&g->a)->req;
	struct fx_wr wr = counted(g, SF_OP_WRITE);
	uint64_t done;

	for (done = 0; done < 2; done++) {
		uint64_t before = g->counted->success;
		uint64_t index = fx_post(&g->a, &wr);
		struct rnic_atomic_lock *lock = &g->a.r->sh->atomic_lock[7];

		req->counted = (struct rnic_atomic_slot){
			.value = before,
			.psn = (uint32_t)index,
			.state = RNIC_ATOMIC_BEGUN,
			.lock = 7,
		};
		lock->slot = (char *)&req->counted - (char *)g->a.r->sh;
		lock->at = (struct rnic_ref){(char *)&g->counted->success -
						     (char *)g->a.r->sh,
					     8, RNIC_SPACE_ARENA, 0};
		g->counted->success += done;
		fx_lock_dead(&lock->lock);
		fx_lock_dead(&req->lock);
		rnic_sq_ring(g->a.r, g->a.qpn);
		expect_line(&g->a, index + 1);
		assert_int_equal(g->counted->success, before + 1);
	}
}

static void counter_of_nobody_or_of_another_pd_is_refused(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = counted(g, SF_OP_WRITE);
	uint32_t theirs;
	uint64_t mem;

	wr.counter_id = 0xffff;
	fx_send(&g->a, &wr);
	expect_failed_line(&g->a, g->a.sq_next - 1, SF_ST_LOC_PROT_ERR,
			   SF_SYN_KEY);
	reopen(g, &fx_defaults);
	assert_int_equal(rnic_counter_create(g->b.r, g->b.ctx, g->b.pdn,
					     &theirs, &mem),
			 0);
	wr = counted(g, SF_OP_WRITE);
	wr.counter_id = theirs;
	fx_send(&g->a, &wr);
	expect_failed_line(&g->a, g->a.sq_next - 1, SF_ST_LOC_PROT_ERR,
			   SF_SYN_PD);
	assert_int_equal(((struct sf_counter *)rnic_at(g->b.r, mem))->error, 0);
}

static void counter_belongs_to_its_creator_and_its_pd(void **state)
{
	struct rig *g = *state;
	uint32_t id;
	uint64_t mem;

	assert_int_equal(rnic_counter_create(g->a.r, 9, g->a.pdn, &id, &mem),
			 EINVAL);
	assert_int_equal(rnic_counter_destroy(g->a.r, 9, g->counter), EINVAL);
	assert_int_equal(rnic_counter_destroy(g->a.r, g->a.ctx, 1023), EINVAL);
	assert_int_equal(rnic_counter_destroy(g->a.r, g->a.ctx, g->counter), 0);
	assert_int_equal(rnic_counter_destroy(g->a.r, g->a.ctx, g->counter),
			 EINVAL);
	g->fx.allocs_left = 0;
	assert_int_equal(rnic_counter_create(g->a.r, g->a.ctx, g->a.pdn, &id,
					     &mem),
			 ENOMEM);
	g->fx.allocs_left = -1;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(signal_is_added_once_after_the_payload),
		T(entries_and_inline_data_step_over_the_operands),
		T(weak_signal_is_added_too),
		T(signal_comes_after_all_earlier_requests),
		T(signal_is_protected_like_an_atomic),
		T(signal_goes_with_a_write_only),
		T(busy_target_gets_the_signal_once),
		T(counter_counts_what_asks_for_it),
		T(counter_counts_errors_and_flushes),
		T(request_whose_cqe_waits_is_counted_once),
		T(death_while_counting_counts_once),
		T(counter_of_nobody_or_of_another_pd_is_refused),
		T(counter_belongs_to_its_creator_and_its_pd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
