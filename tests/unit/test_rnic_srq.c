// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shared receive queues (IBTA vol. 1, 10.2.9): two QPs, one queue. */
#include "rnic_fixture.h"

#define DEPTH 8

struct rig {
	struct fx fx;
	struct fx_end a1, a2; /* send */
	struct fx_end b1, b2; /* receive */
	struct fx_end owner;  /* of the SRQ: has a PD and nothing else */
	struct fx_srq srq;
	struct fx_mr am, bm;
};

static void join(struct rig *g, struct fx_end *a, uint32_t ctx,
		 struct fx_end *b, const struct fx_opts *o)
{
	struct fx_opts plain = *o;

	plain.srqn = 0;
	fx_end_new(a, &g->fx, g->fx.r, ctx, 0, &plain);
	fx_end_new(b, &g->fx, g->fx.r, 2, 1, o);
	fx_connect(a, b, RNIC_RTS, o, o->psn, o->psn + 0x1000);
	fx_connect(b, a, RNIC_RTS, o, o->psn + 0x1000, o->psn);
}

static int setup(void **state)
{
	static struct rig g;
	struct fx_opts o = fx_defaults;

	memset(&g, 0, sizeof(g));
	fx_open(&g.fx, RNIC_INFINIBAND);
	g.owner = (struct fx_end){.fx = &g.fx, .r = g.fx.r, .ctx = 2};
	assert_int_equal(rnic_pd_create(g.fx.r, 2, 1, &g.owner.pdn), 0);
	fx_srq_new(&g.srq, &g.fx, 2, 1, g.owner.pdn, 3);
	o.srqn = g.srq.srqn;
	join(&g, &g.a1, 1, &g.b1, &o);
	join(&g, &g.a2, 3, &g.b2, &o);
	g.am = fx_mr(&g.a1, 65536, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.owner, 65536, RNIC_LOCAL_WRITE);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	fx_close(&g->fx);
	return 0;
}

static uint64_t send(struct fx_end *a, char c)
{
	struct fx_wr wr = {
		.opcode = SF_OP_SEND,
		.flags = SF_WQE_SIGNALED | SF_WQE_INLINE,
		.data = &c,
		.len = 1,
	};

	return fx_send(a, &wr);
}

static void recv_one(struct rig *g, uint32_t cookie)
{
	fx_srq_recv(&g->srq, cookie, &g->bm, cookie * 64, 64);
}

static void messages_of_all_qps_take_receives_in_order(void **state)
{
	struct rig *g = *state;
	uint64_t i1, i2, i3;

	recv_one(g, 1);
	recv_one(g, 2);
	recv_one(g, 3);
	i1 = send(&g->a1, 'x');
	i2 = send(&g->a2, 'y');
	i3 = send(&g->a1, 'z');
	expect_ok(&g->a1.scq, SF_OP_SEND, i1);
	expect_ok(&g->a2.scq, SF_OP_SEND, i2);
	expect_ok(&g->a1.scq, SF_OP_SEND, i3);
	expect_ok(&g->b1.rcq, SF_CQE_RECV, 1);
	expect_ok(&g->b2.rcq, SF_CQE_RECV, 2);
	expect_ok(&g->b1.rcq, SF_CQE_RECV, 3);
	assert_int_equal(g->bm.ptr[64], 'x');
	assert_int_equal(g->bm.ptr[128], 'y');
	assert_int_equal(g->bm.ptr[192], 'z');
}

static void an_empty_queue_answers_rnr_and_posting_wakes(void **state)
{
	struct rig *g = *state;
	uint64_t i1 = send(&g->a1, 'x'), i2 = send(&g->a2, 'y');
	struct sf_cqe cqe;

	expect_no_cqe(&g->a1.scq);
	expect_no_cqe(&g->a2.scq);
	/* One receive: one of the two, and the other goes on waiting. */
	recv_one(g, 1);
	assert_true(fx_poll(&g->a1.scq, &cqe) ^ fx_poll(&g->a2.scq, &cqe));
	assert_true(cqe.wr == i1 || cqe.wr == i2);
	recv_one(g, 2);
	assert_true(fx_poll(&g->a1.scq, &cqe) ^ fx_poll(&g->a2.scq, &cqe));
	/* Without a timer. */
	assert_int_equal(g->fx.now, 1000000000);
}

