// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thread dies with locks held.  Each test forges what such a thread leaves
 * after some of its stores, and lets the next one come by: all is done exactly
 * once.
 */
#include "rnic_fixture.h"

/* All that one side's completion of a request touches. */
struct side {
	struct rnic_requester req;
	struct rnic_responder resp;
	uint64_t scq_producer, rcq_producer;
	struct sf_cqe scqe, rcqe;
	struct sf_send_line line;
};

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	uint64_t first;
	struct side a0, a1, b0, b1; /* before and after */
};

static void rig_open(struct rig *g)
{
	fx_open(&g->fx, RNIC_INFINIBAND);
	fx_pair(&g->fx, &g->a, &g->b, &fx_defaults);
	g->am = fx_mr(&g->a, 65536, FX_ALL_ACCESS);
	g->bm = fx_mr(&g->b, 65536, FX_ALL_ACCESS);
	g->first = g->a.sq_next;
}

static int setup(void **state)
{
	static struct rig g;

	rig_open(&g);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	fx_close(&g->fx);
	return 0;
}

static struct sf_cqe *slot_of(const struct fx_cq *cq, uint64_t index)
{
	struct sf_cqe *ring = rnic_at(cq->r, cq->mem.ring);

	return &ring[index & ((1ull << cq->log_depth) - 1)];
}

/* The slots are those that the next CQE would go to when @at was taken. */
static void snap(const struct fx_end *e, struct side *s, const struct side *at)
{
	s->req = fx_qp(e)->req;
	s->resp = fx_qp(e)->resp;
	s->scq_producer = fx_cq_state(&e->scq)->producer;
	s->rcq_producer = fx_cq_state(&e->rcq)->producer;
	s->scqe = *slot_of(&e->scq, at->scq_producer);
	s->rcqe = *slot_of(&e->rcq, at->rcq_producer);
	s->line = *fx_line(e);
}

static void snap_first(const struct fx_end *e, struct side *s)
{
	s->scq_producer = fx_cq_state(&e->scq)->producer;
	s->rcq_producer = fx_cq_state(&e->rcq)->producer;
	snap(e, s, s);
}

static struct fx_wr request(const struct rig *g, uint32_t opcode)
{
	struct fx_wr wr = {
		.opcode = opcode,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = g->bm.addr,
		.rkey = g->bm.key,
		.n_sge = opcode == SF_OP_NOP ? 0 : 1,
		.arg0 = 1,
	};

	wr.sge[0] = fx_sge(&g->am, 0, 8);
	return wr;
}

/* Executes one request and remembers how all looked before and after. */
static void execute(struct rig *g, const struct fx_wr *wr)
{
	fx_post(&g->a, wr);
	fx_recv_mr(&g->b, 70, &g->bm, 4096, 64);
	fx_recv_mr(&g->b, 71, &g->bm, 4096, 64);
	snap_first(&g->a, &g->a0);
	snap_first(&g->b, &g->b0);
	rnic_sq_ring(g->a.r, g->a.qpn);
	snap(&g->a, &g->a1, &g->a0);
	snap(&g->b, &g->b1, &g->b0);
}

/* a's requester and send CQ as they were before. */
static void undo_requester(struct rig *g)
{
	struct rnic_requester *req = &fx_qp(&g->a)->req;

	*req = g->a0.req;
	/* It had sent the request already. */
	req->cur = g->a1.req.cur;
	req->next_psn = g->a1.req.next_psn;
	fx_cq_state(&g->a.scq)->producer = g->a0.scq_producer;
	*slot_of(&g->a.scq, g->a0.scq_producer) = g->a0.scqe;
	*fx_line(&g->a) = g->a0.line;
	fx_lock_dead(&req->lock);
}

static void undo_responder(struct rig *g)
{
	fx_qp(&g->b)->resp = g->b0.resp;
	fx_cq_state(&g->b.rcq)->producer = g->b0.rcq_producer;
	*slot_of(&g->b.rcq, g->b0.rcq_producer) = g->b0.rcqe;
	fx_lock_dead(&fx_qp(&g->b)->resp.lock);
}

static void come_by(struct rig *g, bool daemon)
{
	if (daemon)
		rnic_repair(g->fx.r);
	else
		rnic_sq_ring(g->a.r, g->a.qpn);
	fx_settle(&g->fx);
}

