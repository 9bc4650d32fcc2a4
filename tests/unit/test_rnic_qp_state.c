// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Life of a queue pair: transitions, attributes, numbers, RESET, destroy. */
#include "rnic_fixture.h"

struct rig {
	struct fx fx;
	struct fx_end a, b;
};

static int setup(void **state)
{
	static struct rig g;

	fx_open(&g.fx, RNIC_INFINIBAND);
	fx_end_new(&g.a, &g.fx, g.fx.r, 1, 0, &fx_defaults);
	fx_end_new(&g.b, &g.fx, g.fx.r, 2, 1, &fx_defaults);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	fx_close(&g->fx);
	return 0;
}

static void connect_a(struct rig *g, uint32_t state)
{
	fx_connect(&g->a, &g->b, state, &fx_defaults, 0x10, 0x20);
}

static void connect_both(struct rig *g)
{
	fx_connect(&g->a, &g->b, RNIC_RTS, &fx_defaults, 0x10, 0x20);
	fx_connect(&g->b, &g->a, RNIC_RTS, &fx_defaults, 0x20, 0x10);
}

/* Brings a from anywhere to @state. */
static void bring(struct rig *g, uint32_t state)
{
	assert_int_equal(fx_modify(&g->a, RNIC_RESET), 0);
	if (state == RNIC_RESET)
		return;
	connect_a(g,
		  state == RNIC_INIT || state == RNIC_RTR ? state : RNIC_RTS);
	if (state == RNIC_SQD || state == RNIC_ERR)
		assert_int_equal(fx_modify(&g->a, state), 0);
	assert_int_equal(fx_state(&g->a), state);
}

static int modify(struct rig *g, struct rnic_qp_attr *attr, uint32_t mask)
{
	return rnic_qp_modify(g->fx.r, 1, g->a.qpn, attr, mask);
}

#define M_INIT (RNIC_QP_PKEY_INDEX | RNIC_QP_PORT | RNIC_QP_ACCESS)
#define M_RTR                                                                \
	(RNIC_QP_AV | RNIC_QP_PATH_MTU | RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN | \
	 RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_MIN_RNR_TIMER)
#define M_RTS                                                      \
	(RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT | RNIC_QP_RNR_RETRY | \
	 RNIC_QP_SQ_PSN | RNIC_QP_MAX_RD_ATOMIC)
#define M_PATH                                                        \
	(RNIC_QP_ACCESS | RNIC_QP_ALT_PATH | RNIC_QP_PATH_MIG_STATE | \
	 RNIC_QP_MIN_RNR_TIMER)

/* IBTA vol. 1, table 91, for RC: written down here once more. */
static const struct {
	uint32_t from, to, required, optional;
} arrows[] = {
	{RNIC_RESET, RNIC_INIT, M_INIT, 0},
	{RNIC_INIT, RNIC_INIT, 0, M_INIT},
	{RNIC_INIT, RNIC_RTR, M_RTR,
	 RNIC_QP_ALT_PATH | RNIC_QP_ACCESS | RNIC_QP_PKEY_INDEX},
	{RNIC_RTR, RNIC_RTS, M_RTS, M_PATH},
	{RNIC_RTS, RNIC_RTS, 0, M_PATH},
	{RNIC_RTS, RNIC_SQD, 0, RNIC_QP_EN_SQD_NOTIFY},
	{RNIC_SQD, RNIC_RTS, 0, M_PATH},
	{RNIC_SQD, RNIC_SQD, 0,
	 RNIC_QP_PORT | RNIC_QP_AV | RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT |
		 RNIC_QP_RNR_RETRY | RNIC_QP_MAX_RD_ATOMIC |
		 RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_ALT_PATH |
		 RNIC_QP_ACCESS | RNIC_QP_PKEY_INDEX | RNIC_QP_MIN_RNR_TIMER |
		 RNIC_QP_PATH_MIG_STATE},
	/* From every state but RESET, which cannot fail. */
	{RNIC_INIT, RNIC_ERR, 0, 0},
	{RNIC_RTR, RNIC_ERR, 0, 0},
	{RNIC_RTS, RNIC_ERR, 0, 0},
	{RNIC_SQD, RNIC_ERR, 0, 0},
	{RNIC_ERR, RNIC_ERR, 0, 0},
	{RNIC_RESET, RNIC_RESET, 0, 0},
	{RNIC_INIT, RNIC_RESET, 0, 0},
	{RNIC_RTR, RNIC_RESET, 0, 0},
	{RNIC_RTS, RNIC_RESET, 0, 0},
	{RNIC_SQD, RNIC_RESET, 0, 0},
	{RNIC_ERR, RNIC_RESET, 0, 0},
};