static void rnr_retries_end(void **state)
{
	struct rig *g = *state;
	uint64_t i;

	fx_qp(&g->a1)->attr.rnr_retry = fx_qp(&g->a1)->req.rnr_left = 1;
	i = send(&g->a1, 'x');
	fx_settle(&g->fx);
	expect_cqe(&g->a1.scq, SF_OP_SEND, SF_ST_RNR_RETRY_EXC_ERR, SF_SYN_RNR,
		   i);
}

static void buffers_are_those_of_the_queues_domain(void **state)
{
	struct rig *g = *state;
	struct fx_mr other = fx_mr(&g->b1, 4096, RNIC_LOCAL_WRITE);
	uint64_t i;

	fx_srq_recv(&g->srq, 9, &other, 0, 64);
	i = send(&g->a1, 'x');
	expect_cqe(&g->b1.rcq, SF_CQE_RECV, SF_ST_LOC_PROT_ERR, SF_SYN_PD, 9);
	expect_cqe(&g->a1.scq, SF_OP_SEND, SF_ST_REM_OP_ERR, SF_SYN_PEER, i);
	assert_int_equal(fx_state(&g->b1), RNIC_ERR);
	assert_int_equal(fx_state(&g->b2), RNIC_RTS);
}

static void the_limit_event_comes_once_when_fewer_are_left(void **state)
{
	struct rig *g = *state;
	struct rnic_srq_attr attr;
	int i;

	for (i = 0; i < 4; i++)
		recv_one(g, i);
	assert_int_equal(rnic_srq_set_limit(g->fx.r, 2, g->srq.srqn, 3), 0);
	assert_int_equal(rnic_srq_query(g->fx.r, 2, g->srq.srqn, &attr), 0);
	assert_int_equal(attr.limit, 3);
	send(&g->a1, 'x');
	expect_no_event(&g->fx);
	send(&g->a2, 'x');
	expect_event(&g->fx, RNIC_EVENT_SRQ_LIMIT_REACHED, 2,
		     SRQ_HANDLE(&g->srq));
	send(&g->a1, 'x');
	expect_no_event(&g->fx);
	assert_int_equal(rnic_srq_query(g->fx.r, 2, g->srq.srqn, &attr), 0);
	assert_int_equal(attr.limit, 0);
}

static void a_limit_that_is_due_raises_its_event_when_armed(void **state)
{
	struct rig *g = *state;

	recv_one(g, 0);
	assert_int_equal(rnic_srq_set_limit(g->fx.r, 2, g->srq.srqn, 1), 0);
	expect_no_event(&g->fx);
	assert_int_equal(rnic_srq_set_limit(g->fx.r, 2, g->srq.srqn, 2), 0);
	expect_event(&g->fx, RNIC_EVENT_SRQ_LIMIT_REACHED, 2,
		     SRQ_HANDLE(&g->srq));
	assert_int_equal(rnic_srq_set_limit(g->fx.r, 2, g->srq.srqn, DEPTH + 1),
			 EINVAL);
	assert_int_equal(rnic_srq_set_limit(g->fx.r, 3, g->srq.srqn, 1),
			 EINVAL);
}

static void resize(struct rig *g, uint32_t log_depth)
{
	assert_int_equal(rnic_srq_resize(g->fx.r, 2, g->srq.srqn, log_depth,
					 &g->srq.mem),
			 0);
	g->srq.attr.log_depth = log_depth;
}

