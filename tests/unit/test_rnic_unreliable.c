// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* UD and UC (IBTA vol. 1, 9.8): nobody answers, nothing comes twice. */
#include <errno.h>
#include "rnic_fixture.h"

#define GRH 40

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	uint32_t ah;
};

static struct rig g;

static const uint8_t ipv4[2][16] = {
	{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
	{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
};

static void open_rig(uint32_t layer, uint32_t type)
{
	struct fx_opts o = fx_defaults;
	uint32_t dev;

	memset(&g, 0, sizeof(g));
	o.type = type;
	fx_open(&g.fx, layer);
	for (dev = 0; layer == RNIC_ETHERNET && dev < 2; dev++)
		assert_int_equal(rnic_port_add_gid(g.fx.r, dev, 1, ipv4[dev]),
				 0);
	fx_pair(&g.fx, &g.a, &g.b, &o);
	g.am = fx_mr(&g.a, 1 << 20, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.b, 1 << 20, FX_ALL_ACCESS);
	if (type == RNIC_QPT_UD)
		g.ah = fx_ah(&g.a, &g.b, false);
}

static int setup_ud(void **state)
{
	(void)state;
	open_rig(RNIC_INFINIBAND, RNIC_QPT_UD);
	return 0;
}

static int setup_roce(void **state)
{
	(void)state;
	open_rig(RNIC_ETHERNET, RNIC_QPT_UD);
	return 0;
}

static int setup_uc(void **state)
{
	(void)state;
	open_rig(RNIC_INFINIBAND, RNIC_QPT_UC);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx_close(&g.fx);
	return 0;
}

static struct fx_wr datagram(uint32_t len)
{
	return (struct fx_wr){
		.opcode = SF_OP_SEND,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = g.ah | (uint64_t)g.b.qpn << 32,
		.rkey = FX_QKEY,
		.n_sge = 1,
		.sge = {fx_sge(&g.am, 0, len)},
	};
}

/* ---- UD -------------------------------------------------------------- */

static void a_datagram_arrives_behind_40_bytes(void **state)
{
	struct fx_wr wr = datagram(100);
	struct rnic_port_info port;
	struct sf_cqe cqe;
	uint64_t i;

	(void)state;
	fx_fill(g.am.ptr, 100, 1);
	memset(g.bm.ptr, 0xee, 256);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	wr.opcode = SF_OP_SEND_IMM;
	wr.flags |= SF_WQE_SOLICITED;
	wr.imm = 0xabcd;
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND_IMM, i);
	cqe = expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	assert_int_equal(cqe.byte_len, GRH + 100);
	assert_int_equal(cqe.src_qpn, g.a.qpn);
	assert_int_equal(cqe.imm, 0xabcd);
	assert_int_equal(sf_cqe_flags(cqe.word), SF_CQE_IMM | SF_CQE_SOLICITED);
	assert_int_equal(rnic_port_info(g.fx.r, 0, 1, &port), 0);
	assert_int_equal(cqe.slid, port.lid);
	assert_memory_equal(g.bm.ptr + GRH, g.am.ptr, 100);
	/* A local path has no GRH: its place is left alone. */
	assert_int_equal(g.bm.ptr[0], 0xee);
	assert_int_equal(g.bm.ptr[GRH - 1], 0xee);
}

static void a_global_path_has_a_grh(void **state)
{
	struct rnic_port_info from, to;
	struct fx_wr wr;
	struct sf_cqe cqe;
	const uint8_t *grh = g.bm.ptr;

	(void)state;
	g.ah = fx_ah(&g.a, &g.b, true);
	wr = datagram(10);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	fx_send(&g.a, &wr);
	cqe = expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	assert_true(sf_cqe_flags(cqe.word) & SF_CQE_GRH);
	assert_int_equal(rnic_port_info(g.fx.r, 0, 1, &from), 0);
	assert_int_equal(rnic_port_info(g.fx.r, 1, 1, &to), 0);
	assert_int_equal(grh[0], 0x65);
	assert_int_equal(grh[1], 0xa1);
	assert_int_equal(grh[2] << 8 | grh[3], 0x2345);
	assert_int_equal(grh[4] << 8 | grh[5], 12 + 8 + 12 + 4);
	assert_int_equal(grh[6], 0x1b);
	assert_int_equal(grh[7], 9);
	assert_memory_equal(grh + 8, from.gid[0], 16);
	assert_memory_equal(grh + 24, to.gid[0], 16);
}

static void roce_over_ipv4_has_its_header_in_the_last_20_bytes(void **state)
{
	const uint8_t *ip = g.bm.ptr + 20;
	struct fx_wr wr;
	struct sf_cqe cqe;
	uint32_t sum = 0, i;

	(void)state;
	g.ah = fx_ah(&g.a, &g.b, true);
	wr = datagram(8);
	memset(g.bm.ptr, 0xee, GRH);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	fx_send(&g.a, &wr);
	cqe = expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	assert_true(sf_cqe_flags(cqe.word) & SF_CQE_GRH);
	assert_int_equal(cqe.slid, 0);
	assert_int_equal(cqe.sl, SF_CQE_SL_IPV4);
	assert_int_equal(g.bm.ptr[0], 0);
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[8], 9);
	assert_int_equal(ip[9], 17);
	assert_memory_equal(ip + 12, ipv4[0] + 12, 4);
	assert_memory_equal(ip + 16, ipv4[1] + 12, 4);
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(sum, 0xffff);
}

