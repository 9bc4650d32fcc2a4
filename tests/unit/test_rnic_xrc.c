// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * XRC (IBTA vol. 1, annex A14): one process sends, two share a target QP, each
 * with an SRQ and a CQ of its own.
 */
#include <errno.h>
#include "rnic_fixture.h"

struct receiver {
	uint32_t ctx, xrcd;
	struct fx_end owner; /* of its memory: a PD and nothing else */
	struct fx_cq cq;
	struct fx_srq srq;
	struct fx_mr mr;
};

struct rig {
	struct fx fx;
	struct fx_end a;      /* sends */
	struct fx_end target; /* as b has it */
	struct receiver b, c;
	struct fx_mr am;
};

static const struct rnic_xrcd_attr file = {
	.dev = 1, .create = 1, .has_file = 1, .fs = 5, .ino = 77};

static void receiver_new(struct receiver *v, struct fx *fx, uint32_t ctx)
{
	v->ctx = ctx;
	v->owner = (struct fx_end){.fx = fx, .r = fx->r, .ctx = ctx};
	assert_int_equal(rnic_pd_create(fx->r, ctx, 1, &v->owner.pdn), 0);
	assert_int_equal(rnic_xrcd_open(fx->r, ctx, &file, &v->xrcd), 0);
	fx_cq_new(&v->cq, fx->r, ctx, 1, 4, 0);
	fx_xsrq_new(&v->srq, fx, ctx, 1, v->owner.pdn, 3, v->xrcd, &v->cq);
	v->mr = fx_mr(&v->owner, 65536, FX_ALL_ACCESS);
}

static int setup(void **state)
{
	static struct rig g;
	struct fx_opts o = fx_defaults;

	memset(&g, 0, sizeof(g));
	fx_open(&g.fx, RNIC_INFINIBAND);
	receiver_new(&g.b, &g.fx, 2);
	receiver_new(&g.c, &g.fx, 3);
	o.type = RNIC_QPT_XRC_SEND;
	fx_end_new(&g.a, &g.fx, g.fx.r, 1, 0, &o);
	fx_target_new(&g.target, &g.fx, g.fx.r, 2, 1, g.b.xrcd);
	fx_connect(&g.a, &g.target, RNIC_RTS, &o, 10, 20);
	fx_connect(&g.target, &g.a, RNIC_RTS, &o, 20, 10);
	g.am = fx_mr(&g.a, 65536, FX_ALL_ACCESS);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	fx_close(&((struct rig *)*state)->fx);
	return 0;
}

static uint64_t send_to(struct rig *g, uint32_t srqn, uint32_t len)
{
	struct fx_wr wr = {
		.opcode = SF_OP_SEND_IMM,
		.flags = SF_WQE_SIGNALED,
		.imm = 0x1122,
		.srqn = srqn,
		.n_sge = 1,
		.sge = {fx_sge(&g->am, 0, len)},
	};

	fx_fill(g->am.ptr, len, 1);
	return fx_send(&g->a, &wr);
}

static void recv_one(struct receiver *v, uint32_t cookie)
{
	fx_srq_recv(&v->srq, cookie, &v->mr, cookie * 4096, 4096);
}

static void a_message_goes_to_the_srq_that_it_names(void **state)
{
	struct rig *g = *state;
	struct sf_cqe cqe;
	uint64_t i;

	recv_one(&g->b, 1);
	recv_one(&g->c, 2);
	i = send_to(g, g->c.srq.srqn, 3000);
	expect_ok(&g->a.scq, SF_OP_SEND_IMM, i);
	cqe = expect_ok(&g->c.cq, SF_CQE_RECV, 2);
	assert_int_equal(cqe.qpn, g->target.qpn);
	assert_int_equal(cqe.src_qpn, g->a.qpn);
	assert_int_equal(cqe.srqn, g->c.srq.srqn);
	assert_int_equal(sf_cqe_flags(cqe.word), SF_CQE_XRC | SF_CQE_IMM);
	assert_int_equal(cqe.byte_len, 3000);
	assert_memory_equal(g->c.mr.ptr + 2 * 4096, g->am.ptr, 3000);
	expect_no_cqe(&g->b.cq);

	i = send_to(g, g->b.srq.srqn, 1);
	expect_ok(&g->a.scq, SF_OP_SEND_IMM, i);
	expect_ok(&g->b.cq, SF_CQE_RECV, 1);
}