/* How far the dead one came with the completion of a request. */
enum stage {
	SENT,		/* the answer was there, nothing is stored */
	INTENT,		/* in the CQ's lock, no CQE yet */
	CQE_WRITTEN,	/* but the producer index was not moved */
	CQ_DONE,	/* una was not moved */
	UNA_MOVED,	/* the intent is still set, the line is old */
	INTENT_CLEARED, /* the line is old */
	LINE_STORED,	/* only the lock was left */
	STAGES
};

static uint64_t arena_offset(const struct rig *g, const void *p)
{
	return (const char *)p - (const char *)g->fx.r->sh;
}

static void forge_requester(struct rig *g, enum stage stage)
{
	struct rnic_requester *req = &fx_qp(&g->a)->req;
	struct rnic_cq *cq = fx_cq_state(&g->a.scq);

	undo_requester(g);
	if (stage >= INTENT) {
		req->intent.cqe = g->a0.scq_producer;
		req->intent.set = 1;
		req->intent_wqe = g->first;
		if (stage < CQ_DONE) {
			cq->intent = arena_offset(g, &req->intent);
			fx_lock_dead(&cq->lock);
		}
	}
	if (stage >= CQE_WRITTEN)
		*slot_of(&g->a.scq, g->a0.scq_producer) = g->a1.scqe;
	if (stage >= CQ_DONE)
		cq->producer = g->a1.scq_producer;
	if (stage >= UNA_MOVED) {
		memcpy(req->una, g->a1.req.una, sizeof(req->una));
		req->una_sel = g->a1.req.una_sel;
	}
	if (stage >= INTENT_CLEARED)
		req->intent.set = 0;
	if (stage >= LINE_STORED)
		*fx_line(&g->a) = g->a1.line;
}

static const uint8_t ops[] = {SF_OP_SEND, SF_OP_WRITE,	     SF_OP_WRITE_IMM,
			      SF_OP_READ, SF_OP_ATOMIC_FADD, SF_OP_NOP};

static bool takes_receive(uint32_t opcode)
{
	return opcode == SF_OP_SEND || opcode == SF_OP_WRITE_IMM;
}

/* The request at g->first is done, once, whatever @opcode was. */
static void done_once(struct rig *g, uint32_t opcode, bool signaled)
{
	struct sf_cqe cqe;

	if (signaled)
		expect_ok(&g->a.scq, opcode, g->first);
	if (takes_receive(opcode)) {
		assert_true(fx_poll(&g->b.rcq, &cqe));
		assert_int_equal(cqe.wr, 70);
		assert_int_equal(sf_cqe_status(cqe.word), 0);
	}
	if (opcode == SF_OP_ATOMIC_FADD) {
		assert_int_equal(*(uint64_t *)g->bm.ptr, 1);
		assert_int_equal(*(uint64_t *)g->am.ptr, 0);
	}
}

static void requester_stage(struct rig *g, uint32_t opcode, enum stage stage,
			    bool signaled, bool next, bool daemon)
{
	struct fx_wr wr = request(g, opcode), last = request(g, SF_OP_NOP);

	if (!signaled)
		wr.flags = 0;
	execute(g, &wr);
	forge_requester(g, stage);
	if (next)
		fx_post(&g->a, &last);

	come_by(g, daemon);

	done_once(g, opcode, signaled);
	if (next)
		expect_ok(&g->a.scq, SF_OP_NOP, g->first + 1);
	expect_no_cqe(&g->a.scq);
	expect_no_cqe(&g->b.rcq);
	expect_line(&g->a, g->first + 1 + next);
	assert_int_equal(fx_qp(&g->a)->req.intent.set, 0);
	assert_int_equal(fx_qp(&g->b)->resp.msn, opcode != SF_OP_NOP);
	expect_no_event(&g->fx);
	fx_close(&g->fx);
	rig_open(g);
}

static void requester_that_died_while_completing_completes_once(void **state)
{
	struct rig *g = *state;
	size_t i;
	uint32_t stage, v;

	for (i = 0; i < sizeof(ops); i++)
		for (stage = SENT; stage < STAGES; stage++)
			for (v = 0; v < 4; v++)
				requester_stage(g, ops[i], stage, true, v & 1,
						v & 2);
}

static void unsignaled_request_of_a_dead_one_moves_the_line(void **state)
{
	struct rig *g = *state;
	size_t i;
	uint32_t v;

	for (i = 0; i < sizeof(ops); i++)
		for (v = 0; v < 4; v++) {
			requester_stage(g, ops[i], SENT, false, v & 1, v & 2);
			requester_stage(g, ops[i], INTENT_CLEARED, false, v & 1,
					v & 2);
		}
}