#define ARROWS (sizeof(arrows) / sizeof(arrows[0]))

static const uint32_t states[] = {RNIC_RESET, RNIC_INIT, RNIC_RTR,
				  RNIC_RTS,   RNIC_SQD,	 RNIC_ERR};

static struct rnic_qp_attr good_attr(struct rig *g, uint32_t to)
{
	struct rnic_qp_attr attr;

	fx_attr(&g->a, &g->b, to, &fx_defaults, 0x10, 0x20, &attr);
	attr.alt_av = attr.av;
	attr.state = to;
	return attr;
}

static int arrow_of(uint32_t from, uint32_t to)
{
	size_t i;

	for (i = 0; i < ARROWS; i++)
		if (arrows[i].from == from && arrows[i].to == to)
			return i;
	return -1;
}

static void only_the_arrows_of_the_specification_exist(void **state)
{
	struct rig *g = *state;
	size_t f;
	uint32_t to;

	for (f = 0; f < 6; f++)
		for (to = RNIC_RESET; to <= RNIC_ERR + 2; to++) {
			struct rnic_qp_attr attr = good_attr(g, to);
			int i = arrow_of(states[f], to);
			uint32_t all = M_INIT | M_RTR | M_RTS | M_PATH, m;
			static const uint32_t masks[] = {0, M_INIT, M_RTR,
							 M_RTS};

			bring(g, states[f]);
			if (i >= 0) {
				m = arrows[i].required | RNIC_QP_STATE;
				assert_int_equal(modify(g, &attr, m), 0);
				assert_int_equal(fx_state(&g->a), to);
				continue;
			}
			for (m = 0; m < 4; m++)
				assert_int_equal(modify(g, &attr,
							masks[m] |
								RNIC_QP_STATE),
						 EINVAL);
			assert_int_equal(modify(g, &attr, all | RNIC_QP_STATE),
					 EINVAL);
			assert_int_equal(fx_state(&g->a), states[f]);
		}
}

static void every_required_attribute_is_required(void **state)
{
	struct rig *g = *state;
	size_t i;
	uint32_t bit;

	for (i = 0; i < ARROWS; i++)
		for (bit = 0; bit < 26; bit++) {
			struct rnic_qp_attr attr = good_attr(g, arrows[i].to);
			uint32_t m = arrows[i].required | RNIC_QP_STATE;

			if (!(arrows[i].required & 1u << bit))
				continue;
			bring(g, arrows[i].from);
			assert_int_equal(modify(g, &attr, m & ~(1u << bit)),
					 EINVAL);
			assert_int_equal(fx_state(&g->a), arrows[i].from);
		}
}

static void attributes_that_do_not_belong_are_refused(void **state)
{
	struct rig *g = *state;
	size_t i;
	uint32_t bit;

	for (i = 0; i < ARROWS; i++)
		for (bit = 2; bit < 32; bit++) {
			struct rnic_qp_attr attr = good_attr(g, arrows[i].to);
			uint32_t known = arrows[i].required |
					 arrows[i].optional | RNIC_QP_STATE;
			int want = known & 1u << bit ? 0 : EINVAL;

			if (1u << bit == RNIC_QP_RATE_LIMIT)
				continue; /* an extension */
			bring(g, arrows[i].from);
			assert_int_equal(modify(g, &attr,
						arrows[i].required |
							RNIC_QP_STATE |
							1u << bit),
					 want);
			assert_int_equal(fx_state(&g->a),
					 want ? arrows[i].from : arrows[i].to);
		}
}