static void what_cannot_be_delivered_is_dropped(void **state)
{
	struct fx_wr wr = datagram(8);
	uint64_t i;

	(void)state;
	/* No receive. */
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	/* Another Q_Key. */
	wr.rkey++;
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	/* No such QP. */
	wr = datagram(8);
	wr.remote_addr += 1ull << 32;
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	/* Its holder is stopped. */
	fx_lock_busy(&fx_qp(&g.b)->resp.lock, 1);
	wr = datagram(8);
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	expect_no_cqe(&g.b.rcq);
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	expect_no_event(&g.fx);
}

/* The receiver's turn comes after some yields, or never. */
static int yields, post_at;

static void op_yield(void *host)
{
	(void)host;
	g.fx.now += 1000000;
	if (++yields == post_at)
		fx_recv_mr(&g.b, 8, &g.bm, 0, 256);
}

static void a_receiver_gets_its_turn(void **state)
{
	struct fx_wr wr = datagram(8);
	uint64_t i;

	(void)state;
	g.fx.ops.yield = op_yield;
	yields = post_at = 0;
	/* It has never received: nobody waits for it. */
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	assert_int_equal(yields, 0);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	fx_send(&g.a, &wr);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	post_at = 5;
	fx_send(&g.a, &wr);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 8);
	assert_int_equal(yields, 5);
	/* It does not post any more: 50 ms, then everything is dropped. */
	fx_send(&g.a, &wr);
	assert_int_equal(yields, 55);
	fx_send(&g.a, &wr);
	assert_int_equal(yields, 55);
	expect_no_cqe(&g.b.rcq);
}

static void a_privileged_qkey_stands_for_the_qps_own(void **state)
{
	struct fx_wr wr = datagram(8);

	(void)state;
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	wr.rkey = 0x80000000;
	fx_send(&g.a, &wr);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
}

static void a_datagram_that_is_longer_than_its_receive_is_an_error(void **state)
{
	struct fx_wr wr = datagram(64);
	uint64_t i;

	(void)state;
	fx_recv_mr(&g.b, 7, &g.bm, 0, GRH + 63);
	fx_recv_mr(&g.b, 8, &g.bm, 0, GRH + 64);
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	expect_cqe(&g.b.rcq, SF_CQE_RECV, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH, 7);
	expect_cqe(&g.b.rcq, SF_CQE_RECV, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   8);
	assert_int_equal(fx_state(&g.b), RNIC_ERR);
	assert_int_equal(fx_state(&g.a), RNIC_RTS);
}