static void what_is_posted_moves_to_the_new_ring(void **state)
{
	struct rig *g = *state;
	struct rnic_srq_mem mem;
	uint32_t i;

	/* Neither ring begins where its slots do. */
	for (i = 0; i < 5; i++) {
		recv_one(g, 100 + i);
		send(&g->a1, 'x');
		expect_ok(&g->b1.rcq, SF_CQE_RECV, 100 + i);
	}
	for (i = 0; i < DEPTH; i++)
		recv_one(g, i);
	assert_int_equal(rnic_srq_resize(g->fx.r, 2, g->srq.srqn, 2, &mem),
			 EINVAL);
	resize(g, 4);
	for (; i < 2 * DEPTH; i++)
		recv_one(g, i);
	for (i = 0; i < 2 * DEPTH - 2; i++) {
		send(i % 2 ? &g->a2 : &g->a1, 'x');
		expect_ok(i % 2 ? &g->b2.rcq : &g->b1.rcq, SF_CQE_RECV, i);
	}
	resize(g, 1);
	for (; i < 2 * DEPTH; i++) {
		send(&g->a1, 'x');
		expect_ok(&g->b1.rcq, SF_CQE_RECV, i);
	}
	send(&g->a1, 'y');
	recv_one(g, 77);
	expect_ok(&g->b1.rcq, SF_CQE_RECV, 77);
	expect_no_event(&g->fx);
}

static void a_resize_that_cannot_be_changes_nothing(void **state)
{
	struct rig *g = *state;
	struct rnic_srq_attr attr;
	struct rnic_srq_mem mem;

	assert_int_equal(rnic_srq_resize(g->fx.r, 1, g->srq.srqn, 4, &mem),
			 EINVAL);
	assert_int_equal(rnic_srq_resize(g->fx.r, 2, g->srq.srqn,
					 SF_MAX_LOG_DEPTH + 1, &mem),
			 EINVAL);
	recv_one(g, 1);
	recv_one(g, 2);
	recv_one(g, 3);
	assert_int_equal(rnic_srq_set_limit(g->fx.r, 2, g->srq.srqn, 3), 0);
	assert_int_equal(rnic_srq_resize(g->fx.r, 2, g->srq.srqn, 1, &mem),
			 EINVAL);
	fx_lock_busy(&fx_srq_state(&g->srq)->lock, 1);
	assert_int_equal(rnic_srq_resize(g->fx.r, 2, g->srq.srqn, 4, &mem),
			 EBUSY);
	assert_int_equal(rnic_srq_query(g->fx.r, 2, g->srq.srqn, &attr), 0);
	assert_int_equal(attr.log_depth, 3);
	send(&g->a1, 'x');
	expect_ok(&g->b1.rcq, SF_CQE_RECV, 1);
	expect_event(&g->fx, RNIC_EVENT_SRQ_LIMIT_REACHED, 2,
		     SRQ_HANDLE(&g->srq));
}

static void a_qp_in_error_says_that_it_takes_no_more(void **state)
{
	struct rig *g = *state;
	uint64_t i;

	recv_one(g, 1);
	recv_one(g, 2);
	assert_int_equal(fx_modify(&g->b1, RNIC_ERR), 0);
	expect_event(&g->fx, RNIC_EVENT_QP_LAST_WQE_REACHED, 2,
		     END_HANDLE(&g->b1));
	expect_no_event(&g->fx);
	/* The receives are still there, for the other one. */
	expect_no_cqe(&g->b1.rcq);
	i = send(&g->a2, 'y');
	expect_ok(&g->a2.scq, SF_OP_SEND, i);
	expect_ok(&g->b2.rcq, SF_CQE_RECV, 1);
	/* Once a life. */
	assert_int_equal(fx_modify(&g->b1, RNIC_RESET), 0);
	expect_no_event(&g->fx);
}

static void the_receive_in_hand_is_flushed(void **state)
{
	struct rig *g = *state;

	/* Half a message has arrived. */
	fx_qp(&g->b1)->resp.rq_head++;
	fx_qp(&g->b1)->resp.rqe_cookie = 77;
	assert_int_equal(fx_modify(&g->b1, RNIC_ERR), 0);
	expect_cqe(&g->b1.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   77);
	expect_no_cqe(&g->b1.rcq);
}