static void current_state_must_be_the_current_state(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_attr attr = {.cur_state = RNIC_RTR, .state = RNIC_RTS};

	bring(g, RNIC_RTS);
	assert_int_equal(modify(g, &attr, RNIC_QP_STATE | RNIC_QP_CUR_STATE),
			 EINVAL);
	attr.cur_state = RNIC_RTS;
	assert_int_equal(modify(g, &attr, RNIC_QP_STATE | RNIC_QP_CUR_STATE),
			 0);
}

static void attributes_alone_stay_in_the_state(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_attr attr = {.min_rnr_timer = 3}, got;
	struct rnic_qp_init init;

	bring(g, RNIC_RTS);
	assert_int_equal(modify(g, &attr, RNIC_QP_MIN_RNR_TIMER), 0);
	rnic_qp_query(g->fx.r, 1, g->a.qpn, &got, &init);
	assert_int_equal(got.min_rnr_timer, 3);
	assert_int_equal(got.state, RNIC_RTS);
	bring(g, RNIC_RTR);
	assert_int_equal(modify(g, &attr, RNIC_QP_MIN_RNR_TIMER), EINVAL);
}

/* One wrong value; the same with a right one passes (see above). */
#define REFUSES(from, to, member, value)                           \
	do {                                                       \
		struct rnic_qp_attr at = good_attr(g, to);         \
		uint32_t m = arrows[arrow_of(from, to)].required | \
			     RNIC_QP_STATE | extra;                \
		at.member = value;                                 \
		bring(g, from);                                    \
		assert_int_equal(modify(g, &at, m), EINVAL);       \
		assert_int_equal(fx_state(&g->a), from);           \
	} while (0)

static void values_out_of_range_are_refused(void **state)
{
	struct rig *g = *state;
	uint32_t extra = 0;

	REFUSES(RNIC_RESET, RNIC_INIT, port_num, 0);
	REFUSES(RNIC_RESET, RNIC_INIT, port_num, 3);
	REFUSES(RNIC_RESET, RNIC_INIT, pkey_index, 1);
	REFUSES(RNIC_RESET, RNIC_INIT, access, 1 << 4);
	REFUSES(RNIC_INIT, RNIC_RTR, path_mtu, 0);
	REFUSES(RNIC_INIT, RNIC_RTR, path_mtu, 6);
	REFUSES(RNIC_INIT, RNIC_RTR, max_dest_rd_atomic,
		RNIC_MAX_RD_ATOMIC + 1);
	REFUSES(RNIC_INIT, RNIC_RTR, min_rnr_timer, 32);
	REFUSES(RNIC_INIT, RNIC_RTR, dest_qpn, 1 << 24);
	REFUSES(RNIC_INIT, RNIC_RTR, av.sl, 16);
	REFUSES(RNIC_INIT, RNIC_RTR, av.port_num, 3);
	REFUSES(RNIC_RTR, RNIC_RTS, timeout, 32);
	REFUSES(RNIC_RTR, RNIC_RTS, retry_cnt, 8);
	REFUSES(RNIC_RTR, RNIC_RTS, rnr_retry, 8);
	REFUSES(RNIC_RTR, RNIC_RTS, max_rd_atomic, RNIC_MAX_RD_ATOMIC + 1);
	extra = RNIC_QP_ALT_PATH;
	REFUSES(RNIC_RTR, RNIC_RTS, alt_av.port_num, 3);
}

static void global_path_needs_a_gid_that_exists(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_attr attr = good_attr(g, RNIC_RTR);
	uint32_t m = M_RTR | RNIC_QP_STATE;

	bring(g, RNIC_INIT);
	attr.av.is_global = 1;
	attr.av.sgid_index = 1;
	assert_int_equal(modify(g, &attr, m), EINVAL);
	attr.av.sgid_index = 0;
	assert_int_equal(modify(g, &attr, m), 0);
}

static void path_mtu_does_not_exceed_the_port(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_attr attr = good_attr(g, RNIC_RTR);

	bring(g, RNIC_INIT);
	g->fx.r->sh->device[0].port[0].info.max_mtu = RNIC_MTU_1024;
	attr.path_mtu = RNIC_MTU_2048;
	assert_int_equal(modify(g, &attr, M_RTR | RNIC_QP_STATE), EINVAL);
	attr.path_mtu = RNIC_MTU_1024;
	assert_int_equal(modify(g, &attr, M_RTR | RNIC_QP_STATE), 0);
}