/* Figure 125: only the send queue is in error, and RTS mends it. */
static void sqe(struct fx_wr *bad, uint32_t status, uint32_t syndrome)
{
	struct fx_wr good = datagram(8);
	uint64_t i = fx_post(&g.a, bad), j = fx_send(&g.a, &good);

	expect_cqe(&g.a.scq, bad->opcode, status, syndrome, i);
	expect_cqe(&g.a.scq, SF_OP_SEND, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   j);
	assert_int_equal(fx_state(&g.a), RNIC_SQE);
	expect_failed_line(&g.a, i, status, syndrome);
	/* It still receives. */
	fx_recv_mr(&g.a, 9, &g.am, 4096, 256);
	good.remote_addr = fx_ah(&g.b, &g.a, false) | (uint64_t)g.a.qpn << 32;
	good.sge[0] = fx_sge(&g.bm, 0, 8);
	fx_send(&g.b, &good);
	expect_ok(&g.a.rcq, SF_CQE_RECV, 9);
	assert_int_equal(fx_modify(&g.a, RNIC_RTS), 0);
	expect_line(&g.a, j + 1);
	good = datagram(8);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	i = fx_send(&g.a, &good);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
}

/* What was posted in SQE fails, however late its CQE comes. */
static void rts_comes_after_the_flush(void **state)
{
	struct fx_wr bad = datagram(8), good = datagram(8);
	struct rnic_lock *cq = &fx_cq_state(&g.a.scq)->lock;
	uint64_t i, j;

	(void)state;
	bad.opcode = SF_OP_WRITE;
	i = fx_post(&g.a, &bad);
	j = fx_post(&g.a, &good);
	fx_lock_busy(cq, 100);
	rnic_sq_ring(g.a.r, g.a.qpn);
	assert_int_equal(fx_state(&g.a), RNIC_SQE);
	assert_int_equal(fx_modify(&g.a, RNIC_RTS), EBUSY);
	assert_int_equal(fx_state(&g.a), RNIC_SQE);
	fx_lock_busy(cq, 0);
	assert_int_equal(fx_modify(&g.a, RNIC_RTS), 0);
	expect_cqe(&g.a.scq, SF_OP_WRITE, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE,
		   i);
	expect_cqe(&g.a.scq, SF_OP_SEND, SF_ST_WR_FLUSH_ERR, SF_SYN_QP_STATE,
		   j);
	expect_line(&g.a, j + 1);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 256);
	i = fx_send(&g.a, &good);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	expect_no_cqe(&g.a.scq);
}

static void bad_requests_stop_the_send_queue_only(void **state)
{
	struct rnic_port_info port;
	struct fx_wr wr;

	(void)state;
	assert_int_equal(rnic_port_info(g.fx.r, 0, 1, &port), 0);
	wr = datagram(rnic_mtu_bytes(port.mtu) + 1);
	sqe(&wr, SF_ST_LOC_LEN_ERR, SF_SYN_LENGTH);
	wr = datagram(8);
	wr.opcode = SF_OP_WRITE;
	sqe(&wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE);
	wr = datagram(8);
	wr.remote_addr++; /* another tag */
	sqe(&wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_KEY);
	wr = datagram(8);
	wr.remote_addr = fx_ah(&g.b, &g.b, false) | (uint64_t)g.b.qpn << 32;
	sqe(&wr, SF_ST_LOC_QP_OP_ERR, SF_SYN_PD);
	wr = datagram(8);
	wr.sge[0].lkey++;
	sqe(&wr, SF_ST_LOC_PROT_ERR, SF_SYN_KEY);
}