static void garbage_in_the_ring_is_an_error_of_the_queue(void **state)
{
	struct rig *g = *state;
	struct sf_doorbell *db = rnic_at(g->fx.r, g->srq.mem.doorbell);

	db->value = DEPTH + 1;
	send(&g->a1, 'x');
	expect_event(&g->fx, RNIC_EVENT_SRQ_ERR, 2, SRQ_HANDLE(&g->srq));
	expect_event(&g->fx, RNIC_EVENT_QP_FATAL, 2, END_HANDLE(&g->b1));
	expect_event(&g->fx, RNIC_EVENT_QP_LAST_WQE_REACHED, 2,
		     END_HANDLE(&g->b1));
	/* Once for the queue, once for each who uses it. */
	db->value = 1;
	send(&g->a2, 'x');
	expect_event(&g->fx, RNIC_EVENT_QP_FATAL, 2, END_HANDLE(&g->b2));
	expect_event(&g->fx, RNIC_EVENT_QP_LAST_WQE_REACHED, 2,
		     END_HANDLE(&g->b2));
	expect_no_event(&g->fx);
}

static void a_stopped_holder_is_waited_for_by_retries(void **state)
{
	struct rig *g = *state;
	uint64_t i;

	recv_one(g, 1);
	fx_lock_busy(&fx_srq_state(&g->srq)->lock, 1);
	i = send(&g->a1, 'x');
	expect_no_cqe(&g->a1.scq);
	assert_int_equal(fx_state(&g->b1), RNIC_RTS);
	fx_settle(&g->fx);
	expect_ok(&g->a1.scq, SF_OP_SEND, i);
	expect_ok(&g->b1.rcq, SF_CQE_RECV, 1);
}

/*
 * b1's responder dies between its stores.  @stores of them are done: taker,
 * rq_head, head.
 */
static void taker_dies(struct rig *g, int stores)
{
	struct rnic_srq *srq = fx_srq_state(&g->srq);
	struct rnic_responder *resp = &fx_qp(&g->b1)->resp;

	resp->rqe_cookie = 1;
	resp->rqe_nsge = 1;
	resp->rqe_index = srq->head;
	resp->rqe_sge[0] = fx_sge(&g->bm, 64, 64);
	if (stores > 0)
		srq->taker = g->b1.qpn;
	if (stores > 1)
		resp->rq_head++;
	if (stores > 2)
		srq->head++;
	fx_lock_dead(&srq->lock);
	fx_lock_dead(&resp->lock);
}

static void who_died_while_taking_takes_once(void **state)
{
	struct rig *g = *state;
	int stores, other_first;
	uint64_t i;

	for (stores = 0; stores <= 3; stores++) {
		for (other_first = 0; other_first < 2; other_first++) {
			uint32_t first = stores > 1 ? 2 : 1;

			recv_one(g, 1);
			recv_one(g, 2);
			taker_dies(g, stores);
			if (other_first) {
				i = send(&g->a2, 'y');
				expect_ok(&g->a2.scq, SF_OP_SEND, i);
				expect_ok(&g->b2.rcq, SF_CQE_RECV, first);
			}
			i = send(&g->a1, 'x');
			expect_ok(&g->a1.scq, SF_OP_SEND, i);
			expect_ok(&g->b1.rcq, SF_CQE_RECV,
				  other_first ? 3 - first : 1);
			if (!other_first) {
				i = send(&g->a2, 'y');
				expect_ok(&g->b2.rcq, SF_CQE_RECV, 2);
				expect_ok(&g->a2.scq, SF_OP_SEND, i);
			}
			assert_int_equal(fx_srq_state(&g->srq)->head,
					 g->srq.next);
		}
	}
}

static void a_limit_event_that_a_dead_one_owed_is_raised(void **state)
{
	struct rig *g = *state;
	struct rnic_srq *srq = fx_srq_state(&g->srq);

	/* Disarmed, not told. */
	srq->pending = 1;
	fx_lock_dead(&srq->lock);
	rnic_repair(g->fx.r);
	expect_event(&g->fx, RNIC_EVENT_SRQ_LIMIT_REACHED, 2,
		     SRQ_HANDLE(&g->srq));
	/* Taken, not looked at the limit. */
	srq->limit = 1;
	fx_lock_dead(&srq->lock);
	rnic_repair(g->fx.r);
	expect_event(&g->fx, RNIC_EVENT_SRQ_LIMIT_REACHED, 2,
		     SRQ_HANDLE(&g->srq));
	rnic_repair(g->fx.r);
	expect_no_event(&g->fx);
}