static void query_gives_back_what_was_set(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_attr want = good_attr(g, RNIC_RTS), got;
	struct rnic_qp_init init;

	connect_a(g, RNIC_RTS);
	assert_int_equal(rnic_qp_query(g->fx.r, 1, g->a.qpn, &got, &init), 0);
	assert_int_equal(got.state, RNIC_RTS);
	assert_int_equal(got.cur_state, RNIC_RTS);
	assert_int_equal(got.path_mtu, want.path_mtu);
	assert_int_equal(got.rq_psn, 0x20);
	assert_int_equal(got.sq_psn, 0x10);
	assert_int_equal(got.dest_qpn, g->b.qpn);
	assert_int_equal(got.access, want.access);
	assert_int_equal(got.timeout, want.timeout);
	assert_int_equal(got.retry_cnt, want.retry_cnt);
	assert_int_equal(got.rnr_retry, want.rnr_retry);
	assert_int_equal(got.min_rnr_timer, want.min_rnr_timer);
	assert_int_equal(got.max_rd_atomic, want.max_rd_atomic);
	assert_int_equal(got.max_dest_rd_atomic, want.max_dest_rd_atomic);
	assert_int_equal(got.port_num, 1);
	assert_memory_equal(&got.av, &want.av, sizeof(want.av));
	assert_memory_equal(&got.cap, &g->a.init.cap, sizeof(got.cap));
	assert_int_equal(init.send_cqn, g->a.scq.cqn);
	assert_int_equal(init.recv_cqn, g->a.rcq.cqn);
	assert_int_equal(init.user_handle, END_HANDLE(&g->a));

	assert_int_equal(fx_modify(&g->a, RNIC_RESET), 0);
	assert_int_equal(rnic_qp_query(g->fx.r, 1, g->a.qpn, &got, &init), 0);
	assert_int_equal(got.state, RNIC_RESET);
	assert_int_equal(got.dest_qpn | got.rq_psn | got.sq_psn | got.timeout,
			 0);
}

static void query_sees_an_error_that_just_happened(void **state)
{
	struct rig *g = *state;
	struct fx_wr bad = {.opcode = 0xee};
	struct rnic_qp_attr got;
	struct rnic_qp_init init;

	connect_a(g, RNIC_RTS);
	fx_send(&g->a, &bad);
	rnic_qp_query(g->fx.r, 1, g->a.qpn, &got, &init);
	assert_int_equal(got.state, RNIC_ERR);
}

static void other_contexts_cannot_touch_it(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_attr attr = {.state = RNIC_RESET};
	struct rnic_qp_init init;
	struct rnic_cq_mem mem;
	uint32_t n, m;

	assert_int_equal(rnic_qp_modify(g->fx.r, 2, g->a.qpn, &attr,
					RNIC_QP_STATE),
			 EINVAL);
	assert_int_equal(rnic_qp_query(g->fx.r, 2, g->a.qpn, &attr, &init),
			 EINVAL);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 2, g->a.qpn, &n), EINVAL);
	assert_int_equal(rnic_cq_destroy(g->fx.r, 2, g->a.scq.cqn, &n, &m),
			 EINVAL);
	assert_int_equal(rnic_cq_resize(g->fx.r, 2, g->a.scq.cqn, 4, &mem),
			 EINVAL);
	assert_int_equal(rnic_pd_destroy(g->fx.r, 2, g->a.pdn), EINVAL);
}

/* ---- posting by state ----------------------------------------------- */

static const struct fx_wr nop = {.opcode = SF_OP_NOP, .flags = SF_WQE_SIGNALED};

static void requests_posted_early_run_when_rts_is_reached(void **state)
{
	struct rig *g = *state;
	uint64_t first = g->a.sq_next;
	struct rnic_qp_attr attr;
	uint32_t mask;

	fx_send(&g->a, &nop);
	connect_a(g, RNIC_RTR);
	fx_send(&g->a, &nop);
	expect_no_cqe(&g->a.scq);
	mask = fx_attr(&g->a, &g->b, RNIC_RTS, &fx_defaults, 1, 2, &attr);
	assert_int_equal(modify(g, &attr, mask), 0);
	expect_ok(&g->a.scq, SF_OP_NOP, first);
	expect_ok(&g->a.scq, SF_OP_NOP, first + 1);
}