/* ---- the responder -------------------------------------------------- */

enum rstage {
	R_TAKEN, /* the receive, nothing else */
	R_INTENT,
	R_CQE_WRITTEN,
	R_CQ_DONE,    /* have_rqe still set */
	R_RQE_DONE,   /* epsn not moved */
	R_EPSN_MOVED, /* intent still set */
	R_DONE,
	RSTAGES
};

static void forge_responder(struct rig *g, enum rstage stage)
{
	struct rnic_responder *resp = &fx_qp(&g->b)->resp;
	struct rnic_cq *cq = fx_cq_state(&g->b.rcq);

	undo_requester(g);
	undo_responder(g);
	resp->rq_head = g->b1.resp.rq_head;
	resp->rqe_cookie = g->b1.resp.rqe_cookie;
	resp->rqe_nsge = g->b1.resp.rqe_nsge;
	memcpy(resp->rqe_sge, g->b1.resp.rqe_sge, sizeof(resp->rqe_sge));
	resp->rq_done = resp->rq_head - (stage < R_RQE_DONE);
	if (stage >= R_INTENT) {
		resp->intent.cqe = g->b0.rcq_producer;
		resp->intent.set = 1;
		resp->intent_progress = g->b1.resp.progress;
		if (stage < R_CQ_DONE) {
			cq->intent = arena_offset(g, &resp->intent);
			fx_lock_dead(&cq->lock);
		}
	}
	if (stage >= R_CQE_WRITTEN)
		*slot_of(&g->b.rcq, g->b0.rcq_producer) = g->b1.rcqe;
	if (stage >= R_CQ_DONE)
		cq->producer = g->b1.rcq_producer;
	if (stage >= R_EPSN_MOVED) {
		resp->progress = g->b1.resp.progress;
	}
	if (stage >= R_DONE)
		resp->intent.set = 0;
}

static void responder_that_died_while_delivering_delivers_once(void **state)
{
	struct rig *g = *state;
	static const uint8_t recvs[] = {SF_OP_SEND, SF_OP_WRITE_IMM};
	uint32_t i, stage, v;

	for (i = 0; i < 2; i++)
		for (stage = R_TAKEN; stage < RSTAGES; stage++)
			for (v = 0; v < 4; v++) {
				struct fx_wr wr = request(g, recvs[i]);

				execute(g, &wr);
				forge_responder(g, stage);
				if (v & 1)
					fx_post(&g->a, &wr);
				come_by(g, v & 2);
				done_once(g, recvs[i], true);
				if (v & 1) {
					struct sf_cqe cqe;

					expect_ok(&g->a.scq, recvs[i],
						  g->first + 1);
					assert_true(fx_poll(&g->b.rcq, &cqe));
					assert_int_equal(cqe.wr, 71);
				}
				expect_no_cqe(&g->a.scq);
				expect_no_cqe(&g->b.rcq);
				assert_int_equal(fx_qp(&g->b)->resp.msn,
						 1 + (v & 1));
				assert_int_equal(fx_qp(&g->b)->resp.rq_head,
						 1 + (v & 1));
				fx_close(&g->fx);
				rig_open(g);
			}
}

static void atomic_whose_result_was_noted_is_not_done_again(void **state)
{
	struct rig *g = *state;
	uint32_t v;

	for (v = 0; v < 2; v++) {
		struct fx_wr wr = request(g, SF_OP_ATOMIC_FADD);

		execute(g, &wr);
		undo_requester(g);
		fx_qp(&g->b)->resp.progress = g->b0.resp.progress;
		fx_qp(&g->b)->resp.atomics = g->b0.resp.atomics;
		fx_lock_dead(&fx_qp(&g->b)->resp.lock);
		memset(g->am.ptr, 0xee, 8);

		come_by(g, v);

		done_once(g, SF_OP_ATOMIC_FADD, true);
		expect_no_cqe(&g->a.scq);
		fx_send(&g->a, &wr);
		expect_ok(&g->a.scq, SF_OP_ATOMIC_FADD, g->first + 1);
		assert_int_equal(*(uint64_t *)g->bm.ptr, 2);
		fx_close(&g->fx);
		rig_open(g);
	}
}

/* ---- errors --------------------------------------------------------- */