static void rdma_acts_on_memory_of_the_srqs_domain(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = {
		.opcode = SF_OP_WRITE,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = g->c.mr.addr + 64,
		.rkey = g->c.mr.key,
		.srqn = g->c.srq.srqn,
		.n_sge = 1,
		.sge = {fx_sge(&g->am, 0, 5000)},
	};

	fx_fill(g->am.ptr, 5000, 3);
	expect_ok(&g->a.scq, SF_OP_WRITE, fx_send(&g->a, &wr));
	assert_memory_equal(g->c.mr.ptr + 64, g->am.ptr, 5000);

	wr.opcode = SF_OP_READ;
	wr.sge[0] = fx_sge(&g->am, 8192, 5000);
	expect_ok(&g->a.scq, SF_OP_READ, fx_send(&g->a, &wr));
	assert_memory_equal(g->am.ptr + 8192, g->am.ptr, 5000);

	wr.opcode = SF_OP_ATOMIC_FADD;
	wr.sge[0] = fx_sge(&g->am, 0, 8);
	wr.arg0 = 7;
	memset(g->c.mr.ptr + 64, 0, 8);
	expect_ok(&g->a.scq, SF_OP_ATOMIC_FADD, fx_send(&g->a, &wr));
	assert_int_equal(g->c.mr.ptr[64], 7);

	/* A fused signal, too. */
	wr.opcode = SF_OP_WRITE;
	wr.flags |= SF_WQE_SIGNAL;
	wr.arg0 = g->c.mr.addr;
	wr.arg1 = g->c.mr.key | 1ull << 32;
	expect_ok(&g->a.scq, SF_OP_WRITE, fx_send(&g->a, &wr));
	assert_int_equal(g->c.mr.ptr[0], 1);

	/* b's domain is another one, though it has the key. */
	wr.flags = SF_WQE_SIGNALED;
	wr.srqn = g->b.srq.srqn;
	expect_cqe(&g->a.scq, SF_OP_WRITE, SF_ST_REM_ACCESS_ERR, SF_SYN_PEER,
		   fx_send(&g->a, &wr));
	assert_int_equal(fx_state(&g->target), RNIC_ERR);
}

static void an_empty_srq_answers_rnr_and_posting_wakes(void **state)
{
	struct rig *g = *state;
	uint64_t i = send_to(g, g->c.srq.srqn, 100);

	expect_no_cqe(&g->a.scq);
	recv_one(&g->b, 1); /* of no help */
	expect_no_cqe(&g->a.scq);
	recv_one(&g->c, 2);
	expect_ok(&g->a.scq, SF_OP_SEND_IMM, i);
	expect_ok(&g->c.cq, SF_CQE_RECV, 2);
	assert_int_equal(g->fx.now, 1000000000); /* without a timer */
}

static void refused(struct rig *g, uint32_t srqn)
{
	uint64_t i = send_to(g, srqn, 100);

	expect_cqe(&g->a.scq, SF_OP_SEND_IMM, SF_ST_REM_INV_REQ_ERR,
		   SF_SYN_PEER, i);
	assert_int_equal(fx_state(&g->target), RNIC_ERR);
	expect_event(&g->fx, RNIC_EVENT_QP_REQ_ERR, 2, END_HANDLE(&g->target));
	expect_event(&g->fx, RNIC_EVENT_QP_LAST_WQE_REACHED, 2,
		     END_HANDLE(&g->target));
	expect_no_event(&g->fx);
}

static void a_number_that_is_no_srq_is_refused(void **state)
{
	refused(*state, 4000);
}

static void a_plain_srq_is_refused(void **state)
{
	struct rig *g = *state;
	struct fx_srq plain;

	fx_srq_new(&plain, &g->fx, 2, 1, g->b.owner.pdn, 3);
	fx_srq_recv(&plain, 1, &g->b.mr, 0, 64);
	refused(g, plain.srqn);
}