static void sqd_holds_new_requests_until_rts(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_attr attr = {.state = RNIC_SQD, .en_sqd_notify = 1};
	uint64_t index;

	connect_a(g, RNIC_RTS);
	assert_int_equal(
		modify(g, &attr, RNIC_QP_STATE | RNIC_QP_EN_SQD_NOTIFY), 0);
	expect_event(&g->fx, RNIC_EVENT_SQ_DRAINED, 1, END_HANDLE(&g->a));
	index = fx_send(&g->a, &nop);
	expect_no_cqe(&g->a.scq);
	attr.state = RNIC_RTS;
	assert_int_equal(modify(g, &attr, RNIC_QP_STATE), 0);
	expect_ok(&g->a.scq, SF_OP_NOP, index);
	expect_no_event(&g->fx);
}

static void sqd_says_nothing_unless_asked(void **state)
{
	struct rig *g = *state;

	connect_a(g, RNIC_RTS);
	assert_int_equal(fx_modify(&g->a, RNIC_SQD), 0);
	expect_no_event(&g->fx);
}

static void receiver_answers_in_rtr_and_sqd(void **state)
{
	struct rig *g = *state;
	struct fx_wr send = {.opcode = SF_OP_SEND,
			     .flags = SF_WQE_SIGNALED | SF_WQE_INLINE};
	uint32_t i;

	connect_both(g);
	assert_int_equal(fx_modify(&g->b, RNIC_RESET), 0);
	fx_connect(&g->b, &g->a, RNIC_RTR, &fx_defaults, 0x20, 0x10);
	for (i = 0; i < 2; i++) {
		fx_recv(&g->b, i, NULL, 0);
		fx_send(&g->a, &send);
		expect_ok(&g->a.scq, SF_OP_SEND, g->a.sq_next - 1);
		expect_ok(&g->b.rcq, SF_CQE_RECV, i);
		if (i == 0) {
			struct rnic_qp_attr attr;
			uint32_t m = fx_attr(&g->b, &g->a, RNIC_RTS,
					     &fx_defaults, 0x20, 0x10, &attr);

			assert_int_equal(rnic_qp_modify(g->fx.r, 2, g->b.qpn,
							&attr, m),
					 0);
			assert_int_equal(fx_modify(&g->b, RNIC_SQD), 0);
		}
	}
}

static void every_way_to_err_marks_the_line(void **state)
{
	struct rig *g = *state;
	size_t i;

	for (i = 1; i < 6; i++) {
		bring(g, states[i]);
		assert_int_equal(fx_modify(&g->a, RNIC_ERR), 0);
		assert_true(fx_line(&g->a)->word & SF_LINE_ERROR);
		assert_true(fx_line(&g->a)->failed == SF_LINE_NO_FAILED);
	}
}

/* ---- RESET ---------------------------------------------------------- */

static void reset_forgets_the_ring_and_its_old_contents_never_run(void **state)
{
	struct rig *g = *state;
	uint32_t round, i;

	for (round = 0; round < 20; round++) {
		uint64_t start;

		/* A full ring of which nothing, some or all was executed. */
		if (round % 3 == 0)
			bring(g, RNIC_INIT);
		else
			bring(g, RNIC_RTS);
		fx_resync(&g->a);
		start = g->a.sq_next;
		for (i = 0; i < 16; i++)
			fx_post(&g->a, &nop);
		if (round % 3 == 1)
			rnic_sq_ring(g->a.r, g->a.qpn);
		bring(g, RNIC_RESET);
		fx_resync(&g->a);
		assert_true(g->a.sq_next >= start + 16);
		assert_int_equal(g->a.sq_next % 16, 0);
		assert_true(fx_line(&g->a)->failed == SF_LINE_NO_FAILED);
		while (round % 3 == 1 && i--)
			expect_ok(&g->a.scq, SF_OP_NOP, start + 15 - i);
		expect_no_cqe(&g->a.scq);
		connect_a(g, RNIC_RTS);
		rnic_sq_ring(g->a.r, g->a.qpn);
		expect_no_cqe(&g->a.scq);
		fx_send(&g->a, &nop);
		expect_ok(&g->a.scq, SF_OP_NOP, g->a.sq_next - 1);
		expect_no_cqe(&g->a.scq);
	}
}