static void address_handles_are_checked(void **state)
{
	struct rnic_av av = {.port_num = 1, .dlid = 1};
	uint32_t ah, other;

	(void)state;
	assert_int_equal(rnic_ah_create(g.fx.r, 1, 0, g.a.pdn, &av, &ah), 0);
	assert_int_equal(rnic_pd_destroy(g.fx.r, 1, g.a.pdn), EBUSY);
	assert_int_equal(rnic_ah_destroy(g.fx.r, 2, ah), EINVAL);
	assert_int_equal(rnic_ah_destroy(g.fx.r, 1, ah), 0);
	assert_int_equal(rnic_ah_destroy(g.fx.r, 1, ah), EINVAL);
	av.port_num = 3;
	assert_int_equal(rnic_ah_create(g.fx.r, 1, 0, g.a.pdn, &av, &other),
			 EINVAL);
	av.port_num = 1;
	av.is_global = 1;
	av.sgid_index = 5;
	assert_int_equal(rnic_ah_create(g.fx.r, 1, 0, g.a.pdn, &av, &other),
			 EINVAL);
	av.sgid_index = 0;
	assert_int_equal(rnic_ah_create(g.fx.r, 1, 0, g.b.pdn, &av, &other),
			 EINVAL);
}

/* ---- multicast ------------------------------------------------------- */

static const uint8_t mgid[16] = {0xff, 0x12, 0x40, 0x1b, [15] = 7};

static void a_group_gets_one_copy_each_its_sender_too(void **state)
{
	struct rnic_av av = {
		.port_num = 1, .dlid = 0xc001, .is_global = 1, .hop_limit = 1};
	struct fx_wr wr;
	uint32_t n;

	(void)state;
	memcpy(av.dgid, mgid, 16);
	assert_int_equal(rnic_ah_create(g.fx.r, 1, 0, g.a.pdn, &av, &g.ah), 0);
	assert_int_equal(rnic_mcast_attach(g.fx.r, 1, g.a.qpn, mgid, 0xc001),
			 0);
	assert_int_equal(rnic_mcast_attach(g.fx.r, 2, g.b.qpn, mgid, 0xc001),
			 0);
	assert_int_equal(rnic_mcast_attach(g.fx.r, 2, g.b.qpn, mgid, 0xc001),
			 0);
	fx_recv_mr(&g.a, 3, &g.am, 4096, 256);
	fx_recv_mr(&g.b, 4, &g.bm, 0, 256);
	fx_recv_mr(&g.b, 5, &g.bm, 0, 256);
	wr = datagram(8);
	wr.remote_addr = g.ah | (uint64_t)RNIC_MULTICAST_QPN << 32;
	fx_send(&g.a, &wr);
	expect_ok(&g.a.rcq, SF_CQE_RECV, 3);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 4);
	expect_no_cqe(&g.b.rcq);
	assert_memory_equal(g.bm.ptr + 24, mgid, 16);

	assert_int_equal(rnic_qp_destroy(g.fx.r, 2, g.b.qpn, &n), EBUSY);
	assert_int_equal(rnic_mcast_detach(g.fx.r, 2, g.b.qpn, mgid, 0xc001),
			 0);
	assert_int_equal(rnic_mcast_detach(g.fx.r, 2, g.b.qpn, mgid, 0xc001),
			 EINVAL);
	fx_send(&g.a, &wr); /* a has none posted, b has left */
	expect_no_cqe(&g.b.rcq);
	expect_no_cqe(&g.a.rcq);
}