static void an_srq_of_another_domain_is_refused(void **state)
{
	struct rig *g = *state;
	struct rnic_xrcd_attr own = {.dev = 1, .create = 1};
	struct fx_srq other;
	uint32_t xrcd;

	assert_int_equal(rnic_xrcd_open(g->fx.r, 2, &own, &xrcd), 0);
	fx_xsrq_new(&other, &g->fx, 2, 1, g->b.owner.pdn, 3, xrcd, &g->b.cq);
	fx_srq_recv(&other, 1, &g->b.mr, 0, 64);
	refused(g, other.srqn);
}

static void an_srq_that_is_gone_is_refused(void **state)
{
	struct rig *g = *state;
	uint32_t n;

	assert_int_equal(rnic_srq_destroy(g->fx.r, 3, g->c.srq.srqn, &n), 0);
	refused(g, g->c.srq.srqn);
}

static void an_srq_may_go_in_the_middle_of_a_message(void **state)
{
	struct rig *g = *state;
	struct rnic_responder *resp = &fx_qp(&g->target)->resp;
	uint32_t n;

	/* As after the first half of a message to c. */
	resp->srqn = g->c.srq.srqn;
	resp->rq_head++;
	resp->in_message = RNIC_PKT_SEND;
	assert_int_equal(rnic_srq_destroy(g->fx.r, 3, g->c.srq.srqn, &n), 0);
	assert_int_equal(resp->rq_head, resp->rq_done);
	assert_int_equal(fx_modify(&g->target, RNIC_ERR), 0);
	expect_no_cqe(&g->c.cq);
}

static void domains_are_files(void **state)
{
	struct rig *g = *state;
	struct rnic *r = g->fx.r;
	struct rnic_xrcd_attr attr = file;
	uint32_t x, y;

	attr.create = 0; /* it is there already */
	assert_int_equal(rnic_xrcd_open(r, 1, &attr, &x), 0);
	assert_int_equal(r->sh->xrcd[x].domain, r->sh->xrcd[g->b.xrcd].domain);
	attr.create = attr.exclusive = 1;
	assert_int_equal(rnic_xrcd_open(r, 1, &attr, &y), EINVAL);
	attr.exclusive = 0;
	attr.dev = 0; /* each device has its own */
	assert_int_equal(rnic_xrcd_open(r, 1, &attr, &y), 0);
	assert_int_not_equal(r->sh->xrcd[x].domain, r->sh->xrcd[y].domain);
	assert_int_equal(rnic_xrcd_close(r, 1, y), 0);
	attr.create = 0;
	assert_int_equal(rnic_xrcd_open(r, 1, &attr, &y), EAGAIN);
	assert_int_equal(rnic_xrcd_close(r, 2, x), EINVAL);
	assert_int_equal(rnic_xrcd_close(r, 1, x), 0);
	assert_int_equal(rnic_xrcd_close(r, 1, x), EINVAL);
	/* Without a file each is new. */
	attr = (struct rnic_xrcd_attr){.dev = 1, .create = 1};
	assert_int_equal(rnic_xrcd_open(r, 1, &attr, &x), 0);
	assert_int_equal(rnic_xrcd_open(r, 1, &attr, &y), 0);
	assert_int_not_equal(r->sh->xrcd[x].domain, r->sh->xrcd[y].domain);
}

static void a_domain_in_use_stays(void **state)
{
	struct rig *g = *state;
	struct rnic *r = g->fx.r;
	uint32_t n;

	assert_int_equal(rnic_xrcd_close(r, 2, g->b.xrcd), EBUSY);
	assert_int_equal(rnic_srq_destroy(r, 2, g->b.srq.srqn, &n), 0);
	assert_int_equal(rnic_xrcd_close(r, 2, g->b.xrcd), EBUSY);
	assert_int_equal(rnic_qp_destroy(r, 2, g->target.mem.handle, &n), 0);
	assert_int_equal(rnic_xrcd_close(r, 2, g->b.xrcd), 0);
	/* The CQ that the SRQ completed in is free, too. */
	assert_int_equal(rnic_cq_destroy(r, 2, g->b.cq.cqn, &n, &n), 0);
}

