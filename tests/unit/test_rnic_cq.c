// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Completion queues: laps, resize, arming, timestamps. */
#include "rnic_fixture.h"

struct rig {
	struct fx fx;
	struct fx_end a, b;
};

static const struct fx_wr nop = {.opcode = SF_OP_NOP, .flags = SF_WQE_SIGNALED};

static void rig_open(struct rig *g, uint32_t cq_log_depth, uint32_t timestamps)
{
	struct fx_opts o = fx_defaults;

	o.cq_log_depth = cq_log_depth;
	o.timestamps = timestamps;
	fx_open(&g->fx, RNIC_INFINIBAND);
	fx_pair(&g->fx, &g->a, &g->b, &o);
}

static int setup(void **state)
{
	static struct rig g;

	rig_open(&g, 3, 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	fx_close(&g->fx);
	return 0;
}

static void post_nops(struct rig *g, uint32_t n)
{
	while (n--)
		fx_send(&g->a, &nop);
}

/* Takes @n completions of consecutive NOPs from *@next on. */
static void take_nops(struct rig *g, uint64_t *next, uint32_t n)
{
	while (n--)
		expect_ok(&g->a.scq, SF_OP_NOP, (*next)++);
}

static void eight_bit_lap_goes_round_more_than_once(void **state)
{
	struct rig *g = *state;
	uint64_t next = g->a.sq_next;
	uint32_t lap;

	for (lap = 0; lap < 600; lap++) {
		post_nops(g, 8);
		take_nops(g, &next, 8);
		expect_no_cqe(&g->a.scq);
	}
}

static void every_slot_can_be_in_use(void **state)
{
	struct rig *g = *state;
	uint64_t next = g->a.sq_next;

	post_nops(g, 8);
	expect_no_event(&g->fx);
	take_nops(g, &next, 8);
	post_nops(g, 3);
	take_nops(g, &next, 3);
	post_nops(g, 8);
	expect_no_event(&g->fx);
	take_nops(g, &next, 8);
}

static void consumer_index_above_the_producer_is_an_overrun(void **state)
{
	struct rig *g = *state;
	struct sf_cq_ctrl *ctrl = rnic_at(g->fx.r, g->a.scq.mem.ctrl);

	ctrl->consumer += 1;
	post_nops(g, 1);
	assert_int_equal(g->fx.events, 2);
	assert_int_equal(fx_state(&g->a), RNIC_ERR);
}

/* ---- resize --------------------------------------------------------- */

static int resize(struct rig *g, uint32_t log_depth)
{
	struct rnic_cq_mem mem;
	int err = rnic_cq_resize(g->fx.r, 1, g->a.scq.cqn, log_depth, &mem);

	if (err)
		return err;
	assert_int_equal(mem.ctrl, g->a.scq.mem.ctrl);
	assert_int_equal(mem.ring_len, 64ull << log_depth);
	g->a.scq.mem = mem;
	g->a.scq.log_depth = log_depth;
	return 0;
}

static void resize_keeps_what_was_not_polled_yet(void **state)
{
	struct rig *g = *state;
	uint32_t from, to, n;

	for (from = 1; from <= 4; from++)
		for (to = 0; to <= 5; to++)
			for (n = 0; n <= 1u << from; n++) {
				uint64_t next;
				uint32_t i;

				if (n > 1u << to)
					continue;
				fx_close(&g->fx);
				rig_open(g, from, 0);
				next = g->a.sq_next;
				/* Not at the beginning of a ring. */
				for (i = 0; i < 5; i++) {
					post_nops(g, 1);
					take_nops(g, &next, 1);
				}
				post_nops(g, n);
				assert_int_equal(resize(g, to), 0);
				take_nops(g, &next, n);
				expect_no_cqe(&g->a.scq);
				for (i = 0; i < 40; i++) {
					post_nops(g, 1);
					take_nops(g, &next, 1);
					expect_no_cqe(&g->a.scq);
				}
				post_nops(g, 1u << to > 16 ? 16 : 1u << to);
				expect_no_event(&g->fx);
			}
}

static void resize_below_what_is_outstanding_changes_nothing(void **state)
{
	struct rig *g = *state;
	uint64_t next = g->a.sq_next;

	post_nops(g, 5);
	assert_int_equal(resize(g, 2), EINVAL);
	assert_int_equal(resize(g, SF_MAX_CQ_LOG_DEPTH + 1), EINVAL);
	take_nops(g, &next, 1);
	assert_int_equal(resize(g, 2), 0);
	take_nops(g, &next, 4);
	expect_no_cqe(&g->a.scq);
}

static void resize_back_and_forth_over_many_laps(void **state)
{
	struct rig *g = *state;
	uint64_t next = g->a.sq_next;
	uint32_t i;

	for (i = 0; i < 2000; i++) {
		post_nops(g, 2);
		if (i % 7 == 0)
			assert_int_equal(resize(g, 1 + i / 7 % 5), 0);
		take_nops(g, &next, 2);
		expect_no_cqe(&g->a.scq);
	}
}

/* ---- arming --------------------------------------------------------- */

static void arm(struct rig *g, struct fx_cq *cq, uint32_t mode)
{
	struct sf_cq_ctrl *ctrl = rnic_at(cq->r, cq->mem.ctrl);

	(void)g;
	store_release(&ctrl->arm,
		      cq->consumer | (uint64_t)mode << SF_CQ_ARM_SHIFT);
	rnic_cq_arm(cq->r, cq->cqn);
}

#define expect_completion_event(g)                                            \
	do {                                                                  \
		expect_event(&(g)->fx, RNIC_EVENT_COMPLETION, 1, 0xc0000001); \
		assert_int_equal(                                             \
			(g)->fx.event[(g)->fx.events_seen - 1].channel, 101); \
		assert_int_equal((g)->fx.event[(g)->fx.events_seen - 1].number,  \
				 (g)->a.scq.cqn);                             \
	} while (0)

static void queue_that_is_not_armed_is_silent(void **state)
{
	struct rig *g = *state;

	post_nops(g, 5);
	expect_no_event(&g->fx);
	arm(g, &g->a.scq, SF_CQ_ARM_NONE);
	post_nops(g, 1);
	expect_no_event(&g->fx);
}

static void armed_queue_fires_once(void **state)
{
	struct rig *g = *state;

	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	expect_no_event(&g->fx);
	post_nops(g, 1);
	expect_completion_event(g);
	post_nops(g, 3);
	expect_no_event(&g->fx);
}

static void moderate(struct rig *g, uint16_t count, uint16_t period)
{
	assert_int_equal(rnic_cq_moderate(g->fx.r, 1, g->a.scq.cqn, count,
					  period),
			 0);
}

static void a_moderated_queue_waits_for_more_completions(void **state)
{
	struct rig *g = *state;
	uint64_t next = g->a.sq_next;

	moderate(g, 4, 100);
	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	post_nops(g, 3);
	expect_no_event(&g->fx);
	post_nops(g, 1);
	expect_completion_event(g);
	/* It stood for all four. */
	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	fx_advance(&g->fx, 1000000);
	expect_no_event(&g->fx);
	take_nops(g, &next, 4);
	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	post_nops(g, 4);
	expect_completion_event(g);
}

static void but_not_for_longer_than_the_period(void **state)
{
	struct rig *g = *state;
	uint64_t next = g->a.sq_next;
	uint32_t i;

	moderate(g, 4, 100);
	for (i = 0; i < 3; i++) {
		arm(g, &g->a.scq, SF_CQ_ARM_ANY);
		post_nops(g, 1);
		fx_advance(&g->fx, 60000);
		expect_no_event(&g->fx);
		post_nops(g, 1);
		fx_advance(&g->fx, 39999);
		expect_no_event(&g->fx);
		fx_advance(&g->fx, 1);
		expect_completion_event(g);
		fx_advance(&g->fx, 1000000);
		expect_no_event(&g->fx);
		take_nops(g, &next, 2);
	}
	/* The timer is late: the next completion does not wait for it. */
	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	post_nops(g, 1);
	g->fx.now += 100000;
	post_nops(g, 1);
	expect_completion_event(g);
}

static void moderation_that_ends_lets_go(void **state)
{
	struct rig *g = *state;

	moderate(g, 4, 100);
	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	post_nops(g, 1);
	expect_no_event(&g->fx);
	moderate(g, 0, 0);
	expect_completion_event(g);
	fx_advance(&g->fx, 1000000);
	expect_no_event(&g->fx);
	moderate(g, 4, 0); /* either 0: none */
	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	post_nops(g, 1);
	expect_completion_event(g);
	assert_int_equal(rnic_cq_moderate(g->fx.r, 2, g->a.scq.cqn, 1, 1),
			 EINVAL);
	assert_int_equal(rnic_cq_moderate(g->fx.r, 1, 0, 1, 1), EINVAL);
}

static void completion_before_the_arm_fires_at_the_arm(void **state)
{
	struct rig *g = *state;
	uint64_t next = g->a.sq_next;

	post_nops(g, 2);
	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	expect_completion_event(g);
	arm(g, &g->a.scq, SF_CQ_ARM_ANY); /* armed before anything is polled */
	expect_completion_event(g);	  /* the second one's */
	arm(g, &g->a.scq, SF_CQ_ARM_ANY);
	expect_no_event(&g->fx);
	take_nops(g, &next, 2);
	arm(g, &g->a.scq, SF_CQ_ARM_ANY); /* now none */
	expect_no_event(&g->fx);
	post_nops(g, 1);
	expect_completion_event(g);
}

static void receive(struct rig *g, uint32_t flags)
{
	struct fx_wr send = {.opcode = SF_OP_SEND,
			     .flags = SF_WQE_INLINE | flags};

	fx_recv(&g->a, 1, NULL, 0);
	fx_send(&g->b, &send);
}

static void solicited_arm_waits_for_a_solicited_completion(void **state)
{
	struct rig *g = *state;
	struct sf_cqe cqe;

	arm(g, &g->a.rcq, SF_CQ_ARM_SOLICITED);
	receive(g, 0);
	receive(g, 0);
	expect_no_event(&g->fx);
	receive(g, SF_WQE_SOLICITED);
	expect_event(&g->fx, RNIC_EVENT_COMPLETION, 1, 0xc0000001);
	receive(g, SF_WQE_SOLICITED);
	expect_no_event(&g->fx);

	/* Armed with the last one still in the queue, then without. */
	while (g->a.rcq.consumer + 1 < fx_cq_state(&g->a.rcq)->producer)
		assert_true(fx_poll(&g->a.rcq, &cqe));
	arm(g, &g->a.rcq, SF_CQ_ARM_SOLICITED);
	expect_event(&g->fx, RNIC_EVENT_COMPLETION, 1, 0xc0000001);
	assert_true(fx_poll(&g->a.rcq, &cqe));
	arm(g, &g->a.rcq, SF_CQ_ARM_SOLICITED);
	expect_no_event(&g->fx);
}

static void errors_count_as_solicited(void **state)
{
	struct rig *g = *state;
	struct fx_wr bad = {.opcode = 0xee};

	arm(g, &g->a.scq, SF_CQ_ARM_SOLICITED);
	post_nops(g, 1);
	expect_no_event(&g->fx);
	fx_send(&g->a, &bad);
	expect_completion_event(g);
}

static void arm_of_any_takes_unsolicited_ones(void **state)
{
	struct rig *g = *state;

	arm(g, &g->a.rcq, SF_CQ_ARM_ANY);
	receive(g, 0);
	expect_event(&g->fx, RNIC_EVENT_COMPLETION, 1, 0xc0000001);
}

static void arms_of_two_queues_do_not_mix(void **state)
{
	struct rig *g = *state;

	arm(g, &g->a.rcq, SF_CQ_ARM_ANY);
	post_nops(g, 1); /* into the other one */
	expect_no_event(&g->fx);
}

static void arming_nonsense_does_nothing(void **state)
{
	struct rig *g = *state;
	struct sf_cq_ctrl *ctrl = rnic_at(g->fx.r, g->a.scq.mem.ctrl);

	rnic_cq_arm(g->fx.r, 0);
	rnic_cq_arm(g->fx.r, g->a.scq.cqn + 100);
	rnic_cq_arm(g->fx.r, ~0u);
	ctrl->arm = ~0ull;
	rnic_cq_arm(g->fx.r, g->a.scq.cqn);
	post_nops(g, 1);
	expect_no_event(&g->fx);
}

/* ---- fields --------------------------------------------------------- */

static void timestamps_are_the_device_clock_if_asked_for(void **state)
{
	struct rig *g = *state;
	struct sf_cqe cqe;

	fx_close(&g->fx);
	rig_open(g, 3, 1);
	g->fx.now = 123456789;
	post_nops(g, 1);
	g->fx.now += 1000;
	post_nops(g, 1);
	cqe = expect_ok(&g->a.scq, SF_OP_NOP, g->a.sq_next - 2);
	assert_int_equal(cqe.timestamp, 123456789);
	cqe = expect_ok(&g->a.scq, SF_OP_NOP, g->a.sq_next - 1);
	assert_int_equal(cqe.timestamp, 123457789);
}

static void one_queue_can_serve_both_ends_of_many_queue_pairs(void **state)
{
	struct rig *g = *state;
	struct fx_end e[3];
	struct fx_cq cq;
	uint32_t i, k, sends[3] = {0}, recvs[3] = {0};
	struct sf_cqe cqe;

	fx_cq_new(&cq, g->fx.r, 3, 0, 6, 0);
	for (i = 0; i < 3; i++) {
		struct rnic_qp_init init;
		uint32_t n;

		fx_end_new(&e[i], &g->fx, g->fx.r, 3, 0, &fx_defaults);
		init = e[i].init;
		rnic_qp_destroy(g->fx.r, 3, e[i].qpn, &n);
		init.send_cqn = init.recv_cqn = cq.cqn;
		assert_int_equal(rnic_qp_create(g->fx.r, 3, &init, &e[i].qpn,
						&e[i].mem),
				 0);
		e[i].init = init;
		fx_connect(&e[i], &e[i], RNIC_RTS, &fx_defaults, 1, 1);
	}
	for (k = 0; k < 5; k++)
		for (i = 0; i < 3; i++) {
			struct fx_wr send = {.opcode = SF_OP_SEND,
					     .flags = SF_WQE_INLINE |
						      SF_WQE_SIGNALED};

			fx_recv(&e[i], k, NULL, 0);
			fx_send(&e[i], &send);
		}
	while (fx_poll(&cq, &cqe))
		for (i = 0; i < 3; i++)
			if (cqe.qpn == e[i].qpn) {
				if (sf_cqe_opcode(cqe.word) == SF_CQE_RECV)
					assert_int_equal(cqe.wr, recvs[i]++);
				else
					sends[i]++;
			}
	for (i = 0; i < 3; i++) {
		assert_int_equal(sends[i], 5);
		assert_int_equal(recvs[i], 5);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(eight_bit_lap_goes_round_more_than_once),
		T(every_slot_can_be_in_use),
		T(consumer_index_above_the_producer_is_an_overrun),
		T(resize_keeps_what_was_not_polled_yet),
		T(resize_below_what_is_outstanding_changes_nothing),
		T(resize_back_and_forth_over_many_laps),
		T(queue_that_is_not_armed_is_silent),
		T(armed_queue_fires_once),
		T(a_moderated_queue_waits_for_more_completions),
		T(but_not_for_longer_than_the_period),
		T(moderation_that_ends_lets_go),
		T(completion_before_the_arm_fires_at_the_arm),
		T(solicited_arm_waits_for_a_solicited_completion),
		T(errors_count_as_solicited),
		T(arm_of_any_takes_unsolicited_ones),
		T(arms_of_two_queues_do_not_mix),
		T(arming_nonsense_does_nothing),
		T(timestamps_are_the_device_clock_if_asked_for),
		T(one_queue_can_serve_both_ends_of_many_queue_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