static void reset_forgets_receives_and_errors(void **state)
{
	struct rig *g = *state;
	struct fx_wr send = {.opcode = SF_OP_SEND,
			     .flags = SF_WQE_SIGNALED | SF_WQE_INLINE};

	connect_both(g);
	fx_recv(&g->b, 1, NULL, 0);
	fx_recv(&g->b, 2, NULL, 0);
	assert_int_equal(fx_modify(&g->b, RNIC_RESET), 0);
	assert_int_equal(fx_modify(&g->a, RNIC_ERR), 0);
	assert_int_equal(fx_modify(&g->a, RNIC_RESET), 0);
	fx_resync(&g->a);
	expect_line(&g->a, g->a.sq_next);
	connect_both(g);
	fx_recv(&g->b, 3, NULL, 0);
	fx_send(&g->a, &send);
	expect_ok(&g->a.scq, SF_OP_SEND, g->a.sq_next - 1);
	expect_ok(&g->b.rcq, SF_CQE_RECV, 3);
	expect_no_cqe(&g->b.rcq);
}

static void second_life_raises_its_own_error_event(void **state)
{
	struct rig *g = *state;
	struct fx_wr wr = {.opcode = SF_OP_WRITE,
			   .flags = SF_WQE_INLINE,
			   .data = "x",
			   .len = 1};
	uint32_t life, n;

	for (life = 0; life < 3; life++) {
		connect_both(g);
		fx_send(&g->a, &wr); /* rkey 0 */
		expect_event(&g->fx, RNIC_EVENT_QP_ACCESS_ERR, 2,
			     END_HANDLE(&g->b));
		expect_no_event(&g->fx);
		assert_int_equal(fx_modify(&g->a, RNIC_RESET), 0);
		assert_int_equal(fx_modify(&g->b, RNIC_RESET), 0);
		fx_resync(&g->a);
	}
	assert_int_equal(rnic_qp_destroy(g->fx.r, 2, g->b.qpn, &n), 0);
	assert_int_equal(n, 3);
}

/* ---- destroy, numbers, dependencies --------------------------------- */

static void destroy_with_work_outstanding_leaves_nothing_behind(void **state)
{
	struct rig *g = *state;
	struct fx_wr send = {.opcode = SF_OP_SEND, .flags = SF_WQE_INLINE};
	uint32_t n, qpn = g->a.qpn;

	connect_both(g);
	fx_send(&g->a, &send); /* waits for a receive, with a timer */
	assert_int_not_equal(g->fx.deadline, UINT64_MAX);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 1, qpn, &n), 0);
	fx_settle(&g->fx);
	rnic_sq_ring(g->fx.r, qpn);
	rnic_rq_ring(g->fx.r, qpn);
	fx_recv(&g->b, 1, NULL, 0);
	expect_no_cqe(&g->a.scq);
	expect_no_cqe(&g->b.rcq);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 1, qpn, &n), EINVAL);
}

static void queue_pair_numbers_rotate_and_stale_ones_are_refused(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_mem mem;
	struct rnic_qp_attr attr;
	struct rnic_qp_init init;
	uint32_t qpn, last = 0, n, i;

	for (i = 0; i < 2100; i++) {
		/* Always the same entry: only the generation differs. */
		g->fx.r->sh->qps.next = 5;
		assert_int_equal(
			rnic_qp_create(g->fx.r, 1, &g->a.init, &qpn, &mem), 0);
		assert_int_equal(qpn & (RNIC_MAX_QP - 1), 5);
		assert_int_not_equal(qpn, last);
		assert_true(qpn > 1 && qpn < 0xffffff);
		if (last) {
			assert_int_equal(rnic_qp_query(g->fx.r, 1, last, &attr,
						       &init),
					 EINVAL);
			rnic_sq_ring(g->fx.r, last);
		}
		assert_int_equal(rnic_qp_destroy(g->fx.r, 1, qpn, &n), 0);
		last = qpn;
	}
	g->fx.r->sh->qps.next = RNIC_MAX_QP - 1;
	assert_int_equal(rnic_qp_create(g->fx.r, 1, &g->a.init, &qpn, &mem), 0);
	assert_true(qpn < 0xffffff);
}