/* More than one step of the sender reaches, each with something to raise. */
static void every_member_of_a_large_group_gets_it_once(void **state)
{
	enum { MEMBERS = 40 };
	static struct fx_end e[MEMBERS];
	struct fx_opts o = fx_defaults;
	struct rnic_av av = {
		.port_num = 1, .dlid = 0xc001, .is_global = 1, .hop_limit = 1};
	struct fx_wr wr;
	struct fx_mr mr;
	uint64_t at;
	uint32_t i;

	(void)state;
	o.type = RNIC_QPT_UD;
	memcpy(av.dgid, mgid, 16);
	assert_int_equal(rnic_ah_create(g.fx.r, 1, 0, g.a.pdn, &av, &g.ah), 0);
	for (i = 0; i < MEMBERS; i++) {
		fx_end_new(&e[i], &g.fx, g.fx.r, 2, 1, &o);
		fx_connect(&e[i], &g.b, RNIC_RTS, &o, 0, 0);
		assert_int_equal(
			rnic_mcast_attach(g.fx.r, 2, e[i].qpn, mgid, 0xc001),
			0);
		mr = fx_mr(&e[i], 4096, FX_ALL_ACCESS);
		fx_recv_mr(&e[i], 2 * i, &mr, 0, 256);
		fx_recv_mr(&e[i], 2 * i + 1, &mr, 256, 256);
	}
	wr = datagram(8);
	wr.remote_addr = g.ah | (uint64_t)RNIC_MULTICAST_QPN << 32;
	at = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, at);
	expect_no_cqe(&g.a.scq);
	for (i = 0; i < MEMBERS; i++) {
		expect_ok(&e[i].rcq, SF_CQE_RECV, 2 * i);
		expect_no_cqe(&e[i].rcq);
	}
	fx_send(&g.a, &wr);
	for (i = 0; i < MEMBERS; i++)
		expect_ok(&e[i].rcq, SF_CQE_RECV, 2 * i + 1);
}

static void groups_have_limits(void **state)
{
	uint8_t unicast[16] = {0xfe, 0x80}, group[16];
	uint32_t i;

	(void)state;
	assert_int_equal(rnic_mcast_attach(g.fx.r, 1, g.a.qpn, unicast, 0xc001),
			 EINVAL);
	assert_int_equal(rnic_mcast_attach(g.fx.r, 1, g.a.qpn, mgid, 1),
			 EINVAL);
	assert_int_equal(rnic_mcast_attach(g.fx.r, 2, g.a.qpn, mgid, 0xc001),
			 EINVAL);
	memcpy(group, mgid, 16);
	for (i = 0; i < RNIC_MAX_MCAST; i++) {
		memcpy(group + 12, &i, 4);
		assert_int_equal(
			rnic_mcast_attach(g.fx.r, 1, g.a.qpn, group, 0xc001),
			0);
	}
	assert_int_equal(rnic_mcast_attach(g.fx.r, 1, g.a.qpn, group, 0xc001),
			 0);
	assert_int_equal(rnic_mcast_attach(g.fx.r, 1, g.a.qpn, mgid, 0xc001),
			 ENOMEM);
}

static void groups_of_ipv4_are_for_ethernet(void **state)
{
	uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1};

	(void)state;
	assert_int_equal(rnic_mcast_attach(g.fx.r, 1, g.a.qpn, ip, 0), 0);
	assert_int_equal(rnic_mcast_detach(g.fx.r, 1, g.a.qpn, ip, 0), 0);
	ip[12] = 10;
	assert_int_equal(rnic_mcast_attach(g.fx.r, 1, g.a.qpn, ip, 0), EINVAL);
}

/* ---- UC -------------------------------------------------------------- */

static struct fx_wr uc(uint32_t opcode, uint32_t len)
{
	return (struct fx_wr){
		.opcode = opcode,
		.flags = SF_WQE_SIGNALED,
		.remote_addr = g.bm.addr,
		.rkey = g.bm.key,
		.imm = 0x77,
		.n_sge = 1,
		.sge = {fx_sge(&g.am, 0, len)},
	};
}

static void uc_sends_and_writes(void **state)
{
	struct fx_wr wr = uc(SF_OP_SEND_IMM, 5000);
	struct sf_cqe cqe;
	uint64_t i;

	(void)state;
	fx_fill(g.am.ptr, 5000, 3);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 8192);
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND_IMM, i);
	cqe = expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	assert_int_equal(cqe.byte_len, 5000);
	assert_int_equal(cqe.imm, 0x77);
	assert_memory_equal(g.bm.ptr, g.am.ptr, 5000);
	fx_fill(g.am.ptr, 3000, 4);
	wr = uc(SF_OP_WRITE, 3000);
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_WRITE, i);
	assert_memory_equal(g.bm.ptr, g.am.ptr, 3000);
	fx_recv_mr(&g.b, 8, &g.bm, 0, 0);
	wr = uc(SF_OP_WRITE_IMM, 10);
	fx_send(&g.a, &wr);
	expect_ok(&g.b.rcq, SF_CQE_RECV_RDMA_IMM, 8);
}