static void a_queue_in_use_is_not_destroyed(void **state)
{
	struct rig *g = *state;
	uint32_t n;

	assert_int_equal(rnic_srq_destroy(g->fx.r, 2, g->srq.srqn, &n), EBUSY);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 2, g->b1.qpn, &n), 0);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 2, g->b2.qpn, &n), 0);
	assert_int_equal(rnic_pd_destroy(g->fx.r, 2, g->owner.pdn), EBUSY);
	assert_int_equal(rnic_srq_destroy(g->fx.r, 1, g->srq.srqn, &n), EINVAL);
	assert_int_equal(rnic_srq_destroy(g->fx.r, 2, g->srq.srqn, &n), 0);
	assert_int_equal(rnic_srq_destroy(g->fx.r, 2, g->srq.srqn, &n), EINVAL);
	rnic_srq_ring(g->fx.r, g->srq.srqn);
}

static void bad_attributes_are_refused(void **state)
{
	struct rig *g = *state;
	struct rnic_srq_attr attr = g->srq.attr;
	struct rnic_qp_init init = g->b1.init;
	struct rnic_srq_mem mem;
	struct rnic_qp_mem qp_mem;
	uint32_t n;

	attr.log_depth = SF_MAX_LOG_DEPTH + 1;
	assert_int_equal(rnic_srq_create(g->fx.r, 2, &attr, &n, &mem), EINVAL);
	attr = g->srq.attr;
	attr.log_stride = SF_RQ_LOG_MIN - 1;
	assert_int_equal(rnic_srq_create(g->fx.r, 2, &attr, &n, &mem), EINVAL);
	attr = g->srq.attr;
	attr.pdn = g->a1.pdn;
	assert_int_equal(rnic_srq_create(g->fx.r, 2, &attr, &n, &mem), EINVAL);
	g->fx.allocs_left = 1;
	assert_int_equal(rnic_srq_create(g->fx.r, 2, &g->srq.attr, &n, &mem),
			 ENOMEM);
	g->fx.allocs_left = -1;
	/* A QP with an SRQ has no receive queue; the SRQ is its context's. */
	init.rq_log_stride = 6;
	assert_int_equal(rnic_qp_create(g->fx.r, 2, &init, &n, &qp_mem),
			 EINVAL);
	init = g->a1.init;
	init.srqn = g->srq.srqn;
	init.rq_log_depth = init.rq_log_stride = 0;
	assert_int_equal(rnic_qp_create(g->fx.r, 1, &init, &n, &qp_mem),
			 EINVAL);
	init.srqn = g->srq.srqn + 1;
	assert_int_equal(rnic_qp_create(g->fx.r, 1, &init, &n, &qp_mem),
			 EINVAL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(messages_of_all_qps_take_receives_in_order),
		T(an_empty_queue_answers_rnr_and_posting_wakes),
		T(rnr_retries_end),
		T(buffers_are_those_of_the_queues_domain),
		T(the_limit_event_comes_once_when_fewer_are_left),
		T(a_limit_that_is_due_raises_its_event_when_armed),
		T(what_is_posted_moves_to_the_new_ring),
		T(a_resize_that_cannot_be_changes_nothing),
		T(a_qp_in_error_says_that_it_takes_no_more),
		T(the_receive_in_hand_is_flushed),
		T(garbage_in_the_ring_is_an_error_of_the_queue),
		T(a_stopped_holder_is_waited_for_by_retries),
		T(who_died_while_taking_takes_once),
		T(a_limit_event_that_a_dead_one_owed_is_raised),
		T(a_queue_in_use_is_not_destroyed),
		T(bad_attributes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