static void entries_rotate_before_they_are_used_again(void **state)
{
	struct rig *g = *state;
	uint32_t pd[3], i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(rnic_pd_create(g->fx.r, 1, 0, &pd[i]), 0);
		assert_int_equal(rnic_pd_destroy(g->fx.r, 1, pd[i]), 0);
		assert_int_equal(rnic_pd_destroy(g->fx.r, 1, pd[i]), EINVAL);
	}
	assert_true(pd[0] != pd[1] && pd[1] != pd[2]);
}

static void objects_in_use_cannot_be_destroyed(void **state)
{
	struct rig *g = *state;
	uint32_t n, m;
	struct fx_mr mr;

	assert_int_equal(rnic_pd_destroy(g->fx.r, 1, g->a.pdn), EBUSY);
	assert_int_equal(rnic_cq_destroy(g->fx.r, 1, g->a.scq.cqn, &n, &m),
			 EBUSY);
	assert_int_equal(rnic_cq_destroy(g->fx.r, 1, g->a.rcq.cqn, &n, &m),
			 EBUSY);
	mr = fx_mr(&g->a, 4096, 0);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 1, g->a.qpn, &n), 0);
	assert_int_equal(rnic_pd_destroy(g->fx.r, 1, g->a.pdn), EBUSY);
	assert_int_equal(rnic_mr_destroy(g->fx.r, 1, mr.key), 0);
	assert_int_equal(rnic_pd_destroy(g->fx.r, 1, g->a.pdn), 0);
	assert_int_equal(rnic_cq_destroy(g->fx.r, 1, g->a.scq.cqn, &n, &m), 0);
	assert_int_equal(rnic_cq_destroy(g->fx.r, 1, g->a.rcq.cqn, &n, &m), 0);
}

static void create_refuses_what_does_not_exist(void **state)
{
	struct rig *g = *state;
	struct rnic_qp_init init;
	struct rnic_qp_mem mem;
	uint32_t qpn, i;

	for (i = 0; i < 12; i++) {
		init = g->a.init;
		switch (i) {
		case 0:
			init.dev = 3;
			break;
		case 1:
			init.pdn = g->b.pdn; /* another's */
			break;
		case 2:
			init.pdn = RNIC_MAX_PD;
			break;
		case 3:
			init.send_cqn = g->b.scq.cqn;
			break;
		case 4:
			init.recv_cqn = RNIC_MAX_CQ;
			break;
		case 5:
			init.recv_cqn = 0;
			break;
		case 6:
			init.sq_log_depth = SF_MAX_LOG_DEPTH + 1;
			break;
		case 7:
			init.sq_log_stride = SF_SLOT_LOG_MIN - 1;
			break;
		case 8:
			init.sq_log_stride = SF_SLOT_LOG_MAX + 1;
			break;
		case 9:
			init.rq_log_depth = SF_MAX_LOG_DEPTH + 1;
			break;
		case 10:
			init.rq_log_stride = SF_RQ_LOG_MIN - 1;
			break;
		default:
			init.rq_log_stride = SF_RQ_LOG_MAX + 1;
		}
		assert_int_equal(rnic_qp_create(g->fx.r, 1, &init, &qpn, &mem),
				 EINVAL);
	}
	init = g->a.init;
	init.type = 8; /* RAW_PACKET */
	assert_int_equal(rnic_qp_create(g->fx.r, 1, &init, &qpn, &mem),
			 EOPNOTSUPP);
}