static void uc_drops_what_it_cannot_take_and_goes_on(void **state)
{
	struct fx_wr wr = uc(SF_OP_SEND, 5000);
	uint64_t i;

	(void)state;
	i = fx_send(&g.a, &wr); /* no receive */
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	wr = uc(SF_OP_WRITE, 3000);
	wr.rkey++;
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_WRITE, i);
	fx_lock_busy(&fx_qp(&g.b)->resp.lock, 1); /* a lost one */
	wr = uc(SF_OP_WRITE, 3000);
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_WRITE, i);
	assert_int_equal(fx_state(&g.b), RNIC_RTS);
	expect_no_event(&g.fx);
	fx_recv_mr(&g.b, 7, &g.bm, 0, 8192);
	wr = uc(SF_OP_SEND, 5000);
	i = fx_send(&g.a, &wr);
	expect_ok(&g.a.scq, SF_OP_SEND, i);
	expect_ok(&g.b.rcq, SF_CQE_RECV, 7);
	expect_no_cqe(&g.b.rcq);
}

static void uc_has_no_reads(void **state)
{
	struct fx_wr wr = uc(SF_OP_READ, 8);
	uint64_t i;

	(void)state;
	i = fx_send(&g.a, &wr);
	expect_cqe(&g.a.scq, SF_OP_READ, SF_ST_LOC_QP_OP_ERR, SF_SYN_OPCODE, i);
	assert_int_equal(fx_state(&g.a), RNIC_SQE);
}

/* A message of three packets, one of which is lost on the way. */
static void uc_drops_a_message_with_a_hole(void **state)
{
	struct rnic_sgl payload;
	struct rnic_reply reply = {0};
	struct rnic_call call;
	uint32_t lost, i;

	(void)state;
	fx_recv_mr(&g.b, 7, &g.bm, 0, 8192);
	for (lost = 0; lost < 4; lost++) {
		for (i = 0; i < 3; i++) {
			struct rnic_packet pkt = {
				.op = RNIC_PKT_SEND,
				.flags = RNIC_PKT_UNRELIABLE |
					 (i == 0 ? RNIC_PKT_FIRST : 0) |
					 (i == 2 ? RNIC_PKT_LAST : 0),
				.src_qpn = g.a.qpn,
				.dest_qpn = g.b.qpn,
				.psn = rnic_psn_add(fx_defaults.psn,
						    lost * 3 + i),
				.npkts = 1,
				.len = 1024,
				.payload = &payload,
			};

			if (i == lost)
				continue;
			rnic_sgl_init(&payload);
			rnic_sgl_add(&payload, NULL, (uintptr_t)g.am.ptr, 1024);
			rnic_call_begin(&call, g.fx.r);
			assert_true(rnic_responder_lock(g.fx.r, fx_qp(&g.b)));
			rnic_responder_receive(&call, fx_qp(&g.b), &pkt,
					       &reply);
			rnic_responder_unlock(&call, fx_qp(&g.b));
			rnic_call_end(&call);
		}
		if (lost < 3)
			expect_no_cqe(&g.b.rcq);
	}
	assert_int_equal(expect_ok(&g.b.rcq, SF_CQE_RECV, 7).byte_len, 3072);
}

/* ---- attributes (IBTA vol. 1, table 91) ------------------------------ */

static int modify(struct fx_end *e, uint32_t state, uint32_t drop, uint32_t add)
{
	struct rnic_qp_attr attr;
	uint32_t mask = fx_attr(e, &g.b, state, &fx_defaults, 1, 1, &attr);

	return rnic_qp_modify(e->r, e->ctx, e->qpn, &attr,
			      (mask & ~drop) | add);
}

