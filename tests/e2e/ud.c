// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Datagrams as a program sees them: what a receive says is enough to answer
 * it; multicast reaches all members; errors stop the send queue only.
 */
#include "pair.h"

#define GRH 40
#define QKEY 0x1ee7u
#define MULTICAST_QPN 0xffffff

static int cases;

struct node {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

static void node_open(struct end *e, struct node *n)
{
	struct ibv_qp_init_attr init = {
		.cap = {8, 8, 1, 1, 64},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	n->cq = new_cq(e, 16, NULL);
	init.send_cq = init.recv_cq = n->cq;
	CHECK(n->qp = ibv_create_qp(e->pd, &init));
	n->buf = shared_memory(16384);
	CHECK(n->mr = ibv_reg_mr(e->pd, n->buf, 16384, ALL_ACCESS));
	CHECK(!ibv_modify_qp(n->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(n->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(n->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void node_close(struct node *n)
{
	CHECK(!ibv_destroy_qp(n->qp));
	CHECK(!ibv_dereg_mr(n->mr));
	CHECK(!ibv_destroy_cq(n->cq));
	munmap(n->buf, 16384);
}

static void recv_one(struct node *n, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)n->buf, GRH + 4096, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	CHECK(!ibv_post_recv(n->qp, &wr, &bad));
}

static int send_to(struct node *n, struct ibv_ah *ah, uint32_t qpn,
		   uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)n->buf + 8192, len, n->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 77,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 0x12345678,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {ah, qpn, QKEY},
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(n->qp, &wr, &bad);
}

static struct ibv_wc take(struct node *n, int status)
{
	double end = seconds() + 10;
	struct ibv_wc wc;

	while (!ibv_poll_cq(n->cq, 1, &wc))
		CHECK(seconds() < end);
	CHECK((int)wc.status == status);
	return wc;
}

static struct ibv_ah *path(struct end *e, bool global)
{
	struct ibv_ah_attr attr = {.dlid = e->port.lid, .port_num = 1};
	struct ibv_ah *ah;

	if (global || e->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.is_global = 1;
		attr.grh.dgid = e->gid;
		attr.grh.hop_limit = 5;
	}
	CHECK(ah = ibv_create_ah(e->pd, &attr));
	return ah;
}

static void question_and_answer(struct end *e, bool global)
{
	struct ibv_ah *ah = path(e, global), *back;
	struct ibv_wc wc;
	struct node a, b;

	node_open(e, &a);
	node_open(e, &b);
	recv_one(&b, 5);
	memset(a.buf + 8192, 0x5a, 100);
	CHECK(!send_to(&a, ah, b.qp->qp_num, 100));
	CHECK(take(&a, IBV_WC_SUCCESS).opcode == IBV_WC_SEND);
	wc = take(&b, IBV_WC_SUCCESS);
	CHECK(wc.wr_id == 5 && wc.byte_len == GRH + 100);
	CHECK(wc.src_qp == a.qp->qp_num && wc.imm_data == 0x12345678);
	CHECK(wc.wc_flags & IBV_WC_WITH_IMM);
	CHECK(!(wc.wc_flags & IBV_WC_GRH) ==
	      !(global || e->port.link_layer == IBV_LINK_LAYER_ETHERNET));
	CHECK(b.buf[GRH] == 0x5a && b.buf[GRH + 99] == 0x5a);

	CHECK(back = ibv_create_ah_from_wc(e->pd, &wc, (void *)b.buf, 1));
	recv_one(&a, 6);
	CHECK(!send_to(&b, back, wc.src_qp, 1));
	take(&b, IBV_WC_SUCCESS);
	wc = take(&a, IBV_WC_SUCCESS);
	CHECK(wc.wr_id == 6 && wc.byte_len == GRH + 1);
	CHECK(!ibv_destroy_ah(back));
	CHECK(!ibv_destroy_ah(ah));
	node_close(&a);
	node_close(&b);
	cases++;
}

/* More than the device reaches in one go. */
#define MEMBERS 40

static void multicast(struct end *e)
{
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 3}};
	struct ibv_ah_attr attr = {
		.dlid = 0xc003,
		.port_num = 1,
		.is_global = 1,
		.grh = {.dgid = group, .hop_limit = 1},
	};
	struct node n[MEMBERS + 1];
	struct ibv_ah *ah;
	struct ibv_wc wc;
	int i;

	CHECK(ah = ibv_create_ah(e->pd, &attr));
	for (i = 0; i <= MEMBERS; i++) {
		node_open(e, &n[i]);
		recv_one(&n[i], i);
		if (i < MEMBERS)
			CHECK(!ibv_attach_mcast(n[i].qp, &group, 0xc003));
	}
	CHECK(ibv_attach_mcast(n[MEMBERS].qp, &e->gid, 0xc003) == EINVAL);
	CHECK(!send_to(&n[0], ah, MULTICAST_QPN, 64));
	/* Itself, the other members, and nobody else. */
	for (i = 0; i < 2; i++) {
		wc = take(&n[0], IBV_WC_SUCCESS);
		CHECK(wc.opcode == IBV_WC_SEND || wc.wr_id == 0);
	}
	for (i = 1; i < MEMBERS; i++) {
		wc = take(&n[i], IBV_WC_SUCCESS);
		CHECK((int)wc.wr_id == i && wc.src_qp == n[0].qp->qp_num);
		CHECK(!ibv_poll_cq(n[i].cq, 1, &wc));
	}
	CHECK(!ibv_poll_cq(n[MEMBERS].cq, 1, &wc));
	CHECK(ibv_destroy_qp(n[0].qp) == EBUSY);
	for (i = 0; i < MEMBERS; i++)
		CHECK(!ibv_detach_mcast(n[i].qp, &group, 0xc003));
	CHECK(ibv_detach_mcast(n[0].qp, &group, 0xc003) == EINVAL);
	for (i = 0; i <= MEMBERS; i++)
		node_close(&n[i]);
	CHECK(!ibv_destroy_ah(ah));
	cases++;
}

static void send_queue_error(struct end *e)
{
	struct ibv_ah *ah = path(e, false);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_qp_init_attr init;
	struct node a, b;

	node_open(e, &a);
	node_open(e, &b);
	CHECK(!send_to(&a, ah, b.qp->qp_num, 4097));
	CHECK(!send_to(&a, ah, b.qp->qp_num, 1));
	take(&a, IBV_WC_LOC_LEN_ERR);
	take(&a, IBV_WC_WR_FLUSH_ERR);
	CHECK(!ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_SQE);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE));
	recv_one(&b, 1);
	CHECK(!send_to(&a, ah, b.qp->qp_num, 1));
	take(&a, IBV_WC_SUCCESS);
	take(&b, IBV_WC_SUCCESS);
	CHECK(!ibv_destroy_ah(ah));
	node_close(&a);
	node_close(&b);
	cases++;
}

int main(void)
{
	struct end e;

	end_open(&e);
	question_and_answer(&e, false);
	question_and_answer(&e, true);
	multicast(&e);
	send_queue_error(&e);
	end_close(&e);
	printf("%d cases, all right\n", cases);
	return 0;
}