static void a_target_goes_with_the_last_who_has_it_open(void **state)
{
	struct rig *g = *state;
	struct rnic *r = g->fx.r;
	struct rnic_qp_attr attr;
	struct rnic_qp_init init;
	uint32_t h, n;
	uint64_t i;

	assert_int_equal(rnic_qp_open(r, 3, g->c.xrcd, 77, 0xc0de, &h), EINVAL);
	assert_int_equal(rnic_qp_open(r, 3, g->b.xrcd, g->target.qpn, 0, &h),
			 EINVAL); /* not its own open of the domain */
	assert_int_equal(rnic_qp_open(r, 3, g->c.xrcd, g->a.qpn, 0, &h),
			 EINVAL);
	assert_int_equal(
		rnic_qp_open(r, 3, g->c.xrcd, g->target.qpn, 0xc0de, &h), 0);
	assert_int_equal(rnic_qp_query(r, 3, h, &attr, &init), 0);
	assert_int_equal(attr.state, RNIC_RTS);
	assert_int_equal(attr.dest_qpn, g->a.qpn);
	assert_int_equal(init.user_handle, 0xc0de);
	/* Handles are their owners'; the number is none. */
	assert_int_equal(rnic_qp_query(r, 2, h, &attr, &init), EINVAL);
	assert_int_equal(rnic_qp_query(r, 2, g->target.qpn, &attr, &init),
			 EINVAL);

	/* Who created it goes first. */
	assert_int_equal(rnic_qp_destroy(r, 2, g->target.mem.handle, &n), 0);
	assert_int_equal(rnic_qp_destroy(r, 2, g->target.mem.handle, &n),
			 EINVAL);
	recv_one(&g->c, 4);
	i = send_to(g, g->c.srq.srqn, 10);
	expect_ok(&g->a.scq, SF_OP_SEND_IMM, i);
	expect_ok(&g->c.cq, SF_CQE_RECV, 4);
	assert_int_equal(rnic_qp_destroy(r, 3, h, &n), 0);
	assert_null(rnic_qp_get(r, g->target.qpn));
}