static void flush_goes_on_where_a_dead_one_left_it(void **state)
{
	struct rig *g = *state;
	uint32_t stage, v;

	for (stage = SENT; stage < LINE_STORED; stage++)
		for (v = 0; v < 2; v++) {
			struct fx_wr bad = request(g, SF_OP_WRITE);
			struct fx_wr nop = request(g, SF_OP_NOP);
			struct rnic_requester *req = &fx_qp(&g->a)->req;

			bad.rkey ^= 1;
			execute(g, &bad);
			assert_int_equal(fx_state(&g->a), RNIC_ERR);
			forge_requester(g, stage);
			req->fail_status = SF_ST_REM_ACCESS_ERR;
			req->fail_syndrome = SF_SYN_PEER;
			req->failed = stage > SENT;
			if (req->failed)
				fx_line(&g->a)->failed = g->first;
			fx_line(&g->a)->status = SF_ST_REM_ACCESS_ERR;
			fx_line(&g->a)->syndrome = SF_SYN_PEER;
			if (stage == INTENT_CLEARED)
				req->fail_status = 0;
			fx_post(&g->a, &nop);

			come_by(g, v);

			expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_REM_ACCESS_ERR,
				   SF_SYN_PEER, g->first);
			expect_cqe(&g->a.scq, SF_OP_NOP, SF_ST_WR_FLUSH_ERR,
				   SF_SYN_QP_STATE, g->first + 1);
			expect_no_cqe(&g->a.scq);
			expect_failed_line(&g->a, g->first,
					   SF_ST_REM_ACCESS_ERR, SF_SYN_PEER);
			fx_close(&g->fx);
			rig_open(g);
		}
}

static void one_who_died_after_the_error_is_flushed_for(void **state)
{
	struct rig *g = *state;
	struct fx_wr nop = request(g, SF_OP_NOP);

	/* State stored, nothing flushed, lock left behind. */
	fx_recv_mr(&g->a, 1, &g->am, 0, 8);
	fx_post(&g->a, &nop);
	fx_qp(&g->a)->state = RNIC_ERR;
	fx_lock_dead(&fx_qp(&g->a)->req.lock);
	fx_lock_dead(&fx_qp(&g->a)->resp.lock);
	rnic_repair(g->fx.r);
	expect_cqe(&g->a.scq, SF_OP_NOP, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   g->first);
	expect_cqe(&g->a.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   1);
	assert_true(fx_line(&g->a)->word & SF_LINE_ERROR);
}

/* ---- events --------------------------------------------------------- */

static void event_of_a_dead_one_is_raised_once(void **state)
{
	struct rig *g = *state;
	struct fx_wr nop = request(g, SF_OP_NOP);
	struct rnic_cq *cq = fx_cq_state(&g->a.scq);
	uint32_t v;

	for (v = 0; v < 2; v++) {
		fx_send(&g->a, &nop);
		/* Died after disarming it, or just before. */
		cq->armed = v ? (uint64_t)SF_CQ_ARM_ANY << SF_CQ_ARM_SHIFT : 0;
		cq->told = v ? 0 : cq->producer;
		cq->pending = 1;
		rnic_repair(g->fx.r);
		expect_event(&g->fx, RNIC_EVENT_COMPLETION, 1, 0xc0000001);
		rnic_repair(g->fx.r);
		expect_no_event(&g->fx);
	}
}

static void repair_of_the_healthy_changes_nothing(void **state)
{
	struct rig *g = *state;
	uint32_t i;

	for (i = 0; i < 20; i++) {
		struct fx_wr wr = request(g, ops[i % 6]);
		struct sf_cqe cqe;

		fx_recv_mr(&g->b, 1, &g->bm, 4096, 64);
		rnic_repair(g->fx.r);
		fx_send(&g->a, &wr);
		rnic_repair(g->fx.r);
		expect_ok(&g->a.scq, ops[i % 6], g->first + i);
		if (!takes_receive(ops[i % 6]))
			fx_send(&g->a, &(struct fx_wr){.opcode = SF_OP_SEND}),
				g->first++;
		assert_true(fx_poll(&g->b.rcq, &cqe));
		expect_no_cqe(&g->a.scq);
		expect_no_event(&g->fx);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(requester_that_died_while_completing_completes_once),
		T(unsignaled_request_of_a_dead_one_moves_the_line),
		T(responder_that_died_while_delivering_delivers_once),
		T(atomic_whose_result_was_noted_is_not_done_again),
		T(flush_goes_on_where_a_dead_one_left_it),
		T(one_who_died_after_the_error_is_flushed_for),
		T(event_of_a_dead_one_is_raised_once),
		T(repair_of_the_healthy_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