static void ud_takes_a_qkey_and_no_path(void **state)
{
	struct fx_opts o = fx_defaults;
	struct fx_end e;

	(void)state;
	o.type = RNIC_QPT_UD;
	fx_end_new(&e, &g.fx, g.fx.r, 1, 0, &o);
	assert_int_equal(modify(&e, RNIC_INIT, RNIC_QP_QKEY, 0), EINVAL);
	assert_int_equal(modify(&e, RNIC_INIT, 0, RNIC_QP_ACCESS), EINVAL);
	assert_int_equal(modify(&e, RNIC_INIT, 0, 0), 0);
	assert_int_equal(modify(&e, RNIC_RTR, 0, RNIC_QP_AV), EINVAL);
	assert_int_equal(modify(&e, RNIC_RTR, 0, RNIC_QP_QKEY), 0);
	assert_int_equal(modify(&e, RNIC_RTS, RNIC_QP_SQ_PSN, 0), EINVAL);
	assert_int_equal(modify(&e, RNIC_RTS, 0, RNIC_QP_TIMEOUT), EINVAL);
	assert_int_equal(modify(&e, RNIC_RTS, 0, 0), 0);
	assert_int_equal(fx_modify(&e, RNIC_SQE), EINVAL);
	assert_int_equal(fx_modify(&e, RNIC_SQD), 0);
	assert_int_equal(fx_modify(&e, RNIC_RTS), 0);
}

static void uc_has_nothing_to_repeat(void **state)
{
	struct fx_opts o = fx_defaults;
	struct fx_end e;

	(void)state;
	o.type = RNIC_QPT_UC;
	fx_end_new(&e, &g.fx, g.fx.r, 1, 0, &o);
	assert_int_equal(modify(&e, RNIC_INIT, 0, RNIC_QP_QKEY), EINVAL);
	assert_int_equal(modify(&e, RNIC_INIT, 0, 0), 0);
	assert_int_equal(modify(&e, RNIC_RTR, 0, RNIC_QP_MAX_DEST_RD_ATOMIC),
			 EINVAL);
	assert_int_equal(modify(&e, RNIC_RTR, RNIC_QP_AV, 0), EINVAL);
	assert_int_equal(modify(&e, RNIC_RTR, 0, 0), 0);
	assert_int_equal(modify(&e, RNIC_RTS, 0, RNIC_QP_RETRY_CNT), EINVAL);
	assert_int_equal(modify(&e, RNIC_RTS, 0, 0), 0);
	assert_int_equal(fx_modify(&e, RNIC_SQE), EINVAL);
}

#define UD(name) cmocka_unit_test_setup_teardown(name, setup_ud, teardown)
#define ROCE(name) cmocka_unit_test_setup_teardown(name, setup_roce, teardown)
#define UC(name) cmocka_unit_test_setup_teardown(name, setup_uc, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UD(a_datagram_arrives_behind_40_bytes),
		UD(a_global_path_has_a_grh),
		ROCE(roce_over_ipv4_has_its_header_in_the_last_20_bytes),
		UD(what_cannot_be_delivered_is_dropped),
		UD(a_receiver_gets_its_turn),
		UD(a_privileged_qkey_stands_for_the_qps_own),
		UD(a_datagram_that_is_longer_than_its_receive_is_an_error),
		UD(bad_requests_stop_the_send_queue_only),
		UD(rts_comes_after_the_flush),
		UD(address_handles_are_checked),
		UD(a_group_gets_one_copy_each_its_sender_too),
		UD(groups_have_limits),
		UD(every_member_of_a_large_group_gets_it_once),
		ROCE(groups_of_ipv4_are_for_ethernet),
		UC(uc_sends_and_writes),
		UC(uc_drops_what_it_cannot_take_and_goes_on),
		UC(uc_has_no_reads),
		UC(uc_drops_a_message_with_a_hole),
		UD(ud_takes_a_qkey_and_no_path),
		UC(uc_has_nothing_to_repeat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
