// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ports that go down and come up, under traffic (IBTA vol. 1, 9.7.6.1.3). */
#include <errno.h>
#include "rnic_fixture.h"

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
};

static struct rig g;

static int setup(void **state)
{
	struct fx_opts o = fx_defaults;

	(void)state;
	memset(&g, 0, sizeof(g));
	fx_open(&g.fx, RNIC_INFINIBAND);
	fx_pair(&g.fx, &g.a, &g.b, &o);
	g.am = fx_mr(&g.a, 4096, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.b, 4096, FX_ALL_ACCESS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx_close(&g.fx);
	return 0;
}

static uint64_t send_one(struct fx_end *e)
{
	struct fx_wr wr = {.opcode = SF_OP_SEND, .flags = SF_WQE_SIGNALED};

	return fx_send(e, &wr);
}

static void set_port(uint32_t dev, bool up)
{
	assert_int_equal(rnic_port_set(g.fx.r, dev, 1, up), 0);
}

static void a_short_break_costs_retries_only(void **state)
{
	uint32_t dev;
	uint64_t i;

	(void)state;
	/* The requester's port, then the responder's. */
	for (dev = 0; dev < 2; dev++) {
		set_port(dev, false);
		fx_recv_mr(&g.b, 7, &g.bm, 0, 64);
		i = send_one(&g.a);
		expect_no_cqe(&g.b.rcq);
		assert_true(fx_next_timer(&g.fx));
		assert_true(fx_next_timer(&g.fx));
		expect_no_cqe(&g.a.scq);
		set_port(dev, true);
		fx_settle(&g.fx);
		expect_ok(&g.a.scq, SF_OP_SEND, i);
		expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	}
}

static void a_long_one_ends_with_the_retries(void **state)
{
	uint64_t i;

	(void)state;
	set_port(1, false);
	i = send_one(&g.a);
	fx_settle(&g.fx);
	expect_cqe(&g.a.scq, SF_OP_SEND, SF_ST_RETRY_EXC_ERR, SF_SYN_TIMEOUT,
		   i);
	assert_int_equal(fx_state(&g.a), RNIC_ERR);
	assert_int_equal(fx_state(&g.b), RNIC_RTS);
}

static void who_connects_meanwhile_is_heard_later(void **state)
{
	struct fx_opts o = fx_defaults;
	struct fx_end c, d;
	uint64_t i;

	(void)state;
	set_port(0, false);
	fx_end_new(&c, &g.fx, g.fx.r, 3, 0, &o);
	fx_end_new(&d, &g.fx, g.fx.r, 4, 1, &o);
	fx_connect(&c, &d, RNIC_RTS, &o, 10, 20);
	fx_connect(&d, &c, RNIC_RTS, &o, 20, 10);
	set_port(0, true);
	fx_recv_mr(&d, 7, &g.bm, 0, 0);
	i = send_one(&c);
	expect_ok(&c.scq, SF_OP_SEND, i);
	expect_ok(&d.rcq, SF_CQE_RECV, 7);
}

static void datagrams_are_lost(void **state)
{
	struct fx_opts o = fx_defaults;
	struct fx_wr wr = {
		.opcode = SF_OP_SEND,
		.flags = SF_WQE_SIGNALED,
		.rkey = FX_QKEY,
	};
	uint8_t mgid[16] = {0xff, 0x12};
	struct rnic_av group = {.dlid = 0xc001, .port_num = 1};
	struct fx_end c, d;
	struct fx_mr mr;
	uint32_t before, mcast, cookie = 1, dev, n;

	(void)state;
	o.type = RNIC_QPT_UD;
	fx_end_new(&c, &g.fx, g.fx.r, 3, 0, &o);
	fx_end_new(&d, &g.fx, g.fx.r, 4, 1, &o);
	fx_connect(&c, &d, RNIC_RTS, &o, 10, 20);
	fx_connect(&d, &c, RNIC_RTS, &o, 20, 10);
	mr = fx_mr(&d, 4096, FX_ALL_ACCESS);
	assert_int_equal(rnic_mcast_attach(g.fx.r, 4, d.qpn, mgid, 0xc001), 0);
	before = fx_ah(&c, &d, false);
	assert_int_equal(rnic_ah_create(g.fx.r, 3, 0, c.pdn, &group, &mcast),
			 0);
	for (dev = 0; dev < 2; dev++) {
		set_port(dev, false);
		uint32_t ah[] = {before, fx_ah(&c, &d, false), mcast};

		for (n = 0; n < 6; n++) {
			if (n == 3)
				set_port(dev, true);
			fx_recv_mr(&d, cookie, &mr, 0, 64);
			wr.remote_addr =
				ah[n % 3] |
				(uint64_t)(n % 3 == 2 ? 0xffffff : d.qpn) << 32;
			/* Sent is done, heard or not. */
			expect_ok(&c.scq, SF_OP_SEND, fx_send(&c, &wr));
			if (n < 3)
				expect_no_cqe(&d.rcq);
			else
				expect_ok(&d.rcq, SF_CQE_RECV, cookie - 3);
			cookie++;
		}
		cookie -= 3; /* as many receives are left */
		while (fx_poll(&d.rcq, &(struct sf_cqe){0}))
			;
		fx_modify(&d, RNIC_RESET);
		fx_connect(&d, &c, RNIC_RTS, &o, 20, 10);
		cookie = 1;
	}
	assert_int_equal(rnic_mcast_detach(g.fx.r, 4, d.qpn, mgid, 0xc001), 0);
}

static void the_port_says_how_it_is(void **state)
{
	struct rnic_port_info info;

	(void)state;
	assert_int_equal(rnic_port_set(g.fx.r, 0, 1, true), EALREADY);
	set_port(0, false);
	assert_int_equal(rnic_port_set(g.fx.r, 0, 1, false), EALREADY);
	assert_int_equal(rnic_port_info(g.fx.r, 0, 1, &info), 0);
	assert_int_equal(info.state, 1);
	assert_int_equal(rnic_port_set(g.fx.r, 0, 0, true), EINVAL);
	assert_int_equal(rnic_port_set(g.fx.r, 0, 3, true), EINVAL);
	assert_int_equal(rnic_port_set(g.fx.r, 8, 1, true), EINVAL);
}

static void a_message_before_rts_is_told_once(void **state)
{
	struct fx_opts o = fx_defaults;

	(void)state;
	fx_modify(&g.a, RNIC_RESET);
	fx_modify(&g.b, RNIC_RESET);
	fx_resync(&g.a);
	fx_connect(&g.a, &g.b, RNIC_RTS, &o, 10, 20);
	fx_connect(&g.b, &g.a, RNIC_RTR, &o, 20, 10);
	fx_recv_mr(&g.b, 1, &g.bm, 0, 64);
	fx_recv_mr(&g.b, 2, &g.bm, 0, 64);
	send_one(&g.a);
	expect_event(&g.fx, RNIC_EVENT_COMM_EST, 2, END_HANDLE(&g.b));
	send_one(&g.a);
	expect_no_event(&g.fx);
	/* In RTS nobody has to be told. */
	fx_modify(&g.b, RNIC_RESET);
	fx_modify(&g.a, RNIC_RESET);
	fx_resync(&g.a);
	fx_connect(&g.a, &g.b, RNIC_RTS, &o, 10, 20);
	fx_connect(&g.b, &g.a, RNIC_RTS, &o, 20, 10);
	send_one(&g.a);
	expect_no_event(&g.fx);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_short_break_costs_retries_only),
		T(a_long_one_ends_with_the_retries),
		T(who_connects_meanwhile_is_heard_later),
		T(datagrams_are_lost),
		T(the_port_says_how_it_is),
		T(a_message_before_rts_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