static void events_go_to_all_who_have_the_target_open(void **state)
{
	struct rig *g = *state;
	struct rnic *r = g->fx.r;
	uint32_t h, n;

	assert_int_equal(
		rnic_qp_open(r, 3, g->c.xrcd, g->target.qpn, 0xc0de, &h), 0);
	send_to(g, 4000, 1);
	expect_event(&g->fx, RNIC_EVENT_QP_REQ_ERR, 2, END_HANDLE(&g->target));
	expect_event(&g->fx, RNIC_EVENT_QP_REQ_ERR, 3, 0xc0de);
	expect_event(&g->fx, RNIC_EVENT_QP_LAST_WQE_REACHED, 2,
		     END_HANDLE(&g->target));
	expect_event(&g->fx, RNIC_EVENT_QP_LAST_WQE_REACHED, 3, 0xc0de);
	expect_no_event(&g->fx);
	assert_int_equal(rnic_qp_destroy(r, 3, h, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(rnic_qp_destroy(r, 2, g->target.mem.handle, &n), 0);
	assert_int_equal(n, 2);
}

static void who_creates_a_target_may_die(void **state)
{
	struct rig *g = *state;
	struct rnic *r = g->fx.r;
	uint32_t h, n;
	uint64_t i;

	assert_int_equal(
		rnic_qp_open(r, 3, g->c.xrcd, g->target.qpn, 0xc0de, &h), 0);
	rnic_ctx_orphan_peers(r, 2);
	assert_true(rnic_ctx_reap(r, 2));
	recv_one(&g->c, 4);
	i = send_to(g, g->c.srq.srqn, 10);
	expect_ok(&g->a.scq, SF_OP_SEND_IMM, i);
	expect_ok(&g->c.cq, SF_CQE_RECV, 4);
	assert_int_equal(rnic_qp_destroy(r, 3, h, &n), 0);
}

static void a_target_whose_sender_dies_is_in_error(void **state)
{
	struct rig *g = *state;

	rnic_ctx_orphan_peers(g->fx.r, 1);
	assert_true(rnic_ctx_reap(g->fx.r, 1));
	assert_int_equal(fx_state(&g->target), RNIC_ERR);
	expect_event(&g->fx, RNIC_EVENT_QP_LAST_WQE_REACHED, 2,
		     END_HANDLE(&g->target));
}

static void only_xrc_talks_to_xrc(void **state)
{
	struct rig *g = *state;
	struct fx_opts o = fx_defaults;
	struct fx_end rc, s;
	struct fx_wr wr = {.opcode = SF_OP_SEND, .flags = SF_WQE_SIGNALED};

	/* An RC requester that names the target, and a target that takes it. */
	fx_end_new(&rc, &g->fx, g->fx.r, 4, 0, &o);
	fx_connect(&rc, &g->target, RNIC_RTS, &o, 10, 20);
	fx_qp(&g->target)->attr.dest_qpn = rc.qpn;
	recv_one(&g->b, 1);
	fx_send(&rc, &wr);
	expect_no_cqe(&g->b.cq);
	/* A sender receives nothing. */
	o.type = RNIC_QPT_XRC_SEND;
	fx_end_new(&s, &g->fx, g->fx.r, 5, 1, &o);
	fx_connect(&s, &g->a, RNIC_RTS, &o, 20, 10);
	fx_modify(&g->a, RNIC_RESET);
	fx_connect(&g->a, &s, RNIC_RTS, &o, 10, 20);
	fx_resync(&g->a);
	wr.srqn = g->b.srq.srqn;
	fx_send(&g->a, &wr);
	expect_no_cqe(&g->b.cq);
	expect_no_cqe(&g->a.scq);
}

static void a_target_has_none_of_rcs_sending_attributes(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_attr attr = {.state = RNIC_RTS, .retry_cnt = 9};

	/* Ignored, though out of range: as the kernel does. */
	assert_int_equal(rnic_qp_modify(g->fx.r, 2, g->target.mem.handle, &attr,
					RNIC_QP_STATE | RNIC_QP_RETRY_CNT |
						RNIC_QP_RNR_RETRY |
						RNIC_QP_MAX_RD_ATOMIC),
			 0);
	assert_int_equal(rnic_qp_modify(g->fx.r, 2, g->target.mem.handle, &attr,
					RNIC_QP_STATE | RNIC_QP_QKEY),
			 EINVAL);
}

static void no_target_is_made_of_what_does_not_fit(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_init init = g->target.init;
	struct rnic_qp_mem mem;
	uint32_t qpn;

	init.xrcd = g->c.xrcd; /* not b's */
	assert_int_equal(rnic_qp_create(g->fx.r, 2, &init, &qpn, &mem), EINVAL);
	init.xrcd = g->b.xrcd;
	init.pdn = g->b.owner.pdn;
	assert_int_equal(rnic_qp_create(g->fx.r, 2, &init, &qpn, &mem), EINVAL);
	init.pdn = 0;
	g->fx.allocs_left = 1;
	assert_int_equal(rnic_qp_create(g->fx.r, 2, &init, &qpn, &mem), ENOMEM);
	g->fx.allocs_left = -1;
	assert_int_equal(rnic_qp_create(g->fx.r, 2, &init, &qpn, &mem), 0);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 2, mem.handle, &qpn), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_message_goes_to_the_srq_that_it_names),
		T(rdma_acts_on_memory_of_the_srqs_domain),
		T(an_empty_srq_answers_rnr_and_posting_wakes),
		T(a_number_that_is_no_srq_is_refused),
		T(a_plain_srq_is_refused),
		T(an_srq_of_another_domain_is_refused),
		T(an_srq_that_is_gone_is_refused),
		T(an_srq_may_go_in_the_middle_of_a_message),
		T(domains_are_files),
		T(a_domain_in_use_stays),
		T(a_target_goes_with_the_last_who_has_it_open),
		T(events_go_to_all_who_have_the_target_open),
		T(who_creates_a_target_may_die),
		T(a_target_whose_sender_dies_is_in_error),
		T(only_xrc_talks_to_xrc),
		T(a_target_has_none_of_rcs_sending_attributes),
		T(no_target_is_made_of_what_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