static void create_without_memory_leaves_nothing_behind(void **state)
{
	struct rig *g = *state;
	struct rnic_cq_attr cqa = {.log_depth = 4};
	struct rnic_objects before, after;
	struct rnic_qp_mem mem;
	struct rnic_cq_mem cmem;
	uint32_t num, used = g->fx.r->sh->qps.used;
	int left;

	rnic_count_objects(g->fx.r, ~0u, &before);
	for (left = 0; left < 2; left++) {
		g->fx.allocs_left = left;
		assert_int_equal(rnic_qp_create(g->fx.r, 1, &g->a.init, &num,
						&mem),
				 ENOMEM);
		g->fx.allocs_left = left;
		assert_int_equal(rnic_cq_create(g->fx.r, 1, &cqa, &num, &cmem),
				 ENOMEM);
	}
	g->fx.allocs_left = 0;
	assert_int_equal(rnic_cq_resize(g->fx.r, 1, g->a.scq.cqn, 8, &cmem),
			 ENOMEM);
	g->fx.allocs_left = -1;
	rnic_count_objects(g->fx.r, ~0u, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(g->fx.r->sh->qps.used, used);
}

static void pools_end_with_enomem(void **state)
{
	struct rig *g = *state;
	uint32_t pdn, i;

	for (i = 3; i < RNIC_MAX_PD; i++) /* 0 is never given out */
		assert_int_equal(rnic_pd_create(g->fx.r, 5, 0, &pdn), 0);
	assert_int_equal(rnic_pd_create(g->fx.r, 5, 0, &pdn), ENOMEM);
	assert_int_equal(rnic_pd_destroy(g->fx.r, 5, 100), 0);
	assert_int_equal(rnic_pd_create(g->fx.r, 5, 0, &pdn), 0);
	assert_int_equal(pdn, 100);
}

static void reap_takes_only_what_the_context_owns(void **state)
{
	struct rig *g = *state;
	struct rnic_objects n;

	connect_both(g);
	fx_mr(&g->a, 4096, 0);
	rnic_ctx_reap(g->fx.r, 1);
	rnic_count_objects(g->fx.r, ~0u, &n);
	assert_int_equal(n.pds, 1);
	assert_int_equal(n.cqs, 2);
	assert_int_equal(n.qps, 1);
	assert_int_equal(n.mrs, 0);
	rnic_count_objects(g->fx.r, 0, &n);
	assert_int_equal(n.pds | n.cqs | n.qps, 0);
}

static void destroy_is_refused_while_somebody_is_stuck_inside(void **state)
{
	struct rig *g = *state;
	uint32_t n;

	connect_both(g);
	fx_lock_busy(&fx_qp(&g->a)->resp.lock, 1);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 1, g->a.qpn, &n), EBUSY);
	assert_int_equal(rnic_qp_destroy(g->fx.r, 1, g->a.qpn, &n), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(only_the_arrows_of_the_specification_exist),
		T(every_required_attribute_is_required),
		T(attributes_that_do_not_belong_are_refused),
		T(current_state_must_be_the_current_state),
		T(attributes_alone_stay_in_the_state),
		T(values_out_of_range_are_refused),
		T(global_path_needs_a_gid_that_exists),
		T(path_mtu_does_not_exceed_the_port),
		T(query_gives_back_what_was_set),
		T(query_sees_an_error_that_just_happened),
		T(other_contexts_cannot_touch_it),
		T(requests_posted_early_run_when_rts_is_reached),
		T(sqd_holds_new_requests_until_rts),
		T(sqd_says_nothing_unless_asked),
		T(receiver_answers_in_rtr_and_sqd),
		T(every_way_to_err_marks_the_line),
		T(reset_forgets_the_ring_and_its_old_contents_never_run),
		T(reset_forgets_receives_and_errors),
		T(second_life_raises_its_own_error_event),
		T(destroy_with_work_outstanding_leaves_nothing_behind),
		T(queue_pair_numbers_rotate_and_stale_ones_are_refused),
		T(entries_rotate_before_they_are_used_again),
		T(objects_in_use_cannot_be_destroyed),
		T(create_refuses_what_does_not_exist),
		T(create_without_memory_leaves_nothing_behind),
		T(pools_end_with_enomem),
		T(reap_takes_only_what_the_context_owns),
		T(destroy_is_refused_while_somebody_is_stuck_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
